"""One step with a vocabulary of readouts, and of students that are not odd."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

import giantstep as gs
from giantstep.derivations.spiked_random_features.spike import CONVENTIONS, spikes_of_letters
from giantstep.errors import ApproximationWarning, AssumptionError, ParameterError


def test_letters_of_a_published_example():
    # erf/erf, s = 2, alpha0 = 5, noise variance .05; networks of d = 600 gave r = .3785, .9461,
    # 1.7024 and c = 1.0095, 1.0613, 1.1949.
    found = spikes_of_letters(
        "erf", "erf", step_size=2, alpha0=5, noise_variance=0.05,
        letters=(0.4, 1, 1.8), fractions=(0.3, 0.4, 0.3),
    )  # fmt: skip
    assert [x.spike_strength for x in found] == pytest.approx([0.3785, 0.9462, 1.7031], abs=5e-5)
    assert [x.bulk_variance for x in found] == pytest.approx([1.0095, 1.0597, 1.1934], abs=5.1e-5)
    assert len({x.alignment for x in found}) == 1


@pytest.mark.parametrize(
    ("student", "teacher", "others", "wanted"),
    [
        ("tanh", "sin", {"step_size": 3, "alpha0": 20}, (1.1341, 1.0190, 0.9719)),
        ("erf", "erf", {"alpha0": 2, "noise_variance": 0.25}, (1.1520, 1.2072, 0.7368)),
        ("sin", "sign", {"alpha0": 4}, (1.1422, 1.1998, 0.8474)),
        ("relu", "tanh", {"alpha0": 4}, (0.711, 0.603, 0.852)),
        ("relu", "relu", {"alpha0": 4, "noise_variance": 0.1}, (0.600, 1.110, 0.833)),
        ("erf", "relu", {"alpha0": 4}, (0.798, 1.0725, 0.8165)),
    ],
)
def test_the_map_of_six_pairs(student, teacher, others, wanted):
    model = gs.SpikedRandomFeatures(
        student, teacher, **{"step_size": 2, **others}, allow_non_odd=True
    )
    spike = model.spike
    found = (spike.spike_strength, spike.bulk_variance, spike.alignment)
    assert found == pytest.approx(wanted, abs=6e-4)
    (letter,) = spikes_of_letters(
        student, teacher, step_size=model.step_size, alpha0=model.alpha0,
        noise_variance=model.noise_variance, letters=[1], fractions=[1],
    )  # fmt: skip
    assert letter.spike_strength == pytest.approx(spike.spike_strength, rel=1e-14)
    assert letter.bulk_variance == pytest.approx(spike.bulk_variance, rel=1e-14)


def test_negative_letters_turn_the_spike_and_zero_makes_none():
    plus, minus, none = spikes_of_letters(
        "tanh", "sin", step_size=3, letters=(1, -1, 0), fractions=(0.5, 0.25, 0.25)
    )
    assert minus.spike_strength == -plus.spike_strength and none.spike_strength == 0
    assert none.bulk_variance == plus.bulk_variance == 1


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"fractions": (0.5, 0.6)}, "fractions must sum to 1"),
        ({"fractions": (1,)}, "equally many"),
        ({"fractions": (-0.5, 1.5)}, "fractions must be positive"),
        ({"letters": (1, math.inf)}, "letters must be finite"),
        ({"letters": "12"}, "letters must be a sequence"),
        ({"letters": ()}, "equally many"),
        ({"letters": (1, 1e9)}, "letter 1e"),
        ({"step_size": 0}, "step_size must be positive"),
        ({"alpha0": -1}, "alpha0 must be positive"),
        ({"student": "sign"}, "jumps"),
    ],
)
def test_bad_vocabularies_are_refused(change, text):
    good = {"student": "erf", "step_size": 1.0, "letters": (1, 2), "fractions": (0.5, 0.5)}
    given = good | change
    with pytest.raises((ParameterError, AssumptionError), match=text):
        spikes_of_letters(given.pop("student"), "erf", **given)


# ---------------------------------------------------------------------- learning rates


# Test error of tanh/sin at alpha0 = 20, alpha = 1.5, ridge 0.1 by beta: at a fixed step per neuron
# s = 3, and at s = 3/beta.
FIXED = {0.5: 0.04370, 1: 0.03790, 2: 0.03265, 4: 0.02977}
SHRINKING = {0.5: 0.03616, 1: 0.03790, 2: 0.06756, 4: 0.08813}


@pytest.mark.parametrize("beta", FIXED)
def test_whether_wider_is_better_depends_on_the_convention(beta):
    for convention, wanted in (("sqrt-width", FIXED), ("dimension", SHRINKING)):
        model = gs.SpikedRandomFeatures.from_learning_rate(
            "tanh", "sin", learning_rate=3, convention=convention, beta=beta, alpha0=20
        )
        assert model.beta == beta
        assert model.solve(alpha=1.5, ridge=0.1).test_error == pytest.approx(wanted[beta], abs=5e-6)


def test_steps_of_a_finite_network():
    # One neuron of a network with p = 200, d = 50: a = 1/sqrt(p), prediction sum a sigma/sqrt(p).
    p, d, rate = 200, 50, 0.7
    of_gradient = 1 / p  # row of the gradient over its sum of residuals
    moves = {
        "sqrt-width": rate * math.sqrt(p) * math.sqrt(p) * of_gradient,
        "sqrt-dimension": rate * math.sqrt(d) * math.sqrt(p) * of_gradient,
        "dimension": rate * d * of_gradient,
    }
    assert set(moves) == set(CONVENTIONS)
    for name, step in moves.items():
        assert gs.per_neuron_step(rate, name, beta=p / d) == pytest.approx(step, rel=1e-14)
        found = CONVENTIONS[name]
        assert found.learning_rate(found.step_size(rate, 4.0), 4.0) == pytest.approx(rate)
        assert gs.per_neuron_step(rate, name) == rate
        assert name in str(found) and found.formula in str(found)


@pytest.mark.parametrize(
    ("rate", "convention", "given", "words"),
    [
        (1, "dimensions", {}, "did you mean 'dimension'"),
        *((1, name, {}, "convention") for name in (None, 3, ["dimension"])),
        *((rate, "dimension", {}, "learning_rate") for rate in (-1, math.inf, math.nan, "3")),
        (1, "dimension", {"beta": 0}, "beta"),
    ],
)
def test_bad_input_is_refused(rate, convention, given, words):
    with pytest.raises(ParameterError, match=words):
        gs.per_neuron_step(rate, convention, **given)
    with pytest.raises(ParameterError, match="not both"):
        gs.SpikedRandomFeatures.from_learning_rate("erf", "erf", learning_rate=1, step_size=2)


# ---------------------------------------------------------------------- spread of the bulk


LARGE = {"student": "sin", "teacher": "sin", "step_size": 3, "alpha0": 1}


def test_value_of_a_pair_in_closed_form():
    # E sin^2 = (1 - e^-2)/2, E sin^4 = 3/8 - e^-2/2 + e^-8/8.
    model = gs.SpikedRandomFeatures(**LARGE)
    second = (1 - math.exp(-2)) / 2
    fourth = 3 / 8 - math.exp(-2) / 2 + math.exp(-8) / 8
    c = model.spike.bulk_variance
    assert model.bulk_spread == pytest.approx(
        (c - 1) / c * math.sqrt(fourth / second**2), rel=1e-13
    )


def test_models_with_a_large_spread_warn_where_they_are_solved():
    model = gs.SpikedRandomFeatures(**LARGE)
    for ask in (
        lambda: model.solve(alpha=3, ridge=0.1),
        lambda: model.at(width=100).curve(alpha=[3], ridge=0.1).to_dataset(),
    ):
        with pytest.warns(ApproximationWarning, match=r"relative spread of 0\.56") as record:
            ask()
        assert len(record) == 1 and record[0].filename == __file__
    assert "relative spread of 0.56" in str(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximationWarning)
        model.solve(alpha=3, ridge=0.1)


def test_small_spreads_do_not_warn():
    model = gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
    model.solve(alpha=3, ridge=0.1)
    assert 0 < model.bulk_spread < 0.01 and "no effect of it" in str(model)
    assert replace(model, step_size=0.0).bulk_spread == 0
    assert replace(model, alpha0=math.inf).bulk_spread == 0
    direct = gs.SpikedRandomFeatures.from_parameters(
        "tanh", "sin", spike_strength=1, bulk_variance=5, alignment=0.5
    )
    assert direct.bulk_spread == 0 and "spread" not in str(direct)


def test_labels_without_a_fourth_moment():
    model = gs.SpikedRandomFeatures("erf", "exp(z**2/8)", step_size=0.5, alpha0=4)
    assert model.bulk_spread == math.inf


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(
    st.sampled_from([("relu", "relu"), ("softplus", "tanh"), ("erf", "relu"), ("z**2/2", "z")]),
    st.floats(0.01, 5),
    st.floats(1e-2, 1e8),
    st.floats(0, 2),
)
def test_the_spread_is_a_number_and_falls_with_more_samples(pair, step, alpha0, noise):
    model = gs.SpikedRandomFeatures(
        *pair, step_size=step, alpha0=alpha0, noise_variance=noise, allow_non_odd=True
    )
    more = replace(model, alpha0=2 * alpha0)
    assert 0 < more.bulk_spread < math.inf
    assert more.bulk_spread * more.spike.bulk_variance < (
        model.bulk_spread * model.spike.bulk_variance
    )
