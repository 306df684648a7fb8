"""Newton's method for systems and for one number, and small linear systems, in the neutral
language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sympy as sp

from ..printing.language import Function, Kind, Parameter
from .program import Newton, ScalarRoot
from .renaming import safe_root

# Steps of a logarithm: a factor of 3000 at once.
_CLIP = 8.0
_FIRST_MOVES = 20
_MORE_MOVES = (50, 200)
_NEAR = 0.1
_MOST_HALVINGS = 12
# A step of this many units in the last place is rounding: no number nearby is a better solution,
# whatever the residual, which a steep equation makes large.
_ROUNDED = 64


SOLVE_DENSE = Function(
    "solve_dense",
    (Parameter("n", Kind.WHOLE), Parameter("a", Kind.OUTPUT), Parameter("b", Kind.OUTPUT)),
    """
for k in range(n):
    pivot = k
    for i in range(k + 1, n):
        if abs(a[i * n + k]) > abs(a[pivot * n + k]):
            pivot = i
    if pivot != k:
        for j in range(n):
            other = a[k * n + j]
            a[k * n + j] = a[pivot * n + j]
            a[pivot * n + j] = other
        other = b[k]
        b[k] = b[pivot]
        b[pivot] = other
    for i in range(k + 1, n):
        factor = a[i * n + k] / a[k * n + k]
        for j in range(k, n):
            a[i * n + j] -= factor * a[k * n + j]
        b[i] -= factor * b[k]
for i in range(n):
    k = n - 1 - i
    for j in range(k + 1, n):
        b[k] -= a[k * n + j] * b[j]
    b[k] /= a[k * n + k]
""",
    documentation="Solve a @ x = b by Gaussian elimination; a is used up, x replaces b.\n\n"
    "a holds n rows of n numbers, one after the other.",
    fast=True,
)
"""With partial pivoting."""

INVERT = Function(
    "invert",
    (
        Parameter("n", Kind.WHOLE),
        *(Parameter(name, Kind.OUTPUT) for name in ("matrix", "a", "b", "inverse")),
        *(Parameter(name, Kind.WHOLE) for name in ("first", "total")),
    ),
    """
for k in range(n):
    for i in range(n * n):
        a[i] = matrix[i]
    for i in range(n):
        b[i] = 0.0
    b[k] = 1.0
    solve_dense(n, a, b)
    for i in range(n):
        inverse[(first + i) * total + first + k] = b[i]
""",
    documentation="Write the inverse of matrix as a block of inverse, of `total` columns.\n\n"
    "matrix and a hold n rows of n numbers, b holds n; a and b are used up. The block begins in\n"
    "row and column `first`.",
    fast=True,
    calls=(SOLVE_DENSE,),
)
"""Column by column."""


@dataclass(frozen=True)
class Place:
    """Where a step of Newton's method stands among all of them.

    Attributes
    ----------
    number : int
        From one.
    first, total : int
        Number of unknowns of those before, and of all.
    """

    number: int
    first: int
    total: int


def solve_lines(
    names: Sequence[str],
    matrix: Sequence[Sequence[object]],
    right: Sequence[object],
    arrays: dict[str, int],
) -> list[str]:
    """Return lines that set `names` to the solution of a linear system.

    Parameters
    ----------
    names : sequence of str
    matrix, right : sequences
        Names of scalars, or numbers.
    arrays : dict
        Local arrays of the function and their lengths; receives those that are needed.
    """
    if len(names) == 1:
        return [f"{names[0]} = {right[0]} / {matrix[0][0]}"]
    if len(names) == 2:
        (a00, a01), (a10, a11) = matrix
        b0, b1 = right
        return [
            f"determinant = {a00} * {a11} - {a01} * {a10}",
            f"{names[0]} = ({b0} * {a11} - {a01} * {b1}) / determinant",
            f"{names[1]} = ({a00} * {b1} - {b0} * {a10}) / determinant",
        ]
    lines = _dense_lines(matrix, right, arrays)
    return lines + [f"{name} = solution_{len(names)}[{k}]" for k, name in enumerate(names)]


def _dense_lines(
    matrix: Sequence[Sequence[object]], right: Sequence[object], arrays: dict[str, int]
) -> list[str]:
    n = len(right)
    left, solution = f"entries_{n}", f"solution_{n}"
    arrays[left], arrays[solution] = n * n, n
    entries = [a for row in matrix for a in row]
    lines = [f"{left}[{k}] = {a}" for k, a in enumerate(entries)]
    lines += [f"{solution}[{k}] = {b}" for k, b in enumerate(right)]
    return [*lines, f"solve_dense({n}, {left}, {solution})"]


def inverse_lines(step: Newton, place: Place, arrays: dict[str, int]) -> list[str]:
    """Return lines that write the inverse Jacobian and raise `amplification` to its norm.

    The norm is the largest sum of the absolute values of a row. Columns belong to equations, and
    are larger by the factor by which terms of their values cancel.
    """
    jacobian, first, total = step.jacobian, place.first, place.total
    n = len(jacobian)
    losses = [None if x is None else str(x) for x in step.losses or [None] * n]
    times = ["" if x is None else f" * {x}" for x in losses]

    def entry(i: int, k: int) -> str:
        return f"inverse[{(first + i) * total + first + k}]"

    lines = []
    if n == 1:
        lines = [f"{entry(0, 0)} = {losses[0] or 1.0} / {jacobian[0][0]}"]
    elif n == 2:
        (a00, a01), (a10, a11) = jacobian
        lines = [
            f"determinant = {a00} * {a11} - {a01} * {a10}",
            f"{entry(0, 0)} = {a11}{times[0]} / determinant",
            f"{entry(0, 1)} = -{a01}{times[1]} / determinant",
            f"{entry(1, 0)} = -{a10}{times[0]} / determinant",
            f"{entry(1, 1)} = {a00}{times[1]} / determinant",
        ]
    else:
        matrix, left, solution = (f"{a}_{n}" for a in ("matrix", "entries", "solution"))
        arrays |= {matrix: n * n, left: n * n, solution: n}
        shares = ["" if x is None else f" / {x}" for x in losses]
        entries = [f"{a}{share}" for row, share in zip(jacobian, shares, strict=True) for a in row]
        lines = [f"{matrix}[{k}] = {a}" for k, a in enumerate(entries)]
        lines.append(f"invert({n}, {matrix}, {left}, {solution}, inverse, {first}, {total})")
    return [
        *lines,
        f"for i in range({first}, {first + n}):",
        "    size = 0.0",
        f"    for k in range({first}, {first + n}):",
        f"        size += abs(inverse[{total} * i + k])",
        "    amplification = max(amplification, size)",
    ]


def newton_lines(
    step: Newton, body: Sequence[str], place: Place, arrays: dict[str, int]
) -> list[str]:
    """Return the iteration around `body`, which computes residual and Jacobian."""
    if step.safeguarded:
        return _safeguarded(step, body, place, arrays)
    return _plain(step, body, place, arrays)


def _size(residual: Sequence[sp.Symbol]) -> str:
    return _largest([f"abs({r})" for r in residual])


def _largest(values: Sequence[str]) -> str:
    text = values[0]
    for value in values[1:]:
        text = f"max({text}, {value})"
    return text


def _indent(lines: Sequence[str]) -> list[str]:
    return ["    " + line for line in lines]


def _plain(step: Newton, body: Sequence[str], place: Place, arrays: dict[str, int]) -> list[str]:
    x, f = step.unknowns, step.residual
    steps = [f"step_{u}" for u in x]
    inside = [
        "iterations += 1",
        *body,
        f"size = {_size(f)}",
        # max may drop a NaN.
        f"if not {' + '.join(f'abs({r})' for r in f)} < inf:",
        "    size = inf",
        "    break",
        # Where V >> 1 rounding keeps the residual above the tolerance.
        "# Rounding may keep the residual above the tolerance: stop when it stops falling.",
        f"if held >= {place.number} or size <= close or (size < stalled and size >= previous / 2):",
        "    done = True",
        "    break",
        "close = max(close, rough * size)",
        "previous = size",
        *solve_lines(steps, step.jacobian, f, arrays),
    ]
    for u, s, log in zip(x, steps, step.logarithmic, strict=True):
        inside.append(f"{u} *= exp(-{_clipped(s)})" if log else f"{u} -= {s}")
    return [
        *(f"{u} = start_{u}" for u in x),
        "previous = inf",
        "close = tolerance",
        "done = False",
        "for turn in range(500):",
        *_indent(inside),
        "converged = converged and done",
        "residual = max(residual, size)",
        "if held == 0:",
        *_indent(inverse_lines(step, place, arrays)),
    ]


def _clipped(step: str) -> str:
    return f"min(max({step}, -{_CLIP}), {_CLIP})"


def _bounded(step: str, origin: object, log: bool) -> str:
    """Return a step that is no leap; far out, functions overflow and mpmath takes forever."""
    if log:
        return _clipped(step)
    bound = f"{_CLIP} * (1.0 + abs({origin}))"
    return f"min(max({step}, -({bound})), {bound})"


def _move(u: object, origin: str, step: str, log: bool) -> str:
    return f"{u} = {origin} * exp(-{step})" if log else f"{u} = {origin} - {step}"


def _safeguarded(
    step: Newton, body: Sequence[str], place: Place, arrays: dict[str, int]
) -> list[str]:
    x, f = step.unknowns, step.residual
    logs = step.logarithmic
    finite = " + ".join(f"abs({r})" for r in f)
    steps = [f"step_{u}" for u in x]
    keep = [f"saved_{u} = {u}" for u in x]
    back = [f"{u} = saved_{u}" for u in x]
    evaluate = [
        "iterations += 1",
        "size = inf",
        "with attempt():",
        *_indent(body),
        f"    real_only({', '.join(map(str, f))})",
        f"    if {finite} < inf:",
        f"        size = {_size(f)}",
        f"if held >= {place.number}:",
        "    done = size < inf",
        "    break",
        "steady = (size < stalled and size >= 0.5 * accepted) or (still and size < sqrt(stalled))",
        "if size <= close or steady:",
        "    done = True",
        "    break",
        "if not begun and size < inf:",
        "    close = max(close, rough * size)",
        "    begun = True",
    ]
    moving = []
    if step.fixed_point:
        moves = [
            _move(u, str(u), _bounded(f"0.5 * {m}", u, log), log)
            for u, m, log in zip(x, step.fixed_point, logs, strict=True)
        ]
        moving = [
            "# Moves of the damped fixed-point iteration lead to where Newton's method works.",
            f"if moves > 0 and rescues == 0 and size < {_NEAR}:",
            "    moves = 0",
            "if moves > 0:",
            "    if size < inf:",
            *_indent(_indent(keep)),
            *_indent(_indent(moves)),
            "        moves = moves - 1",
            "    else:",
            *_indent(_indent(back)),
            "        moves = 0",
            "    continue",
        ]
    # Divided by a slope beyond all floats a residual is no step: zero, which is not rounding.
    slopes = [a for row in step.jacobian for a in row if isinstance(a, sp.Symbol)]
    finite_steps = " + ".join(f"abs({s})" for s in (*steps, *slopes))
    largest = " + ".join(
        f"abs({s})" if log else f"abs({s}) / (1.0 + abs({u}))"
        for u, s, log in zip(x, steps, logs, strict=True)
    )
    newton = [
        "if not size < inf and not accepted < inf:",
        "    break",
        "if size < accepted:",
        "    accepted = size",
        *_indent(keep),
        "    scale = 1.0",
        "    halvings = 0",
        "    usable = False",
        "    with attempt():",
        *_indent(_indent(solve_lines(steps, step.jacobian, f, arrays))),
        f"        usable = {finite_steps} < inf",
        "    if not usable:",
        f"        halvings = {_MOST_HALVINGS + 1}",
        *(f"    {s} = {_bounded(s, u, log)}" for u, s, log in zip(x, steps, logs, strict=True)),
        f"    still = usable and {largest} <= {_ROUNDED} * unit",
        "else:",
        "    still = False",
        "    scale = 0.5 * scale",
        "    halvings = halvings + 1",
        f"if halvings <= {_MOST_HALVINGS}:",
        *_indent(
            [
                _move(u, f"saved_{u}", f"scale * {s}", log)
                for u, s, log in zip(x, steps, logs, strict=True)
            ]
        ),
    ]
    if step.fixed_point:
        newton += [
            f"elif rescues < {len(_MORE_MOVES)}:",
            *_indent(back),
            f"    moves = {_MORE_MOVES[0]} if rescues == 0 else {_MORE_MOVES[1]}",
            "    rescues = rescues + 1",
            "    accepted = inf",
        ]
    newton += ["else:", "    break"]
    return [
        *(f"{u} = start_{u}" for u in x),
        *keep,
        *(f"{s} = 0.0" for s in steps),
        "accepted = inf",
        "close = tolerance",
        "done = False",
        "begun = False",
        "still = False",
        *([f"moves = {_FIRST_MOVES}", "rescues = 0"] if step.fixed_point else []),
        "halvings = 0",
        "scale = 1.0",
        "size = inf",
        "for turn in range(400):",
        *_indent([*evaluate, *moving, *newton]),
        "converged = converged and done",
        "residual = max(residual, size)",
        "if done and held == 0:",
        "    with attempt():",
        *_indent(_indent(inverse_lines(step, place, arrays))),
    ]


def root_function(
    root: ScalarRoot, calls: tuple[Function, ...], reserved: Iterable[str]
) -> Function:
    """Return the function that finds a root by Newton's method inside a bracket.

    Far from the root of ``x - start + s(x)`` it is that for the logarithm of ``s(x)/(start - x)``:
    where s decays it is nearly a line.

    Parameters
    ----------
    root : ScalarRoot
    calls : tuple of Function
        What its expressions may call.
    reserved : iterable of str
        Names that arguments and unknown must not have.
    """
    own = {
        *("value", "low", "high", "radius", "trial", "change", "found"),
        *("origin", "slope", "left", "farther", "near"),
    }
    root = safe_root(root, {*reserved, *own})
    x = root.unknown
    body = f"""
{x} = start_
value = residual_
# The residual rises at least as fast as its argument, so the root is this near.
radius = abs(value)
low = {x} - radius
high = {x} + radius
change = radius
radius = radius + abs({x})
near = unit * radius
found = value == 0.0
origin = {x}
# Losses bend near the origin.
if value * {x} > 0.0 and abs({x}) < abs(value):
    if value > 0.0:
        high = {x}
    else:
        low = {x}
    {x} = 0.0
    value = residual_
    found = value == 0.0
for k in range(100):
    if found:
        break
    if value > 0.0:
        high = {x}
    elif value < 0.0:
        low = {x}
    else:
        # A ball around zero has no sign, and neither has NaN.
        found = abs(value) < radius
        break
    slope = slope_
    left = origin - {x}
    trial = {x} - value / slope
    if abs(value) > 0.3 * abs(left):
        if (left + value) * left > 0.0:
            farther = log(1.0 + value / left) / ((slope - 1.0) / (left + value) + 1.0 / left)
            # Next to where it begins, the logarithm has a pole, and these steps are the smaller.
            if abs(farther) > abs(value / slope):
                trial = {x} - farther
    # Steps that do not shrink go to and fro across a kink. Balls at an end are not seen inside.
    if not (trial >= low - near and trial <= high + near and abs(trial - {x}) <= change):
        trial = 0.5 * (low + high)
    change = 0.5 * abs(trial - {x})
    {x} = trial
    # One step from here the error is the square of this.
    found = change <= 2 * unit * (abs({x}) + radius)
    if not found:
        value = residual_
        found = value == 0.0
if not found:
    {x} = nan
return {x}
"""
    expressions: dict[str, sp.Expr] = {
        "start_": root.start,
        "residual_": root.residual,
        "slope_": root.slope,
    }
    return Function(
        root.name,
        tuple(Parameter(str(a)) for a in root.arguments),
        body,
        expressions,
        returns=Kind.REAL,
        documentation=f"Return the root {x} of {root.residual}; NaN where none is found.",
        calls=calls,
    )
