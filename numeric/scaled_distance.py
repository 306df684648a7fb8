r"""The squared distance of two functions under the normal law, one of them rescaled.

.. math:: J(h) = \mathbb{E}_t\big(f(t) - g(ht)\big)^2

for a g that varies on the scale 1, as the functions of :mod:`.smoothed` do. f and g are resolved by
polynomials on panels, once; for each h the panels of f and those of g(h ·) together make a rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..runtime.quadrature import REACH, legendre_panels, normal_density
from .smoothed import merged_panels, resolved_panels

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

_LONGEST = 256
_WIDTH = 1.5
_TYPICAL = np.linspace(-3.0, 3.0, 61)


@dataclass(frozen=True)
class ScaledDistance:
    r"""The squared distance J(h), its derivative, and how fast it can change.

    Attributes
    ----------
    function : callable
        f, vectorised.
    kinks : tuple of float
        Where f is not analytic.
    smoothed, slope : callable
        g and its derivative, vectorised.
    """

    function: Function
    kinks: tuple[float, ...]
    smoothed: Function
    slope: Function
    _panels: dict[int, Array] = field(default_factory=dict, compare=False, repr=False)

    def value(self, h: float, refinement: int = 0) -> float:
        """Return J(h); each `refinement` halves all panels."""
        _, w, difference = self._difference(h, refinement)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.sum(w * difference**2))

    def derivative(self, h: float, refinement: int = 0) -> float:
        """Return J'(h)."""
        t, w, difference = self._difference(h, refinement)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(-2 * np.sum(w * difference * t * self.slope(h * t)))

    @cached_property
    def panels(self) -> Array:
        """Edges of panels on which f is resolved.

        Raises
        ------
        ConvergenceError
            If they would have to be too short.
        """
        count = 2 * math.ceil(REACH / _WIDTH)
        inside = [k for k in self.kinks if abs(k) < REACH]
        edges = np.unique(np.concatenate([np.linspace(-REACH, REACH, count + 1), inside]))
        return resolved_panels(self.function, edges, _size(self.function))

    @cached_property
    def size(self) -> float:
        """E f²."""
        t, w = legendre_panels(self.panels)
        f = np.broadcast_to(self.function(t), t.shape)
        return float(np.sum(w * normal_density(t) * f**2))

    @property
    def finest(self) -> float:
        """How many times shorter than usual the shortest panel of f is, kinks apart."""
        return max(1.0, _WIDTH / float(np.median(np.diff(self.panels))))

    def steepness(self, farthest: float) -> Steepness:
        """Return bounds on the slope of the root of J up to an amplitude."""
        return Steepness(self.slope, farthest)

    def _difference(self, h: float, refinement: int) -> tuple[Array, Array, Array]:
        edges = np.union1d(self.panels, self._student_edges(h))
        for _ in range(refinement):
            edges = np.sort(np.concatenate([edges, (edges[1:] + edges[:-1]) / 2]))
        t, w = (part.ravel() for part in legendre_panels(edges))
        w *= normal_density(t)
        with np.errstate(over="ignore", invalid="ignore"):
            f = np.broadcast_to(self.function(t), t.shape)
            return t, w, f - self.smoothed(h * t)

    def _student_edges(self, h: float) -> Array:
        """Edges in t of panels on which g(ht) is resolved."""
        reach = abs(h) * REACH
        if reach <= 1:
            return np.zeros(1)
        end = _LONGEST * 2 ** max(0, math.ceil(math.log2(reach / _LONGEST)))
        # Few different lengths, so that g is resolved a few times only; short ones do not need
        # values of g far out.
        end = min(end, 16 * 2 ** max(0, math.ceil(math.log2(reach / 16))))
        if end not in self._panels:
            self._panels[end] = merged_panels(
                self.smoothed, end, _size(self.smoothed), min(end, _LONGEST)
            )
        edges = self._panels[end]
        return np.sort(edges[np.abs(edges) < reach] / h)


class Steepness:
    r"""How fast :math:`\sqrt J` can change between two amplitudes of the same sign.

    :math:`|\sqrt{J(a)} - \sqrt{J(b)}| \le L\,|a - b|` with :math:`L^2 = \mathbb{E}\,t^2
    \sup\{g'(s)^2 : s\ \text{between}\ at\ \text{and}\ bt\}`, an upper sum over cells of t;
    the supremum is that of a grid of 8 points per unit.

    Parameters
    ----------
    slope : callable
        g'.
    farthest : float
        Of the amplitudes.
    """

    def __init__(self, slope: Function, farthest: float) -> None:
        count = 8 * math.ceil(farthest * REACH + 1)
        s = np.arange(count + 1) / 8
        with np.errstate(over="ignore", invalid="ignore"):
            square = np.maximum(slope(s) ** 2, slope(-s) ** 2)
            # g' varies on the scale 1: between grid points it is less than 1 % larger.
            self._largest = [np.where(np.isnan(square), np.inf, 1.02 * square)]
        # Row k holds the largest of 2^k neighbours.
        while 2 ** len(self._largest) <= count:
            last, shift = self._largest[-1], 2 ** (len(self._largest) - 1)
            self._largest.append(np.maximum(last, np.append(last[shift:], last[-1:].repeat(shift))))
        t = np.linspace(0.0, REACH, 1051)
        self._ends = t[:-1], t[1:]
        self._weights = 2 * t[1:] ** 2 * normal_density(t[:-1]) * np.diff(t)

    def __call__(self, a: float, b: float) -> float:
        """Return L between a and b."""
        inner, outer = sorted((abs(a), abs(b)))
        if a * b < 0:
            inner = 0.0
        top = len(self._largest[0]) - 1
        low = np.floor(8 * inner * self._ends[0]).astype(int)
        high = np.minimum(np.ceil(8 * outer * self._ends[1]).astype(int), top)
        level = np.frexp(high - low + 1)[1] - 1
        largest = np.empty(len(low))
        for k in np.unique(level):
            rows = level == k
            row = self._largest[k]
            largest[rows] = np.maximum(row[low[rows]], row[high[rows] + 1 - 2**k])
        with np.errstate(over="ignore", invalid="ignore"):
            return math.sqrt(float(np.sum(self._weights * largest)))


def _size(function: Function) -> float:
    with np.errstate(all="ignore"):
        values = np.broadcast_to(np.asarray(function(_TYPICAL), dtype=float), _TYPICAL.shape)
    return float(np.max(np.abs(values)))
