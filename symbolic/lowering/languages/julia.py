"""A kernel as a Julia module that needs no package.

The functions are those of the C kernel in another syntax. Nothing here runs Julia: the syntax of
the files is checked, and they say so.
"""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

from ...printing.printers import JuliaPrinter
from ...printing.spellings import JuliaLanguage
from ..documentation import about
from ..driver import BakedTables
from .kernel_parts import KernelParts
from .levels import BAD_ARGUMENT
from .vectors import Vectors

if TYPE_CHECKING:
    from ..lowered import LoweredSystem

MODULE = Template('''\
"""
${about}
"""
module ${name}

export solve_point, solve_many, Rules, PARAMETERS, OUTPUTS

const PARAMETERS = (${inputs})
const OUTPUTS = (${outputs})

${library}
${helpers}${constants}${functions}
"""
    Rules()

Nodes and tables, which `solve_many` and `solve_point` keep there from one call to the next.
"""
mutable struct Rules
    made_for::Vector{Float64}
    line::Vector{Float64}
    data::Vector{Vector{Float64}}
    # Lengths of columns, columns, and the error of tables relative to the largest value of each.
    levels::Dict{Int,Tuple{Vector{Int},Vector{Float64},Float64}}
end
Rules() = Rules(Float64[], zeros(2), Vector{Float64}[], Dict())

# Returns zero, or -1 where no rule does.
function make_level(rules, level, p)
    haskey(rules.levels, level) && return 0
    counts = zeros(Int, 6)
    total = level_counts(level, p, rules.line, counts)
    total < 0 && return -1
    columns = zeros(total)
    table_error = level_columns(level, p, rules.line, counts, columns)
    table_error < 0.0 && return -1
${points}    rules.levels[level] = (counts, columns, table_error)
    return 0
end

# Solve a row on the rules of a level; what is known about them goes with the solution.
function solve_level(rules, level, p, values, errors, state)
    counts, columns, table_error = rules.levels[level]
    solve_columns(level, p, counts, columns, ${data_arrays}values, errors, state)
    state[4] = table_error
    return nothing
end

${driver}
# Data sets: their columns, and what refuses numbers that cannot be.
const DATA = (${data})

function checked_data(data)
    arrays = Vector{Float64}[]
    for (name, columns, check) in DATA
        data !== nothing && haskey(data, name) || error("the data $$name are missing")
        given = data[name]
        found = [collect(Float64, given[column]) for column in columns]
        n = length(found[1])
        weight = haskey(given, "weight") ? collect(Float64, given["weight"]) : fill(1.0, n)
        if n == 0 || any(length(x) != n for x in [weight, found...])
            error("all columns of the data $$name must hold the same number of numbers")
        end
        if !check(weight, found...)
            error("the data $$name must be finite and in their domains, their weights nonnegative")
        end
        push!(arrays, weight, found...)
    end
    return arrays
end

"""
    solve_many(parameters; data=nothing, rtol=1e-11, rules=Rules())

Solve at every row of a matrix with the columns `PARAMETERS`. Returns values and their estimated
errors, with the columns `OUTPUTS`, and for each row the number of Newton iterations (negative if
there is no solution; its values are NaN, its errors infinite), the relative residual and the
rounding.
${data_text}"""
function solve_many(parameters::AbstractMatrix; data=nothing, rtol=1e-11, rules=Rules())
    n = size(parameters, 1)
    values, errors = zeros(n, length(OUTPUTS)), zeros(n, length(OUTPUTS))
    info = zeros(n, 3)
    rules.data = checked_data(data)
    for i in 1:n
        row = collect(Float64, parameters[i, :])
        found, found_errors, state = zeros(${n_all_outputs}), zeros(${n_all_outputs}), zeros(5)
        status = admissible(row) ? 0 : ${bad_argument}
        if status == 0
            p = zeros(${n_all_parameters})
            load_parameters(row, p)
            if isempty(rules.made_for) || !same_tables(p, rules.made_for)
                empty!(rules.levels)
            end
            rules.made_for = [p; 0.0]
            status = solve_row(rules, p, rtol, found, found_errors, state)
        end
        row_values, row_errors = zeros(length(OUTPUTS)), zeros(length(OUTPUTS))
        finish_row(status, found, found_errors, state, row_values, row_errors)
        values[i, :], errors[i, :], info[i, :] = row_values, row_errors, state[1:3]
    end
    return values, errors, info
end

"""
    solve_point(parameters; data=nothing, rtol=1e-11, rules=Rules())

Solve at one point, a dictionary from names to numbers. Returns a dictionary from the names of
`OUTPUTS` to pairs of value and estimated error.
"""
function solve_point(parameters; data=nothing, rtol=1e-11, rules=Rules())
    for name in PARAMETERS
        haskey(parameters, name) || error("the parameter $$name is missing")
    end
    row = Float64[parameters[name] for name in PARAMETERS]
    parameters_row = reshape(row, 1, length(row))
    values, errors, info = solve_many(parameters_row; data=data, rtol=rtol, rules=rules)
    info[1, 1] >= 0.0 || error("no solution found at $$parameters")
    return Dict(name => (values[1, k], errors[1, k]) for (k, name) in enumerate(OUTPUTS))
end
${selfcheck}
end
''')

SELFCHECK = Template('''
"""
    selfcheck()

Solve at points of which the results are known; throw an error where a value is farther off than
its error.
"""
function selfcheck()
    points = [${points}]
    expected = [${expected}]
    allowed = [${allowed}]
    data = Dict(${data})
    for k in 1:${count}
        row = points[((k - 1) * length(PARAMETERS) + 1):(k * length(PARAMETERS))]
        found = solve_point(Dict(zip(PARAMETERS, row)); data=data)
        for (i, name) in enumerate(OUTPUTS)
            value, estimate = found[name]
            place = (k - 1) * length(OUTPUTS) + i
            if !(abs(value - expected[place]) <= estimate + allowed[place])
                error("$$name is $$value, expected $$(expected[place])")
            end
        end
    end
    return ${count}
end
''')
# The grid of outer and inner nodes, from the nodes of the line.
POINTS = """\
    points = zeros(Int, 3)
    total = point_counts(level, p, rules.line, counts, columns, points)
    total < 0 && return -1
    made = zeros(total)
    point_columns(level, p, rules.line, counts, columns, points, made)
    columns = made
"""


def files(
    lowered: LoweredSystem,
    tables: BakedTables | None = None,
    name: str | None = None,
    vectors: Vectors | None = None,
) -> dict[str, str]:
    """Return the module; see :meth:`..lowered.LoweredSystem.files`."""
    language = JuliaLanguage(JuliaPrinter({root.name: root.name for root in lowered.program.roots}))
    parts = KernelParts(lowered, language, tables, vectors)
    name = lowered.system.name if name is None else name
    # A module must not have the name of something that it uses.
    module = f"{name}_" if name.rstrip("_") in language.reserved else name
    return {f"{name}.jl": _module(lowered, parts, language, module)}


def _module(lowered: LoweredSystem, parts: KernelParts, language: JuliaLanguage, name: str) -> str:
    kind = "Julia, no packages; syntax checked only: it has not been run"
    text = "\n".join(about(lowered, kind, parts.fixed))
    arrays = sum(1 + len(columns) for _, columns in parts.data)
    listed = (
        f'("{d}", ({"".join(f"{chr(34)}{c}{chr(34)}, " for c in columns)}), check_data_{k}), '
        for k, (d, columns) in enumerate(parts.data)
    )
    return MODULE.substitute(
        about=text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$"),
        name=name,
        inputs="".join(f'"{p}", ' for p in parts.inputs),
        outputs="".join(f'"{o}", ' for o, _ in parts.results),
        data="".join(listed),
        library=language.library,
        helpers="".join(f"{h.strip()}\n\n" for h in parts.helpers),
        constants="".join(f"const {x} = {list(values)}\n\n" for x, values in parts.arrays.items()),
        functions="\n".join(language.source(f) for f in parts.functions),
        points=POINTS if parts.product is not None else "",
        data_arrays="".join(f"rules.data[{k + 1}], " for k in range(arrays)),
        driver=language.source(parts.driver),
        n_all_outputs=len(parts.all_outputs),
        n_all_parameters=len(parts.all_inputs),
        bad_argument=BAD_ARGUMENT,
        selfcheck=_selfcheck(parts),
        data_text="" if not parts.data else (
            "`data` is a dictionary from names of data sets to dictionaries of columns; the column "
            '"weight"\nmay be left out.\n'
        ),
    )  # fmt: skip


def _selfcheck(parts: KernelParts) -> str:
    vectors = parts.vectors
    if vectors is None:
        return ""
    sets = []
    for (d, names), columns in zip(parts.data, vectors.columns(parts.data), strict=True):
        entries = ", ".join(f'"{c}" => {x}' for c, x in zip(names, columns, strict=True))
        sets.append(f'"{d}" => Dict({entries})')
    return SELFCHECK.substitute(
        parts.known(lambda values: str(values)[1:-1]),
        data=", ".join(sets),
    )
