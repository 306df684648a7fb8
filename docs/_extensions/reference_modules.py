"""The page of modules: those that pages import from, and those whose results have no public name.

It is written before the build looks for pages, so that moving a module moves its page.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import giantstep as gs
from giantstep.pages import Page

_IMPORTED = re.compile(r"^from (giantstep\.[\w.]+) import", re.MULTILINE)
_TEXT = """\
# Modules

Results that methods return, functions of which a model is made, and what pages import beside the
public names. `symbolic` imports no NumPy, `numeric` no SymPy; `derivations` uses both.

```{eval-rst}
.. autosummary::
   :toctree: generated

"""


def _kinds(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)


def homes_of_results() -> set[str]:
    """Return the modules that define what is shown as a page, but for the public names."""
    for room in ("symbolic", "derivations"):
        package = importlib.import_module(f"giantstep.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    public = {getattr(gs, name) for name in gs.__all__}
    return {
        kind.__module__
        for kind in _kinds(Page)
        if kind not in public and not any(part[0] == "_" for part in kind.__module__.split("."))
    }


def imported_by_pages(docs: Path) -> set[str]:
    """Return the modules that pages and scripts of the gallery import names from."""
    files = [*docs.glob("*.md"), *docs.glob("*/*.md"), *docs.glob("gallery/*.py")]
    return {name for file in files for name in _IMPORTED.findall(file.read_text("utf-8"))}


def write(docs: Path) -> None:
    """Write the page, unless it is there as it should be."""
    names = sorted(homes_of_results() | imported_by_pages(docs))
    text = _TEXT + "".join(f"   {name}\n" for name in names) + "```\n"
    page = docs / "api" / "modules.md"
    if not page.exists() or page.read_text("utf-8") != text:
        page.write_text(text, "utf-8")
