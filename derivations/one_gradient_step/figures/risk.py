"""The risk of random and of trained features over one parameter: theory and finite sizes."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ParameterError
from ...figures import BLUE, GREY, VERMILLION, checked_axes, set_heading, set_scale, styled
from ...penalties import PAPER_RIDGE, RIDGE, as_ridge, given_penalty
from ...spiked_random_features.paper_figures.drawing import legend_below, plain_log_ticks
from .axes import AXES, checked_values, pair_title, parameters_text

if TYPE_CHECKING:
    import xarray as xr

    from ..model import OneGradientStep

FEATURES = ("gaussian", "network")
_LAYERS = {"initial": (BLUE, "random features $W_0$"), "trained": (VERMILLION, "after the step")}
_MARKS = {"gaussian": ("s", "Gaussian model"), "network": ("o", "networks")}
_SIMULATED = tuple(
    name
    for column in ("risk_initial", "risk_trained", "improvement")
    for name in (column, f"{column}_standard_error")
)


@dataclass(frozen=True)
class FiniteSizes:
    """What is simulated beside a curve.

    Attributes
    ----------
    values : sequence of float
        Where on the axis.
    dimension : int
        Input dimension d.
    seeds : int
        Repetitions.
    features : tuple of {"gaussian", "network"}
        The linearised model with Gaussian features, and the network itself.
    seed : int
        Entropy.
    progress : bool or None
        Default: a bar where the standard error stream is a terminal.
    store : path, optional
        Folder with one file for each finished repetition; what is found there is not computed
        again.
    """

    values: Sequence[float]
    dimension: int = 200
    seeds: int = 8
    features: tuple[str, ...] = FEATURES
    seed: int = 0
    progress: bool | None = None
    store: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        unknown = [name for name in self.features if name not in FEATURES]
        if unknown or not self.features:
            raise ParameterError(
                f"features must be some of {', '.join(FEATURES)}, got {self.features!r}"
            )


def risk_data(
    model: OneGradientStep,
    over: str,
    values: object,
    *,
    ridge: object = None,
    simulated: FiniteSizes | None = None,
) -> xr.Dataset:
    """Return the risk over one parameter, with simulations next to it.

    Parameters
    ----------
    model : OneGradientStep
        Has the other parameters. Where it has no `alpha0`, the samples of the step follow alpha.
    over : {"alpha", "beta", "step_size", "noise_variance", "ridge", "paper_ridge"}
    values : sequence of float
        Where on that axis.
    ridge : float or PaperRidge, optional
        Needed unless the axis is the penalty.
    simulated : FiniteSizes, optional

    Returns
    -------
    xarray.Dataset
        What ``model.curve`` returns, over `over`, with ``best_linear_error``; simulated means
        as ``network_risk_initial``, ``gaussian_improvement``, … with their ``…_standard_error``,
        over ``simulated``. Attributes hold the model. After an interrupt, ``interrupted`` is 1
        among them, and the means at values that were not finished are nan.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    KeyboardInterrupt
        If interrupted before all repetitions at one value had finished. Finished ones are in the
        store nevertheless.
    """
    penalty = _penalty(over, ridge)
    grid = checked_values(over, values)
    if simulated is not None and not isinstance(simulated, FiniteSizes):
        raise ParameterError(f"simulated must be FiniteSizes or None, got {simulated!r}")
    points = checked_values(over, simulated.values) if simulated is not None else grid[:0]
    arguments: dict[str, Any] = {**penalty, over: np.union1d(grid, points)}
    data = model.curve(**as_ridge(arguments)).to_dataset()
    data = data.assign(best_linear_error=model.best_linear_error)
    data.attrs |= {"model": model.to_json(), "over": over, **penalty}
    if simulated is not None:
        means, interrupted = _simulations(model, over, points, penalty, simulated)
        data = data.assign_coords(simulated=points).assign(means)
        data.attrs |= {
            "dimension": simulated.dimension, "seeds": simulated.seeds,
            "interrupted": int(interrupted),
        }  # fmt: skip
    return data


def plot_risk(data: xr.Dataset, *, ax: Any = None) -> Any:
    """Draw what :func:`risk_data` returned.

    Lines are the theory, squares the model with Gaussian features, circles networks, with the
    standard errors of their means. A dotted vertical line marks n = N, where the risk peaks.

    Parameters
    ----------
    data : xarray.Dataset
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure, found as ``axes.figure``.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ParameterError
        If `data` is something else.
    MissingDependencyError
        Without matplotlib.
    """
    over = getattr(data, "attrs", {}).get("over")
    if over not in AXES or "risk_trained" not in data:
        raise ParameterError("data must be a dataset as returned by risk_data")
    from ..model import OneGradientStep

    model = OneGradientStep.from_json(data.attrs["model"])
    with styled():
        axes = checked_axes(ax)
        for name, (colour, label) in _LAYERS.items():
            alone = data.sizes[over] == 1
            axes.plot(data[over], data[f"risk_{name}"], color=colour, label=label, zorder=3,
                      marker="D" if alone else None)  # fmt: skip
            for features, (mark, _) in _MARKS.items():
                _draw_points(axes, data, f"{features}_risk_{name}", mark, colour)
        for features, (mark, text) in _MARKS.items():
            if f"{features}_risk_initial" in data:
                label = rf"{text}, $d = {data.attrs['dimension']}$ ($\pm$ s.e.)"
                axes.plot([], [], mark, color=GREY, markerfacecolor="white", label=label)
        _draw_bound(axes, float(data["best_linear_error"]))
        _draw_peak(axes, model, over, data[over].to_numpy())
        set_scale(axes.xaxis, data[over].to_numpy())
        axes.set_yscale("log")
        plain_log_ticks(axes)
        axes.grid(True, which="major", color="#e4e4e4", linewidth=0.6, zorder=0)
        axes.set_axisbelow(True)
        axes.set_xlabel(AXES[over])
        axes.set_ylabel(r"risk $\mathbb{E}\,(\hat f - f_*)^2$")
        fixed = {k: float(data.attrs[k]) for k in (RIDGE, PAPER_RIDGE) if k in data.attrs}
        set_heading(axes, pair_title(model), parameters_text(model, (over,), **fixed))
        legend_below(axes, 2)
    return axes


def _penalty(over: str, ridge: object) -> dict[str, Any]:
    if (ridge is None) != (over in (RIDGE, PAPER_RIDGE)):
        raise ParameterError(
            f"the axis is {over} itself: leave out ridge"
            if ridge is not None
            else "give ridge, the penalty, as a number or as giantstep.paper_ridge(...)"
        )
    return {} if ridge is None else dict((given_penalty(ridge),))


def _simulations(
    model: OneGradientStep,
    over: str,
    points: np.ndarray[Any, Any],
    penalty: dict[str, Any],
    simulated: FiniteSizes,
) -> tuple[dict[str, Any], bool]:
    """Return means and their errors over the points, and whether some are missing."""
    from tqdm.auto import tqdm

    runs = [(features, k) for features in simulated.features for k in range(len(points))]
    rows: dict[tuple[str, int], dict[str, float]] = {}
    hidden = None if simulated.progress is None else not simulated.progress
    with tqdm(total=len(runs), delay=1, leave=False, disable=hidden, unit="point") as bar:
        try:
            for features, k in runs:
                rows[features, k] = _point(
                    model, over, float(points[k]), penalty, simulated, features
                )
                bar.update()
        except KeyboardInterrupt:
            if not rows:
                raise
    found = {
        f"{features}_{name}": (
            "simulated",
            [rows.get((features, k), {}).get(name, math.nan) for k in range(len(points))],
        )
        for features in dict.fromkeys(features for features, _ in rows)
        for name in _SIMULATED
    }
    return found, len(rows) < len(runs)


def _point(
    model: OneGradientStep,
    over: str,
    value: float,
    penalty: dict[str, Any],
    simulated: FiniteSizes,
    features: str,
) -> dict[str, float]:
    here: OneGradientStep
    fitted: dict[str, Any]
    if over in (RIDGE, PAPER_RIDGE):
        here, fitted = model, {over: value}
    else:
        changed: dict[str, Any] = {over: value}
        here, fitted = replace(model, **changed), penalty
    result = here.simulate(
        simulated.dimension, seeds=simulated.seeds, features=features, seed=simulated.seed,
        progress=False, store=simulated.store, **as_ridge(fitted),
    )  # fmt: skip
    if result.attrs["interrupted"]:
        # Means of fewer repetitions than at the other values would mislead.
        raise KeyboardInterrupt
    return {name: float(np.ravel(result[name].to_numpy())[0]) for name in _SIMULATED}


def _draw_points(axes: Any, data: xr.Dataset, name: str, mark: str, colour: str) -> None:
    if name not in data:
        return
    done = np.isfinite(data[name].to_numpy())
    bars = data[f"{name}_standard_error"].to_numpy()[done]
    # One repetition has no standard error.
    axes.errorbar(
        data["simulated"][done], data[name][done], yerr=bars if np.isfinite(bars).all() else None,
        fmt=mark, color=colour, markersize=4.5, markerfacecolor="white", markeredgewidth=1.2,
        elinewidth=1.2, capsize=2.5, zorder=4,
    )  # fmt: skip


def _draw_bound(axes: Any, error: float) -> None:
    if error > 0:
        axes.axhline(error, color=GREY, linestyle=(0, (5, 3)), linewidth=1.3, zorder=2,
                     label=r"best linear error $\|P_{>1}f_*\|^2$")  # fmt: skip


def _draw_peak(axes: Any, model: OneGradientStep, over: str, grid: np.ndarray[Any, Any]) -> None:
    place = {"alpha": model.beta, "beta": model.alpha}.get(over, math.nan)
    if grid[0] <= place <= grid[-1]:
        axes.axvline(place, color=GREY, linestyle=":", linewidth=1.2, zorder=1, label="$n = N$")
