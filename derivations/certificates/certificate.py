"""What a proof by intervals leaves behind: proven intervals, and in words what is proven."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...errors import ParameterError
from ..json_document import JsonDocument
from .certified_values import LIBRARIES, intervals_html, list_html

if TYPE_CHECKING:
    from ...symbolic.enclosures import Enclosure

ASSUMPTIONS = (
    *LIBRARIES,
    "this package is right about what it makes of the equations: their form as steps, kinks and "
    "bounds of activations",
)
"""What every certificate assumes about software and input."""


@dataclass(frozen=True)
class Certificate(JsonDocument):
    """Proven intervals for the solution of a system of equations.

    Attributes
    ----------
    system : str
        Name of the system.
    parameters : mapping from str to str
        Where it was solved: decimal numbers, or intervals of what is no rational number.
    values : mapping from str to Enclosure
        Every output and unknown, the main output first.
    box : mapping from str to Enclosure
        Unknowns of nonlinear equations: in this box there is exactly one solution. Empty where the
        solution is a closed form or that of linear equations.
    digits : int
        Digits asked for.
    bits : int
        Working precision.
    panels : int
        Panels of the line over which integrals were enclosed; 0 without integrals.
    contraction : float
        Bound of the norm of 1 − Y F'(box), weighted by the sides of the box, below 1; 0 without
        nonlinear equations.
    statement : str
        What is proven.
    assumptions : tuple of str
        On what.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> from giantstep import OneGradientStep
    >>> model = OneGradientStep("erf", "tanh", alpha=2.5, beta=1.2, noise_variance=0.16)
    >>> certificate = model.risk(ridge=0.1, certify=True).certificate
    >>> certificate.values["risk_trained"].digits >= 15, certificate.width < 1e-14
    (True, True)
    """

    kind = "certificate"

    system: str
    parameters: Mapping[str, str]
    values: Mapping[str, Enclosure]
    box: Mapping[str, Enclosure] = field(repr=False)
    digits: int
    bits: int = field(repr=False)
    panels: int = field(repr=False)
    contraction: float = field(repr=False)
    statement: str
    assumptions: tuple[str, ...] = field(repr=False, default=ASSUMPTIONS)

    def __getitem__(self, name: str) -> Enclosure:
        try:
            return self.values[name]
        except KeyError:
            raise ParameterError(
                f"nothing is certified under the name {name!r}; there are: {', '.join(self.values)}"
            ) from None

    @property
    def main(self) -> str:
        """Name of the main output."""
        return next(iter(self.values))

    @property
    def widths(self) -> dict[str, float]:
        """Length of every interval, rounded up."""
        return {name: _rounded_up(value) for name, value in self.values.items()}

    @property
    def width(self) -> float:
        """Length of the interval of the main output, rounded up."""
        return _rounded_up(self.values[self.main])

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        return f"certified: a proven interval of width {self.width:.1e} around {self.main}"

    def resting_on(self, *assumptions: str) -> Certificate:
        """Return the certificate with further assumptions, those of a model."""
        return replace(self, assumptions=(*self.assumptions, *assumptions))

    def numbers(self, digits: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return midpoints and how far the true values can be from them.

        Parameters
        ----------
        digits : int or None
            Digits of the mpmath numbers that are returned; None for floats.
        """
        if digits is None:
            values = {name: _float(x.midpoint) for name, x in self.values.items()}
            # Half a width; the conversion of the midpoint rounds, too.
            errors = {
                name: math.nextafter(self.widths[name] / 2 + abs(x) * 2.0**-53, math.inf)
                for name, x in values.items()
            }
            return values, errors
        from ...runtime.precision import local_context

        ctx = local_context(digits)

        def number(x: Any) -> Any:
            return ctx.mpf(int(x.p)) / int(x.q)

        exact = {name: number(x.midpoint) for name, x in self.values.items()}
        # Conversions round by less than one part in 2^precision each.
        bounds = {
            name: 2 * (number(x.radius) + abs(exact[name]) * ctx.eps)
            for name, x in self.values.items()
        }
        return exact, bounds

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; intervals as exact hexadecimal numbers."""
        fields: dict[str, Any] = {k: v for k, v in self.__dict__.items()}
        fields["parameters"] = dict(self.parameters)
        fields["assumptions"] = list(self.assumptions)
        for group in ("values", "box"):
            fields[group] = {name: value.to_dict() for name, value in fields[group].items()}
        return fields

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Certificate:
        """Return the certificate that :meth:`to_dict` wrote.

        Raises
        ------
        ParameterError
            If the data are none.
        """
        from ...symbolic.enclosures import Enclosure

        try:
            fields = dict(data)
            fields["assumptions"] = tuple(map(str, fields["assumptions"]))
            fields["parameters"] = {str(k): str(v) for k, v in fields["parameters"].items()}
            for group in ("values", "box"):
                fields[group] = {k: Enclosure.from_dict(v) for k, v in fields[group].items()}
            for name in ("digits", "bits", "panels"):
                if isinstance(fields[name], bool) or not isinstance(fields[name], int):
                    raise TypeError(f"{name} is no integer")
            fields["contraction"] = float(fields["contraction"])
            if not fields["values"]:
                raise ValueError("it holds no values")
            return cls(**fields)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ParameterError(f"data are no certificate: {error}") from None

    def __str__(self) -> str:
        pad = max(map(len, self.values))
        lines = [f"{name:<{pad}}  {value}" for name, value in self.values.items()]
        bullets = [f"  - {text}" for text in self.assumptions]
        return "\n".join([self.statement, *lines, "on the assumptions that", *bullets])

    def _repr_html_(self) -> str:
        return (
            f"<p>{html.escape(self.statement)}</p>{intervals_html(self.values)}"
            f"<p>on the assumptions that</p>{list_html(self.assumptions)}"
        )


def _float(number: Any) -> float:
    return int(number.p) / int(number.q)


def _rounded_up(value: Enclosure) -> float:
    width = 2 * value.radius
    if width == 0:
        return 0.0
    try:
        number = int(width.p) / int(width.q)
    except OverflowError:
        return math.inf
    return math.nextafter(number, math.inf)
