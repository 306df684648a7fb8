"""Theory and simulation side by side, and in words what each number rests on.

Plain numbers in, text out; shared by the terminal and the report, and free of imports that a
terminal would have to wait for.
"""

from __future__ import annotations

import math

THEORY_COLUMNS = ("α", "theory", "estimated error")
SIMULATION_COLUMNS = ("simulation ± s.e.", "difference/s.e.", "difference")
COMPLETE_COLUMNS = ("complete", "difference/s.e.")
_NONE = "–"


def theory_cells(alpha: float, theory: float, error: float) -> list[str]:
    """Return the cells of `THEORY_COLUMNS`.

    Examples
    --------
    >>> theory_cells(0.5, 0.0462612345678, 1.4e-16)
    ['0.5', '0.04626123457', '1e-16']
    """
    return [f"{alpha:.6g}", f"{theory:#.10g}", f"{error:.0e}"]


def simulation_cells(theory: float, mean: float, error: float) -> list[str]:
    """Return the cells of `SIMULATION_COLUMNS`; without a finite error some stay empty.

    Parameters
    ----------
    theory, mean : float
    error : float
        Standard error of the mean.

    Examples
    --------
    >>> simulation_cells(0.0485, 0.04923, 0.00105)
    ['0.0492 ± 0.0010', '+0.7', '+1.5 %']
    """
    relative = f"{100 * (mean / theory - 1):+.1f} %".replace("-", "−") if theory else _NONE
    if not (math.isfinite(error) and error > 0):
        return [f"{mean:.5g}", _NONE, relative]
    digits = max(0, 1 - math.floor(math.log10(error)))
    in_errors = f"{(mean - theory) / error:+.1f}".replace("-", "−")
    return [f"{mean:.{digits}f} ± {error:.{digits}f}", in_errors, relative]


def complete_cells(theory: float, mean: float, error: float) -> list[str]:
    """Return the cells of `COMPLETE_COLUMNS`: the complete theory and how far it is off.

    Examples
    --------
    >>> complete_cells(0.03149699, 0.03144, 0.00021)
    ['0.031497', '−0.3']
    """
    return [f"{theory:.5g}", simulation_cells(theory, mean, error)[1]]


def theory_rests_on(residual: float, error: float) -> str:
    """Return what the numbers of the theory rest on, in words."""
    return (
        "Theory: float64 solution of the saddle-point equations, largest relative residual "
        f"{residual:.0e}, largest estimated error {error:.0e} (quadrature and rounding). It holds "
        "for d → ∞ at fixed ratios, by the replica method: not a theorem."
    )


def simulation_rests_on(networks: int, dimension: int) -> str:
    """Return what simulated numbers rest on, in words."""
    if networks == 1:
        return f"Simulation: one network of d = {dimension}, so without a standard error."
    return (
        f"Simulation: mean ± standard error (s.e.) of {networks} networks of d = {dimension}. "
        "Each network's training sets are nested, so differences at neighbouring α are correlated."
    )


FINITE_SIZE = (
    "Finite size: networks differ from the limit by terms of order 1/d, and trained networks from "
    "spiked random features by terms of order c − 1. 1–5 % is usual at d ≈ 1000, so with many "
    "networks expect differences of several standard errors."
)

_LEFT_OUT = (
    "that the step correlates the norm of each row with its overlap with the spike and, for "
    "students that are not odd, stretches the rows along the spike and the teacher"
)

COMPLETE = (
    f"Complete: Result 3.1 leaves out {_LEFT_OUT}, which changes the limit itself; the theory with "
    "these terms is derived here."
)

COMPLETE_INCLUDED = (
    f"The theory includes {_LEFT_OUT}, which Result 3.1 as published leaves out; these terms are "
    "derived here."
)


FINITE_WIDTH_INCLUDED = (
    "The theory includes what the ridge penalty takes for the mean of the readout weights at the "
    "given width, which vanishes like 1/p; other corrections of this order are left out."
)


def uninformative(leap_index: int) -> str:
    """Return, in words, what a vanishing first Hermite coefficient of the teacher means."""
    return (
        f"The teacher's first Hermite coefficient vanishes (leap index {leap_index}): the spike is "
        "uninformative, γ\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0. One step of this size does not "
        "find the teacher's direction."
    )
