r"""Digits of E[f(u) g(v)] for a pair, with f and g evaluated on a line each.

In standard coordinates x, y of correlation r the density is a product of a density of x and one of
y - rx of width :math:`s = \sqrt{1 - r^2}`, so that a rule with N nodes for each variable needs only
2N values of the functions. Smooth functions take the trapezoidal rule, whose densities follow from
each other by multiplication; functions with kinks take Gauss–Legendre rules between the kinks.
Rules are refined until two agree: digits are estimated, not proven.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
from mpmath.libmp import to_fixed

from ..runtime.precise_rules import legendre
from .gaussian_quadrature import FARTHEST, ROUNDING_BITS, NotConverged
from .printing.compiled import compiled
from .regularity import analyse

# Pairs of nodes in the longest rules: seconds of work.
_MOST_PAIRS_ON_A_GRID = 4 * 10**6
_MOST_PAIRS_OF_PIECES = 6 * 10**5
# Twenty-four nodes on each piece.
_DEGREE = 4
_MOST_TERMS = 20

_Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Products:
    """A sum of products of a function of x and one of y, standard normal of correlation r.

    Attributes
    ----------
    terms : list of pairs of Expr
    x, y : Symbol
    correlation : Expr
    """

    terms: list[tuple[sp.Expr, sp.Expr]]
    x: sp.Symbol
    y: sp.Symbol
    correlation: sp.Expr


def as_products(
    f: sp.Expr, variables: Sequence[sp.Symbol], mean: sp.Matrix, covariance: sp.Matrix
) -> Products | None:
    """Write a function of two variables as a sum of products; None if it is not a short one.

    Examples
    --------
    >>> u, v = sp.symbols("u v", real=True)
    >>> found = as_products(sp.tanh(u) * sp.tanh(v), (u, v), sp.zeros(2, 1), sp.eye(2))
    >>> found.terms
    [(tanh(_x), tanh(_y))]
    """
    for whole in (f, sp.expand(f, power_exp=True)):
        terms = []
        for term in sp.Add.make_args(whole):
            first, second = sp.S.One, sp.S.One
            for factor in sp.Mul.make_args(term):
                if variables[1] not in factor.free_symbols:
                    first *= factor
                elif variables[0] not in factor.free_symbols:
                    second *= factor
                else:
                    break
            else:
                terms.append((first, second))
                continue
            break
        else:
            break
    else:
        return None
    if len(terms) > _MOST_TERMS:
        return None
    x, y = sp.symbols("x y", cls=sp.Dummy, real=True)
    first_root, second_root = sp.sqrt(covariance[0, 0]), sp.sqrt(covariance[1, 1])
    standard = {variables[0]: mean[0] + first_root * x, variables[1]: mean[1] + second_root * y}
    return Products(
        [(g.xreplace(standard), h.xreplace(standard)) for g, h in terms],
        x,
        y,
        covariance[0, 1] / (first_root * second_root),
    )


def product_value(products: Products, prec: int, ctx: Any) -> Any:
    """Return the expectation to `prec` bits, in an mpmath context that works with more.

    Raises
    ------
    NotConverged
        If the rules do not agree before they become long, or a value is not a finite real number.
    """
    correlation = ctx.mpf(products.correlation._to_mpmath(2 * ctx.prec)._mpf_)
    wanted, possible = ctx.ldexp(1, -prec - 8), ctx.ldexp(1, ROUNDING_BITS - ctx.prec)

    def agree(difference: Any, value: Any, size: Any) -> bool:
        return bool(difference <= wanted * abs(value) or difference <= possible * size)

    sides = [
        _Side([pair[k] for pair in products.terms], symbol, ctx)
        for k, symbol in enumerate((products.x, products.y))
    ]
    # The same range for both: f² + g² is more than 2|fg|, so what is left out is negligible.
    farther = max(side.reach for side in sides)
    for side in sides:
        side.reach = farther
    rule = _pieces if sides[0].kinks or sides[1].kinks else _grids
    return rule(sides[0], sides[1], correlation, ctx, agree)


class _Side:
    """The functions of one variable: their values, kinks, and the range that counts."""

    def __init__(self, expressions: Sequence[sp.Expr], symbol: sp.Symbol, ctx: Any) -> None:
        self.ctx = ctx
        self.functions = [compiled(e, [symbol], ctx) for e in expressions]
        found = {k for e in expressions for k in analyse(e, symbol).kinks}
        self.kinks = sorted(ctx.mpf(str(sp.N(k, int(ctx.dps)))) for k in found)
        self.reach = self._range()

    def values(self, x: Any) -> list[Any]:
        found = []
        for function in self.functions:
            try:
                value = self.ctx.convert(function(x))
            except (ZeroDivisionError, ValueError):
                value = self.ctx.nan
            if not isinstance(value, self.ctx.mpf) or not self.ctx.isfinite(value):
                raise NotConverged(
                    f"the integrand is not a finite real number at {self.ctx.nstr(x, 5)}"
                )
            found.append(value)
        return found

    def _range(self) -> Any:
        """Distance beyond which the squares of the functions are negligible in mean."""
        ctx = self.ctx
        nearest = ctx.sqrt(2 * ctx.ln2 * ctx.prec)
        x, quiet = nearest, 0
        while quiet < 3:
            largest = max(abs(value) for end in (x, -x) for value in self.values(end))
            negligible = (1 + largest**2) * ctx.exp(-x * x / 2) <= 64 * ctx.eps
            quiet = quiet + 1 if negligible else 0
            x += ctx.mpf(1) / 2
            if x > FARTHEST * nearest:
                raise NotConverged(
                    "the square of the integrand times the normal density does not decay: the "
                    "expectation does not exist or cannot be computed"
                )
        return x - ctx.mpf(3) / 2


def _grids(first: _Side, second: _Side, r: Any, ctx: Any, agree: Callable[..., bool]) -> Any:
    """Trapezoidal sums, halved until a shifted grid gives the same."""
    rest = (1 - r) * (1 + r)
    promising = ctx.ldexp(1, 2 * (ROUNDING_BITS - ctx.prec) // 5)
    step, previous = min(ctx.mpf(1) / 2, ctx.sqrt(rest)), None
    # Width of the band of pairs that count, in units of the second variable.
    band = 2 * min(ctx.sqrt(rest) * ctx.sqrt(2 * ctx.ln2 * ctx.prec), second.reach)
    while 2 * first.reach * band / step**2 <= _MOST_PAIRS_ON_A_GRID:
        value, size = _grid(first, second, r, step, ctx.zero, ctx)
        if previous is not None and abs(value - previous) <= promising * size:
            # Nodes at multiples of one step see a fast oscillation as a slow one.
            shifted, _ = _grid(first, second, r, step, step * (3 - ctx.sqrt(5)) / 2, ctx)
            if agree(abs(value - shifted), value, size):
                return value
        step, previous = step / 2, value
    raise NotConverged(
        f"no agreement of product rules down to step {ctx.nstr(2 * step, 2)} (there may be a "
        "singularity close to the real line, or the correlation is close to 1)"
    )


def _grid(first: _Side, second: _Side, r: Any, step: Any, shift: Any, ctx: Any) -> tuple[Any, Any]:
    """Sum of f(x) g(y) times the density over a grid, and that of the absolute values."""
    rest = (1 - r) * (1 + r)
    count, last = int(first.reach / step), int(second.reach / step)
    rows = {i: first.values(i * step + shift) for i in range(-count, count + 1)}
    columns = {j: second.values(j * step + shift) for j in range(-last, last + 1)}
    # Integers, ten times as fast as floats: densities are at most 1, and the bits in front of the
    # point are those of the largest values. Recurrences of n steps lose 2 log2(n) bits.
    largest = [max(abs(v) for row in side.values() for v in row) for side in (rows, columns)]
    bits = ctx.prec + sum(max(0, int(ctx.mag(v))) for v in largest if v)
    bits += 2 * (count + last).bit_length()

    def fixed(value: Any) -> int:
        return int(to_fixed(value._mpf_, bits))

    integers = {j: [fixed(v) for v in values] for j, values in columns.items()}
    total = size = ctx.zero
    with ctx.workprec(bits + 10):
        shrink = fixed(ctx.exp(-step * step / rest))
        for i, mine in rows.items():
            x = i * step + shift
            sums, absolute = [0] * len(mine), [0] * len(mine)
            middle = min(max(int(ctx.nint((r * x - shift) / step)), -last), last)
            start = middle * step + shift - r * x
            for direction in (1, -1):
                # Densities at equal distances: each ratio is the last one times a constant.
                density = fixed(ctx.exp(-start * start / (2 * rest)))
                ratio = fixed(ctx.exp(-step * (step + 2 * direction * start) / (2 * rest)))
                j = middle
                if direction == -1:
                    density, ratio = density * ratio >> bits, ratio * shrink >> bits
                    j -= 1
                while -last <= j <= last and density:
                    for k, value in enumerate(integers[j]):
                        part = value * density
                        sums[k] += part
                        absolute[k] += abs(part)
                    density, ratio = density * ratio >> bits, ratio * shrink >> bits
                    j += direction
            weight = ctx.ldexp(ctx.exp(-x * x / 2), -2 * bits)
            total += weight * ctx.fsum(a * b for a, b in zip(mine, sums, strict=True))
            size += weight * ctx.fsum(abs(a) * b for a, b in zip(mine, absolute, strict=True))
    scale = step * step / (2 * ctx.pi * ctx.sqrt(rest))
    return total * scale, size * scale


@dataclass(frozen=True)
class _Piece:
    """Nodes centre + half * t of a rule with nodes t, and its weights times the functions there.

    The weights include the factor exp(-x²/(2s²)) of the density.
    """

    centre: Any
    half: Any
    nodes: list[Any]
    weighted: list[list[Any]]


def _pieces(first: _Side, second: _Side, r: Any, ctx: Any, agree: Callable[..., bool]) -> Any:
    """Gauss–Legendre rules between the kinks, on shorter pieces until two agree."""
    spread = ctx.sqrt((1 - r) * (1 + r))
    width, previous = 2 * min(ctx.mpf(1), 2 * spread), None
    # The density is a product of exponentials of up to (reach/s)², which lose as many bits.
    lost = 2 * max(0, int(ctx.mag(max(first.reach, second.reach) / spread)))
    band = 2 * min(spread * first.reach, second.reach)
    with ctx.workprec(ctx.prec + lost):
        rule = legendre(ctx, _DEGREE)
        while len(rule) ** 2 * 2 * first.reach * band / width**2 <= _MOST_PAIRS_OF_PIECES:
            mine, others = (_rule_on_pieces(s, rule, width, spread) for s in (first, second))
            value, size = _sum_over_pieces(mine, others, r, ctx)
            if previous is not None and agree(abs(value - previous), value, size):
                return value
            width, previous = width * 2 / 3, value
    raise NotConverged(
        "no agreement of rules between the kinks before they became too long (there may be a "
        "singularity close to the real line, or the correlation is close to 1)"
    )


def _rule_on_pieces(
    side: _Side, rule: Sequence[tuple[Any, Any]], width: Any, spread: Any
) -> list[_Piece]:
    ctx = side.ctx
    inside = [k for k in side.kinks if abs(k) < side.reach]
    found = []
    for a, b in itertools.pairwise([-side.reach, *inside, side.reach]):
        count = int(ctx.ceil((b - a) / width))
        half = (b - a) / (2 * count)
        for number in range(count):
            centre = a + (2 * number + 1) * half
            nodes = [centre + half * t for t, _ in rule]
            values = zip(*(side.values(x) for x in nodes), strict=True)
            weights = [
                half * weight * ctx.exp(-((x / spread) ** 2) / 2)
                for x, (_, weight) in zip(nodes, rule, strict=True)
            ]
            weighted = [[w * y for w, y in zip(weights, row, strict=True)] for row in values]
            found.append(_Piece(centre, half, nodes, weighted))
    return found


def _sum_over_pieces(
    first: list[_Piece], second: list[_Piece], r: Any, ctx: Any
) -> tuple[Any, Any]:
    """Sum of f(x) g(y) times the density, and that of the absolute values."""
    rest = (1 - r) * (1 + r)
    spread, tilt = ctx.sqrt(rest), r / rest
    room = ctx.sqrt(2 * ctx.ln2 * (ctx.prec + 8)) * spread
    total = size = ctx.zero
    absolute = [[[abs(w) for w in row] for row in piece.weighted] for piece in second]
    sample = second[0]
    steps = [(y - sample.centre) / sample.half for y in sample.nodes]
    for piece in first:
        for place, x in enumerate(piece.nodes):
            # exp(tilt x y) at the nodes of pieces of the same length differs by one factor.
            within: dict[Any, list[Any]] = {}
            for other, sizes in zip(second, absolute, strict=True):
                if abs(other.centre - r * x) > room + other.half:
                    continue
                if other.half not in within:
                    slope = tilt * x * other.half
                    within[other.half] = [ctx.exp(slope * t) for t in steps]
                factors = within[other.half]
                outside = ctx.exp(tilt * x * other.centre)
                for mine, row, row_sizes in zip(piece.weighted, other.weighted, sizes, strict=True):
                    weight = mine[place] * outside
                    total += weight * ctx.fdot(factors, row)
                    size += abs(weight) * ctx.fdot(factors, row_sizes)
    scale = 1 / (2 * ctx.pi * spread)
    return total * scale, size * scale
