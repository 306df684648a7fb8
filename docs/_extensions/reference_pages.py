"""Sphinx extension: ``.. subject:: leaps`` lists names as a table, documented together on one page.

``api/index.md`` alone declares what the reference lists. Names of an ``autosummary`` have a page
each; those of a ``subject`` share one under the heading that they stand below. These pages are
written before the build looks for files. References that docstrings make to a name at its home, or
to an inherited member, lead to where it is described.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.ext.autosummary import Autosummary, import_by_name
from sphinx.util.nodes import make_refnode

import giantstep as gs
from giantstep.pages import Page

FOLDER = "generated"
_INDEX = Path("api", "index.md")
_PART = re.compile(
    r"^## (?P<title>.+)$"
    r"|^\.\. (?P<directive>autosummary|subject)::(?P<page>.*)\n(?: +:.*\n)*\n"
    r"(?P<names>(?: +\S+\n)+)",
    re.MULTILINE,
)


def listed(docs: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Yield for each table of the reference its heading, its page, if it has one, and its names."""
    title = ""
    for part in _PART.finditer((docs / _INDEX).read_text("utf-8")):
        title = part["title"] or title
        if part["directive"]:
            yield title, part["page"].strip(), part["names"].replace("~", "").split()


def results() -> set[str]:
    """Return the names of all classes whose objects are shown as a page."""
    for room in ("symbolic", "derivations"):
        package = importlib.import_module(f"giantstep.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    kinds: list[type] = [Page]
    for kind in kinds:
        kinds += kind.__subclasses__()
    public = {getattr(gs, name) for name in gs.__all__}
    names = {f"{kind.__module__}.{kind.__name__}" for kind in set(kinds) - public}
    # A program may have classes of its own.
    ours = {name.removeprefix("giantstep.") for name in names if name.startswith("giantstep.")}
    return {name for name in ours if "._" not in name}


def write(docs: Path) -> None:
    """Write the pages of subjects that are not there as they should be.

    Raises
    ------
    ExtensionError
        If a result is not listed.
    """
    tables = list(listed(docs))
    if missing := results().difference(*(names for _, _, names in tables)):
        raise ExtensionError(f"{_INDEX} does not list {', '.join(sorted(missing))}")
    for title, page, names in tables:
        if not page:
            continue
        text = f"{title}\n{'=' * len(title)}\n\n"
        for name in names:
            full, thing, _, _ = import_by_name(f"giantstep.{name}")
            kind = "class" if inspect.isclass(thing) else "function"
            text += f".. auto{kind}:: {full}\n\n"
        file = docs / _INDEX.parent / FOLDER / f"{page}.rst"
        file.parent.mkdir(exist_ok=True)
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")


class Subject(Autosummary):
    """A table of names, and the page that describes them in its place among pages."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table, and an entry in the tree of pages."""
        page = f"{_INDEX.parent.as_posix()}/{FOLDER}/{self.arguments[0]}"
        tree = {"includefiles": [page], "entries": [(None, page)], "glob": None, "caption": None}
        return [*super().run(), addnodes.toctree(hidden=True, maxdepth=-1, **tree)]


def described(name: str, inside: object, known: Collection[str]) -> str | None:
    """Return under which of the known names something is described, if it is.

    Parameters
    ----------
    name : str
        As a docstring has it: ``activation``, ``activations.activation``, ``Curve.plot``, ``save``.
    inside : type, optional
        The class one of whose members is meant if the name has no dots.
    known : collection of str
        All names that pages describe.
    """
    parts = name.lstrip(".").split(".")
    own = inside is not None and len(parts) == 1
    things = [(inside, parts)] if own else []
    for k, first in enumerate(parts):
        if first in gs.__all__ and not own:
            thing = getattr(gs, first)
            if f".{thing.__module__}".endswith("".join(f".{part}" for part in parts[:k])):
                things.append((thing, parts[k + 1 :]))
    for thing, members in things:
        for kind in thing.__mro__ if members and inspect.isclass(thing) else [thing]:
            end = ".".join((kind.__qualname__, *members))
            for full in (f"giantstep.{end}", f"{kind.__module__}.{end}"):
                if full in known:
                    return full
    return None


def _resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, text: nodes.TextElement
) -> nodes.reference | None:
    if node.get("refdomain") != "py":
        return None
    known = env.domains.python_domain.objects
    member = node["reftype"] in ("attr", "meth")
    kind = (node.get("py:class") or "").rpartition(".")[2]
    inside = getattr(sys.modules.get(node.get("py:module") or ""), kind, None)
    found = described(node["reftarget"], inside if member else None, known)
    if found is None:
        return None
    place = known[found]
    return make_refnode(app.builder, node["refdoc"], place.docname, place.node_id, text, found)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.setup_extension("sphinx.ext.autosummary")
    app.add_directive("subject", Subject)
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
