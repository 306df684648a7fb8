"""Reference values of one gradient step, computed in 40-digit arithmetic, not by giantstep.

``reference.json`` lies beside this module and is installed with it; its entry ``provenance`` says
how the values were made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .model import OneGradientStep


@dataclass(frozen=True)
class ReferenceCase:
    """One network with its risk and its spikes, to 16 digits.

    Attributes
    ----------
    name : str
        "1" to "13".
    model : mapping
        Student, teacher (both to be centred), alpha, beta, step size and noise variance.
    paper_ridge : str
        λ_B as a decimal number.
    values : mapping
        Decimal numbers: `initial`, `trained`, `improvement`, `training_error_initial`,
        `training_error_trained`, `effective_ridge`, `ridge_derivative`, `s`; θ1 and θ2 as
        `spike` and `aligned_spike`; of the first layer `singular_value`, `teacher_alignment`,
        `readout_alignment`; of the conjugate kernel `threshold` (T_c), `bulk_edge`,
        `kernel_eigenvalue`, `label_alignment`.
    """

    name: str
    model: Mapping[str, str]
    paper_ridge: str
    values: Mapping[str, str]

    def build(self) -> OneGradientStep:
        """Return the model of this case."""
        return model_of(self.model)


def model_of(document: Mapping[str, str], **changes: Any) -> OneGradientStep:
    """Return the centred model that an entry of the file describes."""
    given: dict[str, Any] = {
        name: value if name in ("student", "teacher") else float(value)
        for name, value in document.items()
    }
    return OneGradientStep(**{**given, "centre": True, **changes})


@cache
def reference_document() -> dict[str, Any]:
    """Return the file of reference values as it is."""
    text = Path(__file__).with_name("reference.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@cache
def reference_cases() -> tuple[ReferenceCase, ...]:
    """Return the thirteen networks."""
    return tuple(ReferenceCase(**case) for case in reference_document()["cases"])
