"""Find where to begin: rough solutions on coarse rules, followed from easier parameters."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .kernel_arrays import KernelArrays
from .kernel_code import LoadedKernel
from .saddle_point_solver import BatchSolution, solve_rows

Array = NDArray[np.float64]

# Rules from coarse to fine: rule and level, and seconds after which the search on it is given up.
_RULES = ((2, 0, 2.0), (0, 0, 3.0), (0, 2, 6.0))
# Factors by which a parameter is made larger until a solution is found, and the smallest one by
# which the way back proceeds.
_LADDER = (1.0, 10.0, 100.0, 1e3, 1e4, 1e6, 1e8)
_SMALLEST_FACTOR = 1.02
_LARGEST_FACTOR = 30.0
# Following takes so many solves that compiling pays.
_MANY = 10**6


def solve_with_continuation(
    kernel: LoadedKernel,
    arrays: KernelArrays,
    parameters: Array,
    start: Array,
    easier: str,
    *,
    rtol: float,
    workers: int | None = None,
) -> BatchSolution:
    """Solve for every row, beginning at rough solutions on coarse rules.

    Where Newton's method does not get from `start` to a rough solution, it is followed from larger
    values of one parameter, on a finer rule from where the coarser one loses it. Fine rules, on
    which an iteration takes long, are used next to a solution only, so that a row without one
    fails soon.

    Parameters
    ----------
    kernel, arrays, parameters, rtol, workers
        As for :func:`.saddle_point_solver.solve_rows`.
    start : array (n, U)
        First values of the unknowns; NaN stands for those of the kernel.
    easier : str
        A parameter of the kernel: the larger, the easier are the equations.

    Returns
    -------
    BatchSolution
        Rows without solution are marked.
    """
    column = kernel.parameters.index(easier)
    rule, level, _ = _RULES[0]
    found, near = _rough(kernel, arrays.single(rule, level), parameters, start, workers)
    reached = np.flatnonzero(found.converged)
    if len(reached):
        again = solve_rows(
            kernel, arrays, parameters[reached], start=near[reached], rtol=rtol, workers=workers
        )
        _put(found, reached, again)
    for k in np.flatnonzero(~found.converged):
        row = parameters[k : k + 1]
        for unknowns in _followed(kernel, arrays, row, start[k : k + 1], column):
            again = solve_rows(kernel, arrays, row, start=unknowns, rtol=rtol)
            if again.converged[0]:
                _put(found, np.array([k]), again)
                break
    return found


def _rough(
    kernel: LoadedKernel, single: KernelArrays, parameters: Array, start: Array,
    workers: int | None = None, total: int | None = None,
) -> tuple[BatchSolution, Array]:  # fmt: skip
    """Return solutions on one rule, and their unknowns."""
    found = solve_rows(
        kernel, single, parameters, start=start, rtol=1.0, workers=workers, total=total
    )
    return found, np.stack([found.values[x] for x in kernel.code.unknowns], axis=1)


def _followed(
    kernel: LoadedKernel, arrays: KernelArrays, row: Array, start: Array, column: int
) -> Iterator[Array]:
    """Iterate over unknowns near the solution of a row, from one rule after the other."""
    target = float(row[0, column])
    value, unknowns = target, start
    for rule, level, patience in _RULES:
        single = arrays.single(rule, level)
        end = time.monotonic() + patience

        def solved(value: float, first: Array, single: KernelArrays = single) -> Array | None:
            point = row.copy()
            point[0, column] = value
            found, unknowns = _rough(kernel, single, point, first, total=_MANY)
            return unknowns if found.converged[0] else None

        first = None
        for factor in _LADDER:
            for begin in (unknowns, np.full_like(start, np.nan)):
                first = solved(value * factor, begin)
                if first is not None or time.monotonic() > end:
                    break
            if first is not None or time.monotonic() > end:
                break
        if first is None:
            continue
        value, unknowns, ratio = value * factor, first, 4.0
        while value > target and ratio > _SMALLEST_FACTOR and time.monotonic() < end:
            trial = max(target, value / ratio)
            further = solved(trial, unknowns)
            if further is None:
                ratio = math.sqrt(ratio)
            else:
                value, unknowns, ratio = trial, further, min(ratio**1.5, _LARGEST_FACTOR)
        if value == target:
            yield unknowns


def _put(found: BatchSolution, rows: NDArray[np.int64], again: BatchSolution) -> None:
    for table, new in ((found.values, again.values), (found.errors, again.errors)):
        for name, column in table.items():
            column[rows] = new[name]
    for name in ("iterations", "residual", "nodes", "converged"):
        getattr(found, name)[rows] = getattr(again, name)
