"""Optima of any output of any kernel over any of its parameters."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.kernels.arguments import Tie
from giantstep.derivations.kernels.sensitivities import KernelQuestion
from giantstep.derivations.mean_field.ridge_regression import ridge_regression
from giantstep.derivations.optima import Optimum
from giantstep.errors import ConvergenceError, ParameterError
from giantstep.numeric.optimum import Axis
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

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


def test_an_optimum_is_stored_and_read(regression):
    found = regression.optimum(over=["ridge", "alpha"], bounds={"alpha": (1, 3)},
                               signal_power=1.6, noise_variance=0.4)  # fmt: skip
    assert Optimum.from_json(found.to_json()) == found
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
        (
            {"over": "alpha", "bounds": (1, 2)},
            r"alpha, which is given as well \(alpha=2",
        ),
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
    with pytest.raises(ParameterError, match=message):
        regression.optimum(**{**AT, **asked})


def test_missing_parameters_and_bounds_are_named(regression, bowl):
    with pytest.raises(ParameterError, match="needs more parameters: noise_variance"):
        regression.optimum(over="ridge", alpha=2, signal_power=1)
    with pytest.raises(ParameterError, match=r"where to look for alpha, as in bounds={'alpha'"):
        regression.optimum(over="alpha", ridge=1, signal_power=1, noise_variance=0.1)
    with pytest.raises(ParameterError, match="bounds of noise_variance must be >= 0"):
        regression.optimum(over="noise_variance", bounds=(-1, 1), ridge=1, signal_power=1, alpha=1)
    with pytest.raises(ParameterError, match="q does not depend on a: it has no optimum"):
        bowl.optimum(of="q", over="a", b=1, bounds=(0, 1))
