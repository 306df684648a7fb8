"""Series arithmetic and order-by-order solutions, against series that are known."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import StructureError, UnsupportedExpressionError
from giantstep.symbolic.exact.series import Series, substitute
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.systems.asymptotic_series import order_by_order, solve_series

x, y, lam = sp.symbols("x y lambda", positive=True)
z = sp.Symbol("z", real=True)

fractions = st.fractions(-4, 4, max_denominator=6)
few = settings(max_examples=10, deadline=None)


def fraction(value):
    return Fraction(int(value.p), int(value.q))


series = st.builds(
    lambda first, rest, start: Series((first, *rest), start),
    fractions.filter(bool),
    st.lists(fractions, min_size=5, max_size=5),
    st.integers(-2, 2),
)


@few
@given(series, series)
def test_division_inverts_multiplication(a, b):
    # A field: (a b) b^-1 = a up to what is known of both.
    found = a * b * b.power(sp.Integer(-1), fraction)
    assert found.start == a.start
    assert found.coefficients == a.coefficients


@few
@given(series, st.integers(1, 3))
def test_powers_are_products(a, n):
    product = a
    for _ in range(n - 1):
        product = product * a
    assert a.power(sp.Integer(n), fraction) == product


@few
@given(series)
def test_the_square_root_squares_to_the_series(a):
    # A leading term that is a square keeps the root rational, up to its sign.
    square = a * a
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    root = square.map(lambda c: ctx.mpf(c.numerator) / c.denominator).power(
        sp.Rational(1, 2), lambda c: ctx.mpf(int(c.p)) / int(c.q)
    )
    sign = 1 if a.coefficients[0] > 0 else -1
    assert root.start == a.start
    for found, given_one in zip(root.coefficients, a.coefficients, strict=True):
        assert abs(found - sign * ctx.mpf(given_one.numerator) / given_one.denominator) < 1e-25


def test_a_sum_is_known_as_far_as_its_parts():
    a, b = Series((1, 2, 3), -1), Series((5,), 0)
    assert a + b == Series((1, 7), -1)
    assert (a + b).end == 1
    assert a - a == Series((), 2)
    assert a + 4 == Series((1, 6, 3), -1)
    with pytest.raises(StructureError, match="below order 1, not at 3"):
        (a + b).coefficient(3)


@pytest.mark.parametrize(
    "expr",
    [1 / (1 - x), sp.sqrt(1 + x) / (2 + x) ** 2, (1 + x) ** sp.Rational(-5, 3), x**-2 + x / 3],
    ids=str,
)
def test_substitution_agrees_with_the_taylor_series(expr):
    found = substitute(expr, {x: Series.monomial(1, 7)})
    reference = sp.series(expr, x, 0, 5).removeO()
    for k in range(-2, 5):
        assert sp.simplify(found.coefficient(k) - reference.coeff(x, k)) == 0


def test_functions_of_a_series_need_symbolic_coefficients():
    t = Series.monomial(1, 4)
    for expr in (y**x, GaussianExpectation(sp.exp(x * z), z), sp.exp(1 / x)):
        with pytest.raises(UnsupportedExpressionError, match="cannot be substituted into"):
            substitute(expr, {x: t})
    with pytest.raises(UnsupportedExpressionError, match="cannot be substituted into"):
        substitute(sp.exp(x), {x: t}, number=lambda c: mpmath.mpf(int(c.p)) / int(c.q))
    with pytest.raises(StructureError, match="analytic at 0"):
        substitute(sp.Abs(x, evaluate=False), {x: t})
    expanded = substitute(sp.log(1 + x) * sp.exp(x), {x: t})
    assert expanded.coefficients == (1, sp.S.Half, sp.Rational(1, 3), 0)
    assert substitute((1 + x) ** y, {x: t}).coefficient(2).equals(y * (y - 1) / 2)
    # Of constants they are coefficients.
    assert substitute(x + sp.exp(y), {x: t}).coefficients[:2] == (sp.exp(y), 1)


def test_numbers_keep_their_digits():
    ctx = mpmath.mp.clone()
    ctx.dps = 50
    found = substitute(
        sp.sqrt(2 + x), {x: Series.monomial(1, 3)}, number=lambda c: ctx.mpf(str(c.evalf(60)))
    )
    assert abs(found.coefficient(2) + 1 / (8 * ctx.sqrt(2) ** 3)) < ctx.mpf(10) ** -48


def test_a_square_root_branch_of_two_equations():
    # x² + λ x - λ² = 0 has x = λ (√5 - 1)/2, exactly.
    small = {lam: Series.monomial(1, 6)}
    first = (sp.sqrt(5) - 1) / 2
    found = solve_series(
        [y - x**2, y + lam * x - lam**2], {x: (1, first), y: (2, sp.expand(first**2))}, small, 3
    )
    assert found[x].start == 1
    assert [sp.simplify(c) for c in found[x].coefficients] == [first, 0, 0, 0]


def test_catalan_numbers():
    # x = 1 + t x².
    found = solve_series([x - 1 - lam * x**2], {x: (0, sp.S.One)}, {lam: Series.monomial(1, 9)}, 8)
    assert list(found[x].coefficients) == [1, 1, 2, 5, 14, 42, 132, 429, 1430]


def test_a_wrong_balance_is_refused():
    # (x - 1)² = t has x - 1 ~ √t: in whole powers the leading equation has a double root.
    with pytest.raises(StructureError, match="matrix is singular"):
        solve_series([(x - 1) ** 2 - lam], {x: (0, sp.S.One)}, {lam: Series.monomial(1, 4)}, 2)


def test_fractions_are_a_field_too():
    found = substitute(
        x / (1 - x), {x: Series((Fraction(1, 2), Fraction(1, 3)), 0)},
        number=fraction,
    )  # fmt: skip
    # u/(1 - u) at u = 1/2 + t/3: 1 + (1/3)/(1/4) t.
    assert found.coefficients == (1, Fraction(4, 3))


def test_arrays_over_nodes_are_coefficients():
    ctx = mpmath.mp.clone()
    ctx.dps = 30
    nodes = np.array([ctx.mpf(0), ctx.mpf(2)])
    t = Series.monomial(1, 3)
    line = nodes * t + 4
    # A power of a series that vanishes at a node needs no inverse of it.
    assert [list(np.atleast_1d(c)) for c in (nodes * t).power(sp.Integer(2)).coefficients] == [
        [0, 4], [0], [0],
    ]  # fmt: skip
    root = line.power(sp.S.Half, lambda e: ctx.mpf(int(e.p)) / int(e.q))
    # sqrt(4 + 2 t) = 2 + t/2 - t²/16 + ….
    assert [np.atleast_1d(c)[-1] for c in root.coefficients[:3]] == [2, 0.5, -0.0625]
    back = root * root / line
    assert all(abs(np.atleast_1d(back.coefficient(k) - (k == 0))).max() < 1e-28 for k in range(4))


def test_later_coefficients_from_earlier_ones():
    # x = 1 + t x²: the Jacobian is 1.
    def residual(known, k):
        (values,) = known
        return [values[k] - sum(values[i] * values[k - 1 - i] for i in range(k))]

    assert order_by_order([1], 6, residual, lambda right: right) == [[1, 1, 2, 5, 14, 42, 132]]
