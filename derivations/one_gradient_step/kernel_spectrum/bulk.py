"""The bulk of a kernel's spectrum on a grid, with its mass by quadrature."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .curve import KernelCurve, Real

_WIDE = 4.0
_FINEST = 6
_RESOLVED = 1e-10
# Exponent of the sine at a hard edge: densities that diverge as x^(-2/3) or slower are integrable.
_HARD = 6


@dataclass(frozen=True)
class KernelBulk:
    """Density of the bulk on a grid that crowds at the edges.

    Attributes
    ----------
    points, density, cumulative : array (n,)
        Eigenvalues, edges included; the density, with one as the mass of all n eigenvalues;
        the share of eigenvalues up to each point, zeros included, in closed form.
    interval : array (n,) of int
        To which interval of the bulk a point belongs.
    masses, mass_errors : array (k,)
        Mass of each interval by the trapezoidal rule, and by how much it differs from the share
        that ranks give.
    """

    points: Real = field(repr=False)
    density: Real = field(repr=False)
    cumulative: Real = field(repr=False)
    interval: Real = field(repr=False)
    masses: Real
    mass_errors: Real


def kernel_density(curve: KernelCurve, x: Real) -> Real:
    """Return the density at points of any shape; zero off the bulk, infinite at a hard edge."""
    points = np.asarray(x, dtype=float)
    flat = points.ravel()
    found = np.zeros(flat.shape)
    edges = curve.float_edges
    inside = np.zeros(flat.shape, dtype=bool)
    for low, high in edges:
        inside |= (flat > low) & (flat < high)
    ratio = float(curve.alpha) / float(curve.beta)
    with np.errstate(all="ignore"):
        root = curve.effective_ridge(flat[inside].astype(complex))
        values = (1 / root).imag / (math.pi * ratio)
    # At an edge rounding decides on the sign of the last digit.
    found[inside] = np.where(np.isfinite(values), np.maximum(values, 0), 0)
    found[(flat == 0) & (edges[0, 0] == 0)] = math.inf
    return found.reshape(points.shape)


def kernel_bulk(curve: KernelCurve, points: int) -> KernelBulk:
    """Return the bulk on a grid of so many points in each interval."""
    rows: list[tuple[Any, ...]] = []
    start = float(curve.atom)
    for number, ((low, high), mass) in enumerate(zip(curve.float_edges, curve.masses, strict=True)):
        x, density, total = _interval(curve, low, high, points, float(mass))
        share = np.empty(points)
        share[1:-1] = curve.share_below(x[1:-1])
        share[0], share[-1] = start, start + float(mass)
        # Rounding must not make it fall.
        share = np.maximum.accumulate(np.clip(share, share[0], share[-1]))
        rows.append((x, density, share, np.full(points, number), total, abs(total - float(mass))))
        start += float(mass)
    points_, density, cumulative, interval = (
        np.concatenate([row[k] for row in rows]) for k in range(4)
    )
    return KernelBulk(
        points=points_,
        density=density,
        cumulative=cumulative,
        interval=interval,
        masses=np.array([row[4] for row in rows]),
        mass_errors=np.array([row[5] for row in rows]),
    )


def _interval(
    curve: KernelCurve, low: float, high: float, points: int, mass: float
) -> tuple[Real, Real, float]:
    """Return grid and density of one interval, and its mass on a grid as fine as that takes."""
    every, before = 1, math.inf
    while True:
        angle = np.linspace(0, math.pi, every * (points - 1) + 1)
        x, rate = _grid(low, high, angle)
        density = kernel_density(curve, x)
        with np.errstate(invalid="ignore"):
            change = np.where(rate > 0, density * rate, 0)
        total = float(np.sum(change[1:-1]) * angle[1])
        settled = abs(total - before) <= _RESOLVED * mass
        if settled or every >= 2**_FINEST:
            return x[::every], density[::every], total
        every, before = 2 * every, total


def _grid(low: float, high: float, angle: Real) -> tuple[Real, Real]:
    """Return points at angles from 0 to π, and dx/dangle.

    x = low + (high - low) sin²(angle/2), or the same of log x for a wide interval: square-root
    edges become smooth, and the trapezoidal rule converges geometrically.
    """
    half = angle / 2
    sine, cosine = np.sin(half), np.cos(half)
    cosine[-1] = 0
    if low == 0:
        x, rate = high * sine**_HARD, high * _HARD / 2 * sine ** (_HARD - 1) * cosine
    elif high > _WIDE * low:
        span = math.log(high) - math.log(low)
        x = low * np.exp(span * sine**2)
        rate = x * span * sine * cosine
    else:
        x, rate = low + (high - low) * sine**2, (high - low) * sine * cosine
    x[0], x[-1] = low, high
    return np.clip(x, low, high), rate
