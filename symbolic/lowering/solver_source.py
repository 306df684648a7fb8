"""Source code of a solver from its program: numba, its plain-Python twin, and mpmath.

The three targets differ in their header, in the printer and in nothing else. Each file is
self-contained: numba does not notice changes in other files.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp

from ...errors import EmissionError
from .printers import MpmathPrinter, ScalarPrinter, SourcePrinter
from .program import Assign, LinearSolve, Newton, NodeLoop, Program, Step

# Reassociation lets the sums over nodes use vector instructions; NaN checks stay.
_NUMBA_HEADER = """import math

import numpy as np
from numba import njit

_FLAGS = {"nogil": True, "cache": True, "error_model": "numpy"}
_FAST = {"reassoc", "contract", "nsz", "arcp"}
"""
_PYTHON_HEADER = "import math\n\nimport numpy as np\n"

# Names that the text below uses, and names that the scheduler makes.
_RESERVED = frozenset(
    "weight out info rough residual amplification iterations converged done previous close size "
    "determinant solution i j k x y z state unused parameters fine medium coarse "
    "results errors last first gain scale step comparable measurable math np njit ctx solve "
    "solve_batch solve_dense float abs max min len range".split()
)
_GENERATED = re.compile(
    r"(sum|node|scalar|inverse|product|resolvent|target|residual|jacobian|matrix|right|at_zero)"
    r"_[0-9]+"
    r"|(start|step|row_of|fine|medium|coarse)_.*"
)

_DENSE_SOLVE = '''
def solve_dense(a, b):
    """Gaussian elimination with partial pivoting, in place; returns the solution in b."""
    n = len(b)
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i][k]) > abs(a[pivot][k]):
                pivot = i
        for j in range(n):
            a[k][j], a[pivot][j] = a[pivot][j], a[k][j]
        b[k], b[pivot] = b[pivot], b[k]
        for i in range(k + 1, n):
            factor = a[i][k] / a[k][k]
            for j in range(k, n):
                a[i][j] -= factor * a[k][j]
            b[i] -= factor * b[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            b[k] -= a[k][j] * b[j]
        b[k] /= a[k][k]
    return b
'''

_BATCH = '''
{decorator}def solve_batch(parameters, fine, medium, coarse, results, errors, info):
    """Solve for every row of `parameters`, three times: the coarser rules estimate the error.

    Parameters
    ----------
    parameters : array (n, {n_parameters})
        Columns: {parameter_names}.
    fine, medium, coarse : array ({n_rows}, K)
        Rows: {row_names}, on rules of which each has about half the nodes of the one before.
    results : array (n, {n_outputs}), written
        Columns: {output_names}.
    errors : array (n, {n_outputs}), written
        Estimated errors of the results; infinite where the medium rule has no solution.
    info : array (n, 3), written
        Newton iterations (negative if not converged), relative residual, and the part of the
        first output's estimated error that is rounding, relative to that output.
    """
{rows}
    # The rows of one solution; a view of `results` for each solve would cost a counted reference.
    x = np.empty({n_outputs})
    y = np.empty({n_outputs})
    z = np.empty({n_outputs})
    state = np.empty(3)
    unused = np.empty(3)
    for i in range(parameters.shape[0]):
{load}
        solve({fine}, x, state, 0.0)
        solve({medium}, y, unused, 1e-3)
        comparable = unused[0] >= 0.0
        solve({coarse}, z, unused, 1e-3)
        # Without the coarse solution nothing is known about the gain, so none is claimed.
        measurable = unused[0] >= 0.0
        # The last difference is the error of the rule before; the next halving gains at least as
        # much again, so the error is at most the difference times that gain, and 10 is a margin.
        # Overlaps may vanish, so only quantities with a size of their own measure the gain.
        last = 0.0
        first = 1e-300
        for k, size in ({measured}):
            scale = 1.0 / (size + 1e-300)
            step = abs(x[k] - y[k]) * scale
            # Negated, because no comparison with NaN holds; max would drop it.
            if not step < math.inf:
                comparable = False
            last = max(last, step)
            step = abs(y[k] - z[k]) * scale
            if not step < math.inf:
                measurable = False
            first = max(first, step)
        # A coarse solution that is off by more than its size is no measure of anything.
        gain = 10.0 * last / min(first, 1.0)
        if not (measurable and gain < 1.0):
            gain = 1.0
        for k in range({n_outputs}):
            size = abs(x[k])
            results[i, k] = x[k]
            # A value that crosses zero is measured against the error of its neighbours too.
            errors[i, k] = gain * max(abs(x[k] - y[k]), 0.1 * last * size) + state[2] * size
            if not (comparable and errors[i, k] < math.inf):
                errors[i, k] = math.inf
{magnitudes}
        for k in range(3):
            info[i, k] = state[k]
'''


@dataclass(frozen=True)
class Target:
    """How one target language writes the common parts."""

    name: str
    header: str
    printer: SourcePrinter
    zero: str
    log: str
    exp: str
    tolerance: str
    clip: str
    decorator: str
    batch_decorator: str
    # numba knows no lists of lists; without it they are faster than small arrays.
    array: str = "{}"


def _python_target(name: str) -> Target:
    numba = name == "numba"
    return Target(
        name=name,
        header=_NUMBA_HEADER if numba else _PYTHON_HEADER,
        printer=ScalarPrinter(),
        zero="0.0",
        log="math.log",
        exp="math.exp",
        tolerance="2e-15",
        clip="8.0",
        decorator="@njit(fastmath=_FAST, **_FLAGS)\n" if numba else "",
        batch_decorator="@njit(**_FLAGS)\n" if numba else "",
        array="np.array({})" if numba else "{}",
    )


def solver_source(program: Program, target: str = "numba") -> str:
    """Return the source of a self-contained module with ``solve`` (and ``solve_batch``).

    Parameters
    ----------
    program : Program
    target : {"numba", "python", "mpmath"}
        "python" is the plain twin of "numba": the same text without compilation. "mpmath" takes
        a context `ctx` from the namespace it is executed in and has no ``solve_batch``.

    Raises
    ------
    EmissionError
        If a name of the program cannot be a name in the source, or has a meaning there.
    """
    if target not in ("numba", "python", "mpmath"):
        raise ValueError(f"target must be 'numba', 'python' or 'mpmath', got {target!r}")
    if target == "mpmath":
        language = Target(
            "mpmath", "", MpmathPrinter(), "ctx.zero", "ctx.log", "ctx.exp", "1024 * ctx.eps",
            "ctx.mpf(8)", "", "",
        )  # fmt: skip
    else:
        language = _python_target(target)
    _check_names(program)
    documentation = program.documentation.strip().replace("\\", "\\\\").replace('"', '\\"')
    docstring = f'"""{documentation}\n"""\n'
    text = docstring + ("\n" + language.header if language.header else "")
    if any(isinstance(s, LinearSolve) and len(s.unknowns) > 2 for s in program.steps) or any(
        isinstance(s, Newton) and len(s.unknowns) > 2 for s in program.steps
    ):
        text += "\n" + language.decorator + _DENSE_SOLVE.lstrip("\n")
    text += "\n\n" + _solve_function(program, language)
    if target != "mpmath":
        text += "\n" + _batch_function(program, language)
    return text


def _check_names(program: Program) -> None:
    names = [str(x) for x in (*program.parameters, *program.tables, *program.outputs)]
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise EmissionError(f"{name!r} is no name in Python: give its symbol an identifier")
        if name in _RESERVED or _GENERATED.fullmatch(name):
            raise EmissionError(
                f"{name!r} has a meaning of its own in a kernel: give its symbol another identifier"
            )
        if names.count(name) > 1:
            raise EmissionError(f"two symbols of the program have the identifier {name!r}")


def newton_unknowns(program: Program) -> tuple[sp.Symbol, ...]:
    """Return the unknowns of all Newton steps, for which a solve takes starting values."""
    return tuple(x for s in program.steps if isinstance(s, Newton) for x in s.unknowns)


def _solve_function(program: Program, language: Target) -> str:
    tables = [str(t) for t in program.tables]
    starts = [f"start_{x}" for x in newton_unknowns(program)]
    arguments = [str(p) for p in program.parameters] + ["weight", *tables, *starts, "out", "info"]
    lines = [
        f"{language.decorator}def solve({', '.join(arguments)}, rough=0.0):",
        '    """Solve once: results go to `out`, (iterations, residual, rounding) to `info`.',
        "",
        "    Newton's method stops early where the residual has fallen to `rough` times its first",
        "    value: enough for the difference of two rules, started at the solution of one.",
        '    """',
        f"    residual = {language.zero}",
        f"    amplification = {language.zero}",
        "    iterations = 0",
        "    converged = True",
    ]
    for step in program.steps:
        lines += _step(step, language, "    ")
    lines += [f"    out[{k}] = {x}" for k, x in enumerate(program.outputs)]
    lines += [
        "    info[0] = iterations if converged else -iterations",
        "    info[1] = residual",
        "    # A relative error eps of the equations moves the solution by about this much; eps is",
        "    # four units in the last place, because tables of polynomials of degree 8 cancel.",
        "    info[2] = 8.881784197001252e-16 * (8 + 16 * amplification)",
    ]
    return "\n".join(lines) + "\n"


def _step(step: Step, language: Target, indent: str) -> list[str]:
    if isinstance(step, Assign):
        return [f"{indent}{step.target} = {language.printer.print(step.value)}"]
    if isinstance(step, NodeLoop):
        return _loop(step, language, indent)
    if isinstance(step, LinearSolve):
        return _linear(step, language, indent)
    return _newton(step, language, indent)


def _loop(loop: NodeLoop, language: Target, indent: str) -> list[str]:
    inner = indent + "    "
    lines = [f"{indent}{a.target} = {language.zero}" for a in loop.sums]
    lines.append(f"{indent}for j in range(len(weight)):")
    # The table at this node shadows nothing: arrays carry the suffix _at.
    lines += [f"{inner}{t}_j = {t}[j]" for t in loop.tables]
    at_node = {t: sp.Symbol(f"{t}_j", real=True) for t in loop.tables}
    for a in loop.locals:
        lines.append(f"{inner}{a.target} = {language.printer.print(a.value.xreplace(at_node))}")
    for a in loop.sums:
        value = language.printer.print(a.value.xreplace(at_node))
        lines.append(f"{inner}{a.target} += weight[j] * ({value})")
    return lines


def _dense(
    names: Sequence[object],
    matrix: Sequence[Sequence[object]],
    right: Sequence[object],
    language: Target,
    indent: str,
) -> list[str]:
    rows = ", ".join(f"[{', '.join(map(str, row))}]" for row in matrix)
    left, right_ = (language.array.format(f"[{t}]") for t in (rows, ", ".join(map(str, right))))
    lines = [f"{indent}solution = solve_dense({left}, {right_})"]
    return lines + [f"{indent}{name} = solution[{k}]" for k, name in enumerate(names)]


def _linear(step: LinearSolve, language: Target, indent: str) -> list[str]:
    x, a, b = step.unknowns, step.matrix, step.right_hand_side
    if len(x) == 1:
        lines = [f"{indent}{x[0]} = {b[0]} / {a[0][0]}"]
    elif len(x) == 2:
        (a00, a01), (a10, a11) = a
        lines = [
            f"{indent}determinant = {a00} * {a11} - {a01} * {a10}",
            f"{indent}{x[0]} = ({b[0]} * {a11} - {a01} * {b[1]}) / determinant",
            f"{indent}{x[1]} = ({a00} * {b[1]} - {b[0]} * {a10}) / determinant",
        ]
    else:
        lines = _dense(x, a, b, language, indent)
    for row, right in zip(a, b, strict=True):
        terms = [f"{entry} * {unknown}" for entry, unknown in zip(row, x, strict=True)]
        size = " + ".join(f"abs({t})" for t in [*terms, str(right)])
        lines += [
            f"{indent}size = {size}",
            f"{indent}if size > 0:",
            f"{indent}    residual = max(residual, abs({' + '.join(terms)} - {right}) / size)",
        ]
    return lines


def _newton(step: Newton, language: Target, indent: str) -> list[str]:
    x, f, jac = step.unknowns, step.residual, step.jacobian
    inner, deep = indent + "    ", indent + "        "
    lines = [f"{indent}{u} = start_{u}" for u in x]
    lines += [
        f"{indent}previous = {language.exp}({language.zero} + 700)",
        f"{indent}close = {language.tolerance}",
        f"{indent}done = False",
        f"{indent}for _ in range(500):",
        f"{inner}iterations += 1",
    ]
    for body in step.body:
        lines += _step(body, language, inner)
    size = ", ".join(f"abs({r})" for r in f)
    lines.append(f"{inner}size = {f'max({size})' if len(f) > 1 else size}")
    # Where V >> 1 rounding keeps the residual above the tolerance: stop when it stops falling.
    lines += [
        f"{inner}if size <= close or (size < 1e-10 and size >= previous / 2):",
        f"{deep}done = True",
        f"{deep}break",
        f"{inner}close = max(close, rough * size)",
        f"{inner}previous = size",
    ]
    steps = [f"step_{u}" for u in x]
    if len(x) == 1:
        lines.append(f"{inner}{steps[0]} = {f[0]} / {jac[0][0]}")
    elif len(x) == 2:
        (a00, a01), (a10, a11) = jac
        lines += [
            f"{inner}determinant = {a00} * {a11} - {a01} * {a10}",
            f"{inner}{steps[0]} = ({f[0]} * {a11} - {a01} * {f[1]}) / determinant",
            f"{inner}{steps[1]} = ({a00} * {f[1]} - {f[0]} * {a10}) / determinant",
        ]
    else:
        lines += _dense(steps, jac, f, language, inner)
    for u, s in zip(x, steps, strict=True):
        lines += [
            f"{inner}{u} *= {language.exp}(-min(max({s}, -{language.clip}), {language.clip}))",
        ]
    lines += [
        f"{indent}converged = converged and done",
        f"{indent}residual = max(residual, size)",
    ]
    if len(x) == 1:
        norm = f"1 / abs({jac[0][0]})"
    elif len(x) == 2:
        (a00, a01), (a10, a11) = jac
        lines.append(f"{indent}determinant = abs({a00} * {a11} - {a01} * {a10})")
        norm = f"max(abs({a11}) + abs({a01}), abs({a00}) + abs({a10})) / determinant"
    else:
        rows = [f"row_of_{u}" for u in x]
        lines += [f"{indent}{row} = {language.zero}" for row in rows]
        for k in range(len(x)):
            unit = ["1.0" if i == k else "0.0" for i in range(len(x))]
            lines += _dense([], jac, unit, language, indent)
            lines += [f"{indent}{row} += abs(solution[{i}])" for i, row in enumerate(rows)]
        norm = f"max({', '.join(rows)})"
    lines.append(f"{indent}amplification = max(amplification, {norm})")
    return lines


def _batch_function(program: Program, language: Target) -> str:
    tables = [str(t) for t in program.tables]
    names = ["weight", *tables]
    rows = [
        f"    {level}_{name} = {level}[{k}]"
        for level in ("fine", "medium", "coarse")
        for k, name in enumerate(names)
    ]
    load = [f"        {p} = float(parameters[i, {k}])" for k, p in enumerate(program.parameters)]
    newtons = [s for s in program.steps if isinstance(s, Newton)]
    starts = [language.printer.print(v) for s in newtons for v in s.start]
    outputs = [str(x) for x in program.outputs]
    restarts = [f"float(x[{outputs.index(str(u))}])" for u in newton_unknowns(program)]
    sizes = {x: x for x in newton_unknowns(program)} | dict(program.magnitudes)
    measured = [
        f"({outputs.index(str(x))}, x[{outputs.index(str(size))}])" for x, size in sizes.items()
    ]
    # Where nothing has a size of its own, the first output has to do.
    measured = measured or ["(0, abs(x[0]))"]

    def call(level: str, start: list[str]) -> str:
        return ", ".join([*map(str, program.parameters), *(f"{level}_{n}" for n in names), *start])

    magnitudes = []
    for x, size in program.magnitudes.items():
        k, rounding = outputs.index(str(x)), f"8e-15 * x[{outputs.index(str(size))}]"
        magnitudes.append(f"        errors[i, {k}] += {rounding}")
        if k == 0:
            magnitudes.append(f"        state[2] += {rounding} / (abs(x[0]) + 1e-300)")
    return _BATCH.lstrip("\n").format(
        decorator=language.batch_decorator,
        n_parameters=len(program.parameters),
        parameter_names=", ".join(map(str, program.parameters)),
        n_rows=len(names),
        row_names=", ".join(names),
        n_outputs=len(program.outputs),
        output_names=", ".join(outputs),
        rows="\n".join(rows),
        load="\n".join(load),
        fine=call("fine", starts),
        medium=call("medium", restarts),
        coarse=call("coarse", restarts),
        measured=", ".join([*measured, ""]).strip(),
        magnitudes="\n".join(magnitudes),
    )
