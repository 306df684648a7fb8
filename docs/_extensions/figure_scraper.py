"""Figures of gallery scripts: those of pyplot, and a figure that is left in the name ``figure``.

The figures of giantstep are made without pyplot, so that they need no display.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst, matplotlib_scraper


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save what a block has drawn, and return the text that shows it."""
    found: str = matplotlib_scraper(block, block_vars, gallery_conf)
    figure = block_vars["example_globals"].get("figure")
    if found or not isinstance(figure, Figure):
        return found
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path, dpi=150)
    shown: str = figure_rst([path], gallery_conf["src_dir"])
    return shown
