"""Result 3.1 in numbers: the spiked random features that stand for a trained network."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...errors import AssumptionError, ParameterError
from ...numeric.arguments import positive_number, real_number
from ...numeric.cache import FileCache
from .derivation import Derivation

# The square of a smaller one underflows, and with it the equations of the mean direction.
_SMALLEST_SPIKE = 1e-100


@dataclass(frozen=True)
class SpikeParameters:
    """The spiked random features that stand for the trained network.

    Attributes
    ----------
    spike_strength, bulk_variance, alignment : float
        r, c and γ: rows are sqrt(c) u + r v with \\|u\\| = \\|v\\| = 1 and v·θ = γ.
    orthogonal_alignment : float
        ρ = sqrt(1 − γ²), kept apart because 1 − γ² loses digits near γ = 1.
    norm_overlap : float
        a: the squared norm of a bulk row b is c + 2 a b·v. Used with correlated norms only.
    """

    spike_strength: float
    bulk_variance: float
    alignment: float
    orthogonal_alignment: float
    norm_overlap: float = 0.0


def checked_spike(
    spike_strength: object, bulk_variance: object, alignment: object
) -> SpikeParameters:
    """Return spike parameters that a user gives.

    Raises
    ------
    ParameterError
        If r is not finite or too small to square, c not positive, or γ not in [-1, 1].
    """
    r = real_number("spike_strength", spike_strength)
    if not math.isfinite(r):
        raise ParameterError(f"spike_strength must be finite, got {r}")
    _check_size("spike_strength", r, r)
    c = positive_number("bulk_variance", bulk_variance)
    gamma = real_number("alignment", alignment)
    if not -1 <= gamma <= 1:
        raise ParameterError(f"alignment must be between -1 and 1, got {gamma}")
    return SpikeParameters(r, c, gamma, math.sqrt((1 - gamma) * (1 + gamma)))


def spike_after_step(
    found: Derivation, cache: FileCache, step_size: float, alpha0: float, noise_variance: float
) -> SpikeParameters:
    """Return the spike parameters after a step, from the derived map.

    Raises
    ------
    AssumptionError
        If the student jumps, so that its gradient step is not defined.
    ParameterError
        If the step is too small to be told from none.
    """
    if found.mapping_error:
        raise AssumptionError(found.mapping_error)
    mapping = cache.load_module("mapping", found.mapping_source).mapping
    if alpha0 == math.inf and found.leap_index > 1:
        # The population gradient vanishes to leading order: no spike. The bulk keeps what does
        # not depend on alpha0, which any huge value gives.
        return SpikeParameters(0.0, mapping(step_size, 1e300, noise_variance)[1], 0.0, 1.0)
    r, c, gamma, rho, overlap = mapping(step_size, alpha0, noise_variance)
    _check_size("step_size", step_size, r)
    gamma = math.copysign(1.0, gamma) if rho == 0 else gamma
    return SpikeParameters(r, c, gamma, rho, overlap)


def _check_size(name: str, value: float, spike_strength: float) -> None:
    if 0 < abs(spike_strength) < _SMALLEST_SPIKE:
        raise ParameterError(
            f"{name}={value:g} gives a spike strength of {spike_strength:.1e}, whose square is "
            f"below the smallest float; use 0, or a spike strength of at least {_SMALLEST_SPIKE:g}"
        )
