"""The numba and plain-Python targets: one self-contained file with the solver and its driver.

The solver is that of :mod:`..solver`; the rules, tables and the refinement around it are those of
the NumPy target (:mod:`.numpy`), which differs in how a batch is solved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import EmissionError
from ...printing.printers import NumpyPrinter, helper_definitions
from ...printing.spellings import NumbaLanguage, argument_names
from ..documentation import filled
from ..program import Program
from ..solver import PYTHON_HEADER, scalar_functions, solver_functions
from .file_parts import Keyword, PythonFile, selfcheck_text

if TYPE_CHECKING:
    from ..driver import BakedTables
    from ..lowered import LoweredSystem
    from .vectors import Vectors

_USAGE = """\
solve_point({{{point}}}{data}) returns {{output: (value, estimated error)}};
solve_many(array of rows{data}) returns values, errors and info; see their docstrings."""

_COMPILED_USAGE = """
Compiled functions of your own call solution(array of parameters, rules), where
rules = quadrature({{{point}}}{data}) is made once before."""

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
def solve_group(rows, arrays{parallel}):
    """Return values, errors and info of rows, on the arrays of a level."""
    parameters = {parameters}
    values, errors = (np.full((len(rows), N_OUTPUTS), np.nan) for _ in range(2))
    info = np.full((len(rows), 3), np.nan)
{body}
    failed = ~(info[:, 0] >= 0)
    info[failed, 0] = -np.maximum(np.nan_to_num(np.abs(info[failed, 0])), 1.0)
    values[failed], errors[failed] = np.nan, np.inf
    return values, errors, info
'''

_PARALLEL_BODY = """\
    work = len(rows) * max([1, *(np.shape(array)[-1] for array in arrays if np.ndim(array))])
    if parallel and work >= _PARALLEL_WORK and len(rows) > _CHUNK and numba.get_num_threads() > 1:
        starts = ({starts})
        solve_rows_parallel(parameters, *arrays, values, errors, info, *starts)
    else:
        solve_batch(parameters, *arrays, values, errors, info)"""

_PLAIN_BODY = "    solve_batch(parameters, *arrays, values, errors, info)"

_COMPILED_ENTRY = '''
def quadrature(parameters, data=None, rtol=1e-11):
    """Return nodes that suffice at a set of parameters, for `solution`.

    Parameters
    ----------
    parameters, data, rtol
        As in `solve_point`, which refuses what it refuses.

    Returns
    -------
    tuple of arrays
        For compiled functions; nothing in it depends on parameters but the nodes and tables of
        `TABLE_PARAMETERS`.
    """
    parameters = given_parameters(parameters)
    solve_point(parameters, data, rtol)
    row = parameter_rows([[parameters[name] for name in PARAMETERS]])
    table_values = [row[0, PARAMETERS.index(name)] for name in TABLE_PARAMETERS]
    levels = levels_at(table_values, data_columns(data))
    (best,) = refine_group(row, np.arange(1), levels, rtol, unsolved(1), False)
    return levels[best]


@njit(**_FLAGS)
def solution(parameters, rules):
    """Return values, errors and whether there is a solution; call it from compiled functions.

    Parameters
    ----------
    parameters : array (P,)
        In the order of `PARAMETERS`. Errors say how well the nodes suit them; parameters that
        `TABLE_PARAMETERS` names must be those of `quadrature`.
    rules : tuple of arrays
        From `quadrature`.

    Returns
    -------
    values, errors : array (O,)
        In the order of `OUTPUTS`; NaN and infinity where there is no solution.
    solved : bool
    """
    values, errors = np.full((1, N_OUTPUTS), np.nan), np.full((1, N_OUTPUTS), np.inf)
    info = np.full((1, 3), np.nan)
    row = {row}
    solve_rows(0, 1, row, *rules, values, errors, info{starts})
    solved = info[0, 0] >= 0.0
    if not solved:
        values[:], errors[:] = np.nan, np.inf
    kept = np.array({kept})
    return values[0][kept], errors[0][kept], solved
'''


def files(
    lowered: LoweredSystem,
    tables: BakedTables | None = None,
    name: str | None = None,
    target: str = "numba",
    vectors: Vectors | None = None,
) -> dict[str, str]:
    """Return {file name: text}; see :meth:`..lowered.LoweredSystem.files`."""
    if target not in ("numba", "python"):
        raise EmissionError(f"target must be 'numba' or 'python', got {target!r}")
    program, compiled = lowered.program, target == "numba"
    file = PythonFile(lowered, tables, NumpyPrinter())
    parts = [file.constants(estimates=False), solver_functions(program, target)]
    parts += [_parallel(program) if compiled else "", _hook(program, file.fixed, target)]
    driver = file.driver("solve_group", _PARALLEL_KEYWORD if compiled else None)
    parts += [helper_definitions(NumpyPrinter, "\n".join(driver)), *driver]
    parts.append(_compiled_entry(lowered, file.fixed) if compiled else "")
    parts.append(selfcheck_text(vectors))
    kind = "Compiled by numba" if compiled else "Plain Python with NumPy"
    header = _NUMBA_HEADER if compiled else PYTHON_HEADER
    usage = _USAGE + _COMPILED_USAGE if compiled else _USAGE
    text = file.text(kind, header, parts, usage, helpers=False)
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
    """Return the function that solves rows on the arrays of a level."""
    columns = [
        f"np.full(len(rows), {fixed[str(p)]!r})"
        if str(p) in fixed
        else f"rows[:, PARAMETERS.index({str(p)!r})]"
        for p in program.parameters
    ]
    unknowns = len(program.newton_unknowns)
    starts = f"np.full((len(rows), {unknowns}), np.nan)," if unknowns else ""
    return _HOOK.format(
        parallel=", parallel" if target == "numba" else "",
        parameters=f"np.stack([{', '.join(columns)}], axis=1)"
        if fixed
        else "np.ascontiguousarray(rows)",
        body=_PARALLEL_BODY.format(starts=starts) if target == "numba" else _PLAIN_BODY,
    )


def _compiled_entry(lowered: LoweredSystem, fixed: dict[str, float]) -> str:
    """Return what compiled functions of a user call."""
    program = lowered.program
    free = [str(p) for p in program.parameters if str(p) not in fixed]
    entries = [
        repr(fixed[x]) if x in fixed else f"parameters[{free.index(x)}]"
        for x in map(str, program.parameters)
    ]
    row = f"np.array([[{', '.join(entries)}]])" if entries else "np.zeros((1, 0))"
    unknowns = len(program.newton_unknowns)
    return filled(
        _COMPILED_ENTRY,
        starts=f", np.full((1, {unknowns}), np.nan)" if unknowns else "",
        row=row,
        kept=repr(list(lowered.results.values())),
    )
