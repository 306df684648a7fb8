"""Algorithm 1 of Damian, Lee and Soltanolkotabi against the same steps written out plainly."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from giantstep.derivations.first_gradient.training import preprocessed_networks
from giantstep.errors import ParameterError
from giantstep.numeric.networks.network import Network
from giantstep.numeric.networks.readout import RIDGE_EXPONENTS, RidgeReadout
from giantstep.numeric.networks.run import simulate
from giantstep.numeric.networks.samples import INITIAL, ROWS, STEP, TEST
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.targets.target import target

SMALL = {"dimension": 12, "samples": 5000, "width": 40, "noise_variance": 0.2, "ridge": 0.7,
         "n_test": 3000}  # fmt: skip


def planned(student="relu", text="1 + 2*x1 + x1*x2", **options):
    return preprocessed_networks(activation(student), target(text), **(SMALL | options))


def train(seeds=1, **options):
    return planned(**options).train(seeds=seeds, seed=9, progress=False)


def drawn(samples, purpose, count):
    blocks = [(b.inputs.copy(), b.labels, b.target) for b in samples.blocks(purpose, count)]
    return tuple(map(np.concatenate, zip(*blocks, strict=True)))


def unit_rows(generator, shape):
    rows = generator.standard_normal(shape)
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def relu(u):
    return np.maximum(u, 0)


def written_out(network, index, samples, ridge, step_size):
    """The algorithm as published, with whole arrays and the gradient of all paired neurons."""
    stream = network.samples(np.random.SeedSequence(9, spawn_key=(index,)))
    n = samples if ridge else samples - round(0.2 * samples)
    m, d = network.width, network.dimension
    x, y, _ = drawn(stream, STEP, samples)
    alpha, beta = y[:n].mean(), (y[:n, None] * x[:n]).mean(axis=0)
    residual = y - alpha - x @ beta
    w0 = np.tile(unit_rows(stream.generator(ROWS), (m // 2, d)), (2, 1))
    a0 = np.repeat([1.0, -1.0], m // 2)
    assert abs(relu(x @ w0.T) @ a0).max() < 1e-12  # no output at initialisation
    # Gradient of (1/2n) sum (f - y)^2, and W1 = W0 - eta (gradient + W0/eta).
    slopes = np.heaviside(x[:n] @ w0.T, 0.5)
    gradient = -a0[:, None] * ((residual[:n, None] * slopes).T @ x[:n]) / n
    eta = step_size or math.sqrt(m / (gradient**2).sum())
    w1 = w0 - eta * (gradient + w0 / eta)
    x_test, _, y_test = drawn(stream, TEST, 3000)

    def fitted(w, b):
        """Error and penalty."""
        phi = relu(x @ w.T + b)
        gram, moment = phi[:n].T @ phi[:n], phi[:n].T @ residual[:n]
        grid = [m * ridge] if ridge else np.trace(gram) / m * 10.0**RIDGE_EXPONENTS
        readouts = [np.linalg.solve(gram + penalty * np.eye(m), moment) for penalty in grid]
        held = [((residual[n:] - phi[n:] @ u) ** 2).sum() for u in readouts]
        best = int(np.argmin(held))
        prediction = alpha + x_test @ beta + relu(x_test @ w.T + b) @ readouts[best]
        return ((prediction - y_test) ** 2).mean(), grid[best] / m

    error, penalty = fitted(w1, stream.generator(INITIAL, 1).standard_normal(m))
    random = unit_rows(stream.generator(ROWS), (m, d))
    generator = stream.generator(INITIAL)
    generator.choice([-1.0, 1.0], m)  # readouts that no step uses
    random_error, random_penalty = fitted(random, generator.standard_normal(m))
    cosines = np.linalg.svd(np.linalg.svd(w1)[2][:2, :2])[1]
    return {
        "relevant_share": (gradient[:, :2] ** 2).sum() / (gradient**2).sum(),
        "step_size": eta,
        "ridge": penalty,
        "random_features_ridge": random_penalty,
        "test_error": error,
        "random_features_error": random_error,
        "linear_error": ((alpha + x_test @ beta - y_test) ** 2).mean(),
        "principal_angles": np.sort(np.arccos(np.minimum(cosines, 1))),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"ridge": None}, {"step_size": 3.0}, {"ridge": None, "samples": 203}]
)
def test_the_algorithm_is_the_published_one(options):
    plan = planned(**options)
    found = plan.train(seeds=2, seed=9, progress=False)
    asked = SMALL | {"step_size": None} | options
    for index in (0, 1):
        expected = written_out(
            plan.network, index, asked["samples"], asked["ridge"], asked["step_size"]
        )
        for name, value in expected.items():
            # An arc cosine of a number near one loses digits.
            rtol = 1e-9 if name == "principal_angles" else 1e-12
            assert_allclose(found[name][index], value, rtol=rtol, err_msg=name)


def test_test_samples_do_not_choose_the_ridge():
    assert_array_equal(train(ridge=None)["ridge"], train(ridge=None, n_test=17)["ridge"])


def test_the_gradient_turns_towards_the_relevant_space_with_more_samples():
    shares = [train(samples=n, seeds=4).mean("relevant_share") for n in (300, 3000, 30_000)]
    assert shares[0] < shares[1] < shares[2] and shares[2] > 0.9


def test_a_wide_target_space_has_an_angle_for_each_direction():
    # One pair of neurons finds at most one of two directions.
    angles = train(width=2)["principal_angles"]
    assert angles.shape == (1, 2)
    assert angles[0, 1] == pytest.approx(math.pi / 2)


def test_the_target_may_see_all_dimensions():
    found = train(dimension=2)
    assert found["relevant_share"][0] == pytest.approx(1)
    assert found["principal_angles"].max() < 1e-6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dimension": 1}, "dimension must be at least 2, the number of the teacher's directions"),
        ({"samples": 1}, "samples must be >= 2, got 1"),
        ({"samples": 9, "ridge": None}, "samples=9 are too few to hold out a fifth\n  give a rid"),
        ({"ridge": 0}, "ridge must be positive and finite, got 0"),
        ({"step_size": math.inf}, "step_size must be positive and finite, got inf"),
        ({"n_test": 0}, "n_test must be >= 1, got 0"),
    ],
)
def test_bad_options_are_refused_by_name(options, message):
    with pytest.raises(ParameterError, match=message):
        planned(**options)


@pytest.mark.parametrize("step_size", [None, 1.0])
def test_a_gradient_that_vanishes_is_refused(step_size):
    found = planned(step_size=step_size)
    network = replace(found.network, student_derivative=lambda u: 0.0)
    with pytest.raises(ParameterError, match="the gradient vanishes on all samples"):
        replace(found, network=network).train(seeds=1, progress=False)


def test_any_ridge_is_solved_where_the_normal_equations_are_singular():
    assert np.isfinite(train(ridge=1e-300, samples=20)["test_error"]).all()


def test_the_linear_part_of_labels_is_measured_of_any_network():
    network = Network(
        student=np.tanh, teacher=lambda x: 1 + x, dimension=8, width=4, step_samples=50
    )
    readout = RidgeReadout(20, 1.0, test_samples=2000)
    found = simulate(network, "linear_part", readout=readout, seeds=2)
    # The mean and each of eight slopes have the variance E y² x²/n or less, some 6/50.
    assert np.all((found["linear_error"] > 0) & (found["linear_error"] < 9 * 6 / 50))
