"""Duals: published closed forms, Mehler's series against them, honest bounds."""

import mpmath
import pytest
import sympy as sp

from giantstep.errors import AssumptionError, ParameterError
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.hermite import dual_activation as module
from giantstep.symbolic.hermite.dual_activation import DualActivation, dual_activation

rho = sp.Symbol("rho", real=True)
HALF, pi, asin, sqrt = sp.Rational(1, 2), sp.pi, sp.asin, sp.sqrt


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Daniely, Frostig and Singer, NIPS 29 (2016), table 1, with f not normalised
        ("relu", (sqrt(1 - rho**2) + rho * (pi - sp.acos(rho))) / (2 * pi)),
        ("step", HALF - sp.acos(rho) / (2 * pi)),
        ("He3", 6 * rho**3),
        ("identity", rho),
        ("exp", sp.exp(1 + rho)),
        ("sin", sp.exp(-1) * sp.sinh(rho)),
        ("erf", 2 / pi * asin(2 * rho / 3)),
        ("sign", 2 / pi * asin(rho)),
    ],
)
def test_published_duals(name, expected):
    found = dual_activation(name, rho).closed_form
    for value in (-sp.Rational(9, 10), sp.Rational(1, 3), sp.S.One):
        at = found.subs(rho, value).evalf(30)
        assert abs(at - expected.subs(rho, value).evalf(30)) < 1e-28


@pytest.mark.parametrize("name", ["relu", "erf", "gelu", "abs", "sin", "Phi", "sign", "step"])
@pytest.mark.parametrize("value", [-sp.Rational(4, 5), sp.Rational(1, 2), sp.S.One])
def test_mehlers_series_and_its_bound(name, value):
    exact = dual_activation(name, rho).closed_form.subs(rho, value).evalf(30)
    found = dual_activation(name, rho, order=12).value(value)
    assert abs(found.value - exact) <= found.error_bound
    assert found.error_bound < (0.1 if value != 1 else 0.3)


def test_two_activations():
    dual = dual_activation("erf", rho, "relu")
    assert sp.expand(dual.closed_form - rho / sqrt(3 * pi)) == 0
    mixed = dual_activation("tanh", rho, "erf", order=15)
    # E tanh(z) erf(z) is the dual at 1: given there by quadrature over one variable
    from giantstep.symbolic.expressions.activations import z
    from giantstep.symbolic.gaussian.expectation import GaussianExpectation

    exact = GaussianExpectation(sp.tanh(z) * sp.erf(z), z).evalf(25)
    found = mixed.value(1)
    assert abs(found.value - exact) <= found.error_bound < 1e-4


def test_without_closed_form_the_series_says_what_it_rests_on():
    dual = dual_activation("tanh", rho)
    assert dual.closed_form is None and dual.order == module.DEFAULT_ORDER
    assert dual.rests_on in (module.PROVEN, module.ESTIMATED)
    found = dual.value(HALF)
    # JointExpectation at 20 digits (trapezoidal rule in the plane)
    assert abs(found.value - sp.Float("0.18632441320344808611", 20)) <= found.error_bound
    assert found.error_bound < 1e-11
    assert "±" in str(found) and "series" in str(found)


def test_without_flint(monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    dual = dual_activation("tanh", rho, order=8)
    assert dual.rests_on == module.ESTIMATED
    found = dual.value(HALF)
    assert abs(found.value - sp.Float("0.18632441320344808611", 20)) <= found.error_bound


def test_derivative_is_the_dual_of_the_derivatives():
    slope = dual_activation("relu", rho).derivative()
    assert sp.expand(slope.closed_form - dual_activation("step", rho).closed_form) == 0
    erf = dual_activation("erf", rho)
    at = erf.derivative().closed_form.subs(rho, HALF).evalf(30)
    assert abs(at - erf.closed_form.diff(rho).subs(rho, HALF).evalf(30)) < 1e-28
    tanh = dual_activation("tanh", rho, order=10)
    assert tanh.derivative().order == 9
    difference = sp.diff(tanh.expr, rho) - tanh.derivative().expr
    assert abs(difference.subs(rho, HALF).evalf(15)) < 1e-11
    with pytest.raises(AssumptionError, match="jumps"):
        dual_activation("sign", rho).derivative()


def test_faces():
    relu = dual_activation("relu", rho)
    assert isinstance(relu, DualActivation) and relu.expr == relu.closed_form
    assert repr(relu).startswith("DualActivation(E[relu(u) relu(v)] = rho*asin(rho)/(2*pi)")
    assert r"\mathbb{E}\left[f(u)\,g(v)\right] = " in relu._repr_latex_()
    series = dual_activation("tanh", rho, order=3)
    assert repr(series).endswith("Hermite series to order 3)")
    assert series.latex().endswith(r"+ O\left(\rho^{4}\right)\end{aligned}")


@pytest.mark.parametrize("value", [2, -sp.Rational(3, 2), sp.I, sp.Symbol("r")])
def test_values_outside_the_interval_are_refused(value):
    with pytest.raises(ParameterError, match=r"number in \[-1, 1\]"):
        dual_activation("erf", rho).value(value)


def test_refusals():
    with pytest.raises(ParameterError, match="declared real"):
        dual_activation("erf", sp.Symbol("rho"))
    with pytest.raises(ParameterError, match="order"):
        dual_activation("erf", rho, order=-1)
    with pytest.raises(AssumptionError, match="g "):
        dual_activation("erf", rho, sp.exp(sp.Symbol("t") ** 2))


@pytest.mark.parametrize(("f", "g"), [("relu(z - 1)", "relu(z - 1)"), ("abs(z + 1/2)", "step")])
@pytest.mark.parametrize("sign", [1, -1])
def test_perfect_correlation_of_steps_that_are_not_centred(f, g, sign):
    # Their closed forms divide by sqrt(1 - rho**2).
    found = dual_activation(f, rho, g).value(sign)
    z = sp.Symbol("z", real=True)
    product = activation(f)(z) * activation(g)(sign * z)
    exact = GaussianExpectation(product, z).doit().evalf(25)
    assert abs(found.value - exact) <= found.error_bound


@pytest.mark.parametrize("digits", [0, -3, 1001, 10**6, 2.5, "9", None, True])
@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_digits_out_of_range(name, digits):
    with pytest.raises(ParameterError, match="digits must be"):
        dual_activation(name, rho, order=None if name == "relu" else 3).value(0, digits=digits)


def test_order_is_no_truth_value():
    with pytest.raises(ParameterError, match="order has to be an integer"):
        dual_activation("erf", rho, order=True)


@pytest.mark.parametrize("numerator", [-900, -999])
def test_tails_far_out_have_all_their_digits(numerator):
    # E[relu(u - 1) relu(v - 1)] over u, with E[relu(v - 1) | u] = sφ(m/s) + mΦ(m/s).
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    r = ctx.mpf(numerator) / 1000
    spread = ctx.sqrt(1 - r**2)

    def density(x):
        return ctx.exp(-x * x / 2) / ctx.sqrt(2 * ctx.pi)

    def integrand(u):
        m = (r * u - 1) / spread
        upper = ctx.erfc(-m / ctx.sqrt(2)) / 2
        return (u - 1) * density(u) * spread * (density(m) + m * upper)

    # The integrand is a narrow peak at 1, of width spread / |m|.
    width = spread**2
    points = [1 + width * k for k in range(0, 121, 4)]
    ctx.dps += 25
    scale = integrand(1 + width / 2)  # mpmath refines until the absolute error is small
    expected = scale * ctx.quad(lambda u: integrand(u) / scale, points)
    found = dual_activation("relu(z - 1)", rho).value(sp.Rational(numerator, 1000), digits=15)
    assert abs(ctx.mpf(str(found.value)) / expected - 1) < ctx.mpf(10) ** -13


def test_values_nearer_to_perfect_anticorrelation_take_no_time():
    found = dual_activation("relu(z - 1)", rho).value(-1 + sp.Rational(1, 10**5))
    assert 0 < found.value < sp.Float("1e-43000")


def test_a_correlation_that_is_a_hidden_zero_is_within_the_bound():
    hidden_zero = sp.sqrt(2) + sp.sqrt(3) - sp.sqrt(5 + 2 * sp.sqrt(6))
    found = dual_activation("tanh", rho).value(hidden_zero)  # E tanh(u) E tanh(v) = 0
    assert abs(found.value) <= found.error_bound


@pytest.mark.parametrize("uncertain", [0, 1])
def test_the_bound_counts_what_is_unknown_of_either_function(uncertain):
    exact, radius = (sp.Integer(2), sp.S.Zero), sp.Rational(1, 100)
    pair = [exact, exact]
    pair[uncertain] = (sp.Integer(2), radius)
    f = activation("tanh")
    found = DualActivation(f, f, rho, None, coefficients=((exact, exact), tuple(pair))).value(1)
    # 2·2 + 2·(2 ± 1/100)
    assert abs(found.value - 8) < 1e-15
    assert 2 * radius <= found.error_bound <= 2.1 * radius


def test_the_picture_goes_over_all_correlations():
    (line,) = dual_activation("erf", rho).picture().lines
    assert line.x[0] == -1 and line.x[-1] == 1 and len(line.x) > 20
    assert list(line.x) == pytest.approx([-x for x in reversed(line.x)])
    # Williams (1998): (2/pi) asin(2 rho/3).
    wanted = [2 / mpmath.pi * mpmath.asin(2 * x / mpmath.mpf(3)) for x in line.x]
    assert list(line.y) == pytest.approx([float(y) for y in wanted], rel=1e-14)
