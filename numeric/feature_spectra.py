r"""Eigenvalues of the feature covariance of simulated first layers.

:math:`K = \frac1p \sum_\mu \varphi_\mu\varphi_\mu^T` over the n readout samples, p × p. Where
n < p, the n × n matrix with the same positive eigenvalues is used, and p − n zeros are added.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from scipy.linalg import eigh, eigvalsh

from ..errors import ParameterError
from .arguments import MOST_SEEDS, checked_seed, positive_number, real_array, whole_number
from .feature_network import SteppedNetwork
from .feature_rows import FirstLayer
from .feature_samples import BLOCK_ROWS, READOUT, layer_samples
from .feature_setup import FeatureSetup
from .networks.sizes import sample_count
from .sample_stream import progress_bar, seed_sequence
from .seed_runs import run_seeds

__all__ = [
    "FeatureSpectra",
    "bulk_overlaps",
    "bulk_spectrum",
    "feature_spectra",
    "layer_spectrum",
    "norm_overlap",
    "row_stretch",
]

Array = NDArray[np.float64]

# Of products of unit vectors, which users may have computed.
_ORTHONORMAL = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class FeatureSpectra:
    """Spectra of independent first layers, one row for each.

    Attributes
    ----------
    eigenvalues : ndarray, shape (layers, p)
        Of K, ascending, zeros included.
    projections : ndarray, shape (layers, n, k)
        Projections κ of the samples on the spike directions.
    samples : int
        n.
    completed : tuple of int
        Numbers of the finished seeds, increasing.
    """

    eigenvalues: Array
    projections: Array
    samples: int
    completed: tuple[int, ...]

    @property
    def width(self) -> int:
        """Number of features p."""
        return int(self.eigenvalues.shape[1])

    @property
    def top(self) -> Array:
        """Largest eigenvalue of each layer."""
        return np.asarray(self.eigenvalues[:, -1])

    def bulk(self, outliers: int = 1) -> Array:
        """Return all eigenvalues but the largest `outliers` of each layer, pooled, ascending.

        Raises
        ------
        ParameterError
            If nothing would be left.
        """
        outliers = whole_number("outliers", outliers, minimum=0)
        if outliers >= self.width:
            raise ParameterError(f"outliers must be fewer than the {self.width} eigenvalues")
        return np.sort(self.eigenvalues[:, : self.width - outliers], axis=None)

    def __repr__(self) -> str:
        layers = len(self.completed)
        return f"FeatureSpectra({layers} layers, p = {self.width}, n = {self.samples})"


def feature_spectra(
    setup: FeatureSetup | SteppedNetwork,
    alpha: float,
    *,
    seeds: int = 3,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = True,
) -> FeatureSpectra:
    """Draw first layers with their samples and return the eigenvalues of K.

    Seed i has the layer and the samples that it has in :func:`.simulate_features`.

    Parameters
    ----------
    setup : FeatureSetup or SteppedNetwork
    alpha : float
        Samples divided by the dimension.
    seeds, seed : int
        Number of layers and entropy of the run.
    workers : int, optional
        Threads; has no effect on the numbers.
    progress : bool

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    KeyboardInterrupt
        If interrupted before any layer had finished.
    """
    if not isinstance(setup, FeatureSetup | SteppedNetwork):
        raise ParameterError(
            f"setup must be a FeatureSetup or a SteppedNetwork, not {type(setup).__name__}"
        )
    samples = sample_count("alpha", positive_number("alpha", alpha), setup.dimension)
    seeds, seed = (
        whole_number("seeds", seeds, maximum=MOST_SEEDS),
        checked_seed(seed),
    )
    workers = None if workers is None else whole_number("workers", workers)
    found: dict[int, tuple[Array, Array]] = {}
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        progress_bar(progress, seeds, "seed") as bar,
    ):

        def collect(index: int, result: tuple[Array, Array]) -> None:
            found[index] = result
            bar.update()

        job = functools.partial(_one_seed, setup, samples, seed)
        run_seeds(job, range(seeds), collect, workers=workers)
    if not found:
        raise KeyboardInterrupt
    completed = tuple(sorted(found))
    eigenvalues, projections = zip(*(found[i] for i in completed), strict=True)
    return FeatureSpectra(np.stack(eigenvalues), np.stack(projections), samples, completed)


def layer_spectrum(
    setup: FeatureSetup | SteppedNetwork,
    layer: FirstLayer,
    samples: int,
    seed: int | np.random.SeedSequence,
    checkpoint: Callable[[], None] | None = None,
) -> tuple[Array, Array]:
    """Return eigenvalues (p,) of K and projections (n, k) for the samples of a given layer.

    Parameters
    ----------
    setup : FeatureSetup or SteppedNetwork
        Student, teacher and channel.
    layer : FirstLayer
    samples : int
        n.
    seed : int or SeedSequence
        With that of the layer, the samples of its simulation.
    checkpoint : callable, optional
        Called before each block of samples. What it raises abandons the run.
    """
    samples = whole_number("samples", samples)
    features = np.empty((samples, layer.width))
    projections = np.empty((samples, len(layer.spikes)))
    for block in layer_samples(
        setup.teacher, layer.teachers, setup.channel, seed_sequence(seed), READOUT, samples,
        checkpoint,
    ):  # fmt: skip
        rows = slice(block.start, min(block.start + BLOCK_ROWS, samples))
        layer.features(setup.student, block.inputs, features[rows])
        projections[rows] = block.inputs @ layer.spikes.T
    wide = samples < layer.width
    matrix = features @ features.T if wide else features.T @ features
    positive = eigvalsh(matrix / layer.width, overwrite_a=True)
    eigenvalues = np.zeros(layer.width)
    # A Gram matrix has no negative eigenvalue; rounding may say so.
    eigenvalues[layer.width - len(positive) :] = np.maximum(positive, 0)
    return eigenvalues, projections


def bulk_spectrum(layer: FirstLayer) -> dict[str, Array]:
    r"""Return how the bulk rows lie to the spike and to the teacher, for one direction of each.

    Parameters
    ----------
    layer : FirstLayer

    Returns
    -------
    dict of ndarray, shape (p,)
        With bulk rows B, spike v, the teacher's direction ζ across it and eigenvectors :math:`e_i`:
        ``D``, eigenvalues of :math:`B(1 - vv^T)B^T`; ``F``, ``H``, ``G``, d times the squares of
        :math:`e_i\cdot Bv` and :math:`e_i\cdot B\zeta` and their product.

    Raises
    ------
    ParameterError
        If there are several directions.
    """
    if len(layer.teachers) != 1:
        raise ParameterError(
            f"the teacher must have one direction for its bulk, got {len(layer.teachers)}"
        )
    along, across = _split(layer)
    return _overlaps(along, across, layer.orthogonal_teachers[0])


def bulk_overlaps(rows: object, spike: object, teacher: object) -> dict[str, Array]:
    """Return :func:`bulk_spectrum` of bulk rows that are given.

    Parameters
    ----------
    rows : array-like (p, d)
        B.
    spike, teacher : array-like (d,)
        v and ζ, orthonormal.

    Raises
    ------
    ParameterError
        If shapes do not fit, or the directions are not orthonormal.
    """
    matrix, v, zeta = (
        real_array(name, x) for name, x in (("rows", rows), ("spike", spike), ("teacher", teacher))
    )
    if matrix.ndim != 2 or v.shape != matrix.shape[1:] or zeta.shape != v.shape:
        raise ParameterError(
            "rows must be a matrix (p, d), spike and teacher vectors (d,), got shapes "
            f"{matrix.shape}, {v.shape} and {zeta.shape}"
        )
    products = {"spike @ spike": v @ v - 1, "teacher @ teacher": zeta @ zeta - 1}
    products["spike @ teacher"] = v @ zeta
    for name, off in products.items():
        if abs(off) > _ORTHONORMAL:
            raise ParameterError(
                f"spike and teacher must be orthonormal, and {name} is off by {off:.1e}; the "
                "teacher's direction is that across the spike"
            )
    along = matrix @ v
    return _overlaps(along, matrix - along[:, None] * v, zeta)


def _overlaps(along: Array, across: Array, direction: Array) -> dict[str, Array]:
    """Return the law of bulk rows along the spike, (p,), and across it, (p, d)."""
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        values, vectors = eigh(across @ across.T)
        pair = np.stack([along, across @ direction])
        first, second = math.sqrt(across.shape[1]) * (pair @ vectors)
    # A Gram matrix has no negative eigenvalue; rounding may say so.
    return {
        "D": np.maximum(values, 0), "F": first**2, "G": first * second, "H": second**2,
    }  # fmt: skip


def norm_overlap(layer: FirstLayer) -> float:
    r"""Return a of the regression :math:`|b|^2 \simeq c + 2a\,b\cdot v` over the bulk rows b.

    Raises
    ------
    ParameterError
        If there are several spikes.
    """
    along, across = _split(layer)
    centred = along - along.mean()
    return float(centred @ np.einsum("ji,ji->j", across, across) / (2 * (centred @ centred)))


def row_stretch(layer: FirstLayer, variance: float) -> tuple[float, float, float]:
    r"""Return T of :math:`d\,\mathrm{Cov}(b) = c\,(1 + T)^2` in the plane of spike and teacher.

    Parameters
    ----------
    layer : FirstLayer
    variance : float
        Bulk variance c of the layer.

    Returns
    -------
    tuple of float
        Entries along the spike, mixed, and along the teacher's direction across the spike.

    Raises
    ------
    ParameterError
        If there are several directions.
    """
    if len(layer.teachers) != 1:
        raise ParameterError(
            f"the teacher must have one direction for its bulk, got {len(layer.teachers)}"
        )
    along, across = _split(layer)
    pair = np.stack([along, across @ layer.orthogonal_teachers[0]])
    pair -= pair.mean(axis=1, keepdims=True)
    sizes, axes = np.linalg.eigh(pair @ pair.T * (layer.rows.shape[1] / len(layer.rows)))
    stretch = axes @ np.diag(np.sqrt(sizes / variance)) @ axes.T - np.eye(2)
    return float(stretch[0, 0]), float(stretch[0, 1]), float(stretch[1, 1])


def _split(layer: FirstLayer) -> tuple[Array, Array]:
    """Return the bulk rows along the spike, (p,), and across it, (p, d)."""
    if len(layer.spikes) != 1:
        raise ParameterError(f"the bulk is measured along one spike, got {len(layer.spikes)}")
    spike = layer.spikes[0]
    along = layer.rows @ spike
    return along - layer.centres[layer.classes, 0], layer.rows - along[:, None] * spike


def _one_seed(
    setup: FeatureSetup | SteppedNetwork,
    samples: int,
    seed: int,
    index: int,
    checkpoint: Callable[[], None] | None,
) -> tuple[Array, Array]:
    child = np.random.SeedSequence(seed, spawn_key=(index,))
    return layer_spectrum(setup, setup.first_layer(child, checkpoint), samples, child, checkpoint)
