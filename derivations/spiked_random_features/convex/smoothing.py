r"""Gaussian averages of a Moreau envelope, by two identities and in closed form.

Given the projection κ of an input on the spike, the prediction without it in the training set is
:math:`\omega = C + \psi_\mu s + \dots`, Gaussian of mean C, variance q and covariance p with the
Gaussian s that the label depends on besides κ. The average of the envelope M over both is a
function :math:`G(C, p, q, V)`, and all that equations need of it follows from Price's theorem

.. math::
    \partial_C G = \mathbb{E} M', \quad
    \partial_q G = \tfrac12\,\mathbb{E} M'', \quad
    \partial_p G = \mathbb{E}\,\partial_s M' ,

where :math:`\partial_s` acts on the law of the label. :class:`LabelledEnvelope` is this function
with these rules, so that no derivative is a difference of large terms; what it is, one or two
Gaussian integrals, is put in when the equations are known.

For a loss that is quadratic between kinks M is quadratic between break points, and one of the
integrals is a sum of :class:`rectified_moment`: normal density and distribution function. A jump
of a slope becomes a ramp of width proportional to V, :class:`.ramp_moment`, which keeps its digits
as V vanishes.

Price, *A useful theorem for nonlinear devices having Gaussian inputs*, IRE Trans. Inf. Theory 4
(1958) 69-72.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import sympy as sp

from ....symbolic.expressions.factors import factored
from ....symbolic.expressions.functions import normal_cdf, relu
from ....symbolic.gaussian.ramp_moments import kink_moment, ramp_moment
from ....symbolic.losses.convex_losses import is_kinked, piecewise_linear_proximal, smooth_pieces


class LabelledEnvelope(sp.Function):
    r"""The average of :math:`\partial_s^i\partial_\omega^j\partial_V^k M`, without a meaning yet.

    Arguments: mean C, covariance p, variance q, step V, the orders i, j, k, and what else M depends
    on, of which no derivative is taken.
    """

    nargs = (7, 8)

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        mean, covariance, variance, step, i, j, k, *rest = self.args
        order = {
            1: (1, i, j + 1, k),
            2: (1, i + 1, j + 1, k),
            3: (sp.Rational(1, 2), i, j + 2, k),
            4: (1, i, j, k + 1),
        }
        if argindex not in order:
            raise sp.core.function.ArgumentIndexError(self, argindex)
        factor, *orders = order[argindex]
        found: sp.Expr = factor * LabelledEnvelope(mean, covariance, variance, step, *orders, *rest)
        return found

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        return sp.Add(*(self.args[k].diff(symbol) * self.fdiff(k + 1) for k in range(4)))

    @property
    def orders(self) -> tuple[int, int, int]:
        """Orders of the derivatives by s, ω and V."""
        i, j, k = (int(order) for order in self.args[4:7])
        return i, j, k

    def _eval_is_real(self) -> bool:
        return True


class rectified_moment(sp.Function):
    r"""The moment :math:`\mathbb{E}\,\mathrm{relu}(a + \sqrt v\,\eta)^n` with n = 0, 1 or 2.

    Order n = -1 is the density of :math:`a + \sqrt v\,\eta` at zero.

    Examples
    --------
    >>> a = sp.Symbol("a", real=True)
    >>> v = sp.Symbol("v", positive=True)
    >>> rectified_moment(2, a, v).diff(a), rectified_moment(2, a, v).diff(v)
    (2*rectified_moment(1, a, v), rectified_moment(0, a, v))
    >>> rectified_moment(1, a, v).closed_form()
    a*normal_cdf(a/sqrt(v)) + sqrt(2)*sqrt(v)*exp(-a**2/(2*v))/(2*sqrt(pi))
    """

    nargs = 3

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        n, a, v = self.args
        if n == -1 or argindex == 1:
            raise sp.core.function.ArgumentIndexError(self, argindex)
        if argindex == 2:
            return rectified_moment(n - 1, a, v) * (n if n > 0 else 1)
        if n == 2:
            return rectified_moment(0, a, v)
        factor = sp.Rational(1, 2) if n == 1 else -a / (2 * v)
        return factor * rectified_moment(-1, a, v)

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        _, a, v = self.args
        return a.diff(symbol) * self.fdiff(2) + v.diff(symbol) * self.fdiff(3)

    def closed_form(self) -> sp.Expr:
        """Return the moment by the normal density and distribution function."""
        n, a, v = self.args
        root = sp.sqrt(v)
        below, density = normal_cdf(a / root), sp.exp(-(a**2) / (2 * v)) / sp.sqrt(2 * sp.pi)
        return {
            -1: density / root,
            0: below,
            1: a * below + root * density,
            2: (a**2 + v) * below + a * root * density,
        }[int(n)]

    def _eval_is_real(self) -> bool:
        return True


def smoothed_envelope(
    loss: sp.Expr, x: sp.Symbol, mean: sp.Symbol, variance: sp.Symbol, step: sp.Symbol
) -> sp.Expr | None:
    r"""Return :math:`\mathbb{E}_\eta M(a + \sqrt v\,\eta; V)` by rectified moments.

    Parameters
    ----------
    loss : Expr
        Convex in x.
    x, mean, variance, step : Symbol
        The prediction, a, v and V.

    Returns
    -------
    Expr or None
        None if the loss is not quadratic between kinks.

    Notes
    -----
    The proximal point is linear between break points, so :math:`M' = (\omega - P)/V` is too; M
    follows by integration from a segment in the middle, on which it is a polynomial.
    """
    proximal = piecewise_linear_proximal(loss, x, mean, step)
    if proximal is None:
        return None
    kinks, pieces = smooth_pieces(loss, x)
    if is_linear_between_kinks(loss, x):
        return _smoothed_ramps(kinks, pieces, x, mean, variance, step)
    start = proximal.xreplace({u: sp.S.Zero for u in proximal.atoms(relu)})
    middle = len(kinks)
    inner = pieces[middle // 2] if middle % 2 == 0 else loss
    envelope = (start - mean) ** 2 / (2 * step) + inner.xreplace({x: start}).doit()
    total = _averaged_polynomial(envelope, mean, variance)
    for beyond in sorted(proximal.atoms(relu), key=sp.default_sort_key):
        weight, argument = proximal.coeff(beyond) / step, beyond.args[0]
        slope = argument.diff(mean)
        total -= weight / (2 * slope) * rectified_moment(2, argument, variance)
    return total


def is_linear_between_kinks(loss: sp.Expr, x: sp.Symbol) -> bool:
    """Whether a loss is linear between kinks, of which it has at least one."""
    if not is_kinked(loss, x):
        return False
    return all(piece.diff(x, 2) == 0 for piece in smooth_pieces(loss, x)[1])


def _smoothed_ramps(
    kinks: Sequence[sp.Expr], pieces: Sequence[sp.Expr], x: sp.Symbol,
    mean: sp.Symbol, variance: sp.Symbol, step: sp.Symbol,
) -> sp.Expr:  # fmt: skip
    """Average the envelope of a loss that is linear between kinks.

    Its slope rises from one of the loss to the next on a ramp; it is put together from its least
    steep piece outwards, so that what is added vanishes on this piece: a kink where 0 is between
    the slopes, on whose ramp predictions stay where a readout interpolates, or else a segment.
    """
    slopes = [piece.diff(x) for piece in pieces]
    base, at_kink = _flattest(slopes)
    if at_kink:
        bottom = pieces[base].xreplace({x: kinks[base]})
        total = bottom + kink_moment(
            0, 0, mean - kinks[base], step, variance, slopes[base], slopes[base + 1]
        )
    else:
        total = pieces[base].xreplace({x: mean}) - step * slopes[base] ** 2 / 2
    for n, kink in enumerate(kinks):
        if at_kink and n == base:
            continue
        left, right = slopes[n], slopes[n + 1]
        jump = right - left
        beyond = mean - kink - step * left if n >= base else kink + step * right - mean
        total += jump * ramp_moment(1, 0, beyond, step * jump, variance)
    return total


def _flattest(slopes: Sequence[sp.Expr]) -> tuple[int, bool]:
    """Return the place of slope zero, and whether this is a kink.

    Where parameters decide, the kink in the middle; right everywhere, it is most accurate there.
    """
    if sp.S.Zero in slopes:
        return slopes.index(sp.S.Zero), False
    if (slopes[0] > 0) == sp.true:
        return 0, False
    if (slopes[-1] < 0) == sp.true:
        return len(slopes) - 1, False
    for n, (left, right) in enumerate(pairwise(slopes)):
        if (left < 0) == sp.true and (right > 0) == sp.true:
            return n, True
    return (len(slopes) - 1) // 2, True


def smoothed_loss(loss: sp.Expr, x: sp.Symbol, mean: sp.Symbol, variance: sp.Symbol) -> sp.Expr:
    r"""Return :math:`\mathbb{E}_\eta\ell(a + \sqrt v\,\eta)` of a loss quadratic between kinks."""
    kinks, pieces = smooth_pieces(loss, x)
    middle = len(kinks) // 2
    total = _averaged_polynomial(pieces[middle].xreplace({x: mean}), mean, variance)
    for n, kink in enumerate(kinks):
        side = 1 if n >= middle else -1
        change = sp.expand(pieces[n + 1] - pieces[n])
        argument = side * (mean - kink)
        slope, curvature = (change.diff(x, order).xreplace({x: kink}) for order in (1, 2))
        total += slope * rectified_moment(1, argument, variance)
        total += side * curvature / 2 * rectified_moment(2, argument, variance)
    return total


def closed_moments(expr: sp.Expr) -> sp.Expr:
    """Write rectified moments by the normal density and distribution function."""

    def closed(*args: Any) -> sp.Expr:
        return rectified_moment(*args).closed_form()

    return expr.replace(rectified_moment, closed)


def _averaged_polynomial(expr: sp.Expr, mean: sp.Symbol, variance: sp.Symbol) -> sp.Expr:
    """Average a polynomial of degree two over its variable."""
    polynomial = sp.together(expr)
    curvature = factored(polynomial.diff(mean, 2))
    return factored(polynomial) + curvature * variance / 2
