"""Averages of functions of A + B z over z in mpmath, for many A and one B.

The trapezoidal rule may lie anywhere, so its nodes in u = A + B z are put on one lattice for all A,
and a function is evaluated once at each point of it. What is left for each A are weights, which
obey a recurrence, and scalar products; both take integers, in units of a power of two.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import mpmath

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


def _fixed(value: Any, bits: int) -> Any:
    return mpmath.libmp.to_fixed(value._mpf_, bits)
