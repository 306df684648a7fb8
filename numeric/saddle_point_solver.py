"""Solve generated saddle-point kernels: tables, error control, batches on threads.

Holds no formula: the tables and the equations come as generated modules, this one chooses steps,
refines where the estimated quadrature error is too large, and spreads rows over threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConvergenceError
from . import quadrature

# Trapezoidal step per unit width of the tabulated functions: 1e-16 for smoothed activations.
_STEP_PER_WIDTH = 0.25
_MOST_REFINEMENTS = 7
# Inner expectations have to agree to this, relative to the largest value in the table.
_TABLE_TOLERANCE = 4e-15
_CHUNK_ROWS = 256
# A solve takes 1 ms in plain Python and 1 us compiled, but loading numba and a compiled kernel
# takes half a second and compiling it two: small batches never pay for that.
_PLAIN_ROWS = 256

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Kernel:
    """A generated kernel, ready to run.

    Attributes
    ----------
    tables : module
        Generated: ``inner_rules``, ``outer_scale``, ``breaks`` and ``tables`` of the node.
    plain : module
        Generated: ``solve_batch`` in plain Python.
    compiled : callable
        Returns the generated module with ``solve_batch`` in numba; called when it pays.
    parameters : tuple of str
        Inputs of one solve.
    table_parameters : tuple of str
        Inputs of the tables; one value each for all rows of a batch.
    names : tuple of str
        Tables after the node, in the solver's order.
    outputs : tuple of str
        Quantities that a solve returns.
    even : bool
        Half of the line suffices.
    """

    tables: ModuleType
    plain: ModuleType
    compiled: Callable[[], ModuleType]
    parameters: tuple[str, ...]
    table_parameters: tuple[str, ...]
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    even: bool


@dataclass(frozen=True)
class BatchSolution:
    """Solutions of many parameter sets.

    Attributes
    ----------
    values, errors : dict of str to array (n,)
        Every output and its estimated error (quadrature and rounding).
    iterations : array (n,)
        Newton iterations.
    residual : array (n,)
        Largest relative residual of the equations.
    nodes : array (n,)
        Quadrature nodes used.
    """

    values: dict[str, Array]
    errors: dict[str, Array]
    iterations: NDArray[np.int64]
    residual: Array
    nodes: NDArray[np.int64]


def solve_many(
    kernel: Kernel,
    table_values: Sequence[float],
    parameters: Array,
    *,
    rtol: float = 1e-11,
    workers: int | None = None,
) -> BatchSolution:
    """Solve for every row of `parameters`.

    Parameters
    ----------
    kernel : Kernel
    table_values : sequence of float
        In the order of ``kernel.table_parameters``.
    parameters : array (n, P)
        In the order of ``kernel.parameters``.
    rtol : float
        Wanted relative quadrature error of the first output; the nodes are doubled, at most seven
        times, until the estimate is below it or stops falling.
    workers : int, optional
        Threads; default: one for each core if the batch is large, else one.

    Raises
    ------
    ConvergenceError
        If Newton's method fails for a row; carries the unfinished results as `state`.
    """
    n = len(parameters)
    results = np.full((n, len(kernel.outputs)), np.nan)
    errors = np.full_like(results, np.inf)
    info = np.zeros((n, 3))
    nodes = np.zeros(n, dtype=np.int64)
    table_values = [np.float64(v) for v in table_values]
    with np.errstate(divide="ignore"):
        # A slope of zero in the node sets no scale: its width is infinite.
        width = float(kernel.tables.outer_scale(np.zeros(1), *table_values))
    breaks = [float(b) for b in kernel.tables.breaks(np.zeros(1), *table_values)]
    step = _STEP_PER_WIDTH * width
    # The trapezoidal rule squares its error with each halving; 1.5 leaves a margin. A composite
    # rule gains the same factor each time.
    acceleration = 1.0 if breaks else 1.5
    rows = np.arange(n)
    for level in range(_MOST_REFINEMENTS + 1):
        levels = _node_tables(kernel, table_values, step / 2**level, breaks, level)
        found = _run(kernel, parameters[rows], levels, acceleration, workers)
        better = _worst(found[1], found[0]) <= _worst(errors[rows], results[rows])
        chosen = rows[better]
        results[chosen], errors[chosen], info[chosen] = (a[better] for a in found)
        nodes[chosen] = levels[0].shape[1]
        wanted = errors[rows, 0] - info[rows, 2] * np.abs(results[rows, 0])
        unfinished = ~(wanted <= rtol * np.abs(results[rows, 0]))
        # A second refinement that brings nothing will not be followed by one that does.
        rows = rows[unfinished & better]
        if not len(rows):
            break
    _check(kernel, parameters, results, info)
    return BatchSolution(
        values={name: results[:, k].copy() for k, name in enumerate(kernel.outputs)},
        errors={name: errors[:, k].copy() for k, name in enumerate(kernel.outputs)},
        iterations=np.abs(info[:, 0]).astype(np.int64),
        residual=info[:, 1].copy(),
        nodes=nodes,
    )


def _worst(errors: Array, results: Array) -> Array:
    """Relative error of the first output; what failed counts as infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = errors[:, 0] / np.abs(results[:, 0])
    return np.where(np.isfinite(worst), worst, np.inf)


def _check(kernel: Kernel, parameters: Array, results: Array, info: Array) -> None:
    failed = ~np.isfinite(results).all(axis=1) | (info[:, 0] < 0)
    if not failed.any():
        return
    k = int(np.argmax(failed))
    point = ", ".join(
        f"{name} = {value:g}" for name, value in zip(kernel.parameters, parameters[k], strict=True)
    )
    raise ConvergenceError(
        f"no saddle point found for {int(failed.sum())} of {len(failed)} parameter sets; the first "
        f"is {point}, with residual {info[k, 1]:.1e} after {abs(int(info[k, 0]))} iterations; "
        "a larger ridge penalty makes the equations easier",
        state=results,
        residual=float(info[k, 1]),
    )


def _run(
    kernel: Kernel,
    parameters: Array,
    levels: Sequence[Array],
    acceleration: float,
    workers: int | None,
) -> tuple[Array, Array, Array]:
    n = len(parameters)
    parameters = np.ascontiguousarray(parameters, dtype=float)
    results = np.empty((n, len(kernel.outputs)))
    errors = np.empty_like(results)
    info = np.zeros((n, 3))
    if n <= _PLAIN_ROWS:
        try:
            lists = [level.tolist() for level in levels]
            kernel.plain.solve_batch(parameters, *lists, acceleration, results, errors, info)
            return results, errors, info
        except ArithmeticError:
            # Plain Python raises where IEEE arithmetic goes on with inf; the kernel goes on.
            pass
    solve_batch = kernel.compiled().solve_batch

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        solve_batch(
            parameters[part], *levels, acceleration, results[part], errors[part], info[part]
        )

    _in_chunks(work, n, workers)
    return results, errors, info


def _in_chunks(work: Callable[[int, int], Any], n: int, workers: int | None) -> None:
    """Call ``work(start, stop)`` over range(n), on threads where that pays."""
    if workers is None:
        workers = min(os.cpu_count() or 1, n // _CHUNK_ROWS)
    if workers <= 1:
        work(0, n)
        return
    # Several chunks a thread even out rows that need more iterations.
    size = max(1, -(-n // (8 * workers)))
    starts = range(0, n, size)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, starts, [min(s + size, n) for s in starts]))


def _node_tables(
    kernel: Kernel, values: Sequence[float], step: float, breaks: list[float], level: int
) -> list[Array]:
    """Return [fine, medium, coarse]: arrays of weight, node and tables."""
    if breaks:
        # A table with a kink of its own: composite Gauss-Legendre, coarser by fewer panels.
        found = []
        for back in (0, 1, 2):
            reach = quadrature.REACH
            x, w = quadrature.split_rule(
                np.array([sorted({*breaks, 0.0})]), refinement=level - back, reach=reach
            )
            found.append(_stack(kernel, values, x[0], w[0]))
        return found
    rules = quadrature.outer_rules(step, kernel.even)
    fine = _stack(kernel, values, rules[0][0], rules[0][1])
    levels = [fine]
    for _, w, stride in rules[1:]:
        coarser = np.ascontiguousarray(fine[:, ::stride])
        coarser[0] = w
        levels.append(coarser)
    return levels


def _stack(kernel: Kernel, values: Sequence[float], x: Array, w: Array) -> Array:
    tables = converged_tables(kernel.tables, values, x)
    return np.ascontiguousarray(np.stack([w, x, *(tables[name] for name in kernel.names)]))


def converged_tables(module: ModuleType, values: Sequence[float], x: Array) -> dict[str, Array]:
    """Tabulate at the nodes `x`, with inner quadratures refined until two levels agree.

    Raises
    ------
    ConvergenceError
        If they never agree: the inner integrand varies on a scale that is too small.
    """
    kinds = module.inner_rules(x, *values)
    previous: dict[str, Array] | None = None
    for level in range(_MOST_REFINEMENTS):
        rules = {
            slot: quadrature.inner_rule(kind, argument, level)
            for slot, (kind, argument) in kinds.items()
        }
        current: dict[str, Array] = module.tables(x, *values, rules)
        if not kinds:
            return current
        if previous is not None and all(
            np.max(np.abs(current[k] - previous[k]))
            <= _TABLE_TOLERANCE * np.max(np.abs(current[k]))
            for k in current
        ):
            return previous
        previous = current
    raise ConvergenceError(
        "the conditional coefficients did not converge under refinement of their quadrature; "
        "the activation varies on a scale far below the width of its input"
    )
