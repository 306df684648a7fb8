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
