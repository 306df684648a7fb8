"""Pass 3: turn blocks of equations into tasks, residual and Jacobian in one.

A nonlinear block becomes a Newton task: the residuals and all their derivatives are computed from
the same subexpressions, so one pass over the nodes serves both. A linear block becomes an exact
linear solve. Derivatives go through eliminated unknowns by the chain rule, so nothing is
substituted and nothing is differentiated twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from ..expressions.averages import DataAverage, outermost
from ..expressions.shared_parts import first_derivative
from ..gaussian.accuracy import is_tail
from ..gaussian.expectation import GaussianExpectation
from ..systems.equations import BlockStructure, Component, Equation
from .inner_averages import InnerAverage
from .program import Assign, LinearSolve, rename

Item = Assign | LinearSolve


@dataclass(frozen=True)
class Explicit:
    """Assignments and linear solves, in no particular order."""

    items: tuple[Item, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.items))


@dataclass(frozen=True)
class NewtonTask:
    """One nonlinear block; the fields are those of :class:`.program.Newton`, its body unordered.

    Attributes
    ----------
    eliminated : tuple of Symbol
        Unknowns that follow explicitly; they hold their values from the last evaluation.
    """

    unknowns: tuple[sp.Symbol, ...]
    start: tuple[sp.Expr, ...]
    items: tuple[Assign, ...]
    residual: tuple[sp.Symbol, ...]
    jacobian: tuple[tuple[sp.Symbol, ...], ...]
    logarithmic: tuple[bool, ...]
    fixed_point: tuple[sp.Symbol, ...]
    eliminated: tuple[sp.Symbol, ...]
    scales: tuple[sp.Symbol, ...]
    losses: tuple[sp.Symbol | None, ...]

    def __str__(self) -> str:
        inside = "\n".join(f"    {item}" for item in self.items)
        return f"newton for {', '.join(map(str, self.unknowns))}:\n{inside}"


Task = Explicit | NewtonTask


class FreshSymbols:
    """Code symbols with names of their own.

    Parameters
    ----------
    taken : iterable of str
        Names that a user has given.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._counter = 0
        self._taken = frozenset(taken)

    def __call__(self, prefix: str) -> sp.Symbol:
        """Return a new symbol."""
        self._counter += 1
        while f"{prefix}{self._counter}" in self._taken:
            self._counter += 1
        return sp.Symbol(f"{prefix}{self._counter}", real=True)

    def endless(self, prefix: str) -> Iterator[sp.Symbol]:
        """Iterate over new symbols without end, as SymPy's cse wants them."""
        while True:
            yield self(prefix)


def fuse(
    structure: BlockStructure,
    names: Mapping[sp.Expr, sp.Symbol],
    start: Mapping[sp.Symbol, sp.Expr],
    fresh: FreshSymbols,
) -> tuple[Task, ...]:
    """Return the tasks that solve the blocks, in their order.

    Parameters
    ----------
    structure : BlockStructure
    names : mapping from Symbol to Symbol
        Code symbols of unknowns and parameters.
    start : mapping from Symbol to Expr
        First values of Newton unknowns; without one, 1 for a positive unknown, else 1/2.
    fresh : FreshSymbols
    """
    tasks: list[Task] = []
    for block in structure.blocks:
        if block.linear:
            tasks += [Explicit(tuple(_linear(c, names, fresh))) for c in block.components]
        else:
            tasks.append(_newton(block.components[0], names, start, fresh))
    return tuple(tasks)


class Size(sp.Function):
    """An absolute value that only sets a scale: its kink needs no cut of the integral."""

    nargs = 1
    is_nonnegative = True

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        """Do what the sign of the argument decides, factor by factor."""
        if x.is_nonnegative or x.is_nonpositive:
            return sp.Abs(x)
        if isinstance(x, sp.exp):
            return x  # all symbols are real, also where SymPy does not know it of 1/(1 - q)
        if x.is_Pow and x.exp.is_number and is_tail(x.base):
            return x  # what vanishes with the tail finds it
        return sp.Mul(*map(cls, x.args)) if x.is_Mul else None


class Abs(sp.Abs):
    """An absolute value that stays one: little is asked of its argument when it is rebuilt.

    SymPy's own looks for the sign of its argument, and writes it as a square root where it does not
    see that it is real, which for a long integrand takes as long as all passes together.
    """

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        """Drop a minus sign, so that reflections show."""
        if x.is_Number:
            return abs(x)
        return cls(-x) if x.could_extract_minus_sign() else None


def magnitude(value: sp.Expr, sizes: Mapping[sp.Symbol, sp.Expr] | None = None) -> sp.Expr:
    """Replace every term of every sum by its :class:`Size`, under averages too.

    Symbols in `sizes` are themselves sums, whose terms have the size that stands there.
    """
    if isinstance(value, GaussianExpectation | DataAverage | InnerAverage):
        return value.func(magnitude(value.args[0], sizes), *value.args[1:])
    # Φ(x), which SymPy writes as 1 - erfc(x/√2)/2, is computed as one function: its size is its
    # own. Where it is tiny, as in quotients of tails, terms of size one would outweigh all others.
    if is_tail(value):
        return value
    if value.is_Add or value.is_Mul:
        return value.func(*(magnitude(x, sizes) for x in value.args))
    if value.is_Pow and value.exp.is_Integer and value.exp > 0:
        return magnitude(value.base, sizes) ** value.exp
    return Size(value) if sizes is None or value not in sizes else sizes[value]


def _size_of_terms(value: sp.Expr) -> sp.Expr:
    """Return the :func:`magnitude` of a scalar in which averages are numbers."""
    averages = outermost(value, GaussianExpectation, DataAverage, InnerAverage)
    marks = {n: sp.Dummy(positive=n.is_positive, real=True) for n in averages}
    found = magnitude(value.xreplace(marks))
    return found.xreplace({mark: n for n, mark in marks.items()})


def cancels(value: sp.Expr, sizes: Collection[sp.Symbol]) -> bool:
    """Tell whether terms of a scalar may cancel, or those of a symbol of `sizes` in it."""
    if value.is_Add and not (
        all(x.is_nonnegative for x in value.args) or all(x.is_nonpositive for x in value.args)
    ):
        return True
    if value.is_Add or value.is_Mul or (value.is_Pow and value.exp.is_Integer and value.exp > 0):
        return any(cancels(x, sizes) for x in value.args)
    return value in sizes


def _newton(
    component: Component,
    names: Mapping[sp.Expr, sp.Symbol],
    start: Mapping[sp.Symbol, sp.Expr],
    fresh: FreshSymbols,
) -> NewtonTask:
    core = component.core
    eliminated = [(names[e.unknown], rename(e.value, names)) for e in component.eliminated]
    unknowns = tuple(names[e.unknown] for e in core)
    logarithmic = tuple(bool(x.is_positive) for x in unknowns)
    derivative = _total_derivatives(eliminated, unknowns)
    items = [Assign(e, value) for e, value in eliminated]
    rows = [
        _newton_row(e, i, names, unknowns, logarithmic, eliminated, derivative, fresh)
        for i, e in enumerate(core)
    ]
    for row in rows:
        items += row.items
    moves = [row.fixed_point for row in rows if row.fixed_point is not None]
    return NewtonTask(
        unknowns=unknowns,
        start=tuple(rename(_start(e.unknown, start), names) for e in core),
        items=tuple(items),
        residual=tuple(row.residual for row in rows),
        jacobian=tuple(row.jacobian for row in rows),
        logarithmic=logarithmic,
        fixed_point=tuple(moves) if len(moves) == len(rows) else (),
        eliminated=tuple(e for e, _ in eliminated),
        scales=tuple(row.scale for row in rows if row.scale is not None),
        losses=tuple(row.loss for row in rows),
    )


def _start(x: sp.Symbol, start: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
    return start.get(x, sp.S.One if x.is_positive else sp.Rational(1, 2))


@dataclass(frozen=True)
class _Row:
    items: list[Assign]
    residual: sp.Symbol
    jacobian: tuple[sp.Symbol, ...]
    fixed_point: sp.Symbol | None
    scale: sp.Symbol | None
    loss: sp.Symbol | None


def _newton_row(
    equation: Equation,
    i: int,
    names: Mapping[sp.Expr, sp.Symbol],
    unknowns: Sequence[sp.Symbol],
    logarithmic: Sequence[bool],
    eliminated: Sequence[_Definition],
    derivative: Mapping[tuple[sp.Symbol, sp.Symbol], sp.Expr],
    fresh: FreshSymbols,
) -> _Row:
    """Return the relative residual of one equation and its derivatives by the coordinates.

    A row may be divided by anything positive: that changes no Newton step, but makes residuals
    comparable.
    """
    x, residual = unknowns[i], fresh("residual_")
    items: list[Assign] = []
    move: sp.Symbol | None = None
    of_terms: sp.Symbol | None = None
    loss: sp.Symbol | None = None
    # The derivative by log y is y times the derivative by y.
    inner = [y if log else sp.S.One for y, log in zip(unknowns, logarithmic, strict=True)]
    if equation.value is None:
        whole = rename(equation.residual, names)
        scale = of_terms = fresh("scale_")
        items += [Assign(scale, magnitude(whole)), Assign(residual, whole / scale)]
        slopes = [_chain(whole, y, eliminated, derivative) for y in unknowns]
        row = [y * s / scale for y, s in zip(inner, slopes, strict=True)]
    else:
        value = rename(equation.value, names)
        target = fresh("target_")
        items.append(Assign(target, value))
        slopes = [_chain(value, y, eliminated, derivative) for y in unknowns]
        if logarithmic[i]:
            items.append(Assign(residual, sp.log(x / target)))
            move = residual
            if cancels(value, ()):
                loss = fresh("loss_")
                items.append(Assign(loss, _size_of_terms(value) / Abs(target)))
            row = [-y * s / target for y, s in zip(inner, slopes, strict=True)]
            row[i] += 1
        else:
            move, scale = fresh("move_"), fresh("scale_")
            items += [
                Assign(move, x - target),
                Assign(scale, 1 + sp.Abs(x)),
                Assign(residual, move / scale),
            ]
            row = [-y * s for y, s in zip(inner, slopes, strict=True)]
            row[i] += 1
            row = [entry / scale for entry in row]
    entries = tuple(fresh("jacobian_") for _ in row)
    items += [Assign(*pair) for pair in zip(entries, row, strict=True)]
    return _Row(items, residual, entries, move, of_terms, loss)


def _linear(
    component: Component, names: Mapping[sp.Expr, sp.Symbol], fresh: FreshSymbols
) -> list[Item]:
    eliminated = [(names[e.unknown], rename(e.value, names)) for e in component.eliminated]
    items: list[Item] = [Assign(e, value) for e, value in eliminated]
    if not component.core:
        return items
    core: Sequence[Equation] = component.core
    unknowns = tuple(names[e.unknown] for e in core)
    residuals = [rename(e.residual, names) for e in core]
    derivative = _total_derivatives(eliminated, unknowns)
    # The right-hand side is minus the residual at zero, eliminated unknowns included.
    zero = dict.fromkeys(unknowns, sp.S.Zero)
    at_zero: dict[sp.Symbol, sp.Symbol] = {}
    for e, value in eliminated:
        at_zero[e] = fresh("at_zero_")
        items.append(Assign(at_zero[e], value.xreplace({**zero, **at_zero})))
    right, matrix = [], []
    for residual in residuals:
        right.append(fresh("right_"))
        items.append(Assign(right[-1], -residual.xreplace({**zero, **at_zero})))
        row = []
        for y in unknowns:
            row.append(fresh("matrix_"))
            items.append(Assign(row[-1], _chain(residual, y, eliminated, derivative)))
        matrix.append(tuple(row))
    items.append(LinearSolve(unknowns, tuple(matrix), tuple(right)))
    return items


_Definition = tuple[sp.Symbol, sp.Expr]


def _total_derivatives(
    eliminated: Sequence[_Definition], unknowns: Sequence[sp.Symbol]
) -> dict[tuple[sp.Symbol, sp.Symbol], sp.Expr]:
    found: dict[tuple[sp.Symbol, sp.Symbol], sp.Expr] = {}
    for i, (e, value) in enumerate(eliminated):
        for y in unknowns:
            found[e, y] = _chain(value, y, eliminated[:i], found)
    return found


def _chain(
    value: sp.Expr,
    y: sp.Symbol,
    eliminated: Sequence[_Definition],
    derivative: Mapping[tuple[sp.Symbol, sp.Symbol], sp.Expr],
) -> sp.Expr:
    indirect = (
        first_derivative(value, e) * derivative[e, y] for e, _ in eliminated if value.has(e)
    )
    return sp.Add(first_derivative(value, y), *indirect)
