"""Many networks of finite size: averages over seeds, in parallel, resumable.

Seed i of a run with entropy `seed` uses ``SeedSequence(seed).spawn(seeds)[i]`` and one BLAS thread,
so the numbers are the same to the last bit for any number of workers, and more seeds extend a
smaller run. One network is the business of :mod:`giantstep.numeric.networks`.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from ..errors import ParameterError
from .arguments import whole_number
from .networks import (
    NetworkResult,
    NetworkSetup,
    check_readout,
    simulate_network,
)
from .replicates import Replicates
from .seed_store import SeedStore

__all__ = ["NetworkSetup", "SimulationResult", "simulate", "simulate_network"]

Array = NDArray[np.float64]
QUANTITIES = ("test_error", "training_error", "spike_strength", "bulk_variance", "alignment")


@dataclass(frozen=True, slots=True, eq=False)
class SimulationResult(Replicates):
    """What the finished seeds achieved; rows are seeds, in the order of `completed`.

    Attributes
    ----------
    alpha : ndarray, shape (n_alpha,)
        Readout samples divided by the dimension, as asked.
    test_error, training_error : ndarray, shape (n_seeds, n_alpha)
        Mean squared errors: against the noise-free target, and against the noisy labels.
    spike_strength, bulk_variance, alignment : ndarray, shape (n_seeds,)
        Realised parameters r, c, gamma of the equivalent spiked random features.
    completed : tuple of int
        Numbers of the finished seeds, increasing.
    interrupted : bool
        True if the run was interrupted and seeds are missing.
    """

    alpha: Array
    test_error: Array
    training_error: Array
    spike_strength: Array
    bulk_variance: Array
    alignment: Array
    completed: tuple[int, ...]
    interrupted: bool

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the arrays with one row for each network."""
        return QUANTITIES

    def __repr__(self) -> str:
        state = ", interrupted" if self.interrupted else ""
        return f"SimulationResult({len(self.completed)} seeds, {len(self.alpha)} alpha{state})"


def simulate(
    setup: NetworkSetup,
    alpha: Sequence[float],
    *,
    ridge: float,
    seeds: int = 10,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = True,
    n_test: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    description: str | None = None,
) -> SimulationResult:
    """Train one network for each seed and collect their errors.

    Parameters
    ----------
    setup, alpha, ridge, n_test
        See :func:`simulate_network`.
    seeds : int
        Number of networks.
    seed : int
        Entropy of the run, >= 0.
    workers : int, optional
        Threads; by default one for each seed, at most one for each processor. Has no effect on the
        numbers.
    progress : bool
        Show a progress bar on the standard error stream if the run takes longer than a second.
    executor : concurrent.futures.Executor, optional
        Where to run the seeds instead of in threads of this process. If it runs them in other
        processes, the functions of `setup` must be picklable. It is not shut down.
    store : path, optional
        Folder with one file for each finished seed. Seeds found there are not computed again;
        damaged files are.
    description : str, optional
        Names what the numbers of `setup` do not: student and teacher. Required with `store`.

    Returns
    -------
    SimulationResult
        All seeds, or after a keyboard interrupt those that had finished, if at least two.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    KeyboardInterrupt
        If interrupted before two seeds had finished. Finished ones are in `store` nevertheless.

    Examples
    --------
    >>> setup = NetworkSetup(np.sin, np.cos, np.sin, step_size=1, alpha0=4, beta=1,
    ...                      noise_variance=0, dimension=50)
    >>> result = simulate(setup, [0.5, 2], ridge=0.1, seeds=3)
    >>> result.test_error.shape, result.mean("alignment").round(1).item()
    ((3, 2), 0.9)
    """
    ratios, ridge, n_test = check_readout(setup, alpha, ridge, n_test)
    seeds = whole_number("seeds", seeds)
    seed = whole_number("seed", seed, minimum=0)
    if workers is not None:
        workers = whole_number("workers", workers)
        if executor is not None:
            raise ParameterError(
                "workers and executor exclude each other; the executor has its own"
            )
    keeper = None
    if store is not None:
        if not description:
            raise ParameterError(
                "store needs a description: it names student and teacher in the file names"
            )
        keeper = SeedStore(Path(store), setup, ratios, ridge, n_test, seed, description)

    results: dict[int, NetworkResult] = {}
    if keeper is not None:
        for index in range(seeds):
            stored = keeper.load(index)
            if stored is not None:
                results[index] = stored
    missing = [index for index in range(seeds) if index not in results]
    interrupted = False
    with (
        # Held here for all threads: OpenBLAS has one limit for the process, and the first run to
        # end would give the others their threads back, which changes the last bits.
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        _progress_bar(progress, seeds, len(results)) as bar,
        _Workers(executor, workers, len(missing)) as pool,
    ):
        futures: dict[concurrent.futures.Future[NetworkResult], int] = {}

        def collect(future: concurrent.futures.Future[NetworkResult]) -> None:
            index = futures[future]
            result = future.result()
            # Saved first: an interrupt in between makes it be collected again, not lost.
            if keeper is not None:
                keeper.save(index, result)
            results[index] = result
            bar.update()

        try:
            for index in missing:
                futures[pool.submit(setup, ratios, ridge, seed, index, n_test)] = index
            for future in concurrent.futures.as_completed(futures):
                collect(future)
        except KeyboardInterrupt:
            interrupted = True
            pool.stop(futures)
            for future, index in futures.items():
                if index not in results and _succeeded(future):
                    collect(future)
            if len(results) < 2:
                raise
        except BaseException:
            pool.stop(futures)
            raise
    completed = tuple(sorted(results))
    rows = [results[index] for index in completed]
    return SimulationResult(
        alpha=np.array(ratios),
        **{name: np.array([getattr(row, name) for row in rows]) for name in QUANTITIES},
        completed=completed,
        interrupted=interrupted,
    )


class _Abandoned(Exception):
    """Ends a run in a thread, which cannot be ended from outside."""


class _Workers:
    """The caller's executor, or threads of our own that end with the context."""

    def __init__(
        self, executor: concurrent.futures.Executor | None, workers: int | None, jobs: int
    ) -> None:
        self._own = executor is None
        self._abandoned = threading.Event()
        if executor is None:
            count = workers or min(max(jobs, 1), os.cpu_count() or 1)
            executor = concurrent.futures.ThreadPoolExecutor(count, thread_name_prefix="giantstep")
        self._executor = executor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._own:
            self._executor.shutdown(cancel_futures=True)

    def submit(
        self,
        setup: NetworkSetup,
        alpha: tuple[float, ...],
        ridge: float,
        seed: int,
        index: int,
        n_test: int,
    ) -> concurrent.futures.Future[NetworkResult]:
        """Start seed `index`."""
        return self._executor.submit(
            simulate_network,
            setup,
            alpha,
            ridge=ridge,
            # What SeedSequence(seed).spawn(index + 1)[index] returns.
            seed=np.random.SeedSequence(seed, spawn_key=(index,)),
            n_test=n_test,
            # An event cannot be sent to another process; runs there finish.
            checkpoint=self._check if self._own else None,
        )

    def stop(self, futures: Iterable[concurrent.futures.Future[NetworkResult]]) -> None:
        """Cancel what has not begun and, in threads of our own, what has."""
        self._abandoned.set()
        for future in futures:
            future.cancel()

    def _check(self) -> None:
        if self._abandoned.is_set():
            raise _Abandoned


def _succeeded(future: concurrent.futures.Future[NetworkResult]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


class _ProgressBar(Protocol):
    def update(self) -> object: ...


@contextlib.contextmanager
def _progress_bar(shown: bool, total: int, initial: int) -> Iterator[_ProgressBar]:
    # Imported here: tqdm.auto looks for notebook widgets, which costs time at every import.
    from tqdm.auto import tqdm

    with tqdm(total=total, initial=initial, delay=1, disable=not shown, unit="seed") as bar:
        yield bar
