"""Grids that crowd around steep places."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from giantstep.runtime.product_grids import graded_edges, grid_rule


def _no_breaks(*points):
    return np.empty((len(points[0]), 0))


def _moment(width, steep):
    """Return the mean of κ Φ(κ/w) on a grid of two variables, and how many nodes that takes."""
    (kappa, _), weights = grid_rule([1.0, 1.0], [], [_no_breaks], False, 1.0, 8.8, steep)
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
        (kappa, _), weights = grid_rule(
            [1.0, 1.0], [], [_no_breaks], True, coarsening, 8.8, ([0.0], 1e-4)
        )
        errors.append(abs(float(weights @ (kappa * (2 * ndtr(kappa / 1e-4) - 1))) / 2 - exact))
        sizes.append(len(weights))
    assert errors[0] <= errors[2]
    assert sizes[0] > sizes[1] > sizes[2]


def test_edges_crowd_symmetrically():
    edges = sorted(set(graded_edges([0.0], 0.1, 4.0, 8.0)))
    assert edges == pytest.approx([-6.4, -1.6, -0.4, -0.1, 0.0, 0.1, 0.4, 1.6, 6.4])
    away = graded_edges([1.0, -1.0], 0.1, 4.0, 2.0)
    assert {1.0, 1.1, 0.9, -1.1, -0.9} <= {round(x, 12) for x in away}
