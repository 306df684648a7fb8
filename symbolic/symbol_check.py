"""Symbols of one name and different assumptions, which SymPy silently takes for different ones."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from ..errors import ExpressionError


def check_symbols(expr: sp.Basic, variables: Iterable[sp.Symbol], argument: str) -> None:
    """Refuse an expression that holds a declared name with other assumptions.

    Parameters
    ----------
    expr : Basic
        The expression a user gave.
    variables : iterable of Symbol
        The symbols that are meant, such as the Gaussian variables and the parameters.
    argument : str
        How the user knows the expression; the error message begins with it.

    Raises
    ------
    ExpressionError
        If a symbol of `expr` has the name of one in `variables`, or of another one in `expr`, but
        is not that symbol.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> check_symbols(z**2, [z], "f")
    >>> check_symbols(sp.Symbol("z") ** 2, [z], "f")
    Traceback (most recent call last):
        ...
    giantstep.errors.ExpressionError: f: z does not occur in z**2, whose z is another symbol
      same name, different assumptions: Symbol('z') against Symbol('z', real=True)
      build the expression from the very symbol that is declared
    """
    declared = {symbol.name: symbol for symbol in variables}
    shown = str(expr)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    for symbol in sorted(expr.free_symbols, key=sp.srepr):
        other = declared.setdefault(symbol.name, symbol)
        if other != symbol:
            reason = (
                f"two symbols named {symbol} occur in {shown}"
                if other in expr.free_symbols
                else f"{other} does not occur in {shown}, whose {symbol} is another symbol"
            )
            raise ExpressionError(
                f"{argument}: {reason}\n"
                f"  same name, different assumptions: {sp.srepr(symbol)} against "
                f"{sp.srepr(other)}\n"
                "  build the expression from the very symbol that is declared"
            )
