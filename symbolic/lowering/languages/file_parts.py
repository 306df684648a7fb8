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
from ..documentation import about, domain_of, domain_tests, filled
from ..measures import width_text
from ..program import Newton, Panels
from ..rows import derived_outputs
from ..tables import table_source
from .arrays import VectorSource
from .kernel_parts import baked_step, checked_tables

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
            levels = levels_at(group, columns)
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
    *tables, not_seen = found
    values, errors, info = tables

    def solve(part, level, shaken=False):
        try:
            rules = levels.shaken(level) if shaken else levels[level]
        except ConvergenceError:
            return None
        return {solver}(rows[part], rules{argument})

    widths = {widths}
    reached, unseen = refined(levels, members, tables, solve, widths, rtol)
    # Nothing is known where the rules are too coarse to see an integrand.
    unseen = members[unseen]
    not_seen[unseen] = True
    values[unseen], errors[unseen] = np.nan, np.inf
    info[unseen, 0] = -np.maximum(np.abs(info[unseen, 0]), 1)
    return reached


def levels_at(values, columns):
    """Return the arrays of each level of refinement at values of `TABLE_PARAMETERS`."""
    return Levels({line}, {panels}, columns)


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
    """Return weights and columns of the data sets as one array each, or refuse them."""
    arrays = []
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
        with np.errstate(over="ignore"):
            if not np.isfinite(np.sum(weight)):
                weight = weight / np.max(weight)
        arrays.append(np.stack([weight / np.sum(weight), *found.values()]))
    return arrays


def inside(numbers, domain):
    """Tell which numbers are finite and in a domain."""
    with np.errstate(invalid="ignore"):
        holds = {
            {tests}
        }[domain]
    return holds & np.isfinite(numbers)


class ConvergenceError(ArithmeticError):
    """The functions of the node cannot be tabulated."""
'''

_BY_NAME = '''
def by_name(arrays):
    """Return {{name: array}} for three rules, from the arrays of a level."""
    found, arrays = [{{}}, {{}}, {{}}], list(arrays)
    for names in {rules}:
        for rule in found:
            rule.update(zip(names, np.atleast_1d(arrays.pop(0)), strict=True))
    for names in {data}:
        columns = dict(zip(names, arrays.pop(0), strict=True))
        found = [{{**rule, **columns}} for rule in found]
    return found
'''


@dataclass(frozen=True)
class Keyword:
    """An option of ``solve_many``: its name, its default and its lines in the docstring."""

    name: str
    default: str
    documentation: str


# Of the text that files share: what all have; what rules on the line need, and what grids do.
_RULES = (
    "REACH", "FARTHEST_REACH", "LONGER_REACH", "NESTED_REACH", "MOST_REFINEMENTS", "FINEST_LEVEL",
    "LAST_LEVEL", "FIRST_STEP", "MOVING_PANELS", "LEGENDRE_NODES", "LEGENDRE_WEIGHTS",
    "PANEL_ORDER", "Rule", "moving_end", "panel_count",
)  # fmt: skip
_LINE_RULES = (
    "PANEL", "PANEL_PHASE", "EXPONENT", "GOLDEN", "REACH_NODES", "NEGLIGIBLE", "trapezoidal_step",
    "refined_step", "inner_reach", "fixed_end", "line_coarseness", "farther",
)  # fmt: skip
_GRID_RULES = (
    "GRID_REACH", "GRID_REFINEMENT", "LONGER_GRID_REACH", "GRID_STEP", "GRID_INNER_STEP",
    "GRID_PANEL", "MOST_GRID_NODES", "MOST_FIRST_NODES", "NEGLIGIBLE_ON_GRID", "grid_end",
    "grid_coarseness", "ball_volume",
)  # fmt: skip
# Names of functions and constants of the file, which the program must not hide.
TAKEN = (
    "shift first_state advance inverse_of after_newton with_losses amplification_of movements "
    "refine unsolved breaks tables inside inner_rules outer_scale rules product_scales "
    "product_tables line_end panel_end rule_worst rule_finished rule_better rule_following "
    "rule_wanted rule_coarseness rule_suffices rule_panel_count"
).split()


def docstring(lines: Sequence[str]) -> str:
    """Return lines as the docstring of a module."""
    text = "\n".join(lines).replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{text}\n"""\n'


def public_constants(
    lowered: LoweredSystem, fixed: Mapping[str, float], *, line: bool
) -> list[str]:
    """Return the lines of constants that users of a file may read."""
    program = lowered.program
    table_parameters = tuple(lowered.identifiers[p] for p in lowered.table_parameters)
    # A parameter that nothing depends on, as the alignment of no spike, may be anything.
    used = {*map(str, program.reads), *table_parameters}
    free = {
        str(p): domain_of(p) if str(p) in used else "real"
        for p in program.parameters
        if str(p) not in fixed
    }
    data = {
        d.name: dict(zip(d.given_names, map(domain_of, d.columns), strict=True))
        for d in program.data
    }
    return [
        f"PARAMETERS = {tuple(free)!r}",
        f"OUTPUTS = {tuple(lowered.results)!r}",
        "# The numbers that each parameter may be.",
        f"DOMAINS = {tuple(free.values())!r}",
        "# Parameters on which tables depend, and data sets with the domains of their columns.",
        f"TABLE_PARAMETERS = {table_parameters if line else ()!r}",
        f"DATA = {data!r}",
    ]


_BAKED = '''
{values}BAKED = [
{levels}]


class Baked:
    """Three rules of the line, which this file holds."""

    halvings, finest, costly, step = 1.0, {finest}, False, {step}

    def lines(self, level, shift=1.0):
        """Return [fine, medium, coarse], the same at all levels."""
        return BAKED
'''


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
        self.lowered, self.program = lowered, lowered.program
        self.tables = checked_tables(lowered, tables) if tables and self.program.tables else tables
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
        scales = {str(x): str(size) for x, size in program.sizes.items()}
        logarithmic = {
            str(u): log
            for step in program.steps
            if isinstance(step, Newton)
            for u, log in zip(step.unknowns, step.logarithmic, strict=True)
        }
        # Where nothing has a size of its own, the first output has to do.
        measured = {u: u for u, log in logarithmic.items() if log}
        measured |= {str(x): str(size) for x, size in program.magnitudes.items()}
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
            f"KEPT = {list(self.lowered.results.values())!r}",
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
            "# Into how many pieces break points cut the line.",
            f"PANELS = {widest}",
        ]
        lines += estimated if estimates else []
        tables = tuple(map(str, program.tables[1:]))
        inner = len(program.inner_nodes)
        own = inner + len(self.lowered.definitions)
        if self.line:
            lines += [
                "# Functions of the node; whether half of the rule suffices.",
                f"TABLES = {tables[inner:own]!r}",
                f"EVEN = {program.even}",
            ]
        if self.grid:
            lines += [
                "# Further nodes of the grid, and functions of all of them.",
                f"INNER_NODES = {tables[:inner]!r}",
                f"GRID_TABLES = {tables[own:]!r}",
            ]
        return "\n".join(lines)

    def driver(
        self, solver: str = "solve_rows", keyword: Keyword | None = None, line: str = ""
    ) -> list[str]:
        """Return ``solve_point``, ``solve_many`` and all that they call but the function `solver`.

        It takes rows, the arrays of a level and, if there is one, the `keyword`. Rules and tables
        are those of the process (:mod:`giantstep.runtime.levels`), or made by the class `line`.
        """
        tables = "Tables(FUNCTIONS, values, TABLES)"
        if self.grid:
            tables = "Tables(FUNCTIONS, values, (*TABLES, *GRID_TABLES), once=True)"
            line = f"ProductGrid({tables}, INNER_NODES, EVEN)"
        elif self.line:
            line = f"{line or 'Line'}({tables}, EVEN, {self.program.moving})"
        else:
            line = "Baked()" if self.program.tables else "None"
        widths = width_text(self.lowered, self.fixed)
        text = filled(
            _DRIVER,
            line=line,
            panels=self.program.has_panels,
            argument="" if keyword is None else f", {keyword.name}",
            about_keyword="" if keyword is None else f"\n    {keyword.documentation}",
            keyword="" if keyword is None else f", {keyword.name}={keyword.default}",
            solver=solver,
            widths="lambda part: width_at(rows[part], values[part])" if widths else None,
            tests=domain_tests("numbers"),
        )
        rules = (*_RULES, *(_LINE_RULES if self.line else ()), *(_GRID_RULES if self.grid else ()))
        parts = [widths, GIVEN, text, runtime_text("rules", rules)]
        if self.line:
            parts += [runtime_text("quadrature"), runtime_text("levels")]
        else:
            parts += [runtime_text("quadrature", ("_PANEL_RULE", "panel_rule"))]
            parts += [runtime_text("levels", ("Levels",)), self._baked()]
        if self.grid:
            parts.append(runtime_text("product_grids", without=("Array", "Steep")))
        return [*parts, runtime_text("refinement"), self._tables() if self.line else ""]

    def _tables(self) -> str:
        """Return the functions of the node, and of the grid if there is one."""
        names = {x: self.source.free_name(name) for x, name in self.lowered.identifiers.items()}
        text = table_source(
            self.lowered.definitions,
            node=self.lowered.node,
            identifiers=names,
            parameters=self.lowered.table_parameters,
            printer=self.printer,
            product=self.lowered.product,
        )
        made = ["inner_rules", "outer_scale", "breaks", "tables"]
        if self.grid:
            made += ["product_scales", "product_tables", "NESTED"]
            made += [f"product_breaks_{s}" for s in self.program.inner_nodes]
        entries = "".join(f"    {name}={name},\n" for name in made)
        # Without imports and helpers.
        functions = text[text.index("def inner_rules(") :].rstrip("\n")
        return f"{functions}\n\n\nFUNCTIONS = SimpleNamespace(\n{entries})"

    def by_name(self) -> str:
        """Return ``by_name``, which names the arrays of a level as the solver in arrays does."""
        program = self.program
        rules = [("weight", *map(str, program.tables))] if program.tables else []
        if program.has_panels:
            rules += [("panel_weight", "panel_node"), ("reach",)]
        data = [(f"weight_{d.name}", *map(str, d.columns)) for d in program.data]
        return _BY_NAME.format(rules=rules, data=data)

    def _baked(self) -> str:
        """Return the rules of the line for tables that are given."""
        tables = self.tables
        if tables is None or not self.program.tables:
            return ""
        names = ("weight", *map(str, self.program.tables))
        levels = "".join(
            f"    np.array([  # {', '.join(names)}\n"
            + "".join(f"        {_numbers(level[name])},\n" for name in names)
            + "    ]),\n"
            for level in tables.levels
        )
        values = ", ".join(f"{key} = {float(v)!r}" for key, v in tables.parameters.items())
        return filled(
            _BAKED,
            values=f"# Tables at {values}.\n" if values else "",
            levels=levels,
            finest="LAST_LEVEL" if self.program.has_panels else "0",
            step=repr(baked_step(tables, str(self.program.tables[0]))),
        )

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
        if self.line:
            imports = imports.replace(
                "import math\n", "import math\nfrom types import SimpleNamespace\n", 1
            )
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
    return filled(_SELFCHECK, vectors=entries, data=repr(data), options=options)


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
