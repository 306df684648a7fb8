"""Derivatives of solutions by the implicit function theorem, against closed forms."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

from giantstep.errors import ParameterError, UnsupportedExpressionError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.gaussian.stein_lemma import smooth_partial
from giantstep.symbolic.systems.equations import FreeEnergy
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem
from giantstep.symbolic.systems.sensitivities import (
    derivative_name,
    with_derivatives_along,
    with_sensitivities,
)

q, t, a = sp.symbols("q t a", positive=True)
x, z, h = sp.symbols("x z h", real=True)


def expectation(integrand):
    return GaussianExpectation(integrand, z)


def at_solution(system, values):
    """Solve explicit equations one after the other: each unknown as a number."""
    for e in system.equations:
        right = e.residual.xreplace(values)
        (values[e.unknown],) = (
            [values[e.unknown]] if e.unknown in values else sp.solve(right, e.unknown)
        )
    return values


@pytest.fixture(scope="module")
def golden():
    # q = t/(1 + q), solved by q = (sqrt(1 + 4t) - 1)/2.
    return SaddlePointSystem.from_fixed_point(
        {q: t * a / (1 + q)}, name="golden", parameters=(t, a), outputs={"square": q**2 + t}
    )


def test_first_and_second_derivatives_of_a_quadratic_equation(golden):
    system = with_sensitivities(golden, (t,), order=2)
    exact = (sp.sqrt(1 + 4 * t) - 1) / 2
    point = {t: sp.Rational(3, 4), a: sp.Integer(1)}
    values = at_solution(system, {**point, q: exact.xreplace(point)})
    for order in (1, 2):
        name = derivative_name("q", *["t"] * order)
        unknown = {code: s for s, code in system.identifiers.items()}[name]
        assert values[unknown] == exact.diff(t, order).xreplace(point)
        output = system.outputs[derivative_name("square", *["t"] * order)].xreplace(values)
        assert output == (exact**2 + t).diff(t, order).xreplace(point)


def test_mixed_second_derivatives_are_there_once(golden):
    system = with_sensitivities(golden, (t, a), order=2)
    codes = [code for code in system.identifiers.values() if code.startswith("d2_q")]
    assert codes == ["d2_q_d_t_d_t", "d2_q_d_t_d_a", "d2_q_d_a_d_a"]
    exact = (sp.sqrt(1 + 4 * t * a) - 1) / 2
    point = {t: sp.Rational(3, 8), a: sp.Integer(2)}
    values = at_solution(system, {**point, q: exact.xreplace(point)})
    unknown = {code: s for s, code in system.identifiers.items()}["d2_q_d_t_d_a"]
    assert values[unknown] == exact.diff(t, a).xreplace(point)


def test_derivatives_along_a_curve_follow_its_acceleration(golden):
    # t = (1 + u)**2 at u = 1/2, where t' = 3 and t'' = 2.
    rate, acceleration = sp.symbols("rate acceleration", real=True)
    system = with_derivatives_along(golden, {t: rate, rate: acceleration}, label="u", order=2)
    exact = (sp.sqrt(1 + 4 * (1 + x) ** 2) - 1) / 2
    point = {
        t: sp.Rational(9, 4),
        a: sp.Integer(1),
        rate: sp.Integer(3),
        acceleration: sp.Integer(2),
    }
    values = at_solution(system, {**point, q: exact.xreplace({x: sp.Rational(1, 2)})})
    unknown = {code: s for s, code in system.identifiers.items()}["d2_q_d_u_d_u"]
    assert sp.simplify(values[unknown] - exact.diff(x, 2).subs(x, sp.Rational(1, 2))) == 0


def test_a_parameter_that_does_not_matter_adds_no_unknowns():
    system = SaddlePointSystem.from_fixed_point(
        {q: 1 / (1 + q), x: q + t}, name="two", parameters=(t,), outputs={"q_only": q}
    )
    found = with_sensitivities(system, (t,))
    assert [found.identifiers[e.unknown] for e in found.equations] == ["q", "x", "d_x_d_t"]
    assert found.outputs["d_q_only_d_t"] == 0


def test_implicit_conditions_keep_the_unknowns_that_they_determine():
    # Each condition is listed under the unknown that the other one determines.
    y = sp.Symbol("y", real=True)
    system = SaddlePointSystem.from_fixed_point(
        {x: sp.Eq(y**3 + y, t), y: sp.Eq(x - y, 0)}, name="crossed", parameters=(t,)
    )
    found = with_sensitivities(system, (t,))
    assert {found.identifiers[u] for u in found.unknowns} == {"x", "y", "d_x_d_t", "d_y_d_t"}


def test_the_derivative_of_a_free_energy_is_its_partial_derivative():
    # Envelope theorem. Curie-Weiss with a field: f = -m^2/2 + m m_hat - log 2 cosh(b(m_hat + h))/b.
    m, m_hat = sp.symbols("m m_hat", real=True)
    b = sp.Symbol("b", positive=True)
    value = -(m**2) / 2 + m * m_hat - sp.log(2 * sp.cosh(b * (m_hat + h))) / b
    energy = FreeEnergy(value, (m,), (m_hat,), (b, h))
    system = SaddlePointSystem.from_free_energy(energy, name="magnet", outputs={"f": value})
    found = with_sensitivities(system, (h,))
    total = found.outputs["d_f_d_h"]
    # On the solution m_hat = m and m = tanh(b(m_hat + h)), whatever the tangents are.
    solution = {m: sp.tanh(b * (x + h)), m_hat: x}
    by_hand = value.diff(h).subs({m_hat: x})
    stationary = total.subs(solution).subs(h, sp.atanh(x) / b - x) - by_hand.subs(
        h, sp.atanh(x) / b - x
    )
    assert sp.simplify(stationary) == 0


def test_tables_have_tables_of_derivatives():
    kappa = sp.Symbol("kappa", real=True)
    f, g = (sp.Function(name, real=True)(kappa) for name in "fg")
    definitions = {
        f: expectation(sp.tanh(kappa + a * z)),
        g: expectation((sp.tanh(kappa + a * z) - f) ** 2),
    }
    system = SaddlePointSystem.from_fixed_point(
        {q: GaussianExpectation(f**2 / (1 + q), kappa) + GaussianExpectation(g, kappa)},
        name="tables", parameters=(a,), definitions=definitions, node=kappa,
    )  # fmt: skip
    found = with_sensitivities(system, (a,))
    point = {a: sp.Rational(1, 2), kappa: sp.Rational(1, 3)}

    def number(table, values):
        chain = dict(found.definitions)
        expr = chain[table]
        while any(expr.has(k) for k in chain):
            expr = expr.subs(chain)
        return expr.subs(values).evalf(30)

    step = sp.Rational(1, 10**10)
    for table, derivative in zip(definitions, list(found.definitions)[2:], strict=True):
        ends = [number(table, {**point, a: point[a] + s * step}) for s in (1, -1)]
        # Central difference: error of the order of step**2, 30 digits leave 20.
        assert abs((ends[0] - ends[1]) / (2 * step) - number(derivative, point)) < 1e-17


JUMPS = {
    "sign": sp.sign(h + a * z),
    "step times a smooth function": sp.Heaviside(h + a * z, sp.Rational(1, 2)) * sp.cos(z + h),
    "kink": sp.Abs(sp.tanh(h + a * z)) * sp.exp(z / 3),
    "two kinks": sp.Abs((h + a * z) ** 2 - 1) * sp.sin(h * z),
    "branches": sp.Piecewise((sp.sin(z), z < h), (sp.cos(z) + a, True)),
    "clip": sp.Max(-1, sp.Min(1, h + a * z)) ** 2,
    "power of a step": sp.Heaviside(h + a * z, sp.Rational(1, 2)) ** 3,
}


@pytest.mark.parametrize("name", JUMPS)
@pytest.mark.parametrize("symbol", [h, a])
def test_derivatives_of_expectations_with_jumps(name, symbol):
    point = {h: sp.Rational(2, 5), a: sp.Rational(3, 2)}
    found = smooth_partial(expectation(JUMPS[name]), symbol).subs(point).evalf(20)

    def value(shift):
        # Cut at the jumps, so that every piece is smooth for the rule of mpmath.
        ctx = mpmath.mp.clone()
        ctx.dps = 20
        moved = {**point, symbol: point[symbol] + shift}
        function = sp.lambdify(z, JUMPS[name].subs(moved), "mpmath")
        b = [moved[h], -moved[h] / moved[a], *((s - moved[h]) / moved[a] for s in (1, -1))]
        edges = sorted([ctx.mpf(-14), *(ctx.mpf(x.p) / x.q for x in b), ctx.mpf(14)])
        return ctx.quad(lambda y: function(y) * ctx.npdf(y), edges)

    step = sp.Rational(1, 10**6)
    difference = (value(step) - value(-step)) / (2 * 10**-6)
    # The step leaves 1e-12 times a third derivative, rounding 1e-14.
    assert float(found) == pytest.approx(float(difference), rel=1e-6, abs=1e-6)


def test_second_derivative_of_a_kink_is_a_density():
    # E|h + a z| has second derivative 2 phi(h/a)/a in h.
    once = smooth_partial(expectation(sp.Abs(h + a * z)), h)
    twice = smooth_partial(once, h)
    density = 2 * sp.exp(-(h**2) / (2 * a**2)) / (sp.sqrt(2 * sp.pi) * a)
    assert sp.simplify(twice - density) == 0


def test_the_derivative_of_a_spread_vanishes_with_it():
    # d/da E tanh(h + a z) = a E tanh''(h + a z), no matter how small a is.
    found = smooth_partial(expectation(sp.tanh(h + a * z)), a)
    point = {h: sp.Rational(1, 3), a: sp.Rational(1, 10**20)}
    limit = sp.tanh(h).diff(h, 2).subs(point).evalf(20) * point[a]
    assert abs(found.subs(point).evalf(20) / limit - 1) < 1e-15


def test_refusals_name_the_argument(golden):
    with pytest.raises(ParameterError, match="q is no parameter of the system"):
        with_sensitivities(golden, (q,))
    with pytest.raises(ParameterError, match="outputs: 'cube'"):
        with_sensitivities(golden, (t,), ["cube"])
    with pytest.raises(ParameterError, match="order must be from 1"):
        with_sensitivities(golden, (t,), order=0)
    with pytest.raises(ParameterError, match="must not repeat"):
        with_sensitivities(golden, (t, t))
    with pytest.raises(ParameterError, match="at least one parameter"):
        with_sensitivities(golden, ())
    with pytest.raises(ParameterError, match="the unknown q"):
        with_derivatives_along(golden, {t: q})
    with pytest.raises(UnsupportedExpressionError, match="jumps with h"):
        smooth_partial(expectation(sp.Heaviside(h) * sp.tanh(z) + z**2 * sp.sign(h)), h)
