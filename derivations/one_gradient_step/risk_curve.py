"""The risk over a grid of parameters, as labelled arrays."""

from __future__ import annotations

import math
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ...errors import AssumptionError, ParameterError
from ...numeric.saddle_point_solver import refusal
from ..kernels.arguments import column
from .penalties import given_ridge
from .risk import OUT_OF_RANGE, limit_kind
from .risk_kernel import RIDGE, model_parameters, risk_kernel

if TYPE_CHECKING:
    from ..kernels.kernel import Kernel
    from .model import OneGradientStep

Array = NDArray[np.float64]

# Rows solved between two moves of the progress bar.
_BLOCK = 65_536

# Their results fill 12 gigabytes; a guard against products of long axes.
_MOST_POINTS = 10**8

_DOMAINS = {
    "ridge": "nonnegative",
    "paper_ridge": "nonnegative",
    "alpha": "positive",
    "beta": "positive",
    "step_size": "nonnegative",
    "noise_variance": "nonnegative",
}
_MEANING = {
    "ridge": "penalty of sum (y - f)^2 + ridge |w|^2",
    "paper_ridge": "penalty of (1/n) sum (y - f)^2 + (paper_ridge/N) |a|^2",
    "alpha": "sample complexity n/d of the readout",
    "beta": "aspect ratio N/d",
    "step_size": "step size eta",
    "noise_variance": "variance of the label noise",
    "risk_initial": "mean squared error against the noise-free teacher, without a step",
    "risk_trained": "mean squared error against the noise-free teacher, after the step",
    "improvement": "what the step takes off the risk",
    "bias_initial": "squared bias over data sets of the readout, without a step",
    "bias_trained": "squared bias over data sets of the readout, after the step",
    "variance_initial": "risk minus squared bias, without a step",
    "variance_trained": "risk minus squared bias, after the step",
    "training_error_initial": "mean squared error on the readout's data, without a step",
    "training_error_trained": "mean squared error on the readout's data, after the step",
    "objective_initial": "minimum of the penalised mean squared error, without a step",
    "objective_trained": "minimum of the penalised mean squared error, after the step",
    "effective_ridge": "effective ridge nu",
    "ridge_derivative": "derivative of paper_ridge by nu",
    "inverse_s": "1/s of the closed form",
    "residual": "relative residual of the equation of the effective ridge",
}


def risk_curve(
    model: OneGradientStep,
    *,
    ridge: object = None,
    paper_ridge: object = None,
    alpha: object = None,
    beta: object = None,
    step_size: object = None,
    noise_variance: object = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Return the risk over the product of all arguments that are arrays.

    Raises
    ------
    ParameterError
        If an argument is no number or array of numbers, or outside its range.
    AssumptionError
        If a penalty is zero at the interpolation peak, or a student that jumps takes a step.
    """
    name, penalty = given_ridge(ridge, paper_ridge)
    given = {
        name: penalty,
        "alpha": model.alpha if alpha is None else alpha,
        "beta": model.beta if beta is None else beta,
        "step_size": model.step_size if step_size is None else step_size,
        "noise_variance": model.noise_variance if noise_variance is None else noise_variance,
    }
    columns = {key: column(key, value, _DOMAINS[key]) for key, value in given.items()}
    if model.student_moments.jumps and columns["step_size"].any():
        raise AssumptionError(
            f"student {model.student!r} jumps: its gradient step is not defined; step_size must be "
            "0, which gives random features"
        )
    axes = {key: values for key, values in columns.items() if values.ndim}
    total = math.prod(len(values) for values in axes.values())
    if total > _MOST_POINTS:
        raise ParameterError(
            f"the product of {', '.join(axes)} has {total:.2g} points; at most {_MOST_POINTS:.0e} "
            "are solved at a time: give shorter arrays, or call risk_curve for parts of them"
        )
    grid = np.meshgrid(*axes.values(), indexing="ij") if axes else []
    points: dict[str, Any] = {
        key: float(values) for key, values in columns.items() if not values.ndim
    }
    points |= {key: values.ravel() for key, values in zip(axes, grid, strict=True)}
    found = solve_points(model, points, progress=progress)
    shape = tuple(len(values) for values in axes.values())
    dataset = xr.Dataset(
        {key: (tuple(axes), values.reshape(shape)) for key, values in found.items()},
        coords=axes,
        attrs=_attributes(
            model,
            {k: float(v) for k, v in columns.items() if not v.ndim},
            vanishing_ridge=not columns[name].all(),
        ),
    )
    for key in (*dataset.data_vars, *axes):
        dataset[key].attrs["long_name"] = _MEANING[str(key)]
    return dataset


def solve_points(
    model: OneGradientStep, points: dict[str, Any], *, progress: bool | None = None
) -> dict[str, Array]:
    """Return all outputs at many points.

    Parameters
    ----------
    model : OneGradientStep
    points : dict from str to float or array (n,)
        The penalty as `ridge` or `paper_ridge`, `alpha`, `beta`, `step_size` in the `loss` of the
        model, `noise_variance`.
    progress : bool, optional
        Show a bar if it takes longer than a second; default: if stderr is a terminal.

    Raises
    ------
    AssumptionError
        If a penalty is zero at the interpolation peak.
    ConvergenceError
        If the effective ridge is not found.
    """
    columns, penalty = _columns(model, points)
    kernels = {RIDGE: risk_kernel(model, RIDGE)}
    outputs = [name for name in kernels[RIDGE].outputs if name in _MEANING]
    found = {name: np.empty(len(penalty)) for name in (*outputs, "residual")}
    with _bar(len(penalty), progress) as bar:
        for kind, part in _parts(model, columns, penalty):
            if kind not in kernels:
                kernels[kind] = risk_kernel(model, kind)
            one = kernels[kind]
            for begin in range(0, len(part), _BLOCK):
                block = part[begin : begin + _BLOCK]
                rows = np.stack([columns[name][block] for name in one.parameters], axis=1)
                values = _solved(one, rows, len(part))
                for key, target in found.items():
                    target[block] = values[key]
                if bar is not None:
                    bar.update(len(block))
    return found


def _bar(total: int, wanted: bool | None) -> AbstractContextManager[Any]:
    """Return a progress bar, or nothing for one block, which takes less than a second."""
    if total <= _BLOCK or not (sys.stderr.isatty() if wanted is None else wanted):
        return nullcontext()
    from tqdm.auto import tqdm  # looks for notebook widgets, which costs time at every import

    return tqdm(desc="risk", total=total, unit="point", unit_scale=True, delay=1, leave=False)


def _solved(kernel: Kernel, rows: Array, total: int) -> dict[str, Array]:
    batch = kernel.job(None, None, 1e-11, total)(rows, None)
    if not batch.converged.all():
        from ...numeric.cache import FileCache

        loaded = kernel.code.load(FileCache(kernel.cache_folder))
        raise refusal(loaded, rows, batch, remedy=OUT_OF_RANGE)
    return {**batch.values, "residual": batch.residual}


def _columns(model: OneGradientStep, points: dict[str, Any]) -> tuple[dict[str, Array], Array]:
    """Return the parameters of the kernels, and the penalties as they were given."""
    values: dict[str, Any] = {**model_parameters(model), **points}
    if model.alpha0 is None:
        values["alpha0"] = values["alpha"]
    penalty = values.pop("paper_ridge", None)
    # What overflows here is refused below or by the kernel.
    with np.errstate(over="ignore", under="ignore"):
        values["step_size"] = np.multiply(values["step_size"], model.loss_factor)
        if penalty is not None:
            values["ridge"] = np.multiply(penalty, np.divide(values["alpha"], values["beta"]))
    given = values["ridge"] if penalty is None else penalty
    arrays = [np.atleast_1d(np.asarray(x, dtype=float)) for x in (given, *values.values())]
    # Views: a number takes no memory for each point.
    given, *rest = np.broadcast_arrays(*arrays)
    columns = dict(zip(values, rest, strict=True))
    ridge = columns["ridge"]
    lost = ((ridge == 0) & (given > 0)) | ~np.isfinite(ridge)
    if lost.any():
        raise ParameterError(
            f"paper_ridge = {given[np.argmax(lost)]:g} is outside the range of floats as "
            "ridge = alpha/beta * paper_ridge"
        )
    return columns, given


def _parts(
    model: OneGradientStep, columns: dict[str, Array], penalty: Array
) -> list[tuple[str, NDArray[np.intp]]]:
    """Return which points go to which kernel."""
    parts = [(RIDGE, np.flatnonzero(penalty > 0))]
    limit = np.flatnonzero(penalty == 0)
    if len(limit):
        pairs = zip(columns["alpha"][limit], columns["beta"][limit], strict=True)
        kinds = np.array([limit_kind(model, a, b) for a, b in pairs], dtype=object)
        parts += [(str(kind), limit[kinds == kind]) for kind in dict.fromkeys(kinds)]
    return [(kind, part) for kind, part in parts if len(part)]


def _attributes(
    model: OneGradientStep, fixed: dict[str, float], *, vanishing_ridge: bool
) -> dict[str, Any]:
    from ... import __version__

    return {
        "model": model.to_json(),
        "kind": "theory",
        "rests_on": f"closed form; {model.standing_at(vanishing_ridge=vanishing_ridge)}",
        **fixed,
        "giantstep_version": __version__,
    }
