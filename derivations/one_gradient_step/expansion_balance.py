r"""The equations of the risk for expansions, and how their unknowns balance to leading order.

The unknowns are the effective ridge ν and the companion h of the resolvent, which is
:math:`G = 1/(v + \nu + bh)`. Their leading powers depend on what keeps the covariance from being
singular: the residual variance v of the student (or ν itself), fewer neurons than dimensions, or
nothing, for a linear student with N ≥ d. (Derived here, from the equations of Ba et al.,
arXiv 2205.01445.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import sympy as sp

from ...symbolic.random_matrix import Resolvent
from ...symbolic.ridge_equivalent import ridgeless_effective_ridge
from .risk_system import companion as companion_symbol
from .risk_system import covariance, nu, resolvent, risk_system
from .symbols import alpha, beta, linear, residual, ridge

Exact = Mapping[sp.Symbol, sp.Expr]
Balanced = dict[sp.Symbol, tuple[int, sp.Expr]]


@cache
def risk_equations() -> tuple[sp.Expr, sp.Expr]:
    r"""Return the equations of h and of ν, as polynomials that vanish.

    :math:`bh^2 + (a + b(\beta - 1))h - a = 0` with a = v + ν, and
    :math:`\nu(\alpha/\beta - 1 + \nu G) = \lambda` with its denominator cleared.
    """
    at = covariance(nu)
    value = explicit_resolvent()
    closed = companion_symbol * (1 + beta * linear**2 * value) - 1
    penalty = at.ridge(alpha / beta - 1).xreplace({at.resolvent: value}) - ridge
    return _numerator(closed), _numerator(penalty)


def linear_student_equation() -> sp.Expr:
    r"""Return the equation of ν for a student without residual variance.

    :math:`\beta\lambda = \nu(\alpha - 1 + h)`, because then :math:`\nu G = 1 - (1 - h)/\beta`; in
    this form nothing cancels where there are more neurons than dimensions.
    """
    return sp.expand(nu * (alpha - 1 + companion_symbol) - beta * ridge)


def explicit_resolvent() -> sp.Expr:
    """Return G in ν and h."""
    return 1 / (nu + residual + linear**2 * companion_symbol)


@cache
def risk_outputs() -> dict[str, sp.Expr]:
    """Return what :func:`.risk_system.risk_system` gives out, in ν and h."""
    rule = {resolvent: explicit_resolvent()}
    return {name: value.xreplace(rule) for name, value in risk_system().outputs.items()}


def _numerator(expr: sp.Expr) -> sp.Expr:
    return sp.expand(sp.fraction(sp.together(expr))[0])


# ---------------------------------------------------------------------- leading terms


@dataclass(frozen=True)
class Balance:
    """Leading terms of an expansion.

    Attributes
    ----------
    root : int
        m: the series are in t with small quantity t^m.
    leading : dict from Symbol to (int, Expr)
        Powers of t and coefficients of ν and h.
    equations : tuple of Expr
    """

    root: int
    leading: Balanced
    equations: tuple[sp.Expr, sp.Expr]


def small_ridge_balance(known: Exact) -> Balance:
    """Return the balance for λ → 0 at given parameters; without noise, step and teacher."""
    a, b, v, slope = known[alpha], known[beta], known[residual], known[linear] ** 2
    if a < (b if v else sp.Min(1, b)):
        # Fewer samples than features: the effective ridge stays.
        return _regular(1, (0, left_ridge(known)), known)
    if v or b < 1:
        if a > b:
            return _regular(1, (1, b / (a - b)), known)
        return _regular(2, (1, 1 / sp.sqrt(resolvent_value(known, sp.S.Zero))), known)
    if b == 1:
        if a > 1:
            return _critical(2, 1 / (a - 1), slope)
        return _critical(3, sp.cbrt(slope), slope)
    if a > 1:
        return _singular(1, b / (a - 1), known)
    return _singular(2, sp.sqrt(slope * b * (b - 1)), known)


def large_alpha_balance(known: Exact, fixed: sp.Symbol) -> Balance:
    """Return the balance for α → ∞.

    Parameters
    ----------
    known : mapping
        Parameters, with a positive penalty.
    fixed : Symbol
        `ridge` for λ, whose effective ridge vanishes like β λ/α; `nu` for λ_B, which it tends to.
    """
    b, v, slope = known[beta], known[residual], known[linear] ** 2
    if fixed == nu:
        return _regular(1, (0, known[ridge]), known)
    if v or b < 1:
        return _regular(1, (1, b * known[ridge]), known)
    if b == 1:
        return _critical(2, known[ridge], slope)
    return _singular(1, b * known[ridge], known)


def left_ridge(known: Exact) -> sp.Expr:
    """Return ν for λ → 0 and more features than samples."""
    a, b = known[alpha], known[beta]
    found = ridgeless_effective_ridge(known[linear] ** 2, known[residual], a, a / b, (b - a) / b)
    return found.doit()


def resolvent_value(known: Exact, effective: sp.Expr) -> sp.Expr:
    """Return G at an effective ridge; for v = ν = 0 it exists for N < d."""
    shift, slope, aspect = known[residual] + effective, known[linear] ** 2, known[beta]
    if shift:
        return Resolvent(shift, slope, aspect).rewrite(sp.Piecewise).doit()
    return 1 / (slope * (1 - aspect))


def companion_value(known: Exact, effective: sp.Expr) -> sp.Expr:
    """Return h at an effective ridge; for v = ν = 0 it is positive for N < d."""
    if not known[residual] + effective:
        return 1 - known[beta]
    return 1 / (1 + known[beta] * known[linear] ** 2 * resolvent_value(known, effective))


def _regular(root: int, effective: tuple[int, sp.Expr], known: Exact) -> Balance:
    """A covariance that is not singular in the limit."""
    start = companion_value(known, effective[1] if effective[0] == 0 else sp.S.Zero)
    return Balance(root, {nu: effective, companion_symbol: (0, start)}, risk_equations())


def _singular(root: int, effective: sp.Expr, known: Exact) -> Balance:
    """A linear student with N > d: G grows like 1/ν."""
    slope, aspect = known[linear] ** 2, known[beta]
    other = effective / (slope * (aspect - 1))
    leading = {nu: (1, effective), companion_symbol: (1, other)}
    return Balance(root, leading, (risk_equations()[0], linear_student_equation()))


def _critical(root: int, effective: sp.Expr, slope: sp.Expr) -> Balance:
    """A linear student with N = d: G grows like 1/√ν."""
    leading = {nu: (2, effective), companion_symbol: (1, sp.sqrt(effective / slope))}
    return Balance(root, leading, risk_equations())
