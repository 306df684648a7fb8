"""Solve generated saddle-point kernels: error control, batches on threads.

Holds no formula: tables and equations come as generated modules. This one refines where the
estimated quadrature error is too large, as files of kernels do (:mod:`..runtime.refinement`), and
spreads rows over threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConvergenceError
from ..runtime.refinement import refined
from .kernel_arrays import KernelArrays
from .kernel_code import LoadedKernel

# Of any result, relative to the largest one: rounding squared.
_LEAST_ERROR = 2.0**-104
# Errors of rules that do not resolve an integrand fall slowly and unevenly: their differences were
# too small by up to 2 at 72 drawn points, and by up to 5 with other rules.
_UNSEEN_MARGIN = 8.0
# Rows a thread takes at a time: their results stay in its cache.
_CHUNK_ROWS = 2048
_ROWS_PER_WORKER = 256
# A solve takes 1 ms in plain Python and 1 us compiled, but loading numba and a compiled kernel
# takes half a second and compiling it two: small batches (rows times nodes) do not pay for that.
# On a grid, whose nodes are thousands, one solve takes as long in plain Python as compiling does.
_PLAIN_SIZE = 256 * 85
# What a solve costs besides its nodes, in nodes.
_OVERHEAD = 16

_REMEDY = "a larger ridge penalty makes the equations easier"
# Of unknowns that are larger, a value without any digit is no solution.
RUN_OFF = 1e4
# Relative residual of equations that count as solved where an output is not finite.
SOLVED = 1e-8

Array = NDArray[np.float64]


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
    converged : array (n,) of bool
        Whether the equations are solved and all results are finite.
    """

    values: dict[str, Array]
    errors: dict[str, Array]
    iterations: NDArray[np.int64]
    residual: Array
    nodes: NDArray[np.int64]
    converged: NDArray[np.bool_]


def solve_many(
    kernel: LoadedKernel,
    table_values: Sequence[float],
    parameters: Array,
    *,
    data: Mapping[str, Array] | None = None,
    rtol: float = 1e-11,
    workers: int | None = None,
) -> BatchSolution:
    """Solve for every row of `parameters`.

    Parameters
    ----------
    kernel : LoadedKernel
    table_values : sequence of float
        In the order of ``kernel.table_parameters``.
    data : mapping from str to array, optional
        As for :class:`.kernel_arrays.KernelArrays`.
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
    arrays = KernelArrays(kernel, table_values, data)
    found = solve_rows(kernel, arrays, parameters, rtol=rtol, workers=workers)
    if not found.converged.all():
        raise refusal(kernel, parameters, found)
    return found


def solve_rows(
    kernel: LoadedKernel,
    arrays: KernelArrays,
    parameters: Array,
    *,
    start: Array | None = None,
    rtol: float = 1e-11,
    workers: int | None = None,
    total: int | None = None,
) -> BatchSolution:
    """Solve for every row of `parameters`; rows that fail are marked.

    Parameters
    ----------
    kernel, parameters, rtol, workers
        As for :func:`solve_many`.
    arrays : KernelArrays
        Of the tables and data that the rows share.
    start : array (n, U), optional
        First values of ``kernel.code.unknowns``; by default those of the kernel.
    total : int, optional
        Number of rows of the whole run, of which these are a part; small runs are not compiled.
    """
    n = len(parameters)
    code = kernel.code
    total = n if total is None else total
    values = {name: np.empty(n) for name in code.solved}
    errors = {name: np.empty(n) for name in code.measured}
    iterations, residual = np.empty(n, dtype=np.int64), np.empty(n)
    nodes, converged = np.empty(n, dtype=np.int64), np.empty(n, dtype=bool)
    unknowns = [code.outputs.index(name) for name in code.unknowns]
    columns = [
        (column, k, kind)
        for kind, table in enumerate((values, errors))
        for name, column in table.items()
        for k in (code.outputs.index(name),)
    ]

    def work(begin: int, end: int) -> None:
        part = slice(begin, end)
        first = None if start is None else start[part]
        *tables, info, nodes[part] = _refined(kernel, arrays, parameters[part], first, total, rtol)
        # The square of an unknown that vanishes is known to the square of rounding, no better.
        least = _LEAST_ERROR * np.max(np.abs(tables[0]), axis=1, initial=0.0)
        for column, k, kind in columns:
            column[part] = tables[kind][:, k]
            if kind:
                np.maximum(column[part], least, out=column[part])
        iterations[part], residual[part] = np.abs(info[:, 0]), info[:, 1]
        converged[part] = np.isfinite(tables[0]).all(axis=1) & (info[:, 0] >= 0)
        converged[part] &= ~_run_off(tables[0][:, unknowns], tables[1][:, unknowns])

    _in_chunks(work, n, workers)
    return BatchSolution(values, errors, iterations, residual, nodes, converged)


def unsolved_rows(found: BatchSolution) -> NDArray[np.int64]:
    """Return the rows whose equations are not solved.

    Not among them are rows with a solution at which an output is not finite.
    """
    finite = np.isfinite([*found.values.values()]).all(axis=0)
    finite &= ~np.isnan([*found.errors.values()]).any(axis=0)
    return np.flatnonzero(~found.converged & (finite | ~(found.residual < SOLVED)))


def _run_off(values: Array, errors: Array) -> NDArray[np.bool_]:
    """Tell which rows are no solutions, because an unknown is on its way to infinity.

    Where two sides of an equation differ by a constant and both grow, their relative difference
    falls to rounding far out; but then the value has no digit.
    """
    sizes = np.abs(values)
    off: NDArray[np.bool_] = (sizes > RUN_OFF) & (errors > sizes) & (errors < np.inf)
    found: NDArray[np.bool_] = np.any(off, axis=1)
    return found


_NOT_FINITE = "check their expressions there, or leave out outputs that have none"


def refusal(
    kernel: LoadedKernel, parameters: Array, found: BatchSolution, remedy: str = _REMEDY
) -> ConvergenceError:
    """Return the error that names the first row that failed and what may help."""
    k = int(np.argmin(found.converged))
    point = ", ".join(
        f"{name} = {value:g}" for name, value in zip(kernel.parameters, parameters[k], strict=True)
    )
    residual = float(found.residual[k])
    n, failed = len(found.converged), int((~found.converged).sum())
    one_of_many = f"{failed} of {n} parameter sets; the first is " if n > 1 else ""
    lost = [
        f"{name} = {column[k]:g}"
        for name, column in found.values.items()
        if not np.isfinite(column[k])
    ] or [f"a term of {name}" for name, column in found.errors.items() if np.isnan(column[k])]
    if residual < SOLVED and lost:
        unknowns = dict.fromkeys((*kernel.code.unknowns, *kernel.code.unknown_results))
        solution = ", ".join(
            f"{name} = {found.values[name][k]:.10g}" for name in unknowns if name in found.values
        )
        return ConvergenceError(
            f"not finite: {', '.join(lost)} for {one_of_many}{point or 'the equations'}; Newton's "
            f"method found a solution there (residual {residual:.1e}"
            f"{solution and f', {solution}'}), at which these have no finite value; "
            f"{_NOT_FINITE if remedy is _REMEDY else remedy}",
            state=found,
            residual=residual,
        )
    return ConvergenceError(
        f"no saddle point found for {one_of_many}{point or 'the equations'}, with residual "
        f"{residual:.1e} after {found.iterations[k]} iterations; {remedy}",
        state=found,
        residual=residual,
    )


def _refined(
    kernel: LoadedKernel, arrays: KernelArrays, parameters: Array, start: Array | None,
    total: int, rtol: float,
) -> tuple[Array, Array, Array, NDArray[np.int64]]:  # fmt: skip
    """Return results, errors, info and nodes, refined until they are good or stop improving."""
    n, width, code = len(parameters), len(kernel.outputs), kernel.code
    results, errors, info = np.empty((n, width)), np.empty((n, width)), np.empty((n, 3))
    columns = [kernel.outputs.index(x) for x in code.unknowns if x in kernel.outputs]

    def solve(
        part: NDArray[np.int64], level: int, shaken: bool = False
    ) -> tuple[Array, Array, Array]:
        first = None if start is None else start[part]
        if shaken:
            first = results[part][:, columns] if len(columns) == len(code.unknowns) else None
        elif level and arrays.has_grid and columns:
            # All of them begin at the first level; on a finer grid, next to what is known.
            first = np.where(info[part, :1] >= 0, results[part][:, columns], np.nan)
        rules = (arrays.shaken(level) if shaken else None) or arrays[level]
        # Where compiling does not pay; grids are slow in Python.
        plain = not arrays.has_grid and total * (arrays.nodes(level) + _OVERHEAD) <= _PLAIN_SIZE
        starts = () if first is None else (np.ascontiguousarray(first, dtype=float),)
        return _run(kernel, parameters[part], rules, starts, plain)

    widths = None
    if kernel.widths is not None and arrays.refinable:
        width_at = kernel.widths.width_at

        def widths(part: NDArray[np.int64]) -> Array:
            found: Array = width_at(parameters[part], results[part])
            return found

    levels, unseen = refined(arrays, np.arange(n), (results, errors, info), solve, widths, rtol)
    # Nothing is known where the rules are too coarse to see the integrand.
    errors[unseen] = np.inf
    if not arrays.seen:
        errors *= _UNSEEN_MARGIN
    nodes = np.zeros(n, dtype=np.int64)
    for level in np.unique(levels):
        nodes[levels == level] = arrays.nodes(int(level))
    return results, errors, info, nodes


def _run(
    kernel: LoadedKernel, parameters: Array, arrays: tuple[Any, ...], starts: tuple[Array, ...],
    plain: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return results, errors and info on the arrays of a level, where possible in plain Python."""
    n, width = len(parameters), len(kernel.outputs)
    parameters = np.ascontiguousarray(parameters, dtype=float)
    found = np.empty((n, width)), np.empty((n, width)), np.empty((n, 3))
    # Nothing that was computed before counts: the last bits would depend on it.
    todo = np.ones(n, dtype=bool)
    if plain:
        kernel.plain.solve_batch(parameters, *arrays, *found, *starts)
        # Plain Python raises where compiled arithmetic goes on (log of a negative number).
        todo = np.isnan(found[2][:, 0])
    if todo.all():
        kernel.compiled().solve_batch(parameters, *arrays, *found, *starts)
    elif todo.any():
        left = tuple(a[todo] for a in found)
        rest = (s[todo] for s in starts)
        kernel.compiled().solve_batch(parameters[todo], *arrays, *left, *rest)
        for a, b in zip(found, left, strict=True):
            a[todo] = b
    return found


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
