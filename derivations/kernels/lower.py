"""From a system of equations to its kernel."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ...errors import ParameterError
from ...one_thread import one_at_a_time
from ...symbolic.lowering.lowered import LoweredSystem
from ...symbolic.lowering.lowered import lower as lower_symbolically
from ...symbolic.saddle_point import SaddlePointSystem
from .code import kernel_code, latex_names, parameter_domains
from .kernel import RESERVED, Kernel


@one_at_a_time
def lower(
    system: SaddlePointSystem | Any, *, cache_folder: str | os.PathLike[str] | None = None
) -> Kernel:
    """Return the kernel of a system of equations: solve, sweep, any number of digits, files.

    Parameters
    ----------
    system : SaddlePointSystem
        Or a model that has a kernel of its own, such as :class:`giantstep.SpikedRandomFeatures`.
    cache_folder : path, optional
        Where compiled kernels are kept.

    Raises
    ------
    EmissionError
        If an expression holds something that no target knows; the message names the node.
    StructureError
        If the equations do not determine their unknowns.
    ParameterError
        If a parameter is called like an argument of :meth:`Kernel.solve` or :meth:`Kernel.curve`.

    Examples
    --------
    >>> import sympy as sp
    >>> from giantstep.symbolic.saddle_point import SaddlePointSystem
    >>> x, a = sp.symbols("x a", positive=True)
    >>> kernel = lower(SaddlePointSystem.from_fixed_point({x: a * sp.exp(-x)}, name="lambert",
    ...                                                   parameters=(a,)))
    >>> print(f"{kernel.solve(a=1).x:.12f}")
    0.567143290410
    """
    if not isinstance(system, SaddlePointSystem):
        kernel = getattr(system, "kernel", None)
        if callable(kernel) and cache_folder is None:
            found = kernel()
            if isinstance(found, Kernel):
                return found
        raise ParameterError(
            f"system must be a SaddlePointSystem or a model with a kernel, got {system!r}"
        )
    lowered = lower_symbolically(system)
    code = kernel_code(lowered)
    clash = [name for name in code.parameters if name in RESERVED]
    if clash:
        raise ParameterError(
            f"the parameter {clash[0]!r} has the name of an argument of solve() or curve(); give "
            "it another one with identifiers={symbol: 'name'}"
        )
    return Kernel(
        name=system.name,
        title=system.title or system.name,
        code=code,
        domains=parameter_domains(lowered),
        make=_Always(lowered),
        labels=latex_names(lowered),
        cache_folder=cache_folder,
    )


@dataclass(frozen=True)
class _Always:
    lowered: LoweredSystem

    def __call__(self) -> LoweredSystem:
        return self.lowered
