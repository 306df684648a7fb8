r"""Targets that are no polynomials, projected on low degrees outside a subspace.

Functions :math:`f(x) = \sum_a c_a \prod_k s_{ak}(\langle v_{ak}, x\rangle)` are averaged over
:math:`x_\perp` form by form: with y = a + τ z, a fixed by :math:`x_U`, the part of degree j of s(y)
is :math:`\mathrm{He}_j(z)\, \mathbb{E}[s(a + \tau z) \mathrm{He}_j(z)]/j!`. The norms are left to
:mod:`.ridge_norms`.

What no rule gives in closed form stays an unevaluated 𝔼.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import sympy as sp

from .activations import z as _z
from .gaussian import expect
from .gaussian_vector import GaussianVector
from .hermite_polynomials import hermite_polynomial, multi_indices
from .ridge_moments import truncated_symbol
from .ridge_products import FormGeometry, Vector, form_products, merged_steps
from .ridge_terms import RidgeFunction, T, ridge_terms
from .subspaces import Subspace

_Node = TypeVar("_Node", bound=Hashable)


def ridge_part_up_to(
    expr: sp.Expr, variables: tuple[sp.Symbol, ...], subspace: Subspace, degree: int
) -> sp.Expr:
    r"""Return :math:`P_{U,\le l} f` as an expression in the variables.

    Examples
    --------
    >>> x = sp.symbols("x1:3", real=True)
    >>> U = Subspace.spanned_by([[1, 0]])
    >>> ridge_part_up_to(sp.sin(x[0]) * sp.Abs(x[1]) + x[1], x, U, 0)
    sqrt(2)*sin(x1)/sqrt(pi)
    """
    if subspace.is_zero:
        terms = truncated_symbol(expr, variables, degree).items()
        return sp.Add(*(c * _hermite_product(alpha, variables) for alpha, c in terms))
    space = FormGeometry(subspace)
    symbol = [sp.S.Zero]
    for product in form_products(ridge_terms(expr, variables)):
        series = function_series(product.factors, space, degree)
        symbol += [product.coefficient * part for part in series]
    whole = sp.Add(*symbol)
    forms = space.forms(variables)
    frame = {v: sp.Dummy("t", real=True) for v in space.frame(space.named)}
    if len(frame) < len(forms):
        # Forms that depend on each other hide what cancels; those of a frame do not.
        whole = whole.xreplace(in_frame(space, frame))
        space.named = frame
        forms = space.forms(variables)
    parts = []
    for exponents, c in polynomial_terms(whole, list(forms)):
        parts.append(space.in_full(c) * _hermite_product(exponents, list(forms.values())))
    return sp.Add(*parts).xreplace(space.coordinates(variables))


def _hermite_product(orders: Sequence[int], arguments: Sequence[sp.Expr]) -> sp.Expr:
    pairs = zip(orders, arguments, strict=True)
    return sp.Mul(*(hermite_polynomial(n, x) for n, x in pairs if n))


def connected(groups: list[set[_Node]], edges: Iterable[tuple[_Node, _Node]]) -> list[set[_Node]]:
    for edge in edges:
        joined = [g for g in groups if not g.isdisjoint(edge)]
        groups = [g for g in groups if g not in joined] + [set().union(*joined)]
    return groups


def series_product(first: Sequence[sp.Expr], second: Sequence[sp.Expr]) -> list[sp.Expr]:
    return [sp.Add(*(first[i] * second[j - i] for i in range(j + 1))) for j in range(len(first))]


def function_series(
    factors: Sequence[RidgeFunction], space: FormGeometry, degree: int
) -> list[sp.Expr]:
    r"""Return the symbols of the parts of degree 0, …, l outside U of a product.

    Polynomials in the symbols of `space` for forms t outside U, with t^n for He_n(t); their
    coefficients are functions of its labels, in short.
    """
    edges = (
        (i, k)
        for i, a in enumerate(factors)
        for k, b in enumerate(factors)
        if space.outside(a.direction, b.direction) != 0
    )
    series = [sp.S.One] + [sp.S.Zero] * degree
    for group in connected([{i} for i in range(len(factors))], edges):
        series = series_product(
            series, _group_series([factors[i] for i in sorted(group)], space, degree)
        )
    return series


def _group_series(
    factors: Sequence[RidgeFunction], space: FormGeometry, degree: int
) -> list[sp.Expr]:
    frame = space.frame([ridge.direction for ridge in factors])
    # Bound by 𝔼: where coordinates have these names, too, substitution renames them.
    zs = sp.symbols(f"z1:{len(frame) + 1}", real=True) if len(frame) > 1 else (_z,) * len(frame)
    integrand = sp.S.One
    for ridge in factors:
        slopes = (space.slope(ridge.direction, w) for w in frame)
        line = space.along(ridge.direction)
        line += sp.Add(*(slope * z for slope, z in zip(slopes, zs, strict=True)))
        integrand *= ridge.expr.xreplace({T: line})
    if not frame:
        return [space.short(integrand)] + [sp.S.Zero] * degree
    if len(frame) == 1 and len(factors) > 1:
        integrand = merged_steps(integrand, zs[0])
    law = GaussianVector(zs, covariance=sp.eye(len(frame)))
    forms = [space.form(v) for v in frame]
    series = []
    for j in range(degree + 1):
        parts = []
        for beta in reversed(multi_indices(len(frame), j)):
            mean = expect(integrand * _hermite_product(beta, zs), zs[0] if len(zs) == 1 else law)
            if mean == 0:
                continue
            powers = zip(forms, beta, strict=True)
            parts.append(space.short(mean) * sp.Mul(*(t**n / sp.factorial(n) for t, n in powers)))
        series.append(sp.Add(*parts))
    return series


def polynomial_terms(
    polynomial: sp.Expr, symbols: Sequence[sp.Symbol]
) -> list[tuple[tuple[int, ...], sp.Expr]]:
    """Return exponents and coefficients; the latter may be any functions of other symbols."""
    if not symbols:
        return [((), polynomial)]
    terms: list[tuple[tuple[int, ...], sp.Expr]] = sp.Poly(
        polynomial, *symbols, domain=sp.EXRAW
    ).terms()
    return terms


def in_frame(space: FormGeometry, frame: Mapping[Vector, sp.Symbol]) -> dict[sp.Symbol, sp.Expr]:
    """Return the symbols of the forms in use by those of an orthonormal frame."""
    rule = {}
    for w, symbol in space.named.items():
        slopes = (space.slope(w, v) / space.length(w) for v in frame)
        named = (s if s.is_algebraic else space.short(s) for s in slopes)
        rule[symbol] = sp.Add(*(s * axis for s, axis in zip(named, frame.values(), strict=True)))
    return rule
