r"""Claim: teachers of several directions in the proportional theories.

Cui et al., arXiv 2402.04980, equation (81), and Ba et al., arXiv 2205.01445, for a general target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp

from ...symbolic.expressions.activations import activation
from ...symbolic.gaussian.expectation import expect
from ...symbolic.systems.equations import stationarity
from ...symbolic.systems.random_matrix import MarchenkoPasturAverage
from ..claims import Finding, Status, declare_claim, evidence
from ..comparison import Comparison, compare, finding
from ..identities import identities_hold, vanishes
from ..one_gradient_step.model import OneGradientStep
from ..teachers import DirectionalTeacher, read_teacher
from . import physics as fe
from .model import SpikedRandomFeatures
from .vocabulary.model import VocabularyFeatures

_ACROSS = fe.ACROSS[0]
_V = fe.mu1**2 * fe.V1 + fe.mu2_squared * fe.V2
_LEVEL = fe.ridge + fe.V2_hat + fe.V1_hat * fe.c * fe.eigenvalue
_SHARE = MarchenkoPasturAverage(fe.c * fe.eigenvalue / _LEVEL, fe.eigenvalue, fe.beta)
_OVERLAP = sp.Eq(_ACROSS.overlap, fe.beta * _ACROSS.conjugate * _SHARE)
_CONJUGATE = sp.Eq(
    _ACROSS.conjugate, fe.alpha / fe.beta * fe.average(fe.mu1 * _ACROSS.moment / (1 + _V))
)

declare_claim(
    "cui-81",
    title="Teachers of several directions: the spike is along C₁, the rest conditioned on it",
    statement=(
        r"For $y = f_*(x) + \sqrt\Delta\,\xi$ with $C_1 = \mathbb{E}[xf_*] \ne 0$, Results 3.1-3.3 "
        r"hold with $|C_1|$ in place of $h^*_1$, $\gamma$ the overlap of the spike with "
        r"$\theta = C_1/|C_1|$, and the moments $T_i$ of $f_*$ given $\kappa$. For each direction "
        r"$n_k$ of the teacher across spike and $\theta$ the readout has one more overlap, "
        r"$«overlap»$, with $«conjugate»$ and $T_1^k = \mathbb{E}[(n_k\cdot x)f_*|\kappa]$. Of "
        r"other nonlinear parts nothing but $T_0$ and $T_2$ enters."
    ),
    formulas={"overlap": _OVERLAP, "conjugate": _CONJUGATE},
    source="Cui et al., arXiv 2402.04980, equation (81); the equations of the bulk derived here",
    status=Status.REPLICA,
)

declare_claim(
    "ba-general-target",
    title="One gradient step on a target of several directions",
    statement=(
        r"For a general centred target the risk of the ridge readout after one step of order one "
        r"depends on $f_*$ through $|\mathbb{E}[xf_*]|$, along which the spike is, and through "
        r"$\|P_{>1}f_*\|^2$, which acts as label noise and is added to the risk."
    ),
    source="Ba et al., arXiv 2205.01445, Section 3, for a general target",
    status=Status.DERIVED_HERE,
)

POLYNOMIALS = ("x1*x2 + x1", "x1 + He(2, x1)*x2", "x1 + x1*x2*x3", "x1 + 2*x2 + x1*x2 - x2**2")


@evidence("cui-81", "exact", "moments by the tower rule; the equations of the added overlaps")
def moments_and_equations() -> Finding:
    """Averages of the conditional moments are those of the target; f is stationary."""
    results: dict[str, bool] = {}
    across = sp.sqrt(1 - fe.gamma**2)
    for text in POLYNOMIALS:
        f = read_teacher(text)
        assert isinstance(f, DirectionalTeacher)
        found = f.moments(fe.gamma * fe.kappa, fe.rho)
        averages = {
            "E T₀ = E f": (found.mean, f.target.mean),
            "E κT₀ = γ|C₁|": (fe.kappa * found.mean, fe.gamma * f.linear),
            "E T₁ = ρ|C₁|": (found.along, fe.rho * f.linear),
            "E T₂ = E f²": (found.square, f.target.norm_squared),
            **{f"E T₁ of n{k} = 0": (t, sp.S.Zero) for k, t in enumerate(found.across, 2)},
        }
        for name, (value, stated) in averages.items():
            difference = expect(sp.expand(value), fe.kappa) - stated
            results[f"{name} for {text}"] = sp.simplify(difference.subs(fe.rho, across)) == 0
    free_energy = fe.spiked_free_energy(
        activation("sin"), read_teacher("x1 + He(2, x1)*x2")
    ).free_energy
    conditions = stationarity(free_energy)
    # A free energy is stationary where each overlap and each conjugate is what is stated.
    results["∂f/∂ψ₂"] = vanishes(conditions[_ACROSS.overlap] - _ACROSS.conjugate + _CONJUGATE.rhs)
    results["∂f/∂ψ̂₂"] = vanishes(conditions[_ACROSS.conjugate] - _ACROSS.overlap + _OVERLAP.rhs)
    return identities_hold(results, "tower rule for the moments; the conditions of ψ₂ and ψ̂₂")


@dataclass(frozen=True)
class DirectionalCase:
    """A student and a teacher of several directions, with a giant step."""

    student: str
    teacher: str
    alpha0: float = 6.0
    alpha: float = 2.0
    ridge: float = 0.1

    def build(self) -> SpikedRandomFeatures:
        """Return the model."""
        return SpikedRandomFeatures(
            self.student, self.teacher, step_size=1.0, alpha0=self.alpha0, noise_variance=0.05,
            allow_non_odd=self.student == "relu",
        )  # fmt: skip


CASES = (
    DirectionalCase("tanh", "x1*x2 + x1"),
    DirectionalCase("relu", "x1 + He(2, x1)*x2", alpha0=60.0),
    DirectionalCase("tanh", "relu(x1) + x2"),
    DirectionalCase("erf", "He(2, x2) + x1"),
    DirectionalCase("tanh", "erf(x1) + erf(x2)"),
    DirectionalCase("erf", "x1 + x1*x2*x3"),
)
TOLERANCE = 1e-11


@evidence("cui-81", "quadrature", "errors by product quadrature over all directions")
def product_quadrature() -> Finding:
    """The letters' solver takes moments by sums over all directions instead of closed forms."""
    details: dict[str, float] = {}
    for case in CASES:
        model, f = case.build(), read_teacher(case.teacher)
        assert isinstance(f, DirectionalTeacher)
        if f.target.dimension > 2:
            # More directions than that solver sums over.
            continue
        spike, theta = model.spike, [float(x) for x in f.direction]
        other = VocabularyFeatures.from_parameters(
            case.student, case.teacher, spike_strengths=[spike.spike_strength],
            bulk_variances=[spike.bulk_variance], fractions=[1.0],
            alignment=[[spike.alignment * x for x in theta]], noise_variance=0.05,
        ).solve(alpha=case.alpha, ridge=case.ridge)  # fmt: skip
        mine = model.solve(alpha=case.alpha, ridge=case.ridge)
        for name in ("test_error", "training_error"):
            value, stated = (float(getattr(s, name)) for s in (mine, other))
            details[f"{name} of {case.student}, {case.teacher}"] = abs(value - stated) / stated
    worst = max(details.values())
    return Finding(
        worst <= TOLERANCE,
        f"{len(details)} errors agree to {worst:.1e} relative with those of moments summed over "
        "all directions",
        {"deviations": details, "tolerance": TOLERANCE},
    )


@evidence(
    "cui-81",
    "simulation",
    "errors of networks on three teachers",
    arguments={"cases": CASES[:3], "sizes": ((200, 16),)},
)
@evidence("cui-81", "simulation", "errors of networks of d = 400 on six teachers", slow=True)
def errors_of_networks(
    cases: Sequence[DirectionalCase] = CASES,
    sizes: Sequence[tuple[int, int]] = ((400, 24),),
    seed: int = 0,
) -> Finding:
    """Errors of trained networks against the theory."""
    comparisons: list[Comparison] = []
    for case in cases:
        model = case.build()
        theory = model.solve(alpha=case.alpha, ridge=case.ridge)
        for dimension, count in sizes:
            found = model.simulate(
                dimension,
                alpha=[case.alpha],
                ridge=case.ridge,
                seeds=count,
                seed=seed,
                progress=False,
            )
            for quantity in ("test_error", "training_error"):
                comparisons.append(
                    compare(
                        f"{quantity} of {case.student}, {case.teacher}",
                        getattr(theory, quantity), found[quantity].to_numpy()[:, 0],
                        4 * getattr(theory, quantity) / dimension, dimension,
                    )
                )  # fmt: skip
    return finding(comparisons, "errors of networks")


# ------------------------------------------------------------------ steps of order one


@evidence("ba-general-target", "quadrature", "the nonlinear part acts as noise")
def nonlinear_part_is_noise() -> Finding:
    """x1 + x1*x2 has the risk of x1 with the variance of x1*x2 as noise, plus that variance."""

    def solved(teacher: str, noise: float) -> tuple[float, float]:
        model = OneGradientStep(
            "erf", teacher, alpha=2.0, beta=1.5, step_size=2.0, noise_variance=noise
        )
        risk = model.solve(ridge=0.1)
        return risk.initial, risk.trained

    several, one = solved("x1 + x1*x2", 0.1), solved("z", 1.1)
    off = max(abs(a - b - 1) for a, b in zip(several, one, strict=True))
    return Finding(
        off <= 1e-13, f"risks before and after the step agree to {off:.1e}", {"deviation": off}
    )


@evidence("ba-general-target", "simulation", "risks of networks")
def one_step_networks(dimension: int = 200, count: int = 16) -> Finding:
    """Risks of networks after one step, on two targets."""
    comparisons: list[Comparison] = []
    for text in ("x1 + x1*x2", "tanh(x1) + x2"):
        model = OneGradientStep("erf", text, alpha=2, beta=1.5, step_size=3, noise_variance=0.1)
        theory = model.solve(ridge=0.1)
        found = model.simulate(dimension, ridge=0.1, seeds=count, seed=0, progress=False)
        values = found["risk"].to_numpy().reshape(count, -1)
        for name, column in (("initial", 0), ("trained", 1)):
            limit = getattr(theory, name)
            comparisons.append(
                compare(f"{name} risk of {text}", limit, values[:, column], 4 * limit / dimension)
            )
    return finding(comparisons, "risks of networks")
