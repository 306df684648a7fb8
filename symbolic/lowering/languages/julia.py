"""A kernel as a Julia module that needs no package.

The functions are those of the C kernel in another syntax. Nothing here runs Julia: the syntax of
the files is checked, and they say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Template
from typing import TYPE_CHECKING

from ....runtime.rules import REACH
from ...printing.printers import JuliaPrinter
from ...printing.spellings import JuliaLanguage
from ..documentation import about
from ..driver import LEVELS, BakedTables
from ..scalar_grids import MOST_FIRST_POINTS, MOST_POINTS
from ..scalar_tables import PANEL_ORDER, gauss_rule
from .kernel_parts import KernelParts

if TYPE_CHECKING:
    from ..lowered import LoweredSystem

MODULE = Template('''\
"""
${about}
"""
module ${name}

export solve_point, solve_many, PARAMETERS, OUTPUTS

const PARAMETERS = (${inputs})
const OUTPUTS = (${outputs})
# Data sets: their columns with what every number in them has to satisfy.
const DATA = (${data})

# Base throws an error where C returns NaN; Newton's method looks at NaN and goes back.
sqrt(x) = x >= 0.0 ? Base.sqrt(x) : NaN
log(x) = x >= 0.0 ? Base.log(x) : NaN
log1p(x) = x >= -1.0 ? Base.log1p(x) : NaN
asin(x) = abs(x) <= 1.0 ? Base.asin(x) : NaN
acos(x) = abs(x) <= 1.0 ? Base.acos(x) : NaN
acosh(x) = x >= 1.0 ? Base.acosh(x) : NaN
atanh(x) = abs(x) <= 1.0 ? Base.atanh(x) : NaN
sin(x) = isfinite(x) ? Base.sin(x) : NaN
cos(x) = isfinite(x) ? Base.cos(x) : NaN
tan(x) = isfinite(x) ? Base.tan(x) : NaN
power(x, y) = x >= 0.0 || isinteger(y) ? x^y : NaN

${helpers}${constants}${functions}
# Rules from fine to coarse, each with half the nodes of the one before: columns of numbers.
mutable struct Rules
    data::Vector{Vector{Float64}}
    reach::Float64
    step::Float64
    levels::Dict{Int,Vector{Vector{Vector{Float64}}}}
    table_errors::Dict{Int,Float64}  # relative to the largest value of a table
end

# Returns zero, or one where no rule does.
function make_level(rules, level, p)
    haskey(rules.levels, level) && return 0
    found = [Vector{Float64}[] for k in 1:3]
    table_error = 0.0
${make}    rules.levels[level] = found
    rules.table_errors[level] = table_error
    return 0
end

# Solve a row on the rules of a level; what is known about them goes with the solution.
function solve_level(rules, level, p, values, errors, state)
    now = rules.levels[level]
    ${solve_rows}
    state[4] = rules.table_errors[level]
    return nothing
end

${driver}
function checked_data(data)
    arrays = Vector{Float64}[]
    for (name, columns) in DATA
        data !== nothing && haskey(data, name) || error("the data $$name are missing")
        given = data[name]
        found = [collect(Float64, given[column]) for (column, _) in columns]
        n = length(found[1])
        weight = haskey(given, "weight") ? collect(Float64, given["weight"]) : fill(1.0, n)
        if n == 0 || any(length(x) != n || !all(isfinite, x) for x in [weight, found...])
            error("all columns of the data $$name must hold the same number of finite numbers")
        end
        for ((column, test), x) in zip(columns, found)
            all(test, x) || error("column $$column of the data $$name leaves its domain")
        end
        if !all(x -> x >= 0.0, weight) || !(sum(weight) > 0.0)
            error("weight of the data $$name must hold nonnegative numbers, some > 0")
        end
        push!(arrays, weight / sum(weight), found...)
    end
    return arrays
end

function admissible(row)
    all(isfinite, row) || return false
${domains}    return true
end

"""
    solve_many(parameters; data=nothing, rtol=1e-11)

Solve at every row of a matrix with the columns `PARAMETERS`. Returns values and their estimated
errors, with the columns `OUTPUTS`, and for each row the number of Newton iterations (negative if
there is no solution; its values are NaN, its errors infinite), the relative residual and the
rounding.
${data_text}"""
function solve_many(parameters::AbstractMatrix; data=nothing, rtol=1e-11)
    n = size(parameters, 1)
    values, errors = fill(NaN, n, length(OUTPUTS)), fill(Inf, n, length(OUTPUTS))
    info = zeros(n, 3)
    arrays = checked_data(data)
    rules, made_for = Rules(arrays, 0.0, 0.0, Dict(), Dict()), nothing
    for i in 1:n
        row = collect(Float64, parameters[i, :])
        if !admissible(row)
            info[i, :] = [-1.0, Inf, Inf]
            continue
        end
        p = Float64[${load}]
        # The tables of the row before stay where their parameters are the same.
        needed = Float64[${table_arguments}]
        if made_for != needed
            rules, made_for = Rules(arrays, 0.0, 0.0, Dict(), Dict()), needed
        end
        found, found_errors, state = zeros(${n_all_outputs}), zeros(${n_all_outputs}), zeros(5)
        if solve_row(rules, p, rtol, found, found_errors, state) != 0
            info[i, :] = [-1.0, Inf, Inf]
            continue
        end
        values[i, :], errors[i, :] = found[[${places}]], found_errors[[${places}]]
        info[i, :] = state[1:3]
        if !(info[i, 1] >= 0.0) || !all(isfinite, values[i, :])
            values[i, :] .= NaN
            errors[i, :] .= Inf
            info[i, 1] = -max(abs(info[i, 1]), 1.0)
        end
    end
    return values, errors, info
end

"""
    solve_point(parameters; data=nothing, rtol=1e-11)

Solve at one point, a dictionary from names to numbers. Returns a dictionary from the names of
`OUTPUTS` to pairs of value and estimated error.
"""
function solve_point(parameters; data=nothing, rtol=1e-11)
    for name in PARAMETERS
        haskey(parameters, name) || error("the parameter $$name is missing")
    end
    row = Float64[parameters[name] for name in PARAMETERS]
    values, errors, info = solve_many(reshape(row, 1, length(row)); data=data, rtol=rtol)
    info[1, 1] >= 0.0 || error("no solution found at $$parameters")
    return Dict(name => (values[1, k], errors[1, k]) for (k, name) in enumerate(OUTPUTS))
end

end
''')

LINE = Template("""\
    if level == 0
        rules.reach = ${reach}
        rules.reach < 0.0 && return 1
        rules.step = ${first_step}
    end
    farthest, step = line_end(rules.reach, level, 0), rules.step * rule_coarseness(level, 0)
    n = outer_count(${table_arguments_}step, farthest)
    n < 0 && return 1
    weight, node, tables = zeros(n), zeros(n), zeros(${n_tables} * n)
    outer_nodes(${table_arguments_}step, farthest, weight, node)
${tabulate}    columns = [weight, node]
    append!(columns, [tables[((t - 1) * n + 1):(t * n)] for t in 1:${n_tables}])
    for k in 1:3
        stride = 2^(k - 1)
        append!(found[k], [column[1:stride:n] for column in columns])
        stop = line_end(rules.reach, level, k - 1)
        inside = stop < farthest ? abs.(found[k][2]) .<= stop : true
        found[k][1] = stride * found[k][1] .* inside
    end
""")
SPLIT = Template("""\
    if level == 0
        rules.reach = ${reach}
        rules.reach < 0.0 && return 1
        rules.step = ${first_step}
    end
    for k in 1:3
        stop = line_end(rules.reach, level, k - 1)
        step = rules.step * rule_coarseness(level, k - 1)
        n = outer_count(${table_arguments_}step, stop)
        n < 0 && return 1
        weight, node, tables = zeros(n), zeros(n), zeros(${n_tables} * n)
        outer_nodes(${table_arguments_}step, stop, weight, node)
    ${tabulate}        push!(found[k], weight, node)
        append!(found[k], [tables[((t - 1) * n + 1):(t * n)] for t in 1:${n_tables}])
    end
""")
# The grid of outer and inner nodes, from the nodes of the line.
POINTS = Template("""\
    for k in 1:3
        n, line = length(found[k][1]), reduce(vcat, found[k])
        rule = (rule_coarseness(level, k - 1), line_end(rules.reach, level, k - 1))
        total = product_points(n, line, ${table_arguments_}rule..., 0, Float64[])
        total < 0 && return 1
        total > (level == 0 ? ${most_first_points} : ${most_points}) && return 1
        columns = zeros(${n_point_columns} * total)
        product_points(n, line, ${table_arguments_}rule..., total, columns)
        found[k] = [columns[((c - 1) * total + 1):(c * total)] for c in 1:${n_point_columns}]
    end
""")
TABULATE = Template("""\
    distance = tabulate(node, ${table_arguments_}tables)
    distance < 0.0 && return 1
    table_error = max(table_error, distance)
""")
BAKED = """\
    for (k, rule) in enumerate((FINE_RULE, MEDIUM_RULE, COARSE_RULE))
        append!(found[k], rule)
    end
"""
PANELS = Template("""\
    for k in 1:3
        n = rule_panel_count(level, k - 1)
        weight, node = zeros(${panel_order} * n), zeros(${panel_order} * n)
        rule_reference(n, weight, node)
        push!(found[k], weight, node)
    end
""")


def files(
    lowered: LoweredSystem, tables: BakedTables | None = None, name: str | None = None
) -> dict[str, str]:
    """Return the module; see :meth:`..lowered.LoweredSystem.files`."""
    language = JuliaLanguage(JuliaPrinter({root.name: root.name for root in lowered.program.roots}))
    parts = KernelParts(lowered, language, tables)
    name = lowered.system.name if name is None else name
    # A module must not have the name of something that it uses.
    module = f"{name}_" if name.rstrip("_") in language.reserved else name
    return {f"{name}.jl": _module(lowered, parts, language, module)}


def _module(lowered: LoweredSystem, parts: KernelParts, language: JuliaLanguage, name: str) -> str:
    has_tables = bool(parts.plan and parts.plan.tables)
    values: dict[str, object] = {
        "table_arguments": parts.table_arguments,
        "table_arguments_": f"{parts.table_arguments}, " if parts.table_inputs else "",
        "n_tables": len(parts.plan.tables) if parts.plan else 0,
        "panel_order": PANEL_ORDER,
        "n_point_columns": len(lowered.program.tables) + 1,
        "most_points": MOST_POINTS,
        "most_first_points": MOST_FIRST_POINTS,
        "first_step": parts.first_step,
    }
    values["reach"] = (
        f"outer_reach({values['table_arguments']})" if has_tables else parts.first_reach
    )
    values["tabulate"] = TABULATE.substitute(values) if has_tables else ""
    make = ""
    if parts.plan is not None:
        line = SPLIT if parts.plan.breaks else LINE
        make += line.substitute(values)
        make += POINTS.substitute(values) if parts.product is not None else ""
    elif parts.baked is not None:
        make += BAKED
    if lowered.program.has_panels:
        make += PANELS.substitute(values)
    kind = "Julia, no packages; syntax checked only: it has not been run"
    text = "\n".join(about(lowered, kind, parts.fixed))
    return MODULE.substitute(
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
    # Columns of the line come first, then those of panels.
    first = {"line": 1, "panel": len(lowered.program.tables) + 2 if lowered.program.tables else 1}
    arguments, data = [], 0
    for kind, name, rule, place, _ in parts.row_arguments():
        if kind == "given":
            arguments.append(given[name])
        elif kind == "reach":
            arguments.append(f"panel_end({REACH}, level, {rule})")
        elif kind == "data":
            data += 1
            arguments.append(f"rules.data[{data}]")
        else:
            arguments.append(f"now[{rule + 1}][{first[kind] + place}]")
    return f"solve_rows({', '.join(arguments)})"
