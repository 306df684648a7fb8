"""The figure of the first layer: simulated singular values, theory over them, the outlier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ..figures import BLUE, GREEN, GREY, VERMILLION, new_figure, plain_text, styled
from .figures.axes import loss_note

if TYPE_CHECKING:
    from .model import OneGradientStep
    from .weight_spike import WeightSpike

_BINS = 60
_POINTS = 801
_ZERO = 1e-9


def plot_singular_values(spike: WeightSpike, singular_values: Any = None, *, ax: Any = None) -> Any:
    """Draw density and outlier of the first layer's singular values.

    Parameters
    ----------
    spike : WeightSpike
    singular_values : array-like or Dataset, optional
        Simulated ones, of one network or of several (a row each), or what
        ``OneGradientStep.simulate_spectra`` returns; drawn as a histogram. Of each network the
        largest is marked.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ParameterError
        If `singular_values` are no nonnegative numbers, or `ax` no axes.
    """
    if ax is not None and not hasattr(ax, "stairs"):
        raise ParameterError(f"ax must be axes of matplotlib, got {ax!r}")
    values = None if singular_values is None else _rows(singular_values)
    with styled():
        axes = new_figure().add_subplot() if ax is None else ax
        _draw(axes, spike, values)
    return axes


def plot_model(
    model: OneGradientStep, dimension: int | None, *, seeds: int, seed: int, ax: Any
) -> Any:
    """Draw theory and networks; see ``OneGradientStep.plot_singular_values``."""
    simulated = None
    if dimension is not None:
        simulated = model.simulate_spectra(dimension, seeds=seeds, matrices=("weights",), seed=seed)
    return plot_singular_values(model.weight_spike(), simulated, ax=ax)


def _rows(given: Any) -> NDArray[np.float64]:
    """Return singular values with one row for each network."""
    found = given
    if hasattr(given, "data_vars"):
        if "singular_values" not in given:
            raise ParameterError(
                "singular_values must be a dataset of simulate_spectra with matrices=('weights',)"
            )
        last = given["singular_values"]
        found = (last.isel(step=-1) if "step" in last.dims else last).to_numpy()
    try:
        array = np.atleast_2d(np.asarray(found, dtype=float))
    except (TypeError, ValueError):
        array = np.zeros((0, 0))
    if array.size == 0 or array.ndim > 2 or not (np.isfinite(array) & (array >= 0)).all():
        raise ParameterError(
            "singular_values must be nonnegative numbers, one row for each network, got "
            f"{type(given).__name__}"
        )
    return array


def _draw(axes: Any, spike: WeightSpike, values: NDArray[np.float64] | None) -> None:
    lower, upper = map(float, spike.bulk_edges)
    right = max(upper, float(spike.singular_value))
    if values is not None:
        kept = values[values > _ZERO * values.max()]
        right = max(right, float(kept.max()))
        bins = np.linspace(min(lower, float(kept.min())), right, _BINS + 1)
        counts, _ = np.histogram(kept, bins)
        share = counts / kept.size / np.diff(bins)
        axes.stairs(share, bins, fill=True, color=GREY, alpha=0.3, label="simulation", zorder=1)
    # Nodes that crowd at the edges, where the density has roots.
    angle = np.linspace(0, np.pi, _POINTS)
    points = lower + (upper - lower) * np.sin(angle / 2) ** 2
    axes.plot(points, spike.density(points), color=BLUE, zorder=3, label=r"theory, $d\to\infty$")
    if values is not None and spike.supercritical:
        top = values.max(axis=1)
        axes.plot(
            top, np.zeros(len(top)), marker="|", color=GREEN, markersize=16, markeredgewidth=1.5,
            linestyle="none", clip_on=False, zorder=4, label="largest, simulated",
        )  # fmt: skip
    if spike.supercritical:
        place = float(spike.singular_value)
        axes.plot(
            [place], [0], marker="^", color=VERMILLION, markersize=8, clip_on=False, zorder=5,
            linestyle="none", label=f"outlier, theory: {place:.4g}",
        )  # fmt: skip
    else:
        axes.plot([], [], linestyle="none", label=r"no outlier: $\theta_1 \leq \beta^{1/4}$")
    width = right - lower
    axes.set_xlim(max(lower - 0.05 * width, 0.0), right + 0.05 * width)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(r"singular value of the first layer $W_1$")
    axes.set_ylabel("density")
    model = spike.model
    noise = rf", $\Delta={model.noise_variance:.4g}$" if model.noise_variance else ""
    names = f"{plain_text(model.student)} on {plain_text(model.teacher)}"
    axes.set_title(
        rf"{names}, $\beta={model.beta:.4g}$, $\alpha_0={_number(model.step_samples)}$, "
        rf"$\eta={model.step_size:.4g}${loss_note(model)}{noise}"
    )
    axes.legend(frameon=False)


def _number(value: float) -> str:
    return r"\infty" if value == float("inf") else f"{value:.4g}"
