r"""From a free energy to its saddle-point equations.

A replica (or leave-one-out) computation ends in a free energy: one scalar expression in order
parameters and their conjugates. Its stationarity conditions are the saddle-point equations.
:func:`stationarity` differentiates it, :func:`saddle_point_equations` solves each condition for
the variable that it determines, and :mod:`.structure` finds out in which order they are solved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy as sp

from ..errors import StructureError
from .functions import with_cosh
from .integration_by_parts import reduced
from .jumps import jumps_as_steps
from .lowering.deltas import integrate_deltas
from .replica_stability import SingleSite, replicon


@dataclass(frozen=True)
class FreeEnergy:
    """A free energy with its variables.

    Parameters
    ----------
    expression : Expr
        Scalar expression; may hold 𝔼 nodes and Marchenko–Pastur averages.
    order_parameters, conjugates : tuple of Symbol
        The variables in which it is stationary. The division matters for one thing only:
        conjugates are eliminated first, so that the order parameters remain as unknowns.
    parameters : tuple of Symbol
        Everything that the user sets (sample complexity, ridge penalty, …).
    definitions : mapping from applied function to Expr
        Functions of the integration variable, such as ``mu_0(kappa)``, with their meaning.
    source : str
        Where it is published, or how it was derived.
    single_sites : tuple of SingleSite
        The single-site measures of a replica-symmetric free energy. They give its stability,
        :meth:`replicon`; `expression` is best made of their averages.
    """

    expression: sp.Expr
    order_parameters: tuple[sp.Symbol, ...]
    conjugates: tuple[sp.Symbol, ...]
    parameters: tuple[sp.Symbol, ...]
    definitions: Mapping[sp.Expr, sp.Expr] = field(default_factory=dict)
    source: str = ""
    single_sites: tuple[SingleSite, ...] = ()

    @property
    def variables(self) -> tuple[sp.Symbol, ...]:
        """All variables in which the free energy is stationary, order parameters first."""
        return (*self.order_parameters, *self.conjugates)

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

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle f = {sp.latex(self.expression)}$"


@dataclass(frozen=True)
class Equation:
    """One saddle-point equation.

    Attributes
    ----------
    unknown : Symbol
        The variable that the equation determines.
    value : Expr or None
        Right-hand side of ``unknown = value``; `unknown` does not occur in it. None if the
        equation cannot be solved for its unknown by a division by a constant.
    residual : Expr
        Vanishes at the solution; ``unknown - value`` where `value` is given.
    """

    unknown: sp.Symbol
    value: sp.Expr | None
    residual: sp.Expr

    def _repr_latex_(self) -> str:
        if self.value is None:
            return rf"$\displaystyle 0 = {sp.latex(self.residual)}$"
        return rf"$\displaystyle {sp.latex(self.unknown)} = {sp.latex(self.value)}$"

    def latex(self) -> str:
        """Return the equation in LaTeX, without delimiters."""
        return self._repr_latex_().removeprefix(r"$\displaystyle ").removesuffix("$")


def stationarity(free_energy: FreeEnergy) -> dict[sp.Symbol, sp.Expr]:
    r"""Return {variable: derivative of the free energy with respect to it}; each one vanishes.

    Derivatives go under 𝔼 and under Marchenko–Pastur averages, and are reduced by parts: what
    depends on an overlap through :math:`\sqrt q\,z` has a derivative without
    :math:`z/\sqrt q`; see :func:`.integration_by_parts.reduced`. A variable on which the free
    energy does not depend is left out: nothing determines it.
    """
    expression = jumps_as_steps(with_cosh(free_energy.expression))
    found = {
        x: reduced(integrate_deltas(expression.diff(x)), expression) for x in free_energy.variables
    }
    return {x: derivative for x, derivative in found.items() if derivative != 0}


def saddle_point_equations(free_energy: FreeEnergy) -> tuple[Equation, ...]:
    """Return the stationarity conditions, each solved for the variable that it determines.

    A condition that is affine in a variable, with a coefficient that is free of all variables,
    determines it explicitly. A maximum matching assigns as many conditions as possible to
    variables in this way (a condition prefers the conjugate of the variable that it came from,
    which is how papers print them); what is left is paired with its own variable and stays
    implicit.

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
    explicit: dict[sp.Symbol, dict[sp.Symbol, sp.Expr]] = {}
    for origin, condition in conditions.items():
        explicit[origin] = {}
        # Papers print the conjugate as what the condition of an order parameter determines, and
        # the other way round; the variable itself is the last choice.
        conjugate = origin in free_energy.conjugates
        choices = sorted(
            condition.free_symbols & unknowns,
            key=lambda x: (x == origin, (x in free_energy.conjugates) == conjugate, str(x)),
        )
        for x in choices:
            slope = condition.diff(x)
            if slope != 0 and not slope.free_symbols & unknowns:
                explicit[origin][x] = slope
    matching = _maximum_matching({o: list(found) for o, found in explicit.items()})
    by_unknown = {x: origin for origin, x in matching.items()}
    free = [o for o in conditions if o not in matching]
    equations = []
    for x in (x for x in free_energy.variables if x in unknowns):
        if x in by_unknown:
            origin = by_unknown[x]
            rest = conditions[origin].xreplace({x: sp.S.Zero})
            value = _divide(-rest, explicit[origin][x])
            equations.append(Equation(x, value, x - value))
        else:
            origin = x if x in free else free[0]
            free.remove(origin)
            equations.append(Equation(x, None, conditions[origin]))
    return tuple(equations)


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


def _maximum_matching(
    candidates: Mapping[sp.Symbol, list[sp.Symbol]],
) -> dict[sp.Symbol, sp.Symbol]:
    """Kuhn's augmenting paths: {condition: variable}, as many pairs as possible."""
    owner: dict[sp.Symbol, sp.Symbol] = {}

    def assign(condition: sp.Symbol, seen: set[sp.Symbol]) -> bool:
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
    for condition in sorted(candidates, key=lambda c: (len(candidates[c]), str(c))):
        assign(condition, set())
    return {condition: x for x, condition in owner.items()}
