"""Expansions of the risk at a finite width: the spikes of all degrees, order by order.

The effective ridge and the companion of the resolvent are those of the strict limit. What the
features explain by their spikes follows from linear equations, whose coefficients are series then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import sympy as sp

from ....digits import checked_digits
from ....errors import ParameterError
from ...expansions.expansion import Expansion, checked_name
from ...penalties import given_penalty, one_penalty
from ..expansion import (
    LinearEquations,
    Question,
    checked_question,
    expanded,
    explicit_resolvent,
)
from ..risk import exact_penalty, nu, resolvent
from . import physics
from .system import readout_moment, width_system

if TYPE_CHECKING:
    from .model import StepAtWidth

# Digits of the coefficients of student and teacher beyond those of the series.
_GUARD = 25
_SYMBOLS = {
    "risk": "R",
    "training_error": r"E_\mathrm{train}",
    "leading": r"R_{N\to\infty}",
    "linear": r"R_\mathrm{GD}",
    "initial": "R_0",
    "small": r"\theta^2/N",
    "effective_ridge": r"\nu",
}
_SOURCES = {"leading": "risk_leading", "linear": "risk_trained", "initial": "risk_initial"}


@one_penalty
def expansion(
    model: StepAtWidth, name: str, order: int = 2, *, ridge: object = None, digits: int = 30
) -> Expansion:
    r"""Return the risk at this width as a series: many samples, no penalty, or short steps.

    Parameters
    ----------
    name : {"large_alpha", "small_ridge", "small_step"}
        In 1/α (the samples of the step follow, unless the model has its own `alpha0`), in λ,
        or in the step size.
    order, ridge, digits
        As for :meth:`giantstep.OneGradientStep.expansion`; the fixed penalty is positive.

    Returns
    -------
    Expansion
        Of the form of powers, with the linear theory and that without a step beside it. Its radius
        of convergence is not known.

    Raises
    ------
    ParameterError
        If there is no such expansion, an argument is outside its range, or not exactly the
        penalties are given that are held fixed.
    ConvergenceError
        If parameters differ by so many orders of magnitude that digits cancel without end.

    Examples
    --------
    >>> import giantstep as gs
    >>> step = gs.OneGradientStep("erf", "erf", alpha=4, beta=1.5, noise_variance=0.05)
    >>> print(step.at_width(600).expansion("small_step", 4, ridge=0.1).latex("risk"))
    R = 0.145693 - 0.00865625\,\eta^{2} + 0.00118751\,\eta^{4} + O(\eta^{6})
    """
    step, wanted = model.step, checked_digits(digits)
    asked = checked_question(step, checked_name(name), ridge)
    if asked[1] is not None and not given_penalty(asked[1])[1]:
        raise ParameterError(f"the fixed penalty must be positive, got {ridge!r}")
    return expanded(_QuestionAtWidth(step, *asked, wanted, model), order, formulas=False)


@dataclass(frozen=True)
class _QuestionAtWidth(Question):
    """Which expansion of which model at a width."""

    at: StepAtWidth

    @cached_property
    def known(self) -> dict[sp.Symbol, sp.Expr]:
        digits = self.digits + _GUARD

        def number(value: sp.Expr) -> sp.Expr:
            return sp.Rational(str(value.evalf(digits)))

        result = {**super().known, physics.width: sp.Integer(self.at.width)}
        kinds = {"student": physics.student_coefficient, "teacher": physics.teacher_coefficient}
        for name, value in self.at.exact_coefficients.items():
            layer, _, degree = name.partition("_")
            result[kinds[layer](int(degree))] = number(value)
        moments = self.at._moments()
        result |= {
            readout_moment(k): sp.Rational(repr(moments[f"readout_moment_{k}"]))
            for k in range(len(moments))
        }
        return result

    @property
    def stride(self) -> int:
        return 1

    @property
    def has_radius(self) -> bool:
        return False

    @property
    def outputs(self) -> Mapping[str, sp.Expr]:
        system, _ = _explicit(tuple(self.at.degrees or ()), self.at.letters is None)
        return {name: system[_SOURCES.get(name, name)] for name in self.symbols}

    @property
    def linear_equations(self) -> LinearEquations:
        return _explicit(tuple(self.at.degrees or ()), self.at.letters is None)[1]

    @property
    def symbols(self) -> Mapping[str, str]:
        normal = self.at.letters is None
        return {k: v for k, v in _SYMBOLS.items() if normal or k != "leading"}

    @property
    def fixed(self) -> dict[str, Any]:
        return {**super().fixed, "width": self.at.width}

    @property
    def rests_on(self) -> str:
        return (
            f"deterministic equivalent of Gaussian features with degrees "
            f"{', '.join(map(str, self.at.degrees or ()))} of the step, d → ∞ at this width; what "
            f"is left out is of relative size {self.at.left_out_per_small:.2g} times θ²/N"
        )

    def exact(self, value: Any, digits: int | None) -> Mapping[str, Any]:
        moved, ridge = self.moved(self.at, float(value))
        penalty = exact_penalty(moved.step, *given_penalty(ridge))
        asked = float(penalty) if digits is None else penalty
        found = moved.kernel().solve(ridge=asked, digits=digits)
        names = {name: _SOURCES.get(name, name) for name in self.symbols}
        return {name: found[source] for name, source in names.items()}


@cache
def _explicit(degrees: tuple[int, ...], normal: bool) -> tuple[dict[str, sp.Expr], LinearEquations]:
    """Return the outputs in ν and h, and the equations of the spikes."""
    system = width_system(degrees, normal=normal)
    rule = {resolvent: explicit_resolvent()}
    outputs = {name: value.xreplace(rule) for name, value in system.outputs.items()}
    own = [e for e in system.equations if str(e.unknown).startswith("v_")]
    unknowns = [e.unknown for e in own]
    matrix, column = sp.linear_eq_to_matrix([e.residual for e in own], unknowns)
    equations = unknowns, matrix.xreplace(rule), column.xreplace(rule)
    return {**outputs, "effective_ridge": nu}, equations
