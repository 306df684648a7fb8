r"""Convex functions of one real variable: convexity, smooth pieces, and proximal points by rule.

A loss that is quadratic between its kinks has a proximal operator that is linear between break
points, so it is a sum of rectified linear functions; square, absolute, hinge, Huber, quantile and
ε-insensitive losses are of this kind. The derivation is in :func:`piecewise_linear_proximal`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import sympy as sp
from sympy.core.relational import Relational

from ...errors import ParameterError, UnsupportedExpressionError
from ..expressions._singularities import affine_slope, on_side
from ..expressions.functions import relu
from ..expressions.piecewise_polynomials import (
    KINKED,
    Pieces,
    bent,
    combined,
    compared,
    flattened,
    larger,
    require_size,
)

_SWITCHES = (*KINKED, sp.Piecewise)
# Where convexity is looked at: around the origin, and far from it.
_POINTS = tuple(sp.Rational(n, 8) for n in (*range(-41, 42, 2), -801, -161, 163, 803))
_DIGITS = 30
_LARGEST_SAMPLES = 9


def is_kinked(loss: sp.Expr, x: sp.Symbol) -> bool:
    """Whether a function with a kink, a jump or cases acts on something that holds x."""
    return any(x in atom.free_symbols for atom in loss.atoms(*_SWITCHES))


def without_cases(loss: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Write Max, Min and Piecewise in x by relu, as far as possible.

    Cases whose conditions hold other cases are rearranged by SymPy without end, and relu is what
    the analysis of kinks knows.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> without_cases(sp.Max(0, 1 - x), x)
    relu(1 - x)
    >>> without_cases(sp.Piecewise((x**2 / 2, x < 1), (x - sp.Rational(1, 2), True)), x)
    x**2/2 - relu(x - 1)**2/2
    """

    def by_relu(sign: int, *args: sp.Expr) -> sp.Expr:
        return functools.reduce(lambda a, b: a + sign * relu(sign * (b - a)), args)

    loss = flattened(loss)
    require_size(loss, "loss")
    loss = loss.replace(sp.Max, lambda *args: by_relu(1, *args))
    loss = loss.replace(sp.Min, lambda *args: by_relu(-1, *args))
    if not any(x in cases.free_symbols for cases in loss.atoms(sp.Piecewise)):
        return loss
    try:
        kinks, pieces = smooth_pieces(loss, x)
    except UnsupportedExpressionError:
        return loss
    jumps = [sp.expand(b - a) for a, b in itertools.pairwise(pieces)]
    changes = [
        [jump.diff(x, order).xreplace({x: kink}) for order in range(3)]
        for kink, jump in zip(kinks, jumps, strict=True)
    ]
    if any(jump.diff(x, 3) != 0 for jump in jumps) or any(sp.expand(c[0]) != 0 for c in changes):
        return loss
    # From a piece in the middle outwards, so that symmetric losses look it.
    middle = len(kinks) // 2
    total = pieces[middle]
    for i, (kink, (_, slope, curvature)) in enumerate(zip(kinks, changes, strict=True)):
        side = 1 if i >= middle else -1
        beyond = relu(side * (x - kink))
        total += sp.expand(slope) * beyond + sp.expand(side * curvature) * beyond**2 / 2
    return total


def smooth_pieces(loss: sp.Expr, x: sp.Symbol) -> tuple[tuple[sp.Expr, ...], tuple[sp.Expr, ...]]:
    """Return the kinks in ascending order, and the smooth expressions before, between and after.

    Raises
    ------
    UnsupportedExpressionError
        If a switching argument is not affine in x, or the order of two kinks is not known.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> smooth_pieces(sp.Max(0, 1 - x), x)
    ((1,), (1 - x, 0))
    """
    result = _pieces(loss, x)
    kinks, pieces = [], [result.values[0]]
    for kink, piece in zip(result.points, result.values[1:], strict=True):
        if sp.expand(piece - pieces[-1]) != 0:
            kinks.append(kink)
            pieces.append(piece)
    return tuple(kinks), tuple(pieces)


def piecewise_linear_proximal(
    loss: sp.Expr, x: sp.Symbol, center: sp.Expr, step: sp.Expr
) -> sp.Expr | None:
    r"""Return the proximal point of a loss that is quadratic between kinks; else None.

    Notes
    -----
    The proximal point p satisfies :math:`c \in p + s\,\partial\ell(p)`, whose right-hand side
    increases. A piece with :math:`\ell'(x) = ax + b` gives :math:`p = (c - sb)/(1 + sa)`; a kink k
    holds p fixed while c runs from :math:`k + s\ell'(k^-)` to :math:`k + s\ell'(k^+)`. So p is
    continuous and linear in c between these points. It is written from its middle segment
    outwards, one rectified linear function for each change of slope, so that a segment in the
    middle, as the zero of soft thresholding, is met exactly.

    Examples
    --------
    >>> x, c = sp.symbols("x c", real=True)
    >>> s = sp.Symbol("s", positive=True)
    >>> piecewise_linear_proximal(sp.Abs(x), x, c, s)
    -relu(-c - s) + relu(c - s)
    """
    kinks, pieces = smooth_pieces(loss, x)
    slopes = [sp.expand(piece.diff(x)) for piece in pieces]
    if not all(slope.is_polynomial(x) and sp.degree(slope, x) <= 1 for slope in slopes):
        return None
    _require_convex_joints(loss, x, kinks, pieces, slopes)
    # Segments p = value + rate*c in the order of c, and the points between them.
    segments: list[tuple[sp.Expr, sp.Expr]] = []
    breaks: list[sp.Expr] = []
    for i, slope in enumerate(slopes):
        curvature, offset = slope.coeff(x, 1), slope.coeff(x, 0)
        rate = 1 / (1 + step * curvature)
        segments.append((-step * offset * rate, rate))
        if i < len(kinks):
            breaks += [kinks[i] + step * slopes[k].xreplace({x: kinks[i]}) for k in (i, i + 1)]
            segments.append((kinks[i], sp.S.Zero))
    middle = len(kinks)
    value, rate = segments[middle]
    changes: dict[sp.Expr, sp.Expr] = {}
    for k in range(len(breaks)):
        right = k >= middle
        outer, inner = (k + 1, k) if right else (k, k + 1)
        # Left of the middle, minus the change of the slope.
        change = (segments[outer][1] - segments[inner][1]) * (1 if right else -1)
        argument = sp.expand(center - breaks[k] if right else breaks[k] - center)
        changes[argument] = changes.get(argument, sp.S.Zero) + change
    corrections = (sp.together(change) * relu(u) for u, change in changes.items())
    start = sp.together(value + rate * center) if rate != 0 else value
    return sp.Add(start, *corrections)


@functools.lru_cache(maxsize=256)
def require_convex(loss: sp.Expr, x: sp.Symbol) -> None:
    """Refuse a loss that is not convex, where that can be shown.

    Raises
    ------
    ParameterError
        If the loss lies above a chord at one of some points, for all values of its parameters
        that are tried; or is not a finite real number there.
    """
    witnesses = [_concave_point(loss.xreplace(values), x) for values in _samples(loss, x)]
    if witnesses and all(point is not None for point in witnesses):
        raise ParameterError(
            f"loss must be convex in {x}, but {loss} lies above a chord at {x} = {witnesses[0]}: "
            "its proximal point is not unique"
        )


def _samples(loss: sp.Expr, x: sp.Symbol) -> Iterator[dict[sp.Symbol, sp.Expr]]:
    """Values of the parameters, within their assumptions."""
    parameters = sorted(loss.free_symbols - {x}, key=sp.default_sort_key)
    choices = []
    for p in parameters:
        values = (sp.Rational(3, 4), sp.Rational(-5, 3), sp.Rational(7, 2))
        choices.append([v for v in values if not (v < 0 and p.is_nonnegative)
                        and not (v > 0 and p.is_nonpositive)])  # fmt: skip
    for values in itertools.islice(itertools.product(*choices), _LARGEST_SAMPLES):
        yield dict(zip(parameters, values, strict=True))


def _concave_point(loss: sp.Expr, x: sp.Symbol) -> sp.Expr | None:
    values = [loss.xreplace({x: point}).evalf(_DIGITS) for point in _POINTS]
    points = sorted(zip(_POINTS, values, strict=True), key=lambda pair: pair[0])
    for (a, low), (b, value), (c, high) in zip(points, points[1:], points[2:], strict=False):
        if not all(v.is_Number and v.is_finite for v in (low, value, high)):
            raise ParameterError(
                f"loss must be a finite real number for every real {x}, but {loss} is not near "
                f"{x} = {b}"
            )
        chord = ((c - b) * low + (b - a) * high) / (c - a)
        scale = abs(low) + abs(value) + abs(high)
        if value - chord > scale * sp.Float("1e-20"):
            return b
    return None


def _pieces(expr: sp.Basic, x: sp.Symbol) -> Pieces:
    """Return the kinks of an expression or a condition, and what it is between them."""
    if x not in expr.free_symbols or not expr.has(*_SWITCHES, Relational):
        return Pieces((), (expr,))
    parts = [_pieces(operand, x) for operand in expr.args]
    bend = functools.partial(_bent, x)
    if isinstance(expr, sp.Max | sp.Min):
        return functools.reduce(functools.partial(larger, expr.func, bend), parts)
    if isinstance(expr, Relational):
        return bend(lambda u: expr.func(u, 0), combined(parts, lambda a, b: a - b))
    if isinstance(expr, KINKED):
        return bend(expr.func, parts[0])
    return combined(parts, expr.func)


def _bent(x: sp.Symbol, function: Callable[[sp.Expr], sp.Basic], inner: Pieces) -> Pieces:
    """Compose a kink, a jump or a condition with affine pieces; what is constant stays as it is."""

    def zeros(u: sp.Expr) -> list[sp.Expr]:
        if x not in u.free_symbols:
            return []
        slope = affine_slope(u, x)
        if slope is None or sp.sign(slope) not in (1, -1):
            raise UnsupportedExpressionError(
                f"the kinks of {function(u)} are not known: {u} must be affine in {x}, with a "
                "slope of known sign (declare symbols positive)"
            )
        return [-u.xreplace({x: sp.S.Zero}) / slope]

    def value(u: sp.Expr, low: sp.Expr | None, high: sp.Expr | None) -> sp.Basic:
        if x not in u.free_symbols:
            return function(u)
        beyond = low is not None and compared(low, *zeros(u)) >= 0
        sign = sp.sign(affine_slope(u, x)) * (1 if beyond else -1)
        return on_side(function, u, sign) if function in KINKED else function(sign)

    return bent(inner, zeros, value)


def _require_convex_joints(
    loss: sp.Expr,
    x: sp.Symbol,
    kinks: tuple[sp.Expr, ...],
    pieces: tuple[sp.Expr, ...],
    slopes: list[sp.Expr],
) -> None:
    for slope in slopes:
        if slope.coeff(x, 1).is_negative:
            raise ParameterError(f"loss must be convex in {x}, but the slope of {loss} falls")
    for i, kink in enumerate(kinks):
        here = {x: kink}
        if sp.expand((pieces[i + 1] - pieces[i]).xreplace(here)) != 0:
            raise ParameterError(f"loss must be continuous in {x}, but {loss} jumps at {kink}")
        if sp.expand((slopes[i + 1] - slopes[i]).xreplace(here)).is_negative:
            raise ParameterError(
                f"loss must be convex in {x}, but the slope of {loss} falls at {kink}"
            )
