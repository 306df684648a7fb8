"""Expansions in print: LaTeX, a table, plain text. Digits are cut off, never rounded."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ...digits import held_digits
from ...errors import ParameterError
from ...pages import Table, as_html

if TYPE_CHECKING:
    from .expansion import Expansion

_LETTERS = {"alpha": r"\alpha", "ridge": r"\lambda", "step_size": r"\eta"}
# Longer formulas fill more than a page.
_LONGEST = 2000


def series_latex(expansion: Expansion, output: str, digits: int) -> str:
    """Return the series with numbers."""
    parts: list[str] = []
    for exponent, value in expansion.terms(output):
        shown = _number(value, min(digits, expansion.digits))
        sign = "-" if shown.startswith("-") else "+" if parts else ""
        factor = power(expansion, exponent)
        product = rf"{shown.lstrip('-')}\,{factor}" if factor else shown.lstrip("-")
        parts.append(f"{sign} {product}" if parts else f"{sign}{product}")
    return _finished(expansion, output, parts or ["0"])


def formulas_latex(expansion: Expansion, output: str) -> str:
    """Return the series with formulas, as far as they are known, and what they name."""
    texts = formula_texts(expansion).get(output, [])
    if not texts:
        raise ParameterError(
            f"there are no formulas of {output}: after one gradient step, ask the model for the "
            "expansion with formulas=True, or for the numbers without it (students and teachers "
            "without linear part and linear students have none); a file keeps none"
        )
    parts: list[str] = []
    for exponent, text in zip(expansion.exponents, texts, strict=False):
        if text == "0":
            continue
        factor = power(expansion, exponent)
        product = rf"\left({text}\right){factor}" if factor else text
        parts.append(f"+ {product}" if parts else product)
    left = expansion.exponents[len(texts) :]
    shown = _finished(expansion, output, parts or ["0"], left[0] if left else None)
    return shown + _definitions_latex(expansion, output, len(texts))


def _definitions_latex(expansion: Expansion, output: str, count: int) -> str:
    """Return what the formulas name, after a comma."""
    from ..formulas import latex
    from .symbolic_series import used_definitions

    used = used_definitions(expansion.definitions, expansion.formulas[output][:count])
    return "".join(rf",\quad {latex(symbol)} = {latex(value)}" for symbol, value in used.items())


def formula_texts(expansion: Expansion) -> dict[str, list[str]]:
    """Return the formulas as LaTeX, those of readable size."""
    if not expansion.formulas:
        return {}
    from ..formulas import latex

    found: dict[str, list[str]] = {}
    for output, formulas in expansion.formulas.items():
        texts: list[str] = []
        for formula in formulas:
            text = latex(formula)
            if len(text) > _LONGEST:
                break
            texts.append(text)
        found[output] = texts
    return found


def _finished(
    expansion: Expansion, output: str, parts: list[str], order: Fraction | None = None
) -> str:
    """Return "letter = sum + O(…)"; a series that ends has no remainder."""
    left = expansion.neglected[output]
    if order is None and left is not None:
        order = left[0]
    if order is not None:
        parts = [*parts, f"+ O({power(expansion, order)})"]
    return f"{expansion.symbols.get(output, output)} = {' '.join(parts)}"


def power(expansion: Expansion, exponent: Fraction) -> str:
    """Return a power of the small quantity; nothing for the power 0."""
    shown = -exponent if expansion.point else exponent
    letter = expansion.symbols.get(expansion.parameter, _LETTERS[expansion.parameter])
    if shown == 0:
        return ""
    if shown == 1:
        return letter
    if shown.denominator == 1:
        return f"{letter}^{{{shown.numerator}}}"
    return f"{letter}^{{{shown.numerator}/{shown.denominator}}}"


def _number(value: Any, digits: int) -> str:
    text = held_digits(value, digits)
    mantissa, _, exponent = text.partition("e")
    return rf"{mantissa}\cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def html_table(expansion: Expansion) -> str:
    """Return a table of all coefficients with their region."""
    rows = [
        (
            f"${expansion.symbols.get(o, o)}$",
            *(held_digits(c, min(10, expansion.digits)) for c in cs),
        )
        for o, cs in expansion.coefficients.items()
    ]
    head = ("", *(f"${power(expansion, e) or '1'}$" for e in expansion.exponents))
    return as_html([Table(rows, head), expansion.region, expansion.rests_on])


def text(expansion: Expansion) -> str:
    """Return all coefficients that do not vanish, a line for each output."""
    name = expansion.parameter
    width = max(map(len, expansion.outputs)) + 2
    lines = [expansion.region]
    for output in expansion.outputs:
        parts = []
        for exponent, value in expansion.terms(output):
            shown = -exponent if expansion.point else exponent
            factor = "" if not shown else f" {name}" if shown == 1 else f" {name}^({shown})"
            parts.append(held_digits(value, min(12, expansion.digits)) + factor)
        left = expansion.neglected[output]
        if left is not None:
            shown = -left[0] if expansion.point else left[0]
            parts.append(f"O({name}^({shown}))")
        lines.append(f"{output:<{width}}{' + '.join(parts) or '0'}".replace("+ -", "- "))
    limit = expansion.trusted_up_to
    if math.isfinite(limit) and limit:
        side = ">=" if expansion.point else "<="
        lines.append(
            f"first neglected term of {expansion.outputs[0]} below 1 % for "
            f"{name} {side} {limit:.4g}"
        )
    return "\n".join([*lines, expansion.rests_on])
