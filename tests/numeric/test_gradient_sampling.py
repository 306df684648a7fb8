"""Blocks of samples, and parts of gradients against textbook recipes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import erf

from giantstep.errors import ParameterError
from giantstep.numeric import sample_stream
from giantstep.numeric.gradient_decomposition import measure_gradient_parts
from giantstep.numeric.sample_stream import SampleStream


def erf_derivative(u):
    return 2 / math.sqrt(math.pi) * np.exp(-(u**2))


def product(x):
    return x[:, 0] * x[:, 1]


def drawn(stream, count, purpose=0):
    inputs, labels = zip(*((x.copy(), y) for x, y in stream.blocks(purpose, count)), strict=True)
    return np.vstack(inputs), np.concatenate(labels)


# ------------------------------------------------------------------ blocks of samples


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


# ------------------------------------------------------------------ spike and bulk


def parts(dimension=60, **options):
    options = {
        "mean_derivative": 2 / math.sqrt(3 * math.pi), "mean_slope": [1.0], "samples": 120,
        "width": 90, "seeds": 2, "progress": False,
    } | options  # fmt: skip
    return measure_gradient_parts(
        options.pop("student", erf), options.pop("student_derivative", erf_derivative),
        options.pop("target", lambda x: x[:, 0]), dimension=dimension, **options,
    )  # fmt: skip


def test_the_parts_are_those_of_the_gradient_as_it_is_written():
    found = parts(noise_variance=0.5, seeds=1, seed=4)
    d, n, width, mu = 60, 120, 90, 2 / math.sqrt(3 * math.pi)
    seed = np.random.SeedSequence(4, spawn_key=(0,))
    stream = SampleStream(d, lambda x: x[:, 0], 1, 0.5, seed)
    generator = stream.generator(0)
    w = generator.standard_normal((d, width)) / math.sqrt(d)
    a = generator.standard_normal(width) / math.sqrt(width)
    x, y = drawn(stream, n, purpose=1)
    f0 = erf(x @ w) @ a / math.sqrt(width)
    bulk = x.T @ (np.outer(y - f0, a) * (erf_derivative(x @ w) - mu)) / (n * math.sqrt(width))
    spike = mu * np.outer(x.T @ y, a) / (n * math.sqrt(width))
    output = mu * np.outer(x.T @ f0, a) / (n * math.sqrt(width))
    assert_allclose(found.spike, math.sqrt(width) * np.linalg.norm(spike, 2), rtol=1e-12)
    assert_allclose(found.bulk, math.sqrt(width) * np.linalg.norm(bulk), rtol=1e-12)
    assert_allclose(found.bulk_operator_norm, math.sqrt(width) * np.linalg.norm(bulk, 2), rtol=1e-9)
    assert_allclose(found.output, width * np.linalg.norm(output, 2), rtol=1e-12)
    assert_allclose(found.alignment, ((x.T @ y)[0] / np.linalg.norm(x.T @ y)) ** 2, rtol=1e-12)
    assert found.identity_error[0] < 1e-14
    assert repr(found) == "GradientParts(1 networks)"


def test_without_a_slope_there_is_nothing_to_align_with():
    assert_array_equal(parts(target=lambda x: x[:, 0] ** 2, mean_slope=[0.0]).alignment, 0.0)


def test_more_networks_extend_a_smaller_run():
    assert_array_equal(parts(seeds=3).spike[:2], parts(seeds=2).spike)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean_slope": []}, r"mean_slope must be a vector of r >= 1 numbers"),
        ({"mean_slope": [[1.0]]}, r"mean_slope must be a vector .*of shape \(1, 1\)"),
        ({"mean_slope": [math.inf]}, "mean_slope must be finite"),
        ({"mean_derivative": "1"}, "mean_derivative must be a number, got '1'"),
        ({"mean_slope": [1.0] * 61}, "variables must be at most the dimension 60, got 61"),
        ({"width": 0}, "width must be >= 1, got 0"),
        ({"seeds": 0}, "seeds must be >= 1, got 0"),
        ({"student": None}, "student must be a function of an array, got None"),
    ],
)
def test_bad_arguments_of_the_parts_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        parts(**options)
