"""Evidence for bounds over the step, perfect learning, the limit α → ∞ and several letters."""

from __future__ import annotations

import sympy as sp

from ....symbolic.activations import activation
from ....symbolic.equations import stationarity
from ....symbolic.gaussian import GaussianExpectation
from ...claims import Finding
from .. import free_energy as fe
from ..identities import finding
from ..model import SpikedRandomFeatures
from .bounds import bounds
from .letter_bounds import letter_bounds
from .limit_system import V2_HAT, limit_free_energy
from .perfect_learning import perfect_learning
from .step_bounds import bounds_over_step

# By 40-digit arithmetic: student, teacher, r where U is smallest, U there.
_TUNED = (
    ("tanh", "sin", 1.969058, 0.0084005837),
    ("erf", "sin", 1.826914, 0.0082302812),
    ("sin", "tanh", 0.808589, 0.0030045910),
    ("tanh", "tanh", 1.659958, 2.48644637e-5),
)


def limit_conditions() -> Finding:
    """λ and α are gone from the limit of the free energy; overlaps have the stated prices."""
    energy = limit_free_energy(activation("sin"), activation("sin"))
    conditions = stationarity(energy)
    free = energy.expression.free_symbols
    resolvent = {
        node: sp.Symbol(f"w_{k}", positive=True)
        for k, node in enumerate(sorted(conditions[fe.theta_hat].atoms(sp.Expr), key=str))
        if type(node).__name__ == "MarchenkoPasturAverage"
    }
    theta = sp.solve(conditions[fe.theta_hat].xreplace(resolvent), fe.theta_hat)
    (weight,) = resolvent.values()
    results = {
        "neither α nor λ occurs": not free & {fe.alpha, fe.ridge},
        "∂f/∂q_1 = 0 is V̂_1 = E μ_1²": conditions[fe.q1].has(GaussianExpectation)
        and fe.V1_hat in conditions[fe.q1].free_symbols,
        "V̂_2 = E μ_2² is positive": V2_HAT in energy.conjugates,
        "ϑ̂ = ϑ/(β c E[1/S])": bool(
            theta and sp.simplify(theta[0] - fe.theta / (fe.beta * fe.c * weight)) == 0
        ),
    }
    return finding(results, "the limit α → ∞ of the free energy")


def perfect_pairs() -> Finding:
    """Erf by erf at s = 3√3π/4 and sin by sin at s = e, proven."""
    (erf,), (sine,) = perfect_learning("erf", "erf"), perfect_learning("sin", "sin")
    results = {
        "erf/erf: r = √3, s = 3√3π/4": erf.proven
        and erf.spike_strength == sp.sqrt(3)
        and erf.step_size == 3 * sp.sqrt(3) * sp.pi / 4,
        "sin/sin: r = 1, s = e": sine.proven
        and sine.spike_strength == 1
        and sine.step_size == sp.E,
    }
    return finding(results, "the smoothed student is a multiple of the target")


def tuned_steps() -> Finding:
    """Values of min U, and where."""
    deviations = {}
    for student, teacher, strength, value in _TUNED:
        best = bounds_over_step(student, teacher, points=60).best_upper
        deviations[f"{student}/{teacher}"] = max(
            abs(best.upper / value - 1), abs(best.spike_strength - strength)
        )
    worst = max(deviations.values())
    return Finding(
        worst < 1e-6, f"{len(_TUNED)} minima of U off by at most {worst:.1e}", deviations
    )


def coincidence() -> Finding:
    """L = E_∞ = U wherever U is stationary."""
    gaps = {}
    for student, teacher, *_ in _TUNED:
        found = bounds_over_step(student, teacher, points=60)
        gaps[f"{student}/{teacher}"] = max(
            abs(p.upper - other) / p.upper
            for p in found.upper_points
            for other in (p.lower, p.limit)
        )
    gap = max(gaps.values())
    return Finding(
        gap < 1e-9,
        f"relative distances of L and E_∞ from U where it is stationary, {len(gaps)} pairs: "
        f"at most {gap:.1e}",
        gaps,
    )


def letters() -> Finding:
    """Two letters to the printed digits; one letter, also twice, against the bounds of a model."""
    two = letter_bounds("tanh", "sin", (1.5, -0.7), (1.2, 1.05), alignment=0.9)
    model = SpikedRandomFeatures.from_parameters(
        "tanh", "sin", spike_strength=1.5, bulk_variance=1.2, alignment=0.9
    )
    known = bounds(model)
    same = letter_bounds("tanh", "sin", (1.5, 1.5), (1.2, 1.2), alignment=0.9)
    off = max(abs(same.lower / known.lower - 1), abs(same.upper / known.upper - 1))
    printed = max(abs(two.upper - 0.1028606), abs(two.lower - 0.0091414))
    return Finding(
        printed < 6e-8 and off < 1e-11,
        f"two letters off by {printed:.1e} from seven printed digits; equal letters by {off:.1e} "
        "from one",
        {"upper": two.upper, "lower": two.lower},
    )
