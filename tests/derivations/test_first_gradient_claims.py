"""Claims about first gradients: that their evidence can fail; that it passes is in test_claims."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

from giantstep.derivations.comparison import Comparison, compare, finding
from giantstep.derivations.first_gradient import claims_expansion, first_step
from giantstep.derivations.first_gradient.spike_mapping import best_linear_error
from giantstep.derivations.giant_steps import claims_equivalence as evidence
from giantstep.derivations.one_gradient_step import claims_spike
from giantstep.derivations.one_gradient_step.claims_spike import SPIKES, extrapolated, spike_table
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.hermite import equivalence
from giantstep.symbolic.targets import stein
from giantstep.symbolic.targets.projections import residual_norms
from giantstep.symbolic.targets.subspaces import Subspace

# ------------------------------------------------------------------ that evidence can fail


def with_wrong_coefficients(monkeypatch):
    right = stein._student_coefficients

    def wrong(*arguments):
        found = list(right(*arguments))
        found[3] *= sp.Rational(11, 10)
        return found

    monkeypatch.setattr(stein, "_student_coefficients", wrong)


def test_a_wrong_coefficient_is_noticed_by_algebra_and_quadrature(monkeypatch):
    with_wrong_coefficients(monkeypatch)
    assert not claims_expansion.polynomial_identity().passed
    monkeypatch.setattr(claims_expansion, "SMOOTH_STUDENTS", ("erf",))
    found = claims_expansion.quadrature_identity()
    assert not found.passed and found.details["largest_difference"] > 1e-3


def test_a_wrong_coefficient_is_noticed_by_samples(monkeypatch):
    with_wrong_coefficients(monkeypatch)
    monkeypatch.setattr(claims_expansion, "STUDENTS", ("z + He(2, z)/2 + He(3, z)/2",))
    monkeypatch.setattr(claims_expansion, "GRADIENT_TARGETS", ("1 + x1 + He(3, x2) + 4*x2",))
    assert not claims_expansion.sampled_gradients().passed


def test_a_spike_without_noise_is_noticed(monkeypatch):
    # The typeset formula of the source's slides leaves the label noise out of the spike.
    monkeypatch.setattr(first_step, "noise", sp.S.Zero)
    monkeypatch.setattr(claims_expansion, "PARTS", claims_expansion.PARTS[:1])
    assert not claims_expansion.gradient_parts(((100, 40),)).passed
    assert not claims_expansion.first_step_limits().passed


def test_comparisons_count_standard_errors_and_bias():
    values = np.array([0.9, 1.1, 1.0, 1.0])
    near, far = compare("x", 1.1, values, bias=0.0), compare("x", 1.3, values, bias=0.0)
    assert near.passed and not far.passed
    assert compare("x", 1.3, values, bias=0.2).passed
    assert not Comparison("x", 1.0, float("nan"), 0.1).passed
    details = Comparison("x", 2.0, 2.3, 0.1, dimension=50).details()
    assert details["deviation_in_standard_errors"] == pytest.approx(3)
    assert details["scaled_deviation"] == pytest.approx(50 * 0.15)
    assert not finding([near, far], "means").passed
    assert near.details()["theory"] == 1.1


@pytest.mark.parametrize(("theory", "deviation"), [(1.0, 0), (1.5, -math.inf)])
def test_means_without_standard_error_are_their_theory_or_not(theory, deviation):
    found = finding([compare("x", theory, np.ones(3)), compare("y", 0.0, np.arange(-2.0, 3))], "m")
    assert found.passed is (deviation == 0)
    assert found.details["x"]["deviation_in_standard_errors"] == deviation


def test_evidence_rejects_spikes_of_another_length(monkeypatch):
    # Networks that take a step of 1.15 times the size.
    true = claims_spike.one_step_network

    def longer(model, dimension):
        return true(replace(model, step_size=1.15 * model.step_size), dimension)

    monkeypatch.setattr(claims_spike, "one_step_network", longer)
    sizes = ((50, 30), (200, 12))
    found = spike_table(SPIKES[4:5], sizes, seed=3)
    assert not found.passed
    monkeypatch.undo()
    assert spike_table(SPIKES[4:5], sizes, seed=3).passed


def test_extrapolation_sees_what_does_not_vanish():
    generator = np.random.default_rng(0)
    sizes = ((50, 100), (200, 100))
    noise = [0.01 * generator.standard_normal(100) for _ in sizes]
    for left, passed in ((0.0, True), (0.02, False)):
        values = [left + 0.5 / math.sqrt(d) + e for (d, _), e in zip(sizes, noise, strict=True)]
        assert extrapolated("shift", 0.0, sizes, values, 0.5).passed == passed


def test_components_of_sampled_gradients_are_told_apart(monkeypatch):
    # Labels contribute the leading term and `beyond`; samples have more of `beyond`.
    dimension, width = 30, 60
    generator = np.random.default_rng(4)
    readout = generator.standard_normal(width)
    sampled, beyond, output = generator.standard_normal((3, dimension, width))
    leading = np.zeros_like(beyond)
    model = claims_spike.OneGradientStep("erf", "erf", alpha=2, beta=2)
    leading[0] = model.student_moments.linear * model.teacher_moments.linear * readout / width

    class Sampled:
        def __init__(self, network, seed):
            self.layer = SimpleNamespace(rows=np.zeros((width, dimension)), readout=readout)

        def step(self):
            self.layer.rows = self.layer.rows + math.sqrt(width) * sampled.T

    shares = iter((0.29, 0.31))

    def exact(*_):
        return SimpleNamespace(
            gradient=sampled - next(shares) * beyond, labels=leading + beyond, output=output
        )

    monkeypatch.setattr(claims_spike, "Training", Sampled)
    monkeypatch.setattr(claims_spike, "population_gradient", exact)
    found = claims_spike.sampled_population(networks=2)
    share = found.details["missing share along labels beyond the leading term"]["mean"]
    assert not found.passed and math.isclose(share, 0.3, rel_tol=1e-12)


# ---------------------------------------------------------------------- conditional equivalence


def wrong_closed_forms(student):
    right = right_closed_forms(student)
    mean = None if right.mean is None else 2 * right.mean
    return equivalence._ClosedForms(mean, right.slope, right.square, right.residual)


right_closed_forms = equivalence._closed_forms


def test_a_wrong_closed_form_is_found(monkeypatch):
    monkeypatch.setattr(equivalence, "_closed_forms", wrong_closed_forms)
    monkeypatch.setattr(evidence, "WITHOUT_CLOSED_FORM", ())
    monkeypatch.setattr(evidence, "SMOOTHED", ("erf",))
    for name in ("closed_forms", "quadrature"):
        assert not getattr(evidence, name)().passed


def test_a_wrong_coefficient_is_found(monkeypatch):
    right = equivalence._closed_coefficient
    monkeypatch.setattr(
        equivalence, "_closed_coefficient", lambda student, k: (k + 1) * right(student, k)
    )
    for name in ("hermite_students", "two_neurons"):
        assert not getattr(evidence, name)().passed


def test_another_definition_is_found(monkeypatch):
    monkeypatch.setattr(
        evidence.fe, "slope_definition", lambda student, c, rho: sp.Symbol("something else")
    )
    assert not evidence.one_source().passed


def test_a_wrong_residual_variance_is_found_by_sampling(monkeypatch):
    right = evidence.features_at

    def wrong(*arguments):
        found = right(*arguments)
        doubled = tuple(2 * value for value in found.residual_variance)
        return type(found)(
            found.projection, found.overlaps, found.spreads, found.mean, found.slope, doubled,
            found.digits,
        )  # fmt: skip

    monkeypatch.setattr(evidence, "features_at", wrong)
    found = evidence.sampled_features(
        ("relu",), dimension=80, width=16, blocks=40, block=500, seed=9
    )
    assert not found.passed


def test_the_series_off_the_diagonal_is_that_of_the_closed_form():
    generator = np.random.default_rng(1)
    outside = generator.standard_normal((3, 20)) / 5
    rho = np.linalg.norm(outside, axis=1)
    m = np.array([0.3, -1.0, 0.8])
    found = evidence._off_diagonal(activation("erf"), m, rho, outside, order=3)
    series = equivalence.conditional_equivalence("erf").residual_covariance(3)
    numbers = {
        equivalence.CORRELATION: float(outside[0] @ outside[1] / (rho[0] * rho[1])),
        sp.Symbol("c_i", real=True): m[0] * evidence.PROJECTION,
        sp.Symbol("c_j", real=True): m[1] * evidence.PROJECTION,
        sp.Symbol("rho_i", positive=True): rho[0],
        sp.Symbol("rho_j", positive=True): rho[1],
    }
    assert found[0, 1] == pytest.approx(float(series.subs(numbers)), rel=1e-9)


@pytest.mark.parametrize("teacher", ["erf", "relu", "sin", "z + He(2, z) - He(3, z)/2"])
def test_the_best_linear_error_is_the_residual_norm_without_directions(teacher):
    # ‖P_{>1} f‖² of spiked random features: U = {0}, degree 1.
    single = activation(teacher)
    residual = residual_norms(single, Subspace.zero(1), highest=1)[1]
    assert abs((residual - best_linear_error(single)).evalf(30)) < 1e-25
