"""A kernel as C99: ``NAME.h`` and ``NAME.c``, which need nothing but libm.

Solver, tables and driver are those of the neutral language; memory and checks are written here, as
templates of :class:`string.Template` in which ``${name}`` is the name of the kernel.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence, Set
from string import Template
from typing import TYPE_CHECKING

from ....errors import EmissionError
from ....runtime.rules import REACH
from ...printing.printers import CPrinter
from ...printing.spellings import CLanguage, c_identifier, harmless, wrapped
from ..documentation import about
from ..driver import LAST_LEVEL, LEVELS, BakedTables
from ..scalar_grids import MOST_FIRST_POINTS, MOST_POINTS
from ..scalar_tables import PANEL_ORDER, gauss_rule
from .kernel_parts import KernelParts

if TYPE_CHECKING:
    from ..lowered import LoweredSystem

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
REACH_OF_TABLES = """\
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


# The grid of outer and inner nodes, from the nodes of the line, which stay in their own memory.
POINTS_CONSTANTS = """\
    N_POINT_COLUMNS = ${n_point_columns},
    MOST_FIRST_POINTS = ${most_first_points}, /* of one rule at the first level */
    MOST_POINTS = ${most_points},             /* at the others */
"""
POINTS_MEMBER = """\
    double *points;
"""
POINTS_FORGET = """\
        free(set->levels[k].points);
        set->levels[k].points = NULL;
"""
MAKE_POINTS = """\
/* Replace the nodes of the line by points of the grid of outer and inner nodes. */
static int make_points(const rule_set *set, rule_level *made, ptrdiff_t level, const double *p)
{
    ptrdiff_t points[3], all = 0, k;
    double *place;
    (void)p;
    for (k = 0; k < 3; k++) {
        points[k] = product_points(${point_arguments}, 0, NULL);
        if (points[k] < 0 || points[k] > (level == 0 ? MOST_FIRST_POINTS : MOST_POINTS))
            return ${NAME}_UNRESOLVED;
        all += N_POINT_COLUMNS * points[k];
    }
    place = (double *)malloc(((size_t)all + 1) * sizeof(double));
    if (place == NULL)
        return ${NAME}_NO_MEMORY;
    made->points = place;
    for (k = 0; k < 3; k++) {
        product_points(${point_arguments}, points[k], place);
        made->line[k] = place;
        made->line_count[k] = points[k];
        place += N_POINT_COLUMNS * points[k];
    }
    return ${NAME}_OK;
}

"""
POINTS = """\
    {
        const int status = make_points(set, made, level, p);
        if (status != ${NAME}_OK) {
            free(made->memory);
            made->memory = NULL;
            return status;
        }
    }
"""


# What the driver calls its public names, arguments and locals where data sets are in scope.
_DRIVER_NAMES = frozenset(
    "solve solve_many message parameter_names output_names info parameters rtol values errors n i "
    "k p set row row_values row_errors row_info status first_failure common made_for total level "
    "place no_starts state now made all all_errors ended good smaller larger forget make_level "
    "make_points solve_level solve_row finish_row check_parameters rule_level rule_set step reach "
    "levels".split()
)


def files(
    lowered: LoweredSystem, tables: BakedTables | None = None, name: str | None = None
) -> dict[str, str]:
    """Return header and source; see :meth:`..lowered.LoweredSystem.files`."""
    language = CLanguage(CPrinter({root.name: root.name for root in lowered.program.roots}))
    parts = KernelParts(lowered, language, tables)
    name = c_identifier(lowered.system.name if name is None else name)
    writer = _Writer(lowered, parts, language, name)
    return {f"{name}.h": writer.header(), f"{name}.c": writer.source()}


class _Writer:
    def __init__(
        self, lowered: LoweredSystem, parts: KernelParts, language: CLanguage, name: str
    ) -> None:
        self.lowered = lowered
        self.parts = parts
        self.language = language
        self.name = name
        self.upper = name.upper()
        # Struct members and arguments of data sets.
        functions = {f.name for f in parts.functions}
        self.data = [
            (_data_name(d, functions), [member(c) for c in columns]) for d, columns in parts.data
        ]
        self.check_names()

    def fill(self, template: str | Template, **values: object) -> str:
        text = template if isinstance(template, Template) else Template(template)
        return text.substitute(name=self.name, NAME=self.upper, **values)

    def check_names(self) -> None:
        """Refuse names that differ in letters which C does not have only."""
        parts = self.parts
        groups = [("parameters", parts.inputs), ("outputs", [o for o, _ in parts.results])]
        groups += [("data sets", [d for d, _ in parts.data])]
        groups += [(f"columns of {d}", columns) for d, columns in parts.data]
        # Inside of functions all of them meet.
        groups += [("parameters and outputs", sorted({*parts.all_inputs, *parts.all_outputs}))]
        for what, names in groups:
            codes = [c_identifier(n) for n in names]
            for code in codes:
                same = [n for n, other in zip(names, codes, strict=True) if other == code]
                if len(same) > 1:
                    raise EmissionError(
                        f"the {what} {' and '.join(same)} would both be called {code} in C: give "
                        "one of them another name"
                    )

    # -- the header

    def header(self) -> str:
        parts = self.parts
        return self.fill(
            HEADER,
            about=self.about(),
            n_parameters=len(parts.inputs),
            n_outputs=len(parts.results),
            parameter_enum=self.enum("PARAMETER", parts.inputs),
            output_enum=self.enum("OUTPUT", [o for o, _ in parts.results]),
            data_types="".join(self.data_type(d, columns) for d, columns in self.data),
            data_comment=self.data_comment(),
            solve=self.declaration("solve", False),
            solve_many=self.declaration("solve_many", True),
        )

    def about(self) -> str:
        parts = self.parts
        example = [
            f"Example: cc -std=c99 -O3 example.c {self.name}.c -lm",
            "",
            "    #include <stdio.h>",
            f'    #include "{self.name}.h"',
            "",
            "    int main(void)",
            "    {",
            f"        double values[{self.upper}_N_OUTPUTS], errors[{self.upper}_N_OUTPUTS];",
        ]
        for d, columns in self.data:
            example += [f"        const double {d}_{c}[] = {{0.5, 1.5}};" for c in columns]
            members = ", ".join(["2", "NULL", *(f"{d}_{c}" for c in columns)])
            example.append(f"        const {self.name}_{d} {d} = {{{members}}};")
        values = parts.example_values()
        if values:
            example.append(f"        const double parameters[{self.upper}_N_PARAMETERS] = {{")
            example += [
                f"            [{self.upper}_PARAMETER_{c_identifier(p)}] = {value!r},"
                for p, value in values.items()
            ]
            example.append("        };")
        else:
            example.append("        const double parameters[1] = {0.0};")
        arguments = ", ".join(["parameters", *(f"&{d}" for d, _ in self.data), "1e-10"])
        example += [
            f"        int k, status = {self.name}_solve({arguments}, values, errors, NULL);",
            f"        if (status != {self.upper}_OK)",
            f'            return printf("%s\\n", {self.name}_message(status)), 1;',
            f"        for (k = 0; k < {self.upper}_N_OUTPUTS; k++)",
            f'            printf("%s = %.12g, error %.1e\\n", {self.name}_output_names[k],',
            "                   values[k], errors[k]);",
            "        return 0;",
            "    }",
        ]
        threads = (
            "The functions keep no state: any number of threads may call them at the same time, "
            f"for instance {self.name}_solve_many on parts of an array."
        )
        lines = about(self.lowered, "C99, libm only", parts.fixed)
        lines += ["", *textwrap.wrap(threads, 92), "", *example]
        return "\n".join(["/*", *(f" * {harmless(x)}".rstrip() for x in lines), " */"])

    def enum(self, kind: str, names: Sequence[str]) -> str:
        if not names:
            return ""
        entries = ", ".join(f"{self.upper}_{kind}_{c_identifier(n)}" for n in names)
        return "\n".join(wrapped(f"enum {{ {entries} }};", "       ")) + "\n"

    def declaration(self, function: str, many: bool) -> str:
        line = f"int {self.name}_{function}({'size_t n, ' if many else ''}{self.signature()})"
        return "\n".join(wrapped(line, "    "))

    def data_type(self, d: str, columns: Sequence[str]) -> str:
        members = "".join(f"    const double *{c};\n" for c in columns)
        return (
            f"/* Rows of the data set {d}; their weights have any sum, NULL if all are equal. */\n"
            "typedef struct {\n"
            "    size_t rows;\n"
            "    const double *weight;\n"
            f"{members}"
            f"}} {self.name}_{d};\n\n"
        )

    def data_comment(self) -> str:
        return "".join(f" * {d:<13} the same for all rows\n" for d, _ in self.data)

    def signature(self) -> str:
        return ", ".join(
            [
                "const double *parameters",
                *(f"const {self.name}_{d} *{d}" for d, _ in self.data),
                "double rtol",
                "double *values",
                "double *errors",
                f"{self.name}_info *info",
            ]
        )

    # -- the source

    def source(self) -> str:
        parts, language = self.parts, self.language
        functions = "\n".join(language.source(f) for f in parts.functions)
        driver = language.source(parts.driver)
        templates = [*self.rule_templates()]
        values: dict[str, object] = {
            "table_arguments": parts.table_arguments,
            "table_arguments_": f"{parts.table_arguments}, " if parts.table_inputs else "",
            "baked_counts": ", ".join(str(n) for n in self.baked_counts()),
            "panel_order": PANEL_ORDER,
            "first_reach": parts.first_reach,
            "first_step": parts.first_step,
        }
        product = parts.product is not None
        points = {"points": "", "make_points": ""}
        if parts.product is not None:
            rule = ["rule_coarseness(level, k)", "line_end(set->reach, level, k)"]
            given = ["made->line_count[k]", "made->line[k]", parts.table_arguments, *rule]
            values["point_arguments"] = ", ".join(x for x in given if x)
            points["points"] = self.fill(POINTS, **values)
            points["make_points"] = self.fill(MAKE_POINTS, **values)
        tables = bool(parts.plan and parts.plan.tables)
        reach = REACH_OF_TABLES if tables else REACH_OF_NODES
        values["reach"] = self.fill(reach, **values)
        values["tabulate"] = self.fill(TABULATE, **values) if tables else ""
        first = [FIRST] if parts.plan is not None else []
        count = "".join(self.fill(c, **values) for c in (*first, *(c for c, _ in templates)))
        make = "".join(self.fill(m, **values) for _, m in templates)
        solve_rows = self.solve_rows()
        return self.fill(
            SOURCE,
            about=self.short_about(),
            extremes=_extremes(functions + driver + points["make_points"]),
            helpers="".join(f"{h.strip()}\n\n" for h in parts.helpers),
            constants=self.constants(),
            functions=functions,
            n_all_parameters=len(parts.all_inputs),
            n_all_outputs=len(parts.all_outputs),
            n_columns=parts.n_line_columns,
            **points,
            points_constants=self.fill(
                POINTS_CONSTANTS,
                n_point_columns=len(self.lowered.program.tables) + 1,
                most_first_points=MOST_FIRST_POINTS,
                most_points=MOST_POINTS,
            )
            if product
            else "",
            points_member=POINTS_MEMBER if product else "",
            points_forget=POINTS_FORGET if product else "",
            n_levels=LAST_LEVEL + 1 if parts.refines else 1,
            driver=driver,
            count=count,
            make=make or "        made->line[k] = made->panel[k] = place;\n",
            data_members="".join(
                f"    const {self.name}_{d} *{d};\n    const double *{d}_weight;\n"
                for d, _ in self.data
            ),
            data_set="".join(
                f"    set.{d} = {d};\n    set.{d}_weight = {d}_weight;\n" for d, _ in self.data
            ),
            places=", ".join(str(k) for _, k in parts.results),
            solve_rows=solve_rows,
            domains=self.domains(),
            names=self.name_arrays(),
            bad_data=", or a data set is empty or holds such a number" if self.data else "",
            solve=self.declaration("solve", False),
            solve_many=self.declaration("solve_many", True),
            arguments=", ".join(
                ["parameters", *(d for d, _ in self.data), "rtol", "values", "errors", "info"]
            ),
            no_starts=self.no_starts(),
            made_for="    const double *made_for = NULL;\n" if parts.plan is not None else "",
            data_locals="".join(f"    double *{d}_weight = NULL;\n" for d, _ in self.data),
            data_checks="".join(
                self.data_checks(*names, parts.data_tests(data))
                for names, data in zip(self.data, parts.data_sets, strict=True)
            ),
            data_free="".join(f"    free({d}_weight);\n" for d, _ in self.data),
            load=self.load(),
        )

    def short_about(self) -> str:
        lines = about(self.lowered, "C99, libm only", self.parts.fixed, brief=True)
        return "\n".join(["/*", *(f" * {harmless(x)}".rstrip() for x in lines), " */"])

    def rule_templates(self) -> Iterable[tuple[str, str]]:
        parts = self.parts
        if parts.plan is not None and parts.plan.breaks:
            yield COUNT_SPLIT, MAKE_SPLIT
        elif parts.plan is not None:
            yield COUNT_TRAPEZOIDAL, MAKE_TRAPEZOIDAL
        elif parts.baked is not None:
            yield "", MAKE_BAKED
        if self.lowered.program.has_panels:
            yield COUNT_PANELS, MAKE_PANELS

    def baked_counts(self) -> list[int]:
        baked = self.parts.baked
        return [] if baked is None else [len(level["weight"]) for level in baked.levels]

    def constants(self) -> str:
        text = ""
        if self.parts.uses_gauss:
            nodes, weights = gauss_rule()
            text += "/* Gauss-Legendre rule on [0, 1]. */\n"
            text += _array("gauss_node", nodes) + _array("gauss_weight", weights)
        baked = self.parts.baked
        if baked is not None:
            names = ["weight", *map(str, self.lowered.program.tables)]
            text += f"\n/* Rules with tables: {', '.join(names)}. */\n"
            for level, columns in zip(LEVELS, baked.levels, strict=True):
                text += _array(f"{level}_rule", [x for n in names for x in columns[n]])
        return text + "\n" if text else ""

    def solve_rows(self) -> str:
        given = {
            "first": "0",
            "stop": "1",
            "parameters": "p",
            "results": "values",
            "errors": "errors",
            "info": "state",
            "starts": "no_starts",
        }
        arguments: list[str] = []
        data = iter(self.data_pointers())
        for kind, name, rule, place, counted in self.parts.row_arguments():
            count = f"now->{kind}_count[{rule}]"
            if kind == "given":
                arguments.append(given[name])
            elif kind == "reach":
                arguments.append(f"panel_end({REACH}, level, {rule})")
            elif kind == "data":
                arguments += [next(data), *([next(data)] if counted else [])]
            else:
                offset = {0: "", 1: f" + {count}"}.get(place, f" + {place} * {count}")
                arguments.append(f"now->{kind}[{rule}]{offset}")
                arguments += [count] if counted else []
        call = f"solve_rows({', '.join(arguments)})"
        return "\n".join(wrapped(call, " " * 19))

    def no_starts(self) -> str:
        n = len(self.lowered.program.newton_unknowns)
        if not n:
            return ""
        # Not a number: the program's own start.
        return f"    static const double no_starts[] = {{{', '.join(['NAN'] * n)}}};\n"

    def data_pointers(self) -> list[str]:
        found = []
        for d, columns in self.data:
            found += [f"set->{d}_weight", f"(ptrdiff_t)set->{d}->rows"]
            found += [f"set->{d}->{c}" for c in columns]
        return found

    def domains(self) -> str:
        lines = []
        for k, test in self.parts.domain_tests():
            lines.append(f"    if (!({test.replace('row', f'p[{k}]')}))")
            lines.append(f"        return {self.upper}_BAD_ARGUMENT;")
        return "".join(f"{line}\n" for line in lines)

    def name_arrays(self) -> str:
        parts = self.parts
        found = []
        for kind, names in (("parameter", parts.inputs), ("output", [o for o, _ in parts.results])):
            entries = ", ".join(f'"{n}"' for n in names) or "NULL"
            line = f"const char *const {self.name}_{kind}_names[] = {{{entries}}};"
            found += wrapped(line, "    ")
        return "\n".join(found) + "\n"

    def load(self) -> str:
        lines = []
        for k, p in enumerate(self.parts.all_inputs):
            if p in self.parts.fixed:
                lines.append(f"p[{k}] = {self.parts.fixed[p]!r};")
            else:
                lines.append(f"p[{k}] = row[{self.parts.inputs.index(p)}];")
        if self.parts.plan is not None:
            # The tables of the row before stay where their parameters are the same.
            inputs = self.parts.table_places
            changed = " || ".join(f"row[{k}] != made_for[{k}]" for k in inputs)
            test = f"made_for == NULL || {changed}" if changed else "made_for == NULL"
            lines += [*wrapped(f"if ({test})", "        "), "    forget(&set);", "made_for = row;"]
        return "".join(f"            {line}\n" for line in lines)

    def data_checks(
        self, d: str, columns: Sequence[str], domains: Iterable[tuple[int, str]]
    ) -> str:
        empty = " || ".join([f"{d}->rows == 0", *(f"{d}->{c} == NULL" for c in columns)])
        tests = [f"isfinite({d}->{c}[i])" for c in columns]
        tests += [test.replace("row", f"{d}->{columns[k]}[i]") for k, test in domains]
        admissible = "\n                  && ".join(tests)
        return self.fill(DATA_CHECK, d=d, empty=empty, admissible=admissible)


def _data_name(name: str, functions: Set[str]) -> str:
    """Return the name of a data set as an argument and as the end of the name of a type."""
    name = c_identifier(name)
    return f"{name}_" if name.rstrip("_") in _DRIVER_NAMES | functions else name


def member(column: str) -> str:
    """Return the name of a column in a structure that has members of its own."""
    name = c_identifier(column)
    return f"{name}_" if name.rstrip("_") in ("rows", "weight") else name


def _extremes(text: str) -> str:
    """Return minimum and maximum as far as the text needs them; fmin and fmax are slow."""
    found = [
        f"static double {name}(double a, double b) {{ return b {sign} a ? b : a; }}\n"
        for name, sign in (("smaller", "<"), ("larger", ">"))
        if f"{name}(" in text
    ]
    return "".join([*found, "\n" if found else ""])


def _array(name: str, values: Sequence[float]) -> str:
    entries = ", ".join(map(repr, values))
    head = f"static const double {name}[] = {{"
    return (
        "\n".join(
            [
                head,
                *textwrap.wrap(entries, 92, initial_indent="    ", subsequent_indent="    "),
                "};",
            ]
        )
        + "\n"
    )
