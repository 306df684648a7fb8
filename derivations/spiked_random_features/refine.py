"""A float solution refined to any number of digits, from the same program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...numeric.saddle_point_solver import BatchSolution
from ..kernels import precise
from .derive import precise_kernel, precise_mapping
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

    outputs, nodes = precise.refine(
        model._kernel,
        precise_kernel(model.symbolic()),
        exact,
        digits,
        batch,
        show_progress=show_progress,
    )
    return solution_from(
        outputs,
        alpha=alpha,
        ridge=ridge,
        residual=0.0,
        iterations=int(batch.iterations[0]),
        quadrature_error=10.0 ** (-digits) * float(abs(outputs["test_error"])),
        nodes=nodes,
        digits=digits,
    )


def exact_parameters(model: SpikedRandomFeatures, ctx: Any) -> dict[str, Any]:
    """Return the parameters of a model, every float read as the decimal that it prints as."""
    digits = ctx.dps + 5
    given = {
        name: sp.Rational(repr(value))
        for name, value in {
            "beta": model.beta,
            "noise_variance": model.noise_variance,
        }.items()
    }
    spike: tuple[Any, ...]
    if model.direct_parameters is not None or model.step_size == 0:
        direct = model.spike
        r, c, gamma = (
            sp.Rational(repr(x))
            for x in (direct.spike_strength, direct.bulk_variance, direct.alignment)
        )
        spike = (r, c, gamma, sp.sqrt(1 - gamma**2), sp.S.Zero)
    else:
        symbolic = model.symbolic()
        infinite = model.alpha0 == math.inf
        values = {
            "step_size": sp.Rational(repr(model.step_size)),
            "alpha0": sp.oo if infinite else sp.Rational(repr(model.alpha0)),
            "noise_variance": given["noise_variance"],
        }
        spike = precise_mapping(symbolic.student, symbolic.teacher, values, digits)
        if infinite and model.leap_index > 1:
            # No gradient: the direction of the spike is a convention.
            spike = (sp.S.Zero, spike[1], sp.S.Zero, sp.S.One, sp.S.Zero)
    names = (
        "spike_strength",
        "bulk_variance",
        "alignment",
        "orthogonal_alignment",
        "norm_overlap",
    )
    exact = {**given, **dict(zip(names, spike, strict=True))}
    if model.width is not None:
        exact["inverse_width"] = sp.Rational(1, model.width)
    return {name: ctx.mpf(str(sp.N(value, digits))) for name, value in exact.items()}
