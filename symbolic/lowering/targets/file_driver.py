"""Text around the solver in files for Python: arguments, groups of rows, refinement, reach.

The NumPy, JAX, numba and plain Python files carry it; what solves rows on given rules is theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    parameters = dict(parameters)
    missing = [name for name in PARAMETERS if name not in parameters]
    unknown = [name for name in parameters if name not in PARAMETERS]
    if missing or unknown:
        what = f"no value for {missing[0]!r}" if missing else f"{unknown[0]!r} is none of them"
        raise ValueError(f"parameters must hold {', '.join(PARAMETERS)}; {what}")
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
    values = np.full((len(rows), N_OUTPUTS), np.nan)
    errors = np.full((len(rows), N_OUTPUTS), np.inf)
    info = np.tile([-1.0, np.inf, np.inf], (len(rows), 1))
    places = [PARAMETERS.index(name) for name in TABLE_PARAMETERS]
    groups, members = np.unique(rows[:, places], axis=0, return_inverse=True)
    members = members.reshape(-1)
    for k, group in enumerate(groups):
        todo = np.flatnonzero(members == k)
        try:
            refine(rows, todo, Levels(group, columns), rtol, values, errors, info{argument})
        except TableError:
            # These rows stay without a solution.
            continue
    return values[:, KEPT], errors[:, KEPT], info


def refine(rows, todo, levels, rtol, values, errors, info{argument}):
    """Solve rows of one group, with more nodes until the errors are small or fall no more."""
    group, wanted = todo, np.zeros(len(rows), dtype=int)
    for level in range(levels.count):
        try:
            rules = levels[level]
        except TableError:
            if level == 0:
                raise
            # What the levels before have found stays, with its own error.
            break
        found = {solver}(rows[todo], rules{argument})
        before, after = worst(values[todo], errors[todo], info[todo]), worst(*found)
        # Where a refinement brings nothing, rounding is all that is left; unless the estimate is
        # large still: then the finer rule is trusted more, even if its estimate has grown.
        unresolved = before > np.maximum(1e-9, info[todo, 2])
        better = ((2 * after <= before) | unresolved) & (after < np.inf)
        # Rules that step over what they integrate may agree on a wrong number.
        better |= (level == 0) | (wanted[todo] >= level)
        todo = todo[better]
        values[todo], errors[todo], info[todo] = (a[better] for a in found)
        wanted[todo] = wanted_levels(rows[todo], values[todo], info[todo], levels.step)
        size = np.abs(values[todo, 0])
        # Where rounding is the larger part already, more nodes do not help.
        left = errors[todo, 0] - info[todo, 2] * size
        enough = left <= np.maximum(rtol, info[todo, 2]) * size
        # What has no solution gets one more chance, on a finer rule.
        enough |= ((info[todo, 0] < 0) & (level > 0)) | (level >= MOST_REFINEMENTS)
        resolved = wanted[todo] <= level
        wanted[todo[resolved]] = 0
        todo = todo[~(enough & resolved)]
        if not len(todo):
            break
    # Nothing is known where the rules are too coarse to see an integrand.
    unseen = group[wanted[group] > 0]
    values[unseen], errors[unseen] = np.nan, np.inf
    info[unseen, 0] = -np.maximum(np.abs(info[unseen, 0]), 1)


def wanted_levels(rows, values, info, step):
    """Return the first level with two nodes to the smallest scale of an integrand."""
    with np.errstate(all="ignore"):
        found = np.ceil({halvings}np.log2(2 * step / integrand_width(rows, values)))
    found = np.clip(np.nan_to_num(found, nan=0, posinf=99, neginf=0), 0, 99)
    return np.where(info[:, 0] < 0, 0, found)


def worst(values, errors, info):
    """Return the relative error of the first output; infinite where there is no solution."""
    with np.errstate(all="ignore"):
        found = errors[:, 0] / np.abs(values[:, 0])
    # A value of zero has no relative error; its absolute one has to do.
    found = np.where(values[:, 0] == 0, errors[:, 0], found)
    return np.where(np.isfinite(found) & (info[:, 0] >= 0), found, np.inf)


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
    data = {} if data is None else dict(data)
    if len(DATA) == 1 and data and next(iter(DATA)) not in data:
        data = {next(iter(DATA)): data}
    if set(data) != set(DATA):
        raise ValueError(f"data must hold {', '.join(DATA) or 'nothing'}; got {list(data)}")
    arrays = {}
    for name, domains in DATA.items():
        given = dict(data[name])
        weight = given.pop("weight", None)
        if set(given) != set(domains):
            raise ValueError(
                f"the data {name} must have the columns {', '.join(domains)} (and, if wanted, "
                f"weight); got {', '.join(map(str, given))}"
            )
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


class TableError(ArithmeticError):
    """The functions of the node cannot be tabulated."""


class Levels:
    """The arrays of three rules for each level of refinement, made when they are asked for.

    Attributes
    ----------
    count : int
        Number of levels.
    """

    def __init__(self, values, columns):
        self.values = [np.float64(v) for v in values]
        self.columns = columns
        self.found = {}
        self.count = {count}
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


def panel_rules(level):
    """Return three rules on [0, 1], each with half the panels of the one before.

    The coarser two end earlier, so that their differences show what lies beyond.
    """
    found = []
    for back in (0, 1, 2):
        n = 2 ** (4 + level - back)
        node, weight = np.polynomial.legendre.leggauss(16)
        node = (np.arange(n)[:, None] + (1 + node) / 2) / n
        weight = np.broadcast_to(weight / 2 / n, node.shape)
        found.append(
            {
                "panel_node": node.reshape(-1),
                "panel_weight": weight.reshape(-1),
                "reach": np.float64(10.5 * 1.15 ** (level if back == 0 else level - 1)),
            }
        )
    return found
'''

_NO_LINE = '''
def line_tables(values, level):
    """Return the arrays on the nodes of the line: there are none."""
    return [{}, {}, {}]
'''

_REACH = '''
def outer_reach(values):
    """Return how far from zero the outer rule has to go: tables that grow need more."""
    reach = REACH
    while True:
        x = np.linspace(-reach, reach, 43)
        found, _ = converged_tables(values, x)
        with np.errstate(divide="ignore"):
            sizes = [2 * np.log(np.abs(found[name])) - x**2 / 2 for name in TABLES]
        ends = [max(s[0], s[-1]) - np.max(s) for s in sizes if np.max(s) > -np.inf]
        # exp(-41) = 1e-18: what lies beyond does not show.
        if reach >= 37.0 or not ends or max(ends) <= -41.0:
            return reach
        reach = min(1.2 * reach, 37.0)
'''

_CONVERGED = '''
def converged_tables(values, x):
    """Return tables at the nodes, and the level of inner rules at which they do not change."""
    previous, before = None, {}
    for level in range(7):
        current, refinable = tables_at(values, x, level)
        if not all(np.all(np.isfinite(column)) for column in current.values()):
            raise TableError
        if not refinable:
            return current, 0
        if previous is not None:
            sizes = {name: np.max(np.abs(column)) + 1e-300 for name, column in current.items()}
            changes = {name: np.max(np.abs(current[name] - previous[name])) for name in current}
            largest = max(sizes.values())
            if all(
                change <= 4e-15 * sizes[name]
                # Where rounding is larger than the tolerance, refining stops to bring levels
                # closer; a table that vanishes by a symmetry is nothing but rounding.
                or (
                    change <= max(1e-9 * sizes[name], 1e-16 * largest)
                    and change > before.get(name, math.inf) / 2
                )
                for name, change in changes.items()
            ):
                return previous, level - 1
            before = changes
        previous = current
    raise TableError
'''


@dataclass(frozen=True)
class Keyword:
    """An option of ``solve_many``: its name, its default and its lines in the docstring."""

    name: str
    default: str
    documentation: str


def driver(
    *,
    line: bool,
    solver: str = "solve_rows",
    keyword: Keyword | None = None,
    grid: bool = False,
) -> str:
    """Return ``solve_point``, ``solve_many`` and what they call; host code, in NumPy.

    The file adds the function that solves rows and those of :mod:`.width_text`; with nodes on the
    line also ``line_tables(values, level)`` and ``tables_at(values, x, level)``.

    Parameters
    ----------
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
    texts["{halvings}"] = "2 * " if grid else ""
    texts["{count}"] = (
        "finest_level(self.values) + 1" if grid else "FINEST_LEVEL + 1 if REFINABLE else 1"
    )
    if keyword is not None:
        texts |= {
            "{keyword}": f", {keyword.name}={keyword.default}",
            "{about_keyword}": f"\n    {keyword.documentation}",
            "{argument}": f", {keyword.name}",
        }
    text = _DRIVER
    for place, written in texts.items():
        text = text.replace(place, written)
    parts = [text, *([] if grid else [_REACH]), _CONVERGED] if line else [text, _NO_LINE]
    return "\n\n\n".join(part.strip("\n") for part in parts)
