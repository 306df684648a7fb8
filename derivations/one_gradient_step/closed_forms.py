r"""The risk of one gradient step in forms for proofs: by signs, and over boxes of parameters.

As rational functions of positive symbols, for proofs by signs.

Positive symbols y, e, a and ν give all parameters: with :math:`y = \beta b G` the resolvent is
rational, and what has to be positive is a sum of what remains,

.. math:: \beta = \frac y{1+y} + e, \quad b = (v + \nu)\frac ye, \quad
    \alpha = \frac y{1+y} + \frac{e v}{v + \nu} + a, \quad \lambda = \frac{\nu a}\beta .

For every ν the penalty λ is positive with q = a/α; y runs over all positive numbers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from ...symbolic.exact.enclosures import Enclosure
from ...symbolic.systems.ridge_equivalent import FeatureCovariance, SignalResponse
from ..outputs import ClosedForms, ExplicitOutputs, parameter
from .risk import Readout, companion, covariance, in_symbols, nu, resolvent, ridge_readout
from .symbols import (
    IDENTIFIERS,
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
    from .model import OneGradientStep

_y, _e, _a, _nu = sp.symbols("y e a nu", positive=True)
_floor, _slope = sp.symbols("v b", positive=True)
_signal, _rest = sp.symbols("M m", positive=True)
_inverse_s, _remainder, _companion, _steep = sp.symbols("g r h B_nu", positive=True)
_flat = sp.Symbol("B_v", positive=True)
_used, _derivative, _alpha = sp.symbols("q D A", positive=True)
_freedom = sp.Symbol("F", positive=True)

_MEANINGS = {
    _nu: "effective ridge", _slope: "mu_1^2 of the student", _floor: "mu_{>1}^2 of the student",
    _signal: "mu_1^2 of the teacher", _rest: "mu_{>1}^2 of the teacher", _alpha: "alpha",
    _inverse_s: "1/s", _remainder: "1 - 1/s", _companion: "h of the resolvent",
    _flat: "bias without a spike, of the floor", _steep: "bias without a spike, of the ridge",
    _used: "residuals on the training set over fresh ones", _derivative: "dlambda_B/dnu",
    _freedom: "1 - dlambda_B/dnu", _y: "beta b G", _e: "beta - y/(1 + y)",
    _a: "alpha times q",
}  # fmt: skip


@lru_cache(maxsize=16)
def closed_forms(model: OneGradientStep) -> ClosedForms | None:
    """Return outputs at positive penalties, in symbols with signs; None for no linear part."""
    student, teacher = model.student_moments, model.teacher_moments
    if not student.linear or not teacher.linear:
        return None
    floor = _floor if student.residual else sp.S.Zero
    rest = _rest if teacher.residual else sp.S.Zero
    aspect = _y / (1 + _y) + _e
    shift = floor + _nu
    slope = shift * _y / _e
    samples = _y / (1 + _y) + _e * floor / shift + _a
    # Symbols of its own first, so that the resolvent is one node that has a value.
    own_slope, own_aspect = sp.symbols("b_0 beta_0", positive=True)
    covariance = FeatureCovariance(own_slope, floor, own_aspect, _nu)
    values = {own_slope: slope, own_aspect: aspect}
    readout = Readout(
        SignalResponse(_inverse_s, _remainder, _companion, _flat if floor else sp.S.Zero, _steep),
        _used, _derivative, _freedom,
    )  # fmt: skip
    direct = {
        "step_size": sp.Symbol("eta", nonnegative=True),
        "noise_variance": sp.Symbol("Delta", nonnegative=True),
    }
    effective = {
        step_size: model.loss_factor * direct["step_size"],
        noise: direct["noise_variance"],
        alpha0: _alpha if model.alpha0 is None else sp.Rational(repr(model.alpha0))
        if model.alpha0 != float("inf") else sp.oo,
        alpha: _alpha,
        linear: sp.sqrt(_slope),
        residual: floor,
        teacher_linear: sp.sqrt(_signal),
        teacher_residual: rest,
    }  # fmt: skip
    outputs = {
        name: expr.subs(effective)
        for name, expr in readout.outputs().items()
        if not expr.has(beta, ridge)
    }
    outputs["effective_ridge"] = _nu
    ratio = aspect / _alpha
    derivative = covariance.derivative(ratio, _used)
    freedom = ratio * covariance.degrees_of_freedom_2

    def explicit(expr: sp.Expr) -> sp.Expr:
        return expr.xreplace({covariance.resolvent: _y / (slope * aspect)}).xreplace(values)

    parts = covariance.response
    abbreviations = {
        _alpha: samples,
        _used: _a / _alpha,
        _inverse_s: explicit(parts.inverse_s),
        _remainder: explicit(parts.remainder),
        _companion: explicit(parts.companion),
        _flat: explicit(parts.flat),
        _steep: explicit(parts.steep),
        _derivative: explicit(derivative),
        _freedom: explicit(freedom),
    }
    if not floor:
        del abbreviations[_flat]
    return ClosedForms(
        outputs=outputs,
        direct=direct,
        implicit={"alpha": samples, "beta": aspect, "ridge": _nu * _a / aspect},
        coordinates=(_y, _e, _a, _nu),
        abbreviations={k: sp.factor(x) for k, x in abbreviations.items()},
        constants={_slope: slope, **({_floor: _floor} if floor else {}),
                   _signal: _signal, **({_rest: _rest} if rest else {})},
        meanings=_MEANINGS,
    )  # fmt: skip


def explicit_outputs(model: OneGradientStep) -> ExplicitOutputs | None:
    """Return outputs at positive penalties in the effective ridge; None for no linear student.

    Of the terms of its equation, β (1/N) tr Σ(Σ+ν)^{-1} + βλ/ν = α, each falls with ν.
    """
    own, label = model.student_moments, model.teacher_moments
    if not own.linear:
        return None
    named = {symbol: parameter(name) for symbol, name in IDENTIFIERS.items()}
    named[step_size] = model.loss_factor * parameter("step_size")
    if model.alpha0 is None:
        named[alpha0] = parameter("alpha")
    elif model.alpha0 == float("inf"):
        named[alpha0] = sp.oo
    at = covariance(nu)
    explicit = {
        "degrees": beta * at.degrees_of_freedom + beta * ridge / nu - alpha,
        **ridge_readout().outputs(),
    }
    explicit = {k: x.subs(named) for k, x in in_symbols(explicit, at).items()}
    assignments = {
        resolvent: at.resolvent.rewrite(sp.Piecewise),
        companion: 1 / (1 + beta * linear**2 * resolvent),
    }
    moments = {
        linear: (own, "linear"),
        residual: (own, "residual"),
        teacher_linear: (label, "linear"),
        teacher_residual: (label, "residual"),
    }

    def numbers(digits: int) -> dict[sp.Symbol, Enclosure]:
        known = {x: found.certified(digits)[part] for x, (found, part) in moments.items()}
        return {parameter(IDENTIFIERS[x]): value for x, value in known.items()}

    equation = explicit.pop("degrees")
    return ExplicitOutputs(
        outputs={**explicit, "effective_ridge": nu},
        unknown=nu,
        equation=equation,
        assignments={x: value.subs(named) for x, value in assignments.items()},
        numbers=numbers,
    )
