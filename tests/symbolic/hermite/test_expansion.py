import json
import math
from itertools import product

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import (
    AssumptionError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.expressions.parser import parse_expression
from giantstep.symbolic.gaussian.hermite_polynomials import hermite_polynomial
from giantstep.symbolic.hermite.expansion import HermiteExpansion

X = x, y = sp.symbols("x y", real=True)
XYZ = sp.symbols("x y z", real=True)
sqrt, pi = sp.sqrt, sp.pi
NUMBERS = st.fractions(-4, 4, max_denominator=9).map(lambda f: sp.Rational(f))
SURDS = st.builds(lambda a, b: a + b * sqrt(2), NUMBERS, st.integers(-2, 2))
ALPHAS = st.tuples(st.integers(0, 3), st.integers(0, 3))
TERMS = st.dictionaries(ALPHAS, SURDS, max_size=5)
PYTHAGOREAN = [(3, 4, 5), (5, -12, 13), (-8, 15, 17), (0, 1, 1)]


def expansion(terms, variables=X):
    return HermiteExpansion.from_he_coefficients(terms, variables)


def he(alpha, variables=X):
    return sp.prod(hermite_polynomial(n, v) for n, v in zip(alpha, variables, strict=True))


def mean(expression, variables=X):
    """Direct Gaussian moments of the expanded expression."""
    polynomial = sp.Poly(expression, *variables)
    moment = math.prod  # of double factorials
    return sp.expand(
        sp.Add(
            *(
                c * moment(0 if n % 2 else math.prod(range(1, n, 2)) for n in alpha)
                for alpha, c in polynomial.terms()
            )
        )
    )


@given(TERMS)
@settings(max_examples=10, deadline=None)
def test_polynomial_and_back(terms):
    f = expansion(terms)
    direct = sp.Add(*(c * he(alpha) for alpha, c in terms.items()))
    assert sp.expand(f.polynomial() - direct) == 0
    assert HermiteExpansion.from_polynomial(direct, X) == f
    assert HermiteExpansion.from_polynomial(f.polynomial_element()) == f
    assert HermiteExpansion.from_moments(f.moments(), X) == f
    assert HermiteExpansion.from_symbol(f.symbol(), X) == f


@given(TERMS, ALPHAS)
@settings(max_examples=8, deadline=None)
def test_moments_are_expectations(terms, alpha):
    f = expansion(terms)
    assert sp.expand(f.moment(alpha) - mean(f.polynomial() * he(alpha))) == 0
    factorial = math.prod(map(math.factorial, alpha))
    assert sp.expand(f.moment(alpha) - factorial * f.he_coefficient(alpha)) == 0


@given(TERMS, TERMS)
@settings(max_examples=8, deadline=None)
def test_parseval_against_direct_moments(first, second):
    f, g = expansion(first), expansion(second)
    assert sp.expand(f.inner(g) - mean(f.polynomial() * g.polynomial())) == 0
    assert f.norm_squared == f.inner(f)
    assert sp.expand((f * g).mean - f.inner(g)) == 0


@given(TERMS, st.sampled_from(X), ALPHAS)
@settings(max_examples=8, deadline=None)
def test_stein(terms, variable, alpha):
    f = expansion(terms)
    raised = tuple(n + (v == variable) for n, v in zip(alpha, X, strict=True))
    assert f.derivative(variable).moment(alpha) == f.moment(raised)
    assert sp.expand(f.derivative(variable).polynomial() - f.polynomial().diff(variable)) == 0
    # μ_α(x_i f) = μ_{α+e_i}(f) + α_i μ_{α-e_i}(f)
    expected, n = f.moment(raised), alpha[X.index(variable)]
    if n:
        lowered = tuple(k - (v == variable) for k, v in zip(alpha, X, strict=True))
        expected += n * f.moment(lowered)
    assert sp.expand(f.times_variable(variable).moment(alpha) - expected) == 0


@given(TERMS, TERMS, SURDS)
@settings(max_examples=8, deadline=None)
def test_arithmetic_is_that_of_the_functions(first, second, number):
    f, g = expansion(first), expansion(second)
    p, q = f.polynomial(), g.polynomial()
    for found, expected in (
        (f + g, p + q),
        (f - g, p - q),
        (f * g, p * q),
        (-f, -p),
        (number * f, number * p),
        (f + number, p + number),
        (number - f, number - p),
    ):
        assert sp.expand(found.polynomial() - expected) == 0


@given(TERMS, st.sampled_from(PYTHAGOREAN), st.booleans(), st.tuples(NUMBERS, NUMBERS))
@settings(max_examples=8, deadline=None)
def test_rotation_covariance(terms, triple, reflected, vector):
    a, b, c = triple
    rotation = sp.Matrix([[a, b], [-b, a]]) / c
    if reflected:
        rotation[1, :] = -rotation[1, :]
    f = expansion(terms)
    g = f.rotate(rotation)
    turned = rotation * sp.Matrix(X)
    substituted = f.polynomial().xreplace(dict(zip(X, turned, strict=True)))
    assert sp.expand(g.polynomial() - substituted) == 0
    assert g.norm_squared == f.norm_squared
    image = list(rotation * sp.Matrix(vector))
    for k in range(f.degree + 2):
        assert sp.expand(g.contract(k, vector) - f.contract(k, image)) == 0


def test_rotation_by_an_algebraic_angle():
    # u = (x1 + x2)/sqrt2.
    rotation = sp.Matrix([[1, 1], [1, -1]]) / sqrt(2)
    f = expansion({(1, 0): 1, (2, 1): 1})
    u, v = (x + y) / sqrt(2), (x - y) / sqrt(2)
    assert f.rotate(rotation) == HermiteExpansion.from_polynomial(u + (u**2 - 1) * v, X)
    assert f.rotate(rotation).rotate(rotation) == f
    c, s = sp.cos(pi / 7), sp.sin(pi / 7)
    turned = f.rotate(sp.Matrix([[c, s], [-s, c]]))
    assert turned.norm_squared == f.norm_squared == 3


def test_tensors_against_the_definition():
    f = HermiteExpansion.from_polynomial(x**3 * y + 5 * x * y - 2 * y**2 + 1, X)
    polynomial = f.polynomial()
    assert f.hermite_tensor(0)[()] == f.mean == mean(polynomial)
    for k in (1, 2, 3, 4):
        tensor = f.hermite_tensor(k)
        assert tensor.shape == (2,) * k
        for index in product(range(2), repeat=k):
            derivative = polynomial
            for i in index:
                derivative = derivative.diff(X[i])
            assert tensor[index] == mean(derivative)


@given(TERMS, st.tuples(NUMBERS, NUMBERS))
@settings(max_examples=8, deadline=None)
def test_contractions_against_the_tensor(terms, w):
    f = expansion(terms)
    for k in (1, 2, 3):
        tensor = f.hermite_tensor(k)
        vector = [sp.S.Zero, sp.S.Zero]
        for index in product(range(2), repeat=k):
            vector[index[-1]] += tensor[index] * sp.prod(w[i] for i in index[:-1])
        found = f.contract(k, w, leave=1)
        assert found.shape == (2, 1)
        assert all(sp.expand(a - b) == 0 for a, b in zip(found, vector, strict=True))
        total = vector[0] * w[0] + vector[1] * w[1]
        assert sp.expand(f.contract(k, w) - total) == 0


def test_contractions_for_symbols_and_surds():
    f = expansion({(2, 1): 1, (0, 3): sqrt(3)})
    a, b = sp.symbols("a b")
    assert sp.expand(f.contract(3, [a, b]) - 6 * (a**2 * b + sqrt(3) * b**3)) == 0
    expected = sp.Matrix([4 * a * b, 2 * a**2 + 6 * sqrt(3) * b**2])
    assert (f.contract(3, sp.Matrix([a, b]), leave=1) - expected).expand() == sp.zeros(2, 1)
    assert f.contract(3, [sqrt(2), sqrt(3)]) == 6 * (2 * sqrt(3) + 9)


def test_a_coefficient_that_is_zero_is_left_out():
    # P14: the coefficient of x1 is exactly zero.
    hidden = sqrt(2) + sqrt(3) - sqrt(5 + 2 * sqrt(6))
    f = HermiteExpansion.from_polynomial(hidden * x + x**2 - 1 + x * y, X)
    assert set(f.he_coefficients()) == {(2, 0), (1, 1)}
    assert f == expansion({(1, 0): hidden, (2, 0): 1, (1, 1): 1})


def test_different_fields_meet():
    f, g = expansion({(1, 0): sqrt(2)}), expansion({(1, 0): sqrt(3), (0, 1): 1 / pi})
    assert f.inner(g) == sqrt(6)
    assert (f * g).mean == sqrt(6)
    assert f - f + sqrt(2) * expansion({(1, 0): 1}) == f
    assert hash(f - g + g) == hash(f)


def test_zero_and_constants():
    zero = expansion({})
    assert zero.degree == -1 and zero.mean == 0 == zero.norm_squared
    assert repr(zero) == "HermiteExpansion(0)" and zero.latex() == "0"
    assert zero + 3 == expansion({(0, 0): 3}) and (zero + 3).degree == 0
    assert zero != 0 and zero != expansion({}, XYZ)
    assert zero.hermite_tensor(2) == sp.ImmutableDenseNDimArray([[0, 0], [0, 0]])


def test_text_and_latex():
    f = expansion({(2, 1): sqrt(2) + 1, (1, 0): -1, (0, 0): sp.Rational(-1, 2), (0, 4): 2})
    assert repr(f) == "HermiteExpansion(-1/2 - x + (1 + sqrt(2))*He(2, x)*y + 2*He(4, y))"
    assert parse_expression(repr(f)[len("HermiteExpansion(") : -1], X).equals(f.polynomial())
    assert r"\left(1 + \sqrt{2}\right) \mathrm{He}_{2}(x) y" in f.latex()
    assert f._repr_latex_() == rf"$\displaystyle {f.latex()}$"
    long = HermiteExpansion.from_polynomial((x + y + 1) ** 5, X)
    assert repr(long).endswith(" + ...)") and long.latex().endswith(r" + \dots\end{aligned}")
    assert "dots" not in long.latex(full=True)
    assert long.latex(full=True).count("+") == len(long.he_coefficients()) - 1


@given(st.dictionaries(ALPHAS, SURDS, max_size=4))
@settings(max_examples=8, deadline=None)
def test_json_round_trip(terms):
    f = expansion(terms) + 1 / pi
    again = HermiteExpansion.from_dict(json.loads(json.dumps(f.to_dict())))
    assert again == f and again.variables == f.variables


def test_json_of_long_numbers_and_plain_symbols():
    plain = sp.symbols("u v")
    f = expansion({(3, 1): sp.Rational(3**900, 2**800), (1, 0): -sp.exp(-sp.Rational(1, 2))}, plain)
    assert HermiteExpansion.from_dict(f.to_dict()) == f
    root = sp.CRootOf(x**5 - x - 1, 0)
    with pytest.raises(UnsupportedExpressionError, match="no text that reads back"):
        expansion({(1, 0): root}).to_dict()


ONE = [{"name": "x", "real": True}]


@pytest.mark.parametrize(
    "content, error, message",
    [
        ({}, ParameterError, "content is not a Hermite expansion as to_dict writes it"),
        (3, ParameterError, "content is not a Hermite expansion"),
        ({"a": "1"}, ParameterError, "content is not a Hermite expansion"),
        ({"1": "__import__('os')"}, ExpressionError, "cannot read coefficient"),
        ({"1": 0.5}, ExpressionError, "cannot read coefficient 0.5"),
        ({"1": "1/0"}, ExpressionError, "cannot read coefficient '1/0'"),
        ({"1,2": "1"}, ParameterError, "has 2 entries and there are 1 variables"),
    ],
)
def test_json_that_is_wrong(content, error, message):
    if content and content != 3:
        content = {"variables": ONE, "he_coefficients": content}
    with pytest.raises(error, match=message):
        HermiteExpansion.from_dict(content)


F = expansion({(2, 1): 1})


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: HermiteExpansion(x), ParameterError,
         "element must be of a sparse polynomial ring"),
        (lambda: HermiteExpansion.from_polynomial(x), ParameterError, "variables are missing"),
        (lambda: HermiteExpansion.from_polynomial(F.symbol_element, [y, x]), ParameterError,
         "are not those of the ring"),
        (lambda: expansion([1, 2]), ParameterError, "coefficients must be a mapping"),
        (lambda: expansion({1: 1, (1,): 2}, [x]), ParameterError, "one multi-index twice"),
        (lambda: expansion({(1,): 1}), ParameterError, "has 1 entries and there are 2 variables"),
        (lambda: expansion({(1, -1): 1}), ParameterError, r"multi-index \(1, -1\) must be >= 0"),
        (lambda: expansion({(1, 1): 0.5}), ParameterError, "number holds the float 0.5"),
        (lambda: expansion({(1, 1): sp.Symbol("c")}), UnsupportedExpressionError,
         "depends on c; give values"),
        (lambda: F.moment((1,)), ParameterError, "has 1 entries"),
        (lambda: F.part(-1), ParameterError, "order k must be >= 0"),
        (lambda: F.derivative(sp.Symbol("t")), ParameterError, "not a variable of this expansion"),
        (lambda: F.derivative(sp.Symbol("x")), ParameterError, "same name, different assumptions"),
        (lambda: F + expansion({}, XYZ), ParameterError, "different variables, x, y and x, y, z"),
        (lambda: F + expansion({}, sp.symbols("x y")), ParameterError,
         "same names, different assumptions"),
        (lambda: F.inner(3), ParameterError, "other must be a HermiteExpansion"),
        (lambda: F.symbol([x]), ParameterError, "symbols must be 2, one per variable, got 1"),
        (lambda: F.contract(2, [1]), ParameterError, "w must have 2 components"),
        (lambda: F.contract(2, [1, 0.5]), ParameterError, r"w\[1\] holds the float 0.5"),
        (lambda: F.contract(2, [1, 2], leave=2), ParameterError, "leave must be 0 or 1, got 2"),
        (lambda: F.contract(0, [1, 2], leave=1), ParameterError, "no argument to leave open"),
        (lambda: F.hermite_tensor(17), ParameterError, r"2\*\*17 entries, more than 100000"),
        (lambda: F.rotate([[1, 0], [0, 1]]), ParameterError, "must be a 2 x 2 SymPy matrix"),
        (lambda: F.rotate(sp.eye(3)), ParameterError, "must be a 2 x 2 SymPy matrix"),
        (lambda: F.rotate(sp.Matrix([[1, 1], [0, 1]])), AssumptionError,
         "its rows 0 and 0 have the inner product 2 instead of 1"),
        (lambda: F.rotate(sp.Matrix([[0.6, 0.8], [-0.8, 0.6]])), ParameterError, "is not exact"),
    ],
)  # fmt: skip
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_other_types_are_left_to_python():
    for wrong in ("x", 0.5, True, None):
        with pytest.raises(TypeError):
            F + wrong
        with pytest.raises(TypeError):
            wrong * F


def test_contraction_with_zero_components_over_a_transcendental_field():
    x, y, w = sp.symbols("x y w", real=True)
    expansion = HermiteExpansion.from_polynomial(
        sp.sqrt(sp.pi) * x**2 * y + sp.pi * y * w, [x, y, w]
    )
    direction = [sp.Rational(3, 5), sp.Rational(4, 5), 0]
    assert expansion.contract(3, direction) == sp.Rational(216, 125) * sp.sqrt(sp.pi)
    assert expansion.contract(2, [0, 0, 1]) == 0
