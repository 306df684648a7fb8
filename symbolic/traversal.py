"""Find nodes and symbols in large expressions, each distinct subexpression looked at once.

Derivatives of integrands share most of their parts: as a tree they are many times as large as what
is in memory. The order of what is found follows from the expression alone, so that the same system
gives the same code in every process.
"""

from __future__ import annotations

from typing import Any

import sympy as sp


class FreeSymbols:
    """The free symbols of expressions that share parts; what is known of a part is kept.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> free = FreeSymbols()
    >>> sorted(free(sp.exp(x) + sp.cos(sp.exp(x)) * y), key=str), free(sp.sqrt(2))
    ([x, y], frozenset())
    """

    def __init__(self) -> None:
        self._known: dict[sp.Basic, frozenset[sp.Symbol]] = {}

    def __call__(self, expr: sp.Basic) -> frozenset[sp.Symbol]:
        """Return the free symbols of an expression."""
        found = self._known.get(expr)
        if found is None:
            # Symbols, and nodes that bind some, know their own.
            if not expr.args or type(expr).free_symbols is not sp.Basic.free_symbols:
                found = frozenset(expr.free_symbols)
            else:
                found = frozenset().union(*map(self, expr.args))
            self._known[expr] = found
        return found


def parts_of(expr: sp.Basic, *types: type[sp.Basic]) -> set[Any]:
    """Return all nodes of these types, those inside of others too.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> sorted(parts_of(sp.sin(x) + sp.exp(sp.exp(-x)), sp.exp), key=str)
    [exp(-x), exp(exp(-x))]
    """
    found: set[Any] = set()
    seen: set[sp.Basic] = set()
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        if part in seen:
            continue
        seen.add(part)
        if isinstance(part, types):
            found.add(part)
        waiting += part.args
    return found


def nodes_of(expr: sp.Basic, *types: type[sp.Basic]) -> list[sp.Expr]:
    """Return the nodes of these types that no other one of them encloses, in order.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> nodes_of(sp.exp(x) + sp.cos(sp.exp(x)) * sp.exp(sp.cos(x)), sp.exp)
    [exp(x), exp(cos(x))]
    """
    found: dict[sp.Expr, None] = {}
    seen: set[sp.Basic] = set()

    def visit(part: sp.Basic) -> None:
        if isinstance(part, types):
            found[part] = None
        elif part.args and part not in seen:
            seen.add(part)
            for argument in part.args:
                visit(argument)

    visit(expr)
    return list(found)
