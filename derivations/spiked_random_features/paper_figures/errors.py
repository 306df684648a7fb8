"""Figures 2, 4 and 5: test errors over samples, spikes and widths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...figures import GREY, styled
from ..model import SpikedRandomFeatures
from .drawing import (
    COLOURS,
    SOURCE,
    PaperFigure,
    Simulated,
    draw_errors,
    draw_linear_bound,
    draw_points,
    label_finite_width,
    legend_below,
    panels,
    plain_log_ticks,
)

_RIDGE, _STEP, _ALPHA0 = 0.1, 3.0, 20.0
_ALPHA = np.linspace(0.1, 3, 60)
_POINTS = (0.5, 1.0, 2.0, 3.0)
_STRENGTHS, _ALIGNMENTS = (0.5, 1.0, 2.0), (0.5, 0.8, 1.0)
_BETAS = np.geomspace(0.4, 4, 25)
_SIMULATED_BETAS = (0.5, 1.0, 2.0)


def error_over_samples(simulated: Simulated, cache_folder: Any = None) -> PaperFigure:
    """Figure 2: test error against α for several sample complexities α_0 of the step."""
    title = "Test error for several sample complexities of the step"
    models = []
    for alpha0 in (2.0, 5.0, 20.0, math.inf):
        model = SpikedRandomFeatures(
            "tanh", "sin", step_size=_STEP, alpha0=alpha0, cache_folder=cache_folder
        )
        shown = r"\infty" if alpha0 == math.inf else f"{alpha0:g}"
        models.append((rf"$\alpha_0 = {shown}$", model))
    with styled():
        figure, (axes,) = panels(1)
        data = draw_errors(axes, models, _ALPHA, _POINTS, _RIDGE, simulated, name="alpha0")
        axes.set_title(rf"student tanh, teacher sin, $s = {_STEP:g}$, $\lambda = {_RIDGE:g}$",
                       loc="left")  # fmt: skip
        legend_below(axes)
    return PaperFigure(2, title, figure, data)


def error_over_spikes(simulated: Simulated, cache_folder: Any = None) -> PaperFigure:
    """Figure 4: test error of given spiked random features, over strength and alignment."""
    title = "Test error for several spike strengths and alignments"

    def model(r: float, gamma: float) -> SpikedRandomFeatures:
        return SpikedRandomFeatures.from_parameters(
            "tanh", "sin", spike_strength=r, bulk_variance=1.0, alignment=gamma,
            cache_folder=cache_folder,
        )  # fmt: skip

    with styled():
        figure, (left, right) = panels(2)
        strengths = draw_errors(
            left, [(rf"$r = {r:g}$", model(r, 0.9)) for r in _STRENGTHS],
            _ALPHA, _POINTS, _RIDGE, simulated, name="strength",
        )  # fmt: skip
        alignments = draw_errors(
            right, [(rf"$\gamma = {g:g}$", model(1.0, g)) for g in _ALIGNMENTS],
            _ALPHA, _POINTS, _RIDGE, simulated, name="alignment",
        )  # fmt: skip
        left.set_title(r"$\gamma = 0.9$", loc="left")
        right.set_title(r"$r = 1$", loc="left")
        for axes in (left, right):
            legend_below(axes, 2)
        figure.suptitle(rf"student tanh, teacher sin, $c = 1$, $\lambda = {_RIDGE:g}$", fontsize=12)
    kept = ("test_error", "test_error_finite_width", "simulated_test_error",
            "simulated_test_error_standard_error")  # fmt: skip
    renamed = alignments.rename({n: f"{n}_alignments" for n in kept if n in alignments})
    data = strengths.rename({n: f"{n}_strengths" for n in kept if n in strengths}).merge(
        renamed.drop_vars("linear_bound")
    )
    return PaperFigure(4, title, figure, data)


def error_over_widths(simulated: Simulated, cache_folder: Any = None) -> PaperFigure:
    """Figure 5: test error against the width β at fixed step, and at steps that shrink like 1/β."""
    import xarray as xr

    title = "Test error over the width for two conventions of the step"
    alpha = 1.5

    def model(beta: float, power: int) -> SpikedRandomFeatures:
        return SpikedRandomFeatures(
            "tanh", "sin", step_size=_STEP / beta**power, alpha0=_ALPHA0, beta=float(beta),
            cache_folder=cache_folder,
        )  # fmt: skip

    labels = (rf"$s = {_STEP:g}$", rf"$s = {_STEP:g}/\beta$")
    errors, finite, means, bars = [], [], [], []

    def theory(width: int | None, power: int) -> list[float]:
        found = []
        for b in _BETAS:
            here = model(b, power)
            if width is not None:
                here = here.at_width(max(round(b * width), 1))
            found.append(float(here.solve_many([alpha], [_RIDGE]).values["test_error"][0]))
        return found

    with styled():
        figure, (axes,) = panels(1)
        for power, (label, colour) in enumerate(zip(labels, COLOURS, strict=False)):
            errors.append(theory(None, power))
            finite.append(theory(simulated.dimension, power))
            axes.plot(_BETAS, errors[-1], color=colour, label=label, zorder=3)
            axes.plot(_BETAS, finite[-1], color=colour, linestyle=":", linewidth=1.3, zorder=3)
            found = [simulated.of(model(b, power), [alpha], _RIDGE) for b in _SIMULATED_BETAS]
            if found[0] is not None:
                means.append([float(f["test_error_mean"][0]) for f in found if f is not None])
                bars.append(
                    [float(f["test_error_standard_error"][0]) for f in found if f is not None]
                )
                draw_points(axes, _SIMULATED_BETAS, means[-1], bars[-1], colour)
        best = model(1.0, 0).best_linear_error
        draw_linear_bound(axes, best)
        label_finite_width(axes, rf"p = {simulated.dimension}\,\beta")
        if simulated.seeds:
            draw_points(axes, [], [], [], GREY, simulated.label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        plain_log_ticks(axes)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlabel(r"aspect ratio $\beta = p/d$")
        axes.set_ylabel("test error")
        axes.set_title(
            rf"student tanh, teacher sin, $\alpha = {alpha:g}$, $\alpha_0 = {_ALPHA0:g}$, "
            rf"$\lambda = {_RIDGE:g}$", loc="left",
        )  # fmt: skip
        legend_below(axes, 2)
    data = xr.Dataset(
        {
            "test_error": (("step", "beta"), errors),
            "test_error_finite_width": (("step", "beta"), finite),
            "linear_bound": best,
        },
        {"step": ["s = 3", "s = 3/beta"], "beta": _BETAS},
        {"ridge": _RIDGE, "alpha": alpha, "dimension": simulated.dimension, "source": SOURCE},
    )
    if means:
        data = data.assign_coords(simulated_beta=list(_SIMULATED_BETAS)).assign(
            simulated_test_error=(("step", "simulated_beta"), means),
            simulated_test_error_standard_error=(("step", "simulated_beta"), bars),
        )
    return PaperFigure(5, title, figure, data)
