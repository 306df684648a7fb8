"""Rules and tables as functions that every scalar language can say.

What a target without arrays of arrays needs. The tables of one node are computed in steps: a pass
over the nodes of an inner variable, which sums every expectation that is ready, and scalars in
between. Which rule a pass takes follows from its integrands (:mod:`..regularity`), at the node
itself.

A kernel in C or Julia that computes its tables itself holds rules for inner expectations, refined
and extended until two levels agree, and the outer rule, whose step follows from the widths over
which the tables vary and whose reach from how they grow. The rules and constants are those of
:mod:`giantstep.runtime.rules`, with one difference to the arrays of :mod:`..runtime.quadrature`:
entire integrands take the trapezoidal rule too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp
from sympy.core.function import AppliedUndef

from ...errors import EmissionError
from ...runtime.rules import (
    GRID_REACH,
    LEGENDRE_NODES,
    LEGENDRE_WEIGHTS,
    PANEL,
    PANEL_ORDER,
    PANEL_PHASE,
    REACH,
    REACH_NODES,
)
from ..gaussian.accuracy import rewrite_for_accuracy
from ..gaussian.expectation import GaussianExpectation
from ..printing.language import Function, Kind, Parameter
from .driver import rule_function
from .fuse import FreshSymbols, magnitude
from .lower import table_name
from .program import Assign
from .tables import InnerMeasure, evaluated_forms, outer_breaks, outer_widths

DENSITY = Function(
    name="rule_density",
    parameters=(Parameter("x"),),
    body="return exp(-0.5 * x * x) / 2.5066282746310002\n",
    returns=Kind.REAL,
    documentation="Density of the standard normal law.",
)

TRAPEZOIDAL_STEP = rule_function("trapezoidal_step", "rule_step")
REFINED_STEP = rule_function("refined_step", "rule_refined")
INNER_REACH = rule_function("inner_reach", "rule_inner_reach")

CLIPPED = Function(
    name="rule_clipped",
    parameters=(Parameter("x"), Parameter("reach")),
    body="""
if not (x > -reach):
    return -reach
if x > reach:
    return reach
return x
""",
    returns=Kind.REAL,
    documentation="A break point moved into [-reach, reach].",
)

PIECES = Function(
    name="rule_pieces",
    parameters=(Parameter("width"), Parameter("size")),
    body="""
panels = 0
while panels * size < width:
    panels += 1
return panels
""",
    returns=Kind.WHOLE,
    documentation="Number of panels of at most a size in a piece of the line.",
)

PANEL_RULE = Function(
    name="rule_reference",
    parameters=(
        Parameter("panels", Kind.WHOLE),
        Parameter("panel_weight", Kind.OUTPUT),
        Parameter("panel_node", Kind.OUTPUT),
    ),
    body=f"""
for i in range(panels):
    for k in range({PANEL_ORDER}):
        panel_weight[{PANEL_ORDER} * i + k] = gauss_weight[k] / panels
        panel_node[{PANEL_ORDER} * i + k] = (i + gauss_node[k]) / panels
""",
    documentation="Composite Gauss-Legendre rule on [0, 1].",
)


def gauss_rule() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return nodes and weights of the Gauss–Legendre rule on [0, 1]."""
    nodes = (*(-x for x in reversed(LEGENDRE_NODES)), *LEGENDRE_NODES)
    weights = (*reversed(LEGENDRE_WEIGHTS), *LEGENDRE_WEIGHTS)
    return tuple((1 + x) / 2 for x in nodes), tuple(w / 2 for w in weights)


@dataclass(frozen=True)
class InnerPass:
    """One pass over the nodes of an inner variable, at one node of the outer one."""

    rule: InnerMeasure
    locals: tuple[Assign, ...]
    sums: tuple[Assign, ...]


@dataclass(frozen=True)
class TablePlan:
    """All tables as steps at one node.

    Attributes
    ----------
    node : Symbol
    parameters : tuple of Symbol
        What the tables depend on besides the node.
    steps : tuple of InnerPass or Assign
    tables : tuple of Symbol
        Targets of steps, in the order in which the solver takes them.
    sizes : tuple of Expr
        Scale of the rounding of each table: its terms, and the integrands of its means, without
        their signs. A mean may vanish by symmetry.
    widths : tuple of Expr
        Widths in the node over which the tables vary; infinite ones do not matter.
    breaks : tuple of Expr
        Nodes at which a table has a kink or a jump.
    """

    node: sp.Symbol
    parameters: tuple[sp.Symbol, ...]
    steps: tuple[InnerPass | Assign, ...]
    tables: tuple[sp.Symbol, ...]
    sizes: tuple[sp.Expr, ...]
    widths: tuple[sp.Expr, ...]
    breaks: tuple[sp.Expr, ...]


def table_plan(
    definitions: Mapping[sp.Expr, sp.Expr],
    *,
    node: sp.Symbol,
    parameters: Sequence[sp.Symbol],
    printable: Callable[[sp.Expr], bool],
) -> TablePlan:
    """Return the steps that compute the tables.

    Parameters
    ----------
    definitions : mapping from applied function to Expr
        Tables in an order in which each refers to earlier ones only, in code symbols.
    node : Symbol
        The outer variable.
    parameters : sequence of Symbol
    printable : callable
        Whether the target has all functions of an expression; a closed form that it lacks stays
        an integral.

    Raises
    ------
    EmissionError
        If an inner expectation holds another one.
    """
    forms = {
        f: form if printable(form) else definitions[f]
        for f, form in evaluated_forms(definitions).items()
    }
    tables = {f: sp.Symbol(f"t_{table_name(f)}", real=True) for f in forms}
    fresh = FreshSymbols()
    marks: dict[sp.Expr, sp.Symbol] = {}
    steps: list[InnerPass | Assign] = []
    sizes: dict[sp.Symbol, sp.Expr] = {}
    done: set[sp.Expr] = set()
    needed = {f: form.atoms(AppliedUndef) & {*forms} for f, form in forms.items()}
    while len(done) < len(forms):
        ready = [f for f in forms if f not in done and needed[f] <= done]
        if not ready:
            left = ", ".join(str(f) for f in forms if f not in done)
            raise EmissionError(f"tables that refer to each other: {left}")
        waiting: dict[sp.Symbol, dict[sp.Expr, None]] = {}
        for f in ready:
            for n in sorted(forms[f].atoms(GaussianExpectation), key=str):
                if n.integrand.atoms(GaussianExpectation):
                    raise EmissionError(
                        f"nested inner expectations in {n}: give the inner one a name"
                    )
                if n not in marks:
                    waiting.setdefault(n.variable, {})[n] = None
        for variable, nodes in waiting.items():
            steps.append(_inner_pass(variable, list(nodes), tables, marks, fresh))
        for f in ready:
            value = forms[f].xreplace(marks).xreplace(tables)
            steps.append(Assign(tables[f], rewrite_for_accuracy(value)))
            sums = {m: size_of(m) for m in value.free_symbols & set(marks.values())}
            sizes[tables[f]] = magnitude(value).xreplace(sums) if sums else tables[f]
        done |= set(ready)
    return TablePlan(
        node=node,
        parameters=tuple(parameters),
        steps=tuple(steps),
        tables=tuple(tables.values()),
        sizes=tuple(sizes[t] for t in tables.values()),
        widths=outer_widths(definitions, node),
        breaks=outer_breaks(definitions, node),
    )


def size_of(mean: sp.Symbol) -> sp.Symbol:
    """Return the symbol of the mean of the absolute values."""
    return sp.Symbol(f"size_{mean.name}", nonnegative=True)


def _inner_pass(
    variable: sp.Symbol,
    nodes: Sequence[GaussianExpectation],
    tables: Mapping[sp.Expr, sp.Symbol],
    marks: dict[sp.Expr, sp.Symbol],
    fresh: FreshSymbols,
) -> InnerPass:
    # A name that is no other one's, whatever the variable is called.
    inner = sp.Symbol(f"z_{variable.name}", **variable.assumptions0)
    names_in_code = {**tables, variable: inner}
    # The rule follows from the integrands as they are; their code, from accurate forms of them.
    integrands = [n.integrand.xreplace(names_in_code) for n in nodes]
    accurate = [rewrite_for_accuracy(f) for f in integrands]
    targets = [fresh("mean_") for _ in nodes]
    marks.update(zip(nodes, targets, strict=True))

    inner_values = fresh.endless("inner_")
    shared, values = sp.cse(accurate, symbols=inner_values, optimizations=[], order="none")
    exact = [Assign(*pair) for pair in shared]
    exact += [Assign(t, v) for t, v in zip(targets, values, strict=True)]
    # Printers write a square as a product, which would compute its base twice.
    local: list[Assign] = []
    for k, a in enumerate(exact):
        value = a.value
        for power in sorted(value.atoms(sp.Pow), key=sp.default_sort_key):
            if power.exp.is_Integer and not power.base.is_Atom:
                base = fresh("inner_")
                local.append(Assign(base, power.base))
                value = value.xreplace({power.base: base})
        exact[k] = Assign(a.target, value)
        if k < len(shared):
            local.append(exact[k])
    return InnerPass(
        InnerMeasure.of(inner, integrands),
        tuple(local),
        tuple(exact[len(shared) :]),
    )


# Levels of refinement: of the outer rule, as of inner rules.
LEVELS = 7
# More nodes than this say that the integrand varies on no scale that a rule can resolve.
_MOST_NODES = 100_000


def table_functions(
    plan: TablePlan, even: bool, suffices: Function, *, grid: bool = False
) -> tuple[Function, ...]:
    """Return the functions that make the tables, each after those that it calls.

    ``table_row`` computes all tables at one node, ``tabulate`` at many, with convergence checked;
    ``outer_reach``, ``outer_width`` and ``outer_nodes`` make the outer rule.

    Parameters
    ----------
    plan : TablePlan
        Its symbols have names that clash with nothing.
    even : bool
        Nodes x >= 0 suffice.
    suffices : Function
        Says whether the outer rule goes far enough.
    grid : bool
        The outer rule is part of a grid of several variables.
    """
    if not plan.tables:
        # Averages over the node alone: entire functions of it and smooth ones of width one.
        return (DENSITY, CLIPPED, PIECES, _width(plan), *_outer(plan, even, grid))
    row = _row(plan)
    tabulate = _tabulate(plan, row)
    return (
        DENSITY, TRAPEZOIDAL_STEP, REFINED_STEP, INNER_REACH, CLIPPED, PIECES, row, tabulate,
        suffices, _reach(plan, tabulate, suffices, GRID_REACH if grid else REACH), _width(plan),
        *_outer(plan, even, grid),
    )  # fmt: skip


def values(symbols: Sequence[sp.Symbol]) -> tuple[Parameter, ...]:
    """Return numbers as parameters of a function."""
    return tuple(Parameter(str(s)) for s in symbols)


class Body:
    """Lines of a body with the expressions in them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.expressions: dict[str, sp.Expr] = {}
        self._counts: dict[str, int] = {}

    def add(self, depth: int, line: str) -> None:
        """Add a line."""
        self.lines.append("    " * depth + line)

    def expression(self, expr: sp.Expr) -> str:
        """Return the name that stands for an expression."""
        name = f"expression_{len(self.expressions)}"
        self.expressions[name] = expr
        return name

    def count(self, what: str) -> int:
        """Return how often this has been asked for."""
        self._counts[what] = self._counts.get(what, 0) + 1
        return self._counts[what]

    def text(self) -> str:
        """Return the body."""
        return "\n".join(self.lines) + "\n"


def _row(plan: TablePlan) -> Function:
    body = Body()
    # Tables in closed form need no end of an inner rule.
    if any(not isinstance(step, Assign) for step in plan.steps):
        body.add(0, "reach = rule_inner_reach(level)")
    for step in plan.steps:
        if isinstance(step, Assign):
            body.add(0, f"{step.target} = {body.expression(step.value)}")
        else:
            _pass(step, body)
    for k, table in enumerate(plan.tables):
        body.add(0, f"row[{k}] = {table}")
        size = body.expression(plan.sizes[k])
        body.add(0, f"row[{len(plan.tables) + k}] = abs({size})")
    body.add(0, "return True")
    return Function(
        name="table_row",
        parameters=(
            Parameter(str(plan.node)),
            *values(plan.parameters),
            Parameter("level", Kind.WHOLE),
            Parameter("row", Kind.OUTPUT),
        ),
        body=body.text(),
        expressions=body.expressions,
        returns=Kind.FLAG,
        documentation="""All tables at one node, then the sizes of what is added up in them.

False if a rule would need too many nodes.
Each level refines the inner rules and takes them farther out.""",
        fast=True,
        calls=(DENSITY, TRAPEZOIDAL_STEP, REFINED_STEP, INNER_REACH, CLIPPED, PIECES),
    )


def _pass(step: InnerPass, body: Body) -> None:
    rule = step.rule
    for a in step.sums:
        body.add(0, f"{a.target} = 0.0")
        body.add(0, f"{size_of(a.target)} = 0.0")
    if rule.kinks:
        depth = _split_loops(step, body)
    else:
        depth = _trapezoidal_loop(step, body)
    for a in step.locals:
        body.add(depth, f"{a.target} = {body.expression(a.value)}")
    for a in step.sums:
        body.add(depth, f"value = {body.expression(a.value)}")
        body.add(depth, f"{a.target} += weight * value")
        body.add(depth, f"{size_of(a.target)} += weight * abs(value)")


def _add_frequency(step: InnerPass, body: Body) -> None:
    body.add(0, "frequency = 0.0")
    for w in step.rule.waves:
        body.add(0, f"frequency = max(frequency, {body.expression(w)})")


def _trapezoidal_loop(step: InnerPass, body: Body) -> int:
    rule = step.rule
    body.add(0, "strip = inf")
    for s in rule.strips:
        body.add(0, f"strip = min(strip, abs({body.expression(s)}))")
    body.add(0, "growth = 0.0")
    for g in rule.growths:
        body.add(0, f"growth = max(growth, {body.expression(g)})")
    _add_frequency(step, body)
    body.add(0, "step = rule_refined(rule_step(strip, growth, frequency), level)")
    body.add(0, f"if not (step * {_MOST_NODES} > reach):")
    body.add(1, "return False")
    body.add(0, "last = 0")
    body.add(0, "while last * step < reach:")
    body.add(1, "last += 1")
    # A node and its mirror image follow each other: what is odd adds up to exactly zero.
    body.add(0, "for k in range(last + 1):")
    body.add(1, "for i in range(2):")
    body.add(2, f"{rule.variable} = step * k * (1.0 - 2.0 * i)")
    body.add(2, f"weight = step * rule_density({rule.variable})")
    body.add(2, "if k == 0:")
    body.add(3, "weight *= 0.5")
    return 2


def _split_loops(step: InnerPass, body: Body) -> int:
    rule = step.rule
    _add_frequency(step, body)
    longest = f"{PANEL_PHASE} / max({PANEL_PHASE / PANEL}, frequency)"
    body.add(0, f"panel = rule_refined({longest}, level)")
    edges = f"edges_{body.count('edges')}"
    body.add(0, f"{edges} = array({len(rule.kinks) + 2})")
    return panel_loops(rule.kinks, "reach", edges, "panel", rule.variable, "weight", body)


def panel_loops(
    kinks: Sequence[sp.Expr], end: str, edges: str, size: str, node: sp.Symbol, weight: str,
    body: Body, depth: int = 0, mark: str = "", mass: str = "", length: str = "",
) -> int:  # fmt: skip
    """Add loops over the nodes of panels between kinks in [-end, end]; return the depth inside.

    `edges`, `mark` and `length` are those of :func:`piece_loop`, `mass` is a factor of the weight.
    """
    depth = piece_loop(kinks, end, edges, size, body, depth, mark, length)
    piece, width, panels, i, k = (f"{x}{mark}" for x in ("piece", "width", "panels", "i", "k"))
    for deeper, line in (
        (0, f"for {i} in range({panels}):"),
        (1, f"for {k} in range({PANEL_ORDER}):"),
        (2, f"{node} = {edges}[{piece}] + {width} * (({i} + gauss_node[{k}]) / {panels})"),
        (2, f"{weight} = {mass}{width} / {panels} * gauss_weight[{k}] * rule_density({node})"),
    ):
        body.add(depth + deeper, line)
    return depth + 2


def piece_loop(
    kinks: Sequence[sp.Expr], end: str, edges: str, size: str, body: Body, depth: int = 0,
    mark: str = "", length: str = "",
) -> int:  # fmt: skip
    """Add a loop over the pieces between kinks in [-end, end]; return the depth inside.

    It counts the panels of at most a `size` of a piece as long as it is, or as `length` says;
    `edges` is an array with room for all ends, `mark` the end of the names of other variables.
    """
    count = len(kinks) + 1
    body.add(depth, f"{edges}[0] = -{end}")
    for at, kink in enumerate(kinks, start=1):
        body.add(depth, f"{edges}[{at}] = rule_clipped({body.expression(kink)}, {end})")
    body.add(depth, f"{edges}[{count}] = {end}")
    if count > 2:
        for deeper, line in (
            (0, f"for i in range({count + 1}):"),
            (1, f"for k in range({count}):"),
            (2, f"if {edges}[k] > {edges}[k + 1]:"),
            (3, f"swap = {edges}[k]"),
            (3, f"{edges}[k] = {edges}[k + 1]"),
            (3, f"{edges}[k + 1] = swap"),
        ):
            body.add(depth + deeper, line)
    piece, width, panels = (f"{x}{mark}" for x in ("piece", "width", "panels"))
    body.add(depth, f"for {piece} in range({count}):")
    body.add(depth + 1, f"{width} = {edges}[{piece} + 1] - {edges}[{piece}]")
    long = f"{length} if {width} > 0.0 else 0.0" if length else width
    body.add(depth + 1, f"{panels} = rule_pieces({long}, {size})")
    return depth + 1


def _tabulate(plan: TablePlan, row: Function) -> Function:
    names = ", ".join(str(p) for p in plan.parameters)
    arguments = f"node[j], {names}, level, row" if names else "node[j], level, row"
    n_tables = len(plan.tables)
    return Function(
        name="tabulate",
        parameters=(
            Parameter("node", Kind.ARRAY, counted=True),
            *values(plan.parameters),
            Parameter("tables", Kind.OUTPUT),
        ),
        body=f"""
row = array({2 * n_tables})
distances = array({n_tables})
sizes = array({n_tables})
distance = inf
for level in range({LEVELS}):
    for t in range({n_tables}):
        distances[t] = 0.0
        sizes[t] = 0.0
    for j in range(len(node)):
        if not table_row({arguments}):
            return -1.0
        for t in range({n_tables}):
            if not isfinite(row[t]):
                return -1.0
            place = t * len(node) + j
            if level > 0:
                distances[t] = max(distances[t], abs(row[t] - tables[place]))
            sizes[t] = max(sizes[t], max(abs(row[t]), row[{n_tables} + t]))
            tables[place] = row[t]
    if level > 0:
        previous = distance
        distance = 0.0
        for t in range({n_tables}):
            distance = max(distance, distances[t] / (sizes[t] + 1e-300))
        if distance <= 4e-15:
            return 0.0
        # Where rounding is larger than the tolerance, refining stops to bring levels closer.
        if distance < 1e-6 and distance > 0.5 * previous:
            return distance
return -1.0
"""
        if any(isinstance(s, InnerPass) for s in plan.steps)
        else f"""
row = array({2 * n_tables})
level = 0
for j in range(len(node)):
    if not table_row({arguments}):
        return -1.0
    for t in range({n_tables}):
        if not isfinite(row[t]):
            return -1.0
        tables[t * len(node) + j] = row[t]
return 0.0
""",
        returns=Kind.REAL,
        documentation="""Tables at all nodes, one table after the other.

Inner rules are refined until two levels agree. Returns how far they are apart, relative to the
largest value of a table, if that is more than the last place, and -1 if they never do.""",
        calls=(row,),
    )


def _reach(plan: TablePlan, tabulate: Function, suffices: Function, reach: float) -> Function:
    n, names = REACH_NODES, "".join(f"{p}, " for p in plan.parameters)
    return Function(
        name="outer_reach",
        parameters=values(plan.parameters),
        body=f"""
node = array({n})
tables = array({n * len(plan.tables)})
reach = {reach}
while True:
    for j in range({n}):
        node[j] = reach * ((j - {n // 2}) / {n // 2}.0)
    if tabulate(node, {names}tables) < 0.0:
        return -1.0
    longer = rule_suffices(reach, tables, {len(plan.tables)})
    if longer == reach:
        return reach
    reach = longer
""",
        returns=Kind.REAL,
        documentation="""How far out the outer rule has to go: tables that grow need more.

Negative if the tables do not converge.""",
        calls=(tabulate, suffices),
    )


def _width(plan: TablePlan) -> Function:
    body = Body()
    body.add(0, "width = 1.0")
    for w in plan.widths:
        body.add(0, f"width = min(width, abs({body.expression(w)}))")
    body.add(0, "return width")
    return Function(
        name="outer_width",
        parameters=values(plan.parameters),
        body=body.text(),
        expressions=body.expressions,
        returns=Kind.REAL,
        documentation="Width in the node over which the tables vary, at most 1.",
    )


def _outer(plan: TablePlan, even: bool, grid: bool) -> tuple[Function, Function]:
    """Return ``outer_count`` and ``outer_nodes`` of one rule, of a step or a length of panels."""
    shape = (Parameter("step"), Parameter("reach"))
    written = (Parameter("weight", Kind.OUTPUT), Parameter("node", Kind.OUTPUT))
    if plan.breaks:
        return _outer_split(plan, shape, written, grid)
    count = Function(
        name="outer_count",
        parameters=(*values(plan.parameters), *shape),
        body=f"""
n = 0
if not (step * 1e6 > reach):
    return -1
while 4 * n * step < reach:
    n += 1
return {"4 * n + 1" if even else "8 * n + 1"}
""",
        returns=Kind.WHOLE,
        documentation="Number of nodes of the finest outer rule.",
    )
    body = f"""
n = outer_count(PARAMETERSstep, reach)
for j in range(n):
    x = step * {"j" if even else "(j - (n - 1) / 2)"}
    node[j] = x
    weight[j] = step * rule_density(x){" * 2.0" if even else ""}
{"weight[0] *= 0.5" if even else ""}
"""
    names = "".join(f"{p}, " for p in plan.parameters)
    nodes = Function(
        name="outer_nodes",
        parameters=(*values(plan.parameters), *shape, *written),
        body=body.replace("PARAMETERS", names),
        documentation="Trapezoidal rule: weights, which hold the normal density, and nodes.",
        calls=(DENSITY, count),
    )
    return count, nodes


def _outer_split(
    plan: TablePlan, shape: tuple[Parameter, ...], written: tuple[Parameter, ...], grid: bool
) -> tuple[Function, Function]:
    kinks = (sp.S.Zero, *plan.breaks)
    # On a line all pieces have as many panels as all of it would: kinks are near each other.
    length = "" if grid else "2.0 * reach"
    counts, makes = Body(), Body()
    for body in (counts, makes):
        body.add(0, f"edges = array({len(kinks) + 2})")
    counts.add(0, "n = 0")
    counts.add(0, "if not (step * 1e6 > reach):")
    counts.add(1, "return -1")
    depth = piece_loop(kinks, "reach", "edges", "step", counts, length=length)
    counts.add(depth, f"n += {PANEL_ORDER} * panels")
    counts.add(0, "return n")
    makes.add(0, "j = 0")
    depth = panel_loops(
        kinks, "reach", "edges", "step", sp.Symbol("x"), "mass", makes, length=length
    )
    for line in ("node[j] = x", "weight[j] = mass", "j += 1"):
        makes.add(depth, line)
    count = Function(
        name="outer_count",
        parameters=(*values(plan.parameters), *shape),
        body=counts.text(),
        expressions=counts.expressions,
        returns=Kind.WHOLE,
        documentation="Number of nodes of the outer rule.",
        calls=(CLIPPED, PIECES),
    )
    nodes = Function(
        name="outer_nodes",
        parameters=(*values(plan.parameters), *shape, *written),
        body=makes.text(),
        expressions=makes.expressions,
        documentation="Composite Gauss-Legendre rule between kinks of the tables.",
        calls=(DENSITY, CLIPPED, PIECES),
    )
    return count, nodes
