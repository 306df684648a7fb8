"""Values of expressions with outputs of models: many in floats, one with proven bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...ball_library import require_flint
from ...errors import GiantstepError, MissingDependencyError, UnsupportedExpressionError
from ...symbolic.exact.ball_functions import BallTape
from ...symbolic.exact.enclosures import Enclosure
from ...symbolic.gaussian.enclosed_formulas import FormulaBalls
from ...symbolic.gaussian.enclosures import PRECISION, enclosure_of
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.printing.compiled import compiled
from ..outputs import BEST, ExplicitOutputs, ModelOutput, best_value, parameter

Array = NDArray[np.float64]
Columns = Mapping[str, Array]

_DIGITS, _BITS = 20, 200
EXACT, CERTIFIED = "exact arithmetic", "proven intervals"


class Evaluator:
    """Expressions in floats at many points."""

    def __init__(self, exprs: Sequence[sp.Expr], symbols: Sequence[sp.Symbol]) -> None:
        self._symbols = tuple(symbols)
        self.outputs = tuple(sorted({o for x in exprs for o in x.atoms(ModelOutput)}, key=str))
        marks: dict[sp.Expr, sp.Symbol] = {
            o: sp.Dummy(f"y{i}", real=True) for i, o in enumerate(self.outputs)
        }
        averages = {n for x in exprs for n in x.atoms(GaussianExpectation)}
        self._averages = tuple(sorted(averages, key=str))
        marks |= {n: sp.Dummy(f"e{i}", real=True) for i, n in enumerate(self._averages)}
        self._marks = tuple(marks.values())
        self._exprs = tuple(x.xreplace(marks) for x in exprs)
        self._all = (*self._symbols, *self._marks)
        self._function = compiled(self._exprs, self._all)
        self._bindings = [
            {
                name: value if value == BEST else compiled(value, self._symbols)
                for name, value in output.bindings.items()
            }
            for output in self.outputs
        ]
        self._slopes: Any = None

    def __call__(self, points: Array) -> Array:
        """Return the values, shape (expressions, n); NaN where there is none."""
        with np.errstate(all="ignore"):
            given = (
                *self._output_values(points),
                *map(partial(self._average, points), self._averages),
            )
            results = self._function(*points.T, *given)
        n = len(points)
        return np.array([np.broadcast_to(np.asarray(x, dtype=float), n) for x in results])

    def _average(self, points: Array, node: GaussianExpectation) -> Array:
        """Return a Gaussian average without a closed form, by quadrature at each point."""
        result = []
        for point in points:
            at = {x: sp.Rational(v) for x, v in zip(self._symbols, point, strict=True)}
            try:
                result.append(float(node.xreplace(at).evalf(15)))
            except (GiantstepError, ArithmeticError, TypeError):
                result.append(np.nan)
        return np.array(result)

    def _output_values(self, points: Array) -> list[Array]:
        known: dict[Any, dict[str, Array]] = {}
        result = []
        for output, bindings in zip(self.outputs, self._bindings, strict=True):
            key = output.args[0].func, output.model.to_json(), output.args[1]
            if key not in known:
                known[key] = solved(output.model, self._columns(bindings, points), len(points))
            result.append(known[key][output.name])
        return result

    def _columns(self, bindings: Mapping[str, Any], points: Array) -> dict[str, Any]:
        n = len(points)
        return {
            name: f if f == BEST else np.broadcast_to(np.asarray(f(*points.T), dtype=float), n)
            for name, f in bindings.items()
        }

    def gradients(self, point: Array) -> Array:
        """Return exact derivatives at a point, shape (expressions, symbols); NaN if there are none.

        Those of outputs are the tangents of their model.
        """
        if self._slopes is None:
            table = [[x.diff(s) for s in self._all] for x in self._exprs]
            self._slopes = compiled([d for row in table for d in row], self._all)
            self._rates = [
                {name: compiled([value.diff(s) for s in self._symbols], self._symbols)
                 for name, value in o.bindings.items() if value.free_symbols - {BEST}}
                for o in self.outputs
            ]  # fmt: skip
        shape, single = (len(self._exprs), len(self._all)), point[None]
        with np.errstate(all="ignore"):
            values = [y[0] for y in self._output_values(single)]
            if self._averages:
                raise UnsupportedExpressionError("averages without a closed form have no slopes")
            slopes = np.array(self._slopes(*point, *values), dtype=float).reshape(shape)
        k = len(self._symbols)
        result = slopes[:, :k]
        for i, output in enumerate(self.outputs):
            rates, bindings = self._rates[i], self._bindings[i]
            if not rates:
                continue
            if any(f == BEST for f in bindings.values()):
                return np.full((len(self._exprs), k), np.nan)
            if not hasattr(output.model, "sensitivities"):
                raise UnsupportedExpressionError(f"{output.name} has no exact derivatives")
            at = {name: float(f(*point)) for name, f in bindings.items()}
            found = output.model.sensitivities(wrt=list(rates), progress=False, **at)
            for name, rate in rates.items():
                along = np.asarray(rate(*point), dtype=float)
                result = result + np.outer(slopes[:, k + i], along) * found[output.name, name]
        return result


def solved(model: Any, columns: Mapping[str, Any], n: int) -> dict[str, Array]:
    """Return all outputs of a model at n points; NaN at points without a solution."""
    names = model._names().outputs
    fixed = {name: x for name, x in columns.items() if isinstance(x, sp.Symbol)}
    free = {name: np.asarray(x, dtype=float) for name, x in columns.items() if name not in fixed}
    if not fixed:
        try:
            found = model._solve_rows(free or {}, 1e-11, False)
        except (GiantstepError, ArithmeticError):
            if n == 1:
                return {name: np.full(1, np.nan) for name in names}
        else:
            return {name: np.where(found.converged, found.values[name], np.nan) for name in names}
    rows = []
    for i in range(n):
        row = {name: x[i : i + 1] for name, x in free.items()}
        try:
            given = {name: float(x[0]) for name, x in row.items()}
            for name in fixed:
                row[name] = np.array([best_value(model, name, given)])
        except (GiantstepError, ArithmeticError):
            rows.append({name: np.full(1, np.nan) for name in names})
        else:
            rows.append(solved(model, row, 1))
    return {name: np.concatenate([row[name] for row in rows]) for name in names}


@dataclass(frozen=True)
class Bounds:
    """A number between two exact ones, and what that rests on."""

    lower: sp.Rational
    upper: sp.Rational
    basis: str

    def __str__(self) -> str:
        if self.lower == self.upper:
            return str(self.lower) if len(str(self.lower)) < 20 else f"{float(self.lower):.12g}"
        middle, radius = (self.lower + self.upper) / 2, (self.upper - self.lower) / 2
        return f"{float(middle):.12g} ± {float(radius):.1g}"


def bounds_at(exprs: Sequence[sp.Expr], point: Mapping[sp.Symbol, sp.Rational]) -> list[Bounds]:
    """Return bounds of expressions at an exact point."""
    marks: dict[sp.Expr, sp.Symbol] = {}
    values: dict[sp.Symbol, Bounds] = {}
    for output in sorted({o for x in exprs for o in x.atoms(ModelOutput)}, key=str):
        marks[output] = mark = sp.Dummy(real=True)
        values[mark] = output_bounds(output, point)
    result = []
    for expr in exprs:
        at = expr.xreplace(marks).xreplace(dict(point))
        if not at.free_symbols:
            result.append(_constant(at))
            continue
        used = sorted(at.free_symbols, key=str)
        basis = "; ".join(dict.fromkeys(values[x].basis for x in used))
        if isinstance(at, sp.Symbol):
            result.append(values[at])
            continue
        flint = require_flint()
        target = sp.Dummy(real=True)
        tape = BallTape(used, (), [(target, at)], [target])
        with PRECISION, flint.ctx.workprec(_BITS):
            balls = [as_ball_between(values[x].lower, values[x].upper) for x in used]
            found = enclosure_of(tape(balls)[0], str(expr)[:80])
        result.append(Bounds(found.lower, found.upper, basis))
    return result


def as_ball_between(lower: sp.Rational, upper: sp.Rational) -> Any:
    """Return a ball that contains an interval with rational ends."""
    flint = require_flint()
    ends = [flint.arb(flint.fmpq(int(x.p), int(x.q))) for x in (lower, upper)]
    return ends[0].union(ends[1])


def _constant(value: sp.Expr) -> Bounds:
    if value.is_Rational:
        return Bounds(value, value, EXACT)
    try:
        found = FormulaBalls({}).enclosure(value, _DIGITS)
    except MissingDependencyError:
        number = sp.Rational(value.evalf(2 * _DIGITS))
        radius = abs(number) / 10**_DIGITS
        return Bounds(number - radius, number + radius, f"{_DIGITS} digits")
    return Bounds(found.lower, found.upper, CERTIFIED)


def output_bounds(output: ModelOutput, point: Mapping[sp.Symbol, sp.Rational]) -> Bounds:
    """Return bounds of an output of a model: proven, or from digits with estimated errors."""
    model = output.model
    at = {name: value.xreplace(dict(point)) for name, value in output.bindings.items()}
    given: dict[str, Any] = {name: float(x) for name, x in at.items() if x != BEST}
    for name, value in at.items():
        if value == BEST:
            given[name] = best_value(model, name, given)
    note = "; the penalty is the best one found" if BEST in at.values() else ""
    own = {name: x for name, x in given.items() if name not in model._asked}
    asked = {name: given[name] for name in model._asked}
    there = model.at(**own) if own else model
    try:
        certificate = there.solve(**asked, certify=True).certificate
        name = _kernel_name(there, output.name)
        found: Enclosure = certificate[name]
        return Bounds(found.lower, found.upper, CERTIFIED + note)
    except (GiantstepError, TypeError, AttributeError):
        pass
    try:
        result = there.solve(**asked, digits=_DIGITS)
        value, error = _with_error(result, output.name)
    except (GiantstepError, TypeError, AttributeError, KeyError):
        columns = {name: np.array([x]) for name, x in given.items()}
        batch = model._solve_rows(columns, 1e-11, True)
        value = float(batch.values[output.name][0])
        errors = batch.errors.get(output.name)
        error = 1e-9 * abs(value) if errors is None else max(errors[0], 1e-12 * abs(value))
        basis = "floats with estimated errors"
    else:
        basis = f"{_DIGITS} digits with estimated errors"
    middle, radius = sp.Rational(str(value)), sp.Rational(str(error))
    return Bounds(middle - radius, middle + radius, basis + note)


def _kernel_name(model: Any, name: str) -> str:
    return str(model._named(model.kernel()).get(name, name))


def _with_error(result: Any, name: str) -> tuple[Any, Any]:
    for row in result.entries():
        if row.name == name:
            error = getattr(result, "errors", {}).get(name)
            return row.value, abs(row.value) * 10.0**-15 if error is None else error
    raise KeyError(name)


# ----------------------------------------------------------------------
# Outputs of models that have closed forms, enclosed over boxes of their parameters.
# The closed forms are assignments, one after the other, in the parameters and in an unknown that
# an equation gives: it falls with the unknown, so that a lower and an upper bound are proven by
# its sign at two numbers for all parameters of a box. Derivatives are further assignments, by the
# chain rule, and with respect to parameters by that of implicit functions.

_BOX_DIGITS, _HALVINGS, _WIDENINGS = 25, 60, 12
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
        for symbol, value in forms.numbers(_BOX_DIGITS).items():
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
