"""Simulated giant steps as text, as HTML and as plain data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...pages import Block, Table
from .learned_directions import CLEAR, CLEAR_WEIGHTS, LearnedDirection

if TYPE_CHECKING:
    from .simulated import SimulatedGiantSteps
    from .simulation_plan import NetworkSettings

_DIRECTIONS = ("step", "direction", "predicted", "weights, rms", "noise")
_IN_PART = "in part"
_TEXT_WIDTH = 100
_LARGE = 1000.0
"""Squared norm of rows that no longer are of order one at the usual sizes."""


def headline(settings: NetworkSettings, networks: int) -> str:
    """Return what was simulated, in one line."""
    power = "d" if settings.sample_exponent == 1 else f"d^{settings.sample_exponent}"
    readout = settings.readout
    if isinstance(readout, str):
        law = {"gaussian": "Gaussian readouts", "signs": "readouts ±1"}[readout]
    else:
        law = f"readouts ±({', '.join(f'{value:g}' for value in readout)})"
    extras = [
        *(["random biases"] if settings.biases else []),
        *(["linear part taken off the labels"] if settings.preprocess else []),
        *([f"noise variance {settings.noise_variance:g}"] if settings.noise_variance else []),
    ]
    return (
        f"{settings.student} on {settings.target}: d = {settings.dimension}, "
        f"n = {settings.samples} = {settings.samples_factor:.4g} {power} for each of "
        f"{settings.steps} steps of size {settings.step_size:g}, p = {settings.width}, "
        f"{', '.join([law, *extras])}; simulated, {networks} "
        f"network{'' if networks == 1 else 's'}"
    )


def page(found: SimulatedGiantSteps) -> Iterable[Block]:
    """Return tables and remarks; a terminal shows a blank line for an empty paragraph."""
    yield _wrapped(headline(found.settings, len(found.result.completed)))
    yield _wrapped(f"predicted: {_chain(found)}")
    yield ""
    yield Table(_direction_cells(found.directions, found.compares_shared), _headings(found))
    yield ""
    yield "singular values divided by √p:"
    yield Table(_spectrum_cells(found), _spectrum_headings(found))
    yield ""
    yield from map(_wrapped, _remarks(found))


def as_dict(found: SimulatedGiantSteps) -> dict[str, Any]:
    """Return plain values: texts, numbers, lists and dictionaries."""
    settings = asdict(found.settings)
    if not isinstance(settings["readout"], str):
        settings["readout"] = list(settings["readout"])
    error = found.test_error
    return {
        "settings": settings,
        "seed": found.seed,
        "networks": len(found.result.completed),
        "interrupted": found.result.interrupted,
        "staircase": found.staircase.to_dict(),
        "directions": [
            {
                **asdict(row),
                "direction": {**asdict(row.direction), "vector": list(row.direction.vector)},
                "verdict": row.verdict.value,
                "agrees": row.agrees,
            }
            for row in found.directions
        ],
        "spectra": [
            {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(row).items()}
            for row in found.spectra
        ],
        "squared_norms": [asdict(value) for value in found.squared_norms],
        "test_error": None if error is None else asdict(error),
        "predicted_residual": found.predicted_residual,
        "agrees": found.agrees,
    }


def _chain(found: SimulatedGiantSteps) -> str:
    chain = " ⊂ ".join(map(str, found.staircase.subspaces))
    steps = found.staircase.steps
    rests = "; ".join(f"step {s.number} {s.standing}: {s.remark}" for s in steps)
    return f"{chain} ({rests})" if rests else f"{chain}, nothing is learned"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _TEXT_WIDTH, subsequent_indent="  ", break_long_words=False)


def _headings(found: SimulatedGiantSteps) -> tuple[str, ...]:
    shared = ["in common", "noise"] if found.compares_shared else []
    return (*_DIRECTIONS, *shared, "verdict", "as predicted")


def _spectrum_headings(found: SimulatedGiantSteps) -> tuple[str, ...]:
    outside = "in common" if found.compares_shared else "updates"
    return ("step", "weights in V*", "noise", f"{outside}, in V* outside U_t", "noise")


def _direction_cells(rows: Sequence[LearnedDirection], shared: bool) -> list[list[str]]:
    return [
        [
            str(row.step),
            row.direction.name,
            _IN_PART if row.predicted is None else "learned" if row.predicted else "not learned",
            str(row.weights),
            f"{row.weights_noise:.2g}",
            *([str(row.signal), f"{row.noise:.2g}"] if shared else []),
            row.verdict,
            {True: "yes", False: "no", None: "–"}[row.agrees],
        ]
        for row in rows
    ]


def _spectrum_cells(found: SimulatedGiantSteps) -> list[list[str]]:
    def cell(values: Sequence[float]) -> str:
        return ", ".join(f"{value:.3g}" for value in values) or "–"

    return [
        [
            str(row.step),
            cell(row.inside),
            cell(row.inside_noise),
            cell(row.outside),
            cell([] if row.outside_noise is None else [row.outside_noise]),
        ]
        for row in found.spectra
    ]


def _remarks(found: SimulatedGiantSteps) -> list[str]:
    norms = ", ".join(map(str, found.squared_norms))
    remarks = [f"mean squared norm of the rows after 0, 1, … steps: {norms}"]
    factor = CLEAR if found.compares_shared else CLEAR_WEIGHTS
    size = (
        f"Learned: more than {factor:g} times the noise. A verdict is that of this size; only "
        "growing d decides."
    )
    if found.compares_shared:
        remarks.append(
            "In common: root mean square of what neurons with the same readout and bias share; "
            "its noise holds that of the batches, and what fluctuations of the start leave at "
            f"finite d. {size}"
        )
    elif found.settings.sample_exponent > 1:
        remarks.append(
            "Beyond order 1 neurons move by their own starts and have nothing in common, so that "
            f"verdicts are on the weights. {size}"
        )
    else:
        remarks.append(
            f"No two neurons have the same readout and bias: verdicts are on the weights. {size}"
        )
    if any(row.predicted and row.agrees is False for row in found.directions):
        remarks.append(
            "What is predicted but not seen may be too weak at this size: compare with more "
            "samples, a larger dimension, or another step size."
        )
    if found.squared_norms[-1].mean > _LARGE:
        remarks.append(
            "The rows have grown far beyond order one: the steps are too large for this target; "
            "use a smaller step size."
        )
    clusters = found.staircase.clusters
    if clusters is not None and clusters.is_limiting:
        remarks.append(
            f"With so few readout values step {clusters.step} reaches dimension "
            f"{clusters.dimension} of {clusters.reachable.dimension}: directions predicted "
            f"{_IN_PART!r} are learned in combinations."
        )
    if not found.staircase.decided:
        remarks.append(
            f"The staircase is {found.staircase.basis}: more may be learned than predicted."
        )
    error = found.test_error
    if error is not None:
        ridge = found.settings.ridge
        chosen = "penalty held out" if ridge is None else f"penalty {ridge:g}"
        what = f"‖P_(U,>{found.settings.fitted_degree}) f‖² = {found.predicted_residual}"
        remarks.append(
            f"test error after ridge regression on {found.settings.ridge_samples} fresh samples "
            f"({chosen}): {error}; predicted to be at least, for d → ∞: {what}"
        )
    if found.result.interrupted:
        remarks.append("The run was interrupted: these are the networks that had finished.")
    return remarks
