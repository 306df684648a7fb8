"""Lines of transitions in the plane of two parameters, followed rather than scanned.

A transition over one parameter is a solution of a larger system, in which this parameter is an
unknown (:mod:`.symbolic.systems.branch_conditions`). Over a second parameter these solutions form
curves, which :mod:`.numeric.branches` follows like any others; where a line of spinodals has a cusp
is a critical point.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import EmissionError, ParameterError, StructureError, UnsupportedExpressionError
from ...labelled import labelled
from ...numeric.arguments import positive_number, whole_number
from ...numeric.branches import (
    CLOSED,
    CROSSING,
    EDGE,
    Curve,
    Equations,
    between,
    corrected,
    curve_through,
    lies_on,
    tangent,
    zero_between,
)
from ...pages import Block, Listing
from ...result import Result
from ...symbolic.systems.branch_conditions import BENDS, Condition
from ..figures import BLUE, GREEN, GREY, VERMILLION, drawing
from .branch_search import Search, checked_bounds, checked_options, kind_of_crossing, sign_changes
from .branches import (
    FIRST_ORDER,
    INSTABILITY,
    SECOND_ORDER,
    SPINODAL,
    End,
    Meeting,
    SpecialPoint,
    Stated,
    require_kernel_of,
)
from .families import Extremum, Family, numbers_of

if TYPE_CHECKING:
    import xarray as xr

    from .kernel import Kernel
    from .solution import KernelSolution

Array = NDArray[np.float64]

_STYLES = {
    SPINODAL: (BLUE, "--"),
    INSTABILITY: (BLUE, ":"),
    SECOND_ORDER: (GREEN, "-"),
    FIRST_ORDER: (VERMILLION, "-"),
}
TRICRITICAL = "tricritical"
# Second derivatives relative to third ones, below which they vanish by symmetry.
_SYMMETRIC = 1e-9
# Relative to the largest value along a line.
_ROUNDING = 1e-13
# Points next to a tricritical point whose kind is not looked at.
_UNSURE = 2
# At a cusp neither parameter moves along the line of spinodals.
_CUSP = 1e-5
# Scaled distance of two phases at which a line of first-order transitions ends.
_MERGED = 1e-2
# Of the term that unfolds a crossing: above it is a place where branches pass each other.
_UNFOLDED = 1e-7
# Points of a line: fewer are a point of no line.
_SHORTEST = 3


@dataclass(frozen=True, repr=False)
class TransitionLine(Result):
    """A line of transitions of one kind.

    Attributes
    ----------
    kind : str
        As of :class:`.branches.SpecialPoint`.
    x, y : array (K,)
        The two parameters along the line.
    unknowns : mapping from str to array (K,)
    ends : (End, End)
    """

    _document = "line of transitions"
    _entry = "document"

    kind: str
    x: Array
    y: Array
    unknowns: Mapping[str, Array]
    ends: tuple[End, End]

    def __len__(self) -> int:
        return len(self.x)

    def page(self) -> Iterable[Block]:
        """Return the kind, and how many points there are."""
        yield f"{self.kind}, {len(self)} points"

    def __repr__(self) -> str:
        return f"TransitionLine({self})"


@dataclass(frozen=True)
class CriticalPoint:
    """A point at which lines of transitions end.

    Attributes
    ----------
    x, y : float
    unknowns : mapping from str to float
    point : SpecialPoint
        As a special point of a line over one of the parameters: a critical point is a fold of the
        line of spinodals, a cusp, where two of these and one of first-order transitions end; at a
        tricritical point what leaves a line of crossings turns to the other side.
    line : Stated
        What holds along that line besides the equations; the other parameter meets it.
    """

    x: float
    y: float
    unknowns: Mapping[str, float]
    point: SpecialPoint = field(repr=False)
    line: Stated = field(repr=False)

    def refine(self, digits: int | None = None, **options: Any) -> KernelSolution:
        """Solve the equations of the critical point, to any number of digits.

        Both parameters are among the unknowns; see :meth:`.branches.SpecialPoint.refine`.
        """
        return self.point.refine(digits, **options)


@dataclass(frozen=True, repr=False)
class PhaseDiagram(Result):
    """Lines of transitions over two parameters; from :meth:`.kernel.Kernel.phase_diagram`.

    Attributes
    ----------
    name, title : str
        Of the equations.
    x, y : (str, float, float)
        Names and ranges of the parameters.
    parameters : mapping from str to float
        The fixed ones.
    lines : tuple of TransitionLine
    critical_points : tuple of CriticalPoint
        Cusps of lines of spinodals, where the line of first-order transitions ends.
    tricritical_points : tuple of CriticalPoint
        Where a transition that is continuous becomes one of first order.
    unknowns : tuple of str
        Names of those of the lines.
    labels : mapping from str to str
        LaTeX of names.
    stability : str
        What a stable phase is here, and whether one is the best of all, in words.
    """

    _document = "phase diagram"

    name: str
    title: str
    x: tuple[str, float, float]
    y: tuple[str, float, float]
    parameters: Mapping[str, float]
    lines: tuple[TransitionLine, ...]
    critical_points: tuple[CriticalPoint, ...]
    tricritical_points: tuple[CriticalPoint, ...]
    unknowns: tuple[str, ...]
    labels: Mapping[str, str]
    stability: str = ""

    def with_kernel(self, kernel: Kernel, *, data: Mapping[str, Any] | None = None) -> PhaseDiagram:
        """Return a diagram that was read from a document, with its equations.

        Parameters
        ----------
        kernel : Kernel
            Of the same system.
        data : mapping, optional
            Those that were given to :meth:`.kernel.Kernel.phase_diagram`.

        Raises
        ------
        ParameterError
            If the kernel has another name, or lacks a parameter or an unknown.
        """
        require_kernel_of(self.name, kernel)
        axes = {self.x[0]: self.x[1:], self.y[0]: self.y[1:]}

        def restored(critical: CriticalPoint) -> CriticalPoint:
            place = {self.x[0]: critical.x, self.y[0]: critical.y}
            other = critical.point.over
            (control,) = set(axes) - {other}
            held = {**self.parameters, other: place[other]}
            cut = Family(
                kernel=kernel, over=control, within=axes[control], parameters=held, data=data
            )
            family = Family(
                kernel=_closed(critical.line.on(cut.open), cut, control),
                over=other,
                within=axes[other],
                parameters=self.parameters,
                data=data,
                kept=(control,),
            )
            return replace(critical, point=_traced(critical.point, family))

        return replace(
            self,
            critical_points=tuple(map(restored, self.critical_points)),
            tricritical_points=tuple(map(restored, self.tricritical_points)),
        )

    def of(self, kind: str) -> tuple[TransitionLine, ...]:
        """Return the lines of one kind: "spinodal", "first-order", "second-order" or a zero."""
        return tuple(line for line in self.lines if line.kind == kind)

    def plot(self, *, ax: Any = None, **style: Any) -> Any:
        """Draw the lines by kind, with critical points."""
        with drawing(ax, style) as (ax, pen):
            named: set[str] = set()
            for line in self.lines:
                colour, dashes = _STYLES.get(line.kind, (GREY, "-."))
                look = pen(line.kind, several=True, linestyle=dashes, color=colour)
                ax.plot(line.x, line.y, **look | ({"label": "_"} if line.kind in named else {}))
                named.add(line.kind)
            for kind, marker, found in self._marked():
                for n, p in enumerate(found):
                    ax.plot(p.x, p.y, marker, color=GREY, label="_" if n else f"{kind} point")
            for put, name in ((ax.set_xlabel, self.x[0]), (ax.set_ylabel, self.y[0])):
                put(f"${self.labels[name]}$" if name in self.labels else name)
            ax.set_xlim(*self.x[1:])
            ax.set_ylim(*self.y[1:])
            if named or self.critical_points or self.tricritical_points:
                ax.legend(frameon=False)
        return ax

    def _marked(self) -> tuple[tuple[str, str, tuple[CriticalPoint, ...]], ...]:
        """Return points where lines end, by kind, with their markers."""
        return (
            ("critical", "o", self.critical_points), (TRICRITICAL, "^", self.tricritical_points)
        )  # fmt: skip

    def to_dataset(self) -> xr.Dataset:
        """Return all points of all lines as a labelled data set, one row each."""

        def column(parts: Sequence[Any]) -> Any:
            return np.concatenate(parts) if parts else np.zeros(0)

        found: dict[str, Any] = {
            "line": column([np.full(len(line), n) for n, line in enumerate(self.lines)]),
            "kind": column([np.full(len(line), line.kind) for line in self.lines]),
            self.x[0]: column([line.x for line in self.lines]),
            self.y[0]: column([line.y for line in self.lines]),
        }
        for name in self.unknowns:
            found[name] = column([line.unknowns[name] for line in self.lines])
        return labelled(
            {name: ("point", values) for name, values in found.items()},
            attrs={"kernel": self.name, **self.parameters},
            # An m or a beta of one's own is not that of the models here.
            names={name: f"{name}, unknown" for name in self.unknowns}
            | {name: f"{name}, parameter" for name in (self.x[0], self.y[0])},
        )

    def page(self) -> Iterable[Block]:
        """Return lines with their ends, and the points at which they meet."""
        n = len(self.lines)
        meaning = f"; {self.stability}" if self.stability else ""
        yield (
            f"{self.title}: {n} line{'' if n == 1 else 's'} of transitions over {self.x[0]} and "
            f"{self.y[0]}{meaning}"
        )
        lines = [
            f"{line.kind}, {len(line)} points: from {line.ends[0]} to {line.ends[1]}"
            for line in self.lines
        ]
        for kind, _, found in self._marked():
            for p in found:
                where = ", ".join(f"{name} = {value:.10g}" for name, value in p.unknowns.items())
                lines.append(
                    f"{kind} point at {self.x[0]} = {p.x:.12g}, {self.y[0]} = {p.y:.12g} ({where})"
                )
        yield Listing(lines, mark="")

    def latex(self) -> str:
        """Return the points at which lines meet, in LaTeX."""
        x, y = (self.labels.get(axis[0], axis[0]) for axis in (self.x, self.y))
        rows = [
            rf"\text{{{kind} point}}:\quad {x} &= {p.x:.10g},\ {y} = {p.y:.10g}"
            for kind, _, found in self._marked()
            for p in found
        ]
        return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"

    def __repr__(self) -> str:
        return (
            f"PhaseDiagram({self.name}, {self.x[0]} and {self.y[0]}: {len(self.lines)} "
            f"lines, {len(self.critical_points)} critical points)"
        )


def _closed(condition: Condition, cut: Family, control: str) -> Kernel:
    """Return the kernel of a condition, with what tells tricritical points if it has that."""
    if condition.kind == "boundary" and len(condition.held) == 1:
        # Third derivatives may need tables at jumps, or print no more.
        with contextlib.suppress(EmissionError, StructureError, UnsupportedExpressionError):
            return cut.closed(replace(condition, bent=True), control)
    return cut.closed(condition, control)


def _traced(point: SpecialPoint, family: Family) -> SpecialPoint:
    """Return a point of a family of lines with its equations."""
    condition = point.stated.on(family.open)
    return replace(point).traced(Meeting(condition, family.control, family.parameters, family.data))


@dataclass(frozen=True, eq=False)
class _Followed:
    """A line with its equations, whose last variable is the parameter that the cut has fixed."""

    kind: str
    family: Family
    equations: Equations
    curve: Curve
    control: str
    cut: Family
    stated: Stated

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all coordinates."""
        return (*self.family.names, self.family.over)

    def values(self, y: Array) -> dict[str, float]:
        """Return coordinates at a point by name, and unknowns that are at an end along the line."""
        return {**self.stated.held, **dict(zip(self.names, y.tolist(), strict=True))}

    def holds(self, values: Mapping[str, float], largest: float) -> bool:
        """Tell whether a point, by name, is on the line, in either order of two phases."""
        if any(name not in values for name in self.names):
            return False
        y = np.array([values[name] for name in self.names])
        copies = [y, _exchanged(y, self.family.names)] if self.kind == FIRST_ORDER else [y]
        return any(lies_on(self.equations, self.curve, c, largest) for c in copies)


class Plane:
    """Lines through special points of cuts, in the plane of parameters."""

    def __init__(
        self,
        parameters: Mapping[str, Any],
        ranges: Mapping[str, tuple[float, float]],
        points: int,
        extremum: Extremum,
    ) -> None:
        self.parameters, self.ranges = parameters, ranges
        self.largest = 1 / points
        self.followed: list[_Followed] = []
        self.extremum = extremum
        self.names: tuple[str, ...] = ()
        self._components: dict[tuple[object, ...], int] = {}

    def add(self, point: SpecialPoint, cut: Family, other: str, value: float) -> None:
        """Follow the line through a special point of a cut, if it is not known yet.

        Parameters
        ----------
        point : SpecialPoint
        cut : Family
        other, value : str, float
            The parameter that is fixed along the cut.
        """
        self.names = cut.names
        # One component of the null vector is one along all lines of a kind, so that these can be
        # compared: the largest one at the first point.
        # Whether a crossing is a transition of second order may change along its line.
        kind = SECOND_ORDER if point.kind == INSTABILITY else point.kind
        condition = point.condition
        key = (kind, condition.kind, condition.held, condition.others)
        component = condition.component
        if not condition.others:
            component = self._components.setdefault(key, component)
        values = {**_normalised(point, component), point.over: point.value, other: value}
        condition = replace(condition, component=component)
        try:
            family = self._family(point, condition, cut, other)
        except StructureError:
            # The cut runs along the line: what holds there does not depend on its parameter.
            return
        first = np.array([*(values.get(name, 0.0) for name in family.names), value])
        equations = family.equations(np.abs(first[:-1]))
        at = np.zeros((1, 1, len(first)))
        at[0, 0, -1] = 1.0
        found, good, _ = corrected(equations, first[None], at, most=30)
        y = found[0]
        if not (good[0] and equations.inside(y)):
            return
        values.update(zip(family.names, y.tolist(), strict=False))
        if any(f.holds(values, self.largest) for f in self.followed if f.kind == kind):
            return
        stop = None
        if kind == FIRST_ORDER:
            stop = partial(_merged, family.names, equations, Stated.of(condition), y)
        elif condition.kind == "boundary":
            stop = partial(self._leaves_ends, condition, family, point.over, cut)
        elif condition.kind == "branch point":
            stop = partial(_unfolded, family.names, equations)
        curve = curve_through(equations, y, largest=self.largest, stop=stop)
        if len(curve) >= _SHORTEST:
            stated = Stated.of(condition)
            self.followed.append(_Followed(kind, family, equations, curve, point.over, cut, stated))

    def _at(
        self, cut: Family, control: str, other: str, values: Mapping[str, float]
    ) -> tuple[Family, Array]:
        """Return the equations of the cut through a point of a line, and the point there."""
        held = {**self.parameters, other: values[other]}
        base = replace(cut, over=control, parameters=held)
        return base, np.array([values[name] for name in (*base.names, control)])

    def _leaves_ends(
        self, condition: Condition, family: Family, control: str, cut: Family, y: Array
    ) -> bool:
        """Tell whether equations of unknowns that are at an end no longer hold there."""
        values = dict(zip((*family.names, family.over), y.tolist(), strict=True))
        values |= Stated.of(condition).held
        base, at = self._at(cut, control, family.over, values)
        residual = base.linearised(at[None])[0][0]
        ends = [base.names.index(name) for name in condition.components]
        return bool(np.max(np.abs(residual[ends])) > _UNFOLDED)

    def _family(self, point: SpecialPoint, condition: Condition, cut: Family, other: str) -> Family:
        """Return the equations of a special point over the parameter that the cut has fixed."""
        kernel = _closed(condition, cut, point.over)
        bounds = {**cut.bounds, **{f"{n}_other": limits for n, limits in cut.bounds.items()}}
        bounds[point.over] = self.ranges[point.over]
        family = Family(
            kernel=kernel,
            over=other,
            within=self.ranges[other],
            parameters={n: v for n, v in point.origin.parameters.items() if n != other},
            data=cut.data,
            rtol=cut.rtol,
            kept=(point.over,),
        )
        names = family.names
        return replace(family, bounds={n: limits for n, limits in bounds.items() if n in names})

    def lines(
        self, x: str, y: str
    ) -> Iterator[tuple[TransitionLine, list[CriticalPoint], list[CriticalPoint]]]:
        """Iterate over the lines with the critical and tricritical points on them."""
        for line in self.followed:
            cusps = [self._critical_point(line, cusp, x, y) for cusp in self._cusps(line)]
            turns = self._tricritical(line)
            tricritical = []
            for _, point, place in turns:
                found = dict(zip(line.names, place.tolist(), strict=True))
                tricritical.append(
                    CriticalPoint(found[x], found[y], point.unknowns, point, line.stated)
                )
            for kind, points, ends in self._pieces(line, [(k, place) for k, _, place in turns]):
                table = dict(zip(line.names, points.T, strict=True))
                held = {n: np.full(len(points), end) for n, end in line.stated.held.items()}
                unknowns = {n: {**held, **table}[n] for n in self.names}
                yield (
                    TransitionLine(kind, table[x], table[y], unknowns, ends), cusps, tricritical
                )  # fmt: skip
                cusps, tricritical = [], []

    def _pieces(
        self, line: _Followed, turns: Sequence[tuple[int, Array]]
    ) -> Iterator[tuple[str, Array, tuple[End, End]]]:
        """Iterate over parts of a line of one kind, cut at tricritical points, with their ends."""
        curve, points = line.curve, np.array(line.curve.points)
        kinds = self._kinds(line)
        bounds = [0, *(k + 1 for k, _ in turns), len(points)]
        for n, (first, last) in enumerate(itertools.pairwise(bounds)):
            own = kinds[first:last]
            # Next to a tricritical point what leaves is another branch within a step.
            if n > 0 and len(own) > 2 * _UNSURE:
                own[:_UNSURE] = [own[_UNSURE]] * _UNSURE
            if n < len(turns) and len(own) > 2 * _UNSURE:
                own[-_UNSURE:] = [own[-_UNSURE - 1]] * _UNSURE
            cuts = [k for k in range(1, len(own)) if own[k] != own[k - 1]]
            for a, b in itertools.pairwise([0, *cuts, len(own)]):
                part = points[first + a : first + b]
                begin = curve.start if first + a == 0 else CROSSING
                end = curve.end if first + b == len(points) else CROSSING
                if a == 0 and n > 0:
                    part = np.vstack([turns[n - 1][1], part])
                if b == len(own) and n < len(turns):
                    part = np.vstack([part, turns[n][1]])
                ends = self._end(begin, part[0], line), self._end(end, part[-1], line)
                yield own[a], part, ends

    def _kinds(self, line: _Followed) -> list[str]:
        """Return the kind of each point of a line: that of a crossing depends on what leaves it."""
        n = len(line.curve)
        if line.kind != SECOND_ORDER:
            return [line.kind] * n
        kinds = []
        for k in range(n):
            values = line.values(line.curve.points[k])
            base, y = self._at(line.cut, line.control, line.family.over, values)
            equations = base.equations(np.abs(y[:-1]))
            kinds.append(kind_of_crossing(base, equations, y, self.extremum, self.largest))
        return kinds

    def _critical_point(self, line: _Followed, cusp: Array, x: str, y: str) -> CriticalPoint:
        family = line.family
        found = line.values(cusp)
        unknowns = {name: found[name] for name in self.names}
        vector = np.linalg.svd(line.equations.evaluate(cusp[None])[1][0][:, :-1])[2][-1]
        k = int(np.argmax(np.abs(vector)))
        start = {
            f"direction_{name}": float(v / vector[k])
            for name, v in zip(family.names, vector, strict=True)
        }
        fold = SpecialPoint(
            kind="critical",
            over=family.over,
            value=float(cusp[-1]),
            error=_CUSP,
            unknowns=unknowns,
            stated=Stated.of(Condition(family.open, "fold", k)),
            start={**found, **start},
        )
        return CriticalPoint(found[x], found[y], unknowns, _traced(fold, family), line.stated)

    def _tricritical(self, line: _Followed) -> list[tuple[int, SpecialPoint, Array]]:
        """Return where what leaves a line of crossings turns, each after a point of the line."""
        family, points = line.family, np.array(line.curve.points)
        if line.kind != SECOND_ORDER or BENDS[0] not in family.open.system.outputs:
            return []
        tables = family.described(points).values
        name, values = BENDS[0], tables[BENDS[0]]
        third = tables.get(BENDS[1])
        if third is not None and np.all(np.abs(values) <= _SYMMETRIC * np.abs(third)):
            name, values = BENDS[1], third
        found = []
        # A point that is tricritical itself has rounding for a sign.
        vanish = np.abs(values) <= _ROUNDING * np.max(np.abs(values))
        for k in sign_changes(np.where(vanish, 0.0, values)):
            at = partial(between, line.equations, line.curve, k, end=points[k + 1])
            share = 0.0
            if not vanish[k]:
                root = zero_between(
                    lambda s, at=at: float(family.described(at(s)[None]).values[name][0])  # type: ignore[misc]
                )
                if root is None:
                    continue
                share = root
            y = at(share) if share else points[k]
            batch = family.described(y[None])
            slope = abs(float((values[k + 1] - values[k]) / (points[k + 1] - points[k])[-1]))
            values_there = line.values(y)
            error = float(batch.errors[name][0] + abs(batch.values[name][0])) / slope
            point = SpecialPoint(
                kind=TRICRITICAL,
                over=family.over,
                value=float(y[-1]),
                error=max(error, math.ulp(y[-1])),
                unknowns={n: values_there[n] for n in self.names},
                stated=Stated.of(Condition(family.open, "zero", output=name)),
                start={n: float(column[0]) for n, column in batch.values.items()} | values_there,
            )
            found.append((k, _traced(point, family), y))
        return found

    def _cusps(self, line: _Followed) -> Iterator[Array]:
        """Iterate over points of a line of spinodals at which neither parameter moves."""
        if line.kind != SPINODAL:
            return
        columns = (line.family.names.index(line.control), -1)
        tangents = np.array(line.curve.tangents)
        for column in columns:
            for k in np.flatnonzero(tangents[:-1, column] * tangents[1:, column] < 0).tolist():
                at = partial(_point_and_tangent, line, k)
                share = zero_between(lambda s, at=at, c=column: at(s)[1][c])  # type: ignore[misc]
                if share is None:
                    continue
                y, t = at(share)
                if np.abs(t[list(columns)]).max() < _CUSP:
                    yield y

    def _end(self, how: str, y: Array, line: _Followed) -> End:
        values = line.values(y)
        unknowns = {name: values[name] for name in self.names}
        place = ", ".join(f"{name} = {values[name]:.6g}" for name in self.ranges)
        control = values[line.control]
        low, high = self.ranges[line.control]
        if how == EDGE or min(control - low, high - control) < 1e-3 * (high - low):
            reason = f"the edge at {place}"
        elif how == CROSSING:
            reason = f"{place}, where what leaves the crossing changes its stability"
        elif how == CLOSED:
            reason = f"itself, as a closed line, at {place}"
        elif line.kind == FIRST_ORDER and np.linalg.norm(
            _gap(y, line.family.names, line.equations, line.stated)
        ) < max(5 * self.largest, _MERGED):
            reason = f"{place}, where the two phases become one"
        else:
            reason = f"{place}, beyond which it has no solution or no value"
        return End(values[line.family.over], unknowns, reason)


def _point_and_tangent(line: _Followed, k: int, share: float) -> tuple[Array, Array]:
    y = between(line.equations, line.curve, k, share, line.curve.points[k + 1])
    return y, tangent(line.equations, y, line.curve.tangents[k])[0]


def _normalised(point: SpecialPoint, component: int) -> dict[str, float]:
    """Return first values in which another component of the null vector is one."""
    found = dict(point.start)
    names = point.condition.components
    # Where two phases have one free energy there is no null vector.
    for kind in ("direction", "weight") if names else ():
        unit = found.get(f"{kind}_{names[component]}")
        if unit:
            for name in names:
                found[f"{kind}_{name}"] /= unit
    return found


def _pairs(names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of an unknown and its copy in the other phase."""
    return [
        (k, names.index(f"{name}_other"))
        for k, name in enumerate(names)
        if f"{name}_other" in names
    ]


def _exchanged(y: Array, names: Sequence[str]) -> Array:
    found = y.copy()
    for a, b in _pairs(names):
        found[[a, b]] = y[[b, a]]
    return found


def _gap(y: Array, names: Sequence[str], equations: Equations, stated: Stated) -> Array:
    """Return by how much two phases differ, of which one may be at ends of unknowns."""
    sizes = dict(zip(names, equations.sizes(y), strict=False))
    values = dict(zip(names, y, strict=False))
    one = {**stated.held, **values}
    other = {f"{name}_other": x for name, x in stated.held_other.items()} | values
    found = [
        (one[name] - other[f"{name}_other"]) / sizes.get(name, sizes.get(f"{name}_other"))
        for name in one
        if f"{name}_other" in other and (name in sizes or f"{name}_other" in sizes)
    ]
    return np.array(found)


def _merged(
    names: Sequence[str], equations: Equations, stated: Stated, first: Array, y: Array
) -> bool:
    """Tell whether two phases have come together, or exchanged their places."""
    gap, before = (_gap(x, names, equations, stated) for x in (y, first))
    return float(gap @ before) <= _MERGED * float(np.linalg.norm(before))


def _unfolded(names: Sequence[str], equations: Equations, y: Array) -> bool:
    """Tell whether branches no longer cross: the unfolding of their crossing does not vanish."""
    unfoldings = [x for name, x in zip(names, y, strict=False) if name.startswith("unfolding")]
    return bool(np.abs(unfoldings).max() > _UNFOLDED)


def different(
    points: Sequence[CriticalPoint], x: tuple[str, float, float], y: tuple[str, float, float]
) -> tuple[CriticalPoint, ...]:
    """Return points without those that lie where an earlier one does, in shares of the axes."""
    kept: list[CriticalPoint] = []
    for p in points:
        near = (
            abs(p.x - other.x) < 1e-6 * (x[2] - x[1]) and abs(p.y - other.y) < 1e-6 * (y[2] - y[1])
            for other in kept
        )
        if not any(near):
            kept.append(p)
    return tuple(kept)


def phase_diagram(
    kernel: Kernel,
    x: tuple[str, float, float],
    y: tuple[str, float, float],
    /,
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    zeros: str | Sequence[str] = (),
    extremum: str | Mapping[str, str] | None = None,
    starts: int | None = None,
    points: int = 100,
    cuts: int = 3,
    data: Mapping[str, Any] | None = None,
    rtol: float = 1e-11,
    **parameters: Any,
) -> PhaseDiagram:
    """Return lines of transitions over two parameters.

    Special points of some cuts through the plane, those of :meth:`branches`, are followed as
    solutions of larger systems; nothing is scanned.

    Parameters
    ----------
    x, y : (str, float, float)
        Names of two parameters with their ranges: ``("alpha", 0, 2), ("beta", 1, 4)``.
    bounds, zeros, extremum, starts, points, data, rtol
        As for :meth:`branches`.
    cuts : int
        So many cuts at constant y, and at constant x; a line that none of them crosses is not
        found.
    **parameters
        The others, by name; numbers.

    Returns
    -------
    PhaseDiagram
        With ``lines``, ``critical_points``, ``tricritical_points`` and ``plot()``.

    Raises
    ------
    ParameterError, StructureError
        As for :meth:`branches`.

    Notes
    -----
    Along a line of first-order transitions the two phases are followed wherever they exist:
    beyond a triple point it goes on between phases that a third one lies below.

    Examples
    --------
    The spinodals of the magnet of Curie and Weiss meet at β = 1, h = 0:

    >>> import sympy as sp
    >>> import giantstep as gs
    >>> m, h = sp.symbols("m h", real=True)
    >>> beta = sp.Symbol("beta", positive=True)
    >>> magnet = gs.SaddlePointSystem.from_fixed_point(
    ...     {m: sp.tanh(beta * (m + h))}, name="magnet", parameters=(beta, h)
    ... )
    >>> plane = gs.lower(magnet).phase_diagram(
    ...     ("h", -0.5, 0.5), ("beta", 0.5, 2.5), bounds={"m": (-1, 1)}
    ... )
    >>> critical = plane.critical_points[0]
    >>> print(f"{abs(critical.x):.8f} {critical.y:.8f}")
    0.00000000 1.00000000
    """
    axes = []
    for word, axis in (("x", x), ("y", y)):
        if not isinstance(axis, tuple | list) or len(axis) != 3 or not isinstance(axis[0], str):
            raise ParameterError(
                f"{word} must be a parameter with its range, such as ('alpha', 0, 2), got {axis!r}"
            )
        axes.append((axis[0], *numbers_of(axis[1:], f"the range of {axis[0]}")))
    across, up = axes
    if across[0] == up[0]:
        raise ParameterError(f"x and y must be two parameters, got {across[0]} twice")
    options = checked_options(kernel, zeros, extremum, starts, points)
    rtol = positive_number("rtol", rtol)
    ranges = {name: (low, high) for name, low, high in axes}
    plane = Plane(dict(parameters), ranges, points, options[2])
    meanings: dict[str, None] = {}
    for name, other in ((across[0], up[0]), (up[0], across[0])):
        inner = np.linspace(*ranges[other], whole_number("cuts", cuts) + 2)[1:-1]
        for value in inner.tolist():
            cut = Family(
                kernel=kernel,
                over=name,
                within=ranges[name],
                parameters={**parameters, other: value},
                bounds=checked_bounds(bounds),
                data=data,
                rtol=rtol,
            )
            for point in Search(cut, *options).special:
                plane.add(point, cut, other, value)
            meanings |= dict.fromkeys(cut.stability(options[2]).split("; "))
    found = list(plane.lines(across[0], up[0]))
    turns = different([p for _, _, points in found for p in points], across, up)
    cusps = different([*turns, *(p for _, points, _ in found for p in points)], across, up)
    return PhaseDiagram(
        name=kernel.name,
        title=kernel.title,
        x=across,
        y=up,
        parameters={name: float(value) for name, value in parameters.items()},
        lines=tuple(line for line, _, _ in found),
        # Spinodals have a cusp at a tricritical point, too.
        critical_points=cusps[len(turns) :],
        tricritical_points=turns,
        unknowns=plane.names,
        labels=dict(kernel.labels),
        stability="; ".join(meanings),
    )
