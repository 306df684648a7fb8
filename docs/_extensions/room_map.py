"""Sphinx extension: ``{room-map} symbolic`` draws the rooms of a layer from its imports.

Rooms are boxes, one row above the other as imports allow; an arrow leads from a room to one that it
imports from. Arrows that follow from others are left out, circles cannot be drawn and are an error.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
_WIDTH, _HEIGHT, _GAP = 132, 30, 34


def room_imports(layer: str) -> dict[str, set[str]]:
    """Return for each room of a layer the rooms that its modules import from at the top."""
    rooms = {file.parent.name for file in (ROOT / layer).glob("*/__init__.py")}
    found: dict[str, set[str]] = {room: set() for room in sorted(rooms)}
    for room in rooms:
        for file in (ROOT / layer / room).rglob("*.py"):
            package = file.parent.relative_to(ROOT).parts
            for node in ast.parse(file.read_text("utf-8")).body:
                if isinstance(node, ast.ImportFrom) and node.level:
                    base = package[: len(package) - node.level + 1]
                    names = [(*base, *(node.module or "").split("."), a.name) for a in node.names]
                    for parts in ([p for p in name if p] for name in names):
                        if len(parts) > 1 and parts[0] == layer and parts[1] in rooms - {room}:
                            found[room].add(parts[1])
    return found


def rows(known: dict[str, set[str]]) -> list[list[str]]:
    """Return the rooms from the bottom row, which knows none, to the top.

    Raises
    ------
    ValueError
        If rooms import from each other in a circle.
    """
    height: dict[str, int] = {}
    while len(height) < len(known):
        ready = [r for r in known if r not in height and known[r] <= height.keys()]
        if not ready:
            raise ValueError(f"rooms know each other: {', '.join(sorted(known.keys() - height))}")
        height |= {r: 1 + max((height[o] for o in known[r]), default=-1) for r in ready}
    found = defaultdict(list)
    for room, row in height.items():
        found[row].append(room)
    return [sorted(found[row]) for row in sorted(found)]


def direct(known: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the edges that do not follow from others."""

    def below(room: str) -> set[str]:
        return known[room].union(*(below(other) for other in known[room]))

    return {
        room: {o for o in others if not any(o in below(p) for p in others)}
        for room, others in known.items()
    }


def svg(layer: str) -> str:
    """Return the picture of a layer."""
    known = room_imports(layer)
    levels = rows(known)
    columns = max(map(len, levels))
    width = columns * (_WIDTH + _GAP) + _GAP
    height = len(levels) * (_HEIGHT + _GAP) + _GAP
    place = {}
    for k, level in enumerate(levels):
        left = (width - len(level) * (_WIDTH + _GAP) + _GAP) / 2
        for i, room in enumerate(level):
            place[room] = (left + i * (_WIDTH + _GAP), height - (k + 1) * (_HEIGHT + _GAP))
    lines, boxes = [], []
    for room, (x, y) in place.items():
        for other in sorted(direct(known)[room]):
            a, b = place[other]
            lines.append(
                f'<line x1="{x + _WIDTH / 2:g}" y1="{y + _HEIGHT:g}" '
                f'x2="{a + _WIDTH / 2:g}" y2="{b - 4:g}" marker-end="url(#{layer}-arrow)"/>'
            )
        boxes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="4"/>'
            f'<text x="{x + _WIDTH / 2:g}" y="{y + 20:g}">{room}</text>'
        )
    style = (
        f"#rooms-{layer} line{{stroke:currentColor;stroke-width:1}}"
        f"#rooms-{layer} rect{{fill:none;stroke:currentColor}}"
        f"#rooms-{layer} text{{font:13px sans-serif;text-anchor:middle;fill:currentColor}}"
    )
    return (
        f'<svg id="rooms-{layer}" xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {width} {height}" style="max-width:{width}px">'
        f"<title>Rooms of {layer} and what they import</title><style>{style}</style>"
        f'<defs><marker id="{layer}-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="currentColor"/></marker>'
        f"</defs>{''.join(lines)}{''.join(boxes)}</svg>"
    )


class RoomMap(Directive):
    """Draw the rooms of a layer."""

    required_arguments = 1
    has_content = False

    def run(self) -> list[nodes.Node]:
        """Return the picture as it stands in the page."""
        try:
            picture = svg(self.arguments[0])
        except ValueError as error:
            raise self.error(str(error)) from None
        return [nodes.raw("", picture, format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("room-map", RoomMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
