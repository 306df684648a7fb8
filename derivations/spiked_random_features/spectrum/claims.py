"""Claims about spectra: conditions after elimination, values, finite matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy as sp

from ....ball_library import require_flint
from ....symbolic.expressions.activations import activation
from ...certificates.agreement import agreement, proof_of
from ...claims import Finding, Status, declare_claim, evidence
from ...identities import equal, identities_hold
from .. import physics as fe
from ..model import SpikedRandomFeatures
from ..published import VARIANCE, written_out
from .law import spectrum_equations

declare_claim(
    "feature-spectrum",
    title="Bulk of the spectrum of the feature covariance",
    statement=(
        r"$\frac1p\operatorname{tr}(K - z)^{-1}$ with $K = \frac1p\sum_\mu\varphi_\mu"
        r"\varphi_\mu^\top$ is $V_2$ of the equations of the ridge readout at $\lambda = -z$, "
        r"$$V_2^{-1} = -z + \hat V_2 + \frac{c\hat V_1}{1 + \beta c\hat V_1V_2},\quad "
        r"V_1 = \frac{cV_2}{1 + \beta c\hat V_1V_2},\quad \hat V_i = \frac{\alpha}{\beta}\,"
        r"\mathbb{E}_\kappa\frac{\mu_i^2}{1 + V},$$ which map the upper half planes to "
        r"themselves; with an atom $1 - \alpha/\beta$ at zero if $n < p$."
    ),
    source="Cui et al., arXiv 2402.04980, appendix on the spectrum",
    status=Status.REPLICA,
)

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


@evidence("feature-spectrum", "quadrature", "transforms to 15 digits, total masses")
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


def _features(student: str, r: float, c: float, beta: float) -> SpikedRandomFeatures:
    return SpikedRandomFeatures.from_parameters(
        student, "erf", spike_strength=r, bulk_variance=c, alignment=0.9, beta=beta
    )


@evidence(
    "feature-spectrum", "certified", "a transform outside of the bulk, V2 at λ = 0.1", slow=True
)
def transform() -> Finding:
    """The transform of the spectrum at a negative z is V2 at the penalty −z, in its interval."""
    require_flint()
    values: dict[str, Any] = {}
    for student, r, c, beta, alpha, z, expected in _VALUES:
        if z.imag == 0 and z.real < 0:
            model = SpikedRandomFeatures.from_parameters(
                student, "sin", spike_strength=r, bulk_variance=c, alignment=0.5, beta=beta
            )
            proof = proof_of(model.solve(alpha=alpha, ridge=-z.real, certify=True))
            values[f"{student}, z = {z.real}"] = (proof["V2"], repr(expected.real))
    # Double precision reached 14 of the digits that it printed.
    return agreement(values, 14, "transforms", proven=15)


_DIMENSION, _MATRICES = 300, 2


@evidence("feature-spectrum", "simulation", "distribution functions at d = 300")
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


_MEAN_SQUARE = fe.average(fe.mu0**2)
# μ0 of one input; V and τ² stand for what they are in terms of the coefficients.
_TAU_SQUARE = sp.Function("tau^2", nonnegative=True)(fe.kappa)
_WITHIN = fe.c * fe.mu1**2 + fe.mu2_squared
_SHIFT = (
    fe.average(fe.mu0**2 * _TAU_SQUARE) / _MEAN_SQUARE,
    fe.alpha / fe.beta * fe.average(_TAU_SQUARE),
    fe.alpha * fe.c * fe.average(fe.kappa * fe.mu0 * fe.mu1) ** 2 / _MEAN_SQUARE,
)
_SPREAD = fe.average(fe.kappa**2 * fe.mu1**2 / (1 + VARIANCE))
_ALONG = fe.average(fe.kappa * fe.mu0 * fe.mu1 / (1 + VARIANCE))
_MEAN = fe.average(fe.mu0**2 / (1 + VARIANCE))
_SECOND = 1 + fe.alpha * fe.c * fe.V2 * (_SPREAD - _ALONG**2 / _MEAN)

declare_claim(
    "feature-outliers",
    title="Eigenvalues outside the bulk of the feature covariance",
    statement=(
        r"Outliers are the real $z$ outside the bulk where the linear system of $(m, "
        r"\vartheta)$ at $\lambda = -z$ is singular. One is the mean direction, "
        r"$$n\,«square» + «first» + «trace» + «along» + O(1/p),$$ "
        r"$\tau^2 = «within»$; others satisfy $«second» = 0$."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
    formulas={
        "square": _MEAN_SQUARE,
        **dict(zip(("first", "trace", "along"), _SHIFT, strict=True)),
        "within": _WITHIN,
        "second": _SECOND,
    },
)


@evidence("feature-outliers", "exact", "the conditions after elimination")
def conditions() -> Finding:
    """Check the derived conditions of outliers against their form after elimination by hand."""
    equations = spectrum_equations(activation("tanh"))
    matrix = equations.outlier_matrix
    top = equations.top_eigenvalue()
    assert top is not None
    # The average of a sum is that of its terms.
    terms = (sp.Add(*_SHIFT).xreplace({_TAU_SQUARE: part}) for part in _WITHIN.args)
    shift = sp.Add(*terms) - _SHIFT[2]
    results = {
        "the singularity of the block of m and ϑ at 1/p = 0": equal(
            equations.second_outlier, written_out(_SECOND)
        ),
        "1/p enters the entry of m alone": matrix.diff(fe.inverse_width)
        == sp.Matrix([[1 / fe.V2, 0], [0, 0]]),
        "largest eigenvalue, term of order p": equal(top[0], fe.alpha / fe.beta * _MEAN_SQUARE),
        "largest eigenvalue, term of order 1": equal(top[1], shift),
    }
    return identities_hold(
        results, "conditions of outliers agree with their form after elimination"
    )


@evidence("feature-outliers", "simulation", "the shift of three models", slow=True)
def top_eigenvalues() -> Finding:
    """Measure the shift of the largest eigenvalue over the sum of μ0² of the samples."""
    results: dict[str, Any] = {}
    passed = True
    for student, r, c, beta, alpha, _ in _CASES:
        spectrum = _features(student, r, c, beta).spectrum(alpha=alpha)
        simulated = spectrum.simulate(200, seeds=24, seed=5, progress=False)
        assert simulated.projections is not None
        tables = [spectrum._law.functions.tabulate(k)["mu_0"] for k in simulated.projections]
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


@evidence("feature-outliers", "simulation", "a second outlier of cos", slow=True)
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
