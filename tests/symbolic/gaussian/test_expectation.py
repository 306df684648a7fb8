import pickle
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import sympy as sp

from giantstep.errors import ConvergenceError, EmissionError
from giantstep.symbolic.expressions.functions import relu, sigmoid, softplus
from giantstep.symbolic.gaussian.expectation import (
    GaussianExpectation,
    JointExpectation,
    correlated_pair,
    expect,
)
from giantstep.symbolic.gaussian.quadrature import NotConverged, _piecewise_rule, agreement

z, x, a, b = sp.symbols("z x a b", real=True)
c = sp.Symbol("c", positive=True)
HALF = sp.Rational(1, 2)
E = GaussianExpectation
tanh, exp = sp.tanh, sp.exp
NODE = E(tanh(a * z), z)

# Theory of spiked random features, table of constants (40-digit trapezoidal rule, two steps).
TANH_DIGITS = [
    (z * tanh(z), "0.6057055096021588255835402"),
    (tanh(z) ** 2, "0.3942944903978411744164598"),
    (tanh(z).diff(z) ** 2, "0.4644029024482682419720215"),
]


def quadrature(integrand, digits=30, cuts=()):
    """Tanh-sinh quadrature by mpmath, with nothing of ours."""
    f = sp.lambdify(z, integrand, modules=[FUNCTIONS, "mpmath"])
    with mpmath.workdps(digits + 10):
        cuts = [mpmath.mpf(sp.sympify(k).p) / sp.sympify(k).q for k in cuts]
        points = {k + step for k in (mpmath.mpf(0), *cuts) for step in (-8, -2, 0, 2, 8)}
        value = mpmath.quad(lambda t: f(t) * mpmath.npdf(t), sorted(points | {-40, 40}))
        return sp.Float(value, digits + 10)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "relu": lambda t: max(t, 0),
    "sigmoid": lambda t: 1 / (1 + mpmath.exp(-t)),
    "softplus": lambda t: mpmath.log(1 + mpmath.exp(t)),
    "Heaviside": lambda t, _=None: (mpmath.sign(t) + 1) / 2,
}


# -- construction and manipulation


def test_constant_factors_are_pulled_out_and_constants_are_their_own_mean():
    assert E(a * tanh(z), z) == a * E(tanh(z), z)
    assert E(a * b, z) == a * b
    assert E(3, z) == 3
    assert E(exp(a) * z / c, z) == exp(a) / c * E(z, z)


def test_the_inner_expectation_is_a_constant_of_the_outer_one():
    assert E(tanh(z) * E(sp.sin(x), x), z) == E(tanh(z), z) * E(sp.sin(x), x)
    # the same name for both: the inner one is bound
    assert E(tanh(z) * E(tanh(z) ** 2, z), z) == E(tanh(z), z) * E(tanh(z) ** 2, z)


@pytest.mark.parametrize(
    "variable",
    [
        sp.Symbol("t"), sp.Symbol("t", imaginary=True),
        sp.Symbol("t", positive=True),  # Abs(t) would be t, with mean 0
        sp.Symbol("t", nonnegative=True), sp.Symbol("t", negative=True),
        sp.Symbol("t", integer=True), sp.Symbol("t", nonzero=True, real=True), z + 1, "z",
    ],
    ids=str,
)  # fmt: skip
def test_variables_that_do_not_range_over_the_line_are_refused(variable):
    with pytest.raises(TypeError, match="declared real and nothing else"):
        E(sp.Symbol("t") ** 2, variable)


def test_free_symbols_exclude_the_bound_one():
    assert NODE.free_symbols == {a}
    assert NODE.bound_symbols == [z]
    assert (NODE.integrand, NODE.variable) == (tanh(a * z), z)


def test_differentiation_goes_under_the_integral():
    assert NODE.diff(a) == E(z * (1 - tanh(a * z) ** 2), z)
    assert NODE.diff(b) == 0
    assert (NODE**2).diff(a) == 2 * NODE * NODE.diff(a)
    assert (z * NODE).diff(z) == NODE  # the bound symbol is another z


def test_substitution_of_parameters():
    assert NODE.subs(a, 2) == E(tanh(2 * z), z)
    assert NODE.subs(a, 0) == 0
    assert NODE.subs({a: b}) == E(tanh(b * z), z)
    assert NODE.subs(NODE, b) == b


@pytest.mark.parametrize(
    "substitute",
    [
        lambda node: node.subs(a, z),
        lambda node: node.subs([(a, z), (b, 5)], simultaneous=True),
        lambda node: node.xreplace({a: z}),
        lambda node: (node + a).xreplace({a: z}) - z,
    ],
)
def test_substitution_avoids_capture(substitute):
    found = substitute(E(z * tanh(a * z), z))
    assert found.free_symbols == {z}
    at = found.subs(z, sp.Rational(1, 3))
    expected = E(z * tanh(z / 3), z).evalf(30)
    assert abs(at.evalf(30) - expected) < 1e-28  # captured, it would be E[z tanh(z²)] = 0


def test_equality_hash_and_order():
    again = E(
        tanh(sp.Symbol("a", real=True) * sp.Symbol("z", real=True)), sp.Symbol("z", real=True)
    )
    assert again == NODE and hash(again) == hash(NODE)
    assert E(tanh(z) ** 2, z) != E(tanh(z), z) ** 2
    assert len({NODE, again, E(tanh(b * z), z)}) == 2
    assert NODE + NODE == 2 * NODE


def test_pickling():
    assert pickle.loads(pickle.dumps(3 * NODE**2 + a)) == 3 * NODE**2 + a


def test_assumptions():
    assert NODE.is_commutative and NODE.is_extended_real
    assert E(tanh(a * z) ** 2, z).is_extended_nonnegative
    assert NODE.is_extended_nonnegative is None
    assert NODE.is_zero is None


# -- closed forms


def test_doit_gives_the_closed_form_or_the_node():
    assert E(sp.sin(x + sp.sqrt(c) * z), z).doit() == exp(-c / 2) * sp.sin(x)
    assert NODE.doit() == 0  # odd
    assert expect(z**3 * sp.exp(z**2), z) == E(z**3 * sp.exp(z**2), z)  # odd, but divergent
    assert expect(tanh(a * z) ** 2, z) == E(tanh(a * z) ** 2, z)


def test_doit_does_nested_expectations():
    nested = E(E(sp.sin(x + z), x) * sp.sin(z), z)
    assert sp.expand(nested.doit() - exp(-HALF) * (1 - exp(-2)) / 2) == 0
    assert E(E(relu(x + z), x) * z, z).doit() == HALF  # Stein: E Phi(z)


def test_piecewise_integrands_that_no_rule_takes_stay():
    integrand = sp.Piecewise((sp.tanh(z), z > 0), (0, True))
    assert expect(integrand, z) == E(integrand, z)
    assert expect(sp.Piecewise((z, z > 0), (0, True)), z) == 1 / sp.sqrt(2 * sp.pi)


# -- digits


@pytest.mark.parametrize(("integrand", "digits"), TANH_DIGITS, ids=str)
def test_reference_digits(integrand, digits):
    assert abs(E(integrand, z).evalf(25) - sp.Float(digits, 30)) < sp.Float("6e-26")  # half a unit


@pytest.mark.parametrize(
    ("integrand", "cuts"),
    [
        (tanh(z) ** 2, ()),
        (sigmoid(3 * z - 1), ()),
        (softplus(z) * z**2, ()),
        (sp.atan(2 * z) * z**3, ()),
        (exp(sp.sin(z)), ()),
        (tanh(z) ** 2 * exp(z**2 / 4), ()),
        (sp.cos(25 * z) * tanh(z) ** 2, ()),
        (relu(z - HALF) * tanh(z), (HALF,)),
        (sp.Abs(tanh(z)), (0,)),
        (sp.log(sp.Abs(z)) + 2, (0,)),
        (sp.Heaviside(z - 3, HALF) * tanh(z), (3,)),
    ],
    ids=str,
)
def test_evalf_agrees_with_independent_quadrature(integrand, cuts):
    expected = quadrature(integrand, cuts=cuts)
    # 30 digits, and one for the last place
    assert abs(E(integrand, z).evalf(30) / expected - 1) < sp.Float("1e-29")


def test_exact_zeros():
    assert E(tanh(z), z).evalf(30) == 0
    assert abs((1 + E(tanh(z) * exp(z**2 / 4), z)).evalf(30) - 1) < 1e-28


@pytest.mark.parametrize("frequency", [8 * sp.pi, 25, 16 * sp.pi])
def test_fast_oscillations_are_not_taken_for_slow_ones(frequency):
    # Every node of a step of 1/2 and of 1/4 sees cos(8 pi z) = 1.
    value = E(sp.cos(frequency * z), z).evalf(15)
    assert abs(value) < 1e-40  # exp(-frequency**2/2) < 1e-135


@pytest.mark.parametrize(
    ("integrand", "expected"),
    [
        # cancellation inside the integrand: 1 + tanh(z - 30) = 2 exp(2(z-30)) (1 - ...)
        (1 + tanh(z - 30), 2 * exp(2 - 60) - 2 * exp(8 - 120)),
        # far from where the density is
        (relu(z - 30), E(relu(z - 30), z).doit()),
        (exp(40 * z) * tanh(z) ** 2, exp(800)),
        (exp(40 * z) * relu(z), 40 * exp(800)),
        (exp(sp.Rational(49, 100) * z**2) * relu(z), 50 / sp.sqrt(2 * sp.pi)),
    ],
    ids=str,
)
def test_hard_integrands_keep_their_relative_accuracy(integrand, expected):
    # The neglected terms of the first one are exp(-52) times the last one kept.
    assert abs(E(integrand, z).evalf(30) / expected.evalf(40) - 1) < sp.Float("1e-28")


def test_evalf_inside_expressions_and_with_values():
    assert (
        abs((1 + E(tanh(z) ** 2, z)).evalf(25) - sp.Float("1.3942944903978411744164598", 30))
        < 1e-24
    )
    assert NODE.evalf(30) == NODE
    value = E(z * tanh(a * z), z).evalf(25, subs={a: 1})
    assert abs(value - sp.Float("0.6057055096021588255835402", 30)) < 1e-24
    assert float(E(tanh(z) ** 2, z)) == pytest.approx(0.39429449039784117, rel=3e-16)


def test_evalf_leaves_the_global_precision_alone():
    before = mpmath.mp.prec
    E(tanh(z) ** 2 / 3 + tanh(z) ** 4, z).evalf(50)
    assert mpmath.mp.prec == before


@pytest.mark.parametrize(
    "integrand",
    [
        exp(z**2), exp(z**2 / 2), exp(z**2 / 2) * tanh(z) ** 2, exp(z**3),
        exp(-(z**3)) * relu(z) + exp(z**2), exp(z**2) * relu(z), exp(z**2 / 2) * relu(z - 1),
        exp(exp(exp(z))), 1 / z**2, 1 / (z - 1) ** 2, 1 / (z - sp.pi / 10) ** 2, 1 / sp.Abs(z),
        sp.log(z) * tanh(z),  # not real
        sp.sqrt(z),
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_exist_is_refused_and_does_not_hang(integrand):
    start = time.process_time()
    with pytest.raises(ConvergenceError, match="E_z"):
        E(integrand, z).evalf(30)
    assert time.process_time() - start < 10  # some 0.5 s; without an end it would go on for ever


@pytest.mark.parametrize(
    ("integrand", "name"),
    [
        (exp(sp.I * z) * tanh(z) ** 2, "ImaginaryUnit"),
        (sp.gamma(z**2 + 1), "gamma"),
        (tanh(z) * E(tanh(x + z), x), "GaussianExpectation"),
    ],
)
def test_unknown_integrands_are_refused_by_name(integrand, name):
    with pytest.raises(EmissionError, match=name):
        E(integrand, z).evalf(20)


# -- printing


def test_str_and_repr():
    assert str(2 * NODE**2) == repr(2 * NODE**2) == "2*E_z[tanh(a*z)]**2"


def test_latex():
    assert sp.latex(NODE) == r"\mathbb{E}_{z}\left[\tanh{\left(a z \right)}\right]"
    kappa = sp.Symbol("kappa", real=True)
    assert r"\mathbb{E}_{\kappa}" in sp.latex(E(tanh(kappa), kappa) ** 2)
    squared = sp.latex(E(tanh(z), z) ** 2 / 3)
    assert squared.count("{") == squared.count("}") and "^{2}" in squared


def test_pretty():
    assert sp.pretty(NODE) == "𝔼_z[tanh(a⋅z)]"
    fraction = sp.pretty(E(tanh(z) / (1 + z**2), z))
    assert len(fraction.splitlines()) >= 3 and "𝔼_z" in fraction


@pytest.mark.parametrize("expr", [NODE, NODE**2 + a / NODE, E(relu(z) / (1 + z**2), z)])
def test_mathml_is_well_formed(expr):
    text = sp.printing.mathml(expr, printer="presentation")
    declared = '<!DOCTYPE math [<!ENTITY InvisibleTimes "&#x2062;">]>' + f"<math>{text}</math>"
    tree = ElementTree.fromstring(declared)
    letters = [node.text for node in tree.iter("mi")]
    assert "𝔼" in letters
    brackets = [node.text for node in tree.iter("mo") if node.text in ("[", "]")]
    assert brackets.count("[") == brackets.count("]") > 0


def test_digits_of_what_is_zero_beyond_its_kinks():
    """The size of an integrand was taken from beyond the outermost kinks, and was 0 there."""
    middle = tanh(z) ** 2 * relu(z) * relu(1 - z)
    expected = mpmath.quad(
        lambda x: mpmath.tanh(x) ** 2 * x * (1 - x) * mpmath.npdf(x), [0, 0.5, 1]
    )
    assert abs(E(middle, z).evalf(15) - expected) < 1e-14
    far = sp.Heaviside(z - 9) * sp.Heaviside(10 - z) * tanh(z)
    assert abs(E(far, z).evalf(15) / sp.Float("1.12851217918792037e-19", 20) - 1) < 1e-14


def test_expectations_under_expectations():
    u, v = sp.symbols("u v", real=True)
    inner = JointExpectation(tanh(u * v + z) * relu(u), correlated_pair(u, v, HALF))
    for integrand in (inner, inner**2, relu(z) * sp.Heaviside(inner), sp.sign(z) * inner):
        assert expect(integrand, z).has(GaussianExpectation)


@pytest.mark.parametrize(
    ("rest", "noise"), [(lambda x: mpmath.sin(10**9 * x) / 10**7, True),
                        (lambda x: 1 / abs(x - mpmath.pi / 10), False)],
)  # fmt: skip
def test_rounding_and_singularities_are_told_apart(rest, noise):
    # Only rounding is answered by more digits; an integral that is infinite stays so.
    ctx = mpmath.mp.clone()

    def function(x):
        return ctx.exp(-(x**2)) * (1 + ctx.convert(rest(x)))

    with pytest.raises(NotConverged) as caught:
        _piecewise_rule(function, [ctx.zero, ctx.one], ctx, agreement(53, ctx))
    assert caught.value.noise is noise
