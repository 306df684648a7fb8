r"""The risk of the ridge readout before and after one gradient step: at one point and at many.

The features of the network are equivalent to Gaussian ones of covariance
:math:`\mu_1^2W^TW + \mu_{>1}^2` (Ba et al., arXiv 2205.01445), with W the first layer before or
after the step. Labels have the linear part :math:`\mu_1^*`, the rest :math:`\mu_{>1}^{*2}` acts as
noise of the readout. :mod:`.symbolic.systems.ridge_equivalent` does the rest. The equations are the
same for all models: they are lowered to kernels once and kept as text, and a model's parameters are
the defaults of its kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ... import __version__
from ...deprecations import by_name
from ...digits import checked_digits
from ...errors import AssumptionError, ConvergenceError, ParameterError
from ...numeric.arguments import nonnegative_number
from ...numeric.cache import FileCache
from ...numeric.kernel_code import KernelCode
from ...numeric.saddle_point_solver import BatchSolution, refusal
from ...result import Number, Result, quantity
from ...symbolic.lowering.lowered import lower
from ...symbolic.systems.ridge_equivalent import (
    NO_SPIKE,
    FeatureCovariance,
    SignalResponse,
    Spike,
    isotropic_effective_ridge,
    response_without_floor,
    ridgeless_effective_ridge,
)
from ...symbolic.systems.saddle_point import SaddlePointSystem
from ..certificates.certificate import Certificate, certificate_wanted
from ..curves import Columns, Names
from ..derived import derived
from ..kernels.arguments import Tie
from ..kernels.certified import enclosed_parameter
from ..kernels.code import kernel_code, latex_names, parameter_domains
from ..kernels.kernel import Kernel
from ..kernels.precise import exact_number
from ..penalties import PAPER_RIDGE, RIDGE, given_penalty, one_penalty
from .symbols import (
    IDENTIFIERS,
    aligned_square,
    alpha,
    beta,
    linear,
    noise,
    orthogonal_square,
    residual,
    ridge,
    teacher_linear,
    teacher_residual,
)

if TYPE_CHECKING:
    from ...symbolic.lowering.lowered import LoweredSystem
    from ..kernels.solution import KernelSolution
    from .model import OneGradientStep

SOURCE = (
    "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445; closed form of the limit derived here"
)

nu = sp.Symbol("nu", positive=True)
"""The effective ridge of readouts with a penalty."""

nu0 = sp.Symbol("nu_0", nonnegative=True)
"""The effective ridge in the limit of a vanishing penalty."""

STEP = Spike(aligned_square(), orthogonal_square())
"""What the step adds to the first layer."""

resolvent = sp.Symbol("G", positive=True)
r""":math:`\frac1N\operatorname{tr}(\Sigma+\nu)^{-1}` of the initial covariance Σ."""

companion = sp.Symbol("h", positive=True)
r""":math:`1/(1 + \beta\mu_1^2G)`, the part of the linear labels that initial features miss."""

# Differences with the signs of their parameters, as floats subtract them.
_EXCESS = (alpha - beta) / beta
_RATIO, _SAMPLING = beta / alpha, alpha / beta


def covariance(effective_ridge: sp.Expr) -> FeatureCovariance:
    """Return the covariance of the initial features at an effective ridge."""
    return FeatureCovariance(linear**2, residual, beta, effective_ridge)


@dataclass(frozen=True)
class Readout:
    r"""What a readout does to labels, traces and signal apart.

    Attributes
    ----------
    shrinkage : Expr
        q = λ_B/ν: residuals on the training set are q times those on fresh labels.
    derivative : Expr
        D = dλ_B/dν.
    freedom : Expr
        1 - D, by a formula of its own.
    """

    response: SignalResponse
    shrinkage: sp.Expr
    derivative: sp.Expr
    freedom: sp.Expr

    def outputs(self) -> dict[str, sp.Expr]:
        """Return risk, bias, variance, training error and objective, before and after the step."""
        result: dict[str, dict[str, sp.Expr]] = {}
        for layer, spike in (("trained", STEP), ("initial", NO_SPIKE)):
            bias = teacher_residual + teacher_linear**2 * self.response.bias(spike)
            left = teacher_linear**2 * self.response.unexplained(spike) + teacher_residual + noise
            fresh = (bias + noise) / self.derivative
            variance = fresh * self.freedom
            result[layer] = {
                "risk": bias + variance,
                "bias": bias,
                "variance": variance,
                "training_error": self.shrinkage**2 * fresh,
                "objective": self.shrinkage * left,
            }
        reduction = teacher_linear**2 * self.response.bias_reduction(STEP) / self.derivative
        names = {
            f"{quantity}_{layer}": values[quantity]
            for quantity in ("risk", "bias", "variance", "training_error", "objective")
            for layer, values in result.items()
        }
        return {
            **names,
            "improvement": reduction,
            "ridge_derivative": self.derivative,
            "inverse_s": self.response.inverse_s,
        }


def ridge_readout() -> Readout:
    """Return what the readout does at a positive penalty, in the effective ridge."""
    at, shrinkage = covariance(nu), _RATIO * ridge / nu
    return Readout(
        response=at.response,
        shrinkage=shrinkage,
        derivative=at.derivative(_RATIO, shrinkage),
        freedom=_RATIO * at.degrees_of_freedom_2,
    )


def risk_system() -> SaddlePointSystem:
    """Return the risk at a positive penalty, its effective ridge by Newton's method.

    Notes
    -----
    The equation says that ν is the effective ridge of isotropic features whose variance is the
    level of the covariance at ν. It starts from the mean of the eigenvalues, an upper bound.
    """
    at, readout = covariance(nu), ridge_readout()
    return SaddlePointSystem.from_fixed_point(
        {
            nu: isotropic_effective_ridge(
                residual + linear**2 * companion, ridge, _SAMPLING, _EXCESS
            ),
            resolvent: at.resolvent,
            companion: 1 / (1 + beta * linear**2 * resolvent),
        },
        name="one_step_risk",
        parameters=tuple(IDENTIFIERS),
        outputs=in_symbols(readout.outputs(), at),
        identifiers=_identifiers(nu, *IDENTIFIERS),
        start={nu: isotropic_effective_ridge(linear**2 + residual, ridge, _SAMPLING, _EXCESS)},
        source=SOURCE,
        title="Ridge readout after one gradient step on the first layer",
        # Full steps converge from the start above: the level varies by a bounded factor.
        safeguarded=False,
    )


def ridgeless_system() -> SaddlePointSystem:
    """Return the limit of the risk for a vanishing penalty, in closed form; not for n = N.

    The residual variance of the student must be positive, or n smaller than d and N.
    """
    few = sp.Lt(alpha, beta)
    larger = ridgeless_effective_ridge(linear**2, residual, alpha, _SAMPLING, (beta - alpha) / beta)
    at = covariance(nu0)
    shrinkage = sp.Piecewise((0, few), ((alpha - beta) / alpha, True))
    readout = Readout(
        response=at.response,
        shrinkage=shrinkage,
        derivative=at.derivative(_RATIO, shrinkage),
        freedom=_RATIO * at.degrees_of_freedom_2,
    )
    equations = {
        nu0: sp.Piecewise((larger, few), (0, True)),
        resolvent: at.resolvent,
        companion: 1 / (1 + beta * linear**2 * resolvent),
    }
    return _explicit("one_step_ridgeless_risk", equations, in_symbols(readout.outputs(), at))


def least_squares_system() -> SaddlePointSystem:
    """Return the same limit for a linear student, for more samples than N or d."""
    left = (alpha - sp.Min(1, beta)) / alpha
    readout = Readout(
        response=response_without_floor(beta),
        shrinkage=left,
        derivative=left,
        freedom=_RATIO * sp.Min(1, 1 / beta),
    )
    return _explicit("one_step_least_squares_risk", {nu0: sp.S.Zero}, readout.outputs())


def in_symbols(outputs: Mapping[str, sp.Expr], at: FeatureCovariance) -> dict[str, sp.Expr]:
    """Return expressions in the resolvent and its companion, which the equations name."""
    return {
        name: value.xreplace({at.resolvent: resolvent}).subs(
            1 + beta * linear**2 * resolvent, 1 / companion
        )
        for name, value in outputs.items()
    }


def _explicit(
    name: str, equations: Mapping[sp.Symbol, sp.Expr], outputs: Mapping[str, sp.Expr]
) -> SaddlePointSystem:
    parameters = tuple(x for x in IDENTIFIERS if x is not ridge)
    return SaddlePointSystem.from_fixed_point(
        equations,
        name=name,
        parameters=parameters,
        outputs=outputs,
        identifiers=_identifiers(nu0, *parameters),
        source=SOURCE,
        title="Ridge readout after one gradient step, for a vanishing penalty",
    )


def _identifiers(effective_ridge: sp.Symbol, *parameters: sp.Symbol) -> dict[sp.Symbol, str]:
    return {
        **{x: IDENTIFIERS[x] for x in parameters},
        effective_ridge: "effective_ridge",
        resolvent: "resolvent",
        companion: "companion",
    }


RIDGELESS, LEAST_SQUARES = "ridgeless", "least squares"


def risk_kernel(model: OneGradientStep, kind: str = RIDGE) -> Kernel:
    """Return a kernel of the risk, whose defaults are those of a model, but for the penalty.

    Of a positive penalty ("ridge"), of the limit of a vanishing one ("ridgeless"), or of that for a
    linear student and more samples than neurons or dimensions ("least squares").
    """
    return _derivation(model.cache, kind).kernel(
        model,
        make=partial(_lowered, kind),
        defaults=model_parameters(model),
        exact_defaults=partial(exact_parameters, model),
        proven_defaults=partial(proven_parameters, model),
    )


def model_parameters(model: OneGradientStep) -> dict[str, float]:
    """Return the parameters of a model by their names in kernels; the penalty is none."""
    return {
        "alpha": model.alpha,
        "alpha0": model.step_samples,
        "beta": model.beta,
        "step_size": model.effective_step_size,
        "noise_variance": model.noise_variance,
        "student_linear": model.student_moments.linear,
        "student_residual": model.student_moments.residual,
        "teacher_linear": model.teacher_moments.linear,
        "teacher_residual": model.teacher_moments.residual,
    }


def _same(value: Any, sqrt: Callable[[Any], Any]) -> Any:
    return value


def exact_parameters(model: OneGradientStep, ctx: Any) -> dict[str, Any]:
    """Return the same as mpmath numbers: floats as the decimals they print as, moments exactly."""
    result = {name: ctx.mpf(repr(value)) for name, value in model_parameters(model).items()}
    for layer, known in (("student", model.student_moments), ("teacher", model.teacher_moments)):
        digits = known.precise(ctx.dps)
        result[f"{layer}_linear"] = ctx.mpf(digits["linear"])
        result[f"{layer}_residual"] = ctx.mpf(digits["residual"])
    return result


def proven_parameters(model: OneGradientStep, digits: int) -> dict[str, Any]:
    """Return the same as proven intervals."""
    result: dict[str, Any] = {
        name: enclosed_parameter(exact_number(value), digits)
        for name, value in model_parameters(model).items()
    }
    for layer, known in (("student", model.student_moments), ("teacher", model.teacher_moments)):
        proven = known.certified(digits)
        result |= {f"{layer}_{part}": proven[part] for part in ("linear", "residual")}
    return result


@dataclass(frozen=True)
class RiskDerivation:
    """What is kept of a system for the risk: all that its kernel is made of but numbers."""

    name: str
    title: str
    code: KernelCode
    domains: Mapping[str, str]
    labels: Mapping[str, str]

    @classmethod
    def of(cls, lowered: LoweredSystem) -> Self:
        """Return what is kept of a lowered system."""
        domains = parameter_domains(lowered) | {"alpha0": "extended positive"}
        if "ridge" in domains:
            # A vanishing penalty has equations of its own.
            domains["ridge"] = "positive"
        return cls(
            name=lowered.system.name,
            title=lowered.system.title,
            code=kernel_code(lowered),
            domains=domains,
            labels=latex_names(lowered),
        )

    def kernel(self, model: OneGradientStep, **given: Any) -> Kernel:
        """Return the kernel of a model, with its equations and parameters as given."""
        return Kernel(
            name=self.name,
            title=self.title,
            code=self.code,
            domains=self.domains,
            # The step has the samples of the readout, unless it has its own.
            ties={"alpha0": Tie("alpha", _same)} if model.alpha0 is None else {},
            labels=self.labels,
            cache_folder=model.cache_folder,
            **given,
        )


@derived("one_gradient_step/risk", RiskDerivation)
def _derivation(kind: str) -> RiskDerivation:
    return RiskDerivation.of(_lowered(kind))


@lru_cache(maxsize=3)
def _lowered(kind: str) -> LoweredSystem:
    systems = {RIDGE: risk_system, RIDGELESS: ridgeless_system, LEAST_SQUARES: least_squares_system}
    return lower(systems[kind]())


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


@one_penalty
@by_name("ridge", outer=1)
def solve(
    model: OneGradientStep,
    *,
    ridge: object = None,
    digits: int | None = None,
    certify: bool = False,
) -> RidgeRisk:
    r"""Return the risk of the ridge readout before and after the step, at one penalty.

    Parameters
    ----------
    ridge : float
        λ ≥ 0 of :math:`\sum(y - \varphi\cdot w/\sqrt N)^2 + \lambda|w|^2`; 0 is the limit of
        a vanishing penalty. :func:`giantstep.paper_ridge` gives it as λ_B of
        :math:`\frac1n\sum(y - f)^2 + \frac{\lambda_B}{N}|a|^2`.
    digits : int, optional
        So many digits with mpmath. Floats are then read as the decimal numbers that they
        print as.
    certify : bool
        Prove `digits` digits (default: 15) with ball arithmetic; the result holds the
        certificate.

    Raises
    ------
    ParameterError
        If no penalty is given, or it is negative or infinite.
    AssumptionError
        If the penalty is zero at the interpolation peak, n = N.
    CertificationError
        If a proof is wanted and does not succeed.
    MissingDependencyError
        If a proof is wanted and python-flint is not installed.

    Examples
    --------
    >>> from giantstep import OneGradientStep, paper_ridge
    >>> model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2,
    ...                         noise_variance=0.25)
    >>> risk = model.risk(ridge=paper_ridge(0.05))
    >>> print(f"{risk.initial:.12f} - {risk.improvement:.12f} = {risk.trained:.12f}")
    0.310294640925 - 0.027682845422 = 0.282611795503
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
    exact = exact_penalty(model, name, number)
    solution = _solved(kernel, ridge=exact, digits=digits, certify=certify)
    # The solution's own context, so that all numbers go together.
    penalty = float(exact) if digits is None else _in_context(solution, exact)
    return _result(model, solution, ridge=penalty)


def exact_penalty(model: OneGradientStep, name: str, number: Any) -> sp.Expr:
    """Return the penalty λ, given in the convention of this name, as an exact number."""
    result = exact_number(number)
    if name == "paper_ridge":
        result *= exact_number(model.alpha) / exact_number(model.beta)
    return result


def limit_kind(
    model: OneGradientStep, alpha: float | None = None, beta: float | None = None
) -> str:
    """Return which kernel has the limit of a vanishing penalty; AssumptionError at n = N."""
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
    ctx = solution["risk_trained"].context
    return ctx.mpf(str(sp.N(value, ctx.dps + 5)))


Array = NDArray[np.float64]

DOMAINS = {
    "ridge": "nonnegative",
    "alpha": "positive",
    "beta": "positive",
    "step_size": "nonnegative",
    "noise_variance": "nonnegative",
}
"""What curves can be over."""

_MEANING = {
    "ridge": "penalty of sum (y - f)^2 + ridge |w|^2",
    "paper_ridge": "penalty of (1/n) sum (y - f)^2 + (paper_ridge/N) |a|^2",
    "alpha": "sample complexity n/d of the readout",
    "beta": "aspect ratio N/d",
    "step_size": "step size eta",
    "noise_variance": "variance of the label noise",
    "risk_initial": "mean squared error against the noise-free teacher, without a step",
    "risk_trained": "mean squared error against the noise-free teacher, after the step",
    "improvement": "what the step takes off the risk",
    "bias_initial": "squared bias over data sets of the readout, without a step",
    "bias_trained": "squared bias over data sets of the readout, after the step",
    "variance_initial": "risk minus squared bias, without a step",
    "variance_trained": "risk minus squared bias, after the step",
    "training_error_initial": "mean squared error on the readout's data, without a step",
    "training_error_trained": "mean squared error on the readout's data, after the step",
    "objective_initial": "minimum of the penalised mean squared error, without a step",
    "objective_trained": "minimum of the penalised mean squared error, after the step",
    "effective_ridge": "effective ridge nu",
    "ridge_derivative": "derivative of paper_ridge by nu",
    "inverse_s": "1/s of the closed form",
    "residual": "relative residual of the equation of the effective ridge",
}


_COLUMNS = tuple(name for name in _MEANING if name not in {*DOMAINS, PAPER_RIDGE, "residual"})
NAMES = Names(
    outputs=_COLUMNS,
    errors=(),
    shown=("risk_initial", "risk_trained", "improvement"),
    drawn=("risk_initial", "risk_trained"),
    meanings=_MEANING,
)
"""What a curve has."""


def solve_points(model: OneGradientStep, points: Mapping[str, Any]) -> dict[str, Array]:
    """Return all outputs at many points."""
    if model.student_moments.jumps and np.any(points.get("step_size", 0.0)):
        raise AssumptionError(
            f"student {model.student!r} jumps: its gradient step is not defined; step_size must be "
            "0, which gives random features"
        )
    columns, penalty = kernel_columns(model, points)
    result = {name: np.empty(len(penalty)) for name in (*_COLUMNS, "residual")}
    for kind, part in _parts(model, columns, penalty):
        kernel = risk_kernel(model, kind)
        rows = np.stack([columns[name][part] for name in kernel.parameters], axis=1)
        values = _solved_batch(kernel, rows)
        for key, target in result.items():
            target[part] = values[key]
    return result


def solved_rows(model: OneGradientStep, columns: Columns) -> BatchSolution:
    """Return all outputs at many points as the engine of curves takes them."""
    result = solve_points(model, columns)
    n = len(result["residual"])
    return BatchSolution(
        values={name: result[name] for name in _COLUMNS},
        errors={},
        # A closed form, but for the effective ridge.
        iterations=np.zeros(n, dtype=np.int64),
        residual=result["residual"],
        nodes=np.zeros(n, dtype=np.int64),
        converged=np.ones(n, dtype=bool),
    )


def _solved_batch(kernel: Kernel, rows: Array) -> dict[str, Array]:
    batch = kernel.job(None, None, 1e-11, len(rows))(rows)
    if not batch.converged.all():
        loaded = kernel.code.load(FileCache(kernel.cache_folder))
        raise refusal(loaded, rows, batch, remedy=OUT_OF_RANGE)
    return {**batch.values, "residual": batch.residual}


def kernel_columns(
    model: OneGradientStep, points: Mapping[str, Any]
) -> tuple[dict[str, Array], Array]:
    """Return the parameters of the kernels, and the penalties as they were given."""
    # Steps in the loss of the model, as those that are given.
    values: dict[str, Any] = {**model_parameters(model), "step_size": model.step_size, **points}
    if model.alpha0 is None:
        values["alpha0"] = values["alpha"]
    penalty = values.pop("paper_ridge", None)
    # What overflows here is refused below or by the kernel.
    with np.errstate(over="ignore", under="ignore"):
        values["step_size"] = np.multiply(values["step_size"], model.loss_factor)
        if penalty is not None:
            values["ridge"] = np.multiply(penalty, np.divide(values["alpha"], values["beta"]))
    given = values["ridge"] if penalty is None else penalty
    arrays = [np.atleast_1d(np.asarray(x, dtype=float)) for x in (given, *values.values())]
    # Views: a number takes no memory for each point.
    given, *rest = np.broadcast_arrays(*arrays)
    columns = dict(zip(values, rest, strict=True))
    ridge = columns["ridge"]
    lost = ((ridge == 0) & (given > 0)) | ~np.isfinite(ridge)
    if lost.any():
        raise ParameterError(
            f"paper_ridge = {given[np.argmax(lost)]:g} is outside the range of floats as "
            "ridge = alpha/beta * paper_ridge"
        )
    return columns, given


def _parts(
    model: OneGradientStep, columns: dict[str, Array], penalty: Array
) -> list[tuple[str, NDArray[np.intp]]]:
    """Return which points go to which kernel."""
    parts = [(RIDGE, np.flatnonzero(penalty > 0))]
    limit = np.flatnonzero(penalty == 0)
    if len(limit):
        pairs = zip(columns["alpha"][limit], columns["beta"][limit], strict=True)
        kinds = np.array([limit_kind(model, a, b) for a, b in pairs], dtype=object)
        parts += [(str(kind), limit[kinds == kind]) for kind in dict.fromkeys(kinds)]
    return [(kind, part) for kind, part in parts if len(part)]


def curve_attributes(model: OneGradientStep, columns: Columns) -> dict[str, Any]:
    """Return what identifies a curve: the model, and what it holds fixed."""
    fixed = {name: getattr(model, name) for name in DOMAINS if name not in (RIDGE, *columns)}
    fixed |= {name: float(values) for name, values in columns.items() if not values.ndim}
    vanishing = not all(np.all(columns[name]) for name in (RIDGE, PAPER_RIDGE) if name in columns)
    return {
        "model": model.to_json(),
        "rests_on": f"closed form; {model.standing_at(vanishing_ridge=vanishing)}",
        "best_linear_error": model.best_linear_error,
        **fixed,
        "giantstep_version": __version__,
    }
