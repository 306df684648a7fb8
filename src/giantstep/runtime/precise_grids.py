"""Grids of several Gaussian variables in mpmath, with the tables on them.

As :mod:`.product_rules` in floats, but each level has its steps divided by sqrt(2), and rules
between break points twice as many nodes; two levels that agree tell of the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import ConvergenceError
from .precise_rules import Rule, composite, equidistant, legendre_order

# Of the density at the end of the grid, beyond the digits asked for.
_GRID_SPARE_DIGITS = 8
# Steps for which a double average over functions of width one has some 12 digits.
_GRID_STEP = 0.2
_GRID_FLOAT_DIGITS = 16
# Of the digits, the share that the first rule should reach; the next one has sqrt(2) times as many.
_GRID_FIRST_SHARE = 0.7
_GRID_LONGER_REACH = 1.05
_GRID_PANEL_LENGTH = 3.0
# Digits for each node of a panel at the first level: fewer nodes than on a line.
_GRID_ORDER_SHARE = 5
# A node takes about a millisecond in each iteration.
MOST_NODES = 150_000
MOST_VARIABLES = 3

Point = tuple[Any, ...]


class PreciseGrid:
    """Rules on grids, one for each level.

    Parameters
    ----------
    namespace : mapping
        Generated: ``product_breaks_NAME``, ``product_tables`` and ``NESTED``.
    inner_nodes : sequence of str
    values : sequence
        Parameters of the tables, as numbers of `ctx`.
    ctx : mpmath context
    digits : int
    widths : sequence of float
        Of the node and the inner nodes.
    breaks : sequence
        Of tables in the node.
    even : bool
        Half of the grid suffices.
    tables : callable
        Returns the tables of the node at a node.
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
        self._breaks, self._even, self._tables = breaks, even, tables
        share = max(1.0, _GRID_FIRST_SHARE * digits / _GRID_FLOAT_DIGITS)
        self._widths = [width / share for width in widths]

    def arrays(self, level: int) -> list[Sequence[Any]]:
        """Return weights, node, inner nodes and tables.

        Raises
        ------
        ConvergenceError
            If there are too many nodes.
        """
        ctx = self._ctx
        reach = ctx.sqrt(2 * ctx.ln10 * (self._digits + _GRID_SPARE_DIGITS)) + 1
        # Each rule goes farther, so that two that agree tell of the ends, too.
        reach *= ctx.mpf(_GRID_LONGER_REACH) ** level
        self._require_room(float(reach), level)
        points: list[tuple[Point, Any]] = []
        for x, w in self._line(self._breaks, self._widths[0], reach, level):
            if not self._even:
                points.append(((x,), w))
            elif x >= 0:
                points.append(((x,), 2 * w if x > 0 else w))
        for find, width in zip(self._find_breaks, self._widths[1:], strict=True):
            extended = []
            for point, weight in points:
                # Nested averages are taken at each node by themselves.
                counted = point[1:] if self._nested else point
                left = ctx.sqrt(max(reach**2 - sum(x * x for x in counted), 0))
                breaks = find(*point, *self._values)
                extended += [
                    ((*point, x), weight * w) for x, w in self._line(breaks, width, left, level)
                ]
            points = extended
        known = {x: self._tables(x) for x in dict.fromkeys(p[0] for p, _ in points)}
        rows = [
            (w, *p, *known[p[0]], *self._on_grid(*p, *self._values, known[p[0]])) for p, w in points
        ]
        return list(zip(*rows, strict=True))

    def _line(self, breaks: Iterable[Any], width: float, reach: Any, level: int) -> Rule:
        ctx = self._ctx
        breaks = list(breaks)
        if breaks:
            order = legendre_order(ctx, self._digits, _GRID_ORDER_SHARE) + level
            return composite(ctx, breaks, reach, _GRID_PANEL_LENGTH, order)
        h = ctx.mpf(_GRID_STEP * width / math.sqrt(2.0) ** level)
        return equidistant(ctx, h, int(ctx.floor(reach / h)))

    def _require_room(self, reach: float, level: int) -> None:
        n = len(self._widths)
        ball = _ball(n - 1, reach) * 2 * reach if self._nested else _ball(n, reach)
        steps = math.prod(_GRID_STEP * width / math.sqrt(2.0) ** level for width in self._widths)
        nodes = ball / steps / (2 if self._even else 1)
        if nodes > MOST_NODES:
            raise ConvergenceError(
                f"{self._digits} digits of an average over {n} variables at once would need "
                f"{nodes:.0e} nodes, more than {MOST_NODES:.0e}; ask for fewer digits"
            )


def _ball(dimension: int, radius: float) -> float:
    return math.pi ** (dimension / 2) / math.gamma(dimension / 2 + 1) * radius**dimension
