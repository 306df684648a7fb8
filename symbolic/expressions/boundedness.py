r"""Whether a function of one real variable is bounded, and where it goes at the ends of the line.

Assumptions of theorems ask for it, and for bounded derivatives. All answers are read off the
structure of the expression; what is not provable in this way is None, never a guess.

Far out a function is compared with :math:`e^{E(t)}t^p`, E a polynomial without constant term; near
a point c where a piece of it may be singular the same is done in :math:`t = 1/|z - c|`. Functions
that saturate are written as their limit and a tail of known order, so that what cancels in
:math:`1 - \tanh^2 z` cancels exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import sympy as sp

from ...errors import UnsupportedExpressionError
from ._singularities import (
    beside,
    expanded,
    find_kinks,
    pole_distance,
    real_zeros,
)
from .functions import normal_cdf, relu, sigmoid, softplus

_BOUNDED = (
    sp.sin, sp.cos, sp.tanh, sp.sech, sp.erf, sp.erfc, sp.atan, sp.sign, sp.Heaviside, sigmoid,
    normal_cdf,
)  # fmt: skip
_AT_MOST_LINEAR = (sp.Abs, relu, softplus)
_CONTINUOUS = (sp.cosh, sp.sinh, softplus)
_LIKE_ARGUMENT_AT_ZERO = (sp.sin, sp.tanh, sp.erf, sp.atan)
_SMALL = sp.Rational(1, 97)
# By |u|, the sign s of u and w, the bounded rest of the tail.
_TAILS: dict[type[sp.Expr], Callable[[sp.Expr, int, sp.Symbol], sp.Expr]] = {
    sp.tanh: lambda u, s, w: s * (1 - w * sp.exp(-2 * u)),
    sp.erf: lambda u, s, w: s * (1 - w * sp.exp(-(u**2))),
    sp.erfc: lambda u, s, w: (1 - s) + s * w * sp.exp(-(u**2)),
    normal_cdf: lambda u, s, w: sp.Rational(1 + s, 2) - s * w * sp.exp(-(u**2) / 2),
    sigmoid: lambda u, s, w: sp.Rational(1 + s, 2) - s * w * sp.exp(-u),
    softplus: lambda u, s, w: u * sp.Rational(1 + s, 2) + w * sp.exp(-u),
    sp.sech: lambda u, s, w: w * sp.exp(-u),
    sp.cosh: lambda u, s, w: w * sp.exp(u),
    sp.sinh: lambda u, s, w: s * w * sp.exp(u),
}
_NORMAL_TAILS = (sp.erf, sp.erfc, normal_cdf)


def is_bounded(expr: sp.Expr, z: sp.Symbol) -> bool | None:
    """Whether a real function is bounded on the line.

    `expr`: function of `z`, real and finite for real `z`. `z`: the variable, declared real. Returns
    None if neither can be proven.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> is_bounded(sp.tanh(z) + z * sp.exp(-(z**2)), z), is_bounded(relu(z), z)
    (True, False)
    >>> print(is_bounded(z * sp.sin(z), z))
    None
    """
    result = derivative_is_bounded(expr, z, 0)
    if result:
        return True
    ends = [value_at_infinity(expr, z, side) for side in (1, -1)]
    if any(end is not None and end.is_infinite for end in ends):
        return False
    # Oscillations that grow are unbounded, too, but what asks here means functions with a limit.
    return False if result is False and any(far_out(expr, z, side) for side in (1, -1)) else None


def derivative_is_bounded(expr: sp.Expr, z: sp.Symbol, order: int = 1) -> bool | None:
    """Whether a derivative is bounded on the line without the points where pieces meet.

    A continuous function with kinks is Lipschitz if and only if its first derivative is.

    `expr`: function of `z`, real and finite for real `z`. `z`: the variable, declared real.
    `order`: which derivative. Returns None if neither can be proven.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> [derivative_is_bounded(f, z) for f in (relu(z), z * sp.sin(z), sp.sqrt(sp.Abs(z)))]
    [True, False, False]
    """
    try:
        parts = _smooth_parts(expr, z)
        verdicts = [
            _bounded_between(piece.diff(z, order), z, low, high) for piece, low, high in parts
        ]
    except UnsupportedExpressionError:
        return None
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _smooth_parts(expr: sp.Expr, z: sp.Symbol) -> list[tuple[sp.Expr, sp.Expr, sp.Expr]]:
    """Return the smooth pieces with the ends of their intervals."""
    if expr.has(sp.Max, sp.Min):
        expr = expr.rewrite([sp.Max, sp.Min], sp.Abs)
    kinks, _ = find_kinks(expr, z)
    if not kinks:
        return [(beside(expr, z, sp.S.Zero, 1), -sp.oo, sp.oo)]
    ends = [*kinks, sp.oo]
    inner = [(beside(expr, z, low, 1), low, high) for low, high in pairwise(ends)]
    return [(beside(expr, z, kinks[0], -1), -sp.oo, kinks[0]), *inner]


def _bounded_between(piece: sp.Expr, z: sp.Symbol, low: sp.Expr, high: sp.Expr) -> bool | None:
    """Whether a smooth piece is bounded between two points, which may be infinite."""
    t = sp.Symbol("t", positive=True)
    places = [side * t for end, side in ((low, -1), (high, 1)) if end.is_infinite]
    distance = pole_distance(piece, z)
    if distance is None or not distance.is_positive:
        for point in _singular_points(piece, z):
            places += [point + 1 / t] if low <= point < high else []
            places += [point - 1 / t] if low < point <= high else []
    verdicts = [_bounded_far_out(piece.subs(z, place), t) for place in places]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _singular_points(expr: sp.Expr, z: sp.Symbol) -> list[sp.Expr]:
    """Return points that include all real ones where a smooth expression is not analytic.

    Raises UnsupportedExpressionError if they are not known.
    """
    result: list[sp.Expr] = []
    for node in sorted(expr.atoms(sp.Pow, sp.log, sp.tan), key=sp.default_sort_key):
        base, *exponent = node.args
        if isinstance(node, sp.tan) or (exponent and z in exponent[0].free_symbols and base.has(z)):
            raise UnsupportedExpressionError(f"the singular points of {node} are not known")
        if not (exponent and exponent[0].is_Integer and exponent[0].is_positive):
            result += real_zeros(base, z)
    return list(dict.fromkeys(result))


def _bounded_far_out(expr: sp.Expr, t: sp.Symbol) -> bool | None:
    """Whether a function of t > 0 is bounded for t to infinity."""
    expr = _with_tails(expr, t)
    result = _order(expr, t)
    if result.growth <= 0:
        return True
    if result.sharp or any(
        order.sharp and order.growth > 0
        for order in map(lambda expr: _order(expr, t), _at_equal_phases(expr, t))
    ):
        return False
    return None


def _at_equal_phases(expr: sp.Expr, t: sp.Symbol) -> list[sp.Expr]:
    """Return what a function is where its sines and cosines come back to the same values.

    Empty if their arguments have no common period, or do not go to infinity.
    """
    waves = [node for node in expr.atoms(sp.sin, sp.cos) if t in node.free_symbols]
    parts = {node: node.args[0].as_independent(t, as_Add=True) for node in waves}
    if not waves:
        return []
    phase = parts[waves[0]][1]
    ratios = {node: sp.cancel(rest / phase) for node, (_, rest) in parts.items()}
    if not all(ratio.is_Rational for ratio in ratios.values()) or not _direction(phase, t):
        return []
    return [
        expr.xreplace(
            {node: node.func(parts[node][0] + ratio * angle) for node, ratio in ratios.items()}
        )
        for angle in (k * sp.pi / 4 for k in range(8))
    ]


@dataclass(frozen=True)
class _Order:
    r"""The order :math:`e^{E}t^p` of a function for t to infinity.

    `exponent`, `power`: E, a sum of c t^q with q > 0, and p. `sharp`: whether it bounds the
    function from below, too; from above it always does.
    """

    exponent: sp.Expr
    power: sp.Expr
    sharp: bool
    variable: sp.Symbol

    @property
    def growth(self) -> int:
        """1 for a growing bound, -1 for a decaying one, 0 for a constant."""
        return int(sp.sign(_leading(self.exponent, self.variable)[0] or self.power))

    def __mul__(self, other: _Order) -> _Order:
        return replace(
            self, exponent=self.exponent + other.exponent, power=self.power + other.power,
            sharp=self.sharp and other.sharp,
        )  # fmt: skip

    def __truediv__(self, other: _Order) -> _Order:
        return self * replace(other, exponent=-other.exponent, power=-other.power)


def _leading(exponent: sp.Expr, t: sp.Symbol) -> tuple[sp.Expr, sp.Expr]:
    """Return c and q of the largest term c t^q."""
    terms = [term.as_coeff_exponent(t) for term in sp.Add.make_args(exponent)]
    return max(terms, key=lambda term: term[1])


def _order(expr: sp.Expr, t: sp.Symbol) -> _Order:
    """Return the order of a function.

    Raises UnsupportedExpressionError if no bound is known.
    """
    constant = _Order(sp.S.Zero, sp.S.Zero, True, t)
    if t not in expr.free_symbols:
        return replace(constant, sharp=bool(expr.is_positive or expr.is_negative))
    if expr == t:
        return replace(constant, power=sp.S.One)
    if expr.is_Mul:
        return math.prod((_order(factor, t) for factor in expr.args), start=constant)
    if expr.is_Add:
        try:
            result = _order_of_terms(sp.Add.make_args(expr), t)
            if result.sharp:
                return result
        except UnsupportedExpressionError:
            return _order_of_terms(sp.Add.make_args(expanded(expr)), t)
        try:
            other = _order_of_terms(sp.Add.make_args(expanded(expr)), t)
        except UnsupportedExpressionError:
            return result
        return result if (result / other).growth < 0 else other
    if expr.is_Pow and expr.exp.is_number and expr.exp.is_real:
        base = _order(expr.base, t)
        if expr.exp.is_negative and not base.sharp:
            raise UnsupportedExpressionError(f"{expr.base} may come close to zero")
        return replace(base, exponent=expr.exp * base.exponent, power=expr.exp * base.power)
    if isinstance(expr, sp.exp):
        return _order_of_exponential(expr.args[0], t)
    if isinstance(expr, sp.log | sp.asinh):
        inner = _order(expr.args[0], t)
        if isinstance(expr, sp.log) and not inner.sharp:
            raise UnsupportedExpressionError(f"{expr.args[0]} may come close to zero")
        if inner.exponent != 0:
            return replace(constant, power=_leading(inner.exponent, t)[1])
        # Any small power bounds a logarithm.
        return replace(constant, power=_SMALL if inner.power else sp.S.Zero, sharp=False)
    if isinstance(expr, _LIKE_ARGUMENT_AT_ZERO) and (inner := _order(expr.args[0], t)).growth < 0:
        return replace(inner, sharp=False)
    if isinstance(expr, _BOUNDED):
        return replace(constant, sharp=False)
    if isinstance(expr, _CONTINUOUS) and _order(expr.args[0], t).growth <= 0:
        return replace(constant, sharp=False)
    raise UnsupportedExpressionError(f"the growth of {expr} is not known")


def _order_of_terms(terms: Sequence[sp.Expr], t: sp.Symbol) -> _Order:
    result = {term: _order(term, t) for term in terms}
    top = next(iter(result.values()), _Order(sp.S.Zero, sp.S.Zero, False, t))
    for order in result.values():
        top = order if (order / top).growth > 0 else top
    largest = [term for term, order in result.items() if (order / top).growth == 0]
    numbers = sp.Add(*(term for term in largest if term.is_number))
    waves = [term.as_independent(t, as_Add=False) for term in largest if not term.is_number]
    sharp = len(largest) == 1 and top.sharp
    if all(isinstance(wave, sp.sin | sp.cos) for _, wave in waves):
        # As in 2 + cos(t), which never comes close to zero.
        sharp = sharp or bool(
            (abs(numbers) - sp.Add(*(abs(amplitude) for amplitude, _ in waves))).is_positive
        )
    return replace(top, sharp=sharp)


def _order_of_exponential(exponent: sp.Expr, t: sp.Symbol) -> _Order:
    growing = []
    for term in sp.Add.make_args(expanded(exponent)):
        factor, power = term.as_coeff_exponent(t)
        if factor.is_number and power.is_positive:
            growing.append(term)
        elif _order(term, t).growth > 0:
            raise UnsupportedExpressionError(f"the growth of exp({exponent}) is not known")
    return _Order(sp.Add(*growing), sp.S.Zero, True, t)


def _direction(u: sp.Expr, t: sp.Symbol) -> int:
    """Return 1 or -1 if a function goes to plus or minus infinity, 0 if it is not known to."""
    coefficients: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(expanded(u)):
        number, rest = term.as_independent(t, as_Add=False)
        coefficients[rest] = coefficients.get(rest, sp.S.Zero) + number
    terms = [number * rest for rest, number in coefficients.items()]
    orders = [_order(term, t) for term in terms]
    for term, order in zip(terms, orders, strict=True):
        alone = sum((other / order).growth >= 0 for other in orders) == 1
        if alone and order.sharp and order.growth > 0:
            return 1 if term.is_positive else -1 if term.is_negative else 0
    return 0


def _with_tails(expr: sp.Expr, t: sp.Symbol) -> sp.Expr:
    """Write functions that saturate as their limit and a tail of known order.

    What the tail is beyond its order is a symbol: positive if it lies between positive bounds,
    else only non-negative and bounded.
    """
    if t not in expr.free_symbols or not expr.args:
        return expr
    expr = expr.func(*(_with_tails(operand, t) for operand in expr.args))
    if isinstance(expr, sp.log):
        return sp.expand_log(expr)
    rule = _TAILS.get(expr.func)
    if rule is None:
        return expr
    try:
        side = _direction(expr.args[0], t)
    except UnsupportedExpressionError:
        return expr
    if not side:
        return expr
    above = {"nonnegative": True} if expr.func in _NORMAL_TAILS else {"positive": True}
    return rule(side * expr.args[0], side, sp.Symbol(f"tail of {expr}", **above))


def far_out(expr: sp.Expr, z: sp.Symbol, side: int) -> int | None:
    """Return 1 or -1 if a function goes to plus or minus infinity at an end, 0 if it is bounded.

    None if neither is known. The end is that of z to infinity, or to minus infinity for `side` -1.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> far_out(z - sp.sin(z), z, -1), far_out(sp.tanh(z) * sp.sin(z), z, 1)
    (-1, 0)
    """
    t = sp.Symbol("t", positive=True)
    try:
        piece = _smooth_parts(expr, z)[-(side > 0)][0].subs(z, side * t)
        written = _with_tails(piece, t)
        return _direction(written, t) or (0 if _order(written, t).growth <= 0 else None)
    except UnsupportedExpressionError:
        return None


def value_at_infinity(expr: sp.Expr, z: sp.Symbol, side: int) -> sp.Expr | None:
    """Return the limit of a function for z to infinity, or to minus infinity for `side` -1.

    The result: a real number or one of oo and -oo; None if there is no limit, or none is proven.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> value_at_infinity(sp.erf(z) / 2, z, 1), value_at_infinity(relu(z), z, 1)
    (1/2, oo)
    >>> print(value_at_infinity(sp.sin(z), z, 1))
    None
    """
    if z not in expr.free_symbols:
        return expr
    if expr == z:
        return side * sp.oo
    if expr.is_Mul and _decay(expr, z) is not None and _grows_slowly(_decay(expr, z), z):
        return sp.S.Zero
    if expr.is_polynomial(z):
        leading, degree = sp.LC(expr, z), sp.degree(expr, z)
        return sp.oo * leading * sp.Integer(side) ** degree if leading.is_real else None
    limits = [value_at_infinity(operand, z, side) for operand in expr.args]
    operands = [limit for limit in limits if limit is not None]
    if len(operands) < len(limits):
        return None
    if isinstance(expr, relu | softplus):
        return sp.oo if operands[0] == sp.oo else _number(expr.func(operands[0]), operands[0])
    if isinstance(expr, sigmoid | normal_cdf) and operands[0].is_infinite:
        return sp.S.One if operands[0] == sp.oo else sp.S.Zero
    return _number(expr.func(*operands), *operands)


def _number(value: sp.Expr, *operands: sp.Expr) -> sp.Expr | None:
    """Return the value if it is a limit: neither undefined nor a range of values."""
    if value is sp.nan or value.has(sp.AccumBounds) or value is sp.zoo:
        return None
    if value in (sp.oo, -sp.oo) or value.is_finite:
        return value
    return None


def _decay(product: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    """Return a product without its factor exp(-a z^(2k) + ...), None if it has none."""
    decaying = [factor for factor in product.args if _is_decaying(factor, z)]
    return sp.Mul(*(f for f in product.args if f not in decaying)) if decaying else None


def _is_decaying(expr: sp.Expr, z: sp.Symbol) -> bool:
    if not isinstance(expr, sp.exp) or not expr.args[0].is_polynomial(z):
        return False
    exponent = sp.Poly(expr.args[0], z)
    return bool(exponent.degree() > 0 and exponent.degree() % 2 == 0 and exponent.LC().is_negative)


def _grows_slowly(expr: sp.Expr, z: sp.Symbol) -> bool:
    """Whether a function is continuous and grows at most like a power."""
    if expr.is_polynomial(z):
        return True
    if expr.is_Add or expr.is_Mul:
        return all(_grows_slowly(operand, z) for operand in expr.args)
    if expr.is_Pow and expr.exp.is_Integer and expr.exp.is_positive:
        return _grows_slowly(expr.base, z)
    if isinstance(expr, _AT_MOST_LINEAR):
        return _grows_slowly(expr.args[0], z)
    return is_bounded(expr, z) is True
