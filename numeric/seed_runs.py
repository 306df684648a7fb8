"""Independent seeds in threads or in an executor: collected as they finish, also when interrupted.

BLAS has to be held to one thread by the caller, for all workers at once: OpenBLAS has one limit
for the process, and the first run to end would give the others their threads back, which changes
the last bits.
"""

from __future__ import annotations

import concurrent.futures
import os
import threading
from collections.abc import Callable, Iterable
from typing import Protocol, Self, TypeVar

from ..errors import ParameterError

__all__ = ["Job", "run_seeds"]

Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")


class Job(Protocol[Result_co]):
    """Computes one seed; calls `checkpoint` often, which raises when the run is abandoned."""

    def __call__(self, index: int, checkpoint: Callable[[], None] | None) -> Result_co: ...


def run_seeds(
    job: Job[Result],
    indices: Iterable[int],
    collect: Callable[[int, Result], None],
    *,
    workers: int | None = None,
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
    workers : int, optional
        Threads; by default one for each seed, at most one for each processor.
    executor : concurrent.futures.Executor, optional
        Where to run instead of in threads of our own. It is not shut down.

    Returns
    -------
    bool
        Whether the run was interrupted from the keyboard. What had finished has been collected.
    """
    wanted = list(indices)
    with _Workers(executor, workers, len(wanted)) as pool:
        futures: dict[concurrent.futures.Future[Result], int] = {}
        collected: set[int] = set()

        def take(future: concurrent.futures.Future[Result]) -> None:
            collect(futures[future], future.result())
            collected.add(futures[future])

        try:
            for index in wanted:
                futures[pool.submit(job, index)] = index
            for future in concurrent.futures.as_completed(futures):
                take(future)
        except KeyboardInterrupt:
            pool.stop(futures)
            for future, index in futures.items():
                if index not in collected and _succeeded(future):
                    take(future)
            return True
        except MemoryError as error:
            pool.stop(futures)
            raise ParameterError(
                f"the networks do not fit into memory ({error}); take a smaller dimension, alpha, "
                "alpha0 or beta, or fewer workers"
            ) from None
        except BaseException:
            pool.stop(futures)
            raise
    return False


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

    def submit(self, job: Job[Result], index: int) -> concurrent.futures.Future[Result]:
        """Start seed `index`."""
        # An event cannot be sent to another process; runs there finish.
        return self._executor.submit(job, index, self._check if self._own else None)

    def stop(self, futures: Iterable[concurrent.futures.Future[Result]]) -> None:
        """Cancel what has not begun and, in threads of our own, what has."""
        self._abandoned.set()
        for future in futures:
            future.cancel()

    def _check(self) -> None:
        if self._abandoned.is_set():
            raise _Abandoned


def _succeeded(future: concurrent.futures.Future[Result]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
