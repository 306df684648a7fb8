r"""Whether an exact number is zero: a proof of zero, a proof of the contrary, or an error.

Nothing is guessed. In this order:

1. An algebraic number (nested roots, trigonometric values at rational multiples of π) is a quotient
   :math:`\alpha/\beta` of algebraic integers of a field of degree at most D. Going through the
   expression bounds all conjugates of α by u and of β by l, and the product of those of a non-zero
   α is a non-zero integer, so that :math:`\alpha/\beta = 0` or :math:`|\alpha/\beta| \ge
   1/(l\,u^{D-1})`, which an interval decides. No minimal polynomial is formed and nothing is
   factored: the cost is known beforehand (Burnikel, Fleischer, Mehlhorn, Schirra, Algorithmica 27
   (2000) 87-99; for quotients Burnikel, Funke, Mehlhorn, Schirra, Schmitt, Algorithmica 55 (2009)).
2. An interval that excludes zero proves that a constant is not zero (:mod:`.constant_enclosures`),
   at rising precision up to `HIGHEST_DIGITS` digits.
3. The constant becomes a quotient of sums :math:`\sum_j A_j\,\pi^{r_j} e^{a_j}\prod_k g_k^{s_{jk}}`
   with algebraic A and generators g that no rule takes apart: logarithms, angles, values of erf,
   symbols, expectations. If every A vanishes it is zero; that it is not follows if only powers of π
   occur (Lindemann 1882) or only exponentials of distinct algebraic numbers (Weierstrass 1885).
   Equal generators are identified first: by equal arguments, logarithms of rationals through a
   coprime base, others and angles through integer relations that PSLQ proposes and a product of
   algebraic numbers proves, as Machin's 4 atan(1/5) - atan(1/239) = π/4.
4. Constants with a part that has no interval, expectations above all, are enclosed by balls if
   python-flint is installed; where there is no ball they are taken as non-zero if evaluations at
   two precisions agree to twelve digits. Digits never decide that such a constant is zero.

Anything else is an :class:`~giantstep.errors.UndecidedError` that lists what was tried.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import mpmath
import sympy as sp

from ...errors import GiantstepError, MissingDependencyError, ParameterError, UndecidedError
from ...pages import shorten
from ..exact.constant_enclosures import (
    NoEnclosure,
    are_apart,
    enclosed_sign,
    enclosure,
    excludes_zero,
)
from ..exact.fields import coprime_base, square_class
from ..expressions.averages import Average
from ..expressions.functions import HALF, relu, sigmoid
from .enclosures import enclosed_value

MAX_BITS = 30_000
_FIRST_BITS, _LAST_BITS_WITHOUT_PROOF = 128, 4096
_LARGEST_CONDUCTOR = 10**6
_LARGEST_DEGREE = 10**9
_TRIGONOMETRIC = (sp.sin, sp.cos, sp.tan)


@dataclass(frozen=True)
class Measure:
    r"""Bounds of a quotient of algebraic integers and of the field that holds it.

    Attributes
    ----------
    numerator, denominator : float
        log2 u and log2 l: of the largest conjugate of each.
    radicals : frozenset of (Expr, int)
        Roots that were adjoined: radicand and order. The degree is at most the product of orders;
        square roots of positive rationals count once for each independent class modulo squares.
    conductor : int
        N of the cyclotomic field that was adjoined, of degree φ(N).
    is_real : bool
        Whether its real subfield, of degree φ(N)/2, is enough.
    """

    numerator: float
    denominator: float
    radicals: frozenset[tuple[sp.Expr, int]] = frozenset()
    conductor: int = 1
    is_real: bool = True

    @property
    def degree(self) -> int:
        """Bound D of the degree of the field."""
        # Larger conductors are not factored: N bounds φ(N), and the proof is out of reach anyway.
        n = self.conductor
        cyclotomic = int(sp.totient(n)) if n <= _LARGEST_CONDUCTOR else n
        if self.is_real and n > 2:
            cyclotomic = (cyclotomic + 1) // 2
        square = [r for r, order in self.radicals if order == 2 and r.is_Rational and r > 0]
        others = [order for r, order in self.radicals if order != 2 or r not in square]
        return cyclotomic * math.prod(others) * 2 ** _square_classes(square)

    @property
    def separation_bits(self) -> float:
        """A number that is not zero is at least 2**-separation_bits."""
        if self.degree > _LARGEST_DEGREE:
            return math.inf
        return self.denominator + max(self.numerator, 0.0) * (self.degree - 1)


@functools.lru_cache(maxsize=4096)
def measure(expr: sp.Expr) -> Measure | None:
    """Return bounds of an algebraic number, or None if the expression is not known to be one.

    Examples
    --------
    >>> measure(sp.sqrt(2) + sp.sqrt(3)).degree, measure(sp.cos(sp.pi / 7)).degree
    (4, 3)
    >>> measure(sp.pi) is None
    True
    """
    if expr.is_Rational:
        return Measure(_log2(abs(expr.p)), _log2(expr.q))
    if expr is sp.I:
        return Measure(0.0, 0.0, conductor=4, is_real=False)
    if expr.is_Add:
        return _sum(expr)
    if expr.is_Mul:
        parts = [measure(factor) for factor in expr.args]
        result = [part for part in parts if part is not None]
        if len(result) < len(parts):
            return None
        return _joined(
            result, sum(part.numerator for part in result), sum(part.denominator for part in result)
        )
    if expr.is_Pow and expr.exp.is_Rational:
        root, times = int(expr.exp.q), int(expr.exp.p)
        inside = measure(expr.base)
        if inside is None:
            return None
        above, below = inside.numerator, inside.denominator
        radicals = inside.radicals
        if root > 1:
            # (α/β)^(1/k) is (α β^(k-1))^(1/k) / β, and also α / (α^(k-1) β)^(1/k).
            if above >= below:
                above = (above + (root - 1) * below) / root
            else:
                below = ((root - 1) * above + below) / root
            radicals = radicals | {(expr.base, root)}
        if times < 0:
            above, below = below, above
        return Measure(
            abs(times) * above, abs(times) * below, radicals, inside.conductor, inside.is_real
        )
    turn = _rational_turn(expr)
    if turn is not None:
        return turn
    return None


def algebraic_is_zero(expr: sp.Expr) -> bool | None:
    """Decide whether an algebraic number is zero.

    `expr`: a constant; principal roots. Returns None if it is not known to be algebraic, if the
    proof would need more than `MAX_BITS` bits, or if it holds a division by zero.

    Examples
    --------
    >>> algebraic_is_zero(sp.sqrt(2) + sp.sqrt(3) - sp.sqrt(5 + 2 * sp.sqrt(6)))
    True
    >>> algebraic_is_zero(sp.cos(sp.pi / 7) - sp.cos(2 * sp.pi / 7) + sp.cos(3 * sp.pi / 7))
    False
    """
    if expr.is_Rational:
        return bool(expr.is_zero)
    bounds = measure(expr)
    if bounds is None:
        return None
    needed = bounds.separation_bits + 1
    # Some bits beyond the bound pay for the growth of the intervals themselves. Where the proof of
    # zero is out of reach, a digit different from zero may still turn up.
    enough = math.ceil(needed) + 2 * _FIRST_BITS if needed <= MAX_BITS else 0
    last = 2 * enough + 4 * _FIRST_BITS if enough else _LAST_BITS_WITHOUT_PROOF
    bits = _FIRST_BITS
    while bits < 2 * last:
        try:
            value = enclosure(expr, bits)
        except NoEnclosure:
            value = None  # A radicand may touch zero at this precision only.
        if value is not None:
            parts = (value.real, value.imag)
            if any(bool(part > 0) or bool(part < 0) for part in parts):
                return False
            if needed <= MAX_BITS:
                smallest = value.ctx.mpf(2) ** -math.ceil(needed)
                if all(bool(abs(part) < smallest) for part in parts):
                    return True
        bits = enough if bits < enough < 2 * bits else 2 * bits
    return None


def _sum(expr: sp.Expr) -> Measure | None:
    # Rational coefficients are brought to one denominator: the bound does not grow with the
    # number of terms.
    split = [term.as_coeff_Mul() for term in expr.args]
    common = math.lcm(*(int(c.q) for c, _ in split))
    parts = []
    for coefficient, rest in split:
        part = measure(rest)
        if part is None:
            return None
        parts.append((_log2(abs(int(coefficient * common))) + part.numerator, part))
    below = sum(part.denominator for _, part in parts)
    largest = max(top + below - part.denominator for top, part in parts)
    above = largest + math.log2(
        sum(2.0 ** (top + below - part.denominator - largest) for top, part in parts)
    )
    # One unit in the last place of a double does not spoil a bound: it is rounded up here.
    return _joined([part for _, part in parts], above + 1e-6, below + _log2(common))


def _rational_turn(expr: sp.Expr) -> Measure | None:
    """Sines, cosines and tangents of a rational times pi, and roots of unity exp(i pi r)."""
    if isinstance(expr, sp.exp):
        ratio = expr.args[0] / (sp.pi * sp.I)
        if not ratio.is_Rational:
            return None
        return Measure(0.0, 0.0, conductor=_order(ratio), is_real=False)
    if not isinstance(expr, _TRIGONOMETRIC):
        return None
    ratio = expr.args[0] / sp.pi
    if not ratio.is_Rational:
        return None
    # 2 cos(pi r) = ζ + 1/ζ with ζ = exp(i pi r), and sin(pi r) = cos(pi (1/2 - r)).
    orders = {sp.cos: [_order(ratio)], sp.sin: [_order(sp.S.Half - ratio)]}
    both = orders[sp.cos] + orders[sp.sin]
    return Measure(1.0, 1.0, conductor=math.lcm(*orders.get(type(expr), both)))


def _order(ratio: sp.Rational) -> int:
    """Return the order of the root of unity exp(i pi r)."""
    return int((ratio / 2).q)


def _joined(parts: list[Measure], above: float, below: float) -> Measure:
    radicals = frozenset[tuple[sp.Expr, int]]().union(*(part.radicals for part in parts))
    conductor = math.lcm(*(part.conductor for part in parts))
    return Measure(above, below, radicals, conductor, all(part.is_real for part in parts))


def _square_classes(numbers: Iterable[sp.Rational]) -> int:
    """Return the rank of positive rationals modulo squares, or a little more.

    sqrt(6) lies in the field of sqrt(2) and sqrt(3): the roots generate a field of degree 2**rank.
    """
    integers = [int(number.p) * int(number.q) for number in numbers]
    base = coprime_base(integers)
    pivots: list[int] = []
    for n in integers:
        vector = square_class(n, base)
        for pivot in pivots:
            vector = min(vector, vector ^ pivot)
        if vector:
            pivots.append(vector)
    return len(pivots)


def _log2(number: int) -> float:
    return math.log2(number) if number else 0.0


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
    result: list[int] | None = ctx.pslq(
        values, tol=ctx.mpf(10) ** (8 - _DIGITS), maxcoeff=_MAX_COEFFICIENT, maxsteps=10_000
    )
    return result


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
        remaining = frozenset((g, power) for g, power in powers.items() if power != 0)
        return _Monomial(remaining, self.exponent + other.exponent)

    def power(self, r: sp.Rational) -> _Monomial:
        return _Monomial(
            frozenset((g, p * r) for g, p in self.powers), sp.expand(self.exponent * r)
        )


_ONE = _Monomial()
_Sum = dict[_Monomial, sp.Expr]
_Fraction = tuple[_Sum, _Sum]


def is_zero_by_structure(expr: sp.Expr) -> bool | None:
    """Decide by the normal form whether a constant, or an expression in symbols, is zero.

    `expr`: exact. Symbols and unknown functions count as independent. The result: True is a proof
    that it is (identically) zero, False a proof that it is not; None: neither.

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
            result: _Sum = {}
            for monomial, coefficient in form.items():
                rest = monomial.times(_Monomial(frozenset({(base, sp.Integer(-whole[monomial]))})))
                term: _Sum = {rest: coefficient}
                for _ in range(whole[monomial] - lowest):
                    term = _expanded_product(term, numerator)
                for _ in range(highest - whole[monomial]):
                    term = _expanded_product(term, denominator)
                _add(result, term)
            form = result
        return form

    def merged(self, form: _Sum) -> _Sum:
        """Collect monomials whose exponents are equal without looking so."""
        result: _Sum = {}
        for monomial, coefficient in form.items():
            _add(result, {_Monomial(monomial.powers, self.exponent(monomial)): coefficient})
        return result

    def exponent(self, monomial: _Monomial) -> sp.Expr:
        """Return the exponent, or one met before that is provably equal to it."""
        exponent = monomial.exponent
        if exponent not in self.exponents:
            enclosed = _enclosure(exponent)
            for other in dict.fromkeys(self.exponents.values()):
                known = self.enclosures[other]
                if enclosed is not None and known is not None and are_apart(enclosed, known):
                    continue
                self.questions += 1
                if self.questions > _MAX_QUESTIONS:
                    raise _OutOfReach
                if is_zero_by_structure(other - exponent):
                    self.exponents[exponent] = other
                    break
            else:
                self.exponents[exponent] = exponent
                self.enclosures[exponent] = enclosed
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
        enclosed, known = self.enclosures[a], self.enclosures[b]
        if enclosed is not None and known is not None and are_apart(enclosed, known):
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
                top, bottom = (
                    _expanded_product(top, numerator),
                    _expanded_product(bottom, denominator),
                )
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
                numerator = _expanded_product(numerator, bottom)
                top, bottom = (
                    _expanded_product(top, denominator),
                    _expanded_product(bottom, denominator),
                )
            top = dict(top)
            _add(top, numerator)
        return top, bottom

    def power(self, expr: sp.Pow) -> _Fraction:
        base, exponent = expr.base, expr.exp
        numerator, denominator = self.fraction(base)
        if exponent.is_negative and not self.differs_from_zero(base, numerator):
            raise _OutOfReach
        if len(numerator) == 1 and len(denominator) == 1:
            ((monomial, coefficient),) = _expanded_product(numerator, _inverse(denominator)).items()
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
            top, bottom = _expanded_product(top, numerator), _expanded_product(bottom, denominator)
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
        return _expanded_product(numerator, monomial), denominator

    def logarithm_of_product(self, x: sp.Expr) -> sp.Expr | None:
        """Return log x as a sum if x is one monomial of positive factors, and not a mere number."""
        if measure(x) is not None:
            return None
        numerator, denominator = self.fraction(x)
        if len(numerator) != 1 or len(denominator) != 1:
            return None
        ((monomial, coefficient),) = _expanded_product(numerator, _inverse(denominator)).items()
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
                count = sp.multiplicity(factor, number)
                number //= factor**count
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


def _expanded_product(a: _Sum, b: _Sum) -> _Sum:
    if len(a) * len(b) > _MAX_TERMS:
        raise _OutOfReach
    result: _Sum = {}
    for (m, c), (n, d) in itertools.product(a.items(), b.items()):
        monomial = m.times(n)
        result[monomial] = result.get(monomial, sp.S.Zero) + c * d
    return result


HIGHEST_DIGITS = 1200
_ENCLOSED_DIGITS = (30, 120, HIGHEST_DIGITS)
_BITS_PER_DIGIT = 3.33
_BALL_DIGITS = (30, 80)
_QUADRATURE_DIGITS = (30, 60, 90)
_AGREEING_DIGITS = 12


def is_exactly_zero(value: sp.Expr, what: str) -> bool:
    """Decide whether an exact number is zero; never guesses.

    Parameters
    ----------
    value : Expr
        Exact number, possibly with 𝔼 nodes. With free symbols, the question is whether it is zero
        for all their admitted values; the answer no means for none.
    what : str
        Name of the quantity for the message.

    Returns
    -------
    bool

    Raises
    ------
    UndecidedError
        If neither a proof of zero nor a digit different from zero is found; the message lists what
        was tried.
    ParameterError
        If `value` is a floating-point number or holds one, or is infinite or undefined.

    Notes
    -----
    The answer False for a value that holds an 𝔼 node, or a function without an enclosure, rests on
    quadrature at two precisions that agree if there is no ball for it, as without python-flint;
    every other answer is proven. Work is bounded by sizes (bits, terms, degrees), not by a clock.

    Examples
    --------
    >>> from sympy import Rational, cos, pi, sqrt
    >>> is_exactly_zero(cos(pi / 7) - cos(2 * pi / 7) + cos(3 * pi / 7) - Rational(1, 2), "c")
    True
    >>> is_exactly_zero(sp.exp(pi * sqrt(163)) - 262537412640768744, "Ramanujan's constant")
    False
    """
    value = sp.sympify(value, strict=True)
    if value.has(sp.Float, sp.nan, sp.zoo, sp.oo, -sp.oo):
        raise ParameterError(
            f"whether {what} is zero is asked of {_shown(value)}, which is not an exact finite "
            "number; give rationals instead of decimals, and a value without infinities"
        )
    tried: list[str] = []
    decided = _decide(_without_signs(value), tried)
    if decided is None:
        steps = "".join(f"\n  - {step}" for step in tried)
        raise UndecidedError(
            f"whether {what} is zero cannot be decided: {_shown(value)}; tried:{steps}"
        )
    return decided


def _decide(value: sp.Expr, tried: list[str]) -> bool | None:
    if value.is_Rational:
        return bool(value.is_zero)
    if value.is_Mul:
        # A product is zero if a factor is; each factor is asked by itself.
        decisions = []
        for factor in value.args:
            base, exponent = factor.as_base_exp()
            decisions.append(_decide(base, tried))
            if decisions[-1] and not exponent.is_positive:
                tried.append(f"product: it divides by {_shown(base)}, which is zero")
                return None
        if any(decisions):
            return True
        return None if None in decisions else False
    if value.free_symbols:
        return _in_symbols(value, tried)
    bounds = measure(value)
    if bounds is not None:
        decided = algebraic_is_zero(value)
        if decided is None:
            tried.append(
                f"algebraic number: a proof of zero would take {bounds.separation_bits:.3g} bits, "
                f"more than {MAX_BITS}, or it divides by zero"
            )
        return decided
    decided = is_zero_by_structure(value)
    if decided is not None:
        return decided
    tried.append(
        "normal form in pi, exponentials, logarithms, angles and values of other functions: "
        "not zero as far as it sees, and no theorem says that it is not"
    )
    for digits in _ENCLOSED_DIGITS:
        try:
            result = enclosure(value, int(digits * _BITS_PER_DIGIT))
        except NoEnclosure as error:
            tried.append(f"proven interval: {error}")
            break
        if any(bool(part > 0) or bool(part < 0) for part in (result.real, result.imag)):
            return False
    else:
        tried.append(f"proven interval: it holds zero at {HIGHEST_DIGITS} digits")
        return None
    excluded = _ball_excludes_zero(value, tried)
    if excluded is None:
        excluded = _digits_agree(value, tried)
    return False if excluded else None


def _in_symbols(value: sp.Expr, tried: list[str]) -> bool | None:
    names = ", ".join(sorted(str(symbol) for symbol in value.free_symbols))
    decided = is_zero_by_structure(value)
    if decided is not None:
        return decided
    if value.is_zero is False:
        return False
    tried.append(f"identity in {names}: no rule shows that it holds for all their values")
    tried.append(f"assumptions on {names}: they do not exclude zero; substitute numbers")
    return None


def _ball_excludes_zero(value: sp.Expr, tried: list[str]) -> bool | None:
    """Whether a ball excludes zero; None if there is no ball.

    Where balls hold zero at all precisions, fewer digits from quadrature can show nothing else.
    """
    for digits in _BALL_DIGITS:
        try:
            if not enclosed_value(value, digits=digits).contains_zero:
                return True
        except MissingDependencyError:
            tried.append("proven balls: they need the package python-flint")
            return None
        except GiantstepError as error:
            tried.append(f"proven balls: {_first_line(error)}")
            return None
    tried.append(f"proven balls: they hold zero at {_BALL_DIGITS[-1]} digits")
    return False


def _digits_agree(value: sp.Expr, tried: list[str]) -> bool:
    """Whether two evaluations at different precisions show the same non-zero number."""
    basis = "quadrature" if value.has(Average) else "evaluation"
    previous = None
    for digits in _QUADRATURE_DIGITS:
        try:
            # One quadrature for each node: evalf of the whole would repeat them while it cancels.
            nodes = {node: node.evalf(digits) for node in value.atoms(Average)}
            result = value.xreplace(nodes).evalf(digits)
        except (GiantstepError, ArithmeticError) as error:
            tried.append(f"{basis} to {digits} digits: {_first_line(error)}")
            return False
        if not result.is_number or result.has(Average) or not result.is_finite:
            tried.append(f"{basis} to {digits} digits: it has no value")
            return False
        if previous is not None and result != 0:
            close = abs(result - previous) < abs(result) * sp.Float(10) ** -_AGREEING_DIGITS
            if close and abs(result) > sp.Float(10) ** (_AGREEING_DIGITS - digits):
                return True
        previous = result
    tried.append(f"{basis} to {_QUADRATURE_DIGITS[-1]} digits: no digit stays different from zero")
    return False


def _without_signs(value: sp.Expr) -> sp.Expr:
    """Replace |c|, sign(c), relu(c) and steps of a constant by what its proven sign makes them."""
    rules = {
        sp.Abs: lambda x, s: s * x,
        sp.sign: lambda x, s: s,
        relu: lambda x, s: (1 + s) * x / 2,
        sp.Heaviside: lambda x, s: (1 + s) / 2,
    }

    def is_known(node: sp.Basic) -> bool:
        return type(node) in rules and node.args[-1] in (node.args[0], HALF)

    def resolved(node: sp.Expr) -> sp.Expr:
        x = node.args[0]
        if x.free_symbols or x.is_extended_real is not True:
            return node
        if is_zero_by_structure(x):
            return rules[type(node)](x, sp.S.Zero)
        result = next(
            (s for d in _ENCLOSED_DIGITS if (s := enclosed_sign(x, int(d * _BITS_PER_DIGIT)))), 0
        )
        return rules[type(node)](x, sp.Integer(result)) if result else node

    return value.replace(is_known, resolved)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:120]


def _shown(value: sp.Expr) -> str:
    try:
        text = str(value)
    except ValueError:  # Python does not write integers of more than some thousand digits.
        return "a value with very long integers"
    return shorten(text, 80)
