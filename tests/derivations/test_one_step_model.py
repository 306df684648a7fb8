"""The model of one gradient step: its arguments, the moments it knows, and how it travels."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep import OneGradientStep
from giantstep.derivations.one_gradient_step import moments as moments_module
from giantstep.derivations.one_gradient_step.moments import exact_moments
from giantstep.derivations.one_gradient_step.symbols import (
    aligned_square,
    orthogonal_square,
    spike_square,
)
from giantstep.derivations.penalties import given_penalty, paper_ridge, penalties, penalty_of
from giantstep.errors import AssumptionError, ExpressionError, ParameterError

z = sp.Symbol("z")
GIVEN = {"student": "erf", "teacher": "tanh", "alpha": 2, "beta": 1.5, "step_size": 2}


def model(**changes):
    return OneGradientStep(**GIVEN | changes)


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize("name", ["alpha", "beta", "alpha0"])
@pytest.mark.parametrize("value", [0, -1, -math.inf, math.nan, True, "2", [2], 1j, 10**400, sp.pi])
def test_ratios_are_positive_numbers(name, value):
    with pytest.raises(ParameterError, match=f"^{name} "):
        model(**{name: value})


@pytest.mark.parametrize("name", ["step_size", "noise_variance"])
@pytest.mark.parametrize(
    "value", [-1, -1e-300, math.inf, math.nan, False, None, "1", np.ones(2), 1j, 10**400]
)
def test_sizes_are_not_negative(name, value):
    with pytest.raises(ParameterError, match=f"^{name} "):
        model(**{name: value})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"loss": "double"}, ParameterError, "'half', for .* or 'full'"),
        *(({"loss": x}, ParameterError, "loss must be 'half'") for x in (None, 2, ["half"])),
        ({"centre": 1}, ParameterError, "centre must be True or False"),
        ({"cache_folder": 3}, ParameterError, "cache_folder must be a path or None"),
        ({"loss": "full", "step_size": 1e308}, ParameterError, "step_size = 1e\\+308 is too large"),
        ({"student": None}, ParameterError, "student has to be"),
        ({"teacher": 3}, ParameterError, "teacher has to be"),
        ({"student": "foo"}, ExpressionError, "unknown student 'foo'"),
        ({"teacher": "__import__('os')"}, ExpressionError, "cannot read teacher"),
        ({"teacher": "1"}, ExpressionError, "constant"),
        ({"student": "z*0"}, ExpressionError, "constant"),
        ({"student": "exp(z**2)"}, AssumptionError, "student .* below exp"),
        ({"teacher": "1/z"}, AssumptionError, "teacher .* singular at z = 0"),
        ({"student": "relu"}, AssumptionError, "mu_0 = 0.398942.* trivial outlier .* centre=True"),
        ({"teacher": "relu"}, AssumptionError, "teacher .* mean is 0.398942.* centre=True"),
        ({"student": "sign"}, AssumptionError, "'sign' jumps: .* step_size=0"),
        ({"student": "step", "centre": True}, AssumptionError, "'step' jumps"),
    ],
)
def test_refusals_say_what_would_be_right(arguments, error, message):
    with pytest.raises(error, match=message):
        model(**arguments)


def test_what_is_allowed_after_all():
    assert model(alpha0=math.inf).step_samples == math.inf
    for name in ("alpha", "beta"):
        with pytest.raises(ParameterError, match=f"{name} must be positive and finite, got inf"):
            model(**{name: math.inf})
    assert model(teacher="sign").teacher_moments.jumps
    assert model(student="relu", teacher="relu", centre=True).student_moments.mean > 0
    numbers = model(alpha=Fraction(1, 2), beta=sp.Rational(3, 2), step_size=np.int64(2))
    assert (numbers.alpha, numbers.beta, numbers.step_size) == (0.5, 1.5, 2.0)
    assert {type(x) for x in (numbers.alpha, numbers.beta, numbers.step_size)} == {float}


# ---------------------------------------------------------------------- what it says


def test_sympy_objects_are_functions():
    assert model(student=sp.erf(z), teacher=z**3 - 3 * z) == model(teacher="He3")
    mixed = model(student=sp.tanh(z) + z / 4)
    known = model(student="tanh").student_moments
    assert mixed.student_moments.linear == pytest.approx(known.linear + 0.25, rel=1e-15)
    with pytest.raises(ExpressionError, match="student"):
        model(student=sp.Symbol("x"))


def test_presentation():
    assert eval(repr(model(alpha0=1.0))) == model(alpha0=1.0)
    assert str(model()) == (
        "one gradient step: student = erf, teacher = tanh, alpha = 2.0, beta = 1.5, "
        "step_size = 2.0, noise_variance = 0.0"
    )
    assert "alpha0 = inf" in str(model(alpha0=math.inf))
    shown = model(student="z + (z**2 - 1)/4", alpha0=math.inf)._repr_html_()
    assert "<th>alpha0</th><td>inf</td>" in shown and "<th>step size</th><td>2.0</td>" in shown
    assert "<th>student, linear part</th><td>1</td>" in shown
    assert "<th>student, variance of the rest</th><td>0.125</td>" in shown
    assert "it does not hold that the student is odd" in shown


def test_standing_rests_on_parity():
    assert "theorem" in model().standing
    for student in ("relu", "softplus", "gelu", "z + (z**2 - 1)/4"):
        lax = model(student=student, centre=True)
        assert (
            "it does not hold that the student is odd" in lax.standing
            and "simulations" in lax.standing
        )
        assert lax.standing in lax.risk(ridge=0.1).rests_on


# ---------------------------------------------------------------------- moments


def closed_forms(ctx):
    """Mean, linear part, residual and slope variance of some activations, by hand."""
    pi, e, half = ctx.pi, ctx.e, ctx.mpf(1) / 2
    return {
        "erf": (0, 2 / ctx.sqrt(3 * pi), 2 / pi * ctx.asin(ctx.mpf(2) / 3) - 4 / (3 * pi),
                4 / (pi * ctx.sqrt(5)) - 4 / (3 * pi)),
        "sin": (0, e**-half, (1 - e**-2) / 2 - 1 / e, (1 + e**-2) / 2 - 1 / e),
        "relu": (1 / ctx.sqrt(2 * pi), half, half / 2 - 1 / (2 * pi), half / 2),
        "He3": (0, 0, 6, 18),
        "z": (0, 1, 0, 0),
    }  # fmt: skip


@pytest.mark.parametrize("name", closed_forms(mpmath))
def test_moments_in_closed_form(name):
    ctx = mpmath.MPContext()
    ctx.dps = 230
    expected = dict(
        zip(("mean", "linear", "residual", "slope_variance"), closed_forms(ctx)[name], strict=True)
    )
    known = model(student=name, centre=True).student_moments
    for part, value in expected.items():
        assert getattr(known, part) == pytest.approx(float(value), rel=1e-15, abs=0)
        assert abs(ctx.mpf(dict(known.digits)[part]) - value) <= abs(value) * ctx.mpf(10) ** -58
    for digits in (60, 200):
        precise = known.precise(digits)
        assert set(precise) == {"linear", "residual"}
        for part, text in precise.items():
            gap = abs(ctx.mpf(text) - expected[part])
            assert gap <= abs(expected[part]) * ctx.mpf(10) ** -digits
    assert not known.jumps and known.square == known.linear**2 + known.residual


def test_moments_by_quadrature_are_kept(tmp_path, monkeypatch):
    """E z tanh(z) and E tanh² - (E z tanh)², against mpmath's own quadrature."""
    known = model(student="tanh", cache_folder=tmp_path).student_moments
    with mpmath.workdps(95):
        density = mpmath.sqrt(2 / mpmath.pi)
        ends = [0, 1, 2, 4, 8, 16, 24]

        def mean(f):
            return density * mpmath.quad(lambda x: f(x) * mpmath.exp(-x * x / 2), ends)

        linear = mean(lambda x: x * mpmath.tanh(x))
        residual = mean(lambda x: mpmath.tanh(x) ** 2) - linear**2
        precise = known.precise(80)
        assert abs(mpmath.mpf(precise["linear"]) - linear) < mpmath.mpf(10) ** -80
        assert abs(mpmath.mpf(precise["residual"]) - residual) < mpmath.mpf(10) ** -81
    # Another process reads them.
    moments_module._with_digits.forget()
    monkeypatch.setattr(moments_module, "exact_moments", lambda name: pytest.fail("derived again"))
    assert known.precise(80) == precise


@pytest.mark.parametrize("digits", [0, -1, 1.5, "abc", None, float("nan"), True, 10**9])
def test_digits_of_moments_are_checked(digits):
    with pytest.raises(ParameterError, match="digits must be"):
        model(student="erf").student_moments.precise(digits)


def test_exact_moments():
    found = exact_moments("sign")
    assert found["linear"] == sp.sqrt(2 / sp.pi) and found["slope_variance"] is sp.nan
    # Zeros are zeros, not small floats.
    for name in ("tanh", "z**3 - 3*z", "z*exp(-z**2)"):
        assert exact_moments(name)["mean"] is sp.S.Zero
    assert model(student="z").student_moments.exact()["residual"] is sp.S.Zero


# ---------------------------------------------------------------------- the spike and penalties


def test_sizes_of_the_spike():
    """The longer formula is the sum of its parts; erf/erf as printed in 40-digit arithmetic."""
    assert sp.expand(spike_square() - aligned_square() - orthogonal_square()) == 0
    from giantstep.derivations.one_gradient_step.risk import model_parameters
    from giantstep.derivations.one_gradient_step.symbols import IDENTIFIERS

    one = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, noise_variance=0.25)
    values = {x: model_parameters(one).get(name, 0) for x, name in IDENTIFIERS.items()}
    sizes = [float(sp.sqrt(square().subs(values))) for square in (spike_square, aligned_square)]
    assert sizes == pytest.approx([1.151973419048793, 0.8488263631567751], rel=1e-14)


@settings(max_examples=20, deadline=None)
@given(ridge=st.floats(1e-300, 1e300), ratio=st.floats(1e-3, 1e3))
def test_two_conventions_of_the_penalty(ridge, ratio):
    of_paper = paper_ridge(ridge)
    assert given_penalty(ridge) == ("ridge", ridge)
    assert given_penalty(of_paper) == ("paper_ridge", ridge)
    assert penalty_of(ridge, ratio) == ridge
    assert penalty_of(of_paper, ratio) * ratio == pytest.approx(ridge, rel=1e-14)
    assert of_paper.at(alpha=2.0, beta=2.0 * ratio) == pytest.approx(ridge / ratio, rel=1e-14)
    assert penalties([0, ridge], ratio).tolist() == [0, ridge]
    assert penalties(paper_ridge([0, ridge]), 1.0).tolist() == [0, ridge]


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (lambda: None, r"ridge must be given: .* or giantstep\.paper_ridge"),
        (lambda: [], "ridge must hold at least one number"),
        (lambda: paper_ridge([[1.0]]), "paper_ridge must"),
        (lambda: paper_ridge([]), "paper_ridge must hold at least one number"),
        (lambda: np.ones((2, 2)), "ridge must have at most one dimension"),
        (lambda: [1, math.nan], "ridge must be a number"),
        (lambda: paper_ridge(-1), "paper_ridge must be >= 0"),
        (lambda: "1", "ridge must be a number"),
    ],
)
def test_bad_penalties(give, message):
    with pytest.raises(ParameterError, match=message):
        penalties(give(), 1.0)
