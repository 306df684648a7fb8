""""""

import math
from fractions import Fraction
from itertools import product

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import AssumptionError, ParameterError
from giantstep.symbolic.gaussian import hermite_polynomials as conventions
from giantstep.symbolic.gaussian.hermite_polynomials import (
    MAX_ORDER,
    addition_theorem,
    affine_argument,
    differential_equation,
    generating_function,
    hermite_derivative,
    hermite_polynomial,
    hermite_prob,
    linearisation,
    mehler_correlation,
    mehler_kernel,
    mehler_smoothing,
    moments_of_derivative,
    moments_times_variable,
    multi_indices,
    pairings,
    polynomial_in_hermite,
    power_in_hermite,
    shifted_argument,
    triple_product,
)
from giantstep.symbolic.hermite.heat_flow import gaussian_mean

NAMES = ("moments", "he_coefficients", "orthonormal_coefficients")
SHORT_RATIONALS = st.fractions(-9, 9, max_denominator=12).map(lambda f: sp.Rational(f))


def converter(target, source):
    return getattr(conventions, f"{target}_from_{source}")


# He_2 and He_3 themselves: μ_2 = 2, c_2 = 1.
VALUES = {
    "moments": [0, 0, 2, 6],
    "he_coefficients": [0, 0, 1, 1],
    "orthonormal_coefficients": [0, 0, sp.sqrt(2), sp.sqrt(6)],
}


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_values(source, target):
    if source != target:
        assert list(converter(target, source)(VALUES[source])) == VALUES[target]


@given(st.lists(SHORT_RATIONALS, max_size=8))
@settings(max_examples=10, deadline=None)
def test_there_and_back(values):
    for source in NAMES:
        for target in set(NAMES) - {source}:
            there = converter(target, source)(values)
            assert list(converter(source, target)(there)) == values


@given(st.lists(SHORT_RATIONALS, min_size=1, max_size=8))
@settings(max_examples=10, deadline=None)
def test_orthonormal_coefficients_have_the_norm_of_the_function(moments):
    # Parseval: E f² = Σ μ_k²/k!.
    orthonormal = conventions.orthonormal_coefficients_from_moments(moments)
    expected = sum(mu**2 / math.factorial(k) for k, mu in enumerate(moments))
    assert sum(c**2 for c in orthonormal) == expected


def test_mappings_use_the_factorial_of_the_multi_index():
    assert conventions.he_coefficients_from_moments({(3, 2): 1, (0, 0): 5}) == {
        (3, 2): sp.Rational(1, 12),
        (0, 0): 5,
    }
    assert conventions.moments_from_he_coefficients({4: Fraction(1, 3)}) == {4: 8}
    assert conventions.orthonormal_coefficients_from_moments({(2, 2): 4}) == {(2, 2): 2}


def test_symbols_are_values_like_others():
    c = sp.Symbol("c")
    assert conventions.moments_from_he_coefficients([c, c, c]) == (c, c, 2 * c)


@pytest.mark.parametrize(
    "values, message",
    [
        ([0.5], r"moments\[0\] holds the float 0.5"),
        ({(1, -1): 2}, r"order of the key \(1, -1\) of moments must be >= 0, got -1"),
        ({"x": 2}, "order of the key 'x' of moments must be an integer"),
        (3, "moments must be a sequence or a mapping"),
        ("12", "moments must be a sequence or a mapping"),
    ],
)
def test_refusals_of_conversions(values, message):
    with pytest.raises(ParameterError, match=message):
        conventions.he_coefficients_from_moments(values)


MOMENTS = st.fractions(-3, 3, max_denominator=7).map(lambda f: sp.Rational(f))
COEFFICIENTS = st.lists(MOMENTS, min_size=1, max_size=6)
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
@settings(max_examples=15, deadline=None)
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
@settings(max_examples=12, deadline=None)
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
@settings(max_examples=12, deadline=None)
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


def test_refusals_of_moments():
    assert mehler_smoothing([1, 2], -1) == (1, -2)
    with pytest.raises(AssumptionError, match=r"rho = 2 is not a correlation; .*\|rho\| <= 1"):
        mehler_smoothing([1, 2], 2)
    with pytest.raises(ParameterError, match=r"rho holds the float 0\.5"):
        mehler_correlation([1], [1], 0.5)
    with pytest.raises(ParameterError, match=r"moments\[1\] holds the float 0.5"):
        moments_times_variable([1, 0.5])
    with pytest.raises(ParameterError, match="moments must be a sequence"):
        moments_of_derivative("12")


x, y, a, b, v, t = sp.symbols("x y a b v t")
RATIONALS = st.fractions(-3, 3, max_denominator=7).map(lambda f: sp.Rational(f))


def combined(coefficients, argument=x):
    """Σ c_k He_k(argument)."""
    return sp.Add(*(c * hermite_polynomial(k, argument) for k, c in coefficients.items()))


def vanishes(expression):
    return sp.expand(expression) == 0


@pytest.mark.parametrize("k", [0, 1, 2, 7, 30])
def test_it_is_the_polynomial_of_sympy(k):
    assert vanishes(hermite_polynomial(k, x) - sp.hermite_prob_poly(k, x))


@pytest.mark.parametrize("k", range(1, 9))
def test_recurrence_for_every_variance(k):
    # Janson, Gaussian Hilbert Spaces (1997), chapter 3: He_{k+1} = x He_k - k v He_{k-1}.
    above, here, below = (hermite_polynomial(n, x, v) for n in (k + 1, k, k - 1))
    assert vanishes(above - x * here + k * v * below)


def test_variance_zero_gives_powers_and_minus_one_adds_a_unit_of_heat():
    assert hermite_polynomial(5, x, 0) == x**5
    assert hermite_polynomial(4, x, -1) == x**4 + 6 * x**2 + 3


def test_numbers_as_arguments_are_exact():
    assert hermite_polynomial(3, Fraction(1, 2)) == sp.Rational(1, 8) - sp.Rational(3, 2)
    assert hermite_polynomial(2, sp.sqrt(3)) == 2


def test_the_highest_order_is_quick_and_right():
    # He_2n(0) = (-1)^n (2n-1)!!
    constant = hermite_polynomial(MAX_ORDER, sp.S.Zero)
    assert constant == math.prod(range(1, MAX_ORDER, 2))


@pytest.mark.parametrize("n", range(9))
def test_powers_in_hermite_polynomials(n):
    assert vanishes(combined(power_in_hermite(n)) - x**n)


def test_pairings_sum_to_the_involutions():
    # OEIS A000085, involutions of n letters.
    assert [sum(pairings(n)) for n in range(9)] == [1, 1, 2, 4, 10, 26, 76, 232, 764]


@given(st.dictionaries(st.integers(0, 8), RATIONALS, max_size=5))
@settings(max_examples=12, deadline=None)
def test_a_polynomial_by_its_powers(coefficients):
    expected = sp.Add(*(c * x**n for n, c in coefficients.items()))
    assert vanishes(combined(polynomial_in_hermite(coefficients)) - expected)


@pytest.mark.parametrize("k", range(8))
def test_derivatives_and_differential_equation(k):
    he = hermite_polynomial(k, x, v)
    for times in range(4):
        derivative = hermite_derivative(k, x, times, v)
        assert vanishes(derivative - (he.diff(x, times) if times else he))
    assert differential_equation(he, k, x, v) == 0
    assert differential_equation(x ** (k + 1), k, x) != 0


def test_generating_function():
    series = generating_function(x, t, v).series(t, 0, 7).removeO()
    expected = sum(hermite_polynomial(k, x, v) * t**k / math.factorial(k) for k in range(7))
    assert vanishes(series - expected)


@pytest.mark.parametrize("m, n", list(product(range(6), repeat=2)))
def test_linearisation_against_the_expanded_product(m, n):
    expected = hermite_polynomial(m, x) * hermite_polynomial(n, x)
    assert vanishes(combined(linearisation(m, n)) - expected)


def test_linearisation_of_several_factors():
    expected = sp.prod(hermite_polynomial(k, x) for k in (2, 3, 1, 4))
    assert vanishes(combined(linearisation(2, 3, 1, 4)) - expected)


@pytest.mark.parametrize("l, m, n", list(product(range(5), repeat=3)))
def test_triple_product_is_the_mean_of_the_product(l, m, n):  # noqa: E741
    assert triple_product(l, m, n) == linearisation(l, m, n).get(0, 0)


def test_triple_product_against_quadrature():
    with mpmath.workdps(30):
        he = [sp.lambdify(x, hermite_polynomial(k, x), "mpmath") for k in range(7)]

        def density(u):
            return he[4](u) * he[5](u) * he[3](u) * mpmath.npdf(u)

        value = mpmath.quad(density, mpmath.linspace(-20, 20, 41))
        # Cancellation costs some six of the 30 digits.
        assert abs(value - triple_product(4, 5, 3)) < mpmath.mpf(10) ** -22


@pytest.mark.parametrize("n", range(6))
def test_shift_and_affine_argument_for_symbols(n):
    assert vanishes(combined(shifted_argument(n, y)) - hermite_polynomial(n, x + y))
    assert vanishes(combined(affine_argument(n, a, b)) - hermite_polynomial(n, a * x + b))


@given(st.integers(0, 7), RATIONALS, RATIONALS)
@settings(max_examples=15, deadline=None)
def test_affine_argument_for_numbers(n, slope, shift):
    found = combined(affine_argument(n, slope, shift))
    assert vanishes(found - hermite_polynomial(n, slope * x + shift))


def test_affine_argument_at_its_limits():
    assert affine_argument(4, 1, 0) == {4: 1}
    assert affine_argument(3, 0, b) == {0: hermite_polynomial(3, b)}
    assert affine_argument(3, -1, 0) == {3: -1}
    # Scaling alone, section 1.1: n!/(2^j j! (n-2j)!) a^(n-2j) (a^2-1)^j.
    found = affine_argument(4, a, 0)
    assert vanishes(found[2] - 6 * a**2 * (a**2 - 1)) and 3 not in found


@pytest.mark.parametrize("weights", [(sp.Rational(3, 5), sp.Rational(4, 5)), (1, 1), (a, b)])
def test_addition_theorem(weights):
    for n in range(5):
        found = sp.Add(
            *(
                c * hermite_polynomial(k, x) * hermite_polynomial(m, y)
                for (k, m), c in addition_theorem(n, weights).items()
            )
        )
        expected = hermite_polynomial(n, weights[0] * x + weights[1] * y)
        assert vanishes(found - expected)


def test_addition_theorem_of_unit_vectors_keeps_the_degree():
    third = sp.Rational(1, 3)
    found = addition_theorem(3, [third, 2 * third, 2 * third])
    assert all(sum(alpha) == 3 for alpha in found)
    assert found[(1, 1, 1)] == 6 * third * 2 * third * 2 * third
    assert set(addition_theorem(4, [sp.cos(t), sp.sin(t)])) == set(multi_indices(2, 4))


def test_symbolic_order_at_zero_and_in_print():
    n = sp.Symbol("n", integer=True, nonnegative=True)
    at_zero = hermite_prob(n, x).subs(x, 0)
    for k in range(9):
        assert at_zero.subs(n, k) == hermite_polynomial(k, 0)
        assert vanishes(hermite_prob(n, x).subs(n, k) - hermite_polynomial(k, x))
    assert hermite_prob(n, -x) == (-1) ** n * hermite_prob(n, x)
    slope = hermite_prob(n, x).diff(x)
    assert slope.subs(x, 0).subs(n, 3) == -3
    assert sp.latex(hermite_prob(n, x) ** 2) == r"\mathrm{He}_{n}^{2}\left(x\right)"


def test_multi_indices_are_counted_right():
    assert len(multi_indices(5, 8)) == math.comb(12, 4)
    assert multi_indices(0, 0) == [()] and multi_indices(0, 1) == []


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: hermite_polynomial(-1, x), "order k must be >= 0, got -1"),
        (lambda: hermite_polynomial(True, x), "order k must be an integer, got True"),
        (lambda: hermite_polynomial(sp.Float(2), x), "order k must be an integer, got 2.0"),
        (lambda: hermite_polynomial(MAX_ORDER + 1, x), f"orders go up to {MAX_ORDER}"),
        (lambda: hermite_polynomial(2, 0.5), "x holds the float 0.5"),
        (lambda: hermite_polynomial(2, "x"), "x must be a SymPy expression"),
        (lambda: hermite_polynomial(2, sp.Float(2)), "x holds the float 2.0"),
        (lambda: hermite_polynomial(2, sp.nan), "x = nan is not a number"),
        (lambda: multi_indices(-1, 2), "order variables must be >= 0, got -1"),
        (lambda: multi_indices(2, -1), "order degree must be >= 0, got -1"),
        (lambda: multi_indices(30, 30), "more than 200000 multi-indices"),
        (lambda: hermite_polynomial(2, x, 0.25), "variance holds the float 0.25"),
        (lambda: linearisation(1500, 1500), "order of the product = 3000 is too high"),
        (lambda: triple_product(1, -2, 3), "order m must be >= 0, got -2"),
        (lambda: addition_theorem(2, []), "weights is empty"),
        (lambda: addition_theorem(60, [1] * 9), "too many terms"),
        (lambda: affine_argument(2, 0.1, 0), "a holds the float 0.1"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
