"""Texts of a kernel: its equations, every stage down to code, and files for other languages."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ...pages import Typeset

if TYPE_CHECKING:
    from ...symbolic.lowering.driver import BakedTables
    from ...symbolic.lowering.lowered import LoweredSystem
    from ...symbolic.lowering.program import Program
    from ...symbolic.saddle_point import SaddlePointSystem
    from .kernel import Kernel


class KernelTexts(Typeset):
    """The part of a :class:`.kernel.Kernel` that is text and needs no numbers.

    `make`, a field of the kernel, returns the lowered system; `make_solved` the one that its code
    was printed from, where that takes derived parameters too.
    """

    if TYPE_CHECKING:
        make: Callable[[], LoweredSystem]
        make_solved: Callable[[], LoweredSystem] | None

    @cached_property
    def lowered(self) -> LoweredSystem:
        """The system with all stages of its lowering."""
        return self.make()

    @cached_property
    def solved(self) -> LoweredSystem:
        """The system that solves here: its parameters are those of the code."""
        return self.lowered if self.make_solved is None else self.make_solved()

    @property
    def system(self) -> SaddlePointSystem:
        """The equations."""
        return self.lowered.system

    @property
    def program(self) -> Program:
        """The intermediate form, from which all targets are printed."""
        return self.lowered.program

    def source(self, target: str = "numba", *, tables: str = "computed", **values: float) -> str:
        """Return the generated code for a target as text; see :meth:`write`."""
        return self.lowered.source(target, tables=self._baked(tables, values))

    def files(
        self,
        target: str = "numba",
        *,
        tables: str = "computed",
        name: str | None = None,
        **values: float,
    ) -> Mapping[str, str]:
        """Return {file name: text} for a target; see :meth:`write`."""
        return self.lowered.files(target, tables=self._baked(tables, values), name=name)

    def write(
        self,
        path: str | os.PathLike[str],
        target: str | None = None,
        *,
        tables: str = "computed",
        **values: float,
    ) -> list[Path]:
        """Write files that run without giantstep and return their paths.

        Parameters
        ----------
        path : path-like
            For C both ``NAME.c`` and ``NAME.h`` are written.
        target : {"numba", "python", "numpy", "mpmath", "c", "jax", "julia"}, optional
            By default what the suffix says: .c, .h, .jl, .py (numba).
        tables : {"computed", "baked"}
            Whether the files compute tables from the activations, or hold those of fixed
            parameters.
        **values
            With "baked": the parameters on which the tables depend; they become constants.

        Raises
        ------
        EmissionError
            If the target is unknown, or lacks a function that the program needs.
        ParameterError
            If a file cannot be written, or a value is missing.
        """
        return self.lowered.write(path, target, tables=self._baked(tables, values))

    def inspect(self, stage: str = "program") -> str:
        """Return one stage of the way from equations to code as text.

        Parameters
        ----------
        stage : str
            "equations", "blocks", "hoisted", "quadrature", "fused", "accurate", "program",
            "functions", "tables" or a target.
        """
        return self.lowered.inspect(stage)

    def latex(self) -> str:
        """Return the equations in LaTeX."""
        return self.system.latex()

    def _baked(self, tables: str, values: Mapping[str, Any]) -> BakedTables | None:
        from .baking import wanted_tables

        return wanted_tables(cast("Kernel", self), tables, values)
