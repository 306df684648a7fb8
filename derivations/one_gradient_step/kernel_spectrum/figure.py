"""The figure of a kernel's spectrum: density, edge and outlier over simulated eigenvalues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ParameterError
from ...figures import BLUE, GREEN, GREY, VERMILLION, new_figure, plain_text, styled
from ..figures.axes import loss_note

if TYPE_CHECKING:
    from .spectrum import ConjugateKernel

Real = NDArray[np.float64]

_BINS = 60
_POINTS = 400
# More than so many decades between the ends are drawn on a logarithmic axis.
_DECADES = 2.5
# Of its maximum, what one sees of a density per unit of log x.
_VISIBLE = 0.02
_SOURCES = (
    ("kernel_eigenvalues", "network", GREY),
    ("linearised_eigenvalues", "linearised features", GREEN),
)


def plot_kernel_spectrum(kernel: ConjugateKernel, simulation: Any = None, *, ax: Any = None) -> Any:
    """Draw the density of the bulk, with marks at its right edge and at the outlier.

    Parameters
    ----------
    kernel : ConjugateKernel
    simulation : Dataset or array-like of eigenvalues, optional
        As ``OneGradientStep.simulate_spectra`` returns it, with eigenvalues of the network's
        kernel, of its linearisation, or both; or eigenvalues, zeros included, in any shape.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ParameterError
        If `simulation` holds no eigenvalues, or none at this stage of training.
    MissingDependencyError
        Without matplotlib.
    """
    if ax is not None and not hasattr(ax, "stairs"):
        raise ParameterError(f"ax must be axes of matplotlib, got {ax!r}")
    samples = [] if simulation is None else _samples(kernel, simulation)
    with styled():
        axes = new_figure().add_subplot() if ax is None else ax
        _draw(axes, kernel, samples)
    return axes


def _samples(kernel: ConjugateKernel, simulation: Any) -> list[tuple[str, str, Real]]:
    """Return (label, colour, eigenvalues) of what was simulated."""
    variables = getattr(simulation, "data_vars", None)
    if variables is None:
        try:
            values = np.asarray(simulation, dtype=float)
        except (TypeError, ValueError):
            values = np.zeros(0)
        return [("simulation", GREY, _checked(values))]
    step = 1 if kernel.trained else 0
    found = []
    for name, label, colour in _SOURCES:
        if name in variables:
            if step not in simulation[name].step:
                raise ParameterError(
                    f"simulation holds no eigenvalues after {step} steps; the kernel is the one "
                    + ("after" if step else "before")
                    + " the step"
                )
            values = simulation[name].sel(step=step).to_numpy()
            found.append((label, colour, _checked(values)))
    if not found:
        raise ParameterError(
            "simulation must hold eigenvalues of kernels, as simulate_spectra(d, "
            "matrices=['kernel']) returns them"
        )
    return found


def _checked(values: Real) -> Real:
    if values.size == 0 or not np.isfinite(values).all() or values.max() <= 0:
        raise ParameterError("simulation must hold finite eigenvalues, not all of them zero")
    return values.ravel()


def _visible_start(bulk: Any, edge: float) -> float:
    """Return the left edge, or where the bulk becomes visible if that is decades above it.

    With as many samples as neurons the density per unit of x diverges at zero.
    """
    inside = np.isfinite(bulk.density) & (bulk.points > 0)
    points = bulk.points[inside]
    curve = points * bulk.density[inside]
    start = float(points[np.argmax(curve > _VISIBLE * curve.max())])
    return edge if edge > start / 100 else start


def _draw(axes: Any, kernel: ConjugateKernel, samples: list[tuple[str, str, Real]]) -> None:
    bulk = kernel.bulk(_POINTS)
    edges = kernel.edges.astype(float)
    low, high = _visible_start(bulk, edges[0, 0]), edges[-1, 1]
    far = max([float(kernel.eigenvalue), *(values.max() for _, _, values in samples)])
    logarithmic = np.log10(high / low) > _DECADES
    if logarithmic:
        bins = np.geomspace(low / 1.5, high * 1.1, _BINS + 1)
    else:
        bins = np.linspace(max(low - 0.02 * high, 1e-9 * high), 1.05 * high, _BINS + 1)
    # A bin holds many eigenvalues or none: those of a narrow interval are told apart.
    width = np.log(bins[1] / bins[0]) if logarithmic else bins[1] - bins[0]
    for number, (label, colour, values) in enumerate(samples):
        counts, _ = np.histogram(values, bins)
        share = counts / values.size / width
        style = {"fill": True, "alpha": 0.3} if number == 0 else {"linewidth": 1.2}
        axes.stairs(share, bins, color=colour, label=label, zorder=1 + number, **style)
        beyond = values[values > 1.02 * high]
        shift = -0.012 * number
        # Marks across the axis are not clipped; a layout must make no room for them.
        axes.plot(
            beyond, np.full(len(beyond), shift), "|", color=colour, markersize=11,
            markeredgewidth=1.3, zorder=4, clip_on=False, in_layout=False,
            transform=axes.get_xaxis_transform(),
        )  # fmt: skip
    tops = []
    for number in range(len(edges)):
        part = bulk.interval == number
        x, density = bulk.points[part], bulk.density[part]
        x, density = x[np.isfinite(density)], density[np.isfinite(density)]
        curve = density * x if logarithmic else density
        tops.append((curve.max(), np.quantile(curve, 0.75)))
        axes.plot(
            x, curve, color=BLUE, zorder=3,
            label=None if number else r"theory, $d\to\infty$",
        )  # fmt: skip
    axes.axvline(high, color=BLUE, linestyle=(0, (2, 2)), linewidth=1, zorder=0, label="edge")
    if kernel.outlier is not None:
        axes.plot(
            [float(kernel.outlier)], [0], marker="^", color=VERMILLION, markersize=8,
            clip_on=False, in_layout=False, zorder=6, linestyle="none",
            transform=axes.get_xaxis_transform(),
            label=rf"outlier $\zeta(\theta_1^2) = {float(kernel.outlier):.4g}$",
        )  # fmt: skip
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(low / 2, max(far, high) * 1.5)
    else:
        axes.set_xlim(max(low - 0.05 * far, -0.02 * far), 1.06 * max(far, high))
    highest = max(top for top, _ in tops)
    usual = max(middle for _, middle in tops)
    # A density that diverges at an end would flatten all the rest.
    axes.set_ylim(0, min(1.15 * highest, 6 * usual) if usual > 0 else None)
    axes.set_xlabel(r"eigenvalue of $\Phi\Phi^\top$" + (r" $\;x$" if logarithmic else ""))
    axes.set_ylabel(r"density per unit of $\log x$" if logarithmic else "density")
    model = kernel.model
    when = "before the step"
    if kernel.trained:
        when = rf"$\eta={model.step_size:.4g}${loss_note(model)}"
    atom = f", {float(kernel.atom):.3g} at zero" if kernel.atom else ""
    axes.set_title(
        f"{plain_text(model.student)}/{plain_text(model.teacher)}, "
        rf"$\alpha={model.alpha:.4g}$, $\beta={model.beta:.4g}$, {when}{atom}"
    )
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none", loc="best")
