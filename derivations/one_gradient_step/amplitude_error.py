r"""What neurons of one amplitude can represent: the error J(h), as an expression and to all digits.

After a step with η of order √N a neuron sees the teacher's coordinate t with some amplitude h and
the rest of its input as noise, so neurons of equal amplitude average to
:math:`g_h(t) = G(ht)`, :math:`G(s) = \mathbb{E}\,\sigma(s + \xi)`, and

.. math:: J(h) = \mathbb{E}\,\big(\sigma_*(t) - G(ht)\big)^2 = \mathbb{E}\sigma_*^2 - 2C(h) + S(h).

G is one function for all h. Where it has a closed form, C and S are one-dimensional expectations,
which the rules of :func:`.gaussian.expect` know or not; where one has none, J is found by
quadrature.

(Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445, section 4.2; closed forms derived here.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp

from ...errors import ConvergenceError, EmissionError, GiantstepError
from ...numeric.precise_distance import PreciseDistance, SmoothedSum
from ...runtime.precision import local_context
from ...symbolic.activations import Activation
from ...symbolic.activations import z as variable
from ...symbolic.averages import Average
from ...symbolic.gaussian import GaussianExpectation, expect
from ...symbolic.hermite import hermite_coefficient
from ...symbolic.printing.compiled import compiled
from ...symbolic.regularity import Parity
from ...symbolic.zero_test import is_exactly_zero

amplitude = sp.Symbol("h", real=True)
"""h: how strongly a neuron sees the teacher's coordinate."""

coordinate = sp.Symbol("t", real=True)
"""t: the teacher's coordinate of an input."""

_ARGUMENT = sp.Symbol("s", real=True)
# Nodes are weighted by up to E q², and sums have hundreds of terms.
_GUARD = 3


@dataclass(frozen=True)
class AmplitudeError:
    r"""J(h) of a pair of functions.

    Attributes
    ----------
    student, teacher : Activation
    centre : bool
        Both are taken minus their means.
    """

    student: Activation
    teacher: Activation
    centre: bool

    @cached_property
    def student_expr(self) -> sp.Expr:
        """σ in the variable z of activations, centred if asked for."""
        return self._centred(self.student)

    @cached_property
    def teacher_expr(self) -> sp.Expr:
        """σ_* in the variable z of activations, centred if asked for."""
        return self._centred(self.teacher)

    def _centred(self, function: Activation) -> sp.Expr:
        return function.expr - hermite_coefficient(function, 0) if self.centre else function.expr

    @cached_property
    def smoothed(self) -> sp.Expr:
        """G in the variable s: a closed form, or an expectation."""
        return expect(self.student_expr.xreplace({variable: _ARGUMENT + variable}), variable)

    @cached_property
    def smoothed_slope(self) -> sp.Expr:
        """Its derivative; in closed form if G has one."""
        return self.smoothed.diff(_ARGUMENT)

    @property
    def argument(self) -> sp.Symbol:
        """The s of :attr:`smoothed`."""
        return _ARGUMENT

    @cached_property
    def realised(self) -> sp.Expr:
        """g_h(t) in h and t."""
        return self.smoothed.xreplace({_ARGUMENT: amplitude * coordinate})

    @cached_property
    def closed_form(self) -> sp.Expr | None:
        """J in h, where rules give one; else None."""
        if self.smoothed.has(Average):
            return None
        teacher = self.teacher_expr.xreplace({variable: coordinate})
        parts = [
            expect(teacher**2, coordinate),
            expect(teacher * self.realised, coordinate),
            expect(self.realised**2, coordinate),
        ]
        if any(part.has(Average) for part in parts):
            return None
        square, cross, own = parts
        return square - 2 * cross + own

    def expression(self) -> sp.Expr:
        """Return J in h: its closed form, or the expectation over t."""
        if self.closed_form is not None:
            return self.closed_form
        teacher = self.teacher_expr.xreplace({variable: coordinate})
        return GaussianExpectation((teacher - self.realised) ** 2, coordinate)

    @property
    def even(self) -> bool:
        """Whether student and teacher are both odd or both even: J's integrand is even then."""
        parity = self.student.parity
        return parity is self.teacher.parity and parity is not Parity.NEITHER

    @property
    def is_closed(self) -> bool:
        """Whether J has a closed form."""
        return self.closed_form is not None

    def vanishes_at(self, h: sp.Expr) -> bool:
        """Whether the smoothed student at an exact amplitude provably is the teacher."""
        if self.smoothed.has(Average):
            return False
        difference = self.realised.xreplace({amplitude: h}) - self.teacher_expr.xreplace(
            {variable: coordinate}
        )
        if sp.expand(difference) == 0:
            return True
        if self.closed_form is None:
            return False
        try:
            return is_exactly_zero(self.closed_form.xreplace({amplitude: h}), "J(h)")
        except GiantstepError:
            return False

    def precise(self, digits: int) -> PreciseError:
        """Return J and J' for numbers of so many digits."""
        return PreciseError(self, digits)


class PreciseError:
    """J(h) and J'(h) to a number of digits: lowered closed forms, or quadrature.

    Parameters
    ----------
    error : AmplitudeError
    digits : int
        Of J and J', absolutely: the three terms of J cancel where J is small.
    """

    def __init__(self, error: AmplitudeError, digits: int) -> None:
        self.ctx = local_context(digits)
        self._error, self._digits = error, digits

    def __call__(self, h: Any) -> tuple[Any, Any]:
        """Return J(h) and J'(h) as numbers of :attr:`ctx`."""
        return self._evaluate(self.ctx.mpf(h))

    @cached_property
    def _evaluate(self) -> Callable[[Any], tuple[Any, Any]]:
        error = self._error
        if error.closed_form is not None:
            return self._pair(amplitude, error.closed_form, error.closed_form.diff(amplitude))
        smoothed: Callable[[Any], tuple[Any, Any]]
        if error.smoothed.has(Average):
            smoothed = SmoothedSum(
                self._function(variable, error.student_expr),
                self._numbers(error.student.kinks),
                self.ctx,
                self._digits + _GUARD,
            )
        else:
            smoothed = self._pair(_ARGUMENT, error.smoothed, error.smoothed_slope)
        return PreciseDistance(
            self._function(variable, error.teacher_expr),
            self._numbers(error.teacher.kinks),
            smoothed,
            self.ctx,
            self._digits,
            error.even,
        )

    def _pair(
        self, symbol: sp.Symbol, value: sp.Expr, slope: sp.Expr
    ) -> Callable[[Any], tuple[Any, Any]]:
        first, second = self._function(symbol, value), self._function(symbol, slope)
        return lambda x: (first(x), second(x))

    def _function(self, symbol: sp.Symbol, expr: sp.Expr) -> Callable[[Any], Any]:
        expr = with_numbers(expr, lambda node: exact_rational(self.ctx, self._number(node)))
        try:
            return compiled(expr, [symbol], self.ctx)
        except EmissionError:
            # SymPy knows more functions than the printer, erfi for one, and is slower.
            return lambda x: self._number(expr.xreplace({symbol: exact_rational(self.ctx, x)}))

    def _number(self, expr: sp.Expr) -> Any:
        value = expr.evalf(self.ctx.dps)
        if not value.is_Number or not value.is_finite:
            raise ConvergenceError(f"no number could be found for {expr}; got {value}")
        return self.ctx.mpf(str(value))

    def _numbers(self, points: tuple[sp.Expr, ...]) -> list[Any]:
        return sorted(self._number(point) for point in points)


def exact_rational(ctx: Any, number: Any) -> sp.Rational:
    """Return a number of an mpmath context as the rational that it is."""
    sign, mantissa, exponent, _ = ctx.mpf(number)._mpf_
    return (-1) ** sign * sp.Integer(int(mantissa)) * sp.Integer(2) ** exponent


def with_numbers(expr: sp.Expr, number: Callable[[sp.Expr], sp.Expr]) -> sp.Expr:
    """Return an expression with its averages that hold no unknowns replaced by numbers."""
    nodes = [node for node in expr.atoms(Average) if not node.free_symbols]
    return expr.xreplace({node: number(node) for node in nodes})
