"""Any number of digits for any lowered system, from the program of its float kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy as sp

from ...numeric.kernel_code import KernelCode, LoadedKernel
from ...numeric.precision import PreciseKernel, local_context, solve_precisely
from ...numeric.quadrature import REACH
from ...numeric.saddle_point_solver import BatchSolution
from ...symbolic.lowering.lowered import LoweredSystem
from ...symbolic.lowering.targets.solver_source import solver_source
from ...symbolic.lowering.targets.table_source import mpmath_table_source

# The step of the float solution gives at least this many digits, and digits grow at least like
# its inverse; the first of two rules need only reach two thirds of the digits.
_FLOAT_DIGITS = 16


def precise_kernel(lowered: LoweredSystem, code: KernelCode) -> PreciseKernel:
    """Print the program of a lowered system for mpmath."""
    tables = ""
    if lowered.program.tables:
        tables = mpmath_table_source(
            lowered.definitions,
            node=lowered.node,
            identifiers=lowered.identifiers,
            parameters=lowered.table_parameters,
            product=lowered.product,
        )
    return PreciseKernel(
        table_source=tables,
        solver_source=solver_source(lowered.program, "mpmath"),
        parameters=code.parameters,
        # The mpmath tables take no others, unlike those of a derivation that was stored.
        table_parameters=tuple(lowered.identifiers[p] for p in lowered.table_parameters),
        outputs=code.outputs,
        results=code.results,
        unknowns=code.unknowns,
        even=code.even,
        panels=code.panels,
        data=tuple(name for name, _ in code.data),
        moving=code.moving,
        inner_nodes=code.inner_nodes,
    )


def exact_number(value: object) -> sp.Expr:
    """Return a number exactly: a float as the decimal number that it prints as."""
    if isinstance(value, float | np.floating):
        if math.isinf(value):
            return sp.oo if value > 0 else -sp.oo
        return sp.Rational(repr(float(value)))
    return sp.sympify(value, rational=True, strict=True)


def refine(
    kernel: LoadedKernel,
    precise: PreciseKernel,
    exact: Callable[[Any], Mapping[str, Any]],
    digits: int,
    batch: BatchSolution,
    *,
    data: Mapping[str, Sequence[Sequence[sp.Expr]]] | None = None,
    show_progress: bool = True,
) -> tuple[dict[str, Any], int]:
    """Return outputs to `digits` digits, from the float solution in the first row of `batch`.

    Parameters
    ----------
    kernel : LoadedKernel
    precise : PreciseKernel
    exact : callable
        Takes an mpmath context and returns all parameters as its numbers.
    digits : int
    batch : BatchSolution
    data : mapping
        Weights and columns of each data set as exact numbers.
    show_progress : bool
        Show a bar if it takes longer than a second.

    Returns
    -------
    dict
        Results as numbers of a context of their own.
    int
        Outer nodes used.

    Raises
    ------
    ConvergenceError
        If two quadrature rules never agree to so many digits.
    """
    start = {name: float(batch.values[name][0]) for name in precise.unknowns}
    # 1 + V spans as many digits as V has: that many more are carried along.
    largest = max((abs(x) for x in start.values()), default=0.0)
    ctx = local_context(digits, max(0, math.ceil(math.log10(1 + largest))))
    values = exact(ctx)
    numbers = {
        name: [[ctx.mpf(str(sp.N(x, ctx.dps + 5))) for x in column] for column in columns]
        for name, columns in (data or {}).items()
    }
    from tqdm.auto import tqdm  # looks for notebook widgets, which costs time at every import

    with tqdm(
        desc=f"{digits} digits", unit="node", delay=1, leave=False, disable=not show_progress
    ) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return solve_precisely(
            precise,
            values,
            ctx=ctx,
            digits=digits,
            start=start,
            data=numbers,
            progress=progress,
            **_line(kernel, values, int(batch.nodes[0]), digits, ctx),
        )


def _line(
    kernel: LoadedKernel, values: Mapping[str, Any], nodes: int, digits: int, ctx: Any
) -> dict[str, Any]:
    """Return step, inner rules and kinks of the tables, from what the float tables know of them."""
    tables = kernel.tables
    if tables is None:
        return {}
    node = np.zeros(1)
    table_values = [np.float64(float(values[name])) for name in kernel.table_parameters]
    with np.errstate(divide="ignore", over="ignore"):
        width = float(tables.outer_scale(node, *table_values))
    inner = {
        slot: argument if kind == "trapezoidal" else (math.inf, 0.0)
        for slot, (kind, argument) in tables.inner_rules(node, *table_values).items()
    }
    step = REACH / (nodes - 1) if kernel.code.even else 2 * REACH / (nodes - 1)
    first = min(step, width) * min(1.0, _FLOAT_DIGITS / (2 / 3 * digits)) ** 0.75
    breaks = [ctx.mpf(float(b)) for b in tables.breaks(node, *table_values)]
    widths = [width]
    if kernel.code.inner_nodes:
        with np.errstate(divide="ignore", over="ignore"):
            widths += [float(x) for x in tables.product_scales(node, *table_values)]
    return {"step": first, "inner": inner, "breaks": breaks, "widths": widths}
