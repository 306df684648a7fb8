"""The risk of one gradient step given its first layer: closed forms, traces, limits, refusals."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep import OneGradientStep, paper_ridge
from giantstep.derivations.one_gradient_step.conditional_risk import (
    conditional_prediction,
    conditional_risk,
    effective_ridge,
    eigenvalue,
    floor,
    mode_functions,
    slope,
)
from giantstep.derivations.one_gradient_step.simulated import one_step_network
from giantstep.errors import ParameterError
from giantstep.numeric.networks.network import Training
from giantstep.numeric.networks.readout import TrainedNetwork
from giantstep.symbolic.systems.random_matrix import MarchenkoPasturAverage
from giantstep.symbolic.systems.ridge_equivalent import FeatureCovariance

from .one_step_cases import MODEL


def test_modes_average_to_the_closed_form_of_random_layers():
    # Aspect ratio N/d: eigenvalues of W Wᵀ (d × d) follow the law of ratio d/N, times N/d.
    modes, beta = mode_functions(), sp.Symbol("beta", positive=True)
    x, b, v, nu = (
        sp.Symbol(str(s), positive=True) for s in (eigenvalue, slope, floor, effective_ridge)
    )
    modes = {
        name: f.xreplace({eigenvalue: x, slope: b, floor: v, effective_ridge: nu})
        for name, f in modes.items()
    }
    covariance = FeatureCovariance(b, v, beta, nu)
    values = {b: sp.Rational(2, 5), v: sp.Rational(1, 20), nu: sp.Rational(1, 7)}
    for ratio in (sp.Rational(3, 2), sp.Rational(2, 3)):
        at = {**values, beta: ratio}

        def average(f, scale, law, at=at):
            return MarchenkoPasturAverage(f.xreplace({x: scale * x}).xreplace(at), x, law).evalf(20)

        inputs = {
            "unexplained": covariance.unexplained(),
            "bias": covariance.bias(),
        }
        for name, closed in inputs.items():
            found = average(modes[name], ratio, 1 / ratio)
            assert abs(found - closed.xreplace(at).evalf(20)) < 1e-15
        features = {
            "used": covariance.degrees_of_freedom,
            "used_square": covariance.degrees_of_freedom_2,
        }
        for name, closed in features.items():
            found = average(modes[name], sp.S.One, ratio)
            assert abs(found - closed.xreplace(at).evalf(20)) < 1e-15


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(400, 600), (600, 400)])
@pytest.mark.parametrize("spiked", [False, True])
def test_large_random_layers_have_the_risk_of_the_limit(shape, spiked):
    dimension, width = shape
    model = OneGradientStep(
        "tanh", "sin", alpha=1.2, beta=width / dimension, step_size=3, noise_variance=0.1
    )
    network = replace(one_step_network(model, dimension, layer="theory"), steps=int(spiked))
    layers = [network.train(seed).rows.T for seed in range(6)]
    found = [conditional_risk(model, weights, ridge=0.05) for weights in layers]
    limit = model.risk(ridge=0.05)
    name = "trained" if spiked else "initial"
    for quantity, value in {
        "risk": getattr(limit, name),
        "bias": getattr(limit, f"bias_{name}"),
        "training_error": getattr(limit, f"training_error_{name}"),
        "objective": getattr(limit, f"objective_{name}"),
        "effective_ridge": limit.effective_ridge,
        "ridge_derivative": limit.ridge_derivative,
    }.items():
        mean = np.mean([getattr(risk, quantity) for risk in found])
        # A single layer is off by 2 or 3 %.
        assert mean == pytest.approx(value, rel=0.03), quantity


def by_traces(model, weights, paper_ridge):
    """The equivalent as printed, with full matrices, for λ_B > 0."""
    student, teacher = model.student_moments, model.teacher_moments
    d, width = weights.shape
    n = model.alpha * d
    sigma = student.linear**2 * weights.T @ weights + student.residual * np.eye(width)
    c = student.linear * teacher.linear * weights[0]

    def left(nu):
        return nu * (1 - np.trace(np.linalg.solve(sigma + nu * np.eye(width), sigma)) / n)

    low, high = paper_ridge, paper_ridge + np.trace(sigma) / n
    for _ in range(200):
        nu = (low + high) / 2
        low, high = (nu, high) if left(nu) < paper_ridge else (low, nu)
    resolvent = np.linalg.inv(sigma + nu * np.eye(width))
    derivative = 1 - np.trace(sigma @ resolvent @ sigma @ resolvent) / n
    energy = model.label_square - c @ resolvent @ c
    test = (energy - nu * c @ resolvent @ resolvent @ c) / derivative
    return {
        "risk": test - model.noise_variance,
        "training_error": (paper_ridge / nu) ** 2 * test,
        "objective": paper_ridge / nu * energy,
        "effective_ridge": nu,
        "ridge_derivative": derivative,
    }


@pytest.mark.parametrize("shape", [(30, 45), (30, 30), (40, 20)])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_conditional_risk_is_that_of_the_traces(shape, alpha):
    weights = np.random.default_rng(0).standard_normal(shape) / math.sqrt(shape[0])
    weights += 2 * np.outer(np.eye(1, shape[0])[0], np.ones(shape[1])) / math.sqrt(shape[1])
    model = OneGradientStep(
        "tanh", "sin", alpha=alpha, beta=shape[1] / shape[0], step_size=1, noise_variance=0.2
    )
    found = conditional_risk(model, weights, ridge=paper_ridge(0.01))
    for name, value in by_traces(model, weights, 0.01).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-9), name
    assert found.bias + found.variance == pytest.approx(found.risk, rel=1e-14)
    assert found.paper_ridge == pytest.approx(0.01, rel=1e-14)


def test_conditional_risk_does_not_depend_on_the_frame():
    generator = np.random.default_rng(2)
    weights = generator.standard_normal((20, 30)) / math.sqrt(20)
    rotation = np.linalg.qr(generator.standard_normal((20, 20)))[0]
    one = conditional_risk(MODEL, weights, ridge=0.1)
    turned = conditional_risk(MODEL, rotation @ weights, ridge=0.1, direction=-3 * rotation[:, 0])
    assert turned.risk == pytest.approx(one.risk, rel=1e-12)


@settings(max_examples=25)
@given(
    st.floats(0.02, 50),
    st.integers(2, 12),
    st.integers(1, 12),
    st.floats(-12, 6),
    st.sampled_from(["tanh", "z", "He(3, z)"]),
    st.integers(0, 2**32 - 1),
)
def test_conditional_risk_is_finite_and_consistent(alpha, d, width, log_ridge, student, seed):
    model = OneGradientStep(
        student, "tanh", alpha=alpha, beta=width / d, step_size=1, noise_variance=0.1
    )
    weights = np.random.default_rng(seed).standard_normal((d, width)) / math.sqrt(d)
    found = conditional_risk(model, weights, ridge=10.0**log_ridge)
    values = [getattr(found, name) for name in ("risk", "bias", "variance", "training_error")]
    assert np.isfinite(values).all() and min(values) >= 0
    assert found.risk >= model.best_linear_error * (1 - 1e-12)
    assert 0 <= found.training_error <= found.objective * (1 + 1e-9)


@pytest.mark.parametrize(("student", "alpha"), [("tanh", 0.5), ("tanh", 3), ("z", 0.4), ("z", 3)])
def test_no_penalty_is_the_limit_of_small_ones(student, alpha):
    model = OneGradientStep(student, "tanh", alpha=alpha, beta=0.6, step_size=1, noise_variance=0.1)
    weights = np.random.default_rng(0).standard_normal((50, 30)) / math.sqrt(50)
    limit = conditional_risk(model, weights, ridge=0.0)
    small = conditional_risk(model, weights, ridge=1e-11)
    for name in ("risk", "bias", "variance", "ridge_derivative"):
        assert getattr(limit, name) == pytest.approx(getattr(small, name), rel=1e-6), name
    if alpha < 0.6:
        assert limit.training_error == limit.objective == 0


def test_the_peak_without_a_penalty_is_infinite():
    model = OneGradientStep("tanh", "tanh", alpha=1.5, beta=1.5, step_size=1)
    weights = np.random.default_rng(0).standard_normal((20, 30)) / math.sqrt(20)
    assert conditional_risk(model, weights, ridge=0.0).risk == math.inf
    assert conditional_risk(model, weights, ridge=1e-12).risk > 100


def test_predictions_are_measurements_that_can_be_sent():
    trained = TrainedNetwork(Training(one_step_network(MODEL, 20), 2))
    prediction = conditional_prediction(MODEL, 40, [0.1, 0.2])
    before = prediction(trained)
    after = pickle.loads(pickle.dumps(prediction))(trained)
    for name in ("risk", "training_error", "objective"):
        np.testing.assert_array_equal(before[f"predicted_{name}"], after[f"predicted_{name}"])
        direct = [
            getattr(conditional_risk(MODEL, trained.layer.rows.T, ridge=ridge), name)
            for ridge in (0.1, 0.2)
        ]
        np.testing.assert_allclose(before[f"predicted_{name}"], direct, rtol=1e-12)
    others = [
        conditional_prediction(MODEL, *changed) for changed in ((41, [0.1, 0.2]), (40, [0.1]))
    ]
    assert len({prediction.digest, *(other.digest for other in others)}) == 3


@pytest.mark.parametrize(
    ("weights", "options", "said"),
    [
        (np.ones((20, 30)), {}, "ridge must be given"),
        (np.ones((20, 30)), {"ridge": 1, "paper_ridge": 1}, "give the penalty once"),
        (np.ones((20, 30)), {"ridge": -1}, "ridge must be >= 0"),
        (np.ones((20, 30)), {"ridge": "x"}, "ridge must be a number"),
        (np.ones((20, 30)), {"ridge": [0.1, 0.2]}, "ridge must be a number"),
        (np.ones((20, 30)), {"ridge": "1"}, "ridge must be a number"),
        (np.ones((30, 20)), {"ridge": 1}, "the model has beta"),
        (np.ones(20), {"ridge": 1}, r"shape \(d, N\)"),
        (np.ones((1, 1)), {"ridge": 1}, "d >= 2"),
        ("text", {"ridge": 1}, r"shape \(d, N\)"),
        ([[1, 2], [3]], {"ridge": 1}, r"shape \(d, N\)"),
        (np.full((20, 30), np.nan), {"ridge": 1}, "finite"),
        (np.full((20, 30), 1e200), {"ridge": 1}, "squares overflow"),
        (np.ones((20, 30)) * 1j, {"ridge": 1}, "real"),
        (np.ones((20, 30)), {"ridge": 1, "direction": np.ones(3)}, "direction must be"),
        (np.ones((20, 30)), {"ridge": 1, "direction": np.zeros(20)}, "direction must be"),
        (np.ones((20, 30)), {"ridge": 1, "direction": "e1"}, "direction must be"),
    ],
)
def test_wrong_layers(weights, options, said):
    with pytest.raises(ParameterError, match=said):
        MODEL.conditional_risk(weights, **options)
