r"""Ridge regression on nested samples whose features arrive block by block.

All sample sizes of one learning curve share their data: the first n rows. Sizes below the number
of features are solved in the dual with a *single* Cholesky factor for each penalty, because the
factor of a leading principal block is the leading block of the factor. Sizes from the number of
features on accumulate one Gram matrix and factorise a copy of it at each size. Penalties that are
lost beside the Gram matrix in double precision, zero among them, are solved by singular values,
which costs more and loses no digits.

Products go through ``numpy.matmul``: it releases the interpreter lock, so that seeds can run in
threads, and it calls ``syrk`` for ``A.T @ A``. The wrappers in ``scipy.linalg.blas`` hold the lock.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from ...errors import ConvergenceError, ParameterError

__all__ = ["RidgeFit", "fit_ridge"]

Array = NDArray[np.float64]

KEPT_ROWS_PER_FEATURE = 4
"""Feature rows kept for the residuals, in units of the feature number; later ones are redrawn.

Four: the rows kept then cost as much as four Gram matrices, and redrawing, which repeats the work
n p d, is left to sizes where the Gram matrix and the first step dominate the time."""

LOST_PENALTY = 1e-11
"""Penalties smaller than this beside the largest diagonal entry lose digits in a Gram matrix."""


@dataclass(frozen=True, slots=True, eq=False)
class RidgeFit:
    r"""Ridge regressions of S sample sizes and L penalties.

    Attributes
    ----------
    coefficients : ndarray, shape (p, S, L)
        :math:`u = \mathrm{argmin} \sum_\mu (y_\mu - \varphi_\mu \cdot u - u_0)^2 + \lambda |u|^2`.
    intercepts : ndarray, shape (S, L)
        :math:`u_0`, zero where none is fitted.
    penalties : ndarray, shape (S, L)
        λ.
    training_error : ndarray, shape (S, L)
        :math:`(1/n) \sum_\mu (y_\mu - \varphi_\mu \cdot u - u_0)^2`, from the residuals themselves:
        the value of the quadratic form would lose all digits of a small error.
    """

    coefficients: Array
    intercepts: Array
    penalties: Array
    training_error: Array


def fit_ridge(
    draw: Callable[[int, Array], Array],
    sizes: Sequence[int],
    penalties: Sequence[float],
    *,
    width: int,
    block_rows: int,
    relative: bool = False,
    intercept: bool = False,
    dtype: type = np.float64,
) -> RidgeFit:
    r"""Fit ridge regressions to the first n samples, for several n and penalties at once.

    Parameters
    ----------
    draw : callable
        ``draw(start, out)`` writes the feature rows ``start, ..., start + len(out) - 1`` into `out`
        and returns their labels. It is called with `start` a multiple of `block_rows`, and must
        give the same rows when it is called again.
    sizes : sequence of int
        Sample sizes n, strictly increasing, n >= 1.
    penalties : sequence of float
        :math:`\lambda \ge 0` of :math:`|u|^2`; zero is the interpolator, or the least-squares fit,
        of least norm.
    width : int
        Number of features p.
    block_rows : int
        Largest number of rows asked of `draw`.
    relative : bool
        Penalties are in units of the mean diagonal entry of the Gram matrix.
    intercept : bool
        Fit a constant that is not penalised.
    dtype : type
        Of the features.

    Raises
    ------
    ParameterError
        If a penalty is too small for double precision, and there are too many samples to keep.
    ConvergenceError
        If LAPACK finds no singular values.

    Examples
    --------
    >>> features, labels = np.array([[1.0, 1.0]]), np.array([2.0])
    >>> def draw(start, out):
    ...     out[:] = features[start : start + len(out)]
    ...     return labels[start : start + len(out)]
    >>> fit = fit_ridge(draw, [1], [0.0, 2.0], width=2, block_rows=8)
    >>> fit.coefficients[:, 0].T.round(3).tolist()
    [[1.0, 1.0], [0.5, 0.5]]
    """
    samples = _Rows(draw, sizes[-1], width, block_rows, min(penalties) == 0, dtype)
    shape = len(sizes), len(penalties)
    fit = RidgeFit(np.empty((width, *shape)), np.zeros(shape), np.empty(shape), np.empty(shape))
    task = _Task(samples, fit, np.asarray(penalties, dtype=float), relative, intercept)
    few = [n for n in sizes if n < width]
    many = [n for n in sizes if n >= width]
    if many:
        task.primal(many, len(few))
    else:
        samples.read_all()
    if few and intercept:
        for column, n in enumerate(few):
            task.spectral(n, column)
    elif few:
        task.dual(few)
    return fit


class _Rows:
    """Features and labels, kept or drawn again."""

    def __init__(
        self,
        draw: Callable[[int, Array], Array],
        last: int,
        width: int,
        block_rows: int,
        keep: bool,
        dtype: type,
    ) -> None:
        blocks = -(-KEPT_ROWS_PER_FEATURE * width // block_rows)
        self.draw, self.last, self.width, self.block_rows = draw, last, width, block_rows
        rows = last if keep else min(last, blocks * block_rows)
        self.kept: Array = np.empty((rows, width), dtype)
        self.spare: Array = np.empty((block_rows if last > len(self.kept) else 0, width), dtype)
        self.labels = np.empty(last)

    def block(self, start: int, *, again: bool) -> Array:
        """Return the features of a block."""
        stop = min(start + self.block_rows, self.last)
        is_kept = stop <= len(self.kept)
        features = self.kept[start:stop] if is_kept else self.spare[: stop - start]
        if not (again and is_kept):
            self.labels[start:stop] = self.draw(start, features)
        return features

    def read_all(self) -> None:
        """Draw every block once."""
        for start in range(0, self.last, self.block_rows):
            self.block(start, again=False)


@dataclass(frozen=True, slots=True)
class _Task:
    """One set of regressions; methods fill the columns of the fit."""

    samples: _Rows
    fit: RidgeFit
    penalties: Array
    relative: bool
    intercept: bool

    def primal(self, sizes: Sequence[int], first: int) -> None:
        """Solve the normal equations at each size while the Gram matrix grows."""
        samples, width = self.samples, self.samples.width
        gram, work = np.zeros((width, width)), np.empty((width, width))
        moment, total, level = np.zeros(width), np.zeros(width), 0.0
        lost: list[int] = []
        for start in range(0, sizes[-1], samples.block_rows):
            features = samples.block(start, again=False)
            stop = start + len(features)
            cuts = [start, *(n for n in sizes if start < n < stop), stop]
            for begin, end in itertools.pairwise(cuts):
                part = features[begin - start : end - start]
                labels = samples.labels[begin:end]
                if part.dtype == gram.dtype:
                    np.matmul(part.T, part, out=work)
                    gram += work
                else:
                    gram += part.T @ part
                moment += part.T @ labels
                if self.intercept:
                    total += part.sum(axis=0, dtype=float)
                    level += float(labels.sum())
                if end in sizes and not self._solve(
                    gram, work, moment, (total, level), end, first + sizes.index(end)
                ):
                    lost.append(end)
        for n in lost:
            self._require_kept(n, gram)
            self.spectral(n, first + sizes.index(n))
        self._residuals([n for n in sizes if n not in lost], sizes, first)

    def _solve(
        self, gram: Array, work: Array, moment: Array, sums: tuple[Array, float], n: int,
        column: int,
    ) -> bool:  # fmt: skip
        """Solve at one size for all penalties; whether none of them is lost in the Gram matrix."""
        total, level = sums
        diagonal = gram.diagonal() - total**2 / n
        for k, penalty in enumerate(self._scaled(float(diagonal.mean()))):
            if not penalty > LOST_PENALTY * diagonal.max():
                return False
            np.copyto(work, gram)
            wanted = moment
            if self.intercept:
                work -= np.outer(total, total / n)
                wanted = moment - total * (level / n)
            factor = _cholesky(work, penalty)
            if factor is None:
                return False
            solution = scipy.linalg.lapack.dpotrs(factor, wanted, lower=1)[0]
            self.fit.coefficients[:, column, k] = solution
            self.fit.penalties[column, k] = penalty
            if self.intercept:
                self.fit.intercepts[column, k] = (level - total @ solution) / n
        return True

    def _scaled(self, unit: float) -> Array:
        # Features that all vanish have no unit.
        return self.penalties * (unit or 1.0) if self.relative else self.penalties

    def _residuals(self, solved: Sequence[int], sizes: Sequence[int], first: int) -> None:
        """Mean over the first n samples of (y - prediction)^2, for each n."""
        if not solved:
            return
        columns = [first + sizes.index(n) for n in solved]
        coefficients = self.fit.coefficients[:, columns].reshape(self.samples.width, -1)
        intercepts = self.fit.intercepts[columns].reshape(-1)
        sums = np.zeros((len(solved), self.fit.penalties.shape[1]))
        for start in range(0, solved[-1], self.samples.block_rows):
            residuals = self.samples.block(start, again=True) @ coefficients + intercepts
            labels = self.samples.labels[start : start + len(residuals), None]
            np.subtract(labels, residuals, out=residuals)
            squares = residuals.reshape(len(residuals), *sums.shape)
            for row, n in enumerate(solved):
                inside = squares[: max(n - start, 0), row]
                sums[row] += np.einsum("mk,mk->k", inside, inside)
        self.fit.training_error[columns] = sums / np.asarray(solved)[:, None]

    def dual(self, sizes: Sequence[int]) -> None:
        """Solve (K + λ) a = y with K = features features^T at each size, u = features^T a."""
        features = self.samples.kept[: sizes[-1]]
        labels = self.samples.labels[: sizes[-1]]
        kernel = np.asarray(features @ features.T, dtype=float)
        diagonal = kernel.diagonal().copy()
        smallest = float(self.penalties.min())
        if self.relative or not smallest > LOST_PENALTY * diagonal.max():
            # Units differ from size to size.
            for column, n in enumerate(sizes):
                self.spectral(n, column)
            return
        for k, penalty in enumerate(self.penalties):
            factor = _cholesky(kernel if len(self.penalties) == 1 else kernel.copy(), penalty)
            if factor is None:
                for column, n in enumerate(sizes):
                    self.spectral(n, column)
                return
            forward = scipy.linalg.lapack.dtrtrs(factor, labels, lower=1)[0]
            # Zeros below row n stay zeros in the back substitution with the transposed factor, so
            # the leading n x n system is solved without cutting it out.
            padded = np.zeros((len(labels), len(sizes)), order="F")
            for column, n in enumerate(sizes):
                padded[:n, column] = forward[:n]
            dual = scipy.linalg.lapack.dtrtrs(factor, padded, lower=1, trans=1, overwrite_b=1)[0]
            columns = range(len(sizes))
            self.fit.coefficients[:, columns, k] = features.T @ dual
            self.fit.penalties[columns, k] = penalty
            # y - K a = λ a holds exactly; the left side would cancel at small λ.
            self.fit.training_error[columns, k] = (
                penalty * np.linalg.norm(dual, axis=0)
            ) ** 2 / np.asarray(sizes)

    def spectral(self, n: int, column: int) -> None:
        """Solve at one size by singular values."""
        features = np.asarray(self.samples.kept[:n], dtype=float)
        labels = self.samples.labels[:n]
        mean, level = np.zeros(self.samples.width), 0.0
        if self.intercept:
            mean, level = features.mean(axis=0), float(labels.mean())
            features, labels = features - mean, labels - level
        try:
            left, values, right = scipy.linalg.svd(
                features, full_matrices=False, check_finite=False
            )
        except np.linalg.LinAlgError as error:
            raise ConvergenceError(
                f"the singular values of {n} by {self.samples.width} features do not converge",
                state={}, residual=math.nan,
            ) from error  # fmt: skip
        seen = left.T @ labels
        outside = labels - left @ seen
        # Rounding errors of zero singular values must not be divided by.
        positive = values > np.finfo(float).eps * max(features.shape) * values.max(initial=0.0)
        penalty = self._scaled(float((values**2).sum()) / self.samples.width)[:, None]
        divisor = np.where(positive, values, 1.0)
        # Neither form squares a singular value, which may be as large as a float.
        with np.errstate(divide="ignore", over="ignore"):
            amplitudes = np.where(positive, seen / (divisor + penalty / divisor), 0.0)
            residuals = np.where(positive, seen / (1 + divisor * (divisor / penalty)), seen)
        found = right.T @ amplitudes.T
        self.fit.coefficients[:, column] = found
        self.fit.intercepts[column] = level - mean @ found
        self.fit.penalties[column] = penalty[:, 0]
        self.fit.training_error[column] = (outside @ outside + (residuals**2).sum(axis=1)) / n

    def _require_kept(self, n: int, gram: Array) -> None:
        if n > len(self.samples.kept):
            raise ParameterError(
                "ridge is too small: the normal equations are singular in double precision\n"
                f"  penalty {self.penalties.min():.3g} against a largest diagonal entry of "
                f"{gram.diagonal().max():.3g}\n  use a larger ridge"
            )


def _cholesky(symmetric: Array, ridge: float) -> Array | None:
    """Lower Cholesky factor of symmetric + ridge, in its memory; None if there is none."""
    symmetric.reshape(-1)[:: len(symmetric) + 1] += ridge
    factor, status = scipy.linalg.lapack.dpotrf(symmetric.T, lower=1, overwrite_a=1, clean=0)
    return factor if status == 0 else None
