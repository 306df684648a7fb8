"""Diagrams of the binary perceptron, of some 200 points with their spinodal, in at most a second.

From its fixed-point equations, and from its free energy with first-order transitions looked for.
After one run that compiles; the wall clock counts, the best of several runs.

    python benchmarks/branches.py [--quick]
"""

from __future__ import annotations

import argparse
import time

import sympy as sp

import giantstep as gs
from giantstep import GaussianExpectation

TARGET = 1.0
SPINODAL = 1.49263181823

z = sp.Symbol("z", real=True)
alpha, q, q_hat = sp.symbols("alpha q q_hat", positive=True)


def cdf(x: sp.Expr) -> sp.Expr:
    """Return the normal distribution function."""
    return (1 + sp.erf(x / sp.sqrt(2))) / 2


def perceptron() -> gs.SaddlePointSystem:
    """Return the binary perceptron, teacher and student (Györgyi, 1990)."""
    ratio = GaussianExpectation(sp.exp(-q * z**2 / 2) / cdf(sp.sqrt(q) * z), z)
    return gs.SaddlePointSystem.from_fixed_point(
        {
            q: GaussianExpectation(sp.tanh(sp.sqrt(q_hat) * z + q_hat), z),
            q_hat: alpha / (sp.pi * sp.sqrt(1 - q)) * ratio,
        },
        name="perceptron",
        parameters=(alpha,),
    )


def perceptron_of_free_energy() -> gs.SaddlePointSystem:
    """Return the same as the stationarity conditions of its entropy."""
    side = cdf(sp.sqrt(q / (1 - q)) * z)
    entropy = (
        -q_hat * (1 + q) / 2
        + GaussianExpectation(sp.log(2 * sp.cosh(sp.sqrt(q_hat) * z + q_hat)), z)
        + 2 * alpha * GaussianExpectation(side * sp.log(side), z)
    )
    return gs.SaddlePointSystem.from_free_energy(
        gs.FreeEnergy(entropy, (q,), (q_hat,), (alpha,)),
        name="perceptron_of_free_energy",
        domains={q: sp.Interval.open(0, 1)},
    )


def missed(system: gs.SaddlePointSystem, runs: int) -> bool:
    """Measure one form, print a line, and return whether the target is missed."""
    kernel = gs.lower(system)
    seconds = []
    for _ in range(runs + 1):
        begin = time.perf_counter()
        found = kernel.branches("alpha", (1, 1.6), bounds={"q": (0, 1)})
        seconds.append(time.perf_counter() - begin)
    assert abs(found.spinodals[0].value - SPINODAL) < 1e-10
    first, best = seconds[0], min(seconds[1:])
    points = sum(map(len, found.branches))
    print(
        f"{system.name:26} {points} points: {best:.2f} s, with compilation {first:.2f} s; "
        f"target {TARGET} s {'FAIL' if best > TARGET else 'PASS'}"
    )
    return best > TARGET


def main() -> int:
    """Measure both forms, and return whether a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run instead of five")
    runs = 1 if parser.parse_args().quick else 5
    systems = (perceptron(), perceptron_of_free_energy())
    return int(any([missed(system, runs) for system in systems]))


if __name__ == "__main__":
    raise SystemExit(main())
