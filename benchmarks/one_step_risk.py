"""The risk after one gradient step: the closed form against a fixed-point iteration.

Target: one evaluation with all outputs (risk, bias, variance, training error and objective before
and after the step, improvement, effective ridge and its derivative, each with an error estimate)
takes at most 2 µs in a batch of a million parameter sets on one core.

For comparison the deterministic equivalent as it is usually solved: the damped iteration
ν ← λ_B + (N/n)(1/N) tr νΣ(Σ + ν)^-1 with traces over the eigenvalues of one covariance, in numba,
until ν moves by less than 1e-12; and SciPy's root finder on the same equation. Both find ν alone.
The largest deviation counts: the damped iteration stops early where it is slow, so it is allowed
more than the root finder.

All sides run in one process on one thread; the CPU time of the thread counts, which other load on
the machine hardly changes.

    python benchmarks/one_step_risk.py [--quick]
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from measuring import cpu_seconds
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import brentq

from giantstep import OneGradientStep
from giantstep.derivations.one_gradient_step.risk import risk_kernel

TARGET = 2e-6
# Largest relative deviations of ν; a turn of the damped iteration closes part of the gap.
AGREEMENT = {"damped fixed point (numba)": 1e-9, "root finder (SciPy)": 1e-12}
EIGENVALUES = 200
DAMPING = 0.5
MOST_TURNS = 100_000

Array = NDArray[np.float64]


def random_rows(names: tuple[str, ...], n: int, model: OneGradientStep) -> Array:
    """Return α, β in [0.1, 10] and λ in [1e-4, 10], on one covariance, the rest of the model."""
    rng = np.random.default_rng(0)
    student, teacher = model.student_moments, model.teacher_moments
    alpha = 10 ** rng.uniform(-1, 1, n)
    values: dict[str, float | Array] = {
        "alpha": alpha, "alpha0": alpha, "beta": 10 ** rng.uniform(-1, 1, n),
        "ridge": 10 ** rng.uniform(-4, 1, n), "step_size": rng.uniform(0, 5, n),
        "noise_variance": rng.uniform(0, 1, n), "student_linear": student.linear,
        "student_residual": student.residual, "teacher_linear": teacher.linear,
        "teacher_residual": teacher.residual,
    }  # fmt: skip
    return np.stack([np.broadcast_to(values[name], n) for name in names], axis=1)


def rule(beta: float) -> tuple[Array, Array]:
    """Return nodes and weights for averages over the Marchenko–Pastur law.

    Chebyshev's rule, in which the density's factor 1/x is no polynomial where N is almost d. The
    node 0 takes what the weights lack of one, so that the rule only has to be right for
    (f(x) - f(0))/x.
    """
    angles = np.pi * np.arange(1, EIGENVALUES + 1) / (EIGENVALUES + 1)
    x = 1 + beta - 2 * np.sqrt(beta) * np.cos(angles)
    weights = 2 * np.sin(angles) ** 2 / (EIGENVALUES + 1) / x
    return np.append(x, 0.0), np.append(weights, 1 - weights.sum())


@njit(nogil=True)
def fixed_point(penalty: float, ratio: float, sizes: Array, weights: Array) -> tuple[float, int]:
    """Return ν and the number of turns."""
    nu = penalty + ratio * np.sum(weights * sizes)
    for turn in range(MOST_TURNS):
        new = penalty
        for k in range(len(sizes)):
            new += ratio * weights[k] * nu * sizes[k] / (sizes[k] + nu)
        move = abs(new - nu)
        nu = DAMPING * nu + (1 - DAMPING) * new
        if move <= 1e-12 * nu:
            return nu, turn + 1
    return nu, MOST_TURNS


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the points")
    quick = parser.parse_args(arguments).quick
    n, compared = (100_000, 200) if quick else (1_000_000, 2000)
    model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, noise_variance=0.25)
    kernel = risk_kernel(model)
    rows = random_rows(kernel.parameters, n, model)
    job = kernel.job(None, None, 1e-11, n)
    job(rows[:10])
    seconds, batch = [], None
    for _ in range(3):
        begin = time.thread_time()
        batch = job(rows)
        seconds.append(time.thread_time() - begin)
    assert batch is not None
    best = min(seconds) / n
    good = best <= TARGET and bool(batch.converged.all())
    print(
        f"closed form, all {len(kernel.outputs)} outputs, {n} points: {best * 1e6:.2f} µs each "
        f"({batch.iterations.mean():.1f} Newton turns, at most {batch.iterations.max()}; residual "
        f"at most {batch.residual.max():.1e}), target {TARGET * 1e6:g} µs: "
        f"{'PASS' if good else 'FAIL'}"
    )

    column = {name: rows[:, kernel.parameters.index(name)] for name in kernel.parameters}
    slope, floor = model.student_moments.linear**2, model.student_moments.residual
    points = []
    for k in range(compared):
        ratio = column["beta"][k] / column["alpha"][k]
        x, weights = rule(column["beta"][k])
        points.append((column["ridge"][k] * ratio, ratio, slope * x + floor, weights))
    fixed_point(*points[0])
    found = np.empty((2, compared))
    turns = np.empty(compared)

    def iterate() -> None:
        for k, point in enumerate(points):
            found[0, k], turns[k] = fixed_point(*point)

    def bracket() -> None:
        for k, (penalty, ratio, sizes, weights) in enumerate(points):

            def gap(
                nu: float, p: float = penalty, r: float = ratio, e: Array = sizes,
                w: Array = weights,
            ) -> float:  # fmt: skip
                return float(nu - p - r * nu * np.sum(w * e / (e + nu)))

            top = penalty + ratio * float(np.sum(weights * sizes))
            found[1, k] = brentq(gap, penalty, 1.001 * top, xtol=1e-300, rtol=1e-14)

    exact = batch.values["effective_ridge"][:compared]
    for name, run, values, note in (
        ("damped fixed point (numba)", iterate, found[0], lambda: f", {turns.mean():.0f} turns"),
        ("root finder (SciPy)", bracket, found[1], lambda: ""),
    ):
        each = cpu_seconds(run) / compared
        error = float(np.max(np.abs(values / exact - 1)))
        close = error <= AGREEMENT[name]
        good &= close
        print(
            f"{name}, ν alone, {EIGENVALUES} eigenvalues, {compared} points: {each * 1e6:.0f} µs "
            f"each{note()}, {each / best:.0f} times as long; largest deviation {error:.0e}: "
            f"{'PASS' if close else 'FAIL'}"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
