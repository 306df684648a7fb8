"""The outlier of a matrix with a spike: each step of its derivation, and independent checks."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp
from hypothesis import given, strategies as st

from giantstep.symbolic.systems.random_matrix import (
    MarchenkoPasturAverage,
)
from giantstep.symbolic.systems.rank_one_perturbation import (
    bulk_edge,
    gram_density,
    marchenko_pastur_equations,
    outlier_equation,
    rank_one_outlier,
    residue_overlap,
    secular_determinant,
    singular_value_density,
    solve_for_outlier,
)

T, beta, x = sp.symbols("T beta x", positive=True)
FOUND = rank_one_outlier(T, beta)


def test_the_outlier_solves_all_four_equations():
    found = solve_for_outlier(T, beta)
    for equation in (*marchenko_pastur_equations(beta), outlier_equation(T)):
        assert sp.simplify(equation.subs(found)) == 0


def test_the_secular_determinant_is_that_of_the_whole_matrix():
    # A 2 x 3 matrix of integers with a spike: det(z - H) = det(z - H0) * secular determinant.
    z = sp.Symbol("z")
    w = sp.Matrix([[1, 2, 0], [3, -1, 1]])
    u, a = sp.Matrix([sp.Rational(3, 5), sp.Rational(4, 5)]), sp.Matrix([2, 1, 2]) / 3
    strength = sp.Integer(4)

    def hermitised(m):
        return sp.BlockMatrix([[sp.zeros(2), m], [m.T, sp.zeros(3)]]).as_explicit()

    plain = hermitised(w)
    perturbed = hermitised(w + sp.sqrt(strength) * u * a.T)
    gram = (z**2 * sp.eye(3) - w.T * w).inv()
    left = (u.T * z * (z**2 * sp.eye(2) - w * w.T).inv() * u)[0]
    right = (a.T * z * gram * a)[0]
    cross = (u.T * w * gram * a)[0]
    ratio = (z * sp.eye(5) - perturbed).det() / (z * sp.eye(5) - plain).det()
    assert sp.simplify(ratio - secular_determinant(strength, left, right, cross)) == 0


def test_outlier_in_the_letters_of_the_paper():
    # Ba et al., arXiv 2205.01445, section 3; the right vector by the same residue.
    total = beta + T
    assert sp.cancel(FOUND.square - (1 + T) * total / T) == 0
    assert FOUND.left_resolvent == 1 / (1 + T)
    assert FOUND.right_resolvent == 1 / total
    assert sp.cancel(FOUND.left_overlap - (1 - total / (T * (T + 1)))) == 0
    assert sp.cancel(FOUND.right_overlap - (1 - beta * (1 + T) / (T * total))) == 0
    assert FOUND.threshold == sp.sqrt(beta)


def test_the_overlap_is_the_residue_of_the_resolvent():
    # -g/(T d/dx (x g gtilde)) with the transforms as functions of x, solved from the quadratic.
    h = (x + 1 - beta - sp.sqrt((x + 1 - beta) ** 2 - 4 * x)) / 2
    point = {T: sp.Rational(9, 4), beta: sp.Rational(3, 2)}
    place = FOUND.square.subs(point)
    # Of the two roots the one that tends to one at infinity.
    g, gtilde = h / x, 1 / (x - h)
    residue = (-g / (T * sp.diff(x * g * gtilde, x))).subs(point).subs(x, place)
    assert abs(sp.N(residue - FOUND.left_overlap.subs(point), 30)) < 1e-28
    assert residue_overlap(T, FOUND.left_resolvent, FOUND.square) == FOUND.left_overlap


@pytest.mark.parametrize("ratio", ["1/2", "1", "3"])
@pytest.mark.parametrize("strength", ["2", "5/2", "10"])
def test_resolvents_agree_with_quadrature(ratio, strength):
    b, t = sp.Rational(ratio), sp.Rational(strength)
    at = {T: t, beta: b}
    place, eigenvalue = FOUND.square.subs(at), sp.Symbol("X", positive=True)
    average = MarchenkoPasturAverage(1 / (place - eigenvalue), eigenvalue, b).evalf(30)
    assert abs(average - FOUND.right_resolvent.subs(at)) < 1e-27
    left = b * average + (1 - b) / place
    assert abs(left - FOUND.left_resolvent.subs(at)) < 1e-27


@given(st.fractions("1/30", 50, max_denominator=30), st.fractions("1/30", 50, max_denominator=30))
def test_overlaps_vanish_at_the_threshold_and_stay_below_one(ratio, over):
    b = sp.Rational(ratio.numerator, ratio.denominator) ** 2
    t = sp.sqrt(b) * (1 + sp.Rational(over.numerator, over.denominator))
    at = {T: t, beta: b}
    for overlap in (FOUND.left_overlap, FOUND.right_overlap):
        assert 0 < overlap.subs(at) < 1
        assert overlap.subs({T: sp.sqrt(b), beta: b}) == 0
    assert FOUND.square.subs(at) > bulk_edge(b, 1) ** 2
    assert sp.expand(FOUND.square.subs({T: sp.sqrt(b), beta: b}) - bulk_edge(b, 1) ** 2) == 0


@pytest.mark.parametrize("ratio", ["1/4", "1", "9/4"])
def test_densities_have_their_masses_and_mean(ratio):
    ctx = mpmath.mp.clone()
    ctx.dps = 20
    b = sp.Rational(ratio)
    lower, upper = bulk_edge(b, -1), bulk_edge(b, 1)
    gram = sp.lambdify(x, gram_density(x, lower, upper), ctx)
    singular = sp.lambdify(x, singular_value_density(x, lower, upper, b), ctx)
    ends = [ctx.mpf(str(sp.N(e, 25))) for e in (lower, upper)]
    squares = [e**2 for e in ends]
    assert abs(ctx.quad(gram, squares) - min(1, float(b))) < 1e-9
    assert abs(ctx.quad(lambda v: v * gram(v), squares) - float(b)) < 1e-9
    assert abs(ctx.quad(singular, ends) - 1) < 1e-9
