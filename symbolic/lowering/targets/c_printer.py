"""SymPy expressions as C99 on the functions of libm."""

from __future__ import annotations

import sympy as sp

from ..special_functions import names
from .printers import SourcePrinter


class CPrinter(SourcePrinter):
    """Doubles throughout; of a case distinction only the case that holds is computed."""

    target = "c"
    functions = names("c")

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        base, exponent = expr.as_base_exp()
        if exponent.is_Rational and abs(exponent) == sp.S.Half:
            return super()._print_Pow(expr)
        if exponent.is_Integer and 0 < abs(int(exponent)) <= 4:
            return super()._print_Pow(expr)
        power = f"{int(exponent)}.0" if exponent.is_Integer else self._print(exponent)
        return f"pow({self._print(base)}, {power})"

    def _print_Piecewise(self, expr: sp.Piecewise) -> str:
        text = f"({self._print(self._last_branch(expr))})"
        for value, condition in reversed(expr.args[:-1]):
            text = f"({self._print(condition)} ? ({self._print(value)}) : {text})"
        return text
