"""Exact evidence and quadrature for the gradient and the spike of the first layer."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import sympy as sp

from ...numeric.pair_gradients import pair_averages
from ...symbolic.activations import activation
from ...symbolic.random_matrix import MarchenkoPasturAverage
from ...symbolic.rank_one_perturbation import (
    left_resolvent,
    marchenko_pastur_equations,
    outlier_equation,
    perturbed_resolvent,
    rank_one_outlier,
    right_resolvent,
    secular_determinant,
    solve_for_outlier,
    square,
)
from ..claims import Finding
from ..spiked_random_features.identities import equal
from ..spiked_random_features.identities import finding as identities_finding
from .model import OneGradientStep
from .moments import exact_moments
from .pair_kernels import c as inner_product
from .pair_kernels import p, pair_kernel, q
from .population_gradient import QUADRATURE, population_gradient
from .reference import reference_cases
from .simulated import network_functions
from .spike_sizes import aligned_square, orthogonal_square, spike_square
from .symbols import alpha0, linear, noise, step_size, teacher_linear, teacher_residual
from .weight_spike_theory import identities

PAIRS = (("erf", "erf"), ("tanh", "relu"), ("softplus", "tanh"), ("relu", "sin"))
_DIGITS = 25
_TABLE = {
    "spike": "theta1",
    "aligned_spike": "theta2",
    "singular_value": "singular_value",
    "teacher_alignment": "alignment_teacher",
    "readout_alignment": "alignment_readout",
}
SLIDE = {"theta1": 0.7418, "critical_step_size": 3.206}
SLIDE_FULL = {"theta1": 1.4837, "singular_value": 2.4718, "alignment_teacher": 0.2692}


# ------------------------------------------------------------------ the gradient


def gradient_limits() -> Finding:
    """Limits of A, B and C in the moments of student and teacher, which are centred."""
    results: dict[str, bool] = {}
    for student, teacher in PAIRS:
        model = OneGradientStep(student, teacher, alpha=2, centre=True)
        parts = model.gradient()
        mine, other = exact_moments(student), exact_moments(teacher)
        rule = {
            linear: mine["linear"],
            teacher_linear: other["linear"],
            teacher_residual: other["residual"],
        }
        labels = other["linear"] ** 2 + other["residual"] + noise
        spike = (spike_square() / step_size**2).subs(rule)
        name = f"{student} on {teacher}"
        results |= {
            f"{name}: N |A|² = θ1²/η²": equal(parts.spike**2, spike),
            f"{name}: θ1² = θ2² + the part across the teacher": equal(
                spike, ((aligned_square() + orthogonal_square()) / step_size**2).subs(rule)
            ),
            f"{name}: N |B|_F² = E[(σ' - μ1)²] Y/α0": equal(
                parts.bulk**2, mine["slope_variance"] * labels / alpha0
            ),
            f"{name}: N² |C|² = μ1² (μ1² (1 + 1/α0) + μ2²/α0)": equal(
                parts.output**2,
                mine["linear"] ** 2
                * (mine["linear"] ** 2 * (1 + 1 / alpha0) + mine["residual"] / alpha0),
            ),
            f"{name}: with infinitely many samples A is μ1 μ1* along the teacher": equal(
                parts.population_spike[0], mine["linear"] * other["linear"]
            ),
        }
    return identities_finding(results, "limits of the three parts of the gradient")


def population_kernels() -> Finding:
    """The arcsine law, and closed forms of pair gradients against quadrature in two dimensions."""
    u, w = 1 + 2 * p, 1 + 2 * q
    arcsine = 2 / sp.pi * sp.asin(2 * inner_product / sp.sqrt(u * w))
    model = OneGradientStep("erf", "erf", alpha=2)
    erf = activation("erf")
    kernel = pair_kernel(erf, erf)
    law = kernel is not None and equal(kernel, arcsine)
    worst, compared = 0.0, 0
    generator = np.random.default_rng(5)
    weights = generator.standard_normal((7, 5)) * np.array([0.2, 0.4, 0.5, 0.3, 0.6])
    readout = generator.standard_normal(5)
    for student, teacher in (("erf", "erf"), ("sin", "sin"), ("z + z**3/6", "z**2 + z")):
        model = OneGradientStep(student, teacher, alpha=2, centre=True)
        closed = population_gradient(model, weights, readout, None)
        slow = _by_quadrature(model, weights, readout)
        size = float(np.abs(closed.gradient).max())
        worst = max(worst, float(np.abs(closed.gradient - slow).max()) / size)
        compared += closed.gradient.size if closed.rests_on != QUADRATURE else 0
    return Finding(
        bool(law) and worst < 1e-9 and compared == 3 * weights.size,
        f"{compared} entries agree with quadrature, to {worst:.1e} of the largest; the kernel of "
        "erf is the arcsine law",
        {"largest_difference": worst, "entries": compared, "arcsine_law": bool(law)},
    )


def _by_quadrature(model: OneGradientStep, weights: np.ndarray, readout: np.ndarray) -> np.ndarray:
    """The same gradient without closed forms."""
    student, slope, teacher = network_functions(model)
    width = weights.shape[1]
    squares = np.einsum("ij,ij->j", weights, weights)
    along, own = pair_averages(teacher, slope, np.ones(width), squares, weights[0])
    labels = weights * own
    labels[0] += along
    first, second = pair_averages(
        student, slope, squares[:, None], squares[None, :], weights.T @ weights
    )
    output = weights @ (readout[:, None] * first) + weights * (readout @ second)
    return np.asarray((labels - output / math.sqrt(width)) * readout / math.sqrt(width))


# ------------------------------------------------------------------ the spike


def spike_identities() -> Finding:
    """The secular equation, its solution, the residues and the forms that are computed with."""
    strength, beta, left, right = sp.symbols("T beta g gtilde", positive=True)
    cross, z = sp.symbols("c z", positive=True)
    determinant = secular_determinant(strength, left, right, cross)
    results = {
        "secular determinant": equal(
            determinant, (1 - sp.sqrt(strength) * cross) ** 2 - strength * left * right
        ),
        "resolvent in the direction of the spike": equal(
            perturbed_resolvent(strength, left, right, sp.S.Zero)[0, 0],
            left / (1 - strength * left * right),
        ),
        "in x = z²": equal(
            secular_determinant(strength, z * left_resolvent, z * right_resolvent, sp.S.Zero).subs(
                z, sp.sqrt(square)
            ),
            -outlier_equation(strength),
        ),
    }
    at = solve_for_outlier(strength, beta)
    for index, equation in enumerate(
        (*marchenko_pastur_equations(beta), outlier_equation(strength))
    ):
        results[f"equation {index + 1} of the outlier"] = sp.cancel(equation.subs(at)) == 0
    found = rank_one_outlier(strength, beta)
    total = beta + strength
    results |= {
        "squared singular value": equal(found.square, (1 + strength) * total / strength),
        "left overlap": equal(found.left_overlap, 1 - total / (strength * (strength + 1))),
        "right overlap": equal(found.right_overlap, 1 - beta * (1 + strength) / (strength * total)),
        "both overlaps vanish at the threshold": all(
            sp.simplify(overlap.subs(strength, found.threshold)) == 0
            for overlap in (found.left_overlap, found.right_overlap)
        ),
    }
    results |= {
        f"as computed: {name}": sp.simplify(value) == 0 for name, value in identities().items()
    }
    return identities_finding(results, "outlier of a matrix with a spike")


def reference_spikes() -> Finding:
    """Thirteen networks: 16 published digits, and the secular equation by quadrature."""
    ctx = mpmath.mp.clone()
    ctx.dps = _DIGITS + 10
    table = equation = ctx.zero
    outliers = 0
    eigenvalue = sp.Symbol("X", positive=True)
    for case in reference_cases():
        model = case.build()
        found = model.weight_spike(digits=_DIGITS)
        for key, name in _TABLE.items():
            given, value = ctx.mpf(case.values[key]), ctx.mpf(str(getattr(found, name)))
            table = max(table, abs(value - given) / max(abs(given), ctx.mpf(1) / 10))
        if not found.supercritical:
            continue
        outliers += 1
        x = sp.Float(str(found.singular_value), ctx.dps) ** 2
        beta = sp.Rational(repr(model.beta))
        # X is an eigenvalue of WᵀW; that of W Wᵀ has other zeros only.
        right = MarchenkoPasturAverage(1 / (x - eigenvalue), eigenvalue, beta).evalf(ctx.dps)
        left = beta * right + (1 - beta) / x
        strength = sp.Float(str(found.theta1), ctx.dps) ** 2
        equation = max(equation, abs(ctx.mpf(str(strength * x * left * right - 1))))
    passed = table < ctx.mpf(10) ** -14 and equation < ctx.mpf(10) ** -(_DIGITS - 5)
    return Finding(
        bool(passed and outliers),
        f"13 networks agree to {ctx.nstr(table, 2)} with 16 digits; {outliers} outliers solve the "
        f"secular equation, its resolvents by quadrature, to {ctx.nstr(equation, 2)}",
        {"largest_difference": float(table), "secular_equation": float(equation)},
    )


def published_wording() -> Finding:
    r"""The factor of the loss and a raw teacher: what the numbers of the slide depend on.

    tanh on relu, ψ1 = 4, ψ2 = 2, η = 2. A mean of the teacher adds its square to E y², as noise
    would. The typeset formula for θ1 has an outlier only for the gradient of (1/n)Σ(f - y)².
    """
    mean_square = 1 / (2 * math.pi)
    half = OneGradientStep(
        "tanh", "relu", alpha=4, beta=2, step_size=2, noise_variance=mean_square, centre=True
    )
    full = replace(half, loss="full")
    one, two = half.weight_spike(), full.weight_spike()
    results = {
        "half the loss: no outlier": not one.supercritical,
        "the whole loss: an outlier": two.supercritical,
        "critical step size halved": math.isclose(
            one.critical_step_size, 2 * two.critical_step_size, rel_tol=1e-15
        ),
        "the whole loss is half of it with twice the step": (
            replace(half, step_size=4.0).weight_spike().singular_value == two.singular_value
        ),
        "noise lengthens the spike": one.theta1
        > replace(half, noise_variance=0.0).weight_spike().theta1,
    }
    for found, given in ((one, SLIDE), (two, SLIDE_FULL)):
        for name, value in given.items():
            # The last digit given is rounded.
            unit = 10.0 ** -len(str(value).partition(".")[2])
            results[f"{name} = {value}"] = abs(getattr(found, name) - value) < 0.51 * unit
    return identities_finding(results, "the slide's example and the conventions of its figures")
