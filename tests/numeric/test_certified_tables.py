"""Tables as Gaussian convolutions: they hold on lines and boxes, with their tails and grids.

Reference values are closed forms evaluated at 60 digits, and enclosures of giantstep.symbolic by
another rule and another bound (acb.integral).
"""

from __future__ import annotations

import itertools
import math
from functools import partial

import mpmath
import pytest
import sympy as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from giantstep.numeric.certified_grid import Branch, BranchedFunction, Grid
from giantstep.numeric.certified_integrals import Models, TableSource
from giantstep.numeric.certified_moments import Convolution, ConvolutionTables
from giantstep.numeric.certified_panels import shifted_mass
from giantstep.symbolic.gaussian_enclosures import enclosed_expectation
from giantstep.symbolic.tail_analysis import TailBound

pytest.importorskip("flint")

from .certified_cases import (
    BITS,
    CLOSED,
    CTX,
    U,
    acb,
    arb,
    below,
    branched,
    constant,
    decimal,
    flint,
    sp_fraction,
    to_ball,
)

pytestmark = pytest.mark.usefixtures("precision")


def tables_of(name, slope, offset, spread, *, goal=66):
    f, *closed = CLOSED[name]
    functions = (branched(f), branched(sp.expand(f**2) if name == "He3" else f**2))
    convolution = Convolution(
        functions, ((0, 0), (0, 1), (1, 0)), decimal(slope), decimal(offset), decimal(spread)
    )
    tables = ConvolutionTables(convolution, bits=BITS, goal=goal, most=4096)
    return tables, closed


decimals = st.decimals(-4, 4, places=3).map(float)
spreads = st.sampled_from([0.03, 0.2, 0.7, 1.0, 1.9, 6.0])


class TestTables:
    @settings(max_examples=25, deadline=None)
    @given(
        st.sampled_from(sorted(CLOSED)),
        decimals,
        decimals,
        spreads,
        st.floats(-1, 1),
        st.sampled_from([2, 8, 66]),
    )
    def test_contain_the_closed_forms(self, name, slope, offset, spread, place, goal):
        # With few bits as the goal the true errors come within a factor of ten of the bounds.
        tables, closed = tables_of(name, slope, offset, spread, goal=goal)
        distance = min(1.0, spread / max(abs(slope), 0.01))
        centre = arb(1.25)
        local = tables.around(centre, distance)
        point = centre + arb(distance) * arb(place)
        a = decimal(offset) + decimal(slope) * point
        for value, exact in zip(local.at(point), closed, strict=True):
            if exact is not None:
                assert value.overlaps(exact(a, decimal(spread)))
            # The goal is relative to E|F|, far above E F where that cancels.
            size = 1 + abs(value) if name != "He3" else 1 + (abs(a) + decimal(spread)) ** 3
            assert goal < 66 or value.rad() <= 1e-15 * size**2

    @settings(max_examples=20, deadline=None)
    @given(
        st.sampled_from(sorted(CLOSED)),
        decimals,
        st.sampled_from([0.2, 1.0, 1.9]),
        st.floats(-1, 1),
        st.floats(0, 1),
    )
    def test_polynomials_for_boxes_contain_complex_values(self, name, slope, spread, x, y):
        tables, closed = tables_of(name, slope, 0.4, spread)
        unit = min(1.0, spread / max(abs(slope), 0.01))
        centre = arb(-0.75)
        local = tables.around(centre, unit)
        point = acb(arb(unit) * arb(2 * x), arb(unit) * arb(2 * y))
        a = decimal(0.4) + decimal(slope) * (centre + point)
        polynomials = local.within(arb(2 * unit), arb(2 * unit))
        for polynomial, exact in zip(polynomials, closed, strict=True):
            if exact is not None:
                assert polynomial(point).overlaps(exact(a, decimal(spread)))

    @pytest.mark.parametrize("power", [0, 1, 2, 3, 4, 7])
    def test_powers_of_the_variable(self, power):
        # E e^{a + Bz} z^j: derivatives in B at fixed exponent, here by the shift z -> z + B.
        convolution = Convolution(
            (branched(sp.exp(U)),), ((0, power),), arb(1), arb(0), decimal("0.5")
        )
        local = ConvolutionTables(convolution, bits=BITS, goal=66, most=1000).around(arb(0), 1.0)
        b = mpmath.mpf("0.5")
        moment = sum(
            math.comb(power, k) * CTX.mpf(b) ** (power - k) * CTX.fac2(k - 1)
            for k in range(0, power + 1, 2)
        )
        exact = CTX.exp(CTX.mpf("0.7") + CTX.mpf(b) ** 2 / 2) * moment
        (value,) = local.at(decimal("0.7"))
        assert value.overlaps(to_ball(exact)) and value.rad() < 1e-18 * value.mid()

    def test_steep_function_and_wide_gaussian(self):
        f = branched(sp.tanh(30 * U))
        convolution = Convolution((f,), ((0, 0),), arb(1), arb(0), arb(40))
        local = ConvolutionTables(convolution, bits=BITS, goal=66, most=1000).around(arb(3), 1.0)
        exact = enclosed_expectation(sp.tanh(30 * (3 + 40 * U)), U, digits=25)
        value = local.at(arb(3))[0]
        reference = arb(sp_fraction(exact.midpoint)) + arb(0, arb(sp_fraction(exact.radius)))
        assert value.overlaps(reference) and value.rad() < 1e-19

    def test_kink_that_is_known_roughly_widens_the_result(self):
        # A kink anywhere within 1e-6: the enclosure has to hold for both ends.
        kink = arb(0, 1e-6)
        bound = TailBound(arb(1), arb(0), arb(0), arb(0), arb(1))
        sign = BranchedFunction(
            (
                Branch(constant(sp.S.NegativeOne), None, kink),
                Branch(constant(sp.S.One), kink, None),
            ),
            (bound, bound),
        )
        convolution = Convolution((sign,), ((0, 0),), arb(1), arb(0), arb(1))
        local = ConvolutionTables(convolution, bits=BITS, goal=66, most=1000).around(arb(0), 1.0)
        (value,) = local.at(arb(0.5))
        for shift in (-1e-6, 0, 1e-6):
            assert value.overlaps(((arb(0.5) + arb(shift)) / arb(2).sqrt()).erf())
        assert 7e-7 < float(value.rad()) < 1e-5


class TestGridsAndTails:
    @pytest.mark.parametrize("side", ["_left", "_right"])
    def test_tables_hold_what_lies_beyond_their_grid(self, side):
        # Were it to end at 3 standard deviations, a function of size 1 would lose their mass.
        convolution = Convolution((branched(sp.cos(U / 100)),), ((0, 0),), arb(1), arb(0), arb(1))
        tables = ConvolutionTables(convolution, bits=BITS, goal=60, most=4096)
        local = tables.around(arb(0), 0.5)
        (whole,) = local._bounds(arb(0.5), arb(0), local._count)
        setattr(local, side, arb(3))
        (cut,) = local._bounds(arb(0.5), arb(0), local._count)
        assert whole < 1e-16 and (1 - below(arb(2.5))) * 0.99 < cut < 1

    @pytest.mark.parametrize("side", [-1, 1])
    def test_each_side_has_its_own_tail(self, side):
        # E exp(2u) beyond 3 is e² P(y > 1); on the other side there is next to nothing.
        f = branched(sp.exp(2 * side * U))
        tables = ConvolutionTables(
            Convolution((f,), ((0, 0),), arb(1), arb(0), arb(1)), bits=BITS, goal=60, most=4096
        )
        cutoffs = (arb(3), arb(30)) if side < 0 else (arb(30), arb(3))
        (mass,) = tables.tails(arb(0), *cutoffs, (arb(0), arb(0)))
        exact = arb(2).exp() * (1 - below(arb(1)))
        assert exact <= mass < 3 * exact

    @pytest.mark.parametrize(
        ("shift", "offset", "curvature", "power"),
        [((0.5, 2), 0, 0, 3), ((-0.5, 0), 0, 0, 3), ((0, 0), 3, 0.1, 0), ((0.5, 1), -4, 0.1, 2)],
    )
    def test_tails_of_shifted_gaussians(self, shift, offset, curvature, power):
        s, cutoff = CTX.mpc(*shift), 8

        def integrand(y):
            gaussian = abs(CTX.exp(-((y - s) ** 2) / 2)) / CTX.sqrt(2 * CTX.pi)
            growth = CTX.exp(CTX.mpf(curvature) * (offset + y) ** 2)
            return growth * abs(y - s) ** power * gaussian

        bound = TailBound(arb(1), arb(0), arb(0), arb(curvature), arb(1))
        found = shifted_mass(
            (bound, bound), arb(curvature).exp(), offset=arb(offset), spread=arb(1),
            cutoff=arb(cutoff), power=power, shift=(arb(abs(shift[0])), arb(shift[1])),
        )  # fmt: skip
        assert found >= to_ball(CTX.quad(integrand, [cutoff, cutoff + 4, 40])).lower()

    def test_models_hold_all_values_on_wide_boxes(self):
        source = TableSource([], [], list, BITS)
        cubic = flint.acb_poly([1, -2, 3, 4])
        model = Models(source, arb(1), [cubic, cubic * cubic])
        x, once, squared = model.on(acb(arb(2, 1), arb(0.5, 0.5)), [])
        for real, imaginary in itertools.product((1, 1.7, 3), (0, 0.4, 1)):
            point = acb(real, imaginary)
            value = cubic(point - 1)
            assert x.contains(point) and once.contains(value) and squared.contains(value**2)

    @settings(max_examples=15, deadline=None)
    @example(0.0, 1.0, [0.5, 0.5 + 2.0**-52, 5e-324])
    @given(st.floats(-50, 50), st.floats(0.01, 20), st.lists(st.floats(-20, 20), max_size=3))
    def test_grid_covers_intervals_without_slits(self, left, length, kinks):
        def one(x, analytic):
            return 0 * x + 1

        points = sorted({arb(k).mid() for k in kinks}, key=float)
        ends = [None, *points, None]
        branches = tuple(Branch(one, a, b) for a, b in itertools.pairwise(ends))
        grid = Grid((BranchedFunction(branches),), 0.7, bits=BITS, goal=60, most=4096)
        start, end = arb(left), arb(left) + arb(length)
        panels, first, last = grid.covering(start, end)
        assert first <= start and last >= end
        # The samples of 1 integrate to the length of all that is covered.
        total = sum(value for panel in panels for _, (value,) in panel.samples)
        assert total.overlaps(last - first)

    @pytest.mark.parametrize(("offset", "spread", "power"), [(0, 1, 0), (-9, 0.5, 1), (4, 2, 2)])
    def test_tails_bound_the_mass_of_an_exponential(self, offset, spread, power):
        # |F| = e^{|u|/2} beyond L, with and without a shift of the Gaussian.
        bound = TailBound(arb(1), arb(0), arb(0.5), arb(0), arb(1))
        for cutoff in (6, 9, 25):
            found = shifted_mass(
                (bound, bound),
                arb(0.5).exp(),
                offset=arb(offset),
                spread=arb(spread),
                cutoff=arb(cutoff),
                power=power,
                shift=(arb(0.75), arb(0.5)),
            )
            exact = CTX.quad(
                partial(shifted_exponential, offset, spread, power),
                [cutoff, cutoff + 1, cutoff + 4, cutoff + 30],
            )
            assert found is not None and found >= to_ball(exact).lower()


def shifted_exponential(offset, spread, power, y):
    s = CTX.mpc(0.75, 0.5)
    gaussian = abs(CTX.exp(-((y - s) ** 2) / 2)) / CTX.sqrt(2 * CTX.pi)
    return CTX.exp(abs(offset + spread * y) / 2) * abs(y - s) ** power * gaussian
