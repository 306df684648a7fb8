r"""Sequences of Hermite moments as functions of the order k, and their algebra.

The moments :math:`\mu_k = \mathbb{E}[f(z)\,\mathrm{He}_k(z)]`, probabilists' convention, are the
derivatives at 0 of :math:`S(\xi) = \mathbb{E} f(z + \xi)`. Where S or S' is a Gaussian in ξ, which
covers every function of the table, they are values of one Hermite polynomial of variance v,

.. math:: h_n = \mathrm{He}^{[v]}_n(A), \qquad h_{n+1} = A h_n - v n h_{n-1}, \qquad h_n = 0
    \text{ for } n < 0,

which is the power A^n for v = 0. A sequence is a sum over such bases of

.. math:: C \sum_j \big(c_j(k) \cos(k\theta + \varphi) + s_j(k) \sin(k\theta + \varphi)\big)
    \, h_{k-j}

with polynomials c_j, s_j in k, plus finitely many single values. Only quarter turns θ = π/2 occur,
except for v = 0: there the real and the imaginary part of :math:`(l + ia)^{k-j} e^{i\varphi}`
stand for cosine and sine times h_{k-j}; no modulus that may be zero is divided by. Multiplication
of f by z, :math:`\mu_k(z f) = \mu_{k+1}(f) + k \mu_{k-1}(f)`, does not lead out of this class, and
the recurrence of h_n leaves at most two neighbouring shifts j of each base, so that sums combine.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import sympy as sp

from .hermite_polynomials import hermite_polynomial, pairings

Polynomial = tuple[sp.Expr, ...]
"""Coefficients of 1, k, k², … without trailing zeros; the zero polynomial is empty."""

Weight = tuple[Polynomial, Polynomial]
"""The polynomials before cos(kθ + φ) and sin(kθ + φ)."""

_ZERO_WEIGHT: Weight = ((), ())


def normal(value: sp.Expr) -> sp.Expr:
    """Return an expression in a form in which rational functions of its atoms compare equal."""
    if value.is_Rational or value.is_Symbol:
        return value
    return sp.cancel(value) if value.free_symbols else sp.radsimp(sp.expand(value))


def _polynomial(coefficients: list[sp.Expr]) -> Polynomial:
    found = [normal(c) for c in coefficients]
    while found and found[-1] == 0:
        found.pop()
    return tuple(found)


def _sum(p: Polynomial, q: Polynomial) -> Polynomial:
    if not p or not q:
        return p or q
    longer, shorter = (p, q) if len(p) >= len(q) else (q, p)
    return _polynomial(
        [c + d for c, d in zip(longer, shorter, strict=False)] + list(longer[len(shorter) :])
    )


def _scaled(p: Polynomial, factor: sp.Expr) -> Polynomial:
    if factor == 1:
        return p
    return () if factor == 0 else _polynomial([factor * c for c in p])


def _shifted(p: Polynomial, by: int) -> Polynomial:
    """Return p(k + by)."""
    return _polynomial(
        [
            sp.Add(*(c * math.comb(i, n) * by ** (i - n) for i, c in enumerate(p) if i >= n))
            for n in range(len(p))
        ]
    )


def _times_linear(p: Polynomial, root: int) -> Polynomial:
    """Return (k - root) p(k)."""
    if not p:
        return p
    padded = (sp.S.Zero, *p, sp.S.Zero)
    return _polynomial([padded[i] - root * padded[i + 1] for i in range(len(p) + 1)])


def divided_by_linear(p: Polynomial, root: sp.Expr | int) -> Polynomial | None:
    """Return p(k)/(k - root), or None if that is not seen to be a polynomial."""
    quotient: list[sp.Expr] = []
    remainder: sp.Expr = sp.S.Zero
    for c in reversed(p):
        quotient.append(remainder)
        remainder = normal(c + root * remainder)
    return _polynomial(quotient[:0:-1]) if remainder == 0 else None


def polynomial_value(p: Polynomial, k: sp.Expr | int) -> sp.Expr:
    """Return p(k) by Horner's rule."""
    value: sp.Expr = p[-1] if p else sp.S.Zero
    for c in reversed(p[:-1]):
        value = value * k + c
    return value


@dataclass(frozen=True)
class Base:
    r"""The numbers :math:`h_n = \mathrm{He}^{[v]}_n(A)` and the oscillation that goes with them.

    Attributes
    ----------
    argument, variance : Expr
        A and v, in normal form.
    frequency : tuple of Expr, or None
        (l, a): (0, 1) for quarter turns, else the base of the powers (l + ia)^n, whose modulus is
        A; None without oscillation.
    phase : Expr
        φ.
    scale : Expr
        A square root of v with the sign that makes ``argument/scale`` simple; it does not
        distinguish bases.
    """

    argument: sp.Expr
    variance: sp.Expr
    frequency: tuple[sp.Expr, sp.Expr] | None = None
    phase: sp.Expr = sp.S.Zero
    scale: sp.Expr = field(default=sp.S.One, compare=False)

    @property
    def turns(self) -> bool:
        """Whether the oscillation is one of quarter turns with k."""
        return self.frequency is not None and self.frequency[0] == 0

    @property
    def is_complex_power(self) -> bool:
        """Whether the oscillation is that of a power (l + ia)^(k - j)."""
        return self.frequency is not None and self.frequency[0] != 0

    @property
    def angle(self) -> sp.Expr:
        """The angle by which the oscillation turns with each order."""
        if self.frequency is None:
            return sp.S.Zero
        real, imaginary = self.frequency
        if real == 0:
            return sp.pi / 2
        angle = sp.atan2(imaginary, real)
        if self.argument.is_nonzero:
            return angle
        # The power of zero has no angle; any serves but that of SymPy, which is nan.
        return sp.Piecewise((sp.S.Zero, sp.Eq(self.argument**2, 0)), (angle, True))

    @property
    def splits(self) -> bool:
        """Whether even and odd orders behave differently: every second factor vanishes."""
        if self.frequency is None:
            return bool(self.argument == 0 and self.variance != 0)
        return bool(self.turns and self.phase == 0)

    def value(self, n: int) -> sp.Expr:
        """Return h_n."""
        if n < 0:
            return sp.S.Zero
        if self.argument == 0:
            if n % 2:
                return sp.S.Zero
            half, v = n // 2, self.variance
            paired = math.prod(range(n - 1, 0, -2))
            if v.is_Rational:
                # Powers of Python's integers take a tenth of the time of SymPy's.
                return sp.Rational(paired * (-v.p) ** half, v.q**half)
            return paired * (-v) ** half
        if self.argument.is_Rational and self.variance.is_Rational:
            return _rational_value(self.argument, self.variance, n)
        return hermite_polynomial(n, self.argument, self.variance)

    def waves(self, k: int, n: int) -> tuple[sp.Expr, sp.Expr]:
        """Return h_n times cosine and sine of order k, exactly; without oscillation h_n and 0."""
        if n < 0:
            return sp.S.Zero, sp.S.Zero
        if self.frequency is None:
            return self.value(n), sp.S.Zero
        if self.turns:
            number, turned = self.value(n), self.phase + (k % 4) * sp.pi / 2
            return sp.cos(turned) * number, sp.sin(turned) * number
        x, y = _complex_power(*self.frequency, n)
        cosine, sine = sp.cos(self.phase), sp.sin(self.phase)
        return x * cosine - y * sine, x * sine + y * cosine


@functools.lru_cache(maxsize=64)
def _recurrence(a: sp.Rational, v: sp.Rational) -> list[Fraction]:
    """The values h_0, h_1, … of a rational base as far as they have been asked for."""
    return [Fraction(1), Fraction(a.p, a.q)]


def _rational_value(a: sp.Rational, v: sp.Rational, n: int) -> sp.Rational:
    known = _recurrence(a, v)
    first, slope = known[1], Fraction(v.p, v.q)
    while len(known) <= n:
        known.append(first * known[-1] - slope * (len(known) - 1) * known[-2])
    return sp.Rational(known[n].numerator, known[n].denominator)


def _complex_power(x: sp.Expr, y: sp.Expr, k: int) -> tuple[sp.Expr, sp.Expr]:
    """Return the real and the imaginary part of (x + iy)^k."""
    if x.is_Rational and y.is_Rational:
        # Python's integers, by repeated squaring, over one common denominator.
        q = math.lcm(x.q, y.q)
        result, power = (1, 0), (int(x * q), int(y * q))
        for bit in reversed(f"{k:b}"):
            if bit == "1":
                result = _complex_product(result, power)
            power = _complex_product(power, power)
        return sp.Rational(result[0], q**k), sp.Rational(result[1], q**k)
    parts: list[list[sp.Expr]] = [[], []]
    for j in range(k + 1):
        parts[j % 2].append(math.comb(k, j) * x ** (k - j) * y**j * (-1) ** (j // 2))
    return sp.Add(*parts[0]), sp.Add(*parts[1])


def _complex_product(u: tuple[int, int], w: tuple[int, int]) -> tuple[int, int]:
    return u[0] * w[0] - u[1] * w[1], u[0] * w[1] + u[1] * w[0]


Terms = dict[int, Weight]
"""Weights by the shift j."""

Single = dict[int, dict[sp.Expr, sp.Expr]]
"""Values at single orders k, as sums of constants with factors: {k: {constant: factor}}."""


class Sequence:
    r"""A sequence of moments :math:`\mu_0, \mu_1, \dots` in closed form; immutable by convention.

    Attributes
    ----------
    groups : mapping of (Base, Expr) to Terms
        The weights of each base with its constant factor C.
    single : Single
        Values that are added at single orders.

    Examples
    --------
    The moments of exp(z) and of z*exp(z), sqrt(e) and (k + 1)*sqrt(e):

    >>> plain = Sequence({(Base(sp.S.One, sp.S.Zero), sp.exp(sp.Rational(1, 2))):
    ...     {0: ((sp.S.One,), ())}}, {})
    >>> plain.value(3), plain.times_z().value(3)
    (exp(1/2), 4*exp(1/2))
    """

    def __init__(self, groups: Mapping[tuple[Base, sp.Expr], Terms], single: Single) -> None:
        self.groups = {key: terms for key, terms in groups.items() if terms}
        self.single = {k: parts for k, parts in single.items() if parts}

    @classmethod
    def of_power(cls, n: int) -> Sequence:
        """Return the moments of z^n: n!/(2^j j!) at k = n - 2j."""
        values = {n - 2 * j: c * math.factorial(n - 2 * j) for j, c in enumerate(pairings(n))}
        return cls({}, {k: {sp.S.One: sp.Integer(value)} for k, value in values.items()})

    def __add__(self, other: Sequence) -> Sequence:
        if not self.groups and not self.single:
            return other
        groups = dict(self.groups)
        single = {k: dict(parts) for k, parts in self.single.items()}
        for key, terms in other.groups.items():
            mine = dict(groups.get(key, {}))
            for j, weight in terms.items():
                _add_weight(mine, j, weight)
            groups[key] = mine
        for k, parts in other.single.items():
            for constant, value in parts.items():
                _add_single(single, k, constant, value)
        return Sequence(groups, single)

    def scaled(self, factor: sp.Expr) -> Sequence:
        """Return the moments of factor*f."""
        if factor == 1:
            return self
        groups = {
            key: {j: (_scaled(c, factor), _scaled(s, factor)) for j, (c, s) in terms.items()}
            for key, terms in self.groups.items()
        }
        single: Single = {}
        for k, parts in self.single.items():
            for constant, value in parts.items():
                _add_single(single, k, constant, factor * value)
        return Sequence(groups, single)

    def times_z(self) -> Sequence:
        """Return the moments of z*f."""
        groups: dict[tuple[Base, sp.Expr], Terms] = {}
        single: Single = {}
        for (base, constant), terms in self.groups.items():
            turn = (sp.S.Zero, sp.S.One) if base.turns else (sp.S.One, sp.S.Zero)
            found: Terms = {}
            for j, (c, s) in terms.items():
                up = _turned((_shifted(c, 1), _shifted(s, 1)), turn[0], turn[1])
                down = _turned((_shifted(c, -1), _shifted(s, -1)), turn[0], -turn[1])
                _add_weight(found, j - 1, up)
                _add_weight(found, j + 1, (_times_linear(down[0], 0), _times_linear(down[1], 0)))
            groups[base, constant] = found
        for k, parts in self.single.items():
            for constant, value in parts.items():
                if k:
                    _add_single(single, k - 1, constant, value)
                _add_single(single, k + 1, constant, (k + 1) * value)
        return Sequence(groups, single).reduced()

    def times_polynomial(self, coefficients: Mapping[int, sp.Expr]) -> Sequence:
        """Return the moments of P(z) f, P given as {power: coefficient}."""
        highest = max(coefficients)
        found = self.scaled(coefficients[highest])
        for n in range(highest - 1, -1, -1):
            found = found.times_z()
            if n in coefficients:
                found += self.scaled(coefficients[n])
        return found

    def reduced(self) -> Sequence:
        """Return the same sequence with at most two neighbouring shifts in every group."""
        single = {k: dict(parts) for k, parts in self.single.items()}
        groups = {}
        for (base, constant), terms in self.groups.items():
            mine = dict(terms)
            _drop_high_shifts(base, constant, mine, single)
            _lift(base, constant, mine, single)
            groups[base, constant] = mine
        return Sequence(groups, single)

    def value(self, k: int) -> sp.Expr:
        """Return the moment of order k >= 0."""
        totals: dict[sp.Expr, list[sp.Expr]] = {}
        for (base, constant), terms in self.groups.items():
            total = sp.Add(*(_weighted(base.waves(k, k - j), w, k) for j, w in terms.items()))
            if total != 0:
                factor, rest = constant.as_coeff_Mul()
                totals.setdefault(rest, []).append(factor * total)
        parts = [_product(_sum_of_groups(found), rest) for rest, found in totals.items()]
        parts += [constant * factor for constant, factor in self.single.get(k, {}).items()]
        return parts[0] if len(parts) == 1 else sp.Add(*parts)


def _sum_of_groups(totals: list[sp.Expr]) -> sp.Expr:
    """Add what groups with one constant contribute; mirror images cancel at every second order."""
    if len(totals) == 1:
        return totals[0]
    total = sp.Add(*totals)
    return sp.S.Zero if sp.expand(total) == 0 else total


def _product(number: sp.Expr, constant: sp.Expr) -> sp.Expr:
    if number.is_Rational and number not in (0, 1) and constant.is_Mul:
        # Nothing to evaluate: a constant without rational factor gets one.
        return sp.Mul(number, *constant.args, evaluate=False)
    return number * constant


def _turned(weight: Weight, cosine: sp.Expr, sine: sp.Expr) -> Weight:
    """Multiply c - i s by cosine + i sine."""
    if sine == 0 and cosine == 1:
        return weight
    c, s = weight
    return (
        _sum(_scaled(c, cosine), _scaled(s, sine)),
        _sum(_scaled(s, cosine), _scaled(c, -sine)),
    )


def _times_argument(base: Base, weight: Weight) -> Weight:
    """The weight of h_{n-1} that equals the given one of h_n if v = 0: times A, or l + ia."""
    if base.frequency is not None and base.is_complex_power:
        return _turned(weight, *base.frequency)
    return _scaled(weight[0], base.argument), _scaled(weight[1], base.argument)


def _add_weight(terms: Terms, j: int, weight: Weight) -> None:
    c, s = terms.pop(j, _ZERO_WEIGHT)
    total = _sum(c, weight[0]), _sum(s, weight[1])
    if total != _ZERO_WEIGHT:
        terms[j] = total


def _add_single(single: Single, k: int, constant: sp.Expr, factor: sp.Expr) -> None:
    parts = single.setdefault(k, {})
    total = normal(parts.pop(constant, sp.S.Zero) + factor)
    if total != 0:
        parts[constant] = total


def _weighted(waves: tuple[sp.Expr, sp.Expr], weight: Weight, k: int) -> sp.Expr:
    total: sp.Expr = sp.S.Zero
    for wave, polynomial in zip(waves, weight, strict=True):
        if polynomial and wave != 0:
            total += polynomial_value(polynomial, k) * wave
    return total


def _correct(base: Base, constant: sp.Expr, single: Single, k: int, w: Weight) -> None:
    """Add ``w`` at the one order k >= 0 where the recurrence of h_n does not hold, n = 0."""
    if k >= 0:
        _add_single(single, k, constant, _weighted(base.waves(k, 0), w, k))


def _drop_high_shifts(base: Base, constant: sp.Expr, terms: Terms, single: Single) -> None:
    """Use h_{k-j} = A h_{k-j-1} - v (k-j-1) h_{k-j-2} until two shifts are left."""
    width = 0 if base.variance == 0 else 1
    while terms and min(terms) < max(terms) - width:
        j = min(terms)
        c, s = weight = terms.pop(j)
        # h_0 = 1, where the recurrence with h_{-1} = h_{-2} = 0 would give 0.
        _correct(base, constant, single, j, weight)
        _add_weight(terms, j + 1, _times_argument(base, weight))
        below = tuple(_scaled(_times_linear(p, j + 1), -base.variance) for p in (c, s))
        _add_weight(terms, j + 2, (below[0], below[1]))


def _lift(base: Base, constant: sp.Expr, terms: Terms, single: Single) -> None:
    """Use v (k-j) h_{k-j-1} = A h_{k-j} - h_{k-j+1} where the polynomials are divisible by k-j."""
    # Results have to hold for all admitted parameters, so never divide by what may be 0.
    while terms and base.variance.is_nonzero:
        lowest = max(terms)
        j = lowest - 1
        if j < 1 or (j not in terms and base.argument != 0):
            return
        quotients = [divided_by_linear(p, j) for p in terms[lowest]]
        if None in quotients:
            return
        del terms[lowest]
        c, s = (_scaled(q, 1 / base.variance) for q in quotients if q is not None)
        _add_weight(terms, j, (_scaled(c, base.argument), _scaled(s, base.argument)))
        _add_weight(terms, j - 1, (_scaled(c, sp.S.NegativeOne), _scaled(s, sp.S.NegativeOne)))
        _correct(base, constant, single, j - 1, (c, s))
