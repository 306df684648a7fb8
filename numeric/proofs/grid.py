r"""Samples of functions with kinks on panels of the line, with bounds of them on ellipses.

The line is cut at the kinks, where a function changes from one analytic branch to the next, and
divided into panels of a few widths B of the Gaussian that the functions are averaged with; a panel
is halved until a Gauss–Legendre rule of moderate order suffices for all functions. Kinks are
balls: the panels end at the exact ends of these balls, and what lies inside is bounded crudely.
Panels are made when they are first asked for, and kept.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...ball_library import require_flint
from ...errors import CertificationError, ParameterError
from .panels import (
    RADII,
    ROUGH_BITS,
    Ball,
    TailBound,
    WorkLimitError,
    disjoint_gaps,
    error_constant,
    half_ellipse,
    highest_order,
    legendre_rule,
    log_size,
    modulus,
    nodes_needed,
    order_for,
    placed,
    semi_axes,
)

# Half a panel in units of B: the Gaussian grows by exp(b²·1.5²/2) on its ellipse.
_HALF = 1.5
_DEEPEST = 60
_LONGEST_SEGMENT = 2.0**45
# The largest ellipses are of use to outer panels with smooth integrands only.
_RADII = tuple(rho for rho in RADII if rho <= 11)
# Where a function is looked at to set the scale of its errors, in units of B.
_AROUND = tuple(k / 2 for k in range(-8, 9))


@dataclass(frozen=True)
class Branch:
    """What a function is equal to between two points.

    Attributes
    ----------
    function : callable
        ``function(x, analytic)`` maps an acb to an acb that contains all values on it; if
        `analytic`, it is not finite unless the branch is analytic on the whole ball.
    left, right : ball or None
        The ends, real; None for infinity.
    """

    function: Callable[[Ball, bool], Ball]
    left: Ball | None
    right: Ball | None


@dataclass(frozen=True)
class BranchedFunction:
    r"""A function, real on the line, by its analytic branches.

    Attributes
    ----------
    branches : tuple of Branch
        From left to right; they cover the line.
    tails : pair of TailBound, or None
        Bounds of \\|F(u)\\| by \\|u\\| for u → −∞ and u → ∞; needed under a Gaussian average.

    Raises
    ------
    ParameterError
        If the first and last branch do not reach to infinity, or an end between is missing.
    """

    branches: tuple[Branch, ...]
    tails: tuple[TailBound, TailBound] | None = None

    def __post_init__(self) -> None:
        ends = [end for b in self.branches for end in (b.left, b.right)]
        if not ends or ends[0] is not None or ends[-1] is not None or None in ends[1:-1]:
            raise ParameterError("branches have to cover the line, from None to None")

    @property
    def kinks(self) -> list[Ball]:
        """Where branches meet, once from either side."""
        return [end for b in self.branches for end in (b.left, b.right) if end is not None]

    def between(self, left: Ball, right: Ball) -> Callable[[Ball, bool], Ball]:
        """Return the analytic function that holds on an interval.

        Raises
        ------
        CertificationError
            If no single branch is proven to hold there.
        """
        for branch in self.branches:
            begins = branch.left is None or bool(branch.left <= left)
            if begins and (branch.right is None or bool(branch.right >= right)):
                return branch.function
        raise CertificationError(
            f"no branch of the function is proven to hold on [{left}, {right}]"
        )

    def enclosed(self, x: Ball) -> Ball:
        """Return a complex ball with all values on a real ball, over kinks if need be."""
        result = None
        for branch in self.branches:
            beyond_left = branch.left is not None and bool(x < branch.left)
            if beyond_left or (branch.right is not None and bool(x > branch.right)):
                continue
            value = branch.function(require_flint().acb(x), False)
            result = value if result is None else result.union(value)
        if result is None:
            raise CertificationError(f"no branch of the function holds at {x}")
        return result

    def largest(self, left: Ball, right: Ball) -> Ball:
        """Bound the function on an interval; infinite if no bound is found."""
        pieces = [(left, right, 0)]
        largest = require_flint().arb(0)
        while pieces:
            start, end, depth = pieces.pop()
            size = modulus(self.enclosed(start.union(end)))
            if size.is_finite() or depth == _DEEPEST // 4:
                if not size.is_finite():
                    return require_flint().arb.pos_inf()
                largest = largest.max(size)
                continue
            middle = ((start + end) / 2).mid()
            pieces += [(start, middle, depth + 1), (middle, end, depth + 1)]
        return largest.upper()


@dataclass(frozen=True)
class GridPanel:
    """A panel with its samples, or a gap around a kink (which has none).

    Attributes
    ----------
    centre, half : ball
    axes : pair of float
        Semi-axes of the ellipse over `half`.
    samples : tuple of pairs
        The node u, and for each function weight × value.
    errors : tuple of ball
        For each function: what the error is for a factor that is at most 1 on the ellipse.
    """

    centre: Ball
    half: Ball
    axes: tuple[float, float]
    samples: tuple[tuple[Ball, tuple[Ball, ...]], ...]
    errors: tuple[Ball, ...]


class Grid:
    """The line under Gaussians of one width.

    Parameters
    ----------
    functions : tuple of BranchedFunction
    width : float
        B, approximately.
    bits, goal : int
        Working precision, and bits of accuracy that the samples have to give.
    most : int
        Panels that are made at most.
    """

    def __init__(
        self,
        functions: tuple[BranchedFunction, ...],
        width: float,
        *,
        bits: int,
        goal: int,
        most: int,
    ) -> None:
        self._flint = require_flint()
        self._functions = functions
        self._width = self._flint.arb(width)
        self._step = self._flint.arb(2 * _HALF * width)
        self._bits, self._goal, self._most = bits, goal, most
        self._gaps = disjoint_gaps(kink for f in functions for kink in f.kinks)
        self._gap_panels: dict[int, GridPanel] = {}
        self._panels: dict[tuple[int, int], list[GridPanel]] = {}
        self._made = 0

    def covering(self, left: Ball, right: Ball) -> tuple[list[GridPanel], Ball, Ball]:
        """Return panels and the exact ends of the interval that they cover: about the given one.

        Raises
        ------
        CertificationError
            If a function is not analytic between its kinks as far as can be proven, or the number
            of panels is exhausted.
        """
        # Edges are rounded: one precision for all calls, or panels would leave slits between them.
        with self._flint.ctx.workprec(self._bits):
            result: list[GridPanel] = []
            first, last = self._segment(left), self._segment(right)
            for segment in range(first, last + 1):
                if segment > first:
                    result += self._gap(segment - 1)
                low, high = self._indices(segment, left, right)
                if high - low > self._most:
                    raise self._exhausted()
                if segment == first:
                    lowest = self._edge(segment, low)
                for index in range(low, high + 1):
                    result += self._panel(segment, index)
            return result, lowest, self._edge(last, high + 1)

    def _segment(self, point: Ball) -> int:
        """Return a segment for an end of an interval; a point in a gap belongs to the left one."""
        return bisect.bisect_right(self._gaps, float(point), key=lambda gap: float(gap[1]))

    def _ends(self, segment: int) -> tuple[Ball | None, Ball | None]:
        left = self._gaps[segment - 1][1] if segment > 0 else None
        right = self._gaps[segment][0] if segment < len(self._gaps) else None
        return left, right

    def _pieces(self, segment: int) -> int | None:
        left, right = self._ends(segment)
        if left is None or right is None:
            return None
        count = float((right - left) / self._step)
        if count > _LONGEST_SEGMENT:
            raise self._exhausted()
        return max(1, math.ceil(count))

    def _edge(self, segment: int, index: int) -> Ball:
        """Return the exact left edge of a panel of a segment."""
        left, right = self._ends(segment)
        pieces = self._pieces(segment)
        if left is not None and right is not None and pieces is not None:
            if index in (0, pieces):
                return left if index == 0 else right
            return (left + (right - left) * index / pieces).mid()
        anchor = right if left is None else left
        return ((self._flint.arb(0) if anchor is None else anchor) + self._step * index).mid()

    def _indices(self, segment: int, left: Ball, right: Ball) -> tuple[int, int]:
        """Return the first and last panel of a segment that an interval needs."""
        start, end = self._ends(segment)
        pieces = self._pieces(segment)
        origin = self._edge(segment, 0)
        step = self._edge(segment, 1) - origin
        lowest = 0 if start is not None else -math.inf
        highest = math.inf if end is None else (-1 if pieces is None else pieces - 1)

        def index(point: Ball) -> float:
            position = float((point - origin) / step)
            # A segment may be so short that everything else is very far from it.
            position = max(lowest - 1.0, min(position, highest + 1.0))
            if not abs(position) < _LONGEST_SEGMENT:
                raise self._exhausted()
            return math.floor(position)

        low, high = max(lowest, index(left)), min(highest, index(right))
        low, high = min(low, highest), max(high, lowest)
        # Rounding: the edges themselves decide.
        while low > lowest and not self._edge(segment, int(low)) <= left:
            low -= 1
        while high < highest and not self._edge(segment, int(high) + 1) >= right:
            high += 1
        return int(low), int(high)

    def _exhausted(self) -> WorkLimitError:
        return WorkLimitError(
            f"more than {self._most} panels are needed under the Gaussian averages of width "
            f"{float(self._width):.3g}: the functions vary too fast, or the width is too small for "
            "the distances"
        )

    def _gap(self, index: int) -> list[GridPanel]:
        left, right = self._gaps[index]
        if left == right:
            return []
        if index not in self._gap_panels:
            with self._flint.ctx.workprec(ROUGH_BITS):
                errors = tuple(
                    (f.largest(left, right) * (right - left)).upper() for f in self._functions
                )
                centre, half = (left + right) / 2, (right - left) / 2
                self._gap_panels[index] = GridPanel(centre, half, (1.0, 0.0), (), errors)
        return [self._gap_panels[index]]

    def _panel(self, segment: int, index: int) -> list[GridPanel]:
        key = segment, index
        if key not in self._panels:
            left, right = self._edge(segment, index), self._edge(segment, index + 1)
            self._panels[key] = list(self._made_panels(left, right))
        return self._panels[key]

    def _made_panels(self, left: Ball, right: Ball) -> Iterator[GridPanel]:
        branches = [f.between(left, right) for f in self._functions]
        scales = self._scales(left, right)
        pending = [(left, right, 0)]
        while pending:
            start, end, depth = pending.pop()
            panel = self._sampled(branches, scales, start, end)
            if panel is not None:
                self._made += 1
                if self._made > self._most:
                    raise self._exhausted()
                yield panel
                continue
            middle = ((start + end) / 2).mid()
            if depth == _DEEPEST or not start < middle < end:
                raise CertificationError(
                    f"a function under a Gaussian average is not proven analytic near "
                    f"{float(middle):.6g}: it may have a singularity there, and only kinks and "
                    "jumps of known functions are certified"
                )
            pending += [(start, middle, depth + 1), (middle, end, depth + 1)]

    def _scales(self, left: Ball, right: Ball) -> list[float]:
        """Return logarithms of the functions' sizes around a panel; they only steer."""
        with self._flint.ctx.workprec(ROUGH_BITS):
            middle = ((left + right) / 2).mid()
            points = [middle + self._width * x for x in _AROUND] + [left, right]
            return [
                max(
                    (log_size(m) for x in points if (m := modulus(f.enclosed(x))).is_finite()),
                    default=0.0,
                )
                for f in self._functions
            ]

    def _sampled(
        self,
        branches: list[Callable[[Ball, bool], Ball]],
        scales: list[float],
        left: Ball,
        right: Ball,
    ) -> GridPanel | None:
        """Return a panel with the rule that needs the fewest nodes; None if it has to be cut."""
        flint = self._flint
        centre, half = (left + right) / 2, (right - left) / 2
        with flint.ctx.workprec(ROUGH_BITS):
            best: tuple[float, float, list[Ball]] | None = None
            width = float(half / self._width)
            for rho in _RADII:
                bounds = self._bounds(branches, centre, half, rho)
                if bounds is None:
                    continue
                # The Gaussian's growth on the ellipse belongs to the bound.
                growth = (semi_axes(rho)[1] * width) ** 2 / 2
                needed = max(
                    nodes_needed(
                        log_size(bound) + growth,
                        (scale if scale > -math.inf else log_size(bound))
                        - self._goal * math.log(2),
                        rho,
                    )
                    if bound > 0
                    else 2.0
                    for bound, scale in zip(bounds, scales, strict=True)
                )
                if best is None or needed < best[0]:
                    best = needed, rho, bounds
            if best is None or best[0] > highest_order(self._goal):
                return None
            needed, rho, bounds = best
            order = order_for(needed)
            assert order is not None
            constant = error_constant(rho, order) * half
            errors = tuple((bound * constant).upper() for bound in bounds)
        samples = []
        with flint.ctx.workprec(self._bits):
            for node, weight in legendre_rule(order, self._bits).pairs():
                u = centre + half * node
                x = flint.acb(u)
                values = [function(x, False) for function in branches]
                if not all(v.is_finite() and v.imag.contains(0) for v in values):
                    raise CertificationError(
                        f"a function under a Gaussian average is not finite and real at "
                        f"{float(u):.6g}: functions have to be so on the whole line"
                    )
                scale = half * weight
                samples.append((u, tuple(scale * v.real for v in values)))
        return GridPanel(centre, half, semi_axes(rho), tuple(samples), errors)

    def _bounds(
        self,
        branches: list[Callable[[Ball, bool], Ball]],
        centre: Ball,
        half: Ball,
        radius: float,
    ) -> list[Ball] | None:
        """Bound the functions on an ellipse; None if one is not proven analytic there."""
        bounds = [self._flint.arb(0)] * len(branches)
        for box in half_ellipse(radius):
            x = placed(box, centre, half)
            for i, function in enumerate(branches):
                size = modulus(function(x, True))
                if not size.is_finite():
                    return None
                bounds[i] = bounds[i].max(size)
        return [bound.upper() for bound in bounds]
