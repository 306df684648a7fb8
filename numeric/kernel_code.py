"""A generated kernel: its sources and names, and the same loaded and ready to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from .cache import FileCache


@dataclass(frozen=True)
class Range:
    """Where a number can be."""

    name: str
    lower: float
    upper: float
    lower_open: bool = True
    upper_open: bool = True

    def holds(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which values are inside."""
        above = values > self.lower if self.lower_open else values >= self.lower
        below = values < self.upper if self.upper_open else values <= self.upper
        return np.asarray(above & below)

    def __str__(self) -> str:
        ends = "(["[not self.lower_open], ")]"[not self.upper_open]
        return f"{ends[0]}{self.lower:g}, {self.upper:g}{ends[1]}"


@dataclass(frozen=True)
class KernelCode:
    """Generated sources with what a caller has to know about them; plain text, so it travels.

    Attributes
    ----------
    table_source : str
        Defines ``inner_rules``, ``outer_scale``, ``breaks`` and ``tables`` of the node; empty if
        the kernel sums over no fixed nodes.
    solver_source, plain_source : str
        The solver in numba and its twin in plain Python.
    parameters : tuple of str
        Inputs of one solve.
    table_parameters : tuple of str
        Inputs of the tables; one value each for all rows of a batch.
    names : tuple of str
        Tables after the node, in the solver's order.
    outputs : tuple of str
        Columns that a solve returns.
    results : tuple of str
        Those of the outputs that are meant for users.
    measured : tuple of str
        Those whose error estimate is returned.
    even : bool
        Half of the line suffices.
    unknowns : tuple of str
        Outputs that Newton's method starts from.
    panels : bool
        The solver cuts the line at points that move with its unknowns.
    data : tuple of (str, tuple of str)
        Data sets of the user: name and columns.
    moving : bool
        Integrands on fixed nodes hold functions of the unknowns, whose growth no table shows.
    width_source : str
        Defines ``width_at(rows, outputs)``, the smallest scale on which integrands vary; may be
        empty.
    unknown_results : tuple of str
        The unknowns of the equations.
    inner_nodes : tuple of str
        Further Gaussian variables, whose arrays stand between node and tables: all arrays run over
        a grid. Then `table_source` defines ``product_scales``, ``product_tables`` and
        ``product_breaks_NAME`` too.
    ranges : tuple of Range
        Of results that have one. The solver holds a solution outside for none.
    conditions : tuple of str
        Expressions that are negative at no solution, which the solver sees to as well.
    easier : str or None
        A positive parameter; equations are easier where it is larger.
    """

    table_source: str
    solver_source: str
    plain_source: str
    parameters: tuple[str, ...]
    table_parameters: tuple[str, ...]
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    results: tuple[str, ...]
    measured: tuple[str, ...]
    even: bool
    unknowns: tuple[str, ...] = ()
    panels: bool = False
    data: tuple[tuple[str, tuple[str, ...]], ...] = ()
    moving: bool = False
    width_source: str = ""
    unknown_results: tuple[str, ...] = ()
    inner_nodes: tuple[str, ...] = ()
    ranges: tuple[Range, ...] = ()
    conditions: tuple[str, ...] = ()
    easier: str | None = None

    @property
    def solved(self) -> tuple[str, ...]:
        """The results, then unknowns of Newton's method that are none of them."""
        return tuple(dict.fromkeys((*self.results, *self.unknowns)))

    def load(self, cache: FileCache) -> LoadedKernel:
        """Load tables and the plain solver; the compiled one waits until it is asked for."""

        @lru_cache(maxsize=1)
        def compiled() -> ModuleType:
            # Finding it in the cache takes as long as some 100 solves.
            return cache.load_module("solver", self.solver_source)

        tables = cache.load_module("tables", self.table_source) if self.table_source else None
        plain = cache.load_module("solver_plain", self.plain_source)
        widths = cache.load_module("widths", self.width_source) if self.width_source else None
        return LoadedKernel(self, tables, plain, compiled, widths)


@dataclass(frozen=True)
class LoadedKernel:
    """A generated kernel, ready to run.

    Attributes
    ----------
    code : KernelCode
    tables : module or None
        Generated: ``inner_rules``, ``outer_scale``, ``breaks`` and ``tables`` of the node.
    plain : module
        Generated: ``solve_batch`` in plain Python.
    compiled : callable
        Returns the generated module with ``solve_batch`` in numba; called when it pays.
    widths : module or None
        Generated: ``width_at``.
    """

    code: KernelCode
    tables: ModuleType | None
    plain: ModuleType
    compiled: Callable[[], ModuleType]
    widths: ModuleType | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """Inputs of one solve."""
        return self.code.parameters

    @property
    def table_parameters(self) -> tuple[str, ...]:
        """Inputs of the tables."""
        return self.code.table_parameters

    @property
    def outputs(self) -> tuple[str, ...]:
        """Columns that a solve returns."""
        return self.code.outputs
