"""Asymptotic laws of section 1.4 against exact coefficients and quadrature."""

import mpmath
import pytest
import sympy as sp

from giantstep.symbolic.expressions.functions import relu, sigmoid, softplus
from giantstep.symbolic.hermite.closed_forms import DecayKind
from giantstep.symbolic.hermite.coefficients import hermite_coefficients

z = sp.Symbol("z", real=True)
a, s = sp.symbols("a s", positive=True)
b = sp.Symbol("b", real=True)
HALF = sp.Rational(1, 2)


def decay(f, **keywords):
    return hermite_coefficients(f, 0, **keywords).decay


def power_of_k(found):
    """The exponent of k in an algebraic law."""
    return sp.limit(sp.log(found.envelope) / sp.log(found.k), found.k, sp.oo)


@pytest.mark.parametrize(
    ("text", "jumping_derivative"),
    [("sign", 0), ("step", 0), ("relu", 1), ("abs", 1), ("relu(z-1)", 1), ("relu(z)**2", 2),
     ("relu(z)**3", 3), ("z**2*sign(z)", 2), ("z*step(z-1)", 0), ("relu(z)+erf(z)", 1),
     ("abs(z)+sign(z)", 0)],
)  # fmt: skip
def test_a_jump_in_a_derivative_gives_a_power(text, jumping_derivative):
    # k^(-3/4 - m/2)
    found = decay(text)
    assert found.kind is DecayKind.ALGEBRAIC
    assert power_of_k(found) == -sp.Rational(3, 4) - sp.Rational(jumping_derivative, 2)


@pytest.mark.parametrize(
    ("expr", "tolerance"),
    [
        (sp.erf(z), 0.002), (sp.erf(z + 1), 0.003), (sp.erf(2 * z), 0.002),
        (sp.exp(-(z**2)), 0.002), (sp.exp(z**2 / 8), 0.002), (sp.exp(z**2 / 8 + z / 3), 0.03),
        (relu(z - 1), 0.01),
        (relu(z), 0.01), (sp.sign(z), 0.002), (sp.exp(z / 2) * sp.sin(z), 0.01),
        (sp.sin(z), 1e-9), (z * sp.exp(z), 0.01), (z**2 * sp.erf(z + 1), 0.03),
    ],
)  # fmt: skip
def test_envelopes_are_reached(expr, tolerance):
    # The largest of twenty neighbours: corrections of relative order 1/k, and the oscillation.
    found = hermite_coefficients(expr, 0, variable=z).parts.sequence
    law = hermite_coefficients(expr, 0, variable=z).decay
    assert law.sharp
    ratios = []
    for k in range(280, 301):
        size = abs(sp.N(found.value(k), 20)) / sp.sqrt(sp.factorial(k)).n(20)
        ratios.append(size / sp.N(law.envelope.subs(law.k, k), 20))
    assert abs(max(ratios) - 1) < tolerance


def moments(function, highest, ctx):
    """E[f He_k] by the trapezoidal rule: the poles, at distance >= pi/4, leave 1e-21 of them."""
    step = ctx.mpf(1) / 10
    totals = [ctx.zero] * (highest + 1)
    for i in range(-170, 171):
        x = i * step
        weight = function(x) * ctx.exp(-x * x / 2) * step / ctx.sqrt(2 * ctx.pi)
        previous, current = ctx.zero, ctx.one
        for n in range(highest + 1):
            totals[n] += weight * current
            previous, current = current, x * current - n * previous
    return totals


@pytest.mark.parametrize(
    ("expr", "function", "k", "ratio"),
    [
        # Table of section 1.4: measured/predicted 0.940 at k = 11, 0.958 at 21, 0.975 at 51.
        (sp.tanh(z), "tanh", 11, 0.940),
        (sp.tanh(z), "tanh", 21, 0.958),
        (sp.tanh(z), "tanh", 51, 0.975),
        # The same for the logistic function: 0.66, 0.74, 0.83.
        (sigmoid(z), "logistic", 11, 0.66),
        (sigmoid(z), "logistic", 21, 0.74),
        (sigmoid(z), "logistic", 51, 0.83),
        (sp.tanh(2 * z), "tanh2", 51, 0.9965),
        (z * sigmoid(z), "swish", 100, 0.874),
        (softplus(2 * z), "softplus2", 100, 0.982),
    ],
)
def test_meromorphic_functions(expr, function, k, ratio):
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    functions = {
        "tanh": ctx.tanh,
        "tanh2": lambda x: ctx.tanh(2 * x),
        "logistic": lambda x: 1 / (1 + ctx.exp(-x)),
        "swish": lambda x: x / (1 + ctx.exp(-x)),
        "softplus2": lambda x: ctx.log(1 + ctx.exp(2 * x)),
    }
    law = decay(expr, variable=z)
    assert law.kind is DecayKind.ROOT_EXPONENTIAL
    size = abs(moments(functions[function], k, ctx)[k]) / ctx.sqrt(ctx.factorial(k))
    found = float(size) / float(law.envelope.subs(law.k, k))
    assert found == pytest.approx(ratio, abs=0.006)


def test_the_formula_of_the_table_for_tanh():
    law = decay("tanh")
    k = law.k
    height, root = sp.pi / 2, sp.sqrt(k + HALF)
    expected = (2 / (sp.pi * (k + HALF))) ** sp.Rational(1, 4) * sp.sqrt(2 * sp.pi)
    expected *= sp.exp(height**2 / 4) * sp.exp(-height * root)
    assert all(abs(sp.N((law.envelope / expected).subs(k, n), 20) - 1) < 1e-18 for n in (3, 50))


def test_poles_off_the_imaginary_axis():
    # tanh(z + 1): modulus oscillates, its largest value among neighbours reaches the envelope.
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    law = decay(sp.tanh(z + 1), variable=z)
    ratios = []
    found = moments(lambda x: ctx.tanh(x + 1), 103, ctx)
    for k in range(96, 104):
        size = abs(found[k]) / ctx.sqrt(ctx.factorial(k))
        ratios.append(float(size) / float(law.envelope.subs(law.k, k)))
    assert 0.95 < max(ratios) < 1.02


def test_parameters():
    law = decay(sp.exp(-(z**2) / (2 * s)), variable=z)
    expected = sp.sqrt(s / (1 + s)) * (2 / sp.pi) ** sp.Rational(1, 4)
    expected *= (1 + s) ** (-law.k / 2) * law.k ** sp.Rational(-1, 4)
    assert law.kind is DecayKind.GEOMETRIC
    assert abs(sp.N((law.envelope / expected).subs({law.k: 7, s: sp.Rational(5, 3)})) - 1) < 1e-14
    assert decay(sp.erf(a * z + b), variable=z).kind is DecayKind.GEOMETRIC
    law = decay(sp.tanh(a * z), variable=z)
    at_two = decay("tanh(2*z)")
    gap = (law.envelope / at_two.envelope).subs({law.k: 7, a: 2})
    assert law.kind is DecayKind.ROOT_EXPONENTIAL
    assert abs(sp.N(gap) - 1) < 1e-14
    # No pole if the slope is 0.
    assert decay(sp.tanh(sp.Symbol("r", real=True) * z), variable=z) is None
    order = sp.Symbol("k", positive=True)
    assert decay(sp.exp(order * z), variable=z).k.name == "n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("z**3 - z", DecayKind.FINITE),
        ("sin", DecayKind.SUPER_EXPONENTIAL),
        ("sin(z) + erf(z)", DecayKind.GEOMETRIC),
        ("erf(z) + erf(2*z)", DecayKind.GEOMETRIC),
        ("tanh(z) + erf(z)", DecayKind.ROOT_EXPONENTIAL),
        ("tanh(z) + abs(z)", DecayKind.ALGEBRAIC),
    ],
)
def test_the_slowest_part_decides(text, kind):
    assert decay(text).kind is kind


def test_sums_of_equal_laws_are_bounds():
    law = decay("relu(z) + relu(z-1)")
    assert not law.sharp
    parts = decay("relu").envelope + decay("relu(z-1)").envelope
    assert law.envelope == parts
    assert decay("erf(z) + erf(2*z)").envelope == decay("erf(2*z)").envelope
    assert decay("tanh(z) + tanh(2*z)").envelope == decay("tanh(2*z)").envelope


@pytest.mark.parametrize("text", ["erf(z)**2", "tanh(z)**2", "relu(z)*tanh(z)", "1/(1+z**2)"])
def test_unknown_laws_are_not_guessed(text):
    assert decay(text) is None


def test_faces():
    law = decay("relu")
    assert str(law) == "|mu_k|/sqrt(k!) ~ 2**(3/4)/(2*pi**(3/4)*k**(5/4)) (a power of k)"
    assert law._repr_latex_().startswith(r"$\displaystyle |\mu_k|/\sqrt{k!} \simeq ")
    assert r"\lesssim" in decay("relu(z) + relu(z-1)").latex()
    assert decay("z").envelope == 0
