"""A float solution refined to any number of digits, from the same program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from ...numeric.precision import local_context, solve_precisely
from ...numeric.saddle_point_solver import BatchSolution
from .derive import precise_kernel, precise_mapping
from .solution import Solution, solution_from

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures

# The step of the float solution gives at least this many digits, and digits grow at least like
# its inverse; the first of two rules need only reach two thirds of the digits.
_FLOAT_DIGITS = 16


def refine(
    model: SpikedRandomFeatures,
    alpha: float,
    ridge: float,
    digits: int,
    batch: BatchSolution,
    *,
    show_progress: bool,
) -> Solution:
    """Return the saddle point to `digits` digits; see :meth:`.model.SpikedRandomFeatures.solve`.

    Raises
    ------
    ConvergenceError
        If two quadrature rules never agree to so many digits.
    """
    symbolic = model.symbolic()
    kernel = precise_kernel(symbolic)
    start = {name: float(v[0]) for name, v in batch.values.items()}
    # 1 + V spans as many digits as V has: that many more are carried along.
    spare = max(0, math.ceil(math.log10(1 + max(abs(start[x]) for x in kernel.unknowns))))
    ctx = local_context(digits, spare)
    values = _exact_parameters(model, alpha, ridge, ctx)
    tables = model._kernel.tables
    table_values = [np.float64(float(values[name])) for name in kernel.table_parameters]
    node = np.zeros(1)
    with np.errstate(divide="ignore", over="ignore"):
        width = float(tables.outer_scale(node, *table_values))
    inner = {
        slot: argument if kind == "trapezoidal" else (math.inf, 0.0)
        for slot, (kind, argument) in tables.inner_rules(node, *table_values).items()
    }
    reach_nodes = int(batch.nodes[0])
    # Imported here: tqdm.auto looks for notebook widgets, which costs time at every import.
    from tqdm.auto import tqdm

    with tqdm(
        desc=f"{digits} digits", unit="node", delay=1, leave=False, disable=not show_progress
    ) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        outputs, nodes = solve_precisely(
            kernel,
            values,
            ctx=ctx,
            digits=digits,
            start=start,
            step=_first_step(width, reach_nodes, kernel.even, digits),
            inner=inner,
            breaks=_exact_breaks(model, values, ctx),
            progress=progress,
        )
    return solution_from(
        outputs,
        alpha=alpha,
        ridge=ridge,
        residual=0.0,
        iterations=int(batch.iterations[0]),
        quadrature_error=10.0 ** (-digits) * float(abs(outputs["test_error"])),
        nodes=nodes,
        digits=digits,
    )


def _first_step(width: float, nodes: int, even: bool, digits: int) -> float:
    """Scale the step that was enough for floats to the digits that are wanted now."""
    from ...numeric.quadrature import REACH

    step = REACH / (nodes - 1) if even else 2 * REACH / (nodes - 1)
    return min(step, width) * min(1.0, _FLOAT_DIGITS / (2 / 3 * digits)) ** 0.75


def _exact_parameters(
    model: SpikedRandomFeatures, alpha: float, ridge: float, ctx: Any
) -> dict[str, Any]:
    """Read every float as the decimal number that it prints as."""
    digits = ctx.dps + 5
    given = {
        name: sp.Rational(repr(value))
        for name, value in {
            "alpha": alpha,
            "ridge": ridge,
            "beta": model.beta,
            "noise_variance": model.noise_variance,
        }.items()
    }
    spike: tuple[Any, ...]
    if model.direct_parameters is not None or model.step_size == 0:
        direct = model.spike
        r, c, gamma = (
            sp.Rational(repr(x))
            for x in (direct.spike_strength, direct.bulk_variance, direct.alignment)
        )
        spike = (r, c, gamma, sp.sqrt(1 - gamma**2), sp.S.Zero)
    else:
        symbolic = model.symbolic()
        infinite = model.alpha0 == math.inf
        values = {
            "step_size": sp.Rational(repr(model.step_size)),
            "alpha0": sp.oo if infinite else sp.Rational(repr(model.alpha0)),
            "noise_variance": given["noise_variance"],
        }
        spike = precise_mapping(symbolic.student, symbolic.teacher, values, digits)
        if model.spike.spike_strength == 0:
            # No gradient at infinite alpha0: the direction of the spike is arbitrary.
            spike = (sp.S.Zero, spike[1], sp.S.Zero, sp.S.One, sp.S.Zero)
    names = (
        "spike_strength",
        "bulk_variance",
        "alignment",
        "orthogonal_alignment",
        "norm_overlap",
    )
    exact = {**given, **dict(zip(names, spike, strict=True))}
    return {name: ctx.mpf(str(sp.N(value, digits))) for name, value in exact.items()}


def _exact_breaks(model: SpikedRandomFeatures, values: dict[str, Any], ctx: Any) -> list[Any]:
    names = model.derivation.table_parameters
    floats = [np.float64(float(values[name])) for name in names]
    return [ctx.mpf(float(b)) for b in model._kernel.tables.breaks(np.zeros(1), *floats)]
