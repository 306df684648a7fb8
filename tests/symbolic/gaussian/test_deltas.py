"""Derivatives of expectations that jump, against those of their closed forms."""

import mpmath
import pytest
import sympy as sp

from giantstep.errors import EmissionError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.gaussian.jumps import integrate_deltas

z = sp.Symbol("z", real=True)
q = sp.Symbol("q", positive=True)
m = sp.Symbol("m", real=True)
POINT = {q: sp.Rational(7, 5), m: sp.Rational(-3, 4)}


@pytest.mark.parametrize(
    "integrand",
    [
        sp.Heaviside(q * z - m) * z**2,
        sp.sign(z + m * q) * sp.exp(z / 3),
        sp.Heaviside(z - m) * sp.Heaviside(2 * q - z) * (1 + z),
        (1 + q) * sp.Heaviside(sp.sqrt(q) * z + m) + sp.Abs(z - q) * sp.sign(z - m),
    ],
)
@pytest.mark.parametrize("unknown", [q, m])
def test_the_derivative_is_that_of_the_integral(integrand, unknown):
    weight = sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi)

    def average(shift):
        """The expectation with the unknown moved, by quadrature between the jumps."""
        at = {**POINT, unknown: POINT[unknown] + shift}
        f = integrand.xreplace(at)
        jumps = {sp.solve(g.args[0], z)[0] for g in f.atoms(sp.Heaviside, sp.sign, sp.Abs)}
        edges = [-12, *sorted(jumps), 12]
        function = sp.lambdify(z, f * weight, "mpmath")
        with mpmath.workdps(30):
            inside = [mpmath.mpf(str(sp.N(e, 30))) for e in edges]
            return mpmath.quad(function, [inside[0], -4, *inside[1:-1], 4, inside[-1]])

    step = sp.Rational(1, 10**8)
    by_hand = (average(step) - average(-step)) / (2 * float(step))
    found = integrate_deltas(GaussianExpectation(integrand, z).diff(unknown))
    assert abs(float(found.xreplace(POINT).evalf(15)) - float(by_hand)) < 1e-8


def test_a_slope_that_may_vanish():
    found = integrate_deltas(GaussianExpectation(sp.Heaviside(m * z + 1) * z, z).diff(m))
    for value in (-2, 3):
        exact = sp.exp(-sp.Rational(1, 2 * value**2)) / sp.sqrt(2 * sp.pi) / abs(value) / value**2
        assert sp.simplify(found.subs(m, value) - exact) == 0
    assert found.subs(m, 0) == 0


def test_refusals_say_what_jumps():
    mu = sp.Function("mu", real=True)(z)
    with pytest.raises(EmissionError, match="reads a table"):
        integrate_deltas(GaussianExpectation(mu * sp.DiracDelta(z - m), z))
    with pytest.raises(EmissionError, match="not affine"):
        integrate_deltas(GaussianExpectation(z * sp.DiracDelta(z**3 - m), z))
    with pytest.raises(EmissionError, match="outside of an expectation"):
        integrate_deltas(m * sp.DiracDelta(m - q))
    with pytest.raises(EmissionError, match="derivative of delta"):
        integrate_deltas(GaussianExpectation(z * sp.DiracDelta(z - m, 1), z))
