r"""Proven bounds of a function far out, and of what the normal density leaves of it there.

On one half-line, z = ±t, a function is bounded from the structure of its expression by

.. math:: |f(t)| \le C\,t^n e^{a t + q t^2} \quad\text{for all } t \ge T, \qquad T \ge 1,

with real n, a and q. Bounded functions give constants, polynomials the sum of their coefficients'
sizes, exp, sinh and cosh an upper bound of their argument; sums, products and powers combine these
(t >= 1 makes the larger exponent the larger function), and the integral of the bound beyond a
point is bounded in closed form (:mod:`giantstep.gaussian_tails`). All constants are balls, so the
bounds hold for the exact constants they stand for. Signs of subexpressions come from SymPy's
assumptions with t positive.
"""

from __future__ import annotations

import sympy as sp

from ..errors import AssumptionError
from .ball_functions import Ball, BallEvaluator
from .tail_analysis import T, TailAnalysis
from .tail_growth import TailBound

__all__ = ["TailBound", "cutoff_for", "smooth_growth", "tail_bound"]

_FARTHEST = 10**9


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
    bound = smooth_growth(expr, variable, direction, evaluator)
    if not bound.curvature < evaluator.real_constant(sp.S.Half):
        raise AssumptionError(
            f"{str(expr)[:100]} is not known to grow slower than exp({variable}**2/2) towards "
            f"{'oo' if direction > 0 else '-oo'}; its Gaussian expectation may not exist"
        )
    return bound


def smooth_growth(
    expr: sp.Expr, variable: sp.Symbol, direction: int, evaluator: BallEvaluator
) -> TailBound:
    """Bound a function as :func:`tail_bound` does, however fast it grows.

    Raises
    ------
    AssumptionError
        If it may grow faster than the exponential of any multiple of z².
    UnsupportedExpressionError
        If a part of the expression cannot be bounded; the message names it.
    """
    return TailAnalysis(evaluator).size(expr.subs(variable, direction * T))


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
