r"""Mass of a function of bounded growth under a shifted Gaussian, beyond a point.

If :math:`|F(u)| \le C t^n e^{at + qt^2}` for :math:`t = \pm u \ge T \ge 1` and
:math:`u = A_0 + Bz`, then with :math:`\alpha = \pm A_0` and for :math:`z = \pm y`,
:math:`y \ge L > 0`, :math:`\alpha + BL \ge T`, exponents of z² and z follow by expansion, and
:math:`t \le y\,(B + \max(\alpha, 0)/L)`, so that the bound is one of the same form in y,
which :func:`giantstep.gaussian_tails.mass_beyond` integrates.
"""

from __future__ import annotations

from typing import Protocol

from ..gaussian_tails import mass_beyond
from .certified_panels import Ball


class TailBound(Protocol):
    r"""The bound C t^n exp(a t + q t²) for t >= start; all entries are real balls, start >= 1."""

    @property
    def constant(self) -> Ball:
        """C >= 0."""

    @property
    def power(self) -> Ball:
        """The exponent n."""

    @property
    def rate(self) -> Ball:
        """The coefficient a."""

    @property
    def curvature(self) -> Ball:
        """The coefficient q."""

    @property
    def start(self) -> Ball:
        """Where the bound begins to hold."""


def shifted_mass(
    bounds: tuple[TailBound, TailBound],
    middle: Ball,
    *,
    offset: Ball,
    spread: Ball,
    cutoff: Ball,
    power: int,
    shift: tuple[Ball, Ball],
) -> Ball | None:
    r"""Bound :math:`\int_L^\infty |F(\alpha + By)|\,|y - s|^j\,|\varphi(y - s)|\,dy`.

    Parameters
    ----------
    bounds : pair of TailBound
        Of F in this direction, and in the other one.
    middle : ball
        Bound of \|F\| between the starts of these bounds.
    offset, spread, cutoff : ball
        α, B and L >= 1.
    power : int
        j.
    shift : pair of ball
        Bounds of \|Re s\| and \|Im s\|.

    Returns
    -------
    ball or None
        None if L is too small.
    """
    arb = type(cutoff)
    zero = arb(0)
    real, imaginary = shift
    # |y − s| <= y (1 + |s|/L); |φ(y − s)| <= φ(y) exp(|Re s| y + (Im s)²/2).
    factor = (1 + (real + imaginary) / cutoff) ** power * (imaginary**2 / 2).exp()
    bound, other = bounds
    begin = (bound.start - offset) / spread
    total = zero
    if not cutoff >= begin:
        # The first arguments may lie between the starts of the bounds or in the other tail.
        farthest = (-offset - spread * cutoff).max(other.start)
        growth = other.rate.max(zero) * farthest + other.curvature.max(zero) * farthest**2
        largest = other.constant * farthest ** other.power.max(zero) * growth.exp()
        inside = mass_beyond(middle.max(largest) * factor, zero + power, real, zero, cutoff)
        if inside is None:
            return None
        total, cutoff = total + inside, begin.upper().max(cutoff)
    steepest = spread + offset.max(zero) / cutoff
    n = bound.power.max(zero)
    a, q = bound.rate, bound.curvature
    outside = mass_beyond(
        bound.constant * steepest**n * (a * offset + q * offset * offset).exp() * factor,
        n + power,
        a * spread + 2 * q * offset * spread + real,
        q * spread**2,
        cutoff,
    )
    return None if outside is None else (total + outside).upper()
