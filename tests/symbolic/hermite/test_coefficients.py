import importlib.util
import json
import math

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import (
    AssumptionError,
    ExpressionError,
    MissingDependencyError,
    ParameterError,
    UndecidedError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.expressions.activations import Activation, activation, z
from giantstep.symbolic.expressions.functions import relu, sigmoid, softplus
from giantstep.symbolic.expressions.regularity import Parity
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.gaussian.zero_test import is_exactly_zero
from giantstep.symbolic.hermite.coefficients import (
    CoefficientBasis,
    HermiteCoefficients,
    hermite_coefficient,
    hermite_coefficients,
    hermite_polynomial,
)
from giantstep.symbolic.leaps.leap_index import information_exponent

from .closed_form_table import DIGITS

pi, sqrt, exp = sp.pi, sp.sqrt, sp.exp
HALF = sp.Rational(1, 2)


def double_factorial(n):
    """n!! with (-1)!! = 1 and (-3)!! = -1, the convention of the table."""
    return -1 if n == -3 else math.prod(range(n, 0, -2))


def even(k):
    return k % 2 == 0


def table(name, k):
    """mu_k of the table of theory of leaps, section 1.4."""
    m = k // 2
    sign = (-1) ** m
    odd_factor = 0 if even(k) else sign * double_factorial(2 * m - 1)
    hinge = -sign * double_factorial(2 * m - 3)  # of even k
    if name == "erf":
        return 2 / sqrt(3 * pi) * odd_factor * sp.Rational(2, 3) ** m
    if name == "sign":
        return sqrt(2 / pi) * odd_factor
    if name == "step":
        return HALF if k == 0 else odd_factor / sqrt(2 * pi)
    if name == "Phi":
        return HALF if k == 0 else odd_factor / (2 ** (m + 1) * sqrt(pi))
    if name == "relu":
        return hinge / sqrt(2 * pi) if even(k) else HALF * int(k == 1)
    if name == "abs":
        return hinge * sqrt(2 / pi) if even(k) else sp.S.Zero
    if name == "gelu":
        value = hinge * (2 * m + 1) / (2 ** (m + 1) * sqrt(pi))
        return value if even(k) else HALF * int(k == 1)
    if name == "sin":
        return exp(-HALF) * sp.sin(k * pi / 2)
    if name == "cos":
        return exp(-HALF) * sp.cos(k * pi / 2)
    assert name == "exp"
    return exp(HALF)


@pytest.mark.parametrize(
    "name", ["erf", "sign", "step", "Phi", "relu", "abs", "gelu", "sin", "cos", "exp"]
)
def test_coefficients_of_the_table(name):
    f = activation(name)
    for k in range(8):
        found = hermite_coefficient(f, k)
        assert not found.has(GaussianExpectation, sp.Float)
        assert sp.expand(found - table(name, k)) == 0, k


@pytest.mark.parametrize("name", DIGITS)
def test_numeric_coefficients(name):
    # Table of section 1.4, 16 digits; the last one is rounded.
    for k, text in DIGITS[name].items():
        found = hermite_coefficient(activation(name), k).evalf(25)
        assert abs(found / sp.Float(text, 25) - 1) < 1e-15, k


def test_parity_zeros_are_exact():
    assert [hermite_coefficient(activation("tanh"), k) for k in range(0, 41, 2)] == [0] * 21
    squared = activation("tanh(z)**2")
    assert [hermite_coefficient(squared, k) for k in (1, 3, 5)] == [0, 0, 0]
    # sigmoid - 1/2 is odd, softplus - z/2 and swish - z/2 are even.
    assert [hermite_coefficient("sigmoid", k) for k in range(0, 21, 2)] == [HALF] + [0] * 10
    for name in ("softplus", "swish"):
        assert [hermite_coefficient(name, k) for k in range(1, 20, 2)] == [HALF] + [0] * 9
    mixed = hermite_coefficients("3*sigmoid(2*z) + z**2 - softplus(z) + tanh(z)/5", 8)
    assert mixed[2] == 2 - hermite_coefficient("softplus", 2)
    shifted = hermite_coefficients("tanh(z+1) - tanh(z-1)", 7)  # even, although no part is
    assert shifted[1::2] == (0, 0, 0, 0)
    assert shifted[2] != 0


@pytest.mark.parametrize(
    ("text", "exponent"),
    [
        ("erf", 1),
        ("tanh", 1),
        ("relu", 1),
        ("cos", 2),
        ("abs", 2),
        ("He3", 3),
        ("He5", 5),
        ("He2 + He7", 2),
        ("tanh(z)**2", 2),
        ("z*sigmoid(z) - z/2", 2),
        ("softplus(z) - z/2", 2),
        ("erf(z) - 2*z/sqrt(3*pi)", 3),
        ("sin(z) - exp(-1/2)*z", 3),
        ("gelu(z) - z/2", 2),
        ("z**2*exp(-z**2)", 4),
        ("(sqrt(2) + sqrt(3) - sqrt(5 + 2*sqrt(6)))*z + He2", 2),  # the coefficient is exactly 0
        ("(exp(pi*sqrt(163)) - 262537412640768744)*z + He2", 1),  # 7.5e-13, not 0
        ("tanh(z-1) + tanh(z+1) - tanh(z-1) - tanh(1+z) + He3", 3),
    ],
)
def test_information_exponents(text, exponent):
    # Theory of leaps, sections 2.3, 8 and 9.
    assert information_exponent(activation(text)) == exponent


@pytest.mark.parametrize(
    "text",
    [
        "tanh(z)**2 + sech(z)**2 + He4",  # an identity that no rule knows: mu_2 = 0
        "sigmoid(z) - tanh(z/2)/2 + He3",
    ],
)
def test_numerical_zeros_are_not_taken_for_zeros(text):
    with pytest.raises(UndecidedError, match="cannot be decided"):
        information_exponent(Activation(text, activation(text).expr))


@pytest.mark.slow
def test_rounding_of_high_orders_does_not_decide():
    # E|f He_k| is 1e11 at k = 22: thirty digits of that leave noise above any fixed threshold.
    tanh = sp.tanh(z)
    f = Activation("even identity", (tanh**2 + sp.sech(z) ** 2) * hermite_polynomial(24, z))
    with pytest.raises(UndecidedError, match="coefficient 2 "):
        information_exponent(f)
    value = hermite_coefficient(f, 22)
    with pytest.raises(UndecidedError, match="mu_22"):
        is_exactly_zero(value, "mu_22")


def test_constants_have_no_information_exponent():
    with pytest.raises(AssumptionError, match="constant"):
        information_exponent(Activation("seven", sp.Integer(7) + 0 * z))


fractions = st.fractions(-9, 9, max_denominator=12).map(
    lambda f: sp.Rational(f.numerator, f.denominator)
)


@settings(max_examples=12)
@given(st.lists(fractions, min_size=1, max_size=6))
def test_the_expansion_gives_the_function_back(coefficients):
    expr = sp.Add(*(c * z**i for i, c in enumerate(coefficients)))
    f = Activation("f", expr)
    series = sp.Add(
        *(
            hermite_coefficient(f, k) / sp.factorial(k) * hermite_polynomial(k, z)
            for k in range(len(coefficients))
        )
    )
    assert sp.expand(series - expr) == 0


def test_exact_relations_without_closed_form():
    # mu_k(softplus) = mu_{k-1}(sigmoid); mu_k(swish) = mu_{k+1}(sigmoid) + k mu_{k-1}(sigmoid).
    logistic = hermite_coefficients("sigmoid", 9)
    assert hermite_coefficients("softplus", 9)[1:] == logistic[:9]
    swish = hermite_coefficients("swish", 8)
    for k in range(9):
        assert swish[k] == logistic[k + 1] + (k * logistic[k - 1] if k else 0)
    a, b = sp.symbols("a b", real=True)
    scaled = hermite_coefficients(softplus(a * z + b), 3, variable=z)
    assert scaled[3] == a * hermite_coefficient(sigmoid(a * z + b), 2, variable=z)


def test_what_coefficients_rest_on():
    exact, zero, unknown = CoefficientBasis
    assert [basis.value for basis in CoefficientBasis] == [
        "exact algebra", "exact zero by parity", "no closed form",
    ]  # fmt: skip
    assert hermite_coefficients("erf(z)", 2).basis == (zero, exact, zero)
    assert hermite_coefficients("relu", 3).basis == (exact, exact, exact, exact)
    assert hermite_coefficients("sigmoid", 3).basis == (exact, unknown, zero, unknown)
    assert hermite_coefficients("erf(z)**2", 2).basis == (exact, zero, exact)
    assert hermite_coefficients("tanh(z) + exp(z)", 1).basis == (exact, unknown)


def test_it_is_a_sequence():
    found = hermite_coefficients("relu", 4)
    assert len(found) == 5
    assert found.order == 4
    assert list(found) == [found[k] for k in range(5)] == list(found[:])
    assert found[-1] == -1 / sp.sqrt(2 * pi)
    assert found == hermite_coefficients("relu(z)", 4) != hermite_coefficients("relu", 3)
    assert hash(found) == hash(hermite_coefficients("relu(z)", 4))
    assert found.activation is not None and found.activation.name == "relu"
    assert found.parity is Parity.NEITHER
    assert hermite_coefficients("abs", 1).parity is Parity.EVEN
    with pytest.raises(IndexError):
        found[5]


def test_normalisations():
    found = hermite_coefficients("He(3, z)", 4)
    assert found[:] == (0, 0, 0, 6, 0)
    assert found.he_coefficients() == (0, 0, 0, 1, 0)
    assert found.orthonormal_coefficients() == (0, 0, 0, sqrt(6), 0)


def test_digits():
    numbers = hermite_coefficients("tanh", 3).evalf(30)
    assert numbers[0] is sp.S.Zero
    # mpmath, dps 40: quad(lambda x: tanh(x)*(x**3-3*x)*npdf(x), [-20, -10, ..., 20])
    assert str(numbers[3]) == "-0.363595376280974149497967856470"
    for digits in (0, True, 2.5, 1001):
        with pytest.raises(ParameterError, match="digits must be"):
            hermite_coefficients("tanh", 3).evalf(digits)
    a = sp.Symbol("a", positive=True)
    with pytest.raises(ParameterError, match="depend on a; substitute numbers"):
        hermite_coefficients(sp.erf(a * z), 2, variable=z).evalf()


@pytest.mark.skipif(importlib.util.find_spec("flint") is None, reason="needs python-flint")
def test_enclosures():
    found = hermite_coefficients("sigmoid(z) + erf(z)", 5)
    for k, (ball, number) in enumerate(zip(found.enclosures(20), found.evalf(40), strict=True)):
        assert ball.contains(number), k
        assert ball.radius <= abs(number) * sp.Rational(1, 10**19)
    assert found.enclosures(20)[2].is_exact


@pytest.mark.skipif(importlib.util.find_spec("flint") is not None, reason="needs its absence")
def test_enclosures_name_the_missing_package():
    with pytest.raises(MissingDependencyError, match=r'pip install "giantstep\[flint\]"'):
        hermite_coefficients("tanh", 2).enclosures()


def test_parameters():
    a, t = sp.symbols("a t", positive=True)
    found = hermite_coefficients(relu(z - t), 3, variable=z)
    assert found.parameters == (t,)
    assert found.activation is None
    assert found[2] == exp(-(t**2) / 2) / sqrt(2 * pi)
    other = sp.Symbol("x", real=True)
    assert (
        hermite_coefficients(sp.erf(a * other), 3, variable=other)[:]
        == (hermite_coefficients(sp.erf(a * z), 3, variable=z)[:])
    )
    plain = sp.Symbol("x")  # no assumptions: the Gaussian variable is real
    assert hermite_coefficients(sp.Abs(a * plain), 2, variable=plain)[2] == a * sqrt(2) / sqrt(pi)
    assert hermite_coefficients(sp.Max(a * z, 0), 2, variable=z)[1] == a / 2
    assert hermite_coefficients(sp.erf(0.5 * z), 1, variable=z)[1] == sqrt(6) / (3 * sqrt(pi))
    assert hermite_coefficients(sp.Integer(3), 2, variable=z)[:] == (3, 0, 0)
    nothing = hermite_coefficients(sp.Integer(0), 2, variable=z)
    assert nothing[:] == (0, 0, 0)
    assert nothing.closed_form is not None and nothing.closed_form.general == 0
    w = sp.Symbol("w")
    assert hermite_coefficients(w * z**2, 2, variable=z)[:] == (w, 0, 2 * w)
    assert hermite_coefficients("erf(x)", 1, variable=other)[1] == 2 / sqrt(3 * pi)
    with_parity = hermite_coefficients(sp.tanh(a * z), 4, variable=z)
    assert with_parity[::2] == (0, 0, 0)
    assert with_parity.parity is Parity.ODD


@pytest.mark.parametrize("order", [-1, True, 2.0, "2", None, 1001])
def test_orders_out_of_range(order):
    for function in (hermite_coefficients, hermite_coefficient):
        with pytest.raises(ParameterError, match="order"):
            function("erf", order)


def test_orders_with_parameters_are_bounded():
    a = sp.Symbol("a", positive=True)
    with pytest.raises(ParameterError, match="too high for a function with parameters"):
        hermite_coefficients(sp.erf(a * z), 201, variable=z)


@pytest.mark.parametrize("text", ["relu(z - 1/3)", "exp(z/2)*sin(2*z)", "erf(z + 1)"])
def test_high_orders_are_quick_and_exact(text):
    found = hermite_coefficients(text, 500)
    form = found.closed_form
    reference = form.expr.subs(form.k, 41)
    assert abs(sp.N(found[41] / reference, 30) - 1) < 1e-25
    assert form.at(500) == found[500]


bare, positive = sp.Symbol("z"), sp.Symbol("z", positive=True)
slope = sp.Symbol("a", real=True)


@pytest.mark.parametrize(
    ("f", "variable", "error", "message"),
    [
        (sp.erf(bare), z, ParameterError, "same name, different assumptions"),
        (sp.erf(z), bare, ParameterError, "same name, different assumptions"),
        (z * sp.erf(bare), None, ParameterError, "same name, different assumptions"),
        (sp.erf(positive), positive, ParameterError, r"use Symbol\('z', real=True\)"),
        (sp.Abs(positive), None, ParameterError, "does not fulfil"),
        (sp.erf(slope * sp.Symbol("t")), None, ExpressionError, "as in variable=t"),
        (sp.erf(z), "z", ParameterError, "must be a SymPy Symbol"),
        (3, z, ParameterError, "a name, a text or a SymPy expression, not 3"),
        (3, None, ParameterError, "a name, a text or a SymPy expression, not 3"),
        ("erff", None, ExpressionError, "did you mean 'erf'"),
        ("__import__('os')", None, ExpressionError, "cannot read"),
        ("7", None, ExpressionError, "is the constant 7"),
        ("exp(z**3)", None, AssumptionError, "has to be real with"),
        (exp(z**3) * slope, z, AssumptionError, "has to be real with"),
        (exp(z**2), z, AssumptionError, "has to be real with"),
        (slope / z, z, AssumptionError, "singular at z = 0"),
        (sp.I * sp.erf(z), z, AssumptionError, "not a finite real expression"),
        (sp.I * z, z, AssumptionError, "holds I: it is not a finite real expression"),
        (sp.nan, z, AssumptionError, "holds nan"),
        (sp.oo, z, AssumptionError, "holds oo"),
        (sp.Integral(z, z), None, UnsupportedExpressionError, r"Integral\(z, z\).*use doit\(\)"),
        (sp.Derivative(sp.sin(z), z) * slope, z, UnsupportedExpressionError, "not worked out"),
        (sp.gamma(z), z, UnsupportedExpressionError, "growth of gamma"),
        (sp.tanh(sp.Symbol("w") * z), z, AssumptionError, "whether w is real"),
        (relu(slope * z), z, AssumptionError, "assumptions on a"),
    ],
)
def test_bad_functions(f, variable, error, message):
    with pytest.raises(error, match=message):
        hermite_coefficients(f, 2, variable=variable)


def test_orders_without_closed_form_end_before_they_take_minutes():
    with pytest.raises(ParameterError, match=r"order 1000 is too high for tanh.*no closed form"):
        hermite_coefficients("tanh", 1000)
    with pytest.raises(ParameterError, match="they go up to 200"):
        hermite_coefficient("softplus", 201)


@pytest.mark.parametrize("f", ["relu", activation("relu"), "relu(x)"])
def test_catalogue_in_another_variable(f):
    x = sp.Symbol("x", real=True)
    found = hermite_coefficients(f, 4, variable=x)
    assert found.function == relu(x)
    assert found[:] == hermite_coefficients("relu", 4)[:]


@pytest.mark.parametrize(
    "text",
    ["(relu(z) + sin(z) + cos(z) + erf(z) + tanh(z))**40", "sin(z)**60", "(1 + erf(z))**30"],
)
def test_long_products_end(text):
    found = hermite_coefficients(text, 1)
    assert found.order == 1


def test_json():
    a, b = sp.Symbol("a", positive=True), sp.Symbol("b", real=True)
    for found in (
        hermite_coefficients("gelu", 5),
        hermite_coefficients("step(z-1) + sigmoid(z)/3", 3),
        hermite_coefficients(sp.erf(a * z + b), 3, variable=z),
    ):
        written = json.loads(json.dumps(found.to_dict()))
        read = HermiteCoefficients.from_dict(written)
        assert read == found
        assert read.basis == found.basis
        assert read.parameters == found.parameters
    wrong = hermite_coefficients("gelu", 2).to_dict()
    wrong["coefficients"][1] = "1/3"
    with pytest.raises(ExpressionError, match="are not those of"):
        HermiteCoefficients.from_dict(wrong)
    for broken in ({}, {"symbols": 3}, {"symbols": {"z": {"real": 3.5}}}):
        with pytest.raises(ExpressionError, match="give what to_dict returned"):
            HermiteCoefficients.from_dict(broken)


def test_faces():
    found = hermite_coefficients("tanh", 13)
    assert repr(found) == "HermiteCoefficients('tanh', order 13)"
    lines = str(found).splitlines()
    assert lines[0] == "f(z) = tanh(z), mu_k = E[f(z) He_k(z)]"
    assert lines[2].split() == ["0", "0", "exact", "zero", "by", "parity"]
    assert r"\vdots" in found.latex()
    assert found._repr_latex_().startswith(r"$\displaystyle \begin{aligned} \mu_{0} &= 0 \\")
    page = hermite_coefficients("relu", 2)._repr_html_()
    assert page.count("<tr>") == 4
    assert r"\frac{1}{2}" in page
    assert hermite_coefficients("relu", 2).latex().count("&=") == 3  # the closed form
