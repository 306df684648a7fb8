r"""Piecewise polynomials of one linear form, without kinks inside kinks.

Clipped and folded functions come as nested maxima, minima and moduli, which no rule averages. Where
all of them depend on one form t through polynomials, the function is one polynomial between two
neighbours of the points :math:`t_1 < t_2 < \dots` and

.. math:: f(t) = p_0(t) + \sum_i q_i(t)\,\mathrm{relu}(t - t_i),
          \qquad q_i(t) = \frac{p_i(t) - p_{i-1}(t)}{t - t_i},

with :math:`p_i - p_{i-1}` times a step where it jumps: max(-1, min(1, t)) is
relu(t + 1) - relu(t - 1) - 1. Points are compared exactly, by the assumptions on parameters.
The same rules take apart functions that are other than polynomials between their kinks
(:func:`.convex_losses.smooth_pieces`).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from ...errors import UnsupportedExpressionError
from ._singularities import NONSMOOTH, on_side, real_zeros
from .functions import HALF, relu
from .shared_parts import parts_of

KINKED = (*NONSMOOTH, sp.Max, sp.Min)

# Points, and points times the degree.
_MOST_POINTS = 200
_LONGEST = 600
_MOST_PARTS = 20_000


class NotPiecewise(UnsupportedExpressionError):
    """It is not a piecewise polynomial of one form, or the order of its points is not known."""


@dataclass(frozen=True)
class Pieces:
    """Polynomials or expressions: left of the first point, between points, right of the last."""

    points: tuple[sp.Expr, ...]
    values: tuple[Any, ...]


def flattened(expr: sp.Expr, *, whole: bool = False) -> sp.Expr:
    """Write kinks inside kinks as sums of relu and steps, wherever that can be done.

    `expr`: what holds no nested kinks is returned as it is. `whole`: products with three and more
    kinks become piecewise polynomials, too, and arguments of kinks may be of any degree: right for
    exact averages, but sums of large terms far out. The result: equal at every point; if `whole`,
    at every point but those where it jumps.

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
    result = _flat(expr, whole)
    if result is not None:
        return result
    if whole and expr.is_Mul:
        # Other factors, as exponentials, stay outside.
        bent = [factor for factor in expr.args if factor.has(*KINKED)]
        result = _flat(sp.Mul(*bent), whole) if 1 < len(bent) < len(expr.args) else None
        if result is not None:
            return sp.Mul(result, *(factor for factor in expr.args if not factor.has(*KINKED)))
    return expr.func(*(flattened(operand, whole=whole) for operand in expr.args))


def without_extrema(expr: sp.Expr, argument: str = "the expression") -> sp.Expr:
    """Write Max and Min by relu or abs; those inside others, as :func:`flattened` does.

    `argument`: how the user knows it. Raises UnsupportedExpressionError if maxima stand inside
    others that depend on more than one form, or not by polynomials, and writing them out takes too
    many terms.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> without_extrema(sp.Max(z, 2 * z))
    3*z/2 + Abs(z)/2
    >>> sp.expand(without_extrema(sp.Min(z, 1, 3 - z)).subs(z, 5) - (3 - 5))
    0
    """
    if not parts_of(expr, sp.Max, sp.Min):
        return expr
    expr = flattened(expr)
    require_size(expr, argument)
    # Of these alone: a sign would become a quotient that no rule knows.
    return expr.rewrite([sp.Max, sp.Min], sp.Abs)


def by_steps(expr: sp.Expr, variables: Sequence[sp.Symbol]) -> sp.Expr:
    """Write each Piecewise by steps; by relu where it is continuous and polynomial in one form.

    `variables`: a Piecewise with a condition that does not hold one of them stays as it is, and so
    does one with conditions other than comparisons by <, <=, > or >=. The result: equal wherever no
    two sides of a comparison are equal.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> by_steps(sp.Piecewise((z, z > 0), (z / 10, True)), [z])
    z/10 + 9*relu(z)/10
    >>> by_steps(sp.Piecewise((sp.exp(z), z < 0), (1, True)), [z])
    (1 - Heaviside(z))*exp(z) + Heaviside(z)
    """
    if not expr.has(sp.Piecewise):
        return expr

    def written(*cases: Any) -> sp.Expr:
        try:
            left: sp.Expr = sp.S.One
            total = []
            for value, condition in cases:
                inside = _indicator(condition, variables)
                total.append((value, _merged(left * inside)))
                left = left * (1 - inside)
            if _merged(left) != 0:
                raise NotPiecewise("it is not defined everywhere")
            result = sp.Add(*(value * weight for value, weight in total))
            return _flat(result, True) or result
        except NotPiecewise:
            return sp.Piecewise(*cases)

    return expr.replace(sp.Piecewise, written)


def _merged(weight: sp.Expr) -> sp.Expr:
    """Return a product of steps of one form as a sum of steps."""
    if not weight.has(sp.Heaviside):
        return weight
    result = _flat(weight, True)
    return sp.expand(weight) if result is None else sp.expand(result)


def _indicator(condition: Any, variables: Sequence[sp.Symbol]) -> sp.Expr:
    if condition in (True, False):
        return sp.Integer(bool(condition))
    if isinstance(condition, sp.And):
        return sp.Mul(*(_indicator(part, variables) for part in condition.args))
    if isinstance(condition, sp.Or):
        return 1 - sp.Mul(*(1 - _indicator(part, variables) for part in condition.args))
    if isinstance(condition, sp.Not):
        return 1 - _indicator(condition.args[0], variables)
    if isinstance(condition, sp.Gt | sp.Ge | sp.Lt | sp.Le):
        difference = sp.expand(condition.gts - condition.lts)
        if difference.has(*variables) and not difference.has(*KINKED, sp.Piecewise):
            return sp.Heaviside(difference, HALF)
    raise NotPiecewise


_MOST_FORMS = 4


def in_every_order(expr: sp.Expr) -> sp.Expr:
    """Write maxima and minima of three or four forms as sums over the orders of these.

    Those of one form are left to :func:`flattened`, those of two to :func:`without_extrema`.

    Examples
    --------
    >>> u, v = sp.symbols("u v", real=True)
    >>> in_every_order(sp.Max(u, v, 0)).subs({u: 2, v: 3}), in_every_order(sp.Max(u, v))
    (3, Max(u, v))
    """

    def several(node: sp.Expr) -> bool:
        return isinstance(node, sp.Max | sp.Min) and 2 < len(_leaves(node)) <= _MOST_FORMS

    def summed(node: sp.Expr) -> sp.Expr:
        leaves = sorted(_leaves(node), key=sp.default_sort_key)
        if any(leaf.has(*KINKED) for leaf in leaves):
            return node
        total = []
        for order in itertools.permutations(leaves):
            rank = {leaf: sp.Integer(i) for i, leaf in enumerate(order)}
            chosen = order[int(_ranked(node, rank))]
            steps = (sp.Heaviside(b - a, HALF) for a, b in itertools.pairwise(order))
            total.append(chosen * sp.Mul(*steps))
        return sp.Add(*total)

    if not expr.has(sp.Max, sp.Min):
        return expr
    if several(expr):
        return summed(expr)
    return expr.func(*map(in_every_order, expr.args)) if expr.args else expr


def _leaves(node: sp.Expr) -> set[sp.Expr]:
    if not isinstance(node, sp.Max | sp.Min):
        return {node}
    return set().union(*map(_leaves, node.args))


def _ranked(node: sp.Expr, rank: dict[sp.Expr, sp.Integer]) -> sp.Expr:
    if not isinstance(node, sp.Max | sp.Min):
        return rank[node]
    return node.func(*(_ranked(operand, rank) for operand in node.args))


def require_size(expr: sp.Expr, argument: str) -> None:
    """Refuse an expression of very many parts: max(x, y) written by relu or abs holds y twice.

    Raises UnsupportedExpressionError naming the count and the limit.
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
        except NotPiecewise:
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
    t, result = sp.Dummy("t", real=True), []
    for pivot in sorted(form.free_symbols, key=sp.default_sort_key):
        slope = form.diff(pivot)
        if slope.is_nonzero and pivot not in slope.free_symbols:
            rest = form.xreplace({pivot: sp.S.Zero})
            result.append((form, t, expr.xreplace({pivot: (t - rest) / slope})))
    return result


def _read(expr: sp.Expr, t: sp.Symbol, whole: bool) -> Pieces:
    if not expr.has(*KINKED):
        inside = sp.expand(expr)
        if not inside.is_polynomial(t):
            raise NotPiecewise
        return Pieces((), (sp.Poly(inside, t),))
    parts = [_read(operand, t, whole) for operand in expr.args[: 1 if expr.is_Pow else None]]
    if expr.is_Add:
        return combined(parts, lambda *ps: functools.reduce(sp.Poly.add, ps))
    bend = functools.partial(_bent, whole)
    if isinstance(expr, sp.Max | sp.Min):
        return functools.reduce(functools.partial(larger, expr.func, bend), parts)
    if isinstance(expr, KINKED):
        return bend(expr.func, parts[0])
    if expr.is_Mul:
        constant = sum(part.points != () or part.values[0].degree() > 0 for part in parts) < 2
        if whole or constant:
            return combined(parts, lambda *ps: functools.reduce(sp.Poly.mul, ps))
    if expr.is_Pow and whole and expr.exp.is_Integer and 0 < expr.exp <= _LONGEST:
        return combined(parts, lambda p: p ** int(expr.exp))
    raise NotPiecewise


def combined(parts: Sequence[Pieces], combine: Callable[..., Any]) -> Pieces:
    """Return a function of piecewise functions, cut at the points of all of them."""
    points = in_order(point for part in parts for point in part.points)
    if len(points) > _MOST_POINTS:
        raise NotPiecewise(f"there are {len(points)} kinks; keep them to {_MOST_POINTS}")
    places = [0] * len(parts)
    values = []
    for left in (None, *points):
        for k, part in enumerate(parts):
            ahead = part.points[places[k] :]
            if left is not None and ahead and compared(ahead[0], left) == 0:
                places[k] += 1
        values.append(combine(*(p.values[i] for p, i in zip(parts, places, strict=True))))
        if isinstance(values[-1], sp.Poly) and values[-1].degree() * len(points) > _LONGEST:
            raise NotPiecewise
    return Pieces(tuple(points), tuple(values))


def larger(
    function: type, bend: Callable[[type, Pieces], Pieces], first: Pieces, second: Pieces
) -> Pieces:
    """max(a, b) = b + relu(a - b), min(a, b) = b - relu(b - a)."""
    sign = 1 if function is sp.Max else -1
    rise = bend(relu, combined([first, second], lambda a, b: sign * (a - b)))
    return combined([second, rise], lambda b, more: b + sign * more)


def bent(
    inner: Pieces,
    zeros: Callable[[Any], list[sp.Expr]],
    value: Callable[[Any, sp.Expr | None, sp.Expr | None], Any],
) -> Pieces:
    """Cut pieces at their zeros, in ascending order; `value` is what they become between two."""
    points, values = [], []
    for p, left, right in zip(
        inner.values, (None, *inner.points), (*inner.points, None), strict=True
    ):
        inside = [x for x in zeros(p) if _inside(x, left, right)]
        values += [value(p, low, high) for low, high in itertools.pairwise([left, *inside, right])]
        points += [*inside, right]
    return Pieces(tuple(points[:-1]), tuple(values))


def _bent(whole: bool, function: type, inner: Pieces) -> Pieces:
    def zeros(p: sp.Poly) -> list[sp.Expr]:
        return _refused() if p.degree() > 1 and not whole else _zeros(p)

    def value(p: sp.Poly, low: sp.Expr | None, high: sp.Expr | None) -> sp.Poly:
        return on_side(function, p, _sign_between(p, low, high))

    return bent(inner, zeros, value)


def _zeros(p: sp.Poly) -> list[sp.Expr]:
    if p.degree() < 1:
        return []
    if p.degree() == 1:
        slope, shift = p.all_coeffs()
        return [sp.expand(-shift / slope)] if slope.is_nonzero else _refused()
    if p.free_symbols_in_domain:
        raise NotPiecewise
    result = real_zeros(p.as_expr(), p.gen)
    if any(isinstance(x, sp.CRootOf) for x in result):
        raise NotPiecewise
    return in_order(result)


def _refused() -> list[sp.Expr]:
    raise NotPiecewise


def _sign_between(p: sp.Poly, low: sp.Expr | None, high: sp.Expr | None) -> int:
    """Sign of a polynomial without zeros between two points."""
    if p.is_zero:
        return 0
    if p.degree() == 1 and (low is None or high is None):
        return compared(p.LC() if high is None else -p.LC(), sp.S.Zero)
    if low is not None and high is not None:
        point = (low + high) / 2
    elif low is not None:
        point = low + 1
    else:
        point = sp.S.Zero if high is None else high - 1
    return compared(p.eval(point), sp.S.Zero)


def _inside(x: sp.Expr, left: sp.Expr | None, right: sp.Expr | None) -> bool:
    above = left is None or compared(x, left) > 0
    return above and (right is None or compared(x, right) < 0)


def compared(a: sp.Expr, b: sp.Expr) -> int:
    """Return the sign of a - b, which has to be known."""
    difference = sp.expand(a - b)
    if difference.is_zero:
        return 0
    if difference.is_positive or difference.is_negative:
        return 1 if difference.is_positive else -1
    raise NotPiecewise(
        f"which of the kinks {a} and {b} comes first is not known; declare their symbols positive"
    )


def in_order(
    points: Iterable[sp.Expr], compare: Callable[[sp.Expr, sp.Expr], int] = compared
) -> list[sp.Expr]:
    """Return points in ascending order, of equal ones the first."""
    ordered = sorted(points, key=functools.cmp_to_key(compare))
    return [x for i, x in enumerate(ordered) if i == 0 or compare(ordered[i - 1], x) != 0]


def _as_sum(expr: sp.Expr, t: sp.Symbol, pieces: Pieces, whole: bool) -> sp.Expr:
    total = [pieces.values[0].as_expr()]
    sides = itertools.pairwise(pieces.values)
    for point, (before, after) in zip(pieces.points, sides, strict=True):
        change = after - before
        if change.is_zero:
            continue
        if compared(change.eval(point), sp.S.Zero) == 0:
            slope = sp.quo(change, sp.Poly(t - point, t))
            total.append(slope.as_expr() * relu(t - point))
            continue
        # A step is the mean of its sides where it is: that has to be what is written there.
        mean = (before.eval(point) + after.eval(point)) / 2
        if not whole and compared(expr.xreplace({t: point}), mean) != 0:
            raise NotPiecewise
        total.append(change.as_expr() * sp.Heaviside(t - point, HALF))
    return sp.Add(*total)
