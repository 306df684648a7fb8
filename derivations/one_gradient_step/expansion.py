"""Expansions of the risk of one gradient step: many samples, vanishing penalties, short steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...digits import checked_digits
from ...errors import AssumptionError, ParameterError
from ...numeric.arguments import nonnegative_number
from ..expansions.expansion import (
    LARGE_ALPHA,
    NAMES,
    SMALL_RIDGE,
    SMALL_STEP,
    Expansion,
    checked_name,
    checked_order,
)
from ..penalties import PaperRidge, given_penalty, in_convention
from ..spiked_random_features.arguments import checked_switch
from .risk import limit_kind
from .stationarity import exact_parameters
from .symbols import alpha, alpha0, beta, ridge

if TYPE_CHECKING:
    from .model import OneGradientStep
    from .risk import RidgeRisk

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
    model : OneGradientStep
    name : str
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
        found = {
            x: sp.Rational(f.numerator, f.denominator)
            for x, f in exact_parameters(self.model, self.digits + _MOMENT_GUARD).items()
        }
        found.setdefault(alpha0, sp.oo)
        if self.penalty is not None:
            found[ridge] = sp.Rational(repr(self.penalty))
            if self.of_paper and self.name == SMALL_STEP:
                found[ridge] *= found[alpha] / found[beta]
        return found

    @cached_property
    def kind(self) -> str | None:
        """Which kernel has the limit λ → 0 at the model's α; None where α goes to infinity."""
        if self.name == LARGE_ALPHA or self.penalty:
            return None
        return limit_kind(self.model)

    def float_risk(self) -> RidgeRisk:
        """Return the risk of the model at the fixed penalty."""
        return self.model.risk(ridge=self.ridge)


def expansion(
    model: OneGradientStep,
    name: object,
    order: object,
    *,
    ridge: object,
    digits: object,
    formulas: object,
) -> Expansion:
    """Return an expansion; see :meth:`.risk_analyses.RiskAnalyses.expansion`."""
    from ..expansions.expansion import SymbolicSeries
    from .expansion_formulas import aligned_formulas, case_of, definitions
    from .expansion_numbers import coefficients
    from .expansion_region import region

    question = _question(model, checked_name(name), ridge, checked_digits(digits))
    last = checked_order(order)
    written = checked_switch("formulas", formulas)
    found = coefficients(question, last, question.digits)
    case = case_of(question) if written else None
    where = region(question, found)
    parameter, _ = NAMES[question.name]
    return Expansion(
        name=question.name,
        parameter=parameter,
        point=math.inf if question.name == LARGE_ALPHA else 0.0,
        exponents=found.exponents,
        coefficients={k: found.values[k] for k in SYMBOLS},
        neglected={k: found.neglected[k] for k in SYMBOLS},
        remainder_order=found.remainder_order,
        digits=question.digits,
        fixed=_fixed(question),
        symbols=SYMBOLS,
        region=where.text,
        rests_on=(
            f"equations of the risk, order by order; coefficients to {question.digits} digits; "
            f"{model.standing}"
        ),
        radius=where.radius,
        symbolic=None
        if case is None
        else SymbolicSeries(aligned_formulas(case, found.exponents), definitions(case)),
        exact=partial(exact_outputs, question),
    )


def exact_outputs(question: Question, value: Any, digits: int | None) -> Mapping[str, Any]:
    """Return the outputs of the risk itself where the parameter has a value."""
    model, number = question.model, float(value)
    if question.name == SMALL_RIDGE:
        found = model.risk(ridge=number, digits=digits)
    else:
        moved = (
            replace(model, alpha=number)
            if question.name == LARGE_ALPHA
            else replace(model, step_size=number)
        )
        found = moved.risk(ridge=question.ridge, digits=digits)
    return {name: getattr(found, name) for name in SYMBOLS}


def _question(model: OneGradientStep, name: str, ridge: object, digits: int) -> Question:
    """Check which penalty is held fixed."""
    if name == SMALL_RIDGE:
        if ridge is not None:
            given, value = given_penalty(ridge)
            raise ParameterError(
                f"{given} is what {name!r} expands in, so it cannot be held fixed at {value!r}; "
                "leave it out"
            )
        return Question(model, name, None, digits)
    if name == SMALL_STEP and model.student_moments.jumps:
        raise AssumptionError(
            f"student {model.student!r} jumps: its gradient step is not defined, so there is no "
            "expansion in the step size; choose a continuous activation such as erf or tanh"
        )
    kind, value = given_penalty(ridge)
    return Question(model, name, in_convention(kind, nonnegative_number(kind, value)), digits)


def _fixed(question: Question) -> dict[str, Any]:
    moving = {LARGE_ALPHA: "alpha", SMALL_STEP: "step_size"}.get(question.name)
    found = {k: v for k, v in question.model.parameters().items() if k != moving}
    kind = "paper_ridge" if question.of_paper else "ridge"
    return found if question.penalty is None else {**found, kind: question.penalty}
