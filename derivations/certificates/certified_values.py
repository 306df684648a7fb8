"""Proven intervals of quantities with a formula: closed forms, expectations, roots of polynomials.

There is no saddle point behind them, so nothing but the numbers themselves is proven.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...pages import Block, Listing, Table
from ...result import Result, quantity

if TYPE_CHECKING:
    from ...symbolic.enclosures import Enclosure

LIBRARIES = (
    "python-flint (Arb) computes enclosures that hold",
    "SymPy is right about derivatives, cancellations and assumptions of the formulas",
    "floats given as parameters mean the decimal numbers that they print as",
)
"""What every proof by intervals rests on."""


@dataclass(frozen=True, repr=False)
class CertifiedValues(Result):
    """Quantities with proven intervals.

    Attributes
    ----------
    title : str
        What the quantities belong to.
    values : mapping of str to Enclosure
        The true value lies in the interval, ends included.
    statement : str
        What is proven, in one sentence.
    assumptions : tuple of str
        What the proof rests on.
    digits : int
        Digits asked for.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> from giantstep import OneGradientStep
    >>> model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=4)
    >>> proof = model.weight_spike(certify=True).certificate
    >>> proof["theta2"].contains("1.6976527263135504"), proof.width < 1e-15
    (False, True)
    """

    _document = "certified values"
    _where = ("title",)

    title: str
    values: Mapping[str, Enclosure] = field(metadata=quantity("proven intervals"))
    statement: str
    assumptions: tuple[str, ...] = ()
    digits: int = 15

    @classmethod
    def _imported(cls) -> dict[str, Any]:
        return enclosures()

    def __getitem__(self, name: str) -> Enclosure:
        return self.values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def width(self) -> float:
        """Largest length of an interval relative to its number; that of a zero absolutely."""
        return max((_width(value) for value in self.values.values()), default=0.0)

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        return f"certified intervals of relative width {self.width:.1e}"

    def page(self) -> Iterable[Block]:
        """Return the intervals, what is proven of them and on which assumptions."""
        yield self.title
        yield Table([(row.words, row.text) for row in self.rows()], ("quantity", "proven interval"))
        yield self.statement
        yield "assumed:"
        yield Listing(self.assumptions, mark="")


def enclosures() -> dict[str, Any]:
    """Return the type of intervals, for results that are read; importing it needs SymPy."""
    from ...symbolic.enclosures import Enclosure

    return {"Enclosure": Enclosure}


def midpoint(value: Enclosure, ctx: Any = None) -> Any:
    """Return the midpoint of an interval as a float, or rounded to the precision of a context."""
    if ctx is None:
        return float(value.midpoint)
    return ctx.mpf(int(value.midpoint.p)) / int(value.midpoint.q)


def _width(value: Enclosure) -> float:
    if value.is_exact:
        return 0.0
    size = 1 if value.contains_zero else abs(value.midpoint)
    found = float((2 * value.radius / size).evalf(5))
    return found if math.isfinite(found) else math.inf
