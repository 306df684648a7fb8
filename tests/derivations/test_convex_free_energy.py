"""The free energy of convex losses is stationary at the saddle points, by numerical derivatives.

Values of the written-out free energy are computed here by plain quadrature: trapezoidal sums, or
Gauss-Legendre panels on both sides of the jump of a label. Its derivatives are differences of
eighth order. Nothing of the equations that are derived from it is used.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings, strategies as st
from scipy.special import erf, erfc, ndtr, owens_t

from giantstep.derivations.spiked_random_features import physics as symbols
from giantstep.derivations.spiked_random_features.convex.claims import REFERENCE
from giantstep.derivations.spiked_random_features.convex.energy import convex_free_energy
from giantstep.derivations.spiked_random_features.convex.labels import (
    label_channel,
    takes_signs_only,
)
from giantstep.derivations.spiked_random_features.convex.losses import convex_loss, delta
from giantstep.derivations.spiked_random_features.physics import gamma, kappa, rho, s
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.expressions.functions import normal_cdf
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.gaussian.ramp_moments import RampAverage
from giantstep.symbolic.losses.proximal import MoreauEnvelope
from giantstep.symbolic.systems.random_matrix import MarchenkoPasturAverage, Resolvent

# Derivatives by differences of what test_convex_readouts.py asks as equations.
pytestmark = pytest.mark.slow

FUNCTIONS = [
    {
        "normal_cdf": ndtr, "OwenT": owens_t, "erf": erf, "erfc": erfc,
        "relu": lambda u: np.maximum(u, 0.0),
        "softplus": lambda u: np.logaddexp(0.0, u), "sigmoid": lambda u: 0.5 + np.tanh(u / 2) / 2,
        "Heaviside": lambda u, at_zero=0.5: np.heaviside(u, at_zero),
    },
    "numpy",
]  # fmt: skip
POINTS = {symbols.r: 1.2, symbols.c: 1.1, gamma: 0.9, rho: np.sqrt(0.19), symbols.alpha: 2.0,
          symbols.ridge: 0.1}  # fmt: skip
EIGHTH_ORDER = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))


def normal(t):
    return np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)


class Values:
    """A written-out expression as a function of numbers; arrays run over κ, s and η."""

    def __init__(self, expr, definitions):
        self.definitions, self.parts = definitions, {}
        self.root = expr.replace(lambda e: isinstance(e, RampAverage), lambda e: e.closed_form())
        self.kappas = np.arange(-40, 41)[:, None, None] * 0.2
        self.etas = np.arange(-32, 33)[None, None, :] * 0.25

    def __call__(self, given):
        return float(np.squeeze(self._value(self.root, given, 0, {})))

    def _value(self, expr, given, axis, tables):
        if expr not in self.parts:
            self.parts[expr] = self._compiled(expr)
        function, names, nodes, wanted = self.parts[expr]
        values = [self._node(n, given, axis, tables) for n in nodes]
        for f in wanted:
            if f not in tables:
                tables[f] = self._value(self.definitions[f], given, 1, tables)
        return function(*(given[n] for n in names), *values, *(tables[f] for f in wanted))

    def _compiled(self, expr):
        nodes = _outermost(expr)
        marks = {n: sp.Dummy() for n in nodes}
        plain = expr.xreplace(marks)
        tables = [f for f in self.definitions if plain.has(f)]
        marks |= {f: sp.Dummy() for f in tables}
        plain = plain.xreplace(marks).replace(
            lambda e: isinstance(e, MarchenkoPasturAverage), lambda e: e.doit()
        )
        plain = plain.replace(Resolvent, lambda *a: Resolvent(*a).rewrite(sp.Piecewise))
        names = sorted(plain.free_symbols - set(marks.values()), key=str)
        function = sp.lambdify([*names, *marks.values()], plain, FUNCTIONS)
        return function, names, nodes, tables

    def _node(self, node, given, axis, tables):
        if isinstance(node, MoreauEnvelope):
            center, step = (self._value(e, given, axis, tables) for e in (node.center, node.step))
            return envelope(node.loss, node.variable, center, step)
        t, weights = self._rule(axis, given)
        inside = {**given, node.variable: t}
        return np.sum(weights * self._value(node.integrand, inside, axis + 1, tables), axis=axis,
                      keepdims=True)  # fmt: skip

    def _rule(self, axis, given):
        if axis == 1:
            return self._across_the_jump(given)
        t, step = (self.kappas, 0.2) if axis == 0 else (self.etas, 0.25)
        return t, normal(t) * step

    def _across_the_jump(self, given):
        """Panels in s that end where the field γκ + ρs of the teacher changes its sign."""
        x, w = np.polynomial.legendre.leggauss(20)
        jump = np.clip(-given[gamma] * given[kappa] / given[rho], -8.5, 8.5)
        nodes, weights = [], []
        for low, high in ((-9.0, jump), (jump, 9.0)):
            half = (high - low) / 10
            for k in range(5):
                nodes.append(low + half * (2 * k + 1 + x[None, :, None]))
                weights.append(half * w[None, :, None])
        t = np.concatenate(nodes, axis=1)
        return t, np.concatenate(weights, axis=1) * normal(t)


def _outermost(expr):
    if isinstance(expr, GaussianExpectation | MoreauEnvelope):
        return [expr]
    return list(dict.fromkeys(n for a in expr.args for n in _outermost(a)))


@functools.cache
def slopes(loss, x):
    return [sp.lambdify(x, f, FUNCTIONS) for f in (loss, loss.diff(x), loss.diff(x, 2))]


def envelope(loss, x, center, step):
    """min_p [l(p) + (p - c)²/2V] by Newton's method on arrays."""
    value, slope, curvature = slopes(loss, x)
    center, step = np.broadcast_arrays(center, step)
    p = center
    for _ in range(60):
        change = (p - center + step * slope(p)) / (1 + step * curvature(p))
        p = p - np.clip(change, -2.0, 2.0)
        if np.max(np.abs(change)) < 1e-13:
            break
    return value(p) + (p - center) ** 2 / (2 * step)


class Energy:
    """The free energy of one case as a function of order parameters and conjugates."""

    def __init__(self, case, **flags):
        loss, labels, student, teacher, noise, beta = case
        found = convex_loss(loss)
        channel = label_channel(labels, teacher, noise)
        self.energy = convex_free_energy(found, channel, activation(student), **flags)
        expr = self.energy.written_out(self.energy.free_energy.expression)
        expr = expr.xreplace({symbols.Q1: symbols.q1 - symbols.psi**2})
        self.values = Values(expr, self.energy.free_energy.definitions)
        self.given = {**POINTS, symbols.beta: beta, symbols.noise: noise}
        self.given |= {p: float(value) for p, value in found.exact_values.items()}

    def slope(self, variable, at):
        """Derivative by differences of eighth order."""
        step = 0.01 * max(abs(at[variable]), 0.05)
        total = 0.0
        for k, weight in EIGHTH_ORDER:
            high, low = (
                self.values({**self.given, **at, variable: at[variable] + side * k * step})
                for side in (1, -1)
            )
            total += weight * (high - low) / step
        return total


CONJUGATE = {
    symbols.V1_hat: symbols.q1, symbols.V2_hat: symbols.q2, symbols.q1_hat: symbols.V1,
    symbols.q2_hat: symbols.V2, symbols.theta_hat: symbols.theta, symbols.psi_hat: symbols.psi,
}  # fmt: skip


@pytest.mark.parametrize(("case", "known"), REFERENCE)
def test_the_free_energy_is_stationary_at_independent_solutions(case, known):
    # The conjugates are what makes it stationary in the order parameters; then it has to be
    # stationary in the conjugates, and in m.
    energy = Energy(case)
    at = {getattr(symbols, name): value for name, value in known.items() if hasattr(symbols, name)}
    ones = dict.fromkeys(CONJUGATE, 1.0)
    # The terms that pair conjugates with order parameters have the factors -1/2, 1/2 and 1.
    factors = {symbols.q1: 2.0, symbols.q2: 2.0, symbols.V1: -2.0, symbols.V2: -2.0}
    hats = {
        hat: 1 + factors.get(order, -1.0) * energy.slope(order, {**at, **ones})
        for hat, order in CONJUGATE.items()
    }
    for variable in (symbols.m, *CONJUGATE):
        assert energy.slope(variable, {**at, **hats}) == pytest.approx(0, abs=1e-9), variable


# One loss for every way in which its averages are taken: closed, by the field, in full.
CASES = [
    ("huber(0.3)", "teacher", "erf", "sin", 0.1, 1.0),
    ("hinge", "logistic", "erf", "sin", 0.0, 0.7),
    ("logistic", "probit", "erf", "sin", 0.4, 1.3),
    ("cosh(x - y) - 1", "teacher", "erf", "sin", 0.0, 1.0),
]
positive = st.floats(0.1, 2.0)
real = st.one_of(st.just(0.0), st.floats(1e-6, 1.0), st.floats(-1.0, -1e-6))
at_random = st.fixed_dictionaries(
    {
        **dict.fromkeys((symbols.V1, symbols.V2, symbols.q2, *CONJUGATE), positive),
        **dict.fromkeys((symbols.m, symbols.theta, symbols.psi), real),
        symbols.q1: st.floats(1.1, 2.0),
    }
)
few = settings(max_examples=2, deadline=None)
EVERY_CASE = pytest.mark.parametrize("case", CASES)


@functools.cache
def shared(case, student="erf"):
    return Energy((*case[:2], student, *case[3:]))


@EVERY_CASE
@few
@given(at=at_random)
def test_reflecting_the_spike_leaves_the_free_energy(case, at):
    energy = shared(case)
    names = (symbols.r, gamma), (symbols.theta, symbols.theta_hat)
    turned = {x: -energy.given[x] for x in names[0]} | {x: -at[x] for x in names[1]}
    value = energy.values({**energy.given, **at})
    assert energy.values({**energy.given, **at, **turned}) == pytest.approx(value, rel=1e-11)


@EVERY_CASE
@few
@given(at=at_random)
def test_scaling_the_features_is_scaling_the_penalty(case, at):
    # 3σ with 9λ: readouts are a third, so are overlaps.
    plain, scaled = shared(case), shared(case, "3*erf(z)")
    powers = {symbols.m: -1, symbols.theta: -1, symbols.psi: -1, symbols.theta_hat: 1,
              symbols.psi_hat: 1}  # fmt: skip
    powers |= dict.fromkeys((symbols.V1, symbols.V2, symbols.q1, symbols.q2), -2)
    powers |= dict.fromkeys((symbols.V1_hat, symbols.V2_hat, symbols.q1_hat, symbols.q2_hat), 2)
    moved = {x: value * 3.0 ** powers[x] for x, value in at.items()}
    moved[symbols.ridge] = 9 * plain.given[symbols.ridge]
    assert scaled.values({**scaled.given, **moved}) == pytest.approx(
        plain.values({**plain.given, **at}), rel=1e-11
    )


@few
@given(at=at_random)
def test_huber_losses_lie_between_absolute_and_square(at):
    case = CASES[0]
    huber, square, absolute = (
        shared((loss, *case[1:])) for loss in ("huber(0.3)", "square", "absolute")
    )
    wide = huber.values({**huber.given, **at, delta: 1e3})
    assert wide == pytest.approx(square.values({**square.given, **at}), rel=1e-10)
    # δ|t| - δ²/2 ≤ Huber ≤ δ|t|: Huber_δ with penalty δλ is the absolute loss up to δ/2.
    narrow, parts = 1e-9, {symbols.V1: -1, symbols.V2: -1, symbols.V1_hat: 1, symbols.V2_hat: 1,
                           symbols.theta_hat: 1, symbols.psi_hat: 1, symbols.q1_hat: 2,
                           symbols.q2_hat: 2, symbols.ridge: 1}  # fmt: skip
    given_ = {**huber.given, **at}
    moved = {x: value * narrow ** parts.get(x, 0) for x, value in given_.items()}
    found = huber.values({**moved, delta: narrow}) / narrow
    assert found == pytest.approx(absolute.values({**absolute.given, **at}), rel=1e-7)


@pytest.mark.parametrize(("labels", "noise"), [("sign", 0.0), ("probit", 0.4), ("logistic", 0.0)])
@few
@given(at=at_random)
def test_classification_errors_are_integrals_over_the_field(labels, noise, at):
    # Predictions without any mean are outside of the formula, as its docstring says.
    assume(at[symbols.m] != 0 or at[symbols.theta] != 0)
    # Owen's T against ∫ P(label | s) P(sign of the prediction is not the label | s) ds.
    found = shared(("hinge", labels, "erf", "sin", noise, 1.0))
    averages, definitions = found.energy.averages, found.energy.free_energy.definitions
    mean = averages.mean + averages.covariance * s
    by_field = sp.Add(*(
        averages.labels.probability(label, gamma * kappa + rho * s)
        * normal_cdf(-label * mean / sp.sqrt(averages.free_variance)) for label in (1, -1)
    ))  # fmt: skip
    direct = symbols.average(GaussianExpectation(by_field, s))
    wanted = Values(direct, definitions)({**found.given, **at})
    error = Values(symbols.average(averages.of_error()), definitions)({**found.given, **at})
    # The integrand steps at the rim of κ, where the variance of the prediction vanishes.
    assert error == pytest.approx(wanted, abs=1e-8)


def test_signs_by_a_teacher_are_those_of_the_channel():
    at = {**dict.fromkeys(CONJUGATE, 0.7), symbols.V1: 0.9, symbols.V2: 1.3, symbols.q1: 1.2,
          symbols.q2: 0.8, symbols.m: 0.6, symbols.theta: 0.1, symbols.psi: 0.5}  # fmt: skip
    by_channel, by_teacher = (
        shared(("hinge", labels, "erf", "sign", 0.0, 1.0)) for labels in ("sign", "teacher")
    )
    values = [e.values({**e.given, **at}) for e in (by_channel, by_teacher)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize("teacher", ["sign", "2*step(z) - 1", "sign(z - 1)", "sign(z**2 - 1)"])
def test_teachers_of_signs_are_recognised(teacher):
    assert takes_signs_only(activation(teacher))


@pytest.mark.parametrize("teacher", ["sin", "step", "sign(z)/2", "abs(z)", "tanh(sign(z))"])
def test_other_teachers_are_not(teacher):
    assert not takes_signs_only(activation(teacher))
