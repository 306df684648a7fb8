"""Staircases, residual norms and generative leaps of large polynomials, against SymPy expressions.

Targets in 5 variables, of degree 8, with random rational coefficients: `sparse` with 60 terms;
`dense` with all 1287; `stuck`, a dense function of one direction and the squared norm, of which no
second direction is ever learned, so that every coefficient of the gradient has to be looked at.

- Staircase. Ours: ``target(expression)`` and ``staircase(target)``. SymPy: exp(Δ/2) by ``diff`` and
  ``expand``, gradients by ``diff``, the points of U_t by ``subs`` and ``expand``, and the rank of
  their coefficients by ``Matrix.rref``, as one would write it.
- Residual norms at U_1, and the upper bound of the generative leap of the sparse target, ours
  alone: by substitution and ``expand`` the first takes minutes for the sparse target already.

All caches of SymPy and giantstep are emptied before each call. Processor times of this process, the
median of some repetitions; ours and SymPy's results are compared with each other. Limits, without
python-flint: 50 ms for the sparse staircase, 1.5 s for the dense ones, 0.5 s for the residual norms
of the dense target, 2 s for the generative leap; exit code 1 if one is missed.

    SYMPY_GROUND_TYPES=python python benchmarks/staircases.py [--repetitions N] [--quick]
"""

from __future__ import annotations

import argparse
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import sympy as sp
from sympy.core.cache import clear_cache
from sympy.external.gmpy import GROUND_TYPES

from giantstep.symbolic.gaussian.hermite_polynomials import multi_indices
from giantstep.symbolic.leaps.generative_leap import generative_leap
from giantstep.symbolic.leaps.staircase import staircase
from giantstep.symbolic.targets.projections import residual_norms
from giantstep.symbolic.targets.target import target

VARIABLES, DEGREE, SPARSE_TERMS = 5, 8, 60
SPARSE_LIMIT, DENSE_LIMIT, NORMS_LIMIT, GENERATIVE_LIMIT = 0.050, 1.5, 0.5, 2.0
X = sp.symbols(f"x1:{VARIABLES + 1}", real=True)
Rows = list[list[sp.Expr]]


def forget() -> None:
    """Empty all caches of SymPy and giantstep."""
    clear_cache()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "giantstep":
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def timed(function: Callable[[], Any], repetitions: int) -> tuple[Any, float]:
    """Return the result and the median of the processor seconds of a cold call."""
    seconds = []
    for _ in range(repetitions):
        forget()
        start = time.process_time()
        result = function()
        seconds.append(time.process_time() - start)
    return result, statistics.median(seconds)


def polynomials() -> dict[str, sp.Expr]:
    """Return the targets as expanded expressions."""
    source = random.Random(20230518)
    ring, *gens = sp.ring(X, sp.QQ)

    def coefficient() -> Any:
        return sp.QQ(source.choice((-1, 1)) * source.randint(1, 99), source.randint(1, 12))

    every = [alpha for n in range(DEGREE + 1) for alpha in multi_indices(VARIABLES, n)]
    # Of the 60 terms one is linear: the staircase starts.
    chosen = [every[1], *source.sample(every[VARIABLES + 1 :], SPARSE_TERMS - 1)]
    line = sum(((i + 1) * g for i, g in enumerate(gens)), ring.zero)
    square = sum((g**2 for g in gens), ring.zero)
    stuck = sum(
        (
            coefficient() * line**m * square**n
            for n in range(DEGREE // 2 + 1)
            for m in range(DEGREE - 2 * n + 1)
        ),
        ring.zero,
    )
    return {
        "sparse": ring.from_dict({alpha: coefficient() for alpha in chosen}).as_expr(),
        "dense": ring.from_dict({alpha: coefficient() for alpha in every}).as_expr(),
        "stuck": stuck.as_expr(),
    }


def symbol_by_expressions(expression: sp.Expr) -> sp.Expr:
    """Return F = exp(Δ/2) f by differentiation."""
    total = term = expression
    for k in range(1, DEGREE // 2 + 1):
        term = sp.expand(sp.Add(*(sp.diff(term, x, 2) for x in X)) / (2 * k))
        total += term
    return total


def staircase_by_expressions(expression: sp.Expr) -> list[Rows]:
    """Return the bases of U_1, U_2, … in reduced row echelon form."""
    F = symbol_by_expressions(expression)
    gradient = [sp.diff(F, x) for x in X]
    s = sp.symbols(f"s1:{VARIABLES + 1}")
    basis: Rows = []
    found: list[Rows] = []
    while True:
        point = {
            x: sp.Add(*(a * row[j] for a, row in zip(s, basis, strict=False)))
            for j, x in enumerate(X)
        }
        parts = [
            sp.Poly(sp.expand(g.subs(point, simultaneous=True)), *s).as_dict() for g in gradient
        ]
        monomials = set().union(*parts)
        rows = basis + [[part.get(m, sp.S.Zero) for part in parts] for m in sorted(monomials)]
        echelon, pivots = sp.Matrix(rows).rref()
        if len(pivots) == len(basis):
            return found
        basis = [list(echelon.row(i)) for i in range(len(pivots))]
        found.append(basis)


def report(name: str, ours: float, limit: float, theirs: float | None, same: bool) -> bool:
    """Print one line; tell whether the limit is kept and the results agree."""
    against = "" if theirs is None else f"SymPy {theirs:8.3f} s, ratio {theirs / ours:6.0f}, "
    good = ours <= limit and same
    agrees = "" if theirs is None else f"same result: {same}, "
    print(
        f"{name:<28} {1e3 * ours:8.1f} ms  {against}{agrees}"
        f"limit {1e3 * limit:.0f} ms  {'PASS' if good else 'FAIL'}"
    )
    return good


def main(arguments: Sequence[str] | None = None) -> int:
    """Print all times; return 0 if every limit is kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5, metavar="N")
    parser.add_argument(
        "--quick", action="store_true", help="SymPy's side for the sparse target only"
    )
    options = parser.parse_args(arguments)
    repetitions = max(1, options.repetitions)
    print(
        f"python {platform.python_version()}, sympy {sp.__version__} (ground types {GROUND_TYPES})"
    )
    passed = True
    expressions = polynomials()
    for name, expression in expressions.items():
        f, reading = timed(partial(target, expression, X), repetitions)
        found, climbing = timed(partial(staircase, f), repetitions)
        seconds, theirs, same = reading + climbing, None, True
        if name == "sparse" or not options.quick:
            bases, theirs = timed(partial(staircase_by_expressions, expression), 1)
            same = bases == [[list(row) for row in step.after.basis] for step in found.steps]
        limit = SPARSE_LIMIT if name == "sparse" else DENSE_LIMIT
        passed &= report(f"staircase, {name}", seconds, limit, theirs, same)
        shape = " ⊂ ".join(str(step.after.dimension) for step in found.steps)
        terms = len(f.expansion.symbol_element)
        print(f"  {terms} terms, dimensions {shape}; reading {1e3 * reading:.1f} ms of it")

    for name in ("sparse", "dense"):
        f = target(expressions[name], X)
        first = staircase(f, max_steps=1).final
        norms, seconds = timed(partial(residual_norms, f, first), repetitions)
        # All of it is E Var(f | P_U x), less than the variance, and nothing is left at the end.
        sound = norms[-1] == 0 and norms[0] < f.norm_squared - f.mean**2
        passed &= report(f"residual norms, {name}", seconds, NORMS_LIMIT, None, sound)

    f = target(expressions["sparse"], X)
    leap, seconds = timed(partial(generative_leap, f), min(repetitions, 3))
    passed &= report("generative leap, sparse", seconds, GENERATIVE_LIMIT, None, True)
    print(f"  {leap!r}"[:120])
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
