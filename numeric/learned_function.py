"""The function of the projection on the spike that a finite network learns, measured."""

from __future__ import annotations

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from .feature_network import SteppedNetwork
from .feature_setup import FeatureSetup
from .networks.sizes import sample_count
from .ridge_readout import fit_nested

Array = NDArray[np.float64]

_BLOCK = 512


def mean_prediction(
    setup: FeatureSetup | SteppedNetwork,
    alpha: float,
    ridge: float,
    edges: Array,
    *,
    seed: int,
    samples: int = 20_000,
    sign: float = 1.0,
) -> tuple[Array, Array]:
    """Return mean projections and mean outputs of fresh inputs, sorted by their projection.

    Parameters
    ----------
    setup : FeatureSetup or SteppedNetwork
        One spike direction, real labels.
    alpha, ridge : float
        Of the readout, by ridge regression.
    edges : array (K + 1,)
        Ascending; between each two of them one mean is taken.
    seed : int
        Of layer, training set and fresh inputs.
    samples : int
        Fresh inputs.
    sign : float
        Orientation of the spike, whose sign is a convention.

    Returns
    -------
    kappa, output : array (K,)
    """
    layer_seed, data_seed, fresh_seed = np.random.SeedSequence(seed).spawn(3)
    layer = setup.first_layer(layer_seed)
    n = sample_count("alpha", alpha, setup.dimension)
    inputs = np.random.default_rng(data_seed).standard_normal((n, setup.dimension))
    labels = setup.teacher(inputs @ layer.teachers[0])
    if setup.noise_variance:
        noise = np.random.default_rng(data_seed.spawn(1)[0]).standard_normal(n)
        labels = labels + np.sqrt(setup.noise_variance) * noise

    def draw(start: int, out: Array) -> Array:
        part = slice(start, start + len(out))
        layer.features(setup.student, inputs[part], out)
        return np.asarray(labels[part])

    width = layer.width
    with threadpoolctl.threadpool_limits(1, "blas"):
        # The readout acts on features divided by sqrt(p): the penalty of the product is p λ.
        readout = fit_nested(draw, [n], width=width, ridge=width * ridge, block_rows=_BLOCK)[0][
            :, 0
        ]
        generator = np.random.default_rng(fresh_seed)
        kappas, outputs = np.empty(samples), np.empty(samples)
        features = np.empty((_BLOCK, width))
        for start in range(0, samples, _BLOCK):
            count = min(_BLOCK, samples - start)
            x = generator.standard_normal((count, setup.dimension))
            layer.features(setup.student, x, features[:count])
            kappas[start : start + count] = sign * (x @ layer.spikes[0])
            outputs[start : start + count] = features[:count] @ readout
    cells = np.digitize(kappas, edges) - 1
    inside = [cells == k for k in range(len(edges) - 1)]
    return (
        np.array([kappas[c].mean() for c in inside]),
        np.array([outputs[c].mean() for c in inside]),
    )
