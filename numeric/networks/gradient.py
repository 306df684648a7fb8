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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ..arguments import finite_number
from .network import Training
from .readout import TrainedNetwork
from .samples import Function

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
            self, "mean_derivative", finite_number("mean_derivative", self.mean_derivative)
        )
        slope = self.mean_slope
        if not isinstance(slope, (tuple, list, np.ndarray)) or np.ndim(slope) != 1:
            raise ParameterError(f"mean_slope must be a vector of numbers, got {slope!r}")
        object.__setattr__(self, "mean_slope", tuple(finite_number("mean_slope", x) for x in slope))

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
        if network.loss_derivative is not None:
            raise ParameterError("parts of a gradient are those of the square loss of the step")
        width, count = network.width, network.step_samples
        whole = trained.training.batch()
        derivative = _Shifted(network.student_derivative, mu)
        centred = Training(replace(network, student_derivative=derivative), trained.samples.seed)
        centred.layer = layer
        scale = layer.readout / (count * width)
        gradient = whole.gradient * scale[:, None]
        bulk = centred.batch().gradient * scale[:, None]
        label_moment = whole.label_moment
        spike = mu * np.outer(scale, label_moment)
        # The residuals are labels minus outputs.
        output = mu * np.outer(scale, whole.residual_moment - label_moment)
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


class _Shifted:
    """A function minus a number."""

    def __init__(self, function: Function, number: float) -> None:
        self.function, self.number = function, number

    def __call__(self, values: Array) -> Array:
        """Return the function at every entry of an array."""
        return np.asarray(self.function(values)) - self.number
