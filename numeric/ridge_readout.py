"""Ridge regression on nested samples whose features arrive block by block.

All sample sizes of one learning curve share their data: the first n rows. Sizes below the number
of features are solved in the dual with a *single* Cholesky factor, because the factor of a leading
principal block is the leading block of the factor. Sizes from the number of features on
accumulate one Gram matrix and factorise a copy of it at each size.

Products go through ``numpy.matmul``: it releases the interpreter lock, so that seeds can run in
threads, and it calls ``syrk`` for ``A.T @ A``. The wrappers in ``scipy.linalg.blas`` hold the lock.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ..errors import ParameterError

__all__ = ["fit_nested"]

Array = NDArray[np.float64]

KEPT_ROWS_PER_FEATURE = 4
"""Feature rows kept for the residuals, in units of the feature number; later ones are redrawn.

Four: the rows kept then cost as much as four Gram matrices, and redrawing, which repeats the work
n p d, is left to sizes where the Gram matrix and the first step dominate the time."""


def fit_nested(
    draw: Callable[[int, Array], Array],
    sizes: Sequence[int],
    *,
    width: int,
    ridge: float,
    block_rows: int,
) -> tuple[Array, Array]:
    r"""Fit ridge regressions to the first n samples, for several n at once.

    Parameters
    ----------
    draw : callable
        ``draw(start, out)`` writes the feature rows ``start, ..., start + len(out) - 1`` into `out`
        and returns their labels. It is called with `start` a multiple of `block_rows`, and must
        give the same rows when it is called again.
    sizes : sequence of int
        Sample sizes n, strictly increasing, n >= 1.
    width : int
        Number of features p.
    ridge : float
        Penalty :math:`\lambda > 0` of :math:`|u|^2`.
    block_rows : int
        Largest number of rows asked of `draw`.

    Returns
    -------
    coefficients : ndarray, shape (p, len(sizes))
        Columns :math:`u = \mathrm{argmin} \sum_\mu (y_\mu - \varphi_\mu \cdot u)^2
        + \lambda |u|^2`.
    training_error : ndarray, shape (len(sizes),)
        :math:`(1/n) \sum_\mu (y_\mu - \varphi_\mu \cdot u)^2`, from the residuals themselves: the
        value of the quadratic form would lose all digits of a small error.

    Raises
    ------
    ParameterError
        If `ridge` is too small for a Cholesky factorisation in double precision.
    """
    last = sizes[-1]
    blocks = -(-KEPT_ROWS_PER_FEATURE * width // block_rows)
    kept = np.empty((min(last, blocks * block_rows), width))
    spare = np.empty((block_rows if last > len(kept) else 0, width))
    labels = np.empty(last)

    def rows(start: int, *, again: bool) -> Array:
        stop = min(start + block_rows, last)
        is_kept = stop <= len(kept)
        features = kept[start:stop] if is_kept else spare[: stop - start]
        if not (again and is_kept):
            labels[start:stop] = draw(start, features)
        return features

    few = [n for n in sizes if n < width]
    many = [n for n in sizes if n >= width]
    coefficients = np.empty((width, len(sizes)))
    training_error = np.empty(len(sizes))
    if many:
        coefficients[:, len(few) :] = _primal(rows, labels, many, width, ridge, block_rows)
        training_error[len(few) :] = _mean_squared_residuals(
            rows, labels, many, coefficients[:, len(few) :], block_rows
        )
    else:
        for start in range(0, last, block_rows):
            rows(start, again=False)
    if few:
        coefficients[:, : len(few)], training_error[: len(few)] = _dual(
            kept[: few[-1]], labels[: few[-1]], few, ridge
        )
    return coefficients, training_error


def _primal(
    rows: Callable[..., Array],
    labels: Array,
    sizes: Sequence[int],
    width: int,
    ridge: float,
    block_rows: int,
) -> Array:
    """Solve the normal equations at each size while the Gram matrix grows."""
    gram = np.zeros((width, width))
    work = np.empty_like(gram)
    moment = np.zeros(width)
    solutions = np.empty((width, len(sizes)))
    for start in range(0, sizes[-1], block_rows):
        features = rows(start, again=False)
        stop = start + len(features)
        cuts = [start, *(n for n in sizes if start < n < stop), stop]
        for begin, end in itertools.pairwise(cuts):
            part = features[begin - start : end - start]
            np.matmul(part.T, part, out=work)
            np.add(gram, work, out=gram)
            moment += part.T @ labels[begin:end]
            if end in sizes:
                np.copyto(work, gram)
                factor = _cholesky(work, ridge)
                solutions[:, sizes.index(end)] = lapack.dpotrs(factor, moment, lower=1)[0]
    return solutions


def _mean_squared_residuals(
    rows: Callable[..., Array],
    labels: Array,
    sizes: Sequence[int],
    coefficients: Array,
    block_rows: int,
) -> Array:
    """Mean over the first n samples of (y - prediction)^2, for each n."""
    sums = np.zeros(len(sizes))
    for start in range(0, sizes[-1], block_rows):
        residuals = rows(start, again=True) @ coefficients
        np.subtract(labels[start : start + len(residuals), None], residuals, out=residuals)
        for column, n in enumerate(sizes):
            inside = residuals[: max(n - start, 0), column]
            sums[column] += inside @ inside
    return sums / np.asarray(sizes)


def _dual(
    features: Array, labels: Array, sizes: Sequence[int], ridge: float
) -> tuple[Array, Array]:
    """Solve (K + ridge) a = y with K = features features^T at each size, u = features^T a."""
    kernel = features @ features.T
    factor = _cholesky(kernel, ridge)
    forward = lapack.dtrtrs(factor, labels, lower=1)[0]
    # Zeros below row n stay zeros in the back substitution with the transposed factor, so the
    # leading n x n system is solved without cutting it out.
    padded = np.zeros((len(labels), len(sizes)), order="F")
    for column, n in enumerate(sizes):
        padded[:n, column] = forward[:n]
    dual = lapack.dtrtrs(factor, padded, lower=1, trans=1, overwrite_b=1)[0]
    # y - K a = ridge a holds exactly; the left side would cancel at small ridge.
    training_error = (ridge * np.linalg.norm(dual, axis=0)) ** 2 / np.asarray(sizes)
    return features.T @ dual, training_error


def _cholesky(symmetric: Array, ridge: float) -> Array:
    """Lower Cholesky factor of symmetric + ridge, in the memory of the C-ordered `symmetric`."""
    symmetric.reshape(-1)[:: len(symmetric) + 1] += ridge
    factor, status = lapack.dpotrf(symmetric.T, lower=1, overwrite_a=1, clean=0)
    if status != 0:
        raise ParameterError(
            "ridge is too small: the normal equations are singular in double precision\n"
            f"  penalty {ridge:.3g} against a largest diagonal entry of {symmetric.max():.3g}\n"
            "  use a larger ridge"
        )
    return factor
