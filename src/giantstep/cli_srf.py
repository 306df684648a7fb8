"""``giantstep srf``: curves, phase diagrams, spectra, bounds and the figures of the paper."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from . import cli_options as opts
from .cli_curve import model_arguments, model_from
from .cli_files import deliver, output
from .cli_options import (
    Command,
    Group,
    Option,
    axis,
    flag_of,
    numbers,
    option,
    srf_model,
    whole,
)
from .errors import ParameterError
from .pages import aligned
from .pictures import Line, Lines

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

Each command has its own help, such as giantstep srf bounds --help.

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
    for name in ("step_size", "learning_rate", "convention"):
        if getattr(arguments, name) is not None:
            raise ParameterError(f"{flag_of(name)} is for one step; leave out it or --tune-step")
    if arguments.leading_order == "complete":
        raise ParameterError(
            "--leading-order complete is for one step; leave out --tune-step or take "
            "--leading-order published"
        )


def curve(arguments: argparse.Namespace) -> int:
    """Print theory and simulation of a learning curve."""
    check_curve(arguments)
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
    return deliver(
        arguments, text=text, title=str(model).splitlines()[0], data=data,
        draw=lambda: _curve_figure(data, simulation),
    )  # fmt: skip


def phase(arguments: argparse.Namespace) -> int:
    """Print and draw a quantity over two parameters."""
    from .derivations.spiked_random_features.phase_diagram import phase_diagram, plot_phase_diagram

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
        penalties = data["optimal_ridge"]
        low, high = float(penalties.min()), float(penalties.max())
        lines.append(f"optimal ridge penalties from {low:.6g} to {high:.6g}")
    share = float((data["test_error"] < data["linear_bound"]).mean())
    bound = float(data["linear_bound"])
    lines.append(f"below the linear bound {bound:.10g}: {share:.0%} of the points")
    return deliver(
        arguments, text="\n".join(lines), title="Phase diagram", data=data,
        draw=lambda: plot_phase_diagram(data),
    )  # fmt: skip


def spectrum(arguments: argparse.Namespace) -> int:
    """Print and draw the spectrum of the feature covariance."""
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
    return deliver(
        arguments, result, text=text, title=str(model),
        draw=lambda: result.plot(simulation, width=width),
    )  # fmt: skip


def bounds(arguments: argparse.Namespace) -> int:
    """Print bounds and limits; with --tune-step those over the step."""
    if arguments.tune_step:
        check_tuning(arguments)
        return _tuned(arguments)
    model = model_from(arguments)
    results: list[Any] = [model.bounds(digits=arguments.digits)]
    if arguments.digits is None:
        results.append(model.asymptotics())
    text = "\n\n".join(map(str, [model, *results]))

    def functions() -> xr.Dataset:
        data: xr.Dataset = model.realised_functions()
        data.attrs["best_linear_error"] = model.best_linear_error
        return data

    return deliver(
        arguments, *results, text=text, title=str(model), data=functions,
        draw=lambda: _functions_figure(functions()),
    )  # fmt: skip


def figure(arguments: argparse.Namespace) -> int:
    """Draw a figure of the paper."""
    from .derivations.spiked_random_features.paper_figures.numbered import paper_figure

    if arguments.out is None and not arguments.json:
        raise ParameterError(
            f"a figure needs a file: add --out figure{arguments.number}.png, or --json for its data"
        )
    result = paper_figure(
        arguments.number, dimension=arguments.dimension, seeds=arguments.seeds,
        seed=arguments.seed, cache_folder=arguments.cache_folder,
    )  # fmt: skip
    title = f"Figure {result.number}: {result.title}"
    return deliver(
        arguments, text=title, title=title, data=result.data, draw=lambda: result.figure
    )  # fmt: skip


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

    count = len(arguments.letters)
    fractions = arguments.fractions or [1 / count] * count
    return VocabularyFeatures(
        letters=arguments.letters, fractions=fractions, **model_arguments(arguments)
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


def _tuned(arguments: argparse.Namespace) -> int:
    from .derivations.spiked_random_features.bounds.step_bounds import (
        bounds_over_step,
        perfect_learning,
    )

    pair, folder = (arguments.student, arguments.teacher), arguments.cache_folder
    given = {name: getattr(arguments, name) for name in ("alpha0", "noise_variance", "beta")}
    result = bounds_over_step(*pair, **given, cache_folder=folder)
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
    return deliver(
        arguments, text="\n".join(lines), title=head, data=data,
        draw=lambda: _step_figure(data),
    )  # fmt: skip


# ---------------------------------------------------------------------- figures


def _curve_figure(data: xr.Dataset, simulation: xr.Dataset | None) -> Any:
    from .derivations.curve_figure import draw_lines_beside, plot_curve

    axes = plot_curve(data, "test_error", simulation=simulation)
    if "test_error_strict_limit" in data:
        limit = {r"limit $p \to \infty$": data["test_error_strict_limit"].to_numpy()}
        draw_lines_beside(axes, data["alpha"].to_numpy(), limit)
    return axes


def _functions_figure(data: xr.Dataset) -> Any:
    from .derivations.figures import draw_picture

    names = {"upper": "U", "limit": r"E_\infty", "lower": "L"}
    x = data["kappa"].to_numpy()
    lines = [Line(x, data["target"].to_numpy(), "target", beside=True)]
    lines += [
        Line(x, data[name].to_numpy(), rf"${letter} = {data.attrs[f'error_{name}']:.3g}$")
        for name, letter in names.items()
    ]
    return draw_picture(Lines(
        lines, r"projection on the spike $\kappa$", r"output given $\kappa$",
        f"best linear predictor {data.attrs['best_linear_error']:.3g}",
    ))  # fmt: skip


def _step_figure(data: xr.Dataset) -> Any:
    from .derivations.figures import draw_picture

    names = {"upper": "$U$", "limit": r"$E_\infty$", "lower": "$L$"}
    x = data["spike_strength"].to_numpy()
    # Where a bound vanishes a logarithm does not end.
    lines = [Line(x, data[n].to_numpy().clip(1e-8), label) for n, label in names.items()]
    return draw_picture(Lines(
        lines, "spike strength $r$", "test error", logarithmic="xy" if x.min() > 0 else "y",
        levels={"best linear predictor": float(data["linear_bound"])},
    ))  # fmt: skip


# ---------------------------------------------------------------------- commands


def _axis(flag: str, default: str) -> Option:
    read = axis(default, AXES, from_zero=_FROM_ZERO)
    return option(f"{flag} AXIS", f"NAME=LOW:HIGH:COUNT [{default}]", read, read(flag)(default))


_NETWORKS = Group("networks", (opts.SIMULATE, opts.DIMENSION, opts.SEEDS, opts.SEED))
SRF = Command(
    "srf", "spiked random features: curves, bounds, spectra, figures", epilog=EPILOG, commands=(
        Command("curve", "test error against the samples", curve, (
            *srf_model(),
            opts.ALPHAS.but(
                help=f"{opts.ALPHAS.help} [0.5:3:6]", default=[0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
            ),
            option(
                "--letters LIST", "letters of the readout before the step, such as 1,-0.5",
                numbers("1,-0.5"),
            ),
            option(
                "--fractions LIST", "how many neurons have each letter; they add up to 1 [equal]",
                numbers("0.5,0.5"),
            ),
            option(
                "--bulk FILE",
                "law of the bulk in place of independent rows: a column of eigenvalues, a second "
                "one of weights, or JSON as BulkLaw.to_dict writes it; its mean becomes that of "
                "the step",
            ),
            option(
                "--loss LOSS", "convex loss of the readout, such as huber(0.5), logistic or "
                "log(1+exp(-y*x)) [ridge regression]",
            ),
            option(
                "--labels KIND", "labels of --loss: teacher, sign, probit or logistic [teacher]"
            ),
            _NETWORKS, *output(),
        ), _CURVE),
        Command("phase", "heat map over two parameters", phase, (
            *srf_model(), _axis("--x", "alpha=0.2:4:12"), _axis("--y", "ridge=0.001:10:12"),
            option(
                "--show", "what the colours are", default="test-error",
                choices=("test-error", "optimal-ridge"),
            ),
            opts.ALPHA.but(help="sample complexity n/d, where it is no axis"), *output(),
        ), _PHASE),
        Command("spectrum", "spectrum of the feature covariance", spectrum, (
            *srf_model(ridge=False), opts.ALPHA,
            option("--points N", "of the density", whole(16, 300), 300), _NETWORKS, *output(),
        ), _SPECTRUM),
        Command("bounds", "bounds of the test error and its limits", bounds, (
            *srf_model(ridge=False, width=False), opts.DIGITS,
            option("--tune-step", "scan the size of the step at --alpha0"), *output(),
        ), _BOUNDS, defaults={"width": None}),
        Command("figure", "a figure of the paper", figure, (
            option("NUMBER", "number of the figure, 1 to 8", whole(1, 2)),
            Group("networks", (
                opts.DIMENSION, opts.SEED,
                opts.SEEDS.but(read=whole(0, 4), help=f"{opts.SEEDS.help} [4]; 0 for none"),
            )),
            opts.CACHE_FOLDER, *output(),
        ), _FIGURE),
    ),
)  # fmt: skip
