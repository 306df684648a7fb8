r"""Limits of the risk of one model: long steps, many samples, wide networks, extreme penalties.

The formulas are those of :mod:`.properties`, with the numbers of the model in them.

At the interpolation peak, n = N, both q = λ_B/ν and D vanish with ν: :math:`\lambda_B = \nu^2 G`
and :math:`D/\nu \to 2\tau_1` with :math:`\tau_1 = \frac1N\operatorname{tr}\Sigma^{-1}`. So

.. math:: R + \Delta \simeq \frac{B|_{\nu=0} + \Delta}{2\sqrt{\lambda_B\tau_1}} .

The step lowers the peak through B and does not remove it. (Derived here, from the equations of Ba
et al., arXiv 2205.01445.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import sympy as sp

from ...deprecations import by_name
from ...digits import checked_digits
from ...errors import AssumptionError, ParameterError
from ...pages import Block
from ...result import Number, Result, Row, latex_number, quantity
from ...runtime.precision import local_context
from ...symbolic.systems.ridge_equivalent import (
    NO_SPIKE,
    Spike,
    paper_ridge,
    response_without_floor,
)
from ..formulas import latex
from ..penalties import given_penalty, one_penalty, penalty_of
from .optimal_ridge import exact_parameters
from .properties import (
    COVARIANCE,
    Identity,
    Positive,
    Property,
    aligned,
    aligned_rate,
    kappa,
    large_ridge_limit,
    large_step_limit,
    nu,
    orthogonal_rate,
    slope,
    wide_network_limit,
)
from .risk import STEP, covariance, model_parameters
from .symbols import (
    IDENTIFIERS,
    aligned_square,
    alpha0,
    beta,
    linear,
    noise,
    orthogonal_square,
    residual,
    step_size,
    teacher_linear,
    teacher_residual,
)

if TYPE_CHECKING:
    from .model import OneGradientStep
    from .properties import Property

# Parameters of any size: what a difference of two numbers may cost.
_MOST_DIGITS = 1000


@dataclass(frozen=True)
class RiskLimit:
    """One limit.

    Attributes
    ----------
    name : str
        What tends where.
    quantity : str
        What the limit is of, in LaTeX.
    value : float
        Infinite where the quantity grows without bound.
    formula : Expr or None
        In the symbols of :mod:`.symbols`; None where the number follows from the closed form.
    remark : str
        What the limit assumes.
    """

    name: str
    quantity: str
    value: float
    formula: sp.Expr | None
    remark: str

    def latex(self) -> str:
        """Return "quantity → formula", or the number, without delimiters."""
        shown = latex_number(f"{self.value:.10g}") if self.formula is None else latex(self.formula)
        return rf"{self.quantity} \to {shown}"


@dataclass(frozen=True, repr=False)
class RiskLimits(Result):
    """Limits of the risk of a model.

    Attributes
    ----------
    limits : tuple of RiskLimit
    paper_ridge : float
        λ_B of those that keep a penalty.
    """

    _document = "limits of the risk"

    limits: tuple[RiskLimit, ...]
    paper_ridge: float

    rests_on = "limits of the closed form, each derived from it by exact algebra"

    def __getitem__(self, name: str) -> RiskLimit:
        return next(limit for limit in self.limits if limit.name == name)

    def entries(self) -> list[Row]:
        """Return the limits with what they assume."""
        return [
            Row(x.name, x.name, x.quantity, f"({x.remark})", x.value, f"{x.value:.10g}", "")
            for x in self.limits
        ]

    def latex(self) -> str:
        """Return the limits in LaTeX, one below the other, without delimiters."""
        lines = r" \\ ".join(limit.latex() for limit in self.limits)
        return rf"\begin{{gathered}}{lines}\end{{gathered}}"

    def __repr__(self) -> str:
        return f"RiskLimits({len(self.limits)} limits at paper_ridge={self.paper_ridge:g})"


@one_penalty
@by_name("ridge", outer=1)
def limits(model: OneGradientStep, *, ridge: object = None) -> RiskLimits:
    """Return the limits of the risk in step size, samples, width and penalty.

    Parameters
    ----------
    ridge : float
        λ > 0 of the limits that keep a penalty, or :func:`giantstep.paper_ridge`.

    Returns
    -------
    RiskLimits
        Each with its formula and its number for this model; what they follow from is in
        :mod:`.properties`.

    Raises
    ------
    ParameterError
        If not exactly one penalty is given, or it is not positive and finite.
    """
    penalty = penalty_of(ridge, model.beta / model.alpha)
    if not penalty:
        name, _ = given_penalty(ridge)
        raise ParameterError(f"{name} must be positive for limits, got 0; ridgeless() has its own")
    at_penalty = model.paper_ridge(penalty)
    result = model.risk(ridge=penalty)
    linear_bias = result.bias_initial - model.best_linear_error
    share, wide, steep = _coefficients(model)
    # q = D = 1: the effective ridge is the penalty itself, and the spike is the population's.
    many = _many_samples(model, at_penalty)
    cosine = _float(share, model)
    return RiskLimits(
        (
            RiskLimit(
                "improvement, step size to infinity",
                r"\delta",
                cosine * linear_bias / result.ridge_derivative,
                None,
                "formal: after the limit of large d, in which steps are of order one",
            ),
            RiskLimit(
                "removed share, step size to infinity",
                r"\delta D/(B_0 - \|P_{>1}f_*\|^2)",
                cosine,
                share,
                "squared cosine of spike and teacher; zero where no step improves anything",
            ),
            *(
                RiskLimit(
                    f"risk {layer}, samples to infinity",
                    rf"R_{{\mathrm{{{layer}}}}}",
                    value,
                    None,
                    "n/d of the readout, and of the step if it follows, at fixed paper_ridge",
                )
                for layer, value in many.items()
            ),
            RiskLimit(
                "beta * improvement, beta to infinity",
                r"\beta\,\delta",
                _float(wide, model),
                wide,
                "at fixed paper_ridge; zero for a linear student with n >= d",
            ),
            *(
                RiskLimit(
                    f"risk {layer}, penalty to zero",
                    rf"R_{{\mathrm{{{layer}}}}}",
                    value,
                    None,
                    "infinite at the interpolation peak",
                )
                for layer, value in _ridgeless(model).items()
            ),
            RiskLimit(
                "paper_ridge * improvement, penalty to infinity",
                r"\lambda_B\,\delta",
                _float(steep, model),
                steep,
                "the improvement falls like one over the penalty",
            ),
        ),
        at_penalty,
    )


def _coefficients(model: OneGradientStep) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """Return removed share, coefficient of wide networks and of large penalties, as formulas."""
    if not model.student_moments.linear or not model.teacher_moments.linear:
        # No step improves anything.
        return (sp.S.Zero,) * 3
    share, wide, steep = (
        _in_model(result.values[name])
        for result, name in (
            (large_step_limit(), "share"),
            (wide_network_limit(), "coefficient"),
            (large_ridge_limit(), "coefficient"),
        )
    )
    if not model.student_moments.residual and model.alpha >= 1:
        # A linear student with n >= d: P vanishes, and the improvement falls faster than 1/β,
        # like β^(-3/2) at n = d and like β^(-3) beyond.
        wide = sp.S.Zero
    return share, wide, steep


def _in_model(expr: sp.Expr) -> sp.Expr:
    """Write a formula of a property in the symbols of the model."""
    rule = {
        aligned_rate: sp.cancel(aligned_square() / step_size**2),
        orthogonal_rate: sp.cancel(orthogonal_square() / step_size**2),
        aligned: aligned_square(),
        kappa: residual / linear**2,
        slope: linear**2,
    }
    return expr.xreplace(rule)


def _float(expr: sp.Expr, model: OneGradientStep) -> float:
    """Return the number of a formula in the symbols of the model."""
    values = model_parameters(model)
    # Exact numbers: SymPy then works with as many digits as differences in the formulas cost.
    rule = {
        symbol: sp.oo if values[name] == math.inf else sp.Rational(values[name])
        for symbol, name in IDENTIFIERS.items()
        if name in values
    }
    value = expr.subs(rule).evalf(20, maxn=_MOST_DIGITS)
    if not value.is_Float and not value.is_Rational:
        raise AssumptionError(f"{expr} has no value for this model, {model}: {value}")
    return float(value)


def _ridgeless(model: OneGradientStep) -> dict[str, float]:
    try:
        result = model.ridgeless()
    except AssumptionError:
        return {"initial": math.inf, "trained": math.inf}
    return {"initial": result.initial, "trained": result.trained}


def _many_samples(model: OneGradientStep, penalty: float) -> dict[str, float]:
    """Return R = B at ν = λ_B; where the step follows the readout, its spike is exact, too."""
    if not model.student_moments.linear:
        whole = model.teacher_moments.square
        return {"initial": whole, "trained": whole}
    step = Spike(aligned_square(), orthogonal_square())
    if model.alpha0 is None:
        step = Spike(aligned_square())
    at = covariance(sp.Rational(penalty))
    return {
        layer: _float(teacher_residual + teacher_linear**2 * at.bias(spike), model)
        for layer, spike in (("initial", NO_SPIKE), ("trained", step))
    }


_FLOAT_DIGITS = 17


@dataclass(frozen=True, repr=False)
class InterpolationPeak(Result):
    r"""Height of the peak at n = N, to leading order in the penalty and exactly.

    Attributes
    ----------
    ridge : float or mpmath number
        λ = λ_B, as n = N.
    amplitude_initial, amplitude_trained : float or mpmath number
        :math:`\sqrt{\lambda}\,(R + \Delta)` for λ → 0, before and after the step.
    initial, trained : float or mpmath number
        The risk to leading order, the amplitude over √λ, without Δ.
    exact_initial, exact_trained : float or mpmath number
        The risk itself.
    inverse_trace : float or mpmath number
        τ_1 = (1/N) tr Σ^{-1}.
    beta : float
        N/d = n/d.
    digits : int or None
        Digits asked for; None for floats.
    """

    _document = "interpolation peak"
    _derived = ("relative_error",)

    ridge: Number = field(metadata=quantity("penalty at n = N", r"\lambda"))
    amplitude_initial: Number = field(metadata=quantity("√λ (risk + Δ) for λ → 0, before", "A_0"))
    amplitude_trained: Number = field(
        metadata=quantity("√λ (risk + Δ) for λ → 0, after", r"A_\mathrm{GD}")
    )
    initial: Number = field(
        metadata=quantity("leading order, before", r"A_0/\sqrt\lambda - \Delta")
    )
    trained: Number = field(
        metadata=quantity("leading order, after", r"A_\mathrm{GD}/\sqrt\lambda - \Delta")
    )
    exact_initial: Number = field(metadata=quantity("exact risk, before", "R_0"))
    exact_trained: Number = field(metadata=quantity("exact risk, after", r"R_\mathrm{GD}"))
    inverse_trace: Number = field(metadata=quantity("trace of the inverse covariance", r"\tau_1"))
    beta: float
    digits: int | None = None

    rests_on = "leading order derived here, beside the risk of the limit d -> infinity"

    @property
    def relative_error(self) -> float:
        """How far the leading order is from the exact risk, the larger of both layers."""
        pairs = ((self.initial, self.exact_initial), (self.trained, self.exact_trained))
        return max(abs(float(a / b) - 1) if b else math.inf for a, b in pairs)

    def page(self) -> Iterable[Block]:
        """Return the numbers, and how far the leading order is off."""
        yield from super().page()
        yield f"relative error of the leading order {self.relative_error:.2g}"


@one_penalty
@by_name("ridge", outer=1)
def interpolation_peak(
    model: OneGradientStep, *, ridge: object = None, digits: int | None = None
) -> InterpolationPeak:
    r"""Return the height of the peak at n = N for a small penalty.

    Parameters
    ----------
    ridge : float
        λ > 0; that of the paper is the same at n = N.
    digits : int, optional
        So many digits. Floats are read as the decimal numbers that they print as.

    Returns
    -------
    InterpolationPeak
        The leading term :math:`(B + \Delta)/(2\sqrt{\lambda\tau_1})` beside the exact risk,
        for this model at α = β.

    Raises
    ------
    ParameterError
        If not exactly one penalty is given, or it is not positive and finite.
    AssumptionError
        If the student is linear and N ≥ d: its peak is at n = d and has another form.
    """
    penalty = penalty_of(ridge, 1.0)
    if not penalty:
        name, _ = given_penalty(ridge)
        raise ParameterError(f"{name} must be positive: without a penalty the peak is infinite")
    if digits is not None:
        digits = checked_digits(digits)
    student = model.student_moments
    if not student.residual and (model.beta >= 1 or not student.linear):
        raise AssumptionError(
            "a linear student with N >= d has its peak at n = d, not at n = N, and of another "
            f"form; choose beta < 1 (got {model.beta:g}) or a nonlinear student"
        )
    at_peak = replace(model, alpha=model.beta)
    ctx = local_context(digits or _FLOAT_DIGITS)
    values = {name: ctx.mpf(str(x)) for name, x in _evaluate(at_peak, ctx.dps).items()}
    exact = at_peak.risk(ridge=penalty, digits=digits)
    given = ctx.mpf(repr(penalty))
    noise = ctx.mpf(repr(model.noise_variance))
    root = ctx.sqrt(given)
    result = {
        "ridge": given,
        "amplitude_initial": values["initial"],
        "amplitude_trained": values["trained"],
        "initial": values["initial"] / root - noise,
        "trained": values["trained"] / root - noise,
        "exact_initial": exact.initial,
        "exact_trained": exact.trained,
        "inverse_trace": values["inverse_trace"],
    }
    if digits is None:
        result = {name: float(value) for name, value in result.items()}
    return InterpolationPeak(**result, beta=model.beta, digits=digits)


def amplitudes(*, floor: bool = True) -> dict[str, sp.Expr]:
    """Return amplitudes before and after the step and τ_1, in the symbols of the model.

    Parameters
    ----------
    floor : bool
        Of a student with nonlinear part; without one, for N < d.
    """
    at = covariance(sp.S.Zero)
    # Without a floor the resolvent of W^T W at zero exists for N < d.
    trace = at.resolvent if floor else 1 / (linear**2 * (1 - beta))
    response = at.response if floor else response_without_floor(beta)
    result = {"inverse_trace": trace}
    for layer, spike in (("initial", NO_SPIKE), ("trained", STEP)):
        bias = teacher_residual + teacher_linear**2 * response.bias(spike)
        result[layer] = (bias + noise) / (2 * sp.sqrt(trace))
    return result


def peak_property() -> Property:
    """The leading order of the peak, with its proof."""
    one = sp.S.One
    penalty = paper_ridge(COVARIANCE, one)
    pace = sp.expand(COVARIANCE.derivative(one, penalty / nu) / nu)
    start = COVARIANCE.resolvent.xreplace({nu: sp.S.Zero})
    return Property(
        "interpolation peak",
        r"At $n = N$, $R + \Delta \simeq (B|_{\nu=0} + \Delta)/(2\sqrt{\lambda_B\tau_1})$ for "
        r"$\lambda_B \to 0$, with $\tau_1 = \frac1N\operatorname{tr}\Sigma^{-1}$.",
        (
            Identity("λ_B at n = N", penalty, nu**2 * COVARIANCE.resolvent),
            Identity("D/ν where ν = 0", pace.xreplace({nu: sp.S.Zero}), 2 * start),
            Positive("τ_1 is positive", start),
        ),
        amplitudes(),
    )


def _evaluate(model: OneGradientStep, digits: int) -> dict[str, sp.Expr]:
    known = exact_parameters(model, digits)
    rule = {x: sp.Rational(f.numerator, f.denominator) for x, f in known.items()}
    result = amplitudes(floor=bool(model.student_moments.residual))
    if alpha0 not in known:
        rule[alpha0] = sp.oo
    return {name: value.subs(rule).evalf(digits) for name, value in result.items()}
