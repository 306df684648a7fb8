import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from tests.symbolic.hermite.closed_form_table import DIGITS

from giantstep.errors import (
    AssumptionError,
    ConvergenceError,
    MissingDependencyError,
    ParameterError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.expressions.functions import OwenT, relu, sigmoid, softplus
from giantstep.symbolic.gaussian import enclosures as gaussian_enclosures
from giantstep.symbolic.gaussian.enclosures import (
    enclosed_expectation,
    enclosed_hermite_coefficients,
    enclosed_value,
)
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.gaussian.hermite_polynomials import hermite_polynomial

z, y = sp.symbols("z y", real=True)
R, E = sp.Rational, GaussianExpectation
HALF = R(1, 2)

# Theory of leaps and staircases, section 1.4: 16 digits, rounded to nearest; {name: {k: mu_k}}.
SQUARES = {
    "tanh": "0.3942944903978412", "sigmoid": "0.2933790358580930",
    "softplus": "0.9212459088593003", "swish": "0.3557755198173522",
}  # fmt: skip

# Closed forms of the same table, and integrals that are elementary.
CLOSED_FORMS = [
    (z * sp.erf(z), 2 / sp.sqrt(3 * sp.pi)),
    (sp.erf(z) ** 2, 2 / sp.pi * sp.asin(R(2, 3))),
    (relu(z), 1 / sp.sqrt(2 * sp.pi)),
    (relu(z - sp.sqrt(2)), sp.exp(-1) / sp.sqrt(2 * sp.pi) - sp.sqrt(2) * sp.erfc(1) / 2),
    (sp.Abs(z), sp.sqrt(2 / sp.pi)),
    (z * sp.sign(z), sp.sqrt(2 / sp.pi)),
    (z * sp.Heaviside(z - 1, HALF), sp.exp(-HALF) / sp.sqrt(2 * sp.pi)),
    (sp.sin(2 * z + 1), sp.exp(-2) * sp.sin(1)),
    (sp.cos(z) ** 2, (1 + sp.exp(-2)) / 2),
    (sp.exp(-(z**2) / 3), sp.sqrt(R(3, 5))),
    (sp.exp(z), sp.exp(HALF)),
    (sp.exp(10 * z), sp.exp(50)),
    (sp.exp(z**2 / 5), sp.sqrt(R(5, 3))),
    (sp.exp(R(499, 1000) * z**2), sp.sqrt(500)),
    (sp.cosh(z) * sp.cos(z), sp.cos(1)),
    (z**20, sp.factorial2(19)),
    (sp.sqrt(sp.Abs(z)), 2 ** R(1, 4) * sp.gamma(R(3, 4)) / sp.sqrt(sp.pi)),
    (sp.Abs(z) ** R(1, 3), 2 ** R(1, 6) * sp.gamma(R(2, 3)) / sp.sqrt(sp.pi)),
    (1 / (1 + z**2), sp.sqrt(sp.pi * sp.E / 2) * sp.erfc(1 / sp.sqrt(2))),
    (sp.Max(z, 2 * z), sp.sqrt(1 / (2 * sp.pi))),
    (sp.exp(-1000000 * (z - 1) ** 2), sp.exp(-R(10**6, 2 * 10**6 + 1)) / sp.sqrt(2 * 10**6 + 1)),
    # No kink of z*sign(1/z) is a zero of 1/z: it changes sign through its pole.
    (z * sp.sign(1 / z), sp.sqrt(2 / sp.pi)),
    (relu(z) - relu(-z) + z**2, sp.S.One),
]  # fmt: skip


def quadrature(integrand, cuts=()):
    """Tanh-sinh quadrature by mpmath, to 28 digits."""
    modules = [
        {
            "relu": lambda t: max(t, 0),
            "sigmoid": lambda t: 1 / (1 + mpmath.exp(-t)),
            "softplus": lambda t: mpmath.log1p(mpmath.exp(t)),
            "Heaviside": lambda t, _=None: (mpmath.sign(t) + 1) / 2,
        },
        "mpmath",
    ]
    f = sp.lambdify(z, integrand, modules=modules)
    with mpmath.workdps(30):
        # What lies beyond ±14 is below 1e-30 for all integrands here.
        cuts = [mpmath.mpf(int(k.p)) / int(k.q) for k in cuts]
        points = sorted({*cuts, *map(mpmath.mpf, (-14, -6, -2, 0, 2, 6, 14))})
        return exact(mpmath.quad(lambda t: f(t) * mpmath.npdf(t), points))


def exact(number):
    """A floating-point number of mpmath as the rational number it is."""
    return sp.Rational(*map(int, mpmath.libmp.to_rational(number._mpf_)))


def neighbours(value):
    """The numbers next to a value, a relative 1e-25 away."""
    exact = sp.Rational(value.evalf(60))
    return exact * (1 + R(1, 10**25)), exact * (1 - R(1, 10**25))


# -- without python-flint


def test_without_python_flint_the_message_says_what_to_install(without_flint):
    for call in (
        lambda: enclosed_expectation(sp.tanh(z) * z, z),
        lambda: enclosed_hermite_coefficients("tanh", 3),
        lambda: enclosed_value(sp.pi),
    ):
        with pytest.raises(MissingDependencyError, match=r'pip install "giantstep\[flint\]"'):
            call()
        with pytest.raises(ImportError, match="python-flint"):
            call()


# -- expectations and coefficients


@pytest.mark.parametrize(("f", "closed"), CLOSED_FORMS)
def test_expectations_enclose_their_closed_forms(flint, f, closed):
    found = enclosed_expectation(f, z)
    assert found.contains(closed)
    assert found.digits >= 30
    assert not any(found.contains(wrong) for wrong in neighbours(closed))


@pytest.mark.parametrize("name", DIGITS)
def test_coefficients_of_activations_without_closed_form(flint, name):
    found = enclosed_hermite_coefficients(name, 11)
    assert len(found) == 12
    for k, digits in DIGITS[name].items():
        shown = sp.Rational(digits)
        places = len(digits.split(".")[1])
        assert abs(found[k].midpoint - shown) <= R(1, 2 * 10**places) + found[k].radius
        assert found[k].digits >= 30
    square = enclosed_expectation(activation(name).expr ** 2, z)
    assert abs(square.midpoint - sp.Rational(SQUARES[name])) <= R(6, 10**17)


@pytest.mark.parametrize(
    ("name", "zeros"),
    [
        ("tanh", range(0, 10, 2)),
        ("sigmoid", range(2, 10, 2)),
        ("softplus", range(3, 10, 2)),
        ("swish", range(3, 10, 2)),
        ("gelu", range(3, 10, 2)),
        ("relu", range(3, 10, 2)),
        ("cos", range(1, 10, 2)),
        ("z**3 - 3*z + 1", range(4, 10)),
        ("step", range(2, 10, 2)),
    ],
)
def test_zeros_by_parity_and_degree_are_exact(flint, name, zeros):
    found = enclosed_hermite_coefficients(name, 9)
    exact = [k for k, value in enumerate(found) if value.is_exact]
    assert exact == list(zeros)
    assert all(found[k].midpoint == 0 for k in zeros)


def test_softplus_and_swish_follow_from_the_logistic_function(flint):
    # mu_k(softplus) = mu_{k-1}(s), mu_k(swish) = mu_{k+1}(s) + k mu_{k-1}(s), s logistic.
    s, plus, swish = (
        enclosed_hermite_coefficients(name, 9) for name in ("sigmoid", "softplus", "swish")
    )
    for k in range(1, 9):
        difference = plus[k].midpoint - s[k - 1].midpoint
        assert abs(difference) <= plus[k].radius + s[k - 1].radius
        difference = swish[k].midpoint - s[k + 1].midpoint - k * s[k - 1].midpoint
        assert abs(difference) <= swish[k].radius + s[k + 1].radius + k * s[k - 1].radius


@pytest.mark.parametrize("order", [40, 59])
def test_high_orders_keep_their_digits(flint, order):
    # erf: mu_{2m+1} = 2/sqrt(3 pi) (-1)^m (2m-1)!! (2/3)^m, far below sqrt(k!).
    if order % 2:
        m = (order - 1) // 2
        closed = 2 / sp.sqrt(3 * sp.pi) * (-1) ** m * sp.factorial2(2 * m - 1) * R(2, 3) ** m
        found = enclosed_hermite_coefficients("erf", order)[order]
    else:
        m = order // 2
        closed = (-1) ** (m + 1) * sp.factorial2(2 * m - 3) / sp.sqrt(2 * sp.pi)
        found = enclosed_hermite_coefficients("relu", order)[order]
    assert found.contains(closed)
    assert found.digits >= 30


constants = st.sampled_from([R(1, 3), R(-5, 7), R(3, 2), sp.S(-2), R(1, 4)])
outer_functions = st.sampled_from(
    [sp.tanh, sigmoid, softplus, sp.sin, sp.cos, sp.erf, sp.atan, sp.asinh, sp.sech, sp.cosh,
     lambda u: sp.exp(-(u**2)), lambda u: sp.sqrt(1 + u**2), lambda u: 1 / (2 + sp.cos(u)),
     lambda u: u**3, lambda u: sp.log(1 + u**2)]
)  # fmt: skip
inner_functions = st.sampled_from([sp.tanh, sigmoid, softplus, sp.sin, sp.erf, relu, sp.Abs])


@given(outer_functions, inner_functions, constants, constants, st.integers(0, 3))
@settings(max_examples=12, deadline=None)
def test_random_compositions_agree_with_quadrature(outer, inner, a, b, k):
    pytest.importorskip("flint")
    f = outer(inner(a * z - b) / 2 + b * z) * hermite_polynomial(k, z)
    found = enclosed_expectation(f, z, digits=25)
    reference = quadrature(f, cuts=[b / a])
    assert abs(found.midpoint - reference) <= found.radius + R(1, 10**20) * (1 + abs(reference))


@given(st.fractions(-3, 3, max_denominator=9), st.fractions(-3, 3, max_denominator=9))
@settings(max_examples=10, deadline=None)
def test_kinks_anywhere(t, s):
    # E relu(z - t) = phi(t) - t Phi(-t), and the expectation is linear.
    pytest.importorskip("flint")
    t, s = (R(x.numerator, x.denominator) for x in (t, s))
    found = enclosed_expectation(relu(z - t) + sp.Abs(z - s), z)

    def rectified(t):
        density = sp.exp(-(t**2) / 2) / sp.sqrt(2 * sp.pi)
        return density - t * sp.erfc(t / sp.sqrt(2)) / 2

    assert found.contains(rectified(t) + 2 * rectified(s) + s)
    assert found.digits >= 30


def test_kinks_at_roots_of_polynomials_and_nested_ones(flint):
    f = relu(z**3 - z - 1) * sp.sign(relu(z) - sp.sqrt(2))
    root = sp.Rational(sp.real_roots(sp.Poly(z**3 - z - 1))[0].evalf(60))
    with mpmath.workdps(40):
        points = [mpmath.mpf(int(root.p)) / int(root.q), mpmath.sqrt(2), 3, 6, 14]
        signs = [-1, 1, 1, 1]
        reference = sum(
            sign * mpmath.quad(lambda t: (t**3 - t - 1) * mpmath.npdf(t), [left, right])
            for sign, left, right in zip(signs, points, points[1:], strict=False)
        )
    found = enclosed_expectation(f, z)
    assert abs(found.midpoint - exact(reference)) < R(1, 10**28)
    assert found.digits >= 30


def test_branch_cuts_off_the_line_are_noticed(flint):
    # Branch points at ±0.01i and ±0.1i: a rule for analytic functions is wrong if it crosses cuts.
    for f in (sp.sqrt(z**2 + R(1, 10**4)), sp.log(z**2 + R(1, 100)), sp.atan(10 * z) * z,
              sp.asinh(100 * z) * z, (z**2 + R(1, 100)) ** R(1, 3)):  # fmt: skip
        with mpmath.workdps(40):
            g = sp.lambdify(z, f, "mpmath")
            ends = [0, "0.01", "0.1", 1, 4, 8, 16]
            reference = 2 * mpmath.quad(
                lambda t, g=g: g(t) * mpmath.npdf(t), [mpmath.mpf(e) for e in ends]
            )
        found = enclosed_expectation(f, z)
        assert abs(found.midpoint - exact(reference)) < R(1, 10**26)


def test_what_lies_far_out_is_found(flint):
    # phi(t)/t**2 (1 + O(1/t**2)) for the tail of relu(z - t).
    found = enclosed_expectation(relu(z - 100), z)
    assert found.digits >= 30
    with mpmath.workdps(40):
        reference = mpmath.npdf(100) - 100 * mpmath.erfc(100 / mpmath.sqrt(2)) / 2
        assert found.contains(exact(reference) * (1 - R(1, 10**9))) is False
        assert abs(found.midpoint / exact(reference) - 1) < R(1, 10**25)


def test_the_tail_is_part_of_the_radius(flint, monkeypatch):
    # With a cutoff that comes much too early the radius is large, and the interval still right.
    def early(bounds, tolerance, least):
        cutoff = least.max(flint.arb(3))
        return cutoff, sum((bound.mass_beyond(cutoff) for bound in bounds), flint.arb(0))

    monkeypatch.setattr(gaussian_enclosures, "cutoff_for", early)
    with pytest.raises(ConvergenceError) as caught:
        enclosed_expectation(sp.exp(z), z)
    reached = caught.value.state
    assert reached.contains(sp.exp(HALF))
    assert R(1, 10**3) < reached.radius < 1


def test_an_expectation_that_may_be_zero_is_enclosed_to_twice_the_digits(flint):
    found = enclosed_expectation(z * sp.tanh(z) + sp.tanh(z) ** 2 - 1, z)  # Stein: exactly 0
    assert found.contains_zero and not found.is_exact
    assert found.radius < R(1, 10**60)
    fast = enclosed_expectation(sp.cos(1000 * z), z)
    assert fast.contains(sp.exp(-500000)) and fast.radius < R(1, 10**60)


@pytest.mark.parametrize("digits", [1, 15, 50, 200])
def test_digits_are_reached(flint, digits):
    found = enclosed_expectation(softplus(z) ** 2, z, digits=digits)
    assert found.digits >= digits
    assert found.contains(enclosed_expectation(softplus(z) ** 2, z, digits=250).midpoint)


def test_inner_expectations_are_constants(flint):
    f = E(sp.tanh(y) ** 2, y) * z * sp.tanh(z) + sp.tanh(z * E(sp.exp(y) * y, y)) ** 2 * sp.sign(z)
    assert enclosed_expectation(f, z).digits >= 30
    nested = enclosed_expectation(relu(z - E(sp.Abs(z), z)), z)
    assert nested.contains(enclosed_expectation(relu(z - sp.sqrt(2 / sp.pi)), z).midpoint)


# -- constants


@pytest.mark.parametrize(
    "value",
    [
        sp.pi, sp.E, sp.GoldenRatio, sp.EulerGamma, sp.Catalan, R(-22, 7),
        sp.sqrt(2) + 5 ** R(1, 3),
        sp.CRootOf(y**5 - y - 1, 0), sp.CRootOf(y**3 - 3 * y + 1, 1), OwenT(1, HALF), OwenT(-2, 3),
        sp.gamma(R(1, 3)), sp.erf(1), sp.erfc(3), sp.cos(2 * sp.pi / 7), sp.asin(R(2, 3)),
        sp.acos(R(1, 5)), sp.atan(-3), sp.asinh(2), sp.tan(1), sp.log(3), sigmoid(2), softplus(-1),
        relu(sp.pi - 3), sp.Abs(sp.sin(4)),
        2 + sp.sign(sp.sin(4)), 1 + sp.Heaviside(sp.cos(3), HALF),
        sp.sech(1), 2**sp.sqrt(2), sp.exp(-1000), sp.factorial(R(1, 2)),
        sp.exp(sp.pi * sp.sqrt(163)) - 262537412640768744,
    ],
)  # fmt: skip
def test_constants_agree_with_their_digits(flint, value):
    found = enclosed_value(value)
    assert found.contains(value)
    assert found.digits >= 30
    assert not found.contains_zero


@pytest.mark.parametrize(
    "zero",
    [
        sp.sqrt(2) + sp.sqrt(3) - sp.sqrt(5 + 2 * sp.sqrt(6)),
        sp.cos(sp.pi / 7) - sp.cos(2 * sp.pi / 7) + sp.cos(3 * sp.pi / 7) - HALF,
        4 * sp.atan(R(1, 5)) - sp.atan(R(1, 239)) - sp.pi / 4,
        E(sp.tanh(z) ** 2, z) + E(z * sp.tanh(z), z) - 1,
        7 * E(z * sp.erf(z), z) - 14 / sp.sqrt(3 * sp.pi),
    ],
)
def test_zeros_are_never_proven_to_be_other_than_zero(flint, zero):
    found = enclosed_value(zero)
    assert found.contains_zero and not found.is_exact
    assert found.radius < R(1, 10**58)


def test_expectations_in_constants(flint):
    found = enclosed_value(E(z * sp.tanh(z), z) ** 2 - R(1, 3))
    assert not found.contains_zero
    assert found.contains((E(z * sp.tanh(z), z) ** 2 - R(1, 3)).evalf(60))
    assert enclosed_value(E(sp.tanh(z), z) * sp.pi).is_exact


def test_smooth_expectations_in_a_sum_are_one_integral(flint):
    # Kinks stay apart; a sum whose parts cancel is the integral of what is left.
    total = 2 * E(z * sp.tanh(z), z) - E(y**2 * sp.sech(y) ** 2, y) / 3 + E(sp.Abs(y - 1), y) + 1
    numbers = gaussian_enclosures.ConstantBalls(total)
    assert len(numbers._inner) == 2
    found = enclosed_value(total)
    with mpmath.workdps(40):
        line = [-14, -4, 0, 1, 4, 14]

        def integrand(x):
            smooth = 2 * x * mpmath.tanh(x) - x**2 * mpmath.sech(x) ** 2 / 3
            return (smooth + abs(x - 1)) * mpmath.npdf(x)

        exact = 1 + mpmath.quad(integrand, line)
        assert abs(exact - mpmath.mpf(found.midpoint.p) / found.midpoint.q) < 1e-30
    assert found.radius < R(1, 10**29)


def test_multiples_that_are_no_real_numbers_stay_apart(flint):
    first, second = E(y * sp.tanh(y), y), E(sp.sech(y) ** 2 / (1 + y**2), y)
    # Of the variable of another expectation, and with imaginary parts that cancel.
    inside = E(z * first * sp.tanh(z) + z**2 * second, z)
    assert enclosed_value(inside - first**2 - second).contains_zero
    total = (1 + sp.I) * first + (1 - sp.I) * E(sp.sech(y) ** 2, y)
    assert enclosed_value(total - 2 * first).contains_zero


def test_casus_irreducibilis_goes_through_complex_numbers(flint):
    root = (1 + sp.I) ** R(1, 3) + (1 - sp.I) ** R(1, 3)
    assert enclosed_value(root).contains(2 * 2 ** R(1, 6) * sp.cos(sp.pi / 12))


# -- refusals


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (sp.exp(z**2 / 2), AssumptionError, r"not known to grow slower than exp\(z\*\*2/2\)"),
        (sp.exp(-(z**3)), AssumptionError, "not known to grow slower"),
        (sp.exp(sp.exp(z)), AssumptionError, "not known to grow slower"),
        (sp.sqrt(z), AssumptionError, "not real at z = -"),
        (sp.exp(sp.I * z), AssumptionError, "not real"),
        (sp.gamma(z), UnsupportedExpressionError, "function gamma"),
        (sp.Function("f")(z), UnsupportedExpressionError, "function f"),
        (sp.tan(z), UnsupportedExpressionError, "function tan"),
        (sp.cos(sp.sqrt(-1 - z**2)), UnsupportedExpressionError, "not known to be real"),
        (sp.Abs(sp.sin(z)), UnsupportedExpressionError, r"zeros of sin\(z\) are not known"),
        (sp.Piecewise((z, z > 0), (0, True)), UnsupportedExpressionError, "write it with relu"),
        (z * sp.tanh(sp.Float(0.1) * z), UnsupportedExpressionError, r"Rational\('0.1"),
        (E(sp.tanh(y * z), y), UnsupportedExpressionError, "depends on another variable"),
        (1 / relu(z - 1), AssumptionError, "infinite or undefined between -oo and 1"),
        (1 / z, ConvergenceError, "may have a singularity"),
        (1 / (z - 1) ** 2, ConvergenceError, "may have a singularity"),
        (sp.log(sp.Abs(z)), ConvergenceError, "may have a singularity"),
        (y * z, ParameterError, "holds the symbols y"),
        (z * sp.Symbol("z"), ParameterError, "same name, different assumptions"),
    ],
)
def test_refusals(flint, f, error, message):
    with pytest.raises(error, match=message):
        enclosed_expectation(f, z)


def test_fast_oscillations_are_refused(flint, monkeypatch):
    # With a fraction of the evaluations: what is refused is the same, in less time.
    monkeypatch.setattr(gaussian_enclosures, "_EVALUATIONS", 1000)
    monkeypatch.setattr(gaussian_enclosures, "_EVALUATIONS_PER_BIT", 1)
    with pytest.raises(ConvergenceError, match="varies too fast"):
        enclosed_expectation(sp.cos(z**6), z, digits=5)


@pytest.mark.parametrize("digits", [0, 1001, -1, True, 30.0, "30"])
def test_digits_out_of_range(digits):
    for call in (
        lambda: enclosed_expectation(z**2, z, digits=digits),
        lambda: enclosed_hermite_coefficients("tanh", 2, digits=digits),
        lambda: enclosed_value(sp.pi, digits=digits),
    ):
        with pytest.raises(ParameterError, match="digits has to be"):
            call()


@pytest.mark.parametrize("order", [-1, 201, 2.0])
def test_order_out_of_range(order):
    with pytest.raises(ParameterError, match="order has to be"):
        enclosed_hermite_coefficients("tanh", order)


def test_other_wrong_arguments(flint):
    with pytest.raises(ParameterError, match="declared real"):
        enclosed_expectation(z, sp.Symbol("z"))
    with pytest.raises(ParameterError, match="SymPy expression"):
        enclosed_expectation("tanh(z)", z)
    with pytest.raises(ParameterError, match="SymPy expression"):
        enclosed_value(3)
    with pytest.raises(ParameterError, match="holds the symbols y, z"):
        enclosed_value(y + z)
    with pytest.raises(AssumptionError, match=r"f exp.* has to be real"):
        enclosed_hermite_coefficients("exp(z**2/3)", 2)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (sp.I + 1, AssumptionError, "not real"),
        (sp.oo, UnsupportedExpressionError, "no proven enclosure"),
        (sp.Float(0.5), UnsupportedExpressionError, "not exact"),
        (sp.zeta(3), UnsupportedExpressionError, "function zeta"),
        (sp.exp(10**9), UnsupportedExpressionError, "not written down"),
        (1 / (sp.sqrt(2) + sp.sqrt(3) - sp.sqrt(5 + 2 * sp.sqrt(6))), ConvergenceError, "no digit"),
    ],
)
def test_constants_that_have_no_enclosure(flint, value, error, message):
    with pytest.raises(error, match=message):
        enclosed_value(value)


def test_a_failure_carries_what_was_reached(flint, monkeypatch):
    monkeypatch.setattr(gaussian_enclosures, "_ATTEMPTS", 1)
    with pytest.raises(ConvergenceError, match=r"30 digits of .* are not reached") as caught:
        enclosed_expectation(sp.cos(7 * z), z)
    assert caught.value.state.contains(sp.exp(-R(49, 2)))
    assert 0 < caught.value.residual < 1


def test_the_precision_of_python_flint_is_left_as_it_was(flint):
    before = flint.ctx.prec
    enclosed_expectation(sp.tanh(z) ** 2, z, digits=60)
    with pytest.raises(ConvergenceError):
        enclosed_expectation(1 / z**2, z)
    assert flint.ctx.prec == before
