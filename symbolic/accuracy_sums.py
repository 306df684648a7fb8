"""Rules of accuracy for sums: pairs of terms that cancel become one function or a product.

A rule looks at pairs ``q m f`` and ``c m``, or ``q m f`` and ``-q m g``, with numbers q, c, a
common factor m and functions f, g of a kind; the other terms of the sum stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p

from .functions import sigmoid
from .normal_functions import erf_difference, normal_cdf
from .traversal import parts_of

Cases = Callable[..., sp.Expr | None]
"""Makes a case distinction: better form, condition, form elsewhere, forms not to be rewritten."""

_HALF = sp.S.Half
_Terms = dict[sp.Expr, sp.Expr]


def two_cases(better: sp.Expr, where: sp.Basic, otherwise: sp.Expr) -> sp.Expr | None:
    """Return a case distinction; None if its condition would hold one itself.

    SymPy folds cases in a condition into logic that no target has, and takes long for it.
    """
    if where.has(sp.Piecewise):
        return None
    return sp.Piecewise((better, where), (otherwise, True))


@dataclass(frozen=True)
class _Part:
    """A term ``number * common * function`` seen as a multiple of one of its factors."""

    term: sp.Expr
    number: sp.Expr
    common: sp.Expr
    function: sp.Expr

    @property
    def scale(self) -> sp.Expr:
        return self.number * self.common


def rewrite_sum(expr: sp.Add, cases: Cases) -> sp.Expr | None:
    """Apply the first rule that finds terms of `expr` that cancel; None if there are none."""
    terms: _Terms = dict(expr.as_coefficients_dict())
    parts = list(_parts(terms))
    return (
        _functions_minus_limits(terms, parts)
        or _horner(terms)
        or _differences_of_two(terms, parts, cases)
        or _root_minus_term(terms, parts, cases)
    )


def _parts(terms: _Terms) -> Iterator[_Part]:
    for term, number in terms.items():
        factors = sp.Mul.make_args(term)
        for factor in factors:
            base = factor.as_base_exp()[0] if not isinstance(factor, sp.exp) else factor
            if base.is_number:
                continue
            common = sp.Mul(*(f for f in factors if f is not factor))
            yield _Part(term, number, common, factor)


def _without(terms: _Terms, *removed: sp.Expr) -> sp.Expr:
    return sp.Add(*(number * term for term, number in terms.items() if term not in removed))


# -- f(u) - k with f near k


def _near_limit(f: sp.Expr) -> tuple[tuple[sp.Expr, sp.Expr], ...]:
    """Pairs (k, d) with f = k + d, where d keeps its digits as f approaches k."""
    if f.is_Pow and f.exp == 2 and isinstance(f.base, sp.Function):
        u = f.base.args[0]
        squares: dict[type, sp.Expr] = {
            sp.tanh: -(sp.sech(u) ** 2),
            sp.sech: -(sp.tanh(u) ** 2),
            sp.cosh: sp.sinh(u) ** 2,
            sp.sin: -(sp.cos(u) ** 2),
            sp.cos: -(sp.sin(u) ** 2),
        }
        d = squares.get(type(f.base))
        return () if d is None else ((sp.S.One, d),)
    if not isinstance(f, sp.Function):
        return ()
    u = f.args[0]
    one = sp.S.One
    if isinstance(f, sp.exp):
        return ((one, expm1(u)),)
    if isinstance(f, sp.cos):
        return ((one, -2 * sp.sin(u / 2) ** 2),)
    if isinstance(f, sp.cosh):
        return ((one, 2 * sp.sinh(u / 2) ** 2),)
    if isinstance(f, sp.tanh):
        return ((one, -2 * sigmoid(-2 * u)), (-one, 2 * sigmoid(2 * u)))
    if isinstance(f, sigmoid):
        return ((one, -sigmoid(-u)), (_HALF, sp.tanh(u / 2) / 2))
    if isinstance(f, sp.erf):
        return ((one, -sp.erfc(u)), (-one, 2 * normal_cdf(sp.sqrt(2) * u)))
    if isinstance(f, sp.erfc):
        return ((one, -sp.erf(u)), (2 * one, -2 * normal_cdf(sp.sqrt(2) * u)))
    if isinstance(f, normal_cdf):
        return ((one, -normal_cdf(-u)), (_HALF, sp.erf(u / sp.sqrt(2)) / 2))
    return ()


def _functions_minus_limits(terms: _Terms, parts: list[_Part]) -> sp.Expr | None:
    by_common: dict[sp.Expr, list[tuple[_Part, sp.Expr, sp.Expr]]] = {}
    for part in parts:
        if part.common not in terms:
            continue
        for k, d in _near_limit(part.function):
            if part.number * k + terms[part.common] == 0:
                return _without(terms, part.term, part.common) + part.scale * d
        found = _near_limit(part.function)
        if found:
            by_common.setdefault(part.common, []).append((part, *found[0]))
    for common, group in by_common.items():
        # exp(u) + exp(v) - 2
        if len(group) > 1 and sum(p.number * k for p, k, _ in group) + terms[common] == 0:
            rest = _without(terms, common, *(p.term for p, _, _ in group))
            return sp.Add(rest, *(p.scale * d for p, _, d in group))
    return None


# -- f(a) - f(b)


def _differences_of_two(terms: _Terms, parts: list[_Part], cases: Cases) -> sp.Expr | None:
    by_common: dict[sp.Expr, list[_Part]] = {}
    for part in parts:
        by_common.setdefault(part.common, []).append(part)
    for common, group in by_common.items():
        for i, p in enumerate(group):
            for q in group[i + 1 :]:
                if p.term == q.term:
                    continue
                if p.number < 0:
                    p, q = q, p
                found = None
                if p.number == -q.number:
                    found = _difference(p.function, q.function, cases)
                elif p.number == q.number and _are_opposite_exponentials(p.function, q.function):
                    found = 2 * sp.cosh(p.function.args[0])
                if found is not None:
                    return _without(terms, p.term, q.term) + p.scale * found
        if common in terms:
            # a² - s² with a rational s
            for p in group:
                square = -terms[common] / p.number
                root = sp.sqrt(square) if square.is_positive else sp.S.Zero
                if root.is_Rational and root != 0 and _is_square(p.function):
                    a = p.function.base
                    return _without(terms, p.term, common) + p.scale * sp.Mul(a - root, a + root)
    return None


def _is_square(f: sp.Expr) -> bool:
    return bool(f.is_Pow and f.exp == 2)


def _are_opposite_exponentials(f: sp.Expr, g: sp.Expr) -> bool:
    return isinstance(f, sp.exp) and isinstance(g, sp.exp) and f.args[0] == -g.args[0]


def _difference(f: sp.Expr, g: sp.Expr, cases: Cases) -> sp.Expr | None:
    """f - g without loss where they are nearly equal; None if there is no rule."""
    if _is_square(f) and _is_square(g):
        return (f.base - g.base) * (f.base + g.base)
    if f.is_Pow and g.is_Pow and f.exp == g.exp:
        return _difference_of_powers(f, g)
    if not isinstance(f, sp.Function) or type(f) is not type(g):
        return None
    a, b = f.args[0], g.args[0]
    if isinstance(f, sp.erf):
        return erf_difference(a, b)
    if isinstance(f, sp.erfc):
        return erf_difference(b, a)
    if isinstance(f, normal_cdf):
        return erf_difference(a / sp.sqrt(2), b / sp.sqrt(2)) / 2
    if isinstance(f, sp.exp):
        if a == -b:
            return 2 * sp.sinh(a)
        # One exponent for both cases: shared, it is computed before the case is known, and must
        # not overflow in the other one.
        loss = expm1(-sp.Abs(a - b))
        # Of a > b itself SymPy does not find the end of its search for a canonical form.
        return two_cases(-f * loss, a - b > 0, g * loss)
    if isinstance(f, sp.log):
        # Within a factor of 2 the subtraction a - b is exact.
        return cases(log1p((a - b) / b), sp.Abs(a - b) < b / 2, f - g)
    if isinstance(f, sp.tanh):
        return _difference_of_tanh(a, b, sp.S.One, f - g, cases)
    if isinstance(f, sigmoid):
        return _difference_of_tanh(a / 2, b / 2, _HALF, f - g, cases)
    return None


def _difference_of_tanh(
    a: sp.Expr, b: sp.Expr, scale: sp.Expr, plain: sp.Expr, cases: Cases
) -> sp.Expr | None:
    """`plain` = scale (tanh a - tanh b) as a product."""
    # sinh overflows from 710 on; there one of the two is far from the other or both are +-1.
    product = scale * sp.sinh(a - b) * sp.sech(a) * sp.sech(b)
    return cases(product, sp.Abs(a - b) < 300, plain)


def _difference_of_powers(f: sp.Expr, g: sp.Expr) -> sp.Expr | None:
    a, b = f.base, g.base
    apart = b - a if f.exp == -1 else a - b
    cancelled = len(sp.Add.make_args(apart)) < len(sp.Add.make_args(a)) + len(sp.Add.make_args(b))
    if f.exp == -1 and (cancelled or (a.is_Symbol and b.is_Symbol)):
        return apart / a / b
    if f.exp == _HALF and cancelled and (a.is_positive or b.is_positive):
        return apart / (f + g)
    return None


# -- sqrt(a) - b


def _root_minus_term(terms: _Terms, parts: list[_Part], cases: Cases) -> sp.Expr | None:
    for part in parts:
        root = part.function
        if not (root.is_Pow and root.exp == _HALF and root.base.is_Add):
            continue
        for other, number in terms.items():
            if other == part.term:
                continue
            b = -number * other / part.scale
            if not _ingredients(b) <= _ingredients(root.base):
                continue  # nothing of b² is a term of a; expanding it may take minutes
            difference = root.base - sp.expand(b**2)
            if b.is_negative or len(sp.Add.make_args(difference)) >= len(root.base.args):
                continue
            if len(sp.Add.make_args(b)) > 1:
                continue
            better = part.scale * difference / (root + b)
            if not b.is_positive:
                plain = part.scale * root - part.scale * b
                found = cases(better, b > 0, plain, root + b)
                if found is None:
                    continue
                better = found
            return _without(terms, part.term, other) + better
    return None


def _ingredients(expr: sp.Expr) -> set[sp.Basic]:
    return expr.free_symbols | parts_of(expr, sp.Function)


# -- polynomials


def _horner(terms: _Terms) -> sp.Expr | None:
    """Horner's scheme for the powers of one variable with numbers before them.

    Even and odd polynomials come out as polynomials in its square by themselves.
    """
    powers: dict[sp.Expr, dict[int, sp.Expr]] = {}
    for term, number in terms.items():
        x, n = term.as_base_exp()
        if not x.is_number and n.is_Integer and n > 0:
            powers.setdefault(x, {})[int(n)] = number
    for x, coefficients in powers.items():
        degrees = sorted(coefficients, reverse=True)
        if len(degrees) < 2 or degrees[0] < 3:
            continue
        total = coefficients[degrees[0]]
        for above, below in pairwise(degrees):
            total = sp.Mul(total, x ** (above - below)) + coefficients[below]
        return _without(terms, *(x**n for n in degrees)) + total * x ** degrees[-1]
    return None
