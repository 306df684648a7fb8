r"""Polynomials by their degree in the directions outside a subspace, without orthonormal frames.

With U a subspace, :math:`Q = I - P_U` and F the symbol of f, the operator

.. math:: D = \langle Q\xi, \nabla\rangle = \sum_{ij} Q_{ij}\, \xi_i\, \partial_j

is self-adjoint for :math:`\langle f, g\rangle = \mathbb{E}[fg] = \sum_\alpha \alpha!\, c_\alpha
d_\alpha` and has the eigenvalue j on the functions of degree j in :math:`x_\perp = Qx`. It keeps
the total degree k, so on that part of F its eigenvalues are 0, …, k. The norms
:math:`n_j = \|P_{U,=j} f\|^2` solve

.. math:: \sum_j j^i\, n_j = \langle D^a F, D^b F\rangle, \qquad a + b = i \le k,

and with the polynomial p that is 1 at 0, …, l and 0 at l + 1, …, k the part of degree at most l is
:math:`p(D) F`. Q is rational in a basis of U: no roots come in. Over QQ only integers are added
and multiplied, after common denominators are taken out. For a U that is spanned by axes, degrees
are counted directly.

Derived here; tested against explicit orthonormal frames and quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import sympy as sp
from sympy.polys.rings import PolyElement

from ..errors import UnsupportedExpressionError
from .exact_fields import common_field
from .subspaces import Subspace

# One application of D to this many terms takes about a second.
_MOST_TERMS = 50_000


def degree_norms(symbol: PolyElement, subspace: Subspace) -> tuple[sp.Expr, ...]:
    r"""Return the norms :math:`n_j = \|P_{U,=j} f\|^2` by degree j outside a subspace.

    Parameters
    ----------
    symbol : PolyElement
        F, in r variables over an exact field.
    subspace : Subspace
        U, of R^r.

    Returns
    -------
    tuple of Expr
        n_0, n_1, …, up to the last that is not zero, but at least n_0; their sum is E f².

    Raises
    ------
    UnsupportedExpressionError
        If more than 50 000 terms come up.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> degree_norms(x + y + x * y, Subspace.spanned_by([[1, 1]]))
    (5/2, 0, 1/2)
    """
    domain, terms, operator = _prepared(symbol, subspace)
    if operator.domain == domain:
        totals = _totals(terms, operator)
    else:
        totals = {}
        components = _components(terms)
        own = [_totals(component, operator) for component in components]
        powers = [domain.unit**n for n in range(2 * len(components))]
        for p, first in enumerate(components):
            for q, second in enumerate(components[: p + 1]):
                # Twice the inner products, by polarisation.
                values = own[p] if p == q else _totals(_sum(first, second), operator)
                others = () if p == q else (own[p], own[q])
                for j, value in values.items():
                    mixed = value - sum((other.get(j, 0) for other in others), sp.QQ.zero)
                    added = domain.convert_from(mixed, sp.QQ) * powers[p + q]
                    totals[j] = totals.get(j, domain.zero) + added
    last = max((j for j, value in totals.items() if value), default=0)
    return tuple(domain.to_sympy(totals.get(j, domain.zero)) for j in range(last + 1))


def part_up_to(symbol: PolyElement, subspace: Subspace, degree: int) -> PolyElement:
    r"""Return the symbol of :math:`P_{U,\le l} f`, of degree at most l outside a subspace.

    Parameters
    ----------
    symbol : PolyElement
        F, in r variables over an exact field.
    subspace : Subspace
        U, of R^r.
    degree : int
        l, at least 0.

    Returns
    -------
    PolyElement
        Over the field that holds the coefficients of F and the basis of U.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> part_up_to(x * y + x, Subspace.spanned_by([[1, 1]]), 0)
    1/4*x**2 + 1/2*x*y + 1/2*x + 1/4*y**2 + 1/2*y
    """
    domain, terms, operator = _prepared(symbol, subspace)
    if operator.domain == domain:
        kept = _lowest(terms, operator, degree)
    else:
        parts = [_lowest(component, operator, degree) for component in _components(terms)]
        monomials = dict.fromkeys(monomial for part in parts for monomial in part)
        kept = {m: domain([part.get(m, sp.QQ.zero) for part in reversed(parts)]) for m in monomials}
    return symbol.ring.clone(domain=domain).from_dict(kept)


Monomial = tuple[int, ...]
_Terms = dict[Monomial, Any]


def _prepared(symbol: PolyElement, subspace: Subspace) -> tuple[Any, _Terms, _Operator]:
    """Return the common field, F over it, and D over that field or over QQ.

    Over QQ where Q is rational and the field algebraic: then D acts on each coordinate of the
    coefficients by itself, which is done with integers.
    """
    domain, from_ring, from_space = common_field(symbol.ring.domain, subspace.field)
    terms = {monomial: from_ring(c) for monomial, c in symbol.items()}
    if subspace.is_coordinate:
        return domain, terms, _Counted(domain, subspace.pivots)
    projector = subspace.projector_elements()
    size = subspace.ambient_dimension
    if subspace.field.is_QQ:
        common = math.lcm(*(int(entry.denominator) for row in projector for entry in row))
        scaled: list[list[Any]] = [
            [common * (i == j) - int(projector[i][j] * common) for j in range(size)]
            for i in range(size)
        ]
        return domain, terms, _Mixed(sp.QQ if domain.is_Algebraic else domain, scaled, common)
    scaled = [
        [domain.convert(int(i == j)) - from_space(projector[i][j]) for j in range(size)]
        for i in range(size)
    ]
    return domain, terms, _Mixed(domain, scaled, 1)


def _components(terms: _Terms) -> list[_Terms]:
    """Return the coordinates of all coefficients in powers of the generator, lowest first."""
    vectors = {monomial: c.to_list()[::-1] for monomial, c in terms.items()}
    length = max(map(len, vectors.values()), default=0)
    return [
        {m: vector[n] for m, vector in vectors.items() if len(vector) > n and vector[n]}
        for n in range(length)
    ]


def _sum(first: _Terms, second: _Terms) -> _Terms:
    total = {m: c + second.get(m, 0) for m, c in first.items()}
    total |= {m: c for m, c in second.items() if m not in first}
    return {m: c for m, c in total.items() if c}


def _totals(terms: _Terms, operator: _Operator) -> dict[int, Any]:
    """Return {j: n_j}."""
    totals: dict[int, Any] = {}
    for k, part in _by_degree(terms).items():
        for j, value in operator.norms(part, k).items():
            totals[j] = totals.get(j, operator.domain.zero) + value
    return totals


def _lowest(terms: _Terms, operator: _Operator, degree: int) -> _Terms:
    kept: _Terms = {}
    for k, part in _by_degree(terms).items():
        kept |= part if k <= degree else operator.lowest(part, k, degree)
    return kept


def _by_degree(terms: Mapping[Monomial, Any]) -> dict[int, _Terms]:
    parts: dict[int, _Terms] = {}
    for monomial, c in terms.items():
        parts.setdefault(sum(monomial), {})[monomial] = c
    return parts


@dataclass(frozen=True)
class _Operator:
    """D on homogeneous polynomials over a domain."""

    domain: Any

    def norms(self, part: _Terms, k: int) -> dict[int, Any]:
        """Return {j: n_j} of a part of degree k."""
        raise NotImplementedError

    def lowest(self, part: _Terms, k: int, degree: int) -> _Terms:
        """Return what has at most this degree outside U, of a part of degree k > degree."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Counted(_Operator):
    """U is spanned by axes: every monomial is an eigenvector."""

    axes: tuple[int, ...]

    def norms(self, part: _Terms, k: int) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for monomial, c in part.items():
            j = self._degree(monomial)
            weight = self.domain.convert(_factorial(monomial))
            found[j] = found.get(j, self.domain.zero) + c * c * weight
        return found

    def lowest(self, part: _Terms, k: int, degree: int) -> _Terms:
        return {m: c for m, c in part.items() if self._degree(m) <= degree}

    def _degree(self, monomial: Monomial) -> int:
        return sum(monomial) - sum(monomial[i] for i in self.axes)


@dataclass(frozen=True)
class _Mixed(_Operator):
    """The matrix is ``common`` times Q, of integers where Q is rational."""

    matrix: Sequence[Sequence[Any]]
    common: int

    def norms(self, part: _Terms, k: int) -> dict[int, Any]:
        # D has the eigenvalues 0..k only, so k + 1 moments give all norms.
        vectors, denominator = self._powers(part, k, (k + 1) // 2)
        bits = _bits(k)
        weights = {
            key: _factorial(_unpacked(key, bits, len(self.matrix))) for key in set().union(*vectors)
        }
        moments = [self._inner(vectors[i // 2], vectors[i - i // 2], weights) for i in range(k + 1)]
        found = {}
        for j in range(k + 1):
            indicator = _interpolating(k, (j,))
            total = self.domain.zero
            for i, (c, moment) in enumerate(zip(indicator, moments, strict=True)):
                total += self._number(moment, c / (denominator**2 * self.common**i))
            found[j] = total
        return found

    def lowest(self, part: _Terms, k: int, degree: int) -> _Terms:
        vectors, denominator = self._powers(part, k, k)
        indicator = _interpolating(k, tuple(range(degree + 1)))
        # Integers as long as possible: one division at the end.
        factors = [c * self.common ** (k - i) for i, c in enumerate(indicator)]
        common = math.lcm(*(f.denominator for f in factors))
        total: dict[int, Any] = {}
        for factor, vector in zip(factors, vectors, strict=True):
            number = int(factor * common)
            if number:
                for key, value in vector.items():
                    total[key] = total.get(key, 0) + number * value
        last = Fraction(1, common * self.common**k * denominator)
        bits, size = _bits(k), len(self.matrix)
        return {
            _unpacked(key, bits, size): self._number(value, last)
            for key, value in total.items()
            if value
        }

    def _powers(self, part: _Terms, k: int, highest: int) -> tuple[list[dict[int, Any]], int]:
        """Return F, DF, D²F, … with packed exponents, each times one denominator."""
        bits = _bits(k)
        if self.domain.is_QQ:
            denominator = math.lcm(*(int(c.denominator) for c in part.values()))
            values: list[Any] = [
                int(c.numerator) * (denominator // int(c.denominator)) for c in part.values()
            ]
        else:
            denominator, values = 1, list(part.values())
        packed = (sum(n << bits * i for i, n in enumerate(monomial)) for monomial in part)
        vectors = [dict(zip(packed, values, strict=True))]
        for _ in range(highest):
            vectors.append(self._applied(vectors[-1], bits))
        return vectors, denominator

    def _applied(self, terms: dict[int, Any], bits: int) -> dict[int, Any]:
        size, mask = len(self.matrix), (1 << bits) - 1
        # ξ_i ∂_j moves one from the exponent of j to that of i.
        columns = [
            [((1 << bits * i) - (1 << bits * j), self.matrix[i][j]) for i in range(size)
             if self.matrix[i][j]]
            for j in range(size)
        ]  # fmt: skip
        moves = [(bits * j, column) for j, column in enumerate(columns) if column]
        found: dict[int, Any] = {}
        get = found.get
        for key, value in terms.items():
            for shift, column in moves:
                n = key >> shift & mask
                if n:
                    scaled = n * value
                    for step, entry in column:
                        new = key + step
                        old = get(new)
                        found[new] = entry * scaled if old is None else old + entry * scaled
        if len(found) > _MOST_TERMS:
            raise UnsupportedExpressionError(
                f"the projection mixes so many coordinates that more than {_MOST_TERMS} terms come "
                "up; use fewer coordinates, a lower degree, or a frame in which the subspace is "
                "spanned by axes"
            )
        return {key: value for key, value in found.items() if value}

    def _inner(self, a: dict[int, Any], b: dict[int, Any], weights: Mapping[int, int]) -> Any:
        zero: Any = 0 if self.domain.is_QQ else self.domain.zero
        return sum((weights[key] * c * b[key] for key, c in a.items() if key in b), zero)

    def _number(self, value: Any, factor: Fraction) -> Any:
        """Return a value of integers or of the domain, times a fraction, in the domain."""
        domain = self.domain
        if domain.is_QQ:
            return domain(value * factor.numerator, factor.denominator)
        return value * domain.convert_from(sp.QQ(factor.numerator, factor.denominator), sp.QQ)


def _bits(k: int) -> int:
    return max(1, k.bit_length())


def _unpacked(key: int, bits: int, size: int) -> Monomial:
    mask = (1 << bits) - 1
    return tuple(key >> bits * i & mask for i in range(size))


def _factorial(monomial: Monomial) -> int:
    return math.prod(map(math.factorial, monomial))


@cache
def _interpolating(k: int, ones: tuple[int, ...]) -> tuple[Fraction, ...]:
    """Return the coefficients of the polynomial of degree k that is 1 at `ones`, else 0 on 0..k."""
    total = [Fraction(0)] * (k + 1)
    for j in ones:
        factors = [Fraction(1)]
        for i in range(k + 1):
            if i != j:
                shifted = [Fraction(0), *factors]
                lowered = [Fraction(-i) * c for c in factors] + [Fraction(0)]
                factors = [(a + b) / (j - i) for a, b in zip(shifted, lowered, strict=True)]
        total = [a + b for a, b in zip(total, factors, strict=True)]
    return tuple(total)
