"""The arrays that a generated solver runs on (:mod:`..runtime.levels`), shared by threads."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..runtime.levels import Levels, Line, Tables
from ..runtime.product_grids import ProductGrid, Steep
from .kernel_code import LoadedKernel

Array = NDArray[np.float64]


class KernelArrays(Levels):
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

    Attributes
    ----------
    refinable : bool
        Whether finer rules exist: not for sums over data alone, nor for a single rule.
    tables : Tables
        Of a kernel that has some.
    """

    tables: Tables

    def __init__(
        self,
        kernel: LoadedKernel,
        table_values: Sequence[float],
        data: Mapping[str, Array] | None = None,
        steep: Steep | None = None,
        alike: KernelArrays | None = None,
    ) -> None:
        code = kernel.code
        self._kernel = kernel
        self._lock = threading.RLock()
        self._ones: dict[tuple[int, int], Array] = {}
        self._grid: ProductGrid | None = None
        line: Line | ProductGrid | None = None
        if kernel.tables is not None:
            is_grid = bool(code.inner_nodes) or steep is not None
            known = alike.tables.level if alike and is_grid else None
            self.tables = Tables(kernel.tables, table_values, code.names, known, is_grid)
            if is_grid:
                reach = alike.reach if alike else None
                line = self._grid = ProductGrid(
                    self.tables, code.inner_nodes, code.even, steep, reach
                )
            else:
                line = Line(self.tables, code.even, code.moving)
        super().__init__(line, code.panels, [(data or {})[name] for name, _ in code.data])
        self.refinable = self.finest > 0 or line is not None

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
        triples = 3 * ((self.line is not None) + 2 * self.panels)
        level = min(level, self.finest)
        if self._grid is not None and not self.panels:
            with self._lock:
                usual = self._made.get(level) or self._one_of(level, rule)
        else:
            usual = self[level]
        chosen = [usual[k - k % 3 + rule] for k in range(triples)]
        for k, rest in enumerate(chosen):
            if k % 3 and isinstance(rest, np.ndarray):
                chosen[k] = rest[:, :0]
        found._made = {0: (*chosen, *usual[triples:])}
        found.refinable, found.finest = False, 0
        return found

    @property
    def has_grid(self) -> bool:
        """Whether the rules are grids of several variables."""
        return self._grid is not None

    @property
    def seen(self) -> bool:
        """Whether rules are as fine as integrands are known to be narrow."""
        return self._grid is None or self._grid.seen

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
            found: tuple[Any, ...] = super().__getitem__(level)
        return found

    def shaken(self, level: int) -> tuple[Any, ...] | None:
        """Return the same with other rounding in the tables; None if they lose no digits."""
        if not self.refinable:
            return None
        with self._lock:
            found: tuple[Any, ...] | None = super().shaken(level)
        return found

    def nodes(self, level: int) -> int:
        """Return the number of nodes of the finest rule; of a line in pieces, those of one."""
        arrays = self[level]
        # Fine rules come first in their groups of three; panels are followed by their reaches.
        fine = [arrays[0]] if self.line is not None else []
        if self.panels:
            fine.append(arrays[3 * len(fine)])
        return sum(int(array.shape[1]) for array in fine or self.data) or 1

    def _one_of(self, level: int, rule: int) -> tuple[Any, ...]:
        """Return the arguments of a level of grids with one rule in the place of all three."""
        if (level, rule) not in self._ones:
            assert self._grid is not None
            self._ones[level, rule] = self._grid.lines(level, 1.0, (rule,))[0]
        return (*[self._ones[level, rule]] * 3, *self.data)
