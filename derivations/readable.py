"""Formulas that were derived and kept as text, for a terminal: ``mu_0(kappa)`` becomes μ₀(κ).

Works on text alone, so that a run that finds everything in its cache needs no SymPy.
"""

from __future__ import annotations

import re

_LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "kappa": "κ", "lambda": "λ", "mu": "μ", "rho": "ρ",
    "vartheta": "ϑ", "theta": "θ", "psi": "ψ", "chi": "χ", "Delta": "Δ", "pi": "π",
}  # fmt: skip
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_HAT = "\N{COMBINING CIRCUMFLEX ACCENT}"
_WORD = re.compile(
    r"\b(?P<name>(?:alpha|beta|gamma|kappa|lambda|mu|rho|vartheta|theta|psi|chi|Delta|pi|[VTqm]))"
    r"(?P<hat>hat)?(?:_(?P<sub>\d+))?(?:\^(?P<sup>\d+))?(?![A-Za-z0-9_])"
)


def readable(text: str) -> str:
    """Return a formula or a list of unknowns in Unicode.

    Examples
    --------
    >>> readable("E_z[1 - tanh(sqrt(c)*z + kappa*r)**2]")
    '𝔼_z[1 - tanh(√c z + κ r)²]'
    >>> readable("{V_1, V_2}, then Vhat_2, varthetahat")
    '{V₁, V₂}, then V̂₂, ϑ̂'
    """
    text = re.sub(r"\bE_(\w+)\[", r"𝔼_\1[", text)
    text = re.sub(r"\bsqrt\((\w+)\)", r"√\1", text)
    text = _WORD.sub(_letter, text)
    text = re.sub(r"\*\*(\d+)\b", lambda m: m[1].translate(_SUPERSCRIPTS), text)
    text = text.replace("**", "^")
    # Juxtaposition reads as a product where both sides are names or numbers.
    return text.replace("*", " ")


def _letter(match: re.Match[str]) -> str:
    name = _LETTERS.get(match["name"], match["name"])
    return (
        name
        + (_HAT if match["hat"] else "")
        + (match["sub"] or "").translate(_SUBSCRIPTS)
        + (match["sup"] or "").translate(_SUPERSCRIPTS)
    )
