"""Networks after gradient steps at published sizes, beside the theory.

Rows: the largest singular value of the first layer, the conjugate kernel, the risk of Gaussian
features and of networks, several steps, and large steps (Ba et al., arXiv 2205.01445, with settings
chosen here). Printed: simulated mean ± standard error, theory, and how many standard errors they
are apart. Theory of several steps is beside them with O(t/√N) corrections left out; beside large
steps there is the prediction of Gaussian equivalence at the actual first layers, which has to fail
there. The last lines say which rows are judged by 4 standard errors, and which are not: those with
known corrections and, at the smaller sizes of --quick, the spectra. Finished networks are kept in a
folder, so that a run resumes.

    python benchmarks/one_step_simulations.py --list
    python benchmarks/one_step_simulations.py --row gaussian network/A
    python benchmarks/one_step_simulations.py --quick
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import giantstep as gs
from giantstep.derivations.one_gradient_step.reference import model_of, reference_document
from giantstep.numeric.networks.run import progress_bar

RISKS = (
    "risk_initial", "risk_trained", "improvement", "training_error_initial",
    "training_error_trained",
)  # fmt: skip
Compared = tuple[str, Any, Any]
"""Name, simulated values of each network, theory."""


@dataclass(frozen=True)
class Row:
    """One configuration.

    Attributes
    ----------
    name : str
        Table and configuration.
    dimension, seeds : int
        Published size.
    run : callable
        Takes dimension and options of a simulation, yields comparisons.
    judged : bool
        Whether deviations from the theory count: not where corrections are known.
    """

    name: str
    dimension: int
    seeds: int
    run: Callable[..., Iterator[Compared]]
    judged: bool = True


def step_model(pair: str, deviation: float, alpha: float, beta: float, step: float) -> Any:
    """Return a centred model from the standard deviation of its noise."""
    student, teacher = pair.split("|")
    return gs.OneGradientStep(
        student, teacher, alpha=alpha, beta=beta, step_size=step, noise_variance=deviation**2,
        centre=True,
    )  # fmt: skip


def spike(*setting: Any) -> Callable[..., Iterator[Compared]]:
    """The first layer: largest singular value and its vectors."""

    def run(dimension: int, **options: Any) -> Iterator[Compared]:
        model = step_model(*setting)
        found = model.simulate_spectra(dimension, matrices=["weights"], **options).isel(step=-1)
        theory = model.weight_spike()
        yield "singular value", found.singular_values[:, 0], theory.singular_value
        yield "teacher alignment", found.teacher_alignment, theory.alignment_teacher
        yield "readout alignment", found.readout_alignment, theory.alignment_readout

    return run


def kernel(*setting: Any) -> Callable[..., Iterator[Compared]]:
    """The conjugate kernel and that of Gaussian features of the same layer."""

    def run(dimension: int, **options: Any) -> Iterator[Compared]:
        model = step_model(*setting)
        names = ["kernel", "linearised"]
        found = model.simulate_spectra(dimension, matrices=names, **options).isel(step=-1)
        theory = model.conjugate_kernel()
        for name, label in (
            ("kernel_eigenvalues", "label_alignment"),
            ("linearised_eigenvalues", "linearised_label_alignment"),
        ):
            yield f"root of {name}", np.sqrt(found[name][:, 0]), math.sqrt(theory.eigenvalue)
            yield label, found[label], theory.label_alignment

    return run


def risks(model: dict[str, str], ridge: str, **how: Any) -> Callable[..., Iterator[Compared]]:
    """Risks before and after the step."""

    def run(dimension: int, **options: Any) -> Iterator[Compared]:
        found = model_of(model).simulate(
            dimension, ridge=gs.paper_ridge(float(ridge)), **how, **options
        )
        first, last = found.isel(ridge=0, step=0), found.isel(ridge=0, step=-1)
        samples = {
            "risk_initial": first.risk, "risk_trained": last.risk,
            "improvement": first.risk - last.risk,
            "training_error_initial": first.training_error,
            "training_error_trained": last.training_error,
        }  # fmt: skip
        for name in RISKS:
            yield name, samples[name], float(found[f"{name}_theory"][0])

    return run


def several(steps: list[int], ridge: float, fresh: bool, *setting: Any) -> Any:
    """Several steps: the limit, and Gaussian equivalence at the actual layers."""

    def run(dimension: int, **options: Any) -> Iterator[Compared]:
        model = step_model(*setting)
        found = model.simulate(
            dimension,
            ridge=gs.paper_ridge(ridge),
            steps=steps,
            fresh=fresh,
            conditional=True,
            **options,
        ).isel(ridge=0)
        for step in found.step.values:
            row = found.sel(step=step)
            limit = model.several_steps(int(step), fresh=fresh).model if step else model
            theory = limit.risk(ridge=gs.paper_ridge(ridge))
            yield f"risk, t = {step}", row.risk, theory.trained if step else theory.initial
            yield f"  - given W, t = {step}", row.risk - row.risk_conditional, 0.0

    return run


def large(exponent: float) -> Callable[..., Iterator[Compared]]:
    """Steps of size N^a, erf/erf: the risk and what Gaussian equivalence predicts given W."""

    def run(dimension: int, **options: Any) -> Iterator[Compared]:
        found = step_model("erf|erf", 0.0, 8, 2, 1).simulate(
            dimension, ridge=gs.paper_ridge(0.01), exponent=exponent, conditional=True,
            exact_risk=True, **options,
        ).isel(ridge=0, step=-1)  # fmt: skip
        yield "risk", found.risk, float(found.risk_conditional.mean())

    return run


SPIKES = (
    ("tanh|relu subcritical", "tanh|relu", 0, 4, 2, 2),
    ("tanh|relu", "tanh|relu", 0, 4, 2, 4),
    ("tanh|relu larger step", "tanh|relu", 0, 4, 2, 6),
    ("tanh|relu noise", "tanh|relu", 1, 4, 2, 4),
    ("tanh|relu noise, larger step", "tanh|relu", 1, 4, 2, 6),
    ("erf|tanh", "erf|tanh", 0.5, 2, 0.5, 4),
    ("softplus|tanh", "softplus|tanh", 0, 1.5, 1.25, 4),
)
KERNELS = (
    ("softplus|tanh", "softplus|tanh", 0, 1.5, 1.25, 4),
    ("tanh|tanh", "tanh|tanh", 0, 1.5, 1.25, 4),
    ("erf|relu b=1.5", "erf|relu", 0.5, 3, 1.5, 6),
    ("erf|relu b=.5", "erf|relu", 0.5, 3, 0.5, 4),
    ("softplus|tanh larger step", "softplus|tanh", 0, 4, 1.25, 6),
)
GAUSSIAN = {"features": "gaussian", "labels": "gaussian", "layer": "theory"}
TANH = ("tanh|tanh", 0.3, 3, 2, 1)
RELU = ("erf|relu", 0.5, 2, 1, 2)


def all_rows() -> list[Row]:
    """Return all rows with their published sizes."""
    document = reference_document()
    networks = {entry["row"]: entry for entry in document["simulated_network"]}
    rows = [Row(f"spike/{name}", 1000, 12, spike(*setting)) for name, *setting in SPIKES]
    rows += [Row(f"kernel/{name}", 720, 10, kernel(*setting)) for name, *setting in KERNELS]
    for entry in document["simulated_gaussian"]:
        case, size = networks[entry["row"]], entry["dimension"]
        run = risks(case["model"], case["paper_ridge"], **GAUSSIAN)
        rows.append(Row(f"gaussian/{entry['row']} d={size}", size, entry["repetitions"], run))
    for name, case in networks.items():
        run = risks(case["model"], case["paper_ridge"], n_test=30_000)
        rows.append(Row(f"network/{name}", case["dimension"], case["repetitions"], run))
    rows += [
        Row("several/tanh", 400, 6, several([1, 4, 8], 0.05, False, *TANH), judged=False),
        Row("several/tanh fresh", 400, 6, several([8], 0.05, True, *TANH), judged=False),
        Row(
            "several/erf|relu d=250", 250, 30, several([1, 2, 3], 0.05, False, *RELU), judged=False
        ),
        Row("several/erf|relu d=500", 500, 24, several([1, 2], 0.05, False, *RELU), judged=False),
    ]
    for width, seeds in ((256, 8), (512, 6), (1024, 3)):
        for name, exponent in (("0", 0), ("1-8", 1 / 8), ("1-4", 1 / 4), ("3-8", 3 / 8),
                               ("1-2", 1 / 2)):  # fmt: skip
            row = Row(f"large/N={width} a={name}", width // 2, seeds, large(exponent), judged=False)
            rows.append(row)
    return rows


def quick(row: Row) -> Row:
    """Return a row at a smaller size, for which all ratios give whole numbers.

    Spectra then show corrections of the order 1/√N, from what the gradient has beside its spike.
    """
    dimension = min(row.dimension, 128 if row.name.startswith("large") else 200)
    judged = row.judged and not row.name.startswith(("spike", "kernel"))
    return replace(row, dimension=dimension, seeds=min(row.seeds, 12), judged=judged)


def report(row: Row, options: dict[str, Any]) -> float:
    """Print the comparisons of a row; return the largest deviation in standard errors."""
    begin = time.perf_counter()
    judged = "" if row.judged else ", not judged"
    print(f"\n{row.name}: d = {row.dimension}, {row.seeds} networks{judged}")
    worst = 0.0
    for name, values, theory in row.run(row.dimension, seeds=row.seeds, **options):
        samples = np.asarray(values, dtype=float)
        mean, error = samples.mean(), samples.std(ddof=1) / math.sqrt(len(samples))
        apart = (mean - theory) / error if mean != theory else 0.0
        print(
            f"  {name:32s} {mean:10.6f} ± {error:8.6f}   theory {theory:10.6f}   {apart:+6.1f} s.e."
        )
        worst = max(worst, abs(apart))
    print(f"  {time.perf_counter() - begin:.1f} s")
    return worst


def verdict(deviations: list[tuple[Row, float]]) -> str:
    """Return which rows are far from the theory, which are not, and which are not judged."""
    judged = [(row, worst) for row, worst in deviations if row.judged]
    lines = ["no row is judged at this size"]
    if judged:
        far = [f"{row.name} ({worst:.1f})" for row, worst in judged if worst > 4]
        lines = [f"of {len(judged)} judged rows, more than 4 standard errors from the theory: "
                 + (", ".join(far) or "none")]  # fmt: skip
    if len(judged) < len(deviations):
        names = ", ".join(
            f"{row.name} ({worst:.1f})" for row, worst in deviations if not row.judged
        )
        lines.append(f"not judged (corrections are known, or have to be large): {names}")
    return "\n".join(lines)


def main() -> None:
    """Run the rows that were asked for."""
    rows = all_rows()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="names of all rows with their sizes")
    parser.add_argument("--row", nargs="*", default=[""], help="beginnings of names of rows")
    parser.add_argument("--quick", action="store_true", help="d <= 200, at most 12 networks")
    parser.add_argument("--seeds", type=int, help="networks in place of the published number")
    parser.add_argument("--seed", type=int, default=0, help="entropy")
    parser.add_argument("--workers", type=int, help="threads")
    parser.add_argument("--store", default="one_step_simulations", help="folder of finished runs")
    arguments = parser.parse_args()
    chosen = [row for row in rows if any(row.name.startswith(name) for name in arguments.row)]
    if not chosen:
        parser.error("no row has a name that begins like this; --list shows them")
    if arguments.seeds is not None and arguments.seeds < 2:
        parser.error("--seeds must be at least 2, for a standard error")
    chosen = [quick(row) for row in chosen] if arguments.quick else chosen
    if arguments.seeds is not None:
        chosen = [replace(row, seeds=arguments.seeds) for row in chosen]
    if arguments.list:
        for row in chosen:
            print(f"{row.name:40s} d = {row.dimension}, {row.seeds} networks")
        return
    options = {
        "seed": arguments.seed, "workers": arguments.workers, "store": arguments.store,
        "progress": False,
    }  # fmt: skip
    deviations = []
    with progress_bar(True, len(chosen), "row") as bar:
        for row in chosen:
            deviations.append((row, report(row, options)))
            bar.update()
    print(f"\n{verdict(deviations)}")


if __name__ == "__main__":
    main()
