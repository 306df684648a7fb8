"""One solution of a system: outputs and order parameters, their errors, what they rest on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import ParameterError
from ...result import Number, Result, Row, quantity
from ..certificates.certificate import Certificate
from .precise import promise


@dataclass(frozen=True, repr=False)
class KernelSolution(Result):
    """The solution at one point.

    Outputs and unknowns are attributes, too: ``solution.q``.

    Attributes
    ----------
    kernel : str
        Name of the system.
    parameters : mapping from str to float
        Where it was solved.
    values : mapping from str to float or mpmath number
        Outputs, then the unknowns of the equations.
    errors : mapping from str to number
        Estimated absolute error of each value: quadrature and rounding; with digits, the sum of the
        `budget`, as numbers of mpmath.
    residual : float
        Largest relative residual of the equations.
    iterations : int
        Newton iterations.
    nodes : int
        Quadrature nodes.
    digits : int or None
        Digits asked for; None for a float solution.
    labels : mapping from str to str
        LaTeX of the names.
    certificate : Certificate or None
        Proven intervals, where a proof was asked for; `values` are their midpoints then.
    """

    _document = "kernel solution"

    kernel: str
    parameters: Mapping[str, float]
    values: Mapping[str, Number] = field(metadata=quantity("values"))
    errors: Mapping[str, Number]
    residual: float
    iterations: int
    nodes: int
    digits: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)
    budget: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)
    certificate: Certificate | None = None

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        if self.certificate is not None:
            return self.certificate.rests_on
        if self.digits is not None:
            return promise(self.digits, self.errors, self.values)
        worst = max(self.errors.values(), default=0.0)
        unknown = [name for name, error in self.errors.items() if not math.isfinite(error)]
        if unknown:
            return (
                f"float WITHOUT an error estimate for {', '.join(unknown)}: quadrature rules do "
                f"not resolve the equations here, so digits may be wrong; "
                f"residual {self.residual:.1e}"
            )
        return f"float with error estimates of at most {worst:.1e}, residual {self.residual:.1e}"

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("values", {})
        if name in values:
            return values[name]
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}; values: {', '.join(values)}"
        )

    def __getitem__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise ParameterError(
                f"no value is named {name!r}; there are: {', '.join(self.values)}"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Return parameters and values by name, as for one row of a table."""
        return {**self.parameters, **self.values}

    def entries(self) -> list[Row]:
        """Return the values, with the symbols of their system."""
        labels = self.labels
        return [
            replace(row, symbol=labels.get(row.name, _plain(row.name))) for row in super().entries()
        ]

    def __repr__(self) -> str:
        given = [f"{name}={value:g}" for name, value in self.parameters.items()]
        found = [f"{row.name}={row.text}" for row in self.entries()[:4]]
        more = ["…"] if len(self.values) > 4 else []
        return f"KernelSolution({', '.join([self.kernel, *given])}: {', '.join([*found, *more])})"


def _finite(value: float) -> float | str:
    # JSON has no infinity; float() reads the text.
    return float(value) if math.isfinite(value) else str(float(value))


def _plain(name: str) -> str:
    return rf"\mathrm{{{name}}}".replace("_", r"\_")
