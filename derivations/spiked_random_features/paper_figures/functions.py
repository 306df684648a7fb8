"""Figures 1, 3 and 7: functions along the spike, learnt and realisable."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....numeric.networks.measure import MeanPrediction
from ....numeric.networks.readout import RidgeReadout
from ....numeric.networks.run import simulate
from ....numeric.networks.sizes import sample_count
from ...figures import GREY, styled
from ..bounds.step_bounds import bounds_over_step
from ..model import SpikedRandomFeatures
from ..simulated import network_of
from .drawing import (
    COLOURS,
    SOURCE,
    PaperFigure,
    Simulated,
    draw_linear_bound,
    draw_points,
    legend,
    panels,
)

_ALPHA, _RIDGE = 2.0, 0.1
_CELLS = np.linspace(-2.5, 2.5, 12)
_STEPS = (1.0, 2.5, 5.36, 12.0)


def learned_function(simulated: Simulated, cache_folder: Any = None) -> PaperFigure:
    """Figure 1: the function that the network learns along the spike, against the target."""
    title = "Learned function along the spike, against the target"
    model = SpikedRandomFeatures(
        "tanh", "sin", step_size=3.0, alpha0=20.0, cache_folder=cache_folder
    )
    data = model.realised_functions(alpha=_ALPHA, ridge=_RIDGE)
    width = round(model.beta * simulated.dimension)
    finite = model.at_width(width).realised_functions(alpha=_ALPHA, ridge=_RIDGE)
    data = data.assign(learnt_finite_width=finite["learnt"])
    kappa = data["kappa"].to_numpy()
    target, spread = data["target"].to_numpy(), data["target_spread"].to_numpy()
    with styled():
        figure, (axes,) = panels(1)
        axes.fill_between(
            kappa, target - spread, target + spread, color=GREY, alpha=0.18, linewidth=0,
            label="target, mean ± s.d. given κ",
        )  # fmt: skip
        axes.plot(kappa, target, color=GREY, linewidth=1.5)
        axes.plot(kappa, data["linear"], color=GREY, linestyle=(0, (5, 3)), linewidth=1.3,
                  label="best linear predictor (kernels)")  # fmt: skip
        axes.plot(kappa, data["learnt"], color=COLOURS[0], zorder=3,
                  label=r"learnt, theory, $p \to \infty$")  # fmt: skip
        axes.plot(kappa, data["learnt_finite_width"], color=COLOURS[0], linestyle=":", zorder=3,
                  label=rf"learnt, theory, $p = {width}$")  # fmt: skip
        if simulated.seeds:
            samples = sample_count("alpha", _ALPHA, simulated.dimension)
            found = simulate(
                network_of(model, simulated.dimension), MeanPrediction(_CELLS),
                readout=RidgeReadout(samples, _RIDGE), seeds=simulated.seeds, seed=simulated.seed,
                workers=simulated.workers, progress=simulated.progress,
            )  # fmt: skip
            centres, values = found.mean("projection"), found.mean("prediction")[:, 0, 0]
            many = simulated.seeds > 1
            errors = found.standard_error("prediction")[:, 0, 0] if many else values * 0
            draw_points(axes, centres, values, errors, COLOURS[1], simulated.label)
            data = data.assign_coords(cell=centres).assign(
                simulated=("cell", values), simulated_standard_error=("cell", errors)
            )
        axes.set_xlabel(r"projection on the spike $\kappa = v\cdot x$")
        axes.set_ylabel("mean output given $\\kappa$")
        axes.set_ylim(-1.9, 1.9)
        axes.set_title(
            rf"student tanh, teacher sin, $s = 3$, $\alpha_0 = 20$, $\alpha = {_ALPHA:g}$, "
            rf"$\lambda = {_RIDGE:g}$", loc="left",
        )  # fmt: skip
        legend(axes, loc="upper left")
    data.attrs |= {"source": SOURCE, "alpha": _ALPHA, "ridge": _RIDGE}
    return PaperFigure(1, title, figure, data)


def bound_functions(simulated: Simulated, cache_folder: Any = None) -> PaperFigure:
    """Figure 3: target, and the functions that have the errors of upper and lower bound.

    There is nothing to simulate: both are limits.
    """
    import xarray as xr

    title = "The functions that realise the bounds"
    cases = (("tanh", "sin", 1.0), ("erf", "He(3, z)/6", 1.5))
    found = []
    with styled():
        figure, axes_of = panels(2)
        for axes, (student, teacher, r) in zip(axes_of, cases, strict=True):
            model = SpikedRandomFeatures.from_parameters(
                student, teacher, spike_strength=r, bulk_variance=1.0, alignment=1.0,
                cache_folder=cache_folder,
            )  # fmt: skip
            data = model.realised_functions()
            found.append(data)
            shown = data.sel(kappa=slice(-3, 3))
            kappa = shown["kappa"]
            axes.plot(kappa, shown["target"], color=GREY, linewidth=2.6, label="target", zorder=2)
            axes.plot(kappa, shown["upper"], color=COLOURS[1], zorder=3,
                      label=rf"upper, $U = {data.attrs['error_upper']:.3g}$")  # fmt: skip
            axes.plot(kappa, shown["lower"], color=COLOURS[0], zorder=3, linestyle=(0, (4, 1.5)),
                      label=rf"lower, $L = {data.attrs['error_lower']:.3g}$")  # fmt: skip
            axes.set_xlabel(r"$\kappa$")
            axes.set_ylabel(r"output along the spike")
            axes.set_title(rf"student {student}, teacher {teacher}, $r = {r:g}$", loc="left")
            error = model.best_linear_error
            axes.plot([], [], " ", label=rf"linear bound ${error:.3g}$")
            legend(axes, loc="best")
    names = [f"{student}/{teacher}" for student, teacher, _ in cases]
    data = xr.concat(found, "pair", combine_attrs="drop").assign_coords(pair=names)
    for name in ("upper", "lower", "limit"):
        data[f"error_{name}"] = ("pair", [f.attrs[f"error_{name}"] for f in found])
    data.attrs["source"] = SOURCE
    return PaperFigure(3, title, figure, data)


def realisable_functions(simulated: Simulated, cache_folder: Any = None) -> PaperFigure:
    """Figure 7: functions that are realised over step sizes, and the bounds over the step.

    Limits of many samples, in which nothing is simulated.
    """
    title = "Realisable functions over step sizes"
    found = bounds_over_step("tanh", "sin", points=120, cache_folder=cache_folder)
    step = found.best_upper.spike_strength / (found.best_upper.step_size or math.nan)
    with styled():
        figure, (left, right) = panels(2)
        curves = []
        for s, colour in zip(_STEPS, COLOURS, strict=False):
            model = SpikedRandomFeatures(
                "tanh", "sin", step_size=s, alpha0=math.inf, cache_folder=cache_folder
            )
            data = model.realised_functions().sel(kappa=slice(-3, 3))
            curves.append(data)
            left.plot(data["kappa"], data["upper"], color=colour, label=rf"$s = {s:g}$", zorder=3)
        left.plot(data["kappa"], data["target"], color=GREY, linewidth=2.6, label="target")
        left.set_xlabel(r"$\kappa$")
        left.set_ylabel(r"$m\,\mu_0(\kappa)$ at the best $m$")
        left.set_title("student tanh, teacher sin", loc="left")
        legend(left)
        curve = found.curve
        steps = curve["spike_strength"].to_numpy() / step
        for name, label, colour in (
            ("upper", "$U$", COLOURS[1]),
            ("limit", r"$E_\infty$, $\beta = 1$", COLOURS[2]),
            ("lower", "$L$", COLOURS[0]),
        ):
            # E_∞ lies on U for small steps: both are to be seen.
            right.plot(steps, curve[name], color=colour, label=label, zorder=3,
                       linestyle=(0, (3, 2)) if name == "limit" else "-")  # fmt: skip
        for point in found.upper_points:
            if point.kind == "minimum" and point.step_size:
                right.plot(point.step_size, point.upper, "D", color=COLOURS[3], markersize=5,
                           zorder=5, label=r"$U$ stationary: $L = E_\infty = U$")  # fmt: skip
        draw_linear_bound(right, found.linear)
        right.set_xscale("log")
        right.set_yscale("log")
        right.set_ylim(1e-5, 1)
        right.set_xlabel(r"step size $s$")
        right.set_ylabel("test error")
        right.set_title(r"$\alpha_0 = \infty$", loc="left")
        legend(right, loc="lower right")
    import xarray as xr

    functions = xr.concat(curves, "step_size", combine_attrs="drop")
    functions = functions.assign_coords(step_size=list(_STEPS))
    renamed = curve.rename({n: f"bound_{n}" for n in ("upper", "lower", "limit")})
    data = functions.merge(renamed.assign_coords(step=("spike_strength", steps)))
    data = data.assign(linear_bound=found.linear)
    data.attrs = {"source": SOURCE}
    return PaperFigure(7, title, figure, data)
