"""Φ₂ against Plackett's integral, its exact values, derivatives and extreme arguments."""

import mpmath
import pytest
import sympy as sp

from giantstep.errors import ParameterError
from giantstep.symbolic.expressions.bivariate_normal import BivariateNormalCDF, normal_cdf
from giantstep.symbolic.expressions.functions import OwenT

h, k = sp.symbols("h k", real=True)
rho = sp.Symbol("rho", real=True)
HALF = sp.Rational(1, 2)


def plackett(first, second, correlation, digits):
    """Φ(h)Φ(k) + ∫ density dρ, with ρ = sin θ: another integral than the one under test."""
    with mpmath.workdps(digits + 15):
        a, b, r = (mpmath.mpf(x.p) / x.q for x in map(sp.Rational, (first, second, correlation)))
        end = mpmath.asin(r)
        value = mpmath.quadgl(
            lambda t: mpmath.exp(
                -(a * a - 2 * a * b * mpmath.sin(t) + b * b) / (2 * mpmath.cos(t) ** 2)
            ),
            [end * j / 12 for j in range(13)],
        )
        return mpmath.ncdf(a) * mpmath.ncdf(b) + value / (2 * mpmath.pi)


def relative(found, expected):
    with mpmath.workdps(80):
        return abs(mpmath.mpf(found._mpf_) / expected - 1)


@pytest.mark.parametrize(
    "point",
    [("1", "-2", "0.5"), ("0.3", "0.4", "-0.9"), ("0", "1", "0.99"), ("-4", "-5", "0.3")],
)
@pytest.mark.parametrize("digits", [15, 40])
def test_digits(point, digits):
    found = BivariateNormalCDF(*map(sp.Rational, point)).evalf(digits)
    assert relative(found, plackett(*point, digits)) < mpmath.mpf(10) ** -digits


def test_near_perfect_anticorrelation():
    # P(X <= -1, Y <= 1) is of order sqrt(1 - rho**2); its scaled integral by hand:
    with mpmath.workdps(90):
        r = mpmath.mpf(10) ** -20 - 1
        rest = mpmath.sqrt(1 - r * r)
        value = rest * mpmath.quadgl(
            lambda t: mpmath.npdf(1 + rest * t) * mpmath.ncdf((1 - r * (-1 - rest * t)) / rest),
            [mpmath.mpf(j) / 2 for j in range(33)],
        )
    found = BivariateNormalCDF(-1, 1, sp.Rational(1, 10**20) - 1).evalf(30)
    assert relative(found, value) < mpmath.mpf(10) ** -30


def test_far_tails_keep_their_relative_accuracy():
    # P(X <= -30, Y <= -30) at rho = -9/10; the reference integrates downwards from the corner.
    with mpmath.workdps(60):
        r, rest = mpmath.mpf(-9) / 10, mpmath.sqrt(mpmath.mpf(19)) / 10
        top = mpmath.npdf(30) * mpmath.ncdf((-30 + r * 30) / rest)
        value = top * mpmath.quadgl(
            lambda t: mpmath.npdf(30 + t) * mpmath.ncdf((-30 + r * (30 + t)) / rest) / top,
            [mpmath.mpf(j) / 100 for j in range(41)],
        )
    found = BivariateNormalCDF(-30, -30, -sp.Rational(9, 10)).evalf(30)
    assert relative(found, value) < mpmath.mpf(10) ** -30


def test_exact_values():
    assert BivariateNormalCDF(0, 0, rho) == sp.asin(rho) / (2 * sp.pi) + sp.Rational(1, 4)
    assert BivariateNormalCDF(h, k, 0) == normal_cdf(h) * normal_cdf(k)
    assert BivariateNormalCDF(h, k, rho) == BivariateNormalCDF(k, h, rho)
    assert BivariateNormalCDF(sp.oo, k, rho) == normal_cdf(k)
    assert BivariateNormalCDF(h, -sp.oo, rho) == 0
    assert BivariateNormalCDF(h, sp.nan, rho) is sp.nan
    p = sp.Symbol("p", positive=True)
    assert BivariateNormalCDF(h, h + p, 1) == normal_cdf(h)
    assert BivariateNormalCDF(-p, -1, -1) == 0
    assert sp.expand(BivariateNormalCDF(p, 1, -1) - normal_cdf(p) - normal_cdf(1) + 1) == 0
    assert isinstance(BivariateNormalCDF(h, k, 1), BivariateNormalCDF)  # which is smaller?


@pytest.mark.parametrize("sign", [1, -1])
def test_perfect_correlation_in_numbers(sign):
    held = BivariateNormalCDF(h, k, sign)
    for first, second in ((-2, 3), (3, -2), (2, 3), (-2, -3), (1, -1)):
        near = BivariateNormalCDF(first, second, sign * (1 - sp.Rational(1, 10**30))).evalf(20)
        exact = held.subs({h: first, k: second}).evalf(20)
        assert abs(near - exact) < 1e-14  # of order sqrt(1 - rho**2)


def test_zero_argument_is_owens_t_only_where_that_is_finite():
    known = BivariateNormalCDF(0, k, HALF)
    assert known == normal_cdf(k) / 2 + OwenT(k, 1 / sp.sqrt(3))
    for value in (-2, sp.Rational(1, 3), 0):
        other = plackett(0, value, HALF, 30)
        assert relative(known.subs(k, value).evalf(30), other) < mpmath.mpf(10) ** -29
    assert isinstance(BivariateNormalCDF(0, k, rho), BivariateNormalCDF)  # rho may be 1


@pytest.mark.parametrize("ratio", [2, sp.Rational(1, 3), -1, -sp.Rational(5, 2)])
def test_rewriting_by_owens_t(ratio):
    node = BivariateNormalCDF(h, ratio * h, rho)
    other = node.rewrite(OwenT)
    assert other.has(OwenT) and not other.has(BivariateNormalCDF)
    for value in (-sp.Rational(3, 2), sp.Rational(2, 7)):
        for correlation in (-sp.Rational(1, 2), sp.Rational(4, 5)):
            at = {h: value, rho: correlation}
            assert abs(node.subs(at).evalf(30) - other.subs(at).evalf(30)) < 1e-28
    general = BivariateNormalCDF(h, k, rho)
    assert general.rewrite(OwenT) == general  # the sign of k/h is not known


@pytest.mark.parametrize("symbol", [h, k, rho])
def test_derivatives(symbol):
    node = BivariateNormalCDF(h, k, rho)
    at = {h: sp.Rational(2, 5), k: -sp.Rational(3, 4), rho: sp.Rational(1, 3)}
    step = sp.Rational(1, 10**10)
    sides = [node.subs({**at, symbol: at[symbol] + s * step}).evalf(45) for s in (1, -1)]
    # Central difference: error of order step**2 times a third derivative of order one.
    difference = (sides[0] - sides[1]) / (2 * step)
    assert abs(difference - node.diff(symbol).subs(at).evalf(30)) < 1e-19


@pytest.mark.parametrize("value", [2, -sp.sqrt(2), sp.I])
def test_impossible_correlations_are_refused(value):
    with pytest.raises(ParameterError, match="-1 <= rho <= 1"):
        BivariateNormalCDF(1, 2, value)


def test_printing():
    node = BivariateNormalCDF(h, k, rho)
    assert sp.latex(node) == r"\Phi_{2}\left(h, k; \rho\right)"
    assert sp.latex(node**2) == r"\Phi_{2}^{2}\left(h, k; \rho\right)"
    assert sp.pretty(node) == "Φ₂(h, k; ρ)"
    assert node.is_nonnegative and node.evalf(20) == node


@pytest.mark.parametrize("sign", [1, -1])
def test_derivative_at_perfect_correlation(sign):
    node = BivariateNormalCDF(h, k, sign)
    step = sp.Rational(1, 10**10)
    for at in ({h: sp.Rational(1, 3), k: sp.Rational(2, 5)}, {h: sp.S.One, k: -sp.Rational(1, 2)}):
        for symbol in (h, k):
            ends = (node.subs({**at, symbol: at[symbol] + s * step}).evalf(40) for s in (1, -1))
            slope = (next(ends) - next(ends)) / (2 * step)
            assert abs(node.diff(symbol).subs(at).evalf(30) - slope) < 1e-18
    assert node.rewrite(sp.Integral) == node
