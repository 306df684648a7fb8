"""Many networks of finite size: averages over seeds, in parallel, resumable.

Seed i of a run with entropy `seed` uses ``SeedSequence(seed).spawn(seeds)[i]`` and one BLAS thread,
so the numbers are the same to the last bit for any number of workers, and more seeds extend a
smaller run. One network is the business of :mod:`giantstep.numeric.networks`.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from ..errors import ParameterError
from .arguments import MOST_SEEDS, checked_seed, whole_number
from .plain_network import (
    NetworkResult,
    NetworkSetup,
    check_readout,
    simulate_network,
)
from .replicates import Replicates
from .seed_runs import run_seeds
from .seed_store import SeedStore, store_folder

__all__ = ["NetworkSetup", "SimulationResult", "simulate", "simulate_network"]

Array = NDArray[np.float64]
QUANTITIES = ("test_error", "training_error", "spike_strength", "bulk_variance", "alignment")

STREAMS_VERSION = 1
"""Raised whenever the same seed gives other numbers than before, so that files do not mix."""


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
    seeds = whole_number("seeds", seeds, maximum=MOST_SEEDS)
    seed = checked_seed(seed)
    if workers is not None:
        workers = whole_number("workers", workers)
        if executor is not None:
            raise ParameterError(
                "workers and executor exclude each other; the executor has its own"
            )
    keeper = None
    folder = store_folder(store)
    if folder is not None:
        if not description:
            raise ParameterError(
                "store needs a description: it names student and teacher in the file names"
            )
        keeper = _Keeper(folder, setup, ratios, ridge, n_test, seed, description)

    results: dict[int, NetworkResult] = {}
    if keeper is not None:
        for index in range(seeds):
            stored = keeper.load(index)
            if stored is not None:
                results[index] = stored
    missing = [index for index in range(seeds) if index not in results]
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        _progress_bar(progress, seeds, len(results)) as bar,
    ):

        def collect(index: int, result: NetworkResult) -> None:
            # Saved first: an interrupt in between makes it be collected again, not lost.
            if keeper is not None:
                keeper.save(index, result)
            results[index] = result
            bar.update()

        job = functools.partial(_one_seed, setup, ratios, ridge, n_test, seed)
        interrupted = run_seeds(job, missing, collect, workers=workers, executor=executor)
    if interrupted and len(results) < 2:
        raise KeyboardInterrupt
    completed = tuple(sorted(results))
    rows = [results[index] for index in completed]
    return SimulationResult(
        alpha=np.array(ratios),
        **{name: np.array([getattr(row, name) for row in rows]) for name in QUANTITIES},
        completed=completed,
        interrupted=interrupted,
    )


def _one_seed(
    setup: NetworkSetup,
    alpha: tuple[float, ...],
    ridge: float,
    n_test: int,
    seed: int,
    index: int,
    checkpoint: Callable[[], None] | None,
) -> NetworkResult:
    return simulate_network(
        setup,
        alpha,
        ridge=ridge,
        # What SeedSequence(seed).spawn(index + 1)[index] returns.
        seed=np.random.SeedSequence(seed, spawn_key=(index,)),
        n_test=n_test,
        checkpoint=checkpoint,
    )


class _Keeper:
    """Results of seeds as arrays in a :class:`.SeedStore`."""

    def __init__(
        self,
        folder: Path,
        setup: NetworkSetup,
        alpha: tuple[float, ...],
        ridge: float,
        n_test: int,
        seed: int,
        description: str,
    ) -> None:
        self._files = SeedStore(
            folder,
            {
                "streams_version": STREAMS_VERSION,
                # It stands for the functions in `setup`, whose values cannot be hashed.
                "description": description,
                "step_size": setup.step_size,
                "alpha0": setup.alpha0,
                "beta": setup.beta,
                "noise_variance": setup.noise_variance,
                "dimension": setup.dimension,
                "alpha": alpha,
                "ridge": ridge,
                "n_test": n_test,
                "seed": seed,
            },
            {"errors": (2, len(alpha)), "realised": (3,)},
        )

    def load(self, index: int) -> NetworkResult | None:
        stored = self._files.load(index)
        if stored is None:
            return None
        return NetworkResult(*stored["errors"], *stored["realised"].tolist())

    def save(self, index: int, result: NetworkResult) -> None:
        realised = [result.spike_strength, result.bulk_variance, result.alignment]
        self._files.save(
            index,
            {
                "errors": np.stack([result.test_error, result.training_error]),
                "realised": np.array(realised),
            },
        )


class _ProgressBar(Protocol):
    def update(self) -> object: ...


@contextlib.contextmanager
def _progress_bar(shown: bool, total: int, initial: int) -> Iterator[_ProgressBar]:
    # Imported here: tqdm.auto looks for notebook widgets, which costs time at every import.
    from tqdm.auto import tqdm

    with tqdm(total=total, initial=initial, delay=1, disable=not shown, unit="seed") as bar:
        yield bar
