"""Floats as the decimal numbers that users wrote, and digits of what else enters."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sympy as sp

MOMENT_GUARD_DIGITS = 15
"""Digits of the moments of student and teacher beyond those of a result."""


def decimal_fraction(value: float) -> Fraction:
    """Return the fraction that a float prints as: 0.1 is one tenth."""
    return Fraction(Decimal(repr(float(value))))


def mp_number(value: sp.Expr, ctx: Any) -> Any:
    """Return a real constant of SymPy as a number of an mpmath context."""
    if value.is_Rational:
        return ctx.mpf(int(value.p)) / int(value.q)
    # Five digits more than the context has, lest its last one be wrong.
    return ctx.make_mpf(value.evalf(ctx.dps + 5)._mpf_)
