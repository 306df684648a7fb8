"""Find where to begin: rough solutions on coarse rules, followed from easier parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kernel_arrays import KernelArrays
from .kernel_code import LoadedKernel
from .saddle_point_solver import BatchSolution, solve_rows

Array = NDArray[np.float64]

# Rules from coarse to fine: rule and level, and evaluations of an integrand after which the search
# on it is given up: what is found does not depend on the machine. They take some 1 us each.
_RULES = ((2, 0, 4e6), (1, 0, 1e7), (0, 0, 2e7), (0, 2, 2e7))
# Evaluations of a solve besides those of the iterations that it reports, in passes over the nodes.
_OTHER_PASSES = 3
# Factors by which a parameter is made larger to find a first solution: from where equations are
# easy, as an iteration that finds nothing takes a hundred times as long as one that does.
_LADDER = (1e4, 1e2, 1e8, 10.0, 1.0)
# By which the way to the wanted value proceeds: at first, and the smallest and the largest factor.
_FIRST_FACTOR = 4.0
_SMALLEST_FACTOR = 1.02
_LARGEST_FACTOR = 30.0
# After so many iterations the factor grows, or stays; after more it shrinks.
_FEW, _SOME = 12, 25
# So often a shorter step is tried, whatever the longer one took.
_SHORTER = 2
# Unknowns of a smaller exponent on the way go to a limit.
_SETTLED = 0.05
# Logarithm of the ratio of values whose solutions say how it goes on.
_CLOSEST = 1e-6
# Rules that crowd around the steep places of a solution are those of another one so close to it.
_NEAR = 1e-2
# How often they may move before the rough solution counts as none.
_SETTLING = 3
# Following takes so many solves that compiling pays.
_MANY = 10**6

Start = Callable[[NDArray[np.int64], float], Array]
Sharper = Callable[[Mapping[str, float]], KernelArrays | None]


def solve_with_continuation(
    kernel: LoadedKernel,
    arrays: KernelArrays,
    parameters: Array,
    start: Array,
    easier: str | None,
    *,
    rtol: float,
    workers: int | None = None,
    further: Sequence[Sequence[float] | Array] = (),
    anchors: Sequence[float] = (),
    start_at: Start | None = None,
    sharper: Sharper | None = None,
    gently: bool = False,
) -> BatchSolution:
    """Solve for every row, beginning at rough solutions on coarse rules.

    Where Newton's method does not get from `start` to a rough solution, it is followed from another
    value of one parameter, on a finer rule from where the coarser one loses it. Fine rules, on
    which an iteration takes long, are used next to a solution only, so that a row without one
    fails soon.

    Parameters
    ----------
    kernel, arrays, parameters, rtol, workers
        As for :func:`.saddle_point_solver.solve_rows`; a tolerance of one or more asks for rough
        solutions only, where rules crowd those of the medium rule and their distance to the coarse.
    start : array (n, U)
        First values of the unknowns; NaN stands for those of the kernel.
    easier : str or None
        A parameter of the kernel, greater than zero, that solutions are followed in.
    further : sequence of (U,)
        First values that are tried in turn where those of `start` and the kernel lead nowhere.
    anchors : sequence of float
        Values of this parameter at which equations are easy, in the order in which they are tried;
        by default larger ones than the wanted one.
    start_at : callable, optional
        Returns first values for given rows, as of `start`, and a value of the parameter, which are
        tried where those of `start` lead nowhere; by default those of `start`.
    sharper : callable, optional
        Returns, for the unknowns of a rough solution by name, arrays whose rules crowd where
        integrands are steep at this solution; None where `arrays` see all of it.
    gently : bool
        Follow all rows from the first anchor at once, before Newton's method is tried from afar:
        for equations on which it takes long to find nothing.

    Returns
    -------
    BatchSolution
        Rows without solution are marked.
    """
    column = 0 if easier is None else kernel.parameters.index(easier)
    rule, level, _ = _RULES[0]
    coarse = arrays.single(rule, level)
    known: dict[int, dict[float, Array]] = {}
    if gently and anchors and start_at is not None:
        start, known = _together(
            kernel, coarse, parameters, start, start_at, column, anchors[0], workers
        )
    found, near = _rough(kernel, coarse, parameters, start, workers)
    # First values of the kernel are nobody's solution, but in no far corner either.
    for values in ([math.nan] * near.shape[1], *further):
        lost = np.flatnonzero(~found.converged)
        if not len(lost):
            break
        first = np.tile(np.array(values), (len(lost), 1))
        again, near[lost] = _rough(kernel, coarse, parameters[lost], first, workers)
        put(found, lost, again)

    def solved(rows: NDArray[np.int64], unknowns: Array) -> BatchSolution:
        return solve_rows(
            kernel, arrays, parameters[rows], start=unknowns, rtol=rtol, workers=workers
        )

    def refined(
        special: KernelArrays, row: NDArray[np.int64], unknowns: Array, *, certain: bool = False
    ) -> BatchSolution:
        # Such a row takes so many nodes that compiling pays. Where the rough solution is one of the
        # coarse rule alone, the next one says so soon, and where integrands are steep. From far
        # away Newton's method would look for long on the fine rules, and following does not.
        for _ in range(_SETTLING):
            near_by, better = _rough(
                kernel, special.single(2), parameters[row], unknowns, total=_MANY
            )
            if not near_by.converged.all():
                return near_by
            settled = np.allclose(better, unknowns, rtol=_NEAR, atol=0.0)
            if settled:
                break
            special, unknowns = _sharper(kernel, sharper, better[0]) or special, better
        if not (settled or certain):
            return replace(near_by, converged=np.zeros(1, dtype=bool))
        if rtol >= 1.0:
            finer, _ = _rough(kernel, special.single(1), parameters[row], better, total=_MANY)
            apart = {n: np.abs(x - near_by.values[n]) for n, x in finer.values.items()}
            return replace(finer, errors={n: apart[n] for n in finer.errors})
        return solve_rows(kernel, special, parameters[row], start=better, rtol=rtol, total=_MANY)

    reached = np.flatnonzero(found.converged)
    own = {int(k): _sharper(kernel, sharper, near[k]) for k in reached}
    usual = np.array([k for k, special in own.items() if special is None], dtype=np.int64)
    if len(usual):
        put(found, usual, solved(usual, near[usual]))
    for k, special in own.items():
        if special is not None:
            row = np.array([k])
            put(found, row, refined(special, row, near[row]))
    for k in map(int, np.flatnonzero(~found.converged)) if easier is not None else ():
        row = np.array([k])
        easy = anchors or [factor * float(parameters[k, column]) for factor in _LADDER]

        def starts(value: float, row: NDArray[np.int64] = row) -> Array:
            return start[row] if start_at is None else start_at(row, value)

        rules, near_by = own.get(k) or arrays, known.get(k, {})
        for unknowns in _followed(
            kernel, rules, parameters[row], starts, column, easy, near_by, sharper
        ):
            special = _sharper(kernel, sharper, unknowns[0]) or rules
            again = refined(special, row, unknowns, certain=True)
            if not again.converged[0]:
                # What was followed on a finer rule may be far from any solution on the coarse one.
                again = solve_rows(
                    kernel, special, parameters[row], start=unknowns, rtol=rtol, total=_MANY
                )
            if again.converged[0]:
                put(found, row, again)
                break
    return found


def _together(
    kernel: LoadedKernel, single: KernelArrays, parameters: Array, start: Array, start_at: Start,
    column: int, anchor: float, workers: int | None,
) -> tuple[Array, dict[int, dict[float, Array]]]:  # fmt: skip
    """Follow all rows from one value of a parameter, those that differ in it alone on one way.

    Returns first values, those of `start` where the way ends; and for these rows the last solutions
    on the way, by their values of the parameter.
    """
    first = start.copy()
    known: dict[int, dict[float, Array]] = {}
    for table in _lines(parameters, column):
        wanted = parameters[table[0], column]
        # Down from there, and up: each wanted value is on the way to the farther ones.
        for places in (np.flatnonzero(wanted <= anchor)[::-1], np.flatnonzero(wanted > anchor)):
            rows, path = table[:, places], list[tuple[float, Array]]()
            value, ratio, near = anchor, _FIRST_FACTOR, start[table[:, 0]]
            reached = 0
            while rows.size and reached < len(places):
                points = parameters[rows[:, reached]]
                points[:, column] = value
                found, unknowns = _rough(kernel, single, points, near, workers)
                lost = np.flatnonzero(~found.converged)
                if not path and len(lost):
                    better = start_at(rows[lost, reached], anchor)
                    again, unknowns[lost] = _rough(kernel, single, points[lost], better, workers)
                    put(found, lost, again)
                kept = found.converged
                for n in np.flatnonzero(~kept):
                    on_way = {v: u[n : n + 1] for v, u in path}
                    known |= dict.fromkeys(map(int, rows[n, reached:]), on_way)
                rows = rows[kept]
                path = [(v, u[kept]) for v, u in (*path[-1:], (value, unknowns))]
                while reached < len(places) and wanted[places[reached]] == value:
                    first[rows[:, reached]] = path[-1][1]
                    reached += 1
                if reached < len(places):
                    target = float(wanted[places[reached]])
                    far = value / ratio if value > target else value * ratio
                    value = max(target, far) if value > target else min(target, far)
                    ratio = min(ratio**1.5, _LARGEST_FACTOR)
                    near = _predicted(path, value)
    return first, known


def _lines(parameters: Array, column: int) -> Iterator[NDArray[np.int64]]:
    """Iterate over tables of rows: what stands in a line differs in one parameter alone.

    All lines of a table have the same values of it, which ascend.
    """
    others = np.delete(parameters, column, axis=1)
    order = np.lexsort((parameters[:, column], *others.T))
    ends = np.flatnonzero((np.diff(others[order], axis=0) != 0).any(axis=1)) + 1
    alike: dict[bytes, list[NDArray[np.int64]]] = {}
    for line in np.split(order, ends):
        alike.setdefault(parameters[line, column].tobytes(), []).append(line)
    yield from map(np.stack, alike.values())


def _sharper(kernel: LoadedKernel, sharper: Sharper | None, unknowns: Array) -> KernelArrays | None:
    """Return the arrays of one row at a rough solution, where the usual ones are too coarse."""
    if sharper is None:
        return None
    return sharper(dict(zip(kernel.code.unknowns, map(float, unknowns), strict=True)))


def _rough(
    kernel: LoadedKernel, single: KernelArrays, parameters: Array, start: Array,
    workers: int | None = None, total: int | None = None,
) -> tuple[BatchSolution, Array]:  # fmt: skip
    """Return solutions on one rule, and their unknowns."""
    found = solve_rows(
        kernel, single, parameters, start=start, rtol=1.0, workers=workers, total=total
    )
    return found, np.stack([found.values[x] for x in kernel.code.unknowns], axis=1)


def _followed(
    kernel: LoadedKernel, arrays: KernelArrays, row: Array, starts: Callable[[float], Array],
    column: int, anchors: Sequence[float], known: dict[float, Array],
    sharper: Sharper | None = None,
) -> Iterator[Array]:  # fmt: skip
    """Iterate over unknowns near the solution of a row, from one rule after the other.

    `known` holds solutions on a coarser rule by their values of the parameter.
    """
    target = float(row[0, column])
    for rule, level, patience in _RULES:
        spent = 0.0

        def solved(
            value: float, first: Array, *, near: bool = True, rule: int = rule, level: int = level
        ) -> tuple[Array, int] | None:
            nonlocal spent
            # Steep places move on the way, and become steeper.
            special = _sharper(kernel, sharper, first[0]) if near else None
            rules = (special or arrays).single(rule, level)
            point = row.copy()
            point[0, column] = value
            found, unknowns = _rough(kernel, rules, point, first, total=_MANY)
            spent += float((found.iterations[0] + _OTHER_PASSES) * found.nodes[0])
            return (unknowns, int(found.iterations[0])) if found.converged[0] else None

        path: list[tuple[float, Array]] = []
        # Those nearest to the wanted value first; two of them say how it goes on.
        for value in sorted(known, key=lambda v: abs(math.log(v / target)))[:2]:
            first = solved(value, known[value])
            if first is not None:
                path.insert(0, (value, first[0]))
        for anchor in () if path else anchors:
            first = solved(anchor, starts(anchor), near=False)
            if first is not None:
                path = [(anchor, first[0])]
                break
            if spent > patience:
                break
        if not path:
            continue
        ratio, failures = _FIRST_FACTOR, 0
        while path[-1][0] != target and ratio > _SMALLEST_FACTOR and spent < patience:
            value = path[-1][0]
            down = value > target
            trial = max(target, value / ratio) if down else min(target, value * ratio)
            before = spent
            further = solved(trial, _predicted(path, trial))
            if further is None:
                ratio, failures = math.sqrt(ratio), failures + 1
                spent = before if failures <= _SHORTER else spent
            else:
                unknowns, iterations = further
                path.append((trial, unknowns))
                # Nothing costs as much as an iteration that ends nowhere.
                power = 1.5 if iterations <= _FEW else 1.0 if iterations <= _SOME else 0.5
                ratio = min(ratio**power, _LARGEST_FACTOR)
        known = dict(path)
        if path[-1][0] == target:
            yield path[-1][1]


def _predicted(path: list[tuple[float, Array]], value: float) -> Array:
    """Continue the line through the last two solutions.

    What is positive and moves is taken for a power of the parameter; what hardly does goes to a
    limit, with a correction that is proportional to the parameter or its inverse.
    """
    (last, near), (before, far) = path[-1], path[-2 if len(path) > 1 else -1]
    ratio = math.log(last / before)
    # Through one solution, or two that are one up to rounding, there is no line.
    if abs(ratio) < _CLOSEST:
        return near
    share = math.log(value / last) / ratio
    limit = math.copysign(1.0, before - last)
    rest = ((value / last) ** limit - 1) / (1 - (before / last) ** limit)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        change = np.log(near / far)
        powers = near * np.exp(change * share)
    settled = np.abs(change) < _SETTLED * abs(ratio)
    lines = near + (near - far) * np.where(settled, rest, share)
    found = np.where((near * far > 0) & ~settled, powers, lines)
    return np.where(np.isfinite(found), found, near)


def put(
    found: BatchSolution, rows: NDArray[np.int64], again: BatchSolution, taken: Any = slice(None)
) -> None:
    """Put solutions (those that are `taken`) in the place of rows."""
    for table, new in ((found.values, again.values), (found.errors, again.errors)):
        for name, column in table.items():
            column[rows] = new[name][taken]
    for name in ("iterations", "residual", "nodes", "converged"):
        getattr(found, name)[rows] = getattr(again, name)[taken]
