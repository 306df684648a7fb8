"""Sweeps of kernels over grids and points: as single solves, resumable, failures by name."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
import xarray as xr
from numpy.testing import assert_allclose

import giantstep as gs
from giantstep.atomic_files import Temporary
from giantstep.derivations.kernels import arguments as arguments_module, sweep as sweep_module
from giantstep.derivations.kernels.arguments import Points
from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick
from giantstep.errors import ConvergenceError, ParameterError

from .kernel_cases import a, kernel_of, x


@pytest.fixture(scope="module")
def glass():
    return gs.lower(sherrington_kirkpatrick())


@pytest.fixture(scope="module")
def model():
    return gs.SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)


def test_sweep_over_a_grid_and_over_points_agree_with_single_solves(glass):
    beta, field = np.linspace(0.4, 2, 7), [0.05, 0.3]
    grid = glass.curve(beta=beta, h=field, progress=False).to_dataset()
    assert grid.q.dims == ("beta", "h") and bool(grid.converged.all())
    pairs = glass.curve(
        beta=np.repeat(beta, 2), h=np.tile(field, 7), product=False, progress=False
    ).to_dataset()
    assert pairs.q.dims == ("point",)
    assert np.array_equal(grid.q.values.ravel(), pairs.q.values)
    other = glass.curve(h=field, beta=beta, progress=False, outputs="q").to_dataset()
    assert other.q.dims == ("h", "beta") and set(other.data_vars) == {
        "q", "q_error_estimate", "residual", "iterations", "converged",
    }  # fmt: skip
    single = glass.solve(beta=beta[3], h=0.3)
    assert grid.q.sel(h=0.3).values[3] == pytest.approx(single.q, rel=1e-13)
    assert grid.q_error_estimate.values[3, 1] <= 1e-12
    assert glass.curve(beta=1.0, h=0.3, progress=False).to_dataset().q.size == 1


def test_an_unknown_has_no_meaning_of_another_model():
    m, beta = sp.Symbol("m", real=True), sp.Symbol("beta", positive=True)
    magnet = gs.SaddlePointSystem.from_fixed_point(
        {m: sp.tanh(beta * m)}, name="magnet", parameters=(beta,), start={m: 1}
    )
    data = gs.lower(magnet).curve(beta=[1.5, 2]).dataset
    assert data.m.attrs["long_name"] == "m, unknown"
    assert data.beta.attrs["long_name"] == "parameter, positive"


def test_kernel_of_an_aligned_model():
    model = gs.SpikedRandomFeatures.from_parameters(
        "tanh", "relu", spike_strength=2.5, bulk_variance=0.5, alignment=1.0
    )
    kernel = model.kernel()
    error = model.solve(alpha=0.5, ridge=0.1).test_error
    assert kernel.solve(alpha=0.5, ridge=0.1).test_error == error
    # The labels of these equations have no part beside the spike.
    with pytest.raises(ParameterError, match="alignment must be 1 or -1 in this kernel"):
        kernel.solve(alpha=0.5, ridge=0.1, alignment=0.5)
    still = gs.SpikedRandomFeatures("tanh", "sin", step_size=0).kernel()
    with pytest.raises(ParameterError, match="spike_strength must be 0 in this kernel"):
        still.solve(alpha=1.0, ridge=0.1, spike_strength=2.0)


@pytest.mark.slow
def test_digits_of_an_aligned_model():
    model = gs.SpikedRandomFeatures.from_parameters(
        "z", "relu", spike_strength=2.5, bulk_variance=0.5, alignment=1.0
    )
    found = model.kernel().solve(alpha=0.5, ridge=0.1, digits=18, progress=False)
    precise = model.solve(alpha=0.5, ridge=0.1, digits=18, progress=False)
    assert abs(found.test_error - precise.test_error) <= 1e-17


def test_spiked_sweep_equals_the_model(model):
    kernel = gs.lower(model)
    alpha, ridge = np.geomspace(0.2, 5, 6), np.geomspace(1e-3, 1, 20)
    found = kernel.curve(alpha=alpha, ridge=ridge, progress=False).to_dataset()
    for k in (0, 7, 19):
        batch = model.solve_many(alpha=alpha, ridge=[ridge[k]])
        assert_allclose(found.test_error[:, k], batch.values["test_error"], rtol=1e-13)
    # Parameters of the tables vary, too, and the orthogonal alignment follows.
    moving = kernel.curve(
        spike_strength=[0.5, 1.5], alignment=[-0.3, 0.6], alpha=2, ridge=0.1
    ).to_dataset()
    for i, j in np.ndindex(2, 2):
        direct = gs.SpikedRandomFeatures.from_parameters(
            "erf", "erf", spike_strength=[0.5, 1.5][i], alignment=[-0.3, 0.6][j],
            bulk_variance=model.spike.bulk_variance,
        )  # fmt: skip
        assert moving.test_error.values[i, j] == pytest.approx(
            direct.solve(alpha=2, ridge=0.1).test_error, rel=1e-12
        )
    with pytest.raises(ParameterError, match="alignment is outside its range"):
        kernel.curve(alpha=1, ridge=1, alignment=[0.5, 1.0]).to_dataset()


@pytest.mark.parametrize("product", [True, False])
@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_files_hold_what_memory_would(glass, tmp_path, suffix, product):
    pytest.importorskip({".nc": "netCDF4", ".zarr": "zarr"}[suffix])
    axes = {"beta": np.linspace(0.4, 2, 40), "h": np.linspace(0.1, 0.3, 40)}
    wanted = glass.curve(**axes, product=product, progress=False).to_dataset()
    path = tmp_path / f"sweep{suffix}"
    for _ in range(2):  # the second run replaces the file
        # Of a process that is no more; it left its half of a file, and its lock is free.
        left = Temporary(path)
        left.path.write_text("half")
        os.close(left._descriptor)
        found = glass.curve(**axes, product=product, progress=False, out=path).to_dataset()
        xr.testing.assert_identical(found.load(), wanted)
        found.close()
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_file_without_the_netcdf_package(glass, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "netCDF4", None)
    path = tmp_path / "sweep.nc"
    found = glass.curve(beta=[0.5, 1.0], h=0.2, progress=False, out=path).to_dataset()
    assert_allclose(xr.load_dataset(path, engine="scipy").q, found.q)
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(gs.errors.MissingDependencyError, match=r"giantstep\[sweep\]"):
        glass.curve(beta=1, h=1, out=tmp_path / "sweep.zarr").to_dataset()


def test_sweep_does_not_depend_on_where_it_runs(glass, monkeypatch):
    monkeypatch.setattr(arguments_module, "_FEWEST_ROWS", 100)
    beta = np.linspace(0.3, 2, 700)
    one = glass.curve(beta=beta, h=0.2, workers=1, progress=False).to_dataset()
    xr.testing.assert_identical(
        glass.curve(beta=beta, h=0.2, workers=3, progress=False).to_dataset(), one
    )
    with ThreadPoolExecutor(2) as executor:
        found = glass.curve(beta=beta, h=0.2, executor=executor, progress=False).to_dataset()
    xr.testing.assert_identical(found, one)


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_sweep_in_processes(glass, monkeypatch, method):
    monkeypatch.setattr(arguments_module, "_FEWEST_ROWS", 100)
    beta = np.linspace(0.3, 2, 700)
    one = glass.curve(beta=beta, h=0.2, progress=False).to_dataset()
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as executor:
        found = glass.curve(beta=beta, h=0.2, executor=executor, progress=False).to_dataset()
    xr.testing.assert_identical(found, one)


def benchmark(name, *arguments):
    """Run a script of benchmarks/, which says what is wrong and exits with 1."""
    script = Path(__file__).parents[2] / "benchmarks" / f"{name}.py"
    run = subprocess.run(
        [sys.executable, str(script), *map(str, arguments)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="processes are killed by POSIX signals")
def test_sweeps_that_are_killed_end_as_if_left_alone():
    benchmark("killed_sweeps", "--kills", 1, "--points", 2_500, "--formats", "nc")


@pytest.mark.slow
def test_threads_may_begin_cold():
    benchmark("cold_threads", "--rounds", 1, "--pools", 0, "--models", 2)


def test_interrupted_sweep_resumes(glass, tmp_path, monkeypatch):
    monkeypatch.setattr(arguments_module, "_FEWEST_ROWS", 100)
    beta = np.linspace(0.3, 2, 700)
    wanted = glass.curve(beta=beta, h=0.2, progress=False).to_dataset()
    solved: list[int] = []

    def interrupted(task):
        if solved:
            raise KeyboardInterrupt
        solved.append(len(task[1]))
        return task[0](task[1])

    with monkeypatch.context() as context:
        context.setattr(sweep_module, "_solve", interrupted)
        with pytest.raises(KeyboardInterrupt, match="of 700 points, which are kept"):
            glass.curve(beta=beta, h=0.2, store=tmp_path, workers=1, progress=False).to_dataset()
    kept = len(list(tmp_path.iterdir()))
    assert 1 <= kept <= 2
    again: list[int] = []

    def counted(task):
        again.append(len(task[1]))
        return task[0](task[1])

    monkeypatch.setattr(sweep_module, "_solve", counted)
    found = glass.curve(beta=beta, h=0.2, store=tmp_path, progress=False).to_dataset()
    xr.testing.assert_identical(found, wanted)
    assert sum(again) < 700
    # Another sweep does not mistake these blocks for its own.
    other = glass.curve(beta=beta, h=0.21, store=tmp_path, progress=False).to_dataset()
    assert not np.array_equal(other.q, wanted.q)


def test_failed_points_are_an_error_or_marked(tmp_path):
    kernel = kernel_of({x: a * sp.exp(x)}, a)  # no solution above 1/e
    values = [0.1, 0.2, 1.0, 0.3, 2.0]
    with pytest.raises(ConvergenceError, match=r"a = 1,.*2 of which failed.*failures='keep'"
                       .replace(".*", r"[\s\S]*")) as caught:  # fmt: skip
        kernel.curve(a=values, progress=False).to_dataset()
    assert caught.value.state.converged.values.tolist() == [True, True, False, True, False]
    found = kernel.curve(a=values, failures="keep", progress=False).to_dataset()
    assert np.isnan(found.x.values).tolist() == [False, False, True, False, True]
    assert np.isinf(found.x_error_estimate.values[2])
    assert np.array_equal(found.x, caught.value.state.x, equal_nan=True)
    with pytest.raises(ConvergenceError):
        kernel.curve(a=values, progress=False, out=tmp_path / "sweep.nc").to_dataset()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("lengths", [(7,), (1000, 3), (3, 1000), (40, 50, 60), (2, 300_000)])
def test_blocks_fill_the_grid_once(lengths):
    names = tuple("pqr"[: len(lengths)])
    axes = {name: np.arange(float(n)) for name, n in zip(names, lengths, strict=True)}
    points = Points.of(names, axes, True, {})
    seen = np.zeros(lengths, dtype=int)
    end = 0
    for block in points.blocks():
        assert block.begin == end
        end = block.end
        seen[block.box] += 1
        rows = points.rows(block.begin, min(block.end, block.begin + 3))
        assert rows[0].tolist() == [axes[n][s.start] for n, s in zip(names, block.box, strict=True)]
    assert end == len(points) and (seen == 1).all()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"beta": [1, 2], "h": [1, 2, 3], "product": False}, "one length, got beta: 2, h: 3"),
        ({"beta": np.ones((2, 2))}, "one-dimensional"),
        ({"outputs": ["energy"]}, "no output is named 'energy'"),
        ({"outputs": []}, "at least one output"),
        ({"failures": "ignore"}, "failures"),
        ({"out": "sweep.csv"}, "out"),
        ({"out": "missing/sweep.nc"}, "out"),
    ],
)
def test_wrong_sweeps_are_refused(glass, asked, message):
    with pytest.raises(ParameterError, match=message):
        glass.curve(**{"beta": 1, "h": 1, **asked}).to_dataset()
