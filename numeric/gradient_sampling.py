r"""The gradient of a neuron at finite dimension, averaged over samples.

Of a first layer with rows :math:`w_j \in \mathbb{R}^d`, labels :math:`y = f(x_1,\dots,x_r) +
\sqrt\Delta\,\xi` and inputs :math:`x \sim \mathcal{N}(0, I_d)` this draws

.. math:: g_j = \frac1n \sum_\mu y_\mu\, \sigma'(w_j \cdot x_\mu)\, x_\mu ,

whose expectation is the population gradient. The frame is chosen so that the target depends on the
first r coordinates; inputs are isotropic, so this is no restriction.

Nothing of the size n × d is ever held; see :mod:`.sample_stream`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import threadpoolctl
from numpy.typing import ArrayLike, NDArray

from ..errors import ParameterError
from .arguments import whole_number
from .sample_stream import Function, SampleStream, finite_function, finite_values, progress_bar

__all__ = ["SampledGradient", "sample_gradient"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SampledGradient:
    r"""A mean of per-sample gradients with its standard errors.

    Attributes
    ----------
    mean : ndarray, shape (d,) or (p, d)
        Mean of :math:`y\,\sigma'(w\cdot x)\,x`, one row for each row of weights.
    standard_error : ndarray, of the same shape
        Standard error of each component.
    norm : float or ndarray, shape (p,)
        Length of the mean.
    error_norm : float or ndarray, shape (p,)
        Root of the sum of the squared standard errors: the root mean square of the distance
        between the mean and the population gradient, so that much `norm` can be off.
    samples : int
        Number of samples n.
    """

    mean: Array
    standard_error: Array
    norm: Array
    error_norm: Array
    samples: int

    def __repr__(self) -> str:
        rows = "" if self.mean.ndim == 1 else f"{len(self.mean)} rows, "
        return f"SampledGradient({rows}dimension {self.mean.shape[-1]}, {self.samples} samples)"


def sample_gradient(
    student_derivative: Function,
    target: Function,
    weights: ArrayLike,
    *,
    variables: int,
    samples: int,
    seed: int | np.random.SeedSequence = 0,
    noise_variance: float = 0.0,
    progress: bool = True,
) -> SampledGradient:
    r"""Draw the gradient of neurons with given weights.

    Parameters
    ----------
    student_derivative : callable
        :math:`\sigma'`; takes an array, returns values of the same shape.
    target : callable
        f; takes an array of shape (n, r), returns n values.
    weights : array_like, shape (d,) or (p, d)
        One neuron, or one for each row. Their norms are free.
    variables : int
        Number r of coordinates that the target depends on, r <= d.
    samples : int
        n >= 2.
    seed : int or SeedSequence
        Fixes the samples; the numbers do not depend on the number of threads.
    noise_variance : float
        :math:`\Delta`, of Gaussian label noise.
    progress : bool
        Show a progress bar on the standard error stream after a second.

    Raises
    ------
    ParameterError
        If an argument is outside its range or a function returns a wrong shape or a value that is
        not finite; the message names it.

    Examples
    --------
    For a linear neuron the expectation is E[f(x) x], here (3, 0, 0, 0):

    >>> found = sample_gradient(lambda u: 1.0, lambda x: x[:, 0] ** 3, [0.0, 0.6, 0.8, 0.0],
    ...                         variables=1, samples=20_000)
    >>> bool(np.all(abs(found.mean - [3, 0, 0, 0]) < 4 * found.standard_error))
    True
    """
    rows = _weight_rows(weights)
    samples = whole_number("samples", samples, minimum=2)
    stream = SampleStream(rows.shape[1], target, variables, noise_variance, seed)
    finite_function("student_derivative", student_derivative)
    total, squares = np.zeros_like(rows), np.zeros_like(rows)
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        progress_bar(progress, samples, "sample") as bar,
    ):
        for inputs, labels in stream.blocks(0, samples):
            factors = finite_values(student_derivative, "student_derivative", inputs @ rows.T)
            factors = factors * labels[:, None]
            total += factors.T @ inputs
            squares += (factors * factors).T @ (inputs * inputs)
            bar.update(len(labels))
    mean = total / samples
    # The mean of squares loses no digits here: a component is never much larger than its spread.
    variance = np.maximum(squares / samples - mean * mean, 0.0) / (samples - 1)
    shape = np.shape(weights)
    return SampledGradient(
        mean.reshape(shape),
        np.sqrt(variance).reshape(shape),
        np.linalg.norm(mean, axis=1).reshape(shape[:-1]),
        np.sqrt(variance.sum(axis=1)).reshape(shape[:-1]),
        samples,
    )


def _weight_rows(weights: ArrayLike) -> Array:
    try:
        array = np.asarray(weights)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.ndim not in (1, 2) or not array.size or array.dtype.kind not in "fiu":
        raise ParameterError(
            "weights must be an array of real numbers of shape (d,) or (p, d), got "
            f"{array.dtype} of shape {array.shape}"
        )
    rows = np.atleast_2d(array).astype(np.float64)
    if not np.isfinite(rows).all():
        raise ParameterError("weights must be finite")
    return rows
