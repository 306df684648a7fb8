"""Curves as labelled arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import xarray as xr

from ..curves import Names
from .arguments import DIRECT, STEP
from .solution import CONJUGATES, ORDER_PARAMETERS
from .tangents import STRETCH

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures

_MEANING = {
    "test_error": "mean squared error against the noise-free target",
    "training_error": "mean squared error on the training set against the noisy labels",
    "quadrature_error": "estimated numerical error of the test error",
    "residual": "largest relative residual of the saddle-point equations",
    "iterations": "Newton iterations",
    "alpha": "sample complexity n/d",
}


def model_attributes(model: SpikedRandomFeatures, ridge: float) -> dict[str, Any]:
    """Return what identifies a result: the model, its spike, versions; all plain values."""
    from ... import __version__

    spike = model.spike
    # Kept only where it changes the numbers: readers of a dataset go by it.
    left_out: dict[str, Any] = {}
    if model._case["correlated_norms"] and spike.norm_overlap:
        left_out["norm_overlap"] = spike.norm_overlap
    if model._case["stretched"]:
        left_out |= {name: getattr(spike, name) for name in STRETCH}
    if left_out:
        left_out["leading_order"] = model.leading_order
    return {
        "model": model.to_json(),
        "student": model.derivation.student,
        "teacher": model.derivation.teacher,
        "beta": model.beta,
        "noise_variance": model.noise_variance,
        "ridge": ridge,
        "spike_strength": spike.spike_strength,
        "bulk_variance": spike.bulk_variance,
        "alignment": spike.alignment,
        **left_out,
        **({} if model.width is None else {"width": model.width}),
        "bulk_spread": model.bulk_spread,
        "leap_index": model.leap_index,
        "best_linear_error": model.best_linear_error,
        "structure": model.structure,
        "giantstep_version": __version__,
    }


CURVE = Names(
    outputs=("test_error", "training_error", *ORDER_PARAMETERS, *CONJUGATES),
    errors=("quadrature_error",),
    shown=("test_error", "training_error"),
    drawn=("test_error",),
    meanings=_MEANING,
)
"""What a curve of a model has."""


def curve_attributes(model: SpikedRandomFeatures, varied: set[str]) -> dict[str, Any]:
    """Return what identifies a curve, without what changes along it."""
    found = model_attributes(model, math.nan)
    left_out = {"ridge", *varied}
    if {*STEP, *DIRECT, "noise_variance"} & varied:
        left_out |= {*DIRECT, *STRETCH, "norm_overlap", "bulk_spread"}
    return {name: value for name, value in found.items() if name not in left_out}


def with_complete(model: SpikedRandomFeatures, curve: xr.Dataset) -> xr.Dataset:
    """Return a curve with ``test_error_complete``, where the complete leading order differs."""
    corrected = model.complete()
    if corrected is None:
        return curve
    batch = corrected.solve_many(curve["alpha"].to_numpy(), [curve.attrs["ridge"]])
    return curve.assign(test_error_complete=("alpha", batch.values["test_error"]))
