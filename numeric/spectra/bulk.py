"""The bulk of a spectrum: its intervals with their edges, and the density on a grid in each.

Spectra of positive semidefinite matrices, found on a logarithmic scale. An edge where the
density vanishes like a square root is where two solutions of V = G(z, V) meet, det(1 - ∂G/∂V) = 0
(Silverstein and Choi 1995); that system is solved for it. Other ends are soft: the density
becomes smaller than anything without a last point, as where the law of the matrix has a tail.

Resolvents of random matrices from their self-consistent equations.

Self-consistent equations V = G(z, V) of a resolvent hold in the upper half plane, where G maps
points with positive imaginary parts to such points; a solution there is the only one (Earle and
Hamilton 1970). It is followed from a large imaginary part of z, where iteration converges at
once, down to the point that is wanted: predictor along dV/dz, Newton's method, and a step that is
accepted only if the solution stays in the upper half plane. On the real axis the limit from above
is meant; there all imaginary parts vanish outside the spectrum.

Points are arrays of shape (n,), solutions of shape (m, n). No formula of any model is here.

Densities that are so small that sums over nodes on the line do not resolve them.

There the integrand has a pole next to the line, and the average is taken along a contour that
passes it. A contour serves all points whose poles lie on the same side, so that whole runs of
points are solved at once; what remains is solved point by point. Two contours have to agree.

Quadrature on contours that pass poles close to the real axis.

A sum over nodes on the line is useless where the integrand has a pole much closer to the line
than the nodes are to each other. Tables of analytic functions determine their continuation near
the line, so the line can be moved away from the pole: to points t + i s(t) with s of the sign that
makes the imaginary part of the denominator larger, which leaves all poles on their side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from scipy.integrate import cumulative_simpson
from scipy.optimize import brentq, root
from tqdm.auto import tqdm

from ...errors import ConvergenceError
from ...runtime.quadrature import REACH

Complex = NDArray[np.complex128]
Real = NDArray[np.float64]
# (z, V) -> G (m, n), ∂G/∂V (m, m, n), ∂G/∂z (m, n)
SelfConsistency = Callable[[Any, Any], tuple[Any, Any, Any]]

_LAST_STEP = 1e-7
# On the way to the real axis less will do.
_ROUGH_STEP = 1e-2
_NEWTON_TURNS = 12
_ROUGH_TURNS = 5
# Imaginary part, in units of |z| or the scale of the spectrum, from which a step to the real axis
# itself is attempted.
_ABOVE_AXIS = 1e-7
_FIRST_ITERATIONS = 6
_MOST_STEPS = 100
_SMALLEST_STEP = 0.97
# Imaginary parts below this fraction of |V| are rounding.
REAL = 1e-9


def newton(
    equations: SelfConsistency,
    z: Complex,
    start: Complex,
    turns: int = _NEWTON_TURNS,
    last_step: float = _LAST_STEP,
) -> tuple[Complex, NDArray[np.bool_]]:
    """Return the solutions that Newton's method finds from `start`, and where it has arrived.

    Parameters
    ----------
    last_step : float
        Relative size of the step after which it stops. Convergence is quadratic: what is left is
        about its square.
    """
    v = np.array(start, dtype=np.result_type(start, z, complex))
    arrived = np.zeros(z.shape, dtype=bool)
    identity = np.eye(len(v))[:, :, None]
    with np.errstate(all="ignore"):
        active = np.arange(len(z))
        for _ in range(turns):
            value, slope, _ = equations(z[active], v[:, active])
            step = _solve(identity - slope, value - v[:, active])
            size = np.max(np.abs(step) / np.abs(v[:, active]), axis=0)
            v[:, active] += step
            arrived[active] = size < last_step
            lost = ~np.isfinite(size)
            active = active[~arrived[active] & ~lost]
            if not active.size:
                break
    return v, arrived & np.isfinite(v).all(axis=0)


def arranged(values: Sequence[Any], count: int) -> tuple[Any, Any, Any]:
    """Return the right-hand sides of `count` equations and their derivatives as arrays.

    Parameters
    ----------
    values : sequence
        The right-hand sides, row by row their derivatives by the unknowns, and those by z.
    """
    g, slope, along = np.split(np.array(np.broadcast_arrays(*values)), [count, -count])
    return g, slope.reshape(count, count, *g.shape[1:]), along


def _solve(matrix: Complex, right: Complex) -> Complex:
    """Solve (m, m, n) systems; few unknowns by Cramer's rule."""
    if len(matrix) == 1:
        return right / matrix[0]
    if len(matrix) > 2:
        try:
            solved = np.linalg.solve(np.moveaxis(matrix, 2, 0), right.T[:, :, None])
        except np.linalg.LinAlgError:
            # What is not finite counts as lost.
            return np.full(right.shape, np.nan, dtype=complex)
        return np.ascontiguousarray(solved[:, :, 0].T)
    (a, b), (c, d) = matrix
    return np.stack([d * right[0] - b * right[1], a * right[1] - c * right[0]]) / (a * d - b * c)


def follow(
    equations: SelfConsistency, z: Complex, scale: float, components: int, nearest: float = 1e-12
) -> tuple[Complex, NDArray[np.bool_]]:
    """Return V at points with Im z >= 0, each followed from far above.

    Parameters
    ----------
    z : array (n,)
        Im z = 0 means the limit from above.
    scale : float
        Size of the spectrum.
    components : int
        Number m of unknowns.
    nearest : float
        Distance from zero, in units of `scale`, below which nothing changes.

    Returns
    -------
    V : array (m, n)
    found : array (n,)
        False where the path could not be followed to its end.
    """
    z = np.asarray(z, dtype=complex)
    x, goal = z.real, z.imag
    size = np.maximum(np.abs(x), nearest * scale)
    height = np.maximum(4 * (np.abs(x) + scale), goal)
    v = np.tile(1j / height, (components, 1))
    for _ in range(_FIRST_ITERATIONS):
        v = equations(x + 1j * height, v)[0]
    v, good = newton(equations, x + 1j * height, v)
    good &= _above(v, 0.0)
    factor = np.full(len(z), 0.3)
    lowest = np.maximum(goal, _ABOVE_AXIS * size)
    identity = np.eye(components)[:, :, None]
    active = np.flatnonzero(good & (height > lowest))
    for _ in range(_MOST_STEPS):
        if not active.size:
            break
        here = v[:, active]
        lower = np.maximum(height[active] * factor[active], lowest[active])
        _, slope, along = equations(x[active] + 1j * height[active], here)
        with np.errstate(all="ignore"):
            tangent = _solve(identity - slope, along)
            guess = here + tangent * 1j * (lower - height[active])
        # A predictor that leaves the half plane is no use; where it began is.
        outside = ~(_above(guess, 0.0) & np.isfinite(guess).all(axis=0))
        guess[:, outside] = here[:, outside]
        new, arrived = newton(equations, x[active] + 1j * lower, guess, _ROUGH_TURNS, _ROUGH_STEP)
        arrived &= _above(new, 0.0)
        done = active[arrived]
        v[:, done], height[done] = new[:, arrived], lower[arrived]
        factor[done] = np.maximum(factor[done] ** 1.5, 1e-3)
        failed = active[~arrived]
        factor[failed] = np.sqrt(factor[failed])
        good[failed[factor[failed] > _SMALLEST_STEP]] = False
        active = active[(height[active] > lowest[active]) & good[active]]
    good[active] = False
    above = np.flatnonzero(good & (goal >= lowest))
    if above.size:
        v[:, above], good[above] = newton(equations, z[above], v[:, above])
        good[above] &= _above(v[:, above], 0.0)
    onto = np.flatnonzero(good & (goal < lowest))
    if onto.size:
        found, arrived = onto_axis(equations, z[onto], v[:, onto])
        # At an edge itself the two solutions meet and Newton's method is slow; the value just
        # above is the same to the square root of its height.
        v[:, onto[arrived]] = found[:, arrived]
    return v, good


def onto_axis(
    equations: SelfConsistency, z: Complex, start: Complex
) -> tuple[Complex, NDArray[np.bool_]]:
    """Return the limit on the real axis from a guess; imaginary parts that are rounding vanish."""
    v, arrived = newton(equations, z, start)
    arrived &= _above(v, -REAL)
    v = real_where_rounding(v)
    with np.errstate(all="ignore"):
        change = np.max(np.abs(v - start) / np.abs(start), axis=0)
    return v, arrived & (change < 0.5)


class Tails(Protocol):
    """Equations that hold where an average over nodes on the real line has poles next to it."""

    def crossed(self, v: Complex) -> NDArray[np.bool_]:
        """Tell which real V put a pole onto the line, and are therefore no solutions."""
        ...

    def around(
        self, v: Complex, shift: float, refinement: int
    ) -> tuple[SelfConsistency, Callable[[Complex], NDArray[np.bool_]]] | None:
        """Return equations on a contour that passes the poles of V, of shape (m,), and near it.

        With them a function that tells for which V, of shape (m, n), all poles are so far from
        the contour that its nodes resolve them.

        `shift` is how far the contour leaves the line, in units of what is usual, and each
        `refinement` has finer nodes.
        """
        ...


@dataclass
class ResolventTransform:
    """V(z) anywhere, with sums over nodes that are refined until they do not matter.

    Parameters
    ----------
    levels : callable
        Returns the equations at a refinement level 0, 1, …, each with about twice the nodes.
    scale : float
        Size of the spectrum.
    components : int
        Number of unknowns.
    trace : int
        Which of them is the normalised trace of the resolvent.
    finest : int
        The last level.
    rtol : float
        Wanted relative error of V.
    tails : Tails, optional
        What to do where the density is so small that nodes on the line do not resolve it.
    """

    levels: Callable[[int], SelfConsistency]
    scale: float
    components: int = 2
    trace: int = 1
    finest: int = 3
    rtol: float = 1e-9
    tails: Tails | None = None
    _loaded: dict[int, SelfConsistency] = field(default_factory=dict, repr=False)

    def equations(self, level: int) -> SelfConsistency:
        """Return the equations at a level."""
        if level not in self._loaded:
            self._loaded[level] = self.levels(level)
        return self._loaded[level]

    def solve(
        self, z: Any, start: Complex | None = None, finest: int | None = None
    ) -> tuple[Complex, Real]:
        """Return V and an estimate of its relative error at points with Im z >= 0.

        Parameters
        ----------
        start : array (m, n), optional
            Guesses; where they lead nowhere the path from above is followed.
        finest : int, optional
            Do not go beyond this level.

        Notes
        -----
        The error is infinite where no path leads to z at some level. That happens on the real
        axis where the density is so small that a denominator nearly vanishes on the nodes.
        """
        z = np.atleast_1d(np.asarray(z, dtype=complex))
        v = np.zeros((self.components, len(z)), dtype=complex)
        missing = np.ones(len(z), dtype=bool)
        if start is not None:
            v, arrived = newton(self.equations(0), z, start)
            missing = ~(arrived & _above(v, 1e-6))
        good = np.ones(len(z), dtype=bool)
        if missing.any():
            v[:, missing], good[missing] = self._followed(0, z[missing])
        error = np.full(len(z), np.inf)
        left = np.flatnonzero(good)
        for level in range(1, (self.finest if finest is None else finest) + 1):
            if not left.size:
                break
            before = v[:, left]
            finer, arrived = newton(self.equations(level), z[left], before)
            # On the real axis a real solution may be another branch, unless the first was real.
            arrived &= _above(finer, -REAL) & (_above(finer, 1e-6) | ~_above(before, 1e-6))
            if not arrived.all():
                finer[:, ~arrived], found = self._followed(level, z[left[~arrived]])
                arrived[~arrived] = found
            with np.errstate(all="ignore"):
                change = np.max(np.abs(finer - before) / np.abs(finer), axis=0)
            v[:, left] = finer
            # Convergence is geometric: twice the nodes, the square of the error.
            error[left] = np.where(arrived, change**2, np.inf)
            left = left[arrived & ~(change**2 <= self.rtol)]
        return real_where_rounding(v), error

    def trace_at(self, z: Any) -> Complex:
        """Return the normalised trace of the resolvent at complex points of any half plane.

        Raises
        ------
        ConvergenceError
            If the sums over nodes do not settle; the message names the point.
        """
        z = np.atleast_1d(np.asarray(z, dtype=complex))
        v, error = self.solve(np.where(z.imag < 0, np.conj(z), z))
        if not (error <= np.sqrt(self.rtol)).all():
            worst = np.argmax(np.where(np.isfinite(error), error, np.inf))
            raise ConvergenceError(
                f"the resolvent at z = {z[worst]} cannot be resolved on the finest nodes; it lies "
                "where the density of the spectrum is next to nothing; take a larger imaginary part"
            )
        found: Complex = np.where(z.imag < 0, np.conj(v[self.trace]), v[self.trace])
        return found

    def _followed(self, level: int, z: Complex) -> tuple[Complex, NDArray[np.bool_]]:
        return follow(self.equations(level), z, self.scale, self.components)


def real_where_rounding(v: Complex) -> Complex:
    """Return V with imaginary parts that are rounding set to zero."""
    with np.errstate(all="ignore"):
        return np.where(np.abs(v.imag) <= REAL * np.abs(v), v.real + 0j, v)


def _above(v: Complex, fraction: float) -> NDArray[np.bool_]:
    """Tell where all imaginary parts are above a fraction of the size."""
    with np.errstate(all="ignore"):
        return np.asarray(np.all(v.imag > fraction * np.abs(v), axis=0), dtype=bool)


Booleans = NDArray[np.bool_]

# Distances of two contours from the line at each refinement of their nodes.
_SHIFTS = ((1.0, 0.6), (0.5, 0.3), (0.2, 0.12), (0.07, 0.04))
_AGREEMENT = 1e-7
# The imaginary parts have to agree to this, unless they are negligible.
_PARTS = 1e-3
_TAIL_ROUNDS = 40
# Near an end of the bulk two solutions are close and convergence is slow.
_TAIL_TURNS, _LAST_TAIL_STEP = 25, 1e-10
# Points that are solved one by one at each refinement; each takes three times as long.
_MOST_ALONE = (60, 30, 12, 6)


def resolve_tails(
    tails: Tails,
    trace: int,
    x: Real,
    v: Complex,
    bad: Booleans,
    start: Complex | None,
    negligible: float,
) -> None:
    """Solve for the points `bad`, in place: V is put in, `bad` cleared where that succeeds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], bad, [False]]).astype(int)))
    for first, last in edges.reshape(-1, 2):
        run = np.arange(first, last)
        guesses = [] if start is None else [start[:, run]]
        near = max(
            (k for k in (first - 1, last) if 0 <= k < len(x)),
            key=lambda k: v[trace, k].imag,
            default=None,
        )
        if near is not None:
            # In a tail V goes like 1/x.
            guesses.append(v[:, near, None] * x[near] / x[None, run])
        guesses.append(v[:, run].copy())
        piece = _Run(tails, trace, x[run], guesses, negligible, downwards=near == last)
        for refinement, shifts in enumerate(_SHIFTS):
            piece.solve_together(shifts, refinement)
            piece.solve_one_by_one(shifts, refinement)
            if piece.solved.all():
                break
        v[:, run[piece.solved]] = piece.v[:, piece.solved]
        bad[run[piece.solved]] = False


class _Run:
    """Consecutive points of a tail."""

    def __init__(
        self,
        tails: Tails,
        trace: int,
        x: Real,
        guesses: list[Complex],
        negligible: float,
        *,
        downwards: bool,
    ) -> None:
        self._tails, self._trace, self._x, self._guesses = tails, trace, x, guesses
        self._negligible, self._downwards = negligible, downwards
        self.v = guesses[0].copy()
        self.solved = np.zeros(len(x), dtype=bool)

    def solve_together(self, shifts: tuple[float, float], refinement: int) -> None:
        """Solve on contours of one point for all, and again with what has been found."""
        guess = self.v.copy()
        for turn in range(_TAIL_ROUNDS):
            left = np.flatnonzero(~self.solved)
            if not left.size:
                return
            # The poles of the last point are the farthest from the centre: its contour passes
            # those of the others on the same side.
            seed = left[0] if self._downwards else left[-1]
            if self.solved.any():
                closest = self._closest(left)
                guess[:, left] = self._scaled(closest, left)
                seed = left[np.argmin(np.abs(left - closest))]
            elif turn:
                return
            agree = self._attempt(left, guess[:, left], guess[:, seed], shifts, refinement)
            if turn and not agree:
                return

    def solve_one_by_one(self, shifts: tuple[float, float], refinement: int) -> None:
        """Solve each point that is left on contours of its own, from all guesses."""
        left = np.flatnonzero(~self.solved)
        if len(left) > _MOST_ALONE[refinement]:
            return
        for k in left:
            for guess in self._candidates(k):
                if self._attempt(np.array([k]), guess[:, None], guess, shifts, refinement):
                    break

    def _candidates(self, k: np.intp) -> Iterable[Complex]:
        if self.solved.any():
            one = np.array([k])
            yield self._scaled(self._closest(one), one)[:, 0]
        for guess in self._guesses:
            yield guess[:, k]

    def _closest(self, left: NDArray[np.int64]) -> NDArray[np.int64]:
        good = np.flatnonzero(self.solved)
        return good[np.argmin(np.abs(good[None, :] - left[:, None]), axis=1)]

    def _scaled(self, good: NDArray[np.int64], left: NDArray[np.int64]) -> Complex:
        return self.v[:, good] * (self._x[good] / self._x[left])

    def _attempt(
        self,
        left: NDArray[np.int64],
        guess: Complex,
        seed: Complex,
        shifts: tuple[float, float],
        refinement: int,
    ) -> bool:
        found = []
        for shift in shifts:
            contour = self._tails.around(seed, shift, refinement)
            if contour is None:
                return False
            equations, resolved = contour
            v, arrived = newton(
                equations, self._x[left].astype(complex), guess, _TAIL_TURNS, _LAST_TAIL_STEP
            )
            found.append((v, arrived & resolved(v)))
        (one, first), (two, second) = found
        with np.errstate(all="ignore"):
            agree = np.max(np.abs(one - two) / np.abs(one), axis=0) < _AGREEMENT
            # A small density is a small part of V.
            part = np.abs(one[self._trace].imag - two[self._trace].imag)
            small = self._negligible / np.abs(self._x[left])
            agree &= part < np.maximum(_PARTS * np.abs(two[self._trace].imag), small)
            agree &= first & second & (one.imag > -_AGREEMENT * np.abs(one)).all(axis=0)
        self.v[:, left[agree]] = one[:, agree]
        self.solved[left[agree]] = True
        return bool(agree.any())


_POINTS = 60
# How close to the ends, in units of the interval, the search goes.
_NEAREST = 1e-6


def real_roots(condition: Callable[[Real], Real], low: float, high: float) -> list[float]:
    """Return the roots of a function of many points, in ascending order.

    Parameters
    ----------
    condition : callable
        (n,) -> (n,), continuous between the ends, which need not be in its domain.
    low, high : float
        Ends of the interval.

    Notes
    -----
    Found by sign changes on a grid that crowds at both ends; two roots closer than its spacing,
    a hundredth of the distance to the next end in the worst place, are missed.
    """
    if not low < high:
        return []
    steps = np.geomspace(_NEAREST, 0.5, _POINTS)
    part = np.unique(np.concatenate([steps, 1 - steps]))
    grid = low + (high - low) * part
    values = condition(grid)
    good = np.isfinite(values)
    grid, values = grid[good], values[good]
    if not values.any():
        # What vanishes everywhere tells no point from another.
        return []
    roots = [float(x) for x in grid[values == 0]]
    for k in np.flatnonzero(np.sign(values[1:]) * np.sign(values[:-1]) < 0):
        found = brentq(
            lambda x: float(condition(np.array([x]))[0]), grid[k], grid[k + 1], rtol=1e-12
        )
        roots.append(float(found))
    return sorted(roots)


def real_crossing(
    function: Callable[[float], float], low: float, high: float, what: str
) -> float | None:
    """Return where a function changes its sign between two points; None if it does not.

    Only signs and ratios count: values that overflow a float are brought back into its range.

    Raises
    ------
    ConvergenceError
        If no float between the points has a value; the message names `what`.
    """

    def bounded(x: float) -> float:
        return float(np.clip(float(function(x)), -1e100, 1e100))

    ends = bounded(low), bounded(high)
    if not np.isfinite(ends).all():
        raise ConvergenceError(f"{what} cannot be bracketed: the condition has no value there")
    if ends[0] * ends[1] > 0:
        return None
    return float(brentq(bounded, low, high, xtol=1e-14, rtol=1e-14, maxiter=500))


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
    mass : float
        Expected mass of the bulk, by which small numbers are measured.
    atom : float
        Mass at zero.

    Raises
    ------
    ConvergenceError
        If the density cannot be resolved somewhere.
    """
    # Sums are over a few hundred nodes: threads of BLAS wait for each other longer than they work.
    # Tails take seconds, and nobody knows how many steps.
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        tqdm(desc="spectrum", unit="step", delay=1, leave=False, disable=None) as bar,
    ):
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
