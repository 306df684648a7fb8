"""Teachers of several directions: reading, moments, equations, errors and refusals."""

import re

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.cli_curve import _realised
from giantstep.derivations.spiked_random_features import physics as fe
from giantstep.derivations.teachers import (
    DirectionalTeacher,
    label_power,
    leap_index,
    nonlinear_variance,
    read_teacher,
)
from giantstep.errors import AssumptionError, ExpressionError, UnsupportedExpressionError

MODEL = {"step_size": 1.0, "alpha0": 20.0, "noise_variance": 0.1}


def spiked(teacher, student="tanh", **others):
    return gs.SpikedRandomFeatures(student, teacher, **{**MODEL, **others})


# ------------------------------------------------------------------ moments


def test_frame_is_orthonormal_with_the_linear_part_first():
    f = read_teacher("relu(x1) + x2 + x1*x3")
    assert isinstance(f, DirectionalTeacher)
    frame = sp.Matrix([f.direction, *f.across])
    assert sp.simplify(frame * frame.T) == sp.eye(3)
    assert f.direction == (sp.sqrt(5) / 5, 2 * sp.sqrt(5) / 5, 0)
    assert leap_index(f) == 1


@pytest.mark.parametrize(
    ("text", "centre", "spread"),
    [
        ("relu(x1) + x2", 0.7, 0.6),
        ("erf(x1) + erf(x2)", -0.4, 0.8),
        ("sin(x1)*x2 + x1 + x2**2", 1.1, 0.5),
        ("x1 + 2*x2 + x1*x2 - x2**3", 0.3, 0.0),
    ],
)
def test_moments_are_those_of_a_sum_over_both_directions(text, centre, spread):
    f = read_teacher(text)
    found = f.moments(sp.Float(centre, 30), sp.Rational(repr(spread)))
    # Independent: a trapezoidal sum over s and the direction across, in the inputs.
    h = 1 / 64
    t = np.arange(-9, 9 + h / 2, h)
    s, other = np.meshgrid(t, t, indexing="ij")
    weight = h**2 * np.exp(-(s**2 + other**2) / 2) / (2 * np.pi)
    theta, n = (np.array([float(x) for x in row]) for row in (f.direction, f.across[0]))
    x1, x2 = (theta[i] * (centre + spread * s) + n[i] * other for i in range(2))
    spelled = ["scipy", {"relu": lambda x: np.maximum(x, 0)}]
    function = sp.lambdify(f.target.variables, f.target.expr, spelled)
    label = function(x1, x2)
    stated = [
        np.sum(weight * label * factor) for factor in (1, s if spread else 0 * s, other, label)
    ]
    given = (found.mean, found.along, found.across[0], found.square)
    assert [float(sp.N(v.doit(), 20)) for v in given] == pytest.approx(stated, abs=2e-4, rel=2e-4)


def test_powers_are_moments_of_the_target():
    f = read_teacher("x1*x2 + x1")
    assert [label_power(f, n) for n in range(5)] == [1, 0, 2, 0, 30]
    assert nonlinear_variance(f) == 1


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("several", "one"),
    [("erf(x1 + x2)", "erf(sqrt(2)*z)"), ("x3 + x3**2", "z + z**2")],
)
def test_one_direction_in_disguise_is_a_single_index(several, one):
    left, right = (spiked(text).solve(alpha=2, ridge=0.1) for text in (several, one))
    assert left.test_error == pytest.approx(right.test_error, rel=1e-12)
    assert left.training_error == pytest.approx(right.training_error, rel=1e-12)
    steps = [gs.OneGradientStep("erf", t, alpha=2, centre=True) for t in (several, one)]
    risks = [step.solve(ridge=0.1).trained for step in steps]
    assert risks[0] == pytest.approx(risks[1], rel=1e-12)


def test_a_rotated_teacher_has_the_same_errors():
    # (x1 + x2)/√2 and (x1 - x2)/√2 in place of x1 and x2.
    one = spiked("x1 + x1*x2").solve(alpha=2, ridge=0.1)
    other = spiked("(x1 + x2)/sqrt(2) + (x1**2 - x2**2)/2").solve(alpha=2, ridge=0.1)
    assert other.test_error == pytest.approx(one.test_error, rel=1e-12)


def test_precise_value():
    model = spiked("x1*x2 + x1", step_size=1.5, alpha0=4.0)
    precise = model.solve(alpha=2, ridge=0.1, digits=25)
    assert str(precise.test_error).startswith("1.5135111877666352244")
    assert model.solve(alpha=2, ridge=0.1).test_error == pytest.approx(
        float(precise.test_error), rel=1e-12
    )


def test_even_parts_across_the_spike_are_learned_and_odd_ones_are_not():
    even = spiked("x1 + He(2, x1)*x2").solve(alpha=2, ridge=0.1)
    odd = spiked("x1 + x1*x2").solve(alpha=2, ridge=0.1)
    assert abs(even.psi2) > 0.001
    assert abs(odd.psi2) < 1e-14


def test_without_a_step_the_theories_meet():
    plain = spiked("x1*x2 + x1 + x2", step_size=0)
    step = plain.as_gradient_step(alpha=2)
    assert plain.solve(alpha=2, ridge=0.1).test_error == pytest.approx(
        step.solve(ridge=0.1).initial, rel=1e-12
    )


@pytest.mark.slow
def test_curve_has_the_added_overlaps_and_derivatives_are_right():
    model = spiked("x1 + He(2, x1)*x2")
    curve = model.curve(alpha=[1.0, 2.0], ridge=0.1).to_dataset()
    one = model.solve(alpha=2, ridge=0.1)
    assert curve["psi2"].to_numpy()[1] == pytest.approx(one.psi2, rel=1e-9)
    slope = model.sensitivities(alpha=2, ridge=0.1)["test_error", "step_size"]
    h = 1e-4
    up, down = (model.at(step_size=1 + x).solve(alpha=2, ridge=0.1).test_error for x in (h, -h))
    assert slope == pytest.approx((up - down) / (2 * h), rel=1e-5)


def test_saved_models_and_the_command_line(capsys):
    from giantstep.cli import main

    step = gs.OneGradientStep("erf", gs.target("x1*x2 + x1"), alpha=2)
    assert type(step).from_json(step.to_json()) == step
    assert main(["solve", "--teacher", "x1*x2 + x1", "--alpha", "2"]) == 0
    assert "1.2706458" in capsys.readouterr().out
    assert main(["solve", "--teacher", "x1*x2", "--alpha", "2"]) != 0
    assert "no linear part" in capsys.readouterr().err


def test_a_given_spike_is_along_the_linear_part():
    model = gs.SpikedRandomFeatures.from_parameters(
        "erf", "x1 + 2*x2 + x1*x2", spike_strength=1.0, bulk_variance=1.1, alignment=0.8
    )
    found = model.simulate(60, alpha=[1.0], seeds=2, progress=False, workers=1)
    alignment = found["alignment"].to_numpy().reshape(2, -1)
    assert alignment == pytest.approx(np.array([[0.8, 0.0]] * 2), abs=1e-12)


# ------------------------------------------------------------------ refusals


def test_unused_symbols_of_the_free_energy():
    energy = fe.spiked_free_energy(read_teacher("sin"), read_teacher("x1 + x1*x2*x3"))
    # Linear parts across the spike that vanish have no overlap.
    assert not energy.free_energy.expression.has(*(a.overlap for a in fe.ACROSS))


def test_the_alignment_of_networks_is_that_with_the_first_coefficient():
    """Another direction of the teacher, which the spike does not see, is not averaged with it."""
    model = spiked("x1*x2 + x1")
    networks = model.simulate(100, alpha=[1.0], ridge=0.1, seeds=4, progress=False)
    value, limit = re.findall(r"γ = (\S+) ± \S+ \(limit ([0-9.]+)\)", _realised(model, networks))[0]
    assert float(value) == pytest.approx(float(limit), abs=0.1)


STEP = gs.OneGradientStep("erf", "x1*x2 + x1", alpha=2)
COMBINE = r"several directions.*solve, curve"
ALONE = (
    lambda m: m.bounds(), lambda m: m.asymptotics(), lambda m: m.realised_functions(),
    lambda m: m.expansion("large_alpha", ridge=0.1), lambda m: m.with_loss("huber(0.3)"),
    lambda m: m.learned_bias(alpha=2, ridge=0.1),
    lambda m: m.realised(dimension=60, alpha=1, ridge=0.1),
)  # fmt: skip


@pytest.mark.parametrize(
    ("ask", "kind", "words"),
    [
        (lambda: spiked("x1*x2"), AssumptionError,
         r"no linear part: C_1 = E\[x f\(x\)\] = 0.*leap index 1"),
        (lambda: spiked("x1 - x1"), AssumptionError, "is a constant"),
        (lambda: spiked("erf(x1*x2) + x1"), UnsupportedExpressionError,
         "more than one linear form"),
        (lambda: spiked("tanh(x1) + tanh(x2)"), UnsupportedExpressionError,
         "no closed form in one of two"),
        (lambda: spiked("tanh(x1) + x2"), UnsupportedExpressionError,
         "mixes numbers without closed form"),
        (lambda: spiked("x1 + x2*x3*x4*x5*x6"), UnsupportedExpressionError, "at most 5"),
        (lambda: spiked("z + x1*x2"), ExpressionError, "unknown name 'z'"),
        (lambda: spiked("x1*x2 + x1", "relu", allow_non_odd=True, leading_order="complete"),
         AssumptionError, "derived for odd students of teachers of several"),
        *((lambda ask=ask: ask(spiked("x1*x2 + x1")), UnsupportedExpressionError, COMBINE)
          for ask in ALONE),
        (lambda: STEP.large_steps(), UnsupportedExpressionError, COMBINE),
        (lambda: gs.large_step_limit(STEP.student, STEP.teacher), UnsupportedExpressionError,
         COMBINE),
        (lambda: STEP.population_gradient(np.eye(3), np.ones(3)), UnsupportedExpressionError,
         COMBINE),
        (lambda: STEP.at_width(500), UnsupportedExpressionError, COMBINE),
    ],
)  # fmt: skip
def test_what_cannot_be_or_does_not_combine_is_refused(ask, kind, words):
    with pytest.raises(kind, match=words):
        ask()
