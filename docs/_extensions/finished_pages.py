"""Sphinx extension: the build fails if a page loads from a network or lacks a figure that it draws.

Figures are lost without an error where matplotlib is told to draw on no display. What only those
who change the theme would read, half of its bytes, is left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

_LOADED = re.compile(
    r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=\"(?:https?:)?//[^\"]*\""
    r"|<link\b[^>]*\brel=\"(?:stylesheet|preload|preconnect|icon)\"[^>]*\bhref=\"(?:https?:)?//[^\"]*\""
    r"|<link\b[^>]*\bhref=\"(?:https?:)?//[^\"]*\"[^>]*\brel=\"(?:stylesheet|preload|preconnect)\""
)
# Figures that a cell makes itself, and plots of results that are not drawn into one of those.
_DRAWN = re.compile(r"\bplt\.subplots\(|(?<!\bax)(?<!axes)\.plot\((?![^\n]*\bax=)")


def missing_figures(source: str, page: str) -> int:
    """Return how many figures the cells of a page make that it does not show."""
    drawn = sum(
        len(_DRAWN.findall(re.sub(r"#.*", "", cell)))
        for cell in re.findall(r"```\{code-cell\}.*?```", source, re.DOTALL)
    )
    return max(0, drawn - page.count("<img"))


def _check(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    for source_map in Path(app.outdir, "_static").rglob("*.map"):
        source_map.unlink()
    lost = [
        f"{name}: {missing}"
        for name in sorted(app.env.found_docs)
        if Path(source := app.env.doc2path(name)).suffix == ".md"
        and (
            missing := missing_figures(
                Path(source).read_text(encoding="utf-8"),
                Path(app.outdir, f"{name}.html").read_text(encoding="utf-8"),
            )
        )
    ]
    if lost:
        raise ExtensionError("pages lack figures that they draw:\n" + "\n".join(lost))
    found = [
        f"{page.relative_to(app.outdir)}: {match.group()}"
        for page in sorted(Path(app.outdir).rglob("*.html"))
        for match in _LOADED.finditer(page.read_text(encoding="utf-8"))
    ]
    if found:
        raise ExtensionError("pages load from a network:\n" + "\n".join(found[:20]))


def setup(app: Sphinx) -> dict[str, Any]:
    """Check all pages when they are written."""
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
