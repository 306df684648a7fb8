"""The commands of ``giantstep srf``: numbers on the terminal, figure and data in files."""

from __future__ import annotations

import argparse
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cli_curve import model_from, settle_step
from .cli_srf import check_curve, check_tuning
from .errors import ParameterError

if TYPE_CHECKING:
    import xarray as xr

_PICTURES, _DATA = (".png", ".pdf", ".svg"), (".nc", ".json")


def curve(arguments: argparse.Namespace) -> int:
    """Print theory and simulation of a learning curve."""
    check_curve(arguments)
    out = _checked_out(arguments.out)
    model = _readout(arguments)
    data = model.curve(alpha=arguments.alpha, ridge=arguments.ridge).to_dataset()
    simulation = None
    if arguments.simulate:
        simulation = model.simulate(
            arguments.dimension, arguments.alpha, arguments.ridge, seeds=arguments.seeds,
            seed=arguments.seed,
        )  # fmt: skip
    print(f"{model}\n")
    print(_curve_table(data, simulation))
    linear = _linear(arguments, model)
    if linear is not None:
        print(f"\nlinear bound (kernels): {linear:.10g}")
        data = data.assign(linear_bound=linear)
    if out is not None:
        if simulation is not None:
            names = [n for n in simulation.data_vars if str(n).startswith("test_error_")]
            data = data.assign({f"simulated_{n}": simulation[n] for n in names})
        _write(out, data, lambda: _curve_figure(data, simulation))
    return 0


def phase(arguments: argparse.Namespace) -> int:
    """Print and draw a quantity over two parameters."""
    from .derivations.spiked_random_features.phase_diagram import phase_diagram, plot_phase_diagram

    out = _checked_out(arguments.out)
    (x, x_values), (y, y_values) = arguments.x, arguments.y
    data = phase_diagram(
        model_from(arguments), x, x_values, y, y_values,
        quantity=arguments.show.replace("-", "_"), alpha=arguments.alpha, ridge=arguments.ridge,
    )  # fmt: skip
    best = data["test_error"].argmin(...)
    place = data["test_error"].isel({k: int(v) for k, v in best.items()})
    where = ", ".join(f"{name} = {float(place[name]):.6g}" for name in (x, y))
    print(f"{len(x_values)} x {len(y_values)} points, {x} and {y}")
    print(f"smallest test error {float(place):.10g} at {where}")
    print(f"largest test error  {float(data['test_error'].max()):.10g}")
    if "optimal_ridge" in data:
        low, high = (float(f(data["optimal_ridge"])) for f in (_least, _largest))
        print(f"optimal ridge penalties from {low:.6g} to {high:.6g}")
    share = float((data["test_error"] < data["linear_bound"]).mean())
    print(f"below the linear bound {float(data['linear_bound']):.10g}: {share:.0%} of the points")
    if out is not None:
        _write(out, data, lambda: plot_phase_diagram(data).figure)
    return 0


def spectrum(arguments: argparse.Namespace) -> int:
    """Print and draw the spectrum of the feature covariance."""
    out = _checked_out(arguments.out)
    model = model_from(arguments)
    found = model.spectrum(alpha=arguments.alpha, points=arguments.points)
    print(found)
    simulation = None
    if arguments.simulate:
        simulation = found.simulate(arguments.dimension, seeds=arguments.seeds)
        distance = simulation.distance(found)
        layers = len(simulation.eigenvalues)
        print(f"{layers} simulated layers, d = {arguments.dimension}: distance of the cumulative "
              f"distributions {distance:.4g}")  # fmt: skip
    if out is not None:
        width = round(model.beta * arguments.dimension) if arguments.simulate else None
        _write(out, found.to_dataset(), lambda: found.plot(simulation, width=width).figure)
    return 0


def bounds(arguments: argparse.Namespace) -> int:
    """Print bounds and limits; with --tune-step those over the step."""
    out = _checked_out(arguments.out)
    if arguments.tune_step:
        check_tuning(arguments)
        return _tuned(arguments, out)
    model = model_from(arguments)
    print(f"{model}\n\n{model.bounds(digits=arguments.digits)}\n")
    if arguments.digits is None:
        print(model.asymptotics())
    if out is not None:
        data = model.realised_functions()
        data.attrs["best_linear_error"] = model.best_linear_error
        _write(out, data, lambda: _functions_figure(data))
    return 0


def figure(arguments: argparse.Namespace) -> int:
    """Draw a figure of the paper."""
    from .derivations.spiked_random_features.paper_figures.numbered import paper_figure

    out = _checked_out(arguments.out or f"figure{arguments.number}.png")
    found = paper_figure(
        arguments.number, dimension=arguments.dimension, seeds=arguments.seeds,
        seed=arguments.seed, cache_folder=arguments.cache_folder,
    )  # fmt: skip
    print(f"Figure {found.number}: {found.title}")
    assert out is not None
    _write(out, found.data, lambda: found.figure)
    return 0


# ---------------------------------------------------------------------- models and tables


def _readout(arguments: argparse.Namespace) -> Any:
    model = model_from(arguments) if arguments.letters is None else _letters(arguments)
    if arguments.bulk is not None:
        model = _with_bulk(model, arguments.bulk)
    if arguments.loss is None:
        return model
    return model.with_loss(arguments.loss, labels=arguments.labels or "teacher")


def _with_bulk(model: Any, path: str) -> Any:
    """Return the spike of a model on rows whose bulk has another law of the same mean."""
    from .derivations.spiked_random_features.bulk_law import BulkLaw

    spike = model.spike
    return type(model).from_parameters(
        model.student, model.teacher, spike_strength=spike.spike_strength,
        bulk_variance=spike.bulk_variance, alignment=spike.alignment, beta=model.beta,
        noise_variance=model.noise_variance, width=model.width,
        bulk=BulkLaw.from_file(path).scaled(spike.bulk_variance), cache_folder=model.cache_folder,
    )  # fmt: skip


def _letters(arguments: argparse.Namespace) -> Any:
    from .derivations.spiked_random_features.vocabulary.model import VocabularyFeatures

    settle_step(arguments)
    count = len(arguments.letters)
    return VocabularyFeatures(
        arguments.student,
        arguments.teacher,
        letters=arguments.letters,
        fractions=arguments.fractions or [1 / count] * count,
        step_size=arguments.step_size,
        alpha0=arguments.alpha0,
        beta=arguments.beta,
        noise_variance=arguments.noise,
        width=arguments.width,
        allow_non_odd=arguments.allow_non_odd,
        leading_order=arguments.leading_order,
        cache_folder=arguments.cache_folder,
    )


def _linear(arguments: argparse.Namespace, model: Any) -> float | None:
    """Return the linear bound, of the mean squared error: fractions of wrong signs have none."""
    if getattr(model, "is_classification", False):
        return None
    return model_from(arguments).best_linear_error


def _curve_table(data: xr.Dataset, simulation: xr.Dataset | None) -> str:
    from .derivations.tables import simulation_cells
    from .pages import aligned

    # A convex readout has a training loss, which a training error is for the square loss.
    training = "training_error" if "training_error" in data else "training_loss"
    headings = ["α", "test error", training.replace("_", " ")]
    strict = "test_error_strict_limit" in data
    headings += ["limit p → ∞"] if strict else []
    headings += ["simulation ± s.e.", "difference/s.e.", "difference"] if simulation else []
    rows = []
    for k, alpha in enumerate(data["alpha"].to_numpy()):
        row = [f"{alpha:.6g}"]
        row += [f"{float(data[n][k]):#.10g}" for n in ("test_error", training)]
        row += [f"{float(data['test_error_strict_limit'][k]):#.10g}"] if strict else []
        if simulation is not None:
            mean, error = (
                float(simulation[f"test_error_{n}"][k]) for n in ("mean", "standard_error")
            )
            row += simulation_cells(float(data["test_error"][k]), mean, error)
        rows.append(row)
    return str(aligned(headings, rows))


def _least(values: xr.DataArray) -> float:
    return float(values.min())


def _largest(values: xr.DataArray) -> float:
    return float(values.max())


def _tuned(arguments: argparse.Namespace, out: Path | None) -> int:
    from .derivations.spiked_random_features.bounds.step_bounds import (
        bounds_over_step,
        perfect_learning,
    )

    pair, folder = (arguments.student, arguments.teacher), arguments.cache_folder
    found = bounds_over_step(
        *pair, alpha0=arguments.alpha0, noise_variance=arguments.noise, beta=arguments.beta,
        cache_folder=folder,
    )  # fmt: skip
    samples = "∞" if math.isinf(found.alpha0) else f"{found.alpha0:g}"
    print(f"student {found.student}, teacher {found.teacher}; α₀ = {samples}, "
          f"Δ = {found.noise_variance:g}, β = {arguments.beta:g}\n")  # fmt: skip
    print(found)
    if found.best_upper.perfect:
        for perfect in perfect_learning(*pair, cache_folder=folder):
            print(f"perfect learning: {perfect}")
    if out is not None:
        data = found.curve.assign(linear_bound=found.linear)
        _write(out, data, lambda: _step_figure(data))
    return 0


# ---------------------------------------------------------------------- figures


def _curve_figure(data: xr.Dataset, simulation: xr.Dataset | None) -> Any:
    from .derivations.figures import styled
    from .derivations.spiked_random_features.paper_figures import drawing

    with styled():
        picture, (axes,) = drawing.panels(1)
        axes.plot(data["alpha"], data["test_error"], color=drawing.COLOURS[0], label="theory")
        if "test_error_strict_limit" in data:
            axes.plot(data["alpha"], data["test_error_strict_limit"], ":",
                      color=drawing.COLOURS[0], label=r"limit $p \to \infty$")  # fmt: skip
        if simulation is not None:
            drawing.draw_points(
                axes, simulation["alpha"], simulation["test_error_mean"],
                simulation["test_error_standard_error"], drawing.COLOURS[1], "simulation",
            )  # fmt: skip
        if "linear_bound" in data:
            drawing.draw_linear_bound(axes, float(data["linear_bound"]))
        drawing.label_alpha(axes)
        axes.set_yscale("log")
        drawing.plain_log_ticks(axes)
        drawing.legend(axes)
    return picture


def _functions_figure(data: xr.Dataset) -> Any:
    from .derivations.figures import GREY, styled
    from .derivations.spiked_random_features.paper_figures import drawing

    with styled():
        picture, (axes,) = drawing.panels(1)
        axes.plot(data["kappa"], data["target"], color=GREY, linewidth=2.6, label="target")
        for name, letter, colour in zip(
            ("upper", "limit", "lower"), ("U", r"E_\infty", "L"), drawing.COLOURS, strict=False
        ):
            error = data.attrs[f"error_{name}"]
            axes.plot(data["kappa"], data[name], color=colour, label=rf"${letter} = {error:.3g}$")
        axes.plot([], [], " ", label=rf"linear bound ${data.attrs['best_linear_error']:.3g}$")
        axes.set_xlabel(r"projection on the spike $\kappa$")
        axes.set_ylabel(r"output given $\kappa$")
        drawing.legend(axes)
    return picture


def _step_figure(data: xr.Dataset) -> Any:
    from .derivations.figures import styled
    from .derivations.spiked_random_features.paper_figures import drawing

    with styled():
        picture, (axes,) = drawing.panels(1)
        for name, label, colour in zip(
            ("upper", "limit", "lower"), ("$U$", r"$E_\infty$", "$L$"), drawing.COLOURS,
            strict=False,
        ):  # fmt: skip
            axes.plot(data["spike_strength"], data[name], color=colour, label=label)
        drawing.draw_linear_bound(axes, float(data["linear_bound"]))
        axes.set_yscale("log")
        if float(data["spike_strength"].min()) > 0:
            axes.set_xscale("log")
        axes.set_xlabel("spike strength $r$")
        axes.set_ylabel("test error")
        axes.set_ylim(bottom=max(1e-8, 0.5 * float(data["lower"].min())))
        drawing.legend(axes)
    return picture


# ---------------------------------------------------------------------- files


def _checked_out(text: str | None) -> Path | None:
    """Find out now, not after the computation, whether files can be written."""
    if text is None:
        return None
    from .cli_curve import _check_folder

    out = Path(text).expanduser()
    if out.suffix.lower() not in (*_PICTURES, *_DATA):
        raise ParameterError(
            f"--out must end in {', '.join((*_PICTURES, *_DATA))}, got {text!r}; use --out "
            f"{out.stem or 'srf'}.png"
        )
    _check_folder(out.parent, "--out")
    if out.is_dir():
        raise ParameterError(f"--out {text!r} is a folder; use --out {text}/srf.png")
    return out


def _write(out: Path, data: xr.Dataset, draw: Any) -> None:
    """Write a figure with its data next to it, or the data alone."""
    from .derivations.figures import save_figure
    from .derivations.spiked_random_features.paper_figures.drawing import save_dataset

    if out.suffix.lower() == ".json":
        from .atomic_files import write_atomically

        write_atomically(out, json.dumps(data.to_dict(), default=_plain) + "\n")
        written = [out]
    elif out.suffix.lower() == ".nc":
        written = [save_dataset(data, out)]
    else:
        written = [save_figure(draw(), out), save_dataset(data, out.with_suffix(".nc"))]
    print(f"\nWrote {', '.join(map(os.fspath, written))}")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
