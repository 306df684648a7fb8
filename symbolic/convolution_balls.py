r"""Balls for Gaussian tables: their functions, the polynomials that join them, their growth.

What :mod:`.gaussian_convolutions` made of the definitions becomes, for parameters in balls,
functions of complex balls with proven tails. The growth of
:math:`t(\kappa) = \mathbb{E}_z[F(A'\kappa + Bz) z^j]` follows from that of F. With
:math:`|F(u)| \le K (1 + |u|)^N e^{a|u| + qu^2}` on the whole line and v = 1 − 2qB² > 0, completing
the square turns the law of z into the normal one with mean 2qBA/v and variance 1/v, A = A'κ; then
:math:`|z| \le (2qB|A| + \sqrt v\,|y|)/v` with y standard normal, and with t = |κ| >= 1

.. math:: |t(\kappa)| \le \frac{K}{\sqrt v} e^{qA'^2t^2/v}\, t^{N + j} e^{g|A'|t}\;
   \mathbb{E}\Bigl[(1 + g'|A'| + B|y|/\sqrt v)^N (h|A'| + |y|/\sqrt v)^j e^{aB|y|/\sqrt v}\Bigr]

with h = 2qB/v, g' = 1 + hB and g = a g'. The last mean is a finite sum of
:math:`\mathbb{E}|y|^m e^{b|y|} \le 2e^{b^2/2}\,\mathbb{E}(|y| + b)^m`.

Of the parameters it is used that they have the signs that they are declared with, and that B is
positive: the balls have to show both. Sups of F between its tails come from evaluation on intervals
that cover them.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from ..errors import (
    AssumptionError,
    CertificationError,
    UndecidedError,
    UnsupportedExpressionError,
)
from .accuracy import rewrite_for_accuracy
from .ball_functions import (
    Ball,
    BallEvaluator,
    BallFunction,
    is_known_function,
    require_flint,
)
from .convolution_integrands import ARGUMENT
from .gaussian_branches import analytic_branches
from .gaussian_convolutions import Convolution, GaussianTables
from .tail_analysis import TailAnalysis
from .tail_bounds import smooth_growth
from .tail_growth import Growth, TailBound

# Beyond it, where a tail begins to be simple, the sup up to there is not looked for.
_FARTHEST = 10_000
_HALVINGS = 12


@dataclass(frozen=True)
class BranchBalls:
    """An analytic branch of a function between two points.

    Attributes
    ----------
    function : callable
        ``function(ball, analytic)``, as :class:`.ball_functions.BallEvaluator` makes them.
    left, right : real ball or None
        The ends; None for infinity.
    """

    function: BallFunction
    left: Ball | None
    right: Ball | None


@dataclass(frozen=True)
class BranchedBalls:
    """A function by its branches from left to right.

    Attributes
    ----------
    branches : tuple of BranchBalls
    tails : (TailBound, TailBound)
        Of its absolute value towards −∞ and +∞.
    """

    branches: tuple[BranchBalls, ...]
    tails: tuple[TailBound, TailBound]

    @property
    def ends(self) -> list[Ball]:
        """The points between the branches."""
        return [branch.left for branch in self.branches if branch.left is not None]

    def largest(self, reach: Ball) -> Ball:
        """Return an upper bound of the absolute value up to a distance from 0.

        Raises
        ------
        CertificationError
            If the function is not bounded there, as far as evaluation shows.
        """
        total = 0 * reach
        for branch in self.branches:
            left = -reach if branch.left is None else (-reach).max(branch.left)
            right = reach if branch.right is None else reach.min(branch.right)
            if not right < left:
                total = total.max(_largest(branch.function, left.lower(), right.upper()))
        return total.upper()


@dataclass(frozen=True)
class ConvolutionBalls:
    """Averages E_z[F_i(offset + slope·κ + spread·z) z^j], for the pairs (i, j) of `moments`."""

    functions: tuple[BranchedBalls, ...]
    moments: tuple[tuple[int, int], ...]
    slope: Ball
    offset: Ball
    spread: Ball


@dataclass(frozen=True)
class DirectBalls:
    """A function of the node itself."""

    function: BranchedBalls


@dataclass(frozen=True)
class TableBalls:
    """Tables as functions of balls.

    Attributes
    ----------
    convolutions : tuple of ConvolutionBalls
    directs : tuple of DirectBalls
    combine : callable
        From the values [node, moments of the convolutions one after the other, directs], all real
        or all complex balls, to [node, tables in the order of the definitions]. Where a table is
        more than a polynomial of these, the result is finite only where it is analytic.
    breaks : tuple of ball
        Where directs have kinks.
    growth : tuple of Growth
        Of the tables in t = \\|node\\|, for both directions at once.
    """

    convolutions: tuple[ConvolutionBalls, ...]
    directs: tuple[DirectBalls, ...]
    combine: Callable[[Sequence[Ball]], list[Ball]]
    breaks: tuple[Ball, ...]
    growth: tuple[Growth, ...]


def table_balls(tables: GaussianTables, values: Mapping[sp.Symbol, Ball]) -> TableBalls:
    """Return tables as functions of balls, at the precision that is set.

    Parameters
    ----------
    tables : GaussianTables
    values : mapping from Symbol to real ball
        Of the parameters of the definitions.

    Raises
    ------
    CertificationError
        If the width of a convolution is not proven to be positive, a parameter may have another
        sign than it is declared with, or a function is not bounded between its tails.
    AssumptionError
        If an expectation is not known to exist.
    UnsupportedExpressionError
        If a parameter has no value, or a function cannot be enclosed or bounded.
    """
    missing = sorted(map(str, tables.parameters - values.keys()))
    if missing:
        raise UnsupportedExpressionError(f"parameters without a value: {', '.join(missing)}")
    _require_declared_signs(values)
    evaluator = BallEvaluator(values)
    convolutions = tuple(_convolution(c, evaluator) for c in tables.convolutions)
    directs = tuple(_branched(f, tables.node, evaluator) for _, f in tables.directs)
    known: dict[sp.Symbol, Growth] = {}
    for symbolic, balls in zip(tables.convolutions, convolutions, strict=True):
        bounds = [_global_bound(f) for f in balls.functions]
        for value, (i, j) in zip(symbolic.values, balls.moments, strict=True):
            size = _mean_growth(bounds[i], j, balls, symbolic.functions[i])
            known[value] = Growth(size)
    for (symbol, _), f in zip(tables.directs, directs, strict=True):
        known[symbol] = Growth(f.tails[0].union(f.tails[1]))
    one = evaluator.real_constant(sp.S.One)
    known[tables.node] = Growth(TailBound(one, one, 0 * one, 0 * one, one))
    analysis = TailAnalysis(evaluator, known)
    growth = tuple(
        Growth(analysis.size(expr), 0 * one if nonnegative else None)
        for expr, nonnegative in zip(tables.expressions, tables.nonnegative, strict=True)
    )
    return TableBalls(
        convolutions,
        tuple(DirectBalls(f) for f in directs),
        _combination(tables, evaluator),
        tuple(end for f in directs for end in f.ends),
        growth,
    )


def _require_declared_signs(values: Mapping[sp.Symbol, Ball]) -> None:
    for symbol, value in values.items():
        for sign, declared, holds in (
            ("positive", symbol.is_positive, value > 0),
            ("nonnegative", symbol.is_nonnegative, value >= 0),
            ("negative", symbol.is_negative, value < 0),
            ("nonpositive", symbol.is_nonpositive, value <= 0),
        ):
            if declared and not holds:
                raise CertificationError(
                    f"the parameter {symbol} is not proven to be {sign}: it lies in {value.str(5)}"
                )


def _convolution(convolution: Convolution, evaluator: BallEvaluator) -> ConvolutionBalls:
    spread = evaluator.real_constant(convolution.spread)
    if not spread > 0:
        raise CertificationError(
            f"the width {convolution.spread} of the Gaussian that smooths "
            f"{convolution.functions[0]} is not proven to be positive: it lies in {spread.str(5)}"
            "\n  where it is exactly zero, use the aligned or unspiked special case"
        )
    return ConvolutionBalls(
        tuple(_branched(f, ARGUMENT, evaluator) for f in convolution.functions),
        convolution.moments,
        evaluator.real_constant(convolution.slope),
        0 * spread,
        spread,
    )


def _branched(f: sp.Expr, variable: sp.Symbol, evaluator: BallEvaluator) -> BranchedBalls:
    try:
        branches = analytic_branches(f, variable, evaluator)
    except UndecidedError as error:
        raise CertificationError(f"{error}; more digits may decide it") from None
    ends = [None if b.left is None else evaluator.real_constant(b.left) for b in branches]
    tails = (
        smooth_growth(branches[0].expr, variable, -1, evaluator),
        smooth_growth(branches[-1].expr, variable, 1, evaluator),
    )
    if ends[1:]:
        # The branches far out hold beyond the last kink only.
        beyond = functools.reduce(
            lambda x, y: x.max(y), (abs(end) for end in ends[1:] if end is not None)
        ).upper()
        tails = (tails[0].since(beyond), tails[1].since(beyond))
    found = [
        BranchBalls(evaluator.function(_accurate(branch.expr), variable), left, right)
        for branch, (left, right) in zip(branches, itertools.pairwise([*ends, None]), strict=True)
    ]
    return BranchedBalls(tuple(found), tails)


@functools.lru_cache(maxsize=256)
def _accurate(expr: sp.Expr) -> sp.Expr:
    """Return an equal form in which little cancels, as erfc(−u) for 1 + erf(u)."""
    # Equal on the line, so the continuations are the same where both are analytic.
    found = rewrite_for_accuracy(expr)
    known = all(is_known_function(f.func) for f in found.atoms(sp.Function))
    return found if known and not found.has(sp.Piecewise) else expr


def _combination(
    tables: GaussianTables, evaluator: BallEvaluator
) -> Callable[[Sequence[Ball]], list[Ball]]:
    variables = [tables.node]
    variables += [value for c in tables.convolutions for value in c.values]
    variables += [symbol for symbol, _ in tables.directs]
    together = evaluator.functions(tables.expressions, variables)
    arb, acb = evaluator.flint.arb, evaluator.flint.acb

    def combine(values: Sequence[Ball]) -> list[Ball]:
        real = isinstance(values[0], arb)
        points = [acb(value) for value in values] if real else values
        found = together(points, not real)
        return [values[0], *((table.real for table in found) if real else found)]

    return combine


def _largest(function: BallFunction, left: Ball, right: Ball) -> Ball:
    """Bound a function on an interval by evaluation on its parts."""
    total = 0 * left
    pieces = math.ceil(float((right - left).upper())) * 2 + 1
    for i in range(pieces):
        a = left + (right - left) * i / pieces
        b = left + (right - left) * (i + 1) / pieces
        total = total.max(_size_between(function, a.union(b), _HALVINGS))
    return total.upper()


def _size_between(function: BallFunction, interval: Ball, halvings: int) -> Ball:
    value = function(require_flint().acb(interval), False).abs_upper()
    if value.is_finite():
        return value
    if not halvings:
        raise CertificationError(
            f"a function of the tables is not bounded near {float(interval.mid()):.6g}, as far as "
            "can be proven"
        )
    left, middle, right = interval.lower(), interval.mid(), interval.upper()
    parts = (left.union(middle), middle.union(right))
    first, second = (_size_between(function, part, halvings - 1) for part in parts)
    return first.max(second)


@dataclass(frozen=True)
class _GlobalBound:
    """\\|F(u)\\| <= constant (1 + \\|u\\|)**power exp(rate \\|u\\| + curvature u²) on the line."""

    constant: Ball
    power: int
    rate: Ball
    curvature: Ball


def _global_bound(f: BranchedBalls) -> _GlobalBound:
    tail = f.tails[0].union(f.tails[1])
    if not tail.start < _FARTHEST:
        raise CertificationError(
            f"the growth of a function of the tables is known from {tail.start.str(5)} on only"
        )
    zero = 0 * tail.constant
    power = tail.power.max(zero).upper()
    whole = math.floor(float(power))
    while not whole >= power:
        whole += 1
    return _GlobalBound(
        tail.constant.max(f.largest(tail.start)).upper(),
        whole,
        tail.rate.max(zero).upper(),
        tail.curvature.max(zero).upper(),
    )


def _mean_growth(
    bound: _GlobalBound, j: int, balls: ConvolutionBalls, function: sp.Expr
) -> TailBound:
    """Bound E[F(A'κ + Bz) z^j] in t = |κ|, as the module says."""
    slope, spread = abs(balls.slope).upper(), balls.spread
    zero, one = 0 * spread, 0 * spread + 1
    v = 1 - 2 * bound.curvature * spread * spread
    if not v > 0:
        raise AssumptionError(
            f"E[F(A + B z)] is not known to exist for F = {str(function)[:100]} and "
            f"B = {spread.str(5)}: F may grow faster than exp(u**2/(2*B**2))"
        )
    narrow = 1 / v.sqrt()
    pull = 2 * bound.curvature * spread / v
    widened = 1 + pull * spread
    argument = [1 + widened * slope, spread * narrow]
    inner = [pull * slope, narrow]
    mean = _absolute_moment(
        _product(_power(argument, bound.power), _power(inner, j)),
        bound.rate * spread * narrow,
    )
    degree = bound.power + (j if slope > 0 and bound.curvature > 0 else 0)
    return TailBound(
        (bound.constant * narrow * mean).upper(),
        zero + degree if slope > 0 else zero,
        (bound.rate * widened * slope).upper(),
        (bound.curvature * slope * slope / v).upper(),
        one,
    )


def _power(polynomial: list[Ball], exponent: int) -> list[Ball]:
    found = [0 * polynomial[0] + 1]
    for _ in range(exponent):
        found = _product(found, polynomial)
    return found


def _product(first: list[Ball], second: list[Ball]) -> list[Ball]:
    found = [0 * first[0]] * (len(first) + len(second) - 1)
    for i, x in enumerate(first):
        for k, y in enumerate(second):
            found[i + k] = found[i + k] + x * y
    return found


def _absolute_moment(coefficients: list[Ball], rate: Ball) -> Ball:
    """Bound E[p(|y|) exp(b |y|)] for a polynomial with nonnegative coefficients."""
    if rate == 0:
        return sum((c * _absolute(m, c) for m, c in enumerate(coefficients)), 0 * rate)
    total = 0 * rate
    for m, c in enumerate(coefficients):
        shifted = sum(
            (math.comb(m, i) * rate ** (m - i) * _absolute(i, rate) for i in range(m + 1)),
            0 * rate,
        )
        total = total + c * shifted
    return 2 * (rate * rate / 2).exp() * total


def _absolute(m: int, like: Ball) -> Ball:
    """Return E|y|^m of a standard normal y."""
    # E|y|^(2n) = (2n − 1)!!, E|y|^(2n + 1) = (2n)!! sqrt(2/π).
    found = 0 * like + 1
    for k in range(m - 1, 0, -2):
        found = found * k
    return found if m % 2 == 0 else found * (2 / type(like).pi()).sqrt()
