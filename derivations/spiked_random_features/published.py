"""Result 3.3 as the paper prints it, to compare with; nothing is computed from it.

The equations that the toolkit solves come from the free energy (:mod:`.physics`) by
differentiation. Here they stand once more, in the paper's form, for the checks that both agree.

Source: Cui et al., arXiv 2402.04980, Results 3.2 and 3.3; conjugates carry the prefactor α/β.

**Reference values: saddle points computed in 40-digit arithmetic, independently of giantstep.**
``reference.json`` lies beside this module and is installed with it; its entry ``provenance`` says
how the values were made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...symbolic.expressions.activations import Activation
from ...symbolic.hermite.coefficients import hermite_coefficient
from ...symbolic.systems.random_matrix import MarchenkoPasturAverage
from ..first_gradient.spike_mapping import SpikeMapping
from . import physics as fe
from .model import SpikedRandomFeatures
from .physics import SpikedFreeEnergy

if TYPE_CHECKING:
    from .solution import Solution

MEAN, VARIANCE, ERROR = (
    sp.Function(name, real=True)(fe.kappa) for name in ("C", "V", "varepsilon")
)
"""C, V and err as functions of κ, by name."""

CONDITIONALS = (
    sp.Eq(VARIANCE, fe.mu1**2 * fe.V1 + fe.mu2_squared * fe.V2),
    sp.Eq(MEAN, fe.mu0 * fe.m + fe.mu1 * fe.kappa * fe.theta),
    sp.Eq(
        ERROR,
        fe.T2 - 2 * fe.T0 * MEAN - 2 * fe.mu1 * fe.psi * fe.T1 + MEAN**2
        + fe.mu1**2 * fe.q1 + fe.mu2_squared * fe.q2,
    ),
)  # fmt: skip


TEST_ERROR = fe.average(ERROR) - fe.noise
TRAINING_ERROR = fe.average(ERROR / (1 + VARIANCE) ** 2)
RESIDUAL_LOSS = fe.average((fe.T2 - fe.T0 * MEAN - fe.mu1 * fe.psi * fe.T1) / (1 + VARIANCE))
r"""What the training error with :math:`\lambda\beta q_2/\alpha` is at the saddle point."""


def written_out(expr: sp.Expr) -> sp.Expr:
    """Put in what V, C and err are."""
    variance, mean, error = conditionals()
    return expr.xreplace({VARIANCE: variance, MEAN: mean, ERROR: error})


def energy_forms(f: sp.Expr, slope: Mapping[sp.Symbol, sp.Expr]) -> tuple[sp.Expr, sp.Expr]:
    """Add multiples of the 13 conditions, which vanish at the saddle point, to a free energy.

    Returns
    -------
    tuple of Expr
        What is to be α/(2β) times the training error with its penalty, and what is to be that
        times :data:`RESIDUAL_LOSS`.
    """
    loss = f + sum(x * slope[x] for x in (fe.V1, fe.V2))
    loss -= sum(x * slope[x] for x in (fe.V1_hat, fe.V2_hat, fe.theta_hat, fe.psi_hat))
    loss -= 2 * sum(x * slope[x] for x in (fe.q1_hat, fe.q2_hat)) + fe.ridge * slope[fe.V2_hat]
    residual = f - sum(x * slope[x] for x in (fe.q1, fe.q2, fe.q1_hat, fe.q2_hat))
    residual -= sum(x * slope[x] for x in (fe.theta, fe.psi, fe.m, fe.theta_hat, fe.psi_hat)) / 2
    return loss, residual


def conditionals() -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """Return V(κ), C(κ) and err(κ)."""
    variance, mean, error = (equation.rhs for equation in CONDITIONALS)
    return variance, mean, error.xreplace({MEAN: mean})


def right_hand_sides() -> dict[sp.Symbol, sp.Expr]:
    """Return the right-hand side of each of the 13 equations; for m, what has to vanish."""
    variance, mean, error = conditionals()
    ratio = fe.alpha / fe.beta
    shrink = 1 / (1 + variance)
    D = fe.c * fe.eigenvalue
    S = fe.ridge + fe.V2_hat + fe.V1_hat * D

    def spectral(weight: sp.Expr) -> sp.Expr:
        return MarchenkoPasturAverage(weight, fe.eigenvalue, fe.beta)

    # F is independent of D with mean c, H has the conditional mean D.
    source = fe.q1_hat * D + fe.q2_hat
    source += fe.beta * fe.theta_hat**2 * fe.c + fe.beta * fe.psi_hat**2 * D
    return {
        fe.V1: spectral(D / S),
        fe.V2: spectral(1 / S),
        fe.m: fe.average(fe.mu0 * (fe.T0 - mean) * shrink),
        fe.theta: fe.beta * fe.theta_hat * fe.c * spectral(1 / S),
        fe.psi: fe.beta * fe.psi_hat * spectral(D / S),
        fe.q1: spectral(D * source / S**2),
        fe.q2: spectral(source / S**2),
        fe.V1_hat: ratio * fe.average(fe.mu1**2 * shrink),
        fe.V2_hat: ratio * fe.average(fe.mu2_squared * shrink),
        fe.theta_hat: ratio * fe.average(fe.kappa * fe.mu1 * (fe.T0 - mean) * shrink),
        fe.psi_hat: ratio * fe.average(fe.mu1 * fe.T1 * shrink),
        fe.q1_hat: ratio * fe.average(fe.mu1**2 * error * shrink**2),
        fe.q2_hat: ratio * fe.average(fe.mu2_squared * error * shrink**2),
    }


# ------------------------------------------------------------------ numbers in circulation

PUBLIC_NOTEBOOK: dict[str, Any] = {
    "student": "tanh",
    "teacher": "sin",
    "step_size": 3.0,
    "alpha0": 20.0,
    "beta": 1.0,
    "ridge": 0.1,
}
"""Parameters of the authors' public notebook."""

STORED_OUTPUTS = {0.2: 0.0485954, 0.9: 0.0431181, 1.6: 0.0380724, 2.3: 0.0351115, 3.0: 0.0333400}
"""Its stored test errors by sample complexity, to the 7 decimals that circulate."""


def variant_mapping(mapping: SpikeMapping, student: Activation) -> SpikeMapping:
    """Return the map of Result 3.1 with a factor h_1² too many in c − 1.

    The stored outputs need it; the code beside them does not have it, and simulations exclude it.
    """
    h1 = hermite_coefficient(student, 1)
    return replace(mapping, bulk_variance=1 + h1**2 * (mapping.bulk_variance - 1))


def without_overlap(energy: SpikedFreeEnergy) -> SpikedFreeEnergy:
    """Return the free energy without the overlap ϑ of the readout with the bulk along the spike.

    The stored outputs have a factor 1/d² at the spectral average that makes ϑ, so ϑ = 0.
    """
    gone = {fe.theta: 0, fe.theta_hat: 0}
    found = energy.free_energy
    return replace(
        energy,
        free_energy=replace(
            found,
            expression=found.expression.subs(gone),
            order_parameters=tuple(x for x in found.order_parameters if x != fe.theta),
            conjugates=tuple(x for x in found.conjugates if x != fe.theta_hat),
            source=f"{found.source}, without the overlap with the bulk along the spike",
        ),
        prediction=energy.prediction.xreplace({fe.theta: sp.S.Zero}),
        test_error=energy.test_error.subs(gone),
        training_error=energy.training_error.subs(gone),
    )


spectral_weight = sp.Symbol("w_H", positive=True)
"""Average of H/S over that of D/S at a finite dimension; 1 in the limit."""


def with_spectral_weight(energy: SpikedFreeEnergy) -> SpikedFreeEnergy:
    """Return the free energy with a free weight of the teacher's direction in the bulk.

    The public code averages over the eigenvectors of one random matrix, H = d (e·Bζ)², where the
    limit has the conditional mean D: a weight of fluctuations :math:`O(p^{-1/2})` around 1.
    """
    found = energy.free_energy
    bulk = fe.c * fe.eigenvalue
    resolvent = bulk / (fe.ridge + fe.V2_hat + fe.V1_hat * bulk)
    average = MarchenkoPasturAverage(resolvent, fe.eigenvalue, fe.beta)
    extra = -fe.beta * fe.psi_hat**2 * (spectral_weight - 1) * average / 2
    return replace(
        energy,
        free_energy=replace(
            found,
            expression=found.expression + extra,
            parameters=(*found.parameters, spectral_weight),
        ),
    )


# ------------------------------------------------------------------ reference

SPIKE = ("spike_strength", "bulk_variance", "alignment")


@dataclass(frozen=True)
class ReferenceCase:
    """A saddle point with 25 digits.

    Attributes
    ----------
    model : mapping
        Student, teacher, beta and noise variance; step size and alpha0 unless the spike is given.
    alpha, ridge : str
        Sample complexity and ridge penalty as decimal numbers.
    spike : mapping
        Spike strength, bulk variance and alignment.
    values : mapping
        Errors and order parameters by the names of :class:`.solution.Solution`, and
        ``regularised_training_error``, the training error + λβ q2/α.
    """

    name: str
    model: Mapping[str, str]
    alpha: str
    ridge: str
    spike: Mapping[str, str]
    values: Mapping[str, str]

    @property
    def takes_step(self) -> bool:
        """The spike comes from a gradient step."""
        return "step_size" in self.model

    def build(self) -> SpikedRandomFeatures:
        """Return the model of this case."""
        arguments: dict[str, Any] = {
            name: value if name in ("student", "teacher") else float(value)
            for name, value in self.model.items()
        }
        if self.takes_step:
            return SpikedRandomFeatures(**arguments)
        spike: dict[str, Any] = {name: float(value) for name, value in self.spike.items()}
        return SpikedRandomFeatures.from_parameters(**arguments, **spike)

    def solve(self, digits: int | None = None) -> Solution:
        """Solve the model of this case."""
        return self.build().solve(
            alpha=float(self.alpha), ridge=float(self.ridge), digits=digits, progress=False
        )

    def deviations(self, solution: Solution) -> dict[str, float]:
        """Return {quantity: relative deviation}; absolute where the reference is zero."""
        import mpmath

        ctx = mpmath.mp.clone()
        ctx.dps = 60
        found = {
            "test_error": solution.test_error,
            "training_error": solution.training_error,
            **solution.order_parameters,
            **solution.conjugates,
        }
        exact = {name: ctx.mpf(value) for name, value in found.items()}
        factor = ctx.mpf(self.ridge) * ctx.mpf(self.model["beta"]) / ctx.mpf(self.alpha)
        exact["regularised_training_error"] = exact["training_error"] + factor * exact["q2"]
        deviations = {}
        for name, text in self.values.items():
            value = ctx.mpf(text)
            deviations[name] = float(abs(exact[name] - value) / (abs(value) or 1))
        return deviations


def reference_document() -> dict[str, Any]:
    """Return the file of reference values as it is."""
    text = Path(__file__).with_name("reference.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@cache
def reference_cases() -> tuple[ReferenceCase, ...]:
    """Return all reference cases."""
    return tuple(ReferenceCase(**case) for case in reference_document()["cases"])
