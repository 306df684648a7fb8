"""A program that runs on balls: every scalar becomes a ball that holds all its possible values.

Parameters are balls; averages over nodes and roots of Newton blocks come from whoever runs the
program, which knows how to enclose them. What only magnitudes (scales of float errors) and the
program's own Jacobians need is left out. Those Jacobians floats need in a form that does not
cancel; a proof does not rely on them: every assignment is differentiated by the chain rule, so that
residual and derivatives cannot disagree. Linear systems are solved by ``arb_mat.solve``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import sympy as sp

from ...ball_library import require_flint
from ...errors import CertificationError, UnsupportedExpressionError
from ..exact.ball_functions import Ball, BallTape
from ..expressions.shared_parts import first_derivative
from .program import (
    Assign,
    Data,
    Line,
    LinearSolve,
    Newton,
    NodeLoop,
    Panels,
    Program,
    Step,
    read_first,
)

Tangents = Mapping[sp.Symbol, sp.Expr]


def with_derivatives(
    block: Newton,
) -> tuple[list[Assign | NodeLoop], tuple[tuple[sp.Symbol | None, ...], ...]]:
    """Return the body with derivatives, and the symbols of the Jacobian.

    Parameters
    ----------
    block : Newton

    Returns
    -------
    list of steps
        The body; each assignment and sum is followed by its derivatives.
    tuple of tuple of Symbol or None
        Derivative of each residual by each coordinate; None where it vanishes identically.
    """
    tangents: list[dict[sp.Symbol, sp.Expr]] = [
        {unknown: unknown if logarithmic else sp.S.One}
        for unknown, logarithmic in zip(block.unknowns, block.logarithmic, strict=True)
    ]
    body: list[Assign | NodeLoop] = []
    for step in block.body:
        if isinstance(step, Assign):
            body += [step, *_derivatives([step], tangents)]
        else:
            # Local names mean nothing after the pass, and those of another pass nothing in it.
            inside = [dict(known) for known in tangents]
            local = [a for b in step.locals for a in (b, *_derivatives([b], inside))]
            sums = _derivatives(step.sums, inside)
            body.append(replace(step, locals=tuple(local), sums=(*step.sums, *sums)))
            for known, here in zip(tangents, inside, strict=True):
                known.update({a.target: here[a.target] for a in step.sums if a.target in here})
    jacobian = tuple(
        tuple(_symbol(known.get(residual)) for known in tangents) for residual in block.residual
    )
    return body, jacobian


def _derivatives(
    assignments: Sequence[Assign], tangents: Sequence[dict[sp.Symbol, sp.Expr]]
) -> list[Assign]:
    found = []
    for assignment in assignments:
        symbols = sorted(assignment.value.free_symbols, key=str)
        partial: dict[sp.Symbol, sp.Expr] = {}
        for coordinate, known in enumerate(tangents):
            moving = [x for x in symbols if x in known]
            for x in moving:
                if x not in partial:
                    partial[x] = first_derivative(assignment.value, x)
            slope = sp.Add(*(partial[x] * known[x] for x in moving))
            known.pop(assignment.target, None)
            if slope != 0:
                target = sp.Dummy(f"d{coordinate}_{assignment.target}", real=True)
                known[assignment.target] = target
                found.append(Assign(target, slope))
    return found


def _symbol(tangent: sp.Expr | None) -> sp.Symbol | None:
    return tangent if isinstance(tangent, sp.Symbol) else None


Scalars = dict[sp.Symbol, Ball]
Integrands = Callable[[Sequence[Ball]], list[Ball]]
Average = Callable[["BallLoop", Scalars], Sequence[Ball]]
Root = Callable[["BallNewton", Scalars], Sequence[Ball]]


@dataclass(frozen=True, eq=False)
class BallAssigns:
    """Assignments in a row; `decided` as for :class:`..ball_functions.BallTape`."""

    assignments: tuple[Assign, ...]
    decided: bool = False

    @cached_property
    def _reads(self) -> tuple[sp.Symbol, ...]:
        return read_first(self.assignments)

    @cached_property
    def _tape(self) -> BallTape:
        targets = [a.target for a in self.assignments]
        pairs = ((a.target, a.value) for a in self.assignments)
        return BallTape(self._reads, (), pairs, targets, decided=self.decided)

    def run(self, scalars: Scalars, average: Average, root: Root) -> None:
        """Add the targets to the scalars."""
        values = self._tape([scalars[x] for x in self._reads])
        scalars.update({a.target: v for a, v in zip(self.assignments, values, strict=True)})


@dataclass(frozen=True, eq=False)
class BallLoop:
    """Averages over the normal law of the node.

    Attributes
    ----------
    tables : tuple of Symbol
        All tables of the program, the node first: what integrands are functions of.
    locals, sums : tuple of Assign
        As in :class:`.program.NodeLoop`.
    decided : bool
        As for :class:`..ball_functions.BallTape`.
    """

    tables: tuple[sp.Symbol, ...]
    locals: tuple[Assign, ...]
    sums: tuple[Assign, ...]
    decided: bool = False

    @cached_property
    def _reads(self) -> tuple[sp.Symbol, ...]:
        return tuple(x for x in read_first((*self.locals, *self.sums)) if x not in self.tables)

    @cached_property
    def _tape(self) -> BallTape:
        # A sum may have the name of a scalar of another pass.
        names = {a.target: sp.Dummy(real=True) for a in self.sums}
        pairs = [(a.target, a.value) for a in self.locals]
        pairs += [(names[a.target], a.value) for a in self.sums]
        results = list(names.values())
        return BallTape(self._reads, self.tables, pairs, results, decided=self.decided)

    def run(self, scalars: Scalars, average: Average, root: Root) -> None:
        """Add the averages to the scalars."""
        values = average(self, scalars)
        scalars.update({a.target: v for a, v in zip(self.sums, values, strict=True)})

    def integrands(self, scalars: Mapping[sp.Symbol, Ball]) -> Integrands:
        """Return the integrands as one function of the values of all tables at a node.

        Real balls give real ones. On complex balls the results are not finite unless the
        integrands are analytic on the whole ball.
        """
        at_node = self._tape.bind([scalars[x] for x in self._reads])
        return lambda tables: at_node(tables, True)


@dataclass(frozen=True, eq=False)
class BallLinear:
    """A linear system; its entries are scalars."""

    step: LinearSolve

    def run(self, scalars: Scalars, average: Average, root: Root) -> None:
        """Add the unknowns to the scalars.

        Raises
        ------
        CertificationError
            If the matrix is not proven to be regular.
        """
        flint = require_flint()
        step = self.step
        matrix = flint.arb_mat([[scalars[x] for x in row] for row in step.matrix])
        right = flint.arb_mat([[scalars[x]] for x in step.right_hand_side])
        names = ", ".join(map(str, step.unknowns))
        if not all(x.is_finite() for x in (*matrix.entries(), *right.entries())):
            raise CertificationError(f"the linear equations for {names} have no finite enclosure")
        try:
            found = matrix.solve(right).entries()
        except ZeroDivisionError:
            raise CertificationError(
                f"the linear equations for {names} are not proven to be regular: the determinant "
                "may vanish; try more digits, or parameters further from where it does"
            ) from None
        scalars.update(zip(step.unknowns, found, strict=True))


@dataclass(frozen=True, eq=False)
class BallNewton:
    """Equations for unknowns that a proof has to find.

    Attributes
    ----------
    unknowns : tuple of Symbol
    logarithmic : tuple of bool
        Whether the coordinate of an unknown is its logarithm.
    after : tuple of steps
        What later steps need, to be run at the root.
    """

    unknowns: tuple[sp.Symbol, ...]
    logarithmic: tuple[bool, ...]
    values: tuple[BallStep, ...] = field(repr=False)
    slopes: tuple[BallStep, ...] = field(repr=False)
    after: tuple[BallStep, ...] = field(repr=False)
    residual: tuple[sp.Symbol, ...] = field(repr=False)
    jacobian: tuple[tuple[sp.Symbol | None, ...], ...] = field(repr=False)

    def evaluate(
        self, point: Sequence[Ball], scalars: Scalars, average: Average, derivatives: bool
    ) -> tuple[list[Ball], list[list[Ball]]]:
        """Return the residuals and, if wanted, their derivatives by the coordinates.

        Parameters
        ----------
        point : sequence of real balls
            The unknowns themselves, not their logarithms.
        """
        here = {**scalars, **dict(zip(self.unknowns, point, strict=True))}
        _run(self.slopes if derivatives else self.values, here, average, _no_root)
        residual = [here[x] for x in self.residual]
        if not derivatives:
            return residual, []
        zero = require_flint().arb(0)
        return residual, [[zero if x is None else here[x] for x in row] for row in self.jacobian]

    def run(self, scalars: Scalars, average: Average, root: Root) -> None:
        """Add the root and what follows from it to the scalars."""
        scalars.update(zip(self.unknowns, root(self, scalars), strict=True))
        _run(self.after, scalars, average, _no_root)


BallStep = BallAssigns | BallLoop | BallLinear | BallNewton


@dataclass(frozen=True, eq=False)
class BallProgram:
    """A program prepared for balls.

    Parameters
    ----------
    program : Program
    results : sequence of str
        Outputs and unknowns that are wanted; others are left out if nothing needs them.

    Raises
    ------
    UnsupportedExpressionError
        If the program has passes over data or moving panels, further Gaussian variables at a node,
        or roots inside of expressions; the message names it.
    """

    program: Program
    results: tuple[str, ...]

    def __post_init__(self) -> None:
        _refuse(self.program)

    @cached_property
    def steps(self) -> tuple[BallStep, ...]:
        """The steps that the results need."""
        needed = {x for x in self.program.outputs if str(x) in self.results}
        return tuple(_prepared(self.program.steps, needed, self.program.tables)[0])

    @property
    def tables(self) -> tuple[sp.Symbol, ...]:
        """All tables, the node first."""
        return self.program.tables

    def run(self, parameters: Mapping[str, Ball], average: Average, root: Root) -> dict[str, Ball]:
        """Return enclosures of the results.

        Parameters
        ----------
        parameters : mapping from str to ball
        average : callable
            Takes a :class:`BallLoop` and all scalars; returns enclosures of its sums, in order.
        root : callable
            Takes a :class:`BallNewton` and all scalars; returns enclosures of its unknowns.

        Raises
        ------
        CertificationError
            If a linear system is not proven to be regular, or a result is not finite.
        """
        scalars = {x: parameters[str(x)] for x in self.program.parameters if str(x) in parameters}
        _run(self.steps, scalars, average, root)
        found = {str(x): scalars[x] for x in self.program.outputs if str(x) in self.results}
        for name, value in found.items():
            if not value.is_finite():
                raise CertificationError(f"{name} has no finite enclosure at this precision")
        return found


def _run(steps: Sequence[BallStep], scalars: Scalars, average: Average, root: Root) -> None:
    for step in steps:
        step.run(scalars, average, root)


def _no_root(block: BallNewton, scalars: Scalars) -> Sequence[Ball]:
    raise AssertionError("a Newton block holds no other")


def _prepared(
    steps: Sequence[Step],
    needed: set[sp.Symbol],
    tables: tuple[sp.Symbol, ...],
    decided: bool = False,
) -> tuple[list[BallStep], set[sp.Symbol]]:
    """Return what is needed of the steps, in order, and what these need from before."""
    needed = set(needed)
    kept: list[BallStep | Assign] = []
    for step in reversed(steps):
        if isinstance(step, Assign | LinearSolve):
            if not needed.isdisjoint(step.writes):
                needed = needed - step.writes | step.reads
                kept.append(step if isinstance(step, Assign) else BallLinear(step))
        elif isinstance(step, NodeLoop):
            loop, needed = _prepared_loop(step, needed, tables, decided)
            if loop is not None:
                kept.append(loop)
        else:
            block, needed = _prepared_newton(step, needed, tables)
            if block is not None:
                kept.append(block)
    return _grouped(kept[::-1], decided), needed


def _prepared_loop(
    loop: NodeLoop, needed: set[sp.Symbol], tables: tuple[sp.Symbol, ...], decided: bool
) -> tuple[BallLoop | None, set[sp.Symbol]]:
    sums = tuple(a for a in loop.sums if a.target in needed)
    if not sums:
        return None, needed
    inside = {x for a in sums for x in a.value.free_symbols}
    local: list[Assign] = []
    for assignment in reversed(loop.locals):
        if assignment.target in inside:
            inside = inside - {assignment.target} | assignment.value.free_symbols
            local.append(assignment)
    needed = needed - {a.target for a in sums} | inside - {*tables}
    return BallLoop(tables, tuple(local[::-1]), sums, decided), needed


def _prepared_newton(
    block: Newton, needed: set[sp.Symbol], tables: tuple[sp.Symbol, ...]
) -> tuple[BallNewton | None, set[sp.Symbol]]:
    written = block.writes
    if needed.isdisjoint(written):
        return None, needed
    # The sizes of their terms make residuals of floats comparable; an absolute value under an
    # average is not analytic, and a proof needs none of them.
    plain = [
        Assign(step.target, sp.S.One)
        if isinstance(step, Assign) and step.target in block.scales
        else step
        for step in block.body
    ]
    block = replace(block, body=tuple(plain))
    body, jacobian = with_derivatives(block)
    wanted = {x for row in jacobian for x in row if x is not None}
    values, from_values = _prepared(block.body, {*block.residual}, tables)
    slopes, from_slopes = _prepared(body, {*block.residual} | wanted, tables, True)
    after, from_after = _prepared(block.body, needed & written - {*block.unknowns}, tables)
    before = from_values | from_slopes | from_after | (needed - written)
    found = BallNewton(
        unknowns=block.unknowns,
        logarithmic=block.logarithmic,
        values=tuple(values),
        slopes=tuple(slopes),
        after=tuple(after),
        residual=block.residual,
        jacobian=jacobian,
    )
    return found, before - {*block.unknowns}


def _grouped(steps: Sequence[BallStep | Assign], decided: bool) -> list[BallStep]:
    found: list[BallStep] = []
    run: list[Assign] = []
    for step in steps:
        if isinstance(step, Assign):
            run.append(step)
            continue
        if run:
            found.append(BallAssigns(tuple(run), decided))
            run = []
        found.append(step)
    return [*found, BallAssigns(tuple(run), decided)] if run else found


def _refuse(program: Program) -> None:
    reasons = {
        Data: "averages over data are given by the user, not by a law that can be integrated",
        Panels: "its integrals are cut at places that move with the unknowns",
    }
    for loop in program.loops():
        if not isinstance(loop.measure, Line):
            raise UnsupportedExpressionError(
                f"{program.name} is outside of what can be certified: {reasons[type(loop.measure)]}"
            )
    if program.inner_nodes:
        raise UnsupportedExpressionError(
            f"{program.name} is outside of what can be certified: it averages functions of "
            f"{len(program.inner_nodes) + 1} Gaussian variables at once"
        )
    if program.roots:
        names = ", ".join(root.name for root in program.roots)
        raise UnsupportedExpressionError(
            f"{program.name} is outside of what can be certified: its functions {names} are "
            "defined by equations of their own, as those of convex losses"
        )
