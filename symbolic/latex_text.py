r"""Expressions as LaTeX, written and read.

Reading translates LaTeX into the text that :mod:`.parser` reads, by a recursive descent over a
short list of commands: ``\frac``, ``\sqrt``, ``\sqrt[n]``, ``^``, subscripts of names, ``\cdot``,
parentheses with or without ``\left`` and ``\right``, Greek names, ``\pi``, ``e``, functions and
``\mathrm{He}_{k}``; what stands side by side is multiplied. The same checks and bounds hold after
that: no command defines, includes or runs anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import sympy as sp

from ..errors import ExpressionError
from ._expression_reader import ExpressionReader
from ._latex_reader import COMMANDS, GREEK, MAX_LATEX_LENGTH, Translator, latex_names, latex_tokens
from ._tokens import shorten
from .expression_text import Product, joined_terms, split_product
from .functions import HALF
from .vocabulary import SPELLINGS

__all__ = ["MAX_LATEX_LENGTH", "expression_latex", "latex_names", "parse_latex"]

# A translation repeats no piece, and a piece grows by its parentheses at most.
_MAX_TRANSLATION = 4 * MAX_LATEX_LENGTH

_SYMBOL = re.compile(r"([A-Za-z]+)([0-9]*)")


def expression_latex(expr: sp.Expr) -> str:
    r"""Write an expression as LaTeX that :func:`parse_latex` reads back.

    Parameters
    ----------
    expr : Expr
        As for :func:`.expression_text.expression_text`; what the grammar has no word for is written
        by SymPy's own printer, and not read back.

    Examples
    --------
    >>> x, rho = sp.symbols("x1 rho", real=True)
    >>> print(expression_latex(sp.sqrt(2) * x**3 / (2 * sp.sqrt(sp.pi)) - sp.exp(-rho / 2)))
    \frac{\sqrt{2} x_{1}^{3}}{2 \sqrt{\pi}} - e^{- \frac{\rho}{2}}
    """
    if expr.is_Add:
        return joined_terms(map(expression_latex, expr.as_ordered_terms()))
    if expr.is_Symbol:
        return _symbol(expr)
    if expr is sp.pi or expr is sp.E:
        return r"\pi" if expr is sp.pi else "e"
    if expr.is_Integer:
        return str(expr)
    inverse = expr.is_Pow and expr.exp.is_Rational and expr.exp.is_negative
    if expr.is_Mul or expr.is_Rational or inverse:
        return _product(split_product(expr))
    if expr.is_Pow:
        return _power(expr)
    if isinstance(expr, sp.exp):
        return f"e^{{{expression_latex(expr.args[0])}}}"
    if isinstance(expr, sp.Abs):
        return rf"\left|{{{expression_latex(expr.args[0])}}}\right|"
    return _function(expr)


def _function(expr: sp.Expr) -> str:
    operands = expr.args
    name = SPELLINGS.get(type(expr))
    if isinstance(expr, sp.Heaviside) and operands[1] == HALF:
        name, operands = "step", operands[:1]
    if name is None:
        return str(sp.latex(expr))
    if COMMANDS.get(name) == name:
        head = rf"\{name}"
    elif name == "Phi2":
        head = r"\Phi_{2}"
    else:
        head = rf"\operatorname{{{ {'relu': 'ReLU', 'OwenT': 'T'}.get(name, name) }}}"
    return rf"{head}\left({', '.join(map(expression_latex, operands))}\right)"


def _symbol(symbol: sp.Symbol) -> str:
    found = _SYMBOL.fullmatch(symbol.name)
    if found is None or (found[1] == "e" and not found[2]):
        written = symbol.name.replace("_", r"\_")
        return rf"\mathrm{{{written}}}"
    head, index = found.groups()
    if head in GREEK:
        head = rf"\{head}"
    elif len(head) > 1:
        head = rf"\mathrm{{{head}}}"
    return f"{head}_{{{index}}}" if index else head


def _product(parts: Product) -> str:
    above, below = _side_by_side(parts.numerators), _side_by_side(parts.denominators)
    text = rf"\frac{{{above or '1'}}}{{{below}}}" if below else above
    if parts.factor != 1:
        number = rf"\frac{{{parts.factor.p}}}{{{parts.factor.q}}}"
        number = number if parts.factor.q != 1 else str(parts.factor.p)
        text = f"{number} {text}" if text else number
    return f"- {text or '1'}" if parts.negative else text or "1"


def _side_by_side(factors: Sequence[sp.Expr]) -> str:
    text = ""
    for factor in factors:
        written = _factor(factor)
        joint = r" \cdot " if written[0].isdigit() else " "
        text = f"{text}{joint}{written}" if text else written
    return text


def _factor(expr: sp.Expr) -> str:
    text = expression_latex(expr)
    return rf"\left({text}\right)" if expr.is_Add or expr.is_Mul or text[0] == "-" else text


def _power(expr: sp.Pow) -> str:
    base, exponent = expr.args
    inside = expression_latex(base)
    if exponent.is_Rational and exponent.p == 1:
        return rf"\sqrt{{{inside}}}" if exponent.q == 2 else rf"\sqrt[{exponent.q}]{{{inside}}}"
    if not (base.is_Symbol or base is sp.pi or (base.is_Integer and base > 0)):
        inside = rf"\left({inside}\right)"
    return f"{inside}^{{{expression_latex(exponent)}}}"


def parse_latex(
    text: str,
    variables: Mapping[str, sp.Symbol] | Sequence[sp.Symbol],
    *,
    argument: str = "expression",
) -> sp.Expr:
    r"""Read LaTeX as an exact real SymPy expression.

    Parameters
    ----------
    text : str
        At most `MAX_LATEX_LENGTH` characters, with or without dollar signs around it.
    variables : mapping of str to Symbol, or sequence of Symbol
        As for :func:`.parser.parse_expression`; ``x_{1}`` stands for the name x1, ``\rho`` for
        rho, ``\mathrm{name}`` for a longer name.
    argument : str
        How the caller's user knows this text; error messages begin with it.

    Raises
    ------
    ExpressionError
        If a command or character is not on the list, or the expression is refused as
        :func:`.parser.parse_expression` refuses it; pieces are then shown as translated.

    Examples
    --------
    >>> x1, z = sp.symbols("x1 z", real=True)
    >>> parse_latex(r"\frac{1}{2} \mathrm{He}_{2}\left(x_{1}\right) + e^{-\frac{1}{2}}", [x1])
    x1**2/2 - 1/2 + exp(-1/2)
    """
    if not isinstance(text, str):
        raise ExpressionError(
            f"cannot read {argument} {shorten(repr(text))}: it is not a text; give a str"
        )
    if not isinstance(variables, Mapping):
        variables = {symbol.name: symbol for symbol in variables}

    def refuse(reason: str) -> ExpressionError:
        return ExpressionError(f"cannot read {argument} {shorten(text)!r}: {reason}")

    translation = Translator(latex_tokens(text, refuse), refuse, variables).whole()
    reader = ExpressionReader(translation, variables, argument, shown=text, limit=_MAX_TRANSLATION)
    return reader.read()
