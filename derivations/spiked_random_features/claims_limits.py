"""Claims: the limit without a step, and what the errors do not depend on.

Proofs by intervals need python-flint. Two intervals that do not meet prove that numbers differ; two
that meet prove nothing, and are compared only where both are narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef

from ...ball_library import require_flint
from ...symbolic.expressions.activations import activation, z as variable
from ...symbolic.gaussian.expectation import GaussianExpectation, expect
from ...symbolic.systems.random_matrix import MarchenkoPasturAverage
from ..certificates.agreement import agreement, decided, overlap, proof_of
from ..certificates.certificate import Certificate
from ..claims import Finding, Status, declare_claim, evidence
from ..first_gradient.spike_mapping import best_linear_error
from ..identities import equal, identities_hold, vanishes
from ..one_gradient_step.model import OneGradientStep
from ..one_gradient_step.reference import reference_document
from . import physics as fe
from .claims_mapping import H1, PROVEN, SPIKE_DIGITS, T1, network_case, spiked_energy
from .derive import SymbolicModel, symbolic_model
from .model import SpikedRandomFeatures
from .published import VARIANCE

_PAPER = "Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980"

_SQUARE = sp.Symbol("mu_i^2", nonnegative=True)
_PLAIN = {
    "V_hat": sp.Eq(sp.Symbol("Vhat_i", real=True), fe.alpha / fe.beta * _SQUARE / (1 + VARIANCE)),
    "psi": sp.Eq(fe.psi, fe.alpha * fe.V1 * H1 * T1 / (1 + VARIANCE)),
}
"""Plain random features; h_i are the Hermite coefficients, i > 1 stands for all others."""

declare_claim(
    "unspiked-limit",
    title="Without a step: plain random features, and how they are reached",
    statement=(
        r"At $r = 0$, $c = 1$ the equations are those of plain random features, "
        r"$«V_hat»$, $«psi»$, do not depend on $\gamma$, and no $\alpha$, "
        r"$\beta$, $\lambda$ beats the best linear predictor, $\|P_{>1}f_*\|^2$. The limits "
        r"$s \to 0$ and $d \to \infty$ do not commute: for $s \to 0$ after $d \to \infty$ the "
        r"errors become those of plain random features of the target whose linear part "
        r"$h^*_1$ is reduced to $\sqrt{1-\gamma^2}\,h^*_1$."
    ),
    source=f"{_PAPER}, Result 3.3 at zero step; the order of limits is derived here",
    status=Status.DERIVED_HERE,
    formulas=_PLAIN,
)


@evidence("unspiked-limit", "exact", "the equations at r = 0, c = 1")
def unspiked_equations() -> Finding:
    """At r = 0, c = 1 the equations are those of plain random features."""
    results: dict[str, bool] = {}
    for student_name, teacher_name in (("erf", "erf"), ("sin", "erf"), ("relu", "relu")):
        student, teacher = activation(student_name), activation(teacher_name)
        model = symbolic_model(student, teacher, unspiked=True)
        values = _plain_values(model)
        h0, h1 = (expect(variable**k * student.expr, variable) for k in range(2))
        t0, t1 = (expect(variable**k * teacher.expr, variable) for k in range(2))
        square = expect(student.expr**2, variable) - h0**2 - h1**2
        label = expect(teacher.expr**2, variable) + fe.noise
        variance = h1**2 * fe.V1 + square * fe.V2
        error = label - t0**2 - 2 * h1 * fe.psi * t1 + h1**2 * fe.q1 + square * fe.q2
        stated = {name: equation.rhs for name, equation in _PLAIN.items()}
        known = {VARIANCE: variance, H1: h1, T1: t1}
        plain = {
            fe.V1_hat: stated["V_hat"].xreplace({_SQUARE: h1**2, **known}),
            fe.V2_hat: stated["V_hat"].xreplace({_SQUARE: square, **known}),
            # ψ = β V1 ψ̂.
            fe.psi_hat: stated["psi"].xreplace(known) / (fe.beta * fe.V1),
            fe.q1_hat: fe.alpha / fe.beta * h1**2 * error / (1 + variance) ** 2,
            fe.q2_hat: fe.alpha / fe.beta * square * error / (1 + variance) ** 2,
        }
        pair = f"{student_name}/{teacher_name}"
        mean = {fe.m: sp.S.Zero if h0 == 0 else t0 / h0, fe.theta: sp.S.Zero}
        for e in model.equations:
            if e.unknown in plain:
                value = values(e.value).xreplace(mean)
                results[f"{pair}: {e.unknown}"] = equal(value, plain[e.unknown])
            elif e.unknown in (fe.m, fe.theta_hat):
                expr = e.residual if e.value is None else e.value
                results[f"{pair}: {e.unknown}, solved by m = h*0/h0, ϑ = 0"] = equal(
                    values(expr).xreplace(mean), sp.S.Zero
                )
        energy = model.free_energy
        results |= {
            f"{pair}: training error = err/(1 + V)²": equal(
                values(energy.training_error).xreplace(mean), error / (1 + variance) ** 2
            ),
            f"{pair}: test error = err - Δ": equal(
                values(energy.test_error).xreplace(mean), error - fe.noise
            ),
        }
    return identities_hold(results, "r = 0, c = 1 gives plain random features")


def _plain_values(model: SymbolicModel) -> Callable[[sp.Expr], sp.Expr]:
    """Put the coefficients at c = 1, γ = 0 into an expression and carry out 𝔼."""
    direct = {fe.c: sp.S.One, fe.gamma: sp.S.Zero, fe.rho: sp.S.One}
    known: dict[sp.Expr, sp.Expr] = {}
    for function, definition in model.free_energy.free_energy.definitions.items():
        nodes = definition.atoms(GaussianExpectation)
        opened = definition.xreplace(
            {n: n.func(n.integrand.xreplace(known), n.variable) for n in nodes}
        )
        opened = opened.xreplace(direct)
        terms = {n: _termwise(n) for n in opened.atoms(GaussianExpectation)}
        known[function] = opened.xreplace(terms)

    def insert(expr: sp.Expr) -> sp.Expr:
        nodes = expr.atoms(GaussianExpectation)
        inner = {n: n.func(n.integrand.xreplace(known), n.variable) for n in nodes}
        inserted = expr.xreplace(inner)
        return inserted.xreplace({n: n.doit() for n in inserted.atoms(GaussianExpectation)})

    return insert


def _termwise(node: GaussianExpectation) -> sp.Expr:
    terms = sp.Add.make_args(sp.expand(node.integrand))
    return sp.Add(*(expect(term, node.variable) for term in terms))


@evidence("unspiked-limit", "exact", "the linear bound is the error of the best affine predictor")
def linear_bound() -> Finding:
    """Without a step L is the error of the best affine predictor."""
    results: dict[str, bool] = {}
    a, b = sp.symbols("a b", real=True)
    for name in ("erf", "sin", "relu", "He(3, z)/6"):
        teacher = activation(name)
        square = sp.expand((teacher.expr - a - b * variable) ** 2)
        error = sp.Add(*(expect(term, variable) for term in sp.Add.make_args(square)))
        minimum = sp.solve([error.diff(a), error.diff(b)], [a, b], dict=True)
        least = error.subs(minimum[0]) if len(minimum) == 1 else sp.nan
        results[f"{name}: ‖P_{{>1}} f*‖² = min E (f* - a - b z)²"] = equal(
            best_linear_error(teacher), least
        )
    return identities_hold(results, "the linear bound is the least error of a + b z")


@evidence("unspiked-limit", "quadrature", "A8, its bound, and no dependence on γ")
def unspiked_values() -> Finding:
    """A8 by floats, the bound of the best linear predictor, and no dependence on γ."""
    case = network_case("A8")
    model = case.build()
    deviations = case.deviations(case.solve())
    worst = max(deviations[name] for name in ("test_error", "training_error"))
    errors = [
        SpikedRandomFeatures.from_parameters(
            "erf", "erf", spike_strength=0, bulk_variance=1, alignment=gamma, beta=1.5
        )
        .solve(alpha=2, ridge=0.01)
        .test_error
        for gamma in (-1.0, -0.3, 0.0, 0.6, 1.0)
    ]
    spread = (max(errors) - min(errors)) / errors[2]
    alphas = np.repeat([0.2, 1.0, 5.0, 1e3], 5)
    ridges = np.tile(np.logspace(-4, 2, 5), 4)
    batch = model.solve_many(alpha=alphas, ridge=ridges)
    margin = float(np.min(batch.values["test_error"])) / model.best_linear_error
    near = (
        SpikedRandomFeatures("erf", "erf", step_size=0, beta=1000.0)
        .solve(alpha=1e3, ridge=1.0)
        .test_error
    )
    return Finding(
        worst <= 1e-12 and spread <= 1e-13 and margin >= 1 and abs(near - 0.0402843) <= 5e-8,
        f"A8 off by {worst:.1e}; spread over γ {spread:.1e}; least test error "
        f"{margin:.4f} times the linear bound; {near:.7f} at α = β = 10³, bound "
        f"{model.best_linear_error:.7f}",
        {"deviations": deviations, "errors_over_alignment": errors, "margin": margin},
    )


@evidence("unspiked-limit", "quadrature", "r → 0 at three alignments")
def order_of_limits() -> Finding:
    r"""Test and training error as r → 0 after d → ∞, against plain random features.

    For γ = 0 they go to those of plain random features. For γ ≠ 0 they do not: μ_0 ≈ r h_1 κ
    stays a feature that costs nothing, m grows like 1/r, and the part h*_1 γ κ of the target is
    learnt. What is left are plain random features of the target whose linear part is reduced
    from h*_1 to ρ h*_1.
    """
    k = 2 / math.sqrt(3 * math.pi)  # h*_1 of erf
    plain = (
        SpikedRandomFeatures("erf", "erf", step_size=0, beta=1.5)
        .solve(alpha=2, ridge=0.01)
        .test_error
    )
    ratios: dict[str, float] = {}
    errors: dict[str, list[float]] = {}
    gaps: dict[str, float] = {}
    for name, build in {
        "γ = 0": _spiked(0.0), "γ = 0.5": _spiked(0.5), "a step with α0 = 4": _stepped(4.0)
    }.items():  # fmt: skip
        gamma = build(0.01).spike.alignment
        taken = k * (1 - math.sqrt(1 - gamma**2))
        teacher = f"erf(z) - {taken!r}*z" if gamma else "erf"
        limit = SpikedRandomFeatures("erf", teacher, step_size=0, beta=1.5).solve(
            alpha=2, ridge=0.01
        )
        distances = [
            build(r).solve(alpha=2, ridge=0.01).test_error - limit.test_error for r in (0.02, 0.01)
        ]
        errors[name] = [limit.test_error, *distances]
        # Even in r: halving it divides the distance by four.
        ratios[name] = distances[0] / distances[1]
        gaps[name] = 1 - limit.test_error / plain
    converges = all(abs(ratio - 4) < 0.05 for ratio in ratios.values())
    return Finding(
        converges and gaps["γ = 0"] == 0 and all(gap > 0.1 for gap in list(gaps.values())[1:]),
        "distance to the limit falls by "
        + ", ".join(f"{ratio:.3f} ({name})" for name, ratio in ratios.items())
        + " when the step is halved; the limits are below the error without a step by "
        + ", ".join(f"{gap:.1%}" for gap in gaps.values()),
        {"ratios": ratios, "limit_and_distances": errors, "gaps": gaps},
    )


def _spiked(gamma: float) -> Callable[[float], SpikedRandomFeatures]:
    return lambda r: SpikedRandomFeatures.from_parameters(
        "erf", "erf", spike_strength=r, bulk_variance=1, alignment=gamma, beta=1.5
    )


def _stepped(alpha0: float) -> Callable[[float], SpikedRandomFeatures]:
    return lambda s: SpikedRandomFeatures("erf", "erf", step_size=s, alpha0=alpha0, beta=1.5)


@evidence("unspiked-limit", "certified", "intervals by two systems of equations overlap")
def without_a_step() -> Finding:
    """Plain random features by both lines of work: two systems of equations, one test error."""
    require_flint()
    entry = reference_document()["without_step"]
    alpha, beta, ridge = (float(entry[name]) for name in ("alpha", "beta", "ridge"))
    first = OneGradientStep("erf", "erf", alpha=alpha, beta=beta, step_size=0)
    other = SpikedRandomFeatures("erf", "erf", step_size=0, beta=beta)
    proofs = (
        proof_of(first.risk(ridge=ridge, certify=True)),
        proof_of(other.solve(alpha=alpha, ridge=ridge, certify=True)),
    )
    values: dict[str, Any] = {}
    meet = True
    for mine, yours, name in (
        ("risk_initial", "test_error", "test_error"),
        ("training_error_initial", "training_error", "training_error"),
    ):
        one, two = proofs[0][mine], proofs[1][yours]
        meet = meet and overlap(one, two)
        values |= {
            f"one step of order one, {name}": (one, entry[name]),
            f"spiked random features, {name}": (two, entry[name]),
        }
    result = agreement(values, SPIKE_DIGITS, "errors by two systems of equations", proven=PROVEN)
    says = "both intervals overlap" if meet else "the intervals do not overlap"
    return Finding(result.passed and meet, f"{result.summary}; {says}", result.details)


declare_claim(
    "invariances",
    title="What the errors do not depend on",
    statement=(
        r"Test and training error are the same for $(r, \gamma)$ and $(-r, -\gamma)$, and for "
        r"$(\sigma, \lambda)$ and $(t\sigma, t^2\lambda)$ with any $t \ne 0$."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
)


@evidence("invariances", "exact", "the free energy and the errors under both transformations")
def invariances() -> Finding:
    """The free energy has both symmetries, with the transformations of its variables."""
    f = spiked_energy().free_energy.expression
    t = sp.Symbol("t", positive=True)
    conjugates = (fe.V1_hat, fe.V2_hat, fe.q1_hat, fe.q2_hat)
    scaling = {
        fe.ridge: t**2 * fe.ridge,
        fe.mu0: t * fe.mu0,
        fe.mu1: t * fe.mu1,
        fe.mu2_squared: t**2 * fe.mu2_squared,
        **{x: x / t**2 for x in (fe.V1, fe.V2, fe.q1, fe.q2)},
        **{x: x / t for x in (fe.m, fe.theta, fe.psi)},
        **{x: t**2 * x for x in conjugates},
        **{x: t * x for x in (fe.theta_hat, fe.psi_hat)},
    }
    # (r, γ) → (−r, −γ) amounts to κ → −κ in all coefficients; E_κ does not see it, so the one
    # κ that stands alone, beside ϑ, changes its sign, and ϑ undoes it.
    reflection = {fe.theta: -fe.theta, fe.theta_hat: -fe.theta_hat}
    results = {
        "free energy: σ → tσ, λ → t²λ": vanishes(_transform(f, scaling) - f),
        "free energy: (r, γ) → (-r, -γ)": vanishes(
            _transform(f, reflection | {fe.kappa: -fe.kappa}) - f
        ),
    }
    for name, error in (
        ("test error", spiked_energy().test_error),
        ("training error", spiked_energy().training_error),
    ):
        results[f"{name}: σ → tσ, λ → t²λ"] = vanishes(_transform(error, scaling) - error)
        results[f"{name}: (r, γ) → (-r, -γ)"] = vanishes(
            _transform(error, reflection | {fe.kappa: -fe.kappa}) - error
        )
    reflected = {fe.r: -fe.r, fe.gamma: -fe.gamma, fe.kappa: -fe.kappa}
    for function, definition in spiked_energy().free_energy.definitions.items():
        # rκ and γκ are all that the coefficients depend on.
        image = definition.xreplace(reflected).replace(
            lambda e: isinstance(e, AppliedUndef), lambda e: e.func(fe.kappa)
        )
        results[f"{function} depends on rκ and γκ"] = vanishes(image - definition)
    return identities_hold(
        results, "both transformations leave the free energy and the errors as they are"
    )


def _transform(expr: sp.Expr, rules: Mapping[sp.Expr, sp.Expr]) -> sp.Expr:
    """Replace symbols and coefficient functions; a bound κ stands for itself, not in μ(κ)."""
    coefficients = (fe.mu0, fe.mu1, fe.mu2_squared, fe.T0, fe.T1, fe.T2)
    marks: dict[sp.Expr, sp.Expr] = {f: sp.Dummy(str(f.func)) for f in coefficients}
    back = {mark: f for f, mark in marks.items()}
    images = {marks[f]: rules.get(f, f) for f in coefficients}

    def image(inner: sp.Expr) -> sp.Expr:
        plain = {x: y for x, y in rules.items() if x not in marks}
        return inner.xreplace(marks).xreplace(plain).xreplace(images).xreplace(back)

    nodes = expr.atoms(GaussianExpectation, MarchenkoPasturAverage)
    holes: dict[sp.Expr, sp.Expr] = {n: sp.Dummy() for n in nodes}
    outside = image(expr.xreplace(holes))
    return outside.xreplace({holes[n]: n.func(image(n.args[0]), *n.args[1:]) for n in nodes})


@evidence("invariances", "quadrature", "pairs of models, with a student of the user's")
def invariances_of_models() -> Finding:
    """Both symmetries by the float kernel, for a student of the user's as well."""
    build = SpikedRandomFeatures.from_parameters
    deviations: dict[str, float] = {}
    for student, teacher in (("tanh", "sin"), ("erf", "erf"), ("relu", "tanh")):
        pair = [
            build(
                student, teacher, spike_strength=sign * 1.1, bulk_variance=1.1,
                alignment=sign * 0.7, beta=0.8, noise_variance=0.1,
            ).solve(alpha=1.5, ridge=0.05)
            for sign in (1, -1)
        ]  # fmt: skip
        deviations[f"{student}/{teacher}: (r, γ) → (-r, -γ)"] = _apart(*pair)
    for student, scaled in (("tanh", "2*tanh(z)"), ("erf", "erf(z)/3")):
        factor = 4.0 if student == "tanh" else 1 / 9
        one = SpikedRandomFeatures(student, "sin", step_size=0.0).solve(alpha=1.5, ridge=0.05)
        other = SpikedRandomFeatures(scaled, "sin", step_size=0.0).solve(
            alpha=1.5, ridge=0.05 * factor
        )
        deviations[f"{scaled}, without a step"] = _apart(one, other)
        arguments: dict[str, Any] = {
            "spike_strength": 1.1, "bulk_variance": 1.1, "alignment": 0.7, "beta": 0.8
        }  # fmt: skip
        one = build(student, "sin", **arguments).solve(alpha=1.5, ridge=0.05)
        other = build(scaled, "sin", **arguments).solve(alpha=1.5, ridge=0.05 * factor)
        deviations[f"{scaled}, with a spike"] = _apart(one, other)
    worst = max(deviations.values())
    return Finding(
        worst <= 1e-12,
        f"{len(deviations)} pairs of models agree to {worst:.1e} relative",
        {"deviations": deviations},
    )


def _apart(one: Any, other: Any) -> float:
    return max(
        abs(getattr(one, name) / getattr(other, name) - 1)
        for name in ("test_error", "training_error")
    )


NARROW = 12


@evidence(
    "invariances", "certified", "intervals of the errors meet, for one pair of each", slow=True
)
def proven_invariances() -> Finding:
    """Errors of two pairs of models that should be the same: their intervals meet."""
    require_flint()
    spike: dict[str, Any] = {
        "spike_strength": 1.1,
        "bulk_variance": 1.1,
        "alignment": 0.7,
        "beta": 0.8,
    }
    turned = {**spike, "spike_strength": -1.1, "alignment": -0.7}
    build = SpikedRandomFeatures.from_parameters
    one = certified_point(build("erf", "erf", **spike), 1.5, 0.09)
    others = {
        "(r, γ) → (−r, −γ)": certified_point(build("erf", "erf", **turned), 1.5, 0.09),
        "σ → 3σ, λ → 9λ": certified_point(build("3*erf(z)", "erf", **spike), 1.5, 0.81),
    }
    results: dict[str, bool] = {}
    for name, other in others.items():
        for error in ("test_error", "training_error"):
            pair = one[error], other[error]
            results[f"{name}: {error}"] = overlap(*pair) and all(x.digits >= NARROW for x in pair)
    return decided(results, f"errors have intervals that meet, of {NARROW} digits at least")


def certified_point(
    model: SpikedRandomFeatures, alpha: float, ridge: float, **given: Any
) -> Certificate:
    """Return the proof of a solution."""
    found: Certificate = proof_of(model.solve(alpha=alpha, ridge=ridge, certify=True, **given))
    return found
