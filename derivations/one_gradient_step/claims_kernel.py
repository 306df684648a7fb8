"""Claims: the spectrum of the conjugate kernel after one gradient step.

Simulated outliers are compared with their limits after extrapolation from two dimensions:
deviations of order :math:`d^{-1/2}`, from what the gradient has beside its spike, then cancel
without being known. For linearised features there is a sharper comparison, network by network:
with ζ at the length T that belongs to the largest singular value of the same first layer. This
difference, and that of network and linearised features of the same first layer, are extrapolated
in 1/d. Seeds are fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from scipy.optimize import brentq

from ...ball_library import require_flint
from ...numeric.cache import FileCache
from ...numeric.networks.network import Training
from ...runtime.generated import defined
from ...runtime.precision import local_context
from ...symbolic.expressions.activations import activation
from ...symbolic.hermite.coefficients import hermite_coefficient
from ..certificates.agreement import agreement, proof_of
from ..claims import Finding, Status, declare_claim, evidence
from ..comparison import Comparison, finding
from ..identities import cancels, identities_hold
from . import kernel_equations as eq
from .claims_spike import PROVEN, PROVEN_DIGITS, extrapolated
from .kernel_spectrum import (
    ConjugateKernel,
    KernelCurve,
    difference_norm,
    expected_matrix,
    spectrum_sources,
)
from .model import OneGradientStep
from .pair_kernels import c, p, pair_kernel, q
from .reference import reference_cases
from .simulated import one_step_network
from .symbols import aligned_square, label_square, linear, spike_square, teacher_linear

_BA = "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445"

_PLACE = (1 + eq.place) * (eq.beta + eq.place) / eq.place + eq.kappa
_CURVE = {
    "zeta": linear**2 * _PLACE
    * (eq.alpha / eq.beta + 1 / eq.place + eq.kappa / (eq.beta + eq.place)),
    "nu": -(linear**2) * _PLACE,
}  # fmt: skip

declare_claim(
    "ba-kernel-bulk",
    title="The bulk of the conjugate kernel",
    statement=(
        r"For $K = \Phi\Phi^\top$ with $\Phi = (\mu_1XW + \mu_{>1}Z)/\sqrt N$ and "
        r"$\kappa = \mu_{>1}^2/\mu_1^2$, the inverse function of $\frac1n\operatorname{tr}"
        r"(K - z)^{-1} = \beta/(\alpha\nu)$ is $z = \zeta(T)$, $$\zeta(T) = «zeta»,\quad "
        r"\nu = «nu».$$ For $\operatorname{Im}z > 0$ exactly one of the four roots has "
        r"$1/\nu$ and the transforms of $W^\top W$ and $WW^\top$ in the upper half plane. "
        r"Edges are critical values of $\zeta$; the bulk has one interval or two."
    ),
    formulas=_CURVE,
    source="derived here",
    status=Status.DERIVED_HERE,
)


@evidence("ba-kernel-bulk", "exact", "closed forms of the equations")
def algebra() -> Finding:
    """Check closed forms against each other, and the limit of pure noise."""
    results = {name: cancels(value) for name, value in eq.identities().items()}
    results["ζ as stated"] = cancels(linear**2 * eq.zeta() - _CURVE["zeta"])
    results["ν as stated"] = cancels(linear**2 * eq.population_place() + _CURVE["nu"])
    low, high = eq.noise_edges()
    root = sp.sqrt(eq.alpha / eq.beta)
    results["edges of pure noise are those of Marchenko and Pastur"] = bool(
        sp.expand(low - (1 - root) ** 2) == 0 and sp.expand(high - (1 + root) ** 2) == 0
    )
    # The density of a population with square-root edges makes ζ' negative at √β.
    pole = sp.limit(eq.slope_sign().subs({eq.kappa: 1, eq.alpha: 2, eq.beta: 4}), eq.place, 2, "+")
    results["the slope is negative at the edge of the first layer"] = pole == -sp.oo
    return identities_hold(results, "closed forms of the spectrum agree with each other")


@evidence("ba-kernel-bulk", "quadrature", "one root at 400 random spectra")
def root_selection(count: int = 400, seed: int = 5) -> Finding:
    """Solve random spectra at random points: one root only, which satisfies the integral equation.

    α and β are from 1e-3 to 1e3, κ from 1e-6 to 1e6, points from 1e-6 to 1 of the largest
    eigenvalue in size. Roots are counted in 40-digit arithmetic, because signs of imaginary parts
    that are a tiny share of a root are rounding in floats; the equation is checked for the root
    that the float solver takes.
    """
    generator = np.random.default_rng(seed)
    sources = spectrum_sources(FileCache(None))
    several, worst, apart = 0, 0.0, 0.0
    for _ in range(count):
        alpha, beta = (float(10.0**x) for x in generator.uniform(-3, 3, 2))
        kappa = float(10.0 ** generator.uniform(-6, 6))
        curve = KernelCurve(
            sources, alpha, beta, repr(math.sqrt(1 / (1 + kappa))), repr(kappa / (1 + kappa))
        )
        size = curve.float_edges[-1, 1] * 10.0 ** generator.uniform(-6, 0)
        z = complex(size * np.exp(1j * math.pi * generator.uniform(0.02, 0.98)))
        roots = meant_roots(curve, z)
        several += int(len(roots) != 1)
        nu = complex(curve.effective_ridge(np.array([z]))[0])
        apart = max([apart, *(abs(nu / root - 1) for root in roots)])
        worst = max(worst, integral_residual(curve, nu, z))
    return Finding(
        several == 0 and worst < 1e-11 and apart < 1e-11,
        f"{count} random spectra: exactly one root in {count - several}; the root taken in floats "
        f"differs from it by at most {apart:.0e}, residual of its equation by quadrature at most "
        f"{worst:.0e}",
        {"without_a_unique_root": several, "root": apart, "residual": worst},
    )


_ROOT_DIGITS = 40


def meant_roots(curve: KernelCurve, z: complex) -> list[complex]:
    """Return all roots ν of the quartic at which three transforms are in the upper half plane."""
    ctx = local_context(_ROOT_DIGITS)
    functions = defined(curve.sources["precise"], ctx=ctx)
    alpha, beta, slope, floor = map(ctx.mpf, curve._numbers)
    numbers = (ctx.mpc(z), slope, floor, alpha, beta)
    rows = list(functions.quartic(*numbers))
    start = list(map(ctx.mpc, np.roots([complex(x) for x in rows])))
    # Small roots beside large ones need more digits on the way.
    roots = ctx.polyroots(rows, maxsteps=500, extraprec=200, roots_init=start)
    return [
        complex(root)
        for root in roots
        if all(x.imag > 0 for x in functions.upper_half_plane(root, *numbers))
    ]


Real = NDArray[np.float64]
_NODES = 6000


@dataclass(frozen=True)
class PopulationLaw:
    """Eigenvalues b X + v of the population covariance, as nodes and weights; N-side."""

    nodes: Real
    weights: Real

    @classmethod
    def of(cls, slope: float, floor: float, beta: float, count: int = _NODES) -> PopulationLaw:
        """Return the rule of X ~ Marchenko–Pastur: trapezoidal in the angle of the density."""
        # The N × N matrix: scaled entries of variance 1/d, atom at zero for N > d.
        angle = (np.arange(count) + 0.5) * math.pi / count
        x = 1 + beta + 2 * math.sqrt(beta) * np.cos(angle)
        weights = 2 / count * np.sin(angle) ** 2 / x
        nodes = slope * x + floor
        if beta > 1:
            nodes, weights = np.append(nodes, floor), np.append(weights, 1 - 1 / beta)
        return cls(nodes, weights)

    def average(self, function: Callable[[Real], Any]) -> complex:
        """Return the average over the law."""
        return complex(self.weights @ function(self.nodes))


def integral_residual(curve: KernelCurve, nu: complex, z: complex) -> float:
    """Return that of −z = ν (α/β − E t/(t + ν)), by the trapezoidal rule, relative to its terms."""
    alpha, beta, slope, floor = map(float, curve._numbers)
    # Poles of integrand and density are so far from the line of angles.
    poles = np.array([-(floor + nu) / slope, 0]) - 1 - beta
    strip = np.abs(np.arccos(poles / (2 * math.sqrt(beta))).imag).min()
    law = PopulationLaw.of(slope, floor, beta, int(np.clip(20 / strip, 100, 2 * 10**6)))
    share = law.average(partial(_share, nu))
    return float(abs(nu * (alpha / beta - share) + z) / (abs(z) + abs(nu) * (alpha / beta + 1)))


def _share(nu: complex, t: Real) -> NDArray[np.complex128]:
    return np.asarray(t / (t + nu), dtype=np.complex128)


@evidence("ba-kernel-bulk", "quadrature", "densities integrate to the shares of ranks")
def masses() -> Finding:
    """Integrate densities over one and two intervals; the sum with the zeros is one."""
    errors, two = {}, 0
    for case in reference_cases():
        kernel = case.build().conjugate_kernel()
        bulk = kernel.bulk(200)
        two += len(bulk.masses) - 1
        errors[case.name] = float(bulk.mass_errors.max())
    worst = max(errors.values())
    return Finding(
        worst < 1e-9 and two > 0,
        f"{len(errors)} densities, {two} of two intervals: each integrates to the share that "
        f"ranks give, up to {worst:.0e}",
        errors,
    )


@evidence(
    "ba-kernel-bulk",
    "certified",
    "the right edge of one model, a critical value",
    arguments={"count": 1},
)
@evidence("ba-kernel-bulk", "certified", "right edges of 13 models", slow=True)
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
    return agreement(values, PROVEN_DIGITS, "right edges of the bulk", proven=PROVEN)


@evidence("ba-kernel-bulk", "simulation", "distribution functions and resolvents of networks")
def histograms(dimension: int = 160, networks: int = 6, seed: int = 7) -> Finding:
    """Compare distribution functions and resolvents of kernels with theory, without a step too."""
    details: dict[str, float] = {}
    points = np.array([-0.01, 0.3 + 0.3j, 1 + 0.5j, 2 + 0.2j, -1 + 1j])
    for student, alpha, beta in (("tanh", 4.0, 2.0), ("softplus", 1.5, 1.25), ("erf", 0.7, 1.2)):
        model = OneGradientStep(student, "tanh", alpha=alpha, beta=beta, step_size=1, centre=True)
        theory = model.conjugate_kernel(trained=False)
        for step in (0, 1):
            kernel = model.conjugate_kernel(trained=bool(step))
            simulated = kernel.simulate(dimension, seeds=networks, seed=seed, progress=False)
            distance = simulated.distance(theory, outliers=0)
            details[f"{student}, {step} steps, distribution"] = distance
        values = simulated.eigenvalues.ravel()
        traces = np.mean(1 / (values[:, None] - points), axis=0)
        relative = np.abs(traces / theory.stieltjes(points) - 1)
        details[f"{student}, resolvent"] = float(relative.max())
    worst = max(v for k, v in details.items() if k.endswith("distribution"))
    trace = max(v for k, v in details.items() if k.endswith("resolvent"))
    return Finding(
        # Eigenvalues are rigid: what remains is of the order of 1/d.
        worst < 6 / dimension and trace < 6 / dimension,
        f"at d = {dimension} distribution functions differ by at most {worst:.4f}, traces of "
        f"resolvents by {100 * trace:.2f} %",
        details,
    )


declare_claim(
    "ba-kernel-threshold",
    title="The kernel has an outlier only beyond a threshold above that of the first layer",
    statement=(
        r"Of linearised features after one step, $K$ has an outlier if and only if "
        r"$\theta_1^2 > T_c$, the minimiser of $\zeta$ on $(\sqrt\beta, \infty)$: more than "
        r"the first layer needs, $\theta_1^2 > \sqrt\beta$. The right edge of the bulk is "
        r"$\zeta(T_c)$. The formulas are for the gradient of half the squared loss; that of "
        r"the whole one is twice as long, and its critical step size half as large."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
)

_TABLE = {
    "threshold": "threshold",
    "bulk_edge": "bulk_edge",
    "kernel_eigenvalue": "eigenvalue",
    "label_alignment": "label_alignment",
}


@evidence("ba-kernel-threshold", "quadrature", "13 models by integrals, and a table")
def reference_values() -> Finding:
    """Compare closed forms with integrals over the law of Marchenko and Pastur, and with a table.

    The table was computed in 40-digit arithmetic by the trapezoidal rule.
    """
    worst, table = 0.0, 0.0
    details = {}
    for case in reference_cases():
        model = case.build()
        kernel = model.conjugate_kernel()
        integrals = by_integrals(model)
        differences = {}
        for name, attribute in _TABLE.items():
            value = getattr(kernel, attribute)
            scale = max(abs(value), 1e-300)
            differences[name] = abs(integrals[name] - value) / scale if value else integrals[name]
            listed = float(case.values[name])
            table = max(table, abs(value - listed) / max(abs(listed), 1e-300) if listed else value)
        details[case.name] = differences
        worst = max(worst, *differences.values())
    return Finding(
        worst < 1e-11 and table < 1e-14,
        f"{len(details)} models: closed forms agree with integrals to {worst:.0e} and with the "
        f"table to {table:.0e}",
        details,
    )


def by_integrals(model: OneGradientStep) -> dict[str, float]:
    """Compute threshold, edge, outlier and label alignment by integrals alone, without T."""
    spike = model.weight_spike()
    beta, ratio = model.beta, model.beta / model.alpha
    student, teacher = model.student_moments, model.teacher_moments
    b, v = student.linear**2, student.residual
    law, layer = PopulationLaw.of(b, v, beta), PopulationLaw.of(1.0, 0.0, beta)

    def psi(a: float) -> float:
        return a * (1 + ratio * law.average(lambda t: t / (a - t)).real)

    def psi_slope(a: float) -> float:
        return 1 - ratio * law.average(lambda t: t**2 / (t - a) ** 2).real

    def resolvents(x: float) -> tuple[float, float]:
        right = layer.average(lambda t: 1 / (x - t)).real
        return beta * right + (1 - beta) / x, right

    edge = (1 + math.sqrt(beta)) ** 2
    critical = brentq(psi_slope, b * edge * (1 + 1e-4) + v, 1e6, xtol=1e-15, rtol=1e-14)
    left, right = resolvents((critical - v) / b)
    result = {"threshold": b / ((critical - v) * left * right), "bulk_edge": psi(critical) / ratio}
    result |= {"kernel_eigenvalue": result["bulk_edge"], "label_alignment": 0.0}
    strength = spike.theta1**2
    if strength > result["threshold"]:

        def secular(x: float) -> float:
            first, second = resolvents(x)
            return x * first * second - 1 / strength

        x = brentq(secular, edge * (1 + 1e-9), 1e6, xtol=1e-15, rtol=1e-14)
        place = b * x + v
        # The squared overlap with u is the residue of g/(1 - T x g g~).
        left, right = resolvents(x)
        right_slope = -layer.average(lambda t: 1 / (x - t) ** 2).real
        left_slope = beta * right_slope - (1 - beta) / x**2
        rate = left * right + x * (left_slope * right + left * right_slope)
        overlap = -left / (strength * rate)
        result["kernel_eigenvalue"] = psi(place) / ratio
        explained = teacher.linear**2 / model.label_square * x * b / place
        result["label_alignment"] = explained * spike.alignment**2 * overlap * psi_slope(place)
    return result


@evidence("ba-kernel-threshold", "exact", "an example where the convention decides")
def half_or_full_loss() -> Finding:
    """Tell the two loss conventions apart where one has an outlier and the other has none."""
    kernels = {
        loss: OneGradientStep(
            "softplus", "tanh", alpha=1.5, beta=1.25, step_size=2, centre=True, loss=loss
        ).conjugate_kernel()
        for loss in ("half", "full")
    }
    half, full = kernels["half"], kernels["full"]
    passed = not half.supercritical and full.supercritical
    passed &= abs(math.sqrt(half.threshold) - 1.4382) < 1e-4
    passed &= abs(half.bulk_edge / 2.140505 - 1) < 1e-6
    passed &= abs(full.eigenvalue / 2.167022 - 1) < 1e-6
    passed &= abs(full.label_alignment - 0.1352) < 5e-5
    passed &= math.isclose(half.critical_step_size, 2 * full.critical_step_size)
    return Finding(
        bool(passed),
        f"critical step size {half.critical_step_size:.4f} for half the loss and "
        f"{full.critical_step_size:.4f} for all of it: a step of 2 makes an outlier only for the "
        "latter",
        {name: kernel.to_dict() for name, kernel in kernels.items()},
    )


@evidence(
    "ba-kernel-threshold", "certified", "thresholds and edges, two models", arguments={"count": 2}
)
@evidence("ba-kernel-threshold", "certified", "thresholds and edges, 13 models", slow=True)
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
    return agreement(values, PROVEN_DIGITS, "thresholds, edges and outliers", proven=PROVEN)


_SQUARE = sp.Symbol("x", positive=True)
_ALIGNMENT = {
    "square": (1 + eq.place) * (eq.beta + eq.place) / eq.place,
    "overlap": 1 - (eq.beta + eq.place) / (eq.place * (eq.place + 1)),
    "slope": 1
    + eq.beta / eq.alpha * (1 / eq.place + eq.kappa / (eq.beta + eq.place))
    - eq.beta / eq.alpha * (_SQUARE + eq.kappa)
    * (1 / eq.place**2 + eq.kappa / (eq.beta + eq.place) ** 2) / (1 - eq.beta / eq.place**2),
}  # fmt: skip

declare_claim(
    "ba-conjugate-kernel",
    title="Outlier of the trained network's kernel, and its alignment with the labels",
    statement=(
        r"For the true features $\Phi = \sigma(XW_1)/\sqrt N$ with odd $\sigma$, as for "
        r"linearised ones (derived here), $s_1(\Phi)^2 \to \zeta(\theta_1^2)$ if $\theta_1^2 "
        r"> T_c$, and with $T = \theta_1^2$, $x = «square»$, $$\langle u_1, y/|y|\rangle^2 \to "
        r"\frac{\mu_1^{*2}}{Y}\,\frac{x}{x+\kappa}\,\frac{\theta_2^2}{\theta_1^2}"
        r"\Big[«overlap»\Big]\psi',\quad \psi' = «slope»$$ for fresh labels $y$; else the "
        r"alignment vanishes."
    ),
    formulas=_ALIGNMENT,
    source=f"{_BA}, section 4, a conjecture for networks",
    status=Status.CONJECTURE,
)


@evidence("ba-conjugate-kernel", "exact", "the alignment as products of overlaps")
def alignment_as_stated() -> Finding:
    """The stated alignment against the derived one; its last factor has the sign of ζ'."""
    square, overlap, slope = (_ALIGNMENT[name] for name in ("square", "overlap", "slope"))
    slope = slope.subs(_SQUARE, square)
    stated = (
        teacher_linear**2 / label_square() * square / (square + eq.kappa)
        * aligned_square() / spike_square() * overlap * slope
    )  # fmt: skip
    results = {
        "ψ' as stated": cancels(eq.slope_sign() - slope),
        "ψ' is that of ζ": cancels(
            eq.beta / eq.alpha * eq.zeta().diff(eq.place) / eq.population_place().diff(eq.place)
            - slope
        ),
        "the alignment as stated": cancels(eq.label_alignment() - stated),
    }
    return identities_hold(results, "the alignment of the outlier with the labels")


evidence("ba-conjugate-kernel", "quadrature", "the linearised model by integrals")(reference_values)


@evidence(
    "ba-conjugate-kernel",
    "certified",
    "of linearised features: one outlier and its overlap",
    arguments={"names": ("12",)},
)
@evidence(
    "ba-conjugate-kernel",
    "certified",
    "the same for all seven models that have one",
    slow=True,
    arguments={"names": ("2", "5", "7", "8", "11", "12", "13")},
)
def proven_outliers(names: tuple[str, ...]) -> Finding:
    """Outliers and overlaps with the labels of kernels that are beyond their thresholds."""
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
    result = agreement(
        values, PROVEN_DIGITS, "outliers and overlaps with the labels", proven=PROVEN
    )
    says = "every θ1² is above its T_c" if beyond else "a θ1² is not proven to be above its T_c"
    return Finding(result.passed and beyond, f"{result.summary}; {says}", result.details)


CASES = (
    ("softplus", "tanh", 0.0, 1.5, 1.25, 4.0),
    ("tanh", "tanh", 0.0, 1.5, 1.25, 4.0),
    ("erf", "relu", 0.25, 3.0, 1.5, 6.0),
    ("erf", "relu", 0.25, 3.0, 0.5, 4.0),
    ("softplus", "tanh", 0.0, 4.0, 1.25, 6.0),
)
"""Student, teacher, noise variance, α, β, step size."""


@evidence(
    "ba-conjugate-kernel",
    "simulation",
    "five networks and linearised features, from two sizes",
    slow=True,
)
def outliers(dimension: int = 80, networks: int = 40, seed: int = 29) -> Finding:
    """Largest singular values and label alignments of trained networks and linearised features.

    Parameters
    ----------
    dimension : int
        The smaller of two; the other one is twice as large.
    """
    result: list[Comparison] = []
    for index, case in enumerate(CASES):
        model = _model(case)
        theory = model.conjugate_kernel()
        small, large = (
            _measured(model, theory, size, networks, seed + 1000 * index + size)
            for size in (dimension, 2 * dimension)
        )
        name = f"{case[0]} on {case[1]}, alpha = {case[3]:g}, beta = {case[4]:g}"
        result += [
            replace(
                extrapolated(
                    "", limit, ((1, 0), (2, 0)), (small[quantity], large[quantity]), order
                ),
                quantity=f"{quantity}, {name}",
            )
            for quantity, (limit, order) in {
                "s_1 of network": (theory.singular_value, 0.5),
                "s_1 of linearised": (theory.singular_value, 0.5),
                "label alignment of network": (theory.label_alignment, 0.5),
                "label alignment of linearised": (theory.label_alignment, 0.5),
                # By power counting expected kernels differ by the order η⁴/N.
                "s_1 of network minus linearised": (0.0, 1.0),
                "linearised s_1 minus that of its own spike": (0.0, 1.0),
            }.items()
        ]
    passed = sum(c.passed for c in result)
    worst = max(result, key=lambda c: abs(c.mean - c.theory) / c.standard_error)
    return replace(
        finding(result, "outliers"),
        summary=f"{passed} of {len(result)} outliers, label alignments and differences, "
        f"extrapolated from d = {dimension} and {2 * dimension}, within 4 standard errors; "
        f"farthest: {worst.quantity}: {worst.mean:.5g} ± {worst.standard_error:.2g}, theory "
        f"{worst.theory:.5g}",
    )


def _model(case: tuple[Any, ...]) -> OneGradientStep:
    student, teacher, noise, alpha, beta, step = case
    return OneGradientStep(
        student, teacher, alpha=alpha, beta=beta, step_size=step, noise_variance=noise, centre=True
    )


def _measured(
    model: OneGradientStep, theory: ConjugateKernel, dimension: int, networks: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    """Return what is compared, for each network."""
    simulated = model.simulate_spectra(dimension, seeds=networks, seed=seed, progress=False)
    simulated = simulated.sel(step=1)
    network, linearised = (
        np.sqrt(simulated[f"{prefix}_eigenvalues"].isel(sample=0).to_numpy())
        for prefix in ("kernel", "linearised")
    )
    layer = simulated["singular_values"].isel(mode=0).to_numpy()
    return {
        "s_1 of network": network,
        "s_1 of linearised": linearised,
        "label alignment of network": simulated["label_alignment"].to_numpy(),
        "label alignment of linearised": simulated["linearised_label_alignment"].to_numpy(),
        "s_1 of network minus linearised": network - linearised,
        "linearised s_1 minus that of its own spike": linearised - predicted(theory, layer),
    }


def predicted(kernel: ConjugateKernel, layer: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest singular value of Φ from that of the first layer, by ζ."""
    curve, beta = kernel._law, kernel.model.beta
    middle = layer**2 - 1 - beta
    lengths = (middle + np.sqrt(np.maximum(middle**2 - 4 * beta, 0))) / 2
    lengths = np.maximum(lengths, kernel.threshold)
    values = [float(curve.zeta(curve.context.mpf(float(t)))) for t in lengths]
    return np.sqrt(values)


declare_claim(
    "ba-expected-kernel",
    title="The expected kernel of an odd student is that of linearised features",
    statement=(
        r"$\Sigma_\Phi = \mathbb{E}_x\,\sigma(W_1^\top x)\sigma(x^\top W_1)$ satisfies "
        r"$\|\Sigma_\Phi - (\mu_1^2W_1^\top W_1 + \mu_{>1}^2)\| \to 0$ for odd $\sigma$ at "
        r"fixed step size. For others an eigenvalue $\frac{c_2^2}{2}\beta$ along $(1, \dots, "
        r"1)$ remains, $c_2 = \mathbb{E}\,\sigma\,\mathrm{He}_2$. That the difference is of "
        r"order $\eta^4/N$ for larger steps is power counting."
    ),
    source=f"{_BA}, section 4, for odd students; the eigenvalue of others is derived here",
    status=Status.THEOREM,
)

_dimension = sp.Symbol("d", positive=True)


@evidence(
    "ba-expected-kernel", "exact", "entries of kernels of five students, to the second degree"
)
def entries() -> Finding:
    """Expand entries of expected kernels in the inner product c of two neurons of length one.

    The constant is the squared mean, the linear term that of the linearised features, and the
    quadratic one makes the eigenvalue of students that are not odd.
    """
    results: dict[str, bool] = {}
    for name in ("erf", "sin(z)", "z**3 - 3*z", "relu", "z**2 + z"):
        sigma = activation(name)
        kernel = pair_kernel(sigma, sigma)
        assert kernel is not None
        entry = kernel.subs({p: 1, q: 1})
        mean, first, second = (hermite_coefficient(sigma, k) for k in range(3))
        at_zero = [entry.diff(c, k).subs(c, 0) for k in range(3)]
        # Neurons at initialisation: d products of entries of variance 1/d each.
        width, inner = eq.beta * _dimension, _dimension / _dimension**2
        spike = eq.expected_spike().subs(eq.second, second)
        results |= {
            f"{name}: squared mean": cancels(at_zero[0] - mean**2),
            f"{name}: linear term": cancels(at_zero[1] - first**2),
            f"{name}: N times the mean of the quadratic term": cancels(
                width * inner * at_zero[2] / 2 - spike
            ),
        }
        if name in ("erf", "sin(z)", "z**3 - 3*z"):
            results[f"{name}: no quadratic term"] = cancels(at_zero[2])
    return identities_hold(results, "terms of expected kernels in the inner product of two neurons")


@evidence("ba-expected-kernel", "simulation", "exact kernels of erf and ReLU at three sizes")
def expected(dimensions: Sequence[int] = (100, 200, 400), seed: int = 1) -> Finding:
    """Expected kernels by closed forms: erf loses its difference, centred ReLU keeps a spike.

    Parameters
    ----------
    dimensions : sequence of int
        Ascending.
    """
    odd = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2)
    other = OneGradientStep("relu", "erf", alpha=2, beta=1.5, step_size=2, centre=True)
    norms = {"erf": [], "relu": []}  # type: dict[str, list[float]]
    along: list[float] = []
    for dimension in dimensions:
        for model in (odd, other):
            training = Training(one_step_network(model, dimension), seed)
            training.step()
            weights = training.layer.rows.T
            norms[model.student].append(difference_norm(model, weights))
        moments = other.student_moments
        rest = expected_matrix(other, weights) - moments.linear**2 * weights.T @ weights
        rest -= moments.residual * np.eye(len(rest))
        along.append(float(rest.mean() * len(rest)))
    spike = other.conjugate_kernel().expected.spike
    falling = all(np.diff(norms["erf"]) < 0) and norms["erf"][-1] < norms["erf"][0] * 0.7
    selected = abs(along[-1] / spike - 1) < 0.05 and norms["relu"][-1] > spike
    return Finding(
        bool(falling and selected),
        f"difference of the expected kernel at d = {', '.join(map(str, dimensions))}: erf "
        + ", ".join(f"{x:.3f}" for x in norms["erf"])
        + f"; centred ReLU has {along[-1]:.4f} along (1, …, 1), expected {spike:.4f}",
        {"norms": norms, "along_ones": along, "expected_along_ones": spike},
    )
