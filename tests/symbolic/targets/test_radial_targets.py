"""Functions of a length: coefficients against quadrature over the length, and what they show."""

import itertools

import mpmath
import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import AssumptionError, UnsupportedExpressionError
from giantstep.symbolic.leaps.leap_report import leaps
from giantstep.symbolic.leaps.staircase import staircase
from giantstep.symbolic.targets.subspaces import Subspace
from giantstep.symbolic.targets.target import target

x1, x2, x3 = sp.symbols("x1:4", real=True)


def by_quadrature(g, k, alpha):
    """E g(|x|) He_alpha(x) by the moments of directions and an integral over the length."""
    r = sp.Symbol("r", positive=True)
    xs = sp.symbols(f"x1:{k + 1}")
    with mpmath.workdps(25):
        total = mpmath.mpf(0)
        expanded = sp.expand(sp.Mul(*(_he(n, x) for n, x in zip(alpha, xs, strict=True))))
        for powers, c in sp.Poly(expanded, *xs).terms():
            if any(n % 2 for n in powers):
                continue
            n = sum(powers)
            along = sp.lambdify(r, g(r) * r ** (n + k - 1) * sp.exp(-(r**2) / 2), "mpmath")
            length = mpmath.quad(along, [0, 1, 2, 4, 8, 20])
            # The sphere: product of gammas.
            sphere = 2 * mpmath.fprod(mpmath.gamma((p + 1) / mpmath.mpf(2)) for p in powers)
            sphere /= mpmath.gamma((n + k) / mpmath.mpf(2))
            total += mpmath.mpf(sp.Rational(c).p) / sp.Rational(c).q * length * sphere
        return total / (2 * mpmath.pi) ** (mpmath.mpf(k) / 2)


def _he(n, x):
    return sp.Add(
        *(
            (-1) ** j * sp.factorial(n) / (2**j * sp.factorial(j) * sp.factorial(n - 2 * j))
            * x ** (n - 2 * j)
            for j in range(n // 2 + 1)
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("g", "k"),
    [
        (lambda r: r, 2), (lambda r: r, 3), (lambda r: sp.exp(-r), 2),
        (lambda r: sp.log(1 + r**2), 3),
        (lambda r: sp.tanh(r**2), 2), (lambda r: sp.sqrt(r), 2), (lambda r: 1 / (1 + r**2), 3),
        (lambda r: sp.log(r), 2),
    ],
)  # fmt: skip
def test_coefficients_are_those_of_quadrature(g, k):
    xs = (x1, x2, x3)[:k]
    f = target(g(sp.sqrt(sum(x**2 for x in xs))), xs)
    for order in (0, 2, 4):
        coefficients = f.he_coefficients(order)
        for alpha in itertools.product(range(order + 1), repeat=k):
            if sum(alpha) != order:
                continue
            expected = by_quadrature(g, k, alpha) / mpmath.fprod(map(mpmath.factorial, alpha))
            found = sp.N(coefficients.get(alpha, sp.S.Zero), 22)
            assert abs(found - sp.Float(expected, 25)) < 1e-15
    assert not f.he_coefficients(1) and not f.he_coefficients(3)


def test_a_length_is_learned_at_second_order():
    result = staircase(sp.sqrt(x1**2 + x2**2))
    assert (result.steps, result.stuck_order) == ((), 2)
    assert staircase("sqrt(x1**2 + x2**2)", 2).final == Subspace.whole(2)


def test_leaps_of_a_function_of_a_length():
    pytest.importorskip("flint", reason="the directions of what has no closed form are proven")
    report = leaps("tanh(x1**2 + x2**2 + x3**2)")
    assert [int(v) for v in (report.leap_index, report.coordinate, report.isotropic)] == [2, 2, 2]
    assert int(report.generative_leap) == 2


def test_the_quadratic_part_can_be_taken_out():
    c = sp.sqrt(sp.pi / 2) / 4
    f = target(sp.sqrt(x1**2 + x2**2) - c * (x1**2 + x2**2))
    assert staircase(f).stuck_order == 4
    assert sp.simplify(f.norm_squared - (2 - sp.pi / 2)) == 0


def test_products_with_other_coordinates():
    assert staircase("x3*sqrt(x1**2 + x2**2)").stuck_order == 2
    # The length is even in x2, which gradients of first order do not see.
    found = staircase("x1*x3 + sqrt(x1**2 + x2**2) + x3")
    assert (found.final.dimension, found.stuck_order) == (2, 2)
    assert target("sqrt((x1 + x2)**2 + (x1 - x2)**2)").norm_squared == 4
    f = target("tanh(x3)*sqrt(x1**2 + x2**2) + x3")
    points = np.random.default_rng(0).standard_normal((3, 200_000))
    value = np.tanh(points[2]) * np.hypot(points[0], points[1]) + points[2]
    assert abs(np.mean(value**2) - float(f.norm_squared.evalf())) < 5 * np.std(value**2) / 400


def test_giant_steps_and_regimes_of_a_length():
    step = gs.giant_step("sqrt(x1**2 + x2**2)", "relu")
    assert (step.order, step.learned) == (2, Subspace.whole(2))
    # mu_2 (relu) times C_2 = sqrt(pi/2)/2.
    assert step.ridge_constants == (sp.Rational(1, 4), sp.Rational(1, 4))
    table = gs.regimes("sqrt(x1**2 + x2**2)")
    assert [sp.simplify(r - e) for r, e in zip(
        table.residuals, [2 - sp.pi / 2, 2 - sp.pi / 2, 0, 0, 0], strict=True
    )] == [0] * 5  # fmt: skip


def test_refusals():
    with pytest.raises(UnsupportedExpressionError, match="of different coordinates"):
        target("sqrt(x1**2 + x2**2)*tanh(x1)")
    with pytest.raises(UnsupportedExpressionError, match="more than one linear form"):
        target("sqrt(x1**2 + 2*x2**2)")
    with pytest.raises(AssumptionError, match="singular"):
        target("1/(x1**2 + x2**2)")
    with pytest.raises(UnsupportedExpressionError, match="functions of one linear form"):
        gs.project("sqrt(x1**2 + x2**2)", [[1, 0]])
