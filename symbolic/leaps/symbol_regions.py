r"""Tensors of a symbol in closed form on a subspace.

With the basis B of U in echelon form, a point of R^r is s at the pivots of U and
:math:`q_j + \sum_i B_{ij} s_i` elsewhere. D^jF on U takes derivatives along the axes of q, which
only the coordinates off the pivots contain, and the restriction ξ = Bᵀs.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import sympy as sp
from sympy.polys.orderings import lex
from sympy.polys.rings import PolyRing

from ..exact_fields import common_field
from ..subspaces import Subspace
from .certified_ranks import cleared
from .conditional_spans import MultiIndex
from .symbol_normal_form import SymbolForm

if TYPE_CHECKING:
    from .certified_spans import ClosedSymbolSpans

# Taylor polynomials are taken up to these degrees, one after the other, but no longer than this.
_DEGREES = (1, 3, 6, 10, 16, 24)
_MOST_MONOMIALS = 1500


class Region:
    """Tensors of F on a subspace U, with ξ = (s at the pivots of U, Bᵀs elsewhere).

    Parameters
    ----------
    spans : ClosedSymbolSpans
        What has F.
    subspace : Subspace
        U. Its basis is taken in multiples without denominators: s is then in their units.
    """

    def __init__(self, spans: ClosedSymbolSpans, subspace: Subspace) -> None:
        self.spans, self.subspace = spans, subspace
        setting = spans.symbol.setting
        field, of_symbol, of_subspace = common_field(setting.ring.domain, subspace.field)
        self._of_symbol = functools.cache(of_symbol)
        rows = subspace.over(field, of_subspace).rows
        # Multiples of the basis without denominators keep the coefficients short.
        self.rows = [
            [field(entry) for entry in cleared(row)] if field.is_FractionField else list(row)
            for row in rows
        ]
        self.pivots = subspace.pivots
        self.free = [j for j in range(spans.dimension) if j not in self.pivots]
        # One variable at least, because there is no ring without.
        self.ring = PolyRing(sp.symbols(f"s1:{max(len(self.rows), 1) + 1}"), field, lex)
        self.images = [
            sum(
                (s * row[i] for s, row in zip(self.ring.gens, self.rows, strict=False)),
                self.ring.zero,
            )
            for i in range(spans.dimension)
        ]
        self.setting = setting.moved(self.ring, self._of_symbol)
        self._forms: dict[tuple[bool, MultiIndex], SymbolForm] = {}

    @property
    def degrees(self) -> tuple[int, ...]:
        """Degrees of Taylor polynomials to be tried."""
        if not self.rows:
            return (0,)
        mask, d = self.spans.mask, len(self.rows)
        # All coefficients have to be seen of degrees that pass one by one.
        lowest = max([2, *(mask.extra if mask is not None else ())]) - 1
        kept = [n for n in _DEGREES if n > lowest and math.comb(n + d, d) <= _MOST_MONOMIALS]
        return (lowest, *kept)

    def form(self, alpha: MultiIndex, *, masked: bool) -> SymbolForm:
        """Return ∂^αF on U."""
        key = (masked and self.spans.has_parity, alpha)
        if key not in self._forms:
            form = self.spans.derivative(alpha, masked=key[0])
            self._forms[key] = form.moved(self.setting, self._of_symbol, self.images)
        return self._forms[key]

    def sources(self, inside: MultiIndex, outside: MultiIndex) -> tuple[MultiIndex, ...]:
        """Return the multi-indices of the Hermite terms whose gradients have a monomial."""
        degree = sum(inside) + sum(outside) + 1
        found = set()
        for alpha in self.spans.target.he_coefficients(degree):
            for i, n in enumerate(alpha):
                beta = (*alpha[:i], n - 1, *alpha[i + 1 :])
                if n and alpha not in found and self._has_monomial(beta, inside, outside):
                    found.add(alpha)
        return tuple(sorted(found, reverse=True))

    def _has_monomial(self, beta: MultiIndex, inside: MultiIndex, outside: MultiIndex) -> bool:
        """Whether ξ^β has s^inside q^outside."""
        left = [n - m for n, m in zip(beta, outside, strict=True)]
        if min(left) < 0:
            return False
        product = self.ring.one
        for image, n in zip(self.images, left, strict=True):
            if n:
                product = product * image**n
        padded = (*inside, *(0 for _ in range(len(self.ring.gens) - len(inside))))
        return bool(product.get(padded))

    def outside(self, order: int) -> Iterator[MultiIndex]:
        """Yield the exponents of q of a total order, high powers of the first axes first."""
        for axes in itertools.combinations_with_replacement(self.free or (0,), order - 1):
            yield tuple(axes.count(j) for j in range(self.spans.dimension))

    def gradient(self, outside: MultiIndex, *, masked: bool) -> list[SymbolForm]:
        """Return ∇∂_q^γ F on U."""
        return [
            self.form(tuple(n + (i == j) for j, n in enumerate(outside)), masked=masked)
            for i in range(self.spans.dimension)
        ]
