r"""Proven intervals: a midpoint and a radius, both exact dyadic rational numbers.

An :class:`Enclosure` is what a ball computation leaves behind: the true number lies in
[midpoint − radius, midpoint + radius], ends included, and these ends are exact. The value needs no
ball library to be read, compared, printed or written to JSON.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import sympy as sp

from ...errors import ParameterError, UndecidedError
from ...pages import Typeset

_HEXADECIMAL = re.compile(r"(-?)0x([0-9a-f]+)p(-?[0-9]+)")
# Beyond these powers of two, text and JSON would be of no use and rationals fill the memory.
MAX_EXPONENT = 1 << 20
_COMPARISON_DIGITS = 50


@dataclass(frozen=True, repr=False)
class Enclosure(Typeset):
    r"""A real number that is proven to lie in [midpoint − radius, midpoint + radius].

    Attributes
    ----------
    midpoint : Rational
        Centre of the interval, an integer times a power of two.
    radius : Rational
        Half its length, likewise; 0 if the number is known exactly.

    Raises
    ------
    ParameterError
        If one of them is not such a number, or the radius is negative.

    Examples
    --------
    >>> third = Enclosure(sp.Rational(1365, 4096), sp.Rational(1, 4096))
    >>> print(third)
    0.33325 ± 0.00025
    >>> third.contains(sp.Rational(1, 3)), third.contains("0.3336"), third.digits
    (True, False, 3)
    >>> Enclosure.from_dict(third.to_dict()) == third
    True
    """

    midpoint: sp.Rational
    radius: sp.Rational

    def __post_init__(self) -> None:
        for name in ("midpoint", "radius"):
            number = getattr(self, name)
            if isinstance(number, int) and not isinstance(number, bool):
                number = sp.Integer(number)
                object.__setattr__(self, name, number)
            if not isinstance(number, sp.Rational) or int(number.q) & (int(number.q) - 1):
                raise ParameterError(
                    f"{name} has to be a SymPy Rational whose denominator is a power of two, "
                    f"not {number!r}"
                )
        if self.radius < 0:
            raise ParameterError(f"radius has to be >= 0, not {self.radius}")

    @property
    def lower(self) -> sp.Rational:
        """Proven lower bound, exact."""
        return self.midpoint - self.radius

    @property
    def upper(self) -> sp.Rational:
        """Proven upper bound, exact."""
        return self.midpoint + self.radius

    @property
    def is_exact(self) -> bool:
        """Whether the interval is a single point."""
        return bool(self.radius == 0)

    @property
    def contains_zero(self) -> bool:
        """Whether the number may be zero; if not, it is proven to differ from zero."""
        return bool(abs(self.midpoint) <= self.radius)

    @property
    def digits(self) -> int | float:
        """Largest n with radius <= 10**-n * \\|midpoint\\|: proven digits; inf if exact."""
        if self.is_exact:
            return math.inf
        if self.contains_zero:
            return 0
        ratio = abs(self.midpoint) / self.radius
        return _decimal_exponent(ratio)

    def contains(self, number: Any) -> bool:
        """Return whether a number lies in the interval, its ends included.

        `number`: floating-point numbers count as the binary numbers they are, a text as the decimal
        number it spells; other exact constants of SymPy are evaluated numerically. Raises
        ParameterError if it is no finite real number. Raises UndecidedError if a constant is too
        close to an end of the interval to tell.
        """
        value = _as_number(number)
        if value.is_Rational:
            return bool(self.lower <= value <= self.upper)
        parts = (int(part) for x in (self.midpoint, self.radius) for part in (x.p, x.q))
        needed = _COMPARISON_DIGITS + max(part.bit_length() for part in parts) // 3
        approximation = sp.Rational(value.evalf(needed))
        doubt = max(abs(approximation), self.radius) / sp.Integer(10) ** (needed - 5)
        sides = (approximation - self.lower, self.upper - approximation)
        if any(abs(side) <= doubt for side in sides):
            raise UndecidedError(
                f"{number} is too close to an end of the interval {self} to say on which side"
            )
        return bool(min(sides) > 0)

    def __str__(self) -> str:
        return self._formatted("{} ± {}", "{}e{:+d}", exact="{} (exact)")

    def __repr__(self) -> str:
        return f"Enclosure({self})"

    def latex(self) -> str:
        r"""Return the interval as LaTeX, midpoint ± radius."""
        return self._formatted(r"{} \pm {}", r"{} \times 10^{{{}}}", exact="{}")

    def _formatted(self, pattern: str, power: str, *, exact: str) -> str:
        """Print an interval that contains this one: rounding of the midpoint adds to the radius."""
        if self.is_exact:
            return exact.format(_shortest(self.midpoint, power))
        # The midpoint to one decimal place more than the radius has zeros.
        place = _decimal_exponent(self.radius) - 1
        unit = sp.Integer(10) ** place
        rounded = _nearest(self.midpoint / unit) * unit
        radius = self.radius + abs(self.midpoint - rounded)
        return pattern.format(
            _decimal(rounded, place, power),
            _decimal(*_rounded_up(radius), power),
        )

    def to_dict(self) -> dict[str, str]:
        """Return the exact interval for JSON: hexadecimal numbers such as 0x1p-3 for 1/8."""
        return {"midpoint": _to_hexadecimal(self.midpoint), "radius": _to_hexadecimal(self.radius)}

    @classmethod
    def from_dict(cls, data: Mapping[str, str]) -> Enclosure:
        """Return the interval that :meth:`to_dict` wrote.

        Raises ParameterError if an entry is missing or is not such a number.
        """
        return cls(*(_from_hexadecimal(data, name) for name in ("midpoint", "radius")))


def _as_number(number: Any) -> sp.Expr:
    if isinstance(number, str):
        try:
            return sp.Rational(*Fraction(number).as_integer_ratio())
        except (ValueError, ZeroDivisionError):
            raise ParameterError(f"number {number!r} is not a decimal number") from None
    if isinstance(number, Decimal) and number.is_finite():
        number = Fraction(number)
    # Also the integers of NumPy.
    if isinstance(number, numbers.Rational) and not isinstance(number, bool):
        return sp.Rational(int(number.numerator), int(number.denominator))
    # Numbers of a local mpmath context are of a class of their own.
    if isinstance(number, sp.Float) or hasattr(number, "_mpf_"):
        sign, mantissa, exponent, _ = number._mpf_
        if mantissa or not exponent:
            return sp.Integer((-1) ** sign * mantissa) * sp.Integer(2) ** exponent
    if isinstance(number, float) and math.isfinite(number):
        return sp.Rational(*number.as_integer_ratio())
    value = sp.sympify(number, strict=True) if isinstance(number, int | sp.Expr) else None
    if value == 0:
        return sp.S.Zero
    if value is None or not value.is_number or not value.is_finite or not value.is_real:
        raise ParameterError(f"number {number!r} is not a finite real number")
    return value


def _to_hexadecimal(number: sp.Rational) -> str:
    return f"{int(number.p):#x}p{1 - int(number.q).bit_length()}"


def _from_hexadecimal(data: Mapping[str, str], name: str) -> sp.Rational:
    text = data.get(name)
    match = _HEXADECIMAL.fullmatch(text) if isinstance(text, str) else None
    if match is None or len(match[3]) > 8 or abs(int(match[3])) > 2 * MAX_EXPONENT:
        raise ParameterError(f"{name} has to be a text such as '0x1p-3' for 1/8, not {text!r:.60}")
    mantissa = int(match[2], 16) * (-1 if match[1] else 1)
    return sp.Integer(mantissa) * sp.Integer(2) ** int(match[3])


def _decimal_exponent(number: sp.Rational) -> int:
    """Return the n with 10**n <= number < 10**(n + 1), for a positive number."""
    bits = int(number.p).bit_length() - int(number.q).bit_length()
    n = math.floor(bits * math.log10(2))
    # The estimate is off by one at most, to either side.
    while sp.Integer(10) ** (n + 1) <= number:
        n += 1
    while sp.Integer(10) ** n > number:
        n -= 1
    return n


def _nearest(number: sp.Rational) -> sp.Integer:
    return sp.floor(number + sp.Rational(1, 2))


def _rounded_up(number: sp.Rational) -> tuple[sp.Rational, int]:
    """Return a positive number rounded up to two digits, and the place of the last one."""
    place = _decimal_exponent(number) - 1
    unit = sp.Integer(10) ** place
    return sp.ceiling(number / unit) * unit, place


def _decimal(number: sp.Rational, place: int, power: str) -> str:
    """Print a number with its decimals down to 10**place, large and small ones with a power."""
    if number == 0:
        return "0"
    leading = _decimal_exponent(abs(number))
    place = min(place, leading)
    mantissa = int(_nearest(abs(number) / sp.Integer(10) ** place))
    sign = "-" if number < 0 else ""
    figures = _figures(mantissa)
    if -5 <= leading <= 20 and place <= 0:
        figures = figures.rjust(1 - place, "0")
        whole, decimals = figures[: len(figures) + place], figures[len(figures) + place :]
        return f"{sign}{whole}.{decimals}" if decimals else f"{sign}{whole}"
    decimals = figures[1:].rstrip("0")
    return power.format(
        f"{sign}{figures[0]}.{decimals}" if decimals else f"{sign}{figures[0]}", leading
    )


def _figures(number: int) -> str:
    """Print an integer in parts: Python refuses those of more than 4300 digits."""
    if number < 10**4000:
        return str(number)
    high, low = divmod(number, 10**4000)
    return _figures(high) + str(low).rjust(4000, "0")


def _shortest(number: sp.Rational, power: str) -> str:
    """Print an exact number: an integer, or a dyadic one with all of its decimals."""
    places = int(number.q).bit_length() - 1
    return _decimal(number, -places, power) if number else "0"
