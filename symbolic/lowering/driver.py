"""The refinement driver row by row: which rules, which level next, what to keep, when to stop.

Rules and decisions are those of :mod:`giantstep.runtime`, translated from its text to the neutral
language; the loop around them is written here for every target that solves one row at a time: C,
Fortran, Julia and mpmath. NumPy, JAX and numba, which solve all rows of a level in one call, run
:mod:`giantstep.runtime.refinement`. What a level is differs with the numbers: in floats three
rules, in mpmath one, whose nodes follow from the digits and whose error is known from the level
before (:mod:`giantstep.runtime.precision`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ...runtime import rules
from ...runtime.rules import (
    FIRST_STEP,
    GRID_PANEL,
    GRID_REACH,
    GRID_STEP,
    LAST_LEVEL,
    NEGLIGIBLE,
    NEGLIGIBLE_ON_GRID,
    PANEL,
    REACH,
)
from ..printing.language import Function, Kind, Parameter
from ..printing.runtime_text import runtime_function
from ..printing.spellings import MpmathLanguage
from .program import Program
from .rows import LEVELS

_NUMBERS = {k: v for k, v in vars(rules).items() if isinstance(v, int | float)}
_KINDS = {
    **dict.fromkeys("level back count refinement wanted finest refinements".split(), Kind.WHOLE),
    "tables": Kind.ARRAY, "finished": Kind.FLAG,
}  # fmt: skip


def decision(name: str, *, grid: bool = False) -> Function:
    """Return a decision of :mod:`giantstep.runtime.refinement` about one row.

    Parameters
    ----------
    name : str
    grid : bool
        Two levels halve the steps, not one.
    """
    numbers = {**_NUMBERS, "halvings": 2.0 if grid else 1.0}
    whole = name in ("rule_following", "rule_wanted")
    returns = Kind.WHOLE if whole else Kind.REAL if name == "rule_worst" else Kind.FLAG
    return runtime_function("refinement", name, name, _KINDS, numbers, returns)


@cache
def decisions() -> tuple[Function, ...]:
    """Return those that :func:`solve_row` calls."""
    return tuple(map(decision, ("rule_worst", "rule_finished", "rule_better", "rule_following")))


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
    negligible = NEGLIGIBLE_ON_GRID if grid else NEGLIGIBLE
    bound = {**_NUMBERS, "negligible": negligible, "exponent": rules.EXPONENT}
    returns = Kind.WHOLE if name == "panel_count" else Kind.REAL
    return runtime_function("rules", name, called, _KINDS, bound, returns)


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
    found = [decision("rule_wanted", grid=grid)]
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
        `decisions`, and what `step` and `width` call.
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
    row = solve_row(1, refines=True, step="", width="", calls=decisions())
    return "\n\n".join(MpmathLanguage().source(f) for f in (*decisions(), row))


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
