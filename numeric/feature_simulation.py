"""Many first layers of finite size, given or trained by one step: averages over seeds, resumable.

Seed i of a run with entropy `seed` uses ``SeedSequence(seed).spawn(seeds)[i]`` and one BLAS thread,
so the numbers are the same to the last bit for any number of workers, and more seeds extend a
smaller run. One layer is the business of :mod:`.feature_readouts`.
"""

from __future__ import annotations

import concurrent.futures
import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from ..errors import ParameterError
from .arguments import MOST_SEEDS, checked_seed, positive_array, positive_number, whole_number
from .conditional_prediction import ConditionalPrediction
from .feature_losses import SQUARE, Loss, require_loss
from .feature_network import SteppedNetwork
from .feature_readouts import ERRORS, OVERLAPS, REALISED, TrainedFeatures, train_readouts
from .feature_setup import FeatureSetup
from .networks.sizes import sample_count
from .replicates import Replicates
from .sample_stream import progress_bar
from .seed_runs import run_seeds
from .seed_store import SeedStore, store_folder

__all__ = ["FeatureSimulation", "simulate_features"]

Array = NDArray[np.float64]
Setup = FeatureSetup | SteppedNetwork

STREAMS_VERSION = 1
"""Raised whenever the same seed gives other numbers than before, so that files do not mix."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureSimulation(Replicates):
    r"""What finished layers achieved; the first axis of each array is the layer, then alpha.

    Bulk rows b of class a have squared norm :math:`c_a` here. Axes K are classes, k spike
    directions, r directions of the teacher.

    Attributes
    ----------
    alpha : ndarray, shape (n_alpha,)
    test_error : ndarray, shape (n, n_alpha)
        Regression: mean squared error against the noise-free target. Classification: share of
        fresh labels, noise included, with the wrong sign.
    training_error : ndarray, shape (n, n_alpha)
        The same with the labels of the training set.
    test_loss, training_loss : ndarray, shape (n, n_alpha)
        Mean loss of fresh labels, noise included, and of those of the training set.
    objective : ndarray, shape (n, n_alpha)
        :math:`\frac1n[\sum\ell + \frac\lambda2|w|^2]` at the minimum.
    certificate : ndarray, shape (n, n_alpha)
        Upper bound of (objective − minimum)/objective; zero for ridge regression.
    m : ndarray, shape (n, n_alpha, K)
    theta : ndarray, shape (n, n_alpha, k, K)
    psi : ndarray, shape (n, n_alpha, r, K)
    q1 : ndarray, shape (n, n_alpha, K, K)
    q2 : ndarray, shape (n, n_alpha, K)
        See :meth:`.feature_rows.FirstLayer.overlaps`.
    spike_strength : ndarray, shape (n, K, k)
    bulk_variance : ndarray, shape (n, K)
    alignment : ndarray, shape (n, k, r)
        Realised r, c and γ.
    completed : tuple of int
        Numbers of the finished seeds, increasing.
    interrupted : bool
        True if the run was interrupted and seeds are missing.
    """

    alpha: Array
    test_error: Array
    training_error: Array
    test_loss: Array
    training_loss: Array
    objective: Array
    certificate: Array
    m: Array
    theta: Array
    psi: Array
    q1: Array
    q2: Array
    spike_strength: Array
    bulk_variance: Array
    alignment: Array
    completed: tuple[int, ...]
    interrupted: bool

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the arrays with one row for each layer."""
        return ERRORS + OVERLAPS + REALISED

    def __repr__(self) -> str:
        state = ", interrupted" if self.interrupted else ""
        return f"FeatureSimulation({len(self.completed)} seeds, {len(self.alpha)} alpha{state})"


def simulate_features(
    setup: Setup,
    alpha: float | Sequence[float],
    *,
    ridge: float,
    loss: Loss = SQUARE,
    seeds: int = 10,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = True,
    n_test: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    description: str | None = None,
    prediction: ConditionalPrediction | Sequence[ConditionalPrediction] | None = None,
) -> FeatureSimulation:
    """Draw a first layer for each seed, fit its readouts and collect what they achieve.

    Parameters
    ----------
    setup : FeatureSetup or SteppedNetwork
    alpha : float or sequence of float
        Samples of the readout divided by the dimension, in any order; the samples are nested.
    ridge : float
        λ > 0: half of it times the squared norm of the readout is added to the sum of losses.
    loss : Loss
        One of :mod:`.feature_losses`; the square loss by default.
    seeds : int
        Number of layers.
    seed : int
        Entropy of the run, >= 0.
    workers : int, optional
        Threads; has no effect on the numbers.
    progress : bool
        Show a progress bar on the standard error stream if the run takes longer than a second.
    n_test : int, optional
        Fresh samples; max(10000, 10 d) by default.
    executor : concurrent.futures.Executor, optional
        Where to run instead of in threads of this process. It is not shut down.
    store : path, optional
        Folder with one file for each finished seed; what is found there is not computed again.
    description : str, optional
        Names what the numbers of `setup` do not: its functions. Required with `store`.
    prediction : ConditionalPrediction or sequence of them, optional
        One for each alpha: reduces the scatter of test and training error.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    ConvergenceError
        If a readout cannot be found to a relative accuracy of 1e-8 of its objective.
    KeyboardInterrupt
        If interrupted before two seeds had finished. Finished ones are in `store` nevertheless.

    Examples
    --------
    >>> from giantstep.numeric.feature_setup import FeatureClass
    >>> setup = FeatureSetup(np.tanh, np.sign, FeatureClass(spike=1.2), 0.9, dimension=50,
    ...                      labels="sign")
    >>> from giantstep.numeric.feature_losses import smooth_loss
    >>> squared_hinge = smooth_loss(
    ...     lambda y, x: np.maximum(0, 1 - y * x) ** 2 / 2,
    ...     lambda y, x: -y * np.maximum(0, 1 - y * x),
    ...     name="squared hinge", binary=True,
    ... )
    >>> found = simulate_features(setup, [1, 2], ridge=0.1, loss=squared_hinge, seeds=3)
    >>> found.test_error.shape, bool(found.certificate.max() < 1e-8)
    ((3, 2), True)
    """
    if not isinstance(setup, FeatureSetup | SteppedNetwork):
        raise ParameterError(
            f"setup must be a FeatureSetup or a SteppedNetwork, not {type(setup).__name__}"
        )
    ratios = tuple(positive_array("alpha", alpha).tolist())
    ridge, seeds = positive_number("ridge", ridge), whole_number("seeds", seeds, maximum=MOST_SEEDS)
    seed, loss = checked_seed(seed), require_loss(loss)
    counts = [sample_count("alpha", ratio, setup.dimension) for ratio in ratios]
    sizes, order = np.unique(counts, return_inverse=True)
    n_test = max(10_000, 10 * setup.dimension) if n_test is None else whole_number("n_test", n_test)
    predictions = _sorted_predictions(prediction, setup, len(ratios), order, len(sizes))
    if workers is not None:
        workers = whole_number("workers", workers)
        if executor is not None:
            raise ParameterError(
                "workers and executor exclude each other; the executor has its own"
            )
    job = functools.partial(
        _one_seed, setup, sizes.tolist(), ridge, loss, n_test, predictions, seed
    )
    keeper = None
    folder = store_folder(store)
    if folder is not None:
        if not description:
            raise ParameterError(
                "store needs a description: it names student and teacher in the file names"
            )
        key = {
            **setup.identity(),
            "streams_version": STREAMS_VERSION,
            "description": description,
            "sizes": sizes.tolist(),
            "ridge": ridge,
            "loss": loss.name,
            "n_test": n_test,
            "seed": seed,
            "predictions": [p.digest for p in predictions or ()],
        }
        keeper = SeedStore(folder, key, _shapes(setup, len(sizes)))
    results: dict[int, dict[str, Array]] = {}
    if keeper is not None:
        for index in range(seeds):
            stored = keeper.load(index)
            if stored is not None:
                results[index] = stored
    missing = [index for index in range(seeds) if index not in results]
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        progress_bar(progress, len(missing), "seed") as bar,
    ):

        def collect(index: int, found: TrainedFeatures) -> None:
            # Saved first: an interrupt in between makes it be collected again, not lost.
            if keeper is not None:
                keeper.save(index, found.values)
            results[index] = found.values
            bar.update()

        interrupted = run_seeds(job, missing, collect, workers=workers, executor=executor)
    if interrupted and len(results) < 2:
        raise KeyboardInterrupt
    completed = tuple(sorted(results))
    stacked = {
        name: np.stack([results[index][name] for index in completed])
        for name in ERRORS + OVERLAPS + REALISED
    }
    for name in ERRORS + OVERLAPS:
        stacked[name] = stacked[name][:, order]
    return FeatureSimulation(
        alpha=np.array(ratios), completed=completed, interrupted=interrupted, **stacked
    )


def _one_seed(
    setup: Setup,
    sizes: list[int],
    ridge: float,
    loss: Loss,
    n_test: int,
    predictions: Sequence[ConditionalPrediction] | None,
    seed: int,
    index: int,
    checkpoint: Callable[[], None] | None,
) -> TrainedFeatures:
    # Executors run this in processes of their own, with BLAS threads of their own.
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        return train_readouts(
            setup,
            sizes,
            ridge=ridge,
            loss=loss,
            n_test=n_test,
            # What SeedSequence(seed).spawn(index + 1)[index] returns.
            seed=np.random.SeedSequence(seed, spawn_key=(index,)),
            predictions=predictions,
            checkpoint=checkpoint,
        )


def _sorted_predictions(
    given: object, setup: Setup, count: int, order: NDArray[np.intp], sizes: int
) -> list[ConditionalPrediction] | None:
    """Return a prediction for each size."""
    if given is None:
        return None
    found = [given] if isinstance(given, ConditionalPrediction) else given
    if not isinstance(found, Sequence) or len(found) != count:
        raise ParameterError(f"prediction must hold one ConditionalPrediction for {count} alpha")
    for item in found:
        if not isinstance(item, ConditionalPrediction):
            raise ParameterError(f"prediction must be ConditionalPrediction, got {item!r}")
    if setup.spike_directions != 1:
        raise ParameterError("prediction is for one spike direction; leave it out")
    return [found[int(np.flatnonzero(order == k)[0])] for k in range(sizes)]


def _shapes(setup: Setup, sizes: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays of one seed."""
    classes, spikes = len(setup.fractions), setup.spike_directions
    teachers = setup.teacher_directions
    return {
        **{name: (sizes,) for name in ERRORS},
        "m": (sizes, classes),
        "theta": (sizes, spikes, classes),
        "psi": (sizes, teachers, classes),
        "q1": (sizes, classes, classes),
        "q2": (sizes, classes),
        "spike_strength": (classes, spikes),
        "bulk_variance": (classes,),
        "alignment": (spikes, teachers),
    }
