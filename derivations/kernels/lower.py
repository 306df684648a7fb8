"""From a system of equations to its kernel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import sympy as sp

from ...errors import ParameterError, StructureError
from ...one_thread import one_at_a_time
from ...symbolic.lowering.lowered import LoweredSystem, lower as lower_symbolically
from ...symbolic.systems.saddle_point import SaddlePointSystem
from .code import kernel_code, latex_names, parameter_domains
from .kernel import RESERVED, Kernel

if TYPE_CHECKING:
    from .kernel import Kernel


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
    >>> from giantstep.symbolic.systems.saddle_point import SaddlePointSystem
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


# What a site determines holds at a solution for all parameters or for none: one is enough.
_FITTING: WeakSet[Kernel] = WeakSet()
_DIGITS = 12
_TOLERANCE = 1e-6


def require_fitting_sites(
    kernel: Kernel, parameters: Mapping[str, float], values: Mapping[str, float]
) -> None:
    r"""Refuse single sites that do not determine the overlaps they are declared for.

    The replicon is made of :math:`q = n\,\mathbb{E}[w\,(\partial_\omega \log Z)^2]`, which a field
    that couples with a factor, or an overlap of another site, does not fulfil. Stationarity
    implies it at solutions only, so it is looked at there; where an overlap vanishes, both sides
    do, whatever the site.

    Parameters
    ----------
    kernel : Kernel
    parameters, values : mapping from str to float
        A solution.

    Raises
    ------
    StructureError
        Names the overlap and both numbers.
    """
    if kernel in _FITTING:
        return
    system = kernel.solved.stated
    if system.free_energy is None or not system.free_energy.single_sites:
        return
    known = {**parameters, **values}
    point = {
        symbol: sp.Float(float(known[name]), 17)
        for symbol, name in system.identifiers.items()
        if name in known
    }
    vanishing = False
    for site in system.free_energy.single_sites:
        declared = float(point[site.overlap])
        vanishing = vanishing or abs(declared) < _TOLERANCE
        value = site.overlap_value().xreplace(point).evalf(_DIGITS)
        if abs(float(value) - declared) > _TOLERANCE * (1 + abs(declared)):
            raise StructureError(
                f"the single site of {site.overlap} is none of this free energy: at its saddle "
                f"point n E[w (d log Z/d{site.field})^2] = {float(value):.6g}, but {site.overlap} "
                f"= {declared:.6g}. The field couples to its degree of freedom without a factor (a "
                "factor belongs to its mean and variance), and overlap= names the variable that "
                "this site determines: for constraints the conjugate"
            )
    if not vanishing:
        _FITTING.add(kernel)
