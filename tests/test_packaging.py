"""What is on disk, what is declared and what is imported are one package."""

import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import giantstep

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("derivations", "numeric", "symbolic")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def run_python(code, folder):
    # Uninstalled checkouts find the package through this process's path.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.pop("PYTHONSAFEPATH", None)
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_every_package_on_disk_is_declared():
    on_disk = {
        ".".join(["giantstep", *file.parent.relative_to(ROOT).parts])
        for room in ROOMS
        for file in (ROOT / room).rglob("__init__.py")
    }
    # What stands below the rooms.
    on_disk |= {
        f"giantstep.{file.parent.name}"
        for file in (ROOT / "src" / "giantstep").glob("*/__init__.py")
        if file.parent.name not in ROOMS
    }
    declared = PROJECT["tool"]["setuptools"]["packages"]
    assert sorted(declared) == sorted(on_disk | {"giantstep"})


def test_every_room_is_mapped_to_its_folder():
    mapping = {f"giantstep.{room}": room for room in ROOMS} | {"giantstep": "src/giantstep"}
    assert PROJECT["tool"]["setuptools"]["package-dir"] == mapping


@pytest.mark.parametrize("room", ROOMS)
def test_link_leads_to_the_room(room):
    link = ROOT / "src" / "giantstep" / room
    if not link.is_symlink():
        pytest.skip("a checkout without links works, but type checkers do not see the rooms")
    assert os.readlink(link) == f"../../{room}"
    assert link.resolve() == ROOT / room


@pytest.mark.parametrize("room", ROOMS)
def test_bare_import_from_the_root_is_refused(room):
    refused = run_python(f"import {room}", ROOT)
    assert refused.returncode == 1
    last = refused.stderr.splitlines()[-1]
    assert last == f"ImportError: import this package as 'giantstep.{room}', not '{room}'"


def test_version_is_declared_once():
    assert PROJECT["project"]["version"] == giantstep.__version__


def test_changelog_has_the_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{giantstep.__version__}]" in changelog


def test_defaults_change_with_intent():
    # Calls that leave an argument out mean these numbers and switches; new ones need no entry.
    recorded = json.loads((ROOT / "tests/reference/defaults.json").read_text(encoding="utf-8"))
    for path, defaults in recorded.items():
        parameters = inspect.signature(pkgutil.resolve_name(f"giantstep.{path}")).parameters
        found = {x: parameters[x].default for x in defaults if x in parameters}
        assert found == {x: defaults[x] for x in found} and found, path


def test_import_giantstep_is_light(tmp_path):
    code = "import json, sys, giantstep; print(json.dumps(sorted(sys.modules)))"
    imported = run_python(code, tmp_path)
    assert imported.returncode == 0, imported.stderr
    heavy = {"matplotlib", "mpmath", "numba", "numpy", "pandas", "scipy", "sympy", "xarray"}
    assert heavy.isdisjoint(json.loads(imported.stdout))


def lower_bounds(pyproject):
    code = "import sys; from lower_bounds import lower_bounds; print(*lower_bounds(sys.argv[1]))"
    command = [sys.executable, "-c", code, pyproject]
    return subprocess.run(command, cwd=ROOT / ".ci", capture_output=True, text=True)


def test_lower_bounds_are_those_of_all_requirements():
    printed = lower_bounds((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*PROJECT["project"]["dependencies"]]
    for extra in PROJECT["project"]["optional-dependencies"].values():
        wanted += [requirement for requirement in extra if not requirement.startswith("giantstep[")]
    bounds = {requirement.replace(">=", "==") for requirement in wanted}
    assert set(printed.stdout.split()) == bounds, printed.stderr


@pytest.mark.parametrize(
    ("requirements", "message"),
    [
        ('["numpy"]', "'numpy' should be written as name>=version"),
        ('["numpy>=2.0,<3"]', "should be written as name>=version"),
        ('["numpy>=2.0", "numpy>=2.1"]', "numpy has two lower bounds"),
    ],
)
def test_requirements_without_one_lower_bound_are_refused(requirements, message):
    text = f'[project]\nname = "x"\ndependencies = {requirements}\n'
    refused = lower_bounds(text + "[project.optional-dependencies]\n")
    assert refused.returncode == 1
    assert message in refused.stderr


def test_the_heart_of_the_tests_is_there():
    # What .ci/quick runs: pytest reads the names from the file.
    names = (ROOT / "tests" / "heart.txt").read_text(encoding="utf-8").split()
    assert len(set(names)) == len(names) > 0
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_what_tests_skip_without_is_in_the_extra_of_the_tests():
    # JAX is large, and .ci/run installs it for its tests; PyTorch is larger.
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = " ".join(
        requirement
        for name in ("completion", "dev", "distributed", "explore", "flint", "plot", "sweep")
        for requirement in extras[name]
    )
    installed = {*re.findall(r"[\w-]+", wanted.lower()), "jax", "torch", "numba", "docutils"}
    distribution = {"flint": "python-flint", "tree_sitter_julia": "tree-sitter-julia"}
    for file in (ROOT / "tests").rglob("*.py"):
        for name in re.findall(r'importorskip\("(\w+)', file.read_text(encoding="utf-8")):
            found = distribution.get(name, name.replace("_", "-").lower())
            assert found in installed, f"{file.name} skips without {name}"
