"""LaTeX as MathML, which browsers show without scripts or downloads: in reports and on pages.

The conversion is that of docutils, mended where SymPy's printer and our texts need it.
"""

from __future__ import annotations

import html
import re
from xml.etree import ElementTree

from ..errors import MissingDependencyError

try:
    from docutils.utils.math import MathError
    from docutils.utils.math.latex2mathml import tex2mathml
except ImportError:
    raise MissingDependencyError(
        'reports need docutils, which is not installed; use pip install "giantstep[plot]"'
    ) from None

_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_ACCENTS = frozenset("^~\u02c6\u02c7\u02c9\u02d9\u02dc\u00a8\u00af\u2192")
_BRACES = frozenset("\u23de\u23df")
FORMULA = re.compile(r"\$\$(?P<block>[^$]+)\$\$|\$(?P<inline>[^$]+)\$")
# Entities of HTML that XML does not have.
_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos);)[a-zA-Z]+;")
# Commands of SymPy's printer and of our pages that docutils writes differently or not at all.
_REWRITINGS = (
    (re.compile(r"\\begin\{(align|equation|gather|eqnarray|multline)\*?\}"), r"\\begin{aligned}"),
    (re.compile(r"\\end\{(align|equation|gather|eqnarray|multline)\*?\}"), r"\\end{aligned}"),
    (re.compile(r"\\(?:dots[bcmio]?|ldots)(?![a-zA-Z])"), r"\\ldots"),
    (re.compile(r"\\(?:displaystyle|limits|nolimits)(?![a-zA-Z])"), ""),
    (re.compile(r"\\(?:lvert|rvert)(?![a-zA-Z])"), "|"),
    (re.compile(r"\\tfrac(?![a-zA-Z])"), r"\\frac"),
    (re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])"), ""),
    (re.compile(r"\\begin\{array\}\{[lcr|]*\}"), r"\\begin{matrix}"),
    (re.compile(r"\\end\{array\}"), r"\\end{matrix}"),
    (re.compile(r"\\hline(?![a-zA-Z])"), ""),
    # Names of functions stand apart from a factor before them.
    (
        re.compile(
            r"(?<=[0-9})])\s*(?=\\(?:operatorname|a?(?:sin|cos|tan)h?|arc(?:sin|cos|tan)|exp|log|ln)"
            r"(?![a-zA-Z]))"
        ),
        r"\\,",
    ),
)


def mathml(latex: str, *, block: bool) -> str:
    """Return the MathML of a formula; raise MathError naming what is not known."""
    text = latex.strip()
    for pattern, replacement in _REWRITINGS:
        text = pattern.sub(replacement, text)
    if block and r"\\" in text and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    written = tex2mathml(text, as_block=block)
    # Bars are parentheses here; as operators they would stand apart.
    written = re.sub(
        r'(<mo stretchy="false")>(\||‖)</mo>', r'\1 lspace="0" rspace="0">\2</mo>', written
    )
    # One that carries an exponent would grow with it.
    written = re.sub(r"(<msu(?:b|p|bsup)>\s*)<mo>‖</mo>", r'\1<mo stretchy="false">‖</mo>', written)
    return _with_accents(written)


def _with_accents(text: str) -> str:
    """Put indices beside letters with an accent, and labels below braces.

    docutils writes ``<munderover>letter index accent</munderover>`` for the former, and
    ``<msub><munder>formula brace</munder>label</msub>`` for the latter.
    """
    if "<munder" not in text:
        return text
    ElementTree.register_namespace("", _NAMESPACE)
    root = ElementTree.fromstring(_ENTITY.sub(lambda match: html.unescape(match.group()), text))
    for element in list(root.iter()):
        children = list(element)
        if element.tag == _name("munderover") and _is_accent(children[2]):
            letter, index, accent = children
            for child in children:
                element.remove(child)
            element.tag = _name("msub")
            accented = ElementTree.SubElement(element, _name("mover"), {"accent": "true"})
            accented.extend([letter, accent])
            element.append(index)
        elif element.tag in (_name("msub"), _name("msup")):
            brace = children[0].find(_name("mo")) if len(children[0]) == 2 else None
            if brace is not None and brace.text in _BRACES:
                element.tag = _name("munder" if element.tag == _name("msub") else "mover")
    return ElementTree.tostring(root, encoding="unicode")


def _name(tag: str) -> str:
    return f"{{{_NAMESPACE}}}{tag}"


def _is_accent(element: ElementTree.Element) -> bool:
    return element.get("accent") == "true" or element.text in _ACCENTS


def with_formulas(text: str) -> str:
    """Return HTML with formulas between dollar signs as MathML; what is no formula stays."""
    return FORMULA.sub(_formula, text)


def _formula(match: re.Match[str]) -> str:
    try:
        return mathml(html.unescape(match["block"] or match["inline"]), block=bool(match["block"]))
    except MathError:
        return match.group()
