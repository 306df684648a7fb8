import math

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from giantstep.errors import AssumptionError, ParameterError
from giantstep.symbolic.heat_flow import gaussian_mean
from giantstep.symbolic.hermite_polynomials import (
    hermite_polynomial,
    mehler_correlation,
    mehler_kernel,
    mehler_smoothing,
    moments_of_derivative,
    moments_times_variable,
    polynomial_in_hermite,
)

RATIONALS = st.fractions(-3, 3, max_denominator=7).map(lambda f: sp.Rational(f))
COEFFICIENTS = st.lists(RATIONALS, min_size=1, max_size=6)
CORRELATIONS = st.fractions(-1, 1, max_denominator=9).map(lambda f: sp.Rational(f))
z, w = sp.symbols("z w", real=True)
RING, RZ, RW = sp.ring("z, w", sp.QQ)


def moments_of(coefficients, orders):
    """μ_0, …, of the polynomial with these coefficients of z^n, as many as orders are asked for."""
    found = polynomial_in_hermite(dict(enumerate(coefficients)))
    return [found.get(k, sp.S.Zero) * math.factorial(k) for k in range(orders)]


def value(coefficients, argument):
    return sum((sp.QQ(c.p, c.q) * argument**n for n, c in enumerate(coefficients)), RING.zero)


@given(COEFFICIENTS)
@settings(max_examples=40, deadline=None)
def test_multiplication_by_z_and_differentiation(coefficients):
    size = len(coefficients)
    moments = moments_of(coefficients, size + 2)
    assert list(moments_times_variable(moments)) == moments_of([0, *coefficients], size + 1)
    derivative = [n * c for n, c in enumerate(coefficients)][1:] or [sp.S.Zero]
    assert list(moments_of_derivative(moments)) == moments_of(derivative, size + 1)


def test_a_finite_sequence_determines_one_moment_less():
    assert len(moments_times_variable([1, 2, 3])) == len(moments_of_derivative([1, 2, 3])) == 2
    assert moments_times_variable([1]) == moments_of_derivative([]) == ()


@given(COEFFICIENTS, COEFFICIENTS, st.sampled_from([(3, 4, 5), (5, 12, 13), (-8, 15, 17)]))
@settings(max_examples=30, deadline=None)
def test_correlation_against_the_direct_expectation(first, second, triple):
    # u = z and v = ρz + sqrt(1-ρ²) w with a Pythagorean ρ stay over QQ.
    rho, rest = sp.QQ(triple[0], triple[2]), sp.QQ(triple[1], triple[2])
    direct = gaussian_mean(value(first, RZ) * value(second, rho * RZ + rest * RW))
    size = max(len(first), len(second))
    series = mehler_correlation(
        moments_of(first, size), moments_of(second, size), sp.Rational(triple[0], triple[2])
    )
    assert series == sp.QQ.to_sympy(direct)


@given(COEFFICIENTS, CORRELATIONS)
@settings(max_examples=30, deadline=None)
def test_smoothing_against_the_heat_flow(coefficients, rho):
    # E_w[f(ρz + sqrt(1-ρ²) w)] by the even moments of w.
    smoothed = [sp.S.Zero] * len(coefficients)
    for n, c in enumerate(coefficients):
        for j in range(0, n + 1, 2):
            mean = math.prod(range(1, j, 2)) * (1 - rho**2) ** (j // 2)
            smoothed[n - j] += c * math.comb(n, j) * rho ** (n - j) * mean
    size = len(coefficients)
    expected = moments_of(smoothed, size)
    assert list(mehler_smoothing(moments_of(coefficients, size), rho)) == expected


@pytest.mark.parametrize("rho", ["1/2", "-2/3"])
def test_kernel_against_its_series(rho):
    rho, x, y = sp.Rational(rho), sp.Rational(3, 4), sp.Rational(-5, 3)
    terms = (
        rho**k * hermite_polynomial(k, x) * hermite_polynomial(k, y) / math.factorial(k)
        for k in range(121)
    )
    # |He_k| <= 1.09 sqrt(k!) e^(x²/4) (Cramér): the rest is below 4 (2/3)^121.
    assert abs(sp.N(sp.Add(*terms) - mehler_kernel(x, y, rho), 50)) < 4 * sp.Rational(2, 3) ** 121


def test_kernel_reproduces_the_smoothing():
    # E_w[K(z, w) He_3(w)] = ρ³ He_3(z), by 30-digit quadrature.
    rho, point = sp.Rational(2, 5), sp.Rational(7, 6)
    integrand = sp.lambdify(
        w, mehler_kernel(point, w, rho) * hermite_polynomial(3, w), modules="mpmath"
    )
    with mpmath.workdps(30):
        found = mpmath.quad(lambda u: integrand(u) * mpmath.npdf(u), mpmath.linspace(-16, 16, 33))
        expected = mpmath.mpf(sp.N(rho**3 * hermite_polynomial(3, point), 30)._mpf_)
        assert abs(found - expected) < mpmath.mpf(10) ** -26


def test_kernel_stays_symbolic():
    rho = sp.Symbol("rho")
    assert mehler_kernel(z, w, rho).subs(rho, 0) == 1


@pytest.mark.parametrize("rho", [1, -1, sp.Rational(3, 2), sp.I / 2, sp.sqrt(2)])
def test_the_kernel_needs_a_correlation_below_one(rho):
    with pytest.raises(AssumptionError, match=r"not a correlation; .*\|rho\| < 1"):
        mehler_kernel(z, w, rho)


def test_refusals():
    assert mehler_smoothing([1, 2], -1) == (1, -2)
    with pytest.raises(AssumptionError, match=r"rho = 2 is not a correlation; .*\|rho\| <= 1"):
        mehler_smoothing([1, 2], 2)
    with pytest.raises(ParameterError, match=r"rho holds the float 0\.5"):
        mehler_correlation([1], [1], 0.5)
    with pytest.raises(ParameterError, match=r"moments\[1\] holds the float 0.5"):
        moments_times_variable([1, 0.5])
    with pytest.raises(ParameterError, match="moments must be a sequence"):
        moments_of_derivative("12")
