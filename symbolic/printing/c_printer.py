"""SymPy expressions as C99 on the functions of libm."""

from __future__ import annotations

import sympy as sp

from .printers import CompiledPrinter
from .special_functions import helpers, names


class CPrinter(CompiledPrinter):
    """Doubles throughout; of a case distinction only the case that holds is computed."""

    target = "c"
    functions = names("c")
    helpers = helpers("c")

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> str:
        power = f"{int(exponent)}.0" if exponent.is_Integer else self._print(exponent)
        return f"pow({self._print(base)}, {power})"
