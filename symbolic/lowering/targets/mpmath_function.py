"""One expression as a function on a local mpmath context, for quadrature at any precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy as sp

from .printers import MpmathPrinter, helper_definitions


def mpmath_function(arguments: Sequence[sp.Symbol], expr: sp.Expr, ctx: Any) -> Callable[..., Any]:
    """Return `expr` as a function of `arguments` that computes in the mpmath context `ctx`.

    The text that is executed comes from our own printer, which refuses every node it does not
    know; it never holds text that a user typed.
    """
    renamed = {symbol: sp.Symbol(f"x{i}", real=True) for i, symbol in enumerate(arguments)}
    shared, (result,) = sp.cse(
        [expr.xreplace(renamed)], symbols=sp.numbered_symbols("t"), optimizations=[]
    )
    printer = MpmathPrinter()
    lines = [f"    {name} = {printer.print(value)}" for name, value in shared]
    lines.append(f"    return {printer.print(result)}")
    signature = ", ".join(str(s) for s in renamed.values())
    body = f"def function({signature}):\n" + "\n".join(lines) + "\n"
    namespace: dict[str, Any] = {"ctx": ctx}
    exec(helper_definitions(MpmathPrinter, body) + "\n\n" + body, namespace)
    found: Callable[..., Any] = namespace["function"]
    return found
