"""Gradients of single neurons against textbook recipes and known expectations."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from giantstep.errors import ParameterError
from giantstep.numeric.networks.network import Network
from giantstep.numeric.networks.neuron_gradients import GradientSlopes, label_gradient
from giantstep.numeric.networks.run import simulate
from giantstep.numeric.networks.samples import INITIAL, ROWS, STEP


def step(u):
    return np.heaviside(u, 0.5)


def product(x):
    return x[:, 0] * x[:, 1]


def neurons(weights, **options):
    rows = np.array(weights, dtype=float)
    options = {"step_samples": 50, "student_derivative": step, "directions": 2} | options
    return Network(
        student=np.abs, teacher=product, dimension=rows.shape[1], width=len(rows),
        rows=lambda *_: rows, **options,
    )  # fmt: skip


def sampled(weights, seed=0, **options):
    found = simulate(neurons(weights, **options), label_gradient, seeds=1, seed=seed)
    return found["gradient"][0], found["gradient_error"][0]


def drawn(network, seed, index=0):
    samples = network.samples(np.random.SeedSequence(seed, spawn_key=(index,)))
    blocks = [(b.inputs.copy(), b.labels) for b in samples.blocks(STEP, network.step_samples)]
    return samples, *map(np.concatenate, zip(*blocks, strict=True))


# ------------------------------------------------------------------ means over samples


@pytest.mark.parametrize("biases", ["none", "gaussian"])
def test_mean_and_standard_error_are_those_of_the_samples(biases):
    weights = np.array([[0.6, 0.0, 0.8], [0.5, -0.5, 0.1]])
    options = {"step_samples": 9000, "noise_variance": 0.3, "biases": biases}
    mean, error = sampled(weights, seed=7, **options)
    samples, x, y = drawn(neurons(weights, **options), 7)
    b = samples.generator(INITIAL).standard_normal(2) if biases == "gaussian" else 0.0
    each = y[:, None, None] * step(x @ weights.T + b)[:, :, None] * x[:, None, :]
    assert_allclose(mean, each.mean(axis=0), rtol=1e-12, atol=1e-14)
    assert_allclose(error, each.std(axis=0, ddof=1) / math.sqrt(9000), rtol=1e-12)


@pytest.mark.parametrize("tau", [1.0, 0.7])
def test_relu_on_a_product_is_the_hessian_times_w(tau):
    # E[x1 x2 1(w.x > 0) x] = (w2, w1)/(|w| sqrt(2 pi)) - w w1 w2/(|w|^3 sqrt(2 pi)):
    # Stein's lemma, E sigma'' = 1/(|w| sqrt(2 pi)), E sigma'''' = -1/(|w|^3 sqrt(2 pi)).
    w = tau * np.array([0.48, 0.64, 0.6, 0.0])
    mean, error = sampled([w], step_samples=400_000, seed=1)
    swapped = np.array([w[1], w[0], 0, 0])
    expected = (swapped / tau - w * w[0] * w[1] / tau**3) / math.sqrt(2 * math.pi)
    assert np.all(abs(mean[0] - expected) < 4 * error[0])
    # Tight enough to tell a missing second term.
    missing = abs(w * w[0] * w[1]).max() / tau**3 / math.sqrt(2 * math.pi)
    assert missing > 8 * error.max()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step_samples": 1}, "step_samples must be >= 2 for standard errors, got 1"),
        ({"student_derivative": None}, "student_derivative is needed for gradients"),
        ({"student_derivative": lambda u: u[0]}, "student_derivative must return real values, on"),
        ({"student_derivative": lambda u: u + 1j}, "it returned complex128"),
    ],
)
def test_gradients_that_cannot_be_drawn_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        sampled([[0.6, 0.8, 0.0]], **options)


def test_a_constant_derivative_may_be_a_number():
    mean, error = sampled(
        [[0.6, 0.8, 0.0]], student_derivative=lambda u: 1.0, step_samples=4000, noise_variance=1.0
    )
    assert np.all(abs(mean) < 4 * error)  # E x1 x2 x = 0


# ------------------------------------------------------------------ fits over neurons

PAIRED = Network(
    student=np.square, student_derivative=lambda u: u, teacher=product, directions=2, dimension=8,
    width=80, readout="signs", paired=True, steps=1, step_samples=20_000, step_size=0.3,
    weight_decay=1.0,
)  # fmt: skip


@pytest.mark.parametrize("monomials", [[(1, 0), (0, 1)], [(0, 0)]])
@pytest.mark.parametrize("normalise", [False, True])
def test_fits_are_those_written_out(monomials, normalise):
    network = replace(PAIRED, step_samples=3000, noise_variance=0.5, normalise=normalise)
    found = simulate(network, GradientSlopes(monomials, -0.7), seeds=2, seed=3)
    for index in (0, 1):
        samples, x, y = drawn(network, 3, index)
        w = samples.generator(ROWS).standard_normal((40, 8))
        w /= np.linalg.norm(w, axis=1)[:, None]
        g = ((x @ w.T) * y[:, None]).T @ x / 3000
        columns = [np.prod(w[:, :2] ** alpha, axis=1) for alpha in monomials]
        if monomials != [(0, 0)]:
            columns.append(np.ones(40))
        fitted = np.linalg.lstsq(np.array(columns).T, g[:, :2], rcond=None)[0]
        stepped = w - 0.7 * g
        for name, value in {
            "coefficients": fitted[: len(monomials)].T,
            "gradient_square": (g**2).sum(axis=1).mean(),
            "squared_norm": (stepped**2).sum(axis=1).mean(),
            "inside": (stepped[:, :2] ** 2).sum(axis=1).mean(),
            "label_cosines": (y @ x)[:2] / np.linalg.norm(y @ x),
        }.items():
            assert_allclose(found[name][index], value, rtol=1e-11, atol=1e-13, err_msg=name)


def test_other_slopes_have_another_store(tmp_path):
    options = {"seeds": 1, "store": tmp_path, "description": "product"}
    simulate(PAIRED, GradientSlopes([(1, 0)]), **options)
    with pytest.raises(ParameterError, match="belongs to a run of networks with other parameters"):
        simulate(PAIRED, GradientSlopes([(0, 1)]), **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "monomials must be rows of exponents >= 0"),
        (([(-1, 0)],), "monomials must be rows of exponents >= 0"),
        (([(0.5, 0)],), "monomials must be rows of exponents >= 0"),
        (([(1, 0)], math.inf), "step must be finite, got inf"),
        (([(1, 0)], "1"), "step must be a number"),
    ],
)
def test_bad_slopes_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        GradientSlopes(*arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"paired": False}, "use paired=True, steps=1 and weight_decay=1"),
        ({"weight_decay": 0.5}, "use paired=True, steps=1 and weight_decay=1"),
        ({"steps": 2}, "use paired=True, steps=1 and weight_decay=1"),
        ({"width": 6}, "width must be >= 8, two pairs more than the 2 monomials; got 6"),
        ({"directions": 3}, "monomials must hold 3 exponents each"),
        ({"step_size": 0.0}, "step_size must not be 0"),
    ],
)
def test_networks_that_show_no_gradients_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        simulate(replace(PAIRED, **changes), GradientSlopes([(1, 0), (0, 1)]), seeds=1)
