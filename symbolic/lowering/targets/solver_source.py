"""Source code of a solver from its program: numba, its plain-Python twin, and mpmath.

The modules that :mod:`giantstep.numeric` loads; :mod:`.python_files` and :mod:`.mpmath_files` build
files for users around the same functions. Each text is self-contained: numba does not notice
changes in other files.
"""

from __future__ import annotations

from ...printing.printers import helper_definitions
from ..program import Program
from .language import Function
from .python_language import MpmathLanguage, NumbaLanguage, PythonLanguage, argument_names
from .refinement import array_driver
from .scalar_source import scalar_functions

# Reassociation lets the sums over nodes use vector instructions; NaN checks stay.
NUMBA_HEADER = """import math

import numpy as np
from numba import njit

_FLAGS = {"nogil": True, "cache": True, "error_model": "numpy"}
_FAST = {"reassoc", "contract", "nsz", "arcp"}
"""
PYTHON_HEADER = "import math\n\nimport numpy as np\n"

_LANGUAGES: dict[str, type[PythonLanguage]] = {
    "numba": NumbaLanguage,
    "python": PythonLanguage,
    "mpmath": MpmathLanguage,
}


def solver_source(program: Program, target: str = "numba") -> str:
    """Return the source of a self-contained module with ``solve`` (and ``solve_batch``).

    Parameters
    ----------
    program : Program
    target : {"numba", "python", "mpmath"}
        "python" is the plain twin of "numba": the same text without compilation, and the driver
        that refines rows of a batch (:mod:`.refinement`). "mpmath" takes a context `ctx` from the
        namespace it is executed in and has no ``solve_batch``.

    Raises
    ------
    EmissionError
        If a name of the program cannot be a name in the source, or has a meaning there.
    """
    if target not in _LANGUAGES:
        raise ValueError(f"target must be 'numba', 'python' or 'mpmath', got {target!r}")
    documentation = program.documentation.strip().replace("\\", "\\\\").replace('"', '\\"')
    parts = [f'"""{documentation}\n"""\n']
    if target != "mpmath":
        parts.append(NUMBA_HEADER if target == "numba" else PYTHON_HEADER)
    parts.append(solver_functions(program, target))
    if target == "python":
        grid = bool(program.inner_nodes)
        parts.append(array_driver(program, line=bool(program.tables), grid=grid))
    return "\n\n".join(parts)


def solver_functions(program: Program, target: str) -> str:
    """Return the definitions of the solver without docstring and imports."""
    language = _LANGUAGES[target]({root.name: root.name for root in program.roots})
    functions = scalar_functions(program, language.reserved)
    if target == "mpmath":
        functions = functions[:-1]
    texts = [language.source(f) for f in functions]
    if target != "mpmath":
        texts.append(_batch_source(program, functions[-1], target))
    decorator = "@njit(**_FLAGS)\n" if target == "numba" else ""
    helpers = helper_definitions(language.printer, "\n".join(texts), decorator)
    return "\n\n".join([*([helpers] if helpers else []), *texts])


def _batch_source(program: Program, rows: Function, target: str) -> str:
    """Return ``solve_batch``, which solves all rows."""
    names = argument_names(rows)[2:]
    given = [name for name in names if name != "starts"]
    lines = ["@njit(**_FLAGS)"] if target == "numba" else []
    lines.append(f"def solve_batch({', '.join(given)}, starts=None):")
    lines += [f"    {line}" if line else "" for line in _batch_documentation(program)]
    if "starts" in names:
        unknowns = len(program.newton_unknowns)
        lines += [
            "    if starts is None:",
            f"        first_values = np.full((parameters.shape[0], {unknowns}), np.nan)",
            "    else:",
            "        first_values = starts",
        ]
        given.append("first_values")
    lines.append(f"    solve_rows(0, parameters.shape[0], {', '.join(given)})")
    return "\n".join(lines) + "\n"


def _batch_documentation(program: Program) -> list[str]:
    outputs = ", ".join(map(str, program.outputs))
    lines = [
        '"""Solve for every row of `parameters`, three times: coarser rules estimate the error.',
        "",
        "Parameters",
        "----------",
        f"parameters : array (n, {len(program.parameters)})",
        f"    Columns: {', '.join(map(str, program.parameters))}.",
    ]
    if program.tables:
        lines += [
            f"fine, medium, coarse : array ({1 + len(program.tables)}, K)",
            f"    Rows: weight, {', '.join(map(str, program.tables))}, on rules of which each has",
            "    about half the nodes of the one before.",
        ]
    if program.has_panels:
        lines += [
            "fine_panel, medium_panel, coarse_panel : array (2, K)",
            "    Weights and nodes of rules on [0, 1], for each piece of the line.",
            "fine_reach, medium_reach, coarse_reach : float",
            "    Where the line is cut off.",
        ]
    for data in program.data:
        lines += [
            f"data_{data.name} : array ({1 + len(data.columns)}, K)",
            f"    Rows: weights, {', '.join(map(str, data.columns))}.",
        ]
    lines += [
        f"results : array (n, {len(program.outputs)}), written",
        f"    Columns: {outputs}.",
        f"errors : array (n, {len(program.outputs)}), written",
        "    Estimated errors of the results; infinite where the medium rule has no solution.",
        "info : array (n, 3), written",
        "    Newton iterations (negative if not converged), relative residual, and the part of the",
        "    first output's estimated error that is rounding, relative to that output.",
    ]
    if program.newton_unknowns:
        unknowns = ", ".join(map(str, program.newton_unknowns))
        lines += [
            f"starts : array (n, {len(program.newton_unknowns)}), optional",
            f"    First values of {unknowns}; NaN stands for the usual one.",
        ]
    return [*lines, '"""']
