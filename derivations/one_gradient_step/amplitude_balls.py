"""Proven values of J(h) and its first two derivatives at exact amplitudes.

Where J has a closed form whose functions balls know, that is evaluated; else J is an expectation
over the teacher's coordinate, with the smoothed student in closed form; and where that has none, an
expectation of tables of the smoothed student, which is an entire function (Gauss–Legendre rules
with proven bounds, :mod:`giantstep.numeric.certified_integrals`).
"""

from __future__ import annotations

from functools import cached_property

import sympy as sp

from ...ball_library import require_flint
from ...errors import (
    AssumptionError,
    CertificationError,
    ConvergenceError,
    UnsupportedExpressionError,
)
from ...symbolic.activations import z as variable
from ...symbolic.averages import Average
from ...symbolic.ball_functions import Ball, BallEvaluator
from ...symbolic.gaussian_balls import ConstantBalls, MomentBalls, NotReached
from .amplitude_error import AmplitudeError, amplitude, coordinate
from .amplitude_tables import (
    AmplitudeTables,
    distance_derivatives,
    smoothed_values,
    teacher_value,
)

_GUARD_BITS = 40
# Of minutes at most: a value by tables takes longer than an expectation, this than a closed form.
_CELLS_BY_FORMS, _CELLS_BY_EXPECTATIONS, _CELLS_BY_TABLES = 40_000, 10_000, 1_500


class AmplitudeBalls:
    """J, J' and J'' at exact amplitudes, as balls.

    Whoever calls holds the lock of python-flint's precision.

    Parameters
    ----------
    error : AmplitudeError
    """

    def __init__(self, error: AmplitudeError) -> None:
        self._flint = require_flint()
        self._error = error
        self._constants: dict[sp.Symbol, ConstantBalls] = {}

    def at(self, h: sp.Rational, order: int, bits: int) -> Ball:
        """Return a derivative of J at h; to about so many bits of its size.

        Raises
        ------
        CertificationError
            If it cannot be enclosed.
        """
        if self._forms is not None:
            with self._flint.ctx.workprec(bits + _GUARD_BITS):
                values = {s: c.ball(bits + _GUARD_BITS) for s, c in self._constants.items()}
                point = BallEvaluator().real_constant(h)
                found = BallEvaluator({**values, amplitude: point}).constant(self._forms[order])
            if found.is_finite() and found.imag.contains(0):
                return found.real
        if self._error.smoothed.has(Average):
            try:
                return self._tables.at(h, order, bits)
            except (UnsupportedExpressionError, AssumptionError) as failure:
                raise CertificationError(
                    f"J at h = {float(h):.6g} is not enclosed: {failure}"
                ) from None
        try:
            integrand = self._integrands[order].xreplace({amplitude: h})
            return MomentBalls(integrand, coordinate).ball(0, bits)[0]
        except (NotReached, UnsupportedExpressionError, ConvergenceError) as failure:
            raise CertificationError(
                f"J at h = {float(h):.6g} is not enclosed: {failure}"
            ) from None

    @property
    def most_cells(self) -> int:
        """How many values of J a search may take."""
        if self._forms is not None:
            return _CELLS_BY_FORMS
        has_tables = self._error.smoothed.has(Average)
        return _CELLS_BY_TABLES if has_tables else _CELLS_BY_EXPECTATIONS

    @cached_property
    def _tables(self) -> AmplitudeTables:
        return AmplitudeTables(self._error)

    @cached_property
    def _forms(self) -> tuple[sp.Expr, ...] | None:
        """J, J' and J'' in closed form, with symbols for numbers that are expectations."""
        closed = self._error.closed_form
        if closed is None:
            return None
        nodes = [node for node in closed.atoms(Average) if not node.free_symbols]
        rule = {node: sp.Dummy("E", real=True) for node in nodes}
        self._constants = {symbol: ConstantBalls(node) for node, symbol in rule.items()}
        forms = [closed.xreplace(rule)]
        for _ in range(2):
            forms.append(forms[-1].diff(amplitude))
        # Whether balls know all of its functions shows at a point that is nowhere special.
        probe = {symbol: self._flint.arb(1) for symbol in (*rule.values(), amplitude)}
        try:
            for form in forms:
                BallEvaluator(probe).constant(form)
        except UnsupportedExpressionError:
            return None
        return tuple(forms)

    @cached_property
    def _integrands(self) -> tuple[sp.Expr, ...]:
        """What J, J' and J'' are averages of."""
        error = self._error
        slope = error.smoothed_slope
        at = {error.argument: amplitude * coordinate}
        smoothed = (x.xreplace(at) for x in (error.smoothed, slope, slope.diff(error.argument)))
        rule = dict(zip(smoothed_values, smoothed, strict=True))
        rule[teacher_value] = error.teacher_expr.xreplace({variable: coordinate})
        return tuple(x.xreplace(rule) for x in distance_derivatives())
