"""Proofs that a computer can redo: identities of rational functions, and signs of sums of terms.

A statement such as "the improvement is positive" is shown in two kinds of steps. An identity brings
an expression to a form in which every term has a sign; it is decided exactly, as a rational
function of the variable s, in which the resolvent of the Marchenko–Pastur law is rational. The sign
of that form then follows from the assumptions on its symbols alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import sympy as sp

from ...pages import Block, Listing, Page
from ...symbolic.random_matrix import Resolvent
from ...symbolic.ridge_equivalent import FeatureCovariance, ScalarForm
from ..formulas import latex
from .symbols import alpha, beta

s = sp.Symbol("s", positive=True)
"""The variable of the closed form, larger than 1 and β."""
kappa = sp.Symbol("kappa", nonnegative=True)
"""μ_{>1}²/μ_1²."""
slope = sp.Symbol("b", positive=True)
"""b = μ_1², where it does not vanish."""
floor = sp.Symbol("v", nonnegative=True)
"""v = μ_{>1}²."""
nu = sp.Symbol("nu", positive=True)
"""The effective ridge ν."""

_RESOLVENT = sp.Symbol("G", positive=True)

COVARIANCE = FeatureCovariance(slope=slope, floor=floor, aspect=beta, effective_ridge=nu)
"""The features of the first layer, in symbols whose signs are known."""
SCALAR = ScalarForm(s, beta, alpha, kappa)
"""The same in the variable s."""


def in_s(expr: sp.Expr) -> sp.Expr:
    """Write an expression of :data:`COVARIANCE` as a rational function of s, κ, b, β and others.

    G = 1/(b(s − β)), v = κb and ν = b(ω − κ).

    Raises
    ------
    ValueError
        If there are several resolvents: one s belongs to one of them.
    """
    resolvent = 1 / (slope * (s - beta))
    expr = _with_resolvent(expr, resolvent)
    return expr.xreplace({nu: slope * SCALAR.effective_ridge, floor: slope * kappa})


def _with_resolvent(expr: sp.Expr, value: sp.Expr) -> sp.Expr:
    """Replace the one resolvent of an expression."""
    if len(expr.atoms(Resolvent)) > 1:
        raise ValueError(f"{expr} has resolvents at several points")
    return expr.replace(Resolvent, lambda *_: value)


class Step(Protocol):
    """One step of a proof."""

    @property
    def text(self) -> str:
        """What the step says."""
        ...

    def holds(self) -> bool:
        """Decide the step again, exactly."""
        ...

    def latex(self) -> str:
        """Return the step as a formula without delimiters."""
        ...


@dataclass(frozen=True)
class Identity:
    """Two sides are equal, as rational functions of s where they hold the resolvent."""

    text: str
    left: sp.Expr
    right: sp.Expr

    def holds(self) -> bool:
        """Decide the identity in the field of rational functions."""
        return vanishes(self.left - self.right)

    def latex(self) -> str:
        """Return "left = right"."""
        return f"{latex(self.left)} = {latex(self.right)}"


@dataclass(frozen=True)
class Positive:
    """An expression is positive by the assumptions on its symbols."""

    text: str
    expr: sp.Expr

    def holds(self) -> bool:
        """Ask for the sign; what SymPy does not know does not hold."""
        # The average of 1/(a + bX) is positive; a symbol says no more than that.
        return _with_resolvent(self.expr, _RESOLVENT).is_positive is True

    def latex(self) -> str:
        """Return "expression > 0"."""
        return f"{latex(self.expr)} > 0"


@dataclass(frozen=True)
class Limit:
    """A rational function tends to a value as a positive symbol tends to infinity."""

    text: str
    expr: sp.Expr
    symbol: sp.Symbol
    value: sp.Expr

    def holds(self) -> bool:
        """Compare with the ratio of leading coefficients."""
        try:
            found = limit_at_infinity(self.expr, self.symbol)
        except ValueError:
            return False
        return vanishes(found - self.value)

    def latex(self) -> str:
        """Return "lim expression = value"."""
        tends = rf"\lim_{{{latex(self.symbol)}\to\infty}}"
        return rf"{tends} {latex(self.expr)} = {latex(self.value)}"


def vanishes(expr: sp.Expr) -> bool:
    """Decide whether an expression is zero as a rational function, square roots included."""
    expr = in_s(expr)
    if expr.atoms(sp.Pow) and any(not power.exp.is_Integer for power in expr.atoms(sp.Pow)):
        return bool(sp.cancel(sp.together(expr)) == 0)
    if not expr.free_symbols:
        return bool(expr == 0)
    # Arithmetic in the field reduces every fraction at once: much faster than one big fraction.
    field = sp.QQ.frac_field(*sorted(expr.free_symbols, key=str))
    return bool(field.from_sympy(expr) == field.zero)


def limit_at_infinity(expr: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    """Return the limit of a rational function as its symbol tends to infinity.

    Raises
    ------
    ValueError
        If it is infinite.
    """
    numerator, denominator = (
        sp.Poly(part, symbol) for part in sp.fraction(sp.cancel(sp.together(in_s(expr))))
    )
    if numerator.degree() < denominator.degree():
        return sp.S.Zero
    if numerator.degree() > denominator.degree():
        raise ValueError(f"{expr} is unbounded for {symbol} -> oo")
    return sp.cancel(numerator.LC() / denominator.LC())


@dataclass(frozen=True, repr=False)
class Property(Page):
    """A property of the risk with its proof.

    Attributes
    ----------
    name : str
    statement : str
        In LaTeX: text with mathematics between dollar signs.
    steps : tuple of Step
        Of which the statement follows.
    values : mapping of str to Expr
        Formulas that the statement introduces, by name.
    """

    name: str
    statement: str
    steps: tuple[Step, ...]
    values: Mapping[str, sp.Expr] = field(default_factory=dict)

    def check(self) -> dict[str, bool]:
        """Decide every step again; what each says, and whether it holds."""
        return {step.text: step.holds() for step in self.steps}

    @property
    def proved(self) -> bool:
        """Whether every step holds."""
        return all(self.check().values())

    def page(self) -> Iterable[Block]:
        """Return the statement, and what its steps say with their formulas."""
        yield f"{self.name}: {self.statement}"
        formulas = [rf"\({step.latex()}\)" for step in self.steps]
        yield Listing([step.text for step in self.steps], beside=formulas)

    def __repr__(self) -> str:
        return f"Property({self.name!r}, {len(self.steps)} steps)"

    def _repr_markdown_(self) -> str:
        steps = "\n".join(rf"- {step.text}: ${step.latex()}$" for step in self.steps)
        return f"**{self.name}.** {self.statement}\n\n{steps}"
