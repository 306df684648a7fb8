"""Anderson acceleration of generated equations, compiled: the other way to solve them.

The equations are those of the program that Newton's method runs on, without what only its Jacobian
needs; they compile to one pass over the nodes, and the loop around them is compiled, too.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from giantstep.symbolic.lowering.program import Assign, LinearSolve, Newton, NodeLoop, Program
from giantstep.symbolic.lowering.solver import solver_source

MEMORY = 6
TOLERANCE = 1e-13


def equations_alone(program: Program) -> tuple[Program, tuple[bool, ...]]:
    """Return a program of the moves at given unknowns, and which coordinates are logarithms."""
    (newton,) = (s for s in program.steps if isinstance(s, Newton))
    needed = set(newton.fixed_point)
    kept: list[Assign | NodeLoop | LinearSolve] = []
    for step in reversed((*program.steps[: program.steps.index(newton)], *newton.body)):
        if isinstance(step, Assign) and step.target in needed:
            kept.append(step)
            needed |= step.value.free_symbols
        elif isinstance(step, NodeLoop):
            sums = tuple(a for a in step.sums if a.target in needed)
            held = set().union(*(a.value.free_symbols for a in sums))
            locals_: list[Assign] = []
            of_node = 0
            for place, a in reversed([*enumerate(step.locals)]):
                if a.target in held:
                    locals_.insert(0, a)
                    held |= a.value.free_symbols
                    of_node += place < step.of_node
            if sums:
                kept.append(replace(step, locals=tuple(locals_), sums=sums, of_node=of_node))
                needed |= held
    moves = replace(
        program,
        parameters=(*program.parameters, *newton.unknowns),
        steps=tuple(reversed(kept)),
        outputs=newton.fixed_point,
        magnitudes={},
    )
    return moves, newton.logarithmic


@njit
def _accelerated(move, given, arrays, start, logarithmic, out, info, damped):  # type: ignore[no-untyped-def]
    """Return the solution and the number of evaluations."""
    n = len(start)
    x = start.copy()
    u = np.where(logarithmic, np.log(x), x)
    points = np.zeros((MEMORY + 1, n))
    steps = np.zeros((MEMORY + 1, n))
    for count in range(200):
        x = np.where(logarithmic, np.exp(u), u)
        move(given, x, arrays, out, info)
        f = -out[:n]
        if np.max(np.abs(f)) <= TOLERANCE:
            return x, count + 1
        slot = count % (MEMORY + 1)
        points[slot], steps[slot] = u, f
        kept = min(count - damped, MEMORY)
        if kept < 1:
            u = u + 0.5 * f
            continue
        du, df = np.empty((n, kept)), np.empty((n, kept))
        for k in range(kept):
            now, before = (count - k) % (MEMORY + 1), (count - k - 1) % (MEMORY + 1)
            du[:, k] = points[now] - points[before]
            df[:, k] = steps[now] - steps[before]
        mix = np.linalg.lstsq(df, f)[0]
        u = u + f - (du + df) @ mix
    return x, -200


def anderson(program: Program, damped: int = 3) -> Callable[..., tuple[np.ndarray, int]]:
    """Return ``solve(given, arrays, start)`` by Anderson acceleration, compiled.

    Parameters
    ----------
    program : Program
        With one `Newton` of equations that are fixed points.
    damped : int
        Plain steps of one half before acceleration begins.
    """
    moves, logarithmic = equations_alone(program)
    folder = tempfile.mkdtemp()
    path = Path(folder) / "equations_alone.py"
    path.write_text(solver_source(moves), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("equations_alone", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    passed, unknowns = len(program.parameters), len(logarithmic)
    rows = 1 + len(program.tables)
    # Tuples of numbers do not become arguments inside compiled code; text does.
    names = [f"given[{k}]" for k in range(passed)] + [f"x[{k}]" for k in range(unknowns)]
    names += [f"arrays[{k}]" for k in range(rows)]
    text = f"def move(given, x, arrays, out, info):\n    solve({', '.join(names)}, out, info)\n"
    space = {"solve": module.solve}
    exec(text, space)
    move = njit(space["move"])
    flags, out, info = np.array(logarithmic), np.empty(unknowns), np.empty(3)

    def solve(given: np.ndarray, arrays: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, int]:
        found: tuple[np.ndarray, int] = _accelerated(
            move, given, arrays, start, flags, out, info, damped
        )
        return found

    return solve
