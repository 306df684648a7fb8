"""Follow curves of solutions of n equations in n + 1 variables, through folds and crossings.

Pseudo-arclength continuation (Keller, in *Applications of Bifurcation Theory*, 1977): a step along
the tangent, then Newton's method in the plane across it. Holds no formula: equations come as a
function that returns residuals and their exact Jacobian at many points. The last variable is the
control parameter.

Lengths are measured in scaled variables: each is divided by its typical size, which grows with it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Takes points (N, n + 1); returns residuals (N, n) and Jacobians (N, n, n + 1).
Evaluate = Callable[[Array], tuple[Array, Array]]

FOLD, CROSSING = "fold", "crossing"
EDGE, CLOSED, LOST, LONG = "edge", "closed", "lost", "long"

# Scaled length of Newton's last step: convergence is quadratic, so that what is left is rounding.
_CLOSE = 1e-9
_MOST_HALVINGS = 10
# Of the way to a boundary that a step may go, and how often in a row before it is given up.
_SHORT_OF = 0.9
_MOST_CLIPPED = 5
# A step of the continuation is accepted if Newton's method ends soon, near the tangent, and if the
# curve has turned by less than some 20 degrees; it grows where it has turned by less than 7.
_MOST_TURNS = 8
_FEW_TURNS = 4
_LARGEST_DRIFT = 0.5
_LARGEST_BEND = 0.3
_ACCEPTED, _STRAIGHT = 0.94, 0.9925
_GROWTH = 1.5
_SMALLEST_STEP = 1e-9
MOST_POINTS = 5000
# Of the values on both sides: what is left of a function where its sign changes, if it jumps.
_JUMP = 1e-2
# Two solutions that are nearer to each other, in scaled variables, are one.
SAME = 1e-6
# A solution that is nearer to a boundary of the box, in units of its size, is no interior one:
# there equations hold by rounding, as x = tanh(y) does at x = 1 for any large y.
MARGIN = 1e-9
# How far from a crossing its other branch is entered, in units of the largest step.
_ASIDE = 0.3
# In units of this, how far it may be across that direction: it need not leave along it exactly.
_NEARBY = 5.0
# Singular values below this, in units of the largest, vanish at a crossing.
_SINGULAR = 1e-7
# The same of a solution that is next to one.
_NEXT_TO = 1e-4
# How far out of a step, in units of it, matrices may be singular that vary almost linearly on it.
_OUTSIDE = 0.1
# Directions in which branches may leave a crossing where two eigenvalues vanish: 22 degrees apart;
# in more dimensions so many times their square, at most.
_DIRECTIONS, _MOST_DIRECTIONS = 8, 128
# Directions that differ by a smaller angle are one.
_TURNED = 0.1
# Scaled distance at which there is another solution, if a solution is not isolated; singular values
# of both and residuals there, in units of all derivatives.
_AWAY, _FLAT, _SOLVED = 0.02, 1e-9, 1e-10
# The component of a tangent along the parameter that is rounding.
_VERTICAL = 1e-10


@dataclass(frozen=True)
class Equations:
    """Equations with the box in which solutions are wanted.

    Attributes
    ----------
    evaluate : callable
    lower, upper : array (n + 1,)
        Open intervals of the unknowns, which may be infinite; the closed one of the parameter.
    scale : array (n + 1,)
        Typical sizes.
    rough : tuple of callable
        As `evaluate`, quicker and less accurate: each on one rule, coarsest first. For points that
        are far from any solution, where integrands may vary on any scale.
    held : tuple of int
        Unknowns that stay at an end of their interval: a face of the box, on which their equations
        hold identically.
    """

    evaluate: Evaluate
    lower: Array
    upper: Array
    scale: Array
    rough: tuple[Evaluate, ...] = ()
    held: tuple[int, ...] = ()

    def sizes(self, y: Array) -> Array:
        """Return by what the variables are divided at a point: more, where they are larger."""
        found: Array = np.maximum(self.scale, np.where(np.isinf(self.upper), np.abs(y), 0.0))
        return found

    def inside(self, y: Array) -> NDArray[np.bool_]:
        """Tell which points are in the box by more than a margin, the parameter aside."""
        x, margin = y[..., :-1], MARGIN * self.sizes(y)[..., :-1]
        low, high = self.lower[:-1] + margin, self.upper[:-1] - margin
        good = (x > low) & (x < high)
        good[..., list(self.held)] = True
        found: NDArray[np.bool_] = np.all(good, axis=-1)
        return found


class Remembered:
    """Equations that keep their values at the last single point.

    Newton's method ends with an evaluation at the point whose tangent is asked for next.
    """

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self._last: tuple[bytes, tuple[Array, Array]] | None = None

    def __call__(self, points: Array) -> tuple[Array, Array]:
        if len(points) != 1:
            return self._evaluate(points)
        key = points.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self._evaluate(points)
        return self._last[1]


@dataclass
class Curve:
    """A curve of solutions.

    Attributes
    ----------
    points, tangents : list of array (n + 1,)
        Tangents are of length one in the scaled variables of their point.
    start, end : str
        How it ends on both sides: at the `EDGE` of the parameter's range, `CLOSED`, `LOST` (at a
        boundary of the box, or where the equations end), after `MOST_POINTS` (`LONG`), or at a
        `CROSSING` that it branches off from.
    marks : list of (float, str, array)
        Folds and crossings: place in units of the index of a point, kind and point.
    hits : int
        How many first values led to it.
    """

    points: list[Array]
    tangents: list[Array]
    start: str = EDGE
    end: str = EDGE
    marks: list[tuple[float, str, Array]] = field(default_factory=list)
    hits: int = 0

    def __len__(self) -> int:
        return len(self.points)


@np.errstate(all="ignore")  # what is not finite is no solution
def corrected(
    equations: Equations, start: Array, fixed: Array, *, most: int = _MOST_TURNS
) -> tuple[Array, NDArray[np.bool_], int]:
    """Solve from many points at once, each in the plane through it across its `fixed` directions.

    Newton's method; a step that raises the residual, or leaves the box, is cut short.

    Parameters
    ----------
    equations : Equations
    start : array (N, m)
    fixed : array (N, c, m)
        Directions in which points do not move: c more variables than equations; not scaled.
    most : int
        Evaluations.

    Returns
    -------
    points : array (N, m)
    converged : array (N,) of bool
    turns : int
    """
    found = start.copy()
    good = np.zeros(len(start), dtype=bool)
    if not len(start):
        return found, good, 0
    y, rows = start.copy(), np.arange(len(start))
    step = np.zeros_like(start)
    share, size = np.zeros(len(start)), np.full(len(start), np.inf)
    weight = np.ones((len(start), start.shape[1] - fixed.shape[1]))
    halvings, clipped = np.zeros(len(start), dtype=int), np.zeros(len(start), dtype=int)
    for turn in range(1, most + 1):
        trial = y + share[:, None] * step
        residual, jacobian = equations.evaluate(trial)
        finite = np.isfinite(residual).all(axis=1) & np.isfinite(jacobian).all(axis=(1, 2))
        now = np.where(finite, np.max(np.abs(residual) * weight, axis=1), np.inf)
        sizes = equations.sizes(trial)
        last = np.max(np.abs(share[:, None] * step) / sizes, axis=1) <= _CLOSE
        done = finite & last & (share == 1.0)
        found[rows[done]], good[rows[done]] = trial[done], True
        better = finite & ((now < size) | last) & ~done
        # A first point that is not finite has nowhere to go back to.
        worse = ~better & ~done & np.isfinite(size)
        share[worse] /= 2
        halvings[worse] += 1
        if better.any():
            y[better], halvings[better] = trial[better], 0
            a = sizes[better]
            matrix = jacobian[better] * a[:, None, :]
            weight[better] = 1 / np.maximum(np.abs(matrix).sum(axis=2), np.finfo(float).tiny)
            size[better] = np.max(np.abs(residual[better]) * weight[better], axis=1)
            right = np.zeros((len(a), start.shape[1]))
            right[:, : residual.shape[1]] = -residual[better]
            # Of what is held, rounding would move it, and next to a crossing all others with it.
            held = list(equations.held)
            matrix[:, held], right[:, held] = 0.0, 0.0
            matrix[:, held, held] = 1.0
            across = fixed[rows[better]] * a[:, None, :]
            moved = _solved(np.concatenate([matrix, across], axis=1), right)
            step[better] = moved * a
            share[better] = _share(equations, y[better], step[better])
            clipped[better] = np.where(share[better] < 1, clipped[better] + 1, 0)
        active = (better | worse) & (halvings <= _MOST_HALVINGS) & (share > 0)
        active &= clipped <= _MOST_CLIPPED
        if not active.any():
            return found, good, turn
        rows, y, step, share = rows[active], y[active], step[active], share[active]
        size, weight = size[active], weight[active]
        halvings, clipped = halvings[active], clipped[active]
    return found, good, most


def _solved(matrices: Array, right: Array) -> Array:
    """Solve linear systems, by least squares if one of them is singular."""
    try:
        return np.asarray(np.linalg.solve(matrices, right[:, :, None])[:, :, 0], dtype=float)
    except np.linalg.LinAlgError:
        found = np.zeros_like(right)
        for k, (matrix, b) in enumerate(zip(matrices, right, strict=True)):
            found[k] = np.linalg.lstsq(matrix, b, rcond=None)[0]
        return found


def _share(equations: Equations, y: Array, step: Array) -> Array:
    """Return how much of each step stays inside the box."""
    n = len(equations.lower) - 1
    room = np.where(step > 0, equations.upper - y, equations.lower - y)[:, :n] / step[:, :n]
    room = np.where((step[:, :n] == 0) | np.isnan(room), np.inf, room)
    nearest = np.min(room, axis=1, initial=np.inf)
    found: Array = np.where(nearest > 1, 1.0, np.maximum(_SHORT_OF * nearest, 0.0))
    return np.where(np.isfinite(step).all(axis=1), found, 0.0)


def solutions_at(
    equations: Equations, starts: Array, *, most: int = 30
) -> tuple[Array, NDArray[np.int64]]:
    """Return the different solutions that Newton's method finds from points, whose parameters stay.

    Parameters
    ----------
    equations : Equations
    starts : array (N, n + 1)
    most : int
        Evaluations of each.

    Returns
    -------
    array (M, n + 1)
        Sorted by parameter, then by the unknowns.
    array (M,) of int
        How many points led to each.
    """
    near, hits = starts, np.ones(len(starts), dtype=np.int64)
    if equations.rough:
        *coarser, finest = equations.rough
        roughly = replace(equations, evaluate=finest, rough=tuple(coarser))
        near, hits = solutions_at(roughly, starts, most=most)
        most = _MOST_TURNS
    at = np.zeros((len(near), 1, starts.shape[1]))
    at[:, 0, -1] = 1.0
    found, good, _ = corrected(equations, near, at, most=most)
    good &= equations.inside(found)
    if equations.rough:
        # Where a rule misses a narrow integrand, its solution is another one on any other rule.
        room = np.minimum(near - equations.lower, equations.upper - near)[:, :-1]
        good &= np.all(np.abs(found - near)[:, :-1] <= room / 2, axis=1)
    found, hits = found[good], hits[good]
    kept: list[Array] = []
    counts: list[int] = []
    # The last key counts most.
    for k in np.lexsort([*found.T[-2::-1], found.T[-1]]):
        known = (i for i, other in enumerate(kept) if _same(equations, found[k], other))
        place = next(known, len(kept))
        if place == len(kept):
            kept.append(found[k])
            counts.append(0)
        counts[place] += int(hits[k])
    return np.array(kept).reshape(-1, starts.shape[1]), np.array(counts, dtype=np.int64)


def _same(equations: Equations, y: Array, other: Array) -> bool:
    return bool(np.max(np.abs(y - other) / equations.sizes(y)) <= SAME)


def tangent(equations: Equations, y: Array, along: Array | None = None) -> tuple[Array, Array]:
    """Return the tangent of the curve at a solution, and the matrix that is singular at crossings.

    Parameters
    ----------
    equations : Equations
    y : array (n + 1,)
    along : array (n + 1,), optional
        A direction, in scaled variables, that orients it; by default, towards larger parameters.

    Returns
    -------
    array (n + 1,), array (n + 1, n + 1)
        NaN where the equations have no derivative. The rows of the matrix are the derivatives in
        scaled variables, then the tangent.
    """
    _, jacobian = equations.evaluate(y[None])
    scaled = jacobian[0] * equations.sizes(y)
    if not np.isfinite(scaled).all():
        return np.full(len(y), np.nan), np.full((len(y), len(y)), np.nan)
    found = np.linalg.svd(scaled)[2][-1]
    found[list(equations.held)] = 0.0
    towards = found[-1] if along is None else found @ along
    if towards < 0:
        found = -found
    return found, np.vstack([scaled, found])


def _determinant(matrix: Array) -> float:
    # Where all derivatives are enormous it is infinite.
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.linalg.det(matrix))


def followed(
    equations: Equations,
    first: Array,
    along: Array,
    *,
    largest: float,
    stop: Callable[[Array], bool] | None = None,
) -> Curve:
    """Follow the curve through a solution in one direction, to where it ends.

    Parameters
    ----------
    equations : Equations
    first : array (n + 1,)
        A solution.
    along : array (n + 1,)
        Orients the tangent there.
    largest : float
        Largest step, as a scaled length.
    stop : callable, optional
        Tells at which point, not included, the curve is left: it is `LOST` there.
    """
    t, matrix = tangent(equations, first, along)
    curve = Curve([first], [t])
    if not np.isfinite(t).all():
        curve.end = LOST
        return curve
    step = largest / 8
    # The last signs that were not zero, as a point may be a fold or a crossing itself.
    heading, sign = _heading(t), _determinant(matrix)
    while True:
        if len(curve) >= MOST_POINTS:
            curve.end = LONG
            break
        if step < _SMALLEST_STEP:
            curve.end = LOST
            break
        y = curve.points[-1]
        outwards = equations.upper[-1] if t[-1] > 0 else equations.lower[-1]
        if y[-1] == outwards:
            curve.end = EDGE
            break
        found = _step(equations, y, t, _way(equations, curve, step), step)
        if found is None:
            step /= 2
            continue
        new, turns, edge = found
        turned, new_matrix = tangent(equations, new, t)
        # Sizes grow along the curve, so that angles are compared in the same variables.
        before = t * equations.sizes(y) / equations.sizes(new)
        cosine = float(turned @ before / np.linalg.norm(before))
        if not cosine >= _ACCEPTED:
            step /= 2
            continue
        if stop is not None and stop(new):
            curve.end = LOST
            break
        place = len(curve) - 1
        # The branches of a pitchfork turn where they cross: that is no fold.
        new_sign = _determinant(new_matrix)
        several = _mark_together(curve, equations, place, new, matrix, new_matrix)
        if not several and new_sign * sign < 0:
            _mark(curve, equations, CROSSING, place, new, lambda s, m: _determinant(m))
        elif not several and _heading(turned) * heading < 0:
            _mark(curve, equations, FOLD, place, new, lambda s, m: s[-1])
        curve.points.append(new)
        curve.tangents.append(turned)
        t, matrix, sign = turned, new_matrix, new_sign or sign
        heading = _heading(turned) or heading
        if edge:
            curve.end = EDGE
            break
        if len(curve) > 8 and _passes(equations, curve.points[-2], new, first, along):
            curve.points[-1] = first
            curve.end = CLOSED
            break
        if turns <= _FEW_TURNS and cosine > _STRAIGHT:
            step = min(_GROWTH * step, largest)
    return curve


def _way(equations: Equations, curve: Curve, step: float) -> Array:
    """Return where a step leads to, in scaled variables: along the cubic of the last two points."""
    y, t = curve.points[-1], curve.tangents[-1]
    if len(curve) < 2:
        return step * t
    a = equations.sizes(y)
    back = (y - curve.points[-2]) / a
    length = float(np.linalg.norm(back))
    before = curve.tangents[-2] * equations.sizes(curve.points[-2]) / a
    before /= np.linalg.norm(before)
    # From y = 0 backwards to -back, with both tangents.
    share = step / length
    bend = 3 * back / length - 2 * t - before
    twist = 2 * back / length - t - before
    aside = length * share**2 * (-bend - twist * share)
    # A curve that bends so much is smooth on a smaller scale.
    return step * t + aside if np.linalg.norm(aside) <= _LARGEST_BEND * step else step * t


def _step(
    equations: Equations, y: Array, t: Array, way: Array, step: float
) -> tuple[Array, int, bool] | None:
    """Return the next point of a curve, evaluations, and whether it is at an edge."""
    a = equations.sizes(y)
    predicted = y + way * a
    low, high = equations.lower[-1], equations.upper[-1]
    edge = not low <= predicted[-1] <= high
    fixed = np.zeros((1, 1, len(y)))
    if edge:
        target = low if predicted[-1] < low else high
        if predicted[-1] == y[-1]:
            return None
        predicted = y + (target - y[-1]) / (predicted[-1] - y[-1]) * (predicted - y)
        predicted[-1] = target
        fixed[0, 0, -1] = 1.0
    else:
        fixed[0, 0] = t / a
    if not equations.inside(predicted):
        return None
    found, good, turns = corrected(equations, predicted[None], fixed)
    new = found[0]
    near = np.linalg.norm((new - predicted) / a) <= _LARGEST_DRIFT * step
    within = low <= new[-1] <= high
    if not (good[0] and near and within and equations.inside(new)):
        return None
    return new, turns, edge


def between(equations: Equations, curve: Curve, place: int, share: float, end: Array) -> Array:
    """Return the point of a curve at a share of the way from a point to the next one, `end`."""
    y, t = curve.points[place], curve.tangents[place]
    a = equations.sizes(y)
    fixed = (t / a)[None, None]
    # In the same plane as the chord, on the parabola: next to a crossing another branch is near.
    chord = (end - y) / a
    straight = (chord @ t) * t
    predicted = y + (share * straight + share**2 * (chord - straight)) * a
    found, good, _ = corrected(equations, predicted[None], fixed, most=20)
    return found[0] if good[0] else predicted


def _tangent_at(
    equations: Equations, curve: Curve, place: int, share: float, end: Array
) -> tuple[Array, Array]:
    """Return tangent and matrix at a share of the way from a point of a curve to the next one."""
    along = curve.tangents[place]
    return tangent(equations, between(equations, curve, place, share, end), along)


def _heading(t: Array) -> float:
    """Return the sign of a tangent along the parameter; zero where it is vertical."""
    return float(np.sign(t[-1])) if abs(t[-1]) > _VERTICAL else 0.0


def _mark(
    curve: Curve, equations: Equations, kind: str, place: int, end: Array,
    value: Callable[[Array, Array], float], *, part: tuple[float, float] = (0.0, 1.0),
) -> None:  # fmt: skip
    """Locate the zero of a function of tangent and matrix on the last step and note it.

    A function that jumps, because the equations have a kink there, has none.
    """
    low, high = part

    def at(share: float) -> float:
        return value(*_tangent_at(equations, curve, place, low + share * (high - low), end))

    share = zero_between(at)
    if share is not None and abs(at(share)) <= _JUMP * max(abs(at(0.0)), abs(at(1.0))):
        share = low + share * (high - low)
        curve.marks.append((place + share, kind, between(equations, curve, place, share, end)))


def _mark_together(
    curve: Curve, equations: Equations, place: int, end: Array, before: Array, after: Array
) -> bool:
    """Note the crossings of a step on which the matrix becomes singular more than once.

    Where k eigenvalues vanish at one point, as by a symmetry, so does the Schur complement of the
    matrix in k directions, which changes its sign whatever k is, unlike the determinant.
    """
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        return False
    with np.errstate(all="ignore"):
        roots = scipy.linalg.eigvals(before, before - after)
        near = np.abs(roots - 0.5) <= 0.5 + _OUTSIDE
        near &= np.abs(roots.imag) <= _OUTSIDE
    shares, count = np.sort(roots[near].real), int(near.sum())
    if count < 2:
        return False
    inside = np.clip(shares, 0.0, 1.0)

    def matrix(share: float) -> Array:
        return _tangent_at(equations, curve, place, share, end)[1]

    left, sizes, right = np.linalg.svd(matrix(float(inside.mean())))
    if not np.isfinite(sizes).all():
        return False
    border = np.zeros((count, count))
    unit = np.vstack([np.zeros((len(end), count)), np.eye(count)])

    def complement(share: float) -> Array:
        bordered = np.block([[matrix(share), left[:, -count:]], [right[-count:], border]])
        try:
            return np.linalg.solve(bordered, unit)[-count:] / sizes[0]
        except np.linalg.LinAlgError:
            # There, others vanish, too.
            return np.full((count, count), np.nan)

    ends = complement(0.0), complement(1.0)
    rise = ends[1] - ends[0]
    level = _SINGULAR * max(float(np.abs(g).max()) for g in ends)

    def along_rise(share: float) -> float:
        found = complement(share)
        # At a point of the curve itself its sign is that of rounding.
        return 0.0 if np.abs(found).max() <= 1e-5 * level else float(np.sum(found * rise))

    share = zero_between(along_rise)
    if share is not None and np.abs(complement(share)).max() <= level:
        y = between(equations, curve, place, share, end)
        curve.marks.append((place + share, CROSSING, y))
        return True
    middle = float(inside[:2].mean())
    if count > 2 or not 0 < middle < 1:
        return False
    found = len(curve.marks)
    for part in ((0.0, middle), (middle, 1.0)):
        _mark(curve, equations, CROSSING, place, end, lambda s, m: _determinant(m), part=part)
    return len(curve.marks) > found


def zero_between(function: Callable[[float], float]) -> float | None:
    """Return a zero of a function on [0, 1]; None without a change of sign, or where it is NaN."""
    ends = function(0.0), function(1.0)
    if not np.isfinite(ends).all() or ends[0] * ends[1] > 0:
        return None
    try:
        return float(scipy.optimize.brentq(function, 0.0, 1.0, xtol=1e-15, rtol=1e-14, maxiter=200))
    except ValueError:  # a NaN inside
        return None


def _passes(equations: Equations, y: Array, new: Array, first: Array, along: Array) -> bool:
    """Tell whether a step passes the point where a curve began, in the same direction."""
    a = equations.sizes(first)
    way = (new - y) / a
    length = np.linalg.norm(way)
    if length == 0 or way @ along <= 0:
        return False
    share = float(way @ ((first - y) / a)) / length**2
    return bool(
        0 < share <= 1 and np.linalg.norm((first - y - share * (new - y)) / a) < 0.05 * length
    )


def curve_through(
    equations: Equations,
    first: Array,
    *,
    largest: float,
    stop: Callable[[Array], bool] | None = None,
) -> Curve:
    """Follow the curve through a solution in both directions."""
    t, _ = tangent(equations, first)
    if not np.isfinite(t).all():
        return Curve([first], [t], LOST, LOST)
    ahead = followed(equations, first, t, largest=largest, stop=stop)
    if ahead.end == CLOSED:
        ahead.start = CLOSED
        return ahead
    back = followed(equations, first, -t, largest=largest, stop=stop)
    whole = Curve(
        [*back.points[:0:-1], *ahead.points],
        [*(-s for s in back.tangents[:0:-1]), *ahead.tangents],
        back.end,
        ahead.end,
    )
    origin = len(back) - 1
    whole.marks = [(origin - place, kind, y) for place, kind, y in back.marks[::-1]]
    whole.marks += [(origin + place, kind, y) for place, kind, y in ahead.marks]
    return whole


def lies_on(equations: Equations, curve: Curve, y: Array, largest: float) -> bool:
    """Tell whether a solution is a point of a curve."""
    points = np.array(curve.points)
    a = equations.sizes(y)
    origin, ways = points[:-1], np.diff(points, axis=0)
    lengths = np.maximum(np.sum((ways / a) ** 2, axis=1), np.finfo(float).tiny)
    shares = np.clip(np.sum((y - origin) * ways / a**2, axis=1) / lengths, 0, 1)
    gaps = np.linalg.norm((y - origin - shares[:, None] * ways) / a, axis=1)
    for k in np.argsort(gaps, kind="stable")[:3]:
        if gaps[k] > largest:
            break
        if _same(equations, y, curve.points[k]) or _same(equations, y, curve.points[k + 1]):
            return True
        # In the plane across the step through y itself, so that neither moves along the curve.
        plane = (ways[k] / a**2)[None, None]
        near = origin[k] + shares[k] * ways[k]
        found, good, _ = corrected(equations, near[None], plane, most=20)
        if good[0] and _same(equations, y, found[0]):
            return True
    return False


def all_curves(
    equations: Equations,
    seeds: Array,
    hits: Sequence[int] | NDArray[np.int64],
    *,
    largest: float,
    known: Sequence[Curve] = (),
) -> tuple[list[Curve], Array]:
    """Follow every curve through one of many solutions, and those that branch off from them.

    Parameters
    ----------
    equations : Equations
    seeds : array (M, n + 1)
        Solutions; those on a curve that is known are counted for it.
    hits : sequence of int
        How many first values led to each.
    largest : float
    known : sequence of Curve
        Curves on faces of the box, from which others may branch off.

    Returns
    -------
    list of Curve
        Without those that were known.
    array (K, n + 1)
        Solutions that are not isolated, which are on none of them.
    """
    curves: list[Curve] = []
    alone = isolated(equations, seeds)
    loose = [seeds[~alone]]
    order = np.flatnonzero(alone)
    # At a crossing there is no tangent: its curves are found from elsewhere first.
    order = order[np.argsort(_singular(equations, seeds[order]), kind="stable")]
    for seed, count in zip(seeds[order], np.asarray(hits)[order], strict=True):
        on = (c for c in (*known, *curves) if lies_on(equations, c, seed, largest))
        curve = next(on, None)
        if curve is None:
            curve = curve_through(equations, seed, largest=largest)
            # Next to a crossing Newton's method ends before it is at a solution, and what leads
            # from there to a curve is none of its own.
            n = len(curve)
            same = [
                other
                for y in (curve.points[n // 4], curve.points[3 * n // 4])
                for other in (*known, *curves)
                if lies_on(equations, other, y, largest)
            ]
            if len(same) < 2:
                curves.append(curve)
            else:
                curve = same[0]
        curve.hits += int(count)
    crossed: list[Array] = []
    waiting = [*known, *curves]
    while waiting:
        curve = waiting.pop(0)
        for place, y in [(place, y) for place, kind, y in curve.marks if kind == CROSSING]:
            if any(np.max(np.abs(y - c) / equations.sizes(y)) < 1e3 * SAME for c in crossed):
                continue
            crossed.append(y)
            sides = _branching(equations, curve, place, y, largest)
            alone = isolated(equations, sides, away=_ASIDE * largest / 2)
            loose.append(sides[~alone])
            for side in sides[alone]:
                if any(lies_on(equations, other, side, largest) for other in (*known, *curves)):
                    continue
                away = (side - y) / equations.sizes(y)
                new = followed(equations, side, away, largest=largest)
                new.points.insert(0, y)
                new.tangents.insert(0, away / np.linalg.norm(away))
                new.marks = [(k + 1, kind, point) for k, kind, point in new.marks]
                new.start = CROSSING
                curves.append(new)
                waiting.append(new)
    return curves, np.concatenate(loose)


def _singular(equations: Equations, solutions: Array) -> NDArray[np.bool_]:
    """Tell which solutions (N, n + 1) are at a crossing, or next to it."""
    found = np.ones(len(solutions), dtype=bool)
    if len(solutions):
        scaled = equations.evaluate(solutions)[1] * equations.sizes(solutions)[:, None, :]
        good = np.isfinite(scaled).all(axis=(1, 2))
        sizes = np.linalg.svd(scaled[good], compute_uv=False)
        found[good] = sizes[:, -1] <= _NEXT_TO * np.max(sizes, initial=0.0)
    return found


@np.errstate(all="ignore")
def usual_size(equations: Equations, y: Array, largest: float) -> float:
    """Return the size of the derivatives around a point, by scaled variables.

    At a crossing all of them may vanish.
    """
    ways = np.zeros((2, len(y)))
    ways[0, -1], ways[1] = 1.0, 1.0
    ways[:, list(equations.held)] = 0.0
    points = y + np.vstack([np.zeros(len(y)), ways, -ways]) * largest * equations.sizes(y)
    scaled = equations.evaluate(points)[1] * equations.sizes(y)
    sizes = np.linalg.norm(scaled[np.isfinite(scaled).all(axis=(1, 2))], axis=(1, 2))
    return float(np.max(sizes, initial=0.0))


def null_vectors(matrix: Array, size: float) -> Array:
    """Return orthonormal vectors (k, m) that a matrix (n, m) of less than full rank maps to zero.

    Parameters
    ----------
    matrix : array (n, m)
    size : float
        Of the same where it is regular.

    Examples
    --------
    >>> null_vectors(np.diag([2.0, 1e-9]), 2.0).round(3) + 0
    array([[0., 1.]])
    """
    _, sizes, right = np.linalg.svd(matrix)
    # It is singular where a crossing was located, if not to all digits.
    rank = min(int((sizes > _SINGULAR * size).sum()), len(sizes) - 1)
    found: Array = right[rank:]
    return found


@np.errstate(all="ignore")
def isolated(equations: Equations, solutions: Array, *, away: float = _AWAY) -> NDArray[np.bool_]:
    """Tell which solutions (N, n + 1) are no points of a continuum at their parameter.

    There, a null vector of the derivatives by the unknowns leads to another solution, at which
    they are singular, too: under a continuous symmetry, say.
    """
    found = np.ones(len(solutions), dtype=bool)
    free = [k for k in range(solutions.shape[1] - 1) if k not in equations.held]
    if not len(solutions) or not free:
        return found
    sizes = equations.sizes(solutions)

    def lost(points: Array) -> tuple[NDArray[np.bool_], Array, Array]:
        """Tell where derivatives are singular, with these and residuals in units of them."""
        residual, jacobian = equations.evaluate(points)
        scaled = jacobian * sizes[:, None, :]
        rows = np.maximum(np.abs(scaled).sum(axis=2), np.finfo(float).tiny)[:, free]
        scaled = scaled[:, free][:, :, free] / rows[:, :, None]
        good = np.isfinite(scaled).all(axis=(1, 2)) & np.isfinite(residual).all(axis=1)
        scaled[~good] = np.eye(len(free))
        least = np.linalg.svd(scaled, compute_uv=False)[:, -1]
        return good & (least <= _FLAT), scaled, residual[:, free] / rows

    singular, matrices, _ = lost(solutions)
    if not singular.any():
        return found
    way = np.zeros_like(solutions)
    way[:, free] = away * np.linalg.svd(matrices)[2][:, -1]
    other = solutions + way * sizes
    other = np.where(equations.inside(other)[:, None], other, solutions - way * sizes)
    for _ in range(_MOST_TURNS):
        _, matrices, residual = lost(other)
        # Along what is singular it stays.
        move = np.linalg.pinv(matrices, rcond=math.sqrt(_SINGULAR)) @ residual[:, :, None]
        other[:, free] -= np.nan_to_num(move[:, :, 0]) * sizes[:, free]
    still, _, residual = lost(other)
    moved = np.linalg.norm((other - solutions) / sizes, axis=1) >= away / 2
    found[singular & still & moved & (np.abs(residual).max(axis=1) <= _SOLVED)] = False
    return found


def _branching(equations: Equations, curve: Curve, place: float, y: Array, largest: float) -> Array:
    """Return solutions near a crossing, next to the curve itself."""
    _, jacobian = equations.evaluate(y[None])
    along = curve.tangents[int(place)]
    scaled = jacobian[0] * equations.sizes(y)
    if not np.isfinite(scaled).all():
        return np.empty((0, len(y)))
    null = null_vectors(scaled, usual_size(equations, y, largest))
    # What is across the curve of all that the equations leave free.
    aside = np.linalg.svd((null @ along)[None])[2][1:] @ null
    sides = beside(equations, y, _directions(aside), largest)
    if len(aside) == 1 or not len(sides):
        return sides
    # Newton's method prefers some: others lie halfway between these, by a symmetry.
    first = _first_of_each(_ways(equations, y, sides))
    sides, ways = sides[first], _ways(equations, y, sides[first])
    pairs = np.array(list(itertools.combinations(range(len(ways)), 2)), dtype=int).reshape(-1, 2)
    between = ways[pairs[:, 0]] + ways[pairs[:, 1]]
    lengths = np.linalg.norm(between, axis=1, keepdims=True)
    between = (between / np.maximum(lengths, _TURNED))[lengths[:, 0] > _TURNED]
    between = between[_first_of_each(between)][:_MOST_DIRECTIONS]
    sides = np.vstack([sides, beside(equations, y, between, largest)])
    found: Array = sides[_first_of_each(_ways(equations, y, sides))]
    return found


def _ways(equations: Equations, y: Array, sides: Array) -> Array:
    """Return directions of length one, in scaled variables, from a point to others."""
    found: Array = (sides - y) / equations.sizes(y)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def _first_of_each(ways: Array) -> list[int]:
    """Return the places of vectors of length one that turn from all earlier ones."""
    kept: list[int] = []
    for k, way in enumerate(ways):
        if not kept or np.max(ways[kept] @ way) < 1 - _TURNED**2 / 2:
            kept.append(k)
    return kept


def _directions(vectors: Array) -> Array:
    """Return directions in the span of orthonormal vectors, without their opposites."""
    k = len(vectors)
    if k == 1:
        return vectors
    if k == 2:
        angles = np.pi / _DIRECTIONS * np.arange(_DIRECTIONS)
        shares = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    else:
        count = min(_DIRECTIONS * (k - 1) ** 2, _MOST_DIRECTIONS)
        shares = np.random.default_rng(0).normal(size=(count, k))
        shares /= np.linalg.norm(shares, axis=1, keepdims=True)
    return shares @ vectors


def leaving(equations: Equations, y: Array, largest: float) -> Array:
    """Return solutions next to a crossing, in directions in which the unknowns may leave."""
    _, jacobian = equations.evaluate(y[None])
    scaled = (jacobian[0] * equations.sizes(y))[:, :-1]
    if not np.isfinite(scaled).all():
        return np.empty((0, len(y)))
    null = null_vectors(scaled, usual_size(equations, y, largest))
    return beside(equations, y, np.pad(_directions(null), ((0, 0), (0, 1))), largest)


def beside(equations: Equations, y: Array, directions: Array, largest: float) -> Array:
    """Return solutions at a small distance from a point in directions, on both sides.

    Parameters
    ----------
    equations : Equations
    y : array (n + 1,)
    directions : array (D, n + 1)
        Of length one in scaled variables.
    largest : float
        Of the steps of the continuation.
    """
    a = equations.sizes(y)
    # Others lead off the face.
    on_face = np.all(np.abs(directions[:, list(equations.held)]) <= SAME, axis=1)
    ways = np.stack([directions, -directions], axis=1)[on_face].reshape(-1, len(y))
    starts = y + _ASIDE * largest * ways * a
    inside = equations.inside(starts)
    starts, ways = starts[inside], ways[inside]
    found, good, _ = corrected(equations, starts, (ways / a)[:, None], most=20)
    near = np.linalg.norm((found - starts) / a, axis=1) < _NEARBY * _ASIDE * largest
    low, high = equations.lower[-1], equations.upper[-1]
    kept: Array = found[good & near & (low <= found[:, -1]) & (found[:, -1] <= high)]
    return kept
