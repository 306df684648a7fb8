"""Whole numbers of samples and rows, and whether what they need fits into memory."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import numpy as np

from ...errors import ParameterError

__all__ = ["check_memory", "memory_of_machine", "row_counts", "sample_count"]

# Rows of a network, samples or neurons: numbers that no memory holds are refused at once.
_MOST_ROWS = 10**9

RATIO_TOLERANCE = 0.01
"""Largest relative deviation of a ratio such as n/d that rounding n may cause."""

SUM_TOLERANCE = 1e-9
"""Fractions such as 0.1 + 0.2 + 0.7 sum to one up to rounding."""


def sample_count(name: str, ratio: float, dimension: int) -> int:
    """Whole number closest to ratio * dimension.

    Raises
    ------
    ParameterError
        If `ratio` is not positive and finite, if the number is below 1, or if rounding changes the
        ratio by more than 1 %; the message names `name` and a dimension that works.
    """
    if not 0 < ratio < math.inf:
        hint = "; a simulation has finitely many samples" if ratio == math.inf else ""
        raise ParameterError(f"{name} must be positive and finite, got {ratio}{hint}")
    if not ratio * dimension <= _MOST_ROWS:
        raise ParameterError(
            f"{name}={ratio:g} is too large for a simulation: {name}*dimension must be at most "
            f"{_MOST_ROWS:g}, with dimension={_shortened(dimension)}"
        )
    if _rounds_well(ratio, dimension):
        return round(ratio * dimension)
    if ratio * _MOST_ROWS < 1:
        raise ParameterError(
            f"{name}={ratio:g} is too small for a simulation: {name}*dimension must be at least 1, "
            f"and dimension at most {_MOST_ROWS:g}"
        )
    # From here on half a sample is within the tolerance; below the first nothing is.
    always = math.ceil(0.5 / RATIO_TOLERANCE / ratio)
    first = max(dimension + 1, math.floor(1 / (1 + 2 * RATIO_TOLERANCE) / ratio))
    smallest = next(d for d in range(first, always + 1) if _rounds_well(ratio, d))
    larger = "" if smallest == always else f"dimension = {smallest} or "
    raise ParameterError(
        f"dimension={dimension} is too small for {name}={ratio:g}: {name}*dimension = "
        f"{ratio * dimension:g} is not within {RATIO_TOLERANCE:.0%} of a whole number >= 1\n"
        f"  use {larger}dimension >= {always}"
    )


def _shortened(number: int) -> str:
    return str(number) if number < 10**12 else f"{float(number):.3g}"


def _rounds_well(ratio: float, dimension: int) -> bool:
    exact = ratio * dimension
    count = round(exact)
    # 1e-9: a deviation of exactly 1 %, as 0.5 of 50, must not hang on the last bit.
    return count >= 1 and abs(count - exact) <= RATIO_TOLERANCE * exact * (1 + 1e-9)


def row_counts(fractions: Sequence[float], width: int) -> list[int]:
    """Return how many of `width` rows each class has: the nearest whole numbers of that sum.

    Raises
    ------
    ParameterError
        If the fractions do not sum to one, or a class would have no row.
    """
    total = math.fsum(fractions)
    if abs(total - 1) > SUM_TOLERANCE:
        raise ParameterError(f"fractions must sum to 1, got {total:.12g} from {tuple(fractions)}")
    exact = np.asarray(fractions) * width
    counts = np.floor(exact + SUM_TOLERANCE).astype(int)
    # Largest remainders first; the order of the classes decides ties.
    late = np.argsort(counts - exact, kind="stable")[: width - int(counts.sum())]
    counts[late] += 1
    if counts.min() < 1:
        smallest = min(fractions)
        raise ParameterError(
            f"a class of fraction {smallest:g} has no row among {width}; use a larger dimension"
        )
    return [int(count) for count in counts]


def memory_of_machine() -> int:
    """Bytes of memory of this machine, or a large number where that is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2**62


def check_memory(what: str, needed: int, workers: int) -> None:
    """Refuse what does not fit into the memory of this machine, so many at a time.

    Parameters
    ----------
    what : str
        The sizes, as the user named them.
    needed : int
        Bytes of one network.
    workers : int
        Networks that are held at once.

    Raises
    ------
    ParameterError
        With what would fit.
    """
    there = memory_of_machine()
    if workers * needed <= there:
        return
    fewer = there // needed
    advice = f"at most {fewer} workers fit" if fewer else "one network does not fit"
    raise ParameterError(
        f"{what} need {workers * needed / 1e9:.3g} GB of memory"
        f"{f' with {workers} workers' if workers > 1 else ''}, this machine has "
        f"{there / 1e9:.3g} GB\n  {advice}; use a smaller dimension or width"
        f"{', or fewer workers' if workers > 1 else ''}"
    )
