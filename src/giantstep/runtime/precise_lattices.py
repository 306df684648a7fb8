"""Averages of functions of A + B z over z in mpmath, for many A and one B.

The trapezoidal rule may lie anywhere, so its nodes in u = A + B z are put on one lattice for all A,
and a function is evaluated once at each point of it; where it has kinks in u, Gauss–Legendre nodes
on panels between them take the place of the lattice. What is left for each A are weights, which
obey a recurrence, and scalar products; both take integers, in units of a power of two.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import mpmath

from .precise_rules import Rule

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
    """Averages of z**j f(A + B z) for any A, by Gauss–Legendre on panels between kinks of f.

    Parameters
    ----------
    ctx : mpmath context
    functions : callable
        Returns the values f of all functions at u.
    spread : number of `ctx`
        B > 0.
    kinks : sequence of number
        In u, at least one.
    length : number
        Of a panel, in z.
    rule : list of (node, weight)
        On [-1, 1], symmetric.
    reach : number of `ctx`
        Largest \\|z\\|.
    highest : int
        Largest j.
    """

    def __init__(
        self, ctx: Any, functions: Callable[[Any], Sequence[Any]], spread: Any,
        kinks: Sequence[Any], length: Any, rule: Rule, reach: Any, highest: int,
    ) -> None:  # fmt: skip
        self._ctx, self._functions, self._spread = ctx, functions, spread
        self._kinks = sorted(ctx.mpf(k) / spread for k in kinks)
        # In order, so that the mirror image of a list of nodes is the list backwards.
        self._length, self._rule, self._reach = ctx.mpf(length), sorted(rule), reach
        self._highest = highest
        # exp(-x d) loses what it falls by from the middle of a panel to an end.
        tilt = self._length / 2 * (reach + self._length) / ctx.ln2
        self._bits = ctx.prec + _SPARE_BITS + int(ctx.ceil(tilt))
        self._nodes = [self._length / 2 * t for t, _ in self._rule]
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
            for t, weight in self._rule:
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
