r"""What neurons of one amplitude can represent: the error J(h), its minimum τ_*, and a proof.

After a step with η of order √N a neuron sees the teacher's coordinate t with some amplitude h and
the rest of its input as noise, so neurons of equal amplitude average to
:math:`g_h(t) = G(ht)`, :math:`G(s) = \mathbb{E}\,\sigma(s + \xi)`, and

.. math:: J(h) = \mathbb{E}\,\big(\sigma_*(t) - G(ht)\big)^2 = \mathbb{E}\sigma_*^2 - 2C(h) + S(h).

G is one function for all h. Where it has a closed form, C and S are one-dimensional expectations,
which the rules of :func:`.gaussian.expectation.expect` know or not; where it has none, J is an
average over t of :math:`g_k(t) = \mathbb{E}_z[\sigma(ht + z)\,\mathrm{He}_k(z)]`, which are G and
its derivatives at ht by Stein's lemma. Either way J is a system of equations with the parameter h,
whose program runs on numbers of any number of digits and on balls; floats take G from a table.

**Minimum.** :math:`\sqrt{J(h)}` is the distance of two functions in :math:`L_2`, so it changes at
most like :math:`L|h - h'|` with :math:`L = \sup|G'|`, by which :func:`.local_minima.scan` excludes
amplitudes. Beyond the scan J goes to its limits for :math:`h \to \pm\infty`, where a bounded
student has become a step of the teacher's coordinate.

**Proof.** J at an exact amplitude is enclosed, which is a proven upper bound of τ_*. That no other
amplitude is better is proven by :mod:`giantstep.numeric.proofs.interval_minimum` up to \|h\| = H,
on cells where J and two derivatives follow from their values at the centre and from what the form
of the student bounds, and beyond H by that form alone. A student is taken apart into ramps
a z + b\|z\|, functions that saturate, one sine, and bounded rests, with arguments rz + s. Then

* :math:`|\sigma'| \le L`, so :math:`|G'| \le L`, :math:`|G''| \le L\sqrt{2/\pi}`, :math:`|G'''| \le
  \sqrt2 L` (Stein's lemma), which bounds the derivatives of J;
* for large \|h\| ramps leave every bound, because :math:`\mathbb{E}|s + \xi| \ge |s|`; saturating
  students differ from a step s by d with :math:`\mathbb{E}(G(ht) - s(ht))^2 \le
  D^2/(\sqrt{2\pi}|h|)`, :math:`D \le \|d\|_2 + |\Delta| (\varphi(0) 2 - \pi^{-1/2})^{1/2}` with the
  size Δ of the step (Young's inequality for the first part, :math:`\int_0^\infty \Phi(-s)^2 ds =
  \varphi(0) - 1/(2\sqrt\pi)` for the second), and :math:`|\Delta| |s/r|^{1/2}` more for a step that
  is not at zero; a sine averages out, :math:`|\mathbb{E} f(t)\sin(ht + s)| \le \|f' - tf\|/|h|`
  (integration by parts).

Where a part fails, the upper bound stays, and the statement says what is missing. For students that
are polynomials J is one, too.

(Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445, section 4.2; closed forms and bounds derived
here.)
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from functools import cache, cached_property, partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import sympy as sp
from tqdm.auto import tqdm

from ...ball_library import require_flint
from ...digits import MOST_DIGITS, held_digits
from ...errors import (
    CertificationError,
    ConvergenceError,
    EmissionError,
    GiantstepError,
    MissingDependencyError,
)
from ...numeric.cache import FileCache
from ...numeric.kernel_code import KernelCode
from ...numeric.local_minima import Scan, refined, scan
from ...numeric.proofs.interval_minimum import (
    Ball,
    BallFunction,
    Beyond,
    Function,
    ProvenMinimum,
    minimise,
)
from ...numeric.saddle_point_solver import BatchSolution
from ...numeric.scaled_distance import ScaledDistance
from ...numeric.smoothed import Smoothed
from ...runtime.generated import PreciseKernel
from ...runtime.precision import local_context
from ...runtime.quadrature import REACH
from ...runtime.roots import newton
from ...symbolic.exact.enclosures import Enclosure
from ...symbolic.expressions.activations import Activation, z, z as variable
from ...symbolic.expressions.averages import Average
from ...symbolic.expressions.boundedness import is_bounded, value_at_infinity
from ...symbolic.expressions.functions import relu, sigmoid, softplus
from ...symbolic.expressions.regularity import Parity
from ...symbolic.gaussian.enclosed_formulas import FormulaBalls
from ...symbolic.gaussian.enclosures import (
    PRECISION,
    ConstantBalls,
    MomentBalls,
    NotReached,
    enclosure_of,
)
from ...symbolic.gaussian.expectation import GaussianExpectation, expect
from ...symbolic.gaussian.hermite_polynomials import hermite_polynomial
from ...symbolic.gaussian.zero_test import is_exactly_zero
from ...symbolic.hermite.coefficients import hermite_coefficient
from ...symbolic.lowering.lowered import lower
from ...symbolic.systems.saddle_point import SaddlePointSystem
from ..certificates.certificate import LIBRARIES, CertifiedValues
from ..certificates.minimum import (
    GUARD_BITS,
    FirstEnclosed,
    FormulaOnBalls,
    ProgramOnBalls,
    float_function,
    stated,
)
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
        result = [Form.AVERAGED]
        if not self.smoothed.has(Average):
            result = [Form.SMOOTHED, *result]
        return (Form.CLOSED, *result) if self.is_closed else tuple(result)

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
            result = refine(
                code.load(cache), precise, exact, digits, rough, show_progress=show_progress
            )
        except ConvergenceError as failure:
            raise ConvergenceError(
                f"J at h = {float(h):.6g} did not settle to the digits asked for: student or "
                "teacher may have a singularity very close to the real line; ask for fewer digits",
                state=failure.state,
            ) from None
        value, target = (result.values[str(x)] for x in (_ERROR[0], _NEXT))
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
    error: Sequence[sp.Expr], definitions: dict[sp.Expr, sp.Expr], values: Values
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


_FARTHEST, _FARTHEST_OSCILLATING = 1024.0, 32.0
_CORE = 8.0
_MOST_TIMES_FARTHER = 8.0
_EDGE = 0.99
_ZERO, _MAYBE_ZERO = 1e-28, 1e-20
"""Of the teacher's square: below the first J is rounding, below the second algebra is asked."""

_LARGEST_DENOMINATOR = 1000
_SAME = 1e-12
_ROUNDING = 1e-15
_LARGEST = 1e100
_MOST_INTERVALS = 4
# How far, relatively, many digits may be from floats.
_FLAT = 1e-3
# Of numbers that are printed with fewer.
_SPARE_DIGITS = 10


@dataclass(frozen=True)
class AmplitudeMinimum:
    r"""Where J is least.

    Attributes
    ----------
    amplitude : float
        Of several that tie, the positive one that is closest to zero; infinite if J only
        approaches its infimum.
    error : float
        Estimated absolute error of the value.
    others : tuple of float
        Amplitudes with the same value.
    limits : tuple of (float or None, float or None)
        J for h to minus and plus infinity; None where not known.
    farthest : float
        Up to which \|h\| amplitudes were searched.
    searched, beyond : str
        What "least" rests on among these amplitudes, and what is known of larger ones.
    exact : tuple of (Expr, Expr) or None
        Amplitude and value where algebra knows them.
    """

    amplitude: float
    value: float
    error: float
    others: tuple[float, ...]
    limits: tuple[float | None, float | None]
    farthest: float
    searched: str
    beyond: str
    exact: tuple[sp.Expr, sp.Expr] | None = None


def float_distance(error: AmplitudeError) -> ScaledDistance:
    """Return J in floating point."""
    slope = error.student.derivative
    smoothed: Callable[..., Any]
    smoothed_slope: Callable[..., Any]
    try:
        if error.smoothed.has(Average):
            raise EmissionError("the smoothed student has no closed form")
        smoothed = float_function(error.smoothed, error.argument)
        smoothed_slope = float_function(error.smoothed_slope, error.argument)
    except EmissionError:
        kinks = tuple(sorted(float(k) for k in error.student.kinks))
        smoothed = Smoothed(float_function(error.student_expr, variable), kinks)
        smoothed_slope = Smoothed(float_function(slope, variable), kinks)
    return ScaledDistance(
        float_function(error.teacher_expr, variable),
        tuple(sorted(float(k) for k in error.teacher.kinks)),
        smoothed,
        smoothed_slope,
    )


def least_error(error: AmplitudeError, distance: ScaledDistance) -> AmplitudeMinimum:
    """Minimise J over all real amplitudes."""
    oscillating = _oscillates(error)
    farthest = _farthest(distance, oscillating)
    result = _scan(distance, farthest, oscillating)
    candidates = [_refined(distance, bracket) for bracket in result.brackets]
    candidates = [c for c in candidates if math.isfinite(c[1])]
    if not candidates:
        raise ConvergenceError("no amplitude with a finite error was found")
    size = distance.size
    limits = (_limit(error, -1, size), _limit(error, 1, size))
    best = min(value for _, value in candidates)
    # Rounding of J is relative to its root.
    tolerance = max(1e-13 * best, 1e-14 * math.sqrt(best * size), _ZERO * size)
    ties = sorted(
        {round(h, 12): h for h, value in candidates if value <= best + tolerance}.values(),
        key=lambda h: (abs(h) > 1e-9, abs(round(h, 9)), h < 0),
    )
    for side, limit in zip((-1, 1), limits, strict=True):
        # A tail that decreases has its least value on the last points of the scan.
        if limit is not None and limit < best * (1 - 1e-12):
            return AmplitudeMinimum(
                side * math.inf, limit, 1e-15, (), limits, farthest,
                f"{len(result.points)} amplitudes with |h| <= {farthest:g}, all above the limit",
                _beyond(farthest, limits),
            )  # fmt: skip
    least, value = ties[0], best
    if abs(least) > _EDGE * farthest:
        raise ConvergenceError(
            f"the least error lies beyond the amplitudes that are scanned, |h| <= {farthest:g}: "
            "the student varies too slowly for this teacher; scale its argument, such as tanh(z) "
            "for tanh(z/c)"
        )
    exact = _exact_zero(error, least) if value < _MAYBE_ZERO * size else None
    if exact is not None:
        least, value = float(exact[0]), 0.0
    return AmplitudeMinimum(
        amplitude=least,
        value=value,
        error=0.0 if exact is not None else _error(distance, least, value),
        others=tuple(ties[1:]),
        limits=limits,
        farthest=farthest,
        searched=_searched(result, farthest),
        beyond=_beyond(farthest, limits),
        exact=exact,
    )


def precise_minimum(
    error: AmplitudeError, start: AmplitudeMinimum, digits: int, *, show_progress: bool = True
) -> tuple[str, str]:
    """Return amplitude and least error as texts of so many digits."""
    if start.exact is not None:
        h, value = (held_digits(x.evalf(digits + _SPARE_DIGITS), digits) for x in start.exact)
        return h, value
    if math.isinf(start.amplitude):
        side = 1 if start.amplitude > 0 else -1
        limit = limit_at_infinity(error, side, float_distance(error).size)
        assert limit is not None
        return str(start.amplitude), held_digits(limit.evalf(digits + _SPARE_DIGITS), digits)
    most = min(digits + _SPARE_DIGITS, MOST_DIGITS)
    ctx = local_context(most)
    initial, what = ctx.mpf(start.amplitude), f"the amplitude near h = {start.amplitude:.9g}"
    width = 1 + abs(initial)

    def precise(h: Any) -> tuple[Any, Any]:
        return error.precise(exact_rational(h), most, show_progress=show_progress)

    def move(h: Any) -> Any:
        step = h - precise(h)[1]
        if abs(h - step - initial) > _FLAT * width:
            raise ConvergenceError(
                f"{what} cannot be refined: J is flat there; ask for fewer digits"
            )
        return step

    # What is left after a step is about its square.
    h = newton(move, initial, ctx.mpf(10) ** -(digits // 2 + _SPARE_DIGITS // 2), what, size=1)
    return held_digits(h, digits), held_digits(precise(h)[0], digits)


# ---------------------------------------------------------------------- parts


def _farthest(distance: ScaledDistance, oscillating: bool) -> float:
    """Up to where amplitudes are scanned: a student that grows fast leaves the floats early."""
    farthest = _FARTHEST
    if oscillating:
        # A teacher that varies fast asks for large amplitudes.
        farthest = _FARTHEST_OSCILLATING * min(_MOST_TIMES_FARTHER, distance.finest)
    while farthest > 1:
        ends = np.array([-1.0, 1.0]) * farthest * (REACH + 0.5)
        try:
            with np.errstate(all="ignore"):
                if np.all(np.abs(distance.smoothed(ends)) < _LARGEST):
                    break
        except ConvergenceError:
            if farthest <= _CORE:
                raise
        farthest /= 2
    return farthest


def _oscillates(error: AmplitudeError) -> bool:
    ends = [value_at_infinity(error.student.expr, variable, side) for side in (1, -1)]
    return None in ends and is_bounded(error.student.expr, variable) is not False


def _scan(distance: ScaledDistance, farthest: float, oscillating: bool) -> Scan:
    core = min(_CORE, farthest)
    points = np.linspace(-core, core, 129)
    if oscillating:
        outside = np.arange(core, farthest, 0.25)[1:]
    else:
        outside = core * 1.15 ** np.arange(1, 36)
        outside = np.append(outside[outside < farthest], [farthest] if farthest > core else [])
    points = np.concatenate([-outside[::-1], points, outside])
    return scan(distance.value, list(map(float, points)), steepness=distance.steepness(farthest))


def _refined(distance: ScaledDistance, bracket: tuple[float, float]) -> tuple[float, float]:
    low, high = bracket
    h, value = refined(
        distance.value, bracket, f"the least error near h = {low:.4g}",
        slope=distance.derivative, tolerance=1e-10,
    )  # fmt: skip
    # A minimum at zero by symmetry is flat to rounding around it.
    if low <= 0 <= high and (at_zero := distance.value(0.0)) <= value * (1 + _ROUNDING):
        return 0.0, at_zero
    return h, value


def _error(distance: ScaledDistance, h: float, value: float) -> float:
    finer = abs(distance.value(h, 1) - value)
    rounding = 4e-15 * math.sqrt(value) * (1 + abs(h)) + 1e-16 * value
    return finer + rounding


def _limit(error: AmplitudeError, side: int, size: float) -> float | None:
    expr = limit_at_infinity(error, side, size)
    if expr is None:
        return None
    return math.inf if expr is sp.oo else float(expr.evalf(20))


def limit_at_infinity(error: AmplitudeError, side: int, size: float) -> sp.Expr | None:
    """Return J for h to ± infinity: the student is a step, or leaves every bound.

    Numbers that are rounding against `size` become zero; with a size of 0 none does.
    """
    ends = [value_at_infinity(error.student.expr, variable, s * side) for s in (-1, 1)]
    if any(end is not None and end.is_infinite for end in ends):
        return sp.oo
    if None in ends:
        closed = error.closed_form
        return None if closed is None else value_at_infinity(closed, amplitude, side)
    mean = sp.expand(error.student.expr - error.student_expr)
    left, right = (end - mean for end in ends)
    step = left + (right - left) * sp.Heaviside(variable, sp.Rational(1, 2))
    difference = error.teacher_expr - step
    if sp.expand(difference.rewrite(sp.Heaviside)) == 0:
        return sp.S.Zero
    try:
        value = expect(sp.expand(difference**2), variable)
        number = value.evalf(20)
    except GiantstepError:
        return None
    return sp.S.Zero if abs(number) < 1e-18 * size else value


def _exact_zero(error: AmplitudeError, h: float) -> tuple[sp.Expr, sp.Expr] | None:
    square = Fraction(h * h).limit_denominator(_LARGEST_DENOMINATOR)
    if abs(h * h - float(square)) > _SAME * (1 + h * h):
        return None
    exact = sp.sqrt(sp.Rational(square.numerator, square.denominator)) * (1 if h >= 0 else -1)
    return (exact, sp.S.Zero) if error.vanishes_at(exact) else None


def _searched(found: Scan, farthest: float) -> str:
    text = f"{len(found.points)} amplitudes with |h| <= {farthest:g}"
    count = len(found.remaining)
    if not count:
        return text
    if count <= _MOST_INTERVALS:
        where = " and ".join(f"[{a:.4g}, {b:.4g}]" for a, b in found.remaining)
    else:
        where = f"{count} intervals in [{found.remaining[0][0]:.4g}, {found.remaining[-1][1]:.4g}]"
    return text + f"; the slope of sqrt(J) excludes lower values there outside {where}"


def _beyond(farthest: float, limits: tuple[float | None, float | None]) -> str:
    known = [
        f"J({name}) = {limit:.6g}" for name, limit in zip(("-oo", "oo"), limits, strict=True)
        if limit is not None
    ]  # fmt: skip
    if not known:
        return f"nothing is known for |h| > {farthest:g}"
    rest = "only the limit is known" if len(known) == 1 else "only the limits are known"
    return f"for |h| > {farthest:g} {rest}: " + ", ".join(known)


class _Part(NamedTuple):
    """A known f(z): bounds of its slope and of its rest, half of its step and |f − step|²."""

    slope: sp.Expr
    rest: sp.Expr
    ramp: tuple[sp.Expr, sp.Expr] = (sp.S.Zero, sp.S.Zero)
    saturates: tuple[sp.Expr, sp.Expr] | None = None


_HALF, _ABS = sp.S.Half, (sp.S.Zero, sp.S.One)
# From 0 on: int (1 - tanh)^2 = 2 log 2 - 1, int erfc^2 = (2 - sqrt 2)/sqrt(pi), int arccot^2 =
# pi log 2. softplus = relu + log(1 + exp(-|z|)).
_ERF_SQUARE = 2 * (2 - sp.sqrt(2)) / sp.sqrt(sp.pi)
_PARTS = {
    sp.tanh: _Part(sp.S.One, sp.S.One, saturates=(sp.S.One, 4 * sp.log(2) - 2)),
    sp.erf: _Part(2 / sp.sqrt(sp.pi), sp.S.One, saturates=(sp.S.One, _ERF_SQUARE)),
    sp.atan: _Part(sp.S.One, sp.pi / 2, saturates=(sp.pi / 2, 2 * sp.pi * sp.log(2))),
    sp.sin: _Part(sp.S.One, sp.S.One),
    sp.cos: _Part(sp.S.One, sp.S.One),
    sp.Abs: _Part(sp.S.One, sp.S.Zero, _ABS),
    relu: _Part(sp.S.One, sp.S.Zero, (_HALF, _HALF)),
    softplus: _Part(sp.S.One, sp.log(2), (_HALF, _HALF)),
}
# Of z f(z), f a sigmoid: |z|(1 - tanh|z|) = 2|z|/(1 + exp(2|z|)) <= 2|z| exp(-2|z|) and
# |z| sech(z)^2 <= 4|z| exp(-2|z|); erfc(x) <= exp(-x^2). Swish and gelu are made of these.
_WITH_FACTOR = {
    sp.tanh: _Part(1 + 2 * sp.exp(-1), sp.exp(-1), _ABS),
    sp.erf: _Part(1 + sp.sqrt(2 / (sp.pi * sp.E)), 1 / sp.sqrt(2 * sp.E), _ABS),
}


@dataclass(frozen=True)
class StudentShape:
    r"""A student as sums of known parts.

    Attributes
    ----------
    slope : Expr
        L, a bound of \|σ'\|.
    ramp : tuple of Expr
        a and b of the ramps a z + b\|z\|.
    rest : Expr
        A bound of what is left of σ.
    distance : Expr or None
        D of a student that saturates, None if it does not.
    sine : tuple of Expr or None
        (c, a) of a student c sin(a z + s) + constant.
    constant : Expr
        What it has without z.
    """

    slope: sp.Expr
    ramp: tuple[sp.Expr, sp.Expr]
    rest: sp.Expr
    distance: sp.Expr | None = None
    sine: tuple[sp.Expr, sp.Expr] | None = None
    constant: sp.Expr = sp.S.Zero

    @property
    def has_ramp(self) -> bool:
        """Whether the student is unbounded."""
        return self.ramp != (0, 0)


def student_shape(expr: sp.Expr) -> StudentShape:
    """Take a student apart.

    Examples
    --------
    >>> from giantstep.symbolic.expressions.activations import activation
    >>> shape = student_shape(activation("tanh").expr)
    >>> shape.slope, shape.has_ramp, shape.sine
    (1, False, None)
    """
    expr = sp.expand(expr.replace(sigmoid, lambda u: (1 + sp.tanh(u / 2)) / 2))
    terms = sp.Add.make_args(expr)
    constants = [term for term in terms if z not in term.free_symbols]
    parts = [_shape(term) for term in terms if z in term.free_symbols]
    distances = [part.distance for part in parts]
    return StudentShape(
        slope=sp.Add(*(part.slope for part in parts)),
        ramp=(sp.Add(*(part.ramp[0] for part in parts)), sp.Add(*(part.ramp[1] for part in parts))),
        rest=sp.Add(*map(abs, constants), *(part.rest for part in parts)),
        distance=None if None in distances else sp.Add(*distances),
        sine=parts[0].sine if len(parts) == 1 else None,
        constant=sp.Add(*constants),
    )


def smoothing_of_a_step() -> sp.Expr:
    r"""Return the norm on the line of Φ(s) minus the unit step, :math:`(2\int\Phi(-s)^2)^{1/2}`."""
    return sp.sqrt(2 / sp.sqrt(2 * sp.pi) - 1 / sp.sqrt(sp.pi))


def _shape(term: sp.Expr) -> StudentShape:
    """Return the shape of one term, a multiple of a known function of a z + s."""
    factor, function = term.as_independent(z, as_Add=False)
    if function == z:
        return StudentShape(abs(factor), (factor, sp.S.Zero), sp.S.Zero)
    inner = function / z
    known, has_factor = (_WITH_FACTOR, True) if inner.func in _WITH_FACTOR else (_PARTS, False)
    inner = inner if has_factor else function
    part = known.get(inner.func)
    rate = inner.args[0].diff(z) if part is not None else sp.nan
    shift = sp.expand(inner.args[0] - rate * z) if part is not None else sp.nan
    if part is None or {z} & (rate.free_symbols | shift.free_symbols) or (has_factor and shift):
        raise CertificationError(
            f"nothing is proven about large amplitudes of a student with the part {function}; "
            "known are sums of z, |z|, relu, softplus, tanh, erf, atan, sigmoid, sine and cosine "
            "of multiples of z plus a number, and of z times tanh, erf or sigmoid of multiples of z"
        )
    # z f(rz) is (rz) f(rz)/r.
    factor = factor / rate if has_factor else factor
    distance = None
    if part.saturates is not None:
        half_step, square = part.saturates
        away = smoothing_of_a_step() + sp.sqrt(abs(shift / rate))
        distance = abs(factor) * (sp.sqrt(square / abs(rate)) + 2 * half_step * away)
    return StudentShape(
        slope=abs(factor * rate) * part.slope,
        ramp=(factor * rate * part.ramp[0], factor * abs(rate) * part.ramp[1]),
        rest=abs(factor) * (part.rest + abs(shift) * sum(map(abs, part.ramp))),
        distance=distance,
        sine=(factor, rate) if inner.func in (sp.sin, sp.cos) else None,
    )


_LEAST_DIGITS = 15
# Of numbers that only decide, and of those that these are made of.
_BITS, _NUMBER_BITS = 40, 64
# Of the interval of τ_*, relative to it, where the amplitude is not isolated.
_GOAL = 1e-9
# Of minutes at most: averages of averages take longer than averages.
_MOST_CELLS = {Form.CLOSED: 40_000, Form.SMOOTHED: 10_000, Form.AVERAGED: 1_500}
_TYPICAL = sp.sqrt(2 / sp.pi)
"""E|z|; E|t|³ is twice that."""

_THEOREM = (
    "τ_* as Ba et al. (arXiv 2205.01445, section 4.2) define it, for exact student and teacher"
)
_STRUCTURE = (
    "the bounds of derivatives and of large amplitudes derived here from the student's form"
)


def certified_tau_star(
    error: AmplitudeError, minimum: AmplitudeMinimum, digits: int, *, progress: bool | None = None
) -> CertifiedValues:
    """Return τ_* as a proven interval, or a proven upper bound of it where no more is proven.

    The values are ``tau_star`` and, if there is one best amplitude up to symmetry, ``amplitude``;
    or ``tau_star_upper``, the enclosure of J at an amplitude, whose upper end bounds τ_*. What was
    found in floating point, `minimum`, only says where to look.
    """
    flint = require_flint()
    bits = math.ceil((digits + 2) * math.log2(10)) + GUARD_BITS
    if minimum.exact is not None or math.isinf(minimum.amplitude):
        values, statement = _by_algebra(error, minimum, digits)
    else:
        with PRECISION, flint.ctx.workprec(bits):
            values, statement = _finite(error, minimum, digits, progress)
    return CertifiedValues(
        title=f"τ_*, student {error.student.name}, teacher {error.teacher.name}",
        values=values,
        statement=statement,
        assumptions=(*LIBRARIES, _STRUCTURE, _THEOREM),
        digits=digits,
    )


def _by_algebra(
    error: AmplitudeError, minimum: AmplitudeMinimum, digits: int
) -> tuple[dict[str, Enclosure], str]:
    zero, formulas = Enclosure(sp.S.Zero, sp.S.Zero), FormulaBalls({})
    if minimum.exact is not None:
        at, value = minimum.exact
        return {"tau_star": zero, "amplitude": formulas.enclosure(at, digits)}, (
            f"τ_* = {value}: the smoothed student at h = {at} is the teacher, and J is a square"
        )
    limit = limit_at_infinity(error, 1 if minimum.amplitude > 0 else -1, 0.0)
    if limit is None or limit.is_infinite:
        raise CertificationError("the limit of J for large amplitudes has no enclosure")
    if limit == 0:
        return {"tau_star": zero}, (
            "τ_* = 0: J, which is a square, goes to zero for h to infinity, where the student is "
            "the teacher"
        )
    return {"tau_star_upper": formulas.enclosure(limit, digits)}, (
        "τ_* is at most the upper end: J has this limit for h to infinity; that no finite "
        "amplitude is better is not proven"
    )


def _finite(
    error: AmplitudeError, minimum: AmplitudeMinimum, digits: int, progress: bool | None
) -> tuple[dict[str, Enclosure], str]:
    arb = require_flint().arb
    wanted = math.ceil((digits + 2) * math.log2(10))
    start = arb(minimum.amplitude)
    if digits > _LEAST_DIGITS:
        shown = progress is not False
        start = arb(precise_minimum(error, minimum, digits, show_progress=shown)[0]).mid()
    balls = amplitude_balls(error)
    value = balls.at(start, wanted)[0]
    # J(-h) = J(h): G(-ht) is G(ht), or G(h(-t)), and -t has the law of t.
    even = Parity.EVEN in (error.student.parity, error.teacher.parity)
    try:
        result = _least(error, balls, start, wanted, even, progress)
    except MissingDependencyError:
        raise
    except (GiantstepError, NotReached) as failure:
        return {"tau_star_upper": enclosure_of(value, "J")}, (
            f"τ_* is at most the upper end, J at h = {float(start):.15g}; that no amplitude is "
            f"better is not proven: {failure}"
        )
    return stated(
        result, value=("tau_star", "τ_*"), function="J", place=("amplitude", "h", "amplitude"),
        mirrored=even,
    )  # fmt: skip


def _least(
    error: AmplitudeError,
    balls: FirstEnclosed,
    start: Ball,
    bits: int,
    even: bool,
    progress: bool | None,
) -> ProvenMinimum:
    """Prove where J is least; where it is even, among amplitudes that are not negative."""
    function: Function
    if error.smoothed.is_polynomial(error.argument):
        function, beyond = _polynomial(error, bits)
    else:
        function = _BoundedError(balls, student_shape(error.student_expr), bits)
        beyond = _far_away(error, function.shape)
    with tqdm(
        desc="proving that τ_* is least", unit_scale=True, leave=False, delay=1,
        disable=None if progress is None else not progress,
    ) as bar:  # fmt: skip
        return minimise(
            function,
            (0.0 if even else -math.inf, math.inf),
            starts=[start],
            beyond=beyond,
            goal=_GOAL * float(balls.at(start, bits)[0].upper()),
            most_cells=_MOST_CELLS[balls.form],
            what="h",
            progress=bar.update,
        )


def amplitude_balls(error: AmplitudeError, forms: Sequence[Form] = ()) -> FirstEnclosed:
    """Return J, J' and J'' at exact amplitudes as balls, by the first form that can be enclosed."""

    def built(form: Form) -> FormulaOnBalls | ProgramOnBalls:
        if form is Form.CLOSED:
            # Not as a program: closed forms hold functions that no language has, erfi for one.
            assert error.closed_form is not None
            return FormulaOnBalls(error.closed_form, amplitude)
        system = error.system(form, "derivatives")
        means = {mean_symbol: error.mean} if mean_symbol in system.parameters else {}
        return ProgramOnBalls(system, amplitude, means)

    return FirstEnclosed({f: partial(built, f) for f in forms or error.forms}, "J at h")


class _BoundedError:
    """J on cells, by its values at their centres and what the student's slope bounds.

    Parameters
    ----------
    shape : StudentShape
    bits : int
        Of values at points.
    """

    def __init__(self, balls: FirstEnclosed, shape: StudentShape, bits: int) -> None:
        self.shape = shape
        self._balls, self._bits = balls, bits
        self._arb = require_flint().arb
        self._slope = _number(shape.slope).upper()
        self._typical = _number(_TYPICAL * sp.sqrt(3))

    def at(self, point: Ball) -> tuple[Ball, Ball]:
        """Return J and J'."""
        value, slope, _ = self._balls.at(point, self._bits)
        return value, slope

    def over(self, centre: Ball, radius: float, order: int) -> Ball:
        """Return a derivative of J over a cell."""
        arb, largest = self._arb, self._slope
        value, slope, curvature = self._balls.at(centre, _BITS)
        # |d sqrt(J)/dh| <= L, and Stein's bounds of G'' and G'''.
        far = value.upper().max(arb(0)).sqrt() + largest * radius
        second = 2 * largest**2 + 2 * far * largest * self._typical
        third = 24 * largest**2 / arb.pi() + 2 * far * largest * arb(30).sqrt()
        away = arb(0, radius)
        curvature = _narrower(curvature + third.upper() * away, arb(0, second.upper()))
        if order == 2:
            return curvature
        slope = slope + curvature * away
        if order == 1:
            return slope
        lowest = _positive(value).sqrt() - largest * radius
        roots = _positive(lowest).union(far.upper())
        return _narrower(value + slope * away, roots**2)


def _narrower(one: Ball, other: Ball) -> Ball:
    """Return what lies in both of two balls, which have a number in common."""
    return one.lower().max(other.lower()).union(one.upper().min(other.upper()))


def _far_away(error: AmplitudeError, shape: StudentShape) -> Beyond:
    """Return what bounds J from below for large amplitudes, from the form of the student."""
    teacher = error.teacher_expr.xreplace({variable: coordinate})
    rest = teacher - shape.constant

    @cache
    def limit_root(side: int) -> Ball:
        limit = limit_at_infinity(error, side, 0.0)
        if limit is None:
            raise CertificationError("the limit of J for large amplitudes is not known")
        return _positive(_number(limit)).sqrt()

    @cache
    def norms() -> tuple[Ball, Ball]:
        # E f², and the norm of f' − t f, f the teacher minus the student's constant.
        slope = error.teacher.derivative.xreplace({variable: coordinate})
        return _moment(rest**2), _moment((slope - coordinate * rest) ** 2).sqrt().upper()

    @cache
    def teacher_norm() -> Ball:
        return _moment(teacher**2).sqrt()

    def bound(side: int, reach: float) -> Ball:
        h = require_flint().arb(reach)
        if shape.has_ramp:
            growth = _number(sp.sqrt(sum(x**2 for x in shape.ramp)))
            return _positive(growth * h - _number(shape.rest) - teacher_norm()) ** 2
        if shape.distance is not None:
            tail = _number(shape.distance / (2 * sp.pi) ** sp.Rational(1, 4)) / h.sqrt()
            return _positive(limit_root(side) - tail) ** 2
        if shape.sine is not None and not error.teacher.jumps:
            factor, rate = shape.sine
            own = _number(factor**2 * sp.exp(-(rate**2)) / 2)
            damping = (-2 * _number(rate**2) * h**2).exp()
            square, wavering = norms()
            cross = _number(abs(factor / rate) * sp.exp(-(rate**2) / 2)) * wavering / h
            return (square - 2 * cross + own * (1 - damping)).lower()
        raise CertificationError("nothing is proven about large amplitudes of this student")

    return bound


def _positive(value: Ball) -> Ball:
    """Return a lower bound of a number that is not negative."""
    return value.lower().max(require_flint().arb(0))


def _polynomial(error: AmplitudeError, bits: int) -> tuple[Function, Beyond]:
    """Return J of a student that is a polynomial, and what bounds it far away."""
    flint = require_flint()
    teacher = error.teacher_expr.xreplace({variable: coordinate})
    square = sp.Poly((teacher - error.realised) ** 2, amplitude)
    numbers = [
        ConstantBalls(expect(sp.expand(c), coordinate)).ball(bits + GUARD_BITS)
        for c in reversed(square.all_coeffs())
    ]
    j = flint.arb_poly(numbers)

    def bound(side: int, reach: float) -> Ball:
        *lower, highest = numbers
        h, degree = flint.arb(reach), len(lower)
        # What lower powers are at most beside the highest falls with h.
        rest = sum((abs(c).upper() / h ** (degree - k) for k, c in enumerate(lower)), flint.arb(0))
        return _positive(highest - rest) * h**degree

    return BallFunction([j, j.derivative(), j.derivative().derivative()]), bound


def _moment(integrand: sp.Expr) -> Ball:
    return MomentBalls(integrand, coordinate).ball(0, _NUMBER_BITS)[0]


def _number(expr: sp.Expr) -> Ball:
    return ConstantBalls(sp.sympify(expr, strict=True)).ball(_NUMBER_BITS)
