"""One solution of a system: outputs and order parameters, their errors, what they rest on."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...digits import checked_digits, error_text, held_digits
from ...errors import ParameterError
from ...numeric.packed_numbers import SentWithDigits

if TYPE_CHECKING:
    from ..certificates.certificate import Certificate

_KIND = "giantstep kernel solution"


@dataclass(frozen=True)
class KernelSolution(SentWithDigits):
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

    kernel: str
    parameters: Mapping[str, float]
    values: Mapping[str, Any]
    errors: Mapping[str, Any]
    residual: float
    iterations: int
    nodes: int
    digits: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    budget: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    certificate: Certificate | None = field(default=None, repr=False)

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        if self.certificate is not None:
            return self.certificate.rests_on
        if self.digits is not None:
            from .precise import promise

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

    def to_json(self) -> str:
        """Return the solution as JSON; digits are kept as text. :meth:`from_json` reads it."""
        fields = {k: v for k, v in self.__dict__.items() if k != "labels"}
        fields["values"] = {name: self._exact(v) for name, v in self.values.items()}
        fields["errors"] = {k: self._exact_error(v) for k, v in self.errors.items()}
        fields["budget"] = {
            part: {k: self._exact_error(v) for k, v in found.items()}
            for part, found in self.budget.items()
        }
        fields["parameters"] = dict(self.parameters)
        fields["labels"] = dict(self.labels)
        fields["certificate"] = None if self.certificate is None else self.certificate.to_dict()
        return json.dumps({"kind": _KIND, **fields}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> KernelSolution:
        """Return the solution that :meth:`to_json` wrote.

        Raises
        ------
        ParameterError
            If the text is not such a solution.
        """
        try:
            fields = json.loads(text)
            if not isinstance(fields, dict) or fields.pop("kind", "") != _KIND:
                raise ValueError(f"it has no entry 'kind': {_KIND!r}")
            make: Any = float
            if fields["digits"] is not None:
                from ...runtime.precision import local_context

                make = local_context(checked_digits(fields["digits"])).mpf
                fields["values"] = {k: make(v) for k, v in fields["values"].items()}
            fields["errors"] = {k: make(v) for k, v in fields["errors"].items()}
            fields["budget"] = {
                part: {k: make(v) for k, v in found.items()}
                for part, found in fields.get("budget", {}).items()
            }
            if fields.get("certificate") is not None:
                from ..certificates.certificate import Certificate

                fields["certificate"] = Certificate.from_dict(fields["certificate"])
            return cls(**fields)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ParameterError(f"text is not a solution written by to_json: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return parameters and values by name, as for one row of a table."""
        return {**self.parameters, **self.values}

    def _exact(self, value: Any) -> Any:
        if self.digits is None:
            return float(value)
        import mpmath

        from ...runtime.precision import local_context

        # So many digits that the same binary number is read back.
        digits = mpmath.libmp.repr_dps(local_context(self.digits).prec)
        return str(mpmath.nstr(value, digits, strip_zeros=False))

    def _exact_error(self, error: Any) -> Any:
        return _finite(error) if self.digits is None else self._exact(error)

    def _shown(self, name: str) -> str:
        value = self.values[name]
        if self.digits is None:
            return f"{float(value):.12g}"
        return held_digits(value, self.digits, self.errors.get(name))

    def __str__(self) -> str:
        width = max(map(len, self.values), default=0) + 1
        lines = [f"{name:<{width}} {self._shown(name)}" for name in self.values]
        return "\n".join([*lines, self.rests_on])

    def __repr__(self) -> str:
        given = [f"{name}={value:g}" for name, value in self.parameters.items()]
        found = [f"{name}={self._shown(name)}" for name in list(self.values)[:4]]
        more = ["…"] if len(self.values) > 4 else []
        return f"KernelSolution({', '.join([self.kernel, *given])}: {', '.join([*found, *more])})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{self._shown(name)}</td>"
            f"<td>± {error_text(self.errors[name])}</td></tr>"
            for name in self.values
        )
        return f"<table>{rows}</table><p>{html.escape(self.rests_on)}</p>"

    def _repr_latex_(self) -> str:
        rows = (
            rf"{self.labels.get(name, _plain(name))} &= {self._shown(name)}" for name in self.values
        )
        return "$\\displaystyle \\begin{aligned}" + r" \\ ".join(rows) + "\\end{aligned}$"


def _finite(value: float) -> float | str:
    # JSON has no infinity; float() reads the text.
    return float(value) if math.isfinite(value) else str(float(value))


def _plain(name: str) -> str:
    return rf"\mathrm{{{name}}}".replace("_", r"\_")
