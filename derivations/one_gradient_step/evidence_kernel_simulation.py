r"""Evidence by simulation for the spectrum of the conjugate kernel; seeds are fixed.

Outliers are compared with their limits after extrapolation from two dimensions: deviations of order
:math:`d^{-1/2}`, from what the gradient has beside its spike, then cancel without being known. For
linearised features there is a sharper comparison, network by network: with ζ at the length T that
belongs to the largest singular value of the same first layer. This difference, and that of network
and linearised features of the same first layer, are extrapolated in 1/d.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numeric.one_step_network import first_layers
from ..claims import Finding
from ..comparison import Comparison, finding
from .kernel_spectrum.expected_matrix import difference_norm, expected_matrix
from .kernel_spectrum.spectrum import ConjugateKernel
from .model import OneGradientStep
from .simulated import one_step_setup

CASES = (
    ("softplus", "tanh", 0.0, 1.5, 1.25, 4.0),
    ("tanh", "tanh", 0.0, 1.5, 1.25, 4.0),
    ("erf", "relu", 0.25, 3.0, 1.5, 6.0),
    ("erf", "relu", 0.25, 3.0, 0.5, 4.0),
    ("softplus", "tanh", 0.0, 4.0, 1.25, 6.0),
)
"""Student, teacher, noise variance, α, β, step size."""


def _model(case: tuple[Any, ...]) -> OneGradientStep:
    student, teacher, noise, alpha, beta, step = case
    return OneGradientStep(
        student, teacher, alpha=alpha, beta=beta, step_size=step, noise_variance=noise, centre=True
    )


def outliers(dimension: int = 80, networks: int = 40, seed: int = 29) -> Finding:
    """Largest singular values and label alignments of trained networks and linearised features.

    Parameters
    ----------
    dimension : int
        The smaller of two; the other one is twice as large.
    networks, seed : int
    """
    found: list[Comparison] = []
    for index, case in enumerate(CASES):
        model = _model(case)
        theory = model.conjugate_kernel()
        small, large = (
            _measured(model, theory, size, networks, seed + 1000 * index + size)
            for size in (dimension, 2 * dimension)
        )
        name = f"{case[0]} on {case[1]}, alpha = {case[3]:g}, beta = {case[4]:g}"
        found += [
            extrapolated(f"{quantity}, {name}", limit, (small[quantity], large[quantity]), order)
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
    passed = sum(c.passed for c in found)
    worst = max(found, key=lambda c: abs(c.mean - c.theory) / c.standard_error)
    return replace(
        finding(found, "outliers"),
        summary=f"{passed} of {len(found)} outliers, label alignments and differences, "
        f"extrapolated from d = {dimension} and {2 * dimension}, within 4 standard errors; "
        f"farthest: {worst.quantity}: {worst.mean:.5g} ± {worst.standard_error:.2g}, theory "
        f"{worst.theory:.5g}",
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


def extrapolated(
    quantity: str,
    theory: float,
    values: tuple[NDArray[np.float64], NDArray[np.float64]],
    order: float,
) -> Comparison:
    """Compare with a limit what is left if a deviation c/d^order, of any c, is eliminated.

    Parameters
    ----------
    quantity : str
    theory : float
    values : pair of arrays
        Independent values at a dimension, and at twice that dimension.
    order : float
    """
    weights = np.array([-1, 2**order]) / (2**order - 1)
    means = np.array([x.mean() for x in values])
    errors = np.array([x.std(ddof=1) / math.sqrt(len(x)) for x in values])
    return Comparison(
        quantity, theory, float(weights @ means), float(np.hypot(*(weights * errors)))
    )


def predicted(kernel: ConjugateKernel, layer: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest singular value of Φ from that of the first layer, by ζ."""
    curve, beta = kernel._curve, kernel.model.beta
    middle = layer**2 - 1 - beta
    lengths = (middle + np.sqrt(np.maximum(middle**2 - 4 * beta, 0))) / 2
    lengths = np.maximum(lengths, kernel.threshold)
    values = [float(curve.zeta(curve.context.mpf(float(t)))) for t in lengths]
    return np.sqrt(values)


def histograms(dimension: int = 160, networks: int = 2, seed: int = 7) -> Finding:
    """Compare distribution functions and resolvents of kernels with theory, without a step too.

    Parameters
    ----------
    dimension, networks, seed : int
    """
    details: dict[str, float] = {}
    points = np.array([-0.01, 0.3 + 0.3j, 1 + 0.5j, 2 + 0.2j, -1 + 1j])
    for student, alpha, beta in (("tanh", 4.0, 2.0), ("softplus", 1.5, 1.25), ("erf", 0.7, 1.2)):
        model = OneGradientStep(student, "tanh", alpha=alpha, beta=beta, step_size=1, centre=True)
        theory = model.conjugate_kernel(trained=False)
        simulated = model.simulate_spectra(
            dimension, seeds=networks, seed=seed, matrices=("kernel",), progress=False
        )
        for step in (0, 1):
            values = np.sort(simulated["kernel_eigenvalues"].sel(step=step).to_numpy(), axis=None)
            # Zeros of a matrix without full rank differ from zero by rounding.
            values = np.where(values < 1e-10 * values[-1], 0, values)
            below = theory.cumulative_at(values)
            steps = np.arange(len(values) + 1) / len(values)
            positive = values > 0
            gaps = np.maximum(np.abs(steps[1:] - below), np.abs(steps[:-1] - below))[positive]
            details[f"{student}, {step} steps, distribution"] = float(gaps.max())
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


def expected(dimensions: Sequence[int] = (100, 200, 400), seed: int = 1) -> Finding:
    """Expected kernels by closed forms: erf loses its difference, centred ReLU keeps a spike.

    Parameters
    ----------
    dimensions : sequence of int
        Ascending.
    seed : int
    """
    odd = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2)
    other = OneGradientStep("relu", "erf", alpha=2, beta=1.5, step_size=2, centre=True)
    norms = {"erf": [], "relu": []}  # type: dict[str, list[float]]
    along: list[float] = []
    for dimension in dimensions:
        for model in (odd, other):
            weights = first_layers(one_step_setup(model, dimension), seed).weights[1]
            norms[model.student].append(difference_norm(model, weights))
        moments = other.student_moments
        rest = expected_matrix(other, weights) - moments.linear**2 * weights.T @ weights
        rest -= moments.residual * np.eye(len(rest))
        along.append(float(rest.mean() * len(rest)))
    spike = other.conjugate_kernel().expected.spike
    falling = all(np.diff(norms["erf"]) < 0) and norms["erf"][-1] < norms["erf"][0] * 0.7
    kept = abs(along[-1] / spike - 1) < 0.05 and norms["relu"][-1] > spike
    return Finding(
        bool(falling and kept),
        f"difference of the expected kernel at d = {', '.join(map(str, dimensions))}: erf "
        + ", ".join(f"{x:.3f}" for x in norms["erf"])
        + f"; centred ReLU has {along[-1]:.4f} along (1, …, 1), expected {spike:.4f}",
        {"norms": norms, "along_ones": along, "expected_along_ones": spike},
    )
