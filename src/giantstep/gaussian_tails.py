r"""The mass that the normal density leaves of a function of bounded growth beyond a point.

With :math:`p = 1/2 - q > 0` the logarithm of bound × density has the slope :math:`n/t + a - 2pt`,
decreasing in t for n >= 0 and otherwise below :math:`a - 2pt`, so that

.. math:: \int_L^\infty C t^n e^{at + qt^2} \varphi(t)\,dt
          \le \frac{C L^n e^{aL - pL^2}}{\sqrt{2\pi}\,(2pL - a - \max(n, 0)/L)}

whenever the last bracket is positive.
"""

from __future__ import annotations

from typing import Any

# Balls are objects of python-flint, which is optional.
Ball = Any


def mass_beyond(
    constant: Ball, power: Ball, rate: Ball, curvature: Ball, cutoff: Ball
) -> Ball | None:
    """Bound the integral above for real balls C >= 0, n, a, q and L > 0; None if L is too small."""
    arb = type(cutoff)
    half_line = arb(1) / 2 - curvature
    slope = 2 * half_line * cutoff - rate - power.max(arb(0)) / cutoff
    if not (cutoff > 0 and half_line > 0 and slope > 0):
        return None
    size = constant * cutoff**power * (rate * cutoff - half_line * cutoff * cutoff).exp()
    return (size / (slope * (2 * arb.pi()).sqrt())).upper()
