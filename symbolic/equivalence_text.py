"""Conditional equivalences in print: lines of text, LaTeX, HTML and plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy as sp

from .. import pages
from .expression_text import expression_text

if TYPE_CHECKING:
    from .equivalence import ConditionalCoefficient, ConditionalEquivalence

_ROWS = (
    ("mean", "mean mu_i", r"\mu_i", r"\mathbb{E}\,\sigma(c + \rho z)"),
    ("slope", "slope beta_i", r"\beta_i", r"\mathbb{E}\,\sigma'(c + \rho z)"),
    (
        "residual_variance",
        "residual variance Psi_ii",
        r"\Psi_{ii}",
        r"\mathbb{E}\,\sigma(c + \rho z)^2 - \mu_i^2 - \rho^2\beta_i^2",
    ),
)
_FEATURES = (
    r"\sigma(Wx) \simeq \mu(x_v) + \operatorname{diag}(\beta(x_v))\, W^\perp x^\perp"
    r" + \Psi(x_v)^{1/2}\, \xi"
)
_OFF_DIAGONAL = r"\Psi_{ij} = \tfrac{1}{2}\, b_{i,2}\, b_{j,2}\, c_{ij}^2 + O(d^{-3/2})"
_LONGEST = 400


def as_text(found: ConditionalEquivalence) -> str:
    """Return the coefficients as lines."""
    lines = [
        f"conditional Gaussian equivalence of sigma = {found.student} "
        f"({found.standing.value}: {found.source})",
        "sigma(W x) ~ mu(x_v) + diag(beta(x_v)) W_perp x_perp + Psi(x_v)^(1/2) xi",
        f"centre c = m_i x_v = {found.centre}, spread rho = |w_i_perp| = {found.spread}",
    ]
    lines += [f"  {title} = {_shown(getattr(found, name))}" for name, title, _, _ in _ROWS]
    lines.append(
        f"  off the diagonal b_i b_j c_ij^2/2 + O(d^(-3/2)), b_2 = {_shown(found.coefficient(2))}"
    )
    return "\n".join(lines)


def as_latex(found: ConditionalEquivalence) -> str:
    """Return the equations, aligned."""
    rows = [_FEATURES.replace(r"\simeq", r"&\simeq")]
    for name, _, symbol, meaning in _ROWS:
        rows.append(rf"{symbol} &= {meaning} = {_latex(getattr(found, name))}")
    rows.append(_OFF_DIAGONAL.replace(" = ", " &= ", 1))
    rows.append(rf"b_2 &= {_latex(found.coefficient(2))}")
    joined = r" \\ ".join(rows)
    return (
        rf"\begin{{aligned}} {joined} \end{{aligned}}"
        rf"\qquad c = {sp.latex(found.centre)},\ \rho = {sp.latex(found.spread)}"
    )


def as_html(found: ConditionalEquivalence) -> str:
    """Return a table of the coefficients, each with what it rests on."""
    coefficients = [(symbol, getattr(found, name)) for name, _, symbol, _ in _ROWS]
    rows = [
        (f"${symbol}$", rf"$\displaystyle {_latex(one)}$", _kind(one))
        for symbol, one in (*coefficients, ("b_2", found.coefficient(2)))
    ]
    title = (
        f"Conditional Gaussian equivalence of {found.student.name} ({found.standing.value}; "
        rf"{found.source}): $\displaystyle {_FEATURES}$"
    )
    return pages.as_html([title, pages.Table(rows)])


def as_dict(found: ConditionalEquivalence) -> dict[str, Any]:
    """Return plain values: texts of definitions and closed forms."""
    coefficients = {name: getattr(found, name) for name, *_ in _ROWS}
    coefficients |= {"second_moment": found.second_moment, "b_2": found.coefficient(2)}
    return {
        "student": found.student.name,
        "centre": expression_text(found.centre),
        "spread": expression_text(found.spread),
        "standing": found.standing.value,
        "source": found.source,
        "coefficients": {
            name: {
                "definition": str(coefficient.definition),
                "closed_form": None
                if coefficient.closed_form is None
                else expression_text(coefficient.closed_form),
            }
            for name, coefficient in coefficients.items()
        },
    }


def _kind(coefficient: ConditionalCoefficient) -> str:
    return "integral" if coefficient.closed_form is None else "closed form"


def _shown(coefficient: ConditionalCoefficient) -> str:
    text = str(coefficient.expr)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _latex(coefficient: ConditionalCoefficient) -> str:
    text: str = sp.latex(coefficient.expr)
    return text
