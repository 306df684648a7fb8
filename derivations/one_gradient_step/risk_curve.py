"""The risk at many points, for curves over parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import AssumptionError, ParameterError
from ...numeric.saddle_point_solver import BatchSolution, refusal
from ..curves import Columns, Names
from ..penalties import PAPER_RIDGE, RIDGE
from .risk import OUT_OF_RANGE, limit_kind
from .risk_kernel import RIDGE as AT_RIDGE
from .risk_kernel import model_parameters, risk_kernel

if TYPE_CHECKING:
    from ..kernels.kernel import Kernel
    from .model import OneGradientStep

Array = NDArray[np.float64]

DOMAINS = {
    "ridge": "nonnegative",
    "alpha": "positive",
    "beta": "positive",
    "step_size": "nonnegative",
    "noise_variance": "nonnegative",
}
"""What curves can be over."""

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


_OUTPUTS = tuple(name for name in _MEANING if name not in {*DOMAINS, PAPER_RIDGE, "residual"})
NAMES = Names(
    outputs=_OUTPUTS,
    errors=(),
    shown=("risk_initial", "risk_trained", "improvement"),
    drawn=("risk_initial", "risk_trained"),
    meanings=_MEANING,
)
"""What a curve has."""


def solve_points(model: OneGradientStep, points: Mapping[str, Any]) -> dict[str, Array]:
    """Return all outputs at many points.

    Parameters
    ----------
    model : OneGradientStep
    points : mapping from str to float or array (n,)
        The penalty as `ridge` or `paper_ridge`, `alpha`, `beta`, `step_size` in the `loss` of the
        model, `noise_variance`.

    Raises
    ------
    AssumptionError
        If a penalty is zero at the interpolation peak, or a student that jumps takes a step.
    ConvergenceError
        If the effective ridge is not found.
    """
    if model.student_moments.jumps and np.any(points.get("step_size", 0.0)):
        raise AssumptionError(
            f"student {model.student!r} jumps: its gradient step is not defined; step_size must be "
            "0, which gives random features"
        )
    columns, penalty = _columns(model, points)
    found = {name: np.empty(len(penalty)) for name in (*_OUTPUTS, "residual")}
    for kind, part in _parts(model, columns, penalty):
        kernel = risk_kernel(model, kind)
        rows = np.stack([columns[name][part] for name in kernel.parameters], axis=1)
        values = _solved(kernel, rows)
        for key, target in found.items():
            target[part] = values[key]
    return found


def solved_rows(model: OneGradientStep, columns: Columns) -> BatchSolution:
    """Return all outputs at many points as the engine of curves takes them."""
    found = solve_points(model, columns)
    n = len(found["residual"])
    return BatchSolution(
        values={name: found[name] for name in _OUTPUTS},
        errors={},
        # A closed form, but for the effective ridge.
        iterations=np.zeros(n, dtype=np.int64),
        residual=found["residual"],
        nodes=np.zeros(n, dtype=np.int64),
        converged=np.ones(n, dtype=bool),
    )


def _solved(kernel: Kernel, rows: Array) -> dict[str, Array]:
    batch = kernel.job(None, None, 1e-11, len(rows))(rows)
    if not batch.converged.all():
        from ...numeric.cache import FileCache

        loaded = kernel.code.load(FileCache(kernel.cache_folder))
        raise refusal(loaded, rows, batch, remedy=OUT_OF_RANGE)
    return {**batch.values, "residual": batch.residual}


def _columns(model: OneGradientStep, points: Mapping[str, Any]) -> tuple[dict[str, Array], Array]:
    """Return the parameters of the kernels, and the penalties as they were given."""
    # Steps in the loss of the model, as those that are given.
    values: dict[str, Any] = {**model_parameters(model), "step_size": model.step_size, **points}
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
    parts = [(AT_RIDGE, np.flatnonzero(penalty > 0))]
    limit = np.flatnonzero(penalty == 0)
    if len(limit):
        pairs = zip(columns["alpha"][limit], columns["beta"][limit], strict=True)
        kinds = np.array([limit_kind(model, a, b) for a, b in pairs], dtype=object)
        parts += [(str(kind), limit[kinds == kind]) for kind in dict.fromkeys(kinds)]
    return [(kind, part) for kind, part in parts if len(part)]


def curve_attributes(model: OneGradientStep, columns: Columns) -> dict[str, Any]:
    """Return what identifies a curve: the model, and what it holds fixed."""
    from ... import __version__

    fixed = {name: getattr(model, name) for name in DOMAINS if name not in (RIDGE, *columns)}
    fixed |= {name: float(values) for name, values in columns.items() if not values.ndim}
    vanishing = not all(np.all(columns[name]) for name in (RIDGE, PAPER_RIDGE) if name in columns)
    return {
        "model": model.to_json(),
        "rests_on": f"closed form; {model.standing_at(vanishing_ridge=vanishing)}",
        "best_linear_error": model.best_linear_error,
        **fixed,
        "giantstep_version": __version__,
    }
