"""From a system of equations to a program: the passes in their order.

hoist → (measures) → fuse → deltas → accuracy → schedule and share. Each pass is a function in a
module of its own, and the text of what it made is kept, to be read with ``inspect``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import sympy as sp

from ...errors import EmissionError
from ..expressions.averages import Binding, DataAverage, outermost as nodes_of
from ..gaussian.accuracy import rewrite_for_accuracy
from ..gaussian.expectation import GaussianExpectation
from ..gaussian.jumps import integrate_deltas
from ..gaussian.ramp_moments import RampAverage
from ..losses.proximal import MoreauEnvelope, Proximal
from ..systems.equations import Equation, block_structure
from ..systems.random_matrix import MarchenkoPasturAverage
from ..systems.saddle_point import SaddlePointSystem
from .fuse import Explicit, FreshSymbols, NewtonTask, Task, cancels, fuse, magnitude
from .hoist import HoistedSystem, hoist, outermost
from .inner_averages import InnerAverage, InnerScale
from .measures import break_points, describe_measures
from .parity import averages_are_even
from .program import Assign, Line, LinearSolve, Newton, Program, Step, rename, validate
from .rows import SUM_ROUNDING
from .schedule import Scheduler


def check_code_names(symbols: Sequence[sp.Symbol]) -> None:
    """Refuse symbols of a program that share a name or whose name is no identifier.

    Words that a language reserves are no concern here: each target escapes its own.
    """
    names = [s.name for s in symbols]
    for name in names:
        if not name.isidentifier():
            raise EmissionError(
                f"{name!r} cannot be a name in code: give its symbol another with identifiers="
            )
        if names.count(name) > 1:
            raise EmissionError(
                f"two symbols of the program (parameter, unknown, table or output) have the name "
                f"{name!r}: rename one of them, with identifiers= where it is a symbol"
            )


def _measures_text(hoisted: Any, nodes: Mapping[Any, Any]) -> str:
    return describe_measures(_places(hoisted), hoisted.node, nodes)


def lower_to_program(
    system: SaddlePointSystem,
    stages: MutableMapping[str, Callable[[], str]],
    domains: Mapping[sp.Symbol, sp.Interval],
) -> tuple[Program, HoistedSystem]:
    """Run all passes.

    Parameters
    ----------
    system : SaddlePointSystem
    stages : mutable mapping from str to callable
        Receives what returns the text of each stage: printing costs as much as a pass, and is
        done for those who ask.
    domains : mapping from Symbol to Interval
        Of unknowns, those that have coordinates in the system, too.

    Raises
    ------
    EmissionError
        If an expression cannot become code, or a name cannot be a name there.
    """
    stages["equations"] = partial(_text, system.equations)
    hoisted = hoist(system)
    stages["hoisted"] = hoisted.__str__
    structure = block_structure(hoisted.equations)
    stages["blocks"] = structure.describe
    inner_nodes = {} if hoisted.product is None else hoisted.product.nodes
    stages["quadrature"] = partial(_measures_text, hoisted, inner_nodes)

    symbols = {x: sp.Symbol(c, **x.assumptions0) for x, c in hoisted.identifiers.items()}
    product = hoisted.product
    functions = {} if product is None else dict(product.nodes)
    functions |= {f: sp.Symbol(table_name(f), real=True) for f in hoisted.definitions}
    if product is not None:
        functions |= {f: sp.Symbol(table_name(f), real=True) for f in product.definitions}
    unknowns = tuple(symbols[x] for block in structure.blocks for x in block.unknowns)
    # The first result decides how fine a rule has to be: none that is zero in any case.
    vanishing = {symbols[e.unknown] for e in hoisted.equations if e.value == 0}
    results_first = sorted(unknowns, key=vanishing.__contains__)
    output_symbols = tuple(sp.Symbol(code, real=True) for code in system.outputs)
    named = [
        *(symbols[p] for p in system.parameters), hoisted.node, *functions.values(),
        *unknowns, *output_symbols,
    ]  # fmt: skip
    check_code_names(named)
    taken = {x.name for x in named}
    fresh = FreshSymbols(taken)
    tasks = fuse(structure, symbols, system.start, fresh)
    magnitudes = {s: _magnitude_symbol(s, taken) for s in output_symbols}
    results = []
    for s, value in zip(output_symbols, hoisted.outputs.values(), strict=True):
        renamed = rename(value, symbols)
        results += [Assign(s, renamed), Assign(magnitudes[s], magnitude(renamed))]
    tasks = (*tasks, Explicit(tuple(results)))
    stages["fused"] = partial(_text, tasks)
    tasks = tuple(_mapped(_mapped(task, integrate_deltas), _accurate) for task in tasks)
    stages["accurate"] = partial(_text, tasks)

    parameters = tuple(symbols[p] for p in system.parameters)
    on_grid = () if product is None else (*product.nodes, *product.definitions)
    inner = [functions[f] for f in on_grid]
    scheduler = Scheduler(hoisted.node, functions, fresh, inner=inner)
    steps = _schedule(tasks, scheduler, parameters, system.safeguarded)
    ranges = {symbols[x]: domain for x, domain in domains.items()}
    bounds: list[Assign] = []
    for condition in system.conditions:
        value = rename(condition, symbols)
        # What rounding leaves of a difference is no violation.
        margin = sp.Float(SUM_ROUNDING) * magnitude(value)
        bounds.append(Assign(fresh("bound_"), _accurate(value + margin)))
        ranges[bounds[-1].target] = sp.Interval(0, sp.oo)
    terms: dict[sp.Symbol, sp.Symbol] = {}
    for item in (item for task in tasks for item in task.items if isinstance(item, Assign)):
        x, value = item.target, item.value
        if x in unknowns and not value.has(Binding, RampAverage) and cancels(value, terms):
            terms[x] = _magnitude_symbol(x, taken)
            bounds.append(Assign(terms[x], magnitude(value, terms)))
    # By themselves, so that no result changes with what it shares.
    steps += scheduler.order(bounds, {*parameters}.union(*(step.writes for step in steps)))
    program = Program(
        name=system.name,
        documentation=system.title or system.name,
        parameters=parameters,
        tables=(),
        steps=steps,
        outputs=(*output_symbols, *results_first, *magnitudes.values(), *terms.values()),
        magnitudes=magnitudes,
        even=False,
        roots=scheduler.roots.functions,
        ranges=ranges,
        terms=terms,
    )
    if any(isinstance(loop.measure, Line) for loop in program.loops()):
        program = replace(program, tables=(hoisted.node, *functions.values()))
        integrands = [
            n.args[0]
            for n in _places(hoisted)
            if not (isinstance(n, DataAverage) or break_points(n.args[0], hoisted.node))
        ]
        program = replace(
            program,
            even=averages_are_even(integrands, hoisted.node, hoisted.definitions, product),
            inner_nodes=() if product is None else product.symbols,
        )
    validate(program)
    stages["program"] = program.__str__
    return program, hoisted


def _magnitude_symbol(output: sp.Symbol, taken: Collection[str]) -> sp.Symbol:
    name = f"{output}_magnitude"
    while name in taken:
        name += "_"
    return sp.Symbol(name, real=True)


def table_name(function: sp.Expr) -> str:
    """Return the code name of a tabulated function such as ``mu_2^2(kappa)``."""
    return str(function.func).replace("^2", "_squared")


def _schedule(
    tasks: Iterable[Task],
    scheduler: Scheduler,
    parameters: tuple[sp.Symbol, ...],
    safeguarded: bool,
) -> tuple[Step, ...]:
    known = set(parameters)
    steps: list[Step] = []
    waiting: list[Assign | LinearSolve] = []
    for task in tasks:
        if isinstance(task, Explicit):
            waiting += task.items
            continue
        # Newton needs what stands before it, so everything so far is put in order first.
        steps += scheduler.order(waiting, known)
        known = known.union(*(item.writes for item in waiting))
        waiting = []
        body = scheduler.order(task.items, known | set(task.unknowns))
        steps.append(
            Newton(
                unknowns=task.unknowns,
                start=task.start,
                body=tuple(step for step in body if not isinstance(step, LinearSolve)),
                residual=task.residual,
                jacobian=task.jacobian,
                logarithmic=task.logarithmic,
                fixed_point=task.fixed_point if safeguarded else (),
                safeguarded=safeguarded,
                scales=task.scales,
                losses=task.losses if any(task.losses) else (),
            )
        )
        # Eliminated unknowns hold their values from the last evaluation, at the solution.
        known |= {*task.unknowns, *task.eliminated}
    steps += scheduler.order(waiting, known)
    return tuple(steps)


def _text(parts: Iterable[Task | Equation]) -> str:
    return "\n".join(map(str, parts))


def _mapped(task: Task, change: Callable[[sp.Expr], sp.Expr]) -> Task:
    """Apply a change to every value of a task."""
    items = tuple(
        Assign(i.target, change(i.value)) if isinstance(i, Assign) else i for i in task.items
    )
    if isinstance(task, NewtonTask):
        return replace(task, items=tuple(i for i in items if isinstance(i, Assign)))
    return Explicit(items)


def _accurate(value: sp.Expr) -> sp.Expr:
    """Rewrite integrands and the scalar around them, each by itself."""
    averages = nodes_of(value, GaussianExpectation, DataAverage, MarchenkoPasturAverage)
    marks = {n: sp.Dummy(real=True) for n in averages}
    found = {
        mark: n
        if isinstance(n, MarchenkoPasturAverage)
        else n.func(_accurate_integrand(n.args[0]), *n.args[1:])
        for n, mark in marks.items()
    }
    return rewrite_for_accuracy(value.xreplace(marks)).xreplace(found)


# Derivatives by seven unknowns share their integrands.
@lru_cache(maxsize=512)
def _accurate_integrand(integrand: sp.Expr) -> sp.Expr:
    # A proximal operator is one number to the expression around it, and written out a long one.
    # So are averages over inner nodes, and the scale of one is a number to its integrand. Averages
    # of ramps are written out where they are computed.
    parts = nodes_of(integrand, Proximal, MoreauEnvelope, InnerAverage, InnerScale, RampAverage)
    marks = {n: sp.Dummy(real=True, positive=n.is_positive) for n in parts}
    found = {mark: _accurate_part(n) for n, mark in marks.items()}
    return rewrite_for_accuracy(integrand.xreplace(marks)).xreplace(found)


def _accurate_part(part: sp.Expr) -> sp.Expr:
    if isinstance(part, InnerAverage):
        return InnerAverage(_accurate_integrand(part.function), part.variables)
    if isinstance(part, InnerScale):
        return InnerScale(sp.Tuple(*map(_accurate_integrand, part.exponents)), part.variables)
    if isinstance(part, RampAverage):
        return part.func(*map(rewrite_for_accuracy, part.args))
    return rewrite_for_accuracy(part)


def _places(hoisted: HoistedSystem) -> dict[sp.Expr, str]:
    found: dict[sp.Expr, str] = {}
    for e in hoisted.equations:
        for node in outermost(e.residual):
            found.setdefault(node, str(e.unknown))
    for name, value in hoisted.outputs.items():
        for node in outermost(value):
            found.setdefault(node, name)
    return found
