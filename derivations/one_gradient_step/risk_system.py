r"""The risk of a ridge readout after one gradient step, as systems that are lowered to kernels.

The features of the network are equivalent to Gaussian ones of covariance
:math:`\mu_1^2W^TW + \mu_{>1}^2` (Ba et al., arXiv 2205.01445), with W the first layer before or
after the step. Labels have the linear part :math:`\mu_1^*`, the rest :math:`\mu_{>1}^{*2}` acts as
noise of the readout. :mod:`...symbolic.ridge_equivalent` does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from ...symbolic.ridge_equivalent import (
    NO_SPIKE,
    FeatureCovariance,
    SignalResponse,
    Spike,
    isotropic_effective_ridge,
    response_without_floor,
    ridgeless_effective_ridge,
)
from ...symbolic.saddle_point import SaddlePointSystem
from .spike_sizes import aligned_square, orthogonal_square
from .symbols import (
    IDENTIFIERS,
    alpha,
    beta,
    linear,
    noise,
    residual,
    ridge,
    teacher_linear,
    teacher_residual,
)

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
    response : SignalResponse
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
        found: dict[str, dict[str, sp.Expr]] = {}
        for layer, spike in (("trained", STEP), ("initial", NO_SPIKE)):
            bias = teacher_residual + teacher_linear**2 * self.response.bias(spike)
            left = teacher_linear**2 * self.response.unexplained(spike) + teacher_residual + noise
            fresh = (bias + noise) / self.derivative
            variance = fresh * self.freedom
            found[layer] = {
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
            for layer, values in found.items()
        }
        return {
            **names,
            "improvement": reduction,
            "ridge_derivative": self.derivative,
            "inverse_s": self.response.inverse_s,
        }


def risk_system() -> SaddlePointSystem:
    """Return the risk at a positive penalty, its effective ridge by Newton's method.

    Notes
    -----
    The equation says that ν is the effective ridge of isotropic features whose variance is the
    level of the covariance at ν. It starts from the mean of the eigenvalues, an upper bound.
    """
    at = covariance(nu)
    shrinkage = _RATIO * ridge / nu
    readout = Readout(
        response=at.response,
        shrinkage=shrinkage,
        derivative=at.derivative(_RATIO, shrinkage),
        freedom=_RATIO * at.degrees_of_freedom_2,
    )
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
        outputs=_in_symbols(readout, at),
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
    return _explicit("one_step_ridgeless_risk", equations, _in_symbols(readout, at))


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


def _in_symbols(readout: Readout, at: FeatureCovariance) -> dict[str, sp.Expr]:
    """Return the outputs in the resolvent and its companion, which the equations name."""
    return {
        name: value.xreplace({at.resolvent: resolvent}).subs(
            1 + beta * linear**2 * resolvent, 1 / companion
        )
        for name, value in readout.outputs().items()
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
