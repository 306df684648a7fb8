"""How the parameters of the equations of few letters move with those of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...sensitivities import Directions
from ..directions import ALIGNED, NO_SPIKE, fixed_step_parameters
from ..tangents import STEP, STRETCH, step_rates
from .arguments import orthogonal_alignment
from .kernel import beyond_published, require_direct_letters
from .step_letters import letter_of, spikes_of

if TYPE_CHECKING:
    from .model import VocabularyFeatures


def letter_directions(model: VocabularyFeatures, *, exact: bool) -> Directions:
    """Return the rates of kernel parameters for each parameter, and those that have none.

    Raises
    ------
    ParameterError
        If exact rates are wanted of letters that follow from a step.
    """
    moving: dict[str, dict[str, Any]] = {
        name: {name: 1} for name in ("alpha", "beta", "ridge", "noise_variance")
    }
    excluded = {
        "fractions": "they sum to one, and none moves alone; kernel().sensitivities has them as "
        "pi_1, pi_2, …, each with all others fixed"
    }
    if model.direct_parameters is None:
        if exact:
            require_direct_letters(model)
        excluded |= fixed_step_parameters(model)
        for name in STEP if model.step_size > 0 else ():
            if name not in excluded:
                moving[name] = {**moving.get(name, {}), **_step_rates(model, name)}
    for k, letter in enumerate(model.classes, start=1):
        names = (f"spike_strength_{k}", f"bulk_variance_{k}", f"bias_{k}")
        moving |= {name: {name: 1} for name in names}
        if not letter.strengths[0]:
            del moving[names[0]]
            excluded[names[0]] = NO_SPIKE
    moving |= {name: {name: 1} for name in beyond_published(model.parameters)}
    if orthogonal_alignment(model.parameters.overlaps) == 0:
        excluded["alignment"] = ALIGNED
    else:
        moving["alignment"] = {"alignment": 1}
    if model.width is not None:
        moving["inverse_width"] = {"inverse_width": 1}
    return Directions(moving, excluded)


def _step_rates(model: VocabularyFeatures, parameter: str) -> dict[str, float]:
    """Return the derivatives of the spikes of all letters, and of the alignment."""
    spikes = spikes_of(model)
    mean = sum(a * share for a, share in zip(model.letters, model.fractions, strict=True))
    given = model.parameters
    moving = ["spike_strength", "bulk_variance"]
    moving += ["norm_overlap"] * bool(given.norm_overlaps)
    moving += STRETCH if given.stretches else ()
    found: dict[str, float] = {}
    for k, rows in enumerate(model.classes, start=1):
        letter = model.letters[letter_of(rows, spikes)]
        rates = step_rates(
            model, parameter, letter=letter, mean_letter=mean,
            stretched=bool(model.parameters.stretches),
        )  # fmt: skip
        found |= {f"{name}_{k}": rates[name] for name in moving}
        found["alignment"] = rates["alignment"]
    return found
