"""Averages over a bound random variable: what the Gaussian and the Marchenko–Pastur node share.

Such a node holds a function, the bound variable and the parameters of its law. Factors that do
not depend on the variable stand outside; substitution never captures the bound symbol.

Expressions that bind symbols: substitution neither reaches a bound symbol nor captures one.

Such a node has the arguments ``(body, bound, *outside)``: `bound` is a symbol or a tuple of them
that has its meaning inside `body` only; what stands `outside` knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import sympy as sp
from sympy.core.function import AppliedUndef


class Binding(sp.Expr):
    """A node with bound symbols, as SymPy's Integral is one."""

    is_commutative = True

    @property
    def bound_symbols(self) -> list[sp.Symbol]:
        """The bound symbols."""
        bound = self.args[1]
        return list(bound) if isinstance(bound, sp.Tuple) else [bound]

    @property
    def free_symbols(self) -> set[sp.Symbol]:
        """Symbols of the body that are not bound in it, and those outside."""
        found: set[sp.Symbol] = self.args[0].free_symbols - set(self.bound_symbols)
        return found.union(*(x.free_symbols for x in self._outside))

    @property
    def is_number(self) -> bool:
        """Whether no symbol is free."""
        return not self.free_symbols

    @property
    def _outside(self) -> Sequence[sp.Basic]:
        return self.args[2:]

    @property
    def _shielded(self) -> Sequence[sp.Basic]:
        """Where symbols of the names of bound ones must not come from elsewhere."""
        return self.args[:1]

    def _rebuilt(self, body: sp.Expr, outside: Sequence[sp.Basic]) -> sp.Expr:
        return self.func(body, self.args[1], *outside)

    def _eval_subs(self, old: sp.Expr, new: sp.Expr) -> sp.Expr:
        if self._is_captured(old, new):
            return self._with_fresh_symbols().subs(old, new)
        body = self.args[0]
        # The bound symbol is another one than that in `old`; but a function that only has a name,
        # such as mu_0(kappa), is replaced by its meaning (as in SymPy's Integral).
        if isinstance(old, AppliedUndef) or not old.free_symbols & set(self.bound_symbols):
            body = body.subs(old, new)
        outside = [x.subs(old, new) for x in self._outside]
        if body == self.args[0] and outside == list(self._outside):
            return self
        return self._rebuilt(body, outside)

    def _xreplace(self, rule: Mapping[sp.Basic, sp.Basic]) -> tuple[sp.Basic, bool]:
        if not isinstance(rule, Mapping):
            # SymPy's own transformations, as of floats to rationals, know no symbols.
            return super()._xreplace(rule)
        if self in rule:
            return rule[self], True
        # A rule for a bound symbol means the free symbol of that name, which may stand outside.
        inside = rule
        if any(x in rule for x in self.bound_symbols):
            inside = {old: new for old, new in rule.items() if old not in self.bound_symbols}
        body, changed = self.args[0]._xreplace(inside)
        outside = [x._xreplace(rule) for x in self._outside]
        if not changed and not any(moved for _, moved in outside):
            return self, False
        if any(self._is_captured(old, new) for old, new in inside.items()):
            return self._with_fresh_symbols()._xreplace(rule)[0], True
        return self._rebuilt(body, [x for x, _ in outside]), True

    def _is_captured(self, old: sp.Basic, new: sp.Basic) -> bool:
        bound = set(self.bound_symbols)
        return (
            bool(bound & new.free_symbols)
            and not bound & old.free_symbols
            and any(x.has(old) for x in self._shielded)
        )

    def _with_fresh_symbols(self) -> Self:
        fresh = {x: sp.Dummy(x.name, **x.assumptions0) for x in self.bound_symbols}
        body, bound = (x.xreplace(fresh) for x in self.args[:2])
        found: Self = sp.Expr.__new__(type(self), body, bound, *self.args[2:])
        return found


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
