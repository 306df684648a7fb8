r"""Spectra as measurements: singular values of first layers, eigenvalues of kernels of samples.

The kernel of n samples is :math:`K = \Phi\Phi^\top`, :math:`\Phi = \varphi/\sqrt p` of shape
(n, p): its eigenvalues are squared singular values of Φ, and n − p zeros where n > p.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from ...errors import ParameterError
from .readout import GaussianFeatures, RidgeReadout, TrainedNetwork
from .samples import READOUT

__all__ = ["KernelEigenvalues", "feature_eigenvalues", "singular_spectrum", "singular_values"]

Array = NDArray[np.float64]


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
    gram = _smaller_gram(matrix)
    last = len(gram) - 1
    values = scale * np.sqrt(_gram_eigenvalues(gram)[::-1])
    _, vectors = scipy.linalg.eigh(gram, subset_by_index=(last, last), overwrite_a=True)
    near = vectors[:, 0]
    far = matrix.T @ near if wide else matrix @ near
    norm = np.linalg.norm(far)
    far = far / norm if norm > 0 else np.eye(1, len(far))[0]
    return values, *((near, far) if wide else (far, near))


def singular_values(trained: TrainedNetwork) -> dict[str, Array]:
    r"""Singular values of the rows, (min(p, d),), and where the first vectors point.

    Returns
    -------
    dict of ndarray
        ``singular_values``, descending; squared cosines of the first singular vector in the space
        of inputs with the teacher's first direction, ``teacher_alignment``, and with the sum of
        :math:`X^\top y` over the steps so far, ``spike_alignment``, zero before the first; and of
        that in the space of neurons with the second layer of the steps, ``readout_alignment``,
        zero where there is none.
    """
    values, neurons, inputs = singular_spectrum(trained.layer.rows.astype(float, copy=False))
    moments = trained.training.label_moments
    moment = np.sum(moments, axis=0) if moments else np.zeros(trained.network.dimension)
    readout = trained.layer.readout
    return {
        "singular_values": values,
        "teacher_alignment": _squared_cosine(inputs, trained.layer.teachers[0]),
        "spike_alignment": _squared_cosine(inputs, moment),
        "readout_alignment": _squared_cosine(neurons if readout.size else readout, readout),
    }


def feature_eigenvalues(trained: TrainedNetwork) -> dict[str, Array]:
    r"""Spectrum of :math:`K = \frac1p\sum_\mu\varphi_\mu\varphi_\mu^T` over a readout's samples.

    Nothing is fitted.

    Returns
    -------
    dict of ndarray
        ``feature_eigenvalues`` (S, p), ascending, zeros included; ``projections`` (n,), those of
        the samples of the largest size on the first spike.
    """
    sizes, width = trained.readout.sizes, trained.layer.width
    features = trained.feature_matrix(max(sizes))[0]
    eigenvalues = np.zeros((len(sizes), width))
    for row, size in zip(eigenvalues, sizes, strict=True):
        positive = _gram_eigenvalues(_smaller_gram(features[:size].astype(float, copy=False)))
        row[width - len(positive) :] = positive / width
    return {
        "feature_eigenvalues": eigenvalues,
        "projections": trained.projections(READOUT, max(sizes)),
    }


@dataclass(frozen=True, slots=True)
class KernelEigenvalues:
    """Eigenvalues of the kernel of the readout's samples, of its largest size n.

    Returned are ``kernel_eigenvalues``, (n,), descending, zeros included, and ``label_alignment``,
    the squared cosine of the first eigenvector and the labels.

    Parameters
    ----------
    gaussian : GaussianFeatures, optional
        Take the Gaussian counterparts of the features. Names are then ``linearised_eigenvalues``
        and ``linearised_label_alignment``.
    """

    gaussian: GaussianFeatures | None = None

    @property
    def digest(self) -> str:
        """What distinguishes it from others in stored results."""
        return repr(self.gaussian)

    def __call__(self, trained: TrainedNetwork) -> dict[str, Array]:
        """Return the eigenvalues and the alignment.

        Raises
        ------
        ParameterError
            If there is no readout, or none whose features can be replaced.
        """
        readout, names = trained.readout, ("kernel_eigenvalues", "label_alignment")
        if self.gaussian is not None:
            if not isinstance(readout, RidgeReadout):
                raise ParameterError("Gaussian counterparts of features need a RidgeReadout")
            trained = TrainedNetwork(trained.training, replace(readout, gaussian=self.gaussian))
            names = ("linearised_eigenvalues", "linearised_label_alignment")
        count = max(readout.sizes)
        features, labels = trained.feature_matrix(count)
        values, left, _ = singular_spectrum(features.astype(float, copy=False))
        eigenvalues = np.zeros(count)
        eigenvalues[: len(values)] = values**2 / trained.layer.width
        return dict(zip(names, (eigenvalues, _squared_cosine(left, labels)), strict=True))


def _squared_cosine(unit: Array, vector: Array) -> Array:
    square = float(vector @ vector)
    return np.array(float(unit @ vector) ** 2 / square if square else 0.0)


def _smaller_gram(matrix: Array) -> Array:
    """Of both Gram matrices, which have the same positive eigenvalues, the smaller one."""
    wide = matrix.shape[0] <= matrix.shape[1]
    return np.asarray(matrix @ matrix.T if wide else matrix.T @ matrix)


def _gram_eigenvalues(gram: Array) -> Array:
    """Eigenvalues, ascending: a Gram matrix has no negative one, but rounding may say so."""
    return np.maximum(scipy.linalg.eigvalsh(gram), 0.0)
