"""The intermediate form: a solver as typed steps over scalars, loops over nodes and roots.

Everything that a target language has to know is here, and nothing of a target. Expressions inside
the steps are SymPy expressions in plain symbols with code names; :mod:`.door` admits only nodes
that every printer can be asked for.

A program computes its steps in order. Inputs are the parameters, arrays (nodes and weights of the
quadrature rules with the tables on them, data of the user) and starting values of Newton unknowns.
Its symbol table says what each symbol is, and `validate` whether every use of it makes sense:
scalars are assigned once and before they are used, arrays are read inside the passes that run over
them and nowhere else, and functions that roots define get the arguments that they take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import sympy as sp
from sympy.core.function import AppliedUndef

from ...errors import EmissionError


class Kind(Enum):
    """What a symbol of a program is."""

    PARAMETER = "parameter"
    UNKNOWN = "unknown"
    TABLE = "table"
    COLUMN = "column"
    NODE = "panel node"
    LOCAL = "value at a node"
    SUM = "sum over nodes"
    SCALAR = "scalar"

    @property
    def is_array(self) -> bool:
        """Whether the caller gives an array, of which a pass reads one entry at a time."""
        return self in (Kind.TABLE, Kind.COLUMN)

    @property
    def is_local(self) -> bool:
        """Whether the symbol has a value inside a pass over nodes only."""
        return self in (Kind.TABLE, Kind.COLUMN, Kind.NODE, Kind.LOCAL)


def declare(program: Program) -> dict[sp.Symbol, Kind]:
    """Return the kind of every symbol that a program takes or assigns, in order of appearance.

    Raises
    ------
    EmissionError
        If a symbol is of two kinds.
    """

    found: dict[sp.Symbol, Kind] = {}

    def add(symbols: Iterable[sp.Symbol], kind: Kind) -> None:
        for x in symbols:
            if found.setdefault(x, kind) != kind:
                raise EmissionError(
                    f"program {program.name}: {x} is a {found[x].value} and a {kind.value}"
                )

    def add_loop(loop: NodeLoop) -> None:
        if isinstance(loop.measure, Panels):
            add([loop.measure.node], Kind.NODE)
        elif isinstance(loop.measure, Data):
            add(loop.measure.columns, Kind.COLUMN)
        add((a.target for a in loop.at_nodes), Kind.LOCAL)
        add((a.target for a in loop.sums), Kind.SUM)

    def add_steps(steps: Iterable[Step]) -> None:
        for step in steps:
            if isinstance(step, Assign):
                add([step.target], Kind.SCALAR)
            elif isinstance(step, LinearSolve):
                add(step.unknowns, Kind.UNKNOWN)
            elif isinstance(step, Newton):
                add(step.unknowns, Kind.UNKNOWN)
                add_steps(step.body)
            else:
                add_loop(step)

    add(program.parameters, Kind.PARAMETER)
    # The outer variable has nodes of its own where a pass is cut into panels.
    panels = {x.measure.node for x in program.loops() if isinstance(x.measure, Panels)}
    add((t for t in program.tables if t not in panels), Kind.TABLE)
    add_steps(program.steps)
    return found


def describe_declarations(declarations: Mapping[sp.Symbol, Kind]) -> str:
    """Return one line for each kind with the names of that kind."""
    lines = []
    for kind in Kind:
        names = [str(x) for x, k in declarations.items() if k == kind]
        if names:
            lines.append(f"    {kind.value}{' (array)' * kind.is_array}: {', '.join(names)}")
    return "\n".join(lines)


def validate(program: Program) -> None:
    """Refuse a program that no target could compute.

    Raises
    ------
    EmissionError
        If a symbol is used before it is assigned, outside of its pass, or assigned twice; if a
        list has the wrong length; if a function is none of the program's roots. The message names
        the step and the symbol.
    """
    _Validator(program).run()


class _Validator:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.kinds = declare(program)
        self.roots = {r.name: len(r.arguments) for r in program.roots}
        self.known = set(program.parameters)

    def run(self) -> None:
        program = self.program
        if len(self.roots) < len(program.roots):
            raise self.error("two roots have one name")
        for root in program.roots:
            self.check_root(root)
        for step in program.steps:
            self.check(step)
        for x in program.outputs:
            if x not in self.known:
                raise self.error(f"the output {x} is never assigned")
        self.check_uses(sp.Tuple(*program.ranges), self.known, "ranges")
        for x, size in program.sizes.items():
            if not {x, size} <= set(program.outputs):
                raise self.error(f"the magnitude {size} of {x} has to be an output, as {x} itself")

    def error(self, what: str) -> EmissionError:
        return EmissionError(f"program {self.program.name}: {what}")

    def check(self, step: Step) -> None:

        if isinstance(step, Assign):
            self.check_uses(step.value, self.known, step)
            self.assign([step.target], step)
        elif isinstance(step, LinearSolve):
            n = len(step.unknowns)
            if not n or {n, len(step.right_hand_side)} | set(map(len, step.matrix)) != {n}:
                raise self.error(f"'{step}' needs as many equations as unknowns")
            if len(step.matrix) != n:
                raise self.error(f"'{step}' needs as many equations as unknowns")
            entries = [x for row in (*step.matrix, step.right_hand_side) for x in row]
            self.check_uses(sp.Tuple(*entries), self.known, step)
            self.assign(step.unknowns, step)
        elif isinstance(step, Newton):
            n = len(step.unknowns)
            lengths = {len(step.start), len(step.residual), len(step.logarithmic)}
            lengths |= {len(step.jacobian), *map(len, step.jacobian)}
            place = f"newton for {', '.join(map(str, step.unknowns))}"
            if not n or lengths != {n} or len(step.fixed_point) not in (0, n):
                raise self.error(f"'{place}' needs as many residuals and starts as unknowns")
            self.check_uses(sp.Tuple(*step.start), set(self.program.parameters), place)
            self.assign(step.unknowns, place)
            for inner in step.body:
                self.check(inner)
            entries = [x for row in step.jacobian for x in row]
            entries += [*step.residual, *step.fixed_point]
            self.check_uses(sp.Tuple(*entries), self.known, place)
        else:
            self.check_loop(step)

    def check_loop(self, loop: NodeLoop) -> None:

        place = f"for {loop.measure}"
        inside = set(loop.tables)
        arrays: set[sp.Symbol] = set()
        if isinstance(loop.measure, Line):
            arrays = set(self.program.tables)
        elif isinstance(loop.measure, Data):
            arrays = set(loop.measure.columns)
        elif isinstance(loop.measure, Panels):
            self.check_uses(sp.Tuple(*loop.measure.breaks), self.known, place)
            inside.add(loop.measure.node)
        if not set(loop.tables) <= arrays:
            foreign = ", ".join(sorted(map(str, set(loop.tables) - arrays)))
            raise self.error(f"'{place}' reads {foreign}, which are no arrays of this pass")
        for a in loop.at_nodes:
            self.check_uses(a.value, self.known | inside, a)
            if a.target in inside:
                raise self.error(f"'{place}' assigns {a.target} twice")
            inside.add(a.target)
        for a in loop.sums:
            self.check_uses(a.value, self.known | inside, a)
        self.assign([a.target for a in loop.sums], place)

    def check_root(self, root: ScalarRoot) -> None:
        arguments = set(root.arguments)
        self.check_uses(root.start, arguments, root)
        for value in (root.residual, root.slope):
            self.check_uses(value, arguments | {root.unknown}, root)

    def check_uses(self, value: sp.Basic, known: set[sp.Symbol], place: object) -> None:
        for x in sorted(value.free_symbols - known, key=str):
            kind = self.kinds.get(x)
            if kind is None:
                raise self.error(f"'{place}' uses {x}, which nothing declares")
            if kind.is_local:
                raise self.error(f"'{place}' uses the {kind.value} {x}, which it does not run over")
            raise self.error(f"'{place}' uses {x} before it is assigned")
        for f in sorted(value.atoms(AppliedUndef), key=str):
            name = type(f).__name__
            if self.roots.get(name) != len(f.args):
                raise self.error(
                    f"'{place}' calls {f}, and the program has no root {name} of {len(f.args)} "
                    "arguments"
                )

    def assign(self, targets: Iterable[sp.Symbol], place: object) -> None:
        for x in targets:
            if x in self.known:
                raise self.error(f"'{place}' assigns {x}, which has a value already")
            self.known.add(x)


@dataclass(frozen=True)
class Assign:
    """``target = value``, a scalar."""

    target: sp.Symbol
    value: sp.Expr

    def __str__(self) -> str:
        return f"{self.target} = {self.value}"

    @property
    def reads(self) -> set[sp.Symbol]:
        """The scalars that it is computed from."""
        return set(self.value.free_symbols)

    @property
    def writes(self) -> set[sp.Symbol]:
        """The scalars that have a value afterwards."""
        return {self.target}


@dataclass(frozen=True)
class Line:
    """The normal law on fixed nodes; weights, nodes and tables are arrays that the caller gives.

    Attributes
    ----------
    nested : bool
        On a grid: a pass sums over its nodes, after :class:`InnerPass`\\es over the points of each,
        which stand side by side. The weight of a node is the sum of those of its points.
    """

    nested: bool = False

    def __str__(self) -> str:
        return "each node after its inner nodes" if self.nested else "each node"


@dataclass(frozen=True)
class Panels:
    """The normal law cut at break points that move with the unknowns.

    Composite Gauss–Legendre: the interval between neighbouring break points (sorted, clipped to
    ``[-reach, reach]``) carries an image of the reference rule ``panel_node``, ``panel_weight`` on
    [0, 1]; the weight at a node x holds the factor exp(-x²/2)/√(2π).

    Attributes
    ----------
    node : Symbol
        Name of the node inside the loop.
    breaks : tuple of Symbol
        Scalars that are assigned before the loop.
    """

    node: sp.Symbol
    breaks: tuple[sp.Symbol, ...]

    def __str__(self) -> str:
        return f"each {self.node} between {', '.join(map(str, self.breaks))}"


@dataclass(frozen=True)
class Data:
    """The mean over the rows of arrays that the user gives.

    Attributes
    ----------
    name : str
        Of the data set; its weights are the array ``weight_NAME``, by default all 1/n.
    columns : tuple of Symbol
        Arrays of equal length.
    """

    name: str
    columns: tuple[sp.Symbol, ...]

    @property
    def given_names(self) -> tuple[str, ...]:
        """The columns as users name them; in code they carry the name of their data set."""
        return tuple(str(c).removeprefix(f"{self.name}_") for c in self.columns)

    def __str__(self) -> str:
        return f"each row of {self.name}"


Measure = Line | Panels | Data


@dataclass(frozen=True)
class InnerPass:
    """One pass over the points of a node of a grid.

    Attributes
    ----------
    before : tuple of Assign
        Values that are the same at all of the points, in order.
    locals : tuple of Assign
        Values at the current point, in order.
    results : tuple of Assign
        ``target = mean of value`` with the weights of the points, or the largest value.
    largest : bool
        Which of the two.
    """

    before: tuple[Assign, ...]
    locals: tuple[Assign, ...]
    results: tuple[Assign, ...]
    largest: bool = False

    @property
    def assigns(self) -> tuple[Assign, ...]:
        """All values, in order."""
        return (*self.before, *self.locals, *self.results)

    def __str__(self) -> str:
        lines = [f"{a}" for a in self.before]
        lines += ["for each inner node:", *(f"    {a}" for a in self.locals)]
        how = "largest" if self.largest else "mean"
        lines += [f"    {a.target} = {how} of {a.value}" for a in self.results]
        return "\n".join(lines)


@dataclass(frozen=True)
class NodeLoop:
    """One pass over the nodes of a measure.

    Attributes
    ----------
    tables : tuple of Symbol
        Arrays that the pass reads: for `Line` the node and tables, for `Data` columns; the node
        of `Panels` is no array and not among them.
    locals : tuple of Assign
        Values at the current node, in order.
    sums : tuple of Assign
        ``target += weight * value``.
    measure : Line, Panels or Data
    of_node : int
        On a grid, the number of `locals`, from the first, that hold the node and no inner one: the
        points of a node stand side by side, so these are computed once for each node.
    inner : tuple of InnerPass
        What is averaged at each node before its `locals`, which hold no inner node then.
    """

    tables: tuple[sp.Symbol, ...]
    locals: tuple[Assign, ...]
    sums: tuple[Assign, ...]
    measure: Measure = Line()
    of_node: int = 0
    inner: tuple[InnerPass, ...] = ()

    def __str__(self) -> str:
        read = f" ({', '.join(map(str, self.tables))})" if self.tables else ""
        lines = [f"for {self.measure}{read}:"]
        for inner in self.inner:
            lines += ["    " + line for line in str(inner).splitlines()]
        lines += [f"    {a}" for a in self.locals]
        lines += [f"    {a.target} += weight * ({a.value})" for a in self.sums]
        return "\n".join(lines)

    @property
    def symbols(self) -> set[sp.Symbol]:
        """Everything that is read at nodes, the arrays included."""
        return set().union(*(a.value.free_symbols for a in (*self.at_nodes, *self.sums)))

    @property
    def reads(self) -> set[sp.Symbol]:
        """The scalars that it is computed from; arrays are not among them."""
        inside = {*self.tables, *(a.target for a in self.at_nodes)}
        if isinstance(self.measure, Panels):
            return self.symbols - inside - {self.measure.node} | set(self.measure.breaks)
        return self.symbols - inside

    @property
    def writes(self) -> set[sp.Symbol]:
        """The scalars that have a value afterwards."""
        return {a.target for a in self.sums}

    @property
    def at_nodes(self) -> tuple[Assign, ...]:
        """Everything that is computed at nodes and points, in order, but for the sums."""
        return (*(a for inner in self.inner for a in inner.assigns), *self.locals)


@dataclass(frozen=True)
class LinearSolve:
    """Solve ``matrix @ unknowns = right_hand_side``; all entries are scalars already assigned."""

    unknowns: tuple[sp.Symbol, ...]
    matrix: tuple[tuple[sp.Symbol, ...], ...]
    right_hand_side: tuple[sp.Symbol, ...]

    def __str__(self) -> str:
        return f"solve linear for {', '.join(map(str, self.unknowns))}"

    @property
    def reads(self) -> set[sp.Symbol]:
        """The scalars that it is computed from."""
        return {x for row in (*self.matrix, self.right_hand_side) for x in row}

    @property
    def writes(self) -> set[sp.Symbol]:
        """The scalars that have a value afterwards."""
        return set(self.unknowns)


@dataclass(frozen=True)
class Newton:
    """Newton's method, in the logarithms of positive unknowns and in the others themselves.

    Attributes
    ----------
    unknowns : tuple of Symbol
    start : tuple of Expr
        First values, expressions in the parameters.
    body : tuple of steps
        Computes residual and Jacobian at the current unknowns in one pass over the nodes.
    residual : tuple of Symbol
        Relative residuals: ``log(unknown / value)`` for a positive unknown.
    jacobian : tuple of tuple of Symbol
        Derivatives of the residuals with respect to the coordinates.
    logarithmic : tuple of bool
        Whether the coordinate of an unknown is its logarithm.
    fixed_point : tuple of Symbol
        Coordinate minus the coordinate that the equations return, by which a damped fixed-point
        iteration moves; empty where an equation is implicit.
    safeguarded : bool
        A step that does not lower the residual is halved, and fixed-point steps come first and
        where halving does not help. Without it the full step is taken, as for the spiked model,
        where Newton converges from every start.
    scales : tuple of Symbol
        What residuals of implicit equations are divided by: positive, and nothing else counts.
    losses : tuple of (Symbol or None)
        Sum of the sizes of the terms of each equation's value, relative to it, where they cancel:
        the factor of the rounding of its residual.
    """

    unknowns: tuple[sp.Symbol, ...]
    start: tuple[sp.Expr, ...]
    body: tuple[Assign | NodeLoop, ...]
    residual: tuple[sp.Symbol, ...]
    jacobian: tuple[tuple[sp.Symbol, ...], ...]
    logarithmic: tuple[bool, ...]
    fixed_point: tuple[sp.Symbol, ...] = ()
    safeguarded: bool = False
    scales: tuple[sp.Symbol, ...] = ()
    losses: tuple[sp.Symbol | None, ...] = ()

    def __str__(self) -> str:
        inside = "\n".join(str(step) for step in self.body).replace("\n", "\n    ")
        coordinates = [
            f"log {x}" if log else str(x)
            for x, log in zip(self.unknowns, self.logarithmic, strict=True)
        ]
        how = "safeguarded newton" if self.safeguarded else "newton"
        return f"{how} for {', '.join(coordinates)}:\n    {inside}"

    @property
    def inputs(self) -> tuple[sp.Symbol, ...]:
        """The scalars from before that its equations hold."""
        return read_first(self.body, self.unknowns)

    @property
    def reads(self) -> set[sp.Symbol]:
        """The scalars that it is computed from, those of first values included."""
        return set(self.inputs).union(*(x.free_symbols for x in self.start))

    @property
    def writes(self) -> set[sp.Symbol]:
        """The scalars that have a value afterwards."""
        return set(self.unknowns).union(*(step.writes for step in self.body))


Step = Assign | NodeLoop | LinearSolve | Newton


def read_first(steps: Iterable[Step], known: Iterable[sp.Symbol] = ()) -> tuple[sp.Symbol, ...]:
    """Return what steps read before one of them writes it, in a fixed order."""
    written, read = set(known), dict[sp.Symbol, None]()
    for step in steps:
        read |= dict.fromkeys(sorted(step.reads - written, key=str))
        written |= step.writes
    return tuple(read)


@dataclass(frozen=True)
class ScalarRoot:
    """A function that an equation defines: the root x of ``residual(x, arguments) = 0``.

    The residual increases in x with a slope of at least one, as that of a proximal operator of a
    convex loss does; so the root is within ``|residual(start)|`` of the start, which brackets it.

    Attributes
    ----------
    name : str
        The root occurs in expressions as the applied function ``Function(name)(*arguments)``.
    unknown : Symbol
    arguments : tuple of Symbol
    residual, slope, start : Expr
        In the unknown (not the start) and the arguments; `slope` is the derivative of `residual`.
    """

    name: str
    unknown: sp.Symbol
    arguments: tuple[sp.Symbol, ...]
    residual: sp.Expr
    slope: sp.Expr
    start: sp.Expr

    def __str__(self) -> str:
        arguments = ", ".join(map(str, self.arguments))
        return f"{self.name}({arguments}): root {self.unknown} of {self.residual}"


@dataclass(frozen=True)
class Program:
    """A lowered system of equations.

    Attributes
    ----------
    name : str
        What it solves; becomes part of file names.
    documentation : str
        Its title, for the docstring of the code.
    parameters : tuple of Symbol
        Inputs of one solve; their assumptions are their domains.
    tables : tuple of Symbol
        Functions of the node that the caller tabulates; the first is the node itself. Empty if no
        pass runs over a `Line`.
    steps : tuple of Step
    outputs : tuple of Symbol
        Scalars that a solve returns.
    magnitudes : mapping from Symbol to Symbol
        For outputs that are differences: the output that holds the sum of the absolute values of
        their terms, which sets the scale of their errors.
    terms : mapping from Symbol to Symbol
        The same for unknowns that follow explicitly, without averages.
    even : bool
        Every sum over a `Line` is over an even function of the node, so half the nodes suffice.
    roots : tuple of ScalarRoot
        Functions that the expressions call.
    inner_nodes : tuple of Symbol
        Those of the tables that are further Gaussian variables: the arrays run over a grid.
    ranges : mapping from Symbol to Interval
        Where scalars are at a solution; one at which they are elsewhere is none.
    """

    name: str
    documentation: str
    parameters: tuple[sp.Symbol, ...]
    tables: tuple[sp.Symbol, ...]
    steps: tuple[Step, ...]
    outputs: tuple[sp.Symbol, ...]
    magnitudes: Mapping[sp.Symbol, sp.Symbol]
    even: bool
    roots: tuple[ScalarRoot, ...] = ()
    inner_nodes: tuple[sp.Symbol, ...] = ()
    ranges: Mapping[sp.Symbol, sp.Interval] = field(default_factory=dict)
    terms: Mapping[sp.Symbol, sp.Symbol] = field(default_factory=dict)

    @property
    def sizes(self) -> dict[sp.Symbol, sp.Symbol]:
        """Outputs that are sums, with those outputs that hold the size of their terms."""
        return {**self.magnitudes, **self.terms}

    @property
    def outside(self) -> tuple[sp.Rel, ...]:
        """Relations of which none holds at a solution; what is no number fulfils none."""
        found = []
        for x, known in self.ranges.items():
            if known.start != -sp.oo:
                found.append((sp.Le if known.left_open else sp.Lt)(x, known.start, evaluate=False))
            if known.end != sp.oo:
                found.append((sp.Ge if known.right_open else sp.Gt)(x, known.end, evaluate=False))
        return tuple(found)

    @property
    def reads(self) -> set[sp.Symbol]:
        """Everything scalar that its steps read."""
        return set().union(*(step.reads for step in self.steps))

    def assigns(self) -> Iterator[Assign]:
        """Iterate over all assignments, those at nodes, sums and those inside Newton included."""
        for step in self.steps:
            for inner in step.body if isinstance(step, Newton) else (step,):
                if isinstance(inner, Assign):
                    yield inner
                elif isinstance(inner, NodeLoop):
                    yield from (*inner.at_nodes, *inner.sums)

    def loops(self) -> Iterator[NodeLoop]:
        """Iterate over all passes over nodes, those inside Newton included."""
        for step in self.steps:
            if isinstance(step, NodeLoop):
                yield step
            elif isinstance(step, Newton):
                yield from (inner for inner in step.body if isinstance(inner, NodeLoop))

    @property
    def nested(self) -> bool:
        """Whether a pass averages over the points of each node."""
        return any(loop.inner for loop in self.loops())

    @property
    def moving(self) -> bool:
        """Whether integrands over fixed nodes may grow in a way that no table shows.

        Rational expressions in tables do not: their growth is that of the tables.
        """
        for loop in self.loops():
            if not isinstance(loop.measure, Line):
                continue
            values = [a.value for a in (*loop.at_nodes, *loop.sums)]
            if self.tables[0] in loop.tables or any(v.has(sp.Function, sp.exp) for v in values):
                return True
        return False

    @property
    def has_panels(self) -> bool:
        """Whether a pass runs over a `Panels`."""
        return any(isinstance(loop.measure, Panels) for loop in self.loops())

    @property
    def data(self) -> tuple[Data, ...]:
        """The data sets in the order in which they are arguments."""
        found = {x.measure.name: x.measure for x in self.loops() if isinstance(x.measure, Data)}
        return tuple(found[name] for name in sorted(found))

    @property
    def newton_unknowns(self) -> tuple[sp.Symbol, ...]:
        """Unknowns of all Newton steps, for which a solve takes starting values."""
        return tuple(x for s in self.steps if isinstance(s, Newton) for x in s.unknowns)

    def left_by(self, newton: Newton) -> list[sp.Symbol]:
        """Return what the body of a step computes and a later one reads, or is an output."""
        later = self.steps[self.steps.index(newton) + 1 :]
        read = {*self.outputs, *newton.losses}.union(*(step.reads for step in later))
        return [x for step in newton.body for x in sorted(step.writes & read, key=str)]

    @cached_property
    def declarations(self) -> Mapping[sp.Symbol, Kind]:
        """What each symbol is: parameter, unknown, table, …, and so whether it is an array."""
        return declare(self)

    def __str__(self) -> str:
        head = f"program {self.name}({', '.join(map(str, self.parameters))})"
        if self.tables:
            head += f"\ntables {', '.join(map(str, self.tables))}" + (
                " on half of the line (all sums are even)" if self.even else ""
            )
        if self.inner_nodes:
            nodes = ", ".join(map(str, (self.tables[0], *self.inner_nodes)))
            head += f"\non a grid of nodes ({nodes})"
        tail = f"return {', '.join(map(str, self.outputs))}"
        if self.outside:
            tail = f"no solution if {' or '.join(map(str, self.outside))}\n{tail}"
        kinds = "declarations:\n" + describe_declarations(self.declarations)
        steps = [str(step) for step in self.steps]
        return "\n".join([head, *map(str, self.roots), *steps, tail, kinds])


def rename(expr: sp.Expr, names: Mapping[sp.Expr, sp.Symbol]) -> sp.Expr:
    """Replace symbols and applied functions of the node by plain symbols with code names."""
    return expr.xreplace(dict(names))
