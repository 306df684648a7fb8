"""Expressions that share parts: symbols, nodes, first derivatives and replacement, each part once.

SymPy goes through them as trees. Its ``diff`` asks for all free symbols, for a sign, and for
derivatives left undone, at each node: for a long integrand, most of the time of a derivation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef, ArgumentIndexError


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


def parts_of(expr: sp.Basic, *types: type[sp.Basic]) -> list[Any]:
    """Return all nodes of these types once, those inside of others too.

    Their order is that of the arguments: a set, as ``atoms`` returns, has another one in each
    process.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> parts_of(sp.sin(x) + sp.exp(sp.exp(-x)), sp.exp)
    [exp(exp(-x)), exp(-x)]
    """
    seen: set[sp.Basic] = set()
    waiting, result = [expr], []
    while waiting:
        part = waiting.pop()
        if part in seen:
            continue
        seen.add(part)
        if isinstance(part, types):
            result.append(part)
        waiting += part.args
    return result


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
    return sp.Add(*(_partial(expr, i) * slope for i, slope in slopes if not slope.is_zero))


def _partial(expr: sp.Function, index: int) -> sp.Expr:
    """Differentiate a function by its argument of that number; where nobody can, in symbols."""
    try:
        return expr.fdiff(index)
    except ArgumentIndexError:
        return sp.Function.fdiff(expr, index)


def replaced(expr: sp.Expr, rule: Mapping[sp.Expr, sp.Expr]) -> sp.Expr:
    """Return what ``expr.xreplace(rule)`` returns, sooner.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> replaced(sp.exp(x + y) + sp.cos(sp.exp(x + y)), {x: -y})
    cos(1) + 1
    """
    done: dict[sp.Basic, tuple[sp.Basic, bool]] = {}

    def visit(part: sp.Basic) -> tuple[sp.Basic, bool]:
        if part in rule:
            return rule[part], True
        if not part.args:
            return part, False
        if part not in done:
            if type(part)._xreplace is sp.Basic._xreplace:
                arguments = [visit(a) for a in part.args]
                changed = any(moved for _, moved in arguments)
                new = part.func(*(a for a, _ in arguments)) if changed else part
                done[part] = new, changed
            else:
                done[part] = part._xreplace(rule)
        return done[part]

    return visit(expr)[0] if rule else expr
