"""Derivatives and the optimal ridge penalty to any number of digits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from ...errors import ConvergenceError
from ...numeric.kernel_arrays import KernelArrays
from ...numeric.saddle_point_solver import solve_rows
from ...runtime.precise_kernel import PreciseKernel
from ...symbolic.lowering.lowered import lower
from ...symbolic.sensitivities import derivative_name, with_derivatives_along
from ..kernels import precise
from ..kernels.code import kernel_code
from ..kernels.kernel import SPARE_DIGITS
from ..kernels.optima import LABEL, rate
from . import mapping as map_of_step
from .refine import exact_parameters
from .tangents import SPIKE, STEP, mapping_derivatives, parameter_row, tangent_system

if TYPE_CHECKING:
    from ...symbolic.saddle_point import SaddlePointSystem
    from ..optima import Optimum
    from .model import SpikedRandomFeatures

_MOST_NEWTON_STEPS = 12
# Digits by which a relative move is smaller than what it is squared for.
_MARGIN = 8
# Digits that an optimum has beyond those that are printed.
_SPARE_DIGITS = 10
_FIRST, _SECOND = (derivative_name("test_error", *[LABEL] * order) for order in (1, 2))
_NEXT = "ridge_of_newton"


class _PreciseTangent:
    """The kernel of derivatives in mpmath, started from its float solution."""

    def __init__(
        self, model: SpikedRandomFeatures, alpha: float, system: SaddlePointSystem, digits: int,
        show: bool,
    ) -> None:  # fmt: skip
        self.model, self.alpha, self.digits, self.show = model, alpha, digits, show
        lowered = lower(system)
        code = kernel_code(lowered)
        self.kernel = code.load(model._cache)
        self.precise: PreciseKernel = precise.precise_kernel(lowered, code)
        self._parameters: dict[int, dict[str, Any]] = {}

    def parameters(self, ctx: Any) -> dict[str, Any]:
        """Return the exact parameters of the model in a context."""
        if ctx.prec not in self._parameters:
            self._parameters[ctx.prec] = exact_parameters(self.model, ctx)
        return self._parameters[ctx.prec]

    def solve(self, ridge: Any, rates: Mapping[str, Any]) -> precise.Refined:
        """Return all outputs at a ridge penalty; `rates` are functions of an mpmath context."""
        given = {**self.model._parameter_values(), "alpha": self.alpha, "ridge": float(ridge)}
        row, tables = parameter_row(self.kernel, given, dict.fromkeys(rates, 1.0))
        arrays = KernelArrays(self.kernel, tables, self.model._bulk.arrays)
        batch = solve_rows(self.kernel, arrays, np.array([row]))

        def exact(ctx: Any) -> dict[str, Any]:
            moving = {name: value(ctx) for name, value in rates.items()}
            still = {n: ctx.zero for n in self.kernel.parameters if n not in given}
            point = {"alpha": ctx.mpf(repr(self.alpha)), "ridge": _number(ridge, ctx)}
            return {**still, **self.parameters(ctx), **point, **moving}

        return precise.refine(
            self.kernel, self.precise, exact, self.digits, batch,
            data=self.model._bulk.exact(self.digits + SPARE_DIGITS), show_progress=self.show,
        )  # fmt: skip


def _number(value: Any, ctx: Any) -> Any:
    """Read a float as the decimal that it prints as, a longer number as it is."""
    return ctx.mpf(repr(value)) if isinstance(value, float) else ctx.mpf(value)


def precise_sensitivities(
    model: SpikedRandomFeatures,
    alpha: float,
    ridge: float,
    digits: int,
    names: tuple[str, ...],
    *,
    show_progress: bool,
) -> tuple[dict[tuple[str, str], Any], dict[tuple[str, str], Any]]:
    """Return derivatives with respect to the named parameters, and their estimated errors."""
    from .sensitivities import OUTPUTS, column_of

    system = tangent_system(model.symbolic().system)
    worker = _PreciseTangent(model, alpha, system, digits, show_progress)
    found = {name: worker.solve(ridge, _exact_rates(worker, name)) for name in names}
    keys = [(output, name) for output in OUTPUTS for name in names]
    return (
        {(output, name): _entry(found[name].values, column_of(output)) for output, name in keys},
        {(output, name): _entry(found[name].errors, column_of(output)) for output, name in keys},
    )


def _entry(outputs: Mapping[str, Any], name: str) -> Any:
    # What a special case of the model does not have is zero, exactly.
    return outputs[name] if name in outputs else 0 * outputs["test_error"]


def _exact_rates(worker: _PreciseTangent, name: str) -> dict[str, Any]:
    """Return the rates of kernel parameters as functions of an mpmath context."""
    model = worker.model
    rates: dict[str, Any] = {}
    if name == "alignment":
        rates[rate(name)] = lambda ctx: ctx.one

        def across(ctx: Any) -> Any:
            values = worker.parameters(ctx)
            return -values["alignment"] / values["orthogonal_alignment"]

        rates[rate("orthogonal_alignment")] = across
        return rates
    if name not in ("step_size", "alpha0"):
        rates[rate(name)] = lambda ctx: ctx.one
    if name in STEP and model.direct_parameters is None and model.step_size > 0:
        infinite = model.alpha0 == math.inf
        symbolic = model.symbolic()
        derivatives = mapping_derivatives(
            map_of_step.spike_mapping(
                symbolic.student, symbolic.teacher, stretched=model._case["stretched"]
            ),
            infinite,
        )
        start = len(SPIKE) * STEP.index(name)
        given = {
            map_of_step.step_size: sp.Rational(repr(model.step_size)),
            map_of_step.alpha0: sp.S.One if infinite else sp.Rational(repr(model.alpha0)),
            map_of_step.noise: sp.Rational(repr(model.noise_variance)),
        }
        for field, expr in zip(SPIKE, derivatives[start : start + len(SPIKE)], strict=True):
            value = expr.xreplace(given)
            rates[rate(field)] = lambda ctx, value=value: ctx.mpf(str(sp.N(value, ctx.dps + 5)))
    return rates


def _newton_system(model: SpikedRandomFeatures) -> SaddlePointSystem:
    """Return the equations with two derivatives by the penalty, and where they lead.

    Near the optimum the derivative has no digits of its own; where it leads to has.
    """
    system = model.symbolic().system
    names = {code: x for x, code in system.identifiers.items()}
    ridge = names["ridge"]
    moved = with_derivatives_along(
        replace(system, outputs={"test_error": system.outputs["test_error"]}),
        {ridge: sp.S.One}, label=LABEL, order=2,
    )  # fmt: skip
    step = moved.outputs[_FIRST] / moved.outputs[_SECOND]
    return replace(moved, outputs={**moved.outputs, _NEXT: ridge - step})


def precise_ridge(model: SpikedRandomFeatures, alpha: float, best: Optimum, digits: int) -> Optimum:
    """Return an interior optimum to `digits` digits, by Newton's method from the float one.

    Raises
    ------
    ConvergenceError
        If the digits cannot be reached.
    """
    worker = _PreciseTangent(model, alpha, _newton_system(model), digits, False)
    worker.precise = replace(worker.precise, results=("test_error", _SECOND, _NEXT))
    ridge: Any = best.value
    for used in range(_MOST_NEWTON_STEPS):
        found = worker.solve(ridge, {})
        after, second = found.values[_NEXT], found.values[_SECOND]
        current = _number(ridge, after.context)
        move = current - after
        # The next move would be about the square of this one.
        if abs(move) <= abs(current) * after.context.mpf(10) ** -(0.6 * digits + _MARGIN):
            allowed = after.context.mpf(10) ** -(digits + _SPARE_DIGITS)
            if any(found.errors[n] > allowed * abs(found.values[n]) for n in ("test_error", _NEXT)):
                # Its digits are printed as if all of these held.
                worker.digits += _SPARE_DIGITS
                ridge = after
                continue
            return replace(
                best,
                point={"ridge": after}, output=found.values["test_error"],
                gradient={"ridge": move * second}, hessian=((second,),),
                errors={"ridge": found.errors[_NEXT] + move**2 / current},
                iterations=best.iterations + used + 1, digits=digits,
            )  # fmt: skip
        ridge = after
    raise ConvergenceError(
        f"Newton's method did not find the optimal ridge penalty to {digits} digits; ask for fewer",
        state=best,
    )
