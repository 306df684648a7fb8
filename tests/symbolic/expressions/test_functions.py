import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.symbolic.expressions.functions import OwenT, relu, sigmoid, softplus

x, h, a = sp.symbols("x h a", real=True)
rationals = st.fractions(-6, 6, max_denominator=8).map(
    lambda f: sp.Rational(f.numerator, f.denominator)
)


def test_relu_is_exact_at_numbers_and_differentiates_to_the_half_step():
    assert relu(sp.Rational(2, 3)) == sp.Rational(2, 3)
    assert relu(-sp.pi) == relu(0) == 0
    assert relu(1 - sp.sqrt(2)) == 0
    assert relu(x).diff(x) == sp.Heaviside(x, sp.Rational(1, 2))
    assert relu(x).rewrite(sp.Heaviside) == x * sp.Heaviside(x, sp.Rational(1, 2))
    assert relu(x).rewrite(sp.Abs) == (x + sp.Abs(x)) / 2


def test_derivatives_of_the_smooth_rectifier():
    assert softplus(x).diff(x) == sigmoid(x)
    assert sp.expand(sigmoid(x).diff(x) - sigmoid(x) + sigmoid(x) ** 2) == 0


def test_values_at_zero_and_infinity():
    assert [sigmoid(v) for v in (0, sp.oo, -sp.oo)] == [sp.Rational(1, 2), 1, 0]
    assert [softplus(v) for v in (0, sp.oo, -sp.oo)] == [sp.log(2), sp.oo, 0]


def test_assumptions_of_real_arguments():
    assert relu(x).is_nonnegative and relu(x).is_real
    assert sigmoid(x).is_positive and softplus(x).is_positive
    assert OwenT(h, a).is_real
    assert sigmoid(sp.Symbol("w")).is_real is None


@given(rationals)
@settings(max_examples=10, deadline=None)
def test_functions_equal_their_rewriting(value):
    for function, target in ((sigmoid, sp.exp), (sigmoid, sp.tanh), (softplus, sp.exp)):
        expected = function(x).rewrite(target).subs(x, value).evalf(30)
        assert abs(function(value).evalf(30) - expected) < 1e-28


def test_softplus_keeps_its_digits_far_out():
    # log(1 + e) = e - e**2/2 + ... with e = exp(-100); the next term is e**3/3 = 1e-87 relative.
    expected = sp.exp(-100) - sp.exp(-200) / 2
    assert abs((softplus(-100).evalf(60) / expected.evalf(60)) - 1) < 1e-58


@pytest.mark.parametrize("slope", [1, sp.sqrt(3), sp.Rational(1, 3), -2])
def test_owen_at_zero_is_an_angle(slope):
    assert OwenT(0, slope) == sp.atan(slope) / (2 * sp.pi)


def test_owen_parities_and_limits():
    assert OwenT(-h, a) == OwenT(h, a)
    assert OwenT(h, -a) == -OwenT(h, a)
    assert OwenT(h, 0) == OwenT(sp.oo, a) == 0
    assert OwenT(h, sp.oo) == sp.erfc(sp.Abs(h) / sp.sqrt(2)) / 4


@pytest.mark.parametrize(
    ("height", "slope"),
    [
        ("0.5", "0.3"), ("1", "1"), ("-2", "5"), ("3", "-0.9"), ("0.01", "40"), ("16", "1"),
        ("25", "0.2"), ("40", "0.001"), ("60", "-0.3"), ("12", "1.3"),
    ],
)  # fmt: skip
def test_owen_equals_its_integral(height, slope):
    hn, an = sp.Rational(height), sp.Rational(slope)
    with mpmath.workdps(40):
        hm, am = mpmath.mpf(height), mpmath.mpf(slope)
        integral = mpmath.quad(
            lambda t: mpmath.exp(-((hm * t) ** 2) / 2) / (1 + t * t), mpmath.linspace(0, am, 9)
        )
        expected = mpmath.exp(-(hm**2) / 2) * integral / (2 * mpmath.pi)
        assert abs(mpmath.mpf(OwenT(hn, an).evalf(35)) / expected - 1) < mpmath.mpf(10) ** -30


@pytest.mark.parametrize("variable", [h, a])
def test_owen_derivatives(variable):
    point = {h: sp.Rational(3, 4), a: sp.Rational(5, 3)}
    step = sp.Rational(1, 10**12)
    below, above = ({**point, variable: point[variable] + s * step} for s in (-1, 1))
    difference = (OwenT(h, a).subs(above) - OwenT(h, a).subs(below)).evalf(40) / (2 * step)
    # Central differences: error of order step**2.
    assert abs(difference - OwenT(h, a).diff(variable).subs(point).evalf(30)) < 1e-23


def test_latex():
    assert sp.latex(relu(x) ** 2) == r"\operatorname{ReLU}^{2}\left(x\right)"
    assert sp.latex(OwenT(h, a)) == r"T\left(h, a\right)"
