"""Closed forms for Gaussian pairs against quadrature over one variable, the other one by hand.

E[f(u) g(v)] = E_u[f(u) G(u)], G(u) = E[g(v) | u] elementary: every closed form is derived once with
symbols, and numbers are inserted afterwards.
"""

import functools

import mpmath
import pytest
import sympy as sp
from hypothesis import assume, given, settings, strategies as st

from giantstep.errors import AssumptionError
from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.gaussian.rules import joint_closed_form

u, v, w, p, q, c = sp.symbols("u v w p q c", real=True)
rho = sp.Symbol("rho", real=True)
a, b = sp.symbols("a b", positive=True)
HALF, ZERO, ONE = sp.Rational(1, 2), sp.S.Zero, sp.S.One
erf, exp, sqrt, pi, asin = sp.erf, sp.exp, sp.sqrt, sp.pi, sp.asin
CENTRED = ((u, v), (ZERO, ZERO), ((a, c), (c, b)))
BIASED = ((u, v), (p, q), ((a, c), (c, b)))
UNIT = ((u, v), (ZERO, ZERO), ((ONE, rho), (rho, ONE)))


def Phi(x):
    return (1 + erf(x / sqrt(2))) / 2


def step(x):
    return sp.Heaviside(x, HALF)


FUNCTIONS = {
    "erf": erf,
    "step": step,
    "sign": sp.sign,
    "relu": relu,
    "abs": sp.Abs,
    "Phi": Phi,
    "gelu": lambda x: x * Phi(x),
    "sin": sp.sin,
    "cos": sp.cos,
    "exp": exp,
    "bump": lambda x: exp(-(x**2)),
    "square": lambda x: x**2,
}
KINKED = ("step", "sign", "relu", "abs")
NUMERIC = {
    "erf": mpmath.erf,
    "step": lambda x: mpmath.mpf(x > 0),
    "sign": mpmath.sign,
    "relu": lambda x: max(x, mpmath.mpf(0)),
    "abs": abs,
    "Phi": mpmath.ncdf,
    "gelu": lambda x: x * mpmath.ncdf(x),
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "exp": mpmath.exp,
    "bump": lambda x: mpmath.exp(-x * x),
    "square": lambda x: x * x,
}
# E g(m + s z): theory of leaps and staircases, sections 1.4 and 6.
SMOOTHED = {
    "erf": lambda m, s: mpmath.erf(m / mpmath.sqrt(1 + 2 * s * s)),
    "step": lambda m, s: mpmath.ncdf(m / s),
    "sign": lambda m, s: 2 * mpmath.ncdf(m / s) - 1,
    "relu": lambda m, s: m * mpmath.ncdf(m / s) + s * mpmath.npdf(m / s),
    "abs": lambda m, s: m * (2 * mpmath.ncdf(m / s) - 1) + 2 * s * mpmath.npdf(m / s),
    "Phi": lambda m, s: mpmath.ncdf(m / mpmath.sqrt(1 + s * s)),
    "gelu": lambda m, s: (
        m * mpmath.ncdf(m / mpmath.sqrt(1 + s * s))
        + s * s / mpmath.sqrt(1 + s * s) * mpmath.npdf(m / mpmath.sqrt(1 + s * s))
    ),
    "sin": lambda m, s: mpmath.exp(-s * s / 2) * mpmath.sin(m),
    "cos": lambda m, s: mpmath.exp(-s * s / 2) * mpmath.cos(m),
    "exp": lambda m, s: mpmath.exp(m + s * s / 2),
    "bump": lambda m, s: mpmath.exp(-m * m / (1 + 2 * s * s)) / mpmath.sqrt(1 + 2 * s * s),
    "square": lambda m, s: m * m + s * s,
}
POINTS = [
    dict(zip((a, b, c, p, q), map(sp.Rational, values), strict=True))
    for values in (("3/4", "8/5", "-4/7", "1/2", "-2/3"), ("7/5", "2/3", "6/11", "-1/5", "1"))
]


def quadrature(f, g, values, biased, power=0):
    """E[u**power f(u) g(v)] to 25 digits."""
    with mpmath.workdps(32):
        A, B, C, P, Q = (mpmath.mpf(values[x].p) / values[x].q for x in (a, b, c, p, q))
        if not biased:
            P = Q = mpmath.mpf(0)
        spread, rest = mpmath.sqrt(A), mpmath.sqrt(B - C * C / A)

        def inside(t):
            x = P + spread * t
            mean = Q + C / spread * t
            return x**power * NUMERIC[f](x) * SMOOTHED[g](mean, rest) * mpmath.npdf(t)

        cuts = {mpmath.mpf(k) for k in range(-14, 15, 2)}
        if f in KINKED:
            cuts.add(-P / spread)
        return mpmath.quadgl(inside, sorted(cuts), maxdegree=6)


def close(found, expected, tolerance="1e-24"):
    number = sp.Float(sp.sympify(found).evalf(34), 34)
    with mpmath.workdps(40):
        difference = abs(mpmath.mpf(number._mpf_) - expected)
        return difference <= mpmath.mpf(tolerance) * max(1, abs(expected))


@functools.cache
def derived(f, g, biased, power):
    integrand = u**power * FUNCTIONS[f](u) * FUNCTIONS[g](v)
    return joint_closed_form(integrand, *(BIASED if biased else CENTRED))


PAIRS = [
    ("erf", "erf"), ("erf", "relu"), ("relu", "erf"), ("relu", "relu"), ("relu", "step"),
    ("step", "step"), ("sign", "sign"), ("abs", "relu"), ("Phi", "Phi"), ("gelu", "gelu"),
    ("gelu", "relu"), ("Phi", "sign"), ("sin", "sin"), ("sin", "cos"), ("exp", "relu"),
    ("exp", "exp"), ("bump", "erf"), ("bump", "relu"), ("bump", "bump"), ("square", "gelu"),
    ("square", "sin"), ("square", "square"), ("bump", "cos"), ("exp", "sin"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("pair", "biased"),
    # Centred laws are a case of the others.
    [(pair, True) for pair in PAIRS] + [(pair, False) for pair in PAIRS[::12]],
    ids=str,
)
def test_pairs(pair, biased):
    point = POINTS[int(biased)]
    found = derived(*pair, biased, 0)
    assert found is not None
    assert close(found.subs(point), quadrature(*pair, point, biased))


@pytest.mark.parametrize(
    "pair", [("sin", "erf"), ("cos", "relu"), ("sin", "gelu"), ("relu", "sin")]
)
def test_sines_with_centred_jumps(pair):
    found = derived(*pair, False, 0)
    assert close(found.subs(POINTS[0]), quadrature(*pair, POINTS[0], False))
    assert derived(*pair, True, 0) is None  # erf of a complex number


@pytest.mark.parametrize(
    ("pair", "power"),
    [(("relu", "relu"), 3), (("erf", "step"), 3), (("gelu", "erf"), 1), (("sin", "cos"), 3)],
)
def test_polynomial_factors(pair, power):
    for biased, point in enumerate(POINTS):
        found = derived(*pair, bool(biased), power)
        assert close(found.subs(point), quadrature(*pair, point, bool(biased), power))


@pytest.mark.parametrize(
    ("integrand", "expected"),
    [
        # Williams 1996; Cho and Saul 2009; Sheppard 1899; Daniely et al. 2016
        (erf(u) * erf(v), 2 / pi * asin(2 * rho / 3)),
        (relu(u) * relu(v), (sqrt(1 - rho**2) + rho * asin(rho)) / (2 * pi) + rho / 4),
        (step(u) * step(v), sp.Rational(1, 4) + asin(rho) / (2 * pi)),
        (sp.sign(u) * sp.sign(v), 2 / pi * asin(rho)),
        (sp.Abs(u) * sp.Abs(v), 2 / pi * (sqrt(1 - rho**2) + rho * asin(rho))),
        (sp.sin(u) * sp.sin(v), exp(-1) * sp.sinh(rho)),
        (sp.cos(u) * sp.cos(v), exp(-1) * sp.cosh(rho)),
        (exp(u) * exp(v), exp(1 + rho)),
        (Phi(u) * Phi(v), sp.Rational(1, 4) + asin(rho / 2) / (2 * pi)),
        (erf(u) * relu(v), rho / sqrt(3 * pi)),
        # The sign beside a maximum stays one: E relu(u) sign(v) by Stein's lemma for u.
        (sp.Max(u, 0) * sp.sign(v), rho / sqrt(2 * pi)),
        (sp.Max(u, v) * sp.sign(u), (1 + rho) / sqrt(2 * pi)),
        (u**2 * v**2, 1 + 2 * rho**2),
        (sp.DiracDelta(u) * sp.DiracDelta(v), 1 / (2 * pi * sqrt(1 - rho**2))),
    ],
    ids=str,
)
def test_standard_kernels_in_their_standard_form(integrand, expected):
    assert sp.expand(joint_closed_form(integrand, *UNIT) - expected) == 0


def test_arcsine_law_with_variances():
    expected = 2 / pi * asin(2 * c / (sqrt(2 * a + 1) * sqrt(2 * b + 1)))
    assert joint_closed_form(erf(u) * erf(v), *CENTRED) == expected


@pytest.mark.parametrize("value", [-1, 0, 1])
def test_the_ends_of_the_correlation(value):
    f = {"relu": (0, 1 / (2 * pi), HALF), "abs": (1, 2 / pi, 1), "step": (0, HALF**2, HALF)}
    for name, expected in f.items():
        found = joint_closed_form(FUNCTIONS[name](u) * FUNCTIONS[name](v), *UNIT)
        assert sp.expand(found.subs(rho, value) - expected[value + 1]) == 0
        law = (UNIT[0], UNIT[1], ((ONE, sp.Integer(value)), (sp.Integer(value), ONE)))
        again = joint_closed_form(FUNCTIONS[name](u) * FUNCTIONS[name](v), *law)
        assert sp.expand(again - expected[value + 1]) == 0


def test_combinations_and_equal_arguments():
    found = joint_closed_form(relu(u + v) * relu(u - v), *UNIT)
    assert sp.expand(found - sqrt(1 - rho) * sqrt(1 + rho) / pi) == 0
    assert joint_closed_form(erf(u) * erf(u), *UNIT) == 2 / pi * asin(sp.Rational(2, 3))
    assert joint_closed_form(relu(u) * relu(-u), *UNIT) == 0
    assert joint_closed_form(step(u) * step(u), *UNIT) == HALF


def test_three_centred_jumps():
    third = (
        (u, v, w),
        (ZERO,) * 3,
        tuple(tuple(ONE if i == j else rho for j in range(3)) for i in range(3)),
    )
    orthant = joint_closed_form(step(u) * step(v) * step(w), *third)
    assert sp.expand(orthant - sp.Rational(1, 8) - 3 * asin(rho) / (4 * pi)) == 0
    product = joint_closed_form(relu(u) * relu(v) * relu(w), *third)
    assert abs(product.subs(rho, 0).evalf(30) - (2 * pi) ** sp.Rational(-3, 2)) < 1e-28
    # at rho -> 1 it is E relu**3 = sqrt(2/pi)
    near = product.subs(rho, 1 - sp.Rational(1, 10**24)).evalf(30)
    assert abs(near - sqrt(2 / pi).evalf(30)) < 1e-11
    assert joint_closed_form(erf(u) * erf(v) * erf(w), *third) == 0


def test_independent_factors_are_averaged_apart():
    law = ((u, v, w), (ZERO,) * 3, ((ONE, ZERO, ZERO), (ZERO, ONE, rho), (ZERO, rho, ONE)))
    found = joint_closed_form(sp.sin(u) ** 2 * erf(v) * erf(w) * u**2, *law)
    alone = joint_closed_form(sp.sin(u) ** 2 * u**2, (u,), (ZERO,), ((ONE,),))
    assert sp.expand(found - alone * 2 / pi * asin(2 * rho / 3)) == 0


def test_wick_for_four_variables():
    x = sp.symbols("x0:4", real=True)
    k = [[sp.Symbol(f"k{min(i, j)}{max(i, j)}", real=True) for j in range(4)] for i in range(4)]
    found = joint_closed_form(sp.Mul(*x), x, (ZERO,) * 4, tuple(map(tuple, k)))
    assert found == k[0][1] * k[2][3] + k[0][2] * k[1][3] + k[0][3] * k[1][2]


@pytest.mark.parametrize("integrand", [erf(u) * erf(v), relu(u) * relu(v), sp.sin(u) * sp.cos(v)])
def test_price_theorem(integrand):
    for law, symbol, twice in ((BIASED, c, (u, v)), (BIASED, p, (u,)), (BIASED, a, (u, u))):
        left = joint_closed_form(integrand, *law).diff(symbol)
        right = joint_closed_form(integrand.diff(*twice), *law) * (HALF if symbol is a else 1)
        for point in POINTS:
            # Each for itself: evalf of a difference that is 0 never ends raising the precision.
            assert abs(left.subs(point).evalf(30) - right.subs(point).evalf(30)) < 1e-25


@pytest.mark.parametrize(
    "integrand",
    [
        sp.tanh(u) * v, erf(u * v), erf(u) * erf(v) * erf(u + v), sp.sin(u**2), relu(u) ** HALF,
        1 / (1 + u**2),
    ],
    ids=str,
)  # fmt: skip
def test_unknown_classes_stay(integrand):
    assert joint_closed_form(integrand, *BIASED) is None


def test_divergence_and_undecided_curvature_are_errors():
    with pytest.raises(AssumptionError, match="diverges"):
        joint_closed_form(exp(u**2), *UNIT)
    with pytest.raises(AssumptionError, match=r"finite only for .* > 0.*\n.*positive=True"):
        joint_closed_form(exp(c * u**2) * erf(v), (u, v), (ZERO, ZERO), UNIT[2])
    with pytest.raises(AssumptionError, match="diverges"):
        joint_closed_form(exp(u * v), (u, v), (ZERO, ZERO), ((ONE, ZERO), (ZERO, ONE)))
    half = joint_closed_form(exp(u * v / 2), (u, v), (ZERO, ZERO), ((ONE, ZERO), (ZERO, ONE)))
    assert half == 2 / sqrt(3)  # (1 - t²)^{-1/2}


rationals = st.fractions(-2, 2, max_denominator=5).map(
    lambda x: sp.Rational(x.numerator, x.denominator)
)


@settings(max_examples=12, deadline=None)
@given(rationals, rationals, rationals, rationals)
def test_two_jumps_of_the_same_variable(s1, s2, b1, b2):
    assume(s1 != 0 and s2 != 0)
    one = ((u,), (ZERO,), ((ONE,),))
    found = joint_closed_form(relu(s1 * u + b1) * relu(s2 * u + b2), *one)

    def inside(t):
        first, second = (
            mpmath.mpf(s.p) / s.q * t + mpmath.mpf(d.p) / d.q for s, d in ((s1, b1), (s2, b2))
        )
        return max(first, 0) * max(second, 0) * mpmath.npdf(t)

    with mpmath.workdps(32):
        cuts = {mpmath.mpf(k) for k in range(-14, 15, 2)}
        cuts |= {-mpmath.mpf(d.p) / d.q * s.q / s.p for s, d in ((s1, b1), (s2, b2))}
        expected = mpmath.quadgl(inside, sorted(cuts))
    assert close(found, expected)
