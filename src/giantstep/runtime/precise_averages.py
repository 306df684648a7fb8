"""Averages over inner Gaussian variables to any number of digits, in mpmath."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..errors import ConvergenceError
from .precise_lattices import KinkedPanels, Lattice
from .precise_rules import Rule, equidistant, legendre
from .quadrature import refined_step, trapezoidal_step

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
        self._rules: dict[tuple[str, int], list[tuple[Any, Any]]] = {}
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
            for t, weight in self._legendre_rule(order):
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
            rule = equidistant(ctx, h, n)
            self._rules[slot, level] = rule
        columns = zip(*(function(x) for x, _ in rule), strict=True)
        weights = [w for _, w in rule]
        return [ctx.fdot(weights, column) for column in columns]


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
