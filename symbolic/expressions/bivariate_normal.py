r"""The bivariate normal distribution function as a SymPy function.

.. math:: \Phi_2(h, k; \rho) = \mathbb{P}(X \le h,\ Y \le k)

for standard normal X and Y of correlation :math:`\rho`. Second moments of steps and error functions
are written in it, because, unlike Owen's T with its arguments k/h, it has no singularity at
h = 0 or k = 0: a formula in it holds for all values of the parameters.

Source: Owen, *Tables for computing bivariate normal probabilities*, Ann. Math. Statist. 27 (1956)
1075–1090, for the form in T; :math:`\partial_\rho \Phi_2` is the density (Plackett 1954).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import mpmath
import sympy as sp
from sympy.core.sorting import default_sort_key

from ...errors import ConvergenceError, ParameterError
from ...runtime.roots import bracketed_root
from .arguments import as_expression
from .functions import OwenT

_GUARD_BITS = 30
_FAR_OUT = 8
_PRECISION_STEP = 32
_MOST_PIECES = 4000
# A rule of this degree has 48 nodes: pieces are halved rather than rules computed with more.
_HIGHEST_DEGREE = 5
# Bounds of |ρ| and of |h| and |k| between which the integral over angles is tried.
_STRONGEST_CORRELATION, _FARTHEST_LEVEL = 0.9, 5
_BITS_PER_PIECE = 80
# Its root times itself is no denormal number yet.
_TINY = sp.Pow(2, -500, evaluate=False)


def normal_cdf(x: sp.Expr) -> sp.Expr:
    r"""Return :math:`\Phi(x)`, the standard normal distribution function, by erf.

    Examples
    --------
    >>> normal_cdf(sp.S.Zero), normal_cdf(sp.sqrt(2))
    (1/2, erf(1)/2 + 1/2)
    >>> normal_cdf(sp.Integer(-400))
    erfc(200*sqrt(2))/2
    """
    x = as_expression(x, "x")
    if is_far_below(x):
        return sp.erfc(-x / sp.sqrt(2)) / 2
    return (1 + sp.erf(x / sp.sqrt(2))) / 2


def is_far_below(x: sp.Expr) -> bool:
    """Whether x is a number so negative that 1 + erf(x) is unusable.

    It cancels: SymPy looks for its digits, even to print it, and never finds them.
    """
    return bool(x.is_number and x.is_extended_real and (x + _FAR_OUT).is_negative)


def with_far_tails(expr: sp.Expr) -> sp.Expr:
    """Write erf far below as erfc - 1, so that the 1 of 1 + erf cancels before digits are sought.

    For numbers put into a form that was derived with symbols.

    Examples
    --------
    >>> x = sp.Symbol("x")
    >>> with_far_tails((sp.Rational(1, 2) + sp.erf(x) / 2).subs(x, -50))
    erfc(50)/2
    """
    far = {
        node: sp.erfc(-node.args[0]) - 1
        for node in expr.atoms(sp.erf)
        if is_far_below(node.args[0])
    }
    # SymPy writes erf(-50) as -erf(50).
    far |= {
        node: 1 - sp.erfc(node.args[0])
        for node in expr.atoms(sp.erf)
        if is_far_below(-node.args[0])
    }
    return expr.xreplace(far)


class BivariateNormalCDF(sp.Function):
    r"""Distribution function :math:`\Phi_2(h, k; \rho)` of two correlated standard normals.

    Raises ParameterError if `rho` is a number outside [-1, 1].

    Notes
    -----
    Symmetric in h and k, which are put into SymPy's order. Exact where it is elementary:
    :math:`\rho = 0`, h = k = 0, an infinite argument, :math:`\rho = \pm 1` with comparable
    arguments; with one argument 0 and :math:`|\rho| < 1` certain, Owen's T. ``rewrite(OwenT)``
    gives that function also for arguments in a ratio of known sign.

    Numerical values at any precision by quadrature of the log-concave
    :math:`\varphi(x)\Phi((k - \rho x)/\sqrt{1-\rho^2})` around its maximum: nothing is subtracted,
    so that values far in the tail keep their relative accuracy.

    Examples
    --------
    >>> h, k, rho = sp.symbols("h k rho", real=True)
    >>> BivariateNormalCDF(0, 0, rho)
    asin(rho)/(2*pi) + 1/4
    >>> BivariateNormalCDF(h, k, rho) - BivariateNormalCDF(k, h, rho)
    0
    >>> BivariateNormalCDF(h, k, 0)
    (erf(sqrt(2)*h/2)/2 + 1/2)*(erf(sqrt(2)*k/2)/2 + 1/2)
    >>> BivariateNormalCDF(1, -2, sp.Rational(1, 2)).evalf(20)
    0.022603272182164950114
    """

    nargs = 3

    @classmethod
    def eval(cls, h: sp.Expr, k: sp.Expr, rho: sp.Expr) -> sp.Expr | None:
        if sp.nan in (h, k, rho):
            return sp.nan
        if rho.is_number and (not rho.is_real or (1 - rho**2).is_negative):
            raise ParameterError(f"rho has to be a correlation, -1 <= rho <= 1, but is {rho}")
        if h is sp.S.NegativeInfinity or k is sp.S.NegativeInfinity:
            return sp.S.Zero
        for infinite, other in ((h, k), (k, h)):
            if infinite is sp.oo:
                return normal_cdf(other)
        if rho.is_zero:
            return normal_cdf(h) * normal_cdf(k)
        if h.is_zero and k.is_zero:
            return sp.Rational(1, 4) + sp.asin(rho) / (2 * sp.pi)
        if rho == 1 or rho == -1:
            value = _perfectly_correlated(h, k, int(rho))
            if value is not None:
                return value
        elif (h.is_zero or k.is_zero) and (1 - rho**2).is_positive:
            return _one_zero(k if h.is_zero else h, rho)
        if default_sort_key(k) < default_sort_key(h):
            return cls(k, h, rho)
        return None

    def by_owen(self) -> sp.Expr:
        r"""Return it by :math:`\Phi` and Owen's T for all signs of the arguments, for code.

        .. math:: \Phi_2 = \tfrac12\Phi(h) + \tfrac12\Phi(k) - T\Big(h, \frac{k - \rho h}
                  {h\sqrt{1-\rho^2}}\Big) - T\Big(k, \frac{h - \rho k}{k\sqrt{1-\rho^2}}\Big)
                  - \beta,

        β = 1/2 where h and k have opposite signs (Owen, equation 2.1). Arguments are moved from 0
        by less than any rounding, so that floating point numbers need no cases: the errors are
        roundings, of 1 and not of the value.

        Examples
        --------
        >>> value = BivariateNormalCDF(1, -2, sp.Rational(1, 2))
        >>> abs(value.by_owen().evalf(20) - value.evalf(20)) < 1e-18
        True
        """
        h, k, rho = (*(x + _TINY for x in self.args[:2]), self.args[2])
        root = sp.sqrt((1 - rho) * (1 + rho) + _TINY)
        both = (_written_by_erf(h) + _written_by_erf(k)) / 2
        both -= OwenT(h, (k - rho * h) / (h * root)) + OwenT(k, (h - rho * k) / (k * root))
        return both - (1 - sp.sign(h) * sp.sign(k)) / 4

    def _numpycode(self, printer: Any) -> str:
        # In brackets, because a function stands in products without.
        return f"({printer._print(self.by_owen())})"

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Derivative by h, k or rho: density times conditional probability; joint density."""
        h, k, rho = self.args
        rest = 1 - rho**2
        if argindex == 3:
            return sp.exp(-(h**2 - 2 * rho * h * k + k**2) / (2 * rest)) / (
                2 * sp.pi * sp.sqrt(rest)
            )
        if argindex == 2:
            h, k = k, h
        density = sp.exp(-(h**2) / 2) / sp.sqrt(2 * sp.pi)
        if rest == 0:
            return density * sp.Heaviside(k - rho * h)
        return density * normal_cdf((k - rho * h) / sp.sqrt(rest))

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        try:
            h, k, rho = (x._to_mpmath(prec, allow_ints=False) for x in self.args)
        except ValueError:  # symbolic argument
            return None
        if not all(isinstance(x, mpmath.mpf) for x in (h, k, rho)):
            return None
        # SymPy asks again with more bits where formulas cancel; few precisions are few integrals.
        step = _PRECISION_STEP if prec <= 4 * _PRECISION_STEP else 4 * _PRECISION_STEP
        value = _digits(*self.args, -(-prec // step) * step)
        return None if value is None else sp.Expr._from_mpmath(value, prec)

    def _eval_is_real(self) -> bool | None:
        return True if all(x.is_real for x in self.args) else None

    def _eval_is_nonnegative(self) -> bool | None:
        return True if all(x.is_real for x in self.args) else None

    def _eval_rewrite(self, rule: Any, args: tuple[sp.Expr, ...], **hints: Any) -> sp.Expr | None:
        if rule is OwenT:
            return _by_owen(*args)
        if rule is sp.Integral:
            h, k, rho = args
            if rho == 1 or rho == -1:
                return None
            x = sp.Dummy("x", real=True)
            density = sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)
            inside = density * normal_cdf((k - rho * x) / sp.sqrt(1 - rho**2))
            return sp.Integral(inside, (x, -sp.oo, h))
        return None

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        power = "" if exp is None else f"^{{{exp}}}"
        h, k, rho = map(printer._print, self.args)
        return rf"\Phi_{{2}}{power}\left({h}, {k}; {rho}\right)"

    def _pretty(self, printer: Any) -> Any:
        from sympy.printing.pretty.stringpict import prettyForm

        h, k, rho = map(printer._print, self.args)
        inside = prettyForm(*h.right(", ", k, "; ", rho))
        return prettyForm(*prettyForm("Φ₂").right(prettyForm(*inside.parens())))


@functools.lru_cache(maxsize=512)
def _digits(h: sp.Expr, k: sp.Expr, rho: sp.Expr, prec: int) -> Any:
    """Φ₂ at real numbers to `prec` bits; None if rho is no correlation."""
    # exp(-h²/2) loses 2 log2|h| bits, and 1 - ρ² those in which ρ agrees with ±1.
    sizes = [int(mpmath.mag(x)) for x in (y._to_mpmath(prec) for y in (h, k)) if x]
    gap = (1 - sp.Abs(rho))._to_mpmath(prec)
    lost = max(0, 2 * max(sizes, default=0))
    lost += max(0, -2 * int(mpmath.mag(gap))) if gap else 0
    bits = prec + _GUARD_BITS
    with mpmath.workprec(bits):
        x, y, r = (number._to_mpmath(bits + lost, allow_ints=False) for number in (h, k, rho))
        if abs(r) > 1:
            return None
        if abs(r) == 1:
            with mpmath.workprec(bits + lost):
                return _perfectly_correlated_value(x, y, r)
        value = _integral_over_angles(x, y, r)
        return _conditional_integral(x, y, r, lost) if value is None else value


def _written_by_erf(x: sp.Expr) -> sp.Expr:
    return (1 + sp.erf(x / sp.sqrt(2))) / 2


def _one_zero(k: sp.Expr, rho: sp.Expr) -> sp.Expr:
    r"""Φ₂(0, k; ρ) = Φ(k)/2 + T(k, ρ/√(1−ρ²)), for all k."""
    return normal_cdf(k) / 2 + OwenT(k, rho / sp.sqrt(1 - rho**2))


def _perfectly_correlated(h: sp.Expr, k: sp.Expr, sign: int) -> sp.Expr | None:
    if sign == 1:
        difference = h - k
        if difference.is_nonnegative:
            return normal_cdf(k)
        return normal_cdf(h) if difference.is_nonpositive else None
    total = h + k
    if total.is_nonpositive:
        return sp.S.Zero
    return normal_cdf(h) + normal_cdf(k) - 1 if total.is_nonnegative else None


def _by_owen(h: sp.Expr, k: sp.Expr, rho: sp.Expr) -> sp.Expr | None:
    """Φ₂ by Owen's T (his equation 2.1), where the sign of k/h is known; else None."""
    if rho == 1 or rho == -1 or not (h.is_extended_real and k.is_extended_real):
        return None
    if h.is_zero or k.is_zero:
        return _one_zero(k if h.is_zero else h, rho)
    ratio = sp.cancel(k / h)
    if not (ratio.is_positive or ratio.is_negative):
        return None
    root = sp.sqrt(1 - rho**2)
    both = (normal_cdf(h) + normal_cdf(k)) / 2
    both -= OwenT(h, (ratio - rho) / root) + OwenT(k, (1 / ratio - rho) / root)
    return both if ratio.is_positive else both - sp.Rational(1, 2)


def _perfectly_correlated_value(h: Any, k: Any, rho: Any) -> Any:
    if rho > 0:
        return mpmath.ncdf(min(h, k))
    if h <= -k:
        return mpmath.mpf(0)
    # P(-k < X <= h); the two ends may be close together, and then the difference cancels.
    with mpmath.workprec(2 * mpmath.mp.prec + max(0, -int(mpmath.mag(h + k)))):
        if h + k > 1 or h * k > 0:
            return mpmath.ncdf(h) - mpmath.ncdf(-k)
        return mpmath.ncdf(min(h, k)) - mpmath.ncdf(-max(h, k))


def _integral_over_angles(h: Any, k: Any, rho: Any) -> Any:
    r"""Φ(h)Φ(k) + ∫ exp(−(h² + k² − 2hk sin θ)/(2 cos² θ)) dθ/(2π), θ from 0 to arcsin ρ.

    Plackett's derivative, integrated; elementary and smooth where ρ is not close to ±1. None where
    it is, where the two terms cancel, and where two rules do not agree.
    """
    if abs(rho) > _STRONGEST_CORRELATION or max(abs(h), abs(k)) > _FARTHEST_LEVEL:
        return None
    squares, product = h * h + k * k, 2 * h * k

    def integrand(angle: Any) -> Any:
        sine = mpmath.sin(angle)
        return mpmath.exp((product * sine - squares) / (2 * (1 - sine) * (1 + sine)))

    end = mpmath.asin(rho)
    count = 2 + mpmath.mp.prec // _BITS_PER_PIECE
    wholes = [
        mpmath.quadgl(integrand, mpmath.linspace(0, end, n + 1), maxdegree=_HIGHEST_DEGREE)
        for n in (count, count + 1)
    ]
    independent = mpmath.ncdf(h) * mpmath.ncdf(k)
    value = independent + wholes[0] / (2 * mpmath.pi)
    if value < mpmath.ldexp(independent, -_GUARD_BITS // 4):
        return None
    wanted = mpmath.ldexp(value, _GUARD_BITS // 2 - mpmath.mp.prec)
    return value if abs(wholes[1] - wholes[0]) <= wanted else None


def _conditional_integral(h: Any, k: Any, rho: Any, lost: int) -> Any:
    """Integrate φ(x) Φ((k − ρx)/√(1−ρ²)) up to h; the arguments are `lost` bits finer."""
    if h > k:
        h, k = k, h
    finer = mpmath.mp.prec + lost
    with mpmath.workprec(finer):
        rest = mpmath.sqrt((1 - rho) * (1 + rho))
        slope = rho / rest

    def integrand(x: Any) -> Any:
        with mpmath.workprec(finer):
            return mpmath.exp(-x * x / 2) * mpmath.ncdf((k - rho * x) / rest)

    def log_slope(x: Any) -> Any:
        return -x - slope * _mills((k - rho * x) / rest)

    with mpmath.workprec(finer):
        peak = _maximum_before(h, log_slope)
        height = integrand(peak)
        cuts = _cuts(integrand, peak, height, h)
        if rho:
            # The factor Φ falls from 1 to 0 within a width of sqrt(1-ρ²)/|ρ| around k/ρ.
            centre, width = k / rho, abs(rest / rho)
            steps = {centre + sign * width * 2**j for j in range(6) for sign in (-1, 1)}
            cuts |= {x for x in steps | {centre} if min(cuts) < x < h}
        ends = sorted(cuts)
        # From the left end of each piece, so that nearby points keep their distance.
        pieces = [(a, b - a) for a, b in itertools.pairwise(ends)]

    def piece(start: Any, width: Any) -> Any:
        def part(t: Any) -> Any:
            with mpmath.workprec(finer):
                x = start + width * t
            return integrand(x) / height

        return width * mpmath.quadgl(part, [0, 1], maxdegree=_HIGHEST_DEGREE)

    # A piece counts when its halves confirm it: mpmath's own estimate of the error is a guess.
    pending = [(start, width, piece(start, width)) for start, width in pieces]
    size = mpmath.fsum(result for _, _, result in pending)
    wanted, value = mpmath.ldexp(size, _GUARD_BITS // 2 - mpmath.mp.prec), mpmath.mpf(0)
    for _ in range(_MOST_PIECES):
        if not pending:
            return value * height / mpmath.sqrt(2 * mpmath.pi)
        start, width, whole = pending.pop()
        with mpmath.workprec(finer):
            half = width / 2
            middle = start + half
        first, second = piece(start, half), piece(middle, half)
        if abs(first + second - whole) <= wanted:
            value += first + second
        else:
            pending += [(start, half, first), (middle, half, second)]
    raise ConvergenceError(f"quadrature of Phi_2({h}, {k}; {rho}) did not converge")


def _mills(y: Any) -> Any:
    """Return φ(y)/Φ(y); its asymptote where both underflow any use."""
    if y < -(10**6):
        return -y
    return mpmath.npdf(y) / mpmath.ncdf(y)


def _maximum_before(h: Any, log_slope: Callable[[Any], Any]) -> Any:
    """Maximum on (−∞, h] of a log-concave function with the given logarithmic derivative."""
    with mpmath.workprec(53):
        if log_slope(h) >= 0:
            return h
        step = mpmath.mpf(1)
        while log_slope(h - step) < 0:
            step *= 2
        # Without a slope the bracket is halved.
        return bracketed_root(lambda x: (-log_slope(x), 0), (h - step, h), mpmath.mp, size=1)


def _cuts(integrand: Callable[[Any], Any], peak: Any, height: Any, h: Any) -> set[Any]:
    """Points from the peak outwards, at doubling distances of the scale of the fall, to the end."""
    negligible = mpmath.ldexp(height, -mpmath.mp.prec - 10)
    cuts = {peak, h}
    for sign, limit in ((-1, mpmath.inf), (1, h - peak)):
        if limit == 0:
            continue
        step = mpmath.mpf(1)
        while step > limit or integrand(peak + sign * step) < height / 4:
            step /= 2
        while step < limit:
            cuts.add(peak + sign * step)
            if integrand(peak + sign * step) <= negligible:
                break
            step *= 2
    if h - peak > 0 and integrand(h) <= negligible:
        cuts.discard(h)
    return cuts
