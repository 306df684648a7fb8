r"""What of a function is of high degree outside a subspace, by sampling.

For independent Gaussian a, b in the orthogonal complement of U, of dimension m, the part of f of
degree j there has the squared norm

.. math:: \mathbb{E}\,f(x_U, a)\,f(x_U, b) \sum_{|\alpha| = j}
          \frac{\mathrm{He}_\alpha(a)\,\mathrm{He}_\alpha(b)}{\alpha!} ,

because this kernel projects on the Hermite polynomials of degree j in m variables. It needs no
smoothness and no closed form of f.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ParameterError
from .arguments import checked_seed, whole_number
from .networks.samples import Function, finite_function, target_values

__all__ = ["sample_residual"]

Array = NDArray[np.float64]

_BLOCK = 2**14


def sample_residual(
    function: Function,
    rows: ArrayLike,
    degree: int,
    *,
    dimension: int,
    samples: int = 2**20,
    seed: int = 0,
) -> tuple[float, float]:
    r"""Return the squared norm of what is of degree above `degree` outside a subspace U.

    Parameters
    ----------
    function : callable
        f, takes an array of shape (n, r), returns n values.
    rows : array_like, shape (u, r)
        Linearly independent, they span U; empty for {0}.
    degree : int
        l of :math:`\|P_{U,>l} f\|^2`, at least 0.
    dimension : int
        r.
    samples : int
        Pairs of points, at least 2.
    seed : int
        Fixes the numbers.

    Returns
    -------
    tuple of float
        The estimate, without bias, and its standard error.

    Raises
    ------
    ParameterError
        If an argument is outside its range, or a value is not finite.

    Examples
    --------
    Of x1 + x1 x2 outside of x1, nothing is left above degree 1, and 1 above degree 0:

    >>> found, error = sample_residual(lambda x: x[:, 0] * (1 + x[:, 1]), [[1, 0]], 0, dimension=2)
    >>> abs(found - 1) < 4 * error < 0.02
    True
    """
    finite_function("function", function)
    r = whole_number("dimension", dimension)
    degree = whole_number("degree", degree, minimum=0)
    count = whole_number("samples", samples, minimum=2)
    frame, inside = _frame(rows, r)
    generator = np.random.default_rng(checked_seed(seed))
    # Constants are of degree 0: taking one off changes nothing but the error.
    pilot = target_values(function, generator.standard_normal((_BLOCK, r)))
    level = float(pilot.mean())
    total, square = 0.0, 0.0
    for start in range(0, count, _BLOCK):
        size = min(_BLOCK, count - start)
        first = generator.standard_normal((size, r))
        second = first.copy()
        second[:, inside:] = generator.standard_normal((size, r - inside))
        one, other = (target_values(function, points @ frame) - level for points in (first, second))
        kernel = _kernel(first[:, inside:], second[:, inside:], degree)
        values = (one**2 + other**2) / 2 - one * other * kernel
        total += float(values.sum())
        square += float((values**2).sum())
    mean = total / count
    return mean, math.sqrt(max(square / count - mean**2, 0.0) / (count - 1))


def _frame(rows: ArrayLike, r: int) -> tuple[Array, int]:
    """Orthonormal rows of R^r, those of U first, and their number."""
    given = np.asarray(rows, dtype=np.float64).reshape(-1, r)
    frame = np.linalg.qr(given.T, mode="complete")[0].T
    if np.linalg.matrix_rank(given) < len(given):
        raise ParameterError("rows must be linearly independent")
    return np.asarray(frame), len(given)


def _kernel(a: Array, b: Array, degree: int) -> Array:
    """Sum of He_α(a) He_α(b)/α! over α of total degree at most `degree`."""
    series = [np.ones(len(a)), *(np.zeros(len(a)) for _ in range(degree))]
    for x, y in zip(a.T, b.T, strict=True):
        hx, hy = (np.polynomial.hermite_e.hermevander(v, degree) for v in (x, y))
        own = [hx[:, k] * hy[:, k] / math.factorial(k) for k in range(degree + 1)]
        series = [
            np.sum([series[i] * own[k - i] for i in range(k + 1)], axis=0)
            for k in range(degree + 1)
        ]
    return np.asarray(sum(series))
