"""The solver never fails on the square loss, and what it returns solves all 13 equations."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantstep as gs
from giantstep.errors import ConvergenceError
from giantstep.numeric import saddle_point_solver

PAIRS = [
    ("tanh", "sin", {"step_size": 3.0, "alpha0": 20.0}),
    ("erf", "erf", {"step_size": 2.0, "alpha0": 4.0, "beta": 0.4}),
    ("erf", "tanh", {"step_size": 8.0, "alpha0": 0.5, "beta": 2.5}),
    ("sin", "sign", {"step_size": 1.0, "alpha0": 3.0, "noise_variance": 0.2}),
]


# Two pairs whose kernels other tests compile, too.
@pytest.mark.parametrize(
    ("student", "teacher", "arguments"),
    [*PAIRS[:2], *(pytest.param(*pair, marks=pytest.mark.slow) for pair in PAIRS[2:])],
)
def test_no_failure_at_random_points(student, teacher, arguments):
    # Over the whole range that is asked for.
    model = gs.SpikedRandomFeatures(student, teacher, **arguments)
    rng = np.random.default_rng(sum(map(ord, student + teacher)))
    alpha, ridge = 10 ** rng.uniform(-2, 2, 300), 10 ** rng.uniform(-6, 1, 300)
    found = model.solve_many(alpha=alpha, ridge=ridge)
    assert all(np.isfinite(v).all() for v in found.values.values())
    assert found.residual.max() <= 1e-11
    assert found.iterations.max() <= 30
    # The estimates are relative to the test error, which is of order one.
    assert np.max(found.errors["test_error"] / found.values["test_error"]) <= 1e-9


@pytest.mark.parametrize("ridge", [1e-12, 1e-9, 1e3, 1e6])
@pytest.mark.parametrize("alpha", [1e-4, 1.0, 1e4])
def test_extreme_points_converge(alpha, ridge):
    model = gs.SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)
    assert model.solve(alpha=alpha, ridge=ridge).residual <= 1e-11


def test_results_do_not_depend_on_threads_or_chunks():
    model = gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
    rng = np.random.default_rng(1)
    alpha, ridge = 10 ** rng.uniform(-1, 1, 5000), 10 ** rng.uniform(-4, 1, 5000)
    one = model.solve_many(alpha=alpha, ridge=ridge, workers=1)
    two = model.solve_many(alpha=alpha, ridge=ridge, workers=2)
    for name, values in one.values.items():
        assert np.array_equal(values, two.values[name]), name
    # The same from threads of the caller, as a sweep would do it.
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(lambda s: model.solve_many(alpha=alpha[s], ridge=ridge[s], workers=1),
                              (slice(0, 2500), slice(2500, 5000))))  # fmt: skip
    joined = np.concatenate([p.values["test_error"] for p in parts])
    assert np.array_equal(joined, one.values["test_error"])


def test_plain_twin_and_kernel_agree(monkeypatch):
    model = gs.SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)
    alpha, ridge = np.geomspace(0.1, 10, 40), np.geomspace(10, 1e-3, 40)
    plain = model.solve_many(alpha=alpha, ridge=ridge)
    monkeypatch.setattr(saddle_point_solver, "_PLAIN_SIZE", 0)
    compiled = model.solve_many(alpha=alpha, ridge=ridge)
    for name, values in plain.values.items():
        # Sums in another order differ by rounding, which small overlaps show most.
        assert_allclose(values, compiled.values[name], rtol=1e-10, atol=1e-15, err_msg=name)


def test_failure_names_the_point_and_keeps_the_rest(monkeypatch):
    model = gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
    kernel = model._kernel

    def broken(parameters, fine, medium, coarse, results, errors, info):
        results[:], errors[:], info[:] = 1.0, 0.0, (5.0, 1e-15, 1e-15)
        results[parameters[:, 0] > 2] = np.nan

    monkeypatch.setattr(kernel.plain, "solve_batch", broken)
    with pytest.raises(ConvergenceError, match=r"1 of 2 parameter sets.*alpha = 3") as caught:
        model.solve_many(alpha=[1.0, 3.0], ridge=[0.1])
    assert caught.value.state.values["test_error"][0] == 1.0


@pytest.mark.parametrize("spike_strength", [1e7, 1e12])
def test_tables_that_no_memory_holds_are_refused(spike_strength):
    kernel = gs.SpikedRandomFeatures.from_parameters(
        "tanh", "sin", spike_strength=1.0, bulk_variance=1.0, alignment=0.5
    ).kernel()
    with pytest.raises(ConvergenceError, match=r"quadrature nodes.*less extreme"):
        kernel.solve(alpha=1.0, ridge=0.1, spike_strength=spike_strength)
