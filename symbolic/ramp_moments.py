r"""Gaussian averages of ramps: what the jump of a slope becomes in a Moreau envelope.

The envelope of a loss with a kink rises from one slope to the next on a ramp of width h, which is
proportional to the step of the envelope. Its averages are differences over h of normal integrals;
these lose their digits where h is far below the standard deviation, and where the ramp is far
below the argument, so they stay one node until the form in which they are computed is written.
"""

from __future__ import annotations

from functools import lru_cache

import sympy as sp
from sympy.integrals.quadrature import gauss_legendre

from .hermite_polynomials import hermite_polynomial
from .normal_functions import normal_cdf

RAMP_DIGITS = 25
"""What the closed form of :class:`ramp_moment` is good for, where the ramp is narrow."""

# Ramps narrower than this part of the standard deviation are integrated by a Gauss rule, whose
# error is 1e-31 then; differences over wider ones lose two digits at most.
_NARROW = sp.Rational(1, 8)
_GAUSS_NODES = 8


class ramp_moment(sp.Function):
    r"""The mean :math:`\int_0^1 w^k\,S_n(a - wh)\,dw` of a smoothed ramp and its derivatives.

    :math:`S_1(x) = \mathbb{E}\,\mathrm{relu}(x + \sqrt v\,\eta)` with a standard normal η, and
    :math:`S_{n-1} = S_n'`: the distribution function, the density, and the derivatives of that.

    Parameters
    ----------
    n, k : int
        n ≤ 1 and k ≥ 0.
    a, h, v : Expr
        Where the ramp begins, its width h ≥ 0, and the variance v > 0.

    Examples
    --------
    >>> a = sp.Symbol("a", real=True)
    >>> h, v = sp.symbols("h v", positive=True)
    >>> ramp = ramp_moment(1, 0, a, h, v)
    >>> ramp.diff(a), ramp.diff(h), ramp.diff(v)
    (ramp_moment(0, 0, a, h, v), -ramp_moment(0, 1, a, h, v), ramp_moment(-1, 0, a, h, v)/2)
    """

    nargs = 5

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        n, k, a, h, v = self.args
        if argindex == 3:
            return ramp_moment(n - 1, k, a, h, v)
        if argindex == 4:
            return -ramp_moment(n - 1, k + 1, a, h, v)
        if argindex == 5:
            # All S solve the heat equation.
            return ramp_moment(n - 2, k, a, h, v) / 2
        raise sp.core.function.ArgumentIndexError(self, argindex)

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        slopes = [(k, x.diff(symbol)) for k, x in enumerate(self.args[2:], 3)]
        return sp.Add(*(slope * self.fdiff(k) for k, slope in slopes if slope != 0))

    def _eval_is_real(self) -> bool:
        return True

    def closed_form(self) -> sp.Expr:
        """Return the mean by the normal density and distribution function, in three cases."""
        a, h, v = self.args[2:]
        n, k = (int(order) for order in self.args[:2])
        narrow = sp.Add(
            *(weight * w**k * _smoothed(n, a - w * h, v) for w, weight in _gauss_rule())
        )
        above = _polynomial(n, k, a, h) + _difference(n, k, a, h, v, above=True)
        below = _difference(n, k, a, h, v, above=False)
        wide = sp.Piecewise((above, a > h), (below, True))
        return sp.Piecewise((narrow, h**2 < _NARROW**2 * v), (wide, True))


def _smoothed(n: int, x: sp.Expr, v: sp.Expr) -> sp.Expr:
    """Return S_n; S_2 is the integral of S_1 from minus infinity."""
    root = sp.sqrt(v)
    density = sp.exp(-(x**2) / (2 * v)) / (sp.sqrt(2 * sp.pi) * root)
    below = normal_cdf(x / root)
    if n < 0:
        order = -1 - n
        return (-1) ** order * hermite_polynomial(order, x / root) / root**order * density
    if n == 0:
        return below
    if n == 1:
        return x * below + v * density
    return ((x**2 + v) * below + x * v * density) / 2


def _difference(n: int, k: int, a: sp.Expr, h: sp.Expr, v: sp.Expr, *, above: bool) -> sp.Expr:
    """Integrate S_n by parts; `above`, the part of it that vanishes at plus infinity."""

    def integral(order: int, x: sp.Expr) -> sp.Expr:
        if above and order >= 0:
            return (-1) ** (order + 1) * _smoothed(order, -x, v)
        return _smoothed(order, x, v)

    if k == 0:
        return (integral(n + 1, a) - integral(n + 1, a - h)) / h
    rest = _difference(n + 1, k - 1, a, h, v, above=above)
    return (k * rest - integral(n + 1, a - h)) / h


def _polynomial(n: int, k: int, a: sp.Expr, h: sp.Expr) -> sp.Expr:
    """Integrate what S_n tends to far above: 1 and x."""
    if n == 1:
        return a / (k + 1) - h / (k + 2)
    return sp.Rational(1, k + 1) if n == 0 else sp.S.Zero


@lru_cache(maxsize=1)
def _gauss_rule() -> tuple[tuple[sp.Rational, sp.Rational], ...]:
    """Return nodes and weights on [0, 1]."""
    points, weights = gauss_legendre(_GAUSS_NODES, 40)
    nodes = [(1 + sp.Rational(str(x))) / 2 for x in points]
    return tuple(zip(nodes, (sp.Rational(str(w)) / 2 for w in weights), strict=True))
