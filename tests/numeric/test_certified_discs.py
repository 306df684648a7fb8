"""Tables of narrow Gaussians by power series of their functions: they hold, and need few panels.

Reference values are closed forms in balls of twice the precision.
"""

from __future__ import annotations

import itertools

import pytest
import sympy as sp

from giantstep.errors import CertificationError
from giantstep.numeric.certified_integrals import LineIntegrator
from giantstep.numeric.certified_moments import Convolution, ConvolutionTables, DiscTables

pytest.importorskip("flint")

from .certified_cases import (
    BITS,
    CLOSED,
    U,
    acb,
    arb,
    branched,
    decimal,
    flint,
)

pytestmark = pytest.mark.usefixtures("precision")

GOAL = 66
# Entire functions, and one with a kink.
NAMES = ("sin", "exp", "erf", "relu", "He3")


def narrow(name, spread, slope="0.9", offset="0.05"):
    convolution = Convolution(
        (branched(CLOSED[name][0]),), ((0, 0), (0, 1)), *map(decimal, (slope, offset, spread))
    )
    return convolution, ConvolutionTables(convolution, bits=BITS, goal=GOAL, most=1000)


def exact(name, convolution, kappa):
    with flint.ctx.workprec(2 * BITS):
        a = convolution.offset + convolution.slope * kappa
        return [f(a, convolution.spread) for f in CLOSED[name][1:3]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spread", ["0.003", "0.00001"])
@pytest.mark.parametrize("centre", [1.25, -2.0])
def test_tables_hold_on_the_line_and_around_it(name, spread, centre):
    convolution, tables = narrow(name, spread)
    local = tables.far_around(arb(centre), 0.15)
    assert local is not None
    for x in (-0.15, -0.04, 0.0, 0.11, 0.15):
        kappa = arb(centre) + arb(x)
        values = exact(name, convolution, kappa)
        for found, value in zip(local.at(kappa), values, strict=True):
            assert found.overlaps(value)
            assert found.rad() <= 1e-18 * max(1.0, abs(float(values[0])))
    width, height = arb(0.2), arb(0.12)
    polynomials = local.within(width, height)
    for x, y in itertools.product((-0.2, 0.07, 0.2), (-0.12, 0.0, 0.05, 0.12)):
        delta = acb(x, y)
        values = exact(name, convolution, acb(arb(centre)) + delta)
        for polynomial, value in zip(polynomials, values, strict=True):
            found = polynomial(delta)
            assert found.overlaps(value)
            assert found.rad() <= 1e-3 * max(1.0, abs(complex(value)))


@pytest.mark.parametrize("name", ["sin", "exp", "erf"])
def test_short_series_have_errors_that_cover_what_is_left_out(name):
    # Usual series are so long that rounding alone would cover it.
    convolution, tables = narrow(name, "0.003")
    local = tables.far_around(arb(1.25), 0.15)
    distance = arb(0.15)
    local._count = 4
    local._series = local._made_series(local._functions(), GOAL)
    local._errors = local._error_bounds(local.shift(distance), arb(0), GOAL)
    for x in (-0.15, 0.15):
        kappa = arb(1.25) + arb(x)
        values = exact(name, convolution, kappa)
        for found, value in zip(local.at(kappa), values, strict=True):
            assert found.overlaps(value)
            assert not found.mid().overlaps(value)


@pytest.mark.parametrize("name", ["sin", "relu"])
def test_both_series_agree(name):
    _, tables = narrow(name, "0.02")
    near, far = (make(arb(0.75), 0.031) for make in (tables.around, tables.far_around))
    for x in (0.72, 0.7501, 0.78):
        for one, other in zip(near.at(arb(x)), far.at(arb(x)), strict=True):
            assert one.overlaps(other)


def test_no_series_over_a_kink():
    _, tables = narrow("relu", "0.001")
    assert tables.far_around(arb(0.1), 0.05) is None
    assert tables.far_around(arb(0.6), 0.05) is not None


def test_no_series_where_the_gaussian_is_wider_than_the_disc():
    convolution = Convolution((branched(sp.tanh(U)),), ((0, 0),), arb(1), arb(0), decimal("0.9"))
    tables = ConvolutionTables(convolution, bits=BITS, goal=GOAL, most=1000)
    assert tables.far_around(arb(0), 1.5) is None


def test_nothing_is_said_beyond_the_distance_or_the_disc():
    _, tables = narrow("sin", "0.001")
    local = tables.far_around(arb(1), 0.1)
    assert isinstance(local, DiscTables)
    with pytest.raises(CertificationError, match="too far"):
        local.at(arb(1.2))
    for polynomial in local.within(arb(5), arb(0)):
        assert not polynomial(acb(4)).is_finite()


@pytest.mark.parametrize("name", ["sin", "erf", "relu"])
def test_nearly_aligned_tables_need_few_panels(name):
    """E κ T(κ) = E γ F'(γκ + ρz): closed forms by Stein's lemma."""
    slope = decimal("0.999999")
    spread = (1 - slope * slope).sqrt()
    convolution = Convolution((branched(CLOSED[name][0]),), ((0, 0),), slope, arb(0), spread)
    line = LineIntegrator([convolution], [], list, reach=13, bits=BITS, goal=1e-20)
    (found,) = line.integrate(lambda tables: [tables[0] * tables[1]])
    half = arb(1) / 2
    expected = {
        "sin": slope * (-half).exp(),
        "erf": slope * 2 / (3 * arb.pi()).sqrt(),
        "relu": slope / 2,
    }[name]
    assert abs(found - expected).upper() < 1e-18
    assert line.panels <= 150
