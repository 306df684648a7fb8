"""The target languages: which there are, and which module writes their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ....errors import EmissionError, ParameterError

if TYPE_CHECKING:
    from ..baked import BakedTables
    from ..lowered import LoweredSystem

_MODULES = {
    "numba": "python_files",
    "python": "python_files",
    "numpy": "numpy_files",
    "mpmath": "mpmath_files",
    "c": "c_files",
    "jax": "jax_files",
    "julia": "julia_files",
}
# Numbers of tables on a grid that a file may hold, some 20 characters each.
_MOST_NUMBERS = 1_000_000
_SUFFIXES = {".c": "c", ".h": "c", ".jl": "julia", ".py": "numba"}

TARGETS = tuple(_MODULES)


def check_target(target: str) -> str:
    """Return the target, or refuse it with the list of those that exist."""
    if target not in _MODULES:
        raise EmissionError(f"target must be one of {', '.join(TARGETS)}, got {target!r}")
    return target


def target_of_suffix(suffix: str) -> str:
    """Return the target that files with this suffix usually hold."""
    if suffix not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise ParameterError(
            f"the suffix {suffix!r} names no target; use one of {known}, or give target="
        )
    return _SUFFIXES[suffix]


def check_suffix(target: str, path: Path) -> None:
    """Refuse a file whose name says that it holds another language."""
    said = _SUFFIXES.get(path.suffix)
    # All targets but C and Julia are Python.
    languages = {t if t in ("c", "julia") else "Python" for t in (check_target(target), said) if t}
    if len(languages) > 1:
        right = [s for s, t in _SUFFIXES.items() if t == target] or [".py"]
        raise ParameterError(
            f"path {path} has the suffix of another language than {target}; use {right[0]}"
        )


def files(
    lowered: LoweredSystem, target: str, *, tables: BakedTables | None = None, name: str
) -> Mapping[str, str]:
    """Return {file name: text} of a target; every file set runs without giantstep."""
    check_target(target)
    if tables is not None and lowered.program.inner_nodes:
        count = sum(len(column) for level in tables.levels for column in level.values())
        if count > _MOST_NUMBERS:
            nodes = ", ".join(map(str, lowered.program.inner_nodes))
            raise EmissionError(
                f"tables on the grid of {lowered.node} and {nodes} hold {count} numbers, more than "
                f"the {_MOST_NUMBERS} that fit into a file: leave out tables=, and the file "
                "computes them"
            )
    module = import_module(f".{_MODULES[target]}", __package__)
    write: Callable[..., Mapping[str, str]] = module.files
    if _MODULES[target] == "python_files":
        return write(lowered, tables=tables, name=name, target=target)
    return write(lowered, tables=tables, name=name)
