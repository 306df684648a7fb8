r"""Small steps: the spiked model near plain random features.

The map of the step gives r ∝ s, c − 1 and the tables as series in s, γ and ρ do not depend on s.

In the strict limit p → ∞ the readout's mean m along the all-ones direction costs nothing. Where the
student has mean zero, :math:`\mu_0` vanishes like s, but m grows like 1/s, so that :math:`\mu_0 m`
stays of order one: the limit s → 0 has one free feature, linear in κ, that plain random features
at s = 0 lack, and its error lies below theirs. At a finite width the cost of m, of order 1/p, makes
the limit that of plain random features; the two meet where s² is of order 1/p.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from ....errors import AssumptionError, ParameterError
from ....runtime.precision import local_context
from ....symbolic.asymptotic_series import Series
from .. import physics as fe
from ..derive import SymbolicModel, symbolic_model
from ..mapping import SpikeMapping, alpha0, noise, spike_mapping, step_size
from .orders import OrderByOrder
from .scaling import scaled_system, small_step_balance
from .step_tables import HermiteNumbers, gauss_hermite, student_table, teacher_table

if TYPE_CHECKING:
    from ..model import SpikedRandomFeatures

_START = 1e-3
_STUDENT = (fe.mu0, fe.mu1, fe.mu2_squared, fe.chi)
# Powers of s with which the mean of the student may vanish.
_MOST_MEAN_ORDER = 6
# Degree in κ of what integrands hold besides the powers of s: (μ_1 κ ϑ)² and two more for κ μ_1.
_EXTRA_DEGREE = 6
_DECIDING_DIGITS = 20


def step_terms(
    model: SpikedRandomFeatures,
    order: int,
    alpha: float,
    ridge: float,
    digits: int,
    progress: Callable[[], object],
) -> tuple[dict[str, dict[int, Any]], str, int]:
    """Return the coefficients of all outputs in powers of s, the region and the last power.

    Raises
    ------
    ParameterError
        If the model is given by its spike and takes no step.
    AssumptionError
        If the step does not move anything.
    """
    if model.direct_parameters is not None:
        raise ParameterError(
            "'small_step' is about a gradient step, and a model that is given by its spike takes "
            "none; build it from step_size and alpha0"
        )
    infinite = math.isinf(model.alpha0)
    if infinite and model.leap_index > 1:
        raise AssumptionError(
            f"teacher {model.teacher!r} has leap index {model.leap_index} > 1: at alpha0 = inf one "
            "step finds no direction, and there is nothing to expand in; give a finite alpha0"
        )
    # Odd powers vanish for odd students: two more orders hold the first neglected term.
    last = order + 2
    ctx = local_context(digits, 10)
    symbolic, mapping = step_models(model)
    numbers = _numbers(model)
    definitions = symbolic.system.definitions
    mean_order = vanishing_mean(model, symbolic, mapping)
    # m is computed so many orders further, and μ_0 is divided by as many powers of s.
    length = last + 2 * mean_order + 1
    degree = length + _EXTRA_DEGREE

    def series(expr: sp.Expr) -> Series:
        return _series(ctx, expr.xreplace(numbers), length)

    gamma = _number(ctx, mapping.alignment.xreplace(numbers))
    rho = ctx.zero if infinite else _number(ctx, mapping.orthogonal_alignment.xreplace(numbers))
    nodes, weights = gauss_hermite(ctx, degree + 2)
    variance, strength = series(mapping.bulk_variance), series(mapping.spike_strength)
    highest = _terms_that_count(variance, length)
    hermite = HermiteNumbers(ctx, max(highest, degree) + 1)
    tables: dict[sp.Expr, Any] = {}
    for function, definition in definitions.items():
        if function in _STUDENT:
            tables[function] = student_table(
                definition, tables, hermite, strength=strength, variance=variance, nodes=nodes,
                highest=highest,
            )  # fmt: skip
        else:
            tables[function] = teacher_table(
                definition, hermite, alignment=gamma, orthogonal=rho,
                noise=ctx.mpf(repr(model.noise_variance)), nodes=nodes, highest=degree,
            )  # fmt: skip
    if mean_order:
        mean = tables[fe.mu0]
        # What is left of lower orders is rounding.
        tables[fe.mu0] = Series(tuple(map(mean.coefficient, range(mean_order, mean.end))))
    system = scaled_system(symbolic, small_step_balance(mean_order))
    programs = OrderByOrder(system, symbolic.system.parameters, list(tables), last)
    given: dict[str, Any] = {
        "alpha": ctx.mpf(repr(alpha)),
        "ridge": ctx.mpf(repr(ridge)),
        "beta": ctx.mpf(repr(model.beta)),
        "noise_variance": ctx.mpf(repr(model.noise_variance)),
        "bulk_variance": variance,
        "norm_overlap": series(mapping.norm_overlap),
    }
    if model.width is not None:
        given["inverse_width"] = ctx.one / model.width
    values = [given.get(fe.IDENTIFIERS[p], ctx.zero) for p in symbolic.system.parameters]
    near = replace(model, step_size=_START).solve_many([alpha], [ridge]).values
    start = {
        x: ctx.mpf(float(near[fe.IDENTIFIERS[x]][0]) / _START**k)
        for x, k in system.exponents.items()
    }
    terms, _ = programs.solve(ctx, weights, nodes, tables, values, start, progress)
    return terms, _region(model, mean_order, alpha, ridge), last


def step_models(model: SpikedRandomFeatures) -> tuple[SymbolicModel, SpikeMapping]:
    """Return the equations for a step of any size, and its map."""
    model._refuse_other_rows("expansions in small steps")
    plain = model.symbolic()
    mapping = spike_mapping(plain.student, plain.teacher)
    unspiked = mapping.spike_strength == 0
    symbolic = symbolic_model(
        model.student,
        model.teacher,
        unspiked=unspiked,
        aligned=math.isinf(model.alpha0) and not unspiked,
        correlated_norms=model._case["correlated_norms"] and not unspiked,
        finite_width=model.width is not None,
    )
    return symbolic, mapping


def _numbers(model: SpikedRandomFeatures) -> dict[sp.Expr, sp.Expr]:
    """Return the parameters of the map of the step; its size stays a symbol."""
    return {
        step_size: step_size,
        alpha0: sp.oo if math.isinf(model.alpha0) else sp.Rational(repr(model.alpha0)),
        noise: sp.Rational(repr(model.noise_variance)),
    }


def vanishing_mean(
    model: SpikedRandomFeatures, symbolic: SymbolicModel, mapping: SpikeMapping
) -> int:
    """Return the power of s with which μ_0 vanishes at infinite width; else 0.

    Raises
    ------
    AssumptionError
        If it is so high that the weight of the mean is not determined.
    """
    definition = symbolic.system.definitions.get(fe.mu0)
    if definition is None or model.width is not None:
        return 0
    return _order_of_mean(model, definition, mapping, _numbers(model))


def _number(ctx: Any, value: sp.Expr) -> Any:
    return ctx.mpf(str(sp.N(value, ctx.dps + 5)))


def _series(ctx: Any, expr: sp.Expr, length: int) -> Series:
    """Return a polynomial in s as a series of numbers."""
    found: list[Any] = [0] * length
    for (power,), value in sp.Poly(expr, step_size).terms():
        if power < length and value != 0:
            found[power] = _number(ctx, value)
    return Series(tuple(found))


def _terms_that_count(variance: Series, length: int) -> int:
    # Where c − 1 is of order s, H_k is of order s^(k/2) only.
    linear = variance.end > 1 and variance.coefficient(1) != 0
    return (length - 1) * (2 if linear else 1)


def _order_of_mean(
    model: SpikedRandomFeatures, definition: sp.Expr, mapping: SpikeMapping,
    numbers: dict[sp.Expr, sp.Expr],
) -> int:  # fmt: skip
    """Return the power of s with which μ_0 vanishes."""
    ctx = local_context(_DECIDING_DIGITS)
    nodes, _ = gauss_hermite(ctx, _MOST_MEAN_ORDER + 2)
    for k in range(_MOST_MEAN_ORDER + 1):
        variance = _series(ctx, mapping.bulk_variance.xreplace(numbers), k + 1)
        strength = _series(ctx, mapping.spike_strength.xreplace(numbers), k + 1)
        highest = _terms_that_count(variance, k + 1)
        table = student_table(
            definition, {}, HermiteNumbers(ctx, highest), strength=strength, variance=variance,
            nodes=nodes, highest=highest,
        )  # fmt: skip
        values = np.abs(np.atleast_1d(table.coefficient(k)))
        if values.max() > ctx.mpf(10) ** -_DECIDING_DIGITS:
            return k
    raise AssumptionError(
        f"the mean of student {model.student!r} vanishes to order {_MOST_MEAN_ORDER} in the step, "
        "so that its weight m is not determined; give a width"
    )


def _region(model: SpikedRandomFeatures, mean_order: int, alpha: float, ridge: float) -> str:
    text = f"s to 0 at alpha = {alpha:g}, lambda = {ridge:g}"
    if model.width is not None:
        return f"{text} and p = {model.width}: the limit is plain random features of zero step"
    if mean_order == 0:
        return f"{text}: the limit is plain random features of zero step"
    power = "1/s" if mean_order == 1 else f"1/s^{mean_order}"
    return (
        f"{text} after p to infinity: m grows like {power} at no cost, so that the limit has a "
        "free feature that plain random features of zero step lack; with a width p they are the "
        "limit, for s^2 below about 1/p"
    )
