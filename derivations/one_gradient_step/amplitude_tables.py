r"""J(h) and its derivatives where the smoothed student has no closed form.

The tables :math:`g_k(t) = \mathbb{E}_z[\sigma(ht + z)\,\mathrm{He}_k(z)]` are G, G' and G'' at ht,
by Stein's lemma, and entire functions of t whatever the kinks of σ.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from functools import cached_property

import sympy as sp

from ...ball_library import require_flint
from ...numeric.certified_integrals import Direct, LineIntegrator
from ...symbolic.activations import z as variable
from ...symbolic.ball_functions import Ball, BallEvaluator
from ...symbolic.gaussian import GaussianExpectation
from ...symbolic.gaussian_balls import ConstantBalls
from ...symbolic.gaussian_convolutions import GaussianTables, gaussian_tables
from ...symbolic.hermite_polynomials import hermite_polynomial
from ...symbolic.integrand_tails import integrand_tails, mass_outside
from ..certificates.averages import branched, convolution
from .amplitude_error import AmplitudeError, amplitude, coordinate

_GUARD_BITS = 40
smoothed_values = sp.symbols("g_0 g_1 g_2", real=True)
"""G, G' and G'' at ht."""

teacher_value = sp.Symbol("f", real=True)
"""The teacher at t."""


@functools.cache
def distance_derivatives() -> tuple[sp.Expr, ...]:
    """Return the squared distance at t and two derivatives by h, in t and the values there."""
    smoothed = sp.Function("g", real=True)
    distance = (teacher_value - smoothed(amplitude * coordinate)) ** 2

    def in_tables(expr: sp.Expr) -> sp.Expr:
        slopes = {d: smoothed_values[d.expr.derivative_count] for d in expr.atoms(sp.Subs)}
        return expr.xreplace(slopes).xreplace(
            {smoothed(amplitude * coordinate): smoothed_values[0]}
        )

    return tuple(in_tables(distance.diff(amplitude, k)) for k in range(len(smoothed_values)))


class AmplitudeTables:
    """J, J' and J'' by tables of the smoothed student.

    Parameters
    ----------
    error : AmplitudeError
    """

    def __init__(self, error: AmplitudeError) -> None:
        self._flint = require_flint()
        self._error = error
        self._means: dict[sp.Symbol, tuple[sp.Expr, ConstantBalls]] = {}
        self._known: tuple[sp.Rational, int, tuple[LineIntegrator, list[Ball]]] | None = None

    def at(self, h: sp.Rational, order: int, bits: int) -> Ball:
        """Return a derivative of J at h, to about so many bits of its size.

        Raises
        ------
        AssumptionError, UnsupportedExpressionError
            If there are no tables that can be enclosed, or nothing bounds an integrand's tail.
        CertificationError
            If an integrand cannot be enclosed on the line.
        """
        line, tails = self._line(h, bits)
        function = BallEvaluator().functions(
            [distance_derivatives()[order]], [coordinate, *smoothed_values, teacher_value]
        )

        def integrand(tables: Sequence[Ball]) -> Sequence[Ball]:
            return function(tables, True)

        # Balls of expressions are complex.
        return line.integrate(integrand, [tails[order]])[0].real

    @cached_property
    def _tables(self) -> GaussianTables:
        student = self._error.student_expr.xreplace({variable: amplitude * coordinate + variable})
        definitions = {
            sp.Function(str(name), real=True)(coordinate): GaussianExpectation(
                student * hermite_polynomial(k, variable), variable
            )
            for k, name in enumerate(smoothed_values)
        }
        target = sp.Function(str(teacher_value), real=True)(coordinate)
        definitions[target] = self._error.teacher_expr.xreplace({variable: coordinate})
        return gaussian_tables(
            {f: self._with_symbols(e) for f, e in definitions.items()}, coordinate
        )

    def _with_symbols(self, definition: sp.Expr) -> sp.Expr:
        """Put symbols for the means of student and teacher that have no closed form."""
        nodes = {n for n in definition.atoms(GaussianExpectation) if not n.free_symbols}
        for node in nodes - {n for n, _ in self._means.values()}:
            self._means[sp.Dummy("mean", real=True)] = (node, ConstantBalls(node))
        return definition.xreplace({node: symbol for symbol, (node, _) in self._means.items()})

    def _line(self, h: sp.Rational, bits: int) -> tuple[LineIntegrator, list[Ball]]:
        if self._known is None or self._known[:2] != (h, bits):
            self._known = (h, bits, self._prepared(h, bits))
        return self._known[2]

    def _prepared(self, h: sp.Rational, bits: int) -> tuple[LineIntegrator, list[Ball]]:
        flint = self._flint
        prec = bits + _GUARD_BITS
        with flint.ctx.workprec(prec):
            tables, point = self._tables, BallEvaluator().real_constant(h)
            means = {symbol: mean.ball(prec) for symbol, (_, mean) in self._means.items()}
            balls = tables.balls({amplitude: point, **means})
            growth = dict(zip((*smoothed_values, teacher_value), balls.growth, strict=True))
            sums = {sp.Symbol(f"J_{k}"): x for k, x in enumerate(distance_derivatives())}
            bounds = integrand_tails({}, sums, node=coordinate, tables=growth, scalars={})
            starts = [float(b.start.upper()) for b in bounds]
            reach = flint.arb(math.ceil(max(4, math.sqrt(2 * bits * math.log(2)) + 3, *starts)))
            line = LineIntegrator(
                [convolution(c) for c in balls.convolutions],
                [Direct(branched(direct.function)) for direct in balls.directs],
                balls.combine,
                reach=reach,
                bits=prec,
                goal=flint.arb(2) ** -bits,
                breaks=balls.breaks,
            )
            return line, [mass_outside(bound, reach) for bound in bounds]
