"""Parameters go through: put into a result, numbers give the result for these numbers."""

import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import (
    AssumptionError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.targets.target import target

z = sp.Symbol("z", real=True)
x1, x2 = sp.symbols("x1 x2", real=True)
a = sp.Symbol("a", real=True)
b = sp.Symbol("b", positive=True)
POINTS = [{a: sp.Rational(-2, 3), b: sp.Rational(1, 2)}, {a: sp.Integer(0), b: sp.Integer(2)}]
ACTIVATIONS = [z + a * z**2, relu(z) + a * z, sp.erf(b * z) + a, relu(z) * a + b * z**3]
TARGETS = [x1 + a * x1 * x2, a * x1 + b * x1 * x2 + x2**2, sp.tanh(x1) + a * x1 * x2]


def at(f, point):
    return target(f.subs(point), [x1, x2])


def equal(first, second):
    return abs(sp.N(first - second, 30)) < sp.Float(10) ** -25


@pytest.mark.parametrize("f", ACTIVATIONS)
@pytest.mark.parametrize("point", POINTS)
def test_hermite_coefficients(f, point):
    with_parameters, with_numbers = (
        gs.hermite_coefficients(f, 4),
        gs.hermite_coefficients(f.subs(point), 4),
    )
    for first, second in zip(with_parameters, with_numbers, strict=True):
        assert equal(first.subs(point), second)


@pytest.mark.parametrize("f", [z + a * z**2, relu(z) + a * z, sp.erf(b * z) + a * z])
@pytest.mark.parametrize("point", POINTS)
def test_dual_activations(f, point):
    rho = sp.Symbol("rho", real=True)
    at = {**point, rho: sp.Rational(1, 3)}
    first = gs.dual_activation(f, rho).closed_form
    second = gs.dual_activation(f.subs(point), rho).closed_form
    assert equal(first.subs(at), second.subs(at))


@pytest.mark.parametrize("f", [z + a * z**2, relu(z) + a * z])
@pytest.mark.parametrize("point", POINTS)
def test_conditional_equivalences(f, point):
    centre, spread = sp.Rational(1, 3), sp.Rational(2, 3)
    first = gs.conditional_equivalence(f, centre, spread)
    second = gs.conditional_equivalence(f.subs(point), centre, spread)
    for name in ("mean", "slope", "residual_variance"):
        assert equal(getattr(first, name).expr.subs(point), getattr(second, name).expr)


@pytest.mark.parametrize("f", TARGETS)
@pytest.mark.parametrize("point", POINTS)
def test_gradient_expansions(f, point):
    student = relu(z) + b * z
    first = gs.gradient_expansion(student, f, 3)
    second = gs.gradient_expansion(student.subs(point), at(f, point), 3)
    weights = dict(zip(first.weights, (sp.Rational(1, 3), sp.Rational(2, 5)), strict=True))
    # Terms that vanish at all values are left out, others at these values only.
    assert len(first.terms) == len(second.terms) or not point[a]
    for one, other in zip(first.inside(), second.inside(), strict=True):
        assert equal(one.subs({**point, **weights}), other.subs(weights))


@pytest.mark.parametrize("f", TARGETS)
@pytest.mark.parametrize("point", POINTS)
def test_projections(f, point):
    norms = gs.project(f, [[1, 1]], 1).norms[:2]
    for first, second in zip(norms, gs.project(at(f, point), [[1, 1]], 1).norms, strict=False):
        assert equal(first.subs(point), second)
    assert equal(
        gs.residual_norms(f, [[1, 0]], highest=1)[1].subs(point),
        gs.residual_norms(at(f, point), [[1, 0]], highest=1)[1],
    )


@pytest.mark.parametrize("point", [{a: sp.Rational(-2, 3)}, {a: sp.Integer(0)}])
def test_giant_steps_by_cases(point):
    tree = gs.giant_step(a * x1 + x1 * x2)
    by_tree, at_numbers = tree.at(point), gs.giant_step((a * x1 + x1 * x2).subs(point))
    assert (by_tree.order, by_tree.leap_index) == (at_numbers.order, at_numbers.leap_index)
    assert by_tree.learned == at_numbers.learned
    constants = by_tree.ridge_constants or (), at_numbers.ridge_constants or ()
    for first, second in zip(*constants, strict=True):
        assert equal(first, second)
    assert [str(leaf.case) for leaf in tree.leaves] == ["a != 0", "a = 0"]
    # A case is made only where something changes.
    assert len(gs.giant_step(x1 + a * x1 * x2).leaves) == 1


@pytest.mark.parametrize("point", POINTS)
def test_first_steps(point):
    student = relu(z) + b * z
    first = gs.first_step(student, x1 + a * x1 * x2)
    second = gs.first_step(student.subs(point), (x1 + a * x1 * x2).subs(point))
    samples = {gs.first_step("relu", "x1").alignment.free_symbols.pop(): 3}
    for name in ("spike", "bulk", "output", "alignment"):
        symbols = {s: sp.Integer(3) for s in getattr(second, name).free_symbols}
        one, other = getattr(first, name).subs(point).subs(symbols), getattr(second, name)
        assert equal(one, other.subs(symbols)), samples
    with pytest.raises(ParameterError, match="the limits hold b, a; give values"):
        first.values(alpha=2)


def test_information_exponents_by_cases():
    c = sp.Symbol("c", real=True)
    tree = gs.information_exponent(a * z + c * (z**2 - 1) + z**3)
    assert [(str(leaf.case), leaf.value) for leaf in tree.leaves] == [
        ("a != -3", 1), ("a = -3, c != 0", 2), ("a = -3, c = 0", 3),
    ]  # fmt: skip
    for values, _ in tree.sample(3):
        f = (a * z + c * (z**2 - 1) + z**3).subs(values)
        assert tree.at(values) == gs.information_exponent(f)
    inside = gs.information_exponent(sp.tanh(a * z))
    assert [(str(leaf.case), leaf.value) for leaf in inside.leaves] == [
        ("a != 0", 1),
        ("a = 0", None),
    ]


RHO, T, X = sp.symbols("rho t x", real=True)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda: gs.information_exponent(z + X * z**2), ExpressionError,
         "holds x: the variable or a parameter"),
        (lambda: gs.information_exponent(T + a * T**2), ExpressionError,
         "holds a, t: the variable or a parameter"),
        (lambda: activation(activation(z + a * z**2, parameters=True)), ExpressionError,
         "numbers are needed here"),
        (lambda: gs.SpikedRandomFeatures(z + a * z**2, "sin", step_size=1, alpha0=2),
         ExpressionError, "exactly one free symbol"),
        (lambda: gs.dual_activation(sp.tanh(z) + a * z, RHO, order=4), UnsupportedExpressionError,
         "needs numbers: give values to a"),
        (lambda: gs.dual_activation(sp.tanh(z) + a * z, RHO).value(0), ParameterError,
         "the value depends on a; give numbers"),
        (lambda: gs.dual_activation(z + sp.Symbol("a") * z**2, RHO), AssumptionError,
         "has to be declared real"),
        (lambda: gs.dual_activation(z + RHO * z**2, RHO), ParameterError,
         "rho is a parameter of a function, too"),
    ],
)  # fmt: skip
def test_symbols_that_are_refused(ask, error, words):
    with pytest.raises(error, match=words):
        ask()
    assert gs.information_exponent(T + a * T**2, parameters=[a]).generic == 1
