"""Many networks after gradient steps: averages over seeds, the same for any number of workers.

Seed i of a run with entropy `seed` uses ``SeedSequence(seed).spawn(seeds)[i]`` and one BLAS thread,
so more seeds extend a smaller run. Finished seeds can be kept on disk. One network is the business
of :mod:`.one_step_network` and :mod:`.one_step_readout`.
"""

from __future__ import annotations

import concurrent.futures
import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from ..errors import ParameterError
from .arguments import checked_seed, whole_number
from .networks.sizes import memory_of_machine
from .one_step_network import SLICE_ENTRIES, OneStepSetup, first_layers, recorded_steps
from .one_step_readout import QUANTITIES, ReadoutSetup, measure_risks
from .one_step_spectra import MATRICES, check_matrices, layer_spectra
from .sample_stream import progress_bar
from .seed_runs import Job, run_seeds
from .seed_store import SeedStore, store_folder

__all__ = ["Networks", "RunOptions", "simulate_risks", "simulate_spectra"]

Array = NDArray[np.float64]

Prediction = Callable[[Array], Mapping[str, Array]]
"""Takes a first layer, returns for each of its quantities one number for each λ."""

STREAMS_VERSION = 1
"""Raised whenever the same seed gives other numbers than before, so that files do not mix."""

MOST_SEEDS = 100_000
"""A guard against a slip of the finger: every seed is a network."""

REALISED = ("spike_length", "spike_overlap")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How many networks are run, and where.

    Parameters
    ----------
    seeds : int
        Number of networks.
    seed : int
        Entropy of the run, ≥ 0.
    workers : int, optional
        Threads; has no effect on the numbers.
    executor : concurrent.futures.Executor, optional
        Where to run instead of in threads of this process. It is not shut down.
    store : path, optional
        Folder with one file for each finished seed; what is found there is not computed again.
    description : str, optional
        Names what the numbers of a setup do not: its functions. Required with `store`.
    progress : bool, optional
        Show a progress bar on the standard error stream if the run takes longer than a second; by
        default where that is a terminal.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    """

    seeds: int = 10
    seed: int = 0
    workers: int | None = None
    executor: concurrent.futures.Executor | None = None
    store: str | os.PathLike[str] | None = None
    description: str | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", whole_number("seeds", self.seeds))
        if self.seeds > MOST_SEEDS:
            raise ParameterError(f"seeds must be at most {MOST_SEEDS}, got {self.seeds}")
        object.__setattr__(self, "seed", checked_seed(self.seed))
        if self.workers is not None:
            object.__setattr__(self, "workers", whole_number("workers", self.workers))
            if self.executor is not None:
                raise ParameterError(
                    "workers and executor exclude each other; the executor has its own"
                )
        if store_folder(self.store) is not None and not self.description:
            raise ParameterError(
                "store needs a description: it names student and teacher in the file names"
            )

    @property
    def threads(self) -> int:
        """How many networks are held at once."""
        return self.workers or min(self.seeds, os.cpu_count() or 1)

    @property
    def shown(self) -> bool:
        """Whether there is a progress bar."""
        return sys.stderr.isatty() if self.progress is None else bool(self.progress)


@dataclass(frozen=True, slots=True, eq=False)
class Networks:
    """What finished networks gave.

    Attributes
    ----------
    values : dict of str to ndarray
        The first axis of each array is the network, the second the recorded layer, but for
        ``spike_length`` and ``spike_overlap``, (networks,): length of the mean label moment of the
        steps and its component along the teacher.
    steps : tuple of int
        Numbers of steps of the recorded layers.
    completed : tuple of int
        Numbers of the finished seeds, increasing.
    interrupted : bool
        True if the run was interrupted and seeds are missing.
    """

    values: dict[str, Array]
    steps: tuple[int, ...]
    completed: tuple[int, ...]
    interrupted: bool

    def __repr__(self) -> str:
        state = ", interrupted" if self.interrupted else ""
        return f"Networks({len(self.completed)} seeds, {', '.join(self.values)}{state})"


def simulate_risks(
    setup: OneStepSetup,
    readout: ReadoutSetup,
    options: RunOptions | None = None,
    *,
    record: Sequence[int] | None = None,
    prediction: Prediction | None = None,
) -> Networks:
    """Train networks and measure the risks of their readouts.

    Parameters
    ----------
    setup : OneStepSetup
    readout : ReadoutSetup
    options : RunOptions, optional
    record : sequence of int, optional
        Numbers of steps after which a readout is fitted; by default 0 and the last. All readouts of
        one network share their samples.
    prediction : callable, optional
        Takes a first layer (d, N) with the teacher along the first axis, returns a mapping from
        ``risk``, ``training_error`` and ``objective`` to what they are predicted to be for each λ;
        kept under the names ``predicted_…``.

    Returns
    -------
    Networks
        With ``risk``, ``training_error``, ``objective``, shape (networks, layers, n_ridge).

    Raises
    ------
    ParameterError
        If an argument is outside its range, a function returns something else than finite real
        values, or the memory of this machine is too small.
    KeyboardInterrupt
        If interrupted before a seed had finished. Finished ones are in the store nevertheless.

    Examples
    --------
    >>> setup = OneStepSetup(np.tanh, lambda z: 1 - np.tanh(z) ** 2, np.sin, dimension=30,
    ...                      width=45, step_samples=60, step_size=2.0)
    >>> found = simulate_risks(setup, ReadoutSetup(90, [0.01, 0.1]), RunOptions(seeds=3))
    >>> found.values["risk"].shape, bool((found.values["risk"] > 0).all())
    ((3, 2, 2), True)
    """
    options = options or RunOptions()
    steps = recorded_steps(setup, record)
    exact = readout.covariances is not None
    _check_memory(setup, readout.samples, len(steps), options, 6 * setup.width**2 * exact)
    kept = QUANTITIES + (tuple(f"predicted_{name}" for name in QUANTITIES) if prediction else ())
    shape = (len(steps), len(readout.ridges))
    return _run(
        functools.partial(_risks_of_seed, setup, readout, steps, prediction, options.seed),
        setup,
        {name: shape for name in kept},
        {"kind": "risks", **readout.identity(), "predicted": prediction is not None},
        steps,
        options,
    )


def simulate_spectra(
    setup: OneStepSetup,
    samples: int,
    options: RunOptions | None = None,
    *,
    matrices: Sequence[str] = MATRICES,
    record: Sequence[int] | None = None,
) -> Networks:
    """Train networks and return the spectra of :func:`.one_step_spectra.layer_spectra`.

    Parameters
    ----------
    setup : OneStepSetup
    samples : int
        n of the kernels.
    options : RunOptions, optional
    matrices : sequence of str
        Of "weights", "kernel" and "linearised".
    record : sequence of int, optional
        Numbers of steps; by default 0 and the last.

    Raises
    ------
    ParameterError, KeyboardInterrupt
        As for :func:`simulate_risks`.

    Examples
    --------
    >>> setup = OneStepSetup(np.tanh, lambda z: 1 - np.tanh(z) ** 2, np.sin, dimension=30,
    ...                      width=45, step_samples=60, step_size=2.0)
    >>> found = simulate_spectra(setup, 60, RunOptions(seeds=2), matrices=["weights"])
    >>> found.values["singular_values"].shape
    (2, 2, 30)
    """
    options = options or RunOptions()
    check_matrices(matrices)
    samples = whole_number("samples", samples)
    steps = recorded_steps(setup, record)
    _check_memory(setup, samples, len(steps), options)
    shapes: dict[str, tuple[int, ...]] = {}
    for matrix, values, cosines in (
        ("weights", "singular_values",
         ("teacher_alignment", "spike_alignment", "readout_alignment")),
        ("kernel", "kernel_eigenvalues", ("label_alignment",)),
        ("linearised", "linearised_eigenvalues", ("linearised_label_alignment",)),
    ):  # fmt: skip
        if matrix in matrices:
            modes = min(setup.dimension, setup.width) if matrix == "weights" else samples
            shapes |= {values: (len(steps), modes), **{name: (len(steps),) for name in cosines}}
    return _run(
        functools.partial(_spectra_of_seed, setup, samples, steps, tuple(matrices), options.seed),
        setup,
        shapes,
        {"kind": "spectra", "samples": samples},
        steps,
        options,
    )


def _run(
    job: Job[dict[str, Array]], setup: OneStepSetup, shapes: dict[str, tuple[int, ...]],
    key: dict[str, object], steps: tuple[int, ...], options: RunOptions,
) -> Networks:  # fmt: skip
    shapes = {**shapes, **{name: () for name in REALISED}}
    keeper = None
    folder = store_folder(options.store)
    if folder is not None:
        key = {
            **setup.identity(), **key, "streams_version": STREAMS_VERSION, "steps": list(steps),
            "description": options.description, "seed": options.seed, "arrays": sorted(shapes),
        }  # fmt: skip
        keeper = SeedStore(folder, key, shapes)
    results: dict[int, dict[str, Array]] = {}
    if keeper is not None:
        for index in range(options.seeds):
            stored = keeper.load(index)
            if stored is not None:
                results[index] = stored
    missing = [index for index in range(options.seeds) if index not in results]
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        progress_bar(options.shown, len(missing), "network") as bar,
    ):

        def collect(index: int, found: dict[str, Array]) -> None:
            # Saved first: an interrupt in between makes it be collected again, not lost.
            if keeper is not None:
                keeper.save(index, found)
            results[index] = found
            bar.update()

        interrupted = run_seeds(
            job, missing, collect, workers=options.workers, executor=options.executor
        )
    if not results:
        raise KeyboardInterrupt
    completed = tuple(sorted(results))
    values = {name: np.stack([results[index][name] for index in completed]) for name in shapes}
    return Networks(values, steps, completed, interrupted)


def _risks_of_seed(
    setup: OneStepSetup, readout: ReadoutSetup, steps: tuple[int, ...],
    prediction: Prediction | None, seed: int, index: int, checkpoint: Callable[[], None] | None,
) -> dict[str, Array]:  # fmt: skip
    child = np.random.SeedSequence(seed, spawn_key=(index,))
    layers = first_layers(setup, child, record=steps, checkpoint=checkpoint)
    weights = list(layers.weights.values())
    found = measure_risks(setup, weights, readout, child, checkpoint)
    if prediction is not None:
        predicted = [prediction(layer) for layer in weights]
        for name in QUANTITIES:
            found[f"predicted_{name}"] = np.stack([row[name] for row in predicted])
    return {**found, **_realised(layers.label_moments)}


def _spectra_of_seed(
    setup: OneStepSetup, samples: int, steps: tuple[int, ...], matrices: tuple[str, ...],
    seed: int, index: int, checkpoint: Callable[[], None] | None,
) -> dict[str, Array]:  # fmt: skip
    child = np.random.SeedSequence(seed, spawn_key=(index,))
    layers = first_layers(setup, child, record=steps, checkpoint=checkpoint)
    found = layer_spectra(
        setup, layers, child, matrices=matrices, samples=samples, checkpoint=checkpoint
    )
    return {**found, **_realised(layers.label_moments)}


def _realised(moments: Array) -> dict[str, Array]:
    mean = moments.mean(axis=0) if len(moments) else np.zeros(moments.shape[1])
    return dict(zip(REALISED, (np.linalg.norm(mean), mean[0]), strict=True))  # type: ignore[arg-type]


def _check_memory(
    setup: OneStepSetup, samples: int, layers: int, options: RunOptions, more: int = 0
) -> None:
    """Refuse networks that do not fit into the memory of this machine, so many at a time."""
    weights, features = setup.dimension * setup.width, samples * setup.width
    small = min(samples, setup.width)
    # Features with both sets of singular vectors; hidden activations, slopes, their product.
    entries = (
        (layers + 3) * weights
        + setup.steps * setup.dimension
        + more
        + 2 * features
        + 3 * small * (samples + setup.width) // 2
    )
    needed = 8 * options.threads * (entries + 4 * SLICE_ENTRIES)
    there = memory_of_machine()
    if needed > there:
        raise ParameterError(
            f"dimension={setup.dimension}, width={setup.width} and {samples} samples need "
            f"{needed / 1e9:.3g} GB of memory with {options.threads} workers, this machine has "
            f"{there / 1e9:.3g} GB\n  use a smaller dimension, or fewer workers"
        )
