r"""Digits and proofs: solutions, optima and the spike to any number of digits, or in intervals.

Floats of a model mean the decimal numbers that they print as.

**What many digits of the model need besides floats: derived once, kept as text.** The program for
mpmath, the map of the step with its exact constants as symbols, and the digits of these constants.
A run that finds them in the cache imports no SymPy.

**Proven intervals of the spike after one step, and of what students and teachers are given κ.**
Result 3.1 maps a step to r, c and γ in closed form; Hermite coefficients and second moments of
student and teacher enter as proven enclosures. The conditional coefficients

.. math:: \mu_0(\kappa) = \mathbb{E}\,\sigma(r\kappa + u), \qquad
          \mu_1(\kappa) = \mathbb{E}\,u\,\sigma(r\kappa + u)/c, \qquad
          \mu_2^2(\kappa) = \mathbb{E}\,\sigma^2 - \mu_0^2 - c\,\mu_1^2, \qquad u \sim N(0, c)

at a given κ are Gaussian expectations, as are those of the teacher with γκ and variance 1 − γ².

(Cui et al., arXiv 2402.04980, equations (9)–(11) and (15).)
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from ...deprecations import by_name
from ...digits import checked_digits, decimal_fraction
from ...errors import AssumptionError, CertificationError, ConvergenceError, ParameterError
from ...numeric.arguments import real_number
from ...numeric.kernel_arrays import KernelArrays
from ...numeric.saddle_point_solver import BatchSolution, solve_rows
from ...runtime.generated import PreciseKernel, defined
from ...symbolic.exact.enclosures import Enclosure
from ...symbolic.expressions.activations import activation, z as variable
from ...symbolic.gaussian.enclosed_formulas import FormulaBalls
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.lowering.lowered import lower
from ...symbolic.printing.compiled import Formula, function_source
from ...symbolic.systems.sensitivities import derivative_name, with_derivatives_along
from ..certificates.certificate import LIBRARIES, CertifiedValues
from ..derived import derived
from ..first_gradient import spike_mapping as mapping
from ..first_gradient.spike_mapping import spike_mapping
from ..kernels import precise
from ..kernels.certified import certified_solution, enclosed_parameter
from ..kernels.code import kernel_code
from ..kernels.kernel import SPARE_DIGITS
from ..kernels.precise import exact_number
from ..kernels.sensitivities import LABEL
from ..teachers import DirectionalTeacher, read_teacher
from .arguments import SPIKE, STRETCH
from .derive import STEP_ARGUMENTS, flags_of
from .solution import Solution, solution_from

if TYPE_CHECKING:
    from ...symbolic.systems.saddle_point import SaddlePointSystem
    from ..optima import Optimum
    from .model import SpikedRandomFeatures


# ------------------------------------------------------------------ refine


def refine(
    model: SpikedRandomFeatures,
    alpha: float,
    ridge: float,
    digits: int,
    batch: BatchSolution,
    *,
    show_progress: bool,
) -> Solution:
    """Return the saddle point to `digits` digits; see :meth:`.model.SpikedRandomFeatures.solve`.

    Raises
    ------
    ConvergenceError
        If two quadrature rules never agree to so many digits.
    """

    def exact(ctx: Any) -> dict[str, Any]:
        point = {"alpha": alpha, "ridge": ridge}
        numbers = {name: ctx.mpf(repr(float(value))) for name, value in point.items()}
        return {**exact_parameters(model, ctx), **numbers}

    found = precise.refine(
        model._kernel, precise_program(model), exact, digits, batch,
        data=model._bulk.exact(digits + SPARE_DIGITS), show_progress=show_progress,
    )  # fmt: skip
    errors = found.errors
    return solution_from(
        found.values,
        alpha=alpha,
        ridge=ridge,
        residual=0.0,
        iterations=int(batch.iterations[0]),
        quadrature_error=float(errors["test_error"]),
        nodes=found.nodes,
        digits=digits,
        errors=errors,
        budget=found.budget,
    )


def exact_parameters(model: SpikedRandomFeatures, ctx: Any) -> dict[str, Any]:
    """Return the parameters of a model, every float read as the decimal that it prints as."""
    found = {
        "beta": number(ctx, decimal_fraction(model.beta)),
        "noise_variance": number(ctx, decimal_fraction(model.noise_variance)),
        **precise_spike(model, ctx),
    }
    if model.width is not None:
        found["inverse_width"] = ctx.one / model.width
    return found


# ------------------------------------------------------------------ precise sources

# Digits of constants are computed and kept in steps, so that a few more cost nothing.
_DIGITS_STEP = 50
_SPARE_OF_CONSTANTS = 10


def precise_program(model: SpikedRandomFeatures) -> PreciseKernel:
    """Return the program of a model for mpmath."""

    @derived("spiked_random_features/precise", PreciseKernel)
    def program(student: str, teacher: str, **cases: Any) -> PreciseKernel:
        return precise.precise_kernel(model.symbolic().lowered, model.derivation.code)

    return program(model._cache, model.student, model.teacher, **flags_of(model))


def precise_spike(model: SpikedRandomFeatures, ctx: Any) -> dict[str, Any]:
    """Return the fields of the spike, every float read as the decimal that it prints as."""
    if model.direct_parameters is not None or model.step_size == 0:
        direct = model.spike
        given = {name: decimal_fraction(getattr(direct, name)) for name in SPIKE}
        found = {name: number(ctx, value) for name, value in given.items()}
        rho = ctx.sqrt(number(ctx, 1 - given["alignment"] ** 2))
        return {**found, "orthogonal_alignment": rho}
    infinite = model.alpha0 == math.inf
    identity = model.student, model.teacher, model._case["stretched"]
    document = _map(model._cache, *identity)
    functions = vars(defined(document["source"], ctx=ctx))
    if infinite and model.leap_index > 1:
        # No gradient: the direction of the spike is a convention.
        fixed = dict.fromkeys(SPIKE, 0) | {"orthogonal_alignment": 1}
        del fixed["bulk_variance"]
    else:
        fixed = {}
    constants: list[str] = []
    if document["constants"]:
        digits = -(-(ctx.dps + _SPARE_OF_CONSTANTS) // _DIGITS_STEP) * _DIGITS_STEP
        constants = _constants(model._cache, *identity, digits)
    arguments = (
        number(ctx, decimal_fraction(model.step_size)),
        ctx.inf if infinite else number(ctx, decimal_fraction(model.alpha0)),
        number(ctx, decimal_fraction(model.noise_variance)),
        *map(ctx.mpf, constants),
    )
    return {
        name: ctx.mpf(fixed[name] if name in fixed else functions[name](*arguments))
        for name in SPIKE
    }


def number(ctx: Any, value: Fraction) -> Any:
    """Return a fraction as a number of a context."""
    return ctx.mpf(value.numerator) / value.denominator


@derived("spiked_random_features/precise_map", dict)
def _map(student: str, teacher: str, stretched: bool) -> dict[str, Any]:
    """Return the source of a function for each field, and the constants that they take."""
    constants, formulas = _exact_map(student, teacher, stretched)
    return {
        "source": _source(list(constants.values()), formulas),
        "constants": [str(x) for x in constants.values()],
    }


@derived("spiked_random_features/precise_constants", list)
def _constants(student: str, teacher: str, stretched: bool, digits: int) -> list[str]:
    """Return the constants of the map as decimal texts."""
    return [str(value.evalf(digits)) for value in _exact_map(student, teacher, stretched)[0]]


def _exact_map(
    student: str, teacher: str, stretched: bool
) -> tuple[dict[sp.Expr, sp.Symbol], dict[str, sp.Expr]]:
    """Return {exact constant: its symbol} and the fields of the spike in terms of them."""
    found = spike_mapping(
        activation(student, argument="student"), read_teacher(teacher), stretched=stretched
    )
    constants: dict[sp.Expr, sp.Symbol] = {}

    def named(value: sp.Expr) -> sp.Expr:
        name = sp.Symbol(f"constant_{len(constants)}", real=True)
        return value if value.is_Rational else constants.setdefault(value, name)

    def without_constants(expr: sp.Expr) -> sp.Expr:
        if not expr.free_symbols:
            return named(expr)
        if expr.is_Add or expr.is_Mul:
            # All constant terms as one: they may cancel each other.
            fixed, moving = expr.as_independent(*expr.free_symbols, as_Add=expr.is_Add)
            parts = (expr.func.make_args(moving)) if moving != expr else expr.args
            return expr.func(named(fixed), *map(without_constants, parts))
        return expr.func(*map(without_constants, expr.args)) if expr.args else expr

    return constants, {name: without_constants(getattr(found, name)) for name in SPIKE}


def _source(constants: list[sp.Symbol], formulas: dict[str, sp.Expr]) -> str:
    arguments = [*STEP_ARGUMENTS, *constants]
    functions = {name: Formula(arguments, value) for name, value in formulas.items()}
    return function_source(functions, "mpmath", names=STEP_ARGUMENTS)


# ------------------------------------------------------------------ refine tangents

_MOST_NEWTON_STEPS = 12
# Digits by which a relative move is smaller than what it is squared for.
_MARGIN = 8
# Digits that an optimum has beyond those that are printed.
_SPARE_DIGITS = 10
_FIRST, _SECOND = (derivative_name("test_error", *[LABEL] * order) for order in (1, 2))
_NEXT = "ridge_of_newton"


class _PreciseNewton:
    """The kernel of Newton's method for the penalty in mpmath, started from its float solution."""

    def __init__(self, model: SpikedRandomFeatures, alpha: float, digits: int) -> None:
        self.model, self.alpha, self.digits = model, alpha, digits
        lowered = lower(_newton_system(model))
        code = kernel_code(lowered)
        self.kernel = code.load(model._cache)
        self.precise = replace(
            precise.precise_kernel(lowered, code), results=("test_error", _SECOND, _NEXT)
        )
        self._parameters: dict[int, dict[str, Any]] = {}

    def _exact(self, ridge: Any, ctx: Any) -> dict[str, Any]:
        if ctx.prec not in self._parameters:
            self._parameters[ctx.prec] = exact_parameters(self.model, ctx)
        point = {"alpha": ctx.mpf(repr(self.alpha)), "ridge": _number(ridge, ctx)}
        return {**self._parameters[ctx.prec], **point}

    def solve(self, ridge: Any) -> precise.Refined:
        """Return all outputs at a ridge penalty."""
        given = {**self.model._parameter_values(), "alpha": self.alpha, "ridge": float(ridge)}
        row, tables = (
            [given[name] for name in names]
            for names in (self.kernel.parameters, self.kernel.table_parameters)
        )
        arrays = KernelArrays(self.kernel, tables, self.model._bulk.arrays)
        batch = solve_rows(self.kernel, arrays, np.array([row]))
        return precise.refine(
            self.kernel, self.precise, partial(self._exact, ridge), self.digits, batch,
            data=self.model._bulk.exact(self.digits + SPARE_DIGITS), show_progress=False,
        )  # fmt: skip


def _number(value: Any, ctx: Any) -> Any:
    """Read a float as the decimal that it prints as, a longer number as it is."""
    return ctx.mpf(repr(value)) if isinstance(value, float) else ctx.mpf(value)


def _newton_system(model: SpikedRandomFeatures) -> SaddlePointSystem:
    """Return the equations with two derivatives by the penalty, and where they lead.

    Near the optimum the derivative has no digits of its own; where it leads to has.
    """
    system = model.symbolic().system
    names = {code: x for x, code in system.identifiers.items()}
    ridge = names["ridge"]
    moved = with_derivatives_along(
        replace(system, outputs={"test_error": system.outputs["test_error"]}),
        {ridge: sp.S.One}, label=LABEL, order=2,
    )  # fmt: skip
    step = moved.outputs[_FIRST] / moved.outputs[_SECOND]
    return replace(moved, outputs={**moved.outputs, _NEXT: ridge - step})


def precise_ridge(model: SpikedRandomFeatures, alpha: float, best: Optimum, digits: int) -> Optimum:
    """Return an interior optimum to `digits` digits, by Newton's method from the float one."""
    worker = _PreciseNewton(model, alpha, digits)
    ridge: Any = best.value
    for used in range(_MOST_NEWTON_STEPS):
        found = worker.solve(ridge)
        after, second = found.values[_NEXT], found.values[_SECOND]
        current = _number(ridge, after.context)
        move = current - after
        # The next move would be about the square of this one.
        if abs(move) <= abs(current) * after.context.mpf(10) ** -(0.6 * digits + _MARGIN):
            allowed = after.context.mpf(10) ** -(digits + _SPARE_DIGITS)
            if any(found.errors[n] > allowed * abs(found.values[n]) for n in ("test_error", _NEXT)):
                # Its digits are printed as if all of these held.
                worker.digits += _SPARE_DIGITS
                ridge = after
                continue
            return replace(
                best,
                point={"ridge": after}, output=found.values["test_error"],
                gradient={"ridge": move * second}, hessian=((second,),),
                errors={"ridge": found.errors[_NEXT] + move**2 / current},
                iterations=best.iterations + used + 1, digits=digits,
            )  # fmt: skip
        ridge = after
    raise ConvergenceError(
        f"Newton's method did not find the optimal ridge penalty to {digits} digits; ask for fewer",
        state=best,
    )


# ------------------------------------------------------------------ certified

_EQUATIONS = (
    "the equations describe the model for d → ∞: they come from the replica method with replica "
    "symmetry (Cui et al., arXiv 2402.04980, Result 3.3), which is assumed, no part of the proof"
)
_STEP_ASSUMED = (
    "networks after the step are spiked random features, a Gaussian equivalence (Result 3.1 "
    "there), which is assumed, too"
)


def _about_the_model(model: SpikedRandomFeatures) -> tuple[str, ...]:
    """Return what has to hold for the intervals to be about the model, not its equations alone."""
    return (_EQUATIONS,) if model.direct_parameters is not None else (_EQUATIONS, _STEP_ASSUMED)


def proven_parameters(model: SpikedRandomFeatures, digits: int) -> dict[str, Enclosure | float]:
    """Return proven intervals of the parameters of a model by their names in kernels.

    Floats of the model mean the decimal numbers that they print as; spike strength, bulk variance
    and alignment follow from them by the exact map of the step.
    """
    found: dict[str, sp.Expr] = {
        "beta": exact_number(model.beta),
        "noise_variance": exact_number(model.noise_variance),
        **exact_spike(model),
    }
    if model.width is not None:
        found["inverse_width"] = sp.Rational(1, model.width)
    return {name: enclosed_parameter(value, digits) for name, value in found.items()}


def certified(
    model: SpikedRandomFeatures,
    alpha: float,
    ridge: float,
    digits: int | None,
    batch: BatchSolution,
    *,
    progress: bool,
) -> Solution:
    """Return the saddle point with its proof, from the float solution in the first row of `batch`.

    Raises
    ------
    CertificationError
        If the proof does not succeed.
    UnsupportedExpressionError
        If an activation is outside of what can be enclosed.
    MissingDependencyError
        If python-flint is not installed.
    """
    start = {name: float(value[0]) for name, value in batch.values.items()}
    point = {"alpha": alpha, "ridge": ridge}
    estimates = {name: float(error[0]) for name, error in batch.errors.items()}
    certificate = certified_solution(
        model.kernel(), point, start, digits, errors=estimates, progress=progress
    )
    certificate = certificate.resting_on(*_about_the_model(model))
    values, errors = certificate.numbers(digits)
    return solution_from(
        values,
        alpha=alpha,
        ridge=ridge,
        residual=0.0,
        iterations=int(batch.iterations[0]),
        quadrature_error=float(errors["test_error"]),
        nodes=int(batch.nodes[0]),
        digits=digits,
        errors=errors,
        certificate=certificate,
    )


# ------------------------------------------------------------------ certified spike

_RESULT = "Result 3.1 of Cui et al. (arXiv 2402.04980): the spiked random features of a step"
_DECIMAL = "r, c and γ mean the decimal numbers that their floats print as"


@by_name("digits")
def certified_spike(model: SpikedRandomFeatures, *, digits: int = 15) -> CertifiedValues:
    """Return proven intervals of r, c, γ and ρ after the step.

    Raises
    ------
    ParameterError
        If the spike was given, so that there is nothing to prove.
    AssumptionError
        If the student jumps.
    CertificationError
        If a number cannot be enclosed.
    MissingDependencyError
        If python-flint is not installed.
    """
    count = checked_digits(digits)
    if model.direct_parameters is not None:
        raise ParameterError(
            "the spike of this model was given, not made by a step: there is nothing to prove"
        )
    if model.alpha0 == math.inf and model.leap_index > 1:
        raise CertificationError(
            "with infinitely many samples the step on this teacher makes no spike: r = 0, and γ is "
            "not defined; give a finite alpha0"
        )
    values = exact_spike(model)
    for name in ("norm_overlap", *STRETCH):
        values.pop(name, None)
    formulas = FormulaBalls({})
    return CertifiedValues(
        title=f"spike of {_first_line(model)}",
        values={name: formulas.enclosure(value, count) for name, value in values.items()},
        statement="r, c, γ and ρ of the equivalent spiked random features lie in their intervals",
        assumptions=(*LIBRARIES, _RESULT),
        digits=count,
    )


def exact_spike(model: SpikedRandomFeatures) -> dict[str, sp.Expr]:
    """Return the fields of the spike by name, exactly; without free symbols."""
    if model.direct_parameters is not None or model.step_size == 0:
        names = SPIKE if model._case["stretched"] else SPIKE[: -len(STRETCH)]
        given = {name: exact_number(getattr(model.spike, name)) for name in names}
        return {**given, "orthogonal_alignment": sp.sqrt(1 - given["alignment"] ** 2)}
    symbolic = model.symbolic()
    stretched = model._case["stretched"]
    mapped = mapping.spike_mapping(symbolic.student, symbolic.teacher, stretched=stretched)
    names = SPIKE if stretched else tuple(name for name in SPIKE if name not in STRETCH)
    values_at = {
        mapping.step_size: exact_number(model.step_size),
        mapping.noise: exact_number(model.noise_variance),
        mapping.alpha0: exact_number(model.alpha0),
    }
    found = {name: getattr(mapped, name).xreplace(values_at) for name in names}
    if model.alpha0 == math.inf and model.leap_index > 1:
        # No gradient: the direction of the spike is a convention.
        vanishing = ("spike_strength", "alignment", "norm_overlap")
        found |= dict.fromkeys(vanishing, sp.S.Zero)
        found["orthogonal_alignment"] = sp.S.One
    return found


def certified_coefficients(
    model: SpikedRandomFeatures, node: float, digits: int = 15
) -> CertifiedValues:
    r"""Return proven intervals of the conditional coefficients at κ = `node`.

    Of the student μ0, μ1 and μ2² (``mu0``, ``mu1``, ``mu2_square``), of the teacher T0, T1 and
    T2, which holds the label noise. The floats of the spike mean the decimal numbers that they
    print as.

    Raises
    ------
    ParameterError
        If `node` is not finite.
    CertificationError
        If a number cannot be enclosed.
    MissingDependencyError
        If python-flint is not installed.
    """
    count = checked_digits(digits)
    point = real_number("node", node)
    if not math.isfinite(point):
        raise ParameterError(f"node must be finite, got {point}")
    spike, kappa = model.spike, exact_number(point)
    r, c = exact_number(spike.spike_strength), exact_number(spike.bulk_variance)
    gamma = exact_number(spike.alignment)
    values: dict[str, sp.Expr] = {}
    mean, linear, square = _averages(model.student, r * kappa, sp.sqrt(c))
    values |= {"mu0": mean, "mu1": linear / sp.sqrt(c), "mu2_square": square - mean**2 - linear**2}
    rho, teacher = sp.sqrt(1 - gamma**2), read_teacher(model.teacher)
    if isinstance(teacher, DirectionalTeacher):
        known = teacher.moments(gamma * kappa, rho)
        mean, linear, square = known.mean, known.along, known.square
        others = [value for value in known.across if value != 0]
        values |= {f"T1_{k}": value for k, value in enumerate(others, 2)}
    else:
        mean, linear, square = _averages(model.teacher, gamma * kappa, rho)
    values |= {"T0": mean, "T1": linear, "T2": square + exact_number(model.noise_variance)}
    formulas = FormulaBalls({})
    return CertifiedValues(
        title=f"conditional coefficients at κ = {point!r}: {_first_line(model)}",
        values={name: formulas.enclosure(value, count) for name, value in values.items()},
        statement="each coefficient at this κ lies in its interval",
        assumptions=(*LIBRARIES, _DECIMAL),
        digits=count,
    )


def _averages(name: str, centre: sp.Expr, spread: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """Return E f, E z f and E f² at centre + spread z."""
    f = activation(name).expr.xreplace({variable: centre + spread * variable})
    if variable not in f.free_symbols:
        return f, sp.S.Zero, f**2
    try:
        found = [GaussianExpectation(x, variable) for x in (f, variable * f, f**2)]
    except (AssumptionError, TypeError) as error:
        raise CertificationError(f"{name} has no expectation here: {error}") from None
    return found[0], found[1], found[2]


def _first_line(model: SpikedRandomFeatures) -> str:
    return str(model).splitlines()[0]
