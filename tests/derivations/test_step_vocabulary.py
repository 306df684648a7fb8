"""One step with a vocabulary of readouts, and of students that are not odd."""

from __future__ import annotations

import math

import pytest

import giantstep as gs
from giantstep.derivations.spiked_random_features.spike import spikes_of_letters
from giantstep.errors import AssumptionError, ParameterError


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


def test_bad_vocabularies_are_refused():
    good = {"step_size": 1.0, "letters": (1, 2), "fractions": (0.5, 0.5)}
    for change, text in (
        ({"fractions": (0.5, 0.6)}, "fractions must sum to 1"),
        ({"fractions": (1,)}, "equally many"),
        ({"fractions": (-0.5, 1.5)}, "fractions must be positive"),
        ({"letters": (1, math.inf)}, "letters must be finite"),
        ({"letters": "12"}, "letters must be a sequence"),
        ({"letters": ()}, "equally many"),
        ({"letters": (1, 1e9)}, "letter 1e"),
        ({"step_size": 0}, "step_size must be positive"),
        ({"alpha0": -1}, "alpha0 must be positive"),
    ):
        with pytest.raises(ParameterError, match=text):
            spikes_of_letters("erf", "erf", **{**good, **change})
    with pytest.raises(AssumptionError, match="jumps"):
        spikes_of_letters("sign", "erf", **good)
