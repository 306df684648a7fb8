"""Densities that are so small that sums over nodes on the line do not resolve them.

There the integrand has a pole next to the line, and the average is taken along a contour that
passes it. A contour serves all points whose poles lie on the same side, so that whole runs of
points are solved at once; what remains is solved point by point. Two contours have to agree.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .spectra import Complex, Real, Tails, newton

Booleans = NDArray[np.bool_]

# Distances of two contours from the line at each refinement of their nodes.
_SHIFTS = ((1.0, 0.6), (0.5, 0.3), (0.2, 0.12), (0.07, 0.04))
_AGREEMENT = 1e-7
# The imaginary parts have to agree to this, unless they are negligible.
_PARTS = 1e-3
_ROUNDS = 40
# Near an end of the bulk two solutions are close and convergence is slow.
_NEWTON_TURNS, _LAST_STEP = 25, 1e-10
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
    """Solve for the points `bad`, in place: V is put in, `bad` cleared where that succeeds.

    Parameters
    ----------
    tails : Tails
    trace : int
        Which component of V is the trace of the resolvent.
    x : array (n,)
        Ascending points.
    v : array (m, n)
        V at good points, and about right at bad ones.
    bad : array (n,) of bool
    start : array (m, n), optional
        Other guesses.
    negligible : float
        Density per unit of log x that does not matter.
    """
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
        for turn in range(_ROUNDS):
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
                equations, self._x[left].astype(complex), guess, _NEWTON_TURNS, _LAST_STEP
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
