"""Solve a generated kernel to any number of digits, in mpmath.

The same program as the float kernel, printed for mpmath. Outer nodes come from the trapezoidal
rule, whose step is halved until two solutions agree; inner expectations without closed form are
integrated with the step that the pole distance asks for, halved until it agrees with half of it
at a few values of the outer variable. Lines that are cut at moving points carry composite
Gauss–Legendre rules whose order is doubled.

Four errors add up: of the outer rule (from the difference of two), of the ends of the line (from
the size of the tables there), of Newton's method (from the last residual and how much the solution
moves with it), and of rounding. All are estimated, not proven.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import mpmath

from ..errors import ConvergenceError
from . import precise_grids
from .precise_averages import GUARD_DIGITS, MOST_HALVINGS, InnerRule, usual_reach

# Where the inner step is checked and the size of the tables is measured: outer nodes at which
# nothing is special. At the ends of the line every activation is as simple as it gets.
_PROBES = (0.0, 0.3, -0.7, 1.1, -1.9, 2.6, -4.3)
# Tables that grow like exp(kappa**2/4) would need more than this many times the usual reach.
_FARTHEST = 4
# Integrands that move with the unknowns may grow: each finer rule goes farther, so that two that
# agree tell of the ends, too.
_LONGER_REACH = 1.25
# Trapezoidal rules that are tried before the one that should give the digits, on nodes that it
# shares.
_COARSE_RULES = 2
# Of the digits asked for, so many more are wanted from the outer rule: the ones that are printed
# then hardly ever straddle a nine and a zero.
# On grids they would be too dear.
_MORE_DIGITS, _MORE_DIGITS_OF_GRID = 10, 2
# In units of a solver's own estimate of rounding, which counts operations in floats: closed forms
# of tables may cancel some digits, for which there are spare ones.
_CANCELLATION = 10**4
# The same for what an inner rule leaves out: it is relative to values of size one, and tables and
# their differences may be smaller.
_TABLE_CANCELLATION = 10**3
# A panel of a line that is cut at moving points is at most this long.
_PANEL_LENGTH = 2


@dataclass(frozen=True)
class PreciseKernel:
    """Generated mpmath sources of a kernel.

    Attributes
    ----------
    table_source : str
        Defines ``tables(node, …, rule)`` at one node; empty if the program has no fixed nodes.
    solver_source : str
        Defines ``solve(…, out, info)``.
    parameters, table_parameters, outputs : tuple of str
        As in :class:`~giantstep.numeric.kernel_code.KernelCode`.
    results : tuple of str
        Those of the outputs that are wanted to all digits; the rest are scales of errors.
    unknowns : tuple of str
        Outputs that Newton's method starts from.
    even : bool
        Half of the line suffices.
    panels : bool
        The solver cuts the line at points that move with its unknowns.
    data : tuple of str
        Data sets that the solver averages over.
    moving : bool
        Integrands on fixed nodes hold functions of the unknowns.
    inner_nodes : tuple of str
        Further Gaussian variables, on a grid with the node; then `table_source` defines
        ``product_tables`` and ``product_breaks_NAME`` too.
    """

    table_source: str
    solver_source: str
    parameters: tuple[str, ...]
    table_parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    results: tuple[str, ...]
    unknowns: tuple[str, ...]
    even: bool
    panels: bool = False
    data: tuple[str, ...] = ()
    moving: bool = False
    inner_nodes: tuple[str, ...] = ()


def local_context(digits: int, spare: int = 0) -> Any:
    """Return an mpmath context of its own; the global one is never changed."""
    ctx = mpmath.mp.clone()
    ctx.dps = digits + GUARD_DIGITS + spare
    return ctx


def solve_precisely(
    kernel: PreciseKernel,
    values: Mapping[str, Any],
    *,
    ctx: Any,
    digits: int,
    start: Mapping[str, float],
    step: float = 1.0,
    inner: Mapping[str, tuple[float, float]] | None = None,
    breaks: Sequence[Any] = (),
    widths: Sequence[float] = (),
    data: Mapping[str, Sequence[Sequence[Any]]] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[dict[str, Any], dict[str, dict[str, Any]], int]:
    """Refine a float solution to `digits` digits.

    Parameters
    ----------
    kernel : PreciseKernel
    values : mapping
        Parameters as numbers of `ctx`.
    ctx : mpmath context
        From :func:`local_context`.
    digits : int
    start : mapping
        The float solution.
    step : float
        First step of the outer rule; scaled by the width over which the tables vary.
    inner : mapping
        (strip, growth) of each inner variable.
    breaks : sequence
        Kinks of tables in the node; then the outer rule is composite Gauss–Legendre.
    widths : sequence of float
        Of node and inner nodes, over which integrands vary.
    data : mapping
        Weights and columns of each data set, as numbers of `ctx`.
    progress : callable, optional
        Called with (nodes done, nodes in all).

    Returns
    -------
    dict
        Outputs as numbers of `ctx`.
    dict
        Estimated absolute errors: {"quadrature", "truncation", "root" and "rounding": {output:
        number of `ctx`}}.
    int
        Outer nodes used.

    Raises
    ------
    ConvergenceError
        If two successive rules do not agree after some halvings of the step, Newton's method
        fails, or the rule of an inner expectation does not converge.
    """
    namespace: dict[str, Any] = {"ctx": ctx}
    exec(kernel.solver_source, namespace)
    lines = None
    if kernel.table_source:
        lines = _Lines(kernel, values, ctx, digits, step, inner or {}, breaks, widths, progress)
    columns = [column for name in kernel.data for column in (data or {})[name]]
    begin = [ctx.mpf(start[name]) for name in kernel.unknowns]
    more = _MORE_DIGITS_OF_GRID if kernel.inner_nodes else _MORE_DIGITS
    tolerance = ctx.mpf(10) ** (-digits - more)
    wanted = [kernel.outputs.index(name) for name in kernel.results]
    arguments = [values[name] for name in kernel.parameters]
    previous: list[Any] | None = None
    levels = MOST_HALVINGS + (0 if breaks or kernel.panels or kernel.inner_nodes else _COARSE_RULES)
    for level in range(levels):
        arrays: list[Sequence[Any]] = []
        reach = usual_reach(ctx, digits) * ctx.mpf(_LONGER_REACH) ** level
        if lines is not None:
            arrays += lines.arrays(level)
        if kernel.panels:
            arrays += _panel_rule(ctx, digits, reach, level)
        nodes = max(map(len, arrays), default=1)
        out: list[Any] = [ctx.zero] * len(kernel.outputs)
        info = [0, ctx.zero, ctx.zero]
        ends = {"reach": reach} if kernel.panels else {}
        namespace["solve"](*arguments, *arrays, *columns, *begin, out, info, **ends)
        if info[0] < 0:
            raise ConvergenceError("Newton's method failed at high precision", state=out)
        # What cancels exactly, by a symmetry, is only as small as rounding makes it.
        zero = 10**6 * ctx.eps * max(abs(out[k]) for k in wanted)
        found = {kernel.outputs[k]: out[k] for k in wanted}
        if not arrays:
            previous = out
        if previous is not None:
            quadrature = [
                _quadrature_error(
                    ctx, out[k], previous[k], zero,
                    bool(breaks) or kernel.panels, bool(kernel.inner_nodes),
                )
                for k in wanted
            ]  # fmt: skip
            if all(
                error <= tolerance * max(abs(out[k]), zero)
                for error, k in zip(quadrature, wanted, strict=True)
            ):
                cut = ctx.npdf(reach) if lines is None else lines.truncation
                inner_error = ctx.zero if lines is None else lines.inner_error
                errors = _errors(ctx, kernel, out, info, zero, cut if arrays else ctx.zero)
                inner_errors = _moved(ctx, kernel, out, info, inner_error)
                errors["quadrature"] = {
                    name: error + inner_errors[name]
                    for name, error in zip(found, quadrature, strict=True)
                }
                return found, errors, nodes
        previous = out
        begin = [out[kernel.outputs.index(name)] for name in kernel.unknowns]
    raise ConvergenceError(
        f"{levels} quadrature rules, each with half the step of the one before, did not "
        f"agree to {digits} digits; "
        "ask for fewer digits or a larger ridge penalty",
        state=previous,
    )


def _errors(
    ctx: Any, kernel: PreciseKernel, out: Sequence[Any], info: Sequence[Any], zero: Any, cut: Any
) -> dict[str, dict[str, Any]]:
    """Return the estimated errors of all results but that of the rule.

    The solver reports, in `info`, its last residual and 4 eps (8 + 16 a), where a relative change
    of the equations moves the solution by a times as much; `cut` is the relative error of the
    ends.
    """
    _, residual, rounding = info
    amplification = _amplification(ctx, info)
    truncation, root, rounded = {}, {}, {}
    for name in kernel.results:
        value = abs(out[kernel.outputs.index(name)])
        scale = f"{name}_magnitude"
        size = max(value, abs(out[kernel.outputs.index(scale)]) if scale in kernel.outputs else 0)
        truncation[name] = cut * size
        root[name] = residual * amplification * value
        lost = max(_CANCELLATION * rounding, 10**6 * ctx.eps) * size
        rounded[name] = lost + (zero if value <= zero else 0)
    return {"truncation": truncation, "root": root, "rounding": rounded}


def _amplification(ctx: Any, info: Sequence[Any]) -> Any:
    return max(ctx.one, (info[2] / (4 * ctx.eps) - 8) / 16)


def _moved(
    ctx: Any, kernel: PreciseKernel, out: Sequence[Any], info: Sequence[Any], inner_error: Any
) -> dict[str, Any]:
    """Return how far an error of the tables, which may cancel some digits, moves the results."""
    relative = _TABLE_CANCELLATION * inner_error * _amplification(ctx, info)
    moved = {}
    for name in kernel.results:
        scale = f"{name}_magnitude"
        value = abs(out[kernel.outputs.index(name)])
        size = max(value, abs(out[kernel.outputs.index(scale)]) if scale in kernel.outputs else 0)
        moved[name] = relative * size
    return moved


class _Lines:
    """Rules over fixed nodes with the tables on them; a table is computed once for each node."""

    def __init__(
        self, kernel: PreciseKernel, values: Mapping[str, Any], ctx: Any, digits: int,
        step: float, inner: Mapping[str, tuple[float, float]], breaks: Sequence[Any],
        widths: Sequence[float], progress: Callable[[int, int], None] | None,
    ) -> None:  # fmt: skip
        namespace: dict[str, Any] = {"ctx": ctx}
        exec(kernel.table_source, namespace)
        table_values = [values[name] for name in kernel.table_parameters]
        rule = InnerRule(ctx, digits, inner)
        if not breaks and not kernel.inner_nodes:
            rule.outer_step = ctx.mpf(step)

        def tables(x: Any) -> tuple[Any, ...]:
            found: tuple[Any, ...] = namespace["tables"](x, *table_values, rule)
            return found

        self._kernel, self._ctx, self._digits = kernel, ctx, digits
        self._step, self._breaks, self._progress = step, breaks, progress
        self._tables = tables
        self._rule = rule
        probes = [tables(ctx.mpf(x)) for x in _PROBES]
        rule.checked = False
        self._grid: precise_grids.PreciseGrid | None = None
        self.truncation = ctx.zero
        if kernel.inner_nodes:
            # Each level of a grid goes farther: the difference of two tells of the ends.
            self._grid = precise_grids.PreciseGrid(
                namespace, kernel.inner_nodes, table_values, ctx, digits, widths, breaks,
                kernel.even, tables,
            )  # fmt: skip
            return
        self._reach, self.truncation = _sufficient_reach(ctx, digits, tables, probes)
        self._known: dict[Any, tuple[Any, ...]] = {}

    @property
    def inner_error(self) -> Any:
        """Estimated error of the tables, relative to values of size one."""
        return self._rule.error

    def arrays(self, level: int) -> list[Sequence[Any]]:
        """Return weights, nodes and tables."""
        if self._grid is not None:
            return self._grid.arrays(level)
        longer = self._ctx.mpf(_LONGER_REACH) ** level if self._kernel.moving else 1
        nodes, weights = _outer_rule(
            self._ctx, self._digits, self._reach * longer, self._step / 2**level, level,
            self._kernel.even, self._breaks,
        )  # fmt: skip
        for k, x in enumerate(nodes):
            if x not in self._known:
                self._known[x] = self._tables(x)
            if self._progress is not None:
                self._progress(k + 1, len(nodes))
        return [weights, nodes, *zip(*(self._known[x] for x in nodes), strict=True)]


def _panel_rule(ctx: Any, digits: int, reach: Any, level: int) -> list[Sequence[Any]]:
    """Return weights and nodes of a composite rule on [0, 1], good for a whole line."""
    rule = _legendre_rule(ctx, digits, level)
    panels = int(ctx.ceil(2 * reach / _PANEL_LENGTH))
    nodes = [(k + (1 + x) / 2) / panels for k in range(panels) for x, _ in rule]
    weights = [w / (2 * panels) for _ in range(panels) for _, w in rule]
    return [weights, nodes]


def _sufficient_reach(
    ctx: Any,
    digits: int,
    tables: Callable[[Any], tuple[Any, ...]],
    probes: Sequence[tuple[Any, ...]],
) -> tuple[Any, Any]:
    """Return how far from zero the outer rule has to go, and what lies beyond, relatively.

    Tables that grow need more.

    `probes` holds the tables at `_PROBES`. All rules share their reach, so that their agreement
    does not show what lies beyond.
    """

    def sizes(x: Any, values: Sequence[Any]) -> list[Any]:
        return [ctx.npdf(x) * value**2 for value in values]

    usual = reach = usual_reach(ctx, digits)
    inside = [sizes(x, values) for x, values in zip(_PROBES, probes, strict=True)]
    largest = [max(column) for column in zip(*inside, strict=True)]
    negligible = ctx.mpf(10) ** (-digits - GUARD_DIGITS // 2)
    while True:
        left_end, right_end = (sizes(x, tables(x)) for x in (-reach, reach))
        left_out = max(
            (
                max(left, right) / most
                for left, right, most in zip(left_end, right_end, largest, strict=True)
                if most != 0
            ),
            default=ctx.zero,
        )
        if left_out <= negligible or reach >= _FARTHEST * usual:
            return reach, left_out + ctx.npdf(reach)
        reach *= ctx.mpf(5) / 4


def _quadrature_error(
    ctx: Any, value: Any, previous: Any, zero: Any, composite: bool, grid: bool
) -> Any:
    """Estimate the error of the finer of two rules from their difference.

    The trapezoidal rule squares its error with each halving; 3/2 of the digits and a factor of
    ten leave a margin. A composite rule has to agree to all digits. On a grid each level has
    sqrt(2) times the digits of the one before, 1.3 times with a margin.
    """
    if max(abs(value), abs(previous)) <= zero:
        return ctx.zero
    size = max(abs(value), zero)
    difference = abs(value - previous) / size
    if grid:
        return 10 * difference ** ctx.mpf(1.3) * size
    return (difference if composite else 10 * difference ** ctx.mpf(1.5)) * size


def _outer_rule(
    ctx: Any, digits: int, reach: Any, step: float, level: int, even: bool, breaks: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Return nodes and weights from -reach to reach, from 0 if all integrands are even."""
    if breaks:
        return _composite_rule(ctx, digits, reach, level, breaks)
    # A float has 53 bits, so multiples of it are exact here: nodes of one level are nodes of the
    # next, bit for bit, and their tables are not computed again.
    h = ctx.mpf(step)
    n = int(ctx.ceil(reach / h))
    nodes = [k * h for k in range(0 if even else -n, n + 1)]
    weights = [h * ctx.npdf(x) for x in nodes]
    if even:
        weights = [weights[0], *(2 * w for w in weights[1:])]
    return nodes, weights


def _composite_rule(
    ctx: Any, digits: int, reach: Any, level: int, breaks: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    rule = _legendre_rule(ctx, digits, level)
    edges = [-reach, *sorted(b for b in breaks if abs(b) < reach), reach]
    nodes, weights = [], []
    for left, right in pairwise(edges):
        pieces = int(ctx.ceil((right - left) / 2))
        for i in range(pieces):
            a = left + (right - left) * i / pieces
            b = left + (right - left) * (i + 1) / pieces
            for x, w in rule:
                node = (a + b) / 2 + (b - a) / 2 * x
                nodes.append(node)
                weights.append((b - a) / 2 * w * ctx.npdf(node))
    return nodes, weights


def _legendre_rule(ctx: Any, digits: int, level: int) -> list[tuple[Any, Any]]:
    """Return nodes and weights on [-1, 1], twice as many with each level."""
    order = max(2, int(ctx.ceil(ctx.log(max(digits, 4) / 3, 2))) + level)
    rule: list[tuple[Any, Any]] = mpmath.calculus.quadrature.GaussLegendre(ctx).calc_nodes(
        order, ctx.prec
    )
    return rule
