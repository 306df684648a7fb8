"""Figures of publication quality: their style, axes and files.

Drawn without pyplot, so that no window, no display and no global state is involved; colours are
those of Okabe and Ito, which stay apart for colour-blind readers and in grey print.
"""

from __future__ import annotations

import io
import math
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atomic_files import replacing
from ..errors import MissingDependencyError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
# Up to this ratio the ticks of a logarithmic axis are decimal numbers.
_DECIMAL = 1e3
_METADATA = {"svg": {"Date": None, "Creator": "giantstep"}, "pdf": {"CreationDate": None}}


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
    result = Path(path)
    form = result.suffix.lstrip(".").lower()
    if form not in ("png", "pdf", "svg"):
        raise ParameterError(f"a figure is written as .png, .pdf or .svg, not {result.name!r}")
    with replacing(result) as temporary, styled():
        figure.savefig(temporary, format=form, dpi=200, metadata=_METADATA.get(form))
    return result


def svg_text(figure: Any) -> str:
    """Return a figure as the text of an SVG file, the same for the same figure."""
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format="svg", metadata=_METADATA["svg"])
    return buffer.getvalue().decode("utf-8")


# ---------------------------------------------------------------------- drawing


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


def bars(numbers: Mapping[str, tuple[float, Any]], label: str, *, ax: Any = None) -> Any:
    """Draw numbers by name as bars with their errors.

    Parameters
    ----------
    numbers : mapping from str to (float, float or None)
        Values and estimated errors; what is not finite is left out.
    label : str
        What they are.
    ax : matplotlib.axes.Axes, optional

    Raises
    ------
    ParameterError
        If there is no finite number.
    """
    shown = {name: pair for name, pair in numbers.items() if math.isfinite(pair[0])}
    if not shown:
        raise ParameterError(f"there are no finite numbers to draw: {label}")
    with styled():
        ax = checked_axes(ax)
        values = [float(value) for value, _ in shown.values()]
        errors = [float(e or 0.0) for _, e in shown.values()]
        errors = [e if math.isfinite(e) else 0.0 for e in errors]
        ax.barh(list(shown), values, xerr=errors, color=BLUE, height=0.6)
        for k, value in enumerate(values):
            side = 1 if value >= 0 else -1
            ax.annotate(
                f"{value:.4g}", (value, k), (4 * side, 0), textcoords="offset points",
                va="center", ha="left" if value >= 0 else "right",
            )  # fmt: skip
        ax.axvline(0.0, color=GREY, linewidth=0.8)
        ax.invert_yaxis()
        ax.margins(x=0.25)
        ax.set_xlabel(label)
    return ax


def set_heading(axes: Any, title: str, line: str) -> None:
    """Write a title and below it the parameters that are held fixed."""
    axes.set_title(title, loc="left", pad=22)
    axes.text(0, 1.025, line, transform=axes.transAxes, fontsize=10, color=GREY, va="bottom")


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


def plain_log_ticks(axes: Any) -> None:
    """Label a logarithmic error axis with decimal numbers: often it spans less than a decade."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = axes.get_ylim()
    subs = (1, 2, 3, 5) if high > 10 * low else (1, 1.5, 2, 3, 4, 6, 8)
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=subs))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def legend_below(axes: Any, columns: int = 3) -> None:
    """Draw a legend below the axes, where it hides nothing."""
    axes.legend(
        frameon=False, fontsize=9, ncols=columns, loc="upper center", bbox_to_anchor=(0.5, -0.17)
    )


def plain_text(text: str, longest: int = 28) -> str:
    """Return a text that mathtext shows as it is, cut to a length."""
    shown = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return shown.replace("$", r"\$")


def number_text(value: Any) -> str:
    """Return a number with four digits as mathtext, its power of ten as one."""
    if value in ("inf", math.inf):
        return r"\infty"
    text = f"{float(value):.4g}"
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa}\times {power}"
