"""Spiked random features, and networks with any readout, of finite size, as labelled arrays.

What :mod:`.simulated` does for ridge regression on networks, for rows that are given, for other
losses and channels, and for control variates.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import AssumptionError, ParameterError
from ...numeric.arguments import checked_seed, positive_array, positive_number
from ...numeric.conditional_prediction import ConditionalPrediction
from ...numeric.feature_losses import SQUARE, Loss
from ...numeric.feature_network import SteppedNetwork
from ...numeric.feature_readouts import ERRORS
from ...numeric.feature_setup import FeatureClass, FeatureSetup
from ...numeric.feature_simulation import FeatureSimulation, simulate_features
from ..activation_functions import kept_elementwise
from .bulk_law import BulkLaw

if TYPE_CHECKING:
    import xarray as xr

    from .model import SpikedRandomFeatures

_CLASS_AXES: dict[str, tuple[str, ...]] = {
    "m": ("class",),
    "theta": ("spike", "class"),
    "psi": ("teacher", "class"),
    "q1": ("class", "other_class"),
    "q2": ("class",),
}
_REALISED_AXES: dict[str, tuple[str, ...]] = {
    "spike_strength": ("class", "spike"),
    "bulk_variance": ("class",),
    "alignment": ("spike", "teacher"),
}
_MEANING = {
    "test_error": "error on fresh samples: squared against the noise-free target, or wrong signs",
    "training_error": "error on the training set: squared against the labels, or wrong signs",
    "test_loss": "mean loss of fresh labels",
    "training_loss": "mean loss of the labels of the training set",
    "objective": "training objective divided by the number of samples",
    "certificate": "bound of the relative distance of the objective from its minimum",
    "m": "overlap of the readout with the all-ones vector of a class",
    "theta": "overlap of the readout with the projections of bulk rows on a spike",
    "psi": "overlap of the readout with their projections on the rest of a teacher's direction",
    "q1": "overlaps of the bulk rows that the readout combines, across the spikes",
    "q2": "squared norm of the readout divided by the width",
    "alpha": "sample complexity n/d",
    "seed": "number of the network",
}


def feature_setup(
    model: SpikedRandomFeatures,
    dimension: int,
    labels: str | Callable[..., Any] = "regression",
) -> FeatureSetup | SteppedNetwork:
    """Return the finite first layer of a model: rows that are given, or those of a network.

    Parameters
    ----------
    model : SpikedRandomFeatures
    dimension : int
    labels : str or callable
        See :class:`.feature_labels.Channel`.

    Raises
    ------
    ParameterError
        If the dimension is too small, or nothing says how the rows are drawn.
    AssumptionError
        If the student jumps and a step is to be taken.
    """
    names = model.derivation.student, model.derivation.teacher
    student, teacher = (kept_elementwise(model._cache, name) for name in names)
    shared: dict[str, Any] = {
        "beta": model.beta,
        "noise_variance": model.noise_variance,
        "dimension": dimension,
        "labels": labels,
    }
    if model.direct_parameters is not None or not model.step_size:
        spike = model.spike
        if isinstance(model.bulk, BulkLaw):
            raise ParameterError(
                "a law of the bulk does not say how rows are drawn; simulate bulk='iid' or "
                "'orthonormal', or draw rows of your own"
            )
        if spike.norm_overlap or any(spike.stretch):
            raise ParameterError(
                "rows with a norm overlap or a stretch are made by a gradient step only; simulate "
                "the model of the step, with leading_order='complete'"
            )
        kind = FeatureClass(1.0, spike.spike_strength, spike.bulk_variance)
        return FeatureSetup(student, teacher, kind, spike.alignment, bulk=model.bulk, **shared)
    found = model.derivation
    if found.mapping_error:
        raise AssumptionError(found.mapping_error)
    return SteppedNetwork(student, student.slopes, teacher, model.step_size, model.alpha0, **shared)


def simulate_readout(
    model: SpikedRandomFeatures,
    dimension: int,
    alpha: object,
    ridge: float,
    *,
    loss: Loss = SQUARE,
    labels: str | Callable[..., Any] = "regression",
    seeds: int = 10,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = True,
    store: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    predictions: Sequence[ConditionalPrediction] | None = None,
) -> xr.Dataset:
    """Fit readouts of any convex loss on the first layer of a model.

    Parameters
    ----------
    model : SpikedRandomFeatures
    dimension : int
    alpha : float or sequence of float
    ridge : float
        λ: half of it times the squared norm of the readout is added to the sum of losses.
    loss : Loss
        As for :func:`.feature_simulation.simulate_features`.
    labels : str or callable
        Channel; its name stands for it in `store`.
    seeds, seed, workers, progress, store, executor
        As for :meth:`.model.SpikedRandomFeatures.simulate`.
    predictions : sequence of ConditionalPrediction, optional
        Control variates, one for each alpha.

    Returns
    -------
    xarray.Dataset
        Dimensions ``seed``, ``alpha`` and, for order parameters, classes and directions of which
        there is more than one.
    """
    from .results import model_attributes

    alphas, ridge = positive_array("alpha", alpha).tolist(), positive_number("ridge", ridge)
    seed = checked_seed(seed)
    setup = feature_setup(model, dimension, labels)
    named = {"labels": labels} if isinstance(labels, str) else {"labels": _qualified(labels)}
    result = simulate_features(
        setup, alphas, ridge=ridge, loss=loss, seeds=seeds, seed=seed, workers=workers,
        progress=progress, store=store, executor=executor, prediction=predictions,
        description=json.dumps(
            {"student": model.student, "teacher": model.teacher, **named}, sort_keys=True
        ),
    )  # fmt: skip
    attributes = {
        **model_attributes(model, ridge),
        **named,
        "loss": loss.name,
    }
    return feature_dataset(result, attributes, dimension, seed)


def simulate_features_of(
    model: SpikedRandomFeatures,
    dimension: int,
    alpha: object,
    ridge: float,
    *,
    control_variate: bool,
    **options: Any,
) -> xr.Dataset:
    """Fit ridge readouts, on request with the control variates that the theory supplies.

    Parameters
    ----------
    model, dimension, alpha, ridge
        As for :func:`simulate_readout`, and so are `options`.
    control_variate : bool
        Use :func:`.conditional_errors.conditional_prediction`; without effect on means.
    """
    from .conditional_errors import conditional_prediction

    alphas, ridge = positive_array("alpha", alpha), positive_number("ridge", ridge)
    predictions = None
    if control_variate:
        found = [conditional_prediction(model, float(a), ridge) for a in alphas]
        # Without a spike errors do not depend on the projection.
        predictions = [p for p in found if p is not None] or None
    return simulate_readout(model, dimension, alphas, ridge, predictions=predictions, **options)


def feature_dataset(
    result: FeatureSimulation,
    attributes: Mapping[str, Any],
    dimension: int,
    seed: int,
    *,
    bulk_norms: Sequence[float] | None = None,
) -> xr.Dataset:
    """Return simulated layers as a dataset over ``seed`` and ``alpha``.

    Axes of classes, spikes and teachers appear where there is more than one. Errors and losses
    come with ``…_mean`` and ``…_standard_error`` over the seeds.

    Parameters
    ----------
    result : FeatureSimulation
    attributes : mapping
        Added to those of the run.
    dimension, seed : int
    bulk_norms : sequence of float, optional
        Norm √c of the bulk rows of each class: theta, psi and q1 then are those of bulk rows
        divided by it, as in equations for classes.
    """
    import xarray as xr

    columns: dict[str, Any] = {}
    for name in ERRORS:
        values = getattr(result, name)
        columns[name] = (("seed", "alpha"), values)
        if name == "certificate":
            continue
        many = len(values) > 1
        columns[f"{name}_mean"] = ("alpha", result.mean(name))
        error = result.standard_error(name) if many else np.full(values.shape[1], np.inf)
        columns[f"{name}_standard_error"] = ("alpha", error)
    axes = {name: ("seed", "alpha", *own) for name, own in _CLASS_AXES.items()}
    axes |= {name: ("seed", *own) for name, own in _REALISED_AXES.items()}
    scale = np.ones(result.m.shape[-1]) if bulk_norms is None else 1 / np.asarray(bulk_norms)
    unit = {"theta": scale, "psi": scale, "q1": np.outer(scale, scale)}
    for name, own in axes.items():
        values = getattr(result, name) * unit.get(name, 1.0)
        single = [i for i, axis in enumerate(own) if i and axis != "alpha" and values.shape[i] == 1]
        kept = tuple(axis for i, axis in enumerate(own) if i not in single)
        columns[name] = (kept, np.squeeze(values, axis=tuple(single)))
    dataset = xr.Dataset(
        columns,
        coords={"alpha": result.alpha, "seed": np.asarray(result.completed, dtype=np.int32)},
        attrs={
            **attributes,
            "kind": "simulation",
            "dimension": dimension,
            "entropy": seed,
            "interrupted": int(result.interrupted),
        },
    )
    for name, meaning in _MEANING.items():
        dataset[name].attrs["long_name"] = meaning
    return dataset


def _qualified(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', 'function')}"
