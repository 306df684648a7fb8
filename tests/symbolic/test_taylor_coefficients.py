"""Taylor coefficients of closed forms against repeated differentiation."""

import pytest
import sympy as sp

from giantstep.symbolic.averages import Average
from giantstep.symbolic.gaussian import correlated_pair, expect
from giantstep.symbolic.ridge_norms import taylor_coefficients

x = sp.Symbol("x", real=True)
u, v = sp.symbols("u v", real=True)
HALF = sp.Rational(1, 2)


@pytest.mark.parametrize(
    "expr",
    [
        x**3 - 2 * x + 1,
        sp.asin(HALF + x / 3) * sp.sqrt(1 - (HALF + x / 3) ** 2),
        (2 + x) ** -3 * sp.exp(x * sp.sqrt(2)),
        sp.erf(1 + x) + sp.atan(x) / (1 + sp.sqrt(2) + x),
        sp.sin(x) * sp.cos(2 * x + 1) + sp.exp(-(x**2)),
        sp.acos(x / 2) / sp.pi,
        (1 + x) ** sp.Rational(-5, 3) * x**2,
        sp.Integer(7),
    ],
)
def test_coefficients_are_derivatives_at_zero(expr):
    found = taylor_coefficients(expr, x, 5)
    for n, c in enumerate(found):
        expected = expr.diff(x, n).subs(x, 0) / sp.factorial(n)
        assert float((c - expected).evalf(30)) == pytest.approx(0, abs=1e-25)
    assert taylor_coefficients(expr, x, 0) == found[:1]


@pytest.mark.parametrize(
    "expr", [1 / x, sp.sqrt(x), sp.Abs(x), sp.Heaviside(x + 1), sp.log(x), 2**x, sp.Max(x, 1)]
)
def test_what_is_not_analytic_or_not_known_has_none(expr):
    assert taylor_coefficients(expr, x, 2) is None


def test_expectations_without_a_closed_form_have_none():
    open_value = expect(sp.tanh(u) * sp.tanh(v), correlated_pair(u, v, x))
    assert open_value.has(Average) and taylor_coefficients(open_value, x, 1) is None
