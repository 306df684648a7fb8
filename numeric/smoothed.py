r"""A function averaged over a normal shift, g(s) = E q(s + ξ), as a table of polynomials.

g is an entire function that varies on the scale 1, whatever q is. On each unit cell it is a
polynomial to rounding; its values come from moments of q on the unit panels around the cell,

.. math:: g(s) = \sum_m \sum_k q_{mk}\,\varphi_k(s - m), \qquad
          q_{mk} = \int_m^{m+1} q(v)\,P_k(2(v - m) - 1)\,dv,

with Legendre polynomials P_k and the expansion of the normal density in them, which is the same for
all panels. q is evaluated once, however many values of g are asked for.
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

from ..runtime.quadrature import REACH, normal_density
from .resolved_panels import panel_rule, resolved_panels

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

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
        v, q = panel_rule(edges)
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
