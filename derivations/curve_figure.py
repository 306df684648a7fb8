"""Figures of curves: lines over one parameter, with simulations; a map over two."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ParameterError
from .figures import (
    BEST_LINEAR,
    GREEN,
    GREY,
    VERMILLION,
    Pen,
    draw_grid,
    draw_legend,
    draw_level,
    drawing,
    number_text,
    plain_text,
    set_heading,
    set_scale,
    styled,
)

if TYPE_CHECKING:
    import xarray as xr

    from .curves import Curve

LABELS = {
    "alpha": r"sample complexity $\alpha = n/d$",
    "beta": r"aspect ratio $\beta = p/d$",
    "ridge": r"ridge penalty $\lambda$",
    "paper_ridge": r"ridge penalty $\lambda_B = (\beta/\alpha)\,\lambda$",
    "step_size": "step size",
    "alpha0": r"sample complexity of the step $\alpha_0 = n_0/d$",
    "noise_variance": r"noise variance $\Delta$",
    "spike_strength": "spike strength $r$",
    "bulk_variance": "bulk variance $c$",
    "alignment": r"alignment $\gamma$",
    "width": "width $p$",
}
"""What axes are called."""

_ERROR = "test_error"
_DECADE = 10.0
_SIZE, _MAP_SIZE = (6.0, 4.0), (6.6, 4.6)
# Values of a second parameter that are still lines; more are a map.
MOST_LINES = 4
_LEVELS = 7


def plot_curve(
    curve: Curve | xr.Dataset,
    of: str | Sequence[str] | None = None,
    *,
    simulation: xr.Dataset | None = None,
    ax: Any = None,
    **style: Any,
) -> Any:
    """Draw a curve; see :meth:`.curves.Curve.plot`."""
    data: Any = curve if hasattr(curve, "data_vars") else getattr(curve, "dataset", None)
    if data is None:
        raise ParameterError(f"curve must be a Curve or its dataset, got {type(curve).__name__}")
    names = _chosen(data, of)
    over = [str(name) for name in data[names[0]].dims]
    if simulation is not None and over:
        mean = f"{names[0]}_mean"
        if mean not in getattr(simulation, "variables", ()) or simulation[mean].dims != (over[0],):
            raise ParameterError(
                "simulation must be a dataset as returned by simulate, over the parameter of the "
                "curve"
            )
    if not 0 < len(over) < 3:
        raise ParameterError(
            f"a curve over {len(over)} parameters has no figure; choose values of "
            f"{', '.join(over[2:])}, as in curve.to_dataset().sel(...)"
            if over
            else "a curve without axes has no figure: give one parameter as an array"
        )
    is_map = len(over) == 2 and data.sizes[over[1]] > MOST_LINES
    with drawing(ax, style, size=_MAP_SIZE if is_map else _SIZE) as (axes, pen):
        data = data.sortby(over)
        if len(over) == 1:
            _draw_lines(axes, data, over[0], names, simulation, pen)
        elif is_map:
            x, y = over
            draw_map(axes, data[names[0]].transpose(y, x), names[0].replace("_", " "))
            for axis, name in ((axes.xaxis, x), (axes.yaxis, y)):
                axis.set_label_text(LABELS.get(name, name))
            set_heading(axes, _title(data.attrs), _parameters(data.attrs, over))
        else:
            _draw_family(axes, data, over, names[0], pen)
    return axes


def draw_map(axes: Any, shown: xr.DataArray, label: str, *, logarithmic: bool = False) -> None:
    """Draw an array over two parameters, its second one to the right, with contour lines.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    shown : xarray.DataArray
        Of two dimensions, with ascending coordinates.
    label : str
        Of the colours.
    logarithmic : bool
        Scale of the colours.
    """
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import MaxNLocator

    y, x = (shown[str(name)].to_numpy() for name in shown.dims)
    values = shown.to_numpy()
    mesh = axes.pcolormesh(
        x, y, values, cmap="viridis", shading="nearest", rasterized=True,
        norm=LogNorm() if logarithmic else None,
    )  # fmt: skip
    bar = axes.figure.colorbar(mesh, ax=axes, label=label)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    inside = [level for level in MaxNLocator(_LEVELS).tick_values(low, high) if low < level < high]
    if min(values.shape) > 1 and inside:
        lines = axes.contour(x, y, values, levels=inside, colors="black", linewidths=0.8, alpha=0.6)
        # Beside the scale, not in the figure, where labels would hide other lines.
        bar.add_lines(lines)
    set_scale(axes.xaxis, x)
    set_scale(axes.yaxis, y)


def _chosen(data: xr.Dataset, of: str | Sequence[str] | None) -> list[str]:
    """Return the outputs to be drawn, all over the same parameters."""
    if of is None:
        of = str(data.attrs.get("drawn", _ERROR)).split()
    names = [of] if isinstance(of, str) else list(of)
    there = [str(name) for name in data.data_vars]
    if not names or any(name not in there for name in names):
        wrong = next((name for name in names if name not in there), "nothing")
        raise ParameterError(
            f"curve has no output named {wrong!r}; there are: {', '.join(there) or 'none'}"
        )
    dims = data[names[0]].dims
    bad = [name for name in names if data[name].dims != dims]
    if bad or any(str(name) not in data.coords for name in dims):
        raise ParameterError(
            f"{(bad or names)[0]!r} has components or networks of its own; draw outputs that are "
            "numbers at every point"
        )
    return names


def _draw_lines(
    axes: Any,
    data: xr.Dataset,
    over: str,
    names: Sequence[str],
    simulation: xr.Dataset | None,
    pen: Pen,
) -> None:
    attributes = data.attrs
    alone = "s" if data.sizes[over] == 1 else None
    several, named = len(names) > 1, []
    for name in names:
        label = _theory_label(attributes) if names == [_ERROR] else name.replace("_", " ")
        look = pen(label, several=several, marker=alone, zorder=3)
        # Colours follow each other, so that a second curve in the same axes has its own.
        [line] = axes.plot(data[over], data[name], **look)
        named += [] if "label" in pen.style else [(line, label if several else "")]
    if "test_error_complete" in data.variables and names == [_ERROR]:
        axes.plot(
            data[over], data["test_error_complete"], color=line.get_color(),
            linestyle=(0, (1, 1.2)), linewidth=1.6, marker="x" if alone else None, zorder=3,
            label="complete to leading order",
        )  # fmt: skip
    if simulation is not None:
        _draw_simulation(axes, simulation, over, names[0], Pen(_colour_of(pen)))
    _finish(axes, data, over, names)
    set_heading(axes, _title(attributes), _parameters(attributes, [over]), named)


def _colour_of(pen: Pen) -> dict[str, Any]:
    return {} if pen.colour is None else {"color": pen.colour}


def _draw_simulation(axes: Any, simulation: xr.Dataset, over: str, name: str, pen: Pen) -> None:
    """Draw means with error bars."""
    bars = simulation[f"{name}_standard_error"].to_numpy()
    look = pen(
        _simulation_label(simulation), markersize=5, markerfacecolor="white", markeredgewidth=1.4,
        zorder=4,
    )  # fmt: skip
    axes.errorbar(
        simulation[over],
        _mean(simulation, name),
        # One network has no standard error.
        yerr=bars if all(map(math.isfinite, bars)) else None,
        **{"fmt": "o", "elinewidth": 1.4, "capsize": 3, **look},
    )


def _mean(simulation: xr.Dataset, name: str) -> xr.DataArray:
    return simulation[f"{name}_mean" if f"{name}_mean" in simulation else name]


def plot_simulation(
    simulation: xr.Dataset, name: str = _ERROR, *, ax: Any = None, **style: Any
) -> Any:
    """Draw simulated means over their only axis, without a theory."""
    (over,) = map(str, _mean(simulation, name).dims)
    data = simulation.sortby(over) if over in simulation.coords else simulation
    with drawing(ax, style, size=_SIZE) as (axes, pen):
        look = Pen({"color": VERMILLION, **pen.style})
        _draw_simulation(axes, data, over, name, look)
        _finish(axes, data, over, [name])
    return axes


def _draw_family(axes: Any, data: xr.Dataset, over: Sequence[str], name: str, pen: Pen) -> None:
    """Draw a line for each value of the second parameter."""
    import matplotlib as mpl

    x, second = over
    values = data[second].to_numpy()
    colours = mpl.colormaps["viridis"](np.linspace(0.1, 0.8, len(values)))
    letter = LABELS.get(second, second)
    for value, colour in zip(values, colours, strict=True):
        look = pen(f"{letter} = {value:.4g}", several=True, color=colour, zorder=3)
        axes.plot(data[x], data[name].sel({second: value}), **look)
    _finish(axes, data, x, [name])
    set_heading(axes, _title(data.attrs), _parameters(data.attrs, over))


def _is_error(names: Sequence[str]) -> bool:
    return any(name == _ERROR or name.startswith("risk_") for name in names)


def draw_lines_beside(axes: Any, over: Sequence[float], lines: Mapping[str, Any]) -> None:
    """Draw further lines in a figure of a curve, and renew its legend.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    over : sequence of float
    lines : mapping from str to sequence of float
        By what the legend says; values that are not positive are left out of a logarithmic axis.
    """
    # The second one is often the first: drawn in dots, it covers nothing.
    styles = ((GREEN, "-"), (GREY, ":"), (VERMILLION, "-."))
    with styled():
        for (name, values), (colour, style) in zip(lines.items(), styles, strict=False):
            axes.plot(
                over, values, color=colour, linestyle=style, linewidth=1.3, zorder=2, label=name
            )
        draw_legend(axes, below=True)


def _finish(axes: Any, data: xr.Dataset, over: str, names: Sequence[str]) -> None:
    """Draw the bound; set scales, labels, grid and legend, of all that the axes hold."""
    best = data.attrs.get("best_linear_error")
    if _is_error(names) and best is not None and best > 0:
        draw_level(axes, best, BEST_LINEAR)
    values = [float(v) for line in axes.lines for v in line.get_ydata() if v > 0]
    if values and max(values) > _DECADE * min(values) and _is_error(names):
        axes.set_yscale("log")
    else:
        axes.margins(y=0.12)
    if over != "alpha":
        set_scale(axes.xaxis, data[over].to_numpy())
    draw_grid(axes)
    axes.set_xlabel(LABELS.get(over, over))
    common = {name.split("_", 1)[0] for name in names}
    axes.set_ylabel(names[0].replace("_", " ") if len(names) == 1 else ", ".join(sorted(common)))
    draw_legend(axes)


def _theory_label(attributes: dict[str, Any]) -> str:
    width = attributes.get("width")
    at = rf"theory, $p={width}$" if isinstance(width, int | np.integer) else r"theory, $d\to\infty$"
    return at + (", complete" if "leading_order" in attributes else "")


def _simulation_label(simulation: xr.Dataset) -> str:
    networks = simulation.sizes.get("seed", 0)
    dimension = simulation.attrs.get("dimension")
    size = rf"$d = {dimension}$, " if dimension else ""
    if networks == 1:
        return f"simulation, {size}one network"
    return rf"simulation, {size}{networks} networks ($\pm$ s.e.)"


def _title(attributes: dict[str, Any]) -> str:
    known = {**_model(attributes), **attributes}
    student, teacher = (str(known.get(k, "")) for k in ("student", "teacher"))
    if not student:
        return "Learning curve"
    # Expressions of users may hold signs that mathtext would interpret.
    return f"student {plain_text(student)}, teacher {plain_text(teacher)}"


def _model(attributes: dict[str, Any]) -> dict[str, Any]:
    try:
        result = json.loads(attributes.get("model", "{}"))
    except ValueError:
        return {}
    return result if isinstance(result, dict) else {}


_SPIKE = {"spike_strength": "r", "bulk_variance": "c", "alignment": r"\gamma"}
_STEP = {"step_size": "s", "alpha0": r"\alpha_0"}
_READOUT = {
    "alpha": r"\alpha", "beta": r"\beta", "ridge": r"\lambda", "paper_ridge": r"\lambda_B",
    "noise_variance": r"\Delta",
}  # fmt: skip


def _parameters(attributes: dict[str, Any], over: Sequence[str]) -> list[str]:
    """Return what a figure holds fixed, for its subtitle."""
    model = _model(attributes)
    known = {**model, **attributes}
    letters = _STEP
    if model.get("model") == "one_gradient_step":
        letters = {**_STEP, "step_size": r"\eta"}
    elif "spike_strength" in model:
        letters = _SPIKE
    elif not model.get("step_size", 1) and "step_size" not in over:
        letters, known = {**_SPIKE, "step_size": "s"}, {**attributes, "step_size": 0}
    return [
        f"{letter} = {number_text(known[name])}"
        for name, letter in {**letters, **_READOUT}.items()
        if name not in over and isinstance(known.get(name), int | float)
    ]
