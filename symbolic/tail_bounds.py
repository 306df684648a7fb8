r"""Proven bounds of a function far out, and of what the normal density leaves of it there.

On one half-line, z = ±t, a function is bounded from the structure of its expression by

.. math:: |f(t)| \le C\,t^n e^{a t + q t^2} \quad\text{for all } t \ge T, \qquad T \ge 1,

with real n, a and q. Bounded functions give constants, polynomials the sum of their coefficients'
sizes, exp, sinh and cosh an upper bound of their argument; sums, products and powers combine these
(t >= 1 makes the larger exponent the larger function). With p = 1/2 − q > 0 the logarithm of
bound × density has the slope n/t + a − 2pt, decreasing in t for n >= 0 and otherwise below
a − 2pt, so that

.. math:: \int_L^\infty C t^n e^{at + qt^2} \varphi(t)\,dt
          \le \frac{C L^n e^{aL - pL^2}}{\sqrt{2\pi}\,(2pL - a - \max(n, 0)/L)}

whenever the last bracket is positive. All constants are balls, so the bounds hold for the exact
constants they stand for. Signs of subexpressions come from SymPy's assumptions with t positive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from ..errors import AssumptionError, UnsupportedExpressionError
from ._singularities import expanded, is_positive_sum, polynomial
from .ball_functions import Ball, BallEvaluator
from .functions import sigmoid, softplus

_T = sp.Symbol("|z|", positive=True)
_FARTHEST = 10**9
_BOUNDS = {
    sp.sin: sp.S.One,
    sp.cos: sp.S.One,
    sp.tanh: sp.S.One,
    sp.sech: sp.S.One,
    sp.erf: sp.S.One,
    sp.erfc: sp.Integer(2),
    sigmoid: sp.S.One,
    sp.atan: sp.pi / 2,
}
_BOUNDED_ON_THE_LINE = (*_BOUNDS, softplus, sp.asinh, sp.tan)
_REAL_FUNCTIONS = (*_BOUNDED_ON_THE_LINE, sp.exp, sp.sinh, sp.cosh)


@dataclass(frozen=True)
class TailBound:
    r"""The bound C t^n exp(a t + q t²) for t >= start; all entries are real balls.

    Attributes
    ----------
    constant, power, rate, curvature : ball
        C >= 0, n, a and q.
    start : ball
        T >= 1.
    """

    constant: Ball
    power: Ball
    rate: Ball
    curvature: Ball
    start: Ball

    def __mul__(self, other: TailBound) -> TailBound:
        return TailBound(
            self.constant * other.constant,
            self.power + other.power,
            self.rate + other.rate,
            self.curvature + other.curvature,
            self.start.max(other.start),
        )

    def __add__(self, other: TailBound) -> TailBound:
        return TailBound(
            self.constant + other.constant,
            self.power.max(other.power),
            self.rate.max(other.rate),
            self.curvature.max(other.curvature),
            self.start.max(other.start),
        )

    def __pow__(self, exponent: Ball) -> TailBound:
        """Return the bound of \\|f\\|**e for e > 0."""
        return TailBound(
            # Not 0**e: the ball of a tiny constant may touch zero, and its upper end is a bound.
            self.constant.upper() ** exponent if self.constant.upper() > 0 else self.constant,
            self.power * exponent,
            self.rate * exponent,
            self.curvature * exponent,
            self.start,
        )

    def at(self, t: Ball) -> Ball:
        """Return the bound at a point t >= start."""
        return self.constant * t**self.power * (self.rate * t + self.curvature * t * t).exp()

    def mass_beyond(self, cutoff: Ball) -> Ball | None:
        r"""Bound :math:`\int_L^\infty |f|\varphi`; None if the formula does not apply from L on."""
        half_line = type(cutoff)(1) / 2 - self.curvature
        power = self.power.max(type(cutoff)(0))
        slope = 2 * half_line * cutoff - self.rate - power / cutoff
        if not (cutoff >= self.start and half_line > 0 and slope > 0):
            return None
        density = (-cutoff * cutoff / 2).exp() / (2 * type(cutoff).pi()).sqrt()
        return (self.at(cutoff) * density / slope).upper()


def tail_bound(
    expr: sp.Expr, variable: sp.Symbol, direction: int, evaluator: BallEvaluator
) -> TailBound:
    r"""Bound a function without kinks for z = direction·t, t → ∞.

    Parameters
    ----------
    expr : Expr
        Smooth branch of the function that holds far out, in `variable`.
    variable : Symbol
        z.
    direction : int
        1 or −1.
    evaluator : BallEvaluator
        For the constants.

    Raises
    ------
    AssumptionError
        If the function is not known to stay below exp(z²/2), as the expectation needs.
    UnsupportedExpressionError
        If a part of the expression cannot be bounded; the message names it.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> z = sp.Symbol("z", real=True)
    >>> tail_bound(z**2 * sp.tanh(z), z, 1, BallEvaluator()).at(flint.arb(3))
    9.00000000000000
    """
    analysis = _Analysis(evaluator)
    bound = analysis.size(expr.subs(variable, direction * _T))
    if not bound.curvature < analysis.number(sp.S.Half):
        raise AssumptionError(
            f"{str(expr)[:100]} is not known to grow slower than exp({variable}**2/2) towards "
            f"{'oo' if direction > 0 else '-oo'}; its Gaussian expectation may not exist"
        )
    return bound


def cutoff_for(bounds: list[TailBound], tolerance: Ball, least: Ball) -> tuple[Ball, Ball]:
    r"""Return a cutoff L >= `least` and a bound of the mass of \|f\| beyond it.

    Parameters
    ----------
    bounds : list of TailBound
        One for each half-line that counts.
    tolerance : ball
        The mass is at most this.
    least : ball
        Where the bounds begin to hold, besides their own start.

    Raises
    ------
    AssumptionError
        If there is no such cutoff up to 10⁹.
    """
    cutoff = least.upper().ceil().max(type(least)(1))
    while cutoff < _FARTHEST:
        masses = [bound.mass_beyond(cutoff) for bound in bounds]
        known = [mass for mass in masses if mass is not None]
        total = sum(known, type(least)(0))
        if len(known) == len(bounds) and total <= tolerance:
            return cutoff, total
        # One by one first, an eighth more at a time where it is far.
        cutoff = cutoff + (cutoff / 8).ceil()
    raise AssumptionError(
        f"the integrand decays too slowly against the normal density: {_FARTHEST:.0e} standard "
        "deviations are not enough"
    )


class _Analysis:
    """Bounds of expressions in t >= 1 by recursion on their structure."""

    def __init__(self, evaluator: BallEvaluator) -> None:
        self.evaluator = evaluator

    def number(self, expr: sp.Expr) -> Ball:
        return self.evaluator.real_constant(expr)

    def plain(self, constant: Ball, power: int = 0) -> TailBound:
        zero, one = self.number(sp.S.Zero), self.number(sp.S.One)
        return TailBound(constant, zero + power, zero, zero, one)

    def size(self, expr: sp.Expr) -> TailBound:
        """Bound \\|expr\\| from above."""
        if _T not in expr.free_symbols:
            return self.plain(abs(self.evaluator.constant(expr)))
        if expr == _T:
            return self.plain(self.number(sp.S.One), 1)
        if expr.is_Add:
            first, *rest = (self.size(term) for term in expr.args)
            return sum(rest, first)
        if expr.is_Mul:
            return self.product(self.size(factor) for factor in expr.args)
        if expr.is_Pow:
            return self.power(*expr.args)
        u = expr.args[0]
        if isinstance(expr, _BOUNDED_ON_THE_LINE) and not _is_real(u):
            raise _unknown(expr, "its argument is not known to be real")
        if expr.func in _BOUNDS:
            return self.plain(self.number(_BOUNDS[expr.func]))
        if isinstance(expr, sp.exp):
            return self.exponential(u)
        if isinstance(expr, sp.sinh | sp.cosh):
            return self.exponential(u) + self.exponential(-u)
        if isinstance(expr, softplus):
            return self.size(u) + self.plain(self.number(sp.log(2)))
        if isinstance(expr, sp.asinh):
            return self.size(u)
        if isinstance(expr, sp.log):
            return self.logarithm(u)
        if isinstance(expr, sp.tan):
            bound = self.size(u)
            if _is_bounded(bound) and bound.constant < self.number(sp.pi / 2):
                return self.plain(bound.constant.tan())
        raise _unknown(expr, "its growth is not known")

    def product(self, bounds: Iterable[TailBound]) -> TailBound:
        total = self.plain(self.number(sp.S.One))
        for bound in bounds:
            total = total * bound
        return total

    def power(self, base: sp.Expr, exponent: sp.Expr) -> TailBound:
        if _T in exponent.free_symbols:
            return self.exponential(exponent * sp.log(base))
        if self.evaluator.constant(exponent).imag != 0:
            raise _unknown(base**exponent, "its exponent is not real")
        value = self.number(exponent)
        if value > 0:
            return self.size(base) ** value
        if value < 0:
            return self.reciprocal(base) ** -value
        raise _unknown(base**exponent, "the sign of its exponent is not known")

    def logarithm(self, u: sp.Expr) -> TailBound:
        # |log u| is below the logarithms of the bounds of |u| and of 1/|u|, and log t below t;
        # the imaginary part of a complex logarithm is at most pi.
        total = self.plain(self.number(sp.pi))
        for bound in (self.size(u), self.reciprocal(u)):
            constant, zero = bound.constant.upper(), self.number(sp.S.Zero)
            if not constant > 0:
                raise _unknown(sp.log(u), "its argument may vanish")
            linear = abs(bound.power) + abs(bound.rate)
            parts = ((abs(constant.log()), 0), (linear, 1), (abs(bound.curvature), 2))
            for size, degree in parts:
                if size != zero:
                    total = total + self.plain(size, degree) * self.since(bound.start)
        return total

    def since(self, start: Ball) -> TailBound:
        """Return the bound 1, from a later point on."""
        one = self.plain(self.number(sp.S.One))
        return TailBound(one.constant, one.power, one.rate, one.curvature, start)

    def exponential(self, u: sp.Expr) -> TailBound:
        """Bound exp(u), u with its sign: by A + a t + q t² from `start` on."""
        if u.is_nonpositive and not u.is_polynomial(_T):
            return self.plain(self.number(sp.S.One))
        regular, bounds = [], []
        for term in sp.Add.make_args(expanded(u)):
            if term.is_polynomial(_T):
                regular.append(term)
            elif not term.is_nonpositive:
                bounds.append((term, self.size(term)))
        zero, one = self.number(sp.S.Zero), self.number(sp.S.One)
        start = one
        coefficients = [self.number(c) for c in self.coefficients(sp.Add(*regular))]
        coefficients += [zero] * (3 - len(coefficients))
        for term, bound in bounds:
            start = start.max(bound.start)
            degree = next((n for n in range(len(coefficients)) if bound.power <= n), None)
            if degree is None or not (bound.rate <= 0 and bound.curvature <= 0):
                raise AssumptionError(
                    f"exp({str(term)[:100]}) is not known to grow slower than exp(z**2/2)"
                )
            coefficients[degree] = coefficients[degree] + bound.constant
        if len(coefficients) > 3:
            coefficients = self.without_high_powers(coefficients, u)
        constant, rate, curvature = coefficients
        return TailBound(constant.exp(), zero, rate, curvature, start)

    def without_high_powers(self, coefficients: list[Ball], u: sp.Expr) -> list[Ball]:
        """Bound a polynomial with negative leading coefficient −c: the rest yields beyond T.

        With S the sum of the positive coefficients from degree 2 on, S t**(n−1) <= c t**n for
        t >= T = max(1, S/c), and up to T these terms are at most S T**(n−1).
        """
        *lower, leading = coefficients
        if not leading < 0:
            raise AssumptionError(
                f"exp({str(u)[:100]}) is not known to grow slower than exp(z**2/2)"
            )
        zero, one = self.number(sp.S.Zero), self.number(sp.S.One)
        rest = sum((c.max(zero) for c in lower[2:]), zero)
        turning = (rest / -leading).max(one)
        return [lower[0] + rest * turning ** (len(lower) - 1), lower[1], zero]

    def coefficients(self, u: sp.Expr) -> list[sp.Expr]:
        """Return the coefficients of a polynomial in t, the constant one first."""
        return [sp.S.Zero] if u == 0 else polynomial(u, _T).all_coeffs()[::-1]

    def reciprocal(self, expr: sp.Expr) -> TailBound:
        """Bound 1/\\|expr\\| from above."""
        if _T not in expr.free_symbols:
            value = abs(self.evaluator.constant(expr))
            if value > 0:
                return self.plain(1 / value)
        elif expr == _T:
            return self.plain(self.number(sp.S.One), -1)
        elif expr.is_Mul:
            return self.product(self.reciprocal(factor) for factor in expr.args)
        elif expr.is_Pow:
            return self.power(expr.base, -expr.exp)
        elif isinstance(expr, sp.exp):
            return self.exponential(-expr.args[0])
        elif isinstance(expr, sp.cosh):
            return self.plain(self.number(sp.S.One))
        elif isinstance(expr, sp.sech):
            return self.size(sp.cosh(expr.args[0]))
        elif isinstance(expr, sigmoid):
            return self.size(1 + sp.exp(-expr.args[0]))
        elif expr.is_Add:
            return self.reciprocal_sum(expr)
        raise _unknown(expr, "it may come too close to 0: no lower bound is known")

    def reciprocal_sum(self, expr: sp.Expr) -> TailBound:
        if expr.is_polynomial(_T):
            *lower, leading = (abs(self.number(c)) for c in self.coefficients(expanded(expr)))
            if leading > 0:
                # Beyond T the leading term is at least twice all the others.
                start = 2 * sum(lower, self.number(sp.S.Zero)) / leading
                bound = self.plain(2 / leading, -len(lower))
                return bound * self.since(start.max(self.number(sp.S.One)))
        constant, rest = expr.as_independent(_T, as_Add=True)
        outweighed = self.size(rest)
        margin = abs(self.number(constant)) - outweighed.constant
        if _is_bounded(outweighed) and margin > 0:
            return self.plain(1 / margin) * self.since(outweighed.start)
        for sign in (1, -1):
            if all((sign * term).is_nonnegative for term in expr.args):
                for term in expr.args:
                    try:
                        return self.reciprocal(term)
                    except (UnsupportedExpressionError, AssumptionError):
                        continue
        raise _unknown(expr, "it may come too close to 0: no lower bound is known")


def _is_real(expr: sp.Expr) -> bool:
    """Whether an expression is provably real for all large t (and not an infinity there)."""
    if expr.is_extended_real:
        return True
    if expr.is_Pow and not expr.exp.is_Integer:
        base = expr.base
        positive = base.is_nonnegative or (base.is_Add and is_positive_sum(base, _T))
        return bool(positive) and _is_real(expr.exp)
    if isinstance(expr, sp.log):
        return bool(expr.args[0].is_Add and is_positive_sum(expr.args[0], _T))
    known = expr.is_Add or expr.is_Mul or expr.is_Pow or isinstance(expr, _REAL_FUNCTIONS)
    return known and all(_is_real(operand) for operand in expr.args)


def _is_bounded(bound: TailBound) -> bool:
    """Whether the constant alone is a bound."""
    return bool(bound.power <= 0 and bound.rate <= 0 and bound.curvature <= 0)


def _unknown(expr: sp.Expr, reason: str) -> UnsupportedExpressionError:
    shown = str(expr)[:100]
    kind = f"function {expr.func.__name__} in {shown}" if expr.is_Function else shown
    return UnsupportedExpressionError(f"{kind} cannot be bounded far out: {reason}")
