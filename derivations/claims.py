"""Published results as claims: a statement, where it comes from, and evidence to recompute.

A claim is declared once, by :func:`declare_claim`; :func:`evidence` makes plain functions checks of
it. Those of the package stand in the modules that are listed here, each claim beside its evidence,
and are imported when :func:`claims` is asked; those of users stand where they like. A check says
what its evidence rests on: exact algebra, a proven interval, quadrature to many digits, or
simulation with a standard error. Nothing is taken on trust: evidence is computed when it is asked
for (:func:`verify`), and a check that breaks has failed.

Importing this module imports neither SymPy nor numpy.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib import import_module
from itertools import count
from operator import itemgetter
from types import FunctionType
from typing import Any, TypeVar

from ..errors import MissingDependencyError, ParameterError
from ..json_document import json_text
from ..pages import Block, Indented, Listing, Page, Table, columns
from ..pictures import Cells, Drawn
from .evidence import Check, Evidence, EvidenceKind, Finding, Option
from .readable import readable_latex

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
    "declare_claim",
    "evidence",
    "to_json",
    "verify",
]

_MODULES = (
    "spiked_random_features.claims_mapping",
    "spiked_random_features.claims_directions",
    "spiked_random_features.claims_limits",
    "spiked_random_features.claims_bounds",
    "spiked_random_features.claims_correlated_norms",
    "spiked_random_features.claims_finite_size",
    "spiked_random_features.spectrum.claims",
    "spiked_random_features.vocabulary.claims",
    "spiked_random_features.convex.claims",
    "first_gradient.claims_expansion",
    "giant_steps.claims_one_step",
    "giant_steps.claims_staircases",
    "giant_steps.claims_equivalence",
    "one_gradient_step.claims_spike",
    "one_gradient_step.claims_kernel",
    "one_gradient_step.claims_risk",
    "one_gradient_step.claims_large",
    "one_gradient_step.nonlinear_spikes.claims",
    "overlap_dynamics.claims",
    "multi_index.claims",
)
"""Where claims of the package are, in the order in which they are listed."""

_ARXIV = re.compile(r"arXiv \d{4}\.\d{4,5}")
_PLACE = re.compile(
    r"\b(?:[Rr]esult|[Tt]heorem|[Cc]onjecture|[Pp]roposition|[Aa]ssumption|[Ss]ection|[Ee]quations?)"
    r" (?:\(\d+\)(?:-\(\d+\))?|\d+(?:\.\d+)*)"
)
_PLACES = (
    *("Result", "Theorem", "Proposition", "Conjecture", "Assumption", "Section"),
    *("Equation", "Equations"),
)
_PLACEHOLDER = re.compile("«([^«»]*)»")
_Function = TypeVar("_Function", bound=Callable[..., Finding])


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
        Those of the package have one that is not slow.
    formulas : mapping
        Expressions and equations of SymPy that the statement shows, by name.
    """

    identifier: str
    title: str
    statement: str
    source: str
    status: Status
    checks: tuple[Check, ...] = ()
    formulas: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def proofs(self) -> tuple[Check, ...]:
        """The checks that prove something by intervals."""
        return tuple(check for check in self.checks if check.kind is EvidenceKind.CERTIFIED)

    @property
    def options(self) -> dict[str, Option]:
        """What a user may change about the checks, by name."""
        return {option.name: option for check in self.checks for option in check.options}

    def verify(self, *, slow: bool = False, certified: bool = False, **options: Any) -> Verdict:
        """Run the checks of this claim alone; see :func:`verify`."""
        _check_proofs([self], certified)
        _check_options([self], options)
        checks = self.proofs if certified else self.checks
        return _verdict(self, checks, slow, options, lambda: None, progress=False)

    def __repr__(self) -> str:
        return f"Claim({self.identifier!r}: {self.title})"

    @property
    def place(self) -> str:
        """Where the statement stands in its source, such as "Result 3.1"; empty if not said."""
        match = _PLACE.search(self.source)
        return match[0][:1].upper() + match[0][1:] if match else ""

    @property
    def paper(self) -> str:
        """The first paper of the source by its number, such as "arXiv 2402.04980"; or empty."""
        match = _ARXIV.search(self.source)
        return match[0] if match else ""

    def __str__(self) -> str:
        # A terminal sets no formulas; notebooks and reports do.
        return readable_latex(super().__str__())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; the statement is in LaTeX."""
        return {
            "identifier": self.identifier,
            "title": self.title,
            "statement": self.statement,
            "source": self.source,
            "status": self.status.value,
            "checks": [
                {"kind": check.kind.value, "description": check.description, "slow": check.slow}
                for check in self.checks
            ],
        }

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
        if not lines:
            lines = ["no evidence: give it some by @giantstep.evidence(...) above a function"]
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
        """Return :meth:`to_dict` as JSON; infinity and not-a-number are texts."""
        return json_text(self.to_dict())


_KINDS = list(EvidenceKind)


def _in_order(place: str) -> tuple[Any, ...]:
    """Return a key that sorts Result 3.10 behind Result 3.9, and what has no place last."""
    kind = place.partition(" ")[0]
    return (not place, _PLACES.index(kind) if place else 0, [*map(int, re.findall(r"\d+", place))])


def _authors(claims: Iterable[Claim]) -> str:
    """Return the longest list of authors before the number of a paper, as claims write it."""
    found = [re.split(r"[;:]|, equation", c.source.partition(c.paper)[0])[-1] for c in claims]
    names = [text for text in found if text.strip(" ,")[:1].isupper()]
    return max((f"{name.strip(' ,')}, " for name in names), key=len, default="")


class Claims(tuple[Claim, ...], Page, Drawn):
    """Claims, in order; as a figure how many checks of each kind every one has."""

    __slots__ = ()

    def page(self) -> Iterable[Block]:
        """Return the claims one after the other."""
        for number, claim in enumerate(self):
            if number:
                yield ""
            yield claim

    def by_paper(self) -> str:
        """Return the claims by paper and by the number of what is claimed there, as text."""
        papers: dict[str, list[Claim]] = {}
        for claim in self:
            papers.setdefault(claim.paper, []).append(claim)
        blocks = []
        for paper in sorted(papers, key=lambda name: (not name, name)):
            rows = [
                (claim.identifier, claim.place, claim.title)
                for claim in sorted(papers[paper], key=lambda claim: _in_order(claim.place))
            ]
            head = f"{_authors(papers[paper])}{paper}" if paper else "derived here"
            blocks.append(f"{head}\n{columns(rows)}")
        return "\n\n".join(blocks)

    def picture(self) -> Cells:
        """Return a table of the checks by kind."""
        counts = [[sum(c.kind is kind for c in claim.checks) for kind in _KINDS] for claim in self]
        return Cells(
            [f"{claim.identifier}: {claim.title}" for claim in self],
            [kind.value for kind in _KINDS],
            [[str(n or "") for n in row] for row in counts],
            [["good" if n else "none" for n in row] for row in counts],
            "checks of every claim, by what they rest on",
        )


class Verdicts(list[Verdict], Page, Drawn):
    """Verdicts, in order; as a figure how many checks of each kind have passed."""

    def page(self) -> Iterable[Block]:
        """Return the verdicts one after the other."""
        for number, verdict in enumerate(self):
            if number:
                yield ""
            yield verdict

    def picture(self) -> Cells:
        """Return a table of the checks by kind: passed of all that ran."""
        texts, tones = [], []
        for verdict in self:
            ran = [[e.passed for e in verdict.evidence if e.kind is kind] for kind in _KINDS]
            left = len(verdict.skipped) + len(verdict.unavailable)
            texts.append([f"{sum(x)} of {len(x)}" if x else "" for x in ran] + [str(left or "")])
            seen = [("good" if all(x) else "poor") if x else "none" for x in ran]
            tones.append([*seen, "fair" if left else "none"])
        return Cells(
            [f"{v.claim.identifier}: {v.claim.title}" for v in self],
            [*(kind.value for kind in _KINDS), "not run"],
            texts,
            tones,
            f"{sum(v.passed for v in self)} of {len(self)} claims passed",
        )


@dataclass
class _Declaration:
    """A claim as declared, the module that did so, and its numbered checks by description."""

    module: str
    claim: Claim
    checks: dict[str, tuple[int, Check]] = field(default_factory=dict)

    def complete(self) -> Claim:
        result = sorted(self.checks.values(), key=itemgetter(0))
        return replace(self.claim, checks=tuple(check for _, check in result))


_DECLARED: dict[str, _Declaration] = {}
_NUMBERS = count()


def declare_claim(
    identifier: str,
    *,
    title: str,
    statement: str,
    source: str,
    status: Status | str,
    formulas: Mapping[str, Any] | None = None,
) -> None:
    """Declare a claim; :func:`evidence` adds what supports it.

    Declaring it again in the same module replaces it, as a notebook does that runs a cell again.

    Parameters
    ----------
    identifier : str
        Such as "cui-3.1".
    title : str
    statement : str
        In LaTeX: text with mathematics between dollar signs. ``«name»`` stands for a formula.
    source : str
        Where it is published, or that it is derived here.
    status : Status or str
        What it is there, such as "theorem" or "derived here".
    formulas : mapping, optional
        Expressions and equations of SymPy by name, which the statement shows as they are. Where
        the evidence checks the same objects, the formula that is read is the one that is checked.

    Raises
    ------
    ParameterError
        If another module has declared a claim of that name, there is no such status, something is
        no text, or the statement and `formulas` do not have the same names.
    """
    # As of an enumeration: the module that declares is told from the frame that calls.
    module = str(sys._getframe(1).f_globals.get("__name__", "__main__"))
    if not _is_ours(module):
        _load()
    texts = {"identifier": identifier, "title": title, "statement": statement, "source": source}
    for name, text in texts.items():
        if not isinstance(text, str) or not text:
            raise ParameterError(f"{name} of a claim must be a text, got {text!r}")
    known = _DECLARED.get(identifier)
    if known is not None and known.module != module:
        raise ParameterError(
            f"claim {identifier!r} is there already, in {known.module}; choose another name"
        )
    claim = Claim(
        identifier,
        title,
        _filled(identifier, statement, formulas or {}),
        source,
        _member(Status, status, "status"),
        formulas=dict(formulas or {}),
    )
    _DECLARED[identifier] = _Declaration(module, claim)


def evidence(
    identifier: str,
    kind: EvidenceKind | str,
    description: str,
    *,
    slow: bool = False,
    options: Sequence[Option] = (),
    arguments: Mapping[str, Any] | None = None,
) -> Callable[[_Function], _Function]:
    """Make a function a check of a claim; the function itself stays as it is.

    Several of these above one function are several checks, listed from the top to the bottom.
    A function whose parameter is called `progress` is told whether to show a progress bar.

    Parameters
    ----------
    identifier : str
        Of a claim that is declared.
    kind : EvidenceKind or str
        What the evidence rests on: "exact", "certified" (without python-flint it has to raise
        :class:`.MissingDependencyError`), "quadrature" or "simulation".
    description : str
        What is checked.
    slow : bool
        Takes more than a few seconds; left out unless asked for.
    options : sequence of Option
        What a user may change about it.
    arguments : mapping, optional
        What the function is called with otherwise, by name.

    Raises
    ------
    ParameterError
        If there is no such claim or kind, or another function has this description.
    """
    rests_on = _member(EvidenceKind, kind, "kind")
    # Lines of decorators are evaluated from the top to the bottom, but applied from the bottom.
    number = next(_NUMBERS)

    def register(function: _Function) -> _Function:
        if not isinstance(function, FunctionType):
            raise ParameterError(
                f"evidence for {identifier!r} must be a plain function, got {function!r}; what it "
                "is called with goes into arguments="
            )
        if not _is_ours(function.__module__):
            _load()
        if identifier not in _DECLARED:
            raise ParameterError(_unknown(identifier, _DECLARED))
        check = Check(rests_on, description, function, slow, tuple(options), dict(arguments or {}))
        checks = _DECLARED[identifier].checks
        place, known = checks.get(description, (number, check))
        homes = {(c.compute.__module__, c.compute.__qualname__) for c in (known, check)}
        if len(homes) > 1:
            raise ParameterError(
                f"claim {identifier!r} has a check {description!r} by another function"
            )
        checks[description] = place, check
        return function

    return register


def claims() -> Claims:
    """Return all claims of all lines of work, then those that users have declared.

    Examples
    --------
    >>> [claim.identifier for claim in claims()][:3]
    ['cui-3.1', 'cui-3.2', 'cui-3.3']
    """
    _load()
    places = {f"{__package__}.{name}": i for i, name in enumerate(_MODULES)}
    result = sorted(_DECLARED.values(), key=lambda given: places.get(given.module, len(places)))
    return Claims(declaration.complete() for declaration in result)


def claims_from(module: str) -> Claims:
    """Return the claims that a module declares, or has evidence for, by its import name."""
    return Claims(
        claim
        for claim in claims()
        if _DECLARED[claim.identifier].module == module
        or any(check.compute.__module__ == module for check in claim.checks)
    )


def _load() -> None:
    for name in _MODULES:
        import_module(f".{name}", __package__)


def _is_ours(module: str) -> bool:
    return module.startswith(f"{__package__}.") and module != __name__


def _filled(identifier: str, statement: str, formulas: Mapping[str, Any]) -> str:
    """Put formulas where the statement names them."""
    shown = _PLACEHOLDER.findall(statement)
    if set(shown) != set(formulas):
        raise ParameterError(
            f"claim {identifier!r}: the statement shows the formulas "
            f"{', '.join(dict.fromkeys(shown)) or 'none'}, and given are "
            f"{', '.join(formulas) or 'none'}"
        )
    if not formulas:
        return statement
    import sympy as sp

    from .formulas import latex

    for name, formula in formulas.items():
        if not isinstance(formula, sp.Basic):
            raise ParameterError(
                f"claim {identifier!r}: formula {name!r} must be an expression or an equation of "
                f"SymPy, got {formula!r}"
            )
    written = {
        name: " = ".join(map(latex, formula.args if isinstance(formula, sp.Eq) else [formula]))
        for name, formula in formulas.items()
    }
    return _PLACEHOLDER.sub(lambda found: written[found[1]], statement)


_Member = TypeVar("_Member", Status, EvidenceKind)


def _member(kind: type[_Member], value: _Member | str, name: str) -> _Member:
    try:
        return kind(value)
    except ValueError:
        listed = ", ".join(repr(member.value) for member in kind)
        raise ParameterError(f"{name} must be one of {listed}, got {value!r}") from None


def _unknown(name: object, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(name), list(known), n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"no claim {name!r}{hint}\n  claims: {', '.join(known)}"


def verify(
    names: Sequence[str] | None = None,
    *,
    slow: bool = False,
    certified: bool = False,
    progress: bool = True,
    **options: Any,
) -> Verdicts:
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
    Verdicts
        A list, in the order of `names`.

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
    _check_options(chosen, options)
    work = [(claim, claim.proofs if certified else claim.checks) for claim in chosen]
    total = sum(slow or not check.slow for _, checks in work for check in checks)
    with tqdm(total=total, delay=1, disable=not progress, unit="check") as bar:
        return Verdicts(
            _verdict(claim, checks, slow, options, bar.update, progress=progress)
            for claim, checks in work
        )


def to_json(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as a JSON list of plain values, to be stored."""
    return json_text([verdict.to_dict() for verdict in verdicts])


def named(names: Sequence[str]) -> Claims:
    """Return claims by their identifiers.

    Raises
    ------
    ParameterError
        If there is no claim of a name; the message has the nearest one.
    """
    return Claims(_choose(names))


def _choose(names: Sequence[str] | None) -> tuple[Claim, ...]:
    known = {claim.identifier: claim for claim in claims()}
    if names is None:
        return tuple(known.values())
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in known:
            raise ParameterError(_unknown(name, known))
    return tuple(known[name] for name in dict.fromkeys(wanted))


def _check_proofs(chosen: Sequence[Claim], certified: bool) -> None:
    without = [claim.identifier for claim in chosen if certified and not claim.proofs]
    if without:
        listed = ", ".join(claim.identifier for claim in claims() if claim.proofs)
        raise ParameterError(
            f"no proof by intervals: {', '.join(without)}\n  claims that have one: {listed}"
        )


def _check_options(chosen: Iterable[Claim], given: Mapping[str, Any]) -> None:
    """Refuse options that one of the claims does not know, and values that cannot be."""
    for claim in chosen:
        known = claim.options
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
