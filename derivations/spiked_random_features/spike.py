"""Result 3.1 in numbers: the spiked random features that stand for a trained network."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...errors import AssumptionError, ParameterError
from ...numeric.arguments import positive_number, real_number
from ...numeric.cache import FileCache
from .derivation import Derivation

# μ_0 is proportional to r and is divided by again: where it has to be integrated, a smaller spike
# is drowned by rounding. The errors are within r² of their limit for r → 0 anyway.
_SMALLEST_SPIKE = 1e-5
# Tables need nodes in proportion to the width of what an activation sees: for tanh these take
# about a gigabyte.
_LARGEST_SPIKE = 1e3
_LARGEST_VARIANCE = 1e6


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
        If r is not finite, too small to square or too large to tabulate, c not positive or too
        large, or γ not in [-1, 1].
    """
    r = real_number("spike_strength", spike_strength)
    if not math.isfinite(r):
        raise ParameterError(f"spike_strength must be finite, got {r}")
    c = positive_number("bulk_variance", bulk_variance)
    _check_size(r, c)
    gamma = real_number("alignment", alignment)
    if not -1 <= gamma <= 1:
        raise ParameterError(f"alignment must be between -1 and 1, got {gamma}")
    return SpikeParameters(r, c, gamma, math.sqrt((1 - gamma) * (1 + gamma)))


def rechecked_spike(given: object) -> SpikeParameters:
    """Return spike parameters that may have been made by hand; what follows is computed again.

    Raises
    ------
    ParameterError
        If `given` is something else, or holds a value outside its range.
    """
    if not isinstance(given, SpikeParameters):
        raise ParameterError(
            f"direct_parameters must be SpikeParameters, got {given!r}; "
            "use SpikedRandomFeatures.from_parameters"
        )
    return checked_spike(given.spike_strength, given.bulk_variance, given.alignment)


def spike_after_step(
    found: Derivation, cache: FileCache, step_size: float, alpha0: float, noise_variance: float
) -> SpikeParameters:
    """Return the spike parameters after a step, from the derived map.

    Raises
    ------
    AssumptionError
        If the student jumps, so that its gradient step is not defined.
    ParameterError
        If the step is too small to be told from none, or too large to be tabulated.
    """
    if found.mapping_error:
        raise AssumptionError(found.mapping_error)
    mapping = cache.load_module("mapping", found.mapping_source).mapping
    if alpha0 == math.inf and found.leap_index > 1:
        # The population gradient vanishes to leading order: no spike. The bulk keeps what does
        # not depend on alpha0, which any huge value gives.
        return SpikeParameters(0.0, mapping(step_size, 1e300, noise_variance)[1], 0.0, 1.0)
    r, c, gamma, rho, overlap = mapping(step_size, alpha0, noise_variance)
    _check_size(r, c, f"step_size={step_size:g}, alpha0={alpha0:g}")
    gamma = math.copysign(1.0, gamma) if rho == 0 else gamma
    return SpikeParameters(r, c, gamma, rho, overlap)


def _check_size(r: float, c: float, step: str = "") -> None:
    """Refuse a spike without numbers; `step` names the step that it comes from, if any."""
    origin = f" from {step}" if step else ""
    if 0 < abs(r) < _SMALLEST_SPIKE:
        raise ParameterError(
            f"spike_strength={r:.1e}{origin} is too small to be told from rounding errors; "
            f"use 0, or a spike strength of at least {_SMALLEST_SPIKE:g}"
        )
    sizes = (("spike_strength", abs(r), _LARGEST_SPIKE), ("bulk_variance", c, _LARGEST_VARIANCE))
    for name, value, largest in sizes:
        # Negated, so that what is not a number is refused as well.
        if not value <= largest:
            raise ParameterError(
                f"{name}={value:.1e}{origin} is too large: tables of the activations would need "
                "too much memory; use "
                + ("a smaller step_size or more alpha0, for " if step else "")
                + f"at most {largest:g}"
            )
