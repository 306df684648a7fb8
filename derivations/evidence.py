"""Evidence for claims: what a check computes, what it found and what that rests on.

Importing this module imports neither SymPy nor numpy.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from typing import Any

from ..errors import MissingDependencyError
from .claim_options import Option, arguments_of

__all__ = ["Check", "Deferred", "Evidence", "EvidenceKind", "Finding", "proof"]


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
class Check:
    """A computation that supports a claim.

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
    shows_progress : bool
        Whether it has a progress bar of its own.
    """

    kind: EvidenceKind
    description: str
    compute: Callable[..., Finding]
    slow: bool = False
    options: tuple[Option, ...] = ()
    shows_progress: bool = False

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
        arguments = arguments_of(self, options or {})
        if self.shows_progress:
            arguments["progress"] = progress
        begin = time.perf_counter()
        try:
            found = self.compute(**arguments)
            passed, summary, details = bool(found.passed), found.summary, found.details
        except MissingDependencyError:
            raise
        except Exception as error:
            first_line = str(error).partition("\n")[0]
            passed, details = False, {"error": f"{type(error).__name__}: {error}"}
            summary = f"the check broke with {type(error).__name__}: {first_line}"
        seconds = time.perf_counter() - begin
        return Evidence(self.kind, summary, passed, details, self.description, seconds)


@dataclass(frozen=True)
class Deferred:
    """Evidence that is imported when it is asked for: it needs SymPy, numpy and models.

    Attributes
    ----------
    package : str
        ``__package__`` of the claims.
    module, function : str
        Where the evidence is, relative to the package.
    """

    package: str | None
    module: str
    function: str

    def load(self) -> Callable[..., Finding]:
        """Import the function."""
        found: Callable[..., Finding] = getattr(
            import_module(f".{self.module}", self.package), self.function
        )
        return found

    def __call__(self, **options: object) -> Finding:
        """Compute the evidence."""
        return self.load()(**options)


def proof(
    package: str | None,
    function: str,
    description: str,
    *,
    module: str = "evidence_certified",
    slow: bool = False,
    **arguments: Any,
) -> Check:
    """Return a check by proven intervals.

    Parameters
    ----------
    package : str
        ``__package__`` of the claims.
    function : str
        Computes the finding; without python-flint it raises MissingDependencyError.
    description : str
    module : str
        Of the package.
    slow : bool
    **arguments
        Of the function.
    """
    compute: Callable[..., Any] = Deferred(package, module, function)
    if arguments:
        compute = functools.partial(compute, **arguments)
    return Check(EvidenceKind.CERTIFIED, description, compute, slow)


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
