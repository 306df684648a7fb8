"""Rewrite expressions so that floating point keeps their digits.

Each rule replaces a form that overflows or subtracts nearly equal numbers by one that does not and
that equals it on the whole domain on which it is real and finite; where the better form is better
on a part of the domain only, both are kept in a case distinction. Rules look at one node and run
from the leaves up until none applies. All symbols stand for real numbers.

Conditions of case distinctions are left as they are.

In sums, pairs of terms that cancel become one function or a product: a rule looks at pairs ``q m
f`` and ``c m``, or ``q m f`` and ``-q m g``, with numbers q, c, a common factor m and functions f,
g of a kind; the other terms of the sum stay.

Find nodes and symbols in large expressions, each distinct subexpression looked at once.

Derivatives of integrands share most of their parts: as a tree they are many times as large as what
is in memory. The order of what is found follows from the expression alone, so that the same system
gives the same code in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p

from ..expressions.bivariate_normal import BivariateNormalCDF
from ..expressions.functions import (
    erf_difference,
    erfcx,
    log_cosh,
    log_normal_cdf,
    normal_cdf,
    sigmoid,
    softplus,
)
from ..expressions.shared_parts import free_symbols, parts_of
from .ramp_moments import RampAverage, sums_at_nodes

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


_Limits = tuple[tuple[sp.Expr, sp.Expr], ...]
_ONE = sp.S.One
_NEAR_LIMITS: dict[type, Callable[[sp.Expr], _Limits]] = {
    sp.exp: lambda u: ((_ONE, expm1(u)),),
    sp.cos: lambda u: ((_ONE, -2 * sp.sin(u / 2) ** 2),),
    sp.cosh: lambda u: ((_ONE, 2 * sp.sinh(u / 2) ** 2),),
    sp.tanh: lambda u: ((_ONE, -2 * sigmoid(-2 * u)), (-_ONE, 2 * sigmoid(2 * u))),
    sigmoid: lambda u: ((_ONE, -sigmoid(-u)), (_HALF, sp.tanh(u / 2) / 2)),
    sp.erf: lambda u: ((_ONE, -sp.erfc(u)), (-_ONE, 2 * normal_cdf(sp.sqrt(2) * u))),
    sp.erfc: lambda u: ((_ONE, -sp.erf(u)), (2 * _ONE, -2 * normal_cdf(sp.sqrt(2) * u))),
    normal_cdf: lambda u: ((_ONE, -normal_cdf(-u)), (_HALF, sp.erf(u / sp.sqrt(2)) / 2)),
}
_SQUARES_NEAR_ONE: dict[type, Callable[[sp.Expr], sp.Expr]] = {
    sp.tanh: lambda u: -(sp.sech(u) ** 2),
    sp.sech: lambda u: -(sp.tanh(u) ** 2),
    sp.cosh: lambda u: sp.sinh(u) ** 2,
    sp.sin: lambda u: -(sp.cos(u) ** 2),
    sp.cos: lambda u: -(sp.sin(u) ** 2),
}


def _near_limit(f: sp.Expr) -> _Limits:
    """Pairs (k, d) with f = k + d, where d keeps its digits as f approaches k."""
    if _is_square(f) and type(f.base) in _SQUARES_NEAR_ONE:
        return ((_ONE, _SQUARES_NEAR_ONE[type(f.base)](f.base.args[0])),)
    return _NEAR_LIMITS[type(f)](f.args[0]) if type(f) in _NEAR_LIMITS else ()


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
        return _difference_of_tanh(a, b, _ONE, f - g, cases)
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
    return expr.free_symbols.union(parts_of(expr, sp.Function))


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


# Tails of the normal law, which decay like exp(-u²).
_TAILS = (sp.erfc, normal_cdf)
# Far more than any expression needs: rules that undo each other would be a fault of this module.
_MOST_REWRITES = 10_000


def is_tail(expr: sp.Expr) -> bool:
    """Whether an expression is a tail of the normal law, in whatever spelling: positive, then."""
    # Only beside a number a function is one less another: the others need not be rewritten.
    two = expr.is_Add and len(expr.args) == 2 and any(a.is_number for a in expr.args)
    if not (isinstance(expr, _TAILS) or two):
        return False
    number, base = rewrite_for_accuracy(expr).as_coeff_Mul()
    return isinstance(base, _TAILS) and bool(number > 0)


def rewrite_for_accuracy(expr: sp.Expr) -> sp.Expr:
    """Return an equal expression that loses fewer digits in floating point.

    `expr`: in real symbols; averages, undefined functions and cases are entered.

    Notes
    -----
    exp(u) - 1, cos(u) - 1, cosh(u) - 1, 1 - tanh², 1 ∓ tanh, 1 ∓ erf, 1 - σ(u) and the like become
    one function; so do 1/(1 + exp), log(1 + u), log(1 + exp), log(exp a + exp b), log cosh,
    log Φ, exp(x²) erfc(x), and powers of φ over powers of Φ, also in sums over Φ. Differences of
    equal functions (erf, tanh, σ, exp, log, roots, reciprocals, squares) are factored, polynomials
    written by Horner's scheme.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> rewrite_for_accuracy(sp.exp(x) - 1), rewrite_for_accuracy(1 - sp.tanh(x)**2)
    (expm1(x), sech(x)**2)
    >>> rewrite_for_accuracy(sp.log((1 + sp.erf(x / sp.sqrt(2))) / 2))
    log_normal_cdf(x)
    """
    if expr.has(BivariateNormalCDF):
        # Code has Owen's T instead, of which the derivatives are worse.
        expr = expr.replace(BivariateNormalCDF, _by_owen)
    return _Rewriter().visit(expr)


def _by_owen(*arguments: sp.Expr) -> sp.Expr:
    return BivariateNormalCDF(*arguments).by_owen()


def accurate_moment(moment: RampAverage) -> sp.Expr:
    """Return the cases of an average of a ramp, rewritten once for all arguments.

    Sums over nodes are left as they are.
    """
    orders, arguments = moment.args[:2], moment.args[2:]
    form, symbols = _moment_form(moment.func, *map(int, orders))
    return form.xreplace(dict(zip(symbols, arguments, strict=True)))


@lru_cache(maxsize=64)
def _moment_form(moment: type[RampAverage], *orders: int) -> tuple[sp.Expr, tuple[sp.Symbol, ...]]:
    symbols = tuple(
        sp.Dummy(name, real=True, positive=positive or None) for name, positive in moment.arguments
    )
    return rewrite_for_accuracy(moment(*orders, *symbols).by_cases()), symbols


class _Rewriter:
    def __init__(self) -> None:
        # A form that a rule keeps as one of its cases is entered here as its own result.
        self._done: dict[sp.Expr, sp.Expr] = {}
        self._count = 0

    def visit(self, expr: sp.Expr) -> sp.Expr:
        if not isinstance(expr, sp.Expr) or not expr.args:
            return expr
        if expr not in self._done:
            if not free_symbols(expr):
                return expr
            apart = self._decay_apart(expr) if expr.is_Mul else None
            if apart is not None:
                return self._settle(expr, self.visit(apart))
            found = self._with_better_arguments(expr)
            if found.func != expr.func:
                # The arguments combined to another node, whose parts are new.
                return self._settle(expr, self.visit(found))
            better = self._rewritten(found)
            if better is not None and better != found:
                self._count += 1
                if self._count > _MOST_REWRITES:
                    raise RuntimeError(f"rules of accuracy undo each other at {found}")
                found = self.visit(better)
            self._settle(expr, found)
        return self._done[expr]

    def _settle(self, expr: sp.Expr, found: sp.Expr) -> sp.Expr:
        self._done[found] = found
        self._done[expr] = found
        return found

    def _with_better_arguments(self, expr: sp.Expr) -> sp.Expr:
        if isinstance(expr, sp.Piecewise):
            # Keep the form of the last case if the cases are those that a rule makes of it.
            otherwise = expr.args[-1][0]
            # SymPy takes powers of a case distinction case by case.
            base = otherwise.base if otherwise.is_Pow else otherwise
            again = self._rewritten(base) if free_symbols(base) else None
            if isinstance(again, sp.Piecewise) and again.args[0][1] == expr.args[0][1]:
                self._done[otherwise] = otherwise
            cases = [(self.visit(value), test) for value, test in expr.args]
            unchanged = all(a is b for (a, _), (b, _) in zip(cases, expr.args, strict=True))
            return expr if unchanged else sp.Piecewise(*cases)
        arguments = [self.visit(a) for a in expr.args]
        if isinstance(expr, sp.exp) and arguments[0].is_Mul:
            # Substitution leaves 2*(x + 1), which SymPy writes 2*x + 2: equal ones should look so.
            arguments = [sp.Mul(*arguments[0].args)]
        unchanged = all(a is b for a, b in zip(arguments, expr.args, strict=True))
        return expr if unchanged else expr.func(*arguments)

    def _decay_apart(self, expr: sp.Mul) -> sp.Expr | None:
        """Take out of sums what vanishes together with a tail below them; None if nothing does.

        Sum and tail underflow together, so nothing is left of their quotient; a factor of the sum
        that goes like the tail has a quotient with it that is a scaled function.
        """
        if not expr.has(sp.exp) or not any(f.as_base_exp()[0].is_Add for f in expr.args):
            return None
        for base, n in (f.as_base_exp() for f in expr.args):
            number, tail = (
                self.visit(base).as_coeff_Mul() if n.is_number and n < 0 else (None, base)
            )
            if number is None or not isinstance(tail, _TAILS):
                continue
            named = expr.xreplace({base: number * tail})
            for factor in sp.Mul.make_args(named):
                sum_, times = factor.as_base_exp()
                if sum_.is_Add and times.is_Integer and times > 0 and sum_.has(sp.exp):
                    apart = _common_decay(sum_, tail)
                    if apart is not None:
                        taken, inner = apart
                        return named / factor * taken**times * inner**times
        return None

    def _rewritten(self, expr: sp.Expr) -> sp.Expr | None:
        if expr.is_Add:
            return rewrite_sum(expr, self._cases)
        if expr.is_Mul:
            return _product(expr, self._cases)
        if expr.is_Pow:
            base, exponent = expr.args
            if isinstance(base, sp.exp) and exponent.is_number:
                return sp.exp(exponent * base.args[0])
            if not (exponent.is_Integer and exponent < 0):
                return None
            if isinstance(base, sp.cosh):
                return sp.sech(base.args[0]) ** -exponent
            if base.is_Add and len(base.args) == 2:
                # (c + d exp(u))^-n with positive c, d
                constant, u = sorted(
                    _exponents(base) or [base, base], key=lambda e: bool(e.free_symbols)
                )
                if not constant.free_symbols and u.free_symbols:
                    return sp.exp(exponent * constant) * sigmoid(constant - u) ** -exponent
            if base.is_Add and (arguments := {f.args[0] for f in base.atoms(sp.cosh)}):
                # (c + d cosh(u))^-n, whose factors overflow like cosh(u)^n
                u = arguments.pop()
                divided = None if arguments else _over_cosh(base, u)
                return None if divided is None else (sp.sech(u) / divided) ** -exponent
            return None
        if isinstance(expr, sp.log):
            return _logarithm(expr.args[0])
        return sums_at_nodes(accurate_moment(expr)) if isinstance(expr, RampAverage) else None

    def _cases(
        self, better: sp.Expr, where: sp.Basic, otherwise: sp.Expr, *kept: sp.Expr
    ) -> sp.Expr | None:
        """The better form where it is better and the old one elsewhere; `kept` are in no danger."""
        if where in (sp.true, sp.false):
            return better if where == sp.true else None
        found = two_cases(better, where, otherwise)
        if found is not None:
            self._done |= {e: e for e in (otherwise, *kept)}
        return found


# -- powers and products


def _product(expr: sp.Mul, cases: Cases) -> sp.Expr | None:
    exponentials = [f for f in expr.args if isinstance(f, sp.exp)]
    others = [f.as_base_exp() for f in expr.args if f not in exponentials]
    if len(exponentials) > 1 and any(isinstance(base, _TAILS) for base, _ in others):
        # SymPy leaves them apart; the decay of a tail may be spread over several.
        together = _expanded(sp.Add(*(f.args[0] for f in exponentials)))
        return sp.exp(together) * sp.Mul(*(b**n for b, n in others))
    exponential = exponentials[0] if exponentials else None
    powers = {base: int(n) for base, n in others if n.is_Integer}
    below = [b for b, n in others if isinstance(b, _TAILS) and n.is_number and n < 0]
    if exponential is not None:
        for base, n in others:
            if isinstance(base, _TAILS) and (n.is_Integer or (n.is_number and n < 0)):
                found = _scaled_tail(exponential.args[0], base, n, cases, several=len(below) > 1)
                if found is not None:
                    return found * sp.Mul(*(b**k for b, k in others if b != base))
    for base, n in powers.items():
        found = None
        u = base.args[0] if isinstance(base, sp.Function) else sp.S.Zero
        if exponential is not None and isinstance(base, sigmoid):
            found = _reflected_sigmoid(exponential.args[0], u, n)
        elif exponential is not None and base.is_Add and n == -1:
            found = _share_of_two(exponential.args[0], base)
        elif exponential is not None and isinstance(base, sp.sech) and n == 1:
            found = _exponential_over_cosh(exponential.args[0], u)
        elif isinstance(base, sp.sech) and n > 0:
            # The sum overflows, and what it is multiplied with vanishes.
            for sum_ in (f for f in expr.args if f.is_Add and f.has(sp.cosh(u), sp.sinh(u))):
                divided = _over_cosh(sum_, u, every=True)
                if divided is not None:
                    return expr / sum_ / base * divided
        elif isinstance(base, erfcx) and n < 0:
            distributed = _over_tail(expr, base)
            if distributed is not None:
                return distributed
        if found is not None:
            return found * sp.Mul(*(f for f in expr.args if f not in (exponential, base**n)))
        partner = None
        if isinstance(base, sp.sinh):
            partner, quotient = sp.sech(u), sp.tanh(u)
        elif isinstance(base, sp.cosh):
            partner, quotient = sp.sech(u), sp.S.One
        elif isinstance(base, expm1):
            partner, quotient = sigmoid(-u), sp.tanh(u / 2)
        # The factors overflow and underflow where the quotient is 1.
        if partner is not None and n > 0 and powers.get(partner, 0) > 0:
            return expr / base / partner * quotient
    return None


def _scaled_tail(
    w: sp.Expr, tail: sp.Expr, n: sp.Expr, cases: Cases, *, several: bool
) -> sp.Expr | None:
    """exp(w) tail^n where w cancels the decay of a tail, or a part, or where the tail is below.

    `several` tails are below: each gets what is a multiple of its decay, and leaves the others
    the rest of w.
    """
    u = _tail_argument(tail)
    square = n * u**2
    if several and n.is_negative:
        share = _multiple(w, square)
        if share is None:
            return None
        own = share * square
        found = _scaled_tail(own, tail, n, cases, several=False)
        return None if found is None else found * sp.exp(_expanded(w) - _expanded(own))
    scaled = erfcx(u) if isinstance(tail, sp.erfc) else erfcx(u) / 2
    part = _with_signs_outside(square) / _with_signs_outside(w)
    if not part.is_number:
        # Expanding takes longer than all the rest, and tells no more of a number.
        expanded = _expanded(square)
        rest = _expanded(w) - expanded
    if part == 1 or (not part.is_number and rest == 0):
        # On the other side a root of the scaled tail overflows before the quotient vanishes.
        whole = not n.is_negative or n <= -1
        return scaled**n if whole else cases(scaled**n, u > 0, sp.exp(w) * _above(tail) ** n)
    # Something is cancelled if the terms of u² are among those of w, or a part of the only one.
    if part.is_number:
        if part < 0 or (part > 1 and not n.is_negative):
            return None
        # What grows is shared, and computed before the case is known: it must not overflow.
        rest = (1 - 1 / part) * -n * sp.Max(u, 0) ** 2 if part > 1 else (1 - part) * w
    elif _length(rest) > _length(_expanded(w)) - _length(expanded):
        # Below, a tail that underflows leaves nothing of any quotient.
        if not n.is_negative or not w.free_symbols & u.free_symbols:
            return None
        if _multiple(w, square) is None:
            rest = w - square
    elsewhere = _above(tail) if n.is_negative else tail
    return cases(sp.exp(rest) * scaled**n, u > 0, sp.exp(w) * elsewhere**n)


def _above(tail: sp.Expr) -> sp.Expr:
    """A tail where it is of order one, and elsewhere no divisor that vanishes."""
    (x,) = tail.args
    return sp.erfc(sp.Min(x, 0)) if isinstance(tail, sp.erfc) else normal_cdf(sp.Max(x, 0))


def _tail_argument(tail: sp.Expr) -> sp.Expr:
    """The u of a tail erfc(u) or erfc(u)/2, which decays like exp(-u²)."""
    u = tail.args[0]
    return u if isinstance(tail, sp.erfc) else -u / sp.sqrt(2)


def _multiple(w: sp.Expr, square: sp.Expr) -> sp.Expr | None:
    """The number c for which w holds c times the terms of `square`; None if there is none."""
    quotient = _with_signs_outside(w) / _with_signs_outside(square)
    if quotient.is_number:
        return quotient
    wanted, given = (_expanded(e).as_coefficients_dict() for e in (square, w))
    shares = {given[term] / number for term, number in wanted.items()}
    (share,) = shares if len(shares) == 1 else (sp.S.Zero,)
    return share if share != 0 else None


# Rules look at the same few exponents again and again.
@lru_cache(maxsize=256)
def _expanded(expr: sp.Expr) -> sp.Expr:
    """The terms of an expression, equal ones written alike."""
    return sp.Add(*map(_with_signs_outside, sp.Add.make_args(sp.expand(expr))))


@lru_cache(maxsize=256)
def _with_signs_outside(product: sp.Expr) -> sp.Expr:
    """A product whose sums have no common number, and signs so that v - 1 is -(1 - v)."""
    factors = []
    for factor in sp.Mul.make_args(product):
        base, n = factor.as_base_exp()
        if base.is_Add and n.is_Integer:
            number, base = base.primitive()
            if base.could_extract_minus_sign():
                number, base = -number, -base
            factor = number**n * base**n
        factors.append(factor)
    return sp.Mul(*factors)


def _common_decay(sum_: sp.Add, tail: sp.Expr) -> tuple[sp.Expr, sp.Expr] | None:
    """The power of exp(-u²), or else of the tail itself, that all terms vanish with; the rest."""
    square = -(_tail_argument(tail) ** 2)
    decays, powers, rests = [], [], []
    for term in sum_.args:
        factors = sp.Mul.make_args(term)
        exponent = sp.Add(*(f.args[0] for f in factors if isinstance(f, sp.exp)))
        share = sp.S.Zero if exponent == 0 else _multiple(exponent, square) or sp.S.Zero
        rest = _expanded(exponent) - _expanded(share * square)
        decays.append(share)
        powers.append(sp.Add(*(k for b, k in (f.as_base_exp() for f in factors) if b == tail)))
        rests.append(sp.exp(rest) * sp.Mul(*(f for f in factors if not isinstance(f, sp.exp))))
    least = min(decays)
    if least > 0:
        parts = zip(decays, rests, strict=True)
        return sp.exp(least * square), sp.Add(*(sp.exp((c - least) * square) * x for c, x in parts))
    totals = [a + b for a, b in zip(decays, powers, strict=True)]
    if all(k.is_number for k in totals) and min(totals) > 0:
        taken = tail ** min(totals)
        return taken, sp.Add(*(term / taken for term in sum_.args))
    return None


def _over_tail(expr: sp.Mul, tail: sp.Expr) -> sp.Expr | None:
    """Sums of powers of a tail over it, power by power: a tail that overflows leaves inf/inf."""
    value = sp.Dummy("tail", positive=True)
    whole = expr.xreplace({tail: value})
    below = {f: sp.S.One for f in whole.atoms(sp.Pow) if f.base == value and f.exp.is_negative}
    if not sp.Mul(*(f for f in whole.args if f.as_base_exp()[0].is_Add)).xreplace(below).has(value):
        return None
    # What does not hold the tail stays as it is written.
    held = {sum_: sp.Dummy(real=True) for sum_ in whole.atoms(sp.Add) if not sum_.has(value)}
    by_power: dict[sp.Expr, list[sp.Expr]] = {}
    for term in sp.Add.make_args(sp.expand(whole.xreplace(held))):
        coefficient, power = term.as_independent(value, as_Add=False)
        base, k = power.as_base_exp()
        if power != 1 and (base != value or not k.is_Integer or k > 0):
            return None
        by_power.setdefault(k if power != 1 else sp.S.Zero, []).append(coefficient)
    written = {dummy: sum_ for sum_, dummy in held.items()}
    return sp.Add(*(sp.Add(*c).xreplace(written) * tail**k for k, c in by_power.items()))


def _length(sum_: sp.Expr) -> int:
    return 0 if sum_ == 0 else len(sp.Add.make_args(sum_))


def _reflected_sigmoid(v: sp.Expr, s: sp.Expr, n: int) -> sp.Expr | None:
    """exp(c - k s) sigmoid(s)^n with numbers c, k >= 1, by exp(-s) sigmoid(s) = sigmoid(-s)."""
    if not s.free_symbols or n <= 0:
        return None
    symbols = v.free_symbols | s.free_symbols
    (c_v, v_part), (c_s, s_part) = (
        sp.expand(e).as_independent(*symbols, as_Add=True) for e in (v, s)
    )
    if v_part.free_symbols != s_part.free_symbols:
        return None  # no multiple of each other, which takes long to find out by division
    k = -sp.cancel(v_part / s_part)
    c = c_v + k * c_s
    if not (k.is_Rational and k >= 1):
        return None
    reflected = min(int(k), n)
    rest = sp.exp(c + (reflected - k) * s)
    return rest * sigmoid(s) ** (n - reflected) * sigmoid(-s) ** reflected


def _share_of_two(v: sp.Expr, sum_: sp.Add) -> sp.Expr | None:
    """exp(v)/(exp(a) + exp(b)) where v is a or b up to a number."""
    exponents = _exponents(sum_)
    if exponents is None or len(exponents) != 2:
        return None
    a, b = exponents
    for this, other in ((a, b), (b, a)):
        c = sp.expand(v - this)
        if c.is_number:
            return sp.exp(c) * sigmoid(this - other)
    return None


def _exponential_over_cosh(v: sp.Expr, u: sp.Expr) -> sp.Expr | None:
    for sign in (1, -1):
        c = sp.expand(v - sign * u)
        if c.is_number:
            return 2 * sp.exp(c) * sigmoid(2 * sign * u)
    return None


def _over_cosh(sum_: sp.Add, u: sp.Expr, *, every: bool = False) -> sp.Expr | None:
    """A sum over cosh(u), which may be in `every` term; None where some cosh or sinh is left."""
    divided = []
    for term in sum_.args:
        factors = list(sp.Mul.make_args(term))
        for growing, ratio in ((sp.cosh(u), sp.S.One), (sp.sinh(u), sp.tanh(u))):
            if growing in factors:
                factors[factors.index(growing)] = ratio
                break
        else:
            if every:
                return None
            factors.append(sp.sech(u))
        divided.append(sp.Mul(*factors))
    found = sp.Add(*divided)
    return None if found.has(sp.cosh, sp.sinh) else found


# -- logarithms


def _logarithm(argument: sp.Expr) -> sp.Expr | None:
    coefficient, rest = argument.as_coeff_Mul()
    base, n = rest.as_base_exp()
    u = base.args[0] if isinstance(base, sp.Function) else sp.S.Zero
    whole = n.is_Integer and n > 0
    if isinstance(base, sp.cosh) and whole and coefficient >= 1:
        return sp.log(coefficient) + n * log_cosh(u)
    if isinstance(base, sp.sech) and whole and coefficient == 1:
        return -n * log_cosh(u)
    if isinstance(base, sigmoid) and whole and coefficient == 1:
        return -n * softplus(-u)
    if isinstance(rest, sp.erfc) and coefficient == sp.S.Half:
        return log_normal_cdf(-sp.sqrt(2) * u)
    if isinstance(rest, normal_cdf) and coefficient == 1:
        return log_normal_cdf(u)
    if isinstance(rest, normal_cdf) and coefficient == 2:
        near = log1p(sp.erf(u / sp.sqrt(2)))
        return two_cases(near, sp.Abs(u) < sp.S.Half, sp.log(2) + log_normal_cdf(u))
    if isinstance(rest, sp.erfc) and coefficient == 1:
        far = sp.log(2) + log_normal_cdf(-sp.sqrt(2) * u)
        return two_cases(log1p(-sp.erf(u)), sp.Abs(u) < sp.S.Half, far)
    if isinstance(rest, expm1) and coefficient == -1:
        # log(1 - exp(u)) for u < 0, with exp(u) near 1 or near 0
        near = u / 2 + sp.log(-2 * sp.sinh(u / 2))
        return two_cases(near, u > -sp.log(2), log1p(-sp.exp(u)))
    if not argument.is_Add:
        return None
    exponents = _exponents(argument)
    if exponents is not None:
        constants_first = sorted(
            exponents, key=lambda e: (bool(e.free_symbols), sp.default_sort_key(e))
        )
        total = constants_first[0]
        for e in constants_first[1:]:
            if total == 0:
                total = softplus(e)
            else:
                total = sp.Max(total, e) + softplus(-sp.Abs(total - e))
        return total
    one, others = argument.as_coeff_Add()
    return log1p(others) if one == 1 else None


def _exponents(sum_: sp.Expr) -> list[sp.Expr] | None:
    """The u_i of a sum of exp(u_i); positive factors and constants go into the exponents."""
    found = []
    for term in sum_.args:
        coefficient, rest = term.as_coeff_Mul()
        if not coefficient > 0 or not (rest == 1 or isinstance(rest, sp.exp)):
            return None
        found.append(sp.log(coefficient) + (rest.args[0] if rest != 1 else sp.S.Zero))
    return found
