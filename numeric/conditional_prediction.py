r"""Conditional errors as control variates: what is predicted at each κ is taken out of the noise.

Errors of simulated samples have heavy tails in their projection κ on the spike. A predicted
conditional error e(κ) is subtracted at each sample, and its exact mean added again: the expectation
stays what it is, for any e.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from ..errors import ParameterError

__all__ = ["ConditionalPrediction"]

Array = NDArray[np.float64]

_REFINEMENT = 8
"""Points of the average for each interval of the grid: the average is that of the interpolant."""


@dataclass(frozen=True, eq=False)
class ConditionalPrediction:
    """Predicted conditional errors on a grid.

    Parameters
    ----------
    kappa : array-like (g,)
        Increasing, equally spaced, covering at least [-6, 6].
    test, training : array-like (g,)
        Predicted conditional test and training error at these points.

    Raises
    ------
    ParameterError
        If shapes differ, values are not finite, or the grid is none of this kind.
    """

    kappa: Array
    test: Array
    training: Array

    def __post_init__(self) -> None:
        for name in ("kappa", "test", "training"):
            values = np.array(getattr(self, name), dtype=float)
            if values.ndim != 1 or values.shape != np.shape(self.kappa):
                raise ParameterError(f"{name} must hold one number for each point of kappa")
            if not np.isfinite(values).all():
                raise ParameterError(f"{name} holds a value that is not finite")
            object.__setattr__(self, name, values)
        gaps = np.diff(self.kappa)
        if len(gaps) < 3 or gaps.min() <= 0 or np.ptp(gaps) > 1e-9 * gaps.max():
            raise ParameterError("kappa must increase in equal steps")
        if self.kappa[0] > -6 or self.kappa[-1] < 6:
            raise ParameterError(
                f"kappa must cover [-6, 6], got [{self.kappa[0]:g}, {self.kappa[-1]:g}]"
            )

    @cached_property
    def _splines(self) -> tuple[CubicSpline, CubicSpline]:
        return CubicSpline(self.kappa, self.test), CubicSpline(self.kappa, self.training)

    @cached_property
    def means(self) -> tuple[float, float]:
        """Averages of both over a standard normal κ."""
        points = np.linspace(self.kappa[0], self.kappa[-1], _REFINEMENT * (len(self.kappa) - 1) + 1)
        weights = np.exp(-(points**2) / 2)
        weights /= weights.sum()
        test, training = (float(weights @ spline(points)) for spline in self._splines)
        return test, training

    def at(self, kappa: Array) -> tuple[Array, Array]:
        """Return both at given points; those beyond the grid count as its ends."""
        inside = np.clip(kappa, self.kappa[0], self.kappa[-1])
        test, training = (np.asarray(spline(inside)) for spline in self._splines)
        return test, training

    @property
    def digest(self) -> str:
        """What distinguishes it from others in stored results."""
        content = b"".join(np.ascontiguousarray(a).tobytes() for a in (self.kappa, self.test))
        return sha256(content + self.training.tobytes()).hexdigest()[:16]
