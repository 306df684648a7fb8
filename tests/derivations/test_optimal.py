"""Optima of spiked random features, of readouts and of letters, over any of their parameters."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import giantstep as gs
from giantstep.derivations.sensitivities import ValuesQuestion
from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
from giantstep.errors import ParameterError
from giantstep.numeric.optimum import Axis

BOUNDS = {"ridge": (1e-2, 10), "step_size": (1, 5)}


@pytest.fixture(scope="module")
def model():
    return SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)


def test_the_best_ridge_is_a_zero_of_the_derivative_and_a_minimum(model):
    found = model.optimum(over="ridge", alpha=1.5)
    assert found.is_interior and found.second_derivative > 0 and len(found.minima) == 1
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


def test_an_optimum_at_the_boundary_is_reported_as_such(model):
    low = model.optimum(over="ridge", alpha=1.5, bounds=(1.0, 100.0))
    assert low.ridge == 1.0 and low.derivative > 0 and low.error == 0
    assert low.kind == (
        "at the boundary ridge = 1: the test error falls towards smaller values of ridge"
    )
    high = model.optimum(over="ridge", alpha=1.5, bounds=(1e-4, 1e-2))
    assert high.ridge == 1e-2 and high.derivative < 0
    assert "falls towards larger values" in str(high)


@pytest.mark.slow
def test_the_best_step_size(model):
    found = model.optimum(over="step_size", alpha=2, ridge=0.05, bounds=(0.5, 10))
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
def test_both_together_agree_with_each_alone(model):
    found = model.optimum(over=["ridge", "step_size"], alpha=1.5, bounds=BOUNDS)
    assert found.is_interior and min(found.eigenvalues) > found.eigenvalue_error > 0
    assert max(map(abs, found.gradient.values())) < 1e-12
    at = replace(model, step_size=found.step_size)
    ridge = at.optimum(over="ridge", alpha=1.5, bounds=BOUNDS["ridge"])
    assert ridge.ridge == pytest.approx(found.ridge, rel=1e-9)
    step = model.optimum(over="step_size", alpha=1.5, ridge=found.ridge, bounds=(1, 5))
    assert step.step_size == pytest.approx(found.step_size, rel=1e-9)
    one = at.solve(alpha=1.5, ridge=found.ridge)
    assert one.test_error == pytest.approx(found.test_error, rel=1e-13)
    # Of the 2 x 2 Hessian the diagonal is that of each alone.
    assert found.hessian[0][0] == pytest.approx(ridge.second_derivative, rel=1e-6)
    assert found.hessian[1][1] == pytest.approx(step.second_derivative, rel=1e-6)
    assert "interior minimum" in str(found)


@pytest.mark.slow
def test_an_optimum_at_a_bound_of_one_parameter(model):
    bounds = {"ridge": (1, 10), "step_size": (3, 5)}
    found = model.optimum(over=["ridge", "step_size"], alpha=1.5, bounds=bounds)
    assert found.ridge == 1 and not found.is_interior
    assert found.best.sides["ridge"] == "lower" and "ridge at its lower bound" in str(found)
    assert found.gradient["ridge"] > 0


@pytest.mark.slow
def test_an_order_parameter_of_given_features():
    given = SpikedRandomFeatures.from_parameters(
        "erf", "erf", spike_strength=1.2, bulk_variance=1.1, alignment=0.5
    )
    found = given.optimum(
        of="m", over="alignment", alpha=1.5, ridge=0.1, bounds=(0.1, 0.9), maximum=True
    )
    assert found.alignment == 0.9 and "the m rises towards larger values" in found.kind
    at = SpikedRandomFeatures.from_parameters(
        "erf", "erf", spike_strength=1.2, bulk_variance=1.1, alignment=0.9
    )
    assert found.m == pytest.approx(at.solve(alpha=1.5, ridge=0.1).order_parameters["m"])
    wanted = at.sensitivities(alpha=1.5, ridge=0.1)["m", "alignment"]
    assert found.derivative == pytest.approx(wanted, rel=1e-9)


@pytest.mark.slow
def test_digits_of_the_best_ridge(model):
    found = model.optimum(over="ridge", alpha=1.5, digits=30)
    eps = 2e-15
    assert float(found.ridge) == pytest.approx(
        model.optimum(over="ridge", alpha=1.5).ridge, rel=eps
    )
    more = model.optimum(over="ridge", alpha=1.5, digits=40)
    assert abs(found.ridge / more.ridge - 1) < 1e-29


# What is called differently from now on: the old call, and the new one.
RENAMED = {
    "optimal_ridge": (
        lambda m: m.optimal_ridge(1.5, BOUNDS["ridge"]),
        lambda m: m.optimum(over="ridge", alpha=1.5, bounds=BOUNDS["ridge"]),
    ),
    "optimal_step_size": (
        lambda m: m.optimal_step_size(1.5, 0.1, (1, 5)),
        lambda m: m.optimum(over="step_size", alpha=1.5, ridge=0.1, bounds=(1, 5)),
    ),
    "optimal_hyperparameters": (
        lambda m: m.optimal_hyperparameters(1.5, ridge_bounds=(0.01, 10), step_bounds=(1, 5)),
        lambda m: m.optimum(over=["ridge", "step_size"], alpha=1.5, bounds=BOUNDS),
    ),
    "optimal_curve": (
        lambda m: m.optimal_curve([1.5], ridge_bounds=(0.01, 10), step_bounds=(1, 5)),
        lambda m: m.optimum(over=["ridge", "step_size"], alpha=[1.5], bounds=BOUNDS),
    ),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name != "optimal_ridge")) for name in RENAMED],
)
def test_former_names_answer_the_same(model, name):
    old, new = RENAMED[name]
    with pytest.warns(DeprecationWarning, match=rf"{name}\(\) is written optimum\(over="):
        found = old(model)
    wanted = new(model)
    if name == "optimal_curve":
        assert found.identical(wanted)
    else:
        assert found == wanted


GIVEN = SpikedRandomFeatures.from_parameters(
    "erf", "erf", spike_strength=1, bulk_variance=1, alignment=0.5
)
NO_SPIKE = SpikedRandomFeatures("He(3, z)/6", "erf", step_size=0)
BOTH = ["ridge", "step_size"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"alpha": 0}, "alpha must be positive"),
        ({"alpha": None}, r"alpha is missing: give alpha=\.\.\., or optimise"),
        ({"over": "beta", "bounds": (1, 2)}, "ridge is missing"),
        ({"over": "beta", "ridge": 1}, "where to look for beta"),
        ({"bounds": (2, 1)}, "ascending order"),
        ({"bounds": (0, 1)}, "bounds must be positive"),
        ({"bounds": 3}, "two values of ridge"),
        ({"over": BOTH, "bounds": (1, 2)}, "go by their names"),
        ({"over": BOTH, "alpha": -1}, "alpha must be positive"),
        ({"over": BOTH, "ridge": 1}, "over names ridge"),
        ({"over": "width"}, "no parameter of spiked random features"),
        ({"of": "nothing"}, "no output of spiked"),
        ({"over": "step_size", "ridge": 1, "digits": 20}, "digits refine"),
        ({"maximum": True, "digits": 20}, "a minimum; leave digits out"),
        ({"model": GIVEN, "over": "step_size", "ridge": 1}, "takes no step"),
        ({"model": GIVEN, "over": BOTH}, "takes no step"),
        ({"model": NO_SPIKE, "over": "step_size", "ridge": 1}, "no spike"),
    ],
)
def test_bad_arguments_are_refused(model, asked, message):
    asked = {"model": model, "over": "ridge", "alpha": 1, **asked}
    asked = {name: value for name, value in asked.items() if value is not None}
    with pytest.raises(ParameterError, match=message):
        asked.pop("model").optimum(**asked)


# ---------------------------------------------------------------------- readouts and letters


def test_letters_of_one_kind_have_the_optimum_of_one_letter():
    letters = gs.VocabularyFeatures.from_parameters(
        "erf", "sin", spike_strengths=[1.2], bulk_variances=[1.1], fractions=[1.0], alignment=0.9
    )
    one = SpikedRandomFeatures.from_parameters(
        "erf", "sin", spike_strength=1.2, bulk_variance=1.1, alignment=0.9
    )
    asked = {"over": "ridge", "alpha": 2, "noise_variance": 0.2, "bounds": (0.05, 5)}
    found, wanted = letters.optimum(**asked), one.optimum(**asked)
    assert found.is_interior and not found.exact and "differenced" in found.rests_on
    assert found.ridge == pytest.approx(wanted.ridge, abs=found.error + wanted.error)
    assert found.ridge == pytest.approx(wanted.ridge, rel=1e-7)
    assert found.second_derivative == pytest.approx(wanted.second_derivative, rel=1e-4)


@pytest.mark.slow
def test_the_square_loss_as_a_convex_loss_has_the_same_optimum():
    features = SpikedRandomFeatures.from_parameters(
        "erf", "sin", spike_strength=1.2, bulk_variance=1.1, alignment=0.9, noise_variance=0.2
    )
    asked = {"over": "ridge", "alpha": 2, "bounds": (0.05, 5)}
    found = features.with_loss("square").optimum(**asked)
    wanted = features.optimum(**asked)
    assert found.ridge == pytest.approx(wanted.ridge, abs=found.error + wanted.error)
    assert found.ridge == pytest.approx(wanted.ridge, rel=1e-6)


def test_points_without_a_solution_are_no_values_of_a_scan(monkeypatch):
    def solved(self, columns, rtol, raising):
        n = len(columns["ridge"])
        rows = {"test_error": np.full(n, 2.0)}
        return SimpleNamespace(values=rows, errors=rows, converged=columns["ridge"] > 0.5)

    monkeypatch.setattr(gs.ConvexReadout, "_solve_rows", solved)
    readout = SpikedRandomFeatures("erf", "sin").with_loss("square")
    objective, exact = ValuesQuestion(readout).objective(
        "test_error", [Axis("ridge", 0.1, 1.0)], {"alpha": 2.0}
    )
    values, _ = objective.values(np.array([[0.2], [0.8]]))
    assert not exact and np.isnan(values[0]) and values[1] == 2.0


@pytest.mark.slow
def test_two_parameters_of_a_readout_are_searched_by_values_of_many_penalties_at_once(monkeypatch):
    features = SpikedRandomFeatures("erf", "sin", step_size=2, alpha0=4, noise_variance=0.1)
    readout = features.with_loss("square")
    asked = []
    solve = gs.ConvexReadout.solve_many

    def solve_many(self, *, ridge, **options):
        asked.append((len(ridge), options["rtol"]))
        return solve(self, ridge=ridge, **options)

    monkeypatch.setattr(gs.ConvexReadout, "solve_many", solve_many)
    question = {"over": [*BOUNDS], "alpha": 1.5, "bounds": BOUNDS}
    found, wanted = readout.optimum(**question), features.optimum(**question)
    assert found.kind == wanted.kind and found.scan == wanted.scan
    for name, value in wanted.point.items():
        assert found.point[name] == pytest.approx(value, abs=found.errors[name] + 1e-9)
    # The scan has a call for each step size; descents are solved to many digits.
    rough = [count for count, rtol in asked if rtol >= 1]
    assert rough == [wanted.scan[0]] * wanted.scan[1]


@pytest.mark.slow
def test_sample_complexities_and_penalties_of_readouts_go_in_pairs():
    readout = SpikedRandomFeatures("erf", "sin", step_size=2, alpha0=4).with_loss("square")
    alphas, ridges = [2.0, 0.5, 2.0], [0.1, 3.0, 1e-4]
    together = readout.solve_many(alpha=alphas, ridge=ridges).values["test_error"]
    alone = [
        readout.solve(alpha=a, ridge=r).test_error for a, r in zip(alphas, ridges, strict=True)
    ]
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    np.testing.assert_allclose(
        readout.solve_many(alpha=2.0, ridge=ridges).values["test_error"][::2], alone[::2]
    )
    with pytest.raises(ParameterError, match="one length, or be numbers, got 3 and 2 values"):
        readout.solve_many(alpha=alphas, ridge=ridges[:2])
