r"""Gaussian convolutions as functions of a complex variable, with proven errors.

The tables of a solver are :math:`t_j(\kappa) = \mathbb{E}_z[F(A(\kappa) + Bz)\,z^j]` with
:math:`A(\kappa) = A(0) + A'\kappa`, entire in κ for any F. Around a centre κ_0 they are power
series in the shift :math:`s = A'(\kappa - \kappa_0)/B` of the Gaussian: from moments of F on a
grid, for any F and shifts that are not large (:class:`LocalTables`), or from the power series of F,
for distances of many B where F is analytic (:class:`DiscTables`). Powers of z insert derivatives in
s.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...ball_library import require_flint
from ...errors import CertificationError, ParameterError
from .grid import BranchedFunction, Grid, GridPanel
from .panels import ROUGH_BITS, Ball, log_size, modulus, shifted_mass

Function = Callable[[Ball, bool], Ball]

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
    r"""Tables from moments of F on a grid of panels, for shifts that are not large.

    F is sampled once on panels of the line of :math:`u = A + Bz`, cut at its kinks
    (:mod:`.proofs.grid`). With :math:`A_0 = A(\kappa_0)`, :math:`z_i = (u_i - A_0)/B` and
    :math:`c_i = w_i F(u_i)\varphi(z_i)/B`,

    .. math:: t_0(\kappa) = \sum_i c_i e^{s z_i - s^2/2} + \text{error}
              = \sum_{k<K} \frac{m_k}{k!} s^k + \text{error},
              \qquad m_k = \sum_i c_i \mathrm{He}_k(z_i) .

    The errors are

    * of the rules: on the ellipse of each panel the integrand is at most
      :math:`|F|\,|z - s|^j \varphi(d)\,e^{(\beta + |\Im s|)^2/2}`, β the semi-axis in units of B
      and d the distance of the real parts;
    * of the line beyond the grid:
      :math:`|\varphi(z - s)| \le \varphi(z) e^{|\Re s||z| + (\Im s)^2/2}` with the bound of F in
      its tails;
    * of the series: :math:`|\mathrm{He}_k(z)| \le \sqrt{k!}\,e^{z^2/4}` (NIST Digital Library of
      Mathematical Functions, 18.14.9) bounds the rest by
      :math:`\sum_i |c_i| e^{z_i^2/4} \sum_{k \ge K} |s|^k/\sqrt{k!}`.
    """

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
_DISC_MARGIN = (-1.0, -0.5, 0.0, 0.5, 1.0)


class DiscTables(SeriesTables):
    r"""The tables of a convolution around a centre, from the power series of F in a disc.

    Where tables move by many widths B within the distances on which F itself varies, series in the
    shift would need a centre every few B. Here F is analytic with :math:`|F| \le M` in a disc of
    radius R around :math:`A_0 = A(\kappa_0)`, and :math:`F = P + \text{rest}` with its Taylor
    polynomial P of degree below K. The expectation of P is exact,

    .. math:: \mathbb{E}\,P(A_0 + B(s + z)) = e^{\partial_s^2/2} P(A_0 + Bs) .

    For complex s the path of integration over the real line of u is led, between
    :math:`A_0 \pm BL`, over points with the imaginary part of :math:`A(\kappa)`, where z is real.
    With :math:`L = |\Re s| + X`, :math:`X \ge 1` and :math:`B(L + |\Re s| + |\Im s|) \le R` the
    errors are at most

    * the rest of the series: :math:`M q^K/(1 - q)\,\mathbb{E}|z|^j`, :math:`q = B(L + |\Im s|)/R`;
    * the ways up and down: :math:`2 |\Im s| M (L + |s|)^j \varphi(X) e^{(\Im s)^2/2}`;
    * the polynomial beyond X: :math:`|P| \le M \sum_{k<K} (B(|s| + |z|)/R)^k` by Cauchy's bound,
      whose terms grow more slowly than :math:`(z/X)^k`, so
      :math:`2 M K X^j \varphi(X)/(X - (K + j)/X)` if :math:`X^2 > K + j`;
    * the line beyond :math:`A_0 \pm BL`, by the bounds of the tails of F.

    Coefficients of P are means over the circle of radius R/2 of F times a phase; with N points they
    miss at most :math:`M R^{-k}\,2^{-N}/(1 - 2^{-N})`.

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
        """Return polynomials; see :meth:`SeriesTables.within`."""
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
        points = ((self._offset + step * x).mid() for x in _DISC_MARGIN)
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
            result = []
            for (i, power), tail in zip(moments, tails, strict=True):
                slope = cutoff - (count + power) / cutoff
                if tail is None or not slope > 0:
                    result.append(arb.pos_inf())
                    continue
                # E|z|^j is at most the root of E z^(2j).
                mean = arb(math.prod(range(1, 2 * power, 2))).sqrt()
                beyond = 2 * count * cutoff**power * density / slope
                total = rest * mean + ways * (length + size) ** power + beyond
                result.append((self._bounds[i] * total + tail).upper())
            return result


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


# The line around a centre is widened in steps until the rest is negligible, at most so far.
_WIDENINGS = 80
# Where the size of a function under the Gaussian is looked at, in standard deviations.
_AROUND = tuple(k / 2 for k in range(-24, 25))


@dataclass(frozen=True)
class Convolution:
    r"""The tables :math:`\mathbb{E}_z[F_i(A(0) + A'\kappa + Bz)\,z^j]`, z ~ N(0, 1).

    Attributes
    ----------
    functions : tuple of BranchedFunction
        The :math:`F_i`, real on the line, with bounds of their tails.
    moments : tuple of pairs of int
        (i, j): index of the function and power of z; one table for each, in this order.
    slope, offset, spread : ball
        A', A(0) and B > 0, real. An exact slope 0 makes the tables constants.

    Raises
    ------
    ParameterError
        If B is not positive, or a pair names no function or a negative power.
    """

    functions: tuple[BranchedFunction, ...]
    moments: tuple[tuple[int, int], ...]
    slope: Ball
    offset: Ball
    spread: Ball

    def __post_init__(self) -> None:
        if not self.functions or not self.moments:
            raise ParameterError("functions and moments have to hold at least one entry each")
        if not self.spread > 0:
            raise ParameterError(f"spread has to be a positive ball, not {self.spread}")
        for function, power in self.moments:
            if not 0 <= function < len(self.functions) or power < 0:
                raise ParameterError(
                    f"moments has to hold pairs (index of a function below {len(self.functions)}, "
                    f"power >= 0), not {(function, power)}"
                )


class ConvolutionTables:
    """A convolution with the grid on which its functions are sampled.

    Parameters
    ----------
    convolution : Convolution
    bits, goal : int
        Working precision, and bits of accuracy relative to the size of the tables.
    most : int
        Panels of the grid at most.

    Raises
    ------
    CertificationError
        If a function is not bounded where its tail bounds do not hold yet.
    """

    def __init__(self, convolution: Convolution, *, bits: int, goal: int, most: int) -> None:
        self._flint = require_flint()
        self._convolution = convolution
        self._bits, self._goal = bits, goal
        self._most, self._sharpness = most, goal
        self._grid = self._made_grid()
        self._middles = [self._middle(f) for f in convolution.functions]

    @property
    def is_constant(self) -> bool:
        """Whether the tables do not depend on κ."""
        return bool(self._convolution.slope == 0)

    @property
    def rate(self) -> float:
        """About \\|A'\\|/B: the tables vary on the scale of its inverse."""
        return abs(float(self._convolution.slope.mid() / self._convolution.spread.mid()))

    def _made_grid(self) -> Grid:
        with self._flint.ctx.workprec(self._bits):
            width = float(self._convolution.spread.mid())
            return Grid(
                self._convolution.functions,
                width,
                bits=self._bits,
                goal=self._sharpness,
                most=self._most,
            )

    def around(self, centre: Ball, distance: float) -> LocalTables:
        r"""Return the tables near a centre.

        Parameters
        ----------
        centre : ball
            Exact and real.
        distance : float
            Largest \\|κ − centre\\| on the line, at which the goal shall be met.

        Raises
        ------
        CertificationError
            If a function is not analytic or does not fall off under the Gaussian as far as can be
            proven, or work is exhausted.
        """
        with self._flint.ctx.workprec(self._bits):
            local = LocalTables(self, self._convolution, self._goal, centre, distance)
            for _ in range(_SHARPENINGS):
                missing = local.missing_bits
                if not missing > 0:
                    break
                # A function that grows is far larger on a panel than under the Gaussian there.
                self._sharpness += math.ceil(min(missing + 2, 2 * self._goal))
                self._grid = self._made_grid()
                local = LocalTables(self, self._convolution, self._goal, centre, distance)
            return local

    def far_around(self, centre: Ball, distance: float) -> DiscTables | None:
        r"""Return the tables near a centre for distances at which \\|s\\| is large, if there are.

        Parameters
        ----------
        centre, distance
            As for :meth:`around`.
        """
        with self._flint.ctx.workprec(self._bits):
            try:
                return DiscTables(
                    self,
                    self._convolution,
                    goal=self._goal,
                    bits=self._bits,
                    centre=centre,
                    distance=distance,
                )
            except CertificationError:
                # The functions are not smooth enough so far.
                return None

    def gathered(self, offset: Ball, shift: Ball) -> tuple[list[GridPanel], Ball, Ball]:
        """Return the panels under the Gaussian around an offset, and L on the left and right."""
        spread = self._convolution.spread
        scales = self._scales(offset)
        tolerance = -(self._goal + 4) * math.log(2)
        cutoff = math.sqrt(-2 * tolerance)
        zero = self._flint.arb(0)
        with self._flint.ctx.workprec(ROUGH_BITS):
            for _ in range(_WIDENINGS):
                reach = self._flint.arb(cutoff)
                masses = self.tails(offset, reach, reach, (shift, zero))
                if all(
                    mass is not None and log_size(mass) <= scales[i] + tolerance
                    for (i, _), mass in zip(self._convolution.moments, masses, strict=True)
                ):
                    break
                cutoff += max(0.5, cutoff / 16)
            else:
                raise CertificationError(
                    "a Gaussian average does not converge fast enough: bounds of its function far "
                    f"out fall too slowly around {float(offset):.6g}"
                )
        panels, left, right = self._grid.covering(
            (offset - spread * cutoff).lower(), (offset + spread * cutoff).upper()
        )
        return panels, ((offset - left) / spread).lower(), ((right - offset) / spread).lower()

    def tails(
        self, offset: Ball, left: Ball, right: Ball, shift: tuple[Ball, Ball]
    ) -> list[Ball | None]:
        """Bound for each moment what lies beyond L on the left and on the right."""
        result = []
        for i, power in self._convolution.moments:
            function = self._convolution.functions[i]
            if function.tails is None:
                raise ParameterError("a function under a Gaussian needs bounds of its tails")
            below, above = function.tails
            total: Ball | None = self._flint.arb(0)
            for bounds, start, cutoff in (
                ((above, below), offset, right),
                ((below, above), -offset, left),
            ):
                mass = shifted_mass(
                    bounds,
                    self._middles[i],
                    offset=start,
                    spread=self._convolution.spread,
                    cutoff=cutoff,
                    power=power,
                    shift=shift,
                )
                total = None if total is None or mass is None else total + mass
            result.append(total)
        return result

    def _middle(self, function: BranchedFunction) -> Ball:
        """Bound a function where its tail bounds do not hold."""
        if function.tails is None:
            raise ParameterError("a function under a Gaussian needs bounds of its tails")
        below, above = function.tails
        with self._flint.ctx.workprec(ROUGH_BITS):
            reach = below.start.max(above.start).upper()
            largest = function.largest(-reach, reach)
        if not largest.is_finite():
            raise CertificationError(
                f"a function under a Gaussian average is not proven bounded within "
                f"{float(reach):g} of 0: it may have a singularity"
            )
        return largest

    def _scales(self, offset: Ball) -> list[float]:
        """Return logs of the functions' mean sizes around an offset; they only steer."""
        with self._flint.ctx.workprec(ROUGH_BITS):
            scales = []
            for function in self._convolution.functions:
                sizes = [
                    log_size(size) - x * x / 2
                    for x in _AROUND
                    if (
                        size := modulus(
                            function.enclosed((offset + self._convolution.spread * x).mid())
                        )
                    ).is_finite()
                ]
                largest = max(sizes, default=-math.inf)
                scales.append(max(largest - 1, -2.0 * self._goal))
            return scales
