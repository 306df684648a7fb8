"""What many digits of the model need besides floats: derived once, kept as text.

The program for mpmath, the map of the step with its exact constants as symbols, and the digits of
these constants. A run that finds them in the cache imports no SymPy.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ...runtime.generated import PreciseKernel, defined
from ..derived import derived
from ..one_gradient_step.decimals import decimal_fraction
from .tangents import SPIKE, flags_of

if TYPE_CHECKING:
    import sympy as sp

    from .model import SpikedRandomFeatures

# Digits of constants are computed and kept in steps, so that a few more cost nothing.
_STEP = 50
_SPARE_DIGITS = 10


def precise_program(model: SpikedRandomFeatures) -> PreciseKernel:
    """Return the program of a model for mpmath."""

    @derived("spiked_random_features/precise", PreciseKernel)
    def program(student: str, teacher: str, **cases: Any) -> PreciseKernel:
        from .derive import precise_kernel

        return precise_kernel(model.symbolic())

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
        digits = -(-(ctx.dps + _SPARE_DIGITS) // _STEP) * _STEP
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
    import sympy as sp

    from ...symbolic.activations import activation
    from .mapping import spike_mapping

    found = spike_mapping(
        activation(student, argument="student"),
        activation(teacher, argument="teacher"),
        stretched=stretched,
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
    from ...symbolic.printing.compiled import Formula, function_source
    from .derive import STEP_ARGUMENTS

    arguments = [*STEP_ARGUMENTS, *constants]
    functions = {name: Formula(arguments, value) for name, value in formulas.items()}
    return function_source(functions, "mpmath", names=STEP_ARGUMENTS)
