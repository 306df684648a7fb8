"""Every step from the deterministic equivalent to the closed form is an identity.

In the variable s all quantities are rational: bG = 1/(s - β), h = (s - β)/s and
a = b (s - 1)(s - β)/s solve the equations of the resolvent, so that differences reduce to zero.
"""

import numpy as np
import pytest
import sympy as sp

from giantstep.symbolic.systems.random_matrix import Resolvent, resolvent_moment
from giantstep.symbolic.systems.ridge_equivalent import (
    NO_SPIKE,
    FeatureCovariance,
    ScalarForm,
    Spike,
    isotropic_effective_ridge,
    paper_ridge,
    response_without_floor,
    ridgeless_effective_ridge,
)

b, v, beta, alpha, s, kappa, nu = sp.symbols("b v beta alpha s kappa nu", positive=True)
SPIKE = Spike(*sp.symbols("t2 tau", positive=True))
SPIKES = pytest.mark.parametrize("spike", [NO_SPIKE, SPIKE], ids=["no spike", "spike"])

FORM = ScalarForm(s, beta, alpha, kappa)
AT = FeatureCovariance(b, v, beta, nu)
RATIO = beta / alpha


def in_s(expr):
    """Write an expression of `AT` as a rational function of s."""
    expr = expr.replace(lambda e: isinstance(e, Resolvent), lambda e: 1 / (b * (s - beta)))
    return expr.subs({nu: b * FORM.effective_ridge, v: b * kappa}, simultaneous=True)


def vanishes(expr):
    return sp.cancel(sp.together(expr)) == 0


def test_the_resolvent_in_the_variable_s():
    assert vanishes(in_s(AT.resolvent * (AT.shift + b * AT.companion) - 1))
    assert vanishes(in_s(AT.s) - s)
    assert vanishes(in_s(AT.inverse_s) - 1 / s)
    assert vanishes(in_s(AT.resolvent * (nu + AT.level) - 1))
    assert vanishes(in_s(AT.response.remainder) - (1 - 1 / s))
    assert vanishes(in_s(AT.companion / AT.shift) - 1 / (b * (s - 1)))


def test_degrees_of_freedom_are_traces():
    # (1/N) tr Σ/(Σ + ν) = 1 - νG and the same squared.
    assert vanishes(in_s(AT.degrees_of_freedom - (1 - nu * AT.resolvent)))
    square = resolvent_moment(0, 2, AT.shift, b, beta)
    second = 1 - 2 * nu * AT.resolvent + nu**2 * square
    assert vanishes(in_s(AT.degrees_of_freedom_2 - second))


def test_both_conventions_of_the_penalty():
    assert vanishes(in_s(paper_ridge(AT, RATIO)) - b * FORM.ridge)
    assert vanishes(in_s(AT.ridge(alpha / beta - 1) * RATIO - paper_ridge(AT, RATIO)))
    assert vanishes(in_s(paper_ridge(AT, RATIO) / nu) - FORM.shrinkage)


def test_the_change_of_the_gram_matrix_has_this_form():
    """Woodbury's identity itself, on rational matrices, nothing averaged."""
    w = sp.Matrix([[1, 2], [-1, sp.Rational(1, 2)], [0, 3]])
    u, a = sp.Matrix([sp.Rational(1, 3), -2, 1]), sp.Matrix([3, 4]) / 5
    first = (w * w.T + sp.eye(3)).inv()
    sides = sp.Matrix.hstack(u, w * a)
    inner = sp.Matrix([[1, 1], [1, 0]]).inv() + sides.T * first * sides
    found = first - first * sides * inner.inv() * sides.T * first
    spiked = w + u * a.T
    assert found == (spiked * spiked.T + sp.eye(3)).inv()


@SPIKES
def test_bias_is_a_derivative(spike):
    bias = in_s(AT.bias(spike))
    assert vanishes(bias - FORM.bias(spike))
    derivative = -(nu**2) * (AT.unexplained(spike) / nu).diff(nu)
    assert vanishes(in_s(derivative) - bias)
    reduction = in_s(AT.bias_reduction(spike))
    assert vanishes(FORM.bias(NO_SPIKE) - FORM.bias(spike) - reduction)


def test_exactly_one_root_is_admissible():
    """400 random parameter sets: of the roots of the quartic one is above the lower bound."""
    rng = np.random.default_rng(5)
    r = sp.Symbol("r")
    coefficients = sp.lambdify(
        (alpha, beta, kappa, r), sp.Poly(FORM.quartic(r), s).all_coeffs(), "math"
    )
    bounds = sp.lambdify((alpha, beta, kappa), FORM.lower_bounds(), "math")
    for _ in range(400):
        a, width, k = 10.0 ** rng.uniform((-1.3, -1.3, -2), (1.3, 1.3, 1))
        penalty = 10 ** rng.uniform(-2, 1)
        roots = np.roots(coefficients(a, width, k, penalty))
        real = roots[np.abs(roots.imag) < 1e-7 * np.abs(roots)].real
        assert np.sum(real > max(bounds(a, width, k))) == 1


@pytest.mark.parametrize("branch", [0, 1])
def test_isotropic_effective_ridge_solves_its_equation(branch):
    level, ridge, sampling = sp.symbols("sigma lambda gamma", positive=True)
    root = isotropic_effective_ridge(level, ridge, sampling, sampling - 1).args[branch][0]
    quadratic = sampling * nu**2 + ((sampling - 1) * level - ridge) * nu - ridge * level
    assert sp.simplify(quadratic.subs(nu, root)) == 0


def test_any_covariance_has_the_equation_of_an_isotropic_one():
    sampling = alpha / beta
    ridge, level = AT.ridge(sampling - 1), AT.level
    quadratic = sampling * nu**2 + ((sampling - 1) * level - ridge) * nu - ridge * level
    assert vanishes(in_s(quadratic))


@pytest.mark.parametrize(
    ("slope", "floor", "samples", "aspect"),
    [("2/5", "1/25", "1", "3"), ("2/5", "1/25", "3", "4"), ("1/3", "2", "1/5", "1/4"),
     ("0", "1", "1/2", "2"), ("1", "0", "1/2", "3")],
)  # fmt: skip
def test_ridgeless_effective_ridge(slope, floor, samples, aspect):
    slope, floor, samples, aspect = map(sp.Rational, (slope, floor, samples, aspect))
    sampling = samples / aspect
    found = ridgeless_effective_ridge(slope, floor, samples, sampling, 1 - sampling)
    at = FeatureCovariance(slope, floor, aspect, found)
    assert abs(sp.N(found * at.resolvent - (1 - sampling), 30)) < 1e-25
    assert abs(sp.N(at.ridge(sampling - 1), 30)) < 1e-25


@pytest.mark.parametrize("aspect", [sp.Rational(1, 2), sp.Integer(1), sp.Rational(5, 2)])
def test_response_without_floor_is_a_limit(aspect):
    tiny = sp.Rational(1, 10**40)
    at = FeatureCovariance(sp.Rational(3, 4), sp.S.Zero, aspect, tiny).response
    limit = response_without_floor(aspect)
    for name in ("inverse_s", "remainder", "companion", "flat", "steep"):
        assert abs(sp.N(getattr(at, name) - getattr(limit, name), 30)) < 1e-19


def test_without_a_linear_part_nothing_is_explained():
    at = FeatureCovariance(sp.S.Zero, v, beta, nu)
    assert at.unexplained(SPIKE) == at.companion == 1
    assert vanishes(at.bias(SPIKE) - 1)
    assert at.bias_reduction(SPIKE) == 0
