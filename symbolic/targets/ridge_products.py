r"""Functions as sums of products of functions of orthonormal linear forms, and their projections.

A term :math:`c\,x^\alpha \prod_j g_j(\langle u_j, x\rangle)` of :mod:`.ridge_terms` becomes a sum
of products in which every factor depends on one form and the forms of a product are orthonormal.
What a subspace U means for it are the numbers :math:`u^T P_U v` and :math:`u^T (1 - P_U) v` of
pairs of forms, exact and in a normal form, so that a zero among them is 0. Averages over
:math:`x_\perp` go form by form: with y = a + τ z, a fixed by :math:`x_U`, the part of degree j of
s(y) is :math:`\mathrm{He}_j(z)\, \mathbb{E}[s(a + \tau z) \mathrm{He}_j(z)]/j!`. What no rule gives
in closed form stays an unevaluated 𝔼.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from ...errors import UndecidedError, UnsupportedExpressionError
from ..exact.fields import exact_field
from ..expressions.activations import z as _z
from ..expressions.functions import HALF
from ..gaussian.expectation import GaussianVector, expect
from ..gaussian.hermite_polynomials import hermite_polynomial, multi_indices
from ..gaussian.integrand_kernels import affine_or_quadratic, multiplied_out
from ..gaussian.rules import blocks
from ..gaussian.zero_test import is_exactly_zero
from .ridge_terms import RidgeFunction, RidgeTerm, T, ridge_terms, truncated_symbol
from .subspaces import Subspace

Vector = tuple[sp.Expr, ...]


@dataclass(frozen=True)
class FormProduct:
    """A product c Π s_k(⟨v_k, x⟩) with orthonormal v_k; each s_k is an expression in `T`."""

    coefficient: sp.Expr
    factors: tuple[RidgeFunction, ...]


def form_products(terms: Iterable[RidgeTerm]) -> tuple[FormProduct, ...]:
    """Write a function as a sum of products of functions of orthonormal linear forms.

    Examples
    --------
    >>> x = sp.symbols("x1:3", real=True)
    >>> from giantstep.symbolic.targets.ridge_terms import ridge_terms
    >>> for product in form_products(ridge_terms(x[0] * sp.sign(x[0] + x[1]), x)):
    ...     print(product.coefficient, [ridge.direction for ridge in product.factors])
    sqrt(2)/2 [(sqrt(2)/2, sqrt(2)/2)]
    sqrt(2)/2 [(sqrt(2)/2, sqrt(2)/2), (sqrt(2)/2, -sqrt(2)/2)]
    """
    groups: dict[tuple[RidgeFunction, ...], list[RidgeTerm]] = {}
    for term in terms:
        groups.setdefault(term.ridges, []).append(term)
    return tuple(product for group in groups.values() for product in _without_powers(group))


class FormGeometry:
    """Linear forms beside a subspace U: their products with and without the projector."""

    def __init__(self, subspace: Subspace) -> None:
        self.subspace = subspace
        self.basis = sp.Matrix(subspace.basis)
        self.gram = self.basis * self.basis.T
        self.projector = subspace.projector()
        self.labels = sp.symbols(f"s1:{subspace.dimension + 1}", cls=sp.Dummy, real=True)
        self._inside: dict[tuple[Vector, Vector], sp.Expr] = {}
        self._outside: dict[tuple[Vector, Vector], sp.Expr] = {}
        self.named: dict[Vector, sp.Symbol] = {}
        self._lengths: dict[Vector, sp.Expr] = {}
        self._short: dict[sp.Expr, sp.Symbol] = {}

    def inside(self, u: Vector, v: Vector) -> sp.Expr:
        """Return uᵀ P v."""
        if (u, v) not in self._inside:
            value = (sp.Matrix([u]) * self.projector * sp.Matrix(v))[0]
            self._inside[u, v] = canonical(value)
        return self._inside[u, v]

    def outside(self, u: Vector, v: Vector) -> sp.Expr:
        """Return uᵀ Q v."""
        if (u, v) not in self._outside:
            whole = sp.Add(*(a * b for a, b in zip(u, v, strict=True)))
            self._outside[u, v] = canonical(whole - self.inside(u, v))
        return self._outside[u, v]

    def along(self, u: Vector) -> sp.Expr:
        """Return ⟨P u, x⟩ in the labels, which stand for ⟨b_i, x⟩ with the basis rows b_i."""
        slopes = self.gram.inv() * self.basis * sp.Matrix(u)
        return sp.Add(*(canonical(a) * label for a, label in zip(slopes, self.labels, strict=True)))

    def coordinates(self, variables: Sequence[sp.Symbol]) -> dict[sp.Symbol, sp.Expr]:
        """Return what the labels stand for."""
        forms = self.basis * sp.Matrix(variables)
        return dict(zip(self.labels, forms, strict=True))

    def frame(self, directions: Iterable[Vector]) -> list[Vector]:
        """Return an orthogonal basis of the span of Q u over the directions.

        Not of unit length, so that no roots come in, but with 1 as the first entry that is not
        zero: equal directions of different terms are equal, and their parts combine.
        """
        complement = sp.eye(self.projector.rows) - self.projector
        result: list[Vector] = []
        for u in directions:
            rest = [canonical(entry) for entry in complement * sp.Matrix(u)]
            for w in result:
                share = _dot(rest, w) / _dot(w, w)
                rest = [canonical(a - share * b) for a, b in zip(rest, w, strict=True)]
            leading = next((entry for entry in rest if entry != 0), None)
            if leading is not None:
                result.append(tuple(canonical(entry / leading) for entry in rest))
        return result

    def slope(self, u: Vector, w: Vector) -> sp.Expr:
        """Return ⟨u, w⟩/|w|."""
        return canonical(_dot(u, w)) / self.length(w)

    def length(self, w: Vector) -> sp.Expr:
        """Return |w|."""
        if w not in self._lengths:
            self._lengths[w] = sp.sqrt(canonical(_dot(w, w)))
        return self._lengths[w]

    def short(self, value: sp.Expr) -> sp.Symbol:
        """Return a symbol for an expression that is not to be multiplied out."""
        return self._short.setdefault(value, sp.Dummy("m", real=True))

    def in_full(self, expr: sp.Expr) -> sp.Expr:
        """Return an expression with the symbols of `short` replaced."""
        return expr.xreplace({symbol: value for value, symbol in self._short.items()})

    def form(self, w: Vector) -> sp.Symbol:
        """Return a symbol for ⟨w, x⟩/|w| with w outside U; those in use are in `named`."""
        return self.named.setdefault(w, sp.Dummy("t", real=True))

    def forms(self, variables: Sequence[sp.Symbol]) -> dict[sp.Symbol, sp.Expr]:
        """Return what the symbols of `form` stand for."""
        return {symbol: _dot(w, variables) / self.length(w) for w, symbol in self.named.items()}


def _dot(a: Iterable[sp.Expr], b: Iterable[sp.Expr]) -> sp.Expr:
    return sp.Add(*(x * y for x, y in zip(a, b, strict=True)))


def _without_powers(terms: Sequence[RidgeTerm]) -> list[FormProduct]:
    r"""Write Σ c x^α times one product by its linear forms and further ones orthogonal to them.

    Terms are taken together because much cancels: :math:`\langle u, x\rangle\,
    g(\langle u, x\rangle)` comes multiplied out, and is a function of one form.
    """
    frame = [ridge.direction for ridge in terms[0].ridges]
    integrands = [ridge.expr for ridge in terms[0].ridges]
    used = [i for i in range(len(terms[0].powers)) if any(term.powers[i] for term in terms)]
    for i in used:
        axis = tuple(sp.Integer(i == j) for j in range(len(terms[0].powers)))
        rest = _orthogonalised(axis, frame)
        if rest is not None:
            frame.append(rest)
            integrands.append(sp.S.One)
    if not used:
        monomials = [((0,) * len(frame), sp.Add(*(term.coefficient for term in terms)))]
    else:
        axes = sp.symbols(f"y1:{len(frame) + 1}", cls=sp.Dummy, real=True)
        images = {i: sp.Add(*(v[i] * y for v, y in zip(frame, axes, strict=True))) for i in used}
        polynomial = sp.Add(
            *(
                term.coefficient * sp.Mul(*(images[i] ** term.powers[i] for i in used))
                for term in terms
            )
        )
        monomials = sp.Poly(polynomial, *axes, domain=sp.EXRAW).terms()
    result = []
    for exponents, c in monomials:
        coefficient = canonical(c) if len(terms) > 1 else c
        if coefficient == 0:
            continue
        factors = tuple(
            RidgeFunction(v, g * T**n)
            for v, g, n in zip(frame, integrands, exponents, strict=True)
            if n or g != 1
        )
        result.append(FormProduct(coefficient, factors))
    return result


def _orthogonalised(vector: Vector, frame: Iterable[Vector]) -> Vector | None:
    """Return the unit vector of what is orthogonal to an orthonormal frame; None if nothing is."""
    rest = list(vector)
    for v in frame:
        overlap = sp.Add(*(a * b for a, b in zip(vector, v, strict=True)))
        rest = [a - overlap * b for a, b in zip(rest, v, strict=True)]
    rest = [canonical(entry) for entry in rest]
    length = sp.sqrt(canonical(sp.Add(*(a**2 for a in rest))))
    if length == 0:
        return None
    return tuple(sp.radsimp(a / length) for a in rest)


def canonical(number: sp.Expr) -> sp.Expr:
    """Return a number in the normal form of its field; a zero is 0, decided exactly."""
    if number.is_Rational:
        return number
    try:
        field, (element,) = exact_field([number])
    except UnsupportedExpressionError:
        try:
            zero = is_exactly_zero(number, "the product of two directions")
        except UndecidedError:
            if not number.free_symbols:
                raise
            zero = False  # a coefficient with parameters stays, with their values where it is zero
        return sp.S.Zero if zero else sp.expand(number)
    return field.to_sympy(element)


def merged_steps(integrand: sp.Expr, z: sp.Symbol) -> sp.Expr:
    """Write products of steps, relu, abs and sign of affine functions of z with one step each.

    Which of two steps comes first is left to steps that do not depend on z. Values at single
    points are those of no importance to an integral.

    Examples
    --------
    >>> a, z = sp.symbols("a z", real=True)
    >>> merged_steps(sp.Heaviside(z + a) * sp.Heaviside(1 - z), z)
    (Heaviside(1 - z) + Heaviside(a + z) - 1)*Heaviside(a + 1)
    """
    terms = multiplied_out(integrand)
    return integrand if terms is None else sp.Add(*(_with_one_step(term, z) for term in terms))


def _with_one_step(term: sp.Expr, z: sp.Symbol) -> sp.Expr:
    rest: sp.Expr = sp.S.One
    roots: dict[bool, list[sp.Expr]] = {True: [], False: []}
    for factor in sp.Mul.make_args(term):
        base = factor.as_base_exp()[0]
        affine = affine_or_quadratic(base.args[0], z) if isinstance(base, sp.Heaviside) else None
        if affine is None or affine[2] != 0 or not affine[1].is_nonzero:
            rest *= factor
        else:
            roots[bool(affine[1].is_positive)].append(sp.expand(-affine[0] / affine[1]))
    if sum(map(len, roots.values())) < 2:
        return term
    # Each list of (weight, root) stands for the one step that is left of those of its direction.
    upward = _outermost(roots[True], lambda a, b: a - b)
    downward = _outermost(roots[False], lambda a, b: b - a)
    total = []
    for (v, low), (w, high) in itertools.product(upward or [(1, None)], downward or [(1, None)]):
        if low is None:
            total.append(v * w * _step(high - z))
        elif high is None:
            total.append(v * w * _step(z - low))
        else:
            both = _step(z - low) + _step(high - z) - 1
            total.append(v * w * _step(sp.expand(high - low)) * both)
    return rest * sp.Add(*total)


def _outermost(
    roots: Sequence[sp.Expr], ahead: Callable[[sp.Expr, sp.Expr], sp.Expr]
) -> list[tuple[sp.Expr, sp.Expr]]:
    """Return which root is ahead of all others, as (weight, root) with weights that sum to 1."""
    result: list[tuple[sp.Expr, sp.Expr]] = []
    for root in roots:
        if not result:
            result = [(sp.S.One, root)]
            continue
        gaps = [sp.expand(ahead(root, other)) for _, other in result]
        remaining = [(w * _step(-gap), other) for (w, other), gap in zip(result, gaps, strict=True)]
        new = sp.Add(*(w * _step(gap) for (w, _), gap in zip(result, gaps, strict=True)))
        result = [(w, r) for w, r in [*remaining, (new, root)] if w != 0]
    return result


def _step(x: sp.Expr) -> sp.Expr:
    return sp.Heaviside(x, HALF)


def ridge_part_up_to(
    expr: sp.Expr, variables: tuple[sp.Symbol, ...], subspace: Subspace, degree: int
) -> sp.Expr:
    r"""Return :math:`P_{U,\le l} f` as an expression in the variables.

    Examples
    --------
    >>> x = sp.symbols("x1:3", real=True)
    >>> U = Subspace.spanned_by([[1, 0]])
    >>> ridge_part_up_to(sp.sin(x[0]) * sp.Abs(x[1]) + x[1], x, U, 0)
    sqrt(2)*sin(x1)/sqrt(pi)
    """
    if subspace.is_zero:
        terms = truncated_symbol(expr, variables, degree).items()
        return sp.Add(*(c * _hermite_product(alpha, variables) for alpha, c in terms))
    space = FormGeometry(subspace)
    symbol = [sp.S.Zero]
    for product in form_products(ridge_terms(expr, variables)):
        series = function_series(product.factors, space, degree)
        symbol += [product.coefficient * part for part in series]
    whole = sp.Add(*symbol)
    forms = space.forms(variables)
    frame = {v: sp.Dummy("t", real=True) for v in space.frame(space.named)}
    if len(frame) < len(forms):
        # Forms that depend on each other hide what cancels; those of a frame do not.
        whole = whole.xreplace(in_frame(space, frame))
        space.named = frame
        forms = space.forms(variables)
    parts = []
    for exponents, c in polynomial_terms(whole, list(forms)):
        parts.append(space.in_full(c) * _hermite_product(exponents, list(forms.values())))
    return sp.Add(*parts).xreplace(space.coordinates(variables))


def _hermite_product(orders: Sequence[int], arguments: Sequence[sp.Expr]) -> sp.Expr:
    pairs = zip(orders, arguments, strict=True)
    return sp.Mul(*(hermite_polynomial(n, x) for n, x in pairs if n))


def series_product(first: Sequence[sp.Expr], second: Sequence[sp.Expr]) -> list[sp.Expr]:
    return [sp.Add(*(first[i] * second[j - i] for i in range(j + 1))) for j in range(len(first))]


def function_series(
    factors: Sequence[RidgeFunction], space: FormGeometry, degree: int
) -> list[sp.Expr]:
    r"""Return the symbols of the parts of degree 0, …, l outside U of a product.

    Polynomials in the symbols of `space` for forms t outside U, with t^n for He_n(t); their
    coefficients are functions of its labels, in short.
    """
    edges = (
        (i, k)
        for i, a in enumerate(factors)
        for k, b in enumerate(factors)
        if space.outside(a.direction, b.direction) != 0
    )
    series = [sp.S.One] + [sp.S.Zero] * degree
    for group in blocks(len(factors), edges):
        series = series_product(series, _group_series([factors[i] for i in group], space, degree))
    return series


def _group_series(
    factors: Sequence[RidgeFunction], space: FormGeometry, degree: int
) -> list[sp.Expr]:
    frame = space.frame([ridge.direction for ridge in factors])
    # Bound by 𝔼: where coordinates have these names, too, substitution renames them.
    zs = sp.symbols(f"z1:{len(frame) + 1}", real=True) if len(frame) > 1 else (_z,) * len(frame)
    integrand = sp.S.One
    for ridge in factors:
        slopes = (space.slope(ridge.direction, w) for w in frame)
        line = space.along(ridge.direction)
        line += sp.Add(*(slope * z for slope, z in zip(slopes, zs, strict=True)))
        integrand *= ridge.expr.xreplace({T: line})
    if not frame:
        return [space.short(integrand)] + [sp.S.Zero] * degree
    if len(frame) == 1 and len(factors) > 1:
        integrand = merged_steps(integrand, zs[0])
    law = GaussianVector(zs, covariance=sp.eye(len(frame)))
    forms = [space.form(v) for v in frame]
    series = []
    for j in range(degree + 1):
        parts = []
        for beta in reversed(multi_indices(len(frame), j)):
            mean = expect(integrand * _hermite_product(beta, zs), zs[0] if len(zs) == 1 else law)
            if mean == 0:
                continue
            powers = zip(forms, beta, strict=True)
            parts.append(space.short(mean) * sp.Mul(*(t**n / sp.factorial(n) for t, n in powers)))
        series.append(sp.Add(*parts))
    return series


def polynomial_terms(
    polynomial: sp.Expr, symbols: Sequence[sp.Symbol]
) -> list[tuple[tuple[int, ...], sp.Expr]]:
    """Return exponents and coefficients; the latter may be any functions of other symbols."""
    if not symbols:
        return [((), polynomial)]
    terms: list[tuple[tuple[int, ...], sp.Expr]] = sp.Poly(
        polynomial, *symbols, domain=sp.EXRAW
    ).terms()
    return terms


def in_frame(space: FormGeometry, frame: Mapping[Vector, sp.Symbol]) -> dict[sp.Symbol, sp.Expr]:
    """Return the symbols of the forms in use by those of an orthonormal frame."""
    rule = {}
    for w, symbol in space.named.items():
        slopes = (space.slope(w, v) / space.length(w) for v in frame)
        named = (s if s.is_algebraic else space.short(s) for s in slopes)
        rule[symbol] = sp.Add(*(s * axis for s, axis in zip(named, frame.values(), strict=True)))
    return rule
