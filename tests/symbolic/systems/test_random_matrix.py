import math
import xml.etree.ElementTree as ElementTree

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import ClosedFormNotFoundError, ConvergenceError, ParameterError
from giantstep.symbolic.printing.printers import ScalarPrinter
from giantstep.symbolic.systems.random_matrix import (
    MarchenkoPasturAverage,
    Resolvent,
    companion,
    moment,
    resolvent_moment,
)

a, b, beta, X = sp.symbols("a b beta X", positive=True)
G = Resolvent(a, b, beta)
PAIRS = [(j, k) for k in (1, 2, 3, 4) for j in range(k + 1)]
RATIOS = [sp.Rational(1, 2), sp.Integer(1), sp.Rational(7, 3)]
VALUES = {a: sp.Rational(3, 7), b: sp.Rational(5, 4)}


def marchenko_pastur(function, ratio, digits=30):
    """Average over the density of the module docstring, by mpmath alone."""
    with mpmath.workdps(digits + 10):
        ratio = mpmath.mpf(ratio.p) / ratio.q
        low, high = (1 - mpmath.sqrt(ratio)) ** 2, (1 + mpmath.sqrt(ratio)) ** 2

        def density(x):
            inside = max((high - x) * (x - low), 0)  # negative by rounding at the ends
            return mpmath.sqrt(inside) / (2 * mpmath.pi * ratio * x)

        # x = y**2 removes the root at the hard edge of ratio one.
        bulk = mpmath.quad(
            lambda y: function(y * y) * density(y * y) * 2 * y,
            [mpmath.sqrt(low), (mpmath.sqrt(low) + mpmath.sqrt(high)) / 2, mpmath.sqrt(high)],
        )
        atom = (1 - 1 / ratio) * function(mpmath.mpf(0)) if ratio > 1 else 0
        return sp.Float(bulk + atom, digits + 5)


def resolvent_function(power, order, values):
    slope = mpmath.mpf(values[b].p) / values[b].q
    return lambda x: x**power / (mpmath.mpf(values[a].p) / values[a].q + slope * x) ** order


def digits_of(expr, values, digits=35):
    """Evaluate with each resolvent computed once: there are hundreds in higher moments."""
    expr = expr.subs(values)
    numbers = {node: node.evalf(2 * digits) for node in expr.atoms(Resolvent)}
    return expr.xreplace(numbers).evalf(digits)


@pytest.mark.parametrize("ratio", RATIOS, ids=str)
@pytest.mark.parametrize(("power", "order"), PAIRS)
def test_resolvent_moments_agree_with_the_density(power, order, ratio):
    found = digits_of(resolvent_moment(power, order, a, b, beta), {**VALUES, beta: ratio})
    with mpmath.workdps(40):
        expected = marchenko_pastur(resolvent_function(power, order, VALUES), ratio)
    # the tanh-sinh rule loses some digits at the square-root edges
    assert abs(found / expected - 1) < sp.Float("1e-25")


@pytest.mark.parametrize("ratio", RATIOS[1:], ids=str)
@pytest.mark.parametrize(("power", "order"), [(0, 1), (2, 2), (1, 4)])
def test_evalf_of_the_average_agrees_with_the_closed_form(power, order, ratio):
    node = MarchenkoPasturAverage(X**power / (a + b * X) ** order, X, beta)
    values = {**VALUES, beta: ratio}
    closed = node.doit().subs(values).evalf(35)
    assert abs(node.subs(values).evalf(30) / closed - 1) < sp.Float("1e-29")


def printed(expr):
    """Return the expression as the function of floats that a kernel computes."""
    expr = expr.replace(Resolvent, lambda *args: Resolvent(*args).rewrite(sp.Piecewise))
    text = ScalarPrinter().print(expr)
    return eval(f"lambda a, b, beta: {text}", {"math": math})


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.5])
@pytest.mark.parametrize(("power", "order"), [p for p in PAIRS if p[1] <= 3])
def test_no_cancellation_at_small_slopes(power, order, ratio):
    # E X^j/(a + bX)^k -> E X^j / a^k; relative correction k b E X^{j+1}/(a E X^j) < 3e-11
    function = printed(resolvent_moment(power, order, a, b, beta))
    for small in (1e-12, 1e-300, 1e-5):
        values = {a: sp.Rational(1.5), b: sp.Rational(small), beta: sp.Rational(ratio)}
        digits = 700 if small < 1e-100 else 60
        exact = digits_of(resolvent_moment(power, order, a, b, beta), values, digits)
        # 14 digits: some 50 operations of 1e-16 each
        assert abs(function(1.5, small, ratio) / exact - 1) < 1e-14


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.5])
@pytest.mark.parametrize(("power", "order"), [p for p in PAIRS if p[1] <= 2])
def test_no_cancellation_at_large_slopes(power, order, ratio):
    # a -> 0: the atom dominates above beta = 1, the hard edge at beta = 1. There G ~ (a b)^{-1/2}.
    function = printed(resolvent_moment(power, order, a, b, beta))
    values = {a: sp.Rational(1e-9), b: sp.Integer(2), beta: sp.Rational(ratio)}
    exact = resolvent_moment(power, order, a, b, beta).subs(values).evalf(60)
    # R22 is a difference of order one at most at k <= 2, and G has condition 1/2 in its root
    assert abs(function(1e-9, 2.0, ratio) / exact - 1) < 1e-13


def at_points(expr, digits=40):
    for ratio in RATIOS:
        yield digits_of(expr, {**VALUES, beta: ratio}, digits)


def test_defining_relations():
    h = companion(G)
    for relation in (G * (a + b * h) - 1, h * (1 + beta * b * G) - 1):
        explicit = relation.replace(Resolvent, lambda *args: quadratic_root(*args))
        assert sp.simplify(explicit) == 0
        for value in at_points(relation):
            assert abs(value) < 1e-38


def quadratic_root(a, b, beta):
    """The positive root of a beta b G^2 + (a + b - beta b) G - 1 = 0."""
    middle = a + b - beta * b
    return (sp.sqrt(middle**2 + 4 * a * b * beta) - middle) / (2 * a * b * beta)


def test_derivatives_by_the_aspect_ratio_against_finite_differences():
    # Central difference of step 1e-20 at 80 digits: error 1e-40 in theory, 1e-60 from rounding.
    step = sp.Rational(1, 10**20)
    for power, order in [(0, 1), (1, 1), (2, 2)]:
        f = resolvent_moment(power, order, a, b, beta)
        for ratio in RATIOS:
            values = {**VALUES, beta: ratio}
            up, down = (f.subs(values | {beta: ratio + s}) for s in (step, -step))
            difference = (up.evalf(80) - down.evalf(80)) / (2 * step)
            assert abs(f.diff(beta).subs(values).evalf(50) - difference) < 1e-35


def test_derivatives_are_the_next_moments():
    # d/da E X^j/(a+bX)^k = -k E X^j/(a+bX)^{k+1}; d/db raises the power as well.
    for power, order in [(0, 1), (1, 1), (0, 2), (1, 2), (2, 2), (3, 3)]:
        f = resolvent_moment(power, order, a, b, beta)
        for which, shift in ((a, 0), (b, 1)):
            relation = f.diff(which) + order * resolvent_moment(
                power + shift, order + 1, a, b, beta
            )
            for value in at_points(relation):
                assert abs(value) < 1e-35


def test_powers_and_orders_are_checked():
    for power, order in [(-1, 1), (2, 1), (0, 0)]:
        with pytest.raises(ValueError, match="0 <= power <= order"):
            resolvent_moment(power, order, a, b, beta)


def test_without_slope_the_moments_are_those_of_the_law():
    assert Resolvent(a, 0, beta) == 1 / a
    for k in (1, 2, 3):
        for j in range(k + 1):
            found = resolvent_moment(j, k, a, sp.S.Zero, beta)
            assert sp.expand(found * a**k - moment(j, beta)) == 0


def test_narayana_moments():
    # Narayana numbers N(k, i) = 1; 1, 1; 1, 3, 1; 1, 6, 6, 1; 1, 10, 20, 10, 1
    rows = [[1], [1, 1], [1, 3, 1], [1, 6, 6, 1], [1, 10, 20, 10, 1]]
    assert moment(0, beta) == 1
    for k, row in enumerate(rows, start=1):
        assert sp.Poly(moment(k, beta), beta).all_coeffs() == row
        assert MarchenkoPasturAverage(X**k, X, beta).doit() == sp.expand(moment(k, beta))
    for ratio in RATIOS:
        value = marchenko_pastur(lambda x: x**4, ratio)
        assert abs(moment(4, ratio) / value - 1) < 1e-25


def test_the_law_is_that_of_random_matrices():
    # 30 draws of the resolvent's trace; 4 standard errors and a bias of order 1/d.
    rng = np.random.default_rng(7)
    p, d = 100, 200
    draws = []
    for _ in range(30):
        u = rng.standard_normal((p, d)) / math.sqrt(d)
        draws.append(np.mean(1 / (0.3 + 0.8 * np.linalg.eigvalsh(u @ u.T))))
    expected = float(Resolvent(sp.Rational(3, 10), sp.Rational(4, 5), sp.Rational(1, 2)).evalf(15))
    error = np.std(draws) / math.sqrt(len(draws))
    assert abs(np.mean(draws) - expected) < 4 * error + 2 / d


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (1 / ((a + b * X) * (1 + X)), (b * G - Resolvent(1, 1, beta)) / (b - a)),
        (X / ((a + b * X) * (a + 2 * b * X)), (G - Resolvent(a, 2 * b, beta)) / b),
        (1 / sp.expand((a + b * X) ** 2), resolvent_moment(0, 2, a, b, beta)),
        (1 / (-a - b * X), -G),
        ((1 + X) ** 3, beta**2 + 6 * beta + 8),
        (X**2 / (1 + X), 1 - 1 + Resolvent(1, 1, beta)),
        (X / (X * (a + b * X)), G),
    ],
    ids=str,
)
def test_rational_functions_by_partial_fractions(function, expected):
    found = MarchenkoPasturAverage(function, X, beta).doit()
    for value in at_points(found - expected):
        assert abs(value) < 1e-36
    values = {**VALUES, beta: sp.Rational(1, 2)}
    numeric = sp.lambdify(X, function.subs(values), "mpmath")
    assert abs(marchenko_pastur(numeric, values[beta]) - found.subs(values).evalf(30)) < 1e-24


@pytest.mark.parametrize(
    "function",
    [
        sp.sqrt(X), sp.log(1 + X), 1 / X, 1 / (1 - X), 1 / (1 + X**2),
        1 / (sp.Symbol("g", real=True) + X), 1 / ((1 + X) * (2 - X)),
    ],
    ids=str,
)  # fmt: skip
def test_functions_outside_the_class_are_refused(function):
    with pytest.raises(ClosedFormNotFoundError, match="evalf"):
        MarchenkoPasturAverage(function, X, beta).doit()


def test_averages_without_closed_form_have_digits():
    # E log(1 + X) at beta = 1/2 and 2: int_0^1 dt E X/(1 + tX), and by the density
    for ratio in RATIOS:
        found = MarchenkoPasturAverage(sp.log(1 + X), X, ratio).evalf(25)
        assert abs(found - marchenko_pastur(lambda x: mpmath.log(1 + x), ratio)) < 1e-23
    mean = MarchenkoPasturAverage(1 / X, X, sp.Rational(1, 2)).evalf(20)
    assert abs(mean - 2) < 1e-18  # 1/(1 - beta)


@pytest.mark.parametrize("ratio", [1, 2])
def test_averages_that_do_not_exist_are_refused(ratio):
    with pytest.raises(ConvergenceError, match="does not exist"):
        MarchenkoPasturAverage(1 / X, X, ratio).evalf(15)


def test_aspect_ratios_have_to_be_positive():
    with pytest.raises(ParameterError, match="beta must be positive"):
        MarchenkoPasturAverage(X**2, X, 0).evalf(15)


def test_node_semantics():
    node = MarchenkoPasturAverage(1 / (a + b * X), X, beta)
    assert MarchenkoPasturAverage(2 * a / (a + b * X), X, beta) == 2 * a * node
    assert MarchenkoPasturAverage(a, X, beta) == a
    assert node.free_symbols == {a, b, beta} and node.bound_symbols == [X]
    assert node.diff(X) == 0 and node.subs(X, 3) == node and node.subs(b * X, 3) == node
    assert node.diff(a) == -MarchenkoPasturAverage(1 / (a + b * X) ** 2, X, beta)
    # the law depends on beta: no rule under the average, but one for the closed form
    assert isinstance(node.diff(beta), sp.Derivative)
    assert sp.simplify(node.diff(beta).doit() - G.diff(beta)) == 0
    moved = node.subs(a, X)  # the free X is another one than the bound one
    assert moved.free_symbols == {X, b, beta}
    value = moved.subs({X: 2, b: 3, beta: sp.Rational(1, 2)})
    assert abs(value.evalf(20) - Resolvent(2, 3, sp.Rational(1, 2)).evalf(20)) < 1e-18


def test_printing():
    node = MarchenkoPasturAverage(1 / (a + b * X), X, beta)
    assert str(node) == "E_{X~MP(beta)}[1/(X*b + a)]"
    assert r"\mathbb{E}_{X\sim\mathrm{MP}_{\beta}}" in sp.latex(node**2)
    assert sp.latex(G) == r"G_{\beta}\left(a, b\right)"
    assert sp.latex(G**2) == r"G_{\beta}^{2}\left(a, b\right)"
    text = sp.printing.mathml(node, printer="presentation")
    assert "𝔼" in [
        n.text for n in ElementTree.fromstring(text.replace("&InvisibleTimes;", "")).iter()
    ]


# -- theory of spiked random features, section 4.2: D = c X

positive = st.fractions(sp.Rational(1, 50), 20, max_denominator=60).map(
    lambda f: sp.Rational(f.numerator, f.denominator)
)


@settings(max_examples=12)
@given(positive, positive, positive, positive)
def test_published_spectral_averages(ridge, slope, variance, ratio):
    """V1, V2, R11, R12, R22 with a = lambda + V2_hat, b = V1_hat, S = a + b D."""
    t = ridge / (slope * variance)
    k = 1 - ratio + t
    root = sp.sqrt(k**2 + 4 * ratio * t)
    g = 2 / (k + root) if k >= 0 else (root - k) / (2 * ratio * t)
    V2 = g / (slope * variance)
    u = ratio * slope * variance * V2
    V1 = variance * V2 / (1 + u)
    x = u / (1 + u)
    P = ((1 - x) + x * ridge * V2) / V2**2
    published = {
        (0, 1): V2,
        (1, 1): V1,
        (0, 2): 1 / P,
        (1, 2): variance / ((1 + u) ** 2 * P),
        (2, 2): variance**2 / ((1 + u) ** 4 * P) + ratio * (variance * V2 / (1 + u)) ** 2,
    }
    for (power, order), value in published.items():
        node = MarchenkoPasturAverage(
            (variance * X) ** power / (ridge + slope * variance * X) ** order, X, ratio
        )
        assert abs(node.doit().evalf(40) / value.evalf(40) - 1) < sp.Float("1e-30")
