"""Compile Fortran and run it; tests are skipped where there is no compiler of Fortran."""

import os
import shutil
import subprocess

import pytest

COMPILER = os.environ.get("FC") or shutil.which("gfortran")
FLAGS = (
    "-std=f2008", "-O1", "-Wall", "-Werror", "-Wno-unused-dummy-argument", "-Wno-unused-function",
    # GNU compilers warn of components that the standard says are not allocated.
    "-Wno-uninitialized", "-Wno-maybe-uninitialized", "-fcheck=bounds,do,mem",
)  # fmt: skip


def run_fortran(folder, text, program):
    """Compile a module and a program that uses it, without warnings; return what it prints."""
    if COMPILER is None:
        pytest.skip("no Fortran compiler on this machine (gfortran, or FC)")
    (folder / "module.f90").write_text(text, encoding="utf-8")
    (folder / "program.f90").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [COMPILER, *FLAGS, "module.f90", "program.f90", "-o", "program"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return subprocess.run(
        [folder / "program"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
