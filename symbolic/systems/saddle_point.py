"""State a model of statistical physics by its free energy or its fixed-point equations.

The public entry of the pipeline from equations to kernels. A :class:`SaddlePointSystem` is made
from a free energy (:meth:`~SaddlePointSystem.from_free_energy`) or from fixed-point equations
(:meth:`~SaddlePointSystem.from_fixed_point`), both in SymPy with 𝔼 nodes; it gives equations,
LaTeX, block structure and Jacobian; :func:`giantstep.lower` makes a kernel of it. What a system has
to satisfy before that is checked here, and each refusal names the variable or the node; whether
functions are known to a target is decided at the door of the lowering.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, fields as dataclass_fields, replace
from functools import cached_property, lru_cache
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from ...errors import EmissionError, ParameterError, StructureError
from ...pages import Typeset
from ..expressions.arguments import as_expression
from ..expressions.functions import with_real_steps
from ..expressions.latex_text import written
from ..expressions.shared_parts import first_derivative
from ..gaussian.expectation import ranges_over_the_line
from .equations import (
    REPLICON,
    BlockStructure,
    Equation,
    FreeEnergy,
    block_structure,
    matched,
    maximum_matching,
    saddle_point_equations,
    stationarity,
)
from .generic_rank import dependent_unknowns, symmetric_variables
from .replica_stability import SingleSite

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
        for name in ("outputs", "definitions"):
            given = {k: with_real_steps(v) for k, v in getattr(self, name).items()}
            object.__setattr__(self, name, given)
        object.__setattr__(self, "equations", tuple(map(_with_real_steps, self.equations)))
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
        result = {REPLICON: free_energy.replicon()} if free_energy.single_sites else {}
        return cls(
            name=name,
            equations=saddle_point_equations(free_energy),
            parameters=free_energy.parameters,
            outputs=result | dict(outputs or {}),
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
        >>> from giantstep.symbolic.gaussian.expectation import GaussianExpectation
        >>> q, beta = sp.symbols("q beta", positive=True)
        >>> z, h = sp.symbols("z h", real=True)
        >>> magnet = sp.tanh(beta * (sp.sqrt(q) * z + h))
        >>> system = SaddlePointSystem.from_fixed_point(
        ...     {q: GaussianExpectation(magnet**2, z)}, name="sk", parameters=(beta, h)
        ... )
        >>> print(system.structure)
        1 block: 1 unknown Newton {q}
        """
        if not isinstance(parameters, Iterable):
            raise ParameterError(f"parameters must be a tuple of symbols, got {parameters!r}")
        result = []
        for x, value in equations.items():
            if not isinstance(x, sp.Symbol):
                raise ParameterError(
                    f"the keys of equations must be SymPy Symbols, the unknowns, got {x!r}"
                )
            if isinstance(value, sp.Equality):
                result.append(Equation(x, None, value.lhs - value.rhs))
            else:
                right = as_expression(value, f"equations[{x}]")
                result.append(Equation(x, right, x - right))
        return cls(
            name=name,
            equations=tuple(result),
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

    @property
    def conditions(self) -> tuple[sp.Expr, ...]:
        """What must not be negative at a solution: those conditions of the free energy."""
        known = {*self.unknowns, *self.parameters}
        given = () if self.free_energy is None else self.free_energy.conditions
        return tuple(x for x in given if x.free_symbols <= known)

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

        def own(parameters: Iterable[sp.Symbol]) -> tuple[sp.Symbol, ...]:
            return tuple(values.get(p, p) for p in parameters if p not in self.derived)

        free = self.free_energy
        if free is not None:
            known = own(free.parameters)
            free = replace(
                free, expression=put(free.expression), parameters=known,
                positive=tuple(x.xreplace(values) for x in free.positive),
                definitions={put(f): put(value) for f, value in free.definitions.items()},
            )  # fmt: skip
        return self._changed(
            equations=tuple(
                replace(e, value=put(e.value), residual=put(e.residual)) for e in self.equations
            ),
            parameters=own(self.parameters),
            outputs={name: put(value) for name, value in self.outputs.items()},
            definitions={put(f): put(value) for f, value in self.definitions.items()},
            identifiers=names,
            start={x: put(value) for x, value in self.start.items()},
            derived={},
            easier=put(self.easier),
            free_energy=free,
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
        result = {}
        for x, domain in self.domains.items():
            whole = domain.end == sp.oo and (
                domain.start == -sp.oo or (domain.start == 0 and x.is_positive)
            )
            if x in core and not whole:
                name = f"{self.identifiers[x]}_odds"
                result[x] = Coordinate(sp.Symbol(name, positive=True), x, domain)
        return result

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
        result = object.__new__(type(self))
        given = {f.name: getattr(self, f.name) for f in dataclass_fields(self)}
        for name, value in {**given, **fields}.items():
            object.__setattr__(result, name, value)
        return result

    def jacobian(self) -> sp.Matrix:
        r"""Return :math:`\partial R_i/\partial x_j` of residuals :math:`R_i` and unknowns.

        The residual of ``unknown = value`` is ``unknown - value``.
        """
        return sp.Matrix(
            [[first_derivative(e.residual, x) for x in self.unknowns] for e in self.equations]
        )

    def with_start(self, start: Mapping[sp.Symbol, sp.Expr]) -> SaddlePointSystem:
        """Return the system with other first values."""
        return replace(self, start={**self.start, **start})

    def __eq__(self, other: object) -> bool:
        """Tell whether another system has the same equations, parameters and outputs."""
        if not isinstance(other, SaddlePointSystem):
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in fields(self))

    def __hash__(self) -> int:
        return hash((self.name, self.equations, self.parameters))

    def latex(self) -> str:
        """Return the equations in LaTeX, as one aligned environment."""
        rows = [" &= ".join(map(written, e.sides)) for e in self.equations]
        return r"\begin{aligned} " + r" \\ ".join(rows) + r" \end{aligned}"

    def __str__(self) -> str:
        return "\n".join([self.title or self.name, *(f"    {e}" for e in self.equations)])

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


_KNOWN_SYSTEMS = 32


def check_free_energy(free_energy: FreeEnergy) -> None:
    """Refuse a free energy that does not determine its variables.

    Raises
    ------
    ParameterError
        For fields of the wrong kind.
    StructureError
        If the free energy does not depend on one of its variables, or is the same along a line or
        a rescaling of some.
    """
    if not isinstance(free_energy, FreeEnergy):
        raise ParameterError(f"free_energy must be a FreeEnergy, got {free_energy!r}")
    as_expression(free_energy.expression, "the expression of the free energy")
    for name in ("order_parameters", "conjugates", "parameters"):
        given = getattr(free_energy, name)
        if not isinstance(given, list | tuple) or not all(isinstance(x, sp.Symbol) for x in given):
            raise ParameterError(
                f"{name} of a free energy must be a tuple of SymPy Symbols, got {given!r}; "
                "a tuple of one is written (q,)"
            )
    sites = free_energy.single_sites
    if not isinstance(sites, list | tuple) or not all(isinstance(s, SingleSite) for s in sites):
        raise ParameterError(
            f"single_sites of a free energy must be a tuple of SingleSite, got {sites!r}"
        )
    if not isinstance(free_energy.positive, list | tuple):
        raise ParameterError(
            "positive of a free energy must be a tuple of expressions and matrices, got "
            f"{free_energy.positive!r}"
        )
    for x in free_energy.positive:
        if not isinstance(x, sp.MatrixBase):
            as_expression(x, "positive of a free energy")
        elif not x.is_symmetric():
            raise ParameterError(f"positive of a free energy: {x} is no symmetric matrix")
    repeated = _repeated((*free_energy.variables, *free_energy.parameters))
    if repeated:
        raise ParameterError(f"{_names(repeated)} occurs twice among variables and parameters")
    if not free_energy.variables:
        raise StructureError("a free energy needs at least one order parameter")
    for function, value in free_energy.definitions.items():
        held = set(free_energy.variables) & as_expression(value, str(function)).free_symbols
        if held:
            raise EmissionError(_in_a_table(function, held))
    gradient = stationarity(free_energy)
    missing = [x for x in free_energy.variables if x not in gradient]
    if missing:
        raise StructureError(
            f"the free energy does not depend on {_names(missing)}, so nothing determines "
            f"{'it' if len(missing) == 1 else 'them'}: take {_names(missing)} off the list of "
            "order parameters and conjugates, or add the missing term"
        )
    symmetric = symmetric_variables(gradient)
    if symmetric:
        raise StructureError(
            f"the free energy does not determine {_names(symmetric)}: it is the same along a "
            "common shift or rescaling of them, as where they occur as a sum or a product only; "
            "take one of them as given, or put the combination in their place"
        )


def check_system(system: SaddlePointSystem) -> None:
    """Refuse a system whose symbols or structure make no sense.

    Raises
    ------
    ParameterError
        For arguments of the wrong kind.
    StructureError
        If the equations do not determine their unknowns.
    EmissionError
        If a symbol or a function in them has no meaning.
    """
    if not _is_identifier(system.name):
        raise ParameterError(f"name must be an identifier such as 'my_model', got {system.name!r}")
    if not isinstance(system.title, str):
        raise ParameterError(f"title must be a text, got {system.title!r}")
    if not system.equations:
        raise StructureError("equations must hold at least one equation")
    for x in (*system.unknowns, *system.parameters):
        if not isinstance(x, sp.Symbol):
            raise ParameterError(f"unknowns and parameters must be SymPy Symbols, got {x!r}")
        if x.is_real is not True:
            raise ParameterError(
                f"{x} must be declared real (or positive, …): Symbol({x.name!r}, real=True)"
            )
        if x.is_rational is not None and not x.is_zero:
            raise ParameterError(
                f"{x} is declared {'an integer' if x.is_integer else 'rational or irrational'}, "
                f"which no kernel can require of a floating-point number: declare it real, "
                "positive, nonnegative, negative or nonpositive"
            )
    if not isinstance(system.node, sp.Symbol) or not ranges_over_the_line(system.node):
        raise ParameterError(
            f"node must be a SymPy Symbol declared real and nothing else, got {system.node!r}"
        )
    repeated = _repeated(system.unknowns)
    if repeated:
        raise StructureError(f"two equations determine {_names(repeated)}")
    both = [x for x in system.unknowns if x in system.parameters]
    if both:
        raise ParameterError(f"{_names(both)} cannot be both an unknown and a parameter")
    for x, value in system.start.items():
        if x not in system.unknowns:
            raise ParameterError(f"start has a value for {x}, which is no unknown")
        foreign = value.free_symbols - set(system.parameters)
        if foreign:
            raise ParameterError(f"start[{x}] may hold parameters only, not {_names(foreign)}")
    _check_derived(system)
    _check_domains(system)
    for code in system.outputs:
        if not _is_identifier(code):
            raise ParameterError(f"outputs: {code!r} is no identifier")
        if unicodedata.normalize("NFKC", code) != code:
            plain = unicodedata.normalize("NFKC", code)
            raise ParameterError(f"outputs: Python reads {code!r} as {plain!r}; write it so")
    _check_symbols(system)
    if not system.tangent:
        _check_structure(tuple(system.equations))


def _check_derived(system: SaddlePointSystem) -> None:
    independent = set(system.parameters) - set(system.derived)
    for p, value in system.derived.items():
        if p not in system.parameters:
            raise ParameterError(f"derived has a value for {p}, which is no parameter")
        foreign = value.free_symbols - independent
        if foreign:
            raise ParameterError(
                f"derived[{p}] may hold parameters that are not derived only, not {_names(foreign)}"
            )
        (held,) = value.free_symbols if len(value.free_symbols) == 1 else (None,)
        if held is not None and value == sp.sqrt((1 - held) * (1 + held)):
            continue
        for sign in ("positive", "negative", "nonnegative", "nonpositive"):
            if getattr(p, f"is_{sign}") and not getattr(value, f"is_{sign}"):
                raise ParameterError(
                    f"derived[{p}] = {value} is not {sign} for all parameters, as {p} is declared: "
                    f"declare {p} real, or the parameters so that it is"
                )


def _check_domains(system: SaddlePointSystem) -> None:
    for x, domain in system.domains.items():
        if x not in system.unknowns:
            raise ParameterError(f"domains has an interval for {x}, which is no unknown")
        if not isinstance(domain, sp.Interval):
            # SymPy returns no Interval but a set where there is nothing or a single point.
            what = "is empty" if domain == sp.S.EmptySet else "must be a SymPy Interval with ends"
            raise ParameterError(
                f"the domain of {x} {what}, got {domain}; an overlap has Interval.open(0, 1)"
            )
        if not all(end.is_extended_real and end.is_number for end in domain.args[:2]):
            raise ParameterError(f"the domain of {x} must have numbers as its ends, got {domain}")
        assumed = sp.Interval(0 if x.is_nonnegative else -sp.oo, 0 if x.is_nonpositive else sp.oo)
        if not domain.is_subset(assumed):
            raise ParameterError(
                f"the domain {domain} of {x} contradicts its declaration as {x.name} "
                f"{'>' if x.is_nonnegative else '<'}= 0: declare the symbol real, or end the "
                "domain at 0"
            )
        first = system.start.get(x)
        if first is not None and first.is_number and first.evalf() not in domain.interior:
            raise ParameterError(f"start[{x}] = {first} is not inside the domain {domain} of {x}")
    if system.easier is not None and (
        system.easier not in system.parameters or not system.easier.is_positive
    ):
        raise ParameterError(
            f"easier must be one of the positive parameters, got {system.easier!r}"
        )


def _check_symbols(system: SaddlePointSystem) -> None:
    known = {*system.unknowns, *system.parameters}
    places = [(f"the equation for {e.unknown}", e.residual) for e in system.equations]
    places += [(f"the output {name!r}", value) for name, value in system.outputs.items()]
    for place, expr in places:
        if not isinstance(expr, sp.Expr):
            raise ParameterError(f"{place} must be a SymPy expression, got {expr!r}")
        # By name: importing sympy.stats takes longer than everything here.
        random = [x for x in expr.free_symbols if type(x).__name__ == "RandomSymbol"]
        if random:
            raise EmissionError(
                f"{place} holds the random variable {random[0]} of sympy.stats; averages are over "
                "standard normal variables, GaussianExpectation(…, z), Marchenko-Pastur "
                "eigenvalues or data (DataAverage): write another law as a function of a normal "
                "variable, as sqrt(v)*z + m for N(m, v)"
            )
        if expr.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
            raise EmissionError(f"{place} holds {expr}, which is no number")
        foreign = expr.free_symbols - known
        if foreign == {system.node} or system.node in foreign:
            raise EmissionError(
                f"{place} holds {system.node} outside of an expectation; write "
                f"GaussianExpectation(…, {system.node}) around what is to be averaged"
            )
        if foreign:
            raise EmissionError(
                f"{place} holds {_names(foreign)}, which is neither an unknown nor a parameter; "
                "add it to parameters, or give an equation for it (symbols with the same name but "
                "other assumptions are other symbols)"
            )
        nameless = expr.atoms(AppliedUndef) - set(system.definitions)
        if nameless:
            raise EmissionError(
                f"{place} holds {_names(nameless)} without a meaning; add it to definitions"
            )
    unknowns = set(system.unknowns)
    for function, value in system.definitions.items():
        others = function.free_symbols - {system.node}
        if others:
            raise EmissionError(
                f"{function} of definitions is a function of {_names(others)}, where {system.node} "
                f"is the Gaussian variable that definitions depend on: give node={_names(others)}, "
                f"or write it in {system.node}"
            )
        if value.free_symbols & unknowns:
            raise EmissionError(_in_a_table(function, value.free_symbols & unknowns))


def _with_real_steps(given: Equation) -> Equation:
    value = None if given.value is None else with_real_steps(given.value)
    return replace(given, value=value, residual=with_real_steps(given.residual))


def _in_a_table(function: sp.Expr, held: Iterable[sp.Symbol]) -> str:
    return (
        f"the definition of {function} holds {_names(held)}: tables are made before the equations "
        "are solved; put the expression itself into the equations"
    )


# A system is made anew, and checked, for other outputs or parameters of the same equations.
@lru_cache(maxsize=_KNOWN_SYSTEMS)
def _check_structure(equations: tuple[Equation, ...]) -> None:
    unknowns = {e.unknown for e in equations}
    empty = [e.unknown for e in equations if not e.residual.free_symbols & unknowns]
    if empty:
        raise StructureError(
            f"the equation given for {_names(empty)} holds no unknown: it is a condition on the "
            "parameters and determines nothing"
        )
    occurring = set().union(*(e.residual.free_symbols for e in equations))
    missing = [e.unknown for e in equations if e.unknown not in occurring]
    if missing:
        raise StructureError(
            f"no equation holds {_names(missing)}, so nothing determines "
            f"{'it' if len(missing) == 1 else 'them'}"
        )
    stuck, competing = _undetermined(equations)
    if stuck:
        raise StructureError(
            f"the equations do not determine their unknowns: the {len(stuck)} unknowns "
            f"{_names(stuck)} occur in only {len(competing)} equation"
            f"{'' if len(competing) == 1 else 's'}, given for {_names(competing)}; another "
            "equation that holds one of them is needed (and one of the others is redundant)"
        )
    for block in block_structure(matched(equations)).blocks:
        for component in block.components:
            _check_rank(component.core + component.eliminated)


def _check_rank(equations: Sequence[Equation]) -> None:
    moving, repeating = dependent_unknowns(
        [e.residual for e in equations], [e.unknown for e in equations]
    )
    if moving:
        given = [equations[k].unknown for k in repeating]
        raise StructureError(
            f"the equations do not determine {_names(moving)}: their Jacobian is singular "
            f"everywhere, because the equation{'' if len(given) == 1 else 's'} given for "
            f"{_names(given)} {'says' if len(given) == 1 else 'say'} nothing new, or the unknowns "
            "occur in one combination only, such as a product or a sum"
        )


def _undetermined(
    equations: Sequence[Equation],
) -> tuple[list[sp.Symbol], list[sp.Symbol]]:
    """Return unknowns that share too few equations, and the unknowns those are given for.

    A maximum matching of unknowns to equations that hold them; from an unknown that is left over,
    alternating paths reach just the unknowns that compete for the same equations.
    """
    unknowns = [e.unknown for e in equations]
    holding = {x: [k for k, e in enumerate(equations) if e.residual.has(x)] for x in unknowns}
    matching = maximum_matching(holding)
    owner = {k: x for x, k in matching.items()}
    reached = [x for x in unknowns if x not in matching][:1]
    competing: list[int] = []
    for x in reached:  # It grows while it is gone through.
        competing += [k for k in holding[x] if k not in competing]
        reached += [owner[k] for k in competing if owner[k] not in reached]
    return reached, [equations[k].unknown for k in sorted(competing)]


def code_names(
    symbols: Iterable[sp.Symbol], given: Mapping[sp.Symbol, str]
) -> dict[sp.Symbol, str]:
    """Return an identifier for each symbol: the one given, or its name made into one."""
    result = {}
    for x in symbols:
        name = given.get(x)
        if name is None:
            name = re.sub(r"\W+", "_", x.name.replace("'", "_prime")).strip("_") or "x"
            name = name if name.isidentifier() else f"x_{name}"
            name = f"{name}_" if keyword.iskeyword(name) else name
        if not isinstance(name, str):
            raise ParameterError(f"identifiers[{x}] must be a text, got {name!r}")
        # As Python reads names: two that look alike are one.
        result[x] = unicodedata.normalize("NFKC", name)
    return result


def check_identifiers(names: Mapping[sp.Symbol, str]) -> None:
    """Refuse two symbols with one name in code."""
    for name in _repeated(list(names.values())):
        same = [x for x, code in names.items() if code == name]
        raise ParameterError(
            f"the symbols {', '.join(map(repr, same))} would all be called {name!r} in code; "
            "give them different names with identifiers={symbol: 'name'}"
        )


def _is_identifier(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)


def _repeated(items: Sequence[object]) -> list[object]:
    return [x for k, x in enumerate(items) if x in items[:k]]


def _names(items: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, items)))
