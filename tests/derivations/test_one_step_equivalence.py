"""Gaussian equivalence and several steps: verdicts on assumptions, exponents, sizes of spikes."""

from __future__ import annotations

import json
import math

import pytest
import sympy as sp

from giantstep import OneGradientStep
from giantstep.derivations.one_gradient_step.equivalence import failure_exponent
from giantstep.derivations.one_gradient_step.evidence_large import several_steps as evidence
from giantstep.derivations.one_gradient_step.several_steps import spike_sizes
from giantstep.errors import AssumptionError, ParameterError


def model(student: str = "tanh", **changes) -> OneGradientStep:
    return OneGradientStep(
        student, "tanh", **{"alpha": 3, "beta": 2, "step_size": 1.0, "centre": True, **changes}
    )


@pytest.mark.parametrize(
    "student, proven",
    [("erf", True), ("tanh", True), ("sin", True), ("relu", False), ("softplus", False),
     ("He3", False), ("z/sqrt(1 + z**2)", None)],
)  # fmt: skip
def test_the_theorem_covers_odd_functions_with_bounded_derivatives(student, proven):
    found = model(student).equivalence()
    assert found.proven is proven
    assert found.expected
    assert found.risk_lower_bound == model(student).best_linear_error
    assert json.dumps(found.to_dict())


def test_kinks_are_named():
    reasons = [a.reason for a in model("relu").equivalence().assumptions]
    assert "it has a kink at z = 0" in reasons


@pytest.mark.parametrize(
    "student, degree, exponent",
    [("tanh", 3, sp.Rational(1, 3)), ("relu", 2, sp.Rational(1, 4)), ("He5", 5, sp.Rational(2, 5))],
)
def test_equivalence_is_expected_to_fail_from_the_first_harmful_degree_on(
    student, degree, exponent
):
    below = model(student).equivalence(float(exponent) - 0.01)
    above = model(student).equivalence(float(exponent) + 0.01)
    assert below.failure_degree == degree and below.failure_exponent == exponent
    assert below.expected and not above.expected
    assert below.proven is False and "heuristic" in below.statement
    assert above.risk_lower_bound is None
    assert degree in above.visible_degrees()


def test_a_linear_student_is_gaussian_for_every_step():
    found = model("identity").equivalence(0.5)
    assert found.expected and found.failure_exponent is None
    assert "linear" in found.statement


@pytest.mark.parametrize("exponent", [-0.1, 0.6, math.nan, "a"])
def test_bad_exponents_are_refused(exponent):
    with pytest.raises(ParameterError, match="step_exponent"):
        model().equivalence(exponent)


def test_exponents():
    assert [failure_exponent(k) for k in (2, 3, 4)] == [
        sp.Rational(1, 4), sp.Rational(1, 3), sp.Rational(3, 8)
    ]  # fmt: skip
    with pytest.raises(ParameterError, match="degree must be a whole number >= 2"):
        failure_exponent(1)


# ---------------------------------------------------------------------- several steps


def test_several_steps_are_one_longer_step():
    found = model(noise_variance=0.09).several_steps(4)
    assert found.model == model(noise_variance=0.09, step_size=4.0, alpha0=3.0)
    fresh = model(noise_variance=0.09).several_steps(4, fresh=True)
    assert fresh.model == model(noise_variance=0.09, step_size=4.0, alpha0=12.0)
    assert model().several_steps(1).model == model(alpha0=3.0)
    assert model().several_steps(0).model.step_size == 0


@pytest.mark.parametrize(
    "steps, fresh, risk",
    [(1, False, 0.1140), (4, False, 0.0969), (8, False, 0.0889), (8, True, 0.0804)],
)
def test_risk_after_several_steps(steps, fresh, risk):
    # tanh on tanh, noise 0.3², α = 3, β = 2, η = 1, λ_B = 0.05: 40-digit arithmetic, 4 printed.
    several = model(noise_variance=0.09).several_steps(steps, fresh)
    assert several.risk(paper_ridge=0.05).trained == pytest.approx(risk, abs=5.1e-5)


def test_sizes_without_contraction_are_those_of_one_step():
    assert evidence().passed


def test_sizes_at_finite_width():
    first = model(noise_variance=0.09)
    several = first.several_steps(8)
    wide = several.spike_at_width(10**12)
    limit = several.weight_spike()
    assert wide.length == pytest.approx(limit.theta1, rel=1e-4)
    assert wide.aligned == pytest.approx(limit.theta2, rel=1e-4)
    # Simulated at N = 800: 3.60(4), in the limit 3.945; contraction explains 60 % of it.
    square = several.spike_at_width(800).length ** 2
    assert math.sqrt((1 + square) * (2 + square) / square) == pytest.approx(3.7375, abs=1e-3)
    assert several.spike_at_width(800).length < wide.length


def test_contraction_of_fresh_data_in_the_mean():
    # E u_t = (1 - (1 - c)^t)/c times that of one step.
    c = sp.Rational(1, 7)
    _, along = spike_sizes(3, fresh=True, c=c)
    _, single = spike_sizes(1, fresh=True, c=c)
    assert sp.expand(along - single * (1 - (1 - c) ** 3) / c) == 0


def test_population_gradient():
    several = model(alpha0=math.inf).several_steps(3, fresh=True)
    assert several.model.alpha0 == math.inf
    sizes = several.spike_at_width(400)
    assert sizes.length == pytest.approx(sizes.aligned)


@pytest.mark.parametrize("steps", [-1, 1.5, 101, "2", True])
def test_bad_steps_are_refused(steps):
    with pytest.raises(ParameterError, match="steps"):
        model().several_steps(steps)


def test_bad_options_are_refused():
    with pytest.raises(ParameterError, match="fresh must be True or False"):
        model().several_steps(2, "yes")
    with pytest.raises(ParameterError, match="width"):
        model().several_steps(2).spike_at_width(0)
    with pytest.raises(AssumptionError, match="residuals"):
        model(step_size=50.0).several_steps(2).spike_at_width(4)
