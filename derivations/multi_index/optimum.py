r"""The optimum beside a giant step: what anyone could do with the samples that the network used.

A network takes α0 d samples for its step and αd for its readout; the fair budget of an estimator is
their sum. Of what the network does, the part that uses one direction κ = v·x with alignment γ
along :math:`h_1` cannot beat :math:`D_f(1) - D_f(\gamma^2\hat h_1\hat h_1^\top)`, and the best
linear predictor is :math:`\|P_{>1}f\|^2`; the bulk adds the linear part to the direction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ...numeric.arguments import positive_array, positive_number
from ...result import Result, quantity
from ...symbolic.printing.compiled import compiled
from . import physics
from .model import MultiIndex

Array = NDArray[np.float64]

LINES = {
    "bayes": "Bayes-optimal, all samples",
    "amp": "message passing, all samples",
    "direction_only": "any function of the step's direction",
}
"""What the lines of a figure are called."""


@dataclass(frozen=True, repr=False)
class OptimumBeside(Result):
    r"""Errors that bound what a network after a giant step can reach.

    Attributes
    ----------
    budget : float
        α0 + α, samples of step and readout divided by the dimension.
    bayes, amp : float
        Mean squared errors of the posterior mean and of approximate message passing, on the whole
        budget, against the noise-free target.
    best_linear : float
        Of the best linear predictor.
    direction_only : float
        Of the best function of the step's direction alone.
    overlap, amp_overlap, alignment_squared : float
        Squared cosines with the teacher's direction, of Bayes, of AMP, and γ² of the step, whose
        direction is E[x y]; of several directions the least eigenvalues of the overlap matrices.
    rests_on : str
    """

    _document = "optimum beside a giant step"
    _column = 34

    budget: float = field(metadata=quantity("samples of step and readout", r"\alpha_0 + \alpha"))
    bayes: float = field(metadata=quantity("error, Bayes", r"E_\mathrm{BO}"))
    amp: float = field(metadata=quantity("error, AMP", r"E_\mathrm{AMP}"))
    best_linear: float = field(metadata=quantity("error, best linear", r"\|P_{>1}f\|^2"))
    direction_only: float = field(metadata=quantity("error, step's direction alone", r"E_\gamma"))
    overlap: float = field(metadata=quantity("overlap, Bayes", "q"))
    amp_overlap: float = field(metadata=quantity("overlap, AMP", r"q_\mathrm{AMP}"))
    alignment_squared: float = field(metadata=quantity("overlap of the step", r"\gamma^2"))
    rests_on: str = (
        "Bayes-optimal estimation of the teacher's direction, known function; replica-symmetric, "
        "d → ∞; quadrature"
    )


_squared_alignment = compiled(
    physics.giant_step_overlap(), (physics.alpha, physics.linear, physics.square), "python"
)


@lru_cache(maxsize=16)
def _index_model(teacher: str, noise_variance: float) -> MultiIndex:
    return MultiIndex(teacher, noise_variance)


def optimum_bayes(model: Any, *, alpha: object = None) -> OptimumBeside:
    """Return the errors of Bayes, AMP and simple predictors at the budget of step and readout.

    Parameters
    ----------
    model : SpikedRandomFeatures or OneGradientStep
    alpha : float, optional
        Samples of the readout divided by the dimension; by default those of the model.

    Raises
    ------
    ParameterError
        If the number of samples of step or readout is not known, or infinite.
    """
    given = getattr(model, "alpha", None) if alpha is None else alpha
    if given is None:
        raise ParameterError(
            "alpha must be given, the samples of the readout: optimum_bayes(alpha=2)"
        )
    ratio = positive_number("alpha", given)
    if getattr(model, "direct_parameters", None) is not None:
        raise ParameterError(
            "this model is given by its spike: how many samples that took is not known; use a "
            "model with step_size and alpha0"
        )
    samples = getattr(model, "step_samples", None)
    samples = float(model.alpha0 if samples is None else samples) if model.step_size else 0.0
    if not math.isfinite(samples):
        raise ParameterError(
            "alpha0 is infinite: with the population gradient there is no budget to compare; use a "
            "finite alpha0"
        )
    optimal = _index_model(model.teacher, float(model.noise_variance))
    found = optimal.solve(alpha=samples + ratio)
    linear, square = optimal.linear_part
    length = float(linear @ linear)
    gamma = float(_squared_alignment(samples, math.sqrt(length), square)) if length else 0.0
    along = np.outer(linear, linear) * (gamma / length if length else 0.0)
    return OptimumBeside(
        budget=samples + ratio, bayes=found.error, amp=found.amp_error,
        best_linear=optimal.function_error(0.0) - length,
        direction_only=optimal.function_error(along), overlap=found.overlap,
        amp_overlap=found.amp_overlap, alignment_squared=gamma,
    )  # fmt: skip


def optimal_lines(model: Any, alphas: Sequence[float] | Array) -> dict[str, Array]:
    """Return the errors of :func:`optimum_bayes` over α of the readout, by the names of `LINES`."""
    points = [optimum_bayes(model, alpha=float(a)) for a in positive_array("alpha", alphas)]
    return {name: np.array([getattr(point, name) for point in points]) for name in LINES}
