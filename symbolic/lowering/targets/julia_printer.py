"""SymPy expressions as Julia, with nothing but Base and the libm that Julia brings along."""

from __future__ import annotations

import sympy as sp

from ..special_functions import names
from .printers import SourcePrinter


class JuliaPrinter(SourcePrinter):
    """Float64 throughout; ``ifelse`` would compute every case, so cases are ``? :``."""

    target = "julia"
    functions = names("julia")

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        base, exponent = expr.as_base_exp()
        if exponent.is_Rational and abs(exponent) == sp.S.Half:
            return super()._print_Pow(expr)
        if exponent.is_Integer and 0 < abs(int(exponent)) <= 4:
            return super()._print_Pow(expr)
        if exponent.is_Integer:
            return f"({self._print(base)})^({int(exponent)})"
        # Base.:^ throws an error for a negative base.
        return f"power({self._print(base)}, {self._print(exponent)})"

    def _print_Piecewise(self, expr: sp.Piecewise) -> str:
        text = f"({self._print(self._last_branch(expr))})"
        for value, condition in reversed(expr.args[:-1]):
            text = f"({self._print(condition)} ? ({self._print(value)}) : {text})"
        return text
