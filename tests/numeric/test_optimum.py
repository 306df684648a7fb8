"""Minima in a box: known ones, at ends, several, none; differences and their errors."""

import math
from functools import partial

import numpy as np
import pytest

from giantstep.errors import ConvergenceError
from giantstep.numeric.optimum import Axis, Differenced, Slopes, _lowest, search


class Function:
    """A function of points (m, n) with its gradient, as exact as floats are."""

    def __init__(self, value, gradient):
        self._value, self._gradient = value, gradient

    def values(self, points):
        values = self._value(*points.T)
        return values, 1e-16 * np.abs(values)

    def slopes(self, points, *, rounding=False):
        gradient = np.stack(np.broadcast_arrays(*self._gradient(*points.T)), axis=1)
        return Slopes(self._value(*points.T), gradient, 1e-15 * (1 + np.abs(gradient)))


def linear(name, low, high):
    return Axis(name, low, high, logarithmic=False)


def test_a_quadratic_has_its_minimum_and_its_hessian():
    matrix, centre = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 3.0]]), [0.3, -0.2, 1]
    axes = [linear(name, -2, 2.5) for name in "xyz"]

    def value(*x):
        y = np.stack(x, axis=-1) - centre
        return np.einsum("mi,ij,mj->m", y, matrix, y) / 2 + 4

    def gradient(*x):
        return (matrix @ (np.stack(x, axis=-1) - centre).T).tolist()

    found = search(Function(value, gradient), axes)
    (best,) = found.minima
    assert found.shape == (10, 10, 10)
    assert best.point == pytest.approx(centre, abs=1e-14) and best.sides == ("", "", "")
    assert best.hessian == pytest.approx(matrix, abs=1e-11) and best.is_certain
    assert best.eigenvalues == pytest.approx(np.linalg.eigvalsh(matrix), abs=best.eigenvalue_error)
    assert (best.errors < 1e-13).all() and (best.errors > 0).all()


def test_of_two_minima_the_lower_one_is_first():
    # In t = log x, (t^2 - 4)^2/16 + t/10: minima at the outer zeros of t^3/4 - t + 1/10.
    function = Function(
        lambda x: (np.log(x) ** 2 - 4) ** 2 / 16 + np.log(x) / 10,
        lambda x: [(np.log(x) ** 3 / 4 - np.log(x) + 0.1) / x],
    )
    left, _, right = sorted(np.roots([0.25, 0, -1, 0.1]))
    first, second = search(function, [Axis("x", 1e-3, 1e3)]).minima
    assert first.point[0] == pytest.approx(np.exp(left), rel=1e-13)
    assert second.point[0] == pytest.approx(np.exp(right), rel=1e-13)
    assert abs(first.point[0] - np.exp(left)) <= first.errors[0]
    # The Hessian is that of the logarithm.
    assert first.hessian[0, 0] == pytest.approx(0.75 * left**2 - 1, rel=1e-9)


def test_a_bound_holds_one_parameter_and_leaves_the_other():
    function = Function(
        lambda x, y: (x + 0.5) ** 2 + (y - x - 0.25) ** 2,
        lambda x, y: [2 * (x + 0.5) - 2 * (y - x - 0.25), 2 * (y - x - 0.25)],
    )
    (best,) = search(function, [linear("x", 0, 1), linear("y", 0, 1)]).minima
    assert best.sides == ("lower", "") and best.is_certain
    assert best.point == pytest.approx([0, 0.25], abs=1e-15) and best.errors[0] == 0
    # One-sided: the function is never asked for outside of the bounds.
    assert best.gradient == pytest.approx([1, 0], abs=1e-14)
    assert best.hessian == pytest.approx(np.array([[2.0]]), abs=1e-11)


def test_the_function_is_not_asked_beyond_bounds_that_may_be_ends_of_its_domain():
    def values(points):
        assert ((points >= 0) & (points <= 1)).all()
        return (points[:, 0] - 0.01) ** 2, np.zeros(len(points))

    axes = [linear("x", 0, 1)]
    (best,) = search(Differenced(values, axes), axes).minima
    assert best.point == pytest.approx([0.01], abs=1e-12) and best.is_certain


def test_saddles_and_constants_are_not_certain():
    flat = Function(lambda x: 1 + 0 * x, lambda x: [0 * x])
    (best,) = search(flat, [Axis("x", 0.1, 10)]).minima
    assert not best.is_certain


def test_points_without_a_value_are_left_out():
    def values(points):
        x = points[:, 0]
        return np.where(x < 0.5, np.nan, (x - 2) ** 2), np.zeros(len(x))

    axes = [linear("x", 0, 4)]
    (best,) = search(Differenced(values, axes), axes).minima
    assert best.point == pytest.approx([2], abs=1e-12)
    with pytest.raises(ConvergenceError, match="no solution at any of the 25 points"):
        search(Differenced(lambda p: (np.full(len(p), np.nan),) * 2, axes), axes)


def test_a_descent_to_where_there_is_no_value_leaves_the_other_minima():
    def values(points):
        x = points[:, 0]
        return np.where(x < 0.5, np.nan, -np.cos(2 * np.pi * (x - 0.45))), np.zeros(len(x))

    axes = [linear("x", 0, 4)]
    found = sorted(m.point[0] for m in search(Differenced(values, axes), axes).minima)
    assert found == pytest.approx([1.45, 2.45, 3.45], abs=1e-10)
    alone = [linear("x", 0, 1)]
    with pytest.raises(ConvergenceError, match="no solution next to a point of the descent"):
        search(Differenced(lambda p: (np.where(p[:, 0] < 0.5, np.nan, p[:, 0]), 0 * p[:, 0]),
                           alone), alone)  # fmt: skip


def test_a_minimum_too_flat_to_be_certain_comes_before_a_higher_one():
    # x^6 is flat at zero, where the quartic term of the other minimum is not.
    function = Function(
        lambda x: np.minimum(x**6, (x - 3) ** 2 + 1),
        lambda x: [np.where(x**6 < (x - 3) ** 2 + 1, 6 * x**5, 2 * (x - 3))],
    )
    first, second = search(function, [linear("x", -1, 4)]).minima
    assert abs(first.point[0]) < 0.05 and not first.is_certain
    assert second.point == pytest.approx([3], abs=1e-12) and second.is_certain


@pytest.mark.parametrize("axis", [Axis("x", 1e-2, 1e2), linear("x", 0.01, 6)])
def test_errors_of_differences_are_not_understated(axis):
    points = np.array([[0.01], [0.3], [1.7], [5.9]])

    def values(points):
        return np.sin(points[:, 0]), np.full(len(points), 1e-16)

    found = Differenced(values, [axis]).slopes(points)
    away = np.abs(found.gradient - np.cos(points))
    assert (away <= found.error).all() and (away < 1e-4).all()
    assert away[1] < 1e-8


def test_basins_no_deeper_than_errors_of_a_scan_are_no_starts():
    line = np.array([3.0, 1.0, 2.0, 0.5, 0.5 + 1e-9, 0.5, math.nan, 4.0, 4.0])
    exact, rough = np.zeros(9), np.full(9, 1e-7)
    assert _lowest(line, exact) == [3, 5, 1, 7]
    assert _lowest(line, rough) == [3, 1, 7]
    # However large errors are, a deep basin is one.
    assert _lowest(line, np.full(9, 10.0)) == [3, 1, 7]
    assert _lowest(
        np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 2.0], [3.0, 2.0, 0.0]]), np.zeros((3, 3))
    ) == [8, 0]


def test_a_scan_may_be_rough():
    axes = [Axis("x", -1, 1, logarithmic=False)]
    asked = []

    def values(points, error=0.0):
        asked.append((len(points), error))
        return (points[:, 0] - 0.3) ** 2, np.full(len(points), error)

    (best,) = search(Differenced(values, axes, partial(values, error=1e-3)), axes).minima
    assert best.point[0] == pytest.approx(0.3, abs=1e-9)
    assert asked[0] == (25, 1e-3) and {error for _, error in asked[1:]} == {0.0}
