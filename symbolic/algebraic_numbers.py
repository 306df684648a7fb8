r"""Whether an algebraic number is zero, decided exactly by a separation bound.

Every expression of rationals, I, roots, and sines, cosines and tangents at rational multiples of pi
is a quotient :math:`\alpha/\beta` of algebraic integers of one number field of known degree at most
D; going through the expression bounds the absolute values of all conjugates, those of
:math:`\alpha` by u and those of :math:`\beta` by l. The product of the conjugates of a non-zero
:math:`\alpha` is a non-zero integer, hence

.. math:: \alpha/\beta = 0 \quad\text{or}\quad |\alpha/\beta| \ge \frac{1}{l\,u^{D-1}},

and an enclosure narrower than that decides. No minimal polynomial is formed and nothing is
factored: the cost is that of D log2(u) bits, known and bounded before anything is computed.

Source: Burnikel, Fleischer, Mehlhorn and Schirra, *A strong and easily computable separation bound
for arithmetic expressions involving radicals*, Algorithmica 27 (2000) 87-99; the rules for
quotients are those of Burnikel, Funke, Mehlhorn, Schirra and Schmitt, Algorithmica 55 (2009) 14-28.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from .constant_enclosures import NoEnclosure, enclosure

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


def measure(expr: sp.Expr) -> Measure | None:
    """Return bounds of an algebraic number, or None if the expression is not known to be one.

    Examples
    --------
    >>> measure(sp.sqrt(2) + sp.sqrt(3)).degree, measure(sp.cos(sp.pi / 7)).degree
    (4, 3)
    >>> measure(sp.pi) is None
    True
    """
    return _measure(expr, {})


def algebraic_is_zero(expr: sp.Expr) -> bool | None:
    """Decide whether an algebraic number is zero.

    Parameters
    ----------
    expr : Expr
        A constant; principal roots.

    Returns
    -------
    bool or None
        None if it is not known to be algebraic, if the proof would need more than `MAX_BITS` bits,
        or if it holds a division by zero.

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


def _measure(expr: sp.Expr, known: dict[sp.Expr, Measure | None]) -> Measure | None:
    if expr not in known:
        known[expr] = _compute(expr, known)
    return known[expr]


def _compute(expr: sp.Expr, known: dict[sp.Expr, Measure | None]) -> Measure | None:
    if expr.is_Rational:
        return Measure(_log2(abs(expr.p)), _log2(expr.q))
    if expr is sp.I:
        return Measure(0.0, 0.0, conductor=4, is_real=False)
    if expr.is_Add:
        return _sum(expr, known)
    if expr.is_Mul:
        parts = [_measure(factor, known) for factor in expr.args]
        found = [part for part in parts if part is not None]
        if len(found) < len(parts):
            return None
        return _joined(
            found, sum(part.numerator for part in found), sum(part.denominator for part in found)
        )
    if expr.is_Pow and expr.exp.is_Rational:
        return _power(expr.base, expr.exp, known)
    turn = _rational_turn(expr)
    if turn is not None:
        return turn
    return None


def _sum(expr: sp.Expr, known: dict[sp.Expr, Measure | None]) -> Measure | None:
    # Rational coefficients are brought to one denominator: the bound does not grow with the
    # number of terms.
    split = [term.as_coeff_Mul() for term in expr.args]
    common = math.lcm(*(int(c.q) for c, _ in split))
    parts = []
    for coefficient, rest in split:
        part = _measure(rest, known)
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


def _power(
    base: sp.Expr, exponent: sp.Rational, known: dict[sp.Expr, Measure | None]
) -> Measure | None:
    root, times = int(exponent.q), int(exponent.p)
    inside = _measure(base, known)
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
        radicals = radicals | {(base, root)}
    if times < 0:
        above, below = below, above
    return Measure(
        abs(times) * above, abs(times) * below, radicals, inside.conductor, inside.is_real
    )


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


def coprime_base(numbers: Iterable[int]) -> list[int]:
    """Return pairwise coprime integers > 1 of which all numbers are products of powers.

    Their logarithms are independent over the rationals, and no number is factored.

    Examples
    --------
    >>> coprime_base([12, 18, 35])
    [2, 3, 35]
    """
    base: list[int] = []
    waiting = [n for n in numbers if n > 1]
    while waiting:
        n = waiting.pop()
        for i, b in enumerate(base):
            common = math.gcd(n, b)
            if common > 1:
                del base[i]
                waiting += [m for m in (common, b // common, n // common) if m > 1]
                break
        else:
            base.append(n)
    return sorted(set(base))


def _square_classes(numbers: Iterable[sp.Rational]) -> int:
    """Return the rank of positive rationals modulo squares, or a little more.

    sqrt(6) lies in the field of sqrt(2) and sqrt(3): the roots generate a field of degree 2**rank.
    """
    integers = [int(number.p) * int(number.q) for number in numbers]
    base = [b for b in coprime_base(integers) if math.isqrt(b) ** 2 != b]
    pivots: list[int] = []
    for n in integers:
        vector = sum(1 << i for i, b in enumerate(base) if _multiplicity(n, b) % 2)
        for pivot in pivots:
            vector = min(vector, vector ^ pivot)
        if vector:
            pivots.append(vector)
    return len(pivots)


def _multiplicity(number: int, factor: int) -> int:
    count = 0
    while number % factor == 0:
        number, count = number // factor, count + 1
    return count


def _log2(number: int) -> float:
    return math.log2(number) if number else 0.0
