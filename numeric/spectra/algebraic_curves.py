"""Resolvents that are algebraic functions: roots of a polynomial, and the one that is meant.

A resolvent that satisfies a polynomial equation is one of its roots. The root that is meant has a
transform in the upper half plane and satisfies the equation from which the polynomial was made by
squaring: a choice that needs no continuation from far away. Arrays of points have shape (n,). No
formula of any model is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from ...errors import ConvergenceError

Complex = NDArray[np.complex128]
Real = NDArray[np.float64]

# Off the bulk the root is chosen at a height of this fraction of the distance to it, then moved.
_LIFT = 1e-3
_MOVES, _NEAR_MOVES = 30, 3
_LARGEST_STEP, _LAST_STEP = 1e-2, 1e-17
_POLISHES = 4
# Of a root, in units of the sum of all terms.
_BACKWARD_ERROR = 1e-13
_SMALL_RESIDUAL = 1e-6


@dataclass(frozen=True)
class AlgebraicTransform:
    r"""The root x(z) of a polynomial whose inverse is a transform of a spectrum.

    Parameters
    ----------
    polynomial : callable
        z -> coefficients, from the highest power down.
    terms, slope : callable
        (x, z) -> what adds up to zero at the root that is meant, and the derivative of the sum; in
        double or in extended precision, as x has it.
    edges : array (k, 2)
        Intervals of the bulk.
    atom : bool
        Whether there is an atom at zero.
    """

    polynomial: Callable[[Complex], Sequence[ArrayLike]]
    terms: Callable[[Any, Any], Sequence[Any]]
    slope: Callable[[Any, Any], Any]
    edges: Real
    atom: bool

    def __call__(self, z: Complex) -> Complex:
        """Return x at points (n,) with Im z ≥ 0; on the real axis the limit from above."""
        if not z.size:
            return z
        outside, distance = self._distance(z.real)
        # Where the transform is next to real, signs of imaginary parts would be rounding.
        lifted = outside & (z.imag < _LIFT * distance)
        heights = np.where(lifted, _LIFT * distance, z.imag)
        root = self._moved(self._chosen(z.real + 1j * heights), z, ~lifted)
        real = outside & (z.imag == 0)
        root[real] = root[real].real
        return root

    def _distance(self, x: Real) -> tuple[NDArray[np.bool_], Real]:
        """Tell which points are off the bulk, and their distance from it and from zero."""
        inside = np.zeros(x.shape, dtype=bool)
        distance = np.abs(x) if self.atom else np.full(x.shape, np.inf)
        for low, high in self.edges:
            inside |= (x >= low) & (x <= high)
            distance = np.minimum(distance, np.minimum(np.abs(x - low), np.abs(x - high)))
        return ~inside, distance

    def _chosen(self, z: Complex) -> Complex:
        roots = root_candidates(self.polynomial(z))
        with np.errstate(all="ignore"):
            terms = np.array(self.terms(roots, z + 0 * roots))
            residual = terms.sum(axis=0) / np.abs(terms).sum(axis=0)
            return consistent_root(roots, 1 / roots, residual)

    def _moved(self, root: Complex, z: Complex, near: NDArray[np.bool_]) -> Complex:
        """Refine roots, following those that were chosen elsewhere; in extended precision.

        Where the transform is nearly that of an atom, the density is a small part of the root.
        """
        at, found = z.astype(np.clongdouble), root.astype(np.clongdouble)
        best, smallest = found, np.full(z.shape, np.inf)
        for turn in range(_MOVES):
            with np.errstate(all="ignore"):
                value = sum(self.terms(found, at))
                step = value / self.slope(found, at)
                better = np.abs(value) < smallest
            best = np.where(better, found, best)
            smallest = np.where(better, np.abs(value), smallest)
            # At an edge two roots meet, and a step from one may be anywhere.
            lost = ~np.isfinite(step) | (near & (np.abs(step) > _LARGEST_STEP * np.abs(found)))
            step = np.where(lost, 0, step)
            if (np.abs(step) <= _LAST_STEP * np.abs(found)).all():
                break
            found = found - step
            if turn > _NEAR_MOVES and near.all():
                break
        return np.asarray(best, dtype=complex)


def root_candidates(coefficients: Sequence[ArrayLike]) -> Complex:
    """Return every root at least once, large and small ones with small relative errors.

    Parameters
    ----------
    coefficients : sequence of m + 1 arrays (n,)
        From the highest power down.

    Returns
    -------
    array (k, n)
        Roots of the polynomial and inverse ones of the reversed polynomial, which are good for
        large and for small roots, polished by Newton's method; nan where the polynomial is not
        small.
    """
    rows = _rows(coefficients)
    used = len(rows)
    # Roots at zero of all polynomials have no inverse.
    while used > 1 and not rows[used - 1].any():
        used -= 1
    with np.errstate(all="ignore"):
        inverse = 1 / _eigenvalues(rows[:used][::-1])
        found = np.concatenate([_eigenvalues(rows), inverse])
        found = _polished(rows, np.where(np.isfinite(found), found, 0))
        terms = np.zeros(found.shape)
        for row in rows:
            terms = terms * np.abs(found) + np.abs(row)
        good = np.abs(_value_and_slope(rows, found)[0]) <= _BACKWARD_ERROR * terms
    return np.where(good, found, np.nan)


def _rows(coefficients: Sequence[ArrayLike]) -> Complex:
    return np.array(
        np.broadcast_arrays(*(np.atleast_1d(c) for c in coefficients)), dtype=np.complex128
    )


def _eigenvalues(rows: Complex) -> Complex:
    """Eigenvalues of companion matrices; those of polynomials of lower degree are nan."""
    degree, count = len(rows) - 1, rows.shape[1]
    matrices = np.zeros((count, degree, degree), dtype=complex)
    with np.errstate(all="ignore"):
        matrices[:, 0, :] = -(rows[1:] / rows[0]).T
    lower = ~np.isfinite(matrices).all(axis=(1, 2))
    matrices[lower] = 0
    matrices[:, range(1, degree), range(degree - 1)] = 1
    roots = np.asarray(np.linalg.eigvals(matrices).T, dtype=np.complex128)
    roots[:, lower] = np.nan
    return roots


def _polished(rows: Complex, roots: Complex) -> Complex:
    """Take steps of Newton's method where they make the polynomial smaller."""
    for _ in range(_POLISHES):
        value, slope = _value_and_slope(rows, roots)
        with np.errstate(all="ignore"):
            moved = roots - value / slope
            better = np.abs(_value_and_slope(rows, moved)[0]) < np.abs(value)
        roots = np.where(better, moved, roots)
    return roots


def _value_and_slope(rows: Complex, x: Complex) -> tuple[Complex, Complex]:
    value = np.broadcast_to(rows[0], x.shape)
    slope = np.zeros_like(x)
    with np.errstate(all="ignore"):
        for row in rows[1:]:
            slope = slope * x + value
            value = value * x + row
    return value, slope


def aligned_quadratic_root(
    square: Complex, linear: Complex, constant: Complex, direction: Complex
) -> Complex:
    r"""Return the root x = −2c/(b + S) of a x² + b x + c, S = √(b² − 4ac), without cancellation.

    Of the two signs of S the one whose real part along `direction` is positive.
    """
    with np.errstate(all="ignore"):
        root = np.sqrt(linear**2 - 4 * square * constant)
        root = np.where((root * np.conj(direction)).real < 0, -root, root)
        direct = np.abs(linear + root) >= np.abs(linear - root)
        found: Complex = np.where(
            direct, -2 * constant / (linear + root), (root - linear) / (2 * square)
        )
    return found


def consistent_root(roots: Complex, transform: Complex, residual: Complex) -> Complex:
    """Return the root that satisfies an equation with a transform high in the upper half plane.

    Parameters
    ----------
    roots : array (m, n)
    transform : array (m, n)
        What has to have a positive imaginary part at the root that is meant.
    residual : array (m, n)
        Of the equation, relative to its terms.

    Returns
    -------
    array (n,)
        Of the roots with a small residual that one whose transform has the largest sine: on the
        real axis rounding makes others look complex, too. Without such roots the best one.
    """
    size = np.abs(residual)
    size = np.where(np.isfinite(size), size, np.inf)
    with np.errstate(all="ignore"):
        sines = np.where(np.isfinite(transform), transform.imag / np.abs(transform), -1.0)
    score = np.where(size < _SMALL_RESIDUAL, sines, -2 - size)
    found: Complex = np.take_along_axis(roots, np.argmax(score, axis=0)[None], 0)[0]
    return found


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
