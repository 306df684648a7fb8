"""Fits of a + b/d."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from giantstep.errors import ParameterError
from giantstep.numeric.extrapolation import extrapolate

NUMBER = st.floats(-100, 100)


@given(a=NUMBER, b=NUMBER, errors=st.lists(st.floats(0.01, 10), min_size=3, max_size=6))
def test_exact_means_give_exact_fits(a, b, errors):
    sizes = 50.0 * 2 ** np.arange(len(errors))
    fit = extrapolate(sizes, a + b / sizes, errors)
    scale = 1e-9 * (1 + abs(a) + abs(b))
    assert fit.limit == pytest.approx(a, abs=scale)
    assert fit.slope == pytest.approx(b, abs=1e4 * scale)
    assert fit.chi_squared == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(fit.at(sizes), a + b / sizes, atol=scale)


def test_errors_are_those_of_weighted_least_squares():
    sizes, errors = np.array([100, 150, 300, 500.0]), np.array([0.1, 0.2, 0.05, 0.3])
    values = np.array([1.0, 1.4, 0.8, 1.1])
    fit = extrapolate(sizes, values, errors)
    (slope, limit), covariance = np.polyfit(1 / sizes, values, 1, w=1 / errors, cov="unscaled")
    assert (fit.limit, fit.slope) == pytest.approx((limit, slope))
    assert fit.limit_error == pytest.approx(math.sqrt(covariance[1, 1]))
    assert fit.slope_error == pytest.approx(math.sqrt(covariance[0, 0]))
    residuals = (values - fit.at(sizes)) / errors
    assert fit.chi_squared == pytest.approx(residuals @ residuals)
    assert 0 < fit.probability < 1


def test_two_sizes_leave_no_freedom():
    fit = extrapolate([10, 20], [1.0, 2.0], [0.1, 0.1])
    assert fit.degrees_of_freedom == 0 and math.isnan(fit.probability)
    assert fit.limit == pytest.approx(3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([100], [1], [0.1]), "at least two"),
        (([100, 100], [1, 2], [0.1, 0.1]), "at least two"),
        (([100, 200], [1, 2], [0.1, 0]), "positive"),
        (([100, 200], [1, math.nan], [0.1, 0.1]), "finite"),
        (([100, 200], [1], [0.1, 0.1]), "equally many"),
    ],
)
def test_bad_data_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        extrapolate(*arguments)
