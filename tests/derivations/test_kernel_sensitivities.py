"""Derivatives of any system's solution: closed forms, thermodynamics, differences, refusals."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.kernels.arguments import Tie
from giantstep.derivations.kernels.sensitivities import KernelQuestion
from giantstep.derivations.mean_field import ridge_regression as ridge_model
from giantstep.derivations.mean_field.gaussian_covariates import gaussian_covariates
from giantstep.derivations.mean_field.logistic_regression import (
    logistic_regression,
    support_vector_machine,
)
from giantstep.derivations.mean_field.ridge_regression import ridge_regression
from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick
from giantstep.errors import ConvergenceError, ParameterError
from giantstep.numeric.optimum import Axis
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


# ---------------------------------------------------------------------- optima


AT = {"alpha": 2, "signal_power": 1.6, "noise_variance": 0.4}


@pytest.fixture(scope="module")
def regression():
    return gs.lower(ridge_regression())


@pytest.fixture(scope="module")
def bowl():
    # A known quadratic form, above the number q = exp(-q).
    a, b, q = sp.symbols("a b q", real=True)
    return gs.lower(
        SaddlePointSystem.from_fixed_point(
            {q: sp.exp(-q)},
            name="bowl",
            parameters=(a, b),
            outputs={"height": q + (a - 1) ** 2 + (a - 1) * (b + 2) + 3 * (b + 2) ** 2},
        )
    )


def test_a_quadratic_form_of_a_user(bowl):
    found = bowl.optimum(of="height", over=["a", "b"], bounds={"a": (-3, 4), "b": (-5, 5)})
    assert (found.a, found.b) == pytest.approx((1, -2), abs=1e-13)
    assert found.height == pytest.approx(0.567143290409784, rel=1e-14)
    assert np.array(found.hessian) == pytest.approx(np.array([[2, 1], [1, 6]]), abs=1e-9)
    assert found.is_interior and found.eigenvalues[0] > found.eigenvalue_error
    assert "local minimum of a scan" in str(found) and "d/d a" in found.certificate
    largest = bowl.optimum(of="height", over="a", b=-2, bounds=(-3, 4), maximum=True)
    assert largest.a == -3 and largest.kind.endswith("rises towards smaller values of a")
    assert [m.point["a"] for m in largest.other_minima] == [4]
    with pytest.raises(ParameterError, match="q does not depend on a: it has no optimum"):
        bowl.optimum(of="q", over="a", b=1, bounds=(0, 1))
    assert "other local maxima  4" in str(largest)


def test_the_best_penalty_of_ridge_regression_is_noise_over_signal(regression):
    found = regression.optimum(over="ridge", **AT)
    assert found.ridge == pytest.approx(0.25, abs=found.error) and found.error < 1e-12
    assert found.ridge == pytest.approx(0.25, rel=1e-12)
    # There the error is the noise times V.
    at = regression.solve(ridge=0.25, **AT)
    assert found.test_error == pytest.approx(0.4 * at.V, rel=1e-13)
    second = regression.sensitivities(ridge=found.ridge * 1.001, **AT)["test_error", "ridge"]
    assert found.second_derivative == pytest.approx(second / (found.ridge * 0.001), rel=1e-2)


def test_gradients_are_those_of_finite_differences_and_of_sensitivities(regression):
    axes = [Axis("ridge", 0.01, 10), Axis("alpha", 0.1, 10)]
    fixed = {"signal_power": 1.6, "noise_variance": 0.4}
    for of in ("test_error", "training_error", "q", "V_hat"):
        objective, exact = KernelQuestion(regression, {}).objective(of, axes, fixed)
        point = np.array([0.3, 1.7])
        found = objective.slopes(point[None], rounding=True)
        for k, name in enumerate(("ridge", "alpha")):
            h = 1e-4 * np.eye(2)[k]
            above, below = objective.values(np.array([point + h, point - h]))[0]
            assert found.gradient[0, k] == pytest.approx((above - below) / 2e-4, rel=1e-6)
            wanted = regression.sensitivities(ridge=0.3, alpha=1.7, **fixed)
            assert found.gradient[0, k] == pytest.approx(wanted[of, name], rel=1e-12)
        assert exact and (found.error < 1e-11).all()


def test_what_follows_from_a_parameter_moves_with_it(bowl):
    # With b = 2a - 1 the height is 15a² + 9a + 3 above q.
    tied = replace(bowl, ties={"b": Tie("a", lambda a, sqrt: 2 * a - 1)})
    found = tied.optimum(of="height", over="a", bounds=(-3, 4))
    assert found.a == pytest.approx(-0.3, abs=1e-13)
    assert found.height == pytest.approx(0.567143290409784 + 1.65, rel=1e-14)
    assert found.second_derivative == pytest.approx(30, rel=1e-9)
    # Given, it stays.
    held = tied.optimum(of="height", over="a", b=-1, bounds=(-3, 4))
    assert held.a == pytest.approx(0.5, abs=1e-13)
    both = tied.optimum(of="height", over=["a", "b"], bounds={"a": (-3, 4), "b": (-5, 5)})
    assert (both.a, both.b) == pytest.approx((1, -2), abs=1e-13)


def test_arrays_are_axes_of_a_dataset(regression):
    found = regression.optimum(
        over="ridge", alpha=[1, 2], noise_variance=[0.2, 0.4, 0.8], signal_power=1, progress=False
    )
    assert found.ridge.dims == ("alpha", "noise_variance")
    assert found.ridge.values == pytest.approx(np.tile([0.2, 0.4, 0.8], (2, 1)), rel=1e-11)
    assert found.attrs["kernel"] == "ridge_regression" and found.attrs["signal_power"] == 1
    assert bool(found.ridge_is_interior.all()) and (found.minima == 1).all()


def test_what_is_done_is_kept_when_a_point_fails():
    # Beyond a = 1/e there is no solution, whatever the other parameter.
    a, b, q = sp.symbols("a b q", positive=True)
    kernel = gs.lower(
        SaddlePointSystem.from_fixed_point(
            {q: a * sp.exp(q)},
            name="fold",
            parameters=(a, b),
            outputs={"height": q + sp.log(b) ** 2},
            start={q: sp.Rational(1, 10)},
        )
    )
    with pytest.raises(ConvergenceError, match=r"at a = 0\.5: there is no solution") as failure:
        kernel.optimum(of="height", over="b", bounds=(0.1, 10), a=[0.2, 0.5], progress=False)
    done = failure.value.state
    assert float(done.b[0]) == pytest.approx(1, rel=1e-12) and np.isnan(float(done.b[1]))


def test_an_optimum_says_at_which_bounds_it_is(regression):
    found = regression.optimum(over=["ridge", "alpha"], bounds={"alpha": (1, 3)},
                               signal_power=1.6, noise_variance=0.4)  # fmt: skip
    assert found.best.sides == {"ridge": "", "alpha": "upper"} and len(found.hessian) == 1
    assert found.kind == "at the boundary: alpha at its upper bound"
    with pytest.raises(ParameterError, match="value is that of one parameter"):
        _ = found.value
    with pytest.raises(AttributeError, match="over ridge, alpha has no 'beta'"):
        _ = found.beta


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"over": "ridge", "of": "error"}, "no output of ridge_regression is named 'error'"),
        ({"over": "ridge", "of": 3}, "of must be the name of an output, got 3"),
        ({"over": "lambda"}, "no parameter of ridge_regression is named 'lambda'"),
        ({"over": []}, "over must name parameters"),
        ({"over": 3}, "over must name parameters"),
        ({"over": ["ridge", "ridge"]}, "over must not repeat"),
        ({"over": "alpha", "bounds": (1, 2)}, r"alpha, which is given as well \(alpha=2"),
        ({"over": "alpha", "alpha": None, "ridge": 1}, r"look for alpha, as in bounds={'alpha'"),
        (
            {"over": "noise_variance", "bounds": (-1, 1), "ridge": 1, "noise_variance": None},
            "bounds of noise_variance must be >= 0",
        ),
        ({"over": "ridge", "noise_variance": None}, "needs more parameters: noise_variance"),
        ({"over": "ridge", "bounds": (2, 1)}, r"ascending order, got \(2, 1\)"),
        ({"over": "ridge", "bounds": (0, 1)}, "bounds must be positive"),
        ({"over": "ridge", "bounds": (1, np.inf)}, "bounds must be"),
        ({"over": "ridge", "bounds": {"alpha": (1, 2)}}, "no parameter that bounds are for"),
        ({"over": "ridge", "bounds": "wide"}, "bounds must be two values of ridge"),
        ({"over": "ridge", "digits": 20}, "no parameter of ridge_regression is named 'digits'"),
        ({"over": "ridge", "maximum": 1}, "maximum must be True or False"),
        ({"over": "ridge", "alpha": -1}, "alpha must be positive"),
        ({"over": "ridge", "alpha": [1, -1]}, "alpha must be positive"),
    ],
)
def test_wrong_questions_are_refused(regression, asked, message):
    asked = {name: value for name, value in {"ridge": None, **AT, **asked}.items()
             if value is not None}  # fmt: skip
    with pytest.raises(ParameterError, match=message):
        regression.optimum(**asked)
