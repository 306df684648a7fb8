r"""Approximate message passing and spectral estimation of directions, as measurements of a run.

Both see the samples of the readout. Generalised AMP with a normal prior (Rangan, arXiv 1010.5141;
of several directions Aubin et al., arXiv 1806.05451) iterates, for inputs X with rows of length √d,
an orthonormal teacher :math:`\Theta` (K, d), and matrices V and Λ (K, K),

.. math::
    \omega &= X\hat\Theta^\top - g_{t-1}V, \quad g = g(y;\omega,V), \\
    \Lambda &= -\tfrac{1}{d}\sum\partial_\omega g, \\
    \hat\Theta &= (1+\Lambda)^{-1}(\Lambda\hat\Theta + g^\top X/d), \\
    V &= (1+\Lambda)^{-1} .

The output function comes as a function. What is measured is :math:`\Theta P\Theta^\top` with the
projector P on the estimated directions: the squared cosine of one direction; of several, with
:math:`\hat\Theta\Theta^\top\to Q` and :math:`\hat\Theta\hat\Theta^\top\to Q`, it tends to Q.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from ...errors import ParameterError
from .readout import TrainedNetwork
from .samples import READOUT, ROWS

__all__ = ["MessagePassing", "Spectral"]

Array = NDArray[np.float64]
OutputFunction = Callable[[Array, Array], tuple[Array, Array]]

_PURPOSE = 1001
_NOTHING, _ACCURACY = 1e-12, 1e-7


@dataclass(frozen=True, slots=True)
class MessagePassing:
    r"""Approximate message passing on the samples of a network.

    Parameters
    ----------
    output : callable
        Takes the labels (n,) and returns a function of ω (n, K) and V (K, K) with the values of g
        (n, K) and of :math:`-\partial_\omega g` (n, K, K).
    samples : int
    steps : int
        Iterations.
    start : sequence of sequences of float
        Overlap matrix M of the first estimate with the teacher, symmetric, zero for none:
        :math:`\hat\Theta = M\Theta + \sqrt{(M - M^2)/d}\,\xi`.

    Returns
    -------
    dict of ndarray
        ``amp_overlap``, :math:`\Theta P\Theta^\top` after each iteration, and ``amp_projection``,
        :math:`\hat\Theta\Theta^\top`, both (steps, K, K); (steps,) of one direction.
    """

    output: Callable[[Array], OutputFunction]
    samples: int
    steps: int = 25
    start: tuple[tuple[float, ...], ...] = ((0.0,),)

    @property
    def digest(self) -> str:
        """What distinguishes it from others in stored results."""
        return f"{self.samples} samples, {self.steps} iterations from {self.start}"

    def __call__(self, trained: TrainedNetwork) -> dict[str, Array]:
        """Measure."""
        inputs, labels, teachers = _drawn(trained, self.samples)
        d, count = inputs.shape[1], len(teachers)
        one, first = np.eye(count), np.array(self.start, float)
        if first.shape != one.shape:
            raise ParameterError(
                f"start is an overlap matrix of {len(first)} directions, the teacher of this "
                f"network has {count}"
            )
        output = self.output(labels)
        noise = trained.samples.generator(ROWS, _PURPOSE).standard_normal((count, d))
        values, vectors = np.linalg.eigh(first)
        spread = (vectors * np.sqrt(np.maximum(values * (1 - values), 0.0) / d)) @ vectors.T
        estimate = first @ teachers + spread @ noise
        variance, score = one - first, np.zeros((len(labels), count))
        overlaps, projections = np.zeros((2, self.steps, count, count))
        for t in range(self.steps):
            field = inputs @ estimate.T - score @ variance
            score, slope = output(field, variance)
            precision = _positive_part(slope.sum(axis=0) / d)
            variance = np.linalg.inv(one + precision)
            estimate = variance @ (precision @ estimate + score.T @ inputs / d)
            projections[t] = estimate @ teachers.T
            overlaps[t] = _projected(estimate, teachers)
        found = {"amp_overlap": overlaps, "amp_projection": projections}
        return found if count > 1 else {name: x.ravel() for name, x in found.items()}


@dataclass(frozen=True, slots=True)
class Spectral:
    r"""Directions from the leading eigenvectors of :math:`\sum T(y_\mu)\otimes x_\mu x_\mu^\top`.

    Parameters
    ----------
    transform : callable
        T, of labels (n,), with values (n, K, K).
    samples : int

    Returns
    -------
    dict of ndarray
        ``spectral_overlap``: squared cosine with the teacher; of K directions
        :math:`\Theta P\Theta^\top` (K, K), where P projects on the K leading directions of the K
        leading eigenvectors, each of which is K vectors of length d.

    Raises
    ------
    ParameterError
        If T vanishes on all labels.
    """

    transform: Callable[[Array], Array]
    samples: int

    @property
    def digest(self) -> str:
        """What distinguishes it from others in stored results."""
        return f"{self.samples} samples"

    def __call__(self, trained: TrainedNetwork) -> dict[str, Array]:
        """Measure."""
        inputs, labels, teachers = _drawn(trained, self.samples)
        weights = self.transform(labels)
        if not np.abs(weights).max() > _NOTHING:
            raise ParameterError(
                "the labels show nothing at second order, so that there is no spectral estimator"
            )
        count, d = teachers.shape

        def product(v: Array) -> Array:
            seen = inputs @ v.reshape(count, d).T
            return np.asarray(np.einsum("nij,nj->in", weights, seen) @ inputs).ravel()

        first = trained.samples.generator(ROWS, _PURPOSE).standard_normal(count * d)
        _, vectors = eigsh(
            LinearOperator((count * d, count * d), matvec=product), k=count, which="LA", v0=first,
            tol=_ACCURACY,
        )  # fmt: skip
        leading = np.linalg.svd(vectors.T.reshape(-1, d), full_matrices=False)[2][:count]
        found = _projected(leading, teachers)
        return {"spectral_overlap": found if count > 1 else found[0, 0]}


def _positive_part(matrix: Array) -> Array:
    """Return the nearest positive semi-definite matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _projected(estimate: Array, teachers: Array) -> Array:
    """Return the teachers' overlaps with each other inside of the span of an estimate."""
    lengths, basis = np.linalg.svd(estimate, full_matrices=False)[1:]
    along = basis[lengths > _NOTHING * max(1.0, lengths[0])] @ teachers.T
    return np.asarray(along.T @ along)


def _drawn(trained: TrainedNetwork, count: int) -> tuple[Array, Array, Array]:
    """Return inputs (n, d) and labels of the readout's samples, and the teachers (K, d)."""
    inputs = np.empty((count, trained.network.dimension))
    labels = np.empty(count)
    for block in trained.samples.blocks(READOUT, count):
        inputs[block.rows], labels[block.rows] = block.inputs, block.labels
    return inputs, labels, np.asarray(trained.layer.teachers, float)
