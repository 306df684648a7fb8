r"""A proven interval for :math:`\tau_* = \inf_h J(h)`.

At any exact amplitude J is enclosed, which is a proven upper bound of τ_*. That no other amplitude
is better is proven in three parts:

* around the best one J is convex, and has one stationary point;
* up to \|h\| = H by branch and bound (:mod:`giantstep.numeric.interval_minimum`): on a cell J and
  two derivatives follow from their values at its centre, which are those of a program that runs on
  balls, and from bounds of the slope of :math:`\sqrt J` and of two higher derivatives of J;
* beyond H by the structure of the student (:mod:`.amplitude_structure`).

Where a part fails, the upper bound stays, and the statement says what is missing. For students that
are polynomials J is one, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import sympy as sp
from tqdm.auto import tqdm

from ...ball_library import require_flint
from ...errors import (
    AssumptionError,
    CertificationError,
    EmissionError,
    GiantstepError,
    MissingDependencyError,
    UnsupportedExpressionError,
)
from ...numeric.interval_minimum import (
    Ball,
    BallFunction,
    Beyond,
    Function,
    ProvenMinimum,
    minimise,
)
from ...symbolic.activations import z as variable
from ...symbolic.averages import Average
from ...symbolic.ball_functions import BallEvaluator
from ...symbolic.enclosed_formulas import FormulaBalls
from ...symbolic.enclosures import Enclosure
from ...symbolic.gaussian import expect
from ...symbolic.gaussian_enclosures import (
    PRECISION,
    ConstantBalls,
    MomentBalls,
    NotReached,
    enclosure_of,
)
from ...symbolic.lowering.ball_program import BallLoop, BallProgram, Scalars
from ...symbolic.lowering.lowered import LoweredSystem, lower
from ...symbolic.regularity import Parity
from ..certificates.certificate import LIBRARIES, CertifiedValues
from ..certificates.proof import LineTables
from .amplitude_error import AmplitudeError, Form, amplitude, coordinate, mean_symbol
from .amplitude_minimum import AmplitudeMinimum, limit_at_infinity, precise_minimum
from .amplitude_structure import StudentShape, student_shape

_LEAST_DIGITS = 15
_GUARD_BITS = 40
# Of numbers that only decide, and of those that these are made of.
_BITS, _NUMBER_BITS = 40, 64
# Of the interval of τ_*, relative to it, where the amplitude is not isolated.
_GOAL = 1e-9
# Of minutes at most: averages of averages take longer than averages.
_MOST_CELLS = {Form.CLOSED: 40_000, Form.SMOOTHED: 10_000, Form.AVERAGED: 1_500}
_MOST_KNOWN = 8
_TYPICAL = sp.sqrt(2 / sp.pi)
"""E|z|; E|t|³ is twice that."""

_THEOREM = (
    "τ_* as Ba et al. (arXiv 2205.01445, section 4.2) define it, for exact student and teacher"
)
_STRUCTURE = (
    "the bounds of derivatives and of large amplitudes derived here from the student's form"
)


def certified_tau_star(
    error: AmplitudeError,
    minimum: AmplitudeMinimum,
    digits: int,
    *,
    progress: bool | None = None,
) -> CertifiedValues:
    """Return τ_* as a proven interval, or a proven upper bound of it where no more is proven.

    Parameters
    ----------
    error : AmplitudeError
    minimum : AmplitudeMinimum
        What was found in floating point; only where to look.
    digits : int
        Digits of the value.
    progress : bool, optional
        Progress bar; by default where the error stream is a terminal.

    Returns
    -------
    CertifiedValues
        ``tau_star`` and, if there is one best amplitude up to symmetry, ``amplitude``; or
        ``tau_star_upper``, the enclosure of J at an amplitude, whose upper end bounds τ_*.

    Raises
    ------
    CertificationError
        If not even that can be enclosed.
    MissingDependencyError
        If python-flint is not installed.
    """
    require_flint()
    title = f"τ_*, student {error.student.name}, teacher {error.teacher.name}"
    if minimum.exact is not None:
        at, zero = minimum.exact
        best = FormulaBalls({}).enclosure(at, digits)
        return _values(
            title,
            {"tau_star": Enclosure(sp.S.Zero, sp.S.Zero), "amplitude": best},
            f"τ_* = {zero}: the smoothed student at h = {at} is the teacher, and J is a square",
            digits,
        )
    if math.isinf(minimum.amplitude):
        return _at_infinity(title, error, minimum, digits)
    bits = math.ceil((digits + 2) * math.log2(10)) + _GUARD_BITS
    with PRECISION, require_flint().ctx.workprec(bits):
        return _finite(title, error, minimum, digits, progress)


def _at_infinity(
    title: str, error: AmplitudeError, minimum: AmplitudeMinimum, digits: int
) -> CertifiedValues:
    limit = limit_at_infinity(error, 1 if minimum.amplitude > 0 else -1, 0.0)
    if limit is None or limit.is_infinite:
        raise CertificationError("the limit of J for large amplitudes has no enclosure")
    if limit == 0:
        return _values(
            title,
            {"tau_star": Enclosure(sp.S.Zero, sp.S.Zero)},
            "τ_* = 0: J, which is a square, goes to zero for h to infinity, where the student is "
            "the teacher",
            digits,
        )
    return _values(
        title,
        {"tau_star_upper": FormulaBalls({}).enclosure(limit, digits)},
        "τ_* is at most the upper end: J has this limit for h to infinity; that no finite "
        "amplitude is better is not proven",
        digits,
    )


def _finite(
    title: str,
    error: AmplitudeError,
    minimum: AmplitudeMinimum,
    digits: int,
    progress: bool | None,
) -> CertifiedValues:
    arb = require_flint().arb
    wanted = math.ceil((digits + 2) * math.log2(10))
    start = arb(minimum.amplitude)
    if digits > _LEAST_DIGITS:
        shown = progress is not False
        start = arb(precise_minimum(error, minimum, digits, show_progress=shown)[0]).mid()
    balls = AmplitudeBalls(error)
    value = balls.at(start, wanted)[0]
    # J(-h) = J(h): G(-ht) is G(ht), or G(h(-t)), and -t has the law of t.
    even = Parity.EVEN in (error.student.parity, error.teacher.parity)
    try:
        found = _least(error, balls, start, wanted, even, progress)
    except MissingDependencyError:
        raise
    except (GiantstepError, NotReached) as failure:
        return _values(
            title,
            {"tau_star_upper": enclosure_of(value, "J")},
            f"τ_* is at most the upper end, J at h = {float(start):.15g}; that no amplitude is "
            f"better is not proven: {failure}",
            digits,
        )
    values = {"tau_star": enclosure_of(found.lower.union(found.upper), "τ_*")}
    if not found.isolated:
        places = ", ".join(place.str(6) for place in found.places)
        return _values(
            title,
            values,
            "τ_* lies in its interval; that J is least at one amplitude only is not proven: it "
            f"may be in {places}",
            digits,
        )
    (place,) = found.places
    mirrored = ", up to its sign," if even and not place.contains(0) else ""
    values["amplitude"] = enclosure_of(place, "h")
    return _values(
        title,
        values,
        f"τ_* lies in its interval; J is least at exactly one amplitude{mirrored} which lies in "
        "its interval",
        digits,
    )


def _least(
    error: AmplitudeError,
    balls: AmplitudeBalls,
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
        beyond = _FarAway(error, function.shape).bound
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
            most_cells=balls.most_cells,
            what="h",
            progress=bar.update,
        )


class AmplitudeBalls:
    """J, J' and J'' at exact amplitudes, as balls, by the first form of J that can be enclosed.

    Parameters
    ----------
    error : AmplitudeError
    forms : sequence of Form, optional
        By default all there are.
    """

    def __init__(self, error: AmplitudeError, forms: Sequence[Form] = ()) -> None:
        self._error = error
        self._forms = list(forms or error.forms)
        self._known: dict[tuple[str, int], tuple[Ball, ...]] = {}

    @property
    def most_cells(self) -> int:
        """How many cells a search may look at."""
        return _MOST_CELLS[self._forms[0]]

    def at(self, h: Ball, bits: int) -> tuple[Ball, ...]:
        """Return J, J' and J'' to about so many bits of their size.

        Raises
        ------
        CertificationError
            If they cannot be enclosed.
        """
        key = h.repr(), bits
        if key not in self._known:
            # Cells ask for all derivatives at their centres, one after the other.
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = self._enclosed(h, bits)
        return self._known[key]

    def _enclosed(self, h: Ball, bits: int) -> tuple[Ball, ...]:
        while True:
            try:
                with require_flint().ctx.workprec(bits + _GUARD_BITS):
                    return self._run(h, bits)
            except (
                AssumptionError, CertificationError, EmissionError, UnsupportedExpressionError,
            ) as failure:  # fmt: skip
                if len(self._forms) == 1:
                    raise CertificationError(
                        f"J at h = {float(h):.6g} is not enclosed: {failure}"
                    ) from None
            # Forms that serve one amplitude serve the others.
            del self._forms[0]
            self.__dict__.pop("_program", None)

    @cached_property
    def _program(self) -> tuple[LoweredSystem, BallProgram, LineTables]:
        lowered = lower(self._error.system(self._forms[0], "derivatives"))
        program = BallProgram(lowered.program, tuple(map(str, lowered.system.unknowns)))
        return lowered, program, LineTables.of(lowered)

    @cached_property
    def _formulas(self) -> tuple[list[sp.Expr], dict[sp.Symbol, ConstantBalls]]:
        """J, J' and J'' in closed form, with symbols for numbers that are averages."""
        closed = self._error.closed_form
        assert closed is not None
        nodes = [node for node in closed.atoms(Average) if not node.free_symbols]
        rule = {node: sp.Dummy("E", real=True) for node in nodes}
        formula = closed.xreplace(rule)
        constants = {symbol: ConstantBalls(node) for node, symbol in rule.items()}
        return [formula.diff(amplitude, k) for k in range(3)], constants

    @cached_property
    def _mean(self) -> ConstantBalls:
        return ConstantBalls(self._error.mean)

    def _run(self, h: Ball, bits: int) -> tuple[Ball, ...]:
        if self._forms[0] is Form.CLOSED:
            # Not as a program: closed forms hold functions that no language has, erfi for one.
            formulas, constants = self._formulas
            known = {symbol: c.ball(bits + _GUARD_BITS) for symbol, c in constants.items()}
            evaluate = BallEvaluator({**known, amplitude: h}).constant
            found = [evaluate(formula) for formula in formulas]
            if not all(x.is_finite() and x.imag.contains(0) for x in found):
                raise CertificationError("its closed form has no finite enclosure there")
            return tuple(x.real for x in found)
        lowered, program, tables = self._program
        parameters = {str(amplitude): h}
        if mean_symbol in lowered.system.parameters:
            parameters[str(mean_symbol)] = self._mean.ball(bits + _GUARD_BITS)
        digits = math.ceil(bits * math.log10(2))
        averages = tables.averages(parameters, bits + _GUARD_BITS, digits)

        def average(loop: BallLoop, scalars: Scalars) -> list[Ball]:
            return averages(loop, scalars, lambda: None)

        def root(block: object, scalars: Scalars) -> list[Ball]:
            raise AssertionError("the equations are explicit")

        values = program.run(parameters, average, root)
        return tuple(values[str(x)] for x in lowered.system.unknowns[-3:])


class _BoundedError:
    """J on cells, by its values at their centres and what the student's slope bounds.

    Parameters
    ----------
    balls : AmplitudeBalls
    shape : StudentShape
    bits : int
        Of values at points.
    """

    def __init__(self, balls: AmplitudeBalls, shape: StudentShape, bits: int) -> None:
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
        near = value.lower().max(arb(0)).sqrt() - largest * radius
        roots = near.lower().max(arb(0)).union(far.upper())
        return _narrower(value + slope * away, roots**2)


def _narrower(one: Ball, other: Ball) -> Ball:
    """Return what lies in both of two balls, which have a number in common."""
    return one.lower().max(other.lower()).union(one.upper().min(other.upper()))


class _FarAway:
    """Lower bounds of J for large amplitudes, from the form of the student.

    Parameters
    ----------
    error : AmplitudeError
    shape : StudentShape
    """

    def __init__(self, error: AmplitudeError, shape: StudentShape) -> None:
        self._error, self._shape = error, shape

    def bound(self, side: int, reach: float) -> Ball:
        """Return a lower bound of J beyond a reach, on one side.

        Raises
        ------
        CertificationError
            If there is none.
        """
        shape, arb = self._shape, require_flint().arb
        h = arb(reach)
        if shape.has_ramp:
            a, b = shape.ramp
            growth = _number(sp.sqrt(a**2 + b**2))
            root = growth * h - _number(shape.rest) - self._teacher_norm
            return root.lower().max(arb(0)) ** 2
        if shape.distance is not None:
            tail = _number(shape.distance / (2 * sp.pi) ** sp.Rational(1, 4)) / h.sqrt()
            root = self._limits[side].lower().max(arb(0)).sqrt() - tail
            return root.lower().max(arb(0)) ** 2
        if shape.sine is not None and not self._error.teacher.jumps:
            factor, rate = shape.sine
            own = _number(factor**2 * sp.exp(-(rate**2)) / 2)
            damping = (-2 * _number(rate**2) * h**2).exp()
            cross = _number(abs(factor / rate) * sp.exp(-(rate**2) / 2)) * self._wavering / h
            least = _moment(self._without_constant**2) - 2 * cross + own * (1 - damping)
            return least.lower()
        raise CertificationError("nothing is proven about large amplitudes of this student")

    @cached_property
    def _limits(self) -> dict[int, Ball]:
        found = {}
        for side in (-1, 1):
            limit = limit_at_infinity(self._error, side, 0.0)
            if limit is None:
                raise CertificationError("the limit of J for large amplitudes is not known")
            found[side] = _number(limit)
        return found

    @cached_property
    def _teacher_norm(self) -> Ball:
        return _moment(self._teacher**2).sqrt()

    @cached_property
    def _wavering(self) -> Ball:
        r"""The norm of f' − t f, f the teacher minus the student's constant."""
        slope = self._error.teacher.derivative.xreplace({variable: coordinate})
        return _moment((slope - coordinate * self._without_constant) ** 2).sqrt().upper()

    @property
    def _without_constant(self) -> sp.Expr:
        return self._teacher - self._shape.constant

    @property
    def _teacher(self) -> sp.Expr:
        return self._error.teacher_expr.xreplace({variable: coordinate})


def _polynomial(error: AmplitudeError, bits: int) -> tuple[Function, Beyond]:
    """Return J of a student that is a polynomial, and what bounds it far away."""
    flint = require_flint()
    teacher = error.teacher_expr.xreplace({variable: coordinate})
    square = sp.Poly((teacher - error.realised) ** 2, amplitude)
    numbers = [
        ConstantBalls(expect(sp.expand(c), coordinate)).ball(bits + _GUARD_BITS)
        for c in reversed(square.all_coeffs())
    ]
    j = flint.arb_poly(numbers)

    def bound(side: int, reach: float) -> Ball:
        *lower, highest = numbers
        h, degree = flint.arb(reach), len(lower)
        # What lower powers are at most beside the highest falls with h.
        rest = sum((abs(c).upper() / h ** (degree - k) for k, c in enumerate(lower)), flint.arb(0))
        return (highest - rest).lower().max(flint.arb(0)) * h**degree

    return BallFunction([j, j.derivative(), j.derivative().derivative()]), bound


def _moment(integrand: sp.Expr) -> Ball:
    return MomentBalls(integrand, coordinate).ball(0, _NUMBER_BITS)[0]


def _number(expr: sp.Expr) -> Ball:
    return ConstantBalls(sp.sympify(expr, strict=True)).ball(_NUMBER_BITS)


def _values(
    title: str, values: dict[str, Enclosure], statement: str, digits: int
) -> CertifiedValues:
    return CertifiedValues(
        title=title,
        values=values,
        statement=statement,
        assumptions=(*LIBRARIES, _STRUCTURE, _THEOREM),
        digits=digits,
    )
