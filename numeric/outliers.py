"""Real roots of a condition on an interval next to a spectrum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Real = NDArray[np.float64]

_POINTS = 60
# How close to the ends, in units of the interval, the search goes.
_NEAREST = 1e-6


def real_roots(condition: Callable[[Real], Real], low: float, high: float) -> list[float]:
    """Return the roots of a function of many points, in ascending order.

    Parameters
    ----------
    condition : callable
        (n,) -> (n,), continuous between the ends, which need not be in its domain.
    low, high : float
        Ends of the interval.

    Notes
    -----
    Found by sign changes on a grid that crowds at both ends; two roots closer than its spacing,
    a hundredth of the distance to the next end in the worst place, are missed.
    """
    if not low < high:
        return []
    steps = np.geomspace(_NEAREST, 0.5, _POINTS)
    part = np.unique(np.concatenate([steps, 1 - steps]))
    grid = low + (high - low) * part
    values = condition(grid)
    good = np.isfinite(values)
    grid, values = grid[good], values[good]
    if not values.any():
        # What vanishes everywhere tells no point from another.
        return []
    roots = [float(x) for x in grid[values == 0]]
    for k in np.flatnonzero(np.sign(values[1:]) * np.sign(values[:-1]) < 0):
        found = brentq(
            lambda x: float(condition(np.array([x]))[0]), grid[k], grid[k + 1], rtol=1e-12
        )
        roots.append(float(found))
    return sorted(roots)
