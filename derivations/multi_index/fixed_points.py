r"""Fixed points: the curve :math:`\alpha(q)` of one index, overlap matrices of several.

For one index no equation is solved to draw the diagram: for each overlap the sample complexity is
explicit. AMP ends at the first overlap, coming from 0, at which the curve reaches α; Bayes at the
stationary point of the largest free entropy. Spinodals are stationary points of the curve. Overlap
matrices are iterated on a rough level of quadrature, and found by Newton's method on the finer one,
with the slopes of the rough one; on which levels, the counted work of an average decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray
from scipy.optimize import brentq

from ...errors import ConvergenceError, UnsupportedExpressionError
from ...symbolic.printing.compiled import compiled
from . import physics
from .channels import Channel
from .line_averages import PANELS, LineAverages
from .plane_averages import COARSE, FINER, LEVELS, ROUGH, USED, Informed, PlaneAverages

Array = NDArray[np.float64]

_LOGITS = np.arange(-9.0, 7.01, 0.5)
_FARTHEST = 11.0
_RESOLVED = 1e-11
_AROUND, _DEGREE = 0.25, 14
_XTOL, _RTOL = 1e-15, 8.9e-16
_MOST_ITERATIONS = 3000
_TOLERANCE, _SETTLED = 1e-12, 1e-7
# When Newton's method takes over: what remains, and how steady the rate has to be.
_REMAINING, _STEADY = 0.03, 0.02
_CERTAIN = 1 - 1e-12
_DIFFERENCE, _NEWTON, _SAME, _RESOLVED_MATRIX = 1e-4, 12, 1e-6, 1e-7
_LOOKED_AT = (0.02, 0.2, 0.4, 0.6, 0.75, 0.85, 0.93, 0.98)
_SMALL = 1e-3
_LEAST_ALPHA, _LARGEST_ALPHA = 0.05, 60.0
# Multiplications of an average that is iterated, some fifty times, and of one that is used, a few
# times. Sums over three directions run longer for each entry.
_ITERATED, _USED = {2: 2e10, 3: 5e9}, {2: 4e11, 3: 1e10}
# The closer to 1, the sharper labels are seen: grids of means grow as (1 − q)^(-K/2).
_INFORMED = (0.98, 0.95, 0.9, 0.8)


@dataclass(frozen=True)
class Reached:
    """Overlaps at one sample complexity.

    Attributes
    ----------
    overlaps : tuple of float
        All fixed points above 0 that were found, increasing; 1 is exact recovery.
    amp, bayes : float
    """

    overlaps: tuple[float, ...]
    amp: float
    bayes: float


class FixedPoints:
    """The fixed points of a channel of one direction.

    Parameters
    ----------
    channel : Channel
    starts : bool
        Whether labels show the direction at first order: I(0) > 0, as decided exactly.
    """

    def __init__(self, channel: Channel, *, starts: bool) -> None:
        self.channel, self.starts = channel, starts
        self._known: dict[float, tuple[float, float]] = {}

    @cached_property
    def _levels(self) -> tuple[LineAverages, LineAverages]:
        """The averages that are used, and finer ones that tell their error."""
        levels = [LineAverages(self.channel, k) for k in range(1, len(PANELS))]
        # At overlap 0 the whole law is averaged at once, where labels show anything there.
        compared = (0.0,) * self.starts + (0.3, 0.6, 0.83, 0.95)
        for coarse, fine in pairwise(levels):
            changes = [abs(coarse.at(q)[0] / fine.at(q)[0] - 1) for q in compared]
            if max(changes) < _RESOLVED:
                return coarse, fine
        return levels[-1], levels[-2]

    @property
    def averages(self) -> LineAverages:
        """Averages over labels."""
        return self._levels[0]

    def at(self, overlap: float) -> tuple[float, float]:
        """Return I(q) and Ψ(q)."""
        if overlap not in self._known:
            self._known[overlap] = self.averages.at(overlap)
        return self._known[overlap]

    def information_error(self, overlap: float) -> float:
        """Return how far two levels of quadrature are apart in I, relative to I."""
        found = self.at(overlap)[0]
        return abs(self._levels[1].at(overlap)[0] / found - 1) if found else 0.0

    def error(self, overlap: float) -> float:
        """Return the estimated error of a fixed point, which grows where α(q) is flat."""
        if not 0 < overlap < 1:
            # No learning and exact recovery are known exactly.
            return 1e-18
        step = 1e-3 * overlap * (1 - overlap)
        ends = [self._roughly(overlap + sign * step) for sign in (-1, 1)]
        rise = abs(ends[1] - ends[0]) / (step * sum(ends))
        moved = 2 / rise if rise else math.inf
        relative = max(self.information_error(overlap), 1e-15)
        return relative * max(overlap * (1 - overlap) * 4, moved, 1e-3)

    def alpha(self, overlap: float) -> float:
        """Return the sample complexity whose fixed point has this overlap."""
        return float(_sample_complexity(overlap, self.at(overlap)[0]))

    def free_entropy(self, overlap: float, alpha: float, *, rough: bool = False) -> float:
        """Return φ(q), on request by the coarsest quadrature; infinite at exact recovery."""
        if overlap >= 1:
            return math.inf
        found = self._rough.at(overlap) if rough else self.at(overlap)
        return float(_free_entropy(overlap, alpha, found[1]))

    @cached_property
    def recovery(self) -> float:
        """Sample complexity at which exact recovery becomes a fixed point; infinite with noise."""
        if not self.channel.is_certain:
            return math.inf
        flat = sum(
            0.5 * (math.erf(float(p.high) / math.sqrt(2)) - math.erf(float(p.low) / math.sqrt(2)))
            for p in self.channel.pieces if p.is_constant
        )  # fmt: skip
        return 1 / (1 - flat)

    # ------------------------------------------------------------------ the curve

    @cached_property
    def _rough(self) -> LineAverages:
        return LineAverages(self.channel)

    def _roughly(self, overlap: float) -> float:
        return float(_sample_complexity(overlap, self._rough.at(overlap)[0]))

    @cached_property
    def _grid(self) -> tuple[Array, Array]:
        q = 1 / (1 + np.exp(-_LOGITS))
        return q, np.array([self._roughly(x) for x in q.tolist()])

    def _extended(self, alpha: float) -> tuple[Array, Array]:
        """Return the curve up to where it has passed α for the last time, if it does."""
        q, a = self._grid
        logit = float(_LOGITS[-1])
        while a[-1] < alpha < self.recovery and logit < _FARTHEST:
            logit += 0.5
            more = 1 / (1 + math.exp(-logit))
            q, a = np.append(q, more), np.append(a, self._roughly(more))
        return q, a

    def reached(self, alpha: float) -> Reached:
        """Return all fixed points, that of AMP and that of Bayes."""
        q, a = self._with_turns(alpha, *self._extended(alpha))
        if self.starts:
            q, a = np.append(0.0, q), np.append(0.0, a)
        roots = []
        for k in np.flatnonzero((a[:-1] < alpha) != (a[1:] < alpha)):
            roots.append(self._root(alpha, float(q[k]), float(q[k + 1])))
        if alpha > self.recovery:
            roots.append(1.0)
        elif not len(roots) and a[-1] < alpha:
            raise ConvergenceError(
                f"alpha = {alpha:g} is so large that the overlap is within {1 - q[-1]:.1g} of 1, "
                "where quadrature does not resolve the layer of the labels; use a smaller alpha"
            )
        first = self._first(alpha, roots, float(a[0] if not self.starts else 0.0))
        # The trivial solution is one where labels show nothing at first order.
        candidates = [*roots] if self.starts else [0.0, *roots]
        best = max(candidates, key=lambda x: self.free_entropy(x, alpha))
        return Reached(tuple(roots), first, best)

    def _with_turns(self, alpha: float, q: Array, a: Array) -> tuple[Array, Array]:
        """Return the curve with its spinodals where α is between one and the next point."""
        rises = np.diff(a)
        turns = np.flatnonzero(rises[:-1] * rises[1:] < 0) + 1
        beyond = (alpha - a[turns]) * np.sign(rises[turns - 1])
        steps = np.maximum(abs(rises[turns - 1]), abs(rises[turns]))
        if not np.any((beyond >= 0) & (beyond < steps)):
            return q, a
        more = np.array(self.spinodals).T if self.spinodals else np.empty((2, 0))
        order = np.argsort(np.append(q, more[0]))
        return np.append(q, more[0])[order], np.append(a, more[1])[order]

    def _root(self, alpha: float, low: float, high: float) -> float:
        """Return the overlap between two points of the rough curve, by the accurate one."""

        def roughly(x: float) -> float:
            return (self._roughly(x) if x else 0.0) - alpha

        def accurately(x: float) -> float:
            return (self.alpha(x) if x else 0.0) - alpha

        near, brackets = (low + high) / 2, [(low, high)]
        # At a spinodal the rough curve may stay on one side.
        if roughly(low) * roughly(high) <= 0:
            near = brentq(roughly, low, high, xtol=1e-9)
            widths = [1e-6 * 30**k * min(near, 1 - near) for k in range(8)]
            brackets = [(max(near - w, low), min(near + w, high)) for w in widths]
        for a, b in brackets:
            if accurately(a) * accurately(b) <= 0:
                return float(brentq(accurately, a, b, xtol=_XTOL, rtol=_RTOL))
        raise ConvergenceError(
            f"alpha = {alpha:.10g} is so close to a spinodal that the overlap near {near:.6g} is "
            "not resolved; move it a little"
        )

    def _first(self, alpha: float, roots: list[float], at_zero: float) -> float:
        if not self.starts and alpha <= at_zero:
            return 0.0
        return roots[0]

    @cached_property
    def spinodals(self) -> tuple[tuple[float, float], ...]:
        """Stationary points (q, α) of the curve."""
        q, a = self._grid
        found = []
        for k in range(1, len(q) - 1):
            if (a[k] - a[k - 1]) * (a[k + 1] - a[k]) < 0:
                low, high = _LOGITS[k - 1], _LOGITS[k + 1]
                for _ in range(2):
                    fitted = Chebyshev.interpolate(
                        lambda t: np.array([
                            self.alpha(x) for x in (1 / (1 + np.exp(-t))).tolist()
                        ]), _DEGREE, [low, high],
                    )  # fmt: skip
                    roots = fitted.deriv().roots()
                    inside = [
                        float(r.real) for r in roots
                        if abs(r.imag) < 1e-6 and low < r.real < high
                    ]  # fmt: skip
                    if not inside:
                        break
                    low, high = inside[0] - _AROUND / 2, inside[0] + _AROUND / 2
                if inside:
                    at = 1 / (1 + math.exp(-inside[0]))
                    found.append((at, self.alpha(at)))
        return tuple(found)

    @cached_property
    def first_order(self) -> float | None:
        """The α at which Bayes leaves the branch of AMP discontinuously; None without a jump."""
        turns = sorted(self.spinodals, key=lambda turn: turn[1])
        if len(turns) < 2:
            return self.recovery if turns and self.recovery < turns[0][1] else None
        (begins, low), (ends_at, top) = turns[0], turns[-1]

        def difference(alpha: float) -> float:
            # Below its spinodal the branch of AMP may be 0, which is none of the overlaps.
            found = self.reached(alpha)
            below, above = min(found.amp, ends_at), max((begins, *found.overlaps))
            return self.free_entropy(below, alpha) - self.free_entropy(above, alpha)

        margin = 1e-6 * (top - low)
        ends = difference(low + margin), difference(top - margin)
        if ends[0] * ends[1] > 0:
            return None
        return float(brentq(difference, low + margin, top - margin, xtol=1e-12))


_sample_complexity = compiled(
    physics.sample_complexity(physics.q, physics.information), (physics.q, physics.information),
    "python",
)  # fmt: skip
_PSI = physics.sp.Symbol("Psi", real=True)
_free_entropy = compiled(
    physics.free_entropy_at_overlap(_PSI), (physics.q, physics.alpha, _PSI), "python"
)


# ---------------------------------------------------------------------- several directions


class MatrixFixedPoints:
    """The fixed points of a channel of two or three directions.

    Parameters
    ----------
    channel : Channel

    Attributes
    ----------
    levels : tuple of PlaneAverages
        Rough, used, finer, and coarse averages.

    Raises
    ------
    UnsupportedExpressionError
        If averages of these labels are not supported.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._known: dict[tuple[int, bytes], Informed] = {}
        self.levels = tuple(PlaneAverages(channel, k) for k in range(len(LEVELS)))

    def reached(self, alpha: float, starts: Sequence[Array]) -> list[Array]:
        """Return the overlap matrices that state evolution reaches from starts.

        Raises
        ------
        ConvergenceError
            If it has not settled.
        """
        one = np.eye(len(starts[0]))
        level = self._iterated(self.informed * one)
        assert level is not None
        settled: list[tuple[Array, Array]] = []
        found: list[Array] = []
        for start in starts:
            near, slopes = self._settled(self._map(level, alpha, one), start, alpha, settled)
            same = [x for x, (y, _) in zip(found, settled, strict=True) if _is_same(near, y)]
            used = self._map(self.level(near), alpha, one)
            found.append(same[0] if same else self._refined(used, near, slopes, alpha))
            settled.append((near, slopes))
        return found

    @cached_property
    def informed(self) -> float:
        """Overlap from which the solution with information is looked for.

        Raises
        ------
        UnsupportedExpressionError
            If averages over these labels take too much work.
        """
        one = np.eye(self.channel.directions)
        for overlap in _INFORMED:
            if self._iterated(overlap * one) is not None:
                return overlap
        work, most = self.levels[COARSE].work(overlap * one), _ITERATED[len(one)]
        raise UnsupportedExpressionError(
            f"the law {self.channel.name!r} is too sharp for {len(one)} directions: an average at "
            f"overlap {overlap:g} takes {work:.1g} multiplications, {most:.0g} are supported; "
            "give a larger noise_variance, or a target of fewer directions"
        )

    def _iterated(self, overlap: Array) -> int | None:
        """Return the level on which state evolution is iterated; None if none is affordable."""
        most = _ITERATED[len(overlap)]
        return next((k for k in (ROUGH, COARSE) if self.levels[k].work(overlap) <= most), None)

    def level(self, overlap: Array) -> int:
        """Return the level of the averages that are used at an overlap matrix."""
        if np.linalg.eigvalsh(overlap)[0] > _CERTAIN:
            return USED
        return USED if self.levels[USED].work(overlap) <= _USED[len(overlap)] else ROUGH

    def dual(self, overlap: Array) -> float:
        """Return E[f(u) f(u')] for normal u, u' with covariance Q."""
        return self.levels[self.level(overlap)].dual(overlap)

    def at(self, level: int, overlap: Array) -> Informed:
        """Return what labels say at an overlap matrix, once for each."""
        key = level, overlap.tobytes()
        if key not in self._known:
            self._known[key] = self.levels[level].at(overlap)
        return self._known[key]

    def free_entropy(self, overlap: Array, alpha: float) -> float:
        """Return φ(Q)."""
        average = self.at(self.level(overlap), overlap).free_energy
        rest = np.eye(len(overlap)) - overlap
        return float(np.trace(overlap) / 2 + np.linalg.slogdet(rest)[1] / 2 + alpha * average)

    def error(self, overlap: Array, alpha: float) -> float:
        """Return how far two levels of quadrature are apart in the iterated overlap matrix."""
        level = self.level(overlap)
        other = FINER if level == USED else COARSE
        found, beside = (self._map(k, alpha, np.eye(len(overlap)))(overlap) for k in (level, other))
        return float(np.abs(found - beside).max())

    def specialisation(self, known: Array) -> tuple[float, ...]:
        """Return the overlaps along known directions, and α, at which others begin to be learned.

        The fixed point of the known directions alone meets the threshold of the others given it:
        of one known direction both are explicit in its overlap.

        Parameters
        ----------
        known : array (K, r)
            Orthonormal columns.
        """
        name = self.channel.name
        if known.shape[1] == 1:
            projector = known @ known.T

            def apart(overlap: float, level: int) -> tuple[float, float]:
                averages, matrix = self.levels[level], overlap * projector
                shown = float((known.T @ self.at(level, matrix).information @ known)[0, 0])
                own = float(_sample_complexity(overlap, shown))
                others = float(np.linalg.eigvalsh(averages.operator(matrix, known)).max())
                return own - 1 / others, own

            roughly = [apart(q, 0)[0] for q in _LOOKED_AT]
            for k in np.flatnonzero((np.array(roughly[:-1]) < 0) & (np.array(roughly[1:]) >= 0)):
                near = brentq(lambda q: apart(q, 0)[0], _LOOKED_AT[k], _LOOKED_AT[k + 1], xtol=1e-9)
                low, high = near - 1e-4 * (1 - near), near + 1e-4 * (1 - near)
                q = float(brentq(lambda q: apart(q, 1)[0], low, high, xtol=_XTOL, rtol=_RTOL))
                return q, apart(q, 1)[1]
            raise ConvergenceError(
                f"the other directions of {name!r} have no threshold for overlaps up to "
                f"{_LOOKED_AT[-1]:g}"
            )

        def excess(alpha: float, levels: tuple[int, int]) -> tuple[float, Array]:
            rough, used = (self._map(k, alpha, known) for k in levels)
            matrix, slopes = self._settled(rough, _SMALL * np.eye(len(known)), alpha)
            if levels[1]:
                matrix = self._refined(used, matrix, slopes, alpha)
            shown = np.linalg.eigvalsh(self.levels[levels[1]].operator(matrix, known)).max()
            return alpha * float(shown) - 1, matrix

        low, high = _LEAST_ALPHA, 2 * _LEAST_ALPHA
        while excess(high, (0, 0))[0] < 0:
            low, high = high, 1.6 * high
            if high > _LARGEST_ALPHA:
                raise ConvergenceError(
                    f"the other directions of {name!r} have no threshold for alpha up to "
                    f"{_LARGEST_ALPHA:g}"
                )
        near = brentq(lambda a: excess(a, (0, 0))[0], low, high, xtol=1e-7)
        alpha = float(
            brentq(lambda a: excess(a, (0, 1))[0], near * 0.9999, near * 1.0001, xtol=1e-11)
        )
        overlaps = np.linalg.eigvalsh(known.T @ excess(alpha, (0, 1))[1] @ known)
        return *overlaps.tolist(), alpha

    def _map(self, level: int, alpha: float, directions: Array) -> Callable[[Array], Array]:
        """Return an iteration of state evolution within some directions."""
        one = np.eye(directions.shape[1])

        def iterated(overlap: Array) -> Array:
            shown = directions.T @ self.at(level, overlap).information @ directions
            inside = one - np.linalg.inv(one + alpha * shown)
            found = directions @ inside @ directions.T
            return np.asarray((found + found.T) / 2)

        return iterated

    def _settled(
        self, iteration: Callable[[Array], Array], start: Array, alpha: float,
        known: Sequence[tuple[Array, Array]] = (),
    ) -> tuple[Array, Array]:  # fmt: skip
        """Return the fixed point that is reached, and the slopes of the iteration there.

        Next to a known one its slopes are taken.
        """
        matrix, last, ratio = start, math.inf, math.inf
        for _ in range(_MOST_ITERATIONS):
            new = iteration(matrix)
            change = float(np.abs(new - matrix).max())
            before, ratio = ratio, change / last
            matrix, last = new, change
            # What is left of a geometric series has to be small for Newton to stay on its branch.
            steady = ratio < 1 and abs(ratio - before) < _STEADY
            if change < _SETTLED or (steady and change / (1 - ratio) < _REMAINING):
                for stable, around in known:
                    if np.abs(matrix - stable).max() < _REMAINING:
                        found = _by_newton(iteration, matrix, around)
                        if found is not None and _is_same(found, stable):
                            return stable, around
                found = _by_newton(iteration, matrix, _slopes(iteration, matrix))
                slopes = None if found is None else _slopes(iteration, found)
                if slopes is not None and np.abs(np.linalg.eigvals(slopes)).max() < 1:
                    assert found is not None
                    return found, slopes
                if change < _SETTLED:
                    break
        raise self._near_threshold(alpha)

    def _refined(
        self, iteration: Callable[[Array], Array], start: Array, slopes: Array, alpha: float
    ) -> Array:
        found = _by_newton(iteration, start, slopes)
        if found is None:
            raise self._near_threshold(alpha)
        return found

    def _near_threshold(self, alpha: float) -> ConvergenceError:
        return ConvergenceError(
            f"state evolution of {self.channel.name!r} has not settled at alpha = {alpha:g}, which "
            "is near a threshold; use another one"
        )


def _is_same(first: Array, second: Array) -> bool:
    return bool(np.abs(first - second).max() < _SAME)


def _entries(matrix: Array) -> Array:
    return matrix[np.triu_indices(len(matrix))]


def _symmetric(entries: Array, size: int) -> Array:
    upper = np.zeros((size, size))
    upper[np.triu_indices(size)] = entries
    return upper + np.triu(upper, 1).T


def _slopes(iteration: Callable[[Array], Array], at: Array) -> Array:
    """Return the derivatives of an iteration between the entries of symmetric matrices."""
    x, size = _entries(at), len(at)
    ends = [
        [_entries(iteration(_symmetric(x + side * unit, size))) for side in (1, -1)]
        for unit in _DIFFERENCE * np.eye(len(x))
    ]
    return np.column_stack([(above - below) / (2 * _DIFFERENCE) for above, below in ends])


def _by_newton(iteration: Callable[[Array], Array], start: Array, slopes: Array) -> Array | None:
    """Return the fixed point next to a start, None if there is none."""
    found, last = (x := _entries(start)), math.inf
    for _ in range(_NEWTON):
        step = _entries(iteration(_symmetric(found, len(start)))) - found
        change = float(np.abs(step).max())
        # Where two overlaps are equal their directions are not, and quadrature not smooth.
        if change < _TOLERANCE or last / 2 < change < _RESOLVED_MATRIX:
            return _symmetric(found, len(start))
        found, last = found + np.linalg.solve(np.eye(len(x)) - slopes, step), change
        if not np.abs(found - x).max() < 3 * _REMAINING:
            break
    return None
