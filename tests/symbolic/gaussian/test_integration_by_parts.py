"""Gaussian integration by parts, and equations of free energies as papers print them."""

import numpy as np
import pytest
import sympy as sp

from giantstep.derivations.kernels.lower import lower
from giantstep.errors import AssumptionError, ParameterError, UnsupportedExpressionError
from giantstep.symbolic.expressions.functions import (
    erfcx,
    log_normal_cdf,
    normal_cdf,
    relu,
    softplus,
)
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.gaussian.integration_by_parts import linear_by_parts, reduced
from giantstep.symbolic.gaussian.stein_lemma import smooth_partial
from giantstep.symbolic.systems.equations import FreeEnergy, saddle_point_equations, stationarity
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

q, qhat, beta, alpha, rho = sp.symbols("q qhat beta alpha rho", positive=True)
a, h, kappa, m, z = sp.symbols("a h kappa m z", real=True)
root = sp.sqrt(q) * z
POINT = {
    q: sp.Rational(3, 5), qhat: sp.Rational(7, 5), beta: sp.Rational(13, 10), m: sp.Rational(1, 2),
    alpha: sp.Rational(6, 5), rho: sp.Rational(1, 7), kappa: sp.Rational(1, 5),
    a: sp.Rational(1, 3), h: sp.Rational(2, 5),
}  # fmt: skip


def E(f):
    return GaussianExpectation(f, z)


def H(x):
    return sp.erfc(x / sp.sqrt(2)) / 2


def value(expr):
    expr = expr.subs(POINT)
    return expr.xreplace({n: n.evalf(25) for n in expr.atoms(GaussianExpectation)}).evalf(25)


# -- the lemma


@pytest.mark.parametrize(
    "f",
    [
        z * sp.tanh(a * z + h), z**2 * sp.tanh(a * z), z * sp.exp(-(z**2) / 4) * sp.erf(z),
        z / (1 + z**2), z * sp.log(2 + sp.tanh(z)), z * relu(z - a) ** 2 + sp.cos(z),
        z * sp.sign(z - a), z**3 * sp.Heaviside(z - a), z * sp.Abs(z) * sp.sign(z - a),
    ],
    ids=str,
)  # fmt: skip
def test_a_factor_is_exchanged_for_a_derivative(f):
    found = E(f).by_parts()
    assert found != E(f)
    assert abs(value(found) - value(E(f))) < 1e-20


def test_from_right_to_left():
    node = E(1 - sp.tanh(z) ** 2).by_parts(sp.tanh(z))
    assert node == E(z * sp.tanh(z))
    assert abs(value(node) - value(E(1 - sp.tanh(z) ** 2))) < 1e-20
    assert E(sp.Heaviside(z - a)).by_parts(relu(z - a)) == E(z * relu(z - a))


@pytest.mark.parametrize(
    ("f", "primitive", "error", "words"),
    [
        (sp.cos(z), None, ParameterError, "no term of the integrand .* has a factor z"),
        (sp.cos(z), sp.sin(2 * z), ParameterError, "derivative of primitive by z must be"),
        (z / sp.tanh(z), None, AssumptionError, "1/tanh"),
        (z * sp.log(z**2), None, AssumptionError, "log"),
        (1 / z, sp.log(z), AssumptionError, "log"),
        (z * sp.tan(z), None, AssumptionError, "tan"),
        (z * sp.Function("f")(z), None, UnsupportedExpressionError, "derivative by z of f"),
    ],
    ids=str,
)
def test_where_the_lemma_does_not_hold(f, primitive, error, words):
    with pytest.raises(error, match=words):
        E(f).by_parts(primitive)


# -- free energies: what is differentiated, by what, and how the derivative prints

on_line = root + q
field = root + h
margin = (kappa + root) / sp.sqrt(1 - q)
tail = -sp.sqrt(q) * z / sp.sqrt(1 - q)
GARDNER = (
    "-alpha*E_z[exp(-(kappa + sqrt(q)*z)**2/(1 - q))/"
    "normal_cdf(-(kappa + sqrt(q)*z)/sqrt(1 - q))**2]/(4*pi*(1 - q))"
)
WINDOW = (  # A field inside of (-beta, beta).
    "E_z[(2*exp(-(beta - sqrt(q)*z)**2/(2*(1 - q)) - (beta + sqrt(q)*z)**2/(2*(1 - q)))"
    " - exp(-(beta + sqrt(q)*z)**2/(1 - q)) - exp(-(beta - sqrt(q)*z)**2/(1 - q)))"
    "/(2*normal_cdf((beta - sqrt(q)*z)/sqrt(1 - q)) + 2*normal_cdf((beta + sqrt(q)*z)/sqrt(1 - q))"
    " - 2)**2]/(pi*(1 - q))"
)
CASES = [
    (2 * E(sp.log(2 * sp.cosh(on_line))) - q * (1 + a), q, "-a + E_z[tanh(sqrt(q)*z + q)]"),
    (E(softplus(2 * on_line)), q, "E_z[tanh(sqrt(q)*z + q)]/2 + 3/2"),
    (
        (1 - q) ** 2 / 2 + E(sp.log(2 * sp.cosh(root + h))),
        q,
        "q - E_z[tanh(h + sqrt(q)*z)**2]/2 - 1/2",
    ),
    (
        beta**2 * (1 - q) ** 2 / 4 + E(sp.log(sp.exp(beta * field) + sp.exp(-beta * field))),
        q,
        "beta**2*q/2 - beta**2*E_z[tanh(beta*(h + sqrt(q)*z))**2]/2",
    ),
    (E(sp.log(2 * sp.cosh(root))), q, "E_z[1 - tanh(sqrt(q)*z)**2]/2"),
    (alpha * E(sp.log(H(margin))), q, GARDNER),
    (alpha * E(log_normal_cdf(-margin)), q, GARDNER),
    (alpha * E(sp.log((1 - sp.erf(margin / sp.sqrt(2))) / 2)), q, GARDNER),
    (E(sp.log(sum(sp.erf((beta + s * root) / sp.sqrt(2 - 2 * q)) for s in (1, -1)))), q, WINDOW),
    (
        2 * alpha * E(H(-tail) * sp.log(H(-tail))),
        q,
        "alpha*E_z[exp(-q*z**2/(1 - q))/normal_cdf(-sqrt(q)*z/sqrt(1 - q))]/(2*pi*(1 - q))",
    ),
    (
        2 * alpha * E(normal_cdf(tail) * log_normal_cdf(tail)),
        q,
        "alpha*E_z[exp(-q*z**2/(1 - q))/normal_cdf(-sqrt(q)*z/sqrt(1 - q))]/(2*pi*(1 - q))",
    ),
]  # fmt: skip


def condition(energy, x):
    return stationarity(FreeEnergy(energy, (x,), (), ()))[x]


@pytest.mark.parametrize(("energy", "x", "printed"), CASES, ids=range(len(CASES)))
def test_conditions_print_as_in_papers(energy, x, printed):
    assert str(condition(energy, x)) == printed


@pytest.mark.parametrize(
    ("energy", "x"),
    [
        *((energy, x) for energy, x, _ in CASES if not energy.has(sp.erf, H(-tail))),
        (E(sp.log(1 - rho + rho * sp.exp(-qhat / 2) * sp.cosh(sp.sqrt(qhat) * z + qhat))), qhat),
        (E(sp.exp(-(root**2)) * sp.cos(root + h)), q),
        (E(erfcx(root / 2 + m) * sp.sinh(root)), q),
        (E(sp.tanh(root + h) ** 3 * sp.log(2 * sp.cosh(root))), q),
        (sp.sqrt(E(sp.log(2 * sp.cosh(root + h)))) + E(sp.sin(root)) ** 2, q),
    ],
    ids=lambda x: str(x)[:40],
)
def test_reduced_conditions_are_derivatives(energy, x):
    # Central difference of step 1e-7 by the energy itself: error 1e-14 times the third derivative.
    found = condition(energy, x)
    step = sp.Rational(1, 10**7)
    up, down = (value(energy.subs(x, POINT[x] + s)) for s in (step, -step))
    assert abs((up - down) / (2 * step) - value(found)) < 1e-11
    assert not any(z in sp.Mul.make_args(t) for n in found.atoms(GaussianExpectation)
                   for t in sp.Add.make_args(sp.expand(n.integrand)))  # fmt: skip


def test_conditions_are_regular_where_the_overlap_vanishes():
    found = condition(E(sp.log(2 * sp.cosh(root + h))), q)
    assert found.subs(q, 0) == (1 - sp.tanh(h) ** 2) / 2
    sparse = condition(E(sp.log(1 - rho + rho * sp.exp(-q / 2) * sp.cosh(root))), q)
    # The derivative at q = 0 of E log(1 + rho (z² - 1) q/2 + ...), which is zero.
    assert sp.simplify(sparse.subs(q, 0)) == 0


@pytest.mark.parametrize(
    "energy",
    [
        E(sp.Function("mu", real=True)(z) * root), E(relu(root - m) ** 2),
        E(z * sp.tanh(q * z + h)), E(sp.log(1 + q * z**2)), E(root / sp.tanh(root)),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_left_alone(energy):
    # Tables, kinks, a z of the user's own, arguments that are not affine, hidden poles.
    derivative = energy.diff(q)
    assert reduced(derivative) == derivative


# -- expectations inside functions

s = sp.Symbol("s", real=True)
wide = h + root + s * sp.sqrt(1 - q)
ONE_STEP = GaussianExpectation(sp.cosh(wide) ** beta, s)
MAGNETISATION = GaussianExpectation(sp.cosh(wide) ** beta * sp.tanh(wide), s) / ONE_STEP
LABEL = GaussianExpectation(1 / (1 + sp.exp(-wide)), s)
SLOPE = GaussianExpectation(sp.exp(-wide) / (1 + sp.exp(-wide)) ** 2, s)
# One step of replica-symmetry breaking, where the outer overlap grows at the cost of the inner
# one, and the entropy of the labels of a logistic teacher.
NESTED = [
    (E(sp.log(ONE_STEP)), -(beta**2) * E(MAGNETISATION**2) / 2),
    (2 * E(LABEL * sp.log(LABEL)), E(SLOPE**2 / LABEL)),
]


def test_the_inner_overlap_is_reduced_without_a_field_too():
    """There is no factor of the outer variable, only one of the inner one over a root."""
    wider = root + s * sp.sqrt(rho - q)
    mass = GaussianExpectation(sp.cosh(wider) ** beta, s)
    second = GaussianExpectation(sp.cosh(wider) ** beta * sp.tanh(wider) ** 2, s) / mass
    found = condition(E(sp.log(mass)), rho)
    assert sp.expand(found - beta / 2 - beta * (beta - 1) / 2 * E(second)) == 0


def double_sum(expr, point):
    """Return the value of expectations inside each other by the trapezoidal rule."""
    line = np.linspace(-10, 10, 241)
    law = np.exp(-(line**2) / 2) / np.sqrt(2 * np.pi) * (line[1] - line[0])

    def outer(node):
        inner = [n for n in node.integrand.atoms(GaussianExpectation) if n.has(z)]
        marks = [sp.Dummy() for _ in inner]
        means = [
            sp.lambdify([z, s], n.integrand, "numpy")(line[:, None], line[None, :]) @ law
            for n in inner
        ]
        integrand = node.integrand.xreplace(dict(zip(inner, marks, strict=True)))
        return law @ sp.lambdify([z, *marks], integrand, "numpy")(line, *means)

    expr = expr.subs(point)
    nodes = [n for n in expr.atoms(GaussianExpectation) if n.variable == z]
    return float(expr.xreplace({n: sp.Float(outer(n)) for n in nodes}))


@pytest.mark.parametrize(("energy", "printed"), NESTED, ids=["one step", "labels"])
def test_conditions_of_nested_expectations_print_as_in_papers(energy, printed):
    found = condition(energy, q)
    assert found == printed
    ends = [double_sum(energy, {**POINT, q: POINT[q] + k / 1000}) for k in (2, 1, -1, -2)]
    slope = (-ends[0] + 8 * ends[1] - 8 * ends[2] + ends[3]) * 1000 / 12
    assert slope == pytest.approx(double_sum(found, POINT), rel=1e-8)


def test_what_would_be_longer_multiplied_out():
    node = E((1 - sp.tanh(root + h) ** 2) ** 2)
    assert reduced(a * node) == a * node


# -- the tilted measure


@pytest.mark.parametrize("c", [sp.Rational(1, 5), 1, sp.Rational(5, 2)])
@pytest.mark.parametrize("sign", [1, -1])
def test_even_powers_at_a_tilted_argument(c, sign):
    t = sp.tanh(c * z + sign * c**2)
    for n in (2, 4):
        found = reduced(a * E(t**n))
        assert found == sign * a * E(t ** (n - 1))
        assert abs(E(t**n).evalf(20) - sign * E(t ** (n - 1)).evalf(20)) < 1e-17
    # Elsewhere the two differ, and nothing is assumed of overlaps that happen to be equal.
    assert abs(E(sp.tanh(z + 2) ** 2).evalf(8) - E(sp.tanh(z + 2)).evalf(8)) > 1e-3
    apart = E(sp.tanh(c * z + m) ** 2)
    assert reduced(apart) == apart


def test_a_root_that_vanishes_cancels_inside_of_an_average():
    # d/dq of E_u[u² E_z tanh(u² o + u √o z)], o = q/(1 - q): the chain rule leaves z/(2√q) inside.
    u = sp.Symbol("u", real=True)
    odds = q / (1 - q)
    inner = E(sp.tanh(u**2 * odds + u * sp.sqrt(odds) * z))
    slope = smooth_partial(GaussianExpectation(u**2 * inner, u), q)
    # The factor u² is none of the chain rule: nothing is integrated by parts over u.
    (outer,) = (n for n in slope.atoms(GaussianExpectation) if n.variable == u)
    (raw,) = outer.integrand.atoms(GaussianExpectation)
    assert outer.integrand == u**2 * raw
    regular = linear_by_parts(raw)
    x = np.linspace(-9, 9, 721)
    weights = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) * (x[1] - x[0])
    here = {u: sp.Rational(17, 10), q: sp.Rational(2, 5)}
    means = [weights @ sp.lambdify(z, n.integrand.subs(here))(x) for n in (raw, regular)]
    assert abs(means[0] - means[1]) < 1e-13
    # At q = 0 the slope is u² E[1 - tanh²] = u².
    assert regular.subs(q, 0) == u**2
    assert raw.subs(q, 0) != u**2


def test_an_inner_average_is_a_function_of_the_outer_variable():
    u = sp.Symbol("u", real=True)
    inner = GaussianExpectation(1 + sp.tanh(z - sp.Abs(u)), u)
    node = E(z / inner)
    found = linear_by_parts(node)
    assert found.free_symbols == set()
    assert found != node
    assert found == E(-inner.diff(z) / inner**2)


# -- the whole chain


def test_the_binary_perceptron():
    energy = FreeEnergy(
        -qhat * (1 + q) / 2
        + E(sp.log(2 * sp.cosh(sp.sqrt(qhat) * z + qhat)))
        + 2 * alpha * E(H(-tail) * sp.log(H(-tail))),
        (q,),
        (qhat,),
        (alpha,),
    )
    first, second = saddle_point_equations(energy)
    assert str(first.value) == "E_z[tanh(sqrt(qhat)*z + qhat)]"
    assert str(second.value) == (
        "alpha*E_z[exp(-q*z**2/(1 - q))/normal_cdf(-sqrt(q)*z/sqrt(1 - q))]/(pi*(1 - q))"
    )
    # By mpmath from the equations of Gyorgyi (1990), q = E tanh²: both branches at alpha = 1.4.
    for start, expected in ((0.5, 0.789699039501951197384), (0.95, 0.954598641751914894711)):
        system = SaddlePointSystem.from_free_energy(
            energy, name="binary_perceptron", start={q: sp.Rational(str(start))}
        )
        assert abs(lower(system).solve(alpha=1.4).q - expected) < 1e-12
