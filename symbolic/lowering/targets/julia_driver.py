"""The part of a Julia kernel that is not generated from equations.

Texts are templates of :class:`string.Template`.
"""

from __future__ import annotations

from string import Template

from .product_functions import LONGER_REACH, NESTED_REACH, REACH, STEP

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
    reach::Float64
    step::Float64
    levels::Dict{Int,Vector{Vector{Vector{Float64}}}}
    table_errors::Dict{Int,Float64}  # relative to the largest value of a table
end

function make_level(rules, level, p)
    haskey(rules.levels, level) && return true
    found = [Vector{Float64}[] for k in 1:3]
    table_error = 0.0
${make}    rules.levels[level] = found
    rules.table_errors[level] = table_error
    return true
end

# Relative error of the first output; what failed counts as infinite.
function worst_error(values, errors, state)
    # A value of zero has no relative error; its absolute one has to do.
    worst = values[1] == 0.0 ? errors[1] : errors[1] / abs(values[1])
    return state[1] >= 0.0 && isfinite(worst) ? worst : Inf
end

function solve_row(rules, p, data, rtol)
    n = ${n_all_outputs}
    best, best_error, best_state = fill(NaN, n), fill(Inf, n), [-1.0, Inf, Inf]
    table_error = 0.0
    level, last, wanted = 0, -1, 0
    while level <= ${finest_level}
        make_level(rules, level, p) || break
        now = rules.levels[level]
        found, found_error, state = zeros(n), zeros(n), zeros(3)
        ${solve_rows}
        # Rules that step over what they integrate may agree on a wrong number.
        if last >= wanted
            before = worst_error(best, best_error, best_state)
            after = worst_error(found, found_error, state)
            # Where a refinement brings nothing, rounding is all that is left; unless the error is
            # large still: then the finer rule is trusted more.
            unresolved = before > max(1e-9, best_state[3]) && isfinite(after)
            (2.0 * after <= before || unresolved) || break
            # Twice without a solution: a finer rule will not find one.
            last > 0 && !isfinite(before) && !isfinite(after) && break
        end
        best, best_error, best_state, last = found, found_error, state, level
        table_error = rules.table_errors[level]
${wanted}        left = best_error[1] - best_state[3] * abs(best[1])
        converged = left <= max(rtol, best_state[3]) * abs(best[1])
        last >= wanted && (last >= ${last_level} || converged) && break
        level = wanted > last ? wanted : last + 1
    end
    # No rule resolved what is to be integrated.
    wanted > last && return fill(NaN, ${n_results}), fill(Inf, ${n_results}), [-1.0, Inf, Inf]
    # Tables that lost digits to cancellation may have passed all of that on.
    best_error = best_error + table_error * abs.(best)
    best_state[3] += table_error
    return best[[${places}]], best_error[[${places}]], best_state
end

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
    solve_many(parameters; data=nothing, rtol=1e-10)

Solve at every row of a matrix with the columns `PARAMETERS`. Returns values and their estimated
errors, with the columns `OUTPUTS`, and for each row the number of Newton iterations (negative if
there is no solution; its values are NaN, its errors infinite), the relative residual and the
rounding.
${data_text}"""
function solve_many(parameters::AbstractMatrix; data=nothing, rtol=1e-10)
    n = size(parameters, 1)
    values, errors = fill(NaN, n, length(OUTPUTS)), fill(Inf, n, length(OUTPUTS))
    info = zeros(n, 3)
    arrays = checked_data(data)
    rules, made_for = Rules(0.0, 0.0, Dict(), Dict()), nothing
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
            rules, made_for = Rules(0.0, 0.0, Dict(), Dict()), needed
        end
        values[i, :], errors[i, :], info[i, :] = solve_row(rules, p, arrays, rtol)
        if !(info[i, 1] >= 0.0) || !all(isfinite, values[i, :])
            values[i, :] .= NaN
            errors[i, :] .= Inf
            info[i, 1] = -max(abs(info[i, 1]), 1.0)
        end
    end
    return values, errors, info
end

"""
    solve_point(parameters; data=nothing, rtol=1e-10)

Solve at one point, a dictionary from names to numbers. Returns a dictionary from the names of
`OUTPUTS` to pairs of value and estimated error.
"""
function solve_point(parameters; data=nothing, rtol=1e-10)
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

# Steps and reaches of the nodes of the line: by themselves, and as part of a grid, where doubling
# the nodes divides distances by the square root of two.
LINE_SIZES = {
    "halvings": "level",
    "refinement": "level",
    "first_step": "0.13",
    "first_reach": "12.0",
    "longer_reach": "1.15",
    "nested_reach": "(1.0 / 1.15)",
}
GRID_SIZES = {
    "halvings": "(0.5 * level)",
    "refinement": "level ÷ 2 - 1",
    "first_step": repr(STEP),
    "first_reach": repr(REACH),
    "longer_reach": repr(LONGER_REACH),
    "nested_reach": repr(NESTED_REACH),
}
LINE = Template("""\
    if level == 0
        rules.reach = ${reach}
        rules.reach < 0.0 && return false
        rules.step = ${first_step} * outer_width(${table_arguments})
    end
    reach = min(rules.reach * ${longer_reach}^level, 37.0)
    step = rules.step / 2.0^${halvings}
    n = outer_count(${table_arguments_}step, reach, 0)
    n < 0 && return false
    weight, node, tables = zeros(n), zeros(n), zeros(${n_tables} * n)
    outer_nodes(${table_arguments_}step, reach, 0, weight, node)
${tabulate}    columns = [weight, node]
    append!(columns, [tables[((t - 1) * n + 1):(t * n)] for t in 1:${n_tables}])
    for k in 1:3
        stride = 2^(k - 1)
        append!(found[k], [column[1:stride:n] for column in columns])
        # Coarser rules end sooner, so that a truncation that matters shows.
        inside = abs.(found[k][2]) .<= reach * ${nested_reach}^(k - 1)
        found[k][1] = stride * found[k][1] .* inside
    end
""")
SPLIT = Template("""\
    if level == 0
        rules.reach = ${reach}
        rules.reach < 0.0 && return false
    end
    for k in 1:3
        reach = min(rules.reach * ${longer_reach}^level, 37.0) * ${nested_reach}^(k - 1)
        n = outer_count(${table_arguments_}1.0, reach, ${refinement} - k + 1)
        n < 0 && return false
        weight, node, tables = zeros(n), zeros(n), zeros(${n_tables} * n)
        outer_nodes(${table_arguments_}1.0, reach, ${refinement} - k + 1, weight, node)
    ${tabulate}        push!(found[k], weight, node)
        append!(found[k], [tables[((t - 1) * n + 1):(t * n)] for t in 1:${n_tables}])
    end
""")
# The grid of outer and inner nodes, from the nodes of the line.
POINTS = Template("""\
    reach = min(rules.reach * ${longer_reach}^level, 37.0)
    for k in 1:3
        n, line = length(found[k][1]), reduce(vcat, found[k])
        coarseness, end_ = 2.0^(k - 1 - 0.5 * level), reach * ${nested_reach}^(k - 1)
        total = product_points(n, line, ${table_arguments_}coarseness, end_, 0, Float64[])
        total < 0 && return false
        total > (level == 0 ? ${most_first_points} : ${most_points}) && return false
        columns = zeros(${n_point_columns} * total)
        product_points(n, line, ${table_arguments_}coarseness, end_, total, columns)
        found[k] = [columns[((c - 1) * total + 1):(c * total)] for c in 1:${n_point_columns}]
    end
""")
TABULATE = Template("""\
    distance = tabulate(node, ${table_arguments_}tables)
    distance < 0.0 && return false
    table_error = max(table_error, distance)
""")
BAKED = """\
    for (k, rule) in enumerate((FINE_RULE, MEDIUM_RULE, COARSE_RULE))
        append!(found[k], rule)
    end
"""
PANELS = Template("""\
    for k in 1:3
        # Of the finest rule 8 panels at first, in every piece between break points.
        n = 8 * 2^level ÷ 2^(k - 1)
        weight, node = zeros(${panel_order} * n), zeros(${panel_order} * n)
        rule_reference(n, weight, node)
        push!(found[k], weight, node)
    end
""")
# Which level has two nodes to the smallest scale of an integrand.
WANTED = Template("""\
        if best_state[1] >= 0.0
            width = integrand_width(${width_arguments})
            wanted = 0
            while wanted < 99 && 2.0 * ${step} / 2.0^${wanted_halvings} > width
                wanted += 1
            end
        end
""")
