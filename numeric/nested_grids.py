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
from ..runtime.rules import GRID_REACH, NESTED_REACH, Rule

Array = NDArray[np.float64]

# Nodes of lines without kinks multiply: they end where coarser rules do.
_SMOOTH_REACH = NESTED_REACH * GRID_REACH
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


def _cut_line(cuts: Sequence[Array], nodes: int) -> Rule:
    """Rules for many lines at once, each cut at points of its own."""
    last = np.full_like(cuts[0], GRID_REACH)
    ends = np.clip(np.stack([-last, *cuts, last], axis=-1), -GRID_REACH, GRID_REACH)
    points, weights = (x.reshape(len(last), -1).T for x in legendre_panels(ends, nodes))
    return Rule(points, weights * normal_density(points))


@lru_cache(maxsize=32)
def _trapezoids(nodes: int) -> Rule:
    """Equal steps: for analytic integrands the error falls faster than that of Gauss's rule does.

    Rules of Gauss know polynomials; these here hold exponentials of squares.
    """
    rule, weight = trapezoidal_rule(2 * _SMOOTH_REACH / (nodes - 1), _SMOOTH_REACH)
    return Rule(rule, weight / weight.sum())
