"""The smallest scale on which integrands vary at a solution, as a function in every language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import sympy as sp

from ...printing.compiled import with_helpers
from ..widths import integrand_widths
from .language import Function, Kind, Language, Parameter
from .python_language import ArrayLanguage

if TYPE_CHECKING:
    from ..lowered import LoweredSystem


def width_function(lowered: LoweredSystem, language: Language) -> Function | None:
    """Return ``integrand_width`` of all parameters and unknowns; None if nothing sets a scale.

    Scales that hold functions which the language lacks are left out.
    """
    program = lowered.program
    if not (program.tables or program.has_panels):
        return None
    unknowns = [lowered.identifiers[x] for x in lowered.system.unknowns]
    names = {str(p): sp.Symbol(f"p_{p}") for p in program.parameters}
    names |= {x: sp.Symbol(f"u_{x}") for x in unknowns}
    widths = [
        width.xreplace({x: names[str(x)] for x in width.free_symbols})
        for width in integrand_widths(lowered)
        if language.prints(width)
    ]
    if not widths:
        return None
    lines = ["width = inf"]
    for k in range(len(widths)):
        # A width that is no number tells nothing.
        lines += [f"value = abs(width_{k}_)", "width = value if value < width else width"]
    return Function(
        name="integrand_width",
        parameters=tuple(Parameter(str(x)) for x in names.values()),
        body="\n".join([*lines, "return width"]) + "\n",
        expressions={f"width_{k}_": w for k, w in enumerate(widths)},
        returns=Kind.REAL,
        documentation="Smallest scale in the node on which integrands vary at a solution.",
    )


def width_source(lowered: LoweredSystem) -> str:
    """Return a module that NumPy runs with ``integrand_width``; empty if nothing sets a scale."""
    language = ArrayLanguage()
    function = width_function(lowered, language)
    if function is None:
        return ""
    return with_helpers(language.source(function), language.printer)


def width_text(lowered: LoweredSystem, fixed: Mapping[str, float]) -> str:
    """Return ``width_at(rows, values)`` of a file for Python, with what it calls.

    Parameters
    ----------
    lowered : LoweredSystem
    fixed : mapping from str to float
        Parameters that are no arguments of the file.
    """
    language = ArrayLanguage()
    function = width_function(lowered, language)
    head = """def width_at(rows, values):
    \"\"\"Return the smallest scale on which integrands vary at solutions of rows.\"\"\"
"""
    if function is None:
        return f"{head}    return np.full(len(rows), np.inf)"
    free = [str(p) for p in lowered.program.parameters if str(p) not in fixed]
    outputs = [str(x) for x in lowered.program.outputs]
    arguments = [
        repr(fixed[str(p)]) if str(p) in fixed else f"rows[:, {free.index(str(p))}]"
        for p in lowered.program.parameters
    ]
    arguments += [
        f"values[:, {outputs.index(lowered.identifiers[x])}]" for x in lowered.system.unknowns
    ]
    call = f"    return integrand_width(\n        {', '.join(arguments)},\n    )"
    return f"{language.source(function)}\n\n{head}{call}"
