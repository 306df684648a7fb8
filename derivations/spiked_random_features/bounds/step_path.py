r"""The spikes that one step of any size makes: r and c as functions of each other.

At given α_0 and noise all steps share the direction of the spike, hence γ, and r grows in
proportion to the per-neuron step s (:mod:`.mapping`), so that tuning the step walks along a curve
c(r); with the population gradient (α_0 = ∞) c = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import AssumptionError
from ....numeric.cache import FileCache
from ....runtime.generated import defined
from ...derived import derived

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StepPath:
    """Spikes over the step at one α_0 and noise.

    Attributes
    ----------
    unit : float
        r of the step s = 1; zero if no step makes a spike.
    alignment, orthogonal_alignment : float
        γ and ρ of every step.
    odd_student : bool
    linear : float
        Error of the best linear predictor of the target.
    """

    unit: float
    alignment: float
    orthogonal_alignment: float
    odd_student: bool
    linear: float
    _function: Any

    def step_size(self, strength: float) -> float | None:
        """Return the step that makes a spike of this strength; None if no step does."""
        return strength / self.unit if self.unit else None

    def bulk_variance(self, strength: Array) -> tuple[Array, Array]:
        """Return c and its derivative with respect to r."""
        if not self.unit or self._function is None:
            return np.ones_like(strength), np.zeros_like(strength)
        found = [self._function(float(r) / self.unit) for r in strength]
        return np.array([f[0] for f in found]), np.array([f[1] / self.unit for f in found])


def step_path(
    student: str, teacher: str, *, alpha0: float, noise_variance: float, cache: FileCache
) -> StepPath:
    """Return the path of a pair of activations in canonical names.

    Raises
    ------
    AssumptionError
        If the student jumps, so that no step can be taken; or if no step makes a spike, at a
        finite α_0.
    """
    document = _derived(cache, student, teacher)
    if document["error"]:
        raise AssumptionError(document["error"])
    path = defined(document["source"]).path
    population = alpha0 == math.inf
    vanishes = population and document["leap_index"] > 1
    unit, _, _, gamma, rho = path(1.0, alpha0, noise_variance) if not vanishes else (0.0,) * 5
    if population:
        # Only the orientation is left; without a gradient, of a spike that is put there by hand.
        gamma, rho = math.copysign(1.0, gamma), 0.0
    elif not unit:
        raise AssumptionError(
            f"no step makes a spike of student {student!r}, whose mean slope E sigma'(z) vanishes; "
            "use a student that is not even, or alpha0=inf to scan spikes that are put in by hand"
        )
    return StepPath(
        unit=unit,
        alignment=gamma,
        orthogonal_alignment=rho,
        odd_student=document["odd_student"],
        linear=document["linear"],
        _function=None if population else lambda s: path(s, alpha0, noise_variance)[1:3],
    )


@derived("spiked_random_features/bounds/step_path", dict)
def _derived(student: str, teacher: str) -> dict[str, Any]:
    import sympy as sp

    from ....symbolic.activations import activation
    from ....symbolic.hermite import information_exponent
    from ....symbolic.printing.compiled import Formula
    from ..derive import STEP_ARGUMENTS, scalar_functions
    from ..mapping import best_linear_error, is_odd, spike_mapping, step_size

    sigma = activation(student, argument="student")
    target = activation(teacher, argument="teacher")
    source = error = ""
    try:
        found = spike_mapping(sigma, target)
        values = (
            found.spike_strength, found.bulk_variance, sp.diff(found.bulk_variance, step_size),
            found.alignment, found.orthogonal_alignment,
        )  # fmt: skip
        source = scalar_functions({"path": Formula(tuple(STEP_ARGUMENTS), values)})
    except AssumptionError as refused:
        error = str(refused)
    return {
        "source": source,
        "error": error,
        "odd_student": is_odd(sigma),
        "leap_index": int(information_exponent(target)),
        "linear": float(best_linear_error(target).evalf(20)),
    }
