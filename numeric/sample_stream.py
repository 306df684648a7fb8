r"""Gaussian inputs with labels, block by block, for targets of a few coordinates.

Labels are :math:`y = f(x_1, \dots, x_r) + \sqrt\Delta\,\xi`. Each block has a random stream of its
own, so samples that are not kept can be drawn again, and no array of all n rows is ever held. What
a user's function returns is checked: one real, finite value for each entry or row.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from .arguments import checked_seed, nonnegative_number, whole_number

__all__ = [
    "SampleStream",
    "finite_function",
    "finite_values",
    "progress_bar",
    "seed_sequence",
    "target_values",
]

Array = NDArray[np.float64]
Function = Callable[[Array], Any]

BLOCK_ENTRIES = 2**20
"""Entries of a block of inputs, 8 MB: enough rows for the full rate of BLAS at any dimension."""

LARGEST_BLOCK = 4096
"""Rows of a block at most: hidden layers are wider than inputs."""


class SampleStream:
    """Inputs and labels in blocks that can be drawn again.

    Parameters
    ----------
    dimension : int
        Input dimension d.
    target : callable
        Takes an array of shape (n, r), returns n values.
    variables : int
        Number r of coordinates that the target depends on.
    noise_variance : float
        Variance of the label noise.
    seed : int or SeedSequence
        Fixes all samples.

    Raises
    ------
    ParameterError
        If an argument is outside its range; the message names it.
    """

    def __init__(
        self,
        dimension: int,
        target: Function,
        variables: int,
        noise_variance: float,
        seed: int | np.random.SeedSequence,
    ) -> None:
        self.dimension = whole_number("dimension", dimension)
        self.variables = whole_number("variables", variables)
        if self.variables > self.dimension:
            raise ParameterError(
                f"variables must be at most the dimension {self.dimension}, got {self.variables}"
            )
        finite_function("target", target)
        self.target = target
        self.noise_variance = nonnegative_number("noise_variance", noise_variance)
        self.seed = seed_sequence(seed)
        # It follows from the dimension, so that results do not depend on an option.
        self.block_rows = max(1, min(LARGEST_BLOCK, BLOCK_ENTRIES // self.dimension))

    def generator(self, *key: int) -> np.random.Generator:
        """Return the generator of a purpose; keys extend that of the seed, as ``spawn`` does."""
        child = np.random.SeedSequence(
            self.seed.entropy,
            spawn_key=(*self.seed.spawn_key, *key),
            pool_size=self.seed.pool_size,
        )
        # SFC64 draws normals a fifth faster than PCG64, and they are the largest cost after BLAS.
        return np.random.Generator(np.random.SFC64(child))

    def blocks(
        self, purpose: int, count: int, *, start: int = 0, noisy: bool = True
    ) -> Iterator[tuple[Array, Array]]:
        """Yield inputs (n, d) and labels (n,) of the samples from `start` up to `count`.

        Calls with the same `purpose` give the same samples. Arrays of inputs are used again.
        """
        size = self.block_rows
        memory = np.empty((size, self.dimension))
        for block in range(start // size, -(-count // size)):
            generator = self.generator(purpose, block)
            # Noise of the whole block first: a shorter block then has the same first samples.
            noise = generator.standard_normal(size)
            stop = min(count - block * size, size)
            first = max(start - block * size, 0)
            inputs = generator.standard_normal(out=memory[:stop])[first:]
            labels = target_values(self.target, inputs[:, : self.variables])
            if noisy:
                labels = labels + math.sqrt(self.noise_variance) * noise[first:stop]
            yield inputs, labels


def finite_function(name: str, function: object) -> None:
    """Refuse what cannot be called."""
    if not callable(function):
        raise ParameterError(f"{name} must be a function of an array, got {function!r}")


def finite_values(function: Function, name: str, argument: Array) -> Array:
    """Return values of a user's function at every entry of an array.

    Raises
    ------
    ParameterError
        If they have a wrong shape or are not real and finite.
    """
    return _checked(function(argument), name, argument.shape, argument)


def target_values(function: Function, inputs: Array) -> Array:
    """Return the values of a target at every row of an array.

    Raises
    ------
    ParameterError
        If they have a wrong shape or are not real and finite.
    """
    return _checked(function(inputs), "target", (len(inputs),), inputs)


def seed_sequence(seed: int | np.random.SeedSequence) -> np.random.SeedSequence:
    """Return a seed as a SeedSequence.

    Raises
    ------
    ParameterError
        If it is neither a whole number >= 0 nor a SeedSequence.
    """
    if isinstance(seed, np.random.SeedSequence):
        return seed
    return np.random.SeedSequence(checked_seed(seed))


def _checked(found: Any, name: str, shape: tuple[int, ...], argument: Array) -> Array:
    values = np.asarray(found)
    if values.dtype.kind not in "fiub" or values.shape not in (shape, ()):
        one = "row" if shape != argument.shape else "entry"
        raise ParameterError(
            f"{name} must return real values, one for each {one} of its argument\n"
            f"  for an array of shape {argument.shape} it returned {values.dtype} of shape "
            f"{values.shape}"
        )
    finite = np.isfinite(values)
    if not finite.all():
        where = argument[np.broadcast_to(~finite, shape)]
        point = ", ".join(f"{x:.6g}" for x in np.atleast_1d(where[0]))
        raise ParameterError(f"{name} is not finite at {point}")
    return np.broadcast_to(values.astype(np.float64, copy=False), shape)


class ProgressBar(Protocol):
    """What is told of progress."""

    def update(self, n: float | None = 1) -> object: ...


@contextlib.contextmanager
def progress_bar(shown: bool, total: int, unit: str) -> Iterator[ProgressBar]:
    """Show progress on the standard error stream, from the second second on."""
    # Imported here: tqdm.auto looks for notebook widgets, which costs time at every import.
    from tqdm.auto import tqdm

    with tqdm(total=total, delay=1, disable=not shown, unit=unit) as bar:
        yield bar
