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

from ..expressions.functions import normal_cdf
from .hermite_polynomials import hermite_polynomial

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
        narrow, above, below = self.cases()
        wide = sp.Piecewise((above, a > h), (below, True))
        return sp.Piecewise((narrow, h**2 < _NARROW**2 * v), (wide, True))

    def cases(self) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
        """Return the mean where the ramp is narrow, and where it is not for a > h and a < h."""
        a, h, v = self.args[2:]
        n, k = (int(order) for order in self.args[:2])
        narrow = sp.Add(
            *(weight * w**k * _smoothed(n, a - w * h, v) for w, weight in _gauss_rule())
        )
        above = _polynomial(n, k, a, h) + _difference(n, k, a, h, v, above=True)
        return narrow, above, _difference(n, k, a, h, v, above=False)


class kink_moment(sp.Function):
    r"""A derivative :math:`\partial_u^j\partial_V^k\,\mathbb{E}\,M_V(u + \sqrt v\,\eta)` at a kink.

    :math:`M_V` is the Moreau envelope of the loss that rises with slopes l on the left of zero and
    r on its right: :math:`M_V' = u/V` between l and r. Where 0 is between them, a wide ramp makes
    :math:`M_V'` small, and nothing is left of it as the difference of l and a ramp.

    Parameters
    ----------
    j, k : int
    u, V, v : Expr
        Distance from the kink, step of the envelope V > 0, and the variance v > 0.
    l, r : Expr
        Slopes, l < r.

    Examples
    --------
    >>> u = sp.Symbol("u", real=True)
    >>> V, v = sp.symbols("V v", positive=True)
    >>> kink = kink_moment(0, 0, u, V, v, -1, 1)
    >>> kink.diff(u), kink.diff(v)
    (kink_moment(1, 0, u, V, v, -1, 1), kink_moment(2, 0, u, V, v, -1, 1)/2)
    """

    nargs = 7

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        j, k, u, V, v, left, right = self.args
        if argindex == 3:
            return kink_moment(j + 1, k, u, V, v, left, right)
        if argindex == 4:
            return kink_moment(j, k + 1, u, V, v, left, right)
        if argindex == 5:
            return kink_moment(j + 2, k, u, V, v, left, right) / 2
        order = 1 - int(j) - int(k)
        if argindex == 6:
            return -((-1) ** j) * left**k * _smoothed(order, V * left - u, v)
        if argindex == 7:
            return (-right) ** k * _smoothed(order, u - V * right, v)
        raise sp.core.function.ArgumentIndexError(self, argindex)

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        slopes = [(k, x.diff(symbol)) for k, x in enumerate(self.args[2:], 3)]
        return sp.Add(*(slope * self.fdiff(k) for k, slope in slopes if slope != 0))

    def _eval_is_real(self) -> bool:
        return True

    def closed_form(self) -> sp.Expr:
        """Return the mean by the normal density and distribution function, in four cases."""
        u, V, v, left, right = self.args[2:]
        j, k = (int(order) for order in self.args[:2])
        at, step = sp.Dummy("u", real=True), sp.Dummy("V", positive=True)
        ramp = ramp_moment(1, 0, at - step * left, step * (right - left), v)
        mean = left * at - step * left**2 / 2 + (right - left) * ramp
        mean = mean.diff(at, j).diff(step, k).xreplace({at: u, step: V})
        found = {node: node.cases() for node in mean.atoms(ramp_moment)}
        narrow, above, below = (
            mean.xreplace({node: cases[n] for node, cases in found.items()}) for n in range(3)
        )
        middle = _on_the_ramp(j, k, u, V, v, left, right)
        if above == below:
            # One comparison, as SymPy makes an "or" of two, which no target has.
            wide = sp.Piecewise((above, (u - V * left) * (u - V * right) > 0), (middle, True))
        else:
            wide = sp.Piecewise(
                (above, u - V * right > 0), (below, u - V * left < 0), (middle, True)
            )
        return sp.Piecewise((narrow, (V * (right - left)) ** 2 < _NARROW**2 * v), (wide, True))


def _on_the_ramp(
    j: int, k: int, u: sp.Expr, V: sp.Expr, v: sp.Expr, left: sp.Expr, right: sp.Expr
) -> sp.Expr:
    """Differentiate the mean of a parabola u²/(2V), less what is too much beyond its ends."""
    at, step = sp.Dummy("u", real=True), sp.Dummy("V", positive=True)

    def of_step(power: int) -> sp.Expr:
        return (1 / step).diff(step, power).xreplace({step: V})

    parabola = ((at**2 + v) / (2 * step)).diff(at, j).diff(step, k).xreplace({at: u, step: V})
    excess = [
        sp.binomial(k, i) * of_step(k - i) * (
            (-right) ** i * _smoothed(2 - j - i, u - V * right, v)
            + (-1) ** j * left**i * _smoothed(2 - j - i, V * left - u, v)
        )
        for i in range(k + 1)
    ]  # fmt: skip
    return parabola - sp.Add(*excess)


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
