"""What networks say of a prediction: outcomes of single figures, of targets, and of them all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from ...pages import Block, Listing
from ...result import Result, quantity
from ..claims import Finding


class Outcome(StrEnum):
    """What networks say of a prediction."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Figure:
    """One measured number beside its prediction.

    Attributes
    ----------
    kind : str
        What was predicted, such as "inside": figures of one kind are counted together.
    where : str
        Step and direction.
    predicted : float
        What the networks should tend to.
    measured, resolution : float
        Free of corrections of order 1/d, and how far that can be trusted.
    outcome : Outcome
    """

    kind: str
    where: str
    predicted: float
    measured: float
    resolution: float
    outcome: Outcome

    def __str__(self) -> str:
        return (
            f"{self.kind}, {self.where}: predicted {self.predicted:.2g}, measured "
            f"{self.measured:.2g} ± {self.resolution:.1g}: {self.outcome.value}"
        )


@dataclass(frozen=True, repr=False)
class TargetOutcome(Result):
    """What was seen of one target.

    Attributes
    ----------
    target : str
        Text that reads back.
    chain : tuple of str
        The predicted U_1, U_2, ….
    figures : tuple of Figure
    repeated : bool
        Whether a first run disagreed and this is the second one.
    """

    _document = "outcome of a target"
    _derived = ("outcome",)

    target: str = field(metadata=quantity("target"))
    chain: tuple[str, ...]
    figures: tuple[Figure, ...]
    repeated: bool = False

    @property
    def outcome(self) -> Outcome:
        """Disagreement if any figure disagrees, agreement if all agree."""
        found = {figure.outcome for figure in self.figures}
        if Outcome.DISAGREES in found:
            return Outcome.DISAGREES
        return Outcome.AGREES if found == {Outcome.AGREES} else Outcome.UNDECIDED

    def page(self) -> Iterable[Block]:
        """Return the outcome and the figures that do not agree."""
        again = ", in a second run" if self.repeated else ""
        yield f"{self.target}: {self.outcome.value}{again}; {' ⊂ '.join(self.chain)}"
        others = [str(f) for f in self.figures if f.outcome is not Outcome.AGREES]
        if others:
            yield Listing(others, mark="")


@dataclass(frozen=True, repr=False)
class ConjectureReport(Result):
    """What all targets say of a conjecture.

    Attributes
    ----------
    conjecture : str
        Identifier of the claim.
    targets : tuple of TargetOutcome
    description : str
        Sizes and numbers of networks.
    """

    _document = "report on a conjecture"

    conjecture: str = field(metadata=quantity("conjecture"))
    targets: tuple[TargetOutcome, ...]
    description: str

    @property
    def disagreements(self) -> tuple[TargetOutcome, ...]:
        """The targets that disagree: candidates for counterexamples."""
        return tuple(t for t in self.targets if t.outcome is Outcome.DISAGREES)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of figures that occur."""
        return tuple(sorted({f.kind for t in self.targets for f in t.figures}))

    def count(self, outcome: Outcome, kind: str | None = None) -> int:
        """Return how many figures of a kind, or of all kinds, have an outcome."""
        figures = (f for t in self.targets for f in t.figures if kind in (None, f.kind))
        return Counter(f.outcome for f in figures)[outcome]

    def agreement(self, kind: str | None = None) -> float:
        """Return the share of agreement among decided figures; NaN if there are none."""
        agree = self.count(Outcome.AGREES, kind)
        decided = agree + self.count(Outcome.DISAGREES, kind)
        return agree / decided if decided else math.nan

    @property
    def summary(self) -> str:
        """The figures that decide, and every disagreement."""
        parts = [
            f"{kind}: "
            + ", ".join(f"{self.count(outcome, kind)} {_VERBS[outcome]}" for outcome in Outcome)
            for kind in self.kinds
        ]
        outcomes = Counter(t.outcome for t in self.targets)
        whole = ", ".join(f"{outcomes[outcome]} {_VERBS[outcome]}" for outcome in Outcome)
        text = f"{len(self.targets)} targets ({whole}), {self.description}; {'; '.join(parts)}"
        if self.disagreements:
            text += "; disagreements: " + ", ".join(t.target for t in self.disagreements)
        return text

    def page(self) -> Iterable[Block]:
        """Return the summary, and what was seen of each target."""
        yield self.summary
        yield from self.targets

    def finding(self) -> Finding:
        """Return the report as evidence: no disagreement, and agreement on figures of all kinds."""
        agree = all(self.count(Outcome.AGREES, kind) for kind in self.kinds)
        details = {
            "agreement": {kind: self.agreement(kind) for kind in self.kinds},
            "targets": [t.to_dict() for t in self.targets],
        }
        passed = bool(self.kinds) and agree and not self.disagreements
        return Finding(passed, self.summary, details)


_VERBS = {
    Outcome.AGREES: "agree",
    Outcome.DISAGREES: "disagree",
    Outcome.UNDECIDED: "undecided",
}
