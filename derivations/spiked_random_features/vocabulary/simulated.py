"""Vocabularies as networks and as spiked random features of finite size."""

from __future__ import annotations

import json
import os
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from ....errors import AssumptionError, ParameterError
from ....numeric.arguments import positive_array, positive_number
from ....numeric.feature_losses import SQUARE, Loss
from ....numeric.feature_network import SteppedNetwork
from ....numeric.feature_setup import FeatureSetup
from ....numeric.feature_simulation import simulate_features
from ....runtime.generated import GeneratedFunction
from ...activation_functions import kept_elementwise
from ..feature_simulation import feature_dataset
from .results import model_attributes

if TYPE_CHECKING:
    import xarray as xr

    from .model import VocabularyFeatures


def feature_setup(
    model: VocabularyFeatures, dimension: int, labels: str = "regression"
) -> FeatureSetup:
    """Return the spiked random features of a model at a dimension."""
    found = model.derivation
    return FeatureSetup(
        student=kept_elementwise(model._cache, found.student),
        teacher=GeneratedFunction(found.teacher_source, "teacher"),
        classes=model.classes,
        alignment=model.parameters.overlaps
        if found.coordinates > 1
        else model.parameters.overlaps[:, 0],
        beta=model.beta,
        noise_variance=model.noise_variance,
        dimension=dimension,
        bulk=model.bulk,
        labels=labels,
    )


def network_setup(
    model: VocabularyFeatures, dimension: int, labels: str = "regression"
) -> SteppedNetwork:
    """Return the network whose step has the letters of a model.

    Raises
    ------
    ParameterError
        If the rows have biases, or the bulk rows are orthonormal.
    AssumptionError
        If the student jumps.
    """
    if model.bulk != "iid" or any(c.bias for c in model.classes) or model.law is not None:
        raise ParameterError(
            "a network after its step has no biases, no orthonormal bulk rows and finitely many "
            "letters; pass equivalent=True to draw the spiked random features"
        )
    found = model.derivation
    student = kept_elementwise(model._cache, found.student)
    if not student.differentiable:
        raise AssumptionError(
            f"student {found.student!r} jumps, so that its gradient step is not defined; pass "
            "equivalent=True to draw the spiked random features"
        )
    return SteppedNetwork(
        student=student,
        student_derivative=student.slopes,
        teacher=GeneratedFunction(found.teacher_source, "teacher"),
        step_size=model.step_size,
        alpha0=model.alpha0,
        letters=tuple(model.letters),
        fractions=tuple(model.fractions),
        beta=model.beta,
        noise_variance=model.noise_variance,
        dimension=dimension,
        labels=labels,
    )


def simulate_vocabulary(
    model: VocabularyFeatures,
    dimension: int,
    alpha: object,
    ridge: float,
    *,
    equivalent: bool = False,
    loss: Loss = SQUARE,
    labels: str = "regression",
    seeds: int,
    seed: int,
    workers: int | None,
    progress: bool,
    store: str | os.PathLike[str] | None,
    executor: Executor | None,
) -> xr.Dataset:
    """Simulate a vocabulary; see :meth:`.model.VocabularyFeatures.simulate`.

    `loss` and `labels` are as for :func:`.feature_simulation.simulate_readout`.
    """
    alphas, ridge = positive_array("alpha", alpha).tolist(), positive_number("ridge", ridge)
    direct = equivalent or model.direct_parameters is not None
    setup = (feature_setup if direct else network_setup)(model, dimension, labels)
    identity = {"model": str(model), "equivalent": direct}
    if labels != "regression" or loss is not SQUARE:
        identity |= {"labels": labels}
    result = simulate_features(
        setup, alphas, ridge=ridge, loss=loss, seeds=seeds, seed=seed, workers=workers,
        progress=progress, executor=executor, store=store,
        description=json.dumps(identity, sort_keys=True),
    )  # fmt: skip
    return feature_dataset(
        result,
        {**model_attributes(model), "ridge": ridge, "labels": labels, "loss": loss.name},
        dimension, seed,
        # The equations are for bulk rows of norm one.
        bulk_norms=[kind.bulk_variance**0.5 for kind in model.classes],
    )  # fmt: skip
