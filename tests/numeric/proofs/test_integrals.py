"""Proven enclosures of averages over the line: they hold, they are narrow, and failures are said.

Reference values are closed forms evaluated at 60 digits, sums of mpmath on the line, and the
independent enclosures of giantstep.symbolic by another rule and another bound (acb.integral).

Tables as Gaussian convolutions: they hold on lines and boxes, with their tails and grids.

Reference values are closed forms evaluated at 60 digits, and enclosures of giantstep.symbolic by
another rule and another bound (acb.integral).

Tables of narrow Gaussians by power series of their functions: they hold, and need few panels.

Reference values are closed forms in balls of twice the precision.
"""

from __future__ import annotations

import itertools
import math
import time
from functools import partial

import mpmath
import pytest
import sympy as sp
from hypothesis import example, given, settings, strategies as st

from giantstep.errors import CertificationError, MissingDependencyError, ParameterError
from giantstep.numeric.proofs import integrals
from giantstep.numeric.proofs.grid import Branch, BranchedFunction, Grid
from giantstep.numeric.proofs.integrals import (
    LineIntegrator,
    Models,
    TableSource,
)
from giantstep.numeric.proofs.moments import Convolution, ConvolutionTables, DiscTables
from giantstep.numeric.proofs.panels import (
    disjoint_gaps,
    error_constant,
    legendre_rule,
    shifted_mass,
)
from giantstep.symbolic.exact.ball_functions import BallEvaluator
from giantstep.symbolic.gaussian.enclosures import enclosed_expectation
from giantstep.symbolic.gaussian.tail_analysis import TailBound

from .certified_cases import (
    BITS,
    CLOSED,
    CTX,
    RELU,
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

pytest.importorskip("flint")


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
    @settings(max_examples=10, deadline=None)
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

    @settings(max_examples=10, deadline=None)
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

    @settings(max_examples=8, deadline=None)
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


pytest.importorskip("flint")


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


pytest.importorskip("flint")


def line(convolutions=(), directs=(), combine=list, *, reach=16, goal=1e-20, **options):
    return LineIntegrator(
        list(convolutions), list(directs), combine, reach=reach, bits=BITS, goal=goal, **options
    )


class TestIntegrals:
    @settings(max_examples=12, deadline=None)
    @given(
        st.decimals("0.1", "3", places=2).map(str),
        st.decimals("-2", "2", places=2).map(str),
        st.decimals("0.05", "4", places=2).map(str),
    )
    def test_agree_with_the_enclosures_of_one_expectation(self, a, b, c):
        # Poles at distance c/…, a kink-free integrand; another rule and bound are the reference.
        a, b, c = (sp.Rational(x) for x in (a, b, c))
        f = (sp.tanh(a * U) + b) ** 2 / (c**2 + U**2)
        exact = enclosed_expectation(f, U, digits=25)
        x, y, z = (arb(sp_fraction(value)) for value in (a, b, c))
        bound = 2 * (1 + abs(y)) ** 2 / z**2 * (-arb(128)).exp()
        (value,) = line().integrate(
            lambda t: [((x * t[0]).tanh() + y) ** 2 / (z**2 + t[0] ** 2)], [bound]
        )
        reference = arb(sp_fraction(exact.midpoint)) + arb(0, arb(sp_fraction(exact.radius)))
        assert value.overlaps(reference)
        assert value.rad() < 1e-18 * value.mid()

    def test_error_function_of_a_lorentzian(self):
        # E 1/(1 + κ²) = sqrt(π e/2) erfc(1/√2); even integrands need half the line.
        exact = (arb.pi() * arb(1).exp() / 2).sqrt() * (1 / arb(2).sqrt()).erfc()
        tail = (-(arb(16) ** 2) / 2).exp()
        found = [
            line(even=even).integrate(lambda t: [1 / (1 + t[0] ** 2)], [tail])[0]
            for even in (False, True)
        ]
        assert all(value.overlaps(exact) and value.rad() < 1e-19 for value in found)

    @pytest.mark.parametrize(("r", "c", "gamma"), [("0.9", "1.25", "0.6"), ("1.5", "0.25", "-0.8")])
    def test_relu_student_of_a_sign_teacher(self, r, c, gamma):
        integrator = model(r, c, gamma, RELU, sp.sign(U))
        found = integrator.integrate(sums)
        for value, exact in zip(found, relu_sums(r, c, gamma), strict=True):
            assert value.overlaps(to_ball(exact))
            assert value.rad() < 1e-17 * abs(value.mid())
        # A second call with other unknowns has the tables already.
        assert integrator.panels < 120 and integrator.nodes < 4000

    @pytest.mark.parametrize(
        ("student", "teacher"),
        [
            (sp.tanh(U), sp.sin(U)),
            (sp.exp(U / 2), U**4 - 6 * U**2 + 3),
            (sp.tanh(30 * U), sp.Heaviside(U - sp.Rational(1, 3))),
        ],
    )
    def test_goals_are_reached_and_agree(self, student, teacher):
        coarse = model("0.9", "1.25", "0.6", student, teacher, goal=1e-10).integrate(sums)
        fine = model("0.9", "1.25", "0.6", student, teacher, goal=1e-20).integrate(sums)
        for rough, value in zip(coarse, fine, strict=True):
            assert rough.overlaps(value)
            assert value.rad() < 1e-16 * abs(value.mid()) and rough.rad() < 1e-7 * abs(value.mid())

    def test_constant_tables(self):
        # No spike: the tables are numbers, and E κ² of a constant is the constant.
        convolution = Convolution((branched(sp.sin(U)),), ((0, 1),), arb(0), arb(0), arb(1))
        integrator = line([convolution])
        first, second = integrator.integrate(lambda t: [t[1] * t[0] ** 2, t[1]])
        exact = (-arb(1) / 2).exp()
        assert first.overlaps(exact) and second.overlaps(exact)
        assert first.rad() < 1e-18 and second.rad() < 1e-18

    def test_slope_that_may_be_zero(self):
        # Powers of a ball around 0 are not finite in python-flint; none may be taken.
        moments, slope = ((0, 0), (0, 1)), arb(0, 1e-3)
        convolution = Convolution((branched(sp.sin(U)),), moments, slope, arb(0), arb(1))
        first, second = line([convolution]).integrate(lambda t: [t[1], t[2]])
        assert first.contains(0) and first.rad() < 1e-2
        assert second.overlaps((-arb(1) / 2).exp()) and second.rad() < 1e-2

    def test_direct_tables_with_kinks(self):
        # E relu(κ - 1/3) |κ| of two functions with different kinks.
        functions = [sp.Abs(U), (U - sp.Rational(1, 3) + sp.Abs(U - sp.Rational(1, 3))) / 2]
        integrator = line(directs=[branched(f) for f in functions])
        (value,) = integrator.integrate(lambda t: [t[1] * t[2]])
        third = CTX.mpf(1) / 3
        exact = CTX.quad(lambda x: x * (x - third) * CTX.npdf(x), [third, 2, 5, 9, 16])
        assert value.overlaps(to_ball(exact)) and value.rad() < 1e-19

    def test_a_kink_of_the_line_that_is_known_roughly(self):
        # E sign(κ − a) for an a anywhere within 1e-6 of 1/2.
        kink = arb(0.5) + arb(0, 1e-6)
        branches = (
            Branch(constant(sp.S.NegativeOne), None, kink),
            Branch(constant(sp.S.One), kink, None),
        )
        (value,) = line(directs=[BranchedFunction(branches)]).integrate(lambda t: [t[1]])
        for place in (0.5 - 0.99e-6, 0.5 + 0.99e-6):
            assert value.contains(1 - 2 * below(arb(place)).mid())
        assert value.rad() < 4e-6

    def test_fat_parameters_give_intervals_of_their_size(self):
        # E 1/(v + κ²) for all v in a ball around 1.
        (value,) = line().integrate(lambda t: [1 / (arb(1, 1e-9) + t[0] ** 2)])
        for v in (1 - 1e-9, 1 + 1e-9):
            root = arb(v).sqrt()
            exact = (arb.pi() / 2 / v).sqrt() * (arb(v) / 2).exp() * (root / arb(2).sqrt()).erfc()
            assert value.overlaps(exact)
        assert 1e-10 < float(value.rad()) < 2e-9

    def test_more_digits(self):
        tail = (-(arb(18) ** 2) / 2).exp()
        with flint.ctx.workprec(300):
            integrator = LineIntegrator([], [], list, reach=18, bits=300, goal=arb(10) ** -60)
            (value,) = integrator.integrate(lambda t: [1 / (1 + t[0] ** 2)])
            exact = (arb.pi() * arb(1).exp() / 2).sqrt() * (1 / arb(2).sqrt()).erfc()
            assert (value + arb(0, tail)).overlaps(exact) and value.rad() < arb(10) ** -60


def model(r, c, gamma, student, teacher, *, goal=1e-20):
    """The tables of a student σ(rκ + √c z) and a teacher σ*(γκ + ρz)."""
    r, c, gamma = map(decimal, (r, c, gamma))
    rho, per_root = (1 - gamma**2).sqrt(), 1 / c.sqrt()
    moments = ((0, 0), (0, 1), (1, 0))
    convolutions = [
        Convolution((branched(f), branched(sp.expand(f**2))), moments, slope, arb(0), spread)
        for f, slope, spread in ((student, r, c.sqrt()), (teacher, gamma, rho))
    ]

    def combine(v):
        node, m0, m1, m2, t0, t1, t2 = v
        return [node, m0, m1 * per_root, m2 - m0 * m0 - m1 * m1, t0, t1, t2]

    return line(convolutions, (), combine, goal=goal)


UNKNOWNS = ("0.3", "0.5", "0.1", "1.1", "0.4", "0.3", "0.2")


def sums(tables, unknowns=None):
    V1, V2, m, theta, psi, q1, q2 = unknowns or map(decimal, UNKNOWNS)
    node, m0, m1, m2, t0, t1, t2 = tables
    w = 1 / (1 + m1 * m1 * V1 + m2 * V2)
    C = m0 * m + m1 * node * theta
    err = t2 - 2 * t0 * C - 2 * m1 * psi * t1 + C * C + m1 * m1 * q1 + m2 * q2
    return [m1 * m1 * w, m2 * w, node * m1 * (t0 - C) * w, m1 * t1 * w, m2 * err * w * w]


def relu_sums(r, c, gamma):
    """The same sums from closed tables, by the trapezoidal rule of mpmath."""
    mp = CTX
    r, c, gamma = map(mp.mpf, (r, c, gamma))
    b, rho = mp.sqrt(c), mp.sqrt(1 - gamma**2)
    unknowns = [mp.mpf(x) for x in UNKNOWNS]
    # The tables vary on the scales b/r and ρ/|γ|.
    step = mp.mpf(1) / 12 * min(1, b / r, rho / abs(gamma))
    total = [mp.mpf(0)] * 5
    n = int(13 / step)
    for k in range(-n, n + 1):
        x = k * step
        a = r * x / b
        m0 = b * (a * mp.ncdf(a) + mp.npdf(a))
        m1 = mp.ncdf(a)
        m2 = c * ((a * a + 1) * m1 + a * mp.npdf(a)) - m0**2 - c * m1**2
        s = gamma * x / rho
        tables = (x, m0, m1, m2, mp.erf(s / mp.sqrt(2)), 2 * mp.npdf(s), mp.mpf(1))
        weight = step * mp.npdf(x)
        total = [t + weight * g for t, g in zip(total, sums(tables, unknowns), strict=True)]
    # Up to the rule's own error, far below what is compared.
    return [mp.mpf(mp.nstr(t, 28)) for t in total]


class TestRefusals:
    @pytest.mark.parametrize("place", ["0.3", "0", "1.25", "-2.0000001"])
    def test_pole_on_the_line(self, place):
        start = time.process_time()
        with pytest.raises(CertificationError, match="not proven analytic"):
            line().integrate(lambda t: [1 / (t[0] - decimal(place))])
        assert time.process_time() - start < 5

    def test_branch_point_on_the_line(self):
        with pytest.raises(CertificationError, match="not proven analytic"):
            line().integrate(lambda t: [acb(t[0] * t[0]).log(analytic=True).real])

    def test_parameters_that_allow_a_pole(self):
        with pytest.raises(CertificationError, match="not known well enough"):
            line().integrate(lambda t: [1 / (arb(1, 1.01) + t[0] ** 2)])

    def test_number_of_evaluations(self, monkeypatch):
        monkeypatch.setattr(integrals, "MOST_EVALUATIONS", 50)
        integrator = line()
        with pytest.raises(CertificationError, match="more than 50 evaluations"):
            integrator.integrate(lambda t: [1 / (decimal("1e-6") + t[0] ** 2)])

    def test_number_of_panels(self):
        convolution = Convolution(
            (branched(sp.sin(40 * U)),), ((0, 0),), arb(10) ** 6, arb(0), arb(1)
        )
        with pytest.raises(CertificationError, match="panels are needed"):
            line([convolution])

    def test_functions_under_a_gaussian_that_are_not_analytic(self):
        bound = TailBound(arb(1), arb(0), arb(0), arb(0), arb(1))

        def bounded_only(x, analytic):
            return acb("nan") if analytic else acb(arb(0, 1))

        f = BranchedFunction((Branch(bounded_only, None, None),), (bound, bound))
        start = time.process_time()
        with pytest.raises(CertificationError, match="may have a singularity"):
            line([Convolution((f,), ((0, 0),), arb(1), arb(0), arb(1))])
        assert time.process_time() - start < 5

    @pytest.mark.parametrize("f", [1 / U, sp.log(U**2), 1 / (U - 5)])
    def test_singular_functions_under_a_gaussian(self, f):
        evaluator = BallEvaluator()
        bound = TailBound(arb(1), arb(1), arb(0), arb(0), arb(6))
        function = BranchedFunction((Branch(evaluator.function(f, U), None, None),), (bound, bound))
        with pytest.raises(CertificationError, match="singularity"):
            line([Convolution((function,), ((0, 0),), arb(1), arb(0), arb(1))])

    def test_functions_that_grow_too_fast(self):
        # E exp(u²/4) with B² = 4 does not exist.
        evaluator = BallEvaluator()
        bound = TailBound(arb(1), arb(0), arb(0), arb(0.25), arb(1))
        function = BranchedFunction(
            (Branch(evaluator.function(sp.exp(U**2 / 4), U), None, None),), (bound, bound)
        )
        with pytest.raises(CertificationError, match="fall too slowly"):
            line([Convolution((function,), ((0, 0),), arb(1), arb(0), arb(2))])

    def test_infinite_tails_and_wrong_numbers_of_tails(self):
        integrator = line()
        with pytest.raises(CertificationError, match="not finite"):
            integrator.integrate(lambda t: [t[0] ** 2], [arb("inf")])
        with pytest.raises(ParameterError, match="one bound for each of the 1"):
            integrator.integrate(lambda t: [t[0] ** 2], [arb(0), arb(0)])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"reach": 0}, "reach"),
            ({"reach": arb(1, 0.1)}, "reach"),
            ({"reach": math.inf}, "reach"),
            ({"goal": 0}, "goal"),
            ({"goal": 2}, "goal"),
            ({"goal": math.nan}, "goal"),
        ],
    )
    def test_arguments(self, options, message):
        with pytest.raises(ParameterError, match=message):
            line(**options)

    def test_convolutions_and_branches(self):
        f = branched(sp.sin(U))
        with pytest.raises(ParameterError, match="spread"):
            Convolution((f,), ((0, 0),), arb(1), arb(0), arb(0, 1))
        with pytest.raises(ParameterError, match="moments"):
            Convolution((f,), ((1, 0),), arb(1), arb(0), arb(1))
        with pytest.raises(ParameterError, match="cover the line"):
            BranchedFunction((Branch(constant(sp.S.One), None, arb(1)),))
        without = BranchedFunction(f.branches)
        with pytest.raises(ParameterError, match="tails"):
            line([Convolution((without,), ((0, 0),), arb(1), arb(0), arb(1))])

    @pytest.mark.parametrize("function", [lambda x: x + acb(0, 1), lambda x: x * acb("nan")])
    def test_tables_that_are_not_real_numbers(self, function):
        table = BranchedFunction((Branch(lambda x, analytic: function(x), None, None),))
        with pytest.raises(CertificationError, match="a table is not finite and real at"):
            line(directs=[table]).integrate(lambda tables: [tables[1]])

    def test_missing_library(self, without_flint):
        with pytest.raises(MissingDependencyError, match=r"giantstep\[flint\]"):
            LineIntegrator([], [], list, reach=1, bits=64, goal=1e-9)


class TestPanels:
    @pytest.mark.parametrize("order", [2, 5, 16, 40])
    def test_error_constant_bounds_a_pole(self, order):
        # 1/(a − x) is at most 1/(a − cosh log ρ) on the ellipse of ρ.
        exact = (arb(3)).log()  # ∫ 1/(2 − x) over [−1, 1]
        rule = sum(w / (2 - x) for x, w in legendre_rule(order, BITS).pairs())
        for rho in (1.5, 2.5, 3.5):
            largest = 1 / (2 - (arb(rho) + 1 / arb(rho)) / 2)
            assert abs(rule - exact) <= largest * error_constant(rho, order)

    @pytest.mark.parametrize("order", [2, 3, 8, 24])
    def test_error_constant_has_the_right_power(self, order):
        # T_2n is at most cosh(2n log ρ) on the ellipse, and the first that n nodes miss.
        degree = 2 * order
        exact = -arb(2) / (degree * degree - 1)
        rule = sum(w * x.chebyshev_t(degree) for x, w in legendre_rule(order, BITS).pairs())
        for rho in (2.0, 16.0):
            bound = (degree * arb(rho).log()).cosh() * error_constant(rho, order)
            assert bound / 3 < abs(rule - exact) <= bound

    def test_gaps_are_disjoint_and_contain_all_points(self):
        points = [arb(0, 0.5), arb(0.4, 0.2), arb(3), arb(-2, 1.75), arb(3), arb(5, 1), arb(7, 1)]
        gaps = disjoint_gaps(points)
        # The last two touch.
        ends = [-3.75, 0.6, 3.0, 3.0, 4.0, 8.0]
        assert [float(x) for gap in gaps for x in gap] == pytest.approx(ends)
        assert all(any(a <= p.lower() and p.upper() <= b for a, b in gaps) for p in points)
