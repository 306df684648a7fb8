"""Rewriting for accuracy: equal at 50 digits, better where the naive form fails, worse nowhere."""

import math

import mpmath
import pytest
import sympy as sp
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from sympy.codegen.cfunctions import expm1, log1p

from giantstep.symbolic.expressions.activations import CATALOGUE
from giantstep.symbolic.expressions.functions import (
    erf_difference,
    erfcx,
    log_cosh,
    log_normal_cdf,
    normal_cdf,
    relu,
    sigmoid,
    softplus,
    with_softplus,
)
from giantstep.symbolic.gaussian import accuracy
from giantstep.symbolic.gaussian.accuracy import rewrite_for_accuracy
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.losses.proximal import Proximal
from giantstep.symbolic.printing.compiled import compiled
from giantstep.symbolic.printing.printers import ScalarPrinter, helper_definitions

x, y = sp.symbols("x y", real=True)
p, q = sp.symbols("p q", positive=True)
SYMBOLS = (x, y, p, q)
PHI = (1 + sp.erf(x / sp.sqrt(2))) / 2
exp, log, sqrt, tanh, cosh = sp.exp, sp.log, sp.sqrt, sp.tanh, sp.cosh
# A smooth hinge loss in the spelling that comes to mind.
LOSS = log(1 + exp(40 * (1 - x))) / 40


def exact(expr, values):
    """Value at floats read as exact numbers: 60 digits, more until two evaluations agree."""
    ctx = mpmath.mp.clone()
    symbols = sorted(expr.free_symbols, key=str)
    f = compiled(expr, symbols, ctx)
    before = None
    for digits in (60, 700):
        ctx.dps = digits
        try:
            value = f(*(ctx.mpf(values[s.name]) for s in symbols))
        except ZeroDivisionError:
            continue
        if before is not None and abs(value - before) <= abs(value) * ctx.mpf(10) ** -40:
            return value
        before = value
    return before


def in_floats(expr, values):
    printer = ScalarPrinter()
    text = printer.print(expr)
    namespace = {"math": math}
    exec(helper_definitions(printer, text), namespace)
    try:
        return eval(text, namespace, {s.name: values[s.name] for s in expr.free_symbols})
    except (OverflowError, ZeroDivisionError):
        return math.inf
    except ValueError:  # log(0)
        return -math.inf


def error(expr, values, truth):
    found = in_floats(expr, values)
    if not math.isfinite(found):
        return math.inf
    return float(abs(mpmath.mpf(found) - truth) / abs(truth))


# expression, its accurate form, and a point where the naive one is wrong in half of the digits
RULES = [
    (exp(x) - 1, expm1(x), {"x": 1e-9}),
    (3 * y * exp(x) - 3 * y, 3 * y * expm1(x), {"x": -1e-9, "y": 0.7}),
    (exp(x) + exp(y) - 2, expm1(x) + expm1(y), {"x": 1e-9, "y": 2e-9}),
    (1 - sp.cos(x), 2 * sp.sin(x / 2) ** 2, {"x": 1e-6}),
    (cosh(x) - 1, 2 * sp.sinh(x / 2) ** 2, {"x": 1e-6}),
    (1 - tanh(x) ** 2, sp.sech(x) ** 2, {"x": 15.0}),
    (1 - sp.sech(x) ** 2, tanh(x) ** 2, {"x": 1e-6}),
    (y - y * tanh(x) ** 2, y * sp.sech(x) ** 2, {"x": -14.0, "y": 0.3}),
    (1 - tanh(x), 2 * sigmoid(-2 * x), {"x": 15.0}),
    (1 + tanh(x), 2 * sigmoid(2 * x), {"x": -15.0}),
    (1 - sp.erf(x), sp.erfc(x), {"x": 5.0}),
    (1 + sp.erf(x), 2 * normal_cdf(sqrt(2) * x), {"x": -5.0}),
    (2 - sp.erfc(x), 2 * normal_cdf(sqrt(2) * x), {"x": -5.0}),
    (1 - sp.erfc(x), sp.erf(x), {"x": 1e-9}),
    (PHI, normal_cdf(x), {"x": -8.0}),
    (1 - normal_cdf(x), normal_cdf(-x), {"x": 8.0}),
    (1 - sigmoid(x), sigmoid(-x), {"x": 30.0}),
    (sigmoid(x) - sp.Rational(1, 2), tanh(x / 2) / 2, {"x": 1e-9}),
    (1 / (1 + exp(-x)), sigmoid(x), {"x": -700.0, "no failure": None}),
    (exp(x) / (1 + exp(x)), sigmoid(x), {"x": 800.0}),
    (exp(x) / (1 + exp(x)) ** 2, sigmoid(x) * sigmoid(-x), {"x": 400.0}),
    (exp(x) / (2 + exp(x)), sigmoid(x - log(2)), {"x": 800.0}),
    (exp(2 * x) / (1 + exp(x)), exp(x) * sigmoid(x), {"x": 400.0}),
    (exp(3 - x) / (1 + exp(-x)), exp(3) * sigmoid(-x), {"x": -800.0}),
    (exp(x) / (exp(x) + exp(y)), sigmoid(x - y), {"x": 800.0, "y": 799.0}),
    (exp(-x) / cosh(x), 2 * sigmoid(-2 * x), {"x": -720.0}),
    (LOSS.diff(x), -sigmoid(40 - 40 * x), {"x": -17.5}),
    (LOSS.diff(x, 2), 40 * sigmoid(40 - 40 * x) * sigmoid(40 * x - 40), {"x": -16.0}),
    (1 / (2 + 2 * exp(x)), sigmoid(-x) / 2, {"x": 700.0, "no failure": None}),
    (cosh(x) ** -2, sp.sech(x) ** 2, {"x": 300.0, "no failure": None}),
    (
        sp.sinh(x) ** 2 / (1 + p * cosh(x)) ** 2,
        tanh(x) ** 2 / (p + sp.sech(x)) ** 2,
        {"x": 400.0, "p": 0.3},
    ),
    ((cosh(x) - y * sp.sinh(x)) / (1 + p * cosh(x)), None, {"x": 800.0, "p": 0.3, "y": 2.0}),
    (log(1 + x), log1p(x), {"x": 1e-9}),
    (log(1 + x**2 + y), log1p(x**2 + y), {"x": 1e-5, "y": 1e-9}),
    (log(1 + exp(x)), softplus(x), {"x": -20.0}),
    (log(exp(x) + exp(y)), sp.Max(x, y) + softplus(-sp.Abs(x - y)), {"x": 800.0, "y": 801.0}),
    (log(cosh(x)), log_cosh(x), {"x": 1e-5}),
    (log(2 * cosh(x)), log_cosh(x) + log(2), {"x": 800.0}),
    (log(exp(x) + exp(-x)), log_cosh(x) + log(2), {"x": 800.0}),
    (log(sp.sech(x)), -log_cosh(x), {"x": 1e-5}),
    (log(sigmoid(x)), -softplus(-x), {"x": 30.0}),
    (log(1 - tanh(x) ** 2), -2 * log_cosh(x), {"x": 40.0}),
    (log(PHI), log_normal_cdf(x), {"x": -40.0}),
    (log(1 - exp(-p)), None, {"p": 40.0}),
    (log(1 - exp(-p)), None, {"p": 1e-12}),
    (log(sp.erfc(x)), None, {"x": 30.0}),
    (log(sp.erfc(x)), None, {"x": 1e-9}),
    (log(1 + sp.erf(x)), None, {"x": -30.0}),
    (exp(x**2) * sp.erfc(x), erfcx(x), {"x": 30.0}),
    (exp((x + y) ** 2) * sp.erfc(x + y), erfcx(x + y), {"x": 30.0, "y": 1.0}),
    (exp(-(x**2) / 2) / PHI, 2 / erfcx(-x / sqrt(2)), {"x": -10.0}),
    (exp(-(x**2)) / PHI**2, 4 / erfcx(-x / sqrt(2)) ** 2, {"x": -50.0}),
    (exp(x**2 / 2 + x * y) * sp.erfc(x / sqrt(2)), None, {"x": 60.0, "y": -0.5}),
    (exp(-(x**2)) / PHI, None, {"x": -37.0}),
    (exp(-(x**2) / 2) / PHI**2, None, {"x": -30.0}),
    (
        exp(-5 * (x - y) ** 2 / (8 * p)) / sp.erfc((x - y) / sqrt(2 * p)),
        None,
        {"x": 60.0, "y": 1.0, "p": 2.0},
    ),
    (exp(-(x**2 + y**2) / 2) / PHI / PHI.subs(x, y), None, {"x": -40.0, "y": -41.0}),
    (
        exp(x**2 / (p - q)) * exp(-(x**2) / (2 * (q - p))) / normal_cdf(x / sqrt(q - p)) ** 3,
        8 / erfcx(-sqrt(2) * x / (2 * sqrt(q - p))) ** 3,
        {"x": -60.0, "p": 1.0, "q": 3.0},
    ),
    (log_normal_cdf(x).diff(x, 3), None, {"x": 37.5}),
    (sqrt(1 + x**2) - 1, x**2 / (1 + sqrt(1 + x**2)), {"x": 1e-6}),
    (sqrt(p**2 + x) - p, x / (p + sqrt(p**2 + x)), {"p": 1e5, "x": 1.0}),
    (sqrt(x**2 + p) - x, None, {"x": 1e6, "p": 1.0}),
    (sqrt(p + q) - sqrt(p), q / (sqrt(p) + sqrt(p + q)), {"p": 1e9, "q": 1e-5}),
    (1 / (1 + x) - 1 / (1 + y), (y - x) / (1 + x) / (1 + y), {"x": 1.0, "y": 1.0 + 1e-9}),
    (1 / x - 1 / y, (y - x) / x / y, {"x": 1.0, "y": 1.0 + 1e-9}),
    (x**2 - y**2, (x - y) * (x + y), {"x": 1.1, "y": 1.1 + 1e-9}),
    (x**2 - 1, (x - 1) * (x + 1), {"x": 1.0 + 1e-9}),
    (tanh(x) - tanh(y), None, {"x": 18.0, "y": 19.0}),
    (tanh(x) - tanh(y), None, {"x": 0.3, "y": 0.3 + 1e-9}),
    (sigmoid(x) - sigmoid(y), None, {"x": 36.0, "y": 37.0}),
    (sp.erf(x) - sp.erf(y), erf_difference(x, y), {"x": 6.0, "y": 5.0}),
    (sp.erf(x) - sp.erf(y), erf_difference(x, y), {"x": 3.0, "y": 3.0 + 1e-6}),
    (sp.erfc(x) - sp.erfc(y), erf_difference(y, x), {"x": -6.0, "y": -5.0}),
    (normal_cdf(x) - normal_cdf(y), None, {"x": 9.0, "y": 8.0}),
    (exp(x) - exp(y), None, {"x": 1.0, "y": 1.0 + 1e-9}),
    (log(p) - log(q), None, {"p": 3.0, "q": 3.0 + 1e-9}),
    (exp(x) - exp(-x), 2 * sp.sinh(x), {"x": 1e-9}),
    ((exp(2 * x) - 1) / (exp(2 * x) + 1), tanh(x), {"x": 400.0}),
    ((exp(x) - exp(-x)) / (exp(x) + exp(-x)), tanh(x), {"x": 1e-9}),
]  # fmt: skip
IDS = [f"{e} at {at}" for e, _, at in RULES]


@pytest.mark.parametrize(("expr", "form", "at"), RULES, ids=IDS)
def test_the_accurate_form_holds_where_the_naive_one_fails(expr, form, at):
    found = rewrite_for_accuracy(expr)
    if form is not None:
        assert found == form
    assert rewrite_for_accuracy(found) == found
    truth = exact(expr, at)
    # Where 1/(1 + exp(x)) and 1/cosh(x) overflow inside, the limit 0 is right; Python raises.
    if "no failure" not in at:
        assert error(expr, at, truth) > 1e-10
    # Some units for the functions; arguments such as x - y and x/sqrt(2) are rounded besides.
    assert error(found, at, truth) < 2e-15 * (1.0 + _condition(found, at, truth))


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([e for e, _, _ in RULES]),
    st.tuples(*[st.floats(-12, 12), st.floats(-12, 12), st.floats(1e-6, 20), st.floats(1e-6, 20)]),
)
def test_nothing_is_worse_elsewhere(expr, values):
    at = {s.name: v for s, v in zip(SYMBOLS, values, strict=True)}
    assume(all(abs(v) > 1e-6 for v in values) and values[0] != values[1])
    truth = exact(expr, at)
    assume(truth is not None and mpmath.im(truth) == 0 and abs(truth) > mpmath.mpf(10) ** -290)
    found = rewrite_for_accuracy(expr)
    naive, better = error(expr, at, truth), error(found, at, truth)
    # Some units in the last place of the result, or a few times the naive error.
    assert better <= max(4 * naive, 2e-15 * (1 + _condition(found, at, truth)))


def _condition(found, at, truth):
    """Relative change of the value for a relative change of every argument."""
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    symbols = sorted(found.free_symbols, key=str)
    values = [ctx.mpf(at[s.name]) for s in symbols]
    slopes = [compiled(found.diff(s), symbols, ctx)(*values) for s in symbols]
    return float(sum(abs(a * b) for a, b in zip(slopes, values, strict=True)) / abs(truth))


UNARY = [
    exp, tanh, sp.erf, sp.erfc, sp.cos, cosh, sigmoid, softplus, sp.sech, normal_cdf, sp.sinh,
    sp.atan, lambda u: sqrt(1 + u**2), lambda u: log(1 + u**2), lambda u: log(1 + exp(u)),
    lambda u: 1 / (1 + exp(u)), lambda u: 1 - u, lambda u: u**2, lambda u: 1 / (2 + u**2),
    lambda u: log(cosh(u)), lambda u: exp(u) - 1, lambda u: -u / 2, lambda u: u - tanh(u),
]  # fmt: skip
LEAVES = st.sampled_from([x, y, sp.Rational(1, 2), sp.S.One, -sp.S.One, sp.Integer(2)])


def _combine(inner):
    return st.one_of(
        st.tuples(st.sampled_from(UNARY), inner).map(lambda t: t[0](t[1])),
        st.tuples(inner, inner).map(lambda t: t[0] - t[1]),
        st.tuples(inner, inner).map(lambda t: t[0] * t[1]),
        st.tuples(inner, inner).map(lambda t: t[0] + t[1]),
        st.tuples(st.sampled_from(UNARY), inner, inner).map(lambda t: t[0](t[1]) - t[0](t[2])),
        st.tuples(st.sampled_from(UNARY), inner).map(lambda t: log(1 + t[0](t[1]) ** 2)),
    )


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.recursive(LEAVES, _combine, max_leaves=6),
    st.fractions(-3, 3, max_denominator=17),
    st.fractions(-3, 3, max_denominator=17),
)
def test_the_value_stays_the_same_to_50_digits(expr, a, b):
    assume(expr.is_finite is not False)
    found = rewrite_for_accuracy(expr)
    ctx = mpmath.mp.clone()
    ctx.dps = 120
    at = [ctx.mpf(v.numerator) / v.denominator for v in (a, b)]
    first = compiled(expr, [x, y], ctx)(*at)
    second = compiled(found, [x, y], ctx)(*at)
    assume(ctx.isfinite(first) and abs(first) < ctx.mpf(10) ** 40)
    assert abs(first - second) <= ctx.mpf(10) ** -50 * (1 + abs(first))


@pytest.mark.parametrize("name", [*CATALOGUE])
def test_activations_and_derivatives_keep_their_value(name):
    activation = CATALOGUE[name]
    (z,) = activation.expr.free_symbols
    second = activation.expr.diff(z, 2).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
    for expr in (activation.expr, second, second**2, z * activation.expr):
        if not expr.free_symbols:
            continue
        found = rewrite_for_accuracy(expr)
        for value in ("-2.375", "0.125", "3.5"):
            old, new = (e.xreplace({z: sp.Rational(value)}).evalf(50) for e in (expr, found))
            assert abs(old - new) <= 1e-45 * (1 + abs(old))


@pytest.mark.parametrize(
    "expr",
    [
        sigmoid(4 * x) - sigmoid(sp.sinh(y) + 1),  # its own sinh is not that of the arguments
        1 / (tanh(x - 1) - tanh(log_normal_cdf(p + q))),
        x / (log(2 * p) - log(q + 3)),
        log(sp.erfc(sigmoid(x) - sigmoid(2 * y))),
        log(1 + sp.erf(exp(x) - exp(y))) - log(1 + sp.erf(tanh(p) - tanh(q))),
        exp(tanh(x) - tanh(y)) - exp(sigmoid(x) - sigmoid(y)),
    ],
    ids=str,
)
def test_case_distinctions_within_others(expr):
    found = rewrite_for_accuracy(expr)
    assert rewrite_for_accuracy(found) == found
    ScalarPrinter().print(found)
    for values in ((0.7, -1.25, 0.5, 2.0), (-3.5, -3.0, 1.5, 1.0)):
        at = {s.name: v for s, v in zip(SYMBOLS, values, strict=True)}
        truth = exact(expr, at)
        assert abs(exact(found, at) - truth) <= mpmath.mpf(10) ** -50 * abs(truth)


def test_a_loss_of_exponentials_has_derivatives_that_stay_finite():
    assert with_softplus(LOSS) == softplus(40 - 40 * x) / 40
    assert with_softplus(log(2 + exp(x)) + log(x)) == log(2 + exp(x)) + log(x)
    point = Proximal(LOSS, x, y, p)
    assert point.loss == softplus(40 - 40 * x) / 40
    for order in (1, 2, 3, 4):
        slope = rewrite_for_accuracy(point.loss.diff(x, order))
        assert math.isfinite(in_floats(slope, {"x": -1e4}))


def test_horner_and_other_terms():
    He8 = CATALOGUE["He8"](x)
    inner = x**2 * (x**2 * (x**2 - 28) + 210) - 420
    assert rewrite_for_accuracy(He8) == x**2 * inner + 105
    assert rewrite_for_accuracy(x**5 - x**3 + tanh(y)) == x**3 * (x - 1) * (x + 1) + tanh(y)
    assert rewrite_for_accuracy(x**3 * y - x) == x**3 * y - x


def test_averages_and_cases_are_entered_and_conditions_are_not():
    z = sp.Symbol("z", real=True)
    node = GaussianExpectation(1 - tanh(x * z) ** 2, z)
    assert rewrite_for_accuracy(2 * node) == 2 * GaussianExpectation(sp.sech(x * z) ** 2, z)
    cases = sp.Piecewise((exp(x) - 1, exp(x) - 1 > y), (relu(1 - tanh(y)), True))
    expected = sp.Piecewise((expm1(x), exp(x) - 1 > y), (relu(2 * sigmoid(-2 * y)), True))
    assert rewrite_for_accuracy(cases) == expected
    f = sp.Function("f")
    assert rewrite_for_accuracy(f(exp(x) - 1)) == f(expm1(x))


@pytest.mark.parametrize(
    "expr",
    [
        x, sp.Integer(2), sp.pi * x, 1 + exp(x), 1 + x**2, exp(x) + 2, x * y - 2 * p, x**2 - 3,
        tanh(x) + tanh(y), sqrt(x**2 + p) + p, 1 / (x + y) + 1 / p, log(2 + x),
        exp(-(x**2)) * PHI.diff(x),
        sp.Symbol("V") * x / (1 + y * x**2), exp(1) - 1, exp(-(x**2)) * sp.erfc(x),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_accurate_already_stays(expr):
    assert rewrite_for_accuracy(expr) == expr


def test_the_size_stays_in_proportion():
    # The second derivative of a softmax loss with ten terms: no rule feeds another without end.
    terms = [sp.Symbol(f"a{k}", real=True) for k in range(10)]
    loss = log(sp.Add(*(exp(t) for t in terms)))
    found = rewrite_for_accuracy(loss.diff(terms[0], 2))
    assert sp.count_ops(found) < 20 * sp.count_ops(loss.diff(terms[0], 2))


# Each is one argument of Φ that the rules have to recognise in the exponents.
ARGUMENTS = {
    "-x": -x,
    "roots": x * sqrt(1 - p) / sqrt(q + p),
    "linear": y * x + q,
    "shifted": (x - y) / sqrt(p),
    "shifted, roots": (x * sqrt(1 - p) + y) / sqrt(q + p),
    "halves": -(x + 1) / 2,
}
PLACES = [-1e4, -300.0, -45.0, -38.6, -37.0, -27.0, -5.0, 1e-3, 0.7, 9.0, 30.0, 39.0, 200.0, 1e4]
HALF = sp.Rational(1, 2)
POWERS = [(2 * HALF, 1), (2 * HALF, 2), (HALF, HALF), (HALF, 1), (4 * HALF, 1), (6 * HALF, 2)]


@pytest.mark.parametrize(
    "u",
    [
        pytest.param(u, id=name, marks=[pytest.mark.slow] * (name not in {"roots", "halves"}))
        for name, u in ARGUMENTS.items()
    ],
)
def test_powers_of_the_density_over_powers_of_the_distribution_function(u):
    """Of the reference Φ and erfc are functions of mpmath, which do not underflow."""
    given = {"y": -1.7, "p": 0.3, "q": 0.07}
    s = sp.Symbol("s", real=True)
    cases = []
    for a, b in POWERS:
        phi = (sp.exp(-(u**2) / 2) / sqrt(2 * sp.pi)) ** a
        reference = sp.exp(-a * s**2 / 2) / (2 * sp.pi) ** (a / 2)
        cases.append((phi / PHI.subs(x, u) ** b, reference / normal_cdf(s) ** b))
        tail = 2 * normal_cdf(-sqrt(2) * s)
        cases.append((sp.exp(-a * u**2) / sp.erfc(u) ** b, sp.exp(-a * s**2) / tail**b))
    for order in (1, 2):
        slope = log(PHI).diff(x, order).subs(x, u)
        cases.append((slope, log_normal_cdf(s).diff(s, order)))
    ctx = mpmath.mp.clone()
    ctx.dps = 50
    symbols = sorted(u.free_symbols, key=str)
    inner = compiled(u, symbols, ctx)
    for expr, reference in cases:
        found, exactly = rewrite_for_accuracy(expr), compiled(reference, [s], ctx)
        for place in PLACES:
            at = {**given, "x": place}
            argument = inner(*(ctx.mpf(at[v.name]) for v in symbols))
            truth = exactly(argument)
            if abs(truth) > 1e305:
                continue
            # The condition of the exponents is u²; below the least float nothing is relative.
            allowed = 4e-15 * (1 + 10 * argument**2) * abs(truth) + 1e-290
            assert abs(in_floats(found, at) - truth) <= allowed, (expr, place)


def test_a_difference_of_exponentials_that_share_a_term():
    """The first conditional moment of cosh: SymPy searched its condition without end."""
    g, k = sp.symbols("gamma kappa", real=True)
    rho = sp.Symbol("rho", positive=True)
    expr = rho * (sp.exp(g * k / 2 + rho**2 / 8) - sp.exp(-g * k / 2 + rho**2 / 8)) / 4
    at = {g: sp.Rational(1, 3), k: sp.Rational(-1, 10**9), rho: sp.Rational(4, 5)}
    value = rewrite_for_accuracy(sp.expand(expr)).xreplace(at)
    assert abs(value.evalf(30) - expr.xreplace(at).evalf(30)) < 1e-36


def test_exponents_that_are_a_number_of_decays_are_not_expanded(monkeypatch):
    # For moments of ramps that took a tenth of the time of a derivation.
    monkeypatch.setattr(accuracy, "_expanded", None)
    u = x + p * y + q
    assert rewrite_for_accuracy(exp(u**2) * sp.erfc(u)) == erfcx(u)
    assert rewrite_for_accuracy(exp(-(u**2)) * sp.erfc(u)) == exp(-(u**2)) * sp.erfc(u)
