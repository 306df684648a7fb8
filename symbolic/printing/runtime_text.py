"""Text of modules of :mod:`giantstep.runtime`, of which generated files carry a copy.

It is read, not imported: this package holds no numbers. Copies are word for word.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path

from ... import runtime
from ...one_thread import syntax_tree


def runtime_text(module: str, names: Collection[str] = (), without: Collection[str] = ()) -> str:
    """Return definitions of a module of :mod:`giantstep.runtime`, all by default.

    Module docstring and imports are left out, comments stay.

    Parameters
    ----------
    module : str
    names, without : collection of str
        Definitions that are wanted, and that are not.
    """
    text = (Path(runtime.__path__[0]) / f"{module}.py").read_text(encoding="utf-8")
    lines = text.splitlines()
    parts = []
    begin = 0
    for node in syntax_tree(text).body:
        first, last = min([node.lineno, *_decorators(node)]) - 1, node.end_lineno or node.lineno
        while first > begin and lines[first - 1].startswith("#"):
            first -= 1
        begin = last
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Expr):
            continue
        name = _defined(node)
        if name not in without and (name in names or not names):
            parts.append((isinstance(node, ast.Assign), "\n".join(lines[first:last])))
    found = parts[0][1]
    for (before, _), (constant, part) in pairwise(parts):
        found += ("\n" if before and constant else "\n\n\n") + part
    return found


def _decorators(node: ast.stmt) -> list[int]:
    return [d.lineno for d in getattr(node, "decorator_list", [])]


def _defined(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return getattr(node, "name", "")
