"""Scales on which integrands vary, as functions in the files for Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import sympy as sp

from ..widths import integrand_widths
from .kernel_parts import baked_step
from .printers import NumpyPrinter

if TYPE_CHECKING:
    from ..baked import BakedTables
    from ..lowered import LoweredSystem

_STEPS = {
    "computed": '''
    """Return the step of the first rule on the line."""
    return FIRST_STEP * float(outer_scale(np.zeros(1), *values))
''',
    "grid": '''
    """Return the smallest step of the first grid."""
    return product_grid(values).step
''',
    "panels": '''
    """Return the step of a rule on the line, where there is none."""
    return FIRST_STEP
''',
    "given": '''
    """Return the distance of the nodes of the first rule, which this file holds."""
    return {step!r}
''',
}


def width_text(
    lowered: LoweredSystem, tables: BakedTables | None, fixed: Mapping[str, float]
) -> str:
    """Return ``integrand_width(rows, values)`` and ``first_step(values)`` with their constants.

    Parameters
    ----------
    lowered : LoweredSystem
    tables : BakedTables or None
        What the file holds; else it computes tables if there are any.
    fixed : mapping from str to float
        Parameters that are no arguments of the file.
    """
    program = lowered.program
    free = [str(p) for p in program.parameters if str(p) not in fixed]
    symbols: dict[str, sp.Expr] = {name: sp.Float(x, 17) for name, x in fixed.items()}
    symbols |= {name: sp.Symbol(f"p_{k}") for k, name in enumerate(free)}
    places = {sp.Symbol(f"p_{k}"): f"rows[:, {k}]" for k in range(len(free))}
    for k, x in enumerate(program.outputs):
        symbols[str(x)] = sp.Symbol(f"u_{k}")
        places[sp.Symbol(f"u_{k}")] = f"values[:, {k}]"
    found = []
    if program.tables or program.has_panels:
        for width in integrand_widths(lowered):
            if all(str(x) in symbols for x in width.free_symbols):
                found.append(width.xreplace({x: symbols[str(x)] for x in width.free_symbols}))
    read = sorted(set().union(*(w.free_symbols for w in found)), key=str)
    lines = [f"        {x} = {places[x]}" for x in read]
    lines += [f"        found = np.fmin(found, abs({NumpyPrinter().print(w)}))" for w in found]
    if lines:
        lines.insert(0, '    with np.errstate(all="ignore"):')
    kind, step = "panels", 0.0
    if tables is not None and program.tables:
        kind, step = "given", baked_step(tables, str(program.tables[0]))
    elif program.tables:
        kind = "grid" if program.inner_nodes else "computed"
    return "\n".join(
        [
            "def integrand_width(rows, values):",
            '    """Return the smallest scale on which integrands vary at solutions."""',
            "    found = np.full(len(rows), np.inf)",
            *lines,
            "    return found",
            "",
            "",
            f"def first_step(values):{_STEPS[kind].format(step=step).rstrip()}",
        ]
    )
