"""One gradient step in the common network, against a textbook recipe at the same draws."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import erf

from giantstep.errors import ParameterError
from giantstep.numeric.networks.convex import smooth_loss
from giantstep.numeric.networks.gradient import GradientParts
from giantstep.numeric.networks.network import Network, Training
from giantstep.numeric.networks.readout import (
    ConvexReadout,
    GaussianFeatures,
    RidgeReadout,
    TrainedNetwork,
)
from giantstep.numeric.networks.run import simulate
from giantstep.numeric.networks.samples import (
    LATER_STEPS,
    NONLINEAR,
    READOUT,
    RESIDUAL,
    STEP,
    TEST,
)
from giantstep.numeric.networks.spectra import KernelEigenvalues, singular_spectrum

QUIET = {"progress": False}
D, WIDTH, N0, N = 24, 36, 60, 50


def slope(z):
    return 1 - np.tanh(z) ** 2


NETWORK = Network(
    student=np.tanh, student_derivative=slope, teacher=np.sin, dimension=D, width=WIDTH,
    rows="gaussian", readout="gaussian", scaling="standard", noise_variance=0.2,
    step_samples=N0, step_size=3.0, steps=3, fresh=False, slope=0.6057055096021588,
)  # fmt: skip
LAW = GaussianFeatures(
    0.6057055096021588, 0.02741532603543026, 0.6065306597126334, 0.06445291721025133
)
PENALTIES = [0.01, 0.5]


def exact(rows):
    """Covariances that are any, to see that they are used."""
    return rows @ rows.T + np.eye(len(rows)), rows[:, 0], 0.7


def child(index, seed=7):
    return np.random.SeedSequence(seed, spawn_key=(index,))


def drawn(seed, purpose, count, network=NETWORK):
    """Inputs, targets and labels as whole arrays."""
    blocks = [
        (b.inputs.copy(), b.target, b.labels) for b in network.samples(seed).blocks(purpose, count)
    ]
    return tuple(np.concatenate(parts) for parts in zip(*blocks, strict=True))


def textbook(network, readout, seed):
    """The whole recipe of Ba et al.: (d, N) weights, a ~ N(0, 1/N), a row for each step."""
    start = Training(network, seed).layer
    w, a = start.rows.T.copy(), start.readout / math.sqrt(WIDTH)
    eta = network.step_size * WIDTH**network.exponent
    generator = network.samples(seed).generator
    rows = []
    for t in range(network.steps + 1):
        x, f, y = drawn(seed, READOUT, N)
        phi, law = np.tanh(x @ w), readout.gaussian
        if law is not None:
            z = generator(NONLINEAR, 0).standard_normal((N, WIDTH))
            phi = law.linear * x @ w + math.sqrt(law.residual) * z
            if law.labels:
                g = generator(RESIDUAL, 0).standard_normal((N, 1))[:, 0]
                y = y - f + law.teacher_linear * x[:, 0] + math.sqrt(law.teacher_residual) * g
        for penalty in readout.penalties:
            gram = phi.T @ phi / WIDTH + penalty * np.eye(WIDTH)
            v = np.linalg.solve(gram, phi.T @ y / math.sqrt(WIDTH))
            b = v / math.sqrt(WIDTH)
            training = np.mean((y - phi @ b) ** 2)
            if law is not None:
                beta = np.eye(D)[0] * law.teacher_linear - law.linear * w @ b
                risk = beta @ beta + law.residual * b @ b + law.teacher_residual
            elif readout.covariances is not None:
                covariance, cross, square = exact(w.T)
                risk = square - 2 * cross @ b + b @ covariance @ b
            else:
                fresh, target, _ = drawn(seed, TEST, readout.test_samples)
                risk = np.mean((target - np.tanh(fresh @ w) @ b) ** 2)
            rows.append([risk, training, training + penalty * v @ v / N])
        if t == network.steps:
            return w, np.array(rows).reshape(t + 1, len(readout.penalties), 3)
        x, _, y = drawn(seed, LATER_STEPS + t if network.fresh and t else STEP, N0)
        residual = y - np.tanh(x @ w) @ a / math.sqrt(WIDTH)
        if network.gradient == "full":
            w = w + eta / N0 * x.T @ (np.outer(residual, a) * slope(x @ w))
        elif network.gradient == "rank one":
            w = w + eta * network.slope / N0 * np.outer(x.T @ y, a)
        elif t == 0:
            u = np.eye(D)[0] * network.spike[0] + np.eye(D)[1] * network.spike[1]
            w = w + np.outer(u, a / np.linalg.norm(a))


@pytest.mark.parametrize(
    ("options", "readout"),
    [
        ({}, {}),
        ({"fresh": True, "exponent": 0.25}, {}),
        ({"gradient": "rank one"}, {"covariances": exact}),
        ({"gradient": "given", "spike": (0.8, 0.6)}, {"gaussian": LAW}),
        ({"exponent": 0.5, "steps": 1}, {"gaussian": replace(LAW, labels=True)}),
        ({"steps": 0}, {}),
    ],
    ids=["reused batch", "fresh batches", "rank one", "given spike", "large step", "no step"],
)
def test_networks_are_those_of_the_textbook(options, readout):
    network = replace(NETWORK, **options)
    how = RidgeReadout(N, PENALTIES, test_samples=700, **readout)
    record = tuple(range(network.steps + 1))
    found = simulate(network, {"errors": record}, readout=how, seeds=1, seed=7, **QUIET)
    weights, expected = textbook(network, how, child(0))
    assert_allclose(network.train(child(0)).rows.T, weights, rtol=0, atol=1e-12)
    assert_allclose(found["test_error"][0, :, 0], expected[..., 0], rtol=1e-12)
    assert_allclose(found["training_error"][0, :, 0], expected[..., 1], rtol=1e-12)
    assert_allclose(2 * found["objective"][0, :, 0], expected[..., 2], rtol=1e-12)


def test_initial_variances():
    layer = Training(replace(NETWORK, dimension=100, width=400), 1).layer
    assert abs(100 * np.mean(layer.rows**2) - 1) < 4 * math.sqrt(2 / layer.rows.size)
    assert abs(np.mean(layer.readout**2) - 1) < 4 * math.sqrt(2 / 400)


# ------------------------------------------------------------------ readouts


@pytest.mark.parametrize("labels", [False, True])
def test_gaussian_features_have_their_covariance_and_population_risk(labels):
    law = GaussianFeatures(0.6, 0.5, 0.61, 0.064, labels)
    network = replace(NETWORK, dimension=4, width=3, step_samples=10)
    count = 40_000
    trained = TrainedNetwork(Training(network, 0), RidgeReadout([N, count], 0.1, gaussian=law))
    features, y = trained.feature_matrix(count)
    rows = trained.layer.rows
    expected = 0.36 * rows @ rows.T + 0.5 * np.eye(3)
    scale = 4 * np.sqrt(np.outer(np.diag(expected), np.diag(expected)) * 2 / count)
    assert np.all(np.abs(features.T @ features / count - expected) < scale)
    # Samples beyond those of the fit are fresh; labels have noise of variance 0.2.
    b = trained.fit.coefficients[:, 0, 0]
    errors = (y[N:] - features[N:] @ b) ** 2 - 0.2
    risk = trained.test["test_error"][0, 0]
    assert abs(errors.mean() - risk) < 4 * errors.std() / math.sqrt(count - N)


def test_layers_of_one_network_share_the_samples_of_their_readouts():
    how, record = RidgeReadout(N, [0.5], test_samples=700), {"errors": (0, 1)}
    still = simulate(
        replace(NETWORK, step_size=0.0, steps=1), record, readout=how, seeds=3, **QUIET
    )
    for name in ("test_error", "training_error", "objective"):
        assert_array_equal(still[name][:, 0], still[name][:, 1])
    moved = simulate(replace(NETWORK, steps=1), record, readout=how, seeds=30, **QUIET)
    risk = moved["test_error"][:, :, 0, 0]
    apart = risk[:, 0].std() ** 2 + risk[:, 1].std() ** 2
    assert (risk[:, 0] - risk[:, 1]).std() ** 2 < 0.7 * apart


# ------------------------------------------------------------------ spectra


@pytest.mark.parametrize("shape", [(7, 11), (11, 7), (5, 5)])
def test_singular_spectrum(shape):
    matrix = np.random.default_rng(0).standard_normal(shape)
    u, s, vh = np.linalg.svd(matrix, full_matrices=False)
    values, left, right = singular_spectrum(matrix)
    assert_allclose(values, s, rtol=1e-7)
    assert abs(left @ u[:, 0]) == pytest.approx(1, abs=1e-12)
    assert abs(right @ vh[0]) == pytest.approx(1, abs=1e-12)
    assert left @ matrix @ right == pytest.approx(s[0], rel=1e-12)


def test_a_matrix_of_zeros_has_a_spectrum():
    values, left, right = singular_spectrum(np.zeros((3, 4)))
    assert not values.any() and np.isfinite(left).all() and np.isfinite(right).all()


def squared_cosine(u, v):
    return (u @ v) ** 2 / (u @ u) / (v @ v)


def test_spectra_by_hand():
    linearised = KernelEigenvalues(LAW)
    record = {"singular_values": (0, 2), "kernel_eigenvalues": (0, 2), linearised: (0, 2)}
    found = simulate(
        replace(NETWORK, steps=2, fresh=True), record, readout=RidgeReadout(N, 0.0), seeds=1,
        seed=7, **QUIET,
    )  # fmt: skip
    training = Training(replace(NETWORK, steps=2, fresh=True), child(0))
    x, _, y = drawn(child(0), READOUT, N)
    z = training.samples.generator(NONLINEAR, 0).standard_normal((N, WIDTH))
    for row in range(2):
        rows, a = training.layer.rows, training.layer.readout
        u, s, vh = np.linalg.svd(rows.T, full_matrices=False)
        assert_allclose(found["singular_values"][0, row], s, rtol=1e-7)
        expected = {
            "teacher_alignment": u[0, 0] ** 2,
            "spike_alignment": squared_cosine(u[:, 0], sum(training.label_moments))
            if row else 0.0,
            "readout_alignment": squared_cosine(vh[0], a),
        }  # fmt: skip
        for name, value in expected.items():
            assert found[name][0, row] == pytest.approx(value, abs=1e-9), name
        for names, phi in (
            (("kernel_eigenvalues", "label_alignment"), np.tanh(x @ rows.T)),
            (("linearised_eigenvalues", "linearised_label_alignment"),
             LAW.linear * x @ rows.T + math.sqrt(LAW.residual) * z),
        ):  # fmt: skip
            values, vectors = np.linalg.eigh(phi @ phi.T / WIDTH)
            assert_allclose(found[names[0]][0, row], values[::-1], atol=1e-12)
            assert not found[names[0]][0, row, WIDTH:].any()
            alignment = squared_cosine(vectors[:, -1], y)
            assert found[names[1]][0, row] == pytest.approx(alignment, abs=1e-9)
        training.step()
        training.step()


def test_linearised_kernels_are_those_of_a_ridge_readout():
    loss = smooth_loss(lambda y, x: (y - x) ** 2, lambda y, x: 2 * (x - y), name="square")
    with pytest.raises(ParameterError, match="need a RidgeReadout"):
        simulate(NETWORK, KernelEigenvalues(LAW), readout=ConvexReadout(N, 0.1, loss), **QUIET)
    with pytest.raises(ParameterError, match="give readout="):
        simulate(NETWORK, "kernel_eigenvalues", **QUIET)


# ------------------------------------------------------------------ parts of the gradient


def erf_slope(z):
    return 2 / math.sqrt(math.pi) * np.exp(-(z**2))


MU = 2 / math.sqrt(3 * math.pi)
FIRST = replace(NETWORK, student=erf, student_derivative=erf_slope, steps=1)


def test_parts_are_those_of_the_gradient_as_it_is_written():
    found = simulate(FIRST, {GradientParts(MU, [1.0]): 0}, seeds=1, seed=7, **QUIET)
    training = Training(FIRST, child(0))
    w, a = training.layer.rows.T.copy(), training.layer.readout / math.sqrt(WIDTH)
    x, _, y = drawn(child(0), STEP, N0)
    root = math.sqrt(WIDTH)
    f = erf(x @ w) @ a / root
    bulk = x.T @ (np.outer(y - f, a) * (erf_slope(x @ w) - MU)) / (N0 * root)
    spike = MU * np.outer(x.T @ y, a) / (N0 * root)
    output = -MU * np.outer(x.T @ f, a) / (N0 * root)
    assert_allclose(found["spike"], root * np.linalg.norm(spike, 2), rtol=1e-12)
    assert_allclose(found["bulk"], root * np.linalg.norm(bulk), rtol=1e-12)
    assert_allclose(found["bulk_operator_norm"], root * np.linalg.norm(bulk, 2), rtol=1e-9)
    assert_allclose(found["output"], WIDTH * np.linalg.norm(output, 2), rtol=1e-12)
    assert_allclose(found["alignment"], squared_cosine(x.T @ y, np.eye(D)[0]), rtol=1e-12)
    assert found["identity_error"][0] < 1e-14
    # They add up to the step.
    training.step()
    step = FIRST.step_size * root * (spike + bulk + output)
    assert_allclose(training.layer.rows.T - w, step, rtol=0, atol=1e-13)


def test_a_teacher_of_several_directions_and_one_without_a_slope():
    pair = replace(FIRST, teacher=lambda x: x[:, 0] * x[:, 1] + x[:, 1], directions=2)
    found = simulate(pair, GradientParts(MU, [0.0, 1.0]), seeds=1, seed=7, **QUIET)
    x, _, y = drawn(child(0), STEP, N0, pair)
    assert_allclose(found["alignment"], squared_cosine(x.T @ y, np.eye(D)[1]), rtol=1e-12)
    none = simulate(FIRST, GradientParts(MU, [0.0]), seeds=1, **QUIET)
    assert none["alignment"][0] == 0


@pytest.mark.parametrize(
    ("mean_derivative", "mean_slope", "said"),
    [
        (MU, [], "an entry for each of the teacher's 1 directions, got 0"),
        (MU, [1.0, 2.0], "an entry for each of the teacher's 1 directions, got 2"),
        (MU, [[1.0]], "mean_slope must be a vector of numbers"),
        (MU, "1", "mean_slope must be a vector of numbers"),
        (MU, [math.inf], "mean_slope must be finite"),
        ("1", [1.0], "mean_derivative must be a number, got '1'"),
        (math.inf, [1.0], "mean_derivative must be finite"),
    ],
)
def test_wrong_parts(mean_derivative, mean_slope, said):
    with pytest.raises(ParameterError, match=said):
        simulate(FIRST, GradientParts(mean_derivative, mean_slope), seeds=1, **QUIET)


def test_parts_need_a_derivative():
    network = replace(FIRST, student_derivative=None, steps=0)
    with pytest.raises(ParameterError, match="student_derivative is needed"):
        simulate(network, GradientParts(MU, [1.0]), seeds=1, **QUIET)
    network = replace(FIRST, loss_derivative=lambda y, x: x - y)
    with pytest.raises(ParameterError, match="square loss of the step"):
        simulate(network, GradientParts(MU, [1.0]), seeds=1, **QUIET)


# ------------------------------------------------------------------ many networks, refusals


def test_measurements_of_other_laws_have_files_of_their_own(tmp_path):
    options = {"readout": RidgeReadout(N, 0.0), "seeds": 2, "store": tmp_path, "shared": True,
               "description": "tanh on sin", **QUIET}  # fmt: skip
    first = simulate(NETWORK, KernelEigenvalues(LAW), **options)
    other = simulate(NETWORK, KernelEigenvalues(replace(LAW, residual=0.5)), **options)
    assert len(list(tmp_path.iterdir())) == 4
    again = simulate(NETWORK, KernelEigenvalues(LAW), **options)
    name = "linearised_eigenvalues"
    assert_array_equal(first[name], again[name])
    assert not np.array_equal(first[name], other[name])
    with pytest.raises(ParameterError, match="belongs to a run of networks with other parameters"):
        simulate(replace(NETWORK, step_size=2.0), "spike", **{**options, "shared": False})
    with pytest.raises(ParameterError, match="shared must be True or False"):
        simulate(NETWORK, "spike", **{**options, "shared": 1})


def test_a_shared_store_of_another_version_is_refused(tmp_path):
    np.savez(tmp_path / "0123456789abcdef01234567-00000.npz", key='{"streams_version": 1}')
    with pytest.raises(ParameterError, match="another version of giantstep"):
        simulate(NETWORK, "spike", seeds=1, store=tmp_path, shared=True, description="x", **QUIET)


def test_what_does_not_fit_into_memory_is_refused():
    for network in (
        replace(NETWORK, dimension=10**6, width=10**6), replace(NETWORK, steps=10**12)
    ):  # fmt: skip
        with pytest.raises(ParameterError, match="GB of memory"):
            simulate(network, "spike", seeds=1, **QUIET)
    with pytest.raises(ParameterError, match="GB of memory"):
        simulate(NETWORK, "kernel_eigenvalues", readout=RidgeReadout(10**9, 0.0), seeds=1, **QUIET)
