"""Evidence by proven intervals for the spectrum; it needs python-flint."""

from __future__ import annotations

from typing import Any

from ....ball_library import require_flint
from ...certificates.agreement import agreement, proof_of
from ...claims import Finding
from ..model import SpikedRandomFeatures
from .evidence import _VALUES


def transform() -> Finding:
    """The transform of the spectrum at a negative z is V2 at the penalty −z, in its interval."""
    require_flint()
    values: dict[str, Any] = {}
    for student, r, c, beta, alpha, z, expected in _VALUES:
        if z.imag == 0 and z.real < 0:
            model = SpikedRandomFeatures.from_parameters(
                student, "sin", spike_strength=r, bulk_variance=c, alignment=0.5, beta=beta
            )
            proof = proof_of(model.solve(alpha=alpha, ridge=-z.real, certify=True))
            values[f"{student}, z = {z.real}"] = (proof["V2"], repr(expected.real))
    # Double precision reached 14 of the digits that it printed.
    return agreement(values, 14, "transforms", proven=15)
