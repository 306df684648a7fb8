"""Whether the single sites that a free energy declares are its own, seen at a solution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import WeakSet

import sympy as sp

from ...errors import StructureError

if TYPE_CHECKING:
    from .kernel import Kernel

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
