r"""Piecewise polynomials of one linear form, without kinks inside kinks.

Clipped and folded functions come as nested maxima, minima and moduli, which no rule averages. Where
all of them depend on one form t through polynomials, the function is one polynomial between two
neighbours of the points :math:`t_1 < t_2 < \dots` and

.. math:: f(t) = p_0(t) + \sum_i q_i(t)\,\mathrm{relu}(t - t_i),
          \qquad q_i(t) = \frac{p_i(t) - p_{i-1}(t)}{t - t_i},

with :math:`p_i - p_{i-1}` times a step where it jumps: max(-1, min(1, t)) is
relu(t + 1) - relu(t - 1) - 1. Points are compared exactly, by the assumptions on parameters.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import sympy as sp

from ..errors import UnsupportedExpressionError
from ._singularities import real_zeros
from .functions import HALF, relu

KINKED = (relu, sp.Abs, sp.sign, sp.Heaviside, sp.Max, sp.Min)

# Points, and points times the degree.
_MOST_POINTS = 200
_LONGEST = 600
_MOST_PARTS = 20_000


class _NotPiecewise(Exception):
    """It is not a piecewise polynomial of one form, or the order of its points is not known."""


@dataclass(frozen=True)
class _Pieces:
    """Polynomials left of the first point, between the points, and right of the last."""

    points: tuple[sp.Expr, ...]
    polynomials: tuple[sp.Poly, ...]


def flattened(expr: sp.Expr, *, whole: bool = False) -> sp.Expr:
    """Write kinks inside kinks as sums of relu and steps, wherever that can be done.

    Parameters
    ----------
    expr : Expr
        What holds no nested kinks is returned as it is.
    whole : bool
        Products with three and more kinks become piecewise polynomials, too, and arguments of
        kinks may be of any degree: right for exact averages, but sums of large terms far out.

    Returns
    -------
    Expr
        Equal at every point; if `whole`, at every point but those where it jumps.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> flattened(sp.Max(-1, sp.Min(1, z)))
    -relu(z - 1) + relu(z + 1) - 1
    >>> flattened(abs(relu(z**2 - 1) - 1)), flattened(relu(z) * abs(relu(z) - 1))
    (Abs(relu(z**2 - 1) - 1), (-relu(z) + 2*relu(z - 1) + 1)*relu(z))
    """
    kinks = expr.atoms(*KINKED)
    if not kinks or (len(kinks) == 1 and not _is_nested(next(iter(kinks)))):
        return expr
    if not any(map(_is_nested, kinks)) and not (whole and _kinks_in_products(expr) > 2):
        return expr
    found = _flat(expr, whole)
    if found is not None:
        return found
    if whole and expr.is_Mul:
        # Other factors, as exponentials, stay outside.
        bent = [factor for factor in expr.args if factor.has(*KINKED)]
        found = _flat(sp.Mul(*bent), whole) if 1 < len(bent) < len(expr.args) else None
        if found is not None:
            return sp.Mul(found, *(factor for factor in expr.args if not factor.has(*KINKED)))
    return expr.func(*(flattened(operand, whole=whole) for operand in expr.args))


def without_extrema(expr: sp.Expr, argument: str = "the expression") -> sp.Expr:
    """Write Max and Min by relu or abs; those inside others, as :func:`flattened` does.

    Parameters
    ----------
    expr : Expr
    argument : str
        How the user knows it.

    Raises
    ------
    UnsupportedExpressionError
        If maxima stand inside others that depend on more than one form, or not by polynomials, and
        writing them out takes too many terms.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> without_extrema(sp.Max(z, 2 * z))
    3*z/2 + Abs(z)/2
    >>> sp.expand(without_extrema(sp.Min(z, 1, 3 - z)).subs(z, 5) - (3 - 5))
    0
    """
    if not expr.has(sp.Max, sp.Min):
        return expr
    expr = flattened(expr)
    require_size(expr, argument)
    return expr.rewrite(sp.Abs) if expr.has(sp.Max, sp.Min) else expr


def require_size(expr: sp.Expr, argument: str) -> None:
    """Refuse an expression of very many parts: max(x, y) written by relu or abs holds y twice.

    Raises
    ------
    UnsupportedExpressionError
        Naming the count and the limit.
    """
    known: dict[sp.Basic, int] = {}

    def size(node: sp.Basic) -> int:
        if node not in known:
            counts = [size(operand) for operand in node.args]
            if isinstance(node, sp.Max | sp.Min):
                counts = [functools.reduce(lambda a, b: 2 * (a + b), counts)]
            known[node] = 1 + sum(counts)
        return known[node]

    if size(expr) > _MOST_PARTS:
        raise UnsupportedExpressionError(
            f"{argument} has {size(expr)} parts when max and min are written out; keep them below "
            f"{_MOST_PARTS}, with fewer max and min inside each other"
        )


def _is_nested(kink: sp.Expr) -> bool:
    several = isinstance(kink, sp.Max | sp.Min) and len(kink.args) > 2
    return several or any(operand.has(*KINKED) for operand in kink.args)


def _kinks_in_products(expr: sp.Expr) -> int:
    """Largest number of different kinks in one product after multiplying out."""

    def count(node: sp.Expr) -> int:
        if isinstance(node, KINKED) or not node.args:
            return int(isinstance(node, KINKED))
        counts = [count(operand) for operand in node.args]
        if node.is_Mul:
            return sum(counts)
        if node.is_Pow and node.exp.is_Integer and node.exp > 1:
            return min(int(node.exp) * counts[0], len(node.atoms(*KINKED)))
        return max(counts)

    return count(expr)


def _flat(expr: sp.Expr, whole: bool) -> sp.Expr | None:
    for form, t, inside in _in_one_form(expr):
        try:
            pieces = _read(inside, t, whole)
            return _as_sum(inside, t, pieces, whole).xreplace({t: form})
        except _NotPiecewise:
            continue
    return None


def _in_one_form(expr: sp.Expr) -> list[tuple[sp.Expr, sp.Symbol, sp.Expr]]:
    """Ways to write an expression in one linear form: the form, the symbol for it, the rest."""
    if len(expr.free_symbols) == 1:
        (t,) = expr.free_symbols
        return [(t, t, expr)]
    kinks = [k for k in expr.atoms(*KINKED) if not any(u.has(*KINKED) for u in k.args)]
    inner = min(kinks, key=sp.default_sort_key).args[-1]
    _, form = inner.as_independent(*inner.free_symbols, as_Add=True)
    t, found = sp.Dummy("t", real=True), []
    for pivot in sorted(form.free_symbols, key=sp.default_sort_key):
        slope = form.diff(pivot)
        if slope.is_nonzero and pivot not in slope.free_symbols:
            rest = form.xreplace({pivot: sp.S.Zero})
            found.append((form, t, expr.xreplace({pivot: (t - rest) / slope})))
    return found


def _read(expr: sp.Expr, t: sp.Symbol, whole: bool) -> _Pieces:
    if not expr.has(*KINKED):
        inside = sp.expand(expr)
        if not inside.is_polynomial(t):
            raise _NotPiecewise
        return _Pieces((), (sp.Poly(inside, t),))
    parts = [_read(operand, t, whole) for operand in expr.args[: 1 if expr.is_Pow else None]]
    if expr.is_Add:
        return _combined(parts, lambda ps: functools.reduce(sp.Poly.add, ps))
    if isinstance(expr, sp.Max | sp.Min):
        return functools.reduce(functools.partial(_larger, expr.func, whole), parts)
    if isinstance(expr, KINKED):
        return _bent(expr.func, parts[0], whole)
    if expr.is_Mul:
        constant = sum(part.points != () or part.polynomials[0].degree() > 0 for part in parts) < 2
        if whole or constant:
            return _combined(parts, lambda ps: functools.reduce(sp.Poly.mul, ps))
    if expr.is_Pow and whole and expr.exp.is_Integer and 0 < expr.exp <= _LONGEST:
        return _combined(parts, lambda ps: ps[0] ** int(expr.exp))
    raise _NotPiecewise


def _combined(parts: Sequence[_Pieces], combine: Callable[[list[sp.Poly]], sp.Poly]) -> _Pieces:
    points = _sorted(point for part in parts for point in part.points)
    if len(points) > _MOST_POINTS:
        raise _NotPiecewise
    places = [0] * len(parts)
    polynomials = []
    for left in (None, *points):
        for k, part in enumerate(parts):
            ahead = part.points[places[k] :]
            if left is not None and ahead and _compared(ahead[0], left) == 0:
                places[k] += 1
        polynomials.append(combine([p.polynomials[i] for p, i in zip(parts, places, strict=True)]))
        if polynomials[-1].degree() * len(points) > _LONGEST:
            raise _NotPiecewise
    return _Pieces(tuple(points), tuple(polynomials))


def _larger(function: type, whole: bool, first: _Pieces, second: _Pieces) -> _Pieces:
    """max(a, b) = b + relu(a - b), min(a, b) = b - relu(b - a)."""
    sign = 1 if function is sp.Max else -1
    rise = _bent(relu, _combined([first, second], lambda p: sign * (p[0] - p[1])), whole)
    return _combined([second, rise], lambda p: p[0] + sign * p[1])


def _bent(function: type, inner: _Pieces, whole: bool) -> _Pieces:
    """Compose relu, abs, sign or the step with a piecewise polynomial."""
    ends = (None, *inner.points, None)
    points: list[sp.Expr] = []
    polynomials: list[sp.Poly] = []
    for k, p in enumerate(inner.polynomials):
        left, right = ends[k], ends[k + 1]
        if p.degree() > 1 and not whole:
            raise _NotPiecewise
        zeros = [x for x in _zeros(p) if _inside(x, left, right)]
        bounds = [left, *zeros, right]
        for low, high in itertools.pairwise(bounds):
            sign = _sign_between(p, low, high)
            half = sp.Rational(1 + sign, 2)
            weight = {relu: half * p, sp.Abs: sign * p}.get(function)
            constant = sp.Integer(sign) if function is sp.sign else half
            polynomials.append(p.zero + constant if weight is None else weight)
        points += zeros
        points += [] if right is None else [right]
    return _Pieces(tuple(points), tuple(polynomials))


def _zeros(p: sp.Poly) -> list[sp.Expr]:
    if p.degree() < 1:
        return []
    if p.degree() == 1:
        slope, shift = p.all_coeffs()
        return [sp.expand(-shift / slope)] if slope.is_nonzero else _refused()
    if p.free_symbols_in_domain:
        raise _NotPiecewise
    found = real_zeros(p.as_expr(), p.gen)
    if any(isinstance(x, sp.CRootOf) for x in found):
        raise _NotPiecewise
    return _sorted(found)


def _refused() -> list[sp.Expr]:
    raise _NotPiecewise


def _sign_between(p: sp.Poly, low: sp.Expr | None, high: sp.Expr | None) -> int:
    """Sign of a polynomial without zeros between two points."""
    if p.is_zero:
        return 0
    if p.degree() == 1 and (low is None or high is None):
        return _compared(p.LC() if high is None else -p.LC(), sp.S.Zero)
    if low is not None and high is not None:
        point = (low + high) / 2
    elif low is not None:
        point = low + 1
    else:
        point = sp.S.Zero if high is None else high - 1
    return _compared(p.eval(point), sp.S.Zero)


def _inside(x: sp.Expr, left: sp.Expr | None, right: sp.Expr | None) -> bool:
    above = left is None or _compared(x, left) > 0
    return above and (right is None or _compared(x, right) < 0)


def _compared(a: sp.Expr, b: sp.Expr) -> int:
    difference = sp.expand(a - b)
    if difference.is_zero:
        return 0
    if difference.is_positive or difference.is_negative:
        return 1 if difference.is_positive else -1
    raise _NotPiecewise


def _sorted(points: Iterable[sp.Expr]) -> list[sp.Expr]:
    ordered = sorted(points, key=functools.cmp_to_key(_compared))
    return [x for i, x in enumerate(ordered) if i == 0 or _compared(ordered[i - 1], x) != 0]


def _as_sum(expr: sp.Expr, t: sp.Symbol, pieces: _Pieces, whole: bool) -> sp.Expr:
    total = [pieces.polynomials[0].as_expr()]
    sides = itertools.pairwise(pieces.polynomials)
    for point, (before, after) in zip(pieces.points, sides, strict=True):
        change = after - before
        if change.is_zero:
            continue
        if _compared(change.eval(point), sp.S.Zero) == 0:
            slope = sp.quo(change, sp.Poly(t - point, t))
            total.append(slope.as_expr() * relu(t - point))
            continue
        # A step is the mean of its sides where it is: that has to be what is written there.
        mean = (before.eval(point) + after.eval(point)) / 2
        if not whole and _compared(expr.xreplace({t: point}), mean) != 0:
            raise _NotPiecewise
        total.append(change.as_expr() * sp.Heaviside(t - point, HALF))
    return sp.Add(*total)
