"""A float solution refined to any number of digits, from the same program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...numeric.saddle_point_solver import BatchSolution
from ..kernels import precise
from ..kernels.kernel import SPARE_DIGITS
from ..one_gradient_step.decimals import decimal_fraction
from .precise_sources import number, precise_program, precise_spike
from .solution import Solution, solution_from

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures


def refine(
    model: SpikedRandomFeatures,
    alpha: float,
    ridge: float,
    digits: int,
    batch: BatchSolution,
    *,
    show_progress: bool,
) -> Solution:
    """Return the saddle point to `digits` digits; see :meth:`.model.SpikedRandomFeatures.solve`.

    Raises
    ------
    ConvergenceError
        If two quadrature rules never agree to so many digits.
    """

    def exact(ctx: Any) -> dict[str, Any]:
        point = {"alpha": alpha, "ridge": ridge}
        numbers = {name: ctx.mpf(repr(float(value))) for name, value in point.items()}
        return {**exact_parameters(model, ctx), **numbers}

    found = precise.refine(
        model._kernel, precise_program(model), exact, digits, batch,
        data=model._bulk.exact(digits + SPARE_DIGITS), show_progress=show_progress,
    )  # fmt: skip
    errors = found.errors
    return solution_from(
        found.values,
        alpha=alpha,
        ridge=ridge,
        residual=0.0,
        iterations=int(batch.iterations[0]),
        quadrature_error=float(errors["test_error"]),
        nodes=found.nodes,
        digits=digits,
        errors=errors,
        budget=found.budget,
    )


def exact_parameters(model: SpikedRandomFeatures, ctx: Any) -> dict[str, Any]:
    """Return the parameters of a model, every float read as the decimal that it prints as."""
    found = {
        "beta": number(ctx, decimal_fraction(model.beta)),
        "noise_variance": number(ctx, decimal_fraction(model.noise_variance)),
        **precise_spike(model, ctx),
    }
    if model.width is not None:
        found["inverse_width"] = ctx.one / model.width
    return found
