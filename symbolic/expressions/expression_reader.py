"""One text on its way to a SymPy expression: tokens, Python's grammar, a walk over allowed nodes.

What Python would accept or report in its own way is refused with the mathematician's remedy:
``^``, ``2z``, typographic signs, keywords, numbers with too many digits.

What may occur and what is refused is told in :mod:`.parser`; :mod:`.latex_text` reads through the
same walk. A product is formed at once, as SymPy would write it: 2*(x + 1)*y keeps three factors.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import math
import re
import unicodedata
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence

import sympy as sp

from ...errors import ExpressionError, ParameterError
from ...one_thread import syntax_tree
from ...pages import shorten
from .expression_text import (
    CONSTANTS,
    FUNCTIONS,
    FUNCTIONS_OF_SEVERAL,
    PARTIAL_FUNCTIONS,
    SHAPED,
)

MAX_NESTING = 50
MAX_DIGITS = 30

Refuse = Callable[[str], ExpressionError]

_TOKEN = re.compile(
    r" |(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*)|(?P<operator>\*\*|[-+*/(),])"
)
_REMEDIES = {
    "^": "write ** for powers",
    "²": "write **2",
    "³": "write **3",
    "·": "write *",
    "×": "write *",
    "√": "write sqrt(...)",
    "|": "write abs(...)",
    "\N{MINUS SIGN}": "write - (the ASCII hyphen)",
    "\N{EN DASH}": "write - (the ASCII hyphen)",
    "[": "write round parentheses",
    "{": "write round parentheses",
    ".": "a point belongs inside a number such as 0.5; attributes do not exist here",
    "=": "give one expression, not an equation",
    "<": "give one expression, not a comparison",
    ">": "give one expression, not a comparison",
}


def check_tokens(text: str, refuse: Refuse) -> None:
    """Refuse characters, numbers and neighbours that Python would read in its own way."""
    position, depth = 0, 0
    previous = ""
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            character = text[position]
            remedy = _REMEDIES.get(character, "use numbers, names, + - * / ** and parentheses only")
            raise refuse(f"{character!r} has no meaning here; {remedy}")
        position = match.end()
        token = match.group()
        if token == " ":
            continue
        _check_token(match, previous, refuse)
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth > MAX_NESTING:
            raise refuse(f"parentheses are nested too deeply; use at most {MAX_NESTING} levels")
        previous = token


def _check_token(match: re.Match[str], previous: str, refuse: Refuse) -> None:
    token = match.group()
    for character in token:
        if character in _REMEDIES and character != ".":
            raise refuse(f"{character!r} has no meaning here; {_REMEDIES[character]}")
    if match["name"] and (keyword.iskeyword(token) or not token.isidentifier()):
        raise refuse(f"{token!r} is not a name; rename the variable or remove the word")
    plain = unicodedata.normalize("NFKC", token)
    if plain.isascii() and not token.isascii():
        # Python would read it so without a word.
        raise refuse(f"{token!r} is not in plain letters; write {plain}")
    if previous + token in ("//", "***"):
        raise refuse(f"{previous + token!r} is not an operator; write / or * or **")
    ends_operand = previous == ")" or previous[:1].isalnum() or previous[:1] in ("_", ".")
    starts_operand = not match["operator"] or token == "("
    is_call = token == "(" and previous[:1].isidentifier()
    if previous and ends_operand and starts_operand and not is_call:
        glue = "" if match.string[match.start() - 1] != " " else " "
        is_function = previous in FUNCTIONS or previous in PARTIAL_FUNCTIONS
        written = f"{previous}({token})" if is_function and glue else f"{previous}*{token}"
        raise refuse(
            f"an operator is missing in {shorten(previous + glue + token, 30)!r}; "
            f"write {shorten(written, 30)}"
        )
    if match["number"]:
        _check_number(token, refuse)


def _check_number(token: str, refuse: Refuse) -> None:
    mantissa, _, exponent = token.lower().partition("e")
    if len(mantissa) > 1 and mantissa[0] == "0" and mantissa[1] != ".":
        raise refuse(f"{shorten(token, 20)!r} begins with 0; write the number without it")
    if sum(character.isdigit() for character in mantissa) > MAX_DIGITS:
        raise refuse(
            f"the number {shorten(token, 20)!r} is too long; use at most {MAX_DIGITS} digits"
        )
    if exponent and abs(float(exponent)) > MAX_DIGITS:
        raise refuse(
            f"the number {shorten(token, 20)!r} is out of range; "
            f"use decimal exponents from -{MAX_DIGITS} to {MAX_DIGITS}"
        )


MAX_LENGTH = 4000
MAX_EXPONENT = 64
MAX_ORDER = 64
MAX_DEGREE = 256
MAX_FUNCTIONS = 10
"""Functions inside one another: derivatives of more of them take minutes."""
# Numbers that arise inside, such as (9**60)**60, and constants handed to functions.
_MAX_BITS = 4096
_MAX_CONSTANT_ARGUMENT = 10**6

_ONE_ARGUMENT = ChainMap(FUNCTIONS, {**PARTIAL_FUNCTIONS})
_HERMITE_NAME = re.compile(r"He([0-9]{1,3})")
# What other programs and papers call these; proposed, never read.
OTHER_WORDS = {
    "e": "E", "Pi": "pi", "π": "pi", "ln": "log", "sgn": "sign", "silu": "swish",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "logistic": "sigmoid", "hermite": "He", "normcdf": "Phi",
}  # fmt: skip


class ExpressionReader:
    """One text and what error messages about it need.

    `shown` is what the user wrote, if `text` is a translation of it; `limit` bounds the length of
    the text.
    """

    def __init__(
        self,
        text: str,
        variables: Mapping[str, sp.Symbol],
        argument: str,
        *,
        shown: str | None = None,
        limit: int = MAX_LENGTH,
    ) -> None:
        self.original = text if shown is None else shown
        self.limit = limit
        self.length = len(text)
        # One line without leading blanks, so that offsets in the tree are offsets in the text.
        self.text = " ".join(text.split()) if self.length <= limit else ""
        self.source = b""
        self.variables = variables
        self.argument = argument
        self.functions = 0

    def refuse(self, reason: str) -> ExpressionError:
        shown = repr(shorten(self.original))
        return ExpressionError(f"cannot read {self.argument} {shown}: {reason}")

    def read(self) -> sp.Expr:
        if self.length > self.limit:
            raise self.refuse(
                f"it has {self.length} characters; shorten it to at most {self.limit}"
            )
        if not self.text:
            raise self.refuse("it is empty; give an expression such as 'tanh(2*z)'")
        check_tokens(self.text, self.refuse)
        self.source = self.text.encode()
        try:
            tree = syntax_tree(self.text, "eval")
        except SyntaxError as error:
            place = f" at {self.text[error.offset - 1 :][:12]!r}" if error.offset else ""
            raise self.refuse(f"{error.msg}{place}; check operators and parentheses") from None
        except (RecursionError, MemoryError):
            raise self.refuse(
                f"it is nested too deeply; use at most {MAX_NESTING} levels"
            ) from None
        value = self.checked(self.build(tree.body, 0), "it")
        return self.real(value, "it")

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
        # Terms and factors are put together at once: one by one takes quadratic time.
        terms: list[sp.Expr] = []
        factors = [self.build(left, depth + 1)]
        for step in reversed(steps):
            right = self.build(step.right, depth + 1)
            if isinstance(step.op, ast.Mult | ast.Div):
                if terms:
                    terms, factors = [], [sp.Add(*terms, self.product(factors, step.left))]
                factors.append(self.factor(step, right))
            else:
                terms.append(self.product(factors, step.left))
                factors = [right if isinstance(step.op, ast.Add) else -right]
        return sp.Add(*terms, self.product(factors, node))

    def product(self, factors: list[sp.Expr], node: ast.expr) -> sp.Expr:
        if len(factors) == 1:
            return factors[0]
        return self.checked(sp.Mul(*factors), repr(self.segment(node)))

    def factor(self, step: ast.BinOp, right: sp.Expr) -> sp.Expr:
        """Return what a step * right or / right multiplies with."""
        if isinstance(step.op, ast.Mult):
            return right
        if right.is_zero:
            raise self.refuse(f"{self.segment(step)!r} divides by zero; change the denominator")
        return 1 / right

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
        if hermite or name in _ONE_ARGUMENT:
            raise self.refuse(f"{name!r} is a function; write {name}({example})")
        if name == "He":
            raise self.refuse(f"'He' is a function; write He(3, {example})")
        if name in FUNCTIONS_OF_SEVERAL:
            raise self.refuse(f"{name!r} is a function; write {_form(name)}")
        raise self.unknown(name, [*variables, *CONSTANTS, *_all_functions()])

    def unknown(self, name: str, known: Sequence[str]) -> ExpressionError:
        # Words of two letters resemble everything.
        close = [*difflib.get_close_matches(name, known, n=1)] if len(name) > 1 else []
        close += difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.8)
        for word in (name, name.lower()):
            close[:0] = [other for other in [OTHER_WORDS.get(word, word)] if other in known]
        remedy = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
        return self.refuse(f"unknown name {shorten(name, 30)!r}; {remedy}")

    def call(self, name: str, node: ast.Call, depth: int) -> sp.Expr:
        piece = self.segment(node)
        if name in self.variables or name in CONSTANTS:
            raise self.refuse(f"{name!r} is not a function in {piece!r}; write {name}*(...)")
        hermite = _HERMITE_NAME.fullmatch(name)
        if not (hermite or name in _all_functions()):
            raise self.unknown(name, _all_functions())
        several, function = FUNCTIONS_OF_SEVERAL.get(name, (2 if name == "He" else 1, None))
        if len(node.args) != several and not (name in SHAPED and len(node.args) == 2):
            raise self.refuse(
                f"{piece!r} has {len(node.args)} arguments instead of {several}"
                f"{' or 2' * (name in SHAPED)}; write {_form(name)}"
            )
        if self.functions == MAX_FUNCTIONS:
            raise self.refuse(
                f"functions are nested too deeply; use at most {MAX_FUNCTIONS} inside one another"
            )
        self.functions += 1
        values = [self.build(operand, depth + 1) for operand in node.args]
        self.functions -= 1
        if hermite is None and name != "He":
            for value in values:
                # SymPy compares the arguments of steps with 0, and complex ones have no order.
                self.real(value, f"the argument of {piece!r}")
                if not value.free_symbols:
                    self.check_constant(value, repr(piece))
            try:
                return self.checked((function or _ONE_ARGUMENT[name])(*values), repr(piece))
            except ParameterError as error:
                raise self.refuse(f"{piece!r} is not defined; {error}") from None
        *orders, value = values
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

    def real(self, value: sp.Expr, piece: str) -> sp.Expr:
        """Return the value unless it is not real."""
        if (
            value.has(sp.I)
            or any(p.base.is_negative and not p.exp.is_integer for p in value.atoms(sp.Pow))
            or any(f.is_extended_real is False for f in value.atoms(*PARTIAL_FUNCTIONS.values()))
        ):
            raise self.refuse(f"{piece} is not real-valued; keep square roots and logarithms real")
        return value

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


def _all_functions() -> list[str]:
    return [*FUNCTIONS, *PARTIAL_FUNCTIONS, *FUNCTIONS_OF_SEVERAL, "He"]


def _form(name: str) -> str:
    """Return an example of a call for a message."""
    if name == "He":
        return "He(3, x): the order, then the argument"
    if name in SHAPED:
        return f"{name}(x) or {name}(x, 1/5)"
    several = FUNCTIONS_OF_SEVERAL[name][0] if name in FUNCTIONS_OF_SEVERAL else 1
    operands = ("x", "low", "high") if name == "clip" else ("x", "y", "rho")
    return f"{name}({', '.join(operands[:several])})"
