r"""Parity, kinks, jumps and complex singularities of a function of one Gaussian variable.

The choice of a quadrature rule rests on these: analytic integrands take the trapezoidal rule, whose
error falls like :math:`e^{-2\pi d/h}` with the width d of the strip of analyticity, kinked ones are
split at their kinks. Parity halves the work and makes Hermite coefficients vanish exactly.
Everything is decided from the structure of the expression; what is not provable is reported as
unknown, never guessed. Whether the second moment is finite follows from the growth along the real
line: log|f(t)| for t -> oo is bounded by a*t**n, held as the pair (n, a), where (0, 0) stands for
powers and bounded functions.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass

import sympy as sp

from ...errors import AssumptionError, UnsupportedExpressionError
from ._singularities import (
    NONSMOOTH,
    POLE_HEIGHTS,
    affine_slope,
    expanded,
    find_kinks,
    has_nonsmooth,
    is_positive_sum,
    pieces,
    pole_distance,
    polynomial,
    possible_kinks,
    real_zeros,
    require_few_kinks,
    resolve,
)
from .functions import OwenT, relu, sigmoid, softplus
from .piecewise_polynomials import without_extrema
from .shared_parts import free_symbols, parts_of

_Bound = tuple[sp.Expr, sp.Expr]

_CONSTANT: _Bound = (sp.S.Zero, sp.S.Zero)
_HUGE: _Bound = (sp.oo, sp.S.One)
# Stands for the growth of a logarithm: any small power bounds it.
_SLOW: _Bound = (sp.Rational(1, 97), sp.S.One)

_BOUNDED = (
    sp.sin, sp.cos, sp.tanh, sp.erf, sp.erfc, sp.sech, sp.atan, sp.sign, sp.Heaviside,
    sigmoid, OwenT,
)  # fmt: skip
_LIKE_ARGUMENT = (relu, softplus, sp.Abs)
_LOGARITHMIC = (sp.log, sp.asinh)
_EXPONENTIAL = (sp.exp, sp.cosh, sp.sinh)
_KNOWN = (*_BOUNDED, *_LIKE_ARGUMENT, *_LOGARITHMIC, *_EXPONENTIAL, sp.tan)


def require_square_integrable(expr: sp.Expr, z: sp.Symbol, *, argument: str) -> None:
    r"""Refuse a function without finite second moment under the standard Gaussian.

    Parameters
    ----------
    expr : Expr
        Function f of `z`.
    z : Symbol
        The variable, declared real.
    argument : str
        How the user knows the function; the message begins with it.

    Raises
    ------
    AssumptionError
        If :math:`\mathbb{E} f(z)^2 < \infty`, :math:`z \sim \mathcal{N}(0, 1)`, does not hold or
        cannot be shown: f grows like :math:`e^{a z^2}` with a >= 1/4 or faster, is singular at a
        point of the real line, or is not real there. The message says which.
    UnsupportedExpressionError
        If the expression holds a function whose growth is not known.

    Notes
    -----
    The criterion is sufficient, by bounds on the structure of the expression; functions with an
    integrable singularity, as log(abs(z)), are refused too.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> require_square_integrable(sp.exp(z**2 / 5), z, argument="student")
    >>> require_square_integrable(1 / (1 + z**2), z, argument="student")
    """
    require_few_kinks(expr, z)
    try:
        _check_points(expr, z)
        for direction in (1, -1):
            _check_growth(expr, z, direction)
    except _Broken as broken:
        raise AssumptionError(
            f"{argument} {expr} has to be real with E[f(z)**2] < oo for standard Gaussian z, "
            f"but {broken}"
        ) from None


class _Broken(Exception):
    """The reason why the assumption fails."""


def _check_points(expr: sp.Expr, z: sp.Symbol) -> None:
    """Refuse poles, branch points and complex values on the real line."""
    if expr.has(sp.I, sp.zoo, sp.nan, sp.oo, -sp.oo):
        raise _Broken("it is not a finite real expression")
    for node in sp.preorder_traversal(expr):
        if z not in node.free_symbols:
            continue
        if node.is_Function and not isinstance(node, _KNOWN):
            names = ", ".join(sorted(function.__name__ for function in _KNOWN))
            raise UnsupportedExpressionError(
                f"the growth of {node} is not known\n  known functions: {names}"
            )
        if isinstance(node, sp.tan):
            raise _Broken(f"{node} has poles on the real line")
        if isinstance(node, sp.log):
            _require_positive(node.args[0], node, z)
        elif node.is_Pow and z in node.exp.free_symbols:
            _require_positive(node.base, node, z)
        elif node.is_Pow and not node.exp.is_integer:
            if not (node.exp.is_positive and node.base.is_nonnegative):
                _require_positive(node.base, node, z)
        elif node.is_Pow and not node.exp.is_positive:
            _require_no_zero(node.base, node, z)


def _require_no_zero(base: sp.Expr, node: sp.Expr, z: sp.Symbol) -> None:
    try:
        candidates = real_zeros(base, z)
    except UnsupportedExpressionError as error:
        raise _Broken(f"{node} may be singular: {error}") from None
    for point in candidates:
        # Candidates from the continuation of a piece of a kinked function are no zeros.
        if not (base.has(*NONSMOOTH) and base.subs(z, point).is_nonzero):
            raise _Broken(f"{node} is singular at {z} = {point}")


def _require_positive(base: sp.Expr, node: sp.Expr, z: sp.Symbol) -> None:
    if base.is_positive:
        return
    _require_no_zero(base, node, z)
    value = base.subs(z, 0)
    if not value.is_positive:
        raise _Broken(f"{node} is not real at {z} = 0, where its argument is {value}")


def _check_growth(expr: sp.Expr, z: sp.Symbol, direction: int) -> None:
    t = sp.Symbol("|z|", positive=True)
    power, rate = _growth(_far_out(expr.subs(z, direction * t), t), t)
    if power < 2 or rate.is_nonpositive:
        return
    if power == 2 and (sp.Rational(1, 4) - rate).is_positive:
        return
    if power == sp.oo:
        speed = "faster than every exp(z**n)"
    else:
        speed = f"like {sp.exp(rate * t**power)}"
    end = "oo" if direction > 0 else "-oo"
    raise _Broken(f"it may grow {speed} towards {end}; below exp(z**2/4) is needed")


def _far_out(expr: sp.Expr, t: sp.Symbol) -> sp.Expr:
    """Resolve relu, abs, sign and steps of polynomials by the sign they have for large t."""
    for atom in expr.atoms(*NONSMOOTH):
        u = atom.args[0]
        if t in u.free_symbols and u.is_polynomial(t):
            sign = sp.sign(polynomial(u, t).LC())
            if sign.is_number:
                expr = resolve(expr, u, sign)
    return expr


def _growth(expr: sp.Expr, t: sp.Symbol) -> _Bound:
    """Bound log|expr| for large t."""
    if t not in expr.free_symbols or expr.is_polynomial(t):
        return _CONSTANT
    if expr.is_Add:
        return _largest([_growth(term, t) for term in expr.args])
    if expr.is_Mul:
        return _product([_growth(factor, t) for factor in expr.args])
    if expr.is_Pow and t in expr.exp.free_symbols:
        if t in expr.base.free_symbols:
            return _HUGE
        return _upper(expr.exp * sp.log(expr.base), t)
    if expr.is_Pow:
        if expr.exp.is_positive:
            power, rate = _growth(expr.base, t)
            return power, rate * expr.exp
        power, rate = _lower(expr.base, t)
        return power, rate * expr.exp
    u = expr.args[0]
    if isinstance(expr, sp.exp):
        return _upper(u, t)
    if isinstance(expr, sp.cosh | sp.sinh):
        return _size(u, t)
    if isinstance(expr, sp.sech):
        return _negated(_lower(sp.cosh(u), t))
    if isinstance(expr, _LIKE_ARGUMENT):
        return _largest([_growth(u, t), _CONSTANT])
    if isinstance(expr, _LOGARITHMIC):
        bounds = [_growth(u, t)] + ([_lower(u, t)] if isinstance(expr, sp.log) else [])
        return _HUGE if any(n == sp.oo for n, _ in bounds) else _CONSTANT
    return _CONSTANT  # the bounded functions; others have been refused


def _lower(expr: sp.Expr, t: sp.Symbol) -> _Bound:
    """Bound log|expr| from below for large t, for an expression without zeros."""
    if t not in expr.free_symbols or expr.is_polynomial(t):
        return _CONSTANT
    if expr.is_Mul:
        return _product([_lower(factor, t) for factor in expr.args])
    if expr.is_Pow and expr.exp.is_number:
        power, rate = _lower(expr.base, t) if expr.exp.is_positive else _growth(expr.base, t)
        return power, rate * expr.exp
    if expr.is_Add and is_positive_sum(expr, t):
        return _CONSTANT
    if expr.is_Add and all(term.is_nonnegative for term in expr.args):
        return _largest_known_lower(expr.args, t)
    if isinstance(expr, sp.exp):
        return _negated(_upper(-expr.args[0], t))
    if isinstance(expr, sp.cosh):
        u = expr.args[0]
        if u.is_polynomial(t):
            poly = polynomial(u, t)
            return sp.Integer(poly.degree()), abs(poly.LC())
        return _CONSTANT
    if isinstance(expr, sigmoid):
        return _negated(_largest([_CONSTANT, _upper(-expr.args[0], t)]))
    if isinstance(expr, sp.sech):
        return _negated(_size(expr.args[0], t))
    raise _Broken(f"{expr} may come too close to 0 for large |z|: no lower bound is known")


def _largest_known_lower(terms: tuple[sp.Expr, ...], t: sp.Symbol) -> _Bound:
    """Bound a sum of non-negative terms from below by those whose bound is known."""
    bounds, reason = [], _Broken("it may vanish")
    for term in terms:
        try:
            bounds.append(_lower(term, t))
        except _Broken as broken:
            reason = broken
    if not bounds:
        raise reason
    return _largest(bounds)


def _upper(u: sp.Expr, t: sp.Symbol) -> _Bound:
    """Bound u itself, with its sign, by a*t**n for large t."""
    terms = sp.Add.make_args(expanded(u))
    bounds = [_size(term, t) for term in terms if not term.is_polynomial(t)]
    regular = sp.Add(*(term for term in terms if term.is_polynomial(t)))
    if t in regular.free_symbols:
        poly = polynomial(regular, t)
        bounds.append((sp.Integer(poly.degree()), poly.LC()))
    return _sum_sizes(bounds)


def _size(u: sp.Expr, t: sp.Symbol) -> _Bound:
    """Bound |u| by a*t**n for large t."""
    if t not in u.free_symbols:
        return sp.S.Zero, abs(u)
    if u.is_Mul:
        sizes = [_size(factor, t) for factor in u.args]
        return sp.Add(*(n for n, _ in sizes)), sp.Mul(*(a for _, a in sizes))
    if u.is_Pow and u.exp.is_number:
        return _power_size(u.base, u.exp, t)
    if u.is_polynomial(t):
        poly = polynomial(u, t)
        return sp.Integer(poly.degree()), abs(poly.LC())
    if u.is_Add:
        return _sum_sizes([_size(term, t) for term in u.args])
    if isinstance(u, _LIKE_ARGUMENT):
        return _sum_sizes([_size(u.args[0], t), (sp.S.Zero, sp.S.One)])
    if isinstance(u, _LOGARITHMIC):
        return _SLOW if u.args[0].is_polynomial(t) else _HUGE
    if isinstance(u, _BOUNDED):
        return sp.S.Zero, sp.Integer(2)  # erfc; pi/2 for atan, 1 for the others
    if isinstance(u, sp.exp):
        n, a = _upper(u.args[0], t)
        if n == 0:
            return n, sp.exp(a)
        return (sp.S.Zero, sp.S.One) if a.is_negative else _HUGE
    return _HUGE


def _power_size(base: sp.Expr, exponent: sp.Expr, t: sp.Symbol) -> _Bound:
    if exponent.is_positive or base.is_polynomial(t):
        n, a = _size(base, t)
        return n * exponent, a**exponent
    constant, rest = base.as_independent(t, as_Add=True)
    if constant.is_positive and rest.is_nonnegative:
        return sp.S.Zero, constant**exponent
    return _HUGE


def _sum_sizes(bounds: list[_Bound]) -> _Bound:
    top = max((n for n, _ in bounds), default=sp.S.Zero)
    return top, sp.Add(*(a for n, a in bounds if n == top))


def _product(bounds: list[_Bound]) -> _Bound:
    power, rate = _sum_sizes([(n, a) for n, a in bounds if n])
    if power > 2 and rate == 0:
        # What is left when leading exponentials cancel may still be exp(t**2).
        raise _Broken("its growth is not known, because exponentials cancel; simplify it")
    return power, rate


def _negated(bound: _Bound) -> _Bound:
    return bound[0], -bound[1]


def _largest(bounds: list[_Bound]) -> _Bound:
    """Return the largest of bounds a*t**n; rates of unknown sign count as positive."""

    def key(bound: _Bound) -> tuple[int, sp.Expr, float]:
        n, a = bound
        if n == 0:
            return 0, sp.S.Zero, 0.0
        size = float(a) if a.is_number else float("inf")
        return (-1, -n, size) if a.is_negative else (1, n, size)

    return max(bounds, key=key)


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

    `expr`: function of `z`; its other symbols are real parameters in general position. `z`: the
    variable, declared real. The result: exact where it is known; see there. Raises
    UnsupportedExpressionError if the kinks cannot be located, as those of ``abs(sin(z))``, or the
    expression holds a piecewise function or a distribution.

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

    Raises UnsupportedExpressionError as :func:`analyse`.
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
    unknown = parts_of(expr, sp.Piecewise, sp.DiracDelta, sp.floor, sp.ceiling, sp.Max, sp.Min)
    if unknown:
        raise UnsupportedExpressionError(
            f"kinks of {unknown[0]} are not known; write it with relu, abs, sign or step"
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
    if z not in free_symbols(expr) or not parts_of(expr, sp.sin, sp.cos):
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


REFLECTABLE: dict[type[sp.Function], Callable[..., sp.Expr]] = {
    relu: lambda u: (u + sp.Abs(u)) / 2,
    sigmoid: lambda u: (1 + sp.tanh(u / 2)) / 2,
    softplus: lambda u: u / 2 + sp.log(2 * sp.cosh(u / 2)),
    sp.Heaviside: lambda u, *_: (1 + sp.sign(u)) / 2,
}
"""Functions by those whose arguments give off their sign."""


def reflectable(expr: sp.Expr) -> sp.Expr:
    """Write relu, steps and the logistic functions by abs, sign and hyperbolic functions.

    In these forms SymPy moves the sign out of every argument, so reflections are comparable.
    """
    for kind, form in REFLECTABLE.items():
        expr = expr.replace(kind, form)
    return expr


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


@functools.lru_cache(maxsize=4096)
def _structural_parity(expr: sp.Expr, z: sp.Symbol) -> Parity:
    """Return the parity that follows from those of the operands alone."""
    if z not in free_symbols(expr):
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


@functools.lru_cache(maxsize=1 << 14)
def _gaussian_coefficient(expr: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    """Return a >= 0 with |f(x + iy)| = O(exp(a*y**2 + O(|y|))) in the strip; None if unknown."""
    if expr.is_Symbol or z not in free_symbols(expr):
        return sp.S.Zero
    if expr.is_Add or expr.is_Mul:
        parts = [_gaussian_coefficient(operand, z) for operand in expr.args]
        if None in parts:
            return None
        return sp.Max(*parts) if expr.is_Add else sp.Add(*parts)
    if expr.is_Pow:
        inner = _gaussian_coefficient(expr.base, z)
        if z in free_symbols(expr.exp):
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
