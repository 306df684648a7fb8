"""Text to SymPy, without evaluating any Python.

The text is checked token by token, read with :func:`ast.parse`, and the tree is walked over a
short list of allowed nodes: numbers, declared variables, ``pi``, ``E``, ``+ - * / **``,
parentheses, the functions of `FUNCTIONS` and ``He(k, x)``, the probabilists' Hermite polynomial,
expanded. Decimals become exact rationals. Length, nesting, digits, exponents and degree are bounded
so that every text is either read or refused within milliseconds.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence

import sympy as sp

from ..errors import ExpressionError
from ._tokens import MAX_NESTING, check_tokens, shorten
from .functions import relu, sigmoid, softplus

MAX_LENGTH = 1000
MAX_EXPONENT = 64
MAX_ORDER = 64
MAX_DEGREE = 256
# Numbers that arise inside, such as (9**60)**60, and constants handed to functions.
_MAX_BITS = 4096
_MAX_CONSTANT_ARGUMENT = 10**6

FUNCTIONS: Mapping[str, Callable[[sp.Expr], sp.Expr]] = {
    "erf": sp.erf,
    "erfc": sp.erfc,
    "tanh": sp.tanh,
    "sin": sp.sin,
    "cos": sp.cos,
    "tan": sp.tan,
    "exp": sp.exp,
    "log": sp.log,
    "sqrt": sp.sqrt,
    "abs": sp.Abs,
    "Abs": sp.Abs,
    "sign": sp.sign,
    "step": lambda x: sp.Heaviside(x, sp.Rational(1, 2)),
    "Heaviside": lambda x: sp.Heaviside(x, sp.Rational(1, 2)),
    "relu": relu,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "gelu": lambda x: x * (1 + sp.erf(x / sp.sqrt(2))) / 2,
    "swish": lambda x: x * sigmoid(x),
    "Phi": lambda x: (1 + sp.erf(x / sp.sqrt(2))) / 2,
    "atan": sp.atan,
    "asinh": sp.asinh,
    "sinh": sp.sinh,
    "cosh": sp.cosh,
    "sech": sp.sech,
}
"""Functions of one argument that a text may call."""

CONSTANTS: Mapping[str, sp.Expr] = {"pi": sp.pi, "E": sp.E}

_HERMITE_NAME = re.compile(r"He([0-9]{1,3})")


def parse_expression(
    text: str,
    variables: Mapping[str, sp.Symbol] | Sequence[sp.Symbol],
    *,
    argument: str = "expression",
) -> sp.Expr:
    r"""Read a text as an exact real SymPy expression.

    Parameters
    ----------
    text : str
        The expression, at most `MAX_LENGTH` characters.
    variables : mapping of str to Symbol, or sequence of Symbol
        What may occur besides numbers, constants and functions; a sequence declares the symbols by
        their own names. They take precedence over the names of functions and constants.
    argument : str
        How the caller's user knows this text; error messages begin with it.

    Returns
    -------
    Expr
        Exact, without any Float. Not simplified beyond what SymPy does by itself, except that
        ``He(k, x)`` and its other spelling ``Hek(x)`` are expanded in powers of x. If exactly one
        variable is declared, a bare ``He3`` is He_3 of it.

    Raises
    ------
    ExpressionError
        If the text is anything else, is too large, or is not a finite real expression; no other
        exception is raised, whatever the text. The first line says which piece is wrong and what
        would be right.

    Notes
    -----
    Probabilists' Hermite polynomials, He_2(x) = x**2 - 1. Exponents are integers or fractions with
    numerator and denominator up to `MAX_EXPONENT`; positive numbers may have any exponent. The
    degree, counted through products, powers and functions, is at most `MAX_DEGREE`.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> parse_expression("He(3, z)/6 + 0.25*tanh(2*z)", [z])
    z**3/6 - z/2 + tanh(2*z)/4
    >>> parse_expression("2z", [z], argument="f")
    Traceback (most recent call last):
        ...
    giantstep.errors.ExpressionError: cannot read f '2z': an operator is missing in '2z'; write 2*z
    """
    if not isinstance(text, str):
        raise ExpressionError(
            f"cannot read {argument} {shorten(repr(text))}: it is not a text; give a str"
        )
    if not isinstance(variables, Mapping):
        variables = {symbol.name: symbol for symbol in variables}
    return _Reader(text, variables, argument).read()


class _Reader:
    """One text on its way to an expression; holds what error messages need."""

    def __init__(self, text: str, variables: Mapping[str, sp.Symbol], argument: str) -> None:
        self.original = text
        # One line without leading blanks, so that offsets in the tree are offsets in the text.
        self.text = " ".join(text.split()) if len(text) <= MAX_LENGTH else ""
        self.source = b""
        self.variables = variables
        self.argument = argument

    def refuse(self, reason: str) -> ExpressionError:
        shown = repr(shorten(self.original))
        return ExpressionError(f"cannot read {self.argument} {shown}: {reason}")

    def read(self) -> sp.Expr:
        if len(self.original) > MAX_LENGTH:
            raise self.refuse(
                f"it has {len(self.original)} characters; shorten it to at most {MAX_LENGTH}"
            )
        if not self.text:
            raise self.refuse("it is empty; give an expression such as 'tanh(2*z)'")
        check_tokens(self.text, self.refuse)
        self.source = self.text.encode()
        try:
            tree = ast.parse(self.text, mode="eval")
        except SyntaxError as error:
            place = f" at {self.text[error.offset - 1 :][:12]!r}" if error.offset else ""
            raise self.refuse(f"{error.msg}{place}; check operators and parentheses") from None
        except (RecursionError, MemoryError):
            raise self.refuse(
                f"it is nested too deeply; use at most {MAX_NESTING} levels"
            ) from None
        value = self.checked(self.build(tree.body, 0), "it")
        if value.has(sp.I) or any(
            power.base.is_negative and not power.exp.is_integer for power in value.atoms(sp.Pow)
        ):
            raise self.refuse("it is not real-valued; keep square roots and logarithms real")
        return value

    def segment(self, node: ast.expr) -> str:
        """Return the piece of the text a node was read from, shortened for a message."""
        return shorten(self.source[node.col_offset : node.end_col_offset].decode(), 30)

    def build(self, node: ast.expr, depth: int) -> sp.Expr:
        if depth > MAX_NESTING:
            raise self.refuse(f"it is nested too deeply; use at most {MAX_NESTING} levels")
        match node:
            case ast.Constant():
                # From the text, not from node.value: that is a float for decimals.
                return sp.Rational(self.source[node.col_offset : node.end_col_offset].decode())
            case ast.Name(id=name):
                return self.named(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.build(operand, depth + 1)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.build(operand, depth + 1)
            case ast.BinOp(op=ast.Pow()):
                base = self.build(node.left, depth + 1)
                exponent = self.build(node.right, depth + 1)
                self.check_power(base, exponent, repr(self.segment(node)))
                return self.checked(base**exponent, repr(self.segment(node)))
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
                return self.chain(node, depth)
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                return self.call(name, node, depth)
            case _:
                raise self.refuse(
                    f"{self.segment(node)!r} is not an expression; "
                    "use numbers, names, + - * / **, parentheses and functions"
                )

    def chain(self, node: ast.BinOp, depth: int) -> sp.Expr:
        """Build a + b - c ... from the left in a loop: a long sum is not deep nesting."""
        steps: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and not isinstance(left.op, ast.Pow):
            steps.append(left)
            left = left.left
        value = self.build(left, depth + 1)
        for step in reversed(steps):
            right = self.build(step.right, depth + 1)
            if isinstance(step.op, ast.Add):
                value = value + right
            elif isinstance(step.op, ast.Sub):
                value = value - right
            elif isinstance(step.op, ast.Mult):
                value = self.checked(value * right, repr(self.segment(step)))
            elif right.is_zero:
                raise self.refuse(f"{self.segment(step)!r} divides by zero; change the denominator")
            else:
                value = self.checked(value / right, repr(self.segment(step)))
        return value

    def check_power(self, base: sp.Expr, exponent: sp.Expr, piece: str) -> None:
        """Refuse a power before it is formed if it is too large, undefined or not elementary."""
        if exponent.is_Rational:
            if max(abs(exponent.p), exponent.q) > MAX_EXPONENT:
                raise self.refuse(
                    f"the exponent in {piece} is too large; use exponents from -{MAX_EXPONENT} "
                    f"to {MAX_EXPONENT}, or fractions of such numbers"
                )
            if exponent.is_negative and base.is_zero:
                raise self.refuse(f"{piece} divides by zero; change the base")
            coefficient = base.as_coeff_Mul()[0]
            if coefficient.is_Rational:
                bits = max(abs(coefficient.p).bit_length(), coefficient.q.bit_length())
                if bits * abs(exponent) > _MAX_BITS:
                    raise self.refuse(f"{piece} is too large a number; use smaller exponents")
            if _degree(base) * abs(exponent) > MAX_DEGREE:
                raise self.refuse(
                    f"the degree of {piece} is too large; keep degrees up to {MAX_DEGREE}"
                )
        elif not (base.is_positive and (base.is_Rational or base in CONSTANTS.values())):
            raise self.refuse(
                f"the exponent in {piece} is not a rational number; "
                "write general powers with exp and log"
            )
        elif not exponent.free_symbols:
            self.check_constant(exponent, piece)

    def named(self, name: str) -> sp.Expr:
        if name in self.variables:
            return self.variables[name]
        if name in CONSTANTS:
            return CONSTANTS[name]
        variables = list(self.variables)
        hermite = _HERMITE_NAME.fullmatch(name)
        if hermite and len(variables) == 1:
            return self.hermite(int(hermite[1]), self.variables[variables[0]], name)
        example = variables[0] if variables else "1"
        if hermite or name in FUNCTIONS:
            raise self.refuse(f"{name!r} is a function; write {name}({example})")
        if name == "He":
            raise self.refuse(f"'He' is a function; write He(3, {example})")
        raise self.unknown(name, [*variables, *CONSTANTS, *FUNCTIONS])

    def unknown(self, name: str, known: Sequence[str]) -> ExpressionError:
        close = difflib.get_close_matches(name, known, n=1)
        remedy = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
        return self.refuse(f"unknown name {shorten(name, 30)!r}; {remedy}")

    def call(self, name: str, node: ast.Call, depth: int) -> sp.Expr:
        piece = self.segment(node)
        if name in self.variables or name in CONSTANTS:
            raise self.refuse(f"{name!r} is not a function in {piece!r}; write {name}*(...)")
        hermite = _HERMITE_NAME.fullmatch(name)
        if not (hermite or name == "He" or name in FUNCTIONS):
            raise self.unknown(name, [*FUNCTIONS, "He"])
        expected = 2 if name == "He" else 1
        if len(node.args) != expected:
            form = "He(3, x): the order, then the argument" if expected == 2 else f"{name}(x)"
            raise self.refuse(
                f"{piece!r} has {len(node.args)} arguments instead of {expected}; write {form}"
            )
        *orders, value = (self.build(operand, depth + 1) for operand in node.args)
        if name in FUNCTIONS:
            if not value.free_symbols:
                self.check_constant(value, repr(piece))
            return self.checked(FUNCTIONS[name](value), repr(piece))
        order = sp.Integer(int(hermite[1])) if hermite else orders[0]
        if not order.is_Integer or not 0 <= order <= MAX_ORDER:
            raise self.refuse(
                f"the order in {piece!r} is not allowed; use an integer from 0 to {MAX_ORDER}"
            )
        return self.hermite(int(order), value, piece)

    def hermite(self, order: int, x: sp.Expr, piece: str) -> sp.Expr:
        if order > MAX_ORDER:
            raise self.refuse(f"the order in {piece!r} is not allowed; use 0 to {MAX_ORDER}")
        self.check_power(x, sp.Integer(order), repr(piece))
        # He_n(x) = sum_j (-1)^j n!/(2^j j! (n-2j)!) x^(n-2j)
        factorial = math.factorial
        return sp.Add(
            *(
                (-1) ** j
                * sp.Integer(factorial(order) // (2**j * factorial(j) * factorial(order - 2 * j)))
                * x ** (order - 2 * j)
                for j in range(order // 2 + 1)
            )
        )

    def check_constant(self, value: sp.Expr, piece: str) -> None:
        """Bound a constant argument: exp(exp(exp(99))) cannot be compared with anything."""
        size = value if value.is_Rational else value.evalf(15)
        if not (size.is_comparable and abs(size) <= _MAX_CONSTANT_ARGUMENT):
            raise self.refuse(
                f"the constant in {piece} is too large or not real; "
                f"keep it below {_MAX_CONSTANT_ARGUMENT}"
            )

    def checked(self, value: sp.Expr, piece: str) -> sp.Expr:
        """Return the value unless it is infinite, undefined or of too high a degree."""
        if value.has(sp.zoo, sp.nan, sp.oo, -sp.oo):
            raise self.refuse(f"{piece} is infinite or undefined; remove the division by zero")
        if _degree(value) > MAX_DEGREE:
            raise self.refuse(
                f"the degree of {piece} is too large; keep degrees up to {MAX_DEGREE}"
            )
        return value


def _degree(expr: sp.Expr) -> sp.Expr:
    """Return a bound of the degree in all variables; functions count as their argument."""
    if not expr.args:
        return sp.Integer(bool(expr.is_Symbol))
    if expr.is_Pow:
        base, exponent = expr.args
        return _degree(base) * abs(exponent) if exponent.is_Rational else _degree(exponent)
    degrees = [_degree(operand) for operand in expr.args]
    return sum(degrees, sp.S.Zero) if expr.is_Mul else max(degrees)
