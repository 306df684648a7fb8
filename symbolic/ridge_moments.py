r"""Hermite coefficients and second moments of sums of products of ridge functions.

A term :math:`c\,x^\alpha \prod_j g_j(\langle u_j, x\rangle)` with orthogonal :math:`u_j`, see
:mod:`.ridge_terms`, has a symbol that factorises: each g has a power series in its Hermite
coefficients, and multiplication by :math:`x_i` is :math:`\xi_i + \partial_{\xi_i}`. Second moments
factorise over groups of coordinates.

Convention: coefficients are the :math:`c_\alpha = \mu_\alpha/\alpha!` of :math:`f = \sum c_\alpha
\mathrm{He}_\alpha`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import sympy as sp

from .activations import z as _z
from .gaussian import expect
from .gaussian_vector import GaussianVector
from .hermite import hermite_coefficients
from .ridge_terms import (
    RidgeFunction,
    RidgeTerm,
    T,
    are_orthogonal,
    merged_ridges,
    ridge_terms,
)

MultiIndex = tuple[int, ...]


@functools.lru_cache(maxsize=256)
def truncated_symbol(
    expr: sp.Expr, variables: tuple[sp.Symbol, ...], degree: int
) -> dict[MultiIndex, sp.Expr]:
    r"""Return {α: c_α} up to a total degree.

    Parameters
    ----------
    expr : Expr
        Function that :func:`.ridge_terms` can write as a sum of products.
    variables : tuple of Symbol
        The coordinates, real.
    degree : int
        Largest \|α\|.

    Examples
    --------
    >>> x = sp.symbols("x1:3", real=True)
    >>> truncated_symbol(x[0] * sp.Abs(x[1]), x, 1)
    {(1, 0): sqrt(2)/sqrt(pi)}
    """
    ring = sp.ring([x.name for x in variables], sp.EXRAW)[0]
    total = ring.zero
    for term in ridge_terms(expr, variables):
        total += _symbol_of(term, ring, degree)
    collected = ((tuple(alpha), sp.expand(c)) for alpha, c in total.items())
    return {alpha: c for alpha, c in collected if c != 0 and sum(alpha) <= degree}


@functools.lru_cache(maxsize=64)
def second_moment(expr: sp.Expr, variables: tuple[sp.Symbol, ...]) -> sp.Expr:
    """Return E f², exact or with unevaluated 𝔼 nodes.

    Examples
    --------
    >>> x = sp.symbols("x1:3", real=True)
    >>> second_moment(x[0] + sp.sign(x[0] - x[1]), x)
    2/sqrt(pi) + 2
    """
    terms = ridge_terms(expr, variables)
    total = []
    for i, first in enumerate(terms):
        for j, second in enumerate(terms[: i + 1]):
            total.append((1 + (i != j)) * _mean_of_product(first, second, variables))
    return sp.expand(sp.Add(*total), deep=False)


def _symbol_of(term: RidgeTerm, ring: sp.polys.rings.PolyRing, degree: int) -> sp.Expr:
    # x_i raises the degree by one or lowers it by one, so the series is needed that much further.
    enough = degree + sum(term.powers)
    series = ring.one
    for ridge in term.ridges:
        form = sum((u * g for u, g in zip(ridge.direction, ring.gens, strict=True)), ring.zero)
        moments = hermite_coefficients(ridge.expr.xreplace({T: _z}), enough, variable=_z)
        factor, power = ring.zero, ring.one
        for k, moment in enumerate(moments):
            factor += power * (moment / sp.factorial(k))
            power *= form
        series = _truncate(series * factor, enough)
    for i, exponent in enumerate(term.powers):
        for _ in range(exponent):
            series = series * ring.gens[i] + series.diff(ring.gens[i])
    return _truncate(series, degree) * term.coefficient


def _truncate(element: sp.Expr, degree: int) -> sp.Expr:
    kept = {alpha: c for alpha, c in element.items() if sum(alpha) <= degree}
    return element.ring.from_dict(kept)


def _mean_of_product(
    first: RidgeTerm, second: RidgeTerm, variables: tuple[sp.Symbol, ...]
) -> sp.Expr:
    """E of the product of two terms, factorised over independent groups of coordinates."""
    powers = [a + b for a, b in zip(first.powers, second.powers, strict=True)]
    factors = [(_support(r.direction), r) for r in (*first.ridges, *second.ridges)]
    groups: list[set[int]] = []
    for support in [*({i} for i, n in enumerate(powers) if n), *(s for s, _ in factors)]:
        touching = [g for g in groups if g & support]
        groups = [g for g in groups if not g & support] + [set(support).union(*touching)]
    value = first.coefficient * second.coefficient
    for group in groups:
        value *= _group_mean(group, powers, [r for s, r in factors if s <= group], variables)
    return value


def _group_mean(
    group: set[int],
    powers: Sequence[int],
    ridges: Sequence[RidgeFunction],
    variables: tuple[sp.Symbol, ...],
) -> sp.Expr:
    """E of the factors that share these coordinates."""
    coordinates = [variables[i] for i in sorted(group)]
    polynomial = sp.Mul(*(variables[i] ** powers[i] for i in group))
    functions = merged_ridges(ridges)
    if not are_orthogonal([ridge.direction for ridge in functions]):
        for ridge in functions:
            form = sp.Add(*(u * x for u, x in zip(ridge.direction, variables, strict=True)))
            polynomial *= ridge.expr.xreplace({T: form})
        return expect(polynomial, GaussianVector(coordinates, covariance=sp.eye(len(group))))
    # In a frame of the directions all factors are independent.
    own = [sp.Matrix([[ridge.direction[i] for i in sorted(group)]]) for ridge in functions]
    rest = sp.Matrix.vstack(sp.zeros(0, len(group)), *own).nullspace()
    frame = own + [v.T for v in sp.GramSchmidt(rest, orthonormal=True)]
    axes = sp.symbols(f"y1:{len(frame) + 1}", real=True)
    rule = {
        x: sp.Add(*(y * v[i] for y, v in zip(axes, frame, strict=True)))
        for i, x in enumerate(coordinates)
    }
    integrands = [ridge.expr for ridge in functions] + [sp.S.One] * len(rest)
    total = []
    for exponents, c in sp.Poly(polynomial.xreplace(rule), *axes, domain=sp.EXRAW).terms():
        factors = zip(integrands, exponents, strict=True)
        total.append(c * sp.Mul(*(expect((g * T**n).xreplace({T: _z}), _z) for g, n in factors)))
    return sp.Add(*total)


def _support(direction: tuple[sp.Expr, ...]) -> set[int]:
    return {i for i, entry in enumerate(direction) if entry != 0}
