"""Properties of the risk: that the proofs hold, that they can fail, and the same in numbers."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep import OneGradientStep, paper_ridge
from giantstep.derivations.conjectures.statements import equal, positive
from giantstep.derivations.one_gradient_step import properties, symbols
from giantstep.derivations.one_gradient_step.optimal_ridge import _float, peak_property
from giantstep.derivations.one_gradient_step.properties import (
    COVARIANCE,
    PROPERTIES,
    Step,
    nu,
    s,
    tends,
    vanishes,
)
from giantstep.derivations.one_gradient_step.reference import model_of, reference_document
from giantstep.derivations.one_gradient_step.risk import solve_points
from giantstep.errors import AssumptionError, ParameterError


@pytest.mark.parametrize("make", [*PROPERTIES.values(), peak_property])
def test_every_step_of_every_proof_holds(make):
    found = make()
    assert found.steps and all(found.check().values()), found.check()
    assert found.statement.count("$") % 2 == 0


def test_proofs_can_fail():
    t = sp.Symbol("t", positive=True)
    real = sp.Symbol("t", real=True)
    assert not Step("wrong", equal(COVARIANCE.bias(), 2 * COVARIANCE.bias())).holds()
    assert not Step("not known", positive(real**2 - real)).holds()
    assert not Step("negative", positive(-COVARIANCE.resolvent)).holds()
    assert not Step("wrong", tends((2 * t + 1) / t, t, sp.S.One)).holds()
    unbounded = Step("none", tends(t**2, t, sp.S.One))
    assert not unbounded.holds()
    with pytest.raises(ParameterError, match="unbounded"):
        unbounded.proof()
    # 1 where a = 0, and 0 elsewhere.
    a = sp.Symbol("a", nonnegative=True)
    with pytest.raises(ParameterError, match="another one where a vanishes"):
        Step("not everywhere", tends(t / (a * t**2 + t), t, sp.S.Zero)).proof()
    # One s for two effective ridges would make them equal.
    start = COVARIANCE.resolvent.xreplace({nu: sp.S.Zero})
    for step in (
        Step("not so", equal(start, COVARIANCE.resolvent)),
        Step("not so", positive(2 * COVARIANCE.resolvent - start)),
    ):
        with pytest.raises(ValueError, match="several points"):
            step.holds()


def test_a_step_says_how_it_is_proven():
    proof = PROPERTIES["improvement"]().steps[1].proof()
    assert proof.method == "positive terms" and proof.strict
    assert "G" in proof.claim and proof.steps[0].startswith("the difference is a quotient")


@pytest.mark.slow
def test_a_wrong_risk_breaks_the_proofs(monkeypatch):
    """One sign in the improvement: the identity and the limit notice."""
    from giantstep.symbolic.systems import ridge_equivalent

    original = ridge_equivalent.SignalResponse.bias_reduction
    monkeypatch.setattr(
        ridge_equivalent.SignalResponse,
        "bias_reduction",
        lambda self, spike: original(self, spike) * (1 + spike.orthogonal),
    )
    assert not properties.nonnegative_improvement().proved
    assert not properties.increases_with_step().proved
    assert not properties.large_step_limit().proved


def test_the_resolvent_is_rational_in_s():
    assert vanishes(COVARIANCE.s - s)
    assert vanishes(COVARIANCE.shift * COVARIANCE.resolvent + COVARIANCE.inverse_s - 1)
    assert not vanishes(COVARIANCE.companion - nu)


# ------------------------------------------------------------------ in numbers


@pytest.fixture(scope="module")
def random_points():
    """3000 parameter sets, six orders of magnitude each."""
    rng = np.random.default_rng(64)
    names = ("alpha", "alpha0", "beta", "step_size", "ridge")
    points = {name: 10 ** rng.uniform(-3, 3, 3000) for name in names}
    points["ridge"] = 10 ** rng.uniform(-8, 4, 3000)
    points["noise_variance"] = rng.choice([0.0, 1e-3, 0.25, 10.0], 3000)
    return points


@pytest.mark.parametrize(("student", "teacher"), [("erf", "relu"), ("z + He(3, z)*30", "tanh")])
def test_order_and_growth_on_random_parameters(random_points, student, teacher):
    model = OneGradientStep(student, teacher, 1, centre=True)
    found = solve_points(model, random_points)
    gain = found["improvement"]
    assert np.all(gain > 0)
    # δ has a formula of its own; both risks are larger by orders of magnitude in places.
    scale = 1e-9 * found["risk_initial"]
    assert np.all(abs(found["risk_initial"] - found["risk_trained"] - gain) <= scale)
    assert np.all(found["bias_trained"] <= found["risk_trained"] * (1 + 1e-12))
    assert np.all(found["bias_trained"] >= model.best_linear_error * (1 - 1e-12))
    longer = {**random_points, "step_size": 1.01 * random_points["step_size"]}
    grown = solve_points(model, longer)["improvement"]
    # Where η is so long that its limit is reached, growth is below rounding.
    assert np.all(grown >= gain * (1 - 1e-14)) and np.mean(grown > gain) > 0.9


@settings(deadline=None, max_examples=8)
@given(st.sampled_from(["mu_1", "teacher", "step"]), st.floats(0.01, 10), st.floats(0.01, 10))
def test_no_improvement_without_signal_or_step(which, alpha, beta):
    student = "He(3, z)" if which == "mu_1" else "erf"
    teacher = "He(3, z)" if which == "teacher" else "erf"
    step = 0.0 if which == "step" else 3.0
    model = OneGradientStep(student, teacher, alpha, beta, step, 0.1)
    risk = model.risk(ridge=0.1)
    assert risk.improvement == 0 and risk.initial == risk.trained


# ------------------------------------------------------------------ limits


CONFIGURATION = reference_document()["wide_network"]


@pytest.fixture(scope="module")
def model():
    return model_of(CONFIGURATION["model"])


@pytest.fixture(scope="module")
def limits(model):
    return model.limits(ridge=paper_ridge(float(CONFIGURATION["paper_ridge"])))


def test_wide_networks(model, limits):
    # Ba et al., arXiv 2205.01445; digits of a 40-digit computation.
    penalty = float(CONFIGURATION["paper_ridge"])
    for row in CONFIGURATION["rows"]:
        wide = replace(model, beta=float(row["beta"])).risk(ridge=paper_ridge(penalty))
        assert float(row["beta"]) * wide.improvement == pytest.approx(
            float(row["scaled_improvement"]), abs=5.1e-5
        )
    far = 1e7 * replace(model, beta=1e7).risk(ridge=paper_ridge(penalty)).improvement
    assert limits["beta * improvement, beta to infinity"].value == pytest.approx(far, rel=2e-6)


def test_long_steps_many_samples_large_penalties(model, limits):
    penalty = float(CONFIGURATION["paper_ridge"])
    long = replace(model, step_size=1e5).risk(ridge=paper_ridge(penalty))
    assert limits["improvement, step size to infinity"].value == pytest.approx(
        long.improvement, rel=1e-8
    )
    many = replace(model, alpha=1e8).risk(ridge=paper_ridge(penalty))
    for layer in ("initial", "trained"):
        value = limits[f"risk {layer}, samples to infinity"].value
        assert value == pytest.approx(getattr(many, layer), rel=1e-6)
    strong = model.risk(ridge=paper_ridge(1e8)).improvement * 1e8
    value = limits["paper_ridge * improvement, penalty to infinity"].value
    assert value == pytest.approx(strong, rel=1e-6)
    weak = model.risk(ridge=paper_ridge(1e-12))
    assert limits["risk trained, penalty to zero"].value == pytest.approx(weak.trained, rel=1e-9)


@pytest.mark.parametrize(
    ("student", "teacher", "options"),
    [
        ("z", "erf", {"beta": 0.5}),
        ("z", "erf", {"beta": 2.0}),
        ("He(3, z)", "erf", {}),
        ("erf", "He(3, z)", {"alpha0": float("inf")}),
        ("erf", "z", {"beta": 2.0}),
        ("softplus", "relu", {"centre": True, "loss": "full", "step_size": 0.0}),
        ("z", "z", {"step_size": 0.0}),
    ],
)
def test_limits_exist_or_are_zero_where_there_is_no_signal(student, teacher, options):
    found = OneGradientStep(student, teacher, 2, **options).limits(ridge=0.3)
    values = {limit.name: limit.value for limit in found.limits}
    assert not any(np.isnan(v) for v in values.values()), values
    if teacher == "He(3, z)":  # no share of nothing
        assert values["removed share, step size to infinity"] == 0
    assert all(v >= 0 for v in values.values())
    assert "penalty" in str(found)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 40.0])
def test_wide_linear_students_with_enough_samples(alpha):
    # β δ → 0: like β^(-1/2) at n = d, like β^(-2) beyond.
    model = OneGradientStep("z", "erf", alpha, 2, 3, 0.2)
    found = model.limits(ridge=paper_ridge(0.3))["beta * improvement, beta to infinity"]
    assert found.value == 0 and found.formula == 0
    near, far = (
        b * replace(model, beta=b).risk(ridge=paper_ridge(0.3)).improvement for b in (1e5, 1e7)
    )
    power = -0.5 if alpha == 1 else -2
    assert np.log10(far / near) / 2 == pytest.approx(power, abs=0.02)


def test_wide_students_that_are_almost_linear():
    # P is a difference of numbers that agree to 60 digits; for small κ, P = κ/(α - 1).
    model = OneGradientStep("z + 1e-30*He(3, z)", "erf", 1.5, 2, 1)
    found = model.limits(ridge=1)["beta * improvement, beta to infinity"]
    own, label = model.student_moments, model.teacher_moments
    kappa, aligned = own.residual / own.linear**2, (own.linear * label.linear) ** 2
    expected = label.linear**2 * 2 * aligned * 1.5 * kappa**2 / 0.5**3
    assert found.value == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("value", [sp.nan, sp.zoo, sp.sqrt(-symbols.alpha), sp.Symbol("free")])
def test_a_formula_without_a_value_is_no_zero(model, value):
    with pytest.raises(AssumptionError, match="no value"):
        _float(value, model)


@pytest.mark.parametrize(
    "arguments", [{}, {"ridge": 0}, {"ridge": 1, "paper_ridge": 1}, {"ridge": -1}]
)
def test_limits_need_one_positive_penalty(model, arguments):
    with pytest.raises(ParameterError, match="ridge"):
        model.limits(**arguments)
