"""Search for counterexamples: random points, then descents of the margin with exact derivatives.

Points are drawn block by block from a stream of their own, so that a run that is resumed draws the
same ones. Ranges of several decades are drawn by their logarithm for half of the points; ends are
drawn, too. A margin that is not proven to have the wrong sign at a rational point refutes nothing.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from scipy.optimize import minimize

from ...errors import GiantstepError
from ...numeric.networks.run import progress_bar
from ...symbolic.gaussian.zero_test import is_exactly_zero
from ..outputs import BEST, ModelOutput, parameter
from .evaluation import Bounds, Evaluator, bounds_at
from .problem import OTHER, Problem, Range
from .statements import InVariable
from .store import PieceStore

Array = NDArray[np.float64]

_BLOCK, _DESCENTS, _MOST_ITERATIONS = 64, 6, 20
_DECADES = 30.0
# Rounding: a margin below this share of both sides is none.
_ROUNDING = 1e-9
_DENOMINATORS = (1, 2, 4, 5, 8, 10, 20, 25, 50, 100, 200, 500, 1000, 10**4, 10**6, 10**8)
_SIMPLE = tuple(
    map(sp.Rational, ("0", "1", "-1", "2", "-2", "1/2", "-1/2", "3", "-3", "10", "-10"))
)
_CANDIDATES = 8
_SHRINKING = 40


@dataclass(frozen=True)
class Tried:
    """What a search saw.

    Attributes
    ----------
    count, undefined : int
        Points at which the margin was looked at, and drawn points without a value.
    descents : int
        How many of the smallest margins were followed.
    worst : float
        The smallest margin, relative to the two sides; NaN if there was none.
    point : mapping from str to float
        Where it was.
    """

    count: int
    undefined: int
    descents: int
    worst: float
    point: Mapping[str, float]


@dataclass(frozen=True)
class Violation:
    """An exact point at which a relation is proven not to hold."""

    point: Mapping[str, sp.Expr]
    left: Bounds
    right: Bounds


def search(
    problem: Problem,
    *,
    tries: int,
    seed: int,
    store: str | os.PathLike[str] | None,
    key: Mapping[str, Any],
    progress: bool,
    descend: bool = True,
) -> tuple[Tried, Violation | None]:
    """Look for a point at which a relation does not hold.

    Parameters
    ----------
    tries : int
        Points that are drawn; descents come on top.
    store : path, optional
        Folder of finished blocks.
    key : mapping
        What else fixes the numbers of a block.
    descend : bool
        Follow the smallest margins downwards.
    """
    look = _Look(problem)
    if not problem.symbols:
        # All is held, but for what is chosen at each point: there is one point.
        tries, descend = min(tries, 1), False
    keeper = None if store is None else PieceStore(store, {**key, "seed": seed}, "block")
    blocks = [(k, min(_BLOCK, tries - k * _BLOCK)) for k in range(-(-tries // _BLOCK))]
    best: list[Entry] = []
    count = undefined = done = 0
    violation: Violation | None = None
    try:
        with progress_bar(progress, tries, "point") as bar:
            for k, size in blocks:
                piece = f"{k} of {size} points"
                found = None if keeper is None else keeper.load(piece, _read_block)
                if found is None:
                    found = look.block(k, size, seed)
                    if keeper is not None:
                        keeper.save(piece, {
                            "count": found[0], "undefined": found[1],
                            "best": [[m.hex(), [x.hex() for x in p]] for m, p in found[2]],
                        })  # fmt: skip
                count, undefined = count + found[0], undefined + found[1]
                best = sorted([*best, *found[2]])[:_CANDIDATES]
                done += size
                bar.update(size)
                best, violation = look.confirmed(best)
                if violation is not None:
                    break
    except KeyboardInterrupt:
        kept = "the same call resumes there" if store is not None else "without a store, none kept"
        raise KeyboardInterrupt(f"after {done} of {tries} points; {kept}") from None
    descents = 0
    if descend and violation is None:
        for start in best[:_DESCENTS]:
            lower = look.descend(np.array(start[1]))
            descents += 1
            if lower is not None:
                best, violation = look.confirmed(sorted([lower, *best])[:_CANDIDATES])
                if violation is not None:
                    break
    if violation is None:
        for _, point in best:
            violation = look.violation(np.array(point))
            if violation is not None:
                break
    worst, where = best[0] if best else (float("nan"), [])
    names = [x.name for x in problem.symbols]
    tried = Tried(count, undefined, descents, worst, dict(zip(names, where, strict=False)))
    return tried, violation


Entry = tuple[float, list[float]]
Block = tuple[int, int, list[Entry]]


def _read_block(content: Mapping[str, Any]) -> Block:
    best = [(float.fromhex(m), [float.fromhex(x) for x in p]) for m, p in content["best"]]
    return int(content["count"]), int(content["undefined"]), best


class _Look:
    """A problem as functions of floats."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._symbols = problem.symbols
        self._ranges = [problem.ranges[x.name] for x in self._symbols]
        self._order = _orders(problem)
        self._sides = Evaluator([problem.left, problem.right], self._symbols)
        self._conditions = Evaluator(
            [expr for c in problem.where for expr in (c.left, c.right)] or [sp.S.Zero],
            self._symbols,
        )
        # Models take floats as the decimals that they print as.
        self._decimal = bool(problem.outputs)

    def block(self, k: int, size: int, seed: int) -> Block:
        """Draw points, and return how many have a margin, how many have none, and the smallest."""
        random = np.random.default_rng([seed, k])
        points = np.array([self._draw(random) for _ in range(size)])
        if not k and self._symbols:
            corners = self._corners()[: size // 2]
            points[: len(corners)] = corners
        inside = self._inside(points)
        points = points[inside]
        if not len(points):
            return 0, 0, []
        margins = self.margins(points)
        known = np.isfinite(margins)
        order = np.argsort(np.where(known, margins, np.inf), kind="stable")[:_CANDIDATES]
        best = [(float(margins[i]), points[i].tolist()) for i in order if known[i]]
        return int(known.sum()), int((~known).sum()), best

    def margins(self, points: Array) -> Array:
        """Return margins relative to the sides: negative where the relation fails."""
        left, right = self._sides(points)
        gap = right - left if self._problem.relation in ("<", "<=") else left - right
        if self._problem.relation == "==":
            gap = -abs(gap)
        with np.errstate(all="ignore"):
            result = gap / np.maximum(abs(left) + abs(right), 1e-300)
        result = np.where(gap == 0, 0.0, result)
        return np.where(np.isfinite(left) & np.isfinite(right), result, np.nan)

    def _draw(self, random: np.random.Generator) -> list[float]:
        logarithmic = random.random() < 0.5
        values = [_drawn(one, logarithmic, random) for one in self._ranges]
        for small, large in self._order:
            if values[small] > values[large]:
                values[small], values[large] = values[large], values[small]
            if random.random() < 0.25:
                # Neighbours, where a quantity turns back for a short while only.
                values[large] = values[small] + (values[large] - values[small]) * 0.05
        return values

    def _corners(self) -> Array:
        ends = []
        for one in self._ranges:
            finite = [
                float(end) for end, is_open in ((one.low, one.low_open), (one.high, one.high_open))
                if end.is_finite and not is_open
            ]  # fmt: skip
            if not finite or (one.low < 0 < one.high):
                # Zero is where signs and kinks are; a range without ends has other points, too.
                finite += [x for x in (0.0, 1.0, 0.5, -1.0) if one.contains(sp.Rational(x))][:2]
            ends.append(
                finite or [float(one.high) - 1 if one.high.is_finite else float(one.low) + 1]
            )
        sizes = np.prod([len(e) for e in ends])
        if sizes > 2 * _BLOCK:
            return np.empty((0, len(ends)))
        return np.array(np.meshgrid(*ends, indexing="ij")).reshape(len(ends), -1).T

    def _inside(self, points: Array) -> NDArray[np.bool_]:
        """Tell which points meet the ranges and conditions."""
        result = np.ones(len(points), dtype=bool)
        for x, one in zip(points.T, self._ranges, strict=True):
            low, high = float(one.low), float(one.high)
            result &= (x > low if one.low_open else x >= low) & np.isfinite(x)
            result &= x < high if one.high_open else x <= high
        values = self._conditions(points)
        for i, c in enumerate(self._problem.where):
            left, right = values[2 * i], values[2 * i + 1]
            result &= {
                "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
                "==": left == right,
            }[c.relation]  # fmt: skip
        return result

    def descend(self, start: Array) -> tuple[float, list[float]] | None:
        """Follow the margin downwards from a point; None where it has no exact derivative."""
        bounds = [
            (None if one.low == -sp.oo else float(one.low),
             None if one.high == sp.oo else float(one.high))
            for one in self._ranges
        ]  # fmt: skip
        scale = max(float(np.nansum(abs(self._sides(start[None])))), 1e-300)
        relation = self._problem.relation
        sign = -1.0 if relation in ("<", "<=") else 1.0

        def margin(point: Array) -> tuple[float, Array]:
            left, right = self._sides(point[None])[:, 0]
            slopes = self._sides.gradients(point)
            gap, slope = sign * (left - right), sign * (slopes[0] - slopes[1])
            if relation == "==":
                gap, slope = -abs(gap), -np.sign(gap) * slope
            if not (np.isfinite(gap) and np.isfinite(slope).all()):
                raise FloatingPointError
            return gap / scale, slope / scale

        lowest = start
        try:
            found = minimize(
                margin, start, jac=True, method="L-BFGS-B", bounds=bounds,
                options={"maxiter": _MOST_ITERATIONS, "maxfun": 2 * _MOST_ITERATIONS},
            )  # fmt: skip
            lowest = found.x
        except (GiantstepError, ArithmeticError, KeyError):
            return None
        if not self._inside(lowest[None])[0]:
            return None
        value = self.margins(lowest[None])[0]
        return (float(value), lowest.tolist()) if np.isfinite(value) else None

    def confirmed(self, best: list[Entry]) -> tuple[list[Entry], Violation | None]:
        """Look exactly at margins that are negative in floats, where rounding may be all of them.

        Returns the margins in order, and a violation if there is one.
        """
        result = list(best)
        while result and result[0][0] < -_ROUNDING:
            point = result.pop(0)[1]
            violation = self.violation(np.array(point))
            if violation is not None:
                return [(self.margins(np.array([point]))[0], point), *result], violation
            exact = self._exact_margin(point)
            if exact is None:
                return [(self.margins(np.array([point]))[0], point), *result], None
            result = sorted([*result, (exact, point)])
        return result, None

    def _exact_margin(self, point: list[float]) -> float | None:
        """Return the margin by proven bounds, if the relation is proven to hold."""
        rational = self._rational(np.array(point), _DENOMINATORS[-1])
        if rational is None or self._problem.outputs:
            return None
        at = {parameter(name): value for name, value in rational.items()}
        try:
            left, right = bounds_at([self._problem.left, self._problem.right], at)
        except (GiantstepError, ArithmeticError):
            return None
        if not holds(self._problem.relation, left, right, self._problem.margin.xreplace(at)):
            return None
        gap = abs(float((left.lower + left.upper - right.lower - right.upper) / 2))
        return gap / max(abs(float(left.upper)) + abs(float(right.upper)), 1e-300)

    # ------------------------------------------------------------------ exact points

    def violation(self, point: Array) -> Violation | None:
        """Return a simple rational point near a point at which the relation fails, proven."""
        margin = self.margins(point[None])[0]
        if not (margin < -_ROUNDING or (self._problem.strict and margin <= _ROUNDING)):
            return None
        simple = self._simplified(point, float(margin))
        for candidate in (simple, self._rational(point, _DENOMINATORS[-1])):
            if candidate is None:
                continue
            found = violation_at(self._problem, candidate)
            if found is not None:
                return found
        return None

    def _simplified(self, point: Array, margin: float) -> dict[str, sp.Rational] | None:
        """Make coordinates simple one after the other as long as the relation clearly fails."""
        current = self._rational(point, _DENOMINATORS[-1])
        if current is None:
            return None
        names = list(current)
        for name in names:
            exact = float(current[name])
            options = itertools.chain(
                _SIMPLE, *(self._nearby(exact, most) for most in _DENOMINATORS)
            )  # fmt: skip
            for value in options:
                changed = {**current, name: value}
                if self._fails_clearly(changed, margin):
                    current = changed
                    break
        return current

    def _nearby(self, number: float, most: int) -> list[sp.Rational]:
        below = np.floor(number * most)
        near = round(number * most)
        options = dict.fromkeys([near, int(below), int(below) + 1])
        return [sp.Rational(k, most) for k in options]

    def _fails_clearly(self, point: Mapping[str, sp.Rational], margin: float) -> bool:
        if not all(
            one.contains(value) for one, value in zip(self._ranges, point.values(), strict=True)
        ):
            return False
        row = np.array([[float(x) for x in point.values()]])
        if not self._inside(row)[0]:
            return False
        here = self.margins(row)[0]
        # A simple point may fail less than the worst one, but not by a hair.
        enough = min(-_ROUNDING, 0.05 * margin) if margin < -_ROUNDING else _ROUNDING
        return bool(here <= enough)

    def _rational(self, point: Array, most: int) -> dict[str, sp.Rational] | None:
        result = {}
        for x, value, one in zip(self._symbols, point, self._ranges, strict=True):
            if self._decimal:
                number = sp.Rational(f"{value:.12g}")
            else:
                number = sp.Rational(Fraction(value).limit_denominator(most))
            if not one.contains(number):
                number = sp.Rational(repr(float(value)))
            if not one.contains(number):
                return None
            result[x.name] = number
        return result


def violation_at(problem: Problem, point: Mapping[str, sp.Expr]) -> Violation | None:
    """Return both sides at an exact point of the ranges if the relation is proven to fail there."""
    if not all(one.contains(point[name]) for name, one in problem.ranges.items()):
        return None
    at = {parameter(name): value for name, value in point.items()}
    sides = [x for c in problem.where for x in (c.left, c.right)]
    try:
        left, right, *others = bounds_at([problem.left, problem.right, *sides], at)
        for c, a, b in zip(problem.where, others[::2], others[1::2], strict=True):
            if not holds(c.relation, a, b, (c.left - c.right).xreplace(at)):
                return None
    except (GiantstepError, ArithmeticError, ValueError, TypeError):
        return None
    if fails(problem.relation, left, right):
        return Violation(point, left, right)
    if problem.strict and _are_equal((problem.left - problem.right).xreplace(at)):
        return Violation(point, left, right)
    return None


def simplified(problem: Problem, found: Violation) -> Violation:
    """Return a violation at a simpler point, one coordinate after the other, if there is one."""
    for name, value in found.point.items():
        near = Fraction(int(value.p), int(value.q)) if value.is_Rational else None
        options = [*_SIMPLE]
        if near is not None:
            options += [sp.Rational(near.limit_denominator(most)) for most in _DENOMINATORS[:13]]
        for option in options:
            if option == value:
                break
            simpler = violation_at(problem, {**found.point, name: option})
            if simpler is not None:
                found = simpler
                break
    return found


def turning_point(problem: Problem, point: Mapping[sp.Symbol, sp.Expr]) -> Violation | None:
    """Return two points between which a quantity turns back, near one where its slope does."""
    assert isinstance(problem.statement, InVariable)
    name = problem.statement.variable
    second = name + OTHER
    for k in range(_SHRINKING):
        for sign in (1, -1):
            start = {x.name: value for x, value in point.items()}
            other = start[name] + sign * sp.Rational(1, 2**k)
            low, high = sorted((start[name], other))
            found = violation_at(problem, {**start, name: low, second: high})
            if found is not None:
                return found
    return None


def holds(relation: str, left: Bounds, right: Bounds, gap: sp.Expr) -> bool:
    """Tell whether a relation is right for all numbers within two bounds, or for equal sides."""
    opposite = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
    if relation in opposite and fails(opposite[relation], left, right):
        return True
    return "=" in relation and (
        left.lower == left.upper == right.lower == right.upper or _are_equal(gap)
    )


def _are_equal(gap: sp.Expr) -> bool:
    if gap.free_symbols or gap.atoms(ModelOutput):
        return False
    try:
        return is_exactly_zero(gap, "the difference")
    except GiantstepError:
        return False


def fails(relation: str, left: Bounds, right: Bounds) -> bool:
    """Tell whether a relation is wrong for all numbers within two bounds."""
    equal = left.lower == left.upper == right.lower == right.upper
    below, above = bool(left.upper < right.lower), bool(left.lower > right.upper)
    return {
        "==": below or above,
        "<": above or equal or bool(left.lower >= right.upper),
        "<=": above,
        ">": below or equal or bool(left.upper <= right.lower),
        ">=": below,
    }[relation]


def _orders(problem: Problem) -> list[tuple[int, int]]:
    """Return pairs of positions of variables that a condition puts in order."""
    names = {x: i for i, x in enumerate(problem.symbols)}
    result = []
    for c in problem.where:
        small, large = (c.left, c.right) if c.relation in ("<", "<=") else (c.right, c.left)
        if small in names and large in names and c.relation != "==":
            result.append((names[small], names[large]))
    return result


def _drawn(one: Range, logarithmic: bool, random: np.random.Generator) -> float:
    low, high = float(one.low), float(one.high)
    share = random.random()
    if np.isfinite(low) and np.isfinite(high):
        if logarithmic and low >= 0 and high > _DECADES * max(low, 1e-6):
            start = max(low, high * 1e-6)
            return float(start * (high / start) ** share)
        return low + (high - low) * share
    size = float(10 ** (6 * share - 3))
    if np.isfinite(low):
        return low + size
    if np.isfinite(high):
        return high - size
    return size if random.random() < 0.5 else -size


def is_best(problem: Problem) -> bool:
    """Tell whether a parameter of an output is at its best value."""
    return any(BEST in o.bindings.values() for o in problem.outputs)
