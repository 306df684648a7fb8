r"""Existence and uniqueness of a root in a box, by Krawczyk's interval Newton operator.

For F with derivative F' and an approximate inverse Y of it, the operator

.. math:: K(X) = \tilde x - Y F(\tilde x) + (1 - Y F'(X))(X - \tilde x)

on a box X around :math:`\tilde x` contains every root in X; if it lies in the interior of X, there
is exactly one (R. Krawczyk, Computing 4 (1969) 187; A. Neumaier, *Interval methods for systems of
equations* (1990), theorem 5.1.8). All numbers are balls: what is proven holds for each of the
functions F that the balls of its parameters stand for.

Coordinates of positive unknowns are their logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...ball_library import require_flint
from ...errors import CertificationError

Ball = Any
System = Callable[[Sequence[Ball], bool], tuple[list[Ball], list[list[Ball]]]]

# Newton steps on midpoints before the proof: the start is a solution in floats.
_NEWTON_STEPS = 12
# The Newton step has to be so short before a box is put around the point.
_NEAR = 1e-4
# Boxes that are tried, each larger than the one before.
_BOXES = 6
_CONTRACTIONS = 60
# Where more contractions would be needed, derivatives on the narrower box make them faster.
_FEW = 4


@dataclass(frozen=True)
class ProvenRoot:
    """A root that exists.

    Attributes
    ----------
    unknowns : tuple of real balls
        Enclosures of the unknowns, as narrow as they were made.
    box : tuple of real balls
        In this box of unknowns there is exactly one root.
    contraction : float
        Upper bound, below 1, of the norm of 1 − Y F'(X) in which the box is the unit ball.
    """

    unknowns: tuple[Ball, ...]
    box: tuple[Ball, ...]
    contraction: float


def prove_root(
    system: System, start: Sequence[Ball], *, logarithmic: Sequence[bool], goal: Ball
) -> ProvenRoot:
    """Prove that there is a root near a point, and only one in a box around it.

    Parameters
    ----------
    system : callable
        Takes the unknowns (not their logarithms) and whether derivatives are wanted; returns
        residuals and the rows of their derivatives by the coordinates.
    start : sequence of real balls
        Approximate root; midpoints count.
    logarithmic : sequence of bool
        Whether a coordinate is the logarithm of an unknown.
    goal : real ball
        Enclosures are made narrower until their radius in the coordinates is below this, or until
        that stops helping.

    Returns
    -------
    ProvenRoot

    Raises
    ------
    CertificationError
        If there is no proof; the message says what failed.
    """
    return _Proof(system, tuple(logarithmic)).prove(start, goal)


class _Proof:
    def __init__(self, system: System, logarithmic: tuple[bool, ...]) -> None:
        self.flint = require_flint()
        self.system = system
        self.logarithmic = logarithmic

    def prove(self, start: Sequence[Ball], goal: Ball) -> ProvenRoot:
        point, step, inverse = self.near_root(self.coordinates(start))
        rounding = self.flint.arb((1, 8 - self.flint.ctx.prec))
        # Twice the step: the operator maps the box to about a quarter of its length.
        sizes = [2 * _size(dx) + rounding * (1 + abs(x)) for x, dx in zip(point, step, strict=True)]
        # Unknowns that hardly move still depend on those that do.
        share = _maximum(sizes) / 8192
        sizes = [(s + share).upper() for s in sizes]
        contraction = math.inf
        for _ in range(_BOXES):
            box = [x + self.flint.arb(0, s) for x, s in zip(point, sizes, strict=True)]
            offsets = [b - x for b, x in zip(box, point, strict=True)]
            slopes = self.slopes(box)
            if slopes is None:
                break
            left = self.remainder(inverse, slopes)
            contraction = min(contraction, _norm(left))
            image = self.image(point, step, left, offsets)
            if all(x.contains_interior(k) for x, k in zip(box, image, strict=True)):
                narrow = self.unknowns(self.narrowed(image, inverse, left, goal))
                inner = self.unknowns_inside(box)
                if not all(x.contains(y) for x, y in zip(inner, narrow, strict=True)):
                    break
                return ProvenRoot(tuple(narrow), tuple(inner), _norm(left, sizes))
            if _norm(left) >= 1:
                # A wider box does not contract better.
                break
            sizes = [(8 * s).upper() for s in sizes]
        raise CertificationError(
            "no root is proven near the solution in floats: the interval Newton operator does not "
            f"map a box around it into itself (contraction {contraction:.1e}, below 1 is needed)\n"
            "  either the box contains a bifurcation or another root (a critical point, where the "
            "equations are nearly singular), or the equations have no root there"
        )

    def near_root(self, point: list[Ball]) -> tuple[list[Ball], list[Ball], Any]:
        """Newton on midpoints; return the point, Y F there and Y."""
        previous = math.inf
        for _ in range(_NEWTON_STEPS):
            residual, slopes = self.at(point, True)
            inverse = self.inverse(slopes)
            step = self.times(inverse, residual)
            # What balls of parameters add to the step gets no shorter by going on.
            size = float(_maximum([_size(dx.mid()) for dx in step]))
            if size < _NEAR or not size < previous:
                break
            previous = size
            point = [(x - dx).mid() for x, dx in zip(point, step, strict=True)]
        if not size < _NEAR:
            raise CertificationError(
                f"Newton's method does not stay at the solution in floats: its step is {size:.1e} "
                "there\n  the equations have no root near it, or it is at a bifurcation"
            )
        return point, step, inverse

    def narrowed(self, image: list[Ball], inverse: Any, left: Any, goal: Ball) -> list[Ball]:
        """Apply the operator around midpoints; the derivatives on a box hold in all its parts."""
        for _ in range(_CONTRACTIONS):
            radius = _maximum([x.rad() for x in image])
            if radius <= goal:
                break
            point = [x.mid() for x in image]
            if (radius / goal).log() > -_FEW * math.log(_norm(left)):
                slopes = self.slopes(image)
                if slopes is not None:
                    inverse = self.inverse(slopes)
                    left = self.remainder(inverse, slopes)
            residual, _ = self.at(point, False)
            step = self.times(inverse, residual)
            offsets = [x - m for x, m in zip(image, point, strict=True)]
            better = self.image(point, step, left, offsets)
            # Both hold the root, so their intersection does and is not empty.
            image = [x.intersection(k) for x, k in zip(image, better, strict=True)]
            if not _maximum([x.rad() for x in image]) < radius / 2:
                break
        return image

    # ------------------------------------------------------------------ parts of the operator

    def image(
        self, point: list[Ball], step: list[Ball], left: Any, offsets: list[Ball]
    ) -> list[Ball]:
        moved = (left * self.flint.arb_mat([[x] for x in offsets])).entries()
        return [x - dx + y for x, dx, y in zip(point, step, moved, strict=True)]

    def remainder(self, inverse: Any, slopes: list[list[Ball]]) -> Any:
        n = len(slopes)
        one = self.flint.arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])
        return one - inverse * self.flint.arb_mat(slopes)

    def times(self, inverse: Any, residual: list[Ball]) -> list[Ball]:
        result: list[Ball] = (inverse * self.flint.arb_mat([[x] for x in residual])).entries()
        return result

    def inverse(self, slopes: list[list[Ball]]) -> Any:
        middle = self.flint.arb_mat([[x.mid() for x in row] for row in slopes])
        try:
            return middle.inv().mid()
        except ZeroDivisionError:
            raise CertificationError(
                "the derivatives of the equations are singular at the solution: it is at a "
                "bifurcation, as at a critical point"
            ) from None

    def at(self, point: list[Ball], derivatives: bool) -> tuple[list[Ball], list[list[Ball]]]:
        residual, slopes = self.system(self.unknowns(point), derivatives)
        if not all(x.is_finite() for x in (*residual, *(y for row in slopes for y in row))):
            raise CertificationError(
                "the equations have no finite enclosure at the solution in floats: a denominator, "
                "root or logarithm in them cannot be told from an undefined one there"
            )
        return residual, slopes

    def slopes(self, box: list[Ball]) -> list[list[Ball]] | None:
        try:
            residual, slopes = self.system(self.unknowns(box), True)
        except CertificationError:
            # A narrower box may have been too narrow, and this one is too wide already.
            return None
        # Without a residual on the whole box the equations may jump in it, whatever their slopes.
        values = (*residual, *(x for row in slopes for x in row))
        return slopes if all(x.is_finite() for x in values) else None

    def coordinates(self, unknowns: Sequence[Ball]) -> list[Ball]:
        result = []
        for x, logarithmic in zip(unknowns, self.logarithmic, strict=True):
            middle = x.mid()
            if logarithmic and not middle > 0:
                raise CertificationError("an unknown that has to be positive starts from <= 0")
            result.append(middle.log().mid() if logarithmic else middle)
        return result

    def unknowns(self, coordinates: Sequence[Ball]) -> list[Ball]:
        return [
            x.exp() if logarithmic else x
            for x, logarithmic in zip(coordinates, self.logarithmic, strict=True)
        ]

    def unknowns_inside(self, box: list[Ball]) -> list[Ball]:
        """Return balls of unknowns whose logarithms lie in the box: uniqueness holds in it only."""
        arb = self.flint.arb
        result = []
        with self.flint.ctx.workprec(2 * self.flint.ctx.prec):
            for x, logarithmic in zip(box, self.logarithmic, strict=True):
                if not logarithmic:
                    result.append(x)
                    continue
                left, right = (x.mid() - x.rad()).exp().upper(), (x.mid() + x.rad()).exp().lower()
                middle = ((left + right) / 2).mid()
                # Radii have few bits and are rounded up.
                radius = (middle - left).min(right - middle) * (1 - arb(2) ** -20)
                result.append(middle + arb(0, radius.lower()))
                if not (left <= result[-1] and result[-1] <= right):
                    result[-1] = arb("nan")
        return result


def _size(x: Ball) -> Ball:
    return abs(x).upper()


def _maximum(values: Sequence[Ball]) -> Ball:
    result = values[0]
    for value in values[1:]:
        result = result.max(value)
    return result


def _norm(matrix: Any, sides: Sequence[Ball] | None = None) -> float:
    """Bound the largest sum of absolute values of a row; with sides, of S⁻¹ matrix S."""
    rows = matrix.tolist()
    if sides is not None:
        rows = [[x * s / t for x, s in zip(row, sides, strict=True)]
                for row, t in zip(rows, sides, strict=True)]  # fmt: skip
    rows = [sum((abs(x) for x in row[1:]), abs(row[0])).upper() for row in rows]
    value = float(_maximum(rows))
    # The conversion may round down.
    return math.nextafter(value, math.inf) if math.isfinite(value) else math.inf
