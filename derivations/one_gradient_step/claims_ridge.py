"""Claims: signs, the best penalty, the peak and the limit without a penalty of the ridge risk.

Two intervals that do not meet prove which number is larger; that needs python-flint.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import sympy as sp

from ...ball_library import require_flint
from ...symbolic.enclosures import Enclosure
from ..certificates.agreement import agreement, decided, proof_of
from ..claims import Finding, Status, declare_claim, evidence
from ..identities import identities_hold
from ..penalties import PaperRidge
from .claims_risk import RISK, certified_risk, reference_case, spectral_deviations
from .claims_spike import PROVEN, PROVEN_DIGITS
from .limits import peak_property
from .model import OneGradientStep
from .properties import PROPERTIES
from .reference import model_of, reference_cases, reference_document

_BA = "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445"

declare_claim(
    "ba-ridge-properties",
    title="The step never hurts, and longer steps help more",
    statement=(
        r"$R_0 \ge R_{GD} \ge B_{GD} \ge \|P_{>1}f_*\|^2$; $\delta = R_0 - R_{GD} = 0$ only for "
        r"$\mu_1\mu_1^*\eta = 0$; $\delta$ increases strictly with $\eta$ at every $(\alpha, "
        r"\beta, \lambda)$. Limits: the share $\cos^2(u, \beta_*)$ of the linear bias for $\eta "
        r"\to \infty$ (formal), $\delta = O(1/\beta)$, $\delta \simeq 2\mu_1^2\mu_1^{*2}"
        r"\theta_2^2/\lambda_B$, and a closed form for $\alpha \to \infty$."
    ),
    source=f"{_BA}, section 4, for $n/d \\to \\infty$; in general derived here",
    status=Status.DERIVED_HERE,
)


@evidence(
    "ba-ridge-properties", "exact", "identities of rational functions, and signs of their terms"
)
def properties() -> Finding:
    """Every step of the proofs of all properties."""
    results = {
        f"{name}: {step}": holds
        for name, build in PROPERTIES.items()
        if name != "optimal penalty"
        for step, holds in build().check().items()
    }
    return identities_hold(results, f"{len(PROPERTIES) - 1} properties")


_STEPS = (0.5, 1.0, 2.0, 4.0, 8.0)


@evidence(
    "ba-ridge-properties",
    "certified",
    "one network: the chain of inequalities, and δ at five η",
    arguments={"count": 1},
)
@evidence(
    "ba-ridge-properties",
    "certified",
    "the chain for 13 networks, and δ at five η of one",
    slow=True,
)
def chain(count: int | None = None) -> Finding:
    """R_0 > R_GD > B_GD > |P_{>1} f|² of reference networks, and a gain that grows with η.

    Parameters
    ----------
    count : int, optional
        Of the networks; default: all thirteen.
    """
    require_flint()
    results: dict[str, bool] = {}
    for case in reference_cases()[:count]:
        model = case.build()
        proof = certified_risk(model, float(case.paper_ridge))
        links = [proof["risk_initial"], proof["risk_trained"], proof["bias_trained"],
                 model.teacher_moments.certified()["residual"]]  # fmt: skip
        results[case.name] = all(surely_less(small, large) for large, small in pairwise(links))
    given = reference_cases()[0]
    gains = [
        certified_risk(model_of({**given.model, "step_size": str(step)}), float(given.paper_ridge))[
            "improvement"
        ]
        for step in _STEPS
    ]
    results["the gain grows from one step size to the next"] = all(
        surely_less(small, large) for small, large in pairwise(gains)
    )
    return decided(results, "intervals of R_0, R_GD, B_GD and the linear bound are apart in order")


def surely_less(one: Enclosure, two: Enclosure) -> bool:
    """Tell whether all numbers of an interval are below all of another one."""
    return bool(one.upper < two.lower)


declare_claim(
    "ba-optimal-ridge",
    title="The best penalty is positive for N < n and a root of one polynomial",
    statement=(
        r"$B$ and $D$ increase with $\nu$, and $dB/d\nu = O(\nu)$, so that for $N < n$ the best "
        r"penalty is positive as soon as $B + \Delta > 0$ at $\nu = 0$. It solves "
        r"$\frac{d}{ds}\frac{B+\Delta}{D} = 0$, a polynomial equation in $s$."
    ),
    source=f"derived here, from the risk of {_BA}",
    status=Status.DERIVED_HERE,
)


@evidence("ba-optimal-ridge", "exact", "both derivatives as sums of positive terms")
def optimum_property() -> Finding:
    """B and D increase with ν, and B not to first order at ν = 0."""
    return identities_hold(PROPERTIES["optimal penalty"]().check(), "B and D increase with ν")


@evidence(
    "ba-optimal-ridge", "quadrature", "three step sizes in 40-digit arithmetic, and both ends"
)
def optimal_values() -> Finding:
    """Best penalties of three step sizes, and of a student for n < N with none."""
    deviations: dict[str, float] = {}
    for entry in reference_document()["optimal_ridge"]:
        best = model_of(entry["model"]).optimum(over="ridge", digits=20)
        step = entry["model"]["step_size"]
        for name in ("paper_ridge", "risk"):
            value = sp.Float(entry[name], 30)
            got = sp.Float(str(getattr(best, name)), 30)
            deviations[f"η = {step}: {name}"] = float(abs(got / value - 1))
    worst = max(deviations.values())
    wide = OneGradientStep("erf", "z", 1.2, 8.0, 2.0).optimum(over="ridge")
    unseen = OneGradientStep("erf", "He(3, z)", 2, 1.0).optimum(over="ridge")
    return Finding(
        # 15 digits are printed.
        worst <= 5.1e-15 and wide.ridge == 0 and unseen.paper_ridge == float("inf"),
        f"best penalties and risks at three step sizes off by {worst:.1e}; without noise and for "
        "n < N the best penalty can be 0, without a linear part of the teacher it is infinite",
        {"deviations": deviations},
    )


_MARGIN = 1e-3


@evidence(
    "ba-optimal-ridge", "certified", "a minimum within 0.1 % of three penalties; smaller than at 0"
)
def best_penalties() -> Finding:
    """Between penalties 0.1 % below and above the stored best one there is a local minimum."""
    require_flint()
    values: dict[str, Any] = {}
    results: dict[str, bool] = {}
    for entry in reference_document()["optimal_ridge"]:
        model, best = model_of(entry["model"]), float(entry["paper_ridge"])
        name = f"η = {entry['model']['step_size']}"
        least, *around, without = (
            certified_risk(model, x)["risk_trained"]
            for x in (best, best * (1 - _MARGIN), best * (1 + _MARGIN), 0.0)
        )
        values[name] = (least, entry["risk"])
        results |= {
            f"{name}: larger on both sides": all(surely_less(least, side) for side in around),
            f"{name}: larger without a penalty": surely_less(least, without),
        }
    stored = agreement(values, 15, "least risks", proven=PROVEN)
    signs = decided(results, "the stored penalties are within 0.1 % of a minimum, which beats 0")
    return Finding(
        stored.passed and signs.passed,
        f"{stored.summary}; {signs.summary}",
        {**stored.details, **signs.details},
    )


declare_claim(
    "ba-interpolation-peak",
    title="The step lowers the peak at n = N and does not remove it",
    statement=(
        r"At $n = N$, for $\lambda_B \to 0$, $$R + \Delta \simeq \frac{B|_{\nu=0} + \Delta}"
        r"{2\sqrt{\lambda_B\tau_1}},\qquad \tau_1 = \tfrac1N\mathrm{tr}\,\Sigma^{-1},$$ before "
        r"and after the step, which enters through $B$ alone."
    ),
    source=f"derived here, from the risk of {_BA}",
    status=Status.DERIVED_HERE,
)


@evidence("ba-interpolation-peak", "exact", "penalty and D to leading order in ν")
def peak_leading_order() -> Finding:
    """λ_B and D to leading order in ν at n = N."""
    return identities_hold(peak_property().check(), "λ_B = ν²G and D = 2ντ_1 at n = N")


_HALF_OF_24_DIGITS = 5.1e-24


@evidence("ba-interpolation-peak", "quadrature", "leading order against the risk down to λ = 1e-12")
def peak_values() -> Finding:
    """Reference values; the leading order is approached like the root of the penalty."""
    entry = reference_document()["interpolation_peak"]
    model = model_of(entry["model"])
    deviations = peak_deviations()
    errors = [
        model.interpolation_peak(ridge=PaperRidge(penalty), digits=20).relative_error
        for penalty in (1e-8, 1e-10, 1e-12)
    ]
    ratios = [left / right for left, right in pairwise(errors)]
    peak = model.interpolation_peak(ridge=PaperRidge(float(entry["paper_ridge"])))
    spectral = spectral_deviations(replace(model, alpha=model.beta), 1e-10, 20)
    passed = (
        all(abs(ratio - 10) < 0.1 for ratio in ratios)
        and max(spectral.values()) < 1e-17
        and max(deviations.values()) < _HALF_OF_24_DIGITS
        and peak.trained < peak.initial
    )
    return Finding(
        bool(passed),
        f"at λ = 1e-10 {peak.exact_initial:.2f} before and {peak.exact_trained:.2f} after the step "
        f"against {peak.initial:.2f} and {peak.trained:.2f}, all four as by quadrature to 24 "
        f"digits; relative error falls by {ratios[0]:.2f} and {ratios[1]:.2f} as λ falls by 100",
        {"relative_errors": errors, "spectral": spectral, "deviations": deviations},
    )


def peak_deviations() -> dict[str, float]:
    """Compare the peak with reference values to 24 digits: relative deviations."""
    entry = reference_document()["interpolation_peak"]
    peak = model_of(entry["model"]).interpolation_peak(
        ridge=PaperRidge(float(entry["paper_ridge"])), digits=25
    )
    deviations: dict[str, float] = {}
    for layer in ("initial", "trained"):
        for name, attribute in (("exact", f"exact_{layer}"), ("asymptotic", layer)):
            got = sp.Float(str(getattr(peak, attribute)), 30)
            deviations[f"{name}, {layer}"] = float(abs(got / sp.Float(entry[layer][name], 30) - 1))
    return deviations


@evidence(
    "ba-interpolation-peak", "certified", "the step lowers a peak of 4420 at a penalty of 1e-10"
)
def peak() -> Finding:
    """The peak at n = N and a penalty of 1e-10, before and after the step."""
    require_flint()
    document = reference_document()["interpolation_peak"]
    penalty = float(document["paper_ridge"])
    proof = proof_of(model_of(document["model"]).risk(ridge=PaperRidge(penalty), certify=True))
    values = {
        layer: (proof[f"risk_{layer}"], document[layer]["exact"])
        for layer in ("initial", "trained")
    }
    result = agreement(values, 24, "risks at the peak", proven=12)
    lower = proof["risk_trained"].upper < proof["risk_initial"].lower
    says = "the step is proven to lower the peak" if lower else "the intervals overlap"
    return Finding(result.passed and lower, f"{result.summary}; {says}", result.details)


declare_claim(
    "ba-ridgeless",
    title="Without a penalty the risk has a closed form on both sides of n = N",
    statement=(
        r"For $\lambda \to 0$, $s \to \max(s_A, s_B)$: for $N < n$ the larger root $s_A$ of $s^2 - "
        r"(1 + \beta + \kappa)s + \beta$, where $\nu = 0$; for $N > n$ the larger root $s_B$ of "
        r"$\alpha s^2 - \beta(\alpha + 1 + \kappa)s + \beta^2$, where the training error vanishes. "
        r"$D$ is needed in both."
    ),
    source=f"derived here, from the risk of {_BA}",
    status=Status.DERIVED_HERE,
)


@evidence("ba-ridgeless", "quadrature", "limits against a penalty of 1e-25, 30 digits")
def ridgeless_values() -> Finding:
    """Closed forms without a penalty against a vanishing one, on both sides of n = N."""
    deviations: dict[str, float] = {}
    interpolating = []
    for name in ("12", "13"):
        case = next(c for c in reference_cases() if c.name == name)
        model = case.build()
        limit, near = model.ridgeless(digits=30), model.risk(ridge=PaperRidge(1e-25), digits=30)
        for quantity in ("initial", "trained", "training_error_trained"):
            left, right = getattr(limit, quantity), getattr(near, quantity)
            deviations[f"{name}: {quantity}"] = float(abs(left - right) / (abs(left) or 1))
        interpolating.append(float(limit.training_error_trained))
    worst = max(deviations.values())
    return Finding(
        worst <= 1e-22 and interpolating[0] > 0 and interpolating[1] == 0,
        f"limits agree with λ_B = 1e-25 to {worst:.1e}; the training error is "
        f"{interpolating[0]:.4g} for N < n and 0 for N > n",
        {"deviations": deviations},
    )


# What is zero without a penalty, for N < n and for N > n.
_VANISHING = {
    "12": ("effective_ridge",),
    "13": ("training_error_initial", "training_error_trained"),
}


@evidence(
    "ba-ridgeless", "certified", "risks and training errors of two networks, by the closed form"
)
def ridgeless() -> Finding:
    """Two networks without a penalty, on both sides of n = N: where ν or a training error is 0."""
    require_flint()
    values: dict[str, Any] = {}
    zeros: dict[str, bool] = {}
    for name, vanishing in _VANISHING.items():
        case = reference_case(name)
        proof = certified_risk(case.build(), 0.0)
        values |= {
            f"{name}: {stored}": (proof[mine], case.values[stored]) for stored, mine in RISK.items()
        }
        zeros |= {f"{name}: {x}": proof[x].is_exact and proof[x].midpoint == 0 for x in vanishing}
    result = agreement(values, PROVEN_DIGITS, "limits", proven=PROVEN)
    exact = all(zeros.values())
    says = "what vanishes is exactly zero" if exact else f"not exactly zero: {zeros}"
    return Finding(result.passed and exact, f"{result.summary}; {says}", result.details)
