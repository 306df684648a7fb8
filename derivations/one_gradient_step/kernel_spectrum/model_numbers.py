"""The numbers of a model that its spectrum is computed from, in an mpmath context."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .curve import KernelCurve
from .derivation import spectrum_sources

if TYPE_CHECKING:
    from ..model import OneGradientStep

_FLOAT_DIGITS = 17
_SPARE_DIGITS = 30


def curve_of(model: OneGradientStep, digits: int | None) -> KernelCurve:
    """Return ζ and the edges of the bulk of a model, for so many digits or for floats."""
    wanted = _FLOAT_DIGITS if digits is None else digits
    moments = model.student_moments.precise(wanted + _SPARE_DIGITS)
    return KernelCurve(
        spectrum_sources(model.cache),
        model.alpha,
        model.beta,
        moments["linear"],
        moments["residual"],
        wanted,
    )


def step_numbers(model: OneGradientStep, curve: KernelCurve) -> tuple[Any, ...]:
    """Return the arguments of the functions of the step, as numbers of the context."""
    ctx = curve.context
    teacher = model.teacher_moments.precise(curve.digits + _SPARE_DIGITS)
    return (
        ctx.inf if model.step_samples == math.inf else ctx.mpf(repr(model.step_samples)),
        model.loss_factor * ctx.mpf(repr(model.step_size)),
        ctx.mpf(repr(model.noise_variance)),
        ctx.mpf(curve.linear),
        ctx.mpf(teacher["linear"]),
        ctx.mpf(teacher["residual"]),
    )


def critical_step_size(model: OneGradientStep, curve: KernelCurve, step: tuple[Any, ...]) -> Any:
    """Return it in the loss convention of the model."""
    ctx, functions = curve.context, curve.functions
    unit = functions.spike_square(step[0], ctx.one, *step[2:])
    if not unit or curve.pure_noise or model.student_moments.jumps:
        return ctx.inf
    return functions.critical_step_size(curve.threshold, *step) / model.loss_factor


def rounded_to(digits: int) -> Any:
    """Return an mpmath context whose numbers print as so many digits."""
    import mpmath

    ctx = mpmath.mp.clone()
    ctx.dps = digits
    return ctx
