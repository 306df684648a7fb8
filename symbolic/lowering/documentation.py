"""What a generated file says about itself: equations, parameters, source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

if TYPE_CHECKING:
    from ..saddle_point import SaddlePointSystem


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
