"""Random systems with a known solution, for the equations are evaluated by adaptive quadrature.

It knows nothing of passes, tables and panels, by which the file in NumPy solves them.
"""

import math
import random
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import scipy
import sympy as sp
from sympy.core.function import AppliedUndef

from giantstep.symbolic.expressions.averages import DataAverage
from giantstep.symbolic.expressions.functions import relu, softplus
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.losses.proximal import Proximal
from giantstep.symbolic.lowering.hoist import outermost
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

from .generated_code import module_of

NAMED = {
    "relu": lambda x: max(x, 0.0),
    "softplus": lambda x: np.logaddexp(0, x),
    "Heaviside": lambda x, _=None: 0.5 * (np.sign(x) + 1),
    "sign": np.sign,
}
ROWS = {"t": [0.3, 1.7, 2.2]}


@cache
def function_of(symbols, expr):
    return sp.lambdify(symbols, expr, modules=[NAMED, "math"], cse=True)


def density(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def independent(expr, at, breaks=()):
    """Evaluate an expression with averages by adaptive quadrature."""
    found = {}
    for node in outermost(expr):
        if isinstance(node, DataAverage):
            (column,) = node.columns
            rows = [independent(node.args[0], {**at, column: t}) for t in ROWS["t"]]
            found[node] = sum(rows) / len(rows)
            continue

        def integrand(x, node=node):
            return independent(node.integrand, {**at, node.variable: x}) * density(x)

        cuts = sorted({-9, -3, 0, 3, 9, *(b for b in breaks if -9 < b < 9)})
        found[node] = sum(
            scipy.integrate.quad(integrand, *ends, epsabs=1e-12, epsrel=1e-12)[0]
            for ends in pairwise(cuts)
        )
    marks = {n: sp.Symbol(f"mark_{k}") for k, n in enumerate(sorted(found, key=str))}
    at = {**at, **{marks[n]: v for n, v in found.items()}}
    expr = expr.xreplace(marks)
    symbols = tuple(sorted(expr.free_symbols, key=str))
    return float(function_of(symbols, expr)(*(at[s] for s in symbols)))


q = sp.Symbol("q", positive=True)
m, z, w, x = sp.symbols("m z w x", real=True)
t = sp.Symbol("t", positive=True)
a = sp.Symbol("a", positive=True)
c1, c2 = sp.symbols("c1 c2", real=True)


def E(f):
    return GaussianExpectation(f, z)


SMOOTH = [
    E(sp.tanh(q * z + m) ** 2), E(1 / (1 + q + z**2) ** 2) * m, E(sp.erf(m * z + a) * z) / 3,
    E(softplus(m + q * z)), E(sp.log(1 + sp.exp(m * z))) * q, DataAverage(t / (t + q), t, "d"),
    DataAverage(sp.exp(-t * m**2), t, "d") ** 2, sp.exp(-q) * m / 5, sp.sqrt(q + m**2) / 4,
    E(GaussianExpectation(sp.tanh(a * z + w), w) ** 2 / (1 + q * z**2)),
]  # fmt: skip
BROKEN = [
    E(relu(z - m) * q), E(sp.Abs(z * q - m)) / 2, E(sp.Heaviside(z - m) * (z + q)) / 2,
    E(sp.Piecewise((1, z > m), (q * z, True))) / 2, E(sp.exp(sp.sign(m - z)) / 3),
    E(sp.Max(z, m, q) - m) / 3, E(sp.Heaviside(z - m) ** 3),
]  # fmt: skip


@pytest.mark.parametrize("terms", [SMOOTH, BROKEN], ids=["smooth", "broken"])
@pytest.mark.parametrize("seed", range(4))
def test_known_solutions_are_found(terms, seed):
    draw = random.Random(seed)
    first, second = (sp.Add(*draw.sample(terms, 2)) for _ in range(2))
    at = {q: draw.uniform(0.4, 1.6), m: draw.uniform(-0.9, 0.9), a: draw.uniform(0.5, 1.5)}
    breaks = [at[m], at[m] / at[q], at[q]]
    values = [independent(f, at, breaks) for f in (first, second)]
    system = SaddlePointSystem.from_fixed_point(
        {q: first + c1, m: second + c2}, name="drawn", parameters=(a, c1, c2),
        outputs={"sum": first + second}, node=z,
        # So near that Newton's method is quadratic: with a wrong Jacobian it takes more steps.
        start={q: sp.Rational(at[q]) * sp.Rational(101, 100), m: sp.Rational(at[m])},
    )  # fmt: skip
    file = module_of(lower(system).source("numpy"))
    row = {"a": at[a], "c1": at[q] - values[0], "c2": at[m] - values[1]}
    over_data = first.has(DataAverage) or second.has(DataAverage)
    data = {"d": ROWS} if over_data else None
    found = file.solve_point(row, data)
    for name, exact in (("q", at[q]), ("m", at[m]), ("sum", sum(values))):
        assert abs(found[name][0] - exact) < 1e-9 + found[name][1], name
    iterations = file.solve_many([[row[p] for p in file.PARAMETERS]], data)[2][0, 0]
    assert 0 < iterations <= 5


def test_no_expression_calls_an_unknown_function():
    system = SaddlePointSystem.from_fixed_point(
        {q: E(Proximal(sp.cosh(x) * a, x, q * z, q) ** 2) + a}, name="drawn", parameters=(a,)
    )
    program = lower(system).program
    called = {
        type(f).__name__
        for loop in program.loops()
        for step in (*loop.locals, *loop.sums)
        for f in step.value.atoms(AppliedUndef)
    }
    assert called == {root.name for root in program.roots}
