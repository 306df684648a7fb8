r"""Gauss–Legendre rules with proven errors, and the mass of bounds under a shifted Gaussian.

On [−1, 1] let f be analytic in the ellipse with foci ±1 and semi-axes
:math:`a = (\rho + 1/\rho)/2`, :math:`b = (\rho - 1/\rho)/2`, and \|f\| <= M there. Then its
Chebyshev coefficients obey :math:`|a_k| \le 2M\rho^{-k}`. The rule with n >= 2 nodes is exact for
k < 2n and, by symmetry, for odd k; for even k >= 2n >= 4 it misses the integral of
:math:`T_k`, :math:`-2/(k^2-1)`, by at most :math:`2 + 2/15`. So its error is at most

.. math:: \frac{64}{15}\,\frac{M \rho^{-2n}}{1 - \rho^{-2}}

(Trefethen, *Is Gauss quadrature better than Clenshaw–Curtis?*, SIAM Rev. 50 (2008), theorem 4.5,
which counts n + 1 nodes; as used in arXiv:1802.07942). M is the largest of the bounds of f on boxes
that cover the upper half of the ellipse, which is enough for a function that is real on the line.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from typing import Any, Protocol

from ...ball_library import require_flint
from ...errors import CertificationError
from ...gaussian_tails import mass_beyond
from ...runtime.rules import Rule

# Balls are objects of python-flint, which is optional and imported when first needed.
Ball = Any
# x0, x1, y0, y1 in the coordinates in which the panel is [−1, 1].
Box = tuple[float, float, float, float]

# Sums ρ of semi-axes that are tried, and numbers of nodes.
RADII = (16.0, 11.0, 8.0, 6.0, 4.5, 3.5, 2.75, 2.25, 1.875, 1.625, 1.4375)
ORDERS = (
    *range(2, 24, 2),
    *range(24, 40, 4),
    *range(40, 64, 8),
    *range(64, 128, 16),
    *range(128, 1025, 64),
)
# Upper bounds need few bits.
ROUGH_BITS = 64
# Floating-point numbers of the ellipse are off by less than this.
_MARGIN = 1e-12
_STRIPS = 6


class WorkLimitError(CertificationError):
    """A proof would need more work than is allowed; with more digits it would need still more."""


# For functions that are called for each box.
_flint = functools.cache(require_flint)


@functools.lru_cache(maxsize=256)
def legendre_rule(order: int, bits: int) -> Rule:
    """Return the rule on [−1, 1] in balls of about `bits` bits, without density."""
    flint = _flint()
    with flint.ctx.workprec(bits + 10):
        pairs = [flint.arb.legendre_p_root(order, k, weight=True) for k in range(order)]
    return Rule([x for x, _ in pairs], [w for _, w in pairs], order)


def error_constant(radius: float, order: int) -> Ball:
    """Bound the error on [−1, 1] of the rule for a function with M = 1; order >= 2."""
    rho = _flint().arb(radius)
    return (64 * rho ** (-2 * order) / (15 * (1 - rho**-2))).upper()


def nodes_needed(log_bound: float, log_tolerance: float, radius: float) -> float:
    """Estimate the number of nodes for a bound M; both as logarithms."""
    constant = math.log(64 / 15 / (1 - radius**-2))
    return (log_bound + constant - log_tolerance) / (2 * math.log(radius))


def order_for(needed: float) -> int | None:
    """Return the least order of the ladder that has enough nodes, None beyond the last."""
    return next((order for order in ORDERS if order >= needed), None)


def highest_order(bits: int) -> int:
    """Return the number of nodes beyond which a panel is better cut in two."""
    return min(ORDERS[-1], 16 + bits // 4)


def semi_axes(radius: float) -> tuple[float, float]:
    """Return upper bounds of the semi-axes a and b."""
    return (
        (radius + 1 / radius) / 2 * (1 + _MARGIN),
        (radius - 1 / radius) / 2 * (1 + _MARGIN),
    )


@functools.cache
def half_ellipse(radius: float) -> tuple[Box, ...]:
    """Cover the upper half of the ellipse by boxes."""
    a, b = semi_axes(radius)
    ends = [a * (2 * k / _STRIPS - 1) for k in range(_STRIPS)] + [a]
    boxes = []
    for x0, x1 in itertools.pairwise(ends):
        nearest = 0.0 if x0 <= 0 <= x1 else min(abs(x0), abs(x1))
        height = b * math.sqrt(max(0.0, 1 - (nearest / a) ** 2) + _MARGIN)
        boxes.append((x0, x1, 0.0, height))
    return tuple(boxes)


def quarters(box: Box, radius: float) -> tuple[Box, ...]:
    """Cut a box into four; those outside of the ellipse are left out."""
    x0, x1, y0, y1 = box
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    a, b = semi_axes(radius)
    parts = ((x0, x, y0, y), (x, x1, y0, y), (x0, x, y, y1), (x, x1, y, y1))

    def outside(part: Box) -> bool:
        nearest = 0.0 if part[0] <= 0 <= part[1] else min(abs(part[0]), abs(part[1]))
        return (nearest / a) ** 2 + (part[2] / b) ** 2 > 1 + 1e-9

    return tuple(part for part in parts if not outside(part))


def placed(box: Box, centre: Ball, half: Ball) -> Ball:
    """Return the image of a box of [−1, 1] on a panel, as a complex ball."""
    flint = _flint()
    arb = flint.arb
    x, y = arb(box[0]).union(arb(box[1])), arb(box[2]).union(arb(box[3]))
    return flint.acb(centre + half * x, half * y)


def modulus(value: Ball) -> Ball:
    """Return an upper bound of the absolute value as a real number."""
    return _flint().arb(value.abs_upper())


def log_size(value: Ball) -> float:
    """Return the logarithm of a bound that is finite, −inf for 0; approximately."""
    return float(value.log()) if value > 0 else -math.inf


def disjoint_gaps(points: Iterable[Ball]) -> list[tuple[Ball, Ball]]:
    """Return exact, disjoint intervals that contain the points, from left to right."""
    gaps: list[tuple[Ball, Ball]] = []
    for point in sorted(points, key=lambda x: x.mid()):
        if not point.is_finite():
            raise CertificationError(f"a kink is not known: its enclosure is {point}")
        left, right = point.lower(), point.upper()
        # Sorted by midpoints a wide ball may reach over several of those before it.
        while gaps and left <= gaps[-1][1]:
            left, right = left.min(gaps[-1][0]), right.max(gaps[-1][1])
            gaps.pop()
        gaps.append((left, right))
    return gaps


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

    If :math:`|F(u)| \le C t^n e^{at + qt^2}` for :math:`t = \pm u \ge T \ge 1` and
    :math:`u = \pm(\alpha + By)`, then for :math:`y \ge L > 0`, :math:`\alpha + BL \ge T`, exponents
    of y² and y follow by expansion, and :math:`t \le y\,(B + \max(\alpha, 0)/L)`, so that the bound
    is one of the same form in y, which :func:`giantstep.gaussian_tails.mass_beyond` integrates.

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
