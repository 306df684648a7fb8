"""The figure whose files embed their fonts as TrueType, as journals ask for."""

from __future__ import annotations

from typing import Any

import matplotlib
from matplotlib.figure import Figure


class EmbeddedFigure(Figure):
    """A figure of matplotlib that embeds TrueType fonts, whatever the settings are elsewhere."""

    def savefig(self, *args: Any, **options: Any) -> None:
        """Write the figure to a file, as matplotlib's figures do."""
        with matplotlib.rc_context({"pdf.fonttype": 42, "ps.fonttype": 42}):
            super().savefig(*args, **options)
