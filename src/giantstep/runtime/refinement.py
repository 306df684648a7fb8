"""Refinement of rules for arrays of rows: which level next, what to keep, when to stop.

Integrals are sums over three rules of a level, of which each has half the nodes of the one before;
their differences estimate the error. A level is solved, its solution is kept if it is better than
that of the level before, and the next level follows: the one that the widths of the integrands ask
for, then one more as long as the error is above the tolerance and falls.

The solver of :mod:`giantstep.numeric` runs this, and files for Python carry a copy. All rows that
are at one level are solved together, because there a call costs more than a row does; where calls
cost nothing, row by row, the loop is that of :mod:`giantstep.symbolic.lowering.driver`. The
decisions are the same: their text is translated, so they are made of comparisons, of
``np.where`` and of functions that every language has.
"""

import numpy as np

from .rules import FINEST_LEVEL, MOST_REFINEMENTS

# What is no better than this may be off although two rules agree.
RESOLVED = 1e-9
# What shakes the arguments of tables: a bit more than their rounding.
SHIFT = 1.0 + 2.0**-51
# Rounding in tables, relative to the largest value of each, that estimates from sums of terms do
# not cover; and a margin for the change of a solution with its tables, which is a single sample.
TABLE_LOSS = 2e-14
TABLE_MARGIN = 8.0


def rule_worst(value, error, iterations):
    """Relative error of the first output; infinite where there is no solution."""
    # Of a value that vanishes the absolute error.
    size = np.where(value == 0.0, 1.0, np.abs(value))
    worst = error / size
    return np.where((iterations >= 0.0) & np.isfinite(worst), worst, np.inf)


def rule_finished(value, error, rounding, rtol):
    """Whether the quadrature error is below tolerance, or below rounding."""
    size = np.where(value == 0.0, 1.0, np.abs(value))
    return error - rounding * size <= np.maximum(rtol, rounding) * size


def rule_better(before, after, rounding, level):
    """Whether to go on with a finer rule, from relative errors on both."""
    # Where a refinement brings nothing, rounding is all that is left; unless the estimate is
    # large still: then the finer rule is trusted more, even if its estimate has grown.
    unresolved = (before > RESOLVED) & (before > rounding) & np.isfinite(after)
    # Twice without a solution: a finer rule will not find one.
    hopeful = (level < 1) | np.isfinite(before) | np.isfinite(after)
    return ((2.0 * after <= before) | unresolved) & hopeful


def rule_following(level, wanted, finest, refinements, finished):
    """The level to solve after one that was kept; -1 at the end."""
    last = np.where(finest < FINEST_LEVEL, finest, FINEST_LEVEL)
    seen = np.where(wanted < last, wanted, last)
    # Rules that step over what they integrate may agree on a wrong number.
    asked = np.where(level < last, seen, -1)
    ends = finished | (level >= finest) | (refinements >= MOST_REFINEMENTS)
    refined = np.where(ends, -1, level + 1)
    return np.where(wanted > level, asked, refined)


def rule_wanted(step, width, iterations, halvings):
    """The first level with two nodes to the width of an integrand; at most 99.

    So many levels halve the step: one, or two of a grid of several variables.
    """
    small = np.where(width < 1e-300, 1e-300, width)
    ratio = 2.0 * step / small
    # A width that is no number tells nothing.
    ratio = np.where(ratio > 1.0, ratio, 1.0)
    ratio = np.where(ratio < 1e30, ratio, 1e30)
    levels = np.ceil(halvings * np.log2(ratio))
    levels = np.where(levels < 99, levels, 99)
    return np.where(iterations >= 0.0, levels, 0)


def refined(levels, rows, found, solve, widths, rtol):
    """Solve rows on the rules of the levels that they need, and write what is found.

    Parameters
    ----------
    levels : Levels
    rows : array of int
        Places of the rows in the arrays, ascending.
    found : tuple of array
        Results, their errors, and iterations, residual and rounding, row by row; written.
    solve : callable
        Returns them for some rows at a level, or with a third argument on its shaken tables.
    widths : callable
        Returns the smallest scales on which integrands vary at the solutions of some rows; None if
        nothing tells.
    rtol : float

    Returns
    -------
    reached, unseen : array
        As :func:`refine` returns them.
    """
    values, errors, info = found

    def wanted(part):
        if widths is None:
            return np.zeros(len(part))
        with np.errstate(all="ignore"):
            return rule_wanted(levels.step, widths(part), info[part, 0], levels.halvings)

    def shaken(part, level):
        if levels.shaken(level) is None:
            return None
        again, _, state = solve(part, level, True)
        return again, state

    reached, unseen = refine(rows, values, errors, info, solve, wanted, levels.finest, rtol)
    add_table_rounding(rows, values, errors, reached, shaken)
    return reached, unseen


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
