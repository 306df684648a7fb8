"""Results as one HTML file that opens offline: figure, numbers, formulas, provenance.

Nothing is loaded from anywhere: styles and figures are inline, formulas are MathML. All reports are
made of one template; :mod:`.curve_report` fills it for learning curves, the rest from what results
say of themselves.
"""

from __future__ import annotations

import html
import os
import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .. import __version__
from ..atomic_files import write_atomically
from ..errors import GiantstepError, MissingDependencyError
from ..pages import Typeset
from .figures import off_screen, svg_text
from .latex_mathml import MathError, mathml, with_formulas

try:
    import jinja2
    from markupsafe import Markup
except ImportError:
    raise MissingDependencyError(
        'the report needs Jinja2, which is not installed; use pip install "giantstep[plot]"'
    ) from None

_TEMPLATE = Path(__file__).parent / "templates" / "report.html"
_PACKAGES = ("numpy", "scipy", "sympy", "numba", "xarray", "matplotlib")
_NOT_NEEDED = re.compile(
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL
)
_NAMESPACE = re.compile(r'\s+xmlns(?::\w+)?="[^"]*"')


@dataclass(frozen=True)
class Formulas:
    """Formulas under a heading, as MathML."""

    title: str
    remark: str
    formulas: Sequence[Markup]


@dataclass(frozen=True)
class Part:
    """What a report says of one result; what is empty is left out.

    Attributes
    ----------
    title : str
    figure : Markup
        As SVG.
    caption : str
    body : Markup
        The result in HTML.
    columns, rows : sequences
        A table of numbers.
    rests_on : sequence of str
    parameters : sequence of tables
        Rows of symbol, meaning and value.
    remark : str
        About the formulas.
    sections : sequence of Formulas
    """

    title: str = ""
    figure: Markup | str = ""
    caption: str = ""
    body: Markup | str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    rests_on: Sequence[str] = ()
    parameters: Sequence[Sequence[tuple[Markup, str, str]]] = ()
    remark: str = ""
    sections: Sequence[Formulas] = ()


def rendered(
    title: str,
    parts: Sequence[Part],
    *,
    lead: str = "",
    warnings: Sequence[str] = (),
    command: str = "",
    code: str = "",
    run: Sequence[tuple[str, str]] = (),
    seconds: float | None = None,
    cite: Markup | str = "",
) -> str:
    """Return a report as HTML without any reference to other files.

    Parameters
    ----------
    title, lead : str
    parts : sequence of Part
    warnings : sequence of str
    command, code : str
        Command line and Python that made the result.
    run : sequence of (str, str)
        What is to be known about the run, such as its seed.
    seconds : float, optional
        Time that it took.
    cite : Markup
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    about = [*run, ("date", f"{datetime.now().astimezone():%Y-%m-%d %H:%M %z}")]
    about += [] if seconds is None else [("time", f"{seconds:.1f} s")]
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    return str(
        template.render(
            title=title, lead=lead, warnings=warnings, parts=parts, command=command, code=code,
            versions=versions(), run=about, cite=cite,
        )
    )  # fmt: skip


def result_report(
    results: Sequence[Any],
    *,
    title: str = "",
    command: str = "",
    text: str = "",
    draw: Callable[[], Any] | None = None,
) -> str:
    """Return a report of results: each with its figure, its numbers and its formulas.

    Parameters
    ----------
    results : sequence
        What has a page, LaTeX or a figure; may be empty if there is a text.
    title : str
        Default: what the first result is.
    command : str
        Command line that made them.
    text : str
        What stands in place of the results if there are none.
    draw : callable, optional
        Draws all of them in place of their own figures.
    """
    several = len(results) > 1
    parts = [_part(x, _name(x) if several else "", own_figure=draw is None) for x in results]
    if not parts:
        parts = [Part(body=Markup("<pre>{}</pre>").format(text))]
    if draw is not None:
        with off_screen():
            parts = [Part(figure=inline_svg(draw()), caption=title), *parts]
    return rendered(title or _name(results[0]), parts, command=command)


def write_results(
    path: str | os.PathLike[str], results: Sequence[Any], *, title: str = "", command: str = ""
) -> Path:
    """Write :func:`result_report` to a file; a reader sees all of it or none."""
    result = Path(path)
    write_atomically(result, result_report(results, title=title, command=command))
    return result


def _name(result: Any) -> str:
    """Return what a result is, in words: "saddle point", "leap report"."""
    words = getattr(result, "_document", "") or re.sub(
        r"(?<=[a-z])(?=[A-Z])", " ", type(result).__name__
    )
    return f"{words[:1].upper()}{words[1:].lower()}"


def _part(result: Any, title: str, *, own_figure: bool) -> Part:
    figure = _figure(result) if own_figure else ""
    shown = getattr(result, "_repr_html_", None)
    text = f"<pre>{html.escape(str(result))}</pre>" if shown is None else shown()
    return Part(
        title=title,
        figure=figure,
        caption=_name(result) if figure else "",
        body=Markup(with_formulas(text)),
        sections=_formulas(result),
    )


def _figure(result: Any) -> Markup | str:
    """Return the figure of a result, or nothing if it has none to draw."""
    if not hasattr(result, "plot"):
        return ""
    try:
        with off_screen():
            return inline_svg(result.plot())
    except MissingDependencyError:
        raise
    except GiantstepError:
        # Nothing to draw: no finite number, a curve over many axes.
        return ""


def _formulas(result: Any) -> list[Formulas]:
    if not isinstance(result, Typeset):
        return []
    try:
        written = [Markup(mathml(result.latex(), block=True))]
    except MathError:
        written = [Markup(f"<pre>{html.escape(result.latex())}</pre>")]
    return [Formulas("In formulas", "", written)]


def inline_svg(drawn: Any) -> Markup:
    """Return a figure as SVG that stands inside of HTML."""
    text = _NOT_NEEDED.sub("", svg_text(drawn))
    # HTML knows the names of SVG without their declaration.
    return Markup(_NAMESPACE.sub("", text).replace("xlink:href", "href").strip())


def versions() -> dict[str, str]:
    """Return the versions of giantstep, of Python and of what the numbers depend on."""
    result = {"giantstep": __version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            continue
    return result
