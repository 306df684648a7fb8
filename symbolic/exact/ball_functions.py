r"""Expressions as functions of balls, with python-flint.

A ball is a set of numbers; the functions made here map balls to a ball that contains all the values
of the expression on them. Real balls give real ones. On complex balls the answer on demand
(`analytic`, as ``acb.integral`` asks) is not finite unless the expression is analytic on the whole
ball: that covers branch cuts, which plain evaluation would cross unnoticed. Poles give balls that
are not finite by themselves, and nothing raises for a value. Principal branches, as in SymPy.

Functions with a kink have no continuation to complex balls; under an average they are resolved into
their branches before (:mod:`.gaussian.enclosures`), and stay only in what is real. Several
expressions are one :class:`BallTape`, whose common parts are evaluated once.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p

from ...ball_library import require_flint
from ...errors import UnsupportedExpressionError
from ..expressions.functions import (
    OwenT,
    erf_difference,
    erfcx,
    log_cosh,
    log_normal_cdf,
    normal_cdf,
    relu,
    sigmoid,
    softplus,
)

# Balls are objects of python-flint, which is optional and imported when first needed.
Ball = Any
# Of the operands' balls, with the flag `analytic` behind them.
BallFunction = Callable[..., Ball]
BallFunctions = Callable[[Sequence[Ball], bool], list[Ball]]

_RELATIONS = (sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan)

_NUMBER_SYMBOLS = {
    sp.pi: lambda flint: flint.arb.pi(),
    sp.E: lambda flint: flint.arb.const_e(),
    sp.EulerGamma: lambda flint: flint.arb.const_euler(),
    sp.Catalan: lambda flint: flint.arb.const_catalan(),
    sp.GoldenRatio: lambda flint: (1 + flint.arb(5).sqrt()) / 2,
}


# For operations that run at each node and box.
_flint = functools.cache(require_flint)


def _is_real(x: Ball) -> bool:
    return isinstance(x, _flint().arb)


# ---------------------------------------------------------------------- functions


def _log(x: Ball, analytic: bool) -> Ball:
    return x.log() if _is_real(x) else x.log(analytic=analytic)


def _root(x: Ball, analytic: bool) -> Ball:
    return x.sqrt() if _is_real(x) else x.sqrt(analytic=analytic)


def _atan(x: Ball, analytic: bool) -> Ball:
    if _is_real(x):
        return x.atan()
    # The cuts, ±i[1, oo), are where 1 + x**2 is not positive.
    proof = (1 + x * x).log(analytic=analytic)
    return x.atan() if proof.is_finite() or not analytic else proof


def _asinh(x: Ball, analytic: bool) -> Ball:
    if _is_real(x):
        return x.asinh()
    # Same cuts. On each half plane the form whose sum does not cancel, as that of acb.asinh does.
    root = (1 + x * x).sqrt(analytic=analytic)
    if x.real >= 0:
        return (root + x).log(analytic=analytic)
    if x.real <= 0:
        return -(root - x).log(analytic=analytic)
    return x.asinh() if root.is_finite() else root


def _log1p(x: Ball, analytic: bool) -> Ball:
    if _is_real(x):
        return x.log1p()
    proof = (1 + x).log(analytic=analytic)
    return x.log1p() if proof.is_finite() else proof


def _normal_cdf(x: Ball, analytic: bool) -> Ball:
    return (-x / type(x)(2).sqrt()).erfc() / 2


def _method(name: str) -> BallFunction:
    return lambda x, analytic: getattr(x, name)()


_FUNCTIONS: dict[type, BallFunction] = {
    **{
        f: _method(f.__name__)
        for f in (
            sp.exp, sp.sin, sp.cos, sp.tan, sp.sinh, sp.cosh, sp.tanh, sp.sech, sp.erf, sp.erfc,
            sp.erfi, expm1,
        )
    },
    sp.atan: _atan,
    sp.asinh: _asinh,
    sp.log: _log,
    sigmoid: lambda x, analytic: 1 / (1 + (-x).exp()),
    softplus: lambda x, analytic: _log1p(x.exp(), analytic),
    log1p: _log1p,
    log_cosh: lambda x, analytic: _log(x.cosh(), analytic),
    erfcx: lambda x, analytic: (x * x).exp() * x.erfc(),
    normal_cdf: _normal_cdf,
    log_normal_cdf: lambda x, analytic: _log(_normal_cdf(x, False), analytic),
    erf_difference: lambda a, b, analytic: a.erf() - b.erf(),
}  # fmt: skip


def _sign(x: Ball) -> Ball:
    if x > 0:
        return type(x)(1)
    return type(x)(-1) if x < 0 else type(x)(0, 1) if x.is_finite() else x


def _step(x: Ball, at_zero: Ball) -> Ball:
    value = (1 + _sign(x)) / 2
    return value if value.is_exact() else value.union(at_zero)


# Of real balls only; at a kink whose side is not known they give all the values there are.
_REAL: dict[type, Callable[..., Ball]] = {
    sp.Abs: abs,
    sp.sign: _sign,
    sp.Heaviside: _step,
    relu: lambda x: x.nonnegative_part(),
    **{
        f: lambda x, name=f.__name__: getattr(x, name)()
        for f in (sp.asin, sp.acos, sp.acosh, sp.atanh)
    },
}


def is_known_function(function: type) -> bool:
    """Whether a class of SymPy functions can be evaluated on complex balls."""
    return function in _FUNCTIONS


# ---------------------------------------------------------------------- operations


def _integer_power(x: Ball, n: int) -> Ball:
    if not _is_real(x):
        return x**n
    # Not x**n, which takes a logarithm of real balls and is not finite around 0.
    if n < 0:
        return 1 / _integer_power(x, -n)
    power = x
    for bit in bin(n)[3:]:
        power = power * power
        if bit == "1":
            power = power * x
    return power.nonnegative_part() if n % 2 == 0 else power


def _power(base: Ball, exponent: Ball, analytic: bool) -> Ball:
    """Return a power whose exponent is one number, known to the precision."""
    if _is_real(base) and _is_real(exponent):
        return (exponent * base.log()).exp()
    base, exponent = _flint().acb(base), _flint().acb(exponent)
    value = base.pow(exponent, analytic=analytic)
    rising = exponent.imag == 0 and exponent.real > 0
    if rising and not analytic and not value.is_finite():
        # Around a zero of the base |b**e| = |b|**e bounds real powers, on all branches.
        largest = _flint().arb(0, base.abs_upper() ** exponent.real)
        return _flint().acb(largest, largest)
    return value


def _operation(
    node: sp.Expr, varies: Callable[[sp.Expr], bool]
) -> tuple[BallFunction, tuple[sp.Expr, ...]] | None:
    """Return what a node does to its operands' balls, and the operands; None if that is unknown.

    `varies` tells what may be complex: only such balls can cross a cut.
    """
    if node.is_Add:
        return (lambda *x: functools.reduce(operator.add, x[:-1])), node.args
    if node.is_Mul:
        return (lambda *x: functools.reduce(operator.mul, x[:-1])), node.args
    if node.is_Pow:
        base, exponent = node.args
        if exponent.is_Integer:
            n = int(exponent)
            return (lambda x, analytic: _integer_power(x, n)), (base,)
        if exponent == sp.S.Half:
            return _root, (base,)
        if exponent == -sp.S.Half:
            return (lambda x, analytic: 1 / _root(x, analytic)), (base,)
        if not varies(exponent):
            return _power, node.args
        if not varies(base):
            # The base does not vary: no cut is crossed, wherever it lies.
            return (lambda b, x, analytic: (x * b.log()).exp()), node.args
        return (lambda b, x, analytic: (x * _log(b, analytic)).exp()), node.args
    result = _FUNCTIONS.get(node.func)
    return None if result is None else (result, node.args)


def _hull(first: Ball, second: Ball) -> Ball:
    if _is_real(first) and _is_real(second):
        return first.union(second)
    acb = _flint().acb
    return acb(first).union(acb(second))


def _greater(x: Ball, y: Ball) -> bool | None:
    return True if x > y else False if x <= y else None


def _at_least(x: Ball, y: Ball) -> bool | None:
    return True if x >= y else False if x < y else None


# ---------------------------------------------------------------------- tapes

_Step = tuple[int, BallFunction, tuple[int, ...]]


class BallTape:
    """Expressions compiled for balls: common parts once, and what does not move only once.

    Parameters
    ----------
    early, late : sequence of Symbol
        Inputs: scalars, which are always real, and what is given at each evaluation, as the tables
        at a node: real balls on nodes, complex ones on boxes around them.
    assignments : sequence of (Symbol, Expr)
        In order; each in inputs and in targets before it.
    results : sequence of Symbol
        What a run returns: targets or inputs.
    decided : bool
        A case distinction that the balls do not decide gives no finite value, instead of all values
        that there may be. Derivatives need that: the function may jump between the cases.
    evaluator : BallEvaluator, optional
        Of constants, which may be complex then, and of symbols that it knows.

    Raises
    ------
    UnsupportedExpressionError
        If an expression holds what balls cannot be given to; the message names it.
    """

    def __init__(
        self,
        early: Sequence[sp.Symbol],
        late: Sequence[sp.Symbol],
        assignments: Iterable[tuple[sp.Symbol, sp.Expr]],
        results: Sequence[sp.Symbol],
        *,
        decided: bool = False,
        evaluator: BallEvaluator | None = None,
    ) -> None:
        self._decided, self._evaluator = decided, evaluator
        self._slots: dict[sp.Basic, int] = {x: i for i, x in enumerate((*early, *late))}
        self._inputs = len(self._slots), len(early)
        self._late = set(range(len(early), len(self._slots)))
        self._moving: set[sp.Basic] = set(late)
        self._constants: dict[int, sp.Expr] = {}
        self._early_steps: list[_Step] = []
        self._late_steps: list[_Step] = []
        self._size = len(self._slots)
        for target, value in assignments:
            slot = self._slot(value)
            self._slots[target] = slot
            if slot in self._late:
                self._moving.add(target)
        self._results = tuple(self._slots[x] for x in results)
        self._values: dict[int, list[Ball]] = {}

    def bind(self, early: Sequence[Ball]) -> BallFunctions:
        """Return the function of the late inputs, and the flag `analytic`, that gives results."""
        given, first_late = self._inputs
        bound = self._with_constants()
        bound[: len(early)] = early
        for target, operation, operands in self._early_steps:
            bound[target] = operation(*[bound[i] for i in operands], False)
        program, results = self._late_steps, self._results

        def evaluate(late: Sequence[Ball], analytic: bool) -> list[Ball]:
            values = bound.copy()
            values[first_late:given] = late
            for target, operation, operands in program:
                values[target] = operation(*[values[i] for i in operands], analytic)
            return [values[i] for i in results]

        return evaluate

    def __call__(self, early: Sequence[Ball]) -> list[Ball]:
        """Return the results of a tape without late inputs."""
        return self.bind(early)((), False)

    def _with_constants(self) -> list[Ball]:
        precision = _flint().ctx.prec
        if precision not in self._values:
            known = self._evaluator
            constant = BallEvaluator().real_constant if known is None else known.constant
            values: list[Any] = [None] * self._size
            for slot, expr in self._constants.items():
                values[slot] = constant(expr)
            self._values[precision] = values
        return self._values[precision].copy()

    def _slot(self, expr: sp.Basic) -> int:
        if expr not in self._slots:
            self._slots[expr] = self._compiled(expr)
        return self._slots[expr]

    def _compiled(self, expr: sp.Basic) -> int:
        if self._slots.keys().isdisjoint(expr.free_symbols):
            if expr.free_symbols and self._evaluator is None:
                unknown = min(map(str, expr.free_symbols))
                raise UnsupportedExpressionError(f"{unknown} has no value where it is used")
            slot = self._new()
            self._constants[slot] = expr
            return slot
        if isinstance(expr, sp.Piecewise):
            return self._cases(expr)
        moves = self._moves(expr)
        if isinstance(expr, sp.Max | sp.Min) and not moves:
            name = "max" if isinstance(expr, sp.Max) else "min"
            return self._append(
                lambda *x: functools.reduce(lambda a, b: getattr(a, name)(b), x[:-1]),
                [self._slot(x) for x in expr.args],
            )
        if expr.func in _REAL and not moves:
            real = _REAL[expr.func]
            operands = [self._slot(x) for x in expr.args]
            return self._append(lambda *x: real(*x[:-1]), operands)
        result = _operation(expr, self._moves)
        if result is None:
            raise self._unknown(expr)
        operation, arguments = result
        return self._append(operation, [self._slot(x) for x in arguments])

    def _moves(self, expr: sp.Basic) -> bool:
        return not self._moving.isdisjoint(expr.free_symbols)

    def _new(self) -> int:
        self._size += 1
        return self._size - 1

    def _append(self, operation: BallFunction, operands: Sequence[int]) -> int:
        slot = self._new()
        step = (slot, operation, tuple(operands))
        if self._late.isdisjoint(operands):
            self._early_steps.append(step)
        else:
            self._late.add(slot)
            self._late_steps.append(step)
        return slot

    def _cases(self, expr: sp.Piecewise) -> int:
        """All values that the cases whose condition is not refuted can have."""
        conditions, values = [], []
        for value, condition in expr.args:
            if self._moves(condition):
                raise self._unknown(expr)
            values.append(self._slot(value))
            conditions.append(self._condition(condition))
        operands = [i for _, sides in conditions for i in sides]
        count, decided = len(values), self._decided

        def choose(*balls: Ball) -> Ball:
            result = None
            position = count
            for value, (decide, sides) in zip(balls, conditions, strict=False):
                holds = decide(*balls[position : position + len(sides)])
                position += len(sides)
                if holds is None and decided:
                    break
                if holds is not False:
                    result = value if result is None else _hull(result, value)
                if holds is True:
                    return result
            return _flint().arb("nan")

        return self._append(choose, [*values, *operands])

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

    def _unknown(self, expr: sp.Basic) -> UnsupportedExpressionError:
        known = _FUNCTIONS if self._moves(expr) else _FUNCTIONS | _REAL
        names = ", ".join(sorted(f.__name__ for f in known))
        if not self._moves(expr):
            why = "has no proven enclosure"
        elif self._evaluator is None:
            why = (
                "is under an average and is no analytic function that balls know: the average "
                "cannot be enclosed"
            )
        else:
            of = ", ".join(sorted(map(str, self._moving & expr.free_symbols)))
            why = f"cannot be enclosed as a function of {of}"
        return UnsupportedExpressionError(
            f"{_kind(expr)} {str(expr)[:100]} {why}\n  known functions: {names}"
        )


# ---------------------------------------------------------------------- constants


class BallEvaluator:
    """Evaluates expressions on balls at the precision that is set while it is in use.

    `values`: constants that are known under a symbol, such as inner expectations.
    """

    def __init__(self, values: Mapping[sp.Symbol, Ball] | None = None) -> None:
        self.flint = require_flint()
        self._known: dict[sp.Expr, Ball] = {
            symbol: self.flint.acb(value) for symbol, value in (values or {}).items()
        }

    def constant(self, expr: sp.Expr) -> Ball:
        """Return a ball that contains a constant.

        Raises UnsupportedExpressionError if it holds a symbol, a floating-point number or a
        function that is not known.
        """
        if expr not in self._known:
            self._known[expr] = self._constant(expr)
        return self._known[expr]

    def real_constant(self, expr: sp.Expr) -> Ball:
        """Return a real ball that contains a real constant."""
        return self.constant(expr).real

    def function(self, expr: sp.Expr, variable: sp.Symbol) -> BallFunction:
        """Return an expression without kinks as a function of a ball and the flag `analytic`.

        Raises UnsupportedExpressionError if it holds something that is not known; the message names
        it.
        """
        together = self.functions((expr,), (variable,))
        return lambda x, analytic: together((x,), analytic)[0]

    def functions(self, exprs: Sequence[sp.Expr], variables: Sequence[sp.Symbol]) -> BallFunctions:
        """Return several expressions as one function of balls of several variables and the flag.

        `exprs`: without kinks in the variables. `variables`: in the order of the balls. Raises
        UnsupportedExpressionError if one holds something that is not known; the message names it.
        """
        results = [sp.Dummy(real=True) for _ in exprs]
        pairs = zip(results, exprs, strict=True)
        return BallTape((), variables, pairs, results, evaluator=self).bind(())

    def _constant(self, expr: sp.Expr) -> Ball:
        flint = self.flint
        if expr.is_Rational:
            return flint.acb(flint.arb(flint.fmpq(int(expr.p), int(expr.q))))
        if expr in _NUMBER_SYMBOLS:
            return flint.acb(_NUMBER_SYMBOLS[expr](flint))
        if expr is sp.I:
            return flint.acb(0, 1)
        if isinstance(expr, sp.Float):
            raise UnsupportedExpressionError(
                f"the floating-point number {expr} is not exact; write a rational number, as "
                f"Rational('{expr}')"
            )
        if expr.is_Symbol:
            raise UnsupportedExpressionError(f"symbol {expr} has no value; substitute a number")
        if isinstance(expr, sp.CRootOf) and expr.is_real:
            return self._real_root(expr)
        if expr.func in _CONSTANT_FUNCTIONS:
            arguments = (self._real_operand(operand, expr) for operand in expr.args)
            return flint.acb(_CONSTANT_FUNCTIONS[expr.func](*arguments))
        result = _operation(expr, lambda operand: False)
        if result is None:
            raise UnsupportedExpressionError(
                f"{_kind(expr)} {str(expr)[:100]} has no proven enclosure here"
            )
        operation, operands = result
        return operation(*(self.constant(operand) for operand in operands), False)

    def _real_operand(self, operand: sp.Expr, expr: sp.Expr) -> Ball:
        value = self.constant(operand)
        if value.imag != 0 and not operand.is_extended_real:
            raise UnsupportedExpressionError(f"the argument of {expr} is not known to be real")
        return value.real

    def _real_root(self, root: sp.CRootOf) -> Ball:
        """Isolate a root of an irreducible integer polynomial; SymPy counts real ones upwards."""
        coefficients = [int(c) for c in reversed(root.poly.all_coeffs())]
        result = [
            x.real for x, _ in self.flint.fmpz_poly(coefficients).complex_roots() if x.imag == 0
        ]
        result.sort(key=lambda x: x.mid())
        return self.flint.acb(result[root.index])


def _kind(node: sp.Expr) -> str:
    return "function" if node.is_Function else node.func.__name__


def _owen(h: Ball, a: Ball) -> Ball:
    flint = _flint()

    # x = a*s turns the integral of OwenT into one with exact ends.
    def integrand(s: Ball, analytic: bool) -> Ball:
        factor = 1 + (a * s) ** 2
        return (-h * h * factor / 2).exp() / factor

    return (a * flint.acb.integral(integrand, 0, 1) / (2 * flint.arb.pi())).real


# Functions that are evaluated at real constants only, besides those of all real balls; inverses may
# be complex.
_CONSTANT_FUNCTIONS: dict[type, Callable[..., Ball]] = {
    **_REAL,
    OwenT: _owen,
    sp.gamma: lambda x: x.gamma(),
    sp.factorial: lambda x: (x + 1).gamma(),
    **{
        f: lambda x, name=f.__name__: getattr(_flint().acb(x), name)()
        for f in (sp.asin, sp.acos, sp.acosh, sp.atanh)
    },
}
