r"""Gradients of single neurons on a batch: means over samples, and fits over neurons.

With a correlation loss the gradient of neuron j is :math:`g_j = \frac1n \sum_\mu y_\mu\,
\sigma'(w_j\cdot x_\mu + b_j)\, x_\mu`; the first step of paired neurons, which have no output, is
the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ..arguments import real_number
from .readout import TrainedNetwork
from .samples import STEP, finite_values

__all__ = ["GradientSlopes", "label_gradient"]

Array = NDArray[np.float64]


def label_gradient(trained: TrainedNetwork) -> dict[str, Array]:
    r"""Return the mean of :math:`y\,\sigma'(w_j\cdot x + b_j)\,x` for the rows as they are now.

    Returns
    -------
    dict of ndarray, shape (p, d)
        ``gradient``, the mean over the samples of the first step, and ``gradient_error``, the
        standard error of each component.

    Raises
    ------
    ParameterError
        If there is one sample only, or no derivative of the student.
    """
    network, layer = trained.network, trained.layer
    count = network.step_samples
    if count < 2:
        raise ParameterError(f"step_samples must be >= 2 for standard errors, got {count}")
    if network.student_derivative is None:
        raise ParameterError("student_derivative is needed for gradients")
    total, squares = np.zeros(layer.rows.shape), np.zeros(layer.rows.shape)
    for block in trained.samples.blocks(STEP, count):
        hidden = block.inputs @ layer.rows.T + layer.biases
        factors = finite_values(network.student_derivative, "student_derivative", hidden)
        factors = factors * block.labels[:, None]
        total += factors.T @ block.inputs
        squares += (factors * factors).T @ (block.inputs * block.inputs)
    mean = total / count
    # The mean of squares loses no digits here: a component is never much larger than its spread.
    variance = np.maximum(squares / count - mean * mean, 0.0) / (count - 1)
    return {"gradient": mean, "gradient_error": np.sqrt(variance)}


@dataclass(frozen=True, slots=True)
class GradientSlopes:
    r"""A measurement: gradients of neurons, regressed on monomials of their weights.

    It asks for a network whose only step replaces the weights by gradients: paired, without biases,
    ``steps=1`` and ``weight_decay=1``. Components of the gradients along the r coordinates of the
    target are fitted, by least squares over the neurons, to a linear combination of monomials in
    :math:`w_{i1}, \dots, w_{ir}`. Noise common to all neurons is taken up by a constant, unless a
    constant is what is asked for.

    It returns ``coefficients`` (r, monomials), and means over neurons: ``gradient_square`` of
    :math:`|g|^2`, ``squared_norm`` of :math:`|w + s\,g|^2`, ``inside`` of the same in the space of
    the first r coordinates; and ``label_cosines`` (r,) of :math:`X^Ty/n` with these coordinates.

    Parameters
    ----------
    monomials : sequence of sequences of int
        Exponents of w_1..w_r, one sequence of r of them for each monomial; two fewer than neurons,
        or less.
    step : float
        s, of either sign.

    Raises
    ------
    ParameterError
        If exponents are no whole numbers >= 0, or `step` is not finite.
    """

    monomials: Sequence[Sequence[int]]
    step: float = 1.0

    def __post_init__(self) -> None:
        found = np.asarray(self.monomials)
        if found.ndim != 2 or not found.size or found.dtype.kind not in "iu" or found.min() < 0:
            raise ParameterError(
                "monomials must be rows of exponents >= 0, one of each coordinate, such as [(1, 0)]"
            )
        object.__setattr__(self, "monomials", tuple(map(tuple, found.tolist())))
        step = real_number("step", self.step)
        if not np.isfinite(step):
            raise ParameterError(f"step must be finite, got {step}")
        object.__setattr__(self, "step", step)

    @property
    def digest(self) -> str:
        """Tells measurements of this kind apart in a store."""
        return f"{self.monomials}, {self.step!r}"

    def __call__(self, trained: TrainedNetwork) -> dict[str, Array]:
        """Fit the gradients of a network."""
        network, training = trained.network, trained.training
        r, count = network.directions, network.seats
        if not network.paired or training.steps != 1 or network.weight_decay != 1:
            raise ParameterError(
                "gradients are fitted after one step that replaces the weights; use paired=True, "
                "steps=1 and weight_decay=1"
            )
        exponents = np.array(self.monomials)
        if exponents.shape[1] != r:
            raise ParameterError(
                f"monomials must hold {r} exponents each, one of each coordinate of the target"
            )
        if count < len(exponents) + 2:
            raise ParameterError(
                f"width must be >= {2 * (len(exponents) + 2)}, two pairs more than the "
                f"{len(exponents)} monomials; got {network.width}"
            )
        scale = network.rate * training.scale * trained.layer.readout[:count]
        if not scale.all():
            raise ParameterError("step_size must not be 0, nor a readout: they divide the rows")
        gradient = trained.layer.rows[:count] / scale[:, None]
        weights = training.start_rows()[:count]
        values = np.prod(weights[:, None, :r] ** exponents[None], axis=2)
        if exponents.any(axis=1).all():
            values = np.hstack([values, np.ones((count, 1))])
        fitted = np.linalg.lstsq(values, gradient[:, :r], rcond=None)[0]
        stepped = weights + self.step * gradient
        moment = training.label_moments[0]
        return {
            "coefficients": fitted[: len(exponents)].T,
            "gradient_square": _mean_square(gradient),
            "squared_norm": _mean_square(stepped),
            "inside": _mean_square(stepped[:, :r]),
            "label_cosines": moment[:r] / np.linalg.norm(moment),
        }


def _mean_square(rows: Array) -> Array:
    """Mean over rows of the squared norm."""
    return np.asarray((rows**2).sum(axis=1).mean())
