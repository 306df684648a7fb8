"""Convex losses on several letters: one free energy with the square loss and one kind of rows."""

import pickle

import numpy as np
import pytest
import sympy as sp
from tests.derivations.vocabulary_cases import TWO, make

import giantstep as gs
from giantstep.derivations.spiked_random_features import physics
from giantstep.derivations.spiked_random_features.convex.solver import _separated
from giantstep.errors import AssumptionError, CertificationError, ParameterError
from giantstep.symbolic.expressions.activations import activation

ONE = {"spike_strengths": [1.2], "bulk_variances": [1.1], "fractions": [1.0], "alignment": 0.9}


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("letters", [1, 2])
def test_norms_with_and_without_the_label_give_one_free_energy(letters, aligned):
    given = activation("erf"), activation("sin"), letters
    whole = physics.letters_free_energy(*given, aligned=aligned)
    # Another function with the same values: the free energy is then in Q_1.
    orthogonal = physics.letters_free_energy(
        *given, aligned=aligned, loss_term=lambda prediction: physics.square_loss(prediction)
    )
    q1, big_q1 = (physics.Letters.of(letters, name) for name in ("q1", "Q1"))
    psi = sp.Matrix(letters, 1, lambda a, _: 0 if aligned else q1.psi[a])
    left = q1.norms - psi * psi.T
    back = {big_q1.norms[i, j]: left[i, j] for i, j in q1.upper}
    back |= dict(zip(big_q1.q2, q1.q2, strict=True))
    difference = whole.free_energy.expression - orthogonal.free_energy.expression.xreplace(back)
    (theirs, ours) = (
        {e.integrand for e in x.atoms(physics.GaussianExpectation)}
        for x in (whole.free_energy.expression, orthogonal.free_energy.expression.xreplace(back))
    )
    assert {sp.simplify(a - b) for a, b in zip(theirs, ours, strict=True)} == {0}
    assert sp.simplify(difference.replace(physics.GaussianExpectation, lambda *_: sp.S.Zero)) == 0
    for name, value in whole.overlaps.items():
        assert sp.expand(value - orthogonal.overlaps[name].xreplace(back)) == 0


def test_mean_features_separate_labels_only_where_a_combination_does():
    kappa = np.linspace(-3, 3, 61)
    labels = np.sign(kappa**2 - 1)
    square, constant = kappa**2, np.ones(61)
    assert _separated(labels, np.stack([square, constant], axis=1))
    assert not _separated(labels, square[:, None])
    assert not _separated(labels, np.stack([square, kappa], axis=1))
    assert not _separated(labels, np.zeros((61, 1)))


def test_readouts_of_letters_are_stored_and_sent():
    readout = make("erf", "sin", **TWO, noise_variance=0.1, width=300).with_loss("huber(0.3)")
    assert readout.width == 300
    assert gs.ConvexReadout.from_json(readout.to_json()) == readout
    assert pickle.loads(pickle.dumps(readout)) == readout
    assert readout.at(delta=0.5, beta=2).features.beta == 2
    assert readout.spike.fractions.tolist() == [0.4, 0.6]


def test_what_has_no_equations_is_refused():
    four = make(
        "tanh", "sin", spike_strengths=[1.0, 0.5, -0.5, -1.0], bulk_variances=[1.0] * 4,
        fractions=[0.25] * 4, alignment=0.9,
    )  # fmt: skip
    with pytest.raises(ParameterError, match="at most 3 letters"):
        four.with_loss("huber(0.3)")
    two_spikes = make(
        "tanh", "sin", spike_strengths=[[1.0, 0.2]], bulk_variances=[1.0], fractions=[1.0],
        alignment=[0.9, 0.1],
    )  # fmt: skip
    with pytest.raises(ParameterError, match="a spike of rank one"):
        two_spikes.with_loss("huber(0.3)")
    with pytest.raises(ParameterError, match="needs labels ±1"):
        make("tanh", "sin", **TWO).with_loss("hinge")
    with pytest.raises(ParameterError, match="SpikedRandomFeatures or a VocabularyFeatures"):
        gs.ConvexReadout("features", "huber(0.3)")
    with pytest.raises(CertificationError, match="convex readouts"):
        make("tanh", "sin", **TWO).with_loss("square").solve(alpha=2, ridge=0.1, certify=True)


@pytest.mark.slow
def test_labels_that_mean_features_separate_are_refused_without_a_width():
    readout = make("tanh", "sign", **{**TWO, "alignment": 1.0}).with_loss("hinge", labels="sign")
    with pytest.raises(AssumptionError, match="labels are the sign of the mean feature"):
        readout.solve(alpha=2, ridge=0.1)


@pytest.mark.slow
def test_one_letter_is_one_kind_of_rows():
    letter = make("erf", "sign", **ONE, beta=0.7)
    rows = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sign", spike_strength=1.2, bulk_variance=1.1, alignment=0.9, beta=0.7
    )
    found, expected = (
        x.with_loss("hinge", labels="sign").solve(alpha=2, ridge=0.1) for x in (letter, rows)
    )
    for name in ("test_error", "training_loss", "test_loss", "objective"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=2e-11)
    # Overlaps are those of rows of unit length.
    assert found.q1_11 == pytest.approx(expected.q1 / 1.1, rel=2e-11)


@pytest.mark.slow
def test_two_letters_against_readouts_of_finite_size():
    # Larger ones, and with signs as labels, are evidence of the claim cui-convex-loss.
    readout = make("erf", "sin", **TWO, noise_variance=0.1).with_loss("huber(0.3)", width=100)
    theory = readout.solve(alpha=2, ridge=0.1)
    found = readout.simulate(100, alpha=[2.0], ridge=0.1, seeds=12, progress=False)
    for name in ("test_error", "training_loss"):
        values = found[name].to_numpy().ravel()
        error = values.std(ddof=1) / len(values) ** 0.5
        assert abs(values.mean() - getattr(theory, name)) <= 4 * error, name


@pytest.mark.slow
def test_the_square_loss_as_a_convex_one():
    given = {"beta": 0.7, "noise_variance": 0.1, "bulk": "orthonormal", "width": 500}
    model = make("tanh", "sin", **TWO, **given)
    found = model.with_loss("square").solve(alpha=2, ridge=0.1)
    expected = model.solve(alpha=2, ridge=0.1)
    assert found.test_error == pytest.approx(expected.test_error, rel=1e-11)
    assert 2 * found.training_loss == pytest.approx(expected.training_error, rel=1e-11)
    assert found.q1_12 == pytest.approx(expected.q1[0, 1], rel=1e-9)


@pytest.mark.slow
def test_the_square_loss_with_the_complete_leading_order_is_ridge_regression():
    # Of an uneven student, whose rows are stretched, too.
    features = gs.SpikedRandomFeatures(
        "relu", "relu", step_size=2, allow_non_odd=True, noise_variance=0.1, alpha0=30,
        leading_order="complete",
    )  # fmt: skip
    readout = features.with_loss("square").solve(alpha=2, ridge=0.1)
    ridge = features.solve(alpha=2, ridge=0.1)
    assert readout.test_error == pytest.approx(ridge.test_error, rel=1e-12)
    assert readout.objective == pytest.approx(
        (ridge.training_error + 0.1 * features.beta / 2 * ridge.q2) / 2, rel=1e-12
    )
