"""Published results as claims: a statement, where it comes from, and evidence to recompute.

Every line of work has a module ``claims`` with a tuple ``CLAIMS``; :func:`claims` collects them
and :func:`verify` runs their checks. A check says what its evidence rests on: exact algebra, a
proven interval, quadrature to many digits, or simulation with a standard error. Nothing is taken
on trust: evidence is computed when it is asked for, and a check that breaks has failed.

Importing this module imports neither SymPy nor numpy.
"""

from __future__ import annotations

import difflib
import html
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from typing import Any

from ..errors import ParameterError
from .claim_options import Option, arguments_of, check_options

__all__ = [
    "Check",
    "Claim",
    "Evidence",
    "EvidenceKind",
    "Finding",
    "Option",
    "Status",
    "Verdict",
    "claims",
    "to_json",
    "verify",
]

_LINES_OF_WORK = (
    "spiked_random_features", "hermite_gradients", "giant_steps", "one_gradient_step"
)  # fmt: skip


class EvidenceKind(StrEnum):
    """What a piece of evidence rests on, from the strongest to the weakest."""

    EXACT = "exact"
    CERTIFIED = "certified"
    QUADRATURE = "quadrature"
    SIMULATION = "simulation"


class Status(StrEnum):
    """What a statement is in its source."""

    THEOREM = "theorem"
    REPLICA = "result by the replica method"
    CONJECTURE = "conjecture"
    DERIVED_HERE = "derived here"


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
        """
        arguments = arguments_of(self, options or {})
        if self.shows_progress:
            arguments["progress"] = progress
        begin = time.perf_counter()
        try:
            found = self.compute(**arguments)
            passed, summary, details = bool(found.passed), found.summary, found.details
        except Exception as error:
            first_line = str(error).partition("\n")[0]
            passed, details = False, {"error": f"{type(error).__name__}: {error}"}
            summary = f"the check broke with {type(error).__name__}: {first_line}"
        seconds = time.perf_counter() - begin
        return Evidence(self.kind, summary, passed, details, self.description, seconds)


@dataclass(frozen=True)
class Claim:
    """A statement with the checks that support it.

    Attributes
    ----------
    identifier : str
        Such as "cui-3.1".
    title : str
    statement : str
        In LaTeX: text with mathematics between dollar signs.
    source : str
        Where it is published, or that it is derived here.
    status : Status
        What it is there.
    checks : tuple of Check
        At least one of them is not slow.
    """

    identifier: str
    title: str
    statement: str
    source: str
    status: Status
    checks: tuple[Check, ...]

    def verify(self, *, slow: bool = False, **options: Any) -> Verdict:
        """Run the checks of this claim alone; see :func:`verify`."""
        check_options([self], options)
        return _verdict(self, slow, options, lambda: None, progress=False)

    def __repr__(self) -> str:
        return f"Claim({self.identifier!r}: {self.title})"

    def __str__(self) -> str:
        lines = [
            f"{self.identifier}: {self.title} ({self.status.value}; {self.source})",
            f"  {self.statement}",
        ]
        for check in self.checks:
            lines.append(
                f"  - {check.kind.value}{', slow' if check.slow else ''}: {check.description}"
            )
            lines += [f"      option {option}" for option in check.options]
        return "\n".join(lines)

    def _repr_latex_(self) -> str:
        return rf"**{self.identifier}** ({self.title}). {self.statement}"

    def _repr_html_(self) -> str:
        checks = "".join(
            f"<li>{check.kind.value}: {html.escape(check.description)}</li>"
            for check in self.checks
        )
        return (
            f"<h4>{html.escape(self.identifier)}: {html.escape(self.title)}</h4>"
            f"<p>{html.escape(self.statement)}</p>"
            f"<p><em>{self.status.value}; {html.escape(self.source)}</em></p><ul>{checks}</ul>"
        )


@dataclass(frozen=True)
class Verdict:
    """A claim with its evidence, freshly computed.

    Attributes
    ----------
    claim : Claim
    evidence : tuple of Evidence
        One for each check that ran.
    passed : bool
        Every check that ran passed, and at least one ran.
    skipped : tuple of str
        Descriptions of the slow checks that were left out.
    """

    claim: Claim
    evidence: tuple[Evidence, ...]
    passed: bool
    skipped: tuple[str, ...] = ()

    def __repr__(self) -> str:
        mark = "passed" if self.passed else "FAILED"
        return f"Verdict({self.claim.identifier!r}: {mark}, {len(self.evidence)} checks)"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: texts, numbers, lists and dictionaries."""
        claim = self.claim
        return {
            "identifier": claim.identifier,
            "title": claim.title,
            "statement": claim.statement,
            "source": claim.source,
            "status": claim.status.value,
            "passed": self.passed,
            "evidence": [evidence.to_dict() for evidence in self.evidence],
            "skipped": list(self.skipped),
        }

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        mark = "passed" if self.passed else "FAILED"
        lines = [
            f"{mark}  {self.claim.identifier}: {self.claim.title} ({self.claim.status.value})",
            *(f"    {evidence}" for evidence in self.evidence),
            *(f"    skipped (slow): {description}" for description in self.skipped),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{'passed' if e.passed else '<strong>FAILED</strong>'}</td>"
            f"<td>{e.kind.value}</td><td>{html.escape(e.description)}</td>"
            f"<td>{html.escape(e.summary)}</td></tr>"
            for e in self.evidence
        )
        skipped = "".join(
            f"<tr><td>skipped</td><td></td><td>{html.escape(text)}</td><td>slow</td></tr>"
            for text in self.skipped
        )
        claim = self.claim
        return (
            f"<h4>{html.escape(claim.identifier)}: {html.escape(claim.title)}</h4>"
            f"<p>{html.escape(claim.statement)}</p><table>{rows}{skipped}</table>"
        )


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


def claims() -> tuple[Claim, ...]:
    """Return all claims of all lines of work.

    Examples
    --------
    >>> [claim.identifier for claim in claims()][:3]
    ['cui-3.1', 'cui-3.2', 'cui-3.3']
    """
    found: list[Claim] = []
    for name in _LINES_OF_WORK:
        found += import_module(f".{name}.claims", __package__).CLAIMS
    return tuple(found)


def verify(
    names: Sequence[str] | None = None,
    *,
    slow: bool = False,
    progress: bool = True,
    **options: Any,
) -> list[Verdict]:
    """Recompute the evidence of claims.

    Parameters
    ----------
    names : sequence of str, optional
        Identifiers; default: all claims.
    slow : bool
        Run slow checks too; simulations of networks take minutes.
    progress : bool
        Show a progress bar on the standard error stream if it takes longer than a second.
    **options
        What checks of the named claims are to be run with, such as ``targets=50, dimension=400``
        for "conjecture-1"; every named claim has to know all of them. Checks that do not know one
        run as always.

    Returns
    -------
    list of Verdict
        In the order of `names`.

    Raises
    ------
    ParameterError
        If there is no claim of a name, a claim does not know an option, an option has a value
        that cannot be, or options are given without names.
    """
    # Imported here: tqdm.auto looks for notebook widgets, which costs time at every import.
    from tqdm.auto import tqdm

    chosen = _choose(names)
    if options and names is None:
        raise ParameterError(
            f"{', '.join(options)}: options belong to claims that are named, as in "
            "verify(['conjecture-1'], targets=50)"
        )
    check_options(chosen, options)
    total = sum(slow or not check.slow for claim in chosen for check in claim.checks)
    with tqdm(total=total, delay=1, disable=not progress, unit="check") as bar:
        return [_verdict(claim, slow, options, bar.update, progress=progress) for claim in chosen]


def to_json(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as a JSON list of plain values, to be stored."""
    return json.dumps(
        [verdict.to_dict() for verdict in verdicts], indent=2, ensure_ascii=False, allow_nan=False
    )


def _choose(names: Sequence[str] | None) -> tuple[Claim, ...]:
    known = {claim.identifier: claim for claim in claims()}
    if names is None:
        return tuple(known.values())
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ParameterError(f"no claim {name!r}{hint}\n  claims: {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(wanted))


def _verdict(
    claim: Claim,
    slow: bool,
    options: Mapping[str, Any],
    tick: Callable[[], object],
    *,
    progress: bool,
) -> Verdict:
    evidence, skipped = [], []
    for check in claim.checks:
        if check.slow and not slow:
            skipped.append(check.description)
            continue
        evidence.append(check.run(options, progress=progress))
        tick()
    passed = bool(evidence) and all(e.passed for e in evidence)
    return Verdict(claim, tuple(evidence), passed, tuple(skipped))


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
