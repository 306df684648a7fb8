"""Jumps under expectations: their derivatives in equations, Jacobians and free energies."""

import pytest
import sympy as sp

from giantstep.derivations.kernels.lower import lower
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.gaussian.jumps import jumps_as_steps
from giantstep.symbolic.gaussian.stein_lemma import smooth_partial
from giantstep.symbolic.systems.equations import FreeEnergy, stationarity
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

a = sp.Symbol("a", positive=True)
m, z = sp.symbols("m z", real=True)
H = sp.Heaviside
density = sp.exp(-(m**2) / 2) / sp.sqrt(2 * sp.pi)


def E(f):
    return GaussianExpectation(f, z)


# Derivatives by the place of the jump: minus its height times the density there.
@pytest.mark.parametrize(
    ("integrand", "height"),
    [
        (sp.Piecewise((1, z > m), (0, True)), 1),
        (sp.exp(sp.sign(z - m)), sp.E - 1 / sp.E),
        (H(z - m) ** 3, 1),
        (sp.tanh(2 * H(m - z)), -sp.tanh(2)),
        (H(z - m) * H(2 * z - 2 * m), 1),
        (1 / (2 + sp.sign(m - z)), sp.Rational(2, 3)),
        (sp.Piecewise((2, (z > m) & (z > m - 9)), (5, True)), -3),
    ],
)
def test_derivatives_by_the_place_of_a_jump(integrand, height):
    found = smooth_partial(E(integrand), m)
    at = {m: sp.Rational(2, 5)}
    assert abs((found + height * density).subs(at).evalf()) < 1e-12


def test_steps_that_nothing_differentiates_stay():
    rests, moves = sp.exp(a * sp.sign(z)), sp.exp(sp.sign(z - m))
    assert jumps_as_steps(E(rests), {sp.sign(z)}) == E(rests)
    found = jumps_as_steps(E(rests * moves), {sp.sign(z)})
    assert found.has(sp.sign(z)) and not found.has(sp.sign(z - m))
    assert found.has(H(z - m, sp.Rational(1, 2)))


def test_what_is_continuous_stays():
    node = E(sp.Piecewise((z - m, z > m), (0, True)) * sp.sign(z))
    assert jumps_as_steps(node) == node


def test_a_free_energy_that_averages_a_jump():
    energy = FreeEnergy(m**2 / 2 - E(sp.Piecewise((1, z > m), (0, True))), (m,), (), ())
    assert sp.simplify(stationarity(energy)[m] - (m + density)) == 0


# The root of m = a + E[...] by bisection of the normal distribution function (scipy), a = 1/5.
@pytest.mark.parametrize(
    ("value", "expected", "slope"),
    [
        (E(sp.Piecewise((1, z > m), (0, True))), 0.5063170483844085, 0.7402209018),
        (E(sp.exp(sp.sign(z - m))) / 4, 0.4778698880546548, 0.8270447862),
    ],
)
def test_kernels_with_jumps(value, expected, slope):
    kernel = lower(SaddlePointSystem.from_fixed_point({m: a + value}, name="k", parameters=(a,)))
    found = kernel.solve(a=0.2)
    assert abs(found.m - expected) < 1e-14
    assert found.iterations <= 6  # the Jacobian is exact
    assert abs(kernel.sensitivities(a=0.2)["m", "a"] - slope) < 1e-9


@pytest.mark.slow
def test_narrow_features_of_fixed_width_are_resolved():
    value = a + E(sp.tanh(1000 * (z - m)) ** 2) / 2
    kernel = lower(SaddlePointSystem.from_fixed_point({m: value}, name="k", parameters=(a,)))
    # The dip has the area 2/1000: m + phi(m)/1000 = 7/10 up to 1e-9.
    found = kernel.solve(a=0.2)
    expected = sp.nsolve(m + density / 1000 - 0.7, m, 0.7)
    assert abs(found.m - float(expected)) < 1e-8
