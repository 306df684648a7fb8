r"""What powers of a polynomial label show of directions that are not known yet.

Given :math:`x_U = u`, the label :math:`y = f(u + q)` is a polynomial in the Gaussian vector q of
:math:`W = V^* \cap U^\perp`. By Stein's lemma

.. math:: \mathbb{E}[y^p q] = \mathbb{E}[\nabla_q y^p], \qquad
          \mathbb{E}[y^p (q q^T - P_W)] = \mathbb{E}[\nabla_q^2 y^p],

inner products of Hermite coefficients: of y with itself for p = 2, of y² with y and with itself for
p = 3 and 4, so that y² is the only power that is ever multiplied out. Both sides are polynomials in
u; a value that is not zero at one point is none on an open set, so single rational points suffice
to show that :math:`\mathbb{E}[\,\cdot \mid y, x_U]` does not vanish (derived here).

All is done without denominators, in integers if the coefficients are rational: W has an orthogonal
basis n_a of integer vectors, :math:`q = \sum_a n_a t_a/|n_a|^2`, where t_a has the variance |n_a|².
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy.polys.rings import PolyElement

from ...errors import UnsupportedExpressionError
from ..exact_fields import common_field
from ..heat_flow import function_of
from ..hermite_polynomials import pairings
from ..subspaces import Element, Subspace, reduced
from ..targets import MultiIndex

HIGHEST_POWER = 4
# y² is not multiplied out if it takes more products of two terms, in integers or in a larger field.
_MOST_INTEGER_PRODUCTS = 400_000
_MOST_PRODUCTS = 20_000
_LARGEST_LABEL = 100_000

Terms = dict[MultiIndex, Element]


@dataclass(frozen=True)
class Signal:
    """Vectors that a power of the label shows.

    Attributes
    ----------
    power : int
        p of T(y) = y^p.
    order : int
        1 for E[y^p q], 2 for the rows of E[y^p (q qᵀ - P)].
    point : tuple of Expr
        u, in R^r.
    vectors : tuple of tuple of Expr
        In R^r, exact.
    """

    power: int
    order: int
    point: tuple[sp.Expr, ...]
    vectors: tuple[tuple[sp.Expr, ...], ...]


class LabelMoments:
    """Conditional moments of the powers of a polynomial label.

    Parameters
    ----------
    symbol : PolyElement
        F, the symbol of the target.
    relevant : Subspace
        V*.

    Examples
    --------
    >>> ring, x1, x2 = sp.ring("x1:3", sp.QQ)
    >>> moments = LabelMoments(x1**3 + x1**3 * x2, Subspace.whole(2))
    >>> [s.vectors for s in moments.signals(Subspace.zero(2), 2, 1)]
    [((0, 12),)]
    """

    def __init__(self, symbol: PolyElement, relevant: Subspace) -> None:
        self.symbol, self.relevant = symbol, relevant
        self._at: dict[tuple[Subspace, int], _LabelAtPoint] = {}

    @functools.cached_property
    def function(self) -> PolyElement:
        """f itself, as a ring element."""
        return function_of(self.symbol)

    def signals(self, subspace: Subspace, power: int, order: int) -> Iterator[Signal]:
        """Yield what y^power shows at points of a subspace of V*, one signal per point.

        Parameters
        ----------
        subspace : Subspace
            U, part of V*.
        power : int
            1 to `HIGHEST_POWER`.
        order : int
            1 or 2.
        """
        missing = self.relevant.dimension - subspace.dimension
        for number in range(1 if subspace.is_zero else missing + 1):
            if (subspace, number) not in self._at:
                self._at[subspace, number] = _LabelAtPoint(self, subspace, number)
            label = self._at[subspace, number]
            vectors = label.vectors(power, order)
            if vectors:
                yield Signal(power, order, label.point, vectors)


class _LabelAtPoint:
    """The label given x_U = u, by its Hermite coefficients in t."""

    def __init__(self, moments: LabelMoments, subspace: Subspace, number: int) -> None:
        symbol = moments.symbol
        unknown = moments.relevant.intersection(subspace.orthogonal_complement())
        part, of_symbol, of_unknown = common_field(symbol.ring.domain, unknown.field)
        self.field, of_part, of_subspace = common_field(part, subspace.field)
        self.numbers = _WithoutDenominators(self.field)
        self.domain = self.numbers.domain
        degree = self.field.mod.degree() if self.field.is_Algebraic else 1
        size = len(symbol) * degree**2
        if size > _LARGEST_LABEL:
            raise UnsupportedExpressionError(
                f"powers of this target need {len(symbol)} coefficients in a field of degree "
                f"{degree}: coefficients times squared degree are {size}, and beyond "
                f"{_LARGEST_LABEL} they take gigabytes; use fewer terms or fewer roots"
            )
        rows = [[of_part(of_unknown(c)) for c in row] for row in unknown.rows]
        self.basis = [self.numbers.primitive(row) for row in _orthogonal_basis(rows, self.field)]
        self.lengths = [sum((c * c for c in row), self.domain.zero) for row in self.basis]
        known = [self.numbers.primitive([of_subspace(c) for c in row]) for row in subspace.rows]
        u = _point(known, number, symbol.ring.ngens, self.domain)
        self.point = tuple(self._number(entry) for entry in u)
        self.series: dict[int, Terms] = {}
        terms = {alpha: of_part(of_symbol(c)) for alpha, c in moments.function.items()}
        self.label = self._composed(terms, u)

    def _number(self, value: Element) -> sp.Expr:
        return self.field.to_sympy(reduced(self.field.convert_from(value, self.domain)))

    def _composed(self, terms: Terms, u: Sequence[Element]) -> PolyElement:
        """Return y times `self.factor` as a polynomial in t."""
        # With the common multiple L of the |n_a|², L x has no denominators.
        common = self.numbers.common_denominator(terms.values())
        scale = self.numbers.common_multiple(self.lengths)
        degree = max(map(sum, terms), default=0)
        self.factor = common * scale**degree
        cleared = {
            alpha: self.numbers.cleared(c, common) * scale ** (degree - sum(alpha))
            for alpha, c in terms.items()
        }
        ring = sp.ring([f"t{a}" for a in range(len(self.basis))], self.domain)[0]
        units = [self.domain.exquo(scale, length) for length in self.lengths]
        images = []
        for i, start in enumerate(u):
            image = ring.ground_new(start * scale)
            for row, unit, gen in zip(self.basis, units, ring.gens, strict=True):
                if row[i]:
                    image += gen * (row[i] * unit)
            images.append(image)
        return _horner(cleared, images, 0, ring)

    def vectors(self, power: int, order: int) -> tuple[tuple[sp.Expr, ...], ...]:
        """Return E[y^p q], or the rows of E[y^p (q qᵀ - P)]; without those that vanish."""
        found = []
        unit = self.field.one / self.field.convert_from(self.factor**power, self.domain)
        for coefficients in self._derivatives(power, order):
            if not any(coefficients):
                continue
            total = [self.domain.zero] * len(self.point)
            for c, row in zip(coefficients, self.basis, strict=True):
                total = [a + c * b for a, b in zip(total, row, strict=True)]
            values = (self.field.convert_from(entry, self.domain) * unit for entry in total)
            found.append(tuple(self.field.to_sympy(reduced(value)) for value in values))
        return tuple(found)

    def _derivatives(self, power: int, order: int) -> list[list[Element]]:
        """Return E[∇ y^p], or E[∇² y^p], in t."""
        count = len(self.basis)
        first, second = self._series_of(power // 2), self._series_of(power - power // 2)
        if not second or (power > 1 and not first):
            return []
        if power == 1:
            first = {(0,) * count: self.domain.one}
        ones = [_derivative(first, a) for a in range(count)]
        others = [_derivative(second, a) for a in range(count)]
        if order == 1:
            return [
                [self._inner(ones[a], second) + self._inner(first, others[a]) for a in range(count)]
            ]
        matrix = [[self.domain.zero] * count for _ in range(count)]
        for a, b in itertools.combinations_with_replacement(range(count), 2):
            matrix[a][b] = matrix[b][a] = (
                self._inner(_derivative(ones[a], b), second)
                + self._inner(ones[a], others[b])
                + self._inner(ones[b], others[a])
                + self._inner(first, _derivative(others[a], b))
            )
        return matrix

    def _series_of(self, power: int) -> Terms:
        """Return the Hermite coefficients of y or y²; empty if y² would be too long."""
        if power not in self.series:
            label = self.label
            if power == 2:
                most = _MOST_INTEGER_PRODUCTS if self.field.is_QQ else _MOST_PRODUCTS
                label = label.ring.zero if len(label) ** 2 > 2 * most else label.square()
            self.series[power] = _flow(dict(label), self.lengths)
        return self.series[power]

    def _inner(self, first: Terms, second: Terms) -> Element:
        total = self.domain.zero
        if len(second) < len(first):
            first, second = second, first
        for alpha, c in first.items():
            other = second.get(alpha)
            if other:
                weight = c * other
                for n, length in zip(alpha, self.lengths, strict=True):
                    if n:
                        weight *= math.factorial(n) * length**n
                total += weight
        return total


class _WithoutDenominators:
    """Computation in a ring whose fractions make up the field: much faster than in the field.

    Attributes
    ----------
    domain : Domain
        ZZ for QQ, polynomials for their fractions; an algebraic field is left as it is.
    """

    def __init__(self, field: Any) -> None:
        self.field = field
        self.domain: Any = sp.ZZ if field.is_QQ else field
        if field.is_FractionField:
            self.domain = field.get_ring()

    def common_multiple(self, values: Iterable[Element]) -> Element:
        """Return a multiple of elements of the ring."""
        product = self.domain.one
        for value in values:
            if self.field.is_QQ:
                product = sp.ZZ(math.lcm(int(product), int(value)))
            elif self.domain.rem(product, value):
                product *= value
        return product

    def common_denominator(self, values: Iterable[Element]) -> Element:
        """Return a number of the ring that clears the denominators of elements of the field."""
        if self.domain is self.field:
            return self.domain.one
        return self.common_multiple(
            sp.ZZ(int(value.denominator)) if self.field.is_QQ else reduced(value).denom
            for value in values
        )

    def cleared(self, value: Element, denominator: Element) -> Element:
        """Return value times denominator, in the ring."""
        if self.domain is self.field:
            return value * denominator
        if self.field.is_QQ:
            return sp.ZZ(int(value * int(denominator)))
        fraction = reduced(value)
        return fraction.numer * self.domain.exquo(denominator, fraction.denom)

    def primitive(self, vector: Sequence[Element]) -> list[Element]:
        """Return a multiple of a vector of the field that is in the ring."""
        common = self.common_denominator(vector)
        entries = [self.cleared(entry, common) for entry in vector]
        if self.field.is_QQ:
            divisor = math.gcd(*map(int, entries))
            return [sp.ZZ(int(entry) // divisor) for entry in entries]
        return entries


def _orthogonal_basis(rows: Sequence[Sequence[Element]], field: Any) -> list[list[Element]]:
    """Orthogonalise without normalising."""
    found: list[list[Element]] = []
    for row in rows:
        vector = list(row)
        for known in found:
            overlap = sum((a * b for a, b in zip(vector, known, strict=True)), field.zero)
            if overlap:
                factor = overlap / sum((b * b for b in known), field.zero)
                vector = [a - factor * b for a, b in zip(vector, known, strict=True)]
        found.append(vector)
    return found


def _point(
    rows: Sequence[Sequence[Element]], number: int, dimension: int, domain: Any
) -> list[Element]:
    """Return one of a few points of small integers in general position."""
    total = [domain.zero] * dimension
    for i, row in enumerate(rows):
        step = (2 * i + 3 * number) % 5 - 2 or 1
        total = [a + b * step for a, b in zip(total, row, strict=True)]
    return total


def _horner(terms: Terms, images: Sequence[PolyElement], i: int, ring: Any) -> PolyElement:
    """Return Σ c_α Π images^α, by Horner's rule in one image after the other."""
    if i == len(images):
        return ring.ground_new(sum(terms.values(), ring.domain.zero))
    groups: dict[int, Terms] = {}
    for alpha, c in terms.items():
        groups.setdefault(alpha[i], {})[alpha] = c
    value = ring.zero
    for n in range(max(groups, default=0), -1, -1):
        value = value * images[i]
        if n in groups:
            value += _horner(groups[n], images, i + 1, ring)
    return value


def _flow(terms: Terms, variances: Sequence[Element]) -> Terms:
    """Return the Hermite coefficients of a polynomial in Gaussian variables of these variances."""
    for a, variance in enumerate(variances):
        found: Terms = {}
        for alpha, c in terms.items():
            n = alpha[a]
            for j, count in enumerate(pairings(n)):
                lower = (*alpha[:a], n - 2 * j, *alpha[a + 1 :])
                added = c * count * variance**j
                found[lower] = found[lower] + added if lower in found else added
        terms = found
    return terms


def _derivative(terms: Terms, a: int) -> Terms:
    return {
        (*alpha[:a], alpha[a] - 1, *alpha[a + 1 :]): c * alpha[a]
        for alpha, c in terms.items()
        if alpha[a]
    }
