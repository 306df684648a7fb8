"""``giantstep one-step``: risk, spectra, phase diagrams and limits of one gradient step."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import cli_options as opts
from .cli_curve import resume_text, store_folder
from .cli_files import DATA, deliver, output
from .cli_options import (
    Command,
    Group,
    Option,
    axis,
    flag_of,
    nonnegative,
    option,
    sample_complexities,
    spaced,
    whole,
)
from .errors import ParameterError
from .pages import aligned

if TYPE_CHECKING:
    import xarray as xr

    from .derivations.one_gradient_step.model import OneGradientStep

AXES = {
    "alpha": "alpha", "beta": "beta", "step-size": "step_size",
    "noise": "noise_variance", "ridge": "ridge", "paper-ridge": "paper_ridge",
}  # fmt: skip
"""Names of axes here, and in the library."""
RANGES = {
    "alpha": (0.25, 8.0), "beta": (0.25, 8.0), "step_size": (0.0, 6.0),
    "noise_variance": (0.0, 1.0), "ridge": (1e-3, 10.0), "paper_ridge": (1e-3, 10.0),
}  # fmt: skip
"""Where an axis goes that is named without its ends."""
PENALTIES = ("ridge", "paper_ridge")
ROWS = 12
_DEFAULT_RIDGE = 0.1
_FROM_ZERO = ("step_size", "noise_variance", *PENALTIES)
_DEFAULTS = {"alpha": 2.0, "beta": 1.5, "step_size": 2.0, "noise_variance": 0.0}

EPILOG = """\
One gradient step on the first layer of a two-layer network, with a step size of order one in the
proportional limit (Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445).

Each command has its own help, such as giantstep one-step risk --help.

examples:
  giantstep one-step risk --student erf --teacher erf --noise 0.25
  giantstep one-step risk --over alpha --simulate --out risk.png
  giantstep one-step spectrum --student tanh --teacher relu --centre --step-size 6 --alpha 4
  giantstep one-step phase --x step-size=0:6:30 --y alpha=0.3:8:30 --out phase.pdf
  giantstep one-step large-steps --student erf --teacher erf
"""

_CONVENTIONS = """\
conventions:
  d inputs, N = BETA d neurons, n = ALPHA d samples for the readout, n0 = ALPHA0 d for the step.
  step     W1 = W0 + STEP_SIZE sqrt(N) G, where G is minus the gradient of the half loss
           (1/2n) sum (f - y)^2. --loss full takes that of (1/n) sum (f - y)^2, twice as long:
           thresholds are then reached at half the step size.
  ridge    --ridge L: the readout minimises sum (y - phi.w/sqrt(N))^2 + L |w|^2;
           --paper-ridge LB: that of the paper, (1/n) sum (...)^2 + (LB/N) |w|^2. L = ALPHA/BETA LB.
  noise    variance of the Gaussian label noise, in both training sets; it lengthens the spike, too.
  risk     mean squared distance from the noise-free teacher on fresh inputs.
  centre   student and teacher have to have mean zero; --centre subtracts their means.

files:
  --out FILE is a figure for .png, .pdf or .svg, with its data next to it as .nc; a report with
  figure and numbers for .html; data alone for .nc, .json or .csv.
"""

_RISK = f"""\
Without an axis: all errors at one point. With --over NAME, or a LIST for one of the parameters: a
table over it, and a figure, with the error of the best linear predictor, below which neither
curve falls. NAME=LOW:HIGH:COUNT says where, evenly spaced in the logarithm if HIGH is more than
20 LOW; NAME is one of {", ".join(AXES)}.

--simulate trains networks and fits their readouts, at six values of an axis that is given by its
ends and at all values of a list; --features gaussian simulates the linearised model instead, for
which the theory is exact in the limit, both does both. With --store FOLDER, the same command
resumes after an interruption, and more --seeds extend a run.

--steps T takes T steps: to leading order one step, T times as long (--fresh: on T times as many
samples).

--certify, at one point, prints intervals that are proven to hold the risks of the closed form, and
says what they rest on; with --out point.json they are stored exactly.

{_CONVENTIONS}
examples:
  giantstep one-step risk --student erf --teacher erf --noise 0.25 --paper-ridge 0.05
  giantstep one-step risk --student erf --teacher erf --digits 30
  giantstep one-step risk --student erf --teacher erf --certify
  giantstep one-step risk --over alpha --ridge 0.01 --out peak.png
  giantstep one-step risk --beta 0.5,1,2,4 --simulate --dimension 200 --seeds 10
  giantstep one-step risk --over ridge=1e-4:10:40 --noise 0.25 --out ridge.html
  giantstep one-step risk --alpha 3 --beta 2 --step-size 1 --steps 4 --fresh --simulate
"""

_SPECTRUM = f"""\
  weights  singular values of W1: the bulk of W0, and an outlier once the step exceeds its
           critical size; squared overlaps of its vectors with the teacher and with the readout.
  kernel   eigenvalues of the conjugate kernel on a training set; its outlier needs a longer spike,
           theta1^2 > T_c > sqrt(BETA). For networks, and not their linearised model, a conjecture.

{_CONVENTIONS}
examples:
  giantstep one-step spectrum --teacher relu --centre --alpha 4 --beta 2 --step-size 6
  giantstep one-step spectrum --teacher relu --centre --alpha 4 --beta 2 --loss full
  giantstep one-step spectrum --matrix kernel --student softplus --teacher tanh --centre \\
      --alpha 1.5 --beta 1.25 --step-size 4 --simulate --dimension 400 --out kernel.png
"""

_PHASE = f"""\
Axes are NAME=LOW:HIGH:COUNT, evenly spaced in the logarithm if HIGH is more than 20 LOW; NAME is
one of {", ".join(AXES)}. Dashed lines are the step sizes from which the first layer and the
conjugate kernel have an outlier: the improvement does not jump there.

{_CONVENTIONS}
examples:
  giantstep one-step phase --student erf --teacher erf --noise 0.25 --out phase.png
  giantstep one-step phase --x beta=0.2:8:40 --y alpha=0.2:8:40 --show relative-improvement
"""

_OPTIMAL = f"""\
The penalty with the smallest risk of all stationary points, before and after the step. With few
samples, N > n, and little noise it may be 0: the risk then falls all the way to interpolation.

{_CONVENTIONS}
examples:
  giantstep one-step optimal --student erf --teacher erf --noise 0.25
  giantstep one-step optimal --alpha 0.5,1,2,4 --noise 0.25 --out optimal.csv
  giantstep one-step optimal --student erf --teacher erf --noise 0.25 --digits 30
"""

_STEPS = f"""\
At N neurons a step shows the student's degree k once ETA is about N^((k-1)/2k): between steps of
order one, which show the linear part alone, and giant steps, which show all (Moniri, Lee, Hassani,
Dobriban, arXiv 2310.07891). Printed are the risk with all degrees of the step, how large what that
leaves out is and whether networks were seen to agree there; with the linear spike alone; for large
widths at the same strengths; and of spiked random features whose letters are the readouts of the
step, which hold at every step size. With several step sizes: a table and a figure over them.

Student and teacher as for the other commands; features keep the student's mean.

{_CONVENTIONS}
examples:
  giantstep one-step steps --student erf --teacher "sin(3*z/2)" --alpha 4 --width 450
  giantstep one-step steps --width 600 --step-size 8 --student "z + He(3, z)/3" --digits 20
  giantstep one-step steps --student erf --teacher "sin(3*z/2)" --alpha 4 --width 450 \\
      --step-size 0,4,10,20,30 --simulate --seeds 4 --out steps.png
"""

_LARGE = """\
Steps of size eta = Theta(sqrt(N)) leave the regime of the Gaussian equivalence. Then
R <= C tau* + C' (sqrt(tau* d/n) + d/n) with tau* = inf_h E (f*(z) - E sigma(h z + z'))^2, of which
only tau* is known; kernels stay above the error of the best linear predictor.

--certify proves an interval for tau*, that no other amplitude h is better; for students where the
toolkit cannot prove that, an upper bound, and it says so.

examples:
  giantstep one-step large-steps --student erf --teacher erf
  giantstep one-step large-steps --student relu --teacher relu --centre --digits 20
  giantstep one-step large-steps --student erf --teacher sin --certify
  giantstep one-step large-steps --student tanh --teacher erf --out large.png
"""


def settle_axis(arguments: argparse.Namespace) -> None:
    """Set ``axis`` to its name, ``rows`` to its values, and all parameters to numbers.

    An axis is what --over names or what has several values. The penalty gets its default.

    Raises
    ------
    ParameterError
        If two parameters are an axis, or flags contradict each other.
    """
    several = [n for n in AXES.values() if len(getattr(arguments, n) or ()) > 1]
    axis, rows = arguments.over or (None, None)
    if axis is not None and getattr(arguments, axis) is not None:
        if rows is not None or axis not in several:
            raise ParameterError(
                f"{_flag(axis)} is the axis of --over; leave it out, or give the values of the "
                f"axis once, as in {_flag(axis)} 0.5,1,2"
            )
    wanted = {axis, *several} - {None}
    if len(wanted) > 1:
        flags = " and ".join(map(_flag, sorted(map(str, wanted))))
        raise ParameterError(f"{flags} have several values; an axis is one of them")
    arguments.axis = wanted.pop() if wanted else None
    arguments.listed = bool(several)
    if several:
        rows = sorted(getattr(arguments, several[0]))
    elif arguments.axis is not None and rows is None:
        # Three digits: these values were chosen by nobody.
        rows = [float(f"{v:.3g}") for v in spaced(*RANGES[arguments.axis], ROWS)]
    arguments.rows = rows
    _settle_numbers(arguments)


def check_penalty(arguments: argparse.Namespace, axes: tuple[str | None, ...]) -> None:
    """Set the default of the penalty; refuse two of them.

    Raises
    ------
    ParameterError
        If more than one of --ridge, --paper-ridge and an axis of theirs is given.
    """
    given = [
        name for name in PENALTIES if name in axes or getattr(arguments, name, None) is not None
    ]
    if len(given) > 1 or any(getattr(arguments, n) is not None and n in axes for n in given):
        raise ParameterError(
            "--ridge and --paper-ridge are one penalty, given or an axis; leave out all but one"
        )
    if not given:
        arguments.ridge = _DEFAULT_RIDGE


def _settle_numbers(arguments: argparse.Namespace) -> None:
    for name in AXES.values():
        values = getattr(arguments, name)
        if name == arguments.axis:
            values = None
        setattr(arguments, name, values[0] if values else None)
    check_penalty(arguments, (arguments.axis,))
    for name, default in _DEFAULTS.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, default)


def _flag(name: str) -> str:
    return flag_of(_FLAGS[name])


_CURVE_POINTS = 241
_FINITE_SIZE = (
    "Networks of a few hundred inputs differ from the limit by some per cent; standard errors of "
    "few networks are uncertain themselves."
)
_SIMULATED = 6
_FLAGS = {name: flag for flag, name in AXES.items()}
_MODEL = ("student", "teacher", "step_size", "alpha0", "noise_variance", "loss", "centre")


def risk(arguments: argparse.Namespace) -> int:
    """Print the risk at a point or over an axis; simulate, draw."""
    settle_axis(arguments)
    if arguments.features is not None and not arguments.simulate:
        raise ParameterError("--features is about --simulate; add that, too")
    if arguments.fresh and arguments.steps == 1:
        raise ParameterError("--fresh is about several steps; add their number, such as --steps 4")
    if arguments.axis is None:
        return _risk_at_a_point(arguments)
    if arguments.steps > 1:
        raise ParameterError("--steps is for one point; leave out it or the axis")
    if arguments.digits is not None:
        raise ParameterError("--digits is for one point; leave out it or the axis")
    if arguments.certify:
        raise ParameterError("--certify is for one point; leave out it or the axis")
    store = checked_store(arguments)
    from .derivations.one_gradient_step.figures import plot_risk, risk_data

    over, rows = arguments.axis, list(arguments.rows)
    values = set(rows)
    if has_figure(arguments.out) and len(rows) > 1:
        values |= set(spaced(rows[0], rows[-1], _CURVE_POINTS))
    sizes = _finite_sizes(arguments, over, rows) if arguments.simulate else None
    model = model_from(arguments)
    try:
        data = risk_data(model, over, values, **_penalty(arguments), simulated=sizes)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"before the networks of one value had finished{resumed(store)}"
        ) from None
    text = f"{_heading(model, data, over)}\n\n{_risk_table(data, over, rows)}"
    if sizes is not None:
        text += f"\n\n{_comparison(data, over)}"
    text += f"\n\nbest linear error (kernels): {model.best_linear_error:.10g}\n{model.standing}"
    if not has_figure(arguments.out):
        data = data.drop_vars("residual", errors="ignore")
    deliver(
        arguments, text=text, title=str(model), data=data, draw=lambda: plot_risk(data)
    )  # fmt: skip
    if data.attrs.get("interrupted"):
        raise KeyboardInterrupt(f"and what had finished is reported{resumed(store)}")
    return 0


def spectrum(arguments: argparse.Namespace) -> int:
    """Print and draw singular values of the first layer and eigenvalues of the kernel."""
    store = checked_store(arguments)
    model = model_from(arguments)
    wanted = ("weights", "kernel") if arguments.matrix == "both" else (arguments.matrix,)
    result: dict[str, Any] = {}
    if "weights" in wanted:
        result["weights"] = model.weight_spike(digits=arguments.digits, certify=arguments.certify)
    if "kernel" in wanted:
        result["kernel"] = model.conjugate_kernel(
            digits=arguments.digits, certify=arguments.certify
        )
    text = "\n\n".join(map(str, result.values()))
    if arguments.certify:
        text += "".join(f"\n\n{one.certificate}" for one in result.values())
    simulation = None
    if arguments.simulate:
        try:
            simulation = model.simulate_spectra(
                arguments.dimension, seeds=arguments.seeds, matrices=wanted, seed=arguments.seed,
                store=store,
            )  # fmt: skip
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"before a network had finished{resumed(store)}") from None
        text += f"\n\n{_spectra_comparison(result, simulation, arguments)}"
    from .derivations.one_gradient_step.figures import plot_spectra, spectra_data

    deliver(
        arguments, *result.values(), text=text, title=str(model),
        document={name: one.to_dict() for name, one in result.items()},
        data=lambda: spectra_data(result, simulation),
        draw=lambda: plot_spectra(result, simulation),
    )  # fmt: skip
    if simulation is not None and simulation.attrs["interrupted"]:
        raise KeyboardInterrupt(
            f"after {simulation.sizes['seed']} of {arguments.seeds} networks; these are "
            f"reported{resumed(store)}"
        )
    return 0


def phase(arguments: argparse.Namespace) -> int:
    """Print and draw what the step improves over two parameters."""
    from .derivations.one_gradient_step.figures import phase_data, plot_phase

    (x, x_values), (y, y_values) = arguments.x, arguments.y
    check_penalty(arguments, (x, y))
    model = model_from(arguments)
    data = phase_data(model, x, x_values, y, y_values, **_penalty(arguments))
    quantity = arguments.show.replace("-", "_")
    shown = data[quantity]
    lines = [f"{len(x_values)} x {len(y_values)} points, {_FLAGS[x]} and {_FLAGS[y]}"]
    for word, place in (("smallest", shown.argmin(...)), ("largest", shown.argmax(...))):
        point = shown.isel(place)
        where = ", ".join(f"{_FLAGS[name]} = {float(point[name]):.6g}" for name in (x, y))
        lines.append(f"{word} {arguments.show.replace('-', ' ')} {float(point):.10g} at {where}")
    for name, of in (("weights", "first layer"), ("kernel", "kernel")):
        critical = data.get(f"critical_step_size_{name}")
        if critical is not None:
            low, high = float(critical.min()), float(critical.max())
            lines.append(f"outlier of the {of} from step sizes of {low:.6g} to {high:.6g} on")
    lines += [f"best linear error (kernels): {model.best_linear_error:.10g}", model.standing]
    text = "\n".join(lines)
    return deliver(
        arguments, text=text, title=str(model), data=data,
        draw=lambda: plot_phase(data, quantity),
    )  # fmt: skip


def optimal(arguments: argparse.Namespace) -> int:
    """Print the best ridge penalties before and after the step."""
    several = len(arguments.alpha) > 1
    if several and arguments.digits is not None:
        raise ParameterError("--digits is for one point; leave out it or the list of --alpha")
    alpha, arguments.alpha = arguments.alpha, arguments.alpha[0]
    model = model_from(arguments)
    if not several:
        result = {
            n: model.optimum(over="ridge", trained=t, digits=arguments.digits) for n, t in _LAYERS
        }
        text = f"{model}\n\n" + "\n\n".join(
            f"{'after the step' if name == 'trained' else 'random features'}\n{one}"
            for name, one in result.items()
        )
        import xarray as xr

        columns = {f"{k}_{n}": float(getattr(one, k)) for n, one in result.items()
                   for k in ("ridge", "risk")}  # fmt: skip
        return deliver(
            arguments, *result.values(), text=text, title=str(model), data=xr.Dataset(columns),
            document={n: one.to_dict() for n, one in result.items()}, draw=result["trained"].plot,
        )  # fmt: skip
    from .derivations.one_gradient_step.figures import optimal_data, plot_optimal

    data = optimal_data(model, alpha)
    text = f"{_heading(model, data, 'alpha')}\n\n{_optimal_table(data)}"
    return deliver(
        arguments, text=text, title=str(model), data=data, draw=lambda: plot_optimal(data)
    )  # fmt: skip


def steps(arguments: argparse.Namespace) -> int:
    """Print and draw the risk at a finite width, at one step size or over several."""
    check_penalty(arguments, ())
    values = sorted(arguments.step_size)
    several = len(values) > 1
    if several and (arguments.digits is not None or arguments.certify):
        raise ParameterError(
            "--digits and --certify are for one point; leave them out, or give one --step-size"
        )
    arguments.step_size = values[-1]
    degrees = arguments.degrees and [int(k) if k.is_integer() else k for k in arguments.degrees]
    model = model_from(arguments).at_width(arguments.width, degrees=degrees)
    networks = {"seeds": arguments.seeds, "seed": arguments.seed} if arguments.simulate else {}
    if several:
        result = model.over_steps(step_size=values, **_penalty(arguments), **networks)
        text = f"{model}\n\n{result}"
        return deliver(arguments, result, text=text, title=str(model))
    one = model.solve(**_penalty(arguments), digits=arguments.digits, certify=arguments.certify)
    text = f"{model}\n\n{one}\n\n{model.spikes()}"
    if one.certificate is not None:
        text += f"\n\n{one.certificate}"
    document = one.to_dict()
    if networks:
        simulated = model.simulate(**_penalty(arguments), **networks)
        text += f"\n\n{simulated}"
        document["simulated"] = {
            "risk": float(simulated.mean().item()),
            "standard_error": float(simulated.standard_error().item()),
        }
    return deliver(arguments, one, text=text, title=str(model), document=document)


def large_steps(arguments: argparse.Namespace) -> int:
    """Print and draw what steps of order sqrt(N) can reach."""
    from .derivations.one_gradient_step.large_steps import large_step_limit, plot_large_steps

    result = large_step_limit(
        arguments.student, arguments.teacher, centre=arguments.centre, digits=arguments.digits,
        certify=arguments.certify, cache_folder=arguments.cache_folder,
    )  # fmt: skip
    return deliver(
        arguments, result, text=str(result), title="Large steps",
        draw=lambda: plot_large_steps(result),
    )  # fmt: skip


def model_from(arguments: argparse.Namespace) -> OneGradientStep:
    """Return the model that the flags describe; an axis is at any of its values."""
    from .derivations.one_gradient_step.model import OneGradientStep

    given = {name: getattr(arguments, name) for name in _MODEL}
    axis = getattr(arguments, "axis", None)
    if axis in ("step_size", "noise_variance"):
        # Checks of the model are about the largest of them.
        given[axis] = max(arguments.rows)
    return OneGradientStep(
        alpha=arguments.alpha, beta=arguments.beta, cache_folder=arguments.cache_folder, **given
    )


# ---------------------------------------------------------------------- one point

_LAYERS = (("initial", False), ("trained", True))


def _risk_at_a_point(arguments: argparse.Namespace) -> int:
    store = checked_store(arguments)
    if arguments.digits is not None and arguments.simulate:
        raise ParameterError("--digits is about the theory alone; leave out it or --simulate")
    if arguments.certify and arguments.simulate:
        raise ParameterError("--certify is about the theory alone; leave out it or --simulate")
    model = model_from(arguments)
    several = model.several_steps(arguments.steps, fresh=arguments.fresh)
    equivalent = model if arguments.steps == 1 else several.model
    given = {"certify": True} if arguments.certify else {}
    if arguments.digits is not None:
        given["digits"] = arguments.digits
    result = equivalent.risk(**_penalty(arguments), **given)
    head = str(model) if arguments.steps == 1 else f"{model}\n\n{several}"
    text = f"{head}\n\n{result}\nbest linear error (kernels) {model.best_linear_error:.12g}"
    document: dict[str, Any] = result.to_dict()
    if result.certificate is not None:
        text += f"\n\n{result.certificate}"
        document["certificate"] = result.certificate.to_dict()
    if arguments.steps > 1:
        document["several_steps"] = several.to_dict()
    interrupted = False
    if arguments.simulate:
        means, interrupted = _simulated_point(model, arguments, store)
        document["simulated"] = {kind: dict(row) for kind, row in means.items()}
        text += f"\n\n{_point_table(result, means, arguments.dimension)}"
    import xarray as xr

    columns = {n: float(getattr(result, n)) for n in ("ridge", "paper_ridge", *_POINT)}
    for kind, row in document.get("simulated", {}).items():
        columns |= {f"{kind}_{name}": value for name, value in row.items()}
    steps = {"steps": arguments.steps, "fresh": int(arguments.fresh)}
    data = xr.Dataset(columns, attrs={"model": model.to_json(), **steps})
    deliver(arguments, result, text=text, title=str(model), document=document, data=data)
    if interrupted:
        raise KeyboardInterrupt(f"and what had finished is reported{resumed(store)}")
    return 0


_POINT = (
    "initial", "trained", "improvement", "bias_initial", "bias_trained", "variance_initial",
    "variance_trained", "training_error_initial", "training_error_trained", "objective_initial",
    "objective_trained", "effective_ridge", "ridge_derivative",
)  # fmt: skip
_SIMULATED_NAMES = {
    "risk_initial": "initial", "risk_trained": "trained", "improvement": "improvement",
    "training_error_initial": "training_error_initial",
    "training_error_trained": "training_error_trained",
}  # fmt: skip


def _simulated_point(
    model: OneGradientStep, arguments: argparse.Namespace, store: Path | None
) -> tuple[dict[str, dict[str, float]], bool]:
    """Return means for each kind of features, and whether networks are missing."""
    answer: dict[str, dict[str, float]] = {}
    for kind in _features(arguments):
        try:
            result = model.simulate(
                arguments.dimension, **_penalty(arguments), seeds=arguments.seeds, features=kind,
                seed=arguments.seed, steps=arguments.steps, fresh=arguments.fresh, store=store,
            )  # fmt: skip
        except KeyboardInterrupt:
            if answer:
                return answer, True
            raise KeyboardInterrupt(f"before a network had finished{resumed(store)}") from None
        answer[kind] = {"repetitions": result.sizes["seed"]} | {
            full: float(result[full].to_numpy().ravel()[0])
            for name in _SIMULATED_NAMES
            for full in (name, f"{name}_standard_error")
        }
        if result.attrs["interrupted"]:
            return answer, True
    return answer, False


def _point_table(found: Any, means: dict[str, dict[str, float]], dimension: int) -> str:
    from .derivations.tables import SIMULATION_COLUMNS, simulation_cells

    rows = []
    counts = ", ".join(f"{row['repetitions']} with {kind} features" for kind, row in means.items())
    for kind, row in means.items():
        for name, field in _SIMULATED_NAMES.items():
            theory = float(getattr(found, field))
            cells = simulation_cells(theory, row[name], row[f"{name}_standard_error"])
            rows.append([kind, name.replace("_", " "), f"{theory:#.8g}", *cells])
    table = aligned(["features", "", "theory", *SIMULATION_COLUMNS], rows)
    return f"simulated: {counts} at d = {dimension}, mean ± standard error\n{table}\n{_FINITE_SIZE}"


# ---------------------------------------------------------------------- tables


def _penalty(arguments: argparse.Namespace) -> dict[str, Any]:
    from .derivations.penalties import as_ridge

    given = {name: getattr(arguments, name) for name in PENALTIES}
    return as_ridge({name: value for name, value in given.items() if value is not None})


def _features(arguments: argparse.Namespace) -> tuple[str, ...]:
    chosen = arguments.features or "network"
    return ("gaussian", "network") if chosen == "both" else (chosen,)


def _finite_sizes(arguments: argparse.Namespace, over: str, rows: list[float]) -> Any:
    from .derivations.one_gradient_step.figures import FiniteSizes

    points = rows
    if not arguments.listed and len(rows) > _SIMULATED:
        last = len(rows) - 1
        points = [rows[round(k * last / (_SIMULATED - 1))] for k in range(_SIMULATED)]
        if over in ("alpha", "beta"):
            # Numbers of samples and of neurons are whole.
            d = arguments.dimension
            points = [max(round(value * d), 1) / d for value in points]
    return FiniteSizes(
        points, arguments.dimension, arguments.seeds, _features(arguments), arguments.seed,
        store=checked_store(arguments),
    )  # fmt: skip


def _heading(model: OneGradientStep, data: xr.Dataset, over: str) -> str:
    fixed = [f"{name} = {data.attrs[name]:g}" for name in PENALTIES if name in data.attrs]
    given = {k: v for k, v in model.parameters().items() if k != over}
    return "; ".join([", ".join(f"{k} = {v}" for k, v in given.items()), *fixed])


def _risk_table(data: xr.Dataset, over: str, rows: list[float]) -> str:
    headings = [over.replace("_", " "), "random features", "after the step", "improvement"]
    headings += ["training error before", "and after"]
    names = ("risk_initial", "risk_trained", "improvement", "training_error_initial",
             "training_error_trained")  # fmt: skip
    cells = []
    for value in rows:
        point = data.sel({over: value})
        cells.append([f"{value:.6g}", *(f"{float(point[name]):#.8g}" for name in names)])
    return str(aligned(headings, cells))


def _comparison(data: xr.Dataset, over: str) -> str:
    from .derivations.tables import simulation_cells

    headings = [over.replace("_", " "), "features"]
    for name in ("random features", "after the step", "improvement"):
        headings += [name, "difference/s.e."]
    rows = []
    for features in ("gaussian", "network"):
        if f"{features}_risk_initial" not in data:
            continue
        for value in data["simulated"].to_numpy():
            theory, row = data.sel({over: value}), [f"{value:.6g}", features]
            if math.isnan(float(data[f"{features}_risk_initial"].sel(simulated=value))):
                continue
            for name in ("risk_initial", "risk_trained", "improvement"):
                mean, error = (
                    float(data[f"{features}_{full}"].sel(simulated=value))
                    for full in (name, f"{name}_standard_error")
                )
                row += simulation_cells(float(theory[name]), mean, error)[:2]
            rows.append(row)
    networks = data.attrs["seeds"]
    return (
        f"simulated: {networks} repetition{'s' if networks > 1 else ''} at "
        f"d = {data.attrs['dimension']}, mean ± standard error\n{aligned(headings, rows)}\n"
        f"{_FINITE_SIZE}"
    )


def _optimal_table(data: xr.Dataset) -> str:
    names = ("ridge_initial", "risk_initial", "ridge_trained", "risk_trained")
    headings = ["alpha", "best ridge, W0", "risk", "best ridge, W1", "risk"]
    cells = [
        [f"{value:.6g}", *(f"{float(data[name].sel(alpha=value)):#.8g}" for name in names)]
        for value in data["alpha"].to_numpy()
    ]
    return str(aligned(headings, cells))


def _spectra_comparison(
    found: dict[str, Any], simulation: xr.Dataset, arguments: argparse.Namespace
) -> str:
    from .derivations.tables import simulation_cells

    last = simulation.isel(step=-1)
    rows = []
    if "weights" in found:
        spike = found["weights"]
        rows.append(("largest singular value of W1", float(spike.singular_value),
                     last["singular_values"].isel(mode=0)))  # fmt: skip
        for name in ("teacher", "readout"):
            rows.append((f"squared overlap with the {name}",
                         float(getattr(spike, f"alignment_{name}")),
                         last[f"{name}_alignment"]))  # fmt: skip
    if "kernel" in found:
        kernel = found["kernel"]
        rows.append(("largest eigenvalue of the kernel", float(kernel.eigenvalue),
                     last["kernel_eigenvalues"].isel(sample=0)))  # fmt: skip
        rows.append(("squared overlap with the labels", float(kernel.label_alignment),
                     last["label_alignment"]))  # fmt: skip
    cells = []
    for name, theory, values in rows:
        sample = values.to_numpy()
        error = float(sample.std(ddof=1) / len(sample) ** 0.5) if len(sample) > 1 else 0.0
        cells.append([name, f"{theory:#.6g}",
                      *simulation_cells(theory, float(sample.mean()), error)])  # fmt: skip
    text = aligned(["", "theory", "simulation ± s.e.", "difference/s.e.", "difference"], cells)
    networks = simulation.sizes["seed"]
    head = f"{networks} network{'s' if networks > 1 else ''}, d = {arguments.dimension}"
    return f"{head}\n{text}\n{_FINITE_SIZE}"


def checked_store(arguments: argparse.Namespace) -> Path | None:
    """Return the folder of finished networks, made now, so that a run is not lost at its end.

    Raises
    ------
    ParameterError
        If there is one and no simulation, or it cannot be written to.
    """
    if arguments.store is not None and not arguments.simulate:
        raise ParameterError("--store is about --simulate; add that, too")
    return store_folder(arguments, None)


def resumed(store: Path | None) -> str:
    """Say how to resume, behind the message of an interruption."""
    return resume_text(store) or "; with --store FOLDER finished networks are kept"


def has_figure(out: Path | None) -> bool:
    """Say whether a file holds a figure."""
    return out is not None and out.suffix.lower() not in DATA


# ---------------------------------------------------------------------- commands


_CENTRE = option("--centre", "use student and teacher minus their means")
_PAIR = Group(
    "activations", (opts.STUDENT, opts.TEACHER.but(default="erf"), _CENTRE, opts.CACHE_FOLDER)
)


def one_step_model(*lists: str) -> tuple[Group, Group]:
    """Return the options of the model; those in `lists` take several values."""
    options = []
    for one in (
        opts.ALPHA.but(help="samples of the readout, n/d"),
        opts.BETA.but(help="neurons, N/d", default=_DEFAULTS["beta"]),
        opts.STEP_SIZE.but(help="step size eta of order one; 0 for random features", default=2.0),
        opts.NOISE.but(former="--noise-variance"),
    ):
        if one.dest in lists:
            read = sample_complexities(zero=one.dest in _FROM_ZERO)
            help = f"{one.help} [{_DEFAULTS[one.dest]:g}]"
            one = one.but(f"{one.names.split()[0]} LIST", read=read, help=help, default=None)
        options.append(one)
    options += [
        opts.ALPHA0.but(help=f"{opts.ALPHA0.help} [alpha]", default=None),
        option(
            "--step-loss", "whose gradient the step takes: (1/2n) sum (f - y)^2 or "
            "(1/n) sum (f - y)^2", default="half", former="--loss", dest="loss",
            choices=("half", "full"),
        ),
    ]  # fmt: skip
    return _PAIR, Group("model (defaults in brackets)", options)


def _penalties(*, lists: bool) -> Group:
    names, read = ("LIST", sample_complexities(zero=True)) if lists else ("L", nonnegative(0.1))
    ridge = opts.RIDGE.but(
        f"--ridge {names}", read=read, default=None,
        help=f"in the convention of the toolkit [{_DEFAULT_RIDGE:g}]; 0 for the limit",
    )  # fmt: skip
    paper = option(
        f"--paper-ridge {names}", "in that of the paper, BETA/ALPHA times as large", read
    )
    return Group("ridge penalty of the readout, one of", (ridge, paper))


def _networks(dimension: int, seeds: int) -> Group:
    size = opts.DIMENSION.but(read=whole(2, dimension), default=dimension)
    return Group(
        "networks", (opts.SIMULATE, size, opts.SEEDS.but(default=seeds), opts.SEED, opts.STORE)
    )


def _axis(flag: str, default: str) -> Option:
    read = axis(default, AXES, from_zero=_FROM_ZERO)
    return option(f"{flag} AXIS", f"NAME=LOW:HIGH:COUNT [{default}]", read, read(flag)(default))


_OUTPUT = (*output(), opts.TABLE_ONLY)
ONE_STEP = Command(
    "one-step", "one step of order one: exact risk, spectra, phases", epilog=EPILOG, commands=(
        Command("risk", "risk of the ridge readout before and after the step", risk, (
            *one_step_model(*_DEFAULTS), _penalties(lists=True),
            option(
                "--over AXIS", "axis of table and figure: NAME or NAME=LOW:HIGH:COUNT",
                axis("alpha=0.25:8:12", AXES, from_zero=_FROM_ZERO, bare=True),
            ),
            Group("several steps, at one point", (
                opts.STEPS.but(
                    help="gradient steps of the first layer", read=whole(1, 4), default=1
                ),
                option("--fresh", "new samples in each step, not the same in all"),
            )),
            opts.DIGITS, opts.CERTIFY, _networks(200, 8),
            option(
                "--features", "what --simulate simulates [network]",
                choices=("network", "gaussian", "both"),
            ),
            *_OUTPUT,
        ), _RISK),
        Command("spectrum", "outlier and bulk of first layer and kernel", spectrum, (
            *one_step_model(),
            option(
                "--matrix", "which spectrum", default="both",
                choices=("weights", "kernel", "both"),
            ),
            opts.DIGITS, opts.CERTIFY, _networks(400, 2), *_OUTPUT,
        ), _SPECTRUM),
        Command("phase", "what the step improves over two parameters", phase, (
            *one_step_model(), _penalties(lists=False), _axis("--x", "step-size=0:6:61"),
            _axis("--y", "alpha=0.25:8:61"),
            option(
                "--show", "what the colours are", default="improvement",
                choices=("improvement", "relative-improvement", "risk-initial", "risk-trained"),
            ),
            *_OUTPUT,
        ), _PHASE),
        Command("optimal", "best ridge penalty before and after the step", optimal, (
            *one_step_model("alpha"), opts.DIGITS, *_OUTPUT,
        ), _OPTIMAL, defaults={"alpha": [_DEFAULTS["alpha"]]}),
        Command("steps", "risk at a width over all step sizes", steps, (
            *one_step_model("step_size"),
            Group("width", (
                option("--width N", "neurons N", whole(2, 600), 600),
                option(
                    "--degrees LIST", "powers of the step that count, such as 1,3 [all up to 5 "
                    "that the student has]", sample_complexities(zero=True),
                ),
            )),
            _penalties(lists=False), opts.DIGITS, opts.CERTIFY,
            Group("networks", (
                opts.SIMULATE, opts.SEEDS.but(read=whole(2, 8), default=8), opts.SEED
            )),
            *_OUTPUT,
        ), _STEPS, defaults={"step_size": [_DEFAULTS["step_size"]]}),
        Command("large-steps", "what steps of order sqrt(N) can reach", large_steps, (
            _PAIR, opts.DIGITS, opts.CERTIFY, *_OUTPUT,
        ), _LARGE),
    ),
)  # fmt: skip
