"""The model as a network of finite size: generated activations into the simulator."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import AssumptionError, ParameterError
from ...numeric.plain_network import NetworkSetup
from ...numeric.simulation import SimulationResult, simulate
from ..activation_functions import kept_elementwise

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures


def network_setup(model: SpikedRandomFeatures, dimension: int) -> NetworkSetup:
    """Return the network of a model at a finite dimension.

    Raises
    ------
    ParameterError
        If the model was given by its parameters, or the dimension is too small.
    AssumptionError
        If the student jumps and a step is to be taken.
    """
    if model.direct_parameters is not None:
        raise ParameterError(
            "a model made by from_parameters has no gradient step to simulate; "
            "give step_size and alpha0 instead"
        )
    found = model.derivation
    if found.mapping_error and model.step_size:
        raise AssumptionError(found.mapping_error)

    student = kept_elementwise(model._cache, found.student)
    return NetworkSetup(
        student=student,
        # Without a step the derivative is never called; a student that jumps has none.
        student_derivative=student.slopes if student.differentiable else student,
        teacher=kept_elementwise(model._cache, found.teacher),
        step_size=model.step_size,
        alpha0=model.alpha0,
        beta=model.beta,
        noise_variance=model.noise_variance,
        dimension=dimension,
    )


def simulate_model(
    model: SpikedRandomFeatures,
    dimension: int,
    alpha: Sequence[float] | NDArray[np.float64],
    ridge: float,
    *,
    seeds: int,
    seed: int,
    workers: int | None,
    progress: bool,
    store: str | os.PathLike[str] | None,
    executor: Executor | None,
) -> SimulationResult:
    """Simulate networks of a model; see :meth:`.model.SpikedRandomFeatures.simulate`.

    Raises
    ------
    ParameterError
        If the model was given by its parameters.
    AssumptionError
        If the student jumps and a step is to be taken.
    """
    setup = network_setup(model, dimension)
    return simulate(
        setup,
        [float(a) for a in alpha],
        ridge=ridge,
        seeds=seeds,
        seed=seed,
        workers=workers,
        progress=progress,
        executor=executor,
        store=store,
        description=json.dumps(_network(model), sort_keys=True, default=str),
    )


def _network(model: SpikedRandomFeatures) -> dict[str, Any]:
    """What the networks depend on: options of the theory change none of them."""
    options = ("allow_non_odd", "leading_order", "width")
    return {name: value for name, value in model.parameters().items() if name not in options}
