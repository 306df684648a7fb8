"""Floats are refused where results are exact, and converted only when asked."""

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, strategies as st

from giantstep.errors import ParameterError
from giantstep.symbolic.expressions.exact_numbers import rationalized, require_exact

X = sp.Symbol("x", real=True)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(FINITE)
def test_a_decimal_reads_back_as_the_float(number):
    exact = rationalized(number)
    assert exact.is_Rational and exact == sp.Rational(repr(number))
    assert float(Fraction(int(exact.p), int(exact.q))) == number


@given(st.fractions(max_denominator=1000), st.fractions(0, 1, max_denominator=10**6))
def test_the_simplest_fraction_within_the_tolerance(value, tolerance):
    if tolerance == 0 or abs(value) > 10**6:
        return
    found = rationalized(float(value), tolerance=tolerance)
    written = Fraction(repr(float(value)))
    assert abs(Fraction(int(found.p), int(found.q)) - written) <= tolerance
    for q in range(1, min(int(found.q), 200)):
        lowest = math.ceil((written - tolerance) * q)
        assert Fraction(lowest, q) > written + tolerance


@given(st.tuples(*[st.fractions(-5, 5, max_denominator=6)] * 3))
def test_combinations_of_named_constants_are_found(parts):
    constants = (sp.sqrt(2), 1 / sp.sqrt(sp.pi))
    exact = sp.Add(
        *(sp.Rational(q) * c for q, c in zip(parts, (sp.S.One, *constants), strict=True))
    )
    number = float(exact)
    if abs(number) < 0.01:  # Its last digits are then lost to cancellation.
        return
    assert rationalized(number, constants=constants) == exact


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, sp.Rational(1, 10)),
        (-0.0, 0),
        # What a user sees: the sum of the floats 0.1 and 0.2 is not 0.3.
        (0.1 + 0.2, sp.Rational("0.30000000000000004")),
        (np.float32(0.1), sp.Rational(1, 10)),
        (np.float64(2.5), sp.Rational(5, 2)),
        (np.longdouble("0.1"), sp.Rational(1, 10)),
        (np.array(0.5), sp.Rational(1, 2)),
        (np.int8(3), 3),
        (mpmath.mpf("0.25"), sp.Rational(1, 4)),
        (Decimal("0.123456789012345678901"), sp.Rational("0.123456789012345678901")),
        (Fraction(1, 3), sp.Rational(1, 3)),
        (sp.Float("0.1", 50), sp.Rational(1, 10)),
        (0.5 * X**2.0 + sp.tanh(0.1 * X), X**2 / 2 + sp.tanh(X / 10)),
        (np.array([[1, 2], [0.5, 3]]), ((1, 2), (sp.S.Half, 3))),
        ([1, (0.5, X)], (1, (sp.S.Half, X))),
        (sp.Matrix([[0.5, 1]]), sp.Matrix([[sp.S.Half, 1]])),
        ((), ()),
    ],
)
def test_conversion_keeps_the_shape(value, expected):
    assert rationalized(value) == expected


def test_recognised_numbers():
    assert rationalized([0.7071067811865476, 1.5, 0.0], constants=[sp.sqrt(2)]) == (
        sp.sqrt(2) / 2,
        sp.Rational(3, 2),
        0,
    )
    # Two constants of which one is not needed.
    assert rationalized(0.3, constants=[sp.sqrt(2), sp.sqrt(8)]) == sp.Rational(3, 10)
    assert rationalized(0.79788, constants=[sp.sqrt(2 / sp.pi)], tolerance=1e-5) == sp.sqrt(
        2 / sp.pi
    )
    assert rationalized(np.float32(0.70710678), constants=[sp.sqrt(2)]) == sp.sqrt(2) / 2
    assert rationalized(-3.14159, tolerance=1e-3) == sp.Rational(-201, 64)
    # Within the tolerance of zero.
    assert rationalized(0.3, constants=[sp.pi], tolerance=1) == rationalized(1e-9, tolerance=1) == 0


@pytest.mark.parametrize("value", [2, Fraction(1, 2), sp.sqrt(2), X, np.int64(7), 10**400])
def test_exact_numbers_pass(value):
    assert require_exact(value, "a") == value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0.5, r"^a holds the float 0\.5, which is not exact; write sp\.Rational\(1, 2\), or conv"),
        (2.0, "write 2, or convert explicitly with giantstep.rationalized"),
        (1 / 3, r"holds the float 0\.3333333333333333, .*such as sp\.Rational\(1, 3\)"),
        (0.1 + 0.2, r"0\.30000000000000004"),
        (1e300, "an exact number such as"),
        (np.float32(0.1), r"the float 0\.1,"),
        (Decimal("0.5"), r"the float 0\.5,"),
        (mpmath.mpf("0.5"), r"the float 0\.5,"),
        (X + 0.5 * sp.sqrt(2), "the float"),
        (float("nan"), "not finite"),
        (float("inf"), "not finite"),
        (sp.nan, "not a number"),
        (True, "SymPy expression, an int or a Fraction, got True"),
        (np.True_, "got np.True_"),
        (None, "got None"),
        (1j, "got 1j"),
        ("0.5", "parse_expression reads texts"),
        ([1, 2], "got .1, 2."),
        (np.array([1, 2]), "got array"),
        (np.array([0.5]), "got array"),
    ],
)
def test_refusals(value, message):
    with pytest.raises(ParameterError, match=message):
        require_exact(value, "a")


def nested(depth):
    return [nested(depth - 1)] if depth else [0.5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rationalized("0.5"), "parse_expression reads texts"),
        (lambda: rationalized([1, "x"]), "parse_expression reads texts"),
        (lambda: rationalized(np.array(["a"])), "SymPy expression"),
        (lambda: rationalized({1: 2}), "SymPy expression"),
        (lambda: rationalized(float("nan")), "not finite"),
        (lambda: rationalized([1, float("inf")]), "not finite"),
        (lambda: rationalized(sp.oo), "not finite"),
        (lambda: rationalized(Decimal("NaN")), "not finite"),
        (lambda: rationalized(sp.Float("1e5000")), r"beyond 10\*\*1000"),
        (lambda: rationalized(nested(20)), "nested more than 8"),
        (lambda: rationalized(0.3, tolerance=0), "tolerance must be a positive number"),
        (lambda: rationalized(0.3, tolerance=-1e-3), "tolerance must be a positive number"),
        (lambda: rationalized(0.3, tolerance=[1]), "tolerance must be a positive number"),
        (lambda: rationalized(0.3, tolerance=X), "tolerance must be a positive number"),
        (lambda: rationalized(0.3, constants="pi"), "constants must be a sequence"),
        (lambda: rationalized(0.3, constants=sp.pi), "constants must be a sequence"),
        (lambda: rationalized(0.3, constants=b"12"), "constants must be a sequence"),
        (lambda: rationalized(0.3, constants="x" * 5000), r"got 'x{40,60}\.\.\.$"),
        (lambda: rationalized(0.3, constants=[0.5]), r"constants\[0\] holds the float 0.5"),
        (lambda: rationalized(0.3, constants=[X]), "constants must be real numbers"),
        (lambda: rationalized(0.3, constants=[sp.I]), "constants must be real numbers"),
        (
            lambda: rationalized(0.3, constants=[sp.sqrt(p) for p in (2, 3, 5, 7, 11, 13, 17)]),
            "at most 6",
        ),
        # No digits are left to tell a relation from chance.
        (lambda: rationalized(1.7320508, constants=[sp.sqrt(2)]), "no combination of 1, sqrt"),
    ],
)
def test_conversions_that_fail(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
