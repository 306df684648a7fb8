"""Grids of several Gaussian variables with the tables on them, for kernels with inner nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from ..errors import ConvergenceError
from .product_rules import (
    FARTHEST_REACH,
    GRID_REACH,
    INNER_STEP,
    LONGER_REACH,
    MOST_GRID_NODES,
    NESTED_REACH,
    REFINEMENT,
    STEP,
    grid_nodes,
    grid_rule,
)
from .steep_places import Steep

_NEGLIGIBLE = 1e-13
# Of the finest rule of the first level.
_MOST_FIRST_NODES = 2**21
# Up to this part of the width elsewhere uniform steps take fewer nodes than crowded panels.
_STEEP = 0.25
# Part of the width of integrands that the first level resolves to many digits.
_SEEN = 0.5

Array = NDArray[np.float64]
Tabulate = Callable[[Array], dict[str, Array]]


class ProductGrid:
    """The rules of a kernel with inner nodes.

    Parameters
    ----------
    module : module
        Generated: ``outer_scale``, ``breaks``, ``product_scales``, ``NESTED``, …
    values : sequence of float
        Parameters of the tables.
    inner_nodes, names : sequence of str
        Inner nodes; tables in the order of the solver.
    even : bool
        Half of the grid suffices.
    tabulate : callable
        Returns the tables of the node.
    steep : Steep, optional
    """

    def __init__(
        self, module: ModuleType, values: Sequence[float], inner_nodes: Sequence[str],
        names: Sequence[str], even: bool, tabulate: Tabulate, steep: Steep | None = None,
    ) -> None:  # fmt: skip
        self._module, self._values, self._tabulate = module, values, tabulate
        self._inner, self._names, self._even = inner_nodes, names, even
        node = np.zeros(1)
        with np.errstate(divide="ignore", over="ignore"):
            # A slope of zero in a variable sets no scale: its width is infinite.
            crowded = steep is not None and bool(steep.places)
            outer = float(
                module.outer_scale(node, *(steep.elsewhere if steep and crowded else values))
            )
            finer = steep.inner if steep else math.inf
            if steep and not (crowded and steep.width < _STEEP * outer):
                steep, outer = None, float(module.outer_scale(node, *values))
            inner = [min(float(x), finer) for x in module.product_scales(node, *values)]
        self._scales = [outer, *inner]
        self._breaks = [float(b) for b in module.breaks(node, *values)]
        self._steep = (steep.places, steep.width) if steep else None
        self._rules: dict[int, list[tuple[list[Array], Array]]] = {}
        self._first = self._require_room(GRID_REACH)
        self._reach = self._sufficient_reach()
        self._first = self._require_room(self._reach)

    @property
    def step(self) -> float:
        """The smallest step at the first level."""
        outer, *inner = self._scales
        # Steps shrink towards steep places, whose integrands are the narrow ones.
        shrunk = 1.0 if self._steep is None else min(1.0, self._steep[1])
        return shrunk * min(STEP * outer, *(INNER_STEP * x for x in inner))

    @property
    def narrowest(self) -> float:
        """The width in the node of what the rules of the first level see."""
        return _SEEN * self._scales[0] if self._steep is None else self._steep[1]

    @property
    def finest(self) -> int:
        """The last level with a bounded number of nodes."""
        growth = (REFINEMENT * LONGER_REACH) ** len(self._scales)
        room = math.log(max(MOST_GRID_NODES / self._first, 1.0))
        return int(room / math.log(growth))

    def lines(self, level: int, shift: float) -> list[Array]:
        """Return [fine, medium, coarse]: weight, node, inner nodes, tables at shift * nodes."""
        if level not in self._rules:
            self._rules[level] = [self._rule(level, back) for back in range(3)]
        return [self._stack(points, weights, shift) for points, weights in self._rules[level]]

    def _rule(self, level: int, back: int) -> tuple[list[Array], Array]:
        longest = min(self._reach * LONGER_REACH**level, max(self._reach, FARTHEST_REACH))
        found: tuple[list[Array], Array] = grid_rule(
            self._scales, self._breaks, [self._inner_breaks(x) for x in self._inner],
            self._even, 2**back / REFINEMENT**level, longest * NESTED_REACH**back,
            self._steep, self._module.NESTED,
        )  # fmt: skip
        return found

    def _inner_breaks(self, name: str) -> Callable[..., Array]:
        def find(*points: Array) -> Array:
            with np.errstate(all="ignore"):
                found: Array = getattr(self._module, f"product_breaks_{name}")(
                    *points, *self._values
                )
            return found

        return find

    def _stack(self, points: list[Array], weights: Array, shift: float) -> Array:
        tables = self._tables([shift * x for x in points])
        rows = [weights, *points, *(tables[n] for n in self._names)]
        return np.ascontiguousarray(np.stack(rows))

    def _tables(self, points: list[Array]) -> dict[str, Array]:
        x, back = np.unique(points[0], return_inverse=True)
        tables = {name: table[back] for name, table in self._tabulate(x).items()}
        with np.errstate(all="ignore"):
            on_grid = self._module.product_tables(*points, *self._values, tables)
        return {**tables, **on_grid}

    def _sufficient_reach(self) -> float:
        """Return the radius beyond which tables times the density are negligible."""
        variables = 1 + len(self._inner)
        directions = [*np.eye(variables), np.ones(variables) / math.sqrt(variables)]
        reach = GRID_REACH
        while True:
            x = np.linspace(-reach, reach, 43)
            ends = []
            for direction in directions:
                tables = self._tables([c * x for c in direction])
                with np.errstate(divide="ignore", invalid="ignore"):
                    sizes = [2 * np.log(np.abs(table)) - x**2 / 2 for table in tables.values()]
                ends += [max(s[0], s[-1]) - np.max(s) for s in sizes if np.max(s) > -np.inf]
            if reach >= FARTHEST_REACH or not ends or max(ends) <= math.log(_NEGLIGIBLE):
                return reach
            reach = min(1.2 * reach, FARTHEST_REACH)

    def _require_room(self, reach: float) -> float:
        """Return about how many nodes the finest rule of the first level has.

        Raises
        ------
        ConvergenceError
            If they would not fit into memory.
        """
        points = [np.zeros(1)]
        cut = [bool(self._breaks) or self._steep is not None]
        for name in self._inner:
            cut.append(self._inner_breaks(name)(*points).shape[1] > 0)
            points.append(np.zeros(1))
        nodes: float = grid_nodes(
            self._scales, cut, self._even, reach, self._steep, self._module.NESTED
        )
        if not nodes <= _MOST_FIRST_NODES:
            raise ConvergenceError(
                f"the averages over {len(cut)} Gaussian variables would need {nodes:.1e} nodes, "
                f"more than {_MOST_FIRST_NODES:.1e}: an integrand varies on a scale far below "
                "one; take parameters that are less extreme, or bring one of the averages to "
                "closed form"
            )
        return nodes
