"""Sphinx extension: docstrings written for ``help()`` become reStructuredText.

Absolute values and names that end in an underscore are text in a docstring, but substitutions and
links in reStructuredText. They are escaped, except in literals, roles and formulas. Attributes that
share a line of a docstring are listed one by one.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

from giantstep.deprecations import renamed

_KEPT = re.compile(r"(``.*?``|:[a-z:]+:`[^`]*`|`[^`]*`_?)", re.DOTALL)
_SHARED = re.compile(r"(\w+(?:, \w+)+)( : .*)")
_ASKED_BY_RENDERINGS = {"page": "Page", "picture": "Drawn", "entries": "Result"}
_SPECIAL = re.compile(r"(?<!\\)(\||(?<=\w)_(?!\w))")


def escape(what: str, name: str, lines: list[str]) -> None:
    """Escape in place, paragraph by paragraph, because literals may run over a line's end."""
    text = "\n".join(lines)
    paragraphs = re.split(r"(\n\s*\n)", text)
    lines[:] = "".join(_escaped(paragraph) for paragraph in paragraphs).split("\n")


def _escaped(paragraph: str) -> str:
    if re.match(r"\s*(\.\. |>>> )", paragraph):
        return paragraph
    parts = _KEPT.split(paragraph)
    parts[::2] = (_SPECIAL.sub(r"\\\1", part) for part in parts[::2])
    return "".join(parts)


def separate(lines: list[str]) -> None:
    """Give each of several attributes with one entry an entry of its own, in place."""
    if "Attributes" not in lines:
        return
    first = lines.index("Attributes") + 2
    result, k = lines[:first], first
    while k < len(lines):
        shared = _SHARED.fullmatch(lines[k])
        end = k + 1
        while end < len(lines) and (lines[end].startswith(" ") or not lines[end]):
            end += 1
        heads = [lines[k]]
        if shared is not None:
            heads = [name + shared.group(2) for name in shared.group(1).split(", ")]
        for head in heads:
            result += [head, *lines[k + 1 : end]]
        k = end
    lines[:] = result


def _process(
    app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]
) -> None:
    escape(what, name, lines)


def _prepare(
    app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]
) -> None:
    """Break the line of a property after a colon: napoleon takes what is before it for a type."""
    separate(lines)
    if what in ("attribute", "property") and lines and ": " in lines[0]:
        lines[:1] = lines[0].replace(": ", ":\n", 1).split("\n")


def _name_inherited(
    app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]
) -> None:
    """End the description of a class with what it has from bases that are described elsewhere."""
    if not isinstance(obj, type):
        return
    bases = app.config.autodoc_default_options["inherited-members"].split(", ")
    homes = {
        member: next(kind for kind in obj.__mro__ if member in vars(kind))
        for member in dir(obj)
        if member[0] != "_" and member not in _ASKED_BY_RENDERINGS
    }
    links = [
        f":meth:`~{home.__module__}.{home.__name__}.{member}`"
        for member, home in homes.items()
        if home is not obj and home.__name__ in bases and home.__module__.startswith("giantstep.")
    ]
    if links:
        lines += ["", f"Inherited: {', '.join(links)}.", ""]


def _skip(app: Sphinx, what: str, name: str, obj: object, skip: bool, options: Any) -> bool | None:
    """Leave out former names, and what renderings ask a result for but on the base that says so."""
    code = getattr(obj, "__code__", None)
    former = code is not None and code.co_qualname.startswith(f"{renamed.__name__}.")
    home = getattr(obj, "__qualname__", "").removesuffix(f".{name}")
    asked = name in _ASKED_BY_RENDERINGS and home != _ASKED_BY_RENDERINGS[name]
    return True if former or asked else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Take part before and after napoleon turns the sections of numpydoc into fields."""
    app.setup_extension("sphinx.ext.napoleon")
    app.connect("autodoc-process-docstring", _prepare, priority=100)
    app.connect("autodoc-process-docstring", _process, priority=900)
    app.connect("autodoc-process-docstring", _name_inherited, priority=900)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
