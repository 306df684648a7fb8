"""Where an integrand is cut, and where not."""

import pytest
import sympy as sp

from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.lowering.measures import _growth_of_product, break_points

z, m = sp.symbols("z m", real=True)
q = sp.Symbol("q", positive=True)


@pytest.mark.parametrize(
    ("integrand", "places"),
    [
        (sp.tanh(q * z + m) ** 2, []),
        (sp.Abs(2 * z - m), [m / 2]),
        (relu(sp.sqrt(q) * z + m), [-m / sp.sqrt(q)]),
        (sp.Heaviside(z - 1) * sp.sign(z + 1), [-1, 1]),
        (sp.Piecewise((z, z < m), (m, z < 2 * q), (2 * q, True)), [m, 2 * q]),
        (sp.Max(z, m, 1), [1, m]),
        # No break in z: the kink is in the parameters.
        (sp.Abs(m) * z**2, []),
        # Not affine: the place is unknown, the fixed nodes have to do.
        (sp.Abs(z**3 - m * z + q), []),
    ],
)
def test_places(integrand, places):
    assert sorted(map(str, break_points(integrand, z))) == sorted(map(str, places))


def test_a_slope_that_may_vanish_divides_nothing_by_zero():
    (place,) = break_points(sp.Abs(m * z + 1), z)
    assert place.subs(m, 2) == -sp.Rational(1, 2)
    assert place.subs(m, -4) == sp.Rational(1, 4)
    assert place.subs(m, 0).is_finite
    # Every target knows comparisons; none knows how to join them.
    (size,) = break_points(sp.Abs(sp.sqrt(m + 1) * z - q), z)
    for found in (place, size):
        assert not found.atoms(sp.Or, sp.Ne, sp.Eq, sp.Not)


def test_tables_are_known_at_the_fixed_nodes_only():
    mu = sp.Function("mu", real=True)(z)
    assert break_points(sp.Abs(z - m) * mu, z) == ()


def test_products_grow_and_fall_together():
    # cosh(q z)^3 grows like exp(3 q |z|), which exp(m z) may make more.
    term = z * sp.exp(-q * z**2 + m * z) * sp.cosh(q * z) ** 3
    assert _growth_of_product(term, z) == (-q, sp.Abs(m) + 3 * q)
