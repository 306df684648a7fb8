"""Published results as claims: a statement, where it comes from, and evidence to recompute.

Every line of work has a module ``claims`` with a tuple ``CLAIMS``; :func:`claims` collects them
and :func:`verify` runs their checks. A check says what its evidence rests on: exact algebra, a
proven interval, quadrature to many digits, or simulation with a standard error. Nothing is taken
on trust: evidence is computed when it is asked for, and a check that breaks has failed.

Importing this module imports neither SymPy nor numpy.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any

from ..errors import MissingDependencyError, ParameterError
from ..pages import Block, Indented, Listing, Page, Table
from .claim_options import Option, check_options
from .evidence import Check, Deferred, Evidence, EvidenceKind, Finding

__all__ = [
    "Check",
    "Claim",
    "Deferred",
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


class Status(StrEnum):
    """What a statement is in its source."""

    THEOREM = "theorem"
    REPLICA = "result by the replica method"
    CONJECTURE = "conjecture"
    DERIVED_HERE = "derived here"


@dataclass(frozen=True)
class Claim(Page):
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

    @property
    def proofs(self) -> tuple[Check, ...]:
        """The checks that prove something by intervals."""
        return tuple(check for check in self.checks if check.kind is EvidenceKind.CERTIFIED)

    def verify(self, *, slow: bool = False, certified: bool = False, **options: Any) -> Verdict:
        """Run the checks of this claim alone; see :func:`verify`."""
        _check_proofs([self], certified)
        check_options([self], options)
        checks = self.proofs if certified else self.checks
        return _verdict(self, checks, slow, options, lambda: None, progress=False)

    def __repr__(self) -> str:
        return f"Claim({self.identifier!r}: {self.title})"

    def page(self) -> Iterable[Block]:
        """Return the statement and its checks."""
        yield f"{self.identifier}: {self.title} ({self.status.value}; {self.source})"
        yield Indented([self.statement])
        yield Listing(
            [
                f"{check.kind.value}{', slow' if check.slow else ''}: {check.description}"
                + "".join(f"\n      option {option}" for option in check.options)
                for check in self.checks
            ]
        )

    def _repr_latex_(self) -> str:
        return rf"**{self.identifier}** ({self.title}). {self.statement}"


@dataclass(frozen=True)
class Verdict(Page):
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
    unavailable : tuple of str
        Checks that need a package that is not installed: description and what to install. They
        count neither for the claim nor against it.
    """

    claim: Claim
    evidence: tuple[Evidence, ...]
    passed: bool
    skipped: tuple[str, ...] = ()
    unavailable: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a check failed, or none was there to be run; not the same as not passed."""
        return not self.passed and bool(self.evidence or not (self.unavailable or self.skipped))

    @property
    def outcome(self) -> str:
        """The outcome in a word or two: passed, FAILED, not available or not run."""
        if self.passed or self.failed:
            return "passed" if self.passed else "FAILED"
        return "not available" if self.unavailable else "not run"

    def __repr__(self) -> str:
        return f"Verdict({self.claim.identifier!r}: {self.outcome}, {len(self.evidence)} checks)"

    def page(self) -> Iterable[Block]:
        """Return the outcome and the evidence; a page shows the statement, too."""
        claim = self.claim
        head = f"{self.outcome}  {claim.identifier}: {claim.title} ({claim.status.value})"
        yield Table([(head,)], beside=[(claim.statement,)])
        lines = [
            *map(str, self.evidence),
            *(f"not available: {text}" for text in self.unavailable),
            *(f"skipped (slow): {description}" for description in self.skipped),
        ]
        yield Indented([Listing(lines, mark="")])

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
            "unavailable": list(self.unavailable),
        }

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


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
    certified: bool = False,
    progress: bool = True,
    **options: Any,
) -> list[Verdict]:
    """Recompute the evidence of claims.

    Checks that need a package that is not installed are listed as not available.

    Parameters
    ----------
    names : sequence of str, optional
        Identifiers; default: all claims.
    slow : bool
        Run slow checks too; simulations of networks take minutes.
    certified : bool
        Run nothing but proofs by intervals: of the named claims, by default of all that have one.
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
        that cannot be, options are given without names, or `certified` is asked of a claim that
        has no proof by intervals.
    """
    # Imported here: tqdm.auto looks for notebook widgets, which costs time at every import.
    from tqdm.auto import tqdm

    chosen = _choose(names)
    if options and names is None:
        raise ParameterError(
            f"{', '.join(options)}: options belong to claims that are named, as in "
            "verify(['conjecture-1'], targets=50)"
        )
    if certified and names is None:
        chosen = tuple(claim for claim in chosen if claim.proofs)
    _check_proofs(chosen, certified)
    check_options(chosen, options)
    work = [(claim, claim.proofs if certified else claim.checks) for claim in chosen]
    total = sum(slow or not check.slow for _, checks in work for check in checks)
    with tqdm(total=total, delay=1, disable=not progress, unit="check") as bar:
        return [
            _verdict(claim, checks, slow, options, bar.update, progress=progress)
            for claim, checks in work
        ]


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


def _check_proofs(chosen: Sequence[Claim], certified: bool) -> None:
    without = [claim.identifier for claim in chosen if certified and not claim.proofs]
    if without:
        listed = ", ".join(claim.identifier for claim in claims() if claim.proofs)
        raise ParameterError(
            f"no proof by intervals: {', '.join(without)}\n  claims that have one: {listed}"
        )


def _verdict(
    claim: Claim,
    checks: Sequence[Check],
    slow: bool,
    options: Mapping[str, Any],
    tick: Callable[[], object],
    *,
    progress: bool,
) -> Verdict:
    evidence, skipped, unavailable = [], [], []
    for check in checks:
        if check.slow and not slow:
            skipped.append(check.description)
            continue
        try:
            evidence.append(check.run(options, progress=progress))
        except MissingDependencyError as error:
            reason = "; ".join(line.strip() for line in str(error).splitlines())
            unavailable.append(f"{check.description}: {reason}")
        tick()
    passed = bool(evidence) and all(e.passed for e in evidence)
    return Verdict(claim, tuple(evidence), passed, tuple(skipped), tuple(unavailable))
