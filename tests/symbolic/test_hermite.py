import math

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from giantstep.errors import AssumptionError, UndecidedError
from giantstep.symbolic.activations import Activation, activation, z
from giantstep.symbolic.gaussian import GaussianExpectation
from giantstep.symbolic.hermite import (
    hermite_coefficient,
    hermite_polynomial,
    information_exponent,
    is_exactly_zero,
)

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


def test_first_values():
    # The list below the table of section 1.4.
    erf, relu, gelu = activation("erf"), activation("relu"), activation("gelu")
    assert [hermite_coefficient(erf, k) * sqrt(3 * pi) for k in (1, 3, 5)] == [
        2, -sp.Rational(4, 3), sp.Rational(8, 3),
    ]  # fmt: skip
    assert [sp.simplify(hermite_coefficient(relu, k) * sqrt(2 * pi)) for k in (0, 2, 4, 6)] == [
        1, 1, -1, 3,
    ]  # fmt: skip
    assert [hermite_coefficient(gelu, k) * 16 * sqrt(pi) for k in (0, 2, 4, 6)] == [8, 12, -10, 21]


@pytest.mark.parametrize("n", range(1, 9))
def test_polynomials_are_orthogonal(n):
    f = activation(f"He{n}")
    for k in range(9):
        assert hermite_coefficient(f, k) == (math.factorial(n) if k == n else 0)


def test_polynomials():
    x = sp.Symbol("x")
    assert [hermite_polynomial(k, x) for k in range(4)] == [1, x, x**2 - 1, x**3 - 3 * x]
    assert hermite_polynomial(6, x) == x**6 - 15 * x**4 + 45 * x**2 - 15
    for k in range(1, 9):
        assert sp.expand(hermite_polynomial(k, x).diff(x) - k * hermite_polynomial(k - 1, x)) == 0
    with pytest.raises(ValueError, match=">= 0"):
        hermite_polynomial(-1, x)


TANH_DIGITS = {
    1: "0.6057055096021588",
    3: "-0.3635953762809741",
    5: "0.6851737935089189",
    7: "-2.232403311827114",
    9: "10.49368340600438",
    11: "-65.02358489069230",
}
SIGMOID_DIGITS = {
    0: "0.5", 1: "0.2066209641419070", 3: "-0.06239648395925919", 5: "0.06437997324904412",
    7: "-0.1225804362629264", 9: "0.3540813845714079", 11: "-1.402524353016661",
}  # fmt: skip
SWISH_DIGITS = {
    0: "0.2066209641419070", 1: "0.5", 2: "0.3508454443245549", 4: "-0.1852059625879927",
    6: "0.2636994032313383",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "digits"),
    [
        ("tanh", TANH_DIGITS),
        ("sigmoid", SIGMOID_DIGITS),
        ("swish", SWISH_DIGITS),
        ("softplus", {0: "0.8060591833474398", 1: "0.5", 2: "0.2066209641419070"}),
    ],
)
def test_numeric_coefficients(name, digits):
    # Table of section 1.4, 16 digits; the last one is rounded.
    for k, text in digits.items():
        found = hermite_coefficient(activation(name), k).evalf(25)
        assert abs(found / sp.Float(text, 25) - 1) < 1e-15, k


def test_parity_zeros_are_exact():
    assert [hermite_coefficient(activation("tanh"), k) for k in range(0, 41, 2)] == [0] * 21
    squared = activation("tanh(z)**2")
    assert [hermite_coefficient(squared, k) for k in (1, 3, 5)] == [0, 0, 0]
    assert hermite_coefficient(activation("sigmoid"), 2).evalf(20) < 1e-20  # zero, not by rule


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


def test_exact_numbers_are_decided():
    assert is_exactly_zero(sp.S.Zero, "it")
    assert is_exactly_zero(sp.sqrt(3 + 2 * sp.sqrt(2)) - 1 - sp.sqrt(2), "it")
    assert not is_exactly_zero(sp.Rational(1, 10**24), "it")
    assert not is_exactly_zero(GaussianExpectation(sp.tanh(z) ** 2, z), "it")


fractions = st.fractions(-9, 9, max_denominator=12).map(
    lambda f: sp.Rational(f.numerator, f.denominator)
)


@settings(max_examples=40)
@given(st.lists(fractions, min_size=2, max_size=6), st.integers(0, 5))
def test_differentiation_shifts_the_index(coefficients, k):
    # Stein's lemma, exact: mu_k(f') = mu_{k+1}(f); and mu_k(z f) = mu_{k+1}(f) + k mu_{k-1}(f).
    expr = sp.Add(*(c * z**i for i, c in enumerate(coefficients)))
    f, slope, times = (Activation("f", e) for e in (expr, expr.diff(z), sp.expand(z * expr)))
    assert hermite_coefficient(slope, k) == hermite_coefficient(f, k + 1)
    below = hermite_coefficient(f, k - 1) if k else 0
    assert hermite_coefficient(times, k) == hermite_coefficient(f, k + 1) + k * below


@settings(max_examples=30)
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
