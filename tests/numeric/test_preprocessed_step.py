"""Algorithm 1 of Damian, Lee and Soltanolkotabi against the same steps written out plainly."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from giantstep.errors import ParameterError
from giantstep.numeric import preprocessed_step
from giantstep.numeric.preprocessed_step import PreprocessedSetup, train_preprocessed
from giantstep.numeric.sample_stream import SampleStream


def relu(u):
    return np.maximum(u, 0)


def step(u):
    return np.heaviside(u, 0.5)


def target(x):
    return 1 + 2 * x[:, 0] + x[:, 0] * x[:, 1]


SMALL = PreprocessedSetup(
    relu, step, target, variables=2, dimension=12, samples=5000, width=40, noise_variance=0.2,
    ridge=0.7,
)  # fmt: skip


def changed(**values):
    return dataclasses.replace(SMALL, **values)


def train(setup=SMALL, **options):
    options = {"seeds": 1, "seed": 9, "n_test": 3000, "progress": False} | options
    return train_preprocessed(setup, **options)


def everything(stream, purpose, count, **options):
    found = [(x.copy(), y) for x, y in stream.blocks(purpose, count, **options)]
    return np.vstack([x for x, _ in found]), np.concatenate([y for _, y in found])


def unit_rows(generator, shape):
    rows = generator.standard_normal(shape)
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def written_out(setup, index, n_test, seed=9):
    """The algorithm as published, with whole arrays and the gradient of all paired neurons."""
    child = np.random.SeedSequence(seed, spawn_key=(index,))
    stream = SampleStream(setup.dimension, target, 2, setup.noise_variance, child)
    x, y = everything(stream, 1, setup.samples)
    alpha, beta = y.mean(), (y[:, None] * x).mean(axis=0)
    residual = y - alpha - x @ beta
    m = setup.width
    half = unit_rows(stream.generator(0, 0), (m // 2, setup.dimension))
    w0, a0 = np.repeat(half, 2, axis=0), np.tile([1.0, -1.0], m // 2)
    assert abs(relu(x @ w0.T) @ a0).max() < 1e-12  # no output at initialisation
    # Gradient of (1/2n) sum (f - y)^2, and W1 = W0 - eta (gradient + W0/eta).
    gradient = -a0[:, None] * ((residual[:, None] * step(x @ w0.T)).T @ x) / setup.samples
    share = (gradient[:, :2] ** 2).sum() / (gradient**2).sum()
    eta = math.sqrt(m / (gradient**2).sum())
    w1 = w0 - eta * (gradient + w0 / eta)
    x_test, y_test = everything(stream, 2, n_test, noisy=False)

    def risk(w, b):
        phi = relu(x @ w.T + b) / math.sqrt(m)
        a = np.linalg.solve(phi.T @ phi + setup.ridge * np.eye(m), phi.T @ residual)
        prediction = alpha + x_test @ beta + relu(x_test @ w.T + b) @ a / math.sqrt(m)
        return ((prediction - y_test) ** 2).mean()

    random = unit_rows(stream.generator(3, 0), (m, setup.dimension))
    span = np.linalg.svd(w1)[2][:2]
    cosines = np.linalg.svd(span[:, :2])[1]
    return {
        "relevant_share": share,
        "step_size": eta,
        "test_error": risk(w1, stream.generator(0, 1).standard_normal(m)),
        "random_features_error": risk(random, stream.generator(3, 1).standard_normal(m)),
        "linear_error": ((alpha + x_test @ beta - y_test) ** 2).mean(),
        "principal_angles": np.sort(np.arccos(np.minimum(cosines, 1))),
    }


def test_the_algorithm_is_the_published_one():
    found = train(seeds=2)
    for index in (0, 1):
        for name, value in written_out(SMALL, index, 3000).items():
            assert_allclose(getattr(found, name)[index], value, rtol=1e-8, err_msg=name)


def test_runs_are_reproducible_and_more_networks_extend_them():
    first, second = train(seeds=2), train(seeds=3)
    assert_array_equal(first.test_error, second.test_error[:2])
    assert len(set(second.test_error)) == 3


def test_a_step_size_of_its_own_scales_the_rows():
    # relu is positively homogeneous: only the size against the biases changes the error.
    found = train(changed(step_size=3.0))
    assert_array_equal(found.step_size, 3.0)
    assert_array_equal(found.relevant_share, train().relevant_share)
    assert found.test_error != train().test_error


def test_held_out_samples_choose_the_ridge_and_nothing_else(monkeypatch):
    setup = changed(ridge=None)
    assert setup.fitted == 4000
    found = train(setup)
    grid = 4000 / 40 * 10.0**preprocessed_step.RIDGE_EXPONENTS
    assert found.ridge[0] in grid and found.random_features_ridge[0] in grid
    # The step is that of the first 4000 samples, and the ridge minimises the held-out error.
    same = train(changed(samples=4000, ridge=float(found.ridge[0])))
    assert_array_equal(found.relevant_share, same.relevant_share)
    assert_allclose(found.test_error, same.test_error, rtol=1e-9)
    # Test samples are not looked at: other ones leave the choice as it is.
    assert_array_equal(train(setup, n_test=17).ridge, found.ridge)


def test_the_chosen_ridge_is_the_best_on_the_held_out_samples():
    setup = changed(ridge=None)
    child = np.random.SeedSequence(9, spawn_key=(0,))
    stream = SampleStream(12, target, 2, 0.2, child)
    x, y = everything(stream, 1, 5000)
    fit, held = slice(4000), slice(4000, None)
    alpha, beta = y[fit].mean(), (y[fit, None] * x[fit]).mean(axis=0)
    rows, biases = unit_rows(stream.generator(3, 0), (40, 12)), stream.generator(3, 1)
    phi = relu(x @ rows.T + biases.standard_normal(40)) / math.sqrt(40)
    residual = y - alpha - x @ beta
    penalties = 100 * 10.0**preprocessed_step.RIDGE_EXPONENTS
    gram = phi[fit].T @ phi[fit]
    moment = phi[fit].T @ residual[fit]
    errors = [
        ((residual[held] - phi[held] @ np.linalg.solve(gram + p * np.eye(40), moment)) ** 2).mean()
        for p in penalties
    ]
    assert train(setup).random_features_ridge[0] == penalties[np.argmin(errors)]


def test_the_gradient_turns_towards_the_relevant_space_with_more_samples():
    shares = [
        train(changed(samples=n), seeds=4).mean("relevant_share") for n in (300, 3000, 30_000)
    ]
    assert shares[0] < shares[1] < shares[2] and shares[2] > 0.9


def test_a_wide_target_space_has_an_angle_for_each_direction():
    # One pair of neurons finds at most one of two directions.
    angles = train(changed(width=2)).principal_angles
    assert angles.shape == (1, 2)
    assert angles[0, 1] == pytest.approx(math.pi / 2)


def test_means_have_standard_errors_from_two_networks_on():
    found = train(seeds=3)
    assert_allclose(found.mean(), found.test_error.mean())
    assert_allclose(found.standard_error(), found.test_error.std(ddof=1) / math.sqrt(3))
    assert found.standard_error("principal_angles").shape == (2,)
    assert repr(found).startswith("PreprocessedResult(3 networks, test error ")
    with pytest.raises(ParameterError, match="one network has no standard error"):
        train().standard_error()
    with pytest.raises(ParameterError, match=r"no quantity 'risk'\n  known: relevant_share"):
        found.mean("risk")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"width": 41}, "width must be even, neurons come in pairs; got 41"),
        ({"width": 0}, "width must be >= 2, got 0"),
        ({"variables": 13}, "variables must be at most the dimension 12, got 13"),
        ({"samples": 1}, "samples must be >= 2, got 1"),
        ({"samples": True}, "samples must be a whole number, got True"),
        (
            {"samples": 9, "ridge": None},
            "samples=9 are too few to hold out a fifth\n  give a ridge",
        ),
        ({"ridge": 0}, "ridge must be positive and finite, got 0"),
        ({"step_size": math.inf}, "step_size must be positive and finite, got inf"),
        ({"noise_variance": -0.1}, "noise_variance must be >= 0 and finite, got -0.1"),
        ({"student": "relu"}, "student must be a function of an array, got 'relu'"),
    ],
)
def test_bad_setups_are_refused_by_name(values, message):
    with pytest.raises(ParameterError, match=message):
        changed(**values)


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(ParameterError, match="setup must be a PreprocessedSetup, not str"):
        train("relu")
    with pytest.raises(ParameterError, match="ridge is too small: the normal equations are singul"):
        train(changed(ridge=1e-300, samples=20))
    with pytest.raises(ParameterError, match="student is not finite at"):
        train(changed(student=lambda u: u * math.nan))
    with pytest.raises(ParameterError, match="the gradient vanishes on all samples"):
        train(changed(student_derivative=lambda u: 0.0))
