r"""Directions that a polynomial target shows a network that knows a subspace U already.

With F the symbol of f, the derivatives of order j of :math:`x_\perp \mapsto f(x_U + x_\perp)`,
averaged over :math:`x_\perp`, have the symbol :math:`D^jF(\xi)`, :math:`\xi \in U`, and the heat
flow is injective: the span of their values is that of the coefficients of a polynomial. So

.. math:: \Gamma_\kappa(U) = U + \sum_{j\le\kappa} \mathrm{span}
          \{D^jF(\xi)[v_2, \dots, v_j, \cdot] : \xi \in U\}

takes substitution and row reduction only (derived here; for κ = 1 it is the definition of Dandi et
al., arXiv 2305.18270, section 4). With the basis of U in echelon form, ξ is s at the pivots and
:math:`q_j + \sum_i B_{ij} s_i` elsewhere: v along U only repeats what lower orders give, so the
axes of the other columns serve as all v. With parameters (:mod:`.cases`) a row may have no pivot
that vanishes nowhere; then all its columns count as other ones.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import sympy as sp
from sympy.polys.rings import PolyElement

from ...errors import ParameterError
from ..exact.fields import common_field
from .cases import Case, CaseEchelon
from .subspaces import Element, Subspace, reduced

MultiIndex = tuple[int, ...]
Terms = dict[MultiIndex, Element]


@dataclass(frozen=True)
class SpanRow:
    """A vector that was added to a subspace, with what produced it.

    Attributes
    ----------
    vector : tuple of Expr
        As it was produced, in R^r: the coefficient of one monomial of ∇F.
    order : int
        Number of slots outside U, 1 to κ: the order of the tensor that shows it.
    inside : tuple of int
        Exponents of s, the coordinates along the basis rows of U.
    outside : tuple of int
        Exponents of q, one for each of the r axes, 0 at the pivots of U; their sum is `order` - 1.
    sources : tuple of tuple of int
        Multi-indices α of the Hermite terms He_α of f that contribute.
    """

    vector: tuple[sp.Expr, ...]
    order: int
    inside: MultiIndex
    outside: MultiIndex
    sources: tuple[MultiIndex, ...]


@dataclass(frozen=True)
class Span:
    """What a target adds to a subspace.

    Attributes
    ----------
    subspace : Subspace
        U and all that was found.
    rows : tuple of SpanRow
        Vectors that raised the rank, lowest orders first.
    lowest_order : int or None
        The conditional order k(U) if it is at most the order asked for, else None.
    decided : bool
        Whether nothing but `subspace` can come out; False only for targets that are no polynomials.
    checked_order : int or None
        Hermite degree up to which coefficients were looked at; None for polynomials.
    basis : str
        "exact", "certified" or "undetermined beyond order K".
    """

    subspace: Subspace
    rows: tuple[SpanRow, ...]
    lowest_order: int | None
    decided: bool = True
    checked_order: int | None = None
    basis: str = "exact"


HIGHEST_DEGREE = 64
"""Hermite tensors are offered, and polynomial targets taken, up to this order."""


class SpanSource(Protocol):
    """What leaps and staircases have to know of a target."""

    @property
    def dimension(self) -> int:
        """Number of coordinates r."""
        ...

    @property
    def relevant_subspace(self) -> Subspace:
        """V*, the directions that f depends on."""
        ...

    def grow(self, subspace: Subspace, highest_order: int, *, strict: bool = False) -> Span:
        """Return Γ_κ(U); if `strict`, only the lowest order that adds anything."""
        ...

    def conditional_order(self, subspace: Subspace) -> int | None:
        """Return k(U); None if f depends on nothing outside U."""
        ...


def require_growth(
    subspace: Subspace, highest_order: object, dimension: int, most: int | None = None
) -> None:
    """Refuse an order that is not from 1 to `most`, or a subspace of another space."""
    if isinstance(highest_order, bool) or not isinstance(highest_order, int | sp.Integer):
        raise ParameterError(f"order must be a whole number, got {highest_order!r}")
    if highest_order < 1 or (most is not None and highest_order > most):
        allowed = "at least 1" if most is None else f"from 1 to {most}"
        raise ParameterError(f"order must be {allowed}, got {highest_order}")
    if subspace.ambient_dimension != dimension:
        raise ParameterError(
            f"subspace must be of R^{dimension}, got one of R^{subspace.ambient_dimension}"
        )


@dataclass(frozen=True)
class PolynomialSpans:
    """Spans of a polynomial target, exact over the field of its coefficients.

    `symbol`: F, in a sparse ring over an exact field. `case`: where coefficients are functions of
    parameters, the values that are looked at.

    Examples
    --------
    >>> ring, x1, x2, x3 = sp.ring("x1:4", sp.QQ)
    >>> spans = PolynomialSpans(x1 + x1 * x2 + x1**3 * x3)
    >>> U = spans.grow(Subspace.zero(3), 1).subspace
    >>> U, spans.grow(U, 1).subspace
    (Subspace ⟨e1⟩ of R^3, Subspace R^3 of R^3)
    >>> [(row.vector, row.sources) for row in spans.grow(U, 1).rows]
    [((0, 1, 0), ((1, 1, 0),)), ((0, 0, 1), ((3, 0, 1),))]
    >>> spans.conditional_order(Subspace.whole(3)) is None
    True
    """

    symbol: PolyElement
    case: Case | None = None

    @property
    def dimension(self) -> int:
        """Number of coordinates r."""
        return len(self.symbol.ring.symbols)

    def _echelon(
        self, field: Any, rows: Sequence[Sequence[Element]] = ()
    ) -> _Echelon | CaseEchelon:
        if self.case is not None:
            return CaseEchelon(field, self.dimension, self.case, rows)
        return _Echelon(field, self.dimension, rows)

    @functools.cached_property
    def relevant_subspace(self) -> Subspace:
        """V*, the span of all gradients of F."""
        echelon = self._echelon(self._field)
        gradients: dict[MultiIndex, list[Element]] = {}
        for alpha, c in sorted(self.symbol.items(), key=lambda term: sum(term[0])):
            for i, beta in _derivatives(alpha):
                row = gradients.setdefault(beta, [self._field.zero] * self.dimension)
                row[i] += c * alpha[i]
        if isinstance(echelon, CaseEchelon):
            echelon.insert_all(list(gradients.values()))
            return Subspace.of_echelon(echelon)
        for row in gradients.values():
            echelon.insert(row)
            if echelon.rank == self.dimension:
                break
        return echelon.subspace()

    def grow(self, subspace: Subspace, highest_order: int, *, strict: bool = False) -> Span:
        """Return Γ_κ(U), or with `strict` U and the tensor of order k(U) only.

        `subspace`: U. `highest_order`: κ, at least 1. `strict`: stop after the first order that
        adds something.
        """
        require_growth(subspace, highest_order, self.dimension)
        places = _Places(self.symbol, subspace)
        echelon = self._echelon(places.field, places.rows)
        # With parameters, what is relevant may depend on more of them than this step.
        whole = self.case is not None
        enough = self.dimension if whole else (self.relevant_subspace + subspace).dimension
        result: list[tuple[int, MultiIndex, MultiIndex, list[Element]]] = []
        lowest: int | None = None
        for order in range(1, min(int(highest_order), places.degree) + 1):
            gradient_rows = places.gradient_rows(order)
            if isinstance(echelon, CaseEchelon):
                listed = list(gradient_rows)
                added = echelon.insert_all([vector for _, _, vector in listed])
                result += [(order, *listed[i]) for i in added]
                lowest = lowest or (order if added else None)
                gradient_rows = iter(())
            for inside, outside, vector in gradient_rows:
                if echelon.rank == enough:
                    break
                if echelon.insert(vector):
                    result.append((order, inside, outside, vector))
                    lowest = lowest or order
            if echelon.rank == enough or (strict and lowest):
                break
        to_sympy = places.field.to_sympy
        rows = tuple(
            SpanRow(tuple(map(to_sympy, vector)), order, inside, outside, sources)
            for order, inside, outside, vector in result
            for sources in [places.sources(inside, outside)]
        )
        if isinstance(echelon, CaseEchelon):
            return Span(Subspace.of_echelon(echelon), rows, lowest)
        return Span(echelon.subspace(), rows, lowest)

    def conditional_order(self, subspace: Subspace) -> int | None:
        """Return k(U), the lowest degree in U^⊥ that F has on it; None if U holds V*."""
        degree = max(map(sum, self.symbol), default=0)
        return self.grow(subspace, max(degree, 1), strict=True).lowest_order

    @property
    def _field(self) -> Any:
        return self.symbol.ring.domain


class _Echelon:
    """Rows in echelon form, to which vectors are added one by one."""

    def __init__(self, field: Any, width: int, rows: Sequence[Sequence[Element]] = ()) -> None:
        self.field, self.width = field, width
        self.rows: list[tuple[int, list[Element]]] = []
        for row in rows:
            self.insert(row)

    @property
    def rank(self) -> int:
        return len(self.rows)

    def insert(self, vector: Sequence[Element]) -> bool:
        """Add a vector; tell whether it raised the rank."""
        rest = list(vector)
        for pivot, row in self.rows:
            factor = rest[pivot]
            if factor:
                rest = [a - factor * b if b else a for a, b in zip(rest, row, strict=True)]
        first = next((j for j, entry in enumerate(rest) if entry), None)
        if first is None:
            return False
        inverse = self.field.one / rest[first]
        self.rows.append((first, [reduced(entry * inverse) for entry in rest]))
        return True

    def subspace(self) -> Subspace:
        return Subspace.from_elements((row for _, row in self.rows), self.field, self.width)


class _Places:
    """The substitution ξ = (s at the pivots of U, q + Bᵀs elsewhere) in the gradient of F."""

    def __init__(self, symbol: PolyElement, subspace: Subspace) -> None:
        self.field, of_symbol, of_subspace = common_field(symbol.ring.domain, subspace.field)
        self.rows = subspace.over(self.field, of_subspace).rows
        self.pivots = subspace.pivots
        self.dimension = subspace.ambient_dimension
        free = [j for j in range(self.dimension) if j not in self.pivots]
        self.mixed = [j for j in free if any(row[j] for row in self.rows)]
        self.bound = {*self.pivots, *self.mixed}
        self.degree = max(map(sum, symbol), default=0)
        self.by_degree: dict[int, list[tuple[MultiIndex, Element]]] = {}
        for alpha, c in symbol.items():
            self.by_degree.setdefault(sum(alpha), []).append((alpha, of_symbol(c)))
        self._powers: dict[tuple[int, int], Terms] = {}

    def gradient_rows(self, order: int) -> Iterator[tuple[MultiIndex, MultiIndex, list[Element]]]:
        """Yield (exponents of s, of q, coefficient of ∇F) with degree `order` - 1 in q."""
        for degree in sorted(self.by_degree):
            rows: dict[tuple[MultiIndex, MultiIndex], list[Element]] = {}
            for alpha, c in self.by_degree[degree]:
                for i, beta in _derivatives(alpha):
                    for key, weight in self.expanded(beta, order - 1).items():
                        row = rows.setdefault(key, [self.field.zero] * self.dimension)
                        row[i] += c * alpha[i] * weight
            # Large powers of the first coordinates first: an order that does not depend on chance.
            for key in sorted(rows, reverse=True):
                yield *key, rows[key]

    def sources(self, inside: MultiIndex, outside: MultiIndex) -> tuple[MultiIndex, ...]:
        """Return the multi-indices whose gradients have the monomial."""
        result = [
            alpha
            for alpha, _ in self.by_degree.get(sum(inside) + sum(outside) + 1, [])
            for _, beta in _derivatives(alpha)
            if (inside, outside) in self.expanded(beta, sum(outside))
        ]
        return tuple(sorted(set(result), reverse=True))

    def expanded(
        self, beta: MultiIndex, outside_degree: int
    ) -> dict[tuple[MultiIndex, MultiIndex], Element]:
        """Return the terms of ξ^β of one degree in q."""
        start = tuple(beta[pivot] for pivot in self.pivots)
        start += (0,) * (len(self.rows) - len(start))
        # A column that no row of U has an entry in keeps its whole power outside.
        outside = tuple(0 if j in self.bound else n for j, n in enumerate(beta))
        left = sum(beta[j] for j in self.mixed)
        if not sum(outside) <= outside_degree <= sum(outside) + left:
            return {}
        terms = {(start, outside): self.field.one}
        for j in self.mixed:
            left -= beta[j]
            if not beta[j]:
                continue
            longer: dict[tuple[MultiIndex, MultiIndex], Element] = {}
            for (inside, outside), weight in terms.items():
                used = sum(outside)
                # What is missing has to come from here or from the factors that are left.
                for n in range(min(beta[j], outside_degree - used) + 1):
                    if used + n + left < outside_degree:
                        continue
                    binomial = math.comb(beta[j], n)
                    new_outside = (*outside[:j], n, *outside[j + 1 :])
                    for exponents, value in self.power(j, beta[j] - n).items():
                        key = (_sum(inside, exponents), new_outside)
                        added = weight * value * binomial
                        longer[key] = longer[key] + added if key in longer else added
            terms = longer
        return {key: weight for key, weight in terms.items() if weight}

    def power(self, j: int, n: int) -> Terms:
        """Return the terms of (Σ_i B_ij s_i)^n."""
        if (j, n) not in self._powers:
            if n == 0:
                self._powers[j, n] = {(0,) * len(self.rows): self.field.one}
            else:
                product: Terms = {}
                for exponents, value in self.power(j, n - 1).items():
                    for i, row in enumerate(self.rows):
                        if row[j]:
                            key = (*exponents[:i], exponents[i] + 1, *exponents[i + 1 :])
                            added = value * row[j]
                            product[key] = product[key] + added if key in product else added
                self._powers[j, n] = product
        return self._powers[j, n]


def _derivatives(alpha: MultiIndex) -> Iterator[tuple[int, MultiIndex]]:
    """Yield (i, α - e_i) for all i with α_i > 0."""
    for i, n in enumerate(alpha):
        if n:
            yield i, (*alpha[:i], n - 1, *alpha[i + 1 :])


def _sum(first: MultiIndex, second: MultiIndex) -> MultiIndex:
    return tuple(a + b for a, b in zip(first, second, strict=True))
