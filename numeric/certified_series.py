r"""Gaussian convolutions around a centre, as power series in the shift of the Gaussian.

On a fixed grid of panels of the line of :math:`u = A + Bz`, cut at the kinks of F, F is sampled
once (:mod:`.certified_grid`). Around a
centre :math:`A_0 = A(\kappa_0)` and with :math:`s = A'(\kappa - \kappa_0)/B` the shift of the
Gaussian gives, with :math:`z_i = (u_i - A_0)/B` and :math:`c_i = w_i F(u_i)\varphi(z_i)/B`,

.. math:: t_0(\kappa) = \sum_i c_i e^{s z_i - s^2/2} + \text{error}
          = \sum_{k<K} \frac{m_k}{k!} s^k + \text{error},
          \qquad m_k = \sum_i c_i \mathrm{He}_k(z_i) ,

and the others follow from derivatives in s, which insert He polynomials. The errors are

* of the rules: on the ellipse of each panel the integrand is at most
  :math:`|F|\,|z - s|^j \varphi(d)\,e^{(\beta + |\Im s|)^2/2}`, β the semi-axis in units of B and d
  the distance of the real parts;
* of the line beyond the grid: :math:`|\varphi(z - s)| \le \varphi(z) e^{|\Re s||z| + (\Im s)^2/2}`
  with the bound of F in its tails;
* of the series: :math:`|\mathrm{He}_k(z)| \le \sqrt{k!}\,e^{z^2/4}` (NIST Digital Library of
  Mathematical Functions, 18.14.9) bounds the rest by
  :math:`\sum_i |c_i| e^{z_i^2/4} \sum_{k \ge K} |s|^k/\sqrt{k!}`.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from ..ball_library import require_flint
from ..errors import CertificationError
from .certified_panels import ROUGH_BITS, Ball, log_size

if TYPE_CHECKING:
    from .certified_moments import Convolution, ConvolutionTables

# Relative accuracy, in bits, of the shorter series that bound the tables on boxes.
BOX_BITS = 24
_LONGEST_SERIES = 2000
# Powers of nodes that are held at once.
_ENTRIES = 2**17


class SeriesTables(ABC):
    """The tables of a convolution around a centre, as series in s with proven remainders.

    Parameters
    ----------
    tables : ConvolutionTables
    convolution : Convolution
    centre : ball
        Exact and real.
    distance : float
        Largest distance on the line.
    """

    _series: list[Any]
    _errors: list[Ball]

    def __init__(
        self, tables: ConvolutionTables, convolution: Convolution, centre: Ball, distance: float
    ) -> None:
        self._flint = require_flint()
        self._tables, self._convolution, self.centre = tables, convolution, centre
        self._distance = self._flint.arb(distance)
        self._per_unit = convolution.slope / convolution.spread
        self._offset = convolution.offset + convolution.slope * centre

    def shift(self, distance: Ball) -> Ball:
        """Return the bound of \\|s\\| for a distance from the centre."""
        return abs(self._per_unit * distance).upper()

    def at(self, point: Ball) -> list[Ball]:
        """Return the tables at a real point within the distance of the centre."""
        delta = point - self.centre
        if not abs(delta) <= self._distance and not self._tables.is_constant:
            raise CertificationError(f"{point} is too far from the centre {self.centre}")
        s = self._per_unit * delta
        arb = self._flint.arb
        return [
            series(s) + arb(0, error)
            for series, error in zip(self._series, self._errors, strict=True)
        ]

    @abstractmethod
    def within(self, distance: Ball, height: Ball) -> list[Any]:
        r"""Return the tables as polynomials of κ − centre, with their errors in the constant terms.

        They hold where the real part of κ − centre is within a distance and the imaginary part
        within a height: for each such κ the table is a value of the polynomial for some numbers in
        the balls of its coefficients.
        """

    def _polynomial(self, series: Any, error: Ball) -> Any:
        """Return a series in s, with its error, as a polynomial of κ − centre."""
        flint = self._flint
        ball = flint.arb(0, error)
        return flint.acb_poly(series)(flint.acb_poly([0, self._per_unit])) + flint.acb(ball, ball)

    def _moment(self, series: Any, power: int) -> Any:
        """Return the series for z**power: z**j is a combination of He, He_m the m-th derivative."""
        total = self._flint.arb_poly([])
        for m, coefficient in hermite_coefficients(power):
            derivative = series
            for _ in range(m):
                derivative = derivative.derivative()
            total += derivative * coefficient
        return total


class LocalTables(SeriesTables):
    """Tables from moments of F on a grid of panels, for shifts that are not large."""

    def __init__(
        self,
        tables: ConvolutionTables,
        convolution: Convolution,
        goal: int,
        centre: Ball,
        distance: float,
    ) -> None:
        super().__init__(tables, convolution, centre, distance)
        flint = self._flint
        shift = self.shift(self._distance)
        self._panels, self._left, self._right = tables.gathered(self._offset, shift)
        self._highest = max((power for _, power in convolution.moments), default=0)
        nodes, weights, self._norms, means = self._weights()
        # What is left out is bounded by the norms, which may be far above the means.
        excess = max(
            (log_size(n) - m for n, m in zip(self._norms, means, strict=True) if m > -math.inf),
            default=0.0,
        ) / math.log(2)
        self._count = self._terms(shift, goal + 4 + math.ceil(min(max(excess, 0), 4 * goal)))
        sums = self._sums(nodes, weights)
        self._series = [
            self._moment(sums[i], power).truncate(self._count - power)
            for i, power in convolution.moments
        ]
        self._errors = self._bounds(shift, flint.arb(0), self._count)
        zero = flint.arb(0)
        errors = [log_size(e) for e in self._rule_errors(shift, zero, shift)]
        #: Bits by which the rules miss the goal; of tables that are tiny less is asked.
        self.missing_bits = max(
            (error - max(means[i], -goal / 2 * math.log(2))) / math.log(2) + goal
            for error, (i, _) in zip(errors, convolution.moments, strict=True)
        )

    def within(self, distance: Ball, height: Ball) -> list[Any]:
        """Return polynomials; see :meth:`SeriesTables.within`."""
        real, imaginary = self.shift(distance), self.shift(height)
        terms = min(self._terms((real + imaginary).upper(), BOX_BITS), self._count)
        return [
            self._polynomial(list(series)[: terms - power], error)
            for series, error, (_, power) in zip(
                self._series,
                self._bounds(real, imaginary, terms),
                self._convolution.moments,
                strict=True,
            )
        ]

    def _terms(self, shift: Ball, accuracy: int) -> int:
        """Return how many moments give an accuracy, in bits relative to the norm."""
        distance, power = float(shift), self._highest
        for k in range(1, _LONGEST_SERIES):
            ratio = distance * math.sqrt(k + 1 + power) / (k + 1)
            if ratio > 0.75:
                continue
            size = math.lgamma(k + power + 1) / 2 - math.lgamma(k + 1)
            size += k * math.log(distance) if distance > 0 else -math.inf
            if size <= -accuracy * math.log(2):
                return k + power
        raise CertificationError(
            f"a series around a centre would need more than {_LONGEST_SERIES} terms"
        )

    def _weights(self) -> tuple[list[Ball], list[list[Ball]], list[Ball], list[float]]:
        """Return z_i, and for each function the c_i, the norm and the logarithm of its mean size.

        The last only steers.
        """
        flint, convolution = self._flint, self._convolution
        density = 1 / ((2 * flint.arb.pi()).sqrt() * convolution.spread)
        inverse = 1 / convolution.spread
        nodes, samples, roots = [], [], []
        for panel in self._panels:
            for u, values in panel.samples:
                z = (u - self._offset) * inverse
                nodes.append(z)
                samples.append(values)
                roots.append((-z * z / 4).exp())
        norms, weights, means = [], [], []
        for i in range(len(convolution.functions)):
            halves = [values[i] * root for values, root in zip(samples, roots, strict=True)]
            weights.append(
                [half * root * density for half, root in zip(halves, roots, strict=True)]
            )
            with flint.ctx.workprec(ROUGH_BITS):
                norms.append((sum(map(abs, halves), flint.arb(0)) * density).upper())
                means.append(log_size(sum(map(abs, weights[-1]), flint.arb(0)).upper()))
        return nodes, weights, norms, means

    def _sums(self, nodes: list[Ball], weights: list[list[Ball]]) -> list[Any]:
        """Return for each function the series of t_0 in s."""
        flint, count = self._flint, self._count
        # Powers up to a step and, for each step, weights times a power: fewer than all powers.
        step = math.isqrt(count * len(weights)) + 1
        step = max(1, min(step, count, _ENTRIES // len(nodes)))
        powers, current = [], [flint.arb(1)] * len(nodes)
        for _ in range(step):
            powers.append(current)
            current = [x * z for x, z in zip(current, nodes, strict=True)]
        rows = flint.arb_mat(powers)
        sums: list[list[Ball]] = []
        while len(sums) < count:
            sums += (rows * flint.arb_mat(weights).transpose()).tolist()
            weights = [[w * x for w, x in zip(column, current, strict=True)] for column in weights]
        factorials = [flint.arb(1) / flint.fmpz(math.factorial(k)) for k in range(count)]
        # exp(-s**2/2)
        gaussian = flint.arb_poly(
            [
                flint.arb(0) if k % 2 else flint.arb(-0.5) ** (k // 2) / math.factorial(k // 2)
                for k in range(count)
            ]
        )
        series = []
        for i in range(len(weights)):
            plain = [sums[k][i] * factorials[k] for k in range(count)]
            series.append((flint.arb_poly(plain) * gaussian).truncate(count))
        return series

    def _bounds(self, real: Ball, imaginary: Ball, terms: int) -> list[Ball]:
        """Bound the errors of the tables of so many terms, for bounds of the parts of s."""
        flint, convolution = self._flint, self._convolution
        with flint.ctx.workprec(ROUGH_BITS):
            size = (real + imaginary).upper()
            rules = self._rule_errors(real, imaginary, size)
            tails = self._tables.tails(self._offset, self._left, self._right, (real, imaginary))
            total = []
            for (i, power), rule, tail in zip(convolution.moments, rules, tails, strict=True):
                rest = self._norms[i] * self._remainder(power, size, terms)
                known = flint.arb.pos_inf() if tail is None else tail
                total.append((rule + known + rest).upper())
            return total

    def _rule_errors(self, real: Ball, imaginary: Ball, size: Ball) -> list[Ball]:
        flint, convolution = self._flint, self._convolution
        zero, spread = flint.arb(0), flint.arb(convolution.spread)
        totals = [zero] * len(convolution.moments)
        for panel in self._panels:
            half = panel.half / spread
            a, b = half * panel.axes[0], half * panel.axes[1]
            z = abs(panel.centre - self._offset) / spread
            distance = (z - a - real).lower().max(zero)
            growth = (((b + imaginary) ** 2 - distance**2) / 2).exp()
            for k, (i, power) in enumerate(convolution.moments):
                factor = growth if not power else growth * (z + a + size) ** power
                totals[k] += panel.errors[i] * factor
        density = 1 / ((2 * flint.arb.pi()).sqrt() * spread)
        return [total * density for total in totals]

    def _remainder(self, power: int, size: Ball, terms: int) -> Ball:
        """Bound the terms of the series for z**power that are left out, for a norm 1."""
        arb, first = self._flint.arb, terms - power
        total = arb(0)
        for m, coefficient in hermite_coefficients(power):
            ratio = size * arb(first + 1 + m).sqrt() / (first + 1)
            if not ratio < 1:
                return arb.pos_inf()
            term = size**first * (arb(first + m).fac()).sqrt() / arb(first).fac()
            total += coefficient * term / (1 - ratio)
        return total


@functools.cache
def hermite_coefficients(power: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs (m, c) with z**power = Σ c He_m(z); all c are positive."""
    return tuple(
        (
            power - 2 * k,
            math.factorial(power) // (2**k * math.factorial(k) * math.factorial(power - 2 * k)),
        )
        for k in range(power // 2 + 1)
    )
