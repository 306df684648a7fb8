"""Positive roots of rational polynomials: all of them, of any size, each once."""

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.symbolic.exact.positive_roots import positive_roots, sign_changes

x = sp.Symbol("x")
TINY = sp.Rational(1, 10**60)
CTX = mpmath.mp.clone()
CTX.dps = 60


def _poly(expr):
    return sp.Poly(sp.expand(expr), x, domain=sp.QQ)


@pytest.mark.parametrize(
    ("expr", "roots"),
    [
        (x**2 + 1, []),
        (x + 3, []),
        (x - 3, [3]),
        ((x - 1) * (x - 2) * (x - 3), [1, 2, 3]),
        ((x - 2) ** 2 * (x + 1), [2]),
        ((x - 2) ** 3, [2]),
        (x**2 * (x - sp.Rational(1, 10**40)), [sp.Rational(1, 10**40)]),
        ((x - 10**60) * (x + 7) * (x**2 + x + 1), [10**60]),
        (
            (x - 10**60) * (x - 1) * (x - sp.Rational(1, 10**60)),
            [sp.Rational(1, 10**60), 1, 10**60],
        ),
        (x * (x - 1) * (x - 2), [1, 2]),
        (x**2 - 2, [sp.sqrt(2)]),
        ((x**2 - 2) * (x - sp.Rational(141, 100)) * (x + 5), [sp.Rational(141, 100), sp.sqrt(2)]),
    ],
)
def test_roots(expr, roots):
    found = positive_roots(_poly(expr), CTX)
    assert len(found) == len(roots)
    for value, root in zip(found, roots, strict=True):
        exact = CTX.mpf(str(sp.N(root, 70)))
        assert abs(value / exact - 1) < 1e-55


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.fractions(min_value=-5, max_value=5, max_denominator=50), min_size=1, max_size=6),
    st.integers(-80, 80),
)
def test_random_products(values, scale):
    factor = sp.Rational(2) ** scale
    expr = sp.prod([x - factor * sp.Rational(v.numerator, v.denominator) for v in values])
    wanted = sorted({float(v) * 2.0**scale for v in values if v > 0})
    found = positive_roots(_poly(expr), CTX)
    assert [float(v) for v in found] == pytest.approx(wanted, rel=1e-13)


def test_sign_changes_bound_the_roots():
    assert sign_changes(_poly((x - 1) * (x - 2) * (x + 3))) == 2
    assert sign_changes(_poly(x**3 + x)) == 0


# ------------------------------------------------------------------ moments of one rule
