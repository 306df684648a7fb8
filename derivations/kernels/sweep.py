"""Run a sweep: blocks of points in threads or an executor, stored as they finish, then joined."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import ConvergenceError, ParameterError
from ...numeric.arguments import is_one_of, whole_number
from ...numeric.saddle_point_solver import BatchSolution
from ...numeric.seed_store import SeedStore, store_folder
from .job import data_digest
from .points import Block, Points
from .sinks import MemorySink, Sink, Template, checked_path, sink

if TYPE_CHECKING:
    import xarray as xr

# Raised whenever the same sweep gives other numbers, so that stored blocks do not mix.
_VERSION = 2
# Blocks under way for each worker: one to work at, one to go on with.
_WAITING = 2

Arrays = Mapping[str, NDArray[Any]]
Refusal = Callable[[NDArray[np.float64], BatchSolution], ConvergenceError]


class Work(Protocol):
    """What solves rows of parameters; is sent to where they are solved."""

    @property
    def keep(self) -> bool:
        """Whether rows that fail are NaN, or an error."""

    def identity(self) -> dict[str, Any]:
        """Return what the results depend on besides the rows, as plain values."""

    def __call__(self, rows: NDArray[np.float64]) -> BatchSolution:
        """Solve for every row of parameters."""


@dataclass(frozen=True)
class Variables:
    """Names of the variables of a sweep's results.

    Attributes
    ----------
    outputs : tuple of str
    errors : tuple of str
        Of the estimated errors of the outputs; of the first ones, if there are fewer.
    residual, iterations, converged : str
    """

    outputs: tuple[str, ...]
    errors: tuple[str, ...]
    residual: str
    iterations: str
    converged: str

    @classmethod
    def of(cls, outputs: Sequence[str], taken: Sequence[str]) -> Variables:
        """Choose names that no parameter and no output has."""
        used = {*outputs, *taken}

        def free(name: str) -> str:
            while name in used:
                name += "_"
            used.add(name)
            return name

        errors = tuple(free(f"{name}_error_estimate") for name in outputs)
        return cls(tuple(outputs), errors, free("residual"), free("iterations"), free("converged"))

    def types(self) -> dict[str, str]:
        """Return the NumPy type of each variable."""
        reals = (*self.outputs, *self.errors, self.residual)
        return {**dict.fromkeys(reals, "float64"), self.iterations: "int32", self.converged: "bool"}

    def meanings(self) -> dict[str, str]:
        """Return what the variables are, beyond the outputs."""
        pairs = zip(self.outputs, self.errors, strict=False)
        return {
            **{error: f"estimated absolute error of {name}" for name, error in pairs},
            self.residual: "largest relative residual of the equations",
            self.iterations: "Newton iterations",
            self.converged: "whether the equations are solved",
        }

    def arrays(self, found: BatchSolution) -> dict[str, NDArray[Any]]:
        """Sort solutions into variables; what has not converged becomes NaN."""
        bad = ~found.converged
        reals = {name: found.values[name] for name in self.outputs}
        if bad.any():
            reals = {name: np.where(bad, np.nan, column) for name, column in reals.items()}
        for name, error in zip(self.outputs, self.errors, strict=False):
            column = found.errors[name]
            reals[error] = np.where(bad, np.inf, column) if bad.any() else column
        return {
            **reals,
            self.residual: found.residual,
            self.iterations: found.iterations.astype(np.int32),
            self.converged: found.converged,
        }


@dataclass(frozen=True)
class Execution:
    """Where points are solved, and what becomes of them: options that all curves have, checked.

    Attributes
    ----------
    failures : {"raise", "keep"}
    workers : int or None
    executor : concurrent.futures.Executor or None
    progress : bool
    out, store : Path or None

    Raises
    ------
    ParameterError
        If one of them cannot be.
    """

    failures: str
    workers: int | None
    executor: Executor | None
    progress: bool
    out: Any
    store: Any

    def __post_init__(self) -> None:
        if not is_one_of(self.failures, ("raise", "keep")):
            raise ParameterError(f"failures must be 'raise' or 'keep', got {self.failures!r}")
        if self.workers is not None:
            object.__setattr__(self, "workers", whole_number("workers", self.workers))
        object.__setattr__(self, "out", None if self.out is None else checked_path(self.out))
        object.__setattr__(self, "store", store_folder(self.store))

    @property
    def keeps(self) -> bool:
        """Whether points without solution are NaN."""
        return self.failures == "keep"


def run_sweep(
    job: Work,
    points: Points,
    variables: Variables,
    *,
    meanings: Mapping[str, str],
    attributes: Mapping[str, Any],
    execution: Execution,
    refuse: Refusal,
) -> xr.Dataset:
    """Solve at all points and return them as a data set.

    Parameters
    ----------
    job : Work
        Its `keep` says whether points that fail are NaN, or an error.
    points : Points
    variables : Variables
    meanings, attributes
        ``long_name`` of variables, and attributes of the data set.
    execution : Execution
    refuse : callable
        Takes parameters and solutions of points, some of which failed; returns the error.

    Raises
    ------
    ConvergenceError
        If a point fails that must not. Carries what was computed as `state`; nothing is written.
    """
    template = Template(points, variables.types(), {**variables.meanings(), **meanings}, attributes)
    blocks = points.blocks()
    store = execution.store
    finished = _Store(store, job, points, variables) if store is not None else None
    failures: dict[int, tuple[NDArray[np.float64], BatchSolution]] = {}
    bar = _Bar(len(points), execution.progress)
    results: Sink = sink(template, execution.out, blocks)
    with results, bar, _Pool(execution.executor, execution.workers, len(blocks)) as pool:

        def collect(index: int, arrays: Arrays) -> None:
            results.write(blocks[index], arrays)
            bar.advance(blocks[index].end - blocks[index].begin)

        def compute() -> Iterator[int]:
            for index, block in enumerate(blocks):
                known = finished.load(index, block) if finished else None
                if known is None:
                    yield index
                else:
                    collect(index, known)

        try:
            for index, found in pool.run(lambda i: (job, points, blocks[i]), compute()):
                arrays = variables.arrays(found)
                if not job.keep and not found.converged.all():
                    rows = points.rows(blocks[index].begin, blocks[index].end)
                    failures[index] = (rows, found)
                    if not isinstance(results, MemorySink):
                        break
                elif finished:
                    finished.save(index, arrays)
                collect(index, arrays)
        except KeyboardInterrupt:
            if finished is None:
                raise
            raise KeyboardInterrupt(
                f"after {bar.done} of {len(points)} points, which are kept in {store}: the same "
                "call goes on from there"
            ) from None
        if failures:
            error = refuse(*failures[min(failures)])
            count = sum(int((~found.converged).sum()) for _, found in failures.values())
            if isinstance(results, MemorySink) and execution.out is None:
                error.state = results.finish()
            raise ConvergenceError(
                f"{error}\n  in a sweep of {len(points)} points, {count} of which failed"
                f"{'' if isinstance(results, MemorySink) else ' so far'}; failures='keep' "
                "returns the others, with NaN where it failed",
                state=error.state,
                residual=error.residual,
            )
        return results.finish()


def _solve(task: tuple[Work, NDArray[np.float64]]) -> BatchSolution:
    job, rows = task
    return job(rows)


class _Pool:
    """The caller's executor, or threads of our own; only a few blocks are under way at a time."""

    def __init__(self, executor: Executor | None, workers: int | None, blocks: int) -> None:
        self._own = executor is None
        # One block needs no other thread, which would import SymPy for itself to be safe.
        self._alone = executor is None and blocks <= 1
        count = workers or min(max(blocks, 1), os.cpu_count() or 1)
        self._executor = executor or ThreadPoolExecutor(count, thread_name_prefix="giantstep")
        # An executor of the caller does not say how many workers it has.
        known = getattr(self._executor, "_max_workers", None)
        self._limit = _WAITING * max(known or 0, count, os.cpu_count() or 1)

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._own:
            self._executor.shutdown(cancel_futures=True)

    def run(
        self, task: Callable[[int], tuple[Work, Points, Block]], indices: Iterator[int]
    ) -> Iterator[tuple[int, BatchSolution]]:
        """Yield the number and the result of each block, in the order of completion."""
        if self._alone:
            for only in indices:
                job, points, block = task(only)
                yield only, job(points.rows(block.begin, block.end))
            return
        under_way: dict[Future[BatchSolution], int] = {}
        try:
            more = True
            while more or under_way:
                while more and len(under_way) < self._limit:
                    index = next(indices, None)
                    if index is None:
                        more = False
                        break
                    job, points, block = task(index)
                    rows = points.rows(block.begin, block.end)
                    under_way[self._executor.submit(_solve, (job, rows))] = index
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                # What succeeded first: after a failure nothing more is taken.
                for future in sorted(done, key=lambda f: f.exception() is not None):
                    yield under_way.pop(future), future.result()
        finally:
            for future in under_way:
                future.cancel()


class _Store:
    """Finished blocks on disk."""

    def __init__(self, folder: Path, job: Work, points: Points, variables: Variables) -> None:
        self._folder, self._types = folder, variables.types()
        self._key = {
            **job.identity(),
            "version": _VERSION,
            "axes": data_digest(list(points.axes.items())),
            "fixed": dict(points.fixed),
            "product": points.product,
            "variables": list(self._types),
        }

    def _seeds(self, n: int) -> SeedStore:
        return SeedStore(self._folder, self._key, dict.fromkeys(self._types, (n,)))

    def load(self, index: int, block: Block) -> dict[str, NDArray[Any]] | None:
        found = self._seeds(block.end - block.begin).load(index)
        if found is None:
            return None
        return {name: found[name].astype(kind) for name, kind in self._types.items()}

    def save(self, index: int, arrays: Arrays) -> None:
        n = len(next(iter(arrays.values())))
        self._seeds(n).save(index, {name: a.astype(float) for name, a in arrays.items()})


class _Bar:
    """A progress bar that appears after a second; importing it takes a while, too."""

    def __init__(self, total: int, wanted: bool) -> None:
        self._total, self._wanted = total, wanted
        self.done = 0
        self._began = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, points: int) -> None:
        self.done += points
        if self._bar is None and self._wanted and time.monotonic() > self._began + 1:
            from tqdm.auto import tqdm

            self._bar = tqdm(
                desc="sweep", total=self._total, unit="point", unit_scale=True, leave=False
            )
        if self._bar is not None:
            self._bar.update(self.done - self._bar.n)
