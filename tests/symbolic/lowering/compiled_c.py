"""Compile a kernel in C and call it through cffi, as a user of the library would."""

import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror")


def require_compiler():
    """Skip where no C compiler is installed, or no cffi."""
    if COMPILER is None:
        pytest.skip("no C compiler on this machine (cc, gcc or clang)")
    return pytest.importorskip("cffi", reason="cffi calls the compiled kernels")


class CompiledKernel:
    """The files of a kernel, written to a folder, compiled and loaded.

    Parameters
    ----------
    files : mapping from str to str
        NAME.h and NAME.c.
    folder : Path
    flags : sequence of str
        For the compiler, besides the warnings.
    """

    def __init__(self, files, folder, flags=("-O3",)):
        cffi = require_compiler()
        (self.name,) = {Path(file).stem for file in files}
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        library = folder / f"{self.name}.so"
        compile_c(
            [*flags, "-fPIC", "-shared", "-o", str(library), str(folder / f"{self.name}.c"), "-lm"]
        )
        self.ffi = cffi.FFI()
        self.ffi.cdef(_declarations(files[f"{self.name}.h"]))
        self.library = self.ffi.dlopen(str(library))
        self.parameters = self._names("parameter", self.constant("N_PARAMETERS"))
        self.outputs = self._names("output", self.constant("N_OUTPUTS"))

    def constant(self, name):
        """Return an enumeration constant of the header."""
        return getattr(self.library, f"{self.name.upper()}_{name}")

    def function(self, name):
        """Return a function of the header."""
        return getattr(self.library, f"{self.name}_{name}")

    def _names(self, kind, n):
        found = self.function(f"{kind}_names")
        return tuple(self.ffi.string(found[k]).decode() for k in range(n))

    def data(self, sets):
        """Return pointers to data sets and what has to stay alive with them."""
        pointers, kept = [], []
        for name, columns in (sets or {}).items():
            struct = self.ffi.new(f"{self.name}_{name} *")
            for column, values in columns.items():
                array = self.ffi.new("double[]", list(values))
                kept.append(array)
                setattr(struct, column, array)
                struct.rows = len(values)
            kept.append(struct)
            pointers.append(struct)
        return pointers, kept

    def solve_many(self, rows, data=None, rtol=1e-11):
        """Return status, values, errors and info of rows of parameters."""
        rows = np.ascontiguousarray(rows, dtype=float).reshape(len(rows), len(self.parameters))
        values, errors = (np.full((len(rows), len(self.outputs)), np.nan) for _ in range(2))
        info = self.ffi.new(f"{self.name}_info[]", max(len(rows), 1))
        pointers, _kept = self.data(data)
        status = self.function("solve_many")(
            len(rows), self._pointer(rows), *pointers, rtol,
            self._pointer(values), self._pointer(errors), info,
        )  # fmt: skip
        return SimpleNamespace(
            status=status, values=values, errors=errors, info=[info[k] for k in range(len(rows))],
            message=self.ffi.string(self.function("message")(status)).decode(), kept=info,
        )  # fmt: skip

    def solve(self, parameters, data=None, rtol=1e-11):
        """Return the solution at one point: values and errors by name."""
        row = [float(parameters[name]) for name in self.parameters]
        found = self.solve_many([row], data, rtol)
        found.values = dict(zip(self.outputs, found.values[0], strict=True))
        found.errors = dict(zip(self.outputs, found.errors[0], strict=True))
        return found

    def _pointer(self, array):
        return self.ffi.cast("double *", array.ctypes.data)


def compile_c(arguments):
    """Run the compiler with warnings as errors; fail with what it says."""
    done = subprocess.run([COMPILER, *FLAGS, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _declarations(header):
    """Return what cffi reads of a header: no comments, no preprocessor, no C++."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    lines = [x for x in text.splitlines() if not x.startswith("#") and x != "}"]
    return "\n".join(x for x in lines if 'extern "C"' not in x)
