"""Spike and bulk of the first gradient against published values and the other lines of work."""

from __future__ import annotations

import math

import pytest
import sympy as sp
from numpy.testing import assert_allclose

from giantstep.derivations.first_gradient.first_step import first_step
from giantstep.derivations.first_gradient.spike_mapping import (
    _label_curvature,
    alpha0,
    noise,
)
from giantstep.errors import AssumptionError, ParameterError
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.targets.target import target

# one_gradient_step.md, section 0.
MU_TANH, RESIDUAL_TANH = 0.6057055096021588256, 0.02741532603543025716
MU_ERF, RESIDUAL_ERF = 0.6514700158705598954, 0.04014587281915241646


def test_values_are_those_checked_against_networks_of_the_source():
    # one_gradient_step.md, section 2, psi1 = 4, centred relu teacher: 0.3507, 0.0912, 0.413;
    # psi1 = 2, erf/tanh, noise 1/4: 0.5408, 0.2161.
    centred = first_step("tanh", "relu(x1) - 1/sqrt(2*pi)").values(alpha=4)
    assert_allclose([centred["spike"], centred["bulk"]], [0.3507, 0.0912], atol=6e-5)
    assert_allclose(centred["output"], 0.413, atol=6e-4)
    noisy = first_step("erf", "tanh(x1)").values(alpha=2, noise_variance=0.25)
    assert_allclose([noisy["spike"], noisy["bulk"]], [0.5408, 0.2161], atol=6e-5)


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_formulas_are_those_of_the_source_in_its_letters(alpha):
    # mu_1 sqrt(mu_1*² + S_y/psi1), sqrt(E sigma'_perp² S_y/psi1),
    # mu_1 sqrt(mu_1² (1 + 1/psi1) + mu_2²/psi1).
    found = first_step("erf", "tanh(x1)").values(alpha=alpha, noise_variance=0.3)
    labels = MU_TANH**2 + RESIDUAL_TANH + 0.3
    slope = 4 / (math.pi * math.sqrt(5)) - MU_ERF**2
    assert_allclose(found["spike"], MU_ERF * math.sqrt(MU_TANH**2 + labels / alpha), rtol=1e-13)
    assert_allclose(found["bulk"], math.sqrt(slope * labels / alpha), rtol=1e-12)
    output = MU_ERF * math.sqrt(MU_ERF**2 * (1 + 1 / alpha) + RESIDUAL_ERF / alpha)
    assert_allclose(found["output"], output, rtol=1e-13)
    cosine = alpha * MU_TANH**2 / (alpha * MU_TANH**2 + labels)
    assert_allclose(found["alignment"], cosine, rtol=1e-13)


def test_several_directions_give_exact_numbers():
    step = first_step("z + He(2, z)/2", "2*x1 - x2 + x1*x2 + 3")
    assert step.linear_part == sp.Matrix([2, -1])
    assert sp.expand(step.spike**2 - (5 + (15 + noise) / alpha0)) == 0
    # Var sigma' = 1 and mu_2 C_0 = 3: the mean of the target adds to the bulk.
    assert sp.expand(step.bulk**2 - ((15 + noise) / alpha0 + 9)) == 0
    assert sp.expand(step.output**2 - (1 + sp.Rational(3, 2) / alpha0)) == 0
    assert step.population_spike == sp.Matrix([2, -1])


def test_the_output_is_that_of_the_student_without_its_mean():
    # relu: mu_0² = 1/(2 pi), mu_1² = 1/4, E relu² = 1/2.
    output = first_step("relu", "x1").output
    expected = (sp.Rational(1, 4) + (sp.S.Half - 1 / (2 * sp.pi)) / alpha0) / 4
    assert sp.expand(output**2 - expected) == 0


def test_a_negative_slope_changes_no_norm():
    plus, minus = (first_step(s, "x1 + x1*x2") for s in ("erf", "-erf(z)"))
    assert plus.values(alpha=2) == pytest.approx(minus.values(alpha=2))
    assert minus.population_spike == -plus.population_spike


def test_numbers_need_a_sample_number_and_a_noise_that_make_sense():
    step = first_step("erf", target("x1"))
    for options, message in (
        ({"alpha": 0}, "alpha must be positive and finite, got 0"),
        ({"alpha": "2"}, "alpha must be a number, got '2'"),
        ({"alpha": 1, "noise_variance": -1}, "noise_variance must be >= 0 and finite, got -1"),
    ):
        with pytest.raises(ParameterError, match=message):
            step.values(**options)
    with pytest.raises(AssumptionError, match="'sign' has no weak derivative"):
        first_step("sign", "x1")
    blind = first_step("relu", "x1*x2")
    assert blind.alignment == 0 and blind.population_spike == sp.zeros(2, 1)
    assert blind.values(alpha=2)["spike"] == pytest.approx(0.5 * math.sqrt(1 / 2))


def test_noise_is_part_of_the_third_moment_of_labels():
    # E (z² + sqrt(Δ) ξ)³ = E z⁶ + 3 Δ E z².
    square = sp.Symbol("Y", positive=True)
    *_, across = _label_curvature(activation("z**2"), sp.S.Zero, sp.S.One, square)
    assert sp.simplify(across * alpha0 * square - 15 - 3 * noise) == 0
