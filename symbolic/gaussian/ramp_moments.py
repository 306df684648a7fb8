r"""Gaussian averages of ramps: what the jump of a slope becomes in a Moreau envelope.

The envelope of a loss with a kink rises from one slope to the next on a ramp of width h, which is
proportional to the step of the envelope. Its averages are differences over h of normal integrals;
these lose their digits where h is far below the standard deviation, and where the ramp is far
below the argument, so they stay one node until the form in which they are computed is written.

:class:`labelled_ramp_moment` is such an average over the half of the plane where another Gaussian
is positive, the field that a label is the sign of: normal integrals of two variables, by Owen's T.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import sympy as sp
from sympy.integrals.quadrature import gauss_legendre

from ..expressions.functions import OwenT, normal_cdf
from .hermite_polynomials import hermite_polynomial

RAMP_DIGITS = 25
"""What the closed form of :class:`ramp_moment` is good for, where the ramp is narrow."""

# Ramps narrower than this part of the standard deviation are integrated by a Gauss rule, whose
# error is 1e-31 then; differences over wider ones lose two digits at most.
_NARROW = sp.Rational(1, 8)
_GAUSS_NODES = 8
# Where an argument of a quotient vanishes; its square still is no zero in floats.
_TINY = sp.Rational(1, 10**120)
# Where on a ramp, in its width.
_w = sp.Dummy("w", positive=True)


class RampAverage(sp.Function):
    """A normal average of a ramp, written out when nothing is differentiated any more."""

    arguments: tuple[tuple[str, bool], ...] = ()
    """Names of the arguments after the two orders, and whether they are positive."""

    def closed_form(self) -> sp.Expr:
        """Return the average in functions that targets know."""
        return sums_at_nodes(self.by_cases())

    def by_cases(self) -> sp.Expr:
        """Return the closed form with a :class:`gauss_sum` where a ramp is narrow."""
        raise NotImplementedError

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        slopes = [(k, x.diff(symbol)) for k, x in enumerate(self.args[2:], 3)]
        return sp.Add(*(slope * self.fdiff(k) for k, slope in slopes if slope != 0))

    def _eval_is_real(self) -> bool:
        return True


class gauss_sum(sp.Function):
    """The integral of p(w)·S(w) over [0, 1] by a Gauss rule; arguments S, p and the symbol w.

    One node, so that what is done with an integrand is done once and not at all its nodes.
    """

    nargs = 3

    @property
    def integrand(self) -> sp.Expr:
        """S, in w."""
        return self.args[0]

    def at_nodes(self) -> list[sp.Expr]:
        """Return S at the nodes."""
        values, _, w = self.args
        return [values.xreplace({w: x}) for x, _ in _gauss_rule()]

    def total(self, values: Sequence[sp.Expr]) -> sp.Expr:
        """Return the sum of what stands for S at the nodes."""
        _, weight, w = self.args
        shares = (share * weight.xreplace({w: x}) for x, share in _gauss_rule())
        return sp.Add(*(share * value for share, value in zip(shares, values, strict=True)))

    def _eval_is_real(self) -> bool:
        return True


def sums_at_nodes(expr: sp.Expr) -> sp.Expr:
    """Write out every :class:`gauss_sum`."""
    return expr.xreplace({node: node.total(node.at_nodes()) for node in expr.atoms(gauss_sum)})


class ramp_moment(RampAverage):
    r"""The mean :math:`\int_0^1 w^k\,S_n(a - wh)\,dw` of a smoothed ramp and its derivatives.

    :math:`S_1(x) = \mathbb{E}\,\mathrm{relu}(x + \sqrt v\,\eta)` with a standard normal η, and
    :math:`S_{n-1} = S_n'`: the distribution function, the density, and the derivatives of that.

    `n`, `k`: n ≤ 1 and k ≥ 0. `a`, `h`, `v`: where the ramp begins, its width h ≥ 0, and the
    variance v > 0.

    Examples
    --------
    >>> a = sp.Symbol("a", real=True)
    >>> h, v = sp.symbols("h v", positive=True)
    >>> ramp = ramp_moment(1, 0, a, h, v)
    >>> ramp.diff(a), ramp.diff(h), ramp.diff(v)
    (ramp_moment(0, 0, a, h, v), -ramp_moment(0, 1, a, h, v), ramp_moment(-1, 0, a, h, v)/2)
    """

    nargs = 5
    arguments = (("a", False), ("h", True), ("v", True))

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

    def by_cases(self) -> sp.Expr:
        """Return the mean by the normal density and distribution function, in three cases."""
        a, h, v = self.args[2:]
        return _by_cases(*self.cases(), a, h, v)

    def cases(self) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
        """Return the mean where the ramp is narrow, and where it is not for a > h and a < h."""
        a, h, v = self.args[2:]
        n, k = (int(order) for order in self.args[:2])
        return _cases(n, k, a, h, _Normal(v))

    def labelled(self, rest: sp.Expr, covariance: sp.Expr, field: sp.Expr) -> sp.Expr:
        """Return the average with the same ramp where a field is positive.

        `rest`, `covariance`, `field`: arguments w, t and e of :class:`labelled_ramp_moment`.
        """
        return labelled_ramp_moment(*self.args[:4], rest, covariance, field)


class labelled_ramp_moment(RampAverage):
    r"""The mean :math:`\int_0^1 w^k\,S_n(a - wh)\,dw` of a ramp where a field is positive.

    :math:`S_1(x) = \mathbb{E}\,\mathrm{relu}(x + X)\,1_{e + F > 0}` with Gaussians of mean zero, F
    of variance 1, X of covariance t with F and of variance w when F is known; and
    :math:`S_{n-1} = S_n'`.

    `n`, `k`: n ≤ 1 and k ≥ 0. `a`, `h`: where the ramp begins, and its width h ≥ 0. `w`, `t`, `e`:
    the variance w > 0, the covariance and the mean of the field.

    Examples
    --------
    >>> a, t, e = sp.symbols("a t e", real=True)
    >>> h, w = sp.symbols("h w", positive=True)
    >>> ramp = labelled_ramp_moment(1, 0, a, h, w, t, e)
    >>> ramp.diff(w)
    labelled_ramp_moment(-1, 0, a, h, w, t, e)/2
    >>> ramp.diff(e)
    sqrt(2)*exp(-e**2/2)*ramp_moment(1, 0, a - e*t, h, w)/(2*sqrt(pi))
    """

    nargs = 7
    arguments = (("a", False), ("h", True), ("w", True), ("t", False), ("e", False))

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        n, k, a, h, w, t, e = self.args
        if argindex == 3:
            return labelled_ramp_moment(n - 1, k, a, h, w, t, e)
        if argindex == 4:
            return -labelled_ramp_moment(n - 1, k + 1, a, h, w, t, e)
        if argindex == 5:
            return labelled_ramp_moment(n - 2, k, a, h, w, t, e) / 2
        if argindex == 6:
            # Price's theorem; the variance w + t² moves, too.
            moved = t * labelled_ramp_moment(n - 2, k, a, h, w, t, e)
            return moved + _density(e) * ramp_moment(n - 1, k, a - t * e, h, w)
        if argindex == 7:
            return _density(e) * ramp_moment(n, k, a - t * e, h, w)
        raise sp.core.function.ArgumentIndexError(self, argindex)

    def without_width(self) -> sp.Expr:
        """Return the closed form for h = 0."""
        n, k, a, _, w, t, e = self.args
        return _Labelled(w, t, e).smoothed(int(n), a) / (k + 1)

    def by_cases(self) -> sp.Expr:
        """Return the mean by Owen's T, the normal density and distribution function."""
        a, h, w, t, e = self.args[2:]
        n, k = (int(order) for order in self.args[:2])
        return _by_cases(*_cases(n, k, a, h, _Labelled(w, t, e)), a, h, w)


class kink_moment(RampAverage):
    r"""A derivative :math:`\partial_u^j\partial_V^k\,\mathbb{E}\,M_V(u + \sqrt v\,\eta)` at a kink.

    :math:`M_V` is the Moreau envelope of the loss that rises with slopes l on the left of zero and
    r on its right: :math:`M_V' = u/V` between l and r. Where 0 is between them, a wide ramp makes
    :math:`M_V'` small, and nothing is left of it as the difference of l and a ramp.

    `u`, `V`, `v`: distance from the kink, step of the envelope V > 0, and the variance v > 0. `l`,
    `r`: slopes, l < r.

    Examples
    --------
    >>> u = sp.Symbol("u", real=True)
    >>> V, v = sp.symbols("V v", positive=True)
    >>> kink = kink_moment(0, 0, u, V, v, -1, 1)
    >>> kink.diff(u), kink.diff(v)
    (kink_moment(1, 0, u, V, v, -1, 1), kink_moment(2, 0, u, V, v, -1, 1)/2)
    """

    nargs = 7
    arguments = (("u", False), ("V", True), ("v", True), ("l", False), ("r", False))

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

    def by_cases(self) -> sp.Expr:
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


class _Normal:
    """The functions S_n of :class:`ramp_moment`."""

    def __init__(self, variance: sp.Expr) -> None:
        self._variance = variance

    def smoothed(self, n: int, x: sp.Expr) -> sp.Expr:
        """Return S_n; S_2 is the integral of S_1 from minus infinity."""
        return _smoothed(n, x, self._variance)

    def mirrored(self) -> _Normal:
        """Return those of the variable with the other sign."""
        return self

    def far(self, power: int) -> sp.Expr:
        """Return what S_0 tends to far above, and how much S_1 is above x times that."""
        return sp.S.One if power == 0 else sp.S.Zero


class _Labelled(_Normal):
    """Those of :class:`labelled_ramp_moment`."""

    def __init__(self, rest: sp.Expr, covariance: sp.Expr, field: sp.Expr) -> None:
        super().__init__(rest + covariance**2)
        self._rest, self._covariance, self._field = rest, covariance, field

    def smoothed(self, n: int, x: sp.Expr) -> sp.Expr:
        w, t, e = self._rest, self._covariance, self._field
        q = self._variance
        if n == 0:
            return _quadrant(x, w, t, e)
        if n == -1:
            return _smoothed(-1, x, q) * normal_cdf((e * q - t * x) / sp.sqrt(q * w))
        # By parts: n S_n = x S_{n-1} + q S_{n-2} + t E[relu'(x + X) δ(e + F)].
        if n > 0:
            at_zero = t * _density(e) * _smoothed(n - 1, x - t * e, w)
            return (x * self.smoothed(n - 1, x) + q * self.smoothed(n - 2, x) + at_zero) / n
        at_zero = t * _density(e) * _smoothed(n + 1, x - t * e, w)
        higher = (n + 2) * self.smoothed(n + 2, x) if n < -2 else sp.S.Zero
        return (higher - x * self.smoothed(n + 1, x) - at_zero) / q

    def mirrored(self) -> _Normal:
        return _Labelled(self._rest, -self._covariance, self._field)

    def far(self, power: int) -> sp.Expr:
        if power == 0:
            return normal_cdf(self._field)
        return self._covariance * _density(self._field)


def _density(x: sp.Expr) -> sp.Expr:
    return sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)


def _quadrant(x: sp.Expr, w: sp.Expr, t: sp.Expr, e: sp.Expr) -> sp.Expr:
    """Return P(x + X > 0, e + F > 0), by Owen's T.

    D. B. Owen, Ann. Math. Statist. 27 (1956) 1075, equation (2.1), with (2.3) for the second T, so
    that every term vanishes as x goes to minus infinity: moments multiply it by x². Quotients are
    written so that a denominator that vanishes, or all of them, give the limit.
    """
    q, far = w + t**2, x - t * e
    all_zero = t * _TINY**2 / (e**2 + _TINY)
    h, g = x / sp.sqrt(q), far / sp.sqrt(w)
    first = OwenT(h, ((e * q - t * x) * x - all_zero) / (sp.sqrt(w) * (x**2 + _TINY)))
    second = OwenT(g, sp.sqrt(w) * e * far / (far**2 + _TINY))
    signs = x / sp.sqrt(x**2 + _TINY) - far / sp.sqrt(far**2 + _TINY)
    below = normal_cdf(h) / 2 + normal_cdf(g) * (normal_cdf(e) - sp.Rational(1, 2))
    return below - first + second + signs * e / sp.sqrt(e**2 + _TINY) / 4


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


def _by_cases(
    narrow: sp.Expr, above: sp.Expr, below: sp.Expr, a: sp.Expr, h: sp.Expr, variance: sp.Expr
) -> sp.Expr:
    """Put cases together; the variance is that of the steepest factor."""
    wide = sp.Piecewise((above, a > h), (below, True))
    return sp.Piecewise((narrow, h**2 < _NARROW**2 * variance), (wide, True))


def _cases(
    n: int, k: int, a: sp.Expr, h: sp.Expr, law: _Normal
) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    above = _polynomial(n, k, a, h, law) + _difference(n, k, a, h, law, above=True)
    return _narrow(n, k, a, h, law), above, _difference(n, k, a, h, law, above=False)


def _narrow(n: int, k: int, a: sp.Expr, h: sp.Expr, law: _Normal) -> sp.Expr:
    """Integrate by a Gauss rule; S_0 and S_1 by Taylor's formula with S_{-1} in the rest.

    So all orders share the densities at the nodes, and distribution functions are needed at a.
    """
    if n < 0:
        return gauss_sum(law.smoothed(n, a - _w * h), _w**k, _w)
    # The integral of u^k (u - w)^n over [w, 1].
    powers = ((j, k + n - j + 1) for j in range(n + 1))
    rest = sp.Add(*(sp.binomial(n, j) * (-_w) ** j * (1 - _w**m) / m for j, m in powers))
    total = (-h) ** (n + 1) * gauss_sum(law.smoothed(-1, a - _w * h), rest, _w)
    for order in range(n + 1):
        total += (-h) ** order / (k + order + 1) * law.smoothed(n - order, a)
    return total


def _difference(n: int, k: int, a: sp.Expr, h: sp.Expr, law: _Normal, *, above: bool) -> sp.Expr:
    """Integrate S_n by parts; `above`, the part of it that vanishes at plus infinity."""

    def integral(order: int, x: sp.Expr) -> sp.Expr:
        if above and order >= 0:
            return (-1) ** (order + 1) * law.mirrored().smoothed(order, -x)
        return law.smoothed(order, x)

    if k == 0:
        return (integral(n + 1, a) - integral(n + 1, a - h)) / h
    rest = _difference(n + 1, k - 1, a, h, law, above=above)
    return (k * rest - integral(n + 1, a - h)) / h


def _polynomial(n: int, k: int, a: sp.Expr, h: sp.Expr, law: _Normal) -> sp.Expr:
    """Integrate what S_n tends to far above: of a normal variable 1 and x."""
    if n == 1:
        return law.far(0) * (a / (k + 1) - h / (k + 2)) + law.far(1) / (k + 1)
    return law.far(0) / (k + 1) if n == 0 else sp.S.Zero


@lru_cache(maxsize=1)
def _gauss_rule() -> tuple[tuple[sp.Rational, sp.Rational], ...]:
    """Return nodes and weights on [0, 1]."""
    points, weights = gauss_legendre(_GAUSS_NODES, 40)
    nodes = [(1 + sp.Rational(str(x))) / 2 for x in points]
    return tuple(zip(nodes, (sp.Rational(str(w)) / 2 for w in weights), strict=True))
