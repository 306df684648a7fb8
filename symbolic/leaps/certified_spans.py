r"""Directions that a target without finite expansion shows a network that knows a subspace U.

As for polynomials (:mod:`.conditional_spans`),

.. math:: \Gamma_\kappa(U) = U + \sum_{j\le\kappa} \mathrm{span}
          \{D^jF(\xi)[v_2, \dots, v_j, \cdot] : \xi \in U\},

but now the rank is bounded from two sides (derived here).

- From above: D^jF on U in normal form is :math:`\sum_m h_m(\xi)\, v_m` with functions h_m and
  vectors v_m, and its values lie in the span of the v_m. Parity, relations between the functions
  and cancellations have acted before (:mod:`.symbol_normal_form`).
- From below: Hermite coefficients along U, exact, with minors that are certified not to be zero
  (:mod:`.certified_ranks`).

Where the two agree the span is decided, else it is "undetermined beyond order K", K the Hermite
degree up to which coefficients were looked at. Coefficients of one Hermite degree stand before
monomials of one degree, so a mask of degrees selects coefficients in the second, and takes the part
of one parity in the first.

Vectors in the rows of a span are coefficients in units of the basis of U without denominators.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import sympy as sp

from ...errors import ParameterError, UndecidedError
from ..exact_fields import common_field
from ..regularity import Parity
from ..subspaces import Element, Subspace
from ..targets import HIGHEST_DEGREE, Target
from .activation_mask import DegreeMask
from .certified_ranks import CertifiedRank
from .closed_symbols import closed_symbol
from .conditional_spans import MultiIndex, Span, SpanRow
from .formal_fields import Certifier, formal_field
from .symbol_normal_form import Mode, SymbolForm
from .symbol_regions import Region
from .symbol_series import Expander, Place, places

_CHEAP_ORDERS = 2
_HIGHEST_BLIND_ORDER = 8
# Where a relation between constants is neither proven nor excluded, coefficients of higher degree
# are likely not to help, and take long.
_ENOUGH = 6

FLINT_HINT = 'install python-flint for more: pip install "giantstep[flint]"'


@dataclass(frozen=True)
class ClosedSymbolSpans:
    """Spans of a sum of products of ridge functions, decided from both sides or not at all.

    Attributes
    ----------
    target : Target
    mask : DegreeMask or None
        Hermite degrees that count; all by default.
    step : int
        Step of which the mask is taken.

    Examples
    --------
    >>> from giantstep.symbolic.targets import target
    >>> spans = ClosedSymbolSpans(target("sign(x1) + abs(x1)*x2"))
    >>> first = spans.grow(Subspace.zero(2), 1)
    >>> first.subspace, first.basis, spans.grow(first.subspace, 1).rows
    (Subspace ⟨(1, 1)⟩ of R^2, 'exact', ())
    >>> spans.grow(first.subspace, 2).subspace, spans.conditional_order(first.subspace)
    (Subspace R^2 of R^2, 2)
    """

    target: Target
    mask: DegreeMask | None = None
    step: int = 1

    @property
    def dimension(self) -> int:
        """Number of coordinates r."""
        return self.target.dimension

    @functools.cached_property
    def relevant_subspace(self) -> Subspace:
        """V*, the span of all gradients of F.

        Raises
        ------
        UndecidedError
            If it is not decided.
        """
        whole, zero = Subspace.whole(self.dimension), Subspace.zero(self.dimension)
        # The lowest orders at the origin take much less than gradients everywhere.
        if self._decided(Region(self, zero), zero, _CHEAP_ORDERS, False).subspace.is_whole:
            return whole
        span = self._decided(Region(self, whole), zero, 1, False)
        if not span.decided:
            raise UndecidedError(
                f"the directions that {self.target.name!r} depends on are {span.basis}: proven are "
                f"only {span.subspace}"
            )
        return span.subspace

    def grow(self, subspace: Subspace, highest_order: int, *, strict: bool = False) -> Span:
        """Return Γ_κ(U), or with `strict` U and the tensor of order k(U) only.

        Parameters
        ----------
        subspace : Subspace
            U.
        highest_order : int
            κ, at least 1.
        strict : bool
            Stop after the first order that adds something.
        """
        if isinstance(highest_order, bool) or not isinstance(highest_order, int | sp.Integer):
            raise ParameterError(f"order must be a whole number, got {highest_order!r}")
        if not 1 <= highest_order <= HIGHEST_DEGREE:
            raise ParameterError(f"order must be from 1 to {HIGHEST_DEGREE}, got {highest_order}")
        if subspace.ambient_dimension != self.dimension:
            raise ParameterError(
                f"subspace must be of R^{self.dimension}, got one of R^{subspace.ambient_dimension}"
            )
        if subspace.is_whole:
            return Span(subspace, (), None)
        return self._decided(Region(self, subspace), subspace, int(highest_order), strict)

    def conditional_order(self, subspace: Subspace) -> int | None:
        """Return k(U), the lowest degree in U^⊥ that F has on it; None if U holds V*.

        Raises
        ------
        UndecidedError
            If an order is neither proven to add nothing nor to add something.
        """
        if subspace.is_whole:
            return None
        highest = HIGHEST_DEGREE
        try:
            if self.relevant_subspace <= subspace:
                return None
        except UndecidedError:
            # An order that is found is right all the same.
            highest = _HIGHEST_BLIND_ORDER
        region = Region(self, subspace)
        for order in range(1, highest + 1):
            span = self._decided(region, subspace, order, True)
            if span.lowest_order is not None:
                return span.lowest_order
            if not span.decided:
                raise UndecidedError(
                    f"the lowest order that {self.target.name!r} has outside {subspace} is "
                    f"{span.basis}"
                )
        raise UndecidedError(
            f"{self.target.name!r} has no order up to {highest} outside {subspace}; higher ones "
            "are not looked at"
        )

    def admits(self, degree: int) -> bool:
        """Whether the mask lets a Hermite degree pass."""
        return self.mask is None or self.mask.admits(degree, self.step)

    @functools.cached_property
    def symbol(self) -> SymbolForm:
        """F in normal form."""
        return closed_symbol(self.target.expr, self.target.variables)

    @functools.cached_property
    def _part(self) -> SymbolForm:
        """F, or the part of it of the parity of which the mask lets all degrees pass."""
        if self.mask is None or self.mask.parity is None:
            return self.symbol
        return self.symbol.of_parity(1 if self.mask.parity is Parity.EVEN else -1)

    @functools.cached_property
    def _derivatives(self) -> dict[tuple[bool, MultiIndex], SymbolForm]:
        return {}

    def derivative(self, alpha: MultiIndex, *, masked: bool) -> SymbolForm:
        """Return ∂^α of F, or of the part of it that a parity leaves."""
        key = (masked, alpha)
        if key not in self._derivatives:
            first = next((i for i, n in enumerate(alpha) if n), None)
            if first is None:
                self._derivatives[key] = self._part if masked else self.symbol
            else:
                lower = (*alpha[:first], alpha[first] - 1, *alpha[first + 1 :])
                self._derivatives[key] = self.derivative(lower, masked=masked).diff(first)
        return self._derivatives[key]

    @property
    def has_parity(self) -> bool:
        """Whether the mask lets all degrees of one parity pass, and not of the other."""
        return self.mask is not None and self.mask.parity is not None

    def is_extra(self, degree: int) -> bool:
        """Whether a degree passes that is not of the parity of which all pass."""
        return self.has_parity and self.mask is not None and degree in self.mask.extra

    def _decided(self, region: Region, start: Subspace, highest: int, strict: bool) -> Span:
        """Return the span from Taylor polynomials of rising degree."""
        found = None
        for degree in region.degrees:
            attempt = _Attempt(region, start, degree)
            found = attempt.span(highest, strict)
            if found.decided or (degree >= _ENOUGH and attempt.is_blocked):
                break
        assert found is not None
        return found


class _Attempt:
    """The two bounds, with Taylor polynomials of one degree."""

    def __init__(self, region: Region, start: Subspace, degree: int) -> None:
        self.region, self.spans = region, region.spans
        self.start, self.degree = start, degree
        self.field = region.ring.domain
        self.embed: Callable[[Element], Element] = _same
        self.expander: Expander | None = None
        self.certifiers = [Certifier(self.field)]
        self.lower = CertifiedRank(self.certifiers[0], self.spans.dimension)
        self.upper = CertifiedRank(self.certifiers[0], self.spans.dimension)
        if start.rows:
            for bound in (self.lower, self.upper):
                bound.start_with(region.rows, region.pivots)

    def span(self, highest: int, strict: bool) -> Span:
        rows: list[SpanRow] = []
        lowest: int | None = None
        decided, order = True, 0
        for order in range(1, highest + 1):
            before = self.lower.rank
            self._bound(order, rows)
            agree = self._agree
            if lowest is None:
                if self.lower.rank > before:
                    lowest = order
                decided = agree or (lowest is not None and not strict)
                if not decided:
                    break
            if self.lower.rank == self.spans.dimension or (strict and lowest):
                break
        return self._result(rows, lowest, decided and self._agree, order)

    @property
    def needs_flint(self) -> bool:
        """Whether python-flint would have given answers that are missing."""
        return any(certifier.needs_flint for certifier in self.certifiers)

    @property
    def is_blocked(self) -> bool:
        """Whether a vector was left out as neither dependent nor independent."""
        return self.needs_flint or self.lower.is_unclear

    @property
    def _agree(self) -> bool:
        if self.lower.rank == self.spans.dimension:
            return True
        return self.lower.rank == self.upper.rank and not self.upper.is_unclear

    def _bound(self, order: int, rows: list[SpanRow]) -> None:
        """Add what an order gives to both bounds."""
        expected = list(self.region.outside(order))
        plain = {q: self.region.gradient(q, masked=False) for q in expected}
        masked = {q: self.region.gradient(q, masked=True) for q in expected}
        self._extend([form for part in (plain, masked) for q in expected for form in part[q]])
        found = sorted(
            (row for q in expected for row in self._coefficients(q, plain[q], order)),
            key=lambda row: (sum(row[0]), [-n for n in (*row[0], *row[1])]),
        )
        if self._is_exhausted:
            for _, _, vector in found:
                self.upper.insert(vector)
        else:
            for q in expected:
                for vector in self._modes(masked[q]):
                    self.upper.insert(vector)
            for inside, _, vector in found:
                if self.spans.is_extra(sum(inside) + order):
                    self.upper.insert(vector)
        for inside, outside, vector in found:
            if self._agree:
                break
            if self.lower.insert(vector):
                shown = tuple(self.field.to_sympy(entry) for entry in vector)
                sources = self.region.sources(inside, outside)
                rows.append(SpanRow(shown, order, inside, outside, sources))

    @property
    def _is_exhausted(self) -> bool:
        """Whether the coefficients up to the degree are all there are."""
        mask = self.spans.mask
        return not self.region.rows or (mask is not None and mask.is_finite)

    def _extend(self, forms: Iterable[SymbolForm]) -> None:
        """Make the field hold all constants of the forms."""
        ring = self.region.ring
        needed: dict[Place, sp.Expr] = places(forms, self.degree)
        constants, elements = formal_field(needed.values())
        field, old, new = common_field(self.field, constants)
        if field != self.field:
            self.certifiers.append(Certifier(field))
            self.lower = self.lower.over(self.certifiers[-1], old)
            self.upper = self.upper.over(self.certifiers[-1], old)
            self.field, before = field, self.embed
            self.embed = functools.cache(lambda element: old(before(element)))
        values = {place: new(element) for place, element in zip(needed, elements, strict=True)}
        larger = ring.clone(domain=field)
        self.expander = Expander(self.region.setting, larger, self.embed, values, self.degree)

    def _coefficients(
        self, outside: MultiIndex, gradient: Sequence[SymbolForm], order: int
    ) -> Iterator[tuple[MultiIndex, MultiIndex, list[Element]]]:
        """Yield (exponents of s, of q, coefficient of ∇F) for the degrees that pass."""
        assert self.expander is not None
        weight = self.field.convert_from(
            sp.QQ(1, math.prod(math.factorial(n) for n in outside)), sp.QQ
        )
        components = [self.expander.polynomial(form) for form in gradient]
        monomials = {monomial for component in components for monomial in component}
        for monomial in monomials:
            if self.spans.admits(sum(monomial) + order):
                zero = self.field.zero
                vector = [component.get(monomial, zero) * weight for component in components]
                yield monomial[: len(self.region.rows)], outside, vector

    def _modes(self, gradient: Sequence[SymbolForm]) -> list[list[Element]]:
        """Return the vectors before the functions of the normal form."""
        assert self.expander is not None
        vectors: dict[tuple[Mode, MultiIndex], list[Element]] = {}
        for i, form in enumerate(gradient):
            for mode, p in form.terms.items():
                kept, value = self.expander.split(mode)
                for monomial, c in p.items():
                    vector = vectors.setdefault((kept, monomial), [self.field.zero] * len(gradient))
                    vector[i] += self.embed(c) * value
        return list(vectors.values())

    def _result(self, rows: list[SpanRow], lowest: int | None, decided: bool, order: int) -> Span:
        try:
            # The same span, but the vectors of the normal form are shorter.
            bound = self.upper if decided and self.upper.rank == self.lower.rank else self.lower
            subspace = bound.subspace() if rows else self.start
        except UndecidedError:
            subspace, decided = self.start, False
        checked = self.degree + order
        if decided:
            certified = any(certifier.used_enclosures for certifier in self.certifiers)
            basis = "certified" if certified else "exact"
        else:
            basis = f"undetermined beyond order {checked}"
            if self.needs_flint:
                basis += f"; {FLINT_HINT}"
        return Span(subspace, tuple(rows), lowest, decided, checked, basis)


def _same(element: Element) -> Element:
    return element
