"""Averages without closed form, by rules over the fields that they hold, on two grids.

The finer grid is the answer; its distance from the coarser one, relative to the largest average of
its kind, is the estimated error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ...numeric.nested_grids import nested_grid
from ...symbolic.expressions.activations import Activation, z
from ...symbolic.printing.compiled import compiled
from .physics import Factor
from .system import Average, OverlapSystem

Array = NDArray[np.float64]

# Points of a grid; nodes on a line, at most and at least, and how many fewer the coarser grid has.
_POINTS = 2_000_000
_MOST, _LEAST = 81, 15
_COARSER = 0.8
# So many fields are taken together on one grid.
_MOST_TOGETHER = 4


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Fills sums of averages into the memory of a program.

    Attributes
    ----------
    system : OverlapSystem
    places : mapping from str to tuple of int
        Where sums stand, by kind.
    """

    system: OverlapSystem
    places: Mapping[str, tuple[int, ...]]

    def __post_init__(self) -> None:
        most = max(len(fields) for fields, _ in self._sets)
        if _nodes(most) < _LEAST:
            raise ParameterError(
                f"averages of {self.system.student} have no closed form, and hold {most} fields at "
                "once, too many for quadrature; take a teacher of fewer directions in a term, or a "
                "student with closed forms: erf, a polynomial"
            )

    def _kinks(self, field: int) -> tuple[float, ...]:
        if field < self.system.neurons:
            return tuple(float(k) for k in self.system.student.kinks)
        found: set[float] = set()
        for factor, _ in self.system.terms:
            if factor.fields == (field - self.system.neurons,):
                (variable,) = factor.variables
                single = Activation("term", factor.function.xreplace({variable: z}))
                found |= {float(k) for k in single.kinks}
        return tuple(sorted(found))

    @cached_property
    def _sets(self) -> list[tuple[tuple[int, ...], list[Average]]]:
        """Averages by the fields of the grid that they are taken on."""
        wanted = [a for kind in self.places for a in self.system.averages(kind)]
        every = tuple(range(self.system.fields))
        if _MOST_TOGETHER >= len(every):
            return [(every, wanted)]
        groups: dict[tuple[int, ...], list[Average]] = {}
        for average in wanted:
            fields = tuple(sorted({f for factor in average.factors for f in factor.fields}))
            groups.setdefault(fields, []).append(average)
        # A set inside another one is taken on that grid.
        found: dict[tuple[int, ...], list[Average]] = {}
        for fields in sorted(groups, key=len, reverse=True):
            home = next((known for known in found if set(fields) <= set(known)), fields)
            found.setdefault(home, []).extend(groups[fields])
        return list(found.items())

    @cached_property
    def _functions(self) -> dict[Any, Callable[..., Array]]:
        kinds = {f.kind for _, averages in self._sets for a in averages for f in a.factors}
        return {
            (function, variables): compiled(function, variables, "numpy")
            for function, variables in kinds
        }

    def averages(self, covariance: Array, share: float = 1.0) -> dict[tuple[Any, ...], float]:
        """Return every average by name at a covariance of all fields.

        Parameters
        ----------
        covariance : array
        share : float
            Of the nodes on each line.
        """
        found: dict[tuple[Any, ...], float] = {}
        for fields, averages in self._sets:
            nodes = round(share * _nodes(len(fields)))
            grid = nested_grid(
                covariance[np.ix_(fields, fields)], [self._kinks(f) for f in fields], nodes
            )
            points = dict(zip(fields, grid[:-1], strict=True))
            known: dict[Factor, Array] = {}
            with np.errstate(all="ignore"):
                for average in averages:
                    product = grid[-1]
                    for factor in average.factors:
                        if factor not in known:
                            function = self._functions[factor.kind]
                            known[factor] = function(*(points[f] for f in factor.fields))
                        product = product * known[factor]
                    found[average.name] = float(np.sum(product))
        return found

    def __call__(self, memory: Array) -> float:
        """Fill the sums in; return the estimated relative error."""
        system = self.system
        count = len(system.state)
        covariance, readout = state_matrices(system, memory[:count])
        fine, coarse = (self.averages(covariance, share) for share in (1.0, _COARSER))
        coefficients = np.array([
            -readout[part.coefficient] if part.is_neuron else part.coefficient  # type: ignore[index]
            for part in system.parts
        ])  # fmt: skip
        errors = [0.0]
        for kind, places in self.places.items():
            sums = [self._sums(kind, values, coefficients, readout) for values in (fine, coarse)]
            memory[list(places)] = sums[0]
            largest = float(np.max(np.abs(sums[0])))
            if largest:
                errors.append(float(np.max(np.abs(sums[0] - sums[1]))) / largest)
        return max(errors)

    def _sums(
        self, kind: str, values: Mapping[tuple[Any, ...], float], coefficients: Array,
        readout: Array,
    ) -> Array:  # fmt: skip
        system, m = self.system, self.system.fields
        pairs = {pair: k for k, pair in enumerate(system.neuron_pairs)}
        if kind == "E":
            return np.array([values[a.name] for a in system.averages("E")])
        found = np.zeros(system.neurons * m if kind == "A" else len(pairs))
        for name, value in values.items():
            if name[0] != kind:
                continue
            if kind == "A":
                found[name[1] * m + name[2]] += coefficients[name[3]] * readout[name[1]] * value
            elif kind == "J":
                found[pairs[name[1], name[2]]] = value
            else:
                both = coefficients[name[3]] * coefficients[name[4]]
                found[pairs[name[1], name[2]]] += (1 + (name[3] != name[4])) * both * value
        return found


def _nodes(fields: int) -> int:
    return min(_MOST, int(_POINTS ** (1 / max(fields, 1))))


def state_matrices(system: OverlapSystem, state: Array) -> tuple[Array, Array]:
    """Return the covariance of all fields and the readout of a state."""
    p, k = system.neurons, system.directions
    covariance = np.eye(p + k)
    pairs = system.neuron_pairs
    for value, (i, j) in zip(state, pairs, strict=False):
        covariance[i, j] = covariance[j, i] = value
    teacher = state[len(pairs) : len(pairs) + p * k].reshape(p, k)
    covariance[:p, p:], covariance[p:, :p] = teacher, teacher.T
    return covariance, state[-p:]
