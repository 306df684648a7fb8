r"""A measurement: the first gradient of a whole layer, split into spike and remainders.

With inputs X of shape (n, d), output :math:`f = \frac1p\sum_j a_j\,\sigma(w_j\cdot x)` and a number
:math:`\mu`, the mean of σ', the matrix of shape (p, d) with rows

.. math:: G_j = \frac{a_j}{np} \sum_\mu (y_\mu - f(x_\mu))\,\sigma'(w_j\cdot x_\mu)\,x_\mu
          = A_j + B_j + C_j

has the parts :math:`A_j = \frac{\mu a_j}{np} X^\top y`, :math:`C_j = -\frac{\mu a_j}{np} X^\top f`
and B, in which σ' is replaced by :math:`\sigma' - \mu`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ..arguments import real_number
from .readout import TrainedNetwork
from .samples import STEP, finite_values

__all__ = ["GradientParts"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GradientParts:
    r"""Norms of the parts, of a network as it is and the samples of its first step.

    Returned are, each a number: ``spike``, :math:`\sqrt p\,|A|`, the same in operator and in
    Frobenius norm; ``bulk`` and ``bulk_operator_norm``, :math:`\sqrt p\,|B|_F` and
    :math:`\sqrt p\,|B|_{op}`; ``output``, :math:`p\,|C|`; ``alignment``, the squared cosine between
    :math:`X^\top y` and the mean slope, 0 if that is 0; ``identity_error``,
    :math:`|G - A - B - C|_F/|G|_F`, rounding only.

    Parameters
    ----------
    mean_derivative : float
        :math:`\mu = \mathbb{E}\,\sigma'(z)`.
    mean_slope : sequence of float
        :math:`\mathbb{E}[f_*(x)\,x]` along the teacher's directions.

    Raises
    ------
    ParameterError
        If an argument is no number, or none that is finite.

    Examples
    --------
    A linear student has no B:

    >>> from .network import Network
    >>> from .run import simulate
    >>> network = Network(student=lambda u: u, student_derivative=np.ones_like, teacher=np.sin,
    ...                   dimension=50, width=100, rows="gaussian", readout="gaussian",
    ...                   scaling="standard", step_samples=200)
    >>> found = simulate(network, GradientParts(1.0, [0.6]), seeds=2)
    >>> bool(found["bulk"].max() < 1e-12), bool(found["identity_error"].max() < 1e-12)
    (True, True)
    """

    mean_derivative: float
    mean_slope: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "mean_derivative", _finite("mean_derivative", self.mean_derivative)
        )
        slope = self.mean_slope
        if not isinstance(slope, (tuple, list, np.ndarray)) or np.ndim(slope) != 1:
            raise ParameterError(f"mean_slope must be a vector of numbers, got {slope!r}")
        object.__setattr__(self, "mean_slope", tuple(_finite("mean_slope", x) for x in slope))

    @property
    def digest(self) -> str:
        """What distinguishes it from others in stored results."""
        return repr((self.mean_derivative, self.mean_slope))

    def __call__(self, trained: TrainedNetwork) -> dict[str, Array]:
        """Draw the samples and return the norms.

        Raises
        ------
        ParameterError
            If the network has no derivative, or the slope not one entry for each direction.
        """
        network, layer, mu = trained.network, trained.layer, self.mean_derivative
        if network.student_derivative is None:
            raise ParameterError("student_derivative is needed for parts of a gradient")
        slope = np.array(self.mean_slope)
        if len(slope) != network.directions:
            raise ParameterError(
                f"mean_slope must have an entry for each of the teacher's {network.directions} "
                f"directions, got {len(slope)}"
            )
        width, count = network.width, network.step_samples
        gradient, bulk = np.zeros(layer.rows.shape), np.zeros(layer.rows.shape)
        label_moment, output_moment = np.zeros(network.dimension), np.zeros(network.dimension)
        for block in trained.samples.blocks(STEP, count):
            hidden = block.inputs @ layer.rows.T + layer.biases
            outputs = finite_values(network.student, "student", hidden) @ layer.readout / width
            slopes = finite_values(network.student_derivative, "student_derivative", hidden)
            residuals = (block.labels - outputs)[:, None]
            gradient += (residuals * slopes).T @ block.inputs
            bulk += (residuals * (slopes - mu)).T @ block.inputs
            label_moment += block.labels @ block.inputs
            output_moment += outputs @ block.inputs
        scale = layer.readout / (count * width)
        gradient *= scale[:, None]
        bulk *= scale[:, None]
        spike = mu * np.outer(scale, label_moment)
        output = -mu * np.outer(scale, output_moment)
        overlap = float(layer.teachers @ label_moment @ slope)
        lengths = float(label_moment @ label_moment) * float(slope @ slope)
        size = float(np.linalg.norm(gradient))
        rest = float(np.linalg.norm(gradient - spike - bulk - output))
        root = math.sqrt(width)
        found = {
            "spike": root * np.linalg.norm(spike),
            "bulk": root * np.linalg.norm(bulk),
            "bulk_operator_norm": root * np.linalg.norm(bulk, 2),
            "output": width * np.linalg.norm(output),
            "alignment": overlap**2 / lengths if lengths else 0.0,
            "identity_error": rest / size if size else rest,
        }
        return {name: np.asarray(value) for name, value in found.items()}


def _finite(name: str, value: object) -> float:
    number = real_number(name, value)
    if not math.isfinite(number):
        raise ParameterError(f"{name} must be finite, got {number}")
    return number
