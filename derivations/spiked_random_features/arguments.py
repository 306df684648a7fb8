"""What users give to a model, checked and brought to one form."""

from __future__ import annotations

import math
import os
from typing import Any

from ...errors import ParameterError
from ...numeric.arguments import (
    checked_switch,
    nonnegative_number,
    positive_number,
    real_number,
    whole_number,
)


def checked_arguments(
    *,
    student: object,
    teacher: object,
    step_size: object,
    alpha0: object,
    beta: object,
    noise_variance: object,
    allow_non_odd: object,
    correlated_norms: object,
    width: object,
    cache_folder: object,
) -> dict[str, Any]:
    """Return the arguments of a model as texts, floats and booleans.

    Raises
    ------
    ParameterError
        If an argument is of the wrong kind or outside its range; the message names it.
    """
    step = real_number("step_size", step_size)
    if not 0 <= step < math.inf:
        raise ParameterError(f"step_size must be >= 0 and finite, got {step}")
    samples = real_number("alpha0", alpha0)
    if not samples > 0:
        raise ParameterError(f"alpha0 must be positive (inf is allowed), got {samples}")
    if cache_folder is not None and not isinstance(cache_folder, str | os.PathLike):
        raise ParameterError(f"cache_folder must be a path or None, got {cache_folder!r}")
    return {
        "student": activation_text("student", student),
        "teacher": activation_text("teacher", teacher),
        "step_size": step,
        "alpha0": samples,
        "beta": positive_number("beta", beta),
        "noise_variance": nonnegative_number("noise_variance", noise_variance),
        "allow_non_odd": checked_switch("allow_non_odd", allow_non_odd),
        "correlated_norms": checked_switch("correlated_norms", correlated_norms),
        "width": checked_width(width),
        "cache_folder": cache_folder,
    }


def checked_width(width: object) -> int | None:
    """Return a number of neurons; None, the strict limit, stays.

    Raises
    ------
    ParameterError
        If it is no whole number >= 1.
    """
    if width is None:
        return None
    if isinstance(width, float) and width == math.inf:
        raise ParameterError("width must be a whole number; for the limit of width inf use None")
    return whole_number("width", width)


def activation_text(name: str, value: object) -> str:
    """Return an activation as the text that our own parser reads."""
    # SymPy expressions and Activations print as text that our own parser reads.
    expr = getattr(value, "name", None) or value
    if isinstance(expr, str):
        return expr
    from ...symbolic.activations import activation

    return str(activation(value, argument=name).name)  # type: ignore[arg-type]
