r"""A bias that is trained with the readout: minima of the training objective over it.

Training a common bias b to its optimum with the readout minimises
(1/n)(Σ(y − ŷ)² + λ|w|²) over both; b joins the order parameters, and its saddle-point equation is
that the derivative of the free energy by b vanishes (Cui et al., arXiv 2402.04980, appendix D).
The objective may have several local minima, and a lower one may have a larger test error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....errors import ParameterError
from ....numeric.arguments import real_number, whole_number
from ....numeric.local_minima import local_minima
from ..solution import Solution
from .arguments import LARGEST_BIAS

if TYPE_CHECKING:
    from .model import VocabularyFeatures

# The objective is flat at a minimum: rounding hides smaller changes of the bias.
_RESOLVED = 1e-7


@dataclass(frozen=True)
class BiasMinimum:
    """A local minimum of the training objective.

    Attributes
    ----------
    bias : float
    objective : float
        (1/n)(sum of squares + λ\\|w\\|²) there.
    solution : Solution
    at_end : bool
        An end of the interval: the objective still falls there.
    """

    bias: float
    objective: float
    solution: Solution
    at_end: bool

    @property
    def test_error(self) -> float:
        """Mean squared error against the noise-free target."""
        return self.solution.test_error


@dataclass(frozen=True)
class LearnedBias:
    """All local minima that were found, in ascending order of the bias.

    Attributes
    ----------
    minima : tuple of BiasMinimum
    biases, objective : array
        The grid that was searched.
    """

    minima: tuple[BiasMinimum, ...]
    biases: NDArray[np.float64]
    objective: NDArray[np.float64]

    @property
    def best(self) -> BiasMinimum:
        """The global minimum of the objective, which need not have the least test error."""
        return min(self.minima, key=lambda x: x.objective)

    def nearest(self, bias: float) -> BiasMinimum:
        """Return the minimum that is nearest to a bias, as descent from there may find it."""
        given = real_number("bias", bias)
        return min(self.minima, key=lambda x: abs(x.bias - given))

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        step = self.biases[1] - self.biases[0]
        return (
            f"local minima that a grid of step {step:.3g} tells apart, each to about "
            f"{_RESOLVED:.0e}, what differences of the objective resolve; "
            f"{self.best.solution.rests_on}"
        )

    def __str__(self) -> str:
        lines = []
        for x in self.minima:
            mark = ", global minimum" if x is self.best else ""
            mark += ", end of the interval" if x.at_end else ""
            lines.append(
                f"bias {x.bias:.8g}: objective {x.objective:.10g}, test error "
                f"{x.test_error:.10g}{mark}"
            )
        return "\n".join([*lines, self.rests_on])


def learned_bias(
    model: VocabularyFeatures,
    alpha: float,
    ridge: float,
    *,
    interval: tuple[float, float],
    points: int,
    width: int | None,
) -> LearnedBias:
    """Return the local minima of the training objective over a common bias of all rows.

    Parameters
    ----------
    model : VocabularyFeatures
        Its own biases are replaced.
    alpha, ridge, width
        As for :meth:`.model.VocabularyFeatures.solve`.
    interval : (float, float)
    points : int
        At least 5.

    Raises
    ------
    ParameterError
        If the interval is none, the grid too coarse, or the leading order not the published one.
    """
    if not model.parameters.published:
        raise ParameterError(
            'learned biases are derived for leading_order="published"; take that, or solve at '
            "biases of your own"
        )
    low, high = _checked_interval(interval)
    grid = np.linspace(low, high, whole_number("points", points, minimum=5))

    def solve(bias: float) -> Solution:
        return model.with_biases(bias).solve(alpha=alpha, ridge=ridge, width=width)

    def objective(bias: float) -> float:
        least: float | None = solve(float(bias)).regularised_training_error
        assert least is not None
        return least

    values, minima = local_minima(objective, grid, "the training objective over the bias")
    found = []
    for bias, least in minima:
        found.append(BiasMinimum(bias, least, solve(bias), bias in (grid[0], grid[-1])))
    return LearnedBias(tuple(found), grid, values)


def _checked_interval(interval: object) -> tuple[float, float]:
    if not isinstance(interval, tuple | list) or len(interval) != 2:
        raise ParameterError(f"interval must be (low, high), got {interval!r}")
    low, high = (real_number("interval", x) for x in interval)
    if not -LARGEST_BIAS <= low < high <= LARGEST_BIAS or math.isinf(high - low):
        raise ParameterError(
            f"interval must have low < high within {LARGEST_BIAS:g} of zero, got ({low}, {high})"
        )
    return low, high
