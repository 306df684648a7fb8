"""Solve a generated kernel to any number of digits, in mpmath.

The same program as the float kernel, printed for mpmath. Outer nodes come from the trapezoidal
rule, whose step is halved until two solutions agree; inner expectations without closed form are
integrated with the step that the pole distance asks for, halved until it agrees with half of it
at a few values of the outer variable. Lines that are cut at moving points carry composite
Gauss–Legendre rules whose order is doubled. The digits are estimated in this way, not proven.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import mpmath

from ..errors import ConvergenceError
from . import precise_grids
from .quadrature import trapezoidal_step

# Rounding in thousands of additions, and cancellation in closed forms: digits to spare.
_GUARD_DIGITS = 20
_MOST_HALVINGS = 6
# Where the inner step is checked and the size of the tables is measured: outer nodes at which
# nothing is special. At the ends of the line every activation is as simple as it gets.
_PROBES = (0.0, 0.3, -0.7, 1.1, -1.9, 2.6, -4.3)
# Tables that grow like exp(kappa**2/4) would need more than this many times the usual reach.
_FARTHEST = 4
# Integrands that move with the unknowns may grow: each finer rule goes farther, so that two that
# agree tell of the ends, too.
_LONGER_REACH = 1.25
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
    ctx.dps = digits + _GUARD_DIGITS + spare
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
) -> tuple[dict[str, Any], int]:
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
    int
        Outer nodes used.

    Raises
    ------
    ConvergenceError
        If two successive rules do not agree after five halvings of the step, Newton's method
        fails, or the rule of an inner expectation does not converge.
    """
    namespace: dict[str, Any] = {"ctx": ctx}
    exec(kernel.solver_source, namespace)
    lines = None
    if kernel.table_source:
        lines = _Lines(kernel, values, ctx, digits, step, inner or {}, breaks, widths, progress)
    columns = [column for name in kernel.data for column in (data or {})[name]]
    begin = [ctx.mpf(start[name]) for name in kernel.unknowns]
    tolerance = ctx.mpf(10) ** (-digits - 2)
    wanted = [kernel.outputs.index(name) for name in kernel.results]
    arguments = [values[name] for name in kernel.parameters]
    previous: list[Any] | None = None
    for level in range(_MOST_HALVINGS):
        arrays: list[Sequence[Any]] = []
        reach = _usual_reach(ctx, digits) * ctx.mpf(_LONGER_REACH) ** level
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
        found = {kernel.outputs[k]: out[k] for k in wanted}
        if not arrays:
            return found, nodes
        # What cancels exactly, by a symmetry, is only as small as rounding makes it.
        zero = 10**6 * ctx.eps * max(abs(out[k]) for k in wanted)
        composite = bool(breaks) or kernel.panels
        if previous is not None and all(
            precise_grids.settled(out[k], previous[k], tolerance, zero)
            if kernel.inner_nodes
            else _settled(out[k], previous[k], tolerance, zero, composite)
            for k in wanted
        ):
            return found, nodes
        previous = out
        begin = [out[kernel.outputs.index(name)] for name in kernel.unknowns]
    raise ConvergenceError(
        f"{_MOST_HALVINGS} quadrature rules, each with half the step of the one before, did not "
        f"agree to {digits} digits; "
        "ask for fewer digits or a larger ridge penalty",
        state=previous,
    )


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

        def tables(x: Any) -> tuple[Any, ...]:
            found: tuple[Any, ...] = namespace["tables"](x, *table_values, rule)
            return found

        self._kernel, self._ctx, self._digits = kernel, ctx, digits
        self._step, self._breaks, self._progress = step, breaks, progress
        self._tables = tables
        probes = [tables(ctx.mpf(x)) for x in _PROBES]
        rule.checked = False
        self._grid: precise_grids.PreciseGrid | None = None
        if kernel.inner_nodes:
            self._grid = precise_grids.PreciseGrid(
                namespace, kernel.inner_nodes, table_values, ctx, digits, widths, breaks,
                kernel.even, tables,
            )  # fmt: skip
            return
        self._reach = _sufficient_reach(ctx, digits, tables, probes)
        self._known: dict[Any, tuple[Any, ...]] = {}

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


def _usual_reach(ctx: Any, digits: int) -> Any:
    """Distance beyond which the normal density is negligible, with room for slow growth."""
    return ctx.sqrt(2 * ctx.ln10 * (digits + _GUARD_DIGITS)) + 2


def _sufficient_reach(
    ctx: Any,
    digits: int,
    tables: Callable[[Any], tuple[Any, ...]],
    probes: Sequence[tuple[Any, ...]],
) -> Any:
    """Return how far from zero the outer rule has to go: tables that grow need more.

    `probes` holds the tables at `_PROBES`. All rules share their reach, so that their agreement
    does not show what lies beyond.
    """

    def sizes(x: Any, values: Sequence[Any]) -> list[Any]:
        return [ctx.npdf(x) * value**2 for value in values]

    usual = reach = _usual_reach(ctx, digits)
    inside = [sizes(x, values) for x, values in zip(_PROBES, probes, strict=True)]
    largest = [max(column) for column in zip(*inside, strict=True)]
    negligible = ctx.mpf(10) ** (-digits - _GUARD_DIGITS // 2)
    while reach < _FARTHEST * usual:
        left_end, right_end = (sizes(x, tables(x)) for x in (-reach, reach))
        ends = zip(left_end, right_end, largest, strict=True)
        if all(max(left, right) <= negligible * most for left, right, most in ends):
            break
        reach *= ctx.mpf(5) / 4
    return reach


def _settled(value: Any, previous: Any, tolerance: Any, zero: Any, composite: bool) -> bool:
    """Tell whether the finer of two rules is good to the tolerance.

    The trapezoidal rule squares its error with each halving; 3/2 of the digits and a factor of
    ten leave a margin. A composite rule has to agree to all digits.
    """
    if max(abs(value), abs(previous)) <= zero:
        return True
    difference = abs(value - previous) / max(abs(value), zero)
    return bool((difference if composite else 10 * difference**1.5) <= tolerance)


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


class InnerRule:
    """Integrates over an inner Gaussian variable.

    Attributes
    ----------
    checked : bool
        Each call compares with half the step, and halves the step for good where that differs.
    """

    def __init__(self, ctx: Any, digits: int, inner: Mapping[str, tuple[float, float]]) -> None:
        self._ctx = ctx
        exponent = float(ctx.ln10) * (digits + _GUARD_DIGITS)
        self._steps = {
            slot: trapezoidal_step(strip, growth, exponent)
            for slot, (strip, growth) in inner.items()
        }
        self._rules: dict[tuple[str, int], list[tuple[Any, Any]]] = {}
        self._level = dict.fromkeys(inner, 0)
        self.checked = True
        self._reach = _usual_reach(ctx, digits)
        self._promised = ctx.mpf(10) ** -digits
        self._tolerance = ctx.mpf(10) ** (-digits - _GUARD_DIGITS // 2)

    def __call__(
        self, slot: str, function: Callable[[Any], tuple[Any, ...]], kinks: Sequence[Any]
    ) -> list[Any]:
        """Return the expectations of all values of `function`.

        Raises
        ------
        ConvergenceError
            If rules do not agree while `checked`, or the rule between `kinks` does not converge.
        """
        if kinks:
            inside = sorted(k for k in kinks if abs(k) < self._reach)
            return self._piecewise(function, [-self._reach, *inside, self._reach])
        value = self._sum(slot, self._level[slot], function)
        while self.checked:
            finer = self._sum(slot, self._level[slot] + 1, function)
            if all(
                abs(a - b) <= self._tolerance * (1 + abs(b))
                for a, b in zip(finer, value, strict=True)
            ):
                break
            self._level[slot] += 1
            value = finer
            if self._level[slot] > _MOST_HALVINGS:
                raise ConvergenceError(
                    f"the inner expectation over {slot} does not converge to the digits asked for"
                )
        return value

    def _piecewise(
        self, function: Callable[[Any], tuple[Any, ...]], points: Sequence[Any]
    ) -> list[Any]:
        ctx = self._ctx
        count = len(function(ctx.zero))
        pieces = _pieces(ctx, points)
        values = []
        for k in range(count):
            value, error = ctx.quad(lambda x, k=k: function(x)[k] * ctx.npdf(x), pieces, error=True)
            if not error <= self._promised * (1 + abs(value)):
                raise ConvergenceError(
                    "an inner expectation between kinks does not converge to the digits asked for"
                )
            values.append(value)
        return values

    def _sum(self, slot: str, level: int, function: Callable[[Any], tuple[Any, ...]]) -> list[Any]:
        ctx = self._ctx
        rule = self._rules.get((slot, level))
        if rule is None:
            h = ctx.mpf(self._steps[slot]) / 2**level
            n = int(ctx.ceil(self._reach / h))
            rule = [(k * h, h * ctx.npdf(k * h)) for k in range(-n, n + 1)]
            self._rules[slot, level] = rule
        columns = zip(*(function(x) for x, _ in rule), strict=True)
        weights = [w for _, w in rule]
        return [ctx.fdot(weights, column) for column in columns]


def _pieces(ctx: Any, points: Sequence[Any]) -> list[Any]:
    """Cut long intervals so that the tanh-sinh rule stays in its fast regime."""
    cut = [points[0]]
    for end in points[1:]:
        start, n = cut[-1], max(1, int(ctx.ceil((end - cut[-1]) / 4)))
        cut += [start + (end - start) * i / n for i in range(1, n + 1)]
    return cut
