"""The arrays that a generated solver runs on: nodes, weights, tables, panels and data.

Three rules of different fineness for each level of refinement; what does not change from row to
row is made once, when a row first needs it.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConvergenceError
from ..runtime import quadrature
from ..runtime.product_grids import ProductGrid, Steep
from ..runtime.rules import Rule
from .kernel_code import LoadedKernel

# Nodes of the line, and of all inner rules at them: two gigabytes an array at the most.
_MOST_NODES = 2**28
# Inner nodes that are held at once: tables make several arrays of them on their way.
_AT_ONCE = 2**23

Array = NDArray[np.float64]


class KernelArrays:
    """What the rows of a batch share.

    Parameters
    ----------
    kernel : LoadedKernel
    table_values : sequence of float
        In the order of ``kernel.table_parameters``.
    data : mapping from str to array (1 + columns, rows)
        For each data set its weights, which add up to one, and its columns.
    steep : Steep, optional
        Where the node needs more of the grid; a kernel without inner nodes then has a grid, too.
    alike : KernelArrays, optional
        Other arrays with the same tables: how far a grid reaches, and which inner rules its tables
        need, is known from there.
    """

    def __init__(
        self,
        kernel: LoadedKernel,
        table_values: Sequence[float],
        data: Mapping[str, Array] | None = None,
        steep: Steep | None = None,
        alike: KernelArrays | None = None,
    ) -> None:
        self._kernel = kernel
        self._values = [np.float64(v) for v in table_values]
        self._data = [(data or {})[name] for name, _ in kernel.code.data]
        self._breaks: list[float] = []
        self._step = kernel.plain.FIRST_STEP
        self._grid: ProductGrid | None = None
        self._is_line = not kernel.code.inner_nodes and steep is None
        self._inner_level: int | None = alike._inner_level if alike else None
        reach = alike.reach if alike else None
        if kernel.tables is not None and not self._is_line:
            self._grid = ProductGrid(
                kernel.tables, self._values, kernel.code.inner_nodes, kernel.code.names,
                kernel.code.even, self.tables, steep, reach,
            )  # fmt: skip
        elif kernel.tables is not None:
            with np.errstate(divide="ignore", over="ignore"):
                # A slope of zero in the node sets no scale: its width is infinite.
                width = float(kernel.tables.outer_scale(np.zeros(1), *self._values))
            self._breaks = [float(b) for b in kernel.tables.breaks(np.zeros(1), *self._values)]
            self._step *= width
        self._lock = threading.Lock()
        self._levels: dict[int, tuple[Any, ...]] = {}
        self._ones: dict[tuple[int, int], Array] = {}
        self._shaken: dict[int, tuple[Any, ...] | None] = {}
        self._reach: float | None = None
        self._compiled: ModuleType | None = None
        self._single = False

    def single(self, rule: int, level: int = 0) -> KernelArrays:
        """Return the same with one rule of a level, and rules without nodes in place of two.

        For rough solutions, on which no error is estimated and nothing is refined.

        Parameters
        ----------
        rule : int
            0, 1 or 2: fine, medium or coarse.
        level : int
        """
        found = copy.copy(self)
        triples = 3 * ((self._kernel.tables is not None) + 2 * self._kernel.code.panels)
        level = min(level, self.finest)
        if self._grid is not None and not self._kernel.code.panels:
            with self._lock:
                usual = self._levels.get(level) or self._one_of(level, rule)
        else:
            usual = self[level]
        chosen = [usual[k - k % 3 + rule] for k in range(triples)]
        for k, rest in enumerate(chosen):
            if k % 3 and isinstance(rest, np.ndarray):
                chosen[k] = rest[:, :0]
        found._levels = {0: (*chosen, *usual[triples:])}
        found._single = True
        return found

    @property
    def refinable(self) -> bool:
        """Whether finer rules exist: not for sums over data alone."""
        if self._single:
            return False
        return self._kernel.tables is not None or self._kernel.code.panels

    @property
    def finest(self) -> int:
        """The last level of refinement that there is room for; 0 without finer rules."""
        if not self.refinable:
            return 0
        last: int = self._kernel.plain.LAST_LEVEL
        return last if self._grid is None else min(last, self._grid.finest)

    @property
    def has_grid(self) -> bool:
        """Whether the rules are grids of several variables."""
        return self._grid is not None

    @property
    def reach(self) -> float | None:
        """The radius of a grid of the first level; None for a line."""
        return None if self._grid is None else self._grid.reach

    @property
    def narrowest(self) -> float:
        """The width of what a grid crowds around, or that of what it sees at its first level."""
        return 0.0 if self._grid is None else self._grid.narrowest

    def __getitem__(self, level: int) -> tuple[Any, ...]:
        """Return the arguments of ``solve_batch`` after the parameters, at a refinement level."""
        with self._lock:
            return self._arguments(level)

    def shaken(self, level: int) -> tuple[Any, ...] | None:
        """Return the same with other rounding in the tables; None if they lose no digits."""
        if self._kernel.tables is None:
            return None
        with self._lock:
            if level not in self._shaken:
                self._shaken[level] = self._with_other_rounding(level)
            return self._shaken[level]

    def _with_other_rounding(self, level: int) -> tuple[Any, ...] | None:
        usual, shift = self._arguments(level), self._kernel.plain.SHIFT
        if self._grid is not None:
            # What is lost shows on the coarsest rule, too.
            coarse = self._grid.lines(level, shift, (2,))[0]
            if not self._kernel.plain.lose_digits(usual[2], coarse):
                return None
        lines = self._lines(level, shift)
        matters = self._kernel.plain.lose_digits(usual[0], lines[0])
        return (*lines, *usual[3:]) if matters else None

    @property
    def step(self) -> float:
        """The distance of nodes of the finest rule at the first level, where it is smallest."""
        return self._step if self._grid is None else self._grid.step

    def nodes(self, level: int) -> int:
        """Return the number of nodes of the finest rule; of a line in pieces, those of one."""
        arrays = self[level]
        # Fine rules come first in their groups of three; panels are followed by their reaches.
        fine = [arrays[0]] if self._kernel.tables is not None else []
        if self._kernel.code.panels:
            fine.append(arrays[3 * len(fine)])
        return sum(int(array.shape[1]) for array in fine or self._data) or 1

    def compiled(self) -> ModuleType:
        """Return the compiled kernel; finding it in the cache takes as long as some 100 solves."""
        # Without our lock: loading takes one of its own, and returns one module to all threads.
        if self._compiled is None:
            self._compiled = self._kernel.compiled()
        return self._compiled

    def _arguments(self, level: int) -> tuple[Any, ...]:
        if level not in self._levels:
            arguments: list[Any] = []
            if self._kernel.tables is not None:
                arguments += self._lines(level)
            if self._kernel.code.panels:
                arguments += self._panels(level)
                arguments += self._ends("panel_end", self._kernel.plain.FIRST_REACH, level)
            self._levels[level] = (*arguments, *self._data)
        return self._levels[level]

    def _one_of(self, level: int, rule: int) -> tuple[Any, ...]:
        """Return the arguments of a level of grids with one rule in the place of all three."""
        if (level, rule) not in self._ones:
            assert self._grid is not None
            self._ones[level, rule] = self._grid.lines(level, 1.0, (rule,))[0]
        return (*[self._ones[level, rule]] * 3, *self._data)

    def _lines(self, level: int, shift: float = 1.0) -> list[Array]:
        """Return [fine, medium, coarse]: arrays of weight, node and tables at shift * node."""
        if self._grid is not None:
            return self._grid.lines(level, shift)
        plain = self._kernel.plain
        if self._reach is None:
            self._reach = quadrature.sufficient_reach(plain.FIRST_REACH, self._columns)
        reaches = self._ends("line_end", self._reach, level)
        step = self._step * plain.rule_coarseness(level, 0)
        if not self._breaks:
            _require_room(2 * reaches[0] / step)
        x, rules = quadrature.line_rules(
            self._breaks, step, self._kernel.code.even, level, reaches
        )  # fmt: skip
        columns = np.stack([x, *self._columns(shift * x)])
        return [np.ascontiguousarray([w, *columns[:, places]]) for places, w in rules]

    def _ends(self, rule: str, reach: float, level: int) -> list[float]:
        """Return where the three rules of a level end."""
        return [getattr(self._kernel.plain, rule)(reach, level, back) for back in range(3)]

    def _panels(self, level: int) -> list[Array]:
        counts = [self._kernel.plain.rule_panel_count(level, back) for back in range(3)]
        rules = [quadrature.panel_rule(count) for count in counts]
        return [np.ascontiguousarray(np.stack([w, x])) for x, w in rules]

    def tables(self, x: Array) -> dict[str, Array]:
        """Return the tables at nodes `x`, by their names."""
        module = self._kernel.tables
        assert module is not None
        if self._is_line:
            return converged_tables(module, self._values, x)
        if self._inner_level is None:
            # The first tables of a grid are made on nodes that go from end to end.
            found, self._inner_level = _settled_tables(module, self._values, x)
            return found
        return _tables_at(module, self._values, x, self._inner_level)

    def _columns(self, x: Array) -> Array:
        """Return all tables at nodes, in the order of the solver."""
        tables = self.tables(x)
        return np.array([tables[name] for name in self._kernel.code.names]).reshape(-1, len(x))


def _require_room(nodes: float) -> None:
    """Refuse tables that would not fit into memory."""
    if not nodes <= _MOST_NODES:
        raise ConvergenceError(
            f"the tables would need {nodes:.1e} quadrature nodes, more than {_MOST_NODES:.1e}: an "
            "activation varies on a scale far below the width of its input; take parameters that "
            "are less extreme"
        )


def converged_tables(module: ModuleType, values: Sequence[float], x: Array) -> dict[str, Array]:
    """Tabulate at the nodes `x`, with inner quadratures refined until two levels agree.

    Raises
    ------
    ConvergenceError
        If they never agree: the inner integrand varies on a scale that is too small.
    """
    return _settled_tables(module, values, x)[0]


def _settled_tables(
    module: ModuleType, values: Sequence[float], x: Array
) -> tuple[dict[str, Array], int]:
    """Return these tables, and the level of their inner rules."""
    has_rules = bool(module.inner_rules(x[:1], *values))
    found: tuple[dict[str, Array], int] = quadrature.settled_tables(
        lambda level: (_tables_at(module, values, x, level), has_rules)
    )
    return found


def _tables_at(
    module: ModuleType, values: Sequence[float], x: Array, level: int
) -> dict[str, Array]:
    """Tabulate with inner rules of one level, as many nodes at a time as memory is meant for."""

    def rules(nodes: Array) -> dict[str, Rule]:
        return {
            slot: quadrature.inner_rule(kind, argument, level)
            for slot, (kind, argument) in module.inner_rules(nodes, *values).items()
        }

    # Rules have as many nodes at every node of the line.
    inner = max((rule.nodes.shape[1] for rule in rules(x[:1]).values()), default=1)
    _require_room(len(x) * inner)
    length = max(1, _AT_ONCE // inner)
    parts = [x[start : start + length] for start in range(0, len(x), length)]
    found = [module.tables(part, *values, rules(part)) for part in parts]
    return {name: np.concatenate([tables[name] for tables in found]) for name in found[0]}
