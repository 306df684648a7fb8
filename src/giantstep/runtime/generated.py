"""Functions from text that our own printers wrote, executed here; nothing imports SymPy for it.

The printers refuse every node that they do not know, and arguments get names of ours: a text never
holds what a user typed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import CodeType, SimpleNamespace
from typing import Any


def defined(source: str, **given: Any) -> SimpleNamespace:
    """Return what a text defines, as attributes.

    Parameters
    ----------
    source : str
        Definitions of functions.
    **given
        What they find by name: ``ctx``, the mpmath context of functions of many digits.

    Examples
    --------
    >>> import mpmath
    >>> defined("def root(x):\\n    return ctx.sqrt(x)\\n", ctx=mpmath.mp.clone()).root(4)
    mpf('2.0')
    """
    namespace = dict(given)
    exec(_code(source), namespace)
    # It stays the namespace of the functions, which may import something later.
    return SimpleNamespace(**{k: v for k, v in namespace.items() if k != "__builtins__"})


class GeneratedFunction:
    """A function of a text; can be sent to another process, which defines it again.

    Parameters
    ----------
    source : str
        Definitions of functions.
    name : str
        The one that is called.
    """

    def __init__(self, source: str, name: str) -> None:
        self.source, self.name = source, name

    @cached_property
    def _function(self) -> Any:
        return getattr(defined(self.source), self.name)

    def __call__(self, *arguments: Any) -> Any:
        """Return the value of the function."""
        return self._function(*arguments)

    def __getstate__(self) -> dict[str, str]:
        return {"source": self.source, "name": self.name}


@lru_cache(maxsize=512)
def _code(source: str) -> CodeType:
    return compile(source, "<generated>", "exec", dont_inherit=True)


@dataclass(frozen=True)
class PreciseKernel:
    """Generated mpmath sources of a kernel.

    Attributes
    ----------
    table_source : str
        Defines ``tables(node, …, rule)`` at one node; empty if the program has no fixed nodes.
    solver_source : str
        Defines ``solve(…, out, info)``.
    driver_source : str
        Defines ``solve_row``, which solves on finer rules until errors are small.
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
    driver_source: str
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

    def driver(self, ctx: Any, make_level: Any, solve_level: Any) -> Any:
        """Return ``solve_row`` on the levels that two functions make and solve."""
        given = {"make_level": make_level, "solve_level": solve_level}
        return defined(self.driver_source, ctx=ctx, **given).solve_row

    def table_functions(self, ctx: Any) -> dict[str, Any]:
        """Return the functions of `table_source` on the numbers of an mpmath context."""
        return vars(defined(self.table_source, ctx=ctx))
