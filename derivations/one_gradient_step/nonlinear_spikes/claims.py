"""Claims: windows of degrees, rungs of the risk, where the theories meet, and finite widths."""

from __future__ import annotations

import math
from typing import Any

import sympy as sp

from ....symbolic.expressions.factors import factored
from ....symbolic.systems.ridge_equivalent import SignalResponse, Spike
from ...claims import Finding, Status, declare_claim, evidence
from ...identities import cancels, identities_hold
from ...penalties import paper_ridge
from ...spiked_random_features.vocabulary.model import VocabularyFeatures
from ..model import OneGradientStep
from ..risk import Readout
from ..symbols import beta, step_size, teacher_linear, teacher_residual
from . import physics

_MLHD = "Moniri, Lee, Hassani, Dobriban, arXiv 2310.07891"

_DEGREE, _EXPONENT = sp.symbols("k s", positive=True)
_CRITICAL = physics.window_edge(_DEGREE)
_COEFFICIENT, _LENGTH = sp.symbols("mu_k theta", real=True)
_STRENGTH = _COEFFICIENT**2 * _LENGTH ** (2 * _DEGREE) * physics.width ** (1 - _DEGREE)

declare_claim(
    "nonlinear-windows",
    title="Between steps of order one and giant steps degrees appear one by one",
    statement=(
        r"At width $N$ a step adds, beside the linear spike, one spike $\kappa^k$ for each Hermite "
        r"coefficient $\mu_k$ of the student, $\kappa$ the projection on the step's direction, of "
        r"squared strength $a_k^2 = «strength»$ if the student has the lower degrees of the same "
        r"parity. It is finite for $\eta \asymp N^s$ with $«exponent»$."
    ),
    source=f"{_MLHD}, for steps inside of a window; strengths derived here",
    status=Status.THEOREM,
    formulas={"exponent": sp.Eq(_EXPONENT, _CRITICAL), "strength": _STRENGTH},
)


@evidence("nonlinear-windows", "exact", "strengths to degree 6 and their exponents")
def strengths() -> Finding:
    """Gram-Schmidt factors of the powers, and the power of N that keeps a strength finite."""
    results = {}
    for k in range(1, 7):
        degrees = [j for j in range(k + 1) if (k - j) % 2 == 0]
        result = physics.spike_strength(k, degrees)
        wanted = _STRENGTH.subs({
            _COEFFICIENT: physics.student_coefficient(k), _LENGTH: physics.spike_length(),
            _DEGREE: k,
        })  # fmt: skip
        results[f"strength of degree {k}"] = cancels(result**2 - wanted**2)
        at_exponent = result.subs(step_size, physics.width ** _CRITICAL.subs(_DEGREE, k))
        results[f"exponent of degree {k}"] = not sp.powsimp(at_exponent).has(physics.width)
    return identities_hold(results, "degrees 1 to 6")


_SHOWN, _COSINE = sp.symbols("mu_k^* gamma", real=True)
_ENERGY = (_SHOWN * _COSINE**_DEGREE) ** 2 / sp.factorial(_DEGREE)
_BULK = physics.Bulk(*sp.symbols("w tau w_1 tau_1", real=True))
_SHARE = factored(physics.remaining_fraction(_BULK, sp.Symbol("nu", positive=True)))

declare_claim(
    "nonlinear-rungs",
    title="The risk falls in steps, by what each degree shows of the teacher",
    statement=(
        r"Strictly inside of the window in which the degrees up to $k$ are free, the risk is that "
        r"of plain random features whose teacher lacks its projection on "
        r"$1, \kappa, \dots, \kappa^k$: $R(k - 1) - R(k) = E_k/D$ with $E_k = «energy»$. At the "
        r"edge of a window, where the squared strength is $a$, the share $\Lambda(a) = «share»$ of "
        r"it stays bias, $\tau_1 = d\tau/d\nu$."
    ),
    formulas={"energy": _ENERGY, "share": _SHARE},
    source=f"{_MLHD}, for $\\ell \\le 2$; in general, and edges, derived here",
    status=Status.DERIVED_HERE,
)


@evidence(
    "nonlinear-rungs", "exact", "rungs are limits of the edges, and energies those of degrees"
)
def rungs() -> Finding:
    """Limits of Λ and of the linear theory, and energies of clean families."""
    length, share = sp.Symbol("t", positive=True), _SHARE
    results = {
        "no strength leaves all": share.subs(physics.strength, 0) == 1,
        "a large strength leaves nothing": sp.limit(share, physics.strength, sp.oo) == 0,
    }
    response = SignalResponse(*sp.symbols("g r h f e", positive=True))
    readout = Readout(response, *sp.symbols("q D F", positive=True))
    aligned = physics.alignment() ** 2
    spike = Spike(aligned * length, (1 - aligned) * length)
    linear = physics.shown_energy(1, (1,))
    limit = sp.limit(response.bias(spike), length, sp.oo)
    rung = physics.rung_bias(readout, [linear])
    results["the linear spike without bound is the first rung"] = cancels(
        teacher_residual + teacher_linear**2 * limit - rung
    )
    for k in (2, 3, 4):
        energy = physics.shown_energy(k, range(k + 1))
        wanted = _ENERGY.subs(
            {_SHOWN: physics.teacher_coefficient(k), _COSINE: physics.alignment(), _DEGREE: k}
        )
        results[f"energy of degree {k}"] = cancels(energy - wanted)
    return identities_hold(results, "Λ, the first rung and energies to degree 4")


declare_claim(
    "nonlinear-meeting-points",
    title="Steps of every size meet the theories of steps of order one and of giant steps",
    statement=(
        r"With the linear spike alone the risk at a width is that of steps of order one. Spiked "
        r"random features of $K$ letters, $s \to 0$ after $d \to \infty$, end on the rung of the "
        r"first $K$ powers that the student has; relu with equal readouts gains nothing, because "
        r"the constant takes the only letter."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
)


@evidence("nonlinear-meeting-points", "exact", "one spike is the rank-one step of Ba et al.")
def one_spike() -> Finding:
    """What the labels leave unexplained, by Woodbury's identity of either theory."""
    g, length = sp.symbols("g t", positive=True)
    # Without a spike 1 - h = βg is explained, and μ1²G = g/h.
    h, gamma = 1 - beta * g, physics.alignment()
    spikes = physics.Spikes(
        overlaps=physics.power_overlaps([1]),
        resolvent=sp.diag(beta * g, length * g / h),
        slope=sp.zeros(2, 2),
        labels=physics.power_labels([1]),
    )
    v = (sp.eye(2) + spikes.overlaps * spikes.resolvent).inv() * spikes.labels
    across = teacher_linear**2 * (1 - gamma**2) * beta * g
    spike = Spike(gamma**2 * length, (1 - gamma**2) * length)
    response = SignalResponse(g, sp.S.Zero, h, sp.S.Zero, sp.S.Zero)
    left = teacher_linear**2 * response.unexplained(spike)
    result = teacher_linear**2 - across - spikes.explained(v)
    return identities_hold({"unexplained part": cancels(result - left)}, "one spike")


_SHORT = 0.02
_CASES: tuple[tuple[str, str, dict[str, Any], tuple[float, ...], str], ...] = (
    ("erf", "erf", {"alpha0": 2.0, "noise_variance": 0.25}, (1.0,), "rung 1"),
    ("erf", "sin", {"alpha0": 5.0, "noise_variance": 0.1}, (1.0, -0.5), "rung 3"),
)


@evidence("nonlinear-meeting-points", "quadrature", "short giant steps of one and two letters")
def short_giant_steps() -> Finding:
    """Risks at s = 0.02 and 0.01 against rungs: the distance falls like s²."""
    distances = {}
    for student, teacher, options, letters, rung in _CASES:
        step = OneGradientStep(student, teacher, alpha=2.0, beta=1.5, step_size=1.0, **options)
        wanted = step.at_width(1000).solve(ridge=paper_ridge(0.05)).rungs[rung]
        ridge = paper_ridge(0.05).at(alpha=2.0, beta=1.5)
        shares = [1 / len(letters)] * len(letters)
        distances[f"{student} on {teacher}"] = [
            VocabularyFeatures(
                student, teacher, letters, shares, step_size=size, beta=1.5, **options
            ).solve(alpha=2.0, ridge=ridge).test_error - wanted
            for size in (_SHORT, _SHORT / 2)
        ]  # fmt: skip
    ratios = {name: far / near for name, (far, near) in distances.items()}
    return Finding(
        all(abs(ratio - 4) < 0.5 for ratio in ratios.values()),
        f"distances from the rung fall by {', '.join(f'{r:.3f}' for r in ratios.values())} when "
        "the step is halved, 4 for s²",
        {"distances": distances},
    )


declare_claim(
    "nonlinear-widths",
    title="Networks at a finite width follow spiked random features at every step size",
    statement=(
        r"The spikes of all degrees leave out what is of relative size "
        r"$(|\mu_3/\mu_1| + \mathrm{Var}\,\sigma'/\mu_1^2)\,\theta^2/N$. Spiked random features "
        r"whose letters are the readouts $\sqrt N a_j$ of the step, at that width, hold from "
        r"$\eta = O(1)$ to giant steps."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
)


@evidence("nonlinear-widths", "quadrature", "letters and all degrees of a step, at N = 20000")
def order_of_the_difference() -> Finding:
    """Both theories differ by the relative order θ²/N, which is that of the step squared."""
    gaps = []
    for size in (4.0, 8.0):
        step = OneGradientStep(
            "erf", "sin(3*z/2)", alpha=4, beta=1.5, step_size=size, noise_variance=0.05
        )
        model = step.at_width(20_000)
        operator, letters = (
            model.solve(ridge=paper_ridge(0.05), form=form) for form in ("operator", "letters")
        )
        gaps.append(abs(operator.risk - letters.risk) / operator.small)
    return Finding(
        max(gaps) < 1 and abs(gaps[1] / gaps[0] - 1) < 0.3,
        f"the risks differ by {gaps[0]:.2g} and {gaps[1]:.2g} of θ²/N at steps of 4 and 8",
        {"differences": gaps},
    )


_SEEDS = 12
_STANDARD_ERRORS = 4.0


@evidence(
    "nonlinear-widths", "simulation", "an erf student at N = 300, three step sizes", slow=True
)
def networks(*, progress: bool = False) -> Finding:
    """Networks with full gradients against letters at θ²/N from .01 to 1."""
    scores, means = {}, {}
    for size in (2.0, 10.0, 24.0):
        step = OneGradientStep(
            "erf", "sin(3*z/2)", alpha=4, beta=1.5, step_size=size, noise_variance=0.05
        )
        model = step.at_width(300)
        limit = model.solve(ridge=paper_ridge(0.05), form="letters").risk
        result = model.simulate(
            ridge=paper_ridge(0.05), seeds=_SEEDS, seed=231007891, progress=progress
        )
        mean, error = result.mean().item(), result.standard_error().item()
        scores[f"step size {size:g}"] = (mean - limit) / error
        means[f"step size {size:g}"] = [mean, error, limit]
    worst = max(map(abs, scores.values()))
    return Finding(
        worst <= _STANDARD_ERRORS and all(map(math.isfinite, scores.values())),
        f"{len(scores)} means of {_SEEDS} networks: at most {worst:.1f} standard errors away",
        {"mean_error_limit": means, "scores": scores},
    )
