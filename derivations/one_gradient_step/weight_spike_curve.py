"""The spike of the first layer over step sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ...numeric.arguments import nonnegative_number
from .weight_spike_values import LOSS_FACTORS, SpikePoint, array_functions, require_finite

if TYPE_CHECKING:
    import xarray as xr

    from .model import OneGradientStep

Real = NDArray[np.float64]

# Closer to the threshold than this, relative to the step size, a float would lose digits.
_NEAR = 1e-2


def weight_spike_curve(model: OneGradientStep, step_size: object) -> xr.Dataset:
    """Return the spike over step sizes; see ``OneGradientStep.weight_spike_curve``.

    Raises
    ------
    ParameterError
        If step sizes are no nonnegative finite numbers, or a spike is too large for a float.
    AssumptionError
        If the student jumps and a step is not zero.
    """
    import xarray as xr

    from ... import __version__

    steps = _step_sizes(step_size)
    # Refuses what the model refuses at a step size that is not zero.
    replace(model, step_size=float(steps.max()))
    point = SpikePoint(model, None)
    length, aligned = (float(x) for x in point.unit_lengths())
    critical = float(point.critical)
    root, (_, edge) = float(point.root_beta), map(float, point.edges())
    supercritical = np.zeros(steps.shape, dtype=bool)
    columns = {name: np.zeros(steps.shape) for name in ("spike", "readout")}
    top = np.full(steps.shape, edge)
    # Steps far below the threshold, zero among them, are nowhere near a division.
    candidates = np.flatnonzero(steps > critical * (1 - _NEAR))
    eta = steps[candidates]
    ratio, distance = critical / eta, (eta - critical) / eta
    for i in np.flatnonzero(np.abs(distance) < _NEAR):
        ratio[i], distance[i] = map(float, point.position(float(eta[i])))
    above = distance > 0
    chosen, ratio, distance = candidates[above], ratio[above], distance[above]
    supercritical[chosen] = True
    with np.errstate(over="ignore"):
        scaled, columns["spike"][chosen], columns["readout"][chosen] = array_functions(
            model
        ).outlier(root, ratio, distance)
        top[chosen] = scaled / ratio
        theta1 = length * (steps * LOSS_FACTORS[model.loss])
        theta2 = aligned * (steps * LOSS_FACTORS[model.loss])
    require_finite(model, float(max(theta1.max(), top.max())))
    gamma = float(point.alignment())
    variables = {
        "theta1": (theta1, "length of the spike"),
        "theta2": (theta2, "its part along the teacher's direction"),
        "singular_value": (top, "largest singular value of the first layer"),
        "alignment_spike": (columns["spike"], "squared overlap, left vector and spike"),
        "alignment_teacher": (gamma**2 * columns["spike"], "squared overlap, left and teacher"),
        "alignment_readout": (columns["readout"], "squared overlap, right vector and readout"),
        "supercritical": (supercritical, "whether it is outside the bulk"),
    }
    return xr.Dataset(
        {k: ("step_size", v, {"long_name": text}) for k, (v, text) in variables.items()},
        coords={"step_size": ("step_size", steps, {"long_name": f"step size, loss={model.loss}"})},
        attrs={
            "model": model.to_json(),
            "critical_step_size": critical,
            "bulk_edge": edge,
            "alignment": gamma,
            "kind": "theory",
            "giantstep_version": __version__,
        },
    )


def _step_sizes(values: object) -> Real:
    if isinstance(values, str):
        raise ParameterError(f"step_size must be a number or a sequence of numbers, got {values!r}")
    if getattr(values, "ndim", 1) > 1:
        raise ParameterError("step_size must be a number or a sequence of numbers, not a table")
    items: Any = np.atleast_1d(np.asarray(values)) if hasattr(values, "ndim") else values
    listed = list(items) if isinstance(items, Iterable) else [items]
    if not listed:
        raise ParameterError("step_size must hold at least one number, such as [0, 1, 2]")
    return np.array([nonnegative_number("step_size", value) for value in listed])
