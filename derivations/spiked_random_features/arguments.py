"""What users give to a model, checked and brought to one form."""

from __future__ import annotations

import functools
import math
import os
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import ParameterError
from ...numeric.arguments import (
    LEAST_MODERATE,
    checked_switch,
    is_one_of,
    moderate_number,
    nonnegative_number,
    positive_number,
    real_number,
    whole_number,
)
from ..activation_functions import activation_text

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures

PUBLISHED, COMPLETE = LEADING_ORDERS = ("published", "complete")
"""Result 3.1 as published; with the terms of the same order that it leaves out."""

STEP = ("step_size", "alpha0")
DIRECT = ("spike_strength", "bulk_variance", "alignment")
"""Parameters of a step, and of a spike that is given instead."""

SPIKE = (
    "spike_strength", "bulk_variance", "alignment", "orthogonal_alignment", "norm_overlap",
    "stretch_along", "stretch_mixed", "stretch_across",
)  # fmt: skip
"""Fields of a spike, in the order in which the map returns them."""
STRETCH = SPIKE[-3:]
"""Those that are the stretch of the rows."""

READOUT_DOMAINS = {
    "alpha": "positive",
    "ridge": "positive",
    "beta": "positive",
    "noise_variance": "nonnegative",
    "width": "positive",
}
STEP_DOMAINS = {"step_size": "nonnegative", "alpha0": "extended positive"}
SPIKE_DOMAINS = {"spike_strength": "real", "bulk_variance": "positive", "alignment": "real"}
"""What curves can be over, with the domains of kernels; models check the rest."""

_Model = TypeVar("_Model", bound=type)


def with_alias(model: _Model) -> _Model:
    """Let a model take ``correlated_norms``, the former name of ``leading_order="complete"``."""
    initialise: Callable[..., None] = vars(model)["__init__"]

    @functools.wraps(initialise)
    def initialise_either(self: Any, *given: Any, **named: Any) -> None:
        if "correlated_norms" in named:
            old = checked_switch("correlated_norms", named.pop("correlated_norms"))
            warnings.warn(
                'correlated_norms is now leading_order: "complete" for True, "published" for False',
                DeprecationWarning,
                stacklevel=2,
            )
            if old:
                named["leading_order"] = COMPLETE
        initialise(self, *given, **named)

    setattr(model, "__init__", initialise_either)  # noqa: B010 - mypy refuses the assignment
    return model


def checked_arguments(
    *,
    student: object,
    teacher: object,
    step_size: object,
    alpha0: object,
    beta: object,
    noise_variance: object,
    allow_non_odd: object,
    leading_order: object,
    width: object,
    cache_folder: object,
) -> dict[str, Any]:
    """Return the arguments of a model as texts, floats and booleans."""
    step = real_number("step_size", step_size)
    if not 0 <= step < math.inf:
        raise ParameterError(f"step_size must be >= 0 and finite, got {step}")
    samples = real_number("alpha0", alpha0)
    if not samples > 0:
        raise ParameterError(f"alpha0 must be positive (inf is allowed), got {samples}")
    checked_folder(cache_folder)
    return {
        "student": activation_text("student", student),
        "teacher": activation_text("teacher", teacher),
        "step_size": step,
        "alpha0": samples,
        "beta": positive_number("beta", beta),
        "noise_variance": nonnegative_number("noise_variance", noise_variance),
        "allow_non_odd": checked_switch("allow_non_odd", allow_non_odd),
        "leading_order": _checked_order(leading_order),
        "width": checked_width(width),
        "cache_folder": cache_folder,
    }


def checked_folder(value: object) -> str | os.PathLike[str] | None:
    """Return the folder of a cache, or None for the usual one."""
    if value is not None and not isinstance(value, str | os.PathLike):
        raise ParameterError(f"cache_folder must be a path or None, got {value!r}")
    return value


def _checked_order(value: object) -> str:
    if not is_one_of(value, LEADING_ORDERS):
        raise ParameterError(
            f"leading_order must be one of {', '.join(LEADING_ORDERS)}, got {value!r}"
        )
    return str(value)


def checked_point(model: SpikedRandomFeatures, **values: object) -> tuple[float, ...]:
    """Return the numbers of a point where derivatives are taken or a spectrum is traced."""
    moderate_number("beta", model.beta)
    if model.noise_variance > 1 / LEAST_MODERATE:
        moderate_number("noise_variance", model.noise_variance)
    return tuple(moderate_number(name, value) for name, value in values.items())


def checked_width(width: object) -> int | None:
    """Return a number of neurons; None, the strict limit, stays."""
    if width is None:
        return None
    if isinstance(width, float) and width == math.inf:
        raise ParameterError("width must be a whole number; for the limit of width inf use None")
    return whole_number("width", width)
