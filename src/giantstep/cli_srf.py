"""``giantstep srf``: curves, phase diagrams, spectra, bounds and the figures of the paper."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cli_curve import model_from, settle_step
from .cli_files import add_output, checked_out, deliver
from .cli_options import (
    add_command,
    add_model,
    axis,
    digits,
    positive,
    real,
    sample_complexities,
    whole,
)
from .errors import ParameterError
from .pages import aligned

if TYPE_CHECKING:
    import xarray as xr

AXES = {
    "alpha": "alpha", "beta": "beta", "step-size": "step_size", "alpha0": "alpha0",
    "ridge": "ridge", "noise": "noise_variance",
}  # fmt: skip
_FROM_ZERO = ("step_size", "noise_variance")

EPILOG = """\
Spiked random features: what one giant gradient step makes of a two-layer network
(Cui et al., arXiv 2402.04980).

  curve      test error against the samples; vocabularies, finite width, networks
  phase      a heat map over two parameters: test error or the best ridge penalty
  spectrum   eigenvalues of the feature covariance: bulk, outliers, networks
  bounds     what no readout can beat, what the best one reaches, and what tuning the step can do
  figure     the figures of the paper, 1 to 8, with small networks

Each has its own help, such as giantstep srf bounds --help. --out FILE writes a figure for .png,
.pdf or .svg, with its data next to it as .nc, or the data alone for .nc or .json.

examples:
  giantstep srf curve --letters 1,-0.5 --fractions 0.5,0.5 --width 600
  giantstep srf phase --x alpha=0.2:4:20 --y ridge=1e-3:10:20 --out phase.png
  giantstep srf bounds --student erf --teacher erf --tune-step --alpha0 inf
  giantstep srf figure 2 --out figure2.png
"""

_CURVE = """\
--letters and --fractions describe the readout before the step: letter by letter, and how many
neurons have it. Several letters approach the limit of many neurons slowly, so give --width.
--width P includes what the ridge penalty takes for the mean direction at p = P neurons.

--loss takes another readout than ridge regression: huber(0.5), absolute, quantile(0.9),
insensitive(0.1), logistic, hinge, or an expression in the label y and the output x that is convex
in x. Losses of the margin y x need labels +-1: --labels sign, probit (--noise D) or logistic, of
the teacher's field; the error is then the fraction of wrong signs, and --teacher plays no part.
"square" is half the squared residual, so that the ridge penalty means the same.

examples:
  giantstep srf curve --student erf --teacher sin --alpha 0.5:4:8
  giantstep srf curve --letters 0.4,1,1.8 --fractions 0.3,0.4,0.3 --width 600 --out letters.png
  giantstep srf curve --simulate --dimension 300 --seeds 5 --out curve.png
  giantstep srf curve --loss "huber(0.5)" --noise 0.25
  giantstep srf curve --letters 1,-0.5 --width 600 --loss "huber(0.5)" --noise 0.25
  giantstep srf curve --loss logistic --labels sign --simulate --out logistic.png
  giantstep srf curve --bulk eigenvalues.txt --beta 0.5
"""

_PHASE = """\
Axes are NAME=LOW:HIGH:COUNT, evenly spaced in the logarithm if HIGH is more than 20 LOW, with
NAME one of alpha, beta, step-size, alpha0, ridge, noise. The white line of the figure is where the
best linear predictor is beaten.

examples:
  giantstep srf phase --x alpha=0.2:4:20 --y step-size=0.5:6:20 --out phase.png
  giantstep srf phase --show optimal-ridge --noise 0.25 --x alpha=0.2:4:8 --y beta=0.5:4:8
"""

_SPECTRUM = """\
Eigenvalues of K = (1/p) sum phi phi^T on a training set: the bulk for d -> oo, its atom at zero,
the eigenvalue of the mean direction, which grows like the width, and other outliers.

examples:
  giantstep srf spectrum --student erf --alpha 3 --beta 0.5
  giantstep srf spectrum --student tanh --alpha 2 --simulate --dimension 400 --out spectrum.png
"""

_BOUNDS = """\
  L        below the test error for every alpha, beta and ridge penalty
  E_oo     test error for alpha -> oo at this beta and any fixed ridge penalty
  U        above the test error at the best ridge penalty, for every alpha and beta
  linear   best linear predictor: what kernels, plain random features and the neural tangent
           kernel cannot beat with n = O(d) samples

--tune-step  scans the size of the step at this --alpha0 and --noise for stationary points of U
             and L. With --alpha0 inf, the population gradient, L = E_oo = U where U is stationary;
             where U vanishes the target is learnt perfectly. Takes no --step-size.
--digits N   by mpmath.

examples:
  giantstep srf bounds --student tanh --teacher sin
  giantstep srf bounds --student sin --teacher sin --tune-step --alpha0 inf --out bounds.png
  giantstep srf bounds --student tanh --teacher sin --tune-step --alpha0 5 --noise 0.1
  giantstep srf bounds --student erf --teacher erf --digits 30
"""

_FIGURE = """\
figures:
  1  learned function along the spike, against the target
  2  test error against alpha for several sample complexities of the step
  3  the functions that realise the bounds
  4  test error for several spike strengths and alignments
  5  test error over the width, for two conventions of the step
  6  test error for several vocabularies of the first readout
  7  realisable functions over step sizes, and the bounds
  8  spectrum of the feature covariance

Parameters are documented ones of this package, not read off the published figures.

examples:
  giantstep srf figure 2 --out figure2.png
  giantstep srf figure 6 --dimension 400 --seeds 10 --out vocabularies.pdf
"""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Declare the commands of ``giantstep srf``."""
    group = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    every = {"ridge": True, "width": True}
    for name, summary, epilog, add, run, of_model in (
        ("curve", "test error against the samples", _CURVE, _add_curve, curve, every),
        ("phase", "heat map over two parameters", _PHASE, _add_phase, phase, every),
        (
            "spectrum", "spectrum of the feature covariance", _SPECTRUM, _add_spectrum, spectrum,
            {"ridge": False, "width": True},
        ),
        (
            "bounds", "bounds of the test error and its limits", _BOUNDS, _add_bounds, bounds,
            {"ridge": False, "width": False},
        ),
        ("figure", "a figure of the paper", _FIGURE, _add_figure, figure, None),
    ):  # fmt: skip
        result = add_command(group, name, summary, epilog)
        if of_model is not None:
            add_model(result, **of_model)
        add(result)
        result.set_defaults(run=run)


def _add_networks(parser: argparse.ArgumentParser, *, switch: bool, dimension: int) -> None:
    group = parser.add_argument_group("networks")
    if switch:
        group.add_argument("--simulate", action="store_true", help="train networks and compare")
    group.add_argument(
        "--dimension", type=whole("--dimension", 2, dimension), default=dimension, metavar="D",
        help=f"input dimension d [{dimension}]",
    )  # fmt: skip
    least = 1 if switch else 0
    group.add_argument(
        "--seeds", type=whole("--seeds", least, 4), default=4, metavar="N",
        help="networks [4]" + ("" if switch else "; 0 for none"),
    )  # fmt: skip
    group.add_argument(
        "--seed", type=whole("--seed", 0, 0), default=0, metavar="N", help="entropy [0]"
    )


def _add_curve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--alpha", type=sample_complexities("--alpha"), metavar="LIST",
        default=[0.5, 1.0, 1.5, 2.0, 2.5, 3.0],
        help="sample complexities n/d: 0.5,1,2 or START:STOP:COUNT [0.5:3:6]",
    )  # fmt: skip
    parser.add_argument(
        "--letters", type=_numbers("--letters", "1,-0.5"), metavar="LIST",
        help="letters of the readout before the step, such as 1,-0.5",
    )  # fmt: skip
    parser.add_argument(
        "--fractions", type=_numbers("--fractions", "0.5,0.5"), metavar="LIST",
        help="how many neurons have each letter; they add up to 1 [equal]",
    )  # fmt: skip
    parser.add_argument(
        "--bulk", metavar="FILE",
        help="law of the bulk in place of independent rows: a column of eigenvalues, a second one "
        "of weights, or JSON as BulkLaw.to_dict writes it; its mean becomes that of the step",
    )  # fmt: skip
    parser.add_argument(
        "--loss", metavar="LOSS",
        help="convex loss of the readout, such as huber(0.5), logistic or log(1+exp(-y*x)) [ridge "
        "regression]",
    )  # fmt: skip
    parser.add_argument(
        "--labels", metavar="KIND",
        help="labels of --loss: teacher, sign, probit or logistic [teacher]",
    )  # fmt: skip
    _add_networks(parser, switch=True, dimension=200)
    add_output(parser)


def _add_phase(parser: argparse.ArgumentParser) -> None:
    for flag, default in (("--x", "alpha=0.2:4:12"), ("--y", "ridge=0.001:10:12")):
        read = axis(flag, default, AXES, from_zero=_FROM_ZERO)
        parser.add_argument(
            flag, type=read, default=read(default),
            metavar="AXIS", help=f"NAME=LOW:HIGH:COUNT [{default}]",
        )  # fmt: skip
    parser.add_argument(
        "--show", choices=("test-error", "optimal-ridge"), default="test-error",
        help="what the colours are [test-error]",
    )  # fmt: skip
    parser.add_argument(
        "--alpha", type=positive("--alpha", 2), default=2.0, metavar="A",
        help="sample complexity n/d, where it is no axis [2]",
    )  # fmt: skip
    add_output(parser)


def _add_spectrum(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--alpha", type=positive("--alpha", 2), default=2.0, metavar="A",
        help="sample complexity n/d [2]",
    )  # fmt: skip
    parser.add_argument(
        "--points", type=whole("--points", 16, 300), default=300, metavar="N",
        help="of the density [300]",
    )  # fmt: skip
    _add_networks(parser, switch=True, dimension=200)
    add_output(parser)


def _add_bounds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--digits", type=digits(30), metavar="N", help="refine to N digits, up to 1000"
    )
    parser.add_argument(
        "--tune-step", action="store_true", help="scan the size of the step at --alpha0"
    )
    add_output(parser)


def _add_figure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "number", type=whole("N", 1, 2), metavar="N", help="number of the figure, 1 to 8"
    )
    _add_networks(parser, switch=False, dimension=200)
    parser.add_argument("--cache-folder", metavar="FOLDER", help="where derivations are kept")
    add_output(parser)


def _numbers(flag: str, example: str) -> Callable[[str], list[float]]:
    def read(text: str) -> list[float]:
        parts = [part.strip() for part in text.split(",")]
        values = [real(flag, part, example) for part in parts]
        if not all(map(math.isfinite, values)):
            raise argparse.ArgumentTypeError(f"must be finite, got {text!r}; use {flag} {example}")
        return values

    return read


def check_curve(arguments: argparse.Namespace) -> None:
    """Refuse flags of a readout that contradict each other, before anything is derived."""
    if arguments.fractions is not None and arguments.letters is None:
        raise ParameterError("--fractions belongs to --letters; add --letters 1,-0.5")
    if arguments.bulk is not None:
        for flag, given, why in (
            ("--letters", arguments.letters is not None, "has one letter"),
            ("--simulate", arguments.simulate, "does not say how rows are drawn"),
            ("--leading-order complete", arguments.leading_order == "complete",
             "has the norms and the stretch of the rows already"),
        ):  # fmt: skip
            if given:
                raise ParameterError(f"--bulk and {flag} exclude each other: a law {why}")
    if arguments.labels is not None and arguments.loss is None:
        raise ParameterError("--labels belongs to --loss; add --loss logistic")


def check_tuning(arguments: argparse.Namespace) -> None:
    """Refuse flags of one step where all steps are scanned."""
    if arguments.digits is not None:
        raise ParameterError("--digits is for one step; leave out it or --tune-step")
    for flag in ("--step-size", "--learning-rate", "--convention"):
        if getattr(arguments, flag[2:].replace("-", "_")) is not None:
            raise ParameterError(f"{flag} is for one step; leave out it or --tune-step")
    if arguments.leading_order == "complete":
        raise ParameterError(
            "--leading-order complete is for one step; leave out --tune-step or take "
            "--leading-order published"
        )


def curve(arguments: argparse.Namespace) -> int:
    """Print theory and simulation of a learning curve."""
    check_curve(arguments)
    out = checked_out(arguments, "srf")
    model = _readout(arguments)
    data = model.curve(alpha=arguments.alpha, ridge=arguments.ridge).to_dataset()
    simulation = None
    if arguments.simulate:
        simulation = model.simulate(
            arguments.dimension, alpha=arguments.alpha, ridge=arguments.ridge,
            seeds=arguments.seeds, seed=arguments.seed,
        )  # fmt: skip
    text = f"{model}\n\n{_curve_table(data, simulation)}"
    linear = _linear(arguments, model)
    if linear is not None:
        text += f"\n\nlinear bound (kernels): {linear:.10g}"
        data = data.assign(linear_bound=linear)
    if simulation is not None:
        names = [n for n in simulation.data_vars if str(n).startswith("test_error_")]
        data = data.assign({f"simulated_{n}": simulation[n] for n in names})
    deliver(
        arguments, out, text=text, title=str(model).splitlines()[0], data=data,
        draw=lambda: _curve_figure(data, simulation),
    )  # fmt: skip
    return 0


def phase(arguments: argparse.Namespace) -> int:
    """Print and draw a quantity over two parameters."""
    from .derivations.spiked_random_features.phase_diagram import phase_diagram, plot_phase_diagram

    out = checked_out(arguments, "srf")
    (x, x_values), (y, y_values) = arguments.x, arguments.y
    data = phase_diagram(
        model_from(arguments), x, x_values, y, y_values,
        quantity=arguments.show.replace("-", "_"), alpha=arguments.alpha, ridge=arguments.ridge,
    )  # fmt: skip
    best = data["test_error"].argmin(...)
    place = data["test_error"].isel({k: int(v) for k, v in best.items()})
    where = ", ".join(f"{name} = {float(place[name]):.6g}" for name in (x, y))
    lines = [
        f"{len(x_values)} x {len(y_values)} points, {x} and {y}",
        f"smallest test error {float(place):.10g} at {where}",
        f"largest test error  {float(data['test_error'].max()):.10g}",
    ]
    if "optimal_ridge" in data:
        low, high = (float(f(data["optimal_ridge"])) for f in (_least, _largest))
        lines.append(f"optimal ridge penalties from {low:.6g} to {high:.6g}")
    share = float((data["test_error"] < data["linear_bound"]).mean())
    bound = float(data["linear_bound"])
    lines.append(f"below the linear bound {bound:.10g}: {share:.0%} of the points")
    deliver(
        arguments, out, text="\n".join(lines), title="Phase diagram", data=data,
        draw=lambda: plot_phase_diagram(data),
    )  # fmt: skip
    return 0


def spectrum(arguments: argparse.Namespace) -> int:
    """Print and draw the spectrum of the feature covariance."""
    out = checked_out(arguments, "srf")
    model = model_from(arguments)
    result = model.spectrum(alpha=arguments.alpha, points=arguments.points)
    text, simulation = str(result), None
    if arguments.simulate:
        simulation = result.simulate(arguments.dimension, seeds=arguments.seeds)
        distance = simulation.distance(result)
        layers = len(simulation.eigenvalues)
        text += (
            f"\n{layers} simulated layers, d = {arguments.dimension}: distance of the cumulative "
            f"distributions {distance:.4g}"
        )
    width = round(model.beta * arguments.dimension) if arguments.simulate else None
    deliver(
        arguments, out, result, text=text, title=str(model),
        draw=lambda: result.plot(simulation, width=width),
    )  # fmt: skip
    return 0


def bounds(arguments: argparse.Namespace) -> int:
    """Print bounds and limits; with --tune-step those over the step."""
    out = checked_out(arguments, "srf")
    if arguments.tune_step:
        check_tuning(arguments)
        return _tuned(arguments, out)
    model = model_from(arguments)
    results: list[Any] = [model.bounds(digits=arguments.digits)]
    if arguments.digits is None:
        results.append(model.asymptotics())
    text = "\n\n".join(map(str, [model, *results]))

    def functions() -> xr.Dataset:
        data: xr.Dataset = model.realised_functions()
        data.attrs["best_linear_error"] = model.best_linear_error
        return data

    deliver(
        arguments, out, *results, text=text, title=str(model), data=functions,
        draw=lambda: _functions_figure(functions()),
    )  # fmt: skip
    return 0


def figure(arguments: argparse.Namespace) -> int:
    """Draw a figure of the paper."""
    from .derivations.spiked_random_features.paper_figures.numbered import paper_figure

    if arguments.out is None and not arguments.json:
        raise ParameterError(
            f"a figure needs a file: add --out figure{arguments.number}.png, or --json for its data"
        )
    out = checked_out(arguments, f"figure{arguments.number}")
    result = paper_figure(
        arguments.number, dimension=arguments.dimension, seeds=arguments.seeds,
        seed=arguments.seed, cache_folder=arguments.cache_folder,
    )  # fmt: skip
    title = f"Figure {result.number}: {result.title}"
    deliver(
        arguments, out, text=title, title=title, data=result.data, draw=lambda: result.figure
    )  # fmt: skip
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
    result = bounds_over_step(
        *pair, alpha0=arguments.alpha0, noise_variance=arguments.noise, beta=arguments.beta,
        cache_folder=folder,
    )  # fmt: skip
    samples = "∞" if math.isinf(result.alpha0) else f"{result.alpha0:g}"
    head = (
        f"student {result.student}, teacher {result.teacher}; α₀ = {samples}, "
        f"Δ = {result.noise_variance:g}, β = {arguments.beta:g}"
    )
    lines = [f"{head}\n", str(result)]
    if result.best_upper.perfect:
        lines += [
            f"perfect learning: {perfect}"
            for perfect in perfect_learning(*pair, cache_folder=folder)
        ]
    data = result.curve.to_dataset().assign(linear_bound=result.linear)
    deliver(
        arguments, out, text="\n".join(lines), title=head, data=data,
        draw=lambda: _step_figure(data),
    )  # fmt: skip
    return 0


# ---------------------------------------------------------------------- figures


def _curve_figure(data: xr.Dataset, simulation: xr.Dataset | None) -> Any:
    from .derivations.figures import styled
    from .derivations.spiked_random_features.paper_figures import numbered as drawing

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
    from .derivations.spiked_random_features.paper_figures import numbered as drawing

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
    from .derivations.spiked_random_features.paper_figures import numbered as drawing

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
