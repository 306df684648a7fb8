r"""State a model of statistical physics by its free energy or its fixed-point equations.

The public entry of the pipeline from equations to kernels. A :class:`SaddlePointSystem` is made
from a free energy (:meth:`~SaddlePointSystem.from_free_energy`) or from fixed-point equations
(:meth:`~SaddlePointSystem.from_fixed_point`), both in SymPy with 𝔼 nodes; it gives equations,
LaTeX, block structure and Jacobian; :func:`giantstep.lower` makes a kernel of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from functools import cached_property
from typing import Any

import sympy as sp

from ..errors import ParameterError
from ..pages import Typeset
from .arguments import as_expression
from .equations import (
    REPLICON,
    Equation,
    FreeEnergy,
    matched,
    saddle_point_equations,
    stationarity,
)
from .structure import BlockStructure, block_structure
from .system_checks import check_free_energy, check_identifiers, check_system, code_names

__all__ = [
    "Equation",
    "FreeEnergy",
    "SaddlePointSystem",
    "saddle_point_equations",
    "stationarity",
]

# An assumption of our own: a parameter inside (-1, 1).
INSIDE = "inside"
# The outer Gaussian variable of kernels, unless a system names its own.
_NODE = sp.Symbol("z", real=True)


@dataclass(frozen=True)
class Coordinate:
    """A positive coordinate of an unknown that is inside an interval.

    Between two ends it is the odds ``(x - lower)/(upper - x)``, with one end the distance to it;
    Newton's method takes the logarithm of what is positive, and so runs over the whole line.

    Attributes
    ----------
    symbol, unknown : Symbol
    domain : Interval
    """

    symbol: sp.Symbol
    unknown: sp.Symbol
    domain: sp.Interval

    def of(self, x: sp.Expr) -> sp.Expr:
        """Return the coordinate of a value of the unknown."""
        lower, upper = self.domain.start, self.domain.end
        if upper == sp.oo:
            return x - lower
        return upper - x if lower == -sp.oo else (x - lower) / (upper - x)

    def at(self, t: sp.Expr) -> sp.Expr:
        """Return the unknown at a value of the coordinate."""
        lower, upper = self.domain.start, self.domain.end
        if upper == sp.oo:
            return lower + t
        return upper - t if lower == -sp.oo else (lower + upper * t) / (1 + t)

    @property
    def definition(self) -> Equation:
        """The equation that gives the unknown."""
        value = self.at(self.symbol)
        return Equation(self.unknown, value, self.unknown - value)

    def equation(self, given: Equation) -> Equation:
        """Return the equation of the unknown as one of the coordinate."""
        if given.value is None:
            return Equation(self.symbol, None, given.residual)
        value = self.of(given.value)
        return Equation(self.symbol, value, self.symbol - value)


@dataclass(frozen=True, eq=False)
class SaddlePointSystem(Typeset):
    r"""Equations that determine order parameters, with what is computed from them.

    Parameters
    ----------
    name : str
        An identifier; becomes the name of the kernel.
    equations : tuple of Equation
        One for each unknown.
    parameters : tuple of Symbol
        What the user sets. Their assumptions are their domains: a positive symbol takes positive
        numbers only.
    outputs : mapping from str to Expr
        Further quantities, in unknowns and parameters, with 𝔼 nodes.
    definitions : mapping from applied function to Expr
        Functions of `node` such as ``mu_0(kappa)`` with their meaning; they hold no unknowns.
    node : Symbol
        The Gaussian variable on which the functions of `definitions` depend.
    identifiers : mapping from Symbol to str
        Names in code; made from the symbols where none is given (λ → ``lambda_``).
    start : mapping from Symbol to Expr
        First values of Newton unknowns, in the parameters; by default 1 for a positive unknown and
        1/2 for another.
    source : str
        Where the equations are published, or how they were derived.
    title : str
        What the equations describe, one line.
    safeguarded : bool
        Whether Newton's method halves steps that do not help; see
        :class:`.lowering.program.Newton`.
    derived : mapping from Symbol to Expr
        Those of the parameters that follow from others, or are numbers, with their values. They
        are eliminated when the system is lowered: kernels and files take the others only.
    domains : mapping from Symbol to Interval
        Where unknowns can be, as ``Interval.open(0, 1)`` for an overlap, where their assumptions do
        not say it. Newton's method works in a coordinate that runs over the whole line there, and
        a solution outside is none.
    easier : Symbol, optional
        A positive parameter that makes the equations easier the larger it is, such as a ridge
        penalty or a temperature: solutions that Newton's method does not find are followed from
        there.
    free_energy : FreeEnergy or None
        What the equations are the stationarity conditions of, where they were made so.
    paired : bool
        Whether each equation stays with the unknown that it is given for, even if it does not hold
        it; by default a perfect matching finds which one determines which.
    varying : frozenset of Symbol
        Parameters that move as often as unknowns do: tables made beforehand do not hold them.
    tangent : bool
        Whether the equations are those of a system and derivatives of them, whose Jacobian is that
        of the system again: whether they determine their unknowns is not asked a second time.
    """

    name: str
    equations: tuple[Equation, ...]
    parameters: tuple[sp.Symbol, ...]
    outputs: Mapping[str, sp.Expr] = field(default_factory=dict)
    definitions: Mapping[sp.Expr, sp.Expr] = field(default_factory=dict)
    node: sp.Symbol = _NODE
    identifiers: Mapping[sp.Symbol, str] = field(default_factory=dict)
    start: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)
    source: str = ""
    title: str = ""
    safeguarded: bool = True
    derived: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)
    domains: Mapping[sp.Symbol, sp.Interval] = field(default_factory=dict)
    easier: sp.Symbol | None = None
    free_energy: FreeEnergy | None = None
    paired: bool = False
    varying: frozenset[sp.Symbol] = frozenset()
    tangent: bool = False

    def __post_init__(self) -> None:
        for name in ("outputs", "definitions", "start", "derived"):
            given = {k: as_expression(v, f"{name}[{k}]") for k, v in getattr(self, name).items()}
            object.__setattr__(self, name, given)
        check_system(self)
        if not self.paired:
            object.__setattr__(self, "equations", matched(self.equations))
        names = code_names((*self.parameters, *self.unknowns), self.identifiers)
        check_identifiers(names)
        object.__setattr__(self, "identifiers", names)

    @classmethod
    def from_free_energy(
        cls,
        free_energy: FreeEnergy,
        *,
        name: str,
        outputs: Mapping[str, sp.Expr] | None = None,
        node: sp.Symbol = _NODE,
        identifiers: Mapping[sp.Symbol, str] | None = None,
        start: Mapping[sp.Symbol, sp.Expr] | None = None,
        title: str = "",
        safeguarded: bool = True,
        derived: Mapping[sp.Symbol, sp.Expr] | None = None,
        domains: Mapping[sp.Symbol, sp.Interval] | None = None,
        easier: sp.Symbol | None = None,
    ) -> SaddlePointSystem:
        """Return the stationarity conditions of a free energy as a system.

        A free energy with single sites gives the output `replicon`, positive where replica
        symmetry is stable (unless `outputs` has one of that name).

        Raises
        ------
        StructureError
            If the free energy does not depend on one of its variables, its conditions do not
            determine them, or its single sites do not fit to it.
        """
        check_free_energy(free_energy)
        found = {REPLICON: free_energy.replicon()} if free_energy.single_sites else {}
        return cls(
            name=name,
            equations=saddle_point_equations(free_energy),
            parameters=free_energy.parameters,
            outputs=found | dict(outputs or {}),
            definitions=free_energy.definitions,
            node=node,
            identifiers=_mapping("identifiers", identifiers),
            start=_mapping("start", start),
            source=free_energy.source,
            title=title,
            safeguarded=safeguarded,
            derived=_mapping("derived", derived),
            domains=_mapping("domains", domains),
            easier=easier,
            free_energy=free_energy,
        )

    @classmethod
    def from_fixed_point(
        cls,
        equations: Mapping[sp.Symbol, sp.Expr],
        *,
        name: str,
        parameters: Sequence[sp.Symbol],
        outputs: Mapping[str, sp.Expr] | None = None,
        definitions: Mapping[sp.Expr, sp.Expr] | None = None,
        node: sp.Symbol = _NODE,
        identifiers: Mapping[sp.Symbol, str] | None = None,
        start: Mapping[sp.Symbol, sp.Expr] | None = None,
        source: str = "",
        title: str = "",
        safeguarded: bool = True,
        derived: Mapping[sp.Symbol, sp.Expr] | None = None,
        domains: Mapping[sp.Symbol, sp.Interval] | None = None,
        easier: sp.Symbol | None = None,
    ) -> SaddlePointSystem:
        """Return the system of ``unknown = value`` for each item of `equations`.

        Parameters
        ----------
        equations : mapping from Symbol to Expr or Eq
            Right-hand sides, which may hold the unknown itself; or an ``Eq`` that holds at the
            solution and need not be solved for anything.

        Examples
        --------
        >>> from giantstep.symbolic.gaussian import GaussianExpectation
        >>> q, beta = sp.symbols("q beta", positive=True)
        >>> z, h = sp.symbols("z h", real=True)
        >>> magnet = sp.tanh(beta * (sp.sqrt(q) * z + h))
        >>> system = SaddlePointSystem.from_fixed_point(
        ...     {q: GaussianExpectation(magnet**2, z)}, name="sk", parameters=(beta, h)
        ... )
        >>> print(system.structure)
        1 block: 1 unknown Newton {q}
        """
        found = []
        for x, value in equations.items():
            if not isinstance(x, sp.Symbol):
                raise ParameterError(
                    f"the keys of equations must be SymPy Symbols, the unknowns, got {x!r}"
                )
            if isinstance(value, sp.Equality):
                found.append(Equation(x, None, value.lhs - value.rhs))
            else:
                right = as_expression(value, f"equations[{x}]")
                found.append(Equation(x, right, x - right))
        return cls(
            name=name,
            equations=tuple(found),
            parameters=tuple(parameters),
            outputs=_mapping("outputs", outputs),
            definitions=_mapping("definitions", definitions),
            node=node,
            identifiers=_mapping("identifiers", identifiers),
            start=_mapping("start", start),
            source=source,
            title=title,
            safeguarded=safeguarded,
            derived=_mapping("derived", derived),
            domains=_mapping("domains", domains),
            easier=easier,
        )

    @property
    def unknowns(self) -> tuple[sp.Symbol, ...]:
        """The variables that the equations determine."""
        return tuple(e.unknown for e in self.equations)

    @cached_property
    def structure(self) -> BlockStructure:
        """In which order the equations are solved, and which of them are linear."""
        return block_structure(self.equations)

    def independent(self) -> SaddlePointSystem:
        r"""Return the system in its independent parameters, with the derived ones put in.

        Where a positive parameter is :math:`\sqrt{(1 - x)(1 + x)}`, x has to be inside (-1, 1).
        """
        if not self.derived:
            return self
        values = dict(self.derived)
        for p, value in self.derived.items():
            for x in value.free_symbols:
                if p.is_positive and value == complement(x):
                    values |= {x: sp.Symbol(x.name, **{**x.assumptions0, INSIDE: True})}
        values |= {p: v.xreplace(values) for p, v in self.derived.items()}
        names = {values.get(x, x): n for x, n in self.identifiers.items() if x not in self.derived}

        def put(expr: sp.Expr | None) -> sp.Expr | None:
            return None if expr is None else expr.xreplace(values)

        free = self.free_energy
        return self._changed(
            equations=tuple(
                replace(e, value=put(e.value), residual=put(e.residual)) for e in self.equations
            ),
            parameters=tuple(values.get(p, p) for p in self.parameters if p not in self.derived),
            outputs={name: put(value) for name, value in self.outputs.items()},
            definitions={put(f): put(value) for f, value in self.definitions.items()},
            identifiers=names,
            start={x: put(value) for x, value in self.start.items()},
            derived={},
            easier=put(self.easier),
            free_energy=None if free is None else replace(free, expression=put(free.expression)),
        )

    @cached_property
    def coordinates(self) -> Mapping[sp.Symbol, Coordinate]:
        """Coordinates of the unknowns with a domain that Newton's method moves."""
        core = {
            e.unknown
            for block in self.structure.blocks
            if not block.linear
            for component in block.components
            for e in component.core
        }
        found = {}
        for x, domain in self.domains.items():
            if x in core and not (domain.start == 0 and domain.end == sp.oo and x.is_positive):
                name = f"{self.identifiers[x]}_odds"
                found[x] = Coordinate(sp.Symbol(name, positive=True), x, domain)
        return found

    def in_coordinates(self) -> SaddlePointSystem:
        """Return the system with coordinates as unknowns, from which those with domains follow."""
        if not self.coordinates:
            return self
        equations = [
            self.coordinates[e.unknown].equation(e) if e.unknown in self.coordinates else e
            for e in self.equations
        ]
        # Last, so that they are what is eliminated.
        equations += [c.definition for c in self.coordinates.values()]
        starts = {
            c.symbol: c.of(self.start[x]) for x, c in self.coordinates.items() if x in self.start
        }
        symbols = {x: self.identifiers[x] for x in (*self.parameters, *self.unknowns)}
        symbols |= {c.symbol: c.symbol.name for c in self.coordinates.values()}
        check_identifiers(symbols)
        return self._changed(
            equations=tuple(equations),
            identifiers=symbols,
            start={x: v for x, v in self.start.items() if x not in self.coordinates} | starts,
            domains={x: d for x, d in self.domains.items() if x not in self.coordinates},
        )

    def _changed(self, **fields: object) -> SaddlePointSystem:
        """Return the system with other fields that follow from its own, which were checked."""
        found = object.__new__(type(self))
        given = {f.name: getattr(self, f.name) for f in dataclass_fields(self)}
        for name, value in {**given, **fields}.items():
            object.__setattr__(found, name, value)
        return found

    def jacobian(self) -> sp.Matrix:
        r"""Return :math:`\partial R_i/\partial x_j` of residuals :math:`R_i` and unknowns.

        The residual of ``unknown = value`` is ``unknown - value``.
        """
        return sp.Matrix([[e.residual.diff(x) for x in self.unknowns] for e in self.equations])

    def with_start(self, start: Mapping[sp.Symbol, sp.Expr]) -> SaddlePointSystem:
        """Return the system with other first values."""
        return replace(self, start={**self.start, **start})

    def latex(self) -> str:
        """Return the equations in LaTeX, as one aligned environment."""
        rows = []
        for e in self.equations:
            left = sp.Integer(0) if e.value is None else e.unknown
            right = e.residual if e.value is None else e.value
            rows.append(rf"{sp.latex(left)} &= {sp.latex(right)}")
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"

    def __str__(self) -> str:
        lines = [self.title or self.name]
        for e in self.equations:
            left, right = (0, e.residual) if e.value is None else (e.unknown, e.value)
            lines.append(f"    {left} = {right}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        unknowns = ", ".join(map(str, self.unknowns))
        parameters = ", ".join(map(str, self.parameters))
        return f"SaddlePointSystem({self.name!r}, unknowns {unknowns}; parameters {parameters})"


def _mapping(name: str, given: Mapping[Any, Any] | None) -> dict[Any, Any]:
    """Return a copy of an optional mapping that a user gives."""
    if given is not None and not isinstance(given, Mapping):
        raise ParameterError(f"{name} must be a mapping such as {{symbol: value}}, got {given!r}")
    return dict(given or {})


def complement(x: sp.Expr) -> sp.Expr:
    r"""Return :math:`\sqrt{1 - x^2}` such that it keeps its digits where x is near 1 or -1."""
    return sp.sqrt((1 - x) * (1 + x))
