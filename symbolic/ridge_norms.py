r"""Norms of targets that are no polynomials, by degree in the directions outside a subspace.

For :math:`f(x) = \sum_a c_a \prod_k s_{ak}(\langle v_{ak}, x\rangle)` and a subspace U all norms
:math:`n_j = \|P_{U,=j} f\|^2` come from one function of a correlation,

.. math:: N(\rho) = \sum_j n_j\, \rho^j = \mathbb{E}[f(x)\, f(x'_\rho)],

where x' has the same :math:`x_U` and correlation ρ with x in :math:`U^\perp`. Two linear forms u
and v then have correlation :math:`u^T P_U v + \rho\, u^T Q v`, so the mean of a product of two
terms factorises over the sets of forms that these numbers couple. A single pair of forms is a dual
activation :math:`\mathbb{E}[s(u) t(v)]` as a function of the correlation, and its derivatives at
:math:`u^T P_U v` give the n_j. Of a polynomial part p,

.. math:: \|P_j (p + g)\|^2 = \|P_j g\|^2 + 2 \langle P_j p, p + g\rangle - \|P_j p\|^2

needs no more of f = p + g than Hermite coefficients up to its degree.

What no rule gives in closed form stays an unevaluated 𝔼.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence

import sympy as sp
from sympy.polys.rings import PolyElement

from ..errors import UnsupportedExpressionError
from .activations import z as _z
from .averages import Average
from .gaussian import expect
from .gaussian_vector import GaussianVector, JointExpectation, correlated_pair
from .heat_flow import symbol_of
from .hermite import hermite_coefficients
from .polynomial_elements import polynomial_element
from .projection_norms import degree_norms, part_up_to
from .ridge_moments import ridge_symbol, truncated_symbol
from .ridge_products import FormGeometry, FormProduct, form_products
from .ridge_projections import (
    connected,
    function_series,
    in_frame,
    polynomial_terms,
    series_product,
)
from .ridge_terms import RidgeFunction, RidgeTerm, T, ridge_terms
from .subspaces import Subspace
from .taylor_coefficients import taylor_coefficients

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

    Parameters
    ----------
    expr : Expr
        f, a sum of products of functions of one linear form each.
    variables : tuple of Symbol
        The coordinates x_1..x_r, real.
    subspace : Subspace
        U, of R^r.
    highest : int
        The last degree j.

    Returns
    -------
    tuple of Expr
        n_0, …, n_highest; exact, with 𝔼 nodes where no rule gives a closed form.

    Raises
    ------
    UnsupportedExpressionError
        If digits of it would be out of reach, or the closed form would be very long.

    Examples
    --------
    >>> x = sp.symbols("x1:3", real=True)
    >>> U = Subspace.spanned_by([[1, 1]])
    >>> ridge_degree_norms(sp.sign(x[0]) - sp.sign(x[1]), x, U, 1)
    (0, 8*sqrt(3)/(3*pi))
    """
    if subspace.is_zero:
        return tuple(_parseval(expr, variables, j) for j in range(highest + 1))
    if _is_long(subspace):
        raise UnsupportedExpressionError(
            "norms on a subspace with sums of transcendental numbers as entries would fill pages"
        )
    terms = ridge_terms(expr, variables)
    polynomial = _polynomial_part(terms, variables)
    rest = [term for term in terms if term.ridges] if polynomial is not None else terms
    space, products = FormGeometry(subspace), form_products(rest)
    total: list[list[sp.Expr]] = [[] for _ in range(highest + 1)]
    for i, first in enumerate(products):
        for k, second in enumerate(products[: i + 1]):
            weight = (1 + (i != k)) * first.coefficient * second.coefficient
            series = _pair_series(first.factors, second.factors, space, highest)
            for j, value in enumerate(series):
                total[j].append(weight * value)
    norms = [_tidied(sp.Add(*values)) for values in total]
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
    try:
        return polynomial_element(sp.Add(*monomials), variables) if plain else None
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
    own = degree_norms(symbol, subspace)
    degree = max(map(sum, symbol), default=0)
    coefficients = truncated_symbol(expr, variables, degree)
    found, before = [], sp.S.Zero
    for j in range(min(highest, len(own) - 1) + 1):
        part = part_up_to(symbol, subspace, j)
        overlap = sp.Add(
            *(
                sp.Mul(*map(sp.factorial, alpha))
                * part.ring.domain.to_sympy(c)
                * coefficients[alpha]
                for alpha, c in part.items()
                if alpha in coefficients
            )
        )
        found.append(2 * (overlap - before) - own[j])
        before = overlap
    return found + [sp.S.Zero] * (highest + 1 - len(found))


def _parseval(expr: sp.Expr, variables: tuple[sp.Symbol, ...], degree: int) -> sp.Expr:
    """Sum α! c_α² over one degree."""
    symbol = truncated_symbol(expr, variables, degree)
    return sp.Add(
        *(
            sp.Mul(*map(sp.factorial, alpha)) * c**2
            for alpha, c in symbol.items()
            if sum(alpha) == degree
        )
    )


def _pair_series(
    first: Sequence[RidgeFunction],
    second: Sequence[RidgeFunction],
    space: FormGeometry,
    highest: int,
) -> list[sp.Expr]:
    """Return the coefficients of ρ^0, …, ρ^highest in E of the product of two terms."""
    coupled = [
        (i, k)
        for i, a in enumerate(first)
        for k, b in enumerate(second)
        if space.inside(a.direction, b.direction) != 0
        or space.outside(a.direction, b.direction) != 0
    ]
    series = [sp.S.One] + [sp.S.Zero] * highest
    for mine, others in _components(len(first), len(second), coupled):
        left, right = [first[i] for i in mine], [second[k] for k in others]
        if len(left) == 1 and len(right) == 1:
            factor = _single_pair(left[0], right[0], space, highest)
        else:
            factor = _block(left, right, space, highest)
        series = series_product(series, factor)
        if not any(series):
            break
    return series


def _components(
    rows: int, columns: int, edges: Iterable[tuple[int, int]]
) -> list[tuple[list[int], list[int]]]:
    """Return the connected sets of a bipartite graph."""
    nodes = [*((0, i) for i in range(rows)), *((1, k) for k in range(columns))]
    groups = connected([{node} for node in nodes], (((0, i), (1, k)) for i, k in edges))
    return [
        (sorted(n for side, n in g if side == 0), sorted(n for side, n in g if side == 1))
        for g in groups
    ]


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
    found = None if value.has(Average) else taylor_coefficients(value, _RHO, order)
    if found is None:
        found = []
        for j in range(order + 1):
            at_zero = value.subs(_RHO, 0)
            found.append((at_zero.doit() if at_zero.has(Average) else at_zero) / sp.factorial(j))
            value = value.diff(_RHO) if j < order else value
    return found + [sp.S.Zero] * (length - order)


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
    found = []
    for j in range(highest + 1):
        shared = [m for m in mine if sum(m) == j and m in others]
        found.append(sp.Add(*(sp.Mul(*map(sp.factorial, m)) * mine[m] * others[m] for m in shared)))
    return found


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
            total.append(sp.Mul(*map(sp.factorial, beta)) * mean(c**2, law))
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
