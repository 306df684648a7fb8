"""Evidence by proven intervals for spiked random features; it needs python-flint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ball_library import require_flint
from ..certificates.agreement import agreement, overlap, proof_of
from ..claims import Finding
from .model import SpikedRandomFeatures
from .reference import SPIKE, reference_cases

_DIGITS = 25
"""Of the stored values."""
_QUICK = ("A1",)
_WITH_STEP = ("A1", "A2, alpha=3", "A4")
# The training error of the stored cases is small; errors have at least so many proven digits.
_PROVEN = 12


def spikes() -> Finding:
    """r, c and γ after the step of three reference models."""
    require_flint()
    values: dict[str, Any] = {}
    for case in reference_cases():
        if case.name in _WITH_STEP:
            proof = case.build().certified_spike(digits=_DIGITS)
            values |= {f"{case.name}: {name}": (proof[name], case.spike[name]) for name in SPIKE}
    return agreement(values, _DIGITS, "values of r, c, γ", proven=_DIGITS)


def errors(names: Sequence[str] | None = _QUICK) -> Finding:
    """Test error, training error and order parameters of reference models.

    Parameters
    ----------
    names : sequence of str, optional
        Of the models, by default the quickest one; None for all.
    """
    require_flint()
    values: dict[str, Any] = {}
    for case in reference_cases():
        if names is not None and case.name not in names:
            continue
        model = case.build()
        proof = proof_of(
            model.solve(alpha=float(case.alpha), ridge=float(case.ridge), certify=True)
        )
        values |= {
            f"{case.name}: {name}": (proof[name], text)
            for name, text in case.values.items()
            if name in proof.values
        }
    return agreement(values, _DIGITS, "errors and order parameters", proven=_PROVEN)


def without_a_step() -> Finding:
    """Plain random features by both lines of work: two systems of equations, one test error."""
    require_flint()
    from ..one_gradient_step.model import OneGradientStep
    from ..one_gradient_step.reference import reference_document

    entry = reference_document()["without_step"]
    alpha, beta, ridge = (float(entry[name]) for name in ("alpha", "beta", "ridge"))
    first = OneGradientStep("erf", "erf", alpha=alpha, beta=beta, step_size=0)
    other = SpikedRandomFeatures("erf", "erf", step_size=0, beta=beta)
    proofs = (
        proof_of(first.risk(ridge=ridge, certify=True)),
        proof_of(other.solve(alpha=alpha, ridge=ridge, certify=True)),
    )
    values: dict[str, Any] = {}
    meet = True
    for mine, yours, name in (
        ("risk_initial", "test_error", "test_error"),
        ("training_error_initial", "training_error", "training_error"),
    ):
        one, two = proofs[0][mine], proofs[1][yours]
        meet = meet and overlap(one, two)
        values |= {
            f"one step of order one, {name}": (one, entry[name]),
            f"spiked random features, {name}": (two, entry[name]),
        }
    result = agreement(values, _DIGITS, "errors by two systems of equations", proven=_PROVEN)
    says = "both intervals overlap" if meet else "the intervals do not overlap"
    return Finding(result.passed and meet, f"{result.summary}; {says}", result.details)
