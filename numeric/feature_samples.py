"""Gaussian inputs with their targets and labels, block by block; blocks can be drawn again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .feature_labels import Channel
from .sample_stream import Function, finite_values, target_values

__all__ = ["BLOCK_ROWS", "SampleBlock", "layer_samples"]

Array = NDArray[np.float64]

BLOCK_ROWS = 1024
"""Samples per block: enough for the full rate of BLAS, few enough to stay in the last cache."""

ROWS, STEP, READOUT, TEST = range(4)
"""Purposes of random streams."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleBlock:
    """Samples `start`, …, of one purpose; arrays of inputs are used again by the next block.

    Attributes
    ----------
    start : int
    inputs : ndarray, shape (n, d)
    target : ndarray, shape (n,)
        Without noise.
    labels : ndarray, shape (n,)
    """

    start: int
    inputs: Array
    target: Array
    labels: Array


def layer_samples(
    teacher: Function,
    directions: Array,
    channel: Channel,
    seed: np.random.SeedSequence,
    purpose: int,
    count: int,
    checkpoint: Callable[[], None] | None = None,
    *,
    start: int = 0,
) -> Iterator[SampleBlock]:
    """Yield the samples from `start` up to `count` in blocks.

    Parameters
    ----------
    teacher : callable
        Of the projections on the directions: (n,) for one direction, (n, r) for several.
    directions : ndarray, shape (r, d)
    channel : Channel
    seed : SeedSequence
    purpose : int
        Purposes have independent samples.
    count : int
    checkpoint : callable, optional
        Called before each block. What it raises abandons the run.
    start : int
        A multiple of the block's rows.
    """
    memory = np.empty((min(BLOCK_ROWS, count - start), directions.shape[1]))
    for first in range(start, count, BLOCK_ROWS):
        if checkpoint is not None:
            checkpoint()
        child = np.random.SeedSequence(
            seed.entropy,
            spawn_key=(*seed.spawn_key, purpose, first // BLOCK_ROWS),
            pool_size=seed.pool_size,
        )
        inputs_stream, label_stream = (
            np.random.Generator(np.random.SFC64(s)) for s in child.spawn(2)
        )
        inputs = inputs_stream.standard_normal(out=memory[: min(BLOCK_ROWS, count - first)])
        seen = inputs @ directions.T
        # A scalar function of one projection, a function of rows otherwise.
        if len(directions) == 1:
            target = finite_values(teacher, "teacher", seen[:, 0])
        else:
            target = target_values(teacher, seen)
        yield SampleBlock(first, inputs, target, channel.draw(target, label_stream, BLOCK_ROWS))
