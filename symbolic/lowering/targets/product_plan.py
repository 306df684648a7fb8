"""The grid of outer and inner nodes as nested loops: what a target without arrays of arrays needs.

An average over inner variables that holds unknowns is flattened: its nodes become arrays beside the
outer node, and what is known on them becomes product tables. At every outer node each inner
variable has a rule of its own, trapezoidal or cut where the integrand jumps or bends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from ....errors import EmissionError
from ...accuracy import rewrite_for_accuracy
from ..lower import table_name
from ..product_measures import ProductMeasure
from ..program import Assign


@dataclass(frozen=True)
class InnerNode:
    """One inner variable of the grid.

    Attributes
    ----------
    variable : Symbol
    widths : tuple of Expr
        Scales on which the integrand varies; the rule resolves the smallest, and one.
    kinks : tuple of Expr
        Break points in the outer node and earlier inner nodes; empty for the trapezoidal rule.
    """

    variable: sp.Symbol
    widths: tuple[sp.Expr, ...]
    kinks: tuple[sp.Expr, ...]


@dataclass(frozen=True)
class ProductPlan:
    """The points of the grid and what is known on them.

    Attributes
    ----------
    node : Symbol
    parameters : tuple of Symbol
        What widths, break points and tables depend on besides the nodes.
    inner : tuple of InnerNode
        Outer loops first.
    tables : tuple of Symbol
        Tables of the outer node, in the order of their columns.
    locals : tuple of Assign
        Values that product tables share.
    products : tuple of Expr
        Product tables, in the order of their columns.
    nested : bool
        Averages over inner nodes are taken at each node, so that all inner lines are as long.
    """

    node: sp.Symbol
    parameters: tuple[sp.Symbol, ...]
    inner: tuple[InnerNode, ...]
    tables: tuple[sp.Symbol, ...]
    locals: tuple[Assign, ...]
    products: tuple[sp.Expr, ...]
    nested: bool

    @property
    def cut(self) -> bool:
        """Whether some inner variable has break points."""
        return any(inner.kinks for inner in self.inner)


def product_plan(
    measure: ProductMeasure,
    *,
    tables: Sequence[sp.Expr],
    node: sp.Symbol,
    names: Mapping[sp.Symbol, sp.Symbol],
    printable: Callable[[sp.Expr], bool],
) -> ProductPlan:
    """Return the plan of a grid.

    Parameters
    ----------
    measure : ProductMeasure
    tables : sequence of applied functions
        Tables of the outer node alone.
    node : Symbol
    names : mapping from Symbol to Symbol
        What the outer node and parameters are called in code.
    printable : callable
        Whether the target has all functions of an expression.

    Raises
    ------
    EmissionError
        If the target lacks a function of a product table, a width or a break point.
    """
    inner = {s: sp.Symbol(f"z_{s.name}", **s.assumptions0) for s in measure.symbols}
    known = {f: sp.Symbol(f"t_{table_name(f)}", real=True) for f in tables}
    # The node goes last: tables are applied to it.
    changes = (known, {**inner, **names})

    def renamed(expr: sp.Expr) -> sp.Expr:
        for change in changes:
            expr = expr.xreplace(dict(change))
        return expr

    exact = [rewrite_for_accuracy(renamed(value)) for value in measure.definitions.values()]
    shared, products = sp.cse(
        exact, symbols=sp.numbered_symbols("shared_", real=True), optimizations=[], order="none"
    )
    found = tuple(
        InnerNode(inner[s], tuple(map(renamed, scales)), tuple(map(renamed, breaks)))
        for s, scales, breaks in zip(measure.symbols, measure.scales, measure.breaks, strict=True)
    )
    for expr in (*exact, *(x for i in found for x in (*i.widths, *i.kinks))):
        if not printable(expr):
            raise EmissionError(
                f"the average over {node} and {', '.join(map(str, measure.symbols))} holds {expr}, "
                "which this target has no function for; take target 'numpy' or 'numba' instead"
            )
    return ProductPlan(
        node=names[node],
        parameters=tuple(x for x in names.values() if x != names[node]),
        inner=found,
        tables=tuple(known.values()),
        locals=tuple(Assign(*pair) for pair in shared),
        products=tuple(products),
        nested=measure.nested,
    )
