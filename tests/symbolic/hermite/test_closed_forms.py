"""Closed forms in k of Hermite coefficients: those of a table, against quadrature and rules."""

import functools
import itertools
import random

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import AssumptionError, ClosedFormNotFoundError
from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.expressions.regularity import Parity
from giantstep.symbolic.gaussian.expectation import expect
from giantstep.symbolic.hermite.closed_forms import ClosedForm
from giantstep.symbolic.hermite.coefficients import hermite_coefficients, hermite_polynomial

from .closed_form_table import (
    HALF,
    OTHERS,
    SECOND_MOMENTS,
    TABLE,
    He,
    Phi,
    a,
    b,
    c,
    erf,
    exp,
    hinged,
    k,
    m,
    phi,
    pi,
    s,
    slope,
    sqrt,
    step,
    t,
    z,
)


def values_at_random(seed):
    draw = random.Random(seed)

    def fraction(low, high):
        return sp.Rational(draw.randint(low, high), draw.randint(3, 7))

    return {
        a: fraction(1, 9), s: fraction(2, 9), b: fraction(-9, 9), c: fraction(-9, 9),
        t: fraction(-9, 9), slope: -fraction(1, 9),
    }  # fmt: skip


def kinks_of(expr):
    points = {0.0, 2.0}
    for node in expr.atoms(relu, sp.Abs, sp.sign, sp.Heaviside):
        points.update(float(x) for x in sp.solve(node.args[0], z))
    return sorted(points)


def quadrature(expr, highest):
    """E[f He_k] for k = 0..highest: Gauss-Legendre by mpmath between the kinks, 30 digits."""
    ctx = mpmath.mp.clone()
    ctx.dps = 34
    function = sp.lambdify(
        z,
        expr.replace(relu, lambda u: sp.Piecewise((u, u > 0), (0, True))),
        [{"erf": ctx.erf, "exp": ctx.exp, "sin": ctx.sin, "cos": ctx.cos, "sqrt": ctx.sqrt,
          "pi": ctx.pi, "log": ctx.ln, "mpf": ctx.mpf, "sign": ctx.sign,
          "Heaviside": lambda x, *_: ctx.mpf(int(x > 0))}, "mpmath"],
    )  # fmt: skip
    kinks = [ctx.mpf(str(sp.N(sp.nsimplify(x), 34))) for x in kinks_of(expr)]
    edges = [ctx.mpf(x) for x in (-17, -8, -4, -2, -1)]
    points = sorted({*edges, *(-e for e in edges), *kinks})
    totals = [ctx.zero] * (highest + 1)
    for low, high in itertools.pairwise(points):
        for x, weight in nodes_and_weights(low, high, ctx):
            value = weight * function(x) * ctx.exp(-x * x / 2)
            previous, current = ctx.zero, ctx.one
            for n in range(highest + 1):
                totals[n] += value * current
                previous, current = current, x * current - n * previous
    return [total / ctx.sqrt(2 * ctx.pi) for total in totals]


@functools.lru_cache
def legendre():
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    return mpmath.calculus.quadrature.GaussLegendre(ctx).calc_nodes(5, ctx.prec)


def nodes_and_weights(low, high, ctx):
    half, middle = (high - low) / 2, (high + low) / 2
    return [(middle + half * ctx.mpf(x), half * ctx.mpf(w)) for x, w in legendre()]


def agrees(value, reference, size):
    return abs(sp.N(value, 30) - sp.Float(str(reference), 34)) <= sp.Float("1e-25", 30) * size


@pytest.mark.parametrize("name", OTHERS)
def test_coefficients_agree_with_quadrature(name):
    point = values_at_random(name)
    found = hermite_coefficients(OTHERS[name], 12, variable=z)
    expr = OTHERS[name].xreplace(point)
    reference = quadrature(expr, 12)
    form = found.closed_form.expr
    for n, mu in enumerate(found):
        # E|f He_k| is of the order of sqrt(k! E f²).
        size = max(1, abs(reference[n])) * 20 * sqrt(sp.factorial(n)).n(5)
        assert agrees(mu.xreplace(point), reference[n], size), (n, point)
        at_n = form.subs(found.closed_form.k, n)
        assert agrees(at_n.xreplace(point), reference[n], size), (n, point)


@pytest.mark.parametrize("name", TABLE)
def test_the_closed_form_is_that_of_the_table(name):
    function, general, even, odd, exceptions, parity = TABLE[name]
    form = hermite_coefficients(function, 2, variable=z).closed_form
    assert form.parity is parity
    assert set(form.exceptions) == set(exceptions)
    assert (form.general is None) == (general is None)
    for order, value in exceptions.items():
        assert sp.expand(form.exceptions[order] - value) == 0
    point = values_at_random(f"{name} again")
    pairs = [(form.general, general, k)] if general is not None else []
    if general is None:
        pairs = [(form.even(), sp.sympify(even), m), (form.odd(), sp.sympify(odd), m)]
        if even == 0:
            assert form.even() == 0
        if odd == 0:
            assert form.odd() == 0
    for mine, other, index in pairs:
        assert mine.free_symbols <= other.free_symbols | {index}
        for n in range(form.holds_from, form.holds_from + 6):
            gap = mine.subs(index, n).xreplace(point) - other.subs(index, n).xreplace(point)
            assert abs(sp.N(gap, 30, chop=True)) < 1e-25


def test_forms_are_as_short_as_in_the_table():
    assert hermite_coefficients("relu", 2).closed_form.even() == (
        (-1) ** (m + 1) * sqrt(2) * hinged / (2 * sqrt(pi))
    )
    assert hermite_coefficients("gelu", 2).closed_form.even() == (
        (-1) ** (m + 1) * hinged * (2 * m + 1) / (2 * 2**m * sqrt(pi))
    )
    hinge = hermite_coefficients(relu(z - t), 2, variable=z).closed_form
    assert hinge.general == sqrt(2) * exp(-(t**2) / 2) * He(k - 2, t) / (2 * sqrt(pi))
    assert hinge.holds_from == 2
    # One term, although it is a sum of two: the bases agree.
    both = hermite_coefficients(relu(z - t) + 3 * step(z - t), 2, variable=z).closed_form
    assert both.general.count(sp.hermite_prob) == 2
    assert hermite_coefficients("3*abs(z) - 6*relu(z) + 3*z", 4).closed_form.general == 0


real_a, real_b = sp.symbols("p q", real=True)
SINGULAR = {
    "relu": relu(z - real_b),
    "erf": z**2 * erf(a * z + real_b),
    "Gaussian": exp(real_b * z - a * z**2),
    "damped wave": z * exp(-(z**2) / 3) * sp.cos(real_a * z + real_b),
    "e^az cos": exp(real_a * z) * sp.cos(real_b * z + c),
    "z e^az sin": z * exp(real_a * z) * sp.sin(real_b * z + c),
    "flat Gaussian": exp(c * z - sp.Symbol("q", nonnegative=True) * z**2),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_parameters_may_be_zero_in_the_closed_form(name):
    # SymPy's hermite_prob(n, 0) and atan2(0, 0) are wrong and nan; both orders of substitution.
    function = SINGULAR[name]
    point = {real_a: 0, real_b: 0, sp.Symbol("q", nonnegative=True): 0}
    expected = hermite_coefficients(function.subs(point), 9, variable=z)
    found = hermite_coefficients(function, 9, variable=z)
    form = found.closed_form
    for n, mu in enumerate(expected):
        values = [
            found[n].subs(point),
            form.expr.subs(form.k, n).subs(point),
            form.expr.subs(point).subs(form.k, n),
        ]
        for value in values:
            gap = (value - mu).subs({a: sp.Rational(2, 3), c: sp.Rational(-3, 4)})
            assert abs(sp.N(gap, 30, chop=True)) < 1e-25, (n, value)


MIRRORED = {
    "sinh": (sp.sinh(a * z), Parity.ODD),
    "hats": (relu(a * z - b) + relu(-a * z - b), Parity.EVEN),
    "difference": (relu(z - b) - relu(-z - b), Parity.ODD),
    "two bumps": (exp(-a * (z - b) ** 2) + exp(-a * (z + b) ** 2), Parity.EVEN),
    "growing wave": (sp.cosh(c * z) * sp.sin(b * z), Parity.ODD),
    "numbers": (relu(z + sqrt(2)) + relu(z - sqrt(2)) - 2 * relu(z), Parity.EVEN),
}


@pytest.mark.parametrize("name", MIRRORED)
def test_mirror_images_cancel_at_every_second_order(name):
    function, parity = MIRRORED[name]
    found = hermite_coefficients(function, 12, variable=z)
    form = found.closed_form
    assert form.parity is parity
    assert (form.odd_orders if parity is Parity.EVEN else form.even_orders) == 0
    for n, mu in enumerate(found):
        assert (mu == 0) == ((n % 2 == 1) == (parity is Parity.EVEN)), n


@pytest.mark.parametrize("power", range(1, 7))
def test_powers_of_relu(power):
    # z_+^m: k <= m: m!/(m-k)! 2^((m-k)/2-1) Gamma((m-k+1)/2)/sqrt(pi); beyond, by q = k-m-1.
    found = hermite_coefficients(relu(z) ** power, 14, variable=z)
    for order, mu in enumerate(found):
        q = order - power - 1
        if order <= power:
            rest = power - order
            expected = sp.ff(power, order) * 2 ** (sp.Rational(rest, 2) - 1)
            expected *= sp.gamma(sp.Rational(rest + 1, 2)) / sqrt(pi)
        elif q % 2 == 0:
            expected = sp.factorial(power) * (-1) ** (q // 2) * sp.factorial2(q - 1) / sqrt(2 * pi)
        else:
            expected = sp.S.Zero
        assert sp.expand(mu - expected) == 0
        assert found.closed_form.at(order) == mu


@pytest.mark.parametrize("name", ["e^az", "sin(az+b)", "Gaussian", "erf(az)"])
def test_parseval(name):
    # Σ μ_k²/k! = E s²; the terms fall at least like 0.75^k at this point.
    point = {a: sp.Rational(2, 3), b: sp.Rational(1, 5), s: sp.Rational(3, 2)}
    found = hermite_coefficients(TABLE[name][0], 120, variable=z)
    total = sum(sp.N(mu.xreplace(point), 25) ** 2 / sp.factorial(n) for n, mu in enumerate(found))
    assert abs(total - sp.N(SECOND_MOMENTS[name].xreplace(point), 25)) < 1e-14


fractions = st.fractions(-3, 3, max_denominator=4).map(
    lambda f: sp.Rational(f.numerator, f.denominator)
)
kernels = st.sampled_from([
    lambda u: erf(u), lambda u: sp.sin(u), lambda u: sp.cos(u), lambda u: exp(u),
    lambda u: relu(u), lambda u: sp.Abs(u), lambda u: exp(-(u**2)), lambda u: u * sp.sign(u),
    lambda u: exp(-z**2 / 3) * sp.sin(u),
])  # fmt: skip


@st.composite
def members(draw):
    """A random sum of polynomials times kernels of affine arguments."""
    total = sp.S.Zero
    for _ in range(draw(st.integers(1, 2))):
        kernel = draw(kernels)
        first = draw(fractions.filter(bool))
        total += (
            draw(fractions) * z ** draw(st.integers(0, 2)) * kernel(first * z + draw(fractions))
        )
    return total + draw(fractions) * z


def same(first, second):
    gap = sp.N(first - second, 25, chop=True)
    return abs(gap) <= sp.Float("1e-18", 25) * max(1, abs(sp.N(second, 25)))


@settings(max_examples=10, deadline=None)
@given(members(), st.integers(0, 6))
def test_the_closed_form_equals_the_rules(expr, order):
    found = hermite_coefficients(expr, order, variable=z)
    by_rules = expect(expr * hermite_polynomial(order, z), z)
    form = found.closed_form
    assert same(found[order], by_rules)
    assert form.at(order) == found[order]
    assert same(form.expr.subs(form.k, order), by_rules)


@settings(max_examples=10, deadline=None)
@given(members(), st.integers(0, 5))
def test_steins_lemma_and_multiplication(expr, order):
    mu = hermite_coefficients(expr, order + 1, variable=z)
    slope_of = expr.diff(z).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
    assert same(hermite_coefficients(slope_of, order, variable=z)[order], mu[order + 1])
    below = order * mu[order - 1] if order else 0
    times = hermite_coefficients(sp.expand(z * expr), order, variable=z)
    assert same(times[order], mu[order + 1] + below)


@settings(max_examples=10, deadline=None)
@given(kernels, fractions.filter(bool), fractions, st.integers(0, 6))
def test_parameters_and_numbers_agree(kernel, first, second, order):
    symbolic = hermite_coefficients(kernel(slope * z + b), order, variable=z)[order]
    numeric = hermite_coefficients(kernel(first * z + second), order, variable=z)[order]
    assert same(symbolic.xreplace({slope: first, b: second}), numeric)


@pytest.mark.parametrize(
    ("expr", "limit"),
    [
        (z**2 * erf(c * z + b), [erf(b), 0, 2 * erf(b), 0, 0]),
        (z**2 * exp(-(c**2) * z**2), [1, 0, 2, 0, 0]),
        (z**3 * exp(-(c**2) * z**2), [0, 3, 0, 6, 0]),
        (z**4 * erf(c * z) + erf(b), [erf(b), 0, 0, 0, 0]),
        (z * exp(c * z), [0, 1, 0, 0, 0]),
        (z**2 * sp.cos(c * z), [1, 0, 2, 0, 0]),
    ],
)
def test_a_slope_that_may_vanish(expr, limit):
    # Nothing is divided by c, not even in the closed form before k is given.
    found = hermite_coefficients(expr, 4, variable=z)
    assert [mu.subs(c, 0) for mu in found] == limit
    form = found.closed_form
    assert [form.exceptions.get(n, sp.S.One).subs(c, 0) is sp.nan for n in range(5)] == [False] * 5
    for n, value in enumerate(limit):
        symbol, index = (form.k, n) if form.general is not None else (form.m, n // 2)
        case = form.general if form.general is not None else (form.odd() if n % 2 else form.even())
        if n not in form.exceptions:
            assert case.subs(c, 0).subs(symbol, index) == value
        assert form.expr.subs(form.k, n).subs(c, 0) == value


def test_powers_of_a_slope_that_may_vanish_are_exceptions():
    assert hermite_coefficients(z * exp(c * z), 2, variable=z).closed_form.exceptions == {
        0: c * exp(c**2 / 2)
    }
    assert hermite_coefficients(z * exp(a * z), 2, variable=z).closed_form.exceptions == {}


def test_steps_in_unknown_order_stay_open():
    found = hermite_coefficients(step(z - t) * step(z - b), 1, variable=z)
    assert found.closed_form is None
    point = {t: sp.S.One, b: -sp.S.One}
    assert abs(sp.N(found[0].xreplace(point) - Phi(-1), 20)) < 1e-15
    known = hermite_coefficients(step(z - t) * step(z - t - a), 1, variable=z)
    assert known[1] == phi(t + a)


def test_a_parameter_named_like_the_order():
    number = sp.Symbol("k", integer=True, nonnegative=True)
    form = hermite_coefficients(exp(number * z), 2, variable=z).closed_form
    assert form.k.name == "n"
    assert form.general == number**form.k * exp(number**2 / 2)


def test_high_powers_stay_exact_without_a_closed_form():
    found = hermite_coefficients("z**25*erf(z)", 3)
    assert found[2] == expect((z**27 - z**25) * erf(z), z) != 0
    assert found.closed_form is None
    with pytest.raises(ClosedFormNotFoundError, match=r"no rule for z\*\*25\*erf\(z\)"):
        found.require_closed_form()


@pytest.mark.parametrize("text", ["tanh(z)", "erf(z)**2", "sin(z)*erf(z)", "step(z)*exp(z)"])
def test_what_has_no_closed_form_says_so(text):
    found = hermite_coefficients(text, 2)
    assert found.closed_form is None
    with pytest.raises(ClosedFormNotFoundError, match="no known closed form in k"):
        found.require_closed_form()


def test_faces_of_a_closed_form():
    form = hermite_coefficients("gelu", 2).closed_form
    assert isinstance(form, ClosedForm)
    assert str(form).splitlines()[0] == "mu_1 = 1/2"
    assert form.latex().startswith(r"\begin{aligned} \mu_{1} &= \frac{1}{2} \\ \mu_{2m} &= ")
    assert form.even(3) == form.at(6) == form.expr.subs(form.k, 6)
    assert form.odd(0) == 0 != form.at(1)
    general = hermite_coefficients("exp(z)", 2).closed_form
    assert general.even(2) == general.odd(2) == exp(HALF)
    with pytest.raises(ValueError, match=">= 0"):
        form.at(-1)


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (relu(c * z), "assumptions on c: the step"),
        (exp(-(z**2) / c), "exists only for"),
        (exp(a * z**2), "exists only for"),
        (erf(sp.Symbol("w") * z), r"whether w is real\n  declare Symbol\('w', real=True\)"),
    ],
)
def test_missing_assumptions_are_named(expr, message):
    with pytest.raises(AssumptionError, match=message):
        hermite_coefficients(expr, 2, variable=z)
