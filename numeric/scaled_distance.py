r"""The squared distance of two functions under the normal law, one of them rescaled.

.. math:: J(h) = \mathbb{E}_t\big(f(t) - g(ht)\big)^2

for a g that varies on the scale 1, as the functions of :mod:`.smoothed` do. f and g are resolved by
polynomials on panels, once; for each h the panels of f and those of g(h ·) together make a rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..runtime.quadrature import REACH, legendre_panels, normal_density
from .smoothed import merged_panels, resolved_panels

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

_LONGEST = 256
_WIDTH = 1.5
_TYPICAL = np.linspace(-3.0, 3.0, 61)
_MOST_INTERVALS = 4096


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


@dataclass(frozen=True)
class Scan:
    """Where the minima of J can be.

    Attributes
    ----------
    points, values : array
        Scanned h, in ascending order, and J there.
    brackets : tuple of (float, float)
        Around the scanned local minima that may be the least.
    remaining : tuple of (float, float)
        Intervals outside of which J is larger than at the best point, by the bound on the slope of
        its root.
    """

    points: Array
    values: Array
    brackets: tuple[tuple[float, float], ...]
    remaining: tuple[tuple[float, float], ...]


def scan(
    value: Callable[[float], float],
    points: Sequence[float],
    *,
    steepness: Callable[[float, float], float],
    rounds: int = 8,
    slack: float = 1e-9,
) -> Scan:
    r"""Look for the least value of a function whose root has known Lipschitz constants.

    Parameters
    ----------
    value : callable
        J(h) >= 0.
    points : sequence of float
        Where to start, ascending.
    steepness : callable
        L(a, b), such that :math:`\sqrt J` has at most this slope between a and b.
    rounds : int
        How often the intervals that are not excluded are halved.
    slack : float
        Values closer than this, relatively, count as equal.
    """
    known = {float(h): _finite(value(float(h))) for h in points}
    open_intervals = [(a, b, steepness(a, b)) for a, b in pairwise(map(float, points))]
    for last in range(rounds, -1, -1):
        best = min(known.values())
        open_intervals = [i for i in open_intervals if not _excluded(i, known, best)]
        if last == 0 or 2 * len(open_intervals) > _MOST_INTERVALS:
            break
        halves = []
        for a, b, constant in open_intervals:
            middle = (a + b) / 2
            known[middle] = _finite(value(middle))
            halves += [(a, middle, constant), (middle, b, constant)]
        open_intervals = halves
    h = np.array(sorted(known))
    values = np.array([known[x] for x in h])
    best = values.min()
    tolerance = slack * (1 + best)
    candidates = [
        i
        for i in range(len(h))
        if values[i] <= values[max(i - 1, 0)]
        and values[i] <= values[min(i + 1, len(h) - 1)]
        and _may_be_least(i, values, best, tolerance)
    ]
    brackets = tuple(
        (float(h[max(i - 1, 0)]), float(h[min(i + 1, len(h) - 1)])) for i in candidates
    )
    return Scan(h, values, brackets, _merged([(a, b) for a, b, _ in open_intervals]))


def _merged(intervals: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return the union of intervals that are in ascending order."""
    found: list[tuple[float, float]] = []
    for a, b in intervals:
        if found and found[-1][1] == a:
            found[-1] = (found[-1][0], b)
        else:
            found.append((a, b))
    return tuple(found)


def _may_be_least(i: int, values: Array, best: float, tolerance: float) -> bool:
    if values[i] <= best + tolerance:
        return True
    # How far a minimum between the neighbours can be below what was seen.
    left, right = max(i - 1, 0), min(i + 1, len(values) - 1)
    drop = max(values[left], values[right]) - values[i]
    return bool(values[i] - drop <= best)


def _excluded(interval: tuple[float, float, float], known: dict[float, float], best: float) -> bool:
    a, b, steepness = interval
    bound = (math.sqrt(known[a]) + math.sqrt(known[b]) - steepness * (b - a)) / 2
    return bound > 0 and bound**2 > best


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.inf
