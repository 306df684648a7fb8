r"""Means at several finite sizes, extrapolated: a weighted fit of a + b/d."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..errors import ParameterError

__all__ = ["Extrapolation", "extrapolate"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """A fit of a + b/d to means with standard errors.

    Attributes
    ----------
    limit, limit_error : float
        a and its standard error.
    slope, slope_error : float
        b and its standard error.
    chi_squared : float
        Sum of squared deviations in standard errors.
    degrees_of_freedom : int
        Sizes minus two.
    """

    limit: float
    limit_error: float
    slope: float
    slope_error: float
    chi_squared: float
    degrees_of_freedom: int

    @property
    def probability(self) -> float:
        """Probability of a larger χ² if the means are of this form; nan without freedom."""
        if not self.degrees_of_freedom:
            return math.nan
        return float(special.chdtrc(self.degrees_of_freedom, self.chi_squared))

    def at(self, dimension: float | Array) -> Array:
        """Return a + b/d."""
        return np.asarray(self.limit + self.slope / np.asarray(dimension))


def extrapolate(dimensions: object, means: object, standard_errors: object) -> Extrapolation:
    """Fit a + b/d by least squares with weights 1/(standard error)².

    Parameters
    ----------
    dimensions, means, standard_errors : array-like (g,)
        At least two different dimensions; positive errors.

    Raises
    ------
    ParameterError
        If shapes differ, there are fewer than two dimensions, or an error is not positive.

    Examples
    --------
    >>> fit = extrapolate([100, 200, 400], [1.02, 1.01, 1.005], [0.01, 0.01, 0.01])
    >>> round(fit.limit, 9), round(fit.slope, 6), fit.degrees_of_freedom
    (1.0, 2.0, 1)
    """
    sizes, values, errors = (
        np.atleast_1d(np.asarray(a, dtype=float)) for a in (dimensions, means, standard_errors)
    )
    if not sizes.shape == values.shape == errors.shape or sizes.ndim != 1:
        raise ParameterError("dimensions, means and standard errors must be equally many")
    if len(np.unique(sizes)) < 2:
        raise ParameterError("an extrapolation needs at least two different dimensions")
    if not (np.isfinite(values).all() and np.isfinite(errors).all() and (errors > 0).all()):
        raise ParameterError("means must be finite, standard errors positive and finite")
    # In units of the smallest size, lest the two columns differ by orders of magnitude.
    unit = float(sizes.min())
    design = np.stack([np.ones_like(sizes), unit / sizes], axis=1) / errors[:, None]
    scaled = values / errors
    coefficients, *_ = np.linalg.lstsq(design, scaled, rcond=None)
    covariance = np.linalg.inv(design.T @ design)
    deviations = scaled - design @ coefficients
    return Extrapolation(
        limit=float(coefficients[0]),
        limit_error=math.sqrt(covariance[0, 0]),
        slope=float(coefficients[1] * unit),
        slope_error=math.sqrt(covariance[1, 1]) * unit,
        chi_squared=float(deviations @ deviations),
        degrees_of_freedom=len(sizes) - 2,
    )
