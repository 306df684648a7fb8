r"""Simulated means at two sizes, extrapolated to d → ∞ with a known power of d."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..comparison import Comparison

Sizes = tuple[tuple[int, int], tuple[int, int]]
"""Dimension and number of networks, of a smaller and of a larger size."""


def extrapolated(
    quantity: str,
    theory: float,
    sizes: Sizes,
    values: Sequence[NDArray[np.float64]],
    exponent: float,
    bias: float = 0.0,
) -> Comparison:
    r"""Compare with theory what is left without a deviation of order :math:`d^{-x}`.

    Parameters
    ----------
    quantity : str
    theory : float
    sizes : pair of (int, int)
        Dimensions and numbers of networks.
    values : two arrays
        Of independent networks, at the two dimensions.
    exponent : float
        x, positive.
    bias : float
        What is stated to be left, absolute.

    Notes
    -----
    With :math:`r = (d_2/d_1)^x` it is :math:`(r m_2 - m_1)/(r - 1)`, in which a deviation
    :math:`c\,d^{-x}` of both means cancels; the standard errors add in squares.

    Examples
    --------
    >>> at = lambda d: 2 + 3 / d + np.array([-1e-3, 1e-3])
    >>> found = extrapolated("mean", 2.0, ((10, 2), (40, 2)), [at(10), at(40)], 1.0)
    >>> round(found.mean, 12), round(found.standard_error, 6)
    (2.0, 0.001374)
    """
    (small, _), (large, _) = sizes
    ratio = (large / small) ** exponent
    means = [float(v.mean()) for v in values]
    errors = [float(v.std(ddof=1)) / math.sqrt(len(v)) for v in values]
    return Comparison(
        f"{quantity}, d = {small} and {large} extrapolated",
        theory,
        (ratio * means[1] - means[0]) / (ratio - 1),
        math.hypot(ratio * errors[1], errors[0]) / (ratio - 1),
        bias,
    )
