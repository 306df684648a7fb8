"""Solve a generated kernel to any number of digits, in mpmath.

The same program and the same driver as those of the float kernel, printed for mpmath. Outer nodes
come from the trapezoidal rule, whose step is halved until two solutions agree; inner expectations
without closed form are integrated with the step that the pole distance asks for, halved until it
agrees with half of it at a few values of the outer variable. Lines that are cut at moving points
carry composite Gauss–Legendre rules whose order is doubled.

Four errors add up: of the outer rule (from the difference of two) and the tables, of the ends of
the line (from the size of the tables there), of Newton's method (from the last residual), and of
rounding. How much the results move with the tables and the residual is seen by solving once more
with tables that are shifted a little. All are estimated, not proven.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import mpmath

from ..errors import ConvergenceError
from .generated import PreciseKernel
from .precise_averages import GUARD_DIGITS, MOST_HALVINGS, usual_reach
from .precise_lines import LONGER_REACH, Lines, panel_rule

# Trapezoidal rules that are tried before the one that should give the digits, on nodes that it
# shares.
_COARSE_RULES = 2
# Of the digits asked for, so many more are wanted from the outer rule: the ones that are printed
# then hardly ever straddle a nine and a zero.
# On grids they would be too dear.
_MORE_DIGITS, _MORE_DIGITS_OF_GRID = 10, 2
# In units of a solver's own estimate of rounding, which counts operations in floats: closed forms
# of tables may cancel some digits, for which there are spare ones.
_CANCELLATION = 10**4
# The same for what an inner rule leaves out: it is relative to values of size one, and tables and
# their differences may be smaller; moments of which they are made have its error several times.
_TABLE_CANCELLATION = 10**3
# Tables are shifted by so many times what may be wrong with them to see how far the results move:
# the last digits of the results then do not count.
_SHIFT = 10**5
_ROUGH = 1e-4
# They are shifted by a thousand times what the rule before the last is wrong by, at least, where
# that is solved roughly.
_LEFT_OVER = 1e-2
# Values of erf that a context remembers.
_MOST_KNOWN = 50_000
# Of a grid on which explicit unknowns are evaluated at the start.
_ROUGHEST_LEVEL = -6
# Each round carries as many more digits as the last one has lost.
_MOST_ROUNDS = 3
# The last digits asked for may be uncertain, beside the one more that is aimed at.
_MOST_MISSING = 2
# The shift has one shape of many.
_OTHER_SHAPES = 100


def local_context(digits: int, spare: int = 0) -> Any:
    """Return an mpmath context of its own; the global one is never changed."""
    ctx = mpmath.mp.clone()
    ctx.dps = digits + GUARD_DIGITS + spare
    _remember_erf(ctx)
    # Of the kind that passes over nodes compute with.
    ctx.node_number = ctx.convert
    return ctx


def digits_of_size(start: Iterable[Any]) -> int:
    """Return the digits before the point: 1 + V spans as many as V has, so they are carried."""
    return max(0, math.ceil(math.log10(1 + max(map(abs, start), default=0))))


Solved = tuple[dict[str, Any], dict[str, dict[str, Any]], int]


def with_spare_digits(
    solved: Callable[[int], Solved], digits: int, most_digits: float = math.inf
) -> Solved:
    """Solve to some digits, and to as many more as conditioning turns out to cost.

    Parameters
    ----------
    solved : callable
        Returns what :func:`solve_precisely` does, for a number of digits.
    digits : int
    most_digits : int
        What the closed forms of the equations are good for.

    Raises
    ------
    ConvergenceError
        If there is no solution to `digits` digits.
    """
    carried, reason = digits, ""
    found = solved(carried)
    # What conditioning costs is known only near the root, which the first rounds may not be.
    for _ in range(_MOST_ROUNDS):
        more = min(_missing(digits, *found[:2]), most_digits - carried)
        if more <= 0:
            break
        carried += int(more)
        try:
            found = solved(carried)
        except ConvergenceError as error:
            # More digits are out of reach; the last solution may have enough of them.
            reason = f": {error}"
            break
    missing = _missing(digits, *found[:2])
    if missing > _MOST_MISSING:
        reached = max(digits + 1 - missing, 0)
        raise ConvergenceError(
            f"{digits} digits were asked for, and a result is known to {reached} only; ask for "
            f"fewer digits{reason}"
        )
    return found


def _missing(digits: int, found: Mapping[str, Any], budget: Mapping[str, Mapping[str, Any]]) -> int:
    """Return how many digits conditioning has cost.

    A value that may be zero needs no more decimal places than one of size one.
    """
    missing = 0
    for name, value in found.items():
        error = sum(part[name] for part in budget.values())
        if error:
            size = abs(value) if abs(value) > error else 1
            missing = max(missing, digits + 1 + math.ceil(mpmath.log10(error / size)))
    return missing


def _remember_erf(ctx: Any) -> None:
    """Let the context compute erf once for each absolute value.

    It is the dearest of all functions, and rules lie on both sides of zero and share points.
    """
    compute = ctx.erf
    known: dict[tuple[int, int, int], Any] = {}

    def erf(x: Any) -> Any:
        if not hasattr(x, "_mpf_") or not x._mpf_[1]:
            return compute(x)
        sign, mantissa, exponent, bits = x._mpf_
        key = mantissa, exponent, ctx.prec
        if key not in known:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[key] = compute(ctx.make_mpf((0, mantissa, exponent, bits)))
        return -known[key] if sign else known[key]

    ctx.erf = erf


def solve_precisely(
    kernel: PreciseKernel,
    values: Mapping[str, Any],
    *,
    ctx: Any,
    digits: int,
    start: Mapping[str, float],
    step: float = 1.0,
    inner: Mapping[str, tuple[float, float, float]] | None = None,
    breaks: Sequence[Any] = (),
    widths: Sequence[float] = (),
    data: Mapping[str, Sequence[Sequence[Any]]] | None = None,
    progress: Callable[[int, int], None] | None = None,
    accuracy: Any = 0,
) -> tuple[dict[str, Any], dict[str, dict[str, Any]], int]:
    """Refine a float solution to `digits` digits.

    Parameters
    ----------
    kernel : PreciseKernel
    values : mapping
        Parameters as numbers of `ctx`.
    ctx : mpmath context
        From :func:`local_context`.
    digits : int
    start : mapping
        The float solution.
    step : float
        First step of the outer rule; scaled by the width over which the tables vary.
    inner : mapping
        (strip, growth, frequency) of each inner variable.
    breaks : sequence
        Kinks of tables in the node; then the outer rule is composite Gauss–Legendre.
    widths : sequence of float
        Of node and inner nodes, over which integrands vary.
    data : mapping
        Weights and columns of each data set, as numbers of `ctx`.
    progress : callable, optional
        Called with (nodes done, nodes in all).
    accuracy : number of `ctx`
        Relative error of closed forms in the equations, if that is larger than rounding.

    Returns
    -------
    dict
        Outputs as numbers of `ctx`.
    dict
        Estimated absolute errors: {"quadrature", "truncation", "root" and "rounding": {output:
        number of `ctx`}}.
    int
        Outer nodes used.

    Raises
    ------
    ConvergenceError
        If two successive rules do not agree after some halvings of the step, Newton's method
        fails, the equations divide by zero, or the rule of an inner expectation does not converge.
    """
    solve_on = kernel.solver(ctx)
    lines = None
    if kernel.has_line:
        lines = Lines(kernel, values, ctx, digits, step, inner or {}, breaks, widths, progress)
    columns = [column for name in kernel.data for column in (data or {})[name]]
    begin = [ctx.mpf(start[name]) for name in kernel.unknowns]
    more = _MORE_DIGITS_OF_GRID if kernel.inner_nodes else _MORE_DIGITS
    tolerance = ctx.mpf(10) ** (-digits - more)
    wanted = [kernel.outputs.index(name) for name in kernel.results]
    arguments = [values[name] for name in kernel.parameters]
    # Only the norm of the inverse Jacobians counts here, which `info` tells.
    inverse = [[ctx.zero] * len(begin) ** 2] if begin else []

    def at_nodes(array: Sequence[Any]) -> list[Any]:
        return list(map(ctx.node_number, array))

    def solve(
        arrays: Sequence[Sequence[Any]], begin: Sequence[Any], out: list[Any], info: list[Any],
        **options: Any,
    ) -> None:  # fmt: skip
        # Nodes that move with the unknowns are computed from these.
        fixed = len(arrays) - (2 if kernel.panels else 0)
        given = [*map(at_nodes, arrays[:fixed]), *arrays[fixed:], *map(at_nodes, columns)]
        try:
            solve_on(*arguments, *given, *begin, out, info, *inverse, **options)
        except ZeroDivisionError:
            raise ConvergenceError(
                "the equations divide by zero at high precision, where a denominator vanishes or "
                "is lost beside others; ask for fewer digits or another start",
                state=list(begin),
            ) from None

    def known() -> dict[str, Any] | None:
        """Return parameters and unknowns, at first those that follow from the start."""
        if lines is None or not lines.fades:
            return None
        out: list[Any] = list(solved[-1].out) if solved else [ctx.zero] * len(kernel.outputs)
        if not solved:
            rough = lines.arrays(_ROUGHEST_LEVEL)
            solve(rough, begin, out, [0, ctx.zero, ctx.zero], held=ctx.inf)
        return {**values, **dict(zip(kernel.outputs, out, strict=True))}

    count = MOST_HALVINGS + (0 if breaks or kernel.panels or kernel.inner_nodes else _COARSE_RULES)
    composite, grid = bool(breaks) or kernel.panels, bool(kernel.inner_nodes)
    solved: list[_Level] = []
    worsts: list[Any] = []

    def make_level(rules: None, level: int, p: Sequence[Any]) -> int:
        return 0 if level < count else 1

    def solve_level(
        rules: None, level: int, p: Sequence[Any], values: list[Any], errors: list[Any],
        state: list[Any],
    ) -> None:  # fmt: skip
        arrays: list[Sequence[Any]] = []
        reach = usual_reach(ctx, digits) * ctx.mpf(LONGER_REACH) ** level
        if lines is not None:
            arrays += lines.arrays(level, known())
        if kernel.panels:
            arrays += panel_rule(ctx, digits, reach, level)
        out: list[Any] = [ctx.zero] * len(kernel.outputs)
        info = [0, ctx.zero, ctx.zero]
        ends = {"reach": reach} if kernel.panels else {}
        # On the many nodes of a grid one step of Newton's method: what it leaves is the square of
        # the difference to the level before, which is below what that says of this level. The
        # first level starts from floats, of which one step would leave some 25 digits.
        options = {**ends, "rough": ctx.mpf(_ROUGH)} if grid and solved else ends
        start = begin
        if solved:
            start = [solved[-1].out[kernel.outputs.index(name)] for name in kernel.unknowns]
        solve(arrays, start, out, info, **options)
        if info[0] < 0:
            raise ConvergenceError("Newton's method failed at high precision", state=out)
        # What cancels exactly, by a symmetry, is only as small as rounding makes it.
        zero = 10**6 * ctx.eps * max(abs(out[k]) for k in wanted)
        before = solved[-1].out if solved else out
        differences = [
            _quadrature_error(ctx, out[k], before[k], zero, composite, grid) for k in wanted
        ]
        worst = max(
            error / max(abs(out[k]), zero) if error else ctx.zero
            for error, k in zip(differences, wanted, strict=True)
        )
        solved.append(_Level(arrays, ends, out, info, differences, zero))
        worsts.append(worst)
        if lines is not None:
            lines.require_growth(level, worsts)
        # The last number of a state is what tells the level.
        values[0], errors[0] = ctx.one, worst if solved[1:] or not arrays else ctx.inf
        state[:] = [ctx.one, ctx.zero, ctx.zero, ctx.zero, level]

    error, state = [ctx.inf], [ctx.zero] * 5
    solve_row = kernel.driver(ctx, make_level, solve_level)
    solve_row(None, [], tolerance, [ctx.one], error, state)
    if not error[0] <= tolerance:
        raise ConvergenceError(
            f"{len(solved)} quadrature rules, each with half the step of the one before, did not "
            f"agree to {digits} digits; "
            "ask for fewer digits or a larger ridge penalty",
            state=solved[-1].out,
        )
    last = solved[int(state[4])]
    coarser = solved[max(int(state[4]) - 1, 0)]
    cut = ctx.npdf(last.ends.get("reach", usual_reach(ctx, digits)))
    if lines is not None:
        cut = lines.truncation
    inner_error = max(accuracy, ctx.zero if lines is None else lines.inner_error)
    # A response needs few digits: the rule before is good enough.
    noise = inner_error
    if grid:
        # Its solution is known no better than one step of Newton's method has made it, which must
        # not be taken for a response.
        moved = (
            abs(last.out[k] - coarser.out[k]) / max(abs(last.out[k]), last.zero) for k in wanted
        )
        noise = max(noise, _LEFT_OVER * max(moved))
    response = _response(
        ctx, kernel, solve, coarser.arrays, coarser.ends, coarser.out, noise
    )  # fmt: skip
    budget = _errors(
        ctx, kernel, last.out, last.info, response, last.zero, cut if last.arrays else ctx.zero
    )
    inner_errors = _moved(ctx, kernel, last.out, last.info, response, inner_error)
    budget["quadrature"] = {
        name: difference + inner_errors[name]
        for name, difference in zip(kernel.results, last.differences, strict=True)
    }
    found = {name: last.out[k] for name, k in zip(kernel.results, wanted, strict=True)}
    return found, budget, max(map(len, last.arrays), default=1)


class _Level(NamedTuple):
    """A solution on the rule of a level."""

    arrays: Sequence[Sequence[Any]]
    ends: Mapping[str, Any]
    out: Sequence[Any]
    info: Sequence[Any]
    differences: Sequence[Any]
    zero: Any


def _response(
    ctx: Any, kernel: PreciseKernel, solve: Callable[..., None], arrays: Sequence[Sequence[Any]],
    ends: Mapping[str, Any], found: Sequence[Any], inner_error: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return how far the results move, in units of the relative error of all weights and tables.

    Errors of a table are relative to one where it is smaller. `found` is the solution on `arrays`.
    """
    if not arrays:
        # Nothing that could be wrong but the arithmetic.
        return dict.fromkeys(kernel.results, ctx.zero)
    shift = _SHIFT * max(ctx.eps, inner_error)
    begin = [found[kernel.outputs.index(name)] for name in kernel.unknowns]
    out: list[Any] = [ctx.zero] * len(kernel.outputs)
    info = [0, ctx.zero, ctx.zero]
    shifted = _shifted(ctx, kernel, arrays, shift)
    try:
        # One step of Newton's method is enough.
        solve(shifted, begin, out, info, rough=ctx.mpf(_ROUGH), **ends)
    except (ArithmeticError, TypeError, ValueError):
        info[0] = -1
    places = [kernel.outputs.index(name) for name in kernel.results]
    if info[0] < 0 or not all(ctx.isfinite(out[k]) for k in places):
        raise ConvergenceError(
            "the equations are too ill-conditioned for the digits of their coefficients; ask for "
            "more digits or a larger ridge penalty",
            state=found,
        )
    response = {}
    for name, k in zip(kernel.results, places, strict=True):
        move = ctx.mpf(abs(out[k] - found[k]))
        # Results that move by their own size may be at the end of what they can move.
        response[name] = move / shift * (1 if 10 * move < abs(found[k]) else _OTHER_SHAPES)
    return response


def _shifted(
    ctx: Any, kernel: PreciseKernel, arrays: Sequence[Sequence[Any]], shift: Any
) -> list[Sequence[Any]]:
    """Return weights and tables that are wrong by `shift`, and nodes as they are."""
    line = len(arrays) - (2 if kernel.panels else 0)
    wrong: list[Sequence[Any]] = []
    for rule, nodes in ((arrays[:line], 1 + len(kernel.inner_nodes)), (arrays[line:], 1)):
        for k, array in enumerate(rule):
            if 1 <= k <= nodes or not any(array):
                # What vanishes everywhere does so exactly.
                wrong.append(array)
                continue
            # Neither even nor odd, and not the same for any two tables.
            waves = (ctx.mpf(math.cos((1 + 0.37 * k) * float(x) + 0.9 * k + 0.4)) for x in rule[1])
            own = 0 if k == 0 else 1
            # A variance that is next to nothing far out is wrong, but not negative.
            least = ctx.zero if min(array) >= 0 else -ctx.inf
            wrong.append(
                [
                    max(y + shift * wave * (own + abs(y)), least)
                    for y, wave in zip(array, waves, strict=True)
                ]
            )
    return wrong


def _errors(
    ctx: Any, kernel: PreciseKernel, out: Sequence[Any], info: Sequence[Any],
    response: Mapping[str, Any], zero: Any, cut: Any,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """Return the estimated errors of all results but that of the rule.

    The solver reports, in `info`, its last residual and 4 eps (8 + 16 a), where a relative change
    of the equations moves the solution by a times as much; `cut` is the relative error of the
    ends.
    """
    _, residual, rounding = info
    amplification = _amplification(ctx, info)
    truncation, root, rounded = {}, {}, {}
    for name in kernel.results:
        value = abs(out[kernel.outputs.index(name)])
        size = _size(kernel, out, name)
        truncation[name] = cut * max(size, response[name])
        root[name] = residual * max(amplification * value, _OTHER_SHAPES * response[name])
        lost = max(_CANCELLATION * rounding, 10**6 * ctx.eps) * size
        lost = max(lost, _CANCELLATION * ctx.eps * response[name])
        rounded[name] = lost + (zero if value <= zero else 0)
    return {"truncation": truncation, "root": root, "rounding": rounded}


def _size(kernel: PreciseKernel, out: Sequence[Any], name: str) -> Any:
    value, scale = abs(out[kernel.outputs.index(name)]), f"{name}_magnitude"
    return max(value, abs(out[kernel.outputs.index(scale)])) if scale in kernel.outputs else value


def _amplification(ctx: Any, info: Sequence[Any]) -> Any:
    return max(ctx.one, (info[2] / (4 * ctx.eps) - 8) / 16)


def _moved(
    ctx: Any, kernel: PreciseKernel, out: Sequence[Any], info: Sequence[Any],
    response: Mapping[str, Any], inner_error: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return how far an error of the tables, which may cancel some digits, moves the results."""
    relative = _TABLE_CANCELLATION * inner_error
    amplification = _amplification(ctx, info)
    return {
        name: relative * max(amplification * _size(kernel, out, name), response[name])
        for name in kernel.results
    }


def _quadrature_error(
    ctx: Any, value: Any, previous: Any, zero: Any, composite: bool, grid: bool
) -> Any:
    """Estimate the error of the finer of two rules from their difference.

    The trapezoidal rule squares its error with each halving; 3/2 of the digits and a factor of
    ten leave a margin. A composite rule has to agree to all digits. On a grid each level has
    sqrt(2) times the digits of the one before, 1.3 times with a margin.
    """
    if max(abs(value), abs(previous)) <= zero:
        return ctx.zero
    size = max(abs(value), zero)
    difference = abs(value - previous) / size
    if grid:
        return 10 * difference ** ctx.mpf(1.3) * size
    return (difference if composite else 10 * difference ** ctx.mpf(1.5)) * size
