"""The figure of the first layer: simulated singular values, theory over them, the outlier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ..figures import checked_axes, number_text, plain_text, styled
from ..spectra.spectrum import Caption, Drawing, draw
from .figures.axes import loss_note

if TYPE_CHECKING:
    from .model import OneGradientStep
    from .weight_spike import WeightSpike

_POINTS = 801


def plot_singular_values(spike: WeightSpike, singular_values: Any = None, *, ax: Any = None) -> Any:
    """Draw density and outlier of the first layer's singular values.

    Parameters
    ----------
    spike : WeightSpike
    singular_values : array-like or Dataset, optional
        Simulated ones, of one network or of several (a row each), or what
        ``OneGradientStep.simulate_spectra`` returns; drawn as a histogram. Those
        beyond the bulk are marked.
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
    samples = []
    if singular_values is not None:
        samples = [("simulation", _rows(singular_values).ravel())]
    lower, upper = map(float, spike.bulk_edges)
    # Nodes that crowd at the edges, where the density has roots.
    points = lower + (upper - lower) * np.sin(np.linspace(0, np.pi / 2, _POINTS)) ** 2
    with styled():
        axes = checked_axes(ax)
        drawing = Drawing(
            points, spike.density(points), np.zeros(_POINTS, dtype=np.int64), (lower, upper),
            (float(spike.singular_value),) if spike.supercritical else (),
        )  # fmt: skip
        draw(axes, drawing, samples, _caption(spike))
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


def _caption(spike: WeightSpike) -> Caption:
    model = spike.model
    noise = rf", $\Delta={model.noise_variance:.4g}$" if model.noise_variance else ""
    title = (
        rf"{plain_text(model.student)} on {plain_text(model.teacher)}, $\beta={model.beta:.4g}$, "
        rf"$\alpha_0={number_text(model.step_samples)}$, "
        rf"$\eta={model.step_size:.4g}${loss_note(model)}{noise}"
    )
    notes = () if spike.supercritical else (r"no outlier: $\theta_1 \leq \beta^{1/4}$",)
    return Caption(r"singular value of the first layer $W_1$", title, notes)
