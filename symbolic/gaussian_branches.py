r"""The analytic branches of a kinked function of one variable, with proven order and signs.

relu, abs, sign and the step are analytic where their argument has one sign. The candidates for a
change of sign are its real zeros and poles, exact; balls prove the order of these points and the
sign of every argument between them. A point that turns out to be no kink does no harm.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import sympy as sp

from ..errors import AssumptionError, UndecidedError, UnsupportedExpressionError
from ._singularities import expanded, find_kinks, resolved
from .ball_functions import Ball, BallEvaluator
from .piecewise_polynomials import in_order, without_extrema

# Where arguments are looked at, as fractions of a piece or distances from its only end.
_FRACTIONS = (sp.S.Half, sp.Rational(3, 7), sp.Rational(7, 11))
_DISTANCES = (sp.Rational(8, 7), sp.Rational(17, 11), sp.Rational(31, 3))


@dataclass(frozen=True)
class Branch:
    """An expression without kinks that a function is equal to between two points.

    Attributes
    ----------
    expr : Expr
        The expression, analytic or with the singularities that the function itself has there.
    left, right : Expr or None
        The ends; None for infinity.
    """

    expr: sp.Expr
    left: sp.Expr | None
    right: sp.Expr | None


def analytic_branches(
    f: sp.Expr, variable: sp.Symbol, evaluator: BallEvaluator, *, cut_at_zero: bool = False
) -> list[Branch]:
    """Return the branches of a function from left to right; they cover the line.

    Parameters
    ----------
    f : Expr
        Function of `variable`; its other symbols are constants that `evaluator` knows.
    variable : Symbol
        Declared real.
    evaluator : BallEvaluator
        For points and signs, at the precision that is set.
    cut_at_zero : bool
        Whether 0 has to be an end of a branch.

    Raises
    ------
    UnsupportedExpressionError
        If kinks cannot be located.
    AssumptionError
        If the function is infinite on a whole branch, as 1/relu(z) is.
    UndecidedError
        If the order of two of them or a sign between them cannot be proven.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> z = sp.Symbol("z", real=True)
    >>> [branch.expr for branch in analytic_branches(abs(z - 1), z, BallEvaluator())]
    [1 - z, z - 1]
    """
    f = without_extrema(f)
    points = list(find_kinks(f, variable)[0])
    if cut_at_zero:
        points.insert(0, sp.S.Zero)  # first: of equal points the first is kept
    ends = [None, *in_order(points, functools.partial(_compared, evaluator)), None]
    return [
        Branch(_resolved(f, variable, left, right, evaluator), left, right)
        for left, right in itertools.pairwise(ends)
    ]


def _compared(evaluator: BallEvaluator, first: sp.Expr, second: sp.Expr) -> int:
    """Return the proven sign of first - second."""
    a, b = evaluator.real_constant(first), evaluator.real_constant(second)
    if a < b or a > b:
        return -1 if a < b else 1
    if first == second or (first - second).equals(0):
        return 0
    raise UndecidedError(f"whether the kinks at {first} and {second} differ cannot be decided")


def _resolved(
    f: sp.Expr,
    variable: sp.Symbol,
    left: sp.Expr | None,
    right: sp.Expr | None,
    evaluator: BallEvaluator,
) -> sp.Expr:
    """Replace kinked functions by the branches that hold between two points."""
    shown, inside = f, _points_inside(left, right, evaluator)
    f = resolved(f, variable, lambda u: _sign(u, variable, inside, evaluator))
    if f.has(sp.zoo, sp.nan):
        raise AssumptionError(
            f"{str(shown)[:100]} is infinite or undefined between "
            f"{'-oo' if left is None else left} and {'oo' if right is None else right}; "
            "its expectation does not exist"
        )
    return f


def _points_inside(
    left: sp.Expr | None, right: sp.Expr | None, evaluator: BallEvaluator
) -> list[Ball]:
    number = evaluator.real_constant
    if left is None and right is None:
        return [number(x) for x in _DISTANCES]
    if right is None:
        return [number(left) + number(x) for x in _DISTANCES]
    if left is None:
        return [number(right) - number(x) for x in _DISTANCES]
    return [number(left) + (number(right) - number(left)) * number(x) for x in _FRACTIONS]


def _sign(
    argument: sp.Expr, variable: sp.Symbol, inside: list[Ball], evaluator: BallEvaluator
) -> sp.Expr:
    if expanded(argument) == 0:
        return sp.S.Zero
    function = evaluator.function(argument, variable)
    # Another point, because the first may be a zero that is no kink, as 0 in relu(z) - relu(-z).
    for point in inside:
        value = function(evaluator.flint.acb(point), False)
        if not value.imag.contains(0):
            raise UnsupportedExpressionError(
                f"{argument}, argument of a kinked function, is not real"
            )
        if value.real > 0 or value.real < 0:
            return sp.S.One if value.real > 0 else sp.S.NegativeOne
    raise UndecidedError(f"the sign of {argument} between the kinks cannot be decided")
