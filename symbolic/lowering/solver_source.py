"""Source code of a solver from its program: numba, its plain-Python twin, and mpmath.

The three targets differ in their header, in the printer and in nothing else. Each file is
self-contained: numba does not notice changes in other files.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

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
{decorator}def solve_batch(parameters, fine, medium, coarse, acceleration, results, errors, info):
    """Solve for every row of `parameters`, three times: the coarser rules estimate the error.

    Parameters
    ----------
    parameters : array (n, {n_parameters})
        Columns: {parameter_names}.
    fine, medium, coarse : array ({n_rows}, K)
        Rows: {row_names}, on rules of which each has about half the nodes of the one before.
    acceleration : float
        Each halving of the step gains at least the factor of the one before to this power.
    results : array (n, {n_outputs}), written
        Columns: {output_names}.
    errors : array (n, {n_outputs}), written
        Estimated errors of the results.
    info : array (n, 3), written
        Newton iterations (negative if not converged), relative residual, rounding error.
    """
{rows}
    scratch = np.empty((2, {n_outputs}))
    unused = np.empty(3)
    for i in range(parameters.shape[0]):
{load}
        solve({arguments}, {fine_rows}, {starts}, results[i], info[i])
        solve({arguments}, {medium_rows}, {restarts}, scratch[0], unused)
        solve({arguments}, {coarse_rows}, {restarts}, scratch[1], unused)
        # The last difference is the error of the rule before; the next halving gains at least as
        # much again, so the error is at most the difference times that gain, and 10 is a margin.
        last = 0.0
        first = 1e-300
        for k in range({n_outputs}):
            scale = abs(results[i, k]) + 1e-300
            last = max(last, abs(results[i, k] - scratch[0, k]) / scale)
            first = max(first, abs(scratch[0, k] - scratch[1, k]) / scale)
        gain = 10.0 * (last / first) ** acceleration
        if not gain < 1.0:
            gain = 1.0
        rounding = info[i, 2]
        for k in range({n_outputs}):
            difference = abs(results[i, k] - scratch[0, k])
            # A value that crosses zero is measured against the error of its neighbours too.
            errors[i, k] = gain * max(difference, 0.1 * last * abs(results[i, k]))
            errors[i, k] += rounding * abs(results[i, k])
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
    )


def solver_source(program: Program, target: str = "numba") -> str:
    """Return the source of a self-contained module with ``solve`` (and ``solve_batch``).

    Parameters
    ----------
    program : Program
    target : {"numba", "python", "mpmath"}
        "python" is the plain twin of "numba": the same text without compilation. "mpmath" takes
        a context `ctx` from the namespace it is executed in and has no ``solve_batch``.
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
    docstring = f'"""{program.documentation.strip()}\n"""\n'
    text = docstring + ("\n" + language.header if language.header else "")
    if any(isinstance(s, LinearSolve) and len(s.unknowns) > 2 for s in program.steps) or any(
        isinstance(s, Newton) and len(s.unknowns) > 2 for s in program.steps
    ):
        text += "\n" + language.decorator + _DENSE_SOLVE.lstrip("\n")
    text += "\n\n" + _solve_function(program, language)
    if target != "mpmath":
        text += "\n" + _batch_function(program, language)
    return text


def newton_unknowns(program: Program) -> tuple[sp.Symbol, ...]:
    """Return the unknowns of all Newton steps, for which a solve takes starting values."""
    return tuple(x for s in program.steps if isinstance(s, Newton) for x in s.unknowns)


def _solve_function(program: Program, language: Target) -> str:
    tables = [str(t) for t in program.tables]
    starts = [f"start_{x}" for x in newton_unknowns(program)]
    arguments = [str(p) for p in program.parameters] + ["weight", *tables, *starts, "out", "info"]
    lines = [
        f"{language.decorator}def solve({', '.join(arguments)}):",
        '    """Solve once: results go to `out`, (iterations, residual, rounding) to `info`."""',
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
        "    # A relative error eps of the equations moves the solution by about this much.",
        "    info[2] = 2.220446049250313e-16 * (8 + 4 * amplification)",
    ]
    return "\n".join(lines) + "\n"


def _step(step: Step, language: Target, indent: str) -> list[str]:
    if isinstance(step, Assign):
        return [f"{indent}{step.target} = {language.printer.print(step.value)}"]
    if isinstance(step, NodeLoop):
        return _loop(step, language, indent)
    if isinstance(step, LinearSolve):
        return _linear(step, indent)
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


def _linear(step: LinearSolve, indent: str) -> list[str]:
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
        rows = ", ".join("[" + ", ".join(map(str, row)) + "]" for row in a)
        lines = [
            f"{indent}{', '.join(map(str, x))} = solve_dense([{rows}], [{', '.join(map(str, b))}])"
        ]
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
        f"{indent}converged = False",
        f"{indent}while iterations < 500:",
        f"{inner}iterations += 1",
    ]
    for body in step.body:
        lines += _step(body, language, inner)
    size = ", ".join(f"abs({r})" for r in f)
    lines.append(f"{inner}size = {f'max({size})' if len(f) > 1 else size}")
    # Where V >> 1 rounding keeps the residual above the tolerance: stop when it stops falling.
    lines += [
        f"{inner}if size <= {language.tolerance} or (size < 1e-10 and size >= previous / 2):",
        f"{deep}converged = True",
        f"{deep}break",
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
        rows = ", ".join("[" + ", ".join(map(str, row)) + "]" for row in jac)
        lines.append(
            f"{inner}{', '.join(steps)} = solve_dense([{rows}], [{', '.join(map(str, f))}])"
        )
    for u, s in zip(x, steps, strict=True):
        lines += [
            f"{inner}{u} *= {language.exp}(-min(max({s}, -{language.clip}), {language.clip}))",
        ]
    lines.append(f"{indent}residual = max(residual, size)")
    if len(x) == 2:
        (a00, a01), (a10, a11) = jac
        lines += [
            f"{indent}determinant = abs({a00} * {a11} - {a01} * {a10})",
            f"{indent}amplification = max(abs({a11}) + abs({a01}), abs({a00}) + abs({a10}))",
            f"{indent}amplification = amplification / determinant",
        ]
    elif len(x) == 1:
        lines.append(f"{indent}amplification = 1 / abs({jac[0][0]})")
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
    restarts = [f"float(results[i, {outputs.index(str(x))}])" for x in newton_unknowns(program)]
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
        arguments=", ".join(map(str, program.parameters)),
        fine_rows=", ".join(f"fine_{n}" for n in names),
        medium_rows=", ".join(f"medium_{n}" for n in names),
        coarse_rows=", ".join(f"coarse_{n}" for n in names),
        starts=", ".join(starts),
        restarts=", ".join(restarts),
    )
