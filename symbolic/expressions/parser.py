"""Text to SymPy, without evaluating any Python.

The text is checked token by token, read with :func:`ast.parse`, and the tree is walked over a
short list of allowed nodes: numbers, declared variables, ``pi``, ``E``, ``+ - * / **``,
parentheses, the functions of :mod:`.expression_text` and ``He(k, x)``, the probabilists' Hermite
polynomial, expanded. Decimals become exact rationals. Length, nesting, digits, exponents and degree
are bounded so that every text is either read or refused within milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import sympy as sp

from ...errors import ExpressionError, ParameterError
from ...pages import shorten
from .expression_reader import MAX_DEGREE, MAX_EXPONENT, MAX_LENGTH, MAX_ORDER, ExpressionReader
from .expression_text import CONSTANTS, FUNCTIONS
from .latex_text import MAX_LATEX_LENGTH, latex_names, parse_latex

__all__ = [
    "CONSTANTS",
    "FUNCTIONS",
    "MAX_DEGREE",
    "MAX_EXPONENT",
    "MAX_LENGTH",
    "MAX_ORDER",
    "MAX_VARIABLES",
    "Parameters",
    "declared_kind",
    "declared_symbols",
    "may_be_an_input",
    "named_symbols",
    "parse_expression",
    "parse_target",
]

MAX_VARIABLES = 64
"""Highest index of x1, x2, ... in the text of a target."""

_NAME = re.compile(r"[^\W\d]\w*")
_COORDINATE = re.compile(r"x([1-9][0-9]*)")
_SINGLE = ("x", "z")
_INDEXED = re.compile(r"(?<![A-Za-z0-9_])[xz]_(?:[0-9]|\{[0-9])")
_WORD = re.compile(r"[A-Za-z]{2}")
# Beside the inputs that are named x1, x2, ... or z, these could be meant as inputs, too.
_MAYBE_INPUT = re.compile(r"[u-z]_?[0-9]*")
_KINDS = ("real", "positive", "nonnegative", "negative", "nonpositive", "nonzero", "integer")


def parse_expression(
    text: str,
    variables: Mapping[str, sp.Symbol] | Sequence[sp.Symbol],
    *,
    argument: str = "expression",
) -> sp.Expr:
    r"""Read a text as an exact real SymPy expression.

    Parameters
    ----------
    text : str
        The expression, at most `MAX_LENGTH` characters.
    variables : mapping of str to Symbol, or sequence of Symbol
        What may occur besides numbers, constants and functions; a sequence declares the symbols by
        their own names. They take precedence over the names of functions and constants.
    argument : str
        How the caller's user knows this text; error messages begin with it.

    Returns
    -------
    Expr
        Exact, without any Float. Not simplified beyond what SymPy does by itself, except that
        ``He(k, x)`` and its other spelling ``Hek(x)`` are expanded in powers of x. If exactly one
        variable is declared, a bare ``He3`` is He_3 of it.

    Raises
    ------
    ExpressionError
        If the text is anything else, is too large, or is not a finite real expression; no other
        exception is raised, whatever the text. The first line says which piece is wrong and what
        would be right.

    Notes
    -----
    Probabilists' Hermite polynomials, He_2(x) = x**2 - 1. Exponents are integers or fractions with
    numerator and denominator up to `MAX_EXPONENT`; positive numbers may have any exponent. The
    degree, counted through products, powers and functions, is at most `MAX_DEGREE`.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> parse_expression("He(3, z)/6 + 0.25*tanh(2*z)", [z])
    z**3/6 - z/2 + tanh(2*z)/4
    >>> parse_expression("2z", [z], argument="f")
    Traceback (most recent call last):
        ...
    giantstep.errors.ExpressionError: cannot read f '2z': an operator is missing in '2z'; write 2*z
    """
    if not isinstance(text, str):
        raise ExpressionError(
            f"cannot read {argument} {shorten(repr(text))}: it is not a text; give a str"
        )
    if not isinstance(variables, Mapping):
        variables = {symbol.name: symbol for symbol in variables}
    return ExpressionReader(text, variables, argument).read()


def parse_target(
    text: str, *, parameters: Mapping[str, sp.Symbol] | None = None, argument: str = "target"
) -> tuple[sp.Expr, tuple[sp.Symbol, ...]]:
    r"""Read a text in the coordinates x1, x2, ... as a target.

    Parameters
    ----------
    text : str
        An expression as for :func:`parse_expression`; with a backslash in it, or with x_1 and no
        words, LaTeX as for :func:`.latex_text.parse_latex`.
    parameters : mapping of str to Symbol, optional
        What may occur besides coordinates; none of their names may be that of a coordinate.
    argument : str
        How the caller's user knows this text.

    Returns
    -------
    expr : Expr
    variables : tuple of Symbol
        The real symbols x1, ..., xr up to the highest index r in the text, absent ones included:
        ``x1*x3`` is a function of three coordinates. A text in x alone, or in z alone, is a
        function of x1, and so is a bare ``He3``. Empty for a constant.

    Raises
    ------
    ExpressionError
        If the text is not an expression in coordinates up to x64.

    Examples
    --------
    >>> parse_target("x1*x3 + He(2, x1)")
    (x1**2 + x1*x3 - 1, (x1, x2, x3))
    >>> parse_target("relu(z)"), parse_target(r"\operatorname{erf}\left(x_{1}\right)")
    ((relu(x1), (x1,)), (erf(x1), (x1,)))
    """
    named = dict(parameters or {})
    for name in named:
        if _COORDINATE.fullmatch(name):
            raise ExpressionError(
                f"{argument} {shorten(str(text))!r}: {name} is a coordinate, not a parameter; "
                "rename the parameter"
            )
    is_latex = isinstance(text, str) and _is_latex(text)
    read = parse_latex if is_latex else parse_expression
    if not isinstance(text, str) or len(text) > (MAX_LATEX_LENGTH if is_latex else MAX_LENGTH):
        return read(text, [], argument=argument), ()
    names = latex_names(text) if is_latex else set(_NAME.findall(text))
    indices = [int(result[1]) for name in names if (result := _COORDINATE.fullmatch(name[:9]))]
    highest = max(indices, default=0)
    if highest > MAX_VARIABLES:
        raise ExpressionError(
            f"cannot read {argument} {shorten(text)!r}: x{highest} is out of range; "
            f"use coordinates x1 to x{MAX_VARIABLES}"
        )
    single = [name for name in _SINGLE if name in names and name not in named]
    if not highest and len(single) == 1:
        x1 = sp.Symbol("x1", real=True)
        variables, known = (x1,), {single[0]: x1}
    else:
        # Without a coordinate in the text, He3 and what messages propose are functions of x1.
        variables = tuple(sp.Symbol(f"x{i}", real=True) for i in range(1, max(highest, 1) + 1))
        known = {x.name: x for x in variables}
    expr = read(text, {**named, **known}, argument=argument)
    depends = highest or expr.free_symbols - set(named.values())
    return expr, variables if depends else ()


def _is_latex(text: str) -> bool:
    """Whether a text can only be meant as LaTeX; a word or ** beside x_1 is a slip in the other."""
    if "\\" in text:
        return True
    return bool(_INDEXED.search(text) and not _WORD.search(text)) and "**" not in text


Parameters: TypeAlias = bool | str | Sequence[sp.Symbol | str] | Mapping[str, str]
"""Which symbols are parameters: any, none, names, symbols, or names with kinds."""


def may_be_an_input(symbol: sp.Symbol) -> bool:
    """Whether a symbol that is not named as inputs are could be meant as one.

    Examples
    --------
    >>> [may_be_an_input(x) for x in sp.symbols("y u_1 a tau")]
    [True, True, False, False]
    """
    return _MAYBE_INPUT.fullmatch(symbol.name) is not None


def named_symbols(parameters: Parameters) -> dict[str, sp.Symbol]:
    """Return the parameters that are named, by their names.

    `parameters`: names as "a b", names and symbols as [a, "b"], or kinds by name, as for
    :func:`declared_symbols`. True and False name none. Raises ParameterError if they are anything
    else.

    Examples
    --------
    >>> named_symbols("a, b"), named_symbols({"a": "positive"})["a"].is_positive
    ({'a': a, 'b': b}, True)
    """
    if isinstance(parameters, bool):
        return {}
    if isinstance(parameters, str):
        parameters = parameters.replace(",", " ").split()
    if isinstance(parameters, Mapping):
        return declared_symbols(parameters)
    if not isinstance(parameters, Sequence) or not all(
        isinstance(x, sp.Symbol | str) for x in parameters
    ):
        raise ParameterError(
            "parameters must be names such as 'a b', symbols, or a mapping from names to kinds, "
            f"got {shorten(repr(parameters))}"
        )
    texts = {x: "real" for x in parameters if isinstance(x, str)}
    symbols = {x.name: x for x in parameters if isinstance(x, sp.Symbol)}
    return {**declared_symbols(texts), **symbols}


def declared_kind(parameter: sp.Symbol) -> str:
    """Return the words that :func:`declared_symbols` makes a symbol of the same kind of.

    Examples
    --------
    >>> declared_kind(sp.Symbol("n", integer=True, positive=True)), declared_kind(sp.Symbol("a"))
    ('integer, positive', 'real')
    """
    words = [word for word in ("integer", "positive", "negative") if _is(parameter, word)]
    if not {"positive", "negative"} & {*words}:
        others = ("nonnegative", "nonpositive", "nonzero")
        words += [word for word in others if _is(parameter, word)]
    return ", ".join(words) or "real"


def _is(symbol: sp.Symbol, word: str) -> bool:
    return getattr(symbol, f"is_{word}") is True


def declared_symbols(kinds: Mapping[str, str]) -> dict[str, sp.Symbol]:
    """Return symbols by name, for parameters that are declared in words.

    `kinds`: one or more of the words real, positive, nonnegative, negative, nonpositive, nonzero,
    integer for each name, separated by blanks or commas; all are real. Raises ParameterError if a
    name is not a name or a word is none of these, or they contradict each other.

    Examples
    --------
    >>> symbols = declared_symbols({"a": "positive", "n": "integer, nonnegative"})
    >>> parse_expression("abs(a) + abs(n)", symbols)
    a + n
    """
    result = {}
    for name, text in kinds.items():
        if not _NAME.fullmatch(name) or not name.isascii() or name in CONSTANTS:
            raise ParameterError(
                f"{shorten(name, 30)!r} is not a name for a parameter; "
                "use ASCII letters, digits and _, such as 'a' or 'rho', and neither pi nor E"
            )
        words = text.replace(",", " ").split()
        unknown = [word for word in words if word not in _KINDS]
        if unknown or not words:
            wrong = f"is declared {shorten(unknown[0], 30)!r}" if unknown else "has no kind"
            raise ParameterError(f"parameter {name!r} {wrong}; use {', '.join(_KINDS)}")
        try:
            # Each word implies that it is real. Of equal symbols SymPy's caches return either, so
            # that the same assumptions have to be written in one way.
            result[name] = sp.Symbol(name, **dict.fromkeys(sorted(words), True))
        except sp.core.facts.InconsistentAssumptions:
            raise ParameterError(
                f"parameter {name!r} cannot be {' and '.join(words)} at once"
            ) from None
    return result
