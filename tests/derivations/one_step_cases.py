"""One gradient step in tests: reference cases, and columns of a table of spikes."""

import pytest

from giantstep import OneGradientStep
from giantstep.derivations.one_gradient_step.reference import reference_cases

CASES = pytest.mark.parametrize("case", reference_cases(), ids=lambda case: case.name)
MODEL = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, noise_variance=0.25)

FIRST_LAYER = {
    "spike": "theta1",
    "aligned_spike": "theta2",
    "singular_value": "singular_value",
    "teacher_alignment": "alignment_teacher",
    "readout_alignment": "alignment_readout",
}
"""Columns of a table of spikes, and what they are in the reference cases."""
