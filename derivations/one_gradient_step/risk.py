"""The risk of the ridge readout before and after one gradient step, at one point."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...digits import checked_digits
from ...errors import AssumptionError, ConvergenceError, ParameterError
from ...numeric.arguments import nonnegative_number
from ...result import Number, Result, quantity
from ..certificates.certificate import Certificate, certificate_wanted
from ..penalties import given_penalty
from .risk_kernel import LEAST_SQUARES, RIDGE, RIDGELESS, risk_kernel

if TYPE_CHECKING:
    from ..kernels.kernel import Kernel
    from ..kernels.solution import KernelSolution
    from .model import OneGradientStep

# The equations are solved for all others.
OUT_OF_RANGE = (
    "products of parameters overflow or underflow; with penalty, sample complexities, aspect "
    "ratio, step size and noise between 1e-30 and 1e30 they do not (a penalty of 0 is the limit "
    "of a vanishing one)"
)

# Fields that are numbers of the theory, with the names that kernels give them.
_OUTPUTS = {
    "initial": "risk_initial",
    "trained": "risk_trained",
    "improvement": "improvement",
    "bias_initial": "bias_initial",
    "bias_trained": "bias_trained",
    "variance_initial": "variance_initial",
    "variance_trained": "variance_trained",
    "training_error_initial": "training_error_initial",
    "training_error_trained": "training_error_trained",
    "objective_initial": "objective_initial",
    "objective_trained": "objective_trained",
    "effective_ridge": "effective_ridge",
    "ridge_derivative": "ridge_derivative",
    "inverse_s": "inverse_s",
}


@dataclass(frozen=True, repr=False)
class RidgeRisk(Result):
    r"""Errors of the ridge readout on the first layer before (initial) and after (trained) a step.

    Attributes
    ----------
    ridge : float or mpmath number
        Penalty λ of :math:`\sum(y - \varphi\cdot w/\sqrt N)^2 + \lambda|w|^2`.
    paper_ridge : float or mpmath number
        The same in the convention of the paper, λ_B = (β/α) λ.
    initial, trained : float or mpmath number
        Mean squared error on fresh inputs against the noise-free teacher, R_0 and R_GD.
    improvement : float or mpmath number
        δ = R_0 − R_GD ≥ 0, by a formula of its own.
    bias_initial, bias_trained : float or mpmath number
        Squared bias over fresh data sets of the readout, at a fixed first layer.
    variance_initial, variance_trained : float or mpmath number
        The rest of the risk.
    training_error_initial, training_error_trained : float or mpmath number
        Mean squared error on the readout's own data, noise included.
    objective_initial, objective_trained : float or mpmath number
        Minimum of :math:`\frac1n\sum(y - f)^2 + \frac{\lambda_B}{N}|a|^2`.
    effective_ridge : float or mpmath number
        ν.
    ridge_derivative : float or mpmath number
        D = dλ_B/dν, in (0, 1].
    inverse_s : float or mpmath number
        1/s of the closed form; 0 for a student without linear part.
    residual : float
        Relative residual of the equation of ν; 0 in closed form.
    errors : mapping from str to float
        Estimated absolute error of each number.
    rests_on : str
        What the numbers rest on.
    digits : int or None
        Digits asked for; None for floats.
    certificate : Certificate or None
        Proven intervals under the names of the kernel (``risk_trained``, …), where a proof was
        asked for.
    """

    _document = "one-step risk"
    _column = 25

    ridge: Number = field(metadata=quantity("ridge", r"\lambda"))
    paper_ridge: Number = field(metadata=quantity("paper ridge", r"\lambda_B"))
    initial: Number = field(metadata=quantity("initial", "R_0"))
    trained: Number = field(metadata=quantity("trained", r"R_\mathrm{GD}"))
    improvement: Number = field(metadata=quantity("improvement", r"\delta"))
    bias_initial: Number = field(metadata=quantity("bias initial", "B_0"))
    bias_trained: Number = field(metadata=quantity("bias trained", r"B_\mathrm{GD}"))
    variance_initial: Number = field(metadata=quantity("variance initial", "V_0"))
    variance_trained: Number = field(metadata=quantity("variance trained", r"V_\mathrm{GD}"))
    training_error_initial: Number = field(
        metadata=quantity("training error initial", r"E_{\mathrm{train},0}")
    )
    training_error_trained: Number = field(
        metadata=quantity("training error trained", r"E_\mathrm{train,GD}")
    )
    objective_initial: Number = field(metadata=quantity("objective initial", "L_0"))
    objective_trained: Number = field(metadata=quantity("objective trained", r"L_\mathrm{GD}"))
    effective_ridge: Number = field(metadata=quantity("effective ridge", r"\nu"))
    ridge_derivative: Number = field(metadata=quantity("ridge derivative", "D"))
    inverse_s: Number = field(metadata=quantity("inverse s", "1/s"))
    residual: float
    errors: Mapping[str, Number]
    rests_on: str
    digits: int | None = None
    certificate: Certificate | None = None

    @property
    def s(self) -> Any:
        """The variable of the paper's closed form, larger than 1 and β; inf if μ1 = 0."""
        return 1 / self.inverse_s if self.inverse_s else math.inf

    @property
    def relative_improvement(self) -> Any:
        """δ/R_0; 0 where R_0 is."""
        return self.improvement / self.initial if self.initial else 0 * self.improvement


def risk(
    model: OneGradientStep,
    ridge: object = None,
    *,
    digits: int | None = None,
    certify: bool = False,
) -> RidgeRisk:
    """Return the risk at one penalty.

    Raises
    ------
    ParameterError
        If no penalty is given, or it is negative or infinite.
    AssumptionError
        If the penalty is zero where the limit of a vanishing penalty does not exist.
    ConvergenceError
        If parameters are so large or small that their products are no floats.
    """
    certify = certificate_wanted(certify)
    name, value = given_penalty(ridge)
    number = nonnegative_number(name, value)
    if digits is not None:
        digits = checked_digits(digits)
    if number == 0:
        kernel = risk_kernel(model, limit_kind(model))
        solution = _solved(kernel, digits=digits, certify=certify)
        return _result(model, solution, ridge=0 * solution["risk_trained"])
    kernel = risk_kernel(model, RIDGE)
    if digits is None and not certify:
        penalty = number if name == "ridge" else number * model.alpha / model.beta
        if not 0 < penalty < math.inf:
            raise ParameterError(
                f"{name} = {number:g} is outside the range of floats in the other convention, in "
                f"which it is alpha/beta times or beta/alpha times as large"
            )
        return _result(model, _solved(kernel, ridge=penalty), ridge=penalty)
    from ..kernels.precise import exact_number

    exact = exact_number(number)
    if name == "paper_ridge":
        exact *= exact_number(model.alpha) / exact_number(model.beta)
    solution = _solved(kernel, ridge=exact, digits=digits, certify=certify)
    # The solution's own context, so that all numbers go together.
    penalty = float(exact) if digits is None else _in_context(solution, exact)
    return _result(model, solution, ridge=penalty)


def limit_kind(
    model: OneGradientStep, alpha: float | None = None, beta: float | None = None
) -> str:
    """Return which kernel has the limit of a vanishing penalty.

    Parameters
    ----------
    model : OneGradientStep
    alpha, beta : float, optional
        Default: those of the model.

    Raises
    ------
    AssumptionError
        At the interpolation peak.
    """
    alpha = model.alpha if alpha is None else alpha
    beta = model.beta if beta is None else beta
    student = model.student_moments
    if student.residual > 0:
        rank, count = beta, "neurons (alpha = beta)"
    else:
        rank = min(1.0, beta)
        count = "neurons (alpha = beta)" if beta <= 1 else "dimensions (alpha = 1), its rank"
    if alpha == rank:
        raise AssumptionError(
            "without a ridge penalty the risk is infinite where there are as many samples as "
            f"{count}, as at alpha = {alpha:g}, beta = {beta:g}: this is the interpolation "
            "peak; choose another alpha or beta, or a positive ridge, for which the risk is finite"
        )
    return LEAST_SQUARES if student.residual == 0 and alpha > rank else RIDGELESS


def _solved(kernel: Kernel, **arguments: Any) -> KernelSolution:
    try:
        return kernel.solve(**arguments)
    except (ConvergenceError, ZeroDivisionError, OverflowError) as error:
        raise ConvergenceError(f"the risk cannot be computed here: {OUT_OF_RANGE}") from error


def _result(model: OneGradientStep, solution: KernelSolution, *, ridge: Any) -> RidgeRisk:
    exact = solution.digits is not None
    standing = model.standing_at(vanishing_ridge=not ridge)
    ratio = model.beta / model.alpha
    if exact:
        from ..kernels.precise import exact_number

        ratio = _in_context(solution, exact_number(model.beta) / exact_number(model.alpha))
    return RidgeRisk(
        ridge=ridge,
        paper_ridge=ridge * ratio,
        **{name: solution[output] for name, output in _OUTPUTS.items()},
        residual=solution.residual,
        errors={name: solution.errors[output] for name, output in _OUTPUTS.items()},
        rests_on=f"{_accuracy(solution)}; {standing}",
        digits=solution.digits,
        certificate=_about_the_model(standing, solution.certificate),
    )


def _about_the_model(standing: str, certificate: Certificate | None) -> Certificate | None:
    """Add what has to hold for the intervals to be about networks, not the equations alone."""
    if certificate is None:
        return None
    return certificate.resting_on(
        "the equations are those of Gaussian features for d → ∞, which is no part of the proof; "
        f"for networks after the step: {standing}"
    )


def _accuracy(solution: KernelSolution) -> str:
    if solution.certificate is not None:
        return solution.certificate.rests_on
    if solution.digits is not None:
        return f"closed form; {solution.rests_on}"
    worst = max(solution.errors.values())
    return f"closed form in floats, rounding of at most {worst:.1e} (estimated)"


def _in_context(solution: KernelSolution, value: Any) -> Any:
    import sympy as sp

    ctx = solution["risk_trained"].context
    return ctx.mpf(str(sp.N(value, ctx.dps + 5)))
