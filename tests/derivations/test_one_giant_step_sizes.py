"""Sizes after one giant step: the part along w, norms, noise, spike and bulk, alignments."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.derivations.first_gradient.first_step import first_step
from giantstep.derivations.giant_steps.one_step import (
    STEP,
    Prefactor,
    giant_step,
    sphere_mean,
    statements,
)
from giantstep.symbolic.expressions.standing import Standing
from giantstep.symbolic.targets.stein import DIMENSION as d, SAMPLES as n

# Coefficients 1, 3/2, 2 of orders 1, 2, 3.
CUBIC = "z + 3*He(2, z)/4 + He(3, z)/3"


# ------------------------------------------------------------------ the part along w


def test_the_part_along_w_is_counted_where_it_is_not_small():
    # mu_2(relu) C_0 w with C_0 = 1 has length 1/sqrt(2 pi), the spike only 1/sqrt(d).
    step = giant_step("x1**2", "relu")
    assert step.along_exceeds
    assert sp.simplify(step.along - sp.sqrt(d / (2 * sp.pi))) == 0
    assert sp.limit(step.mean_alignment.subs(n, d**4), d, sp.oo) == 0
    centred = giant_step("x1**2 - 1", "relu")
    assert centred.along == 0 and not centred.along_exceeds
    assert sp.limit(centred.mean_alignment.subs(n, d**4), d, sp.oo) == 1
    assert {row.standing for row in statements(step)} == {Standing.DERIVED_HERE}
    assert "off the labels" in " ".join(str(step).split())


def test_the_part_along_w_of_a_skipped_order_has_the_size_of_the_spike():
    # relu(z - 1): mu_4 = 0, mu_6 = phi(1) He_4(1) = -2 phi(1), mu_5 = phi(1) He_3(1) = -2 phi(1).
    step = giant_step("He(4, x1) + He(5, x2)", "relu(z - 1)")
    u1, _ = step.overlaps
    phi = sp.exp(sp.Rational(-1, 2)) / sp.sqrt(2 * sp.pi)
    assert sp.simplify(step.along + 2 * phi * u1**4) == 0
    assert not step.along_exceeds


def test_the_mean_of_the_target_has_the_size_of_the_first_order():
    # Order 1: |mu_1 C_1|² = 1/4 against |mu_2 C_0|² = 9/(2 pi), both without d.
    step = giant_step("3 + x1", "relu")
    limit = sp.limit(step.mean_alignment.subs(n, d**3), d, sp.oo)
    assert sp.simplify(limit - sp.Rational(1, 4) / (sp.Rational(1, 4) + 9 / (2 * sp.pi))) == 0


# ------------------------------------------------------------------ sizes


def sphere_samples(dimension, variables, count, seed):
    rows = np.random.default_rng(seed).standard_normal((count, dimension))
    return rows[:, :variables] / np.linalg.norm(rows, axis=1)[:, None]


@settings(max_examples=10, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 2), st.integers(0, 2)), st.integers(-3, 3), min_size=1, max_size=4
    )
)
def test_sphere_means_are_those_of_the_sphere(terms):
    # On the circle moments are integrals over an angle; 16 points are exact to degree 15.
    w = sp.symbols("w1 w2", real=True)
    polynomial = sum((c * w[0] ** a * w[1] ** b for (a, b), c in terms.items()), sp.S.Zero)
    angles = 2 * np.pi * np.arange(16) / 16
    direct = sum(
        c * np.mean(np.cos(angles) ** a * np.sin(angles) ** b) for (a, b), c in terms.items()
    )
    assert float(sphere_mean(polynomial, w).subs(d, 2)) == pytest.approx(float(direct), abs=1e-12)


@pytest.mark.parametrize("target", ["x1 + x2*x3", "x1*x2 - He(2, x3) + 1", "x1*x2*x3 + He(3, x1)"])
def test_norms_follow_from_the_vectors(target):
    # Direct: w + s (spike + A w), averaged over samples of the sphere. The part of the mean overlap
    # with w that is left out of it belongs to the term linear in s, which has a test of its own.
    step = giant_step(target, CUBIC)
    weights, r = step.expansion.weights, step.target.dimension
    dimension, s = 12, 0.7
    points = sphere_samples(dimension, r, 200_000, 3)
    spike = np.stack(
        [np.broadcast_to(sp.lambdify(weights, e)(*points.T), len(points))
         for e in step.leading_vector], axis=1,
    )  # fmt: skip
    along = np.broadcast_to(sp.lambdify(weights, step.expansion.along())(*points.T), len(points))
    inside = points * (1 + s * along)[:, None] + s * spike
    outside = (1 + s * along) ** 2 * (1 - (points**2).sum(axis=1))
    square = (inside**2).sum(axis=1)
    rule = {d: dimension, n: sp.oo, STEP: sp.Rational(7, 10)}
    overlap = (points * spike).sum(axis=1) + along
    rest = step.squared_norm - 2 * STEP * step.start_overlap
    found = float(rest.subs(rule)) + 2 * s * overlap.mean()
    error = (square + outside).std() / math.sqrt(len(points))
    assert abs((square + outside).mean() - found) < 5 * error
    share = float((step.relevant_share * step.squared_norm).subs(rule))
    assert share == pytest.approx(square.mean(), rel=0.01)
    single = giant_step(target, CUBIC).spike_square.subs(d, dimension)
    assert float(single) == pytest.approx((spike**2).sum(axis=1).mean(), rel=0.03)


@pytest.mark.parametrize(
    ("target", "student", "slope"),
    [
        # <w, G> = E[f h(<w, x>)] with h = z σ', and E[He_2(x1) h(<w, x>)] = w1² E[He_2 h]: for relu
        # h = relu. Terms of higher degree of f are smaller.
        ("He(2, x1)", "relu", 1 / sp.sqrt(2 * sp.pi)),
        ("3*He(2, x1) - He(2, x2) + x1*x2*x3", "relu", 2 / sp.sqrt(2 * sp.pi)),
        # h = z² + z³: E[He_2 h] = 2.
        ("He(2, x1) + x1*x2", "z**2/2 + z**3/3", 2),
        # E[He_4 relu] = -1/sqrt(2 pi), and the mean of w1⁴ is 3/(d (d + 2)).
        ("He(4, x1)", "relu", -3 / sp.sqrt(2 * sp.pi) / (d + 2)),
    ],
)
def test_the_norm_grows_by_the_whole_overlap_of_gradient_and_start(target, student, slope):
    step = giant_step(target, student)
    linear = sp.expand(step.squared_norm).coeff(STEP, 1)
    assert sp.simplify(linear - 2 * slope / d) == 0


def test_noise_is_the_second_moment_of_the_labels_times_that_of_the_slope():
    # E f² = 2 + 1/4 with unit noise; E erf'² = 4/(pi sqrt(5)).
    step = giant_step("x1*x2 + He(2, x1)/2 + x3", "erf", noise_variance=1)
    second = 1 + sp.Rational(1, 2) + 1
    assert sp.simplify(step.noise - (second + 1) * 4 / (sp.pi * sp.sqrt(5))) == 0
    assert step.noise_square == step.noise * d / n


@pytest.mark.parametrize("student", ["relu", "tanh", "gelu"])
@pytest.mark.parametrize("target", ["x1 + x1*x2", "2 + x1 - x2 + He(2, x1)"])
def test_spike_and_bulk_of_the_whole_layer_add_up(student, target):
    # The limits of Ba et al. are derived from another rule.
    step, first = giant_step(target, student), first_step(student, target)
    values = first.values(alpha=5)
    rule = {n: 5 * d}
    whole = values["spike"] ** 2 + values["bulk"] ** 2
    along = float(step.along**2)
    assert float((step.spike_square + step.noise_square).subs(rule)) + along == pytest.approx(whole)
    assert float(step.mean_alignment.subs(rule)) == pytest.approx(
        float(sum(c**2 for c in first.population_spike)) / whole
    )
    assert float(step.label_overlap.subs(rule)) == pytest.approx(values["alignment"])
    assert float(step.bulk_growth.subs(rule)) + along == pytest.approx(values["bulk"] ** 2)


def test_the_best_alignment_is_that_of_a_long_step():
    step = giant_step("x1*x2 + He(3, x1)/2", "gelu", noise_variance=Fraction(1, 2))
    values = step.values(400, 400**2, learning_rate=1e9)
    # Of the noise r/d is inside the relevant space too.
    assert values.relevant_share == pytest.approx(values.alignment, abs=2.1 / 400)
    assert values.alignment == pytest.approx(
        values.spike / (values.spike + values.along + values.noise)
    )
    assert 0 < values.alignment < 1


def test_the_alignment_of_one_neuron_averages_to_that_of_means():
    step = giant_step("x1*x2", "relu")
    u1, u2 = step.overlaps
    ratio = step.alignment.subs(n, 3 * d**2)
    # c = (u1² + u2²)/(2 pi), s² = 1/2: the ratio of means has E c = 1/pi.
    assert sp.simplify(ratio - 1 / (1 + sp.pi / (3 * (u1**2 + u2**2)))) == 0
    assert sp.simplify(step.mean_alignment.subs(n, 3 * d**2) - 1 / (1 + sp.pi / 6)) == 0


@pytest.mark.parametrize("prefactor", [*Prefactor, *Prefactor.__members__])
def test_the_step_of_a_neuron_does_not_depend_on_the_prefactor(prefactor):
    step = giant_step("x1*x2", "relu")
    values = step.values(100, 10_000, width=64, prefactor=prefactor)
    assert values.step == pytest.approx(10)
    root = str(prefactor) in (Prefactor.ROOT.value, "ROOT")
    assert values.learning_rate == pytest.approx((8 if root else 64) * 10)
