"""The rules of one level of refinement as functions that every scalar language can say.

What a level holds is one array of columns, whose lengths are in an array of counts: for each of
three rules the nodes of the line with their weights and tables, then those of panels. A language
adds the memory: it asks ``level_counts`` how much there is, and hands it to ``level_columns``. On a
grid ``point_counts`` and ``point_columns`` follow, whose columns take the place of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from ....runtime.rules import MOST_FIRST_NODES, MOST_GRID_NODES, REACH
from ...printing.language import Function, Kind, Parameter
from ..documentation import DOMAIN_TESTS, domain_of
from ..program import Data, Program
from ..rows import LEVELS
from ..scalar_tables import PANEL_ORDER
from ..solver import data_parameters

OK, NO_SOLUTION, NO_MEMORY, UNRESOLVED, BAD_ARGUMENT = range(5)
"""What a solve returns."""

_PLACE = (Parameter("level", Kind.WHOLE), Parameter("p", Kind.ARRAY))
_LINE = Parameter("line", Kind.OUTPUT)
_COUNTS = Parameter("counts", Kind.COUNTS)
_POINTS = Parameter("points", Kind.COUNTS)
_COLUMNS = Parameter("columns", Kind.OUTPUT)
_MADE = Parameter("made", Kind.OUTPUT)
_SAYS = {
    "level_counts": """Count the nodes of a level.

Returns the numbers in all columns, or -1 if no rule resolves what is integrated.""",
    "level_columns": """Make nodes, weights and tables.

Returns the error of tables, relative to their largest value, or -1 if they do not converge.""",
    "point_counts": "Count the points of the grid that the nodes are part of.",
    "point_columns": "Make the points of the grid, before the columns of panels.",
    "solve_columns": "Solve a row on the rules of a level.",
}
_WRITTEN = tuple(Parameter(name, Kind.OUTPUT) for name in ("values", "errors", "state"))


@dataclass(frozen=True)
class LevelShape:
    """What the levels of a kernel are made of.

    The kernel makes nodes of the line if it has a number of `tables`, else `baked` are the lengths
    of the rules that the file holds. `reach` and `step` are the first of the line in the neutral
    text, `arguments` those of the functions of tables, elements of ``p``.
    """

    program: Program
    arguments: Sequence[str]
    tables: int | None
    split: bool
    grid: bool
    baked: Sequence[int]
    reach: str
    step: str

    def _given(self, *others: str) -> str:
        return ", ".join([*self.arguments, *others])

    @property
    def columns(self) -> int:
        """Columns of the nodes of the line, before a grid is made of them."""
        return 0 if self.tables is None else 2 + self.tables

    def functions(self, known: Mapping[str, Function]) -> tuple[Function, ...]:
        """Return the functions, of which `known` holds those that they call."""
        line = (*_PLACE, _LINE, _COUNTS)
        points = (*line, _COLUMNS, _POINTS)
        # Names of users may be anything; here they would meet those of the level.
        data = [replace(p, name=f"data_{k}") for k, p in enumerate(data_parameters(self.program))]
        solve = (*_PLACE, _COUNTS, _COLUMNS, *data, *_WRITTEN)
        found = {
            "level_counts": (line, self._counts(), Kind.WHOLE),
            "level_columns": ((*line, _COLUMNS), self._columns(), Kind.REAL),
            "point_counts": (points, self._point_counts(), Kind.WHOLE),
            "point_columns": ((*points, _MADE), self._point_columns(), None),
            "solve_columns": (solve, self._solve(known["solve_rows"]), None),
        }
        calls = tuple(known.values())
        return tuple(
            Function(name, p, _text(lines), returns=r, documentation=_SAYS[name], calls=calls)
            for name, (p, lines, r) in found.items()
            if self.grid or not name.startswith("point_")
        )

    def _counts(self) -> list[str]:
        lines = ["for k in range(6):", "    counts[k] = 0"]
        if self.tables is not None:
            lines += [
                "if level == 0:",
                f"    line[0] = {self.reach}",
                "    if line[0] < 0.0:",
                "        return -1",
                f"    line[1] = {self.step}",
                f"for k in range({3 if self.split else 1}):",
                "    step = line[1] * rule_coarseness(level, k)",
                "    reach = line_end(line[0], level, k)",
                f"    counts[k] = outer_count({self._given('step', 'reach')})",
                "    if counts[k] < 0:",
                "        return -1",
            ]
            if not self.split:
                # The coarser rules are every second and every fourth node of the finest.
                lines += [
                    "counts[1] = (counts[0] - 1) / 2 + 1",
                    "counts[2] = (counts[0] - 1) / 4 + 1",
                ]
        lines += [f"counts[{k}] = {n}" for k, n in enumerate(self.baked)]
        if self.program.has_panels:
            lines += [
                "for k in range(3):",
                f"    counts[3 + k] = {PANEL_ORDER} * rule_panel_count(level, k)",
            ]
        return [*lines, f"return {self._total('counts', self.columns)}"]

    def _total(self, counts: str, columns: int) -> str:
        line = " + ".join(f"{counts}[{k}]" for k in range(3))
        panels = " + ".join(f"counts[{3 + k}]" for k in range(3))
        return f"{columns} * ({line}) + 2 * ({panels})"

    def _columns(self) -> list[str]:
        node, tables = "part(columns, place + n, n)", "part(columns, place + 2 * n, TABLES * n)"
        make = [
            "n = counts[k]",
            "step = line[1] * rule_coarseness(level, k)",
            "reach = line_end(line[0], level, k)",
            f"outer_nodes({self._given('step', 'reach', 'part(columns, place, n)', node)})",
        ]
        if self.tables:
            tables = tables.replace("TABLES", str(self.tables))
            make += [
                f"distance = tabulate({', '.join([node, *self.arguments, tables])})",
                "if distance < 0.0:",
                "    return -1.0",
                "table_error = max(table_error, distance)",
            ]
        make.append(f"place += {self.columns} * n")
        lines = ["table_error = 0.0"]
        if self.tables is not None or self.program.has_panels:
            lines.append("place = 0")
        if self.split:
            lines += ["for k in range(3):", *(f"    {line}" for line in make)]
        elif self.tables is not None:
            lines += [
                "k = 0",
                *make,
                "for back in range(1, 3):",
                "    n = counts[back]",
                "    stride = 2 * back",
                "    nearer = line_end(line[0], level, back)",
                f"    for column in range({self.columns}):",
                "        for j in range(n):",
                "            fine = column * counts[0] + stride * j",
                "            columns[place + column * n + j] = columns[fine]",
                "    for j in range(n):",
                "        columns[place + j] *= stride",
                "        if nearer < reach and abs(columns[place + n + j]) > nearer:",
                "            columns[place + j] = 0.0",
                f"    place += {self.columns} * n",
            ]
        if self.program.has_panels:
            lines += [
                "for k in range(3):",
                "    n = counts[3 + k]",
                f"    rule_reference(rule_panel_count(level, k), part(columns, place, n), {node})",
                "    place += 2 * n",
            ]
        return [*lines, "return table_error"]

    @property
    def _point_size(self) -> int:
        return 1 + len(self.program.tables)

    def _points(self, total: str, columns: str) -> str:
        rule = ("rule_coarseness(level, k)", "line_end(line[0], level, k)", total, columns)
        line = f"part(columns, place, {self.columns} * n)"
        return f"product_points(n, {line}, {self._given(*rule)})"

    def _point_counts(self) -> list[str]:
        return [
            "place = 0",
            f"most = {MOST_GRID_NODES} if level > 0 else {MOST_FIRST_NODES}",
            "for k in range(3):",
            "    n = counts[k]",
            f"    points[k] = {self._points('0', 'part(columns, 0, 0)')}",
            "    if points[k] < 0 or points[k] > most:",
            "        return -1",
            f"    place += {self.columns} * n",
            f"return {self._total('points', self._point_size)}",
        ]

    def _point_columns(self) -> list[str]:
        size = self._point_size
        columns = f"part(made, goal, {size} * points[k])"
        lines = [
            "place = 0",
            "goal = 0",
            "for k in range(3):",
            "    n = counts[k]",
            f"    points[k] = {self._points('points[k]', columns)}",
            f"    place += {self.columns} * n",
            f"    goal += {size} * points[k]",
        ]
        if self.program.has_panels:
            lines += [
                "for k in range(2 * (counts[3] + counts[4] + counts[5])):",
                "    made[goal + k] = columns[place + k]",
            ]
        return [*lines, "for k in range(3):", "    counts[k] = points[k]"]

    def _solve(self, solve_rows: Function) -> list[str]:
        given = {
            "first": "0", "stop": "1", "parameters": "p", "results": "values", "errors": "errors",
            "info": "state", "starts": "starts",
        }  # fmt: skip
        size = self._point_size if self.grid else self.columns
        lines = []
        if size:
            lines += ["line_0 = 0", *_offsets("line", "counts[{}]", size)]
        if self.program.has_panels:
            line = f"{size} * (counts[0] + counts[1] + counts[2])" if size else "0"
            lines += [f"panel_0 = {line}", *_offsets("panel", "counts[3 + {}]", 2)]
        unknowns = len(self.program.newton_unknowns)
        if unknowns:
            # Not a number: the program's own start.
            lines += [
                f"starts = array({unknowns})", f"for k in range({unknowns}):", "    starts[k] = nan"
            ]  # fmt: skip
        arguments = []
        place, data = 0, count()
        for p in solve_rows.parameters:
            level, _, name = p.name.partition("_")
            rule = LEVELS.index(level) if level in LEVELS else -1
            if rule < 0:
                arguments.append(given.get(p.name) or f"data_{next(data)}")
            elif p.kind is Kind.REAL:
                arguments.append(f"panel_end({REACH!r}, level, {rule})")
            else:
                place = 0 if p.counted else place + 1
                panel = name in ("panel_weight", "panel_node")
                length = f"counts[{3 + rule if panel else rule}]"
                array, first = "columns", f"{'panel' if panel else 'line'}_{rule} + "
                if self.baked and not panel:
                    array, first = f"{level}_rule", ""
                arguments.append(f"part({array}, {first}{place} * {length}, {length})")
        return [
            *lines,
            f"solve_rows({', '.join(arguments)})",
            "state[4] = counts[0] + counts[3]",
        ]


def _offsets(name: str, length: str, columns: int) -> list[str]:
    return [f"{name}_{k} = {name}_{k - 1} + {columns} * {length.format(k - 1)}" for k in (1, 2)]


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def row_functions(
    *,
    inputs: Sequence[str],
    fixed: Mapping[str, float],
    parameters: Sequence[str],
    tests: Iterable[tuple[int, str]],
    table_places: Sequence[int],
    results: Sequence[int],
) -> tuple[Function, ...]:
    """Return the functions around the solution of a row.

    `tests` are places of inputs and what is asked of them, `results` places of public outputs among
    all, `table_places` those of parameters on which nodes and tables depend.
    """
    row, p = Parameter("row", Kind.ARRAY), Parameter("p", Kind.ARRAY)
    admissible = [f"isfinite(row[{k}])" for k in range(len(inputs))]
    admissible += [test.format(f"row[{k}]") for k, test in tests]
    loads = [
        f"p[{k}] = {fixed[x]!r}" if x in fixed else f"p[{k}] = row[{inputs.index(x)}]"
        for k, x in enumerate(parameters)
    ]
    same = [f"p[{k}] == made_for[{k}]" for k in table_places]
    good = [f"isfinite(found[{k}])" for k in results]
    finish = [
        "good = status == 0 and state[0] >= 0.0",
        *(f"good = good and {test}" for test in good),
        *(f"values[{i}] = found[{k}] if good else nan" for i, k in enumerate(results)),
        *(f"errors[{i}] = found_errors[{k}] if good else inf" for i, k in enumerate(results)),
        "if good:",
        "    return 0",
        "if status == 0:",
        "    state[0] = -max(abs(state[0]), 1.0)",
        f"    return {NO_SOLUTION}",
        "state[0] = -1.0",
        "state[1] = inf",
        "state[2] = inf",
        f"return {UNRESOLVED} if status < 0 else status",
    ]
    return (
        Function(
            "admissible", (row,), _text(_all(admissible)), returns=Kind.FLAG,
            documentation="Whether a row is finite and in its domain.",
        ),
        Function(
            "load_parameters", (row, Parameter("p", Kind.OUTPUT)), _text(loads or ["return"]),
            documentation="All parameters, from those that a caller gives.",
        ),
        Function(
            "same_tables", (p, Parameter("made_for", Kind.ARRAY)), _text(_all(same)),
            returns=Kind.FLAG,
            documentation="Whether nodes and tables that were made for other parameters are right.",
        ),
        Function(
            "finish_row",
            (
                Parameter("status", Kind.WHOLE), Parameter("found", Kind.ARRAY),
                Parameter("found_errors", Kind.ARRAY), Parameter("state", Kind.OUTPUT),
                Parameter("values", Kind.OUTPUT), Parameter("errors", Kind.OUTPUT),
            ),
            _text(finish), returns=Kind.WHOLE,
            documentation="Results of a row; there are none where there is no solution.\n\n"
            "Returns the status for a caller.",
        ),
    )  # fmt: skip


def data_function(number: int, data: Data) -> Function:
    """Return the function that refuses data which cannot be, and makes weights of sum one."""
    columns = [f"column_{k}" for k in range(len(data.columns))]
    tests = ["weight[i] >= 0.0", *(f"isfinite({column}[i])" for column in columns)]
    for column, symbol in zip(columns, data.columns, strict=True):
        test = DOMAIN_TESTS.get(domain_of(symbol))
        tests += [test.format(f"{column}[i]")] if test else []
    inside = [line for test in tests for line in (f"if not ({test}):", "    return False")]
    return Function(
        f"check_data_{number}",
        (
            Parameter("weight", Kind.OUTPUT, counted=True),
            *(Parameter(column, Kind.ARRAY) for column in columns),
        ),
        _text(
            [
                "total = 0.0",
                "for i in range(len(weight)):",
                *(f"    {line}" for line in inside),
                "    total += weight[i]",
                "if not (total > 0.0 and isfinite(total)):",
                "    return False",
                "for i in range(len(weight)):",
                "    weight[i] /= total",
                "return True",
            ]
        ),
        returns=Kind.FLAG,
        documentation="Whether data are in their domains; weights get the sum one.",
    )


def _all(tests: Sequence[str]) -> list[str]:
    lines = []
    for test in tests:
        lines += [f"if not ({test}):", "    return False"]
    return [*lines, "return True"]
