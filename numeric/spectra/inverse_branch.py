"""How far one branch of the inverse of a rational function is analytic.

Of x(u) = P(u)/Q(u), the branch u(x) that starts at a given zero of x is analytic in the disc up to
the first critical value that it meets; a given list of further points, such as poles of functions
of u, counts in the same way. Whether the branch meets a point is found by following it along the
ray to the value there. In mpmath, with steps so small that another branch is far away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ConvergenceError
from ...runtime.roots import newton

# Steps in x, as a part of the distance over which the branch is certainly single-valued.
_STEP = 0.1
_FIRST, _LAST, _LATEST = 1e-6, 1e-3, 1e-5
_MOST_STEPS = 5000
# Of a step of Newton's method, relatively: what is left is its square.
_CLOSE = 1e-6


def inverse_radius(
    above: Sequence[Any],
    below: Sequence[Any],
    points: Sequence[Any],
    *,
    base: Any,
    multiplicity: int,
    ctx: Any,
) -> Any:
    r"""Return the radius in x within which the branch meets none of the points.

    Parameters
    ----------
    above, below : sequence of mpf
        Coefficients of P and Q, the highest power first.
    points : sequence of mpc
        Critical points of x(u), and other points that count; those where x vanishes do not.
    base : mpf
        Where the branch starts, a zero of x.
    multiplicity : int
        Of that zero: the branch is a series in a root of x of this order.

    Returns
    -------
    mpf
        Infinite if no point is met.

    Raises
    ------
    ConvergenceError
        If the branch cannot be followed in 5000 steps.
    """
    function = _Rational(above, below, ctx)
    values = []
    for point in points:
        value = function.value(point)
        # Real coefficients: conjugate points have conjugate values.
        if value is not None and ctx.im(point) >= -abs(point) * ctx.sqrt(ctx.eps):
            values.append((abs(value), value, point))
    for size, value, point in sorted(values, key=lambda item: item[0]):
        if any(
            _meets(function, start, value, point, ctx)
            for start in _starts(function, base, multiplicity, value * _FIRST, ctx)
        ):
            return size
    return ctx.inf


class _Rational:
    """x(u) with its first two derivatives."""

    def __init__(self, above: Sequence[Any], below: Sequence[Any], ctx: Any) -> None:
        self._ctx = ctx
        self._above, self._below = (_derivatives(c, ctx) for c in (above, below))

    def value(self, u: Any) -> Any:
        """Return x, or None where it vanishes up to rounding or has a pole."""
        p, q = (self._ctx.polyval(c[0], u) for c in (self._above, self._below))
        terms = self._ctx.polyval([abs(c) for c in self._above[0]], abs(u))
        sizes = self._ctx.polyval([abs(c) for c in self._below[0]], abs(u))
        small = self._ctx.eps ** self._ctx.mpf("0.7")
        if abs(p) <= small * terms or abs(q) <= small * sizes:
            return None
        return p / q

    def at(self, u: Any) -> tuple[Any, Any, Any]:
        p, dp, ddp = (self._ctx.polyval(c, u) for c in self._above)
        q, dq, ddq = (self._ctx.polyval(c, u) for c in self._below)
        x = p / q
        slope = (dp - x * dq) / q
        return x, slope, (ddp - x * ddq - 2 * slope * dq) / q

    def leading(self, u: Any, multiplicity: int) -> Any:
        """Return c of x = c (u - base)^m + …"""
        derivative = self._above[0]
        for _ in range(multiplicity):
            derivative = _derivative(derivative, self._ctx)
        top = self._ctx.polyval(derivative, u) / self._ctx.factorial(multiplicity)
        return top / self._ctx.polyval(self._below[0], u)


def _starts(function: _Rational, base: Any, multiplicity: int, x: Any, ctx: Any) -> list[Any]:
    """Return the values of u close to the base, for a small x."""
    first = ctx.root(x / function.leading(base, multiplicity), multiplicity)
    turns = (ctx.expjpi(ctx.mpf(2 * k) / multiplicity) for k in range(multiplicity))
    return [_corrected(function, base + first * turn, x) for turn in turns]


def _meets(function: _Rational, u: Any, target: Any, point: Any, ctx: Any) -> bool:
    """Follow the branch to the target; say whether it comes to the point there."""
    part, distances = ctx.mpf(_FIRST), []
    for stop in (1 - ctx.mpf(_LAST), 1 - ctx.mpf(_LATEST)):
        for _ in range(_MOST_STEPS):
            if part >= stop:
                break
            _, slope, curvature = function.at(u)
            room = ctx.mpf(_STEP)
            if curvature:
                room = min(room, _STEP * abs(slope**2 / curvature / target))
            step = min(room, stop - part)
            part += step
            u = _corrected(function, u + target * step / slope, target * part)
        else:
            raise ConvergenceError("a branch of the solution passes too close to a critical point")
        distances.append(abs(u - point))
    # Towards a critical point the distance falls like a root of the rest of the way.
    return bool(distances[1] < distances[0] / 2)


def _corrected(function: _Rational, u: Any, x: Any) -> Any:
    def move(u: Any) -> Any:
        value, slope, _ = function.at(u)
        return (value - x) / slope

    return newton(move, u, _CLOSE, "a branch of the solution")


def _derivatives(coefficients: Sequence[Any], ctx: Any) -> list[list[Any]]:
    first = _derivative(coefficients, ctx)
    return [list(coefficients), first, _derivative(first, ctx)]


def _derivative(coefficients: Sequence[Any], ctx: Any) -> list[Any]:
    last = len(coefficients) - 1
    return [c * (last - k) for k, c in enumerate(coefficients[:-1])] or [ctx.zero]
