"""Exact evidence and quadrature on equivalence, kernels, large steps and several steps."""

from __future__ import annotations

import random
from typing import Any

import sympy as sp

from ...symbolic.activations import activation
from ...symbolic.activations import z as variable
from ...symbolic.gaussian_vector import GaussianVector, JointExpectation
from ..claims import Finding
from ..spiked_random_features.identities import finding as identities_finding
from .amplitude_error import AmplitudeError, amplitude
from .equivalence import failure_exponent, gaussian_equivalence
from .large_steps import large_step_limit
from .model import OneGradientStep
from .reference import reference_document
from .several_steps import contraction, leading_sizes, spike_sizes

_VERDICTS = {
    "erf": True, "tanh": True, "sin": True, "atan": True, "relu": False, "softplus": False,
    "gelu": False, "He3": False,
}  # fmt: skip
_TEACHERS = {
    "relu": True, "abs": True, "softplus": True, "z/sqrt(1 + z**2)": True, "sign": False,
    "He3 + z": False, "z*sin(z)": False,
}  # fmt: skip
_DEGREES = {"erf": 3, "tanh": 3, "sin": 3, "relu": 2, "softplus": 2, "He3": 3, "abs": 2}
_SEED = 41
_POINTS = (sp.Rational(7, 5), sp.Rational(-2, 3))


def assumptions() -> Finding:
    """Verdicts on the assumptions of the theorem of Gaussian equivalence."""
    results = {}
    for name, wanted in _VERDICTS.items():
        found = gaussian_equivalence(OneGradientStep(name, "tanh", alpha=2, centre=True))
        results[f"{name}: {'covered' if wanted else 'not covered'}"] = found.proven is wanted
    for name, wanted in _TEACHERS.items():
        found = gaussian_equivalence(OneGradientStep("tanh", name, alpha=2, centre=True))
        results[f"teacher {name}: {'covered' if wanted else 'not'}"] = found.proven is wanted
    return identities_finding(
        results, "odd bounded students and Lipschitz teachers are covered, others are not"
    )


def failure_exponents() -> Finding:
    """The first degree that a growing step makes visible, and its exponent."""
    results = {}
    for name, degree in _DEGREES.items():
        found = gaussian_equivalence(OneGradientStep(name, "tanh", alpha=2, centre=True), 0.5)
        results[f"{name}: degree {degree}"] = (
            found.failure_degree == degree
            and found.failure_exponent == failure_exponent(degree)
            and not found.expected
        )
    results["1/4 and 1/3"] = [failure_exponent(k) for k in (2, 3)] == [
        sp.Rational(1, 4),
        sp.Rational(1, 3),
    ]
    return identities_finding(results, "degree 2 is visible from N^(1/4), degree 3 from N^(1/3)")


def kernel_lower_bound(count: int = 30) -> Finding:
    """Initial risks of random models at their optimal ridge penalty, by the closed form.

    The features of the initial layer only; kernels of tangents are not checked.
    """
    draw = random.Random(_SEED)
    ratios = []
    for _ in range(count):
        model = OneGradientStep(
            draw.choice(["erf", "tanh", "sin"]), draw.choice(["tanh", "relu", "softplus", "sin"]),
            alpha=10 ** draw.uniform(-1, 2), beta=10 ** draw.uniform(-1, 2),
            step_size=draw.uniform(0, 4), noise_variance=draw.choice([0.0, 0.3]), centre=True,
        )  # fmt: skip
        ratios.append(float(model.optimal_ridge(trained=False).risk) / model.best_linear_error)
    least = min(ratios)
    return Finding(
        least >= 1,
        f"the smallest of {count} initial risks, each at its optimal ridge penalty, is "
        f"{least:.6f} times the best linear error",
        {"least_ratio": least},
    )


def closed_forms() -> Finding:
    """J by the general rule against the known closed forms, and the zero of erf on erf."""
    h = amplitude
    results: dict[str, bool] = {}
    for name, wanted in _known_closed_forms(h).items():
        error = AmplitudeError(activation(name), activation(name), False)
        found = error.closed_form
        results[f"{name} has a closed form"] = found is not None
        if found is not None:
            difference = [(found - wanted).subs(h, point).evalf(50) for point in _POINTS]
            results[f"{name}: known closed form"] = all(abs(x) < 1e-45 for x in difference)
    erf = AmplitudeError(activation("erf"), activation("erf"), False)
    results["erf: the smoothed student is the teacher at sqrt(3)"] = erf.vanishes_at(sp.sqrt(3))
    return identities_finding(results, "the general rule gives the known closed forms of J")


def _known_closed_forms(h: sp.Symbol) -> dict[str, sp.Expr]:
    def arcsine(u: Any, v: Any) -> sp.Expr:
        return 2 / sp.pi * sp.asin(2 * u * v / sp.sqrt((1 + 2 * u**2) * (1 + 2 * v**2)))

    b, square = h / sp.sqrt(3), 1 + h**2
    angle, other = sp.acos(h / sp.sqrt(square)), sp.acos(h**2 / square)
    return {
        "erf": arcsine(1, 1) - 2 * arcsine(1, b) + arcsine(b, b),
        "sin": (1 - sp.exp(-2)) / 2
        - sp.exp(-sp.S.Half) * (sp.exp(-((1 - h) ** 2) / 2) - sp.exp(-((1 + h) ** 2) / 2))
        + sp.exp(-1) * (1 - sp.exp(-2 * h**2)) / 2,
        "relu": sp.S.Half
        - sp.sqrt(square) / sp.pi * (sp.sin(angle) + (sp.pi - angle) * sp.cos(angle))
        + square / (2 * sp.pi) * (sp.sin(other) + (sp.pi - other) * sp.cos(other)),
    }


def joint_value(error: AmplitudeError, h: sp.Rational, digits: int) -> sp.Expr:
    """J by averages over two correlated variables, which know nothing of the smoothed student."""
    x, y = sp.symbols("x y", real=True)
    student = error.student_expr
    teacher = error.teacher_expr.xreplace({variable: x})
    cross = GaussianVector((x, y), covariance=[[1, h], [h, 1 + h**2]])
    own = GaussianVector((x, y), covariance=[[1 + h**2, h**2], [h**2, 1 + h**2]])
    square = GaussianVector((x,), covariance=[[1]])
    parts = (
        (teacher**2, square, 1),
        (teacher * student.xreplace({variable: y}), cross, -2),
        (student.xreplace({variable: x}) * student.xreplace({variable: y}), own, 1),
    )
    return sp.Add(
        *(factor * JointExpectation(f, law).doit().evalf(digits) for f, law, factor in parts)
    )


def tau_table() -> Finding:
    """τ_* and amplitude of ten pairs; J of closed forms by another route, to 25 digits."""
    results, worst = {}, 0.0
    for row in reference_document()["large_step_bound"]:
        found = large_step_limit(row["student"], row["teacher"], centre=True)
        for value, wanted in ((found.amplitude, row["argmin"]), (found.tau_star, row["tau"])):
            difference = abs(value - float(wanted)) / (1 + abs(float(wanted)))
            worst = max(worst, difference)
            results[f"{row['student']} on {row['teacher']}: {wanted}"] = difference < 1e-14
    for name in ("erf", "sin", "relu"):
        error = AmplitudeError(activation(name), activation(name), False)
        for point in _POINTS:
            value, _ = error.precise(point, 30)
            other = joint_value(error, point, 40)
            difference = abs(sp.Float(str(value), 40) - other)
            results[f"{name} at h = {point}"] = bool(difference < sp.Float("1e-25"))
    return identities_finding(
        results, f"largest deviation from the table {worst:.0e}, closed forms to 25 digits"
    )


def pairs_beyond_kernels() -> Finding:
    """Which pairs have 16 τ_* (and 10 τ_*) below the best linear error, and a bounded student."""
    below = {("erf", "erf"), ("tanh", "tanh"), ("erf", "tanh"), ("tanh", "erf")}
    unbounded = {"relu", "softplus"}
    results = {}
    for row in reference_document()["large_step_bound"]:
        pair = row["student"], row["teacher"]
        found = large_step_limit(*pair, centre=True)
        decided = [found.below_kernel_bound(constant) for constant in (16, 10)]
        results[f"{pair[0]} on {pair[1]}"] = decided == [pair in below] * 2 and (
            found.applies is (pair[0] not in unbounded)
        )
    return identities_finding(results, "the bound decides four pairs, with either constant")


def several_steps(highest: int = 5) -> Finding:
    """Sizes of the spike after t steps: their limit, and that one step does not contract."""
    results = {}
    for fresh in (False, True):
        kind = "fresh data" if fresh else "the same data"
        for t in range(1, highest + 1):
            found, wanted = spike_sizes(t, fresh=fresh), leading_sizes(t, fresh=fresh)
            results[f"{t} steps on {kind}"] = all(
                sp.expand(a.subs(contraction, 0) - b) == 0
                for a, b in zip(found, wanted, strict=True)
            )
        results[f"one step on {kind}"] = not any(
            sp.expand(x).has(contraction) for x in spike_sizes(1, fresh=fresh)
        )
    return identities_finding(results, "without contraction t steps are one step of t times η")
