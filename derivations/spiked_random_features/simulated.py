"""Models as networks of finite size, and what was measured of these as labelled arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ParameterError
from ...numeric.arguments import positive_array, positive_number, whole_number
from ...numeric.networks.convex import Loss
from ...numeric.networks.layer import FeatureClass, SpikedRows
from ...numeric.networks.measure import Measurement
from ...numeric.networks.network import Network
from ...numeric.networks.readout import ConvexReadout, RidgeReadout
from ...numeric.networks.run import simulate
from ...numeric.networks.sizes import sample_count
from ...runtime.generated import GeneratedFunction
from ..activation_functions import kept_elementwise
from ..network_dataset import network_dataset
from .bulk_law import BulkLaw
from .conditional_errors import control_variate as variate_of
from .solution import model_attributes
from .vocabulary.solution import model_attributes as letter_attributes

if TYPE_CHECKING:
    import xarray as xr
    from typing_extensions import TypeIs

    from .model import SpikedRandomFeatures
    from .vocabulary.model import VocabularyFeatures

_ERRORS = (
    "test_error", "training_error", "test_loss", "training_loss", "objective", "certificate",
)  # fmt: skip
_QUANTITIES = (
    *_ERRORS, "m", "theta", "psi", "q1", "q2", "spike_strength", "bulk_variance", "alignment",
)  # fmt: skip


def network_of(
    model: SpikedRandomFeatures | VocabularyFeatures,
    dimension: int,
    labels: str | Callable[..., Any] = "regression",
    *,
    equivalent: bool = False,
) -> Network:
    """Return a model at a finite dimension: a network with its step, or rows that are given.

    Parameters
    ----------
    model : SpikedRandomFeatures or VocabularyFeatures
    dimension : int
    labels : str or callable
        See :class:`.samples.Channel`.
    equivalent : bool
        Draw the spiked random features instead of taking the step; a model that is given by its
        parameters always does.

    Raises
    ------
    ParameterError
        If the dimension is too small, nothing says how the rows are drawn, or a network cannot have
        them.
    """
    dimension = whole_number("dimension", dimension)
    width = sample_count("beta", model.beta, dimension)
    drawn = equivalent or model.direct_parameters is not None
    fields = _letters(model, drawn) if _has_letters(model) else _one_kind(model, drawn)
    if "student_derivative" in fields:
        fields |= {
            "steps": 1,
            "step_size": model.step_size,
            "step_samples": sample_count("alpha0", model.alpha0, dimension),
        }
    return Network(
        dimension=dimension, width=width, noise_variance=model.noise_variance, labels=labels,
        description=json.dumps(
            {"student": model.student, "teacher": model.teacher, "labels": _named(labels)},
            sort_keys=True,
        ),
        **fields,
    )  # fmt: skip


def _one_kind(model: SpikedRandomFeatures, drawn: bool) -> dict[str, Any]:
    """Functions of a model of one letter, and its rows if they are given."""
    student, teacher = (
        kept_elementwise(model._cache, text)
        for text in (model.derivation.student, model.derivation.teacher)
    )
    functions: dict[str, Any] = {"student": student, "teacher": teacher}
    if model.step_size and not drawn:
        student.require_slope()
        functions["student_derivative"] = student.slopes
    if not drawn:
        return dict(functions)
    spike = model.spike
    if isinstance(model.bulk, BulkLaw):
        raise ParameterError(
            "a law of the bulk does not say how rows are drawn; simulate bulk='iid' or "
            "'orthonormal', or draw rows of your own"
        )
    if model.direct_parameters is not None and (spike.norm_overlap or any(spike.stretch)):
        raise ParameterError(
            "rows with a norm overlap or a stretch are made by a gradient step only; simulate "
            "the model of the step, with leading_order='complete'"
        )
    kind = FeatureClass(1.0, spike.spike_strength, spike.bulk_variance)
    return {**functions, "rows": SpikedRows(kind, spike.alignment, bulk=model.bulk)}


def _letters(model: VocabularyFeatures, drawn: bool) -> dict[str, Any]:
    """Functions of a model of several letters, and its rows or letters."""
    found = model.derivation
    student = kept_elementwise(model._cache, found.student)
    functions: dict[str, Any] = {
        "student": student,
        "teacher": GeneratedFunction(found.teacher_source, "teacher"),
    }
    if drawn:
        overlaps = model.parameters.overlaps
        return {
            **functions,
            "rows": SpikedRows(model.classes, overlaps, bulk=model.bulk),
            "directions": overlaps.shape[1],
        }
    if model.bulk != "iid" or any(c.bias for c in model.classes) or model.law is not None:
        raise ParameterError(
            "a network after its step has no biases, no orthonormal bulk rows and finitely many "
            "letters; pass equivalent=True to draw the spiked random features"
        )
    letters, fractions = tuple(model.letters), tuple(model.fractions)
    if len(set(letters)) < len(letters):
        raise ParameterError(f"letters must differ, got {letters}; add up their fractions")
    # The letter 0 alone takes no step.
    if not any(letters):
        return dict(functions)
    # Without a step nothing asks for a derivative; a student that jumps has none.
    if model.step_size:
        student.require_slope()
        functions["student_derivative"] = student.slopes
    return {**functions, "readout": letters, "fractions": fractions}


def simulate_model(
    model: SpikedRandomFeatures | VocabularyFeatures,
    dimension: int,
    alpha: object,
    ridge: float,
    *,
    loss: Loss | None = None,
    labels: str | Callable[..., Any] = "regression",
    equivalent: bool = False,
    control_variate: bool = False,
    seeds: int = 10,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = True,
    store: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
) -> xr.Dataset:
    """Fit readouts on networks of a model, or on its rows.

    Parameters
    ----------
    model, dimension, labels, equivalent
        As for :func:`network_of`; the name of a function stands for it in `store`.
    alpha : float or sequence of float
    ridge : float
        λ: half of it times the squared norm of the readout is added to the sum of losses.
    loss : Loss, optional
        The square loss by default.
    control_variate : bool
        Use :func:`.conditional_errors.control_variate`; without effect on means.
    seeds, seed, workers, progress, store, executor
        As for :meth:`.model.SpikedRandomFeatures.simulate`.

    Returns
    -------
    xarray.Dataset
        Over ``seed`` and ``alpha``, and over classes, spikes and teachers where there are several;
        errors and losses with mean and standard error.
    """
    alphas, ridge = positive_array("alpha", alpha), positive_number("ridge", ridge)
    network = network_of(model, dimension, labels, equivalent=equivalent)
    sizes = [sample_count("alpha", ratio, network.dimension) for ratio in alphas.tolist()]
    readout = (
        RidgeReadout(sizes, ridge) if loss is None else ConvexReadout(sizes, ridge, loss)
    )  # fmt: skip
    errors: str | Measurement = "errors"
    if control_variate:
        errors = variate_of(model, alphas.tolist(), ridge) or "errors"  # type: ignore[arg-type]
    found = simulate(
        network, [errors, "overlaps", "spike"], readout=readout, seeds=seeds, seed=seed,
        workers=workers, progress=progress, store=store, executor=executor,
    )  # fmt: skip
    name = "square" if loss is None else loss.name
    attributes = {**_attributes(model, ridge), "labels": _named(labels), "loss": name}
    # Equations for letters are for bulk rows of norm one.
    kinds = model.classes if _has_letters(model) else ()
    scale = np.array([kind.bulk_variance**-0.5 for kind in kinds]) if kinds else np.ones(1)
    return network_dataset(
        found, {"alpha": alphas},
        {**attributes, "dimension": network.dimension, "entropy": seed},
        names=_QUANTITIES, averaged=_ERRORS[:-1],
        units={"theta": scale, "psi": scale, "q1": np.outer(scale, scale)},
    )  # fmt: skip


def _has_letters(
    model: SpikedRandomFeatures | VocabularyFeatures,
) -> TypeIs[VocabularyFeatures]:
    # Models know this module; it asks what they have instead of what they are.
    return hasattr(model, "letters")


def _attributes(model: SpikedRandomFeatures | VocabularyFeatures, ridge: float) -> dict[str, Any]:
    if _has_letters(model):
        return {**letter_attributes(model), "ridge": ridge}
    return model_attributes(model, ridge)


def _named(labels: str | Callable[..., Any]) -> str:
    if isinstance(labels, str):
        return labels
    return f"{getattr(labels, '__module__', '')}.{getattr(labels, '__qualname__', 'function')}"
