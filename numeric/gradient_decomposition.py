r"""The first gradient of a whole layer, split into spike and remainders, at finite size.

With inputs X of shape (n, d), rows :math:`w_j \sim \mathcal{N}(0, I_d/d)`, readout :math:`a_j \sim
\mathcal{N}(0, 1/N)`, output :math:`f_0 = a\cdot\sigma(Wx)/\sqrt N` and a number
:math:`\mu`, the mean of σ', the matrix of shape (d, N)

.. math:: G = \frac{1}{n\sqrt N} X^T[(y - f_0)\,a^T \circ \sigma'(XW^T)] = A + B + C

has the parts :math:`A = \frac{\mu}{n\sqrt N} X^Ty\,a^T`, :math:`C = -\frac{\mu}{n\sqrt N}
X^Tf_0\,a^T` and B, in which σ' is replaced by :math:`\sigma' - \mu`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import threadpoolctl
from numpy.typing import ArrayLike, NDArray

from ..errors import ParameterError
from .arguments import MOST_SEEDS, checked_seed, real_number, whole_number
from .sample_stream import (
    Function,
    SampleStream,
    finite_function,
    finite_values,
    progress_bar,
    seed_sequence,
)

__all__ = ["GradientParts", "measure_gradient_parts"]

Array = NDArray[np.float64]
_NETWORK, _SAMPLES = range(2)


@dataclass(frozen=True, slots=True, eq=False)
class GradientParts:
    r"""Norms of the parts, one entry for each network.

    Attributes
    ----------
    spike : ndarray, shape (seeds,)
        :math:`\sqrt N\,|A|_{op}`, which is also :math:`\sqrt N\,|A|_F`.
    bulk : ndarray, shape (seeds,)
        :math:`\sqrt N\,|B|_F`.
    bulk_operator_norm : ndarray, shape (seeds,)
        :math:`\sqrt N\,|B|_{op}`.
    output : ndarray, shape (seeds,)
        :math:`N\,|C|_{op}`.
    alignment : ndarray, shape (seeds,)
        Squared cosine between :math:`X^Ty` and the mean slope handed in; 0 if that is 0.
    identity_error : ndarray, shape (seeds,)
        :math:`|G - A - B - C|_F/|G|_F`, rounding only.
    """

    spike: Array
    bulk: Array
    bulk_operator_norm: Array
    output: Array
    alignment: Array
    identity_error: Array

    def __repr__(self) -> str:
        return f"GradientParts({len(self.spike)} networks)"


def measure_gradient_parts(
    student: Function,
    student_derivative: Function,
    target: Function,
    *,
    mean_derivative: float,
    mean_slope: ArrayLike,
    dimension: int,
    samples: int,
    width: int,
    noise_variance: float = 0.0,
    seeds: int = 5,
    seed: int = 0,
    progress: bool = True,
) -> GradientParts:
    r"""Draw networks and split their first gradients.

    Parameters
    ----------
    student, student_derivative : callable
        σ and σ'; take an array, return values of the same shape.
    target : callable
        Takes an array of shape (n, r), returns n values.
    mean_derivative : float
        :math:`\mu = \mathbb{E}\,\sigma'(z)`.
    mean_slope : array_like, shape (r,)
        :math:`\mathbb{E}[f(x)\,x]`; its length is the number of coordinates of the target.
    dimension, samples, width : int
        d, n, N.
    noise_variance : float
        Variance of the label noise.
    seeds, seed : int
        Number of networks and entropy of the run.
    progress : bool
        Show a progress bar on the standard error stream if the run takes longer than a second.

    Raises
    ------
    ParameterError
        If an argument is outside its range, or a function returns a wrong shape or a value that is
        not finite.

    Examples
    --------
    A linear student has no B:

    >>> found = measure_gradient_parts(lambda u: u, lambda u: 1.0, lambda x: x[:, 0],
    ...     mean_derivative=1.0, mean_slope=[1.0], dimension=50, samples=200, width=100, seeds=2)
    >>> bool(found.bulk.max() < 1e-12), bool(found.identity_error.max() < 1e-12)
    (True, True)
    """
    finite_function("student", student)
    finite_function("student_derivative", student_derivative)
    mean_derivative = real_number("mean_derivative", mean_derivative)
    slope = np.asarray(mean_slope)
    if slope.ndim != 1 or slope.dtype.kind not in "fiu" or not slope.size:
        raise ParameterError(
            f"mean_slope must be a vector of r >= 1 numbers, got {slope.dtype} of shape "
            f"{slope.shape}"
        )
    slope = slope.astype(np.float64)
    if not np.isfinite(slope).all():
        raise ParameterError("mean_slope must be finite")
    samples, width = whole_number("samples", samples), whole_number("width", width)
    root = seed_sequence(checked_seed(seed))
    rows = []
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        progress_bar(progress, whole_number("seeds", seeds, maximum=MOST_SEEDS), "network") as bar,
    ):
        for index in range(seeds):
            child = np.random.SeedSequence(root.entropy, spawn_key=(index,))
            stream = SampleStream(dimension, target, len(slope), noise_variance, child)
            rows.append(
                _norms(stream, student, student_derivative, mean_derivative, slope, samples, width)
            )
            bar.update()
    return GradientParts(*np.array(rows).T)


def _norms(
    stream: SampleStream, student: Function, student_derivative: Function, mu: float,
    slope: Array, samples: int, width: int,
) -> tuple[float, ...]:  # fmt: skip
    generator = stream.generator(_NETWORK)
    dimension = stream.dimension
    weights = generator.standard_normal((dimension, width)) / math.sqrt(dimension)
    readout = generator.standard_normal(width) / math.sqrt(width)
    gradient, bulk = np.zeros_like(weights), np.zeros_like(weights)
    label_moment, output_moment = np.zeros(dimension), np.zeros(dimension)
    for inputs, labels in stream.blocks(_SAMPLES, samples):
        hidden = inputs @ weights
        outputs = finite_values(student, "student", hidden) @ readout / math.sqrt(width)
        slopes = finite_values(student_derivative, "student_derivative", hidden)
        residuals = (labels - outputs)[:, None]
        gradient += inputs.T @ (residuals * slopes)
        bulk += inputs.T @ (residuals * (slopes - mu))
        label_moment += labels @ inputs
        output_moment += outputs @ inputs
    scale = readout / (samples * math.sqrt(width))
    gradient *= scale
    bulk *= scale
    spike = mu * np.outer(label_moment, scale)
    output = -mu * np.outer(output_moment, scale)
    overlap = float(label_moment[: len(slope)] @ slope)
    lengths = float(label_moment @ label_moment) * float(slope @ slope)
    root = math.sqrt(width)
    return (
        root * float(np.linalg.norm(spike, 2)),
        root * float(np.linalg.norm(bulk)),
        root * float(np.linalg.norm(bulk, 2)),
        width * float(np.linalg.norm(output, 2)),
        overlap**2 / lengths if lengths else 0.0,
        float(np.linalg.norm(gradient - spike - bulk - output) / np.linalg.norm(gradient)),
    )
