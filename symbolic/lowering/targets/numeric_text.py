"""Text of modules of :mod:`giantstep.numeric` that generated files carry a copy of.

It is read, not imported: this package holds no numbers.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from ....one_thread import syntax_tree


def numeric_text(
    module: str, names: Sequence[str] = (), without: Sequence[str] = (), *, prefix: str = ""
) -> str:
    """Return definitions of a module of :mod:`giantstep.numeric`, all by default.

    Module docstring and imports are left out, comments stay.

    Parameters
    ----------
    module : str
    names, without : sequence of str
        Definitions that are wanted, and that are not.
    prefix : str
        Before the names of private constants, which other modules in the same file may have too.
    """
    text = _path(module).read_text(encoding="utf-8")
    lines = text.splitlines()
    parts = []
    constants = []
    begin = 0
    for node in syntax_tree(text).body:
        first, last = min([node.lineno, *_decorators(node)]) - 1, node.end_lineno or node.lineno
        while first > begin and lines[first - 1].startswith("#"):
            first -= 1
        begin = last
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Expr):
            continue
        name = _defined(node)
        if isinstance(node, ast.Assign) and name.startswith("_"):
            constants.append(name)
        if name not in without and (name in names or not names):
            parts.append((isinstance(node, ast.Assign), "\n".join(lines[first:last])))
    found = parts[0][1]
    for (before, _), (constant, part) in pairwise(parts):
        found += ("\n" if before and constant else "\n\n\n") + part
    for name in constants if prefix else ():
        found = re.sub(rf"(?<![\w.]){name}\b", f"{prefix}{name}", found)
    return found


def numeric_constants(module: str) -> Mapping[str, float]:
    """Return the numbers that a module of :mod:`giantstep.numeric` gives names to."""
    text = _path(module).read_text(encoding="utf-8")
    found = {}
    for node in syntax_tree(text).body:
        value = _number(node.value) if isinstance(node, ast.Assign) else None
        if value is not None:
            found[_defined(node)] = value
    return found


def _path(module: str) -> Path:
    return Path(__file__).parents[3] / "numeric" / f"{module}.py"


def _number(value: ast.expr) -> float | None:
    """Return the value of a literal, a power or a square root of one."""
    if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
        return value.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Pow):
        base, exponent = _number(value.left), _number(value.right)
        return None if base is None or exponent is None else float(base**exponent)
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "math.sqrt":
        radicand = _number(value.args[0])
        return None if radicand is None else math.sqrt(radicand)
    return None


def _decorators(node: ast.stmt) -> list[int]:
    return [d.lineno for d in getattr(node, "decorator_list", [])]


def _defined(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return getattr(node, "name", "")
