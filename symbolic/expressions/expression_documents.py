"""Expressions in documents: as people write them where that reads back equal, else as a tree.

A document of expressions has an entry that says what its symbols are declared as. What our grammar
does not know, or would write in another order, is written as SymPy represents it, and read by
names of SymPy's and our own classes alone: nothing is evaluated as Python.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import sympy as sp

from ...errors import ExpressionError, GiantstepError
from .expression_text import expression_text
from .parser import declared_kind, declared_symbols, parse_expression

_TREE = "tree: "
_LONGEST = 10**6
_UNEVALUATED = (sp.Add, sp.Mul, sp.Pow, sp.Function)
_ATOMS = {"true": sp.true, "false": sp.false}
_PACKAGES = ("sympy", __package__.partition(".")[0])


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
    match node:
        case ast.Constant(value=bool() | int() | str()):
            return node.value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int())):
            return -node.operand.value  # type: ignore[attr-defined]
        case ast.List() | ast.Tuple():
            items = [_built(item) for item in node.elts]
            return items if isinstance(node, ast.List) else tuple(items)
        case ast.Name(id="true" | "false"):
            return _ATOMS[node.id]
        case ast.Name():
            return _class(node.id)
        case ast.Call(func=ast.Call(func=ast.Name(id="Function"))) | ast.Call(func=ast.Name()):
            made = _built(node.func)
            arguments = [_built(item) for item in node.args]
            options = {str(k.arg): _built(k.value) for k in node.keywords}
            if inspect.isclass(made) and issubclass(made, _UNEVALUATED) and made is not sp.Function:
                options["evaluate"] = False
            return made(*arguments, **options)
    raise ValueError(f"{ast.unparse(node)[:40]!r} is not part of one")


def _class(name: str) -> Any:
    """Return a class of SymPy's or our expressions, or a number of SymPy, by its name."""
    known = getattr(sp, name, None)
    if isinstance(known, sp.Basic) or known in (sp.Matrix, sp.ImmutableMatrix):
        return known
    for one in _subclasses(sp.Basic):
        if one.__name__ == name and one.__module__.partition(".")[0] in _PACKAGES:
            return one
    raise ValueError(f"there is no {name!r}")


def _subclasses(base: Any) -> Iterator[Any]:
    for one in base.__subclasses__():
        yield one
        yield from _subclasses(one)
