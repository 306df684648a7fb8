"""Branches of solutions: closed forms of the Curie–Weiss magnet, and models of the literature."""

import itertools
import math
import re
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad
from scipy.optimize import brentq

import giantstep as gs
from giantstep.derivations.kernels.branch_search import (
    SEARCHED,
    Exchanges,
    Search,
    checked_options,
)
from giantstep.derivations.kernels.branches import COLUMNS, BranchDiagram
from giantstep.derivations.kernels.families import Extremum, Family
from giantstep.derivations.kernels.phase_diagram import PhaseDiagram, Plane
from giantstep.errors import ConvergenceError, ParameterError, StructureError
from giantstep.numeric.branches import (
    CLOSED,
    CROSSING,
    FOLD,
    Equations,
    all_curves,
    curve_through,
    isolated,
)
from giantstep.symbolic.systems.branch_conditions import Condition, OpenSystem

beta, x, y, a = sp.symbols("beta x y a", positive=True)
alpha = sp.Symbol("alpha", positive=True)
m, h, u, v, z = sp.symbols("m h u v z", real=True)
INSIDE = {"m": (-1, 1)}


def magnet(**options):
    """Curie and Weiss: m = tanh β(m + h), per spin f = m²/2 − log(2 cosh β(m + h))/β."""
    field = beta * (m + h)
    return gs.SaddlePointSystem.from_fixed_point(
        {m: sp.tanh(field)}, name="magnet", parameters=(beta, h), **options
    )


FREE_ENERGY = m**2 / 2 - sp.log(2 * sp.cosh(beta * (m + h))) / beta


@pytest.fixture(scope="module")
def kernel():
    return gs.lower(magnet(outputs={"free_energy": FREE_ENERGY}))


@pytest.fixture(scope="module")
def hysteresis(kernel):
    return kernel.branches("h", (-0.5, 0.5), bounds=INSIDE, beta=1.5)


def spinodal_field(b):
    """Closed form: β(1 − m²) = 1 at a fold, so h = artanh(m)/β − m at m = √(1 − 1/β)."""
    top = mpmath.sqrt(1 - 1 / mpmath.mpf(b))
    return mpmath.atanh(top) / b - top


def search_of(kernel, over, within, bounds, **parameters):
    family = Family(
        kernel=kernel, over=over, within=within, parameters=parameters, bounds=bounds, data=None,
        rtol=1e-10,
    )  # fmt: skip
    return Search(family, *checked_options(kernel, (), None, 4, 40))


# ------------------------------------------------------------------ the magnet


def test_spinodals_in_a_field_are_those_of_the_closed_form(hysteresis):
    with mpmath.workdps(40):
        exact = spinodal_field(mpmath.mpf("1.5"))
        for point, sign in zip(hysteresis.spinodals, (1, -1), strict=True):
            assert point.value == pytest.approx(float(sign * exact), rel=1e-13)
            assert abs(point.value - float(sign * exact)) <= point.error
            found = point.refine(digits=30).h
            assert abs(mpmath.mpf(str(found)) - sign * exact) < mpmath.mpf(10) ** -29


def test_phases_exchange_at_zero_field(hysteresis):
    (point,) = hysteresis.transitions
    assert point.kind == "first-order"
    assert abs(point.value) <= point.error < 1e-12
    assert point.unknowns["m"] == pytest.approx(-point.unknowns["m_other"], rel=1e-12)


def test_the_branch_between_the_spinodals_is_unstable(hysteresis):
    (branch,) = hysteresis.branches
    between = [k for k in range(len(branch)) if k not in branch.special]
    inside = np.abs(branch["m"][between]) < math.sqrt(1 - 1 / 1.5)
    assert (branch.stable[between] == ~inside).all()
    # The slope of the map is β(1 − m²).
    exact = 1.5 * (1 - branch["m"] ** 2)
    np.testing.assert_allclose(branch.map_radius, exact, rtol=1e-13)
    assert branch.hessian_eigenvalues is None
    assert "iteration" in hysteresis.stability and "without a free energy" not in str(hysteresis)
    alone = gs.lower(magnet()).branches("h", (-0.5, 0.5), bounds=INSIDE, beta=1.5)
    assert "without a free energy" in alone.stability


def test_solutions_solve_the_equation(hysteresis):
    (branch,) = hysteresis.branches
    gap = branch["m"] - np.tanh(1.5 * (branch["m"] + branch["h"]))
    assert np.abs(gap).max() < 1e-14 and len(branch) > 100
    low, middle, high = hysteresis.at(0.05)
    assert low.m < middle.m < high.m
    (only,) = hysteresis.at(0.3, digits=25)
    with mpmath.workdps(30):
        root = mpmath.findroot(lambda s: s - mpmath.tanh(mpmath.mpf("1.5") * (s + 0.3)), 0.9)
    assert float(only.m) == pytest.approx(float(root), rel=1e-15)


def test_solutions_at_transitions_and_next_to_them(kernel, hysteresis):
    found = kernel.branches("beta", (0.5, 1.5), bounds=INSIDE, h=0, points=10, starts=4)
    assert [s.m for s in found.at(1)] == [0]
    # m³/3 = (β − 1)m to leading order, and next to a fold m − m* goes with the root, too.
    near = [s.m for s in found.at(1 + 1e-8)]
    assert near == pytest.approx([-math.sqrt(3e-8), 0, math.sqrt(3e-8)], rel=1e-6, abs=1e-15)
    inside = min(p.value for p in hysteresis.spinodals) + 1e-9
    values = [s.m for s in hysteresis.at(inside)]
    assert len(values) == 3
    for value in values:
        assert value == pytest.approx(math.tanh(1.5 * (value + inside)), abs=1e-15)


def test_the_second_order_transition_is_at_beta_one(kernel):
    found = kernel.branches("beta", (0.3, 2.5), bounds=INSIDE, h=0)
    (point,) = found.transitions
    assert point.kind == "second-order" and not found.spinodals
    assert abs(point.value - 1) <= point.error < 1e-12
    assert sorted(s.m for s in found.at(0.7)) == pytest.approx([0], abs=1e-14)
    root = float(mpmath.findroot(lambda s: s - mpmath.tanh(2 * s), 0.95))
    assert [s.m for s in found.at(2)] == pytest.approx([-root, 0, root], abs=1e-12)
    for branch in found.branches:
        stable = (branch["beta"] < 1) | (branch["m"] != 0)
        away = np.abs(branch["beta"] - 1) > 1e-3
        assert (branch.stable == (stable & (np.abs(branch["m"]) > 1e-9) | (branch["beta"] < 1)))[
            away
        ].all()


def test_a_transition_at_a_point_of_the_grid_is_seen(kernel):
    # β = 1 is among the values at which solutions are searched, and a step of the branch m = 0.
    found = kernel.branches("beta", (0.5, 1.5), bounds=INSIDE, h=0, points=8)
    (point,) = found.transitions
    assert point.value == pytest.approx(1, abs=1e-12) and len(found.branches) == 2
    system = magnet(outputs={"field": h})
    crossing = gs.lower(system).branches(
        "h", (-0.5, 0.5), bounds=INSIDE, zeros="field", beta=0.5, points=8
    )
    assert [abs(p.value) < 1e-15 for p in crossing.zeros("field")] == [True]


def test_a_branch_ends_where_it_leaves_its_domain():
    positive = sp.Symbol("m", positive=True)
    # m³ = β − 1 inside (0.1, 1).
    kernel = gs.lower(
        gs.SaddlePointSystem.from_fixed_point(
            {positive: sp.Eq(positive**3, beta - 1)}, name="root", parameters=(beta,)
        )
    )
    (branch,) = kernel.branches("beta", (0.5, 2.5), bounds={"m": (0.1, 1)}).branches
    low, high = sorted(branch.ends, key=lambda e: e.value)
    assert (low.value, high.value) == pytest.approx((1.001, 2), abs=1e-6)
    assert "m leaves its domain through 0.1" in low.reason
    assert "m leaves its domain through 1" in high.reason


def test_what_decays_does_not_leave_its_domain():
    # x = exp(−100β) for small x, which is never zero.
    system = gs.SaddlePointSystem.from_fixed_point(
        {x: sp.exp(-beta / (x + sp.Rational(1, 100)))}, name="decay", parameters=(beta,)
    )
    found = gs.lower(system).branches("beta", (0.1, 0.3), bounds={"x": (0, 0.01)}, starts=8)
    (end,) = (e for b in found.branches for e in b.ends if "x is 0 to 1e-09" in e.reason)
    assert end.value == pytest.approx(-0.01 * math.log(1e-11), rel=1e-3)


def test_an_unknown_may_stay_at_any_end_of_its_domain():
    # A random graph (Erdős and Rényi, 1960): a vertex is outside of the giant component with
    # probability u = exp(c (u - 1)); u = 1 always solves this, and u < 1 leaves it at c = 1.
    degree, outside = sp.symbols("c u", positive=True)
    system = gs.SaddlePointSystem.from_fixed_point(
        {outside: sp.exp(degree * (outside - 1))},
        name="random_graph", parameters=(degree,), domains={outside: sp.Interval.open(0, 1)},
    )  # fmt: skip
    kernel = gs.lower(system)
    found = kernel.branches("c", (0.5, 2))
    one, other = found.branches
    assert one.held == {"u": 1} and other.held == {}
    assert (one["u"] == 1).all() and (one.stable == (one["c"] < 1))[one["c"] != 1].all()
    (point,) = found.transitions
    assert point.kind == "second-order" and abs(point.value - 1) <= point.error < 1e-12
    lambert = float((-sp.LambertW(-sp.Rational(3, 2) * sp.exp(-sp.Rational(3, 2))) / 1.5).evalf())
    assert [s.u for s in found.at(1.5)] == pytest.approx([lambert, 1], rel=1e-14)
    again = type(found).from_json(found.to_json())
    assert again == found and again.with_kernel(kernel).points[0].refine().c == pytest.approx(1)


def test_a_line_of_transitions_may_leave_from_the_other_end():
    # The same graph with edges kept with probability p: the component appears at c p = 1.
    degree, outside, kept = sp.symbols("c u p", positive=True)
    system = gs.SaddlePointSystem.from_fixed_point(
        {outside: sp.exp(degree * kept * (outside - 1))},
        name="diluted_graph", parameters=(degree, kept), domains={outside: sp.Interval.open(0, 1)},
    )  # fmt: skip
    plane = gs.lower(system).phase_diagram(("c", 1, 3), ("p", 0.4, 0.9), cuts=1, points=20)
    (line,) = plane.lines
    assert line.kind == "second-order" and (line.unknowns["u"] == 1).all()
    assert line.x * line.y == pytest.approx(1, rel=1e-12)
    assert [line.y.min(), line.y.max()] == pytest.approx([0.4, 0.9])


def test_an_unknown_may_vanish_at_the_end_of_its_domain():
    # The magnet with m > 0: m = 0 is a solution for all β, and m > 0 leaves it at β = 1.
    positive = sp.Symbol("m", positive=True)
    system = gs.SaddlePointSystem.from_fixed_point(
        {positive: sp.tanh(beta * positive)}, name="positive_magnet", parameters=(beta,)
    )
    found = gs.lower(system).branches("beta", (0.5, 2), bounds={"m": (0, 1)})
    zero, other = found.branches
    assert zero.held == {"m": 0} and other.held == {}
    assert (zero["m"] == 0).all() and (zero.stable == (zero["beta"] < 1))[zero["beta"] != 1].all()
    (point,) = found.transitions
    assert point.kind == "second-order" and abs(point.value - 1) <= point.error < 1e-12
    assert other["m"][0] == 0 and "another branch at beta = 1" in other.ends[0].reason
    root = float(mpmath.findroot(lambda s: s - mpmath.tanh(1.5 * s), 0.9))
    assert [s.m for s in found.at(1.5)] == pytest.approx([0, root], abs=1e-13)
    assert abs(point.refine(digits=40).beta - 1) < 1e-39


def test_lines_of_transitions_leave_from_zero():
    # A Gaussian spike in αn samples, q = αs p/(1 + αs p), p = s q/(1 + s q): from s²α = 1 on.
    q, p, s = sp.symbols("q p s", positive=True)
    system = gs.SaddlePointSystem.from_fixed_point(
        {q: alpha * s * p / (1 + alpha * s * p), p: s * q / (1 + s * q)},
        name="spike", parameters=(s, alpha),
    )  # fmt: skip
    plane = gs.lower(system).phase_diagram(
        ("s", 0.3, 3), ("alpha", 0.5, 3), bounds={"q": (0, 1)}, cuts=1
    )
    (line,) = plane.lines
    assert line.kind == "second-order" and (line.unknowns["q"] == 0).all()
    np.testing.assert_allclose(line.x**2 * line.y, 1, rtol=1e-13)
    assert line.y.min() == 0.5 and line.y.max() == 3


# ------------------------------------------------------------------ free energies


def test_conjugates_are_eliminated_from_the_hessian():
    # f = −m²/2 + m m̂ − log(2 cosh β(m̂ + h))/β is a maximum over m̂, and then has the second
    # derivative 1/(β(1 − m²)) − 1 in m.
    conjugate = sp.Symbol("m_hat", real=True)
    field = sp.log(2 * sp.cosh(beta * (conjugate + h)))
    free_energy = gs.FreeEnergy(
        -(m**2) / 2 + m * conjugate - field / beta, (m,), (conjugate,), (beta, h)
    )
    system = gs.SaddlePointSystem.from_free_energy(free_energy, name="conjugate_magnet")
    assert system.free_energy is free_energy
    kernel = gs.lower(system)
    options = {"over": "h", "within": (-0.5, 0.5), "bounds": INSIDE, "beta": 1.5}
    found = kernel.branches(**options, extremum="minimum")
    (branch,) = found.branches
    exact = 1 / (1.5 * (1 - branch["m"] ** 2)) - 1
    np.testing.assert_allclose(branch.hessian_eigenvalues[:, 0], exact, rtol=1e-10, atol=1e-13)
    assert "minimum" in found.stability
    np.testing.assert_allclose(branch["m_hat"], branch["m"], rtol=0, atol=1e-14)
    assert [p.kind for p in found.points] == ["spinodal", "spinodal", "first-order"]
    assert found.points[0].value == pytest.approx(float(spinodal_field(1.5)), rel=1e-12)
    away = np.abs(exact) > 1e-6
    # m̂ = m, m = tanh β(m̂ + h) is a map, too, and agrees.
    iterated = kernel.branches(**options)
    assert iterated.stability == "stable: under iteration of the equations"
    assert (iterated.branches[0].stable == branch.stable)[away].all()
    turned = kernel.branches(**options, extremum="maximum")
    assert (turned.branches[0].stable == ~branch.stable)[away].all()
    assert not turned.transitions  # one unstable branch has nothing to exchange with


def landau():
    """f = u⁶/6 − b u⁴/4 + a u²/2, with everything in closed form and a tricritical point at 0."""
    b, control = sp.symbols("b a", real=True)
    free_energy = gs.FreeEnergy(
        u**6 / 6 - b * u**4 / 4 + control * u**2 / 2, (u,), (), (control, b)
    )
    return gs.lower(gs.SaddlePointSystem.from_free_energy(free_energy, name="landau"))


def test_transitions_of_landau_theory():
    # b = 1: spinodals at a = 1/4, u² = 1/2; equal free energies at a = 3/16, u² = 3/4; and u = 0
    # loses its stability at a = 0 to a phase that is far away.
    found = landau().branches("a", (-0.5, 0.5), bounds={"u": (-2, 2)}, b=1)
    assert [p.kind for p in found.points] == [
        "spinodal", "spinodal", "instability", "first-order", "first-order",
    ]  # fmt: skip
    assert [p.value for p in found.points] == pytest.approx(
        [0.25, 0.25, 0, 0.1875, 0.1875], rel=1e-12, abs=1e-12
    )
    for point in found.transitions:
        phases = sorted((abs(point.unknowns["u"]), abs(point.unknowns["u_other"])))
        assert phases == pytest.approx([0, math.sqrt(0.75)], abs=1e-12)
    # Stable where f'' = 5u⁴ − 3u² + a is positive.
    for branch in found.branches:
        slope = 5 * branch["u"] ** 4 - 3 * branch["u"] ** 2 + branch["a"]
        np.testing.assert_allclose(branch.hessian_eigenvalues[:, 0], slope, rtol=1e-10, atol=1e-13)
        away = np.abs(slope) > 1e-9
        assert (branch.stable == (slope > 0))[away].all()


@pytest.mark.slow
def test_lines_of_landau_theory_meet_at_the_tricritical_point():
    plane = landau().phase_diagram(("a", -0.5, 0.5), ("b", -1, 1), bounds={"u": (-2, 2)})
    for line in plane.of("first-order"):
        np.testing.assert_allclose(line.x, 3 * line.y**2 / 16, rtol=0, atol=1e-13)
        assert line.y.max() == 1 and line.y.min() < 0.02
    (spinodals,) = plane.of("spinodal")
    np.testing.assert_allclose(spinodals.x, spinodals.y**2 / 4, rtol=0, atol=1e-13)
    (second,), (unstable,) = plane.of("second-order"), plane.of("instability")
    assert second.y.min() == -1 and abs(second.y.max()) < 1e-14
    assert unstable.y.max() == 1 and abs(unstable.y.min()) < 1e-14
    assert np.abs(np.concatenate([second.x, unstable.x])).max() < 1e-12
    (turn,) = plane.tricritical_points
    assert abs(turn.x) < 1e-14 and abs(turn.y) < 1e-14 and plane.critical_points == ()
    (again,) = PhaseDiagram.from_json(plane.to_json()).with_kernel(landau()).tricritical_points
    assert again.point.system.equations == turn.point.system.equations


@pytest.mark.slow
def test_the_tricritical_point_of_a_random_field():
    # Fields ±h: the field is lost at β = cosh² βh, and where tanh² βh = 1/3 the third derivative
    # of tanh vanishes there, too: Aharony, Phys. Rev. B 18, 3318 (1978).
    b, field = sp.symbols("b field", positive=True)
    value = (sp.tanh(b * (m + field)) + sp.tanh(b * (m - field))) / 2
    kernel = gs.lower(
        gs.SaddlePointSystem.from_fixed_point({m: value}, name="bimodal", parameters=(b, field))
    )
    plane = kernel.phase_diagram(
        ("b", 1.3, 1.8), ("field", 0.4, 0.48), bounds={"m": (-1, 1)}, cuts=1, points=10, starts=8
    )
    (turn,) = plane.tricritical_points
    exact = math.atanh(1 / math.sqrt(3)) / 1.5
    assert turn.x == pytest.approx(1.5, rel=1e-13) and turn.y == pytest.approx(exact, rel=1e-13)
    assert turn.point.error < 1e-12
    many = turn.refine(digits=40)
    with mpmath.workdps(45):
        assert abs(many.b - mpmath.mpf(3) / 2) < mpmath.mpf("1e-39")
        assert abs(many.field - mpmath.atanh(1 / mpmath.sqrt(3)) / 1.5) < mpmath.mpf("1e-39")
    # Both lines end there.
    (second,), (lost,) = plane.of("second-order"), plane.of("instability")
    for line in (second, lost):
        assert np.min(np.hypot(line.x - turn.x, line.y - turn.y)) == 0
    assert "tricritical point at b = 1.5" in str(plane)


def test_the_tricritical_point_of_an_overlap_that_cannot_be_negative():
    # q = 1 − exp(−aq − bq²) leaves zero at a = 1, where a = 1 + (1/2 − b)q + …
    a, b = sp.symbols("a b", positive=True)
    q = sp.Symbol("q", positive=True)
    kernel = gs.lower(
        gs.SaddlePointSystem.from_fixed_point(
            {q: 1 - sp.exp(-a * q - b * q**2)}, name="hypergraph", parameters=(a, b)
        )
    )
    plane = kernel.phase_diagram(
        ("a", 0.7, 1.4), ("b", 0.2, 0.9), bounds={"q": (0, 1)}, cuts=1, points=30
    )
    (turn,) = plane.tricritical_points
    assert (turn.x, turn.y) == pytest.approx((1, 0.5), rel=1e-13)
    (second,), (lost,) = plane.of("second-order"), plane.of("instability")
    assert second.y.max() == lost.y.min() == turn.y
    assert plane.plot().get_legend() is not None


def test_a_tricritical_point_with_an_overlap_that_follows():
    # m³ + m(a + r) = 0 with r = bm² + r²: what follows from m changes the cubic term to 1 + b.
    a, b = sp.symbols("a b", real=True)
    r = sp.Symbol("r", real=True)
    system = OpenSystem(
        gs.SaddlePointSystem.from_fixed_point(
            {m: m - m**3 - m * (a + r), r: b * m**2 + r**2}, name="coupled", parameters=(a, b)
        )
    )
    closed = Condition(system, "boundary", held=((m, sp.S.Zero),), bent=True).system(a)
    found = gs.lower(closed).solve(b=0.25, start={"r": 0.1})
    assert found.a == pytest.approx(0, abs=1e-14)
    assert found.second_derivative_along == pytest.approx(0, abs=1e-14)
    assert found.third_derivative_along == pytest.approx(6 * 1.25, rel=1e-13)


def test_a_free_energy_may_be_a_maximum_in_one_variable_and_a_minimum_in_another():
    # φ = log 2cosh β(m + h) − β(m²/2 − (v − m)²/2), a maximum over m of the minimum over v.
    field = beta * (m + h)
    entropy = sp.log(2 * sp.cosh(field)) - beta * m**2 / 2 + beta * (v - m) ** 2 / 2
    free_energy = gs.FreeEnergy(entropy, (m, v), (), (beta, h))
    kernel = gs.lower(gs.SaddlePointSystem.from_free_energy(free_energy, name="saddle"))
    box = {name: (-1, 1) for name in kernel.code.unknowns}
    (branch,) = kernel.branches(
        "h", (0.05, 0.3), bounds=box, beta=0.8, extremum={"m": "maximum", "v": "minimum"}
    ).branches
    assert branch.stable.all()
    (branch,) = kernel.branches("h", (0.05, 0.3), bounds=box, beta=0.8, extremum="minimum").branches
    assert not branch.stable.any()
    for extremum, message in (
        ({"m": "maximum"}, "what it is in v, too"),
        ({"m": "maximum", "v": "least"}, "must be 'minimum' or 'maximum'"),
        ({"q": "maximum"}, "no order parameter"),
    ):
        with pytest.raises(ParameterError, match=message):
            kernel.branches("h", (0.05, 0.3), beta=0.8, extremum=extremum)


def test_implicit_equations_without_a_free_energy_have_no_stability():
    system = gs.SaddlePointSystem.from_fixed_point(
        {u: sp.Eq(u**3 - u, h)}, name="cubic", parameters=(h,)
    )
    found = gs.lower(system).branches("h", (-1, 1), bounds={"u": (-2, 2)})
    assert "stability unknown" in found.stability and found.branches[0].stable is None
    # Folds of u³ − u = h: u = ∓1/√3, h = ±2/(3√3).
    exact = 2 / (3 * math.sqrt(3))
    assert [p.value for p in found.spinodals] == pytest.approx([-exact, exact], rel=1e-13)
    # u³ − u = −3/8 has the root 1/2, and with it (−1 ± √13)/4.
    roots = [(-1 - math.sqrt(13)) / 4, 0.5, (-1 + math.sqrt(13)) / 4]
    assert [s.u for s in found.at(-0.375)] == pytest.approx(roots, abs=1e-12)


# ------------------------------------------------------------------ several unknowns, crossings


@pytest.mark.slow
def test_branches_that_leave_branches():
    # Two sublattices that disfavour each other. On u = v = 0 the mode u = −v is lost at β = 1 and
    # u = v at β = 5/3; on u = v = tanh(3βu/5) the mode u = −v returns where β(1 − u²) = 1.
    def local(own, other):
        return sp.tanh(beta * (sp.Rational(4, 5) * own - other / 5))

    system = gs.SaddlePointSystem.from_fixed_point(
        {u: local(u, v), v: local(v, u)}, name="rivals", parameters=(beta,)
    )
    found = gs.lower(system).branches(
        "beta", (0.5, 4), bounds={"u": (-1, 1), "v": (-1, 1)}, points=50
    )
    again = brentq(
        lambda b: math.sqrt(1 - 1 / b) - math.tanh(0.6 * b * math.sqrt(1 - 1 / b)), 1.8, 3,
        xtol=1e-14,
    )  # fmt: skip
    values = {kind: [p.value for p in found.points if p.kind == kind] for kind in
              ("second-order", "instability")}  # fmt: skip
    assert values["second-order"] == pytest.approx([1], rel=1e-12)
    assert values["instability"] == pytest.approx([5 / 3, again, again], rel=1e-11)
    for value, count in ((0.8, 1), (1.2, 3), (2, 5), (3.5, 9)):
        solutions = found.at(value)
        assert len(solutions) == count
        for s in solutions:
            assert s.u == pytest.approx(math.tanh(value * (0.8 * s.u - 0.2 * s.v)), abs=1e-13)


def test_a_crossing_away_from_zero_to_many_digits():
    system = gs.SaddlePointSystem.from_fixed_point(
        {u: 1 + sp.tanh(beta * (u - 1))}, name="shifted_magnet", parameters=(beta,)
    )
    found = gs.lower(system).branches("beta", (0.3, 2.5), bounds={"u": (0, 2)})
    (point,) = found.transitions
    refined = point.refine(digits=30)
    assert abs(refined.beta - 1) < 1e-28 and abs(refined.u - 1) < 1e-28


def test_a_closed_curve_is_followed_once():
    def circle(points):
        s, p = points.T
        return (s**2 + p**2 - 1)[:, None], 2 * points[:, None, :]

    inside = Equations(circle, np.array([-9.0, -2]), np.array([9.0, 2]), np.ones(2))
    curve = curve_through(inside, np.array([0.6, 0.8]), largest=0.02)
    assert curve.end == CLOSED
    folds = sorted(float(p[1]) for _, kind, p in curve.marks if kind == FOLD)
    assert folds == pytest.approx([-1, 1], abs=1e-14)
    points = np.array(curve.points)
    length = np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
    assert length == pytest.approx(2 * math.pi, rel=1e-3)


def copies_of_the_magnet(count):
    """Residuals u − tanh βu of some magnets that do not see each other, in closed form."""

    def evaluate(points):
        s, b = points[:, :-1], points[:, -1:]
        slope = 1 - np.tanh(b * s) ** 2
        diagonal = (1 - b * slope)[:, :, None] * np.eye(count)
        return s - np.tanh(b * s), np.concatenate([diagonal, -(s * slope)[:, :, None]], axis=2)

    low, high = np.append(-np.ones(count), 0.8), np.append(np.ones(count), 1.2)
    return Equations(evaluate, low, high, high - low)


def test_all_branches_leave_where_two_eigenvalues_vanish():
    # Of two magnets each may be ±m or 0 for β > 1: eight branches, of which four are no diagonals.
    equations = copies_of_the_magnet(2)
    curves, _ = all_curves(equations, np.array([[0, 0, 0.8]]), [1], largest=0.1)
    (mark,) = curves[0].marks
    assert mark[1] == CROSSING and mark[2] == pytest.approx([0, 0, 1], abs=1e-13)
    up = brentq(lambda s: s - math.tanh(1.2 * s), 0.1, 1, xtol=1e-15)
    found = np.array([curve.points[-1][:2] for curve in curves])
    assert np.min(np.abs(found[:, :, None] - [-up, 0, up]), axis=2) == pytest.approx(0, abs=1e-12)
    assert len(found) == len(np.unique(found.round(6), axis=0)) == 9


@pytest.mark.slow
def test_all_branches_leave_where_three_eigenvalues_vanish():
    equations = copies_of_the_magnet(3)
    curves, _ = all_curves(equations, np.array([[0, 0, 0, 0.8]]), [1], largest=0.05)
    assert len({tuple(np.sign(np.round(curve.points[-1][:3], 6))) for curve in curves}) == 27


def test_two_crossings_inside_one_step_are_told_apart():
    # Pitchforks of two unknowns at p = 0.30 and 0.31, on a branch whose steps are longer.
    def evaluate(points):
        s, w, p = points.T
        one, two, zero = 0.3 - p + s**2, 0.31 - p + w**2, np.zeros_like(s)
        rows = [[one + 2 * s**2, zero, -s], [zero, two + 2 * w**2, -w]]
        return np.stack([s * one, w * two], axis=1), np.moveaxis(np.array(rows), -1, 0)

    box = Equations(evaluate, np.array([-2.0, -2, 0]), np.array([2.0, 2, 1]), np.ones(3))
    curve = curve_through(box, np.zeros(3), largest=0.1)
    assert [kind for _, kind, _ in curve.marks] == [CROSSING, CROSSING]
    assert [y[2] for _, _, y in curve.marks] == pytest.approx([0.3, 0.31], rel=1e-12)


def vector(over, within, bounds=(-2, 2), **parameters):
    """Return branches of f = a|r|²/2 + |r|⁴/4 − hx with r = (x, y), a vector in a field."""
    r, s = sp.symbols("r s", real=True)
    square, a_ = r**2 + s**2, sp.Symbol("a", real=True)
    free = gs.FreeEnergy(a_ * square / 2 + square**2 / 4 - h * r, (r, s), (), (a_, h))
    kernel = gs.lower(gs.SaddlePointSystem.from_free_energy(free, name="vector"))
    box = dict.fromkeys(("r", "s"), bounds)
    return kernel.branches(over, within, bounds=box, starts=4, points=10, **parameters)


def test_solutions_on_a_circle_are_not_isolated():
    # r(p − |r|²) = 0 at p = 1/2 and, where it begins, at p = 0.
    def evaluate(points):
        s, p = points[:, :2], points[:, 2:]
        square = np.sum(s**2, axis=1)[:, None]
        rows = (p - square)[:, :, None] * np.eye(2) - 2 * s[:, :, None] * s[:, None, :]
        return s * (p - square), np.concatenate([rows, s[:, :, None]], axis=2)

    box = Equations(evaluate, np.array([-1.0, -1, -1]), np.ones(3), np.full(3, 2.0))
    on_circle = [math.sqrt(0.5) * math.cos(1), math.sqrt(0.5) * math.sin(1), 0.5]
    points = np.array([on_circle, [0, 0, 0.5], [0, 0, 0]])
    assert isolated(box, points).tolist() == [False, True, True]


@pytest.mark.slow
def test_a_circle_of_solutions_is_no_branch():
    # Without a field it exists for a < 0, where |r|² = −a; in one, at h = 0 alone.
    found = vector("a", (-1, 0.5), h=0)
    (branch,), (point,) = found.branches, found.points
    assert point.kind == "second-order" and abs(point.value) < 1e-13 and not branch["r"].any()
    assert "for a from -0.75 to " in found.sought and "are not isolated" in str(found)
    found = vector("h", (-1, 1), a=-1)
    # The other component is lost at h = 0, and x³ − x = h folds at ±2/(3√3).
    assert [p.value for p in found.spinodals] == pytest.approx(
        [-2 / math.sqrt(27), 2 / math.sqrt(27)], rel=1e-12
    )
    assert {abs(p.value) < 1e-13 for p in found.transitions} == {True}
    assert "for h = 0 solutions are not isolated" in found.sought
    with pytest.raises(ConvergenceError, match=r"no branch of vector was found: .* not isolated"):
        vector("a", (-1, -0.5), (0.1, 2), h=0)


@pytest.mark.slow
def test_the_potts_model_loses_its_symmetry():
    # Three states at the corners e of a triangle, f = r²/2 − log Σ exp(β e·r)/β. In units of βJ =
    # 3β/2 phases exchange at 4 log 2 (Wu, Rev. Mod. Phys. 54, 235 (1982)) and x = y = 0 is lost
    # at 3, where both eigenvalues 1 − β/2 vanish.
    total = sp.exp(beta * u) + 2 * sp.exp(-beta * u / 2) * sp.cosh(beta * sp.sqrt(3) * v / 2)
    free = gs.FreeEnergy((u**2 + v**2) / 2 - sp.log(total) / beta, (u, v), (), (beta,))
    kernel = gs.lower(gs.SaddlePointSystem.from_free_energy(free, name="potts"))
    found = kernel.branches("beta", (1.5, 2.5), bounds={"u": (-1, 1), "v": (-1, 1)}, points=20)
    first = [p.value for p in found.points if p.kind == "first-order"]
    assert first == pytest.approx([8 * math.log(2) / 3] * 3, rel=1e-12)
    (lost,) = (p for p in found.points if p.kind == "instability")
    assert abs(lost.value - 2) <= lost.error < 1e-11 and lost.stated.others == (1,)
    assert abs(lost.refine(digits=40).beta - 2) < 1e-39
    again = BranchDiagram.from_json(found.to_json())
    assert again == found and again.with_kernel(kernel).points[3].refine(digits=30).beta == 2


@pytest.mark.slow
def test_a_double_crossing_away_from_zero():
    # Fractions of three states, all 1/3 up to βJ = 3.
    one, two = sp.symbols("one two", positive=True)
    weights = [sp.exp(beta * p) for p in (one, two, 1 - one - two)]
    system = gs.SaddlePointSystem.from_fixed_point(
        {p: w / sum(weights) for p, w in zip((one, two), weights, strict=False)},
        name="fractions", parameters=(beta,),
    )  # fmt: skip
    found = gs.lower(system).branches(
        "beta", (2.5, 3.5), bounds={"one": (0, 1), "two": (0, 1)}, points=30
    )
    assert len(found.branches) == 4 and {b.ends[0].value for b in found.branches[1:]} == {3.5}
    (lost,) = (p for p in found.points if p.kind == "instability")
    assert abs(lost.value - 3) <= lost.error < 1e-11
    refined = lost.refine(digits=40)
    assert abs(refined.beta - 3) < 1e-38 and abs(refined.one - sp.Rational(1, 3)) < 1e-38


# ------------------------------------------------------------------ what is returned


def test_diagrams_are_read_from_documents(hysteresis, kernel):
    read = BranchDiagram.from_json(hysteresis.to_json())
    assert read == hysteresis and str(read) == str(hysteresis)
    assert read.latex() == hysteresis.latex() and read.points[0].value == hysteresis.points[0].value
    table = hysteresis.to_dataset()
    assert read.to_dataset().identical(table) and table.attrs["beta"] == 1.5
    # Not the overlap of the models here that has the same name.
    assert table.m.attrs["long_name"] == "m, unknown"
    branch = hysteresis.branches[0]
    assert {*table.data_vars} - {"h", *branch.unknowns, *branch.outputs} <= {*COLUMNS}
    axes = hysteresis.plot(label="magnet")
    assert {"-", "--"} <= {line.get_linestyle() for line in axes.lines}
    assert axes.get_legend_handles_labels()[1].count("magnet") == 1
    # Aligned at one relation, which rows that are broken later need.
    assert r"\text{spinodal}:\ R &= 0" in hysteresis.latex()
    assert r"\det" in hysteresis._repr_latex_()
    assert "first-order at h = " in str(hysteresis) and r"\tanh" in hysteresis.spinodals[0].latex()
    for refused in (lambda: read.at(0.05), read.points[0].refine):
        with pytest.raises(ParameterError, match=r"from a document, .* with_kernel"):
            refused()
    again = read.with_kernel(kernel)
    assert [s.m for s in again.at(0.05)] == [s.m for s in hysteresis.at(0.05)]
    for point, other in zip(again.points, hysteresis.points, strict=True):
        assert point.refine(digits=20).h == other.refine(digits=20).h
    cubic = gs.SaddlePointSystem.from_fixed_point(
        {u: sp.Eq(u**3 - u, h)}, name="cubic", parameters=(beta, h)
    )
    with pytest.raises(ParameterError, match=r"must be that of magnet, .* got cubic"):
        read.with_kernel(gs.lower(cubic))
    with pytest.raises(ParameterError, match="no branch diagram written by to_json"):
        BranchDiagram.from_json(hysteresis.points[0].to_json())


@pytest.mark.parametrize(("starts", "tried"), [(1, 21), (8, 56)])
def test_more_starts_are_tried_where_one_alone_has_found_a_branch(starts, tried):
    # Two circles, the small one inside |p| < 1/10: of seven values of p one meets it.
    circles = ((u - 3) ** 2 + h**2 - 1) * ((u + 3) ** 2 + h**2 - sp.Rational(1, 100))
    system = gs.SaddlePointSystem.from_fixed_point(
        {u: sp.Eq(circles, 0)}, name="islands", parameters=(h,)
    )
    found = gs.lower(system).branches("h", (-2, 2), bounds={"u": (-6, 6)}, starts=starts)
    assert f"found from {tried} first values" in found.sought and found.sought in str(found)
    assert sorted(p.value for p in found.spinodals) == pytest.approx([-1, -0.1, 0.1, 1], rel=1e-12)


def test_where_all_unknowns_are_held_one_first_value_is_tried(kernel):
    seeds = search_of(kernel, "beta", (0.5, 1.9), {"m": (0, 1)}, h=0)._seeds(4)
    solutions, hits = seeds[(0, 0.0),]
    assert len(solutions) == SEARCHED and set(hits.tolist()) == {1}


def test_a_phase_has_no_free_energy_beyond_its_end(kernel):
    exchanges = Exchanges(search_of(kernel, "h", (-0.5, 0.5), INSIDE, beta=1.5))
    (phase,) = (p for p in exchanges._phases() if p.holds(0.4) and not p.holds(-0.4))
    end = phase.parameter.min()
    _, energies, _ = exchanges._on_phase(phase, np.array([end - 0.02, end + 0.02]))
    assert np.isfinite(energies).tolist() == [False, True]


def test_what_is_held_moves_nothing_next_to_a_crossing():
    # x = cos p + v and v(p − 3/10) = 0 to rounding: v = 0 is held, and is lost at p = 3/10.
    def equations(points):
        s, w, p = points.T
        residual = np.stack([s - np.cos(p) - w, w * (p - 0.3) + 1e-17], axis=1)
        one, zero = np.ones_like(s), np.zeros_like(s)
        rows = [[one, -one, np.sin(p)], [zero, p - 0.3, w]]
        return residual, np.moveaxis(np.array(rows), -1, 0)

    box = Equations(equations, np.array([-9.0, 0, 0]), np.array([9.0, 9, 1]), np.ones(3), held=(1,))
    curve = curve_through(box, np.array([math.cos(0.1), 0, 0.1]), largest=0.02)
    ((_, kind, y),) = curve.marks
    assert kind == CROSSING and y[2] == pytest.approx(0.3, rel=1e-14)
    assert y[0] == pytest.approx(math.cos(0.3), rel=1e-15)


def test_zeros_of_outputs_along_branches():
    system = magnet(outputs={"excess": m - sp.Rational(9, 20)})
    found = gs.lower(system).branches("h", (-0.5, 0.5), bounds=INSIDE, zeros="excess", beta=1.5)
    (point,) = found.zeros("excess")
    # m = 9/20 where h = artanh(9/20)/β − 9/20.
    exact = math.atanh(0.45) / 1.5 - 0.45
    # The error is that of the output, some tens of units of rounding, over its slope along h.
    slope = 1.5 * (1 - 0.45**2)
    slope /= 1 - slope
    assert abs(point.value - exact) <= point.error
    assert 15 < point.error * abs(slope) / np.finfo(float).eps < 70
    with mpmath.workdps(30):
        m_exact = mpmath.mpf(9) / 20
        exact = mpmath.atanh(m_exact) / mpmath.mpf("1.5") - m_exact
        assert abs(mpmath.mpf(str(point.refine(digits=25).h)) - exact) < mpmath.mpf(10) ** -24


def potential(energy, *parameters):
    """The kernel of a free energy of one number that may be anything."""
    free = gs.FreeEnergy(
        energy.subs(x, sp.Symbol("x", real=True)), (sp.Symbol("x", real=True),), (), parameters
    )
    return gs.lower(gs.SaddlePointSystem.from_free_energy(free, name="potential"))


def test_a_free_energy_that_falls_without_end_has_no_ground_state():
    cubic = potential(x**3 - a * x, a)
    told = "not bounded below for x → -∞, as far as 10000 shows: no solution is its least value"
    found = cubic.branches("a", (0.5, 2))
    assert told in found.stability and told in str(found)
    # Inside of bounds all is bounded; a minimum at each end that grows is one; a maximum is none.
    assert "bounded" not in cubic.branches("a", (0.5, 2), bounds={"x": (-3, 3)}).stability
    double_well = potential(x**4 / 4 - a * x**2 / 2, a)
    assert "bounded" not in double_well.branches("a", (0.5, 2)).stability
    hill = double_well.branches("a", (0.5, 2), extremum="maximum")
    assert "not bounded above for x → ∞ and -∞" in hill.stability


def test_a_phase_that_is_left_exchanges_with_none():
    # Without x every a > 1 makes it grow, to log a; at a = 2 both have one free energy.
    system = gs.SaddlePointSystem.from_fixed_point(
        {x: a * x * sp.exp(-x)}, name="growth", parameters=(a,),
        outputs={"free_energy": x * (a - 2)},
    )  # fmt: skip
    found = gs.lower(system).branches("a", (1.5, 3), bounds={"x": (0, 5)})
    assert [len(found.at(v)) for v in (1.6, 2.5)] == [2, 2]
    assert not found.points


# ------------------------------------------------------------------ dynamics


def test_iteration_is_the_map(kernel):
    path = kernel.iterate(beta=2, h=0.1, start={"m": 0.2}, steps=4)
    assert path.m.attrs["long_name"] == "m, unknown"
    expected = [0.2]
    for _ in range(4):
        expected.append(math.tanh(2 * (expected[-1] + 0.1)))
    np.testing.assert_allclose(path.m, expected, rtol=1e-14)
    assert not path.converged and path.ending == "no fixed point in 4 steps"
    whole = kernel.iterate(beta=2, h=0.1, start={"m": 0.2})
    assert whole.converged and whole.attrs["beta"] == 2
    fixed = kernel.solve(beta=2, h=0.1, start={"m": 0.9})
    assert float(whole.m[-1]) == pytest.approx(fixed.m, rel=1e-11)
    assert float(whole.free_energy[-1]) == pytest.approx(fixed.free_energy, rel=1e-12)


def test_iteration_that_leaves_its_domain_or_swings():
    system = gs.SaddlePointSystem.from_fixed_point(
        {x: a - sp.exp(x)}, name="falling", parameters=(a,)
    )
    path = gs.lower(system).iterate(a=1.5, start={"x": 2})
    assert not path.converged and "left the domain" in path.ending and path.sizes["step"] == 1
    # Its end belongs to it.
    q = sp.Symbol("q", nonnegative=True)
    system = gs.SaddlePointSystem.from_fixed_point(
        {q: a * (q - 1) ** 2}, name="square", parameters=(a,)
    )
    path = gs.lower(system).iterate(a=1, start={"q": 1}, steps=4)
    assert path.ending == "no fixed point in 4 steps" and path.q.values.tolist() == [1, 0, 1, 0, 1]
    cubic = gs.SaddlePointSystem.from_fixed_point(
        {u: sp.Eq(u**3 - u, h)}, name="cubic", parameters=(h,)
    )
    with pytest.raises(ParameterError, match="no map x = F"):
        gs.lower(cubic).iterate(h=1)
    system = gs.SaddlePointSystem.from_fixed_point(
        {u: -sp.tanh(beta * u)}, name="antiferromagnet", parameters=(beta,)
    )
    wild = gs.lower(system).iterate(beta=3, start={"u": 0.5}, steps=200)
    assert not wild.converged and float(wild.u[-1] * wild.u[-2]) < -0.9
    # Slope 1 − (1 − d)(1 + β) is inside (−1, 1) for d > 1/2 at β = 3.
    calm = gs.lower(system).iterate(beta=3, start={"u": 0.5}, damping=0.7)
    assert calm.converged and abs(float(calm.u[-1])) < 1e-11


# ------------------------------------------------------------------ two parameters


def test_phase_diagram_of_the_magnet(kernel):
    pytest.importorskip("matplotlib")
    plane = kernel.phase_diagram(("h", -0.3, 0.3), ("beta", 0.6, 2), bounds=INSIDE, cuts=2)
    (spinodals,) = plane.of("spinodal")
    top = np.sqrt(np.maximum(1 - 1 / spinodals.y, 0))
    exact = np.arctanh(top) / spinodals.y - top
    np.testing.assert_allclose(np.abs(spinodals.x), np.abs(exact), rtol=0, atol=1e-12)
    (first,) = plane.of("first-order")
    np.testing.assert_allclose(first.x, 0, rtol=0, atol=1e-12)
    assert first.y.max() == 2 and first.y.min() < 1.01
    assert any("become one" in end.reason for end in first.ends)
    (critical,) = plane.critical_points
    assert critical.y == pytest.approx(1, abs=1e-10) and abs(critical.x) < 1e-12
    assert len(plane.plot().lines) == 3
    read = PhaseDiagram.from_json(plane.to_json())
    assert read == plane and str(read) == str(plane) and len(read.plot().lines) == 3
    assert read.latex() == plane.latex() and r"\text{critical point}" in plane.latex()
    table = plane.to_dataset()
    assert "critical point at h" in str(plane) and table.sizes["point"] > 200
    assert table.beta.attrs["long_name"] == "beta, parameter"


def test_a_line_of_one_phase_that_ends_inside_says_so():
    plane = Plane({}, {"h": (-1, 1), "beta": (0, 2)}, 100, Extremum((), ("m",), True, True))
    line: Any = SimpleNamespace(
        kind="spinodal", control="h", family=SimpleNamespace(over="beta"),
        values=lambda y: {"h": 0.5, "beta": 1.0},
    )  # fmt: skip
    end = plane._end("stuck", np.zeros(2), line)
    assert end.reason == "h = 0.5, beta = 1, beyond which it has no solution or no value"


def test_a_pitchfork_of_one_symmetric_cut_is_no_line(kernel):
    # At h = 0 branches cross at β = 1; for any other field the equation of m does not hold at 0.
    plane = kernel.phase_diagram(("h", -0.3, 0.3), ("beta", 0.6, 2), bounds=INSIDE, cuts=1)
    assert {line.kind for line in plane.lines} == {"spinodal", "first-order"}


def test_a_critical_point_to_many_digits():
    # The cusp s³ + (a − 1)u + b − 1 = 0 with s = u − √2: at a = b = 1, folds at
    # 4(a − 1)³ + 27(b − 1 + √2(a − 1))² = 0.
    b = sp.Symbol("b", positive=True)
    cubic = sp.expand((u - sp.sqrt(2)) ** 3)
    system = gs.SaddlePointSystem.from_fixed_point(
        {u: sp.Eq(cubic + (a - 1) * u, 1 - b)}, name="cusp", parameters=(a, b)
    )
    kernel = gs.lower(system)
    plane = kernel.phase_diagram(("a", 0.2, 1.5), ("b", 0.5, 2.4), bounds={"u": (0, 3)}, cuts=1)
    (line,) = plane.of("spinodal")
    moved = line.y - 1 + math.sqrt(2) * (line.x - 1)
    discriminant = 4 * (line.x - 1) ** 3 + 27 * moved**2
    np.testing.assert_allclose(discriminant, 0, rtol=0, atol=1e-12)
    (critical,) = plane.critical_points
    assert (critical.x, critical.y) == pytest.approx((1, 1), abs=1e-10)
    refined = critical.refine(digits=40)
    with mpmath.workdps(60):
        for name, exact in (("a", 1), ("b", 1), ("u", mpmath.sqrt(2))):
            assert refined.errors[name] < mpmath.mpf(10) ** -39
            found = mpmath.mpf(mpmath.nstr(refined[name], 50))
            assert abs(found - exact) < mpmath.mpf(10) ** -39
    read = PhaseDiagram.from_json(plane.to_json())
    with pytest.raises(ParameterError, match=r"from a document, .* with_kernel"):
        read.critical_points[0].refine()
    again = read.with_kernel(kernel)
    assert again == plane
    assert again.critical_points[0].refine(digits=40).values == refined.values
    with pytest.raises(ParameterError, match=r"one that giantstep\.lower returns"):
        read.with_kernel(3)


# ------------------------------------------------------------------ models of the literature


def normal_mean(f):
    """E f(z) by an adaptive rule on pieces."""

    def integrand(t):
        return f(t) * math.exp(-t * t / 2) / math.sqrt(2 * math.pi)

    edges = np.linspace(-10, 10, 11)
    return math.fsum(
        quad(integrand, p, q, epsabs=1e-15, epsrel=1e-13)[0] for p, q in itertools.pairwise(edges)
    )


@pytest.mark.slow
def test_line_of_de_almeida_and_thouless():
    from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick

    kernel = gs.lower(sherrington_kirkpatrick())
    plane = kernel.phase_diagram(
        ("h", 0.1, 1), ("beta", 0.5, 4), bounds={"sqrt_q": (0, 1)}, zeros="stability",
        cuts=1,
    )  # fmt: skip
    (line,) = plane.of("zero of stability")
    for k in range(0, len(line), 25):
        b, field, q = line.y[k], line.x[k], line.unknowns["sqrt_q"][k] ** 2

        def local(t, b=b, field=field, q=q):
            return b * (math.sqrt(q) * t + field)

        assert normal_mean(lambda t, f=local: math.tanh(f(t)) ** 2) == pytest.approx(q, rel=1e-11)
        sech4 = normal_mean(lambda t, f=local: math.cosh(f(t)) ** -4)
        assert b**2 * sech4 == pytest.approx(1, rel=1e-10)


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"over": "gamma"}, "no parameter of magnet is named 'gamma'"),
        ({"h": 0.1}, "leave out h="),
        ({"within": (0.5, -0.5)}, "finite and increasing"),
        ({"within": 3}, "must be two numbers"),
        ({"bounds": {"q": (0, 1)}}, "no unknown of Newton's method is named 'q'"),
        ({"bounds": {"m": (1, -1)}}, "bounds of m"),
        ({"bounds": {"m": 1}}, "must be two numbers"),
        ({"bounds": {"m": (math.nan, 1)}}, "must be two numbers"),
        ({"bounds": [1]}, "bounds must map unknowns to two numbers"),
        ({"zeros": "entropy"}, "no output is named 'entropy'"),
        ({"zeros": 3}, "zeros must be names of outputs"),
        ({"extremum": "saddle"}, "'minimum' or 'maximum'"),
        ({"extremum": "minimum"}, "magnet comes without one"),
        ({"starts": 0}, "starts"),
        ({"beta": -1}, "beta must be positive"),
    ],
)
def test_questions_that_a_kernel_does_not_answer(kernel, change, message):
    options = {"over": "h", "within": (-0.5, 0.5), "bounds": INSIDE, "beta": 1.5} | change
    with pytest.raises(ParameterError, match=re.escape(message)):
        kernel.branches(**options)


def test_names_of_columns_are_not_those_of_outputs():
    system = gs.SaddlePointSystem.from_fixed_point(
        {x: sp.exp(-a * x)}, name="model", parameters=(a,), outputs={"stable": x**2}
    )
    with pytest.raises(ParameterError, match="stable is the name of a column of the diagram"):
        gs.lower(system).branches(over="a", within=(0.5, 1))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda k, d: d.at(0.7), r"value of h must be from -0\.5 to 0\.5"),
        (lambda k, d: d.at("low"), "value of h must be"),
        (lambda k, d: d.zeros("entropy"), "no output is named 'entropy'"),
        (lambda k, d: d.with_kernel(3), r"that giantstep\.lower returns"),
        (lambda k, d: k.iterate(beta=2, h=0, damping=1), "damping must be a number from 0 to less"),
        (lambda k, d: k.phase_diagram(("h", -1, 1), ("h", -1, 1)), "must be two parameters"),
        (lambda k, d: k.phase_diagram("h", ("beta", 1, 2)), "a parameter with its range"),
    ],
)
def test_questions_that_a_diagram_does_not_answer(kernel, hysteresis, ask, message):
    with pytest.raises(ParameterError, match=message):
        ask(kernel, hysteresis)


def fixed_point(equations):
    return gs.lower(
        gs.SaddlePointSystem.from_fixed_point(equations, name="nothing", parameters=(a,))
    )


@pytest.mark.parametrize(
    ("kernel", "bounds", "error", "message"),
    [
        (lambda: fixed_point({x: a / 2 + 1}), {}, StructureError, "linear or explicit"),
        (lambda: fixed_point({u: u + 1 + u**2 * a}), {"u": (-3, 3)}, ConvergenceError,
         "no solution of nothing was found"),
        (lambda: fixed_point({x: a * sp.exp(-x)}), {"x": (-2, -1)}, ParameterError,
         "no number between -2 and -1 is positive"),
        (lambda: potential(a * sp.sqrt(-x - 1) + x**2, a), {"x": (0, 1)}, ConvergenceError,
         "no finite"),
        (lambda: potential(sp.log(-1 - x**2) - a * x, a), {}, ConvergenceError,
         "no finite real number at any point"),
        (lambda: potential(x**3 + a * x, a), {}, ConvergenceError,
         "the derivative of its free energy by x has one sign"),
    ],
)  # fmt: skip
def test_systems_without_branches(kernel, bounds, error, message):
    with pytest.raises(error, match=message) as caught:
        kernel().branches("a", (1, 2), bounds=bounds, starts=8)
    if "at any point" in message:  # what was computed is not lost
        assert [p.kind for p in caught.value.state.points] == ["spinodal"]
