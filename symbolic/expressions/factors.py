"""Factorisations that are the same each time.

SymPy factors a polynomial of several variables about integer points that it draws. About some of
them it expands for minutes what takes milliseconds about others, so that the same call may return
at once in one process and not in the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp
from sympy.core.random import rng


def repeatable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of SymPy that draws the same points each time, whatever was drawn before.

    The state of SymPy's generator is as it was afterwards.
    """

    def found(expr: sp.Basic, *args: Any, **options: Any) -> Any:
        state = rng.getstate()
        rng.seed(0)
        try:
            return function(expr, *args, **options)
        finally:
            rng.setstate(state)

    return found


factored, factor_list = repeatable(sp.factor), repeatable(sp.factor_list)
factors_of_polynomial = repeatable(sp.Poly.factor_list)
partial_fractions = repeatable(sp.apart)
