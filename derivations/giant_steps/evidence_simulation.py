r"""Evidence by simulation: what networks of finite size learn, and what they cannot.

Whether a direction is learned is decided by the rules of :mod:`.conjectures`: networks of two
sizes, figures free of 1/d, agreement only where something would have been seen. Seeds are fixed, so
every number is reproducible.

With d = 80, and 24 and 12 networks, `readout_clusters` and `activation_masks` were undecided, one
figure each, with the seed of the claims. The sizes here were then fixed with another seed, 5010.
With that of the claims they were run once; of the 40 networks of `readout_clusters` with d = 80
and each kind of readout, 24 are those of the first run. `worked_traces_quick` with d = 120 and 32 d
samples had 6 figures of networks that agreed and 6 undecided; its sizes were fixed in the same way.
"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from ...numeric.giant_steps import PARTS
from ...symbolic.leaps.staircase import staircase
from ...symbolic.subspaces import Subspace
from ...symbolic.targets import target
from ..claims import Finding
from .claims import SEED
from .conjecture_networks import (
    READOUTS,
    STUDENT,
    Plan,
    axes_within,
    direction_figure,
    expected_grams,
    trained_on_readouts,
)
from .conjecture_outcomes import Figure, Outcome
from .conjectures import check_conjecture_1, check_conjecture_3
from .population_dynamics import gaussian_readouts

_SHARED, _UPDATES = PARTS.index("shared"), PARTS.index("updates")

_NOTHING = 1e-12
"""Squared overlaps of the population dynamics below are rounding."""

# ------------------------------------------------------------------ conjectures and traces

TRACES = (
    "x1 + He(2, x1) + x2 - He(2, x2)",
    "x1 + He(2, x1) + x2 + He(2, x2)",
    "x1 + x1*x2 + x1*x3",
    "(4*x1 + x1**2 + x2)/2",
)
LONG_TRACES = (
    *TRACES,
    "x1 + x1*x2 + x1*x2*x3",
    "x1 + 2*x2 + 3*x3 + He(2, x1) + He(2, x2) + He(2, x3)",
)


def worked_traces_quick(dimension: int = 240, seed: int = SEED) -> Finding:
    """The first targets, two steps."""
    return _traces(TRACES[:3], dimension, 2, seed)


def worked_traces(dimension: int = 400, seed: int = SEED) -> Finding:
    """All targets, three steps."""
    return _traces(LONG_TRACES, dimension, 3, seed)


def _traces(targets: tuple[str, ...], dimension: int, steps: int, seed: int) -> Finding:
    return check_conjecture_1(
        targets, dimension, steps, networks=12, samples_per_dimension=64, seed=seed, progress=False
    ).finding()


def conjecture_1(
    targets: int, dimension: int, steps: int, networks: int, seed: int,
    store: str | None = None, progress: bool = False,
) -> Finding:  # fmt: skip
    """Agreement rates and every disagreement of random targets with Conjecture 1."""
    return check_conjecture_1(
        targets, dimension, steps, networks=networks, samples_per_dimension=32, seed=seed,
        store=store, progress=progress,
    ).finding()  # fmt: skip


def conjecture_3(
    targets: int, dimension: int, steps: int, networks: int, seed: int,
    store: str | None = None, progress: bool = False,
) -> Finding:  # fmt: skip
    """Agreement rates and every disagreement of random targets with Conjecture 3."""
    return check_conjecture_3(
        targets, dimension, steps, networks=networks, seed=seed, store=store, progress=progress
    ).finding()


# ------------------------------------------------------------------ what networks cannot learn

CLUSTERED = "x1 + x1*x2 + He(3, x1)*x3/2"
MASKED = (("relu", "x1 + He(2, x1)*x2"), ("erf", "x1 + x1*x2"))
_RATE = 4.0
"""Of the networks with readouts ±1, in units of p/‖f‖: the second direction is weak."""


def readout_clusters(
    dimension: int = 160, networks: int = 40, samples_per_dimension: int = 100, seed: int = SEED
) -> Finding:
    """Two steps show one direction of span(e2, e3) with readouts ±1, and both with spread ones.

    Axes are those of the population dynamics; the one that ±1 misses has to be seen with spread
    readouts, and its signal there has to be more than is resolved with ±1.
    """
    f = target(CLUSTERED)
    plan = Plan(dimension, 2, networks, samples_per_dimension, seed)
    plane = Subspace.spanned_by([[0, 1, 0], [0, 0, 1]])
    figures: dict[str, list[Figure]] = {}
    for name, readouts in (
        ("±1", np.ones(READOUTS)),
        ("spread", gaussian_readouts(2 * READOUTS)[::2]),
    ):
        grams = [
            trained_on_readouts(f, plan, d, readouts, rate=_RATE).grams[:, 2, _SHARED, 0]
            for d in plan.sizes
        ]
        expected = expected_grams(f, plan, readouts, _RATE)[2]
        figures[name] = [
            direction_figure("inside" if size > _NOTHING else "outside", 2, axis, size, grams)
            for axis, size in axes_within(plane, expected)
        ]
    kinds = [[figure.kind for figure in found] for found in figures.values()]
    weak = figures["spread"][-1].predicted
    passed = (
        kinds == [["inside", "outside"], ["inside", "inside"]]
        and _agree(*figures.values())
        and figures["±1"][-1].resolution < weak
    )
    return _finding(passed, f"{CLUSTERED}, {plan.description}", figures)


def activation_masks(
    dimension: int = 120, networks: int = 24, samples_per_dimension: int = 64, seed: int = SEED
) -> Finding:
    """Directions that relu and erf miss in two steps, and a student of all degrees finds."""
    plan = Plan(dimension, 2, networks, samples_per_dimension, seed)
    readouts = gaussian_readouts(2 * READOUTS)[::2]
    figures: dict[str, list[Figure]] = {}
    for student, text in MASKED:
        f = target(text)
        learned = staircase(f, 1, student=student, max_steps=2).final
        ((axis, _),) = axes_within(learned.orthogonal_complement(), np.eye(f.dimension))
        expected = float(axis @ expected_grams(f, plan, readouts)[2] @ axis)
        for kind, name, part in (
            ("outside", student, _UPDATES), ("inside", STUDENT.text, _SHARED),
        ):  # fmt: skip
            grams = [
                trained_on_readouts(f, plan, d, readouts, student=name).grams[:, 2, part, 0]
                for d in plan.sizes
            ]
            predicted = expected if kind == "inside" else 0.0
            figures[f"{name} on {text}"] = [direction_figure(kind, 2, axis, predicted, grams)]
    return _finding(_agree(*figures.values()), plan.description, figures)


def _agree(*groups: list[Figure]) -> bool:
    return all(figure.outcome is Outcome.AGREES for group in groups for figure in group)


def _finding(passed: bool, what: str, figures: dict[str, list[Figure]]) -> Finding:
    lines = [f"{name}: {'; '.join(map(str, found))}" for name, found in figures.items()]
    details = {name: [asdict(figure) for figure in found] for name, found in figures.items()}
    return Finding(passed, f"{what}; {'; '.join(lines)}", details)
