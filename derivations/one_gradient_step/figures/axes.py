"""What the figures of one gradient step share: names of axes, values on them, a title."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ParameterError
from ....numeric.arguments import is_one_of, real_number
from ...figures import number_text, plain_text

if TYPE_CHECKING:
    from ..model import OneGradientStep

AXES = {
    "alpha": r"sample complexity $\alpha = n/d$",
    "beta": r"aspect ratio $\beta = N/d$",
    "step_size": r"step size $\eta$",
    "noise_variance": r"noise variance $\Delta$",
    "ridge": r"ridge penalty $\lambda$",
    "paper_ridge": r"ridge penalty $\lambda_B = (\beta/\alpha)\,\lambda$",
}
"""What a risk can be drawn over, with the labels."""

_FROM_ZERO = ("step_size", "noise_variance", "ridge", "paper_ridge")


def checked_values(name: str, values: object) -> np.ndarray[Any, Any]:
    """Return the values of an axis in ascending order, each once.

    Raises
    ------
    ParameterError
        If the name is not that of an axis, or a value is outside the range of the parameter.
    """
    if not is_one_of(name, AXES):
        raise ParameterError(f"no axis is named {name!r}; there are: {', '.join(AXES)}")
    items = list(values) if hasattr(values, "__iter__") else [values]
    found = np.unique(np.array([real_number(name, value) for value in items], dtype=float))
    least = 0.0 if name in _FROM_ZERO else math.ulp(0.0)
    if not len(found) or not np.isfinite(found).all() or found[0] < least:
        wanted = ">= 0" if name in _FROM_ZERO else "positive"
        raise ParameterError(f"values of {name} must be {wanted} and finite, at least one")
    return found


def parameters_text(model: OneGradientStep, without: tuple[str, ...] = (), **more: float) -> str:
    """Return the parameters that a figure holds fixed, for its subtitle."""
    given = {
        r"\eta": ("step_size", model.step_size),
        r"\alpha": ("alpha", model.alpha),
        r"\alpha_0": ("alpha0", model.alpha0),
        r"\beta": ("beta", model.beta),
        r"\Delta": ("noise_variance", model.noise_variance),
        r"\lambda": ("ridge", more.get("ridge")),
        r"\lambda_B": ("paper_ridge", more.get("paper_ridge")),
    }
    parts = [
        f"{letter} = {number_text(value)}"
        for letter, (name, value) in given.items()
        if value is not None and name not in without
    ]
    text = "$" + r",\ ".join(parts) + "$" if parts else ""
    return text + loss_note(model)


def loss_note(model: OneGradientStep) -> str:
    """Return what a figure adds to the step size η: of which loss it is, where not of the half."""
    return ", gradient of the full loss" if model.loss == "full" else ""


def pair_title(model: OneGradientStep) -> str:
    """Return the names of student and teacher, as text that mathtext shows as it is."""
    return f"student {plain_text(model.student)}, teacher {plain_text(model.teacher)}"
