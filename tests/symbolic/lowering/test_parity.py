"""Parities that are claimed hold at points, and those of the usual losses are found."""

import pytest
import sympy as sp

from giantstep.symbolic.expressions.functions import (
    OwenT,
    erf_difference,
    erfcx,
    normal_cdf,
    relu,
    sigmoid,
    softplus,
)
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.losses.proximal import MoreauEnvelope, Proximal
from giantstep.symbolic.lowering.parity import averages_are_even, parity_under

x, k, g, m = sp.symbols("x k g m", real=True)
V, d = sp.symbols("V d", positive=True)
REFLECTION = {k: -k, g: -g}
FIELD = m * k + sp.sqrt(V) * g
POINTS = [(0.3, -1.7), (2.1, 0.4), (-0.8, -0.2), (5.0, 3.0)]

EVEN = {
    "labels": normal_cdf(FIELD) * MoreauEnvelope(softplus(-x), x, g, V)
    + normal_cdf(-FIELD) * MoreauEnvelope(softplus(x), x, g, V),
    "proximal": k * (Proximal(softplus(-x), x, FIELD, V) + Proximal(softplus(x), x, FIELD, V)),
    "huber": normal_cdf((k - d) / sp.sqrt(V)) + normal_cdf((-k - d) / sp.sqrt(V)),
    "square": sp.exp(-((k - d + g) ** 2)) + sp.exp(-((k + d + g) ** 2)),
    "hinge": relu(1 - FIELD) + relu(1 + FIELD),
    "step": sp.Heaviside(FIELD) * sigmoid(k) + sp.Heaviside(-FIELD) * sigmoid(-k),
    "scaled": erfcx(k + g) + erfcx(-k - g) + sp.erfc(g) + sp.erfc(-g),
    "owen": OwenT(k, m * g) * k / (g + k) * g,
    "quotient": k / (k**3 + g) + sp.Max(k, -k),
    "difference": k * erf_difference(k + 1, k - 1) * erf_difference(k + g, g),
}
ODD = {
    "labels": normal_cdf(FIELD) - normal_cdf(-FIELD),
    "proximal": Proximal(softplus(-x), x, FIELD, V) + Proximal(softplus(x), x, FIELD, V),
    "residual": Proximal(softplus(x - k) + softplus(k - x), x, g, V),
    "cubic": (k - g) ** 3 + sp.tanh(k - g),
}
NEITHER = {
    "one label": normal_cdf(FIELD) * MoreauEnvelope(softplus(-x), x, g, V),
    "shifted": Proximal(softplus(x), x, FIELD + 1, V),
    "step": sp.Heaviside(k),
    "one case": sp.Piecewise((k, k > 0), (0, True)),
    "far kink": k**2 + relu(k - 50),
    "exponential": sp.exp(k),
}


def at(value, point):
    names = {k: point[0], g: point[1], m: 0.6, V: 1.3, d: 0.4}
    return float(value.subs(names).evalf(20))


@pytest.mark.parametrize("name", EVEN)
def test_even(name):
    assert parity_under(EVEN[name], REFLECTION) == 1
    for a, b in POINTS:
        assert at(EVEN[name], (a, b)) == pytest.approx(at(EVEN[name], (-a, -b)), abs=1e-13)


@pytest.mark.parametrize("name", ODD)
def test_odd(name):
    assert parity_under(ODD[name], REFLECTION) == -1
    for a, b in POINTS:
        assert at(ODD[name], (a, b)) == pytest.approx(-at(ODD[name], (-a, -b)), abs=1e-13)


@pytest.mark.parametrize("name", NEITHER)
def test_nothing_is_guessed(name):
    assert parity_under(NEITHER[name], REFLECTION) is None


@pytest.mark.parametrize(
    "function, even", [(sp.sign, True), (sp.tanh, True), (normal_cdf, False), (sp.Heaviside, False)]
)
def test_the_parity_of_a_table_is_that_of_what_is_smoothed(function, even):
    table = sp.Function("f", real=True)(k)
    definitions = {table: GaussianExpectation(function(FIELD), g)}
    assert averages_are_even([table**2], k, definitions, None) is even
    assert not averages_are_even([table**2 + table], k, definitions, None)


def test_tables_that_hold_other_tables_have_a_parity():
    first, second = (sp.Function(name, real=True)(k) for name in "fh")
    rest = (sp.tanh(FIELD) - first - m * g) ** 2
    definitions = {
        first: GaussianExpectation(sp.tanh(FIELD), g), second: GaussianExpectation(rest, g)
    }  # fmt: skip
    assert averages_are_even([first**2 / (1 + second)], k, definitions, None)
    assert not averages_are_even([first / (1 + second)], k, definitions, None)
