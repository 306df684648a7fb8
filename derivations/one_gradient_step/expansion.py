r"""Expansions of the risk of one gradient step: many samples, vanishing penalties, short steps.

The unknowns are the effective ridge ν and the companion h of the resolvent, which is
:math:`G = 1/(v + \nu + bh)`. Their leading powers depend on what keeps the covariance from being
singular: the residual variance v of the student (or ν itself), fewer neurons than dimensions, or
nothing, for a linear student with N ≥ d.

In units of μ_1² the equations hold α, β and κ only. At the point where an expansion begins the
closed form is rational in one variable s_0, and κ can be expressed by it, so that all coefficients
are rational functions, in which nothing has to be simplified; s_0 itself is the root of a quadratic
equation. At the interpolation threshold the root of the penalty is scaled so that the same holds.
The labels enter linearly. Coefficients are computed in floating point with guard digits, twice;
digits hold where both agree. A coefficient that is as small as the rounding of both is zero: what
makes it vanish is an identity.

The small quantity x is a rational function of one variable u of the closed form (s, or ν for a
student without linear part), and so are all outputs. The solution is the inverse function
u(x) at the point where the expansion begins. Over a disc around x = 0 it has one analytic branch
(in a root of x at a threshold) as long as it meets no critical point of x(u) and no pole of an
output there.

(Derived here, from the equations of Ba et al., arXiv 2205.01445.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...digits import checked_digits, mp_number
from ...errors import AssumptionError, ConvergenceError, ParameterError
from ...numeric.arguments import checked_switch, nonnegative_number
from ...numeric.spectra.inverse_branch import inverse_radius
from ...runtime.precision import local_context
from ...runtime.roots import secant
from ...symbolic.exact.series import Series, substitute
from ...symbolic.expressions.factors import factored
from ...symbolic.printing.compiled import compiled
from ...symbolic.systems.asymptotic_series import solve_series
from ...symbolic.systems.random_matrix import Resolvent
from ...symbolic.systems.ridge_equivalent import (
    FeatureCovariance,
    ScalarForm,
    Spike,
    ridgeless_effective_ridge,
)
from ..expansions.expansion import (
    LARGE_ALPHA,
    NAMES,
    SMALL_RIDGE,
    SMALL_STEP,
    Expansion,
    SymbolicSeries,
    checked_name,
    checked_order,
)
from ..penalties import PaperRidge, given_penalty, in_convention, one_penalty
from .optimal_ridge import exact_parameters
from .risk import (
    LEAST_SQUARES,
    STEP,
    companion,
    covariance,
    least_squares_system,
    limit_kind,
    nu,
    nu0,
    resolvent,
    ridgeless_system,
    risk_system,
)
from .symbols import (
    aligned_square,
    alpha,
    alpha0,
    beta,
    linear,
    noise,
    orthogonal_square,
    residual,
    ridge,
    step_size,
    teacher_linear,
    teacher_residual,
)

if TYPE_CHECKING:
    from .model import OneGradientStep
    from .risk import RidgeRisk

Exact = Mapping[sp.Symbol, sp.Expr]
Balanced = dict[sp.Symbol, tuple[int, sp.Expr]]
LinearEquations = tuple[Sequence[sp.Symbol], sp.Matrix, sp.Matrix]


@cache
def risk_equations() -> tuple[sp.Expr, sp.Expr]:
    r"""Return the equations of h and of ν, as polynomials that vanish.

    :math:`bh^2 + (a + b(\beta - 1))h - a = 0` with a = v + ν, and
    :math:`\nu(\alpha/\beta - 1 + \nu G) = \lambda` with its denominator cleared.
    """
    at = covariance(nu)
    value = explicit_resolvent()
    closed = companion * (1 + beta * linear**2 * value) - 1
    penalty = at.ridge(alpha / beta - 1).xreplace({at.resolvent: value}) - ridge
    return _numerator(closed), _numerator(penalty)


def linear_student_equation() -> sp.Expr:
    r"""Return the equation of ν for a student without residual variance.

    :math:`\beta\lambda = \nu(\alpha - 1 + h)`, because then :math:`\nu G = 1 - (1 - h)/\beta`; in
    this form nothing cancels where there are more neurons than dimensions.
    """
    return sp.expand(nu * (alpha - 1 + companion) - beta * ridge)


def explicit_resolvent() -> sp.Expr:
    """Return G in ν and h."""
    return 1 / (nu + residual + linear**2 * companion)


@cache
def risk_outputs() -> dict[str, sp.Expr]:
    """Return what :func:`.risk.risk_system` gives out, in ν and h."""
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
    """Return the balance for α → ∞."""
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
    result = ridgeless_effective_ridge(known[linear] ** 2, known[residual], a, a / b, (b - a) / b)
    return result.doit()


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
    return Balance(root, {nu: effective, companion: (0, start)}, risk_equations())


def _singular(root: int, effective: sp.Expr, known: Exact) -> Balance:
    """A linear student with N > d: G grows like 1/ν."""
    slope, aspect = known[linear] ** 2, known[beta]
    other = effective / (slope * (aspect - 1))
    leading = {nu: (1, effective), companion: (1, other)}
    return Balance(root, leading, (risk_equations()[0], linear_student_equation()))


def _critical(root: int, effective: sp.Expr, slope: sp.Expr) -> Balance:
    """A linear student with N = d: G grows like 1/√ν."""
    leading = {nu: (2, effective), companion: (1, sp.sqrt(effective / slope))}
    return Balance(root, leading, risk_equations())


s0 = sp.Symbol("s_0", positive=True)
"""s where the expansion begins."""
start_nu = sp.Symbol("nu_0", positive=True)
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
    result = {}
    for name, (start, values) in formulas(case).items():
        orders = [int(e * root) for e in exponents]
        selected = [k for k in orders if k < start + len(values)]
        result[name] = tuple(values[k - start] if k >= start else sp.S.Zero for k in selected)
    return result


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
        result = substitute(expr.xreplace(fixed), short, number=number)
        return result if isinstance(result, Series) else Series.monomial(0, terms + 1, result)

    at = FeatureCovariance(sp.S.One, residual, beta, nu)
    closed = {at.resolvent: explicit_resolvent().xreplace({linear: sp.S.One})}
    ratio, shrinkage = beta / alpha, beta / alpha * ridge / nu
    pace = series(at.derivative(ratio, shrinkage).xreplace(closed)).power(sp.Integer(-1))
    selected = series(shrinkage).power(sp.Integer(2))
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
    training = signal * shown(bias * pace * selected) + rest * shown(pace * selected)
    result = {
        "trained": risk - signal * shown(gain * pace) - noise,
        "initial": risk - noise,
        "improvement": signal * shown(gain * pace),
        "bias_trained": signal * shown(bias) - signal * shown(gain) + teacher_residual,
        "bias_initial": signal * shown(bias) + teacher_residual,
        "training_error_trained": training - signal * shown(gain * pace * selected),
        "training_error_initial": training,
        "inverse_s": shown(inverse),
    }
    return {name: (value.start, value.coefficients) for name, value in result.items()}


def _readable(field: Any, value: Any, start: _Start) -> sp.Expr:
    """Return an element of the field in the symbols of the model, factored."""
    if value == 0:
        return sp.S.Zero
    return factored(field.to_sympy(value), *start.symbols).xreplace(
        {
            _penalty: (paper_ridge if nu in start.leading and ridge in start.small else ridge)
            / linear**2,
            _effective: start_nu / linear**2,
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
        result = {s0: ScalarForm(s0, beta, alpha, kappa).lower_bounds()[1]}
    else:
        held = start_nu if case.name == SMALL_STEP else paper_ridge if case.of_paper else sp.S.Zero
        # ω(s_0) = κ + ν_0/μ_1².
        result = {s0: ScalarForm(s0, beta, alpha, kappa + held / linear**2).lower_bounds()[0]}
    if case.name != SMALL_STEP:
        result[aligned] = aligned_square()
        if not case.follows:
            result[orthogonal] = orthogonal_square()
    return result


# What cancels between parameters that differ by a few orders of magnitude; then more and more.
_GUARDS = (60, 110, 220, 440, 880)
# A coefficient that shrinks by so many digits when 50 are added is zero.
_VANISHING = 25
# Terms beyond the last order, in units of the small quantity: the remainder is looked for there.
_BEYOND = 4

_Found = tuple[int, dict[str, Series]]
_Small = Callable[[int, int], dict[sp.Symbol, Series]]


@dataclass(frozen=True)
class Coefficients:
    """Series of all outputs.

    Attributes
    ----------
    values : mapping from str to tuple of mpf
        As many as exponents.
    """

    exponents: tuple[Fraction, ...]
    values: Mapping[str, tuple[Any, ...]]
    neglected: Mapping[str, tuple[Fraction, Any] | None]
    remainder_order: Fraction


def coefficients(question: Question, order: int, digits: int) -> Coefficients:
    """Return the coefficients up to an order, all digits of which hold.

    Raises
    ------
    ConvergenceError
        If parameters differ by so many orders of magnitude that digits cancel without end.
    """
    runs = (_Run(question, order, local_context(digits + guard)).series() for guard in _GUARDS)
    for (root, coarse), (_, fine) in pairwise(runs):
        selected = {name: _agreed(coarse[name], fine[name], digits) for name in fine}
        if None not in selected.values():
            return _collected(selected, root, order, question.stride, digits)
    raise ConvergenceError(
        f"the coefficients of this expansion cannot be computed to {digits} digits: its parameters "
        "differ by too many orders of magnitude, or are too close to a threshold"
    )


class _Run:
    """One computation with so many digits."""

    def __init__(self, question: Question, order: int, ctx: Any) -> None:
        self._question, self._ctx, self._order = question, ctx, order
        self._known = question.known

    def series(self) -> _Found:
        """Return m and the outputs as series in t, known far enough beyond the last order."""
        name = self._question.name
        if name == SMALL_RIDGE:
            return self._balanced(
                small_ridge_balance(self._known),
                lambda root, terms: {ridge: Series.monomial(root, terms)},
            )
        if name == LARGE_ALPHA and self._known[ridge]:
            fixed = nu if self._question.of_paper else ridge
            return self._balanced(large_alpha_balance(self._known, fixed), self._samples)
        small = self._samples if name == LARGE_ALPHA else self._step
        return 1, self._extended(lambda terms: self._at_state(small(1, terms)), 1)

    # ------------------------------------------------------------------ what is small

    def _samples(self, root: int, terms: int) -> dict[sp.Symbol, Series]:
        follows = {alpha0} if self._question.model.alpha0 is None else set()
        rule = {x: Series.monomial(-root, terms) for x in {alpha} | follows}
        if self._question.of_paper and self._known[ridge]:
            penalty = self._number(self._known[ridge] / self._known[beta])
            rule[ridge] = Series.monomial(-root, terms, penalty)
        return rule

    def _step(self, root: int, terms: int) -> dict[sp.Symbol, Series]:
        factor = self._ctx.mpf(self._question.model.loss_factor)
        return {step_size: Series.monomial(root, terms, factor)}

    # ------------------------------------------------------------------ solutions

    def _balanced(self, balance: Balance, small: _Small) -> _Found:
        """Solve for ν and h, then insert them into the outputs."""

        def found(terms: int) -> dict[str, Any]:
            rule = small(balance.root, terms)
            fixed = {x: value for x, value in self._known.items() if x not in rule}
            leading = {x: (p, self._number(c)) for x, (p, c) in balance.leading.items()}
            equations = [e.xreplace(fixed) for e in balance.equations]
            rule |= solve_series(equations, leading, rule, terms - 1, number=self._number)
            return self._outputs(lambda expr: expr.xreplace(fixed), rule)

        return balance.root, self._extended(found, balance.root)

    def _at_state(self, rule: dict[sp.Symbol, Series]) -> dict[str, Any]:
        """Insert what does not depend on the small quantity into the outputs."""
        known = {x: value for x, value in self._known.items() if x not in rule}
        if known[ridge]:
            effective = self._effective_ridge()
            state = {nu: effective, companion: companion_value(known, effective)}
            outputs = None
        else:
            system, state = self._ridgeless()
            outputs = {"effective_ridge": nu0, **system.outputs}
        few = self._question.kind is not None and self._known[alpha] < self._known[beta]
        decided = {sp.Lt(alpha, beta): sp.true if few else sp.false}
        return self._outputs(
            lambda expr: expr.xreplace(decided).xreplace(state).xreplace(known), rule, outputs
        )

    def _outputs(
        self,
        known: Callable[[sp.Expr], sp.Expr],
        rule: Mapping[sp.Symbol, Series],
        outputs: Mapping[str, sp.Expr] | None = None,
    ) -> dict[str, Any]:
        """Return the outputs where some symbols are known and others series."""
        found = dict(rule)
        unknowns, matrix, column = self._question.linear_equations
        if unknowns:
            terms = max(len(x.coefficients) for x in rule.values())

            def series(expr: sp.Expr) -> Series:
                value = substitute(known(expr), rule, number=self._number)
                return self._as_series(value, terms)

            rows = [[series(x) for x in row] for row in matrix.tolist()]
            solved = linear_solution(rows, [series(x) for x in column])
            found |= dict(zip(unknowns, solved, strict=True))
        chosen = self._question.outputs if outputs is None else outputs
        return {
            name: substitute(known(expr), found, number=self._number)
            for name, expr in chosen.items()
        }

    def _ridgeless(self) -> tuple[Any, dict[sp.Symbol, sp.Expr]]:
        """Return the closed form of λ → 0 and its unknowns."""
        known, kind = self._known, self._question.kind
        least = kind == LEAST_SQUARES if kind else not known[residual]
        if least:
            return least_squares_system(), {nu0: sp.S.Zero}
        few = kind is not None and known[alpha] < known[beta]
        effective = left_ridge(known) if few else sp.S.Zero
        state = {
            nu0: effective,
            resolvent: resolvent_value(known, effective),
            companion: companion_value(known, effective),
        }
        return ridgeless_system(), state

    def _effective_ridge(self) -> sp.Expr:
        """Return ν of the fixed penalty, by the secant method from the float solution."""
        known, ctx = self._known, self._ctx
        at = covariance(nu)
        penalty = (at.ridge(alpha / beta - 1) - ridge).rewrite(sp.Piecewise)
        function = compiled(penalty.xreplace(known), (nu,), ctx)
        start = ctx.mpf(self._question.float_risk().effective_ridge)
        root = secant(
            function, start, start * (1 + ctx.mpf(10) ** -9), ctx.eps ** ctx.mpf(0.75),
            "the effective ridge of the fixed penalty",
        )  # fmt: skip
        if abs(function(root)) > self._number(known[ridge]) * ctx.mpf(10) ** -self._question.digits:
            raise ConvergenceError(
                "the effective ridge of the fixed penalty cannot be computed: parameters differ by "
                "too many orders of magnitude"
            )
        return sp.Float._new(root._mpf_, ctx.prec)

    def _extended(self, found: Callable[[int], dict[str, Any]], root: int) -> dict[str, Series]:
        """Return series that are known beyond the last order, whatever leading terms cancel."""
        last = root * (self._order + _BEYOND)
        terms = last + 3
        while True:
            series = {name: self._as_series(x, last + 1) for name, x in found(terms).items()}
            missing = last + 1 - min(x.end for x in series.values())
            if missing <= 0:
                return {name: x.truncated(last + 1) for name, x in series.items()}
            terms += missing

    def _as_series(self, value: Any, terms: int) -> Series:
        if isinstance(value, Series):
            return value
        return Series.monomial(0, terms, value)

    def _number(self, value: sp.Expr) -> Any:
        """Return a constant as a number of the context."""
        return mp_number(value, self._ctx)


def linear_solution(rows: list[list[Series]], column: list[Series]) -> list[Series]:
    """Return the solution of linear equations whose coefficients are series.

    By elimination; pivots are those of the lowest power, of these the largest.
    """
    rest = [[*row, value] for row, value in zip(rows, column, strict=True)]
    for k in range(len(rest)):
        candidates = [i for i in range(k, len(rest)) if rest[i][k].coefficients]
        best = min(candidates, key=lambda i: (rest[i][k].start, -abs(rest[i][k].coefficients[0])))
        rest[k], rest[best] = rest[best], rest[k]
        rest[k] = [x / rest[k][k] for x in rest[k]]
        for i, row in enumerate(rest):
            if i != k:
                rest[i] = [x - row[k] * pivot for x, pivot in zip(row, rest[k], strict=True)]
    return [row[-1] for row in rest]


# ---------------------------------------------------------------------- what holds


def _agreed(coarse: Series, fine: Series, digits: int) -> Series | None:
    """Return the coefficients that two computations share; None if digits are missing."""
    result = []
    largest = max(map(abs, fine.coefficients), default=0)
    for k, value in enumerate(fine.coefficients):
        order = fine.start + k
        other = coarse.coefficient(order) if order < coarse.end else 0
        if abs(value - other) * 10 ** (digits + 5) <= abs(value):
            result.append(value)
        elif abs(value) * 10**_VANISHING <= (abs(other) or largest * 10**-digits):
            result.append(0 * value)
        else:
            return None
    return Series(tuple(result), fine.start)


def _collected(
    series: Mapping[str, Series | None], root: int, order: int, stride: int, digits: int
) -> Coefficients:
    ctx = local_context(digits)
    known = {output_name(name): x for name, x in series.items() if x is not None}
    first = min([0, *(x.start for x in known.values() if x.coefficients)])
    steps = range(first, root * order + 1, stride)
    remainder = steps[-1] + stride
    return Coefficients(
        exponents=tuple(Fraction(k, root) for k in steps),
        values={
            # The sign rounds to the precision of the context.
            name: tuple(+ctx.convert(x.coefficient(k)) for k in steps)
            for name, x in known.items()
        },
        neglected={name: _first_left(x, remainder, root, ctx) for name, x in known.items()},
        remainder_order=Fraction(remainder, root),
    )


def _first_left(series: Series, start: int, root: int, ctx: Any) -> tuple[Fraction, Any] | None:
    for k in range(start, series.end):
        value = series.coefficient(k)
        if value:
            return Fraction(k, root), +ctx.convert(value)
    return None


def output_name(name: str) -> str:
    """Return the name that ``RidgeRisk`` gives an output of the kernel."""
    return name.removeprefix("risk_")


_DIGITS = 60

_s = sp.Symbol("s", positive=True)
_x = sp.Symbol("x", positive=True)


@dataclass(frozen=True)
class Region:
    """Where a series holds.

    Attributes
    ----------
    radius : mpf or None
        Of convergence, at least, in the small quantity; infinite if it converges everywhere.
    """

    text: str
    radius: Any


def region(question: Question, found: Coefficients) -> Region:
    """Return the radius of convergence of an expansion, and what it says in words."""
    ctx = local_context(_DIGITS)
    if not question.has_radius:
        return Region(f"{_place(question)}; the radius of convergence is not known", None)
    if question.name == SMALL_STEP:
        radius = _step_radius(question, ctx)
    elif question.known.get(ridge) == 0:
        radius = _ridgeless_radius(question, ctx)
    else:
        radius = _radius(question, found, ctx)
    return Region(_text(question, radius), +local_context(question.digits).convert(radius))


def _place(question: Question) -> str:
    known = question.known
    if question.name == SMALL_RIDGE:
        sign = sp.sign(known[alpha] - known[beta])
        return f"ridge -> 0 at alpha {('<', '=', '>')[int(sign) + 1]} beta"
    if question.name == SMALL_STEP:
        return "step_size -> 0"
    place = f"alpha -> inf at fixed {'paper_ridge' if question.of_paper else 'ridge'}"
    if question.model.alpha0 is None:
        place += ", where the samples of the step follow those of the readout"
    return place


def _text(question: Question, radius: Any) -> str:
    place = _place(question)
    if radius == radius.context.inf:
        return f"{place}; the series converges everywhere"
    limit = float(1 / radius if question.name == LARGE_ALPHA else radius)
    parameter = {SMALL_RIDGE: "ridge <", LARGE_ALPHA: "alpha >", SMALL_STEP: "step_size <"}
    return f"{place}; the series converges for {parameter[question.name]} {limit:.6g}"


# ---------------------------------------------------------------------- fixed effective ridge


def _step_radius(question: Question, ctx: Any) -> Any:
    """The outputs are rational in η², with poles where θ1²/s = -1."""
    rate = STEP.square.xreplace({**question.known, step_size: sp.S.One})
    square = mp_number(rate, ctx) * ctx.convert(
        question.model.risk(ridge=question.ridge, digits=_DIGITS).inverse_s
    )
    return 1 / (question.model.loss_factor * ctx.sqrt(square)) if square else ctx.inf


def _ridgeless_radius(question: Question, ctx: Any) -> Any:
    """For λ = 0 and n > N the outputs are rational in 1/α, with poles at n = N and θ1²/s = -1."""
    known = question.known
    rank = known[beta] if known[residual] else sp.Min(1, known[beta])
    result = [mp_number(1 / rank, ctx)]
    if question.model.alpha0 is None and known[linear]:
        square = STEP.square.xreplace({**known, alpha0: 1 / _x})
        inverse = 1 / sp.Max(1, known[beta])
        if known[residual]:
            rest = known[linear] ** 2 * resolvent_value(known, sp.S.Zero)
            inverse = 1 / (known[beta] + 1 / rest)
        slope = square.diff(_x) * inverse
        if slope:
            level = 1 + square.xreplace({_x: sp.S.Zero}) * inverse
            result.append(mp_number(level / slope, ctx))
    return min(result)


# ---------------------------------------------------------------------- penalties and samples


def _radius(question: Question, found: Coefficients, ctx: Any) -> Any:
    """Return the smallest critical value, or value at a pole, that the solution meets."""
    variable, quantity, singular = _uniformised(question)
    top, bottom = (
        sp.Poly(p, variable, domain=sp.QQ) for p in sp.fraction(sp.cancel(sp.together(quantity)))
    )
    parts = [top.diff() * bottom - top * bottom.diff()]
    for expr in singular:
        above = sp.fraction(sp.cancel(sp.together(expr.xreplace({_x: quantity}))))[0]
        parts.append(sp.Poly(above, variable, domain=sp.QQ))
    points = [
        root
        for part in parts
        if part.degree() > 0
        for root in ctx.polyroots(
            _coefficients(part.sqf_part(), ctx), maxsteps=500, extraprec=4 * ctx.prec
        )
    ]
    start = found.exponents.index(0)
    base = ctx.convert(found.values["effective_ridge"][start])
    if variable == _s:
        base = 1 / ctx.convert(found.values["inverse_s"][start])
    roots = ctx.polyroots(_coefficients(top.sqf_part(), ctx), maxsteps=500, extraprec=4 * ctx.prec)
    return inverse_radius(
        _coefficients(top, ctx),
        _coefficients(bottom, ctx),
        points,
        base=min(roots, key=lambda root: abs(root - base)),
        multiplicity=found.remainder_order.denominator,
        ctx=ctx,
    )


def _uniformised(question: Question) -> tuple[sp.Symbol, sp.Expr, list[sp.Expr]]:
    """Return u, x as a rational function of u, and what vanishes where an output has a pole."""
    slope, at = linear**2, covariance(nu)
    variable, value, trace = nu, nu, 1 / (residual + nu)
    singular = [residual + nu]
    if question.known[linear]:
        # s of the closed form: G = 1/(b(s - β)), and v + ν = b(s - 1)(s - β)/s.
        variable, trace = _s, 1 / (slope * (_s - beta))
        value = slope * (_s - 1) * (_s - beta) / _s - residual
        singular = [_s - 1, _s - beta, _s**2 - beta, _s + STEP.square]
    penalty = at.ridge(alpha / beta - 1).xreplace({at.resolvent: trace}).xreplace({nu: value})
    quantity, moving = penalty, {ridge}
    if question.name == LARGE_ALPHA:
        given = ridge * alpha / beta if question.of_paper else ridge
        equation = sp.expand(penalty - given)
        quantity, moving = -equation.coeff(alpha, 1) / equation.coeff(alpha, 0), {alpha}
        if question.model.alpha0 is None:
            moving.add(alpha0)
            singular = [x.xreplace({alpha0: 1 / _x}) for x in singular]
    fixed = {x: c for x, c in question.known.items() if x not in moving}
    return variable, quantity.xreplace(fixed), [x.xreplace(fixed) for x in singular]


def _coefficients(poly: sp.Poly, ctx: Any) -> list[Any]:
    return [mp_number(c, ctx) for c in poly.all_coeffs()]


# Digits of the moments beyond those of the coefficients.
_MOMENT_GUARD = 25

SYMBOLS = {
    "trained": r"R_\mathrm{GD}",
    "initial": "R_0",
    "improvement": r"\delta",
    "bias_trained": r"B_\mathrm{GD}",
    "bias_initial": "B_0",
    "variance_trained": r"V_\mathrm{GD}",
    "variance_initial": "V_0",
    "training_error_trained": r"E_{\mathrm{train,GD}}",
    "training_error_initial": r"E_{\mathrm{train},0}",
    "objective_trained": r"L_\mathrm{GD}",
    "objective_initial": "L_0",
    "effective_ridge": r"\nu",
    "ridge_derivative": "D",
    "inverse_s": "s^{-1}",
}
"""Outputs of the expansions, those of ``RidgeRisk``, with their letters."""


@dataclass(frozen=True)
class Question:
    """Which expansion of which model.

    Attributes
    ----------
    ridge : float, PaperRidge or None
        What is held fixed; None for an expansion in the penalty.
    digits : int
        Of the coefficients.
    """

    model: OneGradientStep
    name: str
    ridge: float | PaperRidge | None
    digits: int

    @property
    def of_paper(self) -> bool:
        """Whether the penalty of the paper is held fixed."""
        return isinstance(self.ridge, PaperRidge)

    @property
    def penalty(self) -> float | None:
        """The fixed penalty, in the convention that it was given in."""
        return None if self.ridge is None else float(given_penalty(self.ridge)[1])

    @cached_property
    def known(self) -> dict[sp.Symbol, sp.Expr]:
        """The exact parameters, with the fixed penalty."""
        result = {
            x: sp.Rational(f.numerator, f.denominator)
            for x, f in exact_parameters(self.model, self.digits + _MOMENT_GUARD).items()
        }
        result.setdefault(alpha0, sp.oo)
        if self.penalty is not None:
            result[ridge] = sp.Rational(repr(self.penalty))
            if self.of_paper and self.name == SMALL_STEP:
                result[ridge] *= result[alpha] / result[beta]
        return result

    @cached_property
    def kind(self) -> str | None:
        """Which kernel has the limit λ → 0 at the model's α; None where α goes to infinity."""
        if self.name == LARGE_ALPHA or self.penalty:
            return None
        return limit_kind(self.model)

    @property
    def stride(self) -> int:
        """Powers of the small quantity from one term to the next."""
        return 2 if self.name == SMALL_STEP else 1

    @property
    def has_radius(self) -> bool:
        """Whether all singularities of the outputs are known."""
        return True

    @property
    def outputs(self) -> Mapping[str, sp.Expr]:
        """What is expanded, in ν and h."""
        return {"effective_ridge": nu, **risk_outputs()}

    @property
    def linear_equations(self) -> LinearEquations:
        """Other unknowns of the outputs, with matrix and column of their linear equations."""
        return (), sp.zeros(0, 0), sp.zeros(0, 1)

    @property
    def symbols(self) -> Mapping[str, str]:
        """Outputs with their letters, the default one first."""
        return SYMBOLS

    @property
    def fixed(self) -> dict[str, Any]:
        """What is held fixed, as plain values."""
        return self.model.parameters()

    @property
    def rests_on(self) -> str:
        """What the equations rest on."""
        return self.model.standing

    def float_risk(self) -> RidgeRisk:
        """Return the risk of the model at the fixed penalty."""
        return self.model.risk(ridge=self.ridge)

    def exact(self, value: Any, digits: int | None) -> Mapping[str, Any]:
        """Return the outputs of the risk itself where the parameter has a value."""
        moved, ridge = self.moved(self.model, float(value))
        result = moved.risk(ridge=ridge, digits=digits)
        return {name: getattr(result, name) for name in SYMBOLS}

    def moved(self, model: Any, number: float) -> tuple[Any, Any]:
        """Return the model and the penalty where the parameter has a value."""
        if self.name == SMALL_RIDGE:
            return model, number
        moving = "alpha" if self.name == LARGE_ALPHA else "step_size"
        return model.at(**{moving: number}), self.ridge


@one_penalty
def expansion(
    model: OneGradientStep,
    name: str,
    order: int = 2,
    *,
    ridge: object = None,
    digits: int = 30,
    formulas: bool = False,
) -> Expansion:
    r"""Return the risk as a series: many samples, a vanishing penalty, or short steps.

    Parameters
    ----------
    name : {"large_alpha", "small_ridge", "small_step"}
        In 1/α (the samples of the step follow, unless the model has its own `alpha0`), in λ,
        or in the step size.
    order : int
        The last power of the small quantity, from 0 to 20.
    ridge : float
        The penalty that is held fixed, or :func:`giantstep.paper_ridge`; none for
        "small_ridge".
    digits : int
        Of the coefficients, from 1 to 1000.
    formulas : bool
        With formulas of the first coefficients, which take up to a few seconds once; for
        students and teachers with linear part and students that are not linear.

    Returns
    -------
    Expansion
        Of risk, bias, variance, training error and objective, before and after the step, with
        the radius of convergence. At the interpolation threshold "small_ridge" is a series in
        √λ that begins with the peak.

    Raises
    ------
    ParameterError
        If there is no such expansion, an argument is outside its range, or not exactly the
        penalties are given that are held fixed.
    AssumptionError
        If the fixed penalty is 0 at the interpolation peak, or the student jumps and the
        series is in the step size.

    Examples
    --------
    >>> from giantstep import OneGradientStep
    >>> model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2,
    ...                         noise_variance=0.25)
    >>> series = model.expansion("large_alpha", ridge=0.1)
    >>> print(series.latex("initial"))
    R_0 = 0.0955154 + 0.518273\,\alpha^{-1} - 0.723410\,\alpha^{-2} + O(\alpha^{-3})
    >>> left = series.estimate_of_remainder(100.0, "initial")
    >>> print(f"{series(100.0, 'initial'):.7f} {left:.1e}")
    0.1006258 1.9e-06
    """
    wanted = checked_digits(digits)
    question = Question(model, *checked_question(model, checked_name(name), ridge), wanted)
    return expanded(question, order, formulas=checked_switch("formulas", formulas))


def expanded(question: Question, order: int, *, formulas: bool) -> Expansion:
    """Return the answer to a question."""
    result = coefficients(question, checked_order(order), question.digits)
    case = case_of(question) if formulas else None
    where = region(question, result)
    parameter, _ = NAMES[question.name]
    return Expansion(
        name=question.name,
        parameter=parameter,
        point=math.inf if question.name == LARGE_ALPHA else 0.0,
        exponents=result.exponents,
        coefficients={k: result.values[k] for k in question.symbols},
        neglected={k: result.neglected[k] for k in question.symbols},
        remainder_order=result.remainder_order,
        digits=question.digits,
        fixed=_fixed(question),
        symbols=question.symbols,
        region=where.text,
        rests_on=(
            f"equations of the risk, order by order; coefficients to {question.digits} digits; "
            f"{question.rests_on}"
        ),
        radius=where.radius,
        symbolic=None
        if case is None
        else SymbolicSeries(aligned_formulas(case, result.exponents), definitions(case)),
        exact=question.exact,
    )


def checked_question(
    model: OneGradientStep, name: str, ridge: object
) -> tuple[str, float | PaperRidge | None]:
    """Return the expansion and which penalty is held fixed."""
    if name == SMALL_RIDGE:
        if ridge is not None:
            given, value = given_penalty(ridge)
            raise ParameterError(
                f"{given} is what {name!r} expands in, so it cannot be held fixed at {value!r}; "
                "leave it out"
            )
        return name, None
    if name == SMALL_STEP and model.student_moments.jumps:
        raise AssumptionError(
            f"student {model.student!r} jumps: its gradient step is not defined, so there is no "
            "expansion in the step size; choose a continuous activation such as erf or tanh"
        )
    kind, value = given_penalty(ridge)
    return name, in_convention(kind, nonnegative_number(kind, value))


def _fixed(question: Question) -> dict[str, Any]:
    moving = {LARGE_ALPHA: "alpha", SMALL_STEP: "step_size"}.get(question.name)
    result = {k: v for k, v in question.fixed.items() if k != moving}
    kind = "paper_ridge" if question.of_paper else "ridge"
    return result if question.penalty is None else {**result, kind: question.penalty}
