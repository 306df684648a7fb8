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
    from ...numeric.spectral_bulk import Bulk
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
    """What a figure says of a matrix.

    Attributes
    ----------
    matrix : str
        The matrix, in mathtext.
    title : str
    notes : sequence of str
        Further lines of the legend.
    """

    matrix: str
    title: str
    notes: Sequence[str] = ()


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
        _draw(axes, spectrum, samples, caption)
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


def _visible(spectrum: Spectrum, bulk: Bulk) -> tuple[float, float]:
    """Return the ends of the bulk, or of what is visible of it if that is decades away."""
    inside = np.isfinite(bulk.density) & (bulk.points > 0)
    points = bulk.points[inside]
    curve = points * bulk.density[inside]
    shown = points[curve > _VISIBLE * curve.max()]
    low, high = (float(x) for x in (spectrum.edges[0, 0], spectrum.edges[-1, 1]))
    return (
        low if low > shown[0] / 100 else float(shown[0]),
        high if high < 100 * shown[-1] else float(shown[-1]),
    )


def _draw(axes: Any, spectrum: Spectrum, samples: list[tuple[str, Real]], caption: Caption) -> None:
    outliers = [float(x) for x in spectrum.outliers]
    bulk = spectrum.bulk()
    if len(spectrum.edges):
        low, high = _visible(spectrum, bulk)
    else:
        places = [*outliers, *(float(place) for place, _ in spectrum.atoms)]
        low, high = 0.5 * min(places), 1.5 * max(places)
    last = max([high, *outliers])
    logarithmic = bool(np.log10(high / low) > _DECADES)
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
    for number in range(len(spectrum.edges)):
        part = (bulk.interval == number) & np.isfinite(bulk.density)
        x = bulk.points[part]
        curve = bulk.density[part] * (x if logarithmic else 1)
        shown = curve[(x >= low) & (x <= high)]
        tops.append((shown.max(), np.quantile(shown, 0.75)))
        axes.plot(x, curve, color=BLUE, zorder=3, label=None if number else r"theory, $d\to\infty$")
    if len(spectrum.edges) and not spectrum.soft[-1, 1]:
        edge = float(spectrum.bulk_edge)
        axes.axvline(edge, color=BLUE, linestyle=(0, (2, 2)), linewidth=1, zorder=0, label="edge")
    if outliers:
        several = "s" if len(outliers) > 1 else ""
        axes.plot(
            outliers, [0] * len(outliers), marker="^", color=VERMILLION, markersize=8, zorder=6,
            linestyle="none", transform=axes.get_xaxis_transform(), **_MARK,
            label=f"outlier{several} {', '.join(f'{x:.4g}' for x in outliers)}",
        )  # fmt: skip
    for note in caption.notes:
        axes.plot([], [], marker=">", color=GREEN, linestyle="none", markersize=8, label=note)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(low / 2, far * 1.5)
    else:
        axes.set_xlim(max(low - 0.05 * far, -0.02 * far), 1.06 * far)
    if tops:
        highest, usual = (max(column) for column in zip(*tops, strict=True))
        # A density that diverges at an end would flatten all the rest.
        axes.set_ylim(0, min(1.15 * highest, 6 * usual) if usual > 0 else None)
    axes.set_xlabel(f"eigenvalue of {caption.matrix}" + (r" $\;x$" if logarithmic else ""))
    axes.set_ylabel(r"density per unit of $\log x$" if logarithmic else "density")
    atoms = "".join(
        f", {float(mass):.3g} at {'zero' if place == 0 else f'{float(place):.3g}'}"
        for place, mass in spectrum.atoms
    )
    axes.set_title(caption.title + atoms)
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none", loc="best")
