"""Evidence for the conditional Gaussian equivalence holds, and fails where a formula is wrong."""

import numpy as np
import pytest
import sympy as sp

from giantstep.derivations.first_gradient.spike_mapping import best_linear_error
from giantstep.derivations.giant_steps import claims_equivalence as evidence
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.hermite import equivalence
from giantstep.symbolic.targets.projections import residual_norms
from giantstep.symbolic.targets.subspaces import Subspace


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_entries_off_the_diagonal_are_of_order_one_over_d(name):
    generator = np.random.default_rng(8)
    scales = generator.uniform(-1, 1, 40)
    sizes = []
    for dimension in (100, 1600):
        outside = generator.standard_normal((40, dimension))
        outside /= np.linalg.norm(outside, axis=1)[:, None]
        found = evidence._off_diagonal(activation(name), scales, np.ones(40), outside)
        sizes.append(dimension * np.abs(found[np.triu_indices(40, 1)]).mean())
    # 780 pairs: the mean of the squared correlations has an error of some 5 %.
    assert sizes[1] == pytest.approx(sizes[0], rel=0.25)


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
