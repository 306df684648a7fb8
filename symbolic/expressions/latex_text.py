r"""Expressions as LaTeX, written and read.

Reading translates LaTeX into the text that :mod:`.parser` reads, by a recursive descent over a
short list of commands: ``\frac``, ``\sqrt``, ``\sqrt[n]``, ``^``, subscripts of names, ``\cdot``,
parentheses with or without ``\left`` and ``\right``, Greek names, ``\pi``, ``e``, functions and
``\mathrm{He}_{k}``. Signs of multiplication and parentheses are added where LaTeX does without; the
minus in front of a product belongs to all of it. The checks and bounds of the text hold after that:
no command defines, includes or runs anything.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import sympy as sp

from ...errors import ExpressionError
from ...pages import shorten
from .expression_reader import MAX_NESTING, ExpressionReader
from .expression_text import (
    CONSTANTS,
    FUNCTIONS,
    FUNCTIONS_OF_SEVERAL,
    PARTIAL_FUNCTIONS,
    SPELLINGS,
    Product,
    joined_terms,
    split_product,
)
from .functions import HALF

Refuse = Callable[[str], ExpressionError]

MAX_LATEX_LENGTH = 16000
# A level of the reader takes up to two here, \left( and what is in it.
_MAX_DEPTH = 2 * MAX_NESTING

GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Sigma Upsilon Psi Omega"
).split()
# Functions with a command of their own, and the words under \operatorname that we write.
COMMANDS = {
    name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "max", "min")
} | {"ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "Phi": "Phi"}
_OPERATORS = {
    **{name: name for name in (*FUNCTIONS, *PARTIAL_FUNCTIONS, *FUNCTIONS_OF_SEVERAL)},
    "ReLU": "relu",
    "GELU": "gelu",
    "SiLU": "swish",
    "sgn": "sign",
    "T": "OwenT",
}
_FONTS = ("operatorname", "mathrm", "text", "mathsf")
_SIZES = {rf"\{size}{side}" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r")}
_SPACES = {r"\,", r"\;", r"\!", r"\:", r"\ ", r"\quad", r"\displaystyle", *_SIZES}
_FRACTIONS = (r"\frac", r"\tfrac", r"\dfrac")
_TIMES = {r"\cdot", r"\times", "*"}

_TOKEN = re.compile(
    r"\s+|(?P<command>\\(?:[A-Za-z]+|.))|(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<letter>[A-Za-z])"
    r"|(?P<sign>[-+*/^_(){},;|\[\]])"
)


def written(expr: sp.Expr) -> str:
    r"""Return an expression in LaTeX, also where a symbol has a Greek letter and braces.

    Examples
    --------
    >>> print(written(2 * sp.Symbol("mu_{>1}^2")), sp.latex(2 * sp.Symbol("mu_{>1}^2")))
    2 \mu_{>1}^2 2 mu_{>1}^2
    """
    # SymPy prints names with braces as they are.
    braced = [s for s in expr.free_symbols if "{" in s.name and s.name.startswith(tuple(GREEK))]
    return str(sp.latex(expr, symbol_names={s: f"\\{s.name}" for s in braced}))


def latex_names(text: str) -> set[str]:
    r"""Return the names that a LaTeX text may hold as variables; x_{1} counts as x1.

    Examples
    --------
    >>> sorted(latex_names(r"\rho x_{12} + \tanh\left(z\right)"))
    ['rho', 'x12', 'z']
    """
    result = set()
    plain = re.sub(rf"\\(?:{'|'.join(_FONTS)})\s*\{{\w*\}}", " ", text[:MAX_LATEX_LENGTH])
    for head, command, index in re.findall(
        r"(?:(?<![A-Za-z\\])([A-Za-z])|\\([A-Za-z]+))(?:_\{?([0-9]+)\}?)?", plain
    ):
        if head or command in GREEK:
            result.add((head or command) + index)
    return result


def latex_tokens(text: str, refuse: Refuse) -> list[str]:
    if len(text) > MAX_LATEX_LENGTH:
        raise refuse(f"it has {len(text)} characters; shorten it to at most {MAX_LATEX_LENGTH}")
    inner = text.strip()
    if len(inner) > 1 and inner[0] == inner[-1] == "$":
        inner = inner.strip("$")
    tokens = []
    position = 0
    while position < len(inner):
        match = _TOKEN.match(inner, position)
        if match is None:
            raise refuse(
                f"{inner[position]!r} has no meaning in the LaTeX of an expression; "
                "use letters, numbers, + - * / ^ _, braces and commands"
            )
        position = match.end()
        token = match.group().strip()
        if token and token not in _SPACES:
            tokens.append(token)
    if not tokens:
        raise refuse(r"it is empty; give an expression such as '\tanh\left(2 z\right)'")
    return tokens


class Translator:
    """Recursive descent over the tokens; each method returns text for the expression reader."""

    def __init__(
        self, tokens: list[str], refuse: Refuse, variables: Mapping[str, sp.Symbol]
    ) -> None:
        self.tokens = tokens
        self.refuse = refuse
        self.variables = variables
        self.position = 0
        self.depth = 0

    @property
    def token(self) -> str:
        """The next token, empty at the end."""
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.token
        if expected is not None and token != expected:
            result = f"{token!r} stands there" if token else "the text ends"
            raise self.refuse(
                f"{expected!r} is missing where {result}; check braces and parentheses"
            )
        self.position += 1
        return token

    @contextlib.contextmanager
    def deeper(self) -> Iterator[None]:
        """Count a level of nesting."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.refuse(f"it is nested too deeply; use at most {MAX_NESTING} levels")
        yield
        self.depth -= 1

    def whole(self) -> str:
        text = self.sum()
        if self.token:
            raise self.refuse(f"{self.token!r} is out of place; check braces and parentheses")
        return text

    def sum(self) -> str:
        text = ""
        while True:
            sign = self.take() if self.token in ("+", "-") else ""
            if self.token in ("+", "-"):
                raise self.refuse(f"{sign + self.token!r} is not an operator; use parentheses")
            product = self.product()
            # The minus of LaTeX belongs to the whole product; that of the reader to one factor.
            if not text and sign == "-":
                text = f"-{product}" if product.isalnum() else f"-({product})"
            else:
                text += f"{sign}{product}"
            if self.token not in ("+", "-"):
                return text

    def product(self) -> str:
        text = self.factor()
        while True:
            if self.token in _TIMES:
                self.take()
                text += f"*{self.factor()}"
            elif self.token == "/":
                self.take()
                text += f"/{self.factor()}"
            elif self.starts_factor():
                if self.token[0].isdigit() and text[-1].isdigit():
                    raise self.refuse(
                        rf"two numbers stand side by side; write \cdot before {self.token!r}"
                    )
                self.refuse_missing_index()
                text += f"*{self.factor()}"
            else:
                return text

    def refuse_missing_index(self) -> None:
        """x2 is x times 2 in LaTeX, and never meant so."""
        before = self.tokens[self.position - 1]
        if self.token[0].isdigit() and (before.isalpha() or before[1:] in GREEK):
            raise self.refuse(
                f"{before + self.token!r} is ambiguous; write {before}_{{{self.token}}} for an "
                rf"index, or {before} \cdot {self.token}"
            )

    def starts_factor(self) -> bool:
        token = self.token
        if token in ("(", "{", r"\left"):
            return True
        closing = (r"\right", r"\rvert", r"\}")
        return token[:1].isalnum() or (token[:1] == "\\" and token not in closing)

    def factor(self) -> str:
        text = self.atom()
        if self.token != "^":
            return text
        self.take()
        power = self.argument()
        self.refuse_second_power()
        return f"{text}**{power}"

    def argument(self) -> str:
        """One token or a group in braces, as an operand of the reader."""
        if self.token == "{":
            self.take()
            with self.deeper():
                text = self.sum()
            self.take("}")
        elif self.token[:1].isdigit() and len(self.token) > 1:
            # TeX takes one digit: x^12 is x^1 2.
            raise self.refuse(f"{self.token!r} has to stand in braces; write {{{self.token}}}")
        elif self.token in ("-", "+", ""):
            raise self.refuse("an argument has to stand in braces, such as x^{-1}")
        else:
            text = self.atom()
        return text if text.isalnum() else f"({text})"

    def atom(self) -> str:
        """A number, name, group or function, written so that a power of it can follow."""
        with self.deeper():
            return self.read_atom(self.take())

    def read_atom(self, token: str) -> str:
        if token[:1].isdigit():
            return token
        if token == "e" and "e" not in self.variables:
            return self.exponential()
        if token.isalpha():
            return self.indexed(token)
        if token in ("(", "{", r"\left", r"\lvert"):
            return self.group(token)
        if token in _FRACTIONS:
            self.split_digits()
            above, below = self.argument(), self.argument()
            return f"({above}/{below})"
        if token == "|":
            raise self.refuse(r"'|' may open or close; write \left| and \right|")
        if token == r"\sqrt":
            return self.root()
        if token[:1] == "\\":
            return self.command(token)
        result = f"{token!r} stands there" if token else "the text ends"
        raise self.refuse(f"a number, name or group is missing where {result}")

    def split_digits(self) -> None:
        r"""Read \frac12 as TeX does, one digit for each argument."""
        if re.fullmatch("[0-9]{2}", self.token):
            self.tokens[self.position : self.position + 1] = [*self.token]

    def exponential(self) -> str:
        if self.token != "^":
            return "E"
        self.take()
        power = _stripped(self.argument())
        self.refuse_second_power()
        return f"exp({power})"

    def refuse_second_power(self) -> None:
        if self.token == "^":
            raise self.refuse("a power of a power is ambiguous; write braces or parentheses")

    def root(self) -> str:
        order = "2"
        if self.token == "[":
            self.take()
            order = self.take()
            if not order.isdigit():
                raise self.refuse(r"the order of a root is a number, such as \sqrt[3]{x}")
            self.take("]")
        inside = self.argument()
        return f"sqrt({_stripped(inside)})" if order == "2" else f"({inside}**(1/{order}))"

    def group(self, opening: str) -> str:
        closing = {"(": ")", "{": "}", r"\lvert": r"\rvert"}.get(opening)
        if closing:
            text = self.sum()
            self.take(closing)
            return f"abs({text})" if opening == r"\lvert" else f"({text})"
        bracket = self.take()
        if bracket not in ("(", "|", "["):
            raise self.refuse(rf"\left{bracket} has no meaning here; use \left( or \left|")
        text = self.sum()
        self.take(r"\right")
        self.take({"(": ")", "|": "|", "[": "]"}[bracket])
        return f"abs({text})" if bracket == "|" else f"({text})"

    def command(self, token: str) -> str:
        name = token[1:]
        if name == "pi":
            return "pi"
        if name in _FONTS:
            return self.word()
        if name in COMMANDS:
            index = self.index()
            if index not in ("", "2") or (index and name != "Phi"):
                raise self.refuse(f"{token!r} has no index {index!r}; write it without")
            return self.call(COMMANDS[name] + index)
        if name in GREEK:
            return self.indexed(name)
        raise self.refuse(
            f"{token!r} is not a command for expressions; "
            r"use \frac, \sqrt, \cdot, \left, \right, names and functions"
        )

    def word(self) -> str:
        r"""The word in \operatorname{word} or \mathrm{word}: a function or a long name."""
        self.take("{")
        letters = []
        while self.token not in ("}", ""):
            letter = self.take()
            letters.append("_" if letter == r"\_" else letter)
        self.take("}")
        name = "".join(letters)
        if name == "e" and self.token != "_" and name not in self.variables:
            return self.exponential()
        if not name.isidentifier():
            raise self.refuse(f"{shorten(name, 30)!r} is not the name of a function or a variable")
        if name == "He":
            order = self.index()
            return f"He({order}, {_stripped(self.operands())})" if order else "He"
        if name in _OPERATORS and name not in self.variables:
            return self.call(_OPERATORS[name])
        return self.indexed(name)

    def indexed(self, head: str) -> str:
        name = head + self.index()
        if name in CONSTANTS and name not in self.variables:
            raise self.refuse(rf"unknown name {name!r}; write \pi for pi and e for E")
        return name

    def index(self) -> str:
        """Return a subscript of digits or letters, empty if there is none."""
        if self.token != "_":
            return ""
        self.take()
        if self.token != "{":
            index = self.take()
        else:
            self.take()
            index = ""
            while self.token not in ("}", ""):
                index += self.take()
            self.take("}")
        if not (index.isascii() and index.isalnum()):
            raise self.refuse("an index has to be a number or letters, such as x_{1}")
        return index

    def call(self, function: str) -> str:
        if self.token != "^":
            return f"{function}{self.operands(function)}"
        self.take()
        power = self.argument()
        if power == "(-1)":
            raise self.refuse(
                rf"{function}^{{-1}} may be an inverse or a reciprocal; "
                r"write \arcsin and the like, or \frac{1}{...}"
            )
        return f"({function}{self.operands(function)}**{power})"

    def operands(self, function: str = "") -> str:
        r"""Return the arguments of a function in parentheses: \left(x, y\right), (x) or {...}.

        Those of max and min may stand in \{ \} too.
        """
        if self.token == "{":
            self.take()
            with self.deeper():
                text = self.operands(function)
            self.take("}")
            return text
        sized = self.token == r"\left"
        if sized:
            self.take()
        braces = self.token == r"\{" and function in ("max", "min")
        if self.token != "(" and not braces:
            raise self.refuse(
                r"the argument of a function has to stand in parentheses \left( \right)"
            )
        self.take()
        values = [self.sum()]
        while self.token in (",", ";"):
            self.take()
            values.append(self.sum())
        if sized:
            self.take(r"\right")
        self.take(r"\}" if braces else ")")
        return f"({', '.join(values)})"


def _stripped(text: str) -> str:
    """Remove the parentheses that `argument` or `operands` put around the whole."""
    return text[1:-1] if text[0] == "(" else text


# A translation repeats no piece, and a piece grows by its parentheses at most.
_MAX_TRANSLATION = 4 * MAX_LATEX_LENGTH

_SYMBOL = re.compile(r"([A-Za-z]+)([0-9]*)")


def expression_latex(expr: sp.Expr) -> str:
    r"""Write an expression as LaTeX that :func:`parse_latex` reads back.

    `expr`: as for :func:`.expression_text.expression_text`; what the grammar has no word for is
    written by SymPy's own printer, and not read back.

    Examples
    --------
    >>> x, rho = sp.symbols("x1 rho", real=True)
    >>> print(expression_latex(sp.sqrt(2) * x**3 / (2 * sp.sqrt(sp.pi)) - sp.exp(-rho / 2)))
    \frac{\sqrt{2} x_{1}^{3}}{2 \sqrt{\pi}} - e^{- \frac{\rho}{2}}
    """
    if expr.is_Add:
        return joined_terms(map(expression_latex, expr.as_ordered_terms()))
    if expr.is_Symbol:
        return _symbol(expr)
    if expr is sp.pi or expr is sp.E:
        return r"\pi" if expr is sp.pi else "e"
    if expr.is_Integer:
        return str(expr)
    inverse = expr.is_Pow and expr.exp.is_Rational and expr.exp.is_negative
    if expr.is_Mul or expr.is_Rational or inverse:
        return _product(split_product(expr))
    if expr.is_Pow:
        base, exponent = expr.args
        inside = expression_latex(base)
        if exponent.is_Rational and exponent.p == 1:
            return rf"\sqrt{{{inside}}}" if exponent.q == 2 else rf"\sqrt[{exponent.q}]{{{inside}}}"
        if not (base.is_Symbol or base is sp.pi or (base.is_Integer and base > 0)):
            inside = rf"\left({inside}\right)"
        return f"{inside}^{{{expression_latex(exponent)}}}"
    if isinstance(expr, sp.exp):
        return f"e^{{{expression_latex(expr.args[0])}}}"
    if isinstance(expr, sp.Abs):
        return rf"\left|{{{expression_latex(expr.args[0])}}}\right|"
    operands = expr.args
    name = SPELLINGS.get(type(expr))
    if isinstance(expr, sp.Heaviside) and operands[1] == HALF:
        name, operands = "step", operands[:1]
    if name is None:
        return str(sp.latex(expr))
    if COMMANDS.get(name) == name:
        head = rf"\{name}"
    elif name == "Phi2":
        head = r"\Phi_{2}"
    else:
        head = rf"\operatorname{{{ {'relu': 'ReLU', 'OwenT': 'T'}.get(name, name) }}}"
    return rf"{head}\left({', '.join(map(expression_latex, operands))}\right)"


def _symbol(symbol: sp.Symbol) -> str:
    result = _SYMBOL.fullmatch(symbol.name)
    if result is None or (result[1] == "e" and not result[2]):
        written = symbol.name.replace("_", r"\_")
        return rf"\mathrm{{{written}}}"
    head, index = result.groups()
    if head in GREEK:
        head = rf"\{head}"
    elif len(head) > 1:
        head = rf"\mathrm{{{head}}}"
    return f"{head}_{{{index}}}" if index else head


def _product(parts: Product) -> str:
    above, below = _side_by_side(parts.numerators), _side_by_side(parts.denominators)
    text = rf"\frac{{{above or '1'}}}{{{below}}}" if below else above
    if parts.factor != 1:
        number = rf"\frac{{{parts.factor.p}}}{{{parts.factor.q}}}"
        number = number if parts.factor.q != 1 else str(parts.factor.p)
        text = f"{number} {text}" if text else number
    return f"- {text or '1'}" if parts.negative else text or "1"


def _side_by_side(factors: Sequence[sp.Expr]) -> str:
    text = ""
    for factor in factors:
        written = _factor(factor)
        joint = r" \cdot " if written[0].isdigit() else " "
        text = f"{text}{joint}{written}" if text else written
    return text


def _factor(expr: sp.Expr) -> str:
    text = expression_latex(expr)
    return rf"\left({text}\right)" if expr.is_Add or expr.is_Mul or text[0] == "-" else text


def parse_latex(
    text: str,
    variables: Mapping[str, sp.Symbol] | Sequence[sp.Symbol],
    *,
    argument: str = "expression",
) -> sp.Expr:
    r"""Read LaTeX as an exact real SymPy expression.

    Parameters
    ----------
    text : str
        At most `MAX_LATEX_LENGTH` characters, with or without dollar signs around it.
    variables : mapping of str to Symbol, or sequence of Symbol
        As for :func:`.parser.parse_expression`; ``x_{1}`` stands for the name x1, ``\rho`` for
        rho, ``\mathrm{name}`` for a longer name.
    argument : str
        How the caller's user knows this text; error messages begin with it.

    Raises
    ------
    ExpressionError
        If a command or character is not on the list, or the expression is refused as
        :func:`.parser.parse_expression` refuses it; pieces are then shown as translated.

    Examples
    --------
    >>> x1, z = sp.symbols("x1 z", real=True)
    >>> parse_latex(r"\frac{1}{2} \mathrm{He}_{2}\left(x_{1}\right) + e^{-\frac{1}{2}}", [x1])
    x1**2/2 - 1/2 + exp(-1/2)
    """
    if not isinstance(text, str):
        raise ExpressionError(
            f"cannot read {argument} {shorten(repr(text))}: it is not a text; give a str"
        )
    if not isinstance(variables, Mapping):
        variables = {symbol.name: symbol for symbol in variables}

    def refuse(reason: str) -> ExpressionError:
        return ExpressionError(f"cannot read {argument} {shorten(text)!r}: {reason}")

    translation = Translator(latex_tokens(text, refuse), refuse, variables).whole()
    reader = ExpressionReader(translation, variables, argument, shown=text, limit=_MAX_TRANSLATION)
    return reader.read()
