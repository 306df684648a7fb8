"""Figure 8: the spectrum of the features' covariance, asymptotic and of networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...figures import styled
from ..model import SpikedRandomFeatures
from .drawing import SOURCE, PaperFigure, Simulated, panels

_ALPHA, _POINTS = 3.0, 400


def feature_spectrum(simulated: Simulated, cache_folder: Any = None) -> PaperFigure:
    """Figure 8: bulk of the spectrum with a histogram of simulated features, and outliers."""
    title = "Spectrum of the feature covariance"
    model = SpikedRandomFeatures.from_parameters(
        "erf", "erf", spike_strength=1.0, bulk_variance=1.1, alignment=0.9, beta=0.5,
        cache_folder=cache_folder,
    )  # fmt: skip
    spectrum = model.spectrum(alpha=_ALPHA, points=_POINTS)
    width = round(model.beta * simulated.dimension)
    found = None
    if simulated.seeds:
        found = spectrum.simulate(simulated.dimension, seeds=simulated.seeds)
    with styled():
        figure, (axes,) = panels(1)
        spectrum.plot(found, width=width, ax=axes)
    data = spectrum.to_dataset()
    if found is not None:
        eigenvalues = np.asarray(found.eigenvalues)
        data = data.assign(simulated_eigenvalues=(("layer", "index"), eigenvalues))
    data.attrs |= {"source": SOURCE, "best_linear_error": model.best_linear_error}
    return PaperFigure(8, title, figure, data)
