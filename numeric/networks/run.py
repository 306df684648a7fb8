"""Many networks of finite size: one for each seed, measured, stored as they finish, resumed.

Seed i of a run with entropy `seed` uses ``SeedSequence(seed).spawn(seeds)[i]`` and one BLAS thread,
so the numbers are the same to the last bit for any number of workers and any executor, and more
seeds extend a smaller run.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import math
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from ...errors import ParameterError
from ..arguments import MOST_SEEDS, checked_seed, checked_switch, is_one_of, whole_number
from ..seed_store import SeedStore, store_folder
from .measure import Measurement, measurement_of
from .network import Network, Training
from .readout import Readout, RidgeReadout, TrainedNetwork, bytes_needed
from .sizes import check_memory, memory_of_machine

__all__ = ["Networks", "progress_bar", "simulate"]

Array = NDArray[np.float64]
Measures = (
    str | Measurement | Sequence[str | Measurement]
    | Mapping[str | Measurement, int | Sequence[int]]
)  # fmt: skip

STREAMS_VERSION = 2
"""Raised whenever the same seed gives other numbers than before, so that files do not mix."""


@dataclass(frozen=True, slots=True, eq=False)
class Networks:
    """What finished networks gave.

    Attributes
    ----------
    values : dict of str to ndarray
        The first axis of each array is the network; where a measurement was asked for after several
        steps, the second is the step.
    completed : tuple of int
        Numbers of the finished seeds, increasing.
    interrupted : bool
        True if the run was interrupted and seeds are missing.
    steps : dict of str to tuple of int
        Of arrays with an axis of steps, after how many steps they were measured.
    seed : int
        From which the seeds of the networks were made.
    """

    values: dict[str, Array]
    completed: tuple[int, ...]
    interrupted: bool = False
    steps: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    seed: int = 0

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the arrays."""
        return tuple(self.values)

    def __getitem__(self, quantity: str) -> Array:
        """Return the array of a name.

        Raises
        ------
        ParameterError
            If there is no such quantity.
        """
        if not is_one_of(quantity, self.values):
            raise ParameterError(f"no quantity {quantity!r}\n  known: {', '.join(self.quantities)}")
        return self.values[quantity]

    def mean(self, quantity: str = "test_error") -> Array:
        """Mean over the networks.

        Raises
        ------
        ParameterError
            If there is no such quantity.
        """
        return np.asarray(self[quantity].mean(axis=0))

    def standard_error(self, quantity: str = "test_error") -> Array:
        """Standard error of :meth:`mean`.

        Raises
        ------
        ParameterError
            If there is no such quantity, or one network only.
        """
        values = self[quantity]
        if len(values) < 2:
            raise ParameterError("one network has no standard error\n  use seeds >= 2")
        return np.asarray(values.std(axis=0, ddof=1) / math.sqrt(len(values)))

    def __repr__(self) -> str:
        state = ", interrupted" if self.interrupted else ""
        return f"Networks({len(self.completed)} seeds: {', '.join(self.values)}{state})"


def simulate(
    network: Network,
    measure: Measures = ("errors", "spike"),
    *,
    readout: Readout | None = None,
    seeds: int = 10,
    seed: int | np.random.SeedSequence | np.random.Generator = 0,
    workers: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    shared: bool = False,
    description: str | None = None,
    progress: bool | None = None,
) -> Networks:
    """Train one network for each seed and collect what is measured.

    Parameters
    ----------
    network : Network
    measure : measurements
        Names of :data:`.measure.MEASUREMENTS`, or functions of a
        :class:`.readout.TrainedNetwork` that return arrays by name; measured after the last step.
        A mapping from them to numbers of steps measures after these; a sequence of numbers gives
        arrays an axis of steps.
    readout : RidgeReadout or ConvexReadout, optional
        Needed for errors and overlaps.
    seeds, seed : int
        Number of networks and entropy of the run.
    workers : int, optional
        Threads; by default one for each seed, at most one for each processor and as many as fit
        into the memory. Has no effect on the numbers.
    executor : concurrent.futures.Executor, optional
        Where to run the seeds instead of in threads of this process. If it runs them in other
        processes, all functions must be picklable. It is not shut down. Seeds of a worker that dies
        are run again, once; in threads of this process if the executor is broken.
    store : path, optional
        Folder of this run, with one file for each finished seed, and one for each that was stopped
        after some of its steps. What is found there is not computed again; damaged files are.
    shared : bool
        Whether `store` may hold other runs, too; otherwise their folder is refused.
    description : str, optional
        Names what the numbers of a network do not: its functions; by default the description of
        the network. Required with `store`.
    progress : bool, optional
        Show a progress bar on the standard error stream if the run takes longer than a second; by
        default where that is a terminal.

    Returns
    -------
    Networks
        All seeds, or after a keyboard interrupt those that had finished, if at least two.

    Raises
    ------
    ParameterError
        If an argument is outside its range, the networks do not fit into the memory, or the store
        is that of another run.
    KeyboardInterrupt
        If interrupted before two seeds had finished. What is done is in `store` nevertheless.

    Examples
    --------
    >>> network = Network(student=np.sin, teacher=np.sin, student_derivative=np.cos, dimension=50,
    ...                   width=50, steps=1, step_samples=200, step_size=1.0)
    >>> found = simulate(network, readout=RidgeReadout([25, 100], 0.1), seeds=3)
    >>> found["test_error"].shape, found.mean("alignment").round(1).item()
    ((3, 2, 1), 0.9)
    """
    if not isinstance(network, Network):
        raise ParameterError(f"network must be a Network, not {type(network).__name__}")
    plan = _plan(measure, network.steps)
    seeds = whole_number("seeds", seeds, maximum=MOST_SEEDS)
    seed = checked_seed(seed)
    if workers is not None:
        workers = whole_number("workers", workers)
        if executor is not None:
            raise ParameterError(
                "workers and executor exclude each other; the executor has its own"
            )
    shared = checked_switch("shared", shared)
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ParameterError(
            f"executor must be a concurrent.futures.Executor, got {executor!r}; a number of "
            "threads is workers"
        )
    shown = sys.stderr.isatty() if progress is None else checked_switch("progress", progress)
    workers = _checked_workers(network, readout, seeds, workers, executor)
    keeper = None
    folder = store_folder(store)
    if folder is not None:
        description = description or network.description
        if not description:
            raise ParameterError(
                "store needs a description: it names student and teacher in the file names"
            )
        keeper = _keeper(folder, network, readout, plan, seed, description, shared)
    results: dict[int, dict[str, Array]] = {}
    if keeper is not None:
        for index in range(seeds):
            stored = keeper.load(index)
            if stored is not None:
                results[index] = stored
    missing = [index for index in range(seeds) if index not in results]
    drawn = _drawn_samples(network, readout)
    lock = threading.Lock()
    with (
        # For all workers at once: OpenBLAS has one limit for the process, and the first run to end
        # would give the others their threads back, which changes the last bits.
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        progress_bar(shown, len(missing) * drawn, "sample") as bar,
    ):

        def advance(samples: int) -> None:
            with lock:
                bar.update(samples)

        def collect(index: int, found: dict[str, Array]) -> None:
            # Saved first: an interrupt in between makes it be collected again, not lost.
            if keeper is not None:
                keeper.save(index, found)
                keeper.unfinished.discard(index)
            results[index] = found
            if executor is not None:
                advance(drawn)

        job = functools.partial(_one_seed, network, readout, plan, seed)
        local = functools.partial(job, keeper, advance)
        interrupted = run_seeds(
            local if executor is None else functools.partial(job, None, None), missing, collect,
            workers=workers, executor=executor,
        )  # fmt: skip
    if interrupted and len(results) < min(2, seeds):
        raise KeyboardInterrupt
    completed = tuple(sorted(results))
    values, steps = {}, {}
    taken = {planned.name: planned.steps for planned in plan if planned.stacked}
    for key in results[completed[0]]:
        measured, _, name = key.partition("/")
        values[name] = np.stack([results[index][key] for index in completed])
        if measured in taken:
            steps[name] = taken[measured]
    return Networks(values, completed, interrupted, steps, seed)


# ---------------------------------------------------------------------- what is measured when


@dataclass(frozen=True, slots=True)
class _Planned:
    """A measurement and the numbers of steps after which it is taken."""

    name: str
    function: Measurement
    steps: tuple[int, ...]
    stacked: bool


def _plan(measure: object, last: int) -> tuple[_Planned, ...]:
    if isinstance(measure, Mapping):
        asked = list(measure.items())
    else:
        listed = (
            measure
            if isinstance(measure, Sequence) and not isinstance(measure, str)
            else (measure,)
        )
        asked = [(item, last) for item in listed]
    if not asked:
        raise ParameterError("measure must name at least one measurement, such as 'errors'")
    plan = []
    for item, steps in asked:
        name, function = measurement_of(item)
        stacked = not isinstance(steps, (int, np.integer)) or isinstance(steps, bool)
        numbers = steps if stacked else (steps,)
        if not isinstance(numbers, Iterable):
            raise ParameterError(f"steps of {name} must be whole numbers, got {steps!r}")
        found = tuple(sorted({whole_number("steps", step, minimum=0) for step in numbers}))
        if not found or found[-1] > last:
            raise ParameterError(
                f"steps of {name} must be numbers of steps up to {last}, got {steps}"
            )
        plan.append(_Planned(name, function, found, stacked))
    names = [planned.name for planned in plan]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ParameterError(f"two measurements are named {twice!r}; leave one out, or rename it")
    return tuple(plan)


def _one_seed(
    network: Network, readout: Readout | None, plan: tuple[_Planned, ...], seed: int,
    keeper: _Keeper | None, advance: Callable[[int], None] | None, index: int,
    checkpoint: Callable[[], None] | None,
) -> dict[str, Array]:  # fmt: skip
    # What SeedSequence(seed).spawn(index + 1)[index] returns.
    child = np.random.SeedSequence(seed, spawn_key=(index,))
    found: dict[str, list[Array]] = {}
    # Executors run this in processes of their own, with BLAS threads of their own.
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        # A function that overflows is reported by name.
        np.errstate(over="ignore", invalid="ignore"),
    ):
        training = Training(network, child, checkpoint, advance)
        stopped = keeper.unfinished.load(index) if keeper is not None else None
        if stopped is None:
            _measure(plan, training, readout, found)
        else:
            for name in [name for name in stopped if name.startswith("measured ")]:
                found[name.removeprefix("measured ")] = list(stopped.pop(name))
            training.resume(stopped)
        while training.steps < network.steps:
            training.step()
            _measure(plan, training, readout, found)
            if keeper is not None and training.steps < network.steps:
                measured = {f"measured {name}": np.stack(rows) for name, rows in found.items()}
                keeper.unfinished.save(index, {**training.state(), **measured})
    alone = {name for planned in plan if not planned.stacked for name in _names(planned, found)}
    return {key: rows[0] if key in alone else np.stack(rows) for key, rows in found.items()}


def _names(planned: _Planned, found: Mapping[str, object]) -> Iterator[str]:
    return (key for key in found if key.partition("/")[0] == planned.name)


def _measure(
    plan: Sequence[_Planned], training: Training, readout: Readout | None,
    found: dict[str, list[Array]],
) -> None:  # fmt: skip
    due = [planned for planned in plan if training.steps in planned.steps]
    if not due:
        return
    trained = TrainedNetwork(training, readout)
    for planned in due:
        values = planned.function(trained)
        if not isinstance(values, Mapping):
            raise ParameterError(
                f"measurement {planned.name} must return arrays by name, got {values!r}"
            )
        for name, value in values.items():
            if any(key.partition("/")[2] == name for key in found if not key.startswith(
                f"{planned.name}/"
            )):  # fmt: skip
                raise ParameterError(f"two measurements return {name!r}; rename one")
            found.setdefault(f"{planned.name}/{name}", []).append(np.array(value, dtype=np.float64))


# ---------------------------------------------------------------------- sizes


def _drawn_samples(network: Network, readout: Readout | None) -> int:
    """Samples that one network draws, about: readouts may draw some again."""
    fitted = 0
    if readout is not None:
        exact = isinstance(readout, RidgeReadout) and (readout.gaussian or readout.covariances)
        fresh = 0 if exact else readout.fresh_samples(network.dimension)
        fitted = max(readout.sizes) + fresh
    return network.drawn_samples + fitted


def _checked_workers(
    network: Network, readout: Readout | None, seeds: int, workers: int | None,
    executor: concurrent.futures.Executor | None,
) -> int:  # fmt: skip
    """Threads; refuses networks that do not fit into the memory."""
    needed = network.bytes_needed + bytes_needed(network, readout)
    if workers is None:
        room = max(memory_of_machine() // needed, 1)
        workers = min(max(seeds, 1), os.cpu_count() or 1, room)
    sizes = f"dimension={network.dimension}, width={network.width}"
    if readout is not None:
        sizes += f" and {max(readout.sizes)} samples of the readout"
    check_memory(sizes, needed, 1 if executor is not None else workers)
    return workers


# ---------------------------------------------------------------------- the store


class _Keeper(SeedStore):
    """Finished networks on disk; `unfinished` has those that were stopped, with their weights."""

    def __init__(self, folder: Path, key: dict[str, object]) -> None:
        super().__init__(folder, key)
        self.unfinished = SeedStore(folder, key, suffix="-stopped")


def _keeper(
    folder: Path, network: Network, readout: Readout | None, plan: Sequence[_Planned], seed: int,
    description: str, shared: bool,
) -> _Keeper:  # fmt: skip
    key: dict[str, object] = {
        "streams_version": STREAMS_VERSION,
        # It stands for the functions, whose values cannot be hashed.
        "description": description,
        "network": network.identity(),
        "readout": None if readout is None else readout.identity(),
        "measure": [
            [p.name, getattr(p.function, "digest", ""), list(p.steps), p.stacked] for p in plan
        ],
        "seed": seed,
    }
    keeper = _Keeper(folder, key)
    keeper.check_owner("a run of networks", STREAMS_VERSION, shared=shared)
    return keeper


# ---------------------------------------------------------------------- workers


class Job(Protocol):
    """Computes one seed; calls `checkpoint` often, which raises when the run is abandoned."""

    def __call__(self, index: int, checkpoint: Callable[[], None] | None) -> Any: ...


def run_seeds(
    job: Job,
    indices: Iterable[int],
    collect: Callable[[int, Any], None],
    *,
    workers: int,
    executor: concurrent.futures.Executor | None = None,
) -> bool:
    """Compute seeds in parallel.

    Parameters
    ----------
    job : callable
        Takes the number of a seed and a checkpoint. In an executor there is no checkpoint.
    indices : iterable of int
        Seeds to compute.
    collect : callable
        Takes the number of a seed and its result, in this thread, in the order of completion.
    workers : int
        Threads.
    executor : concurrent.futures.Executor, optional
        Where to run instead of in threads of our own. It is not shut down.

    Returns
    -------
    bool
        Whether the run was interrupted from the keyboard. What had finished has been collected.
    """
    wanted = list(indices)
    with _Workers(executor, workers) as pool:
        lost: list[int] = []
        interrupted = _run(job, wanted, collect, pool, lost)
        if interrupted or not lost:
            return interrupted
        numbers = ", ".join(map(str, sorted(lost)))
        warnings.warn(f"a worker died; running seeds {numbers} again", RuntimeWarning, stacklevel=2)
        gone: list[int] = []
        interrupted = _run(job, lost, collect, pool, gone)
    if gone and not interrupted and pool.broken:
        # Such an executor takes no more work; its seeds have been lost once.
        with _Workers(None, workers) as pool:
            return _run(job, gone, collect, pool, [])
    if gone and not interrupted:
        raise ParameterError(
            f"the workers of seeds {', '.join(map(str, gone))} died twice, for want of memory "
            "perhaps\n  finished seeds are in the store if there is one; take a smaller dimension "
            "or width, or fewer workers"
        )
    return interrupted


def _run(
    job: Job, wanted: Sequence[int], collect: Callable[[int, Any], None], pool: _Workers,
    lost: list[int],
) -> bool:  # fmt: skip
    """Run seeds once; those of workers that died are added to `lost`."""
    futures: dict[concurrent.futures.Future[Any], int] = {}
    collected: set[int] = set()

    def take(future: concurrent.futures.Future[Any]) -> None:
        collect(futures[future], future.result())
        collected.add(futures[future])

    try:
        for index in wanted:
            future = pool.submit(job, index)
            if future is None:
                lost.append(index)
            else:
                futures[future] = index
        for future in concurrent.futures.as_completed(futures):
            try:
                take(future)
            except Exception as error:
                if not _is_loss(error):
                    raise
                lost.append(futures[future])
    except KeyboardInterrupt:
        pool.stop(futures)
        for future, index in futures.items():
            if index not in collected and _succeeded(future):
                take(future)
        return True
    except MemoryError as error:
        pool.stop(futures)
        raise ParameterError(
            f"the networks do not fit into memory ({error}); take a smaller dimension, width or "
            "number of samples, or fewer workers"
        ) from None
    except BaseException:
        pool.stop(futures)
        raise
    return False


class _Abandoned(Exception):
    """Ends a run in a thread, which cannot be ended from outside."""


class _Workers:
    """The caller's executor, or threads of our own that end with the context."""

    def __init__(self, executor: concurrent.futures.Executor | None, workers: int) -> None:
        self._own = executor is None
        self._abandoned = threading.Event()
        self.broken = False
        if executor is None:
            executor = concurrent.futures.ThreadPoolExecutor(
                workers, thread_name_prefix="giantstep"
            )
        self._executor = executor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._own:
            self._executor.shutdown(cancel_futures=True)

    def submit(self, job: Job, index: int) -> concurrent.futures.Future[Any] | None:
        """Start seed `index`; None if the executor takes no more work."""
        try:
            # An event cannot be sent to another process; runs there finish.
            return self._executor.submit(job, index, self._check if self._own else None)
        except concurrent.futures.BrokenExecutor:
            self.broken = True
            return None

    def stop(self, futures: Iterable[concurrent.futures.Future[Any]]) -> None:
        """Cancel what has not begun and, in threads of our own, what has."""
        self._abandoned.set()
        for future in futures:
            future.cancel()

    def _check(self) -> None:
        if self._abandoned.is_set():
            raise _Abandoned


def _is_loss(error: BaseException) -> bool:
    """Whether a worker died; distributed executors have errors of their own for it."""
    return isinstance(error, concurrent.futures.BrokenExecutor) or type(error).__name__ in (
        "KilledWorker", "LostWorker", "WorkerLostError",
    )  # fmt: skip


def _succeeded(future: concurrent.futures.Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


# ---------------------------------------------------------------------- progress


class ProgressBar(Protocol):
    """What is told of progress."""

    def update(self, n: float | None = 1) -> object: ...


@contextlib.contextmanager
def progress_bar(shown: bool, total: int, unit: str) -> Iterator[ProgressBar]:
    """Show progress on the standard error stream, from the second second on."""
    # Imported here: tqdm.auto looks for notebook widgets, which costs time at every import.
    from tqdm.auto import tqdm

    with tqdm(total=total, delay=1, disable=not shown, unit=unit, unit_scale=True) as bar:
        yield bar
