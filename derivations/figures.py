"""Figures of publication quality: their style, axes and files, and what pictures look like.

Where pyplot is in use, and in notebooks, figures are pyplot's and appear as those do; elsewhere no
window, no display and no global state is involved. Colours are those of Okabe and Ito, which stay
apart for colour-blind readers and in grey print.
"""

from __future__ import annotations

import io
import math
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..atomic_files import replacing
from ..errors import MissingDependencyError, ParameterError
from ..pictures import Bars, Cells, Chain, Lines, Picture

BLUE, VERMILLION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"
COLOURS = (BLUE, VERMILLION, GREEN, "#CC79A7", "#E69F00", "#56B4E9", GREY)
"""In the order in which lines take them."""
_STYLE: dict[Any, Any] = {
    # By name, for files that are written later; both come with matplotlib.
    "font.family": ["STIXGeneral", "DejaVu Serif"],
    "mathtext.fontset": "stix",
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "legend.fontsize": 10,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "axes.linewidth": 0.8,
    "axes.prop_cycle": f"cycler('color', {list(COLOURS)})",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "lines.linewidth": 1.8,
    "svg.fonttype": "path",
    "svg.hashsalt": "giantstep",
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
}
_SIZE = (6.0, 4.0)
# Up to this ratio the ticks of a logarithmic axis are decimal numbers.
_DECIMAL = 1e3
_METADATA = {"svg": {"Date": None, "Creator": "giantstep"}, "pdf": {"CreationDate": None}}


def figure_of(drawn: Any) -> Any:
    """Return the figure that axes, or an array of them, are in."""
    first = drawn if hasattr(drawn, "figure") else np.ravel(drawn)[0]
    return first.figure or first


def save_figure(drawn: Any, path: str | os.PathLike[str]) -> Path:
    """Write a figure to a file, in the format of its suffix; a reader sees all of it or none.

    Parameters
    ----------
    drawn : matplotlib.axes.Axes, an array of them, or their figure
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
        figure_of(drawn).savefig(temporary, format=form, dpi=200, metadata=_METADATA.get(form))
    return result


def svg_text(drawn: Any) -> str:
    """Return a figure as the text of an SVG file, the same for the same figure."""
    buffer = io.BytesIO()
    with styled():
        figure_of(drawn).savefig(buffer, format="svg", metadata=_METADATA["svg"])
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
        try:
            yield
        finally:
            # Notebooks switch it on when pyplot loads, which may be just now.
            interactive = matplotlib.is_interactive()
    matplotlib.interactive(interactive)


_OFF_SCREEN: ContextVar[bool] = ContextVar("_OFF_SCREEN", default=False)


@contextmanager
def off_screen() -> Iterator[None]:
    """Draw figures that go into a file, and appear nowhere else."""
    token = _OFF_SCREEN.set(True)
    try:
        yield
    finally:
        _OFF_SCREEN.reset(token)


def _pyplot() -> Any:
    """Return pyplot where it is in use, or would be in a notebook; else None."""
    if _OFF_SCREEN.get():
        return None
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if "matplotlib.pyplot" not in sys.modules and not hasattr(shell, "kernel"):
        return None
    import matplotlib.pyplot as plt

    return plt


def new_figure(size: tuple[float, float] = _SIZE) -> Any:
    """Return an empty figure of a width and height in inches: of pyplot where that is in use."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from .figure_class import EmbeddedFigure

    plt = _pyplot()
    if plt is not None:
        return plt.figure(figsize=size, layout="constrained", FigureClass=EmbeddedFigure)
    figure = EmbeddedFigure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


@dataclass(frozen=True)
class Pen:
    """How lines are drawn: as usual, and where a user has said otherwise, as he said.

    Attributes
    ----------
    style : mapping from str to Any
        Keywords of matplotlib's lines, such as `color` and `label`.
    """

    style: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, label: str = "", *, several: bool = False, **usual: Any) -> dict[str, Any]:
        """Return the keywords of a line.

        Parameters
        ----------
        label : str
            What the legend says if no label was given.
        several : bool
            Whether the line is one of several, whose names stand behind a label that was given.
        usual : optional
            Other keywords; None for what matplotlib chooses.
        """
        given = self.style.get("label")
        if several and given is not None and label:
            given = f"{given}, {label}"
        usual = {name: value for name, value in usual.items() if value is not None}
        return {**usual, **self.style, "label": label if given is None else given}

    @property
    def colour(self) -> Any:
        """The colour that was asked for, or None."""
        return self.style.get("color")


def _pen(style: Mapping[str, Any]) -> Pen:
    """Return a pen of a checked style."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    try:
        given = normalize_kwargs(dict(style), Line2D)
        Line2D([], [], **given)
    except (AttributeError, TypeError, ValueError) as error:
        raise ParameterError(
            f"style is given by keywords of matplotlib's lines, such as color='C1' and label='a': "
            f"{error}"
        ) from None
    return Pen(given)


Panels = int | Callable[[Any], Any] | None


@contextmanager
def drawing(
    ax: Any = None,
    style: Mapping[str, Any] | None = None,
    *,
    size: tuple[float, float] = (6.2, 4.2),
    panels: Panels = None,
) -> Iterator[tuple[Any, Pen]]:
    """Draw in given axes or in those of a new figure, in the style of giantstep.

    Every figure is made here. Given axes get the look of new ones; a new figure is closed again if
    drawing fails.

    Parameters
    ----------
    ax : matplotlib.axes.Axes, or a sequence of them with `panels`
    style : mapping from str to Any, optional
        Keywords of lines.
    size : (float, float)
        Of a new figure, in inches.
    panels : int or callable, optional
        How many axes there are side by side, or a function of a new figure that makes them.

    Yields
    ------
    axes : matplotlib.axes.Axes, or an array of them with `panels`
    pen : Pen

    Raises
    ------
    ParameterError
        If `ax` is something else, or a keyword of the style is none.
    MissingDependencyError
        Without matplotlib.
    """
    with styled():
        pen = _pen(style or {})
        if ax is not None:
            axes = _given_axes(ax, panels)
            for one in np.ravel(axes):
                _prepare(one)
            yield axes, pen
            for one in np.ravel(axes):
                _dress(one)
            return
        figure = new_figure(size)
        try:
            if panels is None:
                yield figure.add_subplot(), pen
            elif isinstance(panels, int):
                yield np.atleast_1d(figure.subplots(1, panels)), pen
            else:
                yield panels(figure), pen
        except BaseException:
            if (plt := _pyplot()) is not None:
                plt.close(figure)
            raise


def _given_axes(ax: Any, panels: Panels) -> Any:
    if panels is None:
        if not hasattr(ax, "errorbar"):
            raise ParameterError(f"ax must be axes of matplotlib, got {ax!r}")
        return ax
    result = np.array(list(ax) if isinstance(ax, list | tuple) else ax, dtype=object).ravel()
    wanted = panels if isinstance(panels, int) else len(np.ravel(panels(_unseen())))
    if len(result) != wanted or not all(hasattr(one, "errorbar") for one in result):
        number = "two" if wanted == 2 else wanted
        raise ParameterError(f"ax must be {number} axes of matplotlib, got {ax!r}")
    return result


def _unseen() -> Any:
    with off_screen():
        return new_figure()


def _prepare(axes: Any) -> None:
    """Let lines take our colours, unless there are others already."""
    import matplotlib

    if not axes.has_data():
        axes.set_prop_cycle(matplotlib.rcParams["axes.prop_cycle"])


def _dress(axes: Any) -> None:
    """Give the axes of a figure that was made elsewhere the look of ours."""
    import matplotlib
    from matplotlib.text import Text

    rc = matplotlib.rcParams
    for side, spine in axes.spines.items():
        spine.set_linewidth(rc["axes.linewidth"])
        if side in ("top", "right"):
            spine.set_visible(False)
    axes.tick_params(which="both", direction="in")
    axes.tick_params(labelsize=rc["xtick.labelsize"])
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_fontsize(rc["axes.labelsize"])
    for text in axes.findobj(Text):
        text.set_fontfamily(rc["font.family"])
        text.set_math_fontfamily(rc["mathtext.fontset"])


_HEADING = "_heading"
BEST_LINEAR = "best linear predictor"
# Of axes in use: the curves in them, with titles, parameters and lines that a reader tells apart.
_CURVES: WeakKeyDictionary[Any, list[tuple[str, tuple[str, ...], Any]]] = WeakKeyDictionary()


def formula(parts: Sequence[str]) -> str:
    """Return equations such as "s = 3" as one line of mathtext."""
    return "$" + r",\ ".join(parts) + "$" if parts else ""


def set_heading(
    axes: Any,
    title: str,
    parameters: Sequence[str],
    lines: Sequence[tuple[Any, str]] = (),
    *,
    note: str = "",
) -> None:
    """Write a title and below it the parameters that are held fixed.

    If there is a curve in the axes already, the heading is what both have in common, and the
    legend tells their lines apart by the rest.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    title : str
    parameters : sequence of str
        Equations, in mathtext without dollar signs.
    lines : sequence of (Line2D, str)
        Lines of a curve with what they are beside others of it.
    note : str
        What follows the parameters.
    """
    curves = _CURVES.setdefault(axes, [])
    curves.append((title, tuple(parameters), lines))
    common = [part for part in parameters if all(part in given for _, given, _ in curves)]
    one_title = len({known for known, _, _ in curves}) == 1
    for old in [text for text in axes.texts if text.get_label() == _HEADING]:
        old.remove()
    axes.set_title(title if one_title else "", loc="left", pad=22)
    axes.text(
        0, 1.025, formula(common) + note, transform=axes.transAxes, fontsize=10, color=GREY,
        va="bottom", label=_HEADING,
    )  # fmt: skip
    if len(curves) == 1:
        return
    for known, given, drawn in curves:
        own = [] if one_title else [known.replace("student ", "").replace(", teacher ", " on ")]
        own += [rest] if (rest := formula([p for p in given if p not in common])) else []
        for line, label in drawn:
            line.set_label(", ".join(filter(None, [*own, label])) or line.get_label())
    draw_legend(axes)


def draw_legend(axes: Any, *, below: bool = False) -> None:
    """Draw the legend anew, on a pale ground; below the axes where lines leave no room inside."""
    handles, labels = axes.get_legend_handles_labels()
    # Containers of error bars come last by themselves; the horizontal line belongs there.
    order = sorted(range(len(labels)), key=lambda i: labels[i] == BEST_LINEAR)
    axes.legend(
        [handles[i] for i in order], [labels[i] for i in order],
        frameon=True, framealpha=0.9, edgecolor="none",
        **({"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 2} if below else
           {"loc": "best"}),
    )  # fmt: skip


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


def legend_on_map(axes: Any) -> None:
    """Draw a legend in a corner of a map: to look for a place on it takes seconds."""
    axes.legend(
        loc="upper right", facecolor="#595959", labelcolor="white", framealpha=0.9, fontsize=9
    )


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


# ---------------------------------------------------------------------- pictures

_TONES = {"good": "#b7dfc9", "fair": "#f6dfa6", "poor": "#f2b8a0", "none": "#f1f1f1"}
_GRID = "#e4e4e4"
_LINE_HEIGHT = 0.3
_WRAPPED = 44
# Lines of a legend that leave room beside them.
_MOST_INSIDE = 4


def draw_picture(picture: Picture, *, ax: Any = None, **style: Any) -> Any:
    """Draw a picture in given axes, or in those of a new figure; return the axes.

    Raises
    ------
    ParameterError
        If there is nothing to draw.
    MissingDependencyError
        Without matplotlib.
    """
    match picture:
        case Lines():
            return _draw_lines(picture, ax, style)
        case Bars():
            return _draw_bars(picture, ax, style)
        case Chain():
            return _draw_chain(picture, ax, style)
    return _draw_cells(picture, ax, style)


def _draw_lines(picture: Lines, ax: Any, style: Mapping[str, Any]) -> Any:
    several = sum(not line.beside for line in picture.lines) > 1
    below = max(0, len(picture.lines) - _MOST_INSIDE)
    with drawing(ax, style, size=(6.2, 4.2 + 0.25 * below)) as (axes, pen):
        for line in picture.lines:
            look = {"linestyle": line.style or "none", "marker": line.mark or None, "markersize": 4}
            if line.beside:
                axes.plot(line.x, line.y, label=line.label, color=GREY, linewidth=1, **look)
            else:
                axes.plot(line.x, line.y, **pen(line.label, several=several, **look))
        for label, level in picture.levels.items():
            draw_level(axes, level, label)
        if "x" in picture.logarithmic:
            axes.set_xscale("log")
        if "y" in picture.logarithmic:
            axes.set_yscale("log")
        if picture.ticks:
            axes.set_yticks(list(picture.ticks), list(picture.ticks.values()))
        draw_grid(axes)
        axes.set_xlabel(picture.over)
        axes.set_ylabel(picture.of)
        axes.set_title(picture.title, loc="left")
        if len(axes.get_legend_handles_labels()[0]) > _MOST_INSIDE:
            legend_below(axes, 1)
        elif axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
    return axes


def draw_grid(axes: Any) -> None:
    """Draw pale lines at the ticks, behind everything."""
    axes.grid(True, which="major", color=_GRID, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)


def draw_level(axes: Any, level: float, label: str) -> None:
    """Draw a horizontal line for a number; one that is there already is not drawn again."""
    for line in axes.lines:
        if line.get_label() == label and np.allclose(line.get_ydata(), level, rtol=1e-9, atol=0):
            return
    axes.axhline(
        level, color=GREY, linestyle=(0, (5, 3)), linewidth=1.3, zorder=2, label=label
    )  # fmt: skip


def _draw_bars(picture: Bars, ax: Any, style: Mapping[str, Any]) -> Any:
    shown = {name: pair for name, pair in picture.numbers.items() if math.isfinite(pair[0])}
    if not shown:
        raise ParameterError(f"there are no finite numbers to draw: {picture.label}")
    values = [float(value) for value, _ in shown.values()]
    errors = [float(e or 0.0) for _, e in shown.values()]
    errors = [e if math.isfinite(e) else 0.0 for e in errors]
    with drawing(ax, style) as (axes, pen):
        # Bars of several results lie beside each other.
        drawn = len(axes.containers)
        places = np.arange(len(shown)) + 0.3 * drawn
        axes.barh(places, values, xerr=errors, **{"height": 0.6 if not drawn else 0.3, **pen.style})
        if not drawn:
            axes.set_yticks(places, list(shown))
            axes.invert_yaxis()
        for name, value, place in zip(shown, values, places, strict=True):
            side = 1 if value >= 0 else -1
            axes.annotate(
                picture.texts.get(name, f"{value:.4g}"), (value, place), (4 * side, 0),
                textcoords="offset points", va="center", ha="left" if value >= 0 else "right",
            )  # fmt: skip
        axes.axvline(0.0, color=GREY, linewidth=0.8)
        axes.margins(x=0.25)
        axes.set_xlabel(picture.label)
        axes.set_title(picture.title, loc="left")
        if "label" in pen.style:
            axes.legend(frameon=False)
    return axes


def _draw_chain(picture: Chain, ax: Any, style: Mapping[str, Any]) -> Any:
    """Draw a staircase: a tread for every subspace, and what made the step on its riser."""
    count = len(picture.links)
    heights = np.array(picture.heights, dtype=float)
    highest = max(picture.highest, int(heights.max()), 1)
    # A tread has room for three lines of a reason.
    size = (max(5.0, 2.3 * count + 1.2), max(4.4, 1.1 + 0.85 * highest))
    with drawing(ax, style, size=size) as (axes, pen):
        edges = np.arange(count + 1, dtype=float)
        axes.stairs(
            heights, edges, baseline=0, fill=True,
            **{"color": BLUE, "alpha": 0.22, "linewidth": 0, **_filled(pen)},
        )  # fmt: skip
        axes.stairs(heights, edges, baseline=None, **pen(color=BLUE, linewidth=1.8))
        axes.axhline(
            highest, color=GREY, linestyle=(0, (5, 3)), linewidth=1.2, zorder=0, label="$V^*$"
        )
        for k, (text, height) in enumerate(zip(picture.links, heights, strict=True)):
            axes.annotate(
                wrapped(text, 22), (k + 0.5, height), (0, 4), textcoords="offset points",
                ha="center", va="bottom", fontsize=10,
            )  # fmt: skip
        for k, reason in enumerate(picture.reasons, start=1):
            axes.annotate(
                wrapped(reason, 24), (k + 0.5, heights[k]), (0, -5), textcoords="offset points",
                ha="center", va="top", fontsize=8.5, color=GREY,
            )  # fmt: skip
        axes.set_xlim(0, count)
        axes.set_ylim(0, 1.25 * highest)
        axes.set_xticks(np.arange(count) + 0.5, [str(k) for k in range(count)])
        axes.tick_params(axis="x", length=0)
        axes.set_yticks(range(highest + 1))
        axes.set_xlabel(picture.over)
        axes.set_ylabel("dimension")
        axes.set_title(picture.title, loc="left", pad=22)
        axes.text(
            0, 1.025, picture.end, transform=axes.transAxes, fontsize=10, color=GREY, va="bottom"
        )
        axes.legend(frameon=False, loc="upper left")
    return axes


def _filled(pen: Pen) -> dict[str, Any]:
    return {} if pen.colour is None else {"color": pen.colour}


def _draw_cells(picture: Cells, ax: Any, style: Mapping[str, Any]) -> Any:
    """Draw a table of tones, as high as its rows need."""
    if not picture.rows:
        raise ParameterError("there are no rows to draw")
    rows, columns = len(picture.rows), len(picture.columns)
    width = 2.2 + 0.075 * max(map(len, picture.rows)) + 1.15 * columns
    with drawing(ax, style, size=(width, 1.1 + _LINE_HEIGHT * rows)) as (axes, _):
        from matplotlib.colors import to_rgb

        image = [[to_rgb(_TONES[tone]) for tone in row] for row in picture.tones]
        axes.imshow(image, aspect="auto", interpolation="nearest")
        for i, row in enumerate(picture.texts):
            for j, text in enumerate(row):
                axes.text(j, i, text, ha="center", va="center", fontsize=9)
        axes.set_xticks(range(columns), picture.columns)
        axes.set_yticks(range(rows), [plain_text(name, 60) for name in picture.rows])
        axes.xaxis.tick_top()
        axes.tick_params(which="both", length=0, labelsize=9)
        axes.set_xticks(np.arange(columns - 1) + 0.5, minor=True)
        axes.set_yticks(np.arange(rows - 1) + 0.5, minor=True)
        axes.grid(True, which="minor", color="white", linewidth=2)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_title(picture.title, loc="left", pad=16)
    return axes


def wrapped(text: str, width: int = _WRAPPED) -> str:
    """Return a text broken into lines, formulas left in one piece."""
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
