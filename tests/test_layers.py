"""Who may know whom: layers, the rooms in them, and what stands at the top of a module."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("derivations", "numeric", "symbolic")
FORBIDDEN = {
    "derivations": set[str](),
    "numeric": {"giantstep.derivations", "giantstep.symbolic", "sympy"},
    "symbolic": {
        *("giantstep.derivations", "giantstep.numeric"),
        *("numba", "numpy", "pandas", "scipy", "xarray"),
    },
    "runtime": {*(f"giantstep.{layer}" for layer in LAYERS), "numba", "scipy", "sympy"},
}
FRONT_DOOR = {f"giantstep.{layer}" for layer in LAYERS} | {"numba", "numpy", "sympy", "xarray"}
# From the bottom to the top: a room knows those before it, for type checkers too. What is not named
# here stands beside the others: it knows none of them, and none of them knows it.
ORDER = {
    "symbolic": [
        *("expressions", "printing", "exact", "gaussian", "hermite", "targets", "leaps", "losses"),
        *("systems", "lowering"),
    ],
    "numeric": [],
    "derivations": [
        *("certificates", "expansions", "spectra", "kernels", "mean_field", "conjectures"),
        "first_gradient",
    ],
}
# The lines of work stand on these, not on each other; only what compares two theories knows both:
# claims, and the methods that take the model of one to the other (derivations/bridge.py).
LINES = (
    *("giant_steps", "multi_index", "one_gradient_step", "overlap_dynamics"),
    "spiked_random_features",
)
# What is imported inside of a function, by file, and why it cannot stand at the top.
DEFERRED = {
    "derivations/claims.py": "claims are listed without SymPy, which shows formulas",
    "derivations/figures.py": "matplotlib is optional, and the class of figures stands on it",
    "numeric/cache.py": "binaries are checked where a module has any; it is written with numba",
}


class Import(NamedTuple):
    """One name that a module imports, in full, and where the statement stands."""

    name: str
    line: int
    is_relative: bool
    in_function: bool
    for_type_checkers: bool


def imports(tree: ast.AST, package: str) -> Iterator[Import]:
    """All imports of a module of this package, wherever they hide."""

    def below(node: ast.AST, in_function: bool, typing: bool) -> Iterator[Import]:
        # Imports are statements, which stand in blocks of other statements.
        blocks = (getattr(node, name, ()) for name in _BLOCKS)
        for child in (statement for block in blocks for statement in block):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(alias.name, child.lineno, False, in_function, typing)
            elif isinstance(child, ast.ImportFrom):
                parts = package.split(".")
                base = parts[: len(parts) - child.level + 1] if child.level else []
                origin = ".".join([*base, *filter(None, [child.module])])
                for alias in child.names:
                    name = f"{origin}.{alias.name}"
                    yield Import(name, child.lineno, bool(child.level), in_function, typing)
            else:
                function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                test = child.test if isinstance(child, ast.If) else None
                check = getattr(test, "attr", getattr(test, "id", "")) == "TYPE_CHECKING"
                yield from below(child, in_function or function, typing or check)

    yield from below(tree, False, False)


_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_SOURCE = ("getsource", "__file__", *(f'"{layer}"' for layer in LAYERS))


def reads_source(node: ast.AST, layer: str) -> bool:
    """Whether a node can only serve to take the text of a module for data."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("getsource", "getsourcelines", "getsourcefile")
    if layer not in ("numeric", "symbolic"):
        return False
    if isinstance(node, ast.Name):
        return node.id == "__file__"
    return layer == "symbolic" and isinstance(node, ast.Constant) and node.value in LAYERS


def within(name: str, places: set[str]) -> bool:
    return any(f"{name}.".startswith(f"{place}.") for place in places)


def room_of(name: str) -> tuple[str, str]:
    """Layer and room of an import name; no room for what lies directly in a layer."""
    parts = name.split(".")
    layer = parts[1] if parts[:1] == ["giantstep"] and len(parts) > 1 else ""
    is_room = layer in LAYERS and len(parts) > 2 and (ROOT / layer / parts[2]).is_dir()
    return layer, parts[2] if is_room else ""


def may_know(layer: str, room: str, other: str) -> bool:
    """Whether a room of a layer may know another one of that layer."""
    if room in LINES:
        return other not in LINES
    order = ORDER[layer]
    if room in order and other in order:
        return order.index(room) > order.index(other)
    return False


def test_imports_are_found_wherever_they_hide():
    source = """
from typing import TYPE_CHECKING
from .. import symbolic
from . import solvers
if TYPE_CHECKING:
    import sympy
class Late:
    def load(self):
        from ..symbolic.hermite import coefficient
"""
    found = {
        (i.name, i.in_function, i.for_type_checkers)
        for i in imports(ast.parse(source), "giantstep.numeric")
    }
    assert found == {
        ("typing.TYPE_CHECKING", False, False),
        ("giantstep.symbolic", False, False),
        ("giantstep.numeric.solvers", False, False),
        ("sympy", False, True),
        ("giantstep.symbolic.hermite.coefficient", True, False),
    }


def test_modules_know_only_what_they_may():
    offenders = []
    files = [(layer, file) for layer in LAYERS for file in sorted((ROOT / layer).rglob("*.py"))]
    # Below all layers: what generated kernels run on, of which files carry a copy.
    runtime = ROOT / "src" / "giantstep" / "runtime"
    files += [("runtime", file) for file in sorted(runtime.glob("*.py"))]
    for layer, file in files:
        place = file.relative_to(runtime.parent if layer == "runtime" else ROOT)
        package = ".".join(["giantstep", *place.parent.parts])
        room = place.parts[1] if layer in LAYERS and len(place.parts) > 2 else ""
        text = file.read_text("utf-8")
        tree = ast.parse(text)
        for found in imports(tree, package):
            where = f"{place}:{found.line}: {found.name}"
            ours = within(found.name, {"giantstep"})
            other_layer, other = room_of(found.name)
            if within(found.name, FORBIDDEN[layer]) and not found.for_type_checkers:
                offenders.append(f"{where} belongs to another layer")
            if ours and not found.is_relative:
                offenders.append(f"{where} is relative inside of the package")
            if ours and found.in_function and str(place) not in DEFERRED:
                offenders.append(f"{where} stands at the top of the module")
            if room and other and layer == other_layer and room != other:
                compares = place.name.startswith("claims") or found.for_type_checkers
                if not (may_know(layer, room, other) or (room in LINES and compares)):
                    offenders.append(f"{where}: {layer}/{room} does not know {other}")
        offenders += [
            f"{place}:{node.lineno}: the text of a module is no data"
            for node in (ast.walk(tree) if any(word in text for word in _SOURCE) else ())
            if isinstance(node, ast.expr) and reads_source(node, layer)
        ]
    for file in sorted((ROOT / "src" / "giantstep").glob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        offenders += [
            f"{file.name}:{found.line}: {found.name} is imported when it is used"
            for found in imports(tree, "giantstep")
            if not (found.in_function or found.for_type_checkers)
            if within(found.name, FRONT_DOOR)
        ]
    assert offenders == []


@pytest.mark.parametrize(
    ("layer", "unwanted"),
    [
        ("symbolic", {"giantstep.numeric", "giantstep.derivations", "numba", "numpy", "xarray"}),
        ("numeric", {"giantstep.symbolic", "giantstep.derivations", "sympy"}),
    ],
)
def test_importing_a_whole_layer_leaves_the_others_alone(layer, unwanted, tmp_path):
    code = f"""
import importlib, json, pkgutil, sys
import giantstep.{layer} as layer
for module in pkgutil.walk_packages(layer.__path__, layer.__name__ + "."):
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
