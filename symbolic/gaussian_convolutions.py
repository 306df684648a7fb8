r"""Tables of a system of equations as Gaussian convolutions, which are entire in the node.

A table such as :math:`\mu_0(\kappa) = \mathbb{E}_z\,\sigma(r\kappa + \sqrt c z)` is, whatever kinks
and jumps σ has, an entire function of κ, because it is a convolution with a Gaussian. Here the
definitions of a system, with their expectations not evaluated, are written as expressions in

.. math:: t_{F,j}(\kappa) = \mathbb{E}_z\bigl[F(A'\kappa + B z)\, z^j\bigr]

and in functions of κ itself (where the teacher is aligned with the spike). Every function of z in
an integrand has to be a function of one affine form :math:`A'\kappa + Bz` whose coefficients hold
parameters only; the rest is a polynomial in z, κ and other tables, which expands. Moments of a
polynomial are done exactly. Two exact identities keep the result short and the intervals that are
computed from it narrow: a table in the definition of another one is replaced by its own meaning,
and for a continuous F, of which the tables hold :math:`\mathbb{E}F`, Stein's lemma writes

.. math:: \mathbb{E}[F'(A'\kappa + Bz)\,z^j]
          = \frac{\mathbb{E}[F z^{j+1}] - j\,\mathbb{E}[F z^{j-1}]}{B} ,

so that :math:`\mathbb{E}(\sigma - \mu_0 - \sqrt c z\mu_1)^2 =
\mathbb{E}\sigma^2 - (\mathbb{E}\sigma)^2 - (\mathbb{E}z\sigma)^2`. The lemma needs that F is
absolutely continuous and that F φ vanishes far out; the first is read from the expression, the
second is proven when balls are made (:mod:`.convolution_balls`).

What does not have this form is refused, by name: nested expectations, functions of two affine
forms, case distinctions, functions whose continuation to complex numbers is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp
from sympy.core.function import AppliedUndef

from .averages import Average
from .ball_functions import Ball
from .convolution_integrands import (
    ARGUMENT,
    FormStore,
    Integrand,
    is_power,
    refused,
    require_known,
    short,
)
from .gaussian import GaussianExpectation
from .piecewise_polynomials import without_extrema
from .tail_analysis import is_real_valued

if TYPE_CHECKING:
    from .convolution_balls import TableBalls


@dataclass(frozen=True)
class Convolution:
    r"""Averages :math:`\mathbb{E}_z[F_i(A'\kappa + Bz) z^j]` that share an affine form.

    Attributes
    ----------
    slope, spread : Expr
        A' and B, in the parameters.
    functions : tuple of Expr
        F_i, in :data:`.convolution_integrands.ARGUMENT` and parameters.
    moments : tuple of (int, int)
        The pairs (i, j) that are wanted.
    values : tuple of Symbol
        What stands for each of them in the tables.
    """

    slope: sp.Expr
    spread: sp.Expr
    functions: tuple[sp.Expr, ...]
    moments: tuple[tuple[int, int], ...]
    values: tuple[sp.Symbol, ...]

    def __str__(self) -> str:
        return "\n".join(
            f"{value} = E_z[F({self.slope}*node + {self.spread}*z) z^{j}], F = {self.functions[i]}"
            for value, (i, j) in zip(self.values, self.moments, strict=True)
        )


@dataclass(frozen=True)
class GaussianTables:
    r"""Tables as expressions in Gaussian convolutions; made by :func:`gaussian_tables`.

    Attributes
    ----------
    node : Symbol
        κ.
    functions : tuple of applied functions
        The tables, in the order of the definitions.
    expressions : tuple of Expr
        What they are, in the node, the parameters and the values below.
    nonnegative : tuple of bool
        Whether a table is proven to be nonnegative by the structure of its definition, as the mean
        of a square is; what a table is declared to be counts for nothing.
    convolutions : tuple of Convolution
    directs : tuple of (Symbol, Expr)
        Functions of the node that are no averages, and the symbols that stand for them.
    """

    node: sp.Symbol
    functions: tuple[sp.Expr, ...]
    expressions: tuple[sp.Expr, ...]
    nonnegative: tuple[bool, ...]
    convolutions: tuple[Convolution, ...]
    directs: tuple[tuple[sp.Symbol, sp.Expr], ...]

    @property
    def parameters(self) -> frozenset[sp.Symbol]:
        """Symbols that need a value."""
        parts = [*self.expressions, *(f for _, f in self.directs)]
        for convolution in self.convolutions:
            parts += [convolution.slope, convolution.spread, *convolution.functions]
        known = {self.node, ARGUMENT, *(symbol for symbol, _ in self.directs)}
        known = known.union(*(convolution.values for convolution in self.convolutions))
        return frozenset(set().union(*(part.free_symbols for part in parts)) - known)

    def balls(self, values: Mapping[sp.Symbol, Ball]) -> TableBalls:
        """Return everything as functions of balls; see :func:`.convolution_balls.table_balls`.

        Parameters
        ----------
        values : mapping from Symbol to real ball
            Of the parameters. The precision that is set now is that of all constants.
        """
        from .convolution_balls import table_balls

        return table_balls(self, values)

    def __str__(self) -> str:
        lines = [str(convolution) for convolution in self.convolutions]
        lines += [f"{symbol} = {f}" for symbol, f in self.directs]
        lines += [f"{f} = {e}" for f, e in zip(self.functions, self.expressions, strict=True)]
        return "\n".join(lines)


def gaussian_tables(definitions: Mapping[sp.Expr, sp.Expr], node: sp.Symbol) -> GaussianTables:
    """Write tables as expressions in Gaussian convolutions.

    Parameters
    ----------
    definitions : mapping from applied function to Expr
        Functions of the node, each referring to earlier ones only, with expectations that are not
        evaluated (:class:`.gaussian.GaussianExpectation`).
    node : Symbol
        κ, declared real.

    Raises
    ------
    UnsupportedExpressionError
        If a definition does not have the form that the module describes; the message names the
        table and the function.

    Examples
    --------
    >>> x, z = sp.symbols("x z", real=True)
    >>> c = sp.Symbol("c", positive=True)
    >>> mean, left = sp.Function("mean", real=True)(x), sp.Function("left", real=True)(x)
    >>> f = sp.tanh(x + sp.sqrt(c) * z)
    >>> print(gaussian_tables({mean: GaussianExpectation(f, z),
    ...                        left: GaussianExpectation((f - mean)**2, z)}, x))
    _t0 = E_z[F(1*node + sqrt(c)*z) z^0], F = tanh(u)
    _t1 = E_z[F(1*node + sqrt(c)*z) z^0], F = tanh(u)**2
    mean(x) = _t0
    left(x) = -_t0**2 + _t1
    """
    worker = _Worker(node)
    for function, definition in definitions.items():
        worker.add(function, definition)
    return worker.result()


class _Worker:
    def __init__(self, node: sp.Symbol) -> None:
        self.node = node
        self.store = FormStore(node)
        self.directs: dict[sp.Expr, sp.Symbol] = {}
        # Each table as a plain real symbol while integrands are expanded, and its meaning.
        self.marks = self.store.marks
        self.meaning: dict[sp.Expr, sp.Expr] = {}
        self.nonnegative: list[bool] = []

    def add(self, function: sp.Expr, definition: sp.Expr) -> None:
        definition = without_extrema(definition)
        place = f"table {function}"
        self.nonnegative.append(_is_nonnegative(definition.xreplace(self.marks), self.node))
        expr = definition.xreplace(self.marks)
        stray = expr.atoms(AppliedUndef)
        if stray:
            raise refused(place, f"{stray.pop()} has no definition before it")
        found: dict[sp.Expr, sp.Expr] = {}
        for average in _outermost(expr):
            inside = [n for n in average.args[0].atoms(Average) if n.free_symbols]
            if not isinstance(average, GaussianExpectation) or inside:
                shown = inside[0] if inside else average
                raise refused(place, f"the average {short(shown)} is nested or not Gaussian")
            found[average] = Integrand(self.store, average, place).expanded()
        values = {mark: self.meaning[f] for f, mark in self.marks.items()}
        expr = self.direct(expr.xreplace(found), place).xreplace(values)
        # What cancels exactly does not widen intervals later.
        self.meaning[function] = sp.expand(expr)
        mark = sp.Dummy(str(function.func), real=True, nonnegative=self.nonnegative[-1] or None)
        self.marks[function] = mark

    def direct(self, expr: sp.Expr, place: str) -> sp.Expr:
        """Replace functions of the node alone by symbols."""
        averages = {value for form in self.store.forms for value in form.values.values()}
        derived = averages.union(self.marks.values())
        if expr.is_Symbol or expr.free_symbols.isdisjoint(derived | {self.node}):
            return expr
        if expr.is_Add or expr.is_Mul or is_power(expr):
            return expr.func(*(self.direct(operand, place) for operand in expr.args))
        if expr.free_symbols.isdisjoint(derived):
            require_known(expr, self.node, place)
            if expr not in self.directs:
                self.directs[expr] = self.store.symbol("d")
            return self.directs[expr]
        require_known(expr, None, place)
        return expr.func(*(self.direct(operand, place) for operand in expr.args))

    def result(self) -> GaussianTables:
        expressions = tuple(self.meaning.values())
        used = set().union(*(e.free_symbols for e in expressions))
        names: dict[sp.Symbol, sp.Symbol] = {}
        convolutions = []
        for form in self.store.forms:
            keys = [key for key, value in form.values.items() if value in used]
            kept = sorted({i for i, _ in keys})
            for key in keys:
                names[form.values[key]] = sp.Dummy(f"t{len(names)}", real=True)
            if keys:
                convolutions.append(
                    Convolution(
                        form.slope,
                        form.spread,
                        tuple(form.functions[i] for i in kept),
                        tuple((kept.index(i), j) for i, j in keys),
                        tuple(names[form.values[key]] for key in keys),
                    )
                )
        directs = {symbol: f for f, symbol in self.directs.items() if symbol in used}
        return GaussianTables(
            self.node,
            tuple(self.meaning),
            tuple(e.xreplace(names) for e in expressions),
            tuple(self.nonnegative),
            tuple(convolutions),
            tuple(directs.items()),
        )


def _is_nonnegative(expr: sp.Expr, variable: sp.Symbol) -> bool:
    """Whether the structure of an expression proves it: squares, means, sums, products of these."""
    if expr.is_extended_nonnegative:
        return True
    if isinstance(expr, GaussianExpectation):
        return _is_nonnegative(expr.integrand, expr.variable)
    if expr.is_Add or expr.is_Mul:
        return all(_is_nonnegative(operand, variable) for operand in expr.args)
    even = expr.is_Pow and expr.exp.is_Integer and expr.exp % 2 == 0
    return bool(even and is_real_valued(expr.base, variable))


def _outermost(expr: sp.Expr) -> list[sp.Expr]:
    found: list[sp.Expr] = []
    traversal = sp.preorder_traversal(expr)
    for part in traversal:
        if isinstance(part, Average):
            found.append(part)
            traversal.skip()
    return list(dict.fromkeys(found))
