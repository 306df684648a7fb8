"""Solved saddle points of letters as curves: names, columns, and arrays over the letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .... import __version__
from ....numeric.saddle_point_solver import BatchSolution
from ...curves import Names
from ..solution import Solution, holds_at

if TYPE_CHECKING:
    import xarray as xr

    from .model import VocabularyFeatures

Array = NDArray[np.float64]

MEANING = {
    "V1": "overlap of conditional fluctuations along the inputs",
    "V2": "conditional fluctuations of the rest",
    "q1": "overlap of readouts along the inputs",
    "q2": "squared norm of the readout",
    "m": "overlap of the readout with the mean direction",
    "theta": "overlap with the bulk rows along each spike",
    "psi": "overlap with the bulk rows along each direction of the teacher outside the spikes",
}


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
    return {
        "model": model.to_json(),
        "student": model.derivation.student,
        "teacher": model.derivation.teacher,
        "beta": model.beta,
        "noise_variance": model.noise_variance,
        "bulk": model.bulk,
        "giantstep_version": __version__,
    }


def curve_names(model: VocabularyFeatures) -> Names:
    """Return what a curve has: components of arrays under names such as ``q1[0,1]``."""
    errors = ("test_error", "training_error")
    limits = tuple(f"{name}_strict_limit" for name in errors if _has_limit(model))
    others = ("regularised_training_error", "flatness")
    components = tuple(
        component(name, index)
        for name, shape in _shapes(model).items()
        for index in np.ndindex(*shape)
    )
    return Names(
        outputs=(*errors, *limits, *others, *components),
        errors=("quadrature_error",),
        shown=(*errors, *limits[:1]),
        drawn=errors[:1],
        meanings=MEANING,
    )


def curve_batch(
    model: VocabularyFeatures, alpha: NDArray[np.float64], ridge: NDArray[np.float64]
) -> BatchSolution:
    """Return solutions at points under the names of curves."""
    found = [model.solve(alpha=float(a), ridge=float(r)) for a, r in zip(alpha, ridge, strict=True)]
    values = {name: _column(found, name) for name in ("test_error", "training_error")}
    for name in values if _has_limit(model) else ():
        limits = [getattr(s.strict_limit, name) for s in found]
        values = {**values, f"{name}_strict_limit": np.array(limits)}
    for name in ("regularised_training_error", "flatness"):
        values[name] = _column(found, name)
    for name, shape in _shapes(model).items():
        stacked = np.stack([s.order_parameters[name] for s in found])
        for index in np.ndindex(*shape):
            values[component(name, index)] = stacked[(slice(None), *index)]
    return BatchSolution(
        values=values,
        errors={"test_error": _column(found, "quadrature_error")},
        iterations=_column(found, "iterations"),
        residual=_column(found, "residual"),
        nodes=_column(found, "nodes"),
        converged=np.ones(len(found), dtype=bool),
    )


def curve_attributes(model: VocabularyFeatures, varied: set[str]) -> dict[str, Any]:
    """Return what identifies a curve, without what changes along it."""
    found = {
        **model_attributes(model),
        "width": "limit" if model.width is None else model.width,
        "holds_at": holds_at(model.width, len(model.classes)),
    }
    left_out = varied | ({"holds_at"} if "width" in varied else set())
    return {name: value for name, value in found.items() if name not in left_out}


def arranged(model: VocabularyFeatures, dataset: xr.Dataset, *, letters_vary: bool) -> xr.Dataset:
    """Return a curve with its components as arrays over letters, and what the letters are."""
    points = dataset["test_error"].dims
    found = dataset
    for name, shape in _shapes(model).items():
        parts = [dataset[component(name, index)] for index in np.ndindex(*shape)]
        stacked = np.stack([part.to_numpy() for part in parts], axis=-1)
        values = stacked.reshape(*stacked.shape[:-1], *shape)
        found = found.drop_vars([str(part.name) for part in parts])
        found[name] = ((*points, *_DIMENSIONS[name]), values, {"long_name": MEANING[name]})
    found["fraction"] = ("letter", model.parameters.fractions)
    if letters_vary:
        return found
    found["spike_strength"] = (("letter", "spike"), model.parameters.strengths)
    found["bulk_variance"] = ("letter", np.array([c.bulk_variance for c in model.classes]))
    found["bias"] = ("letter", np.array([c.bias for c in model.classes]))
    return found


def _shapes(model: VocabularyFeatures) -> dict[str, tuple[int, ...]]:
    lengths = {
        "letter": len(model.classes),
        "other_letter": len(model.classes),
        "spike": model.parameters.rank,
        "teacher_direction": model.parameters.overlaps.shape[1],
    }
    return {name: tuple(lengths[d] for d in dims) for name, dims in _DIMENSIONS.items()}


def _has_limit(model: VocabularyFeatures) -> bool:
    return model.width is not None and model.law is None


def component(name: str, index: Sequence[int]) -> str:
    return f"{name}[{','.join(map(str, index))}]"


def _column(found: Sequence[Solution], name: str) -> NDArray[Any]:
    return np.array([getattr(s, name) for s in found])
