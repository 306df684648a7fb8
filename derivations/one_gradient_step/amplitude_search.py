"""The proof that no other amplitude is better: convexity next to the best, then branch and bound.

Balls of python-flint throughout; whoever calls holds the lock of its precision.
"""

from __future__ import annotations

from functools import cached_property

import sympy as sp
from tqdm.auto import tqdm

from ...ball_library import require_flint
from ...errors import CertificationError
from ...symbolic.activations import z as variable
from ...symbolic.ball_functions import Ball, BallEvaluator
from ...symbolic.gaussian_balls import ConstantBalls, MomentBalls
from ...symbolic.regularity import Parity
from .amplitude_balls import AmplitudeBalls
from .amplitude_error import AmplitudeError, coordinate
from .amplitude_minimum import limit_at_infinity
from .amplitude_structure import StudentShape, student_shape

_BITS = 40
_NUMBER_BITS = 64
_FARTHEST = 1 << 12
# Cells that are shorter are next to an amplitude that is as good, or nearly so.
_SHORTEST = 1e-9
_TYPICAL = sp.sqrt(2 / sp.pi)
"""E|z|; E|t|³ is twice that."""


class AmplitudeSearch:
    r"""Proof that J is least next to one amplitude.

    Parameters
    ----------
    error : AmplitudeError
    balls : AmplitudeBalls
        Values of J.
    start : Rational
        The amplitude.
    value, slope : ball
        J and J' there.
    progress : bool, optional
        Progress bar; by default where the error stream is a terminal.

    Raises
    ------
    CertificationError
        If the form of the student is not known.
    """

    def __init__(
        self,
        error: AmplitudeError,
        balls: AmplitudeBalls,
        start: sp.Rational,
        value: Ball,
        slope: Ball,
        progress: bool | None = None,
    ) -> None:
        self._flint = require_flint()
        self._error, self._balls, self._start = error, balls, start
        self._value, self._slope, self._progress = value, slope, progress
        self._shape: StudentShape = student_shape(error.student_expr)
        # J(-h) = J(h): G(-ht) is G(ht), or G(h(-t)), and -t has the law of t.
        self._even = Parity.EVEN in (error.student.parity, error.teacher.parity)

    @property
    def mirrored(self) -> bool:
        """J is even, so that the opposite amplitude is as good."""
        return self._even and self._start != 0

    @cached_property
    def _convexity(self) -> tuple[Ball, Ball]:
        """Return m and δ with J'' ≥ m up to a distance δ of the start."""
        arb = self._flint.arb
        second = self._balls.at(self._start, 2, _BITS)
        if not second > 0:
            raise CertificationError(
                f"J is not proven to be convex at h = {float(self._start):.9g}: J'' = {second}"
            )
        steepness = self._steepness
        third = 24 * steepness**2 / arb.pi() + 2 * (self._root + steepness) * steepness * (
            arb(30).sqrt()
        )
        distance = (second / (2 * third)).lower().min(arb(1)).lower()
        least = (second - distance * third).lower()
        if not (least > 0 and self._slope.abs_upper() < least * distance):
            raise CertificationError(
                f"the best amplitude is not isolated near h = {float(self._start):.9g}"
            )
        return least, distance

    def lower_bound(self) -> Ball:
        """Return a proven lower bound of J next to the start."""
        least, _ = self._convexity
        return (self._value - self._slope**2 / (2 * least)).lower()

    def amplitude(self) -> Ball:
        """Return a ball that contains the only stationary amplitude next to the start."""
        least, _ = self._convexity
        reach = (self._slope.abs_upper() / least).upper()
        return BallEvaluator().real_constant(self._start) + self._flint.arb(0, reach)

    def exclude_the_rest(self) -> None:
        """Prove that J is larger everywhere else.

        Raises
        ------
        CertificationError
            If it is not proven; the message says where.
        """
        _, distance = self._convexity
        start = float(self._start)
        # Less than the distance, also after the rounding of the start.
        margin = float(distance) * 0.99 - 1e-15 * (1 + abs(start))
        ends = [self._reach(side) for side in (-1, 1)]
        cells = [(-ends[0], start - margin), (start + margin, ends[1])]
        if self._even:
            cells = [(0.0, abs(start) - margin), (abs(start) + margin, max(ends))]
        cells = [(a, b) for a, b in cells if a < b]
        self._branch_and_bound(cells)

    # ------------------------------------------------------------------ parts

    @cached_property
    def _root(self) -> Ball:
        return self._value.upper().sqrt().upper()

    @cached_property
    def _steepness(self) -> Ball:
        return self._number(self._shape.slope).upper()

    def _branch_and_bound(self, cells: list[tuple[float, float]]) -> None:
        arb, steepness = self._flint.arb, self._steepness
        curvature = self._number(_TYPICAL * sp.sqrt(3))
        total, count = sum(b - a for a, b in cells), 0
        with tqdm(
            total=total, desc="proving that τ_* is least", unit_scale=True, leave=False, delay=1,
            disable=None if self._progress is None else not self._progress,
        ) as bar:  # fmt: skip
            while cells:
                a, b = cells.pop()
                count += 1
                if count > self._balls.most_cells:
                    raise CertificationError(
                        f"{self._balls.most_cells} cells of amplitudes are not enough; the next "
                        f"one is from h = {a:.9g} to {b:.9g}"
                    )
                middle = (a + b) / 2
                half = (arb(b) - arb(middle)).max(arb(middle) - arb(a)).upper()
                centre = sp.Rational(middle)
                value = self._balls.at(centre, 0, _BITS)
                far = value > 0 and value.sqrt() - steepness * half > self._root
                if not far:
                    slope = self._balls.at(centre, 1, _BITS)
                    size = value.upper().max(arb(0)).sqrt()
                    rate = 2 * steepness**2 + 2 * (size + steepness * half) * steepness * curvature
                    far = slope.abs_lower() > rate * half
                if far:
                    bar.update(b - a)
                    continue
                if b - a < _SHORTEST * (1 + abs(middle)):
                    raise CertificationError(
                        f"h = {middle:.9g} is nearly as good; J there is {value.str(8)}"
                    )
                cells += [(a, middle), (middle, b)]

    def _reach(self, side: int) -> float:
        """Return the H beyond which J is proven to be larger, on one side."""
        reach = 1.0
        while reach <= 2 * abs(float(self._start)) + 1 or not self._is_worse_beyond(reach, side):
            reach *= 2
            if reach > _FARTHEST:
                raise CertificationError(
                    f"for |h| > {_FARTHEST} nothing excludes lower values of J"
                )
        return reach

    def _is_worse_beyond(self, reach: float, side: int) -> bool:
        shape, number = self._shape, self._number
        h = self._flint.arb(reach)
        if shape.has_ramp:
            a, b = shape.ramp
            growth = number(sp.sqrt(a**2 + b**2))
            return bool(growth * h - number(shape.rest) - self._teacher_norm > self._root)
        if shape.distance is not None:
            limit = self._limits[side]
            tail = number(shape.distance / (2 * sp.pi) ** sp.Rational(1, 4)) / h.sqrt()
            return bool(limit.lower() > 0 and limit.lower().sqrt() - tail > self._root)
        if shape.sine is not None and not self._error.teacher.jumps:
            factor, rate = shape.sine
            own = number(factor**2 * sp.exp(-(rate**2)) / 2)
            damping = (-2 * number(rate**2) * h**2).exp()
            cross = number(abs(factor / rate) * sp.exp(-(rate**2) / 2)) * self._wavering / h
            least = self._moment(self._without_constant**2) - 2 * cross + own * (1 - damping)
            return bool(least > self._value.upper())
        raise CertificationError("nothing is proven about large amplitudes of this student")

    @cached_property
    def _limits(self) -> dict[int, Ball]:
        found = {}
        for side in (-1, 1):
            limit = limit_at_infinity(self._error, side, 0.0)
            if limit is None:
                raise CertificationError("the limit of J for large amplitudes is not known")
            found[side] = self._number(limit)
        return found

    @cached_property
    def _teacher_norm(self) -> Ball:
        return self._moment(self._teacher**2).sqrt()

    @cached_property
    def _wavering(self) -> Ball:
        r"""The norm of f' − t f, f the teacher minus the student's constant."""
        slope = self._error.teacher.derivative.xreplace({variable: coordinate})
        return self._moment((slope - coordinate * self._without_constant) ** 2).sqrt().upper()

    @property
    def _without_constant(self) -> sp.Expr:
        return self._teacher - self._shape.constant

    @property
    def _teacher(self) -> sp.Expr:
        return self._error.teacher_expr.xreplace({variable: coordinate})

    def _moment(self, integrand: sp.Expr) -> Ball:
        return MomentBalls(integrand, coordinate).ball(0, _NUMBER_BITS)[0]

    def _number(self, expr: sp.Expr) -> Ball:
        return ConstantBalls(sp.sympify(expr, strict=True)).ball(_NUMBER_BITS)
