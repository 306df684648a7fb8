"""From letters of the gradient step to spiked random features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....numeric.networks.layer import FeatureClass
from ..arguments import PUBLISHED
from ..model import SpikedRandomFeatures
from ..spike import SpikeParameters, checked_letters, spikes_of_letters
from .arguments import VocabularyParameters, checked_alignment, checked_fractions, with_biases

if TYPE_CHECKING:
    from .model import VocabularyFeatures


def parameters_after_step(model: VocabularyFeatures) -> VocabularyParameters:
    """Return the rows that a step makes of the letters of a model.

    Raises
    ------
    ParameterError, AssumptionError
        If letters are none, or the student is not odd where it has to be.
    """
    letters, fractions = checked_letters(model.letters, model.fractions)
    checked_fractions(fractions)
    # Asks for an odd student, as the step assumes.
    SpikedRandomFeatures(
        model.student, model.teacher, allow_non_odd=model.allow_non_odd, step_size=0.0,
        cache_folder=model.cache_folder,
    )  # fmt: skip
    spikes = (SpikeParameters(0.0, 1.0, 0.0, 1.0),) * len(letters)
    if model.step_size:
        spikes = spikes_of(model)
    gamma = next((x.alignment for x in spikes if x.spike_strength), 0.0)
    classes = with_biases(
        [
            FeatureClass(share, x.spike_strength, x.bulk_variance)
            for share, x in zip(fractions, spikes, strict=True)
        ],
        model.biases,
    )
    found = VocabularyParameters(classes, checked_alignment(gamma, 1, None))
    if model.leading_order == PUBLISHED or not any(x.spike_strength for x in spikes):
        return found
    rows = [spikes[letter_of(one, spikes)] for one in classes]
    overlaps, stretches = tuple(x.norm_overlap for x in rows), tuple(x.stretch for x in rows)
    return replace(
        found,
        norm_overlaps=overlaps if any(overlaps) else (),
        stretches=stretches if any(map(any, stretches)) else (),
    )


def spikes_of(model: VocabularyFeatures) -> tuple[SpikeParameters, ...]:
    """Return the rows of each letter of a model after its step."""
    return spikes_of_letters(
        model.student, model.teacher, step_size=model.step_size, alpha0=model.alpha0,
        noise_variance=model.noise_variance, letters=model.letters, fractions=model.fractions,
        cache=model._cache, stretched=model.leading_order != PUBLISHED,
    )  # fmt: skip


def letter_of(rows: FeatureClass, spikes: Sequence[SpikeParameters]) -> int:
    """Return the number of a letter that makes these rows; all that do move alike."""
    distances = [
        abs(x.spike_strength - rows.strengths[0]) + abs(x.bulk_variance - rows.bulk_variance)
        for x in spikes
    ]
    return distances.index(min(distances))
