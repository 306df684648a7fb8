r"""Quadrature on contours that pass poles close to the real axis.

A sum over nodes on the line is useless where the integrand has a pole much closer to the line
than the nodes are to each other. Tables of analytic functions determine their continuation near
the line, so the line can be moved away from the pole: to points t + i s(t) with s of the sign that
makes the imaginary part of the denominator larger, which leaves all poles on their side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..runtime.quadrature import REACH

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]

# In units of the width over which the tables vary: how far the line is moved, its nodes, and the
# nodes of the tables.
_SHIFT = 0.16
_STEP = 0.03
_TABLE_STEP = 0.08
_STENCIL = 16
# A slope of the logarithm of the denominator, in units of the width, that counts as large.
_SLOPE = 0.4
# Central differences of eighth order.
_DIFFERENCES = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])


@dataclass(frozen=True)
class Nodes:
    """Nodes, real or complex, with weights that hold the normal density, and tables there."""

    weight: Any
    node: Any
    tables: dict[str, Any]


class AnalyticTables:
    """Real tables that are known near the real axis as well.

    Parameters
    ----------
    tabulate : callable
        Returns {name: values} at real nodes; the functions are analytic.
    width : float
        Scale over which they vary.
    """

    def __init__(self, tabulate: Callable[[Real], Mapping[str, Real]], width: float) -> None:
        self._step = _TABLE_STEP * width
        half = int(np.ceil(REACH / self._step)) + _STENCIL
        self._x = self._step * np.arange(-half, half + 1)
        self._tables = {
            k: np.asarray(v) for k, v in tabulate(np.asarray(self._x, dtype=np.float64)).items()
        }
        self._width = width
        self._lines: dict[int, tuple[Real, dict[str, Complex]]] = {}

    def line(self, refinement: int) -> tuple[Real, dict[str, Complex]]:
        """Return real nodes and the tables there; each refinement has three times as many."""
        if refinement not in self._lines:
            step = _STEP * self._width / 3**refinement
            count = int(np.ceil(REACH / step))
            nodes = step * np.arange(-count, count + 1)
            self._lines[refinement] = nodes, self.at(nodes.astype(complex))
        return self._lines[refinement]

    def at(self, points: Complex) -> dict[str, Complex]:
        """Return the tables at points near the line, from the polynomial through 16 values."""
        offset = points / self._step - self._x[0] / self._step
        first = np.floor(offset.real).astype(int) - _STENCIL // 2 + 1
        first = np.clip(first, 0, len(self._x) - _STENCIL)
        columns = first[:, None] + np.arange(_STENCIL)
        distance = offset[:, None] - columns
        exact = np.abs(distance) < 1e-13
        # Barycentric weights of equidistant points.
        signs = np.array([(-1.0) ** k * math.comb(_STENCIL - 1, k) for k in range(_STENCIL)])
        terms = signs / np.where(exact, 1.0, distance)
        hit = exact.any(axis=1)
        terms[hit] = exact[hit]
        terms /= terms.sum(axis=1, keepdims=True)
        return {k: np.sum(terms * v[columns], axis=1) for k, v in self._tables.items()}

    def contour(
        self,
        denominator: Callable[[Complex, dict[str, Complex]], Complex],
        shift: float = 1.0,
        refinement: int = 0,
    ) -> Nodes | None:
        """Return nodes on a contour that passes the zeros of a denominator.

        Parameters
        ----------
        denominator : callable
            (node, tables) -> values; its imaginary part on the line is not negative.
        shift : float
            How far the line is moved, in units of what is usual.
        refinement : int
            How fine the nodes are.

        Returns
        -------
        Nodes or None
            None if a zero lies between line and contour.
        """
        line, tables = self.line(refinement)
        step = line[1] - line[0]
        with np.errstate(all="ignore"):
            on_line = denominator(line.astype(complex), tables)
            value = on_line.real
            slope = np.convolve(np.pad(value, 4, mode="edge"), _DIFFERENCES[::-1], "valid") / step
            relative = self._width * slope / np.sqrt(1 + (value - 1) ** 2)
            move = relative / np.sqrt(relative**2 + _SLOPE**2)
        move = shift * _SHIFT * self._width * move
        rate = np.convolve(np.pad(move, 4, mode="edge"), _DIFFERENCES[::-1], "valid") / step
        node = line + 1j * move
        tables = self.at(node)
        moved = denominator(node, tables)
        if not np.isfinite(moved).all():
            return None
        turns = np.abs(np.sum(np.angle(moved[1:] / moved[:-1])))
        if turns > 1.5 * np.pi:
            return None
        weight = step * np.exp(-(node**2) / 2) / np.sqrt(2 * np.pi) * (1 + 1j * rate)
        return Nodes(weight, node, tables)
