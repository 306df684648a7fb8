"""The risk after one gradient step in every corner of its parameters, and refusals."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from giantstep import OneGradientStep, paper_ridge
from giantstep.derivations.one_gradient_step.risk import model_parameters, risk_kernel
from giantstep.errors import AssumptionError, ConvergenceError, ParameterError

from .one_step_cases import MODEL

# ---------------------------------------------------------------------- every corner


def random_rows(kernel, n, seed=3):
    """Parameters over many orders of magnitude, with n = N, n = d and N = d and nearly so."""
    rng = np.random.default_rng(seed)
    slope = rng.uniform(0.01, 1, n)
    floor = slope * 10 ** rng.uniform(-6, 6, n)
    floor[: n // 50] = 0
    slope[n // 50 : n // 25] = 0
    alpha, beta = 10 ** rng.uniform(-3, 3, n), 10 ** rng.uniform(-3, 3, n)
    kind = rng.integers(0, 9, n)
    near = 1 + 10 ** rng.uniform(-12, -1, n) * rng.choice([-1, 1], n)
    beta = np.where(kind == 0, alpha, beta)
    beta = np.where(kind == 1, alpha * (1 + 1e-15 * rng.integers(-3, 4, n)), beta)
    beta = np.where(kind == 2, alpha * near, beta)
    alpha = np.where(kind == 3, 1.0, alpha)
    alpha = np.where(kind == 4, near, alpha)
    beta = np.where(kind == 5, near, beta)
    ridge = 10 ** rng.uniform(-10, 6, n)
    values = {
        "alpha": alpha,
        "alpha0": np.where(rng.random(n) < 0.1, math.inf, alpha),
        "beta": beta,
        # Half of them in either convention.
        "ridge": np.where(rng.random(n) < 0.5, ridge, ridge * alpha / beta),
        "step_size": 10 ** rng.uniform(-3, 3, n) * (rng.random(n) > 0.05),
        "noise_variance": 10 ** rng.uniform(-6, 3, n) * (rng.random(n) > 0.2),
        "student_linear": np.sqrt(slope),
        "student_residual": floor,
        "teacher_linear": rng.normal(size=n),
        "teacher_residual": 10 ** rng.uniform(-6, 1, n) * (rng.random(n) > 0.2),
    }
    return np.stack([values[name] for name in kernel.parameters], axis=1)


@pytest.mark.filterwarnings("error")
def test_no_parameters_are_too_much():
    kernel = risk_kernel(MODEL)
    rows = random_rows(kernel, 30_000)
    batch = kernel.job(None, None, 1e-11, len(rows))(rows)
    assert batch.converged.all()
    assert batch.residual.max() <= 1e-12
    assert batch.iterations.max() <= 20
    values = batch.values
    for name, column in values.items():
        assert (column >= 0).all(), name
    floor = rows[:, kernel.parameters.index("teacher_residual")]
    assert (values["bias_trained"] >= floor).all()
    assert (values["risk_trained"] >= values["bias_trained"]).all()
    assert (values["ridge_derivative"] <= 1 + 1e-14).all()
    gap = values["risk_initial"] - values["risk_trained"] - values["improvement"]
    assert (np.abs(gap) <= 1e-13 * values["risk_initial"]).all()
    reduced = values["training_error_initial"] >= values["training_error_trained"] * (1 - 1e-14)
    assert reduced.all()


def test_error_estimates_hold_in_every_corner():
    """Against 30 digits at the same binary numbers."""
    import sympy as sp

    kernel = risk_kernel(MODEL)
    rows = random_rows(kernel, 1000, seed=8)
    batch = kernel.job(None, None, 1e-11, len(rows))(rows)
    hardest = np.argsort(-batch.iterations)[:15]
    for k in {*hardest.tolist(), *range(0, 1000, 40)}:
        # A rational number is taken as it is, a float as the decimal that it prints as.
        exact = {
            name: x if math.isinf(x) else sp.Rational(x)
            for name, x in zip(kernel.parameters, rows[k].tolist(), strict=True)
        }
        solution = kernel.solve(digits=30, **exact)
        for name in kernel.outputs:
            error = abs(float(solution[name] - batch.values[name][k]))
            assert error <= batch.errors[name][k] + 1e-300, name


def test_the_root_is_the_admissible_one():
    """Of the quartic in s the solution is the root above the lower bound, at 400 random points."""
    from giantstep.symbolic.systems.ridge_equivalent import ScalarForm

    kernel = risk_kernel(MODEL)
    rows = random_rows(kernel, 1000, seed=1)
    columns = dict(zip(kernel.parameters, rows.T, strict=True))
    batch = kernel.job(None, None, 1e-11, len(rows))(rows)
    usable = np.flatnonzero(columns["student_linear"] > 0)[:400]
    for k in usable:
        slope = columns["student_linear"][k] ** 2
        alpha, beta = mpmath.mpf(columns["alpha"][k]), mpmath.mpf(columns["beta"][k])
        s = 1 / mpmath.mpf(batch.values["inverse_s"][k])
        form = ScalarForm(s, beta, alpha, columns["student_residual"][k] / slope)
        at_zero, at_full = (complex(x).real for x in form.lower_bounds())
        assert s >= max(at_zero, at_full) * (1 - 1e-12)


@settings(max_examples=25, deadline=None)
@given(
    alpha=st.floats(0.05, 50),
    beta=st.floats(0.05, 50),
    ridge=st.floats(1e-8, 1e3),
    step=st.floats(0, 30),
    noise=st.floats(0, 5),
    power=st.integers(-20, 20),
)
def test_invariances(alpha, beta, ridge, step, noise, power):
    """Units of features and of labels play no part."""
    kernel = risk_kernel(MODEL)
    scale = 2.0**power
    given = model_parameters(MODEL) | {
        "alpha": alpha, "beta": beta, "alpha0": alpha, "step_size": step, "noise_variance": noise,
    }  # fmt: skip
    plain = kernel.solve(ridge=ridge, **given)
    features = kernel.solve(
        ridge=ridge * scale**2,
        **given
        | {
            "student_linear": given["student_linear"] * scale,
            "student_residual": given["student_residual"] * scale**2,
            "step_size": step / scale,
        },
    )
    labels = kernel.solve(
        ridge=ridge,
        **given
        | {
            "teacher_linear": given["teacher_linear"] * scale,
            "teacher_residual": given["teacher_residual"] * scale**2,
            "noise_variance": noise * scale**2,
            "step_size": step / scale,
        },
    )
    flipped = kernel.solve(ridge=ridge, **given | {"student_linear": -given["student_linear"]})
    for name in ("risk_trained", "risk_initial", "training_error_trained", "objective_initial"):
        assert features[name] == pytest.approx(plain[name], rel=1e-12)
        assert labels[name] == pytest.approx(plain[name] * scale**2, rel=1e-12)
        assert flipped[name] == plain[name]
    assert plain.improvement >= 0
    assert plain.bias_trained >= given["teacher_residual"]
    larger = kernel.solve(ridge=ridge, **given | {"step_size": 1.5 * step + 0.1})
    assert larger.improvement >= plain.improvement * (1 - 1e-13)


def test_objective_is_training_error_and_penalty():
    """Its derivative by λ_B is |a|²/N, by the envelope theorem."""
    step = 1e-5
    low, here, high = (MODEL.risk(ridge=paper_ridge(x)) for x in (0.05 - step, 0.05, 0.05 + step))
    norm = (high.objective_trained - low.objective_trained) / (2 * step)
    assert here.objective_trained == pytest.approx(
        here.training_error_trained + 0.05 * norm, rel=1e-8
    )


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "ridge must be given"),
        ({"ridge": 1, "paper_ridge": 1}, "give the penalty once"),
        ({"ridge": math.inf}, "ridge must be >= 0 and finite"),
        ({"ridge": True}, "ridge must be a number"),
        ({"ridge": [0.1]}, "ridge must be a number"),
        ({"ridge": 10**400}, "ridge is too large for a float"),
        ({"ridge": 0.1, "digits": 0}, "digits"),
        ({"ridge": 0.1, "digits": 1.5}, "digits"),
        ({"ridge": 0.1, "digits": 10**9}, "digits"),
    ],
)
def test_bad_risk(arguments, message):
    with pytest.raises(ParameterError, match=message):
        MODEL.risk(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "ridge must be given"),
        ({"ridge": []}, "ridge must hold at least one"),
        ({"ridge": [0.1, -1]}, "ridge must be >= 0"),
        ({"ridge": [[0.1]]}, "one-dimensional"),
        ({"ridge": 0.1, "alpha": [1, 0]}, "alpha must be positive"),
        ({"ridge": 0.1, "alpha": "x"}, "alpha must be a number"),
        ({"ridge": 0.1, "beta": [math.nan]}, "beta must be positive"),
        ({"ridge": 0.1, "step_size": -1}, "step_size must be >= 0"),
        ({"ridge": 0.1, "noise_variance": [math.inf]}, "noise_variance must be >= 0"),
        ({"ridge": paper_ridge(1e-300), "alpha": 1e-30}, "range of floats"),
        (
            {"ridge": np.ones(1000), "alpha": np.ones(1000), "step_size": np.ones(1000)},
            "product of ridge, alpha, step_size has 1e\\+09 points; at most 1e\\+08",
        ),
    ],
)
def test_bad_curve(arguments, message):
    with pytest.raises(ParameterError, match=message):
        MODEL.curve(**arguments).to_dataset()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("digits", [None, 20])
@pytest.mark.parametrize(
    "changes",
    [{"alpha": 1e300}, {"beta": 1e-300}, {"step_size": 1e200}, {"noise_variance": 1e308},
     {"alpha0": 1e-300}, {"loss": "full", "step_size": 8e307}],
)  # fmt: skip
def test_beyond_the_range_of_floats(changes, digits):
    model = OneGradientStep("erf", "erf", **{"alpha": 2, "beta": 1.5, "step_size": 2} | changes)
    with pytest.raises(ConvergenceError, match="overflow or underflow"):
        model.risk(ridge=1, digits=digits)
    with pytest.raises(ConvergenceError, match="overflow or underflow"):
        model.curve(ridge=[1, 2]).to_dataset()


def test_the_peak_inside_a_grid_is_named():
    samples = np.linspace(0.5, 2.5, 5)
    with pytest.raises(AssumptionError, match=r"alpha = 1\.5, beta = 1\.5: .* positive ridge"):
        MODEL.curve(ridge=[0, 1], alpha=samples).to_dataset()
    assert np.isfinite(MODEL.curve(ridge=[1e-10, 1], alpha=samples).to_dataset().risk_trained).all()


@pytest.mark.filterwarnings("error")
def test_thirty_orders_of_magnitude_are_not_too_much():
    kernel = risk_kernel(MODEL)
    rng = np.random.default_rng(2)
    rows = np.tile(
        [model_parameters(MODEL).get(name, 1.0) for name in kernel.parameters], (2000, 1)
    )
    for name in ("alpha", "alpha0", "beta", "ridge", "step_size", "noise_variance"):
        rows[:, kernel.parameters.index(name)] = 10 ** rng.uniform(-30, 30, len(rows))
    assert kernel.job(None, None, 1e-11, len(rows))(rows).converged.all()


def test_a_jumping_student_takes_no_step():
    plain = OneGradientStep("sign", "erf", alpha=2, beta=1.5, step_size=0)
    assert plain.risk(ridge=0.1).improvement == 0
    with pytest.raises(AssumptionError, match="jumps"):
        plain.curve(ridge=0.1, step_size=[0, 1]).to_dataset()


def test_the_kernel_refuses_a_vanishing_penalty():
    with pytest.raises(ParameterError, match="ridge must be positive"):
        MODEL.kernel().solve(ridge=0)
