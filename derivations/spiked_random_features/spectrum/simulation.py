"""Eigenvalues of simulated features, in the normalisation of an asymptotic spectrum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....errors import ParameterError
from ....numeric.arguments import whole_number
from ....numeric.feature_setup import FeatureClass, FeatureSetup
from ....numeric.feature_spectra import feature_spectra
from ...spectra.simulated import SimulatedSpectrum

if TYPE_CHECKING:
    from .spectrum import FeatureSpectrum


def simulated_spectrum(
    spectrum: FeatureSpectrum,
    dimension: int,
    *,
    seeds: int,
    seed: int,
    workers: int | None,
    progress: bool,
    trained: bool,
) -> SimulatedSpectrum:
    """Simulate the features of a spectrum; see :meth:`.spectrum.FeatureSpectrum.simulate`."""
    from ..feature_simulation import activation_function, feature_setup

    model = spectrum.model
    if spectrum.covariance == "population":
        raise ParameterError(
            "the population covariance belongs to no training set; simulate the spectrum of the "
            '"empirical" covariance at a large alpha'
        )
    dimension = whole_number("dimension", dimension)
    if trained:
        if model.direct_parameters is not None or not model.step_size:
            raise ParameterError(
                "trained features need a gradient step, and this model has none; "
                "leave out trained=True"
            )
        setup = feature_setup(model, dimension)
    else:
        spike = model.spike
        kind = FeatureClass(1.0, spike.spike_strength, spike.bulk_variance)
        setup = FeatureSetup(
            activation_function(model, "student"), activation_function(model, "teacher"), kind,
            spike.alignment, beta=model.beta, dimension=dimension,
        )  # fmt: skip
    found = feature_spectra(
        setup, spectrum.alpha, seeds=seeds, seed=seed, workers=workers, progress=progress
    )
    width, samples = found.width, found.samples
    values = found.eigenvalues
    if spectrum.covariance == "empirical":
        values = values * (width / samples)
    if spectrum.covariance == "kernel":
        # The n × n matrix has the same positive eigenvalues and more or fewer zeros.
        values = (
            values[:, width - samples :]
            if samples <= width
            else np.pad(values, ((0, 0), (samples - width, 0)))
        )
    return SimulatedSpectrum(values, found.projections[..., 0], width, dimension, trained)
