r"""Digits of Gaussian expectations, to any precision.

For one variable the trapezoidal rule on the line converges geometrically where the integrand is
analytic in a strip; integrands with kinks are integrated piece by piece. Of several variables, all
for which a rule gives a closed form under the conditional law are integrated out; one or two may
remain. Sums of products f(u) g(v) of a pair with correlation r take values on a line each, because
the density is that of x times one of y − rx of width :math:`s = \sqrt{1 - r^2}`: trapezoidal rules
with densities that follow from each other by multiplication, Gauss–Legendre rules between kinks.
Other functions of two variables take the product rule if they are smooth and are refused if not.
Rules are refined until two agree, so the printed digits are estimated, not proven; where the
integrand cancels, the working precision is raised until the digits asked for are left.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import sympy as sp
from mpmath.libmp import to_fixed

from ...errors import ConvergenceError, EmissionError, UnsupportedExpressionError
from ...runtime.rules import Rule, legendre
from ..expressions._singularities import NONSMOOTH
from ..expressions.bivariate_normal import BivariateNormalCDF
from ..expressions.regularity import analyse
from ..printing.compiled import compiled
from .rules import closed_form

GUARD_BITS = 24
# Of the guard bits, those that rounding in the sums may use up.
ROUNDING_BITS = 16
# Distances of singularities from the real axis for which the step is refined: always, and where
# the integrand is known to be analytic so far. Smaller ones take too many nodes.
_NARROW_STRIP, _NARROWEST_STRIP = 0.01, 0.002
# Integrands are followed out to this many times the distance at which the density is negligible.
FARTHEST = 40
_LARGEST_EXPONENT = 10**6
# Of a piece between kinks, to see how large the integrand is.
_SAMPLES = 8

_Function = Callable[[Any], Any]


# Formulas hold the same expectation several times.
@functools.lru_cache(maxsize=256)
def expectation_value(integrand: sp.Expr, variable: sp.Symbol, prec: int) -> sp.Float:
    r"""Return :math:`\mathbb{E}_z[f(z)]` to `prec` bits.

    Parameters
    ----------
    integrand : Expr
        f, with no free symbol other than `variable`.
    variable : Symbol
        The standard normal variable z.
    prec : int
        Working precision of the answer in bits.

    Returns
    -------
    Float
        Correct to `prec` bits; relative to E\|f\| instead, times 2**-prec, where the expectation is
        that much smaller than E\|f\|: it may then be an exact zero.

    Raises
    ------
    ConvergenceError
        If the integrand does not decay, is singular or not real, or two successive rules never
        agree (the expectation may not exist).
    """
    # Pieces that grow or vary on different scales cancel: the second and third try pay for that.
    tries = (GUARD_BITS, GUARD_BITS + prec, GUARD_BITS + 3 * prec)
    for extra in tries:
        try:
            value, size, ctx = _value_and_size(integrand, variable, prec, extra)
        except NotConverged as error:
            if error.noise and extra != tries[-1]:
                continue
            raise ConvergenceError(f"{error} in E_{variable}[{str(integrand)[:200]}]") from None
        if not value or ctx.mag(size) - ctx.mag(value) <= extra - ROUNDING_BITS:
            break
    return sp.Float._new(value._mpf_, prec)


class NotConverged(Exception):
    """Why a rule gave up; `noise` if rounding is what kept two rules from agreeing."""

    def __init__(self, message: str, noise: bool = False) -> None:
        super().__init__(message)
        self.noise = noise


def _value_and_size(
    integrand: sp.Expr, variable: sp.Symbol, prec: int, extra: int
) -> tuple[Any, Any, Any]:
    """Return E f to about `prec + extra` bits of E\\|f\\|, that, and the context."""
    ctx = mpmath.mp.clone()
    ctx.prec = prec + extra
    inner = {node: node.evalf(int(ctx.dps)) for node in _closed_inner_nodes(integrand, variable)}
    function = finite_values(integrand.xreplace(inner), [variable], ctx)
    normal = ctx.sqrt(2 * ctx.pi)

    def density_times(x: Any) -> Any:
        return function(x) * ctx.exp(-x * x / 2) / normal

    agree = agreement(prec, ctx)
    result = analyse(integrand, variable)
    if result.kinks:
        points = _ascending(result.kinks, ctx)
        value, size = _piecewise_rule(density_times, points, ctx, agree)
    else:
        # A strip of width zero is a suspicion that the rule confirms or does not.
        narrow = float(result.strip) if result.strip is not None and result.strip.is_positive else 1
        narrow = max(min(narrow, _NARROW_STRIP), _NARROWEST_STRIP)
        # sign(z)**2 has no kink, but another value at a single point: no node may hit that.
        offset = (ctx.sqrt(5) - 2) / 2 if integrand.has(sp.sign, sp.Heaviside) else 0
        value, size = _trapezoidal_rule(lambda x: density_times(x + offset), ctx, agree, narrow)
    return value, size, ctx


def finite_values(f: sp.Expr, variables: Sequence[sp.Symbol], ctx: Any) -> Callable[..., Any]:
    """Return a function of numbers whose values have to be finite and real."""
    function = compiled(f, variables, ctx)

    def value(*x: Any) -> Any:
        try:
            result = ctx.convert(function(*x))
        except (ZeroDivisionError, ValueError):
            result = ctx.nan
        if not isinstance(result, ctx.mpf) or not ctx.isfinite(result):
            where = ", ".join(ctx.nstr(part, 5) for part in x)
            where = where if len(x) == 1 else f"({where})"
            raise NotConverged(f"the integrand is not a finite real number at {where}")
        return result

    return value


def agreement(prec: int, ctx: Any) -> Callable[[Any, Any, Any], bool]:
    """Return what tells whether a difference is below what is wanted, or what rounding allows."""
    wanted, possible = ctx.ldexp(1, -prec - 8), ctx.ldexp(1, ROUNDING_BITS - ctx.prec)

    def agree(difference: Any, value: Any, size: Any) -> bool:
        return bool(difference <= wanted * abs(value) or difference <= possible * size)

    return agree


def _promising(ctx: Any) -> Any:
    # Halving the step squares the error, so two fifths of the digits promise nearly all of them.
    return ctx.ldexp(1, 2 * (ROUNDING_BITS - ctx.prec) // 5)


def _ascending(points: Iterable[sp.Expr], ctx: Any) -> list[Any]:
    return sorted(ctx.mpf(str(sp.N(point, int(ctx.dps)))) for point in points)


def _closed_inner_nodes(integrand: sp.Expr, variable: sp.Symbol) -> set[sp.Expr]:
    # By class name: importing the class here would close a circle of imports.
    nodes = {
        n for n in sp.preorder_traversal(integrand) if type(n).__name__ == "GaussianExpectation"
    }
    return {n for n in nodes if not n.free_symbols}


def _reach(ctx: Any) -> Any:
    """Distance at which the normal density is negligible."""
    return ctx.sqrt(2 * ctx.ln2 * ctx.prec)


def half_line_sum(function: _Function, first: Any, step: Any, ctx: Any) -> tuple[Any, Any, Any]:
    """Sum along one half-line until the terms stay negligible beyond the Gaussian's reach.

    Returns the sum, that of the absolute values, and the end.
    """
    total = size = ctx.zero
    reach = _reach(ctx)
    x, small = first, 0
    while small < 4:
        term = function(x)
        total += term
        size += abs(term)
        negligible = abs(term) <= ctx.eps * size
        small = small + 1 if negligible and abs(x) > reach else 0
        x += step
        if abs(x) > FARTHEST * reach or (term and ctx.mag(term) > _LARGEST_EXPONENT):
            raise NotConverged(
                "the integrand times the normal density does not decay, or too slowly: the "
                "expectation does not exist or cannot be computed"
            )
    return total, size, x


def _trapezoidal_rule(
    function: _Function, ctx: Any, agree: Callable[..., bool], strip: float
) -> tuple[Any, Any]:
    def both_sides(first: Any, step: Any) -> tuple[Any, Any]:
        """Sums over the nodes first + k*step, without the node 0 if first = step."""
        right, size_right, _ = half_line_sum(function, first, step, ctx)
        left, size_left, _ = half_line_sum(function, first - step or -step, -step, ctx)
        return right + left, size_right + size_left

    middle = function(ctx.zero)
    step = ctx.mpf(1) / 2
    total, size = both_sides(step, step)
    total, size = total + middle, size + abs(middle)
    finest = 2 * ctx.pi * strip / (ctx.prec * ctx.ln2)
    last, last_gap = ctx.inf, ctx.inf
    promising = _promising(ctx)
    small = ctx.ldexp(1, -20)
    while step > finest:
        previous = total * step
        more, more_size = both_sides(step / 2, step)
        total, size, step = total + more, size + more_size, step / 2
        value = total * step
        difference = abs(value - previous) / (size * step) if size else ctx.zero
        if difference <= promising or (difference <= small and difference >= last / 2):
            # Nodes at multiples of one step see a fast oscillation as a slow one; nodes that are
            # shifted by an irrational part of it do not, and their error is another one.
            gap = abs(value - both_sides(step * (3 - ctx.sqrt(5)) / 2, step)[0] * step)
            if agree(gap, value, size * step):
                return value, size * step
            if gap <= small * size * step and gap >= last_gap / 2:
                raise NotConverged("rounding errors keep two trapezoidal rules from agreeing", True)
            last_gap = gap
        last = difference
    raise NotConverged(
        f"no agreement of trapezoidal rules down to step {ctx.nstr(step, 2)} (there may be a "
        "singularity on the real line or close to it)"
    )


def _piecewise_rule(
    function: _Function, kinks: list[Any], ctx: Any, agree: Callable[..., bool]
) -> tuple[Any, Any]:
    # The tails begin beyond the outermost kinks: relu(z - 30) is zero up to there.
    far = FARTHEST * _reach(ctx)
    inside = [k for k in kinks if abs(k) < far] or [ctx.zero]
    half = ctx.mpf(1) / 2
    _, size_right, high = half_line_sum(function, inside[-1] + half / 2, half, ctx)
    _, size_left, low = half_line_sum(function, inside[0] - half / 2, -half, ctx)
    # Pieces of length at most 4 keep the tanh-sinh rule in its fast regime.
    points = [low]
    for end in [*inside, high]:
        start = points[-1]
        if end <= start:
            continue
        pieces = int(ctx.ceil((end - start) / 4))
        points += [start + (end - start) * i / pieces for i in range(1, pieces + 1)]
    scale = (size_right + size_left) * half
    # Between the kinks, too: relu(z)*relu(1 - z) is zero outside of them.
    for start, end in itertools.pairwise(points):
        if inside[0] < (start + end) / 2 < inside[-1]:
            step = (end - start) / _SAMPLES
            samples = (function(start + step * (k + half)) for k in range(_SAMPLES))
            scale += step * ctx.fsum(samples, absolute=True)
    if not scale:
        return ctx.zero, ctx.zero
    value = size = error = ctx.zero
    for pair in itertools.pairwise(points):
        # Scaled, because mpmath refines until the absolute error is small.
        part, wrong = ctx.quad(lambda x: function(x) / scale, list(pair), error=True, maxdegree=10)
        value, size, error = value + part, size + abs(part), error + wrong
    if not agree(error, value, size):
        noise = error <= size * ctx.ldexp(1, -20)
        raise NotConverged("the rules between the kinks did not converge", noise)
    return value * scale, size * scale


# Pairs of nodes in the longest rules: seconds of work.
_MOST_PAIRS_ON_A_GRID = 4 * 10**6
_MOST_PAIRS_OF_PIECES = 6 * 10**5
# Twenty-four nodes on each piece.
_DEGREE = 4
_MOST_TERMS = 20


@dataclass(frozen=True)
class Products:
    """A sum of products of a function of x and one of y, standard normal of correlation r."""

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

    Raises NotConverged if the rules do not agree before they become long, or a value is not a
    finite real number.
    """
    correlation = ctx.mpf(products.correlation._to_mpmath(2 * ctx.prec)._mpf_)
    sides = [
        _Side([pair[k] for pair in products.terms], symbol, ctx)
        for k, symbol in enumerate((products.x, products.y))
    ]
    # The same range for both: f² + g² is more than 2|fg|, so what is left out is negligible.
    farther = max(side.reach for side in sides)
    for side in sides:
        side.reach = farther
    rule = _pieces if sides[0].kinks or sides[1].kinks else _grids
    return rule(sides[0], sides[1], correlation, ctx, agreement(prec, ctx))


class _Side:
    """The functions of one variable: their values, kinks, and the range that counts."""

    def __init__(self, expressions: Sequence[sp.Expr], symbol: sp.Symbol, ctx: Any) -> None:
        self.ctx = ctx
        self.functions = [finite_values(e, [symbol], ctx) for e in expressions]
        self.kinks = _ascending({k for e in expressions for k in analyse(e, symbol).kinks}, ctx)
        self.reach = self._range()

    def values(self, x: Any) -> list[Any]:
        return [function(x) for function in self.functions]

    def _range(self) -> Any:
        """Distance beyond which the squares of the functions are negligible in mean."""
        ctx = self.ctx
        nearest = _reach(ctx)
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
    rest = (1 - r) * (1 + r)
    # Width of the band of pairs that count, in units of the second variable.
    band = 2 * min(ctx.sqrt(rest) * _reach(ctx), second.reach)
    value, last = _halved(
        lambda step, shift: _grid(first, second, r, step, shift, ctx),
        min(ctx.mpf(1) / 2, ctx.sqrt(rest)),
        lambda step: 2 * first.reach * band / step**2 <= _MOST_PAIRS_ON_A_GRID,
        ctx,
        agree,
    )
    if value is None:
        raise _no_agreement(ctx.nstr(last, 2), "line")
    return value


def _halved(
    grid: Callable[[Any, Any], tuple[Any, Any]],
    step: Any,
    is_short: Callable[[Any], bool],
    ctx: Any,
    agree: Callable[..., bool],
) -> tuple[Any | None, Any]:
    """Return a sum over grids that are halved until a shifted one gives the same, and the step.

    None if they become too long before. Nodes at multiples of one step see a fast oscillation as a
    slow one; shifted nodes do not.
    """
    promising, previous = _promising(ctx), None
    while is_short(step):
        value, size = grid(step, ctx.zero)
        if previous is not None and abs(value - previous) <= promising * size:
            shifted, _ = grid(step, step * (3 - ctx.sqrt(5)) / 2)
            if agree(abs(value - shifted), value, size):
                return value, step
        step, previous = step / 2, value
    return None, 2 * step


def _no_agreement(step: Any, place: str) -> NotConverged:
    return NotConverged(
        f"no agreement of product rules down to step {step} (there may be a singularity close to "
        f"the real {place}, or the correlation is close to 1)"
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
        while len(rule.nodes) ** 2 * 2 * first.reach * band / width**2 <= _MOST_PAIRS_OF_PIECES:
            mine, others = (_rule_on_pieces(s, rule, width, spread) for s in (first, second))
            value, size = _sum_over_pieces(mine, others, r, ctx)
            if previous is not None and agree(abs(value - previous), value, size):
                return value
            width, previous = width * 2 / 3, value
    raise NotConverged(
        "no agreement of rules between the kinks before they became too long (there may be a "
        "singularity close to the real line, or the correlation is close to 1)"
    )


def _rule_on_pieces(side: _Side, rule: Rule, width: Any, spread: Any) -> list[_Piece]:
    ctx = side.ctx
    inside = [k for k in side.kinks if abs(k) < side.reach]
    result = []
    for a, b in itertools.pairwise([-side.reach, *inside, side.reach]):
        count = int(ctx.ceil((b - a) / width))
        half = (b - a) / (2 * count)
        for number in range(count):
            centre = a + (2 * number + 1) * half
            nodes = [centre + half * t for t in rule.nodes]
            values = zip(*(side.values(x) for x in nodes), strict=True)
            weights = [
                half * weight * ctx.exp(-((x / spread) ** 2) / 2)
                for x, weight in zip(nodes, rule.weights, strict=True)
            ]
            weighted = [[w * y for w, y in zip(weights, row, strict=True)] for row in values]
            result.append(_Piece(centre, half, nodes, weighted))
    return result


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


_MOST_DIMENSIONS = 2


@functools.lru_cache(maxsize=256)
def joint_value(
    integrand: sp.Expr,
    variables: tuple[sp.Symbol, ...],
    mean: sp.ImmutableMatrix,
    covariance: sp.ImmutableMatrix,
    prec: int,
) -> sp.Float:
    r"""Return :math:`\mathbb{E}f(x)` to `prec` bits.

    Parameters
    ----------
    integrand : Expr
        f, with no free symbols other than `variables`.
    variables, mean, covariance
        Law; numbers only.
    prec : int
        Bits of the answer, relative to E\|f\| where that is much larger.

    Raises
    ------
    UnsupportedExpressionError
        If more than two variables, or two and an integrand that is not smooth, remain for which no
        rule gives a closed form.
    ConvergenceError
        If two successive rules never agree; the expectation may not exist.
    """
    law = (integrand, list(variables), sp.Matrix(mean), sp.Matrix(covariance))
    law = _without_multiples(*law)
    while len(law[1]) > 1:
        less = _one_variable_less(*law)
        if less is None:
            break
        law = less
    f, left, centre, spread = law
    if not left:
        return f.evalf(sp.core.evalf.prec_to_dps(prec), maxn=10**4)
    if len(left) == 1:
        z = sp.Dummy("z", real=True)
        on_line = f.xreplace({left[0]: centre[0] + sp.sqrt(spread[0, 0]) * z})
        return expectation_value(on_line, z, prec)
    if len(left) > _MOST_DIMENSIONS:
        raise UnsupportedExpressionError(
            f"digits of E[{str(integrand)[:200]}]: {len(left)} variables remain for which no rule "
            f"gives a closed form, and quadrature handles {_MOST_DIMENSIONS}\n"
            "  factor the integrand, or condition on variables by hand"
        )
    for extra in (GUARD_BITS, GUARD_BITS + prec):
        try:
            value, ctx = _plane_value(f, left, centre, spread, prec, extra)
            return sp.Float._new(ctx.convert(value)._mpf_, prec)
        except NotConverged as error:
            failure = error
            if not error.noise:
                break
    raise ConvergenceError(f"{failure} in E[{str(integrand)[:200]}]")


_Law = tuple[sp.Expr, list[sp.Symbol], sp.Matrix, sp.Matrix]


def _without_multiples(
    f: sp.Expr, variables: list[sp.Symbol], mean: sp.Matrix, covariance: sp.Matrix
) -> _Law:
    """Leave out variables that are affine functions of the ones before them."""
    remaining: list[int] = []
    for k, variable in enumerate(variables):
        mean_of, rest = _conditional(k, remaining, variables, mean, covariance)
        if sp.simplify(rest) == 0:
            f = f.xreplace({variable: mean_of})
        else:
            remaining.append(k)
    return (
        f,
        [variables[i] for i in remaining],
        mean.extract(remaining, [0]) if remaining else sp.Matrix([]),
        covariance.extract(remaining, remaining),
    )


def _conditional(
    k: int,
    given: Sequence[int],
    variables: Sequence[sp.Symbol],
    mean: sp.Matrix,
    covariance: sp.Matrix,
) -> tuple[sp.Expr, sp.Expr]:
    """Mean and variance of variable k given some others."""
    if not given:
        return mean[k], covariance[k, k]
    others = list(given)
    slopes = covariance.extract(others, others).LUsolve(covariance.extract(others, [k]))
    offsets = (s * (variables[i] - mean[i]) for s, i in zip(slopes, others, strict=True))
    rest = covariance[k, k] - (covariance.extract([k], others) * slopes)[0]
    return sp.expand(mean[k] + sp.Add(*offsets)), sp.nsimplify(sp.radsimp(rest))


def _one_variable_less(
    f: sp.Expr, variables: list[sp.Symbol], mean: sp.Matrix, covariance: sp.Matrix
) -> _Law | None:
    """Integrate out a variable that has a closed form under its conditional law."""
    z = sp.Dummy("z", real=True)
    for k in range(len(variables)):
        rest = [i for i in range(len(variables)) if i != k]
        centre, variance = _conditional(k, rest, variables, mean, covariance)
        inner = f.xreplace({variables[k]: centre + sp.sqrt(variance) * z})
        result = closed_form(inner, z)
        if result is None or result.has(BivariateNormalCDF):
            continue
        left = [variables[i] for i in rest]
        used = [i for i, x in enumerate(left) if x in result.free_symbols]
        return (
            result,
            [left[i] for i in used],
            mean.extract([rest[i] for i in used], [0]) if used else sp.Matrix([]),
            covariance.extract([rest[i] for i in used], [rest[i] for i in used]),
        )
    return None


def _plane_value(
    f: sp.Expr,
    variables: list[sp.Symbol],
    mean: sp.Matrix,
    covariance: sp.Matrix,
    prec: int,
    extra: int,
) -> tuple[Any, Any]:
    ctx = mpmath.mp.clone()
    ctx.prec = prec + extra
    products = as_products(f, variables, mean, covariance)
    if products is not None:
        try:
            return product_value(products, prec, ctx), ctx
        except EmissionError as error:
            raise ConvergenceError(f"no quadrature of {str(f)[:200]}: {error}") from None
    if f.has(*NONSMOOTH):
        raise UnsupportedExpressionError(
            f"digits of E[{str(f)[:200]}]: no rule integrates out either variable, and quadrature "
            "over two variables needs a smooth integrand or a product of functions of one variable"
        )
    x, y = sp.symbols("x y", cls=sp.Dummy, real=True)
    slope = covariance[0, 1] / covariance[0, 0]
    spread = sp.sqrt(covariance[1, 1] - slope * covariance[0, 1])
    first = sp.sqrt(covariance[0, 0]) * x
    plane = f.xreplace(
        {variables[0]: mean[0] + first, variables[1]: mean[1] + slope * first + spread * y}
    )
    try:
        function = finite_values(plane, [x, y], ctx)
    except EmissionError as error:
        raise ConvergenceError(f"no quadrature of {str(f)[:200]}: {error}") from None

    def weighted(s: Any, t: Any) -> Any:
        return function(s, t) * ctx.exp(-(s * s + t * t) / 2) / (2 * ctx.pi)

    return _product_rule(weighted, ctx, agreement(prec, ctx)), ctx


def _product_rule(function: Callable[[Any, Any], Any], ctx: Any, agree: Callable[..., bool]) -> Any:
    """Trapezoidal sums over square grids, halved until a shifted grid gives the same."""

    def both_sides(along: Callable[[Any], Any], shift: Any, step: Any) -> tuple[Any, Any]:
        right, size_right, _ = half_line_sum(along, shift, step, ctx)
        left, size_left, _ = half_line_sum(along, shift - step, -step, ctx)
        return (right + left) * step, (size_right + size_left) * step

    def grid(step: Any, shift: Any) -> tuple[Any, Any]:
        sizes: list[Any] = []

        def row(s: Any) -> Any:
            value, size = both_sides(lambda t: function(s, t), shift, step)
            sizes.append(size)
            return value

        value, _ = both_sides(row, shift, step)
        return value, ctx.fsum(sizes) * step

    value, _ = _halved(grid, ctx.mpf(1) / 2, lambda step: bool(step > _SMALLEST_STEP), ctx, agree)
    if value is None:
        raise _no_agreement(_SMALLEST_STEP, "plane")
    return value


# At it a grid has some 10**6 nodes, half a minute of work.
_SMALLEST_STEP = 1 / 32
