r"""The sizes of the spike at one model, by functions that were printed once and kept as text."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import ParameterError
from ...runtime.generated import defined
from ...runtime.precision import local_context
from ..derived import derived

if TYPE_CHECKING:
    from .model import OneGradientStep

Real = NDArray[np.float64]

LOSS_FACTORS = {"half": 1, "full": 2}
"""Length of the gradient of a loss, in units of that of half the squared loss."""

_DIGITS = 40
# Of the moments; the formulas lose none.
_SPARE = 5


class SpikePoint:
    """The parameters of a model in many digits, and the printed functions at them."""

    def __init__(self, model: OneGradientStep, digits: int | None) -> None:
        wanted = digits or _DIGITS
        self.ctx = ctx = local_context(wanted)
        self.model = model
        self.functions = defined(_sources(model.cache)["precise"], ctx=ctx)
        student = model.student_moments.precise(wanted + _SPARE)
        teacher = model.teacher_moments.precise(wanted + _SPARE)
        self.slope = ctx.mpf(student["linear"])
        self.given = (
            ctx.inf if model.step_samples == math.inf else self._decimal(model.step_samples),
            self._decimal(model.noise_variance),
            self.slope,
            ctx.mpf(teacher["linear"]),
            ctx.mpf(teacher["residual"]),
        )
        self.root_beta = ctx.sqrt(self._decimal(model.beta))
        self.factor = LOSS_FACTORS[model.loss]
        self.critical = self._critical()

    def _decimal(self, value: float) -> Any:
        return self.ctx.mpf(repr(value))

    def unit_lengths(self) -> tuple[Any, Any]:
        length, aligned = self.functions.lengths(*self.given)
        return length, aligned

    def lengths(self) -> tuple[Any, Any]:
        eta = self.factor * self._decimal(self.model.step_size)
        length, aligned = self.unit_lengths()
        return eta * length, eta * aligned

    def alignment(self) -> Any:
        samples, noise, _, linear, residual = self.given
        if not linear and (samples == self.ctx.inf or not (noise or residual)):
            return self.ctx.zero
        gamma: Any = self.functions.alignment(*self.given)
        return -gamma if self.slope < 0 else gamma

    def _critical(self) -> Any:
        if not self.unit_lengths()[0]:
            return self.ctx.inf
        found: Any = self.functions.critical(self.root_beta, *self.given)
        return found / self.factor

    def edges(self) -> tuple[Any, Any]:
        return abs(1 - self.root_beta), 1 + self.root_beta

    def position(self, step_size: float) -> tuple[Any, Any]:
        """η_c/η and 1 − η_c/η; without a step or a threshold (inf, −inf)."""
        eta = self._decimal(step_size)
        if not eta or self.critical == self.ctx.inf:
            return self.ctx.inf, -self.ctx.inf
        return self.critical / eta, (eta - self.critical) / eta

    def outlier(self, ratio: Any, distance: Any) -> tuple[Any, Any, Any]:
        if not distance > 0:
            return self.edges()[1], self.ctx.zero, self.ctx.zero
        top, left, right = self.functions.outlier(self.root_beta, ratio, distance)
        return top / ratio, left, right


@derived("one_gradient_step/weight_spike", dict)
def _sources() -> dict[str, str]:
    from .weight_spike_theory import spike_sources

    return spike_sources()


def array_functions(model: OneGradientStep) -> SimpleNamespace:
    return defined(_sources(model.cache)["arrays"])


def outlier_at(model: OneGradientStep, spike_square: ArrayLike) -> tuple[Real, Real, Real]:
    r"""Return largest singular value and overlaps for spikes of given squared length.

    Parameters
    ----------
    model : OneGradientStep
        Gives β alone.
    spike_square : array-like
        :math:`T = |u|^2 |a|^2`, nonnegative.

    Returns
    -------
    singular_value, left, right : arrays
        With the squared overlaps of the singular vectors with u/|u| and a/|a|.
    """
    squares = np.asarray(spike_square, dtype=float)
    root = math.sqrt(model.beta)
    above = squares > root
    top = np.full(squares.shape, 1 + root)
    left, right = np.zeros(squares.shape), np.zeros(squares.shape)
    ratio = np.sqrt(root / squares[above])
    distance = (squares[above] - root) / (squares[above] * (1 + ratio))
    scaled, left[above], right[above] = array_functions(model).outlier(root, ratio, distance)
    top[above] = scaled / ratio
    return top, left, right


def require_finite(model: OneGradientStep, largest: float) -> None:
    if not math.isfinite(largest):
        raise ParameterError(
            "the spike is too large for a float; use a smaller step_size or noise_variance, or "
            f"digits=20 (step_size={model.step_size:g}, noise_variance={model.noise_variance:g})"
        )
