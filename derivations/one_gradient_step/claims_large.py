"""Claims: equivalence and where it fails, kernels, large steps and several steps."""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Any

import numpy as np
import sympy as sp

from ...ball_library import require_flint
from ...symbolic.expressions.activations import activation, z as variable
from ...symbolic.gaussian.expectation import GaussianVector, JointExpectation
from ...symbolic.hermite.coefficients import hermite_coefficients
from ..certificates.agreement import agreement, decided, proof_of
from ..certificates.certificate import CertifiedValues
from ..claims import Finding, Status, declare_claim, evidence
from ..identities import identities_hold
from ..penalties import PaperRidge
from .amplitude_minimum import AmplitudeError, amplitude
from .claims_risk import certified_risk, surely_less
from .claims_spike import PROVEN, PROVEN_DIGITS, exact_number_of
from .equivalence import FAILURE_EXPONENT, failure_exponent, gaussian_equivalence
from .large_steps import CONSTANT, large_step_limit, risk_bound
from .model import CONTRACTION, WIDTH, OneGradientStep, contraction, leading_sizes, spike_sizes
from .reference import model_of, reference_cases, reference_document
from .symbols import linear, teacher_linear

_SOURCE = "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445"

declare_claim(
    "ba-gaussian-equivalence",
    title="Features after a step of order one are equivalent to Gaussian ones",
    statement=(
        r"For odd, centred $\sigma$ with three bounded derivatives and a linear part, a Lipschitz "
        r"teacher, a fixed number of steps with $\eta = \Theta(1)$, independent data for the "
        r"readout and $\lambda > 0$, the ridge risk with features $\sigma(W^\top x)/\sqrt N$ "
        r"tends to that with $(\mu_1 W^\top x + \mu_{>1}\xi)/\sqrt N$, and $R \ge \|P_{>1}f_*\|^2$."
    ),
    source=f"{_SOURCE}; quoted, supported here by simulations; the paper's proof is not repeated",
    status=Status.THEOREM,
)

_VERDICTS = {
    "erf": True, "tanh": True, "sin": True, "atan": True, "relu": False, "softplus": False,
    "gelu": False, "He3": False,
}  # fmt: skip
_TEACHERS = {
    "relu": True, "abs": True, "softplus": True, "z/sqrt(1 + z**2)": True, "sign": False,
    "He3 + z": False, "z*sin(z)": False,
}  # fmt: skip


@evidence(
    "ba-gaussian-equivalence", "exact", "verdicts on its assumptions for activations known well"
)
def assumptions() -> Finding:
    """Verdicts on the assumptions of the theorem of Gaussian equivalence."""
    results = {}
    for name, wanted in _VERDICTS.items():
        result = gaussian_equivalence(OneGradientStep(name, "tanh", alpha=2, centre=True))
        results[f"{name}: {'covered' if wanted else 'not covered'}"] = result.proven is wanted
    for name, wanted in _TEACHERS.items():
        result = gaussian_equivalence(OneGradientStep("tanh", name, alpha=2, centre=True))
        results[f"teacher {name}: {'covered' if wanted else 'not'}"] = result.proven is wanted
    return identities_hold(
        results, "odd bounded students and Lipschitz teachers are covered, others are not"
    )


_ERRORS = 4.0


@evidence(
    "ba-gaussian-equivalence", "simulation", "networks against Gaussian features on their weights"
)
def equivalence(dimension: int = 150, seeds: int = 20) -> Finding:
    """Networks against the prediction of Gaussian features on their own weights."""
    model = OneGradientStep("erf", "erf", 2.0, beta=1.5, step_size=2.0, noise_variance=0.25)
    result = model.simulate(
        dimension, ridge=PaperRidge(0.05), seeds=seeds, conditional=True, progress=False
    )
    gap = (result.risk - result.risk_conditional).sel(step=1).to_numpy().ravel()
    mean, error = float(gap.mean()), float(gap.std(ddof=1) / math.sqrt(len(gap)))
    size = float(result.risk.sel(step=1).mean())
    return Finding(
        abs(mean) <= _ERRORS * error,
        f"network minus conditional prediction {mean:+.4f} ± {error:.4f}, risk {size:.3f}",
        {"gap": mean, "standard_error": error},
    )


declare_claim(
    "ba-equivalence-failure",
    title="Where equivalence fails as the step grows (heuristic)",
    statement=(
        r"For $\eta = N^a$ the degree $k$ of $\sigma$ adds a feature of rank one and amplitude "
        r"$\eta^k N^{-(k-1)/2}$: it is visible from $a = «exponent»$ on, which is $1/4$ for $k = 2$"
        r" and $1/3$ for odd $\sigma$ with $\mu_3 \ne 0$. A count of powers, no theorem."
    ),
    formulas={"exponent": FAILURE_EXPONENT},
    source="derived here, heuristic",
    status=Status.CONJECTURE,
)

# The first degree above 1 whose coefficient does not vanish.
_DEGREES = {"erf": 3, "tanh": 3, "sin": 3, "relu": 2, "softplus": 2, "He3": 3, "abs": 2}


@evidence("ba-equivalence-failure", "exact", "exponents of the first harmful degree")
def failure_exponents() -> Finding:
    """The first degree that a growing step makes visible, and its exponent."""
    results = {}
    for name, degree in _DEGREES.items():
        result = gaussian_equivalence(OneGradientStep(name, "tanh", alpha=2, centre=True), 0.5)
        results[f"{name}: degree {degree}"] = (
            result.failure_degree == degree
            and result.failure_exponent == failure_exponent(degree)
            and not result.expected
        )
    results["1/4 and 1/3"] = [failure_exponent(k) for k in (2, 3)] == [
        sp.Rational(1, 4),
        sp.Rational(1, 3),
    ]
    return identities_hold(results, "degree 2 is visible from N^(1/4), degree 3 from N^(1/3)")


@evidence(
    "ba-equivalence-failure", "certified", "the first degree with μ_k ≠ 0, k > 1, of seven students"
)
def harmful_degrees() -> Finding:
    """Coefficients that vanish exactly, and the first above the linear one that does not."""
    require_flint()
    results: dict[str, bool] = {}
    for name, degree in _DEGREES.items():
        result = hermite_coefficients(activation(name), degree).enclosures(PROVEN)
        below = all(x.is_exact and x.midpoint == 0 for x in result[2:degree])
        results[f"{name}: degree {degree}"] = below and not result[degree].contains_zero
    return decided(results, "the first coefficients above the linear one that are not zero")


@evidence(
    "ba-equivalence-failure", "simulation", "gap between networks and Gaussian features", slow=True
)
def growing_steps(seeds: int = 6) -> Finding:
    """The gap to Gaussian features is small for η = N^(1/8), large for η = N^(1/2)."""
    gaps: dict[tuple[float, int], float] = {}
    errors: dict[tuple[float, int], float] = {}
    for exponent in (0.125, 0.5):
        for dimension in (128, 256):
            model = OneGradientStep("erf", "erf", 8.0, beta=2.0)
            result = model.simulate(
                dimension, ridge=PaperRidge(0.01), seeds=seeds, exponent=exponent, conditional=True,
                progress=False,
            )  # fmt: skip
            risk = result.risk.sel(step=1)
            gap = ((result.risk_conditional.sel(step=1) - risk) / risk).to_numpy().ravel()
            gaps[exponent, dimension] = float(gap.mean())
            errors[exponent, dimension] = float(gap.std(ddof=1) / math.sqrt(len(gap)))
    small, large = (max(abs(gaps[a, d]) for d in (128, 256)) for a in (0.125, 0.5))
    apart = all(
        gaps[0.5, d] - gaps[0.125, d] > _ERRORS * math.hypot(errors[0.5, d], errors[0.125, d])
        for d in (128, 256)
    )
    return Finding(
        apart and small < 0.1 and min(gaps[0.5, d] for d in (128, 256)) > 0.3,
        f"relative gap at most {small:.3f} for N^(1/8), up to {large:.3f} for N^(1/2)",
        {f"N^{a}, d = {d}": gap for (a, d), gap in gaps.items()},
    )


declare_claim(
    "ba-kernel-lower-bound",
    title="Kernels learn the linear part only",
    statement=(
        r"In the proportional limit $\inf_\lambda R \ge \|P_{>1}f_*\|^2$ for the kernels of the "
        r"initial network, the conjugate and the neural tangent kernel."
    ),
    source=(
        f"{_SOURCE}; quoted. Checked for the conjugate kernel, through the closed form of its risk;"
        " nothing is checked for the tangent kernel"
    ),
    status=Status.THEOREM,
)

_SEED = 41


@evidence("ba-kernel-lower-bound", "quadrature", "initial risks at the optimal ridge penalty")
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
        ratios.append(
            float(model.optimum(over="ridge", trained=False).risk) / model.best_linear_error
        )
    least = min(ratios)
    return Finding(
        least >= 1,
        f"the smallest of {count} initial risks, each at its optimal ridge penalty, is "
        f"{least:.6f} times the best linear error",
        {"least_ratio": least},
    )


@evidence(
    "ba-kernel-lower-bound",
    "certified",
    "initial risks of one network, and near three optima",
    arguments={"count": 1},
)
@evidence(
    "ba-kernel-lower-bound", "certified", "the same for 13 networks at their penalties", slow=True
)
def kernel_bound(count: int | None = None) -> Finding:
    """Initial risks of reference networks are above the best linear error."""
    require_flint()
    results: dict[str, bool] = {}
    for case in reference_cases()[:count]:
        model = case.build()
        linear = model.teacher_moments.certified()["residual"]
        initial = certified_risk(model, float(case.paper_ridge))["risk_initial"]
        results[f"network {case.name}"] = surely_less(linear, initial)
    for entry in reference_document()["optimal_ridge"]:
        model = model_of(entry["model"])
        linear = model.teacher_moments.certified()["residual"]
        name = f"penalty {entry['paper_ridge']}"
        initial = certified_risk(model, float(entry["paper_ridge"]))["risk_initial"]
        results[name] = surely_less(linear, initial)
    return decided(results, "the initial risk is proven to be above the best linear error")


declare_claim(
    "ba-tau-star",
    title="What neurons of one amplitude represent",
    statement=(
        r"With $J(h) = \mathbb{E}_t(\sigma_*(t) - \mathbb{E}_\xi\sigma(ht + \xi))^2$ and "
        r"$\tau_* = \inf_h J(h)$: $\tau_* = 0$ at $h = \sqrt3$ for erf on erf, and "
        r"$\tau_* = 9.4526506632769\ldots\cdot10^{-5}$ at $h = 1.5882679509291\ldots$ for tanh on "
        r"tanh, where the best linear error is 290 times larger."
    ),
    source=f"{_SOURCE}, section 4.2; numbers and closed forms derived here",
    status=Status.DERIVED_HERE,
)

_POINTS = (sp.Rational(7, 5), sp.Rational(-2, 3))


@evidence("ba-tau-star", "exact", "closed forms of J for erf, sin, relu; τ* = 0 of erf")
def closed_forms() -> Finding:
    """J by the general rule against the known closed forms, and the zero of erf on erf."""
    h = amplitude
    results: dict[str, bool] = {}
    for name, wanted in _known_closed_forms(h).items():
        error = AmplitudeError(activation(name), activation(name), False)
        result = error.closed_form
        results[f"{name} has a closed form"] = result is not None
        if result is not None:
            difference = [(result - wanted).subs(h, point).evalf(50) for point in _POINTS]
            results[f"{name}: known closed form"] = all(abs(x) < 1e-45 for x in difference)
    erf = AmplitudeError(activation("erf"), activation("erf"), False)
    results["erf: the smoothed student is the teacher at sqrt(3)"] = erf.vanishes_at(sp.sqrt(3))
    return identities_hold(results, "the general rule gives the known closed forms of J")


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


@evidence("ba-tau-star", "quadrature", "ten pairs to 16 digits; closed forms to 25")
def tau_table() -> Finding:
    """τ_* and amplitude of ten pairs; J of closed forms by another route, to 25 digits."""
    results, worst = {}, 0.0
    for row in reference_document()["large_step_bound"]:
        result = large_step_limit(row["student"], row["teacher"], centre=True)
        for value, wanted in ((result.amplitude, row["argmin"]), (result.tau_star, row["tau"])):
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
    return identities_hold(
        results, f"largest deviation from the table {worst:.0e}, closed forms to 25 digits"
    )


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


@evidence(
    "ba-tau-star", "certified", "τ* = 0 of erf on erf is the global minimum", arguments={"count": 1}
)
@evidence("ba-tau-star", "certified", "τ* of ten pairs", slow=True)
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
            if not proof["tau_star_upper"].upper >= exact_number_of(case["tau"]):
                wrong.append(name)
    result = agreement(values, PROVEN_DIGITS, "values of τ*", proven=12)
    text = f"; bounded from above only: {', '.join(bounded)}" if bounded else ""
    return Finding(result.passed and not wrong, result.summary + text, result.details)


@cache
def _amplitude(student: str, teacher: str) -> CertifiedValues:
    """Two claims are about the same τ*, which take up to half a minute each."""
    result: CertifiedValues = proof_of(
        large_step_limit(student, teacher, centre=True, certify=True)
    )
    return result


_BOUND = risk_bound()

declare_claim(
    "ba-large-steps",
    title="A step of order √N beats every kernel",
    statement=(
        r"For bounded $\sigma$, $\eta = \Theta(\sqrt N)$ and $n^{\varepsilon-1} < \lambda_B/N < "
        r"n^{-\varepsilon}$ there are $\alpha_*$ and $C$ with $R \le «bound»$ for "
        r"$\alpha > \alpha_*$. The constants are not known; where "
        r"$16\,\tau_* < \|P_{>1}f_*\|^2$ the risk is below that of kernels for large $\alpha$."
    ),
    formulas={"bound": _BOUND},
    source=(
        f"{_SOURCE}, theorem on large steps; quoted. Checked are which pairs it covers, and the "
        "trends of simulated risks; not the constants"
    ),
    status=Status.THEOREM,
)


@evidence("ba-large-steps", "exact", "what the bound leaves for many samples, and for τ* = 0")
def limits_of_the_bound() -> Finding:
    """The bound for many samples, and for a teacher that neurons of one amplitude represent."""
    constant, alpha, tau = sorted(_BOUND.free_symbols, key=str)
    results = {
        "16 τ* for many samples": sp.limit(_BOUND, alpha, sp.oo) == CONSTANT * tau,
        "C/α for τ* = 0": _BOUND.subs(tau, 0) == constant / alpha,
    }
    return identities_hold(results, "limits of the bound")


@evidence("ba-large-steps", "quadrature", "which of ten pairs the bound decides")
def pairs_beyond_kernels() -> Finding:
    """Which pairs have 16 τ_* (and 10 τ_*) below the best linear error, and a bounded student."""
    below = {("erf", "erf"), ("tanh", "tanh"), ("erf", "tanh"), ("tanh", "erf")}
    unbounded = {"relu", "softplus"}
    results = {}
    for row in reference_document()["large_step_bound"]:
        pair = row["student"], row["teacher"]
        result = large_step_limit(*pair, centre=True)
        decided = [result.below_kernel_bound(constant) for constant in (16, 10)]
        results[f"{pair[0]} on {pair[1]}"] = decided == [pair in below] * 2 and (
            result.applies is (pair[0] not in unbounded)
        )
    return identities_hold(results, "the bound decides four pairs, with either constant")


_BELOW_KERNELS = {("erf", "erf"), ("tanh", "tanh"), ("erf", "tanh"), ("tanh", "erf")}


@evidence(
    "ba-large-steps",
    "certified",
    "16 τ* is below the linear error for erf on erf",
    arguments={"count": 1},
)
@evidence(
    "ba-large-steps", "certified", "on which side it is for ten pairs, as far as τ* is", slow=True
)
def beyond_kernels(count: int | None = None) -> Finding:
    """16 τ* against the best linear error: below it for four of ten pairs, for others not.

    A pair whose τ* is bounded from above only can be proven to be below, never not to be.
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


@evidence("ba-large-steps", "simulation", "erf on erf, η = √N against η = 1", slow=True)
def below_kernels(dimension: int = 128, seeds: int = 4) -> Finding:
    """erf on erf: the risk after a step of √N is below the best linear error, after 1 it is not."""
    model = OneGradientStep("erf", "erf", 8.0, beta=2.0)
    risks = {}
    for exponent in (0.0, 0.5):
        result = model.simulate(
            dimension, ridge=PaperRidge(0.01), seeds=seeds, exponent=exponent, progress=False
        )
        values = result.risk.sel(step=1).to_numpy().ravel()
        risks[exponent] = float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
    bound = model.best_linear_error
    (small, small_error), (large, large_error) = risks[0.0], risks[0.5]
    return Finding(
        large + _ERRORS * large_error < bound < small - _ERRORS * small_error,
        f"{large:.4f} ± {large_error:.4f} for √N, {small:.4f} ± {small_error:.4f} for order one, "
        f"best linear error {bound:.4f}",
        {"large": large, "small": small, "best_linear_error": bound},
    )


declare_claim(
    "ba-several-steps",
    title="Several steps of order one are one longer step",
    statement=(
        r"For a fixed number $t$ of steps with $\eta = \Theta(1)$ all results of one step hold "
        r"with $\eta \to t\eta$, and with fresh data in each step also $\alpha_0 \to t\alpha_0$. "
        r"Corrections are of relative order $t\eta/\sqrt N$; those of the linear predictor are "
        r"$u_t = \eta\mu_1\sum_{j<t}(1 - cS)^j X^\top y/n$ with $c = «contraction»$."
    ),
    formulas={"contraction": CONTRACTION},
    source=f"derived here; equivalence for a fixed number of steps: {_SOURCE}",
    status=Status.DERIVED_HERE,
)


@evidence("ba-several-steps", "exact", "sizes of the spike at c = 0; t = 1 for every c")
def several_steps(highest: int = 5) -> Finding:
    """Sizes of the spike after t steps: their limit, and that one step does not contract."""
    results = {}
    for fresh in (False, True):
        kind = "fresh data" if fresh else "the same data"
        for t in range(1, highest + 1):
            result, wanted = spike_sizes(t, fresh=fresh), leading_sizes(t, fresh=fresh)
            results[f"{t} steps on {kind}"] = all(
                sp.expand(a.subs(contraction, 0) - b) == 0
                for a, b in zip(result, wanted, strict=True)
            )
        # A step adds the spike to the rows, of which the predictor is the projection on μ_1 a/√N.
        moved = leading_sizes(1, fresh=fresh)[1] / teacher_linear
        results[f"what a step adds to the predictor, {kind}"] = (
            sp.expand(moved * linear / sp.sqrt(WIDTH) - CONTRACTION) == 0
        )
        results[f"one step on {kind}"] = not any(
            sp.expand(x).has(contraction) for x in spike_sizes(1, fresh=fresh)
        )
    return identities_hold(results, "without contraction t steps are one step of t times η")


_FINITE_SIZE = 3.0
"""Relative corrections are of order N^(-1/2); this times it is allowed."""


@evidence("ba-several-steps", "simulation", "spikes of networks after 4 steps")
def repeated_steps(dimension: int = 200, steps: int = 4, seeds: int = 4) -> Finding:
    """Length of X^T y over several steps: the largest singular value after t steps."""
    model = OneGradientStep("tanh", "tanh", 3.0, beta=2.0, step_size=2.0, noise_variance=0.09)
    several = model.several_steps(steps)
    result = model.simulate_spectra(
        dimension, seeds=seeds, matrices=["weights"], steps=steps, progress=False
    )
    simulated = np.asarray(result.singular_values.sel(step=steps))[..., 0].ravel()
    sizes = several.spike_at_width(2 * dimension)
    square = sizes.length**2
    predicted = math.sqrt((1 + square) * (2 + square) / square)
    limit = float(several.weight_spike().singular_value)
    mean = float(simulated.mean())
    error = float(simulated.std(ddof=1) / math.sqrt(len(simulated)))
    allowed = _ERRORS * error + _FINITE_SIZE * mean / math.sqrt(2 * dimension)
    return Finding(
        abs(mean - predicted) <= allowed and abs(mean - predicted) < abs(mean - limit),
        f"largest singular value {mean:.3f} ± {error:.3f}, predicted at this width "
        f"{predicted:.3f}, in the limit {limit:.3f}",
        {"simulated": mean, "predicted": predicted, "limit": limit, "standard_error": error},
    )
