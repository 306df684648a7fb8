"""What a compiled-language kernel is made of, before it is text: functions, inputs, outputs."""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import sympy as sp
from sympy.core.function import AppliedUndef

from ....errors import EmissionError
from ...printing.language import Function, Language
from ...printing.special_functions import helper_texts, helpers
from ..documentation import DOMAIN_TESTS, domain_of, example_of
from ..driver import FIRST_STEP, LAST_LEVEL, decisions, first_line, geometry, solve_row
from ..measures import width_function
from ..rows import LEVELS
from ..scalar_grids import ProductPlan, product_functions, product_plan
from ..scalar_tables import PANEL_RULE, TablePlan, gauss_rule, table_functions, table_plan
from ..solver import scalar_functions
from .levels import LevelShape, data_function, row_functions

if TYPE_CHECKING:
    from ..driver import BakedTables
    from ..lowered import LoweredSystem
    from .vectors import Vectors

# What the text around the functions calls.
_ENTRIES = (
    "level_counts", "level_columns", "point_counts", "point_columns", "solve_columns", "admissible",
    "load_parameters", "same_tables", "finish_row", "solve_row",
)  # fmt: skip
# Most of the mass of the normal law is closer to zero.
_CENTRE = 6.0
# Names of the functions that kernels hold besides those of the solver, and of what is around them.
_OWN_NAMES = (
    "rule_density rule_step rule_clipped rule_reference table_row tabulate outer_reach "
    "outer_width outer_count outer_nodes smaller larger gauss_node gauss_weight fine_rule "
    "rule_refined rule_inner_reach medium_rule coarse_rule level_counts level_columns point_counts "
    "point_columns solve_columns admissible load_parameters same_tables part "
    "Rules make_level forget solve_row "
    "solve_level finish_row rule_worst rule_finished rule_better rule_following rule_wanted "
    "rule_coarseness rule_suffices rule_panel_count line_end panel_end rule_level "
    "rule_set checked_data integrand_width product_points product_step rule_pieces"
).split()


class KernelParts:
    """Parts of a kernel in a language.

    Functions are in their order; `driver` refines one row and comes after what the language itself
    does with `levels` levels of rules. `arrays` are constants of the file; `fixed` parameters have
    the values of `tables`, which stand in it. An EmissionError says that the language lacks a
    function, or that the tables do not belong to the system. Without `vectors` no file checks
    itself.
    """

    def __init__(
        self,
        lowered: LoweredSystem,
        language: Language,
        tables: BakedTables | None,
        vectors: Vectors | None = None,
    ) -> None:
        program, self.vectors = lowered.program, vectors
        self.program, self.language = program, language
        self.fixed = {} if tables is None else {k: float(v) for k, v in tables.parameters.items()}
        self.symbols = {str(p): p for p in program.parameters}
        self.baked = None
        if tables is not None and program.tables:
            self.baked = checked_tables(lowered, tables)
        # Bodies of functions are text in Python until a language walks them.
        checks = tuple(data_function(k, data) for k, data in enumerate(program.data))
        reserved = {*language.reserved, *_OWN_NAMES, *helpers(language.name), *keyword.kwlist}
        reserved |= {f.name for f in checks}
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
        functions += [*rules.values(), *solvers, *decisions()]
        self.table_inputs = tuple(lowered.identifiers[p] for p in lowered.table_parameters if line)
        refines = line or program.has_panels
        self.levels = LAST_LEVEL + 1 if refines else 1
        width = width_function(lowered, language)
        arguments: list[str] = []
        if width is not None:
            functions.append(width)
            outputs = [str(x) for x in program.outputs]
            arguments += [f"p[{k}]" for k in range(len(self.symbols))]
            unknowns = (lowered.identifiers[x] for x in lowered.system.unknowns)
            arguments += [f"best[{outputs.index(x)}]" for x in unknowns]
        known = {f.name: f for f in functions}
        self.results = list(lowered.results.items())
        self.used = {*map(str, program.reads), *self.table_inputs}
        known |= {f.name: f for f in self._level_functions(known, grid)}
        around = row_functions(
            inputs=self.inputs,
            fixed=self.fixed,
            parameters=self.all_inputs,
            tests=self._domain_tests(),
            table_places=self.table_places,
            results=[k for _, k in self.results],
        )
        known |= {f.name: f for f in (*around, *checks)}
        self.driver = solve_row(
            len(program.outputs),
            refines=refines,
            step=self._distance(),
            width="" if width is None else f"integrand_width({', '.join(arguments)})",
            calls=tuple(known.values()),
        )
        entries = (*_ENTRIES, *(f.name for f in checks))
        self.functions = tuple(_called([*known.values(), self.driver], entries)[:-1])
        texts = "\n".join(language.source(f) for f in (*self.functions, self.driver))
        self.helpers = helper_texts(language.name, texts)
        self.arrays: dict[str, Sequence[float]] = {}
        if "gauss_node" in texts:
            self.arrays |= dict(zip(("gauss_node", "gauss_weight"), gauss_rule(), strict=True))
        if self.baked is not None:
            rows = ("weight", *map(str, program.tables))
            for level, columns in zip(LEVELS, self.baked.levels, strict=True):
                numbers = [float(x) for name in rows for x in columns[name]]
                self.arrays[f"{level}_rule"] = numbers

    def _level_functions(self, known: Mapping[str, Function], grid: bool) -> tuple[Function, ...]:
        """Return what makes and solves the rules of a level."""
        arguments = [f"p[{k}]" for k in self.table_places]
        called, plan, baked = ", ".join(arguments), self.plan, self.baked
        split = plan is not None and bool(plan.breaks)
        reach, step = first_line(f"outer_width({called})", grid=grid, split=split)
        return LevelShape(
            self.program,
            arguments,
            None if plan is None else len(plan.tables),
            split=split,
            grid=grid,
            baked=[] if baked is None else [len(level["weight"]) for level in baked.levels],
            reach=f"outer_reach({called})" if plan is not None and plan.tables else reach,
            step=step,
        ).functions(known)

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

    def known(self, listed: Callable[[Sequence[float]], str]) -> dict[str, str]:
        """Return what a self-check compares, as text."""
        assert self.vectors is not None
        return self.vectors.texts(self.inputs, [o for o, _ in self.results], listed)

    @property
    def all_outputs(self) -> tuple[str, ...]:
        """Everything that the solver returns."""
        return tuple(map(str, self.program.outputs))

    @property
    def data(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Data sets with their columns, under the names that users give."""
        return tuple((d.name, d.given_names) for d in self.program.data)

    @property
    def all_inputs(self) -> tuple[str, ...]:
        """Parameters of the program."""
        return tuple(self.symbols)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Parameters that a caller gives."""
        return tuple(p for p in self.symbols if p not in self.fixed)

    def _domain_tests(self) -> Iterator[tuple[int, str]]:
        """Iterate over places of inputs and what is asked of them; unused ones may be anything."""
        for k, p in enumerate(self.inputs):
            test = DOMAIN_TESTS.get(domain_of(self.symbols[p]))
            if test is not None and p in self.used:
                yield k, test

    def example_values(self) -> dict[str, float]:
        """Return some admissible value of every input."""
        return {p: example_of(self.symbols[p]) for p in self.inputs}


def _called(functions: Sequence[Function], entries: Sequence[str]) -> list[Function]:
    """Keep the functions that the entries call, in order: unused ones are warned about."""
    found: list[Function] = []
    names = set(entries)
    for function in reversed(functions):
        if function.name in names and function.name not in {f.name for f in found}:
            found.append(function)
            names |= {n.id for n in ast.walk(function.tree) if isinstance(n, ast.Name)}
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


def checked_tables(lowered: LoweredSystem, tables: BakedTables) -> BakedTables:
    """Return tables that a file is to hold; refuse what does not belong to the system."""
    unknown = ", ".join(
        sorted(set(tables.parameters) - {str(p) for p in lowered.program.parameters})
    )
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
