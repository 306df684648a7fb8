"""Figures by their number in the paper."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ....atomic_files import replacing
from ....errors import ParameterError
from ....labelled import labelled
from ....numeric.arguments import checked_seed, whole_number
from ....numeric.networks.measure import MeanPrediction
from ....numeric.networks.readout import RidgeReadout
from ....numeric.networks.run import simulate
from ....numeric.networks.sizes import sample_count
from ...figures import (
    BLUE,
    GREEN,
    GREY,
    VERMILLION,
    draw_grid,
    draw_level,
    legend_below,
    new_figure,
    plain_log_ticks,
    save_figure,
    styled,
)
from ..bounds.step_bounds import bounds_over_step
from ..model import SpikedRandomFeatures
from ..simulated import network_of
from ..vocabulary.model import VocabularyFeatures

if TYPE_CHECKING:
    import xarray as xr


_SMALLEST_DIMENSION = 20


def paper_figure(
    number: int,
    *,
    dimension: int = 200,
    seeds: int = 4,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = True,
    cache_folder: str | os.PathLike[str] | None = None,
) -> PaperFigure:
    """Draw a figure of Cui et al., arXiv 2402.04980, with simulated points where it has any.

    Parameters
    ----------
    number : int
        1 to 8.
    dimension : int
        Input dimension d of the networks, a multiple of 20, so that all ratios are whole numbers.
    seeds : int
        Networks for each point; 0 for none.
    seed : int
        Entropy.
    workers : int, optional
        Threads.

    Returns
    -------
    PaperFigure
        Figure and data; ``save("figure.png")`` writes both.

    Raises
    ------
    ParameterError
        If there is no such figure, or an argument is outside its range.

    Notes
    -----
    Parameters are those that this package documents, not read off the published figures.
    """
    number = whole_number("number", number)
    if number not in FIGURES:
        raise ParameterError(f"number must be one of {', '.join(map(str, FIGURES))}, got {number}")
    dimension = whole_number("dimension", dimension, _SMALLEST_DIMENSION)
    if dimension % _SMALLEST_DIMENSION:
        raise ParameterError(f"dimension must be a multiple of 20, got {dimension}; use 200")
    simulated = Simulated(
        dimension=dimension,
        seeds=whole_number("seeds", seeds, 0),
        seed=checked_seed(seed),
        workers=None if workers is None else whole_number("workers", workers),
        progress=progress,
    )
    draw, _ = FIGURES[number]
    return draw(simulated, cache_folder)


# ------------------------------------------------------------------ functions

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
        curve = found.curve.to_dataset()
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


# ------------------------------------------------------------------ errors

_ERROR_RIDGE, _STEP, _ALPHA0 = 0.1, 3.0, 20.0
_ERROR_ALPHA = np.linspace(0.1, 3, 60)
_ERROR_POINTS = (0.5, 1.0, 2.0, 3.0)
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
        data = draw_errors(
            axes, models, _ERROR_ALPHA, _ERROR_POINTS, _ERROR_RIDGE, simulated, name="alpha0"
        )
        axes.set_title(rf"student tanh, teacher sin, $s = {_STEP:g}$, $\lambda = {_ERROR_RIDGE:g}$",
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
            _ERROR_ALPHA, _ERROR_POINTS, _ERROR_RIDGE, simulated, name="strength",
        )  # fmt: skip
        alignments = draw_errors(
            right, [(rf"$\gamma = {g:g}$", model(1.0, g)) for g in _ALIGNMENTS],
            _ERROR_ALPHA, _ERROR_POINTS, _ERROR_RIDGE, simulated, name="alignment",
        )  # fmt: skip
        left.set_title(r"$\gamma = 0.9$", loc="left")
        right.set_title(r"$r = 1$", loc="left")
        for axes in (left, right):
            legend_below(axes, 2)
        figure.suptitle(
            rf"student tanh, teacher sin, $c = 1$, $\lambda = {_ERROR_RIDGE:g}$", fontsize=12
        )
    kept = ("test_error", "test_error_finite_width", "simulated_test_error",
            "simulated_test_error_standard_error")  # fmt: skip
    renamed = alignments.rename({n: f"{n}_alignments" for n in kept if n in alignments})
    data = strengths.rename({n: f"{n}_strengths" for n in kept if n in strengths}).merge(
        renamed.drop_vars("linear_bound")
    )
    return PaperFigure(4, title, figure, data)


def error_over_widths(simulated: Simulated, cache_folder: Any = None) -> PaperFigure:
    """Figure 5: test error against the width β at fixed step, and at steps that shrink like 1/β."""
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
            found.append(
                float(here.solve_many(alpha=[alpha], ridge=[_ERROR_RIDGE]).values["test_error"][0])
            )
        return found

    with styled():
        figure, (axes,) = panels(1)
        for power, (label, colour) in enumerate(zip(labels, COLOURS, strict=False)):
            errors.append(theory(None, power))
            finite.append(theory(simulated.dimension, power))
            axes.plot(_BETAS, errors[-1], color=colour, label=label, zorder=3)
            axes.plot(_BETAS, finite[-1], color=colour, linestyle=":", linewidth=1.3, zorder=3)
            found = [simulated.of(model(b, power), [alpha], _ERROR_RIDGE) for b in _SIMULATED_BETAS]
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
            rf"$\lambda = {_ERROR_RIDGE:g}$", loc="left",
        )  # fmt: skip
        legend_below(axes, 2)
    data = labelled(
        {
            "test_error": (("step", "beta"), errors),
            "test_error_finite_width": (("step", "beta"), finite),
            "linear_bound": best,
        },
        {"step": ["s = 3", "s = 3/beta"], "beta": _BETAS},
        {"ridge": _ERROR_RIDGE, "alpha": alpha, "dimension": simulated.dimension, "source": SOURCE},
    )
    if means:
        data = data.assign_coords(simulated_beta=list(_SIMULATED_BETAS)).assign(
            simulated_test_error=(("step", "simulated_beta"), means),
            simulated_test_error_standard_error=(("step", "simulated_beta"), bars),
        )
    return PaperFigure(5, title, figure, data)


# ------------------------------------------------------------------ vocabularies

_LETTER_RIDGE = 0.1
_LETTER_ALPHA = np.linspace(0.2, 3, 29)
_LETTER_POINTS = (0.5, 1.0, 2.0, 3.0)
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
            curve = (
                model.at(width=width).curve(alpha=_LETTER_ALPHA, ridge=_LETTER_RIDGE).to_dataset()
            )
            lines.append(curve["test_error"].to_numpy())
            limits.append(curve["test_error_strict_limit"].to_numpy())
            axes.plot(_LETTER_ALPHA, lines[-1], color=colour, label=f"letters {name}", zorder=3)
            axes.plot(
                _LETTER_ALPHA, limits[-1], color=colour, linestyle=":", linewidth=1.3, zorder=3
            )
            found = simulated.of(model, _LETTER_POINTS, _LETTER_RIDGE)
            if found is not None:
                means.append(found["test_error_mean"].to_numpy())
                bars.append(found["test_error_standard_error"].to_numpy())
                draw_points(axes, _LETTER_POINTS, means[-1], bars[-1], colour)
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
            rf"student tanh, teacher sin, $s = 3$, $\alpha_0 = 20$, $\lambda = {_LETTER_RIDGE:g}$, "
            rf"$p = {width}$", loc="left",
        )  # fmt: skip
        legend_below(axes, 2)
    data = labelled(
        {
            "test_error": (("vocabulary", "alpha"), lines),
            "test_error_strict_limit": (("vocabulary", "alpha"), limits),
            "linear_bound": best,
        },
        {"vocabulary": [name for name, *_ in _VOCABULARIES], "alpha": _LETTER_ALPHA},
        {"ridge": _LETTER_RIDGE, "width": width, "source": SOURCE},
    )
    if means:
        data = data.assign_coords(simulated_alpha=list(_LETTER_POINTS)).assign(
            simulated_test_error=(("vocabulary", "simulated_alpha"), means),
            simulated_test_error_standard_error=(("vocabulary", "simulated_alpha"), bars),
        )
    return PaperFigure(6, title, figure, data)


# ------------------------------------------------------------------ spectra

_SPECTRUM_ALPHA, _SPECTRUM_POINTS = 3.0, 400


def feature_spectrum(simulated: Simulated, cache_folder: Any = None) -> PaperFigure:
    """Figure 8: bulk of the spectrum with a histogram of simulated features, and outliers."""
    title = "Spectrum of the feature covariance"
    model = SpikedRandomFeatures.from_parameters(
        "erf", "erf", spike_strength=1.0, bulk_variance=1.1, alignment=0.9, beta=0.5,
        cache_folder=cache_folder,
    )  # fmt: skip
    spectrum = model.spectrum(alpha=_SPECTRUM_ALPHA, points=_SPECTRUM_POINTS)
    width = round(model.beta * simulated.dimension)
    found = None
    if simulated.seeds:
        found = spectrum.simulate(simulated.dimension, seeds=simulated.seeds)
    with styled():
        figure, (axes,) = panels(1)
        spectrum.plot(found, width=width, ax=axes)
    data = spectrum.to_dataset()
    if found is not None:
        eigenvalues = np.asarray(found.eigenvalues)
        data = data.assign(simulated_eigenvalues=(("layer", "index"), eigenvalues))
    data.attrs |= {"source": SOURCE, "best_linear_error": model.best_linear_error}
    return PaperFigure(8, title, figure, data)


FIGURES: dict[int, tuple[Callable[..., PaperFigure], str]] = {
    1: (learned_function, "learned function along the spike, against the target"),
    2: (error_over_samples, "test error against α for several α0"),
    3: (bound_functions, "functions that realise the bounds"),
    4: (error_over_spikes, "test error for spike strengths and alignments"),
    5: (error_over_widths, "test error over the width"),
    6: (error_over_vocabularies, "test error for vocabularies"),
    7: (realisable_functions, "realisable functions over step sizes"),
    8: (feature_spectrum, "spectrum of the feature covariance"),
}
"""Number: the function that draws it, what it shows."""


# ----------------------------------------------------------------------
# What the figures of the paper share: colours, error axes, simulated points, and their result.

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
        values = model.solve_many(alpha=alpha, ridge=[ridge]).values["test_error"]
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
        finite.append(
            model.at_width(width).solve_many(alpha=alpha, ridge=[ridge]).values["test_error"]
        )
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
