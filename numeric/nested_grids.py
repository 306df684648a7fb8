"""Grids for averages over Gaussian variables whose integrands have kinks.

The variables are independent normal ones along the rows of a triangular factor, so that the kinks
of a variable are, given the earlier ones, points on a line: the rule of each line is cut there, and
between cuts integrands are smooth. Holds no formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..runtime.quadrature import legendre_panels, normal_density, trapezoidal_rule

Array = NDArray[np.float64]

# Beyond, a normal variable has a weight of 1e-17.
REACH = 8.5
_REACH_SMOOTH = 7.5
# A pivot so much smaller than its diagonal entry is rounding.
_DEPENDENT = 1e-13


def triangular(covariance: Array) -> Array:
    """Return L with L Lᵀ = C, columns of dependent rows left out as zeros."""
    n = len(covariance)
    factor = np.zeros((n, n))
    for j in range(n):
        pivot = covariance[j, j] - factor[j, :j] @ factor[j, :j]
        if pivot > _DEPENDENT * covariance[j, j]:
            factor[j, j] = np.sqrt(pivot)
            rest = covariance[j + 1 :, j] - factor[j + 1 :, :j] @ factor[j, :j]
            factor[j + 1 :, j] = rest / factor[j, j]
    return factor


def nested_grid(covariance: Array, kinks: Sequence[Sequence[float]], nodes: int) -> Array:
    """Return points and weights for averages over centred Gaussian variables.

    Parameters
    ----------
    covariance : array (n, n)
        Positive semidefinite.
    kinks : sequence of sequence of float
        Of each variable, where integrands are not smooth in it.
    nodes : int
        On a line without kinks; half as many between two kinks.

    Returns
    -------
    array (n + 1, points)
        The variables, then the weights.
    """
    n = len(covariance)
    # Smooth variables first: what is cut depends on those before.
    order = sorted(range(n), key=lambda i: len(kinks[i]))
    factor = triangular(covariance[np.ix_(order, order)])
    normal = np.zeros((0, 1))
    weights = np.ones(1)
    for j, i in enumerate(order):
        if not factor[j, j]:
            line, share = np.zeros((1, len(weights))), np.ones((1, len(weights)))
        elif not len(kinks[i]):
            rule, weight = _trapezoids(nodes)
            line = np.repeat(rule[:, None], len(weights), axis=1)
            share = np.repeat(weight[:, None], len(weights), axis=1)
        else:
            middle = factor[j, :j] @ normal
            line, share = _cut_line(
                [(kink - middle) / factor[j, j] for kink in sorted(kinks[i])], nodes // 2 + 2
            )
        normal = np.concatenate([
            np.tile(normal, (1, len(line))), line.reshape(1, -1)
        ])  # fmt: skip
        weights = (weights[None] * share).reshape(-1)
        kept = weights > 0
        normal, weights = normal[:, kept], weights[kept]
    found = np.empty((n + 1, len(weights)))
    found[order] = factor @ normal
    found[-1] = weights
    return found


def _cut_line(cuts: Sequence[Array], nodes: int) -> tuple[Array, Array]:
    """Rules for many lines at once, each cut at points of its own."""
    ends = [np.full_like(cuts[0], -REACH), *(np.clip(cut, -REACH, REACH) for cut in cuts)]
    ends.append(np.full_like(cuts[0], REACH))
    points, weights = legendre_panels(np.stack(ends, axis=-1), nodes)
    lines = points.reshape(len(points), -1).T
    return lines, weights.reshape(len(points), -1).T * normal_density(lines)


@lru_cache(maxsize=32)
def _trapezoids(nodes: int) -> tuple[Array, Array]:
    """Equal steps: for analytic integrands the error falls faster than that of Gauss's rule does.

    Rules of Gauss know polynomials; these here hold exponentials of squares.
    """
    rule, weight = trapezoidal_rule(2 * _REACH_SMOOTH / (nodes - 1), _REACH_SMOOTH)
    return rule, weight / weight.sum()
