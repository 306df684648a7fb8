"""Who may know whom: symbolic/ and numeric/ do not know each other, derivations/ knows both."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {room: ROOT / room for room in ("derivations", "numeric", "symbolic")}
FORBIDDEN = {
    "symbolic": {
        "giantstep.derivations",
        "giantstep.numeric",
        "numba",
        "numpy",
        "pandas",
        "scipy",
        "xarray",
    },
    "numeric": {"giantstep.derivations", "giantstep.symbolic", "sympy"},
    "derivations": set(),
    "runtime": {*(f"giantstep.{room}" for room in ROOMS), "numba", "scipy", "sympy"},
}
FRONT_DOOR = {f"giantstep.{room}" for room in ROOMS} | {"numba", "numpy", "sympy", "xarray"}


def module_files() -> Iterator[tuple[str, str, Path]]:
    """Room, dotted name of the package that relative imports start from, file."""
    for room, folder in ROOMS.items():
        for file in sorted(folder.rglob("*.py")):
            yield room, ".".join(["giantstep", *file.parent.relative_to(ROOT).parts]), file
    # Below all rooms: what generated kernels run on, of which files carry a copy.
    for file in sorted((ROOT / "src" / "giantstep" / "runtime").glob("*.py")):
        yield "runtime", "giantstep.runtime", file


@pytest.fixture(scope="module")
def modules() -> list[tuple[str, str, str, ast.Module]]:
    """Room, package that relative imports start from, path in the checkout, parsed source."""
    return [
        (room, package, file.relative_to(ROOT).as_posix(), ast.parse(file.read_text("utf-8")))
        for room, package, file in module_files()
    ]


def is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def statements_at_run_time(tree: ast.AST, *, lazy: bool) -> Iterator[ast.AST]:
    """All statements but those for type checkers; inside functions only if `lazy`."""
    rest = [tree]
    while rest:
        for child in ast.iter_child_nodes(rest.pop()):
            # No import is inside of an expression.
            if isinstance(child, ast.expr) or is_for_type_checkers(child):
                continue
            if not lazy and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            yield child
            rest.append(child)


def imported_names(tree: ast.Module, package: str, *, lazy: bool = True) -> set[str]:
    """Absolute dotted names of all that a module imports."""
    names: set[str] = set()
    for node in statements_at_run_time(tree, lazy=lazy):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            origin = ".".join([*base, *filter(None, [node.module])])
            names |= {f"{origin}.{alias.name}" for alias in node.names}
    return names


def broken(names: set[str], forbidden: set[str]) -> set[str]:
    return {name for name in names for room in forbidden if f"{name}.".startswith(f"{room}.")}


def test_imports_are_found_wherever_they_hide():
    source = """
from typing import TYPE_CHECKING
from .. import symbolic
from ..symbolic.hermite import coefficient
from . import solvers
from .kernels import load
if TYPE_CHECKING:
    import sympy
class Late:
    def load(self):
        import numpy.linalg
"""
    tree = ast.parse(source)
    found = imported_names(tree, "giantstep.numeric")
    assert broken(found, FORBIDDEN["numeric"]) == {
        "giantstep.symbolic",
        "giantstep.symbolic.hermite.coefficient",
    }
    assert {"giantstep.numeric.solvers", "giantstep.numeric.kernels.load"} <= found
    assert "numpy.linalg" in found
    assert "numpy.linalg" not in imported_names(tree, "giantstep.numeric", lazy=False)


def test_rooms_import_only_what_they_may_know(modules):
    offenders = {
        name: sorted(wrong)
        for room, package, name, tree in modules
        if (wrong := broken(imported_names(tree, package), FORBIDDEN[room]))
    }
    assert offenders == {}


def test_lowering_is_imported_by_no_other_part_of_symbolic(modules):
    """Not for type checkers either: what is below it knows nothing of it."""
    offenders = {
        f"{name}:{node.lineno}": ast.unparse(node)
        for room, _, name, tree in modules
        if room == "symbolic" and not name.startswith("symbolic/lowering/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        if "lowering" in ast.unparse(node).replace(".", " ").split()
    }
    assert offenders == {}


def test_symbolic_reads_no_text_of_other_rooms(modules):
    others = {"numeric", "derivations"}
    offenders = [
        f"{name}:{node.lineno}"
        for room, _, name, tree in modules
        if room == "symbolic"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in others
    ]
    assert offenders == []


def test_imports_inside_the_package_are_relative(modules):
    offenders = {
        f"{name}:{node.lineno}": ast.unparse(node)
        for _, _, name, tree in modules
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and not node.level and node.module)
        or isinstance(node, ast.Import)
        if "giantstep" in ast.unparse(node).split()[1].split(".")
    }
    assert offenders == {}


def test_front_door_opens_the_rooms_only_when_used():
    offenders = {}
    for file in sorted((ROOT / "src" / "giantstep").glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        if wrong := broken(imported_names(tree, "giantstep", lazy=False), FRONT_DOOR):
            offenders[file.name] = sorted(wrong)
    assert offenders == {}


@pytest.mark.parametrize(
    ("room", "unwanted"),
    [
        ("symbolic", {"giantstep.numeric", "giantstep.derivations", "numba", "numpy", "xarray"}),
        ("numeric", {"giantstep.symbolic", "giantstep.derivations", "sympy"}),
    ],
)
def test_importing_a_whole_room_leaves_the_others_alone(room, unwanted, tmp_path):
    code = f"""
import importlib, json, pkgutil, sys
import giantstep.{room} as room
for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
    importlib.import_module(module.name)
print(json.dumps(sorted(sys.modules)))
"""
    # Uninstalled checkouts find the package through this process's path.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", code]
    imported = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert imported.returncode == 0, imported.stderr
    assert unwanted.isdisjoint(json.loads(imported.stdout))
