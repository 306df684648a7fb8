"""Find nodes in large expressions, each distinct subexpression looked at once.

Derivatives of integrands share most of their parts: as a tree they are many times as large as what
is in memory. The order of what is found follows from the expression alone, so that the same system
gives the same code in every process.
"""

from __future__ import annotations

import sympy as sp


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
