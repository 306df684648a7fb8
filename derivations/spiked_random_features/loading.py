"""The generated sources of a derivation as a loaded kernel."""

from __future__ import annotations

from types import ModuleType

from ...numeric.cache import FileCache
from ...numeric.saddle_point_solver import Kernel
from .derivation import Derivation


def load_kernel(found: Derivation, cache: FileCache) -> Kernel:
    """Load tables and the solver in plain Python; the compiled solver waits until it is asked for.

    Parameters
    ----------
    found : Derivation
    cache : FileCache
        Where the generated modules are kept.
    """

    def compiled() -> ModuleType:
        # numba first: the cache makes a module verify its binaries only if numba is loaded.
        import numba  # noqa: F401

        return cache.load_module("solver", found.solver_source)

    return Kernel(
        tables=cache.load_module("tables", found.table_source),
        plain=cache.load_module("solver_plain", found.plain_source),
        compiled=compiled,
        parameters=found.parameters,
        table_parameters=found.table_parameters,
        names=found.tables,
        outputs=found.outputs,
        results=found.results,
        measured=found.measured,
        even=found.even,
    )
