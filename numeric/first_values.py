"""Points that fill a box evenly, also an infinite one: where searches for solutions begin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def low_discrepancy(n: int, dimension: int) -> Array:
    """Return n points that fill the unit cube evenly, the same ones each time.

    The additive recurrence of the generalised golden ratio (Roberts, 2018): fractional parts of
    multiples of powers of the root of x^(d+1) = x + 1.
    """
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimension + 1))
    powers = root ** -np.arange(1, dimension + 1)
    return np.asarray((0.5 + np.outer(np.arange(1, n + 1), powers)) % 1.0)


def spread(lower: Sequence[float], upper: Sequence[float], n: int) -> Array:
    """Return n points that fill a box, also one that is infinite, where they reach far out."""
    return _in_box(lower, upper, low_discrepancy(n, len(lower)))


def middles(lower: Sequence[float], upper: Sequence[float]) -> Array:
    """Return points (3, d) in the middle of a box: zero on a line, of one size on half lines."""
    return _in_box(lower, upper, np.full((3, len(lower)), 0.5), np.array([[1.0], [1e-3], [1e3]]))


def _in_box(
    lower: Sequence[float], upper: Sequence[float], cube: Array, sizes: Array | float = 1.0
) -> Array:
    low, high = np.array(lower, dtype=float), np.array(upper, dtype=float)
    with np.errstate(invalid="ignore"):
        found = low + (high - low) * cube
    half = np.isfinite(low) & np.isinf(high)
    found[:, half] = low[half] + (sizes * cube / (1 - cube))[:, half]
    half = np.isinf(low) & np.isfinite(high)
    found[:, half] = high[half] - (sizes * cube / (1 - cube))[:, half]
    line = np.isinf(low) & np.isinf(high)
    found[:, line] = ((cube - 0.5) / (cube * (1 - cube)))[:, line]
    return found
