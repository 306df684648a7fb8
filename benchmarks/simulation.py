"""Finite-size simulator against matrix products and against the textbook recipe.

Targets for tanh, erf, sin and relu students: at least 75 % of the rate of a matrix product measured
in the same process with the same number of threads, and at most 12 % of the textbook recipe's peak
memory. Useful operations are those of the definition; nothing done twice, no random number and no
activation is counted. In single precision the products are those of single precision.

    python benchmarks/simulation.py [--quick] [--single]
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import threadpoolctl

import giantstep as gs

RATE_TARGET = 0.75
MEMORY_TARGET = 0.12
STUDENTS = ("tanh", "erf", "sin", "relu")
ALPHA = 3.0
RIDGE = 0.1


def useful_operations(network: gs.Network, n_test: int) -> float:
    """Floating-point operations of one network, from the definition."""
    d, p = network.dimension, network.width
    n0, n = network.step_samples, round(ALPHA * d)
    step = 2 * 2 * n0 * p * d
    readout = 2 * n * p * d + n * p**2 + p**3 / 3
    return step + readout + 2 * n_test * p * d


def product_rate(size: int, threads: int, dtype: type) -> float:
    """Operations per second of `threads` simultaneous square products, one BLAS thread each."""
    rng = np.random.default_rng(0)
    # Three distinct arrays: a product of an array with its own transpose is half the work.
    jobs = [
        (*rng.standard_normal((2, size, size)).astype(dtype), np.empty((size, size), dtype))
        for _ in range(threads)
    ]
    repeats = max(1, round(2e10 / (2 * size**3)))

    def work(job: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        a, b, out = job
        for _ in range(repeats):
            np.matmul(a, b, out=out)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, jobs))
        start = time.perf_counter()
        list(pool.map(work, jobs))
        return threads * repeats * 2 * size**3 / (time.perf_counter() - start)


def textbook(network: gs.Network, n_test: int, seed: int) -> float:
    """Test error by the plain recipe: every array held at once, one line per formula."""
    rng = np.random.default_rng(seed)
    d, p = network.dimension, network.width
    n0, n, noise = network.step_samples, round(ALPHA * d), math.sqrt(network.noise_variance)
    theta = rng.standard_normal(d)
    theta /= np.linalg.norm(theta)
    rows = rng.standard_normal((p, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)

    x0 = rng.standard_normal((n0, d))
    y0 = network.teacher(x0 @ theta) + noise * rng.standard_normal(n0)
    hidden = x0 @ rows.T
    residual = y0 - network.student(hidden).mean(axis=1)
    assert network.student_derivative is not None
    slopes = network.student_derivative(hidden)
    rows += network.step_size / n0 * (residual[:, None] * slopes).T @ x0
    x = rng.standard_normal((n, d))
    y = network.teacher(x @ theta) + noise * rng.standard_normal(n)
    phi = network.student(x @ rows.T) / math.sqrt(p)
    w = np.linalg.solve(phi.T @ phi + RIDGE * np.eye(p), phi.T @ y)
    x_test = rng.standard_normal((n_test, d))
    prediction = network.student(x_test @ rows.T) @ w / math.sqrt(p)
    return float(np.mean((prediction - network.teacher(x_test @ theta)) ** 2))


def peak_memory(run: Callable[[], object]) -> int:
    """Largest number of bytes allocated at once during the run (NumPy reports its arrays)."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def elapsed(run: Callable[[], object]) -> float:
    """Wall time of the run in seconds."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def best_rates(
    run: Callable[[], object], operations: float, size: int, threads: int, dtype: type
) -> tuple[float, float]:
    """Highest rates of the run and of plain products, in operations per second.

    The two take turns, and each side keeps its best of five: other load on the machine can only
    lower a rate, while the best *ratio* of five pairs would profit from load on the products.
    """
    rates, products = [], []
    for _ in range(5):
        products.append(product_rate(size, threads, dtype))
        rates.append(operations / elapsed(run))
    return max(rates), max(products)


def main() -> int:
    """Measure, print the table, return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="d = p = 800 instead of 1000")
    parser.add_argument("--single", action="store_true", help="float32")
    given = parser.parse_args()
    dimension, dtype = 800 if given.quick else 1000, np.float32 if given.single else np.float64
    n_test = max(10_000, 10 * dimension)
    print(f"d = p = {dimension}, alpha0 = 20, alpha = {ALPHA:g}, n_test = {n_test}, teacher sin")
    passed = True
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        for student in STUDENTS:
            network = gs.Network(
                student, "sin", dimension=dimension, width=dimension, steps=1,
                step_samples=20 * dimension, step_size=3.0,
                precision="single" if given.single else "double",
            )  # fmt: skip
            passed &= measure(network, student, n_test, dtype)
    return 0 if passed else 1


def measure(network: gs.Network, student: str, n_test: int, dtype: type) -> bool:
    """Print rates and memory of one student; whether they meet the targets."""
    dimension = network.dimension
    operations = useful_operations(network, n_test)

    def run(seeds: int) -> float:
        found = gs.simulate(
            network, alpha=ALPHA, ridge=RIDGE, n_test=n_test, seeds=seeds, workers=seeds,
            progress=False,
        )  # fmt: skip
        return float(found["test_error"][0, 0, 0])

    passed = True
    errors = run(1), textbook(network, n_test, 0)
    recipe = min(elapsed(lambda: textbook(network, n_test, 0)) for _ in range(2))
    for threads in (1, 2):
        rate, product = best_rates(
            partial(run, threads), threads * operations, dimension, threads, dtype
        )
        good = rate >= RATE_TARGET * product
        passed &= good
        print(
            f"{student:5} {threads} seed(s), {threads} thread(s): "
            f"{threads * operations / rate:6.2f} s, {rate / 1e9:6.1f} of {product / 1e9:6.1f} "
            f"Gflop/s, ratio {rate / product:.2f} >= {RATE_TARGET}  {'PASS' if good else 'FAIL'}"
        )
    ours, theirs = peak_memory(partial(run, 1)), peak_memory(lambda: textbook(network, n_test, 0))
    good = ours <= MEMORY_TARGET * theirs
    print(
        f"{student:5} peak memory {ours / 1e6:.0f} of {theirs / 1e6:.0f} MB, ratio "
        f"{ours / theirs:.2f} <= {MEMORY_TARGET}  {'PASS' if good else 'FAIL'}; textbook "
        f"{recipe:.2f} s; test error {errors[0]:.4f}, textbook {errors[1]:.4f} (other data)"
    )
    return passed and good


if __name__ == "__main__":
    sys.exit(main())
