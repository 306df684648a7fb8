"""For each relevant direction: the giant step that learns it, and what efficient methods need."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import GiantstepError
from ...pages import Block, Table
from ...result import Result, quantity
from ...symbolic.leaps.generative_leap import GenerativeLeap, generative_leap
from ...symbolic.leaps.staircase import staircase
from ...symbolic.targets.subspaces import Subspace, vector_text
from ...symbolic.targets.target import closed_target as read_target
from .channels import read_channel
from .fixed_points import MatrixFixedPoints
from .thresholds import EASY, HARD, TRIVIAL, specialising, weak_recovery

_NEVER = "none"


@dataclass(frozen=True, repr=False)
class DirectionClasses(Result):
    r"""How the directions of a target are learned.

    Attributes
    ----------
    target : str
    student : str
    directions : tuple of str
        A basis of V*, in the order in which transforms of the label show it.
    giant_steps : tuple of str
        The step of the staircase, on n ∝ d samples each, that learns it; "none" if no step does.
    classes : tuple of {"trivial", "easy", "hard", "unknown"}
        Given the directions before it: shown by E[x|y], by E[xxᵀ|y], or at a higher order.
    samples : tuple of str
        n of efficient algorithms that use transforms of the label.
    rests_on : str
    """

    _document = "classes of directions"

    target: str = field(metadata=quantity("target"))
    student: str = field(metadata=quantity("student"))
    directions: tuple[str, ...]
    giant_steps: tuple[str, ...]
    classes: tuple[str, ...]
    samples: tuple[str, ...]
    rests_on: str

    def page(self) -> Iterable[Block]:
        """Return the directions as a table."""
        rows = list(zip(self.directions, self.giant_steps, self.classes, self.samples, strict=True))
        yield Table(rows, ["direction", "giant step", "class", "samples"])
        yield self.rests_on


def direction_classes(target: Any, student: Any = "relu") -> DirectionClasses:
    """Return for each direction of V* the giant step that learns it, and its class.

    Parameters
    ----------
    target : str, Expr or Target
        Without noise.
    student : str, Expr or Activation
        Of the giant steps.

    Raises
    ------
    AssumptionError
        If the target is constant.
    UndecidedError
        If its relevant directions cannot be decided.

    Examples
    --------
    >>> found = direction_classes("x1 + x1*x2")
    >>> found.giant_steps, found.samples
    (('1', '2'), ('α > 0', 'α > 0, given e1'))
    """
    f = read_target(target)
    leap = generative_leap(f)
    climbed = staircase(f, student=student)
    rows: list[tuple[str, str, str, str]] = []
    known, last = Subspace.zero(f.dimension), Subspace.zero(f.dimension)
    for step in leap.steps:
        new = step.subspace.intersection(last.orthogonal_complement())
        for vector in new.basis:
            line = Subspace.spanned_by([vector], f.dimension)
            at = next((str(s.number) for s in climbed.steps if line <= s.after), _NEVER)
            kind = {1: TRIVIAL, 2: EASY}.get(step.order, HARD)
            rows.append((vector_text(vector), at, kind, _samples(f, step.order, known)))
        known = last = step.subspace
    if leap.upper is None:
        rows.append(("others", _NEVER, "unknown", f"generative leap {leap.bounds}"))
    vectors, steps, classes, samples = zip(*rows, strict=True)
    return DirectionClasses(
        str(f), str(student), vectors, steps, classes, samples, rests_on=_rests_on(leap)
    )


def _samples(f: Any, order: int, known: Subspace) -> str:
    given = "" if known.is_zero else ", given " + ", ".join(map(vector_text, known.basis))
    if order == 1:
        return f"α > 0{given}"
    if order > 2:
        power = f"{order // 2}" if order % 2 == 0 else f"({order}/2)"
        return f"n ≍ d^{power}{given}"
    return f"α > {_threshold(f) if known.is_zero else _specialisation(f)}{given}"


def _threshold(f: Any) -> str:
    """α_c of labels without noise, where it is known."""
    try:
        found = weak_recovery(read_channel(f))
    except GiantstepError:
        return "α_c, finite"
    if not 0 < found.value < math.inf:
        return "α_c, finite"
    return f"α_c = {found.value:.6g}"


def _specialisation(f: Any) -> str:
    """α at which directions are learned given others with the overlap that α gives them."""
    try:
        channel = read_channel(f)
        known = specialising(channel)
        if known is None:
            return "α_c(q)"
        found = MatrixFixedPoints(channel).specialisation(np.array(known.evalf(17), float))
    except GiantstepError:
        return "α_c(q)"
    return f"α_c(q) = {found[-1]:.6g}"


def _rests_on(leap: GenerativeLeap) -> str:
    exact = "it is exact here" if leap.is_exact else f"it is {leap.bounds} here: {leap.standing}"
    return (
        "staircase on n ∝ d fresh samples a step; generative leap, lower orders excluded by proofs "
        f"where bounds meet ({exact})"
    )
