"""Expressions that bind symbols: substitution neither reaches a bound symbol nor captures one.

Such a node has the arguments ``(body, bound, *outside)``: `bound` is a symbol or a tuple of them
that has its meaning inside `body` only; what stands `outside` knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import sympy as sp


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
        return found.union(*(x.free_symbols for x in self.args[2:]))

    @property
    def is_number(self) -> bool:
        """Whether no symbol is free."""
        return not self.free_symbols

    def _eval_subs(self, old: sp.Expr, new: sp.Expr) -> sp.Expr:
        return self._replaced({old: new}, lambda x, rule: x.subs(*next(iter(rule.items()))))

    def _xreplace(self, rule: Mapping[sp.Basic, sp.Basic]) -> tuple[sp.Basic, bool]:
        if not isinstance(rule, Mapping):
            # SymPy's own transformations, as of floats to rationals, know no symbols.
            return super()._xreplace(rule)
        if self in rule:
            return rule[self], True
        found = self._replaced(rule, lambda x, kept: x.xreplace(kept))
        return found, found != self

    def _replaced(self, rule: Mapping[sp.Basic, sp.Basic], replace: Callable[..., Any]) -> sp.Expr:
        bound = set(self.bound_symbols)
        kept = {o: n for o, n in rule.items() if not bound & o.free_symbols}
        node = self
        body = self.args[0]
        if any(bound & n.free_symbols and body.has(o) for o, n in kept.items()):
            node = self._with_fresh_symbols()
        body = replace(node.args[0], kept) if kept else node.args[0]
        # A rule for a bound symbol means the free symbol of that name, which may stand outside.
        outside = [replace(x, rule) for x in self.args[2:]]
        if body == node.args[0] and tuple(outside) == self.args[2:]:
            return self
        return self.func(body, node.args[1], *outside)

    def _with_fresh_symbols(self) -> Self:
        fresh = {x: sp.Dummy(x.name, **x.assumptions0) for x in self.bound_symbols}
        body, bound = (x.xreplace(fresh) for x in self.args[:2])
        found: Self = sp.Expr.__new__(type(self), body, bound, *self.args[2:])
        return found
