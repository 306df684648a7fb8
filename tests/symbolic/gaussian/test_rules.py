"""Closed forms against the published tables and against quadrature, term by term."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import sympy as sp
from hypothesis import assume, given, settings, strategies as st

from giantstep.symbolic.expressions.functions import OwenT, relu
from giantstep.symbolic.expressions.parser import FUNCTIONS
from giantstep.symbolic.gaussian.rules import closed_form
from giantstep.symbolic.hermite.coefficients import hermite_polynomial

z, x, a, b = sp.symbols("z x a b", real=True)
c = sp.Symbol("c", positive=True)
HALF = sp.Rational(1, 2)
exp, erf, sqrt, pi = sp.exp, sp.erf, sp.sqrt, sp.pi
t, q = x / sqrt(c), 1 + 2 * c
s = sqrt(1 + c)


def phi(u):
    return exp(-(u**2) / 2) / sqrt(2 * pi)


def Phi(u):
    return (1 + erf(u / sqrt(2))) / 2


def shifted_hermite(k, v, argument):
    """He_k of variance v: H_{k+1} = x H_k - k v H_{k-1}."""
    previous, current = sp.S.Zero, sp.S.One
    for n in range(k):
        previous, current = current, argument * current - n * v * previous
    return current


# theory of spiked random features, section 3; of leaps, section 6: E sigma, E sigma', E sigma^2
# at sigma(x + sqrt(c) z).
TABLE = {
    "erf": (erf(x / sqrt(q)), 2 / sqrt(pi * q) * exp(-(x**2) / q),
     1 - 8 * OwenT(x * sqrt(2 / q), 1 / sqrt(1 + 4 * c))),
    "sin": (exp(-c / 2) * sp.sin(x), exp(-c / 2) * sp.cos(x),
     HALF * (1 - exp(-2 * c) * sp.cos(2 * x))),
    "cos": (exp(-c / 2) * sp.cos(x), -exp(-c / 2) * sp.sin(x),
     HALF * (1 + exp(-2 * c) * sp.cos(2 * x))),
    "relu": (x * Phi(t) + sqrt(c) * phi(t), Phi(t), (x**2 + c) * Phi(t) + x * sqrt(c) * phi(t)),
    "abs": (x * (2 * Phi(t) - 1) + 2 * sqrt(c) * phi(t), 2 * Phi(t) - 1, x**2 + c),
    "sign": (erf(x / sqrt(2 * c)), 2 * phi(t) / sqrt(c), sp.S.One),
    "step": (Phi(t), phi(t) / sqrt(c), Phi(t)),
    "exp": (exp(x + c / 2), exp(x + c / 2), exp(2 * x + 2 * c)),
    "Phi": (Phi(x / s), phi(x / s) / s, Phi(x / s) - 2 * OwenT(x / s, 1 / sqrt(1 + 2 * c))),
    "gelu": (
        x * Phi(x / s) + c / s * phi(x / s),
        Phi(x / s) + x / s**3 * phi(x / s),
        None,  # not in the tables
    ),
} | {
    f"He{k}": (
        shifted_hermite(k, 1 - c, x),
        k * shifted_hermite(k - 1, 1 - c, x),
        sum(
            math.comb(k, j) ** 2 * math.factorial(j) * shifted_hermite(2 * k - 2 * j, 1 - c, x)
            for j in range(k + 1)
        ),
    )
    for k in (1, 2, 3, 5)
}  # fmt: skip
# c below, at and above 1, both signs of x.
POINTS = [
    {x: sp.Rational(3, 7), c: sp.Rational(5, 11)},
    {x: -sp.Rational(13, 9), c: sp.Integer(1)},
    {x: sp.Rational(1, 5), c: sp.Rational(9, 4)},
]


def activation_of(name, argument):
    if name.startswith("He"):
        return hermite_polynomial(int(name[2:]), z).subs(z, argument)
    return FUNCTIONS[name](argument)


def integrands(name):
    value = activation_of(name, x + sqrt(c) * z)
    # Stein's lemma: valid for those that jump too.
    return value, z * value / sqrt(c), value**2


def number(value, digits=40):
    return sp.Float(value, digits) if isinstance(value, mpmath.mpf) else sp.sympify(value).evalf(40)


def assert_same(left, right, digits):
    """To `digits` digits, relative to max(1, |value|)."""
    left, right = number(left), number(right)
    assert abs(left - right) <= sp.Float(10) ** -digits * max(1, abs(right)), (left, right)


NUMERIC: dict[str, Callable[..., Any]] = {
    "relu": lambda u: max(u, mpmath.mpf(0)),
    "Heaviside": lambda u, _=None: (mpmath.sign(u) + 1) / 2,
}


def quadrature(integrand, cuts=(), digits=30):
    """30 digits by mpmath's Gauss-Legendre rule on pieces of length 2, cut where it is kinked."""
    f = sp.lambdify(z, integrand, modules=[NUMERIC, "mpmath"])
    with mpmath.workdps(digits + 6):
        points = {mpmath.mpf(k) for k in range(-28, 29, 2)}
        points |= {mpmath.mpf(sp.Float(u, digits + 10)._mpf_) for u in cuts}
        weighted = sorted(points)
        value = mpmath.quadgl(lambda u: f(u) * mpmath.npdf(u), weighted)
        return sp.Float(value, digits + 6)


@pytest.mark.parametrize("name", TABLE)
def test_published_closed_forms(name):
    for integrand, published in zip(integrands(name), TABLE[name], strict=True):
        found = closed_form(integrand, z)
        if published is None:
            continue
        for point in POINTS:
            # 25 digits of expressions whose terms are of order one at these points
            assert_same(found.subs(point), published.subs(point), 25)


def test_moments_of_polynomials():
    assert [closed_form(z**n, z) for n in range(1, 9)] == [0, 1, 0, 3, 0, 15, 0, 105]
    assert closed_form((1 + z) ** 60, z) == sum(
        math.comb(60, 2 * n) * math.prod(range(1, 2 * n, 2)) for n in range(31)
    )


@pytest.mark.parametrize(
    ("integrand", "expected"),
    [
        (erf(z) ** 2, 2 / pi * sp.asin(sp.Rational(2, 3))),
        (relu(z) ** 2, HALF),
        (FUNCTIONS["gelu"](z) ** 2, sp.Rational(1, 3) + 1 / (2 * pi * sqrt(3))),
        (FUNCTIONS["Phi"](z) ** 2, sp.Rational(1, 3)),
        (sp.sin(z) ** 2 * sp.cos(z) ** 2, (1 - exp(-8)) / 8),
        (sp.sinh(z) ** 2, (exp(2) - 1) / 2),
        (sp.Abs(z) ** 3, 2 * sqrt(2 / pi)),
        (sp.sign(z) * relu(z), 1 / sqrt(2 * pi)),
        (exp(z**2 / 4) * relu(z), sqrt(2 / pi)),  # 1/((1 - 1/2) sqrt(2 pi))
        (exp(sp.I * a * z), exp(-(a**2) / 2)),
        (sp.DiracDelta(2 * z - 1) * z**2, phi(HALF) / 8),
        (z**2 * sp.Function("f")(a), sp.Function("f")(a)),
    ],
    ids=str,
)
def test_exact_values(integrand, expected):
    found = closed_form(integrand, z)
    assert found is not None
    difference = sp.expand(found - expected)
    assert difference == 0 or abs(difference.evalf(40, subs={a: HALF})) < 1e-30


@pytest.mark.parametrize(
    "integrand",
    [
        sp.tanh(z), sp.sech(z), sp.log(1 + z**2), 1 / (1 + z + z**2), sqrt(1 + z**2),
        sqrt(sp.Abs(z - 1)), erf(z) ** 3, erf(z) ** 4, erf(z**2), sp.sin(z**2),
        sp.sin(z) * erf(z - 1), relu(z - 1) * sp.sin(z),
        relu(z) * relu(z - x),  # which of 0 and x comes first is not known
        relu(z**2 - 1), relu(z) * erf(z) * erf(2 * z), exp(sp.Abs(z) ** 3), exp(sp.sin(z)),
        exp(z**3), exp(-(z**4)), z**a, z ** sp.Rational(1, 3), sp.Max(z, sp.tanh(z)),
        sp.Piecewise((sp.tanh(z), z > 0), (0, True)), sp.Function("f")(z), sp.gamma(z),
    ],
    ids=str,
)  # fmt: skip
def test_unknown_classes_stay(integrand):
    assert closed_form(integrand, z) is None
    assert closed_form(1 + integrand, z) is None


@pytest.mark.parametrize(
    "integrand",
    [
        exp(z**2), exp(z**2 / 2), exp(z**2 / 3) ** 2,
        exp(z**2) * z,  # odd, but E|f| is infinite
        exp(z**2) * erf(z), exp(z**2) * relu(z), exp(z**2) * sp.sin(z), exp(c * z**2 + z**2 / 2),
        exp(c * z**2),  # exists for c < 1/2 only
        exp(a * z**2),
        erf(sp.I * z),  # grows like exp(z**2)
        sp.erfi(z),
    ],
    ids=str,
)  # fmt: skip
def test_divergent_expectations_are_none(integrand):
    assert closed_form(integrand, z) is None


# -- assumptions

negative = sp.Symbol("n", negative=True)
generic = sp.Symbol("g")
SLOPED = [
    relu, sp.Abs, sp.sign, lambda u: sp.Heaviside(u, HALF), erf, sp.sin, lambda u: erf(u) ** 2,
]  # fmt: skip


@pytest.mark.parametrize("function", SLOPED)
@pytest.mark.parametrize("power", [0, 2])
def test_negative_slopes(function, power):
    found = closed_form(z**power * function(negative * z + b), z)
    values = {negative: -sp.Rational(3, 4), b: sp.Rational(2, 5)}
    integrand = (z**power * function(negative * z + b)).subs(values)
    assert_same(found.subs(values), quadrature(integrand, [sp.Rational(8, 15)]), 28)


@pytest.mark.parametrize("function", SLOPED)
@pytest.mark.parametrize("value", [-sp.Rational(3, 4), sp.S.Zero, sp.Rational(5, 3)])
def test_slopes_of_unknown_sign_give_what_holds_for_all_or_nothing(function, value):
    integrand = (1 + z) * function(a * z + b)
    found = closed_form(integrand, z)
    if found is not None:
        values = {a: value, b: sp.Rational(2, 5)}
        cuts = [-values[b] / value] if value else []
        assert_same(found.subs(values), quadrature(integrand.subs(values), cuts), 28)


def test_smooth_functions_allow_slopes_of_any_sign():
    assert closed_form(erf(a * z + b), z) == erf(b / sqrt(1 + 2 * a**2))
    assert closed_form(sp.sin(a * z + b), z) == exp(-(a**2) / 2) * sp.sin(b)


@pytest.mark.parametrize("function", [relu, sp.sign, erf])
def test_complex_slopes_are_no_slopes(function):
    assert closed_form(function(generic * z), z) is None


def test_curvature_has_to_be_known_below_one_half():
    assert closed_form(exp(-c * z**2), z) == 1 / sqrt(1 + 2 * c)
    assert closed_form(exp(negative * z**2 + a * z), z) is not None
    assert closed_form(exp(generic * z**2), z) is None


def test_nonzero_slopes_are_enough_for_steps():
    nonzero = sp.Symbol("k", real=True, nonzero=True)
    found = closed_form(relu(nonzero * z + b), z)
    for value in (-2, 3):
        values = {nonzero: value, b: HALF}
        expected = TABLE["relu"][0].subs({x: HALF, c: value**2})
        assert_same(found.subs(values), expected, 30)


# -- random integrands of the class

rationals = st.fractions(-2, 2, max_denominator=5).map(
    lambda f: sp.Rational(f.numerator, f.denominator)
)
polynomials = st.lists(rationals, min_size=1, max_size=4).map(
    lambda found: sum(coefficient * z**n for n, coefficient in enumerate(found))
)
kernels = st.sampled_from(
    [
        lambda u: sp.S.One, sp.sin, sp.cos, erf, sp.erfc, lambda u: sp.Heaviside(u, HALF), relu,
        sp.Abs,
    ]
)  # fmt: skip


@settings(max_examples=12)
@given(
    polynomials,
    kernels,
    rationals,
    rationals,
    rationals,
    st.integers(-6, 2).map(lambda n: sp.Rational(n, 8)),
)
def test_random_integrands(polynomial, kernel, slope, shift, linear, quadratic):
    assume(slope != 0)
    integrand = polynomial * exp(quadratic * z**2 + linear * z) * kernel(slope * z + shift)
    found = closed_form(integrand, z)
    assert found is not None
    expected = quadrature(integrand, [-shift / slope])
    # The shift of the measure by at most 4 makes terms of e**8 * 4**3 that cancel.
    assert abs(found.evalf(40) - expected) <= sp.Float("1e-24") * max(1, abs(expected))


@settings(max_examples=10)
@given(
    st.lists(st.tuples(st.sampled_from([sp.sin, sp.cos]), rationals, rationals), max_size=4),
    polynomials,
)
def test_products_of_sines(factors, polynomial):
    # sin(-z) = -sin(z) once lost a term: E sin² cos² came out too large by (1 - exp(-2))/8.
    integrand = polynomial * sp.Mul(*(f(slope * z + shift) for f, slope, shift in factors))
    found = closed_form(integrand, z)
    assert not found.free_symbols
    assert_same(found, quadrature(integrand), 27)  # 16 terms of moments up to 15


@settings(max_examples=8)
@given(polynomials, polynomials, rationals, rationals)
def test_linearity_and_stein(left, right, slope, shift):
    assume(slope != 0)
    f, g = left * erf(slope * z + shift), right * exp(shift * z)
    both = closed_form(2 * f + g, z)
    assert_same(both, 2 * closed_form(f, z) + closed_form(g, z), 35)
    assert_same(closed_form(z * f, z), closed_form(f.diff(z), z), 35)  # E z f = E f'


# -- products of two jumps


@pytest.mark.parametrize(
    "integrand",
    [
        erf(x + sqrt(c) * z) * erf(2 * x + 1 + z),
        erf(x + sqrt(c) * z) * erf(3 * x + 3 * sqrt(c) * z),
        relu(x + sqrt(c) * z) * erf(1 - z),
        relu(x + sqrt(c) * z) * relu(x + sqrt(c) * z - 1),
        z**2 * sp.Heaviside(x + z, HALF) * sp.erfc(c * z),
        exp(-(z**2)) * sp.Abs(x + z) * erf(z + x) * z,
        sp.sign(x - z) * FUNCTIONS["gelu"](z),
    ],
    ids=str,
)
@pytest.mark.parametrize("point", POINTS[1:2])
def test_products_of_two_jumps(integrand, point):
    found = closed_form(integrand, z)
    assert found is not None
    u = point[x]
    cuts = [-u, u, -u / sqrt(point[c]), (1 - u) / sqrt(point[c])]
    expected = quadrature(integrand.subs(point), [t.evalf(45) for t in cuts])
    assert_same(found.subs(point), expected, 27)


def test_proportional_arguments_give_owens_t():
    found = closed_form(erf(x + sqrt(c) * z) * erf(2 * x + 2 * sqrt(c) * z), z)
    assert found.has(OwenT) and not found.has(sp.Function("BivariateNormalCDF"))
    assert {type(f) for f in found.atoms(sp.Function)} == {OwenT}


def test_steps_that_cannot_be_ordered_stay():
    p = sp.Symbol("p", positive=True)
    assert closed_form(relu(z) * relu(z - x), z) is None
    assert closed_form(relu(z) * relu(-z - p), z) == 0
    assert closed_form(sp.Heaviside(z, HALF) * sp.Heaviside(p - z, HALF), z) == erf(p / sqrt(2)) / 2


@pytest.mark.parametrize(
    "integrand",
    [sp.sin(z) * erf(z), z**2 * sp.cos(2 * z + 1) * relu(z), sp.sin(z) * sp.sign(2 * z)],
)
def test_sines_with_one_centred_jump(integrand):
    found = closed_form(integrand, z)
    assert_same(found, quadrature(integrand), 27)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_derivatives_of_point_masses(n):
    # E[f(z) d^n/dz^n delta(z - x)] = (-1)^n (f phi)^(n)(x) by parts
    density = sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi)
    for f in (sp.S.One, z**2 - z, sp.exp(z)):
        expected = (-1) ** n * (f * density).diff(z, n).subs(z, x)
        found = closed_form(f * sp.DiracDelta(z - x, n), z)
        assert abs((found - expected).subs(x, sp.Rational(2, 3)).evalf(30, chop=True)) < 1e-28
    scaled = closed_form(sp.DiracDelta(-2 * z + 1, n), z)
    expected = (density.diff(z, n) / 2 ** (n + 1)).subs(z, sp.Rational(1, 2))
    assert abs((scaled - expected).evalf(30, chop=True)) < 1e-28
