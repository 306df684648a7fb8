import math
from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from giantstep.errors import ParameterError
from giantstep.symbolic import hermite_polynomials as conventions

NAMES = ("moments", "he_coefficients", "orthonormal_coefficients")
RATIONALS = st.fractions(-9, 9, max_denominator=12).map(lambda f: sp.Rational(f))


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


@given(st.lists(RATIONALS, max_size=8))
@settings(max_examples=20, deadline=None)
def test_there_and_back(values):
    for source in NAMES:
        for target in set(NAMES) - {source}:
            there = converter(target, source)(values)
            assert list(converter(source, target)(there)) == values


@given(st.lists(RATIONALS, min_size=1, max_size=8))
@settings(max_examples=20, deadline=None)
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
def test_refusals(values, message):
    with pytest.raises(ParameterError, match=message):
        conventions.he_coefficients_from_moments(values)
