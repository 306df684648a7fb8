"""What a compiled-language kernel is made of, before it is text: functions, inputs, outputs."""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import sympy as sp
from sympy.core.function import AppliedUndef

from ....errors import EmissionError
from ....one_thread import syntax_tree
from ...printing.language import Function, Kind, Language
from ...printing.special_functions import helper_texts, helpers
from ..documentation import domain_of
from ..driver import DECISIONS, FIRST_STEP, LEVELS, first_line, geometry, solve_row
from ..measures import width_function
from ..program import Data
from ..scalar_grids import ProductPlan, product_functions, product_plan
from ..scalar_tables import PANEL_RULE, TablePlan, table_functions, table_plan
from ..solver import scalar_functions

if TYPE_CHECKING:
    from ..driver import BakedTables
    from ..lowered import LoweredSystem

_TESTS = {
    "positive": "row > 0.0",
    "negative": "row < 0.0",
    "nonnegative": "row >= 0.0",
    "nonpositive": "row <= 0.0",
    "(-1, 1)": "row > -1.0 && row < 1.0",
}
# What the text around the functions calls.
_ENTRIES = (
    "solve_rows", "tabulate", "outer_reach", "outer_width", "outer_count", "outer_nodes",
    "product_points", "rule_coarseness", "line_end", "panel_end", "rule_panel_count", "solve_row",
    PANEL_RULE.name,
)  # fmt: skip
_SPLIT_ENTRIES = tuple(name for name in _ENTRIES if name != "outer_width")
# Most of the mass of the normal law is closer to zero.
_CENTRE = 6.0
_EXAMPLES = {"positive": 1.0, "negative": -1.0, "nonnegative": 1.0, "nonpositive": -1.0}
# Names of the functions that kernels in C and Julia hold besides those of the solver.
_OWN_NAMES = (
    "rule_density rule_step rule_clipped rule_reference table_row tabulate outer_reach "
    "outer_width outer_count outer_nodes smaller larger gauss_node gauss_weight fine_rule "
    "rule_refined rule_inner_reach medium_rule coarse_rule FINE_RULE MEDIUM_RULE COARSE_RULE "
    "Rules make_level forget solve_row "
    "solve_level finish_row rule_worst rule_finished rule_better rule_following rule_wanted "
    "rule_coarseness rule_suffices rule_panel_count line_end panel_end check_parameters rule_level "
    "rule_set checked_data admissible integrand_width product_points product_step rule_pieces "
    "make_points"
).split()


class KernelParts:
    """Parts of a kernel in a language.

    Parameters
    ----------
    lowered : LoweredSystem
    language : Language
    tables : BakedTables or None
        Tables to write into the kernel; else it computes them.

    Attributes
    ----------
    symbols : mapping from str to Symbol
        Parameters of the program by name.
    functions : tuple of Function
        In order.
    solve_rows : Function
    driver : Function
        Refines one row; it comes after what the kernel itself does in the words of its language.
    helpers : list of str
        Definitions of special functions in the target.
    plan : TablePlan or None
        Where the kernel computes tables itself.
    product : ProductPlan or None
        Where it makes a grid of outer and inner nodes besides.
    baked : BakedTables or None
        Where they are written into it.
    fixed : mapping from str to float
        Parameters that have a value in the file.
    table_inputs : tuple of str
        Parameters of the table functions, in their order.
    results : list of (str, int)
        Public outputs with their places among all outputs.
    used : set of str
        Parameters that are read; others may be outside their domain, as a limit may.
    uses_gauss : bool
        The Gauss-Legendre rule is needed.
    refines : bool
        There are rules that can be refined.
    first_reach, first_step : str
        Where the first rule of the line ends, and its step or length of panels.

    Raises
    ------
    EmissionError
        If the language lacks a function, or the tables do not belong to the system.
    """

    def __init__(
        self, lowered: LoweredSystem, language: Language, tables: BakedTables | None
    ) -> None:
        program = lowered.program
        self.program, self.language = program, language
        self.fixed = {} if tables is None else {k: float(v) for k, v in tables.parameters.items()}
        self.symbols = {str(p): p for p in program.parameters}
        self.baked = None
        if tables is not None and program.tables:
            self.baked = _checked(lowered, tables, self.symbols)
        # Bodies of functions are text in Python until a language walks them.
        reserved = {*language.reserved, *_OWN_NAMES, *helpers(language.name), *keyword.kwlist}
        solvers = scalar_functions(program, reserved)
        line = bool(program.tables) and self.baked is None
        grid = lowered.product is not None and line
        rules = {f.name: f for f in geometry(program, line=line, grid=grid)}
        self.plan: TablePlan | None = None
        self.product: ProductPlan | None = None
        functions: list[Function] = []
        if line:
            names = _names_in_code(lowered)
            self.plan = _plan(lowered, language, names)
            suffices = rules["rule_suffices"]
            functions += table_functions(self.plan, program.even, suffices, grid=grid)
            if lowered.product is not None:
                self.product = product_plan(
                    lowered.product,
                    tables=tuple(lowered.definitions),
                    node=lowered.node,
                    names=names,
                    printable=language.prints,
                )
                functions += product_functions(self.product, self.plan.widths)
        if program.has_panels:
            functions += [PANEL_RULE]
        functions += [*rules.values(), *solvers, *DECISIONS]
        self.table_inputs = tuple(lowered.identifiers[p] for p in lowered.table_parameters if line)
        self.refines = line or program.has_panels
        width = width_function(lowered, language)
        arguments: list[str] = []
        if width is not None:
            functions.append(width)
            outputs = [str(x) for x in program.outputs]
            arguments += [f"p[{k}]" for k in range(len(self.symbols))]
            unknowns = (lowered.identifiers[x] for x in lowered.system.unknowns)
            arguments += [f"best[{outputs.index(x)}]" for x in unknowns]
        known = {f.name: f for f in functions}
        self.driver = solve_row(
            len(program.outputs),
            refines=self.refines,
            step=self._distance(),
            width="" if width is None else f"integrand_width({', '.join(arguments)})",
            calls=tuple(known.values()),
        )
        # Without a step of its own a rule between kinks has no use for the width of tables.
        split = self.plan is not None and bool(self.plan.breaks)
        entries = _SPLIT_ENTRIES if split and not self.product else _ENTRIES
        self.functions = tuple(_called([*known.values(), self.driver], entries)[:-1])
        self.solve_rows = solvers[-1]
        texts = "\n".join(language.source(f) for f in (*self.functions, self.driver))
        self.helpers = helper_texts(language.name, texts)
        self.uses_gauss = "gauss_node[" in texts
        sizes = set(program.magnitudes.values())
        self.results = [(str(x), k) for k, x in enumerate(program.outputs) if x not in sizes]
        self.used = {*map(str, program.reads), *self.table_inputs}
        self.first_reach, self.first_step = first_line(
            f"outer_width({self.table_arguments})", grid=grid, split=split
        )

    def _distance(self) -> str:
        """Return the distance of the nodes of the first rule, in the neutral text."""
        inputs = ", ".join(f"p[{k}]" for k in self.table_places)
        if self.product is not None:
            return f"product_step({inputs})"
        if self.plan is not None:
            return f"{FIRST_STEP} * outer_width({inputs})"
        if self.baked is None:
            return repr(FIRST_STEP)
        return repr(baked_step(self.baked, str(self.program.tables[0])))

    @property
    def table_places(self) -> list[int]:
        """Places of the parameters of the table functions among all."""
        return [self.all_inputs.index(x) for x in self.table_inputs]

    @property
    def table_arguments(self) -> str:
        """The arguments of the table functions, as the language writes elements of ``p``."""
        function = self.driver
        return ", ".join(self.language.element("p", [str(k)], function) for k in self.table_places)

    @property
    def all_outputs(self) -> tuple[str, ...]:
        """Everything that the solver returns."""
        return tuple(map(str, self.program.outputs))

    @property
    def data_sets(self) -> tuple[Data, ...]:
        """Data sets of the user."""
        return self.program.data

    @property
    def data(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Data sets with their columns, under the names that users give."""
        return tuple(
            (d.name, tuple(str(c).removeprefix(f"{d.name}_") for c in d.columns))
            for d in self.data_sets
        )

    @property
    def n_line_columns(self) -> int:
        """Columns of the nodes of the line: weights, nodes and their tables."""
        return 2 + len(self.plan.tables) if self.plan is not None else 1

    @property
    def all_inputs(self) -> tuple[str, ...]:
        """Parameters of the program."""
        return tuple(self.symbols)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Parameters that a caller gives."""
        return tuple(p for p in self.symbols if p not in self.fixed)

    def row_arguments(self) -> Iterator[tuple[str, str, int, int, bool]]:
        """Iterate over the arguments of ``solve_rows``: kind, name, rule, place, whether counted.

        Columns of a rule have the kind "line" or "panel" and a place among those of their kind; the
        others are "reach" of a rule, arrays of "data", and what is "given" to all kernels.
        """
        place = 0
        for p in self.solve_rows.parameters:
            level, _, name = p.name.partition("_")
            rule = LEVELS.index(level) if level in LEVELS else -1
            if rule < 0:
                yield "data" if p.kind is Kind.ARRAY else "given", p.name, rule, 0, p.counted
            elif p.kind is Kind.REAL:
                yield "reach", p.name, rule, 0, False
            else:
                place = 0 if p.counted else place + 1
                kind = "panel" if name in ("panel_weight", "panel_node") else "line"
                yield kind, p.name, rule, place, p.counted

    def domain_tests(self) -> Iterator[tuple[int, str]]:
        """Iterate over places of inputs and conditions on ``row``; unused ones may be anything."""
        for k, p in enumerate(self.inputs):
            test = _TESTS.get(domain_of(self.symbols[p]))
            if test is not None and p in self.used:
                yield k, test

    @staticmethod
    def data_tests(data: Data) -> Iterator[tuple[int, str]]:
        """Iterate over places of columns and conditions on ``row``, a number in them."""
        for k, column in enumerate(data.columns):
            test = _TESTS.get(domain_of(column))
            if test is not None:
                yield k, test

    def example_values(self) -> dict[str, float]:
        """Return some admissible value of every input."""
        return {p: _EXAMPLES.get(domain_of(self.symbols[p]), 0.5) for p in self.inputs}


def _called(functions: Sequence[Function], entries: Sequence[str]) -> list[Function]:
    """Keep the functions that the entries call, in order: unused ones are warned about."""
    found: list[Function] = []
    names = set(entries)
    for function in reversed(functions):
        if function.name in names and function.name not in {f.name for f in found}:
            found.append(function)
            body = syntax_tree(function.body)
            names |= {n.id for n in ast.walk(body) if isinstance(n, ast.Name)}
            for expr in function.expressions.values():
                names |= {type(f).__name__ for f in expr.atoms(AppliedUndef)}
    return found[::-1]


def baked_step(tables: BakedTables, node: str) -> float:
    """Return the largest distance of nodes in the finest rule, far out excepted."""
    nodes = sorted(x for x in tables.levels[0][node] if abs(x) < _CENTRE)
    return max((b - a for a, b in pairwise(nodes)), default=FIRST_STEP)


def _names_in_code(lowered: LoweredSystem) -> dict[sp.Symbol, sp.Symbol]:
    """Return symbols for node and parameters of tables whose names clash with nothing."""
    names = {
        p: sp.Symbol(f"p_{lowered.identifiers[p]}", **p.assumptions0)
        for p in lowered.table_parameters
    }
    return {**names, lowered.node: sp.Symbol("x_node", **lowered.node.assumptions0)}


def _plan(
    lowered: LoweredSystem, language: Language, names: Mapping[sp.Symbol, sp.Symbol]
) -> TablePlan:
    changes: dict[sp.Expr, sp.Expr] = dict(names)
    definitions = {f.xreplace(changes): d.xreplace(changes) for f, d in lowered.definitions.items()}
    plan = table_plan(
        definitions,
        node=names[lowered.node],
        parameters=tuple(names[p] for p in lowered.table_parameters),
        printable=language.prints,
    )
    if lowered.product is None:
        return plan
    widths = [x.xreplace(changes) for x in lowered.product.outer_scales]
    breaks = [x.xreplace(changes) for x in lowered.product.outer_breaks]
    return replace(plan, widths=(*plan.widths, *widths), breaks=(*plan.breaks, *breaks))


def _checked(
    lowered: LoweredSystem, tables: BakedTables, symbols: Mapping[str, sp.Symbol]
) -> BakedTables:
    unknown = ", ".join(sorted(set(tables.parameters) - set(symbols)))
    if unknown:
        raise EmissionError(f"tables hold values of {unknown}, which the system has not")
    needed = {lowered.identifiers[p] for p in lowered.table_parameters}
    missing = ", ".join(sorted(needed - set(tables.parameters)))
    if missing:
        raise EmissionError(f"the tables depend on {missing}: give the values they were made for")
    for level in tables.levels:
        for name in ("weight", *map(str, lowered.program.tables)):
            if name not in level:
                raise EmissionError(f"the tables lack the array {name!r}")
            if not all(map(math.isfinite, level[name])):
                raise EmissionError(f"the array {name!r} of the tables holds a number not finite")
    return tables
