"""Symbols in closed form against Hermite coefficients and against quadrature of E f(x + ξ)."""

import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.symbolic.exact.fields import common_field, formal_field
from giantstep.symbolic.expressions.activations import CATALOGUE, z
from giantstep.symbolic.hermite.coefficients import hermite_coefficient
from giantstep.symbolic.targets.closed_symbols import closed_symbol, softplus_kernel, tanh_kernel
from giantstep.symbolic.targets.ridge_terms import T
from giantstep.symbolic.targets.spans import Expander, places
from giantstep.symbolic.targets.target import target


def taylor(form, degree):
    """The Taylor polynomial of a symbol as {α: exact number}."""
    needed = places([form], degree)
    constants, elements = formal_field(needed.values())
    field, embed, new = common_field(form.setting.ring.domain, constants)
    values = {place: new(element) for place, element in zip(needed, elements, strict=True)}
    ring = form.setting.ring.clone(domain=field)
    found = Expander(form.setting, ring, embed, values, degree).polynomial(form)
    return {alpha: field.to_sympy(c) for alpha, c in found.items()}


def symbol(text):
    f = target(text)
    return f, closed_symbol(f.expr, f.variables)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_catalogue_taylor_coefficients_are_hermite_coefficients(name):
    activation = CATALOGUE[name]
    found = taylor(symbol_of(activation.expr), 6)
    for k in range(7):
        expected = hermite_coefficient(activation.expr, k) / math.factorial(k)
        value = found.get((k,), sp.S.Zero)
        assert (value == 0) == (expected == 0)
        # Not the digits of the difference, which is zero and would have none.
        assert abs(sp.N(value, 20) - sp.N(expected, 20)) < 1e-15


def symbol_of(expr):
    x = sp.Symbol("x1", real=True)
    return closed_symbol(expr.xreplace({z: x}), (x,))


ROTATED = [
    "relu((x1 + x2)/sqrt(2))",
    "x1**2*relu(x1 + 2*x2 - 1)",
    "abs(x1 - x2)*erf(x1 + x2) + sin(x1 + 1)*x2",
    "exp(x1/2 - x2/3)*cos(2*x1 + 1)*x1 - step(x2 - 1/2)",
    "tanh(x1)*(1 + x2) + softplus(x1 - 2*x2 + 1)*x2",
    "swish(x1)*tanh(x2)**3 + sigmoid(2 - x1)",
    "max(x1, x2)*x1 + gelu(x2)**2",
    "erf(x1)**2*x2 + atan(x1 - x2)",
]


@pytest.mark.parametrize("text", ROTATED)
def test_symbols_of_products_and_rotated_ridges_have_the_hermite_coefficients(text):
    f, form = symbol(text)
    found = taylor(form, 4)
    for k in range(5):
        expected = f.he_coefficients(k)
        for alpha in {a for a in found if sum(a) == k} | set(expected):
            values = (sp.N(c.get(alpha, sp.S.Zero), 15, maxn=30) for c in (found, expected))
            assert abs(next(values) - next(values)) < 1e-12, alpha


nodes, weights = np.polynomial.hermite_e.hermegauss(60)
weights = weights / weights.sum()


@pytest.mark.parametrize("text", ["erf(x1)*x2 + sin(x1 - x2)", "exp(x1/2)*cos(x2) + tanh(x1)/3"])
def test_values_are_gaussian_averages(text):
    # Smooth integrands: 60 nodes in each direction leave less than 1e-9; the Taylor polynomial of
    # degree 14 at |ξ| < 1/2 leaves less than that, too.
    f, form = symbol(text)
    at = (0.3, -0.25)
    function = sp.lambdify(f.variables, f.expr, ["scipy", "numpy"])
    x, y = np.meshgrid(nodes, nodes)
    expected = np.sum(np.outer(weights, weights) * function(x + at[0], y + at[1]))
    found = sum(float(c) * at[0] ** a * at[1] ** b for (a, b), c in taylor(form, 14).items())
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    "text",
    [
        "2*sigmoid(2*x1) - 1 - tanh(x1)", "softplus(x1) - softplus(-x1) - x1",
        "swish(x1) - x1/2 - x1*tanh(x1/2)/2", "tanh(x1)**2*x2 + x2*tanh(-x1)*tanh(x1)",
        "tanh(x1 - 1) + tanh(1 - x1) + sin(x2)*cos(x1) - (sin(x1 + x2) - sin(x1 - x2))/2",
        "relu(x1 + x2) - relu(-x1 - x2) - x1 - x2", "gelu(x1) - x1*Phi(x1)",
    ],
)  # fmt: skip
def test_known_relations_cancel(text):
    _, form = symbol(text)
    assert not form


def test_parity_is_exact():
    _, form = symbol("tanh(x1)*relu(x2) + softplus(x1)*x2**2")
    odd, even = form.of_parity(-1), form.of_parity(1)
    assert not (odd + even + form.scaled(-form.setting.ring.domain.one))
    assert not odd.of_parity(1) and not even.of_parity(-1)
    assert {sum(alpha) % 2 for alpha in taylor(odd, 5)} == {1}


def test_kernels_differ_by_signs_only():
    a, b = sp.Rational(2), sp.Rational(1, 3)
    for p, q in ((a, b), (-a, b), (a, -b), (-a, -b)):
        sign, side, kernel = tanh_kernel(p, q)
        assert kernel.name == sp.tanh(a * T + b)
        at = sp.Rational(7, 5)
        assert sp.tanh(p * at + q) == sign * kernel.name.xreplace({T: side * at})
        assert softplus_kernel(p, q)[1] == softplus_kernel(a, b)[1]


small = st.integers(-2, 2)


@given(
    st.sampled_from(["relu", "sin", "tanh", "erf", "exp"]),
    st.sampled_from(["abs", "cos", "softplus", "sign"]),
    small,
    small,
    st.integers(0, 2),
)
@settings(max_examples=10, deadline=None)
def test_multiplication_and_derivatives_commute_with_taking_symbols(first, second, a, b, n):
    # Stein: the symbol of ∂f is ∂F, that of x_i f is (ξ_i + ∂_i)F.
    text = f"x2**{n}*{first}(x1)*{second}(x2) + {a}*{first}(x1) + {b}*x1*x2"
    f, form = symbol(text)
    times = closed_symbol(sp.expand(f.expr * f.variables[0]), f.variables)
    x1 = form.setting.ring.gens[0]
    one = times.setting.ring.domain.one
    domain, here, there = common_field(form.setting.ring.domain, times.setting.ring.domain)
    ring = form.setting.ring.clone(domain=domain)
    setting = form.setting.moved(ring, here)
    raised = (form.scaled(x1) + form.diff(0)).moved(setting, here, ring.gens)
    assert not (raised + times.scaled(-one).moved(setting, there, ring.gens))
