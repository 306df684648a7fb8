"""Figure 6: readouts that are initialised with several letters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...figures import GREY, styled
from ..model import SpikedRandomFeatures
from ..vocabulary.model import VocabularyFeatures
from .drawing import (
    COLOURS,
    SOURCE,
    PaperFigure,
    Simulated,
    draw_linear_bound,
    draw_points,
    label_alpha,
    legend_below,
    panels,
    plain_log_ticks,
)

_RIDGE = 0.1
_ALPHA = np.linspace(0.2, 3, 29)
_POINTS = (0.5, 1.0, 2.0, 3.0)
_VOCABULARIES = (
    ("{1}", (1.0,), (1.0,)),
    ("{1, −½}", (1.0, -0.5), (0.5, 0.5)),
    ("{0.4, 1, 1.8}", (0.4, 1.0, 1.8), (0.3, 0.4, 0.3)),
)


def error_over_vocabularies(simulated: Simulated, cache_folder: Any = None) -> PaperFigure:
    """Figure 6: test error for several vocabularies of the first readout.

    Solid lines hold at the width of the networks that are simulated, dotted ones for p → ∞, which
    several letters approach slowly.
    """
    import xarray as xr

    title = "Test error for several vocabularies of the first readout"
    width = simulated.dimension
    lines, limits, means, bars = [], [], [], []
    with styled():
        figure, (axes,) = panels(1)
        for (name, letters, fractions), colour in zip(_VOCABULARIES, COLOURS, strict=False):
            model = VocabularyFeatures(
                "tanh", "sin", letters=list(letters), fractions=list(fractions), step_size=3.0,
                alpha0=20.0, cache_folder=cache_folder,
            )  # fmt: skip
            curve = model.at(width=width).curve(alpha=_ALPHA, ridge=_RIDGE).to_dataset()
            lines.append(curve["test_error"].to_numpy())
            limits.append(curve["test_error_strict_limit"].to_numpy())
            axes.plot(_ALPHA, lines[-1], color=colour, label=f"letters {name}", zorder=3)
            axes.plot(_ALPHA, limits[-1], color=colour, linestyle=":", linewidth=1.3, zorder=3)
            found = simulated.of(model, _POINTS, _RIDGE)
            if found is not None:
                means.append(found["test_error_mean"].to_numpy())
                bars.append(found["test_error_standard_error"].to_numpy())
                draw_points(axes, _POINTS, means[-1], bars[-1], colour)
        plain = SpikedRandomFeatures("tanh", "sin", cache_folder=cache_folder)
        best = plain.best_linear_error
        draw_linear_bound(axes, best)
        axes.plot([], [], color=GREY, linestyle=":", linewidth=1.3, label=r"limit $p \to \infty$")
        if simulated.seeds:
            draw_points(axes, [], [], [], GREY, simulated.label)
        axes.set_yscale("log")
        plain_log_ticks(axes)
        label_alpha(axes)
        axes.set_title(
            rf"student tanh, teacher sin, $s = 3$, $\alpha_0 = 20$, $\lambda = {_RIDGE:g}$, "
            rf"$p = {width}$", loc="left",
        )  # fmt: skip
        legend_below(axes, 2)
    data = xr.Dataset(
        {
            "test_error": (("vocabulary", "alpha"), lines),
            "test_error_strict_limit": (("vocabulary", "alpha"), limits),
            "linear_bound": best,
        },
        {"vocabulary": [name for name, *_ in _VOCABULARIES], "alpha": _ALPHA},
        {"ridge": _RIDGE, "width": width, "source": SOURCE},
    )
    if means:
        data = data.assign_coords(simulated_alpha=list(_POINTS)).assign(
            simulated_test_error=(("vocabulary", "simulated_alpha"), means),
            simulated_test_error_standard_error=(("vocabulary", "simulated_alpha"), bars),
        )
    return PaperFigure(6, title, figure, data)
