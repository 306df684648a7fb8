"""SymPy expressions as functions: of floats, arrays, tensors, many digits; as text elsewhere.

:func:`compiled` gives the function itself, or its text in a language that does not run here.
:func:`function_source` gives the text of several, to be kept: :mod:`giantstep.runtime.generated`
turns it into functions without SymPy.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, TypeAlias, overload

import sympy as sp

from ...errors import EmissionError, MissingDependencyError, ParameterError
from ...runtime.generated import GeneratedFunction, defined
from ..expressions.arguments import as_expression, compile_arrays_with
from ..expressions.shared_parts import free_symbols
from .language import Function, Kind, Language, Parameter
from .printers import (
    CPrinter,
    FortranPrinter,
    JaxPrinter,
    JuliaPrinter,
    MpmathPrinter,
    NumpyPrinter,
    ScalarPrinter,
    SourcePrinter,
    TorchPrinter,
    helper_definitions,
)
from .special_functions import helper_texts
from .spellings import CLanguage, FortranLanguage, JuliaLanguage

Values: TypeAlias = "sp.Expr | Sequence[sp.Expr]"
Argument: TypeAlias = "sp.Expr | tuple[sp.Symbol, ...]"

_PRINTERS: Mapping[str, type[SourcePrinter]] = {
    "python": ScalarPrinter,
    "numba": ScalarPrinter,
    "numpy": NumpyPrinter,
    "mpmath": MpmathPrinter,
    "jax": JaxPrinter,
    "torch": TorchPrinter,
}
# Those that are not Python: the function comes as text.
_LANGUAGES: Mapping[str, Callable[[], Language]] = {
    "c": lambda: CLanguage(CPrinter()),
    "julia": lambda: JuliaLanguage(JuliaPrinter()),
    "fortran": lambda: FortranLanguage(FortranPrinter()),
}
_INFINITY = {
    ScalarPrinter: "math.inf", NumpyPrinter: "np.inf", MpmathPrinter: "ctx.inf",
    JaxPrinter: "jnp.inf", TorchPrinter: "torch.inf",
}  # fmt: skip
_IMPORTS = {
    "math.": "import math", "np.": "import numpy as np", "scipy.": "import scipy.special",
    "jnp.": "import jax.numpy as jnp", "jax.": "import jax.scipy.special", "torch.": "import torch",
    "njit(": "from numba import njit",
}  # fmt: skip
_JIT = '@njit(error_model="numpy")\n'


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


@overload
def compiled(
    expressions: Values,
    arguments: Sequence[Argument],
    target: Literal["c", "julia", "fortran"],
) -> str: ...
@overload
def compiled(
    expressions: Values, arguments: Sequence[Argument], target: Any = "numpy"
) -> Callable[..., Any]: ...
def compiled(
    expressions: Values, arguments: Sequence[Argument], target: Any = "numpy"
) -> Callable[..., Any] | str:
    """Return expressions as a function.

    Parameters
    ----------
    expressions : Expr or sequence of Expr
        The function returns one value, or a tuple. What is constant is returned as one number.
    arguments : Symbol, or sequence of Symbol or tuple of Symbol
        A tuple stands for the columns of one array, of shape (n, k); not in C, Julia and Fortran.
    target : str or mpmath context
        What the function computes with: ``"numpy"`` arrays, ``"python"`` floats, ``"numba"``
        floats in compiled functions, ``"jax"`` arrays that can be traced and differentiated,
        ``"torch"`` tensors with gradients, or numbers of the context. The first two can be sent to
        other processes. JAX has 32 bits unless its user enables 64.

    Returns
    -------
    callable or str
        For ``"c"``, ``"julia"`` and ``"fortran"`` the text of ``formula`` with what it calls;
        several values go to an array ``out``, its last argument.

    Raises
    ------
    ExpressionError
        If an expression is a text, which :func:`giantstep.parse_expression` reads.
    ParameterError
        If an expression holds symbols that are no arguments, or arguments are no symbols or the
        same.
    EmissionError
        If the target is unknown, or an expression holds what it cannot compute.
    MissingDependencyError
        Without JAX or PyTorch where that is the target.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> compiled([x + y, sp.erf(x)], (x, y), "python")(0.0, 2.0)
    (2.0, 0.0)
    >>> print(compiled(x * sp.exp(y), (x, y), "c"))
    #include <math.h>
    #include <stddef.h>
    <BLANKLINE>
    double formula(double x, double y)
    {
        return x*exp(y);
    }
    <BLANKLINE>
    """
    arguments = _checked_arguments(arguments)
    if isinstance(expressions, list | tuple):
        values: Values = tuple(
            as_expression(v, f"expressions[{k}]") for k, v in enumerate(expressions)
        )
        if not values:
            raise ParameterError("expressions must be one or more, got none")
    else:
        values = as_expression(expressions, "expressions")
    if not isinstance(target, str) and not hasattr(target, "mpf"):
        raise ParameterError(f"target must be a name or a context of mpmath, got {target!r:.60}")
    if target in _LANGUAGES:
        return _text(values, arguments, _LANGUAGES[target]())
    language = target if isinstance(target, str) else "mpmath"
    source = _unnamed(values, arguments, language)
    if language in ("jax", "torch") and importlib.util.find_spec(language) is None:
        raise MissingDependencyError(
            f"target {language!r} needs {language}, which is not installed; "
            f"use pip install {language}"
        )
    if language == target != "numba":
        return GeneratedFunction(source, "function")
    given: dict[str, Any] = {}
    if language == "mpmath":
        # Numbers of many digits take as long to read as all else that is done with them.
        source = re.sub(r"ctx\.mpf\(('[^']*')\)", r"number(\1, ctx.prec)", source)
        given = {"ctx": target, "number": cache(lambda text, _: target.mpf(text))}
    # Compiled functions call only what numba knows itself.
    found: Callable[..., Any] = defined(source, **given).function
    return found


compile_arrays_with(compiled)


def _checked_arguments(arguments: Any) -> tuple[Argument, ...]:
    """Return what is given for values: expressions or tuples of symbols, each once."""
    given = (arguments,) if isinstance(arguments, sp.Basic) else arguments
    if not isinstance(given, list | tuple):
        raise ParameterError(f"arguments must be symbols, as (x, y), got {arguments!r:.60}")
    parts = [one for x in given for one in (x if isinstance(x, list | tuple) else (x,))]
    for part in parts:
        if not isinstance(part, sp.Expr):
            raise ParameterError(f"arguments must be symbols, as (x, y), and {part!r:.60} is none")
        if parts.count(part) > 1:
            raise ParameterError(f"arguments must be different, and {part} is there twice")
    return tuple(tuple(x) if isinstance(x, list | tuple) else x for x in given)


def _text(values: Values, arguments: tuple[Argument, ...], language: Language) -> str:
    """Return a function in a language that does not run here."""
    several = isinstance(values, tuple)
    formula = Formula(arguments, values)
    symbols = [a for a in arguments if isinstance(a, sp.Symbol)]
    if len(symbols) < len(arguments):
        raise EmissionError(f"target {language.name!r} takes numbers: give symbols as arguments")
    _check_symbols(formula)
    # A name may mean something in the language, or to the text of the function.
    names = {a: sp.Symbol(language.identifier(str(a)), **a.assumptions0) for a in symbols}
    given = [v.xreplace(names) for v in (values if isinstance(values, tuple) else (values,))]
    shared, results = _shared(given, language.printer)
    expressions = {f"expression_{k}_": v for k, (_, v) in enumerate(shared)}
    lines = [f"{s} = expression_{k}_" for k, (s, _) in enumerate(shared)]
    for k, value in enumerate(results):
        expressions[f"result_{k}_"] = value
        lines.append(f"out[{k}] = result_{k}_" if several else f"return result_{k}_")
    parameters = tuple(map(Parameter, map(str, names.values())))
    function = Function(
        "formula",
        (*parameters, Parameter("out", Kind.OUTPUT)) if several else parameters,
        "\n".join(lines) + "\n",
        expressions,
        returns=None if several else Kind.REAL,
    )
    text = language.source(function).removeprefix("static ")
    return language.unit("\n".join([*helper_texts(language.name, text), text]))


def _check_symbols(formula: Formula) -> None:
    """Refuse expressions with symbols that are no arguments."""
    known = {s for a in formula.arguments for s in (a if isinstance(a, tuple) else (a,))}
    values = formula.values if isinstance(formula.values, Sequence) else [formula.values]
    marks = {a: sp.Dummy() for a in known if not a.is_Symbol}
    exprs = (sp.sympify(v, strict=True).xreplace(marks) for v in values)
    unknown = frozenset().union(*map(free_symbols, exprs)) - known.union(marks.values())
    missing = ", ".join(sorted(map(str, unknown)))
    if missing:
        raise ParameterError(f"the expressions hold {missing}, which is not among the arguments")


@lru_cache(maxsize=256)
def _unnamed(values: Values, arguments: tuple[Argument, ...], target: str) -> str:
    _check_symbols(Formula(arguments, values))
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
    target : {"numpy", "python", "numba", "mpmath", "jax", "torch"}
        As for :func:`compiled`; with "mpmath" the text calls its context ``ctx``.
    names : mapping from Expr to str, optional
        What arguments are called in the text, where that is not their own name.
    own_functions : mapping from str to str, optional
        As for :class:`.printers.SourcePrinter`.

    Raises
    ------
    EmissionError
        If an expression holds what the target cannot compute.
    """
    if target not in _PRINTERS:
        raise EmissionError(
            f"target must be one of {', '.join((*_PRINTERS, *_LANGUAGES))}, got {target!r}"
        )
    printer = _PRINTERS[target](own_functions)
    decorator = _JIT if target == "numba" else ""
    texts = [
        decorator + function_text(name, formula, printer, names or {})
        for name, formula in functions.items()
    ]
    return with_helpers("\n\n".join(texts), printer, decorator)


def with_helpers(
    text: str, printer: SourcePrinter | type[SourcePrinter], decorator: str = ""
) -> str:
    """Return a text of Python after what it imports and the helpers that it calls."""
    helpers = helper_definitions(printer, text, decorator)
    both = "\n\n".join(part for part in (helpers, text) if part)
    imports = [
        line for name, line in _IMPORTS.items() if re.search(rf"(?<![\w.]){re.escape(name)}", both)
    ]
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
