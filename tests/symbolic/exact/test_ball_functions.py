import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from sympy.codegen.cfunctions import expm1, log1p

from giantstep.ball_library import require_flint
from giantstep.errors import MissingDependencyError, UnsupportedExpressionError
from giantstep.symbolic.exact.ball_functions import BallEvaluator
from giantstep.symbolic.expressions.functions import (
    OwenT,
    erfcx,
    log_cosh,
    log_normal_cdf,
    normal_cdf,
    relu,
    sigmoid,
    softplus,
)

z = sp.Symbol("z", real=True)
R = sp.Rational
FUNCTIONS = [
    sp.exp, sp.log, sp.sin, sp.cos, sp.tan, sp.sinh, sp.cosh, sp.tanh, sp.sech, sp.erf, sp.erfc,
    sp.atan, sp.asinh, sigmoid, softplus, sp.sqrt, lambda u: u ** R(1, 3), lambda u: u ** R(-5, 2),
    lambda u: u**-3, lambda u: u**7 - 2 * u / 3 + sp.pi, lambda u: 2**u, lambda u: (1 + u**2) ** u,
    lambda u: sp.exp(u) * sp.tanh(u) / (2 + u**2), lambda u: u**sp.pi,
]  # fmt: skip
EXPONENTIALS = {sigmoid: lambda u: 1 / (1 + sp.exp(-u)), softplus: lambda u: sp.log(1 + sp.exp(u))}
numbers = st.fractions(-4, 4, max_denominator=16)


def ball(flint, x, y, radius):
    return flint.acb(
        flint.arb(flint.fmpq(x.numerator, x.denominator), radius),
        flint.arb(flint.fmpq(y.numerator, y.denominator), radius),
    )


def test_without_python_flint(without_flint):
    with pytest.raises(MissingDependencyError, match=r"python-flint.*\n.*install"):
        require_flint()


@given(st.sampled_from(FUNCTIONS), numbers, numbers, st.integers(-1, 1), st.integers(-1, 1))
@settings(max_examples=40, deadline=None)
def test_balls_contain_the_values_at_their_points(function, x, y, right, up):
    flint = pytest.importorskip("flint")
    expr = function(z)
    # A corner, an edge or the centre of the rectangle.
    point = (
        R(x.numerator, x.denominator)
        + R(right, 32)
        + sp.I * (R(y.numerator, y.denominator) + R(up, 32))
    )
    evaluate = BallEvaluator().function(expr, z)
    found = evaluate(ball(flint, x, y, 2**-5), False)
    for known, form in EXPONENTIALS.items():
        expr = expr.replace(known, form)
    value = expr.subs(z, point).evalf(40)
    if not found.is_finite() or not value.is_finite:
        return
    re, im = value.as_real_imag()
    tolerance = flint.arb(0, 1e-12)
    assert found.real.overlaps(flint.arb(str(re)) + tolerance)
    assert found.imag.overlaps(flint.arb(str(im)) + tolerance)


@pytest.mark.parametrize(
    ("f", "inside", "across"),
    [
        (sp.log(z), (1, 0), (-1, 0)),
        (sp.sqrt(z), (1, 0), (-2, 0)),
        (z ** R(1, 3), (1, 1), (-1, 0)),
        (z**sp.pi, (1, 1), (-3, 0)),
        (softplus(z), (0, 3), (1, 22 / 7)),
        (sp.atan(z), (0, 0.5), (0, 1.5)),
        (sp.atan(z), (5, 3), (0, -1)),
        (sp.asinh(z), (0, 0.5), (0, 1.5)),
        (sp.asinh(z), (-2, 0), (0, -3)),
        ((1 + z**2) ** z, (0, 0.5), (0, 2)),
        (sp.log(sp.cosh(z)), (0, 1), (0, 2)),
        (sp.exp(sp.sqrt(z)) + 1, (1, 0), (-1, 0)),
    ],
)
def test_balls_on_branch_cuts_are_noticed_on_demand(flint, f, inside, across):
    evaluate = BallEvaluator().function(f, z)
    good, bad = (flint.acb(flint.arb(x, 0.01), flint.arb(y, 0.01)) for x, y in (inside, across))
    assert evaluate(good, True).is_finite()
    assert evaluate(good, True).overlaps(evaluate(good, False))
    assert not evaluate(bad, True).is_finite()


@pytest.mark.parametrize(
    ("f", "pole"), [(sp.tanh(z), (0, 1.5708)), (sp.tan(z), (1.5708, 0)), (sp.sech(z), (0, 1.5708)),
                    (1 / z, (0, 0)), (sigmoid(z), (0, 3.1416)), (1 / (z**2 + 1), (0, 1))],
)  # fmt: skip
@pytest.mark.parametrize("analytic", [True, False])
def test_poles_are_noticed(flint, f, pole, analytic):
    around = flint.acb(*(flint.arb(x, 0.01) for x in pole))
    assert not BallEvaluator().function(f, z)(around, analytic).is_finite()


def test_roots_are_bounded_around_zero_where_analyticity_is_not_asked_for(flint):
    around = flint.acb(flint.arb(0, 2.0**-30))
    for f in (sp.sqrt(z), z ** R(1, 3), z ** sp.sqrt(2)):
        found = BallEvaluator().function(f, z)(around, False)
        assert found.is_finite() and found.contains(0)
        assert found.abs_upper() < 0.01


@pytest.mark.parametrize("exponent", [R(1, 3), R(7, 2), R(-1, 3), R(-5, 2), sp.pi, R(1, 3) + sp.I])
def test_powers_around_zero_are_bounded_if_the_exponent_is_positive(flint, exponent):
    f = BallEvaluator().function(z**exponent, z)
    around = flint.acb(flint.arb(0, 0.5), flint.arb(0, 0.5))
    value = f(around, False)
    assert value.is_finite() is bool(exponent.is_positive)
    if exponent.is_positive:
        for place in (0.5, -0.5, 0.25j, -0.5 - 0.5j):
            assert value.contains(flint.acb(place) ** flint.acb(float(exponent)))
    assert not f(around, True).is_finite()


def test_kinked_constants_give_all_values_that_are_possible(flint):
    evaluator = BallEvaluator()
    zero = 4 * sp.atan(R(1, 5)) - sp.atan(R(1, 239)) - sp.pi / 4
    assert evaluator.real_constant(sp.sign(zero)).contains(flint.arb(1))
    assert evaluator.real_constant(sp.sign(zero)).contains(flint.arb(-1))
    step = evaluator.real_constant(sp.Heaviside(zero, 3))
    assert all(step.contains(flint.arb(value)) for value in (0, 1, 3))
    assert evaluator.real_constant(relu(zero)).contains(flint.arb(0))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (relu(z), "function relu"),
        (OwenT(z, 1), "function OwenT"),
        (sp.zeta(3) * z, "function zeta"),
        (sp.Symbol("a") * z, "symbol a has no value"),
        (z * sp.Float(0.5), r"0.5.* is not exact; write a rational number"),
        (z + sp.oo, "Infinity"),
        (sp.Integral(sp.tanh(z), (z, 0, 1)), "Integral"),
        (sp.sign((-2) ** R(1, 3)) * z, "not known to be real"),
    ],
)
def test_what_is_unknown_is_named(flint, f, message):
    with pytest.raises(UnsupportedExpressionError, match=message):
        BallEvaluator().function(f, z)


NORMAL = {
    log_cosh: lambda u: sp.log(sp.cosh(u)),
    erfcx: lambda u: sp.exp(u**2) * sp.erfc(u),
    normal_cdf: lambda u: sp.erfc(-u / sp.sqrt(2)) / 2,
    log_normal_cdf: lambda u: sp.log(sp.erfc(-u / sp.sqrt(2)) / 2),
    expm1: lambda u: sp.exp(u) - 1,
    log1p: lambda u: sp.log(1 + u),
}


@pytest.mark.parametrize("function", NORMAL)
@pytest.mark.parametrize("x", [-0.75, 0.125, 3])
@pytest.mark.parametrize("y", [0, 0.5])
def test_functions_of_kernels_are_their_definitions(flint, function, x, y):
    point = flint.acb(x, flint.arb(y, 0.01))
    evaluator = BallEvaluator()
    found = evaluator.function(function(z), z)(point, True)
    plain = evaluator.function(NORMAL[function](z), z)(point, True)
    assert found.is_finite() and found.overlaps(plain)


@pytest.mark.parametrize(("function", "x", "y"), [(log1p, -2, 0), (log_cosh, 0, 2), (log1p, -1, 0)])
def test_their_cuts_are_seen(flint, function, x, y):
    evaluate = BallEvaluator().function(function(z), z)
    assert not evaluate(flint.acb(x, y) + flint.acb(0, flint.arb(0, 0.1)), True).is_finite()


def test_several_expressions_of_several_variables(flint):
    x, y, c = sp.symbols("x y c", real=True)
    shared = sp.exp(x * y)
    evaluator = BallEvaluator({c: flint.arb(3)})
    found = evaluator.functions([shared + c, shared * y, sp.Integer(7), x], [x, y])
    first, second, third, last = found([flint.acb(0), flint.acb(2)], True)
    assert (first, second, third, last) == (4, 2, 7, 0)
    # A power of two variables is looked at as a function of both: its cut is seen.
    power = evaluator.functions([x**y], [x, y])
    assert not power([flint.acb(flint.arb(0, 1)) - 1, flint.acb(0.5)], True)[0].is_finite()
    with pytest.raises(UnsupportedExpressionError, match=r"relu.* as a function of x, y"):
        evaluator.functions([relu(x + y)], [x, y])
