r"""Resolvents of random matrices from their self-consistent equations.

Self-consistent equations V = G(z, V) of a resolvent hold in the upper half plane, where G maps
points with positive imaginary parts to such points; a solution there is the only one (Earle and
Hamilton 1970). It is followed from a large imaginary part of z, where iteration converges at
once, down to the point that is wanted: predictor along dV/dz, Newton's method, and a step that is
accepted only if the solution stays in the upper half plane. On the real axis the limit from above
is meant; there all imaginary parts vanish outside the spectrum.

Points are arrays of shape (n,), solutions of shape (m, n). No formula of any model is here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ConvergenceError

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
    equations : callable
    z : array (n,)
    start : array (m, n)
    turns : int
    last_step : float
        Relative size of the step after which it stops. Convergence is quadratic: what is left is
        about its square.
    """
    v = np.array(start, dtype=complex)
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
    equations: SelfConsistency, z: Complex, scale: float, components: int
) -> tuple[Complex, NDArray[np.bool_]]:
    """Return V at points with Im z >= 0, each followed from far above.

    Parameters
    ----------
    equations : callable
    z : array (n,)
        Im z = 0 means the limit from above.
    scale : float
        Size of the spectrum.
    components : int
        Number m of unknowns.

    Returns
    -------
    V : array (m, n)
    found : array (n,)
        False where the path could not be followed to its end.
    """
    z = np.asarray(z, dtype=complex)
    x, goal = z.real, z.imag
    size = np.maximum(np.abs(x), 1e-12 * scale)
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
        z : array-like (n,)
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
