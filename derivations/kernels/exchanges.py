"""First-order transitions: two phases whose free energies cross."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...numeric.branches import corrected, zero_between
from ...symbolic.branch_conditions import Condition
from .branches import FIRST_ORDER, Branch, SpecialPoint
from .families import VALUE

if TYPE_CHECKING:
    from .branch_search import Search

Array = NDArray[np.float64]

# Relative differences of free energies below this are rounding: such phases are copies.
_COPIES = 1e-9
# Of the points of two phases, so many for one at which their free energies are compared.
_THINNED = 4
# How far, in steps, a solution may be from the line between its neighbours on a branch.
_NEAR = 5.0


@dataclass(frozen=True, eq=False)
class _Phase:
    """A part of a branch on which the parameter is monotone, of one stability if it is known."""

    branch: Branch
    part: slice
    stable: bool | None

    @property
    def parameter(self) -> Array:
        return self.branch.parameter[self.part]

    def holds(self, value: float) -> bool:
        return bool(self.parameter.min() <= value <= self.parameter.max())


@dataclass(frozen=True, eq=False)
class Exchanges:
    """Where phases exchange their order.

    Attributes
    ----------
    search : Search
        With its branches.
    """

    search: Search

    def points(self) -> list[SpecialPoint]:
        """Return all exchanges; none without a free energy."""
        if self.search.family.open.free_energy is None:
            return []
        phases = self._phases()
        return [
            point
            for one, other in itertools.combinations(phases, 2)
            for low, high in self._exchanges(one, other)
            if (point := self._first_order(one, other, low, high, phases)) is not None
        ]

    def _phases(self) -> list[_Phase]:
        """Return the parts of branches of one stability on which the parameter is monotone."""
        found = []
        for branch in self.search.branches:
            for part, stable in branch.runs():
                steps = np.sign(np.diff(branch.parameter[part]))
                cuts = [0, *(np.flatnonzero(steps[1:] * steps[:-1] < 0) + 1).tolist(), len(steps)]
                for first, last in itertools.pairwise(cuts):
                    if last > first:
                        own = slice(part.start + first, part.start + last + 1)
                        found.append(_Phase(branch, own, stable))
        return found

    def _near_phase(self, phase: _Phase, values: Array) -> Array:
        """Return unknowns and parameter (N, n + 1) of a phase near given values."""
        p = phase.parameter
        order = np.argsort(p, kind="stable")
        found = [
            np.interp(values, p[order], phase.branch.unknowns[name][phase.part][order])
            for name in self.search.family.names
        ]
        return np.stack([*found, values], axis=1)

    def _on_phase(self, phase: _Phase, values: Array) -> tuple[Array, Array, Array]:
        """Return points of a phase at given values, their free energies and errors of these."""
        near = self._near_phase(phase, values)
        fixed = np.zeros((len(near), 1, near.shape[1]))
        fixed[:, 0, -1] = 1.0
        equations = self.search.on_face(phase.branch.zeros)
        points, good, _ = corrected(equations, near, fixed, most=20)
        # Next to its end a phase may lead to another solution.
        moved = np.max(np.abs(points - near) / self.search.equations.sizes(near), axis=1)
        good &= moved <= _NEAR * self.search.largest
        batch = self.search.family.described(points)
        return points, np.where(good, batch.values[VALUE], np.nan), batch.errors[VALUE]

    def _exchanges(self, one: _Phase, other: _Phase) -> Iterator[tuple[float, float]]:
        """Iterate over intervals in which the free energies of two phases change their order."""
        grids = [one.parameter, other.parameter]
        low = max(grid.min() for grid in grids)
        high = min(grid.max() for grid in grids)
        if not low < high:
            return
        values = np.unique(np.concatenate(grids))
        values = values[(values >= low) & (values <= high)]
        values = np.append(values[:-1:_THINNED], values[-1])
        first, second = (self._on_phase(phase, values)[1] for phase in (one, other))
        gap = first - second
        gap[~(np.abs(gap) > _COPIES * (1 + np.abs(first)))] = 0
        there = np.flatnonzero(gap)
        for a, b in itertools.pairwise(there):
            if gap[a] * gap[b] < 0:
                yield float(values[a]), float(values[b])

    def _first_order(
        self, one: _Phase, other: _Phase, low: float, high: float,
        phases: Sequence[_Phase],
    ) -> SpecialPoint | None:  # fmt: skip
        family = self.search.family

        def on(phase: _Phase, value: float) -> tuple[Array, float, float]:
            points, values, errors = self._on_phase(phase, np.array([value]))
            return points[0], float(values[0]), float(errors[0])

        def gap(share: float) -> float:
            value = low + share * (high - low)
            return on(one, value)[1] - on(other, value)[1]

        share = zero_between(gap)
        if share is None:
            return None
        value = low + share * (high - low)
        (y, here, error), (opposite, _, more) = on(one, value), on(other, value)
        margin = 1e-6 * (1 + abs(here))
        rivals = []
        for phase in phases:
            if phase is one or phase is other or not phase.holds(value):
                continue
            ahead = here - on(phase, value)[1]
            if (ahead if self.search.extremum.prefers_low else -ahead) > margin:
                rivals.append(phase)
        if any(phase.branch.zeros and phase.stable is False for phase in (one, other)):
            # What vanishes grows: such a phase is left before its free energy tells.
            return None
        if rivals and not (one.stable and other.stable and not any(r.stable for r in rivals)):
            # Two phases that exchange their order behind a third one: no transition.
            return None
        error = (error + more) * (high - low) / abs(gap(1.0) - gap(0.0))
        condition = Condition(
            family.open,
            "coexistence",
            zeros=self.search.symbols(one.branch.zeros),
            zeros_other=self.search.symbols(other.branch.zeros),
        )
        return self.search.point(FIRST_ORDER, y, error, condition, {}, opposite)
