"""Simulated means beside their limits: 4 standard errors and a stated bias of the form b/d."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .claims import Finding

STANDARD_ERRORS = 4.0


@dataclass(frozen=True)
class Comparison:
    """A simulated mean and what theory says of it.

    Attributes
    ----------
    quantity : str
    theory, mean, standard_error : float
    bias : float
        Stated finite-size deviation, absolute.
    dimension : int or None
        Input dimension; None where the quantity names it or there is none.
    """

    quantity: str
    theory: float
    mean: float
    standard_error: float
    bias: float = 0.0
    dimension: int | None = None

    @property
    def name(self) -> str:
        """The quantity with its dimension."""
        where = "" if self.dimension is None else f", d = {self.dimension}"
        return f"{self.quantity}{where}"

    @property
    def tolerance(self) -> float:
        """Largest deviation that passes."""
        return STANDARD_ERRORS * self.standard_error + self.bias

    @property
    def passed(self) -> bool:
        """Whether the mean is within the tolerance; a mean that is not a number is not."""
        return abs(self.mean - self.theory) <= self.tolerance

    def deviation(self, scale: float) -> float:
        """Return mean minus theory in units of a scale; zero, or infinite, where that is zero."""
        difference = self.mean - self.theory
        if scale:
            return difference / scale
        return difference * math.inf if difference else 0.0

    def details(self) -> dict[str, float | int | bool]:
        """Return all figures; with a dimension also d (mean/theory − 1), which measures a bias."""
        result: dict[str, float | int | bool] = {
            "theory": self.theory,
            "mean": self.mean,
            "standard_error": self.standard_error,
            "stated_bias": self.bias,
            "deviation_in_standard_errors": self.deviation(self.standard_error),
            "passed": self.passed,
        }
        if self.dimension is not None:
            relative = self.mean / self.theory - 1 if self.theory else math.inf
            result |= {"dimension": self.dimension, "scaled_deviation": self.dimension * relative}
        return result


def compare(
    quantity: str,
    theory: float,
    values: NDArray[np.float64],
    bias: float = 0.0,
    dimension: int | None = None,
) -> Comparison:
    """Compare the mean of independent values with theory."""
    error = float(values.std(ddof=1) / math.sqrt(len(values)))
    return Comparison(quantity, theory, float(values.mean()), error, bias, dimension)


def finding(comparisons: Sequence[Comparison], what: str) -> Finding:
    """Return what comparisons amount to; none at all is a failure."""
    if not comparisons:
        return Finding(False, f"no {what} were compared")
    failed = [c for c in comparisons if not c.passed]
    worst = max(comparisons, key=lambda c: abs(c.deviation(c.tolerance)))
    summary = (
        f"{len(comparisons) - len(failed)} of {len(comparisons)} {what} within 4 standard errors "
        f"and the stated bias; closest to the tolerance: {worst.name}: {worst.mean:.5g} ± "
        f"{worst.standard_error:.2g}, theory {worst.theory:.5g}"
    )
    details = {c.name: c.details() for c in comparisons}
    return Finding(not failed, summary, details)
