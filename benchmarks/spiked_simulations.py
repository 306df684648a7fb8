"""Simulated spiked random features, networks and spectra at published sizes, beside the theory.

Rows are those of the checks of ridge regression on spiked random features and on networks (Cui et
al., arXiv 2402.04980), of convex losses, of vocabularies, biases and larger rank, and of the top
eigenvalue; sizes of rows of rank two are chosen here. Printed: simulated mean ± standard error,
theory at the finite width (d → ∞ for the top eigenvalue), and how many standard errors they are
apart. Finished seeds are kept in a folder, so that a run resumes.

    python benchmarks/spiked_simulations.py --list
    python benchmarks/spiked_simulations.py --rows features/tanh losses --scale 0.3 --seeds 8
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import erf

import giantstep as gs
from giantstep.numeric.networks.run import progress_bar

ERRORS = ("test_error", "training_error")
OVERLAPS = ("m", "theta", "psi", "q1", "q2")
RIDGE_QUANTITIES = (*ERRORS, *OVERLAPS)
CONVEX_QUANTITIES = ("test_error", "training_loss", *OVERLAPS)


@dataclass(frozen=True)
class Row:
    """One configuration at one size.

    Attributes
    ----------
    name : str
        Table and configuration.
    dimension, seeds : int
        Published size.
    run : callable
        Takes dimension, seeds and further options of a simulation; returns names, arrays with one
        row for each seed, and theory.
    """

    name: str
    dimension: int
    seeds: int
    run: Callable[..., Iterator[tuple[str, Any, Any]]]


def compare(found: Any, theory: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield what both a dataset and a theory have."""
    for name, value in theory.items():
        if name in found:
            yield name, found[name].to_numpy(), np.asarray(value)


def at(solution: Any, quantities: tuple[str, ...]) -> dict[str, Any]:
    """Return quantities of a solution."""
    return {name: getattr(solution, name) for name in quantities}


def features(
    pair: str, alpha: float, beta: float, ridge: float, spike: tuple[float, ...], noise: float = 0.0
) -> Callable[..., Iterator[tuple[str, Any, Any]]]:
    """Ridge regression on given rows, with control variates."""
    student, teacher = pair.split("|")
    r, c, gamma = spike

    def run(dimension: int, **options: Any) -> Iterator[tuple[str, Any, Any]]:
        model = gs.SpikedRandomFeatures.from_parameters(
            student, teacher, spike_strength=r, bulk_variance=c, alignment=gamma, beta=beta,
            noise_variance=noise,
        )  # fmt: skip
        found = model.simulate(dimension, alpha=alpha, ridge=ridge, control_variate=True, **options)
        theory = at(
            model.solve(alpha=alpha, ridge=ridge, width=round(beta * dimension)), RIDGE_QUANTITIES
        )
        if not r:  # Overlaps with a direction that the rows do not have.
            theory = {name: theory[name] for name in (*ERRORS, "psi", "q1", "q2")}
        yield from compare(found, theory)

    return run


def network(
    pair: str, step: float, alpha0: float, alpha: float, beta: float, ridge: float,
    noise: float = 0.0,
) -> Callable[..., Iterator[tuple[str, Any, Any]]]:  # fmt: skip
    """Networks, their realised spike and their errors."""
    student, teacher = pair.split("|")

    def run(dimension: int, **options: Any) -> Iterator[tuple[str, Any, Any]]:
        model = gs.SpikedRandomFeatures(
            student, teacher, step_size=step, alpha0=alpha0, beta=beta, noise_variance=noise,
            allow_non_odd=True,
        )  # fmt: skip
        found = model.simulate(dimension, alpha=alpha, ridge=ridge, **options)
        theory = at(model.spike, ("spike_strength", "bulk_variance", "alignment"))
        direct = gs.SpikedRandomFeatures.from_parameters(
            student, teacher, beta=beta, noise_variance=noise, **theory
        )
        theory |= at(direct.solve(alpha=alpha, ridge=ridge, width=round(beta * dimension)), ERRORS)
        yield from compare(found, theory)

    return run


def readout(
    pair: str, loss: str, labels: str, beta: float, noise: float
) -> Callable[..., Iterator[tuple[str, Any, Any]]]:
    """Convex losses at r = 1.2, c = 1.1, γ = .9, α = 2, λ = .1."""
    student, teacher = pair.split("|")

    def run(dimension: int, **options: Any) -> Iterator[tuple[str, Any, Any]]:
        model = gs.SpikedRandomFeatures.from_parameters(
            student, teacher, spike_strength=1.2, bulk_variance=1.1, alignment=0.9, beta=beta,
            noise_variance=noise,
        )  # fmt: skip
        fitted = gs.ConvexReadout(model, loss, labels, width=round(beta * dimension))
        found = fitted.simulate(dimension, alpha=2.0, ridge=0.1, **options)
        yield from compare(found, at(fitted.solve(alpha=2.0, ridge=0.1), CONVEX_QUANTITIES))

    return run


def vocabulary(
    pair: str,
    alpha: float,
    ridge: float,
    *,
    spikes: Any = None,
    variances: Any = None,
    **model: Any,
) -> Callable[..., Iterator[tuple[str, Any, Any]]]:
    """Several letters, biases, larger rank: given rows, or networks if there are no spikes."""
    student, teacher = pair.split("|")

    def run(dimension: int, **options: Any) -> Iterator[tuple[str, Any, Any]]:
        width = round(model.get("beta", 1.0) * dimension)
        if spikes is None:
            built = gs.VocabularyFeatures(student, teacher, width=width, **model)
        else:
            built = gs.VocabularyFeatures.from_parameters(
                student, teacher, spike_strengths=spikes, bulk_variances=variances, width=width,
                **model,
            )  # fmt: skip
        found = built.simulate(dimension, alpha=alpha, ridge=ridge, **options)
        # Directions of several teachers are defined up to a rotation: psi is left out for them.
        names = [
            n for n in RIDGE_QUANTITIES if n != "psi" or np.ndim(model.get("alignment", 0)) < 2
        ]
        yield from compare(found, at(built.solve(alpha=alpha, ridge=ridge), tuple(names)))

    return run


def top_eigenvalue(
    student: str, spike: tuple[float, float], alpha: float, beta: float, shift: float
) -> Callable[..., Iterator[tuple[str, Any, Any]]]:
    """Top eigenvalue of K minus the sum of squares of μ0 at the projections."""

    def run(
        dimension: int, seeds: int, seed: int, progress: bool, store: Path
    ) -> Iterator[tuple[str, Any, Any]]:
        r, c = spike
        model = gs.SpikedRandomFeatures.from_parameters(
            student, "sin", spike_strength=r, bulk_variance=c, alignment=0.9, beta=beta
        )
        found = model.spectrum(alpha=alpha).simulate(
            dimension, seeds=seeds, seed=seed, progress=progress
        )
        assert found.projections is not None
        # A Gaussian average by Gauss–Hermite nodes: smooth students only.
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        seen = r * found.projections[:, :, None] + math.sqrt(c) * nodes
        function = {"tanh": np.tanh, "erf": erf, "sin": np.sin}[student]
        mean = function(seen) @ (weights / weights.sum())
        top = found.eigenvalues[:, -1]
        yield "top eigenvalue - sum mu_0^2", top - np.sum(mean**2, axis=1), np.array(shift)

    return run


A2 = (1.134055509282620, 1.018973200458186, 0.9718544444873880)
HE3 = "He(3, z)/6"
FEATURES = (
    ("tanh|sin a=3", 1000, 30, features("tanh|sin", 3, 1, 0.1, A2)),
    ("tanh|sin a=.9", 1000, 40, features("tanh|sin", 0.9, 1, 0.1, A2)),
    ("erf|erf d=400", 400, 60, features("erf|erf", 2, 0.5, 0.05, (1.2, 1.15, 0.9))),
    ("erf|erf d=800", 800, 40, features("erf|erf", 2, 0.5, 0.05, (1.2, 1.15, 0.9))),
    ("erf|erf d=1500", 1500, 16, features("erf|erf", 2, 0.5, 0.05, (1.2, 1.15, 0.9))),
    ("erf|sin", 800, 20, features("erf|sin", 1.5, 2, 0.05, (1.2, 1.15, 0.8), 0.1)),
    ("sin|sin", 800, 20, features("sin|sin", 0.6, 1, 1e-3, (1, 1.05, 0.9))),
    ("relu|relu", 800, 20, features("relu|relu", 2, 1, 0.1, (1, 1.1, 0.85))),
    ("relu|sin", 800, 20, features("relu|sin", 1.5, 0.7, 0.1, (1, 1.1, 0.85), 0.05)),
    ("sign|sign", 800, 20, features("sign|sign", 2, 1, 0.2, (1.5, 1.2, 0.9))),
    ("tanh|sin aligned", 800, 20, features("tanh|sin", 1.5, 1, 0.1, (1.3, 1, 1))),
    ("tanh|He3 aligned", 800, 20, features(f"tanh|{HE3}", 1.5, 1, 0.1, (1.3, 1, 1))),
    ("erf|erf no spike", 600, 16, features("erf|erf", 2, 1.5, 0.01, (0.0, 1, 0))),
)
NETWORKS = (
    ("tanh|tanh", 1000, 3, network("tanh|tanh", 1, 0.5, 2, 1, 0.01)),
    ("erf|erf b=.5", 1000, 3, network("erf|erf", 2, 2, 3, 0.5, 0.1, 0.25)),
    ("erf|erf b=2", 600, 8, network("erf|erf", 1.5, 2, 1.5, 2, 0.05, 0.1)),
    ("sin|sin", 600, 8, network("sin|sin", 1.5, 4, 3, 1, 0.1)),
    ("sin|sin c=1.78", 600, 8, network("sin|sin", 3, 1, 3, 1, 0.1)),
    ("relu|tanh", 1000, 3, network("relu|tanh", 2, 4, 1, 1, 0.1)),
    ("relu|relu", 1000, 3, network("relu|relu", 2, 4, 1, 0.5, 0.1, 0.1)),
    ("erf|relu", 1000, 3, network("erf|relu", 2, 4, 1, 1, 0.1)),
)
LOSSES = (
    ("huber", 600, 30, readout("erf|sin", "huber(0.3)", "teacher", 1, 0.1)),
    ("absolute", 600, 30, readout("erf|sin", "absolute", "teacher", 1, 0.1)),
    *((f"logistic d={d}", d, n, readout("erf|sign", "logistic", "sign", 1, 0))
      for d, n in ((200, 100), (400, 40), (600, 30))),
    ("hinge", 500, 30, readout("tanh|sign", "hinge", "sign", 0.7, 0)),
)  # fmt: skip
LETTERS = (
    ("erf|sin two letters", 600, 30, vocabulary(
        "erf|sin", 2, 0.1, spikes=[1.2, -0.6], variances=[1.1, 1.02], fractions=[0.4, 0.6],
        alignment=0.9, beta=0.7)),
    ("tanh|He3 two letters", 600, 30, vocabulary(
        f"tanh|{HE3}", 1.5, 0.05, spikes=[1.5, 0.5], variances=[1.2, 1.0], fractions=[0.5, 0.5],
        alignment=1.0, noise_variance=0.05)),
    ("erf|He3 two biases", 600, 30, vocabulary(
        f"erf|{HE3}", 1.5, 0.05, spikes=[1.0, 1.0], variances=[1.0, 1.0], fractions=[0.5, 0.5],
        alignment=0.9, biases=[0.8, -0.8])),
    ("tanh|sin orthonormal", 600, 30, vocabulary(
        "tanh|sin", 1.5, 0.05, spikes=[1.5, 0.5], variances=[1.2, 1.0], fractions=[0.5, 0.5],
        alignment=1.0, bulk="orthonormal")),
    ("tanh|sin network", 600, 10, vocabulary(
        "tanh|sin", 2, 0.1, letters=[1, -0.5], fractions=[0.5, 0.5], step_size=3, alpha0=8)),
    ("erf|erf network", 600, 10, vocabulary(
        "erf|erf", 2, 0.1, letters=[0.4, 1, 1.8], fractions=[0.3, 0.4, 0.3], step_size=2,
        alpha0=5, noise_variance=0.05)),
    ("erf|sin rank 2", 400, 16, vocabulary(
        "erf|sin", 2, 0.1, spikes=[[1.2, 0.3], [-0.5, 0.8]], variances=[1.1, 1.05],
        fractions=[0.5, 0.5], alignment=[0.7, 0.5])),
    ("tanh|two-index rank 2", 400, 16, vocabulary(
        "tanh|sin(x1)+x1*x2/2", 2, 0.1, spikes=[[1.2, 0.4], [-0.6, 0.9], [0.3, -1.1]],
        variances=[1.2, 1.05, 1.0], fractions=[0.3, 0.4, 0.3],
        alignment=[[0.9, 0.1], [-0.2, 0.8]], noise_variance=0.05)),
)  # fmt: skip
SPECTRA = (
    ("tanh top eigenvalue", 400, 60, top_eigenvalue("tanh", (2, 1.1), 1.5, 1, 0.411)),
    ("erf top eigenvalue", 400, 60, top_eigenvalue("erf", (1, 1.1), 3, 0.5, 2.651)),
    ("sin top eigenvalue", 400, 60, top_eigenvalue("sin", (1.5, 1.3), 0.7, 1.5, 0.485)),
)
TABLES = {
    "features": FEATURES, "networks": NETWORKS, "losses": LOSSES, "letters": LETTERS,
    "spectra": SPECTRA,
}  # fmt: skip
ROWS = [Row(f"{table}/{row[0]}", *row[1:]) for table, rows in TABLES.items() for row in rows]


def report(row: Row, dimension: int, seeds: int, options: dict[str, Any]) -> float:
    """Print the comparisons of a row; return the largest deviation in standard errors."""
    begin = time.perf_counter()
    # A folder is that of one run.
    name = "".join(c if c.isalnum() else "_" for c in f"{row.name}_{dimension}")
    options = {**options, "store": Path(options["store"]) / name}
    print(f"\n{row.name}: d = {dimension}, {seeds} seeds")
    worst = 0.0
    for quantity, values, theory in row.run(dimension, seeds=seeds, **options):
        columns = values.reshape(len(values), -1)
        limits = (
            np.broadcast_to(theory, (columns.shape[1],)) if theory.ndim == 0 else theory.ravel()
        )
        for k, limit in enumerate(limits):
            mean = float(columns[:, k].mean())
            error = float(columns[:, k].std(ddof=1)) / math.sqrt(len(columns))
            # What is zero by a symmetry has no scatter.
            apart = (mean - limit) / error if error else math.copysign(math.inf, mean - limit)
            apart = 0.0 if mean == limit else apart
            index = f"[{k}]" if len(limits) > 1 else ""
            print(
                f"  {quantity + index:28s} {mean:12.6g} ± {error:8.2g}   theory {limit:12.6g}"
                f"   {apart:+5.1f} s.e."
            )
            worst = max(worst, abs(apart))
    print(f"  {time.perf_counter() - begin:.1f} s")
    return worst


def main() -> None:
    """Run the rows that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="names of all rows with their sizes")
    parser.add_argument("--rows", nargs="*", default=[""], help="beginnings of names of rows")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of all dimensions")
    parser.add_argument("--seeds", type=int, help="seeds in place of the published number")
    parser.add_argument("--seed", type=int, default=0, help="entropy")
    parser.add_argument("--store", default="spiked_simulations", help="folder of finished seeds")
    arguments = parser.parse_args()
    chosen = [row for row in ROWS if any(row.name.startswith(name) for name in arguments.rows)]
    if not chosen:
        parser.error("no row has a name that begins like this; --list shows them")
    if arguments.list:
        for row in chosen:
            print(f"{row.name:40s} d = {row.dimension}, {row.seeds} seeds")
        return
    options = {"seed": arguments.seed, "progress": False, "store": arguments.store}
    far = []
    with progress_bar(True, len(chosen), "row") as bar:
        for row in chosen:
            # Sizes stay multiples of 20: ratios such as .7 then give whole numbers.
            dimension = max(20, 20 * round(arguments.scale * row.dimension / 20))
            worst = report(row, dimension, arguments.seeds or row.seeds, options)
            if worst > 4:
                far.append(f"{row.name} ({worst:.1f})")
            bar.update()
    print("\nmore than 4 standard errors from the theory: " + (", ".join(far) or "none"))


if __name__ == "__main__":
    main()
