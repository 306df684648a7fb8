"""How well spiked random features stand for the trained network, in words and as a warning."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from ...errors import ApproximationWarning

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures

LARGE_SPREAD = 0.3


def quality_text(model: SpikedRandomFeatures) -> str:
    """Return what the bulk covariance of the network lets expect; empty without a step."""
    if model.direct_parameters is not None or model.step_size == 0:
        return ""
    spread = model.bulk_spread
    text = (
        f"Bulk of the network: c − 1 = {model.spike.bulk_variance - 1:.3g}; its covariance, which "
        f"spiked random features take as isotropic, has a relative spread of {spread:.2g}. "
    )
    if spread <= LARGE_SPREAD:
        return text + f"Up to {LARGE_SPREAD:g} no effect of it on the errors was resolved."
    return text + (
        f"Above {LARGE_SPREAD:g} networks deviate by some per cent at any size: compare with "
        "simulations, or take a smaller step or more alpha0."
    )


def warn_about_quality(model: SpikedRandomFeatures) -> None:
    """Warn where networks deviate visibly from the theory of spiked random features."""
    if model.bulk_spread > LARGE_SPREAD:
        # Points at the line that called the method of the model, through a wrapper of it.
        warnings.warn(quality_text(model), ApproximationWarning, stacklevel=4)
