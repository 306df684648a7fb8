r"""Proven enclosures of exact constants, by interval arithmetic.

A constant lies in its interval whatever the precision; an interval that excludes zero proves that
the constant is not zero. Complex numbers are rectangles. Arithmetic and roots are rounded outward
by mpmath; its exp, log, sin, cos and atan2 are widened here by 64 units in the last place, because
atan2 of mpmath 1.3 rounds to nearest.
The error function comes from the series with positive terms

.. math:: \operatorname{erf} x = \frac{2x e^{-x^2}}{\sqrt\pi}\sum_n \frac{(2x^2)^n}{(2n+1)!!}

(DLMF 7.6.2), whose remainder is below its last term once the terms fall by half or more, and far
out from the first term of the asymptotic series of erfc (DLMF 7.12.1, which envelops it); Owen's T
from his series in powers of a, for a ≤ 1, with the remainder of the exponential series.
"""

from __future__ import annotations

import functools
from typing import Any

import sympy as sp
from mpmath.ctx_iv import MPIntervalContext, ivmpc
from mpmath.libmp import ComplexResult

from ..expressions.functions import HALF, OwenT, relu, sigmoid, softplus

# Beyond this argument the series of erf is long, and two terms of erfc's asymptotic one do.
_FAR = 30
# exp of more than this many bits is a tower, not a number anybody compares with zero.
_MAX_EXPONENT = 10**6
_WIDENING_BITS = 6


class NoEnclosure(ArithmeticError):
    """The constant holds something that has no proven enclosure here, or is not finite."""


def enclosure(expr: sp.Expr, bits: int) -> Any:
    """Return an interval, or a rectangle in the complex plane, that holds a constant.

    Parameters
    ----------
    expr : Expr
        A constant of rationals, pi, E, I, sums, products, powers and elementary functions, erf,
        erfc, erfi and the activations; principal branches.
    bits : int
        Working precision; the interval shrinks with it and is right for any.

    Returns
    -------
    ivmpf or ivmpc
        An interval of mpmath.

    Raises
    ------
    NoEnclosure
        If a part is not of this class, lies on a branch cut or pole as far as can be seen at this
        precision, or is not finite.

    Examples
    --------
    >>> enclosure(sp.sqrt(2) + sp.pi, 20)
    mpi('4.5558014', '4.555809')
    """
    ctx = _context(bits)
    try:
        result = _Evaluator(ctx).value(expr)
    except (ComplexResult, ZeroDivisionError, ValueError, OverflowError) as error:
        raise NoEnclosure(str(error)) from None
    for part in (result.real, result.imag):
        if not abs(part) < ctx.inf:
            raise NoEnclosure(f"no finite enclosure of {expr}")
    return result


@functools.lru_cache(maxsize=32)
def _context(bits: int) -> Any:
    """Return an interval context of this precision; making one takes longer than most values."""
    ctx = MPIntervalContext()
    ctx.prec = bits
    return ctx


def are_apart(first: Any, second: Any) -> bool:
    """Return whether two enclosures are disjoint, so that the constants in them differ."""
    pairs = ((first.real, second.real), (first.imag, second.imag))
    return any(bool(a < b) or bool(a > b) for a, b in pairs)


def enclosed_sign(expr: sp.Expr, bits: int) -> int:
    """Return the proven sign of a real constant, 0 if its interval holds zero (or is not known).

    Examples
    --------
    >>> enclosed_sign(sp.pi - sp.Rational(355, 113), 60)
    -1
    """
    try:
        value = enclosure(expr, bits)
    except NoEnclosure:
        return 0
    if not _is_real(value):
        return 0
    return int(bool(value > 0)) - int(bool(value < 0))


def excludes_zero(expr: sp.Expr, bits: int) -> bool:
    """Return whether an enclosure at this precision proves that a constant is not zero."""
    try:
        value = enclosure(expr, bits)
    except NoEnclosure:
        return False
    return any(bool(part > 0) or bool(part < 0) for part in (value.real, value.imag))


def _is_real(value: Any) -> bool:
    return not isinstance(value, ivmpc)


class _Evaluator:
    """Interval values of an expression and its parts at one precision."""

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx
        self.known: dict[sp.Expr, Any] = {}

    def value(self, expr: sp.Expr) -> Any:
        if expr not in self.known:
            self.known[expr] = self.compute(expr)
        return self.known[expr]

    def compute(self, expr: sp.Expr) -> Any:
        ctx = self.ctx
        if expr.is_Rational:
            return ctx.mpf(int(expr.p)) / int(expr.q)
        if expr is sp.pi:
            return +ctx.pi
        if expr is sp.E:
            return +ctx.e
        if expr is sp.I:
            return ctx.mpc(0, 1)
        if expr.is_Add:
            return sum((self.value(term) for term in expr.args), ctx.mpf(0))
        if expr.is_Mul:
            product = ctx.mpf(1)
            for factor in expr.args:
                product = product * self.value(factor)
            return product
        if expr.is_Pow:
            return self.power(*expr.args)
        if expr.is_Function and len(expr.args) == 1:
            return self.function(type(expr), self.value(expr.args[0]))
        if isinstance(expr, OwenT):
            return self.owen(*(self.value(operand) for operand in expr.args))
        if isinstance(expr, sp.Heaviside) and expr.args[1] == HALF:
            return (1 + self.function(sp.sign, self.value(expr.args[0]))) / 2
        raise NoEnclosure(f"no enclosure of {type(expr).__name__}")

    def power(self, base: sp.Expr, exponent: sp.Expr) -> Any:
        value = self.value(base)
        if exponent.is_Integer:
            return self.integer_power(value, int(exponent))
        if _is_real(value) and bool(value >= 0):
            if exponent.is_Rational and exponent.q == 2:
                return self.integer_power(self.ctx.sqrt(value), int(exponent.p))
            return self.exp(self.value(exponent) * self.log(value))
        return self.exp(self.value(exponent) * self.log(value))

    def integer_power(self, value: Any, exponent: int) -> Any:
        if exponent < 0:
            return 1 / self.integer_power(value, -exponent)
        result = self.ctx.mpf(1)
        while exponent:
            if exponent & 1:
                result = result * value
            value, exponent = value * value, exponent >> 1
        return result

    def exp(self, value: Any) -> Any:
        if _is_real(value) and bool(value <= -_MAX_EXPONENT):
            return self.ctx.mpf([0, 1]) * self.ctx.mpf(2) ** -_MAX_EXPONENT
        if not abs(value.real) < _MAX_EXPONENT:
            raise NoEnclosure("the exponential is too large")
        return self.outward(self.ctx.exp(value))

    def log(self, value: Any) -> Any:
        """Principal logarithm; a rectangle that touches the cut or zero has none."""
        if _is_real(value):
            if bool(value > 0):
                return self.outward(self.ctx.log(value))
            if bool(value < 0):
                return self.ctx.mpc(self.outward(self.ctx.log(-value)), self.ctx.pi)
            raise NoEnclosure("the logarithm of a number that may be zero")
        if not (bool(value.real > 0) or bool(value.imag > 0) or bool(value.imag < 0)):
            raise NoEnclosure("the logarithm on its branch cut")
        return self.outward(self.ctx.log(value))

    def outward(self, value: Any) -> Any:
        """Widen what an elementary function of mpmath gave, real and imaginary part each."""
        margin = self.ctx.mpf([-1, 1]) * self.ctx.mpf(2) ** (_WIDENING_BITS - self.ctx.prec)
        if _is_real(value):
            return value + value * margin
        parts = (part + part * margin for part in (value.real, value.imag))
        return self.ctx.mpc(*parts)

    def function(self, function: type, x: Any) -> Any:
        ctx = self.ctx
        if function is sp.exp:
            return self.exp(x)
        if function is sp.log:
            return self.log(x)
        if not _is_real(x):
            raise NoEnclosure(f"no enclosure of {function.__name__} at a complex number")
        if function in (sp.sin, sp.cos, sp.tan):
            return self.outward(getattr(ctx, function.__name__)(x))
        if function is sp.atan:
            return self.outward(ctx.atan2(x, ctx.mpf(1)))
        if function in (sp.asin, sp.acos):
            if not bool(abs(x) < 1):
                raise NoEnclosure("an arcsine at the end of its range")
            leg = ctx.sqrt(1 - x * x)
            return self.outward(ctx.atan2(x, leg) if function is sp.asin else ctx.atan2(leg, x))
        if function in (sp.sinh, sp.cosh, sp.tanh, sp.sech, sigmoid, softplus):
            return self.of_exponentials(function, x)
        if function is sp.asinh:
            return self.log(x + ctx.sqrt(x * x + 1))
        if function is sp.acosh:
            return self.log(x + ctx.sqrt(x * x - 1))
        if function is sp.atanh:
            return self.log((1 + x) / (1 - x)) / 2
        if function is sp.erf:
            return self.erf(x)
        if function is sp.erfi:
            return self.erfi(x)
        if function is sp.erfc:
            return self.erfc_far_out(x) if bool(x >= _FAR) else 1 - self.erf(x)
        if function is sp.Abs:
            return abs(x)
        if function is relu:
            return (x + abs(x)) / 2
        if function is sp.sign and (bool(x > 0) or bool(x < 0)):
            return ctx.mpf(1 if bool(x > 0) else -1)
        raise NoEnclosure(f"no enclosure of {function.__name__}")

    def of_exponentials(self, function: type, x: Any) -> Any:
        up = self.exp(x)
        if function is sigmoid:
            return 1 / (1 + 1 / up)
        if function is softplus:
            return self.log(1 + up)
        down = 1 / up
        if function is sp.sinh:
            return (up - down) / 2
        if function is sp.cosh:
            return (up + down) / 2
        if function is sp.sech:
            return 2 / (up + down)
        return (up - down) / (up + down)

    def erf(self, x: Any) -> Any:
        ctx = self.ctx
        square = x * x
        if not bool(abs(x) < _FAR):
            if not (bool(x > 0) or bool(x < 0)):
                raise NoEnclosure("the argument of erf is not known well enough")
            return 1 - self.erfc_far_out(x) if bool(x > 0) else self.erfc_far_out(-x) - 1
        term = total = ctx.mpf(1)
        n = 0
        # Terms fall by half from 4x² < 2n + 3 on: what is left out is less than the last one.
        while bool(term > ctx.mpf(2) ** -ctx.prec) or not bool(4 * square < 2 * n + 3):
            n += 1
            term = term * 2 * square / (2 * n + 1)
            total = total + term
        total = total + term * ctx.mpf([0, 1])
        return 2 * x * self.exp(-square) * total / ctx.sqrt(ctx.pi)

    def erfi(self, x: Any) -> Any:
        r""":math:`2x \sum_n x^{2n}/(n! (2n + 1)) / \sqrt\pi`, from DLMF 7.6.1 at ix."""
        ctx = self.ctx
        if not bool(abs(x) < _FAR):
            raise NoEnclosure("the argument of erfi is large")
        square = x * x
        power = total = ctx.mpf(1)
        n = 0
        # Terms fall by half from 2x² < n + 1 on: what is left out is less than the last one.
        while bool(power > ctx.mpf(2) ** -ctx.prec) or not bool(2 * square < n + 1):
            n += 1
            power = power * square / n
            total = total + power / (2 * n + 1)
        total = total + power * ctx.mpf([0, 1])
        return 2 * x * total / ctx.sqrt(ctx.pi)

    def erfc_far_out(self, x: Any) -> Any:
        r"""Bounds :math:`1 - 1/(2x^2) < \sqrt\pi x e^{x^2} \operatorname{erfc} x < 1`, x > 0."""
        ctx = self.ctx
        remainder = ctx.mpf([-1, 0]) / (2 * x * x)
        return (1 + remainder) * self.exp(-x * x) / (x * ctx.sqrt(ctx.pi))

    def owen(self, h: Any, a: Any) -> Any:
        r"""Owen (1956): :math:`2\pi T = \arctan a - \sum_j (-1)^j P_j(h^2/2) a^{2j+1}/(2j+1)`.

        :math:`P_j(x) = 1 - e^{-x}\sum_{i \le j} x^i/i!` lies between 0 and
        :math:`x^{j+1}/(j+1)!`. For larger a the reflection of :meth:`.functions.OwenT`.
        """
        ctx = self.ctx
        if not (_is_real(h) and _is_real(a)):
            raise NoEnclosure("no enclosure of OwenT at a complex number")
        if not bool(abs(a) <= 1):
            if not (bool(a > 1) or bool(a < -1)):
                raise NoEnclosure("the slope of OwenT is not known well enough")
            up, across = (self.erf(x / ctx.sqrt(ctx.mpf(2))) for x in (h, a * h))
            side = 1 if bool(a > 0) else -1
            return (side - up * across) / 4 - self.owen(a * h, 1 / a)
        x = h * h / 2
        angle = self.outward(ctx.atan2(a, ctx.mpf(1)))
        if not bool(abs(h) < _FAR):
            return angle * self.exp(-x) * ctx.mpf([0, 1]) / (2 * ctx.pi)
        term = partial = ctx.mpf(1)
        total, power, j = ctx.mpf(0), a, 0
        decay = self.exp(-x)
        # From 2x < j + 2 on the bounds of P_j fall by half or more.
        while bool(term > ctx.mpf(2) ** -ctx.prec) or not bool(2 * x < j + 2):
            total = total + (1 - decay * partial) * power / (2 * j + 1)
            j += 1
            power = -power * a * a
            term = term * x / j
            partial = partial + term
        remainder = 2 * term * ctx.mpf([-1, 1])
        return (angle - total + remainder) / (2 * ctx.pi)
