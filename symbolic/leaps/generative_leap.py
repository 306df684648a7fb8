r"""The generative leap: the lowest order at which some transform of the label shows a direction.

One index (Damian, Pillaud-Vivien, Lee, Bruna, arXiv 2403.05529): the generative exponent is
:math:`k^* = \min\{k \ge 1 : \mathbb{E}[\mathrm{He}_k(z) \mid y] \not\equiv 0\}`, the lowest
information exponent of any T(y). Several (Damian, Lee, Bruna, arXiv 2506.05500): the greedy run of
:func:`.isotropic_leap` with :math:`\mathbb{E}[\text{order-}k\text{ tensor in } U^\perp \mid y,
x_U]`; it is at most the rotation-invariant leap, which only uses T(y) = y. Bounds are computed,
with certificates (derived here).

- Above, a greedy run in which each step names its transform: y itself; y² to y⁴ at points of U; or
  the indicator of y > M, which decides one missing direction n of a polynomial: given x_U, y is a
  polynomial of one variable, and if it is not even, the order is 1. (Else the odd measure zφ(z)dz
  would be mapped to 0 by y. For large \|y\| an odd degree has one preimage; an even degree has two,
  and φ(z_+) = φ(z_-), so that y is even.)
- Below, 1 always; 2 if a non-trivial orthogonal map of V* leaves f invariant (:mod:`.symmetries`),
  or if a label of one direction depends on :math:`|z|\varphi(z)` alone (then :math:`\mathbb{E}[T(y)
  \mathrm{He}_2] = -\int T(y)\,d(z\varphi) = 0` along a closed path on either half-line, which gives
  z² exp(-z²) the exponent 4 of Damian et al.); the rotation-invariant leap if y has two values, as
  every T is then affine.

Given :math:`x_U = u`, y is a polynomial in the Gaussian vector q of :math:`W = V^* \cap U^\perp`,
and by Stein's lemma :math:`\mathbb{E}[y^p q] = \mathbb{E}[\nabla_q y^p]` and
:math:`\mathbb{E}[y^p (q q^T - P_W)] = \mathbb{E}[\nabla_q^2 y^p]` are inner products of Hermite
coefficients in which y² is the only power that is multiplied out. Both are polynomials in u, so
that single rational points suffice. All is done without denominators: W has an orthogonal basis n_a
of integer vectors and :math:`q = \sum_a n_a t_a/|n_a|^2`, where t_a has the variance \|n_a\|².
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy as sp
from sympy.polys.rings import PolyElement

from ...errors import AssumptionError, GiantstepError, UndecidedError, UnsupportedExpressionError
from ...pages import Block
from ...result import Result, quantity
from ..exact.fields import common_field
from ..expressions._singularities import expanded
from ..expressions.boundedness import far_out
from ..expressions.functions import relu
from ..expressions.regularity import Parity, analyse
from ..gaussian.hermite_polynomials import pairings
from ..hermite.heat_flow import function_of
from ..hermite.tensors import composed
from ..targets.cases import without_splitting
from ..targets.conditional_spans import MultiIndex, SpanRow, SpanSource
from ..targets.formal_fields import spanned
from ..targets.spans import spans_of
from ..targets.subspaces import Element, Subspace, reduced, vector_text
from ..targets.target import Target, target as read_target
from .leap_index import asked_of_targets, isotropic_leap, leap_index
from .symmetries import find_symmetry, is_invariant_in, reflection_in

HIGHEST_POWER = 4
# y² is not used if it takes more products of two terms, in integers or in a larger field.
_MOST_INTEGER_PRODUCTS = 400_000
_MOST_PRODUCTS = 20_000
_LARGEST_LABEL = 100_000

Terms = dict[MultiIndex, Element]


@dataclass(frozen=True)
class Signal:
    """Vectors that a power of the label shows.

    `power`: p of T(y) = y^p. `order`: 1 for E[y^p q], 2 for the rows of E[y^p (q qᵀ - P)]. `point`:
    u, in R^r. `vectors`: in R^r, exact.
    """

    power: int
    order: int
    point: tuple[sp.Expr, ...]
    vectors: tuple[tuple[sp.Expr, ...], ...]


class LabelMoments:
    """Conditional moments of the powers of a polynomial label.

    `symbol`: F, the symbol of the target. `relevant`: V*.

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

        `subspace`: U, part of V*. `power`: 1 to `HIGHEST_POWER`. `order`: 1 or 2.
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
        return composed(cleared, images, ring)

    def vectors(self, power: int, order: int) -> tuple[tuple[sp.Expr, ...], ...]:
        """Return E[y^p q], or the rows of E[y^p (q qᵀ - P)]; without those that vanish."""
        result = []
        unit = self.field.one / self.field.convert_from(self.factor**power, self.domain)
        for coefficients in self._derivatives(power, order):
            if not any(coefficients):
                continue
            total = [self.domain.zero] * len(self.point)
            for c, row in zip(coefficients, self.basis, strict=True):
                total = [a + c * b for a, b in zip(total, row, strict=True)]
            values = (self.field.convert_from(entry, self.domain) * unit for entry in total)
            result.append(tuple(self.field.to_sympy(reduced(value)) for value in values))
        return tuple(result)

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
                # A power n of one coordinate has n//2 + 1 Hermite terms: (x1 ... xr)² has 2^r, and
                # all of them enter every second derivative.
                terms = sum(math.prod(n // 2 + 1 for n in alpha) for alpha in label)
                if terms * len(self.lengths) ** 2 > 2 * most:
                    label = label.ring.zero
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

    `domain`: ZZ for QQ, polynomials for their fractions; an algebraic field is left as it is.
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
    result: list[list[Element]] = []
    for row in rows:
        vector = list(row)
        for known in result:
            overlap = sum((a * b for a, b in zip(vector, known, strict=True)), field.zero)
            if overlap:
                factor = overlap / sum((b * b for b in known), field.zero)
                vector = [a - factor * b for a, b in zip(vector, known, strict=True)]
        result.append(vector)
    return result


def _point(
    rows: Sequence[Sequence[Element]], number: int, dimension: int, domain: Any
) -> list[Element]:
    """Return one of a few points of small integers in general position."""
    total = [domain.zero] * dimension
    for i, row in enumerate(rows):
        step = (2 * i + 3 * number) % 5 - 2 or 1
        total = [a + b * step for a, b in zip(total, row, strict=True)]
    return total


def _flow(terms: Terms, variances: Sequence[Element]) -> Terms:
    """Return the Hermite coefficients of a polynomial in Gaussian variables of these variances."""
    for a, variance in enumerate(variances):
        result: Terms = {}
        for alpha, c in terms.items():
            n = alpha[a]
            for j, count in enumerate(pairings(n)):
                lower = (*alpha[:a], n - 2 * j, *alpha[a + 1 :])
                added = c * count * variance**j
                result[lower] = result[lower] + added if lower in result else added
        terms = result
    return terms


def _derivative(terms: Terms, a: int) -> Terms:
    return {
        (*alpha[:a], alpha[a] - 1, *alpha[a + 1 :]): c * alpha[a]
        for alpha, c in terms.items()
        if alpha[a]
    }


_POWERS_OF_OTHERS = (2, 3)
_HIGHEST_ORDER_OF_OTHERS = 12


@dataclass(frozen=True)
class GenerativeStep:
    """One step of the run that proves the upper bound.

    Attributes
    ----------
    order : int
        Order of the tensor that does not vanish.
    transform : str
        T(y).
    witness : str
        What it shows, and how that is known.
    subspace : Subspace
        The directions that are known after the step.
    coefficients : tuple of tuple of Expr
        Vectors that are not zero: of the tensor of this order for T(y) = y, expectations for powers
        of y of a polynomial; empty for an indicator. `repr` leaves them out, as there are many.
    """

    order: int
    transform: str
    witness: str
    subspace: Subspace
    coefficients: tuple[tuple[sp.Expr, ...], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class GenerativeLeap(Result):
    """Bounds of the generative leap, with their certificates.

    Attributes
    ----------
    target : str
        Name of the target.
    lower : int
        A proven lower bound.
    upper : int or None
        A proven upper bound; None if the run did not reach all relevant directions.
    lower_certificate : str
        Why it is not less.
    steps : tuple of GenerativeStep
        The run that proves the upper bound.

    Examples
    --------
    >>> leap = generative_leap("x1*x2*x3")
    >>> int(leap), leap.standing, [step.transform for step in leap.steps]
    (2, 'exact', ['y^2'])
    >>> print(leap.lower_certificate)
    sign change x1 → -x1, x2 → -x2 leaves f invariant
    """

    _document = "generative leap"
    _derived = ("standing",)

    target: str
    lower: int = field(metadata=quantity("at least"))
    upper: int | None = field(metadata=quantity("at most"))
    lower_certificate: str
    steps: tuple[GenerativeStep, ...]

    @property
    def is_exact(self) -> bool:
        """Whether the bounds meet."""
        return self.lower == self.upper

    @property
    def value(self) -> int | None:
        """The generative leap if it is exact, else None."""
        return self.lower if self.is_exact else None

    @property
    def orders(self) -> tuple[int, ...]:
        """Orders of the run; the upper bound is the largest."""
        return tuple(step.order for step in self.steps)

    @property
    def standing(self) -> str:
        """ "exact", "upper bound only" or "lower bound only"."""
        if self.is_exact:
            return "exact"
        return "lower bound only" if self.upper is None else "upper bound only"

    @property
    def upper_certificate(self) -> str:
        """The run in words."""
        if self.upper is None:
            return "no transform was found that shows all directions"
        return "; then ".join(step.witness for step in self.steps)

    @property
    def summary(self) -> str:
        """The value or the bounds, with what they rest on, in one line."""
        return str(self)

    @property
    def bounds(self) -> str:
        """The value or the bounds, as a text."""
        if self.is_exact:
            return str(self.lower)
        return f"{self.lower} or more" if self.upper is None else f"{self.lower} to {self.upper}"

    def __index__(self) -> int:
        if not self.is_exact:
            raise AssumptionError(
                f"the generative leap of {self.target!r} is not known exactly: {self.bounds}; use "
                "lower and upper"
            )
        return self.lower

    __int__ = __index__

    def page(self) -> Iterable[Block]:
        """Return the bounds with their certificates."""
        yield (
            f"{self.bounds} ({self.standing}: {self.upper_certificate}; not less: "
            f"{self.lower_certificate})"
        )

    def latex(self) -> str:
        """Return the bounds in LaTeX, without delimiters."""
        if self.is_exact:
            relation = f"= {self.lower}"
        elif self.upper is None:
            relation = rf"\ge {self.lower}"
        else:
            relation = rf"\in [{self.lower}, {self.upper}]"
        chain = r"\{0\}" + "".join(
            rf" \xrightarrow{{{step.order}}} {step.subspace.latex()}" for step in self.steps
        )
        return rf"\mathrm{{genLeap}}(f) {relation}:\quad {chain}"


@asked_of_targets("generative leap")
def generative_leap(f: Target) -> GenerativeLeap:
    """Return the generative leap, or bounds of it, with certificates.

    Returns
    -------
    GenerativeLeap
        Converts to an int only if it is exact.

    Raises
    ------
    AssumptionError
        If the target is constant.
    UndecidedError
        If the target is no polynomial and its relevant directions cannot be decided.

    Notes
    -----
    Without noise in the labels. Samples n ≍ d^{max(1, k/2)} are then enough in theory, by other
    algorithms than gradient steps on the squared error (Damian et al., arXiv 2403.05529).

    Examples
    --------
    >>> print(generative_leap("He(3, x1)").steps[0].witness)
    y^3 shows R^1 at order 1: E[y^3 x⊥] = (324)
    >>> tree = generative_leap("x1*x2 + a*x1**2", parameters="a")
    >>> [(str(leaf.case), int(leaf.value)) for leaf in tree.leaves]
    [('all values', 2)]
    """
    if f.case is not None:
        # Where a = b, for one, f may have a symmetry.
        f.case.require_irreducible()
        f = f.specialised()
    # A constant target is refused in words.
    return _Run(f, int(leap_index(f))).result()


def generative_leap_of_labels(probabilities: Mapping[sp.Expr, Target], name: str) -> GenerativeLeap:
    r"""Return the generative leap of finitely many labels drawn with probabilities given x.

    Every transform is a sum of indicators, and :math:`\mathbb{E}[1\{y\} \,|\, x] = P(y|x)`, so that
    the greedy run is that of all P(y|·) together (derived here); two labels need one of them. It
    is exact.

    `probabilities`: P(y|x), which add up to one. `name`: of the law. Raises AssumptionError if the
    labels do not depend on x. Raises UndecidedError if an order cannot be decided.

    Examples
    --------
    >>> laws = {1: "(1 + erf(x1)*4/5)/2", -1: "(1 - erf(x1)*4/5)/2"}
    >>> found = generative_leap_of_labels({y: read_target(p) for y, p in laws.items()}, "erf")
    >>> int(found), found.standing, found.steps[0].witness
    (1, 'exact', '1{y = 1} shows R^1 at order 1')
    """
    listed = list(probabilities.items())
    if len(listed) == 2:
        listed = listed[:1]
    sources = [(y, spans_of(p)) for y, p in listed]
    dimension = listed[0][1].dimension
    subspace = Subspace.zero(dimension)
    steps: list[GenerativeStep] = []
    while True:
        orders = {y: source.conditional_order(subspace) for y, source in sources}
        known = [order for order in orders.values() if order is not None]
        if not known:
            break
        order, after, shown = min(known), subspace, []
        for y, source in sources:
            if orders[y] == order:
                span = source.grow(subspace, order, strict=True)
                after = after + span.subspace
                shown.append((y, span))
        names = " and ".join(f"1{{y = {y}}}" for y, _ in shown)
        verb = "shows" if len(shown) == 1 else "show"
        vectors = tuple(row.vector for _, span in shown for row in span.rows)
        steps.append(
            GenerativeStep(order, names, f"{names} {verb} {after} at order {order}", after, vectors)
        )
        subspace = after
    if not steps:
        raise AssumptionError(f"the labels {name!r} do not depend on x: nothing is to be learned")
    value = max(step.order for step in steps)
    reason = "every T(y) is a sum of indicators of labels"
    return GenerativeLeap(name, value, value, reason, tuple(steps))


class _Run:
    """The greedy run of one target, and its lower bound."""

    def __init__(self, f: Target, first: int) -> None:
        self.f, self.first = f, first
        self.source: SpanSource = spans_of(f)
        self.relevant = self.source.relevant_subspace
        self.lower, self.lower_certificate = 1, "every exponent is at least 1"
        self.steps: list[GenerativeStep] = []
        self.subspace = Subspace.zero(f.dimension)
        self.moments = None
        if f.is_polynomial:
            self.moments = LabelMoments(f.expansion.symbol_element, self.relevant)
        self._powers: dict[int, SpanSource | None] = {}
        self._even_in: dict[Subspace, bool] = {}

    def result(self) -> GenerativeLeap:
        if self.moments is None and has_two_values(self.f):
            leap = isotropic_leap(self.f)
            steps = tuple(_by_y(step.order, step.subspace, step.rows) for step in leap.steps)
            certificate = "y has two values, so every T(y) is affine in y"
            return GenerativeLeap(self.f.name, int(leap), int(leap), certificate, steps)
        symmetry = find_symmetry(self.f, self.relevant)
        if symmetry is not None:
            self._raise_lower(2, f"{symmetry} leaves f invariant")
        self._single_index_bound()
        upper = self._climb()
        return GenerativeLeap(
            self.f.name, self.lower, upper, self.lower_certificate, tuple(self.steps)
        )

    def _raise_lower(self, bound: int, certificate: str) -> None:
        if bound > self.lower:
            self.lower, self.lower_certificate = bound, certificate

    def _single_index_bound(self) -> None:
        if self.moments is not None or self.relevant.dimension != 1:
            return
        univariate, variable, name = self._along_the_line()
        if is_blind_to_order_two(univariate, variable):
            text = f"y is even and a function of |{variable}| phi({variable}) alone{name}"
            self._raise_lower(4, f"{text}: no T(y) has He_2")

    def _along_the_line(self) -> tuple[sp.Expr, sp.Symbol, str]:
        """Return f as a function of its one direction, a standard normal variable."""
        direction = self.relevant.basis[0]
        t, name = sp.Symbol("t", real=True), f" with t along {vector_text(direction)}"
        if self.relevant.is_coordinate:
            t, name = self.f.variables[self.relevant.pivots[0]], ""
        length = sp.sqrt(sp.Add(*(v**2 for v in direction)))
        rule = {x: t * v / length for x, v in zip(self.f.variables, direction, strict=True)}
        return self.f.expr.xreplace(rule), t, name

    def _climb(self) -> int | None:
        """Run up to V*, always by the lowest order for which a transform is found."""
        order = self.lower
        degree = self.f.degree
        highest = max(_HIGHEST_ORDER_OF_OTHERS, self.first) if degree is None else degree
        while not self.relevant <= self.subspace:
            step = None
            while step is None and order <= max(highest, self.lower):
                # The lower bound may rise on the way, and lower orders need not be tried then.
                order = max(order, self.lower)
                step = self._step(order)
                order += step is None
            if step is None:
                return None
            self.steps.append(step)
            self.subspace = step.subspace
        return max(step.order for step in self.steps)

    def _step(self, order: int) -> GenerativeStep | None:
        """Return a step of at most the order; with parameters first one that all values admit."""
        if self.f.case is not None:
            with without_splitting():
                for step in self._candidates(order, sure=True):
                    return step
        return next(self._candidates(order), None)

    def _candidates(self, order: int, *, sure: bool = False) -> Iterator[GenerativeStep]:
        """Yield steps of at most the order; y itself first, then transforms with a number."""
        yield from self._by_label(order)
        missing = self.relevant.intersection(self.subspace.orthogonal_complement())
        if missing not in self._even_in:
            symmetry = reflection_in(self.f, missing)
            self._even_in[missing] = symmetry is not None
            if symmetry is not None:
                self._raise_lower(2, f"{symmetry} leaves f invariant")
        is_even = self._even_in[missing]
        if order < self.lower:
            return
        if self.moments is None:
            yield from self._by_half_line()
            yield from self._by_powers_of_others(order)
            return
        assert self.moments is not None
        for tensor_order in range(1, min(order, 2) + 1):
            for power in range(2, HIGHEST_POWER + 1):
                try:
                    step = self._by_power(power, tensor_order)
                except UndecidedError:
                    if not sure:
                        raise
                    continue
                if step is not None:
                    yield step
        if sure:
            return
        if missing.dimension == 1 and not is_even and not is_invariant_in(self.f, missing):
            name = vector_text(missing.basis[0])
            yield GenerativeStep(
                1,
                "1{y > M} or 1{y < -M}",
                f"1{{y > M}} or 1{{y < -M}} shows {name} at order 1 for large M: {self._given()}y "
                "is a polynomial of one variable and not even",
                self.relevant,
            )

    def _given(self) -> str:
        return "" if self.subspace.is_zero else f"given x on {self.subspace}, "

    def _by_label(self, order: int) -> Iterator[GenerativeStep]:
        try:
            span = self.source.grow(self.subspace, order, strict=True)
        except UndecidedError:
            return
        if span.rows and span.subspace.dimension > self.subspace.dimension:
            yield _by_y(span.rows[0].order, span.subspace, span.rows)

    def _by_power(self, power: int, order: int) -> GenerativeStep | None:
        assert self.moments is not None
        span, first = self.subspace, None
        for signal in self.moments.signals(self.subspace, power, order):
            span = span + spanned(signal.vectors, self.f.dimension, self.f.case)
            first = first or signal
            if self.relevant <= span:
                break
        if first is None or span.dimension == self.subspace.dimension:
            return None
        what = "x⊥" if order == 1 else "(x⊥ x⊥^T - P)"
        if not self.subspace.is_zero:
            what += f" | x_U = {_vector(first.point)}"
        value = ", ".join(map(_vector, first.vectors))
        return GenerativeStep(
            order,
            f"y^{power}",
            f"y^{power} shows {span} at order {order}: E[y^{power} {what}] = {value}",
            span,
            first.vectors,
        )

    def _by_half_line(self) -> Iterator[GenerativeStep]:
        """One missing direction, on which the label is a function of one variable by itself."""
        if self.lower > 1 or self.relevant.dimension != self.subspace.dimension + 1:
            return
        for univariate, variable, name in self._single_functions():
            transform = one_sided_infinity(univariate, variable)
            if transform is not None:
                text = f"{transform}{name}, shows {self.relevant} at order 1"
                yield GenerativeStep(1, transform.partition(" ")[0], text, self.relevant)

    def _single_functions(self) -> Iterator[tuple[sp.Expr, sp.Symbol, str]]:
        if self.subspace.is_zero:
            yield self._along_the_line()
            return
        variables = self.f.variables
        for i, x in enumerate(variables):
            axis = Subspace.spanned_by([[int(i == j) for j in range(len(variables))]])
            univariate = own_part(self.f, x)
            if univariate is not None and axis <= self.subspace.orthogonal_complement():
                yield univariate, x, ""

    def _by_powers_of_others(self, order: int) -> Iterator[GenerativeStep]:
        for power in _POWERS_OF_OTHERS:
            if power not in self._powers:
                made = label_power(self.f, power)
                self._powers[power] = None if made is None else spans_of(made)
            source = self._powers[power]
            if source is None:
                continue
            try:
                span = source.grow(self.subspace, order, strict=True)
            except GiantstepError:
                continue
            if span.rows and span.subspace.dimension > self.subspace.dimension:
                result, vectors = span.rows[0].order, tuple(row.vector for row in span.rows)
                text = f"y^{power} shows {span.subspace} at order {result}"
                yield GenerativeStep(result, f"y^{power}", text, span.subspace, vectors)


def _by_y(order: int, subspace: Subspace, rows: Sequence[SpanRow]) -> GenerativeStep:
    text = f"y shows {subspace} at order {order}"
    return GenerativeStep(order, "y", text, subspace, tuple(row.vector for row in rows))


def _vector(entries: Sequence[sp.Expr]) -> str:
    return f"({', '.join(map(str, entries))})"


_POWERS_TAKEN = (sp.sign, sp.Abs, relu, sp.Heaviside, sp.exp, sp.sin, sp.cos)


def has_two_values(target: Target) -> bool:
    """Whether a label takes exactly two values, as far as can be seen.

    Examples
    --------
    >>> has_two_values(read_target("3 + sign(x1*x2)/2")), has_two_values(read_target("tanh(x1)"))
    (True, False)
    >>> has_two_values(read_target("step(x1)*step(x2)"))
    True
    """
    label = _in_signs(target.expr)
    signs = {atom: sp.Dummy() for atom in label.atoms(sp.sign)}
    form = label.xreplace(signs)
    if not signs or form.has(*target.variables):
        return False
    names = list(signs.values())
    values = sp.Poly(form, *names, domain=sp.EXRAW)
    square = sp.Poly(_in_signs(expanded(label**2)).xreplace(signs), *names, domain=sp.EXRAW)
    zero = (0,) * len(names)
    slopes = {m: c for m, c in values.terms() if m != zero and c != 0}
    if not slopes:
        return False
    # y² = a y + b with numbers a and b.
    monomial, slope = next(iter(slopes.items()))
    ratio = square.coeff_monomial(monomial) / slope
    return all(
        sp.expand(square.coeff_monomial(m) - ratio * values.coeff_monomial(m)) == 0
        for m in {*square.monoms(), *values.monoms()} - {zero}
    )


def label_power(target: Target, power: int) -> Target | None:
    """Return f^p of a function that is no polynomial, if rules keep it a sum of products.

    Examples
    --------
    >>> print(label_power(read_target("sign(x1) + abs(x1)*x2"), 2))
    x1**2*x2**2 + 2*x1*x2 + 1
    """
    functions = target.expr.atoms(sp.Function)
    if not all(isinstance(function, _POWERS_TAKEN) for function in functions):
        return None
    label = _in_signs(target.expr)
    result = _in_signs(expanded(label**power))
    try:
        return replace(read_target(result, target.variables), case=target.case)
    except GiantstepError:
        return None


def _in_signs(expr: sp.Expr) -> sp.Expr:
    """Write relu, steps and moduli by signs, whose squares are 1 almost everywhere."""
    expr = expr.replace(relu, lambda u: u * (1 + sp.sign(u)) / 2)
    expr = expr.replace(sp.Heaviside, lambda u, *_: (1 + sp.sign(u)) / 2)
    expr = expanded(expr.replace(sp.Abs, lambda u: u * sp.sign(u)))
    return expr.replace(
        lambda node: node.is_Pow and isinstance(node.base, sp.sign) and node.exp.is_Integer,
        lambda node: node.base ** (node.exp % 2),
    )


def own_part(target: Target, variable: sp.Symbol) -> sp.Expr | None:
    """Return g(x_i) if f = g(x_i) + a function of the other coordinates, else None.

    Given these others, the label is then g up to a constant.
    """
    _, univariate = expanded(target.expr).as_independent(variable, as_Add=True)
    return univariate if univariate.free_symbols == {variable} else None


def one_sided_infinity(expr: sp.Expr, x: sp.Symbol) -> str | None:
    """Return the transform with a first-order signal if one half-line alone has the largest labels.

    `expr`: function of one real variable. The result: the transform, and on which side it lives.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> one_sided_infinity(sp.erf(x) - 2 * x / sp.sqrt(3 * sp.pi), x)
    '1{y > M} for large M, carried by x < 0'
    >>> one_sided_infinity(sp.cos(x) + x**2, x) is None
    True
    """
    ends = {side: far_out(expr, x, side) for side in (1, -1)}
    if None in ends.values():
        return None
    for limit, relation in ((1, ">"), (-1, "<")):
        sides = [side for side, end in ends.items() if end == limit]
        if len(sides) == 1:
            place = ">" if sides[0] > 0 else "<"
            sign = "" if limit == 1 else "-"
            return f"1{{y {relation} {sign}M}} for large M, carried by {x} {place} 0"
    return None


def is_blind_to_order_two(expr: sp.Expr, x: sp.Symbol) -> bool:
    """Whether a label is a function of |x| φ(x) alone, so that no T(y) has a term He_2.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> is_blind_to_order_two(x**2 * sp.exp(-(x**2)), x)
    True
    >>> is_blind_to_order_two(x**2 * sp.exp(-(x**2) / 2), x)
    False
    """
    if analyse(expr, x).parity is not Parity.EVEN:
        return False
    for term in sp.Add.make_args(expanded(expr)):
        _, rest = term.as_independent(x, as_Add=False)
        power, exponent = sp.S.Zero, sp.S.Zero
        for factor in [] if rest == 1 else sp.Mul.make_args(rest):
            base, n = factor.as_base_exp()
            if isinstance(factor, sp.exp):
                exponent += factor.exp
            elif base in (x, sp.Abs(x)) and n.is_positive:
                power += n
            else:
                return False
        if sp.expand(exponent + power * x**2 / 2) != 0:
            return False
    return True
