"""Figures of publication quality: learning curves with simulations.

Drawn without pyplot, so that no window, no display and no global state is involved; colours are
those of Okabe and Ito, which stay apart for colour-blind readers and in grey print.
"""

from __future__ import annotations

import io
import json
import math
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic_files import replacing
from ..errors import MissingDependencyError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import xarray as xr

BLUE, VERMILLION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"
_STYLE: dict[Any, Any] = {
    "font.family": "serif",
    "font.serif": ["STIX Two Text", "STIXGeneral", "DejaVu Serif"],
    "mathtext.fontset": "stix",
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "legend.fontsize": 10,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "lines.linewidth": 1.8,
    "svg.fonttype": "path",
    "svg.hashsalt": "giantstep",
    "pdf.fonttype": 42,
}
_SIZE = (6.0, 4.0)
_DECADE = 10.0
_METADATA = {"svg": {"Date": None, "Creator": "giantstep"}, "pdf": {"CreationDate": None}}


def plot_learning_curve(
    curve: xr.Dataset, simulation: xr.Dataset | None = None, *, ax: Any = None
) -> Any:
    """Draw the test error against sample complexity.

    Parameters
    ----------
    curve : xarray.Dataset
        As ``SpikedRandomFeatures.learning_curve`` returns it; drawn as a line, with the error of
        the best linear predictor as a dashed one.
    simulation : xarray.Dataset, optional
        As ``SpikedRandomFeatures.simulate`` returns it; mean and standard error over the networks.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure, found as ``axes.figure``.

    Returns
    -------
    matplotlib.axes.Axes
        With a logarithmic error axis if the errors span more than a decade.

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    ParameterError
        If a dataset is not one of these, or `ax` is something else.
    """
    _check(curve, "curve", "test_error")
    if simulation is not None:
        _check(simulation, "simulation", "test_error_mean")
    if ax is not None and not hasattr(ax, "errorbar"):
        raise ParameterError(f"ax must be axes of matplotlib, got {ax!r}")
    with styled():
        axes = new_figure().add_subplot() if ax is None else ax
        _draw(axes, curve.sortby("alpha"), simulation)
    return axes


def save_figure(figure: Any, path: str | os.PathLike[str]) -> Path:
    """Write a figure to a file, in the format of its suffix; a reader sees all of it or none.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    path : path-like
        With suffix .png, .pdf or .svg.

    Returns
    -------
    Path
    """
    found = Path(path)
    form = found.suffix.lstrip(".").lower()
    if form not in ("png", "pdf", "svg"):
        raise ParameterError(f"a figure is written as .png, .pdf or .svg, not {found.name!r}")
    with replacing(found) as temporary, styled():
        figure.savefig(temporary, format=form, dpi=200, metadata=_METADATA.get(form))
    return found


def svg_text(figure: Any) -> str:
    """Return a figure as the text of an SVG file, the same for the same figure."""
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format="svg", metadata=_METADATA["svg"])
    return buffer.getvalue().decode("utf-8")


# ---------------------------------------------------------------------- drawing


def _check(dataset: Any, name: str, variable: str) -> None:
    if variable not in getattr(dataset, "variables", ()) or dataset[variable].dims != ("alpha",):
        method = "learning_curve" if name == "curve" else "simulate"
        raise ParameterError(f"{name} must be a dataset as returned by {method}")


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the style of giantstep.

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    try:
        import matplotlib
    except ImportError:
        raise MissingDependencyError(
            'figures need matplotlib, which is not installed; use pip install "giantstep[plot]"'
        ) from None
    with matplotlib.rc_context(_STYLE):
        yield


def new_figure(size: tuple[float, float] = _SIZE) -> Any:
    """Return an empty figure of a width and height in inches, to be saved without a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _draw(axes: Any, curve: xr.Dataset, simulation: xr.Dataset | None) -> None:
    attributes = curve.attrs
    drawn: list[Any] = [curve["test_error"].to_numpy()]
    alone = curve.sizes["alpha"] == 1
    axes.plot(
        curve["alpha"], curve["test_error"], color=BLUE, marker="s" if alone else None, zorder=3,
        label=(f"theory, $p={attributes['width']}$" if "width" in attributes
               else r"theory, $d\to\infty$")
        + (", complete" if "leading_order" in attributes else ""),
    )  # fmt: skip
    if "test_error_complete" in curve.variables:
        drawn.append(curve["test_error_complete"].to_numpy())
        axes.plot(
            curve["alpha"], drawn[-1], color=BLUE, linestyle=(0, (1, 1.2)), linewidth=1.6,
            marker="x" if alone else None, zorder=3, label="complete to leading order",
        )  # fmt: skip
    if simulation is not None:
        means = simulation["test_error_mean"].to_numpy()
        bars = simulation["test_error_standard_error"].to_numpy()
        drawn.append(means)
        axes.errorbar(
            simulation["alpha"],
            means,
            # One network has no standard error.
            yerr=bars if all(map(math.isfinite, bars)) else None,
            fmt="o", color=VERMILLION, markersize=5, markerfacecolor="white",
            markeredgewidth=1.4, elinewidth=1.4, capsize=3, zorder=4,
            label=_simulation_label(simulation),
        )  # fmt: skip
    best = attributes.get("best_linear_error")
    if best is not None and best > 0:
        drawn.append([best])
        axes.axhline(
            best, color=GREY, linestyle=(0, (5, 3)), linewidth=1.3, zorder=2,
            label="best linear predictor",
        )  # fmt: skip
    values = [float(v) for group in drawn for v in group if v > 0]
    if values and max(values) > _DECADE * min(values):
        axes.set_yscale("log")
    else:
        axes.margins(y=0.12)
    axes.grid(True, which="major", color="#e4e4e4", linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.set_xlabel(r"sample complexity $\alpha = n/d$")
    axes.set_ylabel("test error")
    axes.set_title(_title(attributes), loc="left", pad=22)
    axes.text(
        0, 1.025, _parameter_line(attributes), transform=axes.transAxes, fontsize=10, color=GREY,
        va="bottom",
    )  # fmt: skip
    handles, labels = axes.get_legend_handles_labels()
    # Containers of error bars come last by themselves; the horizontal line belongs there.
    order = sorted(range(len(labels)), key=lambda i: labels[i].startswith("best"))
    axes.legend(
        [handles[i] for i in order], [labels[i] for i in order],
        frameon=True, framealpha=0.9, edgecolor="none", loc="best",
    )  # fmt: skip


def _simulation_label(simulation: xr.Dataset) -> str:
    networks = simulation.sizes.get("seed", 0)
    dimension = simulation.attrs.get("dimension")
    size = rf"$d = {dimension}$, " if dimension else ""
    if networks == 1:
        return f"simulation, {size}one network"
    return rf"simulation, {size}{networks} networks ($\pm$ s.e.)"


def _title(attributes: dict[str, Any]) -> str:
    student, teacher = (str(attributes.get(k, "")) for k in ("student", "teacher"))
    if not student:
        return "Learning curve"
    # Expressions of users may hold signs that mathtext would interpret.
    return f"student {plain_text(student)}, teacher {plain_text(teacher)}"


def plain_text(text: str, longest: int = 28) -> str:
    """Return a text that mathtext shows as it is, cut to a length."""
    shown = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return shown.replace("$", r"\$")


def _parameter_line(attributes: dict[str, Any]) -> str:
    try:
        model = json.loads(attributes.get("model", "{}"))
    except ValueError:
        model = {}
    parts = []
    if "spike_strength" in model or not model.get("step_size", 1):
        letters = (("r", "spike_strength"), ("c", "bulk_variance"), (r"\gamma", "alignment"))
        parts = [(letter, attributes.get(name)) for letter, name in letters]
        if "spike_strength" not in model:
            parts = [("s", 0)]
    else:
        parts = [("s", model.get("step_size")), (r"\alpha_0", model.get("alpha0"))]
    parts += [
        (r"\beta", attributes.get("beta")),
        (r"\lambda", attributes.get("ridge")),
        (r"\Delta", attributes.get("noise_variance")),
    ]
    shown = [f"{letter} = {_number(value)}" for letter, value in parts if value is not None]
    return "$" + r",\ ".join(shown) + "$" if shown else ""


def _number(value: Any) -> str:
    if value == "inf" or value == math.inf:
        return r"\infty"
    text = f"{float(value):.4g}"
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        power = f"10^{{{int(exponent)}}}"
        return power if mantissa == "1" else rf"{mantissa}\times {power}"
    return text
