"""Text of modules of :mod:`giantstep.runtime`: generated files carry copies, or translations.

It is read, not imported: this package holds no numbers. Copies are word for word; functions of
numbers alone are translated for languages that are not Python.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from ... import runtime
from ...one_thread import syntax_tree
from .language import Function, Kind, Parameter


def runtime_text(module: str, names: Collection[str] = (), without: Collection[str] = ()) -> str:
    """Return definitions of a module of :mod:`giantstep.runtime`, all by default.

    Module docstring and imports are left out, comments stay.

    Parameters
    ----------
    module : str
    names, without : collection of str
        Definitions that are wanted, and that are not.
    """
    parts = [
        (isinstance(node, ast.Assign), text)
        for name, node, text in _definitions(module)
        if name not in without and (name in names or not names)
    ]
    found = parts[0][1]
    for (before, _), (constant, part) in pairwise(parts):
        found += ("\n" if before and constant else "\n\n\n") + part
    return found


@lru_cache(maxsize=16)
def _definitions(module: str) -> list[tuple[str, ast.stmt, str]]:
    """Return the definitions of a module: names, syntax, and text with comments."""
    text = (Path(runtime.__path__[0]) / f"{module}.py").read_text(encoding="utf-8")
    lines = text.splitlines()
    found = []
    begin = 0
    for node in syntax_tree(text).body:
        first, last = min([node.lineno, *_decorators(node)]) - 1, node.end_lineno or node.lineno
        while first > begin and lines[first - 1].startswith("#"):
            first -= 1
        begin = last
        if not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr):
            found.append((_defined(node), node, "\n".join(lines[first:last])))
    return found


def _decorators(node: ast.stmt) -> list[int]:
    return [d.lineno for d in getattr(node, "decorator_list", [])]


def _defined(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return getattr(node, "name", "")


def runtime_function(
    module: str,
    name: str,
    called: str,
    kinds: Mapping[str, Kind],
    numbers: Mapping[str, float],
    returns: Kind = Kind.REAL,
) -> Function:
    """Return a function of a module of :mod:`giantstep.runtime` in the neutral language.

    Parameters
    ----------
    module, name : str
    called : str
        Its name in the language.
    kinds : mapping from str to Kind
        Of parameters that are no real numbers.
    numbers : mapping from str to float
        Values of names: constants of the module, and parameters that are none any more.
    returns : Kind
    """
    node = next(copy.deepcopy(node) for known, node, _ in _definitions(module) if known == name)
    assert isinstance(node, ast.FunctionDef)
    parameters = [a.arg for a in node.args.args if a.arg not in numbers]
    body = ast.unparse(_Neutral(numbers).visit(ast.Module(node.body[1:], [])))
    return Function(
        called,
        tuple(Parameter(p, kinds.get(p, Kind.REAL)) for p in parameters),
        f"{body}\n",
        returns=returns,
        documentation=(ast.get_docstring(node) or "").split("\n\nParameters\n")[0],
    )


# What is said of arrays, and the same of numbers.
_OF_NUMBERS = {"minimum": "min", "maximum": "max", "_": "turn", "RESOLVED": "resolved"}


class _Neutral(ast.NodeTransformer):
    """Functions without their module, of numbers; names with the numbers that they stand for."""

    def __init__(self, numbers: Mapping[str, float]) -> None:
        self._numbers = numbers

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "where":
            return ast.IfExp(*node.args)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        logical = {ast.BitAnd: ast.And, ast.BitOr: ast.Or}.get(type(node.op))
        return node if logical is None else ast.BoolOp(logical(), [node.left, node.right])

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if node.attr == "pi":
            return ast.Constant(math.pi)
        return ast.Name(_OF_NUMBERS.get(node.attr, node.attr))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._numbers:
            return ast.Constant(self._numbers[node.id])
        return ast.Name(_OF_NUMBERS.get(node.id, node.id))
