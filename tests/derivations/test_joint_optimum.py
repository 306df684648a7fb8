"""Ridge penalty and step size together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import giantstep as gs
from giantstep.derivations.spiked_random_features.joint_optimum import _lowest, _Search
from giantstep.errors import ParameterError

BOUNDS = {"ridge_bounds": (1e-2, 10), "step_bounds": (1, 5)}


@pytest.fixture(scope="module")
def model():
    return gs.SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)


@pytest.mark.slow
def test_both_derivatives_vanish_and_single_optima_agree(model):
    found = model.optimal_hyperparameters(1.5, **BOUNDS)
    assert found.is_interior and len(found.minima) == 1
    assert np.abs(found.best.gradient).max() < 1e-12
    at = replace(model, step_size=found.step_size)
    assert at.optimal_ridge(1.5, (1e-2, 10)).ridge == pytest.approx(found.ridge, rel=1e-9)
    step = model.optimal_step_size(1.5, found.ridge, (1, 5))
    assert step.step_size == pytest.approx(found.step_size, rel=1e-9)
    assert at.solve(alpha=1.5, ridge=found.ridge).test_error == pytest.approx(
        found.test_error, rel=1e-13
    )
    assert "interior minimum" in str(found)


@pytest.mark.slow
def test_gradient_and_hessian_against_differences(model):
    search = _Search(model, 1.5, ((1e-6, 1e6), (0.05, 20)))
    x, h = np.log([0.15, 2.3]), 1e-4
    value, gradient, hessian, _ = search.at(x)

    def error(place):
        ridge, step = np.exp(place)
        return replace(model, step_size=float(step)).solve(alpha=1.5, ridge=float(ridge)).test_error

    assert value == pytest.approx(error(x), rel=1e-14)
    for k, e in enumerate(np.eye(2)):
        assert gradient[k] == pytest.approx(
            (error(x + h * e) - error(x - h * e)) / (2 * h), rel=1e-6
        )
        slopes = (search.at(x + h * e)[1] - search.at(x - h * e)[1]) / (2 * h)
        assert hessian[k] == pytest.approx(slopes, rel=1e-6)


@pytest.mark.slow
def test_an_optimum_at_a_bound_is_reported(model):
    found = model.optimal_hyperparameters(1.5, ridge_bounds=(1, 10), step_bounds=(3, 5))
    assert found.ridge == 1 and not found.is_interior
    assert found.best.sides[0] == "lower" and "ridge at its lower bound" in str(found)
    assert found.best.gradient[0] > 0


@pytest.mark.slow
def test_curve(model):
    curve = model.optimal_curve([0.5, 1.5], **BOUNDS)
    assert curve.test_error.dims == ("alpha",)
    one = model.optimal_hyperparameters(1.5, **BOUNDS)
    assert float(curve.ridge[1]) == pytest.approx(one.ridge, rel=1e-9)
    assert curve.test_error[0] > curve.test_error[1] and bool(curve.ridge_is_interior.all())


def test_lowest_points_of_a_grid():
    grid = np.array([[3.0, 2.0, 3.0, 1.0], [2.0, 5.0, 4.0, 2.0], [0.5, 2.0, 3.0, 3.0]])

    assert set(_lowest(grid)) >= {(2, 0), (0, 3)}


def test_bad_arguments_are_refused(model):
    direct = gs.SpikedRandomFeatures.from_parameters(
        "erf", "erf", spike_strength=1, bulk_variance=1, alignment=0.5
    )
    with pytest.raises(ParameterError, match="takes no step"):
        direct.optimal_hyperparameters(1)
    for bad in ({"ridge_bounds": (2, 1)}, {"step_bounds": (0, 1)}, {"ridge_bounds": 3}):
        with pytest.raises(ParameterError, match="bounds"):
            model.optimal_hyperparameters(1, **bad)
    with pytest.raises(ParameterError, match="alpha"):
        model.optimal_hyperparameters(-1)
    no_spike = gs.SpikedRandomFeatures("He(3, z)/6", "erf", step_size=0)
    with pytest.raises(ParameterError, match="no spike"):
        no_spike.optimal_hyperparameters(1)
