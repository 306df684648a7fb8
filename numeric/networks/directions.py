r"""What a first layer learns of the target's directions, beside directions that mean nothing to it.

Of the rows inside the target's coordinates three parts are measured: the rows themselves
("weights"), the rows minus their start ("updates"), and what the updates of neurons with equal
readout and bias have in common ("shared"), in which fluctuations of the start, of order
:math:`d^{-1/2}`, drop out. Each part has a noise floor: the same measurement in directions on which
the target does not depend.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy
from numpy.typing import NDArray

from ...errors import ParameterError
from .layer import FirstLayer, SpikedRows
from .network import NO_GRADIENT
from .readout import TrainedNetwork
from .samples import TEST

__all__ = [
    "PARTS",
    "directions",
    "linear_part",
    "neurons",
    "require_room",
    "step_size",
    "subspace",
]

Array = NDArray[np.float64]

PARTS = ("weights", "updates", "shared")
"""What is measured: rows, rows minus their start, and what updates of equal neurons share."""

FLOOR_BLOCKS = 16
"""Sets of r directions outside the target's coordinates in which products are measured."""

RANK_TOLERANCE = 1e-12
"""Relative size below which a singular value is rounding: neurons then share a direction."""


def require_room(dimension: int, variables: int) -> None:
    """Refuse dimensions that leave no room to measure noise.

    Raises
    ------
    ParameterError
        If the target's coordinates are more than half of the dimensions.
    """
    if 2 * variables > dimension:
        raise ParameterError(
            f"dimension must be at least {2 * variables}, twice the number of coordinates of the "
            f"target, got {dimension}\n"
            "  the noise is measured in directions on which the target does not depend"
        )


def directions(trained: TrainedNetwork) -> dict[str, Array]:
    r"""Return what the rows have along the target's coordinates, and along others.

    Returns
    -------
    dict of ndarray
        ``overlaps`` (p, r), rows in the target's coordinates; ``squared_norms`` (p,), of the rows;
        ``grams`` (3, 1 + blocks, r, r), for each of `PARTS` means over neurons of products of two
        coordinates, the target's first, then sets of as many on which it does not depend;
        ``floors`` (3,), root mean squares in one direction outside; ``excess`` (r, r), see
        :class:`.network.Training`. Of "shared" these are zero if no two neurons have the same
        readout and bias.

    Raises
    ------
    ParameterError
        If there are too few dimensions, or the rows have a spike by their law.
    """
    network, layer = trained.network, trained.layer
    if isinstance(network.rows, SpikedRows):
        raise ParameterError("directions are those of networks that take steps; rows have a spike")
    r = network.directions
    require_room(network.dimension, r)
    # The target's coordinates are the first ones.
    updates = trained.training.start_rows(np.empty_like(layer.rows))
    np.subtract(layer.rows, updates, out=updates)
    shared_grams, shared = _shared(layer, updates, r)
    plain = layer.rows, updates
    floors = [*(_root_mean_square(rows[:, r:]) for rows in plain), shared]
    grams = [*(_grams(_sets(rows, r)) / layer.width for rows in plain), shared_grams]
    return {
        "overlaps": layer.rows[:, :r],
        "squared_norms": np.einsum("ij,ij->i", layer.rows, layer.rows),
        "grams": np.stack(grams),
        "floors": np.array(floors),
        "excess": trained.training.excess,
    }


def _sets(rows: Array, r: int) -> Array:
    """The target's coordinates and further sets of as many, one set for each first index."""
    sets = 1 + min(FLOOR_BLOCKS, rows.shape[1] // r - 1)
    return rows[:, : sets * r].reshape(len(rows), sets, r).swapaxes(0, 1)


def _shared(layer: FirstLayer, updates: Array, r: int) -> tuple[Array, float]:
    r"""Mean of :math:`u_i u_j^T` over different neurons with the same readout and bias.

    Rows of such neurons are independent but for the batches they share, so its expectation is the
    outer product of what their updates have in common: fluctuations of the start drop out. The
    floor is that of the square root of a diagonal entry.
    """
    changes = (np.diff(layer.readout) != 0) | (np.diff(layer.biases) != 0)
    starts = [0, *(np.flatnonzero(changes) + 1).tolist(), layer.width]
    grams = np.zeros((len(_sets(updates[:1], r)), r, r))
    diagonal = np.zeros(updates.shape[1] - r)
    count = 0
    for start, stop in itertools.pairwise(starts):
        group = updates[start:stop]
        if len(group) == 1:
            continue
        count += len(group)
        measured = _sets(group, r)
        total = measured.sum(axis=1)
        grams += (total[:, :, None] * total[:, None, :] - _grams(measured)) / (len(group) - 1)
        outside = group[:, r:]
        squares = np.einsum("ij,ij->j", outside, outside)
        diagonal += (outside.sum(axis=0) ** 2 - squares) / (len(group) - 1)
    if not count:
        return grams, 0.0
    return grams / count, math.sqrt(_root_mean_square(diagonal[:, None] / count))


def neurons(trained: TrainedNetwork) -> dict[str, Array]:
    """Return ``readout``, the second layer of the steps, and ``biases``, (p,) each."""
    return {"readout": trained.layer.readout, "biases": trained.layer.biases}


def subspace(trained: TrainedNetwork) -> dict[str, Array]:
    r"""Hold the rows against the space of the target's directions.

    Returns
    -------
    dict of ndarray
        ``relevant_share``, share of the squared norm of the rows inside it; ``principal_angles``
        (r,), in radians and increasing, between it and the span of the first r right singular
        vectors of the rows; right angles where there are too few. (All rows together span more,
        because of noise.)

    Raises
    ------
    ParameterError
        If all rows are zero.
    """
    rows, teachers = trained.layer.rows, trained.layer.teachers
    total = float(np.linalg.norm(rows))
    if total == 0:
        raise ParameterError(NO_GRADIENT)
    _, lengths, found = np.linalg.svd(rows, full_matrices=False)
    kept = found[: len(teachers)][lengths[: len(teachers)] > RANK_TOLERANCE * lengths[0]]
    angles = np.full(len(teachers), math.pi / 2)
    angles[: len(kept)] = np.sort(scipy.linalg.subspace_angles(kept.T, teachers.T))
    share = (np.linalg.norm(rows @ teachers.T) / total) ** 2
    return {"relevant_share": np.asarray(share), "principal_angles": angles}


def linear_part(trained: TrainedNetwork) -> dict[str, Array]:
    """Return ``linear_error``, of the mean and linear part of the first step's labels alone.

    It is the mean squared distance from the noise-free target on the test samples of the readout.
    """
    offset, linear = trained.training.linear_part()
    count = trained.test_samples
    blocks = trained.samples.blocks(TEST, count)
    squares = sum(((b.target - offset - b.inputs @ linear) ** 2).sum() for b in blocks)
    return {"linear_error": np.asarray(squares / count)}


def step_size(trained: TrainedNetwork) -> dict[str, Array]:
    """Return ``step_size``, the factor of a_j in the last step, rows scaled afterwards or not."""
    return {"step_size": np.asarray(trained.network.rate * trained.training.scale)}


def _grams(sets: Array) -> Array:
    """Gram matrix of the columns of each set."""
    return np.asarray(sets.swapaxes(1, 2) @ sets)


def _root_mean_square(rows: Array) -> float:
    # No copy of a part of the rows, which a norm would make.
    return math.sqrt(float(np.einsum("ij,ij->", rows, rows)) / rows.size)
