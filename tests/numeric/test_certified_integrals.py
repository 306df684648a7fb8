"""Proven enclosures of averages over the line: they hold, they are narrow, and failures are said.

Reference values are closed forms evaluated at 60 digits, sums of mpmath on the line, and the
independent enclosures of giantstep.symbolic by another rule and another bound (acb.integral).
"""

from __future__ import annotations

import math
import time

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from giantstep.errors import CertificationError, MissingDependencyError, ParameterError
from giantstep.numeric.certified_grid import Branch, BranchedFunction
from giantstep.numeric.certified_integrals import Direct, Limits, LineIntegrator
from giantstep.numeric.certified_moments import Convolution
from giantstep.numeric.certified_panels import disjoint_gaps, error_constant, legendre_rule
from giantstep.symbolic.ball_functions import BallEvaluator
from giantstep.symbolic.gaussian_enclosures import enclosed_expectation
from giantstep.symbolic.tail_analysis import TailBound

pytest.importorskip("flint")

from .certified_cases import (
    BITS,
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

pytestmark = pytest.mark.usefixtures("precision")


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
        integrator = line(directs=[Direct(branched(f)) for f in functions])
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
        (value,) = line(directs=[Direct(BranchedFunction(branches))]).integrate(lambda t: [t[1]])
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
        start = time.perf_counter()
        with pytest.raises(CertificationError, match="not proven analytic"):
            line().integrate(lambda t: [1 / (t[0] - decimal(place))])
        assert time.perf_counter() - start < 5

    def test_branch_point_on_the_line(self):
        with pytest.raises(CertificationError, match="not proven analytic"):
            line().integrate(lambda t: [acb(t[0] * t[0]).log(analytic=True).real])

    def test_parameters_that_allow_a_pole(self):
        with pytest.raises(CertificationError, match="not known well enough"):
            line().integrate(lambda t: [1 / (arb(1, 1.01) + t[0] ** 2)])

    def test_number_of_evaluations(self):
        integrator = line(limits=Limits(evaluations=50))
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
        start = time.perf_counter()
        with pytest.raises(CertificationError, match="may have a singularity"):
            line([Convolution((f,), ((0, 0),), arb(1), arb(0), arb(1))])
        assert time.perf_counter() - start < 5

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

    def test_missing_library(self, without_flint):
        with pytest.raises(MissingDependencyError, match=r"giantstep\[flint\]"):
            LineIntegrator([], [], list, reach=1, bits=64, goal=1e-9)


class TestPanels:
    @pytest.mark.parametrize("order", [2, 5, 16, 40])
    def test_error_constant_bounds_a_pole(self, order):
        # 1/(a − x) is at most 1/(a − cosh log ρ) on the ellipse of ρ.
        exact = (arb(3)).log()  # ∫ 1/(2 − x) over [−1, 1]
        rule = sum(w / (2 - x) for x, w in legendre_rule(order, BITS))
        for rho in (1.5, 2.5, 3.5):
            largest = 1 / (2 - (arb(rho) + 1 / arb(rho)) / 2)
            assert abs(rule - exact) <= largest * error_constant(rho, order)

    @pytest.mark.parametrize("order", [2, 3, 8, 24])
    def test_error_constant_has_the_right_power(self, order):
        # T_2n is at most cosh(2n log ρ) on the ellipse, and the first that n nodes miss.
        degree = 2 * order
        exact = -arb(2) / (degree * degree - 1)
        rule = sum(w * x.chebyshev_t(degree) for x, w in legendre_rule(order, BITS))
        for rho in (2.0, 16.0):
            bound = (degree * arb(rho).log()).cosh() * error_constant(rho, order)
            assert bound / 3 < abs(rule - exact) <= bound

    def test_gaps_are_disjoint_and_contain_all_points(self):
        points = [arb(0, 0.5), arb(0.4, 0.2), arb(3), arb(-2, 1.75), arb(3)]
        gaps = disjoint_gaps(points)
        assert [float(x) for gap in gaps for x in gap] == pytest.approx([-3.75, 0.6, 3.0, 3.0])
        assert all(any(a <= p.lower() and p.upper() <= b for a, b in gaps) for p in points)
