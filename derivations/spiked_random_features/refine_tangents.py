"""The optimal ridge penalty to any number of digits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from ...errors import ConvergenceError
from ...numeric.kernel_arrays import KernelArrays
from ...numeric.saddle_point_solver import solve_rows
from ...symbolic.lowering.lowered import lower
from ...symbolic.sensitivities import derivative_name, with_derivatives_along
from ..kernels import precise
from ..kernels.code import kernel_code
from ..kernels.kernel import SPARE_DIGITS
from ..kernels.sensitivities import LABEL
from .refine import exact_parameters

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


class _PreciseNewton:
    """The kernel of Newton's method for the penalty in mpmath, started from its float solution."""

    def __init__(self, model: SpikedRandomFeatures, alpha: float, digits: int) -> None:
        self.model, self.alpha, self.digits = model, alpha, digits
        lowered = lower(_newton_system(model))
        code = kernel_code(lowered)
        self.kernel = code.load(model._cache)
        self.precise = replace(
            precise.precise_kernel(lowered, code), results=("test_error", _SECOND, _NEXT)
        )
        self._parameters: dict[int, dict[str, Any]] = {}

    def _exact(self, ridge: Any, ctx: Any) -> dict[str, Any]:
        if ctx.prec not in self._parameters:
            self._parameters[ctx.prec] = exact_parameters(self.model, ctx)
        point = {"alpha": ctx.mpf(repr(self.alpha)), "ridge": _number(ridge, ctx)}
        return {**self._parameters[ctx.prec], **point}

    def solve(self, ridge: Any) -> precise.Refined:
        """Return all outputs at a ridge penalty."""
        given = {**self.model._parameter_values(), "alpha": self.alpha, "ridge": float(ridge)}
        row, tables = (
            [given[name] for name in names]
            for names in (self.kernel.parameters, self.kernel.table_parameters)
        )
        arrays = KernelArrays(self.kernel, tables, self.model._bulk.arrays)
        batch = solve_rows(self.kernel, arrays, np.array([row]))
        return precise.refine(
            self.kernel, self.precise, partial(self._exact, ridge), self.digits, batch,
            data=self.model._bulk.exact(self.digits + SPARE_DIGITS), show_progress=False,
        )  # fmt: skip


def _number(value: Any, ctx: Any) -> Any:
    """Read a float as the decimal that it prints as, a longer number as it is."""
    return ctx.mpf(repr(value)) if isinstance(value, float) else ctx.mpf(value)


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
    worker = _PreciseNewton(model, alpha, digits)
    ridge: Any = best.value
    for used in range(_MOST_NEWTON_STEPS):
        found = worker.solve(ridge)
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
