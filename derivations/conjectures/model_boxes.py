"""Outputs of models that have closed forms, enclosed over boxes of their parameters.

The closed forms are assignments, one after the other, in the parameters and in an unknown that an
equation gives: it falls with the unknown, so that a lower and an upper bound are proven by its sign
at two numbers for all parameters of a box. Derivatives are further assignments, by the chain rule,
and with respect to parameters by that of implicit functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from ...ball_library import require_flint
from ...symbolic.exact.ball_functions import BallTape
from ...symbolic.printing.compiled import compiled
from ..outputs import BEST, ClosedForms, ModelOutput, parameter
from .evaluation import as_ball_between

_DIGITS, _HALVINGS, _WIDENINGS = 25, 55, 12
_LARGEST, _NEAR, _LEAST = 1e15, 1e-6, 1e-12


class NotEnclosed(Exception):
    """Why outputs are not enclosed over boxes."""


@dataclass(frozen=True)
class Unknown:
    """What an equation gives: the one zero of what falls with it where others are positive.

    Attributes
    ----------
    symbol : Symbol
    equation : Expr
    inside : tuple of Expr
        Positive where the equation falls; once positive they stay so as the unknown grows.
    """

    symbol: sp.Symbol
    equation: sp.Expr
    inside: tuple[sp.Expr, ...]


@dataclass
class Layers:
    """An expression by assignments, in parameters, unknowns and numbers.

    Attributes
    ----------
    parameters : tuple of Symbol
    unknowns : list of Unknown
    numbers : dict from Symbol to pair of Rational
        Proven bounds of numbers of the models.
    assignments : dict from Symbol to Expr
        In order; each in what is above and in those before.
    """

    parameters: tuple[sp.Symbol, ...]
    unknowns: list[Unknown] = field(default_factory=list)
    numbers: dict[sp.Symbol, tuple[sp.Rational, sp.Rational]] = field(default_factory=dict)
    assignments: dict[sp.Symbol, sp.Expr] = field(default_factory=dict)
    _rates: dict[tuple[sp.Symbol, sp.Symbol], sp.Expr] = field(default_factory=dict)

    def value(self, expr: sp.Expr) -> sp.Expr:
        """Assign an expression, in what is known."""
        if expr.is_Atom:
            return expr
        symbol = sp.Dummy(f"v{len(self.assignments)}", real=True)
        self.assignments[symbol] = expr
        return symbol

    def rate(self, expr: sp.Expr, along: sp.Symbol) -> sp.Expr:
        """Return the derivative of an expression with respect to a parameter or unknown alone."""
        result = expr.diff(along)
        for symbol in sorted(expr.free_symbols & set(self.assignments), key=str):
            slope = self._rate_of(symbol, along)
            if slope != 0:
                result += expr.diff(symbol) * slope
        return result

    def _rate_of(self, symbol: sp.Symbol, along: sp.Symbol) -> sp.Expr:
        if (symbol, along) not in self._rates:
            self._rates[symbol, along] = self.value(self.rate(self.assignments[symbol], along))
        return self._rates[symbol, along]

    def derivative(self, expr: sp.Expr, along: sp.Symbol) -> sp.Expr:
        """Return the derivative with respect to a parameter, unknowns following."""
        result = self.rate(expr, along)
        for one in self.unknowns:
            fall = self.rate(one.equation, along)
            if fall != 0:
                slope = self.rate(expr, one.symbol)
                result -= slope * fall / self.rate(one.equation, one.symbol)
        return self.value(result)

    def enter(self, outputs: Sequence[ModelOutput]) -> dict[sp.Expr, sp.Expr]:
        """Assign outputs of models, and return what stands for them.

        Raises
        ------
        NotEnclosed
            If one has no closed form.
        """
        result: dict[sp.Expr, sp.Expr] = {}
        places: dict[Any, dict[sp.Expr, sp.Expr]] = {}
        for output in outputs:
            forms = output.model._closed_forms()
            if forms is None or forms.unknown is None or output.name not in forms.outputs:
                raise NotEnclosed(
                    f"{output.name} of {type(output.model).__name__} has no closed form over boxes"
                )
            bindings = output.bindings
            if BEST in bindings.values():
                raise NotEnclosed("the best value of a parameter is not enclosed over boxes")
            given = {
                name: bindings.get(name, None)
                if name in bindings else sp.Rational(repr(float(getattr(output.model, name))))
                for name in (*forms.implicit, *forms.direct)
            }  # fmt: skip
            key = output.model.to_json(), *(given[name] for name in forms.implicit)
            if key not in places:
                places[key] = self._place(output.model, forms, given)
            rule = dict(places[key])
            rule |= {symbol: given[name] for name, symbol in forms.direct.items()}
            result[output] = self.value(forms.outputs[output.name].xreplace(rule))
        return result

    def _place(
        self, model: Any, forms: ClosedForms, given: Mapping[str, sp.Expr]
    ) -> dict[sp.Expr, sp.Expr]:
        """Return what stands for coordinates, constants and abbreviations at given parameters."""
        assert forms.unknown is not None and forms.equation is not None
        assert forms.numbers is not None
        rule: dict[sp.Expr, sp.Expr] = {parameter(name): value for name, value in given.items()}
        rule[forms.unknown] = unknown = sp.Dummy(f"s{len(self.unknowns)}", positive=True)
        for symbol, value in forms.numbers(_DIGITS).items():
            rule[symbol] = own = sp.Dummy(symbol.name, positive=True)
            self.numbers[own] = value.lower, value.upper
        located = {c: value.xreplace(rule) for c, value in forms.located.items()}
        inside = tuple(
            located[c] for c in forms.coordinates if forms.unknown in forms.located[c].free_symbols
        )
        self.unknowns.append(Unknown(unknown, forms.equation.xreplace(rule), inside))
        for c, value in located.items():
            rule[c] = self.value(value)
        for symbol, value in {**forms.constants, **forms.abbreviations}.items():
            if symbol not in rule:
                rule[symbol] = self.value(value.xreplace(rule))
        return rule

    def tape(self, exprs: Sequence[sp.Expr]) -> BallTape:
        """Return expressions as a function of balls of parameters, unknowns and numbers."""
        targets = [sp.Dummy(real=True) for _ in exprs]
        pairs = [*self.assignments.items(), *zip(targets, exprs, strict=True)]
        return BallTape(self.inputs, (), pairs, targets)

    @property
    def inputs(self) -> tuple[sp.Symbol, ...]:
        """Parameters, unknowns and numbers, in order."""
        return (*self.parameters, *(u.symbol for u in self.unknowns), *self.numbers)


class Balls:
    """Balls of unknowns and numbers for a box of parameters."""

    def __init__(self, layers: Layers) -> None:
        self._layers, self._flint = layers, require_flint()
        self._sides = []
        for one in layers.unknowns:
            symbols = (*layers.parameters, *layers.numbers, one.symbol)
            exprs = (one.equation, *one.inside)
            targets = [sp.Dummy(real=True) for _ in exprs]
            tape = BallTape(symbols, (), list(zip(targets, exprs, strict=True)), targets)
            self._sides.append((tape, compiled(exprs, symbols)))

    def __call__(self, balls: Sequence[Any]) -> list[Any]:
        """Return all inputs of the layers; unknowns that are not found are no numbers."""
        numbers = [as_ball_between(*ends) for ends in self._layers.numbers.values()]
        given = [*balls, *numbers]
        middles = [float(ball.mid()) for ball in given]
        unknowns = [self._enclosed(*sides, given, middles) for sides in self._sides]
        return [*balls, *unknowns, *numbers]

    def _enclosed(
        self, tape: BallTape, function: Any, balls: Sequence[Any], middles: Sequence[float]
    ) -> Any:
        """Return a ball between two numbers at which the equation has proven signs.

        What has to be positive stays so above, and the equation falls there: where it is positive
        the unknown is larger, where it is negative smaller.
        """

        def gap(value: float) -> float:
            try:
                found, *inside = (float(x) for x in function(*middles, value))
            except ZeroDivisionError:
                return math.inf
            return found if min(inside) > 0 else math.inf

        nothing = self._flint.arb("nan")
        try:
            low, high = 0.0, 1.0
            while not gap(high) < 0:
                low, high = high, 2 * high
                if high > _LARGEST:
                    return nothing
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                low, high = (low, middle) if gap(middle) < 0 else (middle, high)
            slope = (gap(high * (1 + _NEAR)) - gap(high)) / (high * _NEAR)
        except (ArithmeticError, ValueError):
            return nothing
        centre = sp.Rational(high)
        around = tape([*balls, self._flint.arb(high)])[0]
        if not around.is_finite() or not slope < 0:
            return nothing
        size = 1.05 * float(around.abs_upper()) / -slope
        ends = []
        for side in (1, -1):
            step = sp.Rational(max(size, high * _LEAST))
            for _ in range(_WIDENINGS):
                end = centre - side * step
                found, *inside = tape([*balls, as_ball_between(end, end)])
                if all(x > 0 for x in inside) and (found > 0 if side > 0 else found < 0):
                    ends.append(end)
                    break
                step *= sp.Rational(3, 2)
            else:
                return nothing
        return as_ball_between(*ends)
