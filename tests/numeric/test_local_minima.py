"""Local minima on a grid: inside, at the ends, on flat stretches."""

import math

import numpy as np
import pytest

from giantstep.numeric.local_minima import local_minima

GRID = np.linspace(-2, 3, 31)


def test_minima_inside_are_found_between_the_points():
    # x⁴/4 - x³/3 - x² has its minima at -1 and 2, with -5/12 and -8/3.
    values, found = local_minima(lambda x: x**4 / 4 - x**3 / 3 - x**2, GRID, "a quartic")
    assert [x for x, _ in found] == pytest.approx([-1, 2], abs=1e-7)
    assert [value for _, value in found] == pytest.approx([-5 / 12, -8 / 3], rel=1e-14)
    assert values[0] == 4 + 8 / 3 - 4


def test_an_end_counts_where_the_function_falls_towards_it_and_inside_it_is_refined():
    assert local_minima(math.exp, GRID, "it")[1] == [(-2.0, math.exp(-2))]
    (place, _), *rest = local_minima(lambda x: (x + 1.95) ** 2, GRID, "it")[1]
    assert place == pytest.approx(-1.95, abs=1e-7)
    assert rest == []


def test_a_flat_stretch_has_one_minimum_and_rounding_makes_none():
    assert len(local_minima(lambda x: max(0.0, abs(x) - 1), GRID, "it")[1]) == 1
    rough = iter(1 + 1e-15 * np.resize([1.0, -1.0], 200))
    assert len(local_minima(lambda x: float(next(rough)), GRID, "it")[1]) == 1
