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
from ..outputs import BEST, ExplicitOutputs, ModelOutput, parameter
from .evaluation import as_ball_between

_DIGITS, _HALVINGS, _WIDENINGS = 25, 60, 12
_LARGEST, _TINY, _NEAR, _LEAST = 1e15, 1e-30, 1e-6, 1e-12


class NotEnclosed(Exception):
    """Why outputs are not enclosed over boxes."""


@dataclass(frozen=True)
class Unknown:
    """The one positive number at which an equation holds that falls with it.

    Attributes
    ----------
    equation : Expr
        In assignments.
    """

    symbol: sp.Symbol
    equation: sp.Expr


@dataclass
class Layers:
    """An expression by assignments, in parameters, unknowns and numbers.

    Attributes
    ----------
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
            forms, model = output.model._explicit_outputs(), output.model
            if forms is None or output.name not in forms.outputs:
                raise NotEnclosed(
                    f"{output.name} of {type(model).__name__} has no closed form over boxes"
                )
            given = dict(output.bindings)
            if BEST in given.values():
                raise NotEnclosed("the best value of a parameter is not enclosed over boxes")
            for name in model._axes():
                if name not in given:
                    given[name] = sp.Rational(repr(float(getattr(model, name))))
            key = model.to_json(), tuple(given.items())
            if key not in places:
                places[key] = self._place(forms, given)
            result[output] = self.value(forms.outputs[output.name].xreplace(places[key]))
        return result

    def _place(
        self, forms: ExplicitOutputs, given: Mapping[str, sp.Expr]
    ) -> dict[sp.Expr, sp.Expr]:
        """Return what stands for parameters, the unknown and assignments at given parameters."""
        rule: dict[sp.Expr, sp.Expr] = {parameter(name): value for name, value in given.items()}
        rule[forms.unknown] = unknown = sp.Dummy(f"s{len(self.unknowns)}", positive=True)
        for symbol, value in forms.numbers(_DIGITS).items():
            if value.is_exact:
                rule[symbol] = value.midpoint
                continue
            rule[symbol] = own = sp.Dummy(symbol.name, positive=True)
            self.numbers[own] = value.lower, value.upper
        for symbol, value in forms.assignments.items():
            rule[symbol] = self.value(value.xreplace(rule))
        self.unknowns.append(Unknown(unknown, forms.equation.xreplace(rule)))
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
            target, explicit = sp.Dummy(real=True), one.equation
            for symbol, value in reversed(layers.assignments.items()):
                explicit = explicit.xreplace({symbol: value})
            tape = BallTape(symbols, (), [(target, explicit)], [target])
            self._sides.append((tape, compiled(explicit, symbols)))

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

        It falls: where it is positive the unknown is larger, where it is negative smaller.
        """

        def gap(value: float) -> float:
            return float(function(*middles, value))

        nothing = self._flint.arb("nan")
        try:
            low, high = 0.0, 1.0
            while not gap(high) < 0:
                low, high = high, 2 * high
                if high > _LARGEST:
                    return nothing
            for _ in range(_HALVINGS):
                middle = (low + high) / 2 if 4 * low > high else math.sqrt(max(low, _TINY) * high)
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
                found = tape([*balls, as_ball_between(end, end)])[0]
                if end > 0 and (found > 0 if side > 0 else found < 0):
                    ends.append(end)
                    break
                step *= sp.Rational(3, 2)
            else:
                return nothing
        return as_ball_between(*ends)
