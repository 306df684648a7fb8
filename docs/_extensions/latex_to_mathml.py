"""Sphinx extension: formulas become MathML, which browsers show without scripts or downloads.

The conversion is that of docutils; what it does not know is a warning that names the formula, so
that a build with ``-W`` fails instead of showing raw LaTeX.
"""

from __future__ import annotations

import html
import re
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)

_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_ACCENTS = frozenset("^~\u02c6\u02c7\u02c9\u02d9\u02dc\u00a8\u00af\u2192")
_BRACES = frozenset("\u23de\u23df")
_FORMULA = re.compile(r"\$\$(?P<block>[^$]+)\$\$|\$(?P<inline>[^$]+)\$")
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


def _converted(self: HTML5Translator, node: nodes.Element, *, block: bool) -> str:
    latex = node.astext()
    if "$" in latex:
        # What an object prints as LaTeX may be text with formulas in it.
        return _FORMULA.sub(_formula_of_output, html.escape(latex, quote=False))
    try:
        return mathml(latex, block=block)
    except MathError as error:
        logger.warning("formula %r: %s", latex, error, location=node, type="math")
        return f"<code>{html.escape(latex)}</code>"


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(_converted(self, node, block=False))
    raise nodes.SkipNode


def visit_math_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a displayed formula, with its number if it has a label."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, _("Link to this equation"))
        self.body.append("</span>")
    self.body.append(_converted(self, node, block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


class FormulasInOutput(SphinxPostTransform):
    """Turn formulas between dollar signs in the HTML that objects print on pages into MathML."""

    default_priority = 500
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Rewrite raw HTML; scripts and pictures have no dollar signs in pairs to lose."""
        for node in self.document.findall(nodes.raw):
            text = node.astext()
            if "html" not in node.get("format", "") or "$" not in text or "<script" in text:
                continue
            replaced = nodes.raw("", _FORMULA.sub(_formula_of_output, text), format="html")
            node.replace_self(replaced)


def _formula_of_output(match: re.Match[str]) -> str:
    latex = html.unescape(match["block"] or match["inline"])
    try:
        return mathml(latex, block=match["block"] is not None)
    except MathError as error:
        logger.warning("formula %r in an output: %s", latex, error, type="math")
        return match.group()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under the name ``mathml``."""
    app.add_post_transform(FormulasInOutput)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
