"""What people read, written once: as plain text for a terminal and as HTML for a notebook.

A page is a sequence of blocks: paragraphs (texts), tables, lists and other pages.
"""

from __future__ import annotations

import functools
import html
import itertools
import os
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from unicodedata import combining

from .errors import ParameterError
from .latex_lines import broken

_INDENT = "  "
_GAP = 2


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells.

    Attributes
    ----------
    rows : sequence of sequences of str
    headings : sequence of str
        With them a terminal shows the table with rules, aligned to the right; without, the first
        cell of a row names it, and columns are aligned to the left.
    beside : sequence of sequences of str
        Further cells of each row, for which a terminal has no room; their headings follow the
        others.
    column : int
        Where the second column starts in a terminal, if the first is narrow enough.
    """

    rows: Sequence[Sequence[str]]
    headings: Sequence[str] = ()
    beside: Sequence[Sequence[str]] = ()
    column: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """Short texts below each other, each after a mark.

    Attributes
    ----------
    items : sequence of str
    mark : str
        Of a terminal.
    beside : sequence of str
        What follows each item where a terminal has no room for it, such as formulas.
    """

    items: Sequence[str]
    mark: str = "- "
    beside: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Indented:
    """Blocks that a terminal shows a little to the right."""

    blocks: Sequence[Block]


class Reported:
    """Something that can be written as a page of its own, with its figure and formulas."""

    def report(self, path: str | os.PathLike[str], *, title: str = "", command: str = "") -> Path:
        """Write the result as one HTML file that opens offline: figure, numbers, formulas.

        Parameters
        ----------
        path : path-like
            Ending in .html.
        title : str
            Default: what the result is.
        command : str
            Command line that made it, to be repeated.

        Returns
        -------
        Path

        Raises
        ------
        ParameterError
            If the file has another ending.
        MissingDependencyError
            Without Jinja2, docutils or matplotlib.
        """
        if not str(path).lower().endswith((".html", ".htm")):
            raise ParameterError(f"a report is written as .html, not {str(path)!r}")
        # Written above the rooms that results come from.
        from .derivations.report import write_results

        return write_results(path, [self], title=title, command=command)


class Page(Reported, ABC):
    """Something with a page: ``print`` shows it as text, notebooks as HTML."""

    @abstractmethod
    def page(self) -> Iterable[Block]:
        """Return what is to be read, block by block."""

    def __str__(self) -> str:
        return "\n".join(map(_text, self.page()))

    def _repr_html_(self) -> str:
        return as_html(self.page())


class InLatex(ABC):
    """Something with LaTeX, which notebooks show as a formula and ``sympy.latex`` returns."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if (write := cls.__dict__.get("latex")) is not None:

            @functools.wraps(write)
            def latex(self: Any, *arguments: Any, **options: Any) -> str:
                return broken(write(self, *arguments, **options))

            cls.latex = latex  # type: ignore[method-assign]

    @abstractmethod
    def latex(self) -> str:
        """Return LaTeX without delimiters, long lines broken to the width of a text."""

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {self.latex()}$"

    def _latex(self, _printer: Any = None) -> str:
        # Asked for by the printers of SymPy.
        return self.latex()


class Typeset(Reported, InLatex):
    """Something with LaTeX that can be written as a page of its own."""


def as_html(blocks: Iterable[Block]) -> str:
    """Return blocks as HTML, for what is a page in notebooks only."""
    return "".join(map(_html, blocks))


Block: TypeAlias = str | Table | Listing | Indented | Page


def aligned(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text, columns aligned to the right.

    Examples
    --------
    >>> print(aligned(["α", "theory"], [["0.5", "0.046"], ["10", "0.03"]]))
      α │ theory
    ────┼───────
    0.5 │  0.046
     10 │   0.03
    """
    lines = [list(headings), *map(list, rows)]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    text = [
        " │ ".join(" " * (w - _width(c)) + c for c, w in zip(line, widths, strict=True))
        for line in lines
    ]
    text.insert(1, "─┼─".join("─" * w for w in widths))
    return "\n".join(text)


def shorten(text: str, limit: int = 60) -> str:
    """Return a text, cut with an ellipsis if it is longer than the limit."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def latex_text(text: str) -> str:
    r"""Return words as LaTeX of a formula.

    Examples
    --------
    >>> print(latex_text("test_error, 5 %"), latex_text("over λ"))
    \text{test\_error, 5 \%} \text{over }\lambda
    """
    parts = re.split(r"([α-ωΓΔΘΛΞΠΣΥΦΨΩ])", text)
    # What was split at stands at odd places.
    for k, part in enumerate(parts):
        if k % 2:
            name = unicodedata.name(part).split()[-1].replace("LAMDA", "LAMBDA")
            parts[k] = "\\" + (name.lower() if part.islower() else name.capitalize())
        elif part:
            escaped = re.sub(r"([&%$#_{}])", r"\\\1", part)
            parts[k] = rf"\text{{{escaped}}}"
    return "".join(parts)


def columns(rows: Sequence[Sequence[str]], column: int = 0) -> str:
    """Return a table as text, columns aligned to the left.

    Parameters
    ----------
    rows : sequence of sequences of str
    column : int
        Where the second column starts, if the first is narrow enough.

    Examples
    --------
    >>> print(columns([["risk", "0.25"], ["training error", "0.125"]]))
    risk            0.25
    training error  0.125
    """
    widths = [max(map(_width, cells)) + _GAP for cells in zip(*rows, strict=True)]
    if widths and column >= widths[0] - _GAP + 1:
        widths[0] = column
    lines = (
        "".join(c + " " * (w - _width(c)) for c, w in zip(row, widths, strict=True)) for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def _width(text: str) -> int:
    return sum(not combining(character) for character in text)


def _text(block: Block) -> str:
    match block:
        case Table():
            if block.headings:
                shown = max(map(len, block.rows), default=len(block.headings))
                return aligned(block.headings[:shown], block.rows)
            return columns(block.rows, block.column)
        case Listing():
            return "\n".join(f"{_INDENT}{block.mark}{item}" for item in block.items)
        case Indented():
            lines = "\n".join(map(_text, block.blocks)).splitlines()
            return "\n".join(_INDENT + line for line in lines)
    return str(block)


def _html(block: Block) -> str:
    match block:
        case Page():
            return block._repr_html_()
        case Table():
            head = "".join(f"<th>{html.escape(text)}</th>" for text in block.headings)
            rows = itertools.zip_longest(block.rows, block.beside, fillvalue=())
            body = "".join(_html_row([*cells, *further]) for cells, further in rows)
            return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"
        case Listing():
            pairs = itertools.zip_longest(block.items, block.beside, fillvalue="")
            items = (f"{item}: {further}" if further else item for item, further in pairs)
            return f"<ul>{''.join(f'<li>{html.escape(item)}</li>' for item in items)}</ul>"
        case Indented():
            return "".join(map(_html, block.blocks))
    return f"<p>{html.escape(block)}</p>" if block else ""


def _html_row(cells: Sequence[str]) -> str:
    name, *rest = map(html.escape, cells)
    return f"<tr><th>{name}</th>{''.join(f'<td>{text}</td>' for text in rest)}</tr>"
