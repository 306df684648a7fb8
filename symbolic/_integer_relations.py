"""Integer relations among logarithms and among angles: proposed by PSLQ, proven by products.

What PSLQ proposes from sixty digits is never taken for granted: the logarithms of positive numbers
sum to zero exactly if a product of their powers is one, and angles, if their sum is small and the
product of the complex numbers is real. Both are questions about algebraic numbers.
"""

from __future__ import annotations

import mpmath
import sympy as sp

from .algebraic_numbers import algebraic_is_zero
from .constant_enclosures import NoEnclosure, enclosure

MAX_BASIS = 6
# PSLQ among that many numbers with these coefficients needs 24 of the 60 digits: what it proposes
# is then hardly ever a coincidence.
_DIGITS, _MAX_COEFFICIENT = 60, 1000
_BITS = 200


def integer_relation(functions: list[sp.Expr]) -> list[int] | None:
    """Return small integers c with a sum of c times the constants of 0, as far as digits tell."""
    ctx = mpmath.mp.clone()
    ctx.dps = _DIGITS
    digits = [f.evalf(_DIGITS) for f in functions]
    if any(not d.is_Float or abs(d) < sp.Float(10) ** (10 - _DIGITS) for d in digits):
        return None
    values = [ctx.mpf(str(d)) for d in digits]
    found: list[int] | None = ctx.pslq(
        values, tol=ctx.mpf(10) ** (8 - _DIGITS), maxcoeff=_MAX_COEFFICIENT, maxsteps=10_000
    )
    return found


def proves_logarithms(
    relation: list[int], functions: list[sp.Expr], numbers: list[sp.Expr]
) -> bool:
    """A product of powers of positive numbers is 1: the sum of their logarithms is 0."""
    above = sp.Mul(*(x**c for c, x in zip(relation, numbers, strict=True) if c > 0))
    below = sp.Mul(*(x**-c for c, x in zip(relation, numbers, strict=True) if c < 0))
    return algebraic_is_zero(above - below) is True


def proves_angles(relation: list[int], functions: list[sp.Expr], numbers: list[sp.Expr]) -> bool:
    """A sum of angles is 0: it is small, and the product of w**c is real, so its sine is 0."""
    total = sp.Add(*(c * f for c, f in zip(relation, functions, strict=True)))
    try:
        if not bool(abs(enclosure(total, _BITS)) < 1):
            return False
    except NoEnclosure:
        return False
    powers, mirrored = [], []
    for c, w in zip(relation, numbers, strict=True):
        conjugate = w.subs(sp.I, -sp.I)
        upper, lower = (w, conjugate) if c > 0 else (conjugate, w)
        powers.append(upper ** abs(c))
        mirrored.append(lower ** abs(c))
    return algebraic_is_zero(sp.Mul(*powers) - sp.Mul(*mirrored)) is True
