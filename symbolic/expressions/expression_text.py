"""Expressions as ASCII text that reads back as the identical expression.

The inverse of :func:`.parser.parse_expression`. Sums and products are written so that reading them
lets SymPy put the same pieces together: a number never stands alone before a sum in parentheses,
because SymPy would multiply it in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

import sympy as sp

from ...errors import ParameterError
from .arguments import as_expression
from .bivariate_normal import BivariateNormalCDF
from .functions import HALF, OwenT, relu, sigmoid, softplus
from .piecewise_polynomials import flattened


def _step(x: sp.Expr) -> sp.Expr:
    return sp.Heaviside(x, HALF)


def _clip(x: sp.Expr, low: sp.Expr, high: sp.Expr) -> sp.Expr:
    if (high - low).is_negative:
        raise ParameterError(f"its lower end {low} is above its upper end {high}")
    if (high - low).is_nonnegative:
        # Between the ends x itself, without rounding.
        return x - relu(x - high) + relu(low - x)
    return _larger(low, _smaller(x, high))


def _larger(x: sp.Expr, y: sp.Expr) -> sp.Expr:
    return flattened(y + relu(x - y))


def _smaller(x: sp.Expr, y: sp.Expr) -> sp.Expr:
    return flattened(y - relu(y - x))


def _celu(x: sp.Expr, a: sp.Expr = sp.S.One) -> sp.Expr:
    if a == 0:
        raise ParameterError("its number must not be 0")
    return relu(x) + a * (sp.exp(-relu(-x) / a) - 1)


_LEAK = sp.Rational(1, 100)
# The exponentials have no positive argument: far out nothing overflows.
SHAPED: Mapping[str, Callable[..., sp.Expr]] = {
    "leaky_relu": lambda x, a=_LEAK: relu(x) - a * relu(-x),
    "elu": lambda x, a=sp.S.One: relu(x) + a * (sp.exp(-relu(-x)) - 1),
    "celu": _celu,
}
"""Functions with a number that may follow the argument, with its usual value: the slope on the
left of leaky_relu, the depth of elu and celu."""

# Klambauer et al. (1706.02515) chose them such that a standard normal variable keeps mean 0 and
# variance 1: the slope, and slope times depth, to the digits of double precision.
_SELU_SLOPE = sp.Rational("1.0507009873554805")
_SELU_DEPTH = sp.Rational("1.7580993408473766")

FUNCTIONS: dict[str, Callable[[sp.Expr], sp.Expr]] = {
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
    "step": _step,
    "Heaviside": _step,
    "relu": relu,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "gelu": lambda x: x * (1 + sp.erf(x / sp.sqrt(2))) / 2,
    "swish": lambda x: x * sigmoid(x),
    "Phi": lambda x: (1 + sp.erf(x / sp.sqrt(2))) / 2,
    "hardtanh": lambda x: _clip(x, sp.S.NegativeOne, sp.S.One),
    "mish": lambda x: x * sp.tanh(softplus(x)),
    "selu": lambda x: _SELU_SLOPE * relu(x) + _SELU_DEPTH * (sp.exp(-relu(-x)) - 1),
    **SHAPED,
    "atan": sp.atan,
    "asinh": sp.asinh,
    "sinh": sp.sinh,
    "cosh": sp.cosh,
    "sech": sp.sech,
}
"""Functions of one argument that are defined on the whole line, or that activations are made of;
:func:`.activations.declare_activation` adds to them."""

PARTIAL_FUNCTIONS: Mapping[str, Callable[[sp.Expr], sp.Expr]] = {
    "asin": sp.asin,
    "acos": sp.acos,
    "acosh": sp.acosh,
    "atanh": sp.atanh,
}
"""Functions of one argument that are real on a part of the line only; exact results hold them."""

FUNCTIONS_OF_SEVERAL: Mapping[str, tuple[int, Callable[..., sp.Expr]]] = {
    **dict.fromkeys(("max", "Max"), (2, _larger)),
    **dict.fromkeys(("min", "Min"), (2, _smaller)),
    "clip": (3, _clip),
    "OwenT": (2, OwenT),
    "Phi2": (3, BivariateNormalCDF),
}
"""Functions of several arguments, with their number; max, min and clip(x, low, high) are exact
through relu."""

CONSTANTS: Mapping[str, sp.Expr] = {"pi": sp.pi, "E": sp.E}

SPELLINGS: Mapping[type, str] = {
    **{
        function: name
        for name, function in {**FUNCTIONS, **PARTIAL_FUNCTIONS}.items()
        if isinstance(function, type)
    },
    sp.Abs: "abs",
    OwenT: "OwenT",
    BivariateNormalCDF: "Phi2",
}
"""How a SymPy function is written: the word that reads back as it."""


@dataclass(frozen=True)
class Product:
    """A product as it is written: sign, a number in front, and a fraction.

    `negative`: whether a minus sign stands before it. `factor`: a number in front of the fraction,
    1 if it is part of the fraction. `numerators`, `denominators`: factors above and below the line;
    none means 1.
    """

    negative: bool
    factor: sp.Rational
    numerators: tuple[sp.Expr, ...]
    denominators: tuple[sp.Expr, ...]


def split_product(expr: sp.Expr) -> Product:
    """Return the parts of a product, a negative power or a rational number, as they are written.

    Examples
    --------
    >>> x = sp.Symbol("x")
    >>> split_product(-2 * x / (3 * sp.sqrt(sp.pi)))
    Product(negative=True, factor=1, numerators=(2, x), denominators=(3, sqrt(pi)))
    """
    number, rest = expr.as_coeff_Mul(rational=True)
    numerators, denominators = [], []
    for factor in [] if rest == 1 else sp.Mul.make_args(rest):
        power = factor.exp if factor.is_Pow else sp.S.One
        if power.is_Rational and power.is_negative:
            denominators.append(sp.Pow(factor.base, -power))
        else:
            numerators.append(factor)
    numerators.sort(key=_place)
    denominators.sort(key=_place)
    above, below = sp.Integer(abs(number.p)), sp.Integer(number.q)
    # 2*(x + 1) below the line, or above it alone, would be multiplied out when it is read.
    alone = any(len(side) == 1 and side[0].is_Add for side in (numerators, denominators))
    if alone and (above, below) != (1, 1):
        return Product(
            bool(number.is_negative), above / below, tuple(numerators), tuple(denominators)
        )
    numerators = [above, *numerators] if above != 1 else numerators
    denominators = [below, *denominators] if below != 1 else denominators
    return Product(bool(number.is_negative), sp.S.One, tuple(numerators), tuple(denominators))


def _place(factor: sp.Expr) -> tuple[int, object]:
    """Constants, then symbols and powers, then functions and sums, each in SymPy's order."""
    kind = 0 if factor.is_number else 2 if factor.has(sp.Function) or factor.is_Add else 1
    return kind, sp.default_sort_key(factor)


def expression_text(expr: sp.Expr) -> str:
    """Write an expression as ASCII text.

    Parameters
    ----------
    expr : Expr
        What :mod:`.parser` reads: rationals, pi, E, symbols, sums, products, powers with rational
        exponents or positive rational bases, and the functions of :data:`FUNCTIONS`.

    Returns
    -------
    str
        :func:`.parser.parse_expression`, given the symbols, reads it as the identical expression,
        if that is as SymPy itself would build it (not held unevaluated) and within the parser's
        bounds of length, nesting and exponents. What the parser has no word for, such as an
        expectation, is written as SymPy writes it; the parser refuses that.

    Examples
    --------
    >>> x, y = sp.symbols("x1 x2", real=True)
    >>> expression_text(sp.sqrt(2) * x**3 / (2 * sp.sqrt(sp.pi)) - sp.exp(-y / 2))
    'sqrt(2)*x1**3/(2*sqrt(pi)) - exp(-x2/2)'
    >>> expression_text(sp.Heaviside(x, sp.Rational(1, 2)) / (1 + x) / 2)
    '1/2*step(x1)/(x1 + 1)'
    """
    expr = as_expression(expr, "expr")
    if expr.is_Add:
        return joined_terms(map(expression_text, expr.as_ordered_terms()))
    if expr.is_Symbol or expr is sp.pi or expr is sp.E or expr.is_Integer:
        return str(expr)
    if expr.is_Mul or expr.is_Rational or _is_inverse(expr):
        return _product(split_product(expr))
    if expr.is_Pow:
        base, exponent = expr.args
        if exponent == HALF:
            return f"sqrt({expression_text(base)})"
        written = _factor(base)
        if base.is_Pow and not _is_inverse(base) and base.exp != HALF:
            written = f"({written})"
        power = expression_text(exponent)
        return f"{written}**{power}" if _is_plain(exponent) else f"{written}**({power})"
    if isinstance(expr, sp.Heaviside) and expr.args[1] == HALF:
        return f"step({expression_text(expr.args[0])})"
    if type(expr) in SPELLINGS:
        inside = ", ".join(expression_text(operand) for operand in expr.args)
        return f"{SPELLINGS[type(expr)]}({inside})"
    return str(expr)


def _is_inverse(expr: sp.Expr) -> bool:
    return bool(expr.is_Pow and expr.exp.is_Rational and expr.exp.is_negative)


def joined_terms(written: Iterable[str]) -> str:
    """Join the texts of terms to a sum; a leading minus becomes the operator.

    Examples
    --------
    >>> joined_terms(["x", "-2*y", "- z"])
    'x - 2*y - z'
    """
    text = ""
    for term in written:
        if not text:
            text = term
        elif term.startswith("-"):
            text += f" - {term[1:].lstrip()}"
        else:
            text += f" + {term}"
    return text


def _product(parts: Product) -> str:
    above = [_factor(x) for x in parts.numerators]
    below = [_factor(x) for x in parts.denominators]
    text = "*".join(above)
    if parts.factor != 1:
        text = f"{parts.factor}*{text}" if text else str(parts.factor)
    text = text or "1"
    if below:
        text += f"/({'*'.join(below)})" if len(below) > 1 else f"/{below[0]}"
    if not parts.negative:
        return text
    # A minus binds to what follows it at once, and SymPy would multiply it into a sum.
    return f"-1*{text}" if text.startswith("(") else f"-{text}"


def _factor(expr: sp.Expr) -> str:
    text = expression_text(expr)
    closed = not (expr.is_Add or expr.is_Mul or _is_inverse(expr) or text.startswith("-"))
    return text if closed and (expr.is_Integer or not expr.is_Rational) else f"({text})"


def _is_plain(expr: sp.Expr) -> bool:
    return bool(expr.is_Symbol or (expr.is_Integer and expr >= 0))


def plain_data(value: Any) -> Any:
    """Return a value as JSON has it: exact numbers as texts, symbols by name, results by field.

    Examples
    --------
    >>> plain_data((sp.sqrt(2), sp.Symbol("x1"), (1, None)))
    ['sqrt(2)', 'x1', [1, None]]
    """
    if isinstance(value, sp.Symbol):
        return value.name
    if isinstance(value, sp.Expr):
        return expression_text(value)
    if isinstance(value, Enum):
        return value.value if isinstance(value, str) else value.name
    if isinstance(value, tuple | list):
        return [plain_data(part) for part in value]
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return plain_fields(value, *(f.name for f in fields(value)))
    return value


def plain_fields(result: Any, *names: str) -> dict[str, Any]:
    """Return some attributes of a result as plain data."""
    return {name: plain_data(getattr(result, name)) for name in names}
