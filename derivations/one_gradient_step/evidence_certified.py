"""Evidence by proven intervals for one gradient step; it needs python-flint."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ...ball_library import require_flint
from ..certificates.agreement import agreement, proof_of
from ..claims import Finding
from ..penalties import paper_ridge
from .large_steps import large_step_limit
from .reference import model_of, reference_cases, reference_document

if TYPE_CHECKING:
    from ..certificates.certified_values import CertifiedValues

_DIGITS = 16
"""Of the stored values."""
_PROVEN = 15
_SPIKE = {
    "spike": "theta1", "aligned_spike": "theta2", "singular_value": "singular_value",
    "teacher_alignment": "alignment_teacher", "readout_alignment": "alignment_readout",
}  # fmt: skip
_RISK = {
    "initial": "risk_initial", "trained": "risk_trained", "improvement": "improvement",
    "training_error_initial": "training_error_initial",
    "training_error_trained": "training_error_trained", "effective_ridge": "effective_ridge",
    "ridge_derivative": "ridge_derivative",
}  # fmt: skip


def spikes(count: int | None = None) -> Finding:
    """Sizes, overlaps and outlier of the first layer of networks in 40-digit arithmetic.

    Parameters
    ----------
    count : int, optional
        Of the thirteen networks, here and below; default: all.
    """
    require_flint()
    values: dict[str, Any] = {}
    verdicts: dict[str, bool] = {}
    for case in reference_cases()[:count]:
        found = case.build().weight_spike(certify=True)
        proof = proof_of(found)
        values |= {
            f"{case.name}: {name}": (proof[mine], case.values[name])
            for name, mine in _SPIKE.items()
        }
        # Intervals that decide on which side of the threshold the network is.
        gap = proof["theta1"].lower ** 4, proof["theta1"].upper ** 4
        beta = _exact(case.model["beta"])
        verdicts[case.name] = gap[0] > beta if found.supercritical else gap[1] < beta
    result = agreement(values, _DIGITS, "sizes and overlaps", proven=_PROVEN)
    decided = all(verdicts.values())
    side = "every side of the threshold is decided" if decided else "a threshold is not decided"
    return Finding(result.passed and decided, f"{result.summary}; {side}", result.details)


def kernel_thresholds(count: int | None = None) -> Finding:
    """Thresholds T_c, edges and overlaps with the labels of the same networks."""
    require_flint()
    values: dict[str, Any] = {}
    for case in reference_cases()[:count]:
        proof = proof_of(case.build().conjugate_kernel(certify=True))
        names = {"threshold": "threshold", "bulk_edge": "bulk_edge"}
        if "outlier" in proof:
            names |= {"kernel_eigenvalue": "outlier", "label_alignment": "label_alignment"}
        values |= {
            f"{case.name}: {name}": (proof[mine], case.values[name]) for name, mine in names.items()
        }
    return agreement(values, _DIGITS, "thresholds, edges and outliers", proven=_PROVEN)


def edges(count: int | None = None) -> Finding:
    """Right edges of the bulk of the kernels, the critical values ζ(T_c)."""
    require_flint()
    values = {
        case.name: (
            proof_of(case.build().conjugate_kernel(certify=True))["bulk_edge"],
            case.values["bulk_edge"],
        )
        for case in reference_cases()[:count]
    }
    return agreement(values, _DIGITS, "right edges of the bulk", proven=_PROVEN)


def outliers(names: tuple[str, ...]) -> Finding:
    """Outliers and overlaps with the labels of kernels that are beyond their thresholds.

    Parameters
    ----------
    names : tuple of str
        Of networks.
    """
    require_flint()
    values: dict[str, Any] = {}
    beyond = True
    for case in reference_cases():
        if case.name in names:
            proof = proof_of(case.build().conjugate_kernel(certify=True))
            beyond = beyond and proof["spike"].lower > proof["threshold"].upper
            values |= {
                f"{case.name}: outlier": (proof["outlier"], case.values["kernel_eigenvalue"]),
                f"{case.name}: overlap": (proof["label_alignment"], case.values["label_alignment"]),
            }
    result = agreement(values, _DIGITS, "outliers and overlaps with the labels", proven=_PROVEN)
    says = "every θ1² is above its T_c" if beyond else "a θ1² is not proven to be above its T_c"
    return Finding(result.passed and beyond, f"{result.summary}; {says}", result.details)


def risks(count: int | None = None) -> Finding:
    """Risks and training errors of the same networks by a proven root of the equation of s."""
    require_flint()
    values: dict[str, Any] = {}
    for case in reference_cases()[:count]:
        penalty = float(case.paper_ridge)
        proof = proof_of(case.build().risk(ridge=paper_ridge(penalty), certify=True))
        values |= {
            f"{case.name}: {name}": (proof[mine], case.values[name]) for name, mine in _RISK.items()
        }
    return agreement(values, _DIGITS, "risks and training errors", proven=_PROVEN)


def peak() -> Finding:
    """The peak at n = N and a penalty of 1e-10, before and after the step."""
    require_flint()
    document = reference_document()["interpolation_peak"]
    penalty = float(document["paper_ridge"])
    proof = proof_of(model_of(document["model"]).risk(ridge=paper_ridge(penalty), certify=True))
    values = {
        layer: (proof[f"risk_{layer}"], document[layer]["exact"])
        for layer in ("initial", "trained")
    }
    result = agreement(values, 24, "risks at the peak", proven=12)
    lower = proof["risk_trained"].upper < proof["risk_initial"].lower
    says = "the step is proven to lower the peak" if lower else "the intervals overlap"
    return Finding(result.passed and lower, f"{result.summary}; {says}", result.details)


def amplitudes(count: int | None = None) -> Finding:
    """τ* of ten pairs: the global minimum, proven where its interval says so, else bounded."""
    require_flint()
    values: dict[str, Any] = {}
    bounded = []
    wrong = []
    for case in reference_document()["large_step_bound"][:count]:
        name = f"{case['student']} on {case['teacher']}"
        proof = _amplitude(case["student"], case["teacher"])
        if "tau_star" in proof:
            values[name] = (proof["tau_star"], case["tau"])
        else:
            bounded.append(name)
            if not proof["tau_star_upper"].upper >= _exact(case["tau"]):
                wrong.append(name)
    result = agreement(values, _DIGITS, "values of τ*", proven=12)
    text = f"; bounded from above only: {', '.join(bounded)}" if bounded else ""
    return Finding(result.passed and not wrong, result.summary + text, result.details)


@cache
def _amplitude(student: str, teacher: str) -> CertifiedValues:
    """Two claims are about the same τ*, which take up to half a minute each."""
    found: CertifiedValues = proof_of(large_step_limit(student, teacher, centre=True, certify=True))
    return found


def _exact(text: str) -> Any:
    import sympy as sp

    return sp.Rational(text)
