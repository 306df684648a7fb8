"""Claims about the spectrum of the features; evidence in :mod:`.spectrum.evidence`."""

from __future__ import annotations

from ...claims import Check, Claim, Deferred, EvidenceKind, Status
from ...evidence import proof


def _check(kind: EvidenceKind, function: str, description: str, *, slow: bool = False) -> Check:
    return Check(kind, description, Deferred(__package__, "evidence", function), slow)


CLAIMS = (
    Claim(
        identifier="feature-spectrum",
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
        checks=(
            _check(EvidenceKind.QUADRATURE, "values", "transforms to 15 digits, total masses"),
            proof(
                __package__,
                "transform",
                "a transform outside of the bulk, V2 at λ = 0.1",
                slow=True,
            ),
            _check(EvidenceKind.SIMULATION, "histograms", "distribution functions at d = 300"),
        ),
    ),
    Claim(
        identifier="feature-outliers",
        title="Eigenvalues outside the bulk of the feature covariance",
        statement=(
            r"Outliers are the real $z$ outside the bulk where the linear system of $(m, "
            r"\vartheta)$ at $\lambda = -z$ is singular. One is the mean direction, "
            r"$$n\,\mathbb{E}\mu_0^2 + \frac{\mathbb{E}\mu_0^2\tau^2}{\mathbb{E}\mu_0^2} + "
            r"\frac{\alpha}{\beta}\,\mathbb{E}\tau^2 + \alpha c\,\frac{\mathbb{E}[\kappa\mu_0\mu_1]"
            r"^2}{\mathbb{E}\mu_0^2} + O(1/p),$$ "
            r"$\tau^2 = c\mu_1^2 + \mu_2^2$; others satisfy $1 + \alpha cV_2(\mathbb{E}_\kappa"
            r"\frac{\kappa^2\mu_1^2}{1+V} - \mathbb{E}_\kappa[\frac{\kappa\mu_0\mu_1}{1+V}]^2 / "
            r"\mathbb{E}_\kappa\frac{\mu_0^2}{1+V}) = 0$."
        ),
        source="derived here",
        status=Status.DERIVED_HERE,
        checks=(
            _check(EvidenceKind.EXACT, "conditions", "the conditions after elimination"),
            _check(
                EvidenceKind.SIMULATION, "top_eigenvalues", "the shift of three models", slow=True
            ),
            _check(EvidenceKind.SIMULATION, "second_outlier", "a second outlier of cos", slow=True),
        ),
    ),
)
