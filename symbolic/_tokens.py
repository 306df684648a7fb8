"""Check of the tokens of an expression text, before Python's grammar sees it.

What Python would accept or report in its own way is refused here with the mathematician's remedy:
``^``, ``2z``, typographic signs, keywords, numbers with too many digits.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable

from ..errors import ExpressionError
from .vocabulary import FUNCTIONS, PARTIAL_FUNCTIONS

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


def shorten(text: str, limit: int = 60) -> str:
    """Return the text, cut with an ellipsis if it is longer than the limit."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


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
    if exponent and (len(exponent) > 3 or abs(int(exponent)) > MAX_DIGITS):
        raise refuse(
            f"the number {shorten(token, 20)!r} is out of range; "
            f"use decimal exponents from -{MAX_DIGITS} to {MAX_DIGITS}"
        )
