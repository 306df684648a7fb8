"""The Sherrington–Kirkpatrick model: independent quadrature, thermodynamics, limits."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

import giantstep as gs
from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick


@pytest.fixture(scope="module")
def kernel():
    return gs.lower(sherrington_kirkpatrick())


def normal_mean(f):
    """E f(z), by an adaptive rule on pieces."""

    def integrand(z):
        return f(z) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    edges = np.linspace(-10, 10, 11)
    return math.fsum(
        quad(integrand, a, b, epsabs=1e-15, epsrel=1e-13)[0] for a, b in itertools.pairwise(edges)
    )


def independent(beta, h):
    """Overlap, magnetisation, free energy and stability by SciPy, from the published equations."""

    def gap(q):
        return normal_mean(lambda z: math.tanh(beta * (math.sqrt(q) * z + h)) ** 2) - q

    q = brentq(gap, 1e-3, 1.0, xtol=1e-15, rtol=1e-14)

    def field(z):
        return beta * (math.sqrt(q) * z + h)

    m = normal_mean(lambda z: math.tanh(field(z)))
    log_cosh = normal_mean(lambda z: math.log(2 * math.cosh(field(z))))
    sech4 = normal_mean(lambda z: math.cosh(field(z)) ** -4)
    return {
        "q": q,
        "magnetisation": m,
        "free_energy": -beta * (1 - q) ** 2 / 4 - log_cosh / beta,
        "stability": 1 - beta**2 * sech4,
    }


@pytest.mark.parametrize(("beta", "h"), [(1.5, 0.0), (0.7, 0.8), (3.0, -0.2)])
def test_independent_solution(kernel, beta, h):
    found = kernel.solve(beta=beta, h=h).values
    for name, value in independent(beta, h).items():
        assert found[name] == pytest.approx(value, rel=1e-12, abs=1e-13), name


@pytest.mark.parametrize("beta", [0.5, 0.9, 0.99])
def test_paramagnet_without_field(kernel, beta):
    # Exact for β < 1: q = 0, f = −β/4 − log(2)/β, s = log 2 − β²/4, λ_AT = 1 − β².
    found = kernel.solve(beta=beta, h=0).values
    assert 0 <= found["q"] < 1e-28 and abs(found["magnetisation"]) < 1e-15
    assert found["free_energy"] == pytest.approx(-beta / 4 - math.log(2) / beta, rel=1e-14)
    assert found["entropy"] == pytest.approx(math.log(2) - beta**2 / 4, rel=1e-13)
    assert found["stability"] == pytest.approx(1 - beta**2, rel=1e-12)


def test_at_the_transition_the_overlap_is_small(kernel):
    # A threefold root: r = sqrt(q) is resolved to the cube root of the rounding error.
    found = kernel.solve(beta=1, h=0).values
    assert 0 <= found["q"] < 1e-8
    assert found["free_energy"] == pytest.approx(-0.25 - math.log(2), rel=1e-14)


def test_overlap_below_the_transition(kernel):
    # q = τ + τ²/3 + … with τ = 1 − T (Sherrington and Kirkpatrick 1975; here to first order).
    for tau in (1e-3, 1e-4):
        found = kernel.solve(beta=1 / (1 - tau), h=0).values
        assert found["q"] / tau == pytest.approx(1, abs=2 * tau)
        assert found["stability"] < 0


def test_small_fields_keep_their_digits(kernel):
    # Linear response for β < 1: q = β²h²/(1 − β²), m = βh, up to relative order h².
    found = kernel.solve(beta=0.5, h=1e-8).values
    assert found["q"] == pytest.approx(0.25e-16 / 0.75, rel=1e-7)
    assert found["magnetisation"] == pytest.approx(0.5e-8, rel=1e-12)


def test_zero_temperature(kernel):
    # Ground-state energy −sqrt(2/π) and entropy −1/(2π): the failure of replica symmetry.
    found = kernel.solve(beta=200, h=0).values
    assert found["free_energy"] == pytest.approx(-math.sqrt(2 / math.pi), abs=1e-3)
    assert found["entropy"] == pytest.approx(-1 / (2 * math.pi), abs=5e-3)


@pytest.mark.parametrize(("beta", "h"), [(0.8, 0.3), (2.0, 0.4)])
def test_derivatives_of_the_free_energy(kernel, beta, h):
    def free_energy(beta, h):
        return kernel.solve(beta=beta, h=h).values["free_energy"]

    step = 1e-4
    by_field = (free_energy(beta, h + step) - free_energy(beta, h - step)) / (2 * step)
    by_beta = (free_energy(beta + step, h) - free_energy(beta - step, h)) / (2 * step)
    found = kernel.solve(beta=beta, h=h).values
    # Central differences: step² times a third derivative of order one.
    assert -by_field == pytest.approx(found["magnetisation"], rel=1e-7)
    assert beta**2 * by_beta == pytest.approx(found["entropy"], rel=1e-6)


def test_field_reversal(kernel):
    up, down = (kernel.solve(beta=1.7, h=h).values for h in (0.25, -0.25))
    assert up["magnetisation"] == pytest.approx(-down["magnetisation"], rel=1e-14)
    for name in ("q", "free_energy", "entropy", "stability"):
        assert up[name] == pytest.approx(down[name], rel=1e-13)


def test_de_almeida_thouless_line(kernel):
    # Near T = 1 the line is h² = (4/3)(1 − T)³ (de Almeida and Thouless 1978), to relative order
    # 1 − T; at low T it is T = 4/(3 sqrt(2π)) exp(−h²/2).
    def stability(h, temperature):
        return kernel.solve(beta=1 / temperature, h=h).values["stability"]

    for tau in (0.04, 0.02):
        h = brentq(stability, 1e-4, 0.1, args=(1 - tau,), rtol=1e-9)
        assert h**2 / (4 / 3 * tau**3) == pytest.approx(1, abs=3 * tau)
    h = 2.5
    temperature = brentq(lambda t: stability(h, t), 0.01, 0.1, rtol=1e-9)
    low = 4 / (3 * math.sqrt(2 * math.pi)) * math.exp(-(h**2) / 2)
    assert temperature == pytest.approx(low, rel=0.05)
