"""Hermite coefficients of sin and relu against ``sympy.integrate``, both sides in one process.

Compares the processor times for k = 0 ... 8 of

- ``hermite_coefficients(text, 8)``, from the text to the finished object: `cold`, the median of
  calls before each of which all caches of SymPy and giantstep are cleared; `warm`, not cleared;
- ``sympy.integrate(s(x)*He_k(x)*exp(-x**2/2)/sqrt(2*pi), (x, -oo, oo))``, one integral for each k,
  every one with a limit of LIMIT seconds, which counts as its time if it is reached. relu is
  written as Max(x, 0), which is what people write and what counts, and as x*Heaviside(x), which
  SymPy integrates faster. SymPy's cache is cleared before each list of integrals, not between them.

Every integral that ends is compared with our number. Targets: cold at least 1000 times faster, for
x*Heaviside(x) warm; ``hermite_coefficients("erf(z)", 50)``, cold, within 20 ms. Exit code 1 if one
is missed.

    python benchmarks/hermite_coefficients.py [--limit SECONDS] [--repetitions N]
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType

import sympy as sp
from sympy.core.cache import clear_cache

from giantstep.symbolic.expressions.regularity import analyse
from giantstep.symbolic.hermite.coefficients import (
    HermiteCoefficients,
    _has_rule,
    _parity,
    hermite_coefficients,
)
from giantstep.symbolic.hermite.rules import _recurrence, decompose, kernel_sequence

ORDER, LIMIT, SPEED_UP, ERF_SECONDS = 8, 60.0, 1000.0, 0.020
x = sp.Symbol("x", real=True)
FORMS: dict[str, dict[str, sp.Expr]] = {
    "sin(z)": {"sin(x)": sp.sin(x)},
    "relu(z)": {"Max(x, 0)": sp.Max(x, 0), "x*Heaviside(x)": x * sp.Heaviside(x)},
}


class TookTooLongError(Exception):
    """The limit of one integral was reached."""


def seconds_of(function: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def forget() -> None:
    """Clear all that SymPy and giantstep remember of expressions they have seen."""
    clear_cache()
    for cached in (decompose, kernel_sequence, analyse, _has_rule, _parity, _recurrence):
        cached.cache_clear()


def ours(text: str, order: int, repetitions: int) -> tuple[float, float]:
    """Return the median seconds of cold and of warm calls."""
    cold = []
    for _ in range(repetitions):
        forget()
        cold.append(seconds_of(lambda: hermite_coefficients(text, order)))
    warm = [seconds_of(lambda: hermite_coefficients(text, order)) for _ in range(repetitions)]
    return statistics.median(cold), statistics.median(warm)


def integrated(
    function: sp.Expr, limit: float, expected: HermiteCoefficients
) -> tuple[float, int, int]:
    """Return the seconds of all integrals, and how many reached the limit or gave no number."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TookTooLongError

    signal.signal(signal.SIGPROF, stop)
    clear_cache()
    total, late, unevaluated = 0.0, 0, 0
    for k in range(ORDER + 1):
        density = sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)
        integrand = function * sp.hermite_prob(k, x) * density
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, limit)
        try:
            value = sp.integrate(integrand, (x, -sp.oo, sp.oo))
        except TookTooLongError:
            total, late = total + limit, late + 1
            continue
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        total += time.process_time() - start
        if value.has(sp.Integral):
            unevaluated += 1
        elif abs(sp.N(value - expected[k], 20)) > 1e-15:
            raise RuntimeError(f"two values of order {k}: {value} and {expected[k]}")
    return total, late, unevaluated


def main(arguments: Sequence[str] | None = None) -> int:
    """Print times and ratios; return 0 if all are within the limits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="SECONDS")
    parser.add_argument("--repetitions", type=int, default=9, metavar="N")
    options = parser.parse_args(arguments)
    repetitions = max(1, options.repetitions)
    passed = True
    for text, forms in FORMS.items():
        cold, warm = ours(text, ORDER, repetitions)
        expected = hermite_coefficients(text, ORDER)
        print(f"{text}, k = 0 ... {ORDER}")
        print(f"  giantstep  cold {cold * 1e3:8.3f} ms  warm {warm * 1e3:8.3f} ms")
        for number, (name, function) in enumerate(forms.items()):
            total, late, unevaluated = integrated(function, options.limit, expected)
            print(f"  integrate  {total:8.3f} s   {name}", end="")
            print(f"  ({late} at the limit of {options.limit:g} s, {unevaluated} unevaluated)")
            good = total >= SPEED_UP * (warm if number else cold)
            passed &= good
            print(f"    {total / cold:.0f} times faster cold, {total / warm:.0f} warm; ", end="")
            print(f"{'warm' if number else 'cold'} >= {SPEED_UP:g}  {'PASS' if good else 'FAIL'}")
    cold, warm = ours("erf(z)", 50, repetitions)
    good = cold <= ERF_SECONDS
    passed &= good
    print(f"erf(z), k = 0 ... 50\n  giantstep  cold {cold * 1e3:8.3f} ms", end="")
    print(f"  warm {warm * 1e3:8.3f} ms", end="")
    print(f"  cold <= {ERF_SECONDS * 1e3:g} ms  {'PASS' if good else 'FAIL'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
