"""Convex readouts, vocabularies and spectra against the plain route through SciPy.

Targets: a point with Huber's or the logistic loss in 2 ms in the compiled kernel, three letters in
1 ms, a spectrum of 500 points in 0.2 s; each with error estimates, against a hand-written solution
in NumPy and SciPy (`plain_spiked_readouts.py`) without, in the same process and to the same
numbers. For the convex losses Anderson acceleration of the same generated equations, compiled too,
stands beside Newton's method with the generated Jacobian.

All sides run on one thread, in turns; the CPU time of the thread counts, which other load on the
machine hardly changes.

    python benchmarks/spiked_readouts.py [--quick]
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable

import numpy as np
import plain_spiked_readouts as plain
from compiled_anderson import MEMORY, anderson

from giantstep.derivations.spiked_random_features.convex.readout import ConvexReadout
from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
from giantstep.derivations.spiked_random_features.vocabulary.model import VocabularyFeatures

CONVEX_TARGET = 2e-3
LETTERS_TARGET = 1e-3
SPECTRUM_TARGET = 0.2
# Relative difference of all order parameters; the plain grids are good to 1e-12.
AGREEMENT = 1e-8
START = (1.0, 1.0, 1.0, 1.0, 0.5, 0.0, 0.1)
FIRST = {"V1": 1.0, "V2": 1.0, "m": 0.5, "theta": 0.0, "psi": 0.25}
ALPHA, RIDGE, SPIKE, VARIANCE, ALIGNMENT = 2.0, 0.1, 1.2, 1.1, 0.9


def cpu_seconds(run: Callable[[], object], rounds: int) -> float:
    """Return the least CPU time of this thread, in seconds, after one run that warms up."""
    run()
    found = []
    for _ in range(rounds):
        start = time.thread_time()
        run()
        found.append(time.thread_time() - start)
    return min(found)


def report(name: str, ours: float, theirs: float, limit: float, difference: float) -> bool:
    """Print a comparison and return whether the targets are met."""
    good = ours <= limit and difference <= AGREEMENT
    print(
        f"{name}: {1e3 * ours:.2f} ms <= {1e3 * limit:g} ms, plain SciPy {1e3 * theirs:.2f} ms "
        f"(ratio {theirs / ours:.1f}), numbers differ by {difference:.0e} <= {AGREEMENT:.0e}  "
        f"{'PASS' if good else 'FAIL'}"
    )
    return good


def convex(loss: str, rounds: int) -> bool:
    """Compare one point of a convex loss, and Anderson acceleration with Newton's method."""
    noise = 0.0 if loss == "logistic" else 0.1
    features = SpikedRandomFeatures.from_parameters(
        "erf", "sin", spike_strength=SPIKE, bulk_variance=VARIANCE, alignment=ALIGNMENT,
        noise_variance=noise,
    )  # fmt: skip
    model = ConvexReadout(features, loss, labels="sign" if loss == "logistic" else "teacher")
    solver = model._solver
    kernel, arrays = solver.kernel, solver.arrays
    compiled = kernel.compiled()
    given = {**model._values, "alpha": ALPHA, "ridge": RIDGE}
    row = np.array([[given[name] for name in kernel.parameters]])
    results, errors = (np.empty((1, len(kernel.outputs))) for _ in range(2))
    info = np.empty((1, 3))

    def solve() -> None:
        compiled.solve_batch(row, *arrays[0], results, errors, info)

    ours = cpu_seconds(solve, rounds)
    moments = plain.logistic_moments if loss == "logistic" else plain.huber_moments(0.3)
    point = plain.Readout(ALPHA, 1.0, RIDGE, SPIKE, VARIANCE, ALIGNMENT, noise)
    other = plain.PlainConvexReadout(point, moments, 0.125 if loss == "logistic" else plain.STEP)
    theirs = cpu_seconds(functools.partial(other.solve, START), max(rounds // 4, 1))
    expected = other.solve(START)
    found = {name: results[0, kernel.outputs.index(name)] for name in expected}
    difference = max(abs(found[x] - y) / max(abs(y), 0.1) for x, y in expected.items())
    worst = max(errors[0, kernel.outputs.index(name)] for name in expected)
    good = report(loss, ours, theirs, CONVEX_TARGET, difference)
    print(f"    {arrays.nodes(0)} nodes, estimated error {worst:.0e}")
    accelerated = anderson(model._case.lowered().program)
    unknowns = [kernel.outputs.index(name) for name in kernel.code.unknowns]
    solution = results[0, unknowns]

    def accelerate() -> tuple[np.ndarray, list[int]]:
        # As Newton's method does it: each rule begins where the coarser one ends.
        x = np.array([FIRST.get(name, 0.25) for name in kernel.code.unknowns])
        counts = []
        for rule in reversed(arrays[0][:3]):
            x, count = accelerated(row[0], rule, x)
            counts.append(count)
        return x, counts

    x, counts = accelerate()
    slow = cpu_seconds(accelerate, rounds)
    faster = "Newton" if ours < slow else "Anderson"
    print(
        f"    Anderson acceleration (compiled, memory {MEMORY}, no results, no errors): "
        f"{counts} evaluations on three grids, {1e3 * slow:.2f} ms, unknowns differ by "
        f"{np.max(np.abs(x - solution)):.0e}; Newton with the generated Jacobian, results "
        f"and errors included: {abs(int(info[0, 0]))} on the fine grid, {1e3 * ours:.2f} ms: "
        f"{faster} is faster"
    )
    return good


def letters(rounds: int) -> bool:
    """Compare one point with three letters."""
    strengths, variances, fractions = (1.2, 0.5, -0.6), (1.1, 1.05, 1.02), (0.3, 0.3, 0.4)
    model = VocabularyFeatures.from_parameters(
        "erf", "sin", spike_strengths=list(strengths), bulk_variances=list(variances),
        fractions=list(fractions), alignment=ALIGNMENT, beta=0.7,
    )  # fmt: skip
    ours = cpu_seconds(functools.partial(model.solve, alpha=ALPHA, ridge=RIDGE), rounds)
    point = plain.Letters(ALPHA, 0.7, RIDGE, strengths, variances, fractions, ALIGNMENT)
    other = plain.PlainVocabulary(point, plain.sine_teacher)
    theirs = cpu_seconds(other.solve, max(rounds // 4, 1))
    expected, solution = other.solve(), model.solve(alpha=ALPHA, ridge=RIDGE)
    pairs = [
        (solution.test_error, expected["test_error"]),
        (solution.training_error, expected["training_error"]),
        *((getattr(solution, x), expected[x]) for x in ("V1", "V2", "q1", "q2", "m")),
    ]
    difference = max(float(np.max(np.abs(np.asarray(a) - b)) / np.max(np.abs(b))) for a, b in pairs)
    return report("three letters", ours, theirs, LETTERS_TARGET, difference)


def spectrum(rounds: int) -> bool:
    """Compare a spectrum of 500 points."""
    model = SpikedRandomFeatures.from_parameters(
        "erf", "sin", spike_strength=SPIKE, bulk_variance=VARIANCE, alignment=ALIGNMENT
    )
    ours = cpu_seconds(functools.partial(model.spectrum, alpha=ALPHA, points=500), rounds)
    found = model.spectrum(alpha=ALPHA, points=500)
    other = plain.PlainSpectrum(ALPHA, 1.0, SPIKE, VARIANCE)
    left, right = np.asarray(found.edges)[0].tolist()
    grid = np.linspace(left, right, 500)
    theirs = cpu_seconds(functools.partial(other.transforms, grid, 1e-3), max(rounds // 4, 1))
    few = grid[::50]
    expected = other.transforms(few, 0.01)
    transform = np.array([complex(found.stieltjes(x + 0.01j)) for x in few])
    difference = float(np.max(np.abs(transform - expected) / np.abs(expected)))
    return report("spectrum of 500 points", ours, theirs, SPECTRUM_TARGET, difference)


def main() -> int:
    """Measure, print, return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    rounds = 5 if parser.parse_args().quick else 25
    passed = [
        letters(rounds),
        spectrum(max(rounds // 4, 1)),
        convex("huber(0.3)", rounds),
        convex("logistic", rounds),
    ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
