"""How large a polynomial gets when it is multiplied out, without doing so."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp


@dataclass(frozen=True)
class PolynomialSize:
    """Upper bounds; cancellations are not seen.

    Attributes
    ----------
    degrees : Counter
        Degree in each variable that occurs.
    degree : int
        Total degree.
    monomials : int
        Number of monomials.
    hermite_terms : int
        Number of products of Hermite polynomials that the expansion in them needs.
    """

    degrees: Counter[sp.Symbol]
    degree: int
    monomials: int
    hermite_terms: int


def polynomial_size(expr: sp.Expr, variables: Sequence[sp.Symbol]) -> PolynomialSize:
    """Bound the size of an expression that is a polynomial in `variables`.

    Examples
    --------
    >>> x = sp.symbols("x1:5", real=True)
    >>> size = polynomial_size(sum(x) ** 20 + x[0] ** 30, x)
    >>> size.degree, size.monomials, size.hermite_terms
    (30, 1772, 10642)
    """
    if expr in variables:
        return PolynomialSize(Counter({expr: 1}), 1, 1, 1)
    if expr.is_Atom or not expr.has(*variables):
        return PolynomialSize(Counter(), 0, 1, 1)
    if isinstance(expr, sp.Add):
        parts = [polynomial_size(term, variables) for term in expr.args]
        degrees: Counter[sp.Symbol] = Counter()
        for part in parts:
            degrees |= part.degrees
        return _bounded(
            degrees,
            max(part.degree for part in parts),
            sum(part.monomials for part in parts),
            sum(part.hermite_terms for part in parts),
        )
    if isinstance(expr, sp.Mul):
        parts = [polynomial_size(factor, variables) for factor in expr.args]
        return _product(
            sum((part.degrees for part in parts), Counter()),
            sum(part.degree for part in parts),
            math.prod(part.monomials for part in parts),
        )
    base, exponent = expr.as_base_exp()
    part, n = polynomial_size(base, variables), int(exponent)
    return _product(
        Counter({x: n * m for x, m in part.degrees.items()}),
        n * part.degree,
        math.comb(part.monomials + n - 1, n),
    )


def _product(degrees: Counter[sp.Symbol], degree: int, monomials: int) -> PolynomialSize:
    # x^a is a sum of a//2 + 1 Hermite polynomials, and m + 1 <= 2^m.
    each = math.prod(m // 2 + 1 for m in degrees.values())
    return _bounded(degrees, degree, monomials, monomials * min(each, 2 ** min(degree // 2, 64)))


def _bounded(
    degrees: Counter[sp.Symbol], degree: int, monomials: int, hermite_terms: int
) -> PolynomialSize:
    everything = math.comb(len(degrees) + degree, degree)
    return PolynomialSize(
        degrees, degree, min(monomials, everything), min(hermite_terms, everything)
    )
