"""Exact evidence and quadrature for the spectrum of the conjugate kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from scipy.optimize import brentq

from ...numeric.cache import FileCache
from ...runtime.generated import defined
from ...runtime.precision import local_context
from ...symbolic.activations import activation
from ...symbolic.hermite import hermite_coefficient
from ..claims import Finding
from ..spiked_random_features.identities import cancels, finding
from .kernel_spectrum import equations as eq
from .kernel_spectrum.curve import KernelCurve
from .kernel_spectrum.derivation import spectrum_sources
from .model import OneGradientStep
from .pair_kernels import c, p, pair_kernel, q
from .reference import reference_cases

Real = NDArray[np.float64]

_dimension = sp.Symbol("d", positive=True)
_NODES = 6000
_ROOT_DIGITS = 40
_TABLE = {
    "threshold": "threshold",
    "bulk_edge": "bulk_edge",
    "kernel_eigenvalue": "eigenvalue",
    "label_alignment": "label_alignment",
}


# ------------------------------------------------------------------ exact


def algebra() -> Finding:
    """Check closed forms against each other, and the limit of pure noise."""
    results = {name: cancels(value) for name, value in eq.identities().items()}
    low, high = eq.noise_edges()
    root = sp.sqrt(eq.alpha / eq.beta)
    results["edges of pure noise are those of Marchenko and Pastur"] = bool(
        sp.expand(low - (1 - root) ** 2) == 0 and sp.expand(high - (1 + root) ** 2) == 0
    )
    # The density of a population with square-root edges makes ζ' negative at √β.
    pole = sp.limit(eq.slope_sign().subs({eq.kappa: 1, eq.alpha: 2, eq.beta: 4}), eq.place, 2, "+")
    results["the slope is negative at the edge of the first layer"] = pole == -sp.oo
    return finding(results, "closed forms of the spectrum agree with each other")


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
    return finding(results, "terms of expected kernels in the inner product of two neurons")


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


# ------------------------------------------------------------------ quadrature


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
    found = {
        "threshold": b / ((critical - v) * left * right),
        "bulk_edge": psi(critical) / ratio,
    }
    found |= {"kernel_eigenvalue": found["bulk_edge"], "label_alignment": 0.0}
    strength = spike.theta1**2
    if strength > found["threshold"]:

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
        found["kernel_eigenvalue"] = psi(place) / ratio
        explained = teacher.linear**2 / model.label_square * x * b / place
        found["label_alignment"] = explained * spike.alignment**2 * overlap * psi_slope(place)
    return found


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


def root_selection(count: int = 400, seed: int = 5) -> Finding:
    """Solve random spectra at random points: one root only, which satisfies the integral equation.

    α and β are from 1e-3 to 1e3, κ from 1e-6 to 1e6, points from 1e-6 to 1 of the largest
    eigenvalue in size. Roots are counted in 40-digit arithmetic, because signs of imaginary parts
    that are a tiny share of a root are rounding in floats; the equation is checked for the root
    that the float solver takes.

    Parameters
    ----------
    count, seed : int
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
