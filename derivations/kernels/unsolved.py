"""Why a kernel found no solution at a point, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import ConvergenceError
from ...numeric.kernel_code import LoadedKernel
from ...numeric.saddle_point_solver import RUN_OFF, BatchSolution, refusal

# Of positive unknowns: smaller ones are on their way to zero.
_VANISHING = 1e-12
_REMEDY = (
    "give first values near the solution with start=, come from parameters where the equations "
    "are easier (a larger ridge or temperature), or check that a solution exists here"
)


def unsolved(
    loaded: LoadedKernel, domains: Mapping[str, str], rows: Any, batch: BatchSolution
) -> ConvergenceError:
    """Return the error for the first row without solution.

    Parameters
    ----------
    loaded : LoadedKernel
    domains : mapping from str to str
        Which numbers each unknown may be.
    rows : array
        Parameters, one row for each point.
    batch : BatchSolution
        What the solver left behind there.
    """
    first = int(np.argmin(batch.converged))
    vanishing = [
        name
        for name in loaded.code.unknowns
        if domains.get(name) == "positive"
        and name in batch.values
        and batch.values[name][first] < _VANISHING
    ]
    hints = [
        f"{name} ran towards its boundary 0 ({batch.values[name][first]:.1e}): if the solution "
        "lies there, declare the symbol real or write the equations for its square root"
        for name in vanishing
    ]
    hints += [
        f"{name} ran off to {batch.values[name][first]:.1e}: the equations have no finite "
        "solution in this direction"
        for name in loaded.code.unknowns
        if name in batch.values and abs(batch.values[name][first]) > RUN_OFF
    ]
    outside = {
        known: float(batch.values[known.name][first])
        for known in loaded.code.ranges
        if not known.holds(batch.values[known.name][first])
    }
    hints += [
        f"{known.name} = {value:.10g} is outside its domain {known}"
        for known, value in outside.items()
        if np.isfinite(value)
    ]
    if not np.isfinite(batch.residual[first]):
        hints.append("the equations are not finite where the iteration starts or leads")
    return refusal(loaded, rows, batch, remedy="; ".join([*hints, _REMEDY]))
