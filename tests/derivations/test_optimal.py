"""The ridge penalty and the step size with the smallest test error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
from giantstep.derivations.spiked_random_features.optimal import (
    OptimalRidge,
    _Derivatives,
    _minimise,
)
from giantstep.errors import ParameterError


@pytest.fixture(scope="module")
def model():
    return SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)


def test_optimal_ridge_is_a_zero_of_the_derivative_and_a_minimum(model):
    found = model.optimal_ridge(alpha=1.5)
    assert found.is_interior and found.second_derivative > 0
    assert abs(found.derivative) < 1e-14
    searched = minimize_scalar(
        lambda t: model.solve(alpha=1.5, ridge=float(np.exp(t))).test_error,
        bracket=np.log([found.ridge / 2, found.ridge * 2]),
    )
    # Golden section sees differences of 1e-16 only: half the digits of the place.
    assert np.exp(searched.x) == pytest.approx(found.ridge, rel=1e-6)
    assert found.test_error <= searched.fun + 1e-15
    # 20 digits: Newton's method in mpmath on the same derivative.
    assert found.ridge == pytest.approx(0.19768729420751311058, abs=found.error)


@pytest.mark.slow
def test_noisy_ridge_regression_has_an_interior_optimum():
    # A linear student without a spike: ridge regression on p random projections of the input.
    linear = SpikedRandomFeatures.from_parameters(
        "z", "z", spike_strength=0.0, bulk_variance=1.0, alignment=0.0, beta=0.5,
        noise_variance=0.5,
    )  # fmt: skip
    found = linear.optimal_ridge(alpha=2)
    around = [linear.solve(alpha=2, ridge=found.ridge * s).test_error for s in (0.9, 1.1)]
    assert found.is_interior and min(around) > found.test_error


def test_an_optimum_at_the_boundary_is_reported_as_such(model):
    low = model.optimal_ridge(alpha=1.5, bounds=(1.0, 100.0))
    assert low.ridge == 1.0 and low.derivative > 0
    assert low.kind == (
        "at the boundary ridge = 1: the test error falls towards smaller values of ridge"
    )
    high = model.optimal_ridge(alpha=1.5, bounds=(1e-4, 1e-2))
    assert high.ridge == 1e-2 and high.derivative < 0
    assert "falls towards larger values" in str(high)


@pytest.mark.slow
def test_optimal_step_size(model):
    found = model.optimal_step_size(alpha=2, ridge=0.05, bounds=(0.5, 10))
    assert found.is_interior

    def error(step):
        return replace(model, step_size=step).solve(alpha=2, ridge=0.05).test_error

    h = 1e-2
    left, middle, right = (error(found.step_size + k * h) for k in (-1, 0, 1))
    assert left > middle < right
    # Error of the second difference: h^2/12 times a fourth derivative of about 0.01.
    curvature = (left - 2 * middle + right) / h**2
    assert curvature == pytest.approx(found.second_derivative, rel=1e-3)
    assert found.test_error == pytest.approx(middle, rel=1e-12)
    # The derivative along the step is that of the sensitivities.
    total = replace(model, step_size=found.step_size).sensitivities(alpha=2, ridge=0.05)
    assert total["test_error", "step_size"] == pytest.approx(0, abs=1e-13)


@pytest.mark.slow
def test_digits_of_the_optimal_ridge(model):
    found = model.optimal_ridge(alpha=1.5, digits=30)
    eps = 2e-15
    assert float(found.ridge) == pytest.approx(model.optimal_ridge(alpha=1.5).ridge, rel=eps)
    more = model.optimal_ridge(alpha=1.5, digits=40)
    assert abs(found.ridge / more.ridge - 1) < 1e-29


def test_bad_arguments_are_refused(model):
    with pytest.raises(ParameterError, match="alpha must be positive"):
        model.optimal_ridge(alpha=0)
    with pytest.raises(ParameterError, match="bounds must be in ascending order"):
        model.optimal_ridge(alpha=1, bounds=(2, 1))
    with pytest.raises(ParameterError, match="bounds must be positive"):
        model.optimal_ridge(alpha=1, bounds=(0, 1))
    with pytest.raises(ParameterError, match="two values of ridge"):
        model.optimal_ridge(alpha=1, bounds=3)
    given = SpikedRandomFeatures.from_parameters(
        "erf", "erf", spike_strength=1, bulk_variance=1, alignment=0.5
    )
    with pytest.raises(ParameterError, match="takes no step"):
        given.optimal_step_size(alpha=1, ridge=1)


def synthetic(first, second, value):
    """A test error as a function of t = log(ridge), with its derivatives with respect to ridge."""

    def evaluate(points, *, rounding=False):
        x = np.array(points)
        t = np.log(x)
        slope = first(t) / x
        return _Derivatives(value(t), slope, (second(t) - first(t)) / x**2, 1e-15 * (1 + 0 * x))

    return evaluate


def test_of_two_minima_the_lower_one_is_returned_and_the_other_named():
    # (t^2 - 4)^2/16 + t/10: minima at the outer zeros of t^3/4 - t + 1/10.
    evaluate = synthetic(
        lambda t: t**3 / 4 - t + 0.1, lambda t: 3 * t**2 / 4 - 1,
        lambda t: (t**2 - 4) ** 2 / 16 + t / 10,
    )  # fmt: skip
    best = OptimalRidge(**_minimise(evaluate, "ridge", (1e-3, 1e3)))
    left, _, right = sorted(np.roots([0.25, 0, -1, 0.1]))
    assert best.ridge == pytest.approx(np.exp(left), rel=1e-13)
    assert best.other_minima == pytest.approx([np.exp(right)], rel=1e-13)
    assert "other local minima" in str(best) and best.is_interior


def test_a_constant_error_has_no_optimum_inside():
    flat = synthetic(lambda t: 0 * t, lambda t: 0 * t, lambda t: 1 + 0 * t)
    best = OptimalRidge(**_minimise(flat, "ridge", (0.1, 10.0)))
    assert not best.is_interior and "does not depend on ridge" in best.kind
    assert best.rests_on == "float; the exact derivative is nowhere larger than its estimated error"
