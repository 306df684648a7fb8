"""Newton's method on positive definite matrices: against closed forms and from far away."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from giantstep.numeric.positive_minimum import (
    PositiveProblem,
    expansion,
    minimise,
    symmetric_basis,
    unpacked,
)


def make_problem(size=3, nodes=40, seed=0):
    rng = np.random.default_rng(seed)
    return PositiveProblem(
        rng.uniform(0.1, 1, nodes) / nodes,
        rng.standard_normal((nodes, size)),
        rng.uniform(0, 1, (nodes, size)),
        lambda v: (np.log1p(v), 1 / (1 + v), -1 / (1 + v) ** 2),
        lambda x, v: (
            x / v + 0.1 * v + 0.3 * np.log(v), 1 / v, -x / v**2 + 0.1 + 0.3 / v,
            -1 / v**2, 2 * x / v**3 - 0.3 / v**2,
        ),
        1.0,
    )  # fmt: skip


def value_along(problem, root, numbers, step):
    size = len(symmetric_basis(len(root)))
    values, vectors = np.linalg.eigh(unpacked(step[:size], len(root)))
    moved = root @ (vectors * np.exp(values / 2))
    return expansion(problem, moved, numbers * np.exp(step[size:])).value


def test_derivatives_along_the_curves():
    problem, rng = make_problem(), np.random.default_rng(1)
    root, numbers = rng.standard_normal((3, 3)), rng.uniform(0.5, 2, 3)
    point = expansion(problem, root, numbers)
    direction, h = rng.standard_normal(9), 1e-4
    up, down = (value_along(problem, root, numbers, s * h * direction) for s in (1, -1))
    assert_allclose((up - down) / (2 * h), direction @ point.gradient, rtol=1e-6)
    second = (up - 2 * point.value + down) / h**2
    assert_allclose(second, direction @ point.hessian @ direction, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 1e3, 1e8])
def test_minimum_does_not_depend_on_the_start(scale):
    problem = make_problem()
    near = minimise(problem, np.eye(3), np.ones(3))
    far = minimise(problem, scale * np.eye(3), np.full(3, scale))
    assert_allclose(far.matrix, near.matrix, rtol=1e-9, atol=1e-12)
    assert_allclose(far.numbers, near.numbers, rtol=1e-9)
    assert np.max(np.abs(near.gradient)) < 1e-12


def test_without_matrix_the_minimum_is_that_of_numbers():
    # min of 2 v - log v - log v for each number.
    problem = PositiveProblem(
        np.zeros(1), np.empty((1, 0)), np.ones((1, 2)),
        lambda v: (v, np.ones_like(v), np.zeros_like(v)),
        lambda x, v: (2 * v - 2 * np.log(v), 0 * v, 2 - 2 / v, 0 * v, 2 / v**2),
        0.0,
    )  # fmt: skip
    assert_allclose(minimise(problem, np.empty((0, 0)), np.array([9.0, 0.01])).numbers, 1)
