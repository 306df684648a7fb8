"""What users give to the model of one gradient step, checked and brought to one form."""

from __future__ import annotations

import math
import os
from typing import Any

from ...errors import AssumptionError, ParameterError
from ...numeric.arguments import is_one_of, nonnegative_number, positive_number, real_number
from ..spiked_random_features.arguments import activation_text, checked_switch
from .moments import Moments

LOSSES = ("half", "full")


def checked_arguments(
    *,
    student: object,
    teacher: object,
    alpha: object,
    beta: object,
    step_size: object,
    noise_variance: object,
    alpha0: object,
    loss: object,
    centre: object,
    cache_folder: object,
) -> dict[str, Any]:
    """Return the arguments of a model as texts, floats and booleans.

    Raises
    ------
    ParameterError
        If an argument is of the wrong kind or outside its range; the message names it.
    """
    if not is_one_of(loss, LOSSES):
        raise ParameterError(
            f"loss must be 'half', for (1/2n) sum (f - y)^2 as in the formulas, or 'full', for "
            f"(1/n) sum (f - y)^2, whose gradient is twice as long; got {loss!r}"
        )
    if cache_folder is not None and not isinstance(cache_folder, str | os.PathLike):
        raise ParameterError(f"cache_folder must be a path or None, got {cache_folder!r}")
    step = real_number("step_size", step_size)
    if not 0 <= step < math.inf:
        raise ParameterError(f"step_size must be >= 0 and finite, got {step}")
    if loss == "full" and 2 * step == math.inf:
        raise ParameterError(
            f"step_size = {step:g} is too large: with loss='full' the formulas take twice that, "
            "which is no float"
        )
    return {
        "student": activation_text("student", student),
        "teacher": activation_text("teacher", teacher),
        "alpha": positive_number("alpha", alpha),
        "beta": positive_number("beta", beta),
        "step_size": step,
        "noise_variance": nonnegative_number("noise_variance", noise_variance),
        "alpha0": None if alpha0 is None else _samples(alpha0),
        "loss": loss,
        "centre": checked_switch("centre", centre),
        "cache_folder": cache_folder,
    }


def require_centred(student: Moments, teacher: Moments) -> None:
    """Refuse functions with a mean.

    Raises
    ------
    AssumptionError
        If student or teacher has a mean; the message says what it does.
    """
    if student.mean:
        raise AssumptionError(
            f"student {student.name!r} is not centred: its mean is mu_0 = {student.mean:.6g}. Its "
            "kernel then has a trivial outlier of size O(sqrt(n)) along the constant vector, which "
            "hides the spike of the step; pass centre=True (--centre) to use the function minus "
            "its mean"
        )
    if teacher.mean:
        raise AssumptionError(
            f"teacher {teacher.name!r} is not centred: its mean is {teacher.mean:.6g}, which no "
            "centred feature can fit and which lengthens the spike of the step; pass centre=True "
            "(--centre) to use the function minus its mean"
        )


def _samples(value: object) -> float:
    number = real_number("alpha0", value)
    if not number > 0:
        raise ParameterError(f"alpha0 must be positive (inf is allowed), got {number}")
    return number
