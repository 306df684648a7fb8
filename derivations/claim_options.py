"""Options of checks: what a user may change about the evidence for a claim, such as its size."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..errors import ParameterError


@dataclass(frozen=True)
class Option:
    """A whole number, or a folder, that a check takes.

    Attributes
    ----------
    name : str
    meaning : str
        Half a sentence.
    default : int or None
        What a quick check uses; None for a folder, which is then not used.
    minimum : int or None
        Smallest number; None marks a folder.
    multiple : int
        What the number has to be a multiple of.
    """

    name: str
    meaning: str
    default: int | None
    minimum: int | None = 1
    multiple: int = 1

    def checked(self, value: Any) -> Any:
        """Return a value that a user gave; a folder is made if it is not there.

        Raises
        ------
        ParameterError
            If it is not of the right kind, too small or no multiple.
        OSError
            If the folder cannot be made.
        """
        if self.minimum is None:
            if (isinstance(value, str) and value) or hasattr(value, "__fspath__"):
                # Made at once: a folder that cannot be used is no surprise after an hour.
                Path(value).expanduser().mkdir(parents=True, exist_ok=True)
                return value
            raise ParameterError(f"{self.name} must be a folder, got {value!r}")
        # numpy is not imported for this: its integers are registered as Integral.
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise ParameterError(f"{self.name} must be a whole number, got {value!r}")
        if value < self.minimum:
            raise ParameterError(f"{self.name} must be >= {self.minimum}, got {value}")
        if value % self.multiple:
            wanted = "even" if self.multiple == 2 else f"a multiple of {self.multiple}"
            raise ParameterError(f"{self.name} must be {wanted}, got {value}")
        return int(value)

    def __str__(self) -> str:
        shown = "" if self.default is None else f" [{self.default}]"
        return f"{self.name}: {self.meaning}{shown}"


class _Optional(Protocol):
    @property
    def options(self) -> tuple[Option, ...]: ...


class _Named(Protocol):
    @property
    def identifier(self) -> str: ...

    @property
    def checks(self) -> Iterable[_Optional]: ...


def options_of(claim: _Named) -> dict[str, Option]:
    """Return the options that the checks of a claim know, by name."""
    return {option.name: option for check in claim.checks for option in check.options}


def check_options(claims: Iterable[_Named], given: Mapping[str, Any]) -> None:
    """Refuse options that one of the claims does not know, and values that cannot be.

    Raises
    ------
    ParameterError
        The message names the claim and the options that it knows.
    """
    for claim in claims:
        known = options_of(claim)
        for name, value in given.items():
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                listed = ", ".join(known) if known else "none"
                raise ParameterError(
                    f"claim {claim.identifier!r} has no option {name!r}{hint}\n"
                    f"  options of this claim: {listed}"
                )
            known[name].checked(value)


def arguments_of(check: _Optional, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a check is called with: its options, given or by default."""
    return {
        option.name: option.checked(given[option.name]) if option.name in given else option.default
        for option in check.options
    }
