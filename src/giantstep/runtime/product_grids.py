"""Grids of several Gaussian variables: rules of points with their weights, and the tables on them.

Of :mod:`.quadrature` panels are used; files that compute grids carry copies of both. A grid is made
variable by variable: each point of the earlier ones carries a rule for the next, trapezoidal, or
composite Gauss-Legendre between break points of its own. Points farther from the origin than the
reach, where the density is next to nothing, are left out. Nested averages are taken at each node by
themselves, so there the distance is that in the inner nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import ConvergenceError
from .levels import Tables
from .quadrature import (
    PANEL_ORDER,
    equidistant_rule,
    halved,
    legendre_panels,
    normal_density,
    sufficient_reach,
)
from .rules import (
    GRID_INNER_STEP,
    GRID_PANEL,
    GRID_REACH,
    GRID_REFINEMENT,
    GRID_STEP,
    LAST_LEVEL,
    LONGER_GRID_REACH,
    MOST_FIRST_NODES,
    MOST_GRID_NODES,
    MOST_NARROW_NODES,
    NEGLIGIBLE_ON_GRID,
    Rule,
    ball_volume,
    grid_coarseness,
    grid_end,
)


@dataclass(frozen=True)
class Steep:
    """Places of the node around which integrands vary on a smaller width than elsewhere.

    Attributes
    ----------
    places : tuple of float
    width : float
    elsewhere : tuple of float
        Parameters of the tables with which nothing is steep.
    inner : callable, optional
        Widths of integrands in each inner node at nodes of the line, as far as they are smaller
        than those of tables. Rules are as fine as the number of nodes allows.
    reach : float
        How far they have to go at least.
    """

    places: tuple[float, ...]
    width: float
    elsewhere: tuple[float, ...]
    inner: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None
    reach: float = 0.0


# Of distances from a steep place, from panel to panel.
STEEP_GROWTH = 4.0


def cut_rule(breaks, length, reach):
    """Return a composite Gauss-Legendre rule from -reach to reach, cut at break points."""
    x, w, _ = cut_rules(np.array([breaks], dtype=float), length, np.array([float(reach)]))
    return Rule(x, w)


def cut_rules(breaks, length, reach):
    """Return nodes, weights and lines of such rules for many lines, one after the other.

    Break points, an array (N, b), that are not finite or beyond the reach do not matter; panels are
    of a length at the most; weights include the normal density.
    """
    ends = reach[:, None]
    # NaN is no place either.
    inside = np.sort(np.where(np.abs(breaks) < ends, breaks, ends), axis=1)
    edges = np.concatenate([-ends, inside, ends], axis=1)
    widths = np.diff(edges, axis=1)
    counts = np.ceil(widths / np.broadcast_to(length, len(ends))[:, None]).astype(np.int64)
    line, piece = np.nonzero(counts)
    count = counts[line, piece]
    panel = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    first, last, width, many = (
        np.repeat(a, count)
        for a in (edges[line, piece], edges[line, piece + 1], widths[line, piece], count)
    )
    right = np.where(panel + 1 == many, last, first + (panel + 1) * (width / many))
    x, w = legendre_panels(np.stack([first + panel * (width / many), right], axis=1))
    index = np.repeat(np.repeat(line, count), PANEL_ORDER)
    x, w = x.ravel(), w.ravel()
    return x, w * normal_density(x), index


def graded_edges(places, width, growth, reach):
    """Return break points that crowd around steep places, each up to half the way to the next one.

    The first ones are at the width on which integrands vary there, the others farther by a factor.
    Places closer to one before than the width are in its panels.
    """
    apart = []
    for place in sorted(places):
        if not apart or place - apart[-1] > width:
            apart.append(place)
    found = list(apart)
    for k, place in enumerate(apart):
        for side in (-1, 1):
            inside = 0 <= k + side < len(apart)
            end = abs(apart[k + side] - place) / 2 if inside else reach
            distance = width
            while distance < end:
                found.append(place + side * distance)
                distance = growth * distance
            if inside and side > 0:
                found.append(place + end)
    return found


def extended(points, weights, breaks, step, length, reach, nested=False):
    """Return the points and weights of a grid with one variable more.

    It has trapezoidal rules of a step, or panels of a length between `breaks`, an array (N, b);
    both may differ from point to point.
    """
    left = np.sqrt(np.maximum(reach**2 - squares(points, nested), 0.0))
    if breaks.shape[1]:
        new, factors, index = cut_rules(breaks, length, left)
    else:
        step = np.broadcast_to(step, left.shape)
        most = np.floor(left / step * (1 + 1e-12)).astype(np.int64)
        index = np.repeat(np.arange(len(left)), 2 * most + 1)
        first = np.cumsum(2 * most + 1) - most - 1
        new = (np.arange(len(index)) - first[index]) * step[index]
        factors = step[index] * normal_density(new)
    return [*(x[index] for x in points), new], weights[index] * factors


def squares(points, nested):
    """Return squared distances of points; of nested averages in their inner nodes."""
    return sum((x * x for x in points[int(nested) :]), np.zeros(len(points[0])))


def grid_rule(
    scales,
    outer_breaks,
    inner_breaks,
    even,
    coarsening,
    reach,
    steep=None,
    nested=False,
    narrower=None,
):
    """Return the points, an array for each variable, and the weights of one rule.

    Parameters
    ----------
    scales : sequence of float
        Widths of integrands in the node and in each inner node.
    outer_breaks, inner_breaks : sequence
        Kinks in the node; functions of the earlier variables that return those of each inner node.
    even : bool
        Integrands are even: half of the grid, with doubled weights.
    coarsening : float
        What the steps of the first level are multiplied by.
    reach : float
    steep : tuple of (sequence of float, float), optional
        Places in the node around which integrands vary on a smaller width, and this width: the
        line is cut in panels that grow with the distance.
    nested : bool
        Averages over the inner nodes are taken at each node: all inner lines are as long.
    narrower : callable, optional
        Widths in inner nodes at nodes of the line, where they are below those of `scales`.
    """
    if steep is not None:
        places, width = steep
        growth = 1.0 + (STEEP_GROWTH - 1.0) * coarsening
        edges = graded_edges(places, width * coarsening, growth, reach)
        length = GRID_PANEL * scales[0] * coarsening
        line = cut_rule([*outer_breaks, *edges, 0.0], length, reach)
    elif len(outer_breaks):
        length = GRID_PANEL * scales[0] * coarsening
        line = cut_rule([*outer_breaks, 0.0], length, reach)
    else:
        step = GRID_STEP * scales[0] * coarsening
        line = equidistant_rule(step, math.floor(reach / step))
    x, weights = halved(line) if even else line
    points = [x]
    for find, widest in zip(inner_breaks, scales[1:], strict=True):
        scale = widest if narrower is None else np.minimum(widest, narrower(points[0]))
        points, weights = extended(
            points,
            weights,
            find(*points),
            GRID_INNER_STEP * scale * coarsening,
            GRID_PANEL * scale * coarsening,
            reach,
            nested,
        )
    return Rule(points, weights)


def grid_nodes(scales, cut, even, reach, steep=None, nested=False):
    """Return about how many nodes the rule of the first level has.

    `cut` says of each variable whether it has break points; `steep` and `nested` are as for
    `grid_rule`.
    """
    steps = [GRID_STEP, *(GRID_INNER_STEP for _ in scales[1:])]
    density = math.prod(
        1 / scale / (GRID_PANEL / PANEL_ORDER if broken else step)
        for scale, step, broken in zip(scales, steps, cut, strict=True)
    )
    ball = ball_volume(len(scales), reach)
    if nested:
        ball = 2 * reach * ball_volume(len(scales) - 1, reach)
    if steep is not None:
        places, width = steep
        panels = 2 * reach / (GRID_PANEL * scales[0])
        crowded = len(graded_edges(places, width, STEEP_GROWTH, reach))
        density *= 1.0 + crowded / panels
    return ball * density / (2 if even else 1)


# Nodes of the line at which widths in inner nodes are looked at.
_WIDTHS = 101
# Up to this part of the width elsewhere uniform steps take fewer nodes than crowded panels.
_STEEP = 0.25
# Part of the width of integrands that the first level resolves to many digits.
_SEEN = 0.5
# By which widths are made wider until there is room for the nodes.
_WIDER = 1.25

Array = NDArray[np.float64]


class ProductGrid:
    """The rules of a kernel with inner nodes, or of a line with steep places.

    Parameters
    ----------
    tables : Tables
        Of a generated module with ``product_scales``, ``NESTED``, … if there are inner nodes.
        The first nodes go from end to end.
    inner_nodes : sequence of str
    even : bool
        Half of the grid suffices.
    steep : Steep, optional
    reach : float, optional
        That of another grid with the same tables.
    """

    # Nodes multiply: what rounding does to tables is looked for on the coarsest rule first.
    costly = True

    def __init__(
        self, tables: Tables, inner_nodes: Sequence[str], even: bool, steep: Steep | None = None,
        reach: float | None = None,
    ) -> None:  # fmt: skip
        module, values = tables.module, tables.values
        self.tables, self._inner, self._even = tables, inner_nodes, even
        self.halvings = 2.0 if inner_nodes else 1.0
        node = np.zeros(1)
        with np.errstate(divide="ignore", over="ignore"):
            # A slope of zero in a variable sets no scale: its width is infinite.
            crowded = steep is not None and bool(steep.places)
            outer = float(
                module.outer_scale(node, *(steep.elsewhere if steep and crowded else values))
            )
            narrower = steep.inner if steep else None
            least = steep.reach if steep else 0.0
            if steep and not (crowded and steep.width < _STEEP * outer):
                outer = float(module.outer_scale(node, *values))
                # Tables do not show what is smoothed by other variables, or is of a solution.
                outer = min(outer, steep.width)
                steep = None
            found = module.product_scales(node, *values) if inner_nodes else ()
            self._widest = [outer, *map(float, found)]
        self._breaks = [float(b) for b in module.breaks(node, *values)]
        self._steep = (steep.places, steep.width) if steep else None
        self._nested = bool(inner_nodes) and module.NESTED
        self._scales = self._widest
        self._narrower: Callable[[Array], Array] | None = None
        # Whether rules are as fine as integrands are known to be narrow.
        self.seen = narrower is None or self._make_room(narrower)
        # Crowded panels are not halved from rule to rule, and what no rule resolves is no better on
        # the next one: a gain would be luck. Without a third rule none is claimed.
        self.coarsest = 1 if steep or not self.seen else 2
        self._rules: dict[tuple[int, int], Rule] = {}
        self._first = self._require_room(GRID_REACH)
        self.reach = max(least, self._sufficient_reach() if reach is None else reach)
        self._first = self._require_room(self.reach)

    @property
    def step(self) -> float:
        """The smallest step at the first level."""
        outer, *inner = self._scales
        # Steps shrink towards steep places, whose integrands are the narrow ones.
        shrunk = 1.0 if self._steep is None else min(1.0, self._steep[1])
        return shrunk * min([GRID_STEP * outer, *(GRID_INNER_STEP * x for x in inner)])

    @property
    def narrowest(self) -> float:
        """The width in the node of what the rules of the first level see."""
        return _SEEN * self._scales[0] if self._steep is None else self._steep[1]

    @property
    def finest(self) -> int:
        """The last level with a bounded number of nodes."""
        growth = (GRID_REFINEMENT * LONGER_GRID_REACH) ** len(self._scales)
        room = math.log(max(MOST_GRID_NODES / self._first, 1.0))
        return min(int(room / math.log(growth)), LAST_LEVEL)

    def lines(
        self, level: int, shift: float = 1.0, backs: Sequence[int] | None = None
    ) -> list[Array]:
        """Return [fine, medium, coarse]: weight, node, inner nodes, tables at shift * nodes."""
        wanted = backs or (0, 1, self.coarsest)
        distinct = sorted({*wanted})
        for back in distinct:
            if (level, back) not in self._rules:
                self._rules[level, back] = self._rule(level, back)
        # All rules are tabulated at once.
        points, weights = zip(*(self._rules[level, back] for back in distinct), strict=True)
        together = [np.concatenate(parts) for parts in zip(*points, strict=True)]
        rows = self._stack(together, np.concatenate(weights), shift)
        parts = np.split(rows, np.cumsum([len(w) for w in weights])[:-1], axis=1)
        made = dict(zip(distinct, map(np.ascontiguousarray, parts), strict=True))
        return [made[back] for back in wanted]

    def _rule(self, level: int, back: int) -> Rule:
        found: Rule = grid_rule(
            self._widest, self._breaks, [self._inner_breaks(x) for x in self._inner],
            self._even, grid_coarseness(level, back), grid_end(self.reach, level, back),
            self._steep, self._nested, self._narrower,
        )  # fmt: skip
        return found

    def _inner_breaks(self, name: str) -> Callable[..., Array]:
        def find(*points: Array) -> Array:
            with np.errstate(all="ignore"):
                found: Array = getattr(self.tables.module, f"product_breaks_{name}")(
                    *points, *self.tables.values
                )
            return found

        return find

    def _stack(self, points: list[Array], weights: Array, shift: float) -> Array:
        tables = self._on_points([shift * x for x in points])
        rows = [weights, *points, *(tables[n] for n in self.tables.names)]
        return np.stack(rows)

    def _on_points(self, points: list[Array]) -> dict[str, Array]:
        x, back = np.unique(points[0], return_inverse=True)
        tables = {name: table[back] for name, table in self.tables(x).items()}
        if not self._inner:
            return tables
        with np.errstate(all="ignore"):
            on_grid = self.tables.module.product_tables(*points, *self.tables.values, tables)
        return {**tables, **on_grid}

    def _sufficient_reach(self) -> float:
        """Return the radius beyond which tables times the density are negligible."""
        variables = 1 + len(self._inner)
        directions = [*np.eye(variables), np.ones(variables) / math.sqrt(variables)]

        def tables(x: Array) -> Array:
            points = [np.concatenate([d[k] * x for d in directions]) for k in range(variables)]
            return np.array([*self._on_points(points).values()]).reshape(-1, len(x))

        found: float = sufficient_reach(GRID_REACH, tables, NEGLIGIBLE_ON_GRID)
        return found

    def _make_room(self, narrower: Callable[[Array], Array]) -> bool:
        """Set widths in inner nodes that leave room for the nodes; tell whether none is wider."""
        widths = narrower(np.linspace(-GRID_REACH, GRID_REACH, _WIDTHS))
        least = narrowest = float(np.min(widths))
        inner = self._widest[1:]
        self._fit_scales(widths)
        while self._nodes(GRID_REACH) > MOST_NARROW_NODES and least < max(inner):
            least *= _WIDER
            self._fit_scales(np.maximum(widths, least))
        if least == narrowest:
            self._narrower = narrower
            return True
        self._narrower = lambda x: np.maximum(narrower(x), least)
        return False

    def _fit_scales(self, widths: Array) -> None:
        """Set the average scales of inner nodes, which the number of nodes follows."""
        outer, *inner = self._widest
        self._scales = [outer, *(float(1 / np.mean(1 / np.minimum(x, widths))) for x in inner)]

    def _nodes(self, reach: float) -> float:
        """Return about how many nodes the finest rule of the first level has."""
        points = [np.zeros(1)]
        cut = [bool(self._breaks) or self._steep is not None]
        for name in self._inner:
            cut.append(self._inner_breaks(name)(*points).shape[1] > 0)
            points.append(np.zeros(1))
        return float(grid_nodes(self._scales, cut, self._even, reach, self._steep, self._nested))

    def _require_room(self, reach: float) -> float:
        """Return this number if it is no larger than it may be."""
        nodes = self._nodes(reach)
        if not nodes <= MOST_FIRST_NODES:
            raise ConvergenceError(
                f"the averages over {len(self._scales)} Gaussian variables would need "
                f"{nodes:.1e} nodes, more than {MOST_FIRST_NODES:.1e}: an integrand varies on a "
                "scale far below one; take parameters that are less extreme, or bring one of the "
                "averages to closed form"
            )
        return nodes
