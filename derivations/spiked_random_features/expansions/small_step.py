r"""Small steps: the spiked model near plain random features.

The map of the step gives r ∝ s, c − 1 and the tables as series in s, γ and ρ do not depend on s.

In the strict limit p → ∞ the readout's mean m along the all-ones direction costs nothing. Where the
student has mean zero, :math:`\mu_0` vanishes like s, but m grows like 1/s, so that :math:`\mu_0 m`
stays of order one: the limit s → 0 has one free feature, linear in κ, that plain random features
at s = 0 lack, and its error lies below theirs. At a finite width the cost of m, of order 1/p, makes
the limit that of plain random features; the two meet where s² is of order 1/p.

**Tables as power series in the step size s, at the nodes of a Gauss–Hermite rule.** After a step
the argument of a neuron is :math:`u = r\kappa + \sqrt c\,z` with r proportional to s and c → 1. For
any function F of u,

.. math::
    \mathbb{E}_z[F(u)\,\mathrm{He}_j(z)] = c^{j/2} \sum_k \frac{f_{k+j}}{k!}
    H_k(r\kappa, 1 - c), \qquad f_k = \mathbb{E}[F\,\mathrm{He}_k],

where :math:`\sum_k t^k H_k(x, b)/k! = \exp(tx - bt^2/2)`: the Hermite expansion of F, smoothed.
:math:`H_k` is a polynomial of degree k in κ that is of order :math:`s^k` if c − 1 is of order s²,
and of order :math:`s^{k/2}` if it is of order s, so that finitely many terms count. Kinks and jumps
of F do no harm. The teacher's tables do not depend on s. They occur linearly, next to polynomials
in κ, so that their projections on these are all that counts, and with
:math:`\gamma\kappa + \rho s` of unit variance
:math:`\mathbb{E}[F(\gamma\kappa + \rho s)\,\mathrm{He}_j(\kappa)\,\mathrm{He}_i(s)] =
\gamma^j \rho^i f_{i+j}`. Derived here (Mehler 1866 for the smoothing of Hermite polynomials).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from ....errors import AssumptionError, ParameterError
from ....runtime.precision import local_context
from ....runtime.roots import newton
from ....symbolic.exact.series import Series
from ....symbolic.expressions.activations import z as variable
from ....symbolic.gaussian.expectation import GaussianExpectation
from ....symbolic.hermite.coefficients import hermite_coefficients
from ...first_gradient.spike_mapping import SpikeMapping, alpha0, noise, spike_mapping, step_size
from ...teachers import refuse_directions
from .. import physics as fe
from ..derive import SymbolicModel, symbolic_model
from .orders import OrderByOrder
from .scaling import scaled_system, small_step_balance

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
    """Return the coefficients of all outputs in powers of s, the region and the last power."""
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
    near = replace(model, step_size=_START).solve_many(alpha=[alpha], ridge=[ridge]).values
    start = {
        x: ctx.mpf(float(near[fe.IDENTIFIERS[x]][0]) / _START**k)
        for x, k in system.exponents.items()
    }
    terms, _ = programs.solve(ctx, weights, nodes, tables, values, start, progress)
    return terms, _region(model, mean_order, alpha, ridge), last


def step_models(model: SpikedRandomFeatures) -> tuple[SymbolicModel, SpikeMapping]:
    """Return the equations for a step of any size, and its map."""
    refuse_directions(model.teacher, "expansions in small steps")
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
    """Return the power of s with which μ_0 vanishes at infinite width; else 0."""
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


# ------------------------------------------------------------------ step tables

Number = Any

# The argument of a neuron or of the teacher, and the standard deviation √c.
_ARGUMENT = sp.Symbol("u", real=True)
_SPREAD = sp.Symbol("B", positive=True)


class HermiteNumbers:
    """Hermite coefficients of functions of one variable, as numbers of a context."""

    def __init__(self, ctx: Any, last: int) -> None:
        self._ctx, self._last = ctx, last
        self._known: dict[sp.Expr, list[Any]] = {}

    def __call__(self, function: sp.Expr) -> list[Number]:
        """Return the coefficients 0, …, last of a function of the standard variable."""
        if function not in self._known:
            self._known[function] = self._compute(function)
        return self._known[function]

    def _compute(self, function: sp.Expr) -> list[Number]:
        if variable not in function.free_symbols:
            return [self.convert(function)] + [self._ctx.zero] * self._last
        found = hermite_coefficients(function, self._last, variable=variable)
        return [self.convert(value) for value in found.evalf(self._ctx.dps + 5)]

    def convert(self, value: sp.Expr) -> Number:
        """Return an exact number as a number of the context."""
        return self._ctx.mpf(str(sp.N(value, self._ctx.dps + 5)))


def student_table(
    definition: sp.Expr,
    known: Mapping[sp.Expr, Any],
    numbers: HermiteNumbers,
    *,
    strength: Series,
    variance: Series,
    nodes: Any,
    highest: int,
) -> Series:
    """Return a table of the student, defined by an average over z, as a series of arrays."""
    spread = variance.power(sp.S.Half, numbers.convert)
    x, zero = strength * nodes, Series((), strength.end)
    smooth = _smoothed_powers(x, 1 - variance, highest)
    values = {**known, fe.r: strength, fe.kappa: nodes, _SPREAD: spread}
    total = zero
    for term in sp.Add.make_args(sp.expand(definition.xreplace({fe.c: _SPREAD**2}), deep=False)):
        outer, node = term.as_independent(GaussianExpectation, as_Add=False)
        # The slope of a linear student is a number, no average.
        inside = node
        if isinstance(node, GaussianExpectation):
            centre = fe.r * fe.kappa if node.has(fe.r) else sp.S.Zero
            argument = (_ARGUMENT - centre) / _SPREAD
            inside = _tidied(node.integrand.xreplace({node.variable: argument}))
        for part in sp.Add.make_args(sp.expand(inside)):
            factor, function = part.as_independent(_ARGUMENT, as_Add=False)
            f = numbers(function.xreplace({_ARGUMENT: variable}))
            mean = zero
            for k, h in enumerate(smooth):
                if f[k]:
                    mean = mean + h * (f[k] / math.factorial(k))
            number, symbols = (outer * factor).as_independent(*values, as_Add=False)
            for base, power in symbols.as_powers_dict().items():
                if base != 1:
                    mean = mean * values[base] ** int(power)
            total = total + mean * numbers.convert(number)
    return total


def _tidied(expr: sp.Expr) -> sp.Expr:
    """Multiply out the arguments of functions, so that what cancels in them does."""
    return expr.replace(
        lambda e: e.is_Function or e.is_Relational,
        lambda e: e.func(*(sp.expand(a) if isinstance(a, sp.Expr) else a for a in e.args)),
    )


def _smoothed_powers(x: Series, b: Series, highest: int) -> list[Series]:
    """Return H_0, …, H_highest: H_{k+1} = x H_k − k b H_{k−1}."""
    one = Series.monomial(0, x.end)
    found = [one, x]
    for k in range(1, highest):
        found.append(x * found[k] - b * found[k - 1] * k)
    return found[: highest + 1]


def teacher_table(
    definition: sp.Expr,
    numbers: HermiteNumbers,
    *,
    alignment: Number,
    orthogonal: Number,
    noise: Number,
    nodes: Any,
    highest: int,
) -> Any:
    r"""Return the projection of a table of the teacher on polynomials in κ, at the nodes."""
    total = nodes * 0
    polynomials = _hermite_arrays(nodes, highest)
    for term in sp.Add.make_args(definition):
        if term == fe.noise:
            total = total + noise
            continue
        outer, node = term.as_independent(GaussianExpectation, as_Add=False)
        inside, across = node, 0
        if isinstance(node, GaussianExpectation):
            inside = node.integrand
            if fe.s in sp.Mul.make_args(inside):
                inside, across = inside / fe.s, 1
            # γκ + ρs is one standard variable.
            inside = inside.xreplace({fe.s: (_ARGUMENT - fe.gamma * fe.kappa) / fe.rho})
        else:
            # So is γκ where γ = ±1.
            inside, outer = term.xreplace({fe.kappa: _ARGUMENT / fe.gamma}), sp.S.One
        inside = sp.expand(_tidied(outer * inside)).xreplace({_ARGUMENT: variable})
        f = numbers(inside)
        for j, he in enumerate(polynomials):
            if f[across + j]:
                weight = f[across + j] / math.factorial(j)
                total = total + he * (alignment**j * orthogonal**across * weight)
    return total


def _hermite_arrays(nodes: Any, highest: int) -> list[Any]:
    found = [nodes * 0 + 1, nodes]
    for k in range(1, highest):
        found.append(nodes * found[k] - k * found[k - 1])
    return found[: highest + 1]


def gauss_hermite(ctx: Any, count: int) -> tuple[Any, Any]:
    """Return nodes and weights of the rule for the normal law that is exact to degree 2n − 1."""
    start, _ = np.polynomial.hermite_e.hermegauss(count)
    nodes, weights = [], []

    def move(x: Any) -> Any:
        last, before = _last_two(x, count, ctx)
        return last / (count * before)

    for guess in start:
        x = newton(move, ctx.mpf(float(guess)), ctx.sqrt(ctx.eps), "a node", size=1)
        _, before = _last_two(x, count, ctx)
        nodes.append(x)
        weights.append(ctx.factorial(count) / (count * before) ** 2)
    return np.array(nodes, dtype=object), np.array(weights, dtype=object)


def _last_two(x: Any, count: int, ctx: Any) -> tuple[Any, Any]:
    before, last = ctx.zero, ctx.one
    for k in range(count):
        before, last = last, x * last - k * before
    return last, before
