"""Claims about the spectrum of the conjugate kernel."""

from __future__ import annotations

from ..claims import Check, Claim, Deferred, EvidenceKind, Status
from ..evidence import proof

_BA = "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445"


def _computed(kind: EvidenceKind, function: str, description: str) -> Check:
    return Check(kind, description, Deferred(__package__, "evidence_kernel", function))


def _simulation(function: str, description: str, *, slow: bool = False) -> Check:
    compute = Deferred(__package__, "evidence_kernel_simulation", function)
    return Check(EvidenceKind.SIMULATION, description, compute, slow=slow)


_EXACT, _QUADRATURE = EvidenceKind.EXACT, EvidenceKind.QUADRATURE

CLAIMS = (
    Claim(
        identifier="ba-kernel-bulk",
        title="The bulk of the conjugate kernel",
        statement=(
            r"For $K = \Phi\Phi^\top$ with $\Phi = (\mu_1XW + \mu_{>1}Z)/\sqrt N$ and "
            r"$\kappa = \mu_{>1}^2/\mu_1^2$, the inverse function of $\frac1n\operatorname{tr}"
            r"(K - z)^{-1} = \beta/(\alpha\nu)$ is $z = \zeta(T)$, $$\zeta(T) = \mu_1^2\Big["
            r"\frac{(1+T)(\beta+T)}{T} + \kappa\Big]\Big[\frac\alpha\beta + \frac1T + "
            r"\frac{\kappa}{\beta+T}\Big],\quad \nu = -\mu_1^2\Big[\frac{(1+T)(\beta+T)}{T} + "
            r"\kappa\Big].$$ For $\operatorname{Im}z > 0$ exactly one of the four roots has "
            r"$1/\nu$ and the transforms of $W^\top W$ and $WW^\top$ in the upper half plane. "
            r"Edges are critical values of $\zeta$; the bulk has one interval or two."
        ),
        source="derived here",
        status=Status.DERIVED_HERE,
        checks=(
            _computed(_EXACT, "algebra", "closed forms of the equations"),
            _computed(_QUADRATURE, "root_selection", "one root at 400 random spectra"),
            _computed(_QUADRATURE, "masses", "densities integrate to the shares of ranks"),
            proof(__package__, "edges", "the right edge of one model, a critical value", count=1),
            proof(__package__, "edges", "right edges of 13 models", slow=True),
            _simulation("histograms", "distribution functions and resolvents of networks"),
        ),
    ),
    Claim(
        identifier="ba-kernel-threshold",
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
        checks=(
            _computed(_QUADRATURE, "reference_values", "13 models by integrals, and a table"),
            _computed(_EXACT, "half_or_full_loss", "an example where the convention decides"),
            proof(__package__, "kernel_thresholds", "thresholds and edges, two models", count=2),
            proof(__package__, "kernel_thresholds", "thresholds and edges, 13 models", slow=True),
        ),
    ),
    Claim(
        identifier="ba-conjugate-kernel",
        title="Outlier of the trained network's kernel, and its alignment with the labels",
        statement=(
            r"For the true features $\Phi = \sigma(XW_1)/\sqrt N$ with odd $\sigma$, as for "
            r"linearised ones (derived here), $s_1(\Phi)^2 \to \zeta(\theta_1^2)$ if $\theta_1^2 "
            r"> T_c$, and with $T = \theta_1^2$, $x = (1+T)(\beta+T)/T$, $$\langle u_1, "
            r"y/|y|\rangle^2 \to \frac{\mu_1^{*2}}{Y}\,\frac{x}{x+\kappa}\,"
            r"\frac{\theta_2^2}{\theta_1^2}\Big[1 - \frac{\beta+T}{T(T+1)}\Big]\psi',\quad "
            r"\psi' = 1 + \frac\beta\alpha\Big[\frac1T + \frac{\kappa}{\beta+T}\Big] - "
            r"\frac\beta\alpha\,(x+\kappa)\,\frac{T^{-2} + \kappa(\beta+T)^{-2}}{1 - \beta/T^2}$$ "
            r"for fresh labels $y$; else the alignment vanishes."
        ),
        source=f"{_BA}, section 4, a conjecture for networks",
        status=Status.CONJECTURE,
        checks=(
            _computed(_QUADRATURE, "reference_values", "the linearised model by integrals"),
            proof(
                __package__,
                "outliers",
                "of linearised features: one outlier and its overlap",
                names=("12",),
            ),
            proof(
                __package__,
                "outliers",
                "the same for all seven models that have one",
                slow=True,
                names=("2", "5", "7", "8", "11", "12", "13"),
            ),
            _simulation(
                "outliers", "five networks and linearised features, from two sizes", slow=True
            ),
        ),
    ),
    Claim(
        identifier="ba-expected-kernel",
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
        checks=(
            _computed(
                _EXACT, "entries", "entries of kernels of five students, to the second degree"
            ),
            _simulation("expected", "exact kernels of erf and ReLU at three sizes"),
        ),
    ),
)
