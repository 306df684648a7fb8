"""Proximal operators and Moreau envelopes: closed forms, derivatives, digits, refusals."""

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import ExpressionError, ParameterError, UnsupportedExpressionError
from giantstep.symbolic.expressions.functions import relu, softplus
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.losses.convex_losses import require_convex, smooth_pieces
from giantstep.symbolic.losses.proximal import MoreauEnvelope, Proximal

x, c, y, z = sp.symbols("x c y z", real=True)
s, delta, epsilon, q = sp.symbols("s delta epsilon q", positive=True)

HUBER = sp.Piecewise((x**2 / 2, sp.Abs(x) <= delta), (delta * (sp.Abs(x) - delta / 2), True))
QUADRATIC_PIECES = {
    "square": (x - y) ** 2 / 2,
    "absolute": sp.Abs(x - y),
    "hinge": sp.Max(0, 1 - x),
    "hinge, other label": relu(1 + x),
    "squared hinge": relu(1 - x) ** 2 / 2,
    "Huber": HUBER,
    "Huber by relu": x**2 / 2 - relu(sp.Abs(x) - delta) ** 2 / 2,
    "insensitive": relu(sp.Abs(x) - epsilon),
    "quantile": 3 * relu(x - y) + relu(y - x) / 2,
    "three slopes": sp.Max(x, -2 * x, 3 * x - 4),
    "elastic net": x**2 + sp.Abs(x) / 3,
    "linear": y * x,
    "constant": sp.Integer(2),
}
SMOOTH = {
    "logistic": softplus(-y * x),
    "exponential": sp.exp(-x),
    "cosh": sp.cosh(delta * x),
    "quartic": x**4 / 4 + y * x,
}
VALUES = {
    s: sp.Rational(3, 4),
    delta: sp.Rational(2, 3),
    epsilon: sp.Rational(1, 2),
    y: sp.Rational(-4, 3),
}
CENTERS = [sp.Rational(k, 10) for k in (-52, -13, -4, 0, 1, 9, 12, 30, 71)]


@pytest.mark.parametrize("loss", [*QUADRATIC_PIECES.values(), *SMOOTH.values()], ids=str)
@pytest.mark.parametrize("center", CENTERS[::4])
def test_the_point_minimises(loss, center):
    node = Proximal(loss, x, center, s).subs(VALUES)
    point = node.evalf(30) if isinstance(node, Proximal) else sp.N(node, 30)
    here = loss.subs(VALUES)

    def objective(shift):
        p = point + shift
        return (p - center) ** 2 / (2 * VALUES[s]) + here.subs(x, p)

    # Off by t the objective grows by t^2/(2 s) at least.
    for t in (sp.Rational(1, 10**6), -sp.Rational(1, 10**6)):
        growth = t**2 / (2 * VALUES[s])
        assert (objective(t) - objective(0)).evalf(25) >= growth * (1 - sp.Rational(1, 10**6))


@pytest.mark.parametrize("loss", QUADRATIC_PIECES.values(), ids=QUADRATIC_PIECES.keys())
def test_closed_forms_agree_with_the_digits(loss):
    node, envelope = Proximal(loss, x, c, s), MoreauEnvelope(loss, x, c, s)
    for center in CENTERS[1::3]:
        at = {**VALUES, c: center}
        closed = node.doit().subs(at)
        assert not closed.has(Proximal)
        assert abs(closed.evalf(40) - sp.N(node.subs(at), 40)) < 1e-38
        assert abs(envelope.doit().subs(at).evalf(40) - sp.N(envelope.subs(at), 40)) < 1e-37


def test_known_closed_forms():
    # Soft thresholding, and the prox of the hinge: Parikh and Boyd, Proximal Algorithms (2014), 6.
    assert Proximal(sp.Abs(x), x, c, s).doit() == relu(c - s) - relu(-c - s)
    assert Proximal(sp.Max(0, 1 - x), x, c, s).doit() == 1 - relu(1 - s - c) + relu(c - 1)
    assert sp.simplify(Proximal(x**2 / 2, x, c, s).doit() - c / (1 + s)) == 0
    assert (
        sp.simplify(MoreauEnvelope((x - y) ** 2 / 2, x, c, s).doit() - (c - y) ** 2 / (2 + 2 * s))
        == 0
    )
    # The envelope of the absolute value is Huber's function with width s, divided by s.
    envelope = MoreauEnvelope(sp.Abs(x), x, c, s).doit()
    for center in CENTERS:
        huber = (
            center**2 / 2 if abs(center) <= VALUES[s] else VALUES[s] * (abs(center) - VALUES[s] / 2)
        )
        assert sp.nsimplify(envelope.subs({c: center, **VALUES})) == huber / VALUES[s]


def test_thresholds_are_exact():
    soft = Proximal(sp.Abs(x), x, c, s).doit()
    assert soft.subs({c: sp.Rational(1, 10), s: 1}) == 0
    assert Proximal(relu(1 - x), x, sp.Rational(1, 2), 1).evalf(20) - 1 == 0


@pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH.keys())
@pytest.mark.parametrize("node", [Proximal, MoreauEnvelope])
def test_derivatives_of_smooth_losses(node, loss):
    _check_derivatives(node(loss, x, c, s), [sp.Rational(1, 3), sp.Rational(-5, 2)])


@pytest.mark.parametrize("loss", QUADRATIC_PIECES.values(), ids=QUADRATIC_PIECES.keys())
@pytest.mark.parametrize("node", [Proximal, MoreauEnvelope])
def test_derivatives_of_kinked_losses(node, loss):
    # No center at which the point changes its piece.
    _check_derivatives(node(loss, x, c, s), [sp.Rational(-33, 10)])


def _check_derivatives(node, centers):
    h = sp.Rational(1, 10**12)
    for center in centers:
        at = {**VALUES, c: center}
        for symbol in sorted(node.free_symbols, key=str):
            ends = [sp.N(node.subs({**at, symbol: at[symbol] + d}), 45) for d in (h, -h)]
            quotient = (ends[0] - ends[1]) / (2 * h)
            # Error of the central difference: h^2 times a third derivative of order one.
            assert abs(sp.N(node.diff(symbol).subs(at), 30) - quotient) < 1e-20, symbol


def test_chain_rule_through_center_and_step():
    loss = softplus(-x)
    node = Proximal(loss, x, sp.sqrt(q) * z, 1 / q)
    by_parts = Proximal(loss, x, c, s)
    expected = by_parts.diff(c) * z / (2 * sp.sqrt(q)) - by_parts.diff(s) / q**2
    at = {q: sp.Rational(5, 3), z: sp.Rational(-2, 3)}
    expected = expected.subs({c: sp.sqrt(q) * z, s: 1 / q}).subs(at)
    assert abs(node.diff(q).subs(at).evalf(30) - expected.evalf(30)) < 1e-28


def test_expectations_differentiate_under_the_integral():
    node = GaussianExpectation(Proximal(softplus(-x), x, sp.sqrt(q) * z, s) ** 2, z)
    assert isinstance(node.doit(), GaussianExpectation)
    assert node.diff(q).has(Proximal)
    assert node.free_symbols == {q, s}


@pytest.mark.parametrize(
    ("loss", "center", "step", "expected"),
    [
        # The logistic loss is linear far below zero and vanishes far above.
        (softplus(-x), -800, 3, "-797"),
        (softplus(-x), 10**6, 3, "1000000"),
        # W(3 e^40) − 40 in terms of Lambert's function.
        (sp.exp(-x), -40, 3, None),
        (sp.cosh(x), 0, 3, "0"),
        (x**4, 30, 1, None),
        # Between the slopes of the kink.
        (sp.Abs(x) + softplus(-x), sp.Rational(1, 3), 3, "0"),
    ],
)
def test_extreme_centers(loss, center, step, expected):
    value = Proximal(loss, x, center, step).evalf(40)
    if expected is not None:
        assert value - sp.Integer(expected) == 0
    elif loss == x**4:
        assert abs(value - 30 + 4 * value**3) < 1e-36
    else:
        with mpmath.workdps(60):
            lambert = mpmath.lambertw(3 * mpmath.exp(40)).real - 40
            assert abs(mpmath.mpf(str(value)) - lambert) < mpmath.mpf(10) ** -38


def test_relative_digits_of_a_small_point():
    tiny = sp.Rational(1, 10**60)
    value = Proximal(sp.sinh(x) ** 2 / 2 + x**2, x, tiny, 1).evalf(20)
    assert abs(value / (tiny / 4) - 1) < 1e-18


@settings(max_examples=12)
@given(
    st.fractions(-40, 40, max_denominator=50), st.fractions("1/1000", 1000, max_denominator=1000)
)
def test_firmly_nonexpansive(center, step):
    # Moreau: (P(a) − P(b))² ≤ (P(a) − P(b)) (a − b).
    a, b = sp.Rational(str(center)), sp.Rational(str(center)) + sp.Rational(1, 3)
    step = sp.Rational(str(step))
    low, high = (Proximal(softplus(-x), x, v, step).evalf(25) for v in (a, b))
    assert 0 < high - low <= (b - a) * (1 + sp.Rational(1, 10**20))


def test_pieces():
    kinks, pieces = smooth_pieces(HUBER, x)
    assert kinks == (-delta, delta)
    slopes = [sp.expand(piece.diff(x)) for piece in pieces]
    assert slopes == [-delta, x, delta]
    assert Proximal(HUBER, x, c, s).loss == (
        x**2 / 2 - relu(x - delta) ** 2 / 2 - relu(-x - delta) ** 2 / 2
    )
    assert Proximal(sp.Min(2 * x, 3 * x) * -1, x, c, s).loss == -2 * x + relu(-x)
    assert smooth_pieces(sp.Abs(x) + softplus(-x), x)[0] == (0,)


def test_latex():
    assert r"\arg\,min" in sp.latex(Proximal(softplus(-x), x, c, s)).replace("arg", r"\arg")
    assert sp.latex(MoreauEnvelope(x**2, x, c, s)).startswith(r"\min_{x}")
    assert str(Proximal(x**2, x, c, s)) == "prox[x**2, x](c, s)"


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (-(x**2), r"loss must be convex in x, but -x\*\*2 lies above a chord at x = "),
        (sp.sin(x), "must be convex in x"),
        (sp.Min(x, 0), "must be convex in x"),
        (sp.sign(x), "must be convex in x"),
        (-delta * sp.cosh(x), "must be convex in x"),
        (sp.sqrt(sp.Abs(x)), "must be convex in x"),
        (-sp.log(x), "must be a finite real number for every real x"),
    ],
)
def test_losses_that_are_refused(loss, message):
    with pytest.raises(ParameterError, match=message):
        Proximal(loss, x, c, s)


@pytest.mark.parametrize("place", [-5, -3, sp.Rational(-3, 2), 0, sp.Rational(1, 2), 2, 4, 5])
def test_a_dent_is_seen_wherever_it_is_near_the_origin(place):
    # x²/10 - exp(-u²) bends down where u² is near 3/2.
    dented = x**2 / 10 - sp.exp(-((x - place) ** 2))
    with pytest.raises(ParameterError, match="lies above a chord"):
        require_convex(dented, x)
    require_convex(x**2 - sp.exp(-((x - place) ** 2)), x)


@pytest.mark.parametrize("loss", [y * x**2, softplus(-y * x), y**2 * sp.cosh(x)])
def test_losses_convex_for_some_parameters_are_taken(loss):
    assert isinstance(Proximal(loss, x, c, s), Proximal)


def test_other_arguments_that_are_refused():
    for step in (0, -1, -s):
        with pytest.raises(ParameterError, match="step must be positive"):
            Proximal(x**2, x, c, step)
    with pytest.raises(ParameterError, match="declared real and nothing else, got s"):
        Proximal(s**2, s, c, 1)
    with pytest.raises(ParameterError, match="center must be a real number"):
        Proximal(x**2, x, sp.I, s)
    with pytest.raises(ExpressionError, match="not the text"):
        Proximal("x**2", x, c, s)
    with pytest.raises(ParameterError, match="step must be positive, got -1/2"):
        Proximal(x**2, x, 1, c).subs(c, sp.Rational(-1, 2)).evalf()


def test_a_kinked_loss_without_closed_form_has_no_derivative_by_rule():
    node = Proximal(sp.Abs(x) + softplus(-x), x, c, s)
    assert node.doit() == node
    with pytest.raises(UnsupportedExpressionError, match="has kinks, and is not quadratic"):
        node.diff(c)


def test_kinks_in_unknown_order_are_named():
    a, b = sp.symbols("a b", real=True)
    with pytest.raises(UnsupportedExpressionError, match="which of the kinks"):
        smooth_pieces(sp.Abs(x - a) + sp.Abs(x - b), x)
    assert isinstance(Proximal(sp.Abs(x - a) + sp.Abs(x - b), x, c, s).doit(), Proximal)


def test_the_envelope_of_a_smooth_loss_keeps_its_digits_at_tiny_steps():
    # As a difference, (P - c)²/(2s) would lose its digits in double precision.
    t, c0 = sp.symbols("t c0", real=True)
    s0 = sp.Symbol("s0", positive=True)
    written = MoreauEnvelope(sp.cosh(t), t, c0, s0).rewrite(Proximal)
    point = Proximal(sp.cosh(t), t, c0, s0)
    assert written == sp.cosh(point) + s0 * sp.sinh(point) ** 2 / 2
