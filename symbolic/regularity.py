r"""Parity, kinks, jumps and complex singularities of a function of one Gaussian variable.

The choice of a quadrature rule rests on these: analytic integrands take the trapezoidal rule, whose
error falls like :math:`e^{-2\pi d/h}` with the width d of the strip of analyticity, kinked ones are
split at their kinks. Parity halves the work and makes Hermite coefficients vanish exactly.
Everything is decided from the structure of the expression; what is not provable is reported as
unknown, never guessed.
"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass

import sympy as sp

from ..errors import UnsupportedExpressionError
from ._integrability import require_square_integrable
from ._singularities import (
    POLE_HEIGHTS,
    affine_slope,
    expanded,
    find_kinks,
    has_nonsmooth,
    pieces,
    pole_distance,
    possible_kinks,
)
from .functions import relu, sigmoid, softplus
from .piecewise_polynomials import without_extrema

__all__ = [
    "ImaginaryGrowth",
    "Parity",
    "Regularity",
    "analyse",
    "highest_frequency",
    "reflectable",
    "require_square_integrable",
    "strip_and_growth",
]

_EVEN_FUNCTIONS = (sp.cos, sp.cosh, sp.sech, sp.Abs)
_ODD_FUNCTIONS = (sp.sin, sp.tan, sp.tanh, sp.erf, sp.sinh, sp.atan, sp.asinh, sp.sign)


class Parity(enum.Enum):
    """Behaviour of f under z -> -z, as far as it is provable."""

    EVEN = "f(-z) = f(z)"
    ODD = "f(-z) = -f(z)"
    NEITHER = "neither even nor odd, or not provable"


class ImaginaryGrowth(enum.Enum):
    """Growth of \\|f(x + iy)\\| with y, inside the strip of analyticity."""

    EXPONENTIAL = "at most like exp(a*|y|) times a power"
    GAUSSIAN = "like exp(a*y**2) times exponentials and powers"
    UNKNOWN = "not known"


@dataclass(frozen=True)
class Regularity:
    """What is known of a function f of one real variable z from its expression.

    Attributes
    ----------
    parity : Parity
        Even or odd only if proven. For functions with jumps up to their values at the jumps.
    kinks : tuple of Expr
        Points where f is not analytic because of relu, abs, sign or a step, in ascending order if
        they are numbers.
    jumps : tuple of Expr
        Those of the kinks where f is discontinuous.
    strip : Expr or None
        Lower bound of the distance from the real axis to the complex singularities of the analytic
        pieces of f: oo for entire ones, 0 if one may lie on the axis, None if unknown.
    imaginary_growth : ImaginaryGrowth
        Growth along the imaginary direction inside the strip.
    gaussian_coefficient : Expr or None
        The a of ``exp(a*y**2)`` for Gaussian growth, 0 for exponential, None if unknown.
    frequency : Expr or None
        The w of ``exp(w*|y|)`` that sines and cosines of multiples of z bring into the growth in
        the imaginary direction: the highest frequency of their products; None if unknown.
    """

    parity: Parity
    kinks: tuple[sp.Expr, ...]
    jumps: tuple[sp.Expr, ...]
    strip: sp.Expr | None
    imaginary_growth: ImaginaryGrowth
    gaussian_coefficient: sp.Expr | None
    frequency: sp.Expr | None


@functools.lru_cache(maxsize=512)
def analyse(expr: sp.Expr, z: sp.Symbol) -> Regularity:
    r"""Return parity, kinks, jumps, strip of analyticity and imaginary growth of an expression.

    Parameters
    ----------
    expr : Expr
        Function of `z`; its other symbols are real parameters in general position.
    z : Symbol
        The variable, declared real.

    Returns
    -------
    Regularity
        Exact where it is known; see there.

    Raises
    ------
    UnsupportedExpressionError
        If the kinks cannot be located, as those of ``abs(sin(z))``, or the expression holds a
        piecewise function or a distribution.

    Examples
    --------
    >>> z, x = sp.symbols("z x", real=True)
    >>> c = sp.Symbol("c", positive=True)
    >>> analyse(sp.tanh(x + sp.sqrt(c) * z), z).strip
    pi/(2*sqrt(c))
    >>> analyse(relu(x + sp.sqrt(c) * z), z).kinks
    (-x/sqrt(c),)
    >>> analyse(sp.erf(sp.sqrt(c) * z), z).gaussian_coefficient
    c
    >>> analyse(z * sp.sign(z), z).jumps
    ()
    >>> analyse(sp.sin(3 * z) ** 2 + z * sp.tanh(z) * sp.cos(5 * z), z).frequency
    6
    """
    expr = _with_kinks_only(expr)
    kinks, jumps = find_kinks(expr, z)
    strip, coefficient = strip_and_growth(expr, z)
    if coefficient is None:
        growth = ImaginaryGrowth.UNKNOWN
    elif coefficient == 0:
        growth = ImaginaryGrowth.EXPONENTIAL
    else:
        growth = ImaginaryGrowth.GAUSSIAN
    frequencies = [highest_frequency(branch, z) for branch in _smooth_parts(expr, z)]
    frequency = None if None in frequencies else sp.Max(*frequencies)
    return Regularity(_parity(expr, z), kinks, jumps, strip, growth, coefficient, frequency)


@functools.lru_cache(maxsize=512)
def strip_and_growth(expr: sp.Expr, z: sp.Symbol) -> tuple[sp.Expr | None, sp.Expr | None]:
    """Return `strip` and `gaussian_coefficient` of :func:`analyse`, in a fraction of its time.

    Raises
    ------
    UnsupportedExpressionError
        As :func:`analyse`.
    """
    expr = _with_kinks_only(expr)
    possible_kinks(expr, z)  # refuses what has kinks at unknown places
    branches = _smooth_parts(expr, z)
    distances = [pole_distance(branch, z) for branch in branches]
    strip = None if None in distances else sp.Min(*distances)
    if strip == 0 and has_nonsmooth(expr, z):
        # The zero may belong to the continuation of a piece, as in 1/(1 + abs(z)).
        strip = None
    coefficients = [_gaussian_coefficient(branch, z) for branch in branches]
    return strip, None if None in coefficients else sp.Max(*coefficients)


def _with_kinks_only(expr: sp.Expr) -> sp.Expr:
    expr = without_extrema(expr)
    unknown = expr.atoms(sp.Piecewise, sp.DiracDelta, sp.floor, sp.ceiling, sp.Max, sp.Min)
    if unknown:
        raise UnsupportedExpressionError(
            f"kinks of {unknown.pop()} are not known; write it with relu, abs, sign or step"
        )
    return expr


@functools.lru_cache(maxsize=512)
def _smooth_parts(expr: sp.Expr, z: sp.Symbol) -> tuple[sp.Expr, ...]:
    """Return the expressions between the kinks."""
    return tuple(pieces(expr, z))


def highest_frequency(expr: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    """Return the highest frequency of products of sines and cosines; None if there may be none.

    |f(x + iy)| = O(exp(w*|y|)) with this w, apart from Gaussian growth. Oscillations in other
    functions, such as exp(sin(z)), have no highest frequency.
    """
    if z not in expr.free_symbols or not expr.has(sp.sin, sp.cos):
        return sp.S.Zero
    if expr.is_Add or expr.is_Mul:
        parts = [highest_frequency(operand, z) for operand in expr.args]
        if None in parts:
            return None
        return sp.Max(*parts) if expr.is_Add else sp.Add(*parts)
    if expr.is_Pow and expr.exp.is_Integer and expr.exp.is_positive:
        inner = highest_frequency(expr.base, z)
        return None if inner is None else expr.exp * inner
    slope = affine_slope(expr.args[0], z) if isinstance(expr, sp.sin | sp.cos) else None
    return None if slope is None else sp.Abs(slope)


def reflectable(expr: sp.Expr) -> sp.Expr:
    """Write relu, steps and the logistic functions by abs, sign and hyperbolic functions.

    In these forms SymPy moves the sign out of every argument, so reflections are comparable.
    """
    return (
        expr.replace(relu, lambda u: (u + sp.Abs(u)) / 2)
        .replace(sigmoid, lambda u: (1 + sp.tanh(u / 2)) / 2)
        .replace(softplus, lambda u: u / 2 + sp.log(2 * sp.cosh(u / 2)))
        .replace(sp.Heaviside, lambda u, *_: (1 + sp.sign(u)) / 2)
    )


def _parity(expr: sp.Expr, z: sp.Symbol) -> Parity:
    canonical = reflectable(expr)
    parity = _structural_parity(canonical, z)
    if parity is not Parity.NEITHER:
        return parity
    reflected = canonical.subs(z, -z)
    if reflected == canonical:
        return Parity.EVEN
    if reflected == -canonical:
        return Parity.ODD
    canonical = expanded(canonical)
    if canonical == expanded(reflected):
        return Parity.EVEN
    if expanded(canonical + reflected) == 0:
        return Parity.ODD
    return Parity.NEITHER


def _structural_parity(expr: sp.Expr, z: sp.Symbol) -> Parity:
    """Return the parity that follows from those of the operands alone."""
    if z not in expr.free_symbols:
        return Parity.EVEN
    if expr == z:
        return Parity.ODD
    parts = [_structural_parity(operand, z) for operand in expr.args]
    if all(part is Parity.EVEN for part in parts):
        return Parity.EVEN
    if Parity.NEITHER in parts:
        return Parity.NEITHER
    odd = False
    if expr.is_Add:
        odd = Parity.EVEN not in parts
    elif expr.is_Mul:
        return Parity.ODD if parts.count(Parity.ODD) % 2 else Parity.EVEN
    elif expr.is_Pow and expr.exp.is_Integer:
        return Parity.ODD if expr.exp % 2 else Parity.EVEN
    elif isinstance(expr, _EVEN_FUNCTIONS):
        return Parity.EVEN
    elif isinstance(expr, _ODD_FUNCTIONS):
        odd = True
    return Parity.ODD if odd else Parity.NEITHER


def _gaussian_coefficient(expr: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    """Return a >= 0 with |f(x + iy)| = O(exp(a*y**2 + O(|y|))) in the strip; None if unknown."""
    if z not in expr.free_symbols or expr.is_polynomial(z):
        return sp.S.Zero
    if expr.is_Add or expr.is_Mul:
        parts = [_gaussian_coefficient(operand, z) for operand in expr.args]
        if None in parts:
            return None
        return sp.Max(*parts) if expr.is_Add else sp.Add(*parts)
    if expr.is_Pow:
        inner = _gaussian_coefficient(expr.base, z)
        if z in expr.exp.free_symbols:
            linear = expr.base.is_positive and affine_slope(expr.exp, z) is not None
            return sp.S.Zero if linear and inner == 0 else None
        if expr.exp.is_positive and inner is not None:
            return expr.exp * inner
        return inner if inner == 0 else None
    u = expr.args[0]
    slope = affine_slope(u, z)
    if slope is not None and isinstance(expr, sp.erf | sp.erfc):
        return slope**2
    exponential = (sp.exp, sp.sin, sp.cos, sp.sinh, sp.cosh, sp.log, *POLE_HEIGHTS)
    if slope is not None and isinstance(expr, exponential):
        return sp.S.Zero
    if isinstance(expr, sp.log) and _gaussian_coefficient(u, z) == 0:
        return sp.S.Zero
    if isinstance(expr, sp.exp) and u.is_polynomial(z):
        # exp(a*(x + iy)**2) has modulus exp(a*x**2 - a*y**2).
        curvature = expanded(u.diff(z, 2) / 2)
        if z not in curvature.free_symbols and curvature.is_real:
            return sp.Max(0, -curvature)
    return None
