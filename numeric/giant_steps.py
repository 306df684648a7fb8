r"""Several giant gradient steps of finite networks: what their first layers learn, step by step.

Of each network, :mod:`.giant_step_network`, the weights inside the target's coordinates are
measured after every step, in three parts: the rows themselves ("weights"), the rows minus their
start ("updates"), and what the updates of neurons with equal readout and bias have in common
("shared"), in which fluctuations of the start, of order :math:`d^{-1/2}`, drop out. Each part has
a noise floor: the same measurement in directions on which the target does not depend.

Seed i of a run with entropy `seed` uses ``SeedSequence(seed).spawn(seeds)[i]`` and one BLAS
thread, so the numbers are the same to the last bit for any number of workers, and more seeds
extend a smaller run.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import threadpoolctl
from numpy.typing import ArrayLike, NDArray

from ..errors import ParameterError
from .arguments import MOST_SEEDS, checked_seed, whole_number
from .giant_step_network import GiantStepsNetwork
from .giant_step_setup import PARTS, GiantStepsSetup, check_memory, memory_of_machine
from .replicates import Replicates
from .sample_stream import progress_bar
from .seed_runs import run_seeds
from .seed_store import SeedStore, store_folder

__all__ = ["PARTS", "GiantStepsResult", "GiantStepsSetup", "take_giant_steps"]

Array = NDArray[np.float64]

"""Networks of a run at most: each keeps its neurons in memory."""

STREAMS_VERSION = 1
"""Raised whenever the same seed gives other numbers than before, so that files do not mix."""

ORTHONORMALITY = 1e-8
"""Largest deviation of the Gram matrix of directions from the identity."""


@dataclass(frozen=True, slots=True, eq=False)
class GiantStepsResult(Replicates):
    """What the finished networks learned; first indices are networks, second ones times 0..T.

    Attributes
    ----------
    readout, biases : ndarray, shape (seeds, p)
        What was drawn.
    overlaps : ndarray, shape (seeds, T + 1, p, r)
        Weights in the target's coordinates.
    squared_norms : ndarray, shape (seeds, T + 1, p)
        Squared norms of the rows.
    grams : ndarray, shape (seeds, T + 1, 3, 1 + blocks, r, r)
        For each of the parts, means over neurons of products of two coordinates: the target's
        first, then sets of as many on which the target does not depend.
    floors : ndarray, shape (seeds, T + 1, 3)
        For each of the parts, the root mean square in one direction outside.
    excess : ndarray, shape (seeds, T + 1, r, r)
        Mean products of two of the target's coordinates, weighted with the squared residuals of
        the step that led to this time, over the mean of these: by so much noise has more variance
        along the target's coordinates than outside, where this is the identity.
    test_error, ridge : ndarray, shape (seeds,)
        Of the final ridge regression: mean squared error against the noise-free target, and the
        penalty; 0 without one.
    completed : tuple of int
        Numbers of the finished seeds, increasing.
    interrupted : bool
        True if the run was interrupted and seeds are missing.
    """

    readout: Array
    biases: Array
    overlaps: Array
    squared_norms: Array
    grams: Array
    floors: Array
    excess: Array
    test_error: Array
    ridge: Array
    completed: tuple[int, ...]
    interrupted: bool

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the arrays with one row for each network."""
        return ("test_error", "ridge", "overlaps", "squared_norms", "grams", "floors", "excess")

    @property
    def has_shared(self) -> bool:
        """Whether some neurons have equal readouts and biases, so that "shared" is measured."""
        return bool(self.floors[:, -1, PARTS.index("shared")].any())

    def projections(self, directions: ArrayLike, part: str = "weights") -> Array:
        """Return the root mean square over neurons along each direction.

        Parameters
        ----------
        directions : array_like, shape (m, r)
            Orthonormal rows in the target's coordinates.
        part : {"weights", "updates", "shared"}
            What is projected. Values of "shared" come from estimates of squares, which scatter
            around 0 where nothing is shared; negative ones are returned as 0.

        Returns
        -------
        ndarray, shape (seeds, T + 1, m)
        """
        rows = self._checked(directions)
        squares = np.einsum("ki,stij,kj->stk", rows, self._part(part)[:, :, 0], rows)
        return np.asarray(np.sqrt(np.maximum(squares, 0)))

    def singular_values(self, directions: ArrayLike, part: str = "weights") -> Array:
        r"""Return the singular values, divided by √p, of the part inside a subspace.

        Parameters
        ----------
        directions : array_like, shape (m, r)
            Orthonormal rows that span it.
        part : {"weights", "updates", "shared"}

        Returns
        -------
        ndarray, shape (seeds, T + 1, m)
            Decreasing.
        """
        rows = self._checked(directions)
        return _singular_values(rows @ self._part(part)[:, :, 0] @ rows.T)

    def noise_singular_values(self, count: int, part: str = "weights") -> Array:
        """Return singular values in `count` directions on which the target does not depend.

        Parameters
        ----------
        count : int
            Dimension of the subspace, at most r.
        part : {"weights", "updates", "shared"}

        Returns
        -------
        ndarray, shape (seeds, T + 1, count)
            Root mean squares over several such subspaces, decreasing.
        """
        count = whole_number("count", count)
        if count > self.overlaps.shape[-1]:
            raise ParameterError(f"count must be at most {self.overlaps.shape[-1]}, got {count}")
        blocks = self._part(part)[:, :, 1:, :count, :count]
        return np.asarray(np.sqrt((_singular_values(blocks) ** 2).mean(axis=2)))

    def noise_floor(self, part: str = "weights") -> Array:
        """Return the root mean square in one direction outside, shape (seeds, T + 1)."""
        self._part(part)
        return np.asarray(self.floors[:, :, PARTS.index(part)])

    def noise_along(self, directions: ArrayLike, part: str = "weights") -> Array:
        """Return the noise floor along directions of the target, shape (seeds, T + 1, m).

        Inputs on which labels depend have more noise in their gradients; of the steps so far, the
        one with the largest excess counts. The start of the weights has none.
        """
        rows = self._checked(directions)
        excess = np.einsum("ki,stij,kj->stk", rows, self.excess, rows)
        largest = np.maximum.accumulate(np.maximum(excess, 1), axis=1)
        floor = self.noise_floor(part)[:, :, None]
        updates = self.noise_floor("updates")[:, :, None] if part == "weights" else floor
        return np.asarray(np.sqrt(floor**2 + (largest - 1) * updates**2))

    def _part(self, part: str) -> Array:
        if part not in PARTS:
            raise ParameterError(f"part must be one of {', '.join(PARTS)}; got {part!r}")
        if part == "shared" and not self.has_shared:
            raise ParameterError(
                "nothing is shared: no two neurons have the same readout and bias\n"
                "  use replicas >= 2, or few readout values"
            )
        return np.asarray(self.grams[:, :, PARTS.index(part)])

    def _checked(self, directions: ArrayLike) -> Array:
        rows = np.asarray(directions)
        r = self.overlaps.shape[-1]
        if rows.ndim != 2 or rows.shape[1] != r or rows.dtype.kind not in "fiu":
            raise ParameterError(
                f"directions must be rows of {r} numbers, got {rows.dtype} of shape {rows.shape}"
            )
        if not np.allclose(rows @ rows.T, np.eye(len(rows)), rtol=0, atol=ORTHONORMALITY):
            raise ParameterError("directions must be orthonormal rows")
        return rows.astype(np.float64)

    def __repr__(self) -> str:
        state = ", interrupted" if self.interrupted else ""
        seeds, times, width, _ = self.overlaps.shape
        return f"GiantStepsResult({seeds} networks of {width} neurons, {times - 1} steps{state})"


def take_giant_steps(
    setup: GiantStepsSetup,
    *,
    seeds: int = 5,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = True,
    store: str | os.PathLike[str] | None = None,
    description: str | None = None,
) -> GiantStepsResult:
    """Train networks by giant steps, each on samples of its own, and measure them.

    Parameters
    ----------
    setup : GiantStepsSetup
    seeds : int
        Number of networks.
    seed : int
        Entropy of the run, >= 0; fixes all numbers.
    workers : int, optional
        Threads; by default one for each seed, at most one for each processor and as many as fit
        into the memory. Has no effect on the numbers.
    progress : bool
        Show a progress bar on the standard error stream if the run takes longer than a second.
    store : path, optional
        Folder with one file for each finished seed, and one for each seed that was stopped after
        some of its steps. What is found there is not computed again; damaged files are.
    description : str, optional
        Names what the numbers of `setup` do not: student and target. Required with `store`.

    Returns
    -------
    GiantStepsResult
        All seeds, or after a keyboard interrupt those that had finished, if at least two.

    Raises
    ------
    ParameterError
        If an argument is outside its range, a function returns a wrong shape or a value that is
        not finite, the weights overflow, or the memory of this machine is too small.
    KeyboardInterrupt
        If interrupted before two seeds had finished. What is done is in `store` nevertheless.

    Examples
    --------
    Of x1 + He2(x1) x2, x1 is learned by the first step and x2 by the second:

    >>> setup = GiantStepsSetup(np.tanh, lambda u: 1 / np.cosh(u) ** 2,
    ...                         lambda x: x[:, 0] + (x[:, 0] ** 2 - 1) * x[:, 1], variables=2,
    ...                         dimension=100, samples=20_000, width=40, steps=2, rate=1.5)
    >>> result = take_giant_steps(setup, seeds=3)
    >>> learned = result.projections([[1, 0], [0, 1]]).mean(axis=0) > 0.2
    >>> learned.tolist()
    [[False, False], [True, False], [True, True]]
    """
    if not isinstance(setup, GiantStepsSetup):
        raise ParameterError(f"setup must be a GiantStepsSetup, not {type(setup).__name__}")
    seeds = whole_number("seeds", seeds, maximum=MOST_SEEDS)
    seed = checked_seed(seed)
    if workers is not None:
        workers = whole_number("workers", workers)
    elif (room := memory_of_machine() // setup.bytes_needed) < seeds:
        workers = min(max(room, 1), os.cpu_count() or 1)
    check_memory(setup, workers or 1)
    keeper = None
    folder = store_folder(store)
    if folder is not None:
        if not description:
            raise ParameterError(
                "store needs a description: it names student and target in the file names"
            )
        keeper = _Keeper(folder, setup, seed, description)

    results: dict[int, dict[str, Array]] = {}
    if keeper is not None:
        for index in range(seeds):
            stored = keeper.finished.load(index)
            if stored is not None:
                results[index] = stored
    missing = [index for index in range(seeds) if index not in results]
    lock = threading.Lock()
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        progress_bar(progress, len(missing) * setup.drawn_samples, "sample") as bar,
    ):

        def advance(samples: int) -> None:
            with lock:
                bar.update(samples)

        def collect(index: int, arrays: dict[str, Array]) -> None:
            # Saved first: an interrupt in between makes it be collected again, not lost.
            if keeper is not None:
                keeper.finished.save(index, arrays)
                keeper.unfinished.discard(index)
            results[index] = arrays

        job = functools.partial(_one_network, setup, seed, keeper, advance)
        interrupted = run_seeds(job, missing, collect, workers=workers)
    if interrupted and len(results) < 2:
        raise KeyboardInterrupt
    completed = tuple(sorted(results))
    arrays = {
        name: np.array([results[index][name] for index in completed]) for name in setup.shapes
    }
    errors = arrays.pop("errors")
    return GiantStepsResult(
        **arrays,
        test_error=errors[:, 0],
        ridge=errors[:, 1],
        completed=completed,
        interrupted=interrupted,
    )


def _one_network(
    setup: GiantStepsSetup,
    seed: int,
    keeper: _Keeper | None,
    advance: Callable[[int], None],
    index: int,
    checkpoint: Callable[[], None] | None,
) -> dict[str, Array]:
    # What SeedSequence(seed).spawn(index + 1)[index] returns.
    child = np.random.SeedSequence(seed, spawn_key=(index,))
    network = GiantStepsNetwork(setup, child, checkpoint or (lambda: None), advance)
    record = {name: np.zeros(shape) for name, shape in setup.shapes.items()}
    record |= {"readout": network.readout, "biases": network.biases}

    def measure(time: int) -> None:
        for name, values in network.measurements().items():
            record[name][time] = values

    done = 0
    stopped = keeper.unfinished.load(index) if keeper is not None else None
    if stopped is not None:
        done = int(stopped.pop("steps_done"))
        network.weights[:] = stopped.pop("weights")
        record = stopped
        advance(done * setup.drawn_samples_of_a_step)
    else:
        measure(0)
    for step in range(done, setup.steps):
        network.step(step)
        measure(step + 1)
        if keeper is not None:
            state = {"steps_done": np.array(step + 1.0), "weights": network.weights}
            keeper.unfinished.save(index, record | state)
    if setup.ridge_samples:
        record["errors"] = network.ridge_readout()
    return record


class _Keeper:
    """Finished networks on disk, and unfinished ones with their weights."""

    def __init__(self, folder: Path, setup: GiantStepsSetup, seed: int, description: str) -> None:
        functions = ("student", "student_derivative", "target")
        key: dict[str, object] = {
            name: getattr(setup, name) for name in setup.__slots__ if name not in functions
        }
        key |= {
            "kind": "giant steps",
            "streams_version": STREAMS_VERSION,
            # It stands for the functions, whose values cannot be hashed.
            "description": description,
            "seed": seed,
        }
        self.finished = SeedStore(folder, key, setup.shapes)
        state = {"steps_done": (), "weights": (setup.width, setup.dimension)}
        self.unfinished = SeedStore(folder, key | {"kind": "stopped"}, setup.shapes | state)


def _singular_values(grams: Array) -> Array:
    """Roots of eigenvalues, decreasing; estimates of squares may be negative and count as 0."""
    symmetric = (grams + grams.swapaxes(-1, -2)) / 2
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(symmetric)[..., ::-1], 0)))
