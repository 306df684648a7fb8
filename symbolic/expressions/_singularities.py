"""Where an expression of one real variable is not analytic: on the real line and next to it.

Functions with a kink or a jump (`NONSMOOTH`) are resolved into their smooth pieces; poles and
branch points follow from the zeros of denominators and of the arguments of roots and logarithms.
Symbols other than the variable are real parameters in general position.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import mpmath
import sympy as sp

from ...errors import UnsupportedExpressionError
from ...pages import shorten
from .averages import Average
from .factors import factors_of_polynomial
from .functions import OwenT, relu, sigmoid, softplus
from .shared_parts import first_derivative, free_symbols, parts_of, replaced

NONSMOOTH = (relu, sp.Abs, sp.sign, sp.Heaviside)
ENTIRE = (sp.exp, sp.sin, sp.cos, sp.sinh, sp.cosh, sp.erf, sp.erfc)
ZERO_WITH_ARGUMENT = (sp.tanh, sp.erf, sp.sinh, sp.atan, sp.asinh, sp.Abs, sp.sign)
NEVER_ZERO = (sp.exp, sp.cosh, sp.sech, sp.erfc, sigmoid, softplus)
# Imaginary part of the singularity nearest to the real axis of the argument.
POLE_HEIGHTS = {
    sp.tanh: sp.pi / 2,
    sp.sech: sp.pi / 2,
    sigmoid: sp.pi,
    softplus: sp.pi,
    sp.atan: sp.S.One,
    sp.asinh: sp.S.One,
}
_MAX_NONSMOOTH = 6
_MAX_ORDERED = 16
_MAX_EXPANDED_TERMS = 300
_MAX_ROOT_DEGREE = 24


def expanded(expr: sp.Expr) -> sp.Expr:
    """Return the expression expanded, or as it is if that would make it very large."""
    return sp.expand(expr) if expanded_terms(expr) <= _MAX_EXPANDED_TERMS else expr


def polynomial(u: sp.Expr, z: sp.Symbol) -> sp.Poly:
    """Return a polynomial expression as a Poly in z."""
    if expanded_terms(u) > _MAX_EXPANDED_TERMS:
        raise UnsupportedExpressionError(
            f"{u} has more than {_MAX_EXPANDED_TERMS} terms when expanded; write it in fewer"
        )
    return sp.Poly(u, z)


@functools.lru_cache(maxsize=4096)
def expanded_terms(expr: sp.Basic) -> int:
    """Bound the number of terms after expansion; every atom counts as a variable of its own."""
    if isinstance(expr, Average):
        return 1
    # Cases and their conditions are no expressions; nothing expands them.
    if not expr.args or expr.is_Function or not isinstance(expr, sp.Expr):
        return max((expanded_terms(operand) for operand in expr.args), default=1)
    numbers = [atom for atom in expr.atoms() if not atom.is_Rational]
    if len(numbers) == 1 and expr.is_polynomial(*numbers):
        return _degree(expr) + 1
    counts = [expanded_terms(operand) for operand in expr.args]
    if expr.is_Add:
        return sum(counts)
    if expr.is_Pow:
        power, terms = expr.exp, counts[0]
        integer = power.is_Integer and power.is_positive
        return math.comb(int(power) + terms - 1, terms - 1) if integer else max(counts)
    return math.prod(counts)


def _degree(expr: sp.Expr) -> int:
    """Return a bound of the degree of an unexpanded polynomial in one symbol."""
    if not expr.args:
        return int(bool(expr.is_Symbol))
    if expr.is_Pow:
        return _degree(expr.base) * int(expr.exp) if expr.exp.is_Integer else 0
    degrees = [_degree(operand) for operand in expr.args]
    return sum(degrees) if expr.is_Mul else max(degrees)


# Integrands of a system share most of their parts, here and below.
@functools.lru_cache(maxsize=1024)
def affine_slope(u: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    """Return a if u = a*z + b with a != 0 and b free of z, else None."""
    # A function of a function is affine only where all of it cancels: then nothing is known. Its
    # slope is long.
    functions = [f for f in parts_of(u, sp.Function) if z in free_symbols(f)]
    if any(f != g and f.has(g) for f in functions for g in functions):
        return None
    slope = first_derivative(u, z)
    if z in free_symbols(slope):
        slope = expanded(slope)
    return None if z in slope.free_symbols or slope.is_zero else slope


def _nonsmooth_atoms(expr: sp.Expr, z: sp.Symbol) -> list[sp.Expr]:
    """Return the applications of `NONSMOOTH` in z, inner before outer."""
    atoms = [atom for atom in parts_of(expr, *NONSMOOTH) if z in free_symbols(atom)]
    return sorted(atoms, key=lambda atom: (len(atom.atoms(*NONSMOOTH)), sp.default_sort_key(atom)))


def has_nonsmooth(expr: sp.Expr, z: sp.Symbol) -> bool:
    """Whether relu, abs, sign or a step of z occurs in the expression."""
    return bool(_nonsmooth_atoms(expr, z))


def resolve(expr: sp.Expr, u: sp.Expr, sign: sp.Expr) -> sp.Expr:
    """Replace every non-smooth function of `u` by its smooth branch where u has this sign."""
    result = (atom for atom in parts_of(expr, *NONSMOOTH) if atom.args[0] == u)
    return replaced(expr, {atom: on_side(atom.func, u, sign) for atom in result})


def resolved(expr: sp.Expr, z: sp.Symbol, sign: Callable[[sp.Expr], sp.Expr]) -> sp.Expr:
    """Replace all non-smooth functions, inner ones first; `sign` tells that of an argument."""
    while atoms := _nonsmooth_atoms(expr, z):
        u = atoms[0].args[0]
        expr = resolve(expr, u, sign(u))
    return expr


def on_side(function: object, u: Any, sign: sp.Expr | int) -> Any:
    """Return what relu, abs, sign or the step of `u`, an expression or polynomial, is at a sign."""
    half = (1 + sp.sympify(sign, strict=True)) / 2
    return {relu: half * u, sp.Abs: sign * u, sp.sign: 0 * u + sign}.get(function, 0 * u + half)


def pieces(expr: sp.Expr, z: sp.Symbol) -> list[sp.Expr]:
    """Return the smooth expressions that `expr` is equal to between its kinks.

    Combinations of signs that never occur may be among them, if there are few kinks.

    Raises UnsupportedExpressionError if there are too many kinks, or the order of more than a few
    is not known.
    """
    if _count_kinks(expr, z) > _MAX_NONSMOOTH:
        return list(dict.fromkeys(_ordered_pieces(expr, z)))
    branches = [expr]
    for _ in range(_MAX_NONSMOOTH):
        following = []
        for branch in branches:
            atoms = _nonsmooth_atoms(branch, z)
            signs = (sp.S.One, sp.S.NegativeOne) if atoms else ()
            following += [resolve(branch, atoms[0].args[0], sign) for sign in signs]
            following += [] if atoms else [branch]
        if following == branches:
            return branches
        branches = list(dict.fromkeys(following))
    if any(has_nonsmooth(branch, z) for branch in branches):
        raise _too_many(expr, _MAX_NONSMOOTH)
    return branches


def require_few_kinks(expr: sp.Expr, z: sp.Symbol) -> None:
    """Refuse an expression with more kinks than can be gone through.

    Raises UnsupportedExpressionError naming the limit.
    """
    if _count_kinks(expr, z) > _MAX_ORDERED:
        raise _too_many(expr, _MAX_ORDERED)


def _count_kinks(expr: sp.Expr, z: sp.Symbol) -> int:
    return len({u for atom in _nonsmooth_atoms(expr, z) for u in atom.args[:1]})


def _too_many(expr: sp.Expr, limit: int) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(
        f"more than {limit} kinked functions in {shorten(str(expr))}; split the expression"
    )


def _ordered_pieces(expr: sp.Expr, z: sp.Symbol) -> list[sp.Expr]:
    """Return the smooth expressions beside the kinks, which have to be numbers."""
    kinks, _ = find_kinks(expr, z)
    if not all(point.is_number for point in kinks):
        raise _too_many(expr, _MAX_NONSMOOTH)
    first = kinks[0] if kinks else sp.S.Zero
    return [beside(expr, z, first, -1), *(beside(expr, z, point, 1) for point in kinks)]


def real_zeros(u: sp.Expr, z: sp.Symbol) -> list[sp.Expr]:
    """Return points that include all real zeros of u.

    Raises UnsupportedExpressionError if they are not known, or there are infinitely many.
    """
    if z not in u.free_symbols or u.is_positive or u.is_negative:
        return []
    if u.is_Mul:
        return _union(real_zeros(factor, z) for factor in u.args)
    if u.is_Pow and u.exp.is_number:
        return real_zeros(u.base, z) if u.exp.is_positive else []
    if u.is_polynomial(z):
        slope = affine_slope(u, z)
        if slope is not None:
            return [-u.subs(z, 0) / slope]
        poly = polynomial(u, z)
        if poly.domain.is_ZZ or poly.domain.is_QQ:
            return list(poly.sqf_part().real_roots())
        if poly.degree() == 2:
            a, b, _ = poly.all_coeffs()
            discriminant = poly.discriminant()
            if discriminant.is_negative:
                return []
            if discriminant.is_nonnegative:
                return _union([[(-b + s * sp.sqrt(discriminant)) / (2 * a) for s in (-1, 1)]])
        raise UnsupportedExpressionError(
            f"the real zeros of {u} are not known; coefficients have to be rational numbers, "
            "or the degree at most 2"
        )
    if has_nonsmooth(u, z) and not isinstance(u, NONSMOOTH):
        return _union(real_zeros(piece, z) for piece in pieces(u, z))
    if isinstance(u, NEVER_ZERO) or (u.is_Pow and u.base.is_positive):
        return []
    if isinstance(u, ZERO_WITH_ARGUMENT):
        return real_zeros(u.args[0], z)
    if u.is_Add and is_positive_sum(u, z):
        return []
    if u.is_Add and _inverse_powers(u, z):
        top = sp.numer(sp.together(u))
        if not _inverse_powers(top, z):
            return real_zeros(top, z)
    raise UnsupportedExpressionError(
        f"the real zeros of {u} are not known; known are those of polynomials, their products, "
        "and of tanh, erf, sinh, atan, asinh of these"
    )


def _union(groups: Iterable[list[sp.Expr]]) -> list[sp.Expr]:
    return list(dict.fromkeys(point for group in groups for point in group))


def is_positive_sum(u: sp.Expr, z: sp.Symbol) -> bool:
    """Whether the constant outweighs all other terms, each bounded by its coefficient."""
    constant, rest = u.as_independent(z, as_Add=True)
    for term in sp.Add.make_args(rest):
        coefficient, factor = term.as_independent(z, as_Add=False)
        if not isinstance(factor, sp.sin | sp.cos | sp.tanh | sp.erf | sp.sech | sp.sign | sigmoid):
            return False
        constant -= abs(coefficient)
    return bool(constant.is_positive)


@functools.lru_cache(maxsize=512)
def find_kinks(expr: sp.Expr, z: sp.Symbol) -> tuple[tuple[sp.Expr, ...], tuple[sp.Expr, ...]]:
    """Return the points where `expr` is not analytic, and those of them where it jumps.

    Only points caused by relu, abs, sign and steps, whose arguments change sign there, through zero
    or through a pole; other poles and branch points are not among them.

    Raises UnsupportedExpressionError if the zeros or poles of one of their arguments are not known.
    """
    candidates = possible_kinks(expr, z)
    if len(candidates) > 1 and all(point.is_number for point in candidates):
        candidates.sort(key=float)
    kinks, jumps = [], []
    for point in candidates:
        step = expanded(beside(expr, z, point, 1) - beside(expr, z, point, -1))
        if step.is_zero:
            continue
        kinks.append(point)
        if not _vanishes(_value_at(step, z, point)):
            jumps.append(point)
    return tuple(kinks), tuple(jumps)


def possible_kinks(expr: sp.Expr, z: sp.Symbol) -> list[sp.Expr]:
    """Return points that include all those of :func:`find_kinks`, much sooner.

    Raises UnsupportedExpressionError as :func:`find_kinks`.
    """
    require_few_kinks(expr, z)
    arguments = dict.fromkeys(atom.args[0] for atom in _nonsmooth_atoms(expr, z))
    return _union(
        [*real_zeros(piece, z), *_real_poles(piece, z)]
        for argument in arguments
        for piece in pieces(argument, z)
    )


def _real_poles(u: sp.Expr, z: sp.Symbol) -> list[sp.Expr]:
    """Return points that include all real poles of u.

    Roots in the denominator are not looked at: they are positive wherever they are real.
    """
    return _union(real_zeros(power.base, z) for power in _inverse_powers(u, z))


def _inverse_powers(u: sp.Expr, z: sp.Symbol) -> list[sp.Pow]:
    powers = u.atoms(sp.Pow)
    result = [p for p in powers if z in p.base.free_symbols and p.exp.is_Integer and p.exp < 0]
    return sorted(result, key=sp.default_sort_key)


def beside(expr: sp.Expr, z: sp.Symbol, point: sp.Expr, side: int) -> sp.Expr:
    """Return the smooth branch of `expr` just above (side 1) or below (side -1) the point."""
    return resolved(expr, z, lambda u: _sign_beside(u, z, point, side))


def _sign_beside(u: sp.Expr, z: sp.Symbol, point: sp.Expr, side: int) -> sp.Expr:
    if _inverse_powers(u, z):
        top, bottom = sp.fraction(sp.together(u))
        if z in bottom.free_symbols:
            signs = (_sign_beside(part, z, point, side) for part in (top, bottom))
            return sp.Mul(*signs)
    orientation = sp.S.One
    while u != 0:
        value = _value_at(u, z, point)
        if not _vanishes(value):
            return orientation * sp.sign(value)
        # The first derivative that does not vanish decides; odd orders change sign with the side.
        u, orientation = expanded(u.diff(z)), orientation * side
    return sp.S.Zero


def _value_at(u: sp.Expr, z: sp.Symbol, point: sp.Expr) -> sp.Expr:
    """Return u at the point; at roots of irreducible polynomials only zero and sign are right."""
    if isinstance(point, sp.CRootOf) and u.is_polynomial(z):
        poly = polynomial(u, z)
        if poly.domain.is_ZZ or poly.domain.is_QQ:
            # SymPy's own zero test at such a point computes minimal polynomials, for seconds.
            remainder = poly.rem(sp.Poly(point.poly.as_expr(z), z))
            return remainder.as_expr().subs(z, point.evalf(40))
    return u.subs(z, point)


def _vanishes(value: sp.Expr) -> bool:
    """Whether a value is provably zero; parameters are in general position."""
    value = expanded(value)
    if value.is_zero is not None or not value.is_number:
        return bool(value.is_zero)
    # Ten significant digits decide quickly that a number is not zero; `equals` proves that it is.
    digits = value.evalf(10, maxn=100)
    return bool(digits._prec == 1 and value.equals(0)) if digits.is_Float else False


def pole_distance(expr: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    """Return a lower bound of the distance of complex singularities of a smooth expression.

    Zero if there may be one on the real line, oo for entire functions, None if unknown.
    """
    if parts_of(expr, type(sp.zoo), type(sp.nan)) and not expr.is_polynomial(z):
        return None
    return _pole_distance(expr, z)


# Derivatives of a system share their parts.
@functools.lru_cache(maxsize=1 << 14)
def _pole_distance(expr: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    if expr.is_Symbol or z not in free_symbols(expr):
        return sp.oo
    if isinstance(expr, Average):
        return None
    inner = _least(_pole_distance(operand, z) for operand in expr.args)
    if expr.is_Add or expr.is_Mul or isinstance(expr, ENTIRE):
        return inner
    if expr.is_Pow:
        if expr.base.is_positive and z not in expr.base.free_symbols:
            return inner
        if z in expr.exp.free_symbols:
            return None
        integer = expr.exp.is_Integer and expr.exp.is_positive
        return inner if integer else _least((inner, zero_distance(expr.base, z)))
    if isinstance(expr, sp.log):
        return _least((inner, zero_distance(expr.args[0], z)))
    if isinstance(expr, OwenT) and z not in expr.args[1].free_symbols:
        return inner  # entire in its first argument
    if expr.func in POLE_HEIGHTS:
        u = expr.args[0]
        slope = affine_slope(u, z)
        if slope is not None:
            return POLE_HEIGHTS[expr.func] / sp.Abs(slope)
        if isinstance(expr, sp.tanh) and isinstance(u, softplus):
            # (w**2 - 1)/(w**2 + 1) with w = 1 + exp(v), whose poles are where exp(v) = -1 +- i.
            slope = affine_slope(u.args[0], z)
            return None if slope is None else 3 * sp.pi / 4 / sp.Abs(slope)
        if isinstance(expr, sp.atan | sp.asinh) and u.is_polynomial(z):
            return zero_distance(u**2 + 1, z)
    return sp.S.Zero if isinstance(expr, sp.tan) else None


def zero_distance(expr: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    """Return a lower bound of |Im| over the complex zeros of a smooth expression.

    None if unknown. Beyond the expression's own singularities the bound is void.
    """
    if z not in expr.free_symbols:
        return sp.oo
    if expr.is_Mul:
        return _least(zero_distance(factor, z) for factor in expr.args)
    if expr.is_Pow and expr.exp.is_number:
        return zero_distance(expr.base, z) if expr.exp.is_positive else sp.oo
    if expr.is_polynomial(z):
        return _polynomial_zero_distance(expr, z)
    if isinstance(expr, sp.exp | sp.sech | sigmoid | softplus):
        return sp.oo
    if expr.is_Add:
        return _exponential_sum_zero_distance(expr, z)
    slope = affine_slope(expr.args[0], z) if len(expr.args) == 1 else None
    if slope is not None and isinstance(expr, sp.cosh):
        return sp.pi / 2 / sp.Abs(slope)
    real_zero = isinstance(expr, (*ZERO_WITH_ARGUMENT, sp.sin, sp.cos))
    return sp.S.Zero if slope is not None and real_zero else None


def _polynomial_zero_distance(expr: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    try:
        poly = polynomial(expr, z)
    except UnsupportedExpressionError:
        return None
    if poly.degree() > _MAX_ROOT_DEGREE:
        return None
    if poly.degree() == 1:
        return sp.S.Zero
    if poly.degree() == 2:
        discriminant = poly.discriminant()
        if discriminant.is_negative:
            return sp.sqrt(-discriminant) / (2 * sp.Abs(poly.LC()))
        return sp.S.Zero if discriminant.is_nonnegative else None
    if poly.free_symbols_in_domain:
        return None
    if poly.domain.is_ZZ or poly.domain.is_QQ:
        factors = [factor for factor, _ in factors_of_polynomial(poly)[1]]
        if len(factors) > 1:
            return _least(_polynomial_zero_distance(factor.as_expr(), z) for factor in factors)
        poly = factors[0]
        if poly.count_roots() > 0:
            return sp.S.Zero
    try:
        heights = [abs(sp.im(root)) for root in poly.nroots(n=15, maxsteps=200)]
    except mpmath.libmp.NoConvergence:
        return None
    # Rounded down: a lower bound is promised, and no Float.
    return sp.Rational(sp.floor(min(heights) * 10**9 * (1 - sp.Float("1e-10"))), 10**9)


def _exponential_sum_zero_distance(expr: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    """Bound the zeros of a sum of positive exponentials exp(a*z + b), constants included.

    On Im z = y the phases a*y of the terms spread over (max a - min a)*y; below pi they lie in an
    open half plane and the sum cannot vanish. Sharp for two terms: 1 + exp(z) at i*pi.
    """
    slopes = []
    for term in expr.args:
        coefficient, factor = term.as_independent(z, as_Add=False)
        slope = affine_slope(factor.args[0], z) if isinstance(factor, sp.exp) else None
        if not coefficient.is_positive or (slope is None and factor != 1):
            return None
        slopes.append(sp.S.Zero if slope is None else slope)
    return sp.pi / (sp.Max(*slopes) - sp.Min(*slopes))


def _least(distances: Iterable[sp.Expr | None]) -> sp.Expr | None:
    known = list(distances)
    finite = [distance for distance in known if distance is not None and distance != sp.oo]
    if any(distance is None for distance in known):
        return None
    return sp.Min(*finite) if finite else sp.oo
