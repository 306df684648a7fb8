"""Assignments as operations on balls: real ones for scalars, complex ones inside integrands.

A tape knows which of its inputs are given early (scalars, always real) and which late (tables at a
node: real balls on nodes, complex ones on boxes around them). What does not depend on late inputs
is computed once when the early ones are bound. Nothing here raises for a value: where an operation
is not defined, or not analytic on the whole of a complex ball, the result is not finite, and it
stays so in all that is made of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p

from ...ball_library import require_flint
from ...errors import UnsupportedExpressionError
from ..ball_functions import Ball, BallEvaluator, ball_function
from ..functions import log_cosh, relu, sigmoid, softplus
from ..normal_functions import erf_difference, erfcx, log_normal_cdf, normal_cdf
from .program import Assign

_RELATIONS = (sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan)


def _sign(x: Ball) -> Ball:
    if x > 0:
        return type(x)(1)
    return type(x)(-1) if x < 0 else type(x)(0, 1) if x.is_finite() else x


def _step(x: Ball) -> Ball:
    # All values between the sides, whatever the convention at 0.
    return (1 + _sign(x)) / 2


def _method(name: str) -> Callable[[Ball], Ball]:
    return lambda x: getattr(x, name)()


_REAL: dict[type, Callable[..., Ball]] = {
    **{
        f: _method(f.__name__)
        for f in (
            sp.exp, sp.log, sp.sin, sp.cos, sp.tan, sp.asin, sp.acos, sp.atan, sp.sinh, sp.cosh,
            sp.tanh, sp.asinh, sp.acosh, sp.atanh, sp.erf, sp.erfc, sp.sech, expm1, log1p,
        )
    },
    sp.Abs: abs,
    sp.sign: _sign,
    sp.Heaviside: lambda x, *at_zero: _step(x),
    relu: lambda x: x.nonnegative_part(),
    sigmoid: lambda x: 1 / (1 + (-x).exp()),
    softplus: lambda x: x.exp().log1p(),
}  # fmt: skip
# What is no function of its own for balls: its derivative needs no care, unlike in floats.
_FORMS: dict[type, Callable[..., sp.Expr]] = {
    erfcx: lambda x: sp.exp(x**2) * sp.erfc(x),
    normal_cdf: lambda x: sp.erfc(-x / sp.sqrt(2)) / 2,
    log_normal_cdf: lambda x: sp.log(sp.erfc(-x / sp.sqrt(2)) / 2),
    erf_difference: lambda a, b: sp.erf(a) - sp.erf(b),
    log_cosh: lambda x: sp.log(sp.cosh(x)),
}
_COMPLEX_FORMS: dict[type, Callable[..., sp.Expr]] = {
    **_FORMS,
    expm1: lambda x: sp.exp(x) - 1,
    log1p: lambda x: sp.log(1 + x),
}

_Operation = tuple[int, Callable[..., Ball], tuple[int, ...]]


class BallTape:
    """Assignments compiled for balls.

    Parameters
    ----------
    early, late : sequence of Symbol
        Inputs.
    assignments : sequence of Assign
        In order; each in inputs and in targets before it.
    results : sequence of Symbol
        What a run returns: targets or inputs.
    decided : bool
        A case distinction that the balls do not decide gives no finite value, instead of all values
        that there may be. Derivatives need that: the function may jump between the cases.

    Raises
    ------
    UnsupportedExpressionError
        If an expression holds what balls cannot be given to; the message names it.
    """

    def __init__(
        self,
        early: Sequence[sp.Symbol],
        late: Sequence[sp.Symbol],
        assignments: Iterable[Assign],
        results: Sequence[sp.Symbol],
        *,
        decided: bool = False,
    ) -> None:
        self._decided = decided
        self._slots: dict[sp.Basic, int] = {x: i for i, x in enumerate((*early, *late))}
        self._inputs = len(self._slots), len(early)
        self._late = set(range(len(early), len(self._slots)))
        self._constants: dict[int, sp.Expr] = {}
        self._early_operations: list[_Operation] = []
        self._late_operations: list[_Operation] = []
        self._size = len(self._slots)
        for assignment in assignments:
            self._slots[assignment.target] = self._slot(assignment.value)
        self._results = tuple(self._slots[x] for x in results)
        self._values: dict[int, list[Ball]] = {}

    def bind(self, early: Sequence[Ball]) -> Callable[[Sequence[Ball]], list[Ball]]:
        """Return the function of the late inputs that gives the results."""
        given, first_late = self._inputs
        values = self._with_constants()
        values[: len(early)] = early
        for target, operation, operands in self._early_operations:
            values[target] = operation(*[values[i] for i in operands])
        program, results = self._late_operations, self._results

        def evaluate(late: Sequence[Ball]) -> list[Ball]:
            values[first_late:given] = late
            for target, operation, operands in program:
                values[target] = operation(*[values[i] for i in operands])
            return [values[i] for i in results]

        return evaluate

    def __call__(self, early: Sequence[Ball]) -> list[Ball]:
        """Return the results of a tape without late inputs."""
        return self.bind(early)(())

    def _with_constants(self) -> list[Ball]:
        precision = require_flint().ctx.prec
        if precision not in self._values:
            evaluator = BallEvaluator()
            values: list[Any] = [None] * self._size
            for slot, expr in self._constants.items():
                values[slot] = evaluator.real_constant(expr)
            self._values[precision] = values
        return self._values[precision].copy()

    # ------------------------------------------------------------------ compilation

    def _slot(self, expr: sp.Basic) -> int:
        if expr not in self._slots:
            self._slots[expr] = self._compiled(expr)
        return self._slots[expr]

    def _compiled(self, expr: sp.Basic) -> int:
        if not expr.free_symbols:
            slot = self._new()
            self._constants[slot] = expr
            return slot
        if isinstance(expr, sp.Symbol):
            raise UnsupportedExpressionError(f"{expr} has no value where it is used")
        form = _COMPLEX_FORMS if self._is_late(expr) else _FORMS
        if expr.func in form:
            return self._slot(form[expr.func](*expr.args))
        if isinstance(expr, sp.Piecewise):
            return self._cases(expr)
        operation, operands = self._operation(expr)
        return self._append(operation, tuple(self._slot(x) for x in operands))

    def _is_late(self, expr: sp.Basic) -> bool:
        return any(self._slots.get(x) in self._late for x in expr.free_symbols)

    def _new(self) -> int:
        self._size += 1
        return self._size - 1

    def _append(self, operation: Callable[..., Ball], operands: tuple[int, ...]) -> int:
        slot = self._new()
        if self._late.isdisjoint(operands):
            self._early_operations.append((slot, operation, operands))
        else:
            self._late.add(slot)
            self._late_operations.append((slot, operation, operands))
        return slot

    def _operation(self, expr: sp.Basic) -> tuple[Callable[..., Ball], tuple[sp.Basic, ...]]:
        if expr.is_Add:
            return _add, expr.args
        if expr.is_Mul:
            return _multiply, expr.args
        if expr.is_Pow:
            return _power(*expr.args)
        if isinstance(expr, sp.Max | sp.Min):
            if self._is_late(expr):
                raise _not_analytic(expr)
            return (_largest if isinstance(expr, sp.Max) else _smallest), expr.args
        real = _REAL.get(expr.func)
        if not self._is_late(expr):
            if real is None:
                raise UnsupportedExpressionError(
                    f"{expr.func.__name__} in {str(expr)[:100]} has no proven enclosure; known "
                    f"functions: {', '.join(sorted(f.__name__ for f in _REAL))}"
                )
            return real, expr.args
        complex_ = ball_function(expr.func)
        if real is None or complex_ is None:
            raise _not_analytic(expr)
        arb = require_flint().arb
        return (lambda x: real(x) if isinstance(x, arb) else complex_(x, True)), expr.args

    def _cases(self, expr: sp.Piecewise) -> int:
        """All values that the cases whose condition is not refuted can have."""
        conditions, values = [], []
        for value, condition in expr.args:
            if self._is_late(condition):
                raise _not_analytic(expr)
            values.append(self._slot(value))
            conditions.append(self._condition(condition))
        operands = tuple(i for _, sides in conditions for i in sides)
        count, decided = len(values), self._decided

        def choose(*balls: Ball) -> Ball:
            found = None
            position = count
            for value, (decide, sides) in zip(balls, conditions, strict=False):
                holds = decide(*balls[position : position + len(sides)])
                position += len(sides)
                if holds is None and decided:
                    break
                if holds is not False:
                    found = value if found is None else _hull(found, value)
                if holds is True:
                    return found
            return require_flint().arb("nan")

        return self._append(choose, (*values, *operands))

    def _condition(self, condition: sp.Basic) -> tuple[Callable[..., bool | None], tuple[int, ...]]:
        """Return a three-valued decision and the slots that it looks at."""
        if condition in (sp.true, sp.false):
            outcome = condition == sp.true
            return (lambda: outcome), ()
        if isinstance(condition, _RELATIONS):
            left, right = (self._slot(side) for side in (condition.gts, condition.lts))
            strict = isinstance(condition, sp.StrictLessThan | sp.StrictGreaterThan)
            return (_greater if strict else _at_least), (left, right)
        raise UnsupportedExpressionError(
            f"the condition {str(condition)[:100]} cannot be decided for balls"
        )


# For operations that run at each node and box.
_flint = functools.cache(require_flint)


def _add(*terms: Ball) -> Ball:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _multiply(*factors: Ball) -> Ball:
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product


def _power(base: sp.Expr, exponent: sp.Expr) -> tuple[Callable[..., Ball], tuple[sp.Expr, ...]]:
    if exponent.is_Integer:
        n = int(exponent)
        return (lambda x: _integer_power(x, n)), (base,)
    if exponent == sp.S.Half:
        return (lambda x: _root(x)), (base,)
    if exponent == -sp.S.Half:
        return (lambda x: 1 / _root(x)), (base,)
    return _real_power, (base, exponent)


def _integer_power(x: Ball, n: int) -> Ball:
    # Not x**n, which takes a logarithm of real balls and is not finite around 0.
    if n < 0:
        return 1 / _integer_power(x, -n)
    power = x
    for bit in bin(n)[3:]:
        power = power * power
        if bit == "1":
            power = power * x
    even = n % 2 == 0 and isinstance(x, _flint().arb)
    return power.nonnegative_part() if even else power


def _root(x: Ball) -> Ball:
    return x.sqrt() if isinstance(x, _flint().arb) else x.sqrt(analytic=True)


def _real_power(base: Ball, exponent: Ball) -> Ball:
    arb = _flint().arb
    logarithm = base.log() if isinstance(base, arb) else base.log(analytic=True)
    return (exponent * logarithm).exp()


def _largest(*values: Ball) -> Ball:
    found = values[0]
    for value in values[1:]:
        found = found.max(value)
    return found


def _smallest(*values: Ball) -> Ball:
    found = values[0]
    for value in values[1:]:
        found = found.min(value)
    return found


def _hull(first: Ball, second: Ball) -> Ball:
    arb, acb = _flint().arb, _flint().acb
    if isinstance(first, arb) and isinstance(second, arb):
        return first.union(second)
    return acb(first).union(acb(second))


def _greater(x: Ball, y: Ball) -> bool | None:
    return True if x > y else False if x <= y else None


def _at_least(x: Ball, y: Ball) -> bool | None:
    return True if x >= y else False if x < y else None


def _not_analytic(expr: sp.Basic) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(
        f"{str(expr)[:100]} is under an average and is no analytic function that balls know: "
        "the average cannot be enclosed"
    )
