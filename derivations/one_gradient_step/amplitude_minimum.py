r"""The least J(h) over all amplitudes: a scan of the whole line, then a root of J'.

:math:`\sqrt{J(h)}` is the distance of two functions in :math:`L_2`, so it changes at most like
:math:`L|h - h'|` with :math:`L = \sup|G'|`: intervals whose ends are far above the best value are
excluded by that, the others halved. Beyond the scan J goes to its limits for :math:`h \to
\pm\infty`, where a bounded student has become a step of the teacher's coordinate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp
from scipy.optimize import brentq, minimize_scalar

from ...digits import MOST_DIGITS, held_digits
from ...errors import ConvergenceError, EmissionError, GiantstepError
from ...numeric.scaled_distance import ScaledDistance, Scan, scan
from ...numeric.smoothed import Smoothed
from ...runtime.precision import local_context
from ...runtime.quadrature import REACH
from ...runtime.roots import newton
from ...symbolic.activations import z as variable
from ...symbolic.averages import Average
from ...symbolic.boundedness import is_bounded, value_at_infinity
from ...symbolic.gaussian import expect
from ...symbolic.printing.compiled import compiled
from .amplitude_error import AmplitudeError, amplitude, exact_rational, with_numbers

_FARTHEST, _FARTHEST_OSCILLATING = 1024.0, 32.0
_CORE = 8.0
_MOST_TIMES_FARTHER = 8.0
_EDGE = 0.99
_ZERO, _MAYBE_ZERO = 1e-28, 1e-20
"""Of the teacher's square: below the first J is rounding, below the second algebra is asked."""

_LARGEST_DENOMINATOR = 1000
_SAME = 1e-12
_ROUNDING = 1e-15
_LARGEST = 1e100
_MOST_INTERVALS = 4
# How far, relatively, many digits may be from floats.
_FLAT = 1e-3
# Of numbers that are printed with fewer.
_SPARE_DIGITS = 10


@dataclass(frozen=True)
class AmplitudeMinimum:
    r"""Where J is least.

    Attributes
    ----------
    amplitude : float
        Of several that tie, the positive one that is closest to zero; infinite if J only
        approaches its infimum.
    value : float
    error : float
        Estimated absolute error of the value.
    others : tuple of float
        Amplitudes with the same value.
    limits : tuple of (float or None, float or None)
        J for h to minus and plus infinity; None where not known.
    farthest : float
        Up to which \|h\| amplitudes were searched.
    searched, beyond : str
        What "least" rests on among these amplitudes, and what is known of larger ones.
    exact : tuple of (Expr, Expr) or None
        Amplitude and value where algebra knows them.
    """

    amplitude: float
    value: float
    error: float
    others: tuple[float, ...]
    limits: tuple[float | None, float | None]
    farthest: float
    searched: str
    beyond: str
    exact: tuple[sp.Expr, sp.Expr] | None = None


def float_distance(error: AmplitudeError) -> ScaledDistance:
    """Return J in floating point.

    Raises
    ------
    EmissionError
        If a function has no counterpart in NumPy or SciPy.
    ConvergenceError
        If quadrature does not settle.
    """
    slope = error.student.derivative
    smoothed: Callable[..., Any]
    smoothed_slope: Callable[..., Any]
    try:
        if error.smoothed.has(Average):
            raise EmissionError("the smoothed student has no closed form")
        smoothed = _numpy(error.smoothed, error.argument)
        smoothed_slope = _numpy(error.smoothed_slope, error.argument)
    except EmissionError:
        kinks = tuple(sorted(float(k) for k in error.student.kinks))
        smoothed = Smoothed(_numpy(error.student_expr, variable), kinks)
        smoothed_slope = Smoothed(_numpy(slope, variable), kinks)
    return ScaledDistance(
        _numpy(error.teacher_expr, variable),
        tuple(sorted(float(k) for k in error.teacher.kinks)),
        smoothed,
        smoothed_slope,
    )


def least_error(error: AmplitudeError, distance: ScaledDistance) -> AmplitudeMinimum:
    """Minimise J over all real amplitudes.

    Raises
    ------
    ConvergenceError
        If no minimum is found.
    """
    oscillating = _oscillates(error)
    farthest = _farthest(distance, oscillating)
    found = _scan(distance, farthest, oscillating)
    candidates = [_refined(distance, bracket) for bracket in found.brackets]
    candidates = [c for c in candidates if math.isfinite(c[1])]
    if not candidates:
        raise ConvergenceError("no amplitude with a finite error was found")
    size = distance.size
    limits = (_limit(error, -1, size), _limit(error, 1, size))
    best = min(value for _, value in candidates)
    # Rounding of J is relative to its root.
    tolerance = max(1e-13 * best, 1e-14 * math.sqrt(best * size), _ZERO * size)
    ties = sorted(
        {round(h, 12): h for h, value in candidates if value <= best + tolerance}.values(),
        key=lambda h: (abs(h) > 1e-9, abs(round(h, 9)), h < 0),
    )
    for side, limit in zip((-1, 1), limits, strict=True):
        # A tail that decreases has its least value on the last points of the scan.
        if limit is not None and limit < best * (1 - 1e-12):
            return AmplitudeMinimum(
                side * math.inf, limit, 1e-15, (), limits, farthest,
                f"{len(found.points)} amplitudes with |h| <= {farthest:g}, all above the limit",
                _beyond(farthest, limits),
            )  # fmt: skip
    least, value = ties[0], best
    if abs(least) > _EDGE * farthest:
        raise ConvergenceError(
            f"the least error lies beyond the amplitudes that are scanned, |h| <= {farthest:g}: "
            "the student varies too slowly for this teacher; scale its argument, such as tanh(z) "
            "for tanh(z/c)"
        )
    exact = _exact_zero(error, least) if value < _MAYBE_ZERO * size else None
    if exact is not None:
        least, value = float(exact[0]), 0.0
    return AmplitudeMinimum(
        amplitude=least,
        value=value,
        error=0.0 if exact is not None else _error(distance, least, value),
        others=tuple(ties[1:]),
        limits=limits,
        farthest=farthest,
        searched=_searched(found, farthest),
        beyond=_beyond(farthest, limits),
        exact=exact,
    )


def precise_minimum(
    error: AmplitudeError, start: AmplitudeMinimum, digits: int, *, show_progress: bool = True
) -> tuple[str, str]:
    """Return amplitude and least error as texts of so many digits.

    Raises
    ------
    ConvergenceError
        If the digits are not reached.
    """
    if start.exact is not None:
        h, value = (held_digits(x.evalf(digits + _SPARE_DIGITS), digits) for x in start.exact)
        return h, value
    if math.isinf(start.amplitude):
        side = 1 if start.amplitude > 0 else -1
        limit = limit_at_infinity(error, side, float_distance(error).size)
        assert limit is not None
        return str(start.amplitude), held_digits(limit.evalf(digits + _SPARE_DIGITS), digits)
    most = min(digits + _SPARE_DIGITS, MOST_DIGITS)
    ctx = local_context(most)
    near, what = ctx.mpf(start.amplitude), f"the amplitude near h = {start.amplitude:.9g}"
    width = 1 + abs(near)

    def precise(h: Any) -> tuple[Any, Any]:
        return error.precise(exact_rational(h), most, show_progress=show_progress)

    def move(h: Any) -> Any:
        step = h - precise(h)[1]
        if abs(h - step - near) > _FLAT * width:
            raise ConvergenceError(
                f"{what} cannot be refined: J is flat there; ask for fewer digits"
            )
        return step

    # What is left after a step is about its square.
    h = newton(move, near, ctx.mpf(10) ** -(digits // 2 + _SPARE_DIGITS // 2), what, size=1)
    return held_digits(h, digits), held_digits(precise(h)[0], digits)


# ---------------------------------------------------------------------- parts


def _numpy(expr: sp.Expr, symbol: sp.Symbol) -> Callable[[Any], Any]:
    expr = with_numbers(expr, lambda node: sp.Float(node.evalf(20), 20))
    if expr.has(symbol):
        return compiled(expr, (symbol,))
    constant = float(expr)
    return lambda x: np.full(np.shape(x), constant)


def _farthest(distance: ScaledDistance, oscillating: bool) -> float:
    """Up to where amplitudes are scanned: a student that grows fast leaves the floats early."""
    farthest = _FARTHEST
    if oscillating:
        # A teacher that varies fast asks for large amplitudes.
        farthest = _FARTHEST_OSCILLATING * min(_MOST_TIMES_FARTHER, distance.finest)
    while farthest > 1:
        ends = np.array([-1.0, 1.0]) * farthest * (REACH + 0.5)
        try:
            with np.errstate(all="ignore"):
                if np.all(np.abs(distance.smoothed(ends)) < _LARGEST):
                    break
        except ConvergenceError:
            if farthest <= _CORE:
                raise
        farthest /= 2
    return farthest


def _oscillates(error: AmplitudeError) -> bool:
    ends = [value_at_infinity(error.student.expr, variable, side) for side in (1, -1)]
    return None in ends and is_bounded(error.student.expr, variable) is not False


def _scan(distance: ScaledDistance, farthest: float, oscillating: bool) -> Scan:
    core = min(_CORE, farthest)
    points = np.linspace(-core, core, 129)
    if oscillating:
        outside = np.arange(core, farthest, 0.25)[1:]
    else:
        outside = core * 1.15 ** np.arange(1, 36)
        outside = np.append(outside[outside < farthest], [farthest] if farthest > core else [])
    points = np.concatenate([-outside[::-1], points, outside])
    return scan(distance.value, list(map(float, points)), steepness=distance.steepness(farthest))


def _refined(distance: ScaledDistance, bracket: tuple[float, float]) -> tuple[float, float]:
    low, high = bracket
    slopes = [distance.derivative(h) for h in bracket]
    if slopes[0] < 0 < slopes[1]:
        h = brentq(lambda h: distance.derivative(h), low, high, xtol=1e-300, rtol=1e-15)
    else:
        h = minimize_scalar(
            lambda h: distance.value(h), bounds=bracket, method="bounded",
            options={"xatol": 1e-10},
        ).x  # fmt: skip
    h = float(h)
    # A minimum at zero by symmetry is flat to rounding around it.
    if low <= 0 <= high and distance.value(0.0) <= distance.value(h) * (1 + _ROUNDING):
        h = 0.0
    return h, distance.value(h)


def _error(distance: ScaledDistance, h: float, value: float) -> float:
    finer = abs(distance.value(h, 1) - value)
    rounding = 4e-15 * math.sqrt(value) * (1 + abs(h)) + 1e-16 * value
    return finer + rounding


def _limit(error: AmplitudeError, side: int, size: float) -> float | None:
    expr = limit_at_infinity(error, side, size)
    if expr is None:
        return None
    return math.inf if expr is sp.oo else float(expr.evalf(20))


def limit_at_infinity(error: AmplitudeError, side: int, size: float) -> sp.Expr | None:
    """Return J for h to ± infinity: the student is a step, or leaves every bound.

    Numbers that are rounding against `size` become zero; with a size of 0 none does.
    """
    ends = [value_at_infinity(error.student.expr, variable, s * side) for s in (-1, 1)]
    if any(end is not None and end.is_infinite for end in ends):
        return sp.oo
    if None in ends:
        closed = error.closed_form
        return None if closed is None else value_at_infinity(closed, amplitude, side)
    mean = sp.expand(error.student.expr - error.student_expr)
    left, right = (end - mean for end in ends)
    step = left + (right - left) * sp.Heaviside(variable, sp.Rational(1, 2))
    difference = error.teacher_expr - step
    if sp.expand(difference.rewrite(sp.Heaviside)) == 0:
        return sp.S.Zero
    try:
        value = expect(sp.expand(difference**2), variable)
        number = value.evalf(20)
    except GiantstepError:
        return None
    return sp.S.Zero if abs(number) < 1e-18 * size else value


def _exact_zero(error: AmplitudeError, h: float) -> tuple[sp.Expr, sp.Expr] | None:
    square = Fraction(h * h).limit_denominator(_LARGEST_DENOMINATOR)
    if abs(h * h - float(square)) > _SAME * (1 + h * h):
        return None
    exact = sp.sqrt(sp.Rational(square.numerator, square.denominator)) * (1 if h >= 0 else -1)
    return (exact, sp.S.Zero) if error.vanishes_at(exact) else None


def _searched(found: Scan, farthest: float) -> str:
    text = f"{len(found.points)} amplitudes with |h| <= {farthest:g}"
    count = len(found.remaining)
    if not count:
        return text
    if count <= _MOST_INTERVALS:
        where = " and ".join(f"[{a:.4g}, {b:.4g}]" for a, b in found.remaining)
    else:
        where = f"{count} intervals in [{found.remaining[0][0]:.4g}, {found.remaining[-1][1]:.4g}]"
    return text + f"; the slope of sqrt(J) excludes lower values there outside {where}"


def _beyond(farthest: float, limits: tuple[float | None, float | None]) -> str:
    known = [
        f"J({name}) = {limit:.6g}" for name, limit in zip(("-oo", "oo"), limits, strict=True)
        if limit is not None
    ]  # fmt: skip
    if not known:
        return f"nothing is known for |h| > {farthest:g}"
    rest = "only the limit is known" if len(known) == 1 else "only the limits are known"
    return f"for |h| > {farthest:g} {rest}: " + ", ".join(known)
