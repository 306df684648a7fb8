"""The symbol table of a program: what each symbol is, and whether every use of it makes sense.

A target may rely on it: scalars are assigned once and before they are used, arrays are read inside
the passes that run over them and nowhere else, and functions that roots define get the arguments
that they take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

import sympy as sp
from sympy.core.function import AppliedUndef

from ...errors import EmissionError

if TYPE_CHECKING:
    from .program import NodeLoop, Program, ScalarRoot, Step


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
    from .program import Assign, Data, LinearSolve, Newton, Panels

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
        for x, size in program.magnitudes.items():
            if not {x, size} <= set(program.outputs):
                raise self.error(f"the magnitude {size} of {x} has to be an output, as {x} itself")

    def error(self, what: str) -> EmissionError:
        return EmissionError(f"program {self.program.name}: {what}")

    def check(self, step: Step) -> None:
        from .program import Assign, LinearSolve, Newton

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
        from .program import Data, Line, Panels

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
