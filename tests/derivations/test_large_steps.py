r"""Large steps: τ_* of pairs of activations, and what the minimum over amplitudes rests on.

Reference digits: 40-digit arithmetic, trapezoidal rule, minimum by bisection of J'; see the
provenance in ``derivations/one_gradient_step/reference.json``.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import sympy as sp

from giantstep import OneGradientStep
from giantstep.derivations.one_gradient_step.amplitude_minimum import (
    AmplitudeError,
    precise_minimum,
)
from giantstep.derivations.one_gradient_step.claims_large import joint_value
from giantstep.derivations.one_gradient_step.large_steps import large_step_limit
from giantstep.derivations.one_gradient_step.reference import reference_document
from giantstep.errors import AssumptionError, ConvergenceError, ExpressionError, ParameterError
from giantstep.numeric.local_minima import scan
from giantstep.numeric.smoothed import Smoothed
from giantstep.symbolic.expressions.activations import activation

TABLE = reference_document()["large_step_bound"]
IDENTIFIERS = [f"{row['student']}-{row['teacher']}" for row in TABLE]


@cache
def centred(student, teacher):
    """The limit of a pair, searched for once: half a second to two."""
    return large_step_limit(student, teacher, centre=True)


def same_digits(text, wanted):
    """Whether a value agrees with a table to the last digit printed there."""
    last = sp.Rational(10) ** -len(wanted.split("e")[0].partition(".")[2])
    if "e" in wanted:
        last *= sp.Rational(10) ** int(wanted.split("e")[1])
    return abs(sp.Rational(text) - sp.Rational(wanted)) <= last


@pytest.mark.parametrize(
    "row",
    [
        # Without a closed form the search takes two seconds.
        pytest.param(row, id=name, marks=[pytest.mark.slow] * name.startswith(("tanh", "softplus")))
        for row, name in zip(TABLE, IDENTIFIERS, strict=True)
    ],
)
def test_table_in_floating_point(row):
    found = centred(row["student"], row["teacher"])
    # J is a sum of squares, so that its rounding is relative to sqrt(J).
    assert abs(found.tau_star - float(row["tau"])) <= found.error + 1e-16
    assert found.amplitude == pytest.approx(float(row["argmin"]), rel=1e-13)
    assert found.best_linear_error == pytest.approx(float(row["best_linear_error"]), rel=1e-14)
    assert found.error < 1e-14


@pytest.mark.parametrize(
    "row", [r for r in TABLE if r["student"] not in ("tanh", "softplus")], ids=lambda r: r["tau"]
)
def test_table_to_every_digit(row):
    amplitude, tau = large_step_limit(row["student"], row["teacher"], centre=True, digits=18).texts
    assert same_digits(amplitude, row["argmin"])
    assert same_digits(tau, row["tau"])


@pytest.mark.parametrize(
    "student, teacher",
    [
        ("erf", "sin"),
        ("relu", "erf"),
        pytest.param("erf(2*z) + sin(z)/3", "relu", marks=pytest.mark.slow),
        ("He3", "sin"),
        ("abs", "He2"),
    ],
)
def test_closed_forms_agree_with_averages_over_two_variables(student, teacher):
    # Another route: correlated Gaussian variables instead of the smoothed student.
    error = AmplitudeError(activation(student), activation(teacher), False)
    assert error.is_closed
    h = sp.Rational(6, 5)
    value = sp.Float(str(error.precise(h, 28)[0]), 40)
    assert abs(value - joint_value(error, h, 40)) < sp.Float("1e-25") * (1 + abs(value))


@pytest.mark.parametrize(
    "student, teacher",
    [
        ("erf", "tanh"),
        ("gelu", "relu"),
        pytest.param("tanh(2*z)", "erf(z) + z**3/20", marks=pytest.mark.slow),
    ],
)
def test_the_error_estimate_is_honest(student, teacher):
    found = centred(student, teacher)
    error = AmplitudeError(activation(student), activation(found.teacher), True)
    value, better = error.precise(sp.Rational(found.amplitude), 18)
    assert abs(float(value) - found.tau_star) <= found.error
    assert abs(float(better) - found.amplitude) < 1e-12


@pytest.mark.parametrize(
    "student, teacher, amplitude",
    [
        ("erf", "erf(2*z)", sp.sqrt(12)), ("identity", "identity", 1),
        ("sin", "exp(-1/2)*sin(3*z)", 3), ("erf", "-erf(z)", -sp.sqrt(3)),
    ],
)  # fmt: skip
def test_zero_is_recognised_by_algebra(student, teacher, amplitude):
    # E erf(ht + ξ) = erf(ht/√3) and E sin(ht + ξ) = exp(-1/2) sin(ht).
    found = large_step_limit(student, teacher)
    assert found.exact == (amplitude, 0)
    assert found.tau_star == found.error == 0.0


def test_an_infimum_that_is_not_attained():
    found = large_step_limit("erf", "sign")
    assert found.amplitude == math.inf
    assert found.tau_star == 0.0
    with pytest.raises(ParameterError, match="no amplitude is best"):
        found.realised(0.3)
    assert json.dumps(found.to_dict())
    assert r"h \to \infty" in found.latex()


def test_a_teacher_that_varies_fast_is_found_far_out():
    # J(h) = const - exp(-1/2) [exp(-(h - 20)²/2) - ...] + ...: least near h = 20.
    assert large_step_limit("sin", "sin(40*z)").amplitude == pytest.approx(40, abs=1e-9)
    # A student of small slope needs large amplitudes.
    slow = large_step_limit("erf(z/10)", "erf(5*z)")
    # erf(h t/(10 sqrt(1 + 2/100))) is the teacher.
    assert slow.exact == (10 * sp.sqrt(sp.Rational(51, 2)), 0)
    # Figures reach as far: to twice the best amplitude, and half as far on the other side.
    data, best = slow.to_dataset(), 10 * math.sqrt(25.5)
    assert data.h.values == pytest.approx(np.linspace(-best, 2 * best, data.h.size), rel=1e-14)
    assert abs(data.h[data.J.values.argmin()] - best) < data.h[1] - data.h[0]


def test_no_part_of_an_odd_student_fits_an_even_teacher():
    found = large_step_limit("erf", "He2")
    assert found.amplitude == 0.0
    assert found.tau_star == pytest.approx(2, rel=1e-14)
    assert found.applies is False


@pytest.mark.parametrize(
    "student, teacher, amplitude, tau",
    [
        ("He3(z)", "sin(3*z)", -0.237111, 0.4973343403),
        ("z*exp(-z**2)", "tanh(z)", 0.975296, 0.2801298442),
        ("cos(2*z) + sin(z)", "tanh(z)", 0.976667, 0.0809394634),
        pytest.param("atan(z)", "He3(z)", -5.837397, 5.5941506442, marks=pytest.mark.slow),
        ("sin(z)+sin(5*z)/2", "sin(z)+sin(5*z)/2", 1.115173, 0.1882304860),
    ],
)
def test_minima_against_sums_over_fine_grids(student, teacher, amplitude, tau):
    # Smoothing by a discrete convolution of step 0.0025, |h| <= 40 in steps of 0.025 and finer.
    found = large_step_limit(student, teacher, centre=True)
    assert found.amplitude == pytest.approx(amplitude, abs=2e-6)
    assert found.tau_star == pytest.approx(tau, rel=1e-9)


@pytest.mark.slow
def test_scales_do_not_matter():
    found = large_step_limit("1e-12*tanh(z)", "1e-12*tanh(z)")
    assert found.amplitude == pytest.approx(1.58826795092911, rel=1e-9)
    assert found.tau_star == pytest.approx(9.452650663276910e-29, rel=1e-9, abs=0.0)
    small = large_step_limit("tanh", "1e-12*tanh(z)")
    # The smoothed student is known to 1e-16, which is 1e-4 of this teacher.
    assert small.amplitude == pytest.approx(1e-12, rel=1e-3, abs=0.0)
    assert abs(small.tau_star - 1e-24 * 0.02741532603543025716) <= small.error


@pytest.mark.slow
def test_digits_where_floats_know_four():
    # J is a small part of what is averaged, and the kernel in floats has no tables for it.
    amplitude, tau = large_step_limit("tanh", "1e-12*tanh(z)", digits=15).texts
    assert amplitude == "1.00000000000000e-12" and tau == "2.74153260354302e-26"


def test_a_flat_minimum_has_no_digits():
    # As where J is flat, Newton's method leads far away from 0.5, where J is not least.
    error = AmplitudeError(activation("tanh"), activation("tanh"), False)
    start = replace(centred("tanh", "tanh").minimum, amplitude=0.5)
    with pytest.raises(ConvergenceError, match=r"near h = 0\.5 cannot be refined: J is flat"):
        precise_minimum(error, start, 5)


def test_the_result_says_what_was_searched():
    found = centred("sin(z**2)", "tanh")
    assert found.searched_to == 32
    assert "nothing is known for |h| > 32" in found.rests_on
    assert found.rests_on in str(found) and found.to_dict()["searched_to"] == 32
    assert found.amplitude == 0  # by symmetry
    known = centred("tanh", "tanh")
    assert "only the limits are known" in known.rests_on
    assert known.applies is True and centred("relu", "tanh").applies is False
    assert {s.name for s in known.bound().free_symbols} == {"tau_*", "alpha", "C"}
    model = OneGradientStep("erf", "relu", alpha=2, centre=True).large_steps()
    assert model.tau_star == centred("erf", "relu").tau_star
    assert "C and α* are not known" in str(model) and "16 τ*: no" in str(model)


def test_even_pairs_have_two_best_amplitudes():
    found = large_step_limit("cos", "cos", centre=True)
    assert found.amplitude > 0
    assert found.minimum.others == pytest.approx((-found.amplitude,))


@pytest.mark.slow
def test_the_constant_does_not_decide():
    found = centred("erf", "erf")
    assert found.below_kernel_bound(16) == found.below_kernel_bound(10)
    with pytest.raises(ParameterError, match="constant must be positive"):
        found.below_kernel_bound(0)


def test_realised_function_and_errors():
    found = large_step_limit("erf", "erf")
    t = np.linspace(-2, 2, 7)
    np.testing.assert_allclose(found.realised(t), found.teacher_values(t), atol=1e-15)
    # At h = 0 nothing is represented.
    square = found.best_linear_error + found.linear_part**2
    assert found.error_at(0.0) == pytest.approx(square)
    with pytest.raises(ParameterError, match="amplitudes must be finite numbers"):
        found.error_at([1.0, math.nan])


@pytest.mark.parametrize(
    "arguments, kind, message",
    [
        (("relu", "erf"), AssumptionError, "student 'relu' is not centred"),
        (("sign", "erf"), AssumptionError, "jumps"),
        (("erf", "no_such"), ExpressionError, "teacher"),
        ((3, "erf"), ParameterError, "student"),
        (("erf", "erf", "no"), ParameterError, "centre must be True or False"),
    ],
)
def test_bad_functions_are_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        large_step_limit(*arguments[:2], **({"centre": "no"} if arguments[2:] else {}))


@pytest.mark.slow
def test_a_minimum_beyond_the_scan_is_an_error():
    with pytest.raises(ConvergenceError, match="beyond the amplitudes that are scanned"):
        large_step_limit("tanh(z/1000)", "erf")


def test_figures():
    pytest.importorskip("matplotlib")
    for student in ("tanh", "tanh(-z)"):
        found = large_step_limit(student, "sin")
        assert found.plot().get_legend() is not None
        axes = found.plot("errors")
        line = axes.lines[0]
        assert "amplitude" in axes.get_xlabel()
        assert line.get_ydata().max() <= axes.get_ylim()[1] and min(line.get_ydata()) < 0.01
        # From no step to twice the best one, of either sign.
        assert sorted(abs(line.get_xdata()))[-1] > 3.5 and min(abs(line.get_xdata())) < 0.1


def test_scan_finds_narrow_minima_by_the_bound_on_the_slope():
    # Two wells; the deeper one is narrower than the grid. sqrt(J) has slope at most 1.
    def value(h):
        return min(1.0, 0.05 + abs(h + 3), 0.01 + abs(h - 2.13)) ** 2

    found = scan(value, list(np.linspace(-8, 8, 17)), steepness=lambda a, b: 1.0, rounds=14)
    assert found.values.min() == pytest.approx(1e-4, rel=0.1)
    assert all(low < 2.14 and high > 2.12 for low, high in found.remaining)


def test_smoothing_of_functions_that_vary_fast():
    s = np.array([-20.3, -0.7, 0.02, 3.4, 31.0])
    # E sin(w(s + ξ)) = exp(-w²/2) sin(ws).
    for w in (0.3, 2.0, 60.0):
        wanted = math.exp(-(w**2) / 2) * np.sin(w * s)
        np.testing.assert_allclose(Smoothed(lambda v, w=w: np.sin(w * v))(s), wanted, atol=4e-15)
    # E cos((s + ξ)²) is the real part of exp(is²/(1 - 2i))/sqrt(1 - 2i).
    wanted = (np.exp(1j * s**2 / (1 - 2j)) / np.sqrt(1 - 2j)).real
    np.testing.assert_allclose(Smoothed(lambda v: np.cos(v**2))(s), wanted, atol=1e-13)
    with pytest.raises(ConvergenceError, match="vary too fast"):
        Smoothed(lambda v: np.sin(1e6 * v))(s)


def test_smoothing_by_quadrature():
    smooth = Smoothed(lambda s: np.maximum(s, 0.0), (0.0,))
    s = np.array([-2.0, 0.0, 1.5])
    smoothed = [
        x * (1 + sp.erf(x / sp.sqrt(2))) / 2 + sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)
        for x in map(sp.Rational, s)
    ]
    wanted = [float(value.evalf(20)) for value in smoothed]
    np.testing.assert_allclose(smooth(s), wanted, rtol=1e-14, atol=1e-15)
