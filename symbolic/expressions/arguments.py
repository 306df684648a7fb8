"""Arguments that are to be SymPy expressions: numbers and expressions are taken, text is not.

SymPy's ``sympify`` evaluates text as Python unless it is told not to. Functions of Python are not
taken either, for nothing can be derived from them; arrays are, where a function is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        advice = text_of_function(value)
        raise ParameterError(
            f"{argument} has to be a SymPy expression or a number, not {shorten(repr(value))}"
            + ("; " + advice if advice else "")
        )
    return expression


def is_array(value: Any) -> bool:
    """Whether a value is an array of numbers, by what arrays of all libraries have."""
    shape = getattr(value, "shape", ())
    return hasattr(value, "__array__") and shape != () and not isinstance(value, sp.MatrixBase)


_compiled: list[Callable[..., Callable[..., Any]]] = []


def compile_arrays_with(compiled: Callable[..., Callable[..., Any]]) -> None:
    """Say what makes functions of arrays from expressions; that stands on this room."""
    _compiled[:] = [compiled]


def on_arrays(expr: sp.Expr, variables: Sequence[sp.Symbol], arrays: Sequence[Any]) -> Any:
    """Return the values of an expression where the variables have the entries of arrays.

    Raises
    ------
    EmissionError
        If it holds symbols beside the variables, or what has no values on arrays.
    """
    return _compiled[0](expr, variables, "numpy")(*arrays)


# Words of NumPy and Python that are spelled otherwise in expressions.
_SPELLED = {
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{"absolute": "abs", "fabs": "abs", "maximum": "max", "minimum": "min", "expit": "sigmoid"},
    **{"Max": "max", "Min": "min", "heaviside": "step", "ndtr": "Phi"},
}


def text_of_function(value: Any) -> str:
    """Return a word of advice about a function that stands where an expression should.

    Examples
    --------
    >>> import math
    >>> text_of_function(math.tanh)
    "write the text 'tanh', from which everything is derived"
    """
    if not callable(value):
        return ""
    name = getattr(value, "__name__", "")
    if name.isidentifier() and not hasattr(value, "__code__"):
        return f"write the text {_SPELLED.get(name, name)!r}, from which everything is derived"
    return "nothing can be derived from Python code; write what it computes, as 'tanh(2*z) + z/4'"
