"""A generated kernel as its solver in mpmath takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .generated import defined


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

    @property
    def has_line(self) -> bool:
        """Whether the program sums over fixed nodes."""
        return bool(self.table_source)

    def solver(self, ctx: Any) -> Any:
        """Return ``solve`` on the numbers of an mpmath context."""
        return defined(self.solver_source, ctx=ctx).solve

    def table_functions(self, ctx: Any) -> dict[str, Any]:
        """Return the functions of `table_source` on the numbers of an mpmath context."""
        return vars(defined(self.table_source, ctx=ctx))
