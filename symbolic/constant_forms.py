r"""Exact constants as fractions of sums of monomials, with what is known about their independence.

A constant becomes a quotient of sums :math:`\sum_j A_j\, \pi^{r_j} e^{a_j} \prod_k g_k^{s_{jk}}`
with algebraic A, where the generators g are what no rule takes apart: logarithms, angles, values of
erf, symbols, expectations. If every A vanishes the constant is zero, whatever the generators are.
That it is not zero follows in two cases without any number being computed:

- only powers of pi occur: pi is transcendental (Lindemann 1882);
- only exponentials of distinct algebraic numbers occur: Lindemann-Weierstrass (1885).

Equal generators in different clothes are found first: equal arguments by this same test; logarithms
of rationals through a coprime base; logarithms of algebraic numbers and angles (atan, asin, acos)
through integer relations, which PSLQ proposes and an exact product of algebraic numbers proves, as
in Machin's 4 atan(1/5) - atan(1/239) = pi/4. Trigonometric and hyperbolic functions are written as
exponentials.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy as sp

from ._integer_relations import (
    MAX_BASIS,
    integer_relation,
    proves_angles,
    proves_logarithms,
)
from .algebraic_numbers import algebraic_is_zero, coprime_base, measure
from .averages import Average
from .constant_enclosures import (
    NoEnclosure,
    are_apart,
    enclosed_sign,
    enclosure,
    excludes_zero,
)
from .functions import sigmoid

_BITS = 200
_MAX_TERMS = 2000
_MAX_POWER = 64
_MAX_EXPONENTS = 300
_MAX_QUESTIONS = 500

_EXPONENTIALS: dict[type, Callable[[sp.Expr], sp.Expr]] = {
    sp.sin: lambda x: (sp.exp(sp.I * x) - sp.exp(-sp.I * x)) / (2 * sp.I),
    sp.cos: lambda x: (sp.exp(sp.I * x) + sp.exp(-sp.I * x)) / 2,
    sp.tan: lambda x: (sp.exp(2 * sp.I * x) - 1) / (sp.I * (sp.exp(2 * sp.I * x) + 1)),
    sp.sinh: lambda x: (sp.exp(x) - sp.exp(-x)) / 2,
    sp.cosh: lambda x: (sp.exp(x) + sp.exp(-x)) / 2,
    sp.tanh: lambda x: (sp.exp(2 * x) - 1) / (sp.exp(2 * x) + 1),
    sp.sech: lambda x: 2 * sp.exp(x) / (sp.exp(2 * x) + 1),
    sigmoid: lambda x: sp.exp(x) / (1 + sp.exp(x)),
    sp.erfc: lambda x: 1 - sp.erf(x),
    sp.acos: lambda x: sp.pi / 2 - sp.asin(x),
    sp.asinh: lambda x: sp.log(x + sp.sqrt(x**2 + 1)),
    sp.acosh: lambda x: sp.log(x + sp.sqrt(x**2 - 1)),
    sp.atanh: lambda x: sp.log((1 + x) / (1 - x)) / 2,
}


class _OutOfReach(Exception):
    """The form is too large, or a denominator could not be shown to differ from zero."""


@dataclass(frozen=True)
class _Monomial:
    """Product of generators to rational powers, times e to an exponent."""

    powers: frozenset[tuple[sp.Expr, sp.Rational]] = frozenset()
    exponent: sp.Expr = sp.S.Zero

    def times(self, other: _Monomial) -> _Monomial:
        powers = dict(self.powers)
        for generator, power in other.powers:
            powers[generator] = powers.get(generator, sp.S.Zero) + power
        kept = frozenset((g, power) for g, power in powers.items() if power != 0)
        return _Monomial(kept, self.exponent + other.exponent)

    def power(self, r: sp.Rational) -> _Monomial:
        return _Monomial(
            frozenset((g, p * r) for g, p in self.powers), sp.expand(self.exponent * r)
        )


_ONE = _Monomial()
_Sum = dict[_Monomial, sp.Expr]
_Fraction = tuple[_Sum, _Sum]


def is_zero_by_structure(expr: sp.Expr) -> bool | None:
    """Decide by the normal form whether a constant, or an expression in symbols, is zero.

    Parameters
    ----------
    expr : Expr
        Exact. Symbols and unknown functions count as independent.

    Returns
    -------
    bool or None
        True is a proof that it is (identically) zero, False a proof that it is not; None: neither.

    Examples
    --------
    >>> from sympy import atan, exp, pi, sqrt, Rational
    >>> is_zero_by_structure(4 * atan(Rational(1, 5)) - atan(Rational(1, 239)) - pi / 4)
    True
    >>> is_zero_by_structure((exp(1) + 1) ** 2 - exp(2) - 2 * exp(1) - Rational(10**9, 10**9 + 1))
    False
    """
    if excludes_zero(expr, _BITS):
        return False
    decided = algebraic_is_zero(expr)
    if decided is not None:
        return decided
    try:
        return _Forms(expr).vanishes()
    except _OutOfReach:
        return None


class _Forms:
    """The normal form of one expression; holds the generators it has met."""

    def __init__(self, expr: sp.Expr) -> None:
        self.expr = expr
        self.generators: list[sp.Expr] = []
        self.angles: list[tuple[sp.Expr, sp.Expr]] = []
        self.logarithms: list[sp.Expr] = []
        self.integers = coprime_base(
            number
            for node in expr.atoms(sp.log)
            if node.args[0].is_Rational and node.args[0] > 0
            for number in (int(node.args[0].p), int(node.args[0].q))
        )
        self.known: dict[sp.Expr, _Fraction] = {}
        # Exponents by one that is equal to them, and where these are.
        self.exponents: dict[sp.Expr, sp.Expr] = {}
        self.enclosures: dict[sp.Expr, Any] = {}
        self.questions = 0

    def vanishes(self) -> bool | None:
        numerator = self.merged(self.without_powers_of_roots(self.fraction(self.expr)[0]))
        left = {}
        for monomial, coefficient in numerator.items():
            decided = algebraic_is_zero(coefficient)
            if decided is None:
                return None
            if not decided:
                left[monomial] = coefficient
        if not left:
            return True
        return False if self.independent(list(left)) else None

    def without_powers_of_roots(self, form: _Sum) -> _Sum:
        """Multiply out whole powers of sums under roots, clearing those that are negative."""
        for base in {g for monomial in form for g, _ in monomial.powers if g.is_Add}:
            powers = {monomial: dict(monomial.powers).get(base, sp.S.Zero) for monomial in form}
            whole = {monomial: int(sp.floor(power)) for monomial, power in powers.items()}
            lowest, highest = min(0, *whole.values()), max(whole.values())
            numerator, denominator = self.fraction(base)
            found: _Sum = {}
            for monomial, coefficient in form.items():
                rest = monomial.times(_Monomial(frozenset({(base, sp.Integer(-whole[monomial]))})))
                term: _Sum = {rest: coefficient}
                for _ in range(whole[monomial] - lowest):
                    term = _product(term, numerator)
                for _ in range(highest - whole[monomial]):
                    term = _product(term, denominator)
                _add(found, term)
            form = found
        return form

    def merged(self, form: _Sum) -> _Sum:
        """Collect monomials whose exponents are equal without looking so."""
        found: _Sum = {}
        for monomial, coefficient in form.items():
            _add(found, {_Monomial(monomial.powers, self.exponent(monomial)): coefficient})
        return found

    def exponent(self, monomial: _Monomial) -> sp.Expr:
        """Return the exponent, or one met before that is provably equal to it."""
        exponent = monomial.exponent
        if exponent not in self.exponents:
            near = _enclosure(exponent)
            for other in dict.fromkeys(self.exponents.values()):
                known = self.enclosures[other]
                if near is not None and known is not None and are_apart(near, known):
                    continue
                self.questions += 1
                if self.questions > _MAX_QUESTIONS:
                    raise _OutOfReach
                if is_zero_by_structure(other - exponent):
                    self.exponents[exponent] = other
                    break
            else:
                self.exponents[exponent] = exponent
                self.enclosures[exponent] = near
                if len(self.enclosures) > _MAX_EXPONENTS:
                    raise _OutOfReach
        return self.exponents[exponent]

    def independent(self, monomials: list[_Monomial]) -> bool:
        """Whether a theorem says that these are linearly independent over algebraic numbers."""
        if all(m.exponent == 0 for m in monomials):
            return all(g is sp.pi for m in monomials for g, _ in m.powers)
        if any(m.powers for m in monomials):
            return False
        exponents = [m.exponent for m in monomials]
        return all(measure(e) is not None for e in exponents) and all(
            self.are_different(a, b) for a, b in itertools.combinations(exponents, 2)
        )

    def are_different(self, a: sp.Expr, b: sp.Expr) -> bool:
        near, known = self.enclosures[a], self.enclosures[b]
        if near is not None and known is not None and are_apart(near, known):
            return True
        return algebraic_is_zero(a - b) is False

    def fraction(self, expr: sp.Expr) -> _Fraction:
        if expr not in self.known:
            self.known[expr] = self.compute(expr)
        return self.known[expr]

    def compute(self, expr: sp.Expr) -> _Fraction:
        if measure(expr) is not None:
            return {_ONE: expr}, {_ONE: sp.S.One}
        if expr.is_Add:
            return self.sum([self.fraction(term) for term in expr.args])
        if expr.is_Mul:
            top, bottom = _constant(1), _constant(1)
            for factor in expr.args:
                numerator, denominator = self.fraction(factor)
                top, bottom = _product(top, numerator), _product(bottom, denominator)
            return top, bottom
        if expr.is_Pow and expr.exp.is_Rational:
            return self.power(expr)
        if expr.is_Pow:
            return self.exponential(sp.expand(expr.exp * sp.log(expr.base)))
        if isinstance(expr, sp.exp) or expr is sp.E:
            return self.exponential(sp.S.One if expr is sp.E else sp.expand(expr.args[0]))
        if type(expr) in _EXPONENTIALS:
            return self.fraction(_EXPONENTIALS[type(expr)](*expr.args))
        if isinstance(expr, sp.log) and (terms := self.logarithm_of_product(expr.args[0])):
            return self.fraction(terms)
        return self.atom(expr), _constant(1)

    def sum(self, terms: list[_Fraction]) -> _Fraction:
        top, bottom = _constant(0), _constant(1)
        for numerator, denominator in terms:
            if denominator != bottom:
                numerator = _product(numerator, bottom)
                top, bottom = _product(top, denominator), _product(bottom, denominator)
            top = dict(top)
            _add(top, numerator)
        return top, bottom

    def power(self, expr: sp.Pow) -> _Fraction:
        base, exponent = expr.base, expr.exp
        numerator, denominator = self.fraction(base)
        if exponent.is_negative and not self.differs_from_zero(base, numerator):
            raise _OutOfReach
        if len(numerator) == 1 and len(denominator) == 1:
            ((monomial, coefficient),) = _product(numerator, _inverse(denominator)).items()
            if exponent.is_Integer or self.splits(monomial, coefficient):
                return {monomial.power(exponent): coefficient**exponent}, _constant(1)
        if not exponent.is_Integer:
            (generator,) = self.generator(base)
            return {generator.power(exponent): sp.S.One}, _constant(1)
        if abs(exponent) > _MAX_POWER:
            raise _OutOfReach
        if exponent.is_negative:
            numerator, denominator = denominator, numerator
        top, bottom = _constant(1), _constant(1)
        for _ in range(abs(int(exponent))):
            top, bottom = _product(top, numerator), _product(bottom, denominator)
        return top, bottom

    def differs_from_zero(self, base: sp.Expr, numerator: _Sum) -> bool:
        """Whether a denominator is not (identically) zero, so that it may be cleared."""
        if excludes_zero(base, _BITS):
            return True
        factors = {g for monomial in numerator for g, _ in monomial.powers}
        some = any(algebraic_is_zero(coefficient) is False for coefficient in numerator.values())
        if len(numerator) == 1:
            return some and all(g.is_Symbol or excludes_zero(g, _BITS) for g in factors)
        # A polynomial in symbols, or something that the assumptions on its symbols bound.
        polynomial = all(m.exponent == 0 for m in numerator) and all(g.is_Symbol for g in factors)
        return some and (polynomial or (bool(base.free_symbols) and base.is_zero is False))

    def splits(self, monomial: _Monomial, coefficient: sp.Expr) -> bool:
        """Whether the principal root of a product is the product of the principal roots."""
        if coefficient == 1 and monomial.exponent == 0 and len(monomial.powers) == 1:
            return all(power == 1 for _, power in monomial.powers)
        positive = (g.is_positive or enclosed_sign(g, _BITS) > 0 for g, _ in monomial.powers)
        return (
            enclosed_sign(coefficient, _BITS) > 0
            and bool(monomial.exponent.is_real)
            and all(positive)
        )

    def exponential(self, exponent: sp.Expr) -> _Fraction:
        """e to a sum: logarithms and rational multiples of i pi in it are no exponentials."""
        rest, factors = sp.S.Zero, sp.S.One
        for term in sp.Add.make_args(exponent):
            coefficient, other = term.as_coeff_Mul()
            if isinstance(other, sp.log):
                factors *= other.args[0] ** coefficient
            elif other == sp.I * sp.pi:
                factors *= sp.exp(term)
            else:
                rest += term
        monomial: _Sum = {_Monomial(exponent=rest): sp.S.One}
        if factors == 1:
            return monomial, _constant(1)
        numerator, denominator = self.fraction(factors)
        return _product(numerator, monomial), denominator

    def logarithm_of_product(self, x: sp.Expr) -> sp.Expr | None:
        """Return log x as a sum if x is one monomial of positive factors, and not a mere number."""
        if measure(x) is not None:
            return None
        numerator, denominator = self.fraction(x)
        if len(numerator) != 1 or len(denominator) != 1:
            return None
        ((monomial, coefficient),) = _product(numerator, _inverse(denominator)).items()
        alone = coefficient == 1 and monomial.exponent == 0 and len(monomial.powers) == 1
        if (alone and all(power == 1 for _, power in monomial.powers)) or not self.splits(
            monomial, coefficient
        ):
            return None
        logarithms = (power * sp.log(generator) for generator, power in monomial.powers)
        return sp.Add(monomial.exponent, sp.log(coefficient), *logarithms)

    def atom(self, expr: sp.Expr) -> _Sum:
        if isinstance(expr, sp.log) and enclosed_sign(expr.args[0], _BITS) > 0:
            x = expr.args[0]
            if x.is_Rational:
                return self.rational_logarithm(x)
            if algebraic_is_zero(x - 1):
                return {}
            if measure(x) is not None:
                return self.related(expr, x, self.logarithms_known(), proves_logarithms)
        if isinstance(expr, sp.atan | sp.asin) and measure(expr.args[0]) is not None:
            x = expr.args[0]
            if algebraic_is_zero(x):
                return {}
            leg = sp.S.One if isinstance(expr, sp.atan) else sp.sqrt(1 - x**2)
            angles = [(sp.pi, sp.S.NegativeOne), *self.angles]
            return self.related(expr, leg + sp.I * x, angles, proves_angles)
        return self.generator(expr)

    def generator(self, expr: sp.Expr) -> _Sum:
        """Return a generator, the known one if it is the same function of equal arguments."""
        for known in self.generators:
            if known == expr or _are_equal(known, expr):
                return {_generator(known): sp.S.One}
        self.generators.append(expr)
        return {_generator(expr): sp.S.One}

    def rational_logarithm(self, x: sp.Rational) -> _Sum:
        form: _Sum = {}
        for number, sign in ((int(x.p), 1), (int(x.q), -1)):
            for factor in self.integers:
                count = 0
                while number % factor == 0:
                    number, count = number // factor, count + 1
                if count:
                    _add(
                        form, {_generator(sp.log(factor, evaluate=False)): sp.Integer(sign * count)}
                    )
            if number > 1:
                # An integer that no logarithm of the expression itself holds, as in asinh(3/4).
                (logarithm,) = self.generator(sp.log(number, evaluate=False))
                _add(form, {logarithm: sp.Integer(sign)})
        return form

    def logarithms_known(self) -> list[tuple[sp.Expr, sp.Expr]]:
        integers = [sp.Integer(n) for n in self.integers]
        return [(sp.log(x, evaluate=False), x) for x in [*integers, *self.logarithms]]

    def related(
        self,
        expr: sp.Expr,
        number: sp.Expr,
        basis: list[tuple[sp.Expr, sp.Expr]],
        proves: Callable[[list[int], list[sp.Expr], list[sp.Expr]], bool],
    ) -> _Sum:
        """Return a logarithm or angle by those before it, or as a generator of its own."""
        if 0 < len(basis) <= MAX_BASIS:
            functions = [expr, *(f for f, _ in basis)]
            relation = integer_relation(functions)
            if (
                relation
                and relation[0]
                and proves(relation, functions, [number, *(x for _, x in basis)])
            ):
                return {
                    _generator(f): sp.Rational(-c, relation[0])
                    for f, c in zip(functions[1:], relation[1:], strict=True)
                    if c
                }
        if isinstance(expr, sp.log):
            self.logarithms.append(number)
        else:
            self.angles.append((expr, number))
        return {_generator(expr): sp.S.One}


def _enclosure(expr: sp.Expr) -> Any:
    try:
        return enclosure(expr, _BITS)
    except NoEnclosure:
        return None


def _are_equal(a: sp.Expr, b: sp.Expr) -> bool:
    """Whether two generators are provably equal: sums, or one function of equal arguments."""
    if type(a) is not type(b) or len(a.args) != len(b.args) or isinstance(a, Average):
        return False
    if a.is_Add:
        return is_zero_by_structure(a - b) is True
    pairs = zip(a.args, b.args, strict=True)
    return bool(a.args) and all(is_zero_by_structure(x - y) for x, y in pairs)


def _generator(expr: sp.Expr) -> _Monomial:
    return _Monomial(frozenset({(expr, sp.S.One)}))


def _add(form: _Sum, other: _Sum) -> None:
    """Add the second sum to the first, in place."""
    for monomial, coefficient in other.items():
        form[monomial] = form.get(monomial, sp.S.Zero) + coefficient


def _constant(value: int) -> _Sum:
    return {_ONE: sp.Integer(value)} if value else {}


def _inverse(form: _Sum) -> _Sum:
    ((monomial, coefficient),) = form.items()
    return {monomial.power(sp.S.NegativeOne): 1 / coefficient}


def _product(a: _Sum, b: _Sum) -> _Sum:
    if len(a) * len(b) > _MAX_TERMS:
        raise _OutOfReach
    found: _Sum = {}
    for (m, c), (n, d) in itertools.product(a.items(), b.items()):
        monomial = m.times(n)
        found[monomial] = found.get(monomial, sp.S.Zero) + c * d
    return found
