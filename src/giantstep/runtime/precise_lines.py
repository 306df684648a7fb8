"""Rules on the line and on grids of several Gaussian variables in mpmath, with the tables on them.

Steps of the trapezoidal rule are halved from level to level; where tables have kinks, or the line
is cut at moving points, composite Gauss–Legendre rules have their order doubled. Grids are as
:mod:`.product_grids` in floats, but each level has its steps divided by sqrt(2), and rules between
break points by turns twice as many nodes on longer panels, and the usual panels with these; two
levels that agree tell of the error. Where poles in an inner node go away as one over the node, as
those of tanh(u**2*a + u*b*z) in z, each node has a step of its own, and the line is that of log u.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import ConvergenceError
from .generated import PreciseKernel
from .precise_averages import GUARD_DIGITS, InnerRule, usual_reach
from .rules import (
    GRID_PANEL,
    Rule,
    ball_volume,
    composite,
    equidistant,
    folded,
    legendre,
    legendre_order,
    trapezoidal_step,
)

# Of the density at the end of the grid, beyond the digits asked for.
_GRID_SPARE_DIGITS = 8
# Steps for which a double average over functions of width one has some 12 digits.
_GRID_STEP = 0.2
_GRID_FLOAT_DIGITS = 16
# Of the digits, the share that the first rule should reach; the next one has sqrt(2) times as many.
_GRID_FIRST_SHARE = 0.7
# Where poles tell the step, a rule has no digits to spare: the second one is said to have 1.3 times
# those of the first less one, and solutions have some less than integrals.
_POLE_GROWTH, _POLE_MORE_DIGITS = 1.3, 4
# What is beyond the ends may fall as slowly as exp(-share * reach**2), as for E exp(x*z*u) within
# a logarithm: this squared is the growth of digits by which errors are estimated. Panels would
# hardly get shorter, and need less where averages are not nested.
_GRID_LONGER_REACH, _PANELS_LONGER_REACH = 1.15, 1.05
# Each level multiplies the digits by so much, where the nearest poles decide, or nothing but the
# normal density.
_GRID_LEAST_GROWTH, _GRID_MOST_GROWTH = math.sqrt(2.0), 2.0
# Digits for each node of a panel at the first level: fewer nodes than on a line.
_GRID_ORDER_SHARE = 2.5
# Exponent beyond the digits, for poles of derivatives, which are of higher order.
_POLE_SPARE = 16.0
# Different steps of inner rules between one and its half.
_STEPS_TO_HALF = 8
# A node takes a tenth of a millisecond in each iteration, or a twentieth of that in fast numbers.
MOST_NODES = 400_000
MOST_VARIABLES = 3

Point = tuple[Any, ...]


class PreciseGrid:
    """Rules on grids, one for each level; a generated `namespace` has break points and tables.

    Widths are those of node and inner nodes, breaks those of tables in the node, `tables` returns
    these at a node. Half of the grid suffices if it is even.
    """

    def __init__(
        self, namespace: Mapping[str, Any], inner_nodes: Sequence[str], values: Sequence[Any],
        ctx: Any, digits: int, widths: Sequence[float], breaks: Sequence[Any], even: bool,
        tables: Callable[[Any], tuple[Any, ...]],
    ) -> None:  # fmt: skip
        if len(widths) > MOST_VARIABLES:
            raise ConvergenceError(
                f"averages over more than {MOST_VARIABLES} variables at once are computed in "
                "floats only; leave out digits"
            )
        self._ctx, self._digits, self._values = ctx, digits, values
        self._find_breaks = [namespace[f"product_breaks_{name}"] for name in inner_nodes]
        self._on_grid = namespace["product_tables"]
        self._nested = bool(namespace["NESTED"])
        fading, self._power = namespace["FADING"], namespace["POWER"]
        self._halved = [name in namespace["EVEN"] for name in inner_nodes]
        self._distances = [fading.get(name) for name in inner_nodes]
        # Of poles in inner nodes, times |node|; none before the unknowns are known.
        self._poles: list[float | None] = [None for _ in inner_nodes]
        self._breaks, self._even, self._tables = breaks, even, tables
        somewhere = [ctx.mpf(_PROBES[1])] * len(widths)
        cut = [bool(f(*somewhere[: k + 1], *values)) for k, f in enumerate(self._find_breaks)]
        self._cut = [bool(breaks), *cut]
        share = max(1.0, _GRID_FIRST_SHARE * digits / _GRID_FLOAT_DIGITS)
        self._widths = [width / share for width in widths]
        first_digits = (digits + _POLE_MORE_DIGITS) / _POLE_GROWTH
        self._first_digits = max(first_digits, _GRID_FLOAT_DIGITS)
        self._known: dict[Any, Rule] = {}
        self._legendre: dict[int, Rule] = {}

    @property
    def last_level(self) -> int:
        """The finest level with room for its nodes; -1 without any."""
        level = -1
        while self._nodes(level + 1) <= MOST_NODES:
            level += 1
        return level

    @property
    def fades(self) -> bool:
        """Whether rules become other ones where parameters and unknowns are known."""
        return any(self._distances)

    def arrays(self, level: int, known: Mapping[str, Any] | None) -> list[Sequence[Any]]:
        """Return weights, node, inner nodes and tables.

        `known` holds parameters and unknowns, as far as they are.

        Raises
        ------
        ConvergenceError
            If there are too many nodes.
        """
        ctx = self._ctx
        reach = self._reach(level)
        if known is not None:
            self._poles = [min(map(float, d(known))) if d else None for d in self._distances]
        if self._nodes(level) > MOST_NODES:
            raise ConvergenceError(
                f"{self._digits} digits of an average over {len(self._widths)} variables at once "
                f"would need {self._nodes(level):.0e} nodes, more than {MOST_NODES:.0e}; ask for "
                "fewer digits"
            )
        points: list[tuple[Point, Any]] = []
        for x, w in self._outer(reach, level).pairs():
            points.append(((x,), w))
        inner = zip(
            self._find_breaks, self._widths[1:], self._poles, self._halved, strict=True
        )  # fmt: skip
        for find, width, pole, halved in inner:
            extended = []
            for point, weight in points:
                # Nested averages are taken at each node by themselves.
                counted = point[1:] if self._nested else point
                left = ctx.sqrt(max(reach**2 - sum(x * x for x in counted), 0))
                breaks = find(*point, *self._values)
                step = self._step(width, level)
                if pole is not None:
                    step = self._pole_step(pole, point, level)
                line = self._line(breaks, step, left, level)
                line = folded(line) if halved else line
                extended += [((*point, x), weight * w) for x, w in line.pairs()]
            points = extended
        tables = {x: self._tables(x) for x in dict.fromkeys(p[0] for p, _ in points)}
        rows = [
            (w, *p, *tables[p[0]], *self._on_grid(*p, *self._values, tables[p[0]]))
            for p, w in points
        ]
        return list(zip(*rows, strict=True))

    def _reach(self, level: int) -> Any:
        ctx = self._ctx
        reach = ctx.sqrt(2 * ctx.ln10 * (self._digits + _GRID_SPARE_DIGITS)) + 1
        # Each rule goes farther, so that two that agree tell of the ends, too.
        panels = any(self._cut) and not self._nested
        return reach * ctx.mpf(_PANELS_LONGER_REACH if panels else _GRID_LONGER_REACH) ** level

    def _panels(self, level: int) -> tuple[int, Any]:
        """Return order and longest panel of rules between break points."""
        order = legendre_order(self._ctx, self._digits, _GRID_ORDER_SHARE)
        # Twice the nodes on longer panels have more digits for each than those on the usual ones.
        return order + 1 + level // 2, GRID_PANEL * self._ctx.sqrt(2 - level % 2)

    def _step(self, width: float, level: int) -> float:
        return _GRID_STEP * width / math.sqrt(2.0) ** level

    def _exponent(self, level: int) -> float:
        digits = self._first_digits * _POLE_GROWTH**level
        return math.log(10.0) * digits + _POLE_SPARE

    def _pole_step(self, pole: float, point: Point, level: int) -> float:
        """Return the step for poles at a distance of one over the node, or a little less.

        Equal steps share their nodes. Far out little is asked for.
        """
        density = sum(float(x) ** 2 for x in point) / 2
        exponent = max(self._exponent(level) - density, _POLE_SPARE)
        step = trapezoidal_step(pole / abs(float(point[0])), exponent=exponent)
        return 2.0 ** (math.floor(_STEPS_TO_HALF * math.log2(step)) / _STEPS_TO_HALF)

    def _outer(self, reach: Any, level: int) -> Rule:
        """Return the rule of the node."""
        ctx = self._ctx
        if all(pole is None for pole in self._poles):
            line = self._line(self._breaks, self._step(self._widths[0], level), reach, level)
            return folded(line) if self._even else line
        # A singularity as of exp(-1/u**2) at u = 0: with u = exp(t) integrands are analytic where
        # |Im t| < pi/4, for there neither that nor the normal density grows.
        h = ctx.mpf(trapezoidal_step(math.pi / 4, exponent=self._exponent(level)))
        first = -math.ceil(self._exponent(level) / ((1 + self._power) * float(h)))
        right = [ctx.exp(k * h) for k in range(first, int(ctx.floor(ctx.log(reach) / h)) + 1)]
        weights = [h * x * ctx.npdf(x) for x in right]
        if self._even:
            return Rule(right, [2 * w for w in weights], level)
        return Rule([*(-x for x in right[::-1]), *right], [*weights[::-1], *weights], level)

    def _line(self, breaks: Iterable[Any], step: float, reach: Any, level: int) -> Rule:
        ctx = self._ctx
        breaks = tuple(breaks)
        if breaks:
            known = self._known.get((breaks, reach))
            if known is None:
                order, longest = self._panels(level)
                if order not in self._legendre:
                    self._legendre[order] = legendre(ctx, order)
                known = composite(ctx, breaks, reach, longest, self._legendre[order], level)
                if self._nested:
                    # The next node has the same reach, and often the same breaks.
                    self._known[breaks, reach] = known
            return known
        h = ctx.mpf(step)
        count = int(ctx.floor(reach / h))
        known = self._known.get(h)
        if known is None or len(known.nodes) < 2 * count + 1:
            known = self._known[h] = equidistant(ctx, h, count, level)
        cut = len(known.nodes) // 2 - count
        part = slice(cut, len(known.nodes) - cut)
        return Rule(known.nodes[part], known.weights[part], level)

    def _nodes(self, level: int) -> float:
        """Estimate the nodes of a level; of pieces between break points those of whole panels."""
        reach, n = float(self._reach(level)), len(self._widths)
        if n == 2 and self._poles[0] is not None:
            line = [(float(x),) for x in self._outer(self._reach(level), level).nodes]
            each = [self._pole_step(self._poles[0], x, level) for x in line]
            ends = [math.sqrt(max(reach**2 - x**2, 0)) for (x,) in line]
            nodes = math.fsum(2 * end / h + 1 for end, h in zip(ends, each, strict=True))
            return nodes / 2 ** sum(self._halved)
        ball = ball_volume(n - 1, reach) * 2 * reach if self._nested else ball_volume(n, reach)
        order, longest = self._panels(level)
        panel = float(longest) / (3 * 2 ** (order - 1))
        steps = math.prod(
            panel if cut else self._step(width, level)
            for width, cut in zip(self._widths, self._cut, strict=True)
        )
        return ball / steps / 2 ** (self._even + sum(self._halved))


# Where the inner step is checked and the size of the tables is measured: outer nodes at which
# nothing is special. At the ends of the line every activation is as simple as it gets.
_PROBES = (0.0, 0.3, -0.7, 1.1, -1.9, 2.6, -4.3)
# Tables that grow like exp(kappa**2/4) would need more than this many times the usual reach.
_FARTHEST = 4
# Integrands that move with the unknowns may grow: each finer rule goes farther, so that two that
# agree tell of the ends, too.
LONGER_REACH = 1.25
# A float solution's step gives at least this many digits, and the first of two rules need only
# reach two thirds of those that are wanted. They may grow like the square of the inverse step:
# coarser rules, whose nodes the finer ones have anyway, are tried before.
_COARSER = 4
_FLOAT_DIGITS = 16
# A panel of a line that is cut at moving points is at most this long.
_PANEL_LENGTH = 2


class Lines:
    """Rules over fixed nodes with the tables on them; a table is computed once for each node."""

    def __init__(
        self, kernel: PreciseKernel, values: Mapping[str, Any], ctx: Any, digits: int,
        step: float, inner: Mapping[str, tuple[float, float, float]], breaks: Sequence[Any],
        widths: Sequence[float], progress: Callable[[int, int], None] | None,
    ) -> None:  # fmt: skip
        namespace = kernel.table_functions(ctx)
        table_values = [values[name] for name in kernel.table_parameters]
        # Unknowns that are large magnify what is wrong with the tables.
        rule = InnerRule(ctx, max(digits, ctx.dps - GUARD_DIGITS), inner)
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
        self._grid: PreciseGrid | None = None
        self.truncation = ctx.zero
        if kernel.inner_nodes:
            # Each level of a grid goes farther: the difference of two tells of the ends.
            self._grid = PreciseGrid(
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

    def require_growth(self, level: int, errors: Sequence[Any]) -> None:
        """Refuse a grid on which the digits of the last levels grow too slowly to be in reach.

        `errors` are those of all levels, of the first one zero.

        Raises
        ------
        ConvergenceError
        """
        # A first level has no difference yet, and digits that are no more than noise tell nothing.
        if self._grid is None or len(errors) < 3 or not all(0 < e < 1e-2 for e in errors[-2:]):
            return
        before, now = (-float(self._ctx.log10(e)) for e in errors[-2:])
        growth = min(max(now / before, _GRID_LEAST_GROWTH), _GRID_MOST_GROWTH)
        if now * growth ** (self._grid.last_level - level) < self._digits:
            raise ConvergenceError(
                f"{self._digits} digits of an average over several variables at once would need "
                f"more than {MOST_NODES:.0e} nodes: level {level} of the grids has "
                f"{int(now)}, the one before {int(before)}; ask for fewer digits"
            )

    @property
    def fades(self) -> bool:
        """Whether rules become other ones where parameters and unknowns are known."""
        return self._grid is not None and self._grid.fades

    def arrays(self, level: int, known: Mapping[str, Any] | None = None) -> list[Sequence[Any]]:
        """Return weights, nodes and tables; a grid may look at parameters and unknowns."""
        if self._grid is not None:
            return self._grid.arrays(level, known)
        longer = self._ctx.mpf(LONGER_REACH) ** level if self._kernel.moving else 1
        rule = outer_rule(
            self._ctx, self._digits, self._reach * longer, self._step / 2**level, level,
            self._kernel.even, self._breaks,
        )  # fmt: skip
        nodes, weights = rule
        for k, x in enumerate(nodes):
            if x not in self._known:
                self._known[x] = self._tables(x)
            if self._progress is not None:
                self._progress(k + 1, len(nodes))
        return [weights, nodes, *zip(*(self._known[x] for x in nodes), strict=True)]


def first_step(resolved: float, digits: int) -> float:
    """Return the first step for some digits, from one that gives floats theirs.

    Digits grow at least like the inverse step to the power 4/3.
    """
    return resolved * min(1.0, _COARSER * (_FLOAT_DIGITS / (2 / 3 * digits)) ** 0.75)


def panel_rule(ctx: Any, digits: int, reach: Any, level: int) -> list[Sequence[Any]]:
    """Return weights and nodes of a composite rule on [0, 1], good for a whole line."""
    rule = legendre(ctx, legendre_order(ctx, digits) + level)
    panels = int(ctx.ceil(2 * reach / _PANEL_LENGTH))
    nodes = [(k + (1 + x) / 2) / panels for k in range(panels) for x in rule.nodes]
    weights = [w / (2 * panels) for _ in range(panels) for w in rule.weights]
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


def outer_rule(
    ctx: Any, digits: int, reach: Any, step: float, level: int, even: bool, breaks: Sequence[Any]
) -> Rule:
    """Return the rule from -reach to reach, from 0 if all integrands are even."""
    if breaks:
        rule = legendre(ctx, legendre_order(ctx, digits) + level)
        return composite(ctx, breaks, reach, _PANEL_LENGTH, rule, level)
    # A float has 53 bits, so multiples of it are exact here: nodes of one level are nodes of the
    # next, bit for bit, and their tables are not computed again.
    h = ctx.mpf(step)
    rule = equidistant(ctx, h, int(ctx.ceil(reach / h)), level)
    return folded(rule) if even else rule
