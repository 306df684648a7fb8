"""The equations of a kernel as dynamics: the damped map, state evolution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ConvergenceError, ParameterError
from ...numeric.arguments import positive_number, whole_number
from ...symbolic.lowering.program import Newton
from .arguments import start_values
from .families import OpenKernel
from .solution import KernelSolution

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]


def trajectory(
    family: OpenKernel,
    start: Mapping[str, float] | KernelSolution | None,
    damping: float,
    steps: int,
    tolerance: float,
) -> xr.Dataset:
    """Return the trajectory of the damped map; see :meth:`.kernel.Kernel.iterate`."""
    import xarray as xr

    if isinstance(damping, bool) or not isinstance(damping, int | float) or not 0 <= damping < 1:
        raise ParameterError(f"damping must be a number from 0 to less than 1, got {damping!r}")
    steps = whole_number("steps", steps)
    tolerance = positive_number("tolerance", tolerance)
    kernel = family.kernel
    if not family.open.is_map:
        implicit = [str(e.unknown) for e in family.open.core if e.value is None]
        raise ParameterError(
            f"{kernel.name} is no map x = F(x): the equation given for {implicit[0]} is not solved "
            "for it; write the system with from_fixed_point, every equation as unknown: value"
        )
    x = _first(family, start)
    low, high = family.box
    rows: list[Array] = []
    tables: list[dict[str, float]] = []
    changes: list[float] = []
    ending = f"no fixed point in {steps} steps"
    converged = False
    for step in range(steps + 1):
        batch = family.described(x[None])
        values = {name: float(column[0]) for name, column in batch.values.items()}
        move = -np.array([values[r.name] for r in family.open.residuals])
        if not np.isfinite(move).all():
            if not rows:
                raise ConvergenceError(
                    f"the map of {kernel.name} is not finite at its start, {_text(family, x)}; "
                    "give another start=",
                    state=x,
                )
            ending = f"the map is not finite at step {step}, {_text(family, x)}"
            break
        rows.append(x)
        tables.append(values)
        changes.append(float(np.max(np.abs(move) / (1 + np.abs(x)))))
        if changes[-1] <= tolerance:
            converged = True
            ending = f"a fixed point after {step} steps"
            break
        x = x + (1 - damping) * move
        if np.any((x < low) | (x > high)):
            ending = f"left the domain of its unknowns after {step + 1} steps, {_text(family, x)}"
            break
    system = family.open.system
    columns: dict[str, Any] = dict(zip(family.names, np.array(rows).T, strict=True))
    for name in (*(system.identifiers[y] for y in system.unknowns), *system.outputs):
        if name not in columns:
            columns[name] = np.array([table[name] for table in tables])
    columns["change"] = np.array(changes)
    return xr.Dataset(
        {name: ("step", column) for name, column in columns.items()},
        coords={"step": np.arange(len(rows))},
        attrs={
            "kernel": kernel.name, "damping": float(damping), "converged": converged,
            "ending": ending, **dict(zip(kernel.parameters, family.rows(x[None])[0].tolist(),
                                         strict=True)),
        },
    )  # fmt: skip


def _first(family: OpenKernel, start: Mapping[str, float] | KernelSolution | None) -> Array:
    """Return the first values of the core unknowns: those given, or those of the kernel."""
    kernel = family.kernel
    found = dict.fromkeys(family.names, np.nan)
    given = start_values(family.names, kernel.domains, start, {})
    if given is not None:
        found.update(zip(family.names, given, strict=True))
    lowered = kernel.solved
    coordinates = {c.symbol: c for c in lowered.stated.coordinates.values()}
    symbols = {lowered.identifiers[x]: x for x in lowered.system.unknowns}
    row = family.rows(np.zeros((1, len(family.names))))[0]
    values = dict(zip(lowered.program.parameters, row.tolist(), strict=True))
    for step in lowered.program.steps:
        if isinstance(step, Newton):
            for y, first in zip(step.unknowns, step.start, strict=True):
                x, value = symbols[str(y)], first.xreplace(values)
                if x in coordinates:
                    value = coordinates[x].at(value)
                    x = coordinates[x].unknown
                name = lowered.identifiers[x]
                if np.isnan(found[name]):
                    found[name] = float(value)
    return np.array([found[name] for name in family.names])


def _text(family: OpenKernel, x: Array) -> str:
    return ", ".join(f"{n} = {v:g}" for n, v in zip(family.names, x, strict=True))
