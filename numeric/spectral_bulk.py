r"""The bulk of a spectrum: its intervals with their edges, and the density on a grid in each.

Spectra of positive semidefinite matrices, found on a logarithmic scale. An edge where the
density vanishes like a square root is where two solutions of V = G(z, V) meet, det(1 - ∂G/∂V) = 0
(Silverstein and Choi 1995); that system is solved for it. Other ends are soft: the density
becomes smaller than anything without a last point, as where the law of the matrix has a tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_simpson
from scipy.optimize import root
from tqdm.auto import tqdm

from ..errors import ConvergenceError
from .spectra import Complex, Real, ResolventTransform
from .spectral_tails import resolve_tails

# Tells that a part of the work is done.
Step = Callable[[], object]

# Density per unit of log x below which there is no bulk, in units of its mass.
NEGLIGIBLE = 1e-7
_PER_DECADE = 20
# In units of the scale.
_LOWEST, _HIGHEST = 1e-8, 1e4
# Tables hold rounding errors: what is smaller is not told from zero.
_FLOOR, _CEILING = 1e-18, 1e14
# Mass of a cell, seen from a height of its own width, that is worth a closer look.
_VISIBLE_MASS = 3e-5
# In units of what is negligible.
_LIGHTEST = 3.0
_ROUNDS = 10
_MOST_CELLS = 200
_BISECTIONS = 13
_RESOLVED = 1e-8
_FEWEST_POINTS = 17
# In units of x, for points on whose axis nothing is resolved.
_HEIGHTS = tuple(0.3 * 10.0 ** (-k / 2) for k in range(8))
_SHARP = 1e-16
# Relative error of the mass that is aimed at, and how many points for each one that is shown.
_INTEGRATED = 1e-7
_FINEST_GRID = 16
# The same where masses are known, and the relative change of a mass that ends it.
_FINEST_KNOWN = 64
_SETTLED = 1e-10
# A wider interval has its grid in log x.
_WIDE = 4.0
# Exponent of the sine at a hard edge: densities that diverge as x^(-2/3) or slower are integrable.
_HARD = 6


@dataclass(frozen=True)
class Bulk:
    """The continuous part of a spectrum.

    Attributes
    ----------
    edges : array (k, 2)
        Intervals, in ascending order.
    soft : array (k, 2) of bool
        The end is no edge: the density goes on below 1e-7 per unit of log x.
    points : array (n,)
        Grid over all intervals that crowds at their ends, ends included.
    density : array (n,)
    interval : array (n,) of int
        To which interval a point belongs.
    masses, mass_errors : array (k,)
        Masses of the intervals by the trapezoidal rule, and their estimated errors.
    cumulative : array (n,)
        Mass up to each point, what lies below the bulk included.
    """

    edges: Real
    soft: NDArray[np.bool_]
    points: Real = field(repr=False)
    density: Real = field(repr=False)
    interval: NDArray[np.int64] = field(repr=False)
    masses: Real
    mass_errors: Real
    cumulative: Real = field(repr=False)


def find_bulk(transform: ResolventTransform, points: int, mass: float, atom: float) -> Bulk:
    """Find the intervals of the bulk and the density on `points` points.

    Parameters
    ----------
    transform : ResolventTransform
        Of a spectrum on the positive half line.
    points : int
    mass : float
        Expected mass of the bulk, by which small numbers are measured.
    atom : float
        Mass at zero.

    Raises
    ------
    ConvergenceError
        If the density cannot be resolved somewhere.
    """
    # Tails take seconds, and nobody knows how many steps.
    with tqdm(desc="spectrum", unit="step", delay=1, leave=False, disable=None) as bar:
        return _found_bulk(transform, points, mass, atom, bar.update)


def _found_bulk(
    transform: ResolventTransform, points: int, mass: float, atom: float, step: Step
) -> Bulk:
    found, known = _intervals(transform, mass, atom, step)
    negligible = NEGLIGIBLE * mass

    def grid(low: _End, high: _End, **options: Any) -> _Grid:
        step()
        return _Grid(transform, low, high, negligible=negligible, **options)

    coarse = [grid(*ends, points=2 * _FEWEST_POINTS - 1, known=known) for ends in found]
    # What is lighter are ripples of a tail about its end.
    grids = [g for g in coarse if g.mass > _LIGHTEST * negligible]
    shares = np.array([g.mass for g in grids]) / max(sum(g.mass for g in grids), 1e-300)
    spare = max(points - _FEWEST_POINTS * len(grids), 0)
    counts = [_FEWEST_POINTS + 2 * int(spare * share / 2) for share in shares]
    fine = [
        grid(g.low, g.high, points=count, known=(g.x, g.v), finest=_FINEST_GRID)
        for g, count in zip(grids, counts, strict=True)
    ]
    if not fine:
        empty = np.zeros(0)
        return Bulk(
            np.zeros((0, 2)), np.zeros((0, 2), bool), empty, empty, np.zeros(0, int), empty, empty,
            empty,
        )  # fmt: skip
    below = np.cumsum([atom, *(g.mass for g in fine)])
    return Bulk(
        edges=np.array([[g.low.x, g.high.x] for g in fine]),
        soft=np.array([[g.low.soft, g.high.soft] for g in fine]),
        points=np.concatenate([g.x for g in fine]),
        density=np.concatenate([g.density for g in fine]),
        interval=np.concatenate([np.full(len(g.x), k) for k, g in enumerate(fine)]),
        masses=np.array([g.mass for g in fine]),
        mass_errors=np.array([g.mass_error for g in fine]),
        cumulative=np.concatenate([b + g.cumulative for b, g in zip(below, fine, strict=False)]),
    )


def known_bulk(
    edges: Real,
    masses: Real,
    below: float,
    density: Callable[[Real], Real],
    share: Callable[[Real], Real],
    points: int,
) -> Bulk:
    """Return the bulk on a grid of so many points in each interval, where its masses are known.

    Parameters
    ----------
    edges : array (k, 2)
        Intervals, ascending. A density may diverge at zero.
    masses : array (k,)
        The differences of integrals of the density from them are the errors.
    below : float
        Mass below the bulk.
    density, share : callable
        (n,) -> (n,), the density and the mass up to points inside the bulk.
    points : int
    """
    rows: list[tuple[Real, Real, Real, float]] = []
    for (low, high), mass in zip(edges, masses, strict=True):
        every, before = 1, math.inf
        while True:
            angle = np.linspace(0, math.pi, every * (points - 1) + 1)
            x, rate = _crowded(low, high, angle)
            found = np.zeros(len(x))
            found[1:-1] = density(x[1:-1])
            total = float(np.sum(found[1:-1] * rate[1:-1]) * angle[1])
            if abs(total - before) <= _SETTLED * mass or every >= _FINEST_KNOWN:
                break
            every, before = 2 * every, total
        if low == 0:
            found[0] = math.inf
        x = x[::every]
        counted = np.concatenate([[below], share(x[1:-1]), [below + mass]])
        # Rounding must not make it fall.
        counted = np.maximum.accumulate(np.clip(counted, below, below + mass))
        rows.append((x, found[::every], counted, total))
        below += mass
    totals = np.array([row[3] for row in rows])
    return Bulk(
        edges=edges,
        soft=np.zeros(edges.shape, dtype=bool),
        points=np.concatenate([row[0] for row in rows]),
        density=np.concatenate([row[1] for row in rows]),
        interval=np.repeat(np.arange(len(rows)), points),
        masses=totals,
        mass_errors=np.abs(totals - masses),
        cumulative=np.concatenate([row[2] for row in rows]),
    )


def density(
    transform: ResolventTransform, x: Real, negligible: float, start: Complex | None = None
) -> tuple[Real, Complex, Real]:
    """Return the density at ascending points of the real axis, V just above them, and its error.

    The error is zero, in the accuracy of the rest, where nodes resolve the axis. Where none do, the
    density is extrapolated from points above the axis; one that is smaller than its error is
    returned as zero.

    Parameters
    ----------
    transform : ResolventTransform
    x : array (n,)
    negligible : float
        Density per unit of log x that does not matter.
    start : array (m, n), optional
        Guesses of V.

    Raises
    ------
    ConvergenceError
        If it cannot be resolved.
    """
    tails = transform.tails
    # What takes many nodes on the line takes few on a contour.
    v, error = transform.solve(x, start, finest=None if tails is None else 1)
    bad = ~(error <= _RESOLVED)
    if tails is not None:
        real = ~bad & (v.imag == 0).all(axis=0)
        bad[real] = tails.crossed(v[:, real])
        resolve_tails(tails, transform.trace, x, v, bad, start, negligible)
        if bad.any():
            # Two poles that pinch the line let no contour through; they are not that close to it.
            v[:, bad], error[bad] = transform.solve(x[bad], v[:, bad])
            bad = ~(error <= _RESOLVED)
    found = np.maximum(v[transform.trace].imag, 0.0) / math.pi
    uncertain = np.zeros(len(x))
    if bad.any():
        found[bad], v[:, bad], uncertain[bad] = _from_above(transform, x[bad])
    return found, v, uncertain


def _from_above(transform: ResolventTransform, x: Real) -> tuple[Real, Complex, Real]:
    """Extrapolate density and V to the axis from points above it; the error is the last change."""
    best = np.zeros(len(x))
    error = np.full(len(x), np.inf)
    kept = np.zeros((transform.components, len(x)), dtype=complex)
    sharp = replace(transform, rtol=_SHARP)
    guess, before, limit_before = None, None, None
    for height in _HEIGHTS:
        v, squared = sharp.solve(x * (1 + 1j * height), guess)
        here = v[transform.trace].imag / math.pi
        with np.errstate(all="ignore"):
            # The last change itself: next to a pole convergence is not geometric.
            doubt = np.sqrt(squared) * np.abs(v[transform.trace]) / math.pi
        if before is not None:
            # To first order the density changes in proportion to the height.
            limit = here + (here - before) / (_HEIGHTS[0] / _HEIGHTS[1] - 1)
            if limit_before is not None:
                total = doubt + np.abs(limit - limit_before)
                better = total < error
                best[better], error[better] = limit[better], total[better]
                kept[:, better] = v[:, better]
            limit_before = limit
        guess, before = v, here
    if not np.isfinite(error).all():
        raise ConvergenceError(
            f"the density of the spectrum at x = {x[np.argmax(error)]:.3g} cannot be resolved: "
            "its integrand has poles too close to each other; take more samples, or a smaller "
            "spike strength"
        )
    return np.where(best > error, best, 0.0), kept, error


# ---------------------------------------------------------------------------- intervals


@dataclass(frozen=True)
class _End:
    x: float
    soft: bool


def _intervals(
    transform: ResolventTransform, mass: float, atom: float, step: Step
) -> tuple[list[tuple[_End, _End]], tuple[Real, Complex]]:
    scale, negligible = transform.scale, NEGLIGIBLE * mass
    decades = math.log10(_HIGHEST / _LOWEST)
    x = scale * _LOWEST * np.logspace(0, decades, round(decades * _PER_DECADE) + 1)
    found, v, _ = density(transform, x, negligible)
    # Down and up, a few decades at a time, until there is nothing any more.
    while True:
        farther = []
        if x[0] * found[0] > negligible and x[0] > 2 * _FLOOR * scale:
            lowest = max(1e-4 * x[0], _FLOOR * scale)
            farther.append(np.geomspace(lowest, x[0], 4 * _PER_DECADE, endpoint=False))
        if x[-1] * found[-1] > negligible and x[-1] < _CEILING * scale:
            farther.append(np.geomspace(1e4 * x[-1], x[-1], 4 * _PER_DECADE, endpoint=False)[::-1])
        if not farther:
            break
        x, found, v = _merged(transform, negligible, x, found, v, np.concatenate(farther))
        step()
    # Narrow intervals between the points show from above.
    for _ in range(_ROUNDS):
        empty = np.flatnonzero(
            (found[1:] * x[1:] <= negligible) & (found[:-1] * x[:-1] <= negligible)
        )
        if not empty.size:
            break
        middle, width = (x[empty] + x[empty + 1]) / 2, x[empty + 1] - x[empty]
        above, error = transform.solve(middle + 0.5j * width, finest=1)
        # An atom at zero is seen from everywhere.
        trace = above[transform.trace].imag - atom * (-1 / (middle + 0.5j * width)).imag
        seen = np.where(error < np.inf, trace / math.pi * width, 0.0)
        # Another bulk at a distance shows as well, less and less as cells get smaller.
        visible = seen > _VISIBLE_MASS * mass
        look = empty[visible]
        if not look.size or look.size > _MOST_CELLS:
            break
        steps = np.arange(1, 6) / 6
        new = (x[look, None] + (x[look + 1] - x[look])[:, None] * steps).ravel()
        x, found, v = _merged(transform, negligible, x, found, v, new)
        step()
    inside = found * x > negligible
    changes = np.flatnonzero(inside[1:] != inside[:-1])
    ends = []
    for k in changes:
        ends.append(_end(transform, negligible, x[k : k + 2], found[k : k + 2], v[:, k : k + 2]))
        step()
    if inside[0]:
        ends.insert(0, _End(float(x[0]), True))
    if inside[-1]:
        ends.append(_End(float(x[-1]), True))
    return list(zip(ends[::2], ends[1::2], strict=True)), (x, v)


def _merged(
    transform: ResolventTransform, negligible: float, x: Real, found: Real, v: Complex, new: Real
) -> tuple[Real, Real, Complex]:
    new = np.sort(new)
    nearest = np.argmin(np.abs(np.log(x[None, :] / new[:, None])), axis=1)
    more, v_more, _ = density(transform, new, negligible, v[:, nearest] * (x[nearest] / new))
    both = np.concatenate([x, new])
    order = np.argsort(both)
    v = np.concatenate([v, v_more], axis=1)[:, order]
    return both[order], np.concatenate([found, more])[order], v


def _end(
    transform: ResolventTransform, negligible: float, x: Real, found: Real, v: Complex
) -> _End:
    """Narrow down the end of the bulk between two points, one inside and one outside."""
    k = 0 if found[0] > found[1] else 1
    inner, outer, here = float(x[k]), float(x[1 - k]), v[:, k, None]
    for turn in range(_BISECTIONS):
        if turn % 3 == 0:
            edge = _square_root_edge(transform, inner, outer)
            if edge is not None:
                return _End(edge, False)
        middle = (inner + outer) / 2
        try:
            point = np.array([middle])
            value, there, _ = density(transform, point, negligible, here * inner / middle)
        except ConvergenceError:
            break
        if value[0] * middle > negligible:
            inner, here = middle, there
        else:
            outer = middle
    return _End(inner, True)


def _square_root_edge(transform: ResolventTransform, inner: float, outer: float) -> float | None:
    """Return the z between two points at which two solutions meet; None if there is none."""
    level = transform.equations(2)
    v, _ = transform.solve([outer], finest=1)
    if not np.isfinite(v).all():
        return None
    unit = np.append(v[:, 0].real, outer)
    identity = np.eye(transform.components)

    def conditions(scaled: Real) -> Real:
        point = scaled * unit
        value, slope, _ = level(point[-1:], point[:-1, None])
        gap = (value[:, 0] - point[:-1]) / unit[:-1]
        # Columns in units of V: the determinant is a pure number.
        matrix = identity - slope[:, :, 0] * unit[None, :-1] / unit[:-1, None]
        return np.append(gap, np.linalg.det(matrix))

    with np.errstate(all="ignore"):
        try:
            found = root(conditions, np.ones(len(unit)), options={"xtol": 1e-13})
        except (ValueError, FloatingPointError, np.linalg.LinAlgError):
            return None
        size = np.max(np.abs(conditions(found.x)))
    edge = float(found.x[-1] * unit[-1])
    low, high = sorted((inner, outer))
    if not (size < 1e-9 and low <= edge <= high):
        return None
    # Nodes in a tail have edges of their own, between two of them.
    tails = transform.tails
    between = tails is not None and tails.crossed((found.x * unit)[:-1, None].astype(complex))[0]
    return None if between else edge


# ---------------------------------------------------------------------------- grids


def _crowded(low: float, high: float, angle: Real) -> tuple[Real, Real]:
    """Return points that crowd at both ends, at angles θ from 0 to π, and dx/dθ.

    x = low + (high - low) sin²(θ/2), or the same of log x for a wide interval: in θ a density
    with square-root edges is smooth and periodic, and the trapezoidal rule converges geometrically.
    From an edge at zero, where the density may diverge, a higher power of the sine.
    """
    sine, cosine = np.sin(angle / 2), np.cos(angle / 2)
    cosine[-1] = 0
    if low == 0:
        x, rate = high * sine**_HARD, high * _HARD / 2 * sine ** (_HARD - 1) * cosine
    elif high > _WIDE * low:
        span = math.log(high / low)
        x = low * np.exp(span * sine**2)
        rate = x * span * sine * cosine
    else:
        x, rate = low + (high - low) * sine**2, (high - low) * sine * cosine
    # Rounding must not push points over the edges.
    x[0], x[-1] = low, high
    return np.clip(x, low, high), rate


class _Grid:
    """Density on one interval, at points that crowd at both ends."""

    def __init__(
        self,
        transform: ResolventTransform,
        low: _End,
        high: _End,
        *,
        points: int,
        negligible: float,
        known: tuple[Real, Complex],
        finest: int = 1,
    ) -> None:
        self.low, self.high = low, high
        self._transform, self._negligible = transform, negligible
        self.x: Real
        self.density: Real
        self.v: Complex
        self.mass: float
        self.mass_error: float
        self._unresolved: float
        self.cumulative: Real
        self._sample(points, known)
        # Where the density has sharp features the integral takes more points than the picture.
        every = 1
        # More points do not help against what no nodes resolve.
        while (
            self.mass_error - self._unresolved > max(_INTEGRATED * self.mass, self._unresolved)
            and every < finest
        ):
            every *= 2
            self._sample(every * (points - 1) + 1, (self.x, self.v))
        self.x, self.density = self.x[::every], self.density[::every]
        self.v, self.cumulative = self.v[:, ::every], self.cumulative[::every]

    def _sample(self, points: int, known: tuple[Real, Complex]) -> None:
        low, high = self.low, self.high
        self.x, rate = _crowded(low.x, high.x, np.linspace(0.0, math.pi, points))
        known_x, known_v = known
        # x V is of the order of one in tails.
        at, values = np.log(known_x), known_x * known_v
        start = np.empty((len(values), points), dtype=complex)
        for k, component in enumerate(values):
            start[k] = np.interp(np.log(self.x), at, component) / self.x
        # At an edge itself the solution is singular; the density is zero there.
        inside = slice(0 if low.soft else 1, points if high.soft else points - 1)
        self.density = np.zeros(points)
        uncertain = np.zeros(points)
        self.density[inside], solved, uncertain[inside] = density(
            self._transform, self.x[inside], self._negligible, start[:, inside]
        )
        missing = (int(not low.soft), int(not high.soft))
        self.v = np.pad(solved, ((0, 0), missing), mode="edge")
        change = self.density * rate
        step = math.pi / (points - 1)
        # The ends count half; there the rate vanishes.
        self.mass = float(np.sum(change) * step)
        self._unresolved = float(np.sum(uncertain * rate) * step)
        self.mass_error = abs(self.mass - float(np.sum(change[::2]) * 2 * step)) + self._unresolved
        self.cumulative = cumulative_simpson(change, dx=step, initial=0.0)
