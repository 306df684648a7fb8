"""Evidence for claims: what a check computes, what it takes, what it found and on what that rests.

Importing this module imports neither SymPy nor numpy.
"""

from __future__ import annotations

import math
import numbers
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from inspect import signature
from pathlib import Path
from typing import Any

from ..errors import ApproximationWarning, MissingDependencyError, ParameterError

__all__ = ["Check", "Evidence", "EvidenceKind", "Finding", "Option"]


class EvidenceKind(StrEnum):
    """What a piece of evidence rests on, from the strongest to the weakest."""

    EXACT = "exact"
    CERTIFIED = "certified"
    QUADRATURE = "quadrature"
    SIMULATION = "simulation"


@dataclass(frozen=True)
class Finding:
    """What the computation of a check found.

    Attributes
    ----------
    passed : bool
    summary : str
        One sentence with the figures that decide.
    details : mapping
        Named values: numbers, texts, and lists or mappings of them.
    """

    passed: bool
    summary: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """The outcome of a check.

    Attributes
    ----------
    kind : EvidenceKind
    summary : str
        What was found, with the figures that decide; of a check that broke, the error.
    passed : bool
    details : mapping
        Named values.
    description : str
        What was checked.
    seconds : float
        How long it took.
    """

    kind: EvidenceKind
    summary: str
    passed: bool
    details: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: texts, numbers, lists and dictionaries."""
        return {
            "kind": self.kind.value,
            "description": self.description,
            "summary": self.summary,
            "passed": self.passed,
            "seconds": round(self.seconds, 3),
            "details": _plain(self.details),
        }

    def __str__(self) -> str:
        mark = "passed" if self.passed else "FAILED"
        return f"{mark}  {self.kind.value:<10} {self.description}: {self.summary}"


@dataclass(frozen=True)
class Option:
    """A whole number, or a folder, that a check takes: what a user may change about it.

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


@dataclass(frozen=True)
class Check:
    """A computation that supports a claim; :func:`.claims.evidence` makes it of a function.

    Attributes
    ----------
    kind : EvidenceKind
    description : str
        What is checked.
    compute : callable
        Computes a :class:`Finding`; takes its options by name, and `progress` if it shows any.
    slow : bool
        Takes more than a few seconds; left out unless asked for.
    options : tuple of Option
        What a user may change about it.
    arguments : mapping
        What it is computed with otherwise, by name.
    """

    kind: EvidenceKind
    description: str
    compute: Callable[..., Finding]
    slow: bool = False
    options: tuple[Option, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def shows_progress(self) -> bool:
        """Whether it has a progress bar of its own."""
        return "progress" in signature(self.compute).parameters

    def run(self, options: Mapping[str, Any] | None = None, *, progress: bool = False) -> Evidence:
        """Recompute the evidence. An exception inside the check makes it fail.

        Without a package that it needs the check says nothing about the claim, neither for nor
        against it; that error is the caller's.

        Parameters
        ----------
        options : mapping, optional
            By name; those that the check does not know are left out, the others are at their
            defaults.
        progress : bool
            Show its progress bar, if it has one.

        Raises
        ------
        ParameterError
            If an option has a value that cannot be.
        MissingDependencyError
            If it needs an optional package that is not installed.
        """
        given = options or {}
        arguments = dict(self.arguments)
        for option in self.options:
            known = option.name in given
            arguments[option.name] = option.checked(given[option.name]) if known else option.default
        if self.shows_progress:
            arguments["progress"] = progress
        begin = time.perf_counter()
        try:
            with warnings.catch_warnings():
                # How well a theory describes networks is checked here, and no news.
                warnings.simplefilter("ignore", ApproximationWarning)
                result = self.compute(**arguments)
            if not isinstance(result, Finding):
                raise TypeError(f"it returned {type(result).__name__}, not a Finding")
            if isinstance(result.passed, str):
                raise TypeError(f"passed of a Finding must be true or false, not {result.passed!r}")
            passed, summary, details = bool(result.passed), result.summary, result.details
        except MissingDependencyError:
            raise
        except Exception as error:
            first_line = str(error).partition("\n")[0]
            passed, details = False, {"error": f"{type(error).__name__}: {error}"}
            summary = f"the check broke with {type(error).__name__}: {first_line}"
        seconds = time.perf_counter() - begin
        return Evidence(self.kind, summary, passed, details, self.description, seconds)


def _plain(value: Any) -> Any:
    """Turn details into what JSON knows; numbers of other libraries go through float or text."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        # JSON has no infinities.
        return float(value) if math.isfinite(value) else str(float(value))
    if value is None or isinstance(value, str | bool | int):
        return value
    return str(value)
