"""A solver in array form: what NumPy and JAX can say with the same text.

A scalar of the program is an array over parameter sets, of shape (n, 1) in NumPy; in JAX it is a
number, which ``vmap`` maps. Values at the nodes have one more axis entry for each node, the last.
So the text of every step is the same in both; what differs (masks or ``while_loop``) is in the
support code of :mod:`.numpy` and :mod:`.jax`, whose functions the text calls. Support code that
both share is text, too, in which ``xp`` stands for the array module of the target.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence

import sympy as sp

from ....errors import EmissionError
from ...printing.printers import SourcePrinter
from ..documentation import filled
from ..program import (
    Assign,
    Data,
    Line,
    LinearSolve,
    Newton,
    NodeLoop,
    Panels,
    Program,
    ScalarRoot,
    Step,
)
from ..renaming import safe_program, safe_root
from ..rows import (
    ALIKE,
    EQUATION_ROUNDING,
    GRID_POWER,
    GROWTH,
    OWN_ROUNDING,
    PROBE,
    SHARE,
    SUM_ROUNDING,
    WELL_DETERMINED,
)

# Names that the text below and the support code use inside the emitted functions.
_OWN_NAMES = (
    "parameters arrays start rough held like known unknowns values report residual jacobian moves "
    "matrix right solution stack table total panels choose_start newton newton_root solve_linear "
    "solve_larger image_rule root_step "
    "points points_of node_mean node_largest "
    "after_linear new_report solve np jnp jax scipy math x"
).split()


# Local names in the functions that make tables.
_OF_TABLES = re.compile(r"one|rules|value_\d+|weight_.*|.*_column|.*_part\d+")


class VectorSource:
    """Writes the functions of one program.

    The table of functions of `printer` gets the roots of the program. Parameters among `constants`
    are no arguments of ``solve`` any more; `taken` are further names that mean something in the
    file.
    """

    def __init__(
        self,
        program: Program,
        printer: SourcePrinter,
        *,
        constants: Mapping[str, float] | None = None,
        taken: Iterable[str] = (),
    ) -> None:
        self.constants = dict(constants or {})
        self._free = {*_OWN_NAMES, *taken, *printer.helpers, *keyword.kwlist, *keyword.softkwlist}
        newtons = sum(isinstance(step, Newton) for step in program.steps)
        self._free |= {f"{x}_{k + 1}" for k in range(newtons) for x in ("start", "equations")}
        self._free |= {f"root_{root.name}" for root in program.roots}
        self._free |= {
            f"weight_of_{loop.measure.node}"
            for loop in program.loops()
            if isinstance(loop.measure, Panels)
        }
        self.given, self.program = program, safe_program(program, self._free)
        self.printer = type(printer)({root.name: f"root_{root.name}" for root in program.roots})
        # Arrays have the names that are given.
        pairs = [(self.program.tables, program.tables)]
        pairs += [
            (a.columns, b.columns) for a, b in zip(self.program.data, program.data, strict=True)
        ]
        self._arrays = {x: str(y) for new, old in pairs for x, y in zip(new, old, strict=True)}
        self._data = dict(
            zip((d.name for d in self.program.data), (d.name for d in program.data), strict=True)
        )
        unknown = set(self.constants) - set(map(str, program.parameters))
        if unknown:
            raise EmissionError(
                f"tables hold values of {', '.join(sorted(unknown))}, which the program "
                f"{program.name} does not have; its parameters are "
                f"{', '.join(map(str, program.parameters))}"
            )

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the arguments of one solve."""
        return tuple(str(p) for p in self.given.parameters if str(p) not in self.constants)

    def text(self) -> str:
        """Return the roots, the equations of each Newton step, and ``solve``."""
        newtons = [step for step in self.program.steps if isinstance(step, Newton)]
        parts = [self._root(root) for root in self.program.roots]
        parts += [self._equations(k, step) for k, step in enumerate(newtons, start=1)]
        return "\n\n".join([*parts, self._solve()])

    def free_name(self, name: str) -> str:
        """Return a name that hides nothing of the file, for functions that make tables."""
        taken = name in self._free or _OF_TABLES.fullmatch(name)
        return f"own_{name}_" if taken else name

    # -- functions of the file

    def _root(self, root: ScalarRoot) -> str:
        root = safe_root(root, self._free)
        arguments, unknown = self._list(root.arguments), root.unknown
        return "\n".join(
            [
                f"def root_{root.name}({arguments}):",
                f'    """Return the {unknown} at which its equation holds; it is increasing."""',
                "    return newton_root(",
                f"        lambda {unknown}, {arguments}: {self._print(root.residual)},",
                f"        lambda {unknown}, {arguments}: {self._print(root.slope)},",
                f"        lambda {arguments}: {self._print(root.start)},",
                f"        {arguments},",
                "    )",
                "",
            ]
        )

    def _equations(self, number: int, step: Newton) -> str:
        inputs, results = step.inputs, self.program.left_by(step)
        lines = [
            f"def equations_{number}(unknowns, known, arrays):",
            '    """Return residual, Jacobian, fixed-point moves and the values used later."""',
            "    like = unknowns[0]",
            f"    {self._unpack(step.unknowns)} = unknowns",
        ]
        lines += [f"    {self._unpack(inputs)} = known"] if inputs else []
        for inner in step.body:
            lines += self._step(inner)
        rows = ", ".join(f"({self._list(row)},)" for row in step.jacobian)
        lines += [
            f"    residual = stack(like, {self._list(step.residual)})",
            f"    jacobian = table(like, ({rows},))",
            f"    moves = {self._stack(step.fixed_point)}",
            f"    values = {self._stack(results)}",
            "    return residual, jacobian, moves, values",
            "",
        ]
        return "\n".join(lines)

    def _solve(self) -> str:
        named = dict(zip(self.program.parameters, map(str, self.given.parameters), strict=True))
        symbols = [p for p, name in named.items() if name not in self.constants]
        lines = [
            "def solve(parameters, arrays, start=None, rough=0.0, held=0):",
            '    """Solve once on given nodes; return the outputs and a report.',
            "",
            "    Newton's method stops early where the residual has fallen to `rough` times its",
            "    first value: enough for the difference of two rules, started at the solution of",
            "    one. The first `held` of its steps stay at the values of `start`.",
            '    """',
            "    like = parameters[0]" if symbols else "    like = arrays['like']",
        ]
        lines += [f"    {self._unpack(symbols)} = parameters"] if symbols else []
        lines += [
            f"    {p} = {self.constants[name]!r}"
            for p, name in named.items()
            if name in self.constants
        ]
        lines.append("    report = new_report(like)")
        count = first = 0
        for step in self.program.steps:
            if isinstance(step, Newton):
                count += 1
                lines += self._newton(count, first, step)
                first += len(step.unknowns)
            else:
                lines += self._step(step)
        lines += [
            f"    report = without(report, {x.lhs} {x.rel_op} {self._print(x.rhs)})"
            for x in self.program.outside
        ]
        lines += [f"    return {self._stack(self.program.outputs)}, report", ""]
        return "\n".join(lines)

    # -- steps

    def _step(self, step: Step) -> list[str]:
        if isinstance(step, Assign):
            return [f"    {step.target} = {self._print(step.value)}"]
        if isinstance(step, NodeLoop):
            return self._loop(step)
        if isinstance(step, LinearSolve):
            return self._linear(step)
        raise EmissionError(f"{type(step).__name__} cannot stand inside of another step")

    def _loop(self, loop: NodeLoop) -> list[str]:
        measure = loop.measure
        lines = [f"    {t} = arrays[{self._arrays[t]!r}]" for t in loop.tables]
        at_nodes = set(loop.tables)
        if isinstance(measure, Panels):
            at_nodes.add(measure.node)
            weight = f"weight_of_{measure.node}"
            lines.append(
                f"    {measure.node}, {weight} = "
                f"panels(like, ({self._list(measure.breaks)},), arrays)"
            )
        elif isinstance(measure, Data):
            weight = f"arrays['weight_{self._data[measure.name]}']"
        else:
            assert isinstance(measure, Line)
            weight = "arrays['weight']"
        if loop.inner:
            lines.append(f"    points = points_of(arrays[{str(self.given.tables[0])!r}])")
        for inner in loop.inner:
            lines += self._plain((*inner.before, *inner.locals))
            for a in inner.results:
                call = "node_largest(points, " if inner.largest else f"node_mean(points, {weight}, "
                lines.append(f"    {a.target} = {call}{self._print(a.value)})")
        at_nodes |= {a.target for inner in loop.inner for a in inner.assigns}
        lines += self._plain(loop.locals)
        for a in loop.locals:
            if a.value.free_symbols & at_nodes:
                at_nodes.add(a.target)
        for a in loop.sums:
            value = self._print(a.value)
            if not a.value.free_symbols & at_nodes:
                # The same at every node: only the weights are left to be summed.
                value = f"{value} + 0.0 * {weight}"
            lines.append(f"    {a.target} = total({weight}, {value})")
        return lines

    def _plain(self, assigns: Iterable[Assign]) -> list[str]:
        return [f"    {a.target} = {self._print(a.value)}" for a in assigns]

    def _linear(self, step: LinearSolve) -> list[str]:
        rows = ", ".join(f"({self._list(row)},)" for row in step.matrix)
        return [
            f"    matrix = table(like, ({rows},))",
            f"    right = stack(like, {self._list(step.right_hand_side)})",
            "    solution = solve_linear(matrix, right)",
            "    report = after_linear(report, matrix, right, solution)",
            f"    {self._unpack(step.unknowns)} = solution",
        ]

    def _newton(self, number: int, first: int, step: Newton) -> list[str]:
        last = first + len(step.unknowns)
        start = ", ".join(self._print(value) for value in step.start)
        results = self.program.left_by(step)
        lines = [
            f"    start_{number} = stack(like, {start})",
            "    if start is not None:",
            f"        start_{number} = choose_start(start[{first}:{last}], start_{number})",
            f"    known = {self._stack(step.inputs, empty=f'start_{number}[:0]')}",
            "    unknowns, values, report = newton(",
            f"        equations_{number}, start_{number}, known, arrays, report, rough,",
            f"        held={'held > ' + str(number - 1)}, logarithmic={step.logarithmic!r},",
            f"        safeguarded={step.safeguarded!r}, movable={bool(step.fixed_point)!r},",
            "    )",
            f"    {self._unpack(step.unknowns)} = unknowns",
        ]
        lines += [f"    {self._unpack(results)} = values"] if results else []
        if step.losses:
            losses = ", ".join("1.0" if x is None else str(x) for x in step.losses)
            lines.append(f"    report = with_losses(report, stack(like, {losses}))")
        return lines

    # -- text

    def _print(self, value: sp.Expr) -> str:
        return self.printer.print(value)

    def _list(self, symbols: Sequence[sp.Symbol]) -> str:
        return ", ".join(map(str, symbols))

    def _unpack(self, symbols: Sequence[sp.Symbol]) -> str:
        return self._list(symbols) + ("," if len(symbols) == 1 else "")

    def _stack(self, symbols: Sequence[sp.Symbol], empty: str = "residual[:0]") -> str:
        return f"stack(like, {self._list(symbols)})" if symbols else empty


_NEWTON = '''
def stack(like, *values):
    """Return numbers as one array with an axis more in front."""
    return xp.stack([xp.broadcast_to(value, like.shape) for value in values])


def table(like, rows):
    """Return rows of numbers as one array with two axes more in front."""
    return xp.stack([stack(like, *row) for row in rows])


def solve_linear(matrix, right):
    """Solve a small linear system; a singular one gives NaN or infinity."""
    n = len(right)
    if n == 1:
        return right / matrix[0]
    if n == 2:
        (a, b), (c, d) = matrix
        determinant = a * d - b * c
        first, second = right[0] * d - b * right[1], a * right[1] - right[0] * c
        return xp.stack([first / determinant, second / determinant])
    return solve_larger(matrix, right)


def inverse_of(matrix):
    """Return the inverse of a small matrix."""
    n, zero = len(matrix), xp.zeros_like(matrix[0, 0])
    units = [xp.stack([zero + float(i == k) for i in range(n)]) for k in range(n)]
    return xp.stack([solve_linear(matrix, unit) for unit in units], axis=1)


def new_report(like):
    """Return iterations, residual, inverse Jacobians, and whether all is solved."""
    zero = xp.zeros_like(like)
    return zero, zero, (), zero == 0


def after_newton(report, count, size, jacobian, solved, held):
    """Add a Newton step to a report."""
    iterations, residual, inverses, converged = report
    inverses = () if held else (*inverses, inverse_of(jacobian))
    return iterations + count, xp.maximum(residual, size), inverses, converged & solved


def with_losses(report, losses):
    """Multiply columns of the last inverse Jacobian by the factors by which terms cancel."""
    iterations, residual, inverses, converged = report
    inverses = (*inverses[:-1], inverses[-1] * losses) if inverses else ()
    return iterations, residual, inverses, converged


def after_linear(report, matrix, right, solution):
    """Add the residual of a linear system to a report."""
    iterations, residual, inverses, converged = report
    terms = matrix * solution
    size = xp.sum(xp.abs(terms), axis=1) + xp.abs(right)
    gap = xp.abs(xp.sum(terms, axis=1) - right)
    relative = xp.where(size > 0, gap / xp.where(size > 0, size, 1.0), 0.0)
    return iterations, xp.maximum(residual, xp.max(relative, axis=0)), inverses, converged


def without(report, outside):
    """Add to a report where a solution is none."""
    *others, converged = report
    return *others, converged & ~outside


def shift(unknowns, moves, logarithmic):
    """Lower each coordinate, which is an unknown or its logarithm, by its move."""
    factors = xp.exp(-xp.clip(moves, -8.0, 8.0))
    return xp.where(logarithmic, unknowns * factors, unknowns - moves)


def choose_start(given, own):
    """Return the values that are given, and the program's own where there are none."""
    return xp.where(xp.isnan(given), own, given)


def image_rule(breaks, reach, node, weight):
    """Return nodes and weights of the normal law, cut at the break points in the last axis.

    They are images of a rule on [0, 1], which move with the break points.
    """
    inner = xp.sort(xp.clip(breaks, -reach, reach), axis=-1)
    ends = xp.full((*breaks.shape[:-1], 1), reach)
    edges = xp.concatenate([-ends, inner, ends], axis=-1)
    left, width = edges[..., :-1, None], xp.diff(edges, axis=-1)[..., None]
    x = left + width * node
    w = width * weight * xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    shape = (*breaks.shape[:-1], -1)
    return x.reshape(shape), w.reshape(shape)


def root_step(x, gap, slope, low, high, before, scale):
    """Return the next guess of a root, its bracket and residual, and where to go on.

    A step of Newton's method, halved where it leaves the bracket or the residual has not fallen to
    a half.
    """
    low, high = xp.where(gap <= 0, x, low), xp.where(gap >= 0, x, high)
    new = x - gap / slope
    full = (new >= low) & (new <= high) & (xp.abs(gap) <= before / 2)
    new = xp.where(full, new, low / 2 + high / 2)
    new = xp.where(gap == 0, x, new)
    # The error after a full step is about the square of the step; after half of a bracket it is
    # the step.
    close = 9e-16 * xp.where(full, xp.abs(new) + scale, xp.abs(new))
    before = xp.where(full, xp.abs(gap), math.inf)
    return new, low, high, before, xp.abs(new - x) > close


def first_state(start, movable):
    """Return where Newton's method begins."""
    blank = xp.zeros_like(start[0])
    # unknowns; accepted unknowns with their residual and step; residual that is small enough;
    # halvings of this step; fixed-point moves that are left; how often they were called upon
    return (
        start, start, blank + math.inf, xp.zeros_like(start), blank + 2e-15,
        blank, blank + (20.0 if movable else 0.0), blank,
    )


def advance(state, residual, jacobian, moves, size, rough, logarithmic, safeguarded, movable):
    """Return the next state, where it is solved, and where it goes on."""
    unknowns, base, base_size, step, close, halvings, left, calls = state
    finite = size < math.inf
    # Where rounding keeps the residual above the tolerance: stop when it stops falling.
    done = (size <= close) | ((size < 1e-10) & (size >= base_size / 2))
    newton_step = solve_linear(jacobian, residual)
    if not safeguarded:
        following = shift(unknowns, newton_step, logarithmic)
        close = xp.maximum(close, rough * size)
        state = following, unknowns, size, newton_step, close, halvings, left, calls
        return state, done, finite & ~done
    # No leaps; far out, functions overflow.
    bound = xp.where(logarithmic, 8.0, 8.0 * (1.0 + xp.abs(unknowns)))
    newton_step = xp.where(xp.abs(newton_step) < math.inf, newton_step, math.nan)
    newton_step = xp.clip(newton_step, -bound, bound)
    # The first moves end where Newton's method is safe; those that rescue it are all taken.
    moving = finite & (left > 0) & ~((calls == 0) & (size < 0.1))
    accept = finite & ~moving & (size < base_size)
    halve = ~moving & ~accept & (halvings < 12) & (base_size < math.inf)
    # Moves that leave the domain end at the last point inside.
    retreat = ~finite & (left > 0)
    rescue = ~moving & ~accept & ~halve & ~retreat & (calls < 2) & (base_size < math.inf) & movable
    half = step / 2
    following = xp.where(accept, shift(unknowns, newton_step, logarithmic), base)
    following = xp.where(halve, shift(base, half, logarithmic), following)
    if movable:
        moved = shift(unknowns, xp.clip(moves / 2, -bound, bound), logarithmic)
        following = xp.where(moving, moved, following)
    state = (
        following,
        xp.where(accept | moving, unknowns, base),
        xp.where(accept, size, xp.where(rescue, math.inf, base_size)),
        xp.where(accept, newton_step, half),
        xp.where(accept, xp.maximum(close, rough * size), close),
        xp.where(accept | rescue, 0.0, halvings + halve),
        xp.where(
            rescue,
            xp.where(calls == 0, 50.0, 200.0),
            xp.where(accept | retreat, 0.0, left - moving),
        ),
        calls + rescue,
    )
    return state, done, (moving | accept | halve | retreat | rescue) & ~done
'''

_ESTIMATE = '''
def amplification_of(inverses):
    """Return the largest row sum of the inverse Jacobians; zero if there are none."""
    sums = [np.max(np.sum(np.abs(inverse), axis=1), axis=0) for inverse in inverses]
    largest = np.max(sums, axis=0) if sums else np.zeros(1)
    return np.where(largest < math.inf, largest, math.inf)


def movements(block, rule, base, inverses, shift):
    """Return how far outputs move where each equation is wrong by `shift`, in sum.

    Such an equation moves the unknowns along a column of the inverse Jacobian; how far the outputs
    then move is seen there. So outputs that hardly depend on a combination of unknowns do not get
    the error of the worst determined one.
    """
    moved = np.zeros_like(base)
    first = 0
    for held, inverse in enumerate(inverses, start=1):
        part = slice(first, first + len(inverse))
        for k in range(len(inverse)):
            start = np.array(base[list(UNKNOWNS)])
            plain = np.array(LOGARITHMIC[part]).reshape((-1,) + (1,) * (start.ndim - 1)) == 0
            column = inverse[:, k]
            sizes = np.abs(column) / np.where(plain, 1.0 + np.abs(start[part]), 1.0)
            scale = np.maximum({probe} / np.maximum(np.max(sizes, axis=0), 1e-300), shift)
            step = scale * column
            start[part] = np.where(plain, start[part] - step, start[part] * (1.0 - step))
            found, (_, _, _, solved) = solve_block(block, rule, start, 0.0, held)
            change = np.abs(found - base) / scale * shift
            moved = moved + np.where(solved, change, math.nan)
        first += len(inverse)
    return moved


def estimate(block, fine, medium, coarse):
    """Solve on three rules; return values, estimated errors, and iterations with residual.

    The coarser rules tell the error. Iterations are negative where there is no solution; the
    third number is the part of the first error that is rounding, relative to the first value.
    """
    x, (iterations, residual, inverses, converged) = solve_block(block, fine)
    # A relative error eps of the equations moves no unknown by more than about this; eps is four
    # units in the last place, because tables of polynomials of degree 8 cancel.
    worst = {unit} * ({own} + {equation} * amplification_of(inverses))
    if QUADRATURE:
        restart = x[list(UNKNOWNS)]
        y, (_, _, _, comparable) = solve_block(block, medium, restart, 1e-3)
        # Equations that follow from others have to be solved like these when they are moved.
        rough = 1e-3 if len(inverses) < 2 else 0.0
        z, (_, _, inverses, measurable) = solve_block(block, coarse, restart, rough)
    else:
        y = z = x
        comparable = measurable = converged
    # The last difference is the error of the rule before; the next halving gains at least as
    # much again, so the error is at most the difference times that gain, and 10 is a margin.
    # Overlaps may vanish, so only quantities with a size of their own measure the gain.
    last = np.zeros_like(x[0])
    first = last + 1e-300
    for k, scale in MEASURED:
        # What vanishes with an unknown, up to the rounding of it, is not off by its own size.
        size = abs(x[scale]) + (worst if ABSOLUTE else 1e-300)
        step = abs(x[k] - y[k]) / size
        comparable = comparable & (step < math.inf)
        last = np.maximum(last, np.where(step < math.inf, step, 0.0))
        step = abs(y[k] - z[k]) / size
        # Without the coarse solution nothing is known about the gain, so none is claimed.
        measurable = measurable & (step < math.inf)
        first = np.maximum(first, np.where(step < math.inf, step, 0.0))
    # A coarse solution that is off by more than its size is no measure of anything.
    gain = 10.0 * last / np.minimum(first, 1.0)
    gain = np.where(measurable & (gain < 1.0), gain, 1.0)
{least_gain}    sizes = abs(x)
    derived = np.array(DERIVED, dtype=int)
    # As much as the worst determined unknown, or one that may vanish.
    scales = np.stack([abs(x[k]) if k >= 0 else 0.0 * sizes[0] for k in SCALES])
    grown = sizes.copy()
    grown[derived] *= {margin}
    rounding = worst * np.maximum(grown, scales)
    if ABSOLUTE:
        rounding += worst * worst
        rounding[ABSOLUTE] += worst
    # Where an unknown is determined badly, it is worth the time to see how far outputs move.
    unclear = measurable & (worst > {least})
    if inverses and unclear.any():
        rule = coarse if QUADRATURE else fine
        shift = np.maximum({equation} * {unit}, residual)
        moved = np.where(unclear, movements(block, rule, z, inverses, shift), math.inf)
        rounding = np.where(moved < math.inf, moved, rounding)
    # Nothing tells how much the terms of outputs that follow from others cancel: a margin.
    rounding = {own} * {unit} * grown + {terms} * scales + rounding
    # A value that crosses zero is measured against the error of its neighbours too.
    errors = gain * np.maximum(abs(x - y), {share} * last * sizes) + rounding
    # What cancels in outputs that follow from others is not known; two rules differ by that
    # rounding, too. Where a third one differs as little, rounding is all there is: then the margin
    # is larger. Nor is it known how much rounding of the unknowns grows.
    step, before = abs(x - y)[derived], abs(y - z)[derived]
    alike = before <= {alike} * np.maximum(step, rounding[derived] / {margin})
    errors[derived] += 2.0 * np.where(alike, 4.0 * np.maximum(step, before), step)
    rounding = rounding[0] / np.where(sizes[0] == 0.0, 1.0, sizes[0])
    converged = converged & np.all(np.isfinite(x), axis=0)
    errors = np.where(converged & comparable & (errors < math.inf), errors, math.inf)
    values = np.where(converged, x, math.nan)
    iterations = np.where(converged, iterations, -np.maximum(iterations, 1.0))
    residual = np.where(residual < math.inf, residual, math.inf)
    rounding = np.where(rounding < math.inf, rounding, math.inf)
    return values, errors, np.stack([iterations, residual, rounding])
'''


def array_support(module: str) -> str:
    """Return Newton's method on the array module `module`."""
    return _NEWTON.strip("\n").replace("xp.", f"{module}.")


def estimate_text(*, grid: bool = False) -> str:
    """Return ``estimate``, which calls the ``solve_block(block, rule, start, rough)`` of a file.

    The variables of a `grid` gain differently, so that one gain may be luck.
    """
    gain = f"    gain = np.maximum(gain, last**{GRID_POWER})\n" if grid else ""
    unit = 4 * 2.0**-52
    return filled(
        _ESTIMATE.strip("\n"),
        least_gain=gain,
        share=f"np.maximum({SHARE}, gain)" if grid else repr(SHARE),
        unit=repr(unit),
        own=OWN_ROUNDING,
        equation=EQUATION_ROUNDING,
        terms=SUM_ROUNDING,
        probe=PROBE,
        least=repr(unit * (OWN_ROUNDING + EQUATION_ROUNDING * WELL_DETERMINED)),
        margin=GROWTH + 1,
        alike=ALIKE,
    )
