import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import AssumptionError, UnsupportedExpressionError
from giantstep.symbolic.expressions._singularities import pole_distance
from giantstep.symbolic.expressions.functions import relu, sigmoid, softplus
from giantstep.symbolic.expressions.regularity import (
    ImaginaryGrowth,
    Parity,
    analyse,
    require_square_integrable,
)

z, r, kappa = sp.symbols("z r kappa", real=True)
c = sp.Symbol("c", positive=True)
HALF = sp.Rational(1, 2)
AFFINE = r * kappa + sp.sqrt(c) * z
exp, tanh, sign, Abs = sp.exp, sp.tanh, sp.sign, sp.Abs


@pytest.mark.parametrize(
    "expr",
    [
        sp.erf(z), sp.sin(2 * z), sign(z), z * Abs(z), sigmoid(z) - HALF, relu(z) - relu(-z),
        z**3 - 3 * z, sign(z**3 - z), exp(z) - exp(-z), sp.Heaviside(z, HALF) - HALF,
        (z + 1) ** 4 - (z - 1) ** 4, tanh(z) ** 3 / (1 + z**2), r * z,
    ],
)  # fmt: skip
def test_odd(expr):
    assert analyse(expr, z).parity is Parity.ODD


@pytest.mark.parametrize(
    "expr",
    [
        sp.cos(z), Abs(z), softplus(z) - z / 2, z * sigmoid(z) - z / 2, (z - 1) ** 2 * (z + 1) ** 2,
        relu(1 - Abs(z)), sign(z) ** 2, exp(-(z**2)), relu(z) + relu(-z), tanh(c * z**2), c + 0 * z,
        sp.log(1 + z**4), sp.sech(z) * z**2,
    ],
)  # fmt: skip
def test_even(expr):
    assert analyse(expr, z).parity is Parity.EVEN


@pytest.mark.parametrize(
    "expr", [relu(z), softplus(z), exp(z), z + z**2, tanh(z + 1), sp.sin(r + z), tanh(AFFINE)]
)
def test_neither(expr):
    assert analyse(expr, z).parity is Parity.NEITHER


odd_parts = st.sampled_from([z, z**3, sp.erf(z), sp.sin(2 * z), sign(z), tanh(z), z * Abs(z)])
even_parts = st.sampled_from([z**2, sp.cos(z), Abs(z), exp(-(z**2)), sp.sech(z), sp.Integer(3)])


@given(st.lists(odd_parts, min_size=1, max_size=4), st.lists(even_parts, max_size=3))
@settings(max_examples=15, deadline=None)
def test_products_multiply_parities(odd, even):
    product = sp.Mul(*odd, *even)
    expected = Parity.ODD if len(odd) % 2 else Parity.EVEN
    assert analyse(product, z).parity is expected


@pytest.mark.parametrize(
    ("expr", "kinks", "jumps"),
    [
        (relu(z), (0,), ()),
        (sign(z), (0,), (0,)),
        (z * sign(z), (0,), ()),
        (Abs(z - 1) + sign(z), (0, 1), (0,)),
        (relu(AFFINE), (-r * kappa / sp.sqrt(c),), ()),
        (sign(AFFINE), (-r * kappa / sp.sqrt(c),), (-r * kappa / sp.sqrt(c),)),
        (relu(r * z), (0,), ()),
        (sign(r * z), (0,), (0,)),
        (relu(z**2 - 2), (-sp.sqrt(2), sp.sqrt(2)), ()),
        (relu(sp.pi * z**2 - z), (0, 1 / sp.pi), ()),
        (sign(z**3 - z), (-1, 0, 1), (-1, 0, 1)),
        (relu(1 - Abs(z)), (-1, 0, 1), ()),
        (sp.Max(z, 0), (0,), ()),
        (tanh(z), (), ()),
        # changes of sign through poles
        (sign(1 / z), (0,), (0,)),
        (z * sign(1 / z), (0,), ()),
        (relu(1 / z), (0,), (0,)),
        (sign(z / (z - 1)), (0, 1), (0, 1)),
        (sign(1 + 1 / z), (-1, 0), (-1, 0)),
        (sign(z + 1 / z), (0,), (0,)),
        (sign(exp(z) / (2 - z**2)), (-sp.sqrt(2), sp.sqrt(2)), (-sp.sqrt(2), sp.sqrt(2))),
        (sign(1 / (Abs(z) - 1)), (-1, 1), (-1, 1)),
        (sign(1 / z**2), (), ()),
        (sign(1 / (1 + z**2) - 2), (), ()),
        # non-smooth parts that cancel
        (sign(z) ** 2, (), ()),
        (relu(z) - relu(-z), (), ()),
        (relu(z) + relu(-z) - Abs(z), (), ()),
        (Abs(z) ** 2, (), ()),
    ],
)
def test_kinks_and_jumps(expr, kinks, jumps):
    found = analyse(expr, z)
    assert found.kinks == kinks
    assert found.jumps == jumps


def test_large_powers_of_sums_are_not_expanded():
    # Some 10**7 terms when expanded, since every constant is a generator of its own.
    base = z + sp.pi + sp.E + sp.log(2) + sp.sqrt(3) + sp.erf(1) + softplus(1) + sp.sin(1)
    found = analyse(base**20 + Abs(base) ** 21, z)
    assert found.parity is Parity.NEITHER
    assert len(found.kinks) == 1


def test_irrational_kinks_are_exact():
    (kink,) = analyse(Abs(z**3 - z - 1), z).kinks
    assert abs(mpmath.polyval([1, 0, -1, -1], mpmath.mpf(kink.evalf(20)))) < 1e-14


@pytest.mark.parametrize(
    "expr",
    [
        Abs(sp.sin(z)), relu(1 / sp.sin(z)), relu(tanh(z) - z), sp.Piecewise((z, z > 0), (0, True)),
        sp.floor(z),
    ],
)  # fmt: skip
def test_unknown_kinks_are_refused(expr):
    with pytest.raises(UnsupportedExpressionError, match="not known"):
        analyse(expr, z)


@pytest.mark.parametrize(
    ("expr", "strip"),
    [
        (tanh(AFFINE), sp.pi / (2 * sp.sqrt(c))),
        (sigmoid(-3 * z), sp.pi / 3),
        (softplus(z) * z, sp.pi),
        (1 / sp.cosh(2 * z), sp.pi / 4),
        (sp.sech(z), sp.pi / 2),
        (1 / (1 + exp(-2 * z)), sp.pi / 2),
        (1 / (exp(z) + exp(-z)), sp.pi / 2),
        (sp.atan(3 * z), sp.Rational(1, 3)),
        (tanh(z) * sp.atan(z / 4), sp.pi / 2),
        (1 / (1 + z**2), 1),
        (1 / (c + z**2), sp.sqrt(c)),
        (sp.sqrt(z**2 + z + 1), sp.sqrt(3) / 2),
        (sp.log(4 + z**2), 2),
        (sp.erf(z) * exp(-(z**2)) + z**5, sp.oo),
        (relu(z) ** 2, sp.oo),
        (relu(tanh(z)), sp.pi / 2),
        (1 / z, 0),
        (sp.tan(z), 0),
        (tanh(z**2), None),
        (1 / (1 + Abs(z)), None),
    ],
)
def test_strip(expr, strip):
    assert analyse(expr, z).strip == strip


def test_strip_of_a_higher_polynomial_is_a_tight_lower_bound():
    strip = analyse(1 / (1 + z**4), z).strip  # zeros exp(i*pi/4) and its mirror images
    assert 0 < sp.sqrt(2) / 2 - strip < 1e-8
    assert strip.is_Rational


@pytest.mark.parametrize(
    ("expr", "coefficient"),
    [
        (sp.erf(sp.sqrt(c) * z + kappa), c),
        (sp.erf(z) ** 2 * sp.erf(2 * z) + z, 6),
        (sp.erf(z) + sp.erfc(3 * z), 9),
        (exp(-(z**2) / 2), HALF),
        (exp(z**2 / 5), 0),
        (z * (1 + sp.erf(z / sp.sqrt(2))) / 2, HALF),
        (sp.sin(z) * exp(2 * z) + z**4, 0),
        (relu(z), 0),
        (tanh(z), 0),
        (tanh(z) / (1 + z**2), 0),
        (1 / (2 + sp.erf(z)), None),
        (sp.sin(z**2), None),
        (sp.erf(z) + sp.sin(z**2), None),
        (exp(z**4), None),
    ],
)
def test_imaginary_growth(expr, coefficient):
    found = analyse(expr, z)
    assert found.gaussian_coefficient == coefficient
    kinds = {0: ImaginaryGrowth.EXPONENTIAL, None: ImaginaryGrowth.UNKNOWN}
    assert found.imaginary_growth is kinds.get(coefficient, ImaginaryGrowth.GAUSSIAN)


@pytest.mark.parametrize("expr", [sp.erf(z) ** 2 * sp.erf(2 * z), exp(-(z**2) / 2), sp.erf(z)])
def test_gaussian_growth_is_what_mpmath_sees(expr):
    f = sp.lambdify(z, expr, "mpmath")
    with mpmath.workdps(30):
        rate = mpmath.log(abs(f(mpmath.mpc(0.3, 60)))) / 3600
    # The powers of y in front of the exponential contribute log(60)*3/3600.
    assert abs(rate - float(analyse(expr, z).gaussian_coefficient)) < 0.01


@pytest.mark.parametrize(
    "expr",
    [
        exp(-(z**2)), exp(3 * z), exp(z**2 / 5), sp.sinh(z), z**8, 1 / (1 + z**2), 2**z,
        sp.log(1 + z**2), sp.sqrt(1 + z**2), 1 / (1 + Abs(z)), sp.sqrt(Abs(z)), relu(z) ** 3,
        1 / (1 + exp(-z)), 1 / sp.cosh(z), 1 / (2 + sp.sin(z)), sp.log(2 + tanh(z)), exp(r * z),
        exp(sp.sqrt(1 + z**2)), exp(-(Abs(z) ** 3)), exp(-(z**4)), 1 / sigmoid(z), sp.sin(exp(z)),
        exp(z * tanh(z)), exp(-(z**2) / 2) * sp.cosh(z**2 / 3), exp(softplus(z)), softplus(exp(z)),
    ],
)  # fmt: skip
def test_square_integrable(expr):
    require_square_integrable(expr, z, argument="student")


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        (exp(z**2 / 4), r"exp\(\|z\|\*\*2/4\)"),
        (exp(z**2), "grow like"),
        (exp(z**4), r"exp\(\|z\|\*\*4\)"),
        (exp(-(z**3)), "towards -oo"),
        (exp(exp(z)), "faster than every"),
        (sp.cosh(z**2), "grow like"),
        (exp(z**2 * exp(sp.sin(z)) / 5), "grow"),
        (sp.cosh(z**4) * exp(z**2 - z**4), "cancel"),
        (sp.log(sp.sech(exp(z**2))), "grow"),
        (1 / sp.sech(z**2), "grow like"),
        (exp(r * z**2), "grow like"),
        (1 / z, "singular at z = 0"),
        (1 / (z**2 - 2), r"singular at z = -sqrt\(2\)"),
        (sp.log(z), "singular at z = 0"),
        (sp.log(z - 1), "singular at z = 1"),
        (sp.log(-1 - z**2), "not real at z = 0"),
        (sp.sqrt(z), "at z = 0"),
        (sp.sqrt(z**2 - 1), "at z = -1"),
        (sp.tan(z), "poles"),
        (1 / sp.sin(z), "may be singular"),
        (sp.I * z, "not a finite real"),
    ],
)
def test_not_square_integrable(expr, reason):
    with pytest.raises(AssumptionError, match=reason) as caught:
        require_square_integrable(expr, z, argument="student")
    assert str(caught.value).startswith("student ")
    assert "E[f(z)**2] < oo" in str(caught.value)


def test_functions_of_unknown_growth_are_refused():
    with pytest.raises(UnsupportedExpressionError, match=r"gamma\(z\) is not known"):
        require_square_integrable(sp.gamma(z), z, argument="student")


def test_no_distance_to_poles_is_known_where_that_of_a_part_is_not():
    assert pole_distance(tanh(z), z) == sp.pi / 2
    assert pole_distance(tanh(z) + tanh(z + sp.sin(z)), z) is None
