"""Rough solutions on coarse rules, and solutions that are followed from easier parameters."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.kernels.code import kernel_code
from giantstep.errors import ConvergenceError
from giantstep.numeric import continuation
from giantstep.numeric.cache import FileCache
from giantstep.numeric.continuation import _predicted, solve_with_continuation
from giantstep.numeric.kernel_arrays import KernelArrays
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

x, q, a, h = sp.symbols("x q a h", positive=True)
z = sp.Symbol("z", real=True)


@pytest.fixture(scope="module")
def magnet(tmp_path_factory):
    """The replica-symmetric overlap of a magnet in a field h, with its kernel and arrays."""
    value = GaussianExpectation(sp.tanh(a * (sp.sqrt(q) * z + h)) ** 2, z)
    system = SaddlePointSystem.from_fixed_point({q: value}, name="magnet", parameters=(a, h))
    kernel = kernel_code(lower(system)).load(FileCache(tmp_path_factory.mktemp("cache")))
    return kernel, KernelArrays(kernel, [])


def _overlap(a, h):
    """Return the overlap by plain iteration."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    found = 0.5
    for _ in range(2000):
        found = weights @ np.tanh(a * (np.sqrt(found) * nodes + h)) ** 2 / weights.sum()
    return found


def test_rows_are_solved_from_rough_solutions(magnet):
    kernel, arrays = magnet
    rows = np.array([[1.0, 0.5], [0.5, 0.1], [1.5, 1.0]])
    found = solve_with_continuation(kernel, arrays, rows, np.full((3, 1), 0.3), "h", rtol=1e-9)
    assert found.converged.all()
    np.testing.assert_allclose(found.values["q"], [_overlap(*row) for row in rows], rtol=1e-7)
    assert (found.errors["q"] < 1e-6).all()


def test_one_rule_stands_alone(magnet):
    _, arrays = magnet
    coarse = arrays.single(2)
    usual = arrays[0]
    assert not coarse.refinable
    assert coarse[0][0] is usual[2]
    assert [part.shape for part in coarse[0][1:3]] == [(len(usual[2]), 0)] * 2
    assert arrays.refinable


def test_an_iteration_that_fails_at_once_has_no_results():
    """The first evaluation takes the logarithm of a negative number."""
    y = sp.Symbol("y", real=True)
    system = SaddlePointSystem.from_fixed_point(
        {x: 1 + a * sp.exp(y), y: sp.log(x - 40)}, name="early", parameters=(a,)
    )
    with pytest.raises(ConvergenceError, match="no saddle point found"):
        gs.lower(system).solve(a=0.5)


def test_solutions_are_followed_up_and_down_from_values_that_are_easy(magnet):
    kernel, arrays = magnet
    rows = np.array([[1.0, 0.5]])
    nowhere = np.array([[1e280]])
    for easy in (0.2, 3.0):
        asked = []

        def start_at(chosen, value, asked=asked):
            asked.append((list(chosen), value))
            return np.full((len(chosen), 1), 0.3)

        found = solve_with_continuation(
            kernel, arrays, rows, nowhere, "h", rtol=1e-9, anchors=(easy,), start_at=start_at
        )
        assert found.converged[0]
        assert found.values["q"][0] == pytest.approx(_overlap(1.0, 0.5), rel=1e-7)
        assert all(value == easy for _, value in asked)


def test_rows_are_followed_together_from_the_first_anchor(magnet, monkeypatch):
    kernel, arrays = magnet
    solve = continuation._rough

    def rough(kernel, single, points, first, *rest, **options):
        found, unknowns = solve(kernel, single, points, first, *rest, **options)
        found.converged[np.abs(first[:, 0]) > 1e200] = False
        return found, unknowns

    monkeypatch.setattr(continuation, "_rough", rough)
    rows = np.array([[1.0, 0.5], [0.5, 0.1], [1.5, 0.5], [0.7, 3.0]])
    asked = []

    def start_at(chosen, value):
        asked.append((list(chosen), value))
        return np.full((len(chosen), 1), 0.3)

    nowhere = np.full((4, 1), 1e280)
    found = solve_with_continuation(
        kernel, arrays, rows, nowhere, "h", rtol=1e-9, anchors=(0.5,), start_at=start_at,
        gently=True,
    )  # fmt: skip
    assert found.converged.all()
    np.testing.assert_allclose(found.values["q"], [_overlap(*row) for row in rows], rtol=1e-7)
    assert sorted(asked) == [([0, 2], 0.5), ([1], 0.5), ([3], 0.5)]


def test_where_the_way_together_ends_rows_are_followed_from_there(magnet, monkeypatch):
    kernel, arrays = magnet
    column = kernel.parameters.index("h")

    def rough(kernel, single, points, first, workers=None, total=None):
        # Solutions are the parameters; the second row has none at small fields.
        values = points[:, column : column + 1]
        lost = (points[:, 1 - column] == 7.0) & (values[:, 0] < 0.1)
        return SimpleNamespace(converged=~lost), values

    monkeypatch.setattr(continuation, "_rough", rough)
    rows = np.full((2, 2), 0.01)
    rows[1, 1 - column] = 7.0
    start = np.full((2, 1), -1.0)
    single = arrays.single(2)

    def start_at(chosen, value):
        return start[chosen]

    first, known = continuation._together(kernel, single, rows, start, start_at, column, 2.0, None)
    np.testing.assert_array_equal(first[:, 0], [0.01, -1.0])
    assert list(known) == [1]
    assert {float(u[0, 0]) for u in known[1].values()} == set(known[1]) == {2.0, 0.5}


def test_rows_that_differ_in_one_parameter_are_passed_on_one_way(magnet, monkeypatch):
    kernel, arrays = magnet
    column = kernel.parameters.index("h")
    asked = []

    def rough(kernel, single, points, first, workers=None, total=None):
        values = points[:, column : column + 1]
        asked.append(float(values[0, 0]))
        return SimpleNamespace(converged=values[:, 0] > 0.005), values

    monkeypatch.setattr(continuation, "_rough", rough)
    wanted = [0.02, 3.0, 0.001, 0.4, 0.02, 0.002, 9.0]
    rows = np.full((len(wanted), 2), 1.5)
    rows[:, column] = wanted
    start = np.full((len(wanted), 1), -1.0)
    first, known = continuation._together(
        kernel,
        arrays.single(2),
        rows,
        start,
        lambda chosen, value: start[chosen],
        column,
        0.5,
        None,
    )
    # Two rows may be one, and what has no solution ends the way for all that are farther.
    np.testing.assert_array_equal(first[:, 0], [0.02, 3.0, -1.0, 0.4, 0.02, -1.0, 9.0])
    assert sorted(known) == [2, 5] and known[2] == known[5] and 0.02 in known[2]
    assert [h for h in asked if h in wanted] == [0.4, 0.02, 0.002, 3.0, 9.0]
    assert asked.count(0.5) == 2


@pytest.mark.slow
def test_rows_with_steep_integrands_are_solved_on_arrays_of_their_own(magnet):
    kernel, arrays = magnet
    rows = np.array([[1.0, 0.5], [1.5, 1.0]])
    seen = []

    def sharper(unknowns):
        seen.append(unknowns["q"])
        return KernelArrays(kernel, []) if unknowns["q"] < 0.6 else None

    found = solve_with_continuation(
        kernel, arrays, rows, np.full((2, 1), 0.3), "h", rtol=1e-9, sharper=sharper
    )
    wanted = [_overlap(*row) for row in rows]
    assert found.converged.all()
    np.testing.assert_allclose(found.values["q"], wanted, rtol=1e-7)
    np.testing.assert_allclose(seen, wanted, rtol=1e-2)
    assert min(seen) < 0.6 < max(seen)


def test_the_next_first_value_goes_on_a_power_law_where_there_is_one():
    # Overlaps have either sign; what changes it or begins at zero goes on along a line.
    path = [(100.0, np.array([[1e-2, -1.0, 1.0, 0.0]])), (10.0, np.array([[0.1, -2.0, -2.0, 0.5]]))]
    np.testing.assert_allclose(_predicted(path, 1.0), [[1.0, -4.0, -5.0, 1.0]])
    np.testing.assert_array_equal(_predicted(path[:1], 1.0), path[0][1])
    # Solutions at values that differ by rounding say nothing about the way.
    same = [(1.0, path[0][1]), (math.nextafter(1.0, 2.0), path[1][1])]
    np.testing.assert_array_equal(_predicted(same, 0.1), path[1][1])
    # A power law that leaves the range of floats is not followed.
    steep = [(100.0, np.array([[1e-200]])), (10.0, np.array([[1e100]]))]
    np.testing.assert_array_equal(_predicted(steep, 0.1), steep[1][1])


def test_two_solutions_on_a_coarser_rule_say_how_it_goes_on(magnet, monkeypatch):
    kernel, arrays = magnet
    column = kernel.parameters.index("h")
    asked = []

    def rough(kernel, single, points, first, workers=None, total=None):
        asked.append((float(points[0, column]), float(first[0, 0])))
        return SimpleNamespace(converged=np.ones(1, bool), iterations=[1], nodes=[1]), first

    monkeypatch.setattr(continuation, "_rough", rough)
    known = {9.0: np.array([[-0.1]]), 1.0: np.array([[-1.0]]), 0.1: np.array([[-10.0]])}
    row = np.full((1, 2), 0.01)
    next(continuation._followed(kernel, arrays, row, lambda value: row, column, [3.0], known))
    np.testing.assert_allclose(asked, [(0.1, -10.0), (1.0, -1.0), (0.025, -40.0), (0.01, -100.0)])


def test_steps_are_as_long_as_iterations_are_few(magnet, monkeypatch):
    """An iteration that ends nowhere takes hundreds; what the first ones take does not count."""
    kernel, arrays = magnet
    column = kernel.parameters.index("h")
    asked = []

    def rough(kernel, single, points, first, workers=None, total=None):
        value = float(points[0, column])
        ratio = value / asked[-1] if asked else 1.0
        failed = value > 40.0 and ratio > 1.9
        asked.append(value)
        iterations = [400 if failed else 20 if 3 < value < 30 else 30 if value > 30 else 5]
        found = SimpleNamespace(
            converged=np.array([not failed]), iterations=iterations, nodes=[10**4]
        )
        return found, first

    monkeypatch.setattr(continuation, "_rough", rough)
    row, one = np.full((1, 2), 1e3), np.ones((1, 1))
    next(continuation._followed(kernel, arrays, row, lambda value: one, column, [1.0], {}))
    # By 4, as long after some iterations, shorter where there is no solution and after many.
    steps = [1.0, 4.0, 16.0, 64.0, 32.0, 32.0 * math.sqrt(2.0)]
    np.testing.assert_allclose(asked[: len(steps)], steps)


def test_following_ends_after_counted_evaluations(magnet, monkeypatch):
    kernel, arrays = magnet
    row, unknown = np.array([[1.0, 0.01]]), np.array([[0.5]])
    column = kernel.parameters.index("h")

    def followed(evaluations):
        monkeypatch.setattr(continuation, "_RULES", ((2, 0, evaluations),))
        return list(
            continuation._followed(kernel, arrays, row, lambda _: unknown, column, [40.0], {})
        )

    assert len(followed(1e6)) == 1
    assert followed(1.0) == []
