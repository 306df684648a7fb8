r"""A function averaged over a normal shift, g(s) = E q(s + ξ), as a table of polynomials.

g is an entire function that varies on the scale 1, whatever q is. On each unit cell it is a
polynomial to rounding; its values come from moments of q on the unit panels around the cell,

.. math:: g(s) = \sum_m \sum_k q_{mk}\,\varphi_k(s - m), \qquad
          q_{mk} = \int_m^{m+1} q(v)\,P_k(2(v - m) - 1)\,dv,

with Legendre polynomials P_k and the expansion of the normal density in them, which is the same for
all panels. q is evaluated once, however many values of g are asked for.

Panels on which a function is a polynomial to rounding, found by halving and by merging.

A panel is resolved if the polynomial of degree 15 through the function's values at the Gauss nodes
predicts its values at the Gauss nodes of both halves. Integrals of such functions, their squares
and their products with polynomials are then exact to rounding on each panel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.polynomial.legendre import leggauss, legvander
from numpy.typing import NDArray

from ..errors import ConvergenceError
from ..runtime.quadrature import PANEL_ORDER, REACH, legendre_panels, normal_density

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

_NODES = legendre_panels(np.array([-1.0, 1.0])).nodes[0]
_HALVES = np.concatenate([(_NODES - 1) / 2, (_NODES + 1) / 2])
# Values at the nodes to values at the nodes of both halves.
_TO_HALVES = legvander(_HALVES, PANEL_ORDER - 1) @ np.linalg.inv(legvander(_NODES, PANEL_ORDER - 1))

_DEEPEST = 14
_MOST_PANELS = 300_000
_ROUNDING = 16 * np.finfo(float).eps
_NOISE = 1e-9
"""Below, relatively, differences that halving does not remove are rounding of the function."""


def _nodes(left: Array, right: Array) -> Array:
    return ((left + right) / 2)[:, None] + ((right - left) / 2)[:, None] * _NODES


def resolved_panels(function: Function, edges: Array, scale: float) -> Array:
    """Halve panels until a function is resolved on each.

    Parameters
    ----------
    function : callable
        Vectorised; where it is not finite nothing is halved.
    edges : array
        Ascending; break points of the function among them.
    scale : float
        Size of the function where it matters; smaller differences than rounding at this size are
        not resolved.

    Returns
    -------
    array
        Ascending edges, those given among them.

    Raises
    ------
    ConvergenceError
        If panels would have to be too short or too many.
    """
    left, right = edges[:-1].astype(float), edges[1:].astype(float)
    done = [edges.astype(float)]
    total = len(left)
    for depth in range(_DEEPEST + 1):
        unresolved, size = _differences(function, left, right, scale)
        if depth == _DEEPEST:
            if np.any(unresolved > _NOISE * size):
                break
            return np.unique(np.concatenate(done))
        open_ = unresolved > 0
        if not open_.any():
            return np.unique(np.concatenate(done))
        left, right = left[open_], right[open_]
        total += len(left)
        if total > _MOST_PANELS:
            break
        middle = (left + right) / 2
        done.append(middle)
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    raise ConvergenceError(
        "the quadrature of a function did not settle: its panels would have to be shorter than "
        f"2^-{_DEEPEST} or more than {_MOST_PANELS}; it may vary too fast or have a singularity "
        "near the real line"
    )


def merged_panels(function: Function, end: int, scale: float, longest: int) -> Array:
    """Return edges of the longest panels from -end to end on which a function is resolved.

    Starts from panels of unit length, so that no feature of that length is missed.

    Parameters
    ----------
    function : callable
        Smooth on the scale 1.
    end : int
        A multiple of `longest`.
    scale : float
        As for :func:`resolved_panels`.
    longest : int
        Power of two; no panel becomes longer.
    """
    edges = np.arange(-end, end + 1, dtype=float)
    kept = [resolved_panels(function, edges, scale)]
    # kept[0] holds halved panels too; only whole units are merged.
    whole = np.isin((edges[:-1] + edges[1:]) / 2, kept[0], invert=True)
    starts, length = edges[:-1][whole], 1
    removed: list[Array] = []
    while length < longest and len(starts) > 1:
        first = starts[np.isin(starts + length, starts) & (starts % (2 * length) == 0)]
        if not len(first):
            break
        unresolved, _ = _differences(function, first, first + 2 * length, scale)
        starts = first[unresolved <= 0]
        removed.append(starts + length)
        length *= 2
    return np.setdiff1d(kept[0], np.concatenate(removed)) if removed else kept[0]


def _differences(
    function: Function, left: Array, right: Array, scale: float
) -> tuple[Array, Array]:
    """Return by how much each panel misses being resolved, not positive if it is, and sizes."""
    with np.errstate(all="ignore"):
        nodes = _nodes(left, right)
        values = _values(function, nodes)
        middle = (left + right) / 2
        finer = np.concatenate([_nodes(left, middle), _nodes(middle, right)], axis=1)
        found = _values(function, finer)
        difference = np.max(np.abs(values @ _TO_HALVES.T - found), axis=1)
        # The argument is rounded too, which matters where the function is steep.
        steep = np.sum(np.abs(np.diff(found, axis=1)), axis=1) / (right - left)
        size = scale + np.max(np.abs(found), axis=1)
        size = size + np.maximum(np.abs(left), np.abs(right)) * steep
        missed = difference - _ROUNDING * size
    return np.where(np.isfinite(missed), missed, 0.0), size


def _values(function: Function, points: Array) -> Array:
    return np.broadcast_to(np.asarray(function(points), dtype=float), points.shape)


_AROUND = math.ceil(REACH)
_DEGREES = 24
_CELL_NODES = 24
_GRANULE = 8
_TYPICAL = np.linspace(-3.0, 3.0, 61)


@dataclass
class Smoothed:
    """A function averaged over a normal shift; the table grows as values are asked for.

    Attributes
    ----------
    function : callable
        q, vectorised.
    kinks : tuple of float
        Where q is not analytic.
    """

    function: Function
    kinks: tuple[float, ...] = ()
    _first: int = field(default=0, init=False)
    _cells: Array = field(default_factory=lambda: np.empty((0, _CELL_NODES)), init=False)

    def __call__(self, points: Array) -> Array:
        """Return g at every entry of an array.

        Raises
        ------
        ConvergenceError
            If q varies too fast or has a singularity near the real line.
        """
        s = np.asarray(points, dtype=float)
        cell = np.floor(s).astype(int)
        self._cover(int(cell.min()), int(cell.max()))
        x = 2 * (s - cell) - 1
        rows = cell - self._first
        # Clenshaw's sum; a column at a time, so that no row is copied.
        after, value = np.zeros_like(x), np.zeros_like(x)
        for k in range(_CELL_NODES - 1, 0, -1):
            value, after = self._cells[rows, k] + 2 * x * value - after, value
        return self._cells[rows, 0] + x * value - after

    def _cover(self, low: int, high: int) -> None:
        last = self._first + len(self._cells)
        low, high = low // _GRANULE * _GRANULE, (high // _GRANULE + 1) * _GRANULE
        if not len(self._cells):
            self._first, self._cells = low, self._built(low, high)
            return
        if low < self._first:
            self._cells = np.concatenate([self._built(low, self._first), self._cells])
            self._first = low
        if high > last:
            self._cells = np.concatenate([self._cells, self._built(last, high)])

    def _built(self, low: int, high: int) -> Array:
        """Return Chebyshev coefficients on the unit cells from low to high."""
        with np.errstate(all="ignore"):
            moments = self._moments(low - _AROUND, high + _AROUND)
            cells = np.zeros((high - low, _CELL_NODES))
            for offset, matrix in enumerate(_densities()):
                cells += moments[offset : offset + high - low] @ matrix
        return cells

    def _moments(self, low: int, high: int) -> Array:
        typical = np.abs(np.broadcast_to(self.function(_TYPICAL), _TYPICAL.shape))
        edges = np.arange(low, high + 1, dtype=float)
        inside = [k for k in self.kinks if low < k < high]
        edges = resolved_panels(
            self.function, np.unique(np.concatenate([edges, inside])), float(np.max(typical))
        )
        unit = np.floor((edges[:-1] + edges[1:]) / 2).astype(int)
        v, q = legendre_panels(edges)
        q *= np.broadcast_to(self.function(v), v.shape)
        moments = np.empty((len(v), _DEGREES))
        x = 2 * (v - unit[:, None]) - 1
        below, here = np.zeros_like(x), np.ones_like(x)
        for k in range(_DEGREES):
            moments[:, k] = np.sum(q * here, axis=1)
            below, here = here, ((2 * k + 1) * x * here - k * below) / (k + 1)
        starts = np.searchsorted(unit, np.arange(low, high))
        return np.add.reduceat(moments, starts, axis=0)


@cache
def _densities() -> tuple[Array, ...]:
    """Matrices from moments on a unit panel to Chebyshev coefficients on a cell, per offset."""
    x = np.cos(np.pi * (np.arange(_CELL_NODES) + 0.5) / _CELL_NODES)
    to_coefficients = np.linalg.inv(chebvander(x, _CELL_NODES - 1)).T
    y, w = leggauss(2 * _DEGREES)
    # Coefficients of a function in P_k: (2k + 1)/2 times its integral with P_k.
    project = legvander(y, _DEGREES - 1) * w[:, None] * (np.arange(_DEGREES) + 0.5)
    return tuple(
        project.T @ normal_density((offset + (y[:, None] + 1) / 2) - (x + 1) / 2) @ to_coefficients
        for offset in range(-_AROUND, _AROUND + 1)
    )
