r"""Limits of the risk of one model: long steps, many samples, wide networks, extreme penalties.

The formulas are those of :mod:`.properties`, with the numbers of the model in them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from ...errors import AssumptionError, ParameterError
from ...pages import Block, Page, Table, Typeset
from ...symbolic.ridge_equivalent import NO_SPIKE, Spike
from ..formulas import latex
from ..penalties import given_penalty, penalty_of
from .proofs import kappa, slope
from .properties import (
    aligned,
    aligned_rate,
    large_ridge_limit,
    large_step_limit,
    orthogonal_rate,
    wide_network_limit,
)
from .risk_kernel import model_parameters
from .risk_system import covariance
from .spike_sizes import aligned_square, orthogonal_square
from .symbols import (
    IDENTIFIERS,
    linear,
    residual,
    step_size,
    teacher_linear,
    teacher_residual,
)

if TYPE_CHECKING:
    from .model import OneGradientStep

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
        shown = f"{self.value:.10g}" if self.formula is None else latex(self.formula)
        return rf"{self.quantity} \to {shown}"


@dataclass(frozen=True, repr=False)
class RiskLimits(Page, Typeset):
    """Limits of the risk of a model.

    Attributes
    ----------
    limits : tuple of RiskLimit
    paper_ridge : float
        λ_B of those that keep a penalty.
    """

    limits: tuple[RiskLimit, ...]
    paper_ridge: float

    rests_on = "limits of the closed form, each derived from it by exact algebra"

    def __getitem__(self, name: str) -> RiskLimit:
        return next(limit for limit in self.limits if limit.name == name)

    def to_dict(self) -> dict[str, object]:
        """Return the numbers by name."""
        return {
            limit.name: limit.value if math.isfinite(limit.value) else str(limit.value)
            for limit in self.limits
        }

    def page(self) -> Iterable[Block]:
        """Return the limits with what they assume."""
        yield Table([(x.name, f"{x.value:.10g}", f"({x.remark})") for x in self.limits])
        yield self.rests_on

    def latex(self) -> str:
        """Return the limits in LaTeX, one below the other, without delimiters."""
        lines = r" \\ ".join(limit.latex() for limit in self.limits)
        return rf"\begin{{gathered}}{lines}\end{{gathered}}"

    def __repr__(self) -> str:
        return f"RiskLimits({len(self.limits)} limits at paper_ridge={self.paper_ridge:g})"


def risk_limits(model: OneGradientStep, ridge: object) -> RiskLimits:
    """Return the limits of a model; see :meth:`.analyses.Analyses.limits`."""
    penalty = penalty_of(ridge, model.beta / model.alpha)
    if not penalty:
        name, _ = given_penalty(ridge)
        raise ParameterError(f"{name} must be positive for limits, got 0; ridgeless() has its own")
    at_penalty = model.paper_ridge(penalty)
    found = model.risk(ridge=penalty)
    linear_bias = found.bias_initial - model.best_linear_error
    share, wide, steep = _coefficients(model)
    # q = D = 1: the effective ridge is the penalty itself, and the spike is the population's.
    many = _many_samples(model, at_penalty)
    cosine = _float(share, model)
    return RiskLimits(
        (
            RiskLimit(
                "improvement, step size to infinity",
                r"\delta",
                cosine * linear_bias / found.ridge_derivative,
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
        _in_model(found.values[name])
        for found, name in (
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
        found = model.ridgeless()
    except AssumptionError:
        return {"initial": math.inf, "trained": math.inf}
    return {"initial": found.initial, "trained": found.trained}


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
