"""The map and the flow of overlaps as programs: which average stands where.

State: entries of Q on and above the diagonal, of M, and a, in this order. Averages that have no
closed form are places that :mod:`.quadrature` fills before the program runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sympy as sp

from ...errors import GiantstepError
from ...symbolic.expressions.activations import Activation
from ...symbolic.lowering.maps import Memory, Pass, SemidefiniteSolve, StateProgram
from . import physics
from .physics import Factor

MAP_PARAMETERS = (
    "step_size", "second_layer_step", "weight_decay", "noise_variance", "sampling", "pairs",
)  # fmt: skip
FLOW_PARAMETERS = ("second_layer_rate", "decay_rate", "noise_variance", "sampling_rate")
_SYMBOLS = {
    "step_size": physics.step_size, "second_layer_step": physics.second_step,
    "weight_decay": physics.weight_decay, "noise_variance": physics.noise,
    "sampling": physics.sampling, "pairs": physics.pairs,
    "second_layer_rate": physics.second_rate, "decay_rate": physics.decay_rate,
    "sampling_rate": physics.sampling_rate,
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A part of the error: a neuron, or a term of the teacher.

    Attributes
    ----------
    factor : Factor
    coefficient : float or int
        Of a term of the teacher; of a neuron its number, whose readout with a minus it is.
    """

    factor: Factor
    coefficient: float | int

    @property
    def is_neuron(self) -> bool:
        """Whether it is a part of the student."""
        return isinstance(self.coefficient, int)


@dataclass(frozen=True)
class Average:
    """An average of a product of factors that the program adds up or needs by itself.

    Attributes
    ----------
    name : tuple
        ("A", j, r, c), ("S", j, l, c, c'), ("J", j, l), ("E", c, c'), with c numbers of parts.
    factors : tuple of Factor
    """

    name: tuple[str | int, ...]
    factors: tuple[Factor, ...]


@dataclass(frozen=True)
class OverlapSystem:
    """What is learned by what, without numbers.

    Attributes
    ----------
    student : Activation
    terms : tuple of (Factor, float)
        Terms of the teacher with coefficients; fields are numbers of its directions.
    neurons, directions : int
        p and K.
    """

    student: Activation
    terms: tuple[tuple[Factor, float], ...]
    neurons: int
    directions: int

    @property
    def fields(self) -> int:
        """p + K."""
        return self.neurons + self.directions

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The error's parts, neurons first."""
        p = self.neurons
        own = [Part(physics.of_student(self.student, j), j) for j in range(p)]
        return (
            *own,
            *(
                Part(Factor(f.function, f.variables, tuple(p + k for k in f.fields)), c)
                for f, c in self.terms
            ),
        )

    @cached_property
    def smooth(self) -> bool:
        """Whether averages are analytic where fields coincide."""
        return physics.is_smooth([
            self.student.expr, self.student.derivative, *(f.function for f, _ in self.terms)
        ])  # fmt: skip

    @cached_property
    def state(self) -> tuple[str, ...]:
        """Names of the variables."""
        p, k = self.neurons, self.directions
        return (
            *(f"Q_{i + 1}_{j + 1}" for i, j in self.neuron_pairs),
            *(f"M_{i + 1}_{j + 1}" for i in range(p) for j in range(k)),
            *(f"a_{i + 1}" for i in range(p)),
        )

    @property
    def neuron_pairs(self) -> list[tuple[int, int]]:
        """Places of Q on and above the diagonal, in their order."""
        return list(itertools.combinations_with_replacement(range(self.neurons), 2))

    def averages(self, kind: str) -> Iterator[Average]:
        """Yield the averages of a kind: "A", "S", "J" or "E"."""
        p, parts = self.neurons, self.parts
        slope = [physics.of_student(self.student, j, slope=True) for j in range(p)]
        if kind == "A":
            for j, r, c in itertools.product(range(p), range(self.fields), range(len(parts))):
                yield Average(("A", j, r, c), (slope[j], physics.field_itself(r), parts[c].factor))
        elif kind == "J":
            for j, m in self.neuron_pairs:
                yield Average(("J", j, m), (slope[j], slope[m]))
        else:
            both = itertools.combinations_with_replacement(range(len(parts)), 2)
            for c, d in both:
                pair = (parts[c].factor, parts[d].factor)
                if kind == "E":
                    yield Average(("E", c, d), pair)
                    continue
                for j, m in self.neuron_pairs:
                    yield Average(("S", j, m, c, d), (slope[j], slope[m], *pair))

    def is_closed(self, kind: str) -> bool:
        """Tell whether the averages of a kind have closed forms."""
        kinds = {self._form(average) for average in self.averages(kind)}
        try:
            for functions, numbers in sorted(kinds, key=str):
                physics.closed_average(functions, numbers)
        except GiantstepError:
            # No rule, or one that needs to know more of the covariance.
            return False
        return True

    def pattern(self, average: Average) -> tuple[tuple[int, ...], list[int]]:
        """Return which fields of an average are one, and which fields these are."""
        whole = range(self.neurons if self.smooth else 0, self.fields)
        return physics.pattern(average.factors, whole)

    def _form(
        self, average: Average
    ) -> tuple[tuple[tuple[sp.Expr, tuple[sp.Symbol, ...]], ...], tuple[int, ...]]:
        numbers, _ = self.pattern(average)
        return tuple(f.kind for f in average.factors), numbers

    def growth_matrix(
        self, own: Sequence[Sequence[float]], readout: Sequence[float]
    ) -> tuple[sp.Matrix, sp.Matrix]:
        r"""Return :math:`\partial A_u/\partial M` and :math:`A_u` at M = 0, exactly.

        Parameters
        ----------
        own : matrix
            Q; a float is the fraction it stands for.
        readout : sequence of float

        Raises
        ------
        ClosedFormNotFoundError
            If there is no closed form.
        """
        p, k = self.neurons, self.directions
        exact = [[sp.nsimplify(x, rational=True) for x in row] for row in own]
        a = [sp.nsimplify(x, rational=True) for x in readout]

        def entry(i: int, j: int) -> sp.Expr:
            i, j = min(i, j), max(i, j)
            return exact[i][j] if j < p else sp.Integer(int(i == j))

        matrix, gradient = sp.zeros(p * k, p * k), sp.zeros(p, k)
        for average in self.averages("A"):
            _, j, r, c = average.name
            assert isinstance(j, int) and isinstance(r, int) and isinstance(c, int)
            if r < p:
                continue
            part = self.parts[c]
            weight = a[j] * (
                -a[part.coefficient]  # type: ignore[index]
                if part.is_neuron
                else sp.nsimplify(part.coefficient, rational=True)
            )
            numbers, order = self.pattern(average)
            value = physics.closed_average(tuple(f.kind for f in average.factors), numbers)
            both = itertools.combinations_with_replacement(range(len(order)), 2)
            at = {physics.covariance(i, m): (order[i], order[m]) for i, m in both}
            numbers_at = {x: entry(*place) for x, place in at.items()}
            row = j * k + r - p
            gradient[j, r - p] += weight * value.subs(numbers_at)
            for x in value.free_symbols:
                low, high = sorted(at[x])
                if low < p <= high:
                    slope = weight * value.diff(x).subs(numbers_at)
                    matrix[row, low * k + high - p] += slope
        return matrix, gradient

    def exact_gradients(
        self, own: sp.Matrix, teacher: sp.Matrix, readout: Sequence[Any]
    ) -> tuple[list[sp.Expr], sp.Expr]:
        """Return all entries of A and the error at exact overlaps.

        Raises
        ------
        ClosedFormNotFoundError
            If there is no closed form.
        """
        p = self.neurons

        def entry(i: int, j: int) -> sp.Expr:
            i, j = min(i, j), max(i, j)
            if j < p:
                return own[i, j]
            return teacher[i, j - p] if i < p else sp.Integer(int(i == j))

        def at(average: Average) -> sp.Expr:
            functions, numbers = self._form(average)
            _, order = self.pattern(average)
            both = itertools.combinations_with_replacement(range(len(order)), 2)
            values = {physics.covariance(i, m): entry(order[i], order[m]) for i, m in both}
            return physics.closed_average(functions, numbers).subs(values)

        weights = [
            -sp.sympify(readout[part.coefficient], strict=True)  # type: ignore[index]
            if part.is_neuron
            else sp.nsimplify(part.coefficient, rational=True)
            for part in self.parts
        ]
        sums: dict[tuple[Any, ...], sp.Expr] = {}
        for average in self.averages("A"):
            _, j, r, c = average.name
            value = readout[j] * weights[c] * at(average)  # type: ignore[index]
            sums[j, r] = sums.get((j, r), sp.S.Zero) + value
        error = sp.S.Zero
        for average in self.averages("E"):
            _, c, d = average.name
            error += (1 + (c != d)) * weights[c] * weights[d] * at(average)  # type: ignore[index]
        return list(sums.values()), error

    def program(self, kind: str, quadrature: Sequence[str] = ()) -> Layout:
        """Return the program of the map or the flow.

        Parameters
        ----------
        kind : {"map", "flow"}
        quadrature : sequence of str
            Kinds of averages whose sums are filled in from outside.
        """
        return _Builder(self, kind, tuple(quadrature)).layout()


@dataclass(frozen=True)
class Layout:
    """A program with the places that are filled from outside.

    Attributes
    ----------
    program : StateProgram
    given : mapping from str to tuple of int
        Places of sums by the name of their kind: "S" and "J" over pairs of neurons, "A" over
        neurons and fields, "E" over pairs of parts.
    first_sums : tuple of int
        Places of A, so that a linearisation finds them.
    """

    program: StateProgram
    given: Mapping[str, tuple[int, ...]]
    first_sums: tuple[int, ...]


@dataclass
class _Builder:
    system: OverlapSystem
    kind: str
    quadrature: tuple[str, ...]
    memory: Memory = field(init=False)

    def __post_init__(self) -> None:
        names = MAP_PARAMETERS if self.kind == "map" else FLOW_PARAMETERS
        self.memory = Memory((*self.system.state, *names))
        first = len(self.system.state)
        self.parameters = {_SYMBOLS[name]: first + k for k, name in enumerate(names)}
        self.place = {name: k for k, name in enumerate(self.system.state)}

    # ------------------------------------------------------------------ places

    def overlap(self, i: int, j: int) -> int:
        """Place of an entry of C."""
        p = self.system.neurons
        i, j = min(i, j), max(i, j)
        if j < p:
            return self.place[f"Q_{i + 1}_{j + 1}"]
        if i < p:
            return self.place[f"M_{i + 1}_{j - p + 1}"]
        return self.memory.constant(float(i == j))

    def readout(self, j: int) -> int:
        return self.place[f"a_{j + 1}"]

    # ------------------------------------------------------------------ the program

    def layout(self) -> Layout:
        system, memory = self.system, self.memory
        p, m = system.neurons, system.fields
        pairs = system.neuron_pairs
        self.coefficients()
        first = self.sums("A", p * m, lambda a: a.name[1] * m + a.name[2])  # type: ignore[operator]
        count = {pair: k for k, pair in enumerate(pairs)}
        squares = self.sums("S", len(pairs), lambda a: count[a.name[1], a.name[2]])  # type: ignore[index]
        slopes = self.sums("J", len(pairs), lambda a: count[a.name[1], a.name[2]])  # type: ignore[index]
        errors = self.errors()
        noisy = memory.block(len(pairs))
        a, b = physics.gradient, physics.reverse
        arguments = (a, b, physics.overlap, physics.other, physics.noise)
        memory.steps.append(Pass(physics.squared_gradients(), arguments, tuple(
            (noisy + k, self.readout(i), self.readout(j), squares + k, slopes + k,
             self.parameters[physics.noise])
            for k, (i, j) in enumerate(pairs)
        )))  # fmt: skip
        drift = self.drift(first) if self.kind == "map" else None
        forces = self.readout_forces(errors["V"])
        values = self.moved(first, noisy, drift, forces)
        outputs = {"error": errors["total"]}
        if drift is not None:
            outputs["dependent"] = drift[1]
        program = memory.program(
            name=f"overlap_{self.kind}", kind=self.kind, state=len(system.state), values=values,
            outputs=outputs,
        )  # fmt: skip
        sizes = {"A": (first, p * m), "S": (squares, len(pairs)), "J": (slopes, len(pairs))}
        given = {
            name: tuple(range(start, start + size))
            for name, (start, size) in sizes.items()
            if name in self.quadrature
        }
        if "E" in self.quadrature:
            given["E"] = errors["places"]
        return Layout(program, given, tuple(range(first, first + p * m)))

    def coefficients(self) -> None:
        """Coefficients of the error's parts, and products of two with their multiplicity."""
        memory, x, y = self.memory, physics.overlap, physics.other
        neurons = self.system.neurons
        first = memory.block(neurons)
        memory.steps.append(
            Pass(-x, (x,), tuple((first + j, self.readout(j)) for j in range(neurons)))
        )
        self.part = [
            first + part.coefficient  # type: ignore[operator]
            if part.is_neuron
            else memory.constant(float(part.coefficient))
            for part in self.system.parts
        ]
        count = len(self.part)
        both = list(itertools.combinations_with_replacement(range(count), 2))
        start = memory.block(len(both))
        self.product = {pair: start + k for k, pair in enumerate(both)}
        two = sp.Symbol("Z", real=True)
        once, twice = memory.constant(1.0), memory.constant(2.0)
        memory.steps.append(Pass(two * x * y, (two, x, y), tuple(
            (self.product[c, d], once if c == d else twice, self.part[c], self.part[d])
            for c, d in both
        )))  # fmt: skip

    def sums(self, kind: str, size: int, target: object) -> int:
        """Add up the averages of a kind; return the first place of the sums."""
        memory = self.memory
        first = memory.block(size)
        if kind in self.quadrature:
            return first
        memory.clear(first, size)
        weight = sp.Symbol("W", real=True)
        unit = memory.constant(1.0)
        forms: dict[object, list[tuple[int, ...]]] = {}
        for average in self.system.averages(kind):
            name = average.name
            if kind == "A":
                factor = self.part[name[3]]  # type: ignore[index]
            else:
                factor = self.product[name[3], name[4]] if kind == "S" else unit  # type: ignore[index]
            row = (first + target(average), factor)  # type: ignore[operator]
            forms.setdefault(self.system._form(average), []).append((*row, *self.places(average)))
        for (functions, numbers), rows in forms.items():  # type: ignore[misc]
            value = physics.closed_average(functions, numbers)
            self.add(weight * value, numbers, rows, weight, adds=True)
        if kind == "A":
            # A neuron's readout in front of its sum, not of each term.
            x, y = physics.overlap, physics.other
            m = self.system.fields
            scaled = memory.block(size)
            memory.steps.append(Pass(x * y, (x, y), tuple(
                (scaled + k, first + k, self.readout(k // m)) for k in range(size)
            )))  # fmt: skip
            return scaled
        return first

    def places(self, average: Average) -> tuple[int, ...]:
        _, order = self.system.pattern(average)
        return tuple(
            self.overlap(order[i], order[j])
            for i in range(len(order))
            for j in range(i, len(order))
        )

    def add(
        self, value: sp.Expr, numbers: tuple[int, ...], rows: list[tuple[int, ...]],
        weight: sp.Symbol | None, *, adds: bool,
    ) -> None:  # fmt: skip
        count = max(numbers, default=-1) + 1
        symbols = [physics.covariance(i, j) for i in range(count) for j in range(i, count)]
        named = symbols if weight is None else [weight, *symbols]
        used = [k for k, x in enumerate(named) if x in value.free_symbols]
        arguments = tuple(named[k] for k in used)
        table = tuple((row[0], *(row[k + 1] for k in used)) for row in rows)
        self.memory.steps.append(Pass(value, arguments, table, adds))

    def errors(self) -> dict[str, object]:
        """Averages of products of two parts, the error from them, and V."""
        memory, x, y = self.memory, physics.overlap, physics.other
        total = memory.block(1)
        forces = memory.block(self.system.neurons)
        places = {}
        forms: dict[object, list[tuple[int, ...]]] = {}
        first = memory.block(len(self.product))
        for k, average in enumerate(self.system.averages("E")):
            places[average.name[1:]] = first + k
            forms.setdefault(self.system._form(average), []).append(
                (first + k, *self.places(average))
            )
        if "E" not in self.quadrature:
            for (functions, numbers), rows in forms.items():  # type: ignore[misc]
                value = physics.closed_average(functions, numbers)
                self.add(value, numbers, rows, None, adds=False)
        memory.clear(total, 1 + self.system.neurons)
        rows = tuple((total, self.product[pair], places[pair]) for pair in self.product)
        memory.steps.append(Pass(x * y, (x, y), rows, adds=True))
        rows = tuple(
            (forces + j, self.part[c], places[min(j, c), max(j, c)])
            for j in range(self.system.neurons)
            for c in range(len(self.part))
        )
        memory.steps.append(Pass(x * y, (x, y), rows, adds=True))
        return {"total": total, "V": forces, "places": tuple(places.values())}

    def drift(self, first: int) -> tuple[int, int]:
        """Scalar products of population gradients, and the number of dependent fields."""
        memory, p, m = self.memory, self.system.neurons, self.system.fields
        solution, factor, dropped = memory.block(m * p), memory.block(m * m), memory.block(1)
        memory.steps.append(SemidefiniteSolve(
            # The teacher's fields first: what depends on them is a neuron.
            matrix=tuple(
                tuple(self.overlap(i, j) for j in reversed(range(m))) for i in reversed(range(m))
            ),
            right=tuple(tuple(first + j * m + i for j in range(p)) for i in reversed(range(m))),
            solution=tuple(
                tuple(solution + j * m + i for j in range(p)) for i in reversed(range(m))
            ),
            factor=factor,
            dropped=dropped,
        ))  # fmt: skip
        pairs = self.system.neuron_pairs
        found = memory.block(len(pairs))
        memory.clear(found, len(pairs))
        x, y = physics.overlap, physics.other
        rows = tuple(
            (found + k, first + i * m + r, solution + j * m + r)
            for k, (i, j) in enumerate(pairs)
            for r in range(m)
        )
        memory.steps.append(Pass(x * y, (x, y), rows, adds=True))
        return found, dropped

    def readout_forces(self, first: object) -> int:
        assert isinstance(first, int)
        return first

    def moved(
        self, first: int, noisy: int, drift: tuple[int, int] | None, forces: int
    ) -> list[int]:
        """Return places of the values: the next state, or the velocity."""
        rules = physics.step_rules() if self.kind == "map" else physics.flow_rules()
        p, m = self.system.neurons, self.system.fields
        pairs = self.system.neuron_pairs
        start = self.memory.block(len(self.system.state))
        x, a, b = physics.overlap, physics.gradient, physics.reverse
        places = {
            "self": [
                {
                    x: self.overlap(i, j), a: first + i * m + j, b: first + j * m + i,
                    physics.squares: noisy + k,
                    physics.drift: drift[0] + k if drift else 0,
                }
                for k, (i, j) in enumerate(pairs)
            ],
            "teacher": [
                {x: self.overlap(i, p + k), a: first + i * m + p + k}
                for i in range(p)
                for k in range(self.system.directions)
            ],
            "readout": [{x: self.readout(i), a: forces + i} for i in range(p)],
        }  # fmt: skip
        target = start
        for name, table in places.items():
            rule = getattr(rules, name)
            symbols = tuple(sorted(rule.free_symbols, key=str))
            rows = tuple(
                (target + k, *({**self.parameters, **row}[s] for s in symbols))
                for k, row in enumerate(table)
            )
            self.memory.steps.append(Pass(rule, symbols, rows))
            target += len(table)
        return list(range(start, target))
