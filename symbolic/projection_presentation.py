"""Projections in print: lines of text, LaTeX, a table in HTML, plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy as sp

from .. import pages
from .expression_text import expression_text
from .hermite_expansion_text import expansion_latex, expansion_text

if TYPE_CHECKING:
    from .projections import Projection

_LONGEST = 600
"""Characters of a function in lines that are to be read."""

NOT_WRITTEN = "(no short form)"
"""For a function whose norms have no closed form in reach; on request it is an expression."""


def as_text(projection: Projection) -> str:
    """Return the projection as lines: both parts, and the norms by degree."""
    degree = projection.degree
    lines = [
        f"f = {projection.target} on U = {projection.onto}, degree at most {degree} outside U",
        *_function_lines(f"fitted    P_U,<={degree} f", projection, fitted=True),
        *_function_lines(f"residual  P_U,>{degree} f", projection, fitted=False),
        f"residual norm squared: {number_text(projection.residual_norm)}"
        f" of E f^2 = {number_text(projection.norm_squared)}"
        + (", that is E Var(f | x_U)" if degree == 0 else ""),
        "norms squared by degree outside U: "
        + "; ".join(f"n_{j} = {number_text(n)}" for j, n in enumerate(projection.norms)),
        projection.basis,
    ]
    return "\n".join(lines)


def as_latex(projection: Projection, *, full: bool = False) -> str:
    """Return the fitted function and the residual norm as aligned equations."""
    space, degree = projection.onto.latex(), projection.degree
    at_most, beyond = rf"P_{{U,\le {degree}}} f", rf"P_{{U,> {degree}}} f"
    lines = [
        rf"U &= {space}",
        rf"{at_most} &= {_function_latex(projection, fitted=True, full=full)}",
        rf"{beyond} &= {_function_latex(projection, fitted=False, full=full)}",
        rf"\|{beyond}\|^2 &= {sp.latex(projection.residual_norm)}",
    ]
    return r"\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}"


def as_html(projection: Projection) -> str:
    """Return a table in HTML."""
    degree = projection.degree
    rows = [
        ("target", str(projection.target)),
        ("subspace U", str(projection.onto)),
        (f"fitted, degree ≤ {degree} outside U", function_text(projection)),
        ("residual", function_text(projection, fitted=False)),
        (f"‖P_U,>{degree} f‖²", number_text(projection.residual_norm)),
        ("E f²", number_text(projection.norm_squared)),
        ("norms by degree outside U", ", ".join(map(number_text, projection.norms))),
        ("basis", projection.basis),
    ]
    return pages.as_html([pages.Table(rows)])


def as_dict(projection: Projection) -> dict[str, Any]:
    """Return plain data for JSON."""
    bounds = projection.bounds
    return {
        "target": str(projection.target),
        "onto": projection.onto.to_dict(),
        "degree": projection.degree,
        "fitted": None if bounds else expression_text(projection.fitted),
        "residual": None if bounds else expression_text(projection.residual),
        "residual_norm": expression_text(projection.residual_norm),
        "conditional_variance": expression_text(projection.conditional_variance),
        "norm_squared": expression_text(projection.norm_squared),
        "norms": [expression_text(n) for n in projection.norms],
        "basis": projection.basis,
        "uncertainty": None if bounds is None else float(bounds.uncertainty),
    }


def function_text(projection: Projection, *, fitted: bool = True) -> str:
    """Return the fitted function or the rest, by Hermite polynomials if it is a polynomial."""
    expansion = projection.fitted_expansion if fitted else projection.residual_expansion
    if expansion is not None:
        return expansion_text(expansion.symbol_element)
    if projection.bounds is not None:
        return NOT_WRITTEN
    return _cut(expression_text(projection.fitted if fitted else projection.residual))


def number_text(value: sp.Expr) -> str:
    """Return an exact number, with digits if it is not rational and has some; or digits alone.

    Examples
    --------
    >>> number_text(sp.Rational(1, 2) - 1 / sp.pi)
    '1/2 - 1/pi = 0.18169'
    """
    if value.is_Float:
        return str(value.evalf(5))
    text = _cut(expression_text(value))
    if value.is_Rational:
        return text
    digits = digits_of(value)
    return text if digits is None else f"{text} = {digits}"


def digits_of(value: sp.Expr) -> str | None:
    """Return five digits, or None where no quadrature gives them."""
    from ..errors import GiantstepError

    try:
        return str(value.evalf(5))
    except (GiantstepError, ArithmeticError):
        return None


def _function_lines(name: str, projection: Projection, *, fitted: bool) -> list[str]:
    """Return one line, and a second one for what is the same in powers of x."""
    written = function_text(projection, fitted=fitted)
    lines = [f"{name} = {written}"]
    if projection.fitted_expansion is not None and "He(" in written:
        function = projection.fitted if fitted else projection.residual
        lines.append(f"{' ' * len(name)} = {_cut(expression_text(function))}")
    return lines


def _function_latex(projection: Projection, *, fitted: bool, full: bool) -> str:
    expansion = projection.fitted_expansion if fitted else projection.residual_expansion
    if expansion is not None:
        return expansion_latex(expansion.symbol_element, full=full)
    if projection.bounds is not None:
        return r"\dots"
    text: str = sp.latex(projection.fitted if fitted else projection.residual)
    return text if full or len(text) <= 2 * _LONGEST else r"\dots"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
