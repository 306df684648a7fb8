"""The generated sources of a derivation as a loaded kernel."""

from __future__ import annotations

from ...numeric.cache import FileCache
from ...numeric.kernel_code import KernelCode, LoadedKernel
from .derivation import Derivation


def kernel_code(found: Derivation) -> KernelCode:
    """Return what a derivation says about its kernel."""
    return KernelCode(
        table_source=found.table_source,
        solver_source=found.solver_source,
        plain_source=found.plain_source,
        parameters=found.parameters,
        table_parameters=found.table_parameters,
        names=found.tables,
        outputs=found.outputs,
        results=found.results,
        measured=found.measured,
        even=found.even,
        unknowns=found.unknowns,
        data=found.data,
    )


def load_kernel(found: Derivation, cache: FileCache) -> LoadedKernel:
    """Load tables and the solver in plain Python; the compiled solver waits until it is needed."""
    return kernel_code(found).load(cache)
