"""The interval minimiser: known least values, ties, ends, flat and unattained ones, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from giantstep.errors import CertificationError, ParameterError
from giantstep.numeric.proofs.interval_minimum import BallFunction, minimise

flint = pytest.importorskip("flint")
arb = flint.arb


def polynomial(*coefficients):
    """Return a polynomial, the constant first."""
    p = flint.arb_poly(list(map(arb, coefficients)))
    return BallFunction([p, p.derivative(), p.derivative().derivative()])


def rastrigin():
    def wave(x):
        return 2 * arb.pi() * x

    return BallFunction(
        [
            lambda x: (x - 1) ** 2 + 10 - 10 * wave(x - 1).cos(),
            lambda x: 2 * (x - 1) + 20 * arb.pi() * wave(x - 1).sin(),
            lambda x: 2 + 40 * arb.pi() ** 2 * wave(x - 1).cos(),
        ]
    )


COSINE = BallFunction([lambda x: x.cos(), lambda x: -x.sin(), lambda x: -x.cos()])


@pytest.mark.parametrize("starts", [[], [1.0], [0.005], [3.0]])
def test_the_least_of_many_minima_is_found_from_any_start(starts):
    found = minimise(rastrigin(), (-5.12, 5.3), starts=list(map(arb, starts)))
    assert found.lower <= 0 <= found.upper and found.upper - found.lower < 1e-14
    (place,) = found.places
    assert found.isolated and place.contains(1) and place.rad() < 1e-12


def test_ties_are_all_named():
    found = minimise(COSINE, (-4.0, 10.0))
    assert not found.isolated and len(found.places) == 3
    for place, k in zip(found.places, (-1, 1, 3), strict=True):
        assert place.overlaps(k * arb.pi()) and place.rad() < 1e-9
    assert found.lower <= -1 <= found.upper


@pytest.mark.parametrize("ends", [(-2.0, 3.0), (-math.inf, -2.0)])
def test_an_end_may_be_where_a_function_is_least(ends):
    # x³ - 3x from -2 on, and -x³ + 3x up to there.
    sign = 1 if ends[0] == -2 else -1
    found = minimise(
        polynomial(0, -3 * sign, 0, sign), ends, beyond=lambda side, reach: arb(reach) ** 2
    )
    places = [float(place) for place in found.places]
    if sign == 1:
        # -2 at the end, and 1 inside, are as good.
        assert places == pytest.approx([-2, 1]) and not found.isolated
        assert found.upper.contains(-2)
    else:
        assert places == [-2] and found.isolated and found.upper == 2


def test_a_stationary_point_behind_an_end_is_not_where_the_function_is_least():
    found = minimise(polynomial(0, 0, 1), (0.25, 3.0))
    assert found.isolated and found.places == (arb(0.25),)
    assert found.lower == found.upper == arb(0.0625)
    at_the_end = minimise(polynomial(0, 0, 1), (0.0, 3.0), starts=[arb(0)])
    assert at_the_end.isolated and at_the_end.lower == at_the_end.upper == 0


def test_a_flat_minimum_is_enclosed_and_not_proven_to_be_one_point():
    found = minimise(polynomial(0, 0, 0, 0, 1), (-2.0, 3.0))
    assert not found.isolated and len(found.places) == 1
    assert found.places[0].contains(0) and found.places[0].rad() < 1e-2
    assert -1e-11 < found.lower <= 0 <= found.upper


def test_what_is_constant_is_least_everywhere():
    found = minimise(polynomial(2), (0.0, 3.0))
    assert found.lower == found.upper == 2 and not found.isolated
    assert any(place.contains(arb(1.5)) for place in found.places)


def test_an_infimum_at_infinity_is_refused():
    bell = BallFunction(
        [
            lambda x: 1 / (1 + x**2),
            lambda x: -2 * x / (1 + x**2) ** 2,
            lambda x: (6 * x**2 - 2) / (1 + x**2) ** 3,
        ]
    )
    with pytest.raises(CertificationError, match=r"for \|h\| > 4096 nothing excludes lower values"):
        minimise(bell, (-math.inf, math.inf), beyond=lambda side, reach: arb(0), what="h")


@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=6),
    st.floats(-3, 0, allow_nan=False),
    st.floats(0.125, 3, allow_nan=False),
)
@settings(max_examples=40, deadline=None)
def test_polynomials_are_not_smaller_anywhere(coefficients, left, right):
    found = minimise(polynomial(*coefficients), (left, right))
    x = np.linspace(left, right, 2001)
    values = np.polynomial.polynomial.polyval(x, coefficients)
    size = np.polynomial.polynomial.polyval(3.0, np.abs(coefficients))
    assert values.min() >= float(found.lower) - 1e-12 * size
    # As near as the grid resolves a minimum, with slopes of at most 3·size.
    assert values.min() <= float(found.upper) + 3e-3 * size
    assert found.lower <= found.upper and found.upper - found.lower <= 1e-11 * (1 + size)
    k = int(np.argmin(values))
    spread = [float(abs(place - arb(float(x[k]))).lower()) for place in found.places]
    tied = np.sort(values)[:2]
    assert min(spread) < 0.01 or tied[1] - tied[0] < 1e-4 * size


def test_functions_without_enclosures_and_too_few_cells_are_refused():
    pole = BallFunction([lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3])
    with pytest.raises(CertificationError, match="not enclosed near x = "):
        minimise(pole, (-1.0, 3.0))
    with pytest.raises(CertificationError, match="2 cells are not enough; the next one is from"):
        minimise(rastrigin(), (-5.12, 5.3), most_cells=2)


def test_ends_that_are_none_are_refused():
    with pytest.raises(ParameterError, match="ends must be two numbers, the smaller one first"):
        minimise(COSINE, (3.0, 3.0))
    with pytest.raises(ParameterError, match="ends must be two numbers"):
        minimise(COSINE, (math.nan, 3.0))
    with pytest.raises(ParameterError, match="beyond= must bound the function"):
        minimise(COSINE, (0.0, math.inf))
