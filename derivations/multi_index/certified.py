r"""Thresholds of weak recovery with proven digits: their integrals in ball arithmetic.

With the measures :math:`B(dy) = \mathbb{E}_u P(dy\mid u)` and :math:`A = \mathbb{E}_u (u^2-1)P`,
:math:`1/\alpha_c = \int A^2/B`. Of labels with Gaussian noise both are integrals over u, taken for
\|u\| ≤ U, and y is taken between bounds. Since :math:`A^2/B` is convex and homogeneous, leaving out
\|u\| > U or some labels changes the integral, upwards, by at most the mean of
:math:`(u^2-1)^2` over what is left out; downwards, because :math:`\int A^2/B` is the largest value
of :math:`2\int mA - \int m^2B` and \|m\| ≤ U² is enough for the part that is kept, by at most
:math:`\mathbb{E}[(2U^2|u^2-1| + U^4)\,1_{|u|>U}]`.

Of a polynomial without noise :math:`1/\alpha_c = \mathbb{E}_u G(f(u))^2` with the weighted mean
:math:`G = \sum w_i(u_i^2-1)/\sum w_i`, :math:`w_i = \varphi(u_i)/|f'(u_i)|`, over the points with
the label of u. Between the points at which their number changes these are analytic functions of u,
enclosed by Newton's method on complex balls. Next to such a point :math:`G^2` is at most the
largest :math:`(u_i^2-1)^2`; for \|u\| > U it is at most :math:`16u^4`, because for a polynomial of
degree n with leading coefficient 1 and :math:`\delta = \sum_k|a_k|U^{k-n}\le 1/3` all \|u_i\| are
at most 2\|u\|.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import sympy as sp

from ...ball_library import require_flint
from ...errors import CertificationError, UnsupportedExpressionError
from ...symbolic.exact.ball_functions import Ball, BallEvaluator, BallFunction
from ...symbolic.exact.enclosures import Enclosure
from ...symbolic.expressions.activations import z
from ...symbolic.expressions.regularity import Parity, analyse
from ...symbolic.gaussian.enclosures import (
    PRECISION,
    analytic_branches,
    enclosed_value,
    enclosure_of,
)
from ..certificates.certificate import LIBRARIES, CertifiedValues
from .channels import Channel
from .thresholds import EASY, Threshold

_GUARD = 40
_EVALUATIONS = 10**6
_CELLS = 256
_NEWTON = 60


def certified_threshold(channel: Channel, found: Threshold, *, digits: int = 15) -> CertifiedValues:
    """Return a proven interval of α_c.

    Parameters
    ----------
    channel : Channel
    found : Threshold
        Its kind, decided exactly.
    digits : int

    Raises
    ------
    UnsupportedExpressionError
        If there is no number or no proof for this kind of law.
    CertificationError
        If the interval is wider than asked for.
    """
    if found.kind != EASY:
        raise UnsupportedExpressionError(
            f"the first directions of {channel.name!r} are {found.kind}: {found.reason}; that is "
            "decided exactly, there is no threshold to enclose"
        )
    if found.exact is None:
        certain = channel.is_certain and channel.directions == 1
        value = (_of_preimages if certain else _of_noisy_labels)(channel, digits)
    elif found.exact.has(sp.Integral):
        value = _of_products(digits)
    else:
        value = enclosed_value(found.exact, digits)
    if not value.radius <= abs(value.midpoint) / sp.Integer(10) ** digits:
        raise CertificationError(
            f"the interval of the threshold, {value}, is wider than for {digits} digits; ask for "
            "fewer"
        )
    return CertifiedValues(
        "weak recovery", {"threshold": value},
        "1/alpha_c, the mean square of E[u u^T - 1|y] in its largest direction, has this inverse",
        (*LIBRARIES, found.reason), digits,
    )  # fmt: skip


def _bits(digits: int) -> int:
    return int(3.33 * digits) + _GUARD


def _integral(function: Callable[[Ball, bool], Ball], low: Ball, high: Ball, goal: Ball) -> Ball:
    flint = require_flint()
    value = flint.acb.integral(
        function, flint.acb(low), flint.acb(high), abs_tol=goal, rel_tol=goal,
        eval_limit=_EVALUATIONS,
    )  # fmt: skip
    if not value.is_finite():
        raise CertificationError("an integral over labels has no finite enclosure")
    return value.real


def _of_products(digits: int) -> Enclosure:
    r"""Enclose :math:`\pi/(2\int_0^\infty y^2K_1^2/K_0\,dy)` with :math:`y = e^x`.

    Below ε the integrand is at most :math:`1/K_0(\varepsilon)`, as :math:`yK_1` decreases from 1;
    above R it is at most :math:`(y+1)^2K_0\le(y+1)^2\sqrt{\pi/2y}\,e^{-y}` (Segura, J. Math. Anal.
    Appl. 374 (2011) 516, for :math:`K_1/K_0\le 1 + 1/y`).
    """
    flint = require_flint()
    farthest = 3 * (digits + 8)
    # Arb subtracts functions that grow from others to get those that decay.
    with PRECISION, flint.ctx.workprec(_bits(digits) + 3 * farthest):
        arb, acb = flint.arb, flint.acb
        goal = arb(10) ** -(digits + 3)

        def weight(y: Ball, analytic: bool) -> Ball:
            if not y.real > 0:
                # Only there is K_0 known to be analytic and without zeros.
                return acb("nan")
            first, second = _bessel(y)
            return (y * second) ** 2 / first

        def near_zero(x: Ball, analytic: bool) -> Ball:
            return x.exp() * weight(x.exp(), analytic)

        low = -(arb(10).log() * (digits + 4))
        total = _integral(near_zero, low, arb(0), goal)
        ends = [arb(y) for y in (1, *range(3, farthest, 2), farthest)]
        for left, right in pairwise(ends):
            total += _integral(weight, left, right, goal)
        least, most = low.exp(), ends[-1]
        below = least / least.bessel_k(0)
        above = 2 * ((most + 1) ** 2 + 2 * (most + 1) + 2) * (-most).exp()
        total += _between(arb(0), below + above)
        return enclosure_of(arb.pi() / (2 * total), "the threshold")


def _bessel(y: Ball) -> tuple[Ball, Ball]:
    """Return K_0 and K_1 around the centre of a ball; slopes are largest where Re y is least."""
    flint = require_flint()
    least, centre = flint.arb(y.real.lower()), flint.acb(y.real.mid(), y.imag.mid())
    zero, one = least.bessel_k(0), least.bessel_k(1)
    distance = abs(y - centre).upper()

    def around(value: Ball, slope: Ball) -> Ball:
        error = flint.arb(0, (distance * slope).upper())
        return value + flint.acb(error, error)

    return around(centre.bessel_k(0), one), around(centre.bessel_k(1), zero + one / least)


def _between(low: Ball, high: Ball) -> Ball:
    return low.union(high)


def _of_noisy_labels(channel: Channel, digits: int) -> Enclosure:
    """Enclose the threshold of a function of one direction with Gaussian noise."""
    if channel.directions > 1:
        raise UnsupportedExpressionError(
            f"the threshold of {channel.name!r} is an integral over {channel.directions} "
            "directions, for which there is no proof here; those of one direction have one"
        )
    if channel.function is None:
        raise UnsupportedExpressionError(
            "a density of one's own is only known inside of label_range: there is no proof of what "
            "is left out; functions with noise_variance have one"
        )
    if channel.is_certain:
        raise UnsupportedExpressionError(
            f"the threshold of {channel.name!r} without noise is an average over preimages that "
            "are roots of equations, for which there is no proof here: give noise_variance"
        )
    flint = require_flint()
    with PRECISION, flint.ctx.workprec(_bits(digits)):
        arb, acb = flint.arb, flint.acb
        evaluator = BallEvaluator()
        noise = evaluator.real_constant(channel.exact_noise)
        goal = arb(10) ** -(digits + 3)
        reach = (2 * (digits + 9) * arb(10).log()).sqrt().ceil()
        branches = analytic_branches(channel.function, z, evaluator, cut_at_zero=True)
        even = analyse(channel.function, z).parity is Parity.EVEN
        pieces = []
        for branch in branches:
            left = -reach if branch.left is None else evaluator.real_constant(branch.left)
            right = reach if branch.right is None else evaluator.real_constant(branch.right)
            if (even and left < 0) or not left < reach or not right > -reach:
                continue
            left, right = left if left > -reach else -reach, right if right < reach else reach
            pieces.append((evaluator.function(branch.expr, z), left, right))
        lowest, highest = _range(pieces)
        spread = reach * noise.sqrt()
        scale = (2 if even else 1) / (2 * arb.pi() * noise.sqrt())

        def averaged(weight: Callable[[Ball], Ball], y: Ball) -> Ball:
            total = acb(0)
            for f, left, right in pieces:

                def integrand(u: Ball, analytic: bool, f: BallFunction = f) -> Ball:
                    exponent = u**2 / 2 + (y - f(u, analytic)) ** 2 / (2 * noise)
                    return weight(u) * (-exponent).exp()

                total += acb.integral(
                    integrand, acb(left), acb(right), rel_tol=goal, abs_tol=goal**3
                )
            return total

        def label(y: Ball, analytic: bool) -> Ball:
            second = averaged(lambda u: u**2 - 1, y)
            return second**2 / averaged(lambda u: acb(1), y) * scale

        value = _integral(label, lowest - spread, highest + spread, goal)
        density = (-(reach**2) / 2).exp()
        # E[u^4; |u| > U] <= (U^3 + 4 U) density; u^2 - 1 < u^2, and a noise beyond the spread.
        out = (reach**3 + 4 * reach) * density
        missed = 2 * (reach / arb(2).sqrt()).erfc()
        total = value + _between(-3 * reach**2 * out, out + missed)
        return enclosure_of(1 / total, "the threshold")


def _of_preimages(channel: Channel, digits: int) -> Enclosure:
    """Enclose the threshold of a polynomial of one direction without noise."""
    flint = require_flint()
    assert channel.function is not None
    coefficients = _monic(channel)
    with PRECISION, flint.ctx.workprec(2 * _bits(digits)):
        arb = flint.arb
        goal = arb(10) ** -(digits + 3)
        f = flint.fmpq_poly(coefficients)
        turning = _real_roots(f.derivative())
        changes = _changes(coefficients)
        reach = (2 * (digits + 9) * arb(10).log()).sqrt().ceil()
        degree, rest = f.degree(), [abs(arb(c)) for c in f.coeffs()[:-1]]
        while not (
            all(abs(x) < reach - 1 for x in changes)
            and sum(c * reach ** (k - degree) for k, c in enumerate(rest)) <= arb(1) / 3
        ):
            reach += 1
        # All points with the label of one that lies inside.
        largest = (2 * reach) ** 4
        gap = goal / (largest * (len(changes) + 1))
        even = not any(c for c in f.coeffs()[1::2])
        ends = [-reach, *changes, reach]
        if even:
            ends = [arb(0), *(x for x in changes if x > 0), reach]
        total, left_out = arb(0), arb(0)
        for left, right in pairwise(ends):
            low, high = arb((left + gap).mid()), arb((right - gap).mid())
            branches = _Branches(f, turning, (low + high) / 2)
            total += _integral(branches.squared_mean, low, high, goal)
            left_out += 4 * gap * largest
        total = total / (2 * arb.pi()).sqrt()
        # E[u^4; u > U] <= (U^3 + 3 U + 3/U) φ(U), on both sides.
        tail = (reach**3 + 3 * reach + 3 / reach) * (-(reach**2) / 2).exp()
        total += _between(arb(0), left_out + (16 if even else 32) * tail)
        return enclosure_of(1 / ((2 if even else 1) * total), "the threshold")


def _monic(channel: Channel) -> list[Ball]:
    """Return the coefficients of a polynomial in other units, rational, the constant one first."""
    flint = require_flint()
    f = channel.function
    if f is not None and f.is_polynomial(z):
        known = sp.Poly(f, z).monic().all_coeffs()[::-1]
        if all(c.is_Rational for c in known):
            return [flint.fmpq(int(c.p), int(c.q)) for c in known]
    raise UnsupportedExpressionError(
        f"the points with the same label {channel.name!r} are not isolated by a proof here: of "
        "labels without noise those of polynomials with rational coefficients are, whose turning "
        "points are roots of polynomials; give noise_variance"
    )


def _real_roots(polynomial: Any) -> list[Ball]:
    found = polynomial.numer().complex_roots()
    return sorted((x.real for x, _ in found if x.imag == 0), key=lambda x: float(x.mid()))


def _changes(coefficients: list[Ball]) -> list[Ball]:
    """Return all points at which the number of points with the same label may change."""
    flint = require_flint()
    c, u = sp.symbols("c u")
    exact = [sp.Rational(int(x.p), int(x.q)) for x in coefficients]
    f, at = (sum(a * x**k for k, a in enumerate(exact)) for x in (u, c))
    resultant = sp.Poly(sp.resultant(sp.diff(at, c), f - at, c), u).sqf_part()
    rational = [flint.fmpq(int(a.p), int(a.q)) for a in resultant.all_coeffs()[::-1]]
    return _real_roots(flint.fmpq_poly(rational))


class _Branches:
    """The points with the label of u, as analytic functions of u between two changes.

    Parameters
    ----------
    f : fmpq_poly
    turning : list of arb
        Where it is not monotone, increasing.
    inside : arb
        A point of the interval.
    """

    def __init__(self, f: Any, turning: list[Ball], inside: Ball) -> None:
        flint = require_flint()
        self.f, self.slope = flint.acb_poly(f), flint.acb_poly(f.derivative())
        self.bend = flint.acb_poly(f.derivative().derivative())
        self.approximate = np.array([float(sp.Rational(int(c.p), int(c.q))) for c in f.coeffs()])
        self.pieces = list(pairwise([flint.arb("-inf"), *turning, flint.arb("inf")]))
        self.rising = 1 if self.slope(flint.acb(inside)).real > 0 else -1
        point = flint.fmpq(*(int(x) for x in sp.Rational(float(inside)).as_numer_denom()))
        self.others = []
        for root in _real_roots(f - f(point)):
            if not root.overlaps(flint.arb(point)):
                k = next(k for k, (a, b) in enumerate(self.pieces) if a < root < b)
                sign = 1 if self.slope(flint.acb(root)).real > 0 else -1
                self.others.append((k, sign * self.rising))

    def squared_mean(self, u: Ball, analytic: bool) -> Ball:
        """Return exp(-u²/2) G(f(u))²; not finite where a branch is not proven to be analytic."""
        slope = self.slope(u)
        top, bottom = u**2 - 1, require_flint().acb(1)
        for k, sign in self.others:
            v = self._point(u, slope, k)
            weight = sign * slope / self.slope(v) * ((u**2 - v**2) / 2).exp()
            top, bottom = top + weight * (v**2 - 1), bottom + weight
        return (top / bottom) ** 2 * (-(u**2) / 2).exp()

    def _point(self, u: Ball, slope: Ball, piece: int) -> Ball:
        """Enclose the point of a monotone piece with the label of u, around the real line."""
        flint = require_flint()
        if not u.imag.contains(0):
            return flint.acb("nan")
        low, high = self.pieces[piece]
        middle = flint.acb(u.real.mid())
        label = self.f(middle).real
        centre = self._real_point(label, low, high)
        if centre is None:
            return flint.acb("nan")
        at = flint.acb(centre)
        # In mean value form: next to a turning point Horner's rule is far too wide.
        offset = self.f(at) - label - slope * (u - middle)
        # A box twice as large as the first guess holds its own image if the slope varies little.
        guess = 2 * abs(offset / self.slope(at)) + abs(at) * flint.arb(2) ** (8 - flint.ctx.prec)
        for _ in range(4):
            error = flint.arb(0, guess.upper())
            box = at + flint.acb(error, error)
            image = at - offset / self.slope(box)
            if box.contains_interior(image):
                return image
            guess = 2 * guess
        return flint.acb("nan")

    def _real_point(self, label: Ball, low: Ball, high: Ball) -> Ball | None:
        """Return an approximate real point of a monotone piece with a label, inside of it."""
        flint = require_flint()
        shifted = self.approximate.copy()
        shifted[0] -= float(label.mid())
        roots = np.polynomial.polynomial.polyroots(shifted)
        starts = [flint.arb(r) for r in roots.real.tolist()]
        # Next to a turning point roots are a pair that floating point does not tell apart.
        for end, side in ((low, 1), (high, -1)):
            if end.is_finite():
                at = flint.acb(end)
                square = 2 * (label - self.f(at).real) / self.bend(at).real
                starts.append((end + side * abs(square).sqrt()).mid())
        inside = [x for x in starts if low < x < high]
        if not inside:
            return None
        x = min(inside, key=lambda x: float(abs(self.f(flint.acb(x)).real - label).mid()))
        for _ in range(_NEWTON):
            at = flint.acb(x)
            step = ((self.f(at).real - label) / self.slope(at).real).mid()
            x = (x - step).mid()
            if not low < x < high:
                return None
            if abs(step) < abs(x) * flint.arb(2) ** (16 - flint.ctx.prec // 2):
                return x
        return x


def _range(pieces: list[tuple[BallFunction, Ball, Ball]]) -> tuple[Ball, Ball]:
    """Return bounds of a function on its pieces."""
    flint = require_flint()
    lowest, highest = [], []
    for f, left, right in pieces:
        width = (right - left) / _CELLS
        for k in range(_CELLS):
            cell = (left + k * width).union(left + (k + 1) * width)
            value = f(flint.acb(cell), False).real
            if not value.is_finite():
                raise CertificationError("the function has no finite bounds")
            lowest.append(value.lower())
            highest.append(value.upper())
    return min(lowest), max(highest)
