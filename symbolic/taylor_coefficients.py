r"""Taylor coefficients of closed forms, exactly, without ever writing down a derivative.

Coefficients are propagated through sums, products, powers and functions of one argument: with
u the coefficients of the argument, those of f(u) follow from :math:`(f(u))' = f'(u)\,u'`. Repeated
differentiation of the expression instead doubles its length at every order.
"""

from __future__ import annotations

import sympy as sp

from ..errors import UnsupportedExpressionError
from .exact_fields import exact_field

_Memory = dict[tuple[sp.Expr, int], list[sp.Expr] | None]


def taylor_coefficients(expr: sp.Expr, variable: sp.Symbol, order: int) -> list[sp.Expr] | None:
    """Return the coefficients of 1, x, …, x^order at x = 0.

    Parameters
    ----------
    expr : Expr
        Sums, products, powers with exponents that are numbers, and functions of one argument, all
        analytic at 0; everything else has to be free of the variable.
    variable : Symbol
        x.
    order : int

    Returns
    -------
    list of Expr, or None
        None if a part is of another kind, or not analytic at 0.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> taylor_coefficients(sp.asin(x / 2 + sp.S.Half) * (1 + x), x, 2)
    [pi/6, pi/6 + sqrt(3)/3, 7*sqrt(3)/18]
    """
    return _coefficients(expr, variable, order, {})


def _coefficients(expr: sp.Expr, x: sp.Symbol, order: int, known: _Memory) -> list[sp.Expr] | None:
    if (expr, order) not in known:
        known[expr, order] = _found(expr, x, order, known)
    return known[expr, order]


def _found(expr: sp.Expr, x: sp.Symbol, order: int, known: _Memory) -> list[sp.Expr] | None:
    if not expr.has(x):
        return [expr] + [sp.S.Zero] * order
    if expr == x:
        return [sp.S.Zero, sp.S.One, *[sp.S.Zero] * order][: order + 1]
    is_power = expr.is_Pow and not expr.exp.has(x)
    is_function = isinstance(expr, sp.Function) and len(expr.args) == 1
    if not (expr.is_Add or expr.is_Mul or is_power or is_function):
        return None
    parts = []
    for part in (expr.base,) if is_power else expr.args:
        series = _coefficients(part, x, order, known)
        if series is None:
            return None
        parts.append(series)
    if expr.is_Add:
        return [_tidy(sp.Add(*column)) for column in zip(*parts, strict=True)]
    if expr.is_Mul:
        product = parts[0]
        for other in parts[1:]:
            product = _product(product, other)
        return product
    if is_power:
        return _power(parts[0], expr.exp)
    return _function(expr, parts[0], x, order, known)


def _product(a: list[sp.Expr], b: list[sp.Expr]) -> list[sp.Expr]:
    return [_tidy(sp.Add(*(a[k] * b[n - k] for k in range(n + 1)))) for n in range(len(a))]


def _power(u: list[sp.Expr], exponent: sp.Expr) -> list[sp.Expr] | None:
    """Coefficients of u^a, by u (u^a)' = a u' u^a."""
    if exponent.is_Integer and exponent > 0:
        result = u
        for _ in range(int(exponent) - 1):
            result = _product(result, u)
        return result
    if not u[0].is_nonzero:
        return None
    # A quotient of sums of roots would be multiplied out at every order.
    inverse = _normal_form(1 / u[0])
    ratio = [_tidy(c * inverse) for c in u]
    found: list[sp.Expr] = [sp.S.One]
    for n in range(1, len(u)):
        terms = ((exponent * k - (n - k)) * ratio[k] * found[n - k] for k in range(1, n + 1))
        found.append(_tidy(sp.Add(*terms) / n))
    leading = inverse if exponent == -1 else u[0] ** exponent
    return [leading * c for c in found]


def _normal_form(number: sp.Expr) -> sp.Expr:
    """Return a number in the normal form of its field, if it is in one."""
    if number.has(sp.exp, sp.E):
        return number
    try:
        field, (element,) = exact_field([number])
    except UnsupportedExpressionError:
        return number
    return field.to_sympy(element)


def _function(
    expr: sp.Expr, u: list[sp.Expr], x: sp.Symbol, order: int, known: _Memory
) -> list[sp.Expr] | None:
    value = expr.func(u[0])
    if not value.is_finite or isinstance(expr, sp.Heaviside | sp.Abs | sp.sign):
        return None
    if order == 0:
        return [value]
    slope = _coefficients(expr.fdiff(1), x, order - 1, known)
    if slope is None:
        return None
    return [value] + [
        _tidy(sp.Add(*(k * u[k] * slope[n - k] for k in range(1, n + 1))) / n)
        for n in range(1, order + 1)
    ]


def _tidy(value: sp.Expr) -> sp.Expr:
    # Multiplied out, powers of sums of exponentials fill pages.
    return value if value.has(sp.exp, sp.E) else sp.expand(value)
