"""The file of any target, loaded as its user would load it, and what has to hold of its numbers."""

import functools
import importlib.util

import numpy as np

from giantstep.symbolic.lowering.lowered import lower

from .compiled_c import CompiledKernel, require_compiler

POINT = {
    "alpha": 1.5, "beta": 0.8, "ridge": 0.1, "noise_variance": 0.1, "spike_strength": 1.3,
    "bulk_variance": 0.7, "alignment": 0.6, "orthogonal_alignment": 0.8,
}  # fmt: skip
"""Of spiked random features."""


@functools.cache
def lowered_of(build):
    """Lower the system that a function returns, once for all targets."""
    return lower(build())


def module_of(lowered, target, folder, tables=None):
    """Write the file of a Python target and import it."""
    (text,) = lowered.files(target, tables=tables).values()
    path = folder / f"{target}_kernel.py"
    path.write_text(text, encoding="utf-8")
    # As plain as it gets: the module is not in sys.modules, as where files are loaded by path.
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TargetFile:
    """A kernel of a Python target, or compiled in C, behind the calls that all of them have.

    Parameters
    ----------
    lowered : Lowered
    target : str
        "python", "numba", "numpy", "mpmath", "jax" or "c".
    folder : Path
    tables : BakedTables, optional
    flags : sequence of str
        For the compiler of C; without optimisation it is quick.
    """

    def __init__(self, lowered, target, folder, tables=None, flags=("-O0",)):
        self.target = target
        if target == "c":
            require_compiler()
            files = lowered.files("c", tables=tables)
            self.library = CompiledKernel(files, folder, flags)
            self.parameters, self.outputs = self.library.parameters, self.library.outputs
        else:
            self.module = module_of(lowered, target, folder, tables)
            self.parameters, self.outputs = self.module.PARAMETERS, self.module.OUTPUTS

    def solve(self, point, data=None, **options):
        """Return {name: (value, error)}; raise what the file raises, or names by its status."""
        if self.target != "c":
            return self.module.solve_point(point, data, **options)
        found = self.library.solve(point, data)
        if found.status == self.library.constant("BAD_ARGUMENT"):
            raise ValueError(found.message)
        if found.status != self.library.constant("OK"):
            raise RuntimeError(found.message)
        return {name: (value, found.errors[name]) for name, value in found.values.items()}

    def solve_many(self, rows, data=None):
        """Return values, errors, and numbers of iterations that are negative where they failed."""
        if self.target != "c":
            values, errors, info = self.module.solve_many(rows, data)
            return values, errors, np.asarray(info)[:, 0]
        found = self.library.solve_many(rows, data)
        return found.values, found.errors, np.array([i.iterations for i in found.info])


def assert_within_estimates(found, vector):
    """Compare (value, error) of each output with a vector of many digits."""
    relative = vector.deviations({name: value for name, (value, _) in found.items()})
    assert relative and set(vector.expected) <= set(found)
    for name, deviation in relative.items():
        value, error = found[name]
        exact = abs(float(vector.expected[name]))
        # Parameters are rounded to floats: 1e-15 of an output that is not ill-conditioned.
        assert deviation * (exact or 1) <= error + (4e-15 * exact or 1e-14), name
        # Rules are refined for the first output; others carry a margin for what cancels in them.
        limit = 1e-9 if name == next(iter(found)) else 1e-7
        assert error <= limit * max(abs(value), 1e-3), name
