"""Giant steps of finite networks against the same steps written out plainly."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from giantstep.errors import ParameterError
from giantstep.numeric import giant_step_network, giant_steps
from giantstep.numeric.giant_steps import GiantStepsSetup, take_giant_steps
from giantstep.numeric.sample_stream import SampleStream


def tanh_derivative(u):
    return 1 / np.cosh(u) ** 2


def target(x):
    return 0.3 + x[:, 0] + (x[:, 0] ** 2 - 1) * x[:, 1]


SMALL = GiantStepsSetup(
    np.tanh, tanh_derivative, target, variables=2, dimension=12, samples=3000, width=12, steps=2,
    rate=1.3, readout="gaussian", biases=True, replicas=2, noise_variance=0.2, ridge_samples=400,
    ridge=0.7, test_samples=300,
)  # fmt: skip


def changed(**values):
    return dataclasses.replace(SMALL, **values)


def run(setup=SMALL, **options):
    return take_giant_steps(setup, **({"seeds": 2, "seed": 9, "progress": False} | options))


def everything(stream, purpose, count, **options):
    found = [(x.copy(), y) for x, y in stream.blocks(purpose, count, **options)]
    return np.vstack([x for x, _ in found]), np.concatenate([y for _, y in found])


def written_out(setup, index, seed=9):
    """All steps with whole arrays, and every neuron by itself."""
    child = np.random.SeedSequence(seed, spawn_key=(index,))
    stream = SampleStream(
        setup.dimension, setup.target, setup.variables, setup.noise_variance, child
    )
    p, r, n = setup.width, setup.variables, setup.samples
    half = p // 2 if setup.paired else p
    start = stream.generator(0, 0).standard_normal((half, setup.dimension))
    start /= np.linalg.norm(start, axis=1)[:, None]
    generator = stream.generator(0, 1)
    groups = half // setup.replicas
    a = generator.standard_normal(groups)
    b = generator.standard_normal(groups) if setup.biases else np.zeros(groups)
    group = np.arange(half) * groups // half
    a, b = a[group], b[group]
    if setup.paired:
        start, a, b = np.vstack([start, start]), np.concatenate([a, -a]), np.tile(b, 2)
    w = start.copy()
    history, excess = [w.copy()], [np.eye(r)]
    for t in range(setup.steps):
        x, y = everything(stream, 3 + t, n)
        if setup.preprocess:
            y = y - y.mean() - x @ (y @ x / n)
        residual = y - np.tanh(x @ w.T + b) @ a / p
        if t == 0 and setup.paired:
            assert_allclose(residual, y, atol=1e-12)  # no output at the start
        gradient = -((residual[:, None] * tanh_derivative(x @ w.T + b)) * a / p).T @ x / n
        w = w - setup.rate * p * gradient
        history.append(w.copy())
        weights = residual**2 / (residual**2).sum()
        excess.append((x[:, :r] * weights[:, None]).T @ x[:, :r])
    return np.array(history), start, a, b, np.array(excess), stream


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"preprocess": True, "biases": False},
        {"paired": False, "width": 7, "replicas": 3},
        {"width": 10, "replicas": 2, "steps": 3},
    ],
)
def test_steps_and_measurements_are_what_is_said(changes, monkeypatch):
    monkeypatch.setattr(giant_step_network, "HIDDEN_ENTRIES", 2**11)  # several slices of a block
    monkeypatch.setattr(giant_step_network, "FEWEST_ROWS", 100)
    setup = changed(**changes)
    found = run(setup)
    for index in (0, 1):
        w, start, a, b, excess, _ = written_out(setup, index)
        assert_array_equal(found.readout[index], a)
        assert_array_equal(found.biases[index], b)
        assert_allclose(found.overlaps[index], w[:, :, :2], rtol=1e-9, atol=1e-12)
        assert_allclose(found.squared_norms[index], (w**2).sum(axis=2), rtol=1e-9)
        assert_allclose(found.excess[index], excess, rtol=1e-9, atol=1e-12)
        updates = w - start
        for part, rows in (("weights", w), ("updates", updates)):
            place = giant_steps.PARTS.index(part)
            floor = np.sqrt((rows[:, :, 2:] ** 2).mean(axis=(1, 2)))
            assert_allclose(found.noise_floor(part)[index], floor, rtol=1e-9, atol=1e-12)
            for block in range(6):
                columns = rows[:, :, 2 * block : 2 * block + 2]
                gram = columns.swapaxes(1, 2) @ columns / len(a)
                assert_allclose(found.grams[index, :, place, block], gram, rtol=1e-8, atol=1e-12)
        pairs = [
            (i, j)
            for i in range(len(a))
            for j in range(len(a))
            if i != j and a[i] == a[j] and b[i] == b[j]
        ]
        size = [sum(i == k for i, _ in pairs) for k in range(len(a))]
        products = sum(
            updates[:, i, :, None] * updates[:, j, None, :] / size[i] for i, j in pairs
        ) / np.count_nonzero(size)
        for block in range(6):
            place = slice(2 * block, 2 * block + 2)
            assert_allclose(
                found.grams[index, :, 2, block], products[:, place, place], rtol=1e-8, atol=1e-12
            )
        diagonals = np.diagonal(products, axis1=1, axis2=2)[:, 2:]
        floor = (diagonals**2).mean(axis=1) ** 0.25
        assert_allclose(found.noise_floor("shared")[index], floor, rtol=1e-8, atol=1e-9)


def test_projections_and_singular_values_are_those_of_the_rows():
    found = run()
    directions = np.array([[0.6, 0.8], [-0.8, 0.6]])
    projected = found.overlaps @ directions.T
    expected = np.sqrt((projected**2).mean(axis=2))
    assert_allclose(found.projections(directions), expected, rtol=1e-9)
    singular = np.linalg.svd(found.overlaps, compute_uv=False) / math.sqrt(12)
    assert_allclose(found.singular_values(np.eye(2)), singular, rtol=1e-7)
    one = found.singular_values(directions[:1])
    assert_allclose(one[..., 0], expected[..., 0], rtol=1e-9)
    # In one direction the singular value is the root mean square there, over 5 of 10 directions.
    noise = found.noise_singular_values(2)
    assert noise.shape == (2, 3, 2) and np.all(noise[..., 0] >= noise[..., 1])
    squares = (noise**2).sum(axis=2) / 2
    assert_allclose(np.sqrt(squares), found.noise_floor(), rtol=1e-9)
    # Without an excess noise is the same along the target's coordinates; with it, larger.
    assert_allclose(found.noise_along(directions)[:, 0], np.tile(found.noise_floor()[:, :1], 2))
    assert np.all(
        found.noise_along(directions, "updates") >= found.noise_floor("updates")[..., None]
    )


def test_noise_along_the_target_has_the_variance_that_is_measured():
    # Pure noise weighted by x_1: no direction is learned, and E[y² x_1²]/E y² = 3.
    setup = GiantStepsSetup(
        lambda u: u, lambda u: 1.0, lambda x: x[:, 0] * x[:, 1], variables=2, dimension=40,
        samples=1000, width=2, steps=1, rate=1.0, readout=(1.0,),
    )  # fmt: skip
    found = run(setup, seeds=400)
    along = np.sqrt((found.projections(np.eye(2), "updates")[:, 1] ** 2).mean(axis=0))
    predicted = np.sqrt((found.noise_along(np.eye(2), "updates")[:, 1] ** 2).mean(axis=0))
    # 400 squares of Gaussians: 5 % of the root mean square is 1.4 standard errors each.
    assert_allclose(along, predicted, rtol=0.15)
    assert_allclose(predicted / np.sqrt((found.noise_floor("updates")[:, 1] ** 2).mean()), 3**0.5,
                    rtol=0.05)  # fmt: skip


@pytest.mark.parametrize("ridge", [0.7, None])
def test_the_final_ridge_regression_is_the_one_written_out(ridge):
    setup = changed(ridge=ridge)
    found = run(setup)
    for index in (0, 1):
        w, _, _, b, _, stream = written_out(setup, index)
        x, y = everything(stream, 1, 400)
        x_test, y_test = everything(stream, 2, 300, noisy=False)

        def features(inputs, w=w, b=b):
            return np.tanh(inputs @ w[-1].T + b) / math.sqrt(12)

        def error(penalty, fit, inputs, labels, x=x, y=y):
            phi = np.hstack([features(x[fit]), np.ones((len(x[fit]), 1))])
            penalties = penalty * np.diag([*np.ones(12), 0])  # the intercept is free
            u = np.linalg.solve(phi.T @ phi + penalties, phi.T @ y[fit])
            return ((features(inputs) @ u[:-1] + u[-1] - labels) ** 2).mean()

        fit = slice(400 if ridge else 320)
        if ridge is None:
            size = features(x[fit]).var(axis=0).mean() * 320
            grid = size * 10.0 ** (np.arange(-8, 7) / 2)
            ridge_used = min(grid, key=lambda g: error(g, fit, x[320:], y[320:]))
        else:
            ridge_used = ridge
        assert_allclose(found.ridge[index], ridge_used)
        assert_allclose(found.test_error[index], error(ridge_used, fit, x_test, y_test), rtol=1e-7)
    assert not run(changed(ridge_samples=0)).test_error.any()


def test_numbers_do_not_depend_on_workers_and_more_seeds_extend_a_run():
    one = run(seeds=3, workers=1)
    many = run(seeds=4, workers=3)
    for name in one.quantities:
        assert_array_equal(getattr(one, name), getattr(many, name)[:3])
    assert many.completed == (0, 1, 2, 3)
    assert len({float(error) for error in many.test_error}) == 4


def test_blas_gets_its_threads_back():
    before = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    run(workers=2)
    assert [pool["num_threads"] for pool in threadpoolctl.threadpool_info()] == before


@pytest.mark.parametrize(
    ("readout", "expected"),
    [
        ("signs", [1] * 6 + [-1] * 6),
        ((0.5, 2), [0.5] * 3 + [2] * 3 + [-0.5] * 3 + [-2] * 3),
        ([3.0], [3] * 6 + [-3] * 6),
    ],
)
def test_readouts_with_few_values(readout, expected):
    found = run(changed(readout=readout, biases=False, replicas=1, ridge_samples=0), seeds=1)
    assert_array_equal(found.readout[0], expected)
    assert found.has_shared


def test_readouts_without_pairs():
    setup = changed(readout="signs", paired=False, width=500, samples=1, ridge_samples=0)
    values = run(setup, seeds=1).readout[0]
    assert set(values) == {-1.0, 1.0} and abs(values.mean()) < 0.25  # 4 standard errors and pairs
    single = run(changed(replicas=1), seeds=1)
    assert not single.has_shared
    with pytest.raises(ParameterError, match="nothing is shared: no two neurons have the same"):
        single.projections(np.eye(2), "shared")


# ---------------------------------------------------------------------- stopping and resuming


class Stopping:
    """A target that stops at a call, as a keyboard does."""

    def __init__(self, call):
        self.calls, self.call = 0, call

    def __call__(self, x):
        self.calls += 1
        if self.calls == self.call:
            raise KeyboardInterrupt
        return target(x)


def test_a_run_resumes_in_the_middle_of_a_seed(tmp_path):
    store = {"store": tmp_path / "runs", "description": "tanh"}
    # A seed has one block of samples in each of three steps, for the readout, and for the test.
    with pytest.raises(KeyboardInterrupt):
        run(changed(steps=3, target=Stopping(8)), workers=1, **store)
    names = sorted(path.name[-9:] for path in store["store"].iterdir())
    assert names == ["00000.npz", "00001.npz"]  # the first is finished, two steps of the second
    counting = Stopping(None)
    resumed = run(changed(steps=3, target=counting), workers=1, **store)
    assert counting.calls == 3
    assert len(list(store["store"].iterdir())) == 2  # weights of unfinished seeds are gone
    fresh = run(changed(steps=3))
    for name in fresh.quantities:
        assert_array_equal(getattr(fresh, name), getattr(resumed, name))


def test_damaged_files_are_computed_again(tmp_path, caplog):
    store = {"store": tmp_path, "description": "tanh"}
    fresh = run(**store)
    first, second = sorted(tmp_path.iterdir())
    first.write_bytes(first.read_bytes()[:300])
    content = bytearray(second.read_bytes())
    content[len(content) // 2] ^= 255
    second.write_bytes(content)
    counting = Stopping(None)
    again = run(changed(target=counting), **store)
    assert counting.calls == 8
    assert "is damaged" in caplog.text
    assert_array_equal(again.overlaps, fresh.overlaps)
    run(changed(target=counting), **store)
    assert counting.calls == 8
    # Everything that fixes the numbers is part of the name.
    run(changed(target=counting, rate=1.4), seeds=1, **store)
    run(changed(target=counting), seeds=1, store=tmp_path, description="another target")
    assert counting.calls == 16


def test_an_interrupt_keeps_finished_seeds():
    found = run(changed(target=Stopping(10)), seeds=4, workers=1)
    # The third is lost; the fourth may have ended before the interrupt reached it.
    assert found.interrupted and found.completed in ((0, 1), (0, 1, 3))
    assert " networks of 12 neurons, 2 steps, interrupted" in repr(found)


def test_progress_is_silent_when_short(capsys):
    run(progress=True)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


# ---------------------------------------------------------------------- what is learned


def test_only_what_the_batch_size_allows_is_learned():
    # x1 is learned in one step by n ~ d, x2 x3 needs n ~ d^2.
    setup = GiantStepsSetup(
        lambda u: np.maximum(u, 0), lambda u: np.heaviside(u, 0.5),
        lambda x: x[:, 0] + x[:, 1] * x[:, 2], variables=3, dimension=100, samples=5000, width=40,
        steps=2, rate=1.0,  replicas=2,
    )  # fmt: skip
    found = run(setup, seeds=3)
    rms = found.projections(np.eye(3), "shared").mean(axis=0)
    assert rms[1, 0] > 0.2 and rms[2, 0] > 0.2
    assert np.all(rms[1:, 1:] < 3 * found.noise_along(np.eye(3), "shared").mean(axis=0)[1:, 1:])


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 3), st.integers(0, 6), st.integers(1, 12), st.integers(1, 3),
    st.booleans(), st.booleans(), st.booleans(), st.sampled_from(["gaussian", "signs", (2.0, 0.0)]),
)  # fmt: skip
def test_any_small_network_gives_finite_numbers(
    r, more, width, steps, biases, paired, preprocess, readout
):
    setup = GiantStepsSetup(
        np.tanh, tanh_derivative, lambda x: x.prod(axis=1), variables=r, dimension=2 * r + more,
        samples=5, width=2 * width if paired else width, steps=steps, rate=0.5, readout=readout,
        biases=biases, paired=paired, preprocess=preprocess, ridge_samples=20, test_samples=5,
    )  # fmt: skip
    found = run(setup)
    for name in found.quantities:
        assert np.isfinite(getattr(found, name)).all()
    assert np.isfinite(found.noise_along(np.eye(r))).all()
    assert found.noise_singular_values(r).shape == (2, steps + 1, r)


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"width": 13}, "width must be even, neurons come in pairs; got 13"),
        ({"width": 0}, "width must be >= 1, got 0"),
        ({"dimension": 3}, "dimension must be at least 4, twice the number of coordinates"),
        ({"rate": 0}, "rate must be positive and finite, got 0"),
        ({"rate": -1.0}, "rate must be positive"),
        ({"samples": 0}, "samples must be >= 1"),
        ({"samples": 1e5}, "samples must be a whole number"),
        ({"steps": True}, "steps must be a whole number"),
        ({"readout": "normal"}, "readout must be 'gaussian', 'signs' or finite values"),
        ({"readout": ()}, "readout must be"),
        ({"readout": (0.0, 0.0)}, "readout must be"),
        ({"readout": (1.0, math.inf)}, "readout must be"),
        ({"readout": ("1",)}, "readout must be a number, got '1'"),
        ({"replicas": 7}, "replicas must be at most the number 6 of pairs, got 7"),
        ({"noise_variance": -1}, "noise_variance must be >= 0"),
        ({"ridge": 0.0}, "ridge must be positive"),
        ({"ridge": None, "ridge_samples": 9}, "ridge_samples=9 are too few to hold out a fifth"),
        ({"samples": 10**18}, "samples must be at most .* more would take weeks"),
        ({"samples": 10**400}, "samples must be at most"),
        ({"ridge_samples": 10**20}, "ridge_samples must be at most"),
        ({"student": "relu"}, "student must be a function"),
    ],
)
def test_bad_setups_are_refused_by_name(values, message):
    with pytest.raises(ParameterError, match=message):
        changed(**values)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"setup": "relu"}, "setup must be a GiantStepsSetup, not str"),
        ({"seeds": 0}, "seeds must be >= 1"),
        ({"seed": -1}, "seed must be >= 0"),
        ({"workers": 0}, "workers must be >= 1"),
        ({"store": "runs"}, "store needs a description"),
        (
            {"setup": changed(width=2 * 10**6, dimension=10**6)},
            r"width=2000000 and dimension=1000000 need 9.6e\+04 GB of memory, this machine has",
        ),
        ({"seeds": 10**30}, "seeds must be at most 1000000"),
        ({"setup": changed(rate=1e308)}, "the weights overflow in step 1: the steps are too larg"),
        (
            {"setup": changed(rate=1e9, student=np.exp, student_derivative=np.exp)},
            r"student is not finite at .*\n  the weights may have grown too far in step 1; use",
        ),
        ({"setup": changed(student=lambda u: u[:1])}, "student must return real values"),
        ({"setup": changed(target=lambda x: x[:, 0] / 0)}, "target is not finite at"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:overflow", "ignore:invalid")
def test_wrong_runs_are_refused(options, message):
    options = {"setup": SMALL} | options
    with pytest.raises(ParameterError, match=message):
        run(options.pop("setup"), **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.projections([[1, 1]]), "directions must be orthonormal rows"),
        (lambda f: f.projections([[1, 0, 0]]), "directions must be rows of 2 numbers"),
        (lambda f: f.projections(np.eye(2), "rows"), "part must be one of weights, updates, shar"),
        (lambda f: f.noise_singular_values(3), "count must be at most 2, got 3"),
        (lambda f: f.mean("risk"), "no quantity 'risk'"),
    ],
)
def test_wrong_questions_are_refused(call, message):
    found = run(seeds=1)
    with pytest.raises(ParameterError, match=message):
        call(found)
