"""How the bulk rows of a first layer lie to its spike and to the teacher."""

from __future__ import annotations

import math

import numpy as np
import scipy
import threadpoolctl
from numpy.typing import NDArray

from ...errors import ParameterError
from ..arguments import real_array
from .layer import FirstLayer

__all__ = ["bulk_overlaps", "bulk_spectrum", "norm_overlap", "row_stretch"]

Array = NDArray[np.float64]

# Of products of unit vectors, which users may have computed.
_ORTHONORMAL = 1e-9


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
    teacher = _teacher(layer)
    along, across = _split(layer)
    return _overlaps(along, across, teacher)


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
        values, vectors = scipy.linalg.eigh(across @ across.T)
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
    teacher = _teacher(layer)
    along, across = _split(layer)
    pair = np.stack([along, across @ teacher])
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


def _teacher(layer: FirstLayer) -> Array:
    """Return the teacher's direction across the spike."""
    if len(layer.teachers) != 1:
        raise ParameterError(
            f"the teacher must have one direction for its bulk, got {len(layer.teachers)}"
        )
    return np.asarray(layer.orthogonal_teachers[0])
