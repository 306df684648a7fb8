"""Hermite polynomials against SymPy's, powers of x and heat flows; conventions; refusals."""

import math
from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import ParameterError
from giantstep.symbolic.gaussian.hermite_polynomials import (
    MAX_ORDER,
    affine_argument,
    he_coefficients_from_moments,
    hermite_polynomial,
    hermite_prob,
    multi_indices,
    orthonormal_coefficients_from_moments,
    pairings,
    power_in_hermite,
)

x, a, b, v = sp.symbols("x a b v")
RATIONALS = st.fractions(-3, 3, max_denominator=7).map(lambda f: sp.Rational(f))


def combined(coefficients):
    """Σ c_k He_k(x)."""
    return sp.Add(*(c * hermite_polynomial(k, x) for k, c in coefficients.items()))


def vanishes(expression):
    return sp.expand(expression) == 0


def test_conventions():
    # He_2 and He_3 themselves: μ_2 = 2, c_2 = 1. Multi-indices have α! = Π α_i!.
    assert he_coefficients_from_moments([0, 0, 2, 6]) == (0, 0, 1, 1)
    assert orthonormal_coefficients_from_moments([0, 0, 2, 6]) == (0, 0, sp.sqrt(2), sp.sqrt(6))
    found = he_coefficients_from_moments({(3, 2): 1, (0, 0): 5, 4: Fraction(1, 3)})
    assert found == {(3, 2): sp.Rational(1, 12), (0, 0): 5, 4: sp.Rational(1, 72)}
    assert orthonormal_coefficients_from_moments({(2, 2): 4}) == {(2, 2): 2}
    c = sp.Symbol("c")
    assert he_coefficients_from_moments([c, c, c]) == (c, c, c / 2)


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
    # He_2n(0) = (-1)^n (2n-1)!!, quickly at the highest order, too.
    assert hermite_polynomial(MAX_ORDER, sp.S.Zero) == math.prod(range(1, MAX_ORDER, 2))


@pytest.mark.parametrize("n", range(9))
def test_powers_in_hermite_polynomials(n):
    assert vanishes(combined(power_in_hermite(n)) - x**n)


def test_pairings_sum_to_the_involutions():
    # OEIS A000085, involutions of n letters.
    assert [sum(pairings(n)) for n in range(9)] == [1, 1, 2, 4, 10, 26, 76, 232, 764]


@pytest.mark.parametrize("n", range(6))
def test_affine_argument_for_symbols(n):
    assert vanishes(combined(affine_argument(n, a, b)) - hermite_polynomial(n, a * x + b))


@given(st.integers(0, 7), RATIONALS, RATIONALS)
@settings(max_examples=15, deadline=None)
def test_affine_argument_for_numbers(n, slope, shift):
    found = combined(affine_argument(n, slope, shift))
    assert vanishes(found - hermite_polynomial(n, slope * x + shift))


def test_affine_argument_at_its_limits():
    # What vanishes identically is left out.
    assert affine_argument(4, 1, 0) == {4: 1}
    assert affine_argument(3, 0, b) == {0: hermite_polynomial(3, b)}
    assert affine_argument(3, -1, 0) == {3: -1}


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
        (lambda: hermite_polynomial(2, sp.nan), "x = nan is not a number"),
        (lambda: hermite_polynomial(2, x, 0.25), "variance holds the float 0.25"),
        (lambda: multi_indices(-1, 2), "order variables must be >= 0, got -1"),
        (lambda: multi_indices(2, -1), "order degree must be >= 0, got -1"),
        (lambda: multi_indices(30, 30), "more than 200000 multi-indices"),
        (lambda: affine_argument(2, 0.1, 0), "a holds the float 0.1"),
        (lambda: he_coefficients_from_moments([0.5]), r"moments\[0\] holds the float 0.5"),
        (
            lambda: he_coefficients_from_moments({(1, -1): 2}),
            r"order of the key \(1, -1\) of moments must be >= 0, got -1",
        ),
        (lambda: he_coefficients_from_moments({"x": 2}), "order of the key 'x' of moments must"),
        (lambda: he_coefficients_from_moments(3), "moments must be a sequence or a mapping"),
        (lambda: he_coefficients_from_moments("12"), "moments must be a sequence or a mapping"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
