"""Hermite basis and Gaussian expectation of a dense polynomial, against SymPy and chaospy.

The polynomial has 5 variables, degree 8 and all 1287 terms, with random rational coefficients.

- Monomials to Hermite basis. Ours: ``HermiteExpansion.from_polynomial`` of the ring element, with
  everything it checks. SymPy: the expanded expression, each power replaced by its sum of Hermite
  polynomials (held as symbols), multiplied out and collected by ``expand``.
- Gaussian expectation. Ours: ``gaussian_mean`` of the ring element. chaospy: ``chaospy.E`` of its
  own polynomial object and joint normal distribution, both made beforehand; in floating point.
  Skipped where chaospy is not installed.

Both sides run in this process and are compared with each other, by processor time; only chaospy's
side by the clock, as threads of NumPy would count more than once. SymPy remembers the results of
its functions; as a new polynomial is not in that memory, it is emptied before each call, and the
time of a repetition, which looks most of it up, is printed as well. So is our time with
python-flint doing the work. Targets, also without python-flint: from a ring element at most 30 ms
and 300 times as fast as SymPy; from the expanded SymPy expression at most 10 ms (the ratio is
printed); 300 times as fast as chaospy; exit code 1 if one is missed.

    python benchmarks/hermite_basis.py [--repetitions N] [--quick]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import sympy as sp
from sympy.core.cache import clear_cache
from sympy.external.gmpy import GROUND_TYPES

from giantstep.symbolic.gaussian.hermite_polynomials import multi_indices, power_in_hermite
from giantstep.symbolic.hermite.expansion import HermiteExpansion
from giantstep.symbolic.hermite.heat_flow import gaussian_mean, heat_flow

LIMIT_SECONDS, LIMIT_EXPRESSION_SECONDS, LIMIT_RATIO = 0.030, 0.010, 300
VARIABLES, DEGREE = 5, 8


def timed(
    function: Callable[[], Any],
    repetitions: int,
    *,
    forget: bool = False,
    clock: Callable[[], float] = time.process_time,
) -> tuple[Any, float]:
    """Return the result and the median of the seconds of one call.

    With `forget`, SymPy's cache is emptied before each call: it holds the results of the last one.
    """
    seconds = []
    for _ in range(repetitions):
        if forget:
            clear_cache()
        start = clock()
        result = function()
        seconds.append(clock() - start)
    return result, statistics.median(seconds)


def dense_polynomial() -> Any:
    """Return the polynomial as an element of a sparse ring over QQ."""
    source = random.Random(20230518)
    ring = sp.ring([sp.Symbol(f"x{i}", real=True) for i in range(1, VARIABLES + 1)], sp.QQ)[0]
    return ring.from_dict(
        {
            alpha: sp.QQ(source.choice((-1, 1)) * source.randint(1, 99), source.randint(1, 12))
            for degree in range(DEGREE + 1)
            for alpha in multi_indices(VARIABLES, degree)
        }
    )


def by_substitution(expression: sp.Expr, variables: Sequence[sp.Symbol]) -> dict[Any, sp.Expr]:
    """Return {α: coefficient of He_α} by expression trees, as one would write it in SymPy."""
    hermite = {
        (i, k): sp.Symbol(f"He{k}_{x.name}")
        for i, x in enumerate(variables)
        for k in range(1, DEGREE + 1)
    }
    rules = {
        x**n: sp.Add(*(c * hermite.get((i, k), 1) for k, c in power_in_hermite(n).items()))
        for i, x in enumerate(variables)
        for n in range(1, DEGREE + 1)
    }
    return dict(sp.expand(sp.expand(expression).xreplace(rules)).as_coefficients_dict())


def same_expansion(ours: HermiteExpansion, theirs: dict[Any, sp.Expr]) -> bool:
    """Tell whether two expansions agree exactly."""
    product = {
        sp.Mul(
            *(sp.Symbol(f"He{k}_{x.name}") for x, k in zip(ours.variables, m, strict=True) if k)
        ): c
        for m, c in ours.he_coefficients().items()
    }
    return product == {key: c for key, c in theirs.items() if c}


def chaospy_seconds(element: Any, repetitions: int) -> tuple[float, float]:
    """Return the expectation by chaospy and the seconds it takes."""
    import chaospy  # type: ignore[import-not-found, unused-ignore]
    import numpoly  # type: ignore[import-not-found, unused-ignore]

    polynomial = numpoly.ndpoly.from_attributes(
        exponents=list(element.keys()),
        coefficients=[float(c) for c in element.values()],
        names=tuple(f"q{i}" for i in range(VARIABLES)),
    )
    law = chaospy.J(*[chaospy.Normal(0, 1) for _ in range(VARIABLES)])
    value, seconds = timed(lambda: chaospy.E(polynomial, law), repetitions, clock=time.perf_counter)
    return float(value), seconds


def version(package: str) -> str:
    """Return the version of a package, or what is to say where it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print all times; return 0 if every target is met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=21, metavar="N")
    parser.add_argument("--quick", action="store_true", help="one repetition of the slow sides")
    options = parser.parse_args(arguments)
    repetitions = max(1, options.repetitions)
    slow = 1 if options.quick else 3
    print(
        f"python {platform.python_version()}, sympy {sp.__version__} (ground types "
        f"{GROUND_TYPES}), "
        + ", ".join(f"{name} {version(name)}" for name in ("python-flint", "chaospy", "numpy"))
    )
    element = dense_polynomial()
    print(f"{VARIABLES} variables, degree {DEGREE}, {len(element)} terms")
    passed = True

    ours, seconds = timed(lambda: HermiteExpansion.from_polynomial(element), repetitions)
    expression = element.as_expr()
    variables = element.ring.symbols
    theirs, sympy_seconds = timed(lambda: by_substitution(expression, variables), slow, forget=True)
    _, repeated = timed(lambda: by_substitution(expression, variables), slow)
    ratio = sympy_seconds / seconds
    same = same_expansion(ours, theirs)
    good = ratio >= LIMIT_RATIO and seconds <= LIMIT_SECONDS and same
    passed &= good
    print(f"Hermite basis, giantstep      {1e3 * seconds:10.2f} ms  (median of {repetitions})")
    print(f"Hermite basis, SymPy Expr     {1e3 * sympy_seconds:10.2f} ms  (median of {slow})")
    print(
        f"  ratio {ratio:.0f} >= {LIMIT_RATIO}, {1e3 * seconds:.2f} <= "
        f"{1e3 * LIMIT_SECONDS:.0f} ms, same result: {same}  {'PASS' if good else 'FAIL'}"
    )
    again, from_expression = timed(
        lambda: HermiteExpansion.from_polynomial(expression, variables),
        min(repetitions, 9),
        forget=True,
    )
    print(
        f"  SymPy, same input again     {1e3 * repeated:10.2f} ms  (ratio {repeated / seconds:.0f})"
    )
    ratio = sympy_seconds / from_expression
    same = again.symbol_element == ours.symbol_element
    good = from_expression <= LIMIT_EXPRESSION_SECONDS and same
    passed &= good
    print(f"  from the SymPy expression   {1e3 * from_expression:10.2f} ms")
    print(
        f"  ratio {ratio:.0f}, {1e3 * from_expression:.2f} <= "
        f"{1e3 * LIMIT_EXPRESSION_SECONDS:.0f} ms, same result: {same}  "
        f"{'PASS' if good else 'FAIL'}"
    )
    if importlib.util.find_spec("flint") is not None:
        flowed, by_flint = timed(lambda: heat_flow(element, use_flint=True), repetitions)
        print(
            f"  python-flint does the work  {1e3 * by_flint:10.2f} ms  "
            f"(same result: {flowed == ours.symbol_element})"
        )

    mean, seconds = timed(lambda: gaussian_mean(element), repetitions)
    print(
        f"expectation, giantstep        {1e3 * seconds:10.2f} ms  (median of {repetitions}, exact)"
    )
    if importlib.util.find_spec("chaospy") is None:
        print("expectation, chaospy          skipped: it is not installed")
        return 0 if passed else 1
    value, chaospy_time = chaospy_seconds(element, slow)
    ratio = chaospy_time / seconds
    # Some 1287 rounded products, of sizes up to 100 times the largest moment, 105.
    agrees = abs(value - float(mean)) <= 1e-9 * max(1.0, abs(float(mean)))
    good = ratio >= LIMIT_RATIO and agrees
    passed &= good
    print(f"expectation, chaospy.E        {1e3 * chaospy_time:10.2f} ms  (median of {slow})")
    print(
        f"  ratio {ratio:.0f} >= {LIMIT_RATIO}, same value: {agrees}  {'PASS' if good else 'FAIL'}"
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
