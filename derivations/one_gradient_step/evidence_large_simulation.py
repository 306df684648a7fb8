"""Simulated networks: equivalence, growing steps, steps of order √N, several steps."""

from __future__ import annotations

import math

import numpy as np

from ..claims import Finding
from ..penalties import paper_ridge
from .model import OneGradientStep

_ERRORS = 4.0
_FINITE_SIZE = 3.0
"""Relative corrections are of order N^(-1/2); this times it is allowed."""


def equivalence(dimension: int = 150, seeds: int = 20) -> Finding:
    """Networks against the prediction of Gaussian features on their own weights."""
    model = OneGradientStep("erf", "erf", 2.0, beta=1.5, step_size=2.0, noise_variance=0.25)
    found = model.simulate(
        dimension, ridge=paper_ridge(0.05), seeds=seeds, conditional=True, progress=False
    )
    gap = (found.risk - found.risk_conditional).sel(step=1).to_numpy().ravel()
    mean, error = float(gap.mean()), float(gap.std(ddof=1) / math.sqrt(len(gap)))
    size = float(found.risk.sel(step=1).mean())
    return Finding(
        abs(mean) <= _ERRORS * error,
        f"network minus conditional prediction {mean:+.4f} ± {error:.4f}, risk {size:.3f}",
        {"gap": mean, "standard_error": error},
    )


def growing_steps(seeds: int = 6) -> Finding:
    """The gap to Gaussian features is small for η = N^(1/8), large for η = N^(1/2)."""
    gaps: dict[tuple[float, int], float] = {}
    errors: dict[tuple[float, int], float] = {}
    for exponent in (0.125, 0.5):
        for dimension in (128, 256):
            model = OneGradientStep("erf", "erf", 8.0, beta=2.0)
            found = model.simulate(
                dimension, ridge=paper_ridge(0.01), seeds=seeds, exponent=exponent,
                conditional=True, progress=False,
            )  # fmt: skip
            risk = found.risk.sel(step=1)
            gap = ((found.risk_conditional.sel(step=1) - risk) / risk).to_numpy().ravel()
            gaps[exponent, dimension] = float(gap.mean())
            errors[exponent, dimension] = float(gap.std(ddof=1) / math.sqrt(len(gap)))
    small, large = (max(abs(gaps[a, d]) for d in (128, 256)) for a in (0.125, 0.5))
    apart = all(
        gaps[0.5, d] - gaps[0.125, d] > _ERRORS * math.hypot(errors[0.5, d], errors[0.125, d])
        for d in (128, 256)
    )
    return Finding(
        apart and small < 0.1 and min(gaps[0.5, d] for d in (128, 256)) > 0.3,
        f"relative gap at most {small:.3f} for N^(1/8), up to {large:.3f} for N^(1/2)",
        {f"N^{a}, d = {d}": gap for (a, d), gap in gaps.items()},
    )


def below_kernels(dimension: int = 128, seeds: int = 4) -> Finding:
    """erf on erf: the risk after a step of √N is below the best linear error, after 1 it is not."""
    model = OneGradientStep("erf", "erf", 8.0, beta=2.0)
    risks = {}
    for exponent in (0.0, 0.5):
        found = model.simulate(
            dimension, ridge=paper_ridge(0.01), seeds=seeds, exponent=exponent, progress=False
        )
        values = found.risk.sel(step=1).to_numpy().ravel()
        risks[exponent] = float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
    bound = model.best_linear_error
    (small, small_error), (large, large_error) = risks[0.0], risks[0.5]
    return Finding(
        large + _ERRORS * large_error < bound < small - _ERRORS * small_error,
        f"{large:.4f} ± {large_error:.4f} for √N, {small:.4f} ± {small_error:.4f} for order one, "
        f"best linear error {bound:.4f}",
        {"large": large, "small": small, "best_linear_error": bound},
    )


def repeated_steps(dimension: int = 200, steps: int = 4, seeds: int = 4) -> Finding:
    """Length of X^T y over several steps: the largest singular value after t steps."""
    model = OneGradientStep("tanh", "tanh", 3.0, beta=2.0, step_size=2.0, noise_variance=0.09)
    several = model.several_steps(steps)
    found = model.simulate_spectra(
        dimension, seeds=seeds, matrices=["weights"], steps=steps, progress=False
    )
    simulated = np.asarray(found.singular_values.sel(step=steps))[..., 0].ravel()
    sizes = several.spike_at_width(2 * dimension)
    square = sizes.length**2
    predicted = math.sqrt((1 + square) * (2 + square) / square)
    limit = float(several.weight_spike().singular_value)
    mean = float(simulated.mean())
    error = float(simulated.std(ddof=1) / math.sqrt(len(simulated)))
    allowed = _ERRORS * error + _FINITE_SIZE * mean / math.sqrt(2 * dimension)
    return Finding(
        abs(mean - predicted) <= allowed and abs(mean - predicted) < abs(mean - limit),
        f"largest singular value {mean:.3f} ± {error:.3f}, predicted at this width "
        f"{predicted:.3f}, in the limit {limit:.3f}",
        {"simulated": mean, "predicted": predicted, "limit": limit, "standard_error": error},
    )
