"""Programs against the equations that they came from, by an interpreter written for this test.

The interpreter computes a program step by step in floats, as the documentation of
:mod:`giantstep.symbolic.lowering.program` defines the steps, with rules of its own for the passes.
The equations are evaluated by adaptive quadrature, which knows nothing of passes.
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
from giantstep.symbolic.lowering.program import (
    Assign,
    Data,
    Kind,
    Line,
    LinearSolve,
    Newton,
    NodeLoop,
)
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

NAMED = {
    "relu": lambda x: max(x, 0.0),
    "softplus": lambda x: math.log1p(math.exp(x)),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "log_cosh": lambda x: math.log(math.cosh(x)),
    "normal_cdf": scipy.special.ndtr,
    "log_normal_cdf": scipy.special.log_ndtr,
    "erfcx": scipy.special.erfcx,
    "erf_difference": lambda a, b: math.erf(b) - math.erf(a),
    "Heaviside": lambda x, _=None: 0.5 * (np.sign(x) + 1),
    "sign": np.sign,
    "sech": lambda x: 1 / math.cosh(x),
}
ROWS = {"d_t": [0.3, 1.7, 2.2]}
LEGENDRE = np.polynomial.legendre.leggauss(20)


@cache
def compiled(symbols, expr, names):
    return sp.lambdify(symbols, expr, modules=[dict(names), NAMED, "math"], cse=True)


def function_of(symbols, expr, named):
    found = compiled(tuple(symbols), expr, tuple(named.items()))
    return lambda values: float(found(*(values[s] for s in symbols)))


def density(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


class Interpreter:
    def __init__(self, lowered):
        self.program = lowered.program
        self.roots = {r.name: self.root(r) for r in self.program.roots}
        codes = self.program.tables[1:]
        self.tables = dict(zip(codes, lowered.definitions.values(), strict=True))
        self.lowered = lowered
        self.newton = []
        self.known = {}

    def value(self, expr, at):
        symbols = sorted(expr.free_symbols, key=str)
        return function_of(symbols, expr, self.roots)(at)

    def root(self, root):
        def solved(*arguments):
            at = dict(zip(root.arguments, arguments, strict=True))
            start = self.value(root.start, at)
            return scipy.optimize.brentq(
                lambda x: self.value(root.residual, {**at, root.unknown: x}),
                start - 50, start + 50, xtol=1e-14,
            )  # fmt: skip

        return solved

    def run(self, at, steps=None):
        at = dict(at)
        for step in self.program.steps if steps is None else steps:
            if isinstance(step, Assign):
                at[step.target] = self.value(step.value, at)
            elif isinstance(step, NodeLoop):
                at |= self.loop(step, at)
            elif isinstance(step, LinearSolve):
                matrix = [[at[x] for x in row] for row in step.matrix]
                solution = np.linalg.solve(matrix, [at[x] for x in step.right_hand_side])
                at |= dict(zip(step.unknowns, solution, strict=True))
            elif isinstance(step, Newton):
                at = self.run(at, step.body)
                self.newton.append((step, at))
        return at

    def loop(self, loop, at):
        outside = {s: v for s, v in at.items() if self.program.declarations[s] != Kind.TABLE}

        def values(node):
            inside = {**outside, **node}
            for a in loop.locals:
                inside[a.target] = self.value(a.value, inside)
            return [self.value(a.value, inside) for a in loop.sums]

        if isinstance(loop.measure, Data):
            rows = [
                dict(zip(loop.tables, row, strict=True))
                for row in zip(*(ROWS[str(c)] for c in loop.tables), strict=True)
            ]
            sums = [sum(column) / len(rows) for column in zip(*map(values, rows), strict=True)]
        elif isinstance(loop.measure, Line):
            step, node = 0.2, self.program.tables[0]
            points = [k * step for k in range(-45, 46)]
            if self.program.even:
                points = [(x, 2 if x else 1) for x in points if x >= 0]
            else:
                points = [(x, 1) for x in points]
            sums = [0.0] * len(loop.sums)
            for x, times in points:
                at_node = {node: x, **{c: self.table(c, x, at) for c in loop.tables if c != node}}
                for i, v in enumerate(values(at_node)):
                    sums[i] += times * step * density(x) * v
        else:
            cuts = sorted({*range(-9, 10, 3), *(at[b] for b in loop.measure.breaks)})
            sums = [0.0] * len(loop.sums)
            for low, high in pairwise(cuts):
                for u, w in zip(*LEGENDRE, strict=True):
                    x = (low + high + (high - low) * u) / 2
                    weight = (high - low) / 2 * w * density(x)
                    for i, v in enumerate(values({loop.measure.node: x})):
                        sums[i] += weight * v
        return dict(zip((a.target for a in loop.sums), sums, strict=True))

    def table(self, code, x, at):
        names = {c: s for s, c in self.lowered.identifiers.items()}
        definition = self.tables[code].xreplace({self.lowered.node: sp.Symbol("outer")})
        at = {names[str(s)]: v for s, v in at.items() if str(s) in names}
        if (code, x) not in self.known:
            self.known[code, x] = independent(definition, {**at, sp.Symbol("outer"): x})
        return self.known[code, x]


def independent(expr, at, breaks=()):
    """Evaluate an expression with averages by adaptive quadrature."""
    found = {}
    for node in outermost(expr):
        if isinstance(node, DataAverage):
            (column,) = node.columns
            rows = [independent(node.args[0], {**at, column: t}) for t in ROWS["d_t"]]
            found[node] = sum(rows) / len(rows)
            continue

        def integrand(x, node=node):
            return independent(node.integrand, {**at, node.variable: x}) * density(x)

        cuts = sorted({-9, -3, 0, 3, 9, *(b for b in breaks if -9 < b < 9)})
        found[node] = sum(
            scipy.integrate.quad(integrand, *ends, epsabs=1e-12, epsrel=1e-12)[0]
            for ends in pairwise(cuts)
        )
    for p in expr.atoms(Proximal):
        c, s = independent(p.center, at), independent(p.step, at)
        slope = p.loss.diff(p.variable)
        found[p] = scipy.optimize.brentq(
            lambda x, c=c, s=s, p=p, slope=slope: (
                x - c + s * independent(slope, {**at, p.variable: x})
            ),
            c - 50, c + 50, xtol=1e-14,
        )  # fmt: skip
    marks = {n: sp.Symbol(f"mark_{k}") for k, n in enumerate(sorted(found, key=str))}
    at = {**at, **{marks[n]: v for n, v in found.items()}}
    expr = expr.xreplace(marks)
    return function_of(sorted(expr.free_symbols, key=str), expr, {})(at)


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


def check(terms, seed):
    draw = random.Random(seed)
    first, second = (sp.Add(*draw.sample(terms, 2)) for _ in range(2))
    at = {
        q: (draw.uniform(0.4, 1.6)), m: (draw.uniform(-0.9, 0.9)),
        a: (draw.uniform(0.5, 1.5)),
    }  # fmt: skip
    breaks = [at[m], at[m] / at[q], at[q]]
    values = [independent(f, at, breaks) for f in (first, second)]
    at |= {c1: at[q] - values[0], c2: at[m] - values[1]}
    lowered = lower(
        SaddlePointSystem.from_fixed_point(
            {q: first + c1, m: second + c2}, name="drawn", parameters=(a, c1, c2),
            outputs={"sum": first + second}, node=z,
        )
    )  # fmt: skip
    worker = Interpreter(lowered)
    at = {s: at[s] for s in (a, c1, c2, q, m)}
    result = worker.run(at)
    assert abs(result[q] - at[q]) < 1e-9 and abs(result[m] - at[m]) < 1e-9
    assert abs(result[sp.Symbol("sum", real=True)] - sum(values)) < 1e-9
    for step, found in worker.newton:
        assert all(abs(found[r]) < 1e-9 for r in step.residual), [found[r] for r in step.residual]
        h = 1e-5
        for j, (y, log) in enumerate(zip(step.unknowns, step.logarithmic, strict=True)):
            moved = []
            for sign in (1, -1):
                there = dict(found)
                there[y] = found[y] * math.exp(sign * h) if log else found[y] + sign * h
                there = {
                    s: v for s, v in there.items() if s in at or s in step.unknowns
                }  # fmt: skip
                moved.append(worker.run(there, step.body))
            for row, r in zip(step.jacobian, step.residual, strict=True):
                slope = (moved[0][r] - moved[1][r]) / (2 * h)
                assert abs(slope - found[row[j]]) < 1e-7, (step, row[j], slope, found[row[j]])


@pytest.mark.parametrize("seed", range(4))
def test_smooth_systems_compute_what_they_say(seed):
    check(SMOOTH, seed)


@pytest.mark.parametrize("seed", range(5))
def test_systems_with_kinks_and_jumps_compute_what_they_say(seed):
    check(BROKEN, seed)


def test_proximal_operators_are_roots_of_what_they_say():
    prox = Proximal(softplus(-x), x, m + q * z, q)
    terms = [E(sp.tanh(prox)), E((prox - z) ** 2) / 3]
    at = {q: 0.7, m: 0.3, a: 1.0}
    lowered = lower(
        SaddlePointSystem.from_fixed_point(
            {m: terms[0]}, name="drawn", parameters=(q,), outputs={"o": terms[1]}
        )
    )
    ((name, function),) = Interpreter(lowered).roots.items()
    expected = independent(prox, {**at, z: 0.4})
    assert name == "proximal_1"
    center = at[m] + at[q] * 0.4
    assert abs(function(center, at[q]) - expected) < 1e-12


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
