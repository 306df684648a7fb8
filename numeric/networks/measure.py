"""What is seen of a trained network: small functions that a run is given by name.

A measurement takes a :class:`.readout.TrainedNetwork` and returns arrays by name. Users bring
their own in the same way; those of this module are known by the names in :data:`MEASUREMENTS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from .readout import TrainedNetwork
from .spectra import KernelEigenvalues, singular_values

__all__ = ["MEASUREMENTS", "Measurement", "measurement_of"]

Array = NDArray[np.float64]
Measurement = Callable[[TrainedNetwork], Mapping[str, Array]]


def errors(trained: TrainedNetwork) -> dict[str, Array]:
    r"""Errors of the readouts, each (S, L): sample sizes and penalties.

    Returns
    -------
    dict of ndarray
        ``test_error``: mean squared error against the noise-free target, or share of fresh labels,
        noise included, with the wrong sign; ``training_error``, the same with the labels of the
        training set; ``test_loss`` and ``training_loss``, mean losses of labels; ``objective``,
        :math:`\frac1n[\sum\ell + \frac\lambda2|w|^2]`; ``certificate``, an upper bound of
        (objective − minimum)/objective, zero for ridge regression; ``ridge``, λ; in single
        precision ``rounding``, relative distance of predictions from those of double precision.
    """
    return {**trained.fit.values, **trained.test}


def overlaps(trained: TrainedNetwork) -> dict[str, Array]:
    """Order parameters of the readouts, (S, L, …); see :meth:`.layer.FirstLayer.overlaps`."""
    coefficients = trained.fit.coefficients * math.sqrt(trained.layer.width)
    sizes, penalties = coefficients.shape[1:]
    rows = [
        [trained.layer.overlaps(coefficients[:, s, k]) for k in range(penalties)]
        for s in range(sizes)
    ]
    return {name: np.array([[found[name] for found in row] for row in rows]) for name in rows[0][0]}


def spike(trained: TrainedNetwork) -> dict[str, Array]:
    """Realised ``spike_strength`` (K, k), ``bulk_variance`` (K,) and ``alignment`` (k, r)."""
    layer = trained.layer
    return {
        "spike_strength": layer.strengths,
        "bulk_variance": layer.bulk_variances,
        "alignment": layer.alignment,
    }


def label_moment(trained: TrainedNetwork) -> dict[str, Array]:
    """Length of the mean over steps of X^T y/n, and its component along the first teacher."""
    moments = trained.training.label_moments
    mean = np.mean(moments, axis=0) if moments else np.zeros(trained.network.dimension)
    return {
        "spike_length": np.asarray(np.linalg.norm(mean)),
        "spike_overlap": np.asarray(mean @ trained.layer.teachers[0]),
    }


def rounding(trained: TrainedNetwork) -> dict[str, Array]:
    """Single precision: relative rounding of the last step's gradient, ``gradient_rounding``."""
    return {"gradient_rounding": np.array(trained.training.rounding)}


MEASUREMENTS: dict[str, Measurement] = {
    f.__name__: f for f in (errors, overlaps, spike, label_moment, rounding, singular_values)
}
MEASUREMENTS["kernel_eigenvalues"] = KernelEigenvalues()


def measurement_of(given: object) -> tuple[str, Measurement]:
    """Return name and function of a measurement.

    Raises
    ------
    ParameterError
        If there is none of this name, or it is no function.
    """
    if isinstance(given, str) and given in MEASUREMENTS:
        return given, MEASUREMENTS[given]
    if callable(given):
        return str(getattr(given, "__qualname__", type(given).__qualname__)), given
    raise ParameterError(
        f"measure must hold functions or some of {', '.join(MEASUREMENTS)}; got {given!r}"
    )
