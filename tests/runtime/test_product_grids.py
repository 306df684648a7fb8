"""Rules on grids of several Gaussian variables: moments, kinks, halves."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from giantstep.runtime import product_grids as rules
from giantstep.runtime.levels import Tables
from giantstep.runtime.quadrature import normal_density
from giantstep.runtime.rules import MOST_NARROW_NODES


def nothing(*points):
    return np.empty((len(points[0]), 0))


def grid(scales=(1.0, 1.0), *, outer=(), inner=None, even=False, coarsening=1.0):
    inner = [nothing] * (len(scales) - 1) if inner is None else inner
    return rules.grid_rule(scales, outer, inner, even, coarsening, rules.GRID_REACH)


@pytest.mark.parametrize("variables", [2, 3])
@pytest.mark.parametrize("even", [False, True])
def test_moments_of_the_normal_law(variables, even):
    points, weights = grid((1.0,) * variables, even=even)
    assert weights.sum() == pytest.approx(1, abs=1e-13)
    squares = sum(x * x for x in points)
    assert weights @ squares == pytest.approx(variables, abs=1e-11)
    assert weights @ squares**2 == pytest.approx(variables * (variables + 2), abs=1e-9)
    assert all(len(x) == len(weights) for x in points)


def test_an_even_integrand_needs_half_of_the_nodes():
    whole, half = grid(), grid(even=True)
    assert len(half.weights) < 0.55 * len(whole.weights)

    def value(rule):
        (x, s), w = rule
        return w @ np.cos(x + 0.3 * s)

    assert value(half) == pytest.approx(value(whole), abs=1e-14)
    assert value(whole) == pytest.approx(math.exp(-(1 + 0.09) / 2), abs=1e-14)


@pytest.mark.parametrize("slope", [0.2, 1.0, 3.0])
def test_jumps_at_places_that_follow_the_node(slope):
    """E sign(a x + s)(x + s) = sqrt(2/pi)(a + 1)/sqrt(1 + a^2)."""
    (x, s), w = grid((min(1.0, 1 / slope), 1.0), inner=[lambda x: -slope * x[:, None]])
    exact = math.sqrt(2 / math.pi) * (slope + 1) / math.sqrt(1 + slope**2)
    assert w @ (np.sign(slope * x + s) * (x + s)) == pytest.approx(exact, abs=1e-12)


def test_a_kink_of_the_node_cuts_the_outer_line():
    (x, s), w = grid(outer=(0.7,))
    beyond = 0.5 * math.erfc(0.7 / math.sqrt(2))
    assert w @ ((x > 0.7) * s**2) == pytest.approx(beyond, abs=1e-12)


def test_a_break_in_the_third_variable_follows_both_others():
    """The orthant probability of (x + s + t, x) with correlation 1/sqrt(3)."""
    (x, s, t), w = grid(
        (1.0, 1.0, 1.0), outer=(0.0,), inner=[nothing, lambda x, s: -(x + s)[:, None]]
    )
    exact = 0.25 + math.asin(1 / math.sqrt(3)) / (2 * math.pi)
    assert w @ ((x > 0) * (x + s + t > 0)) == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("wild", [math.inf, -math.inf, math.nan, 1e300])
def test_break_points_that_are_nowhere_cut_nothing(wild):
    x, w = rules.cut_rule(np.array([wild]), 3.0, 8.0)
    assert np.isfinite(x).all()
    assert w.sum() == pytest.approx(1, abs=1e-13)


def test_the_estimated_number_of_nodes_is_about_right():
    for scales, even in [((1.0, 1.0), False), ((0.3, 1.0), True), ((1.0, 0.5, 1.0), False)]:
        _, weights = grid(scales, even=even)
        about = rules.grid_nodes(scales, [False] * len(scales), even, rules.GRID_REACH)
        assert len(weights) == pytest.approx(about, rel=0.1)


@pytest.mark.parametrize("width", [0.1, 1e-5])
def test_the_estimated_number_of_nodes_counts_the_panels_of_steep_places(width):
    scales, steep = [1.0, 1.0], ([0.0], width)
    _, weights = rules.grid_rule(scales, [], [nothing], False, 1.0, rules.GRID_REACH, steep)
    # As the drivers ask: the line of the node is cut.
    about = rules.grid_nodes(scales, [True, False], False, rules.GRID_REACH, steep)
    assert len(weights) == pytest.approx(about, rel=0.25)


def test_coarser_rules_show_what_is_not_resolved():
    def value(coarsening):
        (x, s), w = grid(coarsening=coarsening)
        return w @ np.tanh(3 * x + s) ** 2

    fine, medium, coarse = value(1), value(2), value(4)
    reference = value(0.25)
    assert abs(fine - reference) <= abs(medium - fine) <= abs(coarse - medium)


# -- steep places


def _moment(width, steep):
    """Return the mean of κ Φ(κ/w) on a grid of two variables, and how many nodes that takes."""
    (kappa, _), weights = rules.grid_rule([1.0, 1.0], [], [nothing], False, 1.0, 8.8, steep)
    return float(weights @ (kappa * ndtr(kappa / width))), len(weights)


@pytest.mark.parametrize("width", [0.1, 1e-3, 1e-5])
def test_a_step_of_small_width_is_resolved_at_its_place(width):
    # Stein's lemma: E κ Φ(κ/w) = E φ(κ/w)/w = 1/√(2π (1 + w²)).
    exact = 1 / math.sqrt(2 * math.pi * (1 + width**2))
    found, nodes = _moment(width, ([0.0], width))
    assert found == pytest.approx(exact, rel=1e-9)
    assert nodes < 30_000
    uniform, _ = _moment(width, None)
    assert abs(uniform - exact) > 1e3 * abs(found - exact)


def test_coarser_rules_of_steep_places_tell_of_the_error():
    exact = 1 / math.sqrt(2 * math.pi * (1 + 1e-8))
    errors, sizes = [], []
    for coarsening in (1.0, 2.0, 4.0):
        (kappa, _), weights = rules.grid_rule(
            [1.0, 1.0], [], [nothing], True, coarsening, 8.8, ([0.0], 1e-4)
        )
        errors.append(abs(float(weights @ (kappa * (2 * ndtr(kappa / 1e-4) - 1))) / 2 - exact))
        sizes.append(len(weights))
    assert errors[0] <= errors[2]
    assert sizes[0] > sizes[1] > sizes[2]


def test_edges_crowd_symmetrically():
    edges = sorted(set(rules.graded_edges([0.0], 0.1, 4.0, 8.0)))
    assert edges == pytest.approx([-6.4, -1.6, -0.4, -0.1, 0.0, 0.1, 0.4, 1.6, 6.4])
    away = rules.graded_edges([1.0, -1.0], 0.1, 4.0, 2.0)
    assert {1.0, 1.1, 0.9, -1.1, -0.9} <= {round(x, 12) for x in away}
    # Each up to half the way to the next one; one within the width of another needs nothing.
    assert sorted(round(x, 12) for x in away) == [
        -2.6, -1.4, -1.1, -1.0, -0.9, -0.6, 0.0, 0.6, 0.9, 1.0, 1.1, 1.4, 2.6,
    ]  # fmt: skip
    assert rules.graded_edges([0.0, 0.05], 0.1, 4.0, 8.0) == rules.graded_edges(
        [0.0], 0.1, 4.0, 8.0
    )


def steep_grid(steep):
    """Return the rules of a line whose table is the node itself."""
    module = SimpleNamespace(
        inner_rules=lambda x, *_: {},
        outer_scale=lambda x, *_: 1.0,
        breaks=lambda x, *_: (),
        tables=lambda x, *_: {"table": 1.0 * x},
    )
    return rules.ProductGrid(Tables(module, (), ("table",), once=True), (), False, steep)


@pytest.mark.parametrize(
    ("steep", "distinct"),
    [
        (None, 3),
        (rules.Steep((), 0.3, ()), 3),
        # Crowded panels are not halved from rule to rule.
        (rules.Steep((0.5,), 1e-3, ()), 2),
    ],
)
def test_a_third_rule_is_there_where_it_tells_of_a_gain(steep, distinct):
    fine, medium, coarse = steep_grid(steep).lines(0)
    assert len({fine.shape, medium.shape, coarse.shape}) == distinct
    assert np.array_equal(medium, coarse) == (distinct == 2)
    assert fine[0] @ fine[1] ** 2 == pytest.approx(1, abs=1e-12)


def test_rules_go_as_far_as_a_steep_place_asks():
    usual, longer = (
        np.abs(steep_grid(rules.Steep((), 0.3, (), reach=reach)).lines(0)[0][1]).max()
        for reach in (0.0, 11.0)
    )
    assert usual < 9.5 < 10.5 < longer < 12


def narrow_grid(*widths):
    """Return rules of a node and an inner one, integrands in which are so narrow."""
    module = SimpleNamespace(
        NESTED=False,
        outer_scale=lambda x, *_: 1.0,
        product_scales=lambda x, *_: (1.0,),
        product_breaks_g=lambda x, *_: np.empty((len(x), 0)),
        breaks=lambda x, *_: (),
        tables=lambda x, *_: {"table": 1.0 * x},
        product_tables=lambda x, g, tables: {},
        inner_rules=lambda x, *_: {},
    )
    steep = rules.Steep((), math.inf, (), lambda x: np.where(np.abs(x) < 1, *widths))
    return rules.ProductGrid(Tables(module, (), ("table",), once=True), ("g",), False, steep)


def test_inner_rules_are_as_fine_as_integrands_are_narrow():
    """Of a hundredth, as logistic losses of large predictions are, and elsewhere of a half."""
    grid = narrow_grid(0.01, 0.5)
    assert grid.seen
    weight, node, inner, _ = grid.lines(0)[0]
    steps = [np.diff(np.unique(inner[np.abs(node - x) < 1e-9])).max() for x in (0.0, node.max())]
    np.testing.assert_allclose(steps, [0.4 * 0.01, 0.4 * 0.5])
    # E 1/cosh²(100 g): the poles are 1.6 widths away, for the sum of both twice exp(-25) times 49.
    exact = quad(lambda g: normal_density(g / 100) / np.cosh(g) ** 2 / 100, -40, 40, epsabs=0)[0]
    middle = np.abs(node) < 1
    bump = np.cosh(np.clip(100 * inner[middle], -40, 40)) ** -2.0
    assert weight[middle] @ bump == pytest.approx(exact * weight[middle].sum(), rel=1e-8)


def test_where_nodes_would_be_too_many_rules_are_as_fine_as_there_is_room():
    grid = narrow_grid(1e-6, 1.0)
    assert not grid.seen
    fine, medium, coarse = (rows.shape[1] for rows in grid.lines(0))
    assert MOST_NARROW_NODES / 2 < fine < 2 * MOST_NARROW_NODES
    # What no rule resolves is no better on the next one: a third one would tell of a gain.
    assert medium == coarse
