"""A kernel as a Julia module that needs no package.

The functions are those of the C kernel in another syntax. Nothing here runs Julia: the syntax of
the files is checked, and they say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..baked import LEVELS, BakedTables
from . import julia_driver
from .about import about
from .julia_language import JuliaLanguage
from .kernel_parts import KernelParts, kernel_parts
from .language import Kind
from .product_functions import MOST_FIRST_POINTS, MOST_POINTS
from .refinement import REACH, first_line
from .rule_functions import PANEL_ORDER, gauss_rule

if TYPE_CHECKING:
    from ..lowered import LoweredSystem


def files(
    lowered: LoweredSystem, tables: BakedTables | None = None, name: str | None = None
) -> dict[str, str]:
    """Return the module of a kernel in Julia.

    Parameters
    ----------
    lowered : LoweredSystem
    tables : BakedTables, optional
        Tables to write into the module; else the kernel computes them from its parameters.
    name : str, optional
        Of the module, stem of the file; default: that of the system.

    Raises
    ------
    EmissionError
        If Julia has no function for a node of the program.
    """
    language = JuliaLanguage(root.name for root in lowered.program.roots)
    parts = kernel_parts(lowered, language, tables)
    name = lowered.system.name if name is None else name
    # A module must not have the name of something that it uses.
    module = f"{name}_" if name.rstrip("_") in language.reserved else name
    return {f"{name}.jl": _module(lowered, parts, language, module)}


def _module(lowered: LoweredSystem, parts: KernelParts, language: JuliaLanguage, name: str) -> str:
    arguments = [f"p[{parts.all_inputs.index(p) + 1}]" for p in parts.table_inputs]
    has_tables = bool(parts.plan and parts.plan.tables)
    values: dict[str, object] = {
        "table_arguments": ", ".join(arguments),
        "table_arguments_": "".join(f"{a}, " for a in arguments),
        "n_tables": len(parts.plan.tables) if parts.plan else 0,
        "panel_order": PANEL_ORDER,
        "n_point_columns": len(lowered.program.tables) + 1,
        "most_points": MOST_POINTS,
        "most_first_points": MOST_FIRST_POINTS,
    }
    first_reach, values["first_step"] = first_line(
        f"outer_width({values['table_arguments']})",
        grid=parts.product is not None,
        split=parts.plan is not None and bool(parts.plan.breaks),
    )
    values["reach"] = f"outer_reach({values['table_arguments']})" if has_tables else first_reach
    values["tabulate"] = julia_driver.TABULATE.substitute(values) if has_tables else ""
    make = ""
    if parts.plan is not None:
        line = julia_driver.SPLIT if parts.plan.breaks else julia_driver.LINE
        make += line.substitute(values)
        make += julia_driver.POINTS.substitute(values) if parts.product is not None else ""
    elif parts.baked is not None:
        make += julia_driver.BAKED
    if lowered.program.has_panels:
        make += julia_driver.PANELS.substitute(values)
    kind = "Julia, no packages; syntax checked only: it has not been run"
    text = "\n".join(about(lowered, kind, parts.fixed))
    return julia_driver.MODULE.substitute(
        values,
        about=text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$"),
        name=name,
        inputs="".join(f'"{p}", ' for p in parts.inputs),
        outputs="".join(f'"{o}", ' for o, _ in parts.results),
        data="".join(
            _data(name, columns, dict(parts.data_tests(data)))
            for (name, columns), data in zip(parts.data, parts.data_sets, strict=True)
        ),
        helpers="".join(f"{h.strip()}\n\n" for h in parts.helpers),
        constants=_constants(lowered, parts),
        functions="\n".join(language.source(f) for f in parts.functions),
        make=make,
        n_all_outputs=len(parts.all_outputs),
        driver=language.source(parts.driver),
        solve_rows=_solve_rows(lowered, parts),
        places=", ".join(str(k + 1) for _, k in parts.results),
        domains="".join(
            f"    {re.sub('row', f'row[{k + 1}]', test)} || return false\n"
            for k, test in parts.domain_tests()
        ),
        load=", ".join(
            repr(parts.fixed[p]) if p in parts.fixed else f"row[{parts.inputs.index(p) + 1}]"
            for p in parts.all_inputs
        ),
        data_text="" if not parts.data else (
            "`data` is a dictionary from names of data sets to dictionaries of columns; the column "
            '"weight"\nmay be left out.\n'
        ),
    )  # fmt: skip


def _data(name: str, columns: tuple[str, ...], tests: Mapping[int, str]) -> str:
    conditions = [f"row -> {tests[k]}" if k in tests else "isfinite" for k in range(len(columns))]
    listed = "".join(f'("{c}", {test}), ' for c, test in zip(columns, conditions, strict=True))
    return f'("{name}", ({listed})), '


def _constants(lowered: LoweredSystem, parts: KernelParts) -> str:
    text = ""
    if parts.uses_gauss:
        nodes, weights = gauss_rule()
        text += "# Gauss-Legendre rule on [0, 1].\n"
        text += f"const gauss_node = {list(nodes)}\nconst gauss_weight = {list(weights)}\n\n"
    if parts.baked is not None:
        names = ["weight", *map(str, lowered.program.tables)]
        text += f"# Rules with tables: {', '.join(names)}.\n"
        for level, columns in zip(LEVELS, parts.baked.levels, strict=True):
            listed = ",\n    ".join(str([float(x) for x in columns[n]]) for n in names)
            text += f"const {level.upper()}_RULE = [\n    {listed},\n]\n"
        text += "\n"
    return text


def _solve_rows(lowered: LoweredSystem, parts: KernelParts) -> str:
    given = {
        "first": "0",
        "stop": "1",
        "parameters": "p",
        "results": "values",
        "errors": "errors",
        "info": "state",
        "starts": f"fill(NaN, {len(lowered.program.newton_unknowns)})",
    }
    n_line = len(lowered.program.tables) + 1 if lowered.program.tables else 0
    arguments, places, data = [], dict.fromkeys(range(3), 0), 0
    for p in parts.solve_rows.parameters:
        rule = next((k for k, level in enumerate(LEVELS) if p.name.startswith(f"{level}_")), -1)
        if p.name in given:
            arguments.append(given[p.name])
        elif rule >= 0 and p.kind is Kind.REAL:
            arguments.append(f"panel_end({REACH}, level, {rule})")
        elif rule >= 0:
            # Columns of the line come first, then those of panels.
            if p.counted:
                places[rule] = n_line if p.name.endswith("panel_weight") else 0
            places[rule] += 1
            arguments.append(f"now[{rule + 1}][{places[rule]}]")
        else:
            data += 1
            arguments.append(f"rules.data[{data}]")
    return f"solve_rows({', '.join(arguments)})"
