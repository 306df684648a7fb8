"""Sphinx extension: pages with cells download as notebooks, linked beside their contents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from myst_nb.core.read import read_myst_markdown_notebook
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

FOLDER = "_notebooks"
_PAGES = ("tutorials/", "how_to/", "tour")
_UNNAMED_LINK = re.compile(r"\[\]\(([^)]*?)([\w-]+)\.md(?:#[\w-]+)?\)")


def notebook(text: str) -> nbformat.NotebookNode:
    """Return the notebook of a page in MyST Markdown.

    Links to other pages, which a notebook cannot follow, become their names.
    """
    text = _UNNAMED_LINK.sub(lambda link: f"*{link[2].replace('_', ' ')}*", text)
    return read_myst_markdown_notebook(text)


def _link(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.Node) -> None:
    source = Path(app.env.doc2path(page))
    if not page.startswith(_PAGES) or source.suffix != ".md":
        return
    text = source.read_text(encoding="utf-8")
    if "{code-cell}" not in text:
        return
    target = Path(app.outdir, FOLDER, f"{page}.ipynb")
    target.parent.mkdir(parents=True, exist_ok=True)
    made = notebook(text)
    # Cells inside of lists or other blocks would be lost without an error.
    if sum(cell.cell_type == "code" for cell in made.cells) != text.count("```{code-cell}"):
        raise ExtensionError(f"the notebook of {page} lacks cells of the page")
    nbformat.write(made, target)
    context["notebook"] = f"{'../' * page.count('/')}{FOLDER}/{page}.ipynb"


def setup(app: Sphinx) -> dict[str, Any]:
    """Write and link notebooks when pages are written."""
    app.connect("html-page-context", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
