"""What users give to a model, checked and brought to one form."""

from __future__ import annotations

import math
import os
from typing import Any

from ...errors import ParameterError
from ...numeric.arguments import (
    nonnegative_number,
    positive_number,
    real_number,
    whole_number,
)

# More digits than anybody has asked for in earnest; a guard against a slip of the finger.
_MOST_DIGITS = 2000


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


def checked_digits(digits: object) -> int:
    """Return a number of digits.

    Raises
    ------
    ParameterError
        If it is no whole number, not positive, or larger than anybody needs.
    """
    number = whole_number("digits", digits)
    if number > _MOST_DIGITS:
        raise ParameterError(f"digits must be at most {_MOST_DIGITS}, got {number}")
    return number


def activation_text(name: str, value: object) -> str:
    """Return an activation as the text that our own parser reads."""
    # SymPy expressions and Activations print as text that our own parser reads.
    expr = getattr(value, "name", None) or value
    if isinstance(expr, str):
        return expr
    from ...symbolic.activations import activation

    return str(activation(value, argument=name).name)  # type: ignore[arg-type]


def checked_switch(name: str, value: object) -> bool:
    """Return True or False.

    Raises
    ------
    ParameterError
        If it is anything else.
    """
    # "no" and "False" are true in Python; nobody means that.
    if isinstance(value, bool):
        return value
    # Booleans of numpy; the integers 0 and 1 are no answer to yes or no either.
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise ParameterError(f"{name} must be True or False, got {value!r}")
