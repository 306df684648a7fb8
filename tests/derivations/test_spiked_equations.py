"""Expansions of spiked random features in symbols: the equations of every order and formulas.

What is checked: the limit of many samples is the closed expression of quadratic minimisation; the
coefficients, computed to 30 digits without these formulas, solve the equations of every order, with
averages from a quadrature of its own and tables in closed form.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import pytest
import sympy as sp
from sympy.core.function import AppliedUndef

from giantstep import SpikedRandomFeatures
from giantstep.derivations.expansions.expansion import Expansion
from giantstep.derivations.first_gradient.spike_mapping import alpha0
from giantstep.derivations.spiked_random_features import physics as fe
from giantstep.derivations.spiked_random_features.derive import symbolic_model
from giantstep.derivations.spiked_random_features.expansions.scaling import (
    MANY_SAMPLES,
    MANY_SAMPLES_AT_WIDTH,
    scaled_system,
    small,
)
from giantstep.derivations.spiked_random_features.expansions.symbolic_side import (
    OrderEquations,
    coefficient,
    series_of,
)
from giantstep.derivations.spiked_random_features.precise import exact_parameters
from giantstep.errors import ParameterError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation

OUTPUTS = ("test_error", "training_error", "V1")


def model(**given):
    return SpikedRandomFeatures(
        "sin", "sin", **{"step_size": 1.5, "alpha0": 4, "noise_variance": 0.1, **given}
    )


@pytest.fixture(scope="module")
def symbolic():
    return symbolic_model("sin", "sin")


@pytest.fixture(scope="module")
def many_samples(symbolic):
    orders = tuple(Fraction(k) for k in range(3))
    return series_of(symbolic, "large_alpha", MANY_SAMPLES, orders, OUTPUTS)


def moments(expr):
    """Write averages as sums of moments of the tables."""
    return expr.replace(
        lambda e: isinstance(e, GaussianExpectation),
        lambda e: sp.Add(
            *(fe.average(t) for t in sp.Add.make_args(sp.expand(e.integrand)))
        ),
    )  # fmt: skip


def test_limit_of_many_samples(many_samples):
    # E σ_*² − yᵀ(A + diag(0, 1/(βcV_2)))⁻¹ y − βV_1 E[μ_1 T_1]², V for penalty zero: derived by
    # minimisation over (m, ϑ) of a quadratic form; V_{i,0} here is β times that V_i.
    leading = {e.lhs: e.rhs for e in many_samples.equations[0]}
    V1, V2, m, theta = (coefficient(x, 0) for x in (fe.V1, fe.V2, fe.m, fe.theta))
    theta_hat, psi, psi_hat = (coefficient(x, 0) for x in (fe.theta_hat, fe.psi, fe.psi_hat))
    (flat,) = (lhs for lhs, rhs in leading.items() if rhs == 0)
    linear = [
        moments(many_samples.explicit(expr))
        for expr in (flat, theta - leading[theta].xreplace({theta_hat: leading[theta_hat]}))
    ]
    solved = sp.solve(linear, [m, theta], dict=True)[0]
    solved[psi] = leading[psi].xreplace({psi_hat: leading[psi_hat]})
    found = moments(many_samples.explicit(many_samples.formulas["test_error"][0])).subs(solved)
    basis, average = (fe.mu0, fe.kappa * fe.mu1), fe.average
    A = sp.Matrix(2, 2, lambda i, j: average(basis[i] * basis[j]))
    A[1, 1] += 1 / (fe.c * V2)
    y = sp.Matrix([average(b * fe.T0) for b in basis])
    gain = (y.T * A.inv() * y)[0] + V1 * average(fe.mu1 * fe.T1) ** 2
    assert sp.simplify(found - (average(fe.T2) - fe.noise - gain)) == 0


def test_an_unknown_begins_with_its_leading_coefficient(many_samples):
    assert many_samples.formulas["V1"][:2] == (0, coefficient(fe.V1, 0))


def test_orders_are_linear_with_one_matrix(many_samples):
    first, second = (many_samples.linear_system(k) for k in (1, 2))
    renamed = {coefficient(x, 2): coefficient(x, 1) for x in (fe.V1, fe.V2, fe.m, fe.q1, fe.q2_hat)}
    assert second[1].xreplace(renamed)[:2, :] == first[1][:2, :]
    difference = (second[0] - first[0]).applyfunc(lambda e: sp.expand(moments(e)))
    assert difference.is_zero_matrix
    assert not first[0].free_symbols & set(first[1])


def test_a_table_that_vanishes(symbolic):
    # A student without linear part, after a short step.
    system = scaled_system(symbolic, MANY_SAMPLES)
    orders = OrderEquations(system, 1, {fe.mu1: [sp.S.Zero, sp.S.Zero]})
    found = {e.lhs: e.rhs for e in orders.equations[0]}
    assert found[coefficient(fe.psi_hat, 0)] == 0 == found[coefficient(fe.V1_hat, 0)]
    assert found[coefficient(fe.V2_hat, 0)] == fe.average(fe.mu2_squared) / fe.beta


def test_many_samples_at_a_finite_width_are_regular():
    # There the conjugate of q_2 grows like α², by the cost of the mean direction.
    symbolic = symbolic_model("sin", "sin", finite_width=True)
    system = scaled_system(symbolic, MANY_SAMPLES_AT_WIDTH)
    for equation in system.equations:
        assert not equation.residual.subs(small, 0).has(sp.zoo, sp.nan)
    assert system.exponents[fe.q2_hat] == -2


def test_an_expansion_without_equations_says_why():
    plain = Expansion(
        name="small_step", parameter="step_size", point=0.0, exponents=(Fraction(0),),
        coefficients={"test_error": (mpmath.mpf(1),)}, neglected={"test_error": None},
        remainder_order=Fraction(1), digits=15, fixed={}, symbols={}, region="", rests_on="",
    )  # fmt: skip
    assert plain.formulas == {}
    with pytest.raises(ParameterError, match="read from a file"):
        _ = plain.equations
    with pytest.raises(ParameterError, match="read from a file"):
        plain.latex_equations()


# ---------------------------------------------------------------------- numbers in the equations

_REACH, _PER_UNIT = 14, 8


def closed_tables():
    """Return the tables of σ = σ_* = sin, from the characteristic function of a Gaussian."""
    r, c, kappa, gamma, rho = fe.r, fe.c, fe.kappa, fe.gamma, fe.rho
    mean, slope = (sp.exp(-c / 2) * f(r * kappa) for f in (sp.sin, sp.cos))
    return {
        fe.mu0: mean,
        fe.mu1: slope,
        fe.mu2_squared: (1 - sp.exp(-2 * c) * sp.cos(2 * r * kappa)) / 2 - mean**2 - c * slope**2,
        fe.chi: -mean,
        fe.T0: sp.exp(-(rho**2) / 2) * sp.sin(gamma * kappa),
        fe.T1: rho * sp.exp(-(rho**2) / 2) * sp.cos(gamma * kappa),
        fe.T2: (1 - sp.exp(-2 * rho**2) * sp.cos(2 * gamma * kappa)) / 2 + fe.noise,
    }


class Evaluation:
    """Values of formulas of an expansion: averages by the trapezoidal rule."""

    def __init__(self, series, known, ctx):
        self._series, self._known, self._ctx = series, known, ctx
        h = ctx.one / _PER_UNIT
        self._nodes = [h * k for k in range(-_REACH * _PER_UNIT, _REACH * _PER_UNIT + 1)]
        self._weights = [h * ctx.npdf(x) for x in self._nodes]
        self._tables: dict[sp.Expr, Any] = closed_tables()
        self._columns: dict[sp.Expr, list[Any]] = {}
        self._means: dict[sp.Expr, Any] = {}

    def __call__(self, expr):
        marks = {n: sp.Dummy() for n in expr.atoms(GaussianExpectation)}
        for node in marks:
            if node not in self._means:
                column = self._on_nodes(node.integrand)
                self._means[node] = self._ctx.fdot(self._weights, column)
        values = {mark: self._means[n] for n, mark in marks.items()}
        outside = expr.xreplace(marks)
        symbols = list(outside.free_symbols)
        function = sp.lambdify(symbols, outside, modules=[self._names(), "mpmath"])
        return function(*(values[x] if x in values else self._symbol(x) for x in symbols))

    def _symbol(self, x):
        if x not in self._known:
            self._known[x] = self(self._series.definitions[x])
        return self._known[x]

    def _column(self, function):
        if function not in self._columns:
            defined = self._tables.get(function)
            if defined is None:
                defined = self._series.definitions[function]
            self._columns[function] = self._on_nodes(defined)
        return self._columns[function]

    def _on_nodes(self, expr):
        functions = list(expr.atoms(AppliedUndef))
        marks = {f: sp.Dummy() for f in functions}
        symbols = [x for x in expr.free_symbols if x != fe.kappa]
        arguments = [fe.kappa, *symbols, *marks.values()]
        value = sp.lambdify(
            arguments, expr.xreplace(marks), modules=[self._names(), "mpmath"], cse=True
        )
        given = [self._symbol(x) for x in symbols]
        columns = [self._column(f) for f in functions]
        return [value(x, *given, *(c[i] for c in columns)) for i, x in enumerate(self._nodes)]

    def _names(self):
        names = ("sin", "cos", "exp", "sqrt", "atan", "pi", "e", "mpf")
        return {name: getattr(self._ctx, name) for name in names}


def coefficients_of(expansion):
    """Return the numbers behind the symbols of the coefficients of unknowns."""
    return {
        symbol: value
        for name, formulas in expansion.formulas.items()
        for symbol, value in zip(formulas, expansion.coefficients[name], strict=False)
        if isinstance(symbol, sp.Symbol)
    }


def parameters_of(given, expansion, ctx):
    moved = expansion.name == "small_step"
    exact = exact_parameters(replace(given, step_size=1.0) if moved else given, ctx)
    names = {v: k for k, v in fe.IDENTIFIERS.items()}
    found = {names[k]: v for k, v in exact.items() if not moved or k not in ("r", "c")}
    found |= {
        names[k]: ctx.mpf(repr(v)) for k, v in expansion.fixed.items() if k in ("alpha", "ridge")
    }
    found[alpha0] = ctx.mpf(repr(given.alpha0))
    if moved:
        # Theirs are series.
        for x in (fe.r, fe.c, fe.norm_overlap):
            found.pop(x, None)
    if given.width is not None:
        found[fe.inverse_width] = ctx.one / given.width
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "name", "order", "fixed", "digits", "orders"),
    [
        ({"width": 300}, "large_alpha", 3, {"ridge": 0.1}, 30, 2),
        ({"alpha0": math.inf}, "large_alpha", 2, {"ridge": 0.2}, 30, 2),
        ({"beta": 0.7}, "small_ridge", 2, {"alpha": 2.0}, 30, 3),
        ({"step_size": 0}, "small_ridge", 3, {"alpha": 0.7}, 30, 2),
        ({}, "small_ridge", 1, {"alpha": 1.0}, 20, 2),
        ({"leading_order": "complete"}, "small_step", 2, {"alpha": 1.5, "ridge": 0.1}, 30, 3),
    ],
)
def test_coefficients_solve_the_equations(options, name, order, fixed, digits, orders):
    given = model(**options)
    expansion = given.expansion(name, order, digits=digits, **fixed)
    ctx = mpmath.mp.clone()
    ctx.dps = digits + 10
    numbers = coefficients_of(expansion)
    values = Evaluation(expansion, {**numbers, **parameters_of(given, expansion, ctx)}, ctx)
    tolerance = ctx.mpf(10) ** (2 - digits)
    for k in range(orders):
        for equation in expansion.equations[k]:
            terms = [t for side in equation.args for t in sp.Add.make_args(side)]
            largest = max(abs(values(t)) for t in terms)
            residual = values(equation.lhs) - values(equation.rhs)
            assert abs(residual) <= tolerance * max(largest, ctx.mpf(10) ** -4), (k, equation)
    for output in ("test_error", "training_error"):
        for formula, number in zip(
            expansion.formulas[output][:orders], expansion.coefficients[output], strict=False
        ):
            assert abs(values(sp.S(formula)) - number) <= tolerance * max(abs(number), 1e-6)
