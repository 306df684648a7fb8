"""SymPy expressions as functions: of floats, of arrays, of many digits.

:func:`compiled` gives the function itself. :func:`function_source` gives the text of several, to be
kept: :mod:`giantstep.runtime.generated` turns it into functions without SymPy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import sympy as sp

from ...runtime.generated import GeneratedFunction, defined
from ..expressions.arguments import compile_arrays_with
from .printers import MpmathPrinter, NumpyPrinter, ScalarPrinter, SourcePrinter, helper_definitions

Values: TypeAlias = "sp.Expr | Sequence[sp.Expr]"
Argument: TypeAlias = "sp.Expr | tuple[sp.Symbol, ...]"

_PRINTERS: Mapping[str, type[SourcePrinter]] = {
    "python": ScalarPrinter,
    "numpy": NumpyPrinter,
    "mpmath": MpmathPrinter,
}
_INFINITY = {ScalarPrinter: "math.inf", NumpyPrinter: "np.inf", MpmathPrinter: "ctx.inf"}
_IMPORTS = {"math.": "import math", "np.": "import numpy as np", "scipy.": "import scipy.special"}


@dataclass(frozen=True)
class Formula:
    """What a function computes.

    Attributes
    ----------
    arguments : sequence of Expr or tuple of Symbol
        Symbols, or applied functions whose values are given. A tuple stands for the columns of one
        array.
    values : Expr or sequence of Expr
        The function returns one value, or a tuple.
    returned : str
        What it returns, in words.
    """

    arguments: Sequence[Argument]
    values: Values
    returned: str = ""


def compiled(
    expressions: Values, arguments: Sequence[Argument], target: Any = "numpy"
) -> Callable[..., Any]:
    """Return expressions as a function.

    Parameters
    ----------
    expressions : Expr or sequence of Expr
        The function returns one value, or a tuple. What is constant is returned as one number.
    arguments : sequence of Symbol or tuple of Symbol
        A tuple stands for the columns of one array, of shape (n, k).
    target : {"numpy", "python"} or mpmath context
        Arrays, floats, or numbers of the context. The first two can be sent to other processes.

    Raises
    ------
    EmissionError
        If an expression holds what the target cannot compute.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> compiled([x + y, sp.erf(x)], (x, y), "python")(0.0, 2.0)
    (2.0, 0.0)
    """
    values = expressions if isinstance(expressions, sp.Expr) else tuple(expressions)
    language = target if isinstance(target, str) else "mpmath"
    source = _unnamed(values, tuple(arguments), language)
    if language == target:
        return GeneratedFunction(source, "function")
    found: Callable[..., Any] = defined(source, ctx=target).function
    return found


compile_arrays_with(compiled)


@lru_cache(maxsize=256)
def _unnamed(values: Values, arguments: tuple[Argument, ...], target: str) -> str:
    symbols = [s for a in arguments for s in (a if isinstance(a, tuple) else (a,))]
    names = {symbol: f"x{i}" for i, symbol in enumerate(symbols)}
    return function_source({"function": Formula(arguments, values)}, target, names=names)


def function_source(
    functions: Mapping[str, Formula],
    target: str = "numpy",
    *,
    names: Mapping[sp.Expr, str] | None = None,
    own_functions: Mapping[str, str] | None = None,
) -> str:
    """Return the source of a module of functions.

    Parameters
    ----------
    functions : mapping from str to Formula
    target : {"numpy", "python", "mpmath"}
        Functions of arrays, of floats, or of numbers of a context that the text calls ``ctx``.
    names : mapping from Expr to str, optional
        What arguments are called in the text, where that is not their own name.
    own_functions : mapping from str to str, optional
        As for :class:`.printers.SourcePrinter`.

    Raises
    ------
    EmissionError
        If an expression holds what the target cannot compute.
    """
    printer = _PRINTERS[target](own_functions)
    texts = [
        function_text(name, formula, printer, names or {}) for name, formula in functions.items()
    ]
    return with_helpers("\n\n".join(texts), printer)


def with_helpers(text: str, printer: SourcePrinter | type[SourcePrinter]) -> str:
    """Return a text of Python after what it imports and the helpers that it calls."""
    helpers = helper_definitions(printer, text)
    both = "\n\n".join(part for part in (helpers, text) if part)
    imports = [line for name, line in _IMPORTS.items() if re.search(rf"\b{re.escape(name)}", both)]
    return "\n".join([*imports, "", "", both]) if imports else both


def function_text(
    name: str, formula: Formula, printer: SourcePrinter, names: Mapping[sp.Expr, str]
) -> str:
    """Return the definition of one function, without the helpers that it calls."""
    signature, columns = [], []
    rule: dict[sp.Expr, sp.Symbol] = {}
    for k, argument in enumerate(formula.arguments):
        parts = argument if isinstance(argument, tuple) else (argument,)
        texts = [names.get(part, str(part)) for part in parts]
        rule |= {
            part: sp.Symbol(text, **part.assumptions0)
            for part, text in zip(parts, texts, strict=True)
        }
        if isinstance(argument, tuple):
            array = f"columns_{k}"
            columns.append(f"{', '.join(texts)}, = {array}.reshape(len({array}), -1).T")
            texts = [array]
        signature += texts
    several = isinstance(formula.values, Sequence)
    values: Sequence[sp.Expr] = formula.values if several else [formula.values]
    shared, values = _shared([value.xreplace(rule) for value in values], printer)
    results = [_printed(value, printer) for value in values]
    returned = "".join(f"        {text},\n" for text in results)
    lines = [
        f"def {name}({', '.join(signature)}):",
        *([f'    """Return {formula.returned}."""'] if formula.returned else []),
        *(f"    {line}" for line in columns),
        *(f"    {symbol} = {printer.print(value)}" for symbol, value in shared),
        f"    return (\n{returned}    )" if several else f"    return {results[0]}",
    ]
    return "\n".join(lines) + "\n"


def _shared(
    values: Sequence[sp.Expr], printer: SourcePrinter
) -> tuple[list[tuple[sp.Symbol, sp.Expr]], list[sp.Expr]]:
    """Return common subexpressions and what is left."""
    kept: dict[sp.Expr, sp.Symbol] = {}
    if not isinstance(printer, NumpyPrinter):
        # Python evaluates one branch: what is in another one may divide by zero.
        values = [_without_cases(value, kept) for value in values]
    shared, values = sp.cse(values, symbols=sp.numbered_symbols("shared_"), optimizations=[])
    back = {symbol: cases for cases, symbol in kept.items()}
    return [(s, v.xreplace(back)) for s, v in shared], [v.xreplace(back) for v in values]


def _without_cases(expr: sp.Expr, kept: dict[sp.Expr, sp.Symbol]) -> sp.Expr:
    """Return an expression with symbols for its outermost cases, which `kept` collects."""
    if isinstance(expr, sp.Piecewise):
        return kept.setdefault(expr, sp.Dummy(real=expr.is_real))
    if not expr.args or not expr.has(sp.Piecewise):
        return expr
    return expr.func(*(_without_cases(a, kept) for a in expr.args))


def _printed(value: sp.Expr, printer: SourcePrinter) -> str:
    infinity = _INFINITY.get(type(printer))
    return infinity if value is sp.oo and infinity else printer.print(value)
