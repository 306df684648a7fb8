"""Derivatives of errors and order parameters with respect to every parameter of the model."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import pytest

from giantstep.derivations.spiked_random_features.convex.readout import ConvexReadout
from giantstep.derivations.spiked_random_features.differentiation import (
    _exact_step_rates,
    directions,
)
from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
from giantstep.errors import ParameterError

# Derivatives of the equations are checked here, not how well the equations describe networks.
pytestmark = pytest.mark.filterwarnings("ignore::giantstep.errors.ApproximationWarning")

ALPHA, RIDGE = 1.5, 0.1
STEP = {"step_size": 2.0, "alpha0": 5.0, "noise_variance": 0.1, "beta": 0.7}
DIRECT = {
    "spike_strength": 0.8, "bulk_variance": 1.2, "alignment": 0.7, "beta": 1.3,
    "noise_variance": 0.05,
}  # fmt: skip


def by_step(student, teacher, **changes):
    return SpikedRandomFeatures(student, teacher, **{**STEP, **changes}, allow_non_odd=True)


def direct(student, teacher, **changes):
    return SpikedRandomFeatures.from_parameters(student, teacher, **{**DIRECT, **changes})


def solution(model, parameter, shift):
    """Solve where one parameter is moved."""
    alpha = ALPHA + (shift if parameter == "alpha" else 0)
    ridge = RIDGE + (shift if parameter == "ridge" else 0)
    if parameter in ("beta", "noise_variance", "step_size", "alpha0"):
        model = replace(model, **{parameter: getattr(model, parameter) + shift})
    elif parameter in ("spike_strength", "bulk_variance", "alignment"):
        spike = {k: getattr(model.spike, k) for k in ("spike_strength", "bulk_variance")}
        spike = {**spike, "alignment": model.spike.alignment}
        spike[parameter] += shift
        model = SpikedRandomFeatures.from_parameters(
            model.student, model.teacher, **spike, beta=model.beta,
            noise_variance=model.noise_variance,
        )  # fmt: skip
    return model.solve(alpha=alpha, ridge=ridge)


def differences(model, parameter, outputs, h=2e-4):
    """Differences of fourth order: error h^4 times a fifth derivative, rounding 1e-16/h."""
    found = [solution(model, parameter, k * h) for k in (2, 1, -1, -2)]
    values = {o: [getattr(s, o) for s in found] for o in outputs}
    return {
        o: ((-v[0] + 8 * v[1] - 8 * v[2] + v[3]) / (12 * h), max(map(abs, v)))
        for o, v in values.items()
    }


MODELS = {
    "kink": lambda: by_step("relu", "sin"),
    "linear student": lambda: by_step("z", "erf"),
    "jumps without closed form": lambda: direct("sign(z)+tanh(z)", "sign(z)+tanh(z)"),
    "plain features": lambda: direct("tanh", "sin", spike_strength=0.0),
    "aligned": lambda: direct("erf", "sin", alignment=1.0),
    "population gradient": lambda: by_step("erf", "sin", alpha0=math.inf),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_derivative_is_a_limit_of_differences(name):
    model = MODELS[name]()
    found = model.sensitivities(alpha=ALPHA, ridge=RIDGE)
    for parameter in found.parameters:
        expected = differences(model, parameter, found.outputs)
        for output, (value, size) in expected.items():
            scale = size + abs(value) + 1e-3  # small ones drown in the rounding of V, which is 10
            assert abs(found[output, parameter] - value) <= 1e-8 * scale, (output, parameter)


@pytest.mark.slow
def test_derivatives_of_a_kinked_loss_of_signs_are_limits_of_differences():
    # Of the sign of a prediction that is zero at the middle node the derivative is finite, too.
    def at(alpha, ridge, alignment):
        features = direct("erf", "sign", alignment=alignment, noise_variance=0.0)
        return ConvexReadout(features, loss="hinge", labels="sign"), {
            "alpha": alpha,
            "ridge": ridge,
        }

    centre, h = {"alpha": ALPHA, "ridge": 0.3, "alignment": 0.7}, 5e-4
    model, asked = at(**centre)
    found = model.sensitivities(**asked, wrt=["ridge", "alignment"])
    for parameter in found.parameters:
        solved = []
        for k in (2, 1, -1, -2):
            moved, asked = at(**{**centre, parameter: centre[parameter] + k * h})
            solved.append(moved.solve(**asked))
        for output in ("test_error", "test_loss", "training_loss", "m", "q1", "V1"):
            v = [getattr(s, output) for s in solved]
            slope = (-v[0] + 8 * v[1] - 8 * v[2] + v[3]) / (12 * h)
            scale = max(map(abs, v)) + abs(slope)
            # The solver stops at 1e-10 of an unknown, which is divided by h here.
            assert abs(found[output, parameter] - slope) <= 1e-6 * scale, (output, parameter)


@pytest.mark.slow
def test_noise_acts_through_the_step_too():
    model = by_step("erf", "erf")
    fixed = direct(
        "erf", "erf", spike_strength=model.spike.spike_strength, beta=0.7, noise_variance=0.1,
        bulk_variance=model.spike.bulk_variance, alignment=model.spike.alignment,
    )  # fmt: skip
    total = model.sensitivities(alpha=ALPHA, ridge=RIDGE)
    partial = fixed.sensitivities(alpha=ALPHA, ridge=RIDGE)
    assert total["test_error", "ridge"] == pytest.approx(partial["test_error", "ridge"], rel=1e-12)
    assert total["test_error", "noise_variance"] > partial["test_error", "noise_variance"]


@pytest.mark.slow
def test_the_regularised_training_loss_obeys_the_envelope_theorem():
    # (n/2p)(train + lambda beta q2/alpha) is the free energy at the saddle point (section 4.5 of
    # the derivation), so its derivative in lambda is the partial one: d(train)/dlambda
    # + (beta/alpha) d(lambda q2)/dlambda = (beta/alpha) q2.
    found = direct("sign", "sign").sensitivities(alpha=ALPHA, ridge=RIDGE)
    beta = DIRECT["beta"]
    left = found["training_error", "ridge"] + beta / ALPHA * RIDGE * found["q2", "ridge"]
    assert left == pytest.approx(0, abs=1e-13)  # both terms are about 0.1


@pytest.mark.slow
def test_near_alignment_the_derivative_follows_the_angle():
    # Along gamma = cos(phi) nothing is singular, whereas gamma loses digits and differences in it
    # see the square root of 1 - gamma^2.
    phi, h = 0.3, 1e-3
    found = direct("sign", "sign", alignment=math.cos(phi)).sensitivities(alpha=ALPHA, ridge=RIDGE)
    ends = [
        direct("sign", "sign", alignment=math.cos(phi + k * h)).solve(alpha=ALPHA, ridge=RIDGE)
        for k in (2, 1, -1, -2)
    ]
    for output in ("test_error", "psi", "q1", "m"):
        v = [getattr(end, output) for end in ends]
        slope = (-v[0] + 8 * v[1] - 8 * v[2] + v[3]) / (12 * h)
        # Differences: rounding over h is 1e-12, and h^4 times a fifth derivative as much.
        derivative = -math.sin(phi) * found[output, "alignment"]
        assert derivative == pytest.approx(slope, rel=1e-9, abs=1e-10), output


@pytest.mark.slow
def test_norm_overlap_is_a_parameter_like_the_others():
    import numpy as np

    from giantstep.numeric.saddle_point_solver import solve_many

    model = by_step("erf", "erf", leading_order="complete")
    found = model.sensitivities(alpha=ALPHA, ridge=RIDGE)
    kernel = model._kernel

    def moved(shift):
        at = {**model._parameter_values(), "alpha": ALPHA, "ridge": RIDGE}
        at["norm_overlap"] += shift
        row = np.array([[at[n] for n in kernel.parameters]])
        return solve_many(kernel, [at[n] for n in kernel.table_parameters], row).values

    h = 2e-4
    ends = [moved(k * h) for k in (2, 1, -1, -2)]
    for output in found.outputs:
        v = [float(e[output][0]) for e in ends]
        slope = (-v[0] + 8 * v[1] - 8 * v[2] + v[3]) / (12 * h)
        assert found[output, "norm_overlap"] == pytest.approx(slope, rel=1e-8, abs=1e-10), output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "ridge", "noise"),
    [
        (1.3, 1e-8, 0.05),  # the interpolation peak at alpha = beta
        (0.5, 1e-6, 0.0),  # interpolation without noise: terms of 1e6 cancel
    ],
)
def test_estimated_errors_hold_where_digits_are_lost(alpha, ridge, noise):
    model = direct("erf", "erf", noise_variance=noise)
    precise = model.sensitivities(alpha=alpha, ridge=ridge, digits=15, progress=False)
    found = model.sensitivities(alpha=alpha, ridge=ridge)
    for key in found:
        assert abs(float(found[key] - precise[key])) <= found.error(*key), key


@pytest.mark.slow
@pytest.mark.parametrize(
    ("student", "teacher", "alpha0"),
    [
        pytest.param("He(2, z) + He(3, z)", "z + He(2, z)", 5.0, marks=pytest.mark.slow),
        ("He(2, z) + 1", "z + He(2, z)", math.inf),
        pytest.param("He(2, z) + 1", "He(2, z)", math.inf, marks=pytest.mark.slow),
    ],
)
def test_digits_and_floats_mean_the_same_spike(student, teacher, alpha0):
    # A student without a linear part has no spike, but the step has a direction all the same.
    model = by_step(student, teacher, step_size=1.0, alpha0=alpha0)
    found = model.solve(alpha=ALPHA, ridge=RIDGE)
    precise = model.solve(alpha=ALPHA, ridge=RIDGE, digits=10, progress=False)
    for name in ("test_error", "psi", "theta", "q1", "psi_hat"):
        value = float(getattr(precise, name))
        assert getattr(found, name) == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_exact_rates_of_the_spike_are_those_of_its_powers():
    # With η: r and (c - 1)**(1/2). With the second moment of labels over α_0: c - 1, and the part
    # of r² across the direction of the teacher; that along it is (η h_1 h*_1)².
    model, second_moment = by_step("erf", "erf"), 2 / math.pi * math.asin(2 / 3) + 0.1
    r, excess = model.spike.spike_strength, model.spike.bulk_variance - 1
    across = r * model.spike.orthogonal_alignment**2 / 2
    rates, known = _exact_step_rates(model), {"beta": mpmath.mpf(1)}
    for parameter, wanted in {
        "step_size": {"spike_strength": r / 2, "bulk_variance": excess, "alignment": 0},
        "alpha0": {"spike_strength": -across / 5, "bulk_variance": -excess / 5},
        "noise_variance": {
            "spike_strength": across / second_moment, "bulk_variance": excess / second_moment,
        },
    }.items():  # fmt: skip
        found = rates(parameter)
        for name, value in wanted.items():
            assert float(found[name](known)) == pytest.approx(value, rel=1e-13), (parameter, name)


SIGN = direct("sign", "sign")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"alpha": -1, "ridge": RIDGE}, "alpha must be positive"),
        ({"alpha": 1, "ridge": 0}, "ridge must be positive"),
        ({"alpha": 1, "ridge": 1, "digits": 10**6}, "digits must be at most"),
    ],
)
def test_what_has_no_derivatives_is_refused(asked, words):
    with pytest.raises(ParameterError, match=words):
        SIGN.sensitivities(**asked)


@pytest.mark.slow
def test_what_is_no_derivative_is_refused():
    found = SIGN.sensitivities(alpha=ALPHA, ridge=RIDGE)
    with pytest.raises(ParameterError, match="no parameter 'lambda'"):
        found["test_error", "lambda"]
    with pytest.raises(ParameterError, match="no output 'risk'"):
        found["risk", "ridge"]
    with pytest.raises(ParameterError, match="give an output and a parameter"):
        found["ridge"]
    assert ("test_error", "ridge") in found and "ridge" not in found
    assert r"\frac{d \varepsilon_{\mathrm{test}}}{d \lambda}" in found.latex()


def test_where_labels_are_a_function_of_the_spike_the_alignment_does_not_move():
    found = directions(direct("sign", "sign", alignment=1.0))
    assert "end of its range" in found.excluded["alignment"]
    assert "alignment" not in found.moving and "spike_strength" in found.moving
    assert not directions(SIGN).excluded
