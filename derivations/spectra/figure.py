"""The figure of a spectrum: density, edge and outliers over simulated eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ...numeric.arguments import whole_number
from ..figures import BLUE, GREEN, GREY, VERMILLION, checked_axes, styled

if TYPE_CHECKING:
    from .spectrum import Spectrum

Real = NDArray[np.float64]

_BINS = 60
# More than so many decades between the ends are drawn on a logarithmic axis, as a density per
# unit of log x.
_DECADES = 2.5
# Of its maximum, what one sees of a density per unit of log x.
_VISIBLE = 0.02
# Simulated eigenvalues farther out, in units of the last mark, grow with the width.
_FAR = 1.5
_COLOURS = (GREY, GREEN)
_MARK = {"clip_on": False, "in_layout": False}


@dataclass(frozen=True)
class Caption:
    """What a figure says.

    Attributes
    ----------
    axis : str
        What is counted, in mathtext.
    title : str
    notes : sequence of str
        Further lines of the legend.
    """

    axis: str
    title: str
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Drawing:
    """What is drawn of a theory.

    Attributes
    ----------
    points, density, interval : array (n,)
        Of the bulk; to which interval a point belongs.
    ends : tuple of float
        Of what is visible of the bulk.
    outliers : tuple of float
    edge : float or None
        Where the bulk ends, if it is marked.
    logarithmic : bool
        Draw a density per unit of log x.
    """

    points: Real
    density: Real
    interval: NDArray[np.int64]
    ends: tuple[float, float]
    outliers: tuple[float, ...]
    edge: float | None = None
    logarithmic: bool = False


def plot_spectrum(
    spectrum: Spectrum, simulation: Any = None, *, width: int | None = None, ax: Any = None
) -> Any:
    """Draw a spectrum; see :meth:`.spectra.spectrum.Spectrum.plot`."""
    samples = []
    if simulation is not None:
        samples = [(label, _checked(values)) for label, values in spectrum._simulated(simulation)]
    if width is None:
        width = getattr(simulation, "width", None)
    caption = spectrum._caption(None if width is None else whole_number("width", width))
    with styled():
        axes = checked_axes(ax)
        draw(axes, _drawing(spectrum), samples, caption)
    return axes


def _checked(values: Any) -> Real:
    try:
        found = np.asarray(values, dtype=float).ravel()
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.size == 0 or not np.isfinite(found).all() or found.max() <= 0:
        raise ParameterError(
            "simulation must hold finite eigenvalues, not all of them zero, as simulate() "
            "returns them"
        )
    return found


def _drawing(spectrum: Spectrum) -> Drawing:
    outliers = tuple(float(x) for x in spectrum.outliers)
    bulk = spectrum.bulk()
    if not len(spectrum.edges):
        places = [*outliers, *(float(place) for place, _ in spectrum.atoms)]
        ends = 0.5 * min(places), 1.5 * max(places)
        return Drawing(bulk.points, bulk.density, bulk.interval, ends, outliers)
    inside = np.isfinite(bulk.density) & (bulk.points > 0)
    points = bulk.points[inside]
    curve = points * bulk.density[inside]
    shown = points[curve > _VISIBLE * curve.max()]
    low, high = (float(x) for x in (spectrum.edges[0, 0], spectrum.edges[-1, 1]))
    # The ends, or what is visible of the bulk if that is decades away.
    ends = (
        low if low > shown[0] / 100 else float(shown[0]),
        high if high < 100 * shown[-1] else float(shown[-1]),
    )
    return Drawing(
        bulk.points, bulk.density, bulk.interval, ends, outliers,
        edge=None if spectrum.soft[-1, 1] else high,
        logarithmic=bool(np.log10(ends[1] / ends[0]) > _DECADES),
    )  # fmt: skip


def draw(axes: Any, drawing: Drawing, samples: list[tuple[str, Real]], caption: Caption) -> None:
    """Draw densities over histograms of samples, each with its label, with marks and legend."""
    low, high = drawing.ends
    outliers, logarithmic = drawing.outliers, drawing.logarithmic
    last = max([high, *outliers])
    if logarithmic:
        bins = np.geomspace(low / 1.5, high * 1.1, _BINS + 1)
    else:
        bins = np.linspace(max(low - 0.02 * high, 1e-9 * high), 1.05 * high, _BINS + 1)
    far = last
    for number, ((label, values), colour) in enumerate(zip(samples, _COLOURS, strict=False)):
        counts, _ = np.histogram(values, bins)
        # A bin holds many eigenvalues or none: those of a narrow interval are told apart.
        share = counts / values.size / np.diff(np.log(bins) if logarithmic else bins)
        style = {"fill": True, "alpha": 0.3} if number == 0 else {"linewidth": 1.2}
        axes.stairs(share, bins, color=colour, label=label, zorder=1 + number, **style)
        beyond = values[(values > 1.02 * high) & (values < _FAR * last)]
        far = max([far, *beyond])
        # Marks across the axis are not clipped; a layout must make no room for them.
        axes.plot(
            beyond, np.full(len(beyond), -0.012 * number), "|", color=colour, markersize=11,
            markeredgewidth=1.3, zorder=4, transform=axes.get_xaxis_transform(), **_MARK,
        )  # fmt: skip
    tops = []
    for number in np.unique(drawing.interval):
        part = (drawing.interval == number) & np.isfinite(drawing.density)
        x = drawing.points[part]
        curve = drawing.density[part] * (x if logarithmic else 1)
        shown = curve[(x >= low) & (x <= high)]
        tops.append((shown.max(), np.quantile(shown, 0.75)))
        axes.plot(x, curve, color=BLUE, zorder=3, label=None if number else r"theory, $d\to\infty$")
    if drawing.edge is not None:
        axes.axvline(
            drawing.edge, color=BLUE, linestyle=(0, (2, 2)), linewidth=1, zorder=0, label="edge"
        )
    if outliers:
        several = "outliers" if len(outliers) > 1 else "outlier"
        axes.plot(
            outliers, [0] * len(outliers), marker="^", color=VERMILLION, markersize=8, zorder=6,
            linestyle="none", transform=axes.get_xaxis_transform(), **_MARK,
            label=f"{several}, theory: {', '.join(f'{x:.4g}' for x in outliers)}",
        )  # fmt: skip
    for note in caption.notes:
        axes.plot([], [], " ", label=note)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(low / 2, far * 1.5)
    else:
        axes.set_xlim(max(low - 0.05 * far, -0.02 * far), 1.06 * far)
    if tops:
        highest, usual = (max(column) for column in zip(*tops, strict=True))
        # A density that diverges at an end would flatten all the rest.
        axes.set_ylim(0, min(1.15 * highest, 6 * usual) if usual > 0 else None)
    axes.set_xlabel(caption.axis + (r" $\;x$" if logarithmic else ""))
    axes.set_ylabel(r"density per unit of $\log x$" if logarithmic else "density")
    axes.set_title(caption.title)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=True, framealpha=0.9, edgecolor="none", loc="best")
