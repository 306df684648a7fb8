"""What is said about code: equations, parameters and source; the functions that it calls."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from ..printing.special_functions import TARGETS, is_known, names
from ..saddle_point import SaddlePointSystem
from .program import Assign, Newton, Program


def documentation(system: SaddlePointSystem) -> str:
    """Return title, source, equations, definitions, parameters and outputs as plain text."""
    lines = [system.title or system.name, ""]
    if system.source:
        lines += [f"Source: {system.source}.", ""]
    lines += ["Equations (E_z is the mean over z ~ N(0, 1)):", ""]
    for e in system.equations:
        left, right = (0, e.residual) if e.value is None else (e.unknown, e.value)
        lines.append(f"    {left} = {right}")
    if system.definitions:
        lines += ["", f"with the functions of {system.node}:", ""]
        lines += [f"    {f} = {value}" for f, value in system.definitions.items()]
    lines += ["", "Parameters:", ""]
    lines += [f"    {system.identifiers[p]}: {_what(p, system)}" for p in system.parameters]
    if system.outputs:
        lines += ["", "Outputs, besides the unknowns of the equations:", ""]
        lines += [f"    {name} = {value}" for name, value in system.outputs.items()]
    lines += ["", "All quantities are pure numbers, in the scaling of the source."]
    return "\n".join(lines)


def domain_of(symbol: sp.Symbol) -> str:
    """Return the numbers that a symbol's assumptions admit, in words."""
    if symbol.is_positive:
        return "positive"
    if symbol.is_negative:
        return "negative"
    if symbol.is_nonnegative:
        return "nonnegative"
    if symbol.is_nonpositive:
        return "nonpositive"
    return "(-1, 1)" if symbol.assumptions0.get("inside") else "real"


def _what(p: sp.Symbol, system: SaddlePointSystem) -> str:
    name = system.identifiers[p]
    alias = "" if str(p) == name else f"{p} of the equations, "
    return f"{alias}{domain_of(p)}"


def describe_functions(program: Program) -> str:
    """Return a table of the functions in a program and of what each target calls for them."""
    found: set[str] = set()
    for expr in _expressions(program):
        found |= {type(f).__name__ for f in expr.atoms(sp.Function) if is_known(type(f))}
        if any(abs(p.exp) == sp.S.Half for p in expr.atoms(sp.Pow)):
            found.add("sqrt")
    lines = []
    for name in sorted(found):
        lines.append(f"{name}:")
        lines += [f"    {t:8}{names(t).get(name, 'not known')}" for t in TARGETS]
    return "\n".join(lines) or "no functions, only arithmetic"


def _expressions(program: Program) -> Iterator[sp.Expr]:
    for root in program.roots:
        yield from (root.residual, root.slope, root.start)
    steps = list(program.steps)
    for step in steps:
        if isinstance(step, Newton):
            yield from step.start
            steps += step.body
        elif isinstance(step, Assign):
            yield step.value
    for loop in program.loops():
        yield from (a.value for a in (*loop.at_nodes, *loop.sums))
