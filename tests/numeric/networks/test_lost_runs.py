"""Runs in trouble: workers that die, disks that fill, networks that were stopped or do not fit."""

import errno
import importlib
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from giantstep.errors import CacheError, ParameterError
from giantstep.numeric import seed_store
from giantstep.numeric.networks import run, sizes
from giantstep.numeric.networks.network import Network, Training
from giantstep.numeric.networks.readout import RidgeReadout
from giantstep.numeric.networks.run import simulate


def slope(z):
    """Derivative of tanh."""
    return 1 - np.tanh(z) ** 2


def network(**changes):
    """Return a small network that takes one step."""
    given = dict(
        student=np.tanh, teacher=np.sin, student_derivative=slope, dimension=20, width=15, steps=1,
        step_samples=60, step_size=1.5, description="tanh, sin",
    )  # fmt: skip
    return Network(**{**given, **changes})


READOUT = RidgeReadout([10, 40], 0.1, test_samples=100)


def numbers(**options):
    """Return the test errors of a run."""
    return simulate(network(), readout=READOUT, progress=False, **options)["test_error"]


def same(a, b):
    """Whether arrays are equal to the last bit."""
    return np.array_equal(a, b)


# ---------------------------------------------------------------------- workers that die


class _DyingSeed:
    """Measurement that kills its process the first time that seed 1 gets there."""

    def __init__(self, folder):
        self.folder, self.parent = str(folder), os.getpid()

    def __call__(self, trained):
        mark = Path(self.folder) / "died"
        if trained.samples.seed.spawn_key == (1,) and not mark.exists():
            mark.touch()
            if os.getpid() != self.parent:
                os.kill(os.getpid(), signal.SIGKILL)
        return {"mean_row": trained.layer.rows.mean(axis=0)}


@pytest.fixture
def sent_by_value():
    """Workers elsewhere cannot import this file."""
    pytest.importorskip("loky")
    cloudpickle = importlib.import_module("cloudpickle")

    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def _runs_with_a_death(executor, folder):
    measure = _DyingSeed(folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = simulate(network(), [measure], seeds=5, executor=executor, progress=False)
    assert (Path(folder) / "died").exists()
    wanted = simulate(network(), [measure], seeds=5, progress=False)
    assert same(found["mean_row"], wanted["mean_row"])
    return [str(w.message) for w in caught]


@pytest.mark.slow
def test_a_pool_that_breaks_ends_with_the_same_numbers(tmp_path):
    with ProcessPoolExecutor(2) as processes:
        messages = _runs_with_a_death(processes, tmp_path)
    assert any("a worker died" in message for message in messages)


@pytest.mark.slow
def test_loky_loses_a_worker_and_ends_with_the_same_numbers(tmp_path, sent_by_value):
    loky = pytest.importorskip("loky")
    executor = loky.get_reusable_executor(max_workers=2)
    try:
        _runs_with_a_death(executor, tmp_path)
    finally:
        executor.shutdown(kill_workers=True)


_ON_DASK = """
import os, signal, sys, warnings
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

import giantstep as gs


def dying(trained, mark=Path(sys.argv[0]).parent / "died", parent=os.getpid()):
    if trained.samples.seed.spawn_key == (1,) and os.getpid() != parent and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"mean_row": trained.layer.rows.mean(axis=0)}


if __name__ == "__main__":
    network = gs.Network("tanh", "sin", dimension=20, width=15, steps=1, step_samples=60,
                         step_size=1.5)
    wanted = gs.simulate(network, [dying], seeds=5)["mean_row"]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        found = gs.simulate(network, [dying], seeds=5, executor=client.get_executor())
    assert (Path(sys.argv[0]).parent / "died").exists()
    print("equal" if np.array_equal(found["mean_row"], wanted) else "different")
"""


@pytest.mark.slow
def test_dask_loses_a_worker_and_ends_with_the_same_numbers(tmp_path):
    pytest.importorskip("distributed")
    script = tmp_path / "on_dask.py"
    script.write_text(_ON_DASK)
    found = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert found.stdout.split() == ["equal"], found.stderr


_ON_MPI = """
import os
from pathlib import Path

import numpy as np
from mpi4py.futures import MPIPoolExecutor

import giantstep as gs

FOLDER = Path({folder!r})


def dying(trained):
    mark = FOLDER / "died"
    if trained.samples.seed.spawn_key == (3,) and not mark.exists():
        mark.touch()
        os._exit(9)
    return {{"mean_row": trained.layer.rows.mean(axis=0)}}


if __name__ == "__main__":
    network = gs.Network("tanh", "sin", dimension=20, width=15, steps=1, step_samples=60,
                         step_size=1.5)
    with MPIPoolExecutor(2) as executor:
        found = gs.simulate(network, [dying], seeds=6, executor=executor, store=FOLDER / "runs")
    wanted = gs.simulate(network, [dying], seeds=6)
    print("equal" if np.array_equal(found["mean_row"], wanted["mean_row"]) else "different")
"""


@pytest.mark.slow
def test_mpi_ends_with_a_worker_and_resumes_with_the_same_numbers(tmp_path):
    pytest.importorskip("mpi4py")
    launcher = shutil.which(
        "mpiexec",
        path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    )
    assert launcher is not None, "mpi4py without mpiexec"
    script = tmp_path / "on_mpi.py"
    script.write_text(_ON_MPI.format(folder=str(tmp_path)))
    command = [launcher, "-n", "3", sys.executable, "-m", "mpi4py.futures", script]
    # MPI ends all processes when one dies; what had finished is kept.
    first, second = (
        subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
        for _ in range(2)
    )
    assert first.returncode != 0 and "equal" not in first.stdout
    assert second.stdout.split() == ["equal"], second.stderr


class _LosingExecutor(Executor):
    """Loses given seeds as often as asked, and runs the others at once."""

    def __init__(self, lost):
        self.lost = dict(lost)

    def submit(self, function, index, *arguments):
        future = Future()
        if self.lost.get(index, 0):
            self.lost[index] -= 1
            future.set_exception(type("KilledWorker", (Exception,), {})(index))
        else:
            future.set_result(function(index, *arguments))
        return future


def test_lost_seeds_are_run_again_once():
    with pytest.warns(RuntimeWarning, match="a worker died; running seeds 1, 2 again"):
        found = numbers(seeds=4, executor=_LosingExecutor({1: 1, 2: 1}))
    assert same(found, numbers(seeds=4))
    with (
        pytest.warns(RuntimeWarning, match="running seeds 1 again"),
        pytest.raises(ParameterError, match="workers of seeds 1 died twice"),
    ):
        numbers(seeds=4, executor=_LosingExecutor({1: 2}))


# ---------------------------------------------------------------------- the store


def test_seeds_of_the_simulators_before_are_refused(tmp_path):
    seed_store.SeedStore(tmp_path, {"streams_version": 1, "ridge": 0.1}, {"errors": (2,)}).save(
        0, {"errors": np.zeros(2)}
    )
    with pytest.raises(ParameterError, match="another version of giantstep"):
        numbers(seeds=2, store=tmp_path)


def test_a_disk_that_fills_leaves_what_had_finished(tmp_path, monkeypatch):
    real, calls = seed_store.replacing, []

    def replacing(path):
        calls.append(path)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path)

    monkeypatch.setattr(seed_store, "replacing", replacing)
    with pytest.raises(CacheError, match="No space left on device\n  what had finished before"):
        numbers(seeds=4, workers=1, store=tmp_path)
    monkeypatch.undo()
    assert len(list(tmp_path.glob("*.npz"))) == 2
    assert same(numbers(seeds=4), numbers(seeds=4, store=tmp_path))


@pytest.mark.parametrize(
    "options", [{}, {"readout_step_size": 0.5}, {"preprocess": True}, {"normalise": True}]
)
def test_a_resumed_network_is_the_one_that_was_stopped(options):
    several = network(steps=2, **options)
    stopped, resumed = (Training(several, np.random.SeedSequence(3)) for _ in range(2))
    stopped.step()
    state = {name: value.copy() for name, value in stopped.state().items()}
    resumed.resume(state)
    for training in (stopped, resumed):
        training.step()
    for name, value in stopped.state().items():
        assert same(value, resumed.state()[name]), name
    resumed.resume(state)
    assert all(same(resumed.state()[name], state[name]) for name in state)


def test_an_unfinished_network_goes_on_after_its_last_step(tmp_path):
    several = network(steps=3, paired=True, width=16, preprocess=True)
    measure = {"spike": (0, 1, 2, 3), "label_moment": 3}
    wanted = simulate(several, measure, seeds=2, progress=False)
    steps = []

    def stopping(trained):
        steps.append(trained.training.steps)
        if trained.training.steps == 3 and steps.count(3) == 1:
            raise KeyboardInterrupt
        return {}

    stopping.__qualname__ = "watched"
    options = dict(seeds=2, workers=1, store=tmp_path, progress=False)
    watched = {**measure, stopping: (0, 1, 2, 3)}
    with pytest.raises(KeyboardInterrupt):
        simulate(several, watched, **options)
    assert list(tmp_path.glob("*-stopped.npz"))
    steps.clear()
    steps.append(3)
    found = simulate(several, watched, **options)
    # Seed 0 was stopped after its last step; seed 1 wherever it was by then.
    assert steps[1] == 3 and steps[-1] == 3 and len(steps) <= 6
    assert not list(tmp_path.glob("*-stopped.npz"))
    for name in wanted.quantities:
        assert same(found[name], wanted[name]), name


def test_a_run_that_fails_abandons_the_other_seeds():
    class Failing:
        def __call__(self, trained):
            if trained.samples.seed.spawn_key == (0,):
                raise ZeroDivisionError("of a user")
            time.sleep(0.01)
            return {}

    with pytest.raises(ZeroDivisionError, match="of a user"):
        simulate(network(), [Failing()], seeds=50, workers=2, progress=False)


# ---------------------------------------------------------------------- what is measured


def rows_of(trained):
    """Return the rows."""
    return {"rows": trained.layer.rows, "norm": np.linalg.norm(trained.layer.rows)}


def test_measurements_after_given_steps_get_an_axis():
    several = network(steps=2)
    found = simulate(
        several, {rows_of: (2, 0), "errors": 2}, readout=READOUT, seeds=2, progress=False
    )
    assert found["rows"].shape == (2, 2, 15, 20) and found["norm"].shape == (2, 2)
    assert found["test_error"].shape == (2, 2, 1)
    start = found["rows"][:, 0]
    np.testing.assert_allclose(np.linalg.norm(start, axis=2), 1, rtol=1e-14)
    last = simulate(several, rows_of, seeds=2, progress=False)
    assert same(last["rows"], found["rows"][:, 1])


def test_networks_that_do_not_fit_are_refused_with_what_would(monkeypatch):
    with pytest.raises(ParameterError, match="one network does not fit; use a smaller dimension"):
        simulate(network(dimension=10**6, width=10**6), readout=READOUT)
    room = network().bytes_needed + 10**6
    monkeypatch.setattr(sizes, "memory_of_machine", lambda: 2 * room)
    monkeypatch.setattr(run, "memory_of_machine", lambda: 2 * room)
    with pytest.raises(ParameterError, match=r"with 9 workers.*\n  at most 2 workers fit"):
        simulate(network(), readout=READOUT, workers=9)
    # By default as many workers as fit.
    assert same(numbers(seeds=4), numbers(seeds=4, workers=1))


# ---------------------------------------------------------------------- precision


def test_single_precision_is_double_precision_rounded():
    double = network(dimension=60, width=50, step_samples=300)
    single = replace(double, precision="single")
    measure = ["errors", "spike", "rounding"]
    readout = RidgeReadout([40, 200], 0.1, test_samples=500)
    wide, narrow = (
        simulate(made, measure, readout=readout, seeds=3, progress=False)
        for made in (double, single)
    )
    for name in ("test_error", "training_error", "spike_strength", "bulk_variance"):
        np.testing.assert_allclose(narrow[name], wide[name], rtol=2e-5, err_msg=name)
        assert not same(narrow[name], wide[name])
    assert 1e-9 < narrow["rounding"].min() and narrow["rounding"].max() < 1e-4
    assert 1e-8 < narrow["gradient_rounding"].min() and narrow["gradient_rounding"].max() < 1e-5
    assert not wide["gradient_rounding"].any() and "rounding" not in wide.values
