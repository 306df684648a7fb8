import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import ParameterError, UnsupportedExpressionError
from giantstep.symbolic.exact.polynomial_elements import (
    MAX_DEGREE,
    checked_variables,
    element_from_terms,
    polynomial_element,
)

x, y, z = sp.symbols("x y z", real=True)
LEAVES = st.sampled_from(
    [x, y, z, sp.Rational(2, 3), sp.sqrt(2), -sp.S.One, 1 + sp.sqrt(2), 2 * sp.sqrt(3)]
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, n: a**n, inner, st.integers(1, 2)),
    ),
    max_leaves=7,
)


@given(TREES)
@settings(max_examples=25, deadline=None)
def test_the_element_is_the_expression(expression):
    element = polynomial_element(expression, [x, y, z])
    assert sp.expand(element.as_expr() - expression) == 0
    assert all(element.values())


UNEVALUATED = st.recursive(
    st.sampled_from([x, y, z, sp.Rational(-2, 3), sp.S.Zero, sp.S.One, sp.Integer(2)]),
    lambda inner: st.one_of(
        st.builds(
            lambda head, args: head(*args, evaluate=False),
            st.sampled_from([sp.Add, sp.Mul]),
            st.lists(inner, min_size=1, max_size=4),
        ),
        st.builds(lambda a, n: sp.Pow(a, n, evaluate=False), inner, st.integers(0, 3)),
    ),
    max_leaves=9,
)


@given(UNEVALUATED)
@settings(max_examples=40, deadline=None)
def test_unevaluated_expressions_are_read_as_they_are_written(expression):
    element = polynomial_element(expression, [x, y, z])
    assert sp.expand(element.as_expr() - expression.doit()) == 0
    assert all(element.values())


def test_the_field_is_that_of_the_numbers():
    assert polynomial_element(x / 3 + 1, [x]).ring.domain == sp.QQ
    nested = sp.sqrt(5 + 2 * sp.sqrt(6))
    element = polynomial_element(sp.sqrt(2) * x + sp.sqrt(3) * x - nested * x + y, [x, y])
    assert element.as_expr() == y
    assert str(element.ring.domain) == "QQ<sqrt(2) + sqrt(3)>"
    assert str(polynomial_element(x / sp.sqrt(sp.pi), [x]).ring.domain) == "QQ(sqrt(pi))"


def test_constants_and_zero():
    assert polynomial_element(sp.S.Zero, [x]) == 0
    assert polynomial_element(sp.sqrt(2) + 1, [x]).as_expr() == 1 + sp.sqrt(2)
    assert polynomial_element((x - x) ** 3 + (x + 1) ** 2 - x**2 - 2 * x - 1, [x]) == 0


def test_terms():
    element = element_from_terms({(2, 1): sp.sqrt(2), (0, 0): 0}, [x, y])
    assert element.as_expr() == sp.sqrt(2) * x**2 * y
    assert len(element) == 1


def test_a_high_power_of_one_variable_is_short():
    assert len(polynomial_element((x + 1) ** MAX_DEGREE, [x, y])) == MAX_DEGREE + 1


@pytest.mark.parametrize(
    "expression, error, message",
    [
        (x + sp.Symbol("t"), ParameterError, "depends on t, which is not among the variables x, y"),
        (x + sp.Symbol("y"), ParameterError, "y .* same name, different assumptions"),
        (0.5 * x, ParameterError, "which is not exact"),
        ("x", ParameterError, "expression must be a SymPy expression"),
        (1 / x, UnsupportedExpressionError, "1/x is not a polynomial in x, y"),
        (sp.sqrt(x + y), UnsupportedExpressionError, "is not a polynomial"),
        (sp.erf(x) * y, UnsupportedExpressionError, r"erf\(x\) is not a polynomial"),
        (2**x, UnsupportedExpressionError, r"2\*\*x is not a polynomial"),
        (x ** (MAX_DEGREE + 1), UnsupportedExpressionError, "power 513 is too high"),
        ((x + y + 1) ** 500 * (x - y) ** 500, UnsupportedExpressionError, "too many terms"),
        (((x + y) ** 500 + 1) ** 500, UnsupportedExpressionError, "too many terms"),
        (sp.Integral(y, (y, 0, 1)) * x, UnsupportedExpressionError, "is not a real number"),
        (sp.log(3) * x, UnsupportedExpressionError, r"log\(3\) is not a real number"),
    ],
)
def test_refusals(expression, error, message):
    with pytest.raises(error, match=message):
        polynomial_element(expression, [x, y])


@pytest.mark.parametrize(
    "variables, message",
    [
        ([], "variables is empty"),
        ("xy", "variables must be a sequence of symbols"),
        (x, "variables must be a sequence of symbols"),
        ([x, 2 * y], r"variables must be SymPy symbols, got 2\*y"),
        ([x, sp.Symbol("x")], "variables must have different names, got x, x"),
        ([sp.Symbol("n", integer=True)], "the variable n has assumptions"),
        ([sp.Symbol("p", positive=True)], "the variable p has assumptions"),
    ],
)
def test_variables(variables, message):
    with pytest.raises(ParameterError, match=message):
        checked_variables(variables)
