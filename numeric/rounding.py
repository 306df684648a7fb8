"""Rounding errors by experiment: what results do when inputs move by a few units in the last place.

Estimates from the terms of a formula do not see cancellation in what it is made of. Results at
inputs that differ by rounding show both: noise of the evaluation, and how much the problem itself
amplifies rounding. What they do not show is a digit lost in a step that is flat at this scale, as
in 1 - cos x for small x; such forms are for the lowering to avoid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SAMPLES = 7
COARSE = 1.0
"""Tolerance to solve at: rounding hardly depends on the number of nodes, but the cost does."""
_LARGEST_MOVE = 4
# The largest of seven differences, enlarged: by chance all of them may be small.
_SAFETY = 4.0


def perturbed(row: Sequence[float] | Array, away: Sequence[float] | float = 0.0) -> Array:
    """Return copies of a row whose entries differ from it by up to four units of rounding.

    The row itself comes first. The moves are the same for every row of a length.

    Parameters
    ----------
    row : sequence of float
    away : sequence of float or float
        Entries that are zero go this way, by units of rounding of one: a derivative that jumps
        there is no derivative.

    Examples
    --------
    >>> perturbed([1.0, 0.0]).shape
    (8, 2)
    """
    first = np.asarray(row, dtype=float)
    generator = np.random.default_rng(first.size)
    moves = generator.integers(1, _LARGEST_MOVE + 1, (SAMPLES, first.size))
    signs = generator.choice((-1.0, 1.0), moves.shape)
    factors = 1 + signs * moves * np.finfo(float).eps
    from_zero = np.where(first == 0, np.finfo(float).eps * moves * away, 0.0)
    return np.vstack([first, first * factors + from_zero])


def spreads(columns: Mapping[str, Array]) -> dict[str, float]:
    """Return the estimated rounding errors of results at the rows of :func:`perturbed`.

    Infinite where a row has no result.
    """
    result = {}
    for name, column in columns.items():
        with np.errstate(invalid="ignore"):
            largest = float(np.max(np.abs(column[1:] - column[0])))
        result[name] = _SAFETY * largest if np.isfinite(largest) else np.inf
    return result
