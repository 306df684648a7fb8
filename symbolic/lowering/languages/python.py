"""The numba and plain-Python targets: one self-contained file with the solver and its driver.

The solver is that of :mod:`..solver`; the rules, tables and the refinement around it are those of
the NumPy target (:mod:`.numpy`), which differs in how a batch is solved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import EmissionError
from ...printing.printers import NumpyPrinter, helper_definitions
from ...printing.spellings import NumbaLanguage, argument_names
from ..program import Program
from ..rows import LEVELS
from ..solver import PYTHON_HEADER, scalar_functions, solver_functions
from .file_parts import Keyword, PythonFile

if TYPE_CHECKING:
    from ..driver import BakedTables
    from ..lowered import LoweredSystem

_USAGE = """\
solve_point({{{point}}}{data}) returns {{output: (value, estimated error)}};
solve_many(array of rows{data}) returns values, errors and info; see their docstrings."""

_NUMBA_HEADER = '''import math
import sys

import numba
import numpy as np
from numba import prange


def _probe():
    return 0.0


def _can_cache():
    """Whether compiled code can be kept: numba loads it with the module's name, from a folder."""
    module = sys.modules.get(__name__)
    if __name__ == "__main__" or module is None or vars(module) is not globals():
        return False
    try:
        numba.njit(cache=True)(_probe)
    except RuntimeError:
        # Neither the folder of this file nor that of the user can be written to.
        return False
    return True


def njit(**options):
    """Compile; what is kept under one name of this module is not loaded under another."""

    def decorate(function):
        function.__qualname__ = f"{__name__}.{function.__name__}"
        return numba.njit(**options)(function)

    return decorate


_FLAGS = {"nogil": True, "cache": _can_cache(), "error_model": "numpy"}
# Sums over nodes may be reordered to use vector instructions; NaN checks stay.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
# Rows that a thread takes at a time, and work (rows times nodes) from which threads pay for the
# seconds that it takes to compile for them.
_CHUNK = 256
_PARALLEL_WORK = 4_000_000
'''

_PARALLEL = '''
@njit(parallel=True, **_FLAGS)
def solve_rows_parallel({names}):
    """Solve chunks of rows on threads; the result of a row does not depend on its chunk."""
    chunks = (parameters.shape[0] + _CHUNK - 1) // _CHUNK
    for chunk in prange(chunks):
        first = chunk * _CHUNK
        solve_rows({arguments})
'''

_PARALLEL_KEYWORD = Keyword(
    "parallel",
    "True",
    """parallel : bool
        Solve many rows on the threads of numba (``numba.set_num_threads``); the numbers
        do not depend on how many there are.""",
)

_HOOK = '''
def solve_group(rows, rules{parallel}):
    """Return values, errors and info of rows, on three given rules."""
    parameters = {parameters}
    values, errors = (np.full((len(rows), N_OUTPUTS), np.nan) for _ in range(2))
    info = np.full((len(rows), 3), np.nan)
{arrays}
{body}
    failed = ~(info[:, 0] >= 0)
    info[failed, 0] = -np.maximum(np.nan_to_num(np.abs(info[failed, 0])), 1.0)
    values[failed], errors[failed] = np.nan, np.inf
    return values, errors, info
'''

_PARALLEL_BODY = """\
    work = len(rows) * max([1, *(np.size(array) for array in rules[0].values())])
    if parallel and work >= _PARALLEL_WORK and len(rows) > _CHUNK and numba.get_num_threads() > 1:
{starts}
        solve_rows_parallel({row_arguments})
    else:
        solve_batch({batch_arguments})"""


def files(
    lowered: LoweredSystem,
    tables: BakedTables | None = None,
    name: str | None = None,
    target: str = "numba",
) -> dict[str, str]:
    """Return {file name: text}; see :meth:`..lowered.LoweredSystem.files`."""
    if target not in ("numba", "python"):
        raise EmissionError(f"target must be 'numba' or 'python', got {target!r}")
    program, compiled = lowered.program, target == "numba"
    file = PythonFile(lowered, tables, NumpyPrinter())
    parts = [file.constants(estimates=False), solver_functions(program, target)]
    parts += [_parallel(program) if compiled else "", _hook(program, file.fixed, target)]
    parts += file.driver("solve_group", _PARALLEL_KEYWORD if compiled else None)
    found = file.line_parts()
    parts += [helper_definitions(NumpyPrinter, "\n".join(found)) if file.line else "", *found]
    kind = "Compiled by numba" if compiled else "Plain Python with NumPy"
    header = _NUMBA_HEADER if compiled else PYTHON_HEADER
    text = file.text(kind, header, parts, _USAGE, helpers=False)
    return {f"{name or program.name}.py": text}


def _rows_arguments(program: Program) -> list[str]:
    """Return the arguments of ``solve_rows`` after the first and the last row."""
    return argument_names(scalar_functions(program, NumbaLanguage.reserved)[-1])[2:]


def _parallel(program: Program) -> str:
    """Return the function that spreads rows over threads."""
    names = _rows_arguments(program)
    stop = "min(first + _CHUNK, parameters.shape[0])"
    return _PARALLEL.format(names=", ".join(names), arguments=", ".join(["first", stop, *names]))


def _hook(program: Program, fixed: dict[str, float], target: str) -> str:
    """Return the function that solves rows on the arrays of three rules."""
    names = _rows_arguments(program)
    given = names[1 : names.index("results")]
    lines = [f"    {name} = {_rows_of(program, name)}" for name in given]
    columns = [
        f"np.full(len(rows), {fixed[str(p)]!r})"
        if str(p) in fixed
        else f"rows[:, PARAMETERS.index({str(p)!r})]"
        for p in program.parameters
    ]
    parameters = (
        f"np.stack([{', '.join(columns)}], axis=1)" if fixed else "np.ascontiguousarray(rows)"
    )
    solved = ", ".join(["parameters", *given, "values", "errors", "info"])
    body = f"    solve_batch({solved})"
    if target == "numba":
        unknowns = len(program.newton_unknowns)
        starts = f"        starts = np.full((len(rows), {unknowns}), np.nan)" if unknowns else ""
        body = _PARALLEL_BODY.format(
            starts=starts,
            row_arguments=f"{solved}, starts" if unknowns else solved,
            batch_arguments=solved,
        ).replace("\n\n", "\n")
    else:
        # Python is faster with lists than with the elements of arrays.
        lines += [f"    {x} = {x}.tolist()" for x in given if not x.endswith("_reach")]
    parallel = ", parallel" if target == "numba" else ""
    return _HOOK.format(
        parallel=parallel, parameters=parameters, arrays="\n".join(lines), body=body
    ).replace("\n\n    ", "\n    ")


def _rows_of(program: Program, name: str) -> str:
    """Return how an argument of ``solve_batch`` is made from the arrays of three rules."""
    level = name.split("_")[0]
    rule = f"rules[{LEVELS.index(level)}]" if level in LEVELS else "rules[0]"
    if name.endswith("_reach") and level in LEVELS:
        return f'float({rule}["reach"])'
    if name in LEVELS:
        rows = ["weight", *map(str, program.tables)]
    elif name.endswith("_panel") and level in LEVELS:
        rows = ["panel_weight", "panel_node"]
    else:
        data = next(d for d in program.data if name == f"data_{d.name}")
        rows = [f"weight_{data.name}", *map(str, data.columns)]
    return f"np.ascontiguousarray(np.stack([{rule}[key] for key in {tuple(rows)!r}]))"
