"""Floats as the decimal numbers that users wrote, and digits of what else enters."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

MOMENT_GUARD_DIGITS = 15
"""Digits of the moments of student and teacher beyond those of a result."""


def decimal_fraction(value: float) -> Fraction:
    """Return the fraction that a float prints as: 0.1 is one tenth."""
    return Fraction(Decimal(repr(float(value))))
