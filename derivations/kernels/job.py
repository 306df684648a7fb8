"""Rows of parameters solved wherever they are sent: in threads, in processes, on a cluster."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ConvergenceError
from ...numeric.cache import FileCache
from ...numeric.continuation import put, solve_with_continuation
from ...numeric.first_values import spread
from ...numeric.kernel_arrays import KernelArrays
from ...numeric.kernel_code import KernelCode, LoadedKernel
from ...numeric.saddle_point_solver import BatchSolution, solve_rows, unsolved_rows

Array = NDArray[np.float64]

# How many first values are tried where those of the equations lead nowhere.
_FIRST_VALUES = 16
# Steep integrands of Hopfield's model at low temperature are seen from here on.
_ROUGH_LEVEL = 2
# Tables of one set of their parameters take some 50 kB.
_MOST_TABLES = 2048


@dataclass(frozen=True)
class Job:
    """Solves rows; holds text and arrays only, so that it can be sent anywhere.

    Attributes
    ----------
    code : KernelCode
    folder : str
        Cache folder.
    data : tuple of (str, array)
        Data sets as rows: weights, columns.
    start : tuple of float or None
        First values of the unknowns, NaN where the kernel has its own.
    searched : tuple of (float, float)
        Intervals of the unknowns from all of which first values are taken where the kernel's own
        lead nowhere; empty if that is not wanted.
    rough : int or None
        On this rule of a level that sees most integrands, whose errors nobody estimates.
    rtol : float
    total : int
        Rows of the whole run; small runs are not compiled.
    keep : bool
        Rows whose tables cannot be computed count as failed; else the reason is raised.
    """

    code: KernelCode
    folder: str
    data: tuple[tuple[str, Array], ...]
    start: tuple[float, ...] | None
    rtol: float
    total: int
    keep: bool = False
    searched: tuple[tuple[float, float], ...] = ()
    rough: int | None = None

    def identity(self) -> dict[str, Any]:
        """Return what the results depend on besides the rows."""
        sources = (("tables", self.code.table_source), ("solver", self.code.plain_source))
        return {
            "kind": "kernel sweep",
            "code": data_digest(
                [(name, np.frombuffer(text.encode(), dtype=np.uint8)) for name, text in sources]
            ),
            "data": data_digest(self.data),
            "start": None if self.start is None else [repr(x) for x in self.start],
            "rtol": self.rtol,
        }

    def __call__(self, rows: Array, workers: int | None = 1) -> BatchSolution:
        """Solve for every row of parameters."""
        place = _workplace(self.code, self.folder)
        wanted = [self.code.parameters.index(name) for name in self.code.table_parameters]
        key = data_digest(self.data)
        groups = groups_of_rows(rows[:, wanted])
        parts = []
        for group in groups:
            table_values = tuple(rows[group[0], wanted].tolist()) if len(group) else ()
            arrays = place.arrays(table_values, key, self.data)
            if self.rough is not None:
                arrays = arrays.single(self.rough, _ROUGH_LEVEL)
            start = None
            if self.start is not None:
                start = np.tile(np.array(self.start), (len(group), 1))
            try:
                found = solve_rows(
                    place.kernel, arrays, rows[group], start=start, rtol=self.rtol,
                    workers=workers, total=self.total,
                )  # fmt: skip
                self._search(found, place.kernel, arrays, rows[group], workers)
            except ConvergenceError:
                if not self.keep:
                    raise
                found = _nothing(self.code, len(group))
            parts.append(found)
        return joined(parts, groups)

    def _search(
        self, found: BatchSolution, kernel: LoadedKernel, arrays: KernelArrays, rows: Array,
        workers: int | None,
    ) -> None:  # fmt: skip
        """Look for solutions of rows that have none yet: from afar, then from easier equations."""
        if found.converged.all():
            return
        lost = unsolved_rows(found)
        easier = self.code.easier
        if not len(lost) or not self.code.unknowns or not (self.searched or easier):
            return
        start = np.tile(
            np.full(len(self.code.unknowns), np.nan) if self.start is None else self.start,
            (len(lost), 1),
        )
        further: Array | tuple[()] = ()
        if self.searched:
            lower, upper = zip(*self.searched, strict=True)
            further = spread(lower, upper, _FIRST_VALUES)
        again = solve_with_continuation(
            kernel, arrays, rows[lost], start, easier,
            rtol=self.rtol, workers=workers, further=tuple(further),
        )  # fmt: skip
        again.iterations[:] += found.iterations[lost]
        better = again.converged
        put(found, lost[better], again, better)


class _Workplace:
    """A kernel that is loaded in this process, with tables that were made for it."""

    def __init__(self, code: KernelCode, folder: str) -> None:
        self.kernel: LoadedKernel = code.load(FileCache(folder))
        self._arrays: OrderedDict[object, KernelArrays] = OrderedDict()
        self._lock = threading.Lock()

    def arrays(
        self, table_values: tuple[float, ...], key: str, data: tuple[tuple[str, Array], ...]
    ) -> KernelArrays:
        wanted = (table_values, key)
        with self._lock:
            found = self._arrays.get(wanted)
            if found is None:
                found = KernelArrays(self.kernel, table_values, dict(data))
                self._arrays[wanted] = found
                if len(self._arrays) > _MOST_TABLES:
                    self._arrays.popitem(last=False)
            return found


@lru_cache(maxsize=16)
def _workplace(code: KernelCode, folder: str) -> _Workplace:
    return _Workplace(code, folder)


if hasattr(os, "register_at_fork"):
    # The lock of a workplace may be held by a thread that does not exist in the copy.
    os.register_at_fork(after_in_child=_workplace.cache_clear)


def data_digest(arrays: Sequence[tuple[str, NDArray[Any]]]) -> str:
    """Return a hash of named arrays."""
    digest = hashlib.sha256()
    for name, array in arrays:
        digest.update(f"{name} {array.shape} {array.dtype.str}\0".encode() + array.tobytes())
    return digest.hexdigest()


def _nothing(code: KernelCode, n: int) -> BatchSolution:
    unknown = np.full(n, np.nan)
    return BatchSolution(
        values=dict.fromkeys(code.solved, unknown),
        errors=dict.fromkeys(code.measured, np.full(n, np.inf)),
        iterations=np.zeros(n, dtype=np.int64),
        residual=unknown,
        nodes=np.zeros(n, dtype=np.int64),
        converged=np.zeros(n, dtype=bool),
    )


def groups_of_rows(rows: Array) -> list[NDArray[np.intp]]:
    """Return the numbers of rows that are equal, group by group."""
    # Sorting takes as long as solving, and most often there is nothing to sort.
    if not rows.shape[1] or len(rows) < 2 or (rows[1:] == rows[0]).all():
        return [np.arange(len(rows))]
    _, which = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(which, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(which[order])) + 1)


def joined(parts: Sequence[BatchSolution], groups: Sequence[NDArray[np.intp]]) -> BatchSolution:
    """Put results of groups of rows back into the order of the rows."""
    back = np.argsort(np.concatenate(groups), kind="stable")

    if len(parts) == 1:
        return parts[0]

    def columns(tables: list[Mapping[str, Array]]) -> dict[str, Array]:
        return {k: np.concatenate([t[k] for t in tables])[back] for k in tables[0]}

    return BatchSolution(
        values=columns([p.values for p in parts]),
        errors=columns([p.errors for p in parts]),
        iterations=np.concatenate([p.iterations for p in parts])[back],
        residual=np.concatenate([p.residual for p in parts])[back],
        nodes=np.concatenate([p.nodes for p in parts])[back],
        converged=np.concatenate([p.converged for p in parts])[back],
    )
