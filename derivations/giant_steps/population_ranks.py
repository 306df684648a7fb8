r"""Ranks that giant steps reach on the population loss: a check of staircases that knows none.

A network of exponential neurons is trained by :mod:`.population_dynamics`, with all numbers in
intervals, and the rank of the overlaps of its neurons with the relevant space is bounded from below
by elimination. By Conjecture 1 of Dandi et al. (arXiv 2305.18270) it is dim U_t after t steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp
from mpmath.ctx_iv import MPIntervalContext

from ...errors import AssumptionError, ParameterError
from ...numeric.arguments import whole_number
from ...symbolic.targets import Target
from ...symbolic.targets import target as read_target
from .population_dynamics import PopulationGradient, PopulationStudent

_LARGEST_EXPONENT = 10**6
"""Exponentials of exponentials soon have no digits at all."""


@dataclass(frozen=True)
class PopulationRanks:
    r"""Ranks of the neurons' overlaps with the relevant space after each step.

    Attributes
    ----------
    target : Target
    ranks : tuple of int
        Entry t: rank after t steps, from t = 0. A minor of that size is proved not to vanish.
    remainders : tuple of float
        Largest entry, at most, that is left when that minor has been eliminated, if every neuron's
        largest overlap counts as 1; larger minors vanish to this accuracy.
    digits : int
        Working precision.
    overlaps : tuple
        The overlaps, one row of floats for each neuron, after each step.
    """

    target: Target
    ranks: tuple[int, ...]
    remainders: tuple[float, ...]
    digits: int
    overlaps: tuple[tuple[tuple[float, ...], ...], ...]

    @property
    def basis(self) -> str:
        """What the ranks rest on."""
        worst = max(self.remainders)
        left = "nothing at all" if worst == 0 else f"at most {worst:.0e} of a neuron's overlap"
        return (
            f"minors of these sizes are proved not to vanish by interval arithmetic with "
            f"{self.digits} digits; {left} remains beyond them"
        )


def population_ranks(
    target: Target | str, steps: int, *, digits: int = 150, step_size: Fraction = Fraction(1, 4)
) -> PopulationRanks:
    r"""Train an exponential network on the population loss, and return the ranks it reaches.

    All arithmetic is in intervals, so that a rank is a proved lower bound; the true rank is larger
    only if a minor vanishes to some hundred digits without vanishing.

    Parameters
    ----------
    target : Target or str
        A polynomial that is not constant.
    steps : int
        Number of steps, 1 to 8.
    digits : int
        Working precision, at least 30.
    step_size : Fraction
        η in units of p and of 1/‖f‖.

    Returns
    -------
    PopulationRanks

    Raises
    ------
    ParameterError
        If an argument is out of range, or the precision is used up before the last step.
    AssumptionError
        If the target is not a polynomial, or constant.

    Notes
    -----
    Readouts are :math:`a = \pm 1/2, \pm 1, \pm 3/2, \dots`, two pairs more than coordinates:
    different sizes, as generic readouts have. With a = ±1 alone fewer directions are reached.

    Examples
    --------
    >>> population_ranks("x1 + x1*x2 + x1*x2*x3", 3).ranks
    (0, 1, 2, 3)
    >>> population_ranks("x1*x2 + x3", 3).ranks
    (0, 1, 1, 1)
    """
    f = read_target(target)
    if f.expansion.degree < 1:
        raise AssumptionError(f"target {f.name!r} is constant: there is nothing to learn")
    count = whole_number("steps", steps)
    if count > 8:
        raise ParameterError(f"steps must be at most 8, got {count}")
    ctx = MPIntervalContext()
    ctx.dps = whole_number("digits", digits, 30)
    gradient = PopulationGradient(f, PopulationStudent.EXPONENTIAL)
    network = _IntervalNetwork(ctx, gradient, _rational(step_size))
    ranks, remainders, overlaps = [], [], []
    for t in range(count + 1):
        if t:
            network.step()
        rows = network.overlaps()
        rank, remainder = interval_rank(rows, ctx)
        # Comparing intervals that overlap says nothing: upper ends are compared.
        if float(remainder.b) > 10.0 ** (-ctx.dps // 3):
            raise ParameterError(
                f"digits={digits} are used up after {t} steps: entries are known to "
                f"{float(remainder.b):.1e} of the largest only\n  use more digits or fewer steps"
            )
        ranks.append(rank)
        remainders.append(float(remainder.b))
        overlaps.append(tuple(tuple(float(v.mid) for v in row) for row in rows))
    return PopulationRanks(f, tuple(ranks), tuple(remainders), ctx.dps, tuple(overlaps))


def interval_rank(rows: Sequence[Sequence[Any]], ctx: Any) -> tuple[int, Any]:
    """Return a proved lower bound of the rank, and the largest entry that may remain beyond it.

    Gaussian elimination with the pivot whose distance from zero is largest, of rows that are
    divided by their largest entries: one neuron far ahead must not hide the others.

    Parameters
    ----------
    rows : sequence of rows of intervals
    ctx : MPIntervalContext

    Returns
    -------
    rank : int
    remainder : interval
    """
    left = []
    for row in rows:
        size = max(abs(v).b for v in row)
        left.append([v / ctx.mpf(size) for v in row] if size > 0 else list(row))
    rank = 0
    while left:
        place = max(
            ((i, j) for i, row in enumerate(left) for j in range(len(row))),
            key=lambda at: abs(left[at[0]][at[1]]).a,
            default=None,
        )
        if place is None or not abs(left[place[0]][place[1]]).a > 0:
            break
        i, j = place
        pivot = left.pop(i)
        rank += 1
        for row in left:
            ratio = row[j] / pivot[j]
            row[:] = [
                v - ratio * q for k, (v, q) in enumerate(zip(row, pivot, strict=True)) if k != j
            ]
        if not left or not left[0]:
            return rank, ctx.mpf(0)
    return rank, ctx.mpf(max((abs(v).b for row in left for v in row), default=0))


class _IntervalNetwork:
    """Rows (u, outside) of the first of each pair of neurons and of the second, in intervals."""

    def __init__(self, ctx: Any, gradient: PopulationGradient, step_size: Fraction) -> None:
        self.ctx = ctx
        self.student = gradient.student
        self.r = gradient.target.dimension
        pairs = self.r + 2
        sizes = [Fraction(k, 2) for k in range(1, pairs + 1)]
        self.readouts = [ctx.mpf(s * a.numerator) / a.denominator for a in sizes for s in (1, -1)]
        self.width = len(self.readouts)
        norm = sp.sqrt(gradient.target.norm_squared)
        self.rates = [
            a * step_size.numerator / step_size.denominator / self._enclosed(norm)
            for a in self.readouts
        ]
        self.inside = [self._terms(entry, gradient.own) for entry in gradient.inside]
        self.along = self._terms(gradient.along, gradient.own)
        self.rows = [
            [ctx.mpf(0)] * self.r + [ctx.mpf(int(i // 2 == k)) for k in range(pairs)]
            for i in range(self.width)
        ]

    def overlaps(self) -> list[list[Any]]:
        return [row[: self.r] for row in self.rows]

    def step(self) -> None:
        self.rows = [self._moved(i) for i in range(self.width)]

    def _moved(self, i: int) -> list[Any]:
        row = self.rows[i]
        factor = self._exponential(row)
        along = self._value(self.along, row)
        gradient = [factor * self._value(entry, row) for entry in self.inside]
        gradient += [factor * along * v for v in row[self.r :]]
        for a, other in zip(self.readouts, self.rows, strict=True):
            both = [v + w for v, w in zip(row, other, strict=True)]
            weight = a / self.width * self._exponential(both)
            gradient = [g - weight * v for g, v in zip(gradient, both, strict=True)]
        return [v + self.rates[i] * g for v, g in zip(row, gradient, strict=True)]

    def _exponential(self, row: list[Any]) -> Any:
        exponent = self.ctx.fsum(v * v for v in row) / 2
        if not exponent.b < _LARGEST_EXPONENT:
            raise ParameterError(
                f"the overlaps explode: exp({float(exponent.b):.1g}) occurs\n"
                "  use a smaller step_size or fewer steps"
            )
        return self.ctx.exp(exponent)

    def _terms(self, expr: sp.Expr, own: Sequence[sp.Symbol]) -> list[tuple[Any, tuple[int, ...]]]:
        return [(self._enclosed(c), powers) for powers, c in sp.Poly(expr, *own).terms() if c]

    def _value(self, terms: list[tuple[Any, tuple[int, ...]]], row: list[Any]) -> Any:
        total = self.ctx.mpf(0)
        for c, powers in terms:
            for n, v in zip(powers, row, strict=False):
                if n:
                    c = c * v**n
            total += c
        return total

    def _enclosed(self, number: sp.Expr) -> Any:
        """An interval around an exact number."""
        if number.is_Rational:
            return self.ctx.mpf(number.p) / number.q
        digits = self.ctx.dps
        value = self.ctx.mpf(str(sp.N(number, digits + 10)))
        # SymPy's digits are right to the last one.
        return value * (1 + self.ctx.mpf([-1, 1]) * self.ctx.mpf(10) ** (-digits))


def _rational(value: Fraction | int) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, Fraction | int) or value <= 0:
        raise ParameterError(f"step_size must be a positive Fraction or int, got {value!r}")
    return Fraction(value)
