r"""Gaussian convolutions around a centre, from power series of their functions in a disc.

Where :math:`t_j(\kappa) = \mathbb{E}_z[F(A(\kappa) + Bz)\,z^j]` moves by many widths B within the
distances on which F itself varies, series in the shift of the Gaussian (:mod:`.certified_series`)
would need a centre every few B. Here F is analytic with :math:`|F| \le M` in a disc of radius R
around :math:`A_0 = A(\kappa_0)`, and :math:`F = P + \text{rest}` with its Taylor polynomial P of
degree below K. With :math:`s = A'(\kappa - \kappa_0)/B` the expectation of P is exact,

.. math:: \mathbb{E}\,P(A_0 + B(s + z)) = e^{\partial_s^2/2} P(A_0 + Bs) ,

and powers of z insert derivatives in s. For complex s the path of integration over the real line
of u is led, between :math:`A_0 \pm BL`, over points with the imaginary part of :math:`A(\kappa)`,
where z is real. With :math:`L = |\Re s| + X`, :math:`X \ge 1` and
:math:`B(L + |\Re s| + |\Im s|) \le R` the errors are at most

* the rest of the series: :math:`M q^K/(1 - q)\,\mathbb{E}|z|^j`, :math:`q = B(L + |\Im s|)/R`;
* the ways up and down: :math:`2 |\Im s| M (L + |s|)^j \varphi(X) e^{(\Im s)^2/2}`;
* the polynomial beyond X: :math:`|P| \le M \sum_{k<K} (B(|s| + |z|)/R)^k` by Cauchy's bound, whose
  terms grow more slowly than :math:`(z/X)^k`, so
  :math:`2 M K X^j \varphi(X)/(X - (K + j)/X)` if :math:`X^2 > K + j`;
* the line beyond :math:`A_0 \pm BL`, by the bounds of the tails of F.

Coefficients of P are means over the circle of radius R/2 of F times a phase; with N points they
miss at most :math:`M R^{-k}\,2^{-N}/(1 - 2^{-N})`.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from ..ball_library import require_flint
from ..errors import CertificationError
from .certified_panels import ROUGH_BITS, Ball, log_size, modulus
from .certified_series import BOX_BITS, SeriesTables

if TYPE_CHECKING:
    from collections.abc import Callable

    from .certified_moments import Convolution, ConvolutionTables

    Function = Callable[[Ball, bool], Ball]

# Radius of the disc: this many times the distance on the line, and reaches of the normal law.
_ROOM, _REACHES = 5.0, 2.0
# The upper half of the disc is covered by squares, so many along a radius.
_SQUARES = 5
# Terms of the series at most, per bit of accuracy.
_TERMS_PER_BIT = 2.0
_GUARD_BITS = 6
# How often accuracy is added where errors are too large.
_SHARPENINGS = 3
# Where the size of a function is looked at, in units of the distance.
_AROUND = (-1.0, -0.5, 0.0, 0.5, 1.0)


class DiscTables(SeriesTables):
    """The tables of a convolution around a centre, as power series with proven remainders.

    Parameters
    ----------
    tables : ConvolutionTables
    convolution : Convolution
    goal, bits : int
        Bits of accuracy relative to the size of the tables, and working precision.
    centre : ball
        Exact and real.
    distance : float
        Largest distance on the line, at which the goal shall be met.

    Raises
    ------
    CertificationError
        If a function is not proven analytic in a disc that is large enough, or needs too many
        terms.
    """

    def __init__(
        self,
        tables: ConvolutionTables,
        convolution: Convolution,
        *,
        goal: int,
        bits: int,
        centre: Ball,
        distance: float,
    ) -> None:
        super().__init__(tables, convolution, centre, distance)
        flint, self._goal = self._flint, goal
        with flint.ctx.workprec(ROUGH_BITS):
            step = abs(convolution.slope * self._distance).upper()
            reach = math.sqrt(2 * (goal + _GUARD_BITS) * math.log(2))
            self._radius = (_ROOM * step + _REACHES * reach * convolution.spread).upper()
            functions = self._functions()
            self._bounds = [self._bound(function) for function in functions]
            sizes = [self._size(function, step) for function in functions]
            # Bits by which functions are larger in the disc than near the centre.
            self._excess = max(
                0.0,
                *(
                    (log_size(m) - size) / math.log(2)
                    for m, size in zip(self._bounds, sizes, strict=True)
                ),
            )
            wanted = [sizes[i] - goal * math.log(2) for i, _ in convolution.moments]
            self._errors = self._line_errors(wanted)
        extra = math.ceil(self._excess)
        with flint.ctx.workprec(bits + extra):
            self._series = self._made_series(functions, goal + extra + _GUARD_BITS)

    def within(self, distance: Ball, height: Ball) -> list[Any]:
        """Return polynomials; see :meth:`.certified_series.SeriesTables.within`."""
        errors = self._error_bounds(self.shift(distance), self.shift(height), BOX_BITS)
        return [
            self._polynomial(series, error)
            for series, error in zip(self._series, errors, strict=True)
        ]

    # ------------------------------------------------------------------ the series

    def _functions(self) -> list[Function]:
        left, right = self._offset - self._radius, self._offset + self._radius
        return [f.between(left.lower(), right.upper()) for f in self._convolution.functions]

    def _bound(self, function: Function) -> Ball:
        """Bound a function on the disc, on which it is analytic."""
        flint, arb = self._flint, self._flint.arb
        side = self._radius / _SQUARES
        largest = arb(0)
        for column in range(-_SQUARES, _SQUARES):
            for row in range(_SQUARES):
                if min(abs(column), abs(column + 1)) ** 2 + row**2 > _SQUARES**2:
                    continue
                x = side * column + (side * arb(0.5) + arb(0, (side * arb(0.5)).upper()))
                y = side * row + (side * arb(0.5) + arb(0, (side * arb(0.5)).upper()))
                size = modulus(function(flint.acb(self._offset + x, y), True))
                if not size.is_finite():
                    raise CertificationError("a function is not proven analytic in a disc")
                largest = largest.max(size)
        return largest.upper()

    def _size(self, function: Function, step: Ball) -> float:
        """Return the logarithm of the size of a function near the centre; it only steers."""
        acb = self._flint.acb
        points = ((self._offset + step * x).mid() for x in _AROUND)
        largest = max(log_size(modulus(function(acb(u), False))) for u in points)
        return max(largest, -self._goal / 2 * math.log(2))

    def _line_errors(self, wanted: list[float]) -> list[Ball]:
        """Return the errors on the line, whose logarithms are as wanted."""
        shift, zero = self.shift(self._distance), self._flint.arb(0)
        for _ in range(_SHARPENINGS):
            self._count = self._terms(shift)
            errors = self._error_bounds(shift, zero, self._goal)
            missing = max(log_size(e) - w for e, w in zip(errors, wanted, strict=True))
            if not missing > 0:
                return errors
            # A function may be far larger beyond the disc.
            self._excess += min(missing / math.log(2) + 2, 2.0 * self._goal)
        raise CertificationError("a power series in a disc misses its goal")

    def _terms(self, shift: Ball) -> int:
        """Return how many terms reach the goal on the line."""
        accuracy = self._goal + self._excess + _GUARD_BITS
        reach = math.sqrt(2 * accuracy * math.log(2))
        ratio = float(self._convolution.spread * (shift + reach) / self._radius)
        terms = math.inf if ratio >= 1 else accuracy / -math.log2(ratio)
        if not terms <= _TERMS_PER_BIT * self._goal:
            raise CertificationError("a power series in a disc would need too many terms")
        return math.ceil(terms) + 2

    def _made_series(self, functions: list[Function], accuracy: int) -> list[Any]:
        """Return the series of the moments in s."""
        flint, arb = self._flint, self._flint.arb
        count = self._count
        points = 2 * math.ceil(max(count, accuracy) / 2)
        phases, matrix = _circle(points, count, flint.ctx.prec)
        half = self._radius / 2
        columns = []
        for function in functions:
            values = [function(self._offset + half * phase, True) for phase in phases]
            columns.append([v.real for v in values] + [v.imag for v in values])
        means = (matrix * flint.arb_mat(columns).transpose()).tolist()
        missed = arb(2) ** -points / (1 - arb(2) ** -points)
        ratio, share = self._convolution.spread / half, self._convolution.spread / self._radius
        series = []
        for i, bound in enumerate(self._bounds):
            scale, error, coefficients = arb(1), bound * missed, []
            for k in range(count):
                coefficients.append(means[k][i] * scale + arb(0, error.upper()))
                scale, error = scale * ratio, error * share
            series.append(_smoothed(flint.arb_poly(coefficients)))
        return [self._moment(series[i], power) for i, power in self._convolution.moments]

    # ------------------------------------------------------------------ errors

    def _cutoff(self, imaginary: Ball, accuracy: int) -> Ball:
        """Return X."""
        arb = self._flint.arb
        highest = max(power for _, power in self._convolution.moments)
        # |z| and the ways up and down are at most so long.
        longest = log_size(self._radius / self._convolution.spread) / math.log(2)
        bits = accuracy + self._excess + _GUARD_BITS + (1 + highest) * max(longest, 0.0)
        wanted = imaginary * imaginary + 2 * bits * math.log(2)
        return wanted.max(arb(1.5 * (self._count + highest + 1))).sqrt().upper()

    def _error_bounds(self, real: Ball, imaginary: Ball, accuracy: int) -> list[Ball]:
        """Bound the errors of the tables, for bounds of the parts of s."""
        flint, arb = self._flint, self._flint.arb
        with flint.ctx.workprec(ROUGH_BITS):
            spread, count = self._convolution.spread, self._count
            cutoff = self._cutoff(imaginary, accuracy)
            length, size = real + cutoff, real + imaginary
            moments = self._convolution.moments
            if not spread * (length + size) <= self._radius:
                return [arb.pos_inf()] * len(moments)
            ratio = spread * (length + imaginary) / self._radius
            rest = ratio**count / (1 - ratio) if ratio < 1 else arb.pos_inf()
            density = (-cutoff * cutoff / 2).exp() / (2 * arb.pi()).sqrt()
            ways = 2 * imaginary * density * (imaginary * imaginary / 2).exp()
            moved = self._offset + spread * arb(0, real.upper())
            tails = self._tables.tails(moved, cutoff, cutoff, (arb(0), imaginary))
            found = []
            for (i, power), tail in zip(moments, tails, strict=True):
                slope = cutoff - (count + power) / cutoff
                if tail is None or not slope > 0:
                    found.append(arb.pos_inf())
                    continue
                # E|z|^j is at most the root of E z^(2j).
                mean = arb(math.prod(range(1, 2 * power, 2))).sqrt()
                beyond = 2 * count * cutoff**power * density / slope
                total = rest * mean + ways * (length + size) ** power + beyond
                found.append((self._bounds[i] * total + tail).upper())
            return found


def _smoothed(series: Any) -> Any:
    """Return exp(D²/2) of a polynomial, D the derivative: its mean over a normal shift."""
    total, term, m = series, series, 0
    while term.degree() >= 2:
        m += 1
        term = term.derivative().derivative() * (require_flint().arb(1) / (2 * m))
        total += term
    return total


@functools.lru_cache(maxsize=8)
def _circle(points: int, count: int, bits: int) -> tuple[tuple[Ball, ...], Any]:
    """Return points of the upper half of the unit circle, and the matrix to Fourier coefficients.

    The matrix acts on the real parts and after them the imaginary parts of the values of a function
    that is real on the line.
    """
    flint = require_flint()
    with flint.ctx.workprec(bits + 10):
        angles = [flint.acb(flint.arb(m) / points).exp_pi_i() for m in range(2 * points)]
        half = points // 2
        rows = []
        for k in range(count):
            row = [angles[k * (2 * j + 1) % (2 * points)] for j in range(half)]
            rows.append([2 * x.real / points for x in row] + [2 * x.imag / points for x in row])
        return tuple(angles[2 * j + 1] for j in range(half)), flint.arb_mat(rows)
