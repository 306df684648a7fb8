r"""Singular values of first layers after gradient steps, and eigenvalues of their kernels.

The kernel of n samples is :math:`K = \Phi\Phi^\top`, :math:`\Phi = \varphi/\sqrt N` of shape
(n, N): its eigenvalues are squared singular values of Φ, and n − N zeros where n > N.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from scipy.linalg import eigh, eigvalsh

from ..errors import ParameterError
from .arguments import is_one_of
from .one_step_network import Checkpoint, FirstLayers, OneStepSetup
from .one_step_readout import ReadoutSetup, readout_features

__all__ = ["MATRICES", "layer_spectra", "singular_spectrum"]

Array = NDArray[np.float64]

MATRICES = ("weights", "kernel", "linearised")
"""First layer, kernel of the network's features, kernel of their Gaussian counterparts."""


def singular_spectrum(matrix: Array) -> tuple[Array, Array, Array]:
    """Return all singular values, descending, and the first left and right singular vectors.

    Values come from the smaller Gram matrix: those below 1e-8 of the largest are rounding errors.

    Parameters
    ----------
    matrix : ndarray, shape (m, k)

    Returns
    -------
    values : ndarray, shape (min(m, k),)
    left : ndarray, shape (m,)
    right : ndarray, shape (k,)

    Examples
    --------
    >>> values, left, right = singular_spectrum(np.array([[3.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    >>> values.tolist(), abs(left).tolist(), abs(right).tolist()
    ([3.0, 1.0], [1.0, 0.0], [1.0, 0.0, 0.0])
    """
    wide = matrix.shape[0] <= matrix.shape[1]
    # Squares of large weights overflow.
    scale = float(np.abs(matrix).max()) or 1.0
    matrix = matrix / scale
    gram = matrix @ matrix.T if wide else matrix.T @ matrix
    last = len(gram) - 1
    # A Gram matrix has no negative eigenvalue; rounding may say so.
    values = scale * np.sqrt(np.maximum(eigvalsh(gram)[::-1], 0.0))
    _, vectors = eigh(gram, subset_by_index=(last, last), overwrite_a=True)
    near = vectors[:, 0]
    far = matrix.T @ near if wide else matrix @ near
    norm = np.linalg.norm(far)
    far = far / norm if norm > 0 else np.eye(1, len(far))[0]
    return values, *((near, far) if wide else (far, near))


def layer_spectra(
    setup: OneStepSetup,
    layers: FirstLayers,
    seed: int | np.random.SeedSequence,
    *,
    matrices: Sequence[str] = MATRICES,
    samples: int = 0,
    checkpoint: Checkpoint | None = None,
) -> dict[str, Array]:
    r"""Return spectra and alignments of recorded first layers, a row for each.

    Parameters
    ----------
    setup : OneStepSetup
    layers : FirstLayers
    seed : int or SeedSequence
        That of the network; kernels have the samples of its readout.
    matrices : sequence of str
        Of :data:`MATRICES`.
    samples : int
        n of the kernels.
    checkpoint : callable, optional
        Called before each block of samples. What it raises abandons the run.

    Returns
    -------
    dict of str to ndarray
        ``weights``: ``singular_values`` (layers, min(d, N)), and squared cosines (layers,) of the
        first left singular vector with the teacher (``teacher_alignment``) and with the label
        moment of the steps (``spike_alignment``), and of the right one with the readout
        (``readout_alignment``).
        ``kernel``: ``kernel_eigenvalues`` (layers, n) and the squared cosine of the first
        eigenvector with the labels (``label_alignment``). ``linearised``: the same, with names
        that begin with ``linearised_``.

    Raises
    ------
    ParameterError
        If a matrix is unknown.
    """
    check_matrices(matrices)
    found: dict[str, list[Array]] = {}

    def note(**values: object) -> None:
        for name, value in values.items():
            found.setdefault(name, []).append(np.asarray(value))

    spike = layers.label_moments.sum(axis=0)
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        # A function that overflows is reported by name.
        np.errstate(over="ignore", invalid="ignore"),
    ):
        for weights in layers.weights.values():
            if checkpoint is not None:
                checkpoint()
            if "weights" in matrices:
                values, left, right = singular_spectrum(weights)
                note(
                    singular_values=values,
                    teacher_alignment=left[0] ** 2,
                    spike_alignment=_squared_cosine(left, spike),
                    readout_alignment=_squared_cosine(right, layers.readout),
                )
            for matrix, name, label in (
                ("kernel", "kernel_eigenvalues", "label_alignment"),
                ("linearised", "linearised_eigenvalues", "linearised_label_alignment"),
            ):
                if matrix not in matrices:
                    continue
                readout = ReadoutSetup(samples, [0.0])
                if matrix == "linearised":
                    readout = replace(readout, features="gaussian")
                features, labels = readout_features(setup, weights, readout, seed, checkpoint)
                values, left, _ = singular_spectrum(features)
                eigenvalues = np.zeros(samples)
                eigenvalues[: len(values)] = values**2 / setup.width
                note(**{name: eigenvalues, label: _squared_cosine(left, labels)})
    return {name: np.stack(rows) for name, rows in found.items()}


def check_matrices(matrices: Sequence[str]) -> None:
    """Refuse names of matrices that are none."""
    listed = isinstance(matrices, Sequence) and not isinstance(matrices, str) and len(matrices)
    if not listed or not all(is_one_of(name, MATRICES) for name in matrices):
        raise ParameterError(f"matrices must be some of {', '.join(MATRICES)}, got {matrices!r}")


def _squared_cosine(unit: Array, vector: Array) -> float:
    square = float(vector @ vector)
    return float(unit @ vector) ** 2 / square if square else 0.0
