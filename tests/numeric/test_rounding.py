"""Rounding errors by experiment."""

import numpy as np
import pytest

from giantstep.numeric.rounding import perturbed, spreads

EPS = np.finfo(float).eps


def test_rows_differ_by_a_few_units_in_the_last_place():
    row = np.array([1.0, -3e7, 1e-9, 0.0])
    rows = perturbed(row)
    assert (rows[0] == row).all() and (rows[:, 3] == 0).all()
    relative = np.abs(rows[1:, :3] / row[:3] - 1) / EPS
    assert relative.min() > 0.4 and relative.max() < 5.1
    assert (perturbed(row) == rows).all()


def test_zeros_go_where_they_may():
    rows = perturbed([0.0, 0.0, 2.0], [1.0, -1.0, 1.0])[1:]
    assert (rows[:, 0] > 0).all() and (rows[:, 1] < 0).all() and np.abs(rows[:, :2]).max() < 1e-15


@pytest.mark.parametrize("b", [1e3, 1e5])
def test_cancellation_shows(b):
    # The small root of x^2 - 2 b x + 1, as a difference of numbers of size b.
    rows = perturbed([b, 1.0])
    values = rows[:, 0] - np.sqrt(rows[:, 0] ** 2 - rows[:, 1])
    error = abs(values[0] - 1 / (b + np.sqrt(b**2 - 1)))
    assert error <= spreads({"x": values})["x"] < 100 * b * EPS


def test_amplification_shows():
    # A root that is almost double: x = 1 + sqrt(1 - c) moves by dc/(2 sqrt(1 - c)).
    rows = perturbed([1 - 1e-10])[:, 0]
    found = spreads({"x": 1 + np.sqrt(1 - rows)})["x"]
    assert 1e5 * EPS / 2 <= found <= 100 * 1e5 * EPS


def test_what_has_no_result_has_an_infinite_error():
    assert spreads({"f": np.array([1.0, np.nan, 1.0])})["f"] == np.inf
    assert spreads({"f": np.array([np.inf, np.inf])})["f"] == np.inf
