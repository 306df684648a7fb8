"""Gaussian equivalence and several steps: verdicts on assumptions, exponents, sizes of spikes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import sympy as sp

from giantstep import OneGradientStep, paper_ridge
from giantstep.derivations.one_gradient_step.equivalence import failure_exponent
from giantstep.derivations.one_gradient_step.model import spike_sizes
from giantstep.errors import AssumptionError, ParameterError


def model(student="tanh", **changes):
    return OneGradientStep(
        student, "tanh", **{"alpha": 3, "beta": 2, "step_size": 1.0, "centre": True, **changes}
    )


@pytest.mark.parametrize(
    "student, proven",
    [("erf", True), ("tanh", True), ("sin", True), ("relu", False), ("softplus", False),
     ("He3", False), ("z/sqrt(1 + z**2)", True), ("relu(z + 1) - relu(z - 1) - 1", False)],
)  # fmt: skip
def test_the_theorem_covers_odd_functions_with_bounded_derivatives(student, proven):
    found = model(student).equivalence()
    kinks = "it has a kink at z = 0" in [a.reason for a in found.assumptions]
    assert found.proven is proven and kinks is (student == "relu")
    assert found.expected
    assert found.risk_lower_bound == model(student).best_linear_error
    assert json.dumps(found.to_dict())


@pytest.mark.parametrize(
    "teacher, lipschitz",
    [("relu", True), ("softplus", True), ("abs", True),
     ("swish", True), ("sign", False), ("step(z) - z", False),
     ("He3 + z", False), ("z*abs(z)", False), ("z*sin(z)", False),
     ("exp(z)", False), ("z*sin(z) + z*sin(sqrt(2)*z)", None)],
)  # fmt: skip
def test_the_theorem_asks_for_lipschitz_teachers(teacher, lipschitz):
    found = OneGradientStep("tanh", teacher, alpha=3, centre=True)
    verdict = found.equivalence()
    assert verdict.proven is lipschitz
    assert found.standing == verdict.statement
    assert ("the teacher is Lipschitz" in found.standing) is not lipschitz


def test_one_verdict_is_printed_by_all():
    found = OneGradientStep("relu", "sign", alpha=3, centre=True)
    verdict = found.equivalence().statement
    for name in ("student is odd", "student has 3 bounded derivatives", "teacher is Lipschitz"):
        assert f"it does not hold that the {name}" in verdict
    printed = [
        found.risk(ridge=0.1).rests_on,
        found.curve(ridge=[0.1, 0.2]).to_dataset().attrs["rests_on"],
        found.optimum(over="ridge").rests_on,
        found.several_steps(2).rests_on,
        found.conjugate_kernel().expected.rests_on,
        found._repr_html_().replace("&#x27;", "'"),
    ]
    assert all(verdict in text for text in printed)
    assert not any("is a theorem" in text for text in printed)


def test_without_a_penalty_there_is_no_theorem():
    covered = model()
    assert "is a theorem" in covered.risk(ridge=0.1).rests_on
    for text in (
        covered.ridgeless().rests_on, covered.curve(ridge=[0, 0.1]).to_dataset().attrs["rests_on"]
    ):  # fmt: skip
        assert "it does not hold that the ridge penalty is positive" in text


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


def test_exponents():
    assert [failure_exponent(k) for k in (2, 3, 4)] == [
        sp.Rational(1, 4), sp.Rational(1, 3), sp.Rational(3, 8)
    ]  # fmt: skip


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
    assert several.risk(ridge=paper_ridge(0.05)).trained == pytest.approx(risk, abs=5.1e-5)


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


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        *((lambda x=x: model().equivalence(x), "step_exponent") for x in (-0.1, 0.6, math.nan)),
        *((lambda x=x: model().several_steps(x), "steps") for x in (-1, 1.5, 101, "2", True)),
        (lambda: model().equivalence("a"), "step_exponent"),
        (lambda: failure_exponent(1), "degree must be a whole number >= 2"),
        (lambda: model().several_steps(2, "yes"), "fresh must be True or False"),
        (lambda: model().several_steps(2).spike_at_width(0), "width"),
        (lambda: model().several_steps(2).at(steps=3), "parameter of this model"),
        (lambda: model().several_steps(2).curve(alpha=[1, 2]), "ridge must be given"),
        (lambda: model(step_size=50.0).several_steps(2).spike_at_width(4), "residuals"),
    ],
)
def test_refusals(ask, message):
    with pytest.raises((ParameterError, AssumptionError), match=message):
        ask()


STEP = OneGradientStep("erf", "tanh", alpha=2, beta=1.5, step_size=0.8, noise_variance=0.2)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("loss", ["half", "full"])
def test_curves_are_those_of_the_equivalent_step_at_each_point(fresh, loss):
    several = STEP.at(loss=loss).several_steps(3, fresh=fresh)
    curve = several.curve(alpha=[1.0, 4.0], step_size=[0.0, 0.5, 2.0], ridge=paper_ridge(0.1))
    for alpha in (1.0, 4.0):
        for size in (0.5, 2.0):
            # Without alpha0 the samples of every step follow those of the readout.
            single = STEP.at(
                loss=loss, alpha=alpha, step_size=3 * size, alpha0=alpha * (3 if fresh else 1)
            )
            risk = single.solve(ridge=paper_ridge(0.1))
            found = curve["risk_trained"].sel(alpha=alpha, step_size=size)
            assert float(found) == pytest.approx(risk.trained, rel=1e-13)
    assert (curve["improvement"].sel(step_size=0) == 0).all()
    assert "t η/√N" in str(curve)
    assert curve.plot("risk_trained").get_title(loc="left") == "student erf, teacher tanh"
    assert type(curve).from_json(curve.to_json()).dataset.attrs["steps"] == 3


@pytest.mark.parametrize("alpha0", [None, 3.0])
@pytest.mark.parametrize("fresh", [False, True])
def test_derivatives_are_those_of_the_curve(alpha0, fresh):
    several = STEP.at(alpha0=alpha0, loss="full").several_steps(2, fresh=fresh)
    found = several.sensitivities(ridge=0.1)
    h = 1e-5
    for name in ("alpha", "beta", "step_size", "noise_variance", *(("alpha0",) if alpha0 else ())):
        at = getattr(several.first, name)
        risks = [several.at(**{name: at + s * h}).solve(ridge=0.1).trained for s in (-1, 1)]
        assert found["risk_trained", name] == pytest.approx(np.diff(risks)[0] / (2 * h), abs=1e-8)
    assert ("risk_trained", "alpha0") in found.derivatives or alpha0 is None
