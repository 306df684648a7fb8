r"""Norms of targets by degree in the directions outside a subspace, without orthonormal frames.

For :math:`f(x) = \sum_a c_a \prod_k s_{ak}(\langle v_{ak}, x\rangle)` and a subspace U all norms
:math:`n_j = \|P_{U,=j} f\|^2` come from one function of a correlation,

.. math:: N(\rho) = \sum_j n_j\, \rho^j = \mathbb{E}[f(x)\, f(x'_\rho)],

where x' has the same :math:`x_U` and correlation ρ with x in :math:`U^\perp`. Two linear forms u
and v then have correlation :math:`u^T P_U v + \rho\, u^T Q v`, :math:`Q = 1 - P_U`, so that the
mean of a product of two terms factorises over the sets of forms that these numbers couple; a single
pair is a dual activation whose derivatives at :math:`u^T P_U v` give the n_j, and what no rule
gives in closed form stays an unevaluated 𝔼. Of a polynomial part p, :math:`\|P_j (p + g)\|^2 =
\|P_j g\|^2 + 2 \langle P_j p, p + g\rangle - \|P_j p\|^2` needs no more than Hermite coefficients
up to its degree. Polynomials take the operator :math:`D = \langle Q\xi, \nabla\rangle` on their
symbol F, self-adjoint for :math:`\mathbb{E}[fg]` with the eigenvalue j on degree j outside U:

.. math:: \sum_j j^i\, n_j = \langle D^a F, D^b F\rangle, \qquad a + b = i \le k,

on the part of total degree k, and the part of degree at most l is p(D) F with the polynomial p that
is 1 at 0, …, l and 0 up to k. No roots come in; over QQ only integers are added and multiplied.
Derived here; tested against explicit orthonormal frames and quadrature.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Self

import sympy as sp
from sympy.polys.rings import PolyElement

from ...errors import StructureError, UnsupportedExpressionError
from ..exact.fields import common_field, exact_field
from ..exact.polynomial_elements import polynomial_element
from ..exact.series import Number, Series, same, substitute
from ..expressions.activations import z as _z
from ..expressions.averages import Average
from ..gaussian.expectation import GaussianVector, JointExpectation, correlated_pair, expect
from ..gaussian.hermite_polynomials import index_factorial
from ..gaussian.rules import blocks
from ..hermite.coefficients import hermite_coefficients
from ..hermite.heat_flow import integers, symbol_of, unpacked
from .ridge_products import (
    FormGeometry,
    FormProduct,
    form_products,
    function_series,
    in_frame,
    polynomial_terms,
    series_product,
)
from .ridge_terms import RidgeFunction, RidgeTerm, T, ridge_symbol, ridge_terms, truncated_symbol
from .subspaces import Subspace

# One application of D to this many terms takes about a second.
_MOST_MONOMIALS = 50_000


def degree_norms(symbol: PolyElement, subspace: Subspace) -> tuple[sp.Expr, ...]:
    r"""Return the norms :math:`n_j = \|P_{U,=j} f\|^2` by degree j outside a subspace.

    `symbol`: F, in r variables over an exact field. `subspace`: U, of R^r. The result: n_0, n_1, …,
    up to the last that is not zero, but at least n_0; their sum is E f². Raises
    UnsupportedExpressionError if more than 50 000 terms come up.

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
        components = _coordinate_terms(terms)
        diagonal = [_totals(component, operator) for component in components]
        powers = [domain.unit**n for n in range(2 * len(components))]
        for p, first in enumerate(components):
            for q, second in enumerate(components[: p + 1]):
                # Twice the inner products, by polarisation.
                values = diagonal[p] if p == q else _totals(_sum(first, second), operator)
                others = () if p == q else (diagonal[p], diagonal[q])
                for j, value in values.items():
                    mixed = value - sum((other.get(j, 0) for other in others), sp.QQ.zero)
                    added = domain.convert_from(mixed, sp.QQ) * powers[p + q]
                    totals[j] = totals.get(j, domain.zero) + added
    last = max((j for j, value in totals.items() if value), default=0)
    return tuple(domain.to_sympy(totals.get(j, domain.zero)) for j in range(last + 1))


def part_up_to(symbol: PolyElement, subspace: Subspace, degree: int) -> PolyElement:
    r"""Return the symbol of :math:`P_{U,\le l} f`, of degree at most l outside a subspace.

    `symbol`: F, in r variables over an exact field. `subspace`: U, of R^r. `degree`: l, at least 0.
    The result: over the field that holds the coefficients of F and the basis of U.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> part_up_to(x * y + x, Subspace.spanned_by([[1, 1]]), 0)
    1/4*x**2 + 1/2*x*y + 1/2*x + 1/4*y**2 + 1/2*y
    """
    domain, terms, operator = _prepared(symbol, subspace)
    if operator.domain == domain:
        remaining = _lowest(terms, operator, degree)
    else:
        parts = [_lowest(component, operator, degree) for component in _coordinate_terms(terms)]
        monomials = dict.fromkeys(monomial for part in parts for monomial in part)
        remaining = {
            m: domain([part.get(m, sp.QQ.zero) for part in reversed(parts)]) for m in monomials
        }
    return symbol.ring.clone(domain=domain).from_dict(remaining)


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


def _coordinate_terms(terms: _Terms) -> list[_Terms]:
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
    remaining: _Terms = {}
    for k, part in _by_degree(terms).items():
        remaining |= part if k <= degree else operator.lowest(part, k, degree)
    return remaining


def _by_degree(terms: Mapping[Monomial, Any]) -> dict[int, _Terms]:
    parts: dict[int, _Terms] = {}
    for monomial, c in terms.items():
        parts.setdefault(sum(monomial), {})[monomial] = c
    return parts


@dataclass(frozen=True)
class _Counted:
    """D where U is spanned by axes: every monomial is an eigenvector."""

    domain: Any
    axes: tuple[int, ...]

    def norms(self, part: _Terms, k: int) -> dict[int, Any]:
        """Return {j: n_j} of a part of degree k."""
        result: dict[int, Any] = {}
        for monomial, c in part.items():
            j = self._degree(monomial)
            weight = self.domain.convert(index_factorial(monomial))
            result[j] = result.get(j, self.domain.zero) + c * c * weight
        return result

    def lowest(self, part: _Terms, k: int, degree: int) -> _Terms:
        """Return what has at most this degree outside U, of a part of degree k > degree."""
        return {m: c for m, c in part.items() if self._degree(m) <= degree}

    def _degree(self, monomial: Monomial) -> int:
        return sum(monomial) - sum(monomial[i] for i in self.axes)


@dataclass(frozen=True)
class _Mixed:
    """D elsewhere. The matrix is ``common`` times Q, of integers where Q is rational."""

    domain: Any
    matrix: Sequence[Sequence[Any]]
    common: int

    def norms(self, part: _Terms, k: int) -> dict[int, Any]:
        # D has the eigenvalues 0..k only, so k + 1 moments give all norms.
        vectors, denominator = self._powers(part, k, (k + 1) // 2)
        bits = _bits(k)
        size = len(self.matrix)
        keys = set().union(*vectors)
        weights = {key: index_factorial(unpacked(key, bits, size)) for key in keys}
        moments = [self._inner(vectors[i // 2], vectors[i - i // 2], weights) for i in range(k + 1)]
        result = {}
        for j in range(k + 1):
            indicator = _interpolating(k, (j,))
            total = self.domain.zero
            for i, (c, moment) in enumerate(zip(indicator, moments, strict=True)):
                total += self._number(moment, c / (denominator**2 * self.common**i))
            result[j] = total
        return result

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
            unpacked(key, bits, size): self._number(value, last)
            for key, value in total.items()
            if value
        }

    def _powers(self, part: _Terms, k: int, highest: int) -> tuple[list[dict[int, Any]], int]:
        """Return F, DF, D²F, … with packed exponents, each times one denominator."""
        bits = _bits(k)
        values, denominator = list(part.values()), 1
        if self.domain.is_QQ:
            values, denominator = integers(values)
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
        result: dict[int, Any] = {}
        get = result.get
        for key, value in terms.items():
            for shift, column in moves:
                n = key >> shift & mask
                if n:
                    scaled = n * value
                    for step, entry in column:
                        new = key + step
                        old = get(new)
                        result[new] = entry * scaled if old is None else old + entry * scaled
        if len(result) > _MOST_MONOMIALS:
            raise UnsupportedExpressionError(
                f"the projection mixes so many coordinates that more than {_MOST_MONOMIALS} terms "
                "come up; use fewer coordinates, a lower degree, or a frame in which the subspace "
                "is spanned by axes"
            )
        return {key: value for key, value in result.items() if value}

    def _inner(self, a: dict[int, Any], b: dict[int, Any], weights: Mapping[int, int]) -> Any:
        zero: Any = 0 if self.domain.is_QQ else self.domain.zero
        return sum((weights[key] * c * b[key] for key, c in a.items() if key in b), zero)

    def _number(self, value: Any, factor: Fraction) -> Any:
        """Return a value of integers or of the domain, times a fraction, in the domain."""
        domain = self.domain
        if domain.is_QQ:
            return domain(value * factor.numerator, factor.denominator)
        return value * domain.convert_from(sp.QQ(factor.numerator, factor.denominator), sp.QQ)


_Operator = _Counted | _Mixed


def _bits(k: int) -> int:
    return max(1, k.bit_length())


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


class TaylorSeries(Series):
    """A power series of SymPy numbers, multiplied out, around a point where it is analytic."""

    @staticmethod
    def simplified(value: sp.Expr) -> sp.Expr:
        # Multiplied out, powers of sums of exponentials fill pages.
        return value if sp.sympify(value, strict=True).has(sp.exp, sp.E) else sp.expand(value)

    @staticmethod
    def leading_power(value: sp.Expr, exponent: sp.Expr, number: Number) -> sp.Expr:
        # A quotient of sums of roots would be multiplied out at every order.
        return _normal_form(1 / value) if exponent == -1 else value**exponent

    def power(self, exponent: sp.Expr, number: Number = same) -> Self:
        """Return a power; see :meth:`Series.power`."""
        whole = exponent.is_Integer and exponent > 0
        if not whole and not (self.end > self.start == 0 and self.coefficients[0].is_nonzero):
            raise StructureError(f"the power {exponent} of a series that may vanish at 0")
        return super().power(exponent, number)


def taylor_coefficients(expr: sp.Expr, variable: sp.Symbol, order: int) -> list[sp.Expr] | None:
    """Return the coefficients of 1, x, …, x^order at x = 0.

    `expr`: sums, products, powers with exponents that are numbers, and functions of one argument,
    all analytic at 0; everything else has to be free of the variable. `variable`: x. Returns None
    if a part is of another kind, or not analytic at 0.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> taylor_coefficients(sp.asin(x / 2 + sp.S.Half) * (1 + x), x, 2)
    [pi/6, pi/6 + sqrt(3)/3, 7*sqrt(3)/18]
    """
    line = TaylorSeries.monomial(1, order, sp.S.One) if order else TaylorSeries((), 1)
    try:
        series = substitute(expr, {variable: line})
    except (StructureError, UnsupportedExpressionError):
        return None
    if not isinstance(series, Series):
        return [series] + [sp.S.Zero] * order
    return [sp.sympify(series.coefficient(n), strict=True) for n in range(order + 1)]


def _normal_form(number: sp.Expr) -> sp.Expr:
    """Return a number in the normal form of its field, if it is in one."""
    if number.has(sp.exp, sp.E):
        return number
    try:
        field, (element,) = exact_field([number])
    except UnsupportedExpressionError:
        return number
    return field.to_sympy(element)


# Quadrature averages over no more.
_MOST_OPEN_VARIABLES = 2
_MOST_TERMS = 2
# Operations in a function whose square is averaged; digits of longer ones take a minute.
_LONGEST_MEAN = 150

_RHO = sp.Symbol("rho", real=True)
_U, _V = sp.symbols("u v", real=True)


def ridge_degree_norms(
    expr: sp.Expr, variables: tuple[sp.Symbol, ...], subspace: Subspace, highest: int
) -> tuple[sp.Expr, ...]:
    r"""Return the norms :math:`n_j = \|P_{U,=j} f\|^2` by degree j outside a subspace.

    `expr`: f, a sum of products of functions of one linear form each. `variables`: the coordinates
    x_1..x_r, real. `subspace`: U, of R^r. `highest`: the last degree j. The result: n_0, …,
    n_highest; exact, with 𝔼 nodes where no rule gives a closed form. Raises
    UnsupportedExpressionError if digits of it would be out of reach, or the closed form would be
    very long.

    Examples
    --------
    >>> x = sp.symbols("x1:3", real=True)
    >>> U = Subspace.spanned_by([[1, 1]])
    >>> ridge_degree_norms(sp.sign(x[0]) - sp.sign(x[1]), x, U, 1)
    (0, 8*sqrt(3)/(3*pi))
    """
    if subspace.is_zero:
        symbol = truncated_symbol(expr, variables, highest)
        return tuple(symbol_overlap(symbol, symbol, j) for j in range(highest + 1))
    if _is_long(subspace):
        raise UnsupportedExpressionError(
            "norms on a subspace with sums of transcendental numbers as entries would fill pages"
        )
    terms = ridge_terms(expr, variables)
    polynomial = _polynomial_part(terms, variables)
    rest = [term for term in terms if term.ridges] if polynomial is not None else terms
    space, products = FormGeometry(subspace), form_products(rest)
    norms = [_tidied(sp.Add(*values)) for values in _square_series(products, space, highest)]
    if any(value.has(JointExpectation) for value in norms):
        others = _conditional_norms(products, space, highest)
        norms = [min(pair, key=_open_variables) for pair in zip(norms, others, strict=True)]
    if any(_open_variables(value) > _MOST_OPEN_VARIABLES for value in norms):
        raise UnsupportedExpressionError(
            "no rule leaves fewer than three variables to average over, and quadrature handles two"
        )
    if polynomial is not None:
        added = _with_polynomial(polynomial, expr, variables, subspace, highest)
        norms = [_tidied(value + more) for value, more in zip(norms, added, strict=True)]
    return tuple(norms)


@functools.lru_cache(maxsize=64)
def second_moment(expr: sp.Expr, variables: tuple[sp.Symbol, ...]) -> sp.Expr:
    """Return E f², exact or with unevaluated 𝔼 nodes.

    Examples
    --------
    >>> x = sp.symbols("x1:3", real=True)
    >>> second_moment(x[0] + sp.sign(x[0] - x[1]), x)
    2/sqrt(pi) + 2
    >>> second_moment(sp.sqrt(x[0] ** 2 + x[1] ** 2), x)
    2
    """
    terms = ridge_terms(expr, variables, radial=True)
    if any(term.radials for term in terms):
        law = GaussianVector(variables, covariance=sp.eye(len(variables)))
        parts = sp.Add.make_args(expr)
        products = (a * b for a, b in itertools.product(parts, repeat=2))
        return sp.Add(*(expect(product, law) for product in products))
    return sp.expand(mean_square(terms), deep=False) if terms else sp.S.Zero


def mean_square(terms: Sequence[RidgeTerm]) -> sp.Expr:
    """Return E of the square of a sum of terms: all of it is within the whole space."""
    whole = Subspace.spanned_by(sp.eye(len(terms[0].powers)).tolist())
    return sp.Add(*_square_series(form_products(terms), FormGeometry(whole), 0)[0])


def _square_series(
    products: Sequence[FormProduct], space: FormGeometry, highest: int
) -> list[list[sp.Expr]]:
    """Return the terms of the coefficients of ρ^0, …, ρ^highest in E[f(x) f(x'_ρ)]."""
    total: list[list[sp.Expr]] = [[] for _ in range(highest + 1)]
    for i, first in enumerate(products):
        for k, second in enumerate(products[: i + 1]):
            weight = (1 + (i != k)) * first.coefficient * second.coefficient
            series = _pair_series(first.factors, second.factors, space, highest)
            for j, value in enumerate(series):
                total[j].append(weight * value)
    return total


def _is_long(subspace: Subspace) -> bool:
    """Whether the entries of the projector are quotients of more than two terms."""
    if not subspace.field.is_FractionField:
        return False
    entries = itertools.chain.from_iterable(subspace.projector_elements())
    return any(max(len(entry.numer), len(entry.denom)) > _MOST_TERMS for entry in entries)


def _polynomial_part(
    terms: Iterable[RidgeTerm], variables: tuple[sp.Symbol, ...]
) -> PolyElement | None:
    """Return the sum of the terms without functions; None if there is none in an exact field."""
    plain = [term for term in terms if not term.ridges]
    monomials = (
        sp.Mul(term.coefficient, *(x**n for x, n in zip(variables, term.powers, strict=True)))
        for term in plain
    )
    polynomial = sp.Add(*monomials)
    named = sorted(polynomial.free_symbols - {*variables}, key=str)
    try:
        return polynomial_element(polynomial, variables, named) if plain else None
    except UnsupportedExpressionError:
        return None


def _with_polynomial(
    polynomial: PolyElement,
    expr: sp.Expr,
    variables: tuple[sp.Symbol, ...],
    subspace: Subspace,
    highest: int,
) -> list[sp.Expr]:
    """Return :math:`2 ⟨P_j p, f⟩ - ‖P_j p‖²` for the polynomial part p of f."""
    symbol = symbol_of(polynomial)
    diagonal = degree_norms(symbol, subspace)
    degree = max(map(sum, symbol), default=0)
    coefficients = truncated_symbol(expr, variables, degree)
    result, before = [], sp.S.Zero
    for j in range(min(highest, len(diagonal) - 1) + 1):
        part = part_up_to(symbol, subspace, j)
        overlap = symbol_overlap(
            {alpha: part.ring.domain.to_sympy(c) for alpha, c in part.items()}, coefficients
        )
        result.append(2 * (overlap - before) - diagonal[j])
        before = overlap
    return result + [sp.S.Zero] * (highest + 1 - len(result))


def symbol_overlap(
    first: Mapping[Monomial, sp.Expr],
    second: Mapping[Monomial, sp.Expr],
    degree: int | None = None,
) -> sp.Expr:
    """Return Σ α! a_α b_α, the mean of a product by the symbols, of all degrees or of one."""
    shared = (alpha for alpha in first if alpha in second and degree in (None, sum(alpha)))
    return sp.Add(*(index_factorial(alpha) * first[alpha] * second[alpha] for alpha in shared))


def _pair_series(
    first: Sequence[RidgeFunction],
    second: Sequence[RidgeFunction],
    space: FormGeometry,
    highest: int,
) -> list[sp.Expr]:
    """Return the coefficients of ρ^0, …, ρ^highest in E of the product of two terms."""
    coupled = [
        (i, len(first) + k)
        for i, a in enumerate(first)
        for k, b in enumerate(second)
        if space.inside(a.direction, b.direction) != 0
        or space.outside(a.direction, b.direction) != 0
    ]
    series = [sp.S.One] + [sp.S.Zero] * highest
    for block in blocks(len(first) + len(second), coupled):
        left = [first[i] for i in block if i < len(first)]
        right = [second[i - len(first)] for i in block if i >= len(first)]
        if len(left) == 1 and len(right) == 1:
            factor = _single_pair(left[0], right[0], space, highest)
        else:
            factor = _block(left, right, space, highest)
        series = series_product(series, factor)
        if not any(series):
            break
    return series


def _single_pair(
    a: RidgeFunction, b: RidgeFunction, space: FormGeometry, highest: int
) -> list[sp.Expr]:
    """The series of E[s(u) t(v)] in ρ, the correlation of u and v being p + ρ q."""
    p, q = space.inside(a.direction, b.direction), space.outside(a.direction, b.direction)
    if p == 0:
        mine, others = (
            hermite_coefficients(g.expr.xreplace({T: _z}), highest, variable=_z) for g in (a, b)
        )
        return [mine[j] * others[j] * q**j / sp.factorial(j) for j in range(highest + 1)]
    rest = [sp.S.Zero] * highest
    if p in (1, -1):
        return [expect(a.expr.xreplace({T: _z}) * b.expr.xreplace({T: p * _z}), _z), *rest]
    return list(_dual_series(a.expr, b.expr, p, q, highest))


@functools.lru_cache(maxsize=256)
def _dual(s: sp.Expr, t: sp.Expr) -> sp.Expr:
    """Return E[s(u) t(v)] as a function of the correlation."""
    return expect(s.xreplace({T: _U}) * t.xreplace({T: _V}), correlated_pair(_U, _V, _RHO))


@functools.lru_cache(maxsize=1024)
def _dual_series(
    s: sp.Expr, t: sp.Expr, p: sp.Expr, q: sp.Expr, highest: int
) -> tuple[sp.Expr, ...]:
    # As a series in ρ - p: without q its coefficients are short, and those of q^j are factors.
    at_p = _dual(s, t).subs(_RHO, p + _RHO)
    return tuple(c * q**j for j, c in enumerate(_series(at_p, highest if q else 0, highest)))


def _series(value: sp.Expr, order: int, length: int) -> list[sp.Expr]:
    """Return the Taylor coefficients in ρ up to an order, and zeros up to the length."""
    result = None if value.has(Average) else taylor_coefficients(value, _RHO, order)
    if result is None:
        result = []
        for j in range(order + 1):
            at_zero = value.subs(_RHO, 0)
            result.append((at_zero.doit() if at_zero.has(Average) else at_zero) / sp.factorial(j))
            value = value.diff(_RHO) if j < order else value
    return result + [sp.S.Zero] * (length - order)


def _block(
    left: Sequence[RidgeFunction],
    right: Sequence[RidgeFunction],
    space: FormGeometry,
    highest: int,
) -> list[sp.Expr]:
    """The series for forms that are coupled in a way that is not one to one."""
    pairs = list(itertools.product(left, right))
    if all(space.inside(a.direction, b.direction) == 0 for a, b in pairs):
        return _outside_series(left, right, space, highest)
    us = sp.symbols(f"u1:{len(left) + 1}", real=True)
    vs = sp.symbols(f"v1:{len(right) + 1}", real=True)
    entries = [
        space.inside(a.direction, b.direction) + _RHO * space.outside(a.direction, b.direction)
        for a, b in pairs
    ]
    # The rules combine fractions; of long transcendental numbers that takes minutes.
    names = {
        sp.Symbol(f"c{n}", real=True): entry
        for n, entry in enumerate(entries)
        if entry.has(sp.pi, sp.exp, sp.E)
    }
    short = {entry: name for name, entry in names.items()}
    between = sp.Matrix(len(left), len(right), [short.get(entry, entry) for entry in entries])
    covariance = sp.Matrix(
        sp.BlockMatrix([[sp.eye(len(left)), between], [between.T, sp.eye(len(right))]])
    )
    integrand = sp.Mul(
        *(a.expr.xreplace({T: u}) for a, u in zip(left, us, strict=True)),
        *(b.expr.xreplace({T: v}) for b, v in zip(right, vs, strict=True)),
    )
    value = expect(integrand, GaussianVector((*us, *vs), covariance=covariance))
    if names and value.has(Average):
        raise UnsupportedExpressionError(
            f"no rule averages {integrand}, and the subspace has transcendental entries"
        )
    value = value.subs(names)
    return _series(value, highest, highest)


def _outside_series(
    left: Sequence[RidgeFunction],
    right: Sequence[RidgeFunction],
    space: FormGeometry,
    highest: int,
) -> list[sp.Expr]:
    """The series where all forms are outside U: ⟨A_j, B_j(M ·)⟩ of the symbols' parts."""
    ring = sp.ring([f"y{i}" for i in range(len(left))], sp.EXRAW)[0]
    mine, others = ring.one, ring.one
    for position, a in enumerate(left):
        mine = mine * ridge_symbol(a, ring.gens[position], highest)
    for b in right:
        form = sum(
            (
                y * space.outside(a.direction, b.direction)
                for a, y in zip(left, ring.gens, strict=True)
            ),
            ring.zero,
        )
        others = others * ridge_symbol(b, form, highest)
    return [symbol_overlap(mine, others, j) for j in range(highest + 1)]


def _conditional_norms(
    products: Sequence[FormProduct], space: FormGeometry, highest: int
) -> list[sp.Expr]:
    """n_j as the mean square of the Hermite coefficients of order j outside U, given x_U."""
    frame = space.frame(sp.eye(space.projector.rows).tolist())
    axes = sp.symbols(f"t1:{len(frame) + 1}", cls=sp.Dummy, real=True)
    symbols = [sp.S.Zero] * (highest + 1)
    for product in products:
        for j, part in enumerate(function_series(product.factors, space, highest)):
            symbols[j] += product.coefficient * part
    rule = in_frame(space, dict(zip(frame, axes, strict=True)))
    law = GaussianVector(space.labels, covariance=space.gram)
    norms = []
    for part in symbols:
        total = []
        for beta, named in polynomial_terms(part.xreplace(rule), axes):
            c = space.in_full(named)
            if c.count_ops() > _LONGEST_MEAN:
                raise UnsupportedExpressionError(
                    "the mean squares of conditional Hermite coefficients are too long"
                )
            # An expectation of what holds another one has no digits.
            mean = JointExpectation if c.has(Average) else expect
            total.append(index_factorial(beta) * mean(c**2, law))
        norms.append(sp.Add(*total))
    return norms


def _open_variables(value: sp.Expr) -> int:
    """How many variables an 𝔼 in the value has; more than there can be if it has no digits."""
    nodes = value.atoms(Average)
    if any(node.args[0].has(Average, sp.DiracDelta) for node in nodes):
        return 1000
    joint = [len(node.law.variables) for node in nodes if isinstance(node, JointExpectation)]
    return max([*joint, int(bool(nodes))])


def _tidied(value: sp.Expr) -> sp.Expr:
    return sp.expand(value, deep=False)
