"""Eigenvalues of simulated matrices, in the normalisation of an asymptotic spectrum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ...numeric.arguments import whole_number
from .spectrum import Spectrum

# Zeros of a matrix without full rank differ from zero by rounding, in units of the largest.
_ZERO = 1e-12


@dataclass(frozen=True, eq=False)
class SimulatedSpectrum:
    """Eigenvalues of independent matrices.

    Attributes
    ----------
    eigenvalues : array (matrices, size)
        Ascending, zeros included.
    projections : array (matrices, n) or None
        κ of the samples of each matrix, of features with a spike.
    width : int
        Number of features p.
    dimension : int
        Input dimension d.
    trained : bool
        Features of trained networks.
    """

    eigenvalues: NDArray[np.float64]
    projections: NDArray[np.float64] | None
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
        positive = values > _ZERO * values[-1]
        expected = spectrum.cumulative_at(values[positive])
        steps = np.arange(len(values) + 1) / len(values)
        after, before = steps[1:][positive], steps[:-1][positive]
        return float(np.max(np.maximum(np.abs(expected - after), np.abs(expected - before))))
