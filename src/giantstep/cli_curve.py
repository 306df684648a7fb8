"""``giantstep curve`` and ``solve``: the theory at once, then networks, then report and data.

Until the table of the theory is printed nothing is imported but NumPy and what solves the
equations: a derivation that is in the cache needs no SymPy.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import shlex
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _LOADED, cli_options as opts
from .cli_files import PAGES, check_folder, deliver, output, save_data, show, unusable
from .cli_options import Command, Group, digits, option, spaced, srf_model, whole
from .errors import ApproximationWarning, ParameterError
from .pages import aligned

if TYPE_CHECKING:
    import xarray as xr

    from .derivations.spiked_random_features.model import SpikedRandomFeatures

_CURVE = """\
conventions:
  d inputs, p = BETA d neurons, n = ALPHA d samples for the readout, n0 = ALPHA0 d for the step.
  step     every row moves by STEP_SIZE times its gradient (1/n0) sum (y - f0) sigma'(w.x) x;
           in the convention W <- W + eta sqrt(p) G of the papers, STEP_SIZE = eta/sqrt(p).
           0 takes no step: plain random features.
  rate     --learning-rate R in one of three conventions, which agree at BETA = 1:
             sqrt-width      W <- W + eta sqrt(p) G, eta = R sqrt(p): STEP_SIZE = R
             sqrt-dimension  W <- W + eta sqrt(p) G, eta = R sqrt(d): STEP_SIZE = R/sqrt(BETA)
             dimension       W <- W + eta G,         eta = R d:       STEP_SIZE = R/BETA
  width    the theory is the limit of many neurons; --width P adds what the ridge penalty takes
           for the mean of P readout weights, the correction of order 1/P that matters.
  ridge    the readout minimises sum (y - phi.w/sqrt(p))^2 + RIDGE |w|^2.
  noise    variance of the Gaussian label noise, in both training sets.
  errors   test error against the noise-free target on fresh inputs.

files:
  Without --out none. --out curve.html writes curve.html (report), curve.png and curve.pdf (figure),
  curve.nc (theory) and, with --simulate, curve-simulation.nc (every network); --out curve.pdf and
  others that file alone, a figure with its data. Finished networks are kept at once in the folder
  .giantstep-simulations next to it (--store chooses another one): the same command resumes after
  an interruption, and more --seeds extend a run.

examples:
  giantstep curve --student tanh --teacher sin --simulate --out curve.html
  giantstep curve --student tanh --teacher sin --alpha 0.1:10:40 --ridge 0.01
  giantstep curve --student relu --teacher tanh --allow-non-odd --noise 0.25 --out relu.html
"""

_SOLVE = """\
--digits N   N digits, up to 1000, by mpmath; only digits that hold are printed.
--certify    a proof by interval arithmetic (python-flint): the equations have exactly one solution
             in a small box, and training and test error lie in the intervals that are printed;
             with --digits N as narrow as N digits [15]. It is about the equations of the theory,
             their integrals included; that they describe networks rests on the replica method.
             Where there is no proof there is no interval: the command says why, exit code 2.
--out FILE   the solution; with --certify .json has the intervals, exactly, and what they rest on.

examples:
  giantstep solve --student tanh --teacher sin --alpha 2 --ridge 0.1
  giantstep solve --student tanh --teacher sin --alpha 2 --ridge 0.1 --digits 50
  giantstep solve --student erf --teacher erf --alpha 1 --ridge 1e-3 --certify --out proof.json
"""


_MODEL = (
    "student", "teacher", "step_size", "alpha0", "beta", "noise_variance", "allow_non_odd",
    "leading_order", "width", "cache_folder",
)  # fmt: skip
_DEFAULT_ALPHA = tuple(round(0.2 * k, 1) for k in range(1, 16))
_DEFAULT_STEP = 3.0
_STORE_NAME = ".giantstep-simulations"
_CURVE_POINTS = 200
_WIDTH = 100
_LONGEST_FORMULA = 110


def curve(arguments: argparse.Namespace) -> int:
    """Print theory and simulation; write figure, report and data."""
    alphas = list(arguments.alpha or _DEFAULT_ALPHA)
    settle_step(arguments)
    if arguments.simulate:
        _check_samples(arguments, alphas)
    model = model_from(arguments)
    store = store_folder(arguments, arguments.out) if arguments.simulate else None
    # What has no optimum is refused before anything is printed.
    optimal: Mapping[str, Any] = {}
    if arguments.optimal:
        from .derivations.multi_index.optimum import optimal_lines

        optimal = optimal_lines(model, alphas)
    _print_theory(model, alphas, arguments.ridge)
    if optimal:
        _print_optimal(model, alphas, optimal)
    if arguments.latex:
        from .derivations.spiked_random_features.presentation import equations_latex

        show(f"\n{equations_latex(model)}")
    simulation = _simulate(model, alphas, arguments, store) if arguments.simulate else None
    _deliver(model, alphas, arguments, simulation, optimal)
    if simulation is not None and simulation.attrs["interrupted"]:
        finished = simulation.sizes["seed"]
        raise KeyboardInterrupt(
            f"after {finished} of {arguments.seeds} networks; these are reported"
            f"{resume_text(store)}"
        )
    return 0


def solve(arguments: argparse.Namespace) -> int:
    """Print one saddle point with all order parameters; with a proof, if that is wanted."""
    model = model_from(arguments)
    given = {"certify": True} if arguments.certify else {}
    if arguments.digits is not None:
        given["digits"] = arguments.digits
    with stated():
        solution = model.solve(alpha=arguments.alpha, ridge=arguments.ridge, **given)
    head = describe_model(model, arguments.ridge)
    text = f"{head}\n\nα = {arguments.alpha:g}, λ = {arguments.ridge:g}\n{solution}"
    results: list[Any] = [solution]
    if arguments.certify:
        # What is proven comes first in documents, and alone.
        results = [solution.certificate, solution]
        text += f"\n\n{solution.certificate}"
    document = json.loads(results[0].to_json()) if arguments.json or arguments.out else None
    return deliver(
        arguments, *results, text=text, title=head.splitlines()[0],
        document=document, data=lambda: solution.to_dataset(), draw=lambda: solution.plot(),
    )  # fmt: skip


def model_from(arguments: argparse.Namespace) -> SpikedRandomFeatures:
    """Return the model that the flags describe."""
    from .derivations.spiked_random_features.model import SpikedRandomFeatures

    return SpikedRandomFeatures(**model_arguments(arguments))


def model_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of a model of spiked features, its step settled."""
    settle_step(arguments)
    return {name: getattr(arguments, name) for name in _MODEL}


def settle_step(arguments: argparse.Namespace) -> None:
    """Set the step per neuron, from the learning rate if that is what was given."""
    if arguments.learning_rate is None:
        if arguments.convention is not None:
            raise ParameterError("--convention is about --learning-rate R; give that, too")
        if arguments.step_size is None:
            arguments.step_size = _DEFAULT_STEP
        return
    if arguments.step_size is not None:
        raise ParameterError("give either --step-size or --learning-rate, not both")
    from .derivations.spiked_random_features.spike import per_neuron_step

    arguments.step_size = per_neuron_step(
        arguments.learning_rate, arguments.convention or "sqrt-width", beta=arguments.beta
    )
    # Settled: a second look finds the step.
    arguments.learning_rate = arguments.convention = None


def describe_model(model: SpikedRandomFeatures, ridge: float) -> str:
    """Return parameters, spike and what was derived, as text."""
    from .derivations.readable import readable
    from .derivations.spiked_random_features.model import quality_text
    from .derivations.tables import uninformative

    result, spike = model.derivation, model.spike
    alpha0 = "∞" if model.alpha0 == math.inf else f"{model.alpha0:g}"
    lines = [
        f"student {result.student}, teacher {result.teacher}; "
        f"s = {model.step_size:g}, α₀ = {alpha0}, β = {model.beta:g}, λ = {ridge:g}, "
        f"Δ = {model.noise_variance:g}"
        + ("" if model.width is None else f"; finite-width correction for p = {model.width}"),
        "",
        _step_heading(model),
        f"  spike strength r = {spike.spike_strength:.10g}, bulk variance "
        f"c = {spike.bulk_variance:.10g}, alignment γ = {spike.alignment:.10g}",
        f"  leap index of the teacher {model.leap_index}, error of the best linear predictor "
        f"{model.best_linear_error:.10g}",
    ]
    if model._case["correlated_norms"]:
        lines.append(
            f"  norm overlap a = {spike.norm_overlap:.10g}: squared norms of the rows are "
            "c + 2 a b·v (not in Result 3.1)"
        )
    if model._case["stretched"]:
        along, mixed, across = spike.stretch
        lines.append(
            f"  stretch of the rows by 1 + T, T = {along:.10g} along the spike, {across:.10g} "
            f"across it, {mixed:.10g} mixed (not in Result 3.1)"
        )
    quality = quality_text(model)
    if quality:
        lines.append(_wrapped(quality, "  "))
    if model.leap_index > 1 and model.step_size:
        lines.append(_wrapped(uninformative(model.leap_index), "  "))
    lines += ["", "Conditional coefficients (Result 3.2): closed forms, or 𝔼 where no rule has one"]
    formulas = {readable(name): readable(value) for name, value in result.functions}
    width = max(map(len, formulas))
    lines += [f"  {name:<{width}} = {_shortened(text)}" for name, text in formulas.items()]
    head, _, blocks = readable(result.structure).partition(": ")
    lines += ["", f"Saddle point (Result 3.3), from the free energy by differentiation: {head}"]
    lines += [f"  {k}. {block}" for k, block in enumerate(blocks.split("; "), 1)]
    return "\n".join(lines)


@contextlib.contextmanager
def stated() -> Iterator[None]:
    """Silence the warning about the bulk: a command prints it with the model."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Bulk of the network", ApproximationWarning)
        yield


def _step_heading(model: SpikedRandomFeatures) -> str:
    if not model.step_size:
        return "No step: plain random features"
    extended = "" if model.derivation.odd_student else ", extended to students that are not odd"
    return f"The step makes spiked random features (Result 3.1{extended})"


def seconds_since_start() -> float:
    """Return the seconds since this package was imported, by one clock.

    The start of the process itself is known in the ticks of another clock, which may differ from
    all that can be asked for now by any amount.
    """
    return time.perf_counter() - _LOADED


# ---------------------------------------------------------------------- checks before work


def store_folder(arguments: argparse.Namespace, out: Path | None) -> Path | None:
    if arguments.store is not None:
        store = Path(arguments.store).expanduser()
    elif out is not None:
        store = out.parent / _STORE_NAME
    else:
        return None
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(unusable(store, "--store", error)) from None
    check_folder(store, "--store")
    if arguments.store is None:
        # A folder that nobody asked for should not show up in anybody's version control.
        ignore = store / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    return store


def _check_samples(arguments: argparse.Namespace, alphas: Sequence[float]) -> None:
    """Refuse ratios without whole numbers of samples before anything is computed."""
    ratios = [("--beta", arguments.beta), *(("--alpha", alpha) for alpha in alphas)]
    if arguments.step_size:
        ratios.append(("--alpha0", arguments.alpha0))
    for flag, ratio in ratios:
        if ratio == math.inf:
            raise ParameterError(
                f"{flag} inf cannot be simulated: networks have finitely many samples; "
                f"use {flag} 20"
            )
        samples = ratio * arguments.dimension
        if abs(round(samples) - samples) > 0.01 * samples:
            from .numeric.networks.sizes import sample_count

            try:
                sample_count("ratio", ratio, arguments.dimension)
            except ParameterError as error:
                _, _, remedy = str(error).partition("\n")
                for name in ("dimension = ", "dimension >= "):
                    remedy = remedy.replace(name, f"--{name}".replace(" = ", " "))
                raise ParameterError(
                    f"{flag} {ratio:g} times --dimension {arguments.dimension} is not close to a "
                    f"whole number of samples; {remedy.strip()}"
                ) from None


# ---------------------------------------------------------------------- theory


def _print_theory(model: SpikedRandomFeatures, alphas: list[float], ridge: float) -> None:
    from .derivations.tables import THEORY_COLUMNS, theory_cells, theory_rests_on

    batch = model.solve_many(alpha=alphas, ridge=[ridge])
    values, errors = batch.values["test_error"], batch.errors["test_error"]
    rows = [
        [*theory_cells(alpha, float(value), float(error)), f"{float(training):#.10g}"]
        for alpha, value, error, training in zip(
            alphas, values, errors, batch.values["training_error"], strict=True
        )
    ]
    headings = ["α", "test error", *THEORY_COLUMNS[2:], "training error"]
    show(describe_model(model, ridge))
    show(f"\n{_indented(aligned(headings, rows))}\n")
    show(_wrapped(theory_rests_on(float(batch.residual.max()), float(errors.max())), "  "))
    show(f"  Time since giantstep was loaded: {seconds_since_start():.2f} s")


def _print_optimal(
    model: SpikedRandomFeatures, alphas: list[float], lines: Mapping[str, Any]
) -> None:
    rows = [
        [f"{alpha:g}", *(f"{float(line[i]):#.10g}" for line in lines.values())]
        for i, alpha in enumerate(alphas)
    ]
    headings = ["α", "Bayes", "message passing", "step's direction alone"]
    show(f"\n{_indented(aligned(headings, rows))}\n")
    show(_wrapped(
        f"Errors with the samples of step and readout, alpha0 + α; the best linear predictor has "
        f"{model.best_linear_error:.10g}.", "  ",
    ))  # fmt: skip


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_FORMULA:
        return text
    return f"{text[:_LONGEST_FORMULA]}… (all of it with --latex)"


# ---------------------------------------------------------------------- simulation


def _simulate(
    model: SpikedRandomFeatures,
    alphas: list[float],
    arguments: argparse.Namespace,
    store: Path | None,
) -> xr.Dataset:
    d = arguments.dimension
    step = f", n0 = {round(model.alpha0 * d)} samples for the step" if model.step_size else ""
    show(
        f"\nTraining {arguments.seeds} networks: d = {d}, p = {round(model.beta * d)} neurons"
        f"{step}, up to n = {round(max(alphas) * d)} for the readout"
    )
    if store is not None and arguments.store is None:
        store = _folder_of_run(store, model, alphas, arguments)
    try:
        simulation = model.simulate(
            d, alpha=alphas, ridge=arguments.ridge, seeds=arguments.seeds, seed=arguments.seed,
            workers=arguments.workers, store=store,
        ).dataset  # fmt: skip
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"before two networks had finished, so there is nothing to average{resume_text(store)}"
        ) from None
    from .derivations.tables import COMPLETE, COMPLETE_COLUMNS, FINITE_SIZE, simulation_rests_on

    headings, rows = _compared(model, alphas, arguments.ridge, simulation)
    show(f"\n{_indented(aligned(headings, rows))}\n")
    notes = [simulation_rests_on(simulation.sizes["seed"], d), FINITE_SIZE]
    notes += [COMPLETE] if COMPLETE_COLUMNS[0] in headings else []
    for note in (*notes, _realised(model, simulation)):
        show(_wrapped(note, "  "))
    return simulation


def _realised(model: SpikedRandomFeatures, simulation: xr.Dataset) -> str:
    """Spike strength, bulk variance and alignment of the networks beside their limits."""
    parts = []
    networks = simulation.sizes["seed"]
    for letter, name in (("r", "spike_strength"), ("c", "bulk_variance"), ("γ", "alignment")):
        values, limit = simulation[name], getattr(model.spike, name)
        if "teacher" in values.dims:
            # The first direction is that of C_1; across it the spike has no limit but zero.
            values = values.isel(teacher=0)
        error = float(values.std(ddof=1)) / networks**0.5 if networks > 1 else 0.0
        parts.append(f"{letter} = {float(values.mean()):.4f} ± {error:.4f} (limit {limit:.4f})")
    return f"Realised by the networks: {', '.join(parts)}"


def _compared(
    model: SpikedRandomFeatures, alphas: list[float], ridge: float, simulation: xr.Dataset
) -> tuple[list[str], list[list[str]]]:
    from .derivations.tables import (
        COMPLETE_COLUMNS,
        SIMULATION_COLUMNS,
        THEORY_COLUMNS,
        complete_cells,
        simulation_cells,
        theory_cells,
    )

    batch = model.solve_many(alpha=alphas, ridge=[ridge])
    errors = (simulation[f"test_error_{n}"].to_numpy() for n in ("mean", "standard_error"))
    measured = [(float(mean), float(error)) for mean, error in zip(*errors, strict=True)]
    tables = (table["test_error"].tolist() for table in (batch.values, batch.errors))
    rows = [
        theory_cells(alpha, float(theory), float(error))
        + simulation_cells(float(theory), *networks)
        for alpha, theory, error, networks in zip(alphas, *tables, measured, strict=True)
    ]
    headings = [*THEORY_COLUMNS, *SIMULATION_COLUMNS]
    corrected = model.complete()
    if corrected is not None:
        headings += COMPLETE_COLUMNS
        values = corrected.solve_many(alpha=alphas, ridge=[ridge]).values["test_error"]
        for row, theory, networks in zip(rows, values, measured, strict=True):
            row += complete_cells(float(theory), *networks)
    return headings, rows


def _folder_of_run(
    store: Path, model: SpikedRandomFeatures, alphas: list[float], arguments: argparse.Namespace
) -> Path:
    """Return a folder for what fixes the networks: a store is that of one run."""
    from .derivations.spiked_random_features.simulated import network_of

    network = network_of(model, arguments.dimension).identity()
    key = [model.student, model.teacher, network, alphas, arguments.ridge, arguments.seed]
    return store / hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]


def resume_text(store: Path | None) -> str:
    if store is None:
        return ""
    return f"; finished networks are kept in {str(store)!r}, the same command resumes"


# ---------------------------------------------------------------------- files


def _deliver(
    model: SpikedRandomFeatures,
    alphas: list[float],
    arguments: argparse.Namespace,
    simulation: xr.Dataset | None,
    optimal: Mapping[str, Any],
) -> None:
    out: Path | None = arguments.out
    if out is None and not arguments.json:
        return
    from .derivations.curve_figure import draw_lines_beside, plot_curve
    from .derivations.spiked_random_features.solution import with_complete

    with stated():
        curve = model.curve(alpha=_dense(alphas), ridge=arguments.ridge)
    theory = curve.to_dataset()
    if simulation is not None:
        theory = with_complete(model, theory)

    def drawn() -> Any:
        axes = plot_curve(theory, simulation=simulation)
        if optimal:
            from .derivations.multi_index.optimum import LINES

            draw_lines_beside(axes, alphas, {LINES[name]: y for name, y in optimal.items()})
        return axes

    if out is not None and out.suffix.lower() in PAGES:
        _write_report(model, theory, simulation, alphas, out, drawn)
        arguments.out = None
    document = curve.to_dict()
    if simulation is not None:
        document["simulation"] = simulation.to_dict()
    deliver(arguments, curve, text="", document=document, data=theory, draw=drawn)


def _write_report(
    model: SpikedRandomFeatures,
    theory: xr.Dataset,
    simulation: xr.Dataset | None,
    alphas: list[float],
    out: Path,
    drawn: Callable[[], Any],
) -> None:
    """Write report, figure and data next to each other."""
    from .derivations.figures import save_figure

    axes = drawn()
    written = [save_figure(axes, out.with_suffix(suffix)) for suffix in (".png", ".pdf")]
    written.append(save_data(theory, out.with_suffix(".nc")))
    if simulation is not None:
        written.append(save_data(simulation, out.with_name(f"{out.stem}-simulation.nc")))
    report = model.write_curve_report(
        out,
        theory,
        simulation,
        rows=alphas,
        figure=axes.figure,
        command=shlex.join(["giantstep", *sys.argv[1:]]),
        seconds=seconds_since_start(),
    )
    print(f"\nWrote {', '.join(map(str, [report, *written]))}", flush=True)


def _dense(alphas: list[float]) -> list[float]:
    """The points of the table and as many between them as make the line smooth."""
    low, high = min(alphas), max(alphas)
    if low == high:
        return [low]
    return sorted({*alphas, *spaced(low, high, _CURVE_POINTS)})


def _indented(text: str) -> str:
    return textwrap.indent(text, "  ")


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)


CURVE = Command(
    "curve", "learning curve, theory and simulation", curve, (
        *srf_model(), opts.ALPHAS.but(help=f"{opts.ALPHAS.help} [0.2:3:15]"),
        option(
            "--optimal",
            "add what Bayes and message passing reach with the samples of step and readout",
        ),
        Group("simulation", (
            opts.SIMULATE, opts.DIMENSION.but(read=whole(1, 1000), default=1000),
            opts.SEEDS.but(read=whole(2, 10), default=10), opts.SEED, opts.WORKERS,
            opts.STORE.but(
                help="where finished networks are kept [.giantstep-simulations next to --out]"
            ),
        )),
        Group("output", (*output(), opts.LATEX, opts.TABLE_ONLY)),
    ), _CURVE,
)  # fmt: skip
SOLVE = Command(
    "solve", "one saddle point with all order parameters", solve, (
        *srf_model(), opts.ALPHA, opts.DIGITS.but(read=digits(50)), opts.CERTIFY, *output(),
    ), _SOLVE,
)  # fmt: skip
