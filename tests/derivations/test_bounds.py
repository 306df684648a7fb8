"""Bounds and limits of the test error: printed values, order, solver, several letters.

Printed values are from 40-digit arithmetic by the trapezoidal rule.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import erf

import giantstep as gs
from giantstep.derivations.kernels.kernel import Kernel
from giantstep.derivations.spiked_random_features.bounds.bounds import (
    bound_kernel,
)
from giantstep.derivations.spiked_random_features.bounds.letter_bounds import span_bounds
from giantstep.errors import AssumptionError, ParameterError
from giantstep.numeric.least_squares import squared_distance

# student, teacher, (r, c, γ, β): U, L, E_∞, digits. That best penalties reach the limit, and what
# tuning the step reaches, is evidence of the claims "bounds" and "tuned-step".
_TABLE = (
    ("tanh", "sin", (1, 1, 1, 1), (0.0248911069467352, 0.00268730756804067, 0.0230610227008131),
     1e-14),
    ("erf", "He(3, z)/6", (1.5, 1, 1, 1),
     (0.157342673408518, 0.0895263268470716, 0.150683695047525), 1e-14),
    ("sin", "tanh", (0.7, 1.2, 0.8, 2), (0.153806248299808, 0.0113938597307098, 0.0546081060492398),
     1e-14),
    ("relu", "sin", (1, 1, 1, 0.5), (0.281313975, 0.203693484, 0.273232972), 1e-8),
)  # fmt: skip


def _model(student, teacher, values):
    r, c, gamma, beta = values
    return gs.SpikedRandomFeatures.from_parameters(
        student, teacher, spike_strength=r, bulk_variance=c, alignment=gamma, beta=beta
    )


@pytest.mark.parametrize(
    "row",
    [_TABLE[0], *(pytest.param(row, marks=pytest.mark.slow) for row in _TABLE[1:])],
    ids=lambda row: f"{row[0]}-{row[1][:4]}",
)
def test_printed_bounds(row):
    student, teacher, values, printed, rtol = row
    model = _model(student, teacher, values)
    found = model.bounds()
    assert (found.upper, found.lower, found.limit) == pytest.approx(printed, rel=rtol * 10)
    assert max(found.errors.values()) < 1e-12
    # The strong penalty: only what costs nothing survives.
    assert model.solve(alpha=2.0, ridge=1e9).test_error == pytest.approx(found.upper, abs=1e-8)
    limits = model.asymptotics()
    assert limits.many_samples == found.limit
    # λ drops out of the limit.
    for ridge in (1e-3, 1.0):
        solved = model.solve(alpha=1e7, ridge=ridge)
        assert solved.test_error == pytest.approx(found.limit, rel=3e-6)
        for name in ("m", "theta", "psi", "q1", "q2"):
            wanted = limits.order_parameters[name]
            assert getattr(solved, name) == pytest.approx(wanted, rel=1e-4, abs=1e-5)


def test_the_limit_of_many_neurons_is_the_lower_bound():
    values = (0.7, 1.2, 0.8)
    gaps = [
        (b := _model("sin", "tanh", (*values, beta)).bounds()).limit - b.lower
        for beta in (10.0, 100.0, 1000.0)
    ]
    assert gaps[0] > 9 * gaps[1] > 81 * gaps[2] > 0


@settings(max_examples=5, deadline=None)
@given(
    pair=st.sampled_from((("tanh", "sin"), ("erf", "erf"), ("relu", "sin"))),
    logarithm=st.floats(-3, 0.6),
    sign=st.sampled_from((-1, 1)),
    c=st.floats(0.3, 3),
    gamma=st.floats(-0.999, 0.999),
    beta=st.floats(0.2, 5),
    alpha=st.floats(0.1, 50),
    exponent=st.floats(-4, 4),
)
def test_order_of_bounds_and_solver(pair, logarithm, sign, c, gamma, beta, alpha, exponent):
    r = sign * 10.0**logarithm
    model = _model(*pair, (r, c, gamma, beta))
    found = model.bounds()
    slack = 1e-11 + found.errors["lower"]
    assert found.lower <= found.limit + slack <= found.upper + 2 * slack
    assert model.solve(alpha=alpha, ridge=10.0**exponent).test_error >= found.lower - slack
    assert model.solve(alpha=alpha, ridge=1e8).test_error == pytest.approx(
        found.upper, rel=1e-4, abs=1e-8
    )
    letters = gs.letter_bounds(*pair, [r], [c], alignment=gamma)
    assert (letters.lower, letters.upper) == pytest.approx((found.lower, found.upper), abs=1e-9)


def test_tuned_steps():
    found = gs.bounds_over_step("tanh", "sin", points=60)
    best = found.best_upper
    assert best.spike_strength == pytest.approx(1.969058, abs=6e-7)
    assert best.upper == pytest.approx(0.0084005837, rel=1e-8)
    for point in found.upper_points:
        assert point.lower == pytest.approx(point.upper, rel=1e-10)
        assert point.limit == pytest.approx(point.upper, rel=1e-10)
    assert found.best_lower.lower == pytest.approx(9.8896e-6, rel=1e-5)
    assert found.best_lower.spike_strength == pytest.approx(0.594660, abs=6e-7)
    # r = s h_1 |h*_1|
    unit = 0.6057055096021588 * math.exp(-0.5)
    assert best.step_size == pytest.approx(best.spike_strength / unit, rel=1e-12)
    assert found.linear == pytest.approx(0.0644529, abs=1e-7)


@pytest.mark.slow
def test_tuned_steps_at_finite_alpha0():
    step: dict[str, Any] = {"alpha0": 5.0, "noise_variance": 0.1}
    found = gs.bounds_over_step("tanh", "sin", **step, points=15)

    def bounds(size):
        return gs.SpikedRandomFeatures("tanh", "sin", step_size=size, **step).bounds()

    for name in ("upper", "lower"):
        point = getattr(found, f"best_{name}")
        here = bounds(point.step_size)
        assert (point.lower, point.limit, point.upper) == pytest.approx(
            (here.lower, here.limit, here.upper), rel=1e-9
        )
        # A zero of the exact derivative is a minimum, to the fourth digit.
        least = getattr(point, name)
        values = [getattr(bounds(k * point.step_size), name) for k in (0.9, 0.9999, 1.0001, 1.1)]
        assert values[0] > values[1] > least < values[2] < values[3]
    # c grows with the step: where U is stationary L lies below it.
    assert found.best_upper.lower < 0.9 * found.best_upper.upper
    assert float(found.curve["bulk_variance"].max()) > 1.5
    nearly = gs.bounds_over_step("tanh", "sin", alpha0=1e9, points=10)
    assert nearly.best_upper.upper == pytest.approx(0.0084005837, rel=1e-6)
    with pytest.raises(AssumptionError, match="no step makes a spike of student 'cos'"):
        gs.bounds_over_step("cos", "sin", alpha0=5)


@pytest.mark.slow
def test_a_learnt_bias_lowers_the_bound():
    arguments: dict[str, Any] = {"spike_strength": 1.2, "bulk_variance": 1.1, "alignment": 0.9}
    found = gs.learned_bias_bound("erf", "relu", **arguments, bounds=(-3, 2))
    assert len(found.minima) == 2
    without = gs.letter_bounds("erf", "relu", [1.2], [1.1], alignment=0.9)
    assert found.lower < min(without.lower, *(v for b, v in found.minima if b != found.bias))
    near = gs.letter_bounds("erf", "relu", [1.2], [1.1], alignment=0.9, biases=[found.bias + 0.01])
    assert near.lower > found.lower


def test_errors_of_letters_are_honest():
    # The mean of the student, erf(aκ), is steeper than the rule; its averages are closed forms.
    found, square = gs.letter_bounds("sign", "relu", [3], [0.001], alignment=1), 3**2 / 0.002
    share = square / (1 + 2 * square) / (2 * math.asin(2 * square / (1 + 2 * square)))
    assert abs(found.upper - (0.5 - share)) <= found.errors["upper"] < 1e-4


def test_plain_random_features():
    plain = gs.SpikedRandomFeatures("erf", "erf", step_size=0, beta=1.5).bounds()
    assert plain.lower == pytest.approx(0.0401458728, abs=1e-9)
    assert plain.lower == pytest.approx(plain.linear, rel=1e-12)


@pytest.mark.slow
def test_degenerate_students():
    linear = _model("z", "sin", (1, 1, 0.9, 2))
    assert linear.bounds().lower == pytest.approx(linear.best_linear_error, rel=1e-12)
    assert linear.asymptotics().order_parameters == {}
    # κ μ_1 is a multiple of μ_0: nothing is gained by it.
    cubic = _model("He(3, z)/6", "sin", (1, 1, 1, 2)).bounds()
    assert cubic.lower == pytest.approx(cubic.upper, rel=1e-12)


@pytest.mark.parametrize("r", [1e-3, 1e-4, 1e-5])
def test_a_small_spike(r):
    # The shapes nearly coincide; their span goes to that of He_1 and He_3, of which the target has
    # γ h_1 and γ³ h_3 along the spike.
    h1, h3 = (_hermite_coefficient(k) for k in (1, 3))
    square = 2 / math.pi * math.asin(2 / 3)
    found = _model("erf", "erf", (r, 1, 0.5, 1)).bounds()
    lower = square - h1**2 - 0.5**6 * h3**2 / 6
    assert found.lower == pytest.approx(lower, abs=r**2 + found.errors["lower"])
    assert found.upper == pytest.approx(square - 0.25 * h1**2, abs=r**2 + 1e-14)
    assert found.errors["lower"] < 1e-15 / r**2
    assert max(found.errors["limit"], found.errors["upper"]) < 1e-12


@pytest.mark.parametrize("leading_order", ["published", "complete"])
def test_projections_are_the_averages(leading_order):
    model = gs.SpikedRandomFeatures(
        "erf", "sin", step_size=2.0, alpha0=5.0, leading_order=leading_order
    )
    averages = bound_kernel(model).solve()
    found = span_bounds(model, averages["cost"])
    assert found.resolved
    for name, value in found.values.items():
        assert value == pytest.approx(averages[name], rel=1e-11)
    assert max(found.errors.values()) < 1e-13


def test_a_small_spike_takes_no_time(monkeypatch):
    # relu has no third Hermite coefficient, so that L is 1/4 and O(r²) beyond: r² is what errors
    # may be next to.
    model = _model("tanh", "relu", (-0.0012, 1, 0.5, 1))
    model.bounds()

    def refuse(*_, **__):
        raise AssertionError("digits or finer rules for floats")

    monkeypatch.setattr(Kernel, "_refined", refuse)
    start = time.process_time()
    found = model.bounds()
    assert time.process_time() - start < 2
    assert found.lower == pytest.approx(0.25, abs=1e-9)
    assert max(found.errors.values()) < 1e-9
    # Here the third function is all rounding, and the estimate says so.
    lost = _model("tanh", "relu", (1e-5, 1, 0.5, 1)).bounds()
    assert abs(lost.lower - 0.25) <= lost.errors["lower"]


def _hermite_coefficient(k):
    x, w = np.polynomial.hermite_e.hermegauss(150)
    polynomial = np.polynomial.hermite_e.hermeval(x, np.eye(k + 1)[k])
    return float(w @ (erf(x) * polynomial) / w.sum())


def test_realised_functions_have_the_errors_of_the_bounds():
    model = _model("tanh", "sin", (1, 1, 1, 1))
    x, w = np.polynomial.hermite_e.hermegauss(80)
    found = model.realised_functions(kappa=x, alpha=2, ridge=0.1)
    for name in ("upper", "lower"):
        distance = float(w @ (found["target"] - found[name]).to_numpy() ** 2 / w.sum())
        assert distance == pytest.approx(found.attrs[f"error_{name}"], rel=1e-6)
    # The best linear predictor given κ is the linear part of the target there.
    slope = float(w @ (x * found["target"].to_numpy()) / w.sum())
    assert found["linear"].to_numpy() == pytest.approx(slope * x, rel=1e-6)
    solved = model.solve(alpha=2, ridge=0.1)
    shapes = _shapes_of_tanh(x)
    learnt = solved.m * shapes[0] + solved.theta * shapes[1]
    assert found["learnt"].to_numpy() == pytest.approx(learnt, rel=1e-7)
    with pytest.raises(ParameterError, match="alpha and ridge go together"):
        model.realised_functions(alpha=2)
    with pytest.raises(ParameterError, match="kappa must be finite"):
        model.realised_functions(kappa=[0, math.nan])


def _shapes_of_tanh(x):
    z = np.linspace(-9, 9, 2001)
    w = np.exp(-(z**2) / 2)
    values = np.tanh(x[:, None] + z)
    return values @ w / w.sum(), x * ((1 - values**2) @ w / w.sum())


@pytest.mark.parametrize("values", [(0, 1, 0.5, 1), (1.2, 1.1, -0.6, 2), (1.2, 1.1, -1, 2)])
def test_the_target_given_the_projection(values):
    gamma = values[2]
    found = _model("erf", "relu", values).realised_functions(kappa=[-1.0, 0.3, 2.0])
    z = np.linspace(-9, 9, 20001)
    w = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    field = gamma * found["kappa"].to_numpy()[:, None] + math.sqrt(1 - gamma**2) * z
    labels = np.maximum(field, 0)
    mean = labels @ w
    assert found["target"].to_numpy() == pytest.approx(mean, abs=1e-7)
    spread = np.sqrt((labels - mean[:, None]) ** 2 @ w)
    assert found["target_spread"].to_numpy() == pytest.approx(spread, abs=1e-6)


def test_opposite_parities_learn_nothing():
    for values in ((0, 1, 0.5, 1), (1.2, 1.1, -0.6, 2)):
        found = _model("cos", "sin", values).bounds()
        assert (found.lower, found.limit, found.upper) == pytest.approx(
            (0.4323323583816936,) * 3, rel=1e-12
        )
        assert max(found.errors.values()) < 1e-12


def test_squared_distance():
    x = np.linspace(-1, 1, 50)
    functions = np.array([x, x + 1e-9 * x**2, 0 * x])
    weights = np.full(50, 0.02)
    assert squared_distance(x**2, functions, weights) < 1e-12
    assert squared_distance(x, functions[:0], weights) == pytest.approx(float(weights @ x**2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gs.bounds_over_step("tanh", "sin", strengths=(-1, 1)), "must not include 0"),
        (lambda: gs.bounds_over_step("tanh", "sin", strengths=(2, 1)), "ascending"),
        (lambda: gs.bounds_over_step("tanh", "sin", points=2), "points"),
        (lambda: gs.letter_bounds("tanh", "sin", [1], [1, 2], alignment=1), "one entry for each"),
        (lambda: gs.letter_bounds("tanh", "sin", [], [], alignment=1), "1 to 64 letters"),
        (lambda: gs.letter_bounds("tanh", "sin", [1], [-1], alignment=1), "bulk_variances"),
        (lambda: gs.letter_bounds("tanh", "sin", [1], [1], alignment=2), "alignment"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_a_student_that_jumps_takes_no_step():
    with pytest.raises(AssumptionError, match="jumps"):
        gs.bounds_over_step("sign", "sin")
