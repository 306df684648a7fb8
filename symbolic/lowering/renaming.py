"""Give the symbols of a program names that mean nothing else in the target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import sympy as sp

from ...errors import EmissionError
from .program import (
    Data,
    Panels,
    Program,
    ScalarRoot,
)

# Placeholders of expressions, and local arrays with their lengths; helper functions have names
# that begin with fn_.
_MADE = re.compile(r"expression_\d+_|(entries|solution|edges)_\d+")


def safe_program(program: Program, reserved: Iterable[str]) -> Program:
    """Return the program with other names for symbols that clash with `reserved` or each other.

    Parameters
    ----------
    program : Program
    reserved : iterable of str
        Names that mean something in the target or in the text around the program.

    Raises
    ------
    EmissionError
        If a name cannot be a name in code, or is that of a value that the program computes.
    """
    given = (*program.parameters, *program.tables)
    computed = {a.target for a in program.assigns()}
    for symbol in given:
        if symbol in computed:
            raise EmissionError(
                f"{symbol.name!r} is the name of a value that the program computes: give the "
                "symbol another identifier"
            )
    taken = set(reserved)
    names: dict[sp.Symbol, sp.Symbol] = {}
    for symbol in _symbols(program):
        if not re.fullmatch(r"[^\W\d]\w*", symbol.name):
            raise EmissionError(
                f"{symbol.name!r} cannot be a name in code: give its symbol an identifier"
            )
        name = _unused(symbol.name, taken)
        taken.add(name)
        if name != symbol.name:
            names[symbol] = sp.Symbol(name, **symbol.assumptions0)
    data = {d.name: d.name for d in program.data}
    for name in data:
        while f"weight_{data[name]}" in taken:
            data[name] += "_"
        taken.add(f"weight_{data[name]}")
    if not names and all(name == new for name, new in data.items()):
        return program
    return renamed(program, names, data)


def _unused(name: str, taken: set[str]) -> str:
    name = f"x{name}" if name.startswith("fn_") else name
    while name in taken or _MADE.fullmatch(name):
        name += "_"
    return name


def _symbols(program: Program) -> Iterator[sp.Symbol]:
    """Iterate over all symbols, each once; what users name comes first and keeps its name."""
    seen: dict[sp.Symbol, None] = dict.fromkeys((*program.parameters, *program.tables))
    seen |= dict.fromkeys(c for data in program.data for c in data.columns)
    seen |= dict.fromkeys((*program.newton_unknowns, *program.outputs))
    for loop in program.loops():
        if isinstance(loop.measure, Panels):
            seen[loop.measure.node] = None
    for a in program.assigns():
        seen[a.target] = None
        seen |= dict.fromkeys(sorted(a.value.free_symbols, key=str))
    # Arguments and unknowns of roots live in functions of their own.
    yield from seen


def renamed(
    program: Program,
    names: Mapping[sp.Symbol, sp.Symbol],
    data: Mapping[str, str] | None = None,
) -> Program:
    """Return the program with other symbols, and other names of data sets."""

    def new(part: Any) -> Any:
        if isinstance(part, sp.Basic):
            return part.xreplace(dict(names))
        if isinstance(part, tuple):
            return tuple(map(new, part))
        if isinstance(part, Mapping):
            return {new(x): new(y) for x, y in part.items()}
        # Arguments and unknowns of roots live in functions of their own.
        if isinstance(part, ScalarRoot) or not is_dataclass(part):
            return part
        step: Any = part
        found = replace(step, **{f.name: new(getattr(step, f.name)) for f in fields(step)})
        if isinstance(part, Data):
            return replace(found, name=(data or {}).get(part.name, part.name))
        return found

    result: Program = new(program)
    return result


def safe_root(root: ScalarRoot, reserved: Iterable[str]) -> ScalarRoot:
    """Return a root whose arguments and unknown have names of their own."""
    taken = set(reserved)
    names: dict[sp.Symbol, sp.Symbol] = {}
    for symbol in (*root.arguments, root.unknown):
        name = _unused(symbol.name, taken)
        taken.add(name)
        names[symbol] = sp.Symbol(name, **symbol.assumptions0)
    return replace(
        root,
        unknown=names[root.unknown],
        arguments=tuple(names[a] for a in root.arguments),
        residual=root.residual.xreplace(names),
        slope=root.slope.xreplace(names),
        start=root.start.xreplace(names),
    )
