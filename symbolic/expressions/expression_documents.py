"""Expressions in documents: as people write them where that reads back equal, else as a tree.

A document of expressions has an entry that says what its symbols are declared as. What our grammar
does not know, or would write in another order, is written as SymPy represents it. That is read by
names of the classes of expressions alone, and no class is given a text but as a name or as digits:
many constructors of SymPy evaluate texts as Python.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

import sympy as sp
from sympy.core.symbol import Str

from ...errors import ExpressionError, GiantstepError
from .expression_text import expression_text
from .parser import declared_kind, declared_symbols, parse_expression

_TREE = "tree: "
_LONGEST = 10**6
_UNEVALUATED = (sp.Add, sp.Mul, sp.Pow, sp.Function)
# Where classes of expressions are at home.
_ROOMS = (
    *("sympy.core.", "sympy.functions.", "sympy.logic.boolalg", "sympy.concrete."),
    *("sympy.integrals.integrals", "sympy.matrices.", f"{__package__.partition('.')[0]}."),
)
# Of symbols, as "mu_{>1}^{*2}", and of undefined functions; nothing that could be called.
_NAME = re.compile(r"[\w{}^*>\\]{1,60}")
_DIGITS = re.compile(r"[-+]?[0-9]*\.?[0-9]*(?:e[-+]?[0-9]+)?")


def expression_document(expr: Any, symbols: dict[str, str]) -> str:
    """Return an expression or a matrix as text; its symbols are added to those of the document.

    Examples
    --------
    >>> d, names = sp.Symbol("d", positive=True), {}
    >>> expression_document(2 * d**2, names), names
    ('2*d**2', {'d': 'positive'})
    >>> expression_document(sp.Symbol("d", real=True), names)
    "tree: Symbol('d', real=True)"
    """
    own = {x.name: declared_kind(x) for x in expr.free_symbols if type(x) is sp.Symbol}
    if all(symbols.get(name, kind) == kind for name, kind in own.items()):
        try:
            text = expression_text(expr)
            if parse_expression(text, declared_symbols(own)) == expr:
                symbols |= own
                return text
        except (GiantstepError, AttributeError, TypeError):
            pass
    return _TREE + sp.srepr(expr, order="none")


def read_expression_document(text: Any, symbols: Mapping[str, str]) -> Any:
    """Return what :func:`expression_document` wrote.

    Raises
    ------
    ExpressionError, ParameterError
        If the text or a symbol is none.

    Examples
    --------
    >>> read_expression_document("tree: Mul(Integer(2), Symbol('d', real=True))", {})
    2*d
    """
    if not isinstance(text, str) or not text.startswith(_TREE):
        return parse_expression(text, declared_symbols(symbols))
    try:
        if len(text) > _LONGEST:
            raise ValueError("it is too long")
        return _built(ast.parse(text.removeprefix(_TREE), mode="eval").body)
    except (SyntaxError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ExpressionError(f"cannot read the tree of an expression: {error}") from None


def _built(node: ast.expr) -> Any:
    """Return what a node stands for: an expression, or lists and tuples of them."""
    match node:
        case ast.Constant(value=bool() | int()):
            return sp.sympify(node.value, strict=True)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int())):
            return -_built(node.operand)
        case ast.List() | ast.Tuple():
            items = [_built(item) for item in node.elts]
            return items if isinstance(node, ast.List) else tuple(items)
        case ast.Name(name):
            return _constant(name)
        case ast.Call(ast.Name("Symbol" | "Dummy" as head), [ast.Constant(name)], options):
            return getattr(sp, head)(_matched(_NAME, name), **_options(options))
        case ast.Call(ast.Name("Str"), [ast.Constant(name)], []):
            return Str(_matched(_NAME, name))
        case ast.Call(ast.Name("Float"), [ast.Constant(digits)], options):
            return sp.Float(_matched(_DIGITS, digits), **_options(options))
        case ast.Call(ast.Call(ast.Name("Function"), [ast.Constant(name)], options), arguments, []):
            function = sp.Function(_matched(_NAME, name), **_options(options))
            return function(*map(_built, arguments), evaluate=False)
        case ast.Call(ast.Name(name), arguments, []):
            kind = _class(name)
            held = {"evaluate": False} if issubclass(kind, _UNEVALUATED) else {}
            return kind(*map(_built, arguments), **held)
    raise ValueError(f"{ast.unparse(node)[:40]!r} is not part of one")


def _options(keywords: list[ast.keyword]) -> dict[str, int]:
    """Return assumptions and precisions, which are whole numbers, true or false."""
    values = {str(k.arg): getattr(k.value, "value", None) for k in keywords}
    if all(isinstance(value, int) for value in values.values()):
        return values  # type: ignore[return-value]
    raise ValueError(f"{', '.join(values)} are neither whole numbers nor true or false")


def _matched(pattern: re.Pattern[str], text: object) -> str:
    if isinstance(text, str) and pattern.fullmatch(text):
        return text
    raise ValueError(f"{text!r:.40} is neither a name nor a number")


def _constant(name: str) -> Any:
    known = {"true": sp.true, "false": sp.false}.get(name, getattr(sp, name, None))
    if isinstance(known, sp.Basic):
        return known
    raise ValueError(f"there is no {name!r}")


def _class(name: str) -> Any:
    """Return a class of our expressions by its name, or of SymPy's where we have none."""
    known = [
        one
        for one in (sp.MutableDenseMatrix, *_subclasses(sp.Basic))
        if one.__name__ == name and f"{one.__module__}.".startswith(_ROOMS)
    ]
    if not known:
        raise ValueError(f"there is no {name!r}")
    return max(known, key=lambda one: f"{one.__module__}.".startswith(_ROOMS[-1]))


def _subclasses(base: Any) -> Iterator[Any]:
    for one in base.__subclasses__():
        yield one
        yield from _subclasses(one)
