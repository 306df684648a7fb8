"""Decimal digits: how many may be asked for, and which of them hold.

Digits are cut off, never rounded: those of a coarser result are the first ones of a finer one.
"""

from __future__ import annotations

import math
import numbers
import reprlib
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .errors import ParameterError

if TYPE_CHECKING:
    import sympy as sp

MOST_DIGITS = 1000
"""Largest number of digits that may be asked for, everywhere."""

MOMENT_GUARD_DIGITS = 15
"""Digits of the moments of student and teacher beyond those of a result."""

# What is computed to N digits carries more of them; so many are counted upon.
_SPARE_DIGITS = 10
# Where so many digits in a row are all 9 or all 0 within the error, the number is taken for the
# shorter decimal one.
_COINCIDENCE = 8
# Smaller numbers than 0.00001 are written with an exponent.
_SMALLEST_FIXED = -5

_Dyadic = tuple[int, int]


def checked_digits(value: object, *, most: int = MOST_DIGITS, argument: str = "digits") -> int:
    """Return a number of digits.

    Parameters
    ----------
    value : int
        What the user gave.
    most : int
        A lower bound than :data:`MOST_DIGITS`, where a rule of fixed accuracy is used.
    argument : str
        How the user knows it.

    Raises
    ------
    ParameterError
        If it is no whole number from 1 to `most`.

    Examples
    --------
    >>> checked_digits(50)
    50
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ParameterError(f"{argument} must be a whole number, got {reprlib.repr(value)}")
    number = int(value)
    # Python writes no integers of thousands of digits.
    shown = str(number) if abs(number) < 10**18 else "a much larger one"
    if number < 1:
        raise ParameterError(f"{argument} must be >= 1, got {shown}")
    if number > most:
        raise ParameterError(f"{argument} must be at most {most}, got {shown}")
    return number


def held_digits(value: Any, digits: int, error: Any = None) -> str:
    """Return those decimal digits of a number that hold, cut off and not rounded.

    Parameters
    ----------
    value : number of mpmath, float or int
    digits : int
        At most so many significant digits.
    error : number, optional
        Bound or estimate of the absolute error. By default the value was computed with ten digits
        to spare.

    Returns
    -------
    str
        The digits that all numbers in [value - error, value + error] share. A value that agrees
        with a much shorter decimal number is written as that one, with zeros, and one that agrees
        with zero to `digits` decimal places as ``0``. If no digit is certain, the error is
        written behind the value.

    Examples
    --------
    >>> import mpmath
    >>> number = mpmath.mpf(2) / 3
    >>> held_digits(number, 6), held_digits(number, 6, 1e-4), held_digits(mpmath.mpf("0.25"), 4)
    ('0.666666', '0.666', '0.2500')
    """
    result = _dyadic(value)
    if result is None:
        return str(value)
    negative, size = result[0] < 0, (abs(result[0]), result[1])
    if size[0] == 0:
        return "0"
    exponent = _decimal_exponent(size)
    radius = _promised(exponent, digits) if error is None else _dyadic(error)
    if radius is None:
        # No estimate exists: nothing says that a digit holds.
        return f"{_nearest(value, 3)} ± {error_text(error)}"
    radius = (abs(radius[0]), radius[1])
    lower, upper = _sum(size, radius, -1), _sum(size, radius, 1)
    if lower[0] <= 0:
        small = _decimal_exponent(radius) < -digits
        return "0" if small else f"{_nearest(value, 1)} ± {error_text(error)}"
    known = exponent - _decimal_exponent(radius) if radius[0] else digits + _COINCIDENCE + 1
    shown = _common(lower, upper, exponent, min(digits, known + 1))
    if len(shown) < digits and known - len(shown) >= _COINCIDENCE:
        # The ends lie on both sides of a shorter decimal number.
        shown = str(_floor(upper, min(digits, known - 1) - 1 - exponent))
        if len(shown) > min(digits, known - 1):
            exponent, shown = exponent + 1, shown[:-1]
    if not shown:
        return f"{_nearest(value, max(1, known))} ± {error_text(error)}"
    return ("-" if negative else "") + _written(shown, exponent)


def error_text(error: Any) -> str:
    """Return an error with two digits, rounded up, whatever its size and sign.

    Examples
    --------
    >>> error_text(1.21e-12), error_text(-1.21e-12), error_text(0)
    ('1.3e-12', '1.3e-12', '0')
    """
    size = _dyadic(error)
    if size is None:
        return str(float(error))
    if size[0] == 0:
        return "0"
    size = (abs(size[0]), size[1])
    exponent = _decimal_exponent(size)
    two = -_floor((-size[0], size[1]), 1 - exponent)
    if two == 100:
        two, exponent = 10, exponent + 1
    return f"{two // 10}.{two % 10}e{exponent:+03d}"


def _dyadic(number: Any) -> _Dyadic | None:
    """Return (m, k) of a number m 2**k, None if it is not finite."""
    if isinstance(number, int):
        return number, 0
    if isinstance(number, float):
        if not math.isfinite(number):
            return None
        numerator, denominator = float(number).as_integer_ratio()
        return numerator, 1 - denominator.bit_length()
    if not hasattr(number, "_mpf_"):
        # SymPy's integers, such as an exact zero.
        return int(number), 0
    sign, mantissa, power, _ = number._mpf_
    if not mantissa and power:
        return None
    return (-int(mantissa) if sign else int(mantissa)), int(power)


def _sum(a: _Dyadic, b: _Dyadic, sign: int) -> _Dyadic:
    power = min(a[1], b[1])
    return (a[0] << (a[1] - power)) + sign * (b[0] << (b[1] - power)), power


def _floor(number: _Dyadic, tens: int) -> int:
    """Return the integer part of number * 10**tens."""
    mantissa, power = number
    if tens >= 0:
        mantissa *= 10**tens
        return mantissa << power if power >= 0 else mantissa >> -power
    if power >= 0:
        return int((mantissa << power) // 10**-tens)
    return int(mantissa // (10**-tens << -power))


def _decimal_exponent(size: _Dyadic) -> int:
    """Return the largest n with 10**n <= size."""
    guess = math.floor((size[0].bit_length() + size[1]) * math.log10(2))
    while _floor(size, -guess) < 1:
        guess -= 1
    return guess


def _promised(exponent: int, digits: int) -> _Dyadic:
    return 1, math.floor((exponent - digits - _SPARE_DIGITS) * math.log2(10))


def _common(lower: _Dyadic, upper: _Dyadic, exponent: int, digits: int) -> str:
    """Return the digits from 10**exponent on that two numbers share."""
    for count in range(digits, 0, -1):
        first, second = (_floor(x, count - 1 - exponent) for x in (lower, upper))
        if first == second:
            return str(first)
    return ""


def _written(shown: str, exponent: int) -> str:
    if _SMALLEST_FIXED <= exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{shown}"
    if 0 <= exponent < len(shown):
        whole, fraction = shown[: exponent + 1], shown[exponent + 1 :]
        return f"{whole}.{fraction}" if fraction else whole
    fraction = f".{shown[1:]}" if len(shown) > 1 else ""
    return f"{shown[0]}{fraction}e{exponent:+03d}"


def _nearest(value: Any, digits: int) -> str:
    import mpmath

    return str(mpmath.nstr(mpmath.mpmathify(value), digits))


def decimal_fraction(value: float) -> Fraction:
    """Return the fraction that a float prints as: 0.1 is one tenth."""
    return Fraction(Decimal(repr(float(value))))


def mp_number(value: sp.Expr, ctx: Any) -> Any:
    """Return a real constant of SymPy as a number of an mpmath context."""
    if value.is_Rational:
        return ctx.mpf(int(value.p)) / int(value.q)
    # Five digits more than the context has, lest its last one be wrong.
    return ctx.make_mpf(value.evalf(ctx.dps + 5)._mpf_)
