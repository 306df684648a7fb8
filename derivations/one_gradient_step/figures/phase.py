"""Phase diagrams: what one step improves over two parameters, and where outliers appear."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ParameterError
from ....numeric.arguments import is_one_of
from ...curve_figure import draw_map
from ...figures import checked_axes, set_heading, styled
from ...penalties import as_ridge, given_penalty
from .axes import AXES, checked_values, pair_title, parameters_text

if TYPE_CHECKING:
    import xarray as xr

    from ..model import OneGradientStep

QUANTITIES = {
    "improvement": r"improvement $\delta = R_0 - R_1$",
    "relative_improvement": r"relative improvement $\delta/R_0$",
    "risk_initial": r"risk of random features $R_0$",
    "risk_trained": r"risk after the step $R_1$",
}
"""What a phase diagram can show, with the labels."""

_PENALTIES = ("ridge", "paper_ridge")
_CRITICAL = {
    "critical_step_size_weights": ("white", "outlier of $W_1$ above"),
    "critical_step_size_kernel": ("#E69F00", "outlier of the kernel above"),
}


def phase_data(
    model: OneGradientStep,
    x: str,
    x_values: object,
    y: str,
    y_values: object,
    *,
    ridge: object = None,
) -> xr.Dataset:
    """Return the risk over two parameters.

    Parameters
    ----------
    model : OneGradientStep
        Has the other parameters. Where it has no `alpha0`, the samples of the step follow alpha.
    x, y : str
        Two different of "alpha", "beta", "step_size", "noise_variance", "ridge", "paper_ridge".
    x_values, y_values : sequence of float
    ridge : float or PaperRidge, optional
        Needed unless an axis is the penalty.

    Returns
    -------
    xarray.Dataset
        What ``model.curve`` returns, over `y` and `x`, with ``relative_improvement`` and
        ``best_linear_error``. If the step size is an axis, also the step sizes from which the
        first layer and the kernel have an outlier, over the other axis:
        ``critical_step_size_weights`` and ``critical_step_size_kernel``; inf where there is none.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    """
    if x == y:
        raise ParameterError(f"the two axes must differ, got {x!r} twice")
    axes: dict[str, Any] = {y: checked_values(y, y_values), x: checked_values(x, x_values)}
    penalty = {} if ridge is None else dict((given_penalty(ridge),))
    if len(penalty) + sum(name in axes for name in _PENALTIES) != 1:
        raise ParameterError("give one penalty: ridge as a number, or ridge or paper_ridge as axis")
    data = model.curve(**as_ridge({**penalty, **axes})).to_dataset().transpose(y, x, ...)
    data = data.assign(
        relative_improvement=data["improvement"] / data["risk_initial"],
        best_linear_error=model.best_linear_error,
    )
    if "step_size" in axes:
        other = x if y == "step_size" else y
        for name, values in _critical(model, other, axes[other]).items():
            data[name] = (other, values)
    data.attrs |= {"model": model.to_json(), **penalty}
    return data


def plot_phase(data: xr.Dataset, quantity: str = "improvement", *, ax: Any = None) -> Any:
    """Draw what :func:`phase_data` returned, as a heat map with contour lines.

    Parameters
    ----------
    data : xarray.Dataset
    quantity : {"improvement", "relative_improvement", "risk_initial", "risk_trained"}
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure, found as ``axes.figure``.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ParameterError
        If an argument is something else.
    MissingDependencyError
        Without matplotlib.
    """
    if not is_one_of(quantity, QUANTITIES):
        raise ParameterError(f"quantity must be one of {', '.join(QUANTITIES)}, got {quantity!r}")
    shown = getattr(data, "data_vars", {}).get(quantity)
    if shown is None or shown.ndim != 2 or "model" not in data.attrs:
        raise ParameterError("data must be a dataset as returned by phase_data")
    from ..model import OneGradientStep

    model = OneGradientStep.from_json(data.attrs["model"])
    y, x = (str(name) for name in shown.dims)
    values = shown.to_numpy()
    with styled():
        axes = checked_axes(ax, (6.6, 4.6))
        wide = quantity.startswith("risk") and 0 < 3 * values.min() < values.max()
        draw_map(axes, shown, QUANTITIES[quantity], logarithmic=wide)
        for name, (colour, label) in _CRITICAL.items():
            _draw_critical(axes, data, name, x, colour, label)
        for axis, name in ((axes.xaxis, x), (axes.yaxis, y)):
            axis.set_label_text(AXES[name])
        if axes.get_legend_handles_labels()[0]:
            axes.legend(facecolor="#595959", labelcolor="white", framealpha=0.9, fontsize=9)
        fixed = {k: float(data.attrs[k]) for k in _PENALTIES if k in data.attrs}
        set_heading(axes, pair_title(model), parameters_text(model, (x, y), **fixed))
    return axes


def _critical(
    model: OneGradientStep, other: str, values: np.ndarray[Any, Any]
) -> dict[str, list[float]]:
    """Return the step sizes from which there are outliers, over the other axis."""
    found: dict[str, list[float]] = {name: [] for name in _CRITICAL}
    for value in values:
        changed: dict[str, Any] = {} if other in _PENALTIES else {other: float(value)}
        here = replace(model, **changed)
        of_weights = float(here.weight_spike().critical_step_size)
        found["critical_step_size_weights"].append(of_weights)
        found["critical_step_size_kernel"].append(_kernel_step(here))
    return found


def _kernel_step(model: OneGradientStep) -> float:
    return float(model.conjugate_kernel().critical_step_size)


def _draw_critical(axes: Any, data: xr.Dataset, name: str, x: str, colour: str, label: str) -> None:
    if name not in data:
        return
    steps = data["step_size"].to_numpy()
    other = str(data[name].dims[0])
    critical = data[name].to_numpy()
    inside = (critical >= steps[0]) & (critical <= steps[-1])
    if not inside.any():
        return
    # Outside the frame there is nothing to see; infinite values end the line.
    shown = np.where(np.isfinite(critical), critical, math.nan)
    points = (shown, data[other]) if x == "step_size" else (data[other], shown)
    frame = axes.get_xlim(), axes.get_ylim()
    axes.plot(*points, color=colour, linestyle="--", linewidth=1.8, label=label)
    axes.set_xlim(frame[0])
    axes.set_ylim(frame[1])
