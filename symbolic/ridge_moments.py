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
from collections.abc import Callable, Sequence
from typing import Any

import sympy as sp
from sympy.polys.orderings import lex
from sympy.polys.rings import PolyElement, PolyRing

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
        total += _symbol_of(term, ring, degree, _itself)
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


def second_moment_of_term(term: RidgeTerm, variables: tuple[sp.Symbol, ...]) -> sp.Expr:
    """Return E t², of averages over one variable each."""
    return _mean_of_product(term, term, variables)


def rounded_symbol(
    term: RidgeTerm, variables: tuple[sp.Symbol, ...], degree: int, bits: int
) -> PolyElement:
    """Return Σ c_α ξ^α of a term up to a total degree, each c_α to some bits, over ``QQ``.

    Where exact coefficients are long, or there are many of them.
    """
    field = sp.RealField(bits + 16)
    digits = int((bits + 16) / 3.3)

    def number(value: sp.Expr) -> Any:
        return field.convert(value.evalf(digits))

    ring = PolyRing(variables, field, lex)
    symbol = _symbol_of(term, ring, degree, number)
    scale = 2**bits
    rounded = {alpha: sp.QQ(int(c * scale), scale) for alpha, c in symbol.items()}
    return ring.clone(domain=sp.QQ).from_dict({alpha: c for alpha, c in rounded.items() if c})


def _itself(value: sp.Expr) -> sp.Expr:
    return value


def _symbol_of(
    term: RidgeTerm, ring: PolyRing, degree: int, number: Callable[[sp.Expr], Any]
) -> PolyElement:
    # x_i raises the degree by one or lowers it by one, so the series is needed that much further.
    enough = degree + sum(term.powers)
    series = ring.one
    for ridge in term.ridges:
        line = zip(ridge.direction, ring.gens, strict=True)
        form = sum((g * number(u) for u, g in line), ring.zero)
        series = _truncate(series * ridge_symbol(ridge, form, enough, number), enough)
    for i, exponent in enumerate(term.powers):
        for _ in range(exponent):
            series = series * ring.gens[i] + series.diff(ring.gens[i])
    return _truncate(series, degree) * number(term.coefficient)


def ridge_symbol(
    ridge: RidgeFunction,
    form: PolyElement,
    degree: int,
    number: Callable[[sp.Expr], Any] = _itself,
) -> PolyElement:
    """Return Σ μ_k/k! times powers of an element of a ring, up to a degree."""
    moments = hermite_coefficients(ridge.expr.xreplace({T: _z}), degree, variable=_z)
    total, power = form.ring.zero, form.ring.one
    for k, moment in enumerate(moments):
        total += power * number(moment / sp.factorial(k))
        power = power * form
    return total


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
        return _mean_of_forms(functions, [i for i in sorted(group) if powers[i]], powers)
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


def _mean_of_forms(
    functions: Sequence[RidgeFunction], axes: Sequence[int], powers: Sequence[int]
) -> sp.Expr:
    """E of functions of any forms and powers of coordinates, over the joint law of these."""
    size = len(powers)
    rows = [ridge.direction for ridge in functions]
    rows += [tuple(sp.Integer(i == j) for j in range(size)) for i in axes]
    directions = sp.Matrix(rows)
    forms = sp.symbols(f"u1:{len(rows) + 1}", real=True)
    integrand = sp.Mul(
        *(ridge.expr.xreplace({T: u}) for ridge, u in zip(functions, forms, strict=False)),
        *(u ** powers[i] for i, u in zip(axes, forms[len(functions) :], strict=True)),
    )
    covariance = (directions * directions.T).applyfunc(sp.expand)
    return expect(integrand, GaussianVector(forms, covariance=covariance))


def _support(direction: tuple[sp.Expr, ...]) -> set[int]:
    return {i for i, entry in enumerate(direction) if entry != 0}
