"""The functions of a kernel's spectrum as text: derived once, kept in the cache.

A run that finds them there imports no SymPy.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ....numeric.cache import FileCache
from ....one_thread import one_at_a_time
from ...derived import derived

if TYPE_CHECKING:
    import sympy as sp


def spectrum_functions(cache: FileCache) -> SimpleNamespace:
    """Return the functions as attributes.

    Those of numbers take an mpmath context first: ``zeta``, ``population_place``, ``slope_sign``,
    ``slope_rate`` of (T, α, β, κ), ``noise_edges`` of (α, β), ``spike_square``,
    ``critical_step_size``, ``expected_spike``, ``label_alignment``, ``precise_quartic`` and
    ``upper_half_plane``. Those of arrays: ``quartic``, ``resolvent_quadratic``,
    ``equation_terms``, ``equation_slope`` and ``counting_function``.
    """
    return _loaded(os.fspath(cache.folder))


@lru_cache(maxsize=8)
@one_at_a_time
def _loaded(folder: str) -> SimpleNamespace:
    cache = FileCache(folder)
    namespace: dict[str, Any] = {}
    exec(_source(cache), namespace)
    found = {k: v for k, v in namespace.items() if not k.startswith("_") and callable(v)}
    return SimpleNamespace(**found)


@derived("one_gradient_step/kernel_spectrum", str)
def _source() -> str:
    return spectrum_source()


def spectrum_source() -> str:
    """Derive the functions and return their source."""
    from ....symbolic.lowering.targets.printers import MpmathPrinter, NumpyPrinter
    from ..spike_sizes import spike_square
    from . import equations as eq

    axis, step, plane = eq.REAL_PARAMETERS, eq.STEP_PARAMETERS, eq.PLANE_PARAMETERS
    coefficients = eq.quartic()
    inside = (eq.effective_ridge, *plane)
    precise: list[tuple[str, Sequence[sp.Symbol], Sequence[sp.Expr], str]] = [
        ("zeta", axis, [eq.zeta()], "zeta(T) in units of mu_1^2"),
        ("population_place", axis, [eq.population_place()], "where T is in the population"),
        ("slope_sign", axis, [eq.slope_sign()], "what has the sign of zeta'(T)"),
        ("slope_rate", axis, [eq.slope_sign().diff(eq.place)], "its derivative"),
        ("noise_edges", (eq.alpha, eq.beta), eq.noise_edges(), "the edges of noise features"),
        ("spike_square", step, [spike_square()], "theta1^2"),
        ("critical_step_size", (eq.place, *step), [eq.critical_step_size()], "eta at theta1^2 = T"),
        ("expected_spike", (eq.second, eq.beta), [eq.expected_spike()], "c_2^2 beta/2"),
        ("label_alignment", (*axis, *step), [eq.label_alignment()], "the squared overlap"),
        ("precise_quartic", plane, coefficients, "coefficients, from the highest power"),
        ("upper_half_plane", inside, eq.upper_half_plane(), "three transforms"),
    ]
    arrays: list[tuple[str, Sequence[sp.Symbol], Sequence[sp.Expr], str]] = [
        ("quartic", plane, coefficients, "coefficients, from the highest power"),
        ("resolvent_quadratic", inside, eq.resolvent_quadratic(), "of G², G, 1; a direction"),
        ("equation_terms", (eq.resolvent, *inside), eq.equation_terms(), "what adds up to zero"),
        ("equation_slope", (eq.resolvent, *inside), [eq.equation_slope()], "their derivative"),
        (
            "counting_function",
            (eq.resolvent, *inside),
            [eq.counting_function()],
            "what counts eigenvalues",
        ),
    ]
    texts = ["import numpy as np"]
    texts += [_function(MpmathPrinter(), *part, context="ctx, ") for part in precise]
    texts += [_function(NumpyPrinter(), *part) for part in arrays]
    return "\n\n\n".join(texts) + "\n"


def _function(
    printer: Any,
    name: str,
    arguments: Sequence[sp.Symbol],
    values: Sequence[sp.Expr],
    returned: str,
    context: str = "",
) -> str:
    import sympy as sp

    from ..symbols import IDENTIFIERS

    moving = {"z", "nu", "G"}
    names = {x: IDENTIFIERS.get(x, str(x)) for x in arguments}
    # Names of points are complex, so that logarithms are not taken apart.
    rule = {x: sp.Symbol(n, real=None if n in moving else True) for x, n in names.items()}
    shared, results = sp.cse(
        [v.xreplace(rule) for v in values],
        symbols=sp.numbered_symbols("shared_"),
        optimizations=[],
    )
    lines = [f"{x} = {printer.print(v)}" for x, v in shared]
    shown = ", ".join(printer.print(v) for v in results)
    lines.append(f"return {shown}" if len(results) == 1 else f"return ({shown})")
    body = "\n".join(f"    {line}" for line in lines)
    return (
        f'def {name}({context}{", ".join(names.values())}):\n    """Return {returned}."""\n{body}'
    )
