"""Eigenvalues of simulated features, in the normalisation of an asymptotic spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....errors import ParameterError
from ....numeric.arguments import whole_number
from ....numeric.feature_setup import FeatureClass, FeatureSetup
from ....numeric.feature_spectra import feature_spectra

if TYPE_CHECKING:
    from .spectrum import Spectrum


@dataclass(frozen=True, eq=False)
class SimulatedSpectrum:
    """Eigenvalues of independent matrices.

    Attributes
    ----------
    eigenvalues : array (matrices, size)
        Ascending, zeros included.
    projections : array (matrices, n)
        κ of the samples of each matrix.
    width : int
        Number of features p.
    dimension : int
        Input dimension d.
    trained : bool
        Features of trained networks; else spiked random features.
    """

    eigenvalues: NDArray[np.float64]
    projections: NDArray[np.float64]
    width: int
    dimension: int
    trained: bool

    def distance(self, spectrum: Spectrum, outliers: int = 1) -> float:
        """Return the Kolmogorov–Smirnov distance of the spectrum to all matrices together.

        Parameters
        ----------
        spectrum : Spectrum
        outliers : int
            So many largest eigenvalues of each matrix are left out.
        """
        count = whole_number("outliers", outliers, minimum=0)
        size = self.eigenvalues.shape[1]
        if count >= size:
            raise ParameterError(f"outliers must be fewer than the {size} eigenvalues, got {count}")
        values = np.sort(self.eigenvalues[:, : size - count], axis=None)
        # Zeros of a matrix without full rank differ from zero by rounding.
        expected = spectrum.cumulative_at(np.maximum(values, 1e-12 * values[-1]))
        steps = np.arange(len(values) + 1) / len(values)
        positive = values > 1e-12 * values[-1]
        gaps = np.maximum(np.abs(expected - steps[1:]), np.abs(expected - steps[:-1]))
        return float(np.max(gaps[positive]))


def simulated_spectrum(
    spectrum: Spectrum,
    dimension: int,
    *,
    seeds: int,
    seed: int,
    workers: int | None,
    progress: bool,
    trained: bool,
) -> SimulatedSpectrum:
    """Simulate the features of a spectrum; see :meth:`.spectrum.spectrum.Spectrum.simulate`."""
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
