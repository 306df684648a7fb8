r"""Approximate message passing and spectral estimation of one direction, as measurements of a run.

Both see the samples of the readout. Generalised AMP with a normal prior (Rangan, arXiv 1010.5141)
iterates, for inputs X with rows of length √d and a teacher of length one,

.. math:: \omega = X\hat\theta - V g_{t-1}, \quad g = g(y;\omega,V), \quad
          \Lambda = -\tfrac{1}{d}\sum\partial_\omega g, \quad
          \hat\theta = \frac{\Lambda\hat\theta + X^\top g/d}{1+\Lambda}, \quad
          V = \frac{1}{1+\Lambda} .

The output function comes as a function; what is measured after each iteration is the squared cosine
with the teacher.
"""

from __future__ import annotations

import math
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
OutputFunction = Callable[[Array, float], tuple[Array, Array]]

_PURPOSE = 1001
_NOTHING, _ACCURACY = 1e-12, 1e-7


@dataclass(frozen=True, slots=True)
class MessagePassing:
    r"""Approximate message passing on the samples of a network.

    Parameters
    ----------
    output : callable
        Takes the labels (n,) and returns a function of ω (n,) and V with the values of g and of
        :math:`-\partial_\omega g`.
    samples : int
    steps : int
        Iterations.
    start : float
        Overlap q of the first estimate with the teacher, 0 for none: :math:`\hat\theta = q\theta +
        \sqrt{q(1-q)/d}\,\xi`.

    Returns
    -------
    dict of ndarray
        ``amp_overlap``, squared cosine after each iteration, and ``amp_projection``,
        :math:`\hat\theta\cdot\theta`, both (steps,).
    """

    output: Callable[[Array], OutputFunction]
    samples: int
    steps: int = 25
    start: float = 0.0

    @property
    def digest(self) -> str:
        """What distinguishes it from others in stored results."""
        return f"{self.samples} samples, {self.steps} iterations from {self.start:g}"

    def __call__(self, trained: TrainedNetwork) -> dict[str, Array]:
        """Measure."""
        inputs, labels, teacher = _drawn(trained, self.samples)
        d = inputs.shape[1]
        output = self.output(labels)
        q = self.start
        noise = trained.samples.generator(ROWS, _PURPOSE).standard_normal(d)
        estimate = q * teacher + math.sqrt(q * (1 - q) / d) * noise
        variance, score = 1 - q, np.zeros(len(labels))
        squared, projections = np.zeros(self.steps), np.zeros(self.steps)
        for t in range(self.steps):
            field = inputs @ estimate - variance * score
            score, slope = output(field, variance)
            precision = max(float(slope.sum()) / d, 0.0)
            estimate = (precision * estimate + inputs.T @ score / d) / (1 + precision)
            variance = 1 / (1 + precision)
            projections[t] = estimate @ teacher
            length = float(estimate @ estimate)
            squared[t] = projections[t] ** 2 / length if length else 0.0
        return {"amp_overlap": squared, "amp_projection": projections}


@dataclass(frozen=True, slots=True)
class Spectral:
    r"""The leading eigenvector of :math:`\sum_\mu T(y_\mu)x_\mu x_\mu^\top`.

    Parameters
    ----------
    transform : callable
        T, of labels (n,).
    samples : int

    Returns
    -------
    dict of ndarray
        ``spectral_overlap``, squared cosine with the teacher.

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
        inputs, labels, teacher = _drawn(trained, self.samples)
        weights = self.transform(labels)
        if not np.abs(weights).max() > _NOTHING:
            raise ParameterError(
                "the labels show nothing at second order, so that there is no spectral estimator"
            )
        d = inputs.shape[1]
        matrix = LinearOperator(
            (d, d), matvec=lambda v: inputs.T @ (weights * (inputs @ v).ravel())
        )
        first = trained.samples.generator(ROWS, _PURPOSE).standard_normal(d)
        _, vectors = eigsh(matrix, k=1, which="LA", v0=first, tol=_ACCURACY)
        return {"spectral_overlap": np.array((vectors[:, 0] @ teacher) ** 2)}


def _drawn(trained: TrainedNetwork, count: int) -> tuple[Array, Array, Array]:
    """Return inputs (n, d) and labels of the readout's samples, and the only teacher."""
    teachers = trained.layer.teachers
    if len(teachers) != 1:
        raise ParameterError(
            f"message passing and spectral estimation are of one direction, the teacher of this "
            f"network sees {len(teachers)}"
        )
    inputs = np.empty((count, trained.network.dimension))
    labels = np.empty(count)
    for block in trained.samples.blocks(READOUT, count):
        inputs[block.rows], labels[block.rows] = block.inputs, block.labels
    return inputs, labels, np.asarray(teachers[0], float)
