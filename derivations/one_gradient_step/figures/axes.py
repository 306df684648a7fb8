"""What the figures of one gradient step share: names of axes, values on them, a title."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ParameterError
from ....numeric.arguments import is_one_of, real_number
from ...figures import new_figure, plain_text

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

# Up to this ratio the ticks of a logarithmic axis are decimal numbers.
_DECIMAL = 1e3
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
        f"{letter} = {_number(value)}"
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


def checked_axes(ax: Any, size: tuple[float, float] = (6.2, 4.2)) -> Any:
    """Return the given axes, or those of a new figure.

    Raises
    ------
    ParameterError
        If `ax` is something else.
    """
    if ax is None:
        ax = new_figure(size).add_subplot()
    elif not hasattr(ax, "errorbar"):
        raise ParameterError(f"ax must be axes of matplotlib, got {ax!r}")
    return ax


def set_heading(axes: Any, title: str, line: str) -> None:
    """Write a title and below it the parameters that are held fixed."""
    axes.set_title(title, loc="left", pad=22)
    axes.text(0, 1.025, line, transform=axes.transAxes, fontsize=10, color="#595959", va="bottom")


def is_logarithmic(values: np.ndarray[Any, Any]) -> bool:
    """Say whether an axis over these values is better read in the logarithm."""
    return len(values) > 2 and values[0] > 0 and bool(values[-1] > 20 * values[0])


def set_scale(axis: Any, values: np.ndarray[Any, Any]) -> None:
    """Make an axis logarithmic where that is better, with decimal numbers on few decades.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        ``axes.xaxis`` or ``axes.yaxis``.
    values : array
        Ascending.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    if not is_logarithmic(values):
        return
    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    if values[-1] < _DECIMAL * values[0]:
        axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _number(value: float) -> str:
    if value == math.inf:
        return r"\infty"
    text = f"{value:.4g}"
    mantissa, exponent_sign, exponent = text.partition("e")
    if not exponent_sign:
        return text
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa}\times {power}"
