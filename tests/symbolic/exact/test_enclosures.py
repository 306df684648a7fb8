import json
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import ParameterError, UndecidedError
from giantstep.symbolic.exact.enclosures import Enclosure

dyadics = st.builds(
    lambda mantissa, exponent: sp.Integer(mantissa) * sp.Integer(2) ** exponent,
    st.integers(-(10**12), 10**12),
    st.integers(-300, 60),
)


@pytest.fixture
def third():
    return Enclosure(sp.Rational(1365, 4096), sp.Rational(1, 4096))


def test_bounds_are_exact_and_belong_to_the_interval(third):
    assert (third.lower, third.upper) == (sp.Rational(341, 1024), sp.Rational(683, 2048))
    assert third.contains(third.lower) and third.contains(third.upper)
    assert not third.contains(third.upper + sp.Rational(1, 10**40))


def test_decimals_and_integers_of_numpy_are_numbers():
    one = Enclosure(sp.S.One, sp.Rational(1, 2**20))
    assert one.contains(np.int64(1)) and one.contains(Decimal("1.0000001"))
    assert not one.contains(np.int32(2)) and not one.contains(Decimal("1.1"))
    for wrong in (Decimal("nan"), Decimal("inf"), True, np.True_):
        with pytest.raises(ParameterError, match="finite real number"):
            one.contains(wrong)


@pytest.mark.parametrize(
    "number",
    [
        sp.Rational(1, 3), Fraction(1, 3), 1 / 3, "0.3333", "1/3", mpmath.mpf(1) / 3,
        sp.Float("0.3333"),
    ],
)  # fmt: skip
def test_numbers_of_any_kind_can_be_looked_for(third, number):
    assert third.contains(number)


def test_irrational_constants_are_compared_to_as_many_digits_as_the_interval_has():
    root = sp.Rational(sp.sqrt(2).evalf(60))
    close = sp.Integer(sp.floor(root * 2**150)) / sp.Integer(2) ** 150
    interval = Enclosure(close, sp.Rational(1, 2**150))
    assert interval.contains(sp.sqrt(2))
    assert not interval.contains(sp.sqrt(2) + sp.Rational(1, 2**148))
    assert not Enclosure(close, sp.S.Zero).contains(sp.sqrt(2))


def test_a_constant_at_the_very_end_is_not_decided():
    interval = Enclosure(sp.S.Zero, sp.S.One)
    with pytest.raises(UndecidedError, match="too close to an end"):
        interval.contains(
            sp.sqrt(3) ** 2 * sp.cos(sp.Rational(1, 7)) ** 2 / 3 + sp.sin(sp.Rational(1, 7)) ** 2
        )


@pytest.mark.parametrize(
    "number", ["one", sp.I, sp.nan, sp.oo, math.nan, math.inf, sp.Symbol("x"), None]
)
def test_what_is_no_real_number_is_refused(third, number):
    with pytest.raises(ParameterError, match="number"):
        third.contains(number)


@pytest.mark.parametrize(
    ("midpoint", "radius", "message"),
    [
        (sp.Rational(1, 3), sp.S.Zero, "midpoint has to be .* power of two"),
        (sp.S.Zero, sp.Float(0.5), "radius has to be"),
        (sp.S.Zero, sp.S.NegativeOne, "radius has to be >= 0"),
        (True, sp.S.One, "midpoint has to be"),
    ],
)
def test_intervals_with_other_ends_are_refused(midpoint, radius, message):
    with pytest.raises(ParameterError, match=message):
        Enclosure(midpoint, radius)


@pytest.mark.parametrize(
    ("midpoint", "radius", "digits"),
    [
        (1000, 1, 3),
        (999, 1, 2),
        (-1000, 1, 3),
        (1, 1, 0),
        (0, 1, 0),
        (3, 0, math.inf),
        (0, 0, math.inf),
    ],
)
def test_proven_digits(midpoint, radius, digits):
    interval = Enclosure(midpoint, radius)
    assert interval.digits == digits
    assert interval.is_exact is (radius == 0)
    assert interval.contains_zero is (abs(midpoint) <= radius)


@pytest.mark.parametrize(
    ("midpoint", "radius", "text", "latex"),
    [
        (3, 0, "3 (exact)", "3"),
        (0, 0, "0 (exact)", "0"),
        (sp.Rational(-5, 8), 0, "-0.625 (exact)", "-0.625"),
        (sp.Rational(1, 2), sp.Rational(1, 2**20), "0.50000000 ± 9.6e-7", None),
        (sp.Integer(2) ** 100, sp.Integer(2), None, None),
        (0, sp.Rational(1, 2**100), "0 ± 7.9e-31", r"0 \pm 7.9 \times 10^{-31}"),
    ],
)
def test_text(midpoint, radius, text, latex):
    interval = Enclosure(midpoint, radius)
    assert text is None or str(interval) == text
    assert latex is None or interval.latex() == latex
    assert repr(interval) == f"Enclosure({interval})"
    assert interval._repr_latex_().startswith(r"$\displaystyle ")


@given(dyadics, dyadics.map(abs))
@settings(max_examples=40, deadline=None)
def test_the_printed_interval_contains_the_interval(midpoint, radius):
    interval = Enclosure(midpoint, radius)
    if interval.is_exact:
        assert interval.contains(str(interval).removesuffix(" (exact)"))
        return
    shown, plus_minus = (
        sp.Rational(*Fraction(t).as_integer_ratio()) for t in str(interval).split(" ± ")
    )
    assert shown - plus_minus <= interval.lower
    assert interval.upper <= shown + plus_minus
    # ... and is not much longer: two digits of the radius, one decimal of the midpoint more.
    assert plus_minus <= radius * sp.Rational(116, 100)


@given(dyadics, dyadics.map(abs))
@settings(max_examples=40, deadline=None)
def test_json_holds_the_exact_interval(midpoint, radius):
    interval = Enclosure(midpoint, radius)
    assert Enclosure.from_dict(json.loads(json.dumps(interval.to_dict()))) == interval


@pytest.mark.parametrize(
    "data",
    [{}, {"midpoint": "0x1p0"}, {"midpoint": "1/3", "radius": "0x1p0"},
     {"midpoint": 1, "radius": 0}, {"midpoint": "0x1p-99999999", "radius": "0x1p0"},
     {"midpoint": "0x1p0", "radius": "-0x1p0"}],
)  # fmt: skip
def test_other_json_is_refused(data):
    with pytest.raises(ParameterError, match=r"midpoint|radius"):
        Enclosure.from_dict(data)


def test_numbers_of_thousands_of_digits_print():
    interval = Enclosure(sp.Integer(3) ** 12000, sp.S.One)
    assert str(interval).endswith("e+5725 ± 1.0")
    assert Enclosure.from_dict(interval.to_dict()) == interval
