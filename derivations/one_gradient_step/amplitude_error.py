r"""What neurons of one amplitude can represent: the error J(h), as an expression and to all digits.

After a step with η of order √N a neuron sees the teacher's coordinate t with some amplitude h and
the rest of its input as noise, so neurons of equal amplitude average to
:math:`g_h(t) = G(ht)`, :math:`G(s) = \mathbb{E}\,\sigma(s + \xi)`, and

.. math:: J(h) = \mathbb{E}\,\big(\sigma_*(t) - G(ht)\big)^2 = \mathbb{E}\sigma_*^2 - 2C(h) + S(h).

G is one function for all h. Where it has a closed form, C and S are one-dimensional expectations,
which the rules of :func:`.gaussian.expect` know or not; where one has none, J is an average over t
of :math:`g_k(t) = \mathbb{E}_z[\sigma(ht + z)\,\mathrm{He}_k(z)]`, which are G and its derivatives
at ht by Stein's lemma. Either way J is a system of equations with the parameter h, and its program
runs on floats, on numbers of any number of digits, and on balls.

(Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445, section 4.2; closed forms derived here.)
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import sympy as sp

from ...errors import ConvergenceError, EmissionError, GiantstepError
from ...numeric.cache import FileCache
from ...numeric.kernel_code import KernelCode
from ...numeric.saddle_point_solver import BatchSolution
from ...runtime.generated import PreciseKernel
from ...symbolic.activations import Activation
from ...symbolic.activations import z as variable
from ...symbolic.averages import Average
from ...symbolic.gaussian import GaussianExpectation, expect
from ...symbolic.hermite import hermite_coefficient
from ...symbolic.hermite_polynomials import hermite_polynomial
from ...symbolic.lowering.lowered import lower
from ...symbolic.saddle_point import SaddlePointSystem
from ...symbolic.zero_test import is_exactly_zero
from ..kernels.code import kernel_code
from ..kernels.precise import precise_kernel, refine

amplitude = sp.Symbol("h", real=True)
"""h: how strongly a neuron sees the teacher's coordinate."""

coordinate = sp.Symbol("t", real=True)
"""t: the teacher's coordinate of an input."""

mean_symbol = sp.Symbol("mean", real=True)
"""What :attr:`AmplitudeError.mean` is called in equations."""

_ARGUMENT = sp.Symbol("s", real=True)
_OFFSET = sp.Symbol("offset", real=True)
_ERROR = sp.symbols("J J_1 J_2", real=True)
_NEXT = sp.Symbol("next", real=True)
_SMOOTHED = sp.symbols("g_0 g_1 g_2", cls=sp.Function, real=True)
_TEACHER = sp.Function("f", real=True)
# Of the first rule for h = 0: steps of half the width on which the smoothed student varies.
_NODES = 40
Values: TypeAlias = Literal["derivatives", "newton"]


class Form(Enum):
    """How J is written."""

    CLOSED = "a formula"
    SMOOTHED = "an average over t of a closed form of the smoothed student"
    AVERAGED = "an average over t of averages of the student"


@dataclass(frozen=True)
class AmplitudeError:
    r"""J(h) of a pair of functions.

    Attributes
    ----------
    student, teacher : Activation
    centre : bool
        Both are taken minus their means.
    cache_folder : path, optional
        Where generated functions are kept; default: the user's cache directory.
    """

    student: Activation
    teacher: Activation
    centre: bool
    cache_folder: str | os.PathLike[str] | None = field(default=None, compare=False)

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
    def mean(self) -> sp.Expr:
        """What centring subtracts of the student, less what it subtracts of the teacher."""
        own, other = (f.expr - self._centred(f) for f in (self.student, self.teacher))
        return own - other

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

    def system(self, form: Form, values: Values) -> SaddlePointSystem:
        """Return J as equations with the parameters h and :attr:`mean`.

        Parameters
        ----------
        form : Form
            How J is written.
        values : {"derivatives", "newton"}
            J, J' and J''; or J and :math:`o + h - J'/J''` with a parameter o.
        """
        if form is Form.CLOSED:
            assert self.closed_form is not None
            error = [self.closed_form.diff(amplitude, k) for k in range(3)]
            return _system(error, {}, values)
        student = self.student.expr.xreplace({variable: amplitude * coordinate + variable})
        if form is Form.SMOOTHED:
            raw = expect(self.student.expr.xreplace({variable: _ARGUMENT + variable}), variable)
            argument = {_ARGUMENT: amplitude * coordinate}
            tables = [raw.diff(_ARGUMENT, k).xreplace(argument) for k in range(3)]
        else:
            tables = [
                GaussianExpectation(student * hermite_polynomial(k, variable), variable)
                for k in range(3)
            ]
        definitions = {g(coordinate): t for g, t in zip(_SMOOTHED, tables, strict=True)}
        definitions[_TEACHER(coordinate)] = self.teacher.expr.xreplace({variable: coordinate})
        constant = mean_symbol if self.mean.has(Average) else self.mean
        smoothed = sp.Function("smoothed", real=True)
        square = (_TEACHER(coordinate) + constant - smoothed(amplitude * coordinate)) ** 2
        error = [
            GaussianExpectation(_in_tables(square.diff(amplitude, k), smoothed), coordinate)
            for k in range(3)
        ]
        return _system(error, definitions, values)

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """How J can be written, what is cheaper to compute first."""
        found = [Form.AVERAGED]
        if not self.smoothed.has(Average):
            found = [Form.SMOOTHED, *found]
        return (Form.CLOSED, *found) if self.is_closed else tuple(found)

    def precise(
        self, h: sp.Rational, digits: int, *, show_progress: bool = True
    ) -> tuple[Any, Any]:
        """Return J to so many digits, and where Newton's method for J' = 0 leads from h.

        That is known to so many digits of 1 + abs(h). On a terminal a bar shows if it takes longer
        than a second.

        Raises
        ------
        ConvergenceError
            If the digits are not reached.
        """
        offset = 1 + abs(h)
        code, precise = self._program
        cache = FileCache(self.cache_folder)
        # The equations are explicit: all that floats would tell is how fine a rule is needed.
        nodes = math.ceil(_NODES * (1 + abs(h)))
        rough = BatchSolution({}, {}, *map(np.array, ([0], [0.0], [nodes], [True])))

        def exact(ctx: Any) -> dict[str, Any]:
            numbers = {amplitude: h, _OFFSET: offset}
            exact = {str(x): ctx.mpf(value.p) / value.q for x, value in numbers.items()}
            return {**exact, str(mean_symbol): ctx.mpf(str(self.mean.evalf(ctx.dps)))}

        try:
            found = refine(
                code.load(cache), precise, exact, digits, rough, show_progress=show_progress
            )
        except ConvergenceError as failure:
            raise ConvergenceError(
                f"J at h = {float(h):.6g} did not settle to the digits asked for: student or "
                "teacher may have a singularity very close to the real line; ask for fewer digits",
                state=failure.state,
            ) from None
        value, target = (found.values[str(x)] for x in (_ERROR[0], _NEXT))
        return value, target - target.context.mpf(offset.p) / offset.q

    @cached_property
    def _program(self) -> tuple[KernelCode, PreciseKernel]:
        for form in self.forms:
            try:
                lowered = lower(self.system(form, "newton"))
                code = kernel_code(lowered)
                return code, precise_kernel(lowered, code)
            except EmissionError as failure:
                # Closed forms hold more functions than there are languages for, erfi for one.
                refused = failure
        raise refused


def _in_tables(expr: sp.Expr, smoothed: Any) -> sp.Expr:
    """Put the tables of the smoothed student and its derivatives for a function of ht."""
    slopes = {d: _SMOOTHED[d.expr.derivative_count](coordinate) for d in expr.atoms(sp.Subs)}
    value = {smoothed(amplitude * coordinate): _SMOOTHED[0](coordinate)}
    return expr.xreplace(slopes).xreplace(value)


def _system(
    error: Sequence[sp.Expr],
    definitions: dict[sp.Expr, sp.Expr],
    values: Values,
) -> SaddlePointSystem:
    parameters = [amplitude]
    if any(node.has(mean_symbol) for node in error):
        parameters.append(mean_symbol)
    if values == "newton":
        wanted = {_ERROR[0]: error[0], _NEXT: _OFFSET + amplitude - error[1] / error[2]}
        parameters.append(_OFFSET)
    else:
        wanted = dict(zip(_ERROR, error, strict=True))
    return SaddlePointSystem.from_fixed_point(
        wanted,
        name="amplitude",
        title="squared distance of a teacher and a smoothed, rescaled student",
        parameters=parameters,
        definitions=definitions,
        node=coordinate,
    )


def exact_rational(number: Any) -> sp.Rational:
    """Return a number of an mpmath context as the rational that it is."""
    sign, mantissa, exponent, _ = number._mpf_
    return (-1) ** sign * sp.Integer(int(mantissa)) * sp.Integer(2) ** exponent


def with_numbers(expr: sp.Expr, number: Callable[[sp.Expr], sp.Expr]) -> sp.Expr:
    """Return an expression with its averages that hold no unknowns replaced by numbers."""
    nodes = [node for node in expr.atoms(Average) if not node.free_symbols]
    return expr.xreplace({node: number(node) for node in nodes})
