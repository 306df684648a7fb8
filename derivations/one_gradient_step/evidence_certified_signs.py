r"""Proven inequalities, and integrals that share no formula with what they are compared to.

Two intervals that do not meet prove which number is larger; all of this needs python-flint.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ...ball_library import require_flint
from ..certificates.agreement import agreement, decided, proof_of
from ..certificates.proof import as_ball
from ..claims import Finding
from ..penalties import paper_ridge
from .evidence_certified import _DIGITS, _PROVEN, _RISK, _amplitude
from .reference import ReferenceCase, model_of, reference_cases, reference_document

if TYPE_CHECKING:
    from ...symbolic.enclosures import Enclosure
    from ..certificates.certificate import Certificate
    from .model import OneGradientStep

_STEPS = (0.5, 1.0, 2.0, 4.0, 8.0)
# The first degree above 1 whose coefficient does not vanish.
_DEGREES = {"erf": 3, "tanh": 3, "sin": 3, "relu": 2, "softplus": 2, "He3": 3, "abs": 2}
_BELOW_KERNELS = {("erf", "erf"), ("tanh", "tanh"), ("erf", "tanh"), ("tanh", "erf")}
_MARGIN = 1e-3
# What is zero without a penalty, for N < n and for N > n.
_VANISHING = {
    "12": ("effective_ridge",),
    "13": ("training_error_initial", "training_error_trained"),
}


def _case(name: str) -> ReferenceCase:
    return next(case for case in reference_cases() if case.name == name)


def _risk(model: OneGradientStep, penalty: float) -> Certificate:
    found: Certificate = proof_of(model.risk(ridge=paper_ridge(penalty), certify=True))
    return found


def _less(one: Enclosure, two: Enclosure) -> bool:
    return bool(one.upper < two.lower)


def ridgeless() -> Finding:
    """Two networks without a penalty, on both sides of n = N: where ν or a training error is 0."""
    require_flint()
    values: dict[str, Any] = {}
    zeros: dict[str, bool] = {}
    for name, vanishing in _VANISHING.items():
        case = _case(name)
        proof = _risk(case.build(), 0.0)
        values |= {
            f"{name}: {stored}": (proof[mine], case.values[stored])
            for stored, mine in _RISK.items()
        }
        zeros |= {f"{name}: {x}": proof[x].is_exact and proof[x].midpoint == 0 for x in vanishing}
    result = agreement(values, _DIGITS, "limits", proven=_PROVEN)
    exact = all(zeros.values())
    says = "what vanishes is exactly zero" if exact else f"not exactly zero: {zeros}"
    return Finding(result.passed and exact, f"{result.summary}; {says}", result.details)


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
        proof = _risk(model, float(case.paper_ridge))
        links = [proof["risk_initial"], proof["risk_trained"], proof["bias_trained"],
                 model.teacher_moments.certified()["residual"]]  # fmt: skip
        results[case.name] = all(_less(small, large) for large, small in pairwise(links))
    given = reference_cases()[0]
    gains = [
        _risk(model_of({**given.model, "step_size": str(step)}), float(given.paper_ridge))[
            "improvement"
        ]
        for step in _STEPS
    ]
    results["the gain grows from one step size to the next"] = all(
        _less(small, large) for small, large in pairwise(gains)
    )
    return decided(results, "intervals of R_0, R_GD, B_GD and the linear bound are apart in order")


def best_penalties() -> Finding:
    """Between penalties 0.1 % below and above the stored best one there is a local minimum."""
    require_flint()
    values: dict[str, Any] = {}
    results: dict[str, bool] = {}
    for entry in reference_document()["optimal_ridge"]:
        model, best = model_of(entry["model"]), float(entry["paper_ridge"])
        name = f"η = {entry['model']['step_size']}"
        least, *around, without = (
            _risk(model, x)["risk_trained"]
            for x in (best, best * (1 - _MARGIN), best * (1 + _MARGIN), 0.0)
        )
        values[name] = (least, entry["risk"])
        results |= {
            f"{name}: larger on both sides": all(_less(least, side) for side in around),
            f"{name}: larger without a penalty": _less(least, without),
        }
    stored = agreement(values, 15, "least risks", proven=_PROVEN)
    signs = decided(results, "the stored penalties are within 0.1 % of a minimum, which beats 0")
    return Finding(
        stored.passed and signs.passed,
        f"{stored.summary}; {signs.summary}",
        {**stored.details, **signs.details},
    )


def harmful_degrees() -> Finding:
    """Coefficients that vanish exactly, and the first above the linear one that does not."""
    require_flint()
    from ...symbolic.activations import activation
    from ...symbolic.hermite import hermite_coefficients

    results: dict[str, bool] = {}
    for name, degree in _DEGREES.items():
        found = hermite_coefficients(activation(name), degree).enclosures(_PROVEN)
        below = all(x.is_exact and x.midpoint == 0 for x in found[2:degree])
        results[f"{name}: degree {degree}"] = below and not found[degree].contains_zero
    return decided(results, "the first coefficients above the linear one that are not zero")


def kernel_bound(count: int | None = None) -> Finding:
    """Initial risks of reference networks are above the best linear error.

    Parameters
    ----------
    count : int, optional
        Of the networks, each at its own penalty; default: all thirteen.
    """
    require_flint()
    results: dict[str, bool] = {}
    for case in reference_cases()[:count]:
        model = case.build()
        linear = model.teacher_moments.certified()["residual"]
        initial = _risk(model, float(case.paper_ridge))["risk_initial"]
        results[f"network {case.name}"] = _less(linear, initial)
    for entry in reference_document()["optimal_ridge"]:
        model = model_of(entry["model"])
        linear = model.teacher_moments.certified()["residual"]
        name = f"penalty {entry['paper_ridge']}"
        initial = _risk(model, float(entry["paper_ridge"]))["risk_initial"]
        results[name] = _less(linear, initial)
    return decided(results, "the initial risk is proven to be above the best linear error")


def beyond_kernels(count: int | None = None) -> Finding:
    """16 τ* against the best linear error: below it for four of ten pairs, for others not.

    A pair whose τ* is bounded from above only can be proven to be below, never not to be.

    Parameters
    ----------
    count : int, optional
        Of the pairs; default: all ten.
    """
    require_flint()
    results: dict[str, bool] = {}
    for case in reference_document()["large_step_bound"][:count]:
        pair = case["student"], case["teacher"]
        proof = _amplitude(*pair)
        linear = model_of(
            {"student": pair[0], "teacher": pair[1], "alpha": "2"}
        ).teacher_moments.certified()["residual"]
        name = f"{pair[0]} on {pair[1]}"
        if pair in _BELOW_KERNELS:
            least = proof["tau_star" if "tau_star" in proof else "tau_star_upper"]
            results[f"{name}: 16 τ* is smaller"] = bool(16 * least.upper < linear.lower)
        elif "tau_star" in proof:
            results[f"{name}: 16 τ* is larger"] = bool(16 * proof["tau_star"].lower > linear.upper)
    return decided(results, "16 τ* is on the stated side of the best linear error")


def equivalents(names: tuple[str, ...]) -> Finding:
    """λ_B, D and the initial risk at a proven ν, by proven integrals over the spectrum.

    With x = 1 + β + 2√β cos t the law of Marchenko and Pastur has the density 2 sin²t/(πx) in t,
    and for β > 1 an atom 1 − 1/β at zero.

    Parameters
    ----------
    names : tuple of str
        Of networks; β = 1, where the density is not bounded, is none of them.
    """
    flint = require_flint()
    from ...symbolic.gaussian_enclosures import PRECISION

    results: dict[str, bool] = {}
    widest = 0.0
    for name in names:
        case = _case(name)
        model = case.build()
        proof = _risk(model, float(case.paper_ridge))
        with PRECISION, flint.ctx.workprec(160):
            found = _by_integrals(flint, model, proof)
            stored = {
                "λ_B": flint.arb(case.paper_ridge),
                "D": as_ball(proof["ridge_derivative"]),
                "risk": as_ball(proof["risk_initial"]),
                "mass": flint.arb(1),
            }
            for quantity, value in found.items():
                results[f"{name}: {quantity}"] = bool(value.overlaps(stored[quantity]))
                widest = max(widest, float(value.rad() / abs(value).mid()))
    result = decided(results, f"integrals over the spectrum, {widest:.0e} wide relative at most")
    return Finding(result.passed and widest < 1e-12, result.summary, result.details)


def _by_integrals(flint: Any, model: OneGradientStep, proof: Certificate) -> dict[str, Any]:
    """Return λ_B, D, the initial risk and the mass of the law, as real balls."""
    beta, alpha, noise = (
        flint.arb(repr(x)) for x in (model.beta, model.alpha, model.noise_variance)
    )
    student = {k: as_ball(x) for k, x in model.student_moments.certified(30).items()}
    teacher = {k: as_ball(x) for k, x in model.teacher_moments.certified(30).items()}
    slope, floor = student["linear"] ** 2, student["residual"]
    nu, ratio = as_ball(proof["effective_ridge"]), beta / alpha
    atom = 1 - 1 / beta if model.beta > 1 else flint.arb(0)

    def mean(function: Callable[[Any], Any]) -> Any:
        def integrand(t: Any, _: bool) -> Any:
            x = 1 + beta + 2 * beta.sqrt() * t.cos()
            return 2 * t.sin() ** 2 / x * function(x)

        bulk = flint.acb.integral(integrand, 0, flint.arb.pi()).real / flint.arb.pi()
        return bulk + atom * function(flint.acb(0)).real

    def share(x: Any) -> Any:
        return (slope * x + floor) / (slope * x + floor + nu)

    def taken(x: Any) -> Any:
        return slope * x / (slope * x + floor + nu)

    derivative = 1 - ratio * mean(lambda x: share(x) * share(x))
    signal = teacher["linear"] ** 2
    explained = beta * mean(taken)
    second = beta * mean(lambda x: taken(x) / (slope * x + floor + nu))
    labels = signal + teacher["residual"] + noise
    return {
        "λ_B": nu * (1 - ratio * mean(share)),
        "D": derivative,
        "risk": (labels - signal * (explained + nu * second)) / derivative - noise,
        "mass": mean(lambda x: flint.acb(1)),
    }
