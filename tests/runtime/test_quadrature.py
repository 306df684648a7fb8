"""Quadrature rules against exact Gaussian moments and high-precision values."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from giantstep.runtime import quadrature


def expectation(function, x, w):
    return float(np.sum(w * function(x)))


def reference(function, points=(-mpmath.inf, 0, mpmath.inf)):
    with mpmath.workdps(30):
        return float(mpmath.quad(lambda x: function(x) * mpmath.npdf(x), list(points)))


@pytest.mark.parametrize("order", [0, 2, 4, 8])
def test_all_rules_give_the_moments_of_the_normal_law(order):
    moment = math.prod(range(1, order, 2))
    rules = [
        quadrature.trapezoidal_rule(0.25),
        quadrature.gauss_hermite_rule(20),
        [a[0] for a in quadrature.split_rule(np.array([[0.3, -2.0]]))],
    ]
    for x, w in rules:
        assert_allclose(expectation(lambda t: t**order, x, w), moment, rtol=1e-13)


@pytest.mark.parametrize("slope", [0.5, 1.0, 2.0])
def test_trapezoidal_step_from_the_pole_distance_reaches_rounding(slope):
    # tanh(a z)^2 has its nearest pole at pi/(2a).
    x, w = quadrature.trapezoidal_rule(quadrature.trapezoidal_step(math.pi / 2 / slope))
    exact = reference(lambda t: mpmath.tanh(slope * t) ** 2)
    assert_allclose(expectation(lambda t: np.tanh(slope * t) ** 2, x, w), exact, rtol=0, atol=4e-16)


def test_step_for_entire_functions_uses_their_growth():
    # erf^2 grows like exp(2 y^2): a step made for slower growth is too large.
    step = quadrature.trapezoidal_step(math.inf, growth=2.0)
    assert step < quadrature.trapezoidal_step(math.inf)
    x, w = quadrature.trapezoidal_rule(step)
    value = expectation(np.vectorize(lambda t: math.erf(t) ** 2), x, w)
    assert_allclose(value, 2 / math.pi * math.asin(2 / 3), rtol=0, atol=4e-16)


def test_trapezoidal_rule_beats_gauss_hermite_for_tanh():
    # The reason for the choice: at equal error it needs some three times fewer nodes.
    exact = reference(lambda t: mpmath.tanh(t) ** 2)

    def error(x, w):
        return abs(expectation(lambda t: np.tanh(t) ** 2, x, w) - exact)

    x, w = quadrature.trapezoidal_rule(0.25, reach=8.5)
    assert error(x, w) < 1e-14
    assert error(*quadrature.gauss_hermite_rule(len(x))) > 1e-10


def test_a_line_is_cut_at_zero_and_at_its_kinks():
    x, w = quadrature.line_rule([0.7], reach=12.0)
    assert x.shape == w.shape and np.max(np.abs(x)) < 12
    # E|z| and E max(z - t, 0) = phi(t) - t (1 - Phi(t)).
    assert_allclose(expectation(np.abs, x, w), math.sqrt(2 / math.pi), rtol=1e-14)
    density = math.exp(-0.245) / math.sqrt(2 * math.pi)
    above = density - 0.35 * math.erfc(0.7 / math.sqrt(2))
    assert_allclose(expectation(lambda z: np.maximum(z - 0.7, 0), x, w), above, rtol=1e-13)


def test_split_rule_handles_a_jump_for_each_row():
    breaks = np.linspace(-2, 2, 5)[:, None]
    x, w = quadrature.split_rule(breaks)
    values = np.sum(w * (x > breaks), axis=1)
    exact = [0.5 * math.erfc(t / math.sqrt(2)) for t in breaks[:, 0]]
    assert_allclose(values, exact, rtol=0, atol=3e-16)


def test_refinement_divides_steps_and_panels():
    coarse, _ = quadrature.split_rule(np.zeros((1, 1)), refinement=0)
    fine, _ = quadrature.split_rule(np.zeros((1, 1)), refinement=1)
    assert fine.size == 2 * coarse.size
    x, _ = quadrature.inner_rule("trapezoidal", (1.0, 0.0, 0.0), 0)
    y, _ = quadrature.inner_rule("trapezoidal", (1.0, 0.0, 0.0), 2)
    assert_allclose(np.diff(x[0])[0], 4 * np.diff(y[0])[0], rtol=1e-12)


@pytest.mark.parametrize("refinement", range(3))
@pytest.mark.parametrize("frequency", [0.1, 4.9, 5.1, 18.77, 25.133, 60.0, 268.0])
def test_inner_rules_resolve_waves_of_a_known_frequency(frequency, refinement):
    arguments = {
        "trapezoidal": (math.inf, 0.0, frequency),
        "hermite": (48, frequency),
        "split": (np.array([[0.3]]), frequency),
    }
    for kind, argument in arguments.items():
        x, w = quadrature.inner_rule(kind, argument, refinement)
        wave = np.exp(1j * (frequency * x - 0.7))
        exact = math.exp(-(frequency**2) / 2) * np.exp(-0.7j)
        assert_allclose(np.sum(w * wave), exact, rtol=0, atol=2e-15, err_msg=kind)


@pytest.mark.parametrize("refinement", range(5))
def test_hermite_rules_stay_finite_under_refinement(refinement):
    x, w = quadrature.inner_rule("hermite", (48, 1.0), refinement)
    assert_allclose(np.sum(w * np.cos(x)), math.exp(-0.5), rtol=0, atol=1e-15)


@pytest.mark.parametrize("even", [True, False])
def test_outer_rules_are_nested_and_normalised(even):
    rules = quadrature.outer_rules(0.25, even)
    finest = rules[0][0]
    for (x, w, stride), tolerance in zip(rules, (1e-15, 1e-15, 2e-8), strict=True):
        assert_allclose(finest[::stride], x)
        # exp(-2 pi^2 / h^2) at h = 1 is 3e-9, twice that with both signs.
        assert_allclose(np.sum(w), 1, rtol=0, atol=tolerance)
        assert_allclose(np.sum(w * x**2), 1, rtol=0, atol=50 * tolerance)


@pytest.mark.parametrize("refinement", [-2, -1, 0])
@pytest.mark.parametrize("breaks", [[[-99.0, 99.0]], [[50.0, 0.0]], [[0.0, 0.0]]])
def test_breaks_outside_the_reach_or_twice_do_no_harm(breaks, refinement):
    x, w = quadrature.split_rule(np.array(breaks), refinement)
    # Sixteen nodes on a panel of at most 5.25 widths of the density.
    assert_allclose(np.sum(w * x**2), 1, rtol=1e-5 if refinement == -2 else 1e-10)
    assert (w >= 0).all() and np.abs(x).max() <= quadrature.REACH
