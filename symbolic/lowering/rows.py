"""Rows of parameters, solved on three rules whose differences estimate the errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import sympy as sp

from ..printing.language import Function, Kind, Parameter
from .program import Assign, LinearSolve, Newton, NodeLoop, Program

LEVELS = ("fine", "medium", "coarse")
SUM_ROUNDING = 8e-15
"""Rounding of a sum of many terms, relative to the sum of their sizes."""
GROWTH = 32.0
"""Margin for outputs that follow from others, whose conditioning is not computed."""

OWN_ROUNDING, EQUATION_ROUNDING = 8, 16
"""Rounding of an output itself and of an equation, in units of four units in the last place."""
WELL_DETERMINED = 16
"""Amplification of rounding up to which the worst determined unknown stands for all outputs."""
PROBE = 1e-7
"""How far unknowns are moved to see what an output does, relative to them or to one more."""
ALIKE = 30.0
"""Differences of rules within this factor of one another, or of rounding, are rounding."""

# On a grid the gain of the next halving is no better than this power of the last difference.
GRID_POWER = 0.25
SHARE = 0.1
"""Part of the largest relative difference of two rules that any output has at least."""


def rows_function(
    program: Program,
    solve: Function,
    arrays_of: Callable[[Program, str], list[Parameter]],
) -> Function:
    """Return ``solve_rows``, which solves rows `first`, …, `stop` - 1.

    Parameters
    ----------
    program : Program
    solve : Function
    arrays_of : callable
        Arrays that `solve` takes for a prefix.
    """
    return _Rows(program, solve, arrays_of).function()


def _attempted(call: str) -> list[str]:
    """Return lines of a solve that may fail: on rules without nodes Python divides by zero."""
    return ["unused[0] = -1.0", "with attempt():", f"    {call}"]


def derived_outputs(program: Program) -> list[int]:
    """Return places of outputs that follow from others, of whose terms no sum of sizes is known."""
    scales = {*map(str, program.magnitudes), *map(str, program.sizes.values())}
    known = scales | {*map(str, program.newton_unknowns)}
    return [k for k, x in enumerate(program.outputs) if str(x) not in known]


class _Rows:
    def __init__(
        self,
        program: Program,
        solve: Function,
        arrays_of: Callable[[Program, str], list[Parameter]],
    ) -> None:
        self.program = program
        self.solve = solve
        self.levels = LEVELS if program.tables or program.has_panels else LEVELS[:1]
        self.outputs = [str(x) for x in program.outputs]
        self.arrays = {level: arrays_of(program, f"{level}_") for level in self.levels}
        self.newtons = [step for step in program.steps if isinstance(step, Newton)]
        self.unknowns = [str(u) for u in program.newton_unknowns]
        # The rule on which unknowns are moved, and where its solution is: that with fewest nodes.
        self.probed, self.base = ("coarse", "z") if len(self.levels) > 1 else ("fine", "x")

    def function(self) -> Function:
        program = self.program
        n, u = len(self.outputs), len(program.newton_unknowns)
        rules = [
            a
            for first in ("weight", "panel_weight")
            for level in self.levels
            for a in _group(self.arrays[level], f"{level}_{first}")
        ]
        data = [a for a in self.arrays["fine"] if not a.name.startswith("fine_")]
        reaches = [Parameter(f"{level}_reach") for level in self.levels if program.has_panels]
        starts = [Parameter("starts", Kind.TABLE, columns=u)] if u else []
        parameters = (
            Parameter("first", Kind.WHOLE),
            Parameter("stop", Kind.WHOLE),
            Parameter("parameters", Kind.TABLE, columns=len(program.parameters)),
            *rules,
            *reaches,
            *data,
            Parameter("results", Kind.OUTPUT_TABLE, columns=n),
            Parameter("errors", Kind.OUTPUT_TABLE, columns=n),
            Parameter("info", Kind.OUTPUT_TABLE, columns=3),
            *starts,
        )
        expressions: dict[str, sp.Expr] = {}
        lines = [f"{p} = real(parameters[i, {k}])" for k, p in enumerate(program.parameters)]
        begin = [s for step in self.newtons for s in step.start]
        for k, (x, value) in enumerate(zip(program.newton_unknowns, begin, strict=True)):
            expressions[f"start_{k}_"] = value
            lines += [
                f"start_{x} = real(starts[i, {k}])",
                f"if not isfinite(start_{x}):",
                f"    start_{x} = start_{k}_",
            ]
        first_starts = [f"start_{x}" for x in program.newton_unknowns]
        if program.inner_nodes:
            lines += self.from_coarse(first_starts)
        else:
            lines.append(self.call("fine", first_starts, "x", "state"))
        if len(self.levels) == 1:
            lines += self.rounding_only()
        else:
            lines += self.three_rules()
        lines += [
            # A row that has failed shows in its count, whatever the outputs are.
            f"for k in range({n}):",
            "    if not abs(x[k]) < inf:",
            "        state[0] = -max(abs(state[0]), 1.0)",
            "for k in range(3):",
            "    info[i, k] = state[k]",
        ]
        head = [f"x = array({n})", "state = array(3)", f"rounding = array({n})"]
        if len(self.levels) > 1:
            head += [f"y = array({n})", f"z = array({n})"]
        if u or len(self.levels) > 1:
            head.append("unused = array(3)")
        if u:
            head += [f"{name} = array({u * u})" for name in ("inverse", "unused_inverse")]
            head += [f"{name} = array({n})" for name in ("probe", "moved")]
        body = [
            "# The rows of one solution; a view of `results` for each solve would cost a counted",
            "# reference.",
            *head,
            "for i in range(first, stop):",
            *("    " + line for line in lines),
        ]
        return Function(
            "solve_rows",
            parameters,
            "\n".join(body) + "\n",
            expressions,
            documentation=(
                "Solve for the rows first, …, stop - 1 of `parameters`; see `solve_batch`."
            ),
            calls=(*self.solve.calls, self.solve),
            packed=self.packed(),
        )

    def packed(self) -> dict[str, tuple[str, ...]]:
        program = self.program
        found: dict[str, tuple[str, ...]] = {}
        for level in self.levels:
            names = tuple(a.name for a in self.arrays[level] if a.name.startswith(f"{level}_"))
            line = 1 + len(program.tables) if program.tables else 0
            found |= {level: names[:line]} if line else {}
            found |= {f"{level}_panel": names[line:]} if program.has_panels else {}
        for data in program.data:
            found[f"data_{data.name}"] = (f"weight_{data.name}", *map(str, data.columns))
        return found

    def call(
        self,
        level: str,
        starts: list[str],
        out: str,
        state: str,
        rough: str = "0.0",
        held: float = 0.0,
    ) -> str:
        program = self.program
        newton: list[list[str]] = [[], []]
        if self.unknowns:
            # Moved unknowns have no inverse of their own.
            newton = [["inverse" if out == self.base else "unused_inverse"], [str(held)]]
        arguments = [
            *map(str, program.parameters),
            *(a.name for a in self.arrays[level]),
            *starts,
            out,
            state,
            *newton[0],
            rough,
            *newton[1],
        ]
        if program.has_panels:
            arguments.append(f"{level}_reach")
        return f"solve({', '.join(arguments)})"

    def three_rules(self) -> list[str]:
        restarts = [
            f"real(x[{self.outputs.index(str(u))}])" if str(u) in self.outputs else f"start_{u}"
            for u in self.program.newton_unknowns
        ]
        medium = self.call("medium", restarts, "y", "unused", "1e-3")
        # Equations that follow from others have to be solved like these when they are moved.
        rough = "1e-3" if len(self.newtons) < 2 else "0.0"
        coarse = self.call("coarse", restarts, "z", "unused", rough)
        if self.program.inner_nodes:
            lines = [
                "if not comparable:",
                f"    {medium}",
                "    comparable = unused[0] >= 0.0",
                "comparable = comparable and state[0] >= 0.0",
                "if not measurable:",
                f"    {coarse}",
                "    measurable = unused[0] >= 0.0",
            ]
        else:
            lines = [
                *_attempted(medium),
                "comparable = unused[0] >= 0.0 and state[0] >= 0.0",
                *_attempted(coarse),
                "# Without the coarse solution nothing is known about the gain, so none is "
                "claimed.",
                "measurable = unused[0] >= 0.0",
            ]
        lines += [
            "# The last difference is the error of the rule before; the next halving gains at",
            "# least as much again, so the error is at most the difference times that gain, and 10",
            "# is a margin. Overlaps may vanish: what has a size of its own measures the gain.",
            "last = 0.0",
            "gain = 1e-300",
        ]
        # What vanishes with an unknown, up to the rounding of it, is not off by its own size.
        may_vanish = any(_plain_unknowns(newton) for newton in self.newtons)
        least = "state[2]" if may_vanish else "1e-300"
        lines += _loops(
            (
                k,
                (
                    f"scale = 1.0 / ({size} + {least})",
                    "step = abs(x[k] - y[k]) * scale",
                    # Negated, because no comparison with NaN holds; max would drop it.
                    "if not step < inf:",
                    "    comparable = False",
                    "last = max(last, step)",
                    "step = abs(y[k] - z[k]) * scale",
                    "if not step < inf:",
                    "    measurable = False",
                    "gain = max(gain, step)",
                ),
            )
            for k, size in self.measured()
        )
        n = len(self.outputs)
        # Where a grid shows no gain, that one output differs by little on it is luck.
        share = f"max({SHARE}, gain)" if self.program.inner_nodes else repr(SHARE)
        lines += [
            "# A coarse solution that is off by more than its size is no measure of anything.",
            "gain = 10.0 * last / min(gain, 1.0)",
            "if not (measurable and gain < 1.0):",
            "    gain = 1.0",
            *self.least_gain(),
            *self.rounding("measurable"),
            f"for k in range({n}):",
            "    results[i, k] = x[k]",
            "    # A value that crosses zero is measured against its neighbours' error too.",
            f"    errors[i, k] = gain * max(abs(x[k] - y[k]), {share} * last * abs(x[k])) + "
            "rounding[k]",
            "    if not (comparable and errors[i, k] < inf):",
            "        errors[i, k] = inf",
            *self.cancellation(),
        ]
        return lines

    def from_coarse(self, first_starts: list[str]) -> list[str]:
        """Begin each rule where Newton's method ends on the coarser one: fine grids are slow."""
        lines = [f"near_{x} = start_{x}" for x in self.program.newton_unknowns]
        near = [f"near_{x}" for x in self.program.newton_unknowns]
        for level, out, known in (("coarse", "z", "measurable"), ("medium", "y", "comparable")):
            lines.append(self.call(level, near, out, "unused"))
            lines.append(f"{known} = unused[0] >= 0.0")
            for x, place in self.unknown_outputs():
                lines += [
                    f"if {known} and abs({out}[{place}]) < inf:",
                    f"    near_{x} = real({out}[{place}])",
                ]
        again = self.call("fine", first_starts, "x", "state")
        lines.append(self.call("fine", near, "x", "state"))
        return [*lines, "if not state[0] >= 0.0:", f"    {again}"]

    def unknown_outputs(self) -> list[tuple[str, int]]:
        """Unknowns of Newton's method that are outputs, with their places."""
        unknowns = map(str, self.program.newton_unknowns)
        return [(x, self.outputs.index(x)) for x in unknowns if x in self.outputs]

    def least_gain(self) -> list[str]:
        """Return what bounds the gain on a grid: no more is claimed than a power of the error.

        Panels do not halve exactly; and where the coarse rule is too coarse in one variable, its
        error says nothing about the other one.
        """
        if not self.program.inner_nodes:
            return []
        return [
            "# The variables of a grid gain differently, so that one gain may be luck.",
            "if last > 0.0:",
            f"    gain = max(gain, exp({GRID_POWER} * log(last)))",
        ]

    def cancellation(self) -> list[str]:
        lines = [
            "# What cancels in outputs that follow from others is not known; two rules differ by",
            "# that rounding, too. Where a third one differs as little, rounding is all there is:",
            "# then the margin is larger. Nor is it known how much rounding of the unknowns grows.",
        ]
        followed = (
            "if errors[i, k] < inf:",
            "    step = abs(x[k] - y[k])",
            "    last = abs(y[k] - z[k])",
            f"    if last <= {ALIKE} * max(step, rounding[k] / {GROWTH + 1}):",
            "        step = 4.0 * max(step, last)",
            "    errors[i, k] += 2.0 * step",
        )
        derived = derived_outputs(self.program)
        return [*lines, *_loops((k, followed) for k in derived)] if derived else []

    def rounding_only(self) -> list[str]:
        return [
            *self.rounding("state[0] >= 0.0"),
            f"for k in range({len(self.outputs)}):",
            "    results[i, k] = x[k]",
            "    errors[i, k] = rounding[k]",
            "    if not (state[0] >= 0.0 and errors[i, k] < inf):",
            "        errors[i, k] = inf",
        ]

    def measured(self) -> list[tuple[int, str]]:
        """Outputs that measure the gain of a rule, with their scales in terms of the place k."""
        found = []
        for step in self.program.steps:
            if isinstance(step, Newton):
                for x, log in zip(step.unknowns, step.logarithmic, strict=True):
                    if log and str(x) in self.outputs:
                        k = self.outputs.index(str(x))
                        found.append((k, "x[k]"))
        vanishing = _vanishing(self.program)
        for x, size in self.program.magnitudes.items():
            if size not in vanishing:
                k = self.outputs.index(str(x))
                found.append((k, f"x[{_from(k, self.outputs.index(str(size)))}]"))
        # Where nothing has a size of its own, the first output has to do.
        return found or [(0, "abs(x[k])")]

    def rounding(self, solved: str) -> list[str]:
        """Return lines that estimate the rounding of every output.

        `solved` tells whether there is a solution on the rule where unknowns are moved.
        """
        program = self.program
        derived = set(derived_outputs(program))
        sizes = {
            self.outputs.index(str(x)): self.outputs.index(str(size))
            for x, size in program.sizes.items()
        }
        plain = {str(x) for newton in self.newtons for x in _plain_unknowns(newton)}
        known, own = [], []
        for k, x in enumerate(self.outputs):
            of_terms = f"x[{_from(k, sizes[k])}]" if k in sizes else ""
            # Nothing tells how much the terms of outputs that follow from others cancel.
            margin = f"{GROWTH + 1} * " if k in derived else ""
            size = f"{margin}abs(x[k])"
            vanishing = "state[2] * " + ("(1.0 + state[2])" if x in plain else "state[2]")
            term = f"state[2] * max({size}, {of_terms})" if of_terms else f"state[2] * {size}"
            term += f" + {vanishing}" if plain else ""
            known.append((k, (f"rounding[k] = {term}",)))
            terms = f" + {SUM_ROUNDING} * {of_terms}" if of_terms else ""
            operator = "+=" if self.unknowns else "="
            least = f"{margin}{4 * OWN_ROUNDING} * unit * abs(x[k]){terms}"
            own.append((k, (f"rounding[k] {operator} {least}",)))
        lines = []
        if self.unknowns:
            lines.append("# As much as the worst determined unknown, or one that may vanish.")
            lines += _loops(known)
        if set(self.unknowns) <= set(self.outputs):
            lines += self.movements(solved, plain)
        last = "state[2] = rounding[0] / (1.0 if x[0] == 0.0 else abs(x[0]))"
        return [*lines, *_loops(own), last]

    def movements(self, solved: str, plain: set[str]) -> list[str]:
        """Return lines that set `rounding` to what rounding of the equations does to outputs.

        An equation that is wrong by a little moves the unknowns along a column of the inverse
        Jacobian; how far the outputs then move is seen there. So outputs that hardly depend on a
        combination of unknowns do not get the error of the worst determined one. Where none is
        determined badly, that is not worth the time.
        """
        if not self.unknowns:
            return []
        n, total = len(self.outputs), len(self.unknowns)
        least = 4 * (OWN_ROUNDING + EQUATION_ROUNDING * WELL_DETERMINED)
        place = {u: self.outputs.index(u) for u in self.unknowns}
        near = [f"near_{u}" for u in place]
        lines = [
            f"shift = max({4 * EQUATION_ROUNDING} * unit, state[1])",
            f"for k in range({n}):",
            "    moved[k] = 0.0",
        ]
        first = 0
        for held, newton in enumerate(self.newtons, start=1):
            inside = [str(u) for u in newton.unknowns]
            largest, moves = [], [f"near_{u} = real({self.base}[{k}])" for u, k in place.items()]
            for i, u in enumerate(inside, start=first):
                entry, value = f"inverse[{total * i} + j]", f"real({self.base}[{place[u]}])"
                size, unit = (f" / (1.0 + abs({value}))", "") if u in plain else ("", f"{value} * ")
                largest.append(f"size = max(size, abs({entry}){size})")
                moves.append(f"near_{u} -= {unit}scale * {entry}")
            solve = self.call(self.probed, near, "probe", "unused", held=float(held))
            lines += [
                f"for j in range({first}, {first + len(inside)}):",
                "    size = 1e-300",
                *(f"    {line}" for line in largest),
                f"    scale = max({PROBE} / size, shift)",
                "    share = shift / scale",
                "    unused[0] = -1.0",
                "    with attempt():",
                *(f"        {line}" for line in (*moves, solve)),
                "    responds = responds and unused[0] >= 0.0",
                f"    for k in range({n}):",
                f"        moved[k] += share * abs(probe[k] - {self.base}[k])",
            ]
            first += len(inside)
        return [
            f"responds = {solved} and state[2] > {least} * unit",
            "if responds:",
            *(f"    {line}" for line in lines),
            f"    for k in range({n}):",
            "        if responds and moved[k] < inf:",
            "            rounding[k] = moved[k]",
        ]


def _from(k: int, place: int) -> str:
    """Return a place as it is counted from the place k."""
    return f"k + {place - k}" if place > k else f"k - {k - place}"


def _loops(items: Iterable[tuple[int, tuple[str, ...]]]) -> list[str]:
    """Return lines for places k, one loop for neighbours that have the same: text costs time."""
    runs: list[tuple[int, int, tuple[str, ...]]] = []
    for k, lines in items:
        if runs and runs[-1][1:] == (k, lines):
            runs[-1] = (runs[-1][0], k + 1, lines)
        else:
            runs.append((k, k + 1, lines))
    return [
        line
        for first, stop, lines in runs
        for line in (f"for k in range({first}, {stop}):", *(f"    {x}" for x in lines))
    ]


def _plain_unknowns(newton: Newton) -> list[sp.Symbol]:
    """Unknowns that are coordinates themselves, so that they may vanish."""
    return [x for x, log in zip(newton.unknowns, newton.logarithmic, strict=True) if not log]


def _group(arrays: list[Parameter], first: str) -> list[Parameter]:
    """Return the arrays that have the length of `first`; none if it is not there."""
    found: list[Parameter] = []
    for a in arrays:
        if a.name == first or (found and not a.counted):
            found.append(a)
        elif found:
            break
    return found


def _vanishing(program: Program) -> set[sp.Symbol]:
    """Return what vanishes together with the unknowns of linear equations.

    These may be zero by a symmetry, and then differences of two rules are all that they are.
    """
    found: set[sp.Symbol] = set()
    for step in program.steps:
        if isinstance(step, LinearSolve):
            found |= set(step.unknowns)
        assignments: tuple[Assign, ...] = (step,) if isinstance(step, Assign) else ()
        if isinstance(step, NodeLoop):
            assignments = (*step.at_nodes, *step.sums)
        for a in assignments:
            held = a.value.free_symbols & found
            if held and a.value.xreplace(dict.fromkeys(held, sp.S.Zero)) == 0:
                found.add(a.target)
    return found
