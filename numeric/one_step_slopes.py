r"""First gradients of many neurons, regressed on monomials of their weights; norms after a step.

On one batch of n samples all neurons :math:`w_i`, uniform on the unit sphere of
:math:`\mathbb{R}^d`, have gradients :math:`g_i = \frac1n\sum_\mu y_\mu\,\sigma'(\langle w_i,
x_\mu\rangle)\,x_\mu`. Their components along the r coordinates of the target are fitted, by least
squares over the neurons, to a linear combination of given monomials in :math:`w_{i1}, \dots,
w_{ir}`. Noise common to all neurons is taken up by a constant, unless a constant is what is asked
for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from ..errors import ParameterError
from .arguments import checked_seed, real_number, whole_number
from .replicates import Replicates
from .sample_stream import Function, SampleStream, finite_function, finite_values, progress_bar

__all__ = ["GradientSlopes", "measure_gradient_slopes"]

Array = NDArray[np.float64]

_BATCH, _WEIGHTS = range(2)


@dataclass(frozen=True, slots=True, eq=False)
class GradientSlopes(Replicates):
    r"""What the gradients of independent batches are; one entry or row for each batch.

    Attributes
    ----------
    coefficients : ndarray, shape (batches, r, monomials)
        Fitted coefficients of each component of the gradient.
    gradient_square : ndarray, shape (batches,)
        Mean over neurons of :math:`|g|^2`.
    squared_norm : ndarray, shape (batches,)
        Mean over neurons of :math:`|w + s\,g|^2`.
    inside : ndarray, shape (batches,)
        The same of the projection on the space of the first r coordinates.
    label_cosines : ndarray, shape (batches, r)
        Cosines of :math:`X^Ty/n` with the coordinates.
    """

    coefficients: Array
    gradient_square: Array
    squared_norm: Array
    inside: Array
    label_cosines: Array

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the arrays with one row for each batch."""
        return ("coefficients", "gradient_square", "squared_norm", "inside", "label_cosines")


def measure_gradient_slopes(
    student_derivative: Function,
    target: Function,
    monomials: Sequence[Sequence[int]],
    *,
    dimension: int,
    samples: int,
    width: int,
    step: float = 1.0,
    noise_variance: float = 0.0,
    batches: int = 8,
    seed: int = 0,
    progress: bool = True,
) -> GradientSlopes:
    """Draw batches and neurons, and fit their gradients.

    Parameters
    ----------
    student_derivative : callable
        Takes an array, returns values of the same shape.
    target : callable
        Takes an array of shape (n, r), returns n values.
    monomials : sequence of sequences of int
        Exponents of w_1..w_r, one sequence of r of them for each monomial.
    dimension, samples, width : int
        d, n and the number of neurons, which must exceed that of the monomials.
    step : float
        s, of either sign.
    noise_variance : float
        Variance of the label noise.
    batches : int
        Number of batches, each with neurons of its own.
    seed : int
        Fixes all numbers.
    progress : bool
        Show a progress bar on the standard error stream if it takes longer than a second.

    Raises
    ------
    ParameterError
        If an argument is outside its range, or a function returns a wrong shape or a value that
        is not finite.

    Examples
    --------
    For the neuron z²/2 and f = x1 x2 the gradient is (w2, w1) in the first two coordinates:

    >>> found = measure_gradient_slopes(lambda u: u, lambda x: x[:, 0] * x[:, 1], [(1, 0), (0, 1)],
    ...                                 dimension=6, samples=40_000, width=50, batches=2)
    >>> [[round(float(c)) for c in row] for row in found.mean("coefficients")]
    [[0, 1], [1, 0]]
    """
    exponents = _exponents(monomials)
    width = whole_number("width", width, minimum=len(exponents) + 2)
    samples = whole_number("samples", samples)
    finite_function("student_derivative", student_derivative)
    step = real_number("step", step)
    if not math.isfinite(step):
        raise ParameterError(f"step must be finite, got {step}")
    root = np.random.SeedSequence(checked_seed(seed))
    rows = []
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        progress_bar(progress, whole_number("batches", batches), "batch") as bar,
    ):
        for index in range(batches):
            child = np.random.SeedSequence(root.entropy, spawn_key=(index,))
            stream = SampleStream(dimension, target, exponents.shape[1], noise_variance, child)
            rows.append(_one_batch(student_derivative, stream, samples, width, exponents, step))
            bar.update()
    return GradientSlopes(*(np.array(column) for column in zip(*rows, strict=True)))


def _exponents(monomials: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    found = np.asarray(monomials)
    if found.ndim != 2 or not found.size or found.dtype.kind not in "iu" or found.min() < 0:
        raise ParameterError(
            "monomials must be rows of exponents >= 0, one of each coordinate, such as [(1, 0)]"
        )
    return found.astype(np.int64)


def _one_batch(
    slope: Function,
    stream: SampleStream,
    samples: int,
    width: int,
    exponents: NDArray[np.int64],
    step: float,
) -> tuple[Array, float, float, float, Array]:
    weights = stream.generator(_WEIGHTS, 0).standard_normal((width, stream.dimension))
    weights /= np.linalg.norm(weights, axis=1)[:, None]
    gradient, moment = np.zeros_like(weights), np.zeros(stream.dimension)
    for inputs, labels in stream.blocks(_BATCH, samples):
        factors = finite_values(slope, "student_derivative", inputs @ weights.T)
        gradient += (factors * labels[:, None]).T @ inputs
        moment += labels @ inputs
    gradient /= samples
    variables = stream.variables
    inside = gradient[:, :variables]
    values = np.prod(weights[:, None, :variables] ** exponents[None], axis=2)
    wanted = len(exponents)
    if exponents.any(axis=1).all():
        values = np.hstack([values, np.ones((width, 1))])
    coefficients = np.linalg.lstsq(values, inside, rcond=None)[0][:wanted].T
    stepped = weights + step * gradient
    return (
        coefficients,
        float((gradient**2).sum(axis=1).mean()),
        float((stepped**2).sum(axis=1).mean()),
        float((stepped[:, :variables] ** 2).sum(axis=1).mean()),
        moment[:variables] / np.linalg.norm(moment),
    )
