"""Text around the solver in files for Python: arguments, groups of rows, refinement, reach.

The NumPy, JAX, numba and plain Python files carry it; what solves rows on given rules is theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..program import Program
from .refinement import array_driver

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
def solve_point(parameters, data=None, rtol=1e-10):
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
    values, errors, info = solve_many(row, data, rtol)
    if info[0, 0] < 0:
        point = ", ".join(f"{name} = {float(parameters[name])!r}" for name in PARAMETERS)
        at = f" at {point}" if point else ""
        raise RuntimeError(
            f"no solution{at}: residual {info[0, 1]:.1e} after "
            f"{int(-info[0, 0])} iterations"
        )
    return {
        name: (float(values[0, k]), float(errors[0, k])) for k, name in enumerate(OUTPUTS)
    }


def solve_many(parameters, data=None, rtol=1e-10{keyword}):
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
    values, errors, info = found
    return values[:, KEPT], errors[:, KEPT], info


def unsolved(n):
    """Return values, errors and info of rows without a solution."""
    values, errors = np.full((n, N_OUTPUTS), np.nan), np.full((n, N_OUTPUTS), np.inf)
    return values, errors, np.tile([-1.0, np.inf, np.inf], (n, 1))


def refine_group(rows, members, levels, rtol, found{argument}):
    """Solve some rows, which share tables, and write what is found; return their levels."""
    values, errors, info = found

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

    reached, unseen = refine(members, *found, solve, wanted_levels, levels.finest, rtol)
{rounding}    # Nothing is known where the rules are too coarse to see an integrand.
    unseen = members[unseen]
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
        node, weight = np.polynomial.legendre.leggauss(16)
        node = (np.arange(n)[:, None] + (1 + node) / 2) / n
        weight = np.broadcast_to(weight / 2 / n, node.shape)
        found.append(
            {
                "panel_node": node.reshape(-1),
                "panel_weight": weight.reshape(-1),
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
    reach, longer = 0.0, FIRST_REACH
    while longer != reach:
        reach = longer
        found, _ = converged_tables(values, np.linspace(-reach, reach, REACH_NODES))
        flat = [float(x) for name in TABLES for x in found[name]]
        longer = rule_suffices(reach, flat, len(TABLES))
    return reach
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


def driver(
    program: Program,
    *,
    line: bool,
    solver: str = "solve_rows",
    keyword: Keyword | None = None,
    grid: bool = False,
) -> str:
    """Return ``solve_point``, ``solve_many`` and what they call; host code, in NumPy.

    The file adds the function that solves rows and ``width_at``; with nodes on the line also
    ``line_tables(values, level)`` and ``tables_at(values, x, level)``.

    Parameters
    ----------
    program : Program
    line : bool
        Whether the file computes tables on the nodes of the line.
    solver : str
        Name of the function of rows and rules that returns values, errors and info.
    keyword : Keyword, optional
        An option of ``solve_many`` that goes on to the solver as its last argument.
    grid : bool
        Whether these nodes are part of a grid of several variables, whose steps a level divides by
        the square root of two; the file adds ``finest_level(values)``.
    """
    texts = {"{solver}": solver, "{keyword}": "", "{about_keyword}": "", "{argument}": ""}
    texts["{finest}"] = "finest_level(self.values)" if grid else "LAST_LEVEL if REFINABLE else 0"
    if keyword is not None:
        texts |= {
            "{keyword}": f", {keyword.name}={keyword.default}",
            "{about_keyword}": f"\n    {keyword.documentation}",
            "{argument}": f", {keyword.name}",
        }
    texts["{rounding}"] = _ROUNDING.replace("{solver}", solver) if line else ""
    texts["{shaken}"] = _SHAKEN if line else ""
    # The last two hold places of their own.
    texts = dict(reversed(texts.items()))
    text = _DRIVER
    for place, written in texts.items():
        text = text.replace(place, written)
    parts = [array_driver(program, line=line, grid=grid), GIVEN, text]
    parts += [*([] if grid else [_REACH]), _CONVERGED] if line else [_NO_LINE]
    return "\n\n\n".join(part.strip("\n") for part in parts)
