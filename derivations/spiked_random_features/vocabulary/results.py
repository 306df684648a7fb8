"""Curves of vocabularies as labelled arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from .solution import MEANING, VocabularySolution

if TYPE_CHECKING:
    from .model import VocabularyFeatures

_DIMENSIONS = {
    "V1": ("letter", "other_letter"),
    "q1": ("letter", "other_letter"),
    "V2": ("letter",),
    "q2": ("letter",),
    "m": ("letter",),
    "theta": ("spike", "letter"),
    "psi": ("teacher_direction", "letter"),
}


def model_attributes(model: VocabularyFeatures) -> dict[str, Any]:
    """Return what identifies a result, as plain values."""
    from .... import __version__

    return {
        "model": model.to_json(),
        "student": model.derivation.student,
        "teacher": model.derivation.teacher,
        "beta": model.beta,
        "noise_variance": model.noise_variance,
        "bulk": model.bulk,
        "giantstep_version": __version__,
    }


def curve_dataset(model: VocabularyFeatures, solutions: Sequence[VocabularySolution]) -> xr.Dataset:
    """Return a learning curve as a dataset over ``alpha``."""
    first = solutions[0]

    def column(name: str) -> Any:
        return ("alpha", np.array([getattr(s, name) for s in solutions]))

    columns: dict[str, Any] = {
        name: column(name)
        for name in (
            "test_error", "training_error", "regularised_training_error", "quadrature_error",
            "residual", "iterations", "flatness",
        )
    }  # fmt: skip
    if first.strict_limit is not None:
        for name in ("test_error", "training_error"):
            limits = [getattr(s.strict_limit, name) for s in solutions]
            columns[f"{name}_strict_limit"] = ("alpha", np.array(limits))
    for name, dimensions in _DIMENSIONS.items():
        values = np.stack([s.order_parameters[name] for s in solutions])
        columns[name] = (("alpha", *dimensions), values, {"long_name": MEANING[name]})
    classes = first.classes
    columns["fraction"] = ("letter", model.parameters.fractions)
    columns["spike_strength"] = (("letter", "spike"), model.parameters.strengths)
    columns["bulk_variance"] = ("letter", np.array([c.bulk_variance for c in classes]))
    columns["bias"] = ("letter", np.array([c.bias for c in classes]))
    attributes = {
        **model_attributes(model),
        "kind": "theory",
        "ridge": first.ridge,
        "width": "limit" if first.width is None else first.width,
        "holds_at": first.holds_at,
    }
    alphas = np.array([s.alpha for s in solutions])
    return xr.Dataset(columns, coords={"alpha": alphas}, attrs=attributes)
