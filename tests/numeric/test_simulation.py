"""Networks of finite size, one and many, against textbook recipes and the asymptotic theory."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import math
import multiprocessing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import erf

from giantstep.errors import ParameterError
from giantstep.numeric import networks, simulation
from giantstep.numeric.arguments import MOST_SEEDS, real_array, whole_number
from giantstep.numeric.plain_network import NetworkSetup, sample_count, simulate_network
from giantstep.numeric.ridge_readout import fit_nested
from giantstep.numeric.seed_store import store_folder
from giantstep.numeric.simulation import SimulationResult, simulate

SMALL = NetworkSetup(np.sin, np.cos, np.tanh, 1.5, 20, 1, 0.1, 60)
# 30 < p is solved in the dual; 1200 rows make two blocks, the second of which is drawn twice.
SMALL_ALPHA = [20, 0.5, 1, 2]


def erf_derivative(z):
    return 2 / math.sqrt(math.pi) * np.exp(-(z**2))


def run_small(**options) -> SimulationResult:
    return simulate(SMALL, [0.5, 2], ridge=0.1, n_test=500, progress=False, **options)


def fields(result):
    return [getattr(result, name) for name in simulation.QUANTITIES]


def drawn(network, purpose, count, noise):
    """All samples of a purpose at once."""
    blocks = [
        [
            part.copy()
            for part in network.draw(purpose, start, min(networks.BLOCK_ROWS, count - start), noise)
        ]
        for start in range(0, count, networks.BLOCK_ROWS)
    ]
    inputs, labels = zip(*blocks, strict=True)
    return np.concatenate(inputs), np.concatenate(labels)


def textbook(setup, alpha, ridge, seed, n_test):
    """The definitions on the same data: no blocks, no Gram matrix, one least-squares problem."""
    network = networks._Network(setup, seed, lambda: None)
    d, p = setup.dimension, setup.width
    rows, theta = network.rows.copy(), network.theta
    n0 = round(setup.alpha0 * d)
    x, y = drawn(network, 1, n0, setup.noise_variance)
    hidden = x @ rows.T
    residual = y - setup.student(hidden).sum(axis=1) / p
    step = np.einsum("m,mj,mi->ji", residual, setup.student_derivative(hidden), x) / n0
    rows = rows + setup.step_size * step
    v = residual @ x / np.linalg.norm(residual @ x)
    test, training = [], []
    x_test, y_test = drawn(network, 3, n_test, 0.0)
    for ratio in alpha:
        n = round(ratio * d)
        x, y = drawn(network, 2, n, setup.noise_variance)
        phi = setup.student(x @ rows.T) / math.sqrt(p)
        stacked = np.vstack([phi, math.sqrt(ridge) * np.eye(p)])
        w = np.linalg.lstsq(stacked, np.append(y, np.zeros(p)), rcond=None)[0]
        training.append(np.mean((y - phi @ w) ** 2))
        test.append(np.mean((setup.student(x_test @ rows.T) @ w / math.sqrt(p) - y_test) ** 2))
    bulk = rows - np.outer(rows @ v, v)
    return test, training, np.mean(rows @ v), np.mean(np.sum(bulk**2, axis=1)), v @ theta


@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_one_network_is_the_textbook_network(ridge):
    seed = np.random.SeedSequence(7)
    result = simulate_network(SMALL, SMALL_ALPHA, ridge=ridge, seed=seed, n_test=1500)
    expected = textbook(SMALL, SMALL_ALPHA, ridge, seed, 1500)
    for value, reference in zip(fields(result), expected, strict=True):
        # Rounding times the condition number of the Gram matrix, at most 1e5 here.
        assert_allclose(value, reference, rtol=1e-9)


def test_labels_have_the_distribution_of_the_definition():
    setup = dataclasses.replace(SMALL, noise_variance=0.5, dimension=40)
    network = networks._Network(setup, np.random.SeedSequence(3), lambda: None)
    assert_allclose(np.linalg.norm(network.rows, axis=1), 1, rtol=1e-12)
    assert_allclose(np.linalg.norm(network.theta), 1, rtol=1e-12)
    count = 20_000
    x, y = drawn(network, 2, count, setup.noise_variance)
    noise = y - np.tanh(x @ network.theta)
    # Four standard errors of a Gaussian variance and of a mean.
    assert abs(noise.var() - 0.5) < 4 * 0.5 * math.sqrt(2 / count)
    assert abs(noise.mean()) < 4 * math.sqrt(0.5 / count)
    assert abs(x.var() - 1) < 4 * math.sqrt(2 / x.size)
    other, _ = drawn(network, 1, count, 0.0)
    assert abs(np.mean(other * x)) < 4 / math.sqrt(x.size)


def test_small_ridge_below_the_interpolation_threshold():
    rng = np.random.default_rng(0)
    phi, y = rng.standard_normal((40, 100)), rng.standard_normal(40)

    def draw(start, out):
        out[:] = phi[start : start + len(out)]
        return y[start : start + len(out)]

    _, training = fit_nested(draw, [40], width=100, ridge=1e-6, block_rows=16)
    u, s, _ = np.linalg.svd(phi, full_matrices=False)
    # Residual in the singular basis: ridge / (s^2 + ridge) times the label, about 1e-8 here.
    expected = np.mean((1e-6 / (s**2 + 1e-6) * (u.T @ y)) ** 2) * len(s) / 40
    assert expected < 1e-14
    assert_allclose(training, [expected], rtol=1e-9)


def test_dual_and_primal_agree_across_the_threshold():
    rng = np.random.default_rng(1)
    phi, y = rng.standard_normal((90, 30)), rng.standard_normal(90)
    sizes = [1, 7, 29, 30, 31, 64, 90]

    def draw(start, out):
        out[:] = phi[start : start + len(out)]
        return y[start : start + len(out)]

    coefficients, training = fit_nested(draw, sizes, width=30, ridge=0.1, block_rows=8)
    for column, n in enumerate(sizes):
        gram = phi[:n].T @ phi[:n] + 0.1 * np.eye(30)
        u = np.linalg.solve(gram, phi[:n].T @ y[:n])
        # Condition number of the Gram matrix is below 1e4.
        assert_allclose(coefficients[:, column], u, rtol=0, atol=1e-11)
        assert_allclose(training[column], np.mean((y[:n] - phi[:n] @ u) ** 2), rtol=1e-9)


def test_too_small_ridge_is_refused():
    def draw(start, out):
        out[:] = 1.0
        return np.ones(len(out))

    with pytest.raises(ParameterError, match="ridge is too small"):
        fit_nested(draw, [8], width=4, ridge=1e-300, block_rows=8)


def test_realised_parameters_and_errors_approach_the_theory():
    # Cui et al., arXiv:2402.04980, Result 3.1; erf/erf, s = 2, alpha0 = 2, Delta = 1/4.
    setup = NetworkSetup(erf, erf_derivative, erf, 2, 2, 0.5, 0.25, 500)
    result = simulate(setup, [3], ridge=0.1, seeds=10, progress=False)
    expected = {"spike_strength": 1.1520, "bulk_variance": 1.2072, "alignment": 0.7368}
    for name, value in expected.items():
        # 1.5 %: shifts of up to that size are seen at d = 1000, and go with 1/d.
        tolerance = 4 * result.standard_error(name) + 0.015 * value
        assert abs(result.mean(name) - value) < tolerance
    # Limit of the equivalent model; rows with c = 1.2 share a covariance it leaves out (1 %).
    assert abs(result.mean() - 0.2231) < 4 * result.standard_error() + 0.01
    assert result.standard_error()[0] < 0.01


def test_negative_signs_follow_the_direction_convention():
    # h_1 < 0 gives r < 0; h*_1 < 0 gives an alignment < 0.
    setup = NetworkSetup(
        lambda z: -np.sin(z), lambda z: -np.cos(z), lambda z: -np.tanh(z), 1, 8, 1, 0, 200
    )
    result = simulate_network(setup, [1], ridge=1, seed=np.random.SeedSequence(0), n_test=100)
    assert result.spike_strength < -0.2
    assert result.alignment < -0.8


def test_zero_step_is_plain_random_features():
    # erf/erf plain random features, theory .2177223 at alpha = 2, beta = 1.5, ridge = .01.
    setup = NetworkSetup(erf, erf_derivative, erf, 0, math.inf, 1.5, 0, 300)
    result = simulate(setup, [2], ridge=0.01, seeds=8, progress=False)
    assert_array_equal(result.spike_strength, 0)
    assert_array_equal(result.alignment, 0)
    assert_allclose(result.bulk_variance, 1, rtol=1e-12)
    assert abs(result.mean() - 0.2177223) < 4 * result.standard_error() + 0.003


def test_larger_alpha_does_not_change_smaller_ones():
    seed = np.random.SeedSequence(5)
    alone = simulate_network(SMALL, [2], ridge=0.1, seed=seed, n_test=300)
    among = simulate_network(SMALL, [20, 2, 2], ridge=0.1, seed=seed, n_test=300)
    assert_allclose(among.test_error[1:], np.repeat(alone.test_error, 2), rtol=1e-10)
    assert_allclose(among.training_error[1:], np.repeat(alone.training_error, 2), rtol=1e-10)
    assert seed.n_children_spawned == 0


def test_numbers_do_not_depend_on_the_workers():
    one = run_small(seeds=4, workers=1)
    spawned = np.random.SeedSequence(0).spawn(4)[3]
    last = simulate_network(SMALL, [0.5, 2], ridge=0.1, n_test=500, seed=spawned)
    assert_array_equal(one.test_error[3], last.test_error)
    with concurrent.futures.ProcessPoolExecutor(
        2, mp_context=multiprocessing.get_context("spawn")
    ) as executor:
        others = [
            run_small(seeds=4, workers=3),
            run_small(seeds=4),
            run_small(seeds=4, executor=executor),
        ]
    for other in others:
        assert other.completed == (0, 1, 2, 3)
        for ours, theirs in zip(fields(one), fields(other), strict=True):
            assert_array_equal(ours, theirs)


def test_blas_gets_its_threads_back():
    before = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    run_small(seeds=4, workers=3)
    assert [pool["num_threads"] for pool in threadpoolctl.threadpool_info()] == before


def count_runs(monkeypatch) -> list[int]:
    runs: list[int] = []

    def counted(*args, seed, **options):
        runs.append(seed.spawn_key[0])
        return simulate_network(*args, seed=seed, **options)

    monkeypatch.setattr(simulation, "simulate_network", counted)
    return runs


def test_a_store_resumes_and_replaces_damaged_files(tmp_path, monkeypatch):
    options = {"store": tmp_path / "runs", "description": "sin, tanh"}
    fresh = run_small(seeds=5)
    run_small(seeds=3, **options)
    files = sorted((tmp_path / "runs").iterdir())
    assert [path.name[-9:] for path in files] == ["00000.npz", "00001.npz", "00002.npz"]
    files[0].write_bytes(files[0].read_bytes()[:200])
    content = bytearray(files[1].read_bytes())
    content[len(content) // 2] ^= 255
    files[1].write_bytes(content)
    runs = count_runs(monkeypatch)
    resumed = run_small(seeds=5, **options)
    assert sorted(runs) == [0, 1, 3, 4]
    for ours, theirs in zip(fields(fresh), fields(resumed), strict=True):
        assert_array_equal(ours, theirs)
    run_small(seeds=5, **options)
    assert len(runs) == 4
    run_small(seeds=1, store=options["store"], description="another teacher")
    assert len(runs) == 5
    assert not list((tmp_path / "runs").glob(".*.part"))


def interrupting(allowed: int):
    """A teacher that is interrupted after the first `allowed` runs of one worker."""
    calls = {"count": 0}
    # Blocks of labels in a run of SMALL: two in the step, one readout, one test.
    limit = 4 * allowed

    def teacher(z):
        calls["count"] += 1
        if calls["count"] > limit:
            raise KeyboardInterrupt
        return np.tanh(z)

    return dataclasses.replace(SMALL, teacher=teacher)


def test_an_interrupt_keeps_finished_seeds(tmp_path):
    options = {"ridge": 0.1, "seeds": 6, "workers": 1, "n_test": 500, "progress": False}
    store = {"store": tmp_path, "description": "sin, tanh"}
    partial = simulate(interrupting(3), [0.5, 2], **options, **store)
    assert partial.interrupted
    assert partial.completed == (0, 1, 2)
    assert partial.test_error.shape == (3, 2)
    assert "interrupted" in repr(partial)
    resumed = run_small(seeds=6, **store)
    assert not resumed.interrupted
    assert_array_equal(resumed.test_error[:3], partial.test_error)
    assert_array_equal(resumed.test_error, run_small(seeds=6).test_error)


def test_an_interrupt_before_two_seeds_is_passed_on(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        simulate(
            interrupting(1),
            [0.5, 2],
            ridge=0.1,
            seeds=4,
            workers=1,
            n_test=500,
            progress=False,
            store=tmp_path,
            description="sin, tanh",
        )
    assert len(list(Path(tmp_path).iterdir())) == 1


def test_running_seeds_are_abandoned_on_interrupt():
    calls = {"count": 0}

    def teacher(z):
        calls["count"] += 1
        if calls["count"] == 30:
            raise KeyboardInterrupt
        return np.tanh(z)

    # 400 blocks in each seed: without abandoning, the other worker would take all of them.
    setup = dataclasses.replace(SMALL, teacher=teacher)
    with pytest.raises(KeyboardInterrupt):
        simulate(setup, [1], ridge=1, seeds=8, workers=2, n_test=400 * 1024, progress=False)
    assert calls["count"] < 200


def test_progress_is_silent_when_short(capsys):
    simulate(SMALL, [1], ridge=1, seeds=2, n_test=100)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_summary_helpers():
    result = run_small(seeds=3)
    assert_allclose(result.mean(), result.test_error.mean(axis=0))
    assert_allclose(result.standard_error("alignment"), result.alignment.std(ddof=1) / math.sqrt(3))
    with pytest.raises(ParameterError, match="no quantity 'errors'"):
        result.mean("errors")
    with pytest.raises(ParameterError, match="one network has no standard error"):
        run_small(seeds=1).standard_error()


@pytest.mark.parametrize(
    ("name", "ratio", "dimension", "message"),
    [
        ("alpha", 0.2, 3, r"dimension=3 is too small for alpha=0.2.*\n  use dimension = 5 or"),
        ("beta", 0.001, 100, r"use dimension = 991 or dimension >= 50000"),
        ("alpha0", math.inf, 100, "alpha0 must be positive and finite, got inf; a simulation"),
        ("alpha", -1.0, 100, "alpha must be positive"),
    ],
)
def test_numbers_of_samples_are_whole(name, ratio, dimension, message):
    with pytest.raises(ParameterError, match=message):
        sample_count(name, ratio, dimension)


@pytest.mark.parametrize(("ratio", "dimension"), [(0.2, 5), (0.101, 100), (1 / 3, 300), (2, 1)])
def test_close_numbers_of_samples_are_rounded(ratio, dimension):
    assert sample_count("alpha", ratio, dimension) == round(ratio * dimension)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"student": "erf"}, "student must be a function"),
        ({"step_size": math.nan}, "step_size must be a number, got nan"),
        ({"step_size": math.inf}, "step_size must be finite"),
        ({"alpha0": math.inf}, "alpha0 must be positive and finite, got inf"),
        ({"alpha0": 0}, "alpha0 must be positive"),
        ({"beta": "1"}, "beta must be a number"),
        ({"beta": 0.001}, "dimension=60 is too small for beta=0.001"),
        ({"noise_variance": -1}, "noise_variance must be >= 0"),
        ({"dimension": 60.0}, "dimension must be a whole number"),
        ({"dimension": 0}, "dimension must be >= 1"),
        ({"dimension": True}, "dimension must be a whole number"),
    ],
)
def test_wrong_setups_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        dataclasses.replace(SMALL, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": []}, "alpha must be a non-empty sequence"),
        ({"alpha": 1.0}, "alpha must be a non-empty sequence"),
        ({"alpha": [1, math.nan]}, "alpha must be a number, got nan"),
        ({"alpha": [0.01]}, "dimension=60 is too small for alpha=0.01"),
        ({"ridge": 0}, "ridge must be positive"),
        ({"ridge": math.inf}, "ridge must be positive and finite"),
        ({"seeds": 0}, "seeds must be >= 1"),
        ({"seed": -1}, "seed must be >= 0"),
        ({"workers": 0}, "workers must be >= 1"),
        ({"n_test": 1.5}, "n_test must be a whole number"),
        ({"store": "runs"}, "store needs a description"),
        ({"setup": None}, "setup must be a NetworkSetup, not NoneType"),
    ],
)
def test_wrong_runs_are_refused(changes, message):
    arguments = {"setup": SMALL, "alpha": [1], "ridge": 0.1, "progress": False} | changes
    with pytest.raises(ParameterError, match=message):
        simulate(arguments.pop("setup"), arguments.pop("alpha"), **arguments)


def test_workers_and_executor_exclude_each_other():
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        with pytest.raises(ParameterError, match="workers and executor exclude"):
            run_small(seeds=1, workers=1, executor=executor)
        assert run_small(seeds=1, executor=executor).completed == (0,)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda z: z[..., :1], "student must return real values"),
        (lambda z: z + 0j, "student must return real values"),
        (lambda z: np.where(np.abs(z) > 1, np.nan, z), "student is not finite at"),
    ],
)
def test_wrong_activations_are_refused(function, message):
    with pytest.raises(ParameterError, match=message):
        simulate(
            dataclasses.replace(SMALL, student=function), [1], ridge=1, seeds=2, progress=False
        )


def test_constant_derivatives_may_be_scalars():
    linear = NetworkSetup(lambda z: z, lambda z: 1.0, lambda z: z, 1, 10, 1, 0, 50)
    result = simulate_network(linear, [2], ridge=1e-8, seed=np.random.SeedSequence(0), n_test=50)
    assert result.test_error[0] < 1e-8


@pytest.mark.parametrize(
    "name, ratio, dimension, words",
    [
        ("alpha", 1e-300, 30, "alpha=1e-300 is too small .* at most 1e"),
        ("alpha0", 5e-324, 30, "alpha0=4.94066e-324 is too small"),
        ("alpha", 1e300, 30, "alpha=1e.300 is too large .* at most 1e"),
        ("alpha", 1e308, 30, "alpha=1e.308 is too large"),
        ("beta", 1.0, 10**18, "beta=1 is too large .* dimension=1e"),
        ("alpha", 1e-5, 30, "dimension=30 is too small .*\n  use dimension = 99010 or"),
    ],
)
def test_sizes_that_no_memory_holds_are_refused_at_once(name, ratio, dimension, words):
    with pytest.raises(ParameterError, match=words):
        sample_count(name, ratio, dimension)


@pytest.mark.parametrize("store", [3, 1.5, True, b"folder", ["folder"], "a" * 1000, "\0"])
def test_a_store_is_a_path(store):
    with pytest.raises(ParameterError, match="store "):
        store_folder(store)
    with pytest.raises(ParameterError, match="is a file"):
        store_folder(__file__)
    assert store_folder(None) is None and store_folder("a") == Path("a")


def test_whole_numbers_end_with_those_of_arrays():
    with pytest.raises(ParameterError, match=r"dimension must be at most 2\*\*63 - 1"):
        whole_number("dimension", 10**400)
    with pytest.raises(ParameterError, match="seeds must be at most 1000000"):
        whole_number("seeds", 10**7, maximum=MOST_SEEDS)
    assert whole_number("dimension", 2**63 - 1) == 2**63 - 1


@pytest.mark.parametrize(
    "values", [[], {"a": 1}, [1, [2]], "1", [np.inf], 1j, Fraction(10**400, 3)]
)
def test_real_arrays_are_refused_by_name(values):
    with pytest.raises(ParameterError, match="kappa must"):
        real_array("kappa", values)
