"""Networks after gradient steps in the proportional scaling: one network, many, their spectra."""

import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from giantstep.errors import ParameterError
from giantstep.numeric import one_step_simulation
from giantstep.numeric.one_step_network import OneStepSetup, first_layers, sample_stream
from giantstep.numeric.one_step_readout import ReadoutSetup, fit_ridge, measure_risks
from giantstep.numeric.one_step_simulation import RunOptions, simulate_risks, simulate_spectra
from giantstep.numeric.one_step_spectra import layer_spectra, singular_spectrum

QUIET = {"progress": False}


def slope(z):
    return 1 - np.tanh(z) ** 2


SETUP = OneStepSetup(
    np.tanh, slope, np.sin, dimension=24, width=36, step_samples=60, step_size=3.0,
    noise_variance=0.2, linear=0.6057055096021588, residual=0.02741532603543026,
    teacher_linear=0.6065306597126334, teacher_residual=0.06445291721025133,
)  # fmt: skip
READOUT = ReadoutSetup(50, [0.0, 0.01, 0.5], test_samples=700)


def drawn(setup, seed, purpose, count, noisy=True):
    """Samples as whole arrays."""
    parts = [
        (x.copy(), y) for x, y in sample_stream(setup, seed).blocks(purpose, count, noisy=noisy)
    ]
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


def step_by_hand(setup, w, a, x, y):
    """The step as printed: W + η √N G with G of half the squared loss."""
    n, width = len(y), w.shape[1]
    residual = y - np.tanh(x @ w) @ a / math.sqrt(width)
    inner = np.outer(residual, a) / math.sqrt(width) * slope(x @ w)
    return w + setup.step_size * math.sqrt(width) * x.T @ inner / n


# ------------------------------------------------------------------ the first layer


@pytest.mark.parametrize("fresh", [False, True])
def test_steps_are_those_of_the_full_gradient(fresh):
    setup = replace(SETUP, steps=3, fresh=fresh)
    layers = first_layers(setup, 5, record=[0, 1, 2, 3])
    for step in range(3):
        x, y = drawn(setup, 5, 5 + (step if fresh else 0), 60)
        expected = step_by_hand(setup, layers.weights[step], layers.readout, x, y)
        np.testing.assert_allclose(layers.weights[step + 1], expected, rtol=0, atol=1e-13)
        np.testing.assert_allclose(layers.label_moments[step], x.T @ y / 60, rtol=0, atol=1e-14)


def test_the_step_descends_half_the_squared_loss():
    setup = replace(SETUP, step_size=1e-6)
    layers = first_layers(setup, 2)
    x, y = drawn(setup, 2, 5, 60)

    def loss(w):
        output = np.tanh(x @ w) @ layers.readout / 6
        return np.mean((y - output) ** 2) / 2

    # W + η √N G with G = -∇ loss: the loss falls by |ΔW|²/(η √N).
    moved = layers.weights[1] - layers.weights[0]
    fall = loss(layers.weights[0]) - loss(layers.weights[1])
    assert fall == pytest.approx(np.sum(moved**2) / (1e-6 * 6), rel=1e-4)


def test_rank_one_steps_add_the_same_spike():
    setup = replace(SETUP, layer="rank one", steps=3)
    layers = first_layers(setup, 0)
    x, y = drawn(setup, 0, 5, 60)
    spike = 3 * setup.step_size * setup.linear * np.outer(x.T @ y / 60, layers.readout)
    np.testing.assert_allclose(layers.weights[3] - layers.weights[0], spike, rtol=0, atol=1e-13)


def test_given_spikes_have_the_given_sizes():
    setup = replace(SETUP, layer="given", spike=(0.8, 0.6))
    layers = first_layers(setup, 0)
    moved = layers.weights[1] - layers.weights[0]
    values = np.linalg.svd(moved, compute_uv=False)
    assert values[0] == pytest.approx(1.0, abs=1e-14) and values[1] < 1e-14
    assert np.linalg.norm(moved[0]) == pytest.approx(0.8, abs=1e-14)


def test_no_step_leaves_the_initial_layer():
    still = first_layers(replace(SETUP, step_size=0.0), 3)
    np.testing.assert_array_equal(still.weights[0], still.weights[1])
    none = first_layers(replace(SETUP, steps=0), 3)
    assert list(none.weights) == [0] and none.label_moments.shape == (0, 24)
    np.testing.assert_array_equal(none.weights[0], still.weights[0])


def test_initial_variances():
    layers = first_layers(replace(SETUP, dimension=100, width=400, steps=0), 1)
    w = layers.weights[0]
    assert abs(100 * np.mean(w**2) - 1) < 4 * math.sqrt(2 / w.size)
    assert abs(layers.readout @ layers.readout - 1) < 4 * math.sqrt(2 / 400)


def test_recorded_layers_do_not_change_each_other():
    setup = replace(SETUP, steps=4)
    every = first_layers(setup, 8, record=range(5))
    one = first_layers(setup, 8, record=[2])
    assert list(one.weights) == [2]
    np.testing.assert_array_equal(every.weights[2], one.weights[2])
    assert not np.array_equal(every.weights[2], every.weights[3])


def test_overflow_is_reported_as_such():
    setup = replace(SETUP, student=lambda z: z**3, student_derivative=lambda z: 3 * z**2, steps=9,
                    step_size=1e60)  # fmt: skip
    with pytest.raises(ParameterError, match=r"too large|not finite"):
        first_layers(setup, 0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"dimension": 1}, "dimension must be >= 2"),
        ({"dimension": 2.5}, "dimension must be a whole number"),
        ({"width": 0}, "width"),
        ({"step_samples": 0}, "step_samples"),
        ({"step_size": -1.0}, "step_size"),
        ({"step_size": math.inf}, "step_size"),
        ({"noise_variance": -0.1}, "noise_variance"),
        ({"noise_variance": math.nan}, "noise_variance"),
        ({"linear": math.inf}, "linear"),
        ({"steps": -1}, "steps"),
        ({"layer": "truncated"}, "layer must be one of"),
        ({"spike": (1.0,)}, "spike must be two numbers"),
        ({"spike": 1.0}, "spike must be two numbers"),
        ({"student": 3}, "student must be a function"),
    ],
)
def test_wrong_setups(wrong, said):
    with pytest.raises(ParameterError, match=said):
        replace(SETUP, **wrong)


@pytest.mark.parametrize(
    "student", [lambda z: np.full(z.shape, np.nan), lambda z: z[:1], lambda z: z.astype(complex)]
)
def test_wrong_functions(student):
    with pytest.raises(ParameterError, match="student"):
        first_layers(replace(SETUP, student=student), 0)


@pytest.mark.parametrize("record", [[], [2], [-1], [0.5]])
def test_wrong_records(record):
    with pytest.raises(ParameterError, match="record"):
        first_layers(SETUP, 0, record=record)


# ------------------------------------------------------------------ readouts


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_ridge_regression_solves_the_normal_equations(n, width, seed):
    generator = np.random.default_rng(seed)
    features, labels = generator.standard_normal((n, width)), generator.standard_normal(n)
    ridges = [0.02, 3.0]
    fit = fit_ridge(features.copy(), labels, ridges)
    phi = features / math.sqrt(width)
    for k, ridge in enumerate(ridges):
        w = np.linalg.solve(phi.T @ phi + ridge * np.eye(width), phi.T @ labels)
        np.testing.assert_allclose(fit.coefficients[:, k], w, rtol=0, atol=1e-9)
        training = np.mean((labels - phi @ w) ** 2)
        assert fit.training_error[k] == pytest.approx(training, rel=1e-7, abs=1e-14)
        assert fit.objective[k] == pytest.approx(training + ridge * w @ w / n, rel=1e-7)


@pytest.mark.parametrize(("n", "width"), [(10, 25), (25, 10), (12, 12)])
def test_no_penalty_gives_the_solution_of_least_norm(n, width):
    generator = np.random.default_rng(1)
    features, labels = generator.standard_normal((n, width)), generator.standard_normal(n)
    features[-1] = features[0]  # A rank that is not full.
    labels[-1] = labels[0]
    fit = fit_ridge(features.copy(), labels, [0.0])
    least = np.linalg.lstsq(features / math.sqrt(width), labels, rcond=None)[0]
    np.testing.assert_allclose(fit.coefficients[:, 0], least, rtol=1e-9, atol=1e-10)


def test_network_risks_by_hand():
    layers = first_layers(SETUP, 4)
    found = measure_risks(SETUP, list(layers.weights.values()), READOUT, 4)
    x, y = drawn(SETUP, 4, 1, 50)
    fresh, target = drawn(SETUP, 4, 2, 700, noisy=False)
    np.testing.assert_array_equal(target, np.sin(fresh[:, 0]))
    for row, w in enumerate(layers.weights.values()):
        phi, seen = np.tanh(x @ w) / 6, np.tanh(fresh @ w) / 6
        for column, ridge in ((1, 0.01), (2, 0.5)):
            solution = np.linalg.solve(phi.T @ phi + ridge * np.eye(36), phi.T @ y)
            assert found["training_error"][row, column] == pytest.approx(
                np.mean((y - phi @ solution) ** 2), rel=1e-9
            )
            assert found["risk"][row, column] == pytest.approx(
                np.mean((target - seen @ solution) ** 2), rel=1e-9
            )


def test_noise_of_the_labels_has_the_variance_asked_for():
    _, clean = drawn(SETUP, 0, 1, 20_000, noisy=False)
    _, noisy = drawn(SETUP, 0, 1, 20_000)
    assert np.var(noisy - clean) == pytest.approx(0.2, rel=4 * math.sqrt(2 / 20_000))


@pytest.mark.parametrize("labels", ["teacher", "gaussian"])
def test_population_risk_of_gaussian_features_is_that_of_samples(labels):
    readout = ReadoutSetup(50, [0.1], "gaussian", labels)
    layers = first_layers(SETUP, 4)
    w = layers.weights[1]
    risk = measure_risks(SETUP, [w], readout, 4)["risk"][0, 0]
    # The same features and labels again, by the module's own draw, then fresh ones from here.
    from giantstep.numeric.one_step_readout import readout_features

    features, y = readout_features(SETUP, w, readout, 4)
    b = fit_ridge(features, y, [0.1]).coefficients[:, 0] / 6
    generator = np.random.default_rng(0)
    x, z = generator.standard_normal((40_000, 24)), generator.standard_normal((40_000, 36))
    target = np.sin(x[:, 0])
    if labels == "gaussian":
        target = SETUP.teacher_linear * x[:, 0] + math.sqrt(
            SETUP.teacher_residual
        ) * generator.standard_normal(40_000)
    errors = (target - (SETUP.linear * x @ w + math.sqrt(SETUP.residual) * z) @ b) ** 2
    assert abs(errors.mean() - risk) < 4 * errors.std() / 200


def test_gaussian_features_have_the_covariance_of_their_layer():
    from giantstep.numeric.one_step_readout import readout_features

    setup = replace(SETUP, dimension=4, width=3, step_samples=10, residual=0.5)
    w = first_layers(setup, 0).weights[1]
    readout = ReadoutSetup(40_000, [0.1], "gaussian", "gaussian")
    features, y = readout_features(setup, w, readout, 0)
    expected = setup.linear**2 * w.T @ w + 0.5 * np.eye(3)
    scale = 4 * np.sqrt(np.outer(np.diag(expected), np.diag(expected)) * 2 / 40_000)
    assert np.all(np.abs(features.T @ features / 40_000 - expected) < scale)
    square = setup.teacher_linear**2 + setup.teacher_residual + 0.2
    assert np.mean(y**2) == pytest.approx(square, rel=4 * math.sqrt(2 / 40_000))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"samples": 0}, "samples"),
        ({"ridges": []}, "ridge must hold"),
        ({"ridges": [-1.0]}, "ridge must be >= 0"),
        ({"ridges": [math.nan]}, "ridge must be a number"),
        ({"features": "ntk"}, "features must be one of"),
        ({"labels": "random"}, "labels must be one of"),
        ({"labels": "gaussian"}, "use features='gaussian'"),
        ({"test_samples": 0}, "test_samples"),
    ],
)
def test_wrong_readouts(wrong, said):
    with pytest.raises(ParameterError, match=said):
        replace(READOUT, **wrong)


# ------------------------------------------------------------------ spectra


@pytest.mark.parametrize("shape", [(7, 11), (11, 7), (5, 5)])
def test_singular_spectrum(shape):
    matrix = np.random.default_rng(0).standard_normal(shape)
    u, s, vh = np.linalg.svd(matrix, full_matrices=False)
    values, left, right = singular_spectrum(matrix)
    np.testing.assert_allclose(values, s, rtol=1e-7)
    assert abs(left @ u[:, 0]) == pytest.approx(1, abs=1e-12)
    assert abs(right @ vh[0]) == pytest.approx(1, abs=1e-12)
    assert left @ matrix @ right == pytest.approx(s[0], rel=1e-12)


def test_a_matrix_of_zeros_has_a_spectrum():
    values, left, right = singular_spectrum(np.zeros((3, 4)))
    assert not values.any() and np.isfinite(left).all() and np.isfinite(right).all()


def test_spectra_by_hand():
    layers = first_layers(SETUP, 6)
    found = layer_spectra(SETUP, layers, 6, samples=50)
    x, y = drawn(SETUP, 6, 1, 50)
    for row, w in enumerate(layers.weights.values()):
        u, s, vh = np.linalg.svd(w, full_matrices=False)
        np.testing.assert_allclose(found["singular_values"][row], s, rtol=1e-7)
        assert found["teacher_alignment"][row] == pytest.approx(u[0, 0] ** 2, abs=1e-9)
        spike, a = layers.label_moments[0], layers.readout
        assert found["spike_alignment"][row] == pytest.approx(
            (u[:, 0] @ spike) ** 2 / (spike @ spike), abs=1e-9
        )
        assert found["readout_alignment"][row] == pytest.approx(
            (vh[0] @ a) ** 2 / (a @ a), abs=1e-9
        )
        phi = np.tanh(x @ w) / 6
        values, vectors = np.linalg.eigh(phi @ phi.T)
        np.testing.assert_allclose(found["kernel_eigenvalues"][row], values[::-1], atol=1e-13)
        label = (vectors[:, -1] @ y) ** 2 / (y @ y)
        assert found["label_alignment"][row] == pytest.approx(label, abs=1e-9)
    linearised = found["linearised_eigenvalues"]
    assert linearised.shape == (2, 50) and not linearised[:, 36:].any()


@pytest.mark.parametrize("matrices", ["weights", [], ["gram"]])
def test_wrong_matrices(matrices):
    with pytest.raises(ParameterError, match="matrices must be some of"):
        simulate_spectra(SETUP, 30, matrices=matrices)


# ------------------------------------------------------------------ many networks


def test_numbers_do_not_depend_on_workers_or_processes():
    one = simulate_risks(SETUP, READOUT, RunOptions(4, 7, workers=1, **QUIET))
    two = simulate_risks(SETUP, READOUT, RunOptions(4, 7, workers=3, **QUIET))
    more = simulate_risks(SETUP, READOUT, RunOptions(5, 7, **QUIET))
    # Only functions of modules can be sent.
    with ProcessPoolExecutor(1) as executor:
        sent = simulate_risks(SETUP, READOUT, RunOptions(4, 7, executor=executor, **QUIET))
    for name, values in one.values.items():
        np.testing.assert_array_equal(values, two.values[name])
        np.testing.assert_array_equal(values, sent.values[name])
        np.testing.assert_array_equal(values, more.values[name][:4])
    other = simulate_risks(SETUP, READOUT, RunOptions(4, 8, **QUIET))
    assert not np.array_equal(one.values["risk"], other.values["risk"])


def test_readouts_of_one_network_share_their_samples():
    still = simulate_risks(replace(SETUP, step_size=0.0), READOUT, RunOptions(3, **QUIET))
    for name in ("risk", "training_error", "objective"):
        np.testing.assert_array_equal(still.values[name][:, 0], still.values[name][:, 1])


def test_differences_of_layers_have_little_scatter():
    found = simulate_risks(SETUP, READOUT, RunOptions(30, **QUIET)).values["risk"][:, :, 2]
    apart = found[:, 0].std() ** 2 + found[:, 1].std() ** 2
    assert (found[:, 0] - found[:, 1]).std() ** 2 < 0.7 * apart


def test_what_is_stored_is_not_computed_again(tmp_path, monkeypatch):
    options = RunOptions(3, store=tmp_path, description="tanh, sin", **QUIET)
    first = simulate_risks(SETUP, READOUT, options)
    assert len(list(tmp_path.iterdir())) == 3

    def fail(*_, **__):
        raise AssertionError("computed again")

    with monkeypatch.context() as patch:
        patch.setattr(one_step_simulation, "first_layers", fail)
        again = simulate_risks(SETUP, READOUT, options)
        np.testing.assert_array_equal(first.values["risk"], again.values["risk"])
        with pytest.raises(AssertionError, match="computed again"):
            simulate_risks(replace(SETUP, noise_variance=0.3), READOUT, options)
    for other in (
        simulate_risks(SETUP, replace(READOUT, ridges=[0.0, 0.01, 0.6]), options),
        simulate_spectra(SETUP, 50, options, matrices=["weights"]),
    ):
        assert other.completed == (0, 1, 2)


def test_an_interrupted_run_resumes(tmp_path, monkeypatch):
    options = RunOptions(3, store=tmp_path, description="x", workers=1, **QUIET)
    whole = simulate_risks(SETUP, READOUT, RunOptions(3, **QUIET))
    original = one_step_simulation.measure_risks
    count = iter(range(9))

    def interrupted(*arguments, **named):
        if next(count) == 2:
            raise KeyboardInterrupt
        return original(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(one_step_simulation, "measure_risks", interrupted)
        part = simulate_risks(SETUP, READOUT, options)
    assert part.interrupted and len(part.completed) == 2
    resumed = simulate_risks(SETUP, READOUT, options)
    assert not resumed.interrupted
    np.testing.assert_array_equal(resumed.values["risk"], whole.values["risk"])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"seeds": 0}, "seeds must be >= 1"),
        ({"seed": -1}, "seed must be >= 0"),
        ({"workers": 0}, "workers"),
        ({"store": 3}, "store must be a path"),
        ({"store": "folder"}, "store needs a description"),
        ({"workers": 1, "executor": object()}, "exclude each other"),
    ],
)
def test_wrong_options(wrong, said):
    with pytest.raises(ParameterError, match=said):
        RunOptions(**wrong)


def test_what_does_not_fit_into_memory_is_refused():
    huge = replace(SETUP, dimension=10**6, width=10**6)
    with pytest.raises(ParameterError, match="GB of memory"):
        simulate_risks(huge, READOUT, RunOptions(1, **QUIET))
    with pytest.raises(ParameterError, match="GB of memory"):
        simulate_spectra(SETUP, 10**9, RunOptions(1, **QUIET))


# ------------------------------------------------------------------ known limits


def test_the_spike_of_the_limit():
    # tanh/tanh, Δ = 0.09, n0/d = 4, N/d = 2, η = 4; 40-digit arithmetic: θ1 = 1.692428837990565,
    # s_1 = 2.561749891375818, squared overlaps .4214487954188295 and .4452976568869229.
    mu, rest = 0.6057055096021588, 0.02741532603543026
    setup = OneStepSetup(
        np.tanh, slope, np.tanh, dimension=200, width=400, step_samples=800, step_size=4.0,
        noise_variance=0.09, linear=mu, residual=rest, layer="rank one",
    )  # fmt: skip
    found = simulate_spectra(setup, 8, RunOptions(24, **QUIET), matrices=["weights"]).values

    def apart(values, limit):
        return abs(values.mean() - limit) / (values.std(ddof=1) / math.sqrt(len(values)))

    assert apart(mu * 4 * found["spike_length"], 1.692428837990565) < 4
    assert apart(found["singular_values"][:, 1, 0], 2.561749891375818) < 4
    assert apart(found["teacher_alignment"][:, 1], 0.4214487954188295) < 4
    assert apart(found["readout_alignment"][:, 1], 0.4452976568869229) < 4
