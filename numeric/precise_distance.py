r"""The squared distance of a function and a smoothed, rescaled one, to any number of digits.

As :mod:`.scaled_distance`, :math:`J(h) = \mathbb{E}(f(t) - g(ht))^2`, in mpmath. The average over
the shift is a sum over fixed nodes v, :math:`g(s) = \sum_j w_j\,q(v_j)\,\varphi(v_j - s)`, so that
q is evaluated once at each node whatever s is, and derivatives of g come for the price of g.
Analytic integrands take the trapezoidal rule, others Gauss-Legendre panels between their kinks;
steps are halved until two rules agree, which estimates the digits and does not prove them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from ..errors import ConvergenceError
from ..runtime.precise_rules import legendre

# Integrands that grow like powers need some more of the line than the density alone.
_LONGER = 2
_MOST_HALVINGS = 7
_FIRST_STEP = 0.25
_PROBES = ("0.3", "-1.7", "4.1")
_PANEL = 2
# Halving a step, or doubling an order, squares a geometric error; the difference of two rules is
# that of the coarser one. 2/3 instead of 1/2 leaves room.
_SHARE = 2 / 3


class SmoothedSum:
    """g(s) = E q(s + ξ) and its derivative in an mpmath context.

    Parameters
    ----------
    function : callable
        q.
    kinks : sequence of numbers
        Where q is not analytic.
    ctx : mpmath context
    digits : int
        How many digits are wanted.
    """

    def __init__(
        self, function: Callable[[Any], Any], kinks: Sequence[Any], ctx: Any, digits: int
    ) -> None:
        self._function, self._kinks, self._ctx = function, list(kinks), ctx
        self._reach, self._legendre = reach(ctx), LegendrePanels(ctx)
        self._values: dict[int, Any] = {}
        self._panels: dict[int, tuple[bool, list[tuple[Any, Any]]]] = {}
        self._ratios: dict[int, list[Any]] = {}
        self._step = ctx.mpf(_FIRST_STEP)
        self._order = 0
        self._settle(ctx.mpf(10) ** (-digits * _SHARE))

    def __call__(self, s: Any) -> tuple[Any, Any]:
        """Return g(s) and g'(s)."""
        if self._kinks:
            return self._by_panels(s)
        return self._by_steps(s, self._step)

    def _settle(self, tolerance: Any) -> None:
        probes = [self._ctx.mpf(p) for p in _PROBES]
        last = [self(s) for s in probes]
        for _ in range(_MOST_HALVINGS):
            if self._kinks:
                self._order += 1
                self._panels = {}
            else:
                self._step /= 2
                self._values = {2 * j: value for j, value in self._values.items()}
            found = [self(s) for s in probes]
            pairs = [
                (a, b) for p, q in zip(found, last, strict=True) for a, b in zip(p, q, strict=True)
            ]
            if all(abs(a - b) <= tolerance * (1 + abs(a)) for a, b in pairs):
                return
            last = found
        raise ConvergenceError(
            "the average of the student over a normal shift did not settle to the digits asked "
            "for: it may have a singularity very close to the real line; ask for fewer digits"
        )

    def _by_steps(self, s: Any, step: Any) -> tuple[Any, Any]:
        ctx = self._ctx
        first = int(ctx.ceil((s - self._reach) / step))
        last = int(ctx.floor((s + self._reach) / step))
        middle = (first + last) // 2
        total, slope = ctx.zero, ctx.zero
        # exp(-(v - s)²/2) from node to node: a factor that shrinks by the same ratio each time.
        ratio = ctx.exp(-(step**2))
        for direction in (1, -1):
            j = middle if direction == 1 else middle - 1
            away = j * step - s
            density = ctx.exp(-(away**2) / 2)
            factor = ctx.exp(-direction * away * step - step**2 / 2)
            while first <= j <= last:
                term = self._at(j, step) * density
                total += term
                slope += term * away
                density *= factor
                factor *= ratio
                away += direction * step
                j += direction
        scale = step / ctx.sqrt(2 * ctx.pi)
        return total * scale, slope * scale

    def _at(self, j: int, step: Any) -> Any:
        found = self._values.get(j)
        if found is None:
            found = self._values[j] = self._function(j * step)
        return found

    def _by_panels(self, s: Any) -> tuple[Any, Any]:
        ctx = self._ctx
        half = ctx.mpf(_PANEL) / 2
        first = int(ctx.floor((s - self._reach) / _PANEL))
        last = int(ctx.ceil((s + self._reach) / _PANEL))
        total, slope = ctx.zero, ctx.zero
        # With v = c + x, exp(-(v - s)²/2) is exp(-(c - s)²/2 - x²/2) exp(-x (c - s)); the last
        # factor changes from panel to panel by exp(-x * length).
        rule = self._legendre(-half, half, self._order)
        if self._order not in self._ratios:
            self._ratios[self._order] = [ctx.exp(-x * _PANEL) for x, _ in rule]
        away = first * _PANEL + half - s
        tilts = [ctx.exp(-x * away) for x, _ in rule]
        for m in range(first, last):
            split, values = self._panel(m)
            if split:
                for v, weighted in values:
                    term = weighted * ctx.exp(-((v - s) ** 2) / 2)
                    total += term
                    slope += term * (v - s)
            else:
                terms = [y * tilt for (_, y), tilt in zip(values, tilts, strict=True)]
                centre = ctx.exp(-(away**2) / 2)
                own = sum(terms)
                total += own * centre
                moment = sum(x * term for (x, _), term in zip(rule, terms, strict=True))
                slope += (moment + own * away) * centre
            tilts = [a * b for a, b in zip(tilts, self._ratios[self._order], strict=True)]
            away += _PANEL
        scale = 1 / ctx.sqrt(2 * ctx.pi)
        return total * scale, slope * scale

    def _panel(self, m: int) -> tuple[bool, list[tuple[Any, Any]]]:
        """Return whether a panel is cut at kinks, its nodes, and weights times q there."""
        if m not in self._panels:
            ctx = self._ctx
            left, right = ctx.mpf(m * _PANEL), ctx.mpf((m + 1) * _PANEL)
            inside = [k for k in self._kinks if left < k < right]
            ends = [left, *inside, right]
            centre = (left + right) / 2
            values = []
            for a, b in pairwise(ends):
                for v, w in self._legendre(a, b, self._order):
                    shape = 1 if inside else ctx.exp(-((v - centre) ** 2) / 2)
                    values.append((v, w * shape * self._function(v)))
            self._panels[m] = bool(inside), values
        return self._panels[m]


class PreciseDistance:
    """J(h) and J'(h) in an mpmath context.

    Parameters
    ----------
    function : callable
        f.
    kinks : sequence of numbers
        Where f is not analytic.
    smoothed : callable
        Returns g(s) and g'(s).
    ctx : mpmath context
    digits : int
        Of J and J', absolutely.
    even : bool
        The integrand is an even function of t.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        kinks: Sequence[Any],
        smoothed: Callable[[Any], tuple[Any, Any]],
        ctx: Any,
        digits: int,
        even: bool = False,
    ) -> None:
        self._function, self._kinks = function, list(kinks)
        self._smoothed, self._ctx = smoothed, ctx
        self._tolerance = ctx.mpf(10) ** (-digits * _SHARE)
        self._even = even
        self._legendre = LegendrePanels(ctx)
        self._start = 0

    def __call__(self, h: Any) -> tuple[Any, Any]:
        """Return J(h) and J'(h).

        Raises
        ------
        ConvergenceError
            If the rules do not settle.
        """
        h = self._ctx.mpf(h)
        rule = self._panels if self._kinks else self._trapezoidal
        last = rule(h, self._start)
        for level in range(self._start + 1, self._start + _MOST_HALVINGS):
            found = rule(h, level)
            if all(
                abs(a - b) <= self._tolerance * (1 + abs(a))
                for a, b in zip(found, last, strict=True)
            ):
                self._start = level - 1
                return found
            last = found
        raise ConvergenceError(
            f"the squared distance at h = {self._ctx.nstr(h, 6)} did not settle to the digits "
            "asked for: the teacher may have a singularity very close to the real line; ask for "
            "fewer digits"
        )

    def _terms(self, t: Any, h: Any) -> tuple[Any, Any]:
        value, slope = self._smoothed(h * t)
        difference = self._function(t) - value
        density = self._ctx.exp(-(t**2) / 2)
        return difference**2 * density, -2 * difference * t * slope * density

    def _trapezoidal(self, h: Any, level: int) -> tuple[Any, Any]:
        ctx = self._ctx
        step = ctx.mpf(_FIRST_STEP) / 2**level
        count = int(ctx.ceil(reach(ctx) / step))
        scale = step / ctx.sqrt(2 * ctx.pi)
        if self._even:
            pairs = [self._terms(j * step, h) for j in range(1, count + 1)]
            pairs.append(tuple(x / 2 for x in self._terms(ctx.zero, h)))
            scale *= 2
        else:
            pairs = [self._terms(j * step, h) for j in range(-count, count + 1)]
        return tuple(scale * ctx.fsum(column) for column in zip(*pairs, strict=True))  # type: ignore[return-value]

    def _panels(self, h: Any, level: int) -> tuple[Any, Any]:
        ctx = self._ctx
        end = int(ctx.ceil(reach(ctx)))
        inside = [ctx.mpf(k) for k in self._kinks if -end < k < end]
        ends = sorted({*map(ctx.mpf, range(-end, end + _PANEL, _PANEL)), *inside})
        pairs = [
            tuple(w * term for term in self._terms(t, h))
            for a, b in pairwise(ends)
            for t, w in self._legendre(a, b, level)
        ]
        scale = 1 / ctx.sqrt(2 * ctx.pi)
        return tuple(scale * ctx.fsum(column) for column in zip(*pairs, strict=True))  # type: ignore[return-value]


def reach(ctx: Any) -> Any:
    """Return where the normal density is below the precision of a context, and a little more."""
    return ctx.sqrt(2 * ctx.dps * math.log(10)) + _LONGER


class LegendrePanels:
    """Gauss-Legendre rules on intervals; nodes are computed once for each level.

    Parameters
    ----------
    ctx : mpmath context
    """

    def __init__(self, ctx: Any) -> None:
        self._ctx = ctx
        self._rules: dict[int, list[tuple[Any, Any]]] = {}

    def __call__(self, a: Any, b: Any, level: int) -> list[tuple[Any, Any]]:
        """Return nodes and weights on an interval: 3·2^(level + 2) of them."""
        if level not in self._rules:
            self._rules[level] = legendre(self._ctx, level + 3)
        middle, half = (a + b) / 2, (b - a) / 2
        return [(middle + half * x, half * w) for x, w in self._rules[level]]
