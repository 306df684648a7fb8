"""Sampled gradients against textbook recipes and known expectations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from giantstep.errors import ParameterError
from giantstep.numeric import sample_stream
from giantstep.numeric.gradient_sampling import sample_gradient
from giantstep.numeric.sample_stream import SampleStream


def step(u):
    return np.heaviside(u, 0.5)


def erf_derivative(u):
    return 2 / math.sqrt(math.pi) * np.exp(-(u**2))


def product(x):
    return x[:, 0] * x[:, 1]


def sample(derivative=step, target=product, weights=(0.6, 0.0, 0.8), **options):
    options = {"variables": 2, "samples": 50, "progress": False} | options
    return sample_gradient(derivative, target, weights, **options)


def drawn(stream, count, purpose=0):
    inputs, labels = zip(*((x.copy(), y) for x, y in stream.blocks(purpose, count)), strict=True)
    return np.vstack(inputs), np.concatenate(labels)


# ------------------------------------------------------------------ gradients


def test_mean_and_standard_error_are_those_of_the_samples():
    weights = np.array([[0.6, 0.0, 0.8], [0.5, -0.5, 0.1]])
    found = sample(weights=weights, samples=9000, noise_variance=0.3, seed=7)
    x, y = drawn(SampleStream(3, product, 2, 0.3, 7), 9000)
    each = y[:, None, None] * step(x @ weights.T)[:, :, None] * x[:, None, :]
    assert_allclose(found.mean, each.mean(axis=0), rtol=1e-12, atol=1e-14)
    assert_allclose(found.standard_error, each.std(axis=0, ddof=1) / math.sqrt(9000), rtol=1e-10)
    assert_allclose(found.norm, np.linalg.norm(found.mean, axis=1), rtol=1e-14)
    assert_allclose(found.error_norm, np.linalg.norm(found.standard_error, axis=1), rtol=1e-14)
    assert repr(found) == "SampledGradient(2 rows, dimension 3, 9000 samples)"


def test_one_neuron_gives_a_vector_and_the_same_numbers():
    one, many = sample(), sample(weights=[[0.6, 0.0, 0.8], [1.0, 0.0, 0.0]])
    assert one.mean.shape == one.standard_error.shape == (3,)
    assert one.norm.shape == one.error_norm.shape == ()
    assert_allclose(one.mean, many.mean[0], rtol=1e-13)
    assert repr(one) == "SampledGradient(dimension 3, 50 samples)"


@pytest.mark.parametrize("tau", [1.0, 0.7])
def test_relu_on_a_product_is_the_hessian_times_w(tau):
    # E[x1 x2 1(w.x > 0) x] = (w2, w1)/(|w| sqrt(2 pi)) - w w1 w2/(|w|^3 sqrt(2 pi)):
    # Stein's lemma, E sigma'' = 1/(|w| sqrt(2 pi)), E sigma'''' = -1/(|w|^3 sqrt(2 pi)).
    w = tau * np.array([0.48, 0.64, 0.6, 0.0])
    found = sample(weights=w, samples=400_000, seed=1)
    swapped = np.array([w[1], w[0], 0, 0])
    expected = (swapped / tau - w * w[0] * w[1] / tau**3) / math.sqrt(2 * math.pi)
    assert np.all(abs(found.mean - expected) < 4 * found.standard_error)
    # Tight enough to tell a missing second term.
    missing = abs(w * w[0] * w[1]).max() / tau**3 / math.sqrt(2 * math.pi)
    assert missing > 8 * found.standard_error.max()


def test_label_noise_widens_the_error_and_leaves_the_mean():
    quiet, noisy = (
        sample(samples=40_000, noise_variance=v, seed=3, weights=[0.0, 0.0, 1.0]) for v in (0, 3)
    )
    # 2 E[y² sigma'² |x|²] = E[x1² x2² |x|²] + 3 Delta = 3 + 3 + 1 + 9 instead of 7.
    assert_allclose(noisy.error_norm / quiet.error_norm, math.sqrt(16 / 7), rtol=0.05)
    assert np.all(abs(noisy.mean - quiet.mean) < 4 * noisy.standard_error)


def test_the_same_seed_gives_the_same_numbers_and_another_does_not():
    again, other = sample(seed=5), sample(seed=6)
    assert_array_equal(sample(seed=5).mean, again.mean)
    assert_array_equal(sample(seed=np.random.SeedSequence(5)).mean, again.mean)
    assert not np.allclose(other.mean, again.mean)


def test_blocks_do_not_change_what_follows(monkeypatch):
    stream = SampleStream(3, product, 2, 0.5, 11)
    whole, labels = drawn(stream, 10_000)
    fewer, fewer_labels = drawn(stream, 5000)
    assert stream.block_rows == 4096
    assert_array_equal(whole[:5000], fewer)
    assert_array_equal(labels[:5000], fewer_labels)
    later = [(x.copy(), y) for x, y in stream.blocks(0, 10_000, start=4999)]
    assert_array_equal(np.vstack([x for x, _ in later]), whole[4999:])
    assert_array_equal(np.concatenate([y for _, y in later]), labels[4999:])
    other, _ = drawn(stream, 5000, purpose=1)
    assert abs(np.corrcoef(other[:, 0], fewer[:, 0])[0, 1]) < 0.1


def test_a_block_of_a_large_dimension_stays_small():
    assert SampleStream(10**6, product, 2, 0, 0).block_rows * 10**6 <= sample_stream.BLOCK_ENTRIES


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"derivative": 3}, "student_derivative must be a function of an array, got 3"),
        ({"target": "x1"}, "target must be a function of an array, got 'x1'"),
        ({"weights": [[[1.0]]]}, r"weights must be an array of real numbers of shape \(d,\)"),
        ({"weights": []}, "weights must be an array of real numbers"),
        ({"weights": [1j, 2]}, "weights must be an array of real numbers"),
        ({"weights": [[1.0, 2.0], [1.0]]}, "weights must be an array of real numbers"),
        ({"weights": [math.nan, 1.0]}, "weights must be finite"),
        ({"variables": 4}, "variables must be at most the dimension 3, got 4"),
        ({"variables": 0}, "variables must be >= 1, got 0"),
        ({"samples": 1}, "samples must be >= 2, got 1"),
        ({"samples": 2.5}, "samples must be a whole number, got 2.5"),
        ({"noise_variance": -1}, "noise_variance must be >= 0 and finite, got -1"),
        ({"noise_variance": math.nan}, "noise_variance must be a number, got nan"),
        ({"seed": -1}, "seed must be >= 0, got -1"),
        ({"seed": 1.5}, "seed must be a whole number, got 1.5"),
        ({"target": lambda x: x}, r"target must return real values, one for each row"),
        ({"derivative": lambda u: u[0]}, "student_derivative must return real values, one for eac"),
        ({"derivative": lambda u: u + 1j}, "it returned complex128"),
        ({"target": lambda x: 1 / (x[:, 0] > 9)}, "target is not finite at "),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_bad_arguments_are_refused_by_name(options, message):
    with pytest.raises(ParameterError, match=message):
        sample(**options)


def test_a_constant_derivative_may_be_a_number():
    found = sample(derivative=lambda u: 1.0, target=lambda x: x[:, 1], samples=4000)
    assert np.all(abs(found.mean - [0, 1, 0]) < 4 * found.standard_error)
