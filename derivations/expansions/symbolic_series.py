"""Coefficients of a series as formulas, and the equations that determine what they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sympy as sp
from sympy.core.function import AppliedUndef

from ..formulas import latex

# Longer lines of an equation are broken.
_LINE = 160


@dataclass(frozen=True)
class SymbolicSeries:
    """The symbolic side of an expansion.

    Attributes
    ----------
    formulas : mapping from str to tuple of Expr
        The coefficients of an output, aligned with the exponents of the expansion from the left;
        perhaps fewer.
    definitions : mapping from Expr to Expr
        What formulas and equations name: symbols, and functions under averages.
    equations : tuple of tuple of Eq
        For each order, the equations of the coefficients of the unknowns at that order.
    unknowns : tuple of tuple of Symbol
        For each order, these coefficients.
    scalings : mapping from Symbol to Expr
        Unknowns in terms of the series of their coefficients, for print.
    """

    formulas: Mapping[str, tuple[sp.Expr, ...]]
    definitions: Mapping[sp.Expr, sp.Expr] = field(default_factory=dict)
    equations: tuple[tuple[sp.Eq, ...], ...] = ()
    unknowns: tuple[tuple[sp.Symbol, ...], ...] = ()
    scalings: Mapping[sp.Expr, sp.Expr] = field(default_factory=dict)

    def explicit(self, expr: sp.Expr) -> sp.Expr:
        """Return an expression without what the definitions name."""
        while named(expr) & self.definitions.keys():
            expr = expr.xreplace(dict(self.definitions))
        return expr

    def linear_system(self, order: int) -> tuple[sp.Matrix, sp.Matrix, sp.Matrix]:
        """Return J, X and b of the equations J X = b of an order from 1."""
        unknowns = self.unknowns[order]
        zero = dict.fromkeys(unknowns, sp.S.Zero)
        residuals = [self.explicit(e.lhs - e.rhs) for e in self.equations[order]]
        matrix = sp.Matrix([[r.diff(x) for x in unknowns] for r in residuals])
        return matrix, sp.Matrix(unknowns), sp.Matrix([-r.xreplace(zero) for r in residuals])


def named(expr: sp.Expr) -> set[sp.Expr]:
    """Return the symbols and functions in an expression."""
    return expr.free_symbols | expr.atoms(AppliedUndef)


def used_definitions(
    definitions: Mapping[sp.Expr, sp.Expr], expressions: Sequence[sp.Expr]
) -> dict[sp.Expr, sp.Expr]:
    """Return the definitions that expressions need, also for what these name."""
    wanted = {x for e in expressions for x in named(e)} & definitions.keys()
    while more := {x for w in wanted for x in named(definitions[w]) & definitions.keys()} - wanted:
        wanted |= more
    return {x: value for x, value in definitions.items() if x in wanted}


def equations_latex(series: SymbolicSeries, orders: Sequence[int]) -> str:
    """Return equations as an aligned environment, with what they name below."""
    lines = [rf"{latex(x)} &= {latex(value)}" for x, value in series.scalings.items()]
    for k in orders:
        lines.append(rf"&\text{{order {k}:}}")
        lines += [rf"{latex(e.lhs)} &= {_broken(e.rhs)}" for e in series.equations[k]]
    sides = [side for k in orders for e in series.equations[k] for side in e.args]
    definitions = used_definitions(series.definitions, sides)
    if definitions:
        lines.append(r"&\text{where}")
        lines += [rf"{latex(x)} &= {_broken(value)}" for x, value in definitions.items()]
    body = " \\\\\n".join(lines)
    return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"


def _broken(expr: sp.Expr) -> str:
    """Return LaTeX with long sums on several lines."""
    whole = latex(expr)
    if len(whole) <= _LINE or not expr.is_Add:
        return whole
    lines = [""]
    for term in expr.as_ordered_terms():
        text = latex(term)
        sign = "" if text.startswith("-") or lines == [""] else "+ "
        if lines[-1] and len(lines[-1]) + len(text) > _LINE:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{sign}{text}"
    return " \\\\\n&\\quad ".join(lines)
