"""Many networks: seeds, workers, executors, stores, interrupts, bad input."""

from __future__ import annotations

import dataclasses
import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import threadpoolctl
from numpy.testing import assert_array_equal

from giantstep.errors import ParameterError
from giantstep.numeric.networks.layer import FeatureClass, SpikedRows
from giantstep.numeric.networks.measure import MeanPrediction
from giantstep.numeric.networks.network import Network
from giantstep.numeric.networks.readout import RidgeReadout
from giantstep.numeric.networks.run import simulate

NETWORK = Network(
    student=np.sin, student_derivative=np.cos, teacher=np.tanh, dimension=40, width=40, steps=1,
    step_samples=1500, step_size=1.5, noise_variance=0.1,
)  # fmt: skip
READOUT = RidgeReadout([80, 20], 0.1, test_samples=500)
MEASURE = ("errors", "overlaps", "spike")


def run(network=NETWORK, measure=MEASURE, readout=READOUT, **options):
    return simulate(network, measure, readout=readout, **options)


def equal(ours, theirs):
    assert ours.completed == theirs.completed and ours.quantities == theirs.quantities
    for name in ours.quantities:
        assert_array_equal(ours[name], theirs[name])


@pytest.mark.parametrize(
    "network",
    [NETWORK, dataclasses.replace(NETWORK, rows=SpikedRows(FeatureClass(spike=1.2), 0.9), steps=0)],
    ids=["network", "rows"],
)
def test_numbers_do_not_depend_on_the_workers(network):
    one = run(network, seeds=4, workers=1)
    assert_array_equal(run(network, seeds=3)["test_error"], one["test_error"][:3])
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        for options in ({"workers": 3}, {}, {"executor": executor}):
            equal(run(network, seeds=4, **options), one)
    with ThreadPoolExecutor(1) as executor:
        equal(run(network, seeds=4, executor=executor), one)
        with pytest.raises(ParameterError, match="workers and executor exclude"):
            run(network, workers=1, executor=executor)


def test_seeds_are_numbers_sequences_or_generators():
    drawn = run(seeds=2, seed=np.random.default_rng(5))
    # The number that was drawn is told, and gives the same again.
    equal(run(seeds=2, seed=drawn.seed), drawn)
    assert drawn.seed != run(seeds=2, seed=np.random.SeedSequence(5)).seed == 5
    child = np.random.SeedSequence(5).spawn(1)[0]
    assert run(seeds=2, seed=child).seed not in (5, drawn.seed)
    with pytest.raises(ParameterError, match="seed must be a whole number"):
        run(seeds=2, seed="5")


def test_blas_gets_its_threads_back():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
        assert 2 in before
        run(seeds=4, workers=3)
        assert [pool["num_threads"] for pool in threadpoolctl.threadpool_info()] == before


def test_a_store_resumes_and_replaces_damaged_files(tmp_path):
    calls: list[int] = []

    def counted(trained):
        calls.append(trained.samples.seed.spawn_key[0])
        return {"first": trained.layer.rows[0, :1]}

    options = {"measure": (*MEASURE, counted), "store": tmp_path, "description": "sin, tanh"}
    fresh = run(seeds=5, measure=(*MEASURE, counted))
    calls.clear()
    run(seeds=3, **options)
    files = sorted(tmp_path.iterdir())
    assert [path.name[-9:] for path in files] == ["00000.npz", "00001.npz", "00002.npz"]
    files[0].write_bytes(files[0].read_bytes()[:200])
    content = bytearray(files[1].read_bytes())
    content[content.index(fresh["first"][1].tobytes())] ^= 255
    files[1].write_bytes(content)
    calls.clear()
    equal(run(seeds=5, **options), fresh)
    assert sorted(calls) == [0, 1, 3, 4]
    run(seeds=5, **options)
    assert len(calls) == 4 and not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"description": "another teacher"}, "description is sin, tanh there"),
        ({"readout": dataclasses.replace(READOUT, penalties=0.2)}, "penalties is"),
        ({"network": dataclasses.replace(NETWORK, step_size=1.0)}, "step_size is"),
        # The channel of the labels, not what it was asked for by.
        ({"network": dataclasses.replace(NETWORK, labels="sign")}, "regression there and sign"),
        (
            {
                "network": dataclasses.replace(
                    NETWORK, labels=lambda f, u: f + u, noise_variance=0.0
                )
            },
            "and function here",
        ),
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"measure": MeanPrediction([0, 1])}, "measure is"),
    ],
)
def test_a_store_is_that_of_one_run(tmp_path, changes, message):
    options = {"store": tmp_path, "description": "sin, tanh"}
    run(seeds=1, **options)
    with pytest.raises(ParameterError, match=message):
        run(seeds=1, **(options | changes))


def interrupting(allowed: int):
    """A teacher that is interrupted after the first `allowed` runs of one worker."""
    calls = {"count": 0}

    def teacher(z):
        calls["count"] += 1
        # Blocks of labels in a run: two in the step, one of the readout, one of the test.
        if calls["count"] > 4 * allowed:
            raise KeyboardInterrupt
        return np.tanh(z)

    return dataclasses.replace(NETWORK, teacher=teacher)


def test_an_interrupt_keeps_finished_seeds(tmp_path):
    store = {"store": tmp_path, "description": "sin, tanh", "seeds": 6}
    partial = run(interrupting(3), workers=1, **store)
    assert partial.interrupted and partial.completed == (0, 1, 2)
    assert partial["test_error"].shape == (3, 2, 1) and "interrupted" in repr(partial)
    resumed = run(**store)
    assert not resumed.interrupted
    assert_array_equal(resumed["test_error"][:3], partial["test_error"])
    equal(resumed, run(seeds=6))


def test_an_interrupt_before_two_seeds_is_passed_on(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(interrupting(1), seeds=4, workers=1, store=tmp_path, description="sin, tanh")
    assert len(list(tmp_path.iterdir())) == 1


def test_running_seeds_are_abandoned_on_interrupt():
    calls = {"count": 0}

    def teacher(z):
        calls["count"] += 1
        if calls["count"] == 30:
            raise KeyboardInterrupt
        return np.tanh(z)

    # 400 blocks in each seed: without abandoning, the other worker would take all of them.
    with pytest.raises(KeyboardInterrupt):
        run(
            dataclasses.replace(NETWORK, teacher=teacher), seeds=8, workers=2,
            readout=RidgeReadout(40, 1.0, test_samples=400 * 1024),
        )  # fmt: skip
    assert calls["count"] < 200


def test_progress_is_silent_when_short(capsys):
    run(seeds=2, progress=True)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_means_and_standard_errors():
    found = run(seeds=3)
    assert_array_equal(found.mean(), found["test_error"].mean(axis=0))
    spread = found["alignment"].std(axis=0, ddof=1) / math.sqrt(3)
    assert_array_equal(found.standard_error("alignment"), spread)
    with pytest.raises(ParameterError, match="no quantity 'errors'"):
        found.mean("errors")
    with pytest.raises(ParameterError, match="no quantity "):
        found.mean(["test_error"])
    with pytest.raises(ParameterError, match="one network has no standard error"):
        run(seeds=1).standard_error()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": None}, "network must be a Network, not NoneType"),
        ({"seeds": 0}, "seeds must be >= 1"),
        ({"seed": -1}, "seed must be >= 0"),
        ({"workers": 0}, "workers must be >= 1"),
        ({"executor": 3}, "executor must be a concurrent.futures.Executor, got 3"),
        ({"progress": "loud"}, "progress must be"),
        ({"store": 3}, "store must be a path"),
        ({"store": "runs"}, "store needs a description"),
        ({"measure": ()}, "at least one measurement"),
        ({"measure": "risk"}, "measure must hold functions or some of errors"),
        ({"measure": {"errors": 2}}, "steps of errors must be numbers of steps up to 1"),
        ({"measure": ("spike", lambda trained: {"alignment": 1.0})}, "two measurements return"),
        ({"measure": ("spike", "spike")}, "two measurements are named 'spike'"),
        ({"measure": {"spike": 0.5}}, "steps of spike must be whole numbers"),
        ({"measure": lambda trained: 1.0}, "must return arrays by name"),
        ({"readout": None}, "give readout="),
    ],
)
def test_wrong_runs_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        run(**({"seeds": 1} | changes))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((40, -1), "ridge must be"),
        ((40, math.inf), "ridge must be"),
        ((40, ()), "ridge must hold"),
        (([], 0.1), "samples must hold"),
        ((1.5, 0.1), "samples must be a whole number"),
        ((5,), "too few to hold out"),
    ],
)
def test_wrong_readouts_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        RidgeReadout(*arguments)
