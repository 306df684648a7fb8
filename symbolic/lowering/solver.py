"""The solver of a program as functions that every scalar language can say.

Passes over nodes, data and panels stand here, Newton's method in :mod:`.newton`, and the error
estimate from three rules in :mod:`.rows`; languages turn them into text. `solver_source` is the
text that :mod:`giantstep.numeric` loads: numba, its plain-Python twin, and mpmath. Each is
self-contained: numba does not notice changes in other files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import sympy as sp

from ...runtime.rules import REACH
from ..printing.language import Function, Kind, Parameter
from ..printing.printers import MpmathPrinter, ScalarPrinter, SourcePrinter, helper_definitions
from ..printing.spellings import MpmathLanguage, NumbaLanguage, PythonLanguage, argument_names
from .fuse import FreshSymbols
from .lazy_cases import Line, with_branches
from .newton import INVERT, SOLVE_DENSE, Place, newton_lines, root_function, solve_lines
from .node_numbers import NODE_NUMBER, with_node_numbers
from .program import Assign, Data, LinearSolve, Newton, NodeLoop, Panels, Program, Step
from .renaming import safe_program
from .rows import EQUATION_ROUNDING, LEVELS, OWN_ROUNDING, rows_function

# Names that the bodies below use.
RESERVED = frozenset(
    """
    weight weight_j out info rough residual amplification iterations converged done previous close
    size turn determinant i j k x y z state unused parameters results errors last first gain scale
    step comparable measurable accepted moves halvings rescues usable begun panel_weight panel_node
    real_only still steady
    reach piece left width mass density_scale starts stop first_point last_point largest
    share inverse unused_inverse held probe moved rounding shift responds
    solve solve_rows solve_batch solve_dense invert solve_point solve_many array attempt real
    inf nan tolerance stalled resolved unit abs min max exp log sqrt isfinite len range float
    """.split()
)
# And those that are made from the names of a program.
_PREFIXES = ("start_", "near_", "step_", "saved_", *(f"{level}_" for level in LEVELS))


def scalar_functions(
    program: Program, reserved: Iterable[str] = (), *, zero: sp.Expr | None = None
) -> tuple[Function, ...]:
    """Return the functions that solve a program, each after those that it calls.

    Parameters
    ----------
    program : Program
    reserved : iterable of str
        Further names that mean something in the target: ``Language.reserved``.
    zero : Expr, optional
        What sums over nodes begin with, where nodes are numbers of another kind.

    Returns
    -------
    tuple of Function
        ``solve_dense`` where a system of more than two equations is solved, ``invert`` where
        Newton's method does, the roots of the program, ``solve`` at one set of parameters on one
        set of arrays, and ``solve_rows`` for rows of parameters with an estimate of the errors.

    Raises
    ------
    EmissionError
        If a name of the program cannot be a name in code.
    """
    taken = {*RESERVED, *reserved, *(root.name for root in program.roots)}
    clashing: set[str] = set()
    while True:
        program = safe_program(program, taken | clashing)
        # A name that is made from another one must not be a third: start_x of x. Each level has
        # an array of weights besides.
        names = {str(s) for s in (*program.parameters, *program.tables, *program.outputs)}
        made = {p + n for p in _PREFIXES for n in {*names, "weight"}} | {f"{n}_j" for n in names}
        if not names & made:
            break
        clashing |= names & made
    helpers: list[Function] = []
    if any(isinstance(s, LinearSolve | Newton) and len(s.unknowns) > 2 for s in program.steps):
        helpers.append(SOLVE_DENSE)
    if any(isinstance(s, Newton) and len(s.unknowns) > 2 for s in program.steps):
        helpers.append(INVERT)
    for root in program.roots:
        helpers.append(root_function(root, tuple(helpers), taken))
    solve = _Solve(program, tuple(helpers), zero).function()
    return (*helpers, solve, rows_function(program, solve, array_parameters))


def array_parameters(program: Program, prefix: str = "") -> list[Parameter]:
    """Return the arrays that ``solve`` takes; data sets carry no prefix.

    The prefix is that of a rule ("fine_"), of which there are three.
    """
    found = []
    if program.tables:
        found.append(Parameter(f"{prefix}weight", Kind.ARRAY, counted=True))
        found += [Parameter(f"{prefix}{t}", Kind.ARRAY) for t in program.tables]
    if program.has_panels:
        found.append(Parameter(f"{prefix}panel_weight", Kind.ARRAY, counted=True))
        found.append(Parameter(f"{prefix}panel_node", Kind.ARRAY))
    return found + data_parameters(program)


def data_parameters(program: Program) -> list[Parameter]:
    """Return the arrays of all data sets."""
    found = []
    for data in program.data:
        found.append(Parameter(f"weight_{data.name}", Kind.ARRAY, counted=True))
        found += [Parameter(str(c), Kind.ARRAY) for c in data.columns]
    return found


def _factors(value: sp.Expr) -> list[sp.Symbol]:
    """Return the symbols that a product holds to a positive whole power, in its order."""
    powers = (factor.as_base_exp() for factor in sp.Mul.make_args(value))
    return [b for b, e in powers if b.is_Symbol and e.is_Integer and e > 0]


def _only_arithmetic(loop: NodeLoop) -> bool:
    """Tell whether a pass over nodes calls no function but roots."""
    values = [a.value for a in (*loop.at_nodes, *loop.sums)]
    powers = set().union(*(value.atoms(sp.Pow) for value in values))
    called = any(value.atoms(sp.Function) - value.atoms(sp.Abs) for value in values)
    return not called and all((2 * p.exp).is_Integer for p in powers)


class _Solve:
    """Writes the body of ``solve``."""

    def __init__(
        self, program: Program, helpers: tuple[Function, ...], zero: sp.Expr | None
    ) -> None:
        self.program = program
        self.helpers = helpers
        self.expressions: dict[str, sp.Expr] = {}
        self.zero = "0.0" if zero is None else self.placeholder(zero)
        self.arrays: dict[str, int] = {}
        self.fresh = FreshSymbols(map(str, program.declarations))

    def function(self) -> Function:
        program = self.program
        lines: list[str] = []
        for step in program.steps:
            lines += self.step(step)
        head = [
            "residual = 0.0",
            "amplification = 0.0",
            "iterations = 0",
            "converged = True",
        ]
        if program.has_panels:
            density = self.placeholder(1 / sp.sqrt(2 * sp.pi))
            head.append(f"density_scale = {density}")
        head += [f"{name} = array({length})" for name, length in self.arrays.items()]
        tail: list[str] = []
        for x in program.outside:
            tail += [f"if {x.lhs} {x.rel_op} {self.placeholder(x.rhs)}:", "    converged = False"]
        tail += [f"out[{k}] = {x}" for k, x in enumerate(program.outputs)]
        tail += [
            "info[0] = iterations if converged else -max(iterations, 1)",
            "info[1] = residual",
            "# A relative error eps of the equations moves no unknown by more than about this; eps",
            "# is four units in the last place, because tables of polynomials of degree 8 cancel.",
            f"info[2] = 4 * unit * ({OWN_ROUNDING} + {EQUATION_ROUNDING} * amplification)",
        ]
        reach = [Parameter("reach", default=REACH)] if program.has_panels else []
        newton = bool(program.newton_unknowns)
        inverse = [Parameter("inverse", Kind.OUTPUT)] if newton else []
        # A real number: numba compiles a function once for every whole number it is called with.
        held = [Parameter("held", default=0.0)] if newton else []
        parameters = (
            *(Parameter(str(p)) for p in program.parameters),
            *array_parameters(program),
            *(Parameter(f"start_{x}") for x in program.newton_unknowns),
            Parameter("out", Kind.OUTPUT),
            Parameter("info", Kind.OUTPUT),
            *inverse,
            Parameter("rough", default=0.0),
            *held,
            *reach,
        )
        documentation = (
            "Solve once: results go to `out`, (iterations, residual, rounding) to `info`.\n\n"
            "Newton's method stops early where the residual has fallen to `rough` times its first\n"
            "value: enough for the difference of two rules, started at the solution of one."
        )
        if newton:
            documentation += (
                "\nThe first `held` Newton steps stay at their first values, where all is\n"
                "evaluated once. If none does, `inverse` receives the inverse Jacobians, blocks\n"
                "of a matrix with a row for each unknown of Newton's method, row after row."
            )
        return Function(
            "solve",
            parameters,
            "\n".join([*head, *lines, *tail]) + "\n",
            self.expressions,
            documentation=documentation,
            fast=True,
            vector=any(map(_only_arithmetic, program.loops())),
            calls=self.helpers,
        )

    def placeholder(self, value: sp.Expr) -> str:
        """Return the name in the body that stands for an expression."""
        if isinstance(value, sp.Symbol):
            return str(value)
        name = f"expression_{len(self.expressions)}_"
        self.expressions[name] = value
        return name

    def step(self, step: Step) -> list[str]:
        if isinstance(step, Assign):
            return [f"{step.target} = {self.placeholder(step.value)}"]
        if isinstance(step, NodeLoop):
            return self.loop(step)
        if isinstance(step, LinearSolve):
            return self.linear(step)
        inside = [line for body in step.body for line in self.step(body)]
        lines = newton_lines(step, inside, self.place(step), self.arrays)
        if step.safeguarded:
            # The first evaluation may fail before it has come to what is read afterwards.
            lines = [*(f"{x} = nan" for x in self.program.left_by(step)), *lines]
        return lines

    def place(self, newton: Newton) -> Place:
        """Return where a step of Newton's method stands among all of them."""
        steps = [s for s in self.program.steps if isinstance(s, Newton)]
        number = next(k for k, s in enumerate(steps) if s is newton)
        first = sum(len(s.unknowns) for s in steps[:number])
        return Place(number + 1, first, len(self.program.newton_unknowns))

    def loop(self, loop: NodeLoop) -> list[str]:
        lines = [f"{a.target} = {self.zero}" for a in loop.sums]
        if isinstance(loop.measure, Panels):
            return lines + self.panels(loop, loop.measure)
        data = isinstance(loop.measure, Data)
        weight = f"weight_{loop.measure.name}" if isinstance(loop.measure, Data) else "weight"
        arrays = loop.measure.columns if isinstance(loop.measure, Data) else loop.tables
        used = loop.symbols if data else set(arrays)
        arrays = tuple(t for t in arrays if t in used)
        # The value at this node shadows nothing: arrays keep their names.
        at_node = {t: sp.Symbol(f"{t}_j", real=True) for t in arrays}
        if loop.inner:
            return lines + self.nested(loop, at_node)
        if loop.of_node:
            return lines + self.once_a_node(loop, at_node)
        before = [
            f"for j in range(len({weight})):",
            f"    weight_j = {weight}[j]",
            *(f"    {t}_j = {t}[j]" for t in arrays),
        ]
        terms = self.terms(loop, at_node, "weight_j")
        return [*lines, *before, *("    " + line for line in terms)]

    def once_a_node(self, loop: NodeLoop, at_node: dict[sp.Symbol, sp.Symbol]) -> list[str]:
        """Return a pass over a grid, where what holds the node alone is computed once a node."""
        own = loop.locals[: loop.of_node]
        read = set().union(*(a.value.free_symbols for a in own))
        terms = self.terms(loop, at_node, "weight_j")
        return [
            *self.point_groups(),
            *(f"    {t}_j = {t}[first_point]" for t in at_node if t in read),
            *("    " + line for line in self.assigned(own, at_node)),
            "    for j in range(first_point, last_point):",
            "        weight_j = weight[j]",
            *(f"        {t}_j = {t}[j]" for t in at_node if t not in read),
            *("        " + line for line in terms),
            "    first_point = last_point",
        ]

    def point_groups(self, *mass: str) -> list[str]:
        """Return the head of a loop over the nodes of a grid: the points from first to last."""
        node = self.program.tables[0]
        return [
            "first_point = 0",
            "while first_point < len(weight):",
            "    last_point = first_point",
            *(f"    {name} = {self.zero}" for name in mass),
            "    while last_point < len(weight):",
            # Not all languages look at one side of `and` only.
            f"        if {node}[last_point] != {node}[first_point]:",
            "            break",
            *(f"        {name} += weight[last_point]" for name in mass),
            "        last_point += 1",
        ]

    def nested(self, loop: NodeLoop, at_node: dict[sp.Symbol, sp.Symbol]) -> list[str]:
        """Return a pass over the nodes of a grid, each with passes over its points inside."""
        read = [f"    {t}_j = {t}[k]" for t in at_node]
        lines = [*self.point_groups("mass"), "    k = first_point", *read]
        for inner in loop.inner:
            lines += ["    " + line for line in self.assigned(inner.before, at_node)]
            locals_, results = with_branches(inner.locals, inner.results, self.fresh)
            lines += [f"    {a.target} = {'-inf' if inner.largest else self.zero}" for a in results]
            lines += ["    for k in range(first_point, last_point):", *("    " + x for x in read)]
            lines += ["        " + line for line in self.branched(locals_, at_node)]
            lines += [] if inner.largest else ["        share = weight[k] / mass"]
            for a in results:
                value = self.placeholder(a.value.xreplace(at_node))
                if inner.largest:
                    # Negated, so that what is no number shows.
                    lines += [
                        f"        largest = {value}",
                        f"        if not largest <= {a.target}:",
                        f"            {a.target} = largest",
                    ]
                else:
                    lines.append(f"        {a.target} += share * {value}")
        terms = self.terms(loop, at_node, "mass")
        return [*lines, *("    " + line for line in terms), "    first_point = last_point"]

    def assigned(self, locals_: Iterable[Assign], at_node: dict[sp.Symbol, sp.Symbol]) -> list[str]:
        return [f"{a.target} = {self.placeholder(a.value.xreplace(at_node))}" for a in locals_]

    def terms(self, loop: NodeLoop, at_node: dict[sp.Symbol, sp.Symbol], weight: str) -> list[str]:
        locals_, sums = with_branches(loop.locals[loop.of_node :], loop.sums, self.fresh)
        lines = self.branched(locals_, at_node)
        values = {a.target: a.value.xreplace(at_node) for a in sums}
        weights = dict.fromkeys(values, weight)
        # A factor that several sums share is weighted once, where products are all that costs.
        factors = {x: _factors(v) for x, v in values.items()} if _only_arithmetic(loop) else {}
        while True:
            shared = Counter(f for own in factors.values() for f in own).most_common(1)
            if not shared or shared[0][1] < 2:
                break
            factor = shared[0][0]
            name = str(self.fresh("weighted_"))
            lines.append(f"{name} = {weight} * {factor}")
            for x in [x for x, own in factors.items() if factor in own]:
                weights[x], values[x] = name, values[x] / factor
                del factors[x]
        for target, value in values.items():
            term = "" if value == 1 else f" * {self.placeholder(value)}"
            lines.append(f"{target} += {weights[target]}{term}")
        return lines

    def branched(self, lines: Iterable[Line], at_node: dict[sp.Symbol, sp.Symbol]) -> list[str]:
        found: list[str] = []
        for line in lines:
            if isinstance(line, Assign):
                found += self.assigned([line], at_node)
                continue
            test = line.condition.xreplace(at_node)
            found.append(
                f"if {self.placeholder(test.lhs)} {test.rel_op} {self.placeholder(test.rhs)}:"
            )
            found += ["    " + x for x in self.branched(line.then, at_node)]
            found.append("else:")
            found += ["    " + x for x in self.branched(line.otherwise, at_node)]
        return found

    def panels(self, loop: NodeLoop, measure: Panels) -> list[str]:
        n = len(measure.breaks)
        edges = f"edges_{n + 2}"
        self.arrays[edges] = n + 2
        lines = [f"{edges}[0] = -reach", f"{edges}[{n + 1}] = reach"]
        for k, b in enumerate(measure.breaks, start=1):
            # NaN stays, so that it shows in the sums.
            lines += [
                f"{edges}[{k}] = {b}",
                f"if {edges}[{k}] < -reach:",
                f"    {edges}[{k}] = -reach",
                f"elif {edges}[{k}] > reach:",
                f"    {edges}[{k}] = reach",
            ]
        if n > 1:
            lines += [
                f"for i in range(2, {n + 1}):",
                f"    left = {edges}[i]",
                "    k = i - 1",
                f"    while k > 0 and {edges}[k] > left:",
                f"        {edges}[k + 1] = {edges}[k]",
                "        k = k - 1",
                f"    {edges}[k + 1] = left",
            ]
        # The same variable may name an array of the line.
        node = measure.node
        if node in self.program.tables:
            node = sp.Symbol(f"{node}_j", real=True)
        lines += [
            f"for piece in range({n + 1}):",
            f"    left = {edges}[piece]",
            f"    width = {edges}[piece + 1] - left",
            "    if not width <= 0.0:",
            "        for j in range(len(panel_weight)):",
            f"            {node} = left + width * panel_node[j]",
            "            mass = width * panel_weight[j] * density_scale"
            f" * exp(-0.5 * {node} * {node})",
        ]
        terms = self.terms(loop, {measure.node: node}, "mass")
        return lines + ["            " + line for line in terms]

    def linear(self, step: LinearSolve) -> list[str]:
        x, a, b = step.unknowns, step.matrix, step.right_hand_side
        lines = solve_lines([str(u) for u in x], a, b, self.arrays)
        for row, right in zip(a, b, strict=True):
            terms = [f"{entry} * {unknown}" for entry, unknown in zip(row, x, strict=True)]
            size = " + ".join(f"abs({t})" for t in [*terms, str(right)])
            lines += [
                f"size = {size}",
                "if size > 0.0:",
                f"    residual = max(residual, abs({' + '.join(terms)} - {right}) / size)",
            ]
        return lines


# Reassociation lets the sums over nodes use vector instructions; NaN checks stay.
NUMBA_HEADER = """import math

import numpy as np
from numba import njit

_FLAGS = {"nogil": True, "cache": True, "error_model": "numpy"}
_FAST = {"reassoc", "contract", "nsz", "arcp"}
"""
PYTHON_HEADER = "import math\n\nimport numpy as np\n"

_LANGUAGES: dict[str, tuple[type[PythonLanguage], type[SourcePrinter]]] = {
    "numba": (NumbaLanguage, ScalarPrinter),
    "python": (PythonLanguage, ScalarPrinter),
    "mpmath": (MpmathLanguage, MpmathPrinter),
}


def solver_source(program: Program, target: str = "numba") -> str:
    """Return the source of a self-contained module with ``solve`` (and ``solve_batch``).

    Parameters
    ----------
    program : Program
    target : {"numba", "python", "mpmath"}
        "python" is the plain twin of "numba": the same text without compilation. "mpmath" takes a
        context `ctx` from the namespace it is executed in and has no ``solve_batch``.

    Raises
    ------
    EmissionError
        If a name of the program cannot be a name in the source, or has a meaning there.
    """
    if target not in _LANGUAGES:
        raise ValueError(f"target must be 'numba', 'python' or 'mpmath', got {target!r}")
    return _module(program, target, solver_functions(program, target))


def solver_twins(program: Program) -> tuple[str, str]:
    """Return the sources in numba and in plain Python, which have the same expressions."""
    functions = scalar_functions(program, PythonLanguage.reserved)
    printer = _PrintedOnce(_roots(program))
    numba, plain = (
        _module(program, language.name, _scalar_source(program, functions, language))
        for language in (NumbaLanguage(printer), PythonLanguage(printer))
    )
    return numba, plain


class _PrintedOnce(ScalarPrinter):
    """Remembers what it has printed."""

    def __init__(self, own_functions: Mapping[str, str]) -> None:
        super().__init__(own_functions)
        self._printed: dict[sp.Expr, str] = {}

    def print(self, expr: sp.Expr) -> str:
        if expr not in self._printed:
            self._printed[expr] = super().print(expr)
        return self._printed[expr]


def _module(program: Program, target: str, functions: str) -> str:
    documentation = program.documentation.strip().replace("\\", "\\\\").replace('"', '\\"')
    parts = [f'"""{documentation}\n"""\n']
    if target != "mpmath":
        parts.append(NUMBA_HEADER if target == "numba" else PYTHON_HEADER)
    parts.append(functions)
    return "\n\n".join(parts)


def _roots(program: Program) -> dict[str, str]:
    return {root.name: root.name for root in program.roots}


def solver_functions(program: Program, target: str) -> str:
    """Return the definitions of the solver without docstring and imports."""
    spelling, printer = _LANGUAGES[target]
    if target != "mpmath":
        language = spelling(printer(_roots(program)))
        return _scalar_source(program, scalar_functions(program, language.reserved), language)
    program = with_node_numbers(program)
    called = _roots(program) | {"node_number": "ctx.node_number", "total": "ctx.mpf"}
    language = spelling(printer(called))
    functions = scalar_functions(program, language.reserved, zero=NODE_NUMBER(0))[:-1]
    return _with_helpers([language.source(f) for f in functions], language)


def _scalar_source(
    program: Program, functions: Sequence[Function], language: PythonLanguage
) -> str:
    texts = [language.source(f) for f in functions]
    texts.append(_batch_source(program, functions[-1], language.name))
    return _with_helpers(texts, language)


def _with_helpers(texts: list[str], language: PythonLanguage) -> str:
    decorator = "@njit(**_FLAGS)\n" if language.name == "numba" else ""
    helpers = helper_definitions(language.printer, "\n".join(texts), decorator)
    return "\n\n".join([*([helpers] if helpers else []), *texts])


def _batch_source(program: Program, rows: Function, target: str) -> str:
    """Return ``solve_batch``, which solves all rows, those that cannot be solved marked.

    It is not compiled: LLVM would optimise all that it calls once more.
    """
    names = argument_names(rows)[2:]
    given = [name for name in names if name != "starts"]
    lines = [f"def solve_batch({', '.join(given)}, starts=None):", *_BATCH_DOCUMENTATION]
    if "starts" in names:
        usual = f"np.full((len(parameters), {len(program.newton_unknowns)}), np.nan)"
        lines.append(f"    first_values = {usual} if starts is None else starts")
        given.append("first_values")
    if target == "numba":
        lines.append(f"    solve_rows(0, len(parameters), {', '.join(given)})")
    else:
        arrays = ", ".join(rows.packed)
        if arrays:
            lines.append("    # Python is faster with lists than with the elements of arrays.")
            lines.append(f"    {arrays}, = (np.asarray(x).tolist() for x in ({arrays},))")
        lines += [
            "    for row in range(len(parameters)):",
            "        try:",
            f"            solve_rows(row, row + 1, {', '.join(given)})",
            "        except (ArithmeticError, TypeError, ValueError):",
            "            # Where IEEE arithmetic goes on with infinities or NaN.",
            "            info[row] = np.nan, np.inf, np.inf",
        ]
    return "\n".join(lines) + "\n"


_BATCH_DOCUMENTATION = (
    '    """Solve for every row of `parameters`, three times: coarser rules estimate the error.',
    "",
    "    Arrays of rules hold weights, then nodes and tables, in rows. `results`, their estimated",
    "    `errors` and `info` (Newton iterations, negative if not converged, residual, and the part",
    "    of the first output's relative error that is rounding) are written. `starts` are first",
    "    values of the unknowns; NaN stands for the usual one.",
    '    """',
)
