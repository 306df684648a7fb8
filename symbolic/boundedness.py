r"""Whether a function of one real variable is bounded, and where it goes at the ends of the line.

Assumptions of theorems ask for it. Both answers are read off the structure of the expression; what
is not provable in this way is None, never a guess.
"""

from __future__ import annotations

import sympy as sp

from ._singularities import pieces, pole_distance
from .functions import relu, sigmoid, softplus
from .normal_functions import normal_cdf

_BOUNDED = (
    sp.sin, sp.cos, sp.tanh, sp.sech, sp.erf, sp.erfc, sp.atan, sp.sign, sp.Heaviside, sigmoid,
    normal_cdf,
)  # fmt: skip
_AT_MOST_LINEAR = (sp.Abs, relu, softplus)


def is_bounded(expr: sp.Expr, z: sp.Symbol) -> bool | None:
    """Whether a real function is bounded on the line.

    Parameters
    ----------
    expr : Expr
        Function of `z`, real and finite for real `z`.
    z : Symbol
        The variable, declared real.

    Returns
    -------
    bool or None
        None if neither can be proven.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> is_bounded(sp.tanh(z) + z * sp.exp(-(z**2)), z), is_bounded(relu(z), z)
    (True, False)
    >>> print(is_bounded(z * sp.sin(z), z))
    None
    """
    if z not in expr.free_symbols:
        return True
    if expr.is_Add and not expr.is_rational_function(z):
        return _of_sum([is_bounded(term, z) for term in expr.args], expr, z)
    if _is_bounded_term(expr, z):
        return True
    if expr.is_rational_function(z):
        return _of_rational_function(expr, z)
    ends = [value_at_infinity(expr, z, side) for side in (1, -1)]
    if any(end is not None and end.is_infinite for end in ends):
        return False
    # Continuous with two finite limits is bounded; without poles near the line it is continuous.
    if all(end is not None and end.is_finite for end in ends) and _has_no_poles(expr, z):
        return True
    return None


def value_at_infinity(expr: sp.Expr, z: sp.Symbol, side: int) -> sp.Expr | None:
    """Return the limit of a function for z to infinity, or to minus infinity for `side` -1.

    Returns
    -------
    Expr or None
        A real number or one of oo and -oo; None if there is no limit, or none is proven.

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


def _of_rational_function(expr: sp.Expr, z: sp.Symbol) -> bool | None:
    above, below = sp.fraction(sp.cancel(expr))
    if sp.degree(above, z) > sp.degree(below, z):
        return False
    return True if _has_no_poles(1 / below, z) else None


def _number(value: sp.Expr, *operands: sp.Expr) -> sp.Expr | None:
    """Return the value if it is a limit: neither undefined nor a range of values."""
    if value is sp.nan or value.has(sp.AccumBounds) or value is sp.zoo:
        return None
    if value in (sp.oo, -sp.oo) or value.is_finite:
        return value
    return None


def _of_sum(parts: list[bool | None], expr: sp.Expr, z: sp.Symbol) -> bool | None:
    if all(part is True for part in parts):
        return True
    if parts.count(False) == 1 and parts.count(True) == len(parts) - 1:
        return False
    ends = [value_at_infinity(expr, z, side) for side in (1, -1)]
    return False if any(end is not None and end.is_infinite for end in ends) else None


def _is_bounded_term(expr: sp.Expr, z: sp.Symbol) -> bool:
    if isinstance(expr, _BOUNDED):
        return expr.args[0].is_extended_real is True
    if expr.is_Pow and expr.exp.is_Integer and expr.exp.is_positive:
        return is_bounded(expr.base, z) is True
    if isinstance(expr, sp.exp):
        return _is_decaying(expr, z)
    if expr.is_Mul:
        rest = _decay(expr, z)
        if rest is not None and _grows_slowly(rest, z):
            return True
        return all(is_bounded(factor, z) is True for factor in expr.args)
    return False


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


def _has_no_poles(expr: sp.Expr, z: sp.Symbol) -> bool:
    distances = [pole_distance(branch, z) for branch in pieces(expr, z)]
    return all(distance is not None and distance.is_positive for distance in distances)
