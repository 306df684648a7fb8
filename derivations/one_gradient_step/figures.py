"""Figures of one gradient step: risks over a parameter, phase diagrams, best penalties, spectra."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ParameterError
from ...numeric.arguments import is_one_of, real_number
from ..curve_figure import MOST_LINES, draw_map
from ..curves import Curve
from ..figures import (
    BLUE,
    GREY,
    VERMILLION,
    draw_grid,
    draw_level,
    drawing,
    legend_below,
    legend_on_map,
    number_text,
    plain_log_ticks,
    plain_text,
    set_heading,
    set_scale,
)
from ..json_text import saved_model
from ..penalties import PAPER_RIDGE, RIDGE, as_ridge, given_penalty

if TYPE_CHECKING:
    import xarray as xr

    from .model import OneGradientStep

AXES = {
    "alpha": r"sample complexity $\alpha = n/d$",
    "beta": r"aspect ratio $\beta = N/d$",
    "step_size": r"step size $\eta$",
    "noise_variance": r"noise variance $\Delta$",
    "ridge": r"ridge penalty $\lambda$",
    "paper_ridge": r"ridge penalty $\lambda_B = (\beta/\alpha)\,\lambda$",
}
"""What a risk can be drawn over, with the labels."""

_FROM_ZERO = ("step_size", "noise_variance", "ridge", "paper_ridge")


def checked_values(name: str, values: object) -> np.ndarray[Any, Any]:
    """Return the values of an axis in ascending order, each once."""
    if not is_one_of(name, AXES):
        raise ParameterError(f"no axis is named {name!r}; there are: {', '.join(AXES)}")
    items = list(values) if hasattr(values, "__iter__") else [values]
    result = np.unique(np.array([real_number(name, value) for value in items], dtype=float))
    least = 0.0 if name in _FROM_ZERO else math.ulp(0.0)
    if not len(result) or not np.isfinite(result).all() or result[0] < least:
        wanted = ">= 0" if name in _FROM_ZERO else "positive"
        raise ParameterError(f"values of {name} must be {wanted} and finite, at least one")
    return result


def fixed_parameters(
    model: OneGradientStep, without: tuple[str, ...] = (), **more: float
) -> list[str]:
    """Return the parameters that a figure holds fixed, as equations of mathtext."""
    given = {
        r"\eta": ("step_size", model.step_size),
        r"\alpha": ("alpha", model.alpha),
        r"\alpha_0": ("alpha0", model.alpha0),
        r"\beta": ("beta", model.beta),
        r"\Delta": ("noise_variance", model.noise_variance),
        r"\lambda": ("ridge", more.get("ridge")),
        r"\lambda_B": ("paper_ridge", more.get("paper_ridge")),
    }
    return [
        f"{letter} = {number_text(value)}"
        for letter, (name, value) in given.items()
        if value is not None and name not in without
    ]


def loss_note(model: OneGradientStep) -> str:
    """Return what a figure adds to the step size η: of which loss it is, where not of the half."""
    return ", gradient of the full loss" if model.loss == "full" else ""


def pair_title(model: OneGradientStep) -> str:
    """Return the names of student and teacher, as text that mathtext shows as it is."""
    return f"student {plain_text(model.student)}, teacher {plain_text(model.teacher)}"


FEATURES = ("gaussian", "network")
_BOUND = r"best linear error $\|P_{>1}f_*\|^2$"
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
    """Return ``model.curve`` over one parameter as a dataset, with simulations next to it.

    Simulated means are ``network_risk_initial``, ``gaussian_improvement``, … with their
    ``…_standard_error``, over ``simulated``. After an interrupt, ``interrupted`` is 1 among the
    attributes, and the means at values that were not finished are nan; KeyboardInterrupt is raised
    if there are none. `ridge` is needed unless the axis is the penalty.
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
    return data if simulated is None else _with_networks(data, model, over, penalty, simulated)


def _with_networks(
    data: xr.Dataset,
    model: OneGradientStep,
    over: str,
    penalty: dict[str, Any],
    simulated: FiniteSizes,
) -> xr.Dataset:
    """Return risks over one parameter with the means of networks beside them."""
    points = checked_values(over, simulated.values)
    means, interrupted = _simulations(model, over, points, penalty, simulated)
    data = data.assign_coords(simulated=points).assign(means)
    data.attrs |= {
        "dimension": simulated.dimension, "seeds": simulated.seeds,
        "interrupted": int(interrupted),
    }  # fmt: skip
    return data


def plot_risk(data: xr.Dataset, *, ax: Any = None, **style: Any) -> Any:
    """Draw what :func:`risk_data` returned.

    Lines are the theory, squares the model with Gaussian features, circles networks, with the
    standard errors of their means. A dotted vertical line marks n = N, where the risk peaks.
    """
    over = _only_axis(data)
    if over is None:
        raise ParameterError("data must be a dataset as returned by risk_data")
    model = _model_of(data)
    with drawing(ax, style) as (axes, pen):
        alone, named = data.sizes[over] == 1, []
        for name, (_, label) in _LAYERS.items():
            # Colours follow each other, so that a second model in the same axes has its own.
            look = pen(label, several=True, zorder=3, marker="D" if alone else None)
            [line] = axes.plot(data[over], data[f"risk_{name}"], **look)
            named += [] if "label" in pen.style else [(line, label)]
            for features, (mark, _) in _MARKS.items():
                _draw_points(axes, data, f"{features}_risk_{name}", mark, line.get_color())
        for features, (mark, text) in _MARKS.items():
            if f"{features}_risk_initial" in data:
                label = rf"{text}, $d = {data.attrs['dimension']}$ ($\pm$ s.e.)"
                axes.plot([], [], mark, color=GREY, markerfacecolor="white", label=label)
        if (best := float(data.attrs["best_linear_error"])) > 0:
            draw_level(axes, best, _BOUND)
        _draw_peak(axes, model, over, data[over].to_numpy())
        set_scale(axes.xaxis, data[over].to_numpy())
        axes.set_yscale("log")
        plain_log_ticks(axes)
        draw_grid(axes)
        axes.set_xlabel(AXES[over])
        axes.set_ylabel(r"risk $\mathbb{E}\,(\hat f - f_*)^2$")
        fixed = {k: float(data.attrs[k]) for k in (RIDGE, PAPER_RIDGE) if k in data.attrs}
        set_heading(
            axes, pair_title(model), fixed_parameters(model, (over,), **fixed), named,
            note=loss_note(model),
        )  # fmt: skip
        legend_below(axes, 2)
    return axes


@dataclass(frozen=True, eq=False, repr=False)
class RiskCurve(Curve):
    """Risks before and after the step over one or several parameters."""

    def plot(
        self,
        of: str | Sequence[str] | None = None,
        *,
        simulation: FiniteSizes | xr.Dataset | None = None,
        ax: Any = None,
        **style: Any,
    ) -> Any:
        """Draw the risk before and after the step over one parameter, a phase diagram over two.

        Over one parameter lines are the theory, squares the model with Gaussian features, circles
        networks; a dotted vertical line marks n = N, where the risk peaks. Phase diagrams over the
        step size show from where on first layer and kernel have an outlier.

        Parameters
        ----------
        of : str or sequence of str, optional
            Outputs of :meth:`Curve.plot`; default: both risks over one parameter, "improvement"
            over two, where "relative_improvement" is known, too.
        simulation : FiniteSizes, optional
            Networks, and models with Gaussian features, which are trained then and drawn with
            standard errors; over one parameter and without `of`.
        """
        data = self.to_dataset()
        over = _only_axis(data)
        data = data if over is None else data.sortby(over)
        if isinstance(simulation, FiniteSizes):
            if of is not None or over is None:
                raise ParameterError(
                    "simulation as FiniteSizes belongs to a curve over one parameter without of="
                )
            penalty = {name: data.attrs[name] for name in _PENALTIES if name in data.attrs}
            data = _with_networks(data, _model_of(data), over, penalty, simulation)
            return plot_risk(data, ax=ax, **style)
        if of is None and simulation is None and over is not None:
            return plot_risk(data, ax=ax, **style)
        axes = self.axes
        is_map = len(axes) == 2 and set(axes) <= set(AXES) and data.sizes[axes[1]] > MOST_LINES
        if is_map and (of is None or is_one_of(of, QUANTITIES)):
            ordered = data.sortby(list(axes)).transpose(axes[1], axes[0], ...)
            result = _with_phases(ordered, _model_of(data))
            return plot_phase(result, str(of or "improvement"), ax=ax)
        return super().plot(of, simulation=simulation, ax=ax, **style)


def _only_axis(data: Any) -> str | None:
    """Return the parameter that risks are over, None if it is not one of those of figures."""
    if "risk_trained" not in getattr(data, "data_vars", {}) or "model" not in data.attrs:
        return None
    dims = [str(name) for name in data["risk_trained"].dims]
    return dims[0] if len(dims) == 1 and dims[0] in AXES else None


def _model_of(data: xr.Dataset) -> OneGradientStep:
    model: OneGradientStep = saved_model(data.attrs["model"])
    return model


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
    result = {
        f"{features}_{name}": (
            "simulated",
            [rows.get((features, k), {}).get(name, math.nan) for k in range(len(points))],
        )
        for features in dict.fromkeys(features for features, _ in rows)
        for name in _SIMULATED
    }
    return result, len(rows) < len(runs)


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


def _draw_peak(axes: Any, model: OneGradientStep, over: str, grid: np.ndarray[Any, Any]) -> None:
    place = {"alpha": model.beta, "beta": model.alpha}.get(over, math.nan)
    if grid[0] <= place <= grid[-1] and not any(
        line.get_label() == "$n = N$" and line.get_xdata()[0] == place for line in axes.lines
    ):
        axes.axvline(place, color=GREY, linestyle=":", linewidth=1.2, zorder=1, label="$n = N$")


QUANTITIES = {
    "improvement": r"improvement $\delta = R_0 - R_1$",
    "relative_improvement": r"relative improvement $\delta/R_0$",
    "risk_initial": r"risk of random features $R_0$",
    "risk_trained": r"risk after the step $R_1$",
}
"""What a phase diagram can show, with the labels."""

_PENALTIES = ("ridge", "paper_ridge")
_CRITICAL = {
    "critical_step_size_weights": ("white", "outlier of $W_1$ above"),
    "critical_step_size_kernel": ("#E69F00", "outlier of the kernel above"),
}


def phase_data(
    model: OneGradientStep,
    x: str,
    x_values: object,
    y: str,
    y_values: object,
    *,
    ridge: object = None,
) -> xr.Dataset:
    """Return ``model.curve`` over two parameters as a dataset, with ``relative_improvement``.

    If the step size is an axis, also the step sizes from which the first layer and the kernel have
    an outlier, over the other axis: ``critical_step_size_weights`` and ``…_kernel``; inf where
    there is none. `ridge` is needed unless an axis is the penalty.
    """
    if x == y:
        raise ParameterError(f"the two axes must differ, got {x!r} twice")
    axes: dict[str, Any] = {y: checked_values(y, y_values), x: checked_values(x, x_values)}
    penalty = {} if ridge is None else dict((given_penalty(ridge),))
    if len(penalty) + sum(name in axes for name in _PENALTIES) != 1:
        raise ParameterError("give one penalty: ridge as a number, or ridge or paper_ridge as axis")
    data = model.curve(**as_ridge({**penalty, **axes})).to_dataset().transpose(y, x, ...)
    data = _with_phases(data, model).assign(best_linear_error=model.best_linear_error)
    data.attrs |= {"model": model.to_json(), **penalty}
    return data


def _with_phases(data: xr.Dataset, model: OneGradientStep) -> xr.Dataset:
    """Return risks over two parameters with what a phase diagram adds to them."""
    axes = [str(name) for name in data["improvement"].dims]
    data = data.assign(relative_improvement=data["improvement"] / data["risk_initial"])
    if "step_size" in axes:
        (other,) = (name for name in axes if name != "step_size")
        for name, values in _critical(model, other, data[other].to_numpy()).items():
            data[name] = (other, values)
    return data


def plot_phase(data: xr.Dataset, quantity: str = "improvement", *, ax: Any = None) -> Any:
    """Draw what :func:`phase_data` returned, as a heat map with contour lines."""
    if not is_one_of(quantity, QUANTITIES):
        raise ParameterError(f"quantity must be one of {', '.join(QUANTITIES)}, got {quantity!r}")
    shown = getattr(data, "data_vars", {}).get(quantity)
    if shown is None or shown.ndim != 2 or "model" not in data.attrs:
        raise ParameterError("data must be a dataset as returned by phase_data")
    model = _model_of(data)
    y, x = (str(name) for name in shown.dims)
    values = shown.to_numpy()
    with drawing(ax, size=(6.6, 4.6)) as (axes, _):
        wide = quantity.startswith("risk") and 0 < 3 * values.min() < values.max()
        draw_map(axes, shown, QUANTITIES[quantity], logarithmic=wide)
        for name, (colour, label) in _CRITICAL.items():
            _draw_critical(axes, data, name, x, colour, label)
        for axis, name in ((axes.xaxis, x), (axes.yaxis, y)):
            axis.set_label_text(AXES[name])
        if axes.get_legend_handles_labels()[0]:
            legend_on_map(axes)
        fixed = {k: float(data.attrs[k]) for k in _PENALTIES if k in data.attrs}
        parameters = fixed_parameters(model, (x, y), **fixed)
        set_heading(axes, pair_title(model), parameters, note=loss_note(model))
    return axes


def _critical(
    model: OneGradientStep, other: str, values: np.ndarray[Any, Any]
) -> dict[str, list[float]]:
    """Return the step sizes from which there are outliers, over the other axis."""
    result: dict[str, list[float]] = {name: [] for name in _CRITICAL}
    for value in values:
        changed: dict[str, Any] = {} if other in _PENALTIES else {other: float(value)}
        here = replace(model, **changed)
        of_weights = float(here.weight_spike().critical_step_size)
        result["critical_step_size_weights"].append(of_weights)
        result["critical_step_size_kernel"].append(_kernel_step(here))
    return result


def _kernel_step(model: OneGradientStep) -> float:
    return float(model.conjugate_kernel().critical_step_size)


def _draw_critical(axes: Any, data: xr.Dataset, name: str, x: str, colour: str, label: str) -> None:
    if name not in data:
        return
    steps = data["step_size"].to_numpy()
    other = str(data[name].dims[0])
    critical = data[name].to_numpy()
    inside = (critical >= steps[0]) & (critical <= steps[-1])
    if not inside.any():
        return
    # Outside the frame there is nothing to see; infinite values end the line.
    shown = np.where(np.isfinite(critical), critical, math.nan)
    points = (shown, data[other]) if x == "step_size" else (data[other], shown)
    frame = axes.get_xlim(), axes.get_ylim()
    axes.plot(*points, color=colour, linestyle="--", linewidth=1.8, label=label)
    axes.set_xlim(frame[0])
    axes.set_ylim(frame[1])


_SIZE = (9.6, 4.2)


def optimal_data(
    model: OneGradientStep, alpha: Sequence[float], *, progress: bool | None = None
) -> xr.Dataset:
    """Return what ``model.optimum`` returns over alpha, with ``best_linear_error``."""
    alphas = [float(a) for a in checked_values("alpha", alpha)]
    data = model.optimum(over="ridge", alpha=alphas, progress=progress is not False)
    data = data.assign(best_linear_error=model.best_linear_error)
    data.attrs["model"] = model.to_json()
    return data


def plot_optimal(data: xr.Dataset, *, ax: Any = None) -> Any:
    """Draw what :func:`optimal_data` returned: smallest risks and their finite penalties."""
    if "ridge_trained" not in getattr(data, "data_vars", {}) or "model" not in data.attrs:
        raise ParameterError("data must be a dataset as returned by optimal_data")
    model = _model_of(data)
    with drawing(ax, size=_SIZE, panels=2) as (panels, _):
        risks, penalties = panels
        mark = "D" if data.sizes["alpha"] == 1 else None
        for name, (colour, label) in _LAYERS.items():
            ridge = data[f"ridge_{name}"].to_numpy()
            inside = np.where(np.isfinite(ridge) & (ridge > 0), ridge, np.nan)
            risks.plot(data["alpha"], data[f"risk_{name}"], color=colour, marker=mark, label=label)
            penalties.plot(data["alpha"], inside, color=colour, marker=mark, label=label)
        best = float(data["best_linear_error"])
        if best > 0:
            draw_level(risks, best, _BOUND)
        for axes, label in ((risks, "smallest risk"), (penalties, r"best $\lambda$")):
            draw_grid(axes)
            set_scale(axes.xaxis, data["alpha"].to_numpy())
            axes.set_xlabel(AXES["alpha"])
            axes.set_ylabel(label)
        parameters = fixed_parameters(model, ("alpha",))
        set_heading(risks, pair_title(model), parameters, note=loss_note(model))
        risks.legend(frameon=False, fontsize=9)
    return panels


MATRICES = ("weights", "kernel")
_POINTS = 400
_WIDTH, _HEIGHT = 6.0, 4.2


def spectra_data(found: Mapping[str, Any], simulation: xr.Dataset | None = None) -> xr.Dataset:
    """Return densities, outliers and simulated spectra as labelled arrays.

    `found` holds ``weights``, a WeightSpike, and ``kernel``, a ConjugateKernel, or one of the two.
    Of them there are ``weights_density`` over ``singular_value``, ``kernel_…`` as the kernel has
    them, numbers such as ``weights_alignment_teacher``, and ``simulated_…``.
    """
    import xarray as xr

    _check(found)
    data = xr.Dataset()
    if "weights" in found:
        spike = found["weights"]
        lower, upper = map(float, spike.bulk_edges)
        grid = np.linspace(lower, upper, _POINTS)
        data = data.assign_coords(singular_value=grid)
        data["weights_density"] = ("singular_value", spike.density(grid))
        for name, value in spike.to_dict().items():
            if isinstance(value, bool | int | float | str) and name not in ("rests_on", "digits"):
                data[f"weights_{name}"] = float(value)
    if "kernel" in found:
        kernel = found["kernel"].to_dataset()
        data = data.merge(kernel.rename({name: f"kernel_{name}" for name in kernel.variables}))
        data.attrs |= kernel.attrs
    if simulation is not None:
        names = [*simulation.data_vars, *simulation.coords]
        data = data.merge(simulation.rename({name: f"simulated_{name}" for name in names}))
    return data


def plot_spectra(
    found: Mapping[str, Any], simulation: xr.Dataset | None = None, *, ax: Any = None
) -> Any:
    """Draw the spectra of :func:`spectra_data` side by side, over simulated ones."""
    _check(found)
    with drawing(ax, size=(_WIDTH * len(found), _HEIGHT), panels=len(found)) as (panels, _):
        axes = dict(zip(found, panels, strict=True))
        if "weights" in found:
            values = None if simulation is None else simulation["singular_values"].isel(step=-1)
            found["weights"].plot(values, ax=axes["weights"])
        if "kernel" in found:
            found["kernel"].plot(simulation, ax=axes["kernel"])
    return panels


def _check(found: Mapping[str, Any]) -> None:
    if not found or set(found) - set(MATRICES):
        raise ParameterError(f"spectra are those of {' and '.join(MATRICES)}, got {list(found)}")
