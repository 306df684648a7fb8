"""Spectra of simulated feature covariances."""

import math

import numpy as np
import pytest

from giantstep.errors import ParameterError
from giantstep.numeric.feature_samples import READOUT, layer_samples
from giantstep.numeric.feature_setup import FeatureClass, FeatureSetup
from giantstep.numeric.feature_spectra import feature_spectra, layer_spectrum


def setup(**changes):
    given = {"beta": 1.0, "dimension": 80} | changes
    return FeatureSetup(np.tanh, np.sin, FeatureClass(1.0, 1.5, 1.1), 0.9, **given)


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_eigenvalues_are_those_of_the_features(alpha):
    found = feature_spectra(setup(), alpha, seeds=2, seed=4, progress=False)
    n = round(80 * alpha)
    assert (found.samples, found.width, found.eigenvalues.shape) == (n, 80, (2, 80))
    seed = np.random.SeedSequence(4, spawn_key=(1,))
    layer = setup().first_layer(seed)
    (block,) = layer_samples(np.sin, layer.teachers, setup().channel, seed, READOUT, n)
    features = np.tanh(block.inputs @ layer.rows.T)
    singular = np.linalg.svd(features / math.sqrt(80), compute_uv=False)
    expected = np.zeros(80)
    expected[80 - len(singular) :] = np.sort(singular**2)
    np.testing.assert_allclose(found.eigenvalues[1], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.projections[1], block.inputs @ layer.spikes.T)
    again = layer_spectrum(setup(), layer, n, seed)
    np.testing.assert_allclose(again[0], found.eigenvalues[1], rtol=1e-12)


def test_the_spike_is_the_only_outlier_and_counts_its_projections():
    found = feature_spectra(setup(dimension=200), 2, seeds=3, progress=False)
    assert found.bulk().max() < 0.2 * found.top.min()
    assert found.bulk(0).size - found.bulk(1).size == 3
    # To leading order the top eigenvalue is the sum of squares of the mean feature at κ.
    z = np.random.default_rng(0).standard_normal((4000, 1))
    for top, kappa in zip(found.top, found.projections[..., 0], strict=True):
        mean = np.tanh(1.5 * kappa + math.sqrt(1.1) * z).mean(axis=0)
        assert top == pytest.approx(float(mean @ mean), rel=0.02)


def test_workers_change_nothing():
    one, two = (
        feature_spectra(setup(), 1, seeds=3, workers=w, progress=False).eigenvalues for w in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"setup": np.tanh}, "setup must be"),
        ({"alpha": -1}, "alpha"),
        ({"alpha": 1e-6}, "too small"),
        ({"seeds": 0}, "seeds"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        feature_spectra(**({"setup": setup(), "alpha": 1.0, "progress": False} | changes))


def test_more_outliers_than_eigenvalues_are_refused():
    with pytest.raises(ParameterError, match="outliers"):
        feature_spectra(setup(), 1, seeds=1, progress=False).bulk(80)
