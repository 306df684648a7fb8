"""Arguments that are to be SymPy expressions: numbers and expressions are taken, text is not.

SymPy's ``sympify`` evaluates text as Python unless it is told not to.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from ...errors import ExpressionError, ParameterError
from ...pages import shorten


def as_expression(value: Any, argument: str) -> sp.Expr:
    """Return an expression or a number as a SymPy expression.

    `value`: what the user gave. `argument`: how the user knows it. Raises ExpressionError if it is
    a text. Raises ParameterError if it is no scalar expression.

    Examples
    --------
    >>> as_expression(2, "rho")
    2
    >>> as_expression("1/2", "rho")
    Traceback (most recent call last):
        ...
    giantstep.errors.ExpressionError: rho has to be a SymPy expression or a number, not the text \
'1/2'; giantstep.parse_expression reads texts
    """
    if isinstance(value, str | bytes):
        raise ExpressionError(
            f"{argument} has to be a SymPy expression or a number, not the text "
            f"{shorten(repr(value))}; giantstep.parse_expression reads texts"
        )
    try:
        expression = sp.sympify(value, strict=True)
    except (sp.SympifyError, TypeError, ValueError):
        expression = None
    if not isinstance(expression, sp.Expr) or getattr(expression, "is_Matrix", False):
        raise ParameterError(
            f"{argument} has to be a SymPy expression or a number, not {shorten(repr(value))}"
        )
    return expression
