"""Averages over inner Gaussian variables to any number of digits, in mpmath.

Averages of functions of A + B z over z for many A and one B share a lattice: the trapezoidal rule
may lie anywhere, so its nodes in u = A + B z are put on one lattice for all A, and a function is
evaluated once at each point of it; where it has kinks in u, Gauss–Legendre nodes on panels between
them take the place of the lattice. What is left for each A are weights, which obey a recurrence,
and scalar products; both take integers, in units of a power of two.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import mpmath

from ..errors import ConvergenceError
from .rules import Rule, equidistant, legendre, refined_step, trapezoidal_step

# Sums of thousands of rounded products.
_SPARE_BITS = 24
# Weights get bits in steps, so that few tables of them are needed.
_BLOCK_OF_BITS = 64
# Weights of so many places of A between two lattice points are kept.
_MOST_WEIGHTS = 24


class Lattice:
    """Averages of z**j f(A + B z) for any A, by the trapezoidal rule of one step.

    Parameters
    ----------
    ctx : mpmath context
    functions : callable
        Returns the values f of all functions at u.
    spread : number of `ctx`
        B > 0.
    step : number of `ctx`
        In z.
    reach : number of `ctx`
        Largest \\|z\\|.
    """

    def __init__(
        self, ctx: Any, functions: Callable[[Any], Sequence[Any]],
        spread: Any, step: Any, reach: Any,
    ) -> None:  # fmt: skip
        self._ctx, self._functions = ctx, functions
        self._spread, self._step = spread, step
        self._count = int(ctx.ceil(reach / step)) + 1
        self._bits = ctx.prec + _SPARE_BITS
        self._blocks: dict[int, list[list[Any]]] = {}
        self._longest: dict[int, int] = {}
        self._units: list[int] = []
        self._squares: dict[int, list[Any]] = {}
        self._weights: dict[tuple[int, int], list[list[Any]]] = {}

    def means(self, offset: Any, terms: Sequence[tuple[int, int]]) -> list[Any]:
        """Return the averages over z of z**j times function k at offset + B z, for each (k, j)."""
        ctx, n = self._ctx, self._count
        shift = offset / self._spread
        centre = int(ctx.nint(shift / self._step))
        values = self._values(centre - n, centre + n)
        first, last = (centre - n) // n, (centre + n) // n
        # Where a function grows, small weights count.
        longest = max(self._longest[block] for block in range(first, last + 1))
        bits = self._bits + -(-max(0, longest) // _BLOCK_OF_BITS) * _BLOCK_OF_BITS
        origin = centre * self._step - shift
        weights = self._weights_at(origin, bits, max(j for _, j in terms))
        sums: dict[tuple[int, int], Any] = {}

        def total(k: int, i: int) -> Any:
            if (k, i) not in sums:
                found = ctx.mpf(sum(map(operator.mul, weights[i], values[k])))
                sums[k, i] = ctx.ldexp(found, -bits - self._units[k])
            return sums[k, i]

        scale = self._step * ctx.npdf(origin)
        # z = origin + i h: the weights hold powers of i, which are short.
        return [
            scale * sum(math.comb(j, i) * origin ** (j - i) * self._step**i * total(k, i)
                        for i in range(j + 1))
            for k, j in terms
        ]  # fmt: skip

    def _weights_at(self, origin: Any, bits: int, highest: int) -> list[list[Any]]:
        """Return k**j exp(-z**2/2) exp(origin**2/2) at z = origin + k step, -n <= k <= n."""
        # Equal places of A are equal up to rounding only.
        key = int(self._ctx.nint(self._ctx.ldexp(origin / self._step, self._ctx.prec // 2))), bits
        found = self._weights.get(key)
        if found is None:
            if len(self._weights) >= _MOST_WEIGHTS:
                self._weights.clear()
            found = self._weights[key] = [self._gaussian_weights(origin, bits)]
        while len(found) <= highest:
            places = range(-self._count, self._count + 1)
            found.append(list(map(operator.mul, places, found[-1])))
        return found

    def _gaussian_weights(self, origin: Any, bits: int) -> list[Any]:
        n = self._count
        squares = self._squares.get(bits)
        if squares is None:
            squares = self._squares[bits] = self._gaussian(bits)
        sides = []
        for sign in (1, -1):
            # exp(-(o + k h)**2/2) = exp(-o**2/2) exp(-o h)**k exp(-(k h)**2/2)
            ratio = _fixed(self._ctx.exp(-sign * origin * self._step), bits)
            power, side = 1 << bits, []
            for square in squares:
                side.append(power * square >> bits)
                power = power * ratio >> bits
            sides.append(side)
        return [*reversed(sides[1][1 : n + 1]), *sides[0]]

    def _gaussian(self, bits: int) -> list[Any]:
        ctx = self._ctx
        with ctx.workprec(bits + _SPARE_BITS):
            half = self._step**2 / 2
            return [_fixed(ctx.exp(-k * k * half), bits) for k in range(self._count + 1)]

    def _values(self, left: int, right: int) -> list[list[Any]]:
        """Return the values of all functions from lattice point `left` to `right`, as integers.

        They are computed in blocks, which nodes far apart need not have in common.
        """
        size = self._count
        first, last = left // size, right // size
        missing = {
            block: self._rows(block * size, (block + 1) * size)
            for block in range(first, last + 1)
            if block not in self._blocks
        }
        if not self._units:
            rows = [row for block in missing.values() for row in block]
            middle = (left + right) // 2 - first * size
            self._units = [self._unit(column, middle) for column in zip(*rows, strict=True)]
        for block, rows in missing.items():
            columns = zip(*rows, strict=True)
            self._blocks[block] = [
                [_fixed(value, unit) for value in column]
                for column, unit in zip(columns, self._units, strict=True)
            ]
            longest = max(x.bit_length() for column in self._blocks[block] for x in column)
            self._longest[block] = int(longest) - self._bits
        begin, end = left - first * size, right - first * size + 1
        found = []
        for k in range(len(self._units)):
            column: list[Any] = []
            for block in range(first, last + 1):
                column += self._blocks[block][k]
            found.append(column[begin:end])
        return found

    def _rows(self, begin: int, end: int) -> list[list[Any]]:
        ctx = self._ctx
        h = self._step * self._spread
        return [[ctx.mpf(v) for v in self._functions(k * h)] for k in range(begin, end)]

    def _unit(self, column: Sequence[Any], middle: int) -> int:
        """Return how many binary digits after the point a function needs."""
        ctx = self._ctx
        fall = float(self._step**2 / 2 / ctx.ln2)
        sizes = [
            ctx.mag(value) - int((k - middle) ** 2 * fall)
            for k, value in enumerate(column)
            if value != 0
        ]
        return int(self._bits - max(sizes, default=0))


class KinkedPanels:
    """Averages of z**j f(A + B z) for any A, by Gauss–Legendre on panels between kinks of f in u.

    As a :class:`Lattice`; panels have a `length` in z, the rule is on [-1, 1] and symmetric, and
    j is at most `highest`.
    """

    def __init__(
        self, ctx: Any, functions: Callable[[Any], Sequence[Any]], spread: Any,
        kinks: Sequence[Any], length: Any, rule: Rule, reach: Any, highest: int,
    ) -> None:  # fmt: skip
        self._ctx, self._functions, self._spread = ctx, functions, spread
        self._kinks = sorted(ctx.mpf(k) / spread for k in kinks)
        self._length, self._rule, self._reach = ctx.mpf(length), rule, reach
        self._highest = highest
        # exp(-x d) loses what it falls by from the middle of a panel to an end.
        tilt = self._length / 2 * (reach + self._length) / ctx.ln2
        self._bits = ctx.prec + _SPARE_BITS + int(ctx.ceil(tilt))
        self._nodes = [self._length / 2 * t for t in rule.nodes]
        self._panels: dict[int, SimpleNamespace] = {}
        with ctx.workprec(self._bits):
            self._ratios = [_fixed(ctx.exp(-x * self._length), self._bits) for x in self._nodes]

    def means(self, offset: Any, terms: Sequence[tuple[int, int]]) -> list[Any]:
        """Return the averages over z of z**j times function k at offset + B z, for each (k, j)."""
        ctx, length = self._ctx, self._length
        # One kink is an end of a panel: where it is the only one, no panel is cut.
        shift = offset / self._spread - self._kinks[0]
        middle = int(ctx.floor(shift / length))
        first = int(ctx.floor((shift - self._reach) / length))
        last = int(ctx.ceil((shift + self._reach) / length))
        totals = [ctx.zero] * len(terms)
        begin = self._tilts(self._nodes, self._centre(middle) - shift)
        # With z = d + x, d at the centre of a panel, exp(-z**2/2) is exp(-d**2/2) exp(-x**2/2)
        # exp(-x d), the last of which changes by one factor from panel to panel.
        for places, sign in ((range(middle, last), 1), (range(middle - 1, first - 1, -1), -1)):
            ratios = self._ratios if sign == 1 else self._ratios[::-1]
            tilts = begin
            for m in places:
                if m != middle:
                    tilts = [a * b >> self._bits for a, b in zip(tilts, ratios, strict=True)]
                self._add(m, self._centre(m) - shift, tilts, terms, totals)
        scale = 1 / ctx.sqrt(2 * ctx.pi)
        return [scale * total for total in totals]

    def _add(
        self, m: int, d: Any, tilts: Sequence[Any], terms: Sequence[tuple[int, int]],
        totals: list[Any],
    ) -> None:  # fmt: skip
        """Add what a panel holds, whose centre is at z = d, to the averages."""
        ctx = self._ctx
        if m not in self._panels:
            self._panels[m] = self._panel(m)
        panel = self._panels[m]
        if panel.nodes is not None:
            tilts = self._tilts(panel.nodes, d)
        density = ctx.exp(-(d**2) / 2)
        sums: dict[tuple[int, int], Any] = {}
        for place, (k, j) in enumerate(terms):
            for i in range(j + 1):
                if (k, i) not in sums:
                    found = ctx.mpf(sum(map(operator.mul, tilts, panel.columns[k][i])))
                    sums[k, i] = ctx.ldexp(found, -self._bits - panel.units[k]) * density
                totals[place] += math.comb(j, i) * d ** (j - i) * sums[k, i]

    def _centre(self, m: int) -> Any:
        return (2 * m + 1) * self._length / 2

    def _tilts(self, nodes: Sequence[Any], d: Any) -> list[Any]:
        return [_fixed(self._ctx.exp(-x * d), self._bits) for x in nodes]

    def _panel(self, m: int) -> SimpleNamespace:
        """Return nodes of a panel from its centre, and weights times values there, as integers.

        `nodes` is None where they are those of a panel without kinks; `columns` has, for each
        function and each power i, weight times value times node**i, with so many binary digits
        as `units` says for each function.
        """
        ctx, origin = self._ctx, self._kinks[0]
        half, centre = self._length / 2, self._centre(m)
        inside = [x for x in (k - origin - centre for k in self._kinks) if -half < x < half]
        nodes, rows = [], []
        for left, right in pairwise([-half, *inside, half]):
            for t, weight in self._rule.pairs():
                x = (left + right) / 2 + (right - left) / 2 * t
                shape = (right - left) / 2 * weight * ctx.exp(-(x**2) / 2)
                nodes.append(x)
                values = self._functions((origin + centre + x) * self._spread)
                rows.append([shape * value for value in values])
        columns, units = [], []
        for column in zip(*rows, strict=True):
            sizes = [ctx.mag(y) for y in column if y != 0]
            units.append(int(self._bits - max(sizes, default=0)))
            powers = [[y * x**i for x, y in zip(nodes, column, strict=True)]
                      for i in range(self._highest + 1)]  # fmt: skip
            columns.append([[_fixed(ctx.mpf(y), units[-1]) for y in power] for power in powers])
        return SimpleNamespace(nodes=nodes if inside else None, columns=columns, units=units)


def _fixed(value: Any, bits: int) -> Any:
    return mpmath.libmp.to_fixed(value._mpf_, bits)


# Rounding in thousands of additions, and cancellation in closed forms: digits to spare.
GUARD_DIGITS = 20
MOST_HALVINGS = 6
# Levels to half a step. A wave in resonance with a step is so with half of it, too, and tells of
# itself at the level in between only.
_HALVING = 2
# Outer nodes between two points of the lattice of an inner rule, at most.
_MOST_PLACES = 20
# Offsets at which the step of an inner rule on a lattice is compared with a finer one.
_MOST_CHECKS = 3
# Length of pieces between kinks, and radians of a wave that they hold, at the most.
_PIECE, _PIECE_PHASE = 4.0, 20.0
# Of rules on pieces: 3 * 2**(order - 1) nodes.
_FIRST_ORDER, _LAST_ORDER = 4, 8
# Twice the nodes square the difference of two rules, up to a factor, unless ends are singular.
_SHARE = 1.3


def usual_reach(ctx: Any, digits: int) -> Any:
    """Distance beyond which the normal density is negligible, with room for slow growth."""
    return ctx.sqrt(2 * ctx.ln10 * (digits + GUARD_DIGITS)) + 2


class InnerRule:
    """Integrates over an inner Gaussian variable.

    Attributes
    ----------
    checked : bool
        Each call compares with a finer step, and halves the step for good where that differs.
    outer_step : number
        Of the outer rule; 0 if that is not equidistant.
    error : number
        Largest difference seen between a rule that is used and a finer one, or between
        kinks what that rule tells, at least what the step was chosen for; relative to
        1 + \\|value\\|. 0 as long as no rule is used.
    """

    def __init__(
        self, ctx: Any, digits: int, inner: Mapping[str, tuple[float, float, float]]
    ) -> None:
        self._ctx = ctx
        exponent = float(ctx.ln10) * (digits + GUARD_DIGITS)
        self._steps: dict[str, Any] = {
            slot: trapezoidal_step(*extent, exponent=exponent) for slot, extent in inner.items()
        }
        self._waves = {slot: frequency for slot, (_, _, frequency) in inner.items()}
        self._rules: dict[tuple[str, int], Rule] = {}
        self._level = dict.fromkeys(inner, 0)
        self._lattices: dict[tuple[str, int], Lattice] = {}
        # None where no order was enough.
        self._orders: dict[str, int | None] = {}
        self._kinked: dict[tuple[str, int], KinkedPanels] = {}
        self._legendre: dict[int, Rule] = {}
        self._exponent = exponent
        self._checks: dict[str, int] = {}
        self.checked = True
        self.outer_step = ctx.zero
        self.error = ctx.zero
        self._aim = ctx.mpf(10) ** (-digits - GUARD_DIGITS)
        self._reach = usual_reach(ctx, digits)
        self._promised = ctx.mpf(10) ** -digits
        self._tolerance = ctx.mpf(10) ** (-digits - GUARD_DIGITS // 2)

    def __call__(
        self, slot: str, function: Callable[[Any], tuple[Any, ...]], kinks: Sequence[Any]
    ) -> list[Any]:
        """Return the expectations of all values of `function`.

        Raises
        ------
        ConvergenceError
            If rules do not agree while `checked`, or the rule between `kinks` does not converge.
        """
        if kinks:
            inside = sorted(k for k in kinks if abs(k) < self._reach)
            longest = _longest(self._waves.get(slot, 0.0))
            pieces = _pieces(self._ctx, [-self._reach, *inside, self._reach], longest)
            return self._ordered(
                slot,
                lambda order: self._panels(order, function, pieces),
                lambda: self._between_ends(function, pieces),
            )
        return self._settled(slot, lambda level: self._sum(slot, level, function))

    def smoothed(
        self, slot: str, functions: Callable[[Any], Sequence[Any]], offset: Any, spread: Any,
        terms: Sequence[tuple[int, int]], extent: Callable[[], tuple[Any, Any, Any, Any]],
        kinks: Sequence[Any] = (),
    ) -> list[Any]:  # fmt: skip
        """Return the expectations of z**j times function k at offset + spread*z, for each (k, j).

        Functions, spread and the functions' `kinks` have to be the same in all calls with one
        name `slot`; `extent` returns strip, growth, frequency and the slope of `offset` in the
        outer variable, 0 if it has none.
        """
        ctx = self._ctx
        if spread == 0:
            at_offset = functions(ctx.mpf(offset))
            return [_normal_moment(ctx, j) * at_offset[k] for k, j in terms]
        if kinks:
            found = self._between_kinks(
                slot, functions, ctx.mpf(offset), abs(spread), terms, extent, kinks
            )
            return _mirrored(found, terms) if spread < 0 else found
        if slot not in self._steps:
            strip, growth, frequency, slope = extent()
            step = ctx.mpf(
                trapezoidal_step(float(strip), float(growth), float(frequency), self._exponent)
            )
            self._steps[slot] = self._aligned(step, abs(slope * self.outer_step / spread))
            self._level[slot] = 0

        def means(level: int) -> list[Any]:
            lattice = self._lattices.get((slot, level))
            if lattice is None:
                step = self._step(slot, level)
                lattice = Lattice(ctx, functions, abs(spread), step, self._reach)
                self._lattices[slot, level] = lattice
            return lattice.means(ctx.mpf(offset), terms)

        # The step depends on the spread only: a few offsets tell whether it is fine enough.
        self._checks[slot] = self._checks.get(slot, 0) + 1
        wanted = self.checked and self._checks[slot] <= _MOST_CHECKS
        found = self._settled(slot, means) if wanted else means(self._level[slot])
        return _mirrored(found, terms) if spread < 0 else found

    def _between_kinks(
        self, slot: str, functions: Callable[[Any], Sequence[Any]], offset: Any, spread: Any,
        terms: Sequence[tuple[int, int]], extent: Callable[[], tuple[Any, Any, Any, Any]],
        kinks: Sequence[Any],
    ) -> list[Any]:  # fmt: skip
        """Return the expectations of functions with kinks; the spread is positive."""

        def means(order: int) -> list[Any]:
            if (slot, order) not in self._kinked:
                length, highest = _longest(float(extent()[2])), max(j for _, j in terms)
                self._kinked[slot, order] = KinkedPanels(
                    self._ctx, functions, spread, kinks, length, self._legendre_rule(order),
                    self._reach, highest,
                )  # fmt: skip
            return self._kinked[slot, order].means(offset, terms)

        def alone() -> list[Any]:
            def function(z: Any) -> tuple[Any, ...]:
                values = functions(offset + spread * z)
                return tuple(z**j * values[k] for k, j in terms)

            places = ((k - offset) / spread for k in kinks)
            inside = sorted(k for k in places if abs(k) < self._reach)
            longest = _longest(float(extent()[2]))
            pieces = _pieces(self._ctx, [-self._reach, *inside, self._reach], longest)
            return self._between_ends(function, pieces)

        return self._ordered(slot, means, alone)

    def _aligned(self, step: Any, shift: Any) -> Any:
        """Return the step, or a little less: equal weights then serve many outer nodes.

        From one outer node to the next the lattice is shifted by `shift`.
        """
        if shift >= step:
            return shift / self._ctx.ceil(shift / step)
        if shift * _MOST_PLACES >= step:
            return shift * self._ctx.floor(step / shift)
        return step

    def _settled(self, slot: str, means: Callable[[int], list[Any]]) -> list[Any]:
        """Return the expectations by the level of a rule, or by a finer one while `checked`."""
        value = means(self._level[slot])
        while self.checked:
            finer = means(self._level[slot] + 1)
            pairs = zip(finer, value, strict=True)
            difference = max((abs(a - b) / (1 + abs(b)) for a, b in pairs), default=0)
            if difference <= self._tolerance:
                self.error = max(self.error, self._aim, difference)
                break
            self._level[slot] += _HALVING
            value = means(self._level[slot])
            if self._level[slot] > _HALVING * MOST_HALVINGS:
                raise ConvergenceError(
                    f"the inner expectation over {slot} does not converge to the digits asked for"
                )
        return value

    def _step(self, slot: str, level: int) -> Any:
        """Return the step of a level: even ones are halvings, the ones in between check them."""
        step = refined_step(self._ctx.mpf(self._steps[slot]), level % _HALVING)
        return step / 2 ** (level // _HALVING)

    def _ordered(
        self, slot: str, means: Callable[[int], list[Any]], otherwise: Callable[[], list[Any]]
    ) -> list[Any]:
        """Return the expectations by Gauss–Legendre, whose order is raised while `checked`.

        Functions are evaluated once for all their values. Where that does not converge, as near
        singular ends of pieces, another rule decides, then and in all calls that follow.
        """
        known = self._orders.get(slot, _FIRST_ORDER + 1)
        if known is None:
            return otherwise()
        if not self.checked and slot in self._orders:
            return means(known)
        value, last = means(known - 1), self._ctx.one
        for order in range(known, _LAST_ORDER + 1):
            finer = means(order)
            pairs = zip(finer, value, strict=True)
            difference = max((abs(a - b) / (1 + abs(b)) for a, b in pairs), default=0)
            if difference <= self._tolerance:
                self.error = max(self.error, self._aim, difference)
                # Outer rules that have to agree see the error of the coarser one.
                self._orders[slot] = order
                return finer
            if difference > last**_SHARE:
                break
            value, last = finer, difference
        self._orders[slot] = None
        return otherwise()

    def _panels(
        self, order: int, function: Callable[[Any], tuple[Any, ...]], pieces: Sequence[Any]
    ) -> list[Any]:
        ctx = self._ctx
        weights, rows = [], []
        for left, right in pairwise(pieces):
            half, middle = (right - left) / 2, (left + right) / 2
            for t, weight in self._legendre_rule(order).pairs():
                x = middle + half * t
                weights.append(half * weight * ctx.exp(-(x**2) / 2))
                rows.append(function(x))
        scale = 1 / ctx.sqrt(2 * ctx.pi)
        return [scale * ctx.fdot(weights, column) for column in zip(*rows, strict=True)]

    def _legendre_rule(self, order: int) -> Rule:
        if order not in self._legendre:
            self._legendre[order] = legendre(self._ctx, order)
        return self._legendre[order]

    def _between_ends(
        self, function: Callable[[Any], tuple[Any, ...]], pieces: Sequence[Any]
    ) -> list[Any]:
        ctx = self._ctx
        count = len(function(ctx.zero))
        values = []
        for k in range(count):
            value, error = ctx.quad(lambda x, k=k: function(x)[k] * ctx.npdf(x), pieces, error=True)
            if not error <= self._promised * (1 + abs(value)):
                raise ConvergenceError(
                    "an inner expectation between kinks does not converge to the digits asked for"
                )
            self.error = max(self.error, self._aim, error / (1 + abs(value)))
            values.append(value)
        return values

    def _sum(self, slot: str, level: int, function: Callable[[Any], tuple[Any, ...]]) -> list[Any]:
        ctx = self._ctx
        rule = self._rules.get((slot, level))
        if rule is None:
            h = self._step(slot, level)
            n = int(ctx.ceil(self._reach / h))
            rule = equidistant(ctx, h, n, level)
            self._rules[slot, level] = rule
        columns = zip(*(function(x) for x in rule.nodes), strict=True)
        return [ctx.fdot(rule.weights, column) for column in columns]


def _normal_moment(ctx: Any, power: int) -> Any:
    return ctx.zero if power % 2 else ctx.fac2(power - 1)


def _mirrored(means: Sequence[Any], terms: Sequence[tuple[int, int]]) -> list[Any]:
    """Return the expectations for -z in place of z."""
    return [-mean if j % 2 else mean for mean, (_, j) in zip(means, terms, strict=True)]


def _longest(frequency: float) -> float:
    """Return the length of a piece between kinks that resolves a wave."""
    return min(_PIECE, _PIECE_PHASE / max(frequency, 1e-9))


def _pieces(ctx: Any, points: Sequence[Any], longest: float) -> list[Any]:
    """Cut long intervals so that the tanh-sinh rule stays in its fast regime."""
    cut = [points[0]]
    for end in points[1:]:
        start, n = cut[-1], max(1, int(ctx.ceil((end - cut[-1]) / longest)))
        cut += [start + (end - start) * i / n for i in range(1, n + 1)]
    return cut
