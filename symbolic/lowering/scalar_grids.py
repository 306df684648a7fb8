"""The grid of outer and inner nodes as nested loops that every scalar language can say.

An average over inner variables that holds unknowns is flattened: its nodes become arrays beside the
outer node, and what is known on them becomes product tables. At every outer node each inner
variable has a rule of its own, trapezoidal or cut where the integrand jumps or bends. Points
farther out than the reach are left out; which reach, says :mod:`.driver`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from ...errors import EmissionError
from ...runtime.rules import GRID_INNER_STEP, GRID_PANEL, GRID_STEP, MOST_GRID_NODES
from ..gaussian.accuracy import rewrite_for_accuracy
from ..printing.language import Function, Kind, Parameter
from .lower import table_name
from .product_measures import ProductMeasure
from .program import Assign
from .scalar_tables import CLIPPED, DENSITY, PIECES, Body, panel_loops, values


@dataclass(frozen=True)
class InnerNode:
    """One inner variable of the grid.

    The rule resolves the smallest of the `widths`, and one; without `kinks`, in the outer node and
    earlier inner nodes, it is trapezoidal.
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


def product_functions(plan: ProductPlan, outer_widths: Sequence[sp.Expr]) -> tuple[Function, ...]:
    """Return ``product_step`` and ``product_points`` after the functions that they call."""
    called = (DENSITY, CLIPPED, PIECES) if plan.cut else (DENSITY,)
    return (*called, _step(plan, outer_widths), _points(plan, called))


def _step(plan: ProductPlan, outer_widths: Sequence[sp.Expr]) -> Function:
    body = Body()
    body.add(0, f"step = {GRID_STEP}")
    for width in outer_widths:
        body.add(0, f"step = min(step, {GRID_STEP} * abs({body.expression(width)}))")
    for inner in plan.inner:
        for width in inner.widths:
            body.add(0, f"step = min(step, {GRID_INNER_STEP} * abs({body.expression(width)}))")
    body.add(0, "return step")
    return Function(
        name="product_step",
        parameters=values(plan.parameters),
        body=body.text(),
        expressions=body.expressions,
        returns=Kind.REAL,
        documentation="Smallest step of the first grid.",
    )


def _points(plan: ProductPlan, called: tuple[Function, ...]) -> Function:
    columns = 2 + len(plan.inner) + len(plan.tables) + len(plan.products)
    body = Body()
    body.add(0, "found = 0")
    for k, inner in enumerate(plan.inner):
        if inner.kinks:
            body.add(0, f"edges_of_{k} = array({len(inner.kinks) + 2})")
        body.add(0, f"size_{k} = 1.0")
        for w in inner.widths:
            body.add(0, f"size_{k} = min(size_{k}, abs({body.expression(w)}))")
        body.add(0, f"size_{k} *= {GRID_PANEL if inner.kinks else GRID_INNER_STEP} * coarseness")
        body.add(0, f"if not (size_{k} * {MOST_GRID_NODES} > reach):")
        body.add(1, "return -1")
    body.add(0, "for j in range(n):")
    body.add(1, "weight_0 = line[j]")
    body.add(1, f"{plan.node} = line[n + j]")
    body.add(1, f"left_0 = reach * reach * (1.0 + 1e-12) - {plan.node} * {plan.node}")
    if plan.nested:
        body.add(1, "if left_0 > 0.0:")
        body.add(2, "left_0 = reach * reach * (1.0 + 1e-12)")
    read = set().union(
        *(a.value.free_symbols for a in plan.locals), *(p.free_symbols for p in plan.products)
    )
    read |= {s for i in plan.inner for x in (*i.widths, *i.kinks) for s in x.free_symbols}
    for k, table in enumerate(plan.tables):
        if table in read:
            body.add(1, f"{table} = line[{2 + k} * n + j]")
    depth = 1
    for k, inner in enumerate(plan.inner):
        body.add(depth, f"if left_{k} > 0.0:")
        body.add(depth + 1, f"end_{k} = sqrt(left_{k})")
        if inner.kinks:
            depth = panel_loops(
                inner.kinks, f"end_{k}", f"edges_of_{k}", f"size_{k}", inner.variable,
                f"weight_{k + 1}", body, depth + 1, mark=f"_{k}", mass=f"weight_{k} * ",
            )  # fmt: skip
        else:
            depth = _even(k, inner, depth + 1, body)
        if k + 1 < len(plan.inner):
            body.add(depth, f"left_{k + 1} = left_{k} - {inner.variable} * {inner.variable}")
    last = len(plan.inner)
    body.add(depth, "if total > 0:")
    for a in plan.locals:
        body.add(depth + 1, f"{a.target} = {body.expression(a.value)}")
    sources = [f"weight_{last}", str(plan.node), *(str(i.variable) for i in plan.inner)]
    sources += [f"line[{2 + k} * n + j]" for k in range(len(plan.tables))]
    sources += [body.expression(p) for p in plan.products]
    for k, source in enumerate(sources):
        place = "found" if k == 0 else f"{k} * total + found"
        body.add(depth + 1, f"columns[{place}] = {source}")
    body.add(depth, "found += 1")
    body.add(0, "return found")
    assert len(sources) == columns
    return Function(
        name="product_points",
        parameters=(
            Parameter("n", Kind.WHOLE),
            Parameter("line", Kind.ARRAY),
            *values(plan.parameters),
            Parameter("coarseness"),
            Parameter("reach"),
            Parameter("total", Kind.WHOLE),
            Parameter("columns", Kind.OUTPUT),
        ),
        body=body.text(),
        expressions=body.expressions,
        returns=Kind.WHOLE,
        documentation=f"""Points of the grid of outer and inner nodes; returns how many.

`line` holds {2 + len(plan.tables)} columns of n numbers: weights, outer nodes, tables.
If `total` is not 0, {columns} columns of so many numbers are written. -1 if an inner rule needs too
many nodes.""",
        calls=called,
    )


def _even(k: int, inner: InnerNode, depth: int, body: Body) -> int:
    """Write the loop of a trapezoidal rule; return the depth inside."""
    body.add(depth, f"last_{k} = 0")
    body.add(depth, f"while (last_{k} + 1) * size_{k} <= end_{k}:")
    body.add(depth + 1, f"last_{k} += 1")
    body.add(depth, f"for i_{k} in range(2 * last_{k} + 1):")
    body.add(depth + 1, f"{inner.variable} = size_{k} * (i_{k} - last_{k})")
    body.add(depth + 1, f"weight_{k + 1} = weight_{k} * size_{k} * rule_density({inner.variable})")
    return depth + 1
