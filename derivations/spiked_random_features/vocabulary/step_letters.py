"""From letters of the gradient step to spiked random features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....numeric.networks.layer import FeatureClass
from ..model import SpikedRandomFeatures
from ..spike import checked_letters, spikes_of_letters
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
    if model.step_size == 0:
        spikes = [(0.0, 1.0, 0.0)] * len(letters)
    else:
        found = spikes_of_letters(
            model.student, model.teacher, step_size=model.step_size, alpha0=model.alpha0,
            noise_variance=model.noise_variance, letters=letters, fractions=fractions,
            cache=model._cache,
        )  # fmt: skip
        spikes = [(x.spike_strength, x.bulk_variance, x.alignment) for x in found]
    gamma = next((g for r, _, g in spikes if r), 0.0)
    classes = [
        FeatureClass(share, r, c) for share, (r, c, _) in zip(fractions, spikes, strict=True)
    ]
    return VocabularyParameters(
        with_biases(classes, model.biases), checked_alignment(gamma, 1, None)
    )
