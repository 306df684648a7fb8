"""Averages over a bound random variable: what the Gaussian and the Marchenko–Pastur node share.

Such a node holds a function, the bound variable and the parameters of its law. Factors that do
not depend on the variable stand outside; substitution never captures the bound symbol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef


class Average(sp.Expr):
    """A linear functional of a function of one bound variable; ``args[2:]`` are its parameters."""

    is_commutative = True

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

    @property
    def bound_symbols(self) -> list[sp.Symbol]:
        """The bound variable in a list, as SymPy's Integral gives it."""
        return [self.variable]

    @property
    def free_symbols(self) -> set[sp.Symbol]:
        """Symbols of the function and of the parameters, except the bound variable."""
        found: set[sp.Symbol] = self.args[0].free_symbols - {self.variable}
        return found.union(*(p.free_symbols for p in self.args[2:]))

    def _eval_is_extended_real(self) -> bool | None:
        return True if self.args[0].is_extended_real else None

    def _eval_is_extended_nonnegative(self) -> bool | None:
        return True if self.args[0].is_extended_nonnegative else None

    def _eval_subs(self, old: sp.Expr, new: sp.Expr) -> sp.Expr | None:
        function, variable = self.args[0], self.variable
        parameters = [p.subs(old, new) for p in self.args[2:]]
        if variable in old.free_symbols:
            # The bound symbol is another one than that in `old`; but a function that only has a
            # name, such as mu_0(kappa), is replaced by its meaning (as in SymPy's Integral).
            if not isinstance(old, AppliedUndef):
                return self.func(function, variable, *parameters)
        elif variable in new.free_symbols and function.has(old):
            return self._with_fresh_variable().subs(old, new)
        return self.func(function.subs(old, new), variable, *parameters)

    def _xreplace(self, rule: Mapping[sp.Basic, sp.Basic]) -> tuple[sp.Basic, bool]:
        if not isinstance(rule, Mapping):
            # SymPy's own transformations, as of floats to rationals, know no symbols.
            return super()._xreplace(rule)
        if self in rule:
            return rule[self], True
        variable = self.variable
        if variable in rule:
            # It is bound here: a rule for the free symbol of that name does not concern it.
            rule = {old: new for old, new in rule.items() if old != variable}
        pieces = [x._xreplace(rule) for x in (self.args[0], *self.args[2:])]
        if not any(changed for _, changed in pieces):
            return self, False
        captured = [old for old, new in rule.items() if variable in new.free_symbols]
        if any(not old.has(variable) and self.args[0].has(old) for old in captured):
            return self._with_fresh_variable()._xreplace(rule)[0], True
        function, *parameters = (piece for piece, _ in pieces)
        return self.func(function, variable, *parameters), True

    def _with_fresh_variable(self) -> Average:
        fresh = sp.Dummy(self.variable.name, **self.variable.assumptions0)
        function = self.args[0].xreplace({self.variable: fresh})
        found: Average = sp.Expr.__new__(type(self), function, fresh, *self.args[2:])
        return found

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
