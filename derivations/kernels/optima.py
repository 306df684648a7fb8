"""Outputs of a kernel with exact gradients, for the search of optima.

A kernel of the equations and their derivatives along a direction of the parameters
(:mod:`.symbolic.sensitivities`), derived once for an output and the parameters that move.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ConvergenceError, ParameterError
from ...numeric.kernel_code import KernelCode
from ...numeric.optimum import Axis, Objective, Slopes
from ...numeric.rounding import COARSE, perturbed, spreads
from ...symbolic.saddle_point import SaddlePointSystem
from ...symbolic.sensitivities import derivative_name
from ..derived import derived
from .points import Points, Tie
from .sensitivities import LABEL, Rates, along_rates, rows_along, slope_of, value_of, with_values

if TYPE_CHECKING:
    from .kernel import Kernel

Array = NDArray[np.float64]

_RTOL = 1e-11


def derivative_code(system: SaddlePointSystem, of: str, moving: Sequence[str]) -> KernelCode:
    """Return the kernel of an output and its derivative along the rates of parameters.

    Parameters
    ----------
    system : SaddlePointSystem
    of : str
        An output or an unknown, by its name in code.
    moving : sequence of str
        Parameters that have a rate, an additional parameter of the kernel.

    Raises
    ------
    ParameterError
        If the output does not depend on any of them.
    """
    from ...symbolic.lowering.lowered import lower
    from .code import kernel_code
    from .deriving import deriving

    with deriving(f"derivatives of {of}", 3) as done:
        named = system if of in system.outputs else with_values(system)
        output = of if of in system.outputs else value_of(of)
        named = replace(named, outputs={output: named.outputs[output]})
        moved = along_rates(named, moving)
        if moved.outputs[derivative_name(output, LABEL)] == 0:
            raise ParameterError(f"{of} does not depend on {', '.join(moving)}: it has no optimum")
        done()
        lowered = lower(moved)
        done()
        return kernel_code(lowered)


@dataclass(frozen=True)
class KernelObjective:
    """An output of a kernel, with its gradient.

    Attributes
    ----------
    kernel : Kernel
        Of the equations.
    code : callable
        Returns that of :func:`derivative_code`; called when a gradient is first asked for.
    of : str
    rows : callable
        Takes points (m, n) and returns rows of the parameters of `kernel`.
    rates : callable
        Takes a point (n,) and returns the rates for each parameter that is optimised.
    options : mapping
        ``data`` and ``start`` of a solve.
    """

    kernel: Kernel
    code: Callable[[], KernelCode]
    of: str
    rows: Callable[[Array], Array]
    rates: Callable[[Array], Sequence[Rates]]
    options: Mapping[str, Any]

    def _job(self, kernel: Kernel, rtol: float, *, keep: bool) -> Any:
        # A few points at a time, most of them of one descent, never pay for compiling.
        return kernel.job(self.options.get("data"), self.options.get("start"), rtol, 1, keep=keep)

    def values(self, points: Array) -> tuple[Array, Array]:
        """Return values, NaN where there is no solution, and their errors."""
        batch = self._job(self.kernel, _RTOL, keep=True)(self.rows(points))
        values = np.where(batch.converged, batch.values[self.of], np.nan)
        return values, batch.errors.get(self.of, np.zeros(len(points)))

    def slopes(self, points: Array, *, rounding: bool = False) -> Slopes:
        """Return values and gradients, exact up to quadrature and rounding.

        Raises
        ------
        ConvergenceError
            If a point has no solution, or the output no derivative there.
        """
        code = self.code()
        tangent = replace(self.kernel, code=code)
        given = self.rows(points)
        names = self.kernel.parameters
        rows = np.vstack(
            [
                rows_along(tangent, names, row, self.rates(point))
                for row, point in zip(given, points, strict=True)
            ]
        )
        batch = self._job(tangent, _RTOL, keep=True)(rows)
        if not batch.converged.all():
            worst = rows[int(np.argmin(batch.converged))]
            at = dict(zip(code.parameters, worst.tolist(), strict=True))
            where = ", ".join(f"{n} = {at[n]:g}" for n in self.kernel.parameters if n in at)
            raise ConvergenceError(
                f"{self.of} of {self.kernel.name} has no solution or no derivative at {where}; "
                "give other bounds",
                state=batch,
            )
        # An unknown as its equation gives it: errors of that count cancellation.
        value = value_of(self.of) if value_of(self.of) in code.results else self.of
        slope = derivative_name(value, LABEL)
        shape = points.shape
        errors = batch.errors[slope]
        if rounding:
            near = self._job(tangent, COARSE, keep=True)(np.vstack([perturbed(r) for r in rows]))
            parts = np.split(near.values[slope], len(rows))
            errors = errors + np.array([spreads({slope: part})[slope] for part in parts])
        return Slopes(
            batch.values[value].reshape(shape)[:, 0],
            batch.values[slope].reshape(shape),
            errors.reshape(shape),
        )


class KernelQuestion:
    """A kernel as what optima are asked of; `options` are ``data`` and ``start`` of a solve."""

    def __init__(self, kernel: Kernel, options: Mapping[str, Any]) -> None:
        self._kernel, self._options = kernel, options
        self.name = kernel.name

    @property
    def outputs(self) -> tuple[str, ...]:
        """Outputs and unknowns."""
        return self._kernel.outputs

    @property
    def domains(self) -> Mapping[str, str]:
        """Those of the parameters."""
        return {name: self._kernel.domains[name] for name in self._kernel.parameters}

    def objective(
        self, of: str, axes: Sequence[Axis], fixed: Mapping[str, Any]
    ) -> tuple[Objective, bool]:
        """Return an output with its exact gradient."""
        kernel, names = self._kernel, [axis.name for axis in axes]
        for name in names:
            if name in kernel.ties and kernel.ties[name].constraint:
                source = kernel.ties[name].source
                raise ParameterError(
                    f"over: {name} follows from {source} and does not move alone; use {source!r}"
                )

        def columns(points: Array) -> dict[str, Any]:
            given = {**fixed, **dict(zip(names, points.T, strict=True))}
            return kernel._columns(given, self._options.get("data"))

        columns(np.array([[axis.low for axis in axes]]))
        ties = kernel.active_ties({**fixed, **dict.fromkeys(names)})
        moving = (*names, *(name for name, tie in ties.items() if tie.source in names))

        def rows(points: Array) -> Array:
            found = Points.of(kernel.parameters, columns(points), False, ties)
            return found.rows(0, len(points))

        def rates(point: Array) -> list[Rates]:
            at = dict(zip(names, point.tolist(), strict=True))
            return [
                {name: 1.0}
                | {
                    tied: _finite_slope(tied, tie, at[name])
                    for tied, tie in ties.items()
                    if tie.source == name
                }
                for name in names
            ]

        def code() -> KernelCode:
            return _kernel_code(kernel, of, moving)

        return KernelObjective(kernel, code, of, rows, rates, self._options), True

    def attributes(self) -> dict[str, Any]:
        """Return name and title of the kernel, and the release."""
        return self._kernel._attributes()


def _finite_slope(name: str, tie: Tie, given: float) -> float:
    slope = slope_of(tie.function, given)
    if slope is None:
        raise ParameterError(
            f"{name} follows from {tie.source} and has an infinite derivative at {given:g}; give "
            "bounds that leave this out"
        )
    return float(slope)


def _kernel_code(kernel: Kernel, of: str, moving: tuple[str, ...]) -> KernelCode:
    @derived("kernels/derivatives", KernelCode)
    def code(source: str, of: str, moving: tuple[str, ...]) -> KernelCode:
        return derivative_code(kernel.solved.system, of, moving)

    source = hashlib.sha256(repr(kernel.code).encode()).hexdigest()
    return code(kernel._cache, source, of, moving)
