"""Averages over a bound random variable: what the Gaussian and the Marchenko–Pastur node share.

Such a node holds a function, the bound variable and the parameters of its law. Factors that do
not depend on the variable stand outside; substitution never captures the bound symbol.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from .binding import Binding


class Average(Binding):
    """A linear functional of a function of one bound variable; ``args[2:]`` are its parameters."""

    # SymPy would integrate, unasked, to learn a sign.
    is_number = False

    @classmethod
    def _build(cls, function: sp.Expr, variable: sp.Symbol, *parameters: sp.Expr) -> sp.Expr:
        """Return the node with constant factors pulled out; a constant is its own average."""
        if variable not in function.free_symbols:
            return function
        outer, inner = function.as_independent(variable, as_Add=False)
        if outer != 1:
            return outer * cls._build(inner, variable, *parameters)
        return sp.Expr.__new__(cls, function, variable, *parameters)

    @property
    def variable(self) -> sp.Symbol:
        """The bound variable."""
        return self.args[1]

    def _eval_is_extended_real(self) -> bool | None:
        return True if self.args[0].is_extended_real else None

    def _eval_is_extended_nonnegative(self) -> bool | None:
        return True if self.args[0].is_extended_nonnegative else None

    def _mathml_presentation(self, printer: Any) -> Any:
        row = printer.dom.createElement("mrow")
        head = printer.dom.createElement("msub")
        head.appendChild(mathml_leaf(printer, "mi", "𝔼"))
        head.appendChild(self._mathml_law(printer))
        row.appendChild(head)
        row.appendChild(mathml_leaf(printer, "mo", "["))
        row.appendChild(printer._print(self.args[0]))
        row.appendChild(mathml_leaf(printer, "mo", "]"))
        return row

    def _mathml_law(self, printer: Any) -> Any:
        """Print what stands below the 𝔼: the variable."""
        return printer._print(self.variable)


def mathml_leaf(printer: Any, tag: str, text: str) -> Any:
    """Return a MathML element that holds a text."""
    leaf = printer.dom.createElement(tag)
    leaf.appendChild(printer.dom.createTextNode(text))
    return leaf
