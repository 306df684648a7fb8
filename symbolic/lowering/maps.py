r"""Maps and flows: programs that give the next state, or its velocity, from the state.

A solver looks for a fixed point; here the way is the answer. A :class:`StateProgram` of kind "map"
computes the next state, one of kind "flow" the velocity :math:`\dot x`, from state and parameters.
Numbers of one kind that differ in their indices alone, such as averages over all pairs of neurons,
are no statements of their own but one :class:`Pass`: an expression in a few arguments and a table
with a row of places for each number. So the text does not grow with the number of neurons.

:func:`staged` takes out of a pass what takes few different values over its rows, as loop-invariant
code motion does, and gives functions that cost much loops of their own over neighbouring places,
which compilers turn into vector instructions.

The same passes, differentiated, are exact tangents along a trajectory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import sympy as sp

from ...errors import EmissionError, ParameterError
from ..expressions.shared_parts import parts_of
from ..printing.array_kernels import HEADER, INLINE, ArrayKernelPrinter
from ..printing.language import Function, Kind, Language, Parameter
from ..printing.printers import (
    CPrinter,
    JaxPrinter,
    NumpyPrinter,
    ScalarPrinter,
    SourcePrinter,
    helper_definitions,
)
from ..printing.spellings import CLanguage, NumbaLanguage, PythonLanguage

TARGETS = ("numba", "python", "numpy", "jax", "c")
KINDS = ("map", "flow")

# Values that rows share are computed once where there are less than half as many.
_SHARED = 2
# Terms of a sum are collected by factors that take less than an eighth as many values.
_FEW = 8
# What pays for a loop of its own.
_EXPENSIVE = (sp.asin, sp.acos, sp.atan, sp.erf, sp.exp, sp.log, sp.tanh, sp.sin, sp.cos)
# A pivot so much smaller than its diagonal entry is rounding: the row depends on earlier ones.
DEPENDENT = 1e-12
LARGEST = 1e12
"""A state beyond it has diverged."""


@dataclass(frozen=True)
class Pass:
    """Numbers that differ in their indices: ``memory[row[0]] = value(memory[row[1]], ...)``.

    Attributes
    ----------
    value : Expr
        In `arguments`.
    arguments : tuple of Symbol
    rows : tuple of tuple of int
        Place of the result, then of each argument.
    adds : bool
        Whether values are added to what is there.
    """

    value: sp.Expr
    arguments: tuple[sp.Symbol, ...]
    rows: tuple[tuple[int, ...], ...]
    adds: bool = False

    def __post_init__(self) -> None:
        foreign = self.value.free_symbols - set(self.arguments)
        if foreign:
            raise EmissionError(f"a pass does not know {', '.join(sorted(map(str, foreign)))}")
        if any(len(row) != len(self.arguments) + 1 for row in self.rows):
            raise EmissionError("every row of a pass has a place for the result and each argument")

    @cached_property
    def first_places(self) -> tuple[int, ...] | None:
        """Places of the first row, if those of the others follow one by one."""
        first = self.rows[0]
        steady = all(
            place == start + i
            for i, row in enumerate(self.rows)
            for place, start in zip(row, first, strict=True)
        )
        return first if steady and len(self.rows) > 1 else None


@dataclass(frozen=True)
class SemidefiniteSolve:
    r"""Solutions X of :math:`CX = B` for symmetric C ≥ 0, B in the range of C.

    Rows of C that depend on earlier ones are left out: a generalised inverse, as good as the
    pseudo-inverse for :math:`B^\top X`.

    Attributes
    ----------
    matrix : tuple of tuple of int
        Places of C, (m, m).
    right, solution : tuple of tuple of int
        Places of B and X, (m, k).
    factor : int
        First place of m² numbers for the triangular factor.
    dropped : int
        Place of the number of rows that are left out.
    """

    matrix: tuple[tuple[int, ...], ...]
    right: tuple[tuple[int, ...], ...]
    solution: tuple[tuple[int, ...], ...]
    factor: int
    dropped: int


Step: TypeAlias = Pass | SemidefiniteSolve


@dataclass(frozen=True)
class StateProgram:
    """A map or a flow, ready to be printed.

    Attributes
    ----------
    name, kind : str
        "map": values are the next state; "flow": its velocity.
    state, parameters : tuple of str
        Names; they fill the memory from its first place on.
    constants : mapping from int to float
        Places with a number.
    steps : tuple of Pass or SemidefiniteSolve
    values : tuple of int
        Places of the next state, or the velocity.
    outputs : mapping from str to int
        Places of what is recorded beside the state.
    size : int
        Of the memory.
    """

    name: str
    kind: str
    state: tuple[str, ...]
    parameters: tuple[str, ...]
    constants: Mapping[int, float]
    steps: tuple[Step, ...]
    values: tuple[int, ...]
    outputs: Mapping[str, int]
    size: int

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise EmissionError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if len(self.values) != len(self.state):
            raise EmissionError(
                f"{self.name}: every variable has a value, got {len(self.values)} for "
                f"{len(self.state)}"
            )

    @property
    def directions(self) -> int:
        """Number of tangents: one for each variable and parameter."""
        return len(self.state) + len(self.parameters)

    @classmethod
    def of(
        cls,
        values: Mapping[sp.Symbol, sp.Expr],
        *,
        name: str,
        kind: str = "map",
        parameters: Sequence[sp.Symbol] = (),
        outputs: Mapping[str, sp.Expr] | None = None,
    ) -> StateProgram:
        """Return the program of expressions, one for each variable.

        Examples
        --------
        >>> m, h = sp.symbols("m h", real=True)
        >>> StateProgram.of({m: sp.tanh(2 * m + h)}, name="magnet", parameters=(h,)).state
        ('m',)
        """
        memory = Memory((*map(str, values), *map(str, parameters)))
        place = {s: i for i, s in enumerate((*values, *parameters))}
        wanted = [*values.values(), *(outputs or {}).values()]
        shared, results = sp.cse(wanted, symbols=sp.numbered_symbols("shared_"), optimizations=[])
        for symbol, value in shared:
            memory.add(value, place, symbol)
        places = [memory.add(value, place, None) for value in results]
        return memory.program(
            name=name, kind=kind, state=len(values), values=places[: len(values)],
            outputs=dict(zip(outputs or {}, places[len(values) :], strict=True)),
        )  # fmt: skip

    # ------------------------------------------------------------------ targets

    def source(self, target: str = "numba") -> str:
        """Return the text of a target; of C the header first."""
        return "\n".join(self.files(target).values())

    def files(self, target: str = "numba", name: str | None = None) -> dict[str, str]:
        """Return {file name: text}; what they define is said in each.

        Raises
        ------
        ParameterError
            If there is no such target.
        EmissionError
            If the target lacks a function of the program.
        """
        if target not in TARGETS:
            raise ParameterError(f"target must be one of {', '.join(TARGETS)}, got {target!r}")
        name = name or self.name
        if target == "c":
            return {f"{name}.h": _c_header(self, name), f"{name}.c": _c_file(self, name)}
        if target in ("numpy", "jax"):
            return {f"{name}.py": _array_file(self, target)}
        return {f"{name}.py": _scalar_file(self, target)}


@dataclass
class Memory:
    """A memory that is laid out, with the steps that fill it."""

    names: tuple[str, ...]
    steps: list[Step] = field(default_factory=list)
    constants: dict[int, float] = field(default_factory=dict)
    size: int = 0

    def __post_init__(self) -> None:
        self.size = len(self.names)

    def block(self, count: int) -> int:
        """Return the first of new places."""
        first = self.size
        self.size += count
        return first

    def constant(self, value: float) -> int:
        """Return a place with a number."""
        for place, known in self.constants.items():
            if known == value:
                return place
        place = self.block(1)
        self.constants[place] = value
        return place

    def add(self, value: sp.Expr, place: dict[sp.Symbol, int], symbol: sp.Symbol | None) -> int:
        """Compute one expression; `place` says where symbols are, and learns `symbol`."""
        arguments = tuple(sorted(value.free_symbols, key=str))
        target = self.block(1)
        self.steps.append(Pass(value, arguments, ((target, *(place[s] for s in arguments)),)))
        if symbol is not None:
            place[symbol] = target
        return target

    def clear(self, first: int, count: int) -> None:
        """Set neighbouring places to zero, to be added to."""
        self.steps.append(Pass(sp.S.Zero, (), tuple((first + i,) for i in range(count))))

    def program(
        self, *, name: str, kind: str, state: int, values: Sequence[int],
        outputs: Mapping[str, int],
    ) -> StateProgram:  # fmt: skip
        """Return the finished program, its passes in stages."""
        steps: list[Step] = []
        for step in self.steps:
            steps += staged(step, self) if isinstance(step, Pass) else [step]
        return StateProgram(
            name, kind, self.names[:state], self.names[state:], dict(self.constants), tuple(steps),
            tuple(values), dict(outputs), self.size,
        )  # fmt: skip


# ---------------------------------------------------------------------- stages of a pass


def staged(step: Pass, memory: Memory) -> list[Pass]:
    """Return a pass as several: what few rows differ in, costly functions, and the rest."""
    if len(step.rows) < _FEW or not step.arguments:
        return [step]
    return _Stages(step, memory).passes()


class _Stages:
    def __init__(self, step: Pass, memory: Memory) -> None:
        self.step, self.memory = step, memory
        self.column = {x: k + 1 for k, x in enumerate(step.arguments)}
        # Canonical expression: its arguments, and place of the value at each tuple of theirs.
        self.shared: dict[sp.Expr, tuple[tuple[sp.Symbol, ...], dict[tuple[int, ...], int]]] = {}
        self.found: list[Pass] = []
        # Symbols that stand for values of earlier passes, with their place in each row.
        self.places: dict[sp.Symbol, list[int]] = {
            x: [row[k] for row in step.rows] for x, k in self.column.items()
        }

    def passes(self) -> list[Pass]:
        value = self.lifted(self.collected(self.step.value))
        for function in sorted(parts_of(value, *_EXPENSIVE), key=sp.count_ops):
            value = self.apart(value, function)
        return [*self.found, self.all_rows(value)]

    def tuples(self, symbols: Sequence[sp.Symbol]) -> list[tuple[int, ...]]:
        return list(zip(*(self.places[s] for s in symbols), strict=True))

    def different(self, symbols: set[sp.Symbol]) -> int:
        return len(set(self.tuples(sorted(symbols, key=str)))) if symbols else 1

    def collected(self, expr: sp.Expr) -> sp.Expr:
        """Collect sums by what takes few values: c1 a + c2 a = (c1 + c2) a."""
        few: set[sp.Symbol] = set()
        for x in sorted(expr.free_symbols, key=lambda x: (self.different({x}), str(x))):
            if _FEW * self.different({*few, x}) <= len(self.step.rows):
                few.add(x)

        def inside(node: sp.Expr) -> sp.Expr:
            if not node.args or node.free_symbols <= few:
                return node
            if isinstance(node, sp.Add):
                groups: dict[sp.Expr, list[sp.Expr]] = {}
                for term in node.args:
                    steady, moving = term.as_independent(*(node.free_symbols - few), as_Add=False)
                    groups.setdefault(inside(moving), []).append(steady)
                return sp.Add(*(sp.Add(*cs) * moving for moving, cs in groups.items()))
            return node.func(*map(inside, node.args))

        return inside(expr) if few else expr

    def lifted(self, expr: sp.Expr) -> sp.Expr:
        """Replace parts that take few values by symbols for them."""
        symbols = expr.free_symbols
        if not expr.args or not symbols:
            return expr
        if _SHARED * self.different(symbols) <= len(self.step.rows):
            return self.value_of(expr)
        if isinstance(expr, sp.Mul | sp.Add):
            # Arguments that go together are one value.
            groups: list[tuple[set[sp.Symbol], list[sp.Expr]]] = []
            rest: list[sp.Expr] = []
            for part in sorted(expr.args, key=lambda a: (self.different(a.free_symbols), str(a))):
                if not part.free_symbols:
                    (groups[0][1] if groups else rest).append(part)
                    continue
                for known, parts in groups:
                    both = known | part.free_symbols
                    if _SHARED * self.different(both) <= len(self.step.rows) and (
                        self.different(both) == max(
                            self.different(known), self.different(part.free_symbols)
                        )
                    ):  # fmt: skip
                        known |= part.free_symbols
                        parts.append(part)
                        break
                else:
                    groups.append((set(part.free_symbols), [part]))
            parts = [self.lifted(expr.func(*ps)) if len(ps) > 1 else self.lifted(ps[0])
                     for _, ps in groups]  # fmt: skip
            return expr.func(*parts, *rest)
        return expr.func(*map(self.lifted, expr.args))

    def value_of(self, expr: sp.Expr) -> sp.Expr:
        if expr.is_Symbol:
            return expr
        symbols = tuple(sorted(expr.free_symbols, key=str))
        names = sp.symbols(f"x0:{len(symbols)}", real=True)
        same = expr.xreplace(dict(zip(symbols, names, strict=True)))
        _, known = self.shared.setdefault(same, (names, {}))
        tuples = self.tuples(symbols)
        new = [t for t in dict.fromkeys(tuples) if t not in known]
        if new:
            first = self.memory.block(len(new))
            known |= {t: first + i for i, t in enumerate(new)}
            self.found.append(Pass(same, names, tuple((known[t], *t) for t in new)))
        return self.symbol([known[t] for t in tuples])

    def apart(self, expr: sp.Expr, function: sp.Expr) -> sp.Expr:
        """Give a function two loops: over its argument, and over itself at neighbouring places."""
        (argument,) = function.args
        if not argument.free_symbols:
            return expr
        count = len(self.step.rows)
        before, after = self.memory.block(count), self.memory.block(count)
        self.found.append(self.all_rows(argument, before))
        x = sp.Symbol("x0", real=True)
        rows = tuple((after + i, before + i) for i in range(count))
        self.found.append(Pass(function.func(x), (x,), rows))
        return expr.xreplace({function: self.symbol([after + i for i in range(count)])})

    def symbol(self, places: list[int]) -> sp.Symbol:
        found = sp.Symbol(f"y{len(self.places)}", real=True)
        self.places[found] = places
        return found

    def all_rows(self, value: sp.Expr, first: int | None = None) -> Pass:
        symbols = tuple(sorted(value.free_symbols, key=str))
        targets = [row[0] if first is None else first + i for i, row in enumerate(self.step.rows)]
        columns = [targets, *(self.places[s] for s in symbols)]
        rows = tuple(zip(*columns, strict=True))
        return Pass(value, symbols, rows, self.step.adds and first is None)


# ---------------------------------------------------------------------- scalar languages


_MEMORY = Parameter("memory", Kind.OUTPUT)


def _locals(step: Pass) -> dict[sp.Symbol, sp.Symbol]:
    return {x: sp.Symbol(f"x{k}", **x.assumptions0) for k, x in enumerate(step.arguments)}


def _read(step: Pass) -> list[str]:
    """Statements that read the arguments of row i."""
    first = step.first_places
    places = (
        [f"rows[i, {k + 1}]" for k in range(len(step.arguments))]
        if first is None
        else [f"{place} + i" for place in first[1:]]
    )
    return [f"x{k} = memory[{place}]" for k, place in enumerate(places)]


def _assigned(values: Sequence[sp.Expr]) -> tuple[list[str], dict[str, sp.Expr], int]:
    """Statements for common parts, the meaning of their placeholders, and how many values."""
    shared, results = sp.cse(values, symbols=sp.numbered_symbols("s"), optimizations=[])
    lines = [f"{s} = part_{s}" for s, _ in shared]
    meaning = {f"part_{s}": value for s, value in shared}
    meaning |= {f"value_{k}": value for k, value in enumerate(results)}
    return lines, meaning, len(results)


def _loop(step: Pass, lines: Sequence[str]) -> str:
    return "\n".join([f"for i in range({len(step.rows)}):", *(f"    {line}" for line in lines)])


def _rows_parameter(step: Pass) -> tuple[Parameter, ...]:
    if step.first_places is not None:
        return ()
    return (Parameter("rows", Kind.INDICES, columns=len(step.arguments) + 1),)


def _pass_function(k: int, step: Pass) -> Function:
    lines, meaning, _ = _assigned([step.value.xreplace(_locals(step))])
    first = step.first_places
    target = "rows[i, 0]" if first is None else f"{first[0]} + i"
    result = f"memory[{target}] {'+=' if step.adds else '='} value_0"
    body = _loop(step, [*_read(step), *lines, result])
    return Function(f"pass_{k}", (_MEMORY, *_rows_parameter(step)), body, meaning)


def _tangent_function(k: int, step: Pass, directions: int) -> Function:
    new = _locals(step)
    slopes = [step.value.diff(x).xreplace(new) for x in step.arguments]
    moving = [j for j, slope in enumerate(slopes) if slope != 0]
    lines, meaning, _ = _assigned([slopes[j] for j in moving])
    first = step.first_places
    places = [
        f"rows[i, {j}]" if first is None else f"{first[j]} + i"
        for j in range(len(step.arguments) + 1)
    ]
    lines = [*_read(step), *lines]
    lines += [f"d{j} = value_{n}" for n, j in enumerate(moving)]
    terms = " + ".join(f"d{j} * tangent[{places[j + 1]}, k]" for j in moving) or "0.0"
    lines += [
        f"for k in range({directions}):",
        f"    tangent[{places[0]}, k] {'+=' if step.adds else '='} {terms}",
    ]
    memory = Parameter("memory", Kind.ARRAY)
    tangent = Parameter("tangent", Kind.OUTPUT_TABLE, columns=directions)
    return Function(
        f"tangent_{k}", (memory, tangent, *_rows_parameter(step)), _loop(step, lines), meaning
    )


_FACTOR = f"""\
dropped = 0.0
for j in range(size):
    pivot = memory[matrix[j, j]]
    for k in range(j):
        pivot -= memory[factor + size * j + k] * memory[factor + size * j + k]
    if pivot <= {DEPENDENT} * memory[matrix[j, j]]:
        dropped += 1.0
        for i in range(j, size):
            memory[factor + size * i + j] = 0.0
    else:
        root = sqrt(pivot)
        memory[factor + size * j + j] = root
        for i in range(j + 1, size):
            rest = memory[matrix[i, j]]
            for k in range(j):
                rest -= memory[factor + size * i + k] * memory[factor + size * j + k]
            memory[factor + size * i + j] = rest / root
memory[count] = dropped
"""
_SUBSTITUTE = """\
for i in range(size):
    rest = {right}
    for k in range(i):
        rest -= memory[factor + size * i + k] * {kth}
    pivot = memory[factor + size * i + i]
    {ith} = rest / pivot if pivot > 0.0 else 0.0
for back in range(size):
    i = size - 1 - back
    rest = {ith}
    for k in range(i + 1, size):
        rest -= memory[factor + size * k + i] * {kth}
    pivot = memory[factor + size * i + i]
    {ith} = rest / pivot if pivot > 0.0 else 0.0
"""


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def _solve_functions(k: int, step: SemidefiniteSolve, directions: int) -> tuple[Function, Function]:
    size, columns = len(step.matrix), len(step.right[0])
    tables = (
        Parameter("matrix", Kind.INDICES, columns=size),
        Parameter("right", Kind.INDICES, columns=columns),
        Parameter("solution", Kind.INDICES, columns=columns),
    )
    head = f"size = {size}\nfactor = {step.factor}\ncount = {step.dropped}\n"
    substitute = _SUBSTITUTE.format(
        right="memory[right[i, c]]", ith="memory[solution[i, c]]", kth="memory[solution[k, c]]"
    )
    body = f"{head}{_FACTOR}for c in range({columns}):\n{_indented(substitute)}"
    solve = Function(f"pass_{k}", (_MEMORY, *tables), body)
    again = _SUBSTITUTE.format(
        right="tangent[solution[i, c], n]",
        ith="tangent[solution[i, c], n]",
        kth="tangent[solution[k, c], n]",
    )
    # dX = C⁻(dB − dC X)
    moved = """\
for i in range(size):
    rest = tangent[right[i, c], n]
    for k in range(size):
        rest -= tangent[matrix[i, k], n] * memory[solution[k, c]]
    tangent[solution[i, c], n] = rest
"""
    inside = _indented(_indented(moved + again))
    text = f"{head}for n in range({directions}):\n    for c in range({columns}):\n{inside}"
    memory = Parameter("memory", Kind.ARRAY)
    tangent = Parameter("tangent", Kind.OUTPUT_TABLE, columns=directions)
    text = text.replace(f"count = {step.dropped}\n", "")
    return solve, Function(f"tangent_{k}", (memory, tangent, *tables), text)


@dataclass(frozen=True)
class _Functions:
    """Functions of a program, with the tables of places that each call takes."""

    program: StateProgram
    passes: tuple[Function, ...]
    tangents: tuple[Function, ...]
    tables: Mapping[str, tuple[tuple[int, ...], ...]]
    apply: Function
    apply_tangent: Function

    @classmethod
    def of(cls, program: StateProgram) -> _Functions:
        passes, tangents, tables = [], [], {}
        calls: list[list[str]] = []
        for k, step in enumerate(program.steps):
            names = []
            if isinstance(step, Pass):
                passes.append(_pass_function(k, step))
                tangents.append(_tangent_function(k, step, program.directions))
                if step.first_places is None:
                    names = [f"rows_{k}"]
                    tables[names[0]] = step.rows
            else:
                one, other = _solve_functions(k, step, program.directions)
                passes.append(one)
                tangents.append(other)
                names = [f"matrix_{k}", f"right_{k}", f"solution_{k}"]
                tables |= dict(zip(names, (step.matrix, step.right, step.solution), strict=True))
            calls.append(names)
        body = "\n".join(f"pass_{k}({', '.join(['memory', *c])})" for k, c in enumerate(calls))
        both = "\n".join(
            f"tangent_{k}({', '.join(['memory', 'tangent', *c])})" for k, c in enumerate(calls)
        )
        tangent = Parameter("tangent", Kind.OUTPUT_TABLE, columns=program.directions)
        return cls(
            program, tuple(passes), tuple(tangents), tables,
            Function("apply", (_MEMORY,), body, calls=tuple(passes)),
            Function(
                "apply_tangent", (Parameter("memory", Kind.ARRAY), tangent), both,
                calls=tuple(tangents),
            ),
        )  # fmt: skip

    @cached_property
    def iterate(self) -> Function:
        """Record rows of state and outputs, from the state as it is; return how many."""
        program = self.program
        lines = ["row = 0", "good = True", "while good and row < count:", "    apply(memory)"]
        for k in range(len(program.state)):
            lines.append(f"    record[row, {k}] = memory[{k}]")
        for k, place in enumerate(program.outputs.values(), start=len(program.state)):
            lines.append(f"    record[row, {k}] = memory[{place}]")
        lines.append("    row += 1")
        for k, place in enumerate(program.values):
            # Not a number fails the comparison, too.
            lines.append(f"    if not abs(memory[{place}]) < {LARGEST!r}:")
            lines.append("        good = False")
            lines.append(f"    next_{k} = memory[{place}]")
        lines += [f"    memory[{k}] = next_{k}" for k in range(len(program.state))]
        lines.append("return row")
        width = len(program.state) + len(program.outputs)
        record = Parameter("record", Kind.OUTPUT_TABLE, columns=width)
        return Function(
            "iterate", (_MEMORY, record, Parameter("count", Kind.WHOLE)), "\n".join(lines),
            returns=Kind.WHOLE, calls=(self.apply,),
        )  # fmt: skip

    def text(self, language: Language, *, tangents: bool) -> str:
        functions = [*self.passes, self.apply]
        functions += [*self.tangents, self.apply_tangent] if tangents else []
        functions += [self.iterate] if self.program.kind == "map" else []
        return "\n\n".join(language.source(f) for f in functions)


def _about(program: StateProgram, defined: str) -> str:
    what = "the next state" if program.kind == "map" else "the velocity of the state"
    return (
        f"{program.name}: a {program.kind}. memory holds state, parameters, and numbers between; "
        f"{defined} fills it, {what} among the rest.\n\nstate: {', '.join(program.state)}\n"
        f"parameters: {', '.join(program.parameters)}\noutputs: {', '.join(program.outputs)}"
    )


def _public(program: StateProgram) -> str:
    constants = {k: v for k, v in program.constants.items()}
    return (
        f"STATE = {program.state!r}\nPARAMETERS = {program.parameters!r}\n"
        f"OUTPUTS = {tuple(program.outputs)!r}\nVALUE_PLACES = {program.values!r}\n"
        f"OUTPUT_PLACES = {tuple(program.outputs.values())!r}\nSIZE = {program.size}\n"
        f"CONSTANTS = {constants!r}\n"
    )


_NEW_MEMORY = '''\
def new_memory(state, parameters):
    """Return a memory with a state and parameters, sequences of numbers in their order."""
    memory = np.zeros(SIZE)
    memory[: len(STATE)] = state
    memory[len(STATE) : len(STATE) + len(PARAMETERS)] = parameters
    for place, number in CONSTANTS.items():
        memory[place] = number
    return memory


def values(state, parameters):
    """Return values (next state, or velocity) and outputs as arrays."""
    memory = new_memory(state, parameters)
    apply(memory)
    return memory[list(VALUE_PLACES)], memory[list(OUTPUT_PLACES)]


def right_hand_side(time, state, parameters):
    """Return the values alone, as integrators of flows call them."""
    return values(state, parameters)[0]
'''


def _tables_text(tables: Mapping[str, tuple[tuple[int, ...], ...]], kind: str = "") -> str:
    """Places as arrays; unsigned ones are read without a test for places from the end."""
    return "".join(
        f"{name} = np.array([{', '.join(str(list(row)) for row in rows)}]{kind})\n"
        for name, rows in tables.items()
    )


def _scalar_file(program: StateProgram, target: str) -> str:
    functions = _Functions.of(program)
    tables = _tables_text(functions.tables, ", np.uint64" if target == "numba" else "")
    about = f'"""{_about(program, "apply(memory)")}\n"""\n'
    if target == "numba":
        printer: SourcePrinter = ArrayKernelPrinter()
        decorator, header = INLINE, HEADER
        try:
            body = functions.text(NumbaLanguage(printer), tangents=True)
        except EmissionError:
            # Functions without a vectorised form are those of the C library.
            printer, decorator = ScalarPrinter(), "@njit(**_FLAGS)\n"
            body = functions.text(NumbaLanguage(printer), tangents=True)
        header += (
            '_FLAGS = {"error_model": "numpy", "fastmath": {"contract"}, "nogil": True, '
            '"cache": True}\n'
        )
    else:
        printer, decorator = ScalarPrinter(), ""
        header = "import math\n\nimport numpy as np\n"
        body = functions.text(PythonLanguage(printer), tangents=True)
    helpers = helper_definitions(printer, body, decorator)
    return "\n\n".join([about + header, _public(program) + tables, helpers, body, _NEW_MEMORY])


def _c_tables(tables: Mapping[str, tuple[tuple[int, ...], ...]]) -> str:
    return "".join(
        f"static const ptrdiff_t {name}[] = {{{', '.join(str(x) for row in rows for x in row)}}};\n"
        for name, rows in tables.items()
    )


def _c_header(program: StateProgram, name: str) -> str:
    upper = name.upper()
    width = len(program.state) + len(program.outputs)
    iterate = (
        "\n/* Record `count` rows of state and outputs, the start first; return how many there are "
        "before\n   the state diverges. */\n"
        f"ptrdiff_t {name}_iterate(ptrdiff_t count, const double *state, const double *parameters, "
        "double *record);\n"
        if program.kind == "map"
        else ""
    )
    return (
        f"/* {_about(program, 'values')} */\n#ifndef {upper}_H\n#define {upper}_H\n"
        f"#include <stddef.h>\n#define {upper}_N_STATE {len(program.state)}\n"
        f"#define {upper}_N_PARAMETERS {len(program.parameters)}\n"
        f"#define {upper}_N_OUTPUTS {len(program.outputs)}\n#define {upper}_N_RECORD {width}\n\n"
        f"/* {'The next state' if program.kind == 'map' else 'The velocity'} and the outputs. */\n"
        f"void {name}_values(const double *state, const double *parameters, double *values, "
        f"double *outputs);\n{iterate}#endif\n"
    )


def _c_file(program: StateProgram, name: str) -> str:
    functions = _Functions.of(program)
    printer = CPrinter()
    body = functions.text(CLanguage(printer), tangents=False)
    constants = "".join(f"    memory[{k}] = {v!r};\n" for k, v in program.constants.items())
    fill = (
        "static void fill(double *memory, const double *state, const double *parameters)\n{\n"
        f"    ptrdiff_t i;\n    for (i = 0; i < {program.size}; i++) memory[i] = 0.0;\n"
        + "".join(f"    memory[{k}] = state[{k}];\n" for k in range(len(program.state)))
        + "".join(
            f"    memory[{len(program.state) + k}] = parameters[{k}];\n"
            for k in range(len(program.parameters))
        )
        + ("" if program.parameters else "    (void)parameters;\n")
        + f"{constants}}}\n"
    )
    head = f"double memory[{program.size}];\n    fill(memory, state, parameters);\n"
    values = (
        f"void {name}_values(const double *state, const double *parameters, double *values, "
        f"double *outputs)\n{{\n    {head}    apply(memory);\n"
        + "".join(f"    values[{k}] = memory[{p}];\n" for k, p in enumerate(program.values))
        + "".join(
            f"    outputs[{k}] = memory[{p}];\n" for k, p in enumerate(program.outputs.values())
        )
        + ("" if program.outputs else "    (void)outputs;\n")
        + "}\n"
    )
    iterated = (
        f"\nptrdiff_t {name}_iterate(ptrdiff_t count, const double *state, const double "
        f"*parameters, double *record)\n{{\n    {head}    return iterate(memory, record, count);\n"
        "}\n"
        if program.kind == "map"
        else ""
    )
    helpers = helper_definitions(printer, body)
    return "\n".join([
        f'#include <math.h>\n#include "{name}.h"\n', helpers, _c_tables(functions.tables), body,
        fill, values + iterated,
    ])  # fmt: skip


# ---------------------------------------------------------------------- arrays


_ARRAY_SOLVE = '''\
def solve_semidefinite(matrix, right):
    """Return X of C X = B and the number of dependent rows of C, which are left out."""
    size = matrix.shape[-1]
    factor = [[0.0] * size for _ in range(size)]
    dropped = 0.0
    for j in range(size):
        pivot = matrix[..., j, j]
        for k in range(j):
            pivot = pivot - factor[j][k] * factor[j][k]
        free = pivot > {dependent} * matrix[..., j, j]
        dropped = dropped + {np}.where(free, 0.0, 1.0)
        root = {np}.sqrt({np}.where(free, pivot, 1.0))
        factor[j][j] = {np}.where(free, root, 0.0)
        for i in range(j + 1, size):
            rest = matrix[..., i, j]
            for k in range(j):
                rest = rest - factor[i][k] * factor[j][k]
            factor[i][j] = {np}.where(free, rest / root, 0.0)

    def divided(rest, pivot):
        safe = {np}.where(pivot > 0.0, pivot, 1.0)
        return {np}.where(pivot > 0.0, 1.0, 0.0)[..., None] * (rest / safe[..., None])

    found = [None] * size
    for i in range(size):
        rest = right[..., i, :]
        for k in range(i):
            rest = rest - factor[i][k][..., None] * found[k]
        found[i] = divided(rest, factor[i][i])
    for i in reversed(range(size)):
        rest = found[i]
        for k in range(i + 1, size):
            rest = rest - factor[k][i][..., None] * found[k]
        found[i] = divided(rest, factor[i][i])
    return {np}.stack(found, axis=-2), dropped
'''

_ARRAY_VALUES = '''\
def new_memory(state, parameters):
    """Return a memory with states and parameters, arrays (..., n) in the order of the names."""
    state, parameters = {np}.asarray(state), {np}.asarray(parameters)
    shape = np.broadcast_shapes(state.shape[:-1], parameters.shape[:-1])
    rest = np.zeros((*shape, SIZE - len(STATE) - len(PARAMETERS)))
    for place, number in CONSTANTS.items():
        rest[..., place - len(STATE) - len(PARAMETERS)] = number
    parts = [{np}.broadcast_to(x, (*shape, x.shape[-1])) for x in (state, parameters)]
    return {np}.concatenate([*parts, {np}.asarray(rest)], axis=-1)


def values(state, parameters):
    """Return values (next state, or velocity) and outputs, arrays (..., n)."""
    memory = apply(new_memory(state, parameters))
    return memory[..., {np}.array(VALUE_PLACES, int)], memory[..., {np}.array(OUTPUT_PLACES, int)]


def right_hand_side(time, state, parameters):
    """Return the values alone, as integrators of flows call them."""
    return values(state, parameters)[0]
'''


def _array_file(program: StateProgram, target: str) -> str:
    printer: SourcePrinter = JaxPrinter() if target == "jax" else NumpyPrinter()
    np = "jnp" if target == "jax" else "np"
    tables: dict[str, tuple[tuple[int, ...], ...]] = {}
    lines = ["def apply(memory):", '    """Return the memory filled; NumPy fills it in place."""']
    for k, step in enumerate(program.steps):
        if isinstance(step, Pass):
            tables[f"rows_{k}"] = step.rows
            lines += [f"    {line}" for line in _array_lines(k, step, printer, target)]
            continue
        names = {"matrix": step.matrix, "right": step.right, "solution": step.solution}
        tables |= {f"{name}_{k}": places for name, places in names.items()}
        lines += [
            f"    found, dropped = solve_semidefinite(memory[..., matrix_{k}], "
            f"memory[..., right_{k}])",
            *(
                f"    {line}"
                for line in (
                    _stored(f"solution_{k}", "found", target),
                    _stored(str(step.dropped), "dropped", target),
                )
            ),
        ]
    lines.append("    return memory")
    solves = any(isinstance(step, SemidefiniteSolve) for step in program.steps)
    support = _ARRAY_SOLVE.format(np=np, dependent=DEPENDENT) if solves else ""
    imports = "import math\n\nimport numpy as np\n"
    if target == "jax":
        imports += (
            'import jax\nimport jax.numpy as jnp\n\njax.config.update("jax_enable_x64", True)\n'
        )
    body = "\n".join(lines) + "\n"
    if any(word in body for word in ("scipy.",)):
        imports += "import scipy.special\n"
    about = f'"""{_about(program, "apply(memory)")}\n"""\n'
    return "\n\n".join([
        about + imports, _public(program) + _tables_text(tables),
        helper_definitions(printer, body), support, body, _ARRAY_VALUES.format(np=np),
    ])  # fmt: skip


def _stored(places: str, value: str, target: str, *, adds: bool = False) -> str:
    if target == "jax":
        return f"memory = memory.at[..., {places}].{'add' if adds else 'set'}({value})"
    if adds:
        return f"np.add.at(memory, (..., {places}), {value})"
    return f"memory[..., {places}] = {value}"


def _array_lines(k: int, step: Pass, printer: SourcePrinter, target: str) -> list[str]:
    new = _locals(step)
    lines = [f"x{j} = memory[..., rows_{k}[:, {j + 1}]]" for j in range(len(step.arguments))]
    shared, (value,) = sp.cse(
        [step.value.xreplace(new)], symbols=sp.numbered_symbols("s"), optimizations=[]
    )
    lines += [f"{s} = {printer.print(part)}" for s, part in shared]
    lines.append(_stored(f"rows_{k}[:, 0]", printer.print(value), target, adds=step.adds))
    return lines
