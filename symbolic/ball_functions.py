r"""Expressions as functions of complex balls, with python-flint.

A ball is a set of complex numbers; the function made here maps it to a ball that contains all the
values of the expression on it. On demand (`analytic`, as ``acb.integral`` asks) the answer is not
finite unless the expression is analytic on the whole ball: that covers branch cuts, which plain
evaluation would cross unnoticed. Poles give balls that are not finite by themselves.
Principal branches, as in SymPy. Functions with a kink have no continuation to balls; they are
resolved into their branches before (:mod:`.gaussian_enclosures`), and stay only in constants.
Several expressions of several variables are one program, whose common parts are evaluated once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p

from ..ball_library import require_flint
from ..errors import UnsupportedExpressionError
from .functions import OwenT, log_cosh, relu, sigmoid, softplus
from .normal_functions import erfcx, log_normal_cdf, normal_cdf

# Balls are objects of python-flint, which is optional and imported when first needed.
Ball = Any
BallFunction = Callable[[Ball, bool], Ball]
BallFunctions = Callable[[Sequence[Ball], bool], list[Ball]]

_NUMBER_SYMBOLS = {
    sp.pi: lambda flint: flint.arb.pi(),
    sp.E: lambda flint: flint.arb.const_e(),
    sp.EulerGamma: lambda flint: flint.arb.const_euler(),
    sp.Catalan: lambda flint: flint.arb.const_catalan(),
    sp.GoldenRatio: lambda flint: (1 + flint.arb(5).sqrt()) / 2,
}


def _sigmoid(x: Ball, analytic: bool) -> Ball:
    return 1 / (1 + (-x).exp())


def _softplus(x: Ball, analytic: bool) -> Ball:
    return (1 + x.exp()).log(analytic=analytic)


def _atan(x: Ball, analytic: bool) -> Ball:
    # The cuts, ±i[1, oo), are where 1 + x**2 is not positive.
    proof = (1 + x * x).log(analytic=analytic)
    return x.atan() if proof.is_finite() or not analytic else proof


def _asinh(x: Ball, analytic: bool) -> Ball:
    # Same cuts. On each half plane the form whose sum does not cancel, as that of acb.asinh does.
    root = (1 + x * x).sqrt(analytic=analytic)
    if x.real >= 0:
        return (root + x).log(analytic=analytic)
    if x.real <= 0:
        return -(root - x).log(analytic=analytic)
    return x.asinh() if root.is_finite() else root


def _log1p(x: Ball, analytic: bool) -> Ball:
    proof = (1 + x).log(analytic=analytic)
    return x.log1p() if proof.is_finite() else proof


def _erfcx(x: Ball, analytic: bool) -> Ball:
    return (x * x).exp() * x.erfc()


def _normal_cdf(x: Ball, analytic: bool) -> Ball:
    return (-x / type(x)(2).sqrt()).erfc() / 2


def _method(name: str) -> BallFunction:
    return lambda x, analytic: getattr(x, name)()


_FUNCTIONS: dict[type, BallFunction] = {
    sp.exp: _method("exp"),
    sp.sin: _method("sin"),
    sp.cos: _method("cos"),
    sp.tan: _method("tan"),
    sp.sinh: _method("sinh"),
    sp.cosh: _method("cosh"),
    sp.tanh: _method("tanh"),
    sp.sech: _method("sech"),
    sp.erf: _method("erf"),
    sp.erfc: _method("erfc"),
    sp.erfi: _method("erfi"),
    sp.atan: _atan,
    sp.asinh: _asinh,
    sp.log: lambda x, analytic: x.log(analytic=analytic),
    sigmoid: _sigmoid,
    softplus: _softplus,
    expm1: _method("expm1"),
    log1p: _log1p,
    log_cosh: lambda x, analytic: x.cosh().log(analytic=analytic),
    erfcx: _erfcx,
    normal_cdf: _normal_cdf,
    log_normal_cdf: lambda x, analytic: _normal_cdf(x, False).log(analytic=analytic),
}


def ball_function(function: type) -> BallFunction | None:
    """Return a function of balls and the flag `analytic` for a SymPy function, None if unknown."""
    return _FUNCTIONS.get(function)


def is_known_function(function: type) -> bool:
    """Whether a class of SymPy functions can be evaluated on complex balls."""
    return function in _FUNCTIONS


class BallEvaluator:
    """Evaluates expressions on balls at the precision that is set while it is in use.

    Parameters
    ----------
    values : mapping of Symbol to ball
        Constants that are known under a symbol, such as inner expectations.
    """

    def __init__(self, values: Mapping[sp.Symbol, Ball] | None = None) -> None:
        self.flint = require_flint()
        self._known: dict[sp.Expr, Ball] = {
            symbol: self.flint.acb(value) for symbol, value in (values or {}).items()
        }

    def constant(self, expr: sp.Expr) -> Ball:
        """Return a ball that contains a constant.

        Raises
        ------
        UnsupportedExpressionError
            If it holds a symbol, a floating-point number or a function that is not known.
        """
        if expr not in self._known:
            self._known[expr] = self._constant(expr)
        return self._known[expr]

    def real_constant(self, expr: sp.Expr) -> Ball:
        """Return a real ball that contains a real constant."""
        return self.constant(expr).real

    def function(self, expr: sp.Expr, variable: sp.Symbol) -> BallFunction:
        """Return an expression without kinks as a function of a ball and the flag `analytic`.

        Raises
        ------
        UnsupportedExpressionError
            If it holds something that is not known; the message names it.
        """
        together = self.functions((expr,), (variable,))
        return lambda x, analytic: together((x,), analytic)[0]

    def functions(self, exprs: Sequence[sp.Expr], variables: Sequence[sp.Symbol]) -> BallFunctions:
        """Return several expressions as one function of balls of several variables and the flag.

        Parameters
        ----------
        exprs : sequence of Expr
            Without kinks in the variables.
        variables : sequence of Symbol
            In the order of the balls.

        Raises
        ------
        UnsupportedExpressionError
            If one holds something that is not known; the message names it.
        """
        # One slot for each different subexpression, operands before what is made of them.
        slots: dict[sp.Expr, int] = {variable: i for i, variable in enumerate(variables)}
        initial: list[Ball] = [None] * len(slots)
        program: list[tuple[int, Callable[..., Ball], tuple[int, ...]]] = []
        varying = frozenset(variables)

        def slot(node: sp.Expr) -> int:
            if node in slots:
                return slots[node]
            if node.free_symbols & varying:
                operation, operands = self._operation(node, varying)
                places = tuple(slot(operand) for operand in operands)
                program.append((len(initial), operation, places))
                initial.append(None)
            else:
                initial.append(self.constant(node))
            slots[node] = len(initial) - 1
            return slots[node]

        results = [slot(expr) for expr in exprs]

        def evaluate(points: Sequence[Ball], analytic: bool) -> list[Ball]:
            values = initial.copy()
            values[: len(variables)] = points
            for target, operation, operands in program:
                values[target] = operation(analytic, *(values[i] for i in operands))
            return [values[result] for result in results]

        return evaluate

    def _operation(
        self, node: sp.Expr, variables: frozenset[sp.Symbol]
    ) -> tuple[Callable[..., Ball], tuple[sp.Expr, ...]]:
        """Return an operation on the flag and the operands' balls, and the operands."""
        if node.is_Add:
            return _add, node.args
        if node.is_Mul:
            return _multiply, node.args
        if node.is_Pow:
            base, exponent = node.args
            if exponent.is_Integer:
                power = int(exponent)
                return lambda analytic, x: x**power, (base,)
            if exponent == sp.S.Half:
                return lambda analytic, x: x.sqrt(analytic=analytic), (base,)
            if not exponent.free_symbols & variables:
                return lambda analytic, x, e: self._power(x, e, analytic), node.args
            if not base.free_symbols & variables:
                # The base does not vary: no cut is crossed, wherever it lies.
                return lambda analytic, b, x: (x * b.log()).exp(), node.args
            return lambda analytic, b, x: (x * b.log(analytic=analytic)).exp(), node.args
        function = _FUNCTIONS.get(node.func)
        if function is None:
            names = ", ".join(sorted(known.__name__ for known in _FUNCTIONS))
            of = ", ".join(sorted(map(str, variables)))
            raise UnsupportedExpressionError(
                f"{_kind(node)} {str(node)[:100]} cannot be enclosed as a function of {of}"
                f"\n  known functions: {names}"
            )
        return lambda analytic, x: function(x, analytic), node.args

    def _power(self, base: Ball, exponent: Ball, analytic: bool) -> Ball:
        value = base.pow(exponent, analytic=analytic)
        rising = exponent.imag == 0 and exponent.real > 0
        if rising and not analytic and not value.is_finite():
            # Around a zero of the base |b**e| = |b|**e bounds real powers, on all branches.
            largest = self.flint.arb(0, base.abs_upper() ** exponent.real)
            return self.flint.acb(largest, largest)
        return value

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
            return flint.acb(_CONSTANT_FUNCTIONS[expr.func](flint, *arguments))
        if not (expr.is_Add or expr.is_Mul or expr.is_Pow or expr.func in _FUNCTIONS):
            raise UnsupportedExpressionError(
                f"{_kind(expr)} {str(expr)[:100]} has no proven enclosure here"
            )
        operation, operands = self._operation(expr, frozenset())
        return operation(False, *(self.constant(operand) for operand in operands))

    def _real_operand(self, operand: sp.Expr, expr: sp.Expr) -> Ball:
        value = self.constant(operand)
        if value.imag != 0 and not operand.is_extended_real:
            raise UnsupportedExpressionError(f"the argument of {expr} is not known to be real")
        return value.real

    def _real_root(self, root: sp.CRootOf) -> Ball:
        """Isolate a root of an irreducible integer polynomial; SymPy counts real ones upwards."""
        coefficients = [int(c) for c in reversed(root.poly.all_coeffs())]
        found = [
            x.real for x, _ in self.flint.fmpz_poly(coefficients).complex_roots() if x.imag == 0
        ]
        found.sort(key=lambda x: x.mid())
        return self.flint.acb(found[root.index])


def _kind(node: sp.Expr) -> str:
    return "function" if node.is_Function else node.func.__name__


def _add(analytic: bool, *terms: Ball) -> Ball:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _multiply(analytic: bool, *factors: Ball) -> Ball:
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product


def _sign(flint: Any, x: Ball) -> Ball:
    if x > 0:
        return flint.arb(1)
    return flint.arb(-1) if x < 0 else flint.arb(0, 1)


def _step(flint: Any, x: Ball, at_zero: Ball) -> Ball:
    value = (1 + _sign(flint, x)) / 2
    return value if value.is_exact() else value.union(at_zero)


def _owen(flint: Any, h: Ball, a: Ball) -> Ball:
    # x = a*s turns the integral of OwenT into one with exact ends.
    def integrand(s: Ball, analytic: bool) -> Ball:
        factor = 1 + (a * s) ** 2
        return (-h * h * factor / 2).exp() / factor

    return (a * flint.acb.integral(integrand, 0, 1) / (2 * flint.arb.pi())).real


# Functions that are evaluated at real constants only; at a kink whose side is not known they give
# all the values there are.
_CONSTANT_FUNCTIONS: dict[type, Callable[..., Ball]] = {
    sp.Abs: lambda flint, x: abs(x),
    sp.sign: _sign,
    sp.Heaviside: _step,
    relu: lambda flint, x: (x + abs(x)) / 2,
    OwenT: _owen,
    sp.asin: lambda flint, x: flint.acb(x).asin(),
    sp.acos: lambda flint, x: flint.acb(x).acos(),
    sp.acosh: lambda flint, x: flint.acb(x).acosh(),
    sp.atanh: lambda flint, x: flint.acb(x).atanh(),
    sp.gamma: lambda flint, x: x.gamma(),
    sp.factorial: lambda flint, x: (x + 1).gamma(),
}
