"""Lower a block-structured system of equations to a :class:`~.program.Program`.

Nonlinear blocks become Newton steps in the logarithms of their unknowns with the Jacobian derived
here, linear blocks become exact linear solves. Derivatives go through eliminated unknowns by the
chain rule, so nothing is substituted and nothing is differentiated twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import sympy as sp

from ...errors import EmissionError
from ..gaussian import GaussianExpectation
from ..saddle_point import Equation, FreeEnergy
from ..structure import BlockStructure, Component
from .parity import sums_are_even
from .program import Assign, LinearSolve, Newton, Program, Step, rename
from .schedule import Scheduler


def lower(
    free_energy: FreeEnergy,
    structure: BlockStructure,
    *,
    name: str,
    node: sp.Symbol,
    identifiers: Mapping[sp.Symbol, str],
    start: Mapping[sp.Symbol, sp.Expr],
    outputs: Mapping[str, sp.Expr],
    documentation: str = "",
) -> Program:
    """Lower the saddle point of a free energy to a program.

    Parameters
    ----------
    free_energy : FreeEnergy
        Gives parameters and the tabulated functions of the node.
    structure : BlockStructure
        Of its saddle-point equations.
    name : str
        Name of the program.
    node : Symbol
        Variable of the outer 𝔼 nodes.
    identifiers : mapping from Symbol to str
        Code names of variables and parameters.
    start : mapping from Symbol to Expr
        First values of Newton unknowns, in terms of the parameters.
    outputs : mapping from str to Expr
        Further quantities to return, evaluated at the saddle point.

    Raises
    ------
    EmissionError
        If a nonlinear block has an implicit equation or an unknown that is not positive, or a
        symbol has no identifier.
    """
    unknowns = {x for block in structure.blocks for x in block.unknowns}
    nameless = {*free_energy.parameters, *unknowns} - set(identifiers)
    if nameless:
        raise EmissionError(f"no identifier for {', '.join(sorted(map(str, nameless)))}")
    functions = {f: sp.Symbol(table_name(f), real=True) for f in free_energy.definitions}
    symbols = {x: sp.Symbol(code, **x.assumptions0) for x, code in identifiers.items()}
    names: dict[sp.Expr, sp.Symbol] = dict(symbols)
    scheduler = Scheduler(node, functions)
    parameters = tuple(symbols[p] for p in free_energy.parameters if p in symbols)
    known = set(parameters)
    steps: list[Step] = []
    solved: list[sp.Symbol] = []
    linear_items: list[Assign | LinearSolve] = []
    for block in structure.blocks:
        if not block.linear:
            # Newton needs what stands before it, so everything so far is put in order first.
            steps += scheduler.order(linear_items, known)
            linear_items = []
            known |= set(solved)
            newton, rest = _newton(block.components[0], names, start, scheduler, known)
            steps.append(newton)
            known |= set(newton.unknowns)
            linear_items += rest
        else:
            linear_items += [
                item
                for component in block.components
                for item in _linear(component, names, scheduler)
            ]
        solved += [symbols[x] for x in block.unknowns]
    results = {code: rename(value, names) for code, value in outputs.items()}
    output_symbols = tuple(sp.Symbol(code, real=True) for code in results)
    magnitudes = {s: sp.Symbol(f"{s}_magnitude", real=True) for s in output_symbols}
    for s, value in zip(output_symbols, results.values(), strict=True):
        linear_items += [Assign(s, value), Assign(magnitudes[s], _magnitude(value))]
    steps += scheduler.order(linear_items, known)
    program = Program(
        name=name,
        documentation=documentation,
        parameters=parameters,
        tables=(node, *functions.values()),
        steps=tuple(steps),
        outputs=(*output_symbols, *solved, *magnitudes.values()),
        magnitudes=magnitudes,
        even=False,
    )
    return replace(program, even=sums_are_even(program, node, free_energy.definitions, functions))


def _magnitude(value: sp.Expr) -> sp.Expr:
    """Replace every term of every sum by its absolute value, under 𝔼 too."""
    if isinstance(value, GaussianExpectation):
        return GaussianExpectation(_magnitude(value.integrand), value.variable)
    if value.is_Add or value.is_Mul:
        return value.func(*map(_magnitude, value.args))
    if value.is_Pow and value.exp.is_Integer and value.exp > 0:
        return _magnitude(value.base) ** value.exp
    return sp.Abs(value)


def table_name(function: sp.Expr) -> str:
    """Return the code name of a tabulated function such as ``mu_2^2(kappa)``."""
    return str(function.func).replace("^2", "_squared")


def _newton(
    component: Component,
    names: Mapping[sp.Expr, sp.Symbol],
    start: Mapping[sp.Symbol, sp.Expr],
    scheduler: Scheduler,
    known: set[sp.Symbol],
) -> tuple[Newton, list[Assign | LinearSolve]]:
    for equation in component.core:
        if equation.value is None or not equation.unknown.is_positive:
            raise EmissionError(
                f"Newton in log {equation.unknown} needs a positive unknown with an explicit "
                f"equation; declare it positive and solve its equation for it"
            )
        if equation.unknown not in start:
            raise EmissionError(f"no starting value for {equation.unknown}: add it to `start`")
    core = [(names[e.unknown], rename(e.value, names)) for e in component.core]
    eliminated = [(names[e.unknown], rename(e.value, names)) for e in component.eliminated]
    unknowns = tuple(x for x, _ in core)
    derivative = _total_derivatives(eliminated, unknowns)
    items = [Assign(e, value) for e, value in eliminated]
    residual, jacobian = [], []
    for i, (x, value) in enumerate(core):
        target = scheduler.fresh("target_")
        items.append(Assign(target, value))
        residual.append(scheduler.fresh("residual_"))
        items.append(Assign(residual[i], sp.log(x / target)))
        row = []
        for j, y in enumerate(unknowns):
            slope = _chain(value, y, eliminated, derivative)
            row.append(scheduler.fresh("jacobian_"))
            items.append(Assign(row[j], sp.Integer(int(i == j)) - y * slope / target))
        jacobian.append(tuple(row))
    body = scheduler.order(items, known | set(unknowns))
    newton = Newton(
        unknowns=unknowns,
        start=tuple(rename(start[e.unknown], names) for e in component.core),
        body=tuple(step for step in body if not isinstance(step, LinearSolve)),
        residual=tuple(residual),
        jacobian=tuple(jacobian),
    )
    # Eliminated unknowns hold their values from the last evaluation, which was at the solution.
    known |= {e for e, _ in eliminated}
    return newton, []


def _linear(
    component: Component, names: Mapping[sp.Expr, sp.Symbol], scheduler: Scheduler
) -> list[Assign | LinearSolve]:
    eliminated = [(names[e.unknown], rename(e.value, names)) for e in component.eliminated]
    items: list[Assign | LinearSolve] = [Assign(e, value) for e, value in eliminated]
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
        at_zero[e] = scheduler.fresh("at_zero_")
        items.append(Assign(at_zero[e], value.xreplace({**zero, **at_zero})))
    right, matrix = [], []
    for residual in residuals:
        right.append(scheduler.fresh("right_"))
        items.append(Assign(right[-1], -residual.xreplace({**zero, **at_zero})))
        row = []
        for y in unknowns:
            row.append(scheduler.fresh("matrix_"))
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
    indirect = (value.diff(e) * derivative[e, y] for e, _ in eliminated if value.has(e))
    return sp.Add(value.diff(y), *indirect)
