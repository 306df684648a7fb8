r"""The least value of a function of one variable as a proven interval.

The search is :mod:`giantstep.numeric.proofs.interval_minimum`; here are functions that are given by
formulas or by programs of explicit systems, and what is said of what was proven.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from ...ball_library import require_flint
from ...digits import checked_digits
from ...errors import (
    AssumptionError,
    CertificationError,
    EmissionError,
    ParameterError,
    UnsupportedExpressionError,
)
from ...numeric.arguments import real_number
from ...numeric.local_minima import local_minima
from ...numeric.proofs.interval_minimum import BallFunction, ProvenMinimum, minimise
from ...symbolic.exact.ball_functions import Ball, BallEvaluator
from ...symbolic.exact.enclosures import Enclosure
from ...symbolic.expressions.activations import activation, z
from ...symbolic.expressions.averages import Average
from ...symbolic.gaussian.enclosures import PRECISION, ConstantBalls, enclosure_of
from ...symbolic.lowering.ball_program import BallLoop, BallProgram, Scalars
from ...symbolic.lowering.lowered import lower
from ...symbolic.printing.compiled import compiled
from ...symbolic.systems.saddle_point import SaddlePointSystem
from .certificate import LIBRARIES, CertifiedValues
from .proof import LineTables

GUARD_BITS = 40
_GRID = 201
_MOST_KNOWN = 8
# Of the interval of the value where the place is not isolated, in units of its size.
_GOAL = 1e-9
_ENDS = "the ends are the floats themselves"


def with_numbers(expr: sp.Expr, number: Callable[[sp.Expr], sp.Expr]) -> sp.Expr:
    """Return an expression with its averages that hold no unknowns replaced by numbers."""
    nodes = [node for node in expr.atoms(Average) if not node.free_symbols]
    return expr.xreplace({node: number(node) for node in nodes})


def float_function(expr: sp.Expr, symbol: sp.Symbol) -> Callable[[Any], Any]:
    """Return an expression, in which averages may be numbers, as a function of arrays."""
    expr = with_numbers(expr, lambda node: sp.Float(node.evalf(20), 20))
    if expr.has(symbol):
        return compiled(expr, (symbol,))
    constant = float(expr)
    return lambda x: np.full(np.shape(x), constant)


class FormulaOnBalls:
    """A formula in one symbol, and its first two derivatives, on balls.

    Parameters
    ----------
    expr : Expr
        Its averages hold no symbol.
    """

    def __init__(self, expr: sp.Expr, variable: sp.Symbol) -> None:
        self._numbers: dict[sp.Symbol, ConstantBalls] = {}
        formula = with_numbers(expr, self._named)
        self._variable = variable
        self._derivatives = [formula.diff(variable, k) for k in range(3)]

    def _named(self, node: sp.Expr) -> sp.Symbol:
        symbol = sp.Dummy("E", real=True)
        self._numbers[symbol] = ConstantBalls(node)
        return symbol

    def at(self, point: Ball, bits: int, orders: Sequence[int] = range(3)) -> tuple[Ball, ...]:
        """Return derivatives over a ball, numbers in them to so many bits.

        Raises
        ------
        CertificationError
            If they have no finite enclosure.
        """
        known = {symbol: number.ball(bits) for symbol, number in self._numbers.items()}
        evaluate = BallEvaluator({**known, self._variable: point}).constant
        result = [evaluate(self._derivatives[k]) for k in orders]
        if not all(x.is_finite() and x.imag.contains(0) for x in result):
            raise CertificationError("its closed form has no finite enclosure there")
        return tuple(x.real for x in result)


class ProgramOnBalls:
    """A function and its first two derivatives, the last unknowns of an explicit system, on balls.

    Parameters
    ----------
    system : SaddlePointSystem
        Its averages are over the line.
    constants : mapping from Symbol to Expr
        Its other parameters.
    """

    def __init__(
        self, system: SaddlePointSystem, variable: sp.Symbol, constants: Mapping[sp.Symbol, sp.Expr]
    ) -> None:
        lowered = lower(system)
        self._names = tuple(map(str, lowered.system.unknowns))
        self._program = BallProgram(lowered.program, self._names)
        self._tables = LineTables.of(lowered)
        self._variable = str(variable)
        self._constants = {str(x): ConstantBalls(value) for x, value in constants.items()}

    def at(self, point: Ball, bits: int) -> tuple[Ball, ...]:
        """Return value and derivatives at an exact point, `GUARD_BITS` of the bits to spare."""
        known = {name: number.ball(bits) for name, number in self._constants.items()}
        parameters = {self._variable: point, **known}
        digits = math.ceil((bits - GUARD_BITS) * math.log10(2))
        averages = self._tables.averages(parameters, bits, digits)

        def average(loop: BallLoop, scalars: Scalars) -> list[Ball]:
            return averages(loop, scalars, lambda: None)

        def root(block: object, scalars: Scalars) -> list[Ball]:
            raise AssertionError("the equations are explicit")

        values = self._program.run(parameters, average, root)
        return tuple(values[name] for name in self._names[-3:])


class FirstEnclosed:
    """A function and its first two derivatives at exact points, by the first form that encloses it.

    Parameters
    ----------
    forms : mapping to callable
        What builds each form, the cheapest first.
    what : str
        The function and its variable, for messages.
    """

    def __init__(
        self, forms: Mapping[Any, Callable[[], FormulaOnBalls | ProgramOnBalls]], what: str
    ) -> None:
        self._forms, self._what = dict(forms), what
        self._built: FormulaOnBalls | ProgramOnBalls | None = None
        self._known: dict[tuple[str, int], tuple[Ball, ...]] = {}

    @property
    def form(self) -> Any:
        """The form that is used; those that serve one point serve the others."""
        return next(iter(self._forms))

    def at(self, point: Ball, bits: int) -> tuple[Ball, ...]:
        """Return value and derivatives to about so many bits of their size.

        Raises
        ------
        CertificationError
            If no form can be enclosed.
        """
        key = point.repr(), bits
        if key not in self._known:
            # Cells ask for all derivatives at their centres, one after the other.
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = self._enclosed(point, bits + GUARD_BITS)
        return self._known[key]

    def _enclosed(self, point: Ball, bits: int) -> tuple[Ball, ...]:
        while True:
            try:
                with require_flint().ctx.workprec(bits):
                    self._built = self._built or self._forms[self.form]()
                    return self._built.at(point, bits)
            except (
                AssumptionError, CertificationError, EmissionError, UnsupportedExpressionError,
            ) as failure:  # fmt: skip
                if len(self._forms) == 1:
                    raise CertificationError(
                        f"{self._what} = {float(point):.6g} is not enclosed: {failure}"
                    ) from None
            del self._forms[self.form]
            self._built = None


def certified_minimum(
    function: str | sp.Expr, between: tuple[float, float], *, digits: int = 15
) -> CertifiedValues:
    """Prove what the least value of a function on an interval is, and where.

    Parameters
    ----------
    function : str or Expr
        An expression in z without kinks on the interval: "z**4 - z", "log(cosh(z)) - z/3".
    between : (float, float)
        The interval, ends included.
    digits : int
        Digits of the value.

    Returns
    -------
    CertifiedValues
        ``minimum`` and, if it is attained at one point only, ``place``.

    Raises
    ------
    ParameterError
        If `between` is no interval.
    ExpressionError, UnsupportedExpressionError
        If the function cannot be read, or holds what has no enclosures.
    CertificationError
        If the function has no finite enclosure somewhere in the interval, or the search does not
        end.
    MissingDependencyError
        If python-flint is not installed.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> proof = certified_minimum("z**4 - z", (-2, 2))
    >>> print(f"{float(proof['place'].midpoint):.12f}")
    0.629960524947
    """
    flint = require_flint()
    read = activation(function, argument="function")
    expr = read.expr
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise ParameterError(f"between must be two numbers, such as (-2, 2), got {between!r}")
    low, high = (real_number("between", x) for x in between)
    if not (low < high and math.isfinite(high - low)):
        raise ParameterError(
            f"between must be two finite numbers, the smaller one first, got {between!r}"
        )
    if kinks := [k for k in read.kinks if low <= float(k) <= high]:
        raise UnsupportedExpressionError(
            f"function {function} has kinks at {', '.join(map(str, kinks))} in the interval; "
            "search between them"
        )
    digits = checked_digits(digits)
    bits = math.ceil((digits + 2) * math.log2(10)) + GUARD_BITS
    formula = FormulaOnBalls(expr, z)
    floats = float_function(expr, z)
    with np.errstate(all="ignore"):
        _, minima = local_minima(
            lambda x: float(np.nan_to_num(floats(np.float64(x)), nan=np.inf)),
            np.linspace(low, high, _GRID), "the function",
        )  # fmt: skip
    with PRECISION, flint.ctx.workprec(bits):
        # The lowest ones; what is missed costs cells.
        starts = [
            _refined(formula, flint.arb(place), bits)
            for place, _ in sorted(minima, key=lambda found: found[1])[:3]
        ]
        size = abs(formula.at(starts[0], bits, [0])[0])
        result = minimise(
            BallFunction([partial(_derivative, formula, bits, k) for k in range(3)]),
            (low, high),
            starts=starts,
            goal=_GOAL * float(size.upper()),
            # A place is as narrow as the square of the last step towards it.
            shortest=10.0 ** -max(9, digits // 2 + 2),
        )
        values, statement = stated(result)
    return CertifiedValues(
        title=f"minimum of {expr} between {low:g} and {high:g}",
        values=values,
        statement=statement,
        assumptions=(*LIBRARIES, _ENDS),
        digits=digits,
    )


def _derivative(formula: FormulaOnBalls, bits: int, order: int, point: Ball) -> Ball:
    return formula.at(point, bits, [order])[0]


def _refined(formula: FormulaOnBalls, point: Ball, bits: int) -> Ball:
    """Return a point nearer to the stationary point, by Newton's method, or the same."""
    current = point
    for _ in range(bits.bit_length()):
        _, slope, curvature = formula.at(current, bits)
        if not curvature > 0:
            return point
        current = (current - slope / curvature).mid()
    return current if abs(current - point) < 1e-3 * (1 + abs(point)) else point


def stated(
    result: ProvenMinimum,
    *,
    value: tuple[str, str] = ("minimum", "the least value"),
    function: str = "the function",
    place: tuple[str, str, str] = ("place", "z", "point"),
    mirrored: bool = False,
) -> tuple[dict[str, Enclosure], str]:
    """Return what a search proved as proven intervals, and in words.

    Parameters
    ----------
    value : (str, str)
        What the least value is called among the intervals, and in words.
    function : str
        What is minimised.
    place : (str, str, str)
        What the place is called among the intervals, its letter, and the word for it.
    mirrored : bool
        The function is even, and was searched on one side.
    """
    values = {value[0]: enclosure_of(result.lower.union(result.upper), value[1])}
    if not result.isolated:
        places = ", ".join(x.str(6) for x in result.places)
        return values, (
            f"{value[1]} lies in its interval; that {function} is least at one {place[2]} only is "
            f"not proven: it may be in {places}"
        )
    (where,) = result.places
    values[place[0]] = enclosure_of(where, place[1])
    sign = ", up to its sign," if mirrored and not where.contains(0) else ""
    return values, (
        f"{value[1]} lies in its interval; {function} is least at exactly one {place[2]}{sign} "
        "which lies in its interval"
    )
