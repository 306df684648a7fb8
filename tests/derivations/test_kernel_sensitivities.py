"""Derivatives of any system's solution: closed forms, thermodynamics, differences, refusals."""

import pickle

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.mean_field import ridge_regression as ridge_model
from giantstep.derivations.mean_field.gaussian_covariates import gaussian_covariates
from giantstep.derivations.mean_field.logistic_regression import (
    logistic_regression,
    support_vector_machine,
)
from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick
from giantstep.errors import ConvergenceError, ParameterError
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

POINT = {"alpha": 1.5, "ridge": 0.3, "signal_power": 1.2, "noise_variance": 0.2}
SYMBOLS = {code: x for x, code in ridge_model.IDENTIFIERS.items()}


@pytest.fixture(scope="module")
def ridge_kernel():
    return gs.lower(ridge_model.ridge_regression())


@pytest.fixture(scope="module")
def spin_glass():
    return gs.lower(sherrington_kirkpatrick())


def exact(point):
    """Derivatives of the closed form to 40 digits; floats as the binary numbers that they are."""
    values = {SYMBOLS[n]: sp.Rational(v) for n, v in point.items()}
    return {
        (output, name): form.diff(SYMBOLS[name]).xreplace(values).evalf(40)
        for output, form in ridge_model.closed_form().items()
        for name in point
    }


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"noise_variance": 0.0},
        {"ridge": 1e-8},
        {"ridge": 1e4},
        {"alpha": 1e-4},
        {"alpha": 1e5},
        {"alpha": 1.0, "ridge": 1e-8},  # the interpolation peak: dE/dalpha changes sign there
        {"alpha": 1.0001, "ridge": 1e-10},
        {"alpha": 0.5, "ridge": 1e-8, "noise_variance": 0.0},  # terms of 6e7 cancel
    ],
    ids=str,
)
def test_closed_form_within_the_estimated_errors(ridge_kernel, change):
    point = {**POINT, **change}
    found = ridge_kernel.sensitivities(**point)
    for key, value in exact(point).items():
        assert abs(float(value - found[key])) <= found.error(*key), key


def test_fifty_digits_of_the_closed_form(ridge_kernel):
    point = {**POINT, "alpha": 1.25, "ridge": 0.5, "signal_power": 1.0, "noise_variance": 0.25}
    found = ridge_kernel.sensitivities(**point, wrt="ridge", digits=50)
    expected = ridge_model.closed_form()["test_error"].diff(SYMBOLS["ridge"])
    value = expected.xreplace({SYMBOLS[n]: sp.Rational(v) for n, v in point.items()}).evalf(60)
    assert abs(sp.Float(str(found["test_error", "ridge"]), 60) / value - 1) < sp.Float("1e-49")
    assert found.parameters == ("ridge",) and "50 digits" in str(found)
    assert pickle.loads(pickle.dumps(found))["V", "ridge"] == found["V", "ridge"]


def test_free_energy_generates_the_magnetisation(spin_glass):
    # The free energy is stationary in q, so that its derivative in the field is the partial one.
    found = spin_glass.sensitivities(beta=1.5, h=0.3)
    point = spin_glass.solve(beta=1.5, h=0.3)
    slack = found.error("free_energy", "h") + point.errors["magnetisation"]
    assert abs(found["free_energy", "h"] + point.magnetisation) <= slack
    # And s = -df/dT = beta^2 df/dbeta.
    slack = 1.5**2 * found.error("free_energy", "beta") + point.errors["entropy"]
    assert abs(1.5**2 * found["free_energy", "beta"] - point.entropy) <= slack


def test_what_vanishes_by_symmetry_spoils_no_other_error(spin_glass):
    # Without a field q is even in it: dq/dh is rounding, and says nothing about the others.
    found = spin_glass.sensitivities(beta=3.0, h=0.0)
    assert abs(found["q", "h"]) <= found.error("q", "h") < 1e-12
    assert found.error("q", "beta") < 1e-12
    # In zero field the susceptibility is beta (1 - q) beyond what q changes.
    assert found["magnetisation", "h"] == pytest.approx(3 * (1 - spin_glass.solve(beta=3, h=0).q))


@pytest.mark.slow
def test_a_kink_has_no_derivative(spin_glass):
    # Above the transition sqrt(q) = beta |h|/sqrt(1 - beta^2): slopes on both sides are 0.58.
    found = spin_glass.sensitivities(beta=0.5, h=0.0)
    assert found.error("sqrt_q", "h") > 0.5
    assert found["magnetisation", "h"] == pytest.approx(0.5, abs=1e-12)


def differences(kernel, point, name, h, **options):
    ends = [
        kernel.solve(**{**point, name: point[name] + k * h}, **options).values
        for k in (2, 1, -1, -2)
    ]
    return {
        o: (-ends[0][o] + 8 * ends[1][o] - 8 * ends[2][o] + ends[3][o]) / (12 * h) for o in ends[0]
    }


def compare(kernel, point, **options):
    found = kernel.sensitivities(**point, **options)
    for name in found.parameters:
        for output, slope in differences(kernel, point, name, 1e-4, **options).items():
            # Rounding over h is 1e-11 of the unknowns, some of which are 10.
            assert found[output, name] == pytest.approx(slope, rel=1e-8, abs=1e-9), (output, name)


def test_systems_with_data():
    omega = np.random.default_rng(0).uniform(0.2, 3, 12)
    data = {"omega": omega, "t": omega / 2}
    compare(gs.lower(gaussian_covariates()), {**POINT, "signal_power": 3.0}, data=data)


@pytest.mark.slow
@pytest.mark.parametrize("make", [logistic_regression, support_vector_machine])
def test_systems_with_a_proximal_operator(make):
    point = {"alpha": 2.0, "ridge": 0.1, "signal_power": 1.0, "noise_variance": 0.1}
    compare(gs.lower(make()), point)


@pytest.mark.slow
def test_digits_of_a_system_with_quadrature(spin_glass):
    found = spin_glass.sensitivities(beta=1.5, h=0.3)
    precise = spin_glass.sensitivities(beta=1.5, h=0.3, digits=50)
    for key in found:
        assert abs(float(found[key] - precise[key])) <= found.error(*key), key
    m = spin_glass.solve(beta=1.5, h=0.3, digits=50).magnetisation
    assert abs(precise["free_energy", "h"] + m) < 1e-49


@pytest.mark.slow
def test_tied_parameters_follow():
    model = gs.SpikedRandomFeatures.from_parameters(
        "erf", "erf", spike_strength=0.8, bulk_variance=1.2, alignment=0.7
    )
    own = model.sensitivities(alpha=1.5, ridge=0.1)
    found = model.kernel().sensitivities(alpha=1.5, ridge=0.1, wrt="alignment")
    for output in ("test_error", "psi", "q1"):
        assert found[output, "alignment"] == pytest.approx(own[output, "alignment"], rel=1e-12)


def test_infinite_derivatives_are_refused():
    # x = sqrt(t) has a solution at t = 0, but no derivative.
    x, t = sp.symbols("x t", nonnegative=True)
    kernel = gs.lower(
        SaddlePointSystem.from_fixed_point({x: sp.sqrt(t)}, name="root", parameters=(t,))
    )
    assert kernel.sensitivities(t=4.0)["x", "t"] == pytest.approx(0.25, rel=1e-15)
    with pytest.raises(ConvergenceError, match="derivatives with respect to t are not finite"):
        kernel.sensitivities(t=0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wrt": "lambda"}, "no parameter of ridge_regression is named 'lambda'"),
        ({"wrt": 3}, "wrt must be names of parameters"),
        ({"wrt": ()}, "wrt must be names of parameters"),
        ({"alpha": -1}, "alpha must be positive"),
        ({"beta": 1}, "named 'beta'"),
        ({"digits": 0}, "digits must be >= 1"),
        ({"data": {}}, "data must be left out"),
    ],
)
def test_refusals(ridge_kernel, options, message):
    with pytest.raises(ParameterError, match=message):
        ridge_kernel.sensitivities(**{**POINT, **options})
    with pytest.raises(ParameterError, match="no output 'risk'"):
        _ = ridge_kernel.sensitivities(**POINT)["risk", "ridge"]


def test_the_parameters_asked_for_are_those_that_are_given(ridge_kernel):
    # Twice the same name is once.
    found = ridge_kernel.sensitivities(**POINT, wrt=("ridge", "alpha", "ridge"))
    assert {name for _, name in found} == {"ridge", "alpha"}
    wanted = exact(POINT)
    for key in (("test_error", "ridge"), ("test_error", "alpha")):
        assert found[key] == pytest.approx(float(wanted[key]), rel=1e-12)
