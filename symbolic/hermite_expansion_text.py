r"""Hermite expansions as text, as LaTeX and as plain data for JSON.

All functions take or describe the symbol of the expansion, the ring element Σ c_α ξ^α whose
generators are the Gaussian variables; He_α is written ``He(2, x1)*x2``, as the parser reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import sympy as sp
from sympy.polys.rings import PolyElement

from ..errors import ParameterError, UnsupportedExpressionError
from .parser import parse_expression

_MOST_SHOWN = 8
_RATIONAL = re.compile(r"(-?[0-9]{1,4000})(?:/([0-9]{1,4000}))?")


def ordered_multi_indices(symbol: PolyElement) -> list[tuple[int, ...]]:
    """Return the multi-indices of all terms, by degree and then by the first variables.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> ordered_multi_indices(y**2 + x * y + y)
    [(0, 1), (1, 1), (0, 2)]
    """
    return sorted(symbol, key=lambda m: (sum(m), [-n for n in m]))


def expansion_text(symbol: PolyElement) -> str:
    """Return the first terms, with an ellipsis if there are more.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> expansion_text(3 * x**2 * y - x / 2 + 1)
    '1 - 1/2*x + 3*He(2, x)*y'
    """
    return _sum(symbol, _term, "...", full=False)


def expansion_latex(symbol: PolyElement, *, full: bool = False) -> str:
    r"""Return LaTeX; only the first terms and an ellipsis unless `full`.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> print(expansion_latex(x**2 * y - x))
    -x + \mathrm{He}_{2}(x) y
    """
    return _sum(symbol, _latex_term, r"\dots", full=full)


def expansion_to_dict(symbol: PolyElement) -> dict[str, Any]:
    """Return names and kinds of the variables, and He-coefficients as exact texts.

    Raises
    ------
    UnsupportedExpressionError
        If a coefficient is a ``CRootOf``, which the parser of expressions does not read.

    Examples
    --------
    >>> ring, x = sp.ring("x", sp.QQ)
    >>> expansion_to_dict(x**2 / 2)
    {'variables': [{'name': 'x', 'real': False}], 'he_coefficients': {'2': '1/2'}}
    """
    ring = symbol.ring
    texts = {}
    for alpha in ordered_multi_indices(symbol):
        value = ring.domain.to_sympy(symbol[alpha])
        if value.has(sp.CRootOf):
            raise UnsupportedExpressionError(
                f"the coefficient {value} has no text that reads back; write it by roots"
            )
        texts[",".join(map(str, alpha))] = str(value)
    variables = [{"name": x.name, "real": x.is_real is True} for x in ring.symbols]
    return {"variables": variables, "he_coefficients": texts}


def expansion_from_dict(
    content: Mapping[str, Any],
) -> tuple[dict[tuple[int, ...], sp.Expr], list[sp.Symbol]]:
    """Return the He-coefficients by multi-index, and the variables.

    Raises
    ------
    ParameterError
        If the content is not as `expansion_to_dict` makes it.
    ExpressionError
        If a coefficient is not an exact number.

    Examples
    --------
    >>> expansion_from_dict(
    ...     {"variables": [{"name": "x", "real": True}], "he_coefficients": {"2": "sqrt(2)/2"}}
    ... )
    ({(2,): sqrt(2)/2}, [x])
    """
    try:
        variables = [
            sp.Symbol(str(entry["name"]), **({"real": True} if entry["real"] else {}))
            for entry in content["variables"]
        ]
        texts = {
            tuple(int(n) for n in key.split(",")): text
            for key, text in content["he_coefficients"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ParameterError(
            "content is not a Hermite expansion as to_dict writes it: "
            '{"variables": [{"name": "x", "real": true}], "he_coefficients": {"2": "1/2"}}'
        ) from None
    return {alpha: read_number(text) for alpha, text in texts.items()}, variables


def read_number(text: Any) -> sp.Expr:
    """Read an exact number; fractions longer than texts of users may be, directly."""
    found = _RATIONAL.fullmatch(text) if isinstance(text, str) else None
    if found and int(found[2] or 1):
        return sp.Rational(int(found[1]), int(found[2] or 1))
    return parse_expression(text, {}, argument="coefficient")


def _sum(
    symbol: PolyElement,
    term: Callable[[sp.Expr, list[tuple[int, sp.Symbol]]], str],
    ellipsis: str,
    *,
    full: bool,
) -> str:
    order = ordered_multi_indices(symbol)
    shown = order if full else order[:_MOST_SHOWN]
    ring = symbol.ring
    terms = [
        term(
            ring.domain.to_sympy(symbol[alpha]),
            [(n, x) for n, x in zip(alpha, ring.symbols, strict=True) if n],
        )
        for alpha in shown
    ]
    terms += [ellipsis] if len(shown) < len(order) else []
    return " + ".join(terms).replace(" + -", " - ") or "0"


def _term(coefficient: sp.Expr, factors: list[tuple[int, sp.Symbol]]) -> str:
    names = [x.name if n == 1 else f"He({n}, {x.name})" for n, x in factors]
    text = str(coefficient)
    return _product(coefficient, f"({text})" if coefficient.is_Add else text, names, "*")


def _latex_term(coefficient: sp.Expr, factors: list[tuple[int, sp.Symbol]]) -> str:
    names = [
        sp.latex(x) if n == 1 else rf"\mathrm{{He}}_{{{n}}}({sp.latex(x)})" for n, x in factors
    ]
    text = sp.latex(coefficient)
    bracketed = rf"\left({text}\right)" if coefficient.is_Add else text
    return _product(coefficient, bracketed, names, " ")


def _product(coefficient: sp.Expr, text: str, names: list[str], times: str) -> str:
    if names and abs(coefficient) == 1:
        return ("-" if coefficient == -1 else "") + times.join(names)
    return times.join([text, *names])
