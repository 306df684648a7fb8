"""Gradient expansions in print: lines of text and LaTeX, each term with its order in d."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from .gradient_terms import Direction, GradientTerm

if TYPE_CHECKING:
    from .stein import GradientExpansion

_MOST_MONOMIALS = 30
"""Contractions of more monomials are printed by their name alone, if not asked for in full."""


def as_text(expansion: GradientExpansion) -> str:
    """Return the expansion as lines: the terms with their orders, the leading one, the noise."""
    lines = [
        f"{expansion.student} neuron on f = {expansion.target}, |w| = {expansion.norm}"
        + (f", Hermite degrees {_numbers(expansion)} removed" if expansion.removed else ""),
        "G(w) = E[f(x) sigma'(w.x) x], orders in d for w uniform on the sphere",
    ]
    for direction in Direction:
        terms = [term for term in expansion.terms if term.direction is direction]
        lines.append(f"{direction.value}:" if terms else f"{direction.value}: nothing")
        lines += [f"  {_power(term.order):<9}{term.name} = {_value(term)}" for term in terms]
    leading = expansion.leading
    lines.append(
        "leading inside the relevant space: "
        + ("nothing in these terms" if leading is None else describe(leading))
    )
    rest = expansion.remainder_order
    lines.append(
        "exact: all other terms vanish" if rest is None else f"left out: O({_power(rest)})"
    )
    return "\n".join(lines)


def describe(term: GradientTerm) -> str:
    """Return what a leading term is, such as ``sqrt(2)/(2*sqrt(pi)) * H w``, and its order."""
    order = f"order {_power(term.order)}"
    factor = _factor(term.student / sp.factorial(term.k))
    if term.k == 0:
        return f"{factor} * C_1, C_1 = E[grad f], {order}"
    if term.k == 1:
        return f"{factor} * H w, H = C_2 = E[hessian f], {order}"
    return f"{factor} * C_{term.k + 1}[w^{term.k}, .], {order}"


def as_latex(expansion: GradientExpansion, *, full: bool = False) -> str:
    """Return the expansion as one sum in LaTeX, terms in the order of their size.

    Contractions of many monomials are written as tensors unless `full`.
    """
    parts = [
        rf"\underbrace{{{term_latex(term, full=full)}}}_{{{_latex_power(term.order)}}}"
        for term in expansion.terms
    ]
    rest = expansion.remainder_order
    if rest is not None:
        parts.append(rf"O\left({_latex_power(rest)}\right)")
    return "G(w) = " + (" + ".join(parts) if parts else "0")


def term_latex(term: GradientTerm, *, full: bool = False) -> str:
    """Return one term in LaTeX, without delimiters."""
    contraction = _bracketed(term.contraction) if full or _is_short(term) else _tensor(term)
    along = r"\, w" if term.direction is Direction.ALONG else ""
    return rf"{_bracketed(term.student)}\, {contraction}{along}"


def _is_short(term: GradientTerm) -> bool:
    contraction = term.contraction
    entries = list(contraction) if isinstance(contraction, sp.MatrixBase) else [contraction]
    return sum(len(sp.Add.make_args(entry)) for entry in entries) <= _MOST_MONOMIALS


def _tensor(term: GradientTerm) -> str:
    """Write the contraction as one of a tensor: C_3[w^2, .]/2!."""
    inside = term.direction is Direction.INSIDE
    slots = ([] if term.k == 0 else ["w"] if term.k == 1 else [f"w^{{{term.k}}}"]) + (
        [r"\cdot"] if inside and term.k else []
    )
    factorial = rf"\frac{{1}}{{{term.k}!}}\, " if term.k > 1 else ""
    order = f"C_{{{term.k + inside}}}"
    return factorial + order + (rf"\left[{', '.join(slots)}\right]" if slots else "")


def _bracketed(expr: sp.Expr) -> str:
    text: str = sp.latex(expr)
    return rf"\left({text}\right)" if getattr(expr, "is_Add", False) else text


def _numbers(expansion: GradientExpansion) -> str:
    return ", ".join(map(str, expansion.removed))


def _value(term: GradientTerm) -> str:
    contraction = term.contraction
    inside = isinstance(contraction, sp.MatrixBase)
    if not _is_short(term):
        entries = "..."
    else:
        entries = ", ".join(map(str, contraction)) if inside else str(contraction)
    return f"{_factor(term.student)} * ({entries})" + ("" if inside else " w")


def _factor(expr: sp.Expr) -> str:
    return f"({expr})" if expr.is_Add else str(expr)


def _power(exponent: sp.Rational) -> str:
    if exponent == 0:
        return "1"
    return f"d^{exponent}" if exponent.is_Integer else f"d^({exponent})"


def _latex_power(exponent: sp.Rational) -> str:
    return "1" if exponent == 0 else f"d^{{{sp.latex(exponent, fold_short_frac=True)}}}"
