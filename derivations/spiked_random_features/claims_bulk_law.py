r"""Claim: Result 3.3 with any law of spectrum and overlaps, Assumption 3.2 of Cui et al.

Rows with two eigenvalues, whose singular vectors are uniform, follow the equations of an isotropic
law at finite size; a law that is the default of independent rows gives its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..claims import Finding, Status, declare_claim, evidence
from .bulk_law import ORTHONORMAL, BulkLaw
from .model import SpikedRandomFeatures
from .vocabulary.model import VocabularyFeatures

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
