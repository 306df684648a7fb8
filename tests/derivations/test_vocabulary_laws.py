"""Laws of letters, and teachers of several coordinates."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.special
import scipy.stats
from numpy.testing import assert_allclose

import giantstep as gs
from giantstep.derivations.spiked_random_features.vocabulary.nodes import _multi_index_moments
from giantstep.errors import ConvergenceError

from .vocabulary_cases import TWO, make


@pytest.fixture(scope="module")
def two():
    return make("erf", "sin", beta=0.7, **TWO)


def test_law_of_letters_converges_with_the_rule():
    given_ = {"step_size": 3, "alpha0": 8, "width": 600}
    errors = {}
    for nodes in (8, 12, 16, 20):
        model = gs.VocabularyFeatures.from_law(
            "tanh", "sin", law=scipy.stats.uniform(-1, 2.5), nodes=nodes, **given_
        )
        errors[nodes] = model.solve(alpha=2, ridge=0.1)
    exact = errors[20].test_error
    for nodes in (8, 12, 16):
        assert abs(errors[nodes].test_error - exact) <= errors[nodes].quadrature_error
    assert errors[16].quadrature_error < 1e-8
    assert errors[16].strict_limit is None


def test_law_as_text_and_as_distribution_agree():
    given_ = {"step_size": 3, "alpha0": 8, "width": 600, "nodes": 12, "bulk": "orthonormal"}
    law = scipy.stats.beta(2, 2, loc=-1, scale=2)
    one = gs.VocabularyFeatures.from_law("erf", "sin", law=law, **given_)
    other = gs.VocabularyFeatures.from_law(
        "erf", "sin", law="3*(1 - a**2)/4", support=(-1, 1), **given_
    )
    assert_allclose(
        other.solve(alpha=1, ridge=0.1).test_error,
        one.solve(alpha=1, ridge=0.1).test_error,
        rtol=1e-9,
    )


def test_discrete_law_is_a_vocabulary():
    law = scipy.stats.binom(2, 0.3)
    model = gs.VocabularyFeatures.from_law("erf", "sin", law=law, step_size=2, alpha0=5)
    direct = gs.VocabularyFeatures("erf", "sin", [0, 1, 2], [0.49, 0.42, 0.09], 2, 5)
    assert_allclose(
        model.solve(alpha=1, ridge=0.1).test_error,
        direct.solve(alpha=1, ridge=0.1).test_error,
        rtol=1e-12,
    )


def test_coordinates_of_the_teacher():
    given_ = {
        "spike_strengths": [[1.2, 0.3], [-0.6, 0.8]], "bulk_variances": [1.1, 1.02],
        "fractions": [0.4, 0.6], "beta": 0.7,
    }  # fmt: skip
    single = make("erf", "sin", alignment=[0.6, 0.5], **given_).solve(alpha=2, ridge=0.1)
    written = make("erf", "sin(x1)", alignment=[[0.6], [0.5]], **given_).solve(alpha=2, ridge=0.1)
    assert_allclose(written.test_error, single.test_error, rtol=1e-12)
    # A polynomial of two directions: E (x1 x2)² = 1 is learnt by none of the odd parts.
    product = make("erf", "x1*x2", alignment=[0.8, 0.7], **given_).solve(alpha=2, ridge=1e6)
    assert_allclose(product.test_error, 1, atol=1e-3)


def test_overlaps_along_the_teacher_are_in_the_frame_of_its_coordinates():
    given_ = {
        "spike_strengths": [1.2, -0.6], "bulk_variances": [1.1, 1.02], "fractions": [0.4, 0.6],
    }  # fmt: skip
    first = make("tanh", "sin(x1) + tanh(x1*x2) + x2", alignment=[[0.7, 0.4]], **given_)
    other = make("tanh", "sin(x2) + tanh(x1*x2) + x1", alignment=[[0.4, 0.7]], **given_)
    psi = first.solve(alpha=2, ridge=0.1).psi
    assert psi.shape == (2, 2)
    # The same in another order; the first direction is that of x1, free of what x2 is.
    turned = other.solve(alpha=2, ridge=0.1).psi
    assert_allclose(turned.T @ turned, psi.T @ psi, rtol=1e-9)
    outside = np.array([[1 - 0.49, -0.28], [-0.28, 1 - 0.16]])
    to_other = outside[1, 0] / np.sqrt(outside[0, 0] * outside[1, 1])
    expected = to_other * psi[0] + np.sqrt(1 - to_other**2) * psi[1]
    assert_allclose(turned[0], expected, rtol=1e-9)
    # One coordinate: as without its name. A direction inside the spikes has no part outside.
    single = make("tanh", "sin", alignment=0.7, **given_).solve(alpha=2, ridge=0.1).psi
    assert_allclose(
        make("tanh", "sin(x1)", alignment=[[0.7]], **given_).solve(alpha=2, ridge=0.1).psi,
        single,
        rtol=1e-9,
    )
    inside = (
        make("tanh", "sin(x1) + x2", alignment=[[1.0, 0.0]], **given_).solve(alpha=2, ridge=0.1).psi
    )
    assert_allclose(inside[0], 0, atol=1e-12)
    assert np.max(np.abs(inside[1])) > 0.01


def test_rank_three_agrees_with_rank_two_in_a_plane():
    plane = {"bulk_variances": [1.1, 1.02], "fractions": [0.4, 0.6], "beta": 0.7}
    two_ = make(
        "erf", "sin", spike_strengths=[[1.2, 0.3], [-0.6, 0.8]], alignment=[0.6, 0.5], **plane
    )
    three = make(
        "erf", "sin", spike_strengths=[[1.2, 0.3, 0], [-0.6, 0.8, 0]], alignment=[0.6, 0.5, 0],
        **plane,
    )  # fmt: skip
    assert_allclose(
        three.solve(alpha=2, ridge=0.1).test_error,
        two_.solve(alpha=2, ridge=0.1).test_error,
        rtol=1e-9,
    )


def test_jump_of_an_aligned_teacher_in_two_dimensions():
    given_ = {"bulk_variances": [1.1, 1.02], "fractions": [0.4, 0.6]}
    strengths = np.outer([1.2, -0.5], [0.6, 0.8])
    both = make("tanh", "sign", spike_strengths=strengths, alignment=[0.6, 0.8], **given_)
    single = make("tanh", "sign", spike_strengths=[1.2, -0.5], alignment=1, **given_)
    assert_allclose(
        both.solve(alpha=2, ridge=0.1).test_error,
        single.solve(alpha=2, ridge=0.1).test_error,
        rtol=1e-9,
    )


def test_moments_of_a_teacher_beside_the_spikes():
    # y = sin(1.2 κ s), too fast for the rules at κ = 8, where next to nothing weighs.
    kappa = np.linspace(-8, 8, 41)[:, None]
    module = SimpleNamespace(teacher=lambda u: np.sin(1.2 * u[:, 0] * u[:, 1]))
    label, slope, square = _multi_index_moments(module, np.array([[1.0, 0.0]]), kappa, 0)
    near = np.abs(kappa[:, 0]) < 4
    wave = np.exp(-0.72 * kappa[near, 0] ** 2)
    assert np.abs(label).max() < 1e-12
    assert np.abs(slope[near]) == pytest.approx(np.abs(1.2 * kappa[near] * wave[:, None]), abs=1e-9)
    assert square[near] == pytest.approx((1 - wave**4) / 2, abs=1e-9)
    module.teacher = lambda u: np.sin(30 * u[:, 0] * u[:, 1])
    with pytest.raises(ConvergenceError, match="outside the spikes do not converge"):
        _multi_index_moments(module, np.array([[1.0, 0.0]]), kappa, 0)
