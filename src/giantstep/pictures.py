"""What people look at, written once as data: lines, bars, chains of subspaces and tables of tones.

As a page says what is to be read, a picture says what is to be drawn; both know nothing of where.
Texts between dollar signs are formulas, as matplotlib sets them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Line:
    """Points over an axis, joined or marked.

    Attributes
    ----------
    x, y : sequence of float
    label : str
    style : str
        Of the line, "-", "--" or ":"; empty for points alone.
    mark : str
        Of the points; empty for a line alone.
    beside : bool
        Whether it only explains another line: it keeps grey, and takes no style.
    """

    x: Sequence[float]
    y: Sequence[float]
    label: str = ""
    style: str = "-"
    mark: str = ""
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines over a common axis.

    Attributes
    ----------
    lines : sequence of Line
    over, of : str
        What the axes are called.
    title : str
    levels : mapping from str to float
        Horizontal lines by what they are.
    logarithmic : str
        The axes that are: "", "x", "y" or "xy".
    ticks : mapping from float to str
        Names of places on the vertical axis, for quantities with names instead of a scale.
    """

    lines: Sequence[Line]
    over: str
    of: str
    title: str = ""
    levels: Mapping[str, float] = field(default_factory=dict)
    logarithmic: str = ""
    ticks: Mapping[float, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bars:
    """Numbers by name, with their errors.

    Attributes
    ----------
    numbers : mapping from str to (float, float or None)
        What is not finite is left out.
    label : str
        What they are.
    title : str
    texts : mapping from str to str
        What stands at a bar instead of its number.
    """

    numbers: Mapping[str, tuple[float, Any]]
    label: str
    title: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chain:
    """Subspaces, each in the next one, with what made the step.

    Attributes
    ----------
    links : sequence of str
    heights : sequence of int
        Their dimensions.
    reasons : sequence of str
        What leads from each to the next one.
    title, end : str
        `end` says how the chain ends.
    highest : int
        The dimension that there is to be reached.
    over : str
        What the links follow each other in.
    """

    links: Sequence[str]
    heights: Sequence[int]
    reasons: Sequence[str]
    title: str = ""
    end: str = ""
    highest: int = 0
    over: str = "step"


@dataclass(frozen=True, slots=True)
class Cells:
    """A table whose cells have tones: good, fair, poor or none.

    Attributes
    ----------
    rows, columns : sequence of str
        Headings.
    texts, tones : sequence of sequences of str
        Row by row.
    title : str
    """

    rows: Sequence[str]
    columns: Sequence[str]
    texts: Sequence[Sequence[str]]
    tones: Sequence[Sequence[str]]
    title: str = ""


Picture: TypeAlias = Lines | Bars | Chain | Cells


_AXES = """
ax : matplotlib.axes.Axes, optional
    Where to draw; default: a new figure, found as ``axes.figure``.
style : optional
    Keywords of matplotlib's lines and bars, such as `color` and `label`.

Returns
-------
matplotlib.axes.Axes

Raises
------
ParameterError
    If there is nothing to draw, or `ax`, a keyword or an option is something else.
MissingDependencyError
    Without matplotlib.
"""


class Drawn(ABC):
    """Something with a picture: :meth:`plot` draws it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # What all figures take is told once.
        plot = cls.__dict__.get("plot")
        if plot is not None and plot.__doc__ and "\nRaises" not in cleandoc(plot.__doc__):
            own = cleandoc(plot.__doc__)
            head = "" if "Parameters\n---" in own else "\n\nParameters\n----------"
            plot.__doc__ = f"{own}{head}{_AXES}"

    @abstractmethod
    def picture(self) -> Picture:
        """Return what is to be drawn, as data."""

    def plot(self, *, ax: Any = None, **style: Any) -> Any:
        """Draw the result."""
        # Drawn above the rooms that results come from.
        from .derivations.figures import draw_picture

        return draw_picture(self.picture(), ax=ax, **style)


Drawn.plot.__doc__ = f"Draw the result.\n\nParameters\n----------{_AXES}"
