"""All positive roots of a polynomial with rational coefficients, none missed.

By Descartes' rule the number of positive roots is at most that of sign changes among the
coefficients, and of its parity: with no change there is no root, with one there is exactly one,
which bisection over its exponent finds however large or small it is. With more, SymPy isolates the
roots exactly.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import sympy as sp

from ...runtime.roots import bracketed_root

# Roots are sought between 2^-R and 2^R; parameters that are floats cannot lead beyond.
_LARGEST_EXPONENT = 4096


def sign_changes(poly: sp.Poly) -> int:
    """Return the number of sign changes among the coefficients, zeros left out."""
    signs = [1 if c > 0 else -1 for c in poly.all_coeffs() if c]
    return sum(left != right for left, right in pairwise(signs))


def positive_roots(poly: sp.Poly, ctx: Any) -> list[Any]:
    """Return the positive roots in ascending order, each once.

    `poly`: not zero, in one variable over the rational numbers. `ctx`: the roots have its
    precision; coefficients enter exactly.
    """
    changes = sign_changes(poly)
    if changes == 0:
        return []
    # Roots at zero are none of ours, and multiple ones count once.
    poly = poly.quo(sp.Poly(poly.gen ** min(k for (k,) in poly.monoms()), poly.gen))
    if changes > 1:
        poly = poly.sqf_part()
    coefficients = [_number(c, ctx) for c in poly.all_coeffs()]
    if sign_changes(poly) == 1:
        return [_between(coefficients, *_octave(coefficients, ctx), ctx)]
    result = []
    for (low, high), _ in poly.intervals():
        if high <= 0:
            continue
        if low == high:
            result.append(_number(low, ctx))
            continue
        # The root is inside; an end may be its neighbour, or zero.
        inward = sp.Rational(high - low) / 2 ** (ctx.prec // 2)
        left = _number(low if poly.eval(low) else low + inward, ctx)
        right = _number(high if poly.eval(high) else high - inward, ctx)
        left = left or ctx.ldexp(1, -_LARGEST_EXPONENT)
        result.append(_between(coefficients, left, right, ctx))
    return sorted(result)


def _number(value: sp.Rational, ctx: Any) -> Any:
    return ctx.mpf(int(value.p)) / int(value.q)


def _octave(coefficients: list[Any], ctx: Any) -> tuple[Any, Any]:
    """Return 2^k and 2^(k+1) around the only sign change of a polynomial."""
    last = coefficients[-1]
    low, high = -_LARGEST_EXPONENT, _LARGEST_EXPONENT
    while high - low > 1:
        middle = (low + high) // 2
        # The sign near zero is that of the last coefficient.
        if ctx.polyval(coefficients, ctx.ldexp(1, middle)) * last > 0:
            low = middle
        else:
            high = middle
    return ctx.ldexp(1, low), ctx.ldexp(1, high)


def _between(coefficients: list[Any], low: Any, high: Any, ctx: Any) -> Any:
    """Return the one root in [low, high]."""
    below = ctx.polyval(coefficients, low)
    if not below:
        return low
    sign = -ctx.sign(below)

    def at(x: Any) -> tuple[Any, Any]:
        value, slope = ctx.polyval(coefficients, x, derivative=True)
        return sign * value, sign * slope

    # Cut in the logarithm: roots of all sizes are reached.
    return bracketed_root(at, (low, high), ctx, middle=lambda low, high: ctx.sqrt(low * high))
