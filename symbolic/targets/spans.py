r"""The spans that leaps and staircases are made of, for any target.

Directions that a target without finite expansion shows a network that knows a subspace U are, as
for polynomials (:mod:`.conditional_spans`),

.. math:: \Gamma_\kappa(U) = U + \sum_{j\le\kappa} \mathrm{span}
          \{D^jF(\xi)[v_2, \dots, v_j, \cdot] : \xi \in U\},

but now the rank is bounded from two sides (derived here). From above, D^jF on U in normal form
(:mod:`.closed_symbols`) is :math:`\sum_m h_m(\xi)\, v_m` with functions h_m, and its values lie in
the span of the vectors v_m. From below, Hermite coefficients along U, which are Taylor coefficients
of :math:`F(\xi) = \sum_\alpha (\mu_\alpha/\alpha!)\,\xi^\alpha` over a field that holds the values
of all error functions and open symbols, have minors that intervals keep away from zero. Where the
two agree the span is decided, else it is "undetermined beyond order K", K the Hermite degree up to
which coefficients were looked at. A mask of degrees selects coefficients in the second, and takes
the part of one parity in the first. With the basis B of U in echelon form, a point of R^r is s at
the pivots of U and :math:`q_j + \sum_i B_{ij} s_i` elsewhere: derivatives go along the axes of q,
and the restriction to U is ξ = Bᵀs. Over functions of constants vectors are multiplied by their
denominators and ranks come from minors, because elimination brings in quotients whose common
divisors take longer than anything else. Vectors in the rows of a span are coefficients in units of
the basis of U without denominators.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.polys.orderings import lex
from sympy.polys.rings import PolyElement, PolyRing

from ...errors import UndecidedError
from ..exact.constant_enclosures import NoEnclosure
from ..exact.fields import common_field, formal_field
from ..exact.series import truncated, truncated_product
from ..expressions.regularity import Parity
from ..gaussian.hermite_polynomials import index_factorial
from .activation_mask import DegreeMask
from .cases import minor
from .closed_symbols import Erf, Factor, Mode, Open, OpenKernel, Setting, SymbolForm, closed_symbol
from .conditional_spans import (
    HIGHEST_DEGREE,
    MultiIndex,
    PolynomialSpans,
    Span,
    SpanRow,
    SpanSource,
    require_growth,
)
from .formal_fields import Certifier, excludes_zero
from .subspaces import Element, Subspace

if TYPE_CHECKING:
    from .target import Target

Vector = Sequence[Element]

# Longer quotients of polynomials become generators themselves: common divisors of such can take
# minutes. Relations with other constants are then lost, which may leave a rank undecided.
_MOST_TERMS, _HIGHEST_DEGREE = 6, 24


class CertifiedRank:
    """Vectors that are proven to be independent.

    `vectors`: the vectors, in the order in which they were added. `is_unclear`: whether one was
    left out that is neither proven to be independent of the others nor the contrary.
    """

    def __init__(self, certifier: Certifier, width: int) -> None:
        self.certifier, self.width = certifier, width
        self.vectors: list[Vector] = []
        self.is_unclear = False
        self._pivots: list[int] = []
        # Over numbers the echelon form, over functions the numerators.
        self._rows: list[list[Any]] = []

    @property
    def rank(self) -> int:
        """Number of vectors."""
        return len(self.vectors)

    def start_with(self, rows: Sequence[Vector], pivots: Sequence[int]) -> None:
        """Take the rows of a reduced echelon form, or multiples of them, as they are."""
        self.vectors, self._pivots = list(rows), list(pivots)
        functions = self.certifier.field.is_FractionField
        self._rows = [cleared(row) if functions else list(row) for row in rows]

    def insert(self, vector: Vector) -> bool:
        """Add a vector if it is proven to be independent of those before; tell whether it is."""
        if self.certifier.field.is_FractionField:
            row = cleared(vector)
            pivot = self._pivot_of_functions(row)
        else:
            row = self._reduced(vector)
            pivot = next((j for j, entry in enumerate(row) if entry), None)
        if pivot is None:
            return False
        self.vectors.append(vector)
        self._pivots.append(pivot)
        self._rows.append(row)
        return True

    def _reduced(self, vector: Vector) -> list[Any]:
        reduced = list(vector)
        for pivot, row in zip(self._pivots, self._rows, strict=True):
            factor = reduced[pivot] / row[pivot] if reduced[pivot] else None
            if factor:
                reduced = [a - factor * b if b else a for a, b in zip(reduced, row, strict=True)]
        return reduced

    def _pivot_of_functions(self, row: list[Any]) -> int | None:
        columns = [j for j in range(self.width) if j not in self._pivots]
        if not columns or not any(row):
            return None
        rows = [*self._rows, row]
        if all(self._has_interval(entry) for part in rows for entry in part):
            intervals = [[self.certifier.interval(entry) for entry in part] for part in rows]
            for j in columns:
                if excludes_zero(minor(intervals, [*self._pivots, j])):
                    self.certifier.used_enclosures |= not self.certifier.is_exact
                    return j
        unclear = []
        for j in columns:
            value = minor(rows, [*self._pivots, j])
            zero = self.certifier.numerator_vanishes(value)
            if zero is False:
                return j
            if zero is None:
                unclear.append((j, value))
        case = self.certifier.case
        if case is not None and unclear:
            minors = {j: self.certifier.expression(value) for j, value in unclear}
            if case.decide(minors.values()):
                return None
            return next(j for j, value in minors.items() if not case.decide([value]))
        self.is_unclear = self.is_unclear or bool(unclear)
        return None

    def _has_interval(self, entry: Any) -> bool:
        try:
            self.certifier.interval(entry)
        except NoEnclosure:
            return False
        return True

    def over(self, certifier: Certifier, embed: Callable[[Element], Element]) -> CertifiedRank:
        """Return the same vectors over the larger field of another certifier."""
        result = CertifiedRank(certifier, self.width)
        result.is_unclear, result._pivots = self.is_unclear, list(self._pivots)
        result.vectors = [[embed(entry) for entry in vector] for vector in self.vectors]
        if certifier.field.is_FractionField:
            result._rows = [cleared(vector) for vector in result.vectors]
        else:
            result._rows = [[embed(entry) for entry in row] for row in self._rows]
        return result

    def subspace(self) -> Subspace:
        """Return the span of the vectors, in the smallest field.

        Raises UndecidedError if a pivot of the reduced echelon form is neither proven to be zero
        nor not to be.
        """
        if self.rank == self.width:
            return Subspace.whole(self.width)
        field = self.certifier.field
        if not field.is_FractionField or not self.vectors:
            return Subspace.from_elements(self._rows, field, self.width, self.certifier.case)
        rows = self._rows
        # The first columns that are independent are the pivots of the reduced form.
        columns = CertifiedRank(self.certifier, self.rank)
        pivots = []
        for j in range(self.width):
            if columns.insert([field(row[j]) for row in rows]):
                pivots.append(j)
            elif columns.is_unclear:
                raise UndecidedError(
                    f"whether coordinate {j + 1} is a pivot of the span cannot be decided"
                )
        determinant = minor(rows, pivots)
        numbers: list[sp.Expr] = []
        names: list[sp.Expr] = []
        for i, j in itertools.product(range(self.rank), range(self.width)):
            value = minor(rows, [*pivots[:i], j, *pivots[i + 1 :]])
            if self.certifier.case is None:
                result = _quotient(field, value, determinant)
            else:
                result = field(value) / field(determinant)
            if isinstance(result, sp.Expr):
                names.append(result)
            numbers.append(result if isinstance(result, sp.Expr) else field.to_sympy(result))
        smaller, entries = formal_field(numbers, names=names)
        entries = [_monic(smaller, entry) for entry in entries]
        starts = range(0, len(entries), self.width)
        basis = tuple(tuple(entries[i : i + self.width]) for i in starts)
        return Subspace(smaller, basis, self.width, self.certifier.case)


def cleared(vector: Vector) -> list[Any]:
    """Return the numerators of a vector over one denominator."""
    denominators = list(dict.fromkeys(entry.denom for entry in vector))
    common = functools.reduce(lambda a, b: a if a == b else _common_multiple(a, b), denominators)
    return [
        entry.numer if entry.denom == common else entry.numer * common.exquo(entry.denom)
        for entry in vector
    ]


def _common_multiple(a: Any, b: Any) -> Any:
    if len(a) == len(b) == 1:
        (first,), (second,) = a.monoms(), b.monoms()
        return a.ring.from_dict({tuple(map(max, first, second)): a.ring.domain.one})
    return a * b


def _quotient(field: Any, numerator: Any, denominator: Any) -> Element | sp.Expr:
    """Return a quotient as an element, or as a number of its own if that is long."""
    if not numerator:
        return field.zero
    if numerator.keys() == denominator.keys():
        ratio = numerator.LC / denominator.LC
        if numerator == denominator * ratio:
            return field(ratio)
    terms = len(numerator) + len(denominator)
    degree = max(sum(monomial) for part in (numerator, denominator) for monomial in part)
    if len(denominator) > 1 and (terms > _MOST_TERMS or degree > _HIGHEST_DEGREE):
        common = tuple(map(min, *numerator, *denominator))
        parts = (
            part.ring.from_dict(
                {tuple(a - b for a, b in zip(m, common, strict=True)): c for m, c in part.items()}
            )
            for part in (numerator, denominator)
        )
        first, second = (field.to_sympy(field(part)) for part in parts)
        return first / second
    return field(numerator) / field(denominator)


def _monic(field: Any, element: Element) -> Element:
    """Return the element with leading coefficient 1 below; SymPy leaves 3/3 over QQ<sqrt(2)>."""
    if not field.is_FractionField or not field.domain.is_Algebraic:
        return element
    inverse = field.domain.one / element.denom.LC
    parts = (part.mul_ground(inverse) for part in (element.numer, element.denom))
    return field.field.raw_new(*parts)


Place = tuple[OpenKernel, int] | Element
"""What has a value: a derivative of an open symbol at 0, or the constant b of erf(b)."""


def places(forms: Iterable[SymbolForm], degree: int) -> dict[Place, sp.Expr]:
    """Return the constants in Taylor polynomials up to a degree, as exact numbers.

    `degree`: 0 for the values of functions of nothing, which restriction to a subspace leaves.
    """
    result: dict[Place, sp.Expr] = {}
    for form in forms:
        to_sympy = form.setting.ring.domain.to_sympy
        for factor in {factor for mode in form.terms for factor, _ in mode.factors}:
            if isinstance(factor, Erf):
                b = factor.form.coeff(1)
                if b and b not in result:
                    result[b] = sp.erf(to_sympy(b))
                continue
            highest = factor.order + (degree // _degree(factor.form) if factor.form else 0)
            for n in range(factor.order, highest + 1):
                if (factor.kernel, n) not in result:
                    result[factor.kernel, n] = factor.kernel.moment(n)
    return result


def _degree(form: PolyElement) -> int:
    return max(1, *map(sum, form))


class Expander:
    """Taylor polynomials over a field that holds all constants.

    `setting`: that of the forms to be expanded. `ring`: ring of the results: the same variables
    over the larger field. `embed`: takes elements of the smaller field to the larger one. `values`:
    elements by place. `degree`: up to which terms are kept.
    """

    def __init__(
        self,
        setting: Setting,
        ring: PolyRing,
        embed: Callable[[Element], Element],
        values: Mapping[Place, Element],
        degree: int,
    ) -> None:
        self.setting, self.ring, self.embed = setting, ring, embed
        self.values, self.degree = values, degree
        self._series: dict[Any, PolyElement] = {}

    def polynomial(self, form: SymbolForm) -> PolyElement:
        """Return the Taylor polynomial."""
        total = self.ring.zero
        for mode, p in form.terms.items():
            total = total + self._product(self.lifted(p), self.of_mode(mode))
        return total

    def split(self, mode: Mode) -> tuple[Mode, Element]:
        """Return a mode without its factors that are constant, and the value of these."""
        value = self.ring.domain.one
        left = []
        for factor, n in mode.factors:
            if any(sum(monomial) for monomial in factor.form):
                left.append((factor, n))
            else:
                value = value * self.value(factor) ** n
        return mode._replace(factors=frozenset(left)), value

    def value(self, factor: Factor, raised: int = 0) -> Element:
        """Return the value of a factor, or of a derivative of an open one, where its form is b."""
        if isinstance(factor, Open):
            return self.values[factor.kernel, factor.order + raised]
        b = factor.form.coeff(1)
        return self.values[b] if b else self.ring.domain.zero

    def of_mode(self, mode: Mode) -> PolyElement:
        """Return the Taylor polynomial of a mode."""
        if mode not in self._series:
            series = self.ring.one
            if mode.exponent:
                series = self.along(self.lifted(mode.exponent), itertools.repeat(series))
            if mode.frequency:
                sine = self.sine(self.lifted(mode.frequency), mode.is_sine)
                series = self._product(series, sine)
            for factor, n in mode.factors:
                power = self.of_factor(factor)
                for _ in range(n):
                    series = self._product(series, power)
            self._series[mode] = series
        return self._series[mode]

    def of_factor(self, factor: Factor) -> PolyElement:
        """Return the Taylor polynomial of an error function or an open symbol."""
        if factor not in self._series:
            b = factor.form.coeff(1)
            line = self.lifted(factor.form - b)
            coefficients: Iterable[Element]
            if isinstance(factor, Open):
                highest = self.degree // _degree(line) if line else 0
                coefficients = (self.value(factor, k) for k in range(highest + 1))
            else:
                coefficients = self._of_erf(factor, self.embed(b))
            self._series[factor] = self.along(line, coefficients)
        return self._series[factor]

    def _of_erf(self, factor: Erf, b: Element) -> Iterator[Element]:
        """Yield the derivatives of erf at b: -density (-1)^n H_{n-1}(b), H the physicists'."""
        yield self.value(factor)
        density = self.embed(self.setting.densities[factor.form.coeff(1)])
        before, polynomial = self.ring.domain.zero, self.ring.domain.one
        sign = 1
        for n in range(self.degree):
            yield density * polynomial * sign
            before, polynomial = polynomial, b * polynomial * 2 - before * (2 * n)
            sign = -sign

    def along(self, line: PolyElement, derivatives: Iterable[Element]) -> PolyElement:
        """Return Σ c_n line^n/n!, of a polynomial without constant term."""
        total, power = self.ring.zero, self.ring.one
        for n, c in enumerate(derivatives):
            if c:
                total = total + power * c
            power = self._product(power, line) * self._inverse(n + 1)
            if not power:
                break
        return total

    def sine(self, frequency: PolyElement, is_sine: bool) -> PolyElement:
        """Return the sine or cosine of a linear form."""
        one = self.ring.domain.one
        cosines = itertools.cycle((one, one * 0, -one, one * 0))
        return self.along(frequency, itertools.islice(cosines, 3 if is_sine else 0, None))

    def lifted(self, p: PolyElement) -> PolyElement:
        """Return a polynomial over the larger field, without the terms beyond the degree."""
        return self.ring.from_dict({m: self.embed(c) for m, c in truncated(p, self.degree).items()})

    def _product(self, first: PolyElement, second: PolyElement) -> PolyElement:
        return truncated_product(first, second, self.degree)

    def _inverse(self, n: int) -> Element:
        return self.ring.domain.convert_from(sp.QQ(1, n), sp.QQ)


# Taylor polynomials are taken up to these degrees, one after the other, but no longer than this.
_DEGREES = (1, 3, 6, 10, 16, 24)
_MOST_MONOMIALS = 1500


class Region:
    """Tensors of F on a subspace U, with ξ = (s at the pivots of U, Bᵀs elsewhere).

    `spans`: what has F. `subspace`: U. Its basis is taken in multiples without denominators: s is
    then in their units.
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
        remaining = [n for n in _DEGREES if n > lowest and math.comb(n + d, d) <= _MOST_MONOMIALS]
        return (lowest, *remaining)

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
        result = set()
        for alpha in self.spans.target.he_coefficients(degree):
            for i, n in enumerate(alpha):
                beta = (*alpha[:i], n - 1, *alpha[i + 1 :])
                if n and alpha not in result and self._has_monomial(beta, inside, outside):
                    result.add(alpha)
        return tuple(sorted(result, reverse=True))

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


_CHEAP_ORDERS = 2
_HIGHEST_BLIND_ORDER = 8
# Where a relation between constants is neither proven nor excluded, coefficients of higher degree
# are likely not to help, and take long.
_ENOUGH = 6

FLINT_HINT = 'install python-flint for more: pip install "giantstep[flint]"'


@dataclass(frozen=True)
class ClosedSymbolSpans:
    """Spans of a sum of products of ridge functions, decided from both sides or not at all.

    `mask`: Hermite degrees that count; all by default. `step`: step of which the mask is taken.

    Examples
    --------
    >>> from giantstep.symbolic.targets.target import target
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

        Raises UndecidedError if it is not decided.
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

        `subspace`: U. `highest_order`: κ, at least 1. `strict`: stop after the first order that
        adds something.
        """
        require_growth(subspace, highest_order, self.dimension, HIGHEST_DEGREE)
        if subspace.is_whole:
            return Span(subspace, (), None)
        return self._decided(Region(self, subspace), subspace, int(highest_order), strict)

    def conditional_order(self, subspace: Subspace) -> int | None:
        """Return k(U), the lowest degree in U^⊥ that F has on it; None if U holds V*.

        Raises UndecidedError if an order is neither proven to add nothing nor to add something.
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
        result = None
        for degree in region.degrees:
            attempt = _Attempt(region, start, degree)
            result = attempt.span(highest, strict)
            if result.decided or (degree >= _ENOUGH and attempt.is_blocked):
                break
        assert result is not None
        return result


class _Attempt:
    """The two bounds, with Taylor polynomials of one degree."""

    def __init__(self, region: Region, start: Subspace, degree: int) -> None:
        self.region, self.spans = region, region.spans
        self.start, self.degree = start, degree
        self.field = region.ring.domain
        self.embed: Callable[[Element], Element] = _same
        self.expander: Expander | None = None
        self.certifiers = [Certifier(self.field, self.spans.target.case)]
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
        result = sorted(
            (row for q in expected for row in self._coefficients(q, plain[q], order)),
            key=lambda row: (sum(row[0]), [-n for n in (*row[0], *row[1])]),
        )
        if self._is_exhausted:
            for _, _, vector in result:
                self.upper.insert(vector)
        else:
            for q in expected:
                for vector in self._modes(masked[q]):
                    self.upper.insert(vector)
            for inside, _, vector in result:
                if self.spans.is_extra(sum(inside) + order):
                    self.upper.insert(vector)
        for inside, outside, vector in result:
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
            self.certifiers.append(Certifier(field, self.spans.target.case))
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
        weight = self.field.convert_from(sp.QQ(1, index_factorial(outside)), sp.QQ)
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
                remaining, value = self.expander.split(mode)
                for monomial, c in p.items():
                    vector = vectors.setdefault(
                        (remaining, monomial), [self.field.zero] * len(gradient)
                    )
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


@functools.lru_cache(maxsize=16)
def spans_of(target: Target, mask: DegreeMask | None = None, *, step: int = 1) -> SpanSource:
    """Return what a target shows at a given subspace.

    `mask`: Hermite degrees of the target that a student can use; all of them by default. `step`:
    step of which the mask is taken, from 1: at the first one all |w| are 1. The result: exact for
    polynomials; for other targets ranks are certified from both sides, or stated to be
    undetermined. What was worked out for a target is kept for the next call.
    """
    if target.is_polynomial:
        element = target.expansion.symbol_element
        element = element if mask is None else mask.restrict(element, step)
        return PolynomialSpans(element, target.case)
    return ClosedSymbolSpans(target, mask, step=step)
