r"""Coefficients of the expansions of the risk as formulas.

In units of μ_1² the equations hold α, β and κ only. At the point where an expansion begins the
closed form is rational in one variable s_0, and κ can be expressed by it, so that all coefficients
are rational functions, in which nothing has to be simplified; s_0 itself is the root of a quadratic
equation. At the interpolation threshold the root of the penalty is scaled so that the same holds.
The labels enter linearly. (Derived here.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...symbolic.asymptotic_series import Series, solve_series, substitute
from ...symbolic.ridge_equivalent import FeatureCovariance, ScalarForm, Spike
from ..expansions.expansion import LARGE_ALPHA, SMALL_RIDGE, SMALL_STEP
from .expansion_balance import explicit_resolvent, risk_equations
from .risk_system import companion, nu
from .spike_sizes import aligned_square, orthogonal_square
from .symbols import (
    alpha,
    alpha0,
    beta,
    linear,
    noise,
    residual,
    ridge,
    step_size,
    teacher_linear,
    teacher_residual,
)

if TYPE_CHECKING:
    from .expansion import Question

s0 = sp.Symbol("s_0", positive=True)
"""s where the expansion begins."""
nu0 = sp.Symbol("nu_0", positive=True)
"""ν there."""
paper_ridge = sp.Symbol("lambda_B", positive=True)
"""λ_B = (β/α) λ."""
aligned = sp.Symbol("theta_2^2", positive=True)
"""θ2² of the step."""
orthogonal = sp.Symbol("theta_perp^2", positive=True)
"""θ1² − θ2² of the step."""

# The penalty in units of μ_1², and Y θ2²/μ_*², which is α0 (θ1² − θ2²).
_penalty = sp.Symbol("l", positive=True)
_energy = sp.Symbol("y", positive=True)
_effective = sp.Symbol("x_0", positive=True)
# θ2²/η² and the other one.
_rates = sp.symbols("a_2 a_1", positive=True)


@dataclass(frozen=True)
class Case:
    """What decides about the form of the coefficients.

    Attributes
    ----------
    name : str
        Of the expansion.
    side : int
        Sign of α − β for vanishing penalties.
    of_paper : bool
        λ_B is held fixed for many samples.
    follows : bool
        The samples of the step go to infinity with those of the readout.
    factor : int
        η over the step size of the model.
    """

    name: str
    side: int = 0
    of_paper: bool = False
    follows: bool = False
    factor: int = 1

    @property
    def simple(self) -> bool:
        """Whether ν vanishes where the expansion begins, so that its formulas are short."""
        return self.side >= 0 and not self.of_paper


def case_of(question: Question) -> Case | None:
    """Return the case of an expansion; None if it has no formulas here.

    Those are students without linear or without nonlinear part and teachers without linear part,
    and a fixed penalty that is zero.
    """
    known = question.known
    if not (known[linear] and known[residual] and known[teacher_linear]):
        return None
    if question.name == SMALL_RIDGE:
        return Case(SMALL_RIDGE, side=int(sp.sign(known[alpha] - known[beta])))
    if not known[ridge]:
        return None
    if question.name == SMALL_STEP:
        return Case(SMALL_STEP, factor=question.model.loss_factor)
    return Case(LARGE_ALPHA, of_paper=question.of_paper, follows=question.model.alpha0 is None)


@dataclass(frozen=True)
class _Start:
    """Where an expansion begins, in units of μ_1².

    Attributes
    ----------
    symbols : tuple of Symbol
        Of the field of rational functions.
    small : mapping from Symbol to (int, Expr)
        Parameters that depend on t, with power and coefficient.
    leading : mapping from Symbol to (int, Expr)
        Of ν and h; empty if they are constant.
    rule : mapping from Symbol to Expr
        Constants.
    unit : Expr
        The coefficient of t^k is multiplied by its k-th power.
    """

    symbols: tuple[sp.Symbol, ...]
    small: Mapping[sp.Symbol, tuple[int, sp.Expr]]
    leading: Mapping[sp.Symbol, tuple[int, sp.Expr]]
    rule: Mapping[sp.Symbol, sp.Expr]
    unit: sp.Expr = sp.S.One


def aligned_formulas(case: Case, exponents: tuple[Fraction, ...]) -> dict[str, tuple[sp.Expr, ...]]:
    """Return the coefficients of the exponents as far as there are formulas, for every output."""
    root = max(e.denominator for e in exponents)
    found = {}
    for name, (start, values) in formulas(case).items():
        orders = [int(e * root) for e in exponents]
        kept = [k for k in orders if k < start + len(values)]
        found[name] = tuple(values[k - start] if k >= start else sp.S.Zero for k in kept)
    return found


@cache
def formulas(case: Case) -> dict[str, tuple[int, tuple[sp.Expr, ...]]]:
    """Return the power of the first term, in t, and two coefficients of every output.

    Only one of those with a spike where they are not simple: the next one fills pages.
    """
    start, terms = _start(case), 2 if case.name == SMALL_STEP else 1
    field = sp.QQ.frac_field(*start.symbols)
    number = field.from_sympy
    rule: dict[sp.Symbol, Series] = {
        x: Series.monomial(p, terms + 1, number(c)) for x, (p, c) in start.small.items()
    }
    fixed = {**start.rule, linear: sp.S.One}
    if start.leading:
        equations = [e.xreplace(fixed) for e in risk_equations()]
        leading = {x: (p, number(c)) for x, (p, c) in start.leading.items()}
        rule |= solve_series(equations, leading, rule, terms, number=number)

    def series(expr: sp.Expr, count: int = terms + 1) -> Series:
        short = {x: value.truncated(value.start + count) for x, value in rule.items()}
        found = substitute(expr.xreplace(fixed), short, number=number)
        return found if isinstance(found, Series) else Series.monomial(0, terms + 1, found)

    at = FeatureCovariance(sp.S.One, residual, beta, nu)
    closed = {at.resolvent: explicit_resolvent().xreplace({linear: sp.S.One})}
    ratio, shrinkage = beta / alpha, beta / alpha * ridge / nu
    pace = series(at.derivative(ratio, shrinkage).xreplace(closed)).power(sp.Integer(-1))
    kept = series(shrinkage).power(sp.Integer(2))
    bias = series(at.bias().xreplace(closed))
    spike = Spike(aligned, orthogonal)
    reduction = at.bias_reduction(spike).xreplace(closed)
    gain = series(reduction, terms + 1 if case.simple else 1)
    inverse = series(at.inverse_s.xreplace(closed))

    def shown(value: Series) -> Series:
        powers = range(value.start, value.end)
        return Series(
            tuple(
                _readable(field, c, start) * start.unit**k
                for c, k in zip(value.coefficients, powers, strict=True)
            ),
            value.start,
        )

    signal, rest = teacher_linear**2, teacher_residual + noise
    risk = signal * shown(bias * pace) + rest * shown(pace)
    training = signal * shown(bias * pace * kept) + rest * shown(pace * kept)
    found = {
        "trained": risk - signal * shown(gain * pace) - noise,
        "initial": risk - noise,
        "improvement": signal * shown(gain * pace),
        "bias_trained": signal * shown(bias) - signal * shown(gain) + teacher_residual,
        "bias_initial": signal * shown(bias) + teacher_residual,
        "training_error_trained": training - signal * shown(gain * pace * kept),
        "training_error_initial": training,
        "inverse_s": shown(inverse),
    }
    return {name: (value.start, value.coefficients) for name, value in found.items()}


def _readable(field: Any, value: Any, start: _Start) -> sp.Expr:
    """Return an element of the field in the symbols of the model, factored."""
    if value == 0:
        return sp.S.Zero
    return sp.factor(field.to_sympy(value), *start.symbols).xreplace(
        {
            _penalty: (paper_ridge if nu in start.leading and ridge in start.small else ridge)
            / linear**2,
            _effective: nu0 / linear**2,
            _energy: orthogonal_square() * alpha0 * aligned / aligned_square(),
            _rates[0]: aligned_square() / step_size**2,
            _rates[1]: orthogonal_square() / step_size**2,
        }
    )


def _start(case: Case) -> _Start:
    form = ScalarForm(s0, beta, alpha, sp.S.Zero)
    flat = {companion: (0, (s0 - beta) / s0)}
    spike = (aligned, orthogonal)
    if case.name == SMALL_STEP:
        return _short_steps(form, case.factor)
    if case.name == LARGE_ALPHA:
        small: dict[sp.Symbol, tuple[int, sp.Expr]] = {alpha: (-1, sp.S.One)}
        rule = {residual: form.omega, ridge: _penalty}
        first = (1, beta * _penalty)
        if case.of_paper:
            small[ridge] = (-1, _penalty / beta)
            rule, first = {residual: form.omega - _penalty}, (0, _penalty)
        if case.follows:
            small[orthogonal] = (1, _energy)
            spike = (aligned, _energy)
        return _Start((s0, beta, _penalty, *spike), small, {nu: first, **flat}, rule)
    if case.side < 0:
        # q = 0 at s_0.
        rule = {residual: (s0 - beta) * (alpha / beta - 1 / s0)}
        leading = {nu: (0, form.omega - rule[residual]), **flat}
        return _Start(
            (s0, alpha, beta, *spike), {ridge: (1, sp.S.One)}, leading, rule, 1 / linear**2
        )
    rule = {residual: form.omega}
    if case.side > 0:
        leading = {nu: (1, beta / (alpha - beta)), **flat}
        return _Start(
            (s0, alpha, beta, *spike), {ridge: (1, sp.S.One)}, leading, rule, 1 / linear**2
        )
    # ν² G = λ with G = 1/(s_0 - β): t is ν to leading order.
    return _Start(
        (s0, beta, *spike),
        {ridge: (2, 1 / (s0 - beta))},
        {nu: (1, sp.S.One), **flat},
        {**rule, alpha: beta},
        sp.sqrt(s0 - beta) / linear,
    )


def _short_steps(form: ScalarForm, factor: int) -> _Start:
    """Steps change nothing but the spike: λ and ν_0 belong to s_0."""
    kappa = form.omega - _effective
    shrinkage = ScalarForm(s0, beta, alpha, kappa).shrinkage
    rule = {
        residual: kappa,
        nu: _effective,
        ridge: _effective * shrinkage * alpha / beta,
        companion: (s0 - beta) / s0,
    }
    small = {x: (2, rate) for x, rate in zip((aligned, orthogonal), _rates, strict=True)}
    return _Start((s0, alpha, beta, _effective, *_rates), small, {}, rule, sp.Integer(factor))


def definitions(case: Case) -> dict[sp.Symbol, sp.Expr]:
    """Return what s_0 and the other letters of the formulas stand for."""
    kappa = residual / linear**2
    if case.name == SMALL_RIDGE and case.side < 0:
        found = {s0: ScalarForm(s0, beta, alpha, kappa).lower_bounds()[1]}
    else:
        held = nu0 if case.name == SMALL_STEP else paper_ridge if case.of_paper else sp.S.Zero
        # ω(s_0) = κ + ν_0/μ_1².
        found = {s0: ScalarForm(s0, beta, alpha, kappa + held / linear**2).lower_bounds()[0]}
    if case.name != SMALL_STEP:
        found[aligned] = aligned_square()
        if not case.follows:
            found[orthogonal] = orthogonal_square()
    return found
