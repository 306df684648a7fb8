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


# ---------------------------------------------------------------------- LaTeX

_COMMANDS = {
    **{name: letter for name, letter in _LETTERS.items()},
    "delta": "δ", "eta": "η", "theta": "θ", "Theta": "Θ", "nu": "ν", "xi": "ξ", "sigma": "σ",
    "Sigma": "Σ", "tau": "τ", "zeta": "ζ", "omega": "ω", "Phi": "Φ", "Psi": "Ψ", "Lambda": "Λ",
    "epsilon": "ϵ", "varepsilon": "ε", "varphi": "φ", "nabla": "∇", "partial": "∂",
    "ell": "\N{SCRIPT SMALL L}",
    "infty": "∞", "to": "→", "leftarrow": "←", "mapsto": "↦", "cdot": "·", "times": "×", "pm": "±",
    "sum": "Σ", "ge": "≥", "le": "≤", "ne": "≠", "asymp": "≍", "simeq": "≃", "sim": "∼",
    "propto": "∝", "gtrsim": "≳", "lesssim": "≲", "equiv": "≡", "in": "∈", "supseteq": "⊇",
    "oplus": "⊕", "circ": "∘", "perp": "⊥", "top": "ᵀ", "langle": "⟨", "rangle": "⟩", "mid": "|",
    "dots": "…", "ldots": "…", "quad": " ", "qquad": " ", ",": " ", "!": "", ";": " ", "|": "‖",
    "{": "{", "}": "}", "%": "%", "_": "_", "not": "¬", "left": "", "right": "", "Big": "",
    "displaystyle": "",
}  # fmt: skip
_BLACKBOARD = str.maketrans(
    {"E": "𝔼", "R": "\N{DOUBLE-STRUCK CAPITAL R}", "P": "\N{DOUBLE-STRUCK CAPITAL P}"}
)
_RAISED = str.maketrans("0123456789+-()nk", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿᵏ")
_LOWERED = str.maketrans("0123456789+-()", "₀₁₂₃₄₅₆₇₈₉₊₋₍₎")
_TOKEN = re.compile(r"\\([A-Za-z]+|.)|(.)", re.DOTALL)
_ACCENTS = {"hat": _HAT, "tilde": "\N{COMBINING TILDE}", "bar": "\N{COMBINING MACRON}"}
_SIMPLE = re.compile(r"-?[\w.*'̂]*[⁰-⁹¹²³]*|\([^()]*\)[⁰-⁹¹²³]*")


def readable_latex(text: str) -> str:
    r"""Return a text with formulas between dollar signs in Unicode, for a terminal.

    Examples
    --------
    >>> readable_latex(r"With $\nu^{2} = \frac{Y}{\alpha_{0} + 1}$ and $\hat{q}_1 \to \infty$.")
    'With ν² = Y/(α₀ + 1) and q̂₁ → ∞.'
    """
    parts = re.split(r"\$\$?", text)
    return "".join(_formula(part) if i % 2 else part for i, part in enumerate(parts))


def _formula(latex: str) -> str:
    text, rest = _read(latex, "")
    return re.sub(r"\s+", " ", text + rest).strip()


def _read(text: str, end: str) -> tuple[str, str]:
    """Return what stands before a closing brace, and what follows it."""
    result = ""
    while text:
        match = _TOKEN.match(text)
        assert match is not None
        text = text[match.end() :]
        command, sign = match.groups()
        if sign == end:
            return result, text
        if command is not None:
            piece, text = _command(command, text)
        elif sign == "{":
            piece, text = _read(text, "}")
        elif sign in "^_":
            script, text = _argument(text)
            piece = _script(script, raised=sign == "^")
        else:
            piece = sign
        result += piece
    return result, ""


def _argument(text: str) -> tuple[str, str]:
    """Return the argument that follows a command, as text, and the rest."""
    text = text.lstrip()
    if text.startswith("{"):
        return _read(text[1:], "}")
    match = _TOKEN.match(text)
    if match is None:
        return "", ""
    rest = text[match.end() :]
    return (match[2], rest) if match[1] is None else _command(match[1], rest)


def _command(name: str, text: str) -> tuple[str, str]:
    if name in ("frac", "tfrac", "dfrac"):
        above, text = _argument(text)
        below, text = _argument(text)
        return f"{_fenced(above)}/{_fenced(below)}", text
    if name == "sqrt":
        inside, text = _argument(text)
        return f"√{_fenced(inside)}", text
    if name in _ACCENTS:
        letter, text = _argument(text)
        return letter + _ACCENTS[name], text
    if name == "mathbb":
        letter, text = _argument(text)
        return letter.translate(_BLACKBOARD), text
    if name in ("mathrm", "text", "operatorname", "mathcal", "mathbf", "mathtt"):
        return _argument(text)
    return _COMMANDS.get(name, name), text


def _fenced(text: str) -> str:
    text = text.strip()
    return text if _SIMPLE.fullmatch(text) else f"({text})"


def _script(text: str, *, raised: bool) -> str:
    text = text.strip()
    shown = text.translate(_RAISED if raised else _LOWERED)
    if text in ("*", "'", "ᵀ"):
        return text
    if all(a != b for a, b in zip(text, shown, strict=True)):
        return shown
    return ("^" if raised else "_") + (text if text.isalpha() else f"({text})")
