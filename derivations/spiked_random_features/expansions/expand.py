"""Expansions of a model: coefficients to any number of digits, as one object."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import sympy as sp

from ....digits import checked_digits
from ....errors import ApproximationWarning, ConvergenceError
from ....runtime.precision import local_context
from ...expansions.expansion import (
    LARGE_ALPHA,
    NAMES,
    SMALL_RIDGE,
    Expansion,
    checked_name,
    checked_order,
)
from .. import physics as fe
from ..solution import CONJUGATES, ORDER_PARAMETERS
from .orders import LineTables, OrderByOrder
from .scaling import checked_point, line_case, scaled_system
from .symbolic_side import line_series, step_series

if TYPE_CHECKING:
    from ...expansions.expansion import SymbolicSeries
    from ..model import SpikedRandomFeatures

_MOST_LEVELS = 6
_LATEX = {"test_error": r"E_{\mathrm{test}}", "training_error": r"E_{\mathrm{train}}"}
_LETTERS = {fe.theta: r"\vartheta", fe.theta_hat: r"\hat\vartheta", fe.psi_hat: r"\hat\psi"}
_HATS = {fe.V1_hat: r"\hat V_1", fe.V2_hat: r"\hat V_2", fe.q1_hat: r"\hat q_1",
         fe.q2_hat: r"\hat q_2"}  # fmt: skip
# Beyond the digits that are asked for, what is smaller vanishes by a symmetry.
_VANISHING = 8

Terms = dict[str, dict[int, Any]]


def expansion(
    model: SpikedRandomFeatures,
    name: str,
    order: int,
    *,
    alpha: object,
    ridge: object,
    digits: int,
    width: int | None,
) -> Expansion:
    """Return an asymptotic expansion; see :meth:`.model.SpikedRandomFeatures.expansion`."""
    name = checked_name(name)
    order, digits = checked_order(order), checked_digits(digits)
    model = model if width is None else model.at_width(width)
    model._refuse_law("expansions")
    alpha_, ridge_ = checked_point(name, alpha, ridge)
    from tqdm.auto import tqdm  # looks for notebook widgets, which costs time at every import

    with tqdm(
        desc=f"{name}, {digits} digits", unit="order", delay=1, leave=False, disable=None
    ) as bar:
        try:
            if name in (LARGE_ALPHA, SMALL_RIDGE):
                return _in_line(model, name, order, alpha_, ridge_, digits, bar.update)
            from .small_step import step_terms

            assert alpha_ is not None and ridge_ is not None
            terms, region, last = step_terms(model, order, alpha_, ridge_, digits, bar.update)
        except ZeroDivisionError:
            raise ConvergenceError(
                f"the leading equations of {name!r} are singular for this model: student "
                f"{model.student!r}, teacher {model.teacher!r}, beta = {model.beta:g}"
            ) from None
    return _expansion(
        model, name, order, terms, last, Fraction(1), digits, {"alpha": alpha_, "ridge": ridge_},
        region, f"{digits} digits: Hermite coefficients, a finite sum for each order",
        partial(step_series, model),
    )  # fmt: skip


def _in_line(
    model: SpikedRandomFeatures, name: str, order: int, alpha: float | None, ridge: float | None,
    digits: int, progress: Callable[[], object],
) -> Expansion:  # fmt: skip
    case = line_case(model, name, order, alpha, ridge)
    symbolic = model.symbolic()
    system = scaled_system(symbolic, case.balance)
    parameters = symbolic.system.parameters
    programs = OrderByOrder(
        system,
        parameters,
        list(symbolic.system.definitions),
        case.last,
        beyond=case.remainder is None,
    )
    lines = LineTables(model, symbolic, digits, case.inverse_powers)
    ctx = lines.ctx
    near = model.solve_many([case.near["alpha"]], [case.near["ridge"]]).values
    start = {
        x: ctx.mpf(float(near[fe.IDENTIFIERS[x]][0]) / case.epsilon**k)
        for x, k in system.exponents.items()
    }
    fixed = {k: v for k, v in (("alpha", alpha), ("ridge", ridge)) if v is not None}
    given = {**lines.parameters, **{k: ctx.mpf(repr(v)) for k, v in fixed.items()}}
    values = [given.get(fe.IDENTIFIERS[p], ctx.zero) for p in parameters]
    previous: Terms | None = None
    for level in range(_MOST_LEVELS):
        terms, start = programs.solve(ctx, *lines.rule(level), values, start, progress)
        if previous is not None and _settled(ctx, terms, previous, digits, lines.composite):
            return _expansion(
                model, name, order, terms, case.last, case.unit, digits, fixed, case.region,
                f"{digits} digits by two agreeing quadrature rules (estimated)",
                partial(line_series, model, name, case.balance), case.remainder,
            )  # fmt: skip
        previous = terms
    raise ConvergenceError(
        f"{_MOST_LEVELS} quadrature rules did not agree to {digits} digits; ask for fewer digits "
        "or a lower order"
    )


def _settled(ctx: Any, terms: Terms, previous: Terms, digits: int, composite: bool) -> bool:
    tolerance = ctx.mpf(10) ** -digits
    zeros = _zeros(ctx, terms, digits)
    for name, values in terms.items():
        for j, value in values.items():
            size = max(abs(value), abs(previous[name][j]))
            if size <= zeros[name][j]:
                continue
            difference = abs(value - previous[name][j]) / size
            # A trapezoidal rule squares its error with each level.
            if not (difference if composite else 10 * difference**1.5) <= tolerance:
                return False
    return True


def _zeros(ctx: Any, terms: Terms, digits: int) -> dict[str, dict[int, Any]]:
    """Return, for each coefficient, the size below which it vanishes by a symmetry.

    A coefficient is made of those with smaller exponents, so rounding is measured by their size:
    those of the same output, and those of all that do not vanish with the small quantity. Larger
    exponents tell nothing: asymptotic series have enormous coefficients.
    """
    unit = ctx.mpf(10) ** (-digits - _VANISHING)
    leading = [abs(v) for values in terms.values() for j, v in values.items() if j <= 0]
    scale = max(leading, default=ctx.zero)
    zeros: dict[str, dict[int, Any]] = {}
    for name, values in terms.items():
        largest, zeros[name] = scale, {}
        for j in sorted(values):
            largest = max(largest, abs(values[j]))
            zeros[name][j] = largest * unit
    return zeros


def _expansion(
    model: SpikedRandomFeatures, name: str, order: int, terms: Terms, last: int, unit: Fraction,
    digits: int, fixed: Mapping[str, float], region: str, rests_on: str,
    symbolic: Callable[..., SymbolicSeries], unknown_remainder: Fraction | None = None,
) -> Expansion:  # fmt: skip
    ctx = local_context(digits)
    names = {str(x): identifier for x, identifier in fe.IDENTIFIERS.items()}
    zeros = _zeros(ctx, terms, digits)
    found = {
        names.get(key, key): {
            j: ctx.mpf(value) if abs(value) > zeros[key][j] else ctx.zero
            for j, value in values.items()
        }
        for key, values in terms.items()
    }
    outputs = ["test_error", "training_error", *ORDER_PARAMETERS, *CONJUGATES]
    found = {key: found.get(key, {}) for key in outputs}
    kept = int(order / unit)
    first = min((j for values in found.values() for j, v in values.items() if v), default=0)
    exponents = range(min(first, 0), kept + 1)
    neglected: dict[str, tuple[Fraction, Any] | None] = {}
    for key, values in found.items():
        beyond = sorted(j for j, value in values.items() if j > kept and value)
        neglected[key] = (beyond[0] * unit, values[beyond[0]]) if beyond else None
        if unknown_remainder is not None:
            neglected[key] = (unknown_remainder, ctx.inf)
    remainder = neglected["test_error"]
    parameter = NAMES[name][0]
    powers = tuple(j * unit for j in exponents)
    return Expansion(
        name=name,
        parameter=parameter,
        point=math.inf if name == LARGE_ALPHA else 0.0,
        exponents=powers,
        coefficients={
            key: tuple(values.get(j, ctx.zero) for j in exponents)
            for key, values in found.items()
        },
        neglected=neglected,
        remainder_order=(kept + 1) * unit if remainder is None else remainder[0],
        digits=digits,
        fixed={**_described(model, name), **fixed},
        symbols={**{key: _latex(key) for key in outputs}, "step_size": "s"},
        region=region,
        rests_on=rests_on,
        symbolic=partial(symbolic, powers, outputs=tuple(outputs)),
        exact=partial(exact_outputs, model, parameter, dict(fixed)),
    )  # fmt: skip


def _described(model: SpikedRandomFeatures, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"student": model.student, "teacher": model.teacher}
    if model.direct_parameters is not None:
        spike = model.direct_parameters
        found |= {
            "spike_strength": spike.spike_strength,
            "bulk_variance": spike.bulk_variance,
            "alignment": spike.alignment,
        }
        if spike.norm_overlap:
            found["norm_overlap"] = spike.norm_overlap
    else:
        if name in (LARGE_ALPHA, SMALL_RIDGE):
            found["step_size"] = model.step_size
        found["alpha0"] = model.alpha0
    found |= {"beta": model.beta, "noise_variance": model.noise_variance}
    if model.width is not None:
        found["width"] = model.width
    if model.leading_order != "published":
        found["leading_order"] = model.leading_order
    return found


def _latex(output: str) -> str:
    symbol = {identifier: x for x, identifier in fe.IDENTIFIERS.items()}.get(output)
    if symbol is None:
        return _LATEX[output]
    return {**_LETTERS, **_HATS}.get(symbol) or str(sp.latex(symbol))


def exact_outputs(
    model: SpikedRandomFeatures,
    parameter: str,
    fixed: Mapping[str, float],
    value: Any,
    digits: int | None,
) -> dict[str, Any]:
    """Return the outputs of the exact solution at a value of the parameter."""
    at = dict(fixed)
    if parameter == "step_size":
        model = replace(model, step_size=float(value))
    else:
        at[parameter] = float(value)
    with warnings.catch_warnings():
        # Whether a network follows these features is not what is compared here.
        warnings.simplefilter("ignore", ApproximationWarning)
        found = model.solve(alpha=at["alpha"], ridge=at["ridge"], digits=digits, progress=False)
    return {
        "test_error": found.test_error,
        "training_error": found.training_error,
        **found.order_parameters,
        **found.conjugates,
    }
