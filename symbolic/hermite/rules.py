r"""From an activation to the sequence of its Hermite moments, by rules.

An activation is a sum of polynomials times *kernels*, products of functions of affine arguments.
The moments of a kernel are the derivatives at 0 of its smoothed function

.. math:: S(\xi) = \mathbb{E}\,g(z + \xi), \qquad \mu_k = S^{(k)}(0),

and four smoothed functions carry all rules: exp(q z² + l z) times sin or cos(a z + b), with
:math:`S \propto e^{A\xi - v\xi^2/2}`, A = (l + ia)/w, v = -2q/w, w = 1 - 2q > 0; erf(a z + b), with
:math:`S = \mathrm{erf}((a\xi + b)/\sqrt{1 + 2a^2})`; the step 1{z > t}, with :math:`S = \Phi(\xi -
t)`; polynomials. relu, abs and sign are polynomials times steps, products of sines sums of sines;
any other kernel is *open*, and :mod:`.hermite.coefficients` expands it order by order. As S or S'
is a Gaussian in ξ, the moments are values of one Hermite polynomial of variance v,

.. math:: h_n = \mathrm{He}^{[v]}_n(A), \qquad h_{n+1} = A h_n - v n h_{n-1}, \qquad h_n = 0
    \text{ for } n < 0,

and a :class:`Sequence` is a sum over such bases of

.. math:: C \sum_j \big(c_j(k) \cos(k\theta + \varphi) + s_j(k) \sin(k\theta + \varphi)\big)
    \, h_{k-j}

with polynomials c_j, s_j in k, plus finitely many single values. Only quarter turns θ = π/2 occur,
except for v = 0, where the real and the imaginary part of :math:`(l + ia)^{k-j} e^{i\varphi}` stand
for cosine and sine times h_{k-j}; no modulus that may be zero is divided by. Multiplication by z,
:math:`\mu_k(z f) = \mu_{k+1}(f) + k \mu_{k-1}(f)`, stays in this class, and the recurrence of h_n
leaves at most two neighbouring shifts j of each base, so that sums combine. Source: Stein's lemma
and the generating function of He_k.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import sympy as sp

from ...errors import AssumptionError
from ..expressions._singularities import expanded_terms
from ..expressions.piecewise_polynomials import flattened
from ..gaussian.hermite_polynomials import hermite_polynomial, pairings
from ..gaussian.integrand_kernels import (
    PRODUCTS_ONLY,
    affine_or_quadratic,
    as_steps_and_exponentials,
    group_by_kernel,
    split_kernel,
)

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
    result = [normal(c) for c in coefficients]
    while result and result[-1] == 0:
        result.pop()
    return tuple(result)


def _sum(p: Polynomial, q: Polynomial) -> Polynomial:
    if not p or not q:
        return p or q
    return _polynomial([c + d for c, d in itertools.zip_longest(p, q, fillvalue=sp.S.Zero)])


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

    `argument`, `variance`: a and v, in normal form. `frequency`: (l, a): (0, 1) for quarter turns,
    else the base of the powers (l + ia)^n, whose modulus is A; None without oscillation. `phase`:
    φ. `scale`: a square root of v with the sign that makes ``argument/scale`` simple; it does not
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
            known = _recurrence(self.argument, self.variance)
            first, slope = known[1], Fraction(self.variance.p, self.variance.q)
            while len(known) <= n:
                known.append(first * known[-1] - slope * (len(known) - 1) * known[-2])
            return sp.Rational(known[n].numerator, known[n].denominator)
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

    `groups`: the weights of each base with its constant factor C. `single`: values that are added
    at single orders.

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
            result: Terms = {}
            for j, (c, s) in terms.items():
                up = _turned((_shifted(c, 1), _shifted(s, 1)), turn[0], turn[1])
                down = _turned((_shifted(c, -1), _shifted(s, -1)), turn[0], -turn[1])
                _add_weight(result, j - 1, up)
                _add_weight(result, j + 1, (_times_linear(down[0], 0), _times_linear(down[1], 0)))
            groups[base, constant] = result
        for k, parts in self.single.items():
            for constant, value in parts.items():
                if k:
                    _add_single(single, k - 1, constant, value)
                _add_single(single, k + 1, constant, (k + 1) * value)
        return Sequence(groups, single).reduced()

    def times_polynomial(self, coefficients: Mapping[int, sp.Expr]) -> Sequence:
        """Return the moments of P(z) f, P given as {power: coefficient}."""
        highest = max(coefficients)
        result = self.scaled(coefficients[highest])
        for n in range(highest - 1, -1, -1):
            result = result.times_z()
            if n in coefficients:
                result += self.scaled(coefficients[n])
        return result

    def reduced(self) -> Sequence:
        """Return the same sequence with at most two neighbouring shifts in every group."""
        single = {k: dict(parts) for k, parts in self.single.items()}
        groups = {}
        for (base, constant), terms in self.groups.items():
            mine = dict(terms)
            # Use h_{k-j} = A h_{k-j-1} - v (k-j-1) h_{k-j-2} until two shifts are left.
            width = 0 if base.variance == 0 else 1
            while mine and min(mine) < max(mine) - width:
                j = min(mine)
                c, s = weight = mine.pop(j)
                # h_0 = 1, where the recurrence with h_{-1} = h_{-2} = 0 would give 0.
                _correct(base, constant, single, j, weight)
                _add_weight(mine, j + 1, _times_argument(base, weight))
                below = tuple(_scaled(_times_linear(p, j + 1), -base.variance) for p in (c, s))
                _add_weight(mine, j + 2, (below[0], below[1]))
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
        parts = [_product(_sum_of_groups(result), rest) for rest, result in totals.items()]
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


_ONE: Polynomial = (sp.S.One,)
_COSINE: Weight = (_ONE, ())
_NOTHING = Sequence({}, {})
_HALF = sp.Rational(1, 2)
_DENSITY_AT_ZERO = 1 / sp.sqrt(2 * sp.pi)

# Beyond these powers of z, for no, one and more parameters, the weights of the closed form would
# fill pages; single orders remain exact, by the multiplication rule.
_HIGHEST_POWERS = (24, 6, 2)
_LONGEST_SUM = 2000

OpenTerms = dict[sp.Expr, dict[int, sp.Expr]]
"""Kernels without a closed form in k, with the polynomials before them: {kernel: {power: c}}."""


@dataclass(frozen=True)
class Decomposition:
    """An activation, split into a part with moments in closed form and the rest.

    `sequence`: moments of the first part. `open_terms`: the rest.
    """

    sequence: Sequence
    open_terms: OpenTerms


@functools.lru_cache(maxsize=256)
def decompose(expr: sp.Expr, z: sp.Symbol) -> Decomposition:
    """Split a function of the standard normal variable `z` into closed and open parts.

    Raises AssumptionError if a rule applies only under assumptions that the parameters do not have.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> found = decompose(z * sp.erf(z) + z**2 * sp.tanh(z), z)
    >>> found.open_terms
    {tanh(z): {2: 1}}
    >>> [found.sequence.value(k) for k in range(3)]
    [2*sqrt(3)/(3*sqrt(pi)), 0, 8*sqrt(3)/(9*sqrt(pi))]
    """
    if is_too_long(expr):
        expr = flattened(expr, whole=True)
    if is_too_long(expr):
        return Decomposition(_NOTHING, {expr: {0: sp.S.One}})
    closed: list[sp.Expr] = []
    left: list[sp.Expr] = []
    for term in _terms(expr):
        powers = {
            e: sp.exp(e.exp * sp.log(e.base))
            for e in term.atoms(sp.Pow)
            if e.exp.has(z) and e.base is not sp.S.Exp1
        }
        result = as_steps_and_exponentials(term.xreplace(powers) if powers else term)
        resolved = (result,) if result is term or is_too_long(result) else _terms(result)
        kernels = group_by_kernel(resolved, z)
        known = all(k == 1 or kernel_sequence(k, z) is not None for k in kernels)
        # A term that stays open stays as it was written.
        closed.extend(resolved if known else ())
        left.extend(() if known else (term,))
    total, open_terms = _NOTHING, group_by_kernel(tuple(left), z)
    for kernel, coefficients in group_by_kernel(tuple(closed), z).items():
        if kernel == 1:
            for n, c in coefficients.items():
                total += Sequence.of_power(n).scaled(c)
            continue
        plain = kernel_sequence(kernel, z)
        highest = _HIGHEST_POWERS[min(len(kernel.free_symbols - {z}), 2)]
        if plain is None or max(coefficients) > highest:
            open_terms[kernel] = coefficients
        else:
            total += plain.times_polynomial(coefficients)
    return Decomposition(total.reduced(), open_terms)


def is_too_long(expr: sp.Expr) -> bool:
    """Whether an expression has too many terms to be multiplied out."""
    return expanded_terms(expr) > _LONGEST_SUM


def _terms(expr: sp.Expr) -> tuple[sp.Expr, ...]:
    if all(
        factor.is_Symbol
        or (factor.is_Function and all(argument.is_Atom for argument in factor.args))
        for factor in sp.Mul.make_args(expr)
    ):
        # Nothing to multiply out; SymPy would walk the tree to see that.
        return (expr,)
    expanded = expr.expand(**PRODUCTS_ONLY)
    return () if expanded == 0 else sp.Add.make_args(expanded)


@functools.lru_cache(maxsize=256)
def kernel_sequence(kernel: sp.Expr, z: sp.Symbol) -> Sequence | None:
    """Return the moments of a kernel, a product of functions of `z`; None without a rule."""
    parts = split_kernel(kernel, z)
    if parts is None:
        return None
    exponent, others = parts
    if all(isinstance(factor, sp.sin | sp.cos) for factor in others):
        return _oscillating_gaussian(exponent, others, z)
    if exponent is not None:
        return None
    if all(isinstance(factor, sp.Heaviside) for factor in others):
        return _steps(others, z)
    if len(others) == 1 and isinstance(others[0], sp.erf):
        return _error_function(others[0].args[0], z)
    return None


def _oscillating_gaussian(
    exponent: sp.Expr | None, waves: list[sp.Expr], z: sp.Symbol
) -> Sequence | None:
    """The moments of exp(quadratic) times a product of sines and cosines."""
    quadratic = (sp.S.Zero,) * 3 if exponent is None else affine_or_quadratic(exponent, z)
    frequencies = _sum_of_waves(waves, z)
    if quadratic is None or frequencies is None:
        return None
    offset, slope, curvature = quadratic
    width = normal(1 - 2 * curvature)
    if not width.is_positive:
        if not width.free_symbols:
            return None
        _refuse(
            width.free_symbols,
            f"E[exp({exponent})] over standard normal {z} exists only for {width} > 0",
            "declare or write parameters so that it is seen, as s positive in exp(-z**2/(2*s))",
        )
    total = _NOTHING
    for (frequency, phase), (c, s) in frequencies.items():
        if frequency == 0 and exponent is None:
            total += Sequence.of_power(0).scaled(c)
            continue
        result = _gaussian(slope, frequency, phase, curvature, width)
        if result is None:
            return None
        base, factor = result
        constant = factor * sp.exp(offset)
        weight = ((c,) if c != 0 else (), (s,) if s != 0 else ())
        total += Sequence({(base, constant): {0: weight}}, {}) if weight != ((), ()) else _NOTHING
    return total


def _gaussian(
    slope: sp.Expr, frequency: sp.Expr, phase: sp.Expr, curvature: sp.Expr, width: sp.Expr
) -> tuple[Base, sp.Expr] | None:
    """Base and constant of exp(q z² + l z) cos(a z + b), w = 1 - 2q; sin is its other weight."""
    v = normal(-2 * curvature / width)
    root = sp.sqrt(v) if not v.could_extract_minus_sign() else sp.I * sp.sqrt(-v)
    if frequency == 0:
        constant = sp.exp(normal(slope**2 / (2 * width))) / sp.sqrt(width)
        return Base(normal(slope / width), v, scale=root), constant
    if slope == 0:
        # A = ia/w, and He^[v]_k(ix) = i^k He^[-v]_k(x).
        constant = sp.exp(normal(-(frequency**2) / (2 * width))) / sp.sqrt(width)
        turn = (sp.S.Zero, sp.S.One)
        root = sp.sqrt(-v) if v.could_extract_minus_sign() else sp.I * sp.sqrt(v)
        return Base(normal(frequency / width), -v, turn, phase, root), constant
    if curvature != 0:
        return None
    require_real(slope, f"exp({slope}*z) times a sine")
    require_real(frequency, f"exp({slope}*z) times a sine")
    constant = sp.exp(normal((slope**2 - frequency**2) / 2))
    phase = normal(phase + slope * frequency)
    return Base(sp.sqrt(slope**2 + frequency**2), v, (slope, frequency), phase), constant


_Waves = dict[tuple[sp.Expr, sp.Expr], tuple[sp.Expr, sp.Expr]]


def _sum_of_waves(waves: list[sp.Expr], z: sp.Symbol) -> _Waves | None:
    """Write a product of sines and cosines as {(a, b): (c, s)}: Σ c cos(az+b) + s sin(az+b)."""
    total: _Waves = {(sp.S.Zero, sp.S.Zero): (sp.S.One, sp.S.Zero)}
    for wave in waves:
        affine = affine_or_quadratic(wave.args[0], z)
        if affine is None or affine[2] != 0:
            return None
        b, a, _ = affine
        is_sine = isinstance(wave, sp.sin)
        result: _Waves = {}
        for (a0, b0), (c, s) in total.items():
            # Product of c cos u + s sin u with cos w or sin w, at u + w and at u - w.
            above = (-s * _HALF, c * _HALF) if is_sine else (c * _HALF, s * _HALF)
            below = (s * _HALF, -c * _HALF) if is_sine else (c * _HALF, s * _HALF)
            _add_wave(result, a0 + a, b0 + b, above)
            _add_wave(result, a0 - a, b0 - b, below)
        total = result
    return {key: weight for key, weight in total.items() if weight != (0, 0)}


def _add_wave(waves: _Waves, a: sp.Expr, b: sp.Expr, weight: tuple[sp.Expr, sp.Expr]) -> None:
    c, s = weight
    a, b = normal(a), normal(b)
    if a.could_extract_minus_sign():
        a, b, s = -a, -b, -s
    if a == 0:
        c, s, b = c * sp.cos(b) + s * sp.sin(b), sp.S.Zero, sp.S.Zero
    for _ in range(3):
        # A quarter turn exchanges sine and cosine, so that sin(z + pi/2) is seen to be cos(z).
        if not (b / sp.pi * 2).is_Integer or b == 0:
            break
        c, s, b = (s, -c, b - sp.pi / 2) if b.is_positive else (-s, c, b + sp.pi / 2)
    c0, s0 = waves.get((a, b), (sp.S.Zero, sp.S.Zero))
    waves[a, b] = (normal(c0 + c), normal(s0 + s))


def _error_function(argument: sp.Expr, z: sp.Symbol) -> Sequence | None:
    affine = affine_or_quadratic(argument, z)
    if affine is None or affine[2] != 0:
        return None
    b, a, _ = affine
    require_real(argument.xreplace({z: sp.S.One}), f"erf({argument})")
    width = 1 + 2 * a**2
    slope, offset = a / sp.sqrt(width), b / sp.sqrt(width)
    constant = 2 * slope / sp.sqrt(sp.pi) * sp.exp(-(b**2) / width)
    base = Base(normal(-2 * a * b / width), normal(2 * a**2 / width), scale=sp.sqrt(2) * slope)
    return Sequence({(base, constant): {1: _COSINE}}, {0: _parts(sp.erf(offset))})


def _steps(factors: list[sp.Expr], z: sp.Symbol) -> Sequence | None:
    """The moments of a product of step functions."""
    product: dict[sp.Expr | None, sp.Expr] = {None: sp.S.One}
    for factor in factors:
        step = _one_step(factor.args[0], z)
        if step is None:
            return None
        result: dict[sp.Expr | None, sp.Expr] = {}
        for first, weight in product.items():
            for second, other in step.items():
                point = _later(first, second)
                if point is NotImplemented:
                    return None
                result[point] = result.get(point, sp.S.Zero) + weight * other
        product = result
    total = _NOTHING
    for point, weight in product.items():
        if point is None:
            total += Sequence({}, {0: {sp.S.One: weight}})
            continue
        density = _DENSITY_AT_ZERO * sp.exp(-(point**2) / 2) if point != 0 else _DENSITY_AT_ZERO
        base = Base(normal(point), sp.S.One)
        mean = {sp.S.One: _HALF}
        if point != 0:
            mean |= {e: -_HALF * c for e, c in _parts(sp.erf(point / sp.sqrt(2))).items()}
        total += Sequence({(base, density): {1: _COSINE}}, {0: mean}).scaled(weight)
    return total


def _parts(value: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """Write an error function as {constant: sign}; SymPy moves the sign of its argument out."""
    sign, constant = value.as_coeff_Mul()
    return {constant: sign} if value != 0 else {}


def _one_step(argument: sp.Expr, z: sp.Symbol) -> dict[sp.Expr | None, sp.Expr] | None:
    """Write 1{az + b > 0} as {t: weight of 1{z > t}, None: constant}."""
    affine = affine_or_quadratic(argument, z)
    if affine is None or affine[2] != 0:
        return None
    b, a, _ = affine
    require_real(argument.xreplace({z: sp.S.One}), f"the step at {argument} = 0")
    if not a.is_nonzero:
        _refuse(
            a.free_symbols,
            f"the step at {argument} = 0 does not depend on {z} if {a} = 0",
            "declare the slope with positive=True, or real=True and nonzero=True",
        )
    sign = sp.sign(a)
    return {None: (1 - sign) / 2, -b / a: sign}


def _later(first: sp.Expr | None, second: sp.Expr | None) -> sp.Expr | None:
    """Return the point of the product of two steps; NotImplemented if the order is not known."""
    if first is None or second is None:
        return second if first is None else first
    difference = normal(first - second)
    if difference.is_nonnegative:
        return first
    return second if difference.is_negative else NotImplemented


def require_real(value: sp.Expr, what: str) -> None:
    """Refuse parameters that are not known to be real where the result depends on that."""
    if value.is_extended_real:
        return
    unknown = {s for s in value.free_symbols if not s.is_extended_real} or value.free_symbols
    _refuse(unknown, f"{what} has a real argument only for real parameters", "declare it real=True")


def _refuse(symbols: Iterable[sp.Symbol], reason: str, remedy: str) -> None:
    names = ", ".join(sorted(symbol.name for symbol in symbols))
    raise AssumptionError(f"the result depends on assumptions on {names}: {reason}\n  {remedy}")
