"""A kernel as C99: ``NAME.h`` and ``NAME.c``, which need nothing but libm.

Solver, tables and driver are those of the neutral language; memory and checks are written here, as
templates of :class:`string.Template` in which ``${name}`` is the name of the kernel.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence, Set
from string import Template
from typing import TYPE_CHECKING

from ....errors import EmissionError
from ...printing.printers import CPrinter
from ...printing.spellings import CLanguage, c_identifier, harmless, wrapped
from ..documentation import about
from ..driver import BakedTables
from .kernel_parts import KernelParts
from .vectors import Vectors

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
 * Solve at one set of parameters, or at n sets that follow each other in memory. Where nodes and
 * tables depend on parameters they are made again only if these change from one row to the next.
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

/*
 * A workspace holds nodes and tables from one call to the next: a call costs what a row of
 * ${name}_solve_many costs. Each thread needs one of its own; NULL if there is no memory.
 */
typedef struct ${name}_workspace ${name}_workspace;
${name}_workspace *${name}_init(void);
void ${name}_free(${name}_workspace *workspace);
${solve_with};

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
    N_LEVELS = ${n_levels}
};

/* Quadrature rules of one level, from fine to coarse, each with half the nodes of the last. */
typedef struct {
    double *columns;
    double table_error; /* relative to the largest value of a table */
    ptrdiff_t counts[6];
} rule_level;

struct ${name}_workspace {
    int made;
    double line[2], made_for[N_ALL_PARAMETERS + 1];
    rule_level levels[N_LEVELS];
${data_members}};
typedef struct ${name}_workspace rule_set;

static void forget(rule_set *set)
{
    ptrdiff_t k;
    for (k = 0; k < N_LEVELS; k++) {
        free(set->levels[k].columns);
        set->levels[k].columns = NULL;
    }
}

/* Returns memory for so many numbers, at least one, because malloc(0) may return NULL. */
static double *room_for(ptrdiff_t total)
{
    return (double *)malloc(((size_t)total + 1) * sizeof(double));
}

static ptrdiff_t make_level(rule_set *set, ptrdiff_t level, const double *p)
{
    rule_level *made = &set->levels[level];
    ptrdiff_t total;
${points_locals}    if (made->columns != NULL)
        return ${NAME}_OK;
    total = level_counts(level, p, set->line, made->counts);
    if (total < 0)
        return ${NAME}_UNRESOLVED;
    made->columns = room_for(total);
    if (made->columns == NULL)
        return ${NAME}_NO_MEMORY;
    made->table_error = level_columns(level, p, set->line, made->counts, made->columns);
${points}    if (made->table_error >= 0.0)
        return ${NAME}_OK;
    free(made->columns);
    made->columns = NULL;
    return ${NAME}_UNRESOLVED;
}

/* Solve a row on the rules of a level; what is known about them goes with the solution. */
static void solve_level(rule_set *set, ptrdiff_t level, const double *p,
                        double *values, double *errors, double *state)
{
    ${solve_columns};
    state[3] = set->levels[level].table_error;
}

${driver}
static int solve_one(rule_set *set, const double *row, double rtol, double *values, double *errors,
                     ${name}_info *info)
{
    double p[N_ALL_PARAMETERS + 1], state[5] = {0};
    double all[N_ALL_OUTPUTS] = {0}, all_errors[N_ALL_OUTPUTS] = {0};
    ptrdiff_t status = admissible(row) ? ${NAME}_OK : ${NAME}_BAD_ARGUMENT;
    if (status == ${NAME}_OK) {
        load_parameters(row, p);
        if (!set->made || !same_tables(p, set->made_for))
            forget(set);
        set->made = 1;
        memcpy(set->made_for, p, sizeof(set->made_for));
        status = solve_row(set, p, rtol, all, all_errors, state);
    }
    info->status = (int)finish_row(status, all, all_errors, state, values, errors);
    info->iterations = (int)state[0];
    info->residual = state[1];
    info->rounding = state[2];
    info->nodes = (size_t)state[4];
    return info->status;
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

${name}_workspace *${name}_init(void)
{
    return (${name}_workspace *)calloc(1, sizeof(${name}_workspace));
}

void ${name}_free(${name}_workspace *workspace)
{
    if (workspace != NULL)
        forget(workspace);
    free(workspace);
}

static int solve_all(rule_set *set, size_t n, ${signature})
{
    size_t i;
    int first_failure = ${NAME}_OK, common = ${NAME}_OK;
${data_locals}${data_checks}    for (i = 0; i < n; i++) {
        double row_errors[${NAME}_N_OUTPUTS];
        ${name}_info row_info = {0, -1, INFINITY, INFINITY, 0};
        double *row_values = values + i * ${NAME}_N_OUTPUTS;
        size_t k;
        for (k = 0; k < ${NAME}_N_OUTPUTS; k++) {
            row_values[k] = NAN;
            row_errors[k] = INFINITY;
        }
        row_info.status = common;
        if (common == ${NAME}_OK)
            solve_one(set, parameters + i * ${NAME}_N_PARAMETERS, rtol, row_values, row_errors,
                      &row_info);
        if (first_failure == ${NAME}_OK)
            first_failure = row_info.status;
        for (k = 0; errors != NULL && k < ${NAME}_N_OUTPUTS; k++)
            errors[i * ${NAME}_N_OUTPUTS + k] = row_errors[k];
        if (info != NULL)
            info[i] = row_info;
    }
${data_free}    return first_failure;
}

${solve_with}
{
    return solve_all(workspace, 1, ${arguments});
}

${solve}
{
    return ${name}_solve_many(1, ${arguments});
}

${solve_many}
{
    rule_set set;
    int status;
    memset(&set, 0, sizeof(set));
    status = solve_all(&set, n, ${arguments});
    forget(&set);
    return status;
}
${selfcheck}"""
)

SELFCHECK = Template(
    """\

#ifdef ${NAME}_SELFCHECK
#include <stdio.h>

/* Solve at points of which the results are known; tell what is wrong. */
int main(void)
{
    enum { N = ${count} };
    static const double points[] = {${points}};
    static const double expected[] = {${expected}};
    static const double allowed[] = {${allowed}};
    static double found[N * ${NAME}_N_OUTPUTS], error[N * ${NAME}_N_OUTPUTS];
    int k, wrong = 0;
${data}    ${name}_solve_many(N, points, ${data_arguments}1e-11, found, error, NULL);
    for (k = 0; k < N * ${NAME}_N_OUTPUTS; k++)
        if (!(fabs(found[k] - expected[k]) <= error[k] + allowed[k])) {
            printf("%s = %.17g, expected %.17g\\n",
                   ${name}_output_names[k % ${NAME}_N_OUTPUTS], found[k], expected[k]);
            wrong++;
        }
    printf("%d of %d values are wrong\\n", wrong, N * ${NAME}_N_OUTPUTS);
    return wrong != 0;
}
#endif
"""
)
# Refuse data that cannot be, and make weights of sum one.
DATA_CHECK = """\
    if (common == ${NAME}_OK && (${d} == NULL || ${empty}))
        common = ${NAME}_BAD_ARGUMENT;
    if (common == ${NAME}_OK) {
        ${d}_weight = room_for((ptrdiff_t)${d}->rows);
        for (i = 0; ${d}_weight != NULL && i < ${d}->rows; i++)
            ${d}_weight[i] = ${d}->weight == NULL ? 1.0 : ${d}->weight[i];
        if (${d}_weight == NULL)
            common = ${NAME}_NO_MEMORY;
        else if (!${check})
            common = ${NAME}_BAD_ARGUMENT;
        set->${d} = ${d};
        set->${d}_weight = ${d}_weight;
    }
"""
# The points of the grid take the place of the nodes of the line, which they are made of.
POINTS_LOCALS = """\
    ptrdiff_t points[3];
    double *grid;
"""
POINTS = """\
    total = made->table_error < 0.0 ? -1
        : point_counts(level, p, set->line, made->counts, made->columns, points);
    if (total < 0) {
        made->table_error = -1.0;
    } else {
        grid = room_for(total);
        if (grid == NULL) {
            free(made->columns);
            made->columns = NULL;
            return ${NAME}_NO_MEMORY;
        }
        point_columns(level, p, set->line, made->counts, made->columns, points, grid);
        free(made->columns);
        made->columns = grid;
    }
"""


# What the driver calls its public names, arguments and locals where data sets are in scope.
_DRIVER_NAMES = frozenset(
    "solve solve_many solve_with solve_all solve_one init free workspace message parameter_names "
    "output_names info parameters rtol values errors n i k p set row row_values row_errors "
    "row_info status first_failure common made_for total level line columns counts state made all "
    "all_errors smaller larger forget make_level room_for solve_level rule_level rule_set "
    "levels".split()
)


def files(
    lowered: LoweredSystem,
    tables: BakedTables | None = None,
    name: str | None = None,
    vectors: Vectors | None = None,
) -> dict[str, str]:
    """Return header and source; see :meth:`..lowered.LoweredSystem.files`."""
    language = CLanguage(CPrinter({root.name: root.name for root in lowered.program.roots}))
    parts = KernelParts(lowered, language, tables, vectors)
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
            solve=self.declaration("solve", ""),
            solve_many=self.declaration("solve_many", "size_t n, "),
            solve_with=self.declaration("solve_with", f"{self.name}_workspace *workspace, "),
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
            "The functions keep no state but in workspaces: any number of threads may call them at "
            f"the same time, for instance {self.name}_solve_many on parts of an array."
        )
        lines = about(self.lowered, "C99, libm only", parts.fixed)
        lines += ["", *textwrap.wrap(threads, 92), "", *example]
        return "\n".join(["/*", *(f" * {harmless(x)}".rstrip() for x in lines), " */"])

    def enum(self, kind: str, names: Sequence[str]) -> str:
        if not names:
            return ""
        entries = ", ".join(f"{self.upper}_{kind}_{c_identifier(n)}" for n in names)
        return "\n".join(wrapped(f"enum {{ {entries} }};", "       ")) + "\n"

    def declaration(self, function: str, first: str) -> str:
        line = f"int {self.name}_{function}({first}{self.signature()})"
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
        grid = parts.product is not None
        pairs = [
            (x, f"{x}_weight", "".join(f", {x}->{c}" for c in columns)) for x, columns in self.data
        ]
        columns = ["level", "p", "set->levels[level].counts", "set->levels[level].columns"]
        columns += [
            f"set->{w}, (ptrdiff_t)set->{d}->rows{''.join(f', set->{d}->{c}' for c in names)}"
            for (d, w, _), (_, names) in zip(pairs, self.data, strict=True)
        ]
        call = f"solve_columns({', '.join([*columns, 'values', 'errors', 'state'])})"
        return self.fill(
            SOURCE,
            about=self.short_about(),
            extremes=_extremes(functions + driver),
            helpers="".join(f"{h.strip()}\n\n" for h in parts.helpers),
            constants="".join(_array(*item) for item in parts.arrays.items()),
            functions=functions,
            n_all_parameters=len(parts.all_inputs),
            n_all_outputs=len(parts.all_outputs),
            n_levels=parts.levels,
            points_locals=POINTS_LOCALS if grid else "",
            points=self.fill(POINTS) if grid else "",
            driver=driver,
            data_members="".join(
                f"    const {self.name}_{d} *{d};\n    const double *{w};\n" for d, w, _ in pairs
            ),
            solve_columns="\n".join(wrapped(call, " " * 18)),
            names=self.name_arrays(),
            bad_data=", or a data set is empty or holds such a number" if self.data else "",
            signature="\n".join(wrapped(self.signature(), "    ")),
            solve=self.declaration("solve", ""),
            solve_many=self.declaration("solve_many", "size_t n, "),
            solve_with=self.declaration("solve_with", f"{self.name}_workspace *workspace, "),
            arguments=", ".join(
                ["parameters", *(d for d, _ in self.data), "rtol", "values", "errors", "info"]
            ),
            data_locals="".join(f"    double *{w} = NULL;\n" for _, w, _ in pairs),
            data_checks="".join(
                self.fill(
                    DATA_CHECK,
                    d=d,
                    empty=" || ".join([f"{d}->rows == 0", *(f"{d}->{c} == NULL" for c in names)]),
                    check=f"check_data_{k}({w}, (ptrdiff_t){d}->rows{others})",
                )
                for k, ((d, w, others), (_, names)) in enumerate(zip(pairs, self.data, strict=True))
            ),
            data_free="".join(f"    free({w});\n" for _, w, _ in pairs),
            selfcheck=self.selfcheck(),
        )

    def selfcheck(self) -> str:
        vectors = self.parts.vectors
        if vectors is None:
            return ""
        lines = []
        for (d, names), columns in zip(self.data, vectors.columns(self.parts.data), strict=True):
            for name, values in zip(names, columns, strict=True):
                lines.append(f"static const double {d}_{name}[] = {{{_numbers(values)}}};")
            members = ", ".join([f"{len(columns[0])}", "NULL", *(f"{d}_{c}" for c in names)])
            lines.append(f"const {self.name}_{d} {d} = {{{members}}};")
        text = self.fill(
            SELFCHECK,
            **self.parts.known(_numbers),
            data="".join(f"    {line}\n" for line in lines),
            data_arguments="".join(f"&{d}, " for d, _ in self.data),
        )
        return "".join(
            f"{part}\n" for line in text.splitlines() for part in wrapped(line, "        ") or [""]
        )

    def short_about(self) -> str:
        lines = about(self.lowered, "C99, libm only", self.parts.fixed, brief=True)
        return "\n".join(["/*", *(f" * {harmless(x)}".rstrip() for x in lines), " */"])

    def name_arrays(self) -> str:
        parts = self.parts
        found = []
        for kind, names in (("parameter", parts.inputs), ("output", [o for o, _ in parts.results])):
            entries = ", ".join(f'"{n}"' for n in names) or "NULL"
            line = f"const char *const {self.name}_{kind}_names[] = {{{entries}}};"
            found += wrapped(line, "    ")
        return "\n".join(found) + "\n"


def _numbers(values: Sequence[float]) -> str:
    # An array has at least one element.
    return ", ".join(map(repr, values)) or "0.0"


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
