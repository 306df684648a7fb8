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
from scipy.optimize import minimize_scalar

from ....errors import ConvergenceError, ParameterError
from ....numeric.arguments import real_number, whole_number
from .arguments import LARGEST_BIAS
from .solution import VocabularySolution

if TYPE_CHECKING:
    from .model import VocabularyFeatures

# The objective is flat at a minimum: rounding hides smaller changes of the bias.
_RESOLVED = 1e-7
_XTOL = 1e-9
# Differences of the objective below this, relative, are rounding: a flat stretch is no minimum.
_FLAT = 1e-13


@dataclass(frozen=True)
class BiasMinimum:
    """A local minimum of the training objective.

    Attributes
    ----------
    bias : float
    objective : float
        (1/n)(sum of squares + λ\\|w\\|²) there.
    solution : VocabularySolution
    at_end : bool
        An end of the interval: the objective still falls there.
    """

    bias: float
    objective: float
    solution: VocabularySolution
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
        If the interval is none, or the grid too coarse.
    """
    low, high = _checked_interval(interval)
    grid = np.linspace(low, high, whole_number("points", points, minimum=5))

    def solve(bias: float) -> VocabularySolution:
        return model.with_biases(float(bias)).solve(alpha, ridge, width=width)

    values = np.array([solve(b).regularised_training_error for b in grid])
    found = []
    for i in _local_minima(values):
        if i in (0, len(grid) - 1):
            found.append(_minimum(grid[i], solve, at_end=True))
            continue
        refined = minimize_scalar(
            lambda b: solve(b).regularised_training_error,
            bounds=(grid[i - 1], grid[i + 1]), method="bounded", options={"xatol": _XTOL},
        )  # fmt: skip
        if not refined.success:
            raise ConvergenceError(
                f"the minimum of the training objective near bias {grid[i]:.4g} was not found: "
                f"{refined.message}",
                state=refined,
            )
        found.append(_minimum(float(refined.x), solve, at_end=False))
    return LearnedBias(tuple(found), grid, values)


def _minimum(bias: float, solve: object, *, at_end: bool) -> BiasMinimum:
    assert callable(solve)
    solution = solve(bias)
    return BiasMinimum(float(bias), solution.regularised_training_error, solution, at_end)


def _local_minima(values: NDArray[np.float64]) -> list[int]:
    """Return where values are below those beside them; of a flat stretch its first place."""
    scale = _FLAT * float(np.max(np.abs(values)))
    padded = np.concatenate([[np.inf], values, [np.inf]])
    below_left = values < padded[:-2] - scale
    below_right = values <= padded[2:] + scale
    return [int(i) for i in np.flatnonzero(below_left & below_right)]


def _checked_interval(interval: object) -> tuple[float, float]:
    if not isinstance(interval, tuple | list) or len(interval) != 2:
        raise ParameterError(f"interval must be (low, high), got {interval!r}")
    low, high = (real_number("interval", x) for x in interval)
    if not -LARGEST_BIAS <= low < high <= LARGEST_BIAS or math.isinf(high - low):
        raise ParameterError(
            f"interval must have low < high within {LARGEST_BIAS:g} of zero, got ({low}, {high})"
        )
    return low, high
