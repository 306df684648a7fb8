"""Activations of simulators at the entries of an array, beside a matrix product for one entry.

"before" is the NumPy text of values and slopes, each a call of its own, "both" one after the other;
"after" is :class:`giantstep.numeric.elementwise.ElementwiseFunction`. Arrays have the size of the
simulators' slices, standard normal entries. One thread, best of several turns, in nanoseconds per
entry; "product" is what x Wᵀ takes for one entry at d = 1000.

Target: a gradient step, two products for each entry, that would run at the rate of products but for
values and slopes, keeps 95 % of it. Exit code 1 if one of tanh, erf, sin and relu misses it.

    python benchmarks/activations.py [--single]
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from giantstep.derivations.activation_functions import elementwise
from giantstep.symbolic.expressions.activations import activation, z
from giantstep.symbolic.printing.compiled import compiled

ENTRIES = 2**15
DIMENSION = 1000
SHARE_TARGET = 0.95
TARGETED = ("tanh", "erf", "sin", "relu")
ACTIVATIONS = (*TARGETED, "erf(z/sqrt(2))", "sigmoid", "softplus", "gelu", "z**3 - 3*z")
_TURNS, _CALLS = 15, 8


def nanoseconds(run: Callable[[], object], entries: int) -> float:
    """Return the least time of a run for each entry."""
    run()
    least = float("inf")
    for _ in range(_TURNS):
        start = time.perf_counter()
        for _ in range(_CALLS):
            run()
        least = min(least, time.perf_counter() - start)
    return least / _CALLS / entries * 1e9


def product_time(dtype: type) -> float:
    """Return the time of a matrix product for each entry of the result."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, DIMENSION, DIMENSION)).astype(dtype)
    out = np.empty_like(a)
    return nanoseconds(partial(np.matmul, a, b, out=out), out.size)


def times(text: str, x: NDArray[Any]) -> tuple[list[float], list[float]]:
    """Return times of values, slopes and both, before and after."""
    student = activation(text)
    value, slope = (compiled(e, (z,)) for e in (student.expr, student.derivative))
    made = elementwise(student)
    before = [lambda: value(x), lambda: slope(x), lambda: (value(x), slope(x))]
    after = [lambda: made(x), lambda: made.slopes(x), lambda: made.values_and_slopes(x)]
    found = [[nanoseconds(run, x.size) for run in runs] for runs in (before, after)]
    return found[0], found[1]


def main() -> int:
    """Measure, print the table, return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--single", action="store_true", help="float32 instead of float64")
    dtype: type = np.float32 if parser.parse_args().single else np.float64
    x: NDArray[Any] = np.random.default_rng(1).standard_normal(ENTRIES).astype(dtype)
    passed = True
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        product = product_time(dtype)
        print(
            f"{np.dtype(dtype)}, NumPy {np.__version__}, Python {platform.python_version()}; "
            f"product {product:.1f} ns per entry at d = {DIMENSION}"
        )
        print(f"{'ns per entry':16}{'before':^24}{'after':^24}  share of products")
        print(f"{'':16}{'values  slopes    both  ' * 2}  before  after")
        for text in ACTIVATIONS:
            before, after = times(text, x)
            shares = [2 * product / (2 * product + both) for both in (before[2], after[2])]
            columns = "".join(f"{t:6.2f}  " for t in (*before, *after))
            good = text not in TARGETED or shares[1] >= SHARE_TARGET
            passed &= good
            verdict = ("PASS" if good else "FAIL") if text in TARGETED else ""
            print(f"{text:16}{columns}  {shares[0]:6.2f} {shares[1]:6.2f}  {verdict}".rstrip())
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
