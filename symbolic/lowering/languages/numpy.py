"""The NumPy target: one self-contained file that solves many parameter sets at once, without numba.

All rows of a block go through Newton's method together; those that have converged leave the
arrays. See :mod:`.arrays` for the shape of things.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...printing.printers import NumpyPrinter
from .arrays import array_support, estimate_text
from .file_parts import PythonFile, selfcheck_text

if TYPE_CHECKING:
    from ..driver import BakedTables
    from ..lowered import LoweredSystem
    from .vectors import Vectors

_SUPPORT = '''
def total(weight, values):
    """Return the weighted sum over the nodes, the last axis."""
    return np.einsum("...j,...j->...", weight, values)[..., np.newaxis]


def panels(like, breaks, arrays):
    """Return nodes and weights of the normal law, cut at break points."""
    places = np.concatenate([np.broadcast_to(b, like.shape) for b in breaks], axis=-1)
    return image_rule(places, arrays["reach"], arrays["panel_node"], arrays["panel_weight"])


def solve_larger(matrix, right):
    """Solve a linear system for each row."""
    matrices, rights = matrix[..., 0].transpose(2, 0, 1), right[..., 0].T[..., np.newaxis]
    try:
        found = np.linalg.solve(matrices, rights)
    except np.linalg.LinAlgError:
        # One singular matrix must not take the other rows with it.
        found = np.full(rights.shape, np.nan)
        for k, (one, other) in enumerate(zip(matrices, rights, strict=True)):
            with contextlib.suppress(np.linalg.LinAlgError):
                found[k] = np.linalg.solve(one, other)
    return found[..., 0].T[..., np.newaxis]


def newton(
    equations, start, known, arrays, report, rough, *, held, logarithmic, safeguarded, movable
):
    """Solve the equations of every row; a row that is done leaves the arrays."""
    if held:
        gaps, jacobian, _, values = equations(start, known, arrays)
        size = np.max(np.abs(gaps), axis=0)
        return start, values, after_newton(report, 1, size, jacobian, size < np.inf, held)
    n = start.shape[1]
    logarithmic = np.array(logarithmic)[:, np.newaxis, np.newaxis]
    rows = np.arange(n)
    count, sizes = np.zeros((n, 1)), np.full((n, 1), np.inf)
    solved = np.zeros((n, 1), dtype=bool)
    state = first_state(start, movable)
    found = None
    for _ in range(1000 if safeguarded else 500):
        unknowns = state[0]
        gaps, jacobian, moves, values = equations(unknowns, known, arrays)
        size = np.max(np.abs(gaps), axis=0)
        size = np.where(size < np.inf, size, np.inf)
        state, done, going = advance(
            state, gaps, jacobian, moves, size, rough, logarithmic, safeguarded, movable
        )
        if found is None:
            found = [np.array(a) for a in (unknowns, jacobian, values)]
        else:
            for whole, part in zip(found, (unknowns, jacobian, values), strict=True):
                whole[..., rows, :] = part
        count[rows] += 1
        sizes[rows] = size
        solved[rows] = done
        keep = going[:, 0]
        rows = rows[keep]
        if not len(rows):
            break
        known = known[:, keep]
        state = tuple(a[..., keep, :] for a in state)
    unknowns, jacobian, values = found
    report = after_newton(report, count, sizes, jacobian, solved, held)
    return unknowns, values, report


def newton_root(residual, slope, start, *arguments):
    """Return the root of an increasing function at every place of the arguments; NaN if not found.

    The slope is at least one, so the root is within the first residual of the start.
    """
    arguments = np.broadcast_arrays(*arguments)
    shape = arguments[0].shape
    arguments = [a.reshape(-1) for a in arguments]
    x = np.array(np.broadcast_to(start(*arguments), arguments[0].shape), dtype=float)
    places = np.arange(len(x))
    before = np.full(len(x), np.inf)
    radius = np.abs(residual(x, *arguments))
    low, high, scale = x - radius, x + radius, np.abs(x) + radius
    for _ in range(200):
        at = x[places]
        given = residual(at, *arguments), slope(at, *arguments)
        x[places], low, high, before, going = root_step(at, *given, low, high, before, scale)
        if not going.any():
            return x.reshape(shape)
        places, low, high, before, scale, *arguments = (
            a[going] for a in (places, low, high, before, scale, *arguments)
        )
    x[places] = np.nan
    return x.reshape(shape)
'''

_NESTED = '''
def points_of(node):
    """Return the first point of each node, and the node of each point; they stand side by side."""
    new = np.concatenate([[True], node[1:] != node[:-1]])
    return np.flatnonzero(new), np.cumsum(new) - 1


def node_mean(points, weight, values):
    """Return averages over the points of each node, at all of its points."""
    first, index = points
    mass = np.add.reduceat(weight, first)
    return (np.add.reduceat(weight * values, first, axis=-1) / mass)[..., index]


def node_largest(points, values):
    """Return the largest values at the points of each node, at all of its points."""
    first, index = points
    return np.maximum.reduceat(values, first, axis=-1)[..., index]
'''

_SOLVE_ROWS = '''
def solve_block(block, rule, start=None, rough=0.0, held=0):
    """Solve for all parameters of a block, of shape (P, n, 1), on one rule."""
    with np.errstate(all="ignore"):
        return solve(block, {**rule, "like": np.zeros((block.shape[1], 1))}, start, rough, held)


def solve_rows(rows, arrays):
    """Return values, errors and info of rows on three rules; in blocks that fit in memory."""
    rules = by_name(arrays)
    values, errors = np.empty((len(rows), N_OUTPUTS)), np.empty((len(rows), N_OUTPUTS))
    info = np.empty((len(rows), 3))
    most = max(
        PANELS * np.size(rules[0].get("panel_node", ())),
        *(np.size(array) for array in rules[0].values()),
        1,
    )
    size = max(1, 2_000_000 // most)
    for first in range(0, len(rows), size):
        part = slice(first, first + size)
        with np.errstate(all="ignore"):
            found = estimate(rows[part].T[:, :, np.newaxis], *rules)
        values[part], errors[part], info[part] = (a[..., 0].T for a in found)
    return values, errors, info
'''


def files(
    lowered: LoweredSystem,
    tables: BakedTables | None = None,
    name: str | None = None,
    vectors: Vectors | None = None,
) -> dict[str, str]:
    """Return {file name: text}; see :meth:`..lowered.LoweredSystem.files`."""
    program = lowered.program
    file = PythonFile(lowered, tables, NumpyPrinter())
    parts = [file.constants(), array_support("np"), _SUPPORT, _NESTED if program.nested else ""]
    parts += [
        file.source.text(),
        estimate_text(grid=bool(program.inner_nodes)),
        *file.driver(),
        file.by_name(),
        _SOLVE_ROWS,
        selfcheck_text(vectors),
    ]
    imports = "import contextlib\nimport math\n\nimport numpy as np\n"
    text = file.text("NumPy, many rows at once", imports, parts)
    return {f"{name or program.name}.py": text}
