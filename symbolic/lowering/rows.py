"""Rows of parameters, solved on three rules whose differences estimate the errors."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

from ..printing.language import Function, Kind, Parameter
from .program import Assign, LinearSolve, Newton, NodeLoop, Program

LEVELS = ("fine", "medium", "coarse")
# Rounding of a sum of many terms, relative to the sum of their sizes.
_SUM_ROUNDING = "8e-15"
GROWTH = 32.0
"""Margin for outputs that follow from others, whose conditioning is not computed."""

# On a grid the gain of the next halving is no better than this power of the last difference.
GRID_POWER = 0.3


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
        begin = [s for step in program.steps if isinstance(step, Newton) for s in step.start]
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
            lines.append(self.call("fine", first_starts, "x", "state", "0.0"))
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
        head = [f"x = array({n})", "state = array(3)"]
        if len(self.levels) > 1:
            head += [f"y = array({n})", f"z = array({n})", "unused = array(3)"]
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

    def call(self, level: str, starts: list[str], out: str, state: str, rough: str) -> str:
        program = self.program
        arguments = [
            *map(str, program.parameters),
            *(a.name for a in self.arrays[level]),
            *starts,
            out,
            state,
            rough,
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
        coarse = self.call("coarse", restarts, "z", "unused", "1e-3")
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
                medium,
                "comparable = unused[0] >= 0.0 and state[0] >= 0.0",
                coarse,
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
        for k, size in self.measured():
            lines += [
                f"scale = 1.0 / ({size} + 1e-300)",
                f"step = abs(x[{k}] - y[{k}]) * scale",
                # Negated, because no comparison with NaN holds; max would drop it.
                "if not step < inf:",
                "    comparable = False",
                "last = max(last, step)",
                f"step = abs(y[{k}] - z[{k}]) * scale",
                "if not step < inf:",
                "    measurable = False",
                "gain = max(gain, step)",
            ]
        n = len(self.outputs)
        lines += [
            "# A coarse solution that is off by more than its size is no measure of anything.",
            "gain = 10.0 * last / min(gain, 1.0)",
            "if not (measurable and gain < 1.0):",
            "    gain = 1.0",
            *self.least_gain(),
            f"for k in range({n}):",
            "    size = abs(x[k])",
            "    results[i, k] = x[k]",
            "    # A value that crosses zero is measured against its neighbours' error too.",
            "    errors[i, k] = gain * max(abs(x[k] - y[k]), 0.1 * last * size) + state[2] * size",
            "    if not (comparable and errors[i, k] < inf):",
            "        errors[i, k] = inf",
            *self.cancellation(),
        ]
        return lines + self.absolute_rounding()

    def from_coarse(self, first_starts: list[str]) -> list[str]:
        """Begin each rule where Newton's method ends on the coarser one: fine grids are slow."""
        lines = [f"near_{x} = start_{x}" for x in self.program.newton_unknowns]
        near = [f"near_{x}" for x in self.program.newton_unknowns]
        for level, out, known in (("coarse", "z", "measurable"), ("medium", "y", "comparable")):
            lines.append(self.call(level, near, out, "unused", "0.0"))
            lines.append(f"{known} = unused[0] >= 0.0")
            for x, place in self.unknown_outputs():
                lines += [
                    f"if {known} and abs({out}[{place}]) < inf:",
                    f"    near_{x} = real({out}[{place}])",
                ]
        again = self.call("fine", first_starts, "x", "state", "0.0")
        lines.append(self.call("fine", near, "x", "state", "0.0"))
        return [*lines, "if not state[0] >= 0.0:", f"    {again}"]

    def unknown_outputs(self) -> list[tuple[str, int]]:
        """Unknowns of Newton's method that are outputs, with their places."""
        unknowns = map(str, self.program.newton_unknowns)
        return [(x, self.outputs.index(x)) for x in unknowns if x in self.outputs]

    def least_gain(self) -> list[str]:
        """Panels of a grid do not halve exactly: no more is claimed than a power of the error."""
        if not self.program.cut:
            return []
        return [
            "# Panels of a grid halve in number only roughly, so that one gain may be luck.",
            "if last > 0.0:",
            f"    gain = max(gain, exp({GRID_POWER} * log(last)))",
        ]

    def derived(self) -> list[int]:
        """Outputs that follow from the solution, of whose terms no sum of sizes is known."""
        scales = {*map(str, self.program.magnitudes), *map(str, self.program.magnitudes.values())}
        known = scales | {*map(str, self.program.newton_unknowns)}
        return [k for k, name in enumerate(self.outputs) if name not in known]

    def cancellation(self) -> list[str]:
        lines = [
            "# What cancels in outputs that follow from others is not known; two rules differ by",
            "# that rounding, too. Where a third one differs as little, rounding is all there is:",
            "# then the margin is larger. Nor is it known how much rounding of the unknowns grows.",
        ]
        for k in self.derived():
            lines += [
                f"if errors[i, {k}] < inf:",
                f"    step = abs(x[{k}] - y[{k}])",
                f"    last = abs(y[{k}] - z[{k}])",
                f"    if last <= 30.0 * max(step, state[2] * abs(x[{k}])):",
                "        step = 4.0 * max(step, last)",
                f"    errors[i, {k}] += 2.0 * step + {GROWTH} * state[2] * abs(x[{k}])",
            ]
        return lines if len(lines) > 3 else []

    def rounding_only(self) -> list[str]:
        n = len(self.outputs)
        return [
            f"for k in range({n}):",
            "    results[i, k] = x[k]",
            "    errors[i, k] = state[2] * abs(x[k])",
            "    if not (state[0] >= 0.0 and errors[i, k] < inf):",
            "        errors[i, k] = inf",
            *(f"errors[i, {k}] += {GROWTH} * state[2] * abs(x[{k}])" for k in self.derived()),
            *self.absolute_rounding(),
        ]

    def measured(self) -> list[tuple[int, str]]:
        """Outputs that measure the gain of a rule, with their scales."""
        found = []
        for step in self.program.steps:
            if isinstance(step, Newton):
                for x, log in zip(step.unknowns, step.logarithmic, strict=True):
                    if log and str(x) in self.outputs:
                        k = self.outputs.index(str(x))
                        found.append((k, f"x[{k}]"))
        vanishing = _vanishing(self.program)
        for x, size in self.program.magnitudes.items():
            if size not in vanishing:
                found.append((self.outputs.index(str(x)), f"x[{self.outputs.index(str(size))}]"))
        # Where nothing has a size of its own, the first output has to do.
        return found or [(0, "abs(x[0])")]

    def absolute_rounding(self) -> list[str]:
        program, lines = self.program, []
        plain = [
            str(x)
            for step in program.steps
            if isinstance(step, Newton)
            for x, log in zip(step.unknowns, step.logarithmic, strict=True)
            if not log
        ]
        if plain:
            lines += [
                "# Unknowns that may vanish have an absolute error, and so have their squares.",
                f"for k in range({len(self.outputs)}):",
                "    errors[i, k] += state[2] * state[2]",
            ]
            lines += [
                f"errors[i, {self.outputs.index(x)}] += state[2]"
                for x in plain
                if x in self.outputs
            ]
        for x, size in program.magnitudes.items():
            k = self.outputs.index(str(x))
            rounding = f"{_SUM_ROUNDING} * x[{self.outputs.index(str(size))}]"
            lines.append(f"errors[i, {k}] += {rounding}")
            if k == 0:
                lines.append(f"state[2] += {rounding} / (abs(x[0]) + 1e-300)")
        return lines


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
