r"""Minima of a function of one number in floats: a grid, and Brent's methods between its points.

Where the slope of the function's root is bounded, intervals that cannot hold the least value are
left out and the others halved (:func:`scan`). Proofs are those of
:mod:`giantstep.numeric.proofs.interval_minimum`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import ConvergenceError

Array = NDArray[np.float64]
# Differences below this, relative, are rounding: a flat stretch is no minimum.
_FLAT = 1e-13
# Of places of minima; and values closer than this, relatively, count as equal.
_TOLERANCE = 1e-9
_MOST_INTERVALS = 4096


def local_minima(
    function: Callable[[float], float], grid: Array, what: str
) -> tuple[Array, list[tuple[float, float]]]:
    """Return the values on a grid, and places and values of the minima between its points.

    Parameters
    ----------
    function : callable
    grid : array (n,)
        Ascending. Its ends are minima if the function falls towards them.
    what : str
        Of what the minima are, for the message.

    Raises
    ------
    ConvergenceError
        If a minimum is not found to 1e-9.

    Examples
    --------
    >>> local_minima(abs, np.linspace(-1, 2.5, 8), "a modulus")[1][0][0].__round__(8)
    0.0
    >>> local_minima(lambda x: -x * x, np.linspace(-1, 2, 7), "a parabola")[1]
    [(-1.0, -1.0), (2.0, -4.0)]
    """
    values = np.array([function(float(x)) for x in grid])
    scale = _FLAT * float(np.max(np.abs(values)))
    padded = np.concatenate([[np.inf], values, [np.inf]])
    # Of a flat stretch its first place.
    low = (values < padded[:-2] - scale) & (values <= padded[2:] + scale)
    minima = []
    last = len(grid) - 1
    for i in map(int, np.flatnonzero(low)):
        bracket = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, last)])
        place, value = refined(function, bracket, f"the minimum of {what} near {grid[i]:.4g}")
        stays = i in (0, last) and values[i] <= value
        minima.append((float(grid[i]), float(values[i])) if stays else (place, value))
    return values, minima


def refined(
    function: Callable[[float], float],
    bracket: tuple[float, float],
    what: str,
    *,
    slope: Callable[[float], float] | None = None,
    tolerance: float = _TOLERANCE,
) -> tuple[float, float]:
    """Return place and value of a minimum between two points.

    Parameters
    ----------
    function : callable
    bracket : tuple of float
    what : str
        What is looked for, for the message.
    slope : callable, optional
        The derivative; where it rises through zero between the points the place is its root to
        rounding, which values cannot tell.
    tolerance : float
        Of the place otherwise.

    Raises
    ------
    ConvergenceError
        If the minimum is not reached to this tolerance.
    """
    if slope is not None and slope(bracket[0]) < 0 < slope(bracket[1]):
        place = float(scipy.optimize.brentq(slope, *bracket, xtol=1e-300, rtol=1e-15))
        return place, function(place)
    best = scipy.optimize.minimize_scalar(
        function, bounds=bracket, method="bounded", options={"xatol": tolerance}
    )
    if not best.success:
        raise ConvergenceError(f"{what} was not found: {best.message}", state=best)
    return float(best.x), float(best.fun)


@dataclass(frozen=True)
class Scan:
    """Where the least value of a function can be.

    Attributes
    ----------
    points, values : array
        Scanned places, in ascending order, and values there.
    brackets : tuple of (float, float)
        Around the scanned local minima that may be the least.
    remaining : tuple of (float, float)
        Intervals outside of which the function is larger than at the best point, by the bound on
        the slope of its root.
    """

    points: Array
    values: Array
    brackets: tuple[tuple[float, float], ...]
    remaining: tuple[tuple[float, float], ...]


def scan(
    value: Callable[[float], float],
    points: Sequence[float],
    *,
    steepness: Callable[[float, float], float],
    rounds: int = 8,
) -> Scan:
    r"""Look for the least value of a function whose root has known Lipschitz constants.

    Parameters
    ----------
    value : callable
        f(x) >= 0.
    points : sequence of float
        Where to start, ascending.
    steepness : callable
        L(a, b), such that :math:`\sqrt f` has at most this slope between a and b.
    rounds : int
        How often the intervals that are not excluded are halved.
    """
    known = {float(h): _finite(value(float(h))) for h in points}
    open_intervals = [(a, b, steepness(a, b)) for a, b in pairwise(map(float, points))]
    for last in range(rounds, -1, -1):
        best = min(known.values())
        open_intervals = [i for i in open_intervals if not _excluded(i, known, best)]
        if last == 0 or 2 * len(open_intervals) > _MOST_INTERVALS:
            break
        halves = []
        for a, b, constant in open_intervals:
            middle = (a + b) / 2
            known[middle] = _finite(value(middle))
            halves += [(a, middle, constant), (middle, b, constant)]
        open_intervals = halves
    h = np.array(sorted(known))
    values = np.array([known[x] for x in h])
    best = values.min()
    tolerance = _TOLERANCE * (1 + best)
    candidates = [
        i
        for i in range(len(h))
        if values[i] <= values[max(i - 1, 0)]
        and values[i] <= values[min(i + 1, len(h) - 1)]
        and _may_be_least(i, values, best, tolerance)
    ]
    brackets = tuple(
        (float(h[max(i - 1, 0)]), float(h[min(i + 1, len(h) - 1)])) for i in candidates
    )
    return Scan(h, values, brackets, _merged([(a, b) for a, b, _ in open_intervals]))


def _merged(intervals: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return the union of intervals that are in ascending order."""
    union: list[tuple[float, float]] = []
    for a, b in intervals:
        if union and union[-1][1] == a:
            union[-1] = (union[-1][0], b)
        else:
            union.append((a, b))
    return tuple(union)


def _may_be_least(i: int, values: Array, best: float, tolerance: float) -> bool:
    if values[i] <= best + tolerance:
        return True
    # How far a minimum between the neighbours can be below what was seen.
    left, right = max(i - 1, 0), min(i + 1, len(values) - 1)
    drop = max(values[left], values[right]) - values[i]
    return bool(values[i] - drop <= best)


def _excluded(interval: tuple[float, float, float], known: dict[float, float], best: float) -> bool:
    a, b, steepness = interval
    bound = (math.sqrt(known[a]) + math.sqrt(known[b]) - steepness * (b - a)) / 2
    return bound > 0 and bound**2 > best


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.inf
