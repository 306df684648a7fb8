r"""The peak of the risk at n = N for a small penalty, and what the step takes off it.

At n = N both q = λ_B/ν and D vanish with ν: :math:`\lambda_B = \nu^2 G` and
:math:`D/\nu \to 2\tau_1` with :math:`\tau_1 = \frac1N\operatorname{tr}\Sigma^{-1}`. So

.. math:: R + \Delta \simeq \frac{B|_{\nu=0} + \Delta}{2\sqrt{\lambda_B\tau_1}} .

The step lowers the peak through B and does not remove it. (Derived here, from the equations of Ba
et al., arXiv 2205.01445.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...digits import checked_digits
from ...errors import AssumptionError, ParameterError
from ...pages import Block
from ...result import Number, Result, quantity
from ..penalties import given_penalty, penalty_of

if TYPE_CHECKING:
    import sympy as sp

    from .model import OneGradientStep
    from .proofs import Property

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


def interpolation_peak(
    model: OneGradientStep, ridge: object, *, digits: int | None
) -> InterpolationPeak:
    """Return the peak; see :meth:`.analyses.Analyses.interpolation_peak`."""
    from ...runtime.precision import local_context

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
    found = {
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
        found = {name: float(value) for name, value in found.items()}
    return InterpolationPeak(**found, beta=model.beta, digits=digits)


def amplitudes(*, floor: bool = True) -> dict[str, sp.Expr]:
    """Return amplitudes before and after the step and τ_1, in the symbols of the model.

    Parameters
    ----------
    floor : bool
        Of a student with nonlinear part; without one, for N < d.
    """
    import sympy as sp

    from ...symbolic.ridge_equivalent import NO_SPIKE, response_without_floor
    from .risk_system import STEP, covariance
    from .symbols import beta, linear, noise, teacher_linear, teacher_residual

    at = covariance(sp.S.Zero)
    # Without a floor the resolvent of W^T W at zero exists for N < d.
    trace = at.resolvent if floor else 1 / (linear**2 * (1 - beta))
    response = at.response if floor else response_without_floor(beta)
    found = {"inverse_trace": trace}
    for layer, spike in (("initial", NO_SPIKE), ("trained", STEP)):
        bias = teacher_residual + teacher_linear**2 * response.bias(spike)
        found[layer] = (bias + noise) / (2 * sp.sqrt(trace))
    return found


def peak_property() -> Property:
    """The leading order of the peak, with its proof."""
    import sympy as sp

    from ...symbolic.ridge_equivalent import paper_ridge
    from .proofs import COVARIANCE, Identity, Positive, Property, nu

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
    import sympy as sp

    from .stationarity import exact_parameters
    from .symbols import alpha0

    known = exact_parameters(model, digits)
    rule = {x: sp.Rational(f.numerator, f.denominator) for x, f in known.items()}
    found = amplitudes(floor=bool(model.student_moments.residual))
    if alpha0 not in known:
        rule[alpha0] = sp.oo
    return {name: value.subs(rule).evalf(digits) for name, value in found.items()}
