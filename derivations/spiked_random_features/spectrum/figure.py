"""The figure of a spectrum: density, histogram of simulated eigenvalues, marks at outliers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ParameterError
from ....numeric.arguments import whole_number
from ...figures import BLUE, GREEN, GREY, VERMILLION, new_figure, styled

if TYPE_CHECKING:
    from .spectrum import Spectrum

# More than so many decades between the ends are drawn on a logarithmic axis, as a density per
# unit of log x.
_DECADES = 2.5
_BINS = 60
_SHOWN = 1e-4
_NAMES = {
    "sample": r"eigenvalue of $p^{-1}\sum_\mu\varphi_\mu\varphi_\mu^\top$",
    "empirical": r"eigenvalue of $n^{-1}\sum_\mu\varphi_\mu\varphi_\mu^\top$",
    "kernel": r"eigenvalue of $\varphi_\mu\cdot\varphi_\nu/p$",
    "population": r"eigenvalue of $\mathbb{E}\,\varphi\varphi^\top$",
}


def plot_spectrum(
    spectrum: Spectrum, simulation: Any = None, *, width: int | None = None, axis: Any = None
) -> Any:
    """Draw a spectrum; see :meth:`.spectrum.spectrum.Spectrum.plot`.

    Parameters
    ----------
    spectrum : Spectrum
    simulation : SimulatedSpectrum or array-like of eigenvalues, optional
        Ascending along the last axis, zeros included; drawn as a histogram.
    width : int, optional
        Mark the eigenvalue of the mean direction at this width.
    axis : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if axis is not None and not hasattr(axis, "hist"):
        raise ParameterError(f"ax must be axes of matplotlib, got {axis!r}")
    values = None if simulation is None else _eigenvalues(simulation)
    if width is None:
        width = getattr(simulation, "width", spectrum.model.width)
    width = None if width is None else whole_number("width", width)
    with styled():
        axes = new_figure().add_subplot() if axis is None else axis
        _draw(axes, spectrum, values, width)
    return axes


def _eigenvalues(simulation: Any) -> NDArray[np.float64]:
    found = getattr(simulation, "eigenvalues", simulation)
    try:
        array = np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.size == 0 or not np.isfinite(array).all():
        raise ParameterError("simulation must hold eigenvalues, as Spectrum.simulate returns them")
    return array


def _draw(
    axes: Any, spectrum: Spectrum, values: NDArray[np.float64] | None, width: int | None
) -> None:
    # What a reader sees: the bulk but for the thinnest ends of its tails.
    shown = spectrum.cumulative - (spectrum.cumulative[0] if len(spectrum.points) else 0)
    inside = (shown > _SHOWN) & (shown < shown[-1] - _SHOWN) if len(shown) else shown > 0
    visible = spectrum.points[inside]
    marks = list(spectrum.outliers)
    logarithmic = bool(len(visible)) and np.log10(visible[-1] / max(visible[0], 1e-300)) > _DECADES
    if values is not None:
        positive = values[values > 1e-12 * values.max()]
        low, high = (visible[0], visible[-1]) if len(visible) else (positive.min(), positive.max())
        bulk = positive[(positive > low / 3) & (positive < 1.3 * high)]
        edges = (
            np.geomspace(bulk.min(), bulk.max(), _BINS + 1)
            if logarithmic
            else np.linspace(bulk.min(), bulk.max(), _BINS + 1)
        )
        counts, _ = np.histogram(bulk, edges)
        share = counts / values.size / np.diff(np.log(edges) if logarithmic else edges)
        axes.stairs(share, edges, fill=True, color=GREY, alpha=0.3, label="simulation", zorder=1)
    for number, (k, _) in enumerate(enumerate(spectrum.edges)):
        part = (spectrum.points >= spectrum.edges[k, 0]) & (spectrum.points <= spectrum.edges[k, 1])
        x, density = spectrum.points[part], spectrum.density[part]
        axes.plot(
            x, density * x if logarithmic else density, color=BLUE, zorder=3,
            label=None if number else r"theory, $d\to\infty$",
        )  # fmt: skip
    top = None
    if width is not None and len(spectrum._functions.expected) > 2:
        top = spectrum.top_eigenvalue(width)
        marks.append(top)
    for number, x in enumerate(spectrum.outliers):
        axes.plot(
            [x], [0], marker="^", color=VERMILLION, markersize=8, clip_on=False, zorder=5,
            linestyle="none", label=None if number else "outlier",
        )  # fmt: skip
    if top is not None:
        note = rf"top eigenvalue, $p={width}$: {top:.4g}"
        axes.plot([], [], marker=">", color=GREEN, linestyle="none", markersize=8, label=note)
    if values is not None and values.ndim == 2 and marks:
        _small_marks(axes, spectrum, values)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(visible[0] / 2, max([visible[-1], *spectrum.outliers]) * 2)
    elif len(visible):
        right = max([visible[-1], *spectrum.outliers])
        axes.set_xlim(max(visible[0] - 0.05 * right, 0), 1.06 * right)
    axes.set_ylim(bottom=0)
    if not logarithmic and len(visible):
        # A density that diverges at an end would flatten all the rest.
        usual = np.quantile(spectrum.density[inside], 0.9)
        if spectrum.density[inside].max() > 8 * usual:
            axes.set_ylim(top=4 * usual)
    axes.set_xlabel(_NAMES[spectrum.covariance] + (r" $\;x$" if logarithmic else ""))
    axes.set_ylabel(r"density per unit of $\log x$" if logarithmic else "density")
    title = f"{spectrum.model.derivation.student}, " + rf"$\alpha={spectrum.alpha:.4g}$, "
    atoms = "".join(f", atom of {mass:.3g} at {place:.3g}" for place, mass in spectrum.atoms)
    axes.set_title(title + rf"$\beta={spectrum.model.beta:.4g}$" + atoms)
    axes.legend(frameon=False, loc="best")


def _small_marks(axes: Any, spectrum: Spectrum, values: NDArray[np.float64]) -> None:
    """Mark simulated eigenvalues beyond the bulk, on the axis."""
    if not len(spectrum.edges) or not spectrum.outliers:
        return
    high = spectrum.edges[-1, 1]
    beyond = values[(values > high) & (values < 1.5 * max(spectrum.outliers))]
    axes.plot(
        beyond, np.zeros(len(beyond)), "|", color=GREY, markersize=12, zorder=4, clip_on=False
    )
