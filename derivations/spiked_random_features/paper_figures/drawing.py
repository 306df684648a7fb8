"""What the figures of the paper share: colours, error axes, simulated points, and their result."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ....atomic_files import replacing
from ...figures import (
    BLUE,
    GREEN,
    GREY,
    VERMILLION,
    draw_grid,
    draw_level,
    new_figure,
    plain_log_ticks,
    save_figure,
)

if TYPE_CHECKING:
    import xarray as xr

    from ..model import SpikedRandomFeatures

COLOURS = (BLUE, VERMILLION, GREEN, "#CC79A7", "#E69F00")
SOURCE = "Cui, Pesce, Dandi, Krzakala, Lu, Zdeborova, Loureiro, arXiv 2402.04980"


@dataclass(frozen=True)
class Simulated:
    """What networks a figure trains.

    Attributes
    ----------
    dimension : int
        Input dimension d.
    seeds : int
        Networks for each point; none: no simulation.
    seed : int
        Entropy.
    """

    dimension: int = 200
    seeds: int = 4
    seed: int = 0
    workers: int | None = None
    progress: bool = False

    def of(self, model: Any, alpha: Sequence[float], ridge: float) -> xr.Dataset | None:
        """Return simulated networks of a model; None if none are wanted."""
        if not self.seeds:
            return None
        found: xr.Dataset = model.simulate(
            self.dimension, alpha=list(alpha), ridge=ridge, seeds=self.seeds, seed=self.seed,
            workers=self.workers, progress=self.progress,
        )  # fmt: skip
        return found

    @property
    def label(self) -> str:
        """For legends."""
        return rf"simulation, $d = {self.dimension}$, {self.seeds} networks ($\pm$ s.e.)"


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper with its data.

    Attributes
    ----------
    data : xarray.Dataset
        All that is drawn.
    """

    number: int
    title: str
    figure: Any
    data: xr.Dataset

    def save(self, path: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write the figure (.png, .pdf or .svg) and, next to it, the data (.nc)."""
        picture = Path(path)
        return save_figure(self.figure, picture), save_dataset(
            self.data, picture.with_suffix(".nc")
        )


def save_dataset(data: xr.Dataset, path: Path) -> Path:
    """Write a dataset; a reader sees all of it or none."""
    with replacing(path) as temporary:
        data.to_netcdf(temporary)
    return path


def panels(count: int, *, size: tuple[float, float] | None = None) -> tuple[Any, Any]:
    """Return a figure and its axes, side by side."""
    figure = new_figure(size or ((6.0, 4.0) if count == 1 else (4.9 * count, 3.9)))
    axes = figure.subplots(1, count, squeeze=False)[0]
    for one in axes:
        draw_grid(one)
    return figure, axes


def draw_linear_bound(axes: Any, error: float) -> None:
    """Draw the error of the best linear predictor: kernels, plain random features."""
    draw_level(axes, error, "linear bound (kernels)")


def draw_points(axes: Any, x: Any, mean: Any, error: Any, colour: str, label: str = "") -> None:
    """Draw simulated means with their standard errors, if those are known."""
    bars = np.asarray(error, dtype=float)
    axes.errorbar(
        x, mean, yerr=bars if np.isfinite(bars).all() else None, fmt="o", color=colour,
        markersize=4.5, markerfacecolor="white", markeredgewidth=1.2, elinewidth=1.2, capsize=2.5,
        zorder=4, label=label,
    )  # fmt: skip


def draw_errors(
    axes: Any,
    models: Sequence[tuple[str, SpikedRandomFeatures]],
    alpha: Any,
    points: Sequence[float],
    ridge: float,
    simulated: Simulated,
    *,
    name: str,
) -> xr.Dataset:
    """Draw test errors of several models against α, simulated points and the linear bound.

    Returns
    -------
    xarray.Dataset
        ``test_error`` over `name` and ``alpha``, ``simulated_test_error`` with its
        ``…_standard_error`` over `name` and ``simulated_alpha``, ``linear_bound``.
    """
    import xarray as xr

    errors, finite, means, bars = [], [], [], []
    missing = np.full(len(points), np.nan)
    for (label, model), colour in zip(models, COLOURS, strict=False):
        values = model.solve_many(alpha, [ridge]).values["test_error"]
        errors.append(values)
        axes.plot(alpha, values, color=colour, label=label, zorder=3)
        # A step with infinitely many samples cannot be simulated.
        possible = model.direct_parameters is not None or model.alpha0 < math.inf
        found = simulated.of(model, points, ridge) if possible else None
        means.append(missing if found is None else found["test_error_mean"].to_numpy())
        bars.append(missing if found is None else found["test_error_standard_error"].to_numpy())
        if found is None:
            finite.append(np.full(len(alpha), np.nan))
            continue
        width = round(model.beta * simulated.dimension)
        finite.append(model.at_width(width).solve_many(alpha, [ridge]).values["test_error"])
        axes.plot(alpha, finite[-1], color=colour, linestyle=":", linewidth=1.3, zorder=3)
        draw_points(axes, points, means[-1], bars[-1], colour)
    best = models[0][1].best_linear_error
    draw_linear_bound(axes, best)
    if simulated.seeds:
        label_finite_width(axes, f"p = {round(models[0][1].beta * simulated.dimension)}")
        draw_points(axes, [], [], [], GREY, simulated.label)
    label_alpha(axes)
    axes.set_yscale("log")
    plain_log_ticks(axes)
    data = xr.Dataset(
        {"test_error": ((name, "alpha"), errors), "linear_bound": best},
        {name: [label for label, _ in models], "alpha": alpha},
        {"ridge": ridge, "source": SOURCE},
    )
    if simulated.seeds:
        data = data.assign_coords(simulated_alpha=list(points)).assign(
            test_error_finite_width=((name, "alpha"), finite),
            simulated_test_error=((name, "simulated_alpha"), means),
            simulated_test_error_standard_error=((name, "simulated_alpha"), bars),
        )
        data.attrs |= {"dimension": simulated.dimension, "seeds": simulated.seeds}
    return data


def label_finite_width(axes: Any, width: str) -> None:
    """Explain dotted lines, which have the cost of the mean direction at the given width."""
    axes.plot([], [], color=GREY, linestyle=":", linewidth=1.3, label=rf"theory, ${width}$")


def label_alpha(axes: Any) -> None:
    """Name the axes of a learning curve."""
    axes.set_xlabel(r"sample complexity $\alpha = n/d$")
    axes.set_ylabel("test error")


def legend(axes: Any, **options: Any) -> None:
    """Draw a legend on a pale ground."""
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none", fontsize=9, **options)
