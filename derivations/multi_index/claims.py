"""Claims: the free entropy, thresholds of weak recovery, estimators, and simulations of AMP."""

from __future__ import annotations

import math
from typing import Any

import sympy as sp

from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.gaussian.zero_test import is_exactly_zero
from ..claims import Finding, Status, declare_claim, evidence
from ..identities import identities_hold
from . import physics
from .channels import read_channel
from .line_averages import LineAverages
from .model import MultiIndex
from .thresholds import weak_recovery

_BARBIER = "Barbier, Krzakala, Macris, Miolane, Zdeborová, arXiv 1708.03395"
_AUBIN = "Aubin, Maillard, Barbier, Krzakala, Macris, Zdeborová, arXiv 1806.05451"
_TROIANI = "Troiani, Dandi, Defilippis, Zdeborová, Loureiro, Krzakala, arXiv 2405.15480"

_SHOWN = sp.Symbol("I", positive=True)
_COMPLEXITY = physics.sample_complexity(physics.q, _SHOWN)
_GIANT = physics.giant_step_overlap()

declare_claim(
    "index-free-entropy",
    title="Bayes-optimal estimation of one direction",
    statement=(
        r"Of labels of one direction of Gaussian inputs, $n = \alpha d$, the overlap of the "
        r"posterior mean is the stationary point of $\Phi = \frac{\hat q}{2} - \frac{1}{2}\log(1 + "
        r"\hat q) - \frac{q\hat q}{2} + \alpha\Psi(q)$ with the largest Φ, where $2\Psi' = I$; "
        r"message passing ends at the first one above 0, and $\alpha = «alpha»$ is explicit."
    ),
    source=_BARBIER,
    status=Status.THEOREM,
    formulas={"alpha": _COMPLEXITY},
)


@evidence("index-free-entropy", "exact", "stationarity of the free entropy in q and its conjugate")
def stationarity() -> Finding:
    """The equations by differentiation, and elimination of the conjugate."""
    average = sp.Function("Psi")(physics.q)
    phi = physics.free_entropy(average)
    found = sp.solve(phi.diff(physics.q_hat), physics.q)
    conjugate = sp.solve(phi.diff(physics.q), physics.q_hat)
    reduced = physics.free_entropy_at_overlap(average)
    slope = reduced.diff(physics.q)
    wanted = physics.q / (1 - physics.q) * -sp.Rational(1, 2) + physics.alpha * average.diff(
        physics.q
    )
    results = {
        "q = q̂/(1 + q̂)": len(found) == 1
        and sp.simplify(found[0] - physics.q_hat / (1 + physics.q_hat)) == 0,
        "q̂ = 2αΨ'": sp.simplify(conjugate[0] - 2 * physics.alpha * average.diff(physics.q)) == 0,
        "α of an overlap": sp.simplify(
            found[0].subs(physics.q_hat, _COMPLEXITY * _SHOWN) - physics.q
        )
        == 0,
        "φ' at given q": sp.simplify(slope - wanted) == 0,
    }
    return identities_hold(results, "equations of one index")


_CHANNELS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sign", {}), ("z", {"labels": "sign", "noise_variance": 0.5}), ("relu", {}), ("abs", {}),
    ("tanh", {"noise_variance": 0.1}), ("relu", {"noise_variance": 0.1}),
    ("z", {"labels": "logistic"}), ("sign", {"flips": 0.1}),
)  # fmt: skip


@evidence("index-free-entropy", "quadrature", "dΨ/dq = I/2 of eight laws of labels")
def slope_of_the_average() -> Finding:
    """Central differences of Ψ against half the information."""
    worst, step = 0.0, 1e-4
    for target, options in _CHANNELS:
        averages = LineAverages(read_channel(target, **options), 1)
        q = 0.45
        higher, lower = (
            (averages.at(q + k * step)[1] - averages.at(q - k * step)[1]) / (2 * k * step)
            for k in (1, 2)
        )
        slope = (4 * higher - lower) / 3
        worst = max(worst, abs(slope - averages.at(q)[0] / 2))
    return Finding(
        worst < 1e-9, f"8 laws agree to {worst:.1e} with differences of fourth order",
        {"largest_difference": worst},
    )  # fmt: skip


declare_claim(
    "index-thresholds",
    title="From how many samples labels show a direction",
    statement=(
        r"Where $\mathbb E[u\mid y] = 0$, weak recovery begins at $1/\alpha_c = \rho(F)$, "
        r"$F(M) = \mathbb E[GMG]$, $G = \mathbb E[uu^\top - 1\mid y]$: $\alpha_c = 1/2$ for "
        r"$|u|$, $K/2$ for $|u|^2$ of $K$ directions, $\pi^2/4$ for $\mathrm{sign}(u_1u_2)$, "
        r"0.59375 for $u_1u_2$; a committee of two signs specialises at $\alpha = 2.0524$."
    ),
    source=f"{_TROIANI}; {_AUBIN}; values recomputed here",
    status=Status.REPLICA,
)


@evidence("index-thresholds", "exact", "thresholds in closed form")
def closed_forms() -> Finding:
    """Thresholds as SymPy numbers."""
    c = sp.S.One
    p = sp.erfc(c / sp.sqrt(2))
    density = sp.exp(-(c**2) / 2) / sp.sqrt(2 * sp.pi)
    known = {
        "abs": sp.Rational(1, 2), "z**2": sp.Rational(1, 2), "x1**2 + x2**2": sp.S.One,
        "x1**2 + x2**2 + x3**2": sp.Rational(3, 2), "sign(x1*x2)": sp.pi**2 / 4,
        "sign(abs(z) - 1)": p * (1 - p) / (4 * c**2 * density**2),
    }  # fmt: skip
    results = {}
    for target, wanted in known.items():
        found = weak_recovery(read_channel(target)).exact
        results[target] = found is not None and is_exactly_zero(found - wanted, target)
    for target, wanted_kind in (("sign(x1*x2*x3)", "hard"), ("He(3, z)", "trivial")):
        results[target] = weak_recovery(read_channel(target)).kind == wanted_kind
    return identities_hold(results, "8 labels")


@evidence("index-thresholds", "quadrature", "u1 u2, He_4, noise, and the committee of two signs")
def values() -> Finding:
    """Thresholds by integrals, and where the unspecialised branch of the committee ends."""
    product = weak_recovery(read_channel("x1*x2")).value
    fourth = weak_recovery(read_channel("He(4, z)")).value
    noisy = weak_recovery(read_channel("He(2, z)", noise_variance=0.5)).value
    committee = MultiIndex("sign(x1) + sign(x2)").thresholds().specialisation
    gaps = {
        "u1*u2": abs(product - 0.5937510982222571995536),
        "He_4": abs(fourth - 0.6448504699023041),
        "He_2 with noise": abs(noisy - 0.5779870614190219),
        "committee, overlap": abs(committee[0] - 0.7109479270146983),
        "committee, alpha": abs(committee[1] - 2.0523824297409683),
    }
    worst = max(gaps.values())
    return Finding(worst < 1e-12, f"five values agree to {worst:.1e}", {"differences": gaps})


declare_claim(
    "index-estimators",
    title="A giant step among the estimators of its direction",
    statement=(
        r"On the same samples $\gamma^2 = «giant»$ of a giant step is at most that of ridge "
        r"regression, each at most the same on the labels $\mathbb E[u\mid y]$, and all at most "
        r"Bayes. A giant step on $\mathbb E[u\mid y]$ is the first iteration of message passing. "
        r"Phase retrieval, $y = |u|$, is solved by message passing from $\alpha = 1.128$."
    ),
    source=f"{_BARBIER} for 1.128; the ladder derived here",
    status=Status.DERIVED_HERE,
    formulas={"giant": _GIANT},
)


@evidence("index-estimators", "exact", "first iteration, and ridge regression of linear labels")
def first_iteration() -> Finding:
    """Identities of the overlaps."""
    a, info = physics.alpha, physics.information
    transformed = physics.transformed(_GIANT)
    q = physics.ridge_overlap()
    excess = physics.square / physics.linear**2 - 1
    first = GaussianExpectation(sp.sign(physics.z) * physics.z, physics.z).doit()
    results = {
        "a giant step on E[u|y]": sp.simplify(transformed - a * info / (1 + a * info)) == 0,
        "ridge: q/(1 - q) = α/(1 - q + σ²)": sp.simplify(
            sp.expand(q * (1 - q + excess) - a * (1 - q))
        ) == 0,
        "sign: the giant step loses nothing": sp.simplify(
            physics.efficiency().subs({
                physics.linear: first, physics.square: 1, physics.information: first**2
            }) - 1
        ) == 0,
    }  # fmt: skip
    return identities_hold(results, "overlaps in closed form")


@evidence("index-estimators", "quadrature", "the ladder of three teachers, and phase retrieval")
def ladder() -> Finding:
    """Orders of estimators, and the spinodal of |u|."""
    worst = math.inf
    for target, noise in (("tanh", 0.1), ("sign", 0.0), ("relu", 0.0)):
        model = MultiIndex(target, noise)
        x = model.estimators(alpha=0.5)
        pairs = (
            (x.giant_step, x.ridge), (x.giant_step, x.giant_step_transformed),
            (x.giant_step_transformed, x.ridge_transformed), (x.ridge, x.ridge_transformed),
            (x.ridge_transformed, x.bayes),
        )  # fmt: skip
        worst = min(worst, *(high - low for low, high in pairs))
    found = MultiIndex("abs").thresholds()
    gap = abs(found.exact_recovery - 1.1284714066722)
    return Finding(
        worst > -1e-12 and gap < 1e-11 and found.first_order == 1.0,
        f"no estimator beats a better one by more than {max(-worst, 0):.1e}; phase retrieval at "
        f"{found.exact_recovery:.10f}",
        {"phase_retrieval": found.exact_recovery},
    )


_STANDARD_ERRORS = 4.0
_RUNS: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("sign", {}, 2.0), ("relu", {}, 1.0), ("tanh", {"noise_variance": 0.1}, 2.0),
)  # fmt: skip
_ITERATIONS = (0, 1, 4, 24)


@evidence("index-estimators", "simulation", "message passing at d = 2000", slow=True)
def message_passing(*, progress: bool = False) -> Finding:
    """Overlaps after 1, 2, 5 and 25 iterations against state evolution."""
    scores = {}
    for target, options, alpha in _RUNS:
        model = MultiIndex(target, **options)
        limit = model.state_evolution(alpha=alpha).overlaps
        found = model.simulate(2000, alpha=alpha, seeds=8, seed=170803395, progress=progress)
        mean, error = found.mean("amp_overlap"), found.standard_error("amp_overlap")
        for t in _ITERATIONS:
            scores[f"{target}, iteration {t + 1}"] = float((mean[t] - limit[t]) / error[t])
    worst = max(map(abs, scores.values()))
    return Finding(
        worst <= _STANDARD_ERRORS and all(map(math.isfinite, scores.values())),
        f"{len(scores)} means of 8 runs: at most {worst:.1f} standard errors away",
        {"scores": scores},
    )
