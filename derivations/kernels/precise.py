"""Any number of digits for any lowered system, from the program of its float kernel."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...digits import MOST_DIGITS, error_text
from ...errors import ConvergenceError
from ...numeric.cache import FileCache
from ...numeric.fast_nodes import fast_nodes
from ...numeric.kernel_code import KernelCode, LoadedKernel
from ...numeric.saddle_point_solver import BatchSolution
from ...runtime.generated import PreciseKernel
from ...runtime.precise_lines import first_step
from ...runtime.precision import (
    digits_of_size,
    local_context,
    solve_precisely,
    with_spare_digits,
)
from ...runtime.quadrature import REACH, inner_extent
from ...symbolic.lowering.driver import precise_driver
from ...symbolic.lowering.solver import solver_source
from ...symbolic.lowering.tables import mpmath_table_source
from ..derived import derived

if TYPE_CHECKING:
    import sympy as sp

    from ...symbolic.lowering.lowered import LoweredSystem

# What closed forms of a stated number of digits have beyond them.
_SPARE_DIGITS = 5
# More than this take hours in numbers of many digits.
_MOST_NODES = 10**5


@dataclass(frozen=True)
class Refined:
    """Outputs to many digits with their estimated errors.

    Attributes
    ----------
    values : dict
        Outputs as numbers of an mpmath context of their own.
    budget : dict
        {"quadrature", "truncation", "root", "rounding": {output: absolute error}}: of the rule, of
        the ends of the line, of Newton's method and of arithmetic.
    nodes : int
        Outer nodes used.
    """

    values: dict[str, Any]
    budget: dict[str, dict[str, Any]]
    nodes: int

    @property
    def errors(self) -> dict[str, Any]:
        """Sum of all errors of each output."""
        return {name: sum(part[name] for part in self.budget.values()) for name in self.values}


def promise(digits: int, errors: Mapping[Any, Any], values: Mapping[Any, Any]) -> str:
    """Say in words what numbers of many digits rest on."""
    relative = [
        errors[name] / abs(value) for name, value in values.items() if abs(value) > errors[name]
    ]
    worst = error_text(max(relative)) if relative else "0"
    return (
        f"{digits} digits asked for; estimated relative errors of at most {worst} (difference of "
        "two quadrature rules, ends of the line, last residual, rounding); digits cut off, not "
        "rounded"
    )


def precise_kernel(lowered: LoweredSystem, code: KernelCode) -> PreciseKernel:
    """Print the program of a lowered system for mpmath."""
    tables = ""
    if lowered.program.tables:
        tables = mpmath_table_source(
            lowered.definitions,
            node=lowered.node,
            identifiers=lowered.identifiers,
            parameters=lowered.table_parameters,
            product=lowered.product,
        )
    return PreciseKernel(
        table_source=tables,
        solver_source=solver_source(lowered.program, "mpmath"),
        driver_source=precise_driver(),
        parameters=code.parameters,
        # The mpmath tables take no others, unlike those of a derivation that was stored.
        table_parameters=tuple(lowered.identifiers[p] for p in lowered.table_parameters),
        outputs=code.outputs,
        results=code.results,
        unknowns=code.unknowns,
        even=code.even,
        panels=code.panels,
        data=tuple(name for name, _ in code.data),
        moving=code.moving,
        inner_nodes=code.inner_nodes,
    )


def derived_kernel(
    cache: FileCache, code: KernelCode, make: Callable[[], LoweredSystem]
) -> PreciseKernel:
    """Return the program for mpmath of a kernel, printed once for each of its sources.

    Parameters
    ----------
    cache : FileCache
    code : KernelCode
    make : callable
        Returns the lowered system; called when nothing is in the cache.
    """

    @derived("kernels/precise", PreciseKernel)
    def program(source: str) -> PreciseKernel:
        return precise_kernel(make(), code)

    return program(cache, hashlib.sha256(repr(code).encode()).hexdigest())


def exact_number(value: object) -> sp.Expr:
    """Return a number exactly: a float as the decimal number that it prints as."""
    import sympy as sp

    if isinstance(value, float | np.floating):
        if math.isinf(value):
            return sp.oo if value > 0 else -sp.oo
        return sp.Rational(repr(float(value)))
    return sp.sympify(value, rational=True, strict=True)


def require_resolved(batch: BatchSolution, digits: int) -> None:
    """Refuse digits of a solution that no float rule resolves, which would take hours.

    Raises
    ------
    ConvergenceError
    """
    nodes = int(batch.nodes[0])
    if nodes > _MOST_NODES and not any(np.isfinite(e[0]) for e in batch.errors.values()):
        raise ConvergenceError(
            f"quadrature rules of {nodes} nodes do not resolve the equations here: an expectation "
            f"is infinite, or nearly so, or an integrand varies on a very small scale; digits="
            f"{digits} would take more nodes than that"
        )


def refine(
    kernel: LoadedKernel,
    precise: PreciseKernel,
    exact: Callable[[Any], Mapping[str, Any]],
    digits: int,
    batch: BatchSolution,
    *,
    data: Mapping[str, Sequence[Sequence[sp.Expr]]] | None = None,
    most_digits: int = MOST_DIGITS,
    show_progress: bool = True,
) -> Refined:
    """Return outputs to `digits` digits, from the float solution in the first row of `batch`.

    Parameters
    ----------
    kernel : LoadedKernel
    precise : PreciseKernel
    exact : callable
        Takes an mpmath context and returns all parameters as its numbers.
    digits : int
    batch : BatchSolution
    data : mapping
        Weights and columns of each data set as exact numbers.
    most_digits : int
        What the closed forms of the equations are good for.
    show_progress : bool
        Show a bar if it takes longer than a second.

    Returns
    -------
    Refined

    Raises
    ------
    ConvergenceError
        If two quadrature rules never agree to so many digits.
    """
    start = {name: float(batch.values[name][0]) for name in precise.unknowns}

    def solved(carried: int) -> tuple[dict[str, Any], dict[str, dict[str, Any]], int]:
        return _solved(
            kernel, precise, exact, carried, start, batch, data or {}, most_digits, show_progress
        )

    found, budget, nodes = with_spare_digits(solved, digits, most_digits)
    # Without the digits that were to spare for large values; an output without unknowns may be an
    # integer, or a constant such as pi.
    shown = local_context(digits)
    budget["rounding"] = {
        name: error + shown.eps * abs(found[name]) for name, error in budget["rounding"].items()
    }
    return Refined(
        {name: shown.mpf(value) for name, value in found.items()},
        {
            part: {name: shown.mpf(error) for name, error in errors.items()}
            for part, errors in budget.items()
        },
        nodes,
    )


def _solved(
    kernel: LoadedKernel, precise: PreciseKernel, exact: Callable[[Any], Mapping[str, Any]],
    digits: int, start: Mapping[str, float], batch: BatchSolution,
    data: Mapping[str, Sequence[Sequence[sp.Expr]]], most_digits: int, show_progress: bool,
) -> tuple[dict[str, Any], dict[str, dict[str, Any]], int]:  # fmt: skip
    ctx = local_context(digits, digits_of_size(start.values()))
    values = exact(ctx)
    numbers = {
        name: [[ctx.mpf(str(x.evalf(ctx.dps + 5))) for x in column] for column in columns]
        for name, columns in data.items()
    }
    from tqdm.auto import tqdm  # looks for notebook widgets, which costs time at every import

    hidden = None if show_progress else True  # None: where there is no terminal
    with tqdm(desc=f"{digits} digits", unit="node", delay=1, leave=False, disable=hidden) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        line = _line(kernel, values, int(batch.nodes[0]), digits, ctx)
        accuracy = ctx.mpf(10) ** (-most_digits - _SPARE_DIGITS)
        with fast_nodes(ctx):
            return solve_precisely(
                precise, values, ctx=ctx, digits=digits, start=start, data=numbers,
                progress=progress, accuracy=accuracy, **line,
            )  # fmt: skip


def _line(
    kernel: LoadedKernel, values: Mapping[str, Any], nodes: int, digits: int, ctx: Any
) -> dict[str, Any]:
    """Return step, inner rules and kinks of the tables, from what the float tables know of them."""
    tables = kernel.tables
    if tables is None:
        return {}
    node = np.zeros(1)
    table_values = [np.float64(float(values[name])) for name in kernel.table_parameters]
    with np.errstate(divide="ignore", over="ignore"):
        width = float(tables.outer_scale(node, *table_values))
    inner = {
        slot: inner_extent(*rule) for slot, rule in tables.inner_rules(node, *table_values).items()
    }
    step = REACH / (nodes - 1) if kernel.code.even else 2 * REACH / (nodes - 1)
    resolved = min(step, width)
    first = first_step(resolved, digits)
    breaks = [ctx.mpf(float(b)) for b in tables.breaks(node, *table_values)]
    widths = [width]
    if kernel.code.inner_nodes:
        with np.errstate(divide="ignore", over="ignore"):
            widths += [float(x) for x in tables.product_scales(node, *table_values)]
    return {"step": first, "inner": inner, "breaks": breaks, "widths": widths}
