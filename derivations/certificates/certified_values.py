"""Proven intervals of quantities with a formula: closed forms, expectations, roots of polynomials.

There is no saddle point behind them, so nothing but the numbers themselves is proven.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import ParameterError
from ..json_document import JsonDocument
from ..tables import aligned

if TYPE_CHECKING:
    from ...symbolic.enclosures import Enclosure

LIBRARIES = (
    "python-flint (Arb) computes enclosures that hold",
    "SymPy is right about derivatives, cancellations and assumptions of the formulas",
    "floats given as parameters mean the decimal numbers that they print as",
)
"""What every proof by intervals rests on."""


@dataclass(frozen=True, repr=False)
class CertifiedValues(JsonDocument):
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

    kind = "certified values"

    title: str
    values: Mapping[str, Enclosure]
    statement: str
    assumptions: tuple[str, ...] = ()
    digits: int = 15

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

    def __str__(self) -> str:
        rows = [(name, str(value)) for name, value in self.values.items()]
        lines = [self.title, aligned(("quantity", "proven interval"), rows), self.statement]
        return "\n".join([*lines, "assumed:", *(f"  {text}" for text in self.assumptions)])

    def __repr__(self) -> str:
        return f"CertifiedValues({self.title}: {', '.join(self.values)}; {self.rests_on})"

    def _repr_html_(self) -> str:
        return (
            f"<p>{html.escape(self.title)}</p>{intervals_html(self.values)}"
            f"<p>{html.escape(self.statement)}</p><p>Assumed:</p>{list_html(self.assumptions)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; intervals as exact hexadecimal numbers."""
        return {
            "title": self.title,
            "values": {name: value.to_dict() for name, value in self.values.items()},
            "statement": self.statement,
            "assumptions": list(self.assumptions),
            "digits": self.digits,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CertifiedValues:
        """Return what :meth:`to_dict` wrote.

        Raises
        ------
        ParameterError
            If it is something else.
        """
        from ...symbolic.enclosures import Enclosure

        try:
            enclosures = {str(k): Enclosure.from_dict(v) for k, v in values["values"].items()}
            return cls(
                title=str(values["title"]),
                values=enclosures,
                statement=str(values["statement"]),
                assumptions=tuple(map(str, values["assumptions"])),
                digits=int(values["digits"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ParameterError(
                f"these are no certified values written by to_dict: {error}"
            ) from None


def intervals_html(values: Mapping[str, Enclosure]) -> str:
    """Return a table of intervals in HTML."""
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
        for name, value in values.items()
    )
    return f"<table>{rows}</table>"


def list_html(texts: Iterable[str]) -> str:
    """Return texts as a list in HTML."""
    return f"<ul>{''.join(f'<li>{html.escape(text)}</li>' for text in texts)}</ul>"


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
