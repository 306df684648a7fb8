r"""Functions of several Gaussian variables as sums of products of functions of one linear form.

.. math:: f(x) = \sum_a c_a\, x^{\alpha_a} \prod_j g_{aj}(\langle u_{aj}, x\rangle),
          \qquad |u_{aj}| = 1,

with the :math:`u_{aj}` of one term pairwise orthogonal. That is what a Gaussian expectation, and so
the symbol :math:`F(\xi) = \mathbb{E} f(x + \xi)`, factorises over: each g has a power series in its
Hermite coefficients, and multiplication by :math:`x_i` is the operator
:math:`\xi_i + \partial_{\xi_i}` on symbols (Stein's lemma).

A factor may also be a function of the length of k coordinates, whose symbol depends on
:math:`|\xi_S|` alone, so that one line decides it,

.. math:: \mathbb{E}\, g(|x_S + \xi_S|) = \sum_m \frac{|\xi_S|^{2m}}{(2m)!}\,
          \mathbb{E}[g(|x_S|)\,\mathrm{He}_{2m}(x_1)], \qquad
          \mathbb{E}[\mathrm{He}_{2m}(x_1) \,|\, r] =
          \sum_j \frac{(-1)^j (2m)!}{2^j j!\,(2m-2j)!}\,
          \frac{(2m-2j-1)!!\; r^{2m-2j}}{k (k+2) \cdots (k + 2m - 2j - 2)}

with r of the chi distribution of k degrees of freedom.

Convention: coefficients are the :math:`c_\alpha = \mu_\alpha/\alpha!` of :math:`f = \sum c_\alpha
\mathrm{He}_\alpha`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy.polys.orderings import lex
from sympy.polys.rings import PolyElement, PolyRing

from ...errors import UnsupportedExpressionError
from ..exact.series import truncated, truncated_product
from ..expressions.activations import z as _z
from ..expressions.functions import relu
from ..gaussian.expectation import expect
from ..gaussian.power_rules import chi_weight
from ..gaussian.zero_test import is_exactly_zero
from ..hermite.coefficients import hermite_coefficients

T = sp.Dummy("t", real=True)
"""The variable of every ridge function: a standard Gaussian, since directions are unit vectors."""

_MOST_TERMS = 5000


@dataclass(frozen=True)
class RidgeFunction:
    """A function g of one standard Gaussian linear form ⟨u, x⟩.

    `direction`: the unit vector u. `expr`: g as an expression in `T`.
    """

    direction: tuple[sp.Expr, ...]
    expr: sp.Expr


@dataclass(frozen=True)
class RadialFunction:
    """A function g of the length of the vector of some coordinates.

    `axes`: which coordinates, two at least. `expr`: g as an expression in `T`, the length.
    """

    axes: tuple[int, ...]
    expr: sp.Expr

    def coefficient(self, m: int) -> sp.Expr:
        r"""Return c_m of the symbol :math:`\sum_m c_m |\xi|^{2m}`.

        Examples
        --------
        >>> RadialFunction((0, 1), T).coefficient(0)
        sqrt(2)*sqrt(pi)/2
        >>> RadialFunction((0, 1, 2), T**2).coefficient(1)
        1
        """
        return _radial_coefficient(self.expr, len(self.axes), m)


@functools.lru_cache(maxsize=1024)
def _radial_coefficient(g: sp.Expr, k: int, m: int) -> sp.Expr:
    square, polynomial = _z**2, []
    for j in range(m + 1):
        n = m - j
        count = sp.Rational((-1) ** j, 2**j * math.factorial(j) * math.factorial(2 * n))
        weight = sp.factorial2(2 * n - 1) / sp.Mul(*(k + 2 * i for i in range(n)))
        polynomial.append(count * weight * square**n)
    inside = g.xreplace({T: sp.Abs(_z)}) * sp.Abs(_z) ** (k - 1) * sp.Add(*polynomial)
    return chi_weight(k) * sp.expand(expect(inside, _z), deep=False)


@dataclass(frozen=True)
class RidgeTerm:
    """One term c x^α Π g_j(⟨u_j, x⟩).

    `coefficient`: the number c. `powers`: the multi-index α; of variables whose axis is one of the
    directions it is 0. `ridges`: directions pairwise orthogonal, none of them twice. `radials`: of
    coordinates that neither the directions nor one another hold.
    """

    coefficient: sp.Expr
    powers: tuple[int, ...]
    ridges: tuple[RidgeFunction, ...]
    radials: tuple[RadialFunction, ...] = ()


def ridge_terms(
    expr: sp.Expr, variables: Sequence[sp.Symbol], *, radial: bool = False
) -> tuple[RidgeTerm, ...]:
    r"""Write a function of several variables as a sum of products of ridge functions.

    Parameters
    ----------
    expr : Expr
        Function of `variables`; all other symbols are parameters.
    variables : sequence of Symbol
        The coordinates x_1..x_r, real.
    radial : bool
        Take functions of the length of some coordinates, too.

    Returns
    -------
    tuple of RidgeTerm

    Raises
    ------
    UnsupportedExpressionError
        If a factor depends on more than one linear form, as ``erf(x1*x2)``, if the directions
        within a product are neither parallel nor orthogonal, as in ``erf(x1)*erf(x1 + x2)``, or if
        there are too many terms.

    Examples
    --------
    >>> x = sp.symbols("x1:3", real=True)
    >>> for term in ridge_terms(x[1] * sp.erf(x[0] - x[1]) + sp.tanh(x[0]) * x[0], x):
    ...     print(term.coefficient, term.powers, term.ridges)
    1 (0, 0) (RidgeFunction(direction=(1, 0), expr=_t*tanh(_t)),)
    1 (0, 1) (RidgeFunction(direction=(sqrt(2)/2, -sqrt(2)/2), expr=erf(sqrt(2)*_t)),)
    """
    terms = _multiplied_out(_split_products(expr))
    # What cancels when it is multiplied out leaves a plain 0.
    remaining = sorted((term for term in terms if term != 0), key=sp.default_sort_key)
    return tuple(_term(term, tuple(variables), radial) for term in remaining)


def holds_lengths(expr: sp.Expr, variables: Sequence[sp.Symbol]) -> bool:
    """Whether a function holds functions of the length of some coordinates."""
    return any(term.radials for term in ridge_terms(expr, variables, radial=True))


def _multiplied_out(expr: sp.Expr) -> tuple[sp.Expr, ...]:
    """Return the terms of a sum of products; arguments of functions stay as they are."""
    if _count_terms(expr) > _MOST_TERMS:
        raise UnsupportedExpressionError(
            f"the function has more than {_MOST_TERMS} terms when multiplied out; shorten it"
        )
    waiting, done = list(sp.Add.make_args(expr)), []
    while waiting:
        term = waiting.pop()
        factors = list(sp.Mul.make_args(term))
        for position, factor in enumerate(factors):
            base, exponent = factor.as_base_exp()
            # SymPy's expand would multiply out denominators and arguments of exp, too.
            if base.is_Add and exponent.is_Integer and exponent > 0:
                rest = sp.Mul(*factors[:position], *factors[position + 1 :], base ** (exponent - 1))
                waiting += [addend * rest for addend in base.args]
                break
        else:
            done.append(term)
    return sp.Add.make_args(sp.Add(*done))


def _count_terms(expr: sp.Expr) -> int:
    """Terms after multiplying out, equal ones not collected."""
    if expr.is_Add:
        return sum(map(_count_terms, expr.args))
    if expr.is_Mul:
        return math.prod(map(_count_terms, expr.args))
    base, exponent = expr.as_base_exp()
    if base.is_Add and exponent.is_Integer and exponent > 0:
        return _count_terms(base) ** int(exponent)
    return 1


def are_orthogonal(directions: Sequence[tuple[sp.Expr, ...]]) -> bool:
    """Whether the directions are pairwise orthogonal, decided exactly."""
    pairs = itertools.combinations(directions, 2)
    return all(_orthogonal(first, second) for first, second in pairs)


def linear_form(
    expr: sp.Expr, variables: Sequence[sp.Symbol]
) -> tuple[tuple[sp.Expr, ...], sp.Expr] | None:
    """Return (a, b) with expr = ⟨a, x⟩ + b, or None if it is not affine in the variables."""
    if expr.has(*variables) and not expr.is_polynomial(*variables):
        return None
    polynomial = sp.Poly(expr, *variables, domain=sp.EXRAW) if expr.has(*variables) else None
    if polynomial is None:
        return (sp.S.Zero,) * len(variables), expr
    if polynomial.total_degree() > 1:
        return None
    slopes = tuple(polynomial.coeff_monomial(x) for x in variables)
    return slopes, polynomial.coeff_monomial(1)


def _split_products(expr: sp.Expr) -> sp.Expr:
    """Write the sign, the modulus and the rectification of a product by those of its factors."""

    def factorwise(function: type) -> object:
        def split(argument: sp.Expr, *rest: sp.Expr) -> sp.Expr:
            factors = sp.Mul.make_args(argument)
            return sp.Mul(*(function(factor, *rest) for factor in factors))

        return split

    if expr.has(relu):
        expr = expr.replace(
            lambda node: isinstance(node, relu) and _is_product(node.args[0]),
            lambda node: (node.args[0] + sp.Abs(node.args[0])) / 2,
        )
    for function in (sp.sign, sp.Abs):
        expr = expr.replace(function, factorwise(function))
    return expr


def _is_product(argument: sp.Expr) -> bool:
    return sum(bool(factor.free_symbols) for factor in sp.Mul.make_args(argument)) > 1


def _term(term: sp.Expr, variables: tuple[sp.Symbol, ...], radial: bool) -> RidgeTerm:
    constant, rest = term.as_independent(*variables, as_Add=False)
    powers = [0] * len(variables)
    groups: dict[tuple[sp.Expr, ...], sp.Expr] = {}
    lengths: dict[tuple[int, ...], sp.Expr] = {}
    for factor in sp.Mul.make_args(rest):
        base, exponent = factor.as_base_exp()
        if base in variables and exponent.is_Integer and exponent > 0:
            powers[variables.index(base)] += int(exponent)
        elif factor != 1:
            for part in _separated(factor, variables):
                length = _radial(part, variables) if radial else None
                if length is not None:
                    lengths[length.axes] = lengths.get(length.axes, sp.S.One) * length.expr
                    continue
                ridge = _ridge(part, variables)
                _merge(groups, ridge.direction, ridge.expr)
    for i in range(len(variables)):
        for direction in groups:
            others = [entry for j, entry in enumerate(direction) if j != i]
            if powers[i] and all(entry == 0 for entry in others):
                groups[direction] *= (direction[i] * T) ** powers[i]
                powers[i] = 0
    ridges = tuple(RidgeFunction(u, g) for u, g in groups.items())
    if not are_orthogonal(list(groups)):
        raise UnsupportedExpressionError(
            f"the directions in the product {term} are neither parallel nor orthogonal: "
            f"{', '.join(map(str, groups))}; products of functions have to be of orthogonal "
            "linear forms (sums and polynomial factors may be of any)"
        )
    radials = tuple(RadialFunction(axes, g) for axes, g in lengths.items())
    _require_apart(term, ridges, radials)
    return RidgeTerm(constant, tuple(powers), ridges, radials)


def _require_apart(
    term: sp.Expr, ridges: Sequence[RidgeFunction], radials: Sequence[RadialFunction]
) -> None:
    """Refuse a product of functions that share coordinates with one of a length."""
    for radial in radials:
        others = [other.axes for other in radials if other != radial]
        others += [tuple(i for i, u in enumerate(r.direction) if u != 0) for r in ridges]
        if any(set(radial.axes) & set(other) for other in others):
            raise UnsupportedExpressionError(
                f"the product {term} holds a function of the length of some coordinates and "
                "another function of one of them; its factors have to be of different coordinates "
                "(sums and polynomial factors may be of any)"
            )


def _radial(factor: sp.Expr, variables: tuple[sp.Symbol, ...]) -> RadialFunction | None:
    """Return a factor as a function of the length of two or more coordinates, if it is one."""
    axes = tuple(i for i, x in enumerate(variables) if factor.has(x))
    if len(axes) < 2:
        return None
    used = tuple(variables[i] for i in axes)
    expr = _in_length(factor, used)
    return None if expr is None or expr.has(*used) else RadialFunction(axes, expr)


def _in_length(expr: sp.Expr, variables: tuple[sp.Symbol, ...]) -> sp.Expr | None:
    """Write the largest parts that are a |x|² + b by the length, T."""
    if not expr.has(*variables):
        return expr
    if expr.is_polynomial(*variables):
        polynomial = sp.Poly(expr, *variables, domain=sp.EXRAW)
        count = range(len(variables))
        squares = {tuple(2 * (i == j) for j in count) for i in count}
        constant = polynomial.coeff_monomial(1)
        coefficients = {m: c for m, c in polynomial.terms() if any(m)}
        if set(coefficients) != squares or len(set(coefficients.values())) > 1:
            return None
        return next(iter(coefficients.values())) * T**2 + constant
    operands = expr.args
    if expr.is_Add:
        plain = [x for x in operands if x.is_polynomial(*variables)]
        operands = (sp.Add(*plain), *(x for x in operands if x not in plain))
    written = [_in_length(operand, variables) for operand in operands]
    if any(part is None for part in written):
        return None
    # T is a length: its modulus is itself.
    return expr.func(*written).replace(sp.Abs, lambda u: u if u == T else sp.Abs(u))


def _separated(factor: sp.Expr, variables: tuple[sp.Symbol, ...]) -> list[sp.Expr]:
    """Write exp of a sum of functions of one variable each as factors; SymPy keeps it as one."""
    if not isinstance(factor, sp.exp):
        return [factor]
    parts: dict[sp.Symbol, sp.Expr] = {}
    for addend in sp.Add.make_args(sp.expand(factor.exp)):
        used = [x for x in variables if addend.has(x)]
        if len(used) != 1:
            return [factor]
        parts[used[0]] = parts.get(used[0], sp.S.Zero) + addend
    return [sp.exp(part) for part in parts.values()]


def _merge(
    groups: dict[tuple[sp.Expr, ...], sp.Expr], direction: tuple[sp.Expr, ...], g: sp.Expr
) -> None:
    for known in groups:
        if known == direction or _parallel(known, direction):
            sign = sp.sign(sp.Add(*(a * b for a, b in zip(known, direction, strict=True))))
            groups[known] *= g.xreplace({T: sign * T})
            return
    groups[direction] = g


def _ridge(factor: sp.Expr, variables: tuple[sp.Symbol, ...]) -> RidgeFunction:
    """Return a factor as a function of one linear form."""
    used = [x for x in variables if factor.has(x)]
    if len(used) == 1:
        direction = tuple(sp.Integer(x == used[0]) for x in variables)
        return RidgeFunction(direction, factor.xreplace({used[0]: T}))
    slopes: tuple[sp.Expr, ...] | None = None

    def first(a: tuple[sp.Expr, ...], b: sp.Expr) -> sp.Expr:
        nonlocal slopes
        if slopes is None and any(entry != 0 for entry in a):
            slopes = a
        return b

    _with_forms(factor, variables, first)
    if slopes is None:
        raise _not_a_ridge(factor)
    if any(entry.free_symbols for entry in slopes):
        # a x1 + 2 a x2 has the direction of x1 + 2 x2 for all values of a.
        leading = next(entry for entry in slopes if entry != 0)
        ratios = tuple(sp.cancel(entry / leading) for entry in slopes)
        slopes = slopes if any(ratio.free_symbols for ratio in ratios) else ratios
    norm = sp.sqrt(sp.Add(*(entry**2 for entry in slopes)))
    unit = tuple(sp.radsimp(entry / norm) for entry in slopes)
    pivot = next(i for i, entry in enumerate(slopes) if entry != 0)

    def along(a: tuple[sp.Expr, ...], b: sp.Expr) -> sp.Expr:
        if not _parallel(slopes, a):
            raise _not_a_ridge(factor)
        return norm * a[pivot] / slopes[pivot] * T + b

    return RidgeFunction(unit, _with_forms(factor, variables, along))


def _with_forms(
    expr: sp.Expr,
    variables: tuple[sp.Symbol, ...],
    write: Callable[[tuple[sp.Expr, ...], sp.Expr], sp.Expr],
) -> sp.Expr:
    """Replace the largest parts ⟨a, x⟩ + b that are affine in the variables by write(a, b)."""
    if not expr.has(*variables):
        return expr
    form = linear_form(expr, variables)
    if form is not None:
        return write(*form)
    operands = expr.args
    if expr.is_Add:
        # The affine addends are one part: x1 + x2 beside a function of x1 + x2.
        affine = [x for x in operands if linear_form(x, variables) is not None]
        operands = (sp.Add(*affine), *(x for x in operands if x not in affine))
    return expr.func(*(_with_forms(operand, variables, write) for operand in operands))


def _not_a_ridge(factor: sp.Expr) -> UnsupportedExpressionError:
    if _radial(factor, tuple(sorted(factor.free_symbols, key=str))) is not None:
        return UnsupportedExpressionError(
            f"{factor} is a function of the length of the vector of its variables: leaps, "
            "staircases, giant steps and norms of it are exact, and so are its averages, "
            "giantstep.expect(f, GaussianVector(...)) with independent variables; what is asked "
            "for here needs sums of products of functions of one linear form"
        )
    return UnsupportedExpressionError(
        f"{factor} depends on more than one linear form of the variables; use polynomials and "
        "products of functions of one linear form each, such as erf(x1 + x2)*tanh(x1 - x2), or of "
        "the length of coordinates, such as sqrt(x1**2 + x2**2)"
    )


def _orthogonal(a: Sequence[sp.Expr], b: Sequence[sp.Expr]) -> bool:
    product = sp.Add(*(x * y for x, y in zip(a, b, strict=True)))
    return product == 0 or is_exactly_zero(product, "the product of two directions")


def _parallel(a: Sequence[sp.Expr], b: Sequence[sp.Expr]) -> bool:
    pivot = next(i for i, entry in enumerate(a) if entry != 0)
    minors = (a[pivot] * b[i] - a[i] * b[pivot] for i in range(len(a)) if i != pivot)
    return all(m == 0 or is_exactly_zero(m, "a minor of two directions") for m in minors)


@functools.lru_cache(maxsize=256)
def truncated_symbol(
    expr: sp.Expr, variables: tuple[sp.Symbol, ...], degree: int
) -> dict[tuple[int, ...], sp.Expr]:
    r"""Return {α: c_α} up to a total degree.

    `expr`: function that :func:`.ridge_terms` can write as a sum of products. `variables`: the
    coordinates, real. `degree`: largest \|α\|.

    Examples
    --------
    >>> x = sp.symbols("x1:3", real=True)
    >>> truncated_symbol(x[0] * sp.Abs(x[1]), x, 1)
    {(1, 0): sqrt(2)/sqrt(pi)}
    """
    ring = sp.ring([x.name for x in variables], sp.EXRAW)[0]
    total = ring.zero
    for term in ridge_terms(expr, variables, radial=True):
        total += _symbol_of(term, ring, degree, _itself)
    collected = ((tuple(alpha), sp.expand(c)) for alpha, c in total.items())
    return {alpha: c for alpha, c in collected if c != 0 and sum(alpha) <= degree}


def rounded_symbol(
    term: RidgeTerm, variables: tuple[sp.Symbol, ...], degree: int, bits: int
) -> PolyElement:
    """Return Σ c_α ξ^α of a term up to a total degree, each c_α to some bits, over ``QQ``.

    Where exact coefficients are long, or there are many of them.
    """
    field = sp.RealField(bits + 16)
    digits = int((bits + 16) / 3.3)

    def number(value: sp.Expr) -> Any:
        return field.convert(value.evalf(digits))

    ring = PolyRing(variables, field, lex)
    symbol = _symbol_of(term, ring, degree, number)
    scale = 2**bits
    rounded = {alpha: sp.QQ(int(c * scale), scale) for alpha, c in symbol.items()}
    return ring.clone(domain=sp.QQ).from_dict({alpha: c for alpha, c in rounded.items() if c})


def _itself(value: sp.Expr) -> sp.Expr:
    return value


def _symbol_of(
    term: RidgeTerm, ring: PolyRing, degree: int, number: Callable[[sp.Expr], Any]
) -> PolyElement:
    # x_i raises the degree by one or lowers it by one, so the series is needed that much further.
    enough = degree + sum(term.powers)
    series = ring.one
    for ridge in term.ridges:
        line = zip(ridge.direction, ring.gens, strict=True)
        form = sum((g * number(u) for u, g in line), ring.zero)
        series = truncated_product(series, ridge_symbol(ridge, form, enough, number), enough)
    for radial in term.radials:
        square = sum((ring.gens[i] ** 2 for i in radial.axes), ring.zero)
        line = sum((square**m * number(radial.coefficient(m)) for m in range(enough // 2 + 1)),
                   ring.zero)  # fmt: skip
        series = truncated_product(series, line, enough)
    for i, exponent in enumerate(term.powers):
        for _ in range(exponent):
            series = series * ring.gens[i] + series.diff(ring.gens[i])
    return truncated(series, degree) * number(term.coefficient)


def ridge_symbol(
    ridge: RidgeFunction,
    form: PolyElement,
    degree: int,
    number: Callable[[sp.Expr], Any] = _itself,
) -> PolyElement:
    """Return Σ μ_k/k! times powers of an element of a ring, up to a degree."""
    moments = hermite_coefficients(ridge.expr.xreplace({T: _z}), degree, variable=_z)
    total, power = form.ring.zero, form.ring.one
    for k, moment in enumerate(moments):
        total += power * number(moment / sp.factorial(k))
        power = power * form
    return total
