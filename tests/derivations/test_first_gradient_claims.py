"""Claims about first gradients: that their evidence can fail; that it passes is in test_claims."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from giantstep.derivations.comparison import Comparison, compare, finding
from giantstep.derivations.first_gradient import (
    claims_expansion,
    claims_expansion as claims_preprocessed,
    first_step,
)
from giantstep.symbolic.targets import stein

# ------------------------------------------------------------------ sampled gradients


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


def test_a_wrong_constant_is_noticed(monkeypatch):
    right = claims_preprocessed._half
    monkeypatch.setattr(claims_preprocessed, "_half", lambda *given: 2 * right(*given))
    monkeypatch.setattr(claims_preprocessed.SampleComplexity, "relevant_share", lambda *given: 0.5)
    assert not claims_preprocessed.half_share(
        claims_preprocessed.SHARES[:1], (1.0,), dimension=50, networks=8, width=60
    ).passed


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
