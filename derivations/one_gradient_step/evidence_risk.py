r"""Evidence for the risk of one gradient step: algebra, quadrature of spectra, reference values.

The quadrature knows nothing of closed forms: traces are integrals over the density of the
Marchenko–Pastur law, the spike enters by Woodbury's identity, and derivatives with respect to the
effective ridge are integrals, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import sympy as sp

from ...symbolic.random_matrix import MarchenkoPasturAverage
from ...symbolic.ridge_closed_form import spiked_resolvent
from ...symbolic.ridge_equivalent import NO_SPIKE, Spike, errors_from_potential, paper_ridge
from ..claims import Finding
from .model import OneGradientStep
from .proofs import COVARIANCE, SCALAR, nu, s, slope, vanishes
from .properties import PROPERTIES, SPIKE
from .reference import model_of, reference_cases, reference_document
from .stationarity import exact_parameters
from .symbols import (
    alpha,
    alpha0,
    beta,
    linear,
    noise,
    residual,
    teacher_linear,
    teacher_residual,
)

_RISKS = (
    "initial", "trained", "improvement", "training_error_initial", "training_error_trained",
    "effective_ridge", "ridge_derivative", "s",
)  # fmt: skip
# Half a unit of the 16th digit, relative to a value of 1.000…
_HALF_A_UNIT = 5.1e-16
_HALF_OF_24_DIGITS = 5.1e-24


def _all_hold(results: Mapping[str, bool], what: str) -> Finding:
    failed = [name for name, holds in results.items() if not holds]
    summary = f"{len(results)} steps hold: {what}" if not failed else f"fails: {', '.join(failed)}"
    return Finding(not failed, summary, {"steps": dict(results)})


# ------------------------------------------------------------------ algebra


def algebra() -> Finding:
    """From Woodbury's identity and one potential to the rational functions of s."""
    m, mt = 1 / (s - 1), 1 / (s - beta)
    omega = SCALAR.omega
    ratio = beta / alpha
    ridge = paper_ridge(COVARIANCE, ratio)
    t1 = SPIKE.square
    results = {
        "m of the Marchenko-Pastur law": vanishes(m - 1 / (omega + beta / (1 + m))),
        "ω m m̃ = 1/s": vanishes(omega * m * mt - 1 / s),
        "Woodbury's identity in s": vanishes(
            spiked_resolvent(m, omega * mt, SPIKE) - m * (1 - SPIKE.aligned / (s + t1))
        ),
        "λ_B in s": vanishes(ridge - slope * SCALAR.ridge),
        "the quartic": vanishes(SCALAR.quartic(SCALAR.ridge)),
    }
    for name, spike in (("before", NO_SPIKE), ("after", SPIKE)):
        left = omega * spiked_resolvent(m, omega * mt, spike)
        results |= {
            f"labels that are left, {name} the step": vanishes(SCALAR.unexplained(spike) - left),
            f"the same as positive terms, {name}": vanishes(
                COVARIANCE.unexplained(spike) - SCALAR.unexplained(spike)
            ),
            f"squared bias as positive terms, {name}": vanishes(
                COVARIANCE.bias(spike) - SCALAR.bias(spike)
            ),
        }
        # d/dν along s, at fixed κ: everything but s stays.
        x = SCALAR.effective_ridge
        along = (SCALAR.unexplained(spike) / x).diff(s) / x.diff(s)
        results[f"squared bias from the potential, {name}"] = vanishes(
            SCALAR.bias(spike) + x**2 * along
        )
    shrinkage = ridge / nu
    results["D = dλ_B/dν as positive terms"] = vanishes(
        COVARIANCE.derivative(ratio, shrinkage) - SCALAR.derivative
    )
    results["D = dλ_B/dν"] = vanishes(
        SCALAR.ridge.diff(s) - SCALAR.derivative * SCALAR.effective_ridge.diff(s)
    )
    left, pace = sp.Function("E")(nu), sp.Function("l")(nu)
    errors = errors_from_potential(left / nu, pace, nu)
    fresh = (left - nu * left.diff(nu)) / pace.diff(nu)
    results |= {
        "error on fresh labels from the potential": sp.simplify(errors["test_error"] - fresh) == 0,
        "training error is q² times it": sp.simplify(
            errors["training_error"] - (pace / nu) ** 2 * fresh
        )
        == 0,
        "objective": sp.simplify(errors["objective"] - pace / nu * left) == 0,
        "a spike off the teacher changes nothing": vanishes(
            COVARIANCE.bias(Spike(sp.S.Zero, SPIKE.orthogonal)) - COVARIANCE.bias()
        ),
    }
    return _all_hold(results, "closed form from Woodbury's identity and one potential")


def properties() -> Finding:
    """Every step of the proofs of all properties."""
    results = {
        f"{name}: {step}": holds
        for name, build in PROPERTIES.items()
        if name != "optimal penalty"
        for step, holds in build().check().items()
    }
    return _all_hold(results, f"{len(PROPERTIES) - 1} properties")


def optimum_property() -> Finding:
    """B and D increase with ν, and B not to first order at ν = 0."""
    return _all_hold(PROPERTIES["optimal penalty"]().check(), "B and D increase with ν")


def peak_leading_order() -> Finding:
    """λ_B and D to leading order in ν at n = N."""
    from .interpolation_peak import peak_property

    return _all_hold(peak_property().check(), "λ_B = ν²G and D = 2ντ_1 at n = N")


# ------------------------------------------------------------------ quadrature of spectra


def deterministic_equivalent(
    cases: tuple[str, ...] = ("1", "4", "5", "9"), digits: int = 28
) -> Finding:
    """Risk and training error of reference networks from integrals over the spectrum."""
    found = {case.name: case for case in reference_cases()}
    deviations: dict[str, dict[str, float]] = {}
    for name in cases:
        model, penalty = found[name].build(), float(found[name].paper_ridge)
        deviations[name] = spectral_deviations(model, penalty, digits)
    worst = max(max(d.values()) for d in deviations.values())
    return Finding(
        worst <= 10.0 ** (3 - digits),
        f"ν, D, risk and training error of {len(cases)} networks by quadrature of the spectrum: "
        f"off by at most {worst:.1e} relative",
        {"deviations": deviations},
    )


def all_equivalents() -> Finding:
    """The same for all reference networks with a penalty."""
    names = tuple(case.name for case in reference_cases() if float(case.paper_ridge))
    return deterministic_equivalent(names)


def spectral_deviations(model: OneGradientStep, penalty: float, digits: int) -> dict[str, float]:
    """Compare the closed form with integrals over the density, at the ν of the closed form.

    Returns
    -------
    dict
        Relative deviations of λ_B(ν), D, the risks and the training errors.
    """
    risk = model.risk(paper_ridge=penalty, digits=digits)
    work = digits + 15
    known = {
        x: sp.Rational(f.numerator, f.denominator) for x, f in exact_parameters(model, work).items()
    }
    effective = sp.Float(str(risk.effective_ridge), work)
    X = sp.Symbol("X", positive=True)
    b, v, wide = known[linear] ** 2, known[residual], known[beta]

    def mean(function: sp.Expr) -> sp.Float:
        return MarchenkoPasturAverage(function, X, wide).evalf(work)

    ratio = wide / known[alpha]
    sigma = v + b * X
    lowered = effective * (1 - ratio * mean(sigma / (sigma + effective)))
    derivative = 1 - ratio * mean((sigma / (sigma + effective)) ** 2)
    # Eigenvalues of W^T W are X; W W^T has the same but for zeros.
    omega = (v + effective) / b
    inverse, square = mean(1 / (X + omega)), mean(1 / (X + omega) ** 2)
    trace = wide * inverse + (1 - wide) / omega
    trace_slope = -wide * square - (1 - wide) / omega**2
    label_noise = known[noise]
    labels = known[teacher_linear] ** 2 + known[teacher_residual] + label_noise
    moved = model.effective_step_size
    pull = (sp.Rational(str(moved)) * known[linear]) ** 2
    aligned = pull * known[teacher_linear] ** 2
    orthogonal = pull * labels / known[alpha0] if alpha0 in known else sp.S.Zero
    results = {
        "paper_ridge": (lowered, risk.paper_ridge),
        "ridge_derivative": (derivative, risk.ridge_derivative),
    }
    m, part = sp.symbols("m part", positive=True)
    for layer, spike in (("initial", NO_SPIKE), ("trained", Spike(aligned, orthogonal))):
        form = spiked_resolvent(m, part, spike)
        at = {m: trace, part: omega * inverse}
        rho = form.xreplace(at)
        bent = form.diff(m).xreplace(at) * trace_slope
        bent += form.diff(part).xreplace(at) * (inverse - omega * square)
        signal = known[teacher_linear] ** 2
        explained = signal * (1 - omega * rho)
        second = signal * (rho + omega * bent) / b
        fresh = (labels - explained - effective * second) / derivative
        results[layer] = (fresh - label_noise, getattr(risk, layer))
        trained = (lowered / effective) ** 2 * fresh
        results[f"training_error_{layer}"] = (trained, getattr(risk, f"training_error_{layer}"))
    return {
        name: float(abs(sp.Float(str(found), work) / value - 1))
        for name, (value, found) in results.items()
    }


# ------------------------------------------------------------------ reference values


def reference_values() -> Finding:
    """Risk columns of thirteen networks, by floats and to all printed digits."""
    coarse: dict[str, float] = {}
    fine: dict[str, float] = {}
    for case in reference_cases():
        model, penalty = case.build(), float(case.paper_ridge)
        for found, digits in ((coarse, None), (fine, 20)):
            risk = model.risk(paper_ridge=penalty, digits=digits)
            for name in _RISKS:
                value = sp.Float(case.values[name], 30)
                got = sp.Float(str(getattr(risk, name)), 30)
                found[f"{case.name}: {name}"] = float(abs(got - value) / (abs(value) or 1))
    worst, rounding = max(coarse.values()), max(fine.values())
    return Finding(
        worst <= 1e-12 and rounding <= _HALF_A_UNIT,
        f"{len(fine)} values: off by at most {worst:.1e} by floats, {rounding:.1e} with digits",
        {"float": coarse, "digits": fine},
    )


def loss_conventions() -> Finding:
    """The gradient of the full loss is a step of twice the size; noise belongs into the labels."""
    case = next(c for c in reference_cases() if c.name == "7")
    half = case.build()
    full = replace(half, loss="full", step_size=half.step_size / 2)
    risks = [m.risk(paper_ridge=float(case.paper_ridge)).trained for m in (half, full)]
    spikes = [m.weight_spike() for m in (half, full, replace(half, step_size=half.step_size / 2))]
    noisy = next(c for c in reference_cases() if c.name == "8").build()
    without = replace(noisy, noise_variance=0.0).weight_spike().theta1
    theta = noisy.weight_spike().theta1
    passed = (
        risks[0] == risks[1]
        and spikes[0].theta1 == spikes[1].theta1
        and spikes[0].supercritical
        and not spikes[2].supercritical
        and theta > 1.3 * without
    )
    return Finding(
        bool(passed),
        f"loss='full' at η = {full.step_size:g} is loss='half' at {half.step_size:g}, with an "
        f"outlier at {spikes[0].singular_value:.5f}; half the loss at {full.step_size:g} has none; "
        f"noise of variance 1 lengthens θ1 from {without:.4f} to {theta:.4f}",
        {"risks": risks, "theta1": [x.theta1 for x in spikes], "noise": [without, theta]},
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


def peak_values() -> Finding:
    """Reference values; the leading order is approached like the root of the penalty."""
    entry = reference_document()["interpolation_peak"]
    model = model_of(entry["model"])
    deviations = peak_deviations()
    errors = [
        model.interpolation_peak(paper_ridge=penalty, digits=20).relative_error
        for penalty in (1e-8, 1e-10, 1e-12)
    ]
    ratios = [left / right for left, right in pairwise(errors)]
    peak = model.interpolation_peak(paper_ridge=float(entry["paper_ridge"]))
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
        paper_ridge=float(entry["paper_ridge"]), digits=25
    )
    deviations: dict[str, float] = {}
    for layer in ("initial", "trained"):
        for name, attribute in (("exact", f"exact_{layer}"), ("asymptotic", layer)):
            got = sp.Float(str(getattr(peak, attribute)), 30)
            deviations[f"{name}, {layer}"] = float(abs(got / sp.Float(entry[layer][name], 30) - 1))
    return deviations


def ridgeless_values() -> Finding:
    """Closed forms without a penalty against a vanishing one, on both sides of n = N."""
    deviations: dict[str, float] = {}
    interpolating = []
    for name in ("12", "13"):
        case = next(c for c in reference_cases() if c.name == name)
        model = case.build()
        limit, near = model.ridgeless(30), model.risk(paper_ridge=1e-25, digits=30)
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
