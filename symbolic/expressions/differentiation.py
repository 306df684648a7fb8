"""First derivatives of expressions that share parts, each part looked at once.

SymPy's own ``diff`` asks for all free symbols, for a sign, and for derivatives left undone, at each
node of the tree: for a long integrand that takes most of the time of a derivation.
"""

from __future__ import annotations

from functools import lru_cache

import sympy as sp
from sympy.core.function import AppliedUndef


# Of what derivations and passes have in hand at a time.
@lru_cache(maxsize=1 << 15)
def free_symbols(expr: sp.Basic) -> frozenset[sp.Symbol]:
    """Return the free symbols of an expression; those of its parts are remembered.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> sorted(free_symbols(sp.exp(x) + sp.cos(sp.exp(x)) * y), key=str), free_symbols(sp.sqrt(2))
    ([x, y], frozenset())
    """
    # Symbols, and nodes that bind some, know their own.
    if not expr.args or type(expr).free_symbols is not sp.Basic.free_symbols:
        return frozenset(expr.free_symbols)
    return frozenset().union(*map(free_symbols, expr.args))


# Derivatives by several unknowns, and of several equations, share their integrands.
@lru_cache(maxsize=1 << 15)
def first_derivative(expr: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return what ``expr.diff(x)`` returns, sooner.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> first_derivative(sp.tanh(x * y) ** 2 + sp.Abs(y), x)
    2*y*(1 - tanh(x*y)**2)*tanh(x*y)
    """
    if x not in free_symbols(expr):
        return sp.S.Zero
    if expr.is_Symbol:
        return sp.S.One
    kind, args = type(expr), expr.args
    if kind is sp.Add:
        return sp.Add(*(first_derivative(a, x) for a in args))
    if kind is sp.Mul:
        slopes = [(i, slope) for i, a in enumerate(args) if (slope := first_derivative(a, x)) != 0]
        return sp.Add(*(sp.Mul(*args[:i], slope, *args[i + 1 :]) for i, slope in slopes))
    if kind is sp.Pow:
        base, exponent = args
        rate = first_derivative(base, x) * exponent / base
        if (slope := first_derivative(exponent, x)) != 0:
            rate = slope * sp.log(base) + rate
        return expr * rate
    if kind._eval_derivative is not sp.Function._eval_derivative:
        slope = None if kind is sp.Derivative else expr._eval_derivative(x)
        return expr.diff(x) if slope is None else slope
    if issubclass(kind, AppliedUndef):
        return expr.diff(x)
    slopes = [(i, first_derivative(a, x)) for i, a in enumerate(args, 1)]
    return sp.Add(*(expr.fdiff(i) * slope for i, slope in slopes if not slope.is_zero))
