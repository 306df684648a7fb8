"""The commands of ``giantstep one-step``: numbers on the terminal, figure and data in files."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from .cli_axes import spaced
from .cli_one_step import AXES, PENALTIES, check_penalty, settle_axis
from .cli_one_step_files import checked_out, checked_store, has_figure, resumed, write
from .errors import ParameterError

if TYPE_CHECKING:
    from pathlib import Path

    import xarray as xr

    from .derivations.one_gradient_step.model import OneGradientStep

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
    out = checked_out(arguments)
    store = checked_store(arguments)
    from .derivations.one_gradient_step.figures import plot_risk, risk_data

    over, rows = arguments.axis, list(arguments.rows)
    values = set(rows)
    if has_figure(out) and len(rows) > 1:
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
    print(text)
    if out is not None:
        if not has_figure(out):
            data = data.drop_vars("residual", errors="ignore")
        write(out, data, text=text, title=str(model), draw=lambda: plot_risk(data).figure)
    if data.attrs.get("interrupted"):
        raise KeyboardInterrupt(f"and what had finished is reported{resumed(store)}")
    return 0


def spectrum(arguments: argparse.Namespace) -> int:
    """Print and draw singular values of the first layer and eigenvalues of the kernel."""
    out = checked_out(arguments)
    store = checked_store(arguments)
    model = model_from(arguments)
    wanted = ("weights", "kernel") if arguments.matrix == "both" else (arguments.matrix,)
    found: dict[str, Any] = {}
    if "weights" in wanted:
        found["weights"] = model.weight_spike(digits=arguments.digits, certify=arguments.certify)
    if "kernel" in wanted:
        found["kernel"] = model.conjugate_kernel(digits=arguments.digits, certify=arguments.certify)
    text = "\n\n".join(map(str, found.values()))
    if arguments.certify:
        text += "".join(f"\n\n{one.certificate}" for one in found.values())
    simulation = None
    if arguments.simulate:
        try:
            simulation = model.simulate_spectra(
                arguments.dimension, seeds=arguments.seeds, matrices=wanted, seed=arguments.seed,
                store=store,
            )  # fmt: skip
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"before a network had finished{resumed(store)}") from None
        text += f"\n\n{_spectra_comparison(found, simulation, arguments)}"
    print(text)
    if out is not None:
        from .derivations.one_gradient_step.figures import plot_spectra, spectra_data

        data = spectra_data(found, simulation)
        document = {name: one.to_dict() for name, one in found.items()}
        write(
            out, data, text=text, title=str(model), document=document,
            draw=lambda: plot_spectra(found, simulation),
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
    out = checked_out(arguments)
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
    print(text)
    if out is not None:
        write(out, data, text=text, title=str(model),
              draw=lambda: plot_phase(data, quantity).figure)  # fmt: skip
    return 0


def optimal(arguments: argparse.Namespace) -> int:
    """Print the best ridge penalties before and after the step."""
    several = len(arguments.alpha) > 1
    if several and arguments.digits is not None:
        raise ParameterError("--digits is for one point; leave out it or the list of --alpha")
    out = checked_out(arguments, draws=several)
    alpha, arguments.alpha = arguments.alpha, arguments.alpha[0]
    model = model_from(arguments)
    if not several:
        found = {
            n: model.optimum(over="ridge", trained=t, digits=arguments.digits) for n, t in _LAYERS
        }
        text = f"{model}\n\n" + "\n\n".join(
            f"{'after the step' if name == 'trained' else 'random features'}\n{one}"
            for name, one in found.items()
        )
        print(text)
        if out is not None:
            import xarray as xr

            columns = {f"{k}_{n}": float(getattr(one, k)) for n, one in found.items()
                       for k in ("ridge", "risk")}  # fmt: skip
            write(out, xr.Dataset(columns), text=text, title=str(model),
                  document={n: one.to_dict() for n, one in found.items()})  # fmt: skip
        return 0
    from .derivations.one_gradient_step.figures import optimal_data, plot_optimal

    data = optimal_data(model, alpha)
    text = f"{_heading(model, data, 'alpha')}\n\n{_optimal_table(data)}"
    print(text)
    if out is not None:
        write(out, data, text=text, title=str(model), draw=lambda: plot_optimal(data))
    return 0


def large_steps(arguments: argparse.Namespace) -> int:
    """Print and draw what steps of order sqrt(N) can reach."""
    from .derivations.one_gradient_step.large_steps import large_step_limit

    out = checked_out(arguments)
    found = large_step_limit(
        arguments.student, arguments.teacher, centre=arguments.centre, digits=arguments.digits,
        certify=arguments.certify, cache_folder=arguments.cache_folder,
    )  # fmt: skip
    text = str(found)
    print(text)
    if out is not None:
        from .derivations.one_gradient_step.large_steps import large_step_data, plot_large_steps

        write(
            out, large_step_data(found), text=text, title="Large steps", document=found.to_dict(),
            draw=lambda: plot_large_steps(found),
        )  # fmt: skip
    return 0


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
    out = checked_out(arguments, draws=False)
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
    found = equivalent.risk(**_penalty(arguments), **given)
    head = str(model) if arguments.steps == 1 else f"{model}\n\n{several}"
    text = f"{head}\n\n{found}\nbest linear error (kernels) {model.best_linear_error:.12g}"
    document: dict[str, Any] = found.to_dict()
    if found.certificate is not None:
        text += f"\n\n{found.certificate}"
        document["certificate"] = found.certificate.to_dict()
    if arguments.steps > 1:
        document["several_steps"] = several.to_dict()
    interrupted = False
    if arguments.simulate:
        means, interrupted = _simulated_point(model, arguments, store)
        document["simulated"] = {kind: dict(row) for kind, row in means.items()}
        text += f"\n\n{_point_table(found, means, arguments.dimension)}"
    print(text)
    if out is not None:
        import xarray as xr

        columns = {n: float(getattr(found, n)) for n in ("ridge", "paper_ridge", *_POINT)}
        for kind, row in document.get("simulated", {}).items():
            columns |= {f"{kind}_{name}": value for name, value in row.items()}
        steps = {"steps": arguments.steps, "fresh": int(arguments.fresh)}
        data = xr.Dataset(columns, attrs={"model": model.to_json(), **steps})
        write(out, data, text=text, title=str(model), document=document)
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
    found: dict[str, dict[str, float]] = {}
    for kind in _features(arguments):
        try:
            result = model.simulate(
                arguments.dimension, **_penalty(arguments), seeds=arguments.seeds, features=kind,
                seed=arguments.seed, steps=arguments.steps, fresh=arguments.fresh, store=store,
            )  # fmt: skip
        except KeyboardInterrupt:
            if found:
                return found, True
            raise KeyboardInterrupt(f"before a network had finished{resumed(store)}") from None
        found[kind] = {"repetitions": result.sizes["seed"]} | {
            full: float(result[full].to_numpy().ravel()[0])
            for name in _SIMULATED_NAMES
            for full in (name, f"{name}_standard_error")
        }
        if result.attrs["interrupted"]:
            return found, True
    return found, False


def _point_table(found: Any, means: dict[str, dict[str, float]], dimension: int) -> str:
    from .derivations.tables import SIMULATION_COLUMNS, simulation_cells
    from .pages import aligned

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
    from .pages import aligned

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
    from .pages import aligned

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
    from .pages import aligned

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
    from .pages import aligned

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
