r"""Claim: a giant step correlates norms and overlaps of the rows, and the errors show it.

Result 3.1 keeps of the trained rows b their mean squared norm c. Their norms also fluctuate by
:math:`O(d^{-1/2})`, in proportion to the overlap of the initial row with the spike. The mean of a
feature changes by as much as through :math:`\kappa\mu_1 b\cdot v`, which is of the same order and
which Result 3.2 keeps: so the term belongs to the limit d → ∞.

Claim: a giant step stretches the rows of students that are not odd, and the errors show it.

The part :math:`h_2\,w\cdot x` of σ' acts on a row w as the matrix
:math:`1 + s h_2 A`, :math:`A = \frac{1}{n_0}\sum_\mu\tilde y_\mu x_\mu x_\mu^\top`. In the plane of
the spike and of the teacher A is not its mean over directions, and overlaps of rows with the
teacher, which Result 3.2 keeps, change by a factor of order one: see :mod:`.spike_mapping`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp
import threadpoolctl
from numpy.typing import NDArray

from ...ball_library import require_flint
from ...numeric.networks.network import Network, Training
from ...symbolic.expressions.activations import activation, z as variable
from ...symbolic.gaussian.expectation import expect
from ...symbolic.hermite.coefficients import hermite_polynomial
from ..certificates.agreement import decided, overlap
from ..claims import Finding, Status, declare_claim, evidence
from ..first_gradient import spike_mapping as mapping
from ..first_gradient.spike_mapping import spike_mapping, step_size
from ..identities import equal, identities_hold, vanishes
from . import physics as fe
from .bulk_law import ORTHONORMAL, BulkLaw
from .claims_limits import certified_point
from .claims_mapping import NU
from .model import SpikedRandomFeatures
from .simulated import network_of
from .vocabulary.model import VocabularyFeatures

_H3 = sp.Symbol("h_3", real=True)
_CORRELATION = {
    "a": sp.Eq(fe.norm_overlap, step_size * _H3 * NU),
    "before": fe.kappa * fe.mu1 * fe.theta,
    "after": (fe.kappa * fe.mu1 + fe.norm_overlap * fe.chi) * fe.theta,
}


declare_claim(
    "correlated-norms",
    title="The step correlates norms and overlaps of the rows, which changes the limit",
    statement=(
        r"For an odd student the bulk row $b$ of a trained neuron has "
        r"$|b|^2 = c + 2a\,w\cdot v + \dots$ with $«a»$, $h_3 = "
        r"\mathbb{E}[\sigma\,\mathrm{He}_3]$ and $w$ the initial row. In Result 3.3 this replaces "
        r"$«before»$ by $«after»$ with "
        r"$\chi(\kappa) = \mathbb{E}\,\sigma''(r\kappa + u)$, up to terms of order $c - 1$. The "
        r"errors of networks follow it; those of Results 3.1-3.3 as published, with $a = 0$, "
        r"differ from them in the limit $d \to \infty$ unless $h_3 = 0$ or $\chi \propto \mu_0$."
    ),
    source="derived here; a correction to Result 3.1",
    status=Status.DERIVED_HERE,
    formulas=_CORRELATION,
)


@evidence("correlated-norms", "exact", "the steps of the derivation; a = 0")
def identities() -> Finding:
    """Check the three steps of the derivation, and that a = 0 is the published free energy."""
    results: dict[str, bool] = {}
    for name in ("erf", "sin", "He3"):
        sigma = activation(name)
        slope = sigma.derivative
        mean = expect(slope, variable)
        # Part linear in w of the norm: φ(u) = u (σ'(u) − h_1) has the Hermite coefficient h_3.
        linear = expect(variable**2 * (slope - mean), variable)
        third = expect(sigma.expr * hermite_polynomial(3, variable), variable)
        results[f"E[u² (σ' − h₁)] = h₃ for {name}"] = bool(sp.expand(linear - third) == 0)
        found = spike_mapping(sigma, activation("sin"))
        # ν is the length of the gradient, which r has, too.
        stated = _CORRELATION["a"].rhs.xreplace({_H3: third, NU: found.spike_strength})
        results[f"a = s h₃ ν for {name}"] = equal(
            stated, found.norm_overlap * step_size * expect(slope, variable)
        )
        # χ = 2 ∂_c μ_0: the response of the mean to the norm.
        mu0 = expect(sigma(fe.r * fe.kappa + sp.sqrt(fe.c) * fe.z), fe.z)
        difference = fe.norm_response(sigma).doit() - 2 * mu0.diff(fe.c)
        results[f"χ = 2 ∂μ₀/∂c for {name}"] = bool(sp.simplify(difference) == 0)
    mean, changed = (fe.conditional_mean(correlated_norms=c) for c in (False, True))
    results["what ϑ adds to the mean"] = equal(mean, fe.mu0 * fe.m + _CORRELATION["before"])
    results["the same with a"] = equal(changed, fe.mu0 * fe.m + _CORRELATION["after"])
    pair = activation("tanh"), activation("sin")
    corrected = fe.spiked_free_energy(*pair, correlated_norms=True)
    published = fe.spiked_free_energy(*pair)
    for name in ("test_error", "training_error"):
        difference = getattr(corrected, name).subs(fe.norm_overlap, 0) - getattr(published, name)
        results[f"a = 0 gives the published {name}"] = vanishes(difference)
    difference = corrected.free_energy.expression.subs(fe.norm_overlap, 0)
    results["a = 0 gives the published free energy"] = vanishes(
        difference - published.free_energy.expression
    )
    return identities_hold(
        results,
        "the norm's part linear in the row, its effect on the mean, the published theory at a = 0",
    )


@evidence("correlated-norms", "simulation", "norms against overlaps")
def measured_norms() -> Finding:
    """Regress squared norms of trained rows on their initial overlap with the spike."""
    dimension, samples, repetitions = 400, 40, 6
    model = SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=samples)
    predicted = 2 * model.spike.norm_overlap
    network = network_of(model, dimension)
    slopes = []
    for seed in range(repetitions):
        rows, trained, spike = rows_after_a_step(network, seed)
        bulk = trained - np.outer(trained @ spike, spike)
        slopes.append(np.polyfit(rows @ spike, np.sum(bulk**2, axis=1), 1)[0])
    mean = float(np.mean(slopes))
    error = float(np.std(slopes, ddof=1) / math.sqrt(repetitions))
    passed = abs(mean - predicted) <= 4 * error + 5 * abs(predicted) / dimension
    return Finding(
        passed and abs(mean) > 10 * error,
        f"slope of the squared norm on the overlap {mean:.4f} ± {error:.4f}, predicted 2a = "
        f"{predicted:.4f}, without the correlation 0",
        {"slopes": slopes, "predicted": predicted},
    )


def rows_after_a_step(network: Network, seed: int) -> tuple[Any, Any, Any]:
    """Return the rows of one network before and after its step, and the direction of the spike."""
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        training = Training(network, seed)
        rows = training.layer.rows.copy()
        training.step()
    return rows, training.layer.rows, training.layer.spikes[0]


# A pair that shows it: the correction is 15 % of the test error, c − 1 is 0.03.
_MODEL: dict[str, Any] = {
    "student": "tanh",
    "teacher": "z + He(3, z)/6",
    "step_size": 4.0,
    "alpha0": 60.0,
}
_ALPHA, _RIDGE = 3.0, 0.1
# Relative deviation from the corrected theory times d; measured 4.2(1.5) at d = 200, 2.9(3.7) at
# d = 400, on other networks than the checks draw; with stretched rows 3.9(2.1) and 3.0(3.2), there
# with alpha0 = 60.
_BIAS = 7.0


@evidence(
    "correlated-norms", "simulation", "errors of small networks", arguments={"sizes": {200: 60}}
)
@evidence(
    "correlated-norms",
    "simulation",
    "errors at two sizes",
    slow=True,
    arguments={"sizes": {300: 80, 600: 30}},
)
def errors(sizes: dict[int, int]) -> Finding:
    """Compare networks, so many of each dimension, with both theories."""
    return told_apart(
        SpikedRandomFeatures(**_MODEL), sizes, alpha=_ALPHA, ridge=_RIDGE, seed=2024,
        name="corrected", called="with correlated norms",
    )  # fmt: skip


def told_apart(
    model: SpikedRandomFeatures, sizes: dict[int, int],
    *, alpha: float, ridge: float, seed: int, name: str, called: str,
) -> Finding:  # fmt: skip
    """Compare networks with the theory as published, which they exclude, and the complete one."""
    published = model.solve(alpha=alpha, ridge=ridge).test_error
    complete = replace(model, leading_order="complete").solve(alpha=alpha, ridge=ridge).test_error
    passed, texts = True, []
    details: dict[str, Any] = {"published": published, name: complete}
    for dimension, networks in sizes.items():
        found = model.simulate(
            dimension, alpha=[alpha], ridge=ridge, seeds=networks, seed=seed, progress=False
        )
        mean = float(found["test_error_mean"][0])
        error = float(found["test_error_standard_error"][0])
        tolerance = 4 * error + _BIAS / dimension * complete
        passed &= abs(mean - complete) <= tolerance < abs(mean - published)
        texts.append(f"{mean:.4f} ± {error:.4f} at d = {dimension}")
        details[f"d = {dimension}"] = [mean, error]
    return Finding(
        passed,
        f"networks: {', '.join(texts)}; {called} {complete:.4f}, as published {published:.4f}, "
        "which all of them exclude",
        details,
    )


@evidence(
    "correlated-norms",
    "certified",
    "the equations with a ≠ 0 have other errors: one pair",
    slow=True,
)
def correlated_norms() -> Finding:
    """Errors with the correlation of norms and overlaps, and without it, are proven to differ."""
    require_flint()
    with_it, without = (
        certified_point(SpikedRandomFeatures(**_MODEL, leading_order=order), _ALPHA, _RIDGE)
        for order in ("complete", "published")
    )
    results = {
        name: not overlap(with_it[name], without[name]) for name in ("test_error", "training_error")
    }
    share = 1 - with_it["test_error"].midpoint / without["test_error"].midpoint
    return decided(
        results,
        f"with a ≠ 0 the errors differ from the published ones, the test error by "
        f"{100 * abs(float(share)):.1f} %",
    )


declare_claim(
    "stretched-rows",
    title="The step stretches the rows of students that are not odd, which changes the limit",
    statement=(
        r"With $h_2 = \mathbb{E}[\sigma\,\mathrm{He}_2] \ne 0$ bulk rows after the step are "
        r"$b = \sqrt c\,(1 + T)u$ in the plane of the spike $v$ and of the teacher's direction "
        r"$\zeta$ across it, $T = s\,h_2\sqrt{c_0}\,A'/c$ with $\sqrt{c_0} = 1 + "
        r"s\,h_2(h^*_0 - h_0)$. With $\tilde y = y - h_0$, $t = \theta\cdot x$ and $e$ the "
        r"direction of the spike across $\theta$, $A'_{\theta\theta} = h^*_2$, $A'_{\theta e} = "
        r"\mathbb{E}[\tilde y^2t]/\sqrt{\alpha_0\mathbb{E}\,\tilde y^2}$ and $A'_{ee} = "
        r"\mathbb{E}\,\tilde y^3/(\alpha_0\mathbb{E}\,\tilde y^2)$. In Result 3.3 "
        r"$\kappa\mu_1\vartheta$ becomes $\kappa\mu_1((1 + T_{vv})\vartheta + T_{v\zeta}\psi)$, "
        r"the overlap $\psi$ that meets the labels becomes $k\cdot(\vartheta, \psi)$ with $k = "
        r"(T_{v\zeta}, 1 + T_{\zeta\zeta})$, and overlaps cost $(\vartheta^2 + \psi^2)/(2\beta c\,"
        r"\mathbb{E}[1/S]) + \hat V_1(k\cdot(\vartheta, \psi))^2/2$, up to terms of order "
        r"$c - c_0$. The errors of networks follow it; for $\alpha_0 = \infty$ only "
        r"$1 + T_{vv} = 1 + s\,h_2h^*_2/\sqrt c$ is left."
    ),
    source="derived here; a correction to Result 3.1",
    status=Status.DERIVED_HERE,
)


@evidence("stretched-rows", "exact", "the gradient along the teacher; h₂ = 0")
def stretched_identities() -> Finding:
    """Check the population gradient along the teacher, and where the stretch vanishes."""
    results: dict[str, bool] = {}
    overlap, other = sp.symbols("omega xi", real=True)
    for names in (("z + He(2, z)/2", "z + He(2, z)"), ("He(2, z) + He(3, z)", "z + z**2")):
        student, teacher = map(activation, names)
        # Field of a row of unit norm with the overlap ω with the teacher, t = z.
        field = overlap * variable + sp.sqrt(1 - overlap**2) * other
        slope = student.derivative.xreplace({variable: field})
        label = teacher.expr - expect(student.expr, variable)
        along = expect(expect(sp.expand(label * slope * variable), other), variable)
        found = mapping.spike_mapping(student, teacher, stretched=True)
        limits = {mapping.alpha0: sp.oo, mapping.step_size: 1, mapping.noise: 0}
        # c and T as the step has them: w·θ becomes ω times their product, and a constant.
        root = sp.sqrt(found.bulk_variance.xreplace(limits))
        stretched = root * (1 + found.stretch_along.xreplace(limits)) - 1
        linear = along.diff(overlap).subs(overlap, 0)
        results[f"gradient along the teacher, {names}"] = sp.simplify(linear - stretched) == 0
    for names in (("tanh", "relu"), ("z + He(4, z)", "relu")):
        found = mapping.spike_mapping(*map(activation, names), stretched=True)
        entries = (found.stretch_along, found.stretch_mixed, found.stretch_across)
        results[f"no stretch without h₂, {names}"] = all(x == 0 for x in entries)
    return identities_hold(
        results, "the population gradient along the teacher; no stretch without h₂"
    )


_STRETCHED_ALPHA, _STRETCHED_RIDGE = 2.0, 0.1
# (student, teacher, step size, published, complete) at infinitely many samples of the step; found
# by a solver of the reduced equations apart from this package.
_POPULATION = (
    ("relu", "relu", 2.0, 0.1052, 0.0850),
    ("relu", "z + He(2, z)", 1.5, 2.220, 1.214),
    ("z + He(2, z)/2", "z + He(2, z)/2", 1.0, 0.3995, 0.3717),
)


@evidence("stretched-rows", "quadrature", "errors of another solver")
def population_errors() -> Finding:
    """Compare errors at infinitely many samples with those of another solver."""
    details: dict[str, Any] = {}
    passed = True
    for student, teacher, step, published, complete in _POPULATION:
        model = SpikedRandomFeatures(
            student, teacher, step_size=step, alpha0=math.inf, allow_non_odd=True
        )
        both = (model, replace(model, leading_order="complete"))
        found = [m.solve(alpha=_STRETCHED_ALPHA, ridge=_STRETCHED_RIDGE).test_error for m in both]
        passed &= bool(np.allclose(found, (published, complete), rtol=6e-4, atol=0))
        details[f"{student}, {teacher}"] = found
    return Finding(
        passed,
        f"{len(_POPULATION)} pairs, published and complete, to the four digits of the other solver",
        details,
    )


# A pair that shows it: the errors differ by 17 %, c − 1 is 0.01.
_STRETCHED: dict[str, Any] = {
    "student": "relu",
    "teacher": "relu",
    "step_size": 2.0,
    "alpha0": 30.0,
    "allow_non_odd": True,
}


@evidence("stretched-rows", "simulation", "trained against initial rows")
def measured_stretch() -> Finding:
    """Regress the overlaps of trained rows with spike and teacher on those of initial rows."""
    dimension, samples, repetitions = 300, 8, 8
    model = SpikedRandomFeatures(**_STRETCHED | {"alpha0": samples}, leading_order="complete")
    spike = model.spike
    # h_2 (h*_0 − h_0) = 0 for a teacher that is the student: what is stretched is the row itself.
    along, mixed, across = spike.stretch
    predicted = np.eye(2) + spike.bulk_variance * np.array([[along, mixed], [mixed, across]])
    network = network_of(model, dimension)
    slopes = []
    for seed in range(repetitions):
        rows, trained, direction = rows_after_a_step(network, seed)
        teacher = np.eye(dimension)[0] - direction[0] * direction
        plane = np.stack([direction, teacher / np.linalg.norm(teacher)], axis=1)
        after = trained @ plane
        slopes.append(np.linalg.lstsq(rows @ plane, after - after.mean(axis=0))[0].T)
    mean = np.mean(slopes, axis=0)
    spread = np.std(slopes, axis=0, ddof=1) / math.sqrt(repetitions)
    passed = bool((abs(mean - predicted) <= 4 * spread + 10 * predicted[0, 0] / dimension).all())
    return Finding(
        passed and abs(mean[0, 0] - 1) > 10 * spread[0, 0],
        f"along the spike {mean[0, 0]:.3f} ± {spread[0, 0]:.3f}, predicted {predicted[0, 0]:.3f}, "
        "without the stretch 1",
        {"measured": mean.tolist(), "errors": spread.tolist(), "predicted": predicted.tolist()},
    )


@evidence(
    "stretched-rows", "simulation", "errors of small networks", arguments={"sizes": {200: 40}}
)
@evidence(
    "stretched-rows",
    "simulation",
    "errors at two sizes",
    slow=True,
    arguments={"sizes": {300: 50, 600: 16}},
)
def stretched_errors(sizes: dict[int, int]) -> Finding:
    """Compare networks, so many of each dimension, with both theories."""
    return told_apart(
        SpikedRandomFeatures(**_STRETCHED), sizes,
        alpha=_STRETCHED_ALPHA, ridge=_STRETCHED_RIDGE, seed=2025,
        name="complete", called="complete",
    )  # fmt: skip


# ----------------------------------------------------------------------
# Claim: Result 3.3 with any law of spectrum and overlaps, Assumption 3.2 of Cui et al. Rows with
# two eigenvalues, whose singular vectors are uniform, follow the equations of an isotropic law at
# finite size; a law that is the default of independent rows gives its numbers.

Array = NDArray[np.float64]

declare_claim(
    "cui-bulk-law",
    title="Any law of spectrum and overlaps of the bulk",
    statement=(
        r"Result 3.3 sees of the bulk rows $B$ the joint law of the eigenvalues $D$ of "
        r"$B(1 - vv^\top)B^\top$ and of $F$, $G$, $H$, $d$ times the squares and the product of "
        r"the components of $Bv$ and $B\zeta$ in its eigenvectors. Of an isotropic bulk "
        r"$\mathbb{E}[F/S] = J/(1 - \beta\hat V_1J)$ with $J = \mathbb{E}[D/S]$, $G$ has mean "
        r"zero and $H$ the conditional mean $D$. A penalty $\lambda w^\top\!Pw$, $P$ diagonal "
        r"where $BB^\top$ is, replaces $\lambda$ by $\lambda P$ in $S = \lambda P + \hat V_2 + "
        r"\hat V_1D$."
    ),
    source="Cui et al., arXiv 2402.04980, Assumption 3.2; isotropic laws and penalties derived "
    "here",
    status=Status.REPLICA,
)

_SPIKE: dict[str, Any] = {"spike_strength": 1.2, "alignment": 0.8}
_NOISE = 0.1
_SHARES = (0.75, 0.25)
_LEVELS = (0.1, 3.7)
_TEST_SAMPLES = 2000
_MEASURED = ("test_error", "training_error", "theta", "psi", "q1", "q2")


def _model(bulk: str | BulkLaw, *, beta: float = 0.5, width: int | None = None) -> Any:
    return SpikedRandomFeatures.from_parameters(
        "sin", "sin", **_SPIKE, bulk_variance=1.0, beta=beta, noise_variance=_NOISE, bulk=bulk,
        width=width,
    )  # fmt: skip


@evidence("cui-bulk-law", "quadrature", "the law of independent rows as data; a frame")
def known_laws() -> Finding:
    """Compare laws that are data with independent rows, and with a frame derived from itself."""
    beta, size = 0.5, 1000
    # Quantiles in the angle that makes the density of Marchenko and Pastur smooth.
    angles = (np.arange(size) + 0.5) * math.pi / size
    x = 1 + beta + 2 * math.sqrt(beta) * np.cos(angles)
    weight = (2 * math.sqrt(beta) * np.sin(angles)) ** 2 / x
    weight /= weight.sum()
    isotropic = BulkLaw.from_eigenvalues(x, weights=weight)
    given = BulkLaw.from_eigenvalues(x, weights=weight, F=np.ones(size))
    frame = VocabularyFeatures.from_parameters(
        "sin", "sin", spike_strengths=[_SPIKE["spike_strength"]], bulk_variances=[1.0],
        fractions=[1.0], alignment=_SPIKE["alignment"], beta=beta, noise_variance=_NOISE,
        bulk=ORTHONORMAL,
    )  # fmt: skip
    pairs = {
        "isotropic": (_model(isotropic), _model("iid")),
        "overlaps": (_model(given), _model("iid")),
        "frame": (_model(ORTHONORMAL), frame),
    }
    changes = {}
    for name, both in pairs.items():
        found, wanted = (m.solve(alpha=2, ridge=0.1) for m in both)
        changes[name] = max(
            abs(getattr(found, error) / getattr(wanted, error) - 1)
            for error in ("test_error", "training_error")
        )
    worst = max(changes.values())
    return Finding(worst < 1e-11, f"relative changes are at most {worst:.1e}", changes)


def two_level_readout(
    seed: int, dimension: int, width: int, samples: int, ridge: float,
    penalty: Sequence[float] | None = None,
) -> Array:  # fmt: skip
    """Return the errors, ϑ, ψ, q_1 and q_2 of a readout of rows with a two-level spectrum."""
    generator = np.random.default_rng(seed)
    counts = [round(share * width) for share in _SHARES]
    left = np.linalg.qr(generator.standard_normal((width, width)))[0]
    right = np.linalg.qr(generator.standard_normal((dimension, width)))[0]
    bulk = (left * np.sqrt(np.repeat(_LEVELS, counts))) @ right.T
    rows = bulk.copy()
    rows[:, 0] += _SPIKE["spike_strength"]
    cost = np.repeat(penalty or (1.0, 1.0), counts)
    gamma = _SPIKE["alignment"]

    def sample(size: int) -> tuple[Array, Array]:
        x = generator.standard_normal((size, dimension))
        field = gamma * x[:, 0] + math.sqrt(1 - gamma**2) * x[:, 1]
        return np.sin(x @ rows.T) / math.sqrt(width), np.sin(field)

    features, clean = sample(samples)
    labels = clean + math.sqrt(_NOISE) * generator.standard_normal(samples)
    matrix = features.T @ features + ridge * (left * cost) @ left.T
    w = np.linalg.solve(matrix, features.T @ labels)
    fresh, target = sample(_TEST_SAMPLES)
    overlaps = w @ bulk / math.sqrt(width)
    errors = np.mean((target - fresh @ w) ** 2), np.mean((labels - features @ w) ** 2)
    return np.array([*errors, *overlaps[:2], overlaps[1:] @ overlaps[1:], w @ w / width])


@evidence("cui-bulk-law", "simulation", "two levels, isotropic, at d = 240")
@evidence(
    "cui-bulk-law",
    "simulation",
    "the same with a penalty on the second level",
    arguments={"penalty": (1.0, 8.0)},
)
def two_levels(penalty: Sequence[float] | None = None) -> Finding:
    """Draw rows with two eigenvalues and compare errors and overlaps with their law."""
    dimension, width, samples, ridge, seeds = 240, 120, 360, 0.1, 24
    measured = np.array(
        [two_level_readout(s, dimension, width, samples, ridge, penalty) for s in range(seeds)]
    )
    mean, error = measured.mean(axis=0), measured.std(axis=0, ddof=1) / math.sqrt(seeds)
    law = BulkLaw.from_eigenvalues(_LEVELS, weights=_SHARES, penalty=penalty)
    theory, plain = (
        _model(bulk, width=width).solve(alpha=samples / dimension, ridge=ridge)
        for bulk in (law, "iid")
    )
    deviations = {
        name: float(abs(mean[k] - getattr(theory, name)) / error[k])
        for k, name in enumerate(_MEASURED)
    }
    apart = {
        name: float(abs(mean[k] - getattr(plain, name)) / error[k])
        for k, name in enumerate(_MEASURED)
        if name in ("psi", "q1")
    }
    worst = max(deviations.values())
    return Finding(
        worst < 4 and min(apart.values()) > 6,
        f"errors and overlaps deviate by at most {worst:.1f} standard errors, and by "
        f"{min(apart.values()):.0f} in psi and q1 from independent rows",
        deviations | {f"{name}, independent rows": x for name, x in apart.items()},
    )
