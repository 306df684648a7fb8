"""What generated files for Python share: arguments, constants, rules, tables, refinement.

The NumPy, JAX, numba and plain Python files carry it; what solves rows on given rules is theirs.
The text of grids is that of :mod:`giantstep.runtime.product_grids`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...printing.printers import NumpyPrinter, helper_definitions
from ...printing.runtime_text import runtime_text
from ..documentation import about, domain_of
from ..driver import array_driver
from ..measures import width_text
from ..program import Newton, Panels
from ..rows import derived_outputs
from ..tables import table_source
from .arrays import VectorSource
from .kernel_parts import baked_step

if TYPE_CHECKING:
    from ..driver import BakedTables
    from ..lowered import LoweredSystem
    from .vectors import Vectors

GIVEN = '''
def given_parameters(parameters):
    """Return parameters as a dict with a value for each, or refuse them."""
    parameters = dict(parameters)
    missing = [name for name in PARAMETERS if name not in parameters]
    unknown = [name for name in parameters if name not in PARAMETERS]
    if missing or unknown:
        what = f"no value for {missing[0]!r}" if missing else f"{unknown[0]!r} is none of them"
        raise ValueError(f"parameters must hold {', '.join(PARAMETERS)}; {what}")
    return parameters


def given_data(data):
    """Return name, domains, columns and weight of each data set, or refuse them."""
    data = {} if data is None else dict(data)
    if len(DATA) == 1 and data and next(iter(DATA)) not in data:
        data = {next(iter(DATA)): data}
    if set(data) != set(DATA):
        raise ValueError(f"data must hold {', '.join(DATA) or 'nothing'}; got {list(data)}")
    sets = []
    for name, domains in DATA.items():
        given = dict(data[name])
        weight = given.pop("weight", None)
        if set(given) != set(domains):
            raise ValueError(
                f"the data {name} must have the columns {', '.join(domains)} (and, if wanted, "
                f"weight); got {', '.join(map(str, given))}"
            )
        sets.append((name, domains, given, weight))
    return sets
'''
"""What all files for Python say of their arguments."""

_DRIVER = '''
def solve_point(parameters, data=None, rtol=1e-11):
    """Solve at one set of parameters; return {output: (value, estimated error)}.

    Parameters
    ----------
    parameters : dict
        A number for each of `PARAMETERS`.
    data : dict, optional
        For each name of `DATA` a dict of its columns, equally long, and optionally "weight",
        which counts relative to the sum. If there is one data set only, its columns themselves.
    rtol : float
        Relative error of the first output at which the nodes are not doubled again.

    Raises
    ------
    ValueError
        If a parameter or data are missing, unknown or outside their domain.
    RuntimeError
        If no solution is found, or an integrand varies on a scale that no rule resolves.
    """
    parameters = given_parameters(parameters)
    row = [[parameters[name] for name in PARAMETERS]]
    values, errors, info, unseen = solve_all(row, data, rtol)
    if info[0, 0] < 0:
        point = ", ".join(f"{name} = {float(parameters[name])!r}" for name in PARAMETERS)
        at = f" at {point}" if point else ""
        if unseen[0]:
            raise RuntimeError(
                f"no result{at}: an integrand varies on a scale that no quadrature rule here "
                "resolves"
            )
        raise RuntimeError(
            f"no solution{at}: residual {info[0, 1]:.1e} after "
            f"{int(-info[0, 0])} iterations"
        )
    return {
        name: (float(values[0, k]), float(errors[0, k])) for k, name in enumerate(OUTPUTS)
    }


def solve_many(parameters, data=None, rtol=1e-11{keyword}):
    """Solve at many sets of parameters.

    Parameters
    ----------
    parameters : array (n, P)
        Columns as in `PARAMETERS`. Rows are grouped by the values of `TABLE_PARAMETERS`.
    data, rtol
        As in `solve_point`.{about_keyword}

    Returns
    -------
    values, errors : array (n, O)
        Columns as in `OUTPUTS`, with estimated absolute errors. NaN with infinite errors where no
        solution was found.
    info : array (n, 3)
        Iterations, negative where no solution was found; relative residual of the equations; the
        part of the first output's error that is rounding, relative to that output.
    """
    return solve_all(parameters, data, rtol{argument})[:3]


def solve_all(parameters, data, rtol{keyword}):
    """Return what `solve_many` does, and where no rule resolves an integrand."""
    rows = parameter_rows(parameters)
    columns = data_columns(data)
    if not rtol >= 0:
        raise ValueError(f"rtol must be a number >= 0, got {rtol!r}")
    found = unsolved(len(rows))
    places = [PARAMETERS.index(name) for name in TABLE_PARAMETERS]
    groups, members = np.unique(rows[:, places], axis=0, return_inverse=True)
    members = members.reshape(-1)
    for k, group in enumerate(groups):
        try:
            levels = Levels(group, columns)
        except ConvergenceError:
            # These rows stay without a solution.
            continue
        refine_group(rows, np.flatnonzero(members == k), levels, rtol, found{argument})
    values, errors, info, unseen = found
    return values[:, KEPT], errors[:, KEPT], info, unseen


def unsolved(n):
    """Return values, errors and info of rows without a solution, and that all is seen there."""
    values, errors = np.full((n, N_OUTPUTS), np.nan), np.full((n, N_OUTPUTS), np.inf)
    return values, errors, np.tile([-1.0, np.inf, np.inf], (n, 1)), np.zeros(n, dtype=bool)


def refine_group(rows, members, levels, rtol, found{argument}):
    """Solve some rows, which share tables, and write what is found; return their levels."""
    values, errors, info, not_seen = found

    def solve(part, level):
        try:
            rules = levels[level]
        except ConvergenceError:
            return None
        return {solver}(rows[part], rules{argument})

    def wanted_levels(part):
        with np.errstate(all="ignore"):
            width = width_at(rows[part], values[part])
            return rule_wanted(levels.step, width, info[part, 0])

    reached, unseen = refine(
        members, values, errors, info, solve, wanted_levels, levels.finest, rtol
    )
{rounding}    # Nothing is known where the rules are too coarse to see an integrand.
    unseen = members[unseen]
    not_seen[unseen] = True
    values[unseen], errors[unseen] = np.nan, np.inf
    info[unseen, 0] = -np.maximum(np.abs(info[unseen, 0]), 1)
    return reached


def parameter_rows(parameters):
    """Return parameters as an array (n, P), or refuse them."""
    try:
        rows = np.array(parameters, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("parameters must be real numbers") from None
    if rows.ndim != 2 or rows.shape[1] != len(PARAMETERS):
        raise ValueError(
            f"parameters must be an array (n, {len(PARAMETERS)}) with the columns "
            f"{', '.join(PARAMETERS)}; got shape {rows.shape}"
        )
    for k, (name, domain) in enumerate(zip(PARAMETERS, DOMAINS, strict=True)):
        wrong = np.flatnonzero(~inside(rows[:, k], domain))
        if len(wrong):
            raise ValueError(
                f"{name} must be a finite {domain} number, got {rows[wrong[0], k]} in row "
                f"{wrong[0]}"
            )
    return rows


def data_columns(data):
    """Return {array name: numbers} for the data sets, or refuse them."""
    arrays = {}
    for name, domains, given, weight in given_data(data):
        found = {column: np.array(given[column], dtype=float) for column in domains}
        shape = found[next(iter(domains))].shape
        weight = np.ones(shape) if weight is None else np.array(weight, dtype=float)
        if len(shape) != 1 or shape[0] == 0 or any(
            column.shape != shape for column in [weight, *found.values()]
        ):
            raise ValueError(f"all columns of the data {name} must be lists of the same length")
        for column, domain in domains.items():
            if not np.all(inside(found[column], domain)):
                raise ValueError(f"{column} of the data {name} must hold finite {domain} numbers")
        if not (np.all(inside(weight, "nonnegative")) and np.any(weight > 0)):
            raise ValueError(f"weight of the data {name} must hold nonnegative numbers, some > 0")
        arrays |= {f"{name}_{column}": numbers for column, numbers in found.items()}
        with np.errstate(over="ignore"):
            if not np.isfinite(np.sum(weight)):
                weight = weight / np.max(weight)
        arrays[f"weight_{name}"] = weight / np.sum(weight)
    return arrays


def inside(numbers, domain):
    """Tell which numbers are finite and in a domain."""
    with np.errstate(invalid="ignore"):
        holds = {
            "positive": numbers > 0,
            "negative": numbers < 0,
            "nonnegative": numbers >= 0,
            "nonpositive": numbers <= 0,
            "(-1, 1)": abs(numbers) < 1,
            "real": numbers == numbers,
        }[domain]
    return holds & np.isfinite(numbers)


class ConvergenceError(ArithmeticError):
    """The functions of the node cannot be tabulated."""


class Levels:
    """The arrays of three rules for each level of refinement, made when they are asked for.

    Attributes
    ----------
    finest : int
        The last level.
    step : float
        Distance of nodes of the finest rule of the first level.
    """

    def __init__(self, values, columns):
        self.values = [np.float64(v) for v in values]
        self.columns = columns
        self.found = {}
        self.finest = {finest}
        with np.errstate(all="ignore"):
            self.step = first_step(self.values)

    def __getitem__(self, level):
        if level not in self.found:
            with np.errstate(all="ignore"):
                line = line_tables(self.values, level)
            panels = panel_rules(level) if PANELS else [{}, {}, {}]
            self.found = {
                level: [{**a, **b, **self.columns} for a, b in zip(line, panels, strict=True)]
            }
        return self.found[level]
{shaken}

def panel_rules(level):
    """Return three rules on [0, 1], and where their lines end."""
    found = []
    for back in (0, 1, 2):
        n = rule_panel_count(level, back)
        node, weight = panel_rule(n)
        found.append(
            {
                "panel_node": node,
                "panel_weight": weight,
                "reach": np.float64(panel_end(FIRST_REACH, level, back)),
            }
        )
    return found
'''

_SHAKEN = """
    def shaken(self, level):
        \"\"\"Return the same with other rounding in tables; None where they lose no digits.\"\"\"
        with np.errstate(all="ignore"):
            line = line_tables(self.values, level, SHIFT)
        usual = self[level]
        if not lose_digits([usual[0][name] for name in line[0]], list(line[0].values())):
            return None
        return [{**a, **b} for a, b in zip(usual, line, strict=True)]
"""
_ROUNDING = """
    def shaken(part, level):
        rules = levels.shaken(level)
        if rules is None:
            return None
        again, _, state = {solver}(rows[part], rules{argument})
        return again, state

    add_table_rounding(members, values, errors, reached, shaken)
"""

_NO_LINE = '''
def first_step(values):
    """Return the step of a rule on the line, where there is none."""
    return FIRST_STEP


def line_tables(values, level):
    """Return the arrays on the nodes of the line: there are none."""
    return [{}, {}, {}]
'''

_REACH = '''
def first_step(values):
    """Return the step of the first rule on the line."""
    return FIRST_STEP * float(outer_scale(np.zeros(1), *values))


def outer_reach(values):
    """Return how far from zero the outer rule has to go: tables that grow need more."""
    def table_columns(x):
        found, _ = converged_tables(values, x)
        return np.array([found[name] for name in TABLES]).reshape(-1, len(x))

    return sufficient_reach(FIRST_REACH, table_columns)
'''

_CONVERGED = '''
def converged_tables(values, x):
    """Return tables at the nodes, and the level of inner rules at which they do not change."""

    def tabulate(level):
        found, refinable = tables_at(values, x, level)
        if not all(np.all(np.isfinite(column)) for column in found.values()):
            raise ConvergenceError
        return found, refinable

    return settled_tables(tabulate)
'''


@dataclass(frozen=True)
class Keyword:
    """An option of ``solve_many``: its name, its default and its lines in the docstring."""

    name: str
    default: str
    documentation: str


_GRID_TABLES = '''
def product_grid(values):
    """Return the rules on the grid of node and inner nodes."""
    return ProductGrid(
        GRID_FUNCTIONS, values, INNER_NODES, (*TABLES, *GRID_TABLES), EVEN,
        lambda x: converged_tables(values, x)[0],
    )


def first_step(values):
    """Return the smallest step of the first grid."""
    return product_grid(values).step


def finest_level(values):
    """Return the last level of refinement that there is room for."""
    return min(product_grid(values).finest, LAST_LEVEL)


def line_tables(values, level, shift=1.0):
    """Return weights, nodes and tables of three rules, each half as fine as the one before.

    Tables are evaluated at `shift` times the nodes.
    """
    names = ("weight", NODE, *INNER_NODES, *TABLES, *GRID_TABLES)
    rules = product_grid(values).lines(level, shift)
    return [dict(zip(names, rule, strict=True)) for rule in rules]
'''


_PANEL_RULE = (
    ("rules", ("LEGENDRE_NODES", "LEGENDRE_WEIGHTS", "PANEL_ORDER", "Rule")),
    ("quadrature", ("_PANEL_RULE", "panel_rule")),
)
# Of the rules those in floats: on a line, and what a grid needs besides.
_RULES = (
    "REACH", "FARTHEST_REACH", "LONGER_REACH", "PANEL", "EXPONENT", "GOLDEN",
    "LEGENDRE_NODES", "LEGENDRE_WEIGHTS", "PANEL_ORDER", "Rule", "trapezoidal_step",
    "refined_step", "inner_reach", "REACH_NODES", "NEGLIGIBLE", "farther",
)  # fmt: skip
_GRID_RULES = (
    "NESTED_REACH", "GRID_REACH", "GRID_REFINEMENT", "LONGER_GRID_REACH", "GRID_STEP",
    "GRID_INNER_STEP", "GRID_PANEL", "NEGLIGIBLE_ON_GRID", "grid_end", "grid_coarseness",
)  # fmt: skip
# Names of functions and constants of the file, which the program must not hide.
TAKEN = (
    "shift first_state advance inverse_of after_newton amplification_of movements refine unsolved "
    "breaks tables inside inner_rules outer_scale rules product_scales product_tables line_end "
    "panel_end rule_worst rule_finished rule_better rule_following rule_wanted rule_coarseness "
    "rule_suffices rule_panel_count"
).split()

_LINE_TABLES = '''
def line_tables(values, level, shift=1.0):
    """Return weights, nodes and tables of three rules, each half as fine as the one before.

    Tables are evaluated at `shift` times the nodes.
    """
    first = outer_reach(values)
    ends = [line_end(first, level, back) for back in range(3)]
    kinks = breaks(np.zeros(1), *values)
    step = first_step(values) * rule_coarseness(level, 0)
    if not kinks and not ends[0] / step < 1_000_000:
        raise ConvergenceError
    x, rules = line_rules(kinks, step, EVEN, level, ends)
    columns = {NODE: x, **converged_tables(values, shift * x)[0]}
    return [
        {"weight": w, **{name: column[places] for name, column in columns.items()}}
        for places, w in rules
    ]
'''

# What both targets that tabulate with arrays say.
REQUIRE_ROOM = '''
def require_room(kind, argument, level):
    """Refuse integrands that vary on no scale that a rule can resolve."""
    step = trapezoidal_step(*inner_extent(kind, argument))
    if not refined_step(step, level) > 3e-4:
        raise ConvergenceError
'''

_TABLES_AT = '''
def tables_at(values, x, level):
    """Return tables at the nodes, and whether their inner rules can be refined."""
    shared, parts, kinds = {}, [], {}
    # Some nodes at a time: inner rules with kinks have nodes of their own for each outer one.
    for part in np.array_split(x, -(-len(x) // 256)):
        kinds = inner_rules(part, *values)
        for slot, (kind, argument) in kinds.items():
            require_room(kind, argument, level)
            if kind == "split":
                shared[slot] = inner_rule(kind, argument, level)
            elif slot not in shared:
                shared[slot] = inner_rule(kind, argument, level)
        parts.append(tables(part, *values, shared))
    return {name: np.concatenate([p[name] for p in parts]) for name in TABLES}, bool(kinds)
'''


def docstring(lines: Sequence[str]) -> str:
    """Return lines as the docstring of a module."""
    text = "\n".join(lines).replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{text}\n"""\n'


def public_constants(
    lowered: LoweredSystem, fixed: Mapping[str, float], *, line: bool
) -> list[str]:
    """Return the lines of constants that users of a file may read."""
    program = lowered.program
    scales = {str(size) for size in program.magnitudes.values()}
    table_parameters = tuple(lowered.identifiers[p] for p in lowered.table_parameters)
    # A parameter that nothing depends on, as the alignment of no spike, may be anything.
    used = {*map(str, program.reads), *table_parameters}
    free = {
        str(p): domain_of(p) if str(p) in used else "real"
        for p in program.parameters
        if str(p) not in fixed
    }
    # In code the columns carry the name of their data set.
    data = {
        d.name: {str(c).removeprefix(f"{d.name}_"): domain_of(c) for c in d.columns}
        for d in program.data
    }
    return [
        f"PARAMETERS = {tuple(free)!r}",
        f"OUTPUTS = {tuple(str(x) for x in program.outputs if str(x) not in scales)!r}",
        "# The numbers that each parameter may be.",
        f"DOMAINS = {tuple(free.values())!r}",
        "# Parameters on which tables depend, and data sets with the domains of their columns.",
        f"TABLE_PARAMETERS = {table_parameters if line else ()!r}",
        f"DATA = {data!r}",
    ]


class PythonFile:
    """A file for Python on its way.

    It holds `tables` or, on a `line` that may be part of a `grid`, computes them. `taken` are names
    that the program must not hide, besides those of all files.
    """

    def __init__(
        self,
        lowered: LoweredSystem,
        tables: BakedTables | None,
        printer: NumpyPrinter,
        taken: Sequence[str] = (),
    ) -> None:
        self.lowered, self.program, self.tables = lowered, lowered.program, tables
        self.fixed = {} if tables is None else {k: float(v) for k, v in tables.parameters.items()}
        self.printer = type(printer)
        self.source = VectorSource(
            self.program, printer, constants=self.fixed, taken=(*TAKEN, *taken)
        )
        self.line = bool(self.program.tables) and tables is None
        self.grid = self.line and bool(self.program.inner_nodes)

    def constants(self, *, estimates: bool = True) -> str:
        """Return names of parameters and outputs, and their positions.

        Without `estimates` those are left out that only ``estimate`` of the array targets reads.
        """
        program = self.program
        outputs = [str(x) for x in program.outputs]
        scales = {str(x): str(size) for x, size in program.magnitudes.items()}
        logarithmic = {
            str(u): log
            for step in program.steps
            if isinstance(step, Newton)
            for u, log in zip(step.unknowns, step.logarithmic, strict=True)
        }
        # Where nothing has a size of its own, the first output has to do.
        measured = {**{u: u for u, log in logarithmic.items() if log}, **scales}
        measured = measured or {outputs[0]: outputs[0]}
        pairs = [(outputs.index(x), outputs.index(size)) for x, size in measured.items()]
        widest = max(
            (len(x.measure.breaks) + 1 for x in program.loops() if isinstance(x.measure, Panels)),
            default=0,
        )
        lines = [
            *public_constants(self.lowered, self.fixed, line=self.line),
            "# Outputs of `solve`: how many, and those for users.",
            f"N_OUTPUTS = {len(outputs)}",
            f"KEPT = {[k for k, x in enumerate(outputs) if x not in scales.values()]!r}",
            "# Whether rules can be refined, and into how many pieces break points cut the line.",
            f"REFINABLE = {self.line or program.has_panels}",
            f"PANELS = {widest}",
        ]
        estimated = [
            "# Unknowns with absolute residuals; all unknowns of Newton's method, and whether",
            "# their coordinates are logarithms; outputs of which nothing tells how they cancel;",
            "# pairs of an output and its scale; each output's scale; whether rules approximate",
            "# integrals.",
            f"ABSOLUTE = {[outputs.index(u) for u, log in logarithmic.items() if not log]!r}",
            f"UNKNOWNS = {tuple(outputs.index(str(u)) for u in program.newton_unknowns)!r}",
            f"LOGARITHMIC = {tuple(logarithmic.values())!r}",
            f"DERIVED = {tuple(derived_outputs(program))!r}",
            f"MEASURED = {tuple(pairs)!r}",
            f"SCALES = {tuple(outputs.index(scales[x]) if x in scales else -1 for x in outputs)!r}",
            f"QUADRATURE = {bool(program.tables) or program.has_panels}",
        ]
        lines += estimated if estimates else []
        node, *others = map(str, program.tables) if self.line else ("",)
        inner = len(program.inner_nodes)
        own = inner + len(self.lowered.definitions)
        if self.grid:
            lines += [
                "# Functions of the node, further nodes of the grid and functions of all of them; "
                "whether",
                "# half of the grid suffices.",
                f"NODE = {node!r}",
                f"TABLES = {tuple(others[inner:own])!r}",
                f"INNER_NODES = {tuple(others[:inner])!r}",
                f"GRID_TABLES = {tuple(others[own:])!r}",
                f"EVEN = {program.even}",
            ]
        elif self.line:
            lines += [
                "# Functions of the node; whether half of the line suffices.",
                f"NODE = {node!r}",
                f"TABLES = {tuple(others)!r}",
                f"EVEN = {program.even}",
            ]
        return "\n".join(lines)

    def driver(self, solver: str = "solve_rows", keyword: Keyword | None = None) -> list[str]:
        """Return ``width_at``, and ``solve_point``, ``solve_many`` and what they call, in NumPy.

        The file adds the function `solver` of rows and rules, whose last argument is `keyword`;
        with nodes on the line ``line_tables(values, level)`` and ``tables_at(values, x, level)``,
        and on a grid ``finest_level(values)``.
        """
        finest = "finest_level(self.values)" if self.grid else "LAST_LEVEL if REFINABLE else 0"
        texts = {
            "{shaken}": _SHAKEN if self.line else "",
            "{rounding}": _ROUNDING if self.line else "",
            "{finest}": finest,
            "{argument}": "" if keyword is None else f", {keyword.name}",
            "{about_keyword}": "" if keyword is None else f"\n    {keyword.documentation}",
            "{keyword}": "" if keyword is None else f", {keyword.name}={keyword.default}",
            "{solver}": solver,
        }
        text = _DRIVER
        for place, written in texts.items():
            text = text.replace(place, written)
        parts = [array_driver(self.program, line=self.line, grid=self.grid), GIVEN, text]
        parts += [*([] if self.grid else [_REACH]), _CONVERGED] if self.line else [_NO_LINE]
        if self.program.has_panels and not self.line:
            parts += [runtime_text(*names) for names in _PANEL_RULE]
        return [width_text(self.lowered, self.fixed), *parts]

    def rules(self) -> list[str]:
        """Return rules and tables of the node, and the grid if there is one."""
        names = {x: self.source.free_name(name) for x, name in self.lowered.identifiers.items()}
        text = table_source(
            self.lowered.definitions,
            node=self.lowered.node,
            identifiers=names,
            parameters=self.lowered.table_parameters,
            printer=self.printer,
            product=self.lowered.product,
        )
        # Without imports and helpers.
        parts = [runtime_text("rules", _RULES), runtime_text("quadrature")]
        parts += [text[text.index("def inner_rules(") :]]
        if self.grid:
            made = ["outer_scale", "breaks", "product_scales", "product_tables"]
            made += [*(f"product_breaks_{s}" for s in self.program.inner_nodes), "NESTED"]
            entries = "".join(f"    {name}={name},\n" for name in made)
            parts += [
                runtime_text("rules", _GRID_RULES),
                runtime_text("product_grids", without=("Array", "Tabulate", "Steep")),
                f"GRID_FUNCTIONS = SimpleNamespace(\n{entries})",
                _GRID_TABLES,
            ]
        return parts

    def line_parts(self) -> list[str]:
        """Return what a file that runs on NumPy needs for nodes of the line; tables if given."""
        if self.line:
            return [*self.rules(), *([] if self.grid else [_LINE_TABLES]), REQUIRE_ROOM, _TABLES_AT]
        return self.baked()

    def baked(self) -> list[str]:
        """Return ``line_tables`` and ``first_step`` for tables that are given."""
        tables = self.tables
        if tables is None or not self.program.tables:
            return []
        levels = [
            "    {\n"
            + "".join(f"        {key!r}: np.array({_numbers(v)}),\n" for key, v in level.items())
            + "    },\n"
            for level in tables.levels
        ]
        values = ", ".join(f"{key} = {float(v)!r}" for key, v in tables.parameters.items())
        return [
            (f"# Tables at {values}.\n" if values else "") + f"BAKED = [\n{''.join(levels)}]",
            "def first_step(values):\n"
            '    """Return the distance of the nodes of the first rule, which this file holds."""\n'
            f"    return {baked_step(tables, str(self.program.tables[0]))!r}",
            "def line_tables(values, level):\n"
            '    """Return the arrays of three rules, which this file holds."""\n'
            "    return BAKED",
        ]

    def text(
        self,
        kind: str,
        imports: str,
        parts: Sequence[str],
        usage: str = "",
        *,
        helpers: bool = True,
    ) -> str:
        """Return the file; in `usage` ``{point}`` and ``{data}`` stand for arguments."""
        body = joined(parts)
        if helpers:
            body = joined([helper_definitions(self.printer, body), body])
        lines = about(self.lowered, kind, self.fixed)
        if usage:
            lines += ["", *usage_lines(self.lowered, usage, self.source.parameters)]
        if re.search(r"(?<![\w.])scipy\.special\.", body):
            imports = imports.replace(
                "import numpy as np\n", "import numpy as np\nimport scipy.special\n"
            )
        if self.grid:
            imports = imports.replace(
                "import math\n", "import math\nfrom types import SimpleNamespace\n", 1
            )
        if "class Rule" in body:
            # The type annotations of the copied text stay text.
            imports = f"from __future__ import annotations\n\n{imports}"
        return f"{docstring(lines)}\n{imports}\n\n{body}\n"


_SELFCHECK = '''
# Known results: parameters, and value and error of each output; data that belong to all of them.
VECTORS = [
{vectors}]
VECTOR_DATA = {data}


def selfcheck():
    """Solve at the points of `VECTORS`; refuse a value that is farther off than its error."""
    for point, expected in VECTORS:
        found = solve_point(point, VECTOR_DATA{options})
        for name, (value, allowed) in expected.items():
            result, error = found[name]
            if not abs(result - value) <= error + allowed:
                raise AssertionError(f"{name} is {result}, expected {value}, at {point}")
    print(f"{len(VECTORS)} points: all values agree")


if __name__ == "__main__":
    selfcheck()
'''


def selfcheck_text(vectors: Vectors | None, options: str = "") -> str:
    """Return ``selfcheck`` and what runs it in a file that is run; nothing without vectors."""
    if vectors is None:
        return ""
    entries = "".join(
        f"    (\n        {dict(point)!r},\n        {{\n"
        + "".join(f"            {name!r}: {pair!r},\n" for name, pair in found.items())
        + "        },\n    ),\n"
        for point, found in zip(vectors.points, vectors.results, strict=True)
    )
    data = None if vectors.data is None else {d: dict(c) for d, c in vectors.data.items()}
    texts = {"{vectors}": entries, "{data}": repr(data), "{options}": options}
    text = _SELFCHECK
    for place, written in texts.items():
        text = text.replace(place, written)
    return text


def usage_lines(lowered: LoweredSystem, usage: str, parameters: Sequence[str]) -> list[str]:
    """Return the lines that say how a file is called."""
    sets = lowered.program.data
    data = f", {{{', '.join(f'{d.name!r}: …' for d in sets)}}}" if sets else ""
    point = ", ".join(f"{p!r}: …" for p in parameters)
    return usage.format(point=point, data=data).splitlines()


def joined(parts: Sequence[str]) -> str:
    """Return parts of a file with empty lines between them."""
    return "\n\n\n".join(part.strip("\n") for part in parts if part)


def _numbers(values: Sequence[float]) -> str:
    lines = []
    for k in range(0, len(values), 4):
        lines.append("            " + ", ".join(repr(float(v)) for v in values[k : k + 4]) + ",\n")
    return "[\n" + "".join(lines) + "        ]"
