"""Solve generated saddle-point kernels: tables, error control, batches on threads.

Holds no formula: the tables and the equations come as generated modules, this one chooses steps,
refines where the estimated quadrature error is too large, and spreads rows over threads.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConvergenceError
from . import quadrature

# Trapezoidal step per unit width of the tabulated functions. 0.25 gives 1e-16 for smoothed
# activations; the error estimate of 0.13 is good enough to show 1e-11, and a few more nodes cost
# less than a second attempt.
_STEP_PER_WIDTH = 0.13
_MOST_REFINEMENTS = 7
# Above this an estimate that stops falling says that the rules do not resolve the integrand yet,
# below it that rounding is left.
_RESOLVED = 1e-9
# Tables are followed until their squares times the density are this small, relative to the
# largest; or to where the density itself is next to nothing.
_NEGLIGIBLE = 1e-18
_FARTHEST_REACH = 37.0
# Inner expectations have to agree to this, relative to the largest value in the table.
_TABLE_TOLERANCE = 4e-15
# Rows a thread takes at a time: their results stay in its cache.
_CHUNK_ROWS = 2048
_ROWS_PER_WORKER = 256
# A solve takes 1 ms in plain Python and 1 us compiled, but loading numba and a compiled kernel
# takes half a second and compiling it two: small batches (rows times nodes) do not pay for that.
_PLAIN_SIZE = 256 * 85

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
        Columns that a solve returns.
    results : tuple of str
        Those of the outputs that are meant for users.
    measured : tuple of str
        Those whose error estimate takes their own rounding into account.
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
    results: tuple[str, ...]
    measured: tuple[str, ...]
    even: bool


@dataclass(frozen=True)
class BatchSolution:
    """Solutions of many parameter sets.

    Attributes
    ----------
    values : dict of str to array (n,)
        Every result.
    errors : dict of str to array (n,)
        Estimated absolute error (quadrature and rounding) of the measured results; infinite
        where the coarser rule that would tell has no solution.
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
        times, until the estimate is below it, or stops falling where rounding is all that is left.
    workers : int, optional
        Threads; default: one for each core if the batch is large, else one.

    Raises
    ------
    ConvergenceError
        If Newton's method fails for a row; carries the unfinished results as `state`.
    """
    n = len(parameters)
    shared = _Shared(kernel, table_values)
    values = {name: np.empty(n) for name in kernel.results}
    errors = {name: np.empty(n) for name in kernel.measured}
    iterations, residual = np.empty(n, dtype=np.int64), np.empty(n)
    nodes, failed = np.empty(n, dtype=np.int64), np.empty(n, dtype=bool)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        results, uncertain, info, nodes[part] = _solve_rows(
            kernel, parameters[part], shared, rtol, n
        )
        for columns, table in ((values, results), (errors, uncertain)):
            for name, column in columns.items():
                column[part] = table[:, kernel.outputs.index(name)]
        iterations[part], residual[part] = np.abs(info[:, 0]), info[:, 1]
        failed[part] = ~np.isfinite(results).all(axis=1) | (info[:, 0] < 0)

    _in_chunks(work, n, workers)
    found = BatchSolution(values, errors, iterations, residual, nodes)
    if failed.any():
        _refuse(kernel, parameters, failed, found)
    return found


class _Shared:
    """What the rows of a batch share, made when one of them first needs it."""

    def __init__(self, kernel: Kernel, table_values: Sequence[float]) -> None:
        self._kernel = kernel
        self._values = [np.float64(v) for v in table_values]
        with np.errstate(divide="ignore", over="ignore"):
            # A slope of zero in the node sets no scale: its width is infinite.
            width = float(kernel.tables.outer_scale(np.zeros(1), *self._values))
        self._breaks = [float(b) for b in kernel.tables.breaks(np.zeros(1), *self._values)]
        self._step = _STEP_PER_WIDTH * width
        self._lock = threading.Lock()
        self._tables: dict[int, list[Array]] = {}
        self._reach: float | None = None
        self._compiled: ModuleType | None = None

    def __getitem__(self, level: int) -> list[Array]:
        """Return the node tables [fine, medium, coarse] of one refinement level."""
        with self._lock:
            if self._reach is None:
                self._reach = _sufficient_reach(self._kernel, self._values)
            if level not in self._tables:
                step = self._step / 2**level
                self._tables[level] = _node_tables(
                    self._kernel, self._values, step, self._breaks, level, self._reach
                )
            return self._tables[level]

    def compiled(self) -> ModuleType:
        """Return the compiled kernel; finding it in the cache takes as long as some 100 solves."""
        with self._lock:
            if self._compiled is None:
                self._compiled = self._kernel.compiled()
            return self._compiled


def _solve_rows(
    kernel: Kernel, parameters: Array, shared: _Shared, rtol: float, total: int
) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """Return results, errors, info and nodes, refined until they are good or stop improving.

    `total` is the number of rows of the whole batch, of which `parameters` may be a part.
    """
    results, errors, info = _run(kernel, parameters, shared, 0, total)
    nodes = np.full(len(parameters), shared[0][0].shape[1])
    rows = _unfinished(np.arange(len(parameters)), results, errors, info, rtol)
    for level in range(1, _MOST_REFINEMENTS + 1):
        if not len(rows):
            break
        found = _run(kernel, parameters[rows], shared, level, total)
        before, after = _worst(results[rows], errors[rows], info[rows]), _worst(*found)
        # Where a refinement brings nothing, rounding is all that is left; unless the estimate is
        # large still: then the finer rule is trusted more, even if its estimate has grown.
        unresolved = (before > np.maximum(_RESOLVED, info[rows, 2])) & np.isfinite(after)
        better = (2 * after <= before) | unresolved
        rows = rows[better]
        results[rows], errors[rows], info[rows] = (a[better] for a in found)
        nodes[rows] = shared[level][0].shape[1]
        rows = _unfinished(rows, results, errors, info, rtol)
    return results, errors, info, nodes


def _unfinished(
    rows: NDArray[np.int64], results: Array, errors: Array, info: Array, rtol: float
) -> NDArray[np.int64]:
    """Return those of `rows` whose quadrature error, without rounding, is above the tolerance."""
    size = np.abs(results[rows, 0])
    finished = errors[rows, 0] - info[rows, 2] * size <= rtol * size
    return rows[~finished]


def _worst(results: Array, errors: Array, info: Array) -> Array:
    """Relative error of the first output; what failed counts as infinite."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        worst = errors[:, 0] / np.abs(results[:, 0])
    return np.where(np.isfinite(worst) & (info[:, 0] >= 0), worst, np.inf)


def _refuse(
    kernel: Kernel, parameters: Array, failed: NDArray[np.bool_], found: BatchSolution
) -> None:
    k = int(np.argmax(failed))
    point = ", ".join(
        f"{name} = {value:g}" for name, value in zip(kernel.parameters, parameters[k], strict=True)
    )
    residual = float(found.residual[k])
    raise ConvergenceError(
        f"no saddle point found for {int(failed.sum())} of {len(failed)} parameter sets; the first "
        f"is {point}, with residual {residual:.1e} after {found.iterations[k]} iterations; "
        "a larger ridge penalty makes the equations easier",
        state=found,
        residual=residual,
    )


def _run(
    kernel: Kernel, parameters: Array, shared: _Shared, level: int, total: int
) -> tuple[Array, Array, Array]:
    n = len(parameters)
    parameters = np.ascontiguousarray(parameters, dtype=float)
    results = np.empty((n, len(kernel.outputs)))
    errors = np.empty_like(results)
    info = np.empty((n, 3))
    tables = shared[level]
    if total * tables[0].shape[1] > _PLAIN_SIZE:
        shared.compiled().solve_batch(parameters, *tables, results, errors, info)
    else:
        todo = np.ones(n, dtype=bool)
        lists = [table.tolist() for table in tables]
        for k in range(n):
            row = slice(k, k + 1)
            # Plain Python raises where IEEE arithmetic goes on with inf or NaN (log of a negative
            # number is a ValueError); the compiled kernel goes on. Row by row, so that a result
            # does not depend on which rows share its chunk.
            with contextlib.suppress(ArithmeticError, ValueError):
                kernel.plain.solve_batch(
                    parameters[row], *lists, results[row], errors[row], info[row]
                )
                todo[k] = False
        if todo.any():
            left = results[todo], errors[todo], info[todo]
            shared.compiled().solve_batch(parameters[todo], *tables, *left)
            results[todo], errors[todo], info[todo] = left
    return results, errors, info


def _in_chunks(work: Callable[[int, int], Any], n: int, workers: int | None) -> None:
    """Call ``work(start, stop)`` over range(n), on threads where that pays."""
    if workers is None:
        workers = min(os.cpu_count() or 1, n // _ROWS_PER_WORKER)
    # Several chunks a thread even out rows that need more iterations.
    size = max(1, min(_CHUNK_ROWS, -(-n // (8 * workers)))) if workers > 1 else _CHUNK_ROWS
    starts = range(0, n, size)
    stops = [min(s + size, n) for s in starts]
    if workers <= 1:
        for start, stop in zip(starts, stops, strict=True):
            work(start, stop)
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, starts, stops))


def _node_tables(
    kernel: Kernel,
    values: Sequence[float],
    step: float,
    breaks: list[float],
    level: int,
    reach: float,
) -> list[Array]:
    """Return [fine, medium, coarse]: arrays of weight, node and tables."""
    if breaks:
        # A table with a kink of its own: composite Gauss-Legendre, coarser by fewer panels.
        found = []
        for back in (0, 1, 2):
            x, w = quadrature.split_rule(
                np.array([sorted({*breaks, 0.0})]), refinement=level - back, reach=reach
            )
            found.append(_stack(kernel, values, x[0], w[0]))
        return found
    rules = quadrature.outer_rules(step, kernel.even, reach)
    fine = _stack(kernel, values, rules[0][0], rules[0][1])
    levels = [fine]
    for _, w, stride in rules[1:]:
        coarser = np.ascontiguousarray(fine[:, ::stride])
        coarser[0] = w
        levels.append(coarser)
    return levels


def _sufficient_reach(kernel: Kernel, values: Sequence[float]) -> float:
    """Return how far from zero the outer rule has to go: tables that grow need more.

    The three rules share their reach, so that their differences do not show what lies beyond.
    """
    reach = quadrature.REACH
    while True:
        x = np.linspace(-reach, reach, 43)
        tables = converged_tables(kernel.tables, values, x)
        with np.errstate(divide="ignore"):
            sizes = [2 * np.log(np.abs(table)) - x**2 / 2 for table in tables.values()]
        ends = [max(size[0], size[-1]) - np.max(size) for size in sizes if np.max(size) > -np.inf]
        if reach >= _FARTHEST_REACH or not ends or max(ends) <= np.log(_NEGLIGIBLE):
            return reach
        reach = min(1.2 * reach, _FARTHEST_REACH)


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
    distance = np.inf
    for level in range(_MOST_REFINEMENTS):
        rules = {
            slot: quadrature.inner_rule(kind, argument, level)
            for slot, (kind, argument) in kinds.items()
        }
        current: dict[str, Array] = module.tables(x, *values, rules)
        if not kinds:
            return current
        if previous is not None:
            before, distance = distance, _distance(current, previous)
            # Where rounding is larger than the tolerance, refining stops to bring them closer.
            if distance <= _TABLE_TOLERANCE or (distance < 1e-9 and distance > before / 2):
                return previous
        previous = current
    raise ConvergenceError(
        "the conditional coefficients did not converge under refinement of their quadrature; "
        "the activation varies on a scale far below the width of its input"
    )


def _distance(current: dict[str, Array], previous: dict[str, Array]) -> float:
    """Largest difference of two sets of tables, relative to the largest value of each table."""
    relative = [
        np.max(np.abs(current[k] - previous[k])) / (np.max(np.abs(current[k])) + 1e-300)
        for k in current
    ]
    return float(np.max(relative))  # NaN if there is one, unlike the built-in function
