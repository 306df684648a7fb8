"""Derivatives of outputs with respect to parameters as a mapping, with their errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...digits import held_digits
from ...errors import ParameterError
from ...packed_numbers import SentWithDigits
from ...pages import Block, Page, Table


@dataclass(frozen=True, eq=False)
class Derivatives(SentWithDigits, Page, Mapping[tuple[str, str], Any]):
    """Derivatives at one point: ``found["test_error", "ridge"]``.

    Attributes
    ----------
    derivatives : mapping from (output, parameter) to float or mpmath number
    errors : mapping from (output, parameter) to number
        Estimated absolute errors.
    excluded : mapping from str to str
        Parameters without a derivative here, with the reason.
    digits : int or None
        Digits asked for; None for floats.
    """

    derivatives: Mapping[tuple[str, str], Any]
    errors: Mapping[tuple[str, str], Any]
    excluded: Mapping[str, str]
    digits: int | None = field(default=None, kw_only=True)

    def __getitem__(self, key: tuple[str, str]) -> Any:
        if not (isinstance(key, tuple) and len(key) == 2):
            example = next(iter(self.derivatives), ("output", "parameter"))
            raise ParameterError(
                f"give an output and a parameter, as in found{list(example)}, got {key!r}"
            )
        if key in self.derivatives:
            return self.derivatives[key]
        output, parameter = key
        if parameter in self.excluded:
            raise ParameterError(
                f"there is no derivative with respect to {parameter}: {self.excluded[parameter]}"
            )
        for kind, name, known in (
            ("output", output, self.outputs), ("parameter", parameter, self.parameters),
        ):  # fmt: skip
            if name not in known:
                raise ParameterError(f"no {kind} {name!r}; there are {', '.join(known)}")
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return key in self.derivatives

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.derivatives)

    def __len__(self) -> int:
        return len(self.derivatives)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Quantities that were differentiated."""
        return tuple(dict.fromkeys(output for output, _ in self.derivatives))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameters with respect to which they were."""
        return tuple(dict.fromkeys(parameter for _, parameter in self.derivatives))

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        if self.digits is not None:
            from .precise import promise

            return promise(self.digits, self.errors, self.derivatives)
        worst = max(self.errors.values(), default=0.0)
        return f"float, exact derivatives of the equations, estimated errors up to {worst:.1e}"

    def error(self, output: str, parameter: str) -> Any:
        """Return the estimated absolute error of one derivative."""
        _ = self[output, parameter]
        return self.errors[output, parameter]

    def text(self, output: str, parameter: str) -> str:
        """Return one derivative with the digits that were asked for."""
        value = self[output, parameter]
        if self.digits is None:
            return f"{value:.10g}"
        return held_digits(value, self.digits, self.errors[output, parameter])

    def page(self) -> Iterable[Block]:
        """Return a table of the derivatives, what has none, and what they rest on."""
        rows = [(o, *(self.text(o, p) for p in self.parameters)) for o in self.outputs]
        yield Table(rows, ("derivative of, with respect to", *self.parameters))
        yield from self.remarks()

    def __repr__(self) -> str:
        shown = [f"d {o}/d {p} = {float(v):.6g}" for (o, p), v in list(self.items())[:4]]
        return f"{type(self).__name__}({', '.join(shown)}{', …' if len(self) > 4 else ''})"

    def remarks(self) -> list[str]:
        """Return what has no derivative and what the numbers rest on, line by line."""
        return [f"{name}: none, {why}" for name, why in self.excluded.items()] + [self.rests_on]


def value_of(name: str) -> str:
    """Return the name under which the value of an unknown is an output."""
    return f"value_{name}"
