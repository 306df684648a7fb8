"""Sphinx extension: formulas become MathML, which browsers show without scripts or downloads.

What the conversion of the package does not know is a warning that names the formula, so that a
build with ``-W`` fails instead of showing raw LaTeX.
"""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

from giantstep.derivations.latex_mathml import FORMULA, mathml

logger = logging.getLogger(__name__)


def _converted(self: HTML5Translator, node: nodes.Element, *, block: bool) -> str:
    latex = node.astext()
    if "$" in latex:
        # What an object prints as LaTeX may be text with formulas in it.
        return FORMULA.sub(_formula_of_output, html.escape(latex, quote=False))
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
            replaced = nodes.raw("", FORMULA.sub(_formula_of_output, text), format="html")
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
