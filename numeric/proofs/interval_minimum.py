r"""The least value of a function of one real number, proven by balls of python-flint.

Branch and bound: a cell is left out if the function is larger all over it than somewhere else, or
if it has no minimum inside because its slope has no zero there or it is concave; others are halved.
Where it is convex, the interval Newton method tells whether there is a stationary point, and finds
a region in which there is exactly one, with

.. math:: f(y) \ge f(x) + f'(x)(y - x), \qquad f'' > 0,

for any x and y there. What lies beyond a cell without end, the caller bounds.

The function is an object that encloses itself and two derivatives (:class:`Function`), by whatever
is known of it: :class:`BallFunction` is one whose derivatives can be evaluated on balls. Minima in
floats are starting points and no more; whoever calls holds the lock of python-flint's precision.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...ball_library import require_flint
from ...errors import CertificationError, ParameterError

Ball = Any
Beyond = Callable[[int, float], Ball]

# Regions end a little before what is proven, which covers the rounding of their ends.
_INSIDE, _ROUNDING = 0.99, 1e-15
# The largest reach that is tried where an end is infinite.
_FARTHEST = 4096.0
# Of the interval Newton method: each one halves what is left, or does much better.
_MOST_STEPS = 60


class Function(Protocol):
    """A function of one number that can be enclosed."""

    def at(self, point: Ball) -> tuple[Ball, Ball]:
        """Return value and slope at an exact point, as narrow as the result is wanted."""

    def over(self, centre: Ball, radius: float, order: int) -> Ball:
        """Return a ball with all values of a derivative (0, 1 or 2) as far as `radius` away."""


@dataclass(frozen=True)
class BallFunction:
    """A function whose derivatives can be evaluated on balls.

    Attributes
    ----------
    derivatives : sequence of callable
        The function and its first and second derivative, of a real ball.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> f = BallFunction([lambda x: x**2 - x, lambda x: 2 * x - 1, lambda x: flint.arb(2)])
    >>> minimise(f, (-3.0, 3.0)).lower
    -0.250000000000000
    """

    derivatives: Sequence[Callable[[Ball], Ball]]

    def at(self, point: Ball) -> tuple[Ball, Ball]:
        """Return value and slope."""
        return self.derivatives[0](point), self.derivatives[1](point)

    def over(self, centre: Ball, radius: float, order: int) -> Ball:
        """Return a derivative over a ball, by the mean value theorem where that is narrower."""
        arb = require_flint().arb
        centre, away = arb(centre), arb(0, radius)
        result = self.derivatives[order](centre + away)
        if order == 2 or not radius:
            return result
        mean = self.derivatives[order](centre) + self.derivatives[order + 1](centre + away) * away
        if not (result.is_finite() and mean.is_finite()):
            return result
        return mean.lower().max(result.lower()).union(mean.upper().min(result.upper()))


@dataclass(frozen=True)
class ProvenMinimum:
    """What is proven about the least value of a function.

    Attributes
    ----------
    lower, upper : ball
        Exact numbers with the least value between them.
    places : tuple of ball
        The function is least in these only.
    isolated : bool
        There is one place, and the function is least at exactly one point of it.
    cells : int
        How many were looked at.
    """

    lower: Ball
    upper: Ball
    places: tuple[Ball, ...]
    isolated: bool
    cells: int


def minimise(
    function: Function,
    ends: tuple[float, float],
    *,
    starts: Sequence[Ball] = (),
    beyond: Beyond | None = None,
    goal: float = 1e-12,
    shortest: float = 1e-9,
    most_cells: int = 10_000,
    what: str = "x",
    progress: Callable[[float], object] = lambda length: None,
) -> ProvenMinimum:
    """Enclose the least value of a function between two ends, and where it is.

    Parameters
    ----------
    function : Function
    ends : tuple of float
        They belong to where it is minimised, if finite.
    starts : sequence of exact balls
        Where minima are in floating point. The better they are, the fewer cells are needed.
    beyond : callable, optional
        Takes 1 or -1 and a reach > 0; returns a lower bound of the function as far out as that on
        this side. Needed if an end is infinite.
    goal : float
        Of the interval of the least value: where no point is better by more than this, cells are
        halved no further.
    shortest : float
        Relative to 1 + |x|: nor are cells below this length.
    most_cells : int
    what : str
        The variable, for messages.
    progress : callable
        Gets the length of what has been settled.

    Raises
    ------
    ParameterError
        If the ends are no interval, or one is infinite and nothing bounds the function beyond.
    CertificationError
        If the function has no finite enclosure, nothing excludes lower values far out, or the
        cells are not enough.
    """
    left, right = map(float, ends)
    if not left < right:
        raise ParameterError(f"ends must be two numbers, the smaller one first, got {ends!r}")
    if beyond is None and math.isinf(right - left):
        raise ParameterError(f"beyond= must bound the function where ends are infinite: {ends!r}")
    search = _Search(function, (left, right), shortest, goal, what, progress)
    for start in starts:
        search.isolate(require_flint().arb(start), 1.0)
    if not starts:
        search.value(min(max(0.0, left), right))
    belonging = [(end, search.value(end)) for end in (left, right) if math.isfinite(end)]
    if beyond is not None:
        # Beyond its best points the function is worse from some reach on.
        reach = 1 + 2 * max((abs(float(x)) for x in starts), default=0.0)
        left = -search.reach(beyond, -1, reach) if math.isinf(left) else left
        right = search.reach(beyond, 1, reach) if math.isinf(right) else right
    return search.run(left, right, belonging, most_cells)


@dataclass
class _Region:
    """Where a function is convex and has one stationary point, which is in `place`."""

    left: float
    right: float
    place: Ball
    lower: Ball


class _Search:
    """A branch and bound under way."""

    def __init__(
        self,
        function: Function,
        ends: tuple[float, float],
        shortest: float,
        goal: float,
        what: str,
        progress: Callable[[float], object],
    ) -> None:
        self._arb = require_flint().arb
        self._function, self._what, self._progress = function, what, progress
        self._left, self._right = ends
        self._shortest, self._goal = shortest, goal
        self._upper = self._arb("inf")
        self._regions: list[_Region] = []
        self._open: list[tuple[float, float, Ball]] = []

    def value(self, point: float) -> Ball:
        """Return a lower bound of the value at a point, which is an upper bound of the least."""
        result = self._function.over(self._arb(point), 0.0, 0)
        self._note(self._arb(point), result)
        return result.lower()

    def isolate(self, point: Ball, width: float) -> bool:
        """Look for a region around a point with one stationary point; return whether it exists."""
        value, slope = self._function.at(point)
        self._note(point, value)
        radius, middle = width, float(point)
        while radius > self._shortest * (1 + abs(middle)):
            curvature = self._function.over(point, radius, 2)
            least = curvature.lower()
            if least > 0 and (slope / least).abs_upper() < radius:
                place = point - slope / curvature
                for _ in range(_MOST_STEPS):
                    # The stationary point is so near that less is to be known of the curvature.
                    distance = float((place - point).abs_upper())
                    curvature = self._function.over(point, distance * (1 + _ROUNDING), 2)
                    place = place.intersection(point - slope / curvature)
                    if distance < self._shortest * (1 + abs(middle)):
                        break
                    point = place.mid()
                    value, slope = self._function.at(point)
                    self._note(point, value)
                margin = _INSIDE * radius - _ROUNDING * (1 + abs(middle))
                lower = (value + slope * (place - point)).lower()
                return self._keep(_Region(middle - margin, middle + margin, place, lower))
            radius /= 2
        return False

    def reach(self, beyond: Beyond, side: int, reach: float) -> float:
        """Return a distance beyond which the function is larger than its best value."""
        reach = 2.0 ** math.ceil(math.log2(reach))
        while not beyond(side, reach) > self._upper:
            reach *= 2
            if reach > _FARTHEST:
                raise CertificationError(
                    f"for |{self._what}| > {_FARTHEST:g} nothing excludes lower values"
                )
        return reach

    def run(
        self, left: float, right: float, ends: Sequence[tuple[float, Ball]], most_cells: int
    ) -> ProvenMinimum:
        """Settle everything between two points, and those ends that belong to it."""
        order = itertools.count()
        cells = [(-math.inf, next(order), left, right)]
        count = 0
        while cells:
            _, _, a, b = heapq.heappop(cells)
            pieces = self._outside(a, b)
            self._progress(b - a - sum(end - start for start, end in pieces))
            for start, end in pieces:
                count += 1
                if count > most_cells:
                    raise CertificationError(
                        f"{most_cells} cells are not enough; the next one is from {self._what} = "
                        f"{start:.9g} to {end:.9g}"
                    )
                lower = self._settled(start, end)
                if lower is None:
                    self._progress(end - start)
                    continue
                middle = (start + end) / 2
                bound = float(lower) if lower.is_finite() else -math.inf
                for half in ((start, middle), (middle, end)):
                    heapq.heappush(cells, (bound, next(order), *half))
        return self._result(ends, count)

    def _settled(self, a: float, b: float) -> Ball | None:
        """Return a lower bound over a cell that has to be halved, None if there is nothing to do.

        The ends of everything are looked at elsewhere, so that a cell without a stationary point
        inside, or a concave one, holds no minimum.
        """
        arb, over = self._arb, self._function.over
        centre = (a + b) / 2
        radius = float((arb(b) - arb(centre)).max(arb(centre) - arb(a)).upper()) * (1 + _ROUNDING)
        lower = over(arb(centre), radius, 0).lower()
        if lower > self._upper:
            return None
        self.value(centre)
        slope = over(arb(centre), radius, 1)
        if slope > 0 or slope < 0:
            return None
        curvature = over(arb(centre), radius, 2)
        if curvature < 0:
            return None
        if curvature > 0:
            image, cell = arb(centre) - over(arb(centre), 0.0, 1) / curvature, arb(a).union(arb(b))
            if not image.overlaps(cell):
                return None
            if self.isolate(image.intersection(cell).mid(), 2 * radius):
                pieces = self._outside(a, b)
                return None if not pieces else lower
        is_short = b - a < self._shortest * (1 + abs(centre))
        if is_short or lower + self._goal > self._upper:
            if not lower.is_finite():
                raise CertificationError(
                    f"the function is not enclosed near {self._what} = {centre:.9g}"
                )
            self._open.append((a, b, lower))
            return None
        return lower

    def _note(self, point: Ball, value: Ball) -> None:
        if self._left <= point <= self._right and value.is_finite():
            self._upper = self._upper.min(value.upper())

    def _keep(self, result: _Region) -> bool:
        """Add a region, or make one longer that has the same stationary point."""
        arb = self._arb
        for known in self._regions:
            if result.place.overlaps(arb(known.left).union(arb(known.right))):
                if not arb(result.left).union(arb(result.right)).contains(known.place):
                    return False
                known.left, known.right = (
                    min(known.left, result.left),
                    max(known.right, result.right),
                )
                return True
        self._regions.append(result)
        return True

    def _outside(self, a: float, b: float) -> list[tuple[float, float]]:
        """Return what is left of a cell without the regions that are known."""
        pieces = [(a, b)]
        for region in self._regions:
            parts = (
                part
                for start, end in pieces
                for part in ((start, min(end, region.left)), (max(start, region.right), end))
            )
            pieces = [(start, end) for start, end in parts if start < end]
        return pieces

    def _result(self, ends: Sequence[tuple[float, Ball]], count: int) -> ProvenMinimum:
        arb, upper = self._arb, self._upper
        # Where a stationary point is behind an end, the function is least at that end of a region.
        regions = [r for r in self._regions if not (r.place < self._left or r.place > self._right)]
        result = []
        for region in regions:
            place = region.place
            for end, _ in ends:
                is_inside = place > end if end == self._left else place < end
                if region.left <= end <= region.right and not is_inside:
                    place = place.union(arb(end))
            result.append((place, region.lower))
        result += [
            (arb(end), lower)
            for end, lower in ends
            if not any(region.left <= end <= region.right for region in regions)
        ]
        isolated = [(place, lower) for place, lower in result if not lower > upper]
        others: list[tuple[Ball, Ball]] = []
        for a, b, lower in sorted(self._open, key=lambda cell: cell[:2]):
            place = arb(a).union(arb(b))
            if lower > upper:
                continue
            if others and others[-1][0].overlaps(place):
                others[-1] = others[-1][0].union(place), others[-1][1].min(lower)
            else:
                others.append((place, lower))
        both = sorted(isolated + others, key=lambda pair: float(pair[0]))
        lower = both[0][1]
        for _, other in both[1:]:
            lower = lower.min(other)
        return ProvenMinimum(
            lower=lower,
            upper=upper,
            places=tuple(place for place, _ in both),
            isolated=len(isolated) == 1 and not others,
            cells=count,
        )
