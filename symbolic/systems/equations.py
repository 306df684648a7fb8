"""From a free energy to its saddle-point equations, and the order in which they are solved.

A replica (or leave-one-out) computation ends in a free energy: one scalar expression in order
parameters and their conjugates. :func:`stationarity` differentiates it,
:func:`saddle_point_equations` solves each condition for the variable that it determines, and
:func:`block_structure` orders them: the strongly connected components of the dependency graph, in
topological order, are the smallest systems that can be solved one after the other. Inside a
component, explicit unknowns are eliminated until a small core is left. Neighbouring components
that are jointly linear form one block, because one pass over the quadrature nodes serves them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar

import sympy as sp
from sympy.utilities.iterables import strongly_connected_components

from ...errors import ParameterError, StructureError
from ...pages import InLatex
from ..expressions.averages import Average, Binding
from ..expressions.factors import factored
from ..expressions.functions import with_cosh, with_real_steps
from ..expressions.latex_text import written
from ..expressions.shared_parts import first_derivative, free_symbols
from ..gaussian.integration_by_parts import reduced
from ..gaussian.jumps import integrate_deltas, jumps_as_steps
from .replica_stability import SingleSite, replicon

# The two sides of a matching.
Left = TypeVar("Left")
Right = TypeVar("Right")


# The output that single sites give.
REPLICON = "replicon"


@dataclass(frozen=True)
class FreeEnergy(InLatex):
    """A free energy with its variables.

    Parameters
    ----------
    expression : Expr
        Scalar expression; may hold 𝔼 nodes and Marchenko–Pastur averages.
    order_parameters, conjugates : tuple of Symbol
        The variables in which it is stationary. The division matters for one thing only:
        conjugates are eliminated first, so that the order parameters remain as unknowns.
    parameters : tuple of Symbol
        Everything that the user sets (sample complexity, ridge penalty, …). By default all other
        symbols, in the order of their names.
    definitions : mapping from applied function to Expr
        Functions of the integration variable, such as ``mu_0(kappa)``, with their meaning.
    source : str
        Where it is published, or how it was derived.
    single_sites : tuple of SingleSite
        The single-site measures of a replica-symmetric free energy. They give its stability,
        :meth:`replicon`; `expression` is best made of their averages.
    positive : tuple of Expr or Matrix
        What is positive at the solution that is meant, matrices positive definite, where
        `expression` does not say it: see `conditions`.
    """

    expression: sp.Expr
    order_parameters: tuple[sp.Symbol, ...]
    conjugates: tuple[sp.Symbol, ...] = ()
    parameters: tuple[sp.Symbol, ...] = ()
    definitions: Mapping[sp.Expr, sp.Expr] = field(default_factory=dict)
    source: str = ""
    single_sites: tuple[SingleSite, ...] = ()
    positive: tuple[sp.Expr | sp.MatrixBase, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.expression, sp.Expr):
            raise ParameterError(f"expression must be a SymPy expression, got {self.expression!r}")
        object.__setattr__(self, "expression", with_real_steps(self.expression))
        for name in ("order_parameters", "conjugates", "parameters"):
            symbols = getattr(self, name)
            if not isinstance(symbols, tuple | list):
                raise ParameterError(f"{name} must be a tuple of symbols, got {symbols!r}")
        if not (self.parameters or self.definitions):
            others = self.expression.free_symbols - {*self.variables}
            object.__setattr__(self, "parameters", tuple(sorted(others, key=str)))

    @property
    def variables(self) -> tuple[sp.Symbol, ...]:
        """All variables in which the free energy is stationary, order parameters first."""
        return (*self.order_parameters, *self.conjugates)

    @property
    def conditions(self) -> tuple[sp.Expr, ...]:
        """What is not negative at a solution, in the variables and without averages.

        These are arguments of logarithms and of even roots outside averages, without which the free
        energy is no real number, and what is declared as `positive`, matrices by their leading
        minors.
        """
        given = [*_real_arguments(self.expression)]
        for x in self.positive:
            orders = range(1, x.rows + 1) if isinstance(x, sp.MatrixBase) else ()
            given += [x[:k, :k].det() for k in orders] or [x]
        return tuple(
            dict.fromkeys(
                x
                for x in given
                if not x.is_nonnegative
                and not x.has(Binding)
                and not x.free_symbols.isdisjoint(self.variables)
            )
        )

    def replicon(self) -> sp.Expr:
        """Return the replicon eigenvalue: replica symmetry is stable where it is positive.

        Raises
        ------
        StructureError
            If the free energy declares no single sites, or they do not fit to its variables.
        UnsupportedExpressionError
            If the overlaps form more than one circle; see :func:`.replica_stability.replicon`.
        """
        if not self.single_sites:
            raise StructureError(
                "the free energy declares no single-site measure: give single_sites=(SingleSite(…),"
                ") for the stability of replica symmetry"
            )
        known = {*self.variables, *self.parameters}
        for site in self.single_sites:
            if site.overlap not in self.variables:
                raise StructureError(
                    f"the overlap {site.overlap} of a single site is no variable of the free energy"
                )
            foreign = site.average().free_symbols - known
            if foreign:
                raise StructureError(
                    f"the single site of {site.overlap} holds {min(map(str, foreign))}, which is "
                    "neither a variable nor a parameter of the free energy"
                )
        return replicon(self.single_sites)

    def latex(self) -> str:
        """Return the free energy in LaTeX, without delimiters."""
        return f"f = {written(self.expression)}"


@dataclass(frozen=True)
class Equation(InLatex):
    """One saddle-point equation.

    Attributes
    ----------
    unknown : Symbol
        The variable that the equation determines.
    value : Expr or None
        Right-hand side of ``unknown = value``, in which `unknown` may occur: then it is a map, a
        fixed point of which is wanted. None if the equation is an implicit one.
    residual : Expr
        Vanishes at the solution; ``unknown - value`` where `value` is given.
    """

    unknown: sp.Symbol
    value: sp.Expr | None
    residual: sp.Expr

    @property
    def sides(self) -> tuple[sp.Expr, sp.Expr]:
        """Left and right, as the equation is written."""
        return (sp.S.Zero, self.residual) if self.value is None else (self.unknown, self.value)

    def __str__(self) -> str:
        return " = ".join(map(str, self.sides))

    def latex(self) -> str:
        """Return the equation in LaTeX, without delimiters."""
        return " = ".join(map(written, self.sides))


def _real_arguments(expr: sp.Expr) -> Iterator[sp.Expr]:
    """Iterate over what must not be negative for an expression to be real."""
    # Of a piecewise function the pieces that do not hold may be anything.
    if isinstance(expr, Binding | sp.Piecewise):
        return
    if isinstance(expr, sp.log) or (expr.is_Pow and expr.exp.is_Rational and not expr.exp.q % 2):
        yield expr.args[0]
    for x in expr.args:
        yield from _real_arguments(x)


def stationarity(free_energy: FreeEnergy) -> dict[sp.Symbol, sp.Expr]:
    r"""Return {variable: derivative of the free energy with respect to it}; each one vanishes.

    Derivatives go under 𝔼 and under Marchenko–Pastur averages, and are reduced by parts: what
    depends on an overlap through :math:`\sqrt q\,z` has a derivative without
    :math:`z/\sqrt q`; see :func:`.integration_by_parts.reduced`. A variable on which the free
    energy does not depend is left out: nothing determines it.
    """
    expression = jumps_as_steps(with_cosh(free_energy.expression))
    result = {
        x: reduced(integrate_deltas(first_derivative(expression, x)), expression)
        for x in free_energy.variables
    }
    return {x: derivative for x, derivative in result.items() if derivative != 0}


def determined(free_energy: FreeEnergy) -> FreeEnergy:
    """Leave out variables on which a free energy, that of a special case, does not depend."""
    stays = set(stationarity(free_energy))
    return replace(
        free_energy,
        order_parameters=tuple(x for x in free_energy.order_parameters if x in stays),
        conjugates=tuple(x for x in free_energy.conjugates if x in stays),
    )


def saddle_point_equations(free_energy: FreeEnergy) -> tuple[Equation, ...]:
    """Return the stationarity conditions, each solved for the variable that it determines.

    A condition that is affine in a variable, with a coefficient that is free of all variables,
    determines it explicitly. A maximum matching assigns as many conditions as possible to
    variables in this way (a condition prefers the conjugate of the variable that it came from,
    which is how papers print them). It is enlarged to a perfect one, whose further conditions are
    implicit: the blocks of :func:`block_structure` follow from any of these (Dulmage
    and Mendelsohn, Canad. J. Math. 10, 517 (1958)).

    Raises
    ------
    StructureError
        If a condition holds no variable at all, as where the free energy is linear in one.
    """
    conditions = stationarity(free_energy)
    unknowns = set(conditions)
    for origin, condition in conditions.items():
        if not condition.free_symbols & unknowns:
            raise StructureError(
                f"the free energy is not stationary in {origin} anywhere: its derivative "
                f"{condition} holds none of the variables"
            )
    explicit: dict[sp.Symbol, list[sp.Symbol]] = {}
    for origin, condition in conditions.items():
        # Papers print the conjugate as what the condition of an order parameter determines, and
        # the other way round; the variable itself is the last choice.
        conjugate = origin in free_energy.conjugates
        choices = sorted(
            condition.free_symbols & unknowns,
            key=lambda x: (x == origin, (x in free_energy.conjugates) == conjugate, str(x)),
        )
        explicit[origin] = [x for x in choices if _constant_slope(condition, x, unknowns)]
    matching = maximum_matching(explicit)
    # What is left prefers the variable it came from, but any perfect matching gives these blocks.
    holding = {
        origin: sorted(condition.free_symbols & unknowns, key=lambda x: (x != origin, str(x)))
        for origin, condition in conditions.items()
    }
    matching = maximum_matching(holding, matching)
    by_unknown = {x: origin for origin, x in matching.items()}
    # Without a perfect matching the equations determine nothing; the check of systems says why.
    rest = iter([o for o in conditions if o not in matching])
    result = []
    for x in free_energy.variables:
        if x not in unknowns:
            continue
        origin = by_unknown[x] if x in by_unknown else next(rest)
        equation = _solved_for(x, conditions[origin], unknowns)
        if equation.value is None and origin == x:
            equation = _as_map(equation) or equation
        result.append(equation)
    return tuple(result)


def matched(equations: Sequence[Equation]) -> tuple[Equation, ...]:
    """Return the equations such that each one holds the unknown that it is said to determine.

    Conditions are given for unknowns by whoever writes them down; which one determines which
    unknown follows from a perfect matching, and with it in which order they are solved. Equations
    keep their unknowns where that is possible. Without a perfect matching they are returned as
    they are.
    """
    unknowns = {e.unknown for e in equations}
    conditions = {e.unknown: e for e in equations}
    given = {x: x for x, e in conditions.items() if e.residual.has(x)}
    if len(given) == len(equations):
        return tuple(equations)
    holding = {
        x: sorted(e.residual.free_symbols & unknowns, key=str) for x, e in conditions.items()
    }
    matching = maximum_matching(holding, given)
    if len(matching) < len(equations):
        return tuple(equations)
    by_unknown = {x: conditions[origin] for origin, x in matching.items()}
    return tuple(
        result
        if (result := by_unknown[e.unknown]).unknown == e.unknown
        else _solved_for(e.unknown, result.residual, unknowns)
        for e in equations
    )


def _constant_slope(
    condition: sp.Expr, x: sp.Symbol, unknowns: Collection[sp.Symbol]
) -> sp.Expr | None:
    """Return the slope of a condition in x if it is a constant other than zero."""
    slope = first_derivative(condition, x)
    return None if slope == 0 or free_symbols(slope) & set(unknowns) else slope


def _solved_for(x: sp.Symbol, condition: sp.Expr, unknowns: Collection[sp.Symbol]) -> Equation:
    slope = _constant_slope(condition, x, unknowns)
    if slope is None:
        return Equation(x, None, condition)
    value = _divide(-condition.xreplace({x: sp.S.Zero}), slope)
    return Equation(x, value, x - value)


def _as_map(equation: Equation) -> Equation | None:
    """Return ``x = f(x)`` for a condition c·(x − f(x)) = 0 with a product c that never vanishes.

    It may vanish at x = 0 if x = f(x) holds there, too. This is how papers print the equation of
    an overlap from which conjugates were eliminated. The term in x alone is algebraic, those of f
    are averages or other functions.
    """
    x = equation.unknown
    algebraic_terms: list[sp.Expr] = []
    others: list[sp.Expr] = []
    # A temperature in front of a sum cancels in its terms.
    spread = (sp.expand_mul(t, deep=False) for t in sp.Add.make_args(equation.residual))
    residual = min(equation.residual, sp.Add(*spread), key=sp.count_ops)
    for term in sp.Add.make_args(sp.expand_mul(residual, deep=False)):
        algebraic = term.is_rational_function(x) and not term.has(Average)
        (algebraic_terms if algebraic else others).append(term)
    total = factored(sp.Add(*algebraic_terms))
    powers = {base: n for base, n in (f.as_base_exp() for f in sp.Mul.make_args(total))}
    power = powers.get(x, sp.S.Zero)
    if not others or not (power.is_Integer and power > 0):
        return None
    common = total / x
    value = sp.Add(*(-term / common for term in others))
    never = common if value.xreplace({x: sp.S.Zero}) != 0 else total / x**power
    # SymPy knows of a sum only seldom that it is not zero; then nothing is divided by it.
    if never.is_zero is not False or sp.count_ops(value) > sp.count_ops(sp.Add(*others)):
        return None
    if value.has(sp.sinh):
        value = min(value, value.replace(sp.sinh, _by_tanh), key=sp.count_ops)
    return Equation(x, value, x - value)


def _by_tanh(u: sp.Expr) -> sp.Expr:
    return sp.tanh(u) * sp.cosh(u)


def _divide(numerator: sp.Expr, denominator: sp.Expr) -> sp.Expr:
    """Divide term by term, so that prefactors cancel inside each term of a sum."""
    terms = []
    for term in sp.Add.make_args(numerator):
        # SymPy would multiply out what a term is divided by, too.
        factors = sp.Mul.make_args(term)
        below = sp.Mul(*(f for f in factors if f.is_Pow and f.exp.is_negative))
        above = sp.expand_mul(term / below, deep=False)
        terms += [part * below / denominator for part in sp.Add.make_args(above)]
    return sp.Add(*terms)


def maximum_matching(
    candidates: Mapping[Left, Sequence[Right]], given: Mapping[Left, Right] | None = None
) -> dict[Left, Right]:
    """Kuhn's augmenting paths: {condition: variable}, as many pairs as possible.

    Parameters
    ----------
    candidates : mapping
        Variables of each condition, in order of preference (or conditions of each variable).
    given : mapping, optional
        A matching to enlarge. What it matches stays matched, to other partners if need be.
    """
    owner = {x: condition for condition, x in (given or {}).items()}

    def assign(condition: Left, seen: set[Right]) -> bool:
        # What nobody has yet comes first, in the order of preference.
        for x in sorted(candidates[condition], key=owner.__contains__):
            if x in seen:
                continue
            seen.add(x)
            if x not in owner or assign(owner[x], seen):
                owner[x] = condition
                return True
        return False

    # Conditions with the fewest choices first keeps the augmenting paths short.
    matched = set(owner.values())
    for condition in sorted(candidates, key=lambda c: (len(candidates[c]), str(c))):
        if condition not in matched:
            assign(condition, set())
    return {condition: x for x, condition in owner.items()}


@dataclass(frozen=True)
class Component:
    """A strongly connected component: its core unknowns and what is eliminated.

    Attributes
    ----------
    core : tuple of Equation
        Equations that are solved together.
    eliminated : tuple of Equation
        Explicit equations ``x = value`` in the order of evaluation, given the core (and earlier
        components).
    """

    core: tuple[Equation, ...]
    eliminated: tuple[Equation, ...]

    @property
    def unknowns(self) -> tuple[sp.Symbol, ...]:
        """All unknowns of the component, core first."""
        return tuple(e.unknown for e in self.core + self.eliminated)


@dataclass(frozen=True)
class Block:
    """Components that are solved in one go, jointly linear or one nonlinear component."""

    components: tuple[Component, ...]
    linear: bool

    @property
    def unknowns(self) -> tuple[sp.Symbol, ...]:
        """All unknowns of the block."""
        return tuple(x for c in self.components for x in c.unknowns)

    def describe(self) -> str:
        """Return one line: how many unknowns, how they are solved, what follows explicitly."""
        sizes = [len(c.core) for c in self.components]
        cores = [", ".join(str(e.unknown) for e in c.core) for c in self.components]
        coupled = [f"{{{n}}}" for n, size in zip(cores, sizes, strict=True) if size]
        n = sum(sizes)
        noun = "unknown" if n == 1 else "unknowns"
        how = f"{n} {noun} linear" if self.linear else f"{n} {noun} Newton"
        eliminated = [str(e.unknown) for c in self.components for e in c.eliminated]
        if n == 0:
            return f"explicit: {', '.join(eliminated)}"
        text = f"{how} {' '.join(coupled)}".rstrip()
        return text + (f", then {', '.join(eliminated)}" if eliminated else "")


@dataclass(frozen=True)
class BlockStructure:
    """The blocks of a system in the order in which they are solved."""

    blocks: tuple[Block, ...]

    def describe(self) -> str:
        """Return the structure as text, one block after the other."""
        n = len(self.blocks)
        head = f"{n} block{'s' if n != 1 else ''}: "
        return head + "; ".join(block.describe() for block in self.blocks)

    def __str__(self) -> str:
        return self.describe()


def block_structure(equations: Sequence[Equation]) -> BlockStructure:
    """Analyse a system of equations.

    Parameters
    ----------
    equations : sequence of Equation
        One for each unknown.

    Returns
    -------
    BlockStructure
        Nonlinear components alone; runs of components that are jointly linear merged.
    """
    return _block_structure(tuple(equations))


# Checks, printing and lowering ask for it of the same equations.
@lru_cache(maxsize=32)
def _block_structure(equations: tuple[Equation, ...]) -> BlockStructure:
    by_unknown = {e.unknown: e for e in equations}
    unknowns = set(by_unknown)
    edges = [
        (e.unknown, x)
        for e in equations
        for x in sorted((e.residual.free_symbols & unknowns) - {e.unknown}, key=str)
    ]
    order = strongly_connected_components((list(by_unknown), edges))
    # The order of the system, not of the graph algorithm, decides between equal choices.
    position = {x: i for i, x in enumerate(by_unknown)}
    components = [
        _tear([by_unknown[x] for x in sorted(members, key=position.__getitem__)])
        for members in order
    ]
    blocks: list[Block] = []
    for component in components:
        if blocks and blocks[-1].linear and is_linear((*blocks[-1].components, component)):
            blocks[-1] = Block((*blocks[-1].components, component), True)
        else:
            blocks.append(Block((component,), is_linear((component,))))
    return BlockStructure(tuple(blocks))


def is_linear(components: Iterable[Component]) -> bool:
    """Tell whether the equations of the components are jointly affine in their unknowns."""
    equations = [e for c in components for e in c.core + c.eliminated]
    unknowns = {e.unknown for e in equations}
    conditions = (
        condition
        for e in equations
        for cases in e.residual.atoms(sp.Piecewise)
        for _, condition in cases.args
    )
    if any(condition.free_symbols & unknowns for condition in conditions):
        # Constant branches have no derivative by an unknown that chooses between them.
        return False
    return all(
        not free_symbols(first_derivative(e.residual, x)) & unknowns
        for e in equations
        for x in e.residual.free_symbols & unknowns
    )


def _tear(equations: Sequence[Equation]) -> Component:
    """Eliminate explicit unknowns, the last ones (conjugates) first, while no circle closes."""
    if len(equations) == 1 and _is_explicit(equations[0]):
        return Component((), tuple(equations))
    eliminated: list[Equation] = []
    for candidate in reversed(equations):
        if not _is_explicit(candidate) or len(eliminated) == len(equations) - 1:
            continue
        ordered = _evaluation_order([*eliminated, candidate])
        if ordered is not None:
            eliminated = ordered
    gone = {e.unknown for e in eliminated}
    core = tuple(e for e in equations if e.unknown not in gone)
    return Component(core, tuple(eliminated))


def _is_explicit(equation: Equation) -> bool:
    # A fixed-point form x = f(x) gives Newton a residual, but x is not known from it.
    return equation.value is not None and equation.unknown not in equation.value.free_symbols


def _evaluation_order(equations: Sequence[Equation]) -> list[Equation] | None:
    """Order explicit equations so that each uses only earlier ones; None if they are circular."""
    ordered: list[Equation] = []
    rest = list(equations)
    while rest:
        pending = {e.unknown for e in rest}
        ready = [e for e in rest if not e.residual.free_symbols & (pending - {e.unknown})]
        if not ready:
            return None
        ordered += ready
        rest = [e for e in rest if e not in ready]
    return ordered
