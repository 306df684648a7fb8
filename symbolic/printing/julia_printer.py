"""SymPy expressions as Julia, with nothing but Base and the libm that Julia brings along."""

from __future__ import annotations

import sympy as sp

from .printers import CompiledPrinter
from .special_functions import helpers, names


class JuliaPrinter(CompiledPrinter):
    """Float64 throughout; ``ifelse`` would compute every case, so cases are ``? :``."""

    target = "julia"
    functions = names("julia")
    helpers = helpers("julia")

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> str:
        if exponent.is_Integer:
            return f"({self._print(base)})^({int(exponent)})"
        # Base.:^ throws an error for a negative base.
        return f"power({self._print(base)}, {self._print(exponent)})"
