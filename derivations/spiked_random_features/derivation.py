"""From a pair of activations to everything that numbers need: derived once, kept as text.

A :class:`Derivation` holds the generated sources, the block structure and the formulas in print.
It is plain text and numbers, so it is cached on disk, and a run that finds it there imports no
SymPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...numeric.cache import FileCache
from ...numeric.kernel_code import KernelCode, LoadedKernel
from ..derived import derived
from .bulk_law import IID


@dataclass(frozen=True)
class Derivation:
    """What was derived for one pair of activations.

    Attributes
    ----------
    student, teacher : str
        Names of the activations.
    odd_student : bool
        The assumption of Result 3.1 as published holds.
    mapping_source : str
        Source of ``mapping(step_size, alpha0, noise_variance)``; empty if the student jumps and no
        step can be taken.
    mapping_error : str
        Why there is no mapping.
    leap_index : int
        Of the teacher.
    best_linear_error : float
        Error of the best linear predictor, :math:`\\|P_{>1} f_*\\|^2`.
    table_source, solver_source, plain_source : str
        Generated modules: tables in NumPy, the solver in numba and its twin in plain Python.
    parameters, table_parameters, tables, outputs : tuple of str
        Names in the order of the generated functions.
    results, measured : tuple of str
        Outputs meant for users, and those with an error estimate of their own.
    even : bool
        Half of the quadrature line suffices.
    unknowns : tuple of str
        Outputs that Newton's method starts from.
    domains : tuple of (str, str)
        Which numbers each parameter and each Newton unknown may be.
    structure : str
        The block structure in words.
    functions : tuple of (str, str)
        Name and value of each tabulated function.
    data : tuple of (str, tuple of str)
        Data sets and their columns.
    """

    student: str
    teacher: str
    odd_student: bool
    mapping_source: str
    mapping_error: str
    leap_index: int
    best_linear_error: float
    table_source: str
    solver_source: str
    plain_source: str
    parameters: tuple[str, ...]
    table_parameters: tuple[str, ...]
    tables: tuple[str, ...]
    outputs: tuple[str, ...]
    results: tuple[str, ...]
    measured: tuple[str, ...]
    even: bool
    unknowns: tuple[str, ...]
    domains: tuple[tuple[str, str], ...]
    structure: str
    functions: tuple[tuple[str, str], ...]
    data: tuple[tuple[str, tuple[str, ...]], ...] = ()


def derivation(
    student: str,
    teacher: str,
    *,
    unspiked: bool,
    aligned: bool,
    correlated_norms: bool,
    stretched: bool = False,
    finite_width: bool = False,
    bulk: str = IID,
    cache: FileCache,
) -> Derivation:
    """Return the derivation for a pair of activations, from the cache where it is there.

    Parameters
    ----------
    student, teacher : str
        Catalogue names or expressions in z.
    unspiked, aligned : bool
        Exactly r = 0, exactly \\|γ\\| = 1.
    correlated_norms : bool
        Include the correlation of norms and overlaps of the rows.
    stretched : bool
        Include the stretch of the rows in the plane of the spike and of the teacher.
    finite_width : bool
        Include what the mean direction costs at a finite width.
    bulk : {"iid", "isotropic", "overlaps"}
        As for :func:`.physics.spiked_free_energy`.
    cache : FileCache
        Where derivations are kept between processes.
    """
    flags = {
        "unspiked": unspiked,
        "aligned": aligned,
        "correlated_norms": correlated_norms,
        "stretched": stretched,
        "finite_width": finite_width,
        "bulk": bulk,
    }
    return _derivation(cache, student, teacher, **flags)


@derived("spiked_random_features", Derivation)
def _derivation(student: str, teacher: str, **flags: Any) -> Derivation:
    from ..kernels.code import deriving
    from .derive import derive

    with deriving(f"{student} features", 1):
        return derive(student, teacher, **flags)


# ------------------------------------------------------------------ loading


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
