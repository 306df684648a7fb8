"""The refinement driver: which rules, which level next, what to keep, when to stop.

Integrals are sums over three rules of a level, of which each has half the nodes of the one before;
their differences estimate the error (:mod:`.rows`). A level is solved, its solution is kept
if it is better than that of the level before, and the next level follows: the one that the widths
of the integrands ask for, then one more as long as the error is above the tolerance and falls.

All of it is written here, in the language-neutral text, for every target: the solver in
:mod:`giantstep.numeric` and the files in Python decide for arrays of rows (`array_driver`), files
in C, in Julia and in mpmath row by row (`solve_row`). What a level is differs with the numbers: in
floats three rules, in mpmath one, whose nodes follow from the digits and whose error is known from
the level before (:mod:`giantstep.runtime.precision`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...runtime import rules
from ...runtime.rules import (
    GRID_PANEL,
    GRID_REACH,
    GRID_STEP,
    MOST_REFINEMENTS,
    NEGLIGIBLE,
    NEGLIGIBLE_ON_GRID,
    PANEL,
    REACH,
)
from ..printing.language import Function, Kind, Parameter
from ..printing.runtime_text import runtime_function
from ..printing.spellings import ArrayLanguage, MpmathLanguage, PythonLanguage
from .program import Program
from .rows import LEVELS

FIRST_STEP = 0.13
"""Trapezoidal step of the first rule, relative to the width of its tables.

0.25 gives 1e-16 for smoothed activations; the error estimate of 0.13 is good enough to show 1e-11,
and a few more nodes cost less than a second attempt."""
FINEST_LEVEL = 10
"""The finest level that a narrow integrand asks for."""
LAST_LEVEL = FINEST_LEVEL + MOST_REFINEMENTS


def _numbers(reals: str, wholes: str = "") -> tuple[Parameter, ...]:
    """Return parameters: real numbers, then whole ones."""
    return (
        *map(Parameter, reals.split()),
        *(Parameter(name, Kind.WHOLE) for name in wholes.split()),
    )


WORST = Function(
    name="rule_worst",
    parameters=_numbers("value error iterations"),
    body="""
# Of a value that vanishes the absolute error.
size = 1.0 if value == 0.0 else abs(value)
worst = error / size
return worst if iterations >= 0.0 and isfinite(worst) else inf
""",
    returns=Kind.REAL,
    documentation="Relative error of the first output; infinite where there is no solution.",
)

FINISHED = Function(
    name="rule_finished",
    parameters=_numbers("value error rounding rtol"),
    body="""
size = 1.0 if value == 0.0 else abs(value)
return error - rounding * size <= max(rtol, rounding) * size
""",
    returns=Kind.FLAG,
    documentation="Whether the quadrature error is below tolerance, or below rounding.",
)

BETTER = Function(
    name="rule_better",
    parameters=_numbers("before after rounding", "level"),
    body="""
# Where a refinement brings nothing, rounding is all that is left; unless the estimate is
# large still: then the finer rule is trusted more, even if its estimate has grown.
unresolved = before > resolved and before > rounding and isfinite(after)
# Twice without a solution: a finer rule will not find one.
hopeful = level < 1 or isfinite(before) or isfinite(after)
return (2.0 * after <= before or unresolved) and hopeful
""",
    returns=Kind.FLAG,
    documentation="Whether to go on with a finer rule, from relative errors on both.",
)

FOLLOWING = Function(
    name="rule_following",
    parameters=(
        *_numbers("", "level wanted finest refinements"),
        Parameter("finished", Kind.FLAG),
    ),
    body=f"""
last = finest if finest < {FINEST_LEVEL} else {FINEST_LEVEL}
seen = wanted if wanted < last else last
# Rules that step over what they integrate may agree on a wrong number.
asked = seen if level < last else -1
ends = finished or level >= finest or refinements >= {MOST_REFINEMENTS}
refined = -1 if ends else level + 1
return asked if wanted > level else refined
""",
    returns=Kind.WHOLE,
    documentation="The level to solve after one that was kept; -1 at the end.",
)

DECISIONS = (WORST, FINISHED, BETTER, FOLLOWING)


def wanted_function(*, grid: bool) -> Function:
    """Return ``rule_wanted``: the first level with two nodes to the smallest scale."""
    halvings = 2.0 if grid else 1.0
    return Function(
        name="rule_wanted",
        parameters=_numbers("step width iterations"),
        body=f"""
small = 1e-300 if width < 1e-300 else width
ratio = 2.0 * step / small
# A width that is no number tells nothing.
ratio = ratio if ratio > 1.0 else 1.0
ratio = ratio if ratio < 1e30 else 1e30
levels = ceil({halvings} * log2(ratio))
levels = levels if levels < 99 else 99
return levels if iterations >= 0.0 else 0
""",
        returns=Kind.WHOLE,
        documentation="The first level with two nodes to the width of an integrand; at most 99.",
    )


def rule_function(name: str, called: str, *, grid: bool = False) -> Function:
    """Return a function of :mod:`giantstep.runtime.rules` in the neutral language.

    Parameters
    ----------
    name : str
    called : str
        Its name in the language.
    grid : bool
        Tables are those of a grid of several variables.
    """
    numbers = {k: v for k, v in vars(rules).items() if isinstance(v, int | float)}
    negligible = NEGLIGIBLE_ON_GRID if grid else NEGLIGIBLE
    bound = {**numbers, "negligible": negligible, "exponent": rules.EXPONENT}
    wholes = dict.fromkeys(("level", "back", "count", "refinement"), Kind.WHOLE)
    returns = Kind.WHOLE if name == "panel_count" else Kind.REAL
    return runtime_function("rules", name, called, {**wholes, "tables": Kind.ARRAY}, bound, returns)


def geometry(program: Program, *, line: bool, grid: bool) -> tuple[Function, ...]:
    """Return the functions that say which rules a level has.

    Parameters
    ----------
    program : Program
    line : bool
        The kernel makes nodes of the line; else it has none, or they are written down.
    grid : bool
        The nodes of the line are part of a grid of several variables.
    """
    found = [wanted_function(grid=grid)]
    if line:
        end = "grid_end" if grid else "moving_end" if program.moving else "fixed_end"
        coarseness = "grid_coarseness" if grid else "line_coarseness"
        found.append(rule_function(coarseness, "rule_coarseness"))
        found.append(rule_function(end, "line_end"))
        found.append(rule_function("farther", "rule_suffices", grid=grid))
    if program.has_panels:
        found.append(rule_function("moving_end", "panel_end"))
        found.append(rule_function("panel_count", "rule_panel_count"))
    return tuple(found)


def first_line(width: str, *, grid: bool, split: bool) -> tuple[str, str]:
    """Return where the first rule of the line ends, and its step or length of panels, as text.

    Parameters
    ----------
    width : str
        That of the tables.
    grid : bool
        The nodes of the line are part of a grid of several variables.
    split : bool
        There are panels between kinks of the tables.
    """
    if grid:
        return repr(GRID_REACH), f"{GRID_PANEL if split else GRID_STEP} * {width}"
    return repr(REACH), repr(PANEL) if split else f"{FIRST_STEP} * {width}"


# -- row by row

# What a kernel does itself, in the words of its language.
_PLACE = (
    Parameter("rules", Kind.RULES),
    Parameter("level", Kind.WHOLE),
    Parameter("p", Kind.ARRAY),
)
_WRITTEN = tuple(Parameter(name, Kind.OUTPUT) for name in ("values", "errors", "state"))
_MAKE_LEVEL = Function("make_level", _PLACE, body="", returns=Kind.WHOLE)
_SOLVE_LEVEL = Function("solve_level", (*_PLACE, *_WRITTEN), body="")


def solve_row(
    outputs: int, *, refines: bool, step: str, width: str, calls: Sequence[Function]
) -> Function:
    """Return ``solve_row``, which refines one row until its error is small or falls no more.

    The kernel adds ``make_level(rules, level, p)``, which makes the rules of a level if they are
    not there yet and returns 0 or what went wrong, and ``solve_level(rules, level, p, values,
    errors, state)``; `state` has iterations, residual, rounding, the error of the tables and nodes.

    Parameters
    ----------
    outputs : int
    refines : bool
        There are rules that can be refined.
    step : str
        The distance of nodes of the first fine rule, in the neutral text.
    width : str
        The smallest scale of the integrands, from `p` and `best`; empty if nothing tells.
    calls : sequence of Function
        `DECISIONS`, and what `step` and `width` call.
    """
    wanted = f"rule_wanted({step}, {width}, best_state[0])" if width else "0"
    finest = LAST_LEVEL if refines else 0
    body = f"""
best = array({outputs})
best_error = array({outputs})
best_state = array(5)
for k in range({outputs}):
    best[k] = 0.0
    best_error[k] = inf
for k in range(5):
    best_state[k] = 0.0
level = 0
last = -1
wanted = 0
refinements = 0
while level >= 0:
    status = make_level(rules, level, p)
    if status != 0:
        # What the levels before have found stays, with its own error.
        if last < 0:
            return status
        break
    solve_level(rules, level, p, values, errors, state)
    if wanted <= last:
        refinements += 1
        before = rule_worst(best[0], best_error[0], best_state[0])
        after = rule_worst(values[0], errors[0], state[0])
        if not rule_better(before, after, best_state[2], last):
            break
    last = level
    for k in range({outputs}):
        best[k] = values[k]
        best_error[k] = errors[k]
    for k in range(5):
        best_state[k] = state[k]
    wanted = {wanted}
    finished = rule_finished(best[0], best_error[0], best_state[2], rtol)
    level = rule_following(last, wanted, {finest}, refinements, finished)
for k in range({outputs}):
    values[k] = best[k]
    # Tables that lost digits to cancellation may have passed all of that on.
    errors[k] = best_error[k] + best_state[3] * abs(best[k])
for k in range(5):
    state[k] = best_state[k]
state[2] += state[3]
if wanted > last:
    return -1
return 0
"""
    return Function(
        name="solve_row",
        parameters=(
            Parameter("rules", Kind.RULES),
            Parameter("p", Kind.ARRAY),
            Parameter("rtol"),
            *_WRITTEN,
        ),
        body=body,
        returns=Kind.WHOLE,
        documentation="""Solve a row, on finer rules until its error is small or falls no more.

Returns 0, what went wrong with the first rules, or -1 if no rule resolves what is integrated.""",
        calls=(*calls, _MAKE_LEVEL, _SOLVE_LEVEL),
    )


def precise_driver() -> str:
    """Return ``solve_row`` on the numbers of an mpmath context ``ctx``, for one output.

    It is the largest of all relative errors that is looked at there; ``make_level`` and
    ``solve_level`` are those of :mod:`giantstep.runtime.precision`.
    """
    row = solve_row(1, refines=True, step="", width="", calls=DECISIONS)
    return "\n\n".join(MpmathLanguage().source(f) for f in (*DECISIONS, row))


# -- arrays of rows

_SHAKEN = """\
# What shakes the arguments of tables: a bit more than their rounding.
SHIFT = 1.0 + 2.0**-51
# Rounding in tables, relative to the largest value of each, that estimates from sums of terms do
# not cover; and a margin for the change of a solution with its tables, which is a single sample.
TABLE_LOSS = 2e-14
TABLE_MARGIN = 8.0"""

_REFINE = '''
def refine(rows, values, errors, info, solve, wanted_levels, finest, rtol):
    """Solve rows on rules that are refined until their errors are small or fall no more.

    Parameters
    ----------
    rows : array of int
        Places of the rows in the arrays, ascending.
    values, errors, info : array
        Written; row by row results, their errors, and iterations, residual and rounding.
    solve : callable
        Returns them for some rows at a level; None if there are no rules of this level, whereupon
        what the levels before have found stays, with its own error.
    wanted_levels : callable
        Returns the levels that the widths of integrands at the solutions of some rows ask for.
    finest : int
        The last level; 0 if there is nothing to refine.
    rtol : float

    Returns
    -------
    levels : array of int
        Of each solution; -1 if even the first level has no rules.
    unseen : array of bool
        Where no rule resolves what is integrated.
    """
    wanted, refinements, following = np.zeros((3, len(rows)), dtype=np.int64)
    levels = np.full(len(rows), -1)
    while np.any(following >= 0):
        # The coarsest first: rows that come from others join those that begin there.
        level = int(np.min(following[following >= 0]))
        part = np.flatnonzero(following == level)
        found = solve(rows[part], level)
        if found is None:
            following[part] = -1
            continue
        at = rows[part]
        kept = wanted[part] > levels[part]
        if not kept.all():
            refinements[part] += ~kept
            with np.errstate(all="ignore"):
                before = rule_worst(values[at, 0], errors[at, 0], info[at, 0])
                after = rule_worst(found[0][:, 0], found[1][:, 0], found[2][:, 0])
                kept |= rule_better(before, after, info[at, 2], levels[part])
            following[part[~kept]] = -1
            part, at, found = part[kept], at[kept], [column[kept] for column in found]
        # Copies are much faster without places.
        place = slice(None) if len(at) == len(values) else at
        for whole, column in zip((values, errors, info), found, strict=True):
            whole[place] = column
        levels[part] = level
        wanted[part] = wanted_levels(at)
        with np.errstate(all="ignore"):
            finished = rule_finished(found[0][:, 0], found[1][:, 0], found[2][:, 2], rtol)
            following[part] = rule_following(
                level, wanted[part], finest, refinements[part], finished
            )
    return levels, wanted > levels
'''

_TABLE_ROUNDING = '''
def add_table_rounding(rows, values, errors, levels, shaken):
    """Add what rounding in the tables does to results, where tables lose digits.

    Tables that are differences of nearly equal terms lose digits, which no sum over nodes knows
    of. They are evaluated again at arguments that differ by rounding, and rows are solved again.

    Parameters
    ----------
    rows, values, errors, levels
        As for `refine`.
    shaken : callable
        Returns values and info of some rows, solved on such tables at a level; None where tables
        lose no digits.
    """
    for level in np.unique(levels[levels >= 0]):
        at = rows[(levels == level) & np.isfinite(errors[rows]).any(axis=1)]
        found = shaken(at, int(level)) if len(at) else None
        if found is not None:
            with np.errstate(invalid="ignore"):
                change = TABLE_MARGIN * np.abs(found[0] - values[at])
            errors[at] += np.where((found[1][:, :1] >= 0) & np.isfinite(change), change, np.inf)


def lose_digits(usual, shaken):
    """Tell whether tables that were evaluated at shaken arguments differ by more than rounding."""
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = np.array([np.max(np.abs(a - b)) for a, b in zip(usual, shaken, strict=True)])
        losses = changes / np.array([np.max(np.abs(a)) for a in usual])
    return bool(np.max(losses, initial=0.0, where=changes > 0) > TABLE_LOSS)
'''


def array_driver(program: Program, *, line: bool, grid: bool) -> str:
    """Return the driver for arrays of rows, in NumPy: ``refine``, and which rules there are.

    Parameters
    ----------
    program, line, grid
        As for :func:`geometry`.
    """
    # Grids of several variables are made by text of their own, which is the same in all files.
    wanted, *geometric = geometry(program, line=line and not grid, grid=grid)
    arrays, plain = ArrayLanguage(), PythonLanguage()
    constants = [f"FIRST_STEP = {FIRST_STEP!r}", f"LAST_LEVEL = {LAST_LEVEL}"]
    if line or program.has_panels:
        constants.append(f"FIRST_REACH = {REACH!r}")
    if line:
        constants.append(_SHAKEN)
    parts: Sequence[str] = [
        "\n".join(constants),
        *(arrays.source(f) for f in (*DECISIONS, wanted)),
        # How tables grow is text of the rules themselves.
        *(plain.source(f) for f in geometric if f.name != "rule_suffices"),
        _REFINE,
        *([_TABLE_ROUNDING] if line else []),
    ]
    return "\n\n\n".join(part.strip("\n") for part in parts)


@dataclass(frozen=True)
class BakedTables:
    """The arrays of three rules at fixed values of the parameters that the tables depend on.

    Attributes
    ----------
    parameters : mapping from str to float
        Values of these parameters; they become constants of the kernel.
    levels : tuple of mapping from str to sequence of float
        Fine, medium and coarse rule, each with about half the nodes of the one before: the arrays
        ``weight``, the node and all tables by name.
    """

    parameters: Mapping[str, float]
    levels: tuple[Mapping[str, Sequence[float]], ...]

    def __post_init__(self) -> None:
        if len(self.levels) != len(LEVELS):
            raise ValueError(f"levels must be {', '.join(LEVELS)}, got {len(self.levels)} of them")
        for level in self.levels:
            sizes = {len(column) for column in level.values()}
            if len(sizes) != 1:
                raise ValueError("all arrays of a level must have the same length")
