"""Evidence for the claims about spectra: conditions after elimination, values, finite matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy as sp

from ....symbolic.activations import activation
from ...claims import Finding
from .. import free_energy as fe
from ..identities import equal, finding
from ..model import SpikedRandomFeatures
from .equations import spectrum_equations

# Student, r, c, β, α, and the shift of the top eigenvalue to three or four digits.
_CASES = (
    ("tanh", 2.0, 1.1, 1.0, 1.5, 0.411),
    ("erf", 1.0, 1.1, 0.5, 3.0, 2.651),
    ("sin", 1.5, 1.3, 1.5, 0.7, 0.485),
)
# Transforms to 15 digits, by the trapezoidal rule and Newton's method.
_VALUES = (
    ("erf", 1.2, 1.1, 1.0, 2.0, -0.1 + 0j, 3.04646930228347 + 0j),
    ("erf", 1.2, 1.1, 1.0, 2.0, 0.5 + 0.01j, -1.21276415251883 + 1.51855377763914j),
    ("tanh", 2.0, 1.1, 1.0, 1.5, 1 + 0.001j, -1.16391646186161 + 0.536542200354152j),
)
_DIMENSION, _MATRICES = 300, 2


def conditions() -> Finding:
    """Check the derived conditions of outliers against their form after elimination by hand."""
    equations = spectrum_equations(activation("tanh"))
    mean, kappa = fe.average, fe.kappa
    whole = 1 + fe.mu1**2 * fe.V1 + fe.mu2_squared * fe.V2
    mu00 = mean(fe.mu0**2 / whole)
    mu01 = mean(kappa * fe.mu0 * fe.mu1 / whole)
    mu11 = mean(kappa**2 * fe.mu1**2 / whole)
    second = 1 + fe.alpha * fe.c * fe.V2 * (mu11 - mu01**2 / mu00)
    matrix = equations.outlier_matrix
    top = equations.top_eigenvalue()
    assert top is not None
    square = mean(fe.mu0**2)
    parts = (fe.c * fe.mu1**2, fe.mu2_squared)
    shift = sum(mean(fe.mu0**2 * t) for t in parts) / square
    shift += fe.alpha / fe.beta * sum(mean(t) for t in parts)
    shift += fe.alpha * fe.c * mean(kappa * fe.mu0 * fe.mu1) ** 2 / square
    results = {
        "the singularity of the block of m and ϑ at 1/p = 0": equal(
            equations.second_outlier, second
        ),
        "1/p enters the entry of m alone": matrix.diff(fe.inverse_width)
        == sp.Matrix([[1 / fe.V2, 0], [0, 0]]),
        "largest eigenvalue, term of order p": equal(top[0], fe.alpha / fe.beta * square),
        "largest eigenvalue, term of order 1": equal(top[1], shift),
    }
    return finding(results, "conditions of outliers agree with their form after elimination")


def values() -> Finding:
    """Compare transforms, masses and shifts with their reference values."""
    deviations: dict[str, float] = {}
    for student, r, c, beta, alpha, z, expected in _VALUES:
        found = _features(student, r, c, beta).spectrum(alpha=alpha).stieltjes(z)
        deviations[f"{student}, z = {z}"] = abs(found / expected - 1)
    masses, shifts = {}, {}
    for student, r, c, beta, alpha, shift in _CASES:
        spectrum = _features(student, r, c, beta).spectrum(alpha=alpha)
        masses[student] = spectrum.mass_error
        shifts[student] = abs(spectrum.top_expansion[1] - shift)
    worst, lost = max(deviations.values()), max(masses.values())
    passed = worst < 1e-13 and lost < 1e-10 and max(shifts.values()) < 5e-4
    return Finding(
        passed,
        f"transforms agree to {worst:.1e}, total masses are 1 to {lost:.1e}, "
        "shifts agree in all digits",
        {"transforms": deviations, "masses": masses, "shifts": shifts},
    )


def histograms() -> Finding:
    """Compare the density with the eigenvalues of simulated features."""
    distances = {}
    for student, r, c, beta, alpha, _ in _CASES:
        spectrum = _features(student, r, c, beta).spectrum(alpha=alpha)
        simulated = spectrum.simulate(_DIMENSION, seeds=_MATRICES, seed=3, progress=False)
        distances[student] = simulated.distance(spectrum)
    worst = max(distances.values())
    return Finding(
        # Eigenvalues are rigid: what remains is of the order of 1/d.
        worst < 6 / _DIMENSION,
        f"largest distance of the distribution functions at d = {_DIMENSION}: {worst:.4f}",
        {"distances": distances},
    )


def top_eigenvalues() -> Finding:
    """Measure the shift of the largest eigenvalue over the sum of μ0² of the samples."""
    results: dict[str, Any] = {}
    passed = True
    for student, r, c, beta, alpha, _ in _CASES:
        spectrum = _features(student, r, c, beta).spectrum(alpha=alpha)
        simulated = spectrum.simulate(200, seeds=24, seed=5, progress=False)
        tables = [spectrum._functions.tabulate(k)["mu_0"] for k in simulated.projections]
        sums = np.array([np.sum(t**2) for t in tables])
        measured = simulated.eigenvalues[:, -1] - sums
        mean = float(measured.mean())
        error = float(measured.std(ddof=1) / math.sqrt(len(measured)))
        expected = spectrum.top_expansion[1]
        results[student] = {"measured": mean, "standard error": error, "expected": expected}
        passed &= abs(mean - expected) < 4 * error
    return Finding(
        passed,
        "; ".join(
            f"{k}: {v['measured']:.2f}({v['standard error']:.2f}) for {v['expected']:.3f}"
            for k, v in results.items()
        ),
        results,
    )


def second_outlier() -> Finding:
    """Compare the second outlier of cos with simulated matrices."""
    spectrum = _features("cos", 0.5, 1.0, 6.0).spectrum(alpha=100.0)
    (expected,) = spectrum.outliers
    simulated = spectrum.simulate(80, seeds=8, seed=1, progress=False)
    found = simulated.eigenvalues[:, -2]
    mean, error = float(found.mean()), float(found.std(ddof=1) / math.sqrt(len(found)))
    beyond = expected > spectrum.edges[-1, 1]
    return Finding(
        beyond and abs(mean - expected) < 4 * error,
        f"{mean:.2f}({error:.2f}) for {expected:.4f}, edge of the bulk {spectrum.edges[-1, 1]:.4f}",
        {"measured": mean, "standard error": error, "expected": expected},
    )


def _features(student: str, r: float, c: float, beta: float) -> SpikedRandomFeatures:
    return SpikedRandomFeatures.from_parameters(
        student, "erf", spike_strength=r, bulk_variance=c, alignment=0.9, beta=beta
    )
