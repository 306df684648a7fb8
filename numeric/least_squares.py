"""Projections in a weighted function space, on tables of functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Directions whose part that is not in the span of the others is smaller than this are rounding.
_RANK = 1e-13


def squared_distance(target: Array, functions: Array, weights: Array) -> float:
    r"""Return :math:`\min_a \sum_k w_k\,(t_k - \sum_i a_i f_{ik})^2`.

    Parameters
    ----------
    target : array (n,)
    functions : array (K, n)
        May be empty, linearly dependent or nearly so.
    weights : array (n,)
        Not negative.

    Returns
    -------
    float
        By singular values of the weighted functions, each scaled to norm one: no squares of
        condition numbers, as in normal equations.

    Examples
    --------
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> round(squared_distance(x**2, np.array([np.ones(3), np.ones(3)]), np.full(3, 1 / 3)), 14)
    0.22222222222222
    """
    return project(target, functions, weights).distance


@dataclass(frozen=True)
class Projection:
    """A weighted function next to a span.

    Attributes
    ----------
    distance : float
        Squared distance, and the penalty if there is one.
    coefficients : array (K,)
        Of the functions in the span; one of many choices if they are dependent.
    amplification : float
        One over the smallest singular value of the functions, each scaled to norm one; infinite if
        a direction was taken for rounding and left out.
    """

    distance: float
    coefficients: Array
    amplification: float

    def rounding(self, noise: Array, norms: Array) -> float:
        r"""Bound what errors of the functions do to the distance D.

        Parameters
        ----------
        noise, norms : array (K,)
            Norms of the errors of the functions, and of the functions.

        Returns
        -------
        float
            With errors δ of the function in the span, :math:`2\sqrt D\,\delta + \delta^2` and the
            turn of the span, squared; never more than D itself and what the span explains by it.
        """
        inside = float(noise @ np.abs(self.coefficients))
        turned = 0.0
        if np.any(norms > 0):
            relative = float(np.max(noise[norms > 0] / norms[norms > 0]))
            turned = min(relative * self.amplification, 1.0) if relative else 0.0
        return 2 * self.distance**0.5 * inside + inside**2 + turned**2 * self.distance


def project(
    target: Array, functions: Array, weights: Array, penalty: float = 0.0, penalised: int = 0
) -> Projection:
    r"""Return the minimum of :math:`\sum_k w_k (t_k - \sum_i a_i f_{ik})^2 + k\,a_j^2`.

    Parameters
    ----------
    target, functions, weights : array (n,), (K, n), (n,)
        As in :func:`squared_distance`.
    penalty : float
        k, not negative.
    penalised : int
        j.

    Returns
    -------
    Projection
    """
    root = np.sqrt(weights)
    wanted, columns = root * target, root * functions
    if penalty and len(columns):
        row = np.zeros((len(columns), 1))
        row[penalised] = np.sqrt(penalty)
        wanted, columns = np.append(wanted, 0.0), np.hstack([columns, row])
    norms = np.linalg.norm(columns, axis=1)
    there = norms > 0
    coefficients, amplification = np.zeros(len(columns)), 1.0
    if there.any():
        scaled = columns[there] / norms[there, None]
        result, _, rank, sizes = np.linalg.lstsq(scaled.T, wanted, rcond=_RANK)
        wanted = wanted - result @ scaled
        coefficients[there] = result / norms[there]
        amplification = 1 / float(sizes[-1]) if rank == len(sizes) else np.inf
    return Projection(float(wanted @ wanted), coefficients, amplification)
