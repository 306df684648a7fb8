"""The part of a C kernel that is not generated from equations: memory, refinement, checks.

Texts are templates of :class:`string.Template`; ``${name}`` is the name of the kernel.
"""

from __future__ import annotations

from string import Template

HEADER = Template(
    """\
${about}
#ifndef ${NAME}_H
#define ${NAME}_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes of the arrays, and places of parameters and outputs in them. */
enum { ${NAME}_N_PARAMETERS = ${n_parameters}, ${NAME}_N_OUTPUTS = ${n_outputs} };
${parameter_enum}${output_enum}
extern const char *const ${name}_parameter_names[];
extern const char *const ${name}_output_names[];

/* What a solve returns; ${name}_message puts it in words. */
enum {
    ${NAME}_OK = 0,
    ${NAME}_NO_SOLUTION = 1,
    ${NAME}_NO_MEMORY = 2,
    ${NAME}_UNRESOLVED = 3,
    ${NAME}_BAD_ARGUMENT = 4
};
const char *${name}_message(int status);

typedef struct {
    int status;        /* of this row */
    int iterations;    /* Newton iterations, negative if they did not converge */
    double residual;   /* largest relative residual of the equations */
    double rounding;   /* part of the first output's estimated error that is rounding, relative */
    size_t nodes;      /* quadrature nodes */
} ${name}_info;

${data_types}/*
 * Solve at one set of parameters, or at n sets that follow each other in memory. Where tables
 * depend on parameters they are made again only if these change from one row to the next.
 *
 * parameters    n rows of ${NAME}_N_PARAMETERS numbers
${data_comment} * rtol          relative quadrature error of the first output that is good enough
 * values        n rows of ${NAME}_N_OUTPUTS numbers, written; NaN in a row without a solution
 * errors        their estimated absolute errors, written; infinite in a row without a solution;
 *               may be NULL
 * info          n structures, written; may be NULL
 *
 * Returns ${NAME}_OK, or the status of the first row that failed; the other rows are right.
 */
${solve};
${solve_many};

#ifdef __cplusplus
}
#endif

#endif
"""
)

SOURCE = Template(
    """\
${about}
#include "${name}.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

${extremes}${helpers}${constants}${functions}
enum {
    N_ALL_PARAMETERS = ${n_all_parameters},
    N_ALL_OUTPUTS = ${n_all_outputs},
    N_COLUMNS = ${n_columns},
${points_constants}    N_LEVELS = ${n_levels}
};

/* Quadrature rules of one level, from fine to coarse, each with half the nodes of the last. */
typedef struct {
    double *memory;
${points_member}    double table_error; /* relative to the largest value of a table */
    ptrdiff_t line_count[3], panel_count[3];
    const double *line[3], *panel[3];
} rule_level;

typedef struct {
    double step, reach;
    rule_level levels[N_LEVELS];
${data_members}} rule_set;

static void forget(rule_set *set)
{
    ptrdiff_t k;
    for (k = 0; k < N_LEVELS; k++) {
        free(set->levels[k].memory);
        set->levels[k].memory = NULL;
${points_forget}        set->levels[k].line_count[0] = 0;
    }
}

${make_points}static int make_level(rule_set *set, ptrdiff_t level, const double *p)
{
    rule_level *made = &set->levels[level];
    ptrdiff_t total = 0, k;
    double *place;
    (void)p;
    if (made->memory != NULL)
        return ${NAME}_OK;
${count}    /* One more, because malloc(0) may return NULL. */
    place = (double *)malloc(((size_t)total + 1) * sizeof(double));
    if (place == NULL)
        return ${NAME}_NO_MEMORY;
    made->memory = place;
    made->table_error = 0.0;
    for (k = 0; k < 3; k++) {
${make}    }
${points}    return ${NAME}_OK;
}

/* Solve a row on the rules of a level; what is known about them goes with the solution. */
static void solve_level(const rule_set *set, ptrdiff_t level, const double *p,
                        double *values, double *errors, double *state)
{
    const rule_level *now = &set->levels[level];
${no_starts}    ${solve_rows};
    state[3] = now->table_error;
    state[4] = (double)(now->line_count[0] + now->panel_count[0]);
}

${driver}
/* Results of a row; there are none where there is no solution. */
static int finish_row(int status, const double *all, const double *all_errors,
                      const double *state, double *values, double *errors, ${name}_info *info)
{
    static const ptrdiff_t place[] = {${places}};
    const int ended = status == ${NAME}_OK;
    int good = ended && state[0] >= 0.0;
    ptrdiff_t k;
    for (k = 0; k < ${NAME}_N_OUTPUTS; k++)
        good = good && isfinite(all[place[k]]);
    for (k = 0; k < ${NAME}_N_OUTPUTS; k++) {
        values[k] = good ? all[place[k]] : NAN;
        errors[k] = good ? all_errors[place[k]] : INFINITY;
    }
    info->status = ended && !good ? ${NAME}_NO_SOLUTION : status;
    info->iterations = good ? (int)state[0] : -1;
    if (ended && !good && fabs(state[0]) > 1.0)
        info->iterations = -(int)fabs(state[0]);
    info->residual = ended ? state[1] : INFINITY;
    info->rounding = ended ? state[2] : INFINITY;
    info->nodes = (size_t)state[4];
    return info->status;
}

static int check_parameters(const double *p)
{
    ptrdiff_t k;
    for (k = 0; k < ${NAME}_N_PARAMETERS; k++)
        if (!isfinite(p[k]))
            return ${NAME}_BAD_ARGUMENT;
${domains}    return ${NAME}_OK;
}

${names}
const char *${name}_message(int status)
{
    switch (status) {
    case ${NAME}_OK:
        return "solved";
    case ${NAME}_NO_SOLUTION:
        return "Newton's method found no solution at these parameters";
    case ${NAME}_NO_MEMORY:
        return "out of memory";
    case ${NAME}_UNRESOLVED:
        return "an integrand varies on a scale that no quadrature rule here resolves";
    case ${NAME}_BAD_ARGUMENT:
        return "a parameter is not finite or outside its domain${bad_data}";
    default:
        return "unknown status";
    }
}

${solve}
{
    return ${name}_solve_many(1, ${arguments});
}

${solve_many}
{
    rule_set set;
    size_t i;
    int first_failure = ${NAME}_OK, common = ${NAME}_OK;
${made_for}    double p[N_ALL_PARAMETERS + 1];
${data_locals}    memset(&set, 0, sizeof(set));
${data_checks}${data_set}    for (i = 0; i < n; i++) {
        const double *row = parameters + i * ${NAME}_N_PARAMETERS;
        double *row_values = values + i * ${NAME}_N_OUTPUTS;
        double row_errors[${NAME}_N_OUTPUTS];
        ${name}_info row_info;
        double all[N_ALL_OUTPUTS] = {0}, all_errors[N_ALL_OUTPUTS] = {0}, state[5] = {0};
        int status = common != ${NAME}_OK ? common : check_parameters(row);
        ptrdiff_t k;
        if (status == ${NAME}_OK) {
${load}\
            status = (int)solve_row(&set, p, rtol, all, all_errors, state);
            if (status < 0)
                status = ${NAME}_UNRESOLVED;
        }
        status = finish_row(status, all, all_errors, state, row_values, row_errors, &row_info);
        if (first_failure == ${NAME}_OK)
            first_failure = status;
        for (k = 0; errors != NULL && k < ${NAME}_N_OUTPUTS; k++)
            errors[i * ${NAME}_N_OUTPUTS + (size_t)k] = row_errors[k];
        if (info != NULL)
            info[i] = row_info;
    }
    forget(&set);
${data_free}    return first_failure;
}
"""
)

# Counting and making the nodes of the line: trapezoidal, where coarser rules are parts of the
# finest, and split at kinks, where each rule has its own nodes; or tables that are written down.
FIRST = """\
    double step[3], end[3];
    if (level == 0) {
${reach}        set->step = ${first_step};
    }
    for (k = 0; k < 3; k++) {
        step[k] = set->step * rule_coarseness(level, k);
        end[k] = line_end(set->reach, level, k);
    }
"""
COUNT_TRAPEZOIDAL = """\
    total = outer_count(${table_arguments_}step[0], end[0]);
    if (total < 0)
        return ${NAME}_UNRESOLVED;
    for (k = 0; k < 3; k++)
        made->line_count[k] = (total - 1) / ((ptrdiff_t)1 << k) + 1;
    total = N_COLUMNS * (made->line_count[0] + made->line_count[1] + made->line_count[2]);
"""
MAKE_TRAPEZOIDAL = """\
        const ptrdiff_t n = made->line_count[k], stride = (ptrdiff_t)1 << k;
        ptrdiff_t column, j;
        made->line[k] = place;
        if (k == 0) {
            outer_nodes(${table_arguments_}step[0], end[0], place, place + n);
${tabulate}        } else {
            for (column = 0; column < N_COLUMNS; column++)
                for (j = 0; j < n; j++)
                    place[column * n + j] = (column == 0 ? (double)stride : 1.0)
                        * made->memory[column * made->line_count[0] + stride * j];
            for (j = 0; j < n; j++)
                if (end[k] < end[0] && fabs(place[n + j]) > end[k])
                    place[j] = 0.0;
        }
        place += N_COLUMNS * n;
"""
COUNT_SPLIT = """\
    for (k = 0; k < 3; k++) {
        made->line_count[k] = outer_count(${table_arguments_}step[k], end[k]);
        if (made->line_count[k] < 0)
            return ${NAME}_UNRESOLVED;
        total += N_COLUMNS * made->line_count[k];
    }
"""
MAKE_SPLIT = """\
        const ptrdiff_t n = made->line_count[k];
        made->line[k] = place;
        outer_nodes(${table_arguments_}step[k], end[k], place, place + n);
${tabulate}        place += N_COLUMNS * n;
"""
MAKE_BAKED = """\
        static const double *const baked[3] = {fine_rule, medium_rule, coarse_rule};
        static const ptrdiff_t baked_count[3] = {${baked_counts}};
        made->line[k] = baked[k];
        made->line_count[k] = baked_count[k];
"""
COUNT_PANELS = """\
    for (k = 0; k < 3; k++) {
        made->panel_count[k] = ${panel_order} * rule_panel_count(level, k);
        total += 2 * made->panel_count[k];
    }
"""
MAKE_PANELS = """\
        made->panel[k] = place;
        rule_reference(made->panel_count[k] / ${panel_order}, place, place + made->panel_count[k]);
        place += 2 * made->panel_count[k];
"""
# What depends on whether there are tables besides the nodes.
REACH = """\
        set->reach = outer_reach(${table_arguments});
        if (set->reach < 0.0)
            return ${NAME}_UNRESOLVED;
"""
REACH_OF_NODES = """\
        set->reach = ${first_reach};
"""
TABULATE = """\
            const double distance = tabulate(place + n, n, ${table_arguments_}place + 2 * n);
            if (distance < 0.0) {
                free(made->memory);
                made->memory = NULL;
                return ${NAME}_UNRESOLVED;
            }
            made->table_error = fmax(made->table_error, distance);
"""
# Refuse data that cannot be, and make weights of sum one.
DATA_CHECK = """\
    if (common == ${NAME}_OK && (${d} == NULL || ${empty}))
        common = ${NAME}_BAD_ARGUMENT;
    if (common == ${NAME}_OK) {
        double total = 0.0;
        ${d}_weight = (double *)malloc(${d}->rows * sizeof(double));
        if (${d}_weight == NULL)
            common = ${NAME}_NO_MEMORY;
        for (i = 0; common == ${NAME}_OK && i < ${d}->rows; i++) {
            ${d}_weight[i] = ${d}->weight == NULL ? 1.0 : ${d}->weight[i];
            total += ${d}_weight[i];
            if (!(${admissible} && ${d}_weight[i] >= 0.0))
                common = ${NAME}_BAD_ARGUMENT;
        }
        if (common == ${NAME}_OK && !(total > 0.0 && isfinite(total)))
            common = ${NAME}_BAD_ARGUMENT;
        for (i = 0; common == ${NAME}_OK && i < ${d}->rows; i++)
            ${d}_weight[i] /= total;
    }
"""
