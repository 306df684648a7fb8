r"""Gaussian inputs with targets and labels, block by block; blocks can be drawn again.

Every block of every purpose has a random stream of its own, so that samples that are not kept can
be drawn again, a longer run extends a shorter one, and no array of all n rows is ever held. What a
user's function returns is checked: one real, finite value for each entry or row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ..arguments import checked_seed, is_one_of

__all__ = [
    "Channel",
    "Function",
    "SampleBlock",
    "Samples",
    "checked_channel",
    "finite_function",
    "finite_values",
    "seed_sequence",
    "target_values",
]

Array = NDArray[np.float64]
Function = Callable[[Array], Any]

CHANNELS = ("regression", "sign", "probit", "logistic")

BLOCK_ROWS = 1024
"""Samples per block at most: enough for the full rate of BLAS, few enough for the last cache."""

BLOCK_ENTRIES = 2**20
"""Entries of a block of inputs at most, 8 MB."""

SLICE_ENTRIES = 2**15
"""Entries handed to an activation at once, 256 kB: its temporaries stay in the second cache."""

ROWS, STEP, READOUT, TEST, INITIAL, NONLINEAR, RESIDUAL = range(7)
"""Purposes of random streams; later steps on samples of their own come after them."""
LATER_STEPS = 16


@dataclass(frozen=True, slots=True)
class Channel:
    r"""How labels are made from the target f_*.

    ``regression``: :math:`y = f_* + \sqrt\Delta\,\xi`. ``sign`` and ``probit``:
    :math:`y = \mathrm{sign}(f_* + \sqrt\Delta\,\xi)`, the names for Δ = 0 and Δ > 0.
    ``logistic``: :math:`P(y = 1) = 1/(1 + e^{-f_*})`, for Δ = 0. A function takes f_* and a
    uniform number in (0, 1) for each sample, arrays, and returns labels: any channel has this form.

    Attributes
    ----------
    name : str
    function : callable or None
    noise_variance : float
        Δ.
    """

    name: str
    function: Callable[[Array, Array], Any] | None
    noise_variance: float

    @property
    def classifies(self) -> bool:
        """Whether labels are ±1."""
        return self.name in ("sign", "probit", "logistic")

    def draw(self, target: Array, generator: np.random.Generator, rows: int) -> Array:
        """Return labels; the stream moves on by `rows` samples however many there are.

        Raises
        ------
        ParameterError
            If a function returns something else than one finite number for each sample.
        """
        if self.name == "regression":
            noise = generator.standard_normal(rows)[: len(target)]
            return target + math.sqrt(self.noise_variance) * noise
        if self.function is not None:
            uniform = generator.random(rows)[: len(target)]
            labels = np.asarray(self.function(target, uniform))
            if labels.dtype.kind not in "fiub" or labels.shape != target.shape:
                raise ParameterError(
                    "labels must return one real number for each sample\n"
                    f"  for {len(target)} samples it returned {labels.dtype} of shape "
                    f"{labels.shape}"
                )
            if not np.isfinite(labels).all():
                raise ParameterError("labels returned a value that is not finite")
            return labels.astype(float)
        if self.name == "logistic":
            noise = generator.logistic(size=rows)[: len(target)]
        else:
            noise = generator.standard_normal(rows)[: len(target)] * math.sqrt(self.noise_variance)
        return np.where(target + noise >= 0, 1.0, -1.0)


def checked_channel(labels: object, noise_variance: float) -> Channel:
    """Return the channel of a name or a function.

    Raises
    ------
    ParameterError
        If there is no such channel, or the noise does not fit it.
    """
    if callable(labels):
        if noise_variance:
            raise ParameterError(
                "labels as a function hold their own noise; leave out noise_variance"
            )
        return Channel("function", labels, 0.0)
    if not is_one_of(labels, CHANNELS):
        raise ParameterError(
            f"labels must be one of {', '.join(CHANNELS)} or a function, got {labels!r}"
        )
    if labels == "logistic" and noise_variance:
        raise ParameterError(
            "logistic labels have their own noise: noise_variance must be 0, "
            f"got {noise_variance:g}"
        )
    if labels == "probit" and not noise_variance:
        raise ParameterError("probit labels need noise_variance > 0; without noise use 'sign'")
    return Channel(str(labels), None, noise_variance)


@dataclass(frozen=True, slots=True, eq=False)
class SampleBlock:
    """Samples `start`, …, of one purpose; arrays of inputs are used again by the next block.

    Attributes
    ----------
    start : int
    inputs : ndarray, shape (n, d)
        In the precision of the network.
    target : ndarray, shape (n,)
        Without noise.
    labels : ndarray, shape (n,)
    """

    start: int
    inputs: Array
    target: Array
    labels: Array

    @property
    def rows(self) -> slice:
        """Where its samples stand among all of their purpose."""
        return slice(self.start, self.start + len(self.labels))


class Samples:
    """Inputs and labels of one network.

    Parameters
    ----------
    teacher : callable
        Of the projections on the directions: (n,) for one direction, (n, r) for several.
    directions : ndarray, shape (r, d)
    channel : Channel
    seed : SeedSequence
        Fixes all samples; it is not changed.
    checkpoint : callable, optional
        Called before each block. What it raises abandons the run.
    drawn : callable, optional
        Told the number of samples of each block.
    single : bool
        Whether inputs are float32: the numbers of double precision, rounded.
    """

    def __init__(
        self,
        teacher: Function,
        directions: Array,
        channel: Channel,
        seed: int | np.random.SeedSequence,
        *,
        checkpoint: Callable[[], None] | None = None,
        drawn: Callable[[int], None] | None = None,
        single: bool = False,
    ) -> None:
        self.teacher, self.directions, self.channel = teacher, directions, channel
        self.seed = seed_sequence(seed)
        self.checkpoint, self.drawn, self.single = checkpoint, drawn, single
        # It follows from the dimension, so that results do not depend on an option.
        self.block_rows = max(1, min(BLOCK_ROWS, BLOCK_ENTRIES // directions.shape[1]))

    def generator(self, *key: int) -> np.random.Generator:
        """Return the generator of a purpose; keys extend that of the seed, as ``spawn`` does."""
        return np.random.Generator(np.random.SFC64(self._child(*key)))

    def _child(self, *key: int) -> np.random.SeedSequence:
        # SFC64 draws normals a fifth faster than PCG64, and they are the largest cost after BLAS.
        return np.random.SeedSequence(
            self.seed.entropy,
            spawn_key=(*self.seed.spawn_key, *key),
            pool_size=self.seed.pool_size,
        )

    def blocks(self, purpose: int, count: int, *, start: int = 0) -> Iterator[SampleBlock]:
        """Yield the samples from `start` up to `count` in blocks.

        Calls with the same `purpose` give the same samples.
        """
        size, dimension = self.block_rows, self.directions.shape[1]
        # As many as a full block: a shorter run then has the same first samples.
        memory = np.empty((min(size, count), dimension))
        single = np.empty(memory.shape, dtype=np.float32) if self.single else None
        for block in range(start // size, -(-count // size)):
            if self.checkpoint is not None:
                self.checkpoint()
            stop = min(count - block * size, size)
            first = max(start - block * size, 0)
            inputs_stream, label_stream = (
                np.random.Generator(np.random.SFC64(s))
                for s in self._child(purpose, block).spawn(2)
            )
            inputs = inputs_stream.standard_normal(out=memory[:stop])
            target = self._target(inputs)
            labels = self.channel.draw(target, label_stream, size)
            if single is not None:
                single[:stop] = inputs
                inputs = single[:stop]  # type: ignore[assignment]
            yield SampleBlock(
                block * size + first, inputs[first:], target[first:], labels[first:stop]
            )
            if self.drawn is not None:
                self.drawn(stop - first)

    def _target(self, inputs: Array) -> Array:
        seen = inputs @ self.directions.T
        # A scalar function of one projection, a function of rows otherwise.
        if len(self.directions) == 1:
            return finite_values(self.teacher, "teacher", seen[:, 0])
        return target_values(self.teacher, seen)


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


def slices(rows: int, width: int) -> Iterator[slice]:
    """Yield slices of rows that are handed to an activation at once."""
    step = max(1, SLICE_ENTRIES // max(width, 1))
    return (slice(start, start + step) for start in range(0, rows, step))


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
    return np.broadcast_to(values.astype(argument.dtype, copy=False), shape)
