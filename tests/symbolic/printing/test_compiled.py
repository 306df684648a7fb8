"""Expressions as functions of floats, of arrays and of many digits."""

import pickle

import mpmath
import numpy as np
import pytest
import sympy as sp

from giantstep.errors import EmissionError
from giantstep.runtime.generated import defined
from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.printing.compiled import Formula, compiled, function_source

x, y = sp.symbols("x y", real=True)
EXPRESSIONS = (
    (x + y) ** 3 / (1 + (x + y) ** 2),
    sp.erf(x) * sp.tanh(y) + sp.Rational(1, 3),
    sp.Piecewise((sp.sin(x) / x, x > 1), (relu(y), True)),
    sp.sqrt(2) * sp.pi,
)


def context(digits):
    ctx = mpmath.mp.clone()
    ctx.dps = digits
    return ctx


def test_one_expression_is_the_same_number_in_every_language():
    ctx = context(40)
    precise, plain, many = (compiled(EXPRESSIONS, (x, y), t) for t in (ctx, "python", "numpy"))
    points = [(0.3, -1.2), (1.5, 0.25), (2.0, 3.0)]
    columns = many(*np.array(points).T)
    for k, point in enumerate(points):
        exact = [e.subs({x: sp.Rational(point[0]), y: sp.Rational(point[1])}) for e in EXPRESSIONS]
        values = zip(precise(*map(ctx.mpf, point)), plain(*point), strict=True)
        for j, (digits, number) in enumerate(values):
            wanted = ctx.mpf(str(exact[j].evalf(45)))
            assert abs(digits - wanted) < 1e-38
            assert number == pytest.approx(float(wanted), rel=1e-15)
            assert np.broadcast_to(columns[j], 3)[k] == pytest.approx(number, rel=1e-15)


@pytest.mark.parametrize("target", ["python", context(20)], ids=["python", "mpmath"])
def test_a_branch_that_is_not_taken_is_not_evaluated(target):
    # log(x)/x stands in both: taken out of the branch it would divide by zero at x = 0.
    case = sp.Piecewise((sp.log(x) / x + (sp.log(x) / x) ** 2, x > 0), (y, True))
    assert compiled(case + case**2, (x, y), target)(0.0, 2.0) == 6


def test_columns_of_one_array_are_several_arguments():
    function = compiled(x - 2 * y, ((x, y),))
    assert function(np.array([[1.0, 2.0], [5.0, 0.5]])).tolist() == [-3.0, 4.0]
    assert compiled(x**2, ((x,),))(np.array([1.0, 3.0])).tolist() == [1.0, 9.0]


def test_names_of_arguments_mean_nothing():
    np_, lambda_ = sp.symbols("np lambda", real=True)
    assert compiled(sp.exp(np_) * lambda_, (np_, lambda_))(0.0, 3.0) == 3.0


def test_functions_travel_to_other_processes():
    function = compiled([relu(x), x], (x,))
    first, second = pickle.loads(pickle.dumps(function))(np.array([-1.0, 2.0]))
    assert first.tolist() == [0.0, 2.0] and second.tolist() == [-1.0, 2.0]


@pytest.mark.parametrize(
    ("target", "given", "infinity"),
    [("numpy", {}, np.inf), ("python", {}, float("inf")), ("mpmath", {"ctx": context(20)}, None)],
)
def test_infinity_is_a_value(target, given, infinity):
    found = defined(function_source({"f": Formula((x,), [sp.oo, x])}, target), **given).f(1)
    assert found == (given["ctx"].inf if given else infinity, 1)


def test_values_of_functions_can_be_given():
    f = sp.Function("f")
    source = function_source(
        {"slope": Formula((x, f(x)), f(x) ** 2 + x, "a slope")}, "python", names={f(x): "value"}
    )
    assert defined(source).slope(1.0, 3.0) == 10.0
    assert defined(source).slope.__doc__ == "Return a slope."


def test_what_a_target_lacks_is_refused():
    with pytest.raises(EmissionError, match="'numpy' has no rule for erfi"):
        compiled(sp.erfi(x), (x,))
